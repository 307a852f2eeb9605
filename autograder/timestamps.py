"""When a submission came: the `timestamp.txt` beside it, as nbgrader writes and reads it."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import dateutil.parser
from nbgrader.utils import parse_utc

from autograder.files import open_ordinary
from autograder.text import shown

TIMESTAMP = "timestamp.txt"
STAMP_FORMAT = "%Y-%m-%d %H:%M:%S %Z"  # what nbgrader writes into timestamp.txt, and reads
LONGEST = 1000  # bytes of a timestamp.txt that are looked at

NO_DATE = (ValueError, OverflowError, TypeError, ArithmeticError, AttributeError, IndexError)
"""What dateutil raises for what is no date."""


def stamp_of(moment: datetime) -> str:
    """A time as nbgrader writes it, in UTC; a time without a zone is taken as UTC."""
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return moment.strftime(STAMP_FORMAT)


def stamp_bytes(folder: Path) -> bytes:
    """What stands in a folder's timestamp.txt, its first 1,000 bytes. Raises OSError."""
    with open_ordinary(folder / TIMESTAMP) as file:
        return file.read(LONGEST)


def read_timestamp(folder: Path) -> tuple[datetime | None, str]:
    """When a submission came, in UTC without a zone, from its timestamp.txt; or None, and a remark where it is bad."""
    if not os.path.lexists(folder / TIMESTAMP):
        return None, ""
    try:
        return moment_in(stamp_bytes(folder).decode("utf-8-sig").strip())
    except (OSError, UnicodeDecodeError):
        return None, f"{TIMESTAMP} cannot be read; the submission counts as in time"


def moment_in(words: str) -> tuple[datetime | None, str]:
    """The same for the words of a timestamp.txt."""
    if not words:
        return None, f"{TIMESTAMP} is empty; the submission counts as in time"
    try:
        # nbgrader reads the zone in "… +0100" as a hundred seconds.
        offset = re.fullmatch(r"\S+ \S+ [+-]\d\d:?\d\d", words)
        moment: datetime = parse_utc(dateutil.parser.parse(words) if offset else words)
    except NO_DATE:
        return None, f"{TIMESTAMP} holds no date ('{shown(words, 40)}'); the submission counts as in time"
    return moment, ""
