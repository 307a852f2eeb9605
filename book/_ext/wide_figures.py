"""Sphinx extension: panels that a chapter stacks for the phone stand side by side where there is room.

Chapters draw for 375 pixels: several heat maps are several rows of one figure. From such a drawing (Matplotlib's SVG,
in which each pair of axes is a group of its own) a second one with two columns is made, by moving the groups; the
page's `<picture>` lets the browser choose. A figure is left alone when its rows are of different kinds, when they share
the numbers of the last one, or when its caption speaks of what stands above or below.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup
from sphinx.application import Sphinx

# Where the text column is wide: the side bars are beside it from 992 pixels on.
ROOM = "(min-width: 700px) and (max-width: 991px), (min-width: 1200px)"
GAP, ABOVE, BELOW = 12.0, 14.0, 8.0  # points between columns, above a line of text, below it
GROUP = re.compile(r'^  <g id="([a-z]+)_\d+">\n.*?^  </g>\n', re.M | re.S)
SIZE = re.compile(r'width="([\d.]+)pt" height="([\d.]+)pt" viewBox="0 0 ([\d.]+) ([\d.]+)"')
FRAME = re.compile(r'<g id="patch_\d+">\s*<path d="M ([\d.]+) ([\d.]+) \nL ([\d.]+) [\d.]+ \nL [\d.]+ ([\d.]+) ')
TEXT = re.compile(r'<g transform="translate\(-?[\d.]+ (-?[\d.]+)\)')
PLACES = re.compile(r"\b(top|bottom|upper|lower|above|below)\b", re.I)


def rows_of(groups: list[str]) -> list[list[tuple[str, float, float]]]:
    """The groups of axes that stand side by side, as (group, top, bottom) of their frames, from the top down."""
    framed = []
    for group in groups:
        frame = FRAME.search(group)
        if frame is None:
            return []
        ends = sorted((float(frame[2]), float(frame[4])))
        framed.append((group, *ends))
    rows: list[list[tuple[str, float, float]]] = []
    for item in sorted(framed, key=lambda item: item[1]):
        if rows and item[1] < rows[-1][0][2] - 1:
            rows[-1].append(item)
        else:
            rows.append([item])
    return rows


def in_two_columns(svg: str) -> str | None:
    """The drawing with its rows in two columns, or None where that is not to be done."""
    found = list(GROUP.finditer(svg))
    size = SIZE.search(svg)
    axes = [match[0] for match in found if match[1] == "axes"]
    if size is None or len(axes) < 2 or {match[1] for match in found} != {"patch", "axes"}:
        return None
    width, height = float(size[3]), float(size[4])
    rows = rows_of(axes)
    if len(rows) < 2 or height < 1.15 * width:
        return None
    frames = [row[0][2] - row[0][1] for row in rows]
    if max(frames) > 1.2 * min(frames) or len({len(row) for row in rows}) > 1:
        return None
    extents, labels = [], []
    for row in rows:
        baselines = [float(y) for group, _, _ in row for y in TEXT.findall(group)]
        top = min([row[0][1], *(y - ABOVE for y in baselines)])
        bottom = max([row[0][2], *(y + BELOW for y in baselines)])
        labels.append(max(baselines, default=0.0) - row[0][2])
        extents.append((max(0.0, top), min(height, bottom)))
    if max(labels) - min(labels) > 5 or any(one[1] - other[0] > ABOVE for one, other in pairwise(extents)):
        return None  # the last row has the numbers for all, or rows reach into each other
    tall = max(bottom - top for top, bottom in extents)
    moved = []
    for number, (row, (top, _)) in enumerate(zip(rows, extents, strict=True)):
        right, down = number % 2 * (width + GAP), number // 2 * (tall + GAP) - top
        inside = "".join(group for group, _, _ in row)
        moved.append(f'  <g transform="translate({right:.2f} {down:.2f})">\n{inside}  </g>\n')
    whole = (2 * width + GAP, (len(rows) + 1) // 2 * (tall + GAP) - GAP)
    box = f'width="{whole[0]:.2f}pt" height="{whole[1]:.2f}pt" viewBox="0 0 {whole[0]:.2f} {whole[1]:.2f}"'
    start, end = found[0].start(), found[-1].end()
    return SIZE.sub(box, svg[:start], count=1) + "".join(moved) + svg[end:]


def offer_wide(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Give each stacked figure of the page its second form."""
    body = context.get("body")
    if app.builder.format != "html" or doctree is None or not body or "cell_output" not in body:
        return
    sources = {name: Path(app.srcdir, path) for path, name in app.builder.images.items()}
    page = BeautifulSoup(body, "html.parser")
    for image in page.select("div.cell_output img[src$='.svg']"):
        source = sources.get(image["src"].rsplit("/", 1)[-1])
        caption = image.find_next_sibling("figcaption")
        if source is None or (caption and PLACES.search(caption.get_text())):
            continue
        wide = in_two_columns(source.read_text(encoding="utf-8"))
        if wide is None:
            continue
        target = Path(app.outdir, app.builder.imagedir, f"{source.stem}-wide.svg")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(wide, encoding="utf-8")
        picture = image.wrap(page.new_tag("picture"))
        srcset = image["src"].removesuffix(".svg") + "-wide.svg"
        picture.insert(0, page.new_tag("source", attrs={"media": ROOM, "srcset": srcset}))
    context["body"] = str(page)


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", offer_wide, priority=560)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
