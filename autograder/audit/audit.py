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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import Any, TypeVar

import matplotlib

from autograder.audit.bench import PATIENCE, Bench, as_bytes, cell_with, first_complaint, graded, submission
from autograder.audit.forked import Ran, run_apart
from autograder.audit.mutants import mutants_of, operators
from autograder.audit.report import AuditReport, Breach, CheckAudit, ExerciseAudit, SurvivorFound
from autograder.console import progress_bar
from autograder.course import Course, SetFiles
from autograder.grading.runner import Settings
from autograder.judging.source import BadSource, TestCell
from autograder.judging.variants import BadCatalogue, Variant
from autograder.notebook.names import bound_names
from autograder.results import GRADED, Check, Exercise, Result

# the rules of the house: points of a set, and the least shares of misconceptions named first and of mutants killed
SET_POINTS = (20, 45)
LEAST_NAMED = 0.95
LEAST_KILLED = 0.95
# how much is asked
WRONG_SEEDS = 10
RIGHT_SHARE_OF_SEEDS = 10
BATCH_SECONDS = 4.0

Case = TypeVar("Case", bound=tuple[Any, ...])


def audit_set(
    course: Course, name: str, seeds: int = 200, quick: bool = False, jobs: int = 1, mutants: bool = True
) -> AuditReport:
    """Audit one set of a course; `quick` leaves the sandbox out, and `mutants=False` these. Raises AutograderError."""
    operators()
    began = time.monotonic()
    report = AuditReport(name, seeds=seeds, quick=quick)
    files = course.set_files(name)
    matplotlib.use("agg")
    try:
        with _one_thread():
            _Audit(files, report, Settings(jobs=jobs)).run(mutants)
    except (BadSource, BadCatalogue) as error:
        report.breaches.append(Breach("source", "", str(error)))
    report.audit_seconds = round(time.monotonic() - began, 1)
    return report


