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


def state(start: dict[str, Any]) -> str:
    """The pairs as they are at first, and what a sum of them answers for each key: the mean so far."""
    left, each, middle, unit, names = 26, 26, 104, 28, start["names"]  # as in the module
    far = left + each * (len(start["keys"]) - 0.5) + 14
    parts = [f'<path d="M{left} {middle}H{far}" stroke="currentColor" stroke-opacity="0.3"/>']
    for value in (-3, 0, 3):
        number = str(value).replace("-", "−")
        parts.append(f'<text x="{left - 6}" y="{middle - unit * value + 4}" text-anchor="end">{number}</text>')
    dots, said = [], []
    for key, (name, dash) in enumerate(zip(names, ("none", "7 3", "2 3"), strict=True)):
        ink, total, line = f"var(--figure-{key + 1})", 0.0, ""
        pairs = [(at, value) for at, value in enumerate(start["values"]) if start["keys"][at] == key]
        for count, (at, value) in enumerate(pairs, start=1):
            x, y, total = left + each * (at + 0.5), middle - unit * value, total + value
            line += f"{'H' if line else 'M'}{x}{'V' if line else ' '}{middle - unit * total / count}"
            dots.append(f'<circle cx="{x}" cy="{y}" r="8.5" fill="var(--pst-color-background)" stroke="{ink}"/>')
            dots.append(f'<text x="{x}" y="{y + 4}" text-anchor="middle">{escape(name)}</text>')
        parts.append(f'<path d="{line}H{far}" fill="none" stroke="{ink}" stroke-width="2" stroke-dasharray="{dash}"/>')
        mean = f"{total / len(pairs):.2f}".replace("-", "−")
        parts.append(f'<text x="{far + 5}" y="{middle - unit * total / len(pairs) + 4}">{escape(name)} {mean}</text>')
        said.append(f"{name} {mean}")
    words = escape(f"values of {len(start['keys'])} pairs in their order; their sum answers {', '.join(said)}")
    drawing = "".join(parts + dots)
    return f'<svg viewBox="0 0 {far + 58} {2 * middle + 14}" role="img" aria-label="{words}">{drawing}</svg>'


def split(start: dict[str, Any]) -> str:
    """A row of numbers for each token, and what heads get of them: cut as it should be, and by a bare reshape."""
    tokens, heads, width = start["tokens"], start["heads"], start["width"]
    side, first, gap = 20, 28, 10  # as in the module
    group = heads * width * side + (heads - 1) * gap
    top, far = tokens * first + 42, 2 * group + 40
    parts = []

    def put(token: int, x: float, y: float, side: int = side) -> None:
        ink = f'fill="var(--figure-{token % 5 + 1})" fill-opacity="0.15" stroke="currentColor" stroke-width="0.5"'
        parts.append(f'<rect x="{x + 1}" y="{y + 1}" width="{side - 2}" height="{side - 2}" rx="2" {ink}/>')
        parts.append(f'<text x="{x + side / 2}" y="{y + side / 2 + 4}" text-anchor="middle">{token}</text>')

    for x, y, words in (
        (far / 2, -7, "before: a row for each token"),
        (group / 2, top - 7, "right: cut, then move"),
        (far - group / 2, top - 7, "wrong: a bare reshape"),
    ):
        parts.append(f'<text x="{x}" y="{y}" text-anchor="middle">{words}</text>')
    for flat in range(tokens * heads * width):
        token, column = divmod(flat, heads * width)
        put(token, (far - heads * width * first) / 2 + column * first, token * first, first)
        for left, head, row in (
            (0, column // width, token),
            (group + 40, flat // (tokens * width), flat // width % tokens),
        ):
            put(token, left + head * (width * side + gap) + column % width * side, top + row * side)
    said = f"{tokens} tokens cut into {heads} heads: cut right each has all tokens, by a bare reshape not"
    box = f"-2 -20 {far + 4} {top + tokens * side + 24}"
    return f'<svg viewBox="{box}" role="img" aria-label="{said}">{"".join(parts)}</svg>'


STILL: dict[str, Callable[[dict[str, Any]], str]] = {
    "figure-cache.js": cache,
    "figure-mask.js": mask,
    "figure-split.js": split,
    "figure-state.js": state,
}
