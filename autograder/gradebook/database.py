"""nbgrader's database: opened, changed in transactions that are tried again, and said to be in trouble in one line.

Works on every database that nbgrader's `c.CourseDirectory.db_url` can name.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import nbgrader.api
from nbgrader.api import Assignment, Base, BaseCell, Grade, Notebook, SubmittedAssignment, SubmittedNotebook, new_uuid
from nbgrader.dbutil import ALEMBIC_DIR
from sqlalchemy import Select, create_engine, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import IntegrityError, OperationalError, SQLAlchemyError
from sqlalchemy.orm import Session

from autograder.course import Course, CourseError
from autograder.text import shown

TRIES = 7
FIRST_PAUSE = 0.2  # seconds before the second try; each further pause is twice as long

T = TypeVar("T")


class GradebookError(CourseError):
    """The gradebook cannot be read or written; one line that says why and what to do."""


@contextmanager
def opened(course: Course) -> Iterator[Session]:
    """A session on the gradebook, whose tables are made when it is new. Nothing is written before the commit."""
    engine = create_engine(course.db_url)
    try:
        with engine.begin() as connection:
            if not inspect(connection).get_table_names():
                from alembic.migration import MigrationContext  # takes a while, and is for a new gradebook only
                from alembic.script import ScriptDirectory

                # nbgrader asks the command `alembic` for the version, which takes seconds and has to be on PATH
                MigrationContext.configure(connection).stamp(ScriptDirectory(ALEMBIC_DIR), "head")
            Base.metadata.create_all(connection)
        with Session(engine, autoflush=False) as db:
            if db.get(nbgrader.api.Course, course_id(course)) is None:
                db.add(nbgrader.api.Course(id=course_id(course)))
            yield db
    finally:
        engine.dispose()


def course_id(course: Course) -> str:
    """The course's name in the gradebook; nbgrader's own default where the course has none."""
    return course.dirs.course_id or "default_course"


def said(error: BaseException | None) -> str:
    """The database's own words, on one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    return shown(lines[0] if lines else type(error).__name__, 200)


def shown_url(course: Course) -> str:
    """The database's address without its password."""
    return make_url(course.db_url).render_as_string(hide_password=True)


def in_transaction(course: Course, work: Callable[[Session], T]) -> T:
    """`work` in a transaction of its own; where the database is locked or lost, tried again. Raises GradebookError."""
    problem: SQLAlchemyError | None = None
    for number in range(TRIES):
        if number:
            time.sleep(FIRST_PAUSE * 2 ** (number - 1) * random.uniform(0.8, 1.2))
        try:
            with opened(course) as db:
                value = work(db)
                db.commit()
                return value
        except (OperationalError, IntegrityError) as error:  # locked, lost, or another writer came first
            problem = error
    raise GradebookError(
        f"the gradebook {shown_url(course)} could not be written in {TRIES} tries ({said(problem)}); close what "
        "uses it and run the command again: results are stored and need no new run"
    ) from problem


def look(course: Course, work: Callable[[Session], T], nothing: T) -> T:
    """What `work` finds, or `nothing` where there is no gradebook yet (none is made). Raises GradebookError."""
    url = make_url(course.db_url)
    if url.get_backend_name() == "sqlite" and url.database and not Path(url.database).exists():
        return nothing
    engine = create_engine(url)
    try:
        if not inspect(engine).has_table(Grade.__tablename__):
            return nothing
        with Session(engine) as db:
            return work(db)
    except SQLAlchemyError as error:
        raise GradebookError(f"the gradebook {shown_url(course)} cannot be read ({said(error)})") from error
    finally:
        engine.dispose()


def notebook_of(name: str) -> Select[tuple[str]]:
    """The query for the id of a set's notebook."""
    return select(Notebook.id).join(Notebook.assignment).where(Assignment.name == name, Notebook.name == name)


def of_cells(table: Any, *columns: Any) -> Select[Any]:
    """The query for `student`, `cell` (its grade_id) and columns of the rows of Grade or of Comment."""
    who = SubmittedAssignment.student_id.label("student"), BaseCell.name.label("cell")
    joined = select(*who, *columns).select_from(table).join(BaseCell, BaseCell.id == table.cell_id)
    return joined.join(table.notebook).join(SubmittedNotebook.assignment)


def rows_between(
    db: Session, table: Any, one: str, ones: Iterable[str], other: str, others: Iterable[str]
) -> dict[tuple[str, str], Any]:
    """The row between each of `ones` and each of `others`, by both ids; a new one where there is none.

    `one` and `other` name the columns with these ids. All are read at once, and what is new or changed is written at
    once with the transaction: a class has thousands.
    """
    first, second = getattr(table, one), getattr(table, other)
    found = db.scalars(select(table).where(first.in_(ones), second.in_(others)))
    rows = {(getattr(row, one), getattr(row, other)): row for row in found}
    for key in product(ones, others):
        if key not in rows:
            rows[key] = table(id=new_uuid(), **{one: key[0], other: key[1]})
            db.add(rows[key])
    return rows
