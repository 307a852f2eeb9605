"""Runs one test cell on the names that a client gives: its checks with their verdicts, each against a clock.

`autograder.checks` speaks to the current session. In a plain kernel there is none.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from autograder.judging.client import Client, Entry
from autograder.judging.problems import StudentProblem, raised
from autograder.judging.trials import FAILING, LATEST, Holds, Trial, example, trial_of, way_of
from autograder.results import ERROR, FAILED, OUT_OF_MEMORY, PASSED, TIMEOUT, Check, Misconception
from autograder.sandbox.inside.workspace import OutOfTime, close_figures, time_limit
from autograder.text import shown_text

if TYPE_CHECKING:
    from autograder.judging.client import Promise
    from autograder.judging.source import Source, TestCell

EXAMPLES = "the examples in the notebook"
ROOM_BYTES = 1024**3  # that a check may count on; what needs more than there is asks too much
WHOLE = "all tests of this cell"
CHANGES = "`{}` changes its input in place; work on a copy of it"
QUIET = (
    DeprecationWarning,
    PendingDeprecationWarning,
    ImportWarning,
    ResourceWarning,
)  # of which a kernel says nothing
LAST = "__last__"  # in a test cell without checks, the value of its last expression


class CheckFailed(AssertionError):
    """A check does not hold; the message is for the student and never states an expected value."""


class FirstFailure(BaseException):
    """Ends a test cell of which only the first check that fails is wanted."""


@dataclass
class Outcome:
    """What one test cell said about one set of answers; `credit` is the share of its points that it gave by itself.

    `trials` are calls that made checks fail, by the check's name; `asked` is what objects were asked, see `Client`.
    """

    checks: list[Check] = field(default_factory=list)
    transcript: list[Entry] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    internal: list[str] = field(default_factory=list)
    figures: list[dict[str, str]] = field(default_factory=list)
    trials: dict[str, Trial] = field(default_factory=dict)
    named: list[Misconception] | None = None
    credit: float | None = None
    asked: set[str] = field(default_factory=set)

    @property
    def full(self) -> bool:
        return all(c.passed for c in self.checks)

    @property
    def share(self) -> float:
        """Weight of the checks that passed over the weight of all."""
        total = sum(c.points for c in self.checks)
        if self.credit is not None:
            return self.credit
        return sum(c.points for c in self.checks if c.passed) / total if total else 0.0


@dataclass
class Session:
    """A test cell being judged, and what it `said` so far. `draws`: whether somebody will see figures and calls;
    `stops`: whether a failed check ends it.

    `explain` says what a missing name means, `check_seconds` bound what a check computes here: with a student's
    numbers that may be for ever. `known` are the reference's answers to questions of this test cell, by
    their digests; `learns` says that further ones are kept there, as while the reference itself is judged. `holds` is
    what a comparison demanded of the latest call that did not hold. `changed` are the functions that changed what they
    were given, each with the first such call and what was demanded of it.
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
    holds: Holds | None = None
    changed: dict[str, tuple[Promise | None, Holds | None]] = field(default_factory=dict)
    said: Outcome = field(default_factory=Outcome)

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
        self.client.check, self.client.latest, self.holds = name, None, None
        verdict, reason = self.verdict(whole, name)
        self.client.waiting.clear()  # nobody will read what is left
        self.client.check = ""
        shown = self._example(name, verdict, reason) if self.draws and verdict != PASSED else {}
        self.client.latest = self.holds = None
        seconds = round(time.monotonic() - start, 4)
        self.said.checks.append(Check(name, points, verdict, reason, hidden, seconds, shown))
        if self.stops and verdict != PASSED:
            raise FirstFailure

    def run_changed(self) -> None:
        """A failed check for each function that changed its input; it weighs as much as the others do on average.

        It is not there where nothing was changed: an answer that is wrong earns nothing by leaving its input alone.
        """
        points = sum(c.points for c in self.said.checks) / max(1, len(self.said.checks))
        for name, call in self.changed.items():

            def failed(name: str = name, call: tuple[Promise | None, Holds | None] = call) -> None:
                self.client.latest, self.holds = call
                raise CheckFailed(CHANGES.format(name))

            self.run(f"`{name}` leaves its arguments as they are", points, failed)

    def _example(self, name: str, verdict: str, reason: str) -> dict[str, str]:
        """The call at which a check failed, for the student; also kept as a trial where it can be repeated.

        Where a test cell judges what was typed, no call is shown: its inputs may be the right numbers.
        """
        latest = self.client.latest
        if latest is None or any(e.is_value and e.key != "value student_id " for e in self.client.transcript):
            return {}
        if latest.is_read and self.holds is None:
            return example(latest, LATEST)
        error = None if latest.is_read or latest.came is None else latest.came[0].get("error")
        way = raised(error).type_name if error else way_of(reason)
        if way == "NotImplementedError":
            return {}
        if verdict in (FAILED, ERROR) and (trial := trial_of(latest, self.holds, way)) is not None:
            self.said.trials[name] = trial
        return example(latest, FAILING)

    def verdict(self, function: Callable[[], Any], name: str) -> tuple[str, str]:
        """Verdict and reason. Raises MemoryError where this process is too full to judge anybody."""
        try:
            return self._verdict(function, name)
        except StudentProblem as problem:  # the text of an error is what an object in it says
            return problem.verdict, problem.reason
        except RecursionError:
            return ERROR, "your answer could not be used here (RecursionError)"

    def _verdict(self, function: Callable[[], Any], name: str) -> tuple[str, str]:
        np.empty(ROOM_BYTES, "u1")
        try:
            with time_limit(self.check_seconds, again=0, clock=time.process_time):
                function()
        except StudentProblem as problem:
            return problem.verdict, problem.reason
        except AssertionError as failed:  # of others than test cells and checks it may print expected values
            # a variable with a frame would keep this one, and in it the answers
            file = traceback.extract_tb(failed.__traceback__)[-1].filename
            is_own = isinstance(failed, CheckFailed) or file.startswith("<")
            return FAILED, (is_own and shown_text(failed)) or "does not hold"
        except NameError as missing:
            return ERROR, self.explain(missing)
        except OutOfTime:
            self.said.internal.append(f"check '{name}' did not end")
            return TIMEOUT, "stopped: with your answer the check itself does not come to an end"
        except MemoryError:
            self.said.internal.append(f"check '{name}' ran out of memory")
            return OUT_OF_MEMORY, "your answer is too large: with it the check itself runs out of memory"
        except Exception as error:  # a value of a kind that the check did not foresee
            said = f"{type(error).__name__}: {shown_text(error, 300)}"
            self.said.internal.append(f"check '{name}' raised {said}")
            return ERROR, f"your answer could not be used here ({said})"
        return PASSED, ""


