"""Sphinx extension: the article's markup, made easier to read, to print and to walk through with the keyboard.

Each function takes the parsed article and mends one thing; all run just before a page is written.
"""

from __future__ import annotations

import re
from typing import Any

from bs4 import BeautifulSoup, NavigableString
from sphinx.application import Sphinx

BEFORE, AFTER = "([“‘", ".,;:!?)]”’…"
WRAPPED = re.compile(r"\\begin\{(split|gathered)\}(.*)\\end\{\1\}", re.S)


def fold_with_details(page: BeautifulSoup) -> None:
    """Hidden solutions open where their title is pressed: a link in the title led up to the exercise instead."""
    for box in page.select("div.admonition.dropdown"):
        box.name = "details"
        box["class"] = [*(name for name in box["class"] if name != "dropdown"), "fold"]
        title = box.select_one("p.admonition-title")
        title.name = "summary"
        for link in title.find_all("a"):
            link.unwrap()


def name_code_folds(page: BeautifulSoup) -> None:
    """The switch of folded code says whose code it is; all said the same."""
    for number, fold in enumerate(page.select("div.cell details.hide"), 1):
        cell = fold.find_parent("div", class_="cell")
        bar, figure = cell.select_one(".live-bar"), cell.select_one("figcaption .caption-number")
        whose = bar["aria-label"] if bar else figure.get_text().strip() if figure else f"block {number}"
        for title in fold.select_one("summary").find_all("p", recursive=False):
            extra = page.new_tag("span", attrs={"class": "visually-hidden"})
            extra.string = f" (output, {whose})" if "below-input" in fold["class"] else f" ({whose})"
            title.append(extra)


def drop_repeated_ids(page: BeautifulSoup) -> None:
    """sphinx-exercise gives the inside of all exercises the same id."""
    for section in page.select("#exercise-content, #solution-content"):
        del section["id"]


def skip_header_links(page: BeautifulSoup) -> None:
    """The # behind a heading is for the mouse; the tab key finds the same addresses in the contents of the page."""
    for link in page.select("a.headerlink"):
        link["tabindex"] = "-1"


def keep_punctuation_with_formulas(page: BeautifulSoup) -> None:
    """No line begins with the full stop, and none ends with the bracket, that belongs to a formula."""
    for formula in page.select("span.math"):
        before, after = formula.previous_sibling, formula.next_sibling
        head = re.search(f"[{re.escape(BEFORE)}]*$", before)[0] if isinstance(before, NavigableString) else ""
        tail = re.match(f"[{re.escape(AFTER)}]*", after)[0] if isinstance(after, NavigableString) else ""
        if not head + tail:
            continue
        whole = formula.wrap(page.new_tag("span", attrs={"class": "unbroken"}))
        if head:
            whole.insert(0, head)
            before.replace_with(before[: -len(head)])
        if tail:
            whole.append(tail)
            after.replace_with(after[len(tail) :])


def parts_of(tex: str, mark: str) -> list[str]:
    """Split TeX at a command that stands outside all braces and environments."""
    depth, parts = 0, [""]
    for piece in re.split(r"(\\begin\b|\\end\b|\\left\b|\\right\b|\\\\|\\q?quad\b|\\[^a-zA-Z]|[{}])", tex):
        if piece == mark and not depth:
            parts.append("")
            continue
        depth += piece in ("{", r"\begin", r"\left")
        depth -= piece in ("}", r"\end", r"\right")
        parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


def let_equations_flow(page: BeautifulSoup) -> None:
    r"""What ``\qquad`` separates in an equation stands side by side where there is room, else one below the other."""
    for block in page.select("div.math"):
        text = block.find(string=re.compile(r"\\\["))
        tex = text.strip().removeprefix(r"\[").removesuffix(r"\]").strip() if text else ""
        while wrapped := WRAPPED.fullmatch(tex):
            tex = wrapped[2].strip()
        if r"\qquad" not in tex or "&" in tex:
            continue
        flow = page.new_tag("div", attrs={"class": "flow"})
        for line in parts_of(tex, "\\\\"):
            row = page.new_tag("div", attrs={"class": "flow-line"})
            flow.append(row)
            for part in parts_of(line, r"\qquad"):
                formula = page.new_tag("span", attrs={"class": "math notranslate nohighlight"})
                formula.string = rf"\(\displaystyle {part}\)"
                row.extend([formula, " "])
        text.replace_with(flow)


MENDS = (
    fold_with_details,
    name_code_folds,
    drop_repeated_ids,
    skip_header_links,
    keep_punctuation_with_formulas,
    let_equations_flow,
)


def mended(html: str) -> str:
    """An article's HTML after all mends."""
    page = BeautifulSoup(html, "html.parser")
    for mend in MENDS:
        mend(page)
    return str(page)


def mend_page(app: Sphinx, pagename: str, templatename: str, context: dict[str, Any], doctree: Any) -> None:
    if app.builder.format == "html" and doctree is not None and context.get("body"):
        context["body"] = mended(context["body"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("html-page-context", mend_page, priority=550)  # after theme_fixes (500)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
