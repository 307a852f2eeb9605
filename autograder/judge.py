"""Judges one submission: runs the student's cells in the sandbox and the test cells here.

A job is plain data (bytes on the way to a worker) and so is its result; nothing here touches a database or a course
folder. Workers keep one warm sandbox and the parsed sources of the sets they have seen.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import io
import json
import time
import traceback
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import nbformat

from autograder.cellcode import bound_names, used_names
from autograder.checks import Session, session
from autograder.handles import Client, Entry, LocalTransport, RemoteTransport, StudentGone, StudentProblem, raised
from autograder.misconceptions import recognise, value_for
from autograder.rebuild import Rebuilt, RebuiltCell, to_notebook
from autograder.results import NOT_REACHED, Check, Exercise, Misconception, Result
from autograder.sandbox import BUBBLEWRAP, Limits, Sandbox
from autograder.source import BadSource, Source, TestCell

EXAMPLES = "the examples in the notebook"
MOST_CLEAN_BYTES = 4_000_000
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass
class Job:
    """Everything a worker needs to judge one submission."""

    student: str
    assignment: str
    key: str
    cells: list[dict[str, Any]]
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

    def to_bytes(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Job:
        return cls(**json.loads(data))

    def rebuilt(self) -> Rebuilt:
        return Rebuilt([RebuiltCell(**c) for c in self.cells], list(self.notes), list(self.events))


# ------------------------------------------------------------------------------------------ test cells


@dataclass
class Outcome:
    """What one test cell said about one set of answers."""

    checks: list[Check]
    transcript: list[Entry]
    uses: list[str]
    internal: list[str]

    @property
    def full(self) -> bool:
        return all(c.passed for c in self.checks)

    @property
    def share(self) -> float:
        """Weight of the checks that passed over the weight of all."""
        total = sum(c.points for c in self.checks)
        return sum(c.points for c in self.checks if c.passed) / total if total else 0.0


def run_test_cell(test: TestCell, client: Client, source: Source, seed: int, explain: Any = str) -> Outcome:
    """Run the visible and the hidden part of a test cell on the names that `client` gives."""
    client.transcript = []
    current = Session(seed, test.grade_id, client, source.reference, explain)
    namespace: dict[str, Any] = {**source.trusted, "__name__": "tests"}
    stopped = ""
    with session(current), contextlib.redirect_stdout(io.StringIO()):
        try:
            namespace.update(client.get(list(test.names)))
        except StudentProblem as problem:
            return Outcome([], client.transcript, [], [problem.reason])
        if test.visible_code is not None:
            current.run(EXAMPLES, 1, lambda: _run_visible(test, namespace), hidden=False)
        _, reason = current.verdict(lambda: exec(test.hidden_code, namespace), "hidden part")
        if reason:
            stopped = reason
    internal = current.internal + ([f"the hidden part stopped: {stopped}"] if stopped else [])
    return Outcome(current.checks, client.transcript, current.uses, internal)


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

    @cached_property
    def _needs_id(self) -> dict[str, bool]:
        return {g: "student_id" in t.names for g, t in self.tests.items()}

    def _cached(self, key: tuple, test: TestCell, namespace: dict[str, Any], seed: int) -> Outcome:
        if key not in self._runs:
            if len(self._runs) > 2000:
                self._runs.clear()
            client = Client(LocalTransport(namespace), call_seconds=600.0)
            client.sources = {n: self.solution_text(n) for n in test.solution_names}
            self._runs[key] = run_test_cell(test, client, self, seed)
        return self._runs[key]

    def namespace_for(self, test: TestCell, student_id: str) -> dict[str, Any]:
        """The reference's names, with data for this student where the test is personal."""
        if not self._needs_id[test.grade_id]:
            return dict(self.reference)
        return self._personal(student_id)

    def _personal(self, student_id: str) -> dict[str, Any]:
        """The source with another student's id: the cells that make data from it run anew, in order."""
        namespace = {**self.reference, "student_id": student_id}
        personal = {"student_id"}
        for text in self.code_in_order:
            if used_names(text) & personal and "student_id" not in bound_names(text):
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(text, f"<{self.name}: personal>", "exec"), namespace)
                personal |= {n for n in bound_names(text) if not callable(namespace.get(n))}
        return namespace

    def reference_outcome(self, test: TestCell, seed: int, student_id: str) -> Outcome:
        who = student_id if self._needs_id[test.grade_id] else ""
        key = ("reference", test.grade_id, seed, who)
        if key in self._runs:
            return self._runs[key]
        outcome = self._cached(key, test, self.namespace_for(test, student_id), seed)
        wrong = [c for c in outcome.checks if not c.passed]
        if wrong or outcome.internal:
            said = f"'{wrong[0].name}': {wrong[0].reason}" if wrong else outcome.internal[0]
            raise BadSource(f"{self.name}: the reference solution fails its own test cell '{test.grade_id}' ({said})")
        return outcome

    def variant_outcome(self, test: TestCell, variant: Any, seed: int, student_id: str) -> Outcome:
        who = student_id if self._needs_id[test.grade_id] else ""
        namespace = self.namespace_for(test, student_id)
        key = ("variant", test.grade_id, variant.name, seed, who)
        if key in self._runs:
            return self._runs[key]
        namespace[variant.exercise] = value_for(variant, self.reference, student_id)
        return self._cached(key, test, namespace, seed)


