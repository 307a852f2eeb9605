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
        f'<div class="side-by-side"><svg viewBox="-52 -18 {size + 56} {size + 58}" role="img" '
        f'aria-label="a mask, who may look at whom: {escape(seen)}">{"".join(parts)}</svg></div>'
    )


STILL: dict[str, Callable[[dict[str, Any]], str]] = {"figure-mask.js": mask}
