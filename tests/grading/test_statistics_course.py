"""The example in another subject: a set with pandas, graded by the commands of `make course`."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_begin import autograder, built_page

COURSE = Path(__file__).parents[2] / "examples" / "statistics"
SET = "garden-birds"
MADE = ("assignments", "submitted", "autograded", "feedback", "results", "gradebook.db*", "_build", "*.ipynb")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("statistics") / "course"
    shutil.copytree(COURSE, folder, ignore=shutil.ignore_patterns(*MADE))
    autograder(folder, "release")
    subprocess.run([sys.executable, "three_students.py"], cwd=folder, check=True)
    return folder


def test_the_right_one_gets_all_the_mistaken_one_a_name_for_it_and_the_empty_one_nothing(course: Path) -> None:
    graded = {row["student"]: row for row in json.loads(autograder(course, "grade", "--json").stdout)}
    exercises = ("group-means-tests", "missing-tests", "district-tests")
    points = {student: tuple(row["exercises"][name] for name in exercises) for student, row in graded.items()}
    assert points == {"ada": (6, 6, 8), "bob": (0, 6, 0), "eve": (0, 0, 0)}
    named = {student: row["misconceptions"] for student, row in graded.items()}
    assert named == {"ada": [], "bob": ["missing_as_zero", "rows_lost"], "eve": []}
    autograder(course, "feedback")
    page = next((course / "feedback" / "bob" / SET).glob("*.html")).read_text(encoding="utf-8")
    assert "You take a missing value for zero" in page and "Rows whose garden is not listed are lost" in page


def test_students_get_the_notebook_and_its_data(course: Path) -> None:
    released = course / "assignments" / SET
    assert sorted(path.name for path in released.iterdir()) == ["counts.csv", f"{SET}.ipynb"]
    assert "10.25" not in (released / f"{SET}.ipynb").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_tests_tell_right_from_wrong_variants(course: Path) -> None:
    reports = json.loads(autograder(course, "audit", "--quick", "--no-mutants", "--seeds", "3", "--json").stdout)
    assert [report["breaches"] for report in reports] == [[]]


@pytest.mark.slow
def test_its_page_is_built_and_offers_the_set(course: Path) -> None:
    assert "left merge: 6 rows" in built_page(course)
    offered = (course / "book" / "_build" / "html" / "_downloads").rglob("*.*")
    assert {path.name for path in offered} == {"counts.csv", f"{SET}.ipynb"}
