"""The one writer of results: rows of nbgrader's gradebook, and the notebooks in `autograded/`.

Results go in by the hundred, in one transaction each. What a person entered (manual scores, extra credit, comments,
extensions) is never changed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, partial
from math import isclose

from nbgrader.api import Assignment, BaseCell, Comment, Grade, Notebook, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Course, SetFiles
from autograder.files import is_safe_name
from autograder.gradebook.autograded import any_database_takes, changed_answers, write_autograded
from autograder.gradebook.database import GradebookError, in_transaction, notebook_of, rows_between, said
from autograder.gradebook.reader import CellScore, Standing, count_lateness
from autograder.results import GRADED, Exercise, Result
from autograder.text import shown
from autograder.timestamps import read_timestamp

AT_ONCE = 100  # submissions in one transaction


@dataclass
class Written:
    """`remarks` for the instructor (a timestamp that is none); `problems`: what could not be written, and why."""

    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def write(course: Course, results: Iterable[Result]) -> Written:
    """Write a set's results into the gradebook and into `autograded/`; the same results again change nothing.

    The set must stand in the gradebook (`ensure_assignment`). A student who cannot be written becomes a line in
    `problems`, the others are written. Raises GradebookError when the database stays locked or lost, CourseError for a
    set that the course does not have.
    """
    written = Written()
    waiting: dict[str, Result] = {}
    locked: list[GradebookError] = []

    def put() -> None:
        group = dict(waiting)
        waiting.clear()
        try:
            _write_group(course, group, written)
        except GradebookError as error:  # the results that are still to come are made and stored all the same
            locked.append(error)

    try:
        for result in results:
            if is_safe_name(result.student):
                waiting[result.student] = result
            else:
                written.problems.append(f"{shown(result.student)!r} cannot be the name of a student's folder")
            if len(waiting) >= AT_ONCE:
                put()
    finally:  # also what came before the run was stopped
        if waiting:
            put()
    if locked:
        raise locked[0]
    return written


def _write_group(course: Course, group: dict[str, Result], written: Written) -> None:
    files = course.set_files(next(iter(group.values())).assignment)
    stamps = {}
    for student in group:
        stamps[student], remark = read_timestamp(course.step_folder("submitted", student, files.name))
        if remark:
            written.remarks.append(f"{student}: {remark}")
    try:
        in_transaction(course, lambda db: _write_rows(db, course, files, group, stamps))
    except SQLAlchemyError as error:  # a value that this database does not take: find whose it is
        if len(group) > 1:
            for student, result in group.items():
                _write_group(course, {student: result}, written)
        else:
            written.problems += [f"{s}: the gradebook does not take this result ({said(error)})" for s in group]
        return
    for e in (e for result in group.values() for e in result.exercises if len(e.checks) > 1):
        total = sum(check.points for check in e.checks)
        remark = f"{files.name}: {e.grade_id} has {e.points:g} points, its checks {total:g}: each counts in proportion"
        if not isclose(total, e.points) and remark not in written.remarks:
            written.remarks.append(remark)
    for student, result in group.items():
        try:
            write_autograded(course, files, result, stamps[student] is not None)
        except OSError as error:
            where = course.step_folder("autograded", student, files.name)
            written.problems.append(f"{student}: {where} cannot be written: {error.strerror}")


def _write_rows(
    db: Session, course: Course, files: SetFiles, results: Mapping[str, Result], stamps: Mapping[str, datetime | None]
) -> None:
    """Some results of one set."""
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

    known = set(db.scalars(select(Student.id).where(Student.id.in_(results))))
    db.add_all(Student(id=student) for student in results if student not in known)
    came = rows_between(db, SubmittedAssignment, "assignment_id", [assignment], "student_id", results)
    handed_in = [row.id for row in came.values()]
    submitted = rows_between(db, SubmittedNotebook, "notebook_id", [notebook], "assignment_id", handed_in)
    ids = [row.id for row in submitted.values()]
    grades = rows_between(db, Grade, "notebook_id", ids, "cell_id", graded)
    comments = rows_between(db, Comment, "notebook_id", ids, "cell_id", commented)

    standings = {s: Standing({}, stamps[s], due, came[assignment, s].extension or timedelta()) for s in results}
    for student, result in results.items():
        row = submitted[notebook, came[assignment, student].id]
        exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
        changed = cache(partial(changed_answers, course, files, result))
        for cell, name in graded.items():
            grade = grades[row.id, cell]
            mark = standings[student].cells[name] = _mark(name, exercises.get(name), grade, changed)
            grade.auto_score, grade.needs_manual_grade = mark.auto, mark.needs_manual
        unanswered = {i for e in exercises.values() if not e.answered for i in e.solution_ids}
        for cell, name in commented.items():
            comments[row.id, cell].auto_comment = _comment(result, name in unanswered)
    # nbgrader's own pages show this penalty; the reader counts it anew
    count_lateness(course, standings)
    for student, standing in standings.items():
        submission = came[assignment, student]
        submission.timestamp = standing.timestamp
        submitted[notebook, submission.id].late_submission_penalty = standing.late_penalty


def _mark(grade_id: str, exercise: Exercise | None, old: Grade, changed: Callable[[], set[str] | None]) -> CellScore:
    """What a cell's grade becomes; `old` is its row in the gradebook, `changed` gives `changed_answers`."""
    mark = CellScore(manual=old.manual_score, extra_credit=old.extra_credit)
    if exercise is not None and exercise.kind == "auto":
        mark.auto = exercise.score
    elif exercise is not None and not exercise.answered:
        mark.auto = 0.0
    mark.needs_manual = mark.auto is None
    if mark.manual is not None:
        # nbgrader asks for a new look at every mark after every run; here only if something changed.
        texts = [grade_id, *(exercise.solution_ids if exercise else [])]
        same = old.auto_score == mark.auto and (new := changed()) is not None and new.isdisjoint(texts)
        mark.needs_manual = old.needs_manual_grade if same else True
    return mark


def _comment(result: Result, unanswered: bool) -> str | None:
    """nbgrader's automatic comment on an answer."""
    if result.status != GRADED:
        return f"Not graded ({result.status}): {any_database_takes(result.reason)}"
    return "No response." if unanswered else None


def note_students(course: Course, students: Mapping[str, Mapping[str, str]]) -> None:
    """Add students, by id, to the gradebook, and fill in details that it does not have. Raises GradebookError."""

    def work(db: Session) -> None:
        known = {s.id: s for s in db.scalars(select(Student))}
        for student, details in students.items():
            row = known.get(student) or Student(id=student)
            db.add(row)
            for key, value in details.items():
                if value and not getattr(row, key):
                    setattr(row, key, value)

    in_transaction(course, work)
