"""CSV files from and for learning systems: read in any encoding and separator, written safe for spreadsheets."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.course import CourseError
from autograder.text import shown

SEPARATORS = ",;\t"
FORMULA_STARTS = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # also in the full width that East Asian programs take
UNSEEN = re.compile(r"\A[\s\x00-\x1f\x7f\u200b-\u200f\u2060\ufeff]+")
# Where a spreadsheet cuts at semicolons, as in much of Europe, or at tabs, quotation marks hold no cell together.
INNER = re.compile(r"([;\t\r\n][\s\x00-\x1f\x7f\u200b-\u200f\u2060\ufeff\"]*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])")
Cell = str | float | int | bool | None


@dataclass
class Table:
    """The file's name, a header and rows of the same length; `lines`: the line of the file on which each row ends."""

    name: str
    header: list[str]
    rows: list[list[str]]
    lines: list[int]

    def column(self, *names: str) -> int | None:
        """The place of the first of these names that the header has (case, spaces and punctuation do not count)."""
        plain = [plain_title(title) for title in self.header]
        return next((plain.index(plain_title(name)) for name in names if plain_title(name) in plain), None)

    def error(self, what: str) -> CourseError:
        """The error for a file that lacks a column."""
        titles = ", ".join(repr(title) for title in self.header)
        return CourseError(f"{self.name} {what}; its columns are {shown(titles, 300)}")


def plain_title(title: str) -> str:
    return re.sub(r"[\W_]+", "", title).casefold()


def read_table(path: Path) -> Table:
    """A CSV file with a header, in any usual encoding, with commas, semicolons or tabs. Raises CourseError, OSError."""
    text = _decoded(path.read_bytes())
    separator = max(SEPARATORS, key=text.split("\n", 1)[0].count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    rows, lines = [], []
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                rows.append([cell.strip() for cell in row])
                lines.append(reader.line_num)
    except csv.Error as error:
        raise CourseError(f"{path.name} is no CSV file: line {reader.line_num}: {error}") from error
    if not rows or len(rows[0]) < 2 or "\0" in text:
        raise CourseError(f"{path.name} is no CSV file with a header and columns")
    width = len(rows[0])
    return Table(path.name, rows[0], [(row + [""] * width)[:width] for row in rows[1:]], lines[1:])


def _decoded(data: bytes) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):  # what Excel calls Unicode text
        return data.decode("utf-16", "replace")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def guarded(cell: Cell) -> str:
    """The text of a cell; what a spreadsheet would run as a formula, or a part of it, gets an apostrophe before it."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, (int, float)):
        return f"{cell:.10g}"
    text = cell.encode("utf-8", "replace").decode("utf-8").replace("\0", "")
    text = INNER.sub(r"\1'", text)
    risky = text[:1] in ("\t", "\r", "\n") or UNSEEN.sub("", text)[:1] in FORMULA_STARTS
    # A lone dash is Moodle's empty grade, and no formula.
    return f"'{text}" if text and risky and text != "-" else text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """The table as CSV with commas, every cell guarded."""
    lines = []
    for row in (header, *rows):
        out = io.StringIO()
        # With this end of line a carriage return in a cell is quoted; it would begin a new row, so a formula, else.
        csv.writer(out, lineterminator="\r\n").writerow([guarded(cell) for cell in row])
        lines.append(out.getvalue().removesuffix("\r\n") + "\n")
    return "".join(lines)
