"""What tests of the book need: a build that is up to date, and a chapter's page, notebook and glued numbers."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import nbformat
import yaml
from bs4 import BeautifulSoup
from jupyter_cache import get_cache
from kept import alone, digest_of

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "book"
SHORT = "SHORT_BOOK" in os.environ  # `make test` reads a book with a fifth of the runs
BUILD = ROOT / "_build" / "short" / "_build" if SHORT else ROOT / "_build"
HTML = BUILD / "html"
FINGERPRINT = BUILD / ".book-sources"


def sources() -> list[Path]:
    """Every file the build reads, in a fixed order."""
    folders = (BOOK, ROOT / "assignments")  # the pages of the sets are made from what was released
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files = [path for path in files if "__pycache__" not in path.parts]
    return sorted([ROOT / "_config.yml", ROOT / "_toc.yml", *files])


@cache
def _failure() -> str:
    """What `make` said if it failed; empty where this very state was built, now or before.

    One worker builds while the others wait. Any warning fails the build, and with it every test that asks for a page.
    """
    with alone("book"):
        state = digest_of(sources())
        known = FINGERPRINT.read_text(encoding="utf-8") if FINGERPRINT.is_file() else ""
        if known == state and (HTML / "index.html").is_file():
            return ""
        target = "short-book" if SHORT else "book"
        done = subprocess.run(["make", target], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            FINGERPRINT.write_text(state, encoding="utf-8")
            return ""
        print(done.stdout, done.stderr)  # whole, beside the first test that asked
        # A warning begins with its file; an exception's cause is first in a chain, in the line that ends a traceback.
        causes = re.findall(r"^\S.*?(?:Error|WARNING): .*(?:\n(?![ \n]).*)*", done.stderr, re.MULTILINE)
        return f"`make {target}` failed:\n" + "\n".join(causes)[:3000]


def built() -> Path:
    """Build the book through ``make`` unless this very state was built before; return the HTML folder."""
    assert not _failure(), _failure()
    return HTML


def pages() -> list[str]:
    """Names of all pages in the table of contents, the first page included."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [toc["root"], *(chapter["file"] for part in toc["parts"] for chapter in part["chapters"])]


def ends(text: str) -> tuple[float, float]:
    """Lowest and highest of a range of runs, such as 0.32–0.74."""
    numbers = [float(end) for end in text.split("–")]
    return numbers[0], numbers[-1]


def chapters() -> list[str]:
    """Names of the numbered chapters, in their order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    return [chapter["file"] for part in toc["parts"] if part.get("numbered") for chapter in part["chapters"]]


@dataclass(frozen=True)
class Page:
    """One page of the built book."""

    name: str

    @cached_property
    def source(self) -> str:
        return (BOOK / f"{self.name}.md").read_text(encoding="utf-8")

    @cached_property
    def soup(self) -> BeautifulSoup:
        return BeautifulSoup((HTML / f"{self.name}.html").read_text(encoding="utf-8"), "html.parser")

    @property
    def article(self):
        return self.soup.find("article")

    @cached_property
    def notebook(self) -> nbformat.NotebookNode:
        """The executed notebook with its outputs.

        They come from the cache: MyST-NB leaves them out of ``jupyter_execute`` when it used the cache itself.
        """
        bare = nbformat.read(BUILD / "jupyter_execute" / f"{self.name}.ipynb", as_version=4)
        return get_cache(BUILD / ".jupyter_cache").merge_match_into_notebook(bare)[1]

    @cached_property
    def download(self) -> nbformat.NotebookNode:
        """The notebook offered for download."""
        return nbformat.read(HTML / "_sources" / f"{self.name}.ipynb", as_version=4)

    @cached_property
    def glued(self) -> dict[str, str]:
        path = BUILD / "jupyter_execute" / f"{self.name}.glue.json"
        records = json.loads(path.read_text(encoding="utf-8"))
        return {name: record["data"]["text/plain"] for name, record in records.items()}

    def value(self, name: str):
        """The number or text that a cell handed to the prose with ``put(name=...)``."""
        return ast.literal_eval(self.glued[name])

    def vector(self, name: str) -> list[float]:
        """The numbers of a text made with ``vec``."""
        return [float(number) for number in self.value(name).replace("−", "-").strip("()").split(",")]

    def shown(self, name: str) -> bool:
        """Whether the prose uses this glued value."""
        return re.search(rf"\{{glue:text\}}`{re.escape(name)}(:[^`]*)?`", self.source) is not None

    def printed(self, fragment: str) -> str:
        """What the one cell whose source contains ``fragment`` printed."""
        found = [cell for cell in self.notebook.cells if cell.cell_type == "code" and fragment in cell.source]
        assert len(found) == 1, f"{len(found)} cells of {self.name} contain {fragment!r}"
        return "".join(output.text for output in found[0].outputs if output.output_type == "stream")

    def questions(self) -> list[dict]:
        """The self-check questions as jupyterquiz gets them."""
        asked: list[dict] = []
        for cell in self.notebook.cells:
            for output in cell.get("outputs", []):
                html = output.get("data", {}).get("text/html", "")
                for match in re.finditer(r"var questions\w+=(?=\[)", html):
                    asked.extend(json.JSONDecoder().raw_decode(html, match.end())[0])
        return asked


@cache
def chapter(name: str) -> Page:
    """A page of the book, after making sure that the build is up to date."""
    built()
    return Page(name)
