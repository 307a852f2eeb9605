"""Sphinx extension: small repairs of the theme and the tools that make the pages.

Each section names what it repairs, and how to see that it is not needed any more; it may then be deleted with what
`setup` connects for it. All were still needed with Jupyter Book 1.0.4, sphinx-book-theme 1.3, pydata-sphinx-theme
0.17.1, MyST-NB 1.4, sphinx-thebe 0.3.1, sphinxcontrib-bibtex 2.7 and docutils 0.21.
"""

from __future__ import annotations

import hashlib
import re
from copy import copy
from pathlib import Path
from typing import Any

import pydata_sphinx_theme
from docutils import nodes
from fontTools import subset
from markupsafe import Markup
from myst_nb.core import render
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError
from sphinx_thebe import init_thebe_core

# --- thebe -----------------------------------------------------------------------------------------------
# Jupyter Book 1 always loads sphinx-thebe (https://github.com/jupyter-book/jupyter-book/issues/1603), which this book
# does not use. Its inline script stands on each page twice, an error in the browser's console: "Identifier
# 'THEBE_JS_URL' has already been declared" (`init_thebe_core` in https://github.com/executablebooks/sphinx-thebe).
# Not needed when a page made without this holds no THEBE_JS_URL.


def leave_thebe_out(app: Sphinx, config: Config) -> None:
    """Remove the listener that adds thebe's scripts."""
    for listener in list(app.events.listeners.get("env-before-read-docs", [])):
        if listener.handler is init_thebe_core:
            app.disconnect(listener.id)


# --- markup that is a riddle to screen readers -----------------------------------------------------------
# Not needed when axe-core finds nothing in a book built without it (tests: `axe.py`).
MENDED = {
    # MyST-NB names the summary of a folded cell other than what stands on it (rule label-content-name-mismatch):
    # `visit_HideCellInput` in https://github.com/executablebooks/MyST-NB/blob/master/myst_nb/sphinx_.py
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # docutils' HTML5 writer gives citations a role that was withdrawn: https://github.com/w3c/dpub-aria/pull/22
    ' role="doc-biblioentry"': ' role="listitem"',
    # docutils marks a table's empty corner as a heading that says nothing:
    # https://dequeuniversity.com/rules/axe/4.10/empty-table-header
    '<th class="head"><p></p></th>': "<td></td>",
}


