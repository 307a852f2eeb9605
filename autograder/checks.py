"""What a hidden test cell imports: named checks, comparison with the reference, gradients.

The same test cell runs in two places. In the grader process a `Session` is current: each check gets a verdict of its
own, and a student's names are handles. In a plain kernel (the instructor's Jupyter) there is no session: `reference`
is the notebook itself, and a check that does not hold raises at once.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import io
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.judging.proxies import Client, Entry, Handle, StudentGone, StudentProblem
from autograder.results import ERROR, FAILED, PASSED, TIMEOUT, Check
from autograder.sandbox.inside.limits import OutOfTime
from autograder.text import shown_text

ATOL_64 = 1e-6
ATOL_32 = 1e-4
LONGEST_REASON = 2000
MOST_FIGURES = 2  # of one test cell


class CheckFailed(AssertionError):
    """A check does not hold; the message is for the student and never states an expected value."""


@dataclass
class Session:
    """One test cell being judged for one student. `draws`: whether somebody will see the figures.

    `compares` is False where only the requests are of interest, whatever is answered.
    """

    seed: int
    cell: str
    client: Client
    reference: dict[str, Any]
    explain: Callable[[NameError], str] = str
    check_seconds: float | None = None
    checks: list[Check] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    draws: bool = False
    figures: list[dict[str, str]] = field(default_factory=list)
    compares: bool = True

    def rng(self, name: str) -> np.random.Generator:
        digest = hashlib.sha256(f"{self.seed}/{self.cell}/{name}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def run(self, name: str, points: float, function: Callable[[], Any], hidden: bool = True) -> None:
        """Run one check and keep its verdict."""
        start = time.monotonic()
        self.client.check = name
        verdict, reason = self.verdict(function, name)
        self.client.check = ""
        self.checks.append(Check(name, points, verdict, reason, hidden, round(time.monotonic() - start, 4)))

    def verdict(self, function: Callable[[], Any], name: str) -> tuple[str, str]:
        try:
            with at_most(self.check_seconds):
                function()
        except StudentProblem as problem:
            return problem.verdict, problem.reason
        except AssertionError as failed:
            return FAILED, own_words(failed) or "does not hold"
        except NameError as missing:
            return ERROR, self.explain(missing)
        except OutOfTime:
            self.internal.append(f"check '{name}' did not end")
            return TIMEOUT, "stopped: with your answer the check itself does not come to an end"
        except Exception as error:  # a value of a kind that the check did not foresee
            said = f"{type(error).__name__}: {shown_text(error, 300)}"
            self.internal.append(f"check '{name}' raised {said}")
            return ERROR, f"your answer could not be used here ({said})"
        return PASSED, ""


def own_words(failed: AssertionError) -> str:
    """The message of an assertion that a test cell or this module makes; that of others may print expected values."""
    *_, (frame, _) = traceback.walk_tb(failed.__traceback__)
    raised_in = frame.f_code.co_filename
    foreign = not isinstance(failed, CheckFailed) and not raised_in.startswith("<")
    text = "" if foreign and raised_in != __file__ else str(failed)
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"


@contextmanager
def at_most(seconds: float | None):
    """Raise OutOfTime after `seconds`, in the main thread only: elsewhere there are no signals. May be nested."""
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signum: int, frame: Any) -> None:
        raise OutOfTime("out of time")

    handler = signal.signal(signal.SIGALRM, stop)
    left, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)


_session: Session | None = None


@contextmanager
def session(current: Session):
    """Make `current` the session that this module's functions speak to."""
    global _session
    before, _session = _session, current
    try:
        yield current
    finally:
        _session = before


def _main() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


class _Reference:
    """`reference.NAME` is the value that the source notebook's own cells give NAME."""

    def __getattr__(self, name: str) -> Any:
        names = _session.reference if _session is not None else _main()
        try:
            return names[name]
        except KeyError:
            raise AttributeError(f"the source notebook defines no {name!r}") from None


reference = _Reference()


def check(name: str, points: float = 1) -> Callable[[Callable], Callable]:
    """Decorator: run the function at once as the check `name`, worth `points` of its cell.

    The function may take `rng`, a numpy Generator seeded from the run's seed, the cell and the name. The name is shown
    to students: say which property holds, and give no expected value away.
    """

    def decorate(function: Callable) -> Callable:
        wants_rng = function.__code__.co_argcount > 0
        if _session is None:
            seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
            function(np.random.default_rng(seed)) if wants_rng else function()
        else:
            current = _session
            current.run(name, points, lambda: function(current.rng(name)) if wants_rng else function())
        return function

    return decorate


def uses(*names: str) -> None:
    """Name the earlier exercises this one may call; if it fails with the student's, it is judged again with ours."""
    if _session is not None:
        _session.uses.extend(n for n in names if n not in _session.uses)


def fail(reason: str) -> None:
    """End the check as failed, with a sentence for the student."""
    raise CheckFailed(reason)


