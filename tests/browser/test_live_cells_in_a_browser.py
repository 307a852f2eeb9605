"""Live cells as a reader meets them: in a browser, with an editor, errors, a stop, without network."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
from axe import violations
from book_build import BOOK, ROOT, built, chapter, chapters
from live_pages import live_cells
from live_site import CDN, CELLS, IsolatedHandler, answer_cdn, build, served
from pyodide_core import pyodide_core

EXTENSIONS = BOOK / "_ext"
SITE = EXTENSIONS / "live_cells" / "site"
HELPERS = Path(__file__).parents[1] / "helpers"
sys.path[:0] = [str(EXTENSIONS), str(ROOT / "tools")]

import self_host_pyodide  # noqa: E402


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The small book's pages."""
    return build(tmp_path_factory.mktemp("live"))


@pytest.fixture(scope="module")
def address(site):
    with served(site) as found:
        yield found


@pytest.fixture
def reader(open_page, address):
    """The small book's page with cells, and Pyodide's core where the CDN would be."""
    return open_page(f"{address}cells.html", pyodide_core())


def test_nothing_is_loaded_before_it_is_asked_for(reader):
    for late in ("pyodide", "live-worker", "live_runner", "live_figures", "live-editor"):
        assert not reader.asked_for(late)
    reader.cell(1).press("Edit").code.wait_for()
    assert reader.asked_for("live-editor") and not reader.asked_for("live-worker") and not reader.asked_for("pyodide")
    reader.cell(1).run()
    assert reader.asked_for("live-worker") and reader.asked_for(f"{CDN}pyodide.asm.wasm")
    assert not reader.asked_for(".whl"), "a cell without imports loads no package"


def test_a_press_boots_runs_what_comes_before_and_then_the_cell(reader):
    reader.page.evaluate("""() => {
        const said = window.said = [];
        const watch = (node) => new MutationObserver(() => said.push(node.textContent))
            .observe(node, { childList: true, characterData: true, subtree: true });
        watch(document.querySelector(".live-bar[aria-label='Cell 2'] .live-state"));
        watch(document.querySelector("div[role=status].visually-hidden"));
    }""")
    first, second, third = (reader.cell(number) for number in (1, 2, 3))
    second.run()
    assert second.state.startswith("Finished in")
    assert second.printed() == "product 42\n" and second.printed("value") == "42"
    assert second.output.locator(".live-whose").inner_text().startswith("Your run")
    assert not second.published.first.is_visible()
    said = reader.page.evaluate("window.said")
    assert any(text.startswith("Loading Python") and "read on" in text for text in said)
    parts = [match for text in said if (match := re.match(r"Loading Python: ([\d.]+) of ([\d.]+) MB", text))]
    assert len(parts) > 1, "how much has arrived is said as it comes"
    come, whole = [float(part[1]) for part in parts], {float(part[2]) for part in parts}
    assert come == sorted(come) and whole == {12.6} and come[-1] > 0.98 * 12.6
    aloud = [text for text in said if text.startswith("Cell 2: Loading")]
    assert aloud == ["Cell 2: Loading Python … You can read on meanwhile."], "and to screen readers once"
    assert any("Running what comes before: 1 of 3" in text for text in said), "set-up, cell 1, a hidden cell"
    assert "Cell 2: Running …" in said and any(text.startswith("Cell 2: Finished") for text in said)
    # the cell before keeps its published output, and says that it ran
    assert first.state == "has run" and first.published.is_visible() and first.output.count() == 0
    third.run()
    assert third.printed("value") == "21.0"
    assert first.bar.locator("button:visible").all_inner_texts()[0].startswith("Run")


