"""Sphinx extension: the theme's icons from a font of a few kilobytes.

The theme brings all of Font Awesome, as a script and as web fonts. Its style sheet draws the icons from the web
font when the script is absent (``_templates/static/webpack-macros.html`` leaves it out). This extension cuts the
font down to the icons in use and puts it before the theme's own.
"""

from __future__ import annotations

from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from markupsafe import Markup
from sphinx.application import Sphinx

# by their names in Font Awesome: what the theme's templates, scripts and style sheet use
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


def name_font(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Hand the templates the rule that names the font; it stands after the theme's and so wins."""
    context["icon_font"] = Markup(RULE.format(address=context["pathto"](f"_static/{FONT}", resource=True)))


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", write_font)
    # after notfound (400), which gives the 404 page its own pathto
    app.connect("html-page-context", name_font, priority=600)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
