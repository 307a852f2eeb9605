"""Live cells in Firefox as Debian ships it. Playwright drives only a Firefox of its own; Mozilla's Marionette does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from live_site import build, served
from pyodide_core import pyodide_core

marionette = pytest.importorskip(
    "marionette_driver.marionette",
    exc_type=ImportError,
    reason="marionette_driver 3.7 needs telnetlib, which Python 3.13 no longer has",
)
# Marionette's client lets go of a socket unclosed for each time that Firefox does not answer yet
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
CONTROL = "\ue009"  # as WebDriver numbers the keys

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
BOOT_SECONDS = 120
BAR = "document.querySelector(\".live-bar[aria-label='Cell 1']\")"


class Reader:
    """Someone at the first cell of the page."""

    def __init__(self, firefox: Any) -> None:
        self.firefox = firefox

    def sees(self, expression: str) -> Any:
        return self.firefox.execute_script(f"return {expression}")

    def press(self, name: str) -> None:
        self.firefox.find_element("css selector", f".live-bar[aria-label='Cell 1'] [data-do={name}]").click()

    def wait(self, what: Callable[[], Any], seconds: float = 20) -> Any:
        deadline = time.monotonic() + seconds
        while not (found := what()):
            assert time.monotonic() < deadline, f"the cell says {self.state()!r}"
            time.sleep(0.2)
        return found

    def state(self) -> str:
        return self.sees(f"{BAR}.querySelector('.live-state').textContent")

    def output(self) -> str:
        return self.sees("document.querySelector('.live-output')?.innerText ?? ''")

    def types(self, code: str) -> None:
        editor = self.firefox.find_element("css selector", ".cm-content")
        editor.send_keys(CONTROL, "a")
        editor.send_keys(code)


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Iterator[Reader]:
    if FIREFOX is None:
        pytest.skip("no Firefox here (Debian: apt-get install firefox-esr)")
    folder = tmp_path_factory.mktemp("firefox")
    (folder / "book").mkdir()
    shutil.copytree(
        pyodide_core(), folder / "book" / "pyodide", ignore=lambda _, names: [n for n in names if n.endswith(".tgz")]
    )
    with served(build(folder, pyodide="pyodide/")) as address:
        firefox = marionette.Marionette(
            bin=FIREFOX, headless=True, startup_timeout=120, gecko_log=str(folder / "firefox.log")
        )
        firefox.start_session()
        firefox.navigate(f"{address}cells.html")
        yield Reader(firefox)
        firefox.quit()


@pytest.mark.slow
def test_a_cell_runs_is_broken_stopped_and_reset(reader: Reader, tmp_path: Path) -> None:
    published = reader.sees("document.querySelector('div.cell_output').innerText")
    reader.press("run")
    reader.wait(lambda: reader.state().startswith("Finished"), BOOT_SECONDS)
    assert "six is 6" in reader.output()
    reader.press("edit")
    reader.wait(lambda: reader.sees("document.querySelector('.cm-content') !== null"))
    reader.types("1/0")
    reader.press("run")
    assert "ZeroDivisionError" in reader.wait(lambda: "Error" in reader.output() and reader.output())
    reader.types("while True: pass")
    reader.press("run")
    reader.wait(lambda: reader.state().startswith("Running"), BOOT_SECONDS)
    reader.press("stop")
    reader.wait(lambda: reader.state().startswith("Stopped"))
    reader.press("reset")
    reader.wait(lambda: reader.output() == "")
    assert reader.sees("document.querySelector('div.cell_output').innerText") == published
    reader.press("run")
    reader.wait(lambda: reader.state().startswith("Finished"), BOOT_SECONDS)
    assert "six is 6" in reader.output()
