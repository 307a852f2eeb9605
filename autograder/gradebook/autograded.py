"""The notebooks in `autograded/`, which formgrader shows to those who mark."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autograder.course import Course, SetFiles
from autograder.files import write_changed
from autograder.notebook.reader import new_cell
from autograder.notebook.rebuild import EXTRA_ID
from autograder.results import Result
from autograder.timestamps import TIMESTAMP, stamp_bytes

RUBRIC = "autograder_rubric"  # metadata of a cell that only those who mark may see


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
    """The cells with what the source says to each written question behind the answer, for those who mark it.

    What a student wrote beside the answers says so first: it could be called a rubric as well.
    """
    for number, cell in enumerate(cells):
        is_own = cell["cell_type"] == "markdown" and cell["id"].startswith(EXTRA_ID)
        yield {**cell, "source": f"**The student's own cell:**\n\n{cell['source']}"} if is_own else cell
        grade_id = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if grade_id in rubrics:
            said = f"**Model answer and rubric** (for whoever marks; no student sees it)\n\n{rubrics[grade_id]}"
            yield new_cell("markdown", said, f"rubric-{number}", {RUBRIC: grade_id})


def any_database_takes(text: str) -> str:
    """The text without NUL, and with `?` for half characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def write_autograded(course: Course, files: SetFiles, result: Result, stamp: Path | None) -> None:
    """Write `autograded/<student>/<set>/`: the notebook, the set's data files and the timestamp. Raises OSError.

    `stamp` is the folder with the submission's timestamp; None where there is none that can be read.

    Files that the student handed in beside the notebook are not copied: formgrader would serve them to the
    instructor's browser.
    """
    folder = course.step_folder("autograded", result.student, files.name)
    # Without line breaks, which would take ten times as long. No file can hold half characters: they become `?`.
    notebook = json.dumps(_plain(files, result), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    wanted = {f"{files.name}.ipynb": notebook, **files.files}
    if stamp:
        wanted[TIMESTAMP] = stamp_bytes(stamp)
    else:
        (folder / TIMESTAMP).unlink(missing_ok=True)
    for name, data in wanted.items():
        write_changed(folder / name, data)


def changed_answers(course: Course, files: SetFiles, result: Result) -> set[str] | None:
    """The grade_ids of answers that are not what they were in the run before; None where nothing is known of it."""
    path = course.step_folder("autograded", result.student, files.name) / f"{files.name}.ipynb"
    try:
        before = _answers(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    now = _answers(_plain(files, result))
    return {grade_id for grade_id in now.keys() | before.keys() if now.get(grade_id) != before.get(grade_id)}


def _answers(notebook: dict[str, Any]) -> dict[str, str]:
    marked = ((cell, cell["metadata"].get("nbgrader", {})) for cell in notebook["cells"])
    return {marks["grade_id"]: "".join(cell["source"]) for cell, marks in marked if marks.get("solution")}
