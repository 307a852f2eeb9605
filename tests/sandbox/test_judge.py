"""Each kind of verdict, on a tiny set with real processes."""

from __future__ import annotations

import json
import os

import nbformat
import pytest
from tiny_judge import (
    CATALOGUE,
    LIMITS,
    POINTS,
    RIGHT,
    SECRET,
    TESTS,
    grade,
    job_for,
    printed,
    reasons,
    scores,
    source_notebook,
    submission,
    verdicts,
)

from autograder.judging.client import Client
from autograder.judging.job import Job
from autograder.judging.judge import clean_outputs
from autograder.judging.reference import Judged
from autograder.judging.session import run_test_cell
from autograder.judging.source import BadSource
from autograder.judging.transports import LocalTransport
from autograder.judging.worker import run_job, source_of
from autograder.results import Result

FULL = {name: float(points) for name, (points, _, _) in TESTS.items()}
NOTHING = dict.fromkeys(TESTS, 0.0)


def test_right_answers_get_every_point() -> None:
    result = grade(RIGHT)
    assert scores(result) == FULL
    assert result.auto_score == POINTS
    assert result.events == [] and result.typed_id == "student-07"
    assert all(v == "passed" for name in TESTS for v in verdicts(result, name))


def test_judging_leaves_the_process_as_it_was() -> None:
    """Formgrader's server judges in its own process, and starts kernels that draw."""
    before = dict(os.environ)
    grade(RIGHT)
    assert dict(os.environ) == before


def test_an_untouched_notebook_gets_none_and_is_told_why() -> None:
    result = grade()
    assert scores(result) == NOTHING
    assert "raises NotImplementedError" in reasons(result, "softmax")
    assert not any(e.answered for e in result.exercises)


def test_a_check_that_does_not_hold_costs_its_own_points_only() -> None:
    naive = "def softmax(z):\n    return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)"
    result = grade({**RIGHT, "softmax": naive})
    assert scores(result) == {**FULL, "softmax": 3.0}
    assert verdicts(result, "softmax") == ["passed", "passed", "failed"]
    assert "NaN" in reasons(result, "softmax")


def test_an_error_names_the_students_own_line() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    wrong = {}['here']\n    return wrong"})
    assert set(verdicts(result, "softmax")) == {"error"}
    assert "KeyError: 'here'" in reasons(result, "softmax") and "line 2 of your cell" in reasons(result, "softmax")


def test_a_loop_without_end_is_stopped_and_the_rest_is_judged() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    while True: pass"})
    assert set(verdicts(result, "softmax")) == {"timeout"}
    assert scores(result) == {**FULL, "softmax": 0.0}  # attend by follow-through
    assert next(e for e in result.exercises if e.grade_id == "attend-tests").follow_through == ["softmax"]


def test_an_interrupt_that_is_swallowed_ends_the_process() -> None:
    stubborn = "def softmax(z):\n    import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)\n    while True: pass"
    result = grade({**RIGHT, "softmax": stubborn})
    assert verdicts(result, "softmax") == ["timeout", "not reached", "not reached"]
    assert scores(result) == {**NOTHING, "sheet": 2.0}
    assert "did not stop" in reasons(result, "attend")


def test_a_crash_keeps_what_passed_before() -> None:
    code = "import os\ncalls = []\n" + RIGHT["softmax"].replace(
        "    e =", "    calls.append(1)\n    if len(calls) > 2: os._exit(7)\n    e ="
    )
    result = grade({**RIGHT, "softmax": code})
    assert verdicts(result, "softmax") == ["passed", "crashed", "not reached"]
    assert scores(result) == {**NOTHING, "sheet": 2.0, "softmax": 1.0}
    assert "exit code 7" in reasons(result, "softmax")


def test_a_signal_is_named() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    import ctypes; ctypes.string_at(0)"})
    assert verdicts(result, "softmax")[0] == "crashed"
    assert "signal 11" in reasons(result, "softmax")