def observe(what: str, value: Any) -> None:
    """Keep a fact that the check found out about the answer, by which misconceptions are recognised.

    For answers that are right or wrong in many shapes, such as matrices in any basis: what they lead to is compared
    instead. `value` is plain data of the grader's, coarse enough that answers with the same mistake share it.
    """
    if _session is not None:
        _session.client.transcript.append(Entry(_session.client.check, f"observed {what}", value))


def figure(draw: Any, alt: str) -> None:
    """Put a picture beside the verdicts of this exercise; `alt` says in words what it shows.

    `draw` is PNG bytes, a matplotlib Figure, or a function without arguments that gives one of them; the function is
    called only where somebody will see the picture. Two pictures of a test cell are kept, further ones dropped.
    """
    if _session is not None and (not _session.draws or len(_session.figures) >= MOST_FIGURES):
        return
    drawing = draw() if callable(draw) else draw
    if not isinstance(drawing, bytes):
        buffer = io.BytesIO()
        drawing.savefig(buffer, format="png", dpi=100, bbox_inches="tight")
        drawing = buffer.getvalue()
    if _session is not None:
        _session.figures.append({"png": base64.b64encode(drawing).decode(), "alt": alt})
    else:
        from IPython.display import Image, display

        display(Image(drawing, alt=alt))


# ------------------------------------------------------------------------------------------ comparison


def _torch() -> Any:
    return sys.modules.get("torch")


def _is_tensor(value: Any) -> bool:
    torch = _torch()
    return torch is not None and isinstance(value, torch.Tensor)


def _kind(value: Any) -> str:
    if isinstance(value, Handle):
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
    if isinstance(value, Handle) or value is None or isinstance(value, (str, bytes, dict, set)):
        raise CheckFailed(f"{what} is {_kind(value)}, where numbers are asked for")
    if _is_tensor(value):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == _torch().bfloat16 else value).numpy()
    elif isinstance(value, (list, tuple)):
        value = [to_array(v, what) for v in value]
        if len({v.shape for v in value}) > 1:
            raise CheckFailed(f"{what} is a list whose rows have different shapes")
    array = np.asarray(value)
    if array.dtype.kind not in "biufc":
        raise CheckFailed(f"{what} is {_kind(value)}, where numbers are asked for")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    return array


def compare(actual: Any, expected: Any, what: str = "result", atol: float = ATOL_64) -> None:
    """Demand that `actual` equals `expected` within `atol` (arrays: largest absolute difference, in float64).

    Tuples are compared item by item, dictionaries key by key, strings and None exactly. `what` names the value in the
    message. Raises CheckFailed with what is wrong, never with the expected value.
    """
    if _session is not None and not _session.compares:
        return
    if isinstance(expected, (tuple, list)) and not _numeric(expected):
        if isinstance(actual, Handle) or not isinstance(actual, (tuple, list)):
            raise CheckFailed(f"{what} is {_kind(actual)}, where {len(expected)} values are asked for")
        if len(actual) != len(expected):
            raise CheckFailed(f"{what} has {len(actual)} values, where {len(expected)} are asked for")
        for number, (mine, theirs) in enumerate(zip(actual, expected, strict=True), 1):
            compare(mine, theirs, f"value {number} of {what}", atol)
    elif isinstance(expected, dict):
        if not isinstance(actual, dict):
            raise CheckFailed(f"{what} is {_kind(actual)}, where a dictionary is asked for")
        for key, value in expected.items():
            if key not in actual:
                raise CheckFailed(f"{what} has no entry {key!r}")
            compare(actual[key], value, f"{what}[{key!r}]", atol)
    elif expected is None or isinstance(expected, (str, bytes)):
        if type(actual) is not type(expected) or actual != expected:
            raise CheckFailed(f"{what} is not right")
    else:
        _compare_arrays(to_array(actual, what), to_array(expected), what, atol)


def _numeric(values: Any) -> bool:
    """Whether a list is itself an array written out, such as [[1, 2], [3, 4]]."""
    if isinstance(values, list):
        return bool(values) and all(_numeric(v) for v in values)
    return isinstance(values, (bool, int, float, np.generic))


def _compare_arrays(actual: np.ndarray, expected: np.ndarray, what: str, atol: float) -> None:
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
        largest = np.nanmax(np.where(np.isfinite(difference), difference, 0.0))
        raise CheckFailed(f"{what}: {_share(wrong)} off by more than {atol:g} (largest difference {largest:.3g})")


def _share(wrong: np.ndarray) -> str:
    if wrong.ndim == 0:
        return "the number is"
    entries_are = "entries are" if wrong.size > 1 else "entry is"
    return f"{int(wrong.sum())} of {wrong.size} {entries_are}"


def name_of(function: Any) -> str:
    """The notebook's name of a function, class or handle."""
    root = function._root if isinstance(function, Handle) else getattr(function, "__name__", None)
    if root is None:
        raise TypeError("agrees() needs a function that the notebook defines by name")
    return root


def _copied(value: Any) -> Any:
    return value if callable(value) else copy.deepcopy(value)


def _has_float32(values: Any) -> bool:
    if isinstance(values, np.ndarray):
        return values.dtype in (np.float32, np.float16)
    if _is_tensor(values):
        return values.dtype in (_torch().float32, _torch().float16)
    if isinstance(values, dict):
        return any(_has_float32(v) for v in values.values())
    return isinstance(values, (list, tuple)) and any(_has_float32(v) for v in values)


