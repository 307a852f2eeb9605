"""What the gradebook holds: scores, manual marks, the class list, and the dates."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from nbgrader.api import Assignment, Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.course import Course
from autograder.gradebook.database import look, notebook_of, of_cells
from autograder.judging.source import Source
from autograder.results import Manual


@dataclass
class CellScore:
    """What the gradebook holds for one cell of one student; None where nothing has been entered."""

    auto: float | None = None
    manual: float | None = None
    extra_credit: float | None = None
    needs_manual: bool = False
    comment: str = ""
    auto_comment: str = ""
    max_score: float | None = None

    @property
    def score(self) -> float:
        """As nbgrader counts: the manual score wins, and extra credit needs a score to be added to."""
        base = self.auto if self.manual is None else self.manual
        return 0.0 if base is None else base + (self.extra_credit or 0.0)


@dataclass
class StudentScores:
    """One student's set: cells by grade_id, the penalty for lateness (points, None: none) and when it came (UTC)."""

    cells: dict[str, CellScore] = field(default_factory=dict)
    late_penalty: float | None = None
    timestamp: datetime | None = None

    @property
    def max_score(self) -> float:
        return sum(c.max_score or 0.0 for c in self.cells.values())

    @property
    def needs_manual(self) -> bool:
        return any(c.needs_manual for c in self.cells.values())

    @property
    def total(self) -> float:
        """Points with manual marks, extra credit and the late penalty; never below 0."""
        return max(0.0, sum(c.score for c in self.cells.values()) - (self.late_penalty or 0.0))


# --- marks -----------------------------------------------------------------------------------------------------------


def scores(course: Course, name: str) -> dict[str, StudentScores]:
    """What the gradebook holds for a set, by student; empty where there is no gradebook yet. Raises GradebookError."""
    return look(course, lambda db: _scores(db, name), {})


def _scores(db: Session, name: str) -> dict[str, StudentScores]:
    ours = SubmittedNotebook.notebook_id.in_(notebook_of(name))
    columns = SubmittedAssignment.student_id, SubmittedNotebook.late_submission_penalty, SubmittedAssignment.timestamp
    submitted = select(*columns).join(SubmittedNotebook.assignment).order_by(SubmittedAssignment.student_id)
    found = {student: StudentScores({}, *row) for student, *row in db.execute(submitted.where(ours))}
    marks = Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade
    for student, cell, most, *row in db.execute(of_cells(Grade, Grade.max_score, *marks).where(ours)):
        score = found[student].cells[cell] = CellScore(*row)
        score.max_score = most
    comments = of_cells(Comment, Comment.manual_comment, Comment.auto_comment).where(ours)
    for student, cell, by_hand, automatic in db.execute(comments):
        score = found[student].cells.setdefault(cell, CellScore())
        score.comment, score.auto_comment = by_hand or "", automatic or ""
    return found


def manual_marks(course: Course, name: str) -> dict[tuple[str, str], dict[str, Manual]]:
    """What people entered, by (student, set) and grade_id of the exercise, as feedback and report take it.

    A comment on a solution cell belongs to the exercise whose tests judge that cell. Raises GradebookError.
    """
    tests = Source(course.set_files(name).source).tests.values()
    judges = {solution: test.grade_id for test in tests for solution in test.solution_ids}
    marks: dict[tuple[str, str], dict[str, Manual]] = {}
    for student, found in scores(course, name).items():
        mine: dict[str, Manual] = {}
        for cell_name, cell in found.cells.items():
            if cell.manual is not None or cell.extra_credit is not None:
                mine.setdefault(cell_name, Manual()).score = cell.score
            if cell.comment:
                mark = mine.setdefault(judges.get(cell_name, cell_name), Manual())
                mark.comment = f"{mark.comment}\n\n{cell.comment}".strip()
        if mine:
            marks[student, name] = mine
    return marks


# --- the class and the set -------------------------------------------------------------------------------------------


def class_list(course: Course) -> list[dict[str, Any]]:
    """The students in the gradebook: id, first_name, last_name, email, lms_user_id. Raises GradebookError."""
    columns = (Student.id, Student.first_name, Student.last_name, Student.email, Student.lms_user_id)

    def work(db: Session) -> list[dict[str, Any]]:
        rows = db.execute(select(*columns).order_by(Student.id)).mappings()
        return [{key: value or "" for key, value in row.items()} for row in rows]

    return look(course, work, [])


def due_date(course: Course, name: str) -> datetime | None:
    """When a set is due (UTC, without a zone), as the gradebook has it. Raises GradebookError."""
    due: datetime | None = _of_assignment(course, name, Assignment.duedate)
    return due


def full_marks(course: Course, name: str) -> float | None:
    """The points of a set, None where the gradebook does not know it. Raises GradebookError."""
    points: float | None = _of_assignment(course, name, Assignment.max_score)
    return points


def _of_assignment(course: Course, name: str, column: Any) -> Any:
    return look(course, lambda db: db.scalar(select(column).where(Assignment.name == name)), None)
