"""Which sections of the book treat an exercise, as the page of its set in the book says.

That page has a line for each exercise (`{set-exercises}`), whose references lead to the sections. The book lies beside
the folder of the sets; where there is none, no exercise has a section.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

MOST = 2  # of one exercise

_LINES = re.compile(r"^```\{set-exercises\}[^\n]*\n(.*?)^```", re.M | re.S)
_REFERENCE = re.compile(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`")
_LABELLED = re.compile(r"^\(([\w-]+)\)=\s*\n#{1,6} +(.+?)\s*$", re.M)
_ADDRESS = re.compile(r"^ +baseurl: *[\"']?(https?://[^\s\"'#]+)", re.M)  # in the settings of the book
_TITLE = re.compile(r"^# +(.+?)\s*$", re.M)


@dataclass(frozen=True)
class Section:
    """A section of the book. `address` is "" where the book has none of its own."""

    title: str
    chapter: str
    address: str = ""


def sections_of(name: str, sets: Path) -> dict[int, list[Section]]:
    """Sections by the exercise's number, for the set of this name in the folder `sets`. Raises OSError."""
    book, config = sets.resolve().parent / "book", sets.resolve().parent / "_config.yml"
    page = book / f"{name}.md"
    if not page.is_file():
        return {}
    lines = _LINES.search(_text(page))
    address = _ADDRESS.search(_text(config)) if config.is_file() else None
    known: dict[str, Section] = {}
    for chapter in sorted(book.glob("*.md")):
        text = _text(chapter)
        title = _TITLE.search(text)
        for label, heading in _LABELLED.findall(text):
            where = f"{address[1].rstrip('/')}/{chapter.stem}.html#{label}" if address else ""
            known[label] = Section(heading, title[1] if title else chapter.stem, where)
    found = {}
    for line in re.split(r"^(?=\d+:)", lines[1] if lines else "", flags=re.M):
        number, _, text = line.partition(":")
        labels = dict.fromkeys(label for label in _REFERENCE.findall(text) if label in known)
        if number.strip().isdigit() and labels:
            found[int(number)] = [known[label] for label in labels][:MOST]
    return found


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