def test_edit_run_by_key_and_reset(reader):
    cell, after = reader.cell(1), reader.cell(2)
    cell.edit("a = 1/4\nprint('quarter', a)")
    assert "1/4" in cell.code.inner_text(), "the theme's / shortcut must not take the slash"
    cell.code.press("Shift+Enter")
    cell.wait()
    assert cell.printed() == "quarter 0.25\n"
    assert "edited" in cell.output.inner_text()
    assert "print('quarter', a)" in cell.code.inner_text() and cell.code.inner_text().count("\n") < 3
    assert after.run().printed() == "product 0.3125\n", "the cells share their variables"
    cell.press("Reset")
    assert cell.code.count() == 0 and cell.output.count() == 0
    assert after.state == "to be run again", "its numbers come from the edited code"
    assert cell.published.is_visible() and cell.element.locator(".cell_input pre").is_visible()
    assert cell.element.locator(".cell_input pre").inner_text().startswith("a = 6")
    assert after.run().printed() == "product 42\n", "cell 1 ran again as published, and the hidden cell after it"
    # without the editor, from the cell's buttons
    cell.button("Run").focus()
    reader.page.keyboard.press("Control+Enter")
    assert cell.wait().printed() == "six is 6\n"


@pytest.mark.slow
def test_what_an_edit_puts_out_of_date_is_dimmed_and_says_so(reader):
    """Cells 2 and 3 use what cell 1 makes; the cell that takes the time uses nothing of it."""
    first, second, third, timing = (reader.cell(number) for number in (1, 2, 3, 4))
    note = "Out of date: made before a change. Press Run."

    def outdated() -> list[bool]:
        return [note in cell.element.inner_text() for cell in (first, second, third, timing)]

    assert outdated() == [False] * 4
    ink = "output => getComputedStyle(output.querySelector('pre')).color"
    fresh = third.published.evaluate(ink)
    first.edit("a = 7\nprint('seven is', a)")
    assert outdated() == [True, True, True, False]
    assert third.published.evaluate(ink) != fresh
    second.run()
    assert second.printed() == "product 56\n"
    assert outdated() == [False, False, True, False], "cell 1 ran for cell 2"
    first.press("Reset")
    assert outdated() == [False, True, False, False]
    second.run()
    assert outdated() == [False] * 4


def test_long_lines_wrap_in_the_editor(address, open_page):
    reader = open_page(f"{address}cells.html", pyodide_core(), viewport={"width": 375, "height": 700})
    cell = reader.cell(1).edit("total = " + " + ".join(f"number_{n}" for n in range(20)))
    scroller = cell.element.locator(".cm-scroller")
    assert scroller.evaluate("box => box.scrollWidth <= box.clientWidth + 1")


def test_a_folded_cell_opens_for_editing_and_the_keyboard_gets_out_again(reader):
    cell = reader.cell(2)
    assert not cell.element.locator(".cell_input").is_visible()
    cell.press("Edit")
    cell.code.wait_for()
    assert cell.code.get_attribute("aria-label") == "Code of cell 2"
    keys = reader.page.locator(f"#{cell.code.get_attribute('aria-describedby')}")
    assert "Escape" in keys.inner_text() and keys.is_visible()
    cell.edit("if True:\nprint(1)")  # the new line is indented by the editor
    assert "    print(1)" in cell.code.inner_text()
    cell.code.press("Tab")
    assert cell.code.evaluate("node => node.contains(document.activeElement)")
    cell.code.press("Escape")
    cell.code.press("Tab")
    assert reader.page.evaluate("document.activeElement.textContent") == "Run cell 2"


@pytest.mark.slow
def test_an_error_shows_the_readers_own_lines_and_the_session_goes_on(reader):
    cell = reader.cell(3)
    cell.edit("def f(x):\nreturn x / 0")
    cell.code.press("Enter")
    cell.code.press("Backspace")
    cell.code.press_sequentially("print('before')\nf(1)")
    cell.run()
    assert cell.state == "Stopped with an error: ZeroDivisionError: division by zero"
    assert cell.printed() == "before\n"
    lines = cell.printed("error").splitlines()
    assert lines[:3] == ["Traceback (most recent call last):", '  File "cell 3", line 4, in <module>', "    f(1)"]
    assert "return x / 0" in cell.printed("error") and "pyodide" not in cell.printed("error")
    cell.edit("x = (")
    assert "SyntaxError" in cell.run().printed("error") and "live_runner" not in cell.printed("error")
    cell.edit("raise SystemExit(3)")
    assert "SystemExit: 3" in cell.run().printed("error")
    cell.edit("print(total)")
    assert cell.run().printed() == "42\n"


