"""One test cell being judged for one student: its checks with their verdicts, and the clock each of them runs against.

`autograder.checks` speaks to the current session. In a plain kernel there is none.
"""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from autograder.judging.client import Client
from autograder.judging.problems import StudentProblem
from autograder.results import ERROR, FAILED, PASSED, TIMEOUT, Check
from autograder.sandbox.inside.workspace import OutOfTime, time_limit
from autograder.text import shown_text

LONGEST_REASON = 2000


class CheckFailed(AssertionError):
    """A check does not hold; the message is for the student and never states an expected value."""


class FirstFailure(BaseException):
    """Ends a test cell of which only the first check that fails is wanted."""


@dataclass
class Session:
    """What a test cell says. `draws`: whether somebody will see the figures; `stops`: whether a failed check ends it.

    `known` are the reference's answers to questions of this test cell, by their digests; `learns` says that further
    ones are kept there, as while the reference itself is judged.
    """

    seed: int
    cell: str
    client: Client
    reference: dict[str, Any]
    explain: Callable[[NameError], str] = str
    check_seconds: float | None = None
    draws: bool = False
    known: dict[str, Any] = field(default_factory=dict)
    learns: bool = False
    stops: bool = False
    checks: list[Check] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    figures: list[dict[str, str]] = field(default_factory=list)

    def rng(self, name: str) -> np.random.Generator:
        digest = hashlib.sha256(f"{self.seed}/{self.cell}/{name}".encode()).digest()
        return np.random.default_rng(int.from_bytes(digest[:8], "big"))

    def right_answer(self, question: str, answer: Callable[[], Any]) -> Any:
        """The reference's answer to a question with this digest; `answer` gives one that is not known."""
        if question in self.known:
            return self.known[question]
        value = answer()
        if self.learns:
            self.known[question] = value
        return value

    def run(self, name: str, points: float, function: Callable[[], Any], hidden: bool = True) -> None:
        """Run one check and keep its verdict."""

        def whole() -> None:
            function()
            self.client.read_all()

        start = time.monotonic()
        self.client.check = name
        verdict, reason = self.verdict(whole, name)
        self.client.drop()
        self.client.check = ""
        self.checks.append(Check(name, points, verdict, reason, hidden, round(time.monotonic() - start, 4)))
        if self.stops and verdict != PASSED:
            raise FirstFailure

    def verdict(self, function: Callable[[], Any], name: str) -> tuple[str, str]:
        try:
            with time_limit(self.check_seconds, again=0):
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
        except MemoryError:  # the grader's: no verdict on anybody
            raise
        except Exception as error:  # a value of a kind that the check did not foresee
            said = f"{type(error).__name__}: {shown_text(error, 300)}"
            self.internal.append(f"check '{name}' raised {said}")
            return ERROR, f"your answer could not be used here ({said})"
        return PASSED, ""


def own_words(failed: AssertionError) -> str:
    """The message of an assertion of a test cell or of a failed check; that of others may print expected values."""
    *_, (frame, _) = traceback.walk_tb(failed.__traceback__)
    is_own = isinstance(failed, CheckFailed) or frame.f_code.co_filename.startswith("<")
    text = str(failed) if is_own else ""
    return text if len(text) <= LONGEST_REASON else text[:LONGEST_REASON] + "…"


_current: Session | None = None


def current() -> Session | None:
    """The session that checks speak to; None in a plain kernel."""
    return _current


@contextmanager
def made_current(session: Session) -> Iterator[Session]:
    global _current
    before, _current = _current, session
    try:
        yield session
    finally:
        _current = before
