"""Words for people: names and texts that others chose, made safe to stand in one of our sentences."""

from __future__ import annotations


def shown(name: object, limit: int = 80) -> str:
    """A name chosen by a student, safe to put in a sentence: printable, on one line, not endless."""
    text = "".join(c if c.isprintable() else "?" for c in str(name))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown_text(value: object, limit: int = 2000) -> str:
    """A student's words in one of our sentences: one line of limited length, so that they cannot pass for more."""
    return " ".join(str(value)[:limit].split())


def plural(count: int, one: str, several: str = "") -> str:
    """`1 page`, `3 pages`; `several` where it is not `one` with an s."""
    return f"{count} {one if count == 1 else several or one + 's'}"
