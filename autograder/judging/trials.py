"""The call that shows a student why a check failed: as Python code, on an input as small as is found.

Only what a student's own function was asked is shown, and what it gave; never what it should have given.
"""

from __future__ import annotations

import copy
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.judging.problems import StudentGone, StudentProblem
from autograder.judging.proxies import Proxy, settled
from autograder.sandbox.inside.exact import is_table
from autograder.text import shown_text

if TYPE_CHECKING:
    from autograder.judging.client import Promise

SMALLEST = "The smallest failing input that was found"
FAILING = "An input that fails"
LATEST = "The last call before it failed"
MOST_SHOWN = 36, 8  # entries of an array or list; fewer where a call would be long
LONG = 800  # characters of a call
MOST_CHARACTERS = 1_200
MOST_ENTRIES = 20_000  # of all inputs that are cut down
LINE = 88  # characters
DIGITS = 6
DEEPEST = 4  # of lists in lists
MOST_CUTS = 24  # inputs tried for one check

Holds = Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]
"""Called with a function and arguments: raises where the function's answer is not right."""
Call = tuple[str, tuple[Any, ...], dict[str, Any]]  # of what, as in "Head().forward()", on which small plain data


@dataclass
class Trial:
    """A call of the student's function `name` that failed a check in some `way`, on inputs that can be cut down."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    holds: Holds
    way: str

    def failure(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """In which way the function fails on these inputs; "" where it does not. Raises StudentGone."""
        try:
            self.holds(function, args, kwargs)
        except StudentGone:
            raise
        except StudentProblem as problem:
            return problem.type_name or problem.verdict
        except Exception as error:  # a check's own, or that of a right function on an input that is not allowed
            return way_of(str(error)) or type(error).__name__
        return ""


def way_of(reason: str) -> str:
    """What reasons have in common that differ in numbers."""
    return re.split(r"[\d(]|, in case", shown_text(reason))[0]


def call_of(promise: Promise) -> Call | None:
    """What was asked; None where it is no call, or an input is an object, a function or too large."""
    if promise.op != "call":
        return None
    args, kwargs = promise.details["args"], promise.details["kwargs"]
    sizes = [_entries(value) for value in (*args, *kwargs.values())]
    if None in sizes or sum(size or 0 for size in sizes) > MOST_ENTRIES:
        return None
    return promise.path, copy.deepcopy(tuple(args)), copy.deepcopy(kwargs)


def trial_of(promise: Promise, holds: Holds | None, way: str) -> Trial | None:
    """The call as one that can be repeated later; None where an input is an object, a function or too large."""
    call = call_of(promise)
    if promise.target._root is None or call is None:
        return None
    return Trial(promise.target._root, *call[1:], holds or _plain_call, way)


def _plain_call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*copy.deepcopy(args), **copy.deepcopy(kwargs))


def _entries(value: Any, depth: int = 0) -> int | None:
    """How many numbers or characters plain data holds; None where it is something else."""
    if isinstance(value, Proxy) or is_table(value):  # a proxy's attributes would be asked for
        return None
    if value is None or isinstance(value, (bool, int, float, complex, np.generic)):
        return 1
    if isinstance(value, str):
        return len(value)
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return int(np.prod(value.shape))
    if isinstance(value, (list, tuple)) and depth < DEEPEST:
        parts = [_entries(part, depth + 1) for part in value]
        return None if None in parts else len(parts) + sum(part or 0 for part in parts)
    return None


# -------------------------------------------------------------------------------------------- cutting down


def smallest(trial: Trial, student: Any, right: list[Any], end: float = float("inf")) -> dict[str, str] | None:
    """The trial on the smallest inputs on which it fails in the same way, as `example` shows it.

    An input is allowed where the `right` functions, the reference first, all agree on it. The search stops when this
    process has computed until `end`. None where the student's function does not fail so on the trial's own inputs.
    """
    if trial.failure(student, trial.args, trial.kwargs) != trial.way:
        return None
    args, kwargs, left = trial.args, trial.kwargs, MOST_CUTS
    is_smaller = True
    while is_smaller:
        is_smaller = False
        for cut in _cuts([*args, *kwargs.values()]):
            left -= 1
            if left < 0 or time.process_time() > end:
                break
            fewer, named = tuple(cut[: len(args)]), dict(zip(kwargs, cut[len(args) :], strict=True))
            if trial.failure(right[0], fewer, named) or trial.failure(student, fewer, named) != trial.way:
                continue
            if not any(trial.failure(function, fewer, named) for function in right[1:]):
                args, kwargs, is_smaller = fewer, named, True
                break
    try:
        gave = _answer(_plain_call(student, args, kwargs))
    except StudentProblem as problem:
        gave = problem.reason
    return {"says": SMALLEST, "call": _call(trial.name, args, kwargs), "gave": gave}


def _cuts(values: list[Any]) -> Iterator[list[Any]]:
    """Smaller inputs, the smallest first: shorter axes, texts and lists, and in the end numbers with one decimal.

    Axes of the same length are cut together, since they mostly mean the same. The last two axes keep a length of two:
    with one token or one feature much is right by chance.
    """
    arrays = [value for value in values if getattr(value, "ndim", 0)]
    least: dict[int, int] = {}
    for array in arrays:
        for axis, length in enumerate(array.shape):
            least[length] = max(least.get(length, 1), 2 if array.ndim - axis <= 2 else 1)
    longer = {length: low for length, low in least.items() if length > low}
    if len(longer) > 1:
        yield [_cut_array(value, longer) for value in values]
    for length, low in sorted(longer.items(), reverse=True):
        for new in dict.fromkeys([low, length // 2, length - 2, length - 1]):
            if low <= new < length:
                yield [_cut_array(value, {length: new}) for value in values]
    for place, value in enumerate(values):
        if isinstance(value, (str, list, tuple)) and len(value) > 1:
            half = len(value) // 2
            for part in (value[:half], value[half:], value[:-1], value[1:]):
                yield [*values[:place], part, *values[place + 1 :]]
    rounded = [_rounded(value) for value in values]
    if any(_bytes(one) != _bytes(other) for one, other in zip(values, rounded, strict=True)):
        yield rounded


def _cut_array(value: Any, new: dict[int, int]) -> Any:
    if not getattr(value, "ndim", 0):
        return value
    cut = value[tuple(slice(new.get(length, length)) for length in value.shape)]
    return cut.copy() if isinstance(cut, np.ndarray) else cut.clone()


def _rounded(value: Any) -> Any:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    if isinstance(value, np.ndarray):
        return value.round(1) + 0 if kind == "f" else value  # + 0: no minus zero
    is_tensor = hasattr(value, "is_floating_point")
    return value.round(decimals=1) + 0 if is_tensor and value.is_floating_point() else value


def _bytes(value: Any) -> bytes | None:
    """The numbers of an array or tensor; None of anything else, which stays as it is."""
    if not getattr(value, "ndim", 0):
        return None
    return value.tobytes() if isinstance(value, np.ndarray) else value.detach().numpy().tobytes()


# ------------------------------------------------------------------------------------------------ as text


def example(promise: Promise, says: str) -> dict[str, str]:
    """How feedback shows a call: what it `says` of it, the call as code, and what came out if that could be read."""
    name = promise.target._path.replace("()", "(…)")
    gave = _answer(promise.value) if promise.is_read else ""
    return {"says": says, "call": _call(name, promise.details["args"], promise.details["kwargs"]), "gave": gave}


def _call(name: str, args: Any, kwargs: dict[str, Any]) -> str:
    for most in MOST_SHOWN:
        parts = [as_text(value, most) for value in args]
        parts += [f"{key}={as_text(value, most)}" for key, value in kwargs.items()]
        if sum(map(len, parts)) <= LONG:
            break
    if sum(map(len, parts)) <= LINE and not any("\n" in part for part in parts):
        return _bounded(f"{name}({', '.join(parts)})")
    lines = "".join(f"    {part},\n".replace("\n ", "\n     ") for part in parts)
    return _bounded(f"{name}(\n{lines})")


def _answer(value: Any) -> str:
    text = as_text(value)
    return text if len(text) <= LONG else as_text(value, MOST_SHOWN[-1])


def _bounded(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + " …"


def as_text(value: Any, most: int = MOST_SHOWN[0], depth: int = 0) -> str:
    """Plain data as Python code, anything else and what has more than `most` parts described in angle brackets."""
    value = settled(value)
    if isinstance(value, Proxy):
        return f"<an object of type {value._type}>"
    if is_table(value):
        return f"<a {type(value).__name__} of shape {value.shape}>"
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array_text(value, most)
    if callable(value):
        return f"<the function {shown_text(getattr(value, '__name__', 'given'), 40)}>"
    if isinstance(value, (list, tuple, dict, set, frozenset)):
        if depth >= DEEPEST or len(value) > most:
            return f"<a {type(value).__name__} of {len(value)} values>"
        parts, size = list[str](), 0
        items = value.items() if isinstance(value, dict) else (("", item) for item in value)  # no key is looked up
        for key, item in items:
            name = f"{as_text(key, most, depth + 1)}: " if isinstance(value, dict) else ""
            parts.append(name + as_text(item, most, depth + 1))
            size += len(parts[-1])
            if size > MOST_CHARACTERS:  # nested values would take time in a power of their number
                break
        start, end = ("[", "]") if isinstance(value, list) else ("(", ")") if isinstance(value, tuple) else ("{", "}")
        between = ", " if depth or size <= LINE else ",\n "
        single = "," if isinstance(value, tuple) and len(value) == 1 else ""
        return _bounded(f"{start}{between.join(parts)}{single}{end}")
    if isinstance(value, (str, bytes)) and len(value) > 200:
        return f"<a text of {len(value)} characters>"
    return _float_text(value) if isinstance(value, float) else shown_text(repr(value), 300)


def _float_text(number: Any) -> str:
    text = f"{number:.{DIGITS}g}"
    return f"{text}." if text.lstrip("-").isdigit() else text


def _array_text(value: Any, most: int) -> str:
    """An array or tensor as code, its numbers to six digits; a large one by its shape."""
    kind, shape = str(value.dtype).removeprefix("torch."), tuple(value.shape)
    torch: Any = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    numbers = value.detach().numpy() if is_tensor and kind != "bfloat16" else value
    if int(np.prod(shape)) > most or getattr(numbers.dtype, "kind", "O") not in "biufc":
        return f"<{'a tensor' if is_tensor else 'an array'} of shape {shape}, {kind}>"
    start, library = ("torch.tensor(", "torch") if is_tensor else ("np.array(", "np")
    text = np.array2string(
        numbers,
        separator=", ",
        max_line_width=LINE,
        threshold=most + 1,
        prefix=start,
        formatter={"float_kind": _float_text},
    )
    short = " ".join(text.split())
    text = re.sub(r"\b(nan|inf)\b", r"np.\1", short if len(short) < LINE - 30 else text)
    usual = {"float32", "int64", "bool"} if is_tensor else {"float64", "int64", "bool"}
    if not shape and not is_tensor and kind in usual:  # what NumPy's own numbers become on the way
        return text
    more = "" if kind in usual else f", dtype={library}.{kind}"
    if 0 in shape:
        return f"{library}.zeros({shape}{more})"
    return f"{start}{text}{more})"
