"""A page as a parser sees it: its tags, texts and attributes, for tests of the feedback."""

from __future__ import annotations

import itertools
import re
from html.parser import HTMLParser

from sample_results import (
    a_result,
)

from autograder.results import Exercise

_WORDS = """
html head meta title style body svg symbol circle path rect use a main header footer section div p span strong em del
code pre h1 h2 h3 dl dt dd table caption thead tbody tr th td ul ol li details summary figure figcaption img br hr
blockquote
"""
TAGS = set(_WORDS.split())


class Page(HTMLParser):
    """A page read back: every tag with its attributes, the text outside style, and whether all tags are closed."""

    VOID = ("meta", "img", "br", "hr", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.pieces))


def read(html: str) -> Page:
    """The page read back, after the promises that hold for every page."""
    page = Page(html)
    html.encode("utf-8")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert tag in TAGS
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in (
                "style",
                "srcset",
                "action",
                "formaction",
                "ping",
            )
            if name == "href":
                assert re.match(r"(#[\w-]+|https?://|mailto:)", value or ""), value
                assert not value.startswith("#") or value[1:] in ids
            if name == "src":
                assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/]+=*", value)
            if name in ("aria-labelledby", "aria-describedby"):
                assert value in ids
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    return page


def only(*cells, exercise=None):
    """A result whose notebook holds these cells, all belonging to one written exercise unless told otherwise."""
    exercise = exercise or Exercise("answer", "Title", 2, kind="written")
    return a_result(exercises=[exercise], notebook={"cells": list(cells)})
