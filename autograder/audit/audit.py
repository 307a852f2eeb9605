"""Proves the tests of a set: right answers get full marks, wrong ones do not, whatever the seed.

Seven questions are asked of each set: is its source in order; does the reference solution get full marks; does every
catalogued right variant get full marks, and does every wrong one lose marks and is named; do trivial answers score
nothing; are the mutants of the reference noticed; do the hidden checks say the same for every seed; how long does a
submission take. Every "no" is a breach.

Whole submissions go the way of a student's: rebuilt, run in the sandbox, judged. All else runs the same test cells in
forked children of this process, which may loop for ever or eat memory.
"""

from __future__ import annotations

import math
import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import matplotlib
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from autograder.audit.bench import PATIENCE, SEED, STUB, TRIVIAL, Bench, as_bytes, cell_with, graded, submission
from autograder.audit.forked import Ran, run_apart
from autograder.audit.mutants import Mutant, mutants_of, operators
from autograder.audit.report import AuditReport, Breach, ExerciseAudit, SurvivorFound
from autograder.course import Course, SetFiles
from autograder.grading.runner import Settings
from autograder.judging.source import BadSource, TestCell
from autograder.judging.variants import BadCatalogue, Survivor, Variant
from autograder.notebook.names import bound_names
from autograder.results import GRADED, Check, Exercise, Result
from autograder.sandbox.launcher import BUBBLEWRAP

# the rules of the house: points of a set, and the least shares of misconceptions named first and of mutants killed
SET_POINTS = (20, 40)
LEAST_NAMED = 0.95
LEAST_KILLED = 0.95
# how much is asked
WRONG_SEEDS = 10
RIGHT_SHARE_OF_SEEDS = 10
TIMED_RUNS = 3
BATCH_SECONDS = 4.0

T = TypeVar("T")


def audit_set(
    course: Course, name: str, seeds: int = 200, quick: bool = False, jobs: int = 1, sandbox: str = BUBBLEWRAP
) -> AuditReport:
    """Audit one set of a course; `quick` leaves the sandbox out. Raises AutograderError."""
    operators()
    began = time.monotonic()
    report = AuditReport(name, seeds=seeds, quick=quick)
    files = course.set_files(name)
    torch.set_num_threads(1)  # its pool of threads does not live through a fork, and its children would wait for it
    matplotlib.use("agg")
    try:
        _Audit(files, report, Settings(sandbox=sandbox, jobs=jobs, seed=SEED)).run()
    except (BadSource, BadCatalogue) as error:
        report.breaches.append(Breach("source", "", str(error)))
    report.audit_seconds = round(time.monotonic() - began, 1)
    return report


