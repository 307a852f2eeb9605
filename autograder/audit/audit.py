"""Proves the tests of a set: right answers get full marks, wrong ones do not, whatever the seed.

Seven questions are asked of each set: is its source in order; does the reference solution get full marks; does every
catalogued right variant get full marks, and does every wrong one lose marks and is named; do trivial answers score
nothing; are the mutants of the reference noticed; do the hidden checks say the same for every seed; how long does a
submission take. Every "no" is a breach.

Whole submissions go the way of a student's: rebuilt, run in the sandbox, judged. All else runs the same test cells in
forked children of this process, which may loop for ever or eat memory.
"""

from __future__ import annotations

import contextlib
import io
import math
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autograder.audit.mutants import BEGIN, END, Mutant, Ran, mutants_of, run_apart
from autograder.course import Course, SetFiles
from autograder.grading.runner import Prepared, Run, Settings, local_executor
from autograder.grading.store import Store
from autograder.judging.client import Client
from autograder.judging.job import Job
from autograder.judging.recognition import recognise
from autograder.judging.reference import Judged
from autograder.judging.source import BadSource, Source, TestCell
from autograder.judging.test_cells import EXAMPLES, Outcome, run_test_cell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import BadCatalogue, Survivor, Variant, value_for
from autograder.notebook.names import bound_names
from autograder.results import GRADED, Exercise, Result
from autograder.sandbox.launcher import BUBBLEWRAP

SEED = 1
STUDENT = "student-01"
WRONG_SEEDS = 10
RIGHT_SHARE_OF_SEEDS = 10
LEAST_NAMED = 0.95
LEAST_KILLED = 0.95
SET_POINTS = (20, 40)
TIMED_RUNS = 3
PATIENCE = 600.0
BATCH_SECONDS = 4.0
STUB, NOTHING, ZEROS, FIRST, EMPTY = (
    "the cell as released",
    "None",
    "zeros of the right shape",
    "the first argument",
    "an empty string",
)


# ------------------------------------------------------------------------------------------------- report


@dataclass
class Breach:
    """One thing that is not as it must be. `exercise` is a grade_id, or "" for the whole set."""

    kind: str
    exercise: str
    text: str


@dataclass
class ExerciseAudit:
    """The numbers of one graded cell. `seconds`: one run of the test cell on the reference."""

    grade_id: str
    title: str
    points: float
    kind: str = "auto"
    checks: int = 0
    right: int = 0
    right_full: int = 0
    wrong: int = 0
    caught: int = 0
    named: int = 0
    trivial: int = 0
    trivial_zero: int = 0
    mutants: int = 0
    killed: int = 0
    explained: int = 0
    seconds: float = 0.0


@dataclass
class SurvivorFound:
    """A mutant that got full marks; `why` from the catalogue, "" where nothing explains it."""

    exercise: str
    operator: str
    line: int
    old: str
    new: str
    why: str = ""


@dataclass
class AuditReport:
    """What was found about one set. `flaky` counts seeds with which an answer was not judged as it must be.

    `seconds_per_submission`: the reference through the sandbox, None without it. `phases`: seconds of each part.
    """

    assignment: str
    points: float = 0.0
    seeds: int = 0
    quick: bool = False
    reference_full: bool = False
    exercises: list[ExerciseAudit] = field(default_factory=list)
    survivors: list[SurvivorFound] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    flaky: int = 0
    seconds_per_submission: float | None = None
    audit_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    breaches: list[Breach] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.breaches

    def total(self, name: str) -> int:
        """Sum of a number over the exercises."""
        return sum(getattr(e, name) for e in self.exercises)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


