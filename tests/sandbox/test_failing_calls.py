"""The call that feedback shows with a failed check: small, true, and never what should have come out."""

from __future__ import annotations

import nbformat
import numpy as np
import pytest
from tiny_judge import FULL, RIGHT, SECRET, STUBS, TESTS, grade, reasons, scores, source_notebook

from autograder.checks import CheckFailed, compare
from autograder.judging import trials
from autograder.judging.trials import FAILING, LATEST, SMALLEST, Trial, as_text, smallest
from autograder.results import Check, Result

OVER_ALL = "def softmax(z):\n    e = np.exp(z - z.max())\n    return e / e.sum()"


def checks(result: Result, name: str) -> dict[str, Check]:
    exercise = next(e for e in result.exercises if e.grade_id == f"{name}-tests")
    return {check.name: check for check in exercise.checks}


def calls(result: Result) -> list[dict[str, str]]:
    return [check.example for exercise in result.exercises for check in exercise.checks if check.example]


def run(code: str, call: str) -> np.ndarray:
    """What a call gives that a student copies into a notebook with this answer."""
    names = {"np": np}
    exec(code, names)
    return eval(call, names)


def test_the_input_is_cut_down_and_the_call_does_what_is_said() -> None:
    shown = checks(grade({**RIGHT, "softmax": OVER_ALL}), "softmax")["random rows"].example
    assert shown["says"] == SMALLEST
    mine, right = (run(code, shown["call"]) for code in (OVER_ALL, RIGHT["softmax"]))
    assert mine.shape == (2, 2) and not np.allclose(mine, right)
    assert np.allclose(run("", shown["gave"]), mine, atol=1e-5)
    assert not any(f"{number:.4g}" in shown["call"] + shown["gave"] for number in right.ravel())


def test_an_error_is_shown_with_the_input_that_raises_it() -> None:
    first = "def softmax(z):\n    if z.ndim == 2:\n        raise ValueError('not two')\n"
    code = OVER_ALL.replace("def softmax(z):\n", first)
    check = checks(grade({**RIGHT, "softmax": code}), "softmax")["random rows"]
    assert check.verdict == "error" and "not two (line 3 of your cell" in check.reason
    with pytest.raises(ValueError, match="not two"):
        run(code, check.example["call"])
    assert check.example["says"] == SMALLEST and check.example["call"].count(",") <= 3


def test_a_change_of_the_input_is_shown_too() -> None:
    code = RIGHT["softmax"].replace("    e =", "    z -= z.max(axis=-1, keepdims=True)\n    e =")
    judged = checks(grade({**RIGHT, "softmax": code}), "softmax")
    own = judged.pop("`softmax` leaves its arguments as they are")
    assert "in place" in own.reason and own.example["says"] == SMALLEST
    assert all(check.passed for check in judged.values())


def test_what_was_typed_has_no_call_and_no_example_tells_a_secret() -> None:
    result = grade({**RIGHT, "sheet": "sheet_answer = np.array([1.0, 2.0, 3.0, 4.0])", "softmax": OVER_ALL})
    assert not any(check.example for check in checks(result, "sheet").values())
    assert calls(result) and not any(SECRET in str(shown) for shown in calls(result))


def test_who_hands_a_typed_answer_to_a_function_shows_no_inputs() -> None:
    """A cell that reads what was typed may ask with the right numbers."""
    points, visible, hidden = TESTS["softmax"]
    hidden += "\n\n@check('on the sheet', points=1)\ndef _():\n    sheet_answer\n"
    hidden += "    agrees(softmax, reference.sheet_answer)\n"
    source = nbformat.writes(source_notebook({**TESTS, "softmax": (points, visible, hidden)}))
    changed = {"source": source, "assignment_version": "tiny-typed"}
    result = grade({**RIGHT, "softmax": OVER_ALL.replace("e.sum()", "(e.sum() + 1)")}, **changed)
    assert scores(result)["softmax"] == 0 and not any(c.example for c in checks(result, "softmax").values())


def test_objects_and_functions_are_named_and_the_latest_call_is_called_so() -> None:
    twice = "def twice(f, x):\n    return f(x)"
    scale = RIGHT["scale"].replace("x * self.factor", "x + self.factor")
    result = grade({**RIGHT, "twice": twice, "scale": scale})
    shown = checks(result, "twice")["any function"].example
    assert shown["says"] == LATEST and "<the function" in shown["call"] and shown["gave"]
    shown = checks(result, "scale")["values"].example
    assert shown["call"].startswith("Scale(…)(torch.tensor([[1., 1., 1.]") and shown["gave"].startswith("torch.tensor(")


def test_an_unanswered_exercise_has_nothing_to_show() -> None:
    assert not calls(grade(STUBS))


@pytest.mark.parametrize("last", ["def softmax(z):\n    return 'another one'", "softmax = None", "del softmax"])
def test_where_a_later_cell_changed_the_name_the_input_that_was_asked_is_shown(last: str) -> None:
    shown = checks(grade({**RIGHT, "softmax": OVER_ALL}, last=last), "softmax")["random rows"].example
    assert shown["says"] == FAILING and "softmax(" in shown["call"]


