"""Every chapter's notebook and every set's can be had by pressing a control that is seen, under its own name."""

from __future__ import annotations

import nbformat
import pytest
from book_build import HTML, chapters, pages
from kept import some_always

SETS = [name for name in pages() if name.startswith("ps")]


@pytest.mark.parametrize("name", some_always(chapters(), chapters()[:1]))
@pytest.mark.parametrize("width", [375, 1280])
def test_a_chapter_comes_as_a_notebook_of_its_name(width, name, site, browser, tmp_path):
    context = browser.new_context(viewport={"width": width, "height": 800})
    page = context.new_page()
    page.goto(f"{site}{name}.html", wait_until="domcontentloaded")
    page.locator(".dropdown-download-buttons > button").click()
    entry = page.locator(".btn-download-notebook-button")
    assert entry.inner_text().strip() == ".ipynb"
    with page.expect_download() as started:
        entry.click()
    assert started.value.suggested_filename == f"{name}.ipynb"
    started.value.save_as(tmp_path / f"{name}.ipynb")
    nbformat.validate(nbformat.read(tmp_path / f"{name}.ipynb", as_version=4))
    context.close()


def test_a_set_comes_as_a_notebook_of_its_name(site, browser):
    context = browser.new_context(viewport={"width": 375, "height": 800})
    for name in SETS:
        page = context.new_page()
        page.goto(f"{site}{name}.html", wait_until="domcontentloaded")
        with page.expect_download() as started:
            page.locator("article a.download", has_text=f"{name}.ipynb").click()
        assert started.value.suggested_filename == f"{name}.ipynb"
        page.close()
    context.close()


def test_there_is_something_to_try():
    assert len(SETS) == 11 and len(chapters()) == 10
    assert (HTML / "_sources" / "rnn-attention.ipynb").is_file()
