"""What every chapter must keep: narrow code, short cells, an evening's reading, and a picture of the data's way first.

Chapters come to the rules one by one: put the name of yours into KEPT when it is there.
"""

from __future__ import annotations

import re

import jupytext
import pytest
from book_build import BOOK, chapters

KEPT = [
    "rnn-attention",
    "self-attention",
    "multi-head-attention",
    "positional-encoding",
    "normalization",
    "transformer",
    "hand-designed-heads",
    "linear-attention",
    "architectures",
    "small-language-model",
]
CAPTIONED = [*KEPT[:6], "architectures", "small-language-model"]
WIDTH, CELL, CODE, WORDS = 79, 30, 250, 3000
FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell"}


def cells(name: str, kind: str) -> list:
    notebook = jupytext.read(BOOK / f"{name}.md", fmt="md:myst")
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def tags(cell) -> set[str]:
    return set(cell.metadata.get("tags", []))


def visible(name: str) -> list[list[str]]:
    """The lines of each code cell that a reader sees without opening anything."""
    return [cell.source.splitlines() for cell in cells(name, "code") if not tags(cell) & FOLDED]


def prose(text: str) -> list[str]:
    """The words of Markdown that are read: no formulas on lines of their own, no solutions, no figure's numbers."""
    text = re.sub(r"^```\{live-figure\}.*?^```$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(`{3,})\{solution\}.*?^\1$", "", text, flags=re.S | re.M)
    text = re.sub(r"^\$\$.*?^\$\$.*?$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(?::[\w-]+:.*|\([\w-]+\)=|[:`]{3,}.*|\|[-|: ]+\|)$", "", text, flags=re.M)
    return [word for word in text.split() if re.search(r"\w", word)]


def test_a_chapter_is_listed_once_and_exists():
    assert len(set(KEPT)) == len(KEPT)
    assert set(KEPT) <= set(chapters())


@pytest.mark.parametrize("name", KEPT)
def test_code_is_narrow(name):
    wide = [line for cell in cells(name, "code") for line in cell.source.splitlines() if len(line) > WIDTH]
    wide += [line for text in cells(name, "markdown") for line in fenced(text.source) if len(line) > WIDTH]
    assert not wide


def fenced(text: str) -> list[str]:
    """Lines of code blocks that are not run."""
    return [line for block in re.findall(r"^```\w+\n(.*?)^```", text, re.S | re.M) for line in block.splitlines()]


@pytest.mark.parametrize("name", KEPT)
def test_a_visible_cell_fits_a_screen(name):
    assert not [f"{len(lines)} lines: {lines[0]}" for lines in visible(name) if len(lines) > CELL]


@pytest.mark.parametrize("name", KEPT)
def test_a_chapter_is_read_in_an_evening(name):
    assert sum(map(len, visible(name))) <= CODE
    assert len(prose("\n\n".join(cell.source for cell in cells(name, "markdown")))) <= WORDS


@pytest.mark.parametrize("name", KEPT)
def test_a_picture_of_the_datas_way_comes_first(name):
    """Before the first section: a drawing, with its description and shapes in it."""
    text = (BOOK / f"{name}.md").read_text(encoding="utf-8")
    opening = text[: re.search(r"^## ", text, re.M).start()]
    described = re.findall(r'^\s+alt: "(.+)"$|^:alt: (.+)$', opening, re.M)
    assert described, "no figure before the first section"
    assert re.search(r"\(\w[\w ,/]*, \w+\)", opening.split("alt:", 1)[1]), "the drawing shows no shapes such as (T, d)"


@pytest.mark.parametrize("name", CAPTIONED)
def test_a_figure_can_be_read_alone(name):
    drawn = [cell.metadata["mystnb"] for cell in cells(name, "code") if "image" in cell.metadata.get("mystnb", {})]
    assert drawn and all(len(figure.get("figure", {}).get("caption", "")) > 30 for figure in drawn)


@pytest.mark.parametrize("name", KEPT)
def test_claims_stand_beside_the_experiments(name):
    hidden = [cell.source for cell in cells(name, "code") if {"claims", "remove-cell"} <= tags(cell)]
    assert hidden and all("claim(" in source for source in hidden)
    assert all("put(" not in source for source in hidden), "numbers for the prose go into another cell"


@pytest.mark.parametrize("name", KEPT)
def test_all_seeds_move_together(name):
    code = "\n".join(cell.source for cell in cells(name, "code") if "setup" not in tags(cell))
    assert not re.findall(r"(?:default_rng|manual_seed|RandomState|random\.seed)\((?!\s*seed)[^)]*\)", code)


def test_words_are_counted_as_they_are_read():
    text = (
        "(a-label)=\n# A title\n\nOne $x$ two.\n\n$$\na = b\n$$ (eq)\n\n"
        '```{live-figure} name\n:label: What it is\n\n{"names": ["a", "b"]}\n```\n\n'
        "```{exercise} Name\n:label: one\n\nWhy?\n```\n\n````{solution} one\n:class: dropdown\n\nBecause.\n````\n"
    )
    assert prose(text) == ["A", "title", "One", "$x$", "two.", "Why?"]
