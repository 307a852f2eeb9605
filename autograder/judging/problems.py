"""What goes wrong on the student's side, as exceptions: each is a verdict and a reason that a student can act on."""

from __future__ import annotations

import builtins
from typing import Any

from autograder.results import ERROR, OUT_OF_MEMORY, TIMEOUT
from autograder.text import shown_text

KINDS = {"exception": ERROR, "timeout": TIMEOUT, "memory": OUT_OF_MEMORY}


class StudentProblem(Exception):
    """Something on the student's side. `type_name` and `message` are those of the student's own exception."""

    def __init__(self, verdict: str, reason: str, type_name: str = "", message: str = "") -> None:
        self.verdict = verdict
        self.reason = shown_text(reason)
        super().__init__(self.reason)
        self.type_name = type_name
        self.message = message


class StudentRaised(StudentProblem):
    """The student's code raised, ran out of time or out of memory; its process is still there."""


class StudentGone(StudentProblem):
    """The student's process has ended."""


def raised(error: Any, kinds: dict[str, type[Exception]] | None = None) -> StudentRaised:
    """The exception for an error reply, whatever the reply holds.

    With `kinds`, exceptions that given cells define, it is also of the kind that it was there: Python's own or one of
    these.
    """
    error = error if isinstance(error, dict) else {}
    text = {k: shown_text(error.get(k, ""), 1800) for k in ("kind", "type", "message", "where")}
    verdict = KINDS.get(text["kind"], ERROR)
    where = f" ({text['where']})" if text["where"] else ""
    if verdict == TIMEOUT:
        reason = f"stopped, because it took too long{where}"
    elif verdict == OUT_OF_MEMORY:
        reason = f"stopped, because it needs more memory than a submission may use{where}"
    elif text["type"] == "NotImplementedError" and not text["message"]:
        reason = "there is no answer yet: the cell still raises NotImplementedError"
    else:
        reason = f"{text['type'] or 'an error without a name'}: {text['message']}{where}"
        if text["type"] == "NameError":
            reason += " (the names of the examples are not there: a function gets what it needs as arguments)"
    problem = StudentRaised(verdict, reason, text["type"], text["message"])
    if kinds is None or text["kind"] != "exception":
        return problem
    found = _kind_of(error.get("mro"), kinds)
    again = found.__new__(found)
    vars(again).update(vars(problem))
    given = error.get("args")
    plain = given if isinstance(given, list) else []
    again.args = tuple(a for a in plain if a is None or isinstance(a, (str, int, float)))
    return again


SPECIAL = (StopIteration, StopAsyncIteration, ExceptionGroup, UnicodeError)


def _kind_of(mro: Any, kinds: dict[str, type[Exception]]) -> type[StudentRaised]:
    """StudentRaised, and the first kind in `mro` that is known."""
    for name in mro if isinstance(mro, list) else []:
        module, _, own = str(name).rpartition(".")
        found = (
            kinds.get(own) if module == "__main__" else getattr(builtins, own, None) if module == "builtins" else None
        )
        # StopIteration would end a loop of the test cell; groups and texts that cannot be decoded need arguments
        if isinstance(found, type) and issubclass(found, Exception) and not issubclass(found, SPECIAL):
            return type(found.__name__, (StudentRaised, found), {})
    return StudentRaised
