"""Sphinx extension: buttons that open a chapter on Binder or Colab, once the book has an address.

The theme makes the buttons from `launch_buttons` and `repository` in `_config.yml`. Two things are missing for this
book. Without an address of the repository there must be no buttons. And the chapters are Markdown, which Colab cannot
open: the buttons lead to the notebooks of the branch `repository: branch`, which the publishing workflow fills with
what `make notebooks` makes.
"""

from __future__ import annotations

import re

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

ADDRESS = re.compile(r"https://(github|gitlab)\.com/[\w.-]+/[\w.-]+/?")


def without_address(app: Sphinx, config) -> None:
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


def to_notebooks(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Let the theme's buttons lead to the notebook instead of the page's source."""
    for group in context.get("header_buttons", []):
        if group.get("label") == "launch-buttons":
            for button in group["buttons"]:
                button["url"] = re.sub(rf"\b{re.escape(pagename)}\.md$", f"{pagename}.ipynb", button["url"])


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", without_address, priority=100)  # before the theme copies its options
    app.connect("html-page-context", to_notebooks, priority=502)  # after the theme (501) has made the buttons
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
