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
import unicodedata
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from pathlib import Path
from typing import IO

from autograder.errors import AutograderError
from autograder.text import shown

MIB = 2**20
JUNK = re.compile(r"(?i)\..*|__macosx|thumbs\.db|desktop\.ini|__pycache__|~\$.*")
OTHER_ARCHIVES = re.compile(r"(?i).*\.(rar|7z|gz|tgz|tar|bz2|xz|zst)")
LEFT_BEHIND = "left behind by a program"
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
Archive = Path | Callable[[], bytes]
"""Where an archive lies, or what reads one that lies inside another."""


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

    `label` names it for people. `refused`, `ignored`: why it is not to be used. `note`: what is odd about it.
    """

    label: str
    parts: tuple[str, ...]
    archives: tuple[bool, ...] = ()
    digest: str = ""
    modified: float = 0.0
    refused: str = ""
    ignored: str = ""
    note: str = ""
    read: Callable[[], bytes] = field(default=bytes, repr=False, compare=False)


class TooMuch(AutograderError):
    """Something is too long or cannot be read; the message says what. `size`: the bytes that were read to see it."""

    def __init__(self, what: str, size: int = 0) -> None:
        super().__init__(what)
        self.size = size


class Sources:
    """Opens sources; a context manager that keeps them open until all their files have been read."""

    def __init__(self, limits: ArchiveLimits | None = None) -> None:
        self.limits = limits or ArchiveLimits()
        # Files are read one after another, so that few archives are in use at a time.
        self._opened = lru_cache(maxsize=8)(_opened)

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.cache_clear()

    def files(self, source: Path) -> list[Found]:
        """The files of a folder, a zip archive or a lone notebook, those that are refused or ignored included.

        All or nothing: where a source turns out to hold too much, none of it is used.
        """
        name, limits = source.name, self.limits
        try:
            if source.is_dir():
                return self._folder(source)
            if zipfile.is_zipfile(source):
                # No ratio here: the class's whole archive must not fall with one student's runaway output.
                return self._members(source, Found(name, ()), 1, limits.source_files, limits.source_bytes)[0]
            if not OTHER_ARCHIVES.fullmatch(name) and source.suffix.lower() != ".zip":
                return self._plain(source, Found(name, (name,), (False,)))[0]
            why = "it is no zip archive that can be read; unpack it and name the folder"
        except TooMuch as error:
            why = str(error)
        except DAMAGED as error:
            why = _cannot(error)
        return [Found(name, (), refused=why)]

    def _folder(self, source: Path) -> list[Found]:
        files: list[Found] = []
        used = 0
        waiting: list[tuple[str, tuple[str, ...]]] = [(str(source), ())]
        while waiting:
            place, above = waiting.pop(0)
            for entry in sorted(os.scandir(place), key=lambda e: e.name):
                name = unicodedata.normalize("NFC", os.fsencode(entry.name).decode("utf-8", "replace"))
                parts = (*above, name)
                found = Found(shown("/".join((source.name, *parts)), 300), parts, (False,) * len(parts))
                if JUNK.fullmatch(name):
                    files.append(replace(found, ignored=LEFT_BEHIND))
                elif entry.is_symlink():
                    files.append(replace(found, refused="it is a symbolic link"))
                elif not entry.is_dir():
                    listed, size = self._plain(Path(entry.path), found)
                    files += listed
                    used = _sum(used, size, self.limits.source_bytes)
                elif os.access(entry.path, os.R_OK | os.X_OK):
                    waiting.append((entry.path, parts))
                else:
                    files.append(replace(found, refused="the folder may not be read"))
        return files

    # What follows returns the files, and the bytes that were read to list them.

    def _plain(self, path: Path, found: Found) -> tuple[list[Found], int]:
        read = partial(_read, partial(_open_ordinary, path), self.limits.file_bytes)
        return self._whole(replace(found, modified=path.lstat().st_mtime, read=read), 0)

    def _members(
        self, archive: Archive, holder: Found, depth: int, most_files: int, most: int, packed: int | None = None
    ) -> tuple[list[Found], int]:
        """The files of an archive of `packed` bytes; with None any ratio will do. Raises TooMuch."""
        limits, used = self.limits, 0
        files: list[Found] = []
        members = self._opened(archive).infolist()
        if len(members) > most_files:
            raise TooMuch(f"it holds {len(members):,} files")
        for number, info in enumerate(members):
            name = _name(info)
            parts = tuple(p for p in re.split(r"[/\\]", name) if p not in ("", "."))
            found = Found(
                f"{holder.label}/{shown(name, 200)}",
                (*holder.parts, *parts),
                (*holder.archives, *(False for _ in parts)),
                modified=_time(info),
                read=partial(_read, partial(self._open_member, archive, number), limits.file_bytes),
            )
            why = _why_not(info, name, parts)
            if why:
                files.append(replace(found, refused=why))
            elif any(JUNK.fullmatch(part) for part in parts):
                files.append(replace(found, ignored=LEFT_BEHIND))
            elif parts and not name.endswith(("/", "\\")):
                listed, size = self._whole(found, depth)
                files += listed
                used = _sum(used, size, most)
                if packed is not None and used > max(limits.ratio_from, limits.ratio * packed):
                    raise TooMuch(f"it unpacks to more than {limits.ratio} times its size")
        return files, used

    def _open_member(self, archive: Archive, number: int) -> IO[bytes]:
        opened = self._opened(archive)
        return opened.open(opened.infolist()[number])

    def _whole(self, found: Found, depth: int) -> tuple[list[Found], int]:
        """The file itself, or the files in it when it is a zip archive."""
        limits = self.limits
        try:
            data = found.read()
        except TooMuch as error:
            return [replace(found, refused=str(error))], error.size
        found, size = replace(found, digest=hashlib.sha256(data).hexdigest()), len(data)
        if not found.parts[-1].lower().endswith(".zip"):
            strange = OTHER_ARCHIVES.fullmatch(found.parts[-1])
            return [replace(found, note="an archive of this kind is not opened" if strange else "")], size
        if depth >= limits.depth:
            return [replace(found, refused=f"archives lie inside each other, more than {limits.depth} deep")], size
        holder = replace(found, archives=(*found.archives[:-1], True))
        try:
            files, inside = self._members(found.read, holder, depth + 1, limits.inner_files, limits.inner_bytes, size)
        except TooMuch as error:
            return [replace(found, refused=str(error))], size  # what it held does not count for those around it
        except DAMAGED:
            return [replace(found, note="it is no zip archive that can be read; it is kept as it is")], size
        return files, size + inside


def _opened(archive: Archive) -> zipfile.ZipFile:
    return zipfile.ZipFile(archive if isinstance(archive, Path) else io.BytesIO(archive()))


def _sum(used: int, size: int, most: int) -> int:
    if used + size > most:
        raise TooMuch(f"it holds more than {most // MIB:,} MB")
    return used + size


def _open_ordinary(path: Path) -> IO[bytes]:
    """No links and no pipes, not even when the file was exchanged since it was listed."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
        return file
    file.close()
    ordinary = stat.S_ISREG(status.st_mode)
    raise TooMuch(
        "it is a hard link: the same file has another name elsewhere" if ordinary else "it is no ordinary file"
    )


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
        raise TooMuch(_cannot(error), length) from error
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
    if "\0" in name:
        return "its name holds a NUL character"
    if name.startswith(("/", "\\")) or re.match(r"[A-Za-z]:[\\/]", name):
        return "its path is absolute"
    if ".." in parts:
        return "its path leads out of the archive"
    if len(parts) > 40 or len(name) > 4_000:
        return "its path is endless"
    if kind == stat.S_IFLNK:
        return "it is a symbolic link"
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "it is no ordinary file"
    if info.flag_bits & 0x1:
        return "it is encrypted"
    # The others are rare, and can ask for gigabytes of memory before the first byte comes out.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        return "it is packed in an unusual way"
    return ""


def _time(info: zipfile.ZipInfo) -> float:
    try:
        return datetime(*info.date_time).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _cannot(error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"it cannot be read ({shown(said, 100)})"