def agrees(
    function: Any,
    *args: Any,
    atol: float | None = None,
    names: tuple[str, ...] | None = None,
    like: tuple[str, Callable] | None = None,
    **kwargs: Any,
) -> Any:
    """Demand that the student's function gives what the reference gives, and leaves its arguments as they were.

    `names` are the names of the returned values, for messages. `atol` is 1e-6, or 1e-4 when an input is float32.
    `like` is the name for messages and the function to compare with where the notebook has none of this name, e.g.
    for an object's method: `agrees(head.forward, X, like=("forward", reference.Head(...).forward))`.
    Returns the student's result. Raises CheckFailed.
    """
    name, trusted = like or (name_of(function), getattr(reference, name_of(function)))
    if atol is None:
        atol = ATOL_32 if _has_float32(args) or _has_float32(kwargs) else ATOL_64
    foreseen = None
    if isinstance(function, Handle):  # arguments cross by copy, in the memory layout that they have here
        actual = function(*args, **kwargs)
        changed = bool(function._changed)
        client = function._client
        foreseen = client.foreseen if like is None else None
        if foreseen is not None and client.same and not changed:
            return actual
    else:
        mine, mine_named = [_copied(a) for a in args], {k: _copied(v) for k, v in kwargs.items()}
        actual = function(*mine, **mine_named)
        changed = any(
            isinstance(before, np.ndarray) and not np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
            for before, after in zip((*args, *kwargs.values()), (*mine, *mine_named.values()), strict=True)
        )
    if foreseen is not None:  # the very same call, which the reference has answered once for all
        expected = foreseen.value
    else:
        expected = trusted(*map(_copied, args), **{k: _copied(v) for k, v in kwargs.items()})
    if names and isinstance(expected, tuple):
        if not isinstance(actual, (tuple, list)) or len(actual) != len(expected):
            raise CheckFailed(
                f"`{name}` returned {_kind(actual)}; it should return {len(expected)} values: {', '.join(names)}"
            )
        for label, one, other in zip(names, actual, expected, strict=True):
            compare(one, other, f"`{label}`", atol)
    else:
        compare(actual, expected, f"the result of `{name}`", atol)
    if changed:
        raise CheckFailed(f"`{name}` changes its input in place; work on a copy of it")
    return actual


# ------------------------------------------------------------------------------- beyond plain values


def gradients(
    function: Any, *args: Any, wrt: tuple[int, ...] = (0,), of: int | None = None, **kwargs: Any
) -> list[np.ndarray | None]:
    """Gradients of a fixed weighted sum of the outputs by the tensor arguments at the places `wrt`.

    `of` picks one of several outputs. They are computed in the student's process; None where nothing depends on it.
    """
    found = _handle(function)._gradients(args, kwargs, wrt=wrt, of=of)
    if not isinstance(found, list) or len(found) != len(wrt):
        raise CheckFailed("the gradients cannot be read")
    return [None if g is None else to_array(g, "a gradient") for g in found]


def parameter_gradients(module: Any, *args: Any, of: int | None = None, **kwargs: Any) -> dict[str, Any]:
    """Gradients of a fixed weighted sum of the module's outputs by each of its parameters, by name."""
    found = _handle(module)._gradients(args, kwargs, of=of, parameters=True)
    if not isinstance(found, dict):
        raise CheckFailed("the gradients cannot be read")
    return {str(k): None if g is None else to_array(g, "a gradient") for k, g in found.items()}


def _handle(value: Any) -> Handle:
    """A handle to any object, so that a plain kernel's values are asked the same way as a student's."""
    if isinstance(value, Handle):
        return value
    from autograder.judging.proxies import LocalTransport

    client = Client(LocalTransport({"value": value}), call_seconds=600.0)
    return client.get(["value"])["value"]


def is_instance(value: Any, type_name: str) -> bool:
    """Whether a value's class or one of its bases has this full or last name, e.g. "torch.nn.modules.linear.Linear"."""
    names = (
        value._mro if isinstance(value, Handle) else [f"{c.__module__}.{c.__qualname__}" for c in type(value).__mro__]
    )
    return any(n == type_name or n.rpartition(".")[2] == type_name for n in names)


def student_side(name: str) -> Any:
    """The value of `name` in the student's process, even where a locked cell defines it."""
    if _session is None:
        return _main()[name]
    found = _session.client.get([name])
    if name not in found:
        raise CheckFailed(f"`{name}` is not defined")
    return found[name]


def student_source(name: str) -> str:
    """The text of the student's cell that defines `name`; empty when no cell does."""
    if _session is None:
        import inspect

        return inspect.getsource(_main()[name])
    return _session.client.source_of(name)


__all__ = [
    "CheckFailed",
    "StudentGone",
    "agrees",
    "check",
    "compare",
    "fail",
    "figure",
    "gradients",
    "is_instance",
    "observe",
    "parameter_gradients",
    "reference",
    "student_side",
    "student_source",
    "to_array",
    "uses",
]
