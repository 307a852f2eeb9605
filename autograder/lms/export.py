"""`export`: marks out of nbgrader's gradebook, with manual marks, extra credit and late penalties, in plain formats.

`lms_export` makes of the same lines what Canvas and Moodle import. A mark that is not there is empty and has a status;
it is never zero.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.course import Course
from autograder.gradebook.reader import StudentScores, class_list, full_marks, scores
from autograder.grading.store import Store
from autograder.lms.csv_files import csv_text
from autograder.lms.roster import Person, Roster
from autograder.results import GRADED, NOT_SUBMITTED, Result
from autograder.text import shown
from autograder.timestamps import stamp_of

NOT_GRADED = "not graded yet"
HEADER = (
    *("id", "name", "email", "set", "score", "max_score", "late_penalty"),
    *("needs_manual_grading", "status", "reason", "submitted"),
)


@dataclass(frozen=True)
class Mark:
    """One student's mark for one set, after the late penalty. `score` is None where there is nothing to count yet.

    `needs_manual`: somebody still has to mark an answer, so that the score is not the last word.
    """

    student: Person
    assignment: str
    score: float | None
    max_score: float | None
    late_penalty: float = 0.0
    needs_manual: bool = False
    status: str = NOT_SUBMITTED
    reason: str = ""
    submitted: str = ""

    def row(self) -> tuple[str | float | bool | None, ...]:
        first, last = self.student.first_and_last()
        return (
            self.student.id,
            f"{first} {last}".strip(),
            self.student.email,
            self.assignment,
            self.score,
            self.max_score,
            self.late_penalty,
            self.needs_manual,
            self.status,
            self.reason,
            self.submitted,
        )


def marks(course: Course, names: Sequence[str]) -> list[Mark]:
    """A mark for every student and set, by set and student. Raises GradebookError, CourseError."""
    people = {row["id"]: Person.of_gradebook(row) for row in class_list(course)}
    found: list[Mark] = []
    store = Store(course.results_folder)
    for name in names:
        standing, most = scores(course, name), full_marks(course, name)
        handed_in = course.submissions(name)
        for student in sorted({*people, *standing, *handed_in}):
            result = store.get(name, student)
            person = people.get(student) or Person(student)
            found.append(_mark(person, name, standing.get(student), result, student in handed_in, most))
    return found


def _mark(
    person: Person,
    name: str,
    standing: StudentScores | None,
    result: Result | None,
    handed_in: bool,
    most: float | None,
) -> Mark:
    if standing is None:
        if result is not None:
            return Mark(person, name, None, most, status=NOT_GRADED, reason="it is not in the gradebook yet")
        return Mark(person, name, None, most, status=NOT_GRADED if handed_in else NOT_SUBMITTED)
    # nbgrader itself may have graded it: then there is no result of ours
    status = result.status if result else GRADED
    counts = status == GRADED or not standing.needs_manual
    return Mark(
        person,
        name,
        round(standing.total, 4) if counts else None,
        standing.max_score,
        round(standing.late_penalty or 0.0, 4),
        standing.needs_manual,
        status,
        result.reason if result else "",
        stamp_of(standing.timestamp) if standing.timestamp else "",
    )


def with_marks(course: Course) -> list[str]:
    """The sets for which there is anything to export."""
    return [name for name in course.set_names() if course.submissions(name) or scores(course, name)]


def as_csv(found: Sequence[Mark]) -> str:
    return csv_text(HEADER, (mark.row() for mark in found))


def as_json(found: Sequence[Mark]) -> str:
    return (
        json.dumps([dict(zip(HEADER, mark.row(), strict=True)) for mark in found], ensure_ascii=False, indent=1) + "\n"
    )


def unmarked(found: Sequence[Mark], left_out: bool) -> list[str]:
    """A line for each set with answers that nobody has marked; `left_out`: such scores are not in the export."""
    lines = []
    for name in dict.fromkeys(mark.assignment for mark in found):
        waiting = [
            mark.student.id
            for mark in found
            if mark.assignment == name and mark.needs_manual and mark.score is not None
        ]
        without = [
            f"{mark.student.id} ({mark.status})" for mark in found if mark.assignment == name and _unreadable(mark)
        ]
        if waiting:
            several = f"{len(waiting)} submissions have" if len(waiting) > 1 else "1 submission has"
            what = "their scores were left out (--partial takes them)" if left_out else "their scores are points so far"
            lines.append(f"{name}: {several} answers that nobody has marked; {what}: {shown(', '.join(waiting), 200)}")
        if without:
            several = f"{len(without)} submissions have" if len(without) > 1 else "1 submission has"
            lines.append(f"{name}: {several} no score: {shown(', '.join(without), 200)}")
    return lines


def _unreadable(mark: Mark) -> bool:
    return mark.score is None and mark.status != NOT_SUBMITTED


def class_roster(found: Sequence[Mark]) -> Roster:
    """The students of the marks, to be found again in a learning system's file. Raises CourseError for unusable ids."""
    return Roster(dict.fromkeys(mark.student for mark in found))