@pytest.mark.slow
def test_an_error_in_an_earlier_cell_is_shown_where_it_happened(reader):
    first, third = reader.cell(1), reader.cell(3)
    first.edit("print('so far')\na = nowhere")
    third.run()
    assert third.state.startswith("Cell 1 runs before this one and stopped with an error: NameError")
    assert third.published.is_visible() and third.output.count() == 0
    assert first.printed() == "so far\n" and "NameError" in first.printed("error")


@pytest.mark.slow
def test_stop_ends_an_endless_loop_and_says_what_is_lost(reader):
    first, third = reader.cell(1), reader.cell(3)
    first.run()
    third.edit("while True: pass").press("Run")
    reader.page.wait_for_function(
        "document.querySelector(\".live-bar[aria-label='Cell 3'] .live-state\").textContent.startsWith('Running …')"
    )
    first.press("Run")
    assert "Waits" in first.state
    third.button("Stop").focus()
    third.press("Stop").wait()
    assert "variables are lost" in third.state and first.state == "Not run."
    assert not third.button("Stop").is_visible()
    assert reader.page.evaluate("document.activeElement.textContent") == "Run cell 3", "the focus is not lost"
    third.edit("print(total + 1)")
    assert third.run().printed() == "43\n", "the earlier cells ran again"


@pytest.mark.slow
def test_an_endless_loop_in_an_earlier_cell_is_named(reader):
    first, second = reader.cell(1), reader.cell(2)
    first.edit("while True: pass")
    second.press("Run")
    reader.page.wait_for_function(
        "document.querySelector(\".live-bar[aria-label='Cell 2'] .live-state\").textContent.includes(', cell 1')",
        timeout=120_000,
    )
    second.press("Stop").wait()
    assert "while cell 1 ran" in second.state
    assert "before it printed anything" in first.output.inner_text()
    first.press("Reset")
    assert second.run().printed() == "product 42\n"


@pytest.mark.slow
def test_stop_during_the_boot(reader):
    cell = reader.cell(1).press("Run")
    cell.press("Stop").wait()
    assert cell.state.startswith("Stopped")
    assert cell.run().printed() == "six is 6\n"


@pytest.mark.slow
def test_stop_keeps_variables_where_memory_may_be_shared(site, open_page):
    core = pyodide_core()
    with served(site, IsolatedHandler) as address:
        reader = open_page(f"{address}cells.html", core)
        assert reader.page.evaluate("crossOriginIsolated")
        cell = reader.cell(1)
        cell.edit("kept = 5\nwhile True: pass").press("Run")
        reader.page.wait_for_function("document.querySelector('.live-state').textContent.startsWith('Running …')")
        reader.page.wait_for_timeout(300)
        cell.press("Stop").wait()
        assert "lost" not in cell.state
        cell.edit("print(kept)")
        assert cell.run().printed() == "5\n"


@pytest.mark.slow
def test_what_cannot_work_here_is_said_in_words(reader):
    cell = reader.cell(1)
    cell.edit("name = input('Who? ')").run()
    assert "input() does not work here" in cell.state
    cell.edit("import torch").run()
    assert cell.state == "Stopped with an error: ModuleNotFoundError: No module named 'torch'"
    assert "torch is not to be had in the browser" in cell.output.inner_text()
    assert "micropip" not in cell.output.inner_text()
    with reader.page.expect_download() as download:
        cell.output.get_by_role("link", name="download this page’s notebook").click()
    assert json.loads(Path(download.value.path()).read_text(encoding="utf-8"))["nbformat"] == 4
    cell.edit("import numpy").run()  # Pyodide has it, but the core's folder has not
    assert "numpy could not be loaded from cdn.jsdelivr.net" in cell.output.inner_text()
    cell.edit("x = [0] * 600_000_000").run()
    assert "MemoryError" in cell.state and "more memory than a browser page can have" in cell.output.inner_text()
    cell.edit("for i in range(100_000): print(i)").run()
    assert "The output is cut here" in cell.output.inner_text() and cell.printed().endswith("\n399\n")
    cell.edit("import sys, warnings\nwarnings.warn('mind')\nprint('e', file=sys.stderr)").run()
    assert "mind" in cell.printed("stderr") and cell.printed("stderr").endswith("e\n")
    cell.edit("pass").run()
    assert "printed nothing" in cell.output.inner_text()


