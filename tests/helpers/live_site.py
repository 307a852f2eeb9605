"""A site with live cells under test: a small book made for it, a local server, and a browser that sees no network."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from site_server import running

ROOT = Path(__file__).resolve().parents[2]
CDN = "https://cdn.jsdelivr.net/pyodide/v0.27.7/full/"
TYPES = {".js": "text/javascript", ".wasm": "application/wasm", ".json": "application/json"}

CELLS = """
---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# Cells

```{code-cell} ipython3
:tags: [hide-input, setup]
from importlib.util import find_spec

def put(**numbers):
    if find_spec("myst_nb"):
        import myst_nb
```

```{code-cell} ipython3
a = 6
print("six is", a)
```

```{code-cell} ipython3
:tags: [remove-cell]
b = a + 1
put(b=b)
```

```{code-cell} ipython3
:tags: [hide-input]
total = a * b
print("product", total)
total
```

```{code-cell} ipython3
def half(x):
    return x / 2

half(total)
```

```{code-cell} ipython3
:tags: [torch]
import rapidfuzz

c = rapidfuzz.__name__
```

```{code-cell} ipython3
:tags: [torch]
print(c)
```

```{code-cell} ipython3
:tags: [timing]
from time import perf_counter
print("took", perf_counter() * 0, "seconds")
```
"""

CONFIG = """
title: Small
author: Tests
only_build_toc_files: true
execute:
  execute_notebooks: force
  timeout: 300
sphinx:
  local_extensions:
    clean_downloads: {extensions}
    live_cells: {extensions}
    theme_fixes: {extensions}
  config:
    language: en
    pyodide_url: {pyodide}
"""


def build(folder: Path, pyodide: str = CDN, cells: str = CELLS) -> Path:
    """Build a book of two pages in ``folder``, one with cells and one without; return its HTML folder."""
    book = folder / "book"
    book.mkdir(exist_ok=True)
    (book / "index.md").write_text("# Words only\n\nNothing runs here.\n", encoding="utf-8")
    (book / "cells.md").write_text(cells.lstrip(), encoding="utf-8")
    (book / "references.bib").write_text("", encoding="utf-8")
    (book / "_toc.yml").write_text("format: jb-book\nroot: index\nchapters:\n  - file: cells\n", encoding="utf-8")
    config = CONFIG.format(extensions=ROOT / "book" / "_ext", pyodide=pyodide)
    (book / "_config.yml").write_text(config, encoding="utf-8")
    program = Path(sys.executable).with_name("jupyter-book")
    command = [str(program), "build", str(book), "--path-output", str(folder), "-W", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "_build" / "html"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files quietly; with ``isolated`` it allows pages shared memory."""

    isolated = False

    def log_message(self, *args) -> None:
        """The tests' output stays readable."""

    def end_headers(self) -> None:
        if self.isolated:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        super().end_headers()


class IsolatedHandler(Handler):
    isolated = True


@contextmanager
def served(folder: Path, handler: type = Handler) -> Iterator[str]:
    """The folder at an address on this machine."""
    handle = functools.partial(handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handle) as server, running(server):
        yield f"http://127.0.0.1:{server.server_port}/"


def answer_cdn(context, folder: Path | None) -> None:
    """Answer the CDN's address from ``folder``, or, with None, like a machine without network."""

    def answer(route) -> None:
        file = folder and folder / route.request.url.removeprefix(CDN).split("?")[0]
        shared = {"access-control-allow-origin": "*", "cross-origin-resource-policy": "cross-origin"}
        if file is None:
            route.abort("internetdisconnected")
        elif file.is_file():
            kind = TYPES.get(file.suffix, "application/octet-stream")
            route.fulfill(body=file.read_bytes(), content_type=kind, headers=shared)
        else:
            route.fulfill(status=404, headers=shared)

    context.route(f"{CDN}**", answer)
    context.route("**/mathjax@**", lambda route: route.fulfill(body="", content_type="text/javascript"))


class Cell:
    """A live cell of an open page, as a reader handles it."""

    ENDED = "/^(Finished|Stopped|Not run|The published)|runs before this one/"

    def __init__(self, page, number: int):
        self.page, self.number = page, number
        self.bar = page.locator(f".live-bar[aria-label='Cell {number}']")
        self.output = page.locator(f".live-output[aria-label='Output of your run of cell {number}']")
        self.element = page.locator("div.cell").filter(has=self.bar)
        self.published = self.element.locator(".cell_output")
        self.code = self.element.locator(".cm-content")

    def button(self, name: str):
        return self.page.get_by_role("button", name=f"{name} cell {self.number}", exact=True)

    def press(self, name: str) -> Cell:
        self.button(name).click()
        return self

    @property
    def state(self) -> str:
        return self.bar.locator(".live-state").inner_text()

    def wait(self, seconds: float = 120) -> Cell:
        """Until the run has ended, one way or another."""
        self.page.wait_for_function(
            f"number => {self.ENDED}.test(document.querySelector("
            "`.live-bar[aria-label='Cell ${number}'] .live-state`).textContent)",
            arg=self.number,
            timeout=1000 * seconds,
        )
        return self

    def run(self, seconds: float = 120) -> Cell:
        return self.press("Run").wait(seconds)

    def edit(self, code: str) -> Cell:
        """Open the editor and type ``code`` in place of what is there, key by key."""
        if self.code.count() == 0:
            self.press("Edit")
        self.code.press("Control+a")
        self.code.press("Delete")
        self.code.press_sequentially(code)
        return self

    def printed(self, kind: str = "stdout") -> str:
        return "".join(self.output.locator(f"pre.live-{kind}").all_text_contents())


class Opened:
    """A page in a fresh window, with everything that it asked for and complained about."""

    def __init__(self, browser, url: str, pyodide: Path | None, script: str = "", **window):
        self.context = browser.new_context(**window)
        answer_cdn(self.context, pyodide)
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        if script:
            self.page.add_init_script(script)
        self.page.goto(url)

    def cell(self, number: int) -> Cell:
        return Cell(self.page, number)

    def asked_for(self, fragment: str) -> bool:
        return any(fragment in url for url in self.requests)
