"""Matplotlib backend of the live cells: figures become PNG pictures below the cell.

Chosen by its name in MPLBACKEND (``module://live_figures``). The words for a picture are taken from the
figure itself, for readers who do not see it.
"""

from __future__ import annotations

import base64
import io

import live_runner
from matplotlib import pyplot
from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg


def words(figure) -> str:
    """Say what the figure holds: its axes with their titles, labels and number of lines."""
    parts = []
    for axes in figure.axes:
        if axes.get_label() == "<colorbar>":
            parts.append(f"a colour bar {axes.get_ylabel() or axes.get_xlabel()}".rstrip())
            continue
        said = [f"“{axes.get_title()}”"] if axes.get_title() else []
        said += [
            f"{name} axis {label}" for name, label in (("x", axes.get_xlabel()), ("y", axes.get_ylabel())) if label
        ]
        lines = len(axes.get_lines())
        said += [f"{lines} line{'s' if lines > 1 else ''}"] if lines else []
        said += ["a coloured table"] if axes.images else []
        parts.append("axes: " + ", ".join(said) if said else "axes without labels")
    return "; ".join(parts) or "an empty figure"


def show() -> None:
    """Show all open figures below the cell and close them, as Jupyter does."""
    try:
        for manager in Gcf.get_all_fig_managers():
            figure, png = manager.canvas.figure, io.BytesIO()
            figure.savefig(png, format="png", dpi=2 * figure.dpi, bbox_inches="tight")
            data = png.getvalue()
            width = int.from_bytes(data[16:20], "big") / 2  # from the PNG's header; two dots to a CSS pixel
            live_runner.budget.picture(base64.b64encode(data).decode(), words(figure), width)
    finally:
        pyplot.close("all")


class FigureManager(FigureManagerBase):
    """What plt.show() asks."""

    @classmethod
    def pyplot_show(cls, *, block=None) -> None:
        show()


class FigureCanvas(FigureCanvasAgg):
    manager_class = FigureManager
