"""The report's plots, as SVG that stands in the page: it scales, prints, and takes its colours from the page's style.

Matplotlib draws with stand-in colours which are replaced by CSS variables afterwards, so that one drawing serves light
and dark. Fills that carry a value (the heatmap) keep fixed colours, on which dark text is readable.
"""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Sequence
from pathlib import Path

import matplotlib
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from autograder.html.sanitize import number, percent, seconds
from autograder.text import shown

_COLOURS = ("currentColor", "var(--line)", "var(--accent)", "var(--soft)", "var(--card)")
_STANDINS = {f"#0{n}0{n}0{n}": colour for n, colour in enumerate(_COLOURS, 1)}
_INK, _LINE, _ACCENT, _SOFT, _CARD = _STANDINS
_styled = matplotlib.rc_context(fname=Path(__file__).parent / "templates" / "plots.mplstyle")
HEAT = (
    *("#e9812f", "#efa066", "#f3b98d", "#f4cfb2", "#f2e3d5"),
    *("#dfe7ee", "#c0d6ea", "#9dc1e2", "#79abd9", "#5a97cf"),
)
"""Ten steps from no points (orange) to all (blue), told apart by every kind of colour sight."""
MOST_NAMED = 40  # most students whose names fit under a heatmap


def heat_step(share: float) -> int:
    """Which of the ten steps of `HEAT` a share of the points belongs to."""
    return min(len(HEAT) - 1, max(0, int(share * len(HEAT))))


@_styled
def histogram(scores: Sequence[float], points: float) -> Markup:
    """How many students have how many points: ten equal classes from nothing to everything."""
    top = max([points, *scores, 1e-9])
    counts, edges = np.histogram(scores, bins=10, range=(min([0.0, *scores]), top))
    middle = float(np.median(scores))
    figure, axes = _axes(7.2, 2.8)
    bars = axes.bar(edges[:-1], counts, np.diff(edges), align="edge", color=_ACCENT, edgecolor=_CARD, linewidth=1.5)
    axes.bar_label(bars, [str(n) if n else "" for n in counts], padding=2)
    axes.axvline(middle, color=_INK, linestyle=(0, (4, 3)), linewidth=1.2)
    axes.text(middle, 1.04, f"median {number(middle)}", transform=axes.get_xaxis_transform(), ha="center")
    axes.set(xlabel=f"score, of {number(points)} points", ylabel="students", xlim=(edges[0], top))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=10, steps=[1, 2, 5, 10]))
    _whole_numbers(axes)
    bins = zip(counts, edges[:-1], edges[1:], strict=True)
    said = ", ".join(f"{number(a)} to {number(b)} points: {n}" for n, a, b in bins if n)
    return _svg(figure, "histogram", f"Histogram of the scores: {said}")