def test_a_page_opened_as_a_file_says_why_nothing_runs(site, open_page):
    reader = open_page((site / "cells.html").as_uri(), None)
    cell = reader.cell(1).run()
    assert "opened as a file" in cell.output.inner_text()
    assert cell.output.get_by_role("link", name="notebook").is_visible() and cell.published.is_visible()


@pytest.mark.slow
def test_without_network_the_page_says_so_and_runs_when_it_is_back(address, open_page):
    core = pyodide_core()
    reader = open_page(f"{address}cells.html", None)
    cell = reader.cell(1).run()
    assert "could not be loaded from cdn.jsdelivr.net" in cell.output.inner_text()
    assert cell.published.is_visible()
    reader.context.unroute_all()
    answer_cdn(reader.context, core)
    cell.press("Run")
    cell.output.locator("pre").wait_for(timeout=60_000)
    assert cell.wait().printed() == "six is 6\n"


@pytest.mark.slow
def test_without_network_the_editor_says_so(address, open_page):
    reader = open_page(f"{address}cells.html", None)
    reader.context.route("**/live-editor.js*", lambda route: route.abort())
    cell = reader.cell(1).press("Edit")
    reader.page.wait_for_function("document.querySelector('.live-state').textContent.includes('no network')")
    reader.context.unroute("**/live-editor.js*")
    cell.press("Edit").code.wait_for()


def test_without_webassembly_the_page_says_so(address, open_page):
    reader = open_page(f"{address}cells.html", None, script="delete globalThis.WebAssembly")
    assert "no WebAssembly" in reader.cell(1).run().output.inner_text()


@pytest.mark.slow
def test_a_reload_keeps_edits_and_says_that_variables_are_lost(reader):
    cell = reader.cell(1)
    cell.edit("a = 8\nprint('eight', a)").run()
    reader.page.reload()
    lost = reader.page.locator(".live-lost")
    assert "variables are lost" in lost.inner_text() and "Your edits are kept (cell 1)" in lost.inner_text()
    assert cell.element.locator(".cell_input pre").inner_text() == "a = 8\nprint('eight', a)"
    assert reader.cell(2).run().printed() == "product 72\n"
    assert lost.count() == 0, "it is true no longer"
    assert cell.printed() == "eight 8\n", "what was edited is shown when it runs before another cell"
    cell.press("Reset")
    reader.page.reload()
    assert "edits" not in lost.inner_text()
    reader.page.reload()
    assert lost.count() == 0, "it is said once"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_accessible_before_and_after_running_and_editing(reader, mode):
    page = reader.page
    page.evaluate("mode => { document.documentElement.dataset.theme = mode }", mode)
    assert violations(page, within="article") == []
    reader.cell(1).run()
    reader.cell(2).edit("# words\nclass A(int):\ndef f(self): return 'text', 1.5, None, True")
    assert page.locator(".live-editor .tok-keyword").count() > 2
    reader.cell(2).run()
    reader.cell(3).edit("print('x' * 500)\n1 / 0").run()
    assert reader.cell(3).output.locator("pre[tabindex='0']").count() == 1, "a wide output is reached by keyboard"
    assert violations(page, within="article") == []
    reader.cell(2).press("Reset")
    assert violations(page, within="article") == []


@pytest.mark.slow
def test_a_narrow_screen_is_not_widened(address, open_page):
    reader = open_page(f"{address}cells.html", pyodide_core(), viewport={"width": 375, "height": 700})
    reader.cell(1).edit("print('x' * 500)").run()
    assert reader.page.evaluate("document.documentElement.scrollWidth") <= 375
    for button in reader.cell(1).bar.locator("button:visible").all():
        box = button.bounding_box()
        assert box["height"] >= 24 and box["x"] >= 0 and box["x"] + box["width"] <= 375


@pytest.mark.slow
def test_a_page_cannot_run_twice_what_runs(reader):
    cell = reader.cell(1)
    cell.edit("import time\ntime.sleep(1)\nprint(len(seen)) if 'seen' in globals() else None\nseen = [1]").press("Run")
    assert cell.button("Run").get_attribute("aria-disabled") == "true"
    cell.button("Run").dispatch_event("click")
    cell.wait()
    reader.page.wait_for_timeout(1500)
    assert "printed nothing" in cell.output.inner_text()


