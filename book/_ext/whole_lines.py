"""Sphinx extension: printed lines stay whole.

A kernel sends what a cell prints in pieces, and where a piece ends in the middle of a line depends on the clock.
MyST-NB puts a line break between the pieces when it merges them (``nb_merge_streams``), so a page would differ from
build to build. Here pieces that follow each other are joined first, as they are.
"""

from __future__ import annotations

from copy import copy
from typing import Any

from myst_nb.core import render
from sphinx.application import Sphinx

merged = render.coalesce_streams


def merged_whole(outputs: list[Any]) -> list[Any]:
    """Outputs of a cell with each stream in one piece, for MyST-NB's own function to finish."""
    joined: list[Any] = []
    for output in outputs:
        last = joined[-1] if joined else {}
        if output["output_type"] == "stream" == last.get("output_type") and output["name"] == last["name"]:
            last["text"] += output["text"]
        else:
            joined.append(copy(output))
    return merged(joined)


def setup(app: Sphinx) -> dict:
    render.coalesce_streams = merged_whole
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
