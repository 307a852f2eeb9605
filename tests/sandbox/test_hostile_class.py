"""Hostile submissions among a class: everybody else gets exactly what they get without them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from nbformat import v4
from outcomes import outcome
from test_busy_machine import CROWD
from test_cheats_channel import RAW, WIRE
from test_cheats_reach import DEATHS
from tiny_course import GOOD, SET, answered, make_course, source_notebook, submit, write_source

from autograder.course import Course

LIMITS = {
    **{"cell_seconds": 2, "call_seconds": 2, "exercise_seconds": 4, "notebook_seconds": 20},
    **{"memory_bytes": 600 * 2**20, "disk_bytes": 16 * 2**20},
}
HONEST = {
    "right": GOOD,
    "wrong": {**GOOD, "double": "def double(x):\n    return np.asarray(x) ** 2"},
    "wrong in one place": {**GOOD, "quadruple": "def quadruple(x):\n    return double(x) + 2"},
    "helper missing": {"quadruple": "def quadruple(x):\n    return double(double(x))"},
    "empty": {},
    "no Python": {**GOOD, "double": "def double(x:\n    return 2 * x"},
}
NAMES = (
    "a fork bomb",
    "a memory hog of many",
    "a full disk",
    "a flood of output",
    "kills everybody",
    "a crowd of threads",
)
ALL_ANSWERS = {name: f"{name} = lambda *given: softmax(given)" for name in ("double", "quadruple")}
HOSTILE = {
    **{name: (DEATHS[name], {}) for name in NAMES},
    "a crowd on its processor": (CROWD, GOOD),
    "one array in a million places": (RAW + WIRE["one array in a million places"], ALL_ANSWERS),
    "ranges that are arrays": (RAW + WIRE["ranges that are arrays"], ALL_ANSWERS),
}


def graded(folder: Path, hostile: bool) -> dict:
    """By student, what is stored and booked of a class in which every second one may be hostile."""
    course = make_course(folder)
    source = source_notebook()
    source.metadata["autograder"] = LIMITS
    write_source(course.root, source)
    for number, (attack, (code, answers)) in enumerate(HOSTILE.items()):
        for who, given in HONEST.items():
            submit(course, f"{number} {who}", answered(**given))
        if hostile:
            notebook = answered(**answers)
            notebook.cells.insert(0, v4.new_code_cell(code, id="attack"))
            submit(course, f"{number} hostile, {attack}", notebook)
    command = [sys.executable, "-m", "autograder", "grade", "--seed", "5", "--jobs", "2"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=900)
    assert "Traceback" not in done.stderr, done.stderr
    return outcome(Course(course.root), SET)


@pytest.mark.slow
def test_everybody_else_gets_what_they_get_without_them(tmp_path: Path) -> None:
    quiet, loud = (graded(tmp_path / name, name == "loud") for name in ("quiet", "loud"))
    assert len(quiet) == len(HOSTILE) * len(HONEST) and len(loud) == len(quiet) + len(HOSTILE)
    assert {student: loud[student] for student in quiet} == quiet
