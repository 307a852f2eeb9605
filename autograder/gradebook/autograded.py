"""The notebooks in `autograded/`, which formgrader shows to those who mark."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from autograder.course import Course, SetFiles
from autograder.files import write_changed
from autograder.notebook.reader import new_cell
from autograder.results import Result
from autograder.timestamps import TIMESTAMP, read_timestamp, stamp_bytes

RUBRIC = "autograder_rubric"
"""Metadata of a cell that only those who mark may see."""


def _plain(files: SetFiles, result: Result) -> dict[str, Any]:
    """What formgrader shows: the executed notebook, with the rubric behind each written answer.

    Where there is none: the set, with the reason on top of it. It shares what it is made of: not to be changed.
    """
    if result.notebook is not None:
        return {**result.notebook, "cells": list(_with_rubrics(result.notebook["cells"], files.rubrics))}
    reason = html.escape(any_database_takes(result.reason))
    said = f"**This submission was not graded ({result.status}).**\n\n{reason}"
    return {**files.released, "cells": [new_cell("markdown", said, "not-graded", {}), *files.released.cells]}


def _with_rubrics(cells: list[dict[str, Any]], rubrics: dict[str, str]) -> Iterator[dict[str, Any]]:
    """The cells with what the source says to each written question behind the answer, for those who mark it."""
    for number, cell in enumerate(cells):
        yield cell
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if grade_id in rubrics:
            said = f"**Model answer and rubric** (for whoever marks; no student sees it)\n\n{rubrics[grade_id]}"
            yield new_cell("markdown", said, f"rubric-{number}", {RUBRIC: grade_id})


def any_database_takes(text: str) -> str:
    """The text without NUL, and with `?` for half characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def write_autograded(course: Course, files: SetFiles, result: Result) -> None:
    """Write `autograded/<student>/<set>/`: the notebook, the set's data files and the timestamp. Raises OSError.

    Files that the student handed in beside the notebook are not copied: formgrader would serve them to the
    instructor's browser.
    """
    folder = course.step_folder("autograded", result.student, files.name)
    submitted = course.step_folder("submitted", result.student, files.name)
    # Without line breaks, which would take ten times as long. No file can hold half characters: they become `?`.
    notebook = json.dumps(_plain(files, result), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    wanted = {f"{files.name}.ipynb": notebook, **files.files}
    if read_timestamp(submitted)[0] is not None:
        wanted[TIMESTAMP] = stamp_bytes(submitted)
    else:
        (folder / TIMESTAMP).unlink(missing_ok=True)
    for name, data in wanted.items():
        write_changed(folder / name, data)


class Answers:
    """A student's answers by grade_id, now and in the run before (None: not known); both are read when asked for."""

    def __init__(self, course: Course, files: SetFiles, result: Result) -> None:
        self.course, self.files, self.result = course, files, result

    @cached_property
    def now(self) -> dict[str, str]:
        return _answers(_plain(self.files, self.result))

    @cached_property
    def before(self) -> dict[str, str] | None:
        name = self.files.name
        path = self.course.step_folder("autograded", self.result.student, name) / f"{name}.ipynb"
        try:
            return _answers(json.loads(path.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def same(self, grade_ids: list[str]) -> bool:
        """Whether these answers are what they were; False where nothing is known of the run before."""
        return self.before is not None and all(self.before.get(i) == self.now.get(i) for i in grade_ids)


def _answers(notebook: dict[str, Any]) -> dict[str, str]:
    answers = {}
    for cell in notebook["cells"]:
        meta = cell["metadata"].get("nbgrader", {})
        if meta.get("solution"):
            answers[meta["grade_id"]] = "".join(cell["source"])
    return answers
