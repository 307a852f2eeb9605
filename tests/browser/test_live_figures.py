"""Figures to take hold of: moved by mouse, finger and keyboard, with the numbers that Python has."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from axe import COLOURS, violations
from book_build import BOOK, chapter
from playwright.sync_api import Browser, Page, expect

SITE = BOOK / "_ext" / "live_figures" / "site"
FIGURE = ".live-figure[data-module='figure-lookup.js']"
SET = """(el, to) => {
  Object.entries(to).forEach(([name, value]) => el.model.set(name, value));
  return el.model.get("result");
}"""
START = {"query": [1, 0], "keys": [[2, 0], [1, 1], [-1, 0]], "temperature": 1}


def looked_up(query, keys, temperature, values=(4, 3, 0)) -> tuple[np.ndarray, float]:
    """Weights and output, computed as the first page's cell does."""
    powers = np.exp(np.array(keys) @ np.array(query) / np.sqrt(2) / temperature)
    weights = powers / powers.sum()
    return weights, float(weights @ np.array(values))


@pytest.fixture
def page(site: str, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", has_touch=True)
    page = context.new_page()
    page.goto(f"{site}index.html")
    expect(page.locator(f"{FIGURE} svg").first).to_be_visible()
    yield page
    context.close()


def result(page: Page) -> dict[str, Any]:
    return page.locator(FIGURE).evaluate("el => el.model.get('result')")


def agrees(page: Page, query, keys, temperature) -> None:
    weights, output = looked_up(query, keys, temperature)
    found = result(page)
    assert np.abs(np.array(found["weights"]) - weights).max() < 1e-9
    assert abs(found["output"] - output) < 1e-9


def test_the_numbers_are_pythons(page):
    agrees(page, **START)
    assert result(page)["weights"][0] == pytest.approx(0.62, abs=0.005), "as in the printed cell"
    rng = np.random.default_rng(5)
    for _ in range(10):
        setting = {
            "query": rng.uniform(-2, 2, 2).round(2).tolist(),
            "keys": rng.uniform(-1.5, 1.5, (3, 2)).round(2).tolist(),
            "temperature": float(10 ** rng.uniform(-1, 1)),
        }
        page.locator(FIGURE).evaluate(SET, setting)
        agrees(page, **setting)


def test_moved_by_mouse_finger_and_keyboard_and_set_back(page):
    figure = page.locator(FIGURE)
    query = figure.get_by_role("slider", name="query")
    grip = query.locator(".grip")
    grip.scroll_into_view_if_needed()
    box = grip.bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] - 30, steps=4)
    page.mouse.up()
    moved = figure.evaluate("el => el.model.get('query')")
    assert moved[0] < 0.7 and moved[1] > 0.1
    agrees(page, **START | {"query": moved})

    query.focus()
    page.keyboard.press("ArrowDown")
    lower = figure.evaluate("el => el.model.get('query')")
    assert lower == pytest.approx([moved[0], moved[1] - 0.1])
    assert "up" in query.get_attribute("aria-valuetext")

    dog = figure.get_by_role("slider", name="key: dog")
    before = figure.evaluate("el => el.model.get('keys')[1]")
    box = dog.locator(".grip").bounding_box()
    touch = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    client = page.context.new_cdp_session(page)
    for kind, shift in (("touchStart", 0), ("touchMove", 15), ("touchMove", 40)):
        at = {"x": touch["x"] + shift, "y": touch["y"]}
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert figure.evaluate("el => el.model.get('keys')[1]")[0] > before[0] + 0.2

    temperature = figure.get_by_role("slider", name="temperature")
    temperature.focus()
    page.keyboard.press("ArrowLeft")
    assert figure.evaluate("el => el.model.get('temperature')") < 1
    figure.get_by_role("button", name="As at first").click()
    agrees(page, **START)


def test_the_result_is_said_and_the_task_ticks_itself(page):
    figure = page.locator(FIGURE)
    expect(figure.get_by_role("status")).to_contain_text("cat gets most, 0.62 of the weight; the output is 3.40")
    task = figure.locator(".task")
    expect(task).not_to_have_class("task done")
    figure.get_by_role("slider", name="query").focus()
    for _ in range(4):
        page.keyboard.press("Shift+ArrowLeft")
    expect(task).to_have_class("task done")
    expect(figure.get_by_role("status")).to_contain_text("moon gets most")


