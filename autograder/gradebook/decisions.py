"""What an instructor decided that nbgrader's gradebook has no place for: `decisions.json`, and the folder `dropped/`.

Extensions, and full marks as marks, stand in the gradebook itself. `students.py` makes decisions; here they are read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.course import EARLIER, CourseError
from autograder.files import write_atomically

FILE = "decisions.json"
DROPPED = "dropped"
ROWS = "gradebook.json"  # in a dropped student's folder: the rows that stood in the gradebook

NEWEST, LAST_ON_TIME, BEST = POLICIES = ("newest", "last-on-time", "best")
STUDENT = ("id", "first_name", "last_name", "email", "lms_user_id")


@dataclass
class Decisions:
    """What holds for one set: who is `excused`, and `full_marks` by the grade_id of an exercise.

    Of full marks, by student, what stood there before: the manual score and whether somebody still had to mark it.
    `attempts` says which of several counts, and `counts` for whom an earlier one does, with its place.
    """

    excused: list[str] = field(default_factory=list)
    full_marks: dict[str, dict[str, tuple[float | None, bool]]] = field(default_factory=dict)
    attempts: str = NEWEST
    counts: dict[str, str] = field(default_factory=dict)


def _read(path: Path) -> dict[str, Any]:
    try:
        read: dict[str, Any] = json.loads(path.read_bytes()) if path.exists() else {}
        return dict(read)
    except (ValueError, TypeError) as error:
        raise CourseError(f"{path} cannot be read ({error}); mend it, or remove it to forget what it says") from error


def decided(root: Path, name: str) -> Decisions:
    """What was decided about a set of the course in a folder. Raises CourseError for a file that cannot be read."""
    path = root / FILE
    try:
        return Decisions(**_read(path).get(name, {}))
    except TypeError as error:
        raise CourseError(f"{path} says what this version does not know: {error}") from error


def decide(root: Path, name: str, decisions: Decisions) -> None:
    """Keep what was decided about a set. Raises OSError, CourseError."""
    kept = {**_read(root / FILE), name: asdict(decisions)}
    write_atomically(root / FILE, json.dumps(kept, ensure_ascii=False, indent=1).encode() + b"\n")


def folder_of(newest: Path, decisions: Decisions, student: str) -> Path:
    """The folder of the student's attempt that counts, which is the newest or one of those below it."""
    earlier = newest / EARLIER / decisions.counts.get(student, "")
    return earlier if student in decisions.counts and earlier.is_dir() else newest


def dropped(root: Path) -> dict[str, dict[str, Any]]:
    """By id, the dropped students as `reader.class_list` has the others. Raises CourseError."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((root / DROPPED).glob(f"*/{ROWS}")):
        row = {"id": path.parent.name, **next(iter(_read(path)["student"]), {})}
        found[row["id"]] = {key: row.get(key) or "" for key in STUDENT}
    return found
