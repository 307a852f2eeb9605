"""The glossary and the notation: complete, leading to the right places, and true to the chapters."""

from __future__ import annotations

import re
from functools import cache

import pytest
from book_build import BOOK, built, chapter, chapters

REFERENCE = re.compile(r"\{ref\}`(?:[^`<]*<)?([\w-]+)>?`")
TERM = re.compile(r"\{term\}`([^`]+)`")


@pytest.fixture(scope="module", autouse=True)
def book():
    return built()


@cache
def source(name: str) -> str:
    return (BOOK / f"{name}.md").read_text(encoding="utf-8")


@cache
def labels() -> dict[str, str]:
    """Label → page."""
    found = {}
    for path in BOOK.glob("*.md"):
        for label in re.findall(r"^\(([\w-]+)\)=", path.read_text(encoding="utf-8"), re.M):
            found[label] = path.stem
    return found


def section(label: str) -> str:
    """The source between a label and the next one, without code."""
    text = source(labels()[label])
    start = text.index(f"({label})=")
    following = re.compile(r"^\([\w-]+\)=$", re.M).search(text, start + 1)
    found = text[start : following.start() if following else len(text)]
    return re.sub(r"^```\{code-cell\}.*?^```$", "", found, flags=re.S | re.M)


def plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())


@cache
def entries() -> list[tuple[list[str], str]]:
    """The glossary's entries as (terms, definition)."""
    body = re.search(r"^```\{glossary\}\n(.*?)^```$", source("glossary"), re.S | re.M)[1]
    found = []
    for block in body.strip().split("\n\n"):
        lines = block.splitlines()
        terms = [line for line in lines if not line.startswith(" ")]
        found.append((terms, " ".join(line.strip() for line in lines if line.startswith(" "))))
    return found


def names() -> list[str]:
    return [term for terms, _ in entries() for term in terms]


def rows() -> list[tuple[str, str, str, str, str]]:
    """The rows of the notation's tables: sign, meaning, shape, name in code, section."""
    found = []
    for line in source("notation").splitlines():
        cells = re.split(r"\s*\|\s*", line.strip("| "))
        if line.startswith("| $"):
            found.append(tuple(cells))
    return found


@pytest.mark.parametrize(("terms", "definition"), entries(), ids=[terms[0] for terms, _ in entries()])
def test_a_term_leads_to_the_section_that_explains_it(terms, definition):
    targets = REFERENCE.findall(definition)
    assert len(targets) == 1, "one section defines a term"
    assert 30 < len(definition) < 320
    words = plain(section(targets[0]))
    # a word of it stands there: at least the stem, since chapters decline and capitalise
    assert any(plain(word)[:6] in words for term in terms for word in re.split(r"[ -]", term)), terms


def test_terms_are_sorted_and_none_comes_twice():
    first = [terms[0].lower().replace("–", "") for terms, _ in entries()]
    assert first == sorted(first)
    assert len(set(map(str.lower, names()))) == len(names())


@pytest.mark.parametrize("name", chapters())
def test_a_chapter_links_its_words_once(name):
    used = [re.sub(r"^[^`<]*<(.+)>$", r"\1", term) for term in TERM.findall(source(name))]
    assert len(used) >= 3
    assert set(used) <= set(names())
    assert len(set(used)) == len(used), "only the first use is linked"
    linked = chapter(name).article.select('a[href*="glossary.html#term-"]')
    assert len(linked) == len(used)


def test_every_term_printed_in_bold_where_it_is_introduced_has_its_entry():
    """Chapters print a new word in bold: one word, or two to three without a full stop, followed by its meaning."""
    known = {plain(term).rstrip("s") for term in names()}
    left_out = {  # bold for other reasons: names of tasks, steps and emphasis
        "heads", "looks", "thinks", "shifted", "permuted", "length", "motif", "place", "majority", "learned",
        "sinusoidal", "rotary", "patterns", "gaps", "outputs", "causal", "begin", "shift", "variance", "not",
        "both", "encoder only", "decoder only", "word by word", "all at once", "along its rows", "shifted by one",
        "learned table of positions", "lookup",
    }  # fmt: skip
    for name in chapters():
        text = source(name).split("\n## Summary")[0]
        text = re.sub(r"^(`{3,4})\{(?:code-cell|exercise|solution).*?^\1$", "", text, flags=re.S | re.M)
        for bold in re.findall(r"\*\*([A-Za-zé–' -]{3,40})\*\*", text):
            if bold.lower() in left_out or len(bold.split()) > 3 or (bold[0].isupper() and " " in bold):
                continue
            assert plain(bold).rstrip("s") in known, f"{name} introduces **{bold}**; the glossary lacks it"


@pytest.mark.parametrize("row", rows(), ids=[row[0] for row in rows()])
def test_a_sign_is_used_where_the_table_says(row):
    signs, _, _, code, where = row
    label = REFERENCE.fullmatch(where)[1]
    math = "".join(re.findall(r"\$\$?(.+?)\$\$?", section(label), re.S))
    for sign in re.findall(r"\$(.+?)\$", signs):
        bare = sign.replace(" ", "")
        assert bare in math.replace(" ", ""), f"{sign} does not stand in the section {label}"
    cells = "\n".join(re.findall(r"^```\{code-cell\}.*?^```$", source(labels()[label]), re.S | re.M))
    if not code:
        return  # a sign that no cell needs
    name = re.fullmatch(r"`(\w+)`", code)[1]
    assert re.search(rf"\b{name}\b", cells), f"no cell of {labels()[label]} calls anything {name}"


def test_no_sign_stands_twice_in_one_table():
    tables = source("notation").split("\n## ")[1:]
    assert len(tables) >= 6
    for table in tables:
        signs = re.findall(r"\$[^$]+\$", " ".join(line.split(" | ")[0] for line in table.splitlines()))
        assert len(set(signs)) == len(signs)


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("padding_mask", "ps3-multi-head-attention"),
        ("warm-up", "ps0-warm-up"),
        ("permutation equivariant", "glossary"),
        ("notation", "notation"),
        ("survivor", "authors-guide"),
        ("roster", "instructors-guide"),
        ("bottleneck", "rnn-attention"),
    ],
)
def test_the_search_finds_every_kind_of_page(words, name, site, browser):
    page = browser.new_page()
    page.goto(f"{site}search.html?q={words}")
    page.wait_for_selector(f'#search-results a[href*="{name}.html"]', timeout=20_000)
    page.close()
