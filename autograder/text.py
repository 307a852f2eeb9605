"""Words for people: names and texts that others chose, made safe to stand in one of our sentences."""

from __future__ import annotations

import re

# Controls, lone surrogates (which cannot be written as UTF-8) and characters that reorder the text around them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """`text` without characters that no page and no terminal should get, or that disguise what is written."""
    return _UNPRINTABLE.sub("\ufffd", text)


def shown(name: object, limit: int = 80) -> str:
    """A name chosen by a student, safe to put in a sentence: printable, on one line, not endless."""
    text = str(name)
    text = text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def shown_text(value: object, limit: int = 2000) -> str:
    """Words of any length, perhaps a student's, as `shown`: one line, so that they cannot pass for more."""
    return shown(" ".join(str(value)[: limit + 1].split()), limit)


def plural(count: int, one: str, several: str = "") -> str:
    """`1 page`, `3 pages`; `several` where it is not `one` with an s."""
    return f"{count} {one if count == 1 else several or one + 's'}"
