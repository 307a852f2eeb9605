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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path

from autograder.files import write_atomically
from autograder.lms.archives import Found
from autograder.timestamps import TIMESTAMP

EARLIER = "attempts"
NOTES = ".collected.json"


@dataclass
class Attempt:
    """Files handed in together, by their path in the submission. `canvas_file` is the highest of Canvas's numbers.

    `submitted`: when, if known; `stamp`: the text of a timestamp.txt that came along; `late`: the system says so;
    `participant`: the system and its number of the student.
    """

    files: dict[str, Found] = field(default_factory=dict)
    canvas_file: int = 0
    submitted: datetime | None = None
    stamp: str = ""
    late: bool = False
    participant: str = ""

    @property
    def digest(self) -> str:
        return _digest({name: found.digest for name, found in self.files.items()})


@dataclass
class Note:
    """What is known about an attempt that lies on disk; `place` is the folder's name below `attempts`, or empty."""

    place: str
    digest: str
    canvas_file: int = 0
    submitted: str = ""
    participant: str = ""


def _digest(files: dict[str, str]) -> str:
    lines = "".join(f"{name}\0{files[name]}\n" for name in sorted(files))
    return hashlib.sha256(lines.encode()).hexdigest()


class Shelf:
    """The attempts of one student for one set. With `dry`, everything is decided and nothing written."""

    def __init__(self, folder: Path, dry: bool = False) -> None:
        self.folder, self.dry = folder, dry
        try:
            noted = json.loads((folder / NOTES).read_bytes())
            known = {each.name for each in fields(Note)}
            kept = [Note(**{key: note[key] for key in note.keys() & known}) for note in noted["attempts"]]
            notes = {note.place: note for note in kept}
            under_way = bool(noted["under_way"])
        except (OSError, ValueError, KeyError, TypeError):
            notes, under_way = {}, False
        earlier = folder / EARLIER
        places = sorted((p.name for p in earlier.iterdir() if p.name.isdecimal()), key=int) if earlier.is_dir() else []
        self.earlier = [notes.get(place) or Note(place, _digest_on_disk(earlier / place)) for place in places]
        # Interrupted between two attempts: both lie whole elsewhere.
        self.newest = (
            None if under_way or not any(_files(folder)) else notes.get("") or Note("", _digest_on_disk(folder))
        )

    def participants(self, system: str) -> set[str]:
        """The numbers in the learning system of those whose work lies here."""
        named = (note.participant.partition(" ") for note in (self.newest, *self.earlier) if note)
        return {number for name, _, number in named if name == system}

    def add(self, attempt: Attempt, stamp: str) -> tuple[Note, bool]:
        """Put an attempt in its place; returns its note, and whether it was there before. Raises OSError.

        `stamp` is the text for timestamp.txt, empty where nothing is known.
        """
        known = next((n for n in (self.newest, *self.earlier) if n and _same(n, attempt)), None)
        if known:
            self._learn(known, attempt, stamp)
            return known, True
        submitted = attempt.submitted.isoformat() if attempt.submitted else ""
        note = Note("", attempt.digest, attempt.canvas_file, submitted, attempt.participant)
        if not self.dry:
            self.folder.mkdir(parents=True, exist_ok=True)
            for left in self.folder.glob(".part-*"):  # by a run that was interrupted
                shutil.rmtree(left, ignore_errors=True)
        with self._staged({name: found.read for name, found in attempt.files.items()}, stamp) as staged:
            if self.newest and not _newer(note, self.newest):
                self._shelve(staged, note)
            else:
                if self.newest:
                    self._shelve_newest(self.newest)
                self.newest = note
                if staged:
                    self._note(under_way=True)
                    _exchange(self.folder, staged)
        self._note()
        return note, False

    def _shelve(self, staged: Path | None, note: Note) -> None:
        """Make a staged attempt the last of the earlier ones."""
        note.place = str(max((int(n.place) for n in self.earlier), default=0) + 1)
        if staged:
            (self.folder / EARLIER).mkdir(exist_ok=True)
            os.rename(staged, self.folder / EARLIER / note.place)
        self.earlier.append(note)

    def _shelve_newest(self, note: Note) -> None:
        for other in self.earlier:
            if other.digest == note.digest and 0 in (other.canvas_file, note.canvas_file):
                other.canvas_file = other.canvas_file or note.canvas_file
                note.place = other.place
                return  # it was copied by a run that was interrupted
        files = {str(path.relative_to(self.folder)): path.read_bytes for path in _files(self.folder)}
        with self._staged(files, _text_of(self.folder / TIMESTAMP)) as copy:
            self._shelve(copy, note)

    @contextmanager
    def _staged(self, files: Mapping[str, Callable[[], bytes]], stamp: str) -> Iterator[Path | None]:
        """A hidden folder with all files of an attempt, written before anything else is touched; removed in the end."""
        if self.dry:
            yield None
            return
        path = Path(tempfile.mkdtemp(prefix=".part-", dir=self.folder))
        try:
            path.chmod(0o755)
            for name, read in files.items():
                write_atomically(path / name, read())
            if stamp:
                write_atomically(path / TIMESTAMP, stamp.encode())
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def _learn(self, note: Note, attempt: Attempt, stamp: str) -> None:
        """The same attempt again may come with something new about it."""
        before = asdict(note)
        note.canvas_file = note.canvas_file or attempt.canvas_file
        note.participant = note.participant or attempt.participant
        if attempt.submitted:
            note.submitted = attempt.submitted.isoformat()
        path = self.folder / (f"{EARLIER}/{note.place}" if note.place else "") / TIMESTAMP
        exact = bool(attempt.submitted or attempt.stamp)
        there = _text_of(path)
        if stamp and stamp != there and (exact or not there) and not self.dry:
            write_atomically(path, stamp.encode())
        if asdict(note) != before:
            self._note()

    def _note(self, under_way: bool = False) -> None:
        if self.dry:
            return
        notes = [asdict(n) for n in (self.newest, *self.earlier) if n]
        text = json.dumps({"under_way": under_way, "attempts": notes}, ensure_ascii=False, indent=1)
        write_atomically(self.folder / NOTES, text.encode("utf-8", "replace"))