@pytest.mark.parametrize("width", [375, 1280])
def test_accessible_and_within_the_page_in_both_colours(page, width):
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, within=FIGURE) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=FIGURE, options=COLOURS) == []
    for grip in page.locator(f"{FIGURE} .handle").all():
        assert min(grip.bounding_box()["width"], grip.bounding_box()["height"]) >= 24


def test_without_javascript_and_on_paper_the_drawing_stands(site, browser, page):
    drawing = page.locator(".cell_output img").first
    expect(drawing).to_be_hidden()
    page.emulate_media(media="print")
    expect(drawing).to_be_visible()
    expect(page.locator(FIGURE)).to_be_hidden()
    context = browser.new_context(java_script_enabled=False)
    still = context.new_page()
    still.goto(f"{site}index.html")
    expect(still.locator(".cell_output img").first).to_be_visible()
    expect(still.locator(FIGURE)).to_be_hidden()
    context.close()


# --- the clock hands of rotary positions ----------------------------------------------------------------

HANDS = ".live-figure[data-module='figure-rotary.js']"


def rotary(query, key, places, base) -> float:
    """The score of two vectors of pairs of length one, turned as the chapter's `rotate` does."""

    def turned(angles, place) -> np.ndarray:
        at = np.array(angles) + place * float(base) ** (-np.arange(len(angles)) / len(angles))
        return np.stack([np.cos(at), np.sin(at)])

    return float((turned(query, places[0]) * turned(key, places[1])).sum())


@pytest.fixture
def hands(site: str, browser: Browser) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{site}positional-encoding.html")
    page.locator("div.cell:has(+ .live-figure)").scroll_into_view_if_needed()
    expect(page.locator(f"{HANDS} svg")).to_be_visible()
    yield page.locator(HANDS)
    context.close()


def test_the_score_of_turned_hands_is_pythons(hands):
    start = json.loads(chapter("positional-encoding").article.select_one(HANDS)["data-start"])
    start.pop("task")
    rng = np.random.default_rng(6)
    others = [{"places": rng.integers(0, 60, 2).tolist(), "base": float(10 ** rng.uniform(1, 6))} for _ in range(10)]
    for setting in (start, *(start | other for other in others)):
        found = hands.evaluate(
            SET,
            setting,
        )
        assert abs(found["score"] - rotary(**setting)) < 1e-9


def test_hands_are_turned_by_keyboard_mouse_and_together(hands):
    said = hands.get_by_role("status")
    expect(said).to_contain_text("at places 3 and 0, a difference of 3")
    first = said.inner_text().split(" at ")[0]
    hands.get_by_role("slider", name="key at place").focus()
    hands.page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("at places 3 and 1, a difference of 2")
    assert said.inner_text().split(" at ")[0] != first
    expect(hands.locator(".task")).not_to_have_class("task done")
    query = hands.get_by_role("slider", name="query at place")
    box = query.bounding_box()
    hands.page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect(said).to_contain_text("at places 30 and 1")
    hands.get_by_role("button", name="As at first").click()
    hands.get_by_role("button", name="Move both by 7 places").click()
    expect(said).to_contain_text(f"{first} at places 10 and 7, a difference of 3")
    expect(hands.locator(".task")).to_have_class("task done")


@pytest.mark.parametrize("width", [375, 1280])
def test_hands_are_accessible_within_the_page_and_absent_on_paper(hands, width):
    page = hands.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, within=HANDS) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=HANDS, options=COLOURS) == []
    expect(page.locator("div.cell:has(+ .live-figure) img")).to_be_visible()
    page.emulate_media(media="print")
    expect(hands).to_be_hidden()


# --- a mask to paint ------------------------------------------------------------------------------------

MASK = ".live-figure[data-module='figure-mask.js']"


def heard(mask, layers) -> np.ndarray:
    """Who has heard of whom: a token hears what those it may look at have heard, and keeps what it has."""
    step = np.array(mask, dtype=bool) | np.eye(len(mask), dtype=bool)
    return np.linalg.matrix_power(step.astype(int), layers) > 0


@pytest.fixture
def mask(site: str, browser: Browser) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light", has_touch=True)
    page = context.new_page()
    page.goto(f"{site}self-attention.html")
    page.locator(MASK).scroll_into_view_if_needed()
    expect(page.locator(f"{MASK} [role=checkbox]").first).to_be_visible()
    yield page.locator(MASK)
    context.close()


