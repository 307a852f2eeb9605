"""What is said of wrong answers that no misconception of a catalogue explains: only what is true of them."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest
from nbformat import v4

from autograder.judging.client import Client
from autograder.judging.diagnosis import _what_all_say, diagnosed
from autograder.judging.reference import Judged
from autograder.judging.session import run_test_cell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import Variant
from autograder.results import Check

SOLUTIONS = Path(__file__).parents[2] / "source_solutions"
BEGIN = "def weighted(a, b, scale=2.0):\n"
CELL = f"""import numpy as np

{BEGIN}    ### BEGIN SOLUTION
    turned = np.swapaxes(b, -1, -2)
    products = a @ turned
    return products / scale
    ### END SOLUTION"""
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
CATALOGUE = """from autograder.catalogue import edited

edited("weighted", "multiplied", "products / scale", "products * scale", says="You multiply by the scale.")
edited("weighted", "upside_down", "a @ turned", "a[..., ::-1, :] @ turned", says="You read the rows from the end.")
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
            "Your answers are those of a solution in which a quotient is turned upside down.",
        ),
        (
            f"return np.exp({RIGHT})",
            "Where your answer is wrong, it is the right one after taking the exponential.",
        ),
        (
            "return a[..., ::-1, :] @ np.swapaxes(b, -1, -2) * scale",
            "Two mistakes at once give your answers: You multiply by the scale. You read the rows from the end.",
        ),
        (
            f"return {RIGHT} + (0 if a.ndim < 4 else np.sin(np.arange(3)) * a.max())",
            "As far as we saw, your answers are right except where there are several batch axes (an array has more "
            "than three); there 1 of 1 is wrong.",
        ),
    ],
)
def test_what_is_said_is_true_of_all_answers(source: Judged, body: str, sentence: str) -> None:
    assert said(source, body) == [sentence]


def test_nothing_is_said_of_answers_that_are_like_nothing(source: Judged) -> None:
    assert said(source, "return np.cos(a.sum() + np.arange(len(a) * len(b))).reshape(len(a), len(b))") == []
    assert said(source, "return 0.0") == []


def test_where_nothing_explains_the_answers_the_first_check_that_fails_is_told(source: Judged) -> None:
    first_check = source.catalogue.descriptions[-1]

    def told(*verdicts: str) -> str:
        return first_check([], [], [Check(f"property {n}", 1, verdict) for n, verdict in enumerate(verdicts)])

    begin = "We know no mistake that gives all your answers; "
    assert told("passed", "failed") == f"{begin}this much is seen: they are right in every check but “property 1”."
    where = "1 of 3 checks hold. The first that does not hold is “property 1”."
    assert told("passed", "failed", "failed") == begin + where
    assert told("failed", "failed") == told("timeout", "passed") == ""


def test_several_things_that_give_the_same_answers_are_not_told_one_from_the_other() -> None:
    def told(*variants: Variant) -> str | None:
        found = _what_all_say([*variants])
        return found and found[1]

    def change(says: str, value: object = None, also: str = "") -> Variant:
        return Variant("change", "weighted", value, "", False, says, also=also)

    step, argument = change("of a solution in which A"), change("for another `a`", value=abs)
    assert told(step) == "Your answers are those of a solution in which A."
    assert told(argument, step) == told(argument) == "Your answers are those for another `a`."
    assert told(argument, step, change("of a solution in which B")) is told(argument, argument) is None
    both = told(change("First.", also="Second."), change("Second.", also="Third."))
    assert both == "Two mistakes at once give your answers, of which one is this: Second."


def test_general_changes_say_nothing_that_students_were_not_given(source: Judged) -> None:
    said = [variant.says for variant in source.catalogue.changes_of("weighted")]
    assert len(said) > 100
    assert {word for text in said for word in re.findall("`(.*?)`", text)} == {"a", "b", "scale", ".T"}
    assert not any("products" in text or "turned)" in text for text in said)
