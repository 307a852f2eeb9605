"""Makes a course folder of the files in `templates/`."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

from autograder.errors import AutograderError
from autograder.notebook.text_source import read_text

TEMPLATES = Path(__file__).parent / "templates"
SET = "describing-data"


class CannotBegin(AutograderError):
    """No course can be made there; one line that says why."""


def begin(folder: Path) -> list[Path]:
    """Make a course in `folder`, which is new or empty; returns its files. Raises CannotBegin, OSError.

    The set, a text among the templates, becomes a notebook, which any Jupyter opens.
    """
    if folder.exists() and not folder.is_dir():
        raise CannotBegin(f"{folder} is a file; name a folder that does not exist yet")
    if folder.is_dir() and any(folder.iterdir()):
        raise CannotBegin(f"{folder} is not empty, and nothing is overwritten: name a new folder")
    shutil.copytree(TEMPLATES, folder, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    text = folder / "source_solutions" / SET / f"{SET}.py"
    text.with_suffix(".ipynb").write_text(f"{nbformat.writes(read_text(text))}\n", encoding="utf-8")
    text.unlink()
    return sorted(path for path in folder.rglob("*") if path.is_file())
