"""The one writer of results: rows of nbgrader's gradebook, and the notebooks in `autograded/`.

Results go in by the hundred, in one transaction each. What a person entered (manual scores, extra credit, comments,
extensions) is never changed here.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from nbgrader.api import Assignment, BaseCell, Comment, Grade, Notebook, Student, SubmittedAssignment, SubmittedNotebook
from nbgrader.preprocessors import AssignLatePenalties
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Course, CourseError, SetFiles
from autograder.files import is_safe_name
from autograder.gradebook.autograded import Answers, any_database_takes, write_autograded
from autograder.gradebook.database import (
    GradebookError,
    ensured,
    in_transaction,
    insert_rows,
    notebook_of,
    said,
    update_rows,
)
from autograder.gradebook.reader import CellScore
from autograder.results import GRADED, Exercise, Result
from autograder.text import shown
from autograder.timestamps import read_timestamp

AT_ONCE = 100
"""Submissions in one transaction."""

log = logging.getLogger(__name__)


@dataclass
class Written:
    """`remarks` for the instructor (a timestamp that is none); `problems`: what could not be written, and why."""

    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def write(course: Course, results: Iterable[Result]) -> Written:
    """Write results into the gradebook and into `autograded/`; the same results again change nothing.

    Results may be of several sets; sets must stand in the gradebook (`ensure_assignment`). A student who cannot be
    written becomes a line in `problems`, the others are written. Raises GradebookError when the database stays locked
    or lost, CourseError for a set that the course does not have.
    """
    written = Written()
    waiting: dict[str, dict[str, Result]] = {}
    locked: list[GradebookError] = []

    def put(name: str) -> None:
        try:
            _write_group(course, name, waiting.pop(name), written)
        except GradebookError as error:  # the results that are still to come are made and stored all the same
            locked.append(error)

    try:
        for result in results:
            if not is_safe_name(result.student):
                written.problems.append(f"{shown(result.student)!r} cannot be the name of a student's folder")
                continue
            group = waiting.setdefault(result.assignment, {})
            group[result.student] = result
            if len(group) >= AT_ONCE:
                put(result.assignment)
    finally:  # also what came before the run was stopped
        for name in list(waiting):
            put(name)
    if locked:
        raise locked[0]
    return written


def _write_group(course: Course, name: str, group: dict[str, Result], written: Written) -> None:
    files = course.set_files(name)
    stamps = {}
    for student in group:
        stamps[student], remark = read_timestamp(course.step_folder("submitted", student, name))
        if remark:
            written.remarks.append(f"{student}: {remark}")
    try:
        written.remarks += in_transaction(course, lambda db: _write_rows(db, course, files, group, stamps))
    except SQLAlchemyError as error:  # a value that this database does not take: find whose it is
        if len(group) > 1:
            for student, result in group.items():
                _write_group(course, name, {student: result}, written)
        else:
            written.problems += [f"{s}: the gradebook does not take this result ({said(error)})" for s in group]
        return
    for result in group.values():
        try:
            write_autograded(course, files, result)
        except OSError as error:
            where = course.step_folder("autograded", result.student, name)
            written.problems.append(f"{result.student}: {where} cannot be written: {error.strerror}")


# --- one transaction -------------------------------------------------------------------------------------------------


def _write_rows(
    db: Session, course: Course, files: SetFiles, results: Mapping[str, Result], stamps: Mapping[str, datetime | None]
) -> list[str]:
    """Some results of one set; returns remarks."""
    found = db.execute(
        select(Notebook.id, Assignment.id, Assignment.duedate)
        .join(Notebook.assignment)
        .where(Notebook.id.in_(notebook_of(files.name)))
    ).one_or_none()
    if found is None:
        raise GradebookError(f"{files.name} is not in the gradebook yet; run `python -m autograder grade`")
    notebook, assignment, due = found
    cells = db.execute(select(BaseCell.id, BaseCell.name, BaseCell.type).where(BaseCell.notebook_id == notebook)).all()
    graded = {i: name for i, name, kind in cells if kind in ("GradeCell", "TaskCell")}
    commented = {i: name for i, name, kind in cells if kind in ("SolutionCell", "TaskCell")}

    known = set(db.scalars(select(Student.id).where(Student.id.in_(list(results)))))
    insert_rows(db, Student, [{"id": student} for student in results if student not in known])
    dates, penalty = ("timestamp", "extension"), "late_submission_penalty"
    came = ensured(db, SubmittedAssignment, "assignment_id", [assignment], "student_id", results, *dates)
    handed_in = [row.id for row in came.values()]
    submitted = ensured(db, SubmittedNotebook, "notebook_id", [notebook], "assignment_id", handed_in, penalty)
    ids = [row.id for row in submitted.values()]
    marks = ("auto_score", "manual_score", "extra_credit", "needs_manual_grade")
    grades = ensured(db, Grade, "notebook_id", ids, "cell_id", graded, *marks)
    comments = ensured(db, Comment, "notebook_id", ids, "cell_id", commented, "auto_comment")

    remarks: list[str] = []
    late_plugin = cache(lambda: _late_plugin(course))
    new_stamps, new_penalties, new_grades, new_comments = [], [], [], []
    for student, result in results.items():
        submission = came[assignment, student]
        row = submitted[notebook, submission.id]
        exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
        answers = Answers(course, files, result)
        score = 0.0
        for cell, name in graded.items():
            old = grades[row.id, cell]
            mark = _mark(name, exercises.get(name), old, answers)
            new_grades.append((old, {"auto_score": mark.auto, "needs_manual_grade": mark.needs_manual}))
            score += mark.score
        unanswered = {i for e in exercises.values() if not e.answered for i in e.solution_ids}
        for cell, name in commented.items():
            new_comments.append((comments[row.id, cell], {"auto_comment": _comment(result, name in unanswered)}))
        until = due and due + (submission.extension or timedelta())
        stamp, taken = stamps[student], None
        if stamp and until and stamp > until and (plugin := late_plugin()):
            try:
                taken = plugin.late_submission_penalty(student, score, (stamp - until).total_seconds())
                taken = None if taken is None else float(min(max(taken, 0), score))
            except Exception as error:  # the plugin is the instructor's own code; the class must not stop at its bug
                why = f"{type(error).__name__}: {error}"
                remarks.append(f"{student}: the penalty for lateness could not be computed ({why}); there is none")
        new_stamps.append((submission, {"timestamp": stamp}))
        new_penalties.append((row, {penalty: taken}))
    update_rows(db, SubmittedAssignment, new_stamps)
    update_rows(db, SubmittedNotebook, new_penalties)
    update_rows(db, Grade, new_grades)
    update_rows(db, Comment, new_comments)
    return remarks


def _mark(grade_id: str, exercise: Exercise | None, old: Any, answers: Answers) -> CellScore:
    """What a cell's grade becomes; `old` is its row in the gradebook."""
    mark = CellScore(manual=old.manual_score, extra_credit=old.extra_credit)
    if exercise is not None and exercise.kind == "auto":
        mark.auto = exercise.score
    elif exercise is not None and not exercise.answered:
        mark.auto = 0.0
    mark.needs_manual = mark.auto is None
    if mark.manual is not None:
        # nbgrader asks for a new look at every mark after every run; here only if something changed.
        texts = [grade_id, *(exercise.solution_ids if exercise else [])]
        same = old.auto_score == mark.auto and answers.same(texts)
        mark.needs_manual = old.needs_manual_grade if same else True
    return mark


