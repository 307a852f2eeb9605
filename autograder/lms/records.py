"""The smallest models of a final project, as a class keeps them: `records.csv` in the course folder.

Its columns are task, score (a share from 0 to 1), parameters (a whole number), and name, which may be empty.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

from autograder.course import CourseError
from autograder.lms.csv_files import read_table
from autograder.text import shown

FILE = "records.csv"
LONGEST = 60  # characters of a task and of a name
Record = tuple[int, float, str]  # parameters, score, name


def read_records(path: Path) -> dict[str, list[Record]]:
    """By task, the smallest model first, those models than which no smaller one has as high a score.

    Raises CourseError, which names line and column of what is wrong, and OSError.
    """
    table = read_table(path)
    places = {name: table.column(name) for name in ("task", "score", "parameters", "name")}
    for name, place in places.items():
        if place is None:
            raise table.error(f"has no column {name!r}")
    handed_in: dict[str, list[Record]] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        cells = {name: row[place] for name, place in places.items() if place is not None}

        def wrong(column: str, what: str, line: int = line, cells: dict[str, str] = cells) -> CourseError:
            return CourseError(f"{path.name}, line {line}, column {column!r}: {shown(cells[column])!r} is {what}")

        if not 0 < len(cells["task"]) <= LONGEST:
            raise wrong("task", f"no name of 1 to {LONGEST} characters")
        if len(cells["name"]) > LONGEST:
            raise wrong("name", f"longer than {LONGEST} characters")
        if not re.fullmatch(r"[0-9]{1,15}", cells["parameters"], re.ASCII):
            raise wrong("parameters", "no whole number")
        try:
            score = float(cells["score"])
        except ValueError:
            score = math.nan
        if not 0 <= score <= 1:
            raise wrong("score", "no number from 0 to 1")
        handed_in.setdefault(cells["task"], []).append((int(cells["parameters"]), score, cells["name"] or "anonymous"))
    return {task: _unbeaten(records) for task, records in sorted(handed_in.items())}


def _unbeaten(records: list[Record]) -> list[Record]:
    """In order of size, those that score higher than all smaller ones; of equals, the one that came first."""
    kept: list[Record] = []
    for record in sorted(records, key=lambda r: (r[0], -r[1])):
        if not kept or record[1] > kept[-1][1]:
            kept.append(record)
    return kept
