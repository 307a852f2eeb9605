"""A class of three whose written answers wait, and the page for markers on top of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nbgrader.api import Gradebook
from one_mark import graded, result
from site_server import running
from tiny_course import SET, make_course, source_notebook, write_source

from autograder.course import Course
from autograder.mark import Server

RUBRIC = """**Model answer.** Addition of a number to itself doubles it.

**Rubric** (2 points, each given or not)

- **1 point**: addition is
  *named*.
- **1 point**: of a number to itself.
"""
HOSTILE = "<script>document.title = 'mine'</script> <img src=x onerror=alert(1)> [me](javascript:alert(1))"
STUDENTS = ("ada", "bob", "eve")


def waiting_class(folder: Path, rubric: str = RUBRIC) -> Course:
    """Ada, Bob and Eve, whose answer is hostile."""
    make_course(folder)
    notebook = source_notebook()
    notebook.cells[-1].source = rubric
    write_source(folder, notebook)
    course = Course(folder)
    results = {student: result(student) for student in STUDENTS}
    for student, one in results.items():
        one.notebook["cells"][-1]["source"] = HOSTILE if student == "eve" else f"An answer, the {len(student)}rd."
    graded(course, *results.values(), due="")
    return course


@contextmanager
def serving(course: Course) -> Iterator[Server]:
    with Server(course, [SET]) as server, running(server):
        yield server


def in_gradebook(course: Course, student: str) -> tuple[float | None, bool, str | None]:
    """The manual score, whether somebody has to mark, and the manual comment."""
    with Gradebook(course.db_url, "tiny") as book:
        grade, said = (find("why", SET, SET, student) for find in (book.find_grade, book.find_comment))
        return grade.manual_score, grade.needs_manual_grade, said.manual_comment
