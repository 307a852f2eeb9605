"""What a hidden test cell imports: named checks, comparison with the reference, gradients.

The same test cell runs in two places. In the grader process there is a session (`judging.session`): each check gets a
verdict of its own, and a student's names are proxies. In a plain kernel (the instructor's Jupyter) there is none:
`reference` is the notebook itself, and a check that does not hold raises at once.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import inspect
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from autograder.judging.client import Client, Entry
from autograder.judging.problems import StudentGone as StudentGone
from autograder.judging.proxies import Proxy
from autograder.judging.proxies import later as later
from autograder.judging.proxies import settled as settled
from autograder.judging.recognition import is_flat
from autograder.judging.session import CHANGES, current
from autograder.judging.session import CheckFailed as CheckFailed
from autograder.judging.transports import LocalTransport, RemoteTransport
from autograder.judging.trials import Holds

ATOL_64 = 1e-6
ATOL_32 = 1e-4
MOST_FIGURES = 2  # of one test cell


def _main() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


class _Reference:
    """`reference.NAME` is the value that the source notebook's own cells give NAME."""

    def __getattr__(self, name: str) -> Any:
        session = current()
        names = session.reference if session is not None else _main()
        try:
            return names[name]
        except KeyError:
            raise AttributeError(f"the source notebook defines no {name!r}") from None


reference = _Reference()


def check(name: str, points: float = 1) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: run the function at once as the check `name`, worth `points` of its cell.

    The function may take `rng`, a numpy Generator seeded from the run's seed, the cell and the name. The name is shown
    to students: say which property holds, and give no expected value away.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        wants_rng = function.__code__.co_argcount > 0
        session = current()
        if session is None:
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
            function(np.random.default_rng(seed)) if wants_rng else function()
        else:
            session.run(name, points, lambda: function(session.rng(name)) if wants_rng else function())
        return function

    return decorate


def uses(*names: str) -> None:
    """Name the earlier exercises this one may call; if it fails with the student's, it is judged again with ours."""
    session = current()
    if session is not None:
        session.said.uses.extend(n for n in names if n not in session.said.uses)


def fail(reason: str) -> None:
    """End the check as failed, with a sentence for the student."""
    raise CheckFailed(reason)


def observe(what: str, value: Any, beside: bool = False) -> None:
    """Keep a fact that the check found out about the answer, by which misconceptions are recognised.

    For answers that are right or wrong in many shapes, such as matrices in any basis: in a test cell that observes,
    what they lead to is compared instead of them. A fact `beside` them is compared as well as they are. `value` is
    plain data of the grader's, coarse enough that answers with the same mistake share it.
    """
    session = current()
    if session is not None:
        kind = "noted" if beside else "observed"
        session.client.transcript.append(Entry(session.client.check, f"{kind} {what}", value))


def figure(draw: Any, alt: str) -> None:
    """Put a picture beside the verdicts of this exercise; `alt` says in words what it shows.

    `draw` is PNG bytes, a matplotlib Figure, or a function without arguments that gives one of them; the function is
    called only where somebody will see the picture. Two pictures of a test cell are kept, further ones dropped.
    """
    session = current()
    if session is not None and (not session.draws or len(session.said.figures) >= MOST_FIGURES):
        return
    drawing = draw() if callable(draw) else draw
    if not isinstance(drawing, bytes):
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="png", dpi=100, bbox_inches="tight")
        drawing = buffer.getvalue()
    if session is not None:
        session.said.figures.append({"png": base64.b64encode(drawing).decode(), "alt": alt})
    else:
        from IPython.display import Image, display

        display(Image(drawing, alt=alt))


# ------------------------------------------------------------------------------------------ comparison


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _kind(value: Any) -> str:
    value = settled(value)
    if isinstance(value, Proxy):
        return f"an object of type {value._type}"
    if value is None:
        return "None (is the return statement missing?)"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if _is_tensor(value):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)} values"
    return f"a value of type {type(value).__name__}"


