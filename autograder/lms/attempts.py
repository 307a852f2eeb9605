"""A student's attempts on disk: the newest in `submitted/<student>/<set>/`, all earlier ones in its `attempts/<n>/`.

Grading looks one folder deep (`finder.find_notebook`), so that it never takes a notebook out of `attempts/<n>/`.
What has been collected is noted in `.collected.json`, so that collecting again changes nothing. A kill at any moment
loses nothing: an attempt is first copied to its place below `attempts/`, and only then are the files above exchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from autograder.course import EARLIER
from autograder.files import write_atomically
from autograder.lms.archives import Found
from autograder.timestamps import TIMESTAMP

NOTES = ".collected.json"


@dataclass
class Note:
    """What is known about an attempt that lies on disk; `place` is the folder's name below `attempts`, or empty.

    `canvas_file`: the highest of Canvas's numbers; `submitted`: when, if known, in ISO 8601; `participant`: the system
    and its number of the student.
    """

    place: str = ""
    digest: str = ""
    canvas_file: int = 0
    submitted: str = ""
    participant: str = ""


@dataclass
class Attempt:
    """Files handed in together, by their path in the submission, and what is to be noted about them.

    `stamp`: the text for timestamp.txt, empty where nothing is known; `late`: the system says so, but not when it came.
    """

    files: dict[str, Found] = field(default_factory=dict)
    note: Note = field(default_factory=Note)
    stamp: str = ""
    late: bool = False


class Shelf:
    """The attempts of one student for one set. With `dry`, everything is decided and nothing written."""

    def __init__(self, folder: Path, dry: bool = False) -> None:
        self.folder, self.dry = folder, dry
        try:
            noted = json.loads((folder / NOTES).read_bytes())
            notes = {note["place"]: Note(**note) for note in noted["attempts"]}
            under_way = bool(noted["under_way"])
        except (OSError, ValueError, KeyError, TypeError):
            notes, under_way = {}, False
        earlier = folder / EARLIER
        places = sorted((path.name for path in earlier.glob("*") if path.name.isdecimal()), key=int)
        self.earlier = [notes.get(place) or Note(place, _digest_on_disk(earlier / place)) for place in places]
        # Interrupted between two attempts: both lie whole elsewhere.
        here = not under_way and any(_files(folder))
        self.newest = (notes.get("") or Note("", _digest_on_disk(folder))) if here else None

    def _notes(self) -> list[Note]:
        return [self.newest, *self.earlier] if self.newest else self.earlier

    def participants(self, system: str) -> set[str]:
        """The numbers in the learning system of those whose work lies here."""
        named = (note.participant.partition(" ") for note in self._notes())
        return {number for name, _, number in named if name == system}

    def number(self, system: str) -> tuple[str, int]:
        """The student's number in the system and that of a file, of the newest attempt that came from there."""
        there = (note for note in self._notes() if note.participant.partition(" ")[0] == system)
        last = max(there, key=lambda note: (note is self.newest, note.canvas_file), default=Note())
        return last.participant.partition(" ")[2], last.canvas_file

    def add(self, attempt: Attempt) -> bool:
        """Put an attempt in its place; whether it was there before, so that its note is the old one. Raises OSError."""
        attempt.note.digest = _digest({name: found.digest for name, found in attempt.files.items()})
        for known in self._notes():
            if _same(known, attempt.note):
                self._learn(known, attempt)
                attempt.note = known
                return True
        if self.dry:
            self._rank(attempt.note)
        else:
            self._lay_down(attempt)
        return False

    def _rank(self, note: Note) -> Note | None:
        """Decide whether a new attempt or the newest so far is an earlier one; returns that one, with its place."""
        earlier = note if self.newest and not _newer(note, self.newest) else self.newest
        if earlier is not note:
            self.newest = note
        if earlier:
            copied = next((other for other in self.earlier if _same(other, earlier)), None)
            if copied:  # by a run that was interrupted
                copied.canvas_file = copied.canvas_file or earlier.canvas_file
                earlier.place = copied.place
            else:
                earlier.place = str(max((int(n.place) for n in self.earlier), default=0) + 1)
                self.earlier.append(earlier)
        return earlier

    def _lay_down(self, attempt: Attempt) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".part-*"):  # by a run that was interrupted
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=".part-", dir=self.folder, ignore_cleanup_errors=True) as hidden:
            staged, copy = Path(hidden, "new"), Path(hidden, "earlier")
            for name, found in attempt.files.items():
                write_atomically(staged / name, found.read())
            if attempt.stamp:
                write_atomically(staged / TIMESTAMP, attempt.stamp.encode())
            earlier = self._rank(attempt.note)
            if earlier:
                place = self.folder / EARLIER / earlier.place
                place.parent.mkdir(exist_ok=True)
                if earlier is attempt.note:
                    os.rename(staged, place)
                elif not place.exists():
                    for path in (*_files(self.folder), self.folder / TIMESTAMP):
                        if path.is_file():
                            write_atomically(copy / path.relative_to(self.folder), path.read_bytes())
                    os.rename(copy, place)
            if earlier is not attempt.note:
                self._write_notes(under_way=True)
                _exchange(self.folder, staged)
        self._write_notes()

    def _learn(self, note: Note, attempt: Attempt) -> None:
        """The same attempt again may come with something new about it."""
        before = asdict(note)
        note.canvas_file = note.canvas_file or attempt.note.canvas_file
        note.participant = note.participant or attempt.note.participant
        note.submitted = attempt.note.submitted or note.submitted
        path = self.folder / (f"{EARLIER}/{note.place}" if note.place else "") / TIMESTAMP
        there = path.read_text("utf-8", "replace") if path.is_file() else ""
        exact = attempt.note.submitted or not attempt.late
        if attempt.stamp not in ("", there) and (exact or not there) and not self.dry:
            write_atomically(path, attempt.stamp.encode())
        if asdict(note) != before:
            self._write_notes()

    def _write_notes(self, under_way: bool = False) -> None:
        if not self.dry:
            noted = {"under_way": under_way, "attempts": [asdict(note) for note in self._notes()]}
            text = json.dumps(noted, ensure_ascii=False, indent=1)
            write_atomically(self.folder / NOTES, text.encode("utf-8", "replace"))


