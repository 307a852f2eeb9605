"""What learning systems hand out: the files in a folder or a zip archive, and in the zip archives inside.

Nothing is unpacked to disk and no name from an archive is ever used as a path. Every file is read once to the end when
it is listed, so that its real size counts, not the size that the archive claims; `Found.read` reads it again.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import stat
import time
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

from autograder.errors import AutograderError, said_by
from autograder.files import open_ordinary
from autograder.text import shown

MIB = 2**20
LONGEST = 255  # characters of a file's name that are looked at, the last ones: no file system takes more
ENTRY_BYTES = 500  # that an archive's list of files may have, on average, for each that it may hold
JUNK = re.compile(r"(?i)\.(?!\.$).*|__macosx|thumbs\.db|desktop\.ini|__pycache__|~\$.*")
OTHER_ARCHIVES = re.compile(r"(?i).*\.(rar|7z|gz|tgz|tar|bz2|xz|zst)")
IGNORED, REFUSED = "ignored", "refused"
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
Opener = Callable[[], zipfile.ZipFile]


@dataclass(frozen=True)
class ArchiveLimits:
    """How much one source may hold. `depth` counts archives inside each other, the source included."""

    file_bytes: int = 50 * MIB
    source_bytes: int = 20_480 * MIB
    source_files: int = 200_000
    inner_bytes: int = 200 * MIB
    inner_files: int = 2_000
    ratio: int = 100
    ratio_from: int = 50 * MIB
    depth: int = 3


@dataclass(frozen=True)
class Found:
    """A file of a source. `parts` is its path, in which an archive counts as a folder (`archives` tells which parts).

    `label` names it for people. `action` is IGNORED or REFUSED where it is not to be used, `why` says why, or what is
    odd about it.
    """

    label: str
    parts: tuple[str, ...]
    archives: tuple[bool, ...] = ()
    digest: str = ""
    modified: float = 0.0
    action: str = ""
    why: str = ""
    read: Callable[[], bytes] = field(default=bytes, repr=False, compare=False)


class TooMuch(AutograderError):
    """Something is too long or cannot be read; the message says what. `size`: the bytes that were read to see it."""

    def __init__(self, what: str, size: int = 0) -> None:
        super().__init__(what)
        self.size = size


@dataclass
class _Budget:
    """The bytes unpacked of a source, or of an archive of `packed` bytes in it (0: any ratio will do)."""

    limits: ArchiveLimits
    most: int
    most_files: int
    packed: int = 0
    used: int = 0
    files: int = 0
    unpacked: int = 0

    def count(self, files: int) -> None:
        """Raises TooMuch."""
        self.files += files
        if self.files > self.most_files:
            raise TooMuch(f"it holds {self.files:,} files")

    def unpack(self, size: int) -> None:
        """What one more archive in it holds. Raises TooMuch, and then that one does not count."""
        if self.unpacked + size > self.most:
            raise TooMuch(f"it and the archives before it unpack to more than {self.most // MIB:,} MB")
        self.unpacked += size

    def spend(self, size: int) -> None:
        """Raises TooMuch."""
        self.used += size
        if self.used > self.most:
            raise TooMuch(f"it holds more than {self.most // MIB:,} MB")
        if self.packed and self.used > max(self.limits.ratio_from, self.limits.ratio * self.packed):
            raise TooMuch(f"it unpacks to more than {self.limits.ratio} times its size")


class Sources:
    """Opens sources, and keeps them open until `close`, so that their files can be read."""

    def __init__(self, limits: ArchiveLimits | None = None) -> None:
        self.limits = limits or ArchiveLimits()
        # Files are read one after another, so that few archives are in use at a time.
        self._opened = lru_cache(maxsize=8)(lambda archive: archive())

    def close(self) -> None:
        self._opened.cache_clear()

    def files(self, source: Path) -> list[Found]:
        """The files of a folder, a zip archive or a lone notebook, those that are refused or ignored included.

        All or nothing: where a source turns out to hold too much, none of it is used.
        """
        name, limits = source.name, self.limits
        # No ratio here: the class's whole archive must not fall with one student's runaway output.
        budget = _Budget(limits, limits.source_bytes, limits.source_files)
        try:
            if source.is_dir():
                return self._folder(source, budget)
            if zipfile.is_zipfile(source):
                return self._members(partial(_zip_file, source, budget), Found(name, ()), 1, budget)
            if not OTHER_ARCHIVES.fullmatch(name) and source.suffix.lower() != ".zip":
                return self._plain(source, Found(name, (name,), (False,)), budget)
            why = "it is no zip archive that can be read; unpack it and name the folder"
        except TooMuch as error:
            why = str(error)
        except DAMAGED as error:
            why = f"it cannot be read ({shown(said_by(error), 100)})"
        return [Found(name, (), action=REFUSED, why=why)]

    def _folder(self, source: Path, budget: _Budget) -> list[Found]:
        files: list[Found] = []
        waiting: list[tuple[str, tuple[str, ...]]] = [(str(source), ())]
        while waiting:
            place, above = waiting.pop(0)
            for entry in sorted(os.scandir(place), key=lambda e: e.name):
                name = unicodedata.normalize("NFC", os.fsencode(entry.name).decode("utf-8", "replace"))
                parts = (*above, name)
                found = Found(shown("/".join((source.name, *parts)), 300), parts, (False,) * len(parts))
                folder = entry.is_dir(follow_symlinks=False)
                if folder and not JUNK.fullmatch(name) and os.access(entry.path, os.R_OK | os.X_OK):
                    waiting.append((entry.path, parts))
                    continue
                why = "it is a symbolic link" if entry.is_symlink() else "the folder may not be read" if folder else ""
                files += self._plain(Path(entry.path), found, budget, why)
        return files

    def _plain(self, path: Path, found: Found, budget: _Budget, why: str = "") -> list[Found]:
        read = partial(_read, partial(_open_alone, path), self.limits.file_bytes)
        return self._whole(replace(found, modified=path.lstat().st_mtime, read=read), 0, budget, why)

    def _members(self, archive: Opener, holder: Found, depth: int, budget: _Budget) -> list[Found]:
        """The files of an archive. Raises TooMuch."""
        files: list[Found] = []
        members = self._opened(archive).infolist()
        budget.count(len(members))
        for number, info in enumerate(members):
            name = _name(info)
            parts = tuple(p[-LONGEST:] for p in re.split(r"[/\\]", name) if p not in ("", "."))
            found = Found(
                f"{holder.label}/{shown(name, 200)}",
                (*holder.parts, *parts),
                (*holder.archives, *(False for _ in parts)),
                modified=time.mktime((*info.date_time, 0, 0, -1)),
                read=partial(_read, partial(self._open_member, archive, number), self.limits.file_bytes),
            )
            if parts and not name.endswith(("/", "\\")):
                files += self._whole(found, depth, budget, _why_not(info, name, parts))
        return files

    def _open_member(self, archive: Opener, number: int) -> IO[bytes]:
        opened: zipfile.ZipFile = self._opened(archive)
        return opened.open(opened.infolist()[number])

    def _whole(self, found: Found, depth: int, budget: _Budget, why: str) -> list[Found]:
        """The file itself, refused for `why`, or the files in a zip archive. What a refused one held does not count."""
        limits, size, held = self.limits, 0, 0
        if any(JUNK.fullmatch(part) for part in found.parts):
            return [replace(found, action=IGNORED, why="left behind by a program")]
        try:
            if why:
                raise TooMuch(why)
            data = found.read()
            size = len(data)
            found = replace(found, digest=hashlib.sha256(data).hexdigest())
            if not found.parts[-1].lower().endswith(".zip"):
                strange = OTHER_ARCHIVES.fullmatch(found.parts[-1])
                files = [replace(found, why="an archive of this kind is not opened" if strange else "")]
            elif depth >= limits.depth:
                raise TooMuch(f"archives lie inside each other, more than {limits.depth} deep")
            else:
                holder = replace(found, archives=(*found.archives[:-1], True))
                inside = _Budget(limits, limits.inner_bytes, limits.inner_files, size)
                files = self._members(lambda: _zip_file(io.BytesIO(holder.read()), inside), holder, depth + 1, inside)
                if budget.packed:
                    size, held = size + inside.used, inside.files
                else:  # the class's archive must not fall with one student's many
                    budget.unpack(inside.used)
        except TooMuch as error:
            files, size = [replace(found, action=REFUSED, why=str(error))], size or error.size
        except DAMAGED:
            files = [replace(found, why="it is no zip archive that can be read; it is kept as it is")]
        budget.count(held)
        budget.spend(size)
        return files


def _zip_file(file: Path | io.BytesIO, budget: _Budget) -> zipfile.ZipFile:
    """Raises TooMuch before it reads a list of files that is too long: in memory it takes up ten times as much."""
    with file.open("rb") if isinstance(file, Path) else nullcontext(file) as archive:
        end = zipfile._EndRecData(archive)  # type: ignore[attr-defined]
    if end is not None and end[5] > ENTRY_BYTES * budget.most_files:
        raise TooMuch(f"its list of files has {end[5] // 1000:,} kB")
    return zipfile.ZipFile(file)


def _open_alone(path: Path) -> IO[bytes]:
    """No links and no pipes, not even when the file was exchanged since it was listed."""
    file = open_ordinary(path, os.O_NOFOLLOW)
    if os.fstat(file.fileno()).st_nlink > 1:
        file.close()
        raise TooMuch("it is a hard link: the same file has another name elsewhere")
    return file


def _read(opened: Callable[[], IO[bytes]], most: int) -> bytes:
    """All of the file. Raises TooMuch as soon as it is longer than `most`, or where it is damaged."""
    pieces = []
    length = 0
    try:
        with opened() as file:
            while piece := file.read(MIB):
                length += len(piece)
                if length > most:
                    raise TooMuch(f"it has more than {most // MIB} MB", length)
                pieces.append(piece)
    except DAMAGED as error:
        raise TooMuch(f"it cannot be read ({shown(said_by(error), 100)})", length) from error
    return b"".join(pieces)


def _name(info: zipfile.ZipInfo) -> str:
    """The name as it stands in the archive, NUL and all, in composed form."""
    name = info.orig_filename
    if not info.flag_bits & 0x800:
        # macOS and many tools write UTF-8 without saying so; Python then reads it as the code page of 1981.
        with suppress(UnicodeError):
            name = name.encode("cp437").decode("utf-8")
    return unicodedata.normalize("NFC", name)


def _why_not(info: zipfile.ZipInfo, name: str, parts: tuple[str, ...]) -> str:
    """Why an entry of an archive is refused; nothing where it is an ordinary file or folder."""
    kind = stat.S_IFMT(info.external_attr >> 16)
    reasons = {
        "its name holds a NUL character": "\0" in name,
        "its path is absolute": name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name),
        "its path leads out of the archive": ".." in parts,
        "its path is endless": len(parts) > 40 or len(name) > 4_000,
        "it is a symbolic link": kind == stat.S_IFLNK,
        "it is no ordinary file": kind not in (0, stat.S_IFREG, stat.S_IFDIR),
        "it is encrypted": info.flag_bits & 0x1,
        # The others are rare, and can ask for gigabytes of memory before the first byte comes out.
        "it is packed in an unusual way": info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED),
    }
    return next((why for why, holds in reasons.items() if holds), "")