def to_array(value: Any, what: str = "result") -> np.ndarray:
    """A numeric array (float64, complex128 or bool) of an array, tensor, number or nested list. Raises CheckFailed."""
    value = settled(value)
    if isinstance(value, Proxy) or value is None or isinstance(value, (str, bytes, dict, set)):
        raise CheckFailed(f"{what} is {_kind(value)}, where numbers are asked for")
    if _is_tensor(value):
        value = value.detach().cpu()
        value = (value.float() if str(value.dtype) == "torch.bfloat16" else value).numpy()
    elif isinstance(value, (list, tuple)) and not is_flat(value):
        value = [to_array(v, what) for v in value]
        if len({v.shape for v in value}) > 1:
            raise CheckFailed(f"{what} is a list whose rows have different shapes")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise CheckFailed(f"{what} is {_kind(value)}, where numbers are asked for")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    return array


def compare(actual: Any, expected: Any, what: str = "result", atol: float = ATOL_64, how_far: bool = False) -> None:
    """Demand that `actual` equals `expected` within `atol` (arrays: largest absolute difference, in float64).

    Tuples are compared item by item, dictionaries key by key, strings and None exactly. `what` names the value in the
    message. Raises CheckFailed with what is wrong, never with the expected value; `how_far` adds the largest
    difference, by which who typed a number could work out the right one; never for whole or single numbers.
    """
    actual = settled(actual)
    if isinstance(expected, (tuple, list)) and not _numeric(expected):
        if isinstance(actual, Proxy) or not isinstance(actual, (tuple, list)):
            raise CheckFailed(f"{what} is {_kind(actual)}, where {len(expected)} values are asked for")
        if len(actual) != len(expected):
            raise CheckFailed(f"{what} has {len(actual)} values, where {len(expected)} are asked for")
        for number, (mine, theirs) in enumerate(zip(actual, expected, strict=True), 1):
            compare(mine, theirs, f"value {number} of {what}", atol, how_far)
    elif isinstance(expected, dict):
        if not isinstance(actual, dict):
            raise CheckFailed(f"{what} is {_kind(actual)}, where a dictionary is asked for")
        if len(actual) > len(expected):
            raise CheckFailed(f"{what} has {len(actual)} entries, where {len(expected)} are asked for")
        for key, value in expected.items():
            if key not in actual:
                raise CheckFailed(f"{what} has no entry {key!r}")
            compare(actual[key], value, f"{what}[{key!r}]", atol, how_far)
    elif expected is None or isinstance(expected, (str, bytes)):
        if type(actual) is not type(expected) or actual != expected:
            raise CheckFailed(f"{what} is not right")
    else:
        _compare_arrays(to_array(actual, what), to_array(expected), what, atol, how_far)


def _numeric(values: Any) -> bool:
    """Whether a list is itself an array written out, such as [[1, 2], [3, 4]]."""
    if isinstance(values, list):
        return bool(values) and all(_numeric(v) for v in values)
    return isinstance(values, (bool, int, float, np.generic))


def _compare_arrays(actual: np.ndarray, expected: np.ndarray, what: str, atol: float, how_far: bool) -> None:
    if actual.dtype == expected.dtype and actual.shape == expected.shape and actual.tobytes() == expected.tobytes():
        return  # most answers are right to the last bit
    if actual.shape != expected.shape:
        raise CheckFailed(f"{what} has shape {actual.shape}; it should have shape {expected.shape}")
    if expected.dtype.kind == "b" or actual.dtype.kind == "b":
        if actual.dtype.kind != "b":
            raise CheckFailed(f"{what} should hold True and False (dtype bool)")
        wrong = actual != expected
        if wrong.any():
            raise CheckFailed(f"{what}: {_share(wrong)} wrong")
        return
    bad = ~np.isfinite(actual) & np.isfinite(expected)
    if bad.any():
        kind = "NaN" if np.isnan(actual[bad]).any() else "infinity"
        raise CheckFailed(f"{what} holds {kind} ({_share(bad)} not finite)")
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0.0, np.abs(actual - expected))
    wrong = ~(difference <= atol)
    if wrong.any():
        is_hidden = wrong.sum() == 1 or np.array_equal(expected, expected.round(), equal_nan=True)
        largest = np.max(difference, initial=0.0, where=np.isfinite(difference))
        more = f" (largest difference {largest:.3g})" if how_far and not is_hidden else ""
        raise CheckFailed(f"{what}: {_share(wrong)} off by more than {atol:g}{more}")


def _share(wrong: np.ndarray) -> str:
    if wrong.ndim == 0:
        return "the number is"
    entries_are = "entries are" if wrong.size > 1 else "entry is"
    return f"{int(wrong.sum())} of {wrong.size} {entries_are}"


