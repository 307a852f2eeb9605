"""The same submission scores the same at any load of the machine: limits count a student's own time, not the clock's.

Each test holds others busy on the one processor that the grader may use; results are compared, never times.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

import pytest
from tiny_judge import CATALOGUE, FULL, RIGHT, grade, job_for, reasons, scores, submission, verdicts

from autograder.grading.pool import Pool
from autograder.judging.worker import run_job
from autograder.results import GRADED, Result

BURN = """
import time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
burn(0.9)
done = []
def burn_once():
    if not done:
        done.append(1)
        burn(0.9)
"""
LOOP = "import time\nend = time.monotonic() + 200\nwhile time.monotonic() < end: pass"  # also where a test is killed
LIMITS = {"cell_seconds": 1.5, "call_seconds": 1.5, "exercise_seconds": 3, "notebook_seconds": 12}


@contextmanager
def others_busy() -> Iterator[None]:
    """Five programs that do nothing but compute, on the processor to which this one is bound."""
    others = [subprocess.Popen([sys.executable, "-S", "-c", LOOP]) for _ in range(5)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


@pytest.fixture
def worker() -> Iterator[Executor]:
    """A worker bound to one processor, as this process is, which has graded already."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with Pool(1) as pool:
            pool.submit(run_job, job_for(submission(RIGHT)).to_bytes()).result()
            yield pool
    finally:
        os.sched_setaffinity(0, before)


def test_a_busy_machine_neither_takes_nor_gives_time(worker: Executor) -> None:
    """A cell and a call need nine tenths of a second of one and a half, and five by the clock; one sleeps for ever."""
    answers = {
        **RIGHT,
        "softmax": RIGHT["softmax"].replace("    e =", "    burn_once()\n    e ="),
        "twice": "def twice(f, x):\n    while True: time.sleep(0.01)",
    }
    job = job_for(submission(answers, BURN), LIMITS)
    with others_busy():
        result = Result.from_json(json.loads(worker.submit(run_job, job.to_bytes()).result()))
    assert scores(result) == {**FULL, "twice": 0.0}, [reasons(result, name) for name in FULL]
    assert set(verdicts(result, "twice")) == {"timeout"}


@pytest.mark.parametrize(
    "lie", ["os.close(4)", "open('waits', 'w').write('0 9' + '0' * 15); os.dup2(os.open('waits', 0), 4)"]
)
def test_what_a_submission_says_of_its_waiting_is_not_believed(lie: str) -> None:
    hung = "def softmax(z):\n    while True: pass"
    result = grade({**RIGHT, "softmax": hung}, first=f"import os\n{lie}")
    assert not scores(result)["softmax"] and result.status == GRADED
    assert verdicts(result, "softmax")[-1] in ("timeout", "error", "not reached")


CROWD = """
import os, time
cpu = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {cpu})
crowd = any(os.fork() == 0 for _ in range(14))
try: os.setpriority(os.PRIO_PROCESS, 0, 19)
except OSError: pass
end = time.monotonic() + 60
while time.monotonic() < end: pass
"""


FEW = """
import os, signal
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
for _ in range(3):
    if os.fork() == 0:
        while True: pass
signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True: os.sched_yield()
"""


@pytest.mark.parametrize("crowd", [CROWD, FEW], ids=["crowd", "few"])
def test_a_crowd_of_its_own_is_no_busy_machine(crowd: str) -> None:
    """Its first thread only waits, which uses up no time: it was never judged, and run again each time."""
    result = grade(RIGHT, first=crowd, limits={"notebook_seconds": 1.5, "cell_seconds": 1.5})
    assert result.status == GRADED and result.key
    assert not any(scores(result).values())


def test_finding_a_misconception_takes_no_time_from_the_student() -> None:
    """A variant that takes longer than a notebook may: the exercises after it are judged."""
    slow = """
@wrong("softmax", says="Slowly.")
def slow(z, waits=[4]):
    import time
    time.sleep(waits.pop() if waits else 0)
    return z
"""
    catalogue = CATALOGUE + slow
    wrong = {**RIGHT, "softmax": "def softmax(z):\n    return np.exp(z - z.max())"}
    limits = {"notebook_seconds": 3}
    result = grade(wrong, limits=limits, catalogue=catalogue, assignment_version="tiny-slow-variant")
    assert scores(result) == {**FULL, "softmax": 0.0}


def test_a_notebook_that_the_machine_had_no_time_for_is_graded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.sandbox.launcher.MOST_WAITING", 0.0)
    result = grade(RIGHT)
    assert result.status == "unreadable" and "processors" in result.reason
    assert not result.key and not result.arrived
    # unless it may have been its own processes for which it waited
    crowd = "import os, time\nif any(os.fork() == 0 for _ in range(5)): time.sleep(60)\ntime.sleep(1)"
    assert grade(RIGHT, first=crowd).status == GRADED
