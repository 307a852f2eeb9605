"""Figures to take hold of: moved by mouse, finger and keyboard, with the numbers that Python has.

A figure is a row of ``FIGURES``; all take the same walk.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from axe import COLOURS, violations
from book_build import BOOK, HTML, chapter
from playwright.sync_api import Browser, Locator, Page, expect

Setting = dict[str, Any]
Step = Callable[["Hand"], None]


# --- what a reader does, and what is to be seen then ----------------------------------------------------


@dataclass
class Hand:
    """A figure in an open page, and what Python makes of its settings."""

    page: Page
    figure: Locator
    python: Callable[..., Setting]
    start: Setting

    def settings(self) -> Setting:
        return self.figure.evaluate("el => el.model.values")

    def agrees(self, settings: Setting | None = None) -> None:
        """The figure's result is Python's: of what the model holds, or of settings made with one call."""
        found = settings or self.settings()
        for name, right in self.python(**{name: found[name] for name in self.start}).items():
            numbers = np.array(found["result"][name], dtype=float)  # None becomes NaN
            assert np.allclose(numbers, np.array(right, dtype=float), rtol=0, atol=1e-9, equal_nan=True), (found, right)

    def part(self, role: str, name: str) -> Locator:
        return self.figure.get_by_role(role, name=name, exact=True)

    def middle(self, role: str, name: str) -> tuple[float, float]:
        part = self.part(role, name)
        part = part.locator(".grip") if part.locator(".grip").count() else part
        part.scroll_into_view_if_needed()
        box = part.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press(name: str) -> Step:
    return lambda hand: hand.part("button", name).click()


def keys(role: str, name: str, *pressed: str) -> Step:
    def step(hand: Hand) -> None:
        hand.part(role, name).focus()
        for key in pressed:
            hand.page.keyboard.press(key)

    return step


def pull(role: str, name: str, across: float, down: float) -> Step:
    """By mouse."""

    def step(hand: Hand) -> None:
        x, y = hand.middle(role, name)
        hand.page.mouse.move(x, y)
        hand.page.mouse.down()
        hand.page.mouse.move(x + across, y + down, steps=4)
        hand.page.mouse.up()

    return step


def finger(role: str, name: str, across: float = 0, down: float = 0) -> Step:
    """A tap, or a pull by touch."""

    def step(hand: Hand) -> None:
        x, y = hand.middle(role, name)
        client = hand.page.context.new_cdp_session(hand.page)
        for share, kind in ((0, "touchStart"), (0.4, "touchMove"), (1, "touchMove")):
            if share == 0 or across or down:
                points = [{"x": x + share * across, "y": y + share * down}]
                client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        hand.page.evaluate("() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")

    return step


def types(name: str, text: str) -> Step:
    return lambda hand: hand.part("textbox", name).fill(text)


def says(text: str) -> Step:
    return lambda hand: expect(hand.figure.get_by_role("status")).to_contain_text(text)


def holds(**wanted: Any) -> Step:
    """What the model holds: a value, or a function that says whether it is right."""

    def step(hand: Hand) -> None:
        found = hand.settings()
        for name, right in wanted.items():
            assert right(found[name]) if callable(right) else found[name] == right, (name, found[name])

    return step


def shows(selector: str, count: int) -> Step:
    return lambda hand: expect(hand.figure.locator(selector)).to_have_count(count)


# --- what Python has ------------------------------------------------------------------------------------


@cache
def code(name: str, *fragments: str) -> dict[str, Any]:
    """The names that those cells of a chapter define whose source contains a fragment."""
    known: dict[str, Any] = {"np": np}
    for cell in chapter(name).notebook.cells:
        if cell.cell_type == "code" and any(fragment in cell.source for fragment in fragments):
            exec(cell.source, known)
    return known


def lookup(query, keys, values, temperature) -> Setting:
    powers = np.exp(np.array(keys) @ np.array(query) / np.sqrt(2) / temperature)
    weights = powers / powers.sum()
    return {"weights": weights, "output": weights @ np.array(values)}


def rotary(query, key, places, base) -> Setting:
    def turned(angles, place) -> np.ndarray:
        at = np.array(angles) + place * float(base) ** (-np.arange(len(angles)) / len(angles))
        return np.stack([np.cos(at), np.sin(at)])

    return {"score": (turned(query, places[0]) * turned(key, places[1])).sum()}


def mask(mask, layers) -> Setting:
    """A token hears what those it may look at have heard, and keeps what it has."""
    step = np.array(mask, dtype=bool) | np.eye(len(mask), dtype=bool)
    return {"reach": np.linalg.matrix_power(step.astype(int), layers) > 0}


def kept(groups, width, tokens) -> Setting:
    again = sum(2 * (step + 1) for step in range(tokens))  # keys and values of all tokens so far, at each step
    return {"kept": 2 * tokens * groups * width, "projected": 2 * tokens, "without": again}


def grouped(values, scheme, chosen) -> Setting:
    numbers = np.array(values)
    b, t, f = np.indices(numbers.shape)
    T, d = numbers.shape[1:]
    label = {  # the chapter's schemes
        "batch norm": f,
        "batch norm per step": t * d + f,
        "instance norm": b * d + f,
        "group norm": b * 2 + f // 3,
        "layer norm": b * T + t,
    }[scheme]
    members = numbers[label == label[tuple(chosen)]]
    return {"count": members.size, "mean": members.mean(), "spread": members.std()}


def designed(wish, scale, text) -> Setting:
    its = code("hand-designed-heads", "def signs(", "def softmax_rows(", "def partner_head(", "def examine(")
    its["wish"] = np.array(wish)
    head = its["partner_head"](scale)
    _, weight, spread = its["examine"](head)
    return {"weights": its["look"](its["signs"](text), *head)[1], "weakest": weight.min(), "lost": len(spread)}


def written(keys, values, rule, gamma, marker) -> Setting:
    write = code("linear-attention", "def write(rule")["write"]
    gates = np.where(np.arange(len(keys)) == marker, 0.0, 1.0)
    values = np.outer(values, np.ones(4))
    with np.errstate(invalid="ignore"):  # keys that were not written are 0 / 0
        read = [write(rule, np.eye(8)[keys[:n]], values[:n], gates[:n], gamma) for n in range(1, len(keys) + 1)]
    return {"answers": np.array(read)[:, :3, 0]}


def sampled(texts, temperature, k, p) -> Setting:
    found: Setting = {"chances": [], "drawn": [], "kept": []}
    for text in texts:
        powers = np.exp(np.log(text["counts"]) / temperature)
        chances = powers / powers.sum()
        best = np.where(np.arange(len(chances)) < k, chances, 0) / chances[:k].sum()
        stays = (best > 0) & (best.cumsum() - best < p)
        found["chances"].append(chances)
        found["drawn"].append(np.where(stays, best, 0) / best[stays].sum())
        found["kept"].append(stays.sum())
    return found


# --- the figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """Where it is, what Python has, other settings, what is done with it, and what does its task."""

    name: str
    chapter: str
    python: Callable[..., Setting]  # of what is in the model, by its parameters' names
    other: Callable[[np.random.Generator], Setting]
    walk: tuple[Step, ...]
    task: tuple[Step, ...]

    @property
    def selector(self) -> str:
        return f".live-figure[data-module='figure-{self.name}.js']"

    @property
    def element(self):
        return chapter(self.chapter).article.select_one(self.selector)

    @property
    def start(self) -> Setting:
        """What it starts with, of what Python wants to know."""
        start = json.loads(self.element["data-start"])
        wanted = self.python.__code__.co_varnames[: self.python.__code__.co_argcount]
        return {name: start[name] for name in wanted}


def ones(*shape: int) -> Callable[[np.random.Generator], list]:
    return lambda rng: rng.integers(0, 2, shape).tolist()


FIGURES = [
    Figure(
        "lookup",
        "index",
        lookup,
        lambda rng: {
            "query": rng.uniform(-2, 2, 2).round(2).tolist(),
            "keys": rng.uniform(-1.5, 1.5, (3, 2)).round(2).tolist(),
            "temperature": float(10 ** rng.uniform(-1, 1)),
        },
        (
            says("cat gets most, 0.62 of the weight; the output is 3.40"),
            pull("slider", "query", -60, -30),
            holds(query=lambda query: query[0] < 0.7 and query[1] > 0.1),
            finger("slider", "key: dog", 40),
            holds(keys=lambda keys: keys[1][0] > 1.1),
            keys("slider", "temperature", "ArrowLeft"),
            holds(temperature=lambda temperature: temperature < 1),
        ),
        (keys("slider", "query", *4 * ["Shift+ArrowLeft"]), says("moon gets most")),
    ),
    Figure(
        "rotary",
        "positional-encoding",
        rotary,
        lambda rng: {"places": rng.integers(0, 60, 2).tolist(), "base": float(10 ** rng.uniform(1, 6))},
        (
            says("at places 3 and 0, a difference of 3"),
            keys("slider", "key at place", "ArrowRight"),
            says("at places 3 and 1, a difference of 2"),
            pull("slider", "query at place", 0, 0),
            holds(places=lambda places: 28 <= places[0] <= 32 and places[1] == 1),
            finger("slider", "base"),
            holds(base=lambda base: base < 10_000),
        ),
        (press("Move both by 7 places"), says("at places 10 and 7, a difference of 3")),
    ),
    Figure(
        "mask",
        "self-attention",
        mask,
        lambda rng: {"mask": ones(6, 6)(rng), "layers": int(rng.integers(1, 6))},
        (
            says("“pot” has heard of 3 of 6 tokens, but not of “she”"),
            pull("checkbox", "tea may look at she", 0, 0),
            pull("checkbox", "tea may look at she", 30, 0),  # wipes out, and goes on doing so
            holds(mask=lambda mask: mask[2] == [0, 0, 1, 0, 0, 0]),
            finger("checkbox", "from may look at she"),
            keys("checkbox", "from may look at she", "ArrowDown", "ArrowDown", " "),
            holds(mask=lambda mask: [line[0] for line in mask] == [1, 1, 0, 1, 0, 1]),
            shows("[role=checkbox][tabindex='0']", 1),
            press("all"),
            says("also of “she”"),
        ),
        (
            press("window of two"),
            keys("slider", "layers", *3 * ["ArrowRight"]),
            says("After 5 layers “pot” has heard of 6 of 6 tokens"),
        ),
    ),
    Figure(
        "cache",
        "multi-head-attention",
        kept,
        lambda rng: {"groups": int(rng.choice([1, 2, 4])), "tokens": int(rng.integers(1, 9))},
        (
            says("holds 96 numbers"),
            press("GQA: 2"),
            finger("button", "Write a token"),
            keys("button", "Write a token", "Enter"),
            holds(groups=2, tokens=8),
            shows("svg rect", 32),
            keys("slider", "tokens written", "ArrowLeft"),
            says("holds 56 numbers. 14 projections so far; without the cache 56."),
        ),
        (press("MQA: 1"), says("holds 24 numbers")),
    ),
    Figure(
        "groups",
        "normalization",
        grouped,
        lambda rng: {
            "scheme": str(
                rng.choice(["batch norm", "batch norm per step", "instance norm", "group norm", "layer norm"])
            ),
            "chosen": [int(rng.integers(size)) for size in (3, 4, 6)],
        },
        (
            says("layer norm: 6 numbers"),
            says("stays in its sequence and stays in its time step"),
            finger("button", "1, sequence 1, time 2, feature 2, in the group"),
            pull("button", "4, sequence 2, time 1, feature 1", 0, 0),
            holds(chosen=[1, 0, 0]),
            keys("button", "4, sequence 2, time 1, feature 1, in the group", "ArrowDown", "Shift+ArrowRight"),
            holds(chosen=[2, 1, 0]),
            shows(".cell[tabindex='0']", 1),
            press("batch norm"),
            says("batch norm: 12 numbers"),
        ),
        (press("batch norm per step"), says("reaches across sequences and stays in its time step")),
    ),
    Figure(
        "head",
        "hand-designed-heads",
        designed,
        lambda rng: {
            "wish": ones(4, 4)(rng),
            "scale": float(rng.uniform(0, 12)),
            "text": "".join(rng.choice(list("()[]"), rng.integers(1, 9))),
        },
        (
            says("the weakest row puts 0.997 on what it asks for"),
            says("568 rows find nothing"),
            pull("checkbox", "( asks for (", 40, 0),
            holds(wish=lambda wish: wish[0] == [1, 1, 0, 0]),
            finger("checkbox", "( asks for ("),
            keys("checkbox", "( asks for )", "ArrowDown", "ArrowLeft", " "),
            holds(wish=lambda wish: wish[:2] == [[0, 1, 0, 0], [0, 0, 0, 0]]),
            shows("[role=checkbox][tabindex='0']", 1),
            types("your text", "([x)]"),
            holds(text="([)]"),
            press("( behind the text"),
            holds(text="([)]("),
        ),
        (
            *(
                finger("checkbox", f"{sign} asks for {other}")
                for sign, partner in zip("()[]", ")(][", strict=True)
                for other in (sign, partner)
            ),
            says("every row finds something"),
            keys("slider", "scale", *11 * ["ArrowLeft"]),
            says("the weakest row puts 0.992"),
        ),
    ),
    Figure(
        "state",
        "linear-attention",
        written,
        lambda rng: {
            "values": rng.uniform(-3, 3, 12).round(2).tolist(),
            "rule": str(rng.choice(["sum", "decay", "gate", "delta"])),
            "gamma": float(rng.uniform(0.1, 1)),
            "marker": int(rng.integers(1, 12)),
        },
        (
            says("sum: after all pairs the state answers A 0.50 (newest −1.5), B 0.50 (newest 2), C −0.75"),
            press("delta"),
            says("A −1.50 (newest −1.5), B 2.00 (newest 2), C −2.00 (newest −2)"),
            pull("slider", "value of pair 10, key A", 0, -40),
            holds(values=lambda values: values[9] > -1),
            finger("slider", "value of pair 12, key B", 0, 40),
            holds(values=lambda values: values[11] < 2),
            keys("slider", "value of pair 3, key C", "Shift+ArrowUp", "ArrowDown", "ArrowRight", "ArrowUp"),
            holds(values=lambda values: values[2:4] == [1.25, 2.75]),
            shows(".handle[tabindex='0']", 1),
            press("decay"),
            keys("slider", "decay γ", *3 * ["ArrowLeft"]),
            holds(gamma=lambda gamma: abs(gamma - 0.8) < 1e-9),
        ),
        (press("gate"), keys("slider", "gate closes before pair", *3 * ["ArrowRight"]), says("A −1.25 (newest −1.5)")),
    ),
    Figure(
        "sampling",
        "small-language-model",
        sampled,
        lambda rng: {
            "temperature": float(10 ** rng.uniform(-1, 0.7)),
            "k": int(rng.integers(1, 8)),
            "p": float(rng.uniform(0.05, 1)),
        },
        (
            says("After “A cup of” 3 of 7 words may be drawn, “tea” with 0.53."),
            keys("slider", "top-k", *5 * ["ArrowLeft"]),
            says("2 of 7 words may be drawn, “tea” with 0.67."),
            pull("slider", "top-p", 0, 0),
            holds(p=lambda p: p in (0.5, 0.55)),
            finger("slider", "temperature"),
            holds(temperature=lambda temperature: temperature < 1),
        ),
        (keys("slider", "top-p", "ArrowRight", "ArrowRight"), says("4 of 7 words may be drawn")),
    ),
]
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


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.name)
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
    assert set(still) == {"mask", "cache", "state"}
    assert "pot: the, pot" in still["mask"]["aria-label"]
    assert len(still["mask"].select("rect[fill-opacity='0.85']")) == 11
    assert len(still["cache"].select("rect")) == 6 * 4 * 2
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
