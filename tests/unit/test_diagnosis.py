"""What is said of wrong answers that no misconception of a catalogue explains: only what is true of them."""

import contextlib
import io
from pathlib import Path

import numpy as np
import pytest
from nbformat import v4

from autograder.judging.client import Client
from autograder.judging.diagnosis import diagnosed
from autograder.judging.reference import Judged
from autograder.judging.session import run_test_cell
from autograder.judging.transports import LocalTransport

SOLUTIONS = Path(__file__).parents[2] / "source_solutions"
BEGIN = "def weighted(a, b, scale=2.0):\n"
CELL = f"import numpy as np\n\n{BEGIN}    products = a @ np.swapaxes(b, -1, -2)\n    return products / scale"
TESTS = """### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check

@check("tables", points=1)
def _(rng):
    agrees(weighted, cases=[(rng.normal(size=(3, 4)), rng.normal(size=(5, 4))) for _ in range(3)])

@check("batches", points=1)
def _(rng):
    agrees(weighted, cases=[(rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4)), 3.0) for _ in range(3)])

@check("many axes", points=1)
def _(rng):
    agrees(weighted, cases=[(rng.normal(size=(2, 2, 3, 4)), rng.normal(size=(2, 2, 3, 4))) for _ in range(3)])
### END HIDDEN TESTS"""
CATALOGUE = """from autograder.catalogue import wrong

@wrong("weighted", says="You multiply by the scale.")
def multiplied(a, b, scale=2.0):
    return a @ np.swapaxes(b, -1, -2) * scale
"""
RIGHT = "a @ np.swapaxes(b, -1, -2) / scale"


@pytest.fixture(scope="module")
def source() -> Judged:
    def meta(**more):
        base = {"schema_version": 3, "grade": False, "solution": False, "locked": False}
        return {"nbgrader": {**base, **more}}

    cells = [
        v4.new_code_cell(CELL, metadata=meta(solution=True, grade_id="weighted")),
        v4.new_code_cell(TESTS, metadata=meta(grade=True, locked=True, points=3, grade_id="weighted-tests")),
    ]
    texts = [(SOLUTIONS / f"{name}.py").read_text(encoding="utf-8") for name in ("changes", "relations")]
    return Judged(v4.new_notebook(cells=cells), "".join(f"exec({text!r}); " for text in texts) + CATALOGUE)


def said(source: Judged, body: str) -> list[str]:
    namespace = {"np": np}
    exec(f"{BEGIN}    {body}", namespace)
    test = source.tests["weighted-tests"]
    with contextlib.redirect_stdout(io.StringIO()):
        outcome = run_test_cell(test, Client(LocalTransport(namespace), call_seconds=60), source, 1)
    assert not outcome.full
    named, is_done = diagnosed(source, test, source.reference_outcome(test, 1, ""), outcome, 1, "", 60.0)
    assert is_done
    return [m.says for m in named]


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return a @ np.swapaxes(b, -1, -2) * scale", "You multiply by the scale."),
        (
            "return (a / np.linalg.norm(a, axis=-1, keepdims=True)) @ np.swapaxes(b, -1, -2) / scale",
            "Your answers are those for another `a`: the one given, with each row brought to length 1.",
        ),
        (
            "return scale / (a @ np.swapaxes(b, -1, -2))",
            "Your answers are those of a solution that has one change: in what it returns, it has the two sides of an "
            "operation in each other's place.",
        ),
        (
            f"return np.exp({RIGHT})",
            "Where your answer is wrong, it is the right one after taking the exponential.",
        ),
        (
            "return np.abs(a) @ np.swapaxes(b, -1, -2) * scale",
            "Your answers are those of a mistake that we know, and of something more. The mistake: You multiply by the "
            "scale. More: they are those for another `a`: the one given, without the signs.",
        ),
        (
            f"return {RIGHT} + (0 if a.ndim < 4 else np.sin(np.arange(3)) * a.max())",
            "Of all that was asked, your answers are wrong just where an array has more than three axes.",
        ),
    ],
)
def test_what_is_said_is_true_of_all_answers(source: Judged, body: str, sentence: str) -> None:
    assert said(source, body) == [sentence]


def test_of_one_check_only_that_check_is_spoken_of(source: Judged) -> None:
    body = f"return a @ np.swapaxes(b, -1, -2) * scale if a.ndim < 3 else np.cos({RIGHT} * a.max())"
    assert said(source, body) == [
        "In the check “tables” your answers are those of this mistake: You multiply by the scale."
    ]


def test_nothing_is_said_of_answers_that_are_like_nothing(source: Judged) -> None:
    assert said(source, "return np.cos(a.sum() + np.arange(len(a) * len(b))).reshape(len(a), len(b))") == []
    assert said(source, "return 0.0") == []
