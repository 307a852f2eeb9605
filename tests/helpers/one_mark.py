"""Courses of the tiny set with marks in their gradebook, and what commands, pages and nbgrader say of a mark."""

from __future__ import annotations

import csv
import io
import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from nbgrader.api import Gradebook
from nbgrader.preprocessors import AssignLatePenalties
from tiny_course import GOOD, SET, answered, make_course, submit

from autograder.cli import cli
from autograder.course import Course
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.writer import Written, write
from autograder.grading.store import Store
from autograder.results import Check, Exercise, Result

ZERO = 'c.LateSubmissionPlugin.penalty_method = "zero"'
BERLIN = 'c.Exchange.timezone = "Europe/Berlin"'
DUE = "2027-03-01 18:00 CET"


@pytest.fixture
def server_in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of a server, whatever the clock of this machine."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def result(student: str, *checks: Check) -> Result:
    """Four points, one point, and an answer for two that a person has to mark."""
    return Result(
        student,
        SET,
        "k",
        exercises=[
            Exercise("double-tests", "Double", 4, score=4.0, solution_ids=["double"], checks=list(checks)),
            Exercise("quadruple-tests", "Quadruple", 1, score=1.0, solution_ids=["quadruple"]),
            Exercise("why", "Why?", 2, "written", solution_ids=["why"]),
        ],
        notebook=json.loads(json.dumps(answered(**GOOD))),
    )


def graded(course: Course, *results: Result, due: str = DUE) -> Written:
    """What `grade` does with results that are there."""
    ensure_assignment(course, course.set_files(SET))
    if due:
        with Gradebook(course.db_url, "tiny") as book:
            book.update_or_create_assignment(SET, duedate=due)
    for each in results:
        Store(course.results_folder).put(each)
    return write(course, results)


def mark(course: Course, student: str, cell: str, score: float) -> None:
    """What a person does in formgrader."""
    with Gradebook(course.db_url, "tiny") as book:
        grade = book.find_grade(cell, SET, SET, student)
        grade.manual_score, grade.needs_manual_grade = score, False
        book.db.commit()


def nbgraders_mark(course: Course, student: str) -> float:
    """What nbgrader makes of the gradebook as it is: its rule for lateness, then its export."""
    who = {"notebook": SET, "assignment": SET, "student": student, "db_url": course.db_url}
    rule = AssignLatePenalties(config=course.config, log=logging.getLogger("quiet"))
    rule.preprocess(answered(), {"nbgrader": who})
    with Gradebook(course.db_url, "tiny") as book:
        submission = book.find_submission(SET, student)
        return max(0.0, submission.score - submission.late_submission_penalty)


def run(course: Course, *arguments: str) -> str:
    """The output of a command that succeeds, stderr in it."""
    done = CliRunner().invoke(cli, [*arguments, "--course", str(course.root)])
    assert done.exit_code == 0, done.output
    return done.output


def exported(course: Course, student: str) -> dict[str, str]:
    path = course.root / "marks.csv"
    run(course, "export", "-o", str(path))
    return next(row for row in csv.DictReader(io.StringIO(path.read_text())) if row["id"] == student)


def page(course: Course, student: str) -> str:
    """The words of the student's page."""
    run(course, "feedback")
    return (course.feedback_folder / student / SET / f"{SET}.html").read_text()


def late_course(folder: Path, *more: str) -> Course:
    """Ada's submission came 20 minutes late, Bob's in time; late work gets nothing."""
    course = make_course(folder / "course", "\n".join((ZERO, BERLIN, *more)))
    submit(course, "ada", answered(**GOOD), timestamp="2027-03-01 17:20:00 UTC")
    submit(course, "bob", answered(**GOOD), timestamp="2027-03-01 16:58:00 UTC")
    return course
