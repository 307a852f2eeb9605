"""Files, read and written with care: names from elsewhere, things that are no files, kills at any moment."""

from __future__ import annotations

import errno
import os
import re
import stat
import tempfile
from pathlib import Path
from typing import BinaryIO

# separators, control characters, half characters, and what is not seen: two names that look the same are the same
UNSAFE = re.compile(
    "[/\\\\\x00-\x1f\x7f-\x9f\ud800-\udfff\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff]"
)


class NotOrdinary(OSError):
    """A folder, a named pipe or a device stands where a file should be."""


def is_safe_name(name: str) -> bool:
    """Whether a student's or a set's name can be one component of a path and is what it looks like."""
    has_room = 0 < len(name.encode("utf-8", "replace")) <= 200
    return has_room and not name.startswith(".") and not UNSAFE.search(name)


def open_ordinary(path: Path, flags: int = 0) -> BinaryIO:
    """A file open for reading, with more `flags` of `os.open`; no pipe is waited for. Raises NotOrdinary, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotOrdinary(errno.EINVAL, "not an ordinary file", str(path))
    return os.fdopen(descriptor, "rb")


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a kill at any moment, sees the old one or the new one. Raises OSError."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".part-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_changed(path: Path, data: bytes) -> None:
    """`write_atomically`, except where the file holds just this already: it keeps its time. Raises OSError."""
    if not (path.is_file() and path.read_bytes() == data):
        write_atomically(path, data)