def mend_markup(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Replace the faulty pieces in a page's article."""
    body = context.get("body")
    if app.builder.format != "html" or not body:
        return
    for wrong, right in MENDED.items():
        body = body.replace(wrong, right)
    context["body"] = body


# --- printed lines stay whole ----------------------------------------------------------------------------
# A kernel sends what a cell prints in pieces, and where a piece ends in the middle of a line depends on the clock.
# With `nb_merge_streams` MyST-NB puts a line break between the pieces and drops empty lines there, so a page would
# differ from build to build: https://github.com/executablebooks/MyST-NB/issues/690, which began with
# https://github.com/executablebooks/MyST-NB/pull/604. Pieces that follow each other are joined first, as they are.
# Not needed when MyST-NB's own function makes "ab\n" of the pieces "a" and "b\n".
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


# --- each chapter has its own list of works --------------------------------------------------------------
# sphinxcontrib-bibtex wants keys to be unique in the whole book as soon as two pages list the same work
# (https://github.com/mcmtroffaes/sphinxcontrib-bibtex/issues/184) and offers prefixes for this
# (https://sphinxcontrib-bibtex.readthedocs.io/en/latest/usage.html#key-prefixing). A chapter says only what it
# cites; the page's name is put before the keys, and the same prefix before the list, when the page is read.
# Not needed when a book built without it gives no warning "duplicate citation for key".
CITATION = re.compile(r"(\{cite:[tp]\}`)([^`]+)(`)")
LIST = re.compile(r"^(`{3,}|:{3,})\{bibliography\}[ ]*$", re.M)


def with_prefixes(text: str, docname: str) -> str:
    """Return the page's text with its citations and its list of works made local."""
    here = docname.replace("/", "-") + "--"

    def renamed(match: re.Match[str]) -> str:
        return match[1] + ",".join(here + key.strip() for key in match[2].split(",")) + match[3]

    return LIST.sub(rf"\g<0>\n:keyprefix: {here}\n:labelprefix: {here}", CITATION.sub(renamed, text))


def make_references_local(app: Sphinx, docname: str, source: list[str]) -> None:
    source[0] = with_prefixes(source[0], docname)


# --- buttons for Binder and Colab ------------------------------------------------------------------------
# Chapters are Markdown, which Colab cannot open: https://github.com/jupyter-book/jupyter-book/issues/752. The buttons
# lead to the notebooks of the branch `repository: branch`, which the publishing workflow fills with what
# `make notebooks` makes. Without an address of the repository there must be no buttons.
# Not needed when the theme's own buttons open a page's notebook, and it makes none without `repository: url`.
ADDRESS = re.compile(r"https://(github|gitlab)\.com/[\w.-]+/[\w.-]+/?")


def buttons_need_an_address(app: Sphinx, config: Config) -> None:
    """Switch the buttons off where `repository: url` is empty, and refuse an address that cannot serve them."""
    options = config.html_theme_options
    address = options.get("repository_url") or ""
    buttons = options.get("launch_buttons") or {}
    if not address:
        options["launch_buttons"] = {}
        return
    known = ADDRESS.fullmatch(address)
    if known is None:
        raise ConfigError(
            f"_config.yml, repository: url is {address!r}; it should look like https://github.com/OWNER/NAME "
            "(or gitlab.com), or be empty for a book without Binder and Colab buttons"
        )
    if known[1] == "gitlab":
        options["launch_buttons"] = {name: value for name, value in buttons.items() if name != "colab_url"}


def buttons_open_notebooks(
    app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Let the theme's buttons lead to the notebook instead of the page's source."""
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                button["url"] = re.sub(rf"\b{re.escape(pagename)}\.md$", f"{pagename}.ipynb", button["url"])


# --- icons -----------------------------------------------------------------------------------------------
# The theme brings all of Font Awesome, as a script of 1.5 MB and as web fonts, for some thirty icons:
# https://github.com/pydata/pydata-sphinx-theme/issues/2379. Its style sheet draws them from the web font where the
# script is absent (`_templates/static/webpack-macros.html` leaves it out); the font is cut down to what is in use.
# The script is to go from the theme (https://github.com/pydata/pydata-sphinx-theme/pull/2494); the font will stay
# large. Not needed when pages built without this stay within the budget that `test_site.py` sets.
# By their names in Font Awesome: what the theme's templates, scripts and style sheet use.
ICONS = {
    "angle-left": 0xF104,
    "angle-right": 0xF105,
    "angle-down": 0xF107,
    "arrow-up": 0xF062,
    "bars": 0xF0C9,
    "bell": 0xF0F3,
    "circle-check": 0xF058,
    "circle-exclamation": 0xF06A,
    "circle-half-stroke": 0xF042,
    "circle-info": 0xF05A,
    "circle-xmark": 0xF057,
    "code": 0xF121,
    "download": 0xF019,
    "expand": 0xF065,
    "file": 0xF15B,
    "file-pdf": 0xF1C1,
    "lightbulb": 0xF0EB,
    "list": 0xF03A,
    "magnifying-glass": 0xF002,
    "magnifying-glass-minus": 0xF010,
    "moon": 0xF186,
    "outdent": 0xF03B,
    "pencil": 0xF303,
    "rocket": 0xF135,
    "share": 0xF064,
    "sun": 0xF185,
    "triangle-exclamation": 0xF071,
    "up-right-from-square": 0xF35D,
    "xmark": 0xF00D,
}
FONT = "icons.woff"
RULE = (
    '<style>@font-face{{font-family:"Font Awesome 6 Free";font-weight:900;font-display:block;'
    'src:url("{address}") format("woff")}}</style>'
)


def write_font(app: Sphinx) -> None:
    """Write the small font among the static files."""
    if app.builder.format != "html":
        return
    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    whole = theme / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.ttf"
    options = subset.Options(flavor="woff", recalc_timestamp=False)
    font = subset.load_font(whole, options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=ICONS.values())
    cutter.subset(font)
    target = Path(app.outdir) / "_static" / FONT
    target.parent.mkdir(parents=True, exist_ok=True)
    subset.save_font(font, target, options)


def name_font(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Hand the templates the rule that names the font; it stands after the theme's and so wins."""
    context["icon_font"] = Markup(RULE.format(address=context["pathto"](f"_static/{FONT}", resource=True)))


# --- a change of style or of an extension ----------------------------------------------------------------
# Sphinx 7 copies static files only when it writes a page (https://github.com/sphinx-doc/sphinx/issues/2090), and knows
# nothing of the code of local extensions. A digest of both among the settings makes it write the pages anew.
# For static files not needed from https://github.com/sphinx-doc/sphinx/pull/13236 on (Sphinx 8.2).


def digest_of_looks(app: Sphinx) -> str:
    """Changes with every file that pages are made with and that is not a page."""
    folders = [Path(__file__).parent, *(Path(app.srcdir, name) for name in ("_static", "_templates"))]
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    digest = hashlib.sha256()
    for path in files:
        if "__pycache__" not in path.parts:
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("digest_of_looks", digest_of_looks(app), "html", (str,))  # not to be set by hand
    render.coalesce_streams = merged_whole
    app.connect("config-inited", buttons_need_an_address, priority=100)  # before the theme copies its options
    app.connect("config-inited", leave_thebe_out)
    app.connect("builder-inited", write_font)
    app.connect("source-read", make_references_local)
    app.connect("html-page-context", mend_markup)
    app.connect("html-page-context", buttons_open_notebooks, priority=502)  # after the theme (501) has made them
    # after notfound (400), which gives the 404 page its own pathto
    app.connect("html-page-context", name_font, priority=600)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
