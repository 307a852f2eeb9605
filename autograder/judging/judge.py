"""Judges one submission: runs the student's cells in the sandbox and the test cells here.

A job is plain data (bytes on the way to a worker) and so is its result; nothing here touches a database or a course
folder. Workers keep one warm sandbox and the parsed sources of the sets they have seen.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import faulthandler
import gc
import io
import json
import multiprocessing
import os
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import Any

import numpy as np

from autograder.checks import Session, session
from autograder.judging.foresight import DISTURBANCE_SEED, DISTURBANCES, Asked, Foresight, disturbed, disturbed_names
from autograder.judging.proxies import (
    Client,
    Entry,
    LocalTransport,
    OneByOne,
    RemoteTransport,
    StudentGone,
    StudentProblem,
    raised,
)
from autograder.judging.recognition import recognise
from autograder.judging.source import BadSource, Source, TestCell
from autograder.judging.variants import BadCatalogue, Variant, value_for
from autograder.notebook.names import bound_names, compiled_silent, used_names
from autograder.notebook.rebuild import Rebuilt, RebuiltCell, to_content
from autograder.results import NOT_REACHED, UNREADABLE, Check, Exercise, Misconception, Result
from autograder.sandbox.inside.zygote import LIBRARIES, data_size
from autograder.sandbox.launcher import BUBBLEWRAP, Limits, Sandbox, SandboxRefused

MOST_KEPT_OUTCOMES = 2000
MOST_KNOWN_OUTCOMES = 500
EXAMPLES = "the examples in the notebook"
MOST_CLEAN_BYTES = 4_000_000
LONGEST_ID = 200
OWN_SECONDS = 30.0  # for what a check itself does with the answers, beside the students' calls
OWN_BYTES = 4 * 1024**3  # of a worker, on top of what it holds at first
MENTIONS = {"matplotlib": ("matplotlib", "plt", "pylab"), "torch": ("torch",)}
OF_THE_SET = ("source", "catalogue", "set_checks", "files")
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Job:
    """Everything a worker needs to judge one submission; `cells` are those of the rebuilt notebook, as JSON."""

    student: str
    assignment: str
    key: str
    cells: str
    source: str
    catalogue: str
    assignment_version: str
    grader_version: str
    seed: int
    files: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    sandbox: str = BUBBLEWRAP
    notes: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    arrived: str = ""
    set_checks: str = ""

    def to_bytes(self) -> bytes:
        """Three lines of JSON: the submission's own fields, its cells, and what is the same for the whole class."""
        own = {name: value for name, value in vars(self).items() if name not in ("cells", *OF_THE_SET)}
        of_the_set = _set_to_bytes(self.source, self.catalogue, self.set_checks, *self.files.items())
        return b"\n".join([json.dumps(own).encode(), self.cells.encode(), of_the_set])

    @classmethod
    def from_bytes(cls, data: bytes) -> Job:
        own, cells, of_the_set = data.split(b"\n")
        return cls(**json.loads(own), cells=cells.decode(), **_set_from_bytes(of_the_set))

    def result(self, **more: Any) -> Result:
        """A result of this job: what is known beforehand, and `more` fields of it."""
        return Result(
            student=self.student,
            assignment=self.assignment,
            key=self.key,
            arrived=self.arrived,
            seed=self.seed,
            sandbox=self.sandbox,
            graded_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            grader_version=self.grader_version,
            assignment_version=self.assignment_version,
            notes=list(self.notes),
            **more,
        )

    def unjudged(self, reason: str, events: list[str]) -> Result:
        """The result where the grader, not the submission, is to blame: no score, and who must act."""
        return self.result(status=UNREADABLE, reason=reason, events=events)

    def rebuilt(self) -> Rebuilt:
        return Rebuilt([RebuiltCell(**c) for c in json.loads(self.cells)], list(self.notes), list(self.events))


@lru_cache(maxsize=2)
def _set_to_bytes(source: str, catalogue: str, set_checks: str, *files: tuple[str, str]) -> bytes:
    return json.dumps(dict(zip(OF_THE_SET, (source, catalogue, set_checks, dict(files)), strict=True))).encode()


@lru_cache(maxsize=2)
def _set_from_bytes(data: bytes) -> dict[str, Any]:
    return json.loads(data)


