"""Marks that a person gives one answer: read, and written unless somebody else changed them meanwhile.

They are what formgrader writes: the manual score, the comment, and that nobody has to mark the answer any more.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from nbgrader.api import Comment, Grade, SubmittedNotebook
from sqlalchemy import update
from sqlalchemy.orm import Session

from autograder.course import Course
from autograder.errors import AutograderError
from autograder.gradebook.database import in_transaction, look, notebook_of, of_cells
from autograder.gradebook.decisions import decided
from autograder.gradebook.rubric import without_rubric
from autograder.gradebook.writer import rows_of


class Refused(AutograderError):
    """A mark that was not written; one line that says why."""


@dataclass(frozen=True)
class Mark:
    """What the gradebook holds of one answer. `auto_comment` is the grader's."""

    auto: float | None
    manual: float | None
    extra_credit: float | None
    needs_manual: bool
    max_score: float
    comment: str = ""
    auto_comment: str = ""

    @property
    def version(self) -> str:
        """Equal for two marks if nothing was changed between."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:24]


def marks_on(course: Course, name: str, grade_id: str) -> dict[str, Mark]:
    """The marks of one question by student, of all who handed in what could be graded and are not excused."""
    found: dict[str, Mark] = look(course, lambda db: _marks(db, name, grade_id), {})
    excused = decided(course.root, name).excused
    return {s: m for s, m in found.items() if s not in excused and not m.auto_comment.startswith("Not graded (")}


def _marks(db: Session, name: str, grade_id: str) -> dict[str, Mark]:
    ours = SubmittedNotebook.notebook_id.in_(notebook_of(name))
    said: dict[str, tuple[str, str]] = {}
    for student, cell, by_hand, automatic in db.execute(
        of_cells(Comment, Comment.manual_comment, Comment.auto_comment).where(ours)
    ):
        if cell == grade_id:
            said[student] = by_hand or "", automatic or ""
    columns = Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade, Grade.max_score
    return {
        student: Mark(auto, manual, extra, needs, most, *said.get(student, ("", "")))
        for student, cell, auto, manual, extra, needs, most in db.execute(of_cells(Grade, *columns).where(ours))
        if cell == grade_id
    }


def comments_on(marks: dict[str, Mark]) -> list[str]:
    """The comments given to a question so far, without points of its rubric, the most frequent first."""
    free = (without_rubric(mark.comment)[1] for mark in marks.values())
    return [comment for comment, _ in Counter(filter(None, free)).most_common(20)]


def write_mark(
    course: Course,
    name: str,
    grade_id: str,
    student: str,
    seen: str,
    points: float | None,
    comment: str,
    needs_manual: bool = False,
) -> tuple[Mark, Mark]:
    """Write points and comment of one answer; returns what stood there before, and what stands there now.

    `seen` is the version that the marker had seen. Raises Refused if it is no longer that, GradebookError.
    """
    if grade_id in decided(course.root, name).full_marks:
        raise Refused("Everybody was given full marks for this question; `students full-marks --undo` takes it back.")

    def work(db: Session) -> tuple[Mark, Mark]:
        old = _marks(db, name, grade_id).get(student)
        if old is None or old.version != seen:
            raise Refused(
                "Somebody else or `grade` has changed this mark meanwhile. Nothing was saved; load the page anew."
            )
        if points is not None and not 0 <= points <= old.max_score:
            raise Refused(f"Points are from 0 to {old.max_score:g}.")
        rows = rows_of(db, name, [student])
        db.flush()
        waits = needs_manual or (points is None and old.auto is None)
        grade, said = rows.grades[student, grade_id], rows.comments[student, grade_id]
        # each row only if it is what it was: another writer may come between
        _change(db, grade, {"manual_score": points, "needs_manual_grade": waits}, "auto_score", "extra_credit")
        _change(db, said, {"manual_comment": comment or None})
        return old, _marks(db, name, grade_id)[student]

    return in_transaction(course, work)


def _change(db: Session, row: Any, values: dict[str, Any], *others: str) -> None:
    """Change a row in the one statement that makes sure that it still is as it was read. Raises Refused."""
    table = type(row)
    same = [getattr(table, c).is_not_distinct_from(getattr(row, c)) for c in (*values, *others)]
    statement = update(table).where(table.id == row.id, *same).values(**values)
    done: Any = db.execute(statement.execution_options(synchronize_session=False))
    if done.rowcount != 1:
        raise Refused("Somebody else has changed this mark meanwhile. Nothing was saved; load the page anew.")
