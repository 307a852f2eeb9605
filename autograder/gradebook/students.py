"""`students extend | excuse | full-marks | drop`: decisions about students, each of which can be taken back.

nbgrader's gradebook holds what it can, so that its own pages and exports follow: extensions, full marks as marks, the
penalties that change with them, and no row of a dropped student. Doing it again changes nothing. With `undo` a
decision is taken back, with `dry` nothing is written. All return what was done, a line each.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from nbgrader.api import Base, Comment, Grade, Student, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from autograder.course import Course, CourseError
from autograder.files import write_atomically
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.database import in_transaction
from autograder.gradebook.decisions import DROPPED, ROWS, decide, decided, dropped
from autograder.gradebook.reader import class_list, due_and_points, scores, standings
from autograder.gradebook.writer import Rows, rows_of
from autograder.text import plural
from autograder.timestamps import NO_DATE

Row = dict[str, Any]


def extend(
    course: Course, name: str, students: Sequence[str], more: timedelta, until: str = "", undo: bool = False
) -> list[str]:
    """Give students `more` time for a set, or time `until` a moment; it takes the place of an earlier extension.

    Raises CourseError for who and what is not known, for a set that is not due, and where the time is not longer.
    """
    files = course.set_files(name)
    _must_know(course, students)
    due, _ = due_and_points(course, name)
    if due is None:
        add = f'nbgrader db assignment add {name} --duedate="2027-03-01 18:00 CET"'
        raise CourseError(f"{name} has no due date that could be extended; set one with `{add}`")
    if until:
        more = _moment(course, until) - due
    if more <= timedelta() and not undo:
        said = f"{name} is due {course.clock(due)}"
        raise CourseError(f"no time would be added; {said}: name --days, --hours or a later time with --until")
    remarks = ensure_assignment(course, files)

    def work(db: Session) -> None:
        rows = rows_of(db, name, students)
        for row in rows.submissions.values():
            row.extension = None if undo else more
        _count_penalties(db, course, name, rows)

    in_transaction(course, work)
    when = "has no extension" if undo else f"is extended by {more}: due {course.clock(due + more)}"
    return [*remarks, *(f"{student}: {name} {when}" for student in students)]


def excuse(course: Course, name: str, students: Sequence[str], undo: bool = False) -> list[str]:
    """Excuse students from a set: they have no mark for it. Raises CourseError for who and what is not known."""
    course.set_files(name)
    _must_know(course, students)
    decisions = decided(course.root, name)
    others = {*decisions.excused} - {*students}
    decisions.excused = sorted(others if undo else {*others, *students})
    decide(course.root, name, decisions)
    return [f"{student}: {'not ' * undo}excused from {name}" for student in students]


def full_marks(course: Course, name: str, exercises: Sequence[str], undo: bool = False, dry: bool = False) -> list[str]:
    """Give everybody whose work was graded, now or later, full marks for exercises; `undo` brings the marks back.

    An exercise is called by its grade_id, with or without `-tests`. A mark that a person changed afterwards stays when
    full marks are taken back. Raises CourseError for what is not known.
    """
    files = course.set_files(name)
    remarks = [] if dry else ensure_assignment(course, files)
    graded = [student for student, one in scores(course, name).items() if one.begun]

    def work(db: Session) -> list[str]:
        rows, decisions = rows_of(db, name, graded), decided(course.root, name)
        lines = []
        for cell in [_exercise(rows, name, exercise) for exercise in exercises]:
            most = rows.points[cell]
            grades = {student: grade for (student, of), grade in rows.grades.items() if of == cell}
            if undo:
                before = decisions.full_marks.pop(cell, None)
                grades = {s: g for s, g in grades.items() if before is not None and g.manual_score == most}
                for student, g in grades.items():
                    # who was graded since then had no mark by hand
                    was = (before or {}).get(student, (None, g.auto_score is None))
                    g.manual_score, g.needs_manual_grade = was
                lines.append(f"{name}: {cell} counts as it was marked, for {plural(len(grades), 'student')}")
            else:
                before = {student: (g.manual_score, g.needs_manual_grade) for student, g in grades.items()}
                decisions.full_marks.setdefault(cell, before)
                for g in grades.values():
                    g.manual_score, g.needs_manual_grade = most, False
                lines.append(f"{name}: full marks for {cell} ({most:g}) to {plural(len(grades), 'student')}")
        if dry:
            db.rollback()
        else:
            _count_penalties(db, course, name, rows)
            decide(course.root, name, decisions)
        return lines

    return remarks + in_transaction(course, work)


def drop(course: Course, students: Sequence[str], undo: bool = False, dry: bool = False) -> list[str]:
    """Put all that is known of students into `dropped/<student>/`, or with `undo` back: gradebook, work and results.

    Raises CourseError for who is not known, OSError where a folder is in the way.
    """
    gone = dropped(course.root)
    _must_know(course, students, gone)
    lines = []
    for student in students:
        away = course.root / DROPPED / student
        if not undo:
            if not dry:
                in_transaction(course, partial(_take_out, student=student, file=away / ROWS))
            moved = len([*_moved(course, student, course.root, away, dry)])
            lines.append(f"{student}: dropped; {plural(moved, 'folder or file', 'folders and files')} in {away}")
        elif student not in gone:
            lines.append(f"{student}: was not dropped")
        else:
            moved = len([*_moved(course, student, away, course.root, dry)])
            if not dry:
                in_transaction(course, partial(_put_back, file=away / ROWS))
                shutil.rmtree(away)
            lines.append(f"{student}: is back, with {plural(moved, 'folder or file', 'folders and files')}")
    return lines


def _must_know(course: Course, students: Sequence[str], more: Iterable[str] = ()) -> None:
    """Raises CourseError for a student whom neither the gradebook nor a folder of handed-in work knows."""
    known = {row["id"] for row in class_list(course)}.union(*map(course.submissions, course.set_names()), more)
    for student in students:
        if student not in known:
            raise CourseError(f"there is no student {student!r} in the gradebook, and none handed in anything")


def _exercise(rows: Rows, name: str, exercise: str) -> str:
    """The grade_id of an exercise. Raises CourseError."""
    for cell in (exercise, f"{exercise}-tests"):
        if cell in rows.points:
            return cell
    raise CourseError(f"there is no exercise {exercise!r} in {name}; they are {', '.join(rows.points)}")


def _moment(course: Course, words: str) -> datetime:
    """A time in UTC without a zone, of words that count in the course's zone unless they name one."""
    try:
        return course.moment(words).astimezone(UTC).replace(tzinfo=None)
    except NO_DATE as error:
        raise CourseError(f"{words!r} is no time; write it like '2027-03-01 18:00'") from error