def test_what_is_heard_through_layers_is_pythons(mask):
    start = json.loads(chapter("self-attention").article.select_one(MASK)["data-start"])
    rng = np.random.default_rng(7)
    others = [{"mask": rng.integers(0, 2, (6, 6)).tolist(), "layers": int(rng.integers(1, 6))} for _ in range(10)]
    for setting in ({name: start[name] for name in ("mask", "layers")}, *others):
        found = mask.evaluate(
            SET,
            setting,
        )
        assert (np.array(found["reach"], dtype=bool) == heard(**setting)).all()


def test_a_mask_is_painted_by_mouse_finger_and_keyboard(mask):
    cell = {
        name: mask.get_by_role("checkbox", name=f"{name} may look at she", exact=True)
        for name in ("tea", "from", "pot")
    }
    page = mask.page
    cell["tea"].click()
    expect(cell["tea"]).to_have_attribute("aria-checked", "true")
    page.mouse.move(*centre(cell["tea"]))
    page.mouse.down()  # wipes out, and goes on doing so
    page.mouse.move(*centre(mask.get_by_role("checkbox", name="tea may look at poured", exact=True)), steps=4)
    page.mouse.up()
    assert mask.evaluate("el => el.model.get('mask')[2]") == [0, 0, 1, 0, 0, 0]
    cell["from"].tap()
    expect(cell["from"]).to_have_attribute("aria-checked", "true")
    cell["from"].focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press(" ")
    expect(cell["pot"]).to_have_attribute("aria-checked", "true")
    assert mask.locator("[role=checkbox][tabindex='0']").count() == 1, "one stop of the tab key"


def test_the_task_of_the_mask_takes_more_layers(mask):
    said = mask.get_by_role("status")
    expect(said).to_contain_text("“pot” has heard of 3 of 6 tokens, but not of “she”")
    expect(mask.locator(".task")).not_to_have_class("task done")
    mask.get_by_role("button", name="all", exact=True).click()
    expect(said).to_contain_text("also of “she”")
    expect(mask.locator(".task")).not_to_have_class("task done")
    mask.get_by_role("button", name="window of two").click()
    mask.get_by_role("slider", name="layers").focus()
    for _ in range(3):
        mask.page.keyboard.press("ArrowRight")
    expect(said).to_contain_text("After 5 layers “pot” has heard of 6 of 6 tokens")
    expect(mask.locator(".task")).to_have_class("task done")


@pytest.mark.parametrize("width", [375, 1280])
def test_the_mask_is_accessible_and_fits(mask, width):
    page = mask.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, within=MASK) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=MASK, options=COLOURS) == []


def test_the_mask_stands_without_javascript(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}self-attention.html")
    still = page.locator(f"{MASK} svg")
    expect(still).to_be_visible()
    assert "pot: the, pot" in still.get_attribute("aria-label")
    assert still.locator("rect[fill-opacity='0.85']").count() == 11
    context.close()


# --- the cache of keys and values -----------------------------------------------------------------------

CACHE = ".live-figure[data-module='figure-cache.js']"


@pytest.fixture
def cache(site: str, browser: Browser) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{site}multi-head-attention.html")
    page.locator(CACHE).scroll_into_view_if_needed()
    expect(page.locator(f"{CACHE} .control").first).to_be_visible()
    yield page.locator(CACHE)
    context.close()


def test_the_cache_holds_what_the_chapters_cell_counts(cache):
    printed = chapter("multi-head-attention").printed("def grouped(Q, K, V, allowed)")
    lines = re.findall(r"(\d+) heads, (\d+) of keys: (\d+) projections\D+(\d+) without\D+(\d+) numbers", printed)
    assert len(lines) == 3
    for heads, groups, projected, without, kept in (map(int, line) for line in lines):
        assert heads == 4
        found = cache.evaluate("(el, to) => { el.model.set('groups', to); return el.model.get('result') }", groups)
        assert found == {"kept": kept, "projected": projected, "without": without}
    for tokens in range(1, 9):
        found = cache.evaluate("(el, to) => { el.model.set('tokens', to); return el.model.get('result') }", tokens)
        once = sum(2 * (step + 1) for step in range(tokens))  # keys and values of all tokens so far, at each step
        assert found == {"kept": 2 * tokens * 1 * 2, "projected": 2 * tokens, "without": once}
        assert cache.locator("svg rect").count() == 2 * tokens


