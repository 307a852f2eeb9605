"""What the gradebook holds: what a submission is worth and why, the class list, and the dates."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from nbgrader.api import Assignment, Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.plugins import LateSubmissionPlugin
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import select
from sqlalchemy.orm import Session

from autograder.course import Course, CourseError
from autograder.gradebook.database import look, notebook_of, of_cells
from autograder.gradebook.decisions import STUDENT, decided, dropped
from autograder.text import plural, shown


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

    @property
    def by_hand(self) -> bool:
        return self.manual is not None or None not in (self.auto, self.extra_credit)


@dataclass
class Standing:
    """One student's set: cells by grade_id, when it came and the set was due (UTC, no zone), this one's `extension`.

    `late_penalty` are the points taken off for lateness (None: none) by nbgrader's rule and all marks of this moment;
    `problem` says why they could not be computed. `when` says the times in words, "" where none is known. Who is
    `excused` has no mark and is never late.
    """

    cells: dict[str, CellScore] = field(default_factory=dict)
    timestamp: datetime | None = None
    due: datetime | None = None
    extension: timedelta = timedelta()
    late_penalty: float | None = None
    problem: str = ""
    when: str = ""
    excused: bool = False

    @property
    def max_score(self) -> float:
        return sum(c.max_score or 0.0 for c in self.cells.values())

    @property
    def needs_manual(self) -> bool:
        return any(c.needs_manual for c in self.cells.values())

    @property
    def begun(self) -> bool:  # an extension may stand in the gradebook before there is any work
        return any(c.auto is not None or c.by_hand for c in self.cells.values())

    @property
    def points(self) -> float:
        """Points with manual marks and extra credit, before the late penalty."""
        return sum(c.score for c in self.cells.values())

    @property
    def known(self) -> float:
        """The points of the cells that are marked."""
        return sum(c.max_score or 0.0 for c in self.cells.values() if c.by_hand or c.auto is not None)

    @property
    def total(self) -> float | None:
        """Points with manual marks, extra credit and the late penalty; never below 0; None for who is excused."""
        return self.mark(self.points)

    def mark(self, points: float) -> float | None:
        """What so many points are worth after the late penalty; never below 0; None for who is excused."""
        return None if self.excused else max(0.0, points - (self.late_penalty or 0.0))

    @property
    def late(self) -> timedelta:
        """How late it came; 0 for what came in time, and where the time or the due date is not known."""
        if self.timestamp is None or self.due is None or self.excused:
            return timedelta()
        return max(timedelta(), self.timestamp - self.due - self.extension)


def count_lateness(course: Course, found: Mapping[str, Standing]) -> None:
    """Fill in `late_penalty`, `problem` and `when`, by the marks as they are. Raises CourseError."""
    plugin = _late_plugin(course) if any(one.late for one in found.values()) else LateSubmissionPlugin()
    for student, one in found.items():
        try:
            taken = plugin.late_submission_penalty(student, one.points, one.late.total_seconds()) if one.late else None
            one.late_penalty = None if taken is None else float(min(max(taken, 0), one.points))
        except Exception as error:  # the plugin is the instructor's own code; the class must not stop at its bug
            why = f"{type(error).__name__}: {error}"
            one.problem = f"{student}: the penalty for lateness could not be computed ({why}); there is none"
        came = f"handed in {course.clock(one.timestamp)}" if one.timestamp else ""
        due = f"due {course.clock(one.due)}" if one.due else ""
        more = f"extended by {one.extension}" if one.extension else ""
        late = f"{one.late - one.late % timedelta(seconds=1)} late with a penalty of {one.late_penalty or 0:g}"
        one.when = ", ".join(filter(None, (came, due, more, late * bool(one.late), "excused" * one.excused)))


def _late_plugin(course: Course) -> Any:
    """The plugin of nbgrader's AssignLatePenalties; where that is off, one that takes nothing. Raises CourseError."""
    # A plugin of the course's own is imported from the course folder, as nbgrader does when run there.
    sys.path.insert(0, str(course.root))
    try:
        rule = AssignLatePenalties(config=course.config)
        rule.init_plugin()
    except Exception as error:
        raise CourseError(f"the plugin for late submissions cannot be used: {error}") from error
    finally:
        sys.path.remove(str(course.root))
    return rule.plugin_inst if rule.enabled else LateSubmissionPlugin()


