"""Still forms of live figures that no cell of a chapter draws: for readers without JavaScript."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

CELL = 26  # pixels, as in the module


def mask(start: dict[str, Any]) -> str:
    """The mask as it is at first: a row per query, a dark cell where it may look."""
    names, size = start["names"], CELL * len(start["names"])
    parts = [f'<text x="{size / 2}" y="-6" text-anchor="middle">may look at</text>']
    for place, name in enumerate(names):
        middle = CELL * place + CELL / 2 + 4
        parts.append(f'<text x="-5" y="{middle}" text-anchor="end">{escape(name)}</text>')
        parts.append(
            f'<text x="{-size - 6}" y="{middle}" text-anchor="end" transform="rotate(-90)">{escape(name)}</text>'
        )
    for row, line in enumerate(start["mask"]):
        for column, allowed in enumerate(line):
            parts.append(
                f'<rect x="{CELL * column + 1}" y="{CELL * row + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="3" '
                f'fill="var(--figure-1)" fill-opacity="{0.85 if allowed else 0.05}" stroke="currentColor" '
                'stroke-opacity="0.5"/>'
            )
    seen = "; ".join(
        f"{name}: {', '.join(other for other, allowed in zip(names, line, strict=True) if allowed) or 'nobody'}"
        for name, line in zip(names, start["mask"], strict=True)
    )
    return (
        f'<div class="side-by-side"><svg viewBox="-52 -18 {size + 56} {size + 66}" role="img" '
        f'aria-label="a mask, who may look at whom: {escape(seen)}">{"".join(parts)}</svg></div>'
    )


def cache(start: dict[str, Any]) -> str:
    """The cache as it is at first: a row of keys and a row of values for each group, a column per token."""
    side, gap, rows = 22, 4, 2 * start["groups"]
    parts = []
    for row in range(rows):
        letter, ink = ("V", 4) if row % 2 else ("K", 1)
        y = row * (side + gap) + row // 2 * 8
        ink_and_line = f'fill="var(--figure-{ink})" fill-opacity="0.25" stroke="currentColor" stroke-width="0.5"'
        for token in range(start["tokens"]):
            x = 70 + token * (side + gap)
            parts.append(f'<rect x="{x}" y="{y}" width="{side}" height="{side}" rx="3" {ink_and_line}/>')
            parts.append(f'<text x="{x + side / 2}" y="{y + side / 2 + 4}" text-anchor="middle">{letter}</text>')
    high = rows * (side + gap) + 8 * rows // 2
    said = f"{start['tokens']} tokens kept, as keys and values of {start['groups']} heads"
    return f'<svg viewBox="0 0 348 {high}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


STILL: dict[str, Callable[[dict[str, Any]], str]] = {"figure-cache.js": cache, "figure-mask.js": mask}
