"""The one writer of results: rows of nbgrader's gradebook, and the notebooks in `autograded/`.

Results go in by the hundred, in one transaction each. What a person entered (manual scores, extra credit, comments,
extensions) is never changed here, except where everybody was given full marks for an exercise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, partial
from math import isclose
from typing import NamedTuple

from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Course, SetFiles
from autograder.files import is_safe_name
from autograder.gradebook.autograded import any_database_takes, changed_answers, write_autograded
from autograder.gradebook.database import GradebookError, in_transaction, notebook_of, rows_between, said
from autograder.gradebook.decisions import decided, folder_of
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
    stamps, decisions = {}, decided(course.root, files.name)
    newest = {student: course.step_folder("submitted", student, files.name) for student in group}
    folders = {student: folder_of(folder, decisions, student) for student, folder in newest.items()}
    for student, folder in folders.items():
        stamps[student], remark = read_timestamp(folder)
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
            write_autograded(course, files, result, folders[student] if stamps[student] else None)
        except OSError as error:
            where = course.step_folder("autograded", student, files.name)
            written.problems.append(f"{student}: {where} cannot be written: {error.strerror}")


class Rows(NamedTuple):
    """Some students' submissions of a set, by student, or student and grade_id; `points` of cells, by grade_id."""

    due: datetime | None
    points: dict[str, float]
    submissions: dict[str, SubmittedAssignment]
    notebooks: dict[str, SubmittedNotebook]
    grades: dict[tuple[str, str], Grade]
    comments: dict[tuple[str, str], Comment]


def rows_of(db: Session, name: str, students: Collection[str]) -> Rows:
    """The rows of the students' submissions, made where there are none, as are the students. Raises GradebookError."""
    found = db.execute(
        select(Notebook.id, Assignment.id, Assignment.duedate)
        .join(Notebook.assignment)
        .where(Notebook.id.in_(notebook_of(name)))
    ).one_or_none()
    if found is None:
        raise GradebookError(f"{name} is not in the gradebook yet; run `autograder grade`")
    notebook, assignment, due = found
    kinds = [select(k.id, k.name, k.max_score).where(k.notebook_id == notebook) for k in (GradeCell, TaskCell)]
    graded = {i: (cell, float(most or 0.0)) for kind in kinds for i, cell, most in db.execute(kind)}
    comment_on = BaseCell.notebook_id == notebook, BaseCell.type.in_(("SolutionCell", "TaskCell"))
    commented = {i: cell for i, cell in db.execute(select(BaseCell.id, BaseCell.name).where(*comment_on))}

    known = set(db.scalars(select(Student.id).where(Student.id.in_(students))))
    db.add_all(Student(id=student) for student in students if student not in known)
    came = rows_between(db, SubmittedAssignment, "assignment_id", [assignment], "student_id", students)
    handed_in = {row.id: student for (_, student), row in came.items()}
    submitted = rows_between(db, SubmittedNotebook, "notebook_id", [notebook], "assignment_id", handed_in)
    owners = {row.id: handed_in[submission] for (_, submission), row in submitted.items()}
    grades = rows_between(db, Grade, "notebook_id", owners, "cell_id", graded)
    comments = rows_between(db, Comment, "notebook_id", owners, "cell_id", commented)
    return Rows(
        due,
        dict(graded.values()),
        {student: row for (_, student), row in came.items()},
        {handed_in[submission]: row for (_, submission), row in submitted.items()},
        {(owners[i], graded[cell][0]): row for (i, cell), row in grades.items()},
        {(owners[i], commented[cell]): row for (i, cell), row in comments.items()},
    )


def _write_rows(
    db: Session, course: Course, files: SetFiles, results: Mapping[str, Result], stamps: Mapping[str, datetime | None]
) -> None:
    """Some results of one set."""
    rows = rows_of(db, files.name, results)
    decisions = decided(course.root, files.name)
    standings = {
        s: Standing({}, stamps[s], rows.due, row.extension or timedelta(), excused=s in decisions.excused)
        for s, row in rows.submissions.items()
    }
    changed = {s: cache(partial(changed_answers, course, files, result)) for s, result in results.items()}
    exercises = {(s, e.grade_id): e for s, r in results.items() if r.status == GRADED for e in r.exercises}
    for (student, name), grade in rows.grades.items():
        exercise = exercises.get((student, name))
        mark = standings[student].cells[name] = _mark(name, exercise, grade, changed[student])
        if exercise and name in decisions.full_marks:
            mark.manual, mark.needs_manual = rows.points[name], False
        grade.auto_score, grade.manual_score, grade.needs_manual_grade = mark.auto, mark.manual, mark.needs_manual
    unanswered = {(s, i) for (s, _), e in exercises.items() if not e.answered for i in e.solution_ids}
    for (student, name), comment in rows.comments.items():
        comment.auto_comment = _comment(results[student], (student, name) in unanswered)
    # nbgrader's own pages show this penalty; the reader counts it anew
    count_lateness(course, standings)
    for student, standing in standings.items():
        rows.submissions[student].timestamp = standing.timestamp
        rows.notebooks[student].late_submission_penalty = standing.late_penalty


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
