"""Results on disk: one file for each student and set, written at once or not at all."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path

from autograder.files import write_atomically
from autograder.results import Result

BEFORE = ".before"


class Store:
    """The results of a course, below one folder: `<set>/<student>.json`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, assignment: str, student: str) -> Path:
        return self.folder / assignment / f"{student}.json"

    def get(self, assignment: str, student: str) -> Result | None:
        """The stored result; None when there is none or it cannot be read (it is then made anew)."""
        return _read(self.path(assignment, student))

    def put(self, result: Result) -> None:
        """Keep a result; one it replaces is kept as `before` it. Raises OSError, e.g. when the disk is full."""
        path = self.path(result.assignment, result.student)
        old = _read(path)
        if old is not None and (old.key != result.key or old.auto_score != result.auto_score):
            write_atomically(path.parent / BEFORE / path.name, path.read_bytes())
        write_atomically(path, json.dumps(result.to_json()).encode())

    def before(self, assignment: str) -> dict[str, Result]:
        """By student, the results that the stored ones took the place of."""
        return {result.student: result for result in _read_all(self.folder / assignment / BEFORE)}

    def all(self, assignment: str) -> Iterator[Result]:
        """All results of a set, by student."""
        return _read_all(self.folder / assignment)

    def assignments(self) -> list[str]:
        return sorted(p.name for p in self.folder.iterdir() if p.is_dir()) if self.folder.is_dir() else []

    def seed(self, assignment: str, version: str, fresh: bool = False) -> int:
        """The recorded seed of the hidden checks' inputs: drawn once for a run, which may be interrupted, or anew."""
        path = self.folder / assignment / ".seed"
        try:
            recorded = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            recorded = {}
        if fresh or recorded.get("version") != version:
            recorded = {"version": version, "seed": secrets.randbelow(2**32)}
            write_atomically(path, json.dumps(recorded).encode())
        return int(recorded["seed"])

    def end_run(self, assignment: str) -> None:
        """The run is complete: the next one draws a seed of its own, so that nobody resubmits to known inputs."""
        (self.folder / assignment / ".seed").unlink(missing_ok=True)


def _read(path: Path) -> Result | None:
    try:
        return Result.from_json(json.loads(path.read_bytes()))
    except (FileNotFoundError, ValueError, TypeError, KeyError):
        return None


def _read_all(folder: Path) -> Iterator[Result]:
    return (result for path in sorted(folder.glob("*.json")) if (result := _read(path)) is not None)
