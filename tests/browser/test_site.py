"""The site in a real browser: every page loads, fits, is light and accessible; and what a reader presses works."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest
import yaml
from axe import COLOURS, STRUCTURE, violations
from book_build import BOOK, BUILD, HTML, ROOT, built, chapter, chapters, pages
from bs4 import BeautifulSoup
from kept import some_always
from PIL import Image
from playwright.sync_api import Browser, Page, expect
from site_server import serving
from site_weight import weight

BUDGET = 1_500_000  # bytes sent before the first press
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 375, "height": 800}

# Each colour of code once for each ground, and one formula in the text for each kind of place: axe needs seconds for
# thousands of elements that look the same.
THIN = """() => {
  const seen = new Set();
  document.querySelectorAll("pre span[class]").forEach((word) => {
    const box = word.closest(".admonition, .cell_input, .cell_output, div.highlight");
    const look = `${word.className} ${box ? box.className : ""}`;
    if (seen.has(look)) word.replaceWith(word.textContent); else seen.add(look);
  });
  document.querySelectorAll("pre").forEach((block) => block.normalize());
  document.querySelectorAll("mjx-container:not([display])").forEach((formula) => {
    const place = formula.parentElement, box = formula.closest(".admonition, table, figcaption, .sidebar");
    const look = `${place.tagName} ${place.className} ${box ? box.tagName + box.className : ""}`;
    if (seen.has(look)) formula.remove(); else seen.add(look);
  });
}"""


@dataclass
class Visit:
    """What was seen on one page."""

    sent: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    hosts: set[str] = field(default_factory=set)
    overflow: dict[str, int] = field(default_factory=dict)
    axe: dict[str, list[str]] = field(default_factory=dict)


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=WIDE, color_scheme="light", reduced_motion="reduce")
    yield context.new_page()
    context.close()


# The book's pages and those that Sphinx adds; one of each kind in every run.
EVERY_PAGE = some_always(
    [*pages(), "genindex", "search", "404"],
    ["index", "self-attention", "ps2-self-attention", "glossary", "search", "404"],
)


def opened(page: Page, address: str) -> None:
    """Go to a page and wait until its formulas stand."""
    page.goto(address)
    page.evaluate("window.MathJax?.startup?.promise")


def overflow(page: Page) -> int:
    """By how many pixels the page is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")


@pytest.fixture(scope="module")
def visited(site: str, browser: Browser) -> Callable[[str], Visit]:
    """Opens a page, once, and looks at it in both widths and both colours."""

    @cache
    def visit(name: str) -> Visit:
        context = browser.new_context(viewport=WIDE, color_scheme="light", reduced_motion="reduce")
        page = context.new_page()
        seen = Visit()
        page.on("console", lambda message: message.type == "error" and seen.faults.append(message.text))
        page.on("pageerror", lambda error: seen.faults.append(f"uncaught: {error}"))
        page.on("requestfailed", lambda request: seen.faults.append(f"failed: {request.url}"))
        page.on("response", lambda answer: answer.ok or seen.faults.append(f"{answer.status}: {answer.url}"))
        page.on("request", lambda request: seen.hosts.add(urlsplit(request.url).netloc))
        seen.sent = weight(page, f"{site}{name}.html")
        seen.overflow["wide"] = overflow(page)
        page.set_viewport_size(NARROW)
        seen.overflow["narrow"] = overflow(page)
        page.set_viewport_size(WIDE)
        page.evaluate(THIN)
        seen.axe["light"] = violations(page)
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        seen.axe["dark"] = violations(page, options=COLOURS)
        page.set_viewport_size(NARROW)
        page.wait_for_timeout(400)  # the theme lets 300 ms pass before it makes boxes that scroll reachable by keyboard
        seen.axe["narrow"] = violations(page, options=STRUCTURE)
        context.close()
        return seen

    return visit


# --- every page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_a_page_loads_without_errors_and_asks_no_other_host(name, visited, site):
    assert visited(name).faults == []
    assert visited(name).hosts == {urlsplit(site).netloc}


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_a_page_is_not_wider_than_its_window(name, visited):
    assert visited(name).overflow == {"wide": 0, "narrow": 0}


@pytest.mark.slow
def test_no_page_is_wider_than_its_window_before_its_formulas_are_drawn(site, browser):
    """Or where they never are: without a network MathJax does not come."""
    page = browser.new_page(viewport=NARROW)
    page.route("**/mathjax/**", lambda route: route.abort())
    wide = {}
    for name in chapters():
        page.goto(f"{site}{name}.html", wait_until="load")
        assert page.locator(".bd-content .math").count()
        wide[name] = overflow(page)
    page.close()
    assert not any(wide.values()), wide


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_axe_finds_nothing(name, visited):
    assert visited(name).axe == {"light": [], "dark": [], "narrow": []}