def test_the_cache_is_filled_by_press_and_keyboard(cache):
    said = cache.get_by_role("status")
    expect(said).to_contain_text("holds 96 numbers")
    cache.get_by_role("button", name="MQA: 1").click()
    expect(said).to_contain_text("holds 24 numbers")
    expect(cache.locator(".task")).to_have_class("task done")
    cache.get_by_role("button", name="Write a token").focus()
    cache.page.keyboard.press("Enter")
    expect(said).to_contain_text("holds 28 numbers. 14 projections so far; without the cache 56.")
    cache.get_by_role("button", name="As at first").click()
    expect(said).to_contain_text("holds 96 numbers")


@pytest.mark.parametrize("width", [375, 1280])
def test_the_cache_is_accessible_and_fits(cache, width):
    page = cache.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, within=CACHE) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=CACHE, options=COLOURS) == []


# --- the cube of groups ---------------------------------------------------------------------------------

GROUPS = ".live-figure[data-module='figure-groups.js']"


def labels(shape) -> dict[str, np.ndarray]:
    """The chapter's schemes."""
    b, t, f = np.indices(shape)
    T, d = shape[1:]
    return {
        "batch norm": f,
        "batch norm per step": t * d + f,
        "instance norm": b * d + f,
        "group norm": b * 2 + f // 3,
        "layer norm": b * T + t,
    }


@pytest.fixture
def groups(site: str, browser: Browser) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{site}normalization.html")
    page.locator("div.cell:has(+ .live-figure)").scroll_into_view_if_needed()
    expect(page.locator(f"{GROUPS} svg").first).to_be_visible()
    yield page.locator(GROUPS)
    context.close()


def test_mean_and_spread_of_a_group_are_pythons(groups):
    values = np.array(json.loads(chapter("normalization").article.select_one(GROUPS)["data-start"])["values"])
    assert values.shape == (3, 4, 6)
    rng = np.random.default_rng(8)
    for scheme, label in labels(values.shape).items():
        for _ in range(3):
            chosen = [int(rng.integers(size)) for size in values.shape]
            found = groups.evaluate(
                SET,
                {"scheme": scheme, "chosen": chosen},
            )
            members = values[label == label[tuple(chosen)]]
            assert found["count"] == members.size
            assert abs(found["mean"] - members.mean()) < 1e-9 and abs(found["spread"] - members.std()) < 1e-9


def test_a_number_is_chosen_by_mouse_and_keyboard_and_the_task_ticks_itself(groups):
    said = groups.get_by_role("status")
    expect(said).to_contain_text("layer norm: 6 numbers")
    expect(said).to_contain_text("stays in its sequence and stays in its time step")
    groups.get_by_role("button", name="sequence 2, time 1, feature 1").click()
    assert groups.evaluate("el => el.model.get('chosen')") == [1, 0, 0]
    groups.page.keyboard.press("ArrowDown")
    groups.page.keyboard.press("Shift+ArrowRight")
    assert groups.evaluate("el => el.model.get('chosen')") == [2, 1, 0]
    assert groups.locator(".cell[tabindex='0']").count() == 1
    groups.get_by_role("button", name="batch norm", exact=True).click()
    expect(said).to_contain_text("batch norm: 12 numbers")
    expect(groups.locator(".task")).not_to_have_class("task done")
    groups.get_by_role("button", name="batch norm per step").click()
    expect(groups.locator(".task")).to_have_class("task done")
    groups.get_by_role("button", name="As at first").click()
    expect(said).to_contain_text("layer norm: 6 numbers")


@pytest.mark.parametrize("width", [375, 1280])
def test_the_cube_is_accessible_and_fits(groups, width):
    page = groups.page
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page, within=GROUPS) == []
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert violations(page, within=GROUPS, options=COLOURS) == []


def centre(place) -> tuple[float, float]:
    box = place.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_a_figure_starts_as_the_printed_one_and_is_small():
    start = json.loads(chapter("index").article.select_one(FIGURE)["data-start"])
    assert {name: start[name] for name in START} == START and start["values"] == [4, 3, 0]
    for module in SITE.glob("figure-*.js"):
        assert len(gzip.compress(module.read_bytes())) <= 12_000, module.name
