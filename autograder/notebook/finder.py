"""Which file of a submission's folder is the notebook that is meant."""

from __future__ import annotations

import os
import re
from pathlib import Path

from autograder.notebook.reader import few
from autograder.text import shown

_EXACT, _COPY, _SAME_SET, _OTHER, _FOREIGN = range(5)


def find_notebook(folder: Path, expected: str) -> tuple[Path | None, list[str]]:
    """The file in a submission folder that stands for notebook `expected` (without .ipynb), with notes.

    The exact name wins; then renamed copies ("… (1)", "Copy of …", other case or spacing, one folder deeper,
    ".ipynb.txt", ".json"); then files named after the same set ("ps2.ipynb"); then any other notebook. Of
    several the newest attempt counts: the highest copy number, then the latest change. Links that lead out of
    the folder are not followed.
    """
    notes: list[str] = []
    found = []
    for path in _files(folder, notes):
        rank = _rank(path, folder, expected)
        if rank == _FOREIGN:
            notes.append(f"'{shown(path.name)}' is named like another problem set; it was left out.")
        elif rank is not None:
            found.append((rank, path))
    notes[:] = few(notes)
    if not found:
        return None, notes
    best = min(rank for rank, _ in found)
    path = max((p for rank, p in found if rank == best), key=_newest)
    label = shown(path.relative_to(folder).as_posix())
    if best != _EXACT:
        notes.append(f"Your file was called '{label}'; it was graded as {expected}.ipynb.")
    others = sorted(shown(p.relative_to(folder).as_posix()) for _, p in found if p != path)
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        listed = ", ".join(f"'{other}'" for other in others[:3])
        notes.append(f"There were other files too: '{label}' was taken, not {listed}{more}.")
    return path, notes


def _files(folder: Path, notes: list[str]) -> list[Path]:
    """Ordinary files in the folder and its sub-folders; no hidden ones (checkpoints, archive leftovers)."""
    root = folder.resolve()
    files: list[Path] = []
    waiting = [(folder, 0)]
    while waiting:
        place, depth = waiting.pop()
        try:
            entries = sorted(place.iterdir()) if place.exists() else []
            for entry in entries:
                if entry.name.startswith((".", "__MACOSX")):
                    continue
                if entry.is_symlink() and not (os.path.exists(entry) and entry.resolve().is_relative_to(root)):
                    notes.append(f"'{shown(entry.name)}' is a link that leads elsewhere; it was left out.")
                elif entry.is_dir():
                    if not entry.is_symlink() and depth == 0:
                        waiting.append((entry, 1))
                    if entry.suffix.lower() == ".ipynb":
                        notes.append(f"'{shown(entry.name)}' is a folder, not a notebook.")
                elif entry.is_file():
                    files.append(entry)
                else:
                    notes.append(f"'{shown(entry.name)}' is no ordinary file; it was left out.")
        except OSError as error:
            notes.append(f"The folder '{shown(place.name)}' cannot be opened ({error.strerror}).")
    return files


def _rank(path: Path, folder: Path, expected: str) -> int | None:
    if path.parent == folder and path.name == f"{expected}.ipynb":
        return _EXACT
    match = re.fullmatch(r"(.*?)((?:\.ipynb|\.json|\.txt)+)", path.name, re.IGNORECASE | re.DOTALL)
    if not match:
        return None
    stem, notebook = _key(match[1]), ".ipynb" in match[2].lower()
    if stem == _key(expected):
        return _COPY
    if not notebook:
        return None  # a data file
    if _key(expected) in stem:
        return _SAME_SET
    own = re.match(r"([a-z]+)(\d+)", _key(expected))
    if own:  # "ps2": a name with "ps2" is meant, one with "ps3" is another set
        numbers = re.findall(rf"(?<![a-z]){own[1]}[ _-]*(\d{{1,6}})", match[1].lower())
        if numbers:
            return _SAME_SET if int(own[2]) in map(int, numbers) else _FOREIGN
    return _OTHER


_COPY_MARKS = r"(?i)^\s*copy[ _-]*(\(\d+\)[ _-]*)?of[ _-]+|[ _-]*\(\d+\)|[ _-]+copy[ _-]*\d*$"


def _key(stem: str) -> str:
    """The name without marks of copying, case, spaces and punctuation."""
    previous = None
    while previous != stem:
        previous, stem = stem, re.sub(_COPY_MARKS, "", stem)
    return re.sub(r"[\W_]+", "", stem).lower()


def _newest(path: Path) -> tuple[int, int, int, str]:
    stem = re.sub(r"(?i)(\.(ipynb|json|txt))+$", "", path.name)
    numbers = re.findall(r"\((\d{1,6})\)|copy[ _-]*(\d{1,6})\b|[ _-](\d{1,2})$", stem, re.IGNORECASE)
    folder = re.search(r"(?:attempt|version|try|v)[ _-]*(\d{1,6})", path.parent.name, re.IGNORECASE)
    copy = max((int("".join(groups)) for groups in numbers), default=0)
    return int(folder[1]) if folder else 0, copy, path.stat().st_mtime_ns, path.name
