"""Figures to take hold of: moved by mouse, finger and keyboard, with the numbers that Python has.

A figure is a row of ``FIGURES`` in ``figure_table``; all take the same walk.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator

import numpy as np
import pytest
from axe import COLOURS, violations
from book_build import BOOK, HTML, chapter
from figure_hand import Hand, press, says
from figure_table import FIGURES, code, kept, lookup, sampled
from kept import some_always
from playwright.sync_api import Browser, Page, expect

OVER_THE_EDGE = """el => [...el.querySelectorAll("svg *, button, input, span, p")].filter((part) => {
  const { left, right } = part.getBoundingClientRect();
  return left < 0 || right > innerWidth;
}).map((part) => part.outerHTML)"""


@pytest.fixture
def page(site: str, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", has_touch=True)
    context.route("**/npm-mathjax/**", lambda route: route.abort())  # other tests look at formulas
    page = context.new_page()
    page.set_default_timeout(10_000)
    yield page
    context.close()


@pytest.mark.parametrize("figure", some_always(FIGURES, FIGURES[:1]), ids=lambda figure: figure.name)
def test_a_figure_is_moved_and_has_pythons_numbers(site, page, figure):
    page.goto(f"{site}{figure.chapter}.html")
    found = page.locator(figure.selector)
    found.evaluate("el => (el.hidden ? el.previousElementSibling : el).scrollIntoView()")
    expect(found.locator(".control").first).to_be_visible()
    hand = Hand(page, found, figure.python, figure.start)

    hand.agrees()
    rng = np.random.default_rng(5)
    others = [figure.other(rng) for _ in range(10)]
    all_set = """(el, others) => others.map((to) => {
      Object.entries(to).forEach(([name, value]) => el.model.set(name, value));
      return structuredClone(el.model.values);
    })"""
    for settings in found.evaluate(all_set, others):
        hand.agrees(settings)

    press("As at first")(hand)
    assert {name: hand.settings()[name] for name in hand.start} == hand.start
    found.locator(".task").evaluate("task => task.classList.remove('done')")  # one of the others may have done it
    for step in figure.walk:
        step(hand)
        hand.agrees()
    press("As at first")(hand)
    expect(found.locator(".task")).not_to_have_class("task done")
    for step in figure.task:
        step(hand)
    expect(found.locator(".task")).to_have_class("task done")
    says("The task is done.")(hand)

    assert violations(page, within=figure.selector) == []
    page.set_viewport_size({"width": 375, "height": 900})
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=figure.selector, options=COLOURS) == []
    assert found.evaluate(OVER_THE_EDGE) == []
    for handle in found.locator(".handle:has(.grip)").all():
        assert min(handle.bounding_box()["width"], handle.bounding_box()["height"]) >= 24

    page.emulate_media(media="print")
    expect(found.locator(".control").first).to_be_hidden()
    if figure.element.has_attr("hidden"):
        expect(found).to_be_hidden()
    else:
        expect(found.locator("svg").first).to_be_visible()


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
def test_a_figure_stands_still_without_its_module(figure):
    """A drawing of the chapter stands before it, or it has a form of its own; what is hidden takes no room."""
    drawing = figure.element.find_previous_sibling("div")
    if figure.element.has_attr("hidden"):
        assert "cell" in drawing["class"] and drawing.select_one("img[alt], svg"), drawing.get("class")
    else:
        assert len(figure.element.svg["aria-label"]) > 30


def test_still_forms_show_what_figures_start_with():
    still = {figure.name: figure.element.svg for figure in FIGURES if not figure.element.has_attr("hidden")}
    assert set(still) == {"mask", "cache", "split", "state"}
    assert "pot: the, pot" in still["mask"]["aria-label"]
    assert len(still["mask"].select("rect[fill-opacity='0.85']")) == 11
    assert len(still["cache"].select("rect")) == 6 * 4 * 2
    assert len(still["split"].select("rect")) == 3 * 4 * 6
    assert len(still["state"].select("circle")) == 12
    assert still["state"]["aria-label"].endswith("their sum answers A 0.50, B 0.50, C −0.75")


def test_without_javascript_and_on_paper_the_drawing_stands(site, browser, page):
    """On the first page the figure takes the drawing's place on the screen."""
    page.goto(f"{site}index.html")
    expect(page.locator(f"{FIGURES[0].selector} svg").first).to_be_visible()
    drawing = page.locator(".cell_output img").first
    expect(drawing).to_be_hidden()
    page.emulate_media(media="print")
    expect(drawing).to_be_visible()
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(f"{site}index.html")
    expect(still.locator(".cell_output img").first).to_be_visible()
    expect(still.locator(FIGURES[0].selector)).to_be_hidden()
    context.close()


def test_figures_start_as_their_chapters_cells():
    start = {figure.name: figure.start for figure in FIGURES}
    assert lookup(**start["lookup"])["weights"][0] == pytest.approx(0.62, abs=0.005), "as in the printed cell"
    printed = chapter("multi-head-attention").printed("def grouped(Q, K, V, allowed)")
    lines = re.findall(r"(\d+) heads, (\d+) of keys: (\d+) projections\D+(\d+) without\D+(\d+) numbers", printed)
    assert len(lines) == 3
    for _, groups, *numbers in (map(int, line) for line in lines):
        found = kept(**start["cache"] | {"groups": groups})
        assert [found["projected"], found["without"], found["kept"]] == numbers
    cell = code("small-language-model", "nucleus = np.where")
    found = sampled(**start["sampling"])
    assert np.allclose(found["drawn"][0], cell["nucleus"]) and np.allclose(found["chances"][0], cell["chances"])
    head = code("hand-designed-heads", "def signs(", "def softmax_rows(", "def partner_head(", "def examine(")
    assert head["text"] == start["head"]["text"] and start["head"]["scale"] == 7


def test_modules_are_whole_and_small():
    """anywidget and MyST take one file each."""
    modules = sorted((HTML / "_static").glob("figure-*.js"))
    assert {f"figure-{figure.name}.js" for figure in FIGURES} == {module.name for module in modules}
    assert len(modules) == len(list((BOOK / "_ext" / "live_figures" / "modules").glob("figure-*.js")))
    for module in modules:
        text = module.read_text(encoding="utf-8")
        assert not re.search(r"^import ", text, re.MULTILINE) and text.count("export default { render };") == 1
        assert len(gzip.compress(text.encode())) <= 12_000, module.name
