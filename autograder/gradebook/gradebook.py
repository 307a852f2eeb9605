"""The one writer of nbgrader's gradebook, and of the `autograded/` notebooks that formgrader shows.

Results go in by the hundred, in one transaction each, and a locked database is tried again. What a person entered
(manual scores, extra credit, comments, extensions) is never changed here. Works on every database that nbgrader's
`c.CourseDirectory.db_url` can name.
"""

from __future__ import annotations

import html
import json
import logging
import os
import random
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from uuid import uuid4

import dateutil.parser
import nbformat
from nbgrader import utils
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.converters import GenerateAssignment
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.preprocessors import AssignLatePenalties, SaveCells
from sqlalchemy import create_engine, delete, insert, inspect, select, text, update
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session
from traitlets.utils.importstring import import_item

from autograder.course import Course, CourseError, SetFiles
from autograder.grading.store import safe_name, write_atomically
from autograder.html.feedback import Manual
from autograder.notebook.reader import Unreadable, new_cell, read_bytes, shown
from autograder.results import GRADED, Exercise, Result

AT_ONCE = 100
"""Submissions in one transaction."""
TRIES = 7
FIRST_PAUSE = 0.2
"""Seconds before the second try; each further pause is twice as long."""
TIMESTAMP = "timestamp.txt"
REMOVED = "removed-marks.jsonl"
RUBRIC = "autograder_rubric"
"""Metadata of a cell that only those who mark may see."""
DETAILS = ("first_name", "last_name", "email", "lms_user_id")
"""What nbgrader keeps about a student besides the id."""

log = logging.getLogger(__name__)
T = TypeVar("T")


class GradebookError(CourseError):
    """The gradebook cannot be read or written; one line that says why and what to do."""


@dataclass
class Written:
    """`remarks` for the instructor (a timestamp that is none); `problems`: what could not be written, and why."""

    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


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
    def total(self) -> float:
        return max(0.0, sum(c.score for c in self.cells.values()) - (self.late_penalty or 0.0))


# --- the database ----------------------------------------------------------------------------------------------------


@contextmanager
def _opened(course: Course) -> Iterator[Session]:
    """A session on the gradebook, whose tables are made when it is new."""
    _begin(course.db_url)
    book = Gradebook(course.db_url, course.dirs.course_id or "default_course")
    try:
        with Session(book.engine) as db:
            yield db
    finally:
        book.close()


def _begin(url: str) -> None:
    """Give a new gradebook its schema version.

    nbgrader does so by calling the command `alembic`, which takes seconds and has to be on PATH; with the version in
    place it only makes its tables.
    """
    engine = create_engine(url)
    try:
        if not inspect(engine).get_table_names():
            from alembic.script import ScriptDirectory  # takes a while, and is for a new gradebook only

            version = ScriptDirectory(ALEMBIC_DIR).get_current_head()
            with engine.begin() as connection:
                connection.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL)"))
                connection.execute(text("INSERT INTO alembic_version VALUES (:version)"), {"version": version})
    finally:
        engine.dispose()


def _said(error: BaseException) -> str:
    """The database's own words, on one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return shown(lines[0] if lines else type(error).__name__, 200)


def _shown_url(course: Course) -> str:
    return make_url(course.db_url).render_as_string(hide_password=True)


def _transaction(course: Course, work: Callable[[Session], T]) -> T:
    """`work` in a transaction of its own; where the database is locked or lost, tried again. Raises GradebookError."""
    pause = FIRST_PAUSE
    problem: SQLAlchemyError | None = None
    for number in range(TRIES):
        if number:
            time.sleep(pause * random.uniform(0.8, 1.2))
            pause *= 2
        try:
            with _opened(course) as db:
                value = work(db)
                db.commit()
                return value
        except (OperationalError, IntegrityError) as error:  # locked, lost, or another writer came first
            problem = error
    raise GradebookError(
        f"the gradebook {_shown_url(course)} could not be written in {TRIES} tries ({_said(problem)}); close what "
        "uses it and run the command again: results are stored and need no new run"
    ) from problem


# --- the set in the gradebook ----------------------------------------------------------------------------------------


@dataclass
class _Cells:
    """The cells of a set as nbgrader's SaveCells would record them, by name."""

    kernelspec: str
    grade: dict[str, dict[str, Any]] = field(default_factory=dict)
    solution: dict[str, dict[str, Any]] = field(default_factory=dict)
    task: dict[str, dict[str, Any]] = field(default_factory=dict)
    source: dict[str, dict[str, Any]] = field(default_factory=dict)


