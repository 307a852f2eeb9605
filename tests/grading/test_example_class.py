"""The example class scores what examples/expected.csv says, by the command line and by plain nbgrader."""

from __future__ import annotations

import csv
import html
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.course import Course
from autograder.gradebook.autograded import RUBRIC

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
SET = "ps2-self-attention"


def expected() -> dict[str, dict[str, str]]:
    with open(EXAMPLES / "expected.csv", newline="", encoding="utf-8") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def course_copy(folder: Path) -> Path:
    """A course folder with the example class, in a place of its own."""
    shutil.copytree(EXAMPLES / "submitted", folder / "submitted")
    (folder / "nbgrader_config.py").write_text(
        f"load_subconfig({str(ROOT / 'nbgrader_config.py')!r})\n"
        "c = get_config()\n"
        f"c.CourseDirectory.source_directory = {str(ROOT / 'source_solutions')!r}\n"
    )
    return folder


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by name
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
        env={**os.environ, "PATH": path},
    )


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """The class graded by `python -m autograder grade`: the course folder and the printed summaries."""
    folder = course_copy(tmp_path_factory.mktemp("by-command"))
    done = command(folder, "autograder", "grade", "--json")
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout)


def gradebook_scores(folder: Path) -> dict[str, float]:
    with Gradebook(f"sqlite:///{folder / 'gradebook.db'}") as gradebook:
        found = {}
        for submission in gradebook.assignment_submissions(SET):
            grades = [g for n in submission.notebooks for g in n.grades if g.cell.cell_type == "code"]
            found[submission.student.id] = sum(g.auto_score or 0.0 for g in grades)
        return found


def test_committed_submissions_are_what_the_script_writes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, EXAMPLES / "example_class.py", tmp_path], check=True)
    for path in sorted((EXAMPLES / "submitted").rglob("*")):
        if path.is_file():
            twin = tmp_path / "submitted" / path.relative_to(EXAMPLES / "submitted")
            assert twin.read_bytes() == path.read_bytes(), f"{path.name}: run examples/example_class.py again"
    count = len(list((EXAMPLES / "submitted").rglob("*")))
    assert count == len(list((tmp_path / "submitted").rglob("*")))


def test_every_submission_scores_what_the_table_says(by_command: tuple[Path, list[dict]]) -> None:
    rows = {row["student"]: row for row in by_command[1]}
    assert rows.keys() == expected().keys()
    for student, want in expected().items():
        assert rows[student]["status"] == want["status"], student
        wanted = float(want["score"]) if want["score"] else None
        assert rows[student]["score"] == wanted, (student, rows[student])
        assert rows[student]["points"] == (32 if want["score"] else 0)


def test_misconceptions_are_named_and_only_for_wrong_answers(by_command: tuple[Path, list[dict]]) -> None:
    for row in by_command[1]:
        named = set(row["misconceptions"])
        assert named <= set(expected()[row["student"]]["misconceptions"].split()), row["student"]
        assert set(expected()[row["student"]]["misconceptions"].split()) <= named, row["student"]


def test_cheats_are_noticed(by_command: tuple[Path, list[dict]]) -> None:
    rows = {row["student"]: row for row in by_command[1]}
    assert any("skip-execution" in event for event in rows["student-14"]["events"])
    assert any("nobody asked for" in event for event in rows["student-21"]["events"])
    assert rows["student-20"]["typed_id"] == "student-01"


def test_gradebook_holds_the_scores(by_command: tuple[Path, list[dict]]) -> None:
    assert gradebook_scores(by_command[0]) == {s: float(w["score"] or 0) for s, w in expected().items()}


def test_nothing_is_run_again(by_command: tuple[Path, list[dict]]) -> None:
    again = command(by_command[0], "autograder", "grade", "--json")
    assert again.returncode == 0, again.stderr
    assert not any(row["ran"] for row in json.loads(again.stdout))


@pytest.mark.slow
def test_pages_show_nothing_hidden(by_command: tuple[Path, list[dict]]) -> None:
    """No line of a hidden test or reference solution stands in feedback, report, autograded notebook, release.

    The rubrics that autograded notebooks hold for whoever marks are cells of their own, which no page is made from.
    """
    folder = by_command[0]
    for name in ("feedback", "report"):
        done = command(folder, "autograder", name)
        assert done.returncode == 0, done.stderr
    secrets = secret_lines()
    assert len(secrets) > 100
    places = [
        *folder.glob("feedback/*/*/*.html"),
        *folder.glob("report/*.html"),
        *folder.glob("autograded/*/*/*.ipynb"),
        *(ROOT / "assignments" / SET).glob("*.ipynb"),
    ]
    assert len(places) > 2 * len(expected())
    for path in places:
        text = plain(path)
        found = [line for line in secrets if line in text]
        assert not found, f"{path.relative_to(path.parents[3])} shows {found[0]!r}"


def secret_lines() -> list[str]:
    """Lines of tests, solutions, rubrics and catalogue that no released notebook and no student has."""
    released = (ROOT / "assignments" / SET / f"{SET}.ipynb").read_text(encoding="utf-8")
    written = ("example_class.py", "right_answers.py")
    students = "\n".join((EXAMPLES / name).read_text(encoding="utf-8") for name in written)
    source = json.loads(Course(ROOT).set_files(SET).notebook_text)
    lines: set[str] = set()
    for cell in source["cells"]:
        text = "".join(cell["source"])
        inside = cell["cell_type"] == "markdown" and cell["metadata"]["nbgrader"]["solution"]
        for line in text.split("\n"):
            if "BEGIN" in line:
                inside = True
            elif "END" in line:
                inside = False
            elif inside:
                lines.add(line.strip())
    lines |= {
        line.strip()
        for name in ("catalogue.py", "set_checks.py")
        for line in (ROOT / "source_solutions" / SET / name).read_text().split("\n")
        if "says" not in line
    }
    # a line that a student could have written, or that is part of a sentence for students, is no secret
    return sorted(
        line
        for line in lines
        if len(line) > 30
        and json.dumps(line)[1:-1] not in released
        and line not in students
        and not line.startswith(('@check("', '"Your', '"', "def ", 'fail("', "fail(f", "says"))
    )


def plain(path: Path) -> str:
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        shown = (c for c in cells if RUBRIC not in c["metadata"])
        return "\n".join("".join(c["source"]) + json.dumps(c.get("outputs", "")) for c in shown)
    return html.unescape(re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8")))


@pytest.mark.slow
def test_plain_nbgrader_gives_the_same_scores(tmp_path: Path, by_command: tuple[Path, list[dict]]) -> None:
    """From an empty folder, through nbgrader's own command, without any stored result."""
    folder = course_copy(tmp_path)
    for step in ("generate_assignment", "autograde"):
        done = (
            command(folder, "nbgrader", step, SET, "--create")
            if step != "autograde"
            else command(folder, "nbgrader", step, SET)
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert gradebook_scores(folder) == gradebook_scores(by_command[0])
    assert len(list(folder.glob("autograded/*/*/*.ipynb"))) == len(expected())
