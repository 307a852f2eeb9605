"""Requests asked ahead: what may be among them, and that they change no verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_judge import CATALOGUE, RIGHT, TESTS, grade, job_for, scores, source_notebook, submission, verdicts

from autograder.course import Course
from autograder.grading.runner import Prepared, Settings
from autograder.judging.foresight import disturbed
from autograder.judging.judge import Judge, Judged, run_job, run_test_cell, source_of
from autograder.judging.proxies import Client, LocalTransport
from autograder.results import Exercise, Result
from autograder.sandbox.inside.protocol import read_npy

ROOT = Path(__file__).parent.parent
EXAMPLES = Course(ROOT / "examples")


def foreseen(name: str, visible: str, hidden: str) -> list:
    """The requests asked ahead for a test cell of the tiny set with this text."""
    source = Judged(source_notebook({**TESTS, name: (4, visible, hidden)}), CATALOGUE, "tiny")
    return source.foresight(source.tests[f"{name}-tests"], 5).requests


def test_all_that_depends_on_no_answer_is_asked_ahead() -> None:
    assert len(foreseen("softmax", *TESTS["softmax"][1:])) == 4
    scale = foreseen("scale", *TESTS["scale"][1:])
    assert len(scale) == 10, "calls on an object that an earlier call made are known as well"


def test_a_name_that_is_asked_for_on_the_way_is_asked_in_its_turn() -> None:
    """What `student_side` gives is none of the names with which the message begins."""
    hidden = """
from autograder.checks import student_side

@check("a given class, in the student's process")
def _(rng):
    compare(student_side("numbers")("somebody"), numbers("somebody"))
    compare(softmax(np.zeros(2)), np.full(2, 0.5))
"""
    assert foreseen("softmax", "", hidden) == []


def test_personal_exercises_and_given_functions_are_asked_in_their_turn() -> None:
    source = Judged(source_notebook(), CATALOGUE, "tiny")
    assert source.foresight(source.tests["sheet-tests"], 5) is None
    assert foreseen("twice", *TESTS["twice"][1:]) == []


@pytest.mark.parametrize(
    "made_of_an_answer",
    [
        "softmax(softmax(x))",
        "softmax(softmax(x) * 1e9)",
        "softmax(np.round(softmax(x), 1))",
        "softmax(x + (softmax(x) > 0.3))",
        "softmax(softmax(x).T)",
        "softmax(np.ones(3) * float(softmax(x)[0, 0]))",
        "agrees(softmax, reference.softmax(x)); softmax(x)",
        "softmax(np.sort(softmax(x)))",
        "softmax(np.eye(3)[int(np.argmax(softmax(x)[0]))])",
        "softmax(reference.softmax(x).T)",
        "softmax(3 * reference.softmax(x) - 1)",
        "softmax(1.0 * np.argsort(reference.softmax(x)))",
        "softmax(attended(x))",
        "softmax(np.cumsum(attended(x)))",
    ],
)
def test_nothing_made_of_an_answer_is_asked_ahead(made_of_an_answer: str) -> None:
    hidden = f"""
def attended(x):  # what a given helper makes of the reference
    return reference.attend(x, x, x)[1]

@check("a chain")
def _(rng):
    x = rng.normal(size=(2, 3))
    softmax(x)
    {made_of_an_answer}
    softmax(x + 1)
"""
    requests = foreseen("softmax", "", hidden)
    reference = Judged(source_notebook(), CATALOGUE, "tiny").reference["softmax"]
    assert 1 <= len(requests) <= 2, "what follows a request that must wait keeps its place behind it"
    for request in requests:
        for blob in request.blobs:
            answers = [reference(read_npy(b)) for r in requests for b in r.blobs]
            assert not any(np.allclose(read_npy(blob), answer) for answer in answers)


@pytest.mark.parametrize("then, number", [("attend(x, np.ones((3, 4)), np.eye(3))", 2), ("attend(V, V, np.eye(1))", 1)])
def test_an_answer_is_told_by_no_question_but_its_own(then: str, number: int) -> None:
    """With a single key the output is its value, which the question holds in any case; another one must not."""
    hidden = f"""
@check("a single key, then another question")
def _(rng):
    x, V = rng.normal(size=(2, 1, 4))
    attend(x, x, V)
    {then}
"""
    assert len(foreseen("attend", "", hidden)) == number


def test_assertions_between_requests_hide_none_of_them() -> None:
    visible = "assert abs(softmax(np.zeros(2))[0] - 0.5) < 1e-9\nassert softmax(np.zeros((2, 3))).shape == (2, 3)"
    assert (
        len(foreseen("softmax", visible, "assert softmax(np.ones(3)).sum() > 0.9\nassert softmax(np.ones(4)).any()"))
        == 4
    )


@pytest.mark.parametrize(
    "value",
    [
        True, 3, 2.5, float("inf"), 1 + 2j, "text", b"bytes", (1, 2.0), [True, "a"], {"a": 1.0}, {1, 2},
        np.arange(4), np.ones((2, 3)), np.array([True, False]), np.float32(2), np.array(["a", "b"]),
        torch.ones(2, 3), torch.arange(3), torch.tensor([True, False]), torch.ones(2, dtype=torch.bfloat16),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_disturbed_answer_shares_nothing_but_kind_and_shape(value: object, sign: float) -> None:
    other = disturbed(value, np.random.default_rng(0), sign)
    assert type(other) is type(value)
    if isinstance(value, (np.ndarray, torch.Tensor)):
        assert other.shape == value.shape and other.dtype == value.dtype
        assert not np.any(np.asarray((other == value).tolist()))
    else:
        assert other != value


def test_a_function_that_hangs_is_judged_request_by_request() -> None:
    """The first check's answers count, though the others of the same message never came."""
    slow = "def softmax(z):\n    while z.ndim == 2:\n        pass\n    e = np.exp(z - z.max())\n    return e / e.sum()"
    result = grade({"softmax": slow})
    assert verdicts(result, "softmax") == ["passed", "timeout", "timeout"]


