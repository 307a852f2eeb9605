"""What live cells add to a page, and the HTML it becomes; other formats leave it out."""

from __future__ import annotations

import json
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


class live_bar(nodes.General, nodes.Element):
    """The buttons of a live cell. No text nodes: the words on buttons are not for the search index."""


class live_need(nodes.General, nodes.Element):
    """One line under a cell that cannot run in the browser."""


class live_hint(nodes.General, nodes.Element):
    """What the buttons are for, once on a page."""


class live_data(nodes.General, nodes.Element):
    """What the script has to know about the page's cells."""


def visit_bar(self: HTML5Translator, node: live_bar) -> None:
    cell = f"<span class='visually-hidden'> cell {node['number']}</span>"
    buttons = "".join(
        f"<button type='button' data-do='{what}'{' hidden' if what in ('reset', 'stop') else ''}>"
        f"{what.capitalize()}{cell}</button>"
        for what in ("run", "edit", "reset", "stop")
    )
    self.body.append(
        f"<div class='live-bar' role='group' aria-label='Cell {node['number']}' data-cell='{node['position']}'>"
        f"<span class='live-number' aria-hidden='true'>Cell {node['number']}</span>{buttons}"
        "<span class='live-state'></span></div>\n"
    )


def visit_need(self: HTML5Translator, node: live_need) -> None:
    if node["again"]:  # the page has said what that means
        self.body.append(f"<p class='live-need'>Needs {escape(node['needs'])}.</p>\n")
        return
    self.body.append(
        f"<p class='live-need'>Does not run in the browser, because it needs {escape(node['needs'])}: "
        f"<a href='{escape(node['notebook'])}' download>download this page’s notebook</a>.</p>\n"
    )


def visit_hint(self: HTML5Translator, node: live_hint) -> None:
    self.body.append(
        "<p class='live-hint'>The cells of this page run here, in your browser: press Run, or Edit first. "
        "The first Run loads Python (some 10 MB), the first figure another 10 MB; you can read on meanwhile.</p>\n"
        "<noscript><style>.live-bar, .live-hint { display: none }</style></noscript>\n"
    )


def visit_data(self: HTML5Translator, node: live_data) -> None:
    text = json.dumps(node["page"], ensure_ascii=False).replace("<", "\\u003c")
    self.body.append(f"<script type='application/json' id='live-cells-data'>{text}</script>\n")


def leave(self: HTML5Translator, node: nodes.Element) -> None:
    """All of it was written on entering."""


def skip(self: nodes.NodeVisitor, node: nodes.Element) -> None:
    raise nodes.SkipNode


def add_nodes(app: Sphinx) -> None:
    """Tell Sphinx how each of them is written."""
    for node, visit in (
        (live_bar, visit_bar),
        (live_need, visit_need),
        (live_hint, visit_hint),
        (live_data, visit_data),
    ):
        app.add_node(node, html=(visit, leave), latex=(skip, None), text=(skip, None), man=(skip, None))
