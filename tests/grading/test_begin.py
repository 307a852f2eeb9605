"""A course begun by `autograder init`: what its README says works, by the command line alone."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

SET = "describing-data"


WITHOUT_TORCH = """
from importlib.machinery import PathFinder

found = PathFinder.find_spec
PathFinder.find_spec = lambda name, *others: None if name == "torch" else found(name, *others)
"""


def autograder(folder: Path, *arguments: str, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "autograder", *arguments]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=500, env={**os.environ, **environment}
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def built_page(folder: Path) -> str:
    """The page of a course's book, built by the line of its README; a warning ends the build."""
    command = [Path(sys.executable).with_name("jupyter-book"), "build", "book", "-W"]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=500, env={**os.environ, "PATH": path}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return (folder / "book" / "_build" / "html" / "index.html").read_text(encoding="utf-8")


def hand_in(folder: Path, student: str, change: tuple[str, str]) -> None:
    """Solve the released notebook as the source does, but for one piece of text."""
    source = nbformat.read(folder / "source_solutions" / SET / f"{SET}.ipynb", as_version=4)
    solved = {cell.id: re.sub(r" *### (BEGIN|END) SOLUTION\n?", "", cell.source) for cell in source.cells}
    notebook = nbformat.read(folder / "assignments" / SET / f"{SET}.ipynb", as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code" and cell.metadata.nbgrader.solution:
            cell.source = solved[cell.id].replace(*change)
    place = folder / "submitted" / student / SET
    place.mkdir(parents=True)
    nbformat.write(notebook, place / f"{SET}.ipynb")


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("begin") / "my course"
    autograder(folder.parent, "init", folder.name)
    autograder(folder, "release")
    return folder


def test_a_new_course_grades_a_right_and_a_wrong_submission(course: Path) -> None:
    hand_in(course, "ada", ("", ""))
    hand_in(course, "bob", ("np.std(values)", "np.std(values, ddof=1)"))
    graded = {row["student"]: row for row in json.loads(autograder(course, "grade", "--json").stdout)}
    assert graded["ada"]["exercises"] == {"standard-scores-tests": 8, "median-tests": 8, "outlier": 0}
    assert graded["bob"]["exercises"] == {"standard-scores-tests": 0, "median-tests": 8, "outlier": 0}
    assert graded["bob"]["misconceptions"] == ["of_a_sample"]
    autograder(course, "feedback")
    page = next((course / "feedback" / "bob" / SET).glob("*.html")).read_text(encoding="utf-8")
    assert "You divide by n - 1" in page and "np.std(values)" not in page
    autograder(course, "report")
    assert (course / "report" / "index.html").is_file()
    rows = list(csv.DictReader(autograder(course, "export").stdout.splitlines()))
    assert {row["id"]: float(row["score"]) for row in rows} == {"ada": 16, "bob": 8}


def test_nothing_private_is_released(course: Path) -> None:
    text = (course / "assignments" / SET / f"{SET}.ipynb").read_text(encoding="utf-8")
    assert "YOUR CODE HERE" in text
    assert not {"np.std", "agrees", "Rubric"} & set(re.findall(r"[\w.]+", text))
    assert [path.name for path in (course / "assignments" / SET).iterdir()] == [f"{SET}.ipynb"]


@pytest.mark.slow
def test_a_set_without_pytorch_is_graded_and_audited_where_there_is_none(course: Path, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    hand_in(course, "eve", ("", ""))
    said = autograder(course, "grade", "-s", "eve", "--json", PYTHONPATH=str(tmp_path)).stdout
    assert json.loads(said)[0]["score"] == 16
    code = "import importlib.util, autograder.audit.audit; print(importlib.util.find_spec('torch'))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout == "None\n", done.stderr


def test_a_notebook_that_speaks_of_pytorch_stops_no_class_where_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_TORCH)
    code = (
        "from autograder.sandbox.inside.zygote import Warm; w = Warm(None, False); w.load(['torch']); print(w.loaded)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert done.stdout == "set()\n", done.stderr


def test_what_lies_in_a_folder_is_never_overwritten(course: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in course.rglob("*")}
    said = autograder(course.parent, "init", course.name, code=1).stderr
    assert said == "Error: my course is not empty, and nothing is overwritten: name a new folder\n"
    assert {path: path.stat().st_mtime_ns for path in course.rglob("*")} == before
    assert "is a file" in autograder(course, "init", "README.md", code=1).stderr


def test_the_commands_of_its_readme_are_commands(course: Path) -> None:
    text = (course / "README.md").read_text(encoding="utf-8")
    names = re.findall(r"^autograder (\w+)", text, re.MULTILINE)
    assert len(names) > 5
    known = autograder(course, "--help").stdout
    assert all(f"  {name} " in known for name in names)


@pytest.mark.slow
def test_the_tests_of_its_set_tell_right_from_wrong_variants(course: Path) -> None:
    reports = json.loads(autograder(course, "audit", "--quick", "--no-mutants", "--seeds", "3", "--json").stdout)
    assert [report["breaches"] for report in reports] == [[]]


@pytest.mark.slow
def test_its_page_is_built(course: Path) -> None:
    """Without a network; the page offers the released notebook."""
    assert "median 4.5" in built_page(course)
    assert list((course / "book" / "_build" / "html" / "_downloads").rglob(f"{SET}.ipynb"))