def test_a_process_that_dies_in_the_middle_keeps_what_came_before() -> None:
    dies = "import os\ndef softmax(z):\n    if abs(z).max() > 100:\n        os._exit(3)\n"
    result = grade({"softmax": dies + RIGHT["softmax"].split("\n", 1)[1]})
    assert verdicts(result, "softmax") == ["passed", "passed", "crashed"]
    assert scores(result)["softmax"] == 3


@pytest.mark.parametrize("answer", [1, 1.0, "np.True_", "np.array(True)"])
def test_what_python_takes_for_equal_is_compared_like_any_other_answer(answer: object) -> None:
    """`agrees` spares the comparison where an answer is the reference's bit for bit: 1 is not True."""
    body = "    return bool(z.sum() > -1e9)"
    source = Judged(source_notebook(), CATALOGUE, "tiny")
    test = source.tests["softmax-tests"]
    hidden = "from autograder.checks import agrees, check\n@check('a')\ndef _(rng):\n    agrees(softmax, np.ones(3))"
    test = source.tests["softmax-tests"] = replace(test, visible="", hidden=hidden, names={"softmax"})
    exec(f"def softmax(z):\n{body}", source.reference)
    names = {"np": np}
    exec(f"def softmax(z):\n    return {answer}", names)
    said = []
    for ahead in (True, False):
        client = Client(LocalTransport(names))
        if ahead:
            client.ask_ahead(source.foresight(test, 5))
        said.append([c.verdict for c in run_test_cell(test, client, source, 5).checks])
    right = ["passed"] if isinstance(answer, str) else ["failed"]
    assert said == [right, right]


def test_what_a_test_cell_does_to_an_answer_changes_no_expectation() -> None:
    """The reference's answer is kept to compare with; the test cell, which got it too, may have written into it."""
    hidden = """
@check("as it was", points=1)
def _(rng):
    weights = agrees(softmax, rng.normal(size=(2, 3)))
    weights[:] = 0.0
"""
    rounded = RIGHT["softmax"].replace("return e / ", "return (1 + 1e-12) * e / ")  # right, but not bit for bit
    source = Judged(source_notebook({**TESTS, "softmax": (1, "", hidden)}), CATALOGUE, "tiny")
    names = dict(source.reference)
    exec(rounded, names)
    client = Client(LocalTransport(names))
    client.ask_ahead(source.foresight(source.tests["softmax-tests"], 5))
    assert [c.verdict for c in run_test_cell(source.tests["softmax-tests"], client, source, 5).checks] == ["passed"]


def test_the_reference_is_whole_again_after_a_disturbed_run() -> None:
    source = Judged(source_notebook(), CATALOGUE, "tiny")
    before = dict(source.reference)
    for test in source.tests.values():
        source.foresight(test, 5)
    assert {n: v for n, v in source.reference.items() if v is not before.get(n)} == {}


def test_answers_that_count_calls_gain_nothing() -> None:
    counting = "n = [0]\n" + RIGHT["softmax"].replace("    e =", "    n[0] += 1\n    if n[0] > 2: return z\n    e =", 1)
    assert scores(grade({"softmax": counting}))["softmax"] < 4


def test_the_same_answers_are_judged_once() -> None:
    job = job_for(submission(RIGHT), assignment_version="judged-once")
    first = Result.from_json(json.loads(run_job(job.to_bytes())))
    known = len(source_of(job).known)
    assert known == 3, "softmax, attend and scale follow from their answers; sheet is personal, twice takes functions"
    again = Result.from_json(json.loads(run_job(job.to_bytes())))
    assert len(source_of(job).known) == known
    assert [(e.score, [c.verdict for c in e.checks]) for e in again.exercises] == [
        (e.score, [c.verdict for c in e.checks]) for e in first.exercises
    ]


@pytest.mark.slow
@pytest.mark.parametrize("student", sorted(EXAMPLES.submissions("ps2-self-attention")))
def test_no_verdict_depends_on_what_is_asked_ahead(student: str) -> None:
    files = EXAMPLES.set_files("ps2-self-attention")
    job = Prepared(files, student, Settings(), 11).read(EXAMPLES.submissions("ps2-self-attention")[student])
    if isinstance(job, Result):
        pytest.skip("it holds no notebook that can be judged")
    results = [Judge(job, Judged.from_text(job.source, job.catalogue, job.assignment, job.set_checks), ahead=False).run()]
    results.append(Result.from_json(json.loads(run_job(job.to_bytes()))))
    said = [[_said(e) for e in result.exercises] for result in results]
    assert said[0] == said[1]


def _said(exercise: Exercise) -> tuple:
    checks = [(c.name, c.verdict, c.reason) for c in exercise.checks]
    named = [m.name for m in exercise.misconceptions]
    return exercise.grade_id, exercise.score, exercise.follow_through, named, checks
