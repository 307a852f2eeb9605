"""Pictures that checks put into the feedback, drawn in the grader process from numbers alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

MARKED = 0.5  # cells darker than this take light numbers


def attention_beside(weights: np.ndarray, wanted: np.ndarray, tokens: Sequence[str], title: str = "") -> Figure:
    """The student's attention pattern beside the wanted one, with one colour scale from 0 to 1.

    weights: (T, T), row = query. wanted: Boolean (T, T), True at the keys that should share the attention of a query;
    outlined in both maps, and in the right one sharing it evenly. tokens: T labels, which are numbered from 1.
    """
    size = len(tokens)
    labels = [f"{place} {token}" for place, token in enumerate(tokens, 1)]
    side = min(4.2, 1.6 + 0.42 * size)
    figure = Figure(figsize=(2 * side + 0.9, side + 0.5), layout="constrained")
    mine, theirs = figure.subplots(1, 2)
    for axes, name in ((mine, "your head"), (theirs, "wanted")):
        axes.set_title(name)
        axes.set_xticks(range(size), labels, rotation=45 if size > 6 else 0)
        axes.set_yticks(range(size), labels)
        axes.set_xlabel("key")
    mine.set_ylabel("query")
    image = mine.imshow(weights, vmin=0, vmax=1, cmap="viridis_r")
    share = wanted / np.maximum(wanted.sum(axis=1, keepdims=True), 1)
    theirs.imshow(share, vmin=0, vmax=1, cmap="viridis_r")
    for query, key in np.argwhere(wanted):
        for axes in (mine, theirs):
            place = (key - 0.47, query - 0.47)
            axes.add_patch(Rectangle(place, 0.94, 0.94, fill=False, edgecolor="#d1105a", linewidth=2))
        theirs.text(key, query, "✓", ha="center", va="center", color="white" if share[query, key] > MARKED else "black")
    if size <= 8:
        for (query, key), weight in np.ndenumerate(weights):
            colour = "white" if weight > MARKED else "black"
            mine.text(key, query, f"{weight:.2f}", ha="center", va="center", color=colour, fontsize=8)
    figure.colorbar(image, ax=[mine, theirs], label="attention")
    if title:
        figure.suptitle(title, fontsize=10)
    return figure