def test_too_much_memory_is_a_verdict_of_its_own() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return np.ones(10**10)"})
    assert set(verdicts(result, "softmax")) == {"out of memory"}
    assert scores(result) == {**FULL, "softmax": 0.0}
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return torch.ones(10**10)"})
    assert set(verdicts(result, "softmax")) == {"out of memory"}


def test_the_whole_notebooks_time() -> None:
    slow = "import time\ntime.sleep(2.5)"
    result = grade({**RIGHT, "sheet": slow + "\n" + RIGHT["sheet"]}, first=slow, limits={"notebook_seconds": 3})
    assert result.auto_score == 0
    assert "notebook used up its time" in reasons(result, "softmax")


def test_follow_through_judges_each_exercise_for_itself() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return z"})
    assert scores(result) == {**FULL, "softmax": 0.0}
    exercise = next(e for e in result.exercises if e.grade_id == "attend-tests")
    assert exercise.follow_through == ["softmax"]


def test_follow_through_gives_the_own_function_back() -> None:
    wrong = "def softmax(z):\n    return z"
    probe = "print('softmax of 3 is', softmax(np.array([3.0])))"
    assert "softmax of 3 is [3.]" in printed(grade({**RIGHT, "softmax": wrong}, last=probe))


def test_a_failure_names_its_case_but_no_expected_value() -> None:
    result = grade(
        {**RIGHT, "softmax": RIGHT["softmax"].replace("    return", "    if z.ndim > 1: return z\n    return")}
    )
    assert "in case 2 of 2, with inputs (2, 5)" in reasons(result, "softmax")


def test_a_case_that_hangs_has_its_own_time_and_the_cases_before_it_count() -> None:
    """The first of the check's two cases is wrong, the second does not end; then with the first one right."""
    slow = "def softmax(z):\n    while z.ndim == 2:\n        pass\n"
    wrong = grade({"softmax": slow + "    return z"})
    assert verdicts(wrong, "softmax") == ["failed", "failed", "timeout"]
    right = grade({"softmax": slow + "    e = np.exp(z - z.max())\n    return e / e.sum()"})
    assert verdicts(right, "softmax") == ["passed", "timeout", "timeout"]


def test_a_process_that_dies_in_the_middle_keeps_what_came_before() -> None:
    dies = "import os\ndef softmax(z):\n    if abs(z).max() > 100:\n        os._exit(3)\n"
    result = grade({"softmax": dies + RIGHT["softmax"].split("\n", 1)[1]})
    assert verdicts(result, "softmax") == ["passed", "passed", "crashed"]
    assert scores(result)["softmax"] == 3


def judged_as_twice(answer: str, right: str, hidden: str, version: str) -> float:
    """The score of a `twice(f, x)` that returns `answer`, where the reference returns `right`."""
    text = nbformat.writes(source_notebook({**TESTS, "twice": (2, "", hidden)}))
    job = job_for(submission({"twice": f"def twice(f, x):\n    return {answer}"}), assignment_version=version)
    job.source = text.replace("return f(f(x))", f"return {right}")
    return scores(Result.from_json(json.loads(run_job(job.to_bytes()))))["twice"]


def test_answers_that_are_large_together_come_in_several_messages() -> None:
    """10 to 22 MB each: a message takes no further one after such an answer, and 80 MB would be too large for one."""
    hidden = """
@check("large", points=2)
def _(rng):
    agrees(twice, cases=[(None, n) for n in (3, 4, 5, 6, 7)])"""
    large = "np.zeros((x, 400_000))"
    assert judged_as_twice(large, large, hidden, "tiny-large") == 2.0


def ends_known(job: Job) -> int:
    """How many different ways through the test cells of a job's set are known."""
    turns = list(source_of(job).conversations._first.values())
    for turn in turns:
        turns += turn.then.values()
    return sum(turn.outcome is not None for turn in turns)