def libraries_of(rebuilt: Rebuilt) -> list[str]:
    """The large libraries that the student's cells speak of."""
    text = "\n".join(c.source for c in rebuilt.cells if c.cell_type == "code" and c.kind != "test")
    return [name for name, words in MENTIONS.items() if any(word in text for word in words)]


# ------------------------------------------------------------------------------------------ test cells


@dataclass
class Outcome:
    """What one test cell said about one set of answers."""

    checks: list[Check]
    transcript: list[Entry]
    uses: list[str]
    internal: list[str]
    figures: list[dict[str, str]] = field(default_factory=list)
    named: list[Misconception] | None = None
    asked: list[Asked] = field(default_factory=list)

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
    explain: Any = str,
    given: dict[str, Any] | None = None,
    check_seconds: float | None = None,
    draws: bool = False,
    compares: bool = True,
) -> Outcome:
    """Run the visible and the hidden part of a test cell on the names that `client` gives, except those in `given`.

    `check_seconds` bounds each check, what it does here included: with a student's numbers that may be for ever.
    `draws` says that the checks' figures are wanted; without `compares` every answer is as good as another.
    """
    client.transcript = []
    source.share_checks()
    current = Session(
        seed, test.grade_id, client, source.reference, explain, check_seconds, draws=draws, compares=compares
    )
    namespace: dict[str, Any] = {**source.trusted, "__name__": "tests"}
    stopped = ""
    # a student's numbers divide by zero and the like: no news for whoever reads the terminal
    with session(current), contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings(action="ignore"):
        try:
            namespace.update(client.get([n for n in test.names if n not in (given or {})]))
            namespace.update(given or {})
        except StudentProblem as problem:
            return Outcome([], client.transcript, [], [problem.reason])
        if test.visible_code is not None:
            current.run(EXAMPLES, 1, lambda: _run_visible(test, namespace), hidden=False)
        _, reason = current.verdict(lambda: exec(test.hidden_code, namespace), "hidden part")
        if reason:
            stopped = reason
    internal = current.internal + ([f"the hidden part stopped: {stopped}"] if stopped else [])
    return Outcome(current.checks, client.transcript, current.uses, internal, current.figures, asked=client.asked or [])


def _run_visible(test: TestCell, namespace: dict[str, Any]) -> None:
    """The visible part; a bare assert is explained by its own text, which the student has."""
    try:
        exec(test.visible_code, namespace)
    except AssertionError as failed:
        if str(failed):
            raise
        line = next(
            (
                f.lineno
                for f in reversed(traceback.extract_tb(failed.__traceback__))
                if f.filename == f"<{test.grade_id}>"
            ),
            None,
        )
        text = test.visible.split("\n")[line - 1].strip() if line else ""
        raise AssertionError(f"`{text}` does not hold") from None


