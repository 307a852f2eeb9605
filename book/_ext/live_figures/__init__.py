"""Sphinx extension: figures that a reader can take hold of.

``{live-figure} NAME`` puts the module ``modules/figure-NAME.js`` into the page. What modules share is in
``modules/shared.js`` and is written into each, so that the site's files keep to anywidget's front-end contract (one
file with ``export default { render({ model, el }) }``) and run in Jupyter through anywidget and in MyST's own
``{anywidget}`` directive too. The directive's body is what the model starts with, in JSON; ``:from:`` names more of it
that a cell has put, as JSON. It stands behind the cell that draws the figure as it is printed, and the module is loaded
when that comes into sight. Where the cell shows nothing but its drawing (``remove-input``) the module takes its place
on the screen; without JavaScript and on paper the drawing stays. A figure that no cell draws has a still form in
``still.py``.
"""

from __future__ import annotations

import ast
import json
import re
from html import escape
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from myst_nb.core.variables import RetrievalError
from myst_nb.ext.glue.utils import retrieve_glue_data
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.writers.html5 import HTML5Translator

from .still import STILL

SITE = Path(__file__).parent / "site"
MODULES = Path(__file__).parent / "modules"


class live_figure(nodes.General, nodes.Element):
    """The place of a figure: its module, what it starts with, and its name for screen readers."""


class LiveFigure(SphinxDirective):
    """``{live-figure} NAME`` with ``:label:``, what the figure is, and JSON as its body; ``:from:`` adds a cell's."""

    required_arguments = 1
    has_content = True
    option_spec: ClassVar = {"label": directives.unchanged_required, "from": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        if not (MODULES / f"figure-{name}.js").is_file():
            raise self.error(f"there is no live figure {name!r}: {MODULES} holds no figure-{name}.js")
        try:
            start = json.loads("\n".join(self.content) or "{}")
            if "from" in self.options:
                start |= json.loads(ast.literal_eval(self.put(self.options["from"])))
        except ValueError as error:
            raise self.error(f"what the live figure {name!r} starts with is no JSON: {error}") from error
        return [live_figure(module=f"figure-{name}.js", start=start, label=self.options.get("label", name))]

    def put(self, name: str) -> str:
        """What a cell of this page has put under a name, as Python writes it."""
        try:
            return str(retrieve_glue_data(self.state.document, name).data["text/plain"])
        except RetrievalError as error:
            raise self.error(f"no cell of this page has put {name!r}") from error


def visit_figure(self: HTML5Translator, node: live_figure) -> None:
    start = escape(json.dumps(node["start"], ensure_ascii=False))
    still = STILL.get(node["module"], lambda start: "")(node["start"])
    self.body.append(
        f"<div class='live-figure{' still' if still else ''}' role='group' aria-label='{escape(node['label'])}' "
        f"data-module='{node['module']}' data-start='{start}'{'' if still else ' hidden'}>{still}</div>\n"
    )


def leave(self: HTML5Translator, node: nodes.Element) -> None:
    """All of it was written on entering."""


def skip(self: nodes.NodeVisitor, node: nodes.Element) -> None:
    raise nodes.SkipNode


def whole(module: Path) -> str:
    """A figure's module with what it shares in the place of its import."""
    shared = (MODULES / "shared.js").read_text(encoding="utf-8").replace("\nexport ", "\n")
    text = module.read_text(encoding="utf-8")
    return re.sub(r'^import \{[^}]*\} from "\./shared\.js";\n', lambda _: shared, text, count=1, flags=re.MULTILINE)


def offer_files(app: Sphinx) -> None:
    made = Path(app.doctreedir) / "live-figures"
    made.mkdir(parents=True, exist_ok=True)
    for module in MODULES.glob("figure-*.js"):
        (made / module.name).write_text(whole(module), encoding="utf-8")
    # not in _static: Jupyter Book loads every script it finds there on every page
    app.config.html_static_path += [str(SITE), str(made)]


def load_script(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if doctree is not None and next(doctree.findall(live_figure), None) is not None:
        app.add_css_file("live-figures.css")
        app.add_js_file("live-figures.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_node(live_figure, html=(visit_figure, leave), latex=(skip, None), text=(skip, None), man=(skip, None))
    app.add_directive("live-figure", LiveFigure)
    app.connect("builder-inited", offer_files)
    app.connect("html-page-context", load_script)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
