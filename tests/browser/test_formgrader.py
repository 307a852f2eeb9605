"""The instructor's browser: formgrader grades by its button, shows the rubric and takes marks; the export has both."""

from __future__ import annotations

import csv
import io
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsers import launched
from tiny_course import GOOD, SET, answered, make_course, submit

from autograder.course import Course
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.marking import marks_on, write_mark

RUBRIC = "2 points for naming addition"


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    course = make_course(tmp_path_factory.mktemp("course"))
    ensure_assignment(course, course.set_files(SET))
    submit(course, "ada", answered(**GOOD), timestamp="2026-01-02 03:04:05 UTC")
    submit(course, "bob", answered(**{**GOOD, "double": "def double(x):\n    return x"}))
    return course


@pytest.fixture(scope="module")
def address(course: Course) -> Iterator[str]:
    """Jupyter's server with formgrader, in the course folder."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    command = [
        *(sys.executable, "-m", "jupyter_server", "--no-browser", f"--port={port}", "--ServerApp.ip=127.0.0.1"),
        *("--IdentityProvider.token=", "--ServerApp.password=", f"--ServerApp.root_dir={course.root}"),
        "--ServerApp.jpserver_extensions={'nbgrader.server_extensions.formgrader': True}",
        *(["--allow-root"] if os.getuid() == 0 else []),
    ]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    log = course.root / "server.log"
    with open(log, "wb") as said:
        server = subprocess.Popen(
            command,
            cwd=course.root,
            stdout=said,
            stderr=said,
            env={**os.environ, "PATH": path, "HOME": str(course.root)},
        )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert server.poll() is None, log.read_text()
            try:
                urllib.request.urlopen(f"{url}/formgrader", timeout=20)
                break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield url
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture(scope="module")
def tab(address: str):
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        browser = launched(playwright)
        tab = browser.new_page(viewport={"width": 1280, "height": 1000})
        tab.set_default_timeout(90_000)
        yield tab
        browser.close()


def exported(course: Course) -> dict[str, dict[str, str]]:
    command = [sys.executable, "-m", "autograder", "export", "--format", "csv", "--output", "marks.csv"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=120)
    text = (course.root / "marks.csv").read_text(encoding="utf-8-sig")
    assert text, done.stderr
    return {row["id"]: row for row in csv.DictReader(io.StringIO(text))}


@pytest.mark.slow
def test_an_afternoon_with_formgrader(course: Course, address: str, tab) -> None:
    # autograde by the button
    for student in ("ada", "bob"):
        tab.goto(f"{address}/formgrader/manage_submissions/{SET}")
        row = tab.locator("tr", has=tab.locator(".student-id", has_text=student))
        row.locator(".autograde a").click()
        done = tab.locator(".modal.in, .modal.show").first
        done.get_by_text(re.compile("Successfully autograded", re.I)).wait_for()
    before = exported(course)
    assert {s: float(r["score"]) for s, r in before.items()} == {"ada": 5.0, "bob": 1.0}

    # the written answer, with the rubric beside it
    tab.goto(f"{address}/formgrader/gradebook/{SET}/{SET}")
    tab.locator("#formgrader_submission tbody a, tbody .name a, tbody td a").first.click()
    tab.wait_for_url("**/formgrader/submissions/**")
    tab.wait_for_load_state("networkidle")
    assert tab.get_by_text("Adding a number to itself doubles it.").first.is_visible()
    assert tab.get_by_text(RUBRIC).first.is_visible()
    score = tab.locator("input.score.needs_manual_grade").first
    score.fill("1.5")
    score.press("Tab")
    comment = tab.locator("textarea.comment").last
    comment.fill("Say which number is added.")
    comment.blur()
    tab.wait_for_timeout(1500)
    tab.reload()
    tab.wait_for_load_state("networkidle")
    assert "1.5" in [box.input_value() for box in tab.locator("input.score").all()]

    # the export holds both, and a regrade keeps the mark
    marked = exported(course)
    gained = {s: float(marked[s]["score"]) - float(before[s]["score"]) for s in marked}
    assert sorted(gained.values()) == [0.0, 1.5]
    subprocess.run(
        [sys.executable, "-m", "autograder", "grade", "--force"], cwd=course.root, check=True, capture_output=True
    )
    assert exported(course) == marked

    # the command `mark` writes just what formgrader wrote
    marks = marks_on(course, SET, "why")
    theirs, other = sorted(marks, key=lambda student: marks[student].manual is None)
    assert marks[theirs].manual == 1.5 and marks[other].manual is None
    write_mark(course, SET, "why", other, marks[other].version, 1.5, "Say which number is added.")
    assert marks_on(course, SET, "why")[other] == marks[theirs]


@pytest.mark.slow
def test_nbgraders_feedback_shows_no_rubric(course: Course) -> None:
    subprocess.run([sys.executable, "-m", "autograder", "grade"], cwd=course.root, check=True, capture_output=True)
    assert RUBRIC in (course.root / "autograded" / "ada" / SET / f"{SET}.ipynb").read_text()
    command = [sys.executable, "-m", "nbgrader", "generate_feedback", SET]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    subprocess.run(command, cwd=course.root, check=True, capture_output=True, env={**os.environ, "PATH": path})
    pages = list((course.root / "feedback").rglob("*.html"))
    assert len(pages) == 2
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert RUBRIC not in text and "Adding a number to itself doubles it." in text