class Judged(Source):
    """A source with what judging needs again and again: its own outcomes and those of the catalogue's variants."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._runs: dict[tuple, Outcome] = {}
        self._foresights: dict[tuple, Foresight] = {}
        self._right_answers: dict[tuple, dict[str, Asked]] = {}
        self.known: dict[tuple, Outcome] = {}
        self._of_student: tuple[str | None, dict[str, Any]] = None, {}

    @cached_property
    def _needs_id(self) -> dict[str, bool]:
        return {g: "student_id" in t.names for g, t in self.tests.items()}

    @cached_property
    def own_id(self) -> str:
        """The student_id that the source notebook itself holds; "" where it holds none."""
        return self.reference.get("student_id", "")

    def _run(
        self,
        key: tuple | None,
        test: TestCell,
        seed: int,
        make_client: Callable[[], Client],
        only_data: bool = False,
    ) -> Outcome:
        """The outcome for a client; kept under `key`, which is None for what only one student will ask for.

        With `only_data` nothing but the values that the test cell reads is recorded, and no check runs.
        """
        outcome = self._runs.get(key)
        if outcome is None:
            with warnings.catch_warnings(action="ignore"):  # so do wrong variants, when their data are made
                client = make_client()
            if only_data:
                client.get(list(test.names))
                outcome = Outcome([], client.transcript, [], [])
            else:
                outcome = run_test_cell(test, client, self, seed)
            if key is not None:
                if len(self._runs) > MOST_KEPT_OUTCOMES:
                    self._runs.clear()
                self._runs[key] = outcome
        return outcome

    def _client(self, test: TestCell, namespace: dict[str, Any], **more: Any) -> Client:
        client = Client(LocalTransport(namespace), call_seconds=600.0, **more)
        client.sources = {n: self.solution_text(n) for n in test.solution_names}
        return client

    def right_answers(self, test: TestCell, seed: int) -> dict[str, Asked]:
        """Calls of functions that the test cell makes of everybody, by their digests, with the reference's answers."""
        key = test.grade_id, seed
        if key not in self._right_answers:
            asked = self.reference_outcome(test, seed, self.own_id).asked
            self._right_answers[key] = {a.key: a for a in asked if a.is_plain and "name" in a.header["target"]}
        return self._right_answers[key]

    def remember(self, key: tuple, outcome: Outcome) -> None:
        """Keep an outcome that follows from the answers alone, under a digest of them."""
        if len(self.known) >= MOST_KNOWN_OUTCOMES:
            del self.known[next(iter(self.known))]
        self.known[key] = outcome

    def _asked_disturbed(self, test: TestCell, seed: int, sign: float) -> list[Asked]:
        """What the test cell asks of the reference when each of its answers is replaced by another on its way."""
        client = self._client(test, dict(self.reference), asked=[])
        rng = np.random.default_rng(DISTURBANCE_SEED)
        client.seen = partial(disturbed, rng=rng, sign=sign)
        solutions = set().union(*(t.solution_names for t in self.tests.values()))
        with disturbed_names(self.reference, solutions, rng, sign):
            return run_test_cell(test.unasserted, client, self, seed, check_seconds=OWN_SECONDS, compares=False).asked

    def foresight(self, test: TestCell, seed: int) -> Foresight | None:
        """What the test cell asks of every student; None where it is personal."""
        if self._needs_id[test.grade_id]:
            return None
        key = test.grade_id, seed
        if key not in self._foresights:
            asked = self.reference_outcome(test, seed, self.own_id).asked
            runs = [self._asked_disturbed(test, seed, sign) for sign in DISTURBANCES]
            self._foresights[key] = Foresight(sorted(test.names), asked, runs)
        return self._foresights[key]

    def namespace_for(self, test: TestCell, student_id: str) -> dict[str, Any]:
        """The reference's names, with data for this student where the test is personal."""
        if not self._needs_id[test.grade_id]:
            return dict(self.reference)
        return self._personal(student_id)

    def _personal(self, student_id: str) -> dict[str, Any]:
        """The source with another student's id: the cells that make data from it run anew, in order."""
        if self._of_student[0] == student_id:
            return dict(self._of_student[1])
        namespace = {**self.reference, "student_id": student_id}
        personal = {"student_id"}
        for text in self.code_in_order:
            if used_names(text) & personal and "student_id" not in bound_names(text):
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compiled_silent(text, f"<{self.name}: personal>"), namespace)
                except Exception as error:
                    raise BadSource(f"{self.name}: no numbers for {student_id!r}: {type(error).__name__}") from error
                personal |= {n for n in bound_names(text) if not callable(namespace.get(n))}
        self._of_student = student_id, namespace
        return dict(namespace)

    def reference_outcome(self, test: TestCell, seed: int, student_id: str) -> Outcome:
        """What the test cell says about the reference's answers. Raises BadSource when they are not all right."""
        is_personal = self._needs_id[test.grade_id]
        key = None if is_personal and student_id != self.own_id else (test.grade_id, seed)
        asked = None if is_personal else []
        outcome = self._run(
            key, test, seed, lambda: self._client(test, self.namespace_for(test, student_id), asked=asked)
        )
        wrong = [c for c in outcome.checks if not c.passed]
        if wrong or outcome.internal:
            said = f"'{wrong[0].name}': {wrong[0].reason}" if wrong else outcome.internal[0]
            raise BadSource(f"{self.name}: the reference solution fails its own test cell '{test.grade_id}' ({said})")
        return outcome

    def variant_outcomes(
        self, test: TestCell, variants: list[Variant], seed: int, student_id: str, only_data: bool = False
    ) -> Iterator[tuple[Variant, Outcome]]:
        """What the test cell says about each variant, on the same inputs; with `only_data`, just what it reads."""
        names = self.namespace_for(test, student_id)
        right = self.right_answers(test, seed)
        for variant in variants:
            key = None if self._needs_id[test.grade_id] else (test.grade_id, seed, variant.exercise, variant.name)
            outcome = self._run(
                key,
                test,
                seed,
                lambda variant=variant: self._client(
                    test, {**names, variant.exercise: value_for(variant, names, student_id)}, right=right
                ),
                only_data,
            )
            yield variant, outcome