def test_nothing_of_live_cells_is_in_the_search_index(site):
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"product"' in index or "product" in index
    assert "Run cell" not in index and '"reset"' not in index


# --- one's own copy of Pyodide --------------------------------------------------------------------------


@pytest.mark.slow
def test_a_site_of_its_own_python_asks_nothing_elsewhere(tmp_path, open_page):
    (tmp_path / "book").mkdir()
    self_host_pyodide.copy(pyodide_core(), tmp_path / "book" / "pyodide", [])
    with served(build(tmp_path, pyodide="pyodide/")) as address:
        reader = open_page(f"{address}cells.html", None)
        assert reader.cell(2).run().printed() == "product 42\n"
        assert not [url for url in reader.requests if not url.startswith(address) and "mathjax" not in url]
        cell = reader.cell(1)
        cell.edit("import numpy").run()
        assert "numpy is not to be had in the browser" in cell.output.inner_text()


def test_a_setting_that_names_no_pyodide_fails_the_build_in_one_line(tmp_path):
    with pytest.raises(AssertionError, match=r"pyodide_url in _config.yml names 'nowhere/'.*make pyodide DIST"):
        build(tmp_path, pyodide="nowhere", cells="# No cells\n")


def test_self_hosting_refuses_what_is_wrong(tmp_path):
    core, target = pyodide_core(), tmp_path / "pyodide"
    with pytest.raises(self_host_pyodide.CannotCopy, match=r"holds no contourpy.*full distribution"):
        self_host_pyodide.copy(core, target, ["numpy", "matplotlib"])
    with pytest.raises(self_host_pyodide.CannotCopy, match="has no package 'torch'"):
        self_host_pyodide.copy(core, target, ["torch"])
    with pytest.raises(self_host_pyodide.CannotCopy, match="is not there"):
        self_host_pyodide.copy(tmp_path / "none.tar.bz2", target, [])
    damaged = tmp_path / "damaged"
    shutil.copytree(core, damaged)
    with (damaged / "pyodide.asm.wasm").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(self_host_pyodide.CannotCopy, match=r"pyodide\.asm\.wasm in .* is damaged"):
        self_host_pyodide.copy(damaged, target, [])
    assert not target.exists(), "nothing is written before everything is checked"


# --- the chapters ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def book_address():
    with served(built()) as found:
        yield found


@pytest.mark.slow
def test_a_chapter_without_its_packages_says_what_could_not_be_loaded(book_address, open_page):
    """The core has no NumPy: the set-up fails, and the reader is told why, where they pressed."""
    reader = open_page(f"{book_address}self-attention.html", pyodide_core())
    cell = reader.cell(2).run()
    assert "set-up, which runs first" in cell.output.inner_text()
    assert "could not be loaded from cdn.jsdelivr.net" in cell.output.inner_text()
    assert reader.asked_for("/numpy-") and not reader.asked_for("/matplotlib-"), "cell 2 draws nothing"


@pytest.mark.skipif(
    "PYODIDE_DIST" not in os.environ, reason="PYODIDE_DIST names no full distribution of Pyodide 0.27.7"
)
@pytest.mark.parametrize("name", chapters())
def test_every_live_cell_of_the_chapters_prints_in_the_browser_what_is_published(name, book_address, open_page):
    reader = open_page(f"{book_address}{name}.html", Path(os.environ["PYODIDE_DIST"]))
    faults = []
    for wanted in live_cells(chapter(name).soup):
        if wanted.number is None:
            continue
        cell = reader.cell(wanted.number).run(300)
        figures = cell.output.locator("img")
        if not cell.state.startswith("Finished") or cell.printed("stderr"):
            faults.append(f"{wanted.name}: {cell.state}\n{cell.output.inner_text()}")
        elif not wanted.agrees(cell.printed()) or figures.count() != wanted.figures:
            faults.append(f"{wanted.name} printed\n{cell.printed()}\nnot\n{wanted.printed}")
        assert all(len(figure.get_attribute("alt")) > 60 for figure in figures.all())
    assert not faults, "\n".join(faults)


def test_the_small_book_has_all_kinds_of_cells():
    """Guards the tests above against a page that lost what they are about."""
    for part in ("remove-cell", "hide-input", "setup", "import rapidfuzz", "timing"):
        assert part in CELLS
