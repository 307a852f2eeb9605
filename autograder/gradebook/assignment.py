"""The set, its notebook and its cells stand in the gradebook as the source has them."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, TypeVar

from nbgrader import utils
from nbgrader.api import (
    Assignment,
    BaseCell,
    Comment,
    Grade,
    GradeCell,
    Notebook,
    SolutionCell,
    SourceCell,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.converters import GenerateAssignment
from nbgrader.preprocessors import SaveCells
from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session
from traitlets.utils.importstring import import_item

from autograder.course import Course, CourseError, SetFiles
from autograder.gradebook.database import course_id, in_transaction, insert_rows, of_cells
from autograder.text import shown

REMOVED = "removed-marks.jsonl"

Values = dict[str, Any]
Boxes = dict[tuple[str, type[BaseCell]], Values]
"""Cells by grade_id and kind: what is graded and what a comment can be given to may be one cell of the notebook."""

log = logging.getLogger(__name__)
K = TypeVar("K")


def ensure_assignment(course: Course, files: SetFiles) -> list[str]:
    """The set, its notebook and its cells stand in the gradebook as the source has them; returns remarks.

    nbgrader refuses to add or remove cells once there are submissions. Here they are changed in place: submissions,
    scores and comments of all other cells stay, new cells are added to every submission, and what a person entered
    for a cell that is gone is first saved in `results/<set>/removed-marks.jsonl`. Raises GradebookError, CourseError.
    """
    notebook = _as_saved(course, files)
    kernelspec = json.dumps(notebook.metadata.get("kernelspec", {}))
    boxes, source = _cells(notebook)
    notebooks = {files.name, *(p.stem for p in files.folder.glob("*.ipynb"))}

    def work(db: Session) -> list[str]:
        row, removed = _match_notebook(db, course, files.name, notebooks)
        row.kernelspec = kernelspec
        removed += _match_cells(db, row, boxes)
        _match_source(db, row, source)
        return _keep_removed(course, files.name, removed)

    return in_transaction(course, work)


def _as_saved(course: Course, files: SetFiles) -> Any:
    """The source after GenerateAssignment's own preprocessors, in memory, up to the one that saves the cells."""
    name = files.name
    notebook = deepcopy(files.source)
    resources: Values = {
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
    return notebook


def _cells(notebook: Any) -> tuple[Boxes, dict[str, Values]]:
    """The cells as nbgrader's SaveCells would record them, and their sources by grade_id."""
    boxes: Boxes = {}
    source: dict[str, Values] = {}
    for cell in notebook.cells:
        if not any(f(cell) for f in (utils.is_grade, utils.is_solution, utils.is_locked, utils.is_task)):
            continue
        meta = cell.metadata.nbgrader
        if utils.is_grade(cell) or utils.is_task(cell):
            kind = GradeCell if utils.is_grade(cell) else TaskCell
            boxes[meta.grade_id, kind] = {"max_score": float(meta.points), "cell_type": cell.cell_type}
        if utils.is_solution(cell):
            boxes[meta.grade_id, SolutionCell] = {}
        source[meta.grade_id] = {
            "cell_type": cell.cell_type,
            "locked": utils.is_locked(cell),
            "source": cell.source,
            "checksum": meta.get("checksum"),
        }
    return boxes, source


def _match_notebook(db: Session, course: Course, name: str, notebooks: set[str]) -> tuple[Notebook, list[Values]]:
    """The set's row for its notebook; `notebooks` are those of the source folder, all others go."""
    assignment = db.scalars(select(Assignment).where(Assignment.name == name)).one_or_none()
    if assignment is None:
        assignment = Assignment(name=name, course_id=course_id(course))
        db.add(assignment)
        db.flush()
    removed: list[Values] = []
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
        db.flush()
    return notebook, removed


def _match_cells(db: Session, notebook: Notebook, boxes: Boxes) -> list[Values]:
    """What can be graded or commented on; returns what a person had entered for cells that are gone."""
    known = {(c.name, type(c)): c for c in notebook._base_cells}
    removed = _remove_cells(db, [c for key, c in known.items() if key not in boxes])
    added = _match_rows(db, known, boxes, lambda key: key[1](name=key[0], notebook_id=notebook.id))
    # Every submission gets a grade and a comment for each new cell, as nbgrader's add_submission does.
    submitted = select(SubmittedNotebook.id).where(SubmittedNotebook.notebook_id == notebook.id)
    submissions = db.scalars(submitted).all() if added else []
    for table, kinds in ((Grade, (GradeCell, TaskCell)), (Comment, (SolutionCell, TaskCell))):
        cells = [c.id for c in added if isinstance(c, kinds)]
        insert_rows(db, table, [{"notebook_id": s, "cell_id": c} for s in submissions for c in cells])
    return removed


def _match_source(db: Session, notebook: Notebook, source: dict[str, Values]) -> None:
    known = {c.name: c for c in notebook.source_cells}
    gone = [c.id for name, c in known.items() if name not in source]
    if gone:
        db.execute(delete(SourceCell).where(SourceCell.id.in_(gone)))
    _match_rows(db, known, source, lambda name: SourceCell(name=name, notebook_id=notebook.id))


def _match_rows(db: Session, known: Mapping[K, Any], wanted: Mapping[K, Values], make: Callable[[K], Any]) -> list[Any]:
    """Give each row its values, made where there is none; returns the new ones. Equal values change nothing."""
    added = []
    for key, values in wanted.items():
        row = known.get(key)
        if row is None:
            row = make(key)
            added.append(row)
        for name, value in values.items():
            setattr(row, name, value)
    db.add_all(added)
    db.flush()
    return added


def _remove_cells(db: Session, cells: Sequence[BaseCell]) -> list[Values]:
    """Delete cells with their grades and comments; returns what a person had entered for them."""
    if not cells:
        return []
    ids = [c.id for c in cells]
    entered: list[Values] = []
    by_hand = (Grade, Grade.manual_score, Grade.extra_credit), (Comment, Comment.manual_comment.label("comment"))
    for table, *columns in by_hand:
        gone = table.cell_id.in_(ids)
        found = db.execute(of_cells(table, *columns).where(gone, or_(*(c.is_not(None) for c in columns))))
        entered += [dict(row) for row in found.mappings()]
        db.execute(delete(table).where(gone))
    for cell in cells:
        db.expire(cell)
        db.delete(cell)
    db.flush()
    return entered


def _keep_removed(course: Course, name: str, removed: list[Values]) -> list[str]:
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
