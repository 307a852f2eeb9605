"""Time limits of the student's code, and its exceptions as data."""

from __future__ import annotations

import linecache
import signal
import traceback
from collections.abc import Callable
from typing import Any

MAX_TEXT = 2000


class OutOfTime(KeyboardInterrupt):
    """A cell or a call used up its time; a KeyboardInterrupt, so that libraries let it through."""


def _alarm(signum: int, frame: Any) -> None:
    raise OutOfTime("out of time")


class time_limit:
    """Raise OutOfTime in the main thread after `seconds`, again every half second until the block ends."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        if self.seconds:
            signal.signal(signal.SIGALRM, _alarm)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.5)

    def __exit__(self, *raised: Any) -> None:
        if self.seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)


def is_memory_error(error: BaseException) -> bool:
    """numpy raises MemoryError, torch a RuntimeError of its allocator."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def describe(error: BaseException, is_student_file: Callable[[str], bool]) -> dict[str, Any]:
    """An exception as data: what happened and the last line of the student's own code on the way to it."""
    kind = "exception"
    if isinstance(error, OutOfTime):
        kind = "timeout"
    elif is_memory_error(error):
        kind = "memory"
    try:
        message = str(error)[:MAX_TEXT]
    except Exception as broken:  # a student's exception class whose __str__ fails
        message = f"(its message cannot be shown: {type(broken).__name__})"
    where = ""
    for item in traceback.extract_tb(error.__traceback__):
        if is_student_file(item.filename):
            line = (item.line or linecache.getline(item.filename, item.lineno or 0)).strip()[:200]
            name = "" if item.name == "<module>" else f" of `{item.name}`"
            where = f"line {item.lineno} of your cell{name and ', in'}{name.removeprefix(' of')}: `{line}`"
    return {"kind": kind, "type": type(error).__name__, "message": message, "where": where}