def audit_set(
    course: Course, name: str, seeds: int = 200, quick: bool = False, jobs: int = 1, sandbox: str = BUBBLEWRAP
) -> AuditReport:
    """Audit one set of a course. `quick` leaves the sandbox out. Raises CourseError and SandboxRefused."""
    began = time.monotonic()
    report = AuditReport(name, seeds=seeds, quick=quick)
    files = course.set_files(name)
    with _Bar(name) as bar, _one_thread():
        try:
            _Audit(files, report, Settings(sandbox=sandbox, jobs=jobs, seed=SEED), bar).run()
        except (BadSource, BadCatalogue) as error:
            report.breaches.append(Breach("source", "", str(error)))
    report.audit_seconds = round(time.monotonic() - began, 1)
    return report


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """torch with one thread: its pool of threads does not live through a fork, and its children would wait for it."""
    import matplotlib
    import torch

    matplotlib.use("agg")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class _Bar:
    """A progress bar on stderr, drawn by this thread: a thread of its own would be cut off by a fork."""

    def __init__(self, name: str) -> None:
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        self.progress = Progress(
            *columns, console=console, auto_refresh=False, transient=True, disable=not console.is_terminal
        )
        self.name = name
        self.task = self.progress.add_task(name, total=None)

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def begin(self, what: str, total: int) -> None:
        self.progress.reset(self.task, description=f"{self.name}: {what}", total=total)
        self.progress.refresh()

    def step(self) -> None:
        self.progress.advance(self.task)
        self.progress.refresh()


# --------------------------------------------------------------------------------- in the forked children


@dataclass
class Bench:
    """Runs test cells on answers made here. Its methods run in forked children and return JSON data."""

    source: Judged
    released: dict[str, str]

    @cached_property
    def _stages(self) -> dict[str, tuple[dict[str, Any], list[tuple[str, str]]]]:
        """For each test: the names before its first solution cell, and the cells (id, text) from there to the test."""
        stages: dict[str, tuple[dict[str, Any], list[tuple[str, str]]]] = {}
        namespace: dict[str, Any] = {"__name__": "reference"}
        before: dict[str, Any] | None = None
        between: list[tuple[str, str]] = []
        for cell in self.source.notebook.cells:
            meta = cell.metadata.get("nbgrader", {})
            if cell.cell_type != "code":
                continue
            grade_id = meta.get("grade_id", "")
            if meta.get("grade"):
                stages[grade_id] = (dict(namespace) if before is None else before, between)
                before, between = None, []
                continue
            text = cell.source
            if not meta and "student_id" in bound_names(text):
                text = f"student_id = {STUDENT!r}"
            if meta.get("solution") and before is None:
                before = dict(namespace)
            if before is not None:
                between.append((grade_id, text))
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{self.source.name}: {grade_id}>", "exec"), namespace)
        return stages

    def prepare(self) -> None:
        """Run the notebook once here, so that no child has to."""
        _ = self.source.reference, self.source.catalogue, self._stages

    def run_cell(self, test: TestCell, replaced: dict[str, str] | None = None, put: dict | None = None) -> Outcome:
        """The test's outcome where solution cells are `replaced` (by id) and names then `put` in place."""
        before, between = self._stages[test.grade_id]
        namespace, sources = dict(before), {n: self.source.solution_text(n) for n in test.names}
        for grade_id, text in between:
            text = (replaced or {}).get(grade_id, text)
            sources.update(dict.fromkeys(bound_names(text), text))
            # A cell that raises binds what it bound so far, as in a notebook.
            with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, "<answer>", "exec"), namespace)
        for name, (value, text) in (put or {}).items():
            namespace[name], sources[name] = value, text
        return self._judge(test, namespace, sources, SEED)

    def _judge(self, test: TestCell, namespace: dict, sources: dict[str, str], seed: int) -> Outcome:
        client = Client(LocalTransport(namespace), call_seconds=PATIENCE)
        client.sources = sources
        return run_test_cell(test, client, self.source, seed)

    # tasks

    def reference(self, test: TestCell) -> dict[str, Any]:
        begin = time.monotonic()
        outcome = self.run_cell(test)
        return {
            "seconds": time.monotonic() - begin,
            "checks": [[c.name, c.points, c.hidden] for c in outcome.checks],
            "wrong": _complaint(outcome),
        }

    def mutant(self, test: TestCell, grade_id: str, text: str, checks: int) -> bool:
        """Whether the mutant gets full marks."""
        outcome = self.run_cell(test, {grade_id: text})
        return not _complaint(outcome) and len(outcome.checks) == checks

    def trivial(self, test: TestCell, kind: str) -> list[str]:
        """The checks that a trivial answer passes."""
        if kind == STUB:
            outcome = self.run_cell(test, {s: self.released[s] for s in test.solution_ids})
        else:
            outcome = self.run_cell(test, put=self.trivial_answers(test, kind))
        return [c.name for c in outcome.checks if c.passed]

    def trivial_answers(self, test: TestCell, kind: str) -> dict[str, tuple[Any, str]]:
        """A trivial value and a text for each name that the exercise asks for; none where the kind makes no sense."""
        names = test.solution_names & test.names & self.source.reference.keys()
        given = set().union(*(bound_names(self.released[s]) for s in test.solution_ids))
        asked = {n for n in names if callable(self.source.reference[n]) or n not in given} or names
        answers = {}
        for name in asked:
            value = self.source.reference[name]
            if callable(value):
                answers[name] = _trivial_callable(value, kind), f"def {name}(*args, **kwargs):\n    return None"
            elif kind in (NOTHING, EMPTY):
                answers[name] = (None if kind == NOTHING else ""), f"{name} = None"
            elif kind == ZEROS and _numbers(value) and not any(np.all(np.asarray(v) == 0) for v in _leaves(value)):
                answers[name] = _zeros(value), f"{name} = 0"
        return answers

    def seeds(self, test: TestCell, seeds: list[int], variant: Variant | None) -> list[list[Any]]:
        """[seed, complaint] for each seed: "" where the answer gets full marks."""
        found = []
        for seed in seeds:
            student_id = f"student-{seed}"
            namespace = self.source.namespace_for(test, student_id)
            sources = {n: self.source.solution_text(n) for n in test.names}
            if variant is not None:
                namespace[variant.exercise] = value_for(variant, namespace, student_id)
                sources[variant.exercise] = variant.source
            found.append([seed, _complaint(self._judge(test, namespace, sources, seed))])
        return found

    def variants(self, test: TestCell, variants: list[Variant]) -> list[list[Any]]:
        """For each variant: its complaint and the names recognised in it, as in a submission but without sandbox."""
        expected = self.source.reference_outcome(test, SEED, STUDENT)
        known = self.source.catalogue.wrong_of(test.names)
        asked = [*known, *(v for v in variants if v.is_right)]
        outcomes = {(v.exercise, v.name): o for v, o in self.source.variant_outcomes(test, asked, SEED, STUDENT)}
        runs = [(v, outcomes[v.exercise, v.name].transcript) for v in known]
        found = []
        for variant in variants:
            outcome = outcomes[variant.exercise, variant.name]
            named = [v.name for v in recognise(outcome.transcript, expected.transcript, runs)]
            found.append([_complaint(outcome), named])
        return found