@pytest.mark.parametrize("name", EVERY_PAGE)
def test_a_page_keeps_to_its_weight(name, visited):
    sent = visited(name).sent
    assert sent["document"] > 1000 and sent["stylesheet"] > 10_000
    if name in chapters():
        assert sent["script"] > 250_000, "MathJax was not counted"
    assert sum(sent.values()) < BUDGET, dict(sent)


def test_every_page_has_its_own_description():
    found = {}
    for name in pages():
        tags = chapter(name).soup.find_all("meta", attrs={"name": "description"})
        assert len(tags) == 1, f"{name} needs `myst: html_meta: description:` in its front matter"
        found[name] = tags[0]["content"]
        assert 50 <= len(found[name]) <= 180, f"{name}: {len(found[name])} characters"
        shared = chapter(name).soup.find("meta", attrs={"property": "og:description"})
        assert shared["content"] == found[name]
    assert len(set(found.values())) == len(found)


def test_every_icon_in_use_is_in_the_font():
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location("theme_fixes", BOOK / "_ext" / "theme_fixes.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    styles = {"solid", "lg", "sm", "fw", "xs"}
    for path in HTML.rglob("*.html"):
        for tag in BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").select('[class*="fa-"]'):
            names = {word[3:] for word in tag["class"] if word.startswith("fa-")} - styles
            assert names <= set(module.ICONS), f"{path.name}: add {names} to ICONS in book/_ext/theme_fixes.py"
            assert "fab" not in tag["class"] and "fa-brands" not in tag["class"], "the small font has no brands"


# --- what a reader presses ------------------------------------------------------------------------------


def test_the_colours_change_by_keyboard_and_stay(site, page):
    opened(page, f"{site}index.html")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "light")
    for _ in range(3):
        page.locator(".theme-switch-button").first.focus()
        page.keyboard.press("Enter")
        if root.get_attribute("data-mode") == "dark":
            break
    expect(root).to_have_attribute("data-theme", "dark")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", ground)[:3])) < 60, ground
    opened(page, f"{site}getting-started.html")
    expect(root).to_have_attribute("data-theme", "dark")


def test_search_finds_a_word_by_keyboard(site, page):
    opened(page, f"{site}index.html")
    page.keyboard.press("Control+k")
    expect(page.locator("#pst-search-dialog")).to_have_js_property("open", True)
    page.keyboard.type("Bahdanau")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=Bahdanau*")
    found = page.locator("#search-results li a")
    expect(found.first).to_be_visible()
    assert any("rnn-attention.html" in link.get_attribute("href") for link in found.all())


def test_next_and_previous_lead_through_the_whole_book(site, page):
    """By their addresses from page to page, and pressed at both ends of the book."""
    for one, other in pairwise(pages()):
        assert [link["href"] for link in chapter(one).soup.select("a.right-next")] == [f"{other}.html"]
        assert [link["href"] for link in chapter(other).soup.select("a.left-prev")] == [f"{one}.html"]
    for (one, other), press in ((pages()[:2], "a.right-next"), (pages()[:-3:-1], "a.left-prev")):
        page.goto(f"{site}{one}.html", wait_until="domcontentloaded")
        page.locator(press).click(no_wait_after=True)
        page.wait_for_url(f"{site}{other}.html", wait_until="domcontentloaded")


def test_on_a_narrow_screen_both_contents_open_and_close_by_keyboard(site, page):
    page.set_viewport_size(NARROW)
    opened(page, f"{site}self-attention.html")
    for button, panel in (
        (".primary-toggle", "#pst-primary-sidebar-modal"),
        (".secondary-toggle", "#pst-secondary-sidebar-modal"),
    ):
        page.locator(button).first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(panel)).to_have_js_property("open", True)
        expect(page.locator(f"{panel} a").last).to_be_visible()
        assert violations(page) == []
        page.keyboard.press("Escape")
        expect(page.locator(panel)).to_have_js_property("open", False)


def test_the_contents_of_a_page_lead_to_its_sections_by_keyboard(site, page):
    opened(page, f"{site}self-attention.html")
    link = page.locator("#pst-page-toc-nav a").nth(3)
    link.focus()
    page.keyboard.press("Enter")
    wanted = link.get_attribute("href")
    page.wait_for_url(f"**{wanted}")
    assert page.evaluate("scrollY") > 500


def test_a_missing_page_is_answered_at_any_depth(site, page):
    answer = page.goto(f"{site}no/such/page.html")
    assert answer.status == 404
    expect(page.locator("article h1")).to_have_text("Page not found")
    expect(page.locator(".logo__image:visible")).to_have_js_property("complete", True)
    assert page.locator(".logo__image:visible").evaluate("image => image.naturalWidth") > 0
    page.locator(".bd-sidenav a", has_text="2. Self-attention").click()
    page.wait_for_url(f"{site}self-attention.html")


# --- on paper -------------------------------------------------------------------------------------------


