"""A rubric that is a list in the source, and its points, given or not, as they stand in a marker's comment."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import isclose

_ITEM = re.compile(r"^[-*] \*\*([0-9.]+) points?\*\*:?(.*?)(?=^[-*] |\n\s*\n|\Z)", re.S | re.M)
_LINE = re.compile(r"- \*\*(Given|Not given)\*\* \([0-9.]+ points?\): (.+)")


@dataclass(frozen=True)
class Item:
    """One point of a rubric, given or not: how much it is worth, and its words."""

    points: float
    text: str


def rubric_items(text: str, points: float) -> list[Item]:
    """The list below `**Rubric**` in what a source says to a question; [] where there is none worth its `points`."""
    _, _, rubric = text.partition("**Rubric**")
    items = [Item(float(worth), " ".join(words.split())) for worth, words in _ITEM.findall(rubric)]
    return items if isclose(sum(item.points for item in items), points) else []


def with_rubric(items: Sequence[Item], given: Collection[int], comment: str) -> str:
    """The comment below a line for each point of the rubric; `given` are the places of those that were given."""
    lines = [
        f"- **{'Given' if n in given else 'Not given'}** "
        f"({item.points:g} {'point' if item.points == 1 else 'points'}): {item.text}"
        for n, item in enumerate(items)
    ]
    return "\n".join(lines) + (f"\n\n{comment}" if comment else "")


def without_rubric(comment: str) -> tuple[dict[str, bool], str]:
    """By its words, whether each point of a rubric was given, as the comment begins; and the rest of the comment."""
    said: dict[str, bool] = {}
    lines = comment.split("\n")
    while lines and (found := _LINE.fullmatch(lines[0])):
        said[found[2]] = found[1] == "Given"
        del lines[0]
    return said, "\n".join(lines).strip() if said else comment
