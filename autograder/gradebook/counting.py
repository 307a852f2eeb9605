"""Which of a student's attempts counts: the newest, the last that came in time, or the best.

An earlier attempt stays where `collect` put it; `decisions.json` says that it counts, and grading takes it from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from datetime import datetime, timedelta
from pathlib import Path

from autograder.course import EARLIER, Course
from autograder.gradebook.decisions import BEST, NEWEST, decide, decided, folder_of
from autograder.gradebook.reader import CellScore, Standing, count_lateness, due_and_points, scores
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store
from autograder.results import GRADED
from autograder.timestamps import read_timestamp


def set_policy(course: Course, name: str, policy: str) -> list[str]:
    """Decide which attempts at a set count from the next `grade` on; returns a line. Raises CourseError, OSError."""
    course.set_files(name)
    decisions = decided(course.root, name)
    decisions.attempts = policy
    decide(course.root, name, decisions)
    return [f"{name}: of several attempts the {policy} counts, from the next `grade` on"]


def attempts_that_count(
    course: Course,
    name: str,
    students: Sequence[str],
    settings: Settings,
    make_executor: Callable[[], Executor] | None = None,
) -> tuple[dict[str, Path], list[str]]:
    """The folders to grade, by student, and a line on each earlier attempt that counts.

    For the best, every attempt is graded; a tie is the later one's. Answers that a person marks do not decide.
    Raises AutograderError, OSError.
    """
    decisions = decided(course.root, name)
    found = {} if decisions.attempts == NEWEST else {s: _attempts(course, name, s) for s in students}
    standings, due = (scores(course, name), due_and_points(course, name)[0]) if found else ({}, None)
    worth: dict[str, dict[str, tuple[float, bool, datetime, int]]] = {student: {} for student in found}
    for place in sorted({place for places in found.values() if len(places) > 1 for place in places}):
        folders = {s: places[place] for s, places in found.items() if place in places and len(places) > 1}
        cells: dict[str, dict[str, CellScore]] = {}
        if decisions.attempts == BEST:
            for step in grade_set(course, _store(course, name, place), name, settings, make_executor, folders):
                if step.result.status == GRADED:
                    cells[step.result.student] = {e.grade_id: CellScore(e.score) for e in step.result.exercises}
        for student, folder in folders.items():
            moment = read_timestamp(folder)[0]
            extension = standings[student].extension if student in standings else timedelta()
            one = Standing(cells.get(student, {}), moment, due, extension)
            count_lateness(course, {student: one})
            points = (one.total or 0.0) if student in cells else -1.0
            value = points if decisions.attempts == BEST else float(not one.late)
            # the newest has no number; without times, the later an attempt came, the higher is its number
            worth[student][place] = (value, not place, moment or datetime.min, int(place or 0))
    for student in students:
        places = worth.get(student, {})
        best = max(places, key=places.__getitem__, default="")
        decisions.counts.pop(student, None)
        if best:
            decisions.counts[student] = best
        if places and decisions.attempts == BEST and (result := _store(course, name, best).get(name, student)):
            Store(course.results_folder).put(result)  # it need not run again
    if decisions != decided(course.root, name):
        decide(course.root, name, decisions)
    said = [
        f"{s}: attempt {place} counts ({decisions.attempts})" for s, place in decisions.counts.items() if s in found
    ]
    return {
        student: folder_of(course.step_folder("submitted", student, name), decisions, student) for student in students
    }, said


def _attempts(course: Course, name: str, student: str) -> dict[str, Path]:
    """The folders of a student's attempts, by their place below `attempts/`; "" for the newest."""
    newest = course.step_folder("submitted", student, name)
    earlier = (path for path in (newest / EARLIER).glob("*") if path.name.isdecimal() and path.is_dir())
    return {"": newest, **{path.name: path for path in earlier}}


def _store(course: Course, name: str, place: str) -> Store:
    """The results of the attempts in one place."""
    return Store(course.results_folder / name / ".attempts" / (place or NEWEST))