def run_test_cell(
    test: TestCell,
    client: Client,
    source: Source,
    seed: int,
    given: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    **settings: Any,
) -> Outcome:
    """Run the visible and the hidden part of a test cell on the names that `client` gives, as `given` changes them.

    `settings` are further fields of `Session`.
    """
    source.share_checks()
    client.exact, client.kinds = test.is_whole, source.kinds if test.is_whole else None
    session = Session(seed, test.grade_id, client, source.reference, **settings)
    said, client.transcript = session.said, session.said.transcript

    def anew() -> dict[str, Any]:
        return {**source.given_to(test), "__name__": "__main__", **given(client.get(list(test.names)))}

    def run_whole(names: dict[str, Any]) -> None:
        try:
            session.run(WHOLE, test.points, lambda: _run_whole(test, names, said), bool(test.hidden.strip()))
        finally:
            client.put_back()

    # a student's numbers divide by zero and the like: no news for whoever reads the terminal
    with (
        made_current(session),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(action="default" if test.is_whole else "ignore"),
        source.in_folder() if test.is_whole else contextlib.nullcontext(),
        contextlib.suppress(FirstFailure),
    ):
        try:
            namespace = anew()
        except StudentProblem as problem:
            said.internal.append(problem.reason)
            return said
        if test.is_whole:
            run_whole(namespace)
            said.asked = client.asked
            if said.full and client.took:  # an answer that makes its inputs 0 is not right because 0 is 2 * 0
                client.takes, said.checks = False, []
                run_whole(anew())
            return said
        if test.visible_code is not None:
            session.run(EXAMPLES, 1, lambda: _run_visible(test, namespace), hidden=False)
        verdict, stopped = session.verdict(lambda: exec(test.hidden_code, namespace), "hidden part")
        if verdict == FAILED:  # an assertion beside the checks, which would stop the cell in a notebook
            said.checks = [replace(c, verdict=FAILED, reason=c.reason or stopped) for c in said.checks]
        if stopped:
            said.internal.append(f"the hidden part stopped: {stopped}")
        session.run_changed()
    return said


def _run_whole(test: TestCell, namespace: dict[str, Any], said: Outcome) -> None:
    """As nbgrader: an error, or anything on stderr, costs all points; a number at the end is the points it gives."""
    for kind in QUIET:
        warnings.simplefilter("ignore", kind)
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        exec(test.helpers_code, namespace)
        try:
            _run_visible(test, namespace)
        finally:
            close_figures()
    shown = "0" if errors.getvalue() else repr(namespace.get(LAST))
    try:
        given = float(shown)
    except ValueError:
        return
    if 0 <= given != test.points:
        said.credit = given / test.points if given < test.points else 0.0
        raise CheckFailed(f"{given:g} of {test.points:g} points")


def _run_visible(test: TestCell, namespace: dict[str, Any]) -> None:
    """The visible part, or all of a cell without checks; a bare assert that students see is explained by its text."""
    try:
        exec(test.visible_code, namespace)
    except AssertionError as failed:
        if str(failed):
            raise
        frames = traceback.extract_tb(failed.__traceback__)
        line = [f.lineno or 0 for f in frames if f.filename == f"<{test.grade_id}>"][-1]
        text = test.visible.split("\n")[line - 1].strip()
        raise CheckFailed(f"`{text}` does not hold" if text else "") from None


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
