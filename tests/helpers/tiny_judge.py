"""A tiny set and a way to grade one submission to it in this process, on one warm sandbox for all tests."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy
from functools import cache
from typing import Any

import nbformat
from nbformat import v4

from autograder.judging.job import Job
from autograder.judging.worker import run_job
from autograder.notebook.places import places_of, release_view
from autograder.notebook.rebuild import rebuild
from autograder.results import Result

SET = "tiny"
SECRET = "the-owl-flies-at-dusk"  # stands in every hidden test and in a reference solution
LIMITS = {
    **{"cell_seconds": 3, "call_seconds": 2, "exercise_seconds": 6, "notebook_seconds": 40},
    **{"memory_bytes": 600 * 2**20, "processes": 32, "file_bytes": 8 * 2**20, "disk_bytes": 16 * 2**20},
}
HELPERS = """import zlib

import numpy as np
import torch

def numbers(student_id):
    rng = np.random.default_rng(zlib.crc32(str(student_id).encode()))
    return rng.integers(1, 9, size=4).astype(float)"""
SOLUTIONS = {
    "sheet": ("sheet_answer = numbers(student_id) * 2", "", "sheet_answer"),
    "softmax": (
        f"    e = np.exp(z - z.max(axis=-1, keepdims=True))  # {SECRET}\n    return e / e.sum(axis=-1, keepdims=True)",
        "def softmax(z):",
        "softmax",
    ),
    "attend": (
        "    weights = softmax(Q @ K.T / np.sqrt(Q.shape[-1]))\n    return weights @ V, weights",
        "def attend(Q, K, V):",
        "attend",
    ),
    "twice": ("    return f(f(x))", "def twice(f, x):", "twice"),
    "scale": (
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.factor = torch.nn.Parameter(torch.ones(width))\n\n"
        "    def forward(self, x):\n        return x * self.factor",
        "class Scale(torch.nn.Module):",
        "Scale",
    ),
}
TESTS = {
    "sheet": (
        2,
        'assert np.shape(sheet_answer) == (4,), "four numbers"',
        """
@check("the numbers", points=1)
def _(rng):
    compare(sheet_answer, numbers(student_id) * 2, "sheet_answer", atol=0.005)""",
    ),
    "softmax": (
        4,
        'assert abs(softmax(np.array([0.0, np.log(3)]))[1] - 0.75) < 1e-6, "3 : 1"',
        """
@check("random rows", points=2)
def _(rng):
    agrees(softmax, cases=[(rng.normal(size=shape),) for shape in [(3,), (2, 5)]])

@check("large numbers", points=1)
def _(rng):
    agrees(softmax, 1000 * rng.normal(size=(3, 4)))""",
    ),
    "attend": (
        3,
        "assert attend(np.ones((1, 2)), np.ones((3, 2)), np.ones((3, 4)))[0].shape == (1, 4)",
        """
uses("softmax")

@check("random sizes", points=2)
def _(rng):
    agrees(attend, rng.normal(size=(2, 3)), rng.normal(size=(4, 3)), rng.normal(size=(4, 5)), names=("out", "w"))""",
    ),
    "twice": (
        2,
        'assert twice(lambda x: x + 1, 1) == 3, "add one twice"',
        """
@check("any function", points=1)
def _(rng):
    slope = float(rng.uniform(2, 3))
    compare(twice(lambda x: slope * x, 2.0), slope * slope * 2)""",
    ),
    "scale": (
        3,
        "assert Scale(3)(torch.ones(2, 3)).shape == (2, 3)",
        """
@check("values", points=1)
def _(rng):
    model = Scale(3)
    model.load_state_dict({"factor": torch.tensor([1.0, 2.0, 3.0])})
    compare(model(torch.ones(2, 3)), torch.tensor([[1.0, 2, 3], [1, 2, 3]]))

@check("gradients", points=1)
def _(rng):
    x = torch.as_tensor(rng.normal(size=(2, 3)).astype("float32"))
    theirs, ours = (parameter_gradients(cls(3), x)["factor"] for cls in (Scale, reference.Scale))
    if theirs is None:
        fail("the factor gets no gradient")
    compare(theirs, ours, atol=1e-4)
    compare(gradients(Scale(3), x)[0], gradients(reference.Scale(3), x)[0], atol=1e-4)""",
    ),
}
FULL = {name: float(points) for name, (points, _, _) in TESTS.items()}
NOTHING = dict.fromkeys(TESTS, 0.0)
IMPORTS = (
    "from autograder.checks import agrees, check, compare, fail, gradients, parameter_gradients, reference, uses\n"
)
CATALOGUE = """# ruff: noqa: F821
from autograder.catalogue import edited, wrong

@wrong("softmax", says="Subtract the largest entry of each row, not of the whole array.")
def no_normalisation(z):
    return np.exp(z - z.max())

