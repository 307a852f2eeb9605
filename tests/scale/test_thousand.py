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
from dask_cluster import running_cluster
from outcomes import outcome
from tiny_course import GOOD, SET, answered, make_course, submit

from autograder.course import Course

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


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple]:
    course = make_class(tmp_path_factory.mktemp("quiet"))
    subprocess.run(GRADE, cwd=course.root, check=True, capture_output=True, timeout=1200)
    found = outcome(course, SET)
    assert len(found) == COUNT and None not in [standing for _, standing in found.values()]
    assert len({str(result["exercises"]) for result, _ in found.values()}) > 4
    return found


def results_in(course: Course) -> int:
    return len(list((course.results_folder / SET).glob("s*.json")))


def wait_for(course: Course, count: int, process: subprocess.Popen) -> None:
    limit = time.monotonic() + 900
    while results_in(course) < count:
        assert process.poll() is None, "the run ended early"
        assert time.monotonic() < limit
        time.sleep(0.05)


def test_killed_three_times(tmp_path: Path, quiet: dict) -> None:
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
    assert outcome(course, SET) == quiet


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    with running_cluster(tmp_path) as running:
        yield running


def test_a_cluster_that_loses_a_worker(tmp_path: Path, quiet: dict, cluster: tuple) -> None:
    address, workers = cluster
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
    assert outcome(course, SET) == quiet


def test_no_scheduler_is_said_in_one_line(tmp_path: Path) -> None:
    course = make_class(tmp_path, 1)
    done = subprocess.run(
        [*GRADE, "--scheduler", "tcp://127.0.0.1:9"], cwd=course.root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode != 0
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
