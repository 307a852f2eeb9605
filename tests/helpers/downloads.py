"""What tests of `collect` share: a course, archives as learning systems make them, and what lies in `submitted/`."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from tiny_course import GOOD, SET, answered, make_course

from autograder.course import Course
from autograder.lms.archives import ArchiveLimits
from autograder.lms.attempts import NOTES
from autograder.lms.collect import Collected
from autograder.notebook.finder import find_notebook

FIRST = json.dumps(answered(why="first attempt")).encode()
SECOND = json.dumps(answered(**GOOD)).encode()
THIRD = json.dumps(answered(why="third attempt")).encode()
SMALL = ArchiveLimits(file_bytes=2**20, source_bytes=8 * 2**20, inner_bytes=2 * 2**20, ratio_from=2**20, inner_files=20)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def archive(path: Path, files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return path


def zipped_bytes(folder: Path, files: Mapping[str, bytes]) -> bytes:
    return archive(folder / "inner.zip", files).read_bytes()


def folder_of(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def roster(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def submitted(course: Course) -> dict[str, bytes]:
    """Everything in submitted/ except the notes, by path."""
    root = course.root / "submitted"
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != NOTES
    }


def actions(done: Collected) -> dict[str, str]:
    """What became of each file, by the name's last part."""
    return {row.file.rsplit("/", 1)[-1]: row.action for row in done.rows}


def taken(course: Course, student: str) -> bytes:
    """What grading would take."""
    path, _ = find_notebook(course.root / "submitted" / student / SET, SET)
    assert path is not None
    return path.read_bytes()