def _comment(result: Result, unanswered: bool) -> str | None:
    """nbgrader's automatic comment on an answer."""
    if result.status != GRADED:
        return f"Not graded ({result.status}): {any_database_takes(result.reason)}"
    return "No response." if unanswered else None


def _late_plugin(course: Course) -> Any:
    """The plugin with which nbgrader's AssignLatePenalties would take points off; None where it is off.

    Raises CourseError.
    """
    # A plugin of the course's own is imported from the course folder, as nbgrader does when run there.
    sys.path.insert(0, str(course.root))
    try:
        rule = AssignLatePenalties(config=course.config, log=log)
        rule.init_plugin()
    except Exception as error:
        raise CourseError(f"the plugin for late submissions cannot be used: {error}") from error
    finally:
        sys.path.remove(str(course.root))
    return rule.plugin_inst if rule.enabled else None


# --- the class -------------------------------------------------------------------------------------------------------


def note_students(course: Course, students: Mapping[str, Mapping[str, str]]) -> None:
    """Add students, by id, to the gradebook, and fill in details that it does not have. Raises GradebookError."""

    def work(db: Session) -> None:
        known = {s.id: s for s in db.scalars(select(Student))}
        for student, details in students.items():
            row = known.get(student)
            if row is None:
                row = Student(id=student)
                db.add(row)
            for key, value in details.items():
                if value and not getattr(row, key):
                    setattr(row, key, value)

    in_transaction(course, work)