@_styled
def heatmap(students: Sequence[str], exercises: Sequence[str], shares: np.ndarray) -> Markup:
    """Share of the points for each exercise (rows) and student (columns); `shares` (exercises, students), NaN: none."""
    n_exercises, n_students = shares.shape
    named = n_students <= MOST_NAMED
    below = 1.0 + 0.11 * max(len(shown(s, 20)) for s in students) if named else 0.9  # room for names on end
    figure, axes = _axes(9.6, 0.34 * n_exercises + below)
    steps, colours = BoundaryNorm(np.linspace(0, 1, len(HEAT) + 1), len(HEAT)), ListedColormap(HEAT)
    masked = np.ma.masked_invalid(np.clip(shares, 0, 1 - 1e-9))
    image: ScalarMappable
    if named:
        edges = (np.arange(n_students + 1) - 0.5, np.arange(n_exercises + 1) - 0.5)
        image = axes.pcolormesh(*edges, masked, cmap=colours, norm=steps, edgecolors=_CARD, linewidth=1)
        axes.set_xticks(range(n_students), [shown(s, 20) for s in students], rotation=90)
    else:
        image = axes.imshow(masked, cmap=colours, norm=steps, aspect="auto", interpolation="nearest")
    axes.set_xlabel(("student" if named else f"{n_students} students") + ", lowest score first")
    if n_students <= 20:
        for (i, j), share in np.ndenumerate(shares):
            text, colour = ("–", _SOFT) if np.isnan(share) else (f"{100 * share:.0f}", "#15181d")
            axes.text(j, i, text, ha="center", va="center", fontsize=8, color=colour)
    axes.set_yticks(range(n_exercises), [shown(e, 30) for e in exercises])
    axes.set_ylim(n_exercises - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    bar = figure.colorbar(image, ax=axes, pad=0.02, aspect=14, shrink=min(1.0, 6 / n_exercises + 0.3))
    bar.set_ticks([0, 0.2, 0.4, 0.6, 0.8, 1], labels=["0", "20", "40", "60", "80", "100"])
    bar.set_label("% of the points")
    bar.minorticks_off()
    bar.outline.set_visible(False)
    means = [None if np.isnan(row).all() else float(np.nanmean(row)) for row in shares]
    said = ", ".join(f"{label}: {percent(mean)}" for label, mean in zip(exercises, means, strict=True))
    size = f"{n_exercises} exercises by {n_students} students"
    return _svg(figure, "heatmap", f"Heatmap of {size}, sorted by score. Mean shares: {said}")


@_styled
def run_times(totals: Sequence[float]) -> Markup:
    """How long the submissions took, in seconds; on a logarithmic axis if they differ much."""
    low, high = max(min(totals), 1e-3), max(*totals, 1e-3)
    wide = high > 20 * low
    bins = np.geomspace(low, high * 1.001, 25) if wide else np.linspace(0, high * 1.05, 21)
    figure, axes = _axes(7.2, 2.4)
    axes.hist(np.maximum(totals, low), bins=bins.tolist(), color=_ACCENT, edgecolor=_CARD, linewidth=1)
    if wide:
        axes.set_xscale("log")
        ticks = [t for t in (0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000) if low <= t <= high]
        axes.set_xticks(ticks, [number(t) for t in ticks])
        axes.minorticks_off()
    axes.set(xlabel="seconds" + (", logarithmic" if wide else ""), ylabel="submissions")
    _whole_numbers(axes)
    median, last = np.quantile(totals, [0.5, 0.95])
    said = f"median {seconds(median)}, 95 % within {seconds(last)}, longest {seconds(high)}"
    return _svg(figure, "run-times", f"Histogram of the run times of {len(totals)} submissions: {said}")


@_styled
def score_strips(sets: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """The shares of the points of all students, one row of dots for each set, with the median as a bar."""
    figure, axes = _axes(9.6, 0.5 * len(sets) + 0.9)
    medians = []
    for row, (name, shares) in enumerate(sets):
        # A golden-ratio step spreads equal scores evenly and looks the same each time.
        spread = (np.arange(len(shares)) * 0.618034) % 1 * 0.5 - 0.25
        axes.scatter(np.sort(shares) * 100, row + spread, s=18, color=_ACCENT, alpha=0.6, linewidths=0)
        median = float(np.median(shares)) if shares else None
        if median is not None:
            axes.plot([100 * median] * 2, [row - 0.38, row + 0.38], color=_INK, linewidth=2.5)
        medians.append(f"{name}: {percent(median)}")
    axes.set_yticks(range(len(sets)), [shown(name, 30) for name, _ in sets])
    axes.set(xlabel="% of the points (bar: median)", xlim=(-2, 102), ylim=(len(sets) - 0.5, -0.5))
    axes.grid(axis="x", color=_LINE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0)
    return _svg(figure, "strips", f"Scores by set; medians: {', '.join(medians)}")


def _axes(width: float, height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height))
    FigureCanvasSVG(figure)
    return figure, figure.add_subplot()


def _whole_numbers(axes: Axes) -> None:
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.set_ylim(0, max(1, math.ceil(axes.get_ylim()[1])))


def _svg(figure: Figure, name: str, alt: str) -> Markup:
    """The drawing as an `svg` element: no prologue or metadata, ids of its own, colours from the page.

    `alt` says what it shows, for those who do not see it.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    # With a salt, equal results give equal pages; with one of its own, no id is another drawing's.
    with matplotlib.rc_context({"svg.hashsalt": name}), warnings.catch_warnings():
        # A name in a script that Matplotlib's font lacks is drawn by the browser, which has others.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure.savefig(buffer, format="svg", metadata=nothing)
    text = re.sub(r"\s*<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
    text = re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", text)  # names of parts, to which nothing refers
    for standin, colour in _STANDINS.items():
        text = text.replace(standin, colour)
    ((width, height),) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text)
    head = (
        f'<svg class="plot" role="img" aria-label="{escape(alt)}" viewBox="0 0 {width} {height}" '
        f'style="max-width: {float(width) * 1.25:.0f}px" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return Markup(head + text[text.index(">", text.index("<svg")) + 1 :].strip())
