"""The set, its notebook and its cells stand in the gradebook as the source has them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from nbgrader import api, utils
from nbgrader.api import Comment, Grade, GradeCell, Notebook, SolutionCell, SourceCell, SubmittedNotebook, TaskCell
from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from autograder.course import Course, SetFiles
from autograder.gradebook.database import course_id, in_transaction, of_cells

REMOVED = "removed-marks.jsonl"

Values = dict[str, Any]
Cells = dict[tuple[str, type[Any]], Values]
"""Cells by grade_id and table: one cell of the notebook stands in several."""


def ensure_assignment(course: Course, files: SetFiles) -> list[str]:
    """The set, its notebook and its cells stand in the gradebook as the source has them; returns remarks.

    nbgrader refuses to add or remove cells once there are submissions. Here they are changed in place: submissions,
    scores and comments of all other cells stay, new cells are added to every submission, and what a person entered
    for a cell that is gone is first saved in `results/<set>/removed-marks.jsonl`. Raises GradebookError, CourseError.
    """
    notebook = course.generated(files, recorded=True)
    kernelspec = json.dumps(notebook.metadata.get("kernelspec", {}))
    cells = _cells(notebook)
    notebooks = {files.name, *(p.stem for p in files.folder.glob("*.ipynb"))}

    def work(db: Session) -> list[str]:
        row, removed = _match_notebook(db, course, files.name, notebooks)
        row.kernelspec = kernelspec
        gone = "is no longer in the set; the marks and comments entered for it are kept"
        remarks = _keep(course, files.name, removed + _match_cells(db, row, cells), gone)
        low = "has fewer points now; marks above them were lowered and wait for another look, the old ones are kept"
        return remarks + _keep(course, files.name, _lower_marks(db, row), low)

    return in_transaction(course, work)


def _cells(notebook: Any) -> Cells:
    """The cells as nbgrader's SaveCells would record them."""
    cells: Cells = {}
    for cell in notebook.cells:
        graded, solution, task = utils.is_grade(cell), utils.is_solution(cell), utils.is_task(cell)
        if not (graded or solution or task or utils.is_locked(cell)):
            continue
        marks = cell.metadata.nbgrader
        if graded or task:
            points = {"max_score": float(marks.points), "cell_type": cell.cell_type}
            cells[marks.grade_id, GradeCell if graded else TaskCell] = points
        if solution:
            cells[marks.grade_id, SolutionCell] = {}
        cells[marks.grade_id, SourceCell] = {
            "cell_type": cell.cell_type,
            "locked": utils.is_locked(cell),
            "source": cell.source,
            "checksum": marks.get("checksum"),
        }
    return cells


def _match_notebook(db: Session, course: Course, name: str, notebooks: set[str]) -> tuple[Notebook, list[Values]]:
    """The set's row for its notebook; `notebooks` are those of the source folder, all others go."""
    known = db.scalar(select(api.Assignment).where(api.Assignment.name == name))
    assignment = known or api.Assignment(name=name, course_id=course_id(course))
    db.add(assignment)
    removed: list[Values] = []
    for other in [n for n in assignment.notebooks if n.name not in notebooks]:
        removed += _remove_cells(db, [*other._base_cells, *other.source_cells])
        db.execute(delete(SubmittedNotebook).where(SubmittedNotebook.notebook_id == other.id))
        db.execute(delete(Notebook).where(Notebook.id == other.id))
    notebook = next((n for n in assignment.notebooks if n.name == name), None)
    notebook = notebook or Notebook(name=name, assignment=assignment)
    db.add(notebook)
    db.flush()
    return notebook, removed


def _match_cells(db: Session, notebook: Notebook, wanted: Cells) -> list[Values]:
    """Give the notebook these cells; returns what a person had entered for those that are gone."""
    known = {(c.name, type(c)): c for c in (*notebook._base_cells, *notebook.source_cells)}
    removed = _remove_cells(db, [cell for key, cell in known.items() if key not in wanted])
    added = []
    for (name, kind), values in wanted.items():
        cell = known.get((name, kind))
        if cell is None:
            cell = kind(name=name, notebook_id=notebook.id)
            added.append(cell)
        for column, value in values.items():
            setattr(cell, column, value)
    db.add_all(added)
    db.flush()
    # Every submission gets a grade and a comment for each new cell, as nbgrader's add_submission does.
    submissions = db.scalars(select(SubmittedNotebook.id).where(SubmittedNotebook.notebook_id == notebook.id)).all()
    for table, kinds in ((Grade, (GradeCell, TaskCell)), (Comment, (SolutionCell, TaskCell))):
        cells = [c.id for c in added if isinstance(c, kinds)]
        db.add_all(table(notebook_id=s, cell_id=c) for s in submissions for c in cells)
    return removed


def _remove_cells(db: Session, cells: Sequence[Any]) -> list[Values]:
    """Delete cells with their grades and comments; returns what a person had entered for them."""
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


def _lower_marks(db: Session, notebook: Notebook) -> list[Values]:
    """Marks above the points of their cell become these points; returns what they were."""
    above = Grade.manual_score > Grade.max_score, api.BaseCell.notebook_id == notebook.id
    entered = [dict(row) for row in db.execute(of_cells(Grade, Grade.manual_score).where(*above)).mappings()]
    for grade in db.scalars(select(Grade).join(api.BaseCell, api.BaseCell.id == Grade.cell_id).where(*above)):
        grade.manual_score, grade.needs_manual_grade = grade.max_score, True
    return entered


def _keep(course: Course, name: str, removed: list[Values], why: str) -> list[str]:
    """Append what a person had entered to a file, before the transaction ends; returns a line that says why."""
    if not removed:
        return []
    path = course.results_folder / name / REMOVED
    path.parent.mkdir(parents=True, exist_ok=True)
    when = time.strftime("%Y-%m-%dT%H:%M:%S%z")
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps({"removed_at": when, **line}, ensure_ascii=False) + "\n" for line in removed)
    cells = ", ".join(sorted({line["cell"] for line in removed}))
    return [f"{name}: {cells} {why} in {path}"]
