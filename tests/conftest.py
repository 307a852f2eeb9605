"""What several files of tests ask for: a browser, and the built book on a local server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from book_build import built
from browsers import launched
from playwright.sync_api import Browser, Error, sync_playwright
from site_server import serving


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
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
    with serving(built()) as address:
        yield address
