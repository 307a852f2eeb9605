"""A class of a thousand, killed again and again, or on a cluster that loses a worker, gets what a quiet run gives."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tiny_course import GOOD, SET, answered, make_course, submit

from autograder.course import Course
from autograder.gradebook.reader import scores
from autograder.grading.store import Store

pytestmark = pytest.mark.slow

COUNT = 1000
DOUBLES = (
    "def double(x):\n    return 2 * np.asarray(x)  # {n}",
    "def double(x):\n    return np.add(x, x) + 0 * {n}",
    "def double(x):\n    return x * {n}",
    "def double(x):\n    return abs(2 * np.asarray(x))  # {n}",
    "def double(x:\n    return {n}",
    "import os\ndef double(x):\n    os._exit({n} % 50)",
)
GRADE = [sys.executable, "-m", "autograder", "grade", "--seed", "5"]


def make_class(folder: Path, count: int = COUNT) -> Course:
    course = make_course(folder)
    for n in range(count):
        submit(course, f"s{n:04d}", answered(**{**GOOD, "double": DOUBLES[n % len(DOUBLES)].format(n=n)}))
    return course


def outcome(course: Course) -> dict[str, tuple]:
    """What the store says of everybody, without times."""
    return {
        r.student: (r.status, [(e.grade_id, e.score, [(c.verdict, c.reason) for c in e.checks]) for e in r.exercises])
        for r in Store(course.results_folder).all(SET)
    }


def booked(course: Course) -> dict[str, float]:
    return {student: found.total for student, found in scores(course, SET).items()}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, tuple], dict[str, float]]:
    course = make_class(tmp_path_factory.mktemp("quiet"))
    subprocess.run(GRADE, cwd=course.root, check=True, capture_output=True, timeout=1200)
    found, marks = outcome(course), booked(course)
    assert len(found) == len(marks) == COUNT
    assert len({str(f) for f in found.values()}) > 4
    return found, marks


def results_in(course: Course) -> int:
    return len(list((course.results_folder / SET).glob("s*.json")))


def wait_for(course: Course, count: int, process: subprocess.Popen) -> None:
    limit = time.monotonic() + 900
    while results_in(course) < count:
        assert process.poll() is None, "the run ended early"
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_killed_three_times(tmp_path: Path, quiet: tuple) -> None:
    course = make_class(tmp_path)
    for count in (90, 333, 810):
        process = subprocess.Popen(
            GRADE, cwd=course.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        wait_for(course, count, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kept = results_in(course)
        assert count <= kept < COUNT
    done = subprocess.run(GRADE, cwd=course.root, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr
    ran = re.search(rf"{COUNT} submissions, (\d+) run now", done.stdout)
    assert ran and int(ran[1]) <= COUNT - kept, "what was there is not run again"
    assert (outcome(course), booked(course)) == quiet


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """A scheduler and two workers, started as the book's guide says."""
    file = tmp_path / "scheduler.json"
    dask = Path(sys.executable).with_name("dask")
    quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    scheduler = subprocess.Popen(
        [dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file], **quietly
    )
    workers = [
        subprocess.Popen([dask, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard"], **quietly)
        for _ in range(2)
    ]
    while not file.exists() or not file.read_text():
        assert scheduler.poll() is None
        time.sleep(0.1)
    address = re.search(r"tcp://[\d.:]+", file.read_text())[0]
    try:
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
                child.kill()
            process.kill()
            process.wait()


def wait_for_workers(address: str, count: int) -> None:
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=120)


def test_a_cluster_that_loses_a_worker(tmp_path: Path, quiet: tuple, cluster: tuple) -> None:
    address, workers = cluster
    wait_for_workers(address, 2)
    course = make_class(tmp_path / "course")
    process = subprocess.Popen(
        [*GRADE, "--scheduler", address], cwd=course.root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    wait_for(course, 200, process)
    for child in psutil.Process(workers[0].pid).children(recursive=True):  # the nanny's worker, and what it started
        child.kill()
    workers[0].kill()
    said, _ = process.communicate(timeout=1200)
    assert process.returncode == 0, said
    assert (outcome(course), booked(course)) == quiet


def test_no_scheduler_is_said_in_one_line(tmp_path: Path) -> None:
    course = make_class(tmp_path, 1)
    done = subprocess.run(
        [*GRADE, "--scheduler", "tcp://127.0.0.1:9"], cwd=course.root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