def test_the_same_answers_are_judged_once() -> None:
    job = job_for(submission(RIGHT), assignment_version="judged-once")
    first = Result.from_json(json.loads(run_job(job.to_bytes())))
    known = ends_known(job)
    assert known == 3, "softmax, attend and scale follow from their answers; sheet is personal, twice takes functions"
    again = Result.from_json(json.loads(run_job(job.to_bytes())))
    assert ends_known(job) == known
    assert [(e.score, [c.verdict for c in e.checks]) for e in again.exercises] == [
        (e.score, [c.verdict for c in e.checks]) for e in first.exercises
    ]


@pytest.mark.parametrize("answer", ["np.True_", "np.array(True)", "1", "1.0", "True", "np.array(1)"])
def test_what_python_takes_for_equal_are_different_answers(answer: str) -> None:
    """Equal answers are judged once. Whoever comes first: 1 is not True."""
    hidden = "\n@check('a', points=2)\ndef _():\n    agrees(twice, None, 1)"
    assert judged_as_twice(answer, "np.True_", hidden, "tiny-true") == (2.0 if "rue" in answer else 0.0)


def test_what_a_test_cell_does_to_an_answer_changes_no_expectation() -> None:
    """The reference's answers are kept to compare with; the test cell, which got them too, may write into them."""
    hidden = """
@check("as it was", points=1)
def _(rng):
    weights = agrees(softmax, rng.normal(size=(2, 3)))
    weights[:] = 0.0
"""
    rounded = RIGHT["softmax"].replace("return e / ", "return (1 + 1e-12) * e / ")  # right, but not bit for bit
    source = Judged(source_notebook({**TESTS, "softmax": (1, "", hidden)}), CATALOGUE, "tiny")
    test = source.tests["softmax-tests"]
    source.reference_outcome(test, 5, "")
    known = source.known_answers(test, 5)
    assert len(known) == 1
    names = dict(source.reference)
    exec(rounded, names)
    outcome = run_test_cell(test, Client(LocalTransport(names)), source, 5, known=known)
    assert [c.verdict for c in outcome.checks] == ["passed"]


def test_known_misconceptions_are_named() -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return np.exp(z - np.max(z))"})
    exercise = next(e for e in result.exercises if e.grade_id == "softmax-tests")
    assert [m.name for m in exercise.misconceptions] == ["no_normalisation"]
    result = grade({**RIGHT, "attend": RIGHT["attend"].replace(" / np.sqrt(Q.shape[-1])", "")})
    exercise = next(e for e in result.exercises if e.grade_id == "attend-tests")
    assert [m.name for m in exercise.misconceptions] == ["unscaled"]


def test_personal_numbers_follow_the_typed_id() -> None:
    fixed = f"sheet_answer = {[2 * n for n in numbers_of('student-07')]}"
    assert scores(grade({"sheet": fixed}))["sheet"] == 2.0
    assert scores(grade({"sheet": fixed}, student_id='"student-08"'))["sheet"] == 1.0
    assert grade({"sheet": fixed}, student_id='"student-08"').typed_id == "student-08"
    assert grade({"sheet": fixed}, student_id='" student-08  "').typed_id == "student-08"


def numbers_of(student_id: str) -> list[float]:
    return Judged(source_notebook()).reference["numbers"](student_id).tolist()


def test_an_id_without_quotes_is_an_id() -> None:
    result = grade({"sheet": RIGHT["sheet"]}, student_id="4711")
    assert scores(result)["sheet"] == 2.0 and result.typed_id == "4711"


def test_a_missing_name_is_explained() -> None:
    result = grade({**RIGHT, "softmax": "def soft_max(z):\n    return z"})
    assert "`softmax` is not defined; does a cell of yours define it" in reasons(result, "softmax")
    result = grade({**RIGHT, "softmax": "def softmax(z)\n    return z"})
    assert "because its cell stopped: SyntaxError" in reasons(result, "softmax")
    assert scores(result) == {**FULL, "softmax": 0.0}


