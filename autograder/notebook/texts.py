"""How the texts of a submission and of its set are compared."""

from __future__ import annotations

from rapidfuzz import fuzz

ALIKE = 90  # per cent of characters in common: a given cell with a slip in it


def bare(text: str) -> str:
    """The text without blank lines and trailing blanks: what counts when texts are compared."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def lined(text: str) -> str:
    """The text without trailing blanks, between newlines: whole lines can be searched in it."""
    return "\n" + "\n".join(line.rstrip() for line in text.split("\n")) + "\n"


def cut(text: str, block: str) -> str | None:
    """`text` without the lines of `block`, or None where they do not stand in it one after the other."""
    lines = lined(text)
    return lines.replace(block, "\n", 1).strip("\n") if block.strip() and block in lines else None


def similar(text: str, given: str) -> bool:
    # The lengths first: a text of megabytes is not to be compared character by character.
    return len(given) / 2 <= len(text) <= len(given) * 2 and fuzz.ratio(text, given) >= ALIKE


def without_fence(text: str) -> str:
    """Code that was put into a Markdown cell, without its ``` lines."""
    lines = text.strip().split("\n")
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