class _Audit:
    """The audit of one set; fills in `report`."""

    def __init__(self, files: SetFiles, report: AuditReport, settings: Settings) -> None:
        self.files, self.report, self.settings = files, report, settings
        self.bench = Bench.of_set(files)
        self.source = self.bench.source
        self.rows: dict[str, ExerciseAudit] = {}

    def breach(self, kind: str, exercise: str, text: str) -> None:
        self.report.breaches.append(Breach(kind, exercise, text))

    def ask_least(self, kind: str, part: str, whole: str, least: float, what: str) -> None:
        some, all_ = self.report.total(part), self.report.total(whole)
        if all_ and some / all_ < least:
            self.breach(kind, "", f"only {some} of {all_} {what} (at least {least:.0%})")

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

    def apart(self, what: str, tasks: Sequence[tuple[Callable[[], Any], float]]) -> list[Ran]:
        """How the tasks ended, in their order."""
        ended = dict(self.watched(what, run_apart(tasks, self.settings.jobs), len(tasks)))
        return [ended[number] for number in range(len(tasks))]

    def watched(self, what: str, things: Iterable[T], total: int) -> Iterator[T]:
        """The things as they come, with a progress bar on stderr; notes the seconds of this part of the audit."""
        began = time.monotonic()
        console = Console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        # drawn by this thread: one of its own would be cut off by a fork
        options: dict[str, Any] = {"auto_refresh": False, "transient": True, "disable": not console.is_terminal}
        with Progress(*columns, console=console, **options) as bar:
            yield from bar.track(things, total, description=f"{self.report.assignment}: {what}")
        self.report.phases[what] = round(time.monotonic() - began, 1)

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
            checks, complaint, seconds = ran.value or ([], ran.lost, 0.0)
            if complaint:
                self.report.reference_full = False
                self.breach("reference", test.grade_id, f"the reference solution does not get full marks: {complaint}")
            if not ran.lost:
                self._check_points(test, checks)
                self.rows[test.grade_id].checks = len(checks)
                self.rows[test.grade_id].seconds = round(seconds, 3)

    def _check_points(self, test: TestCell, checks: list[Check]) -> None:
        for name, count in Counter(c.name for c in checks).items():
            if count > 1:
                self.breach("source", test.grade_id, f"two checks are called '{name}'")
        total = sum(c.points for c in checks)
        if not math.isclose(total, test.points):
            visible = "" if all(c.hidden for c in checks) else "1 for the examples, "
            said = f"the cell has {test.points:g} points, but its checks make {total:g} ({visible}the rest hidden)"
            self.breach("source", test.grade_id, said)
        if not any(c.hidden for c in checks):
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
                said = f"the variant {variant.name!r} is for {variant.exercise!r}, which no test cell judges"
                self.breach("source", "", said)
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
            for kind in TRIVIAL
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
        self.ask_least("naming", "named", "wrong", LEAST_NAMED, "misconceptions are named first")

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
        cases = [("reference-0", whole), ("released", as_bytes(self.files.released))]
        for v in variants:  # each in the cell of its exercise, and the reference everywhere else
            texts = {**self.source.solutions, **cell_with(self.source, v)}
            cases.append((f"{v.exercise}.{v.name}", submission(self.files, texts)))
        cases += [(f"reference-{n}", whole) for n in range(1, TIMED_RUNS + 1)]
        judged = graded(self.files, cases, self.settings)
        results = {result.student: result for result in self.watched("submissions", judged, len(cases))}
        self._references_judged([results[f"reference-{n}"] for n in range(TIMED_RUNS + 1)])
        for exercise in results["released"].exercises:
            if exercise.score:
                self.breach("trivial", exercise.grade_id, f"the released notebook as it is scores {exercise.score:g}")
        for variant in variants:
            self._result_judged(variant, results[f"{variant.exercise}.{variant.name}"])

    def _references_judged(self, results: list[Result]) -> None:
        result = results[0]
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
                said = f"loses marks with {variant.name} in {test.grade_id}: {_first_failure(exercise)}"
                self.breach("independence", grade_id, said)

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
            tasks.append((partial(self.bench.mutant, test, grade_id, mutant.text, row.checks), 5 + 10 * row.seconds))
        survivors = self.source.catalogue.survivors
        used: set[int] = set()
        for (test, grade_id, mutant), ran in zip(cases, self.apart("mutants", tasks), strict=True):
            row = self.rows[test.grade_id]
            row.mutants += 1
            if ran.lost or not ran.value:
                row.killed += 1
                continue
            names = bound_names(self.source.solutions[grade_id])
            fit = [n for n, e in enumerate(survivors) if e.exercise in names and explains(e, mutant)]
            used.update(fit)
            why = survivors[fit[0]].why if fit else ""
            row.explained += bool(why)
            found = SurvivorFound(test.grade_id, mutant.operator, mutant.line, mutant.old, mutant.new, why)
            self.report.survivors.append(found)
            if not why:
                self.breach("mutant", test.grade_id, f"no test notices line {mutant.line}: {mutant.old} → {mutant.new}")
        for number, entry in enumerate(survivors):
            if number not in used:
                said = f"no survivor of {entry.exercise!r} turns {entry.old!r} into {entry.new!r}: drop that line"
                self.breach("mutant", "", said)
        self.ask_least("mutant", "killed", "mutants", LEAST_KILLED, "mutants are killed")

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
            found = [(s, f"the checks do not end ({ran.lost})") for s in batch] if ran.lost else ran.value
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