@pytest.mark.parametrize(
    "noise",
    [
        "import warnings\nwarnings.warn('careful')",
        "import sys\nprint('x' * 10**6)\nprint('oops', file=sys.stderr)",
        "import logging\nlogging.error('an error')",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
        "!echo hello; echo there >&2",
        "print('\\x1b[31mred\\x1b[0m \\x00 \\ud800')",
        "1/0",
        "await __import__('asyncio').sleep(0)",
        "input('your name?')",
    ],
)
def test_streams_and_errors_of_other_cells_cost_nothing(noise: str) -> None:
    answers = {**RIGHT, "softmax": RIGHT["softmax"].replace("    e =", "    print('busy')\n    e =")}
    assert scores(grade(answers, first=noise)) == FULL


def test_hidden_tests_and_solutions_stay_here() -> None:
    assert SECRET in json.dumps(source_notebook())
    for answers in ({}, RIGHT | {"softmax": "def softmax(z):\n    return z.no_such_thing"}):
        assert SECRET not in json.dumps(grade(answers).to_json())


def test_a_reference_that_fails_its_own_tests_is_the_instructors_error() -> None:
    broken = {**TESTS, "twice": (2, 'assert twice(lambda x: x, 1) == 2, "no"', "")}
    text = nbformat.writes(source_notebook(broken))
    job = job_for(submission(RIGHT))
    job.source, job.assignment_version = text, "tiny-broken"
    with pytest.raises(BadSource, match="fails its own test cell 'twice-tests'"):
        run_job(job.to_bytes())


def test_outputs_are_reduced_to_text_and_pictures() -> None:
    hostile = [
        {"output_type": "display_data", "data": {"text/html": "<script>", "text/plain": "x"}, "metadata": {"a": 1}},
        {"output_type": "display_data", "data": {"image/png": 'iVBORw0KGgo"><script>alert(1)</script>'}},
        {"output_type": "display_data", "data": {"image/svg+xml": "<svg onload=alert(1)>"}},
        {"output_type": "stream", "name": "stdin", "text": "x"},
        {"output_type": "stream", "name": "stdout", "text": ["x"]},
        {"output_type": "error", "traceback": [{"a": 1}]},
        *("text", None, 3, ["x"]),
    ]
    assert [o["output_type"] for o in clean_outputs(hostile)] == ["display_data", "error"]
    assert "script" not in json.dumps(clean_outputs(hostile))
    assert clean_outputs({"not": "a list"}) == []
    assert clean_outputs([{"output_type": "stream", "name": "stdout", "text": "x" * 100}], left=50) == []


def test_limits_of_the_set_hold() -> None:
    assert LIMITS["cell_seconds"] == 3
    result = grade({}, first="import time\ntime.sleep(20)")
    assert result.timings["total"] < 15 and "OutOfTime" in json.dumps(result.notebook)


def test_results_cross_as_json() -> None:
    result = grade(RIGHT)
    assert Result.from_json(json.loads(json.dumps(result.to_json()))) == result


@pytest.mark.parametrize(
    "attend",
    [
        RIGHT["attend"].replace("(Q, K, V)", "(Q, K, V, f=softmax)").replace("softmax(Q", "f(Q"),
        RIGHT["attend"].replace("(Q, K, V)", "(Q, K, V, *, f=softmax)").replace("softmax(Q", "f(Q"),
        "mine = softmax\n" + RIGHT["attend"].replace("softmax(", "mine("),
    ],
)
def test_follow_through_reaches_a_helper_bound_early(attend: str) -> None:
    result = grade({**RIGHT, "softmax": "def softmax(z):\n    return z", "attend": attend})
    exercise = next(e for e in result.exercises if e.grade_id == "attend-tests")
    assert exercise.follow_through == ["softmax"]
    assert scores(result)["attend"] == FULL["attend"]


def test_a_cell_that_stops_half_way_is_named_beside_what_is_missing() -> None:
    result = grade({"sheet": "sheet_answer = []\nsheet_answer = numbers(student_id) * factor"})
    assert "name 'factor' is not defined" in reasons(result, "sheet")
    assert "stopped before its end" in reasons(result, "sheet")