def test_a_printed_page_is_light_and_complete(site, page):
    page.emulate_media(color_scheme="dark")
    opened(page, f"{site}transformer.html")
    page.evaluate(
        """() => window.addEventListener("beforeprint", () => {
          window.onPaper = {
            theme: document.documentElement.dataset.theme,
            folded: document.querySelectorAll("details.fold:not([open])").length,
          };
        })"""
    )
    paper = page.pdf(format="A4")
    assert page.evaluate("window.onPaper") == {"theme": "light", "folded": 0}
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.locator("details.fold[open]").count() == 0, "what was folded is folded again"
    number = page.locator("article h1 .section-number").text_content()
    assert page.locator("#jb-print-docs-body > h1").text_content().startswith(number)
    assert 10 < len(re.findall(rb"/Type\s*/Page\b", paper)) < 60
    page.emulate_media(media="print")
    for unwanted in (".bd-sidebar-primary", ".bd-header-article", ".prev-next-footer", ".copybtn"):
        assert page.locator(f"{unwanted}:visible").count() == 0, unwanted
    page.set_viewport_size({"width": 680, "height": 1000})  # about the width of the paper
    cut = page.evaluate(
        "[...document.querySelectorAll('.bd-content pre')].filter(block => block.scrollWidth > block.clientWidth + 1)"
        ".map(block => block.textContent.slice(0, 60))"
    )
    assert cut == []


# --- a site of its own ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hosted(tmp_path_factory) -> Path:
    """The book built with an address and with MathJax of its own; what was executed is taken over."""
    built()
    folder = tmp_path_factory.mktemp("hosted")
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    settings["html"]["baseurl"] = "https://example.org/course/attention/"
    settings["sphinx"]["config"]["mathjax_path"] = "mathjax/es5/tex-mml-chtml.js"
    extensions = settings["sphinx"]["local_extensions"]
    settings["sphinx"]["local_extensions"] = {name: str(ROOT / path) for name, path in extensions.items()}
    (folder / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    for part in (".jupyter_cache", ".doctrees", "jupyter_execute"):
        shutil.copytree(BUILD / part, folder / "_build" / part)
    options = ["--config", folder / "_config.yml", "--toc", ROOT / "_toc.yml", "--path-output", folder]
    done = subprocess.run(
        [ROOT / ".venv" / "bin" / "jupyter-book", "build", BOOK, *options, "-W", "--keep-going", "-q"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return folder / "_build" / "html"


@pytest.mark.slow
def test_mathjax_of_its_own_needs_no_other_host(hosted, page):
    asked = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    with serving(hosted, "/course/attention/") as address:
        opened(page, f"{address}self-attention.html")
        expect(page.locator("mjx-container").first).to_be_visible()
        assert asked == {urlsplit(address).netloc}
        assert page.evaluate("MathJax.version").startswith("3.")
    soup = BeautifulSoup((hosted / "self-attention.html").read_text(encoding="utf-8"), "html.parser")
    assert all(not urlsplit(script["src"]).netloc for script in soup.find_all("script", src=True))


@pytest.mark.slow
def test_a_missing_page_below_a_path_finds_its_styles(hosted, page):
    failed = []
    page.on("response", lambda answer: answer.status >= 400 and failed.append(answer.url))
    with serving(hosted, "/course/attention/") as address:
        page.goto(f"{address}deep/er/nothing.html")
        assert failed == [f"{address}deep/er/nothing.html"]
        page.locator(".bd-sidenav a", has_text="2. Self-attention").click()
        page.wait_for_url(f"{address}self-attention.html")


@pytest.mark.slow
def test_a_page_with_an_address_offers_a_card(hosted):
    for name in pages():
        soup = BeautifulSoup((hosted / f"{name}.html").read_text(encoding="utf-8"), "html.parser")
        tags = {tag["property"]: tag["content"] for tag in soup.find_all("meta", attrs={"property": True})}
        root = "https://example.org/course/attention/"
        assert tags["og:url"] == f"{root}{name}.html"
        assert soup.find("link", rel="canonical")["href"] == tags["og:url"]
        with Image.open(hosted / tags["og:image"].removeprefix(root)) as card:
            assert card.size == (1200, 630)
            assert len(card.convert("RGB").getcolors(maxcolors=1 << 20)) > 20


@pytest.mark.slow
def test_a_site_with_an_address_has_a_map(hosted):
    listed = re.findall("<loc>(.*?)</loc>", (hosted / "sitemap.xml").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(f"https://example.org/course/attention/{name}.html" for name in pages())


def test_without_an_address_no_page_promises_one():
    for name in pages():
        soup = chapter(name).soup
        assert soup.find("meta", attrs={"property": "og:image"}) is None
        assert soup.find("link", rel="canonical") is None


def test_an_address_that_is_none_is_refused_in_one_line():
    import sys

    sys.path.insert(0, str(BOOK / "_ext"))
    try:
        from site_address import use_address
    finally:
        sys.path.pop(0)
    from sphinx.errors import ConfigError

    with pytest.raises(ConfigError, match=r"baseurl: 'example\.org' is not a whole address"):
        use_address(None, SimpleNamespace(html_baseurl="example.org"))