@contextmanager
def _one_thread() -> Iterator[None]:
    """PyTorch, where it is installed: its threads do not live through a fork, and children would wait for them."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


class _Audit:
    """The audit of one set; fills in `report`."""

    def __init__(self, files: SetFiles, report: AuditReport, settings: Settings) -> None:
        self.files, self.report, self.settings = files, report, settings
        self.bench = Bench(files)
        self.source = self.bench.source
        self.rows: dict[str, ExerciseAudit] = {}
        self.checks: dict[tuple[str, str], CheckAudit] = {}
        self.bar = progress_bar(has_thread=False)

    def breach(self, kind: str, exercise: str, text: str) -> None:
        self.report.breaches.append(Breach(kind, exercise, text))

    def noticed(self, test: TestCell, checks: list[Check]) -> None:
        """Which checks an answer failed that ought to fail."""
        failed = [self.checks[key] for c in checks if not c.passed and (key := (test.grade_id, c.name)) in self.checks]
        for check in failed:
            check.refused += 1
            check.alone += len(failed) == 1

    def ask_least(self, kind: str, part: str, whole: str, least: float, what: str) -> None:
        some, all_ = self.report.total(part), self.report.total(whole)
        if all_ and some / all_ < least:
            self.breach(kind, "", f"only {some} of {all_} {what} (at least {least:.0%})")

    def run(self, mutants: bool) -> None:
        self.make_rows()
        with self.bar:
            self.check_reference()
            self.check_source()
            if self.report.reference_full:
                self.check_trivial()
                self.check_variants()
                if mutants:
                    self.check_mutants()
                self.check_seeds()
        self.report.checks = list(self.checks.values())
        self.report.phases = {t.description: round(t.finished_time or 0.0, 1) for t in self.bar.tasks}

    def apart(
        self,
        what: str,
        cases: Sequence[Case],
        task: Callable[..., Any],
        seconds: Callable[..., float] = lambda *case: PATIENCE,
    ) -> list[tuple[Case, Ran]]:
        """Each case, and how `task(*case)` ended in a child that had `seconds(*case)`."""
        tasks = [(partial(task, *case), seconds(*case)) for case in cases]
        ended = dict(self.bar.track(run_apart(tasks, self.settings.jobs), len(tasks), description=what))
        return [(case, ended[number]) for number, case in enumerate(cases)]

    # 1. the source and the reference

    def make_rows(self) -> None:
        for grade_id, test in self.source.tests.items():
            self.rows[grade_id] = ExerciseAudit(grade_id, test.title, test.points)
        for grade_id, (title, points) in self.source.written.items():
            self.rows[grade_id] = ExerciseAudit(grade_id, title, points, "written")
        self.report.exercises = list(self.rows.values())
        self.report.points = sum(r.points for r in self.rows.values())

    def check_reference(self) -> None:
        self.report.reference_full = True
        for (test,), ran in self.apart("reference", [(t,) for t in self.source.tests.values()], self.bench.judged):
            checks, said, seconds = ran.value or ([], ran.lost, 0.0)
            if said:
                self.report.reference_full = False
                self.breach("reference", test.grade_id, f"the reference solution does not get full marks: {said}")
            if not ran.lost:
                self._check_points(test, checks)
                self.checks |= {(test.grade_id, c.name): CheckAudit(test.grade_id, c.name, c.points) for c in checks}
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
        for grade_id, text in self.files.rubrics.items():
            if not re.search(r"\brubric\b", text, re.IGNORECASE):
                self.breach("source", grade_id, "this written question has no rubric")

    def variants_of(self, test: TestCell) -> list[Variant]:
        return [v for v in self.source.catalogue.variants if v.exercise in test.solution_names]

    # 2. trivial answers

    def check_trivial(self) -> None:
        cases = [(test, *answer) for test in self.source.tests.values() for answer in self.bench.trivial(test)]
        judged = self.bench.judged
        for (test, kind, *_), ran in self.apart("trivial answers", cases, lambda t, kind, *answer: judged(t, *answer)):
            checks, _, _ = ran.value or ([], "", 0.0)
            passed = ", ".join(repr(c.name) for c in checks if c.passed)
            row = self.rows[test.grade_id]
            self.noticed(test, checks)
            row.trivial += 1
            if ran.lost:
                self.breach("trivial", test.grade_id, f"{kind}: the test cell does not end ({ran.lost})")
            elif passed:
                self.breach("trivial", test.grade_id, f"{kind} passes {passed}")
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
        for (test, variants), ran in self.apart("variants", cases, self.bench.variants):
            if ran.lost:
                self.breach("variants", test.grade_id, f"the variants cannot be judged ({ran.lost})")
                continue
            for variant, (checks, complaint, named) in zip(variants, ran.value, strict=True):
                self._variant_judged(test, variant, checks, complaint, named)

    def _variant_judged(
        self, test: TestCell, variant: Variant, checks: list[Check], complaint: str, named: list[str]
    ) -> None:
        row = self.rows[test.grade_id]
        if variant.is_right:
            row.right += 1
            row.right_full += not complaint
            if complaint:
                self.breach("right variant", test.grade_id, f"{variant.name} does not get full marks: {complaint}")
            return
        self.noticed(test, checks)
        row.wrong += 1
        row.caught += bool(complaint)
        if not complaint:
            self.breach("wrong variant", test.grade_id, f"{variant.name} gets full marks")
        elif named[:1] == [variant.name]:
            row.named += 1
        else:
            self.report.unnamed.append(f"{variant.name}: {f'named as {named[0]}' if named else 'not named'}")

    def _variants_in_sandbox(self) -> None:
        variants = [(test, v) for test in self.source.tests.values() for v in self.variants_of(test)]
        cases = {"reference": submission(self.files, self.source.solutions), "released": as_bytes(self.files.released)}
        for _, v in variants:  # each in the cell of its exercise, and the reference everywhere else
            texts = {**self.source.solutions, **cell_with(self.source, v)}
            cases[f"{v.exercise}.{v.name}"] = submission(self.files, texts)
        judged = graded(self.files, cases, self.settings)
        results = {r.student: r for r in self.bar.track(judged, len(cases), description="submissions")}
        self._reference_judged(results["reference"])
        for exercise in results["released"].exercises:
            if exercise.score:
                self.breach("trivial", exercise.grade_id, f"the released notebook as it is scores {exercise.score:g}")
        for test, variant in variants:
            self._result_judged(test, variant, results[f"{variant.exercise}.{variant.name}"])
        seconds = [r.timings["total"] for r in results.values() if r.timings]
        self.report.seconds_per_submission = round(statistics.median(seconds), 3) if seconds else None

    def _reference_judged(self, result: Result) -> None:
        if result.status != GRADED:
            self.breach("reference", "", f"the reference as a submission: {result.reason}")
        for exercise in _not_full(result):
            self.breach("reference", exercise.grade_id, f"in the sandbox: {_first_failure(exercise)}")
        for event in result.events:
            self.breach("reference", "", f"the reference as a submission raises an event: {event}")
        self.report.reference_full = result.status == GRADED and not _not_full(result)

    def _result_judged(self, test: TestCell, variant: Variant, result: Result) -> None:
        if result.status != GRADED:
            self.breach("variants", test.grade_id, f"{variant.name} as a submission: {result.reason}")
            return
        lost = {e.grade_id: e for e in _not_full(result)}
        own = next(e for e in result.exercises if e.grade_id == test.grade_id)
        complaint = _first_failure(own) if test.grade_id in lost else ""
        self._variant_judged(test, variant, own.checks, complaint, [m.name for m in own.misconceptions])
        for grade_id, exercise in lost.items():
            if grade_id != test.grade_id:
                said = f"loses marks with {variant.name} in {test.grade_id}: {_first_failure(exercise)}"
                self.breach("independence", grade_id, said)

    # 4. mutants

    def check_mutants(self) -> None:
        cases = [
            (test, grade_id, mutant, self.rows[test.grade_id])
            for test in self.source.tests.values()
            for grade_id in test.solution_ids
            for mutant in mutants_of(self.source.solutions[grade_id])
        ]
        ended = self.apart(
            "mutants",
            cases,
            lambda test, grade_id, mutant, row: self.bench.judged(test, {grade_id: mutant.text}, stops=True),
            lambda test, grade_id, mutant, row: 5 + 10 * row.seconds,
        )
        survivors = self.source.catalogue.survivors
        used: set[int] = set()
        for (test, grade_id, mutant, row), ran in ended:
            row.mutants += 1
            checks, said, _ = ran.value or ([], ran.lost, 0.0)
            if said or len(checks) != row.checks:
                row.killed += 1
                if checks and (own := self.checks.get((test.grade_id, checks[-1].name))) and not checks[-1].passed:
                    own.mutants += 1
                continue
            names = bound_names(self.source.solutions[grade_id])
            fit = [n for n, e in enumerate(survivors) if e.exercise in names and mutant.turns(e.old, e.new)]
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
        cases: list[tuple[TestCell, list[int], Variant | None]] = []
        for test in self.source.tests.values():
            size = max(1, int(BATCH_SECONDS / max(self.rows[test.grade_id].seconds, 1e-3)))
            for variant in (None, *self.variants_of(test)):
                wanted = seeds if variant is None else right_seeds if variant.is_right else seeds[:WRONG_SEEDS]
                cases += [(test, wanted[i : i + size], variant) for i in range(0, len(wanted), size)]
        flaky: set[int] = set()
        told: dict[tuple[str, str], list[tuple[int, str]]] = {}
        for (test, batch, variant), ran in self.apart("seeds", cases, self.bench.seeds):
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


def _not_full(result: Result) -> list[Exercise]:
    return [e for e in result.exercises if e.kind == "auto" and (e.score or 0.0) < e.points - 1e-9]


def _first_failure(exercise: Exercise) -> str:
    return first_complaint(exercise.checks, ["no check ran"])
