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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import IO

from autograder.errors import AutograderError
from autograder.text import shown

MIB = 2**20
JUNK = re.compile(r"(?i)\..*|__macosx|thumbs\.db|desktop\.ini|__pycache__|~\$.*")
OTHER_ARCHIVES = re.compile(r"(?i).*\.(rar|7z|gz|tgz|tar|bz2|xz|zst)")
LEFT_BEHIND = "left behind by a program"
DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


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
    """More than is read; the message says what, `budget` whose limit it was (None: a single file's)."""

    def __init__(self, what: str, budget: Budget | None = None) -> None:
        super().__init__(what)
        self.budget = budget


class Budget:
    """Counts the bytes that come out of one archive of `packed` bytes, and out of the archives around it.

    With `packed` None any ratio will do.
    """

    def __init__(self, limits: ArchiveLimits, most: int, packed: int | None, outer: Budget | None = None) -> None:
        self.limits, self.most, self.packed, self.outer, self.used = limits, most, packed, outer, 0

    def take(self, count: int) -> None:
        """Raises TooMuch."""
        if self.outer:
            self.outer.take(count)
        self.used += count
        if self.used > self.most:
            raise TooMuch(f"it holds more than {self.most // MIB:,} MB", self)
        limits = self.limits
        if self.packed is not None and self.used > max(limits.ratio_from, limits.ratio * self.packed):
            raise TooMuch(f"it unpacks to more than {limits.ratio} times its size", self)

    def refund(self) -> None:
        """The archive was refused: what it held does not count for those around it."""
        outer = self.outer
        while outer:
            outer.used -= self.used
            outer = outer.outer