def scores(course: Course, name: str) -> dict[str, Standing]:
    """What each submission of a set is worth at this moment, by student; empty where there is no gradebook yet.

    Every command and page that tells a mark takes it from here. Raises GradebookError, CourseError.
    """
    found: dict[str, Standing] = look(course, lambda db: standings(db, course, name), {})
    return found


def standings(db: Session, course: Course, name: str) -> dict[str, Standing]:
    """`scores` as they are in a transaction. Raises CourseError."""
    found = _scores(db, name)
    for student in {*decided(course.root, name).excused} - {*dropped(course.root)}:
        found.setdefault(student, Standing()).excused = True
    count_lateness(course, found)
    return found


def _scores(db: Session, name: str) -> dict[str, Standing]:
    ours = SubmittedNotebook.notebook_id.in_(notebook_of(name))
    joined = select(SubmittedAssignment).join(SubmittedAssignment.notebooks).order_by(SubmittedAssignment.student_id)
    found = {
        row.student_id: Standing({}, row.timestamp, row.assignment.duedate, row.extension or timedelta())
        for row in db.scalars(joined.where(ours))
    }
    marks = Grade.auto_score, Grade.manual_score, Grade.extra_credit, Grade.needs_manual_grade
    for student, cell, most, *row in db.execute(of_cells(Grade, Grade.max_score, *marks).where(ours)):
        score = found[student].cells[cell] = CellScore(*row)
        score.max_score = most
    comments = of_cells(Comment, Comment.manual_comment, Comment.auto_comment).where(ours)
    for student, cell, by_hand, automatic in db.execute(comments):
        score = found[student].cells.setdefault(cell, CellScore())
        score.comment, score.auto_comment = by_hand or "", automatic or ""
    return found


def lateness(course: Course, name: str, found: Mapping[str, Standing] | None = None) -> list[str]:
    """How many came late, by what clock, and each penalty not known; by `found`, else `scores`. Raises CourseError."""
    found = scores(course, name) if found is None else found
    late = [student for student, one in found.items() if one.late]
    due = late and found[late[0]].due
    if not due:
        return []
    losing = sum(bool(one.late_penalty) for one in found.values())
    counted = plural(sum(not one.excused for one in found.values()), "submission")
    said = f"{len(late)} of {counted} came late" + f", {losing} with a penalty" * bool(losing)
    said = f"{name}: {said} (due {course.clock(due)}): {shown(', '.join(late), 200)}"
    if "timezone" not in course.config.Exchange:
        said += f"; times without a zone count as {course.clock(due).split()[-1]} (c.Exchange.timezone is not set)"
    return [said, *(one.problem for one in found.values() if one.problem)]


def class_list(course: Course) -> list[dict[str, Any]]:
    """The students in the gradebook: id, first_name, last_name, email, lms_user_id. Raises GradebookError."""
    known = [getattr(Student, key) for key in STUDENT]
    rows: list[Any] = look(course, lambda db: [*db.execute(select(*known).order_by(Student.id)).mappings()], [])
    return [{key: value or "" for key, value in row.items()} for row in rows]


def due_and_points(course: Course, name: str) -> tuple[datetime | None, float | None]:
    """When a set is due (UTC, without a zone) and its points, where the gradebook has them. Raises GradebookError."""
    columns = select(Assignment.duedate, Assignment.max_score).where(Assignment.name == name)
    due, points = look(course, lambda db: db.execute(columns).one_or_none(), None) or (None, None)
    return due, points