def ensure_assignment(course: Course, files: SetFiles) -> list[str]:
    """The set, its notebook and its cells stand in the gradebook as the source has them; returns remarks.

    nbgrader refuses to add or remove cells once there are submissions. Here they are changed in place: submissions,
    scores and comments of all other cells stay, new cells are added to every submission, and what a person entered
    for a cell that is gone is first saved in `results/<set>/removed-marks.jsonl`. Raises GradebookError, CourseError.
    """
    cells = _cells(course, files)
    notebooks = {files.name, *(p.stem for p in files.folder.glob("*.ipynb"))}
    return _transaction(course, lambda db: _match(db, course, files.name, cells, notebooks))


def _cells(course: Course, files: SetFiles) -> _Cells:
    """Run GenerateAssignment's own preprocessors in memory, up to the one that saves the cells."""
    name = files.name
    notebook = deepcopy(files.source)
    resources: dict[str, Any] = {
        "unique_key": name,
        "metadata": {"path": str(files.folder)},
        "nbgrader": {"student": ".", "assignment": name, "notebook": name, "db_url": course.db_url},
    }
    converter = GenerateAssignment(coursedir=course.dirs, config=course.config)
    try:
        for preprocessor in converter.preprocessors:
            cls = import_item(preprocessor) if isinstance(preprocessor, str) else preprocessor
            if issubclass(cls, SaveCells):
                break
            notebook, resources = cls(config=course.config, log=log).preprocess(notebook, resources)
    except Exception as error:  # nbgrader raises RuntimeError, ValueError, KeyError, its own kinds …
        raise CourseError(f"{name}: nbgrader cannot use the source notebook: {shown(error, 300)}") from error
    cells = _Cells(json.dumps(notebook.metadata.get("kernelspec", {})))
    for cell in notebook.cells:
        if not any(f(cell) for f in (utils.is_grade, utils.is_solution, utils.is_locked, utils.is_task)):
            continue
        meta = cell.metadata.nbgrader
        if utils.is_grade(cell) or utils.is_task(cell):
            kind = cells.grade if utils.is_grade(cell) else cells.task
            kind[meta.grade_id] = {"max_score": float(meta.points), "cell_type": cell.cell_type}
        if utils.is_solution(cell):
            cells.solution[meta.grade_id] = {}
        cells.source[meta.grade_id] = {
            "cell_type": cell.cell_type,
            "locked": utils.is_locked(cell),
            "source": cell.source,
            "checksum": meta.get("checksum"),
        }
    return cells


def _match(db: Session, course: Course, name: str, cells: _Cells, notebooks: set[str]) -> list[str]:
    assignment = db.scalars(select(Assignment).where(Assignment.name == name)).one_or_none()
    if assignment is None:
        assignment = Assignment(name=name, course_id=course.dirs.course_id or "default_course")
        db.add(assignment)
        db.flush()
    removed: list[dict[str, Any]] = []
    notebook = None
    for known in db.scalars(select(Notebook).where(Notebook.assignment_id == assignment.id)).all():
        if known.name == name:
            notebook = known
        elif known.name not in notebooks:
            removed += _remove_cells(db, list(known._base_cells))
            db.execute(delete(SubmittedNotebook).where(SubmittedNotebook.notebook_id == known.id))
            db.execute(delete(SourceCell).where(SourceCell.notebook_id == known.id))
            db.execute(delete(Notebook).where(Notebook.id == known.id))
    if notebook is None:
        notebook = Notebook(name=name, assignment=assignment)
        db.add(notebook)
    if notebook.kernelspec != cells.kernelspec:
        notebook.kernelspec = cells.kernelspec
    db.flush()

    wanted = {
        **{(n, GradeCell): values for n, values in cells.grade.items()},
        **{(n, SolutionCell): values for n, values in cells.solution.items()},
        **{(n, TaskCell): values for n, values in cells.task.items()},
    }
    existing = {(c.name, type(c)): c for c in notebook._base_cells}
    removed += _remove_cells(db, [c for key, c in existing.items() if key not in wanted])
    added: list[BaseCell] = []
    for (cell_name, kind), values in wanted.items():
        cell = existing.get((cell_name, kind))
        if cell is None:
            cell = kind(name=cell_name, notebook_id=notebook.id, **values)
            added.append(cell)
        else:
            _set(cell, values)
    db.add_all(added)
    _match_source(db, notebook, cells.source)
    db.flush()
    _add_rows(db, notebook.id, added)
    return _keep_removed(course, name, removed)


