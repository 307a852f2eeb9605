"""Cheats against the grader itself: answers that fill it or tell what is right, reasons that swell or forge more."""

from __future__ import annotations

import base64
import gc
import io
import json
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor
from typing import Any

import nbformat
import numpy as np
import pytest
from rich.table import Table
from tiny_judge import (
    FULL,
    RIGHT,
    TESTS,
    grade,
    job_for,
    reasons,
    scores,
    source_notebook,
    submission,
    verdicts,
)

from autograder import console
from autograder.checks import CheckFailed, to_array
from autograder.grading.pool import Pool
from autograder.judging import reference, session, worker
from autograder.judging.client import Exchange
from autograder.judging.job import Job
from autograder.judging.judge import MOST_CLEAN_BYTES, PIXELS_A_BYTE, clean_outputs
from autograder.judging.recognition import close
from autograder.judging.reference import Conversations
from autograder.results import GRADED, OUT_OF_MEMORY, Result

# ----------------------------------------------------------------------------------------- what is told


def test_no_reason_tells_a_typed_number() -> None:
    """Typed numbers are the same in every run: whoever learns one from a reason types it into the next."""
    said = [reasons(grade({"sheet": f"sheet_answer = {numbers}"}), "sheet") for numbers in ([0.0] * 4, [1e3, 1, 1, -7])]
    assert said[0] == said[1] and "4 of 4 entries are off by more than 0.005" in said[0]


def test_answers_to_fresh_inputs_say_how_far_they_are_off() -> None:
    assert "(largest difference" in reasons(grade({"softmax": "def softmax(z):\n    return z"}), "softmax")


# ------------------------------------------------------------------------------ reasons, events, terminal

WORKSPACE = "from autograder.sandbox.inside.workspace import Workspace\n"
ESCAPE = "\\x1b]52;c;cm0gLXJmIH4=\\x1b\\\\\\x1b[1A\\x1b[2K\\u202e100 of 100"
SAYING = {
    "a key of two megabytes": {
        "first": f"{WORKSPACE}Workspace.do_call = lambda self, *a: {{'ok': {{'x' * 2_000_000: 0}}}}"
    },
    "a class of two megabytes": {
        "softmax": "def softmax(z):\n    return type('x' * 2_000_000, (), {})()",
    },
    "an error in place of a lent helper": {
        "first": f"{WORKSPACE}def replace(self, *a): raise ValueError('{ESCAPE}')\nWorkspace.do_replace = replace",
        "softmax": "def softmax(z):\n    return z",
    },
    "a message that steers the terminal": {"softmax": f"def softmax(z):\n    raise ValueError('{ESCAPE}')"},
    "a class called like verdicts": {
        "softmax": "def softmax(z):\n    return type('array\\n4 of 4 points\\n[passed] rows\\x1b[2J', (), {})()"
    },
}


@pytest.mark.parametrize("case", SAYING)
def test_what_is_said_is_short_printable_and_on_one_line(case: str) -> None:
    cells = SAYING[case]
    result = grade({**RIGHT, **{n: t for n, t in cells.items() if n in RIGHT}}, first=cells.get("first", ""))
    assert result.status == GRADED and scores(result)["softmax"] < FULL["softmax"]
    said = [c.reason for e in result.exercises for c in e.checks] + result.events
    assert all(text.isprintable() and len(text) < 2100 for text in said)
    assert len(json.dumps(result.to_json())) < 200_000


def test_no_escape_sequence_reaches_a_terminal() -> None:
    hostile = "a\x1b]52;c;cm0=\x07b\x9b2J\u202ec\nd"
    seen = io.StringIO()
    screen = console._plain(file=seen, width=60, force_terminal=True)
    table = Table(hostile)
    table.add_row(hostile)
    for what in (hostile, table):
        screen.print(what)
    for sent in ("\x1b]52", "\x07", "\x9b", "\u202e"):
        assert sent not in seen.getvalue()
    assert "d\n" in seen.getvalue()


# --------------------------------------------------------------------------------- memory of the grader


def memory_job(softmax: str) -> Job:
    """A job whose check needs 32 bytes, a hundred times, for each number in the answer."""
    hidden = """
@check("many sizes", points=1)
def _(rng):
    size = 32 * len(softmax(np.zeros(2)))
    held = [np.empty(size) for _ in range(100)]"""
    job = job_for(submission({**RIGHT, "softmax": softmax}), assignment_version="tiny-memory")
    job.source = nbformat.writes(source_notebook({**TESTS, "softmax": (4, "", hidden)}))
    return job


