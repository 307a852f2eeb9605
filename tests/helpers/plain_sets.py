"""All exercises of sets that were written for nbgrader alone: one notebook of them, and a class that answered it."""

from __future__ import annotations

from copy import deepcopy
from importlib.util import find_spec

import nbformat
import plain_kinds
import plain_kinds_around
import plain_kinds_libraries
from nbformat import v4
from plain_kinds import Kind
from plain_kinds_around import FILES
from tiny_course import SET, marked_cell

from autograder.course import Course
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.reader import scores
from autograder.gradebook.writer import write
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store

__all__ = ["FILES", "FURTHER", "answered", "grade", "notebook_of", "points_in"]

TABLES = plain_kinds_libraries.TABLES if find_spec("pandas") else {}
FURTHER: dict[str, Kind] = {
    **plain_kinds.CLASSES,
    **plain_kinds.EXCEPTIONS,
    **plain_kinds.GENERATORS,
    **plain_kinds_around.PRINTED,
    **plain_kinds_around.INPUT,
    **plain_kinds_around.NAMES,
    **plain_kinds_around.ON_DISK,
    **plain_kinds_around.MAGICS,
    **plain_kinds_around.DATA,
    **plain_kinds_around.HASHES,
    **plain_kinds_libraries.FIGURES,
    **TABLES,
    **plain_kinds_libraries.MODELS,
}


def cells_of(name: str, kind: Kind) -> list[nbformat.NotebookNode]:
    cells = [marked_cell("markdown", f"## {name}", f"{name}-task")]
    cells += [marked_cell("code", kind.before, f"{name}-before")] if kind.before else []
    cells += [marked_cell("code", kind.solution, name, solution=True)]
    cells += [marked_cell("code", kind.after, f"{name}-after")] if kind.after else []
    tests = kind.tests(name).items()
    return [*cells, *(marked_cell("code", text, test, grade=True, points=p[0]) for test, (text, p) in tests)]


def notebook_of(kinds: dict[str, Kind]) -> nbformat.NotebookNode:
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    cells = [cell for name, kind in kinds.items() for cell in cells_of(name, kind)]
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def answered(released: nbformat.NotebookNode, answers: dict[str, str]) -> nbformat.NotebookNode:
    notebook = deepcopy(released)
    for cell in notebook.cells:
        cell.source = answers.get(cell.metadata.nbgrader.grade_id, cell.source)
    return notebook


def grade(course: Course) -> None:
    ensure_assignment(course, course.set_files(SET))
    write(course, [step.result for step in grade_set(course, Store(course.results_folder), SET, Settings())])


def points_in(course: Course) -> dict[str, dict[str, float | None]]:
    """Automatic scores by student and cell; None where a person has to mark."""
    return {
        student: {name: c.auto for name, c in found.cells.items() if c.max_score is not None}
        for student, found in scores(course, SET).items()
    }