# ------------------------------------------------------------------------------------------- submission


class Judge:
    """The run of one job. `ahead`: ask at once what a test cell asks of everybody; may raise OneByOne."""

    def __init__(self, job: Job, source: Judged, ahead: bool = True) -> None:
        self.ahead = ahead
        self.job = job
        self.source = source
        self.rebuilt = job.rebuilt()
        self.libraries = libraries_of(self.rebuilt)
        settings = source.notebook.metadata.get("autograder", {})
        self.limits = Limits().changed(job.limits).changed(settings)
        self.outputs: dict[int, list[dict[str, Any]]] = {}
        self.outputs_left = MOST_CLEAN_BYTES
        self.cell_errors: dict[str, StudentProblem] = {}
        self.sources: dict[str, str] = {}
        self.exercises: list[Exercise] = []
        self.full: dict[str, bool] = {}
        self.events = list(job.events)
        self.typed_ids: list[str] = []
        self.seconds = {"cells": 0.0, "checks": 0.0}

    def run(self) -> Result:
        start = time.monotonic()
        files = {name: base64.b64decode(data) for name, data in self.job.files.items()}
        sandbox = sandbox_for(self.job.sandbox, "torch" in self.libraries)
        student = sandbox.start(self.limits, files, self.libraries, self.source.given)
        self.transport = RemoteTransport(student, start + self.limits.notebook_seconds)
        self.client = Client(self.transport, self.limits.call_seconds, self.sources)
        try:
            for number, cell in enumerate(self.rebuilt.cells):
                self._one_cell(number, cell)
        finally:
            student.end()
        self.events += self.transport.events
        if len(set(self.typed_ids)) > 1:
            shown = ", ".join(repr(i) for i in dict.fromkeys(self.typed_ids))
            self.events.append(f"student_id changes inside the notebook: {shown}")
        return self._result(time.monotonic() - start)

    def broken(self, error: Exception) -> Result:
        """The result where the grader itself failed: no score, and who must act."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {last.name}, line {last.lineno}"
        events = [*self.events, f"the grader failed: {where}: {str(error)[:300]}"]
        return self.job.unjudged(f"the grader itself failed on this submission ({where}); please report it", events)

    def _one_cell(self, number: int, cell: RebuiltCell) -> None:
        begin = time.monotonic()
        if cell.kind == "test":
            exercise = self._exercise(self.source.tests[cell.grade_id])
            exercise.seconds = round(time.monotonic() - begin, 4)
            self.seconds["checks"] += time.monotonic() - begin
            self.exercises.append(exercise)
            self.outputs[number] = [_verdicts_as_output(exercise)]
        elif cell.kind == "written":
            title, points = self.source.written[cell.grade_id]
            exercise = Exercise(cell.grade_id, title, points, "written", None if cell.answered else 0.0)
            exercise.solution_ids, exercise.answered = [cell.grade_id], cell.answered
            self.exercises.append(exercise)
        elif cell.cell_type == "code" and cell.source.strip():
            self._run_cell(number, cell)
            self.seconds["cells"] += time.monotonic() - begin

    # the student's cells

    def _run_cell(self, number: int, cell: RebuiltCell) -> None:
        names = bound_names(cell.source) | bound_names(self.source.solutions.get(cell.grade_id, ""))
        if cell.kind != "locked":
            self.sources.update(dict.fromkeys(names, cell.source))
        try:
            reply, _ = self.transport.ask(
                {"op": "run", "source": cell.source, "seconds": self.limits.cell_seconds},
                [],
                self.limits.cell_seconds,
                lambda request, blobs: ({"error": "nothing to call"}, []),
            )
        except StudentGone as gone:
            self.cell_errors.update(dict.fromkeys(names, gone))
            self.outputs[number] = [_error_output(gone.verdict, gone.reason)]
            return
        self.outputs[number] = clean_outputs(reply.get("outputs"), self.outputs_left)
        self.outputs_left -= len(json.dumps(self.outputs[number]))
        problem = raised(reply["error"]) if reply.get("error") else None
        for name in names:
            if problem is None:
                self.cell_errors.pop(name, None)
            else:
                self.cell_errors[name] = problem

    def _explain(self, missing: NameError) -> str:
        self.client.live += 1
        name = getattr(missing, "name", None) or str(missing)
        problem = self.cell_errors.get(name)
        if problem is not None and problem.type_name == "NotImplementedError":
            return problem.reason
        if problem is not None:
            return f"`{name}` is not defined, because its cell stopped: {problem.reason}"
        return f"`{name}` is not defined; does a cell of yours define it under exactly this name?"

    # test cells

    def _exercise(self, test: TestCell) -> Exercise:
        answered = any(c.answered for c in self.rebuilt.cells if c.grade_id in test.solution_ids)
        exercise = Exercise(test.grade_id, test.title, test.points, solution_ids=test.solution_ids, answered=answered)
        student_id = self._student_id() if "student_id" in test.names else None
        given = {} if student_id is None else {"student_id": student_id}
        student_id = student_id or self.source.own_id
        expected = self.source.reference_outcome(test, self.job.seed, self.source.own_id)  # has the same checks
        outcome = self._try(test, expected, given)
        if not outcome.full and student_id != self.source.own_id:
            try:
                expected = self.source.reference_outcome(test, self.job.seed, student_id)
            except BadSource as error:
                self.events.append(f"{test.grade_id}: the typed student_id cannot be used ({error})")
                student_id = self.source.own_id
                given = {"student_id": student_id}
                outcome = self._try(test, expected, given)
        own = outcome
        for name in test.solution_names:
            self.full[name] = own.full
        helpers = [u for u in expected.uses if not self.full.get(u, True)]
        if helpers and not own.full and self.transport.gone is None:
            # with right helpers the answers show what is this exercise's own mistake
            own = self._with_our_helpers(test, expected, helpers, given) or own
            if own.share > outcome.share:
                outcome, exercise.follow_through = own, helpers
        exercise.checks = self._with_cell_error(test, outcome.checks)
        exercise.figures = outcome.figures
        exercise.score = round(test.points * outcome.share, 2)
        self.events += [f"{test.grade_id}: {line}" for line in outcome.internal]
        if not outcome.full and answered:
            exercise.misconceptions = self._misconceptions(test, expected, own, student_id)
        return exercise

    def _with_cell_error(self, test: TestCell, checks: list[Check]) -> list[Check]:
        """The checks; where an answer's cell stopped half-way, those that did not pass say so."""
        problem = next((self.cell_errors[n] for n in sorted(test.solution_names) if n in self.cell_errors), None)
        if problem is None or self.transport.gone is not None:
            return checks
        said = f" (the cell with your answer stopped before its end: {problem.reason})"
        return [c if c.passed or problem.reason in c.reason else replace(c, reason=c.reason + said) for c in checks]

    def _student_id(self) -> str | None:
        """The id as typed in the notebook, asked once: test cells use this very answer. None when there is no id."""
        try:
            value = self.client.get(["student_id"]).get("student_id")
        except StudentProblem:
            return None
        if type(value) is int:  # typed without quotes
            value = str(value)
        if value is None:
            return None
        if not isinstance(value, str) or len(value) > LONGEST_ID:
            self.events.append("student_id is no id: a long text or a value of another type")
            return self.source.own_id
        self.typed_ids.append(value)
        return value

    def _try(self, test: TestCell, expected: Outcome, given: dict[str, Any], helpers: Sequence[str] = ()) -> Outcome:
        client = self.client
        client.begin()
        client.right = self.source.right_answers(test, self.job.seed)
        client.budget = self.limits.exercise_seconds
        key = None
        is_asked_ahead = self.ahead and self.transport.gone is None
        foresight = self.source.foresight(test, self.job.seed) if is_asked_ahead else None
        if foresight is not None:
            key = test.grade_id, self.job.seed, *helpers, client.ask_ahead(foresight)
            if key in self.source.known:
                client.callbacks.clear()  # helpers lent for this exercise end with it here too
                return self.source.known[key]
        seconds = self.limits.exercise_seconds + OWN_SECONDS
        outcome = run_test_cell(test, client, self.source, self.job.seed, self._explain, given, seconds, True)
        is_known = key is not None and client.live == 0 and not outcome.internal
        client.callbacks.clear()
        outcome.internal = [] if self.transport.gone else outcome.internal
        outcome.checks = self._all_checks(expected, outcome)
        if is_known:
            self.source.remember(key, outcome)
        return outcome

    def _all_checks(self, expected: Outcome, outcome: Outcome) -> list[Check]:
        """The reference's list of checks, with the verdicts that were reached; the others are not reached."""
        reached = {c.name: c for c in outcome.checks}
        why = outcome.internal[0] if outcome.internal else "the test cell stopped before it"
        if self.transport.gone is not None:
            why = f"not reached: {self.transport.gone.reason}"
        return [reached.get(c.name, Check(c.name, c.points, NOT_REACHED, why, c.hidden)) for c in expected.checks]

    def _with_our_helpers(
        self, test: TestCell, expected: Outcome, helpers: list[str], given: dict[str, Any]
    ) -> Outcome | None:
        """Follow-through: judge again with the reference's answers in place of the student's failed helpers."""
        try:
            names = self.source.namespace_for(test, given.get("student_id", ""))
            for name in helpers:
                self.client.replace(name, names[name])
            outcome = self._try(test, expected, given, helpers)
            self.client.restore()
        except StudentProblem as problem:
            self.events.append(f"{test.grade_id}: follow-through stopped: {problem.reason}")
            return None
        return outcome

    def _misconceptions(
        self, test: TestCell, expected: Outcome, outcome: Outcome, student_id: str
    ) -> list[Misconception]:
        if outcome.named is not None:
            return outcome.named
        variants = self.source.catalogue.wrong_of(test.names)
        only_data = all(entry.is_value for entry in expected.transcript)
        outcomes = self.source.variant_outcomes(test, variants, self.job.seed, student_id, only_data)
        runs = [(variant, of_variant.transcript) for variant, of_variant in outcomes]
        try:
            found = recognise(outcome.transcript, expected.transcript, runs)
        except Exception as error:  # answers of a kind that nobody foresaw: they explain nothing, and cost no verdict
            self.events.append(f"{test.grade_id}: no misconception could be looked for: {type(error).__name__}")
            return []
        outcome.named = [Misconception(v.name, v.exercise, v.says) for v in found]
        return outcome.named

    # the result

    def _result(self, seconds: float) -> Result:
        notebook = to_content(self.rebuilt, self.source.notebook)
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                cell["outputs"] = self.outputs.get(number, [])
        return self.job.result(
            typed_id=self.typed_ids[0] if self.typed_ids else None,
            exercises=self.exercises,
            events=self.events,
            timings={"total": round(seconds, 4), **{k: round(v, 4) for k, v in self.seconds.items()}},
            notebook=notebook,
        )


