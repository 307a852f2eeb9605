"""Fixtures for the rooms that look at pages: a browser, and the built book on a local server.

Each room's ``conftest.py`` imports those it offers. Nothing here imports a browser's package before it is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from live_site import Opened
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from browsers import launched
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        try:
            opened = launched(playwright)
        except Error as error:
            pytest.skip(f"no browser here (Debian: apt-get install chromium): {error}"[:200])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    """The address of the book's pages, which ends with a slash."""
    from book_build import built
    from site_server import serving

    with serving(built()) as address:
        yield address


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., Opened]]:
    """Opens pages in fresh windows; a fault of a page's script fails the test."""
    from live_site import Opened

    opened: list[Opened] = []

    def start(url: str, pyodide: Path | None, **more) -> Opened:
        opened.append(Opened(browser, url, pyodide, **more))
        return opened[-1]

    yield start
    for one in opened:
        one.context.close()
    assert not [fault for one in opened for fault in one.faults]