@pytest.mark.parametrize(
    "harm",
    [
        "while True: pass",
        "import os; os._exit(3)",
        "while True:\n            try: time.sleep(9)\n            except BaseException: pass",
        "return bytearray(2 * 10**9)",
    ],
)
def test_cutting_down_costs_the_student_nothing(harm: str) -> None:
    """Small inputs are asked after all that counts: whatever the answers do then, the verdicts stand."""
    first = "def softmax(z):\n    if z.size <= 4 and abs(z).max() < 5 and (z == z.round(1)).all():\n        "
    code = OVER_ALL.replace("def softmax(z):\n", f"{first}{harm}\n")
    result = grade({**RIGHT, "softmax": code}, first="import time")
    plain = grade({**RIGHT, "softmax": OVER_ALL})
    assert result.status == "graded" and scores(result) == scores(plain)
    assert scores(result) == {**FULL, "softmax": scores(plain)["softmax"]}
    assert checks(result, "softmax")["random rows"].example


def test_equal_answers_are_told_the_same_whoever_comes_first() -> None:
    first, second = (grade({**RIGHT, "softmax": OVER_ALL}, student=name) for name in ("a", "b"))
    assert calls(first) == calls(second)


HOSTILE = [
    "'<script>' + chr(0x202e) + chr(27) + chr(0xd800) * 3",
    "'x' * 10**6",
    "[[[[[[1]]]]]] * 50",
    "{i: {j: [0] * 30 for j in range(30)} for i in range(30)}",
    "np.array(['<b>' * 50] * 3)",
    "np.array(['2020'], 'datetime64[Y]')",
    "torch.zeros(3, dtype=torch.bfloat16)",
    "np.zeros((0, 3)), np.full((2, 2), np.nan), 2 ** 4000, 1e400, 3 + 1j, b'x' * 500",
    "{frozenset([1]): ..., None: slice(1, 2), True: range(10**5), 'k': Exception}",
    "(lambda: 0), type('X' * 10**5, (), {})()",
]


@pytest.mark.parametrize("value", HOSTILE)
def test_whatever_comes_out_is_short_and_printable(value: str) -> None:
    result = grade({**RIGHT, "softmax": f"def softmax(z):\n    return {value}"})
    assert result.status == "graded" and scores(result) == {**FULL, "softmax": 0}
    for shown in calls(result):
        assert all(line.isprintable() for line in shown["gave"].split("\n")), shown
        assert len(shown["gave"]) <= trials.MOST_CHARACTERS + 2 and len(shown["call"]) <= trials.MOST_CHARACTERS + 2


def test_a_syntax_error_names_the_line_and_no_file_of_ours() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return z +* 2"})
    assert "line 2 of your cell: `return z +* 2`" in reasons(result, "softmax")
    assert "ipython-input" not in reasons(result, "softmax")


# --- without a sandbox -----------------------------------------------------------------------------------------------


def demand_equal(right):
    def holds(function, args, kwargs):
        compare(function(*args, **kwargs), right(*args, **kwargs))

    return holds


def test_an_input_on_which_right_functions_differ_is_not_allowed() -> None:
    """Only even lengths are: one right function adds pairs, the other adds all."""

    def total(z):
        return z.sum()

    def pairs(z):
        return (z[0::2] + z[1::2]).sum() if len(z) % 2 == 0 else 0.0

    def wrong(z):
        return z.sum() if len(z) < 4 else z.sum() + 1

    trial = Trial("f", (np.arange(1.0, 11.0),), {}, demand_equal(total), "result: the number is off by more than ")
    found = smallest(trial, wrong, [total, pairs])
    assert found is not None and found["call"] == "f(np.array([1., 2., 3., 4.]))"
    assert smallest(trial, total, [total, pairs]) is None


def test_texts_and_lists_are_cut_down() -> None:
    def right(text, words):
        return float(len(words))

    def wrong(text, words):
        return float(len(words)) + ("x" in text and "b" in words)

    trial = Trial(
        "f",
        ("a longer text with an x in it", ["a", "b", "c", "d"]),
        {},
        demand_equal(right),
        "result: the number is off by more than ",
    )
    found = smallest(trial, wrong, [right])
    assert found is not None and found["call"] == "f('x', ['b'])" and found["gave"] == "2."


def test_numbers_are_code() -> None:
    for value in [
        np.array([[0.3, -1.2], [2.0, 0.1]]),
        np.array([1, 2]),
        np.eye(2, dtype=bool),
        np.float32([0.5]),
        1e-5,
    ]:
        again = run("", as_text(value))
        assert np.array_equal(again, value) and np.asarray(again).dtype == np.asarray(value).dtype
    assert "1.23457" in as_text(np.array([1.23456789]))


def test_how_far_off_is_not_said_of_whole_or_single_numbers() -> None:
    for given, right in [([3, 4, 5], [1, 2, 3]), (3.5, 2.25), ([1.5, 2.0], [1.5, 2.5])]:
        with pytest.raises(CheckFailed) as failed:
            compare(np.array(given), np.array(right), how_far=True)
        assert "difference" not in str(failed.value)
    with pytest.raises(CheckFailed, match="largest difference"):
        compare(np.array([0.5, 0.1]), np.array([0.25, 0.75]), how_far=True)
