"""What a reader changed in live cells is there again another day, also where the book has changed since."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe import violations
from live_site import build, served
from pyodide_core import pyodide_core

HEAD = """
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Cells
"""
FIRST = "a = 6\nprint('six is', a)"
TWICE = "print('twice', 2 * a)"
THRICE = "print('a is', a)\nprint('thrice', 3 * a)"
SHOWN = """class Shown:
    def __init__(self, html):
        self.html = html

    def _repr_html_(self):
        return self.html"""
TABLE = 'Shown(f"<table class=dataframe><tr><th scope=row>number<td>{a}</table>")'
DRAWING = 'Shown(f"<svg width=60 height=60 role=img aria-label=square><rect width={9 * a} height=50 /></svg>")'
CELLS = [FIRST, TWICE, THRICE, TWICE, SHOWN, TABLE, DRAWING]
# the book of another day: a cell more above, and another name in the third, now the fourth
CHANGED = ["print('new here')", FIRST, TWICE, THRICE.replace("thrice", "three times"), TWICE, SHOWN, TABLE]


def page_of(cells: list[str]) -> str:
    return HEAD + "".join(f"\n```{{code-cell}} ipython3\n{code}\n```\n" for code in cells)


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with served(build(tmp_path_factory.mktemp("kept"), cells=page_of(CELLS))) as found:
        yield found


@pytest.fixture(scope="module")
def changed_page(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("changed"), cells=page_of(CHANGED)) / "cells.html"


@pytest.fixture
def reader(open_page, address):
    return open_page(f"{address}cells.html", pyodide_core())


def another_day(reader) -> None:
    """The tab is closed and the page opened again in the same browser."""
    page = reader.context.new_page()
    page.on("pageerror", lambda error: reader.faults.append(str(error)))
    page.goto(reader.page.url)
    reader.page.close()
    reader.page = page


def codes(reader) -> list[str]:
    texts = reader.page.locator(".cell_input .highlight pre").all_text_contents()
    return [text.removesuffix("\n") for text in texts]


def test_edits_are_there_on_another_day_until_reset(reader):
    reader.cell(2).edit("print('mine')")
    another_day(reader)
    assert codes(reader) == [FIRST, "print('mine')", *CELLS[2:]], "of two cells with one text it is the right one"
    assert reader.cell(2).state == "Your edit is kept."
    assert "Your edits are kept (cell 2)." in reader.page.locator(".live-lost").inner_text()
    assert "variables" not in reader.page.locator(".live-lost").inner_text(), "none were made in this tab"
    reader.cell(4).edit("print('mine too')")
    reader.cell(2).press("Reset")
    another_day(reader)
    assert codes(reader) == [*CELLS[:3], "print('mine too')", *CELLS[4:]]
    reader.cell(4).press("Reset")
    another_day(reader)
    assert codes(reader) == CELLS and reader.page.locator(".live-lost").count() == 0


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_an_edit_stays_with_its_cell_and_is_reached_where_the_cell_has_changed(reader, changed_page, mode):
    mine = "print('<b>mine</b>', a)"
    reader.cell(2).edit("print('second')")
    reader.cell(3).edit(mine)
    reader.context.route("**/cells.html", lambda route: route.fulfill(path=changed_page))
    another_day(reader)
    reader.page.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)
    assert codes(reader)[:5] == [*CHANGED[:2], "print('second')", *CHANGED[3:5]]
    kept = reader.page.locator(".live-kept")
    assert reader.cell(4).element.locator(".live-kept").count() == kept.count() == 1
    said = kept.locator("summary").inner_text()
    assert "book’s code has changed" in said and "cell 3 then" in said and "does not run" in said
    kept.locator("summary").click()
    assert kept.locator("pre").inner_text() == mine
    assert violations(reader.page, within="article") == []
    # an edit of the new text is another one, and neither ends the other
    reader.cell(4).edit("print('newer')").press("Reset")
    another_day(reader)
    assert codes(reader)[3] == CHANGED[3] and kept_texts(reader) == [mine]
    reader.page.locator(".live-kept summary").click()
    reader.page.get_by_role("button", name="Discard this text").click()
    assert reader.page.evaluate("document.activeElement.textContent") == "Run cell 4", "the focus is not lost"
    another_day(reader)
    assert kept_texts(reader) == [] and codes(reader)[2] == "print('second')"


def kept_texts(reader) -> list[str]:
    return reader.page.locator(".live-kept pre").all_text_contents()


# refuses what live cells store: the theme's own scripts need theirs
REFUSE = """for (const name of NAMES) {
    const own = Storage.prototype[name];
    Storage.prototype[name] = function (key, ...more) {
        if (key.startsWith("live-")) throw new DOMException("refused", "QuotaExceededError");
        return own.call(this, key, ...more);
    };
}"""


@pytest.mark.parametrize("refused", ["['setItem']", "['getItem', 'setItem', 'removeItem']"])
def test_a_browser_that_is_full_or_stores_nothing_is_no_error(address, open_page, refused):
    reader = open_page(f"{address}cells.html", None, script=REFUSE.replace("NAMES", refused))
    reader.cell(2).edit("print('lost')").press("Reset")
    reader.cell(3).edit("print('lost')")
    another_day(reader)
    assert codes(reader) == CELLS


def test_what_is_stored_in_a_wrong_shape_is_no_error_and_no_edit(reader):
    for wrong in ("{", "5", "null", '"text"', "{}", '{"length": 1}', '[null, 3, "x", {}, {"text": 1}]'):
        reader.page.evaluate("wrong => { localStorage[`live-edits:${location.pathname}`] = wrong }", wrong)
        another_day(reader)
        assert codes(reader) == CELLS and kept_texts(reader) == [], wrong
    reader.cell(2).edit("print('mine')")
    another_day(reader)
    assert codes(reader)[1] == "print('mine')", "and it is made good"


def test_one_wrong_edit_does_not_cost_the_others(reader):
    reader.cell(2).edit("print('mine')")
    reader.cell(3).edit("print('lost')")
    reader.page.evaluate("""() => {
        const key = `live-edits:${location.pathname}`;
        const edits = JSON.parse(localStorage[key]);
        edits.find(({ text }) => text.includes("lost")).text = ["print('lost')"];
        localStorage[key] = JSON.stringify(edits);
    }""")
    another_day(reader)
    assert codes(reader)[1:3] == ["print('mine')", THRICE]


def test_what_was_kept_runs_before_later_cells(reader):
    reader.cell(1).edit("a = 8")
    another_day(reader)
    assert "Out of date" in reader.cell(2).element.inner_text()
    assert reader.cell(2).run().printed() == "twice 16\n"
    assert reader.cell(1).output.is_visible(), "the reader sees that it ran"
    another_day(reader)
    assert "variables" not in reader.page.locator(".live-lost").inner_text(), "that they were lost is another tab's"


LOOKS = """node => {
    const ours = [getComputedStyle(node), getComputedStyle(node.closest('.cell_output'))];
    return JSON.stringify(ours.map(({ opacity, color, outlineStyle, borderTopStyle }) =>
        [opacity, color, outlineStyle, borderTopStyle]));
}"""


def test_tables_and_drawings_are_dimmed_and_nothing_is_on_paper(reader):
    shown = [
        *(reader.cell(number).published.locator("pre").first for number in (2, 3)),
        reader.cell(6).published.locator("table"),
        reader.cell(7).published.locator("svg"),
    ]
    fresh = [node.evaluate(LOOKS) for node in shown]
    reader.page.emulate_media(media="print")
    on_paper = [node.evaluate(LOOKS) for node in shown]
    reader.page.emulate_media(media="screen")
    reader.cell(1).edit("a = 7")
    dimmed = [node.evaluate(LOOKS) for node in shown]
    assert not [now for now, before in zip(dimmed, fresh, strict=True) if now == before]
    reader.page.wait_for_timeout(400)  # the theme needs 300 ms to make boxes that scroll reachable by keyboard
    for mode in ("light", "dark"):
        reader.page.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)
        assert violations(reader.page, within="article") == []
    reader.page.evaluate("() => { document.documentElement.dataset.theme = 'light' }")
    reader.page.emulate_media(media="print")
    assert [node.evaluate(LOOKS) for node in shown] == on_paper