def _exchange(folder: Path, staged: Path) -> None:
    """Put the staged files in the place of the newest attempt's, which have been copied elsewhere."""
    replaced = {path.name for path in staged.iterdir() if path.is_file()}
    for path in _entries(folder):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in replaced:
            path.unlink()
    (folder / TIMESTAMP).unlink(missing_ok=True)
    for path in sorted(staged.iterdir()):
        os.replace(path, folder / path.name)


def _same(note: Note, other: Note) -> bool:
    """The same files; where Canvas numbered both, the same upload."""
    numbers = {note.canvas_file, other.canvas_file} - {0}
    return note.digest == other.digest and len(numbers) < 2


def _newer(new: Note, old: Note) -> bool:
    """By Canvas's numbers or the times of submission where both are known; else what is collected later is newer."""
    if new.canvas_file and old.canvas_file:
        return new.canvas_file > old.canvas_file
    if new.submitted and old.submitted:
        return datetime.fromisoformat(new.submitted) >= datetime.fromisoformat(old.submitted)
    return True


def _entries(folder: Path) -> list[Path]:
    """What the newest attempt consists of: neither earlier ones, nor what is hidden or a link, nor the timestamp."""
    entries = (path for path in sorted(folder.glob("*")) if not path.is_symlink())
    return [path for path in entries if not path.name.startswith(".") and path.name not in (EARLIER, TIMESTAMP)]


def _files(folder: Path) -> Iterator[Path]:
    for path in _entries(folder):
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (p for p in below if p.is_file() and not p.is_symlink())


def _digest(files: Mapping[str, str]) -> str:
    lines = "".join(f"{name}\0{files[name]}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


def _digest_on_disk(folder: Path) -> str:
    names = {unicodedata.normalize("NFC", path.relative_to(folder).as_posix()): path for path in _files(folder)}
    return _digest({name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in names.items()})