def _error_output(name: str, reason: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": name, "evalue": reason, "traceback": [f"{name}: {reason}"]}


def _verdicts_as_output(exercise: Exercise) -> dict[str, Any]:
    lines = [f"{exercise.score:g} of {exercise.points:g} points"]
    for check in exercise.checks:
        mark = "passed" if check.passed else check.verdict
        lines.append(f"[{mark}] {check.name}" + (f": {check.reason}" if check.reason else ""))
    lines += [f"What we saw: {m.says}" for m in exercise.misconceptions]
    return {"output_type": "stream", "name": "stdout", "text": "\n".join(lines) + "\n"}


def clean_outputs(outputs: Any, left: int = MOST_CLEAN_BYTES) -> list[dict[str, Any]]:
    """Outputs as the student process sent them, reduced to text and PNG pictures, `left` bytes at most.

    Anything else is dropped.
    """
    clean = []
    for output in outputs if isinstance(outputs, list) else []:
        kept = _clean_output(output) if isinstance(output, dict) else None
        if kept is not None:
            left -= len(json.dumps(kept))
            if left < 0:
                break
            clean.append(kept)
    return clean


def _clean_output(output: dict[str, Any]) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream" and output.get("name") in ("stdout", "stderr") and isinstance(output.get("text"), str):
        return {"output_type": "stream", "name": output["name"], "text": output["text"]}
    if kind == "error" and isinstance(output.get("traceback"), list):
        lines = [str(line) for line in output["traceback"]]
        return {
            "output_type": "error",
            "ename": str(output.get("ename")),
            "evalue": str(output.get("evalue")),
            "traceback": lines,
        }
    if kind in ("display_data", "execute_result") and isinstance(output.get("data"), dict):
        data = {}
        text, picture = (output["data"].get(mime) for mime in ("text/plain", "image/png"))
        if isinstance(text, str):
            data["text/plain"] = text
        if isinstance(picture, str) and (png := _png(picture)):
            data["image/png"] = png
        if data:
            more = {"execution_count": None} if kind == "execute_result" else {}
            return {"output_type": kind, "data": data, "metadata": {}, **more}
    return None


def _png(content: str) -> str:
    """The picture as base64 and nothing else, "" when it is none: what stands beside base64 would reach a page."""
    try:
        raw = base64.b64decode("".join(content.split()), validate=True)
    except ValueError:
        return ""
    return base64.b64encode(raw).decode() if raw.startswith(PNG) else ""


# --------------------------------------------------------------------------------------------- workers

_sandboxes: dict[tuple[str, bool], Sandbox] = {}
_sources: dict[str, Judged] = {}


@atexit.register
def _close_sandboxes() -> None:
    for sandbox in _sandboxes.values():
        sandbox.close()
    _sandboxes.clear()


def sandbox_for(mode: str, wants_torch: bool) -> Sandbox:
    """The kept sandbox; one with torch in it is apart, where each start and end of a process takes twice as long."""
    key = mode, wants_torch
    if key not in _sandboxes:
        _sandboxes[key] = Sandbox(mode, LIBRARIES if wants_torch else LIBRARIES.keys() - {"torch"})
    return _sandboxes[key]


def source_of(job: Job) -> Judged:
    """The parsed source of the job's set, kept from job to job."""
    if job.assignment_version not in _sources:
        _sources.clear()
        os.environ["MPLBACKEND"] = "agg"  # for a set that draws; others need not import matplotlib
        gc.freeze()  # modules stay: the collector need not look at them again, nor at the end
        gc.enable()  # a worker of the pool imported them without it
        _sources[job.assignment_version] = Judged.from_text(job.source, job.catalogue, job.assignment, job.set_checks)
    return _sources[job.assignment_version]


_is_worker = multiprocessing.parent_process() is not None


def be_worker() -> None:
    """This process judges and does nothing else: it may be bounded."""
    global _is_worker
    _is_worker = True


def guard_worker(seconds: float) -> None:
    """Bound a worker process of a pool: in memory for good, and in the time until it is guarded again.

    A check that hands a student's numbers to compiled code can hang or swell where no exception reaches it. The pool
    notices that a worker is gone and judges its submissions once more, each alone. Not for the command's own process.
    """
    if not _is_worker:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (data_size() + OWN_BYTES, hard))
    faulthandler.dump_traceback_later(seconds, exit=True, file=sys.__stderr__)


def run_job(data: bytes) -> bytes:
    """Judge one submission; what an executor runs. Raises SandboxRefused, BadSource or BadCatalogue."""
    job = Job.from_bytes(data)
    source = source_of(job)
    judge = Judge(job, source)
    guard_worker(3 * judge.limits.notebook_seconds + 60)
    try:
        try:
            result = judge.run()
        except OneByOne:
            judge = Judge(job, source, ahead=False)
            result = judge.run()
    except (SandboxRefused, BadSource, BadCatalogue):
        raise
    except Exception as error:  # our own mistake, met by one submission: the class goes on, and it is not silent
        result = judge.broken(error)
    finally:
        faulthandler.cancel_dump_traceback_later()
    return json.dumps(result.to_json()).encode()
