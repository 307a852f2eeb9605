"""A set written as text: `NAME.py` in jupytext's percent format, and the notebook that it stands for.

A cell begins with `# %%` or `# %% [markdown]`, and what nbgrader has to know of it stands on the same line:

    # %% nbgrader={"grade_id": "softmax-tests", "points": 4}

`grade_id` is the cell's id too; `"solution": true` marks what students write, `points` what is graded; all else
follows from these. The one cell without marks is that with the student's id; others need an id, as in
`# %% id="scratch"`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
from pathlib import Path

import jupytext
import nbformat
from nbformat import NotebookNode, v4

from autograder.errors import AutograderError
from autograder.files import write_changed

STUDENT_ID = "student-id"
MADE_FROM = "made-from-text"
OF_JUPYTEXT = ("title", "cell_marker", "lines_to_next_cell", "lines_to_end_of_cell_marker")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


class BadText(AutograderError):
    """A set's text cannot be read as a notebook; one line that says where and why."""


def read_text(path: Path) -> NotebookNode:
    """The notebook that the text in `path` stands for; the same text gives the same notebook. Raises BadText."""
    try:
        text = path.read_text(encoding="utf-8")
        compile(text, path.name, "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        notebook: NotebookNode = jupytext.reads(text, fmt="py:percent")
    except (OSError, UnicodeDecodeError) as error:
        raise BadText(f"{path} cannot be read: {error}") from error
    except SyntaxError as error:
        raise BadText(f"{path} is no Python (line {error.lineno}: {error.msg})") from error
    except Exception as error:  # the header is YAML, which fails in many ways
        raise BadText(f"{path} has a header that cannot be read: {' '.join(str(error).split())}") from error
    notebook.metadata.pop("jupytext", None)
    notebook.metadata.setdefault("kernelspec", dict(KERNEL))
    notebook.metadata.setdefault("language_info", {"name": "python"})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        _complete(cell, path)
    ids = [cell.id for cell in notebook.cells]
    if twice := next((name for name in ids if ids.count(name) > 1), None):
        raise BadText(f"{path} has two cells called {twice!r}")
    return notebook


def _complete(cell: NotebookNode, path: Path) -> None:
    """Give a cell its id and the marks that its line leaves out."""
    for name in OF_JUPYTEXT:
        cell.metadata.pop(name, None)
    if "incorrectly_encoded_metadata" in cell.metadata:
        raise BadText(f"{path} has a cell line that cannot be read: # %% {cell.metadata.incorrectly_encoded_metadata}")
    marks = cell.metadata.get("nbgrader")
    if marks is not None and not (isinstance(marks, dict) and isinstance(marks.get("grade_id"), str)):
        raise BadText(f'{path} has a cell line without a name: nbgrader={json.dumps(marks)} needs "grade_id": "…"')
    if marks is not None:
        solution, task = bool(marks.get("solution")), bool(marks.get("task"))
        usual = {"grade": "points" in marks and not task, "locked": not solution, "solution": solution, "task": task}
        cell.metadata["nbgrader"] = NotebookNode({"schema_version": 3, **usual, **marks})
        cell.id = marks["grade_id"]
    elif "id" in cell.metadata:
        cell.id = cell.metadata.pop("id")
    elif re.search(r"^student_id\s*=", cell.source, re.MULTILINE):
        cell.id = STUDENT_ID
    else:
        start = next(iter(cell.source.splitlines()), "")
        raise BadText(f'{path} has a cell without nbgrader="…" or id="…", which begins {start[:60]!r}')


def made_from_text(path: Path) -> bool:
    """Whether the notebook in `path` was made by `write_notebook` and is as it was made, but for outputs.

    Raises BadText where somebody edited it: the edit would be lost.
    """
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
    except Exception:  # whatever it is, it is not ours
        return False
    first = notebook.cells[0] if notebook.cells else None
    if first is None or first.get("id") != MADE_FROM:
        return False
    if first.metadata.get("digest") != _digest(notebook.cells[1:]):
        text = path.with_suffix(".py")
        raise BadText(
            f"{path} was edited, but it is made from {text.name}: bring the edit there and delete {path.name}"
        )
    return True


def _digest(cells: list[NotebookNode]) -> str:
    told = [(c.cell_type, c.get("id"), c.source, c.metadata.get("nbgrader")) for c in cells]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def write_notebook(notebook: NotebookNode, path: Path) -> None:
    """Write what nbgrader shall read into `path`, headed by a cell that says where it comes from.

    Nothing is written where it is there already.
    """
    says = f"*Made from `{path.with_suffix('.py').name}`: edit that. Changes made here are not kept.*"
    head = v4.new_markdown_cell(says, id=MADE_FROM, metadata={"digest": _digest(notebook.cells)})
    text = nbformat.writes(NotebookNode({**notebook, "cells": [head, *notebook.cells]}))
    write_changed(path, text.encode("utf-8"))