def name_of(function: Any) -> str:
    """The notebook's name of a function, class or handle."""
    root = function._root if isinstance(function, Proxy) else getattr(function, "__name__", None)
    if root is None:
        raise TypeError("agrees() needs a function that the notebook defines by name")
    return root


def _copied(value: Any) -> Any:
    return value if callable(value) else copy.deepcopy(value)


def _has_float32(values: Any) -> bool:
    if isinstance(values, np.ndarray) or _is_tensor(values):
        return str(values.dtype).removeprefix("torch.") in ("float32", "float16")
    if isinstance(values, dict):
        return any(_has_float32(v) for v in values.values())
    return isinstance(values, (list, tuple)) and any(_has_float32(v) for v in values)


class case:
    """One call that `agrees` makes: `case(x, eps=1e-3)` is `function(x, eps=1e-3)`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.inputs = [*args, *kwargs.values()]

    def copied(self) -> case:
        return case(*map(_copied, self.args), **{name: _copied(value) for name, value in self.kwargs.items()})

    def put_to(self, function: Callable[..., Any]) -> Any:
        return function(*self.args, **self.kwargs)

    def __repr__(self) -> str:
        """The shapes or kinds of the inputs, never their values."""
        shown = [_shape(a) for a in self.args] + [f"{name}: {_shape(a)}" for name, a in self.kwargs.items()]
        return ", ".join(shown)


def _shape(value: Any) -> str:
    if value is None or callable(value):
        return "None" if value is None else "a function"
    return str(tuple(value.shape)) if hasattr(value, "shape") else type(value).__name__


def agrees(
    function: Any,
    *args: Any,
    cases: Sequence[case | tuple[Any, ...]] | None = None,
    atol: float | None = None,
    names: tuple[str, ...] | None = None,
    like: tuple[str, Callable[..., Any]] | None = None,
    **kwargs: Any,
) -> Any:
    """Demand that the student's function gives what the reference gives.

    Where it changes its arguments, a check of its own says so, which fails beside this one.

    With `cases`, each a tuple of arguments or a `case(...)`, it is called with each of them; all go to the student's
    process in one message. Otherwise it is called once, with `args` and `kwargs`.

    `names` are the names of the returned values, for messages. `atol` is 1e-6, or 1e-4 when an input is float32.
    `like` is the name for messages and the function to compare with where the notebook has none of this name, e.g.
    for an object's method: `agrees(head.forward, X, like=("forward", reference.Head(...).forward))`.
    Returns the student's result, with `cases` a list of them. Raises CheckFailed, which says the case.
    """
    name, trusted = like or (name_of(function), getattr(reference, name_of(function)))
    if cases is not None and (args or kwargs):
        raise TypeError("agrees() takes arguments or cases, not both")
    asked_for = [case(*args, **kwargs)] if cases is None else cases
    made = [one if isinstance(one, case) else case(*one) for one in asked_for]
    session, results = current(), []

    def holds(other: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        _agrees(_asked(other, case(*given, **named)), name, trusted, atol, names, False)

    answers: Iterable[Any] = (_asked(function, one) for one in made)
    if isinstance(function, Proxy) and isinstance(function._client.transport, RemoteTransport):
        answers = list(answers)  # all wait, and go in one message
    for number, asked in enumerate(answers, 1):
        try:
            results.append(_agrees(asked, name, trusted, atol, names, like is None, holds))
        except CheckFailed as failed:
            if session is not None:
                session.holds = holds
            if len(made) == 1:
                raise
            raise CheckFailed(f"{failed}, in case {number} of {len(made)}, with inputs {asked[0]}") from None
    return results[0] if cases is None else results


def _asked(function: Any, one: case) -> tuple[case, Any, Callable[[], bool]]:
    """A case, its answer, which may come later, and a function that says whether the inputs were changed."""
    if isinstance(function, Proxy):  # arguments cross by copy, in the memory layout that they have here
        answer = later(function, *one.args, **one.kwargs)
        return one, answer, lambda: bool(answer._promise.changed)
    given = one.copied()
    answer = given.put_to(function)
    changed = any(
        isinstance(before, np.ndarray) and not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
        for before, after in zip(one.inputs, given.inputs, strict=True)
    )
    return one, answer, lambda: changed


def _agrees(
    asked: tuple[case, Any, Callable[[], bool]],
    name: str,
    trusted: Callable[..., Any],
    atol: float | None,
    names: tuple[str, ...] | None,
    is_named: bool,
    holds: Holds | None = None,
) -> Any:
    """Compare one answer; `is_named` says that the question's digest names the reference's function.

    `holds` is the same for another function and other inputs.
    """
    one, answer, changed = asked
    actual = settled(answer)

    def right() -> Any:
        return one.copied().put_to(trusted)

    session = current()
    if is_named and session is not None and isinstance(answer, Proxy) and answer._promise is not None:
        expected = session.right_answer(answer._promise.key, right)
    else:
        expected = right()
    if atol is None:
        atol = ATOL_32 if _has_float32(one.inputs) else ATOL_64
    if names and isinstance(expected, tuple):
        if not isinstance(actual, (tuple, list)) or len(actual) != len(expected):
            raise CheckFailed(
                f"`{name}` returned {_kind(actual)}; it should return {len(expected)} values: {', '.join(names)}"
            )
        for label, mine, theirs in zip(names, actual, expected, strict=True):
            compare(mine, theirs, f"`{label}`", atol, True)
    else:
        compare(actual, expected, f"the result of `{name}`", atol, True)
    if changed():
        changes_its_input(name, holds)
    return actual


def changes_its_input(name: str, holds: Holds | None = None) -> None:
    """Say that a call, whose answer may be right, changed what it was given.

    It costs a check of its own, `name leaves its arguments as they are`, and never the one that found it out.
    """
    session = current()
    if session is None:
        raise CheckFailed(CHANGES.format(name))
    session.changed.setdefault(name, (session.client.latest, holds))


# ------------------------------------------------------------------------------- beyond plain values


def gradients(
    function: Any, *args: Any, wrt: tuple[int, ...] = (0,), of: int | None = None, **kwargs: Any
) -> list[np.ndarray | None]:
    """Gradients of a fixed weighted sum of the outputs by the tensor arguments at the places `wrt`.

    `of` picks one of several outputs. They are computed in the student's process; None where nothing depends on it.
    """
    found = _gradients(function, args, kwargs, wrt, of)
    if not isinstance(found, list) or len(found) != len(wrt):
        raise CheckFailed("the gradients cannot be read")
    return [None if g is None else to_array(g, "a gradient") for g in found]


def parameter_gradients(module: Any, *args: Any, of: int | None = None, **kwargs: Any) -> dict[str, Any]:
    """Gradients of a fixed weighted sum of the module's outputs by each of its parameters, by name."""
    found = _gradients(module, args, kwargs, (), of)
    if not isinstance(found, dict):
        raise CheckFailed("the gradients cannot be read")
    return {str(k): None if g is None else to_array(g, "a gradient") for k, g in found.items()}


