"""Reading a chapter in a real browser: formulas, code, figures, questions, search, the keyboard and paper."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
from book_build import HTML, chapter, chapters
from browsers import launched
from kept import some_always
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, Page, expect

PAGES = some_always(["index", "notation", *chapters()], ["index", "self-attention"])
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 375, "height": 800}

# What is wrong on a page as it stands, by kind; everything but `stops` should be empty.
FAULTS = r"""() => {
  const shown = (element) => element.checkVisibility();
  const all = (selector) => [...document.querySelectorAll(`.bd-content ${selector}`)].filter(shown);
  const inWords = (element) => element.textContent.trim().slice(0, 60);
  const bar = (element) => {
    const style = getComputedStyle(element);
    if (style.overflowX === "visible" && style.overflowY === "visible") return false;
    const edges = (one, other) => parseFloat(style[one]) + parseFloat(style[other]);
    return element.offsetHeight - element.clientHeight - edges("borderTopWidth", "borderBottomWidth") > 1
      || element.offsetWidth - element.clientWidth - edges("borderLeftWidth", "borderRightWidth") > 1;
  };
  const wide = (element) => element.scrollWidth > element.clientWidth + 1;
  const formulas = all("mjx-container");
  const equations = formulas.filter((formula) => formula.hasAttribute("display") || formula.closest(".flow"));
  const window_ = document.documentElement.clientWidth;
  const cut = (equation) => {
    const own = equation.hasAttribute("display") ? equation : equation.closest(".flow");
    const ink = equation.firstElementChild.getBoundingClientRect();
    return [own, equation.closest("div.math") ?? own].some((place) => {
      const box = place.getBoundingClientRect();
      return ink.left < box.left - 1 || ink.right > Math.min(box.right, window_) + 1;
    });
  };

  const broken = [];
  for (const formula of formulas.filter((one) => !equations.includes(one))) {
    const walker = document.createTreeWalker(formula.closest("p, li, dd, td, div"), NodeFilter.SHOW_TEXT);
    walker.currentNode = formula;
    let next = walker.nextNode();
    while (next && formula.contains(next)) next = walker.nextNode();
    if (!next || !/^[.,;:!?)]/.test(next.data)) continue;
    const range = document.createRange();
    range.setStart(next, 0);
    range.setEnd(next, 1);
    if (range.getBoundingClientRect().left < formula.getBoundingClientRect().left - 1) broken.push(inWords(next));
  }

  const radios = new Set();
  const stops = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(
    (element) => {
      if (element.tabIndex < 0 || !shown(element) || element.disabled) return false;
      if (element.type !== "radio") return true;
      const first = !radios.has(element.name); // the tab key stops once in a group
      radios.add(element.name);
      return first;
    },
  );
  return {
    bars: formulas.concat(all(".math, .unbroken")).filter(bar).map(inWords),
    cut: equations.filter(cut).map(inWords),
    numbers: all(".eqno").filter((one) => one.getBoundingClientRect().right > window_).map(inWords),
    code: all("div.cell_input pre, section > div.highlight pre").filter(wide).map(inWords),
    broken,
    formulaStops: stops.filter((one) => one.matches("mjx-container")).length,
    stops: stops.length,
  };
}"""


@pytest.fixture(scope="module")
def with_bars(browser: Browser) -> Iterator[Browser]:
    """A browser that shows scroll bars, as most desktops do; Playwright hides them."""
    shown = launched(browser.browser_type, ignore_default_args=["--hide-scrollbars"])
    yield shown
    shown.close()


@pytest.fixture(scope="module")
def faults(site: str, with_bars: Browser) -> Iterator[Callable[[str, str], dict[str, Any]]]:
    page = with_bars.new_page(reduced_motion="reduce")

    @cache
    def seen(name: str, width: str) -> dict[str, Any]:
        page.set_viewport_size({"wide": WIDE, "narrow": NARROW}[width])
        opened(page, f"{site}{name}.html")
        return page.evaluate(FAULTS)

    yield seen
    page.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=WIDE, color_scheme="light", reduced_motion="reduce")
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


def opened(page: Page, address: str) -> None:
    """Go to a page and wait until its formulas stand."""
    page.goto(address)
    page.evaluate("window.MathJax?.startup?.promise")
    page.wait_for_function("!document.querySelector('mjx-container') || document.querySelector('[data-size]')")


# --- formulas, code, the tab key ------------------------------------------------------------------------


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_formulas_have_no_bars_and_equations_are_whole(name, width, faults):
    seen = faults(name, width)
    assert {kind: seen[kind] for kind in ("bars", "cut", "numbers")} == {"bars": [], "cut": [], "numbers": []}


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_no_line_begins_with_the_full_stop_of_a_formula(name, width, faults):
    assert faults(name, width)["broken"] == []


@pytest.mark.parametrize("width", ["wide", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_code_does_not_run_out_of_its_box(name, width, faults):
    assert faults(name, width)["code"] == []


@pytest.mark.parametrize("name", PAGES)
def test_the_tab_key_stops_at_what_can_be_done(name, faults):
    seen = faults(name, "wide")
    assert seen["formulaStops"] == 0 and seen["stops"] <= 260


def test_a_formula_is_still_read_aloud(site, page):
    opened(page, f"{site}self-attention.html")
    assert page.locator("mjx-container mjx-assistive-mml math").count() == page.locator("mjx-container").count() > 100


# --- what is folded -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", chapters())
def test_every_fold_has_a_name_of_its_own(name):
    titles = [(title.find("p") or title).get_text().strip() for title in chapter(name).article.select("summary")]
    assert len(titles) > 10
    assert len(set(titles)) == len(titles)


def test_a_solution_opens_where_its_title_is_pressed(site, page):
    opened(page, f"{site}self-attention.html")
    solution = page.locator("details.solution").first
    solution.locator("summary").click()
    expect(solution).to_have_attribute("open", "")
    assert page.url.endswith("self-attention.html"), "the press led elsewhere"
    solution.locator("summary").focus()
    page.keyboard.press("Enter")
    expect(solution).not_to_have_attribute("open", "")


# --- self-check questions -------------------------------------------------------------------------------


@dataclass
class Quiz:
    """The first question of a page that has one right answer."""

    page: Page

    def __post_init__(self) -> None:
        self.form = self.page.locator("fieldset.quiz:has([type=radio])").first
        self.said = self.form.locator(".quiz-verdict")
        self.right = self.form.locator("[data-right=true] input")
        self.wrong = self.form.locator("[data-right=false] input").first
        self.check = self.form.get_by_role("button")


def test_arrow_keys_choose_and_do_not_answer(site, page):
    opened(page, f"{site}self-attention.html")
    quiz = Quiz(page)
    quiz.form.locator("input").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowDown")
        expect(quiz.said).to_have_text("")
    assert quiz.form.locator("input:checked").count() == 1
    assert quiz.form.locator(".quiz-why:visible").count() == 0
    page.keyboard.press("Enter")
    expect(quiz.said).not_to_have_text("")


def test_a_question_explains_a_wrong_and_a_right_answer_and_remembers(site, page):
    opened(page, f"{site}self-attention.html")
    quiz = Quiz(page)
    question = chapter("self-attention").questions()[0]
    wrong = next(answer for answer in question["answers"] if not answer["correct"])
    quiz.check.click()
    expect(quiz.said).to_have_text("Choose an answer first.")
    quiz.wrong.check()
    quiz.check.click()
    expect(quiz.said).to_contain_text("Not right.")
    expect(quiz.said).to_contain_text(wrong["feedback"].replace("'", "’")[:12].split("’")[0])
    quiz.right.focus()
    page.keyboard.press("Space")
    expect(quiz.said).to_have_text("", use_inner_text=True)
    quiz.check.focus()
    page.keyboard.press("Enter")
    expect(quiz.said).to_contain_text("Right.")
    assert quiz.said.get_attribute("role") == "status"
    opened(page, f"{site}self-attention.html")
    expect(Quiz(page).right).to_be_checked()
    expect(Quiz(page).said).to_contain_text("Right.")


def test_a_question_with_several_right_answers_says_how_many_are_missing(site, page):
    opened(page, f"{site}normalization.html")
    form = page.locator("fieldset.quiz:has([type=checkbox])").first
    right = form.locator("[data-right=true] input")
    assert right.count() > 1
    right.first.check()
    form.get_by_role("button").click()
    expect(form.locator(".quiz-verdict")).to_contain_text(f"Right so far; {right.count() - 1} more.")
    for answer in right.all():
        answer.check()
    form.get_by_role("button").click()
    expect(form.locator(".quiz-verdict")).to_contain_text("Right.")


def test_questions_work_under_a_strict_policy(site, page):
    """No inline script, no inline handler: only scripts of the site itself."""

    def strict(route) -> None:
        answer = route.fetch()
        headers = answer.headers | {"content-security-policy": "script-src 'self'"}
        route.fulfill(response=answer, headers=headers)

    page.route("**/self-attention.html", strict)
    page.goto(f"{site}self-attention.html")
    quiz = Quiz(page)
    quiz.right.check()
    quiz.check.click()
    expect(quiz.said).to_contain_text("Right.")


def test_questions_can_be_read_without_javascript(site, browser):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site}self-attention.html")
    form = page.locator("fieldset.quiz").first
    assert form.locator(".quiz-check:visible").count() == 0
    form.locator("summary").click()
    answers = chapter("self-attention").questions()[0]["answers"]
    assert form.locator(".quiz-reasons li:visible").count() == len(answers)
    context.close()


# --- figures --------------------------------------------------------------------------------------------


def lightness(page: Page, figure: Any) -> float:
    """Mean of an element's pixels as it stands on the page, from 0 (black) to 255."""
    figure.scroll_into_view_if_needed()
    return float(np.asarray(Image.open(io.BytesIO(figure.screenshot())).convert("L")).mean())


