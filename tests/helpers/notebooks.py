"""A small set, its released notebook and what a student may have done with it, for tests of the rebuild."""

import json
import os
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from nbformat import from_dict, v4

from autograder.notebook.places import places_of, release_view
from autograder.notebook.reader import read_notebook
from autograder.notebook.rebuild import rebuild, to_content

ROOT = Path(__file__).parents[2]
NAME = "ps2-self-attention"
SOFTMAX = "def softmax(x):\n    e = np.exp(x - x.max())\n    return e / e.sum()"
ATTEND = "def attend(q, k, v):\n    return softmax(q @ k.T) @ v"
DOC = '"""The rows of the unit matrix, as an example of a matrix."""'
ESSAY = "Because the variance of the scores grows with d_k."


def code(grade_id, source, **flags):
    return _cell(v4.new_code_cell, grade_id, source, flags)


def text(grade_id, source, **flags):
    return _cell(v4.new_markdown_cell, grade_id, source, flags)


def _cell(new, grade_id, source, flags):
    nbgrader = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "grade_id": grade_id}
    return new(source, id=grade_id, metadata={"nbgrader": nbgrader | flags})


LOCKED, SOLUTION = {"locked": True}, {"solution": True}
TEST = {"grade": True, "locked": True, "points": 4}
WRITTEN = {"grade": True, "solution": True, "points": 2}
STUB = "    ### BEGIN SOLUTION\n    {}\n    ### END SOLUTION"


@pytest.fixture(scope="module")
def source():
    hidden = "### BEGIN HIDDEN TESTS\nassert secret_of({0}), 'x'\n### END HIDDEN TESTS"
    return v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        cells=[
            text("intro", "# A tiny set\n\n" + "The introduction, known again by its text. " * 3, **LOCKED),
            v4.new_code_cell('student_id = "..."', id="student-id"),
            code("imports", f"import numpy as np\n\n\ndef given_rows(n):\n    {DOC}\n    return np.eye(n)", **LOCKED),
            text("softmax-task", "## Exercise 1\n\nWrite the softmax of a vector, without overflow.", **LOCKED),
            code("softmax", "def softmax(x):\n" + STUB.format("return reference_softmax(x)"), **SOLUTION),
            code("softmax-tests", f"r = softmax(np.ones(2))\nassert r.sum() == 1\n{hidden.format(1)}", **TEST),
            text("attend-task", "## Exercise 2\n\nWrite attention with your softmax, please.", **LOCKED),
            code("attend", "def attend(q, k, v):\n" + STUB.format("return reference_attend()"), **SOLUTION),
            code("attend-tests", f"o = attend(q, k, v)\nassert o.shape == (2, 6)\n{hidden.format(2)}", **TEST),
            text("choice-task", "## Exercise 3\n\nWhich axis is normalised: a, b or c?", **LOCKED),
            code("choice", '### BEGIN SOLUTION\nanswer_axis = "b"\n### END SOLUTION', **SOLUTION),
            code("choice-tests", f"assert answer_axis in 'abc'\n{hidden.format(3)}", **TEST),
            text("why-task", "## Exercise 4\n\nWhy is the score divided by the root of d_k?", **LOCKED),
            text("why", "The variance. Rubric: 1 point for the word.", **WRITTEN),
            text("how-task", "## Exercise 5\n\nHow would you measure it?", **LOCKED),
            text("how", "With a loop. Rubric: 1 point.", **WRITTEN),
        ],
    )


@pytest.fixture(scope="module")
def released(source):
    return release_view(source)


ANSWERS = {
    "student-id": 'student_id = "ada"',
    "softmax": SOFTMAX,
    "attend": ATTEND,
    "choice": 'answer_axis = "c"',
    "why": ESSAY,
    "how": "I would draw many random vectors.",
}


@pytest.fixture
def done(released):
    """The released notebook, every answer filled in; the tests do to it what students and editors do."""
    notebook = deepcopy(released)
    for cell in notebook.cells:
        cell.source = ANSWERS.get(cell.id, cell.source)
    return notebook


class Handed:
    """What the rebuild makes of a notebook."""

    def __init__(self, source, released, notebook):
        submission, self.reading = read_notebook(json.dumps(notebook).encode(), "tiny.ipynb")
        self.rebuilt = rebuild(places_of(source, released), submission)
        self.notes, self.events = "\n".join(self.rebuilt.notes), "\n".join(self.rebuilt.events)
        self.by_id = {c.cell_id: c for c in self.rebuilt.cells}
        self.order = [c.cell_id for c in self.rebuilt.cells]
        self.extras = [c.source for c in self.rebuilt.cells if c.kind == "extra"]
        shown = from_dict(to_content(self.rebuilt, source))
        nbformat.validate(shown)
        given = [c.cell_id for c in self.rebuilt.cells if c.kind != "extra"]
        assert given == [c.id for c in source.cells]  # nothing lost, nothing out of order
        assert "secret_of" not in nbformat.writes(shown)
        assert all(
            c.source == s.source
            for c in self.rebuilt.cells
            for s in source.cells
            if c.kind in ("locked", "test") and s.id == c.cell_id
        )

    def answers(self):
        return {k: self.by_id[k].source for k in ANSWERS if self.by_id[k].answered}


@pytest.fixture
def hand_in(source, released):
    return lambda notebook: Handed(source, released, notebook)


def find(notebook, cell_id):
    return next(c for c in notebook.cells if c.id == cell_id)


def drop(notebook, *ids):
    notebook.cells = [c for c in notebook.cells if c.id not in ids]


def extra(source, kind="code", cell_id="zz"):
    new = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
    return new(source, id=cell_id)


def after(notebook, cell_id, *cells):
    at = notebook.cells.index(find(notebook, cell_id)) + 1
    notebook.cells[at:at] = cells


def strip(notebook, ids=True):
    for n, cell in enumerate(notebook.cells):
        cell.metadata = {}
        if ids:
            cell.id = f"random-{n}"


def make(folder, *names):
    for age, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("{}")
        os.utime(path, (1_000_000 + age, 1_000_000 + age))