# ------------------------------------------------------------------------------------------- submission


class Judge:
    """The run of one job."""

    def __init__(self, job: Job, source: Judged, sandbox: Sandbox) -> None:
        self.job = job
        self.source = source
        self.rebuilt = job.rebuilt()
        self.sandbox = sandbox
        settings = source.notebook.metadata.get("autograder", {})
        self.limits = Limits().changed(job.limits).changed(settings)
        self.outputs: dict[int, list[dict[str, Any]]] = {}
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
        student = self.sandbox.start(self.limits, files)
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
            self.exercises.append(
                Exercise(
                    cell.grade_id, title, points, "written", None, solution_ids=[cell.grade_id], answered=cell.answered
                )
            )
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
        self.outputs[number] = clean_outputs(reply.get("outputs"))
        problem = raised(reply["error"]) if reply.get("error") else None
        for name in names:
            if problem is None:
                self.cell_errors.pop(name, None)
            else:
                self.cell_errors[name] = problem

    def _explain(self, missing: NameError) -> str:
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
        student_id = self._student_id() if "student_id" in test.names else ""
        expected = self.source.reference_outcome(test, self.job.seed, student_id)
        outcome = self._try(test, expected)
        first = outcome
        helpers = [u for u in expected.uses if not self.full.get(u, True)]
        if helpers and not outcome.full and self.transport.gone is None:
            outcome = self._follow_through(test, expected, outcome, helpers, exercise)
        for name in test.solution_names:
            self.full[name] = first.full
        exercise.checks = outcome.checks
        exercise.score = round(test.points * outcome.share, 2)
        self.events += [f"{test.grade_id}: {line}" for line in outcome.internal]
        if not outcome.full and answered:
            exercise.misconceptions = self._misconceptions(test, expected, first, student_id)
        return exercise

    def _student_id(self) -> str:
        """The id as typed in the notebook; the reference's own when there is none."""
        try:
            value = self.client.get(["student_id"]).get("student_id")
        except StudentProblem:
            value = None
        if isinstance(value, (str, int)):  # an id without quotes is still an id
            self.typed_ids.append(str(value)[:200])
            return str(value)
        return self.source.reference.get("student_id", "")

    def _try(self, test: TestCell, expected: Outcome) -> Outcome:
        self.client.budget = self.limits.exercise_seconds
        outcome = run_test_cell(test, self.client, self.source, self.job.seed, self._explain)
        try:
            self.client.forget()
        except StudentProblem as problem:
            outcome.internal.append(problem.reason)
        outcome.internal = [] if self.transport.gone else outcome.internal
        outcome.checks = self._all_checks(expected, outcome)
        return outcome

    def _all_checks(self, expected: Outcome, outcome: Outcome) -> list[Check]:
        """The reference's list of checks, with the verdicts that were reached; the others are not reached."""
        reached = {c.name: c for c in outcome.checks}
        why = outcome.internal[0] if outcome.internal else "the test cell stopped before it"
        if self.transport.gone is not None:
            why = f"not reached: {self.transport.gone.reason}"
        return [reached.get(c.name, Check(c.name, c.points, NOT_REACHED, why, c.hidden)) for c in expected.checks]

    def _follow_through(
        self, test: TestCell, expected: Outcome, first: Outcome, helpers: list[str], exercise: Exercise
    ) -> Outcome:
        """Judge again with the reference's answers in place of the student's failed helpers; the better one counts."""
        try:
            for name in helpers:
                self.client.replace(name, self.source.reference[name])
            second = self._try(test, expected)
            self.client.restore()
        except StudentProblem as problem:
            self.events.append(f"{test.grade_id}: follow-through stopped: {problem.reason}")
            return first
        if second.share > first.share:
            exercise.follow_through = helpers
            return second
        return first

    def _misconceptions(
        self, test: TestCell, expected: Outcome, outcome: Outcome, student_id: str
    ) -> list[Misconception]:
        variants = self.source.catalogue.wrong_of(test.names)
        runs = [(v, self.source.variant_outcome(test, v, self.job.seed, student_id).transcript) for v in variants]
        found = recognise(outcome.transcript, expected.transcript, runs)
        return [Misconception(v.name, v.exercise, v.says) for v in found]

    # the result

    def _result(self, seconds: float) -> Result:
        notebook = to_notebook(self.rebuilt, self.source.notebook)
        for number, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                cell.outputs = [nbformat.from_dict(o) for o in self.outputs.get(number, [])]
        return Result(
            student=self.job.student,
            assignment=self.job.assignment,
            key=self.job.key,
            seed=self.job.seed,
            sandbox=self.job.sandbox,
            graded_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            grader_version=self.job.grader_version,
            assignment_version=self.job.assignment_version,
            typed_id=self.typed_ids[0] if self.typed_ids else None,
            exercises=self.exercises,
            notes=self.rebuilt.notes,
            events=self.events,
            timings={"total": round(seconds, 4), **{k: round(v, 4) for k, v in self.seconds.items()}},
            notebook=json.loads(nbformat.writes(notebook)),
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


def clean_outputs(outputs: Any) -> list[dict[str, Any]]:
    """Outputs as the student process sent them, reduced to text and checked PNG pictures. Anything else is dropped."""
    clean, left = [], MOST_CLEAN_BYTES
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
        for mime in ("text/plain", "image/png"):
            content = output["data"].get(mime)
            if isinstance(content, str) and (mime == "text/plain" or _is_png(content)):
                data[mime] = content
        if data:
            more = {"execution_count": None} if kind == "execute_result" else {}
            return {"output_type": kind, "data": data, "metadata": {}, **more}
    return None


def _is_png(content: str) -> bool:
    try:
        return base64.b64decode(content, validate=False).startswith(PNG)
    except ValueError:
        return False


# --------------------------------------------------------------------------------------------- workers

_sandboxes: dict[str, Sandbox] = {}
_sources: dict[str, Judged] = {}


@atexit.register
def _close_sandboxes() -> None:
    for sandbox in _sandboxes.values():
        sandbox.close()
    _sandboxes.clear()


def source_of(job: Job) -> Judged:
    """The parsed source of the job's set, kept from job to job."""
    if job.assignment_version not in _sources:
        _sources.clear()
        import matplotlib

        matplotlib.use("agg")
        _sources[job.assignment_version] = Judged.from_text(job.source, job.catalogue, job.assignment)
    return _sources[job.assignment_version]


def run_job(data: bytes) -> bytes:
    """Judge one submission; what an executor runs. Raises SandboxRefused, BadSource or BadCatalogue."""
    job = Job.from_bytes(data)
    sandbox = _sandboxes.setdefault(job.sandbox, Sandbox(job.sandbox))
    result = Judge(job, source_of(job), sandbox).run()
    return json.dumps(result.to_json()).encode()
