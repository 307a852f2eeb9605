"""Runs a test cell on the names that a client gives: its visible part, then its hidden one."""

from __future__ import annotations

import contextlib
import io
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from autograder.judging.client import Client, Entry
from autograder.judging.problems import StudentProblem
from autograder.judging.session import FirstFailure, Session, made_current
from autograder.judging.source import Source, TestCell
from autograder.results import Check, Misconception

EXAMPLES = "the examples in the notebook"


@dataclass
class Outcome:
    """What one test cell said about one set of answers."""

    checks: list[Check]
    transcript: list[Entry]
    uses: list[str]
    internal: list[str]
    figures: list[dict[str, str]] = field(default_factory=list)
    named: list[Misconception] | None = None

    @property
    def full(self) -> bool:
        return all(c.passed for c in self.checks)

    @property
    def share(self) -> float:
        """Weight of the checks that passed over the weight of all."""
        total = sum(c.points for c in self.checks)
        return sum(c.points for c in self.checks if c.passed) / total if total else 0.0


def run_test_cell(
    test: TestCell,
    client: Client,
    source: Source,
    seed: int,
    explain: Callable[[NameError], str] = str,
    given: Callable[[dict[str, Any]], dict[str, Any]] = dict,
    check_seconds: float | None = None,
    draws: bool = False,
    known: dict[str, Any] | None = None,
    learns: bool = False,
    stops: bool = False,
) -> Outcome:
    """Run the visible and the hidden part of a test cell on the names that `client` gives, as `given` changes them.

    `check_seconds` bounds each check, what it does here included: with a student's numbers that may be for ever.
    `draws` says that the checks' figures are wanted; `stops` that the first check which fails is enough. `known` and
    `learns` are those of `Session`.
    """
    client.transcript = []
    source.share_checks()
    known = {} if known is None else known
    session = Session(
        seed, test.grade_id, client, source.reference, explain, check_seconds, draws, known, learns, stops
    )
    namespace: dict[str, Any] = {**source.trusted, "__name__": "tests"}
    stopped = ""
    # a student's numbers divide by zero and the like: no news for whoever reads the terminal
    with (
        made_current(session),
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
        contextlib.suppress(FirstFailure),
    ):
        try:
            namespace.update(given(client.get(list(test.names))))
        except StudentProblem as problem:
            return Outcome([], client.transcript, [], [problem.reason])
        if test.visible_code is not None:
            session.run(EXAMPLES, 1, lambda: _run_visible(test, namespace), hidden=False)
        _, stopped = session.verdict(lambda: exec(test.hidden_code, namespace), "hidden part")
    internal = session.internal + ([f"the hidden part stopped: {stopped}"] if stopped else [])
    return Outcome(session.checks, client.transcript, session.uses, internal, session.figures)


def _run_visible(test: TestCell, namespace: dict[str, Any]) -> None:
    """The visible part; a bare assert is explained by its own text, which the student has."""
    try:
        exec(test.visible_code, namespace)
    except AssertionError as failed:
        if str(failed):
            raise
        frames = reversed(traceback.extract_tb(failed.__traceback__))
        line = next((f.lineno for f in frames if f.filename == f"<{test.grade_id}>"), None)
        text = test.visible.split("\n")[line - 1].strip() if line else ""
        raise AssertionError(f"`{text}` does not hold") from None
