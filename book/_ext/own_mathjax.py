"""Sphinx extension: MathJax from the site itself instead of a public CDN.

``mathjax_path`` in ``_config.yml`` says which: an https address, or ``mathjax/es5/tex-mml-chtml.js`` for a copy on
the site. The copy is taken from the installed package ``django-static-mathjax``, which is nothing but these files.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ConfigError

FOLDER = "mathjax"
# what a page can ask for; the rest of the package is other forms of the same code
NEEDED = ("tex-mml-chtml.js", "input/tex/extensions", "output/chtml/fonts", "ui", "a11y", "sre")


def copy_files(app: Sphinx) -> None:
    """Put MathJax among the static files when ``mathjax_path`` points there."""
    path = app.config.mathjax_path
    if app.builder.format != "html" or not path.startswith(f"{FOLDER}/"):
        return
    if find_spec("mathjax") is None:
        raise ConfigError(
            f"_config.yml: mathjax_path: {path} asks for MathJax on the site itself, but its files are not "
            "installed; run `python -m pip install django-static-mathjax`, or name an https address"
        )
    package = Path(find_spec("mathjax").submodule_search_locations[0]) / "static" / "mathjax"
    if not (package / path.removeprefix(f"{FOLDER}/")).is_file():
        raise ConfigError(f"_config.yml: mathjax_path: MathJax has no file {path.removeprefix(f'{FOLDER}/')!r}")
    target = Path(app.outdir) / "_static" / FOLDER
    for name in {*(f"es5/{part}" for part in NEEDED), path.removeprefix(f"{FOLDER}/")}:
        source, copy = package / name, target / name
        if source.is_dir():
            shutil.copytree(source, copy, dirs_exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, copy)


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", copy_files)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