class Sources:
    """Opens sources; a context manager that keeps them open until all their files have been read."""

    def __init__(self, limits: ArchiveLimits | None = None) -> None:
        self.limits = limits or ArchiveLimits()
        self._open = ExitStack()
        # The last archive inside an archive at each depth: its files are read one after another.
        self._last: dict[int, tuple[object, zipfile.ZipFile]] = {}

    def __enter__(self) -> Sources:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def files(self, source: Path) -> Iterator[Found]:
        """The files of a folder, a zip archive or a lone notebook, those that are refused or ignored included.

        All or nothing: where a source turns out to hold too much, none of it is used.
        """
        try:
            yield from list(self._files(source))
        except TooMuch as error:
            yield Found(source.name, (), refused=str(error))
        except DAMAGED as error:
            yield Found(source.name, (), refused=f"it cannot be read ({_said(error)})")

    def _files(self, source: Path) -> Iterator[Found]:
        limits = self.limits
        if source.is_dir():
            yield from self._folder(source)
        elif zipfile.is_zipfile(source):
            archive = self._open.enter_context(zipfile.ZipFile(source))
            # No ratio here: the class's whole archive must not fall with one student's runaway output.
            budget = Budget(limits, limits.source_bytes, None)
            _count(archive, limits.source_files)
            yield from self._members(lambda: archive, Found(source.name, ()), budget, 1)
        elif OTHER_ARCHIVES.fullmatch(source.name) or source.suffix.lower() == ".zip":
            yield Found(source.name, (), refused="it is no zip archive that can be read; unpack it and name the folder")
        else:
            yield from self._plain(source, Found(source.name, (source.name,), (False,)), Budget(limits, 2**62, None))

    # --- folders -----------------------------------------------------------------------------------------------------

    def _folder(self, source: Path) -> Iterator[Found]:
        budget = Budget(self.limits, self.limits.source_bytes, None)
        waiting: list[tuple[str, tuple[str, ...]]] = [(str(source), ())]
        while waiting:
            place, above = waiting.pop(0)
            for entry in sorted(os.scandir(place), key=lambda e: e.name):
                name = unicodedata.normalize("NFC", os.fsencode(entry.name).decode("utf-8", "replace"))
                parts = (*above, name)
                found = Found(shown("/".join((source.name, *parts)), 300), parts, (False,) * len(parts))
                if JUNK.fullmatch(name):
                    yield replace(found, ignored=LEFT_BEHIND)
                elif entry.is_symlink():
                    yield replace(found, refused="it is a symbolic link")
                elif not entry.is_dir():
                    yield from self._plain(Path(entry.path), found, budget)
                elif os.access(entry.path, os.R_OK | os.X_OK):
                    waiting.append((entry.path, parts))
                else:
                    yield replace(found, refused="the folder may not be read")

    def _plain(self, path: Path, found: Found, budget: Budget) -> Iterator[Found]:
        def read() -> bytes:
            # No links and no pipes, not even when the file was exchanged since it was listed.
            with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    raise TooMuch("it is no ordinary file")
                if status.st_nlink > 1:
                    raise TooMuch("it is a hard link: the same file has another name elsewhere")
                return _read(file, self.limits.file_bytes)

        try:
            data = read()
        except TooMuch as error:
            yield replace(found, refused=str(error))
        except OSError as error:
            yield replace(found, refused=f"it cannot be read ({error.strerror})")
        else:
            budget.take(len(data))
            yield from self._whole(replace(found, modified=path.stat().st_mtime, read=read), data, budget, 0)

    # --- archives ----------------------------------------------------------------------------------------------------

    def _members(
        self, opened: Callable[[], zipfile.ZipFile], holder: Found, budget: Budget, depth: int
    ) -> Iterator[Found]:
        """The files of an archive. Raises TooMuch."""
        for number, info in enumerate(opened().infolist()):
            name = _name(info)
            parts = tuple(p for p in re.split(r"[/\\]", name) if p not in ("", "."))
            found = Found(
                f"{holder.label}/{shown(name, 200)}",
                (*holder.parts, *parts),
                (*holder.archives, *(False for _ in parts)),
                modified=_time(info),
                read=partial(self._member, opened, number),
            )
            why = _why_not(info, name, parts)
            if why:
                yield replace(found, refused=why)
            elif any(JUNK.fullmatch(part) for part in parts):
                yield replace(found, ignored=LEFT_BEHIND)
            elif parts and not name.endswith(("/", "\\")):
                try:
                    data = self._member(opened, number, budget)
                except TooMuch as error:
                    if error.budget:
                        raise
                    yield replace(found, refused=str(error))
                except DAMAGED as error:
                    yield replace(found, refused=f"it is damaged ({_said(error)})")
                else:
                    yield from self._whole(found, data, budget, depth)

    def _member(self, opened: Callable[[], zipfile.ZipFile], number: int, budget: Budget | None = None) -> bytes:
        archive = opened()
        with archive.open(archive.infolist()[number]) as file:
            return _read(file, self.limits.file_bytes, budget)

    def _whole(self, found: Found, data: bytes, budget: Budget, depth: int) -> Iterator[Found]:
        """The file itself, or the files in it when it is a zip archive."""
        found = replace(found, digest=hashlib.sha256(data).hexdigest())
        if not found.parts[-1].lower().endswith(".zip"):
            strange = OTHER_ARCHIVES.fullmatch(found.parts[-1])
            yield replace(found, note="an archive of this kind is not opened" if strange else "")
            return
        limits = self.limits
        if depth >= limits.depth:
            yield replace(found, refused=f"archives lie inside each other, more than {limits.depth} deep")
            return
        key, level = object(), depth + 1

        def opened() -> zipfile.ZipFile:
            if self._last.get(level, (None,))[0] is not key:
                self._last[level] = (key, zipfile.ZipFile(io.BytesIO(found.read())))
            return self._last[level][1]

        inner = Budget(limits, limits.inner_bytes, len(data), budget)
        try:
            _count(opened(), limits.inner_files)
            holder = replace(found, archives=(*found.archives[:-1], True))
            yield from list(self._members(opened, holder, inner, level))
        except TooMuch as error:
            if error.budget not in (None, inner):
                raise  # it was an archive around this one that held too much
            inner.refund()
            yield replace(found, refused=str(error))
        except DAMAGED:
            yield replace(found, note="it is no zip archive that can be read; it is kept as it is")


def _count(archive: zipfile.ZipFile, most: int) -> None:
    if len(archive.infolist()) > most:
        raise TooMuch(f"it holds {len(archive.infolist()):,} files")


def _read(file: IO[bytes], most: int, budget: Budget | None = None) -> bytes:
    """All of the file. Raises TooMuch as soon as it is longer than `most` or the budget is used up."""
    pieces = []
    length = 0
    while piece := file.read(MIB):
        length += len(piece)
        if budget:
            budget.take(len(piece))
        if length > most:
            raise TooMuch(f"it has more than {most // MIB} MB")
        pieces.append(piece)
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


def _said(error: BaseException) -> str:
    return shown(getattr(error, "strerror", None) or str(error) or type(error).__name__, 100)