def _set(row: Any, values: dict[str, Any]) -> None:
    for key, value in values.items():
        if getattr(row, key) != value:
            setattr(row, key, value)


def _match_source(db: Session, notebook: Notebook, wanted: dict[str, dict[str, Any]]) -> None:
    existing = {c.name: c for c in notebook.source_cells}
    gone = [c.id for n, c in existing.items() if n not in wanted]
    if gone:
        db.execute(delete(SourceCell).where(SourceCell.id.in_(gone)))
    for name, values in wanted.items():
        if name in existing:
            _set(existing[name], values)
        else:
            db.add(SourceCell(name=name, notebook_id=notebook.id, **values))


def _remove_cells(db: Session, cells: Sequence[BaseCell]) -> list[dict[str, Any]]:
    """Delete cells with their grades and comments; returns what a person had entered for them."""
    if not cells:
        return []
    ids = [c.id for c in cells]
    owner = (
        select(SubmittedNotebook.id.label("id"), SubmittedAssignment.student_id.label("student"))
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .subquery()
    )
    by_hand = Grade.manual_score.is_not(None) | Grade.extra_credit.is_not(None)
    grades = db.execute(
        select(owner.c.student, BaseCell.name, Grade.manual_score, Grade.extra_credit)
        .join(owner, owner.c.id == Grade.notebook_id)
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .where(Grade.cell_id.in_(ids), by_hand)
    ).all()
    comments = db.execute(
        select(owner.c.student, BaseCell.name, Comment.manual_comment)
        .join(owner, owner.c.id == Comment.notebook_id)
        .join(BaseCell, BaseCell.id == Comment.cell_id)
        .where(Comment.cell_id.in_(ids), Comment.manual_comment.is_not(None))
    ).all()
    db.execute(delete(Grade).where(Grade.cell_id.in_(ids)))
    db.execute(delete(Comment).where(Comment.cell_id.in_(ids)))
    for cell in cells:
        db.expire(cell)
        db.delete(cell)
    db.flush()
    return [
        *({"student": s, "cell": n, "manual_score": m, "extra_credit": x} for s, n, m, x in grades),
        *({"student": s, "cell": n, "comment": c} for s, n, c in comments),
    ]


def _keep_removed(course: Course, name: str, removed: list[dict[str, Any]]) -> list[str]:
    """Append what a person had entered for removed cells to a file, before the transaction ends."""
    if not removed:
        return []
    path = course.results_folder / name / REMOVED
    path.parent.mkdir(parents=True, exist_ok=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"removed_at": when, **line}, ensure_ascii=False) + "\n" for line in removed)
    cells = ", ".join(sorted({line["cell"] for line in removed}))
    return [f"{name}: {cells} is no longer in the set; the marks and comments entered for it are kept in {path}"]


def _add_rows(db: Session, notebook_id: str, added: list[BaseCell]) -> None:
    """Every submission gets a grade and a comment for each new cell, as nbgrader's add_submission does."""
    if not added:
        return
    submitted = db.scalars(select(SubmittedNotebook.id).where(SubmittedNotebook.notebook_id == notebook_id)).all()
    grades = [c.id for c in added if isinstance(c, (GradeCell, TaskCell))]
    comments = [c.id for c in added if isinstance(c, (SolutionCell, TaskCell))]
    _insert(db, Grade, [{"notebook_id": s, "cell_id": c} for s in submitted for c in grades])
    _insert(db, Comment, [{"notebook_id": s, "cell_id": c} for s in submitted for c in comments])


