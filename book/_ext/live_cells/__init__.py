"""Sphinx extension: a chapter's code cells run in the reader's browser.

Chapters stay plain MyST. On every page with code cells this extension finds out, without running anything,
which cells can run on Pyodide (Python for browsers) and gives those Run, Edit, Reset and Stop; the others
say which package they need and offer the page's notebook (made by ``clean_downloads``). Only pages with such
cells load the script, and that loads Python, its worker and the editor when they are first asked for.

Settings, under ``sphinx: config:`` in _config.yml:

``pyodide_url``
    The folder with Pyodide: an address, or a folder inside ``book/``, which is then put on the site
    (``make pyodide`` fills one).
``live_cells_packages``
    What cells may import beside Python's own library.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

import nbformat
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx.transforms.post_transforms import SphinxPostTransform

from .markup import add_nodes, live_bar, live_data, live_hint, live_need
from .needs import dependencies, lacking, only_for_the_book, packages, without_drawing

SITE = Path(__file__).parent / "site"
STYLE, SCRIPT = "live-cells.css", "live-cells.js"
# what the script loads later, and the name under which it asks for it
LOADED_LATER = {
    "worker": "live-worker.js",
    "runner": "live_runner.py",
    "figures": "live_figures.py",
    "editor": "live-editor.js",
}
CALLED = {"torch": "PyTorch", "sklearn": "scikit-learn"}  # how people call what is imported under another name


def version(file: str) -> str:
    """Changes with the file, so that no browser goes on with an old one."""
    return f"{crc32((SITE / file).read_bytes()):08x}"


class MakeLive(SphinxPostTransform):
    """Add the buttons to a page's cells, after MyST-NB has folded what is hidden (priority 199)."""

    default_priority = 250
    formats = ("html",)

    def run(self, **kwargs: Any) -> None:
        executed = Path(self.app.outdir).parent / "jupyter_execute" / f"{self.env.docname}.ipynb"
        if not executed.is_file():
            return
        notebook = nbformat.read(executed, as_version=4)
        code = {n: cell for n, cell in enumerate(notebook.cells) if cell.cell_type == "code"}
        available = set(self.config.live_cells_packages)
        sources = [cell.source for cell in code.values()]
        needs = dict(zip(code, lacking(sources, available, Path(self.app.srcdir)), strict=True))
        shown = {
            container["cell_index"]: source
            for container in self.document.findall(nodes.container)
            if container.get("nb_element") == "cell_code"
            for source in container.findall(nodes.container)
            if source.get("nb_element") == "cell_code_source"
        }
        cells: list[dict[str, Any]] = []
        run: list[str] = []  # the code of each
        said: set[frozenset[str]] = set()
        number = 0
        for index, cell in code.items():
            below, tags = shown.get(index), cell.metadata.get("tags", [])
            if needs[index]:
                if below is not None:
                    again = frozenset(needs[index]) in said
                    self._place(below, self._need(needs[index], again))
                    said.add(frozenset(needs[index]))
                continue
            if only_for_the_book(cell.source):
                continue
            if below is None or "setup" in tags:
                for source in without_drawing(cell.source) if "setup" in tags else [cell.source]:
                    if source:
                        # what it imports on a condition, it can do without
                        imports = "; ".join(f"import {name}" for name in sorted(packages(source)))
                        cells.append({"code": source, "imports": imports})
                        run.append(source)
                continue
            number += 1
            if number == 1:
                self._place_first(below, live_hint())
            self._place(below, live_bar(number=number, position=len(cells)))
            cells.append({"number": number})
            run.append(cell.source)
        for cell, earlier, names in zip(cells, *dependencies(run), strict=True):
            cell |= {"needs": sorted(earlier), "binds": sorted(names)}
        if number:
            self.document.append(live_data(page=self._page(cells)))

    def _page(self, cells: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "pyodide": self.config.pyodide_url,
            "notebook": self._notebook(),
            "files": {name: f"{file}?v={version(file)}" for name, file in LOADED_LATER.items()},
            "cells": cells,
        }

    def _notebook(self) -> str:
        return "../" * self.env.docname.count("/") + f"_sources/{self.env.docname}.ipynb"

    def _need(self, needs: set[str], again: bool) -> live_need:
        *others, last = sorted(CALLED.get(name, name) for name in needs)
        called = f"{', '.join(others)} and {last}" if others else last
        return live_need(needs=called, notebook=self._notebook(), again=again)

    @staticmethod
    def _place(source: nodes.container, new: nodes.Element) -> None:
        """Put ``new`` after the code, and outside the fold if only the code is folded away."""
        spot = source
        if source.parent.get("nb_element") != "cell_code" and len(source.parent) == 1:
            spot = source.parent
        spot.parent.insert(spot.parent.index(spot) + 1, new)

    @staticmethod
    def _place_first(source: nodes.container, new: nodes.Element) -> None:
        cell = source
        while cell.get("nb_element") != "cell_code":
            cell = cell.parent
        cell.parent.insert(cell.parent.index(cell), new)


def offer_files(app: Sphinx) -> None:
    # not in _static: Jupyter Book loads every script it finds there on every page
    app.config.html_static_path.append(str(SITE))


def load_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the pages that have live cells load the style and the script, and no other page."""
    if doctree is not None and next(doctree.findall(live_data), None) is not None:
        app.add_css_file(STYLE)
        app.add_js_file(SCRIPT, loading_method="defer")
    elif doctree is not None and next(doctree.findall(live_need), None) is not None:
        app.add_css_file(STYLE)


def own_pyodide(app: Sphinx) -> Path | None:
    """The folder of a site's own Pyodide, or None where it comes from elsewhere. Raises ConfigError."""
    if "//" in app.config.pyodide_url:
        return None
    folder = Path(app.srcdir, app.config.pyodide_url)
    if not (folder / "pyodide.js").is_file():
        raise ConfigError(
            f"pyodide_url in _config.yml names {app.config.pyodide_url!r}, but {folder} holds no pyodide.js: "
            "fill it with `make pyodide DIST=...`, or give the address of a copy on the network"
        )
    return folder


def check_settings(app: Sphinx, config: Config) -> None:
    if not config.pyodide_url.endswith("/"):
        config.pyodide_url += "/"
    own_pyodide(app)


def copy_pyodide(app: Sphinx, exception: Exception | None) -> None:
    """Put the site's own Pyodide beside the pages, copying what is not there yet."""
    folder = own_pyodide(app)
    if exception or folder is None or app.builder.format != "html":
        return
    target = Path(app.outdir, app.config.pyodide_url)
    target.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        copy = target / file.name
        if not copy.is_file() or copy.stat().st_mtime < file.stat().st_mtime:
            shutil.copy2(file, copy)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("pyodide_url", "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/", "html", (str,))
    # not to be set by hand: Sphinx writes the pages anew, and copies the files again, when one of them has changed
    versions = [version(file) for file in (STYLE, SCRIPT, *LOADED_LATER.values())]
    app.add_config_value("live_cells_versions", versions, "html", (list,))
    app.add_config_value("live_cells_packages", ["numpy", "matplotlib"], "html", (list,))
    add_nodes(app)
    app.add_post_transform(MakeLive)
    app.connect("config-inited", check_settings)
    app.connect("builder-inited", offer_files)
    app.connect("html-page-context", load_script)
    app.connect("build-finished", copy_pyodide)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