edited("attend", "unscaled", "np.sqrt(Q.shape[-1])", "1.0", says="Divide by the square root of the width.")
"""
RIGHT = {name: f"{head}\n{body}" if head else body for name, (body, head, _) in SOLUTIONS.items()}
STUBS = {
    "sheet": "sheet_answer = None",
    **{n: f"{head}\n    raise NotImplementedError()" for n, (_, head, _) in SOLUTIONS.items() if head},
}
POINTS = sum(points for points, _, _ in TESTS.values())


def _meta(grade_id: str, **more: Any) -> dict[str, Any]:
    base = {"schema_version": 3, "grade": False, "solution": False, "locked": False, "grade_id": grade_id}
    return {"nbgrader": {**base, **more}}


def source_notebook(tests: dict[str, tuple[float, str, str]] = TESTS) -> nbformat.NotebookNode:
    cells = [
        v4.new_code_cell('student_id = "..."', id="student-id"),
        v4.new_code_cell(HELPERS, id="helpers", metadata=_meta("helpers", locked=True)),
    ]
    for name, (body, head, _) in SOLUTIONS.items():
        indent = "    " if head else ""
        text = f"{indent}### BEGIN SOLUTION\n{body}\n{indent}### END SOLUTION"
        points, visible, hidden = tests[name]
        marked = f"{visible}\n### BEGIN HIDDEN TESTS\n{IMPORTS}# {SECRET}\n{hidden}\n### END HIDDEN TESTS"
        meta = _meta(f"{name}-tests", grade=True, locked=True, points=points)
        cells += [
            v4.new_markdown_cell(f"## Exercise {name}", id=f"{name}-task", metadata=_meta(f"{name}-task", locked=True)),
            v4.new_code_cell(f"{head}\n{text}" if head else text, id=name, metadata=_meta(name, solution=True)),
            v4.new_code_cell(marked, id=f"{name}-tests", metadata=meta),
        ]
    notebook = v4.new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})
    nbformat.validate(notebook)
    return notebook


@cache
def _source() -> tuple[nbformat.NotebookNode, nbformat.NotebookNode]:
    source = source_notebook()
    return source, release_view(source)


def submission(
    answers: dict[str, str], first: str = "", last: str = "", student_id: str = '"student-07"'
) -> nbformat.NotebookNode:
    """What a student hands in: `answers` by exercise, own cells before and after everything."""
    notebook = deepcopy(_source()[1])
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        if name in answers:
            cell.source = answers[name]
        if cell.id == "student-id":
            cell.source = f"student_id = {student_id}"
    if first:
        notebook.cells.insert(0, v4.new_code_cell(first, id="own-first"))
    if last:
        notebook.cells.append(v4.new_code_cell(last, id="own-last"))
    return notebook


def job_for(notebook: nbformat.NotebookNode, limits: dict[str, Any] | None = None, **more: Any) -> Job:
    source, released = _source()
    rebuilt = rebuild(places_of(source, released), notebook)
    settings: dict[str, Any] = {
        **{"student": "student-07", "assignment": SET, "key": "k", "catalogue": CATALOGUE},
        **{"assignment_version": "tiny-1", "grader_version": "g", "seed": 5, "source": nbformat.writes(source)},
    }
    return Job(
        cells=json.dumps([vars(c) for c in rebuilt.cells]),
        limits={**LIMITS, **(limits or {})},
        notes=rebuilt.notes,
        events=rebuilt.events,
        **{**settings, **more},
    )


def grade(
    answers: dict[str, str] | None = None,
    first: str = "",
    last: str = "",
    student_id: str = '"student-07"',
    limits: dict[str, Any] | None = None,
    **more: Any,
) -> Result:
    """Grade a submission with these answers (the others as released) in the sandbox."""
    job = job_for(submission(answers or {}, first, last, student_id), limits, **more)
    return Result.from_json(json.loads(run_job(job.to_bytes())))


def scores(result: Result) -> dict[str, float]:
    return {e.grade_id.removesuffix("-tests"): e.score for e in result.exercises}


def verdicts(result: Result, name: str) -> list[str]:
    exercise = next(e for e in result.exercises if e.grade_id == f"{name}-tests")
    return [c.verdict for c in exercise.checks]


def reasons(result: Result, name: str) -> str:
    exercise = next(e for e in result.exercises if e.grade_id == f"{name}-tests")
    return "\n".join(c.reason for c in exercise.checks)


def printed(result: Result) -> str:
    """All text that the student's cells showed."""
    assert result.notebook is not None
    own = [c for c in result.notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("grade")]
    return "\n".join(_texts(o for c in own for o in c.get("outputs", [])))


def _texts(outputs: Iterable[dict[str, Any]]) -> Iterable[str]:
    for output in outputs:
        for text in (output.get("text", ""), output.get("data", {}).get("text/plain", ""), output.get("evalue", "")):
            yield text if isinstance(text, str) else "".join(text)


def every(body: str) -> dict[str, str]:
    """All functions with the same body; the worksheet's answer is what `softmax` gives for nothing."""
    return {
        "sheet": f"def given():\n{body}\nsheet_answer = given()",
        "softmax": f"def softmax(z=None):\n{body}",
        "attend": f"def attend(Q, K, V):\n{body}",
        "twice": f"def twice(f, x):\n{body}",
        "scale": f"def Scale(width):\n{body}",
    }