def _insert(db: Session, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:  # with every None written out, all rows are alike and go in at once
        db.execute(insert(table).execution_options(render_nulls=True), rows)


def _update(db: Session, table: Any, rows: list[dict[str, Any]]) -> None:
    if rows:
        db.execute(update(table), rows)


# --- writing results -------------------------------------------------------------------------------------------------


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
            if not safe_name(result.student):
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
        written.remarks += _transaction(course, lambda db: _Group(db, course, files, group, stamps).write())
    except SQLAlchemyError as error:  # a value that this database does not take: find whose it is
        if len(group) > 1:
            for student, result in group.items():
                _write_group(course, name, {student: result}, written)
        else:
            written.problems += [f"{s}: the gradebook does not take this result ({_said(error)})" for s in group]
        return
    for result in group.values():
        try:
            write_autograded(course, files, result)
        except OSError as error:
            where = course.step_folder("autograded", result.student, name)
            written.problems.append(f"{result.student}: {where} cannot be written: {error.strerror}")


class _Group:
    """One transaction: some results of one set."""

    def __init__(
        self,
        db: Session,
        course: Course,
        files: SetFiles,
        results: dict[str, Result],
        stamps: dict[str, datetime | None],
    ) -> None:
        self.db, self.course, self.files, self.results, self.stamps = db, course, files, results, stamps
        self.remarks: list[str] = []

    def write(self) -> list[str]:
        self._find_set()
        self._submissions()
        self._grades()
        self._comments()
        self._penalties()
        return self.remarks

    def _find_set(self) -> None:
        name = self.files.name
        found = self.db.execute(
            select(Notebook.id, Assignment.id, Assignment.duedate)
            .join(Assignment, Assignment.id == Notebook.assignment_id)
            .where(Assignment.name == name, Notebook.name == name)
        ).one_or_none()
        if found is None:
            raise GradebookError(f"{name} is not in the gradebook yet; run `python -m autograder grade`")
        self.notebook_id, self.assignment_id, self.duedate = found
        cells = self.db.execute(
            select(BaseCell.id, BaseCell.name, BaseCell.type).where(BaseCell.notebook_id == self.notebook_id)
        ).all()
        self.graded = {n: i for i, n, kind in cells if kind in ("GradeCell", "TaskCell")}
        self.commented = {n: i for i, n, kind in cells if kind in ("SolutionCell", "TaskCell")}

    def _submissions(self) -> None:
        """Students, submissions and submitted notebooks: find them, add what is missing."""
        students = list(self.results)
        known = set(self.db.scalars(select(Student.id).where(Student.id.in_(students))))
        _insert(self.db, Student, [{"id": s} for s in students if s not in known])
        rows = self.db.execute(
            select(
                SubmittedAssignment.student_id,
                SubmittedAssignment.id,
                SubmittedAssignment.timestamp,
                SubmittedAssignment.extension,
            ).where(
                SubmittedAssignment.assignment_id == self.assignment_id, SubmittedAssignment.student_id.in_(students)
            )
        ).all()
        submissions = {student: (i, stamp) for student, i, stamp, _ in rows}
        self.extensions = {student: extension for student, _, _, extension in rows}
        new = {s: uuid4().hex for s in students if s not in submissions}
        _insert(
            self.db,
            SubmittedAssignment,
            [
                {"id": i, "assignment_id": self.assignment_id, "student_id": s, "timestamp": self.stamps[s]}
                for s, i in new.items()
            ],
        )
        _update(
            self.db,
            SubmittedAssignment,
            [
                {"id": i, "timestamp": self.stamps[s]}
                for s, (i, stamp) in submissions.items()
                if stamp != self.stamps[s]
            ],
        )
        owner = {i: s for s, (i, _) in submissions.items()} | {i: s for s, i in new.items()}
        found = self.db.execute(
            select(
                SubmittedNotebook.assignment_id, SubmittedNotebook.id, SubmittedNotebook.late_submission_penalty
            ).where(SubmittedNotebook.notebook_id == self.notebook_id, SubmittedNotebook.assignment_id.in_(owner))
        ).all()
        self.notebooks = {owner[a]: i for a, i, _ in found}
        self.old_penalties = {owner[a]: penalty for a, _, penalty in found}
        rows = []
        for i, student in owner.items():
            if student not in self.notebooks:
                self.notebooks[student] = uuid4().hex
                rows.append({"id": self.notebooks[student], "assignment_id": i, "notebook_id": self.notebook_id})
        _insert(self.db, SubmittedNotebook, rows)

    def _grades(self) -> None:
        fields = (Grade.notebook_id, Grade.cell_id, Grade.id, Grade.auto_score, Grade.manual_score, Grade.extra_credit)
        rows = self.db.execute(
            select(*fields, Grade.needs_manual_grade).where(Grade.notebook_id.in_(self.notebooks.values()))
        ).all()
        known = {(row.notebook_id, row.cell_id): row for row in rows}
        new, changed = [], []
        self.scores: dict[str, float] = {}
        for student, result in self.results.items():
            exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
            notebook = self.notebooks[student]
            answers: tuple[dict[str, str], dict[str, str] | None] | None = None
            total = 0.0
            for name, cell in self.graded.items():
                exercise = exercises.get(name)
                auto = _auto_score(exercise)
                old = known.get((notebook, cell))
                needs = auto is None
                manual = old.manual_score if old is not None else None
                if manual is not None:
                    # nbgrader asks for a new look at every mark after every run; here only if something changed.
                    answers = answers or self._answers(student, result)
                    ids = [name, *(exercise.solution_ids if exercise else [])]
                    same = old.auto_score == auto and _same_answer(*answers, ids)
                    needs = old.needs_manual_grade if same else True
                values = {"auto_score": auto, "needs_manual_grade": needs}
                if old is None:
                    new.append({"notebook_id": notebook, "cell_id": cell, **values})
                elif (old.auto_score, old.needs_manual_grade) != (auto, needs):
                    changed.append({"id": old.id, **values})
                extra = old.extra_credit if old is not None else None
                total += CellScore(auto, manual, extra).score
            self.scores[student] = total
        _insert(self.db, Grade, new)
        _update(self.db, Grade, changed)

    def _answers(self, student: str, result: Result) -> tuple[dict[str, str], dict[str, str] | None]:
        """The student's answers now, and those of the run before."""
        now = _answers(_autograded(self.files, result))
        return now, answers_before(self.course, student, self.files.name)

    def _comments(self) -> None:
        rows = self.db.execute(
            select(Comment.notebook_id, Comment.cell_id, Comment.id, Comment.auto_comment).where(
                Comment.notebook_id.in_(self.notebooks.values())
            )
        ).all()
        known = {(row.notebook_id, row.cell_id): row for row in rows}
        new, changed = [], []
        for student, result in self.results.items():
            unanswered = {i for e in result.exercises if not e.answered for i in e.solution_ids}
            for name, cell in self.commented.items():
                if result.status != GRADED:
                    said = f"Not graded ({result.status}): {_without_nul(result.reason)}"
                else:
                    said = "No response." if name in unanswered else None
                old = known.get((self.notebooks[student], cell))
                if old is None:
                    new.append({"notebook_id": self.notebooks[student], "cell_id": cell, "auto_comment": said})
                elif old.auto_comment != said:
                    changed.append({"id": old.id, "auto_comment": said})
        _insert(self.db, Comment, new)
        _update(self.db, Comment, changed)

    def _penalties(self) -> None:
        """What nbgrader's AssignLatePenalties does, with the course's own plugin."""
        rule: AssignLatePenalties | None = None
        changed = []
        for student in self.results:
            stamp, penalty = self.stamps[student], None
            due = self.duedate and self.duedate + (self.extensions.get(student) or timedelta())
            late = (stamp - due).total_seconds() if stamp and due else 0.0
            if late > 0:
                rule = rule or _late_rule(self.course)
                penalty = self._penalty(rule, student, late)
            if self.old_penalties.get(student) != penalty:
                changed.append({"id": self.notebooks[student], "late_submission_penalty": penalty})
        _update(self.db, SubmittedNotebook, changed)

    def _penalty(self, rule: AssignLatePenalties, student: str, late: float) -> float | None:
        if not rule.enabled:
            return None
        score = self.scores[student]
        try:
            penalty = rule.plugin_inst.late_submission_penalty(student, score, late)
            if penalty is None:
                return None
            return float(rule._check_late_penalty(SimpleNamespace(score=score), penalty))
        except Exception as error:  # the plugin is the instructor's own code; the class must not stop at its bug
            said = f"{type(error).__name__}: {error}"
            self.remarks.append(f"{student}: the penalty for lateness could not be computed ({said}); there is none")
            return None


def _auto_score(exercise: Exercise | None) -> float | None:
    if exercise is None:
        return None
    if exercise.kind == "auto":
        return exercise.score
    return None if exercise.answered else 0.0


def _late_rule(course: Course) -> AssignLatePenalties:
    # A plugin of the course's own is imported from the course folder, as nbgrader does when run there.
    sys.path.insert(0, str(course.root))
    try:
        rule = AssignLatePenalties(config=course.config, log=log)
        rule.init_plugin()
    except Exception as error:
        raise CourseError(f"the plugin for late submissions cannot be used: {error}") from error
    finally:
        sys.path.remove(str(course.root))
    return rule


def _without_nul(text: str) -> str:
    """Text that every database takes."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


# --- timestamps ------------------------------------------------------------------------------------------------------


def read_timestamp(folder: Path) -> tuple[datetime | None, str]:
    """When a submission came, in UTC without a zone, from its timestamp.txt; or None, and a remark where it is bad."""
    path = folder / TIMESTAMP
    if not os.path.lexists(path):
        return None, ""
    try:
        words = read_bytes(path)[:1000].decode("utf-8-sig").strip()
    except (Unreadable, UnicodeDecodeError):
        return None, f"{TIMESTAMP} cannot be read; the submission counts as in time"
    if not words:
        return None, f"{TIMESTAMP} is empty; the submission counts as in time"
    try:
        # nbgrader reads the zone in "… +0100" as a hundred seconds.
        offset = re.fullmatch(r"\S+ \S+ [+-]\d\d:?\d\d", words)
        return utils.parse_utc(dateutil.parser.parse(words) if offset else words), ""
    # dateutil raises many kinds for what is no date.
    except (ValueError, OverflowError, TypeError, ArithmeticError, AttributeError, IndexError):
        return None, f"{TIMESTAMP} holds no date ('{shown(words, 40)}'); the submission counts as in time"


# --- autograded notebooks --------------------------------------------------------------------------------------------


def autograded_notebook(files: SetFiles, result: Result) -> nbformat.NotebookNode:
    """What formgrader shows: the executed notebook, with the rubric behind each written answer.

    Where there is none: the set, with the reason on top of it.
    """
    return nbformat.from_dict(json.loads(_bytes(_autograded(files, result))))


def _autograded(files: SetFiles, result: Result) -> dict[str, Any]:
    """`autograded_notebook` as plain data, which shares what it is made of: to be written out, not to be changed."""
    if result.notebook is not None:
        return {**result.notebook, "cells": list(_with_rubrics(result.notebook["cells"], files.rubrics))}
    reason = html.escape(_without_nul(result.reason))
    said = f"**This submission was not graded ({result.status}).**\n\n{reason}"
    return {**files.released, "cells": [new_cell("markdown", said, "not-graded", {}), *files.released.cells]}


def _with_rubrics(cells: list[dict[str, Any]], rubrics: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The cells with what the source says to each written question behind the answer, for those who mark it."""
    for number, cell in enumerate(cells):
        yield cell
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if grade_id in rubrics:
            said = f"**Model answer and rubric** (for whoever marks; no student sees it)\n\n{rubrics[grade_id]}"
            yield new_cell("markdown", said, f"rubric-{number}", {RUBRIC: grade_id})


def without_rubrics(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """The notebook as its student may see it."""
    notebook.cells = [c for c in notebook.cells if RUBRIC not in c.metadata]
    return notebook


def _bytes(notebook: Any) -> bytes:
    """The notebook as a file; half characters of a student's output, which no file can hold, become `?`.

    Without line breaks: those would take ten times as long to write, and only programs read this file.
    """
    return json.dumps(notebook, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def write_autograded(course: Course, files: SetFiles, result: Result) -> None:
    """Write `autograded/<student>/<set>/`: the notebook, the set's data files and the timestamp. Raises OSError.

    Files that the student handed in beside the notebook are not copied: formgrader would serve them to the
    instructor's browser.
    """
    folder = course.step_folder("autograded", result.student, files.name)
    wanted = {f"{files.name}.ipynb": _bytes(_autograded(files, result)), **files.files}
    stamp, _ = read_timestamp(course.step_folder("submitted", result.student, files.name))
    if stamp is not None:
        wanted[TIMESTAMP] = read_bytes(course.step_folder("submitted", result.student, files.name) / TIMESTAMP)
    else:
        (folder / TIMESTAMP).unlink(missing_ok=True)
    for name, data in wanted.items():
        path = folder / name
        if not (path.is_file() and path.read_bytes() == data):
            write_atomically(path, data)


def answers_before(course: Course, student: str, name: str) -> dict[str, str] | None:
    """The answers in the autograded notebook of the run before, by grade_id; None where there is none."""
    path = course.step_folder("autograded", student, name) / f"{name}.ipynb"
    try:
        return _answers(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _answers(notebook: dict[str, Any]) -> dict[str, str]:
    answers = {}
    for cell in notebook["cells"]:
        meta = cell["metadata"].get("nbgrader", {})
        if meta.get("solution"):
            answers[meta["grade_id"]] = "".join(cell["source"])
    return answers


def _same_answer(now: dict[str, str], before: dict[str, str] | None, ids: list[str]) -> bool:
    """Whether the texts that a person marked are still the same."""
    return before is not None and all(before.get(i) == now.get(i) for i in ids)


# --- reading ---------------------------------------------------------------------------------------------------------


def scores(course: Course, name: str) -> dict[str, StudentScores]:
    """What the gradebook holds for a set, by student; empty where there is no gradebook yet. Raises GradebookError."""
    return _read(course, lambda db: _scores(db, name), {})


def _read(course: Course, look: Callable[[Session], T], nothing: T) -> T:
    """What `look` finds, or `nothing` where there is no gradebook yet (none is made). Raises GradebookError."""
    url = make_url(course.db_url)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        return nothing
    engine = create_engine(url)
    try:
        if not inspect(engine).has_table(Grade.__tablename__):
            return nothing
        with Session(engine) as db:
            return look(db)
    except SQLAlchemyError as error:
        raise GradebookError(f"the gradebook {_shown_url(course)} cannot be read ({_said(error)})") from error
    finally:
        engine.dispose()


def _scores(db: Session, name: str) -> dict[str, StudentScores]:
    found: dict[str, StudentScores] = {}
    owners = {}
    rows = db.execute(
        select(
            SubmittedNotebook.id,
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
            SubmittedNotebook.late_submission_penalty,
        )
        .join(SubmittedAssignment, SubmittedAssignment.id == SubmittedNotebook.assignment_id)
        .join(Notebook, Notebook.id == SubmittedNotebook.notebook_id)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .where(Assignment.name == name, Notebook.name == name)
        .order_by(SubmittedAssignment.student_id)
    )
    for i, student, stamp, penalty in rows:
        found[student] = owners[i] = StudentScores({}, penalty, stamp)
    in_set = (
        select(BaseCell.id)
        .join(Notebook, Notebook.id == BaseCell.notebook_id)
        .join(Assignment, Assignment.id == Notebook.assignment_id)
        .where(Assignment.name == name, Notebook.name == name)
    )
    limits = {i: points for i, points in db.execute(select(GradeCell.id, GradeCell.max_score))}
    grades = db.execute(
        select(
            Grade.notebook_id,
            BaseCell.id,
            BaseCell.name,
            Grade.auto_score,
            Grade.manual_score,
            Grade.extra_credit,
            Grade.needs_manual_grade,
        )
        .join(BaseCell, BaseCell.id == Grade.cell_id)
        .where(Grade.cell_id.in_(in_set))
    )
    for i, cell, cell_name, auto, manual, extra, needs in grades:
        if i in owners:
            owners[i].cells[cell_name] = CellScore(auto, manual, extra, needs, max_score=limits.get(cell))
    comments = db.execute(
        select(Comment.notebook_id, BaseCell.name, Comment.manual_comment, Comment.auto_comment)
        .join(BaseCell, BaseCell.id == Comment.cell_id)
        .where(Comment.cell_id.in_(in_set))
    )
    for i, cell_name, manual, auto in comments:
        if i in owners:
            cell = owners[i].cells.setdefault(cell_name, CellScore())
            cell.comment, cell.auto_comment = manual or "", auto or ""
    return found


def manual_marks(course: Course, name: str) -> dict[tuple[str, str], dict[str, Manual]]:
    """What people entered, by (student, set) and grade_id of the exercise, as feedback and report take it.

    A comment on a solution cell belongs to the exercise whose tests judge that cell.
    """
    judges = _judges(course.set_files(name).source)
    marks: dict[tuple[str, str], dict[str, Manual]] = {}
    for student, found in scores(course, name).items():
        mine: dict[str, Manual] = {}
        for cell_name, cell in found.cells.items():
            if cell.manual is not None or cell.extra_credit is not None:
                mine.setdefault(cell_name, Manual()).score = cell.score
        for cell_name, cell in found.cells.items():
            if cell.comment:
                mark = mine.setdefault(judges.get(cell_name, cell_name), Manual())
                mark.comment = f"{mark.comment}\n\n{cell.comment}".strip()
        if mine:
            marks[student, name] = mine
    return marks


def _judges(source: nbformat.NotebookNode) -> dict[str, str]:
    """The exercise's grade_id for each solution cell: the next test cell's, or its own for a written answer."""
    judges: dict[str, str] = {}
    waiting: list[str] = []
    for cell in source.cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        if utils.is_solution(cell) and not utils.is_grade(cell) and cell.cell_type == "code":
            waiting.append(grade_id)
        elif utils.is_grade(cell):
            judges.update(dict.fromkeys([] if utils.is_solution(cell) else waiting, grade_id))
            waiting = waiting if utils.is_solution(cell) else []
            judges[grade_id] = grade_id
    return judges


# --- the class and the dates -----------------------------------------------------------------------------------------


def class_list(course: Course) -> list[dict[str, Any]]:
    """The students in the gradebook: id, first_name, last_name, email, lms_user_id. Raises GradebookError."""
    rows = _read(course, lambda db: list(db.scalars(select(Student).order_by(Student.id))), [])
    return [{key: getattr(s, key) or "" for key in ("id", *DETAILS)} for s in rows]


def note_students(course: Course, students: dict[str, dict[str, str]]) -> None:
    """Add students, by id, to the gradebook, and fill in details that it does not have. Raises GradebookError."""

    def work(db: Session) -> None:
        known = {s.id: s for s in db.scalars(select(Student))}
        for student, details in students.items():
            if student not in known:
                db.add(Student(id=student, **{k: v for k, v in details.items() if v}))
                continue
            for key, value in details.items():
                if value and not getattr(known[student], key):
                    setattr(known[student], key, value)

    _transaction(course, work)


def due_date(course: Course, name: str) -> datetime | None:
    """When a set is due (UTC, without a zone), as the gradebook has it. Raises GradebookError."""
    return _read(course, lambda db: db.scalar(select(Assignment.duedate).where(Assignment.name == name)), None)


@dataclass
class Standing:
    """A submission as nbgrader adds it up: `score` with manual marks and extra credit, before the late penalty."""

    student: str
    score: float
    max_score: float
    late_penalty: float
    needs_manual: bool
    timestamp: datetime | None

    @property
    def total(self) -> float:
        return max(0.0, self.score - self.late_penalty)


def standings(course: Course, name: str) -> dict[str, Standing]:
    """Every submission of a set that the gradebook holds, by student. Raises GradebookError."""

    def look(db: Session) -> dict[str, Standing]:
        query = (
            select(SubmittedAssignment)
            .join(Assignment, Assignment.id == SubmittedAssignment.assignment_id)
            .where(Assignment.name == name)
            .order_by(SubmittedAssignment.student_id)
        )
        return {
            s.student_id: Standing(
                s.student_id,
                s.score,
                s.max_score,
                s.late_submission_penalty or 0.0,
                bool(s.needs_manual_grade),
                s.timestamp,
            )
            for s in db.scalars(query)
        }

    return _read(course, look, {})


def full_marks(course: Course, name: str) -> float | None:
    """The points of a set, None where the gradebook does not know it. Raises GradebookError."""
    return _read(course, lambda db: db.scalar(select(Assignment.max_score).where(Assignment.name == name)), None)
