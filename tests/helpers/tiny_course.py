"""A course in a temporary folder with one tiny set: two functions, a written answer, a catalogue, a data file."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path

import nbformat
from nbformat import v4

from autograder.course import Course
from autograder.notebook.places import release_view

SET = "ps9-tiny"
CONFIG = """from autograder.nbgrader_plugin import configure

c = get_config()
c.CourseDirectory.course_id = "tiny"
c.CourseDirectory.source_directory = "source_solutions"
c.CourseDirectory.release_directory = "assignments"
{more}
configure(c)
"""
DOUBLE = '''def double(x):
    """Twice x."""
    ### BEGIN SOLUTION
    twice_the_value_of_x = np.asarray(x) + np.asarray(x)
    return twice_the_value_of_x
    ### END SOLUTION'''
DOUBLE_TESTS = """assert double(2) == 4, "double(2) is 4"
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check

@check("works on whole arrays", points=2)
def _(rng):
    agrees(double, rng.normal(size=(3, 4)))

@check("negative numbers too", points=1)
def _(rng):
    agrees(double, -rng.uniform(1, 2, size=3))
### END HIDDEN TESTS"""
QUADRUPLE = '''def quadruple(x):
    """Four times x, by doubling twice."""
    ### BEGIN SOLUTION
    return double(double(x))
    ### END SOLUTION'''
QUADRUPLE_TESTS = """### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, uses

uses("double")

@check("four times", points=1)
def _(rng):
    agrees(quadruple, rng.normal(size=5))
### END HIDDEN TESTS"""
ANSWER = "Because addition of a number to itself doubles it.\n\nRubric: 2 points for naming addition."
CATALOGUE = """# ruff: noqa: F821
from autograder.catalogue import wrong


@wrong("double", says="You square; doubling is adding a number to itself.")
def squares(x):
    return np.asarray(x) ** 2
"""


def _meta(grade_id: str, grade: bool = False, solution: bool = False, points: float | None = None) -> dict:
    meta = {"grade": grade, "grade_id": grade_id, "locked": not solution, "schema_version": 3, "solution": solution}
    return {"nbgrader": {**meta, "task": False, **({} if points is None else {"points": points})}}


def marked_cell(kind: str, text: str, grade_id: str, **meta: object) -> nbformat.NotebookNode:
    new = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
    return new(text, id=grade_id, metadata=_meta(grade_id, **meta))


def source_notebook() -> nbformat.NotebookNode:
    """The source of the set; 4 + 1 points by tests, 2 for the written answer."""
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = v4.new_notebook(metadata={**kernel, "autograder": {"cell_seconds": 5}})
    notebook.cells = [
        marked_cell("markdown", "# A tiny set", "tiny-introduction"),
        v4.new_code_cell('student_id = "..."', id="student-id"),
        marked_cell("code", "import numpy as np", "tiny-helpers"),
        marked_cell("markdown", "## Double", "double-task"),
        marked_cell("code", DOUBLE, "double", solution=True),
        marked_cell("code", DOUBLE_TESTS, "double-tests", grade=True, points=4),
        marked_cell("markdown", "## Quadruple", "quadruple-task"),
        marked_cell("code", QUADRUPLE, "quadruple", solution=True),
        marked_cell("code", QUADRUPLE_TESTS, "quadruple-tests", grade=True, points=1),
        marked_cell("markdown", "## Why?", "why-task"),
        marked_cell("markdown", ANSWER, "why", grade=True, solution=True, points=2),
    ]
    return notebook


def make_course(folder: Path, more: str = "") -> Course:
    """A course folder with the tiny set; `more` are further lines of its configuration."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nbgrader_config.py").write_text(CONFIG.format(more=more), encoding="utf-8")
    write_source(folder, source_notebook())
    (folder / "source_solutions" / SET / "catalogue.py").write_text(CATALOGUE, encoding="utf-8")
    (folder / "source_solutions" / SET / "numbers.csv").write_text("1,2,3\n", encoding="utf-8")
    return Course(folder)


def write_source(folder: Path, notebook: nbformat.NotebookNode, sources: str = "source_solutions") -> None:
    path = folder / sources / SET / f"{SET}.ipynb"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(nbformat.writes(notebook), encoding="utf-8")


def answered(**answers: str) -> nbformat.NotebookNode:
    """The released notebook with texts in some of its cells, by cell id (`_` for `-`)."""
    notebook = deepcopy(release_view(source_notebook()))
    for cell in notebook.cells:
        cell.source = answers.get(cell.id.replace("-", "_"), cell.source)
    return notebook


GOOD_DOUBLE = "def double(x):\n    return 2 * np.asarray(x)"
GOOD_QUADRUPLE = "def quadruple(x):\n    return 4 * np.asarray(x)"
GOOD = {"double": GOOD_DOUBLE, "quadruple": GOOD_QUADRUPLE, "why": "Adding a number to itself doubles it."}


def submit(
    course: Course,
    student: str,
    content: nbformat.NotebookNode | bytes | None,
    name: str = f"{SET}.ipynb",
    timestamp: str | None = None,
) -> Path:
    """Put a file into the student's folder of handed-in work; returns the folder."""
    folder = course.root / "submitted" / student / SET
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / name).write_bytes(data)
    if timestamp is not None:
        (folder / "timestamp.txt").write_text(timestamp, encoding="utf-8")
    return folder