def _complaint(outcome: Outcome) -> str:
    """The first thing that keeps an answer from full marks; "" for full marks."""
    if outcome.internal and not outcome.checks:
        return outcome.internal[0]
    for check in outcome.checks:
        if not check.passed:
            return f"'{check.name}': {check.reason or check.verdict}"
    return outcome.internal[0] if outcome.internal else ""


def _trivial_callable(reference: Any, kind: str) -> Any:
    """A function or class in the place of `reference` that answers `kind` to everything."""

    def answer(right: Callable, args: tuple, kwargs: dict) -> Any:
        if kind == ZEROS:
            return _zeros(right(*args, **kwargs))
        if kind == FIRST:
            return next(iter((*args, *kwargs.values())), None)
        return None if kind == NOTHING else ""

    if not isinstance(reference, type):
        return lambda *args, **kwargs: answer(reference, args, kwargs)

    def method(name: str) -> Callable:
        return lambda self, *args, **kwargs: answer(getattr(self.__dict__["_right"], name), args, kwargs)

    base = next((b for b in reference.__mro__[1:] if b.__module__.startswith("torch.")), object)

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self)
        self.__dict__["_right"] = reference(*args, **kwargs)  # no submodule: its parameters stay out of sight

    own = {n: method(n) for n, m in vars(reference).items() if callable(m) and (n == "__call__" or n[:2] != "__")}
    return type(reference.__name__, (base,), {**own, "__init__": begin})