def _exchange(folder: Path, staged: Path) -> None:
    """Put the staged files in the place of the newest attempt's, which have been copied elsewhere."""
    wanted = {path.relative_to(staged) for path in staged.rglob("*") if path.is_file()}
    for path in list(_files(folder)):
        if path.relative_to(folder) not in wanted:
            path.unlink()
    (folder / TIMESTAMP).unlink(missing_ok=True)
    for name in sorted(wanted):
        target = folder / name
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)  # only empty folders are left of the attempt before
        target.parent.mkdir(exist_ok=True)
        os.replace(staged / name, target)
    for path in folder.iterdir():
        if path.is_dir() and path.name != EARLIER and not path.name.startswith(".") and not any(path.iterdir()):
            path.rmdir()


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _same(note: Note, attempt: Attempt) -> bool:
    """The same files; where Canvas numbered both, the same upload."""
    numbers = {note.canvas_file, attempt.canvas_file} - {0}
    return note.digest == attempt.digest and len(numbers) < 2


def _newer(new: Note, old: Note) -> bool:
    """By Canvas's numbers or the times of submission where both are known; else what is collected later is newer."""
    if new.canvas_file and old.canvas_file:
        return new.canvas_file > old.canvas_file
    if new.submitted and old.submitted:
        return datetime.fromisoformat(new.submitted) >= datetime.fromisoformat(old.submitted)
    return True


def _files(folder: Path) -> Iterator[Path]:
    """The ordinary files of the newest attempt: neither earlier ones nor hidden ones, nor the timestamp."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in (EARLIER, TIMESTAMP) or path.is_symlink():
            continue
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (p for p in below if p.is_file() and not p.is_symlink())


def _digest_on_disk(folder: Path) -> str:
    names = {unicodedata.normalize("NFC", path.relative_to(folder).as_posix()): path for path in _files(folder)}
    return _digest({name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in names.items()})