def _count_penalties(db: Session, course: Course, name: str, rows: Rows) -> None:
    """The penalties that nbgrader shows follow from the marks and extensions as they are now."""
    db.flush()
    now = standings(db, course, name)
    for student, notebook in rows.notebooks.items():
        notebook.late_submission_penalty = now[student].late_penalty


def _of_student(student: str) -> dict[type[Base], Any]:
    """Each of nbgrader's tables with rows of a student, those that are named by others first, and which rows."""
    submissions = SubmittedAssignment.student_id == student
    notebooks = SubmittedNotebook.assignment_id.in_(select(SubmittedAssignment.id).where(submissions))
    cells = select(SubmittedNotebook.id).where(notebooks)
    named = {Student: Student.id == student, SubmittedAssignment: submissions, SubmittedNotebook: notebooks}
    return {**named, Grade: Grade.notebook_id.in_(cells), Comment: Comment.notebook_id.in_(cells)}


def _take_out(db: Session, student: str, file: Path) -> None:
    """Move a student's rows from the gradebook into a file, which may hold some already."""
    tables = _of_student(student)
    rows: dict[str, list[Row]] = json.loads(file.read_bytes()) if file.exists() else {}
    for table, mine in tables.items():
        found = {row["id"]: row for row in rows.get(table.__tablename__, [])}
        found |= {row["id"]: dict(row) for row in db.execute(select(table.__table__).where(mine)).mappings()}
        rows[table.__tablename__] = [*found.values()]
    write_atomically(file, json.dumps(rows, ensure_ascii=False, indent=1, default=_as_json).encode())
    for table, mine in reversed(tables.items()):
        db.execute(delete(table).where(mine).execution_options(synchronize_session=False))


def _as_json(value: datetime | timedelta) -> str | float:
    return value.total_seconds() if isinstance(value, timedelta) else value.isoformat()


def _put_back(db: Session, file: Path) -> None:
    """The rows stand in the gradebook again, except those of sets, notebooks and cells that are there no more."""
    rows: dict[str, list[Row]] = json.loads(file.read_bytes())
    for kind in _of_student(""):
        table = kind.__table__
        mine = rows.get(table.name, [])
        for row in mine:
            if row.get("timestamp") is not None:
                row["timestamp"] = datetime.fromisoformat(row["timestamp"])
            if row.get("extension") is not None:
                row["extension"] = timedelta(seconds=row["extension"])
        for key in table.foreign_keys:
            known = set(db.scalars(select(key.column)))
            mine = [row for row in mine if row[key.parent.name] in known]
        there = set(db.scalars(select(table.c.id)))
        if mine := [row for row in mine if row["id"] not in there]:
            db.execute(insert(table), mine)


def _moved(course: Course, student: str, source: Path, target: Path, dry: bool) -> Iterator[Path]:
    """Move the student's work, results and pages to the same places below another folder; yields each."""
    name = glob.escape(student)
    steps = (course.step_folder(step, name, "*").relative_to(course.root) for step in ("submitted", "autograded"))
    pages = course.feedback_folder.relative_to(course.root) / name / "*"
    results = course.results_folder.relative_to(course.root)
    for pattern in (
        *steps,
        pages,
        *(results / below / f"{name}.json" for below in ("*", "*/.before", "*/.attempts/*/*")),
    ):
        for path in sorted(source.glob(str(pattern))):
            if not dry:
                place = target / path.relative_to(source)
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(path, place)
                if path.parent.name == student and not any(path.parent.iterdir()):
                    path.parent.rmdir()
            yield path