@pytest.mark.parametrize("name", ["self-attention", "normalization", "positional-encoding"])
def test_figures_are_dark_in_dark_mode_and_light_in_light_mode(name, site, page):
    opened(page, f"{site}{name}.html")
    for scheme, low, high in (("light", 160, 256), ("dark", 0, 110)):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        figures = page.locator(".cell_output img:visible").all()[:6]
        assert len(figures) == 6
        for figure in figures:
            assert low <= lightness(page, figure) < high, figure.get_attribute("src")


def test_a_figure_has_the_ground_of_its_page(site, page):
    opened(page, f"{site}self-attention.html")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        figure = page.locator(".cell_output img:visible").first
        shot = np.asarray(Image.open(io.BytesIO(figure.screenshot())).convert("RGB")).astype(int)
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        wanted = [int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")]
        assert np.abs(shot[3, 3] - wanted).max() <= 3


def test_panels_stand_side_by_side_where_there_is_room(site, page):
    opened(page, f"{site}multi-head-attention.html")
    stacked = page.locator("picture:has(source) img")
    assert stacked.count() >= 2
    for figure in stacked.all():
        figure.scroll_into_view_if_needed()
        expect(figure).to_have_js_property("complete", True)
        box = figure.bounding_box()
        assert figure.evaluate("image => image.currentSrc").endswith("-wide.svg")
        assert box["height"] < box["width"]
    page.set_viewport_size(NARROW)
    figure = stacked.first
    figure.scroll_into_view_if_needed()
    page.wait_for_function("!document.querySelector('picture:has(source) img').currentSrc.includes('wide')")
    assert figure.bounding_box()["height"] > figure.bounding_box()["width"]


# --- search ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("KV cache", "multi-head-attention"),
        ("RoPE", "positional-encoding"),
        ("GQA", "multi-head-attention"),
        ("softmax", "self-attention"),
    ],
)
def test_search_shows_the_text_of_a_page_and_nothing_else(asked, found, site, page):
    page.goto(f"{site}search.html?q={asked.replace(' ', '+')}")
    expect(page.locator("#search-results .search-summary")).to_contain_text("Search finished")
    results = page.locator("#search-results li")
    assert any(f"{found}.html" in link.get_attribute("href") for link in results.locator("a").all())
    text = page.locator("#search-results ul.search").inner_text()
    assert asked.lower() in text.lower()
    for unwanted in ("\\", "{", "Contents", "Download source file", "Print to PDF", "Show code"):
        assert unwanted not in text, unwanted


# --- files for hosts ------------------------------------------------------------------------------------


def test_hosts_find_what_they_look_for():
    chapter("index")
    assert (HTML / ".nojekyll").is_file()
    assert "Cross-Origin-Opener-Policy: same-origin" in (HTML / "_headers").read_text(encoding="utf-8")
    assert not (HTML / "sitemap.xml").exists(), "without an address of its own the site promises none"


def test_the_first_page_shows_its_chapters_and_every_page_its_foot():
    cards = chapter("index").article.select(".chapter-card")
    assert len(cards) == len(chapters())
    for card in cards:
        assert card.select_one("dt a") and "minutes" in card.select_one(".chapter-time").get_text()
    assert sum(card.svg is not None for card in cards) >= 9
    foot = chapter("self-attention").soup.select_one(".extra_footer")
    assert "Cite this" in foot.get_text() and "CC BY" in foot.get_text()
