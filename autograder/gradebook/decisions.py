"""What an instructor decided that nbgrader's gradebook has no place for: `decisions.json`, and the folder `dropped/`.

Extensions, and full marks as marks, stand in the gradebook itself. `students.py` makes decisions; here they are read.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autograder.course import EARLIER, Course, CourseError
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


def decided(course: Course, name: str) -> Decisions:
    """What was decided about a set. Raises CourseError for a file that cannot be read."""
    path = course.root / FILE
    try:
        return Decisions(**_read(path).get(name, {}))
    except TypeError as error:
        raise CourseError(f"{path} says what this version does not know: {error}") from error


def decide(course: Course, name: str, decisions: Decisions) -> None:
    """Keep what was decided about a set. Raises OSError, CourseError."""
    kept = {**_read(course.root / FILE), name: asdict(decisions)}
    write_atomically(course.root / FILE, json.dumps(kept, ensure_ascii=False, indent=1).encode() + b"\n")


def folder_of(course: Course, decisions: Decisions, name: str, student: str) -> Path:
    """The folder of the student's attempt at a set that counts."""
    newest = course.step_folder("submitted", student, name)
    earlier = newest / EARLIER / decisions.counts.get(student, "")
    return earlier if student in decisions.counts and earlier.is_dir() else newest


def dropped(course: Course) -> dict[str, dict[str, Any]]:
    """By id, the dropped students as `reader.class_list` has the others. Raises CourseError."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((course.root / DROPPED).glob(f"*/{ROWS}")):
        row = {"id": path.parent.name, **next(iter(_read(path)["student"]), {})}
        found[row["id"]] = {key: row.get(key) or "" for key in STUDENT}
    return found
