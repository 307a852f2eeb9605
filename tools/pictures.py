"""The pictures of the README, taken from the built course: a chapter, a feedback page and the report on a class.

`make pictures` makes the course first and needs Chromium. Nothing is loaded from the network: the book's pages are
answered from their folder, and MathJax from the installed package django-static-mathjax.
"""

from __future__ import annotations

import io
import shutil
import sys
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urlsplit

from PIL import Image
from playwright.sync_api import BrowserContext, Route, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs" / "pictures"
COURSE = "http://course.invalid/"  # pages need an address of their own; no such host exists
MATHJAX = Path(str(files("mathjax"))) / "static" / "mathjax"
LARGEST = 150_000  # bytes of a picture


@dataclass(frozen=True)
class Picture:
    """What is seen of a page."""

    name: str
    page: str  # path from the repository's folder
    start: str  # CSS selector of what stands at the top
    width: int
    height: int  # both in pixels


PICTURES = (
    Picture("chapter", "_build/html/hand-designed-heads.html", "#by-position-a-head-that-reverses", 1280, 1062),
    Picture(
        "feedback", "examples/feedback/student-05/ps2-self-attention/ps2-self-attention.html", "#exercise-1", 960, 950
    ),
    Picture("report", "examples/report/ps2-self-attention.html", ".card:has(#exercises) figure", 1100, 1270),
)


def answer(route: Route) -> None:
    """Answer a page's request from the files of this machine; refuse what is not there."""
    address = urlsplit(route.request.url)
    path = unquote(address.path)
    if "/npm/mathjax@" in path:
        file = MATHJAX / path.split("/npm/mathjax@")[1].partition("/")[2]
    elif route.request.url.startswith(COURSE):
        file = ROOT / path.lstrip("/")
    else:
        file = Path()
    if file.is_file():
        route.fulfill(path=file)
    else:
        route.abort()


def taken(context: BrowserContext, picture: Picture) -> bytes:
    """The picture as a PNG of 256 colours."""
    page = context.new_page()
    page.set_viewport_size({"width": picture.width, "height": picture.height})
    page.goto(COURSE + picture.page, wait_until="load")
    page.evaluate("document.fonts.ready.then(() => window.MathJax?.startup?.promise)")
    page.evaluate(
        "start => { const bar = document.querySelector('.bd-header-article')?.offsetHeight ?? 0;"
        " scrollTo({top: document.querySelector(start).getBoundingClientRect().top + scrollY - bar - 16,"
        " behavior: 'instant'}) }",
        picture.start,
    )
    page.mouse.move(0, 0)
    page.wait_for_timeout(500)  # the contents beside the text follow the scrolling
    shot = Image.open(io.BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    page.close()
    small = io.BytesIO()
    shot.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE).save(
        small, "PNG", optimize=True
    )
    return small.getvalue()


def main() -> None:
    missing = [picture.page for picture in PICTURES if not (ROOT / picture.page).is_file()]
    if missing:
        sys.exit(f"{missing[0]} is not there: run `make course` first")
    programs = ("chromium", "chromium-browser", "google-chrome")
    chromium = next(filter(None, map(shutil.which, programs)), None)  # else Playwright's own
    TARGET.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(color_scheme="light", reduced_motion="reduce")
        context.route("**/*", answer)
        for picture in PICTURES:
            content = taken(context, picture)
            if len(content) > LARGEST:
                sys.exit(f"{picture.name}.png has {len(content)} bytes; choose a part of the page with less on it")
            (TARGET / f"{picture.name}.png").write_bytes(content)
            print(f"{(TARGET / picture.name).relative_to(ROOT)}.png: {len(content) / 1000:.0f} kB")
        browser.close()


if __name__ == "__main__":
    main()
