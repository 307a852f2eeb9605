"""Sphinx extension: what depends on the address under which the site will stand.

The address is one setting, ``html: baseurl:`` in ``_config.yml``, and is not set by default. With it a page tells
its own address and offers a card (title, description and picture) for where its link is shared, and the 404 page
finds the styles below any path, and a sitemap lists all pages. Without it the 404 page takes the site to stand at the
root of its host. Files that hosts look for are written in both cases.

A page's description is written by hand in its front matter (``myst: html_meta: description``).
"""

from __future__ import annotations

import hashlib
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
from docutils import nodes
from markupsafe import escape
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ConfigError

CARD = (1200, 630)  # pixels; what sharing sites show without cutting
GROUND, INK, QUIET = "#10243e", "#ffffff", "#b9c9dd"
WEIGHTS = LinearSegmentedColormap.from_list("weights", ["#1d3a5f", "#2a7f9e", "#7fd1c7", "#f5f0c9"])


def use_address(app: Sphinx, config: Config) -> None:
    """Tell the 404 page's extension where the site's root is."""
    address = urlsplit(config.html_baseurl)
    if config.html_baseurl and not (address.scheme in ("http", "https") and address.netloc):
        raise ConfigError(
            f"_config.yml: html: baseurl: {config.html_baseurl!r} is not a whole address; "
            "write it like https://example.org/attention-by-hand/ or leave it out"
        )
    config.notfound_urls_prefix = address.path.rstrip("/") + "/"


def described(doctree: nodes.document) -> str:
    """The description in a page's front matter, or an empty text."""
    found = [tag["content"] for tag in doctree.findall(nodes.meta) if tag.get("name") == "description"]
    return found[0] if found else ""


def add_tags(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Give a page the tags that sites read when its link is shared."""
    if doctree is None or app.builder.format != "html":
        return
    title, about = app.env.titles[pagename].astext(), described(doctree)
    tags = {
        "og:type": "website",
        "og:site_name": app.config.html_title,
        "og:title": title,
        "og:description": about,
    }
    names = {}
    if app.config.html_baseurl:
        root = app.config.html_baseurl.rstrip("/") + "/"
        tags["og:url"] = root + app.builder.get_target_uri(pagename)
        tags["og:image"] = root + card(app, pagename, title, about)
        tags["og:image:width"], tags["og:image:height"] = map(str, CARD)
        tags["og:image:alt"] = f"{app.config.html_title}: {title}, beside a map of attention weights"
        names["twitter:card"] = "summary_large_image"
    lines = [f'<meta property="{key}" content="{escape(value)}" />' for key, value in tags.items() if value]
    lines += [f'<meta name="{key}" content="{value}" />' for key, value in names.items()]
    context["metatags"] += "\n".join(lines) + "\n"


def card(app: Sphinx, pagename: str, title: str, about: str) -> str:
    """Draw a page's card unless it is there already; return its path on the site."""
    digest = hashlib.sha256(f"{app.config.html_title}\0{title}\0{about}".encode()).hexdigest()[:8]
    path = f"_images/cards/{pagename.replace('/', '-')}-{digest}.png"
    target = Path(app.outdir) / path
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        draw_card(target, app.config.html_title, title, about)
    return path


def draw_card(target: Path, site: str, title: str, about: str) -> None:
    """Write the picture: the words on the left, a causal map of weights on the right."""
    figure = Figure(figsize=(CARD[0] / 100, CARD[1] / 100), dpi=100, facecolor=GROUND)
    FigureCanvasAgg(figure)
    if title != site:
        figure.text(0.06, 0.87, site, color=QUIET, fontsize=20, va="top")
    lines = textwrap.wrap(title, 17)
    figure.text(0.06, 0.76, "\n".join(lines), color=INK, fontsize=42, weight="bold", va="top", linespacing=1.15)
    short = textwrap.shorten(about, 170, placeholder="…")
    figure.text(0.06, 0.09, textwrap.fill(short, 42), color=QUIET, fontsize=17, va="bottom", linespacing=1.35)
    figure.add_axes((0.63, 0.19, 0.62 * CARD[1] / CARD[0], 0.62)).set_axis_off()
    tokens = 7
    places = np.arange(tokens)
    scores = 1.6 * np.cos(1.9 * places[:, None] - 2.3 * places[None, :]) - 0.35 * (places[:, None] - places[None, :])
    scores = np.where(places[None, :] <= places[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    axes = figure.axes[0]
    axes.pcolormesh(np.sqrt(weights), cmap=WEIGHTS, vmin=0, vmax=1, edgecolor=GROUND, linewidth=5)
    axes.invert_yaxis()
    figure.savefig(target, metadata={"Software": None})


# What hosts such as Netlify and Cloudflare send with each page: with it Stop interrupts a live cell and keeps what
# cells have made (browsers share memory only with pages that ask to be kept apart).
HEADERS = """/*
  Cross-Origin-Opener-Policy: same-origin
  Cross-Origin-Embedder-Policy: credentialless
"""


def write_host_files(app: Sphinx, exception: Exception | None) -> None:
    """Write what hosts and search engines look for beside the pages."""
    if exception or app.builder.format != "html":
        return
    folder = Path(app.outdir)
    (folder / ".nojekyll").touch()  # else GitHub leaves out folders whose names begin with _
    (folder / "_headers").write_text(HEADERS, encoding="utf-8")
    if app.config.html_baseurl:
        root = app.config.html_baseurl.rstrip("/") + "/"
        pages = [root + app.builder.get_target_uri(name) for name in sorted(app.env.found_docs)]
        places = "".join(f"  <url><loc>{escape(page)}</loc></url>\n" for page in pages)
        space = "http://www.sitemaps.org/schemas/sitemap/0.9"
        text = f'<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="{space}">\n{places}</urlset>\n'
        (folder / "sitemap.xml").write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict:
    app.connect("config-inited", use_address)
    app.connect("build-finished", write_host_files)
    app.connect("html-page-context", add_tags)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
