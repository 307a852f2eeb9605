"""Sphinx extension: leave out the scripts of sphinx-thebe, which Jupyter Book always loads.

The book does not use thebe, and its inline script stands on each page twice, which is an error in the
browser's console ("Identifier 'THEBE_JS_URL' has already been declared").
"""

from sphinx.application import Sphinx
from sphinx_thebe import init_thebe_core


def disconnect(app: Sphinx, config) -> None:
    """Remove the listener that adds the scripts."""
    for listener in list(app.events.listeners.get("env-before-read-docs", [])):
        if listener.handler is init_thebe_core:
            app.disconnect(listener.id)


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", disconnect)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