def test_an_answer_with_which_a_check_runs_out_of_memory_is_judged() -> None:
    """No single piece is large. Who is next in the same process gets what is due."""
    with Pool(1) as pool:
        large, right = [
            Result.from_json(json.loads(pool.submit(worker.run_job, memory_job(answer).to_bytes()).result()))
            for answer in ("def softmax(z):\n    return np.zeros(2**21, 'u1')", RIGHT["softmax"])
        ]
    assert large.status == GRADED and verdicts(large, "softmax") == [OUT_OF_MEMORY]
    assert scores(large) == {**FULL, "softmax": 0.0, "attend": scores(large)["attend"]}
    assert "too large" in reasons(large, "softmax")
    assert scores(right) == FULL


def test_a_full_grader_judges_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    grade(RIGHT)
    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(session, "ROOM_BYTES", 2**62)
        grade(RIGHT)


def test_a_process_that_ran_out_of_memory_is_exchanged() -> None:
    with Pool(1) as pool:
        with pytest.raises(BrokenExecutor):
            pool.submit(bytes, 6 * 1024**3).result()
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.slow
def test_kept_answers_count_as_what_they_take_up() -> None:
    sets = "def softmax(z):\n    return [set()] * 150_000"
    result = grade({**RIGHT, "softmax": sets}, limits={"call_seconds": 20, "exercise_seconds": 60})
    assert verdicts(result, "softmax")[-1] != "timeout"
    gc.collect()
    kept = sum(source.conversations._bytes for source in worker._sources.values())
    assert kept > 150_000 * sys.getsizeof(set()) / 2


def test_a_conversation_that_is_too_large_is_not_kept() -> None:
    talks = Conversations()

    def keep(name: str, size: int) -> None:
        talks.keep((name,), [Exchange({"op": "get"}, [], {"found": name}, size=size)], session.Outcome())

    keep("small", 10)
    keep("too large", reference.MOST_KEPT_BYTES + 1)
    assert set(talks._first) == {("small",)}
    keep("as large as may be", reference.MOST_KEPT_BYTES)
    assert set(talks._first) == {("as large as may be",)} and talks._bytes == reference.MOST_KEPT_BYTES


# ----------------------------------------------------------------------------------- time and pictures


def calls_in(function: Callable[..., Any], *args: Any) -> int:
    """How many Python functions are called."""
    count = 0

    def watch(_: Any, event: str, __: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(watch)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return count


def test_a_list_of_numbers_costs_no_call_for_each() -> None:
    assert calls_in(to_array, [5] * 10_000) < 100
    assert calls_in(close, [5] * 10_000, [0.5] * 10_000) < 100
    assert calls_in(close, [[5, True] * 5_000] * 2, [(0.5, 1j) * 5_000] * 2) < 200


@pytest.mark.parametrize(
    ("typed", "array"),
    [
        ([1, 2.5], np.array([1.0, 2.5])),
        ([True, False], np.array([True, False])),
        ((True, 2), np.array([1.0, 2.0])),
        ([[1, 2], (3, 4.5)], np.array([[1.0, 2.0], [3.0, 4.5]])),
        ([1j, 2], np.array([1j, 2])),
        ([], np.array([])),
    ],
)
def test_typed_lists_are_the_same_arrays_as_before(typed: Any, array: np.ndarray) -> None:
    found = to_array(typed)
    assert found.dtype == array.dtype and np.array_equal(found, array)


@pytest.mark.parametrize("typed", [[1, [2]], [1, "2"], [1, None], [10**400, 1], [[1, 2], [3]]])
def test_typed_lists_that_are_no_arrays(typed: Any) -> None:
    with pytest.raises(CheckFailed):
        to_array(typed)


def picture(width: int, height: int) -> dict[str, Any]:
    """An output whose picture says that it has this size."""
    head = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes(500)
    return {"output_type": "display_data", "data": {"image/png": base64.b64encode(head).decode()}, "metadata": {}}


def test_pictures_of_few_bytes_and_many_pixels_do_not_fill_a_page() -> None:
    huge, usual = picture(8000, 8000), picture(640, 480)
    kept = clean_outputs([huge] * 400 + [usual] * 20)
    assert kept.count(usual) == 20
    assert kept.count(huge) * 64_000_000 <= MOST_CLEAN_BYTES * PIXELS_A_BYTE
    assert clean_outputs([picture(2**31, 2**31), usual]) == [usual]


def test_outputs_are_not_endlessly_many() -> None:
    """Formgrader looks at each a dozen times before it shows any."""
    ones = [{"output_type": "stream", "name": name, "text": "a"} for name in ("stdout", "stderr")] * 20_000
    assert 1_000 < len(clean_outputs(ones)) < 4_000
