"""Sphinx extension: the first page's list of chapters as cards, and the foot of every page.

The list stays a plain definition list in ``index.md`` (chapter, then its question and what it holds). A card adds a
small picture, ``_static/thumbnails/<chapter>.svg``, where there is one, and how long the chapter takes. The foot
says the licence, how to cite the course and where to report an error; it reads ``CITATION.cff`` and the address of
the repository, and leaves out what they do not say.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup
from sphinx.application import Sphinx
from sphinx.config import Config

WORDS, LINES = 180, 20  # read in a minute: words of prose, lines of code that are not folded
FOLDED = re.compile(r"hide-input|hide-cell|remove-input|remove-cell")
CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.M | re.S)


def minutes(text: str) -> int:
    """How long a chapter's source takes to read, in minutes, to the next five."""
    cells = CELL.findall(text)
    code = sum(cell.count("\n") for cell in cells if not FOLDED.search(cell[:300]))
    prose = re.sub(r"^(`{3,})\{solution\}.*?^\1$", "", CELL.sub("", text), flags=re.M | re.S)
    words = len(re.findall(r"[^\W\d_]{2,}", prose))
    return 5 * round((words / WORDS + code / LINES) / 5)


def make_cards(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    """Turn the list below the heading "The chapters" into cards."""
    if app.builder.format != "html" or pagename != app.config.root_doc or not context.get("body"):
        return
    page = BeautifulSoup(context["body"], "html.parser")
    chapters = page.select_one("#the-chapters > dl")
    if chapters is None:
        return
    chapters["class"] = ["chapter-cards"]
    for title in chapters.find_all("dt", recursive=False):
        name = title.find("a")["href"].removesuffix(".html")
        about = title.find_next_sibling("dd")
        card = title.wrap(page.new_tag("div", attrs={"class": "chapter-card"}))
        card.append(about.extract())
        drawing = Path(app.srcdir, "_static", "thumbnails", f"{name}.svg")
        if drawing.is_file():
            picture = BeautifulSoup(drawing.read_text(encoding="utf-8"), "html.parser").svg
            picture["aria-hidden"] = "true"
            title.insert(0, picture)
        source = Path(app.srcdir, f"{name}.md")
        time = page.new_tag("dd", attrs={"class": "chapter-time"})
        time.string = f"about {minutes(source.read_text(encoding='utf-8'))} minutes to read"
        card.append(time)
    context["body"] = str(page)


def write_foot(app: Sphinx, config: Config) -> None:
    """Hand the theme the foot of all pages."""
    file = Path(app.srcdir).parent / "CITATION.cff"
    known = yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
    options = config.html_theme_options
    address = (options.get("repository_url") or "").rstrip("/")
    parts = []
    if known:
        names = ", ".join(author.get("name") or author.get("family-names", "") for author in known["authors"])
        year = str(known.get("date-released", ""))[:4]
        work = f"{names}. {known['title']}. Version {known['version']}{', ' + year if year else ''}."
        where = f" {address}" if address else ""
        parts += [
            "Text: <a href='https://creativecommons.org/licenses/by/4.0/'>CC BY 4.0</a>, code: BSD 3-Clause",
            f"<details class='cite'><summary>Cite this (version {escape(known['version'])})</summary>"
            f"{escape(work)}{escape(where)}</details>",
        ]
    report = f"{address}/issues/new" if address else f"mailto:{config.report_errors_to}"
    if address or config.report_errors_to:
        parts.append(f"<a href='{escape(report)}'>Report an error</a>")
    if parts and not options.get("extra_footer"):
        options["extra_footer"] = "".join(f"<div>{part}</div>" for part in parts)


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("report_errors_to", "", "html", (str,))
    app.connect("config-inited", write_foot, priority=90)  # before the theme copies its options
    app.connect("html-page-context", make_cards, priority=570)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