def _zeros(value: Any) -> Any:
    """The same shapes, filled with nought."""
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if hasattr(value, "new_zeros"):
        return value.new_zeros(value.shape)
    if isinstance(value, dict):
        return {k: _zeros(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_zeros(v) for v in value)
    return type(value)() if isinstance(value, (bool, int, float, complex, str, np.generic)) else None


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _numbers(value: Any) -> bool:
    """Whether data is made of numbers only; truth values are not among them, for half of them are right by chance."""
    return all(np.asarray(v.detach() if hasattr(v, "detach") else v).dtype.kind in "iufc" for v in _leaves(value))


# ------------------------------------------------------------------------------------------ submissions


def submission(
    files: SetFiles, solutions: dict[str, str], student_id: str = STUDENT, change: dict[str, str] | None = None
) -> bytes:
    """A notebook as a student would hand it in: the released one with `solutions` (by grade_id) and then `change`."""
    notebook = deepcopy(files.released)
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if not meta and cell.cell_type == "code" and "student_id" in bound_names(cell.source):
            cell.source = f"student_id = {student_id!r}"
        elif meta.get("solution") and cell.cell_type == "code":
            text = (change or {}).get(meta["grade_id"], solutions[meta["grade_id"]])
            cell.source = _unmarked(text)
        elif meta.get("solution"):
            cell.source = "An answer in words."
    return nbformat.writes(notebook).encode()


def cell_with(source: Source, variant: Variant) -> tuple[str, str]:
    """Where the variant belongs: the grade_id of its exercise's cell, and the text of that cell with it."""
    grade_id, text = next((g, t) for g, t in source.solutions.items() if variant.exercise in bound_names(t))
    if variant.whole_cell:
        return grade_id, variant.source
    value = variant.name if callable(source.reference[variant.exercise]) else f"{variant.name}(student_id)"
    return grade_id, f"{text}\n\n\n{variant.source}\n\n\n{variant.exercise} = {value}"


def _unmarked(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if BEGIN not in line and END not in line)


# ---------------------------------------------------------------------------------------------- the audit


class _Audit:
    """The audit of one set; fills in `report`."""

    def __init__(self, files: SetFiles, report: AuditReport, settings: Settings, bar: _Bar) -> None:
        self.files, self.report, self.settings, self.bar = files, report, settings, bar
        self.source = Judged.from_text(files.notebook_text, files.catalogue, files.name, files.set_checks)
        texts = {c.metadata.get("nbgrader", {}).get("grade_id", ""): c.source for c in files.released.cells}
        self.bench = Bench(self.source, {s: texts[s] for s in self.source.solutions})
        self.rows: dict[str, ExerciseAudit] = {}

    def breach(self, kind: str, exercise: str, text: str) -> None:
        self.report.breaches.append(Breach(kind, exercise, text))

    def run(self) -> None:
        self.bench.prepare()
        self.make_rows()
        self.check_reference()
        self.check_source()
        if not self.report.reference_full:
            return
        self.check_trivial()
        self.check_variants()
        self.check_mutants()
        self.check_seeds()

    def apart(self, what: str, tasks: list[tuple[Callable[[], Any], float]]) -> list[Ran]:
        self.bar.begin(what, len(tasks))
        began = time.monotonic()
        runs = run_apart(tasks, self.settings.jobs, lambda number, ran: self.bar.step())
        self.report.phases[what] = round(time.monotonic() - began, 1)
        return runs

    # 1. the source and the reference

    def make_rows(self) -> None:
        for grade_id, test in self.source.tests.items():
            self.rows[grade_id] = ExerciseAudit(grade_id, test.title, test.points)
        for grade_id, (title, points) in self.source.written.items():
            self.rows[grade_id] = ExerciseAudit(grade_id, title, points, "written")
        self.report.exercises = list(self.rows.values())
        self.report.points = sum(r.points for r in self.rows.values())

    def check_reference(self) -> None:
        tests = list(self.source.tests.values())
        runs = self.apart("reference", [(partial(self.bench.reference, t), PATIENCE) for t in tests])
        self.report.reference_full = True
        for test, ran in zip(tests, runs, strict=True):
            wrong = ran.lost or ran.value["wrong"]
            if wrong:
                self.report.reference_full = False
                self.breach("reference", test.grade_id, f"the reference solution does not get full marks: {wrong}")
            if ran.value:
                self._check_points(test, ran.value["checks"])
                self.rows[test.grade_id].checks = len(ran.value["checks"])
                self.rows[test.grade_id].seconds = round(ran.value["seconds"], 3)

    def _check_points(self, test: TestCell, checks: list[list[Any]]) -> None:
        names = [name for name, _, _ in checks]
        for name in sorted({n for n in names if names.count(n) > 1}):
            self.breach("source", test.grade_id, f"two checks are called '{name}'")
        total = sum(points for _, points, _ in checks)
        if not math.isclose(total, test.points):
            visible = "1 for the examples, " if EXAMPLES in names else ""
            self.breach(
                "source",
                test.grade_id,
                f"the cell has {test.points:g} points, but its checks make {total:g} ({visible}the rest hidden)",
            )
        if not any(hidden for _, _, hidden in checks):
            self.breach("source", test.grade_id, "there is no hidden check")

    def check_source(self) -> None:
        low, high = SET_POINTS
        if not low <= self.report.points <= high:
            self.breach("source", "", f"the set has {self.report.points:g} points, not {low} to {high}")
        for test in self.source.tests.values():
            asked = {n for n in test.solution_names if callable(self.source.reference.get(n))}
            if asked and not any(not v.is_right for v in self.variants_of(test)):
                self.breach("source", test.grade_id, "no misconception is catalogued for this exercise")
            if not test.solution_ids:
                self.breach("source", test.grade_id, "no solution cell stands before this test cell")
        for variant in self.source.catalogue.variants:
            if self.source.exercise_of(variant.exercise) is None:
                self.breach(
                    "source", "", f"the variant {variant.name!r} is for {variant.exercise!r}, which no test cell judges"
                )
        for cell in self.source.notebook.cells:
            meta = cell.metadata.get("nbgrader", {})
            written = meta.get("grade") and meta.get("solution")
            if written and not re.search(r"\brubric\b", cell.source, re.IGNORECASE):
                self.breach("source", meta["grade_id"], "this written question has no rubric")

    def variants_of(self, test: TestCell) -> list[Variant]:
        return [v for v in self.source.catalogue.variants if v.exercise in test.solution_names]

    # 2. trivial answers

    def check_trivial(self) -> None:
        kinds = [
            (test, kind)
            for test in self.source.tests.values()
            for kind in (STUB, NOTHING, ZEROS, FIRST, EMPTY)
            if kind == STUB or self.bench.trivial_answers(test, kind)
        ]
        runs = self.apart("trivial answers", [(partial(self.bench.trivial, t, k), PATIENCE) for t, k in kinds])
        for (test, kind), ran in zip(kinds, runs, strict=True):
            row = self.rows[test.grade_id]
            row.trivial += 1
            if ran.lost:
                self.breach("trivial", test.grade_id, f"{kind}: the test cell does not end ({ran.lost})")
            elif ran.value:
                self.breach("trivial", test.grade_id, f"{kind} passes {', '.join(repr(n) for n in ran.value)}")
            else:
                row.trivial_zero += 1

    # 3. the catalogue

    def check_variants(self) -> None:
        if self.report.quick:
            self._variants_here()
        else:
            self._variants_in_sandbox()
        wrong, named = self.report.total("wrong"), self.report.total("named")
        if wrong and named / wrong < LEAST_NAMED:
            self.breach(
                "naming", "", f"only {named} of {wrong} misconceptions are named first (at least {LEAST_NAMED:.0%})"
            )

    def _variants_here(self) -> None:
        cases = [(t, vs) for t in self.source.tests.values() if (vs := self.variants_of(t))]
        tasks = [(partial(self.bench.variants, t, vs), PATIENCE) for t, vs in cases]
        for (test, variants), ran in zip(cases, self.apart("variants", tasks), strict=True):
            if ran.lost:
                self.breach("variants", test.grade_id, f"the variants cannot be judged ({ran.lost})")
                continue
            for variant, (complaint, named) in zip(variants, ran.value, strict=True):
                self._variant_judged(test, variant, complaint, named)

    def _variant_judged(self, test: TestCell, variant: Variant, complaint: str, named: list[str]) -> None:
        row = self.rows[test.grade_id]
        if variant.is_right:
            row.right += 1
            row.right_full += not complaint
            if complaint:
                self.breach("right variant", test.grade_id, f"{variant.name} does not get full marks: {complaint}")
            return
        row.wrong += 1
        row.caught += bool(complaint)
        if not complaint:
            self.breach("wrong variant", test.grade_id, f"{variant.name} gets full marks")
        elif named[:1] == [variant.name]:
            row.named += 1
        else:
            self.report.unnamed.append(f"{variant.name}: {f'named as {named[0]}' if named else 'not named'}")

    def _variants_in_sandbox(self) -> None:
        variants = [v for v in self.source.catalogue.variants if self.source.exercise_of(v.exercise)]
        whole = submission(self.files, self.source.solutions)
        cases: list[tuple[str, bytes]] = [("reference-0", whole), ("released", self._as_released())]
        cases += [(f"{v.exercise}.{v.name}", self._with_variant(v)) for v in variants]
        cases += [(f"reference-{n}", whole) for n in range(1, TIMED_RUNS + 1)]
        results = self._grade(cases)
        self._references_judged([results[f"reference-{n}"] for n in range(TIMED_RUNS + 1)])
        scored = [e for e in results["released"].exercises if e.score]
        for exercise in scored:
            self.breach("trivial", exercise.grade_id, f"the released notebook as it is scores {exercise.score:g}")
        for variant in variants:
            self._result_judged(variant, results[f"{variant.exercise}.{variant.name}"])

    def _as_released(self) -> bytes:
        return nbformat.writes(self.files.released).encode()

    def _with_variant(self, variant: Variant) -> bytes:
        """The reference everywhere, and the variant in the cell of its exercise."""
        return submission(self.files, self.source.solutions, change=dict([cell_with(self.source, variant)]))

    def _grade(self, cases: list[tuple[str, bytes]]) -> dict[str, Result]:
        """Judge submissions as any class is judged."""
        self.bar.begin("submissions in the sandbox", len(cases))
        began = time.monotonic()
        results: dict[str, Result] = {}
        with tempfile.TemporaryDirectory(prefix="audit-") as folder:
            run = Run(Store(Path(folder)), lambda: local_executor(self.settings.jobs), 2 * self.settings.jobs + 2)
            try:
                for label, data in cases:
                    prepared = Prepared(self.files, label, self.settings, SEED)
                    job = prepared.from_bytes(data, f"{self.files.name}.ipynb", [])
                    if isinstance(job, Job):
                        for progress in run.submit(job):
                            self._keep(results, progress.result)
                    else:
                        self._keep(results, job)
                while run.pending:
                    for progress in run.wait():
                        self._keep(results, progress.result)
            finally:
                run.close()
        self.report.phases["submissions"] = round(time.monotonic() - began, 1)
        return results

    def _keep(self, results: dict[str, Result], result: Result | None) -> None:
        assert result is not None
        results[result.student] = result
        self.bar.step()

    def _references_judged(self, results: list[Result]) -> None:
        for result in results[:1]:
            if result.status != GRADED:
                self.breach("reference", "", f"the reference as a submission: {result.reason}")
            for exercise in _not_full(result):
                self.breach("reference", exercise.grade_id, f"in the sandbox: {_first_failure(exercise)}")
            for event in result.events:
                self.breach("reference", "", f"the reference as a submission raises an event: {event}")
            self.report.reference_full = result.status == GRADED and not _not_full(result)
        seconds = [r.timings["total"] for r in results[1:] if r.timings]
        self.report.seconds_per_submission = round(statistics.median(seconds), 3) if seconds else None

    def _result_judged(self, variant: Variant, result: Result) -> None:
        test = self.source.exercise_of(variant.exercise)
        assert test is not None
        if result.status != GRADED:
            self.breach("variants", test.grade_id, f"{variant.name} as a submission: {result.reason}")
            return
        lost = {e.grade_id: e for e in _not_full(result)}
        own = next(e for e in result.exercises if e.grade_id == test.grade_id)
        complaint = _first_failure(own) if test.grade_id in lost else ""
        self._variant_judged(test, variant, complaint, [m.name for m in own.misconceptions])
        for grade_id, exercise in lost.items():
            if grade_id != test.grade_id:
                self.breach(
                    "independence",
                    grade_id,
                    f"loses marks with {variant.name} in {test.grade_id}: {_first_failure(exercise)}",
                )

    # 4. mutants

    def check_mutants(self) -> None:
        cases: list[tuple[TestCell, str, Mutant]] = [
            (test, grade_id, mutant)
            for test in self.source.tests.values()
            for grade_id in test.solution_ids
            for mutant in mutants_of(self.source.solutions[grade_id])
        ]
        tasks = []
        for test, grade_id, mutant in cases:
            row = self.rows[test.grade_id]
            task = partial(self.bench.mutant, test, grade_id, mutant.text, row.checks)
            tasks.append((task, 5 + 10 * row.seconds))
        used: set[int] = set()
        for (test, grade_id, mutant), ran in zip(cases, self.apart("mutants", tasks), strict=True):
            row = self.rows[test.grade_id]
            row.mutants += 1
            if ran.lost or not ran.value:
                row.killed += 1
                continue
            why = self._explanation(grade_id, mutant, used)
            row.explained += bool(why)
            found = SurvivorFound(test.grade_id, mutant.operator, mutant.line, mutant.old, mutant.new, why)
            self.report.survivors.append(found)
            if not why:
                self.breach("mutant", test.grade_id, f"no test notices line {mutant.line}: {mutant.old} → {mutant.new}")
        for number, entry in enumerate(self.source.catalogue.survivors):
            if number not in used:
                self.breach(
                    "mutant",
                    "",
                    f"no survivor of {entry.exercise!r} turns {entry.old!r} into {entry.new!r}: drop that line",
                )
        mutants, killed = self.report.total("mutants"), self.report.total("killed")
        if mutants and killed / mutants < LEAST_KILLED:
            self.breach("mutant", "", f"only {killed} of {mutants} mutants are killed (at least {LEAST_KILLED:.0%})")

    def _explanation(self, grade_id: str, mutant: Mutant, used: set[int]) -> str:
        """Why this survivor is no worse than the reference, as the catalogue says; marks what is used."""
        why = ""
        names = bound_names(self.source.solutions[grade_id])
        for number, entry in enumerate(self.source.catalogue.survivors):
            if entry.exercise in names and explains(entry, mutant):
                used.add(number)
                why = why or entry.why
        return why

    # 5. seeds

    def check_seeds(self) -> None:
        seeds = [1000 + n for n in range(self.report.seeds)]
        right_seeds = seeds[: math.ceil(len(seeds) / RIGHT_SHARE_OF_SEEDS)]
        cases: list[tuple[TestCell, Variant | None, list[int]]] = []
        for test in self.source.tests.values():
            size = max(1, int(BATCH_SECONDS / max(self.rows[test.grade_id].seconds, 1e-3)))
            for variant in (None, *self.variants_of(test)):
                wanted = seeds if variant is None else right_seeds if variant.is_right else seeds[:WRONG_SEEDS]
                cases += [(test, variant, wanted[i : i + size]) for i in range(0, len(wanted), size)]
        tasks = [(partial(self.bench.seeds, t, s, v), PATIENCE) for t, v, s in cases]
        flaky: set[int] = set()
        told: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for (test, variant, batch), ran in zip(cases, self.apart("seeds", tasks), strict=True):
            who = variant.name if variant else "the reference"
            found = [(s, f"the checks do not end ({ran.lost})") for s in batch] if ran.lost else map(tuple, ran.value)
            for seed, complaint in found:
                is_wrong = variant is not None and not variant.is_right
                if bool(complaint) != is_wrong:
                    told.setdefault((test.grade_id, who), []).append((seed, complaint or "full marks"))
                    flaky.add(seed)
        self.report.flaky = len(flaky)
        for (grade_id, who), entries in told.items():
            seed, complaint = entries[0]
            self.breach("seeds", grade_id, f"{who}: with {len(entries)} seeds, first {seed}: {complaint}")


def explains(entry: Survivor, mutant: Mutant) -> bool:
    """Whether an explanation of the catalogue is for this mutant; spaces do not count."""
    old, new, before, after = ("".join(t.split()) for t in (entry.old, entry.new, mutant.old, mutant.new))
    return old in before and new in after


def _not_full(result: Result) -> list[Exercise]:
    return [e for e in result.exercises if e.kind == "auto" and (e.score or 0.0) < e.points - 1e-9]


def _first_failure(exercise: Exercise) -> str:
    return next((f"'{c.name}': {c.reason or c.verdict}" for c in exercise.checks if not c.passed), "no check ran")


# ----------------------------------------------------------------------------------------------- printing


def print_table(reports: list[AuditReport], console: Console | None = None) -> None:
    """One table with a row for each set; then, for each set, its exercises, survivors and breaches."""
    console = console or _console()
    columns = (
        ("ref.", lambda r: "full" if r.reference_full else "[red]not full[/]"),
        ("right full", lambda r: _share(r.total("right_full"), r.total("right"))),
        ("wrong caught", lambda r: _share(r.total("caught"), r.total("wrong"))),
        ("wrong named", lambda r: _share(r.total("named"), r.total("wrong"))),
        ("trivial at 0", lambda r: _share(r.total("trivial_zero"), r.total("trivial"))),
        ("mutants killed", lambda r: _share(r.total("killed"), r.total("mutants"))),
        ("rest explained", lambda r: _share(r.total("explained"), len(r.survivors)) if r.survivors else "–"),
        ("seeds flaky", lambda r: f"[red]{r.flaky}/{r.seeds}[/]" if r.flaky else f"0/{r.seeds}"),
        ("s each", lambda r: "–" if r.seconds_per_submission is None else f"{r.seconds_per_submission:.2f}"),
        ("breaches", lambda r: "[green]none[/]" if r.ok else f"[red]{len(r.breaches)}[/]"),
    )
    table = Table("set", title="Audit", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for header, _ in columns:
        table.add_column(header.replace(" ", "\n"), justify="right", no_wrap=True)
    for report in reports:
        table.add_row(report.assignment, *(show(report) for _, show in columns))
    console.print(table)
    for report in reports:
        _print_details(report, console)


def _console() -> Console:
    """Standard output, wide enough for the table where it is a file or a log."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=110)


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if part == whole else f"[yellow]{part}/{whole}[/]"


def _print_details(report: AuditReport, console: Console) -> None:
    how = ", without the sandbox" if report.quick else ""
    title = f"{report.assignment}: {report.points:g} points; audited in {report.audit_seconds:.0f} s{how}"
    table = Table("exercise", title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for header in (
        "points",
        "checks",
        "right full",
        "wrong caught",
        "wrong named",
        "trivial at 0",
        "mutants killed",
        "ms",
    ):
        table.add_column(header.replace(" ", "\n"), justify="right", no_wrap=True)
    for row in report.exercises:
        if row.kind == "written":
            table.add_row(row.grade_id, f"{row.points:g}", "written")
            continue
        table.add_row(
            row.grade_id,
            f"{row.points:g}",
            str(row.checks),
            _share(row.right_full, row.right),
            _share(row.caught, row.wrong),
            _share(row.named, row.wrong),
            _share(row.trivial_zero, row.trivial),
            _share(row.killed, row.mutants),
            f"{1000 * row.seconds:.0f}",
        )
    console.print(table)
    for name in report.unnamed:
        console.print(f"  [yellow]misconception[/] {escape(name)}")
    for s in report.survivors:
        if s.why:
            console.print(f"  [dim]survivor[/] {escape(s.exercise)} line {s.line}: {escape(s.old)} → {escape(s.new)}")
            console.print(f"    [dim]{escape(s.why)}[/]")
    for b in report.breaches:
        where = f" {escape(b.exercise)}" if b.exercise else ""
        console.print(f"  [red]breach[/] ({b.kind}){where}: {escape(b.text)}")