def _gradients(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], wrt: tuple[int, ...], of: int | None
) -> Any:
    if not isinstance(function, Proxy):  # a plain kernel's values are asked the same way as a student's
        function = Client(LocalTransport({"value": function}), call_seconds=600.0).get(["value"])["value"]
    details = {"wrt": list(wrt), "of": of, "parameters": not wrt}
    return function._answer("gradients", args=args, kwargs=kwargs, **details)


def is_instance(value: Any, type_name: str) -> bool:
    """Whether a value's class or one of its bases has this full or last name, e.g. "torch.nn.modules.linear.Linear"."""
    value = settled(value)
    names = (
        value._mro if isinstance(value, Proxy) else [f"{c.__module__}.{c.__qualname__}" for c in type(value).__mro__]
    )
    return any(n == type_name or n.rpartition(".")[2] == type_name for n in names)


def student_side(name: str) -> Any:
    """The value of `name` in the student's process, even where a locked cell defines it."""
    session = current()
    if session is None:
        return _main()[name]
    found = session.client.get([name])
    if name not in found:
        raise CheckFailed(f"`{name}` is not defined")
    return found[name]


def student_source(name: str) -> str:
    """The text of the student's cell that defines `name`; empty when no cell does."""
    session = current()
    if session is not None:
        return session.client.source_of(name)
    found = _main().get(name)
    return inspect.getsource(found) if inspect.isfunction(found) else ""
