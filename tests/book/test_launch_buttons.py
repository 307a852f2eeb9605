"""Binder and Colab: no button without an address; with one they open the notebooks that `make notebooks` makes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
import yaml
from book_build import BOOK, HTML, ROOT, built, chapters
from bs4 import BeautifulSoup

PAGE = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---

# A page

It needs {download}`numbers.txt <data/numbers.txt>`.

```{code-cell} ipython3
print(1 + 1)
```
"""

A_SET = "ps0-warm-up"


def small_book(folder: Path, address: str) -> subprocess.CompletedProcess:
    """Build a book of two pages with this book's settings, and the repository at another address."""
    (folder / "book" / "data").mkdir(parents=True)
    for made in BOOK.glob("_*/"):  # extensions, styles, templates
        shutil.copytree(made, folder / "book" / made.name)
    shutil.copy(BOOK / "references.bib", folder / "book")
    (folder / "book" / "a-page.md").write_text(PAGE, encoding="utf-8")
    (folder / "book" / "data" / "numbers.txt").write_text("1 2 3\n", encoding="utf-8")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    config["repository"]["url"] = address
    (folder / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (folder / "book" / "index.md").write_text("# The first page\n", encoding="utf-8")
    shutil.copytree(ROOT / "assignments" / A_SET, folder / "assignments" / A_SET)
    (folder / "book" / f"{A_SET}.md").write_text(f"# A set\n\n```{{set-facts}} {A_SET}\n```\n", encoding="utf-8")
    toc = f"format: jb-book\nroot: index\nchapters:\n  - file: a-page\n  - file: {A_SET}\n"
    (folder / "_toc.yml").write_text(toc, encoding="utf-8")
    command = [str(Path(sys.executable).parent / "jupyter-book"), "build", "book/", "--config", "_config.yml"]
    command += ["--toc", str(folder / "_toc.yml"), "--path-output", ".", "-W", "--keep-going", "-q"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def buttons(page: Path) -> dict[str, str]:
    """What the launch buttons of a page are called, and where they lead."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    return {link.get_text().strip(): link["href"] for link in soup.select(".dropdown-launch-buttons a")}


def links_to_colab(page: Path) -> list[str]:
    """Where the text of a page, without its buttons, leads in Colab."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    return [link["href"] for link in soup.select("article a[href*='colab']")]


@pytest.mark.slow
def test_without_an_address_there_are_no_buttons():
    built()
    assert yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"] == ""
    for name in chapters():
        assert buttons(HTML / f"{name}.html") == {}
    assert links_to_colab(HTML / f"{A_SET}.html") == []


@pytest.mark.slow
def test_with_an_address_the_buttons_open_the_notebook(tmp_path):
    done = small_book(tmp_path, "https://github.com/somebody/attention-by-hand")
    assert done.returncode == 0, done.stdout + done.stderr
    html = tmp_path / "_build" / "html"
    where = "somebody/attention-by-hand"
    assert buttons(html / "a-page.html") == {
        "Binder": f"https://mybinder.org/v2/gh/{where}/notebooks?urlpath=lab/tree/a-page.ipynb",
        "Colab": f"https://colab.research.google.com/github/{where}/blob/notebooks/a-page.ipynb",
    }
    colab = f"https://colab.research.google.com/github/{where}/blob/notebooks/{A_SET}.ipynb"
    assert links_to_colab(html / f"{A_SET}.html") == [colab]
    # the theme has its own idea of the notebook: ours is there, and fetches its data where they do not lie beside it
    notebook = nbformat.read(html / "_sources" / "a-page.ipynb", as_version=4)
    assert [cell.cell_type for cell in notebook.cells] == ["markdown", "code", "code"]
    assert "{download}" not in notebook.cells[0].source
    fetch = notebook.cells[1].source
    assert f'"https://raw.githubusercontent.com/{where}/notebooks/" + name' in fetch
    # run where the file lies beside it, it fetches nothing
    shutil.copy(tmp_path / "book" / "data" / "numbers.txt", tmp_path)
    subprocess.run([sys.executable, "-c", fetch], cwd=tmp_path, check=True)


def test_an_address_that_cannot_work_is_refused_in_one_line(tmp_path):
    done = small_book(tmp_path, "attention-by-hand")
    assert done.returncode != 0
    said = done.stdout + done.stderr
    assert "repository: url is 'attention-by-hand'; it should look like https://github.com/OWNER/NAME" in said


@pytest.mark.slow
def test_the_branch_holds_what_the_buttons_and_the_chapters_name():
    built()
    # the book was built just now, and other workers read it
    subprocess.run(["make", "-o", "book", "notebooks"], cwd=ROOT, check=True, capture_output=True)
    folder = ROOT / "_build" / "notebooks"
    found = {path.name for path in folder.iterdir()}
    assert {f"{name}.ipynb" for name in [*chapters(), A_SET]} | {"speech.npz", "requirements.txt"} <= found
    needed = (folder / "requirements.txt").read_text(encoding="utf-8").splitlines()
    packages = {line.split("==")[0] for line in needed}
    assert packages == {"numpy", "matplotlib", "torch", "scikit-learn", "jupyterquiz", "rapidfuzz", "jupyterlab"}
    branch = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["branch"]
    assert f"git init -q -b {branch}" in (ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8")
