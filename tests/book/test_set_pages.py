"""The pages of the problem sets say what the released notebooks say, offer these, and give nothing away."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from book_build import BOOK, HTML, ROOT, built, chapter, chapters, pages

from autograder.course import Course

COURSE = Course(ROOT)
SETS = sorted(
    (path.name for path in (ROOT / "source_solutions").iterdir() if path.is_dir()),
    key=lambda name: int(name[2 : name.index("-")]),
)


@pytest.fixture(scope="module", autouse=True)
def book():
    return built()


def extension():
    spec = importlib.util.spec_from_file_location("problem_sets", BOOK / "_ext" / "problem_sets.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look it up
    spec.loader.exec_module(module)
    return module


def released(name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "assignments" / name / f"{name}.ipynb", as_version=4)


def graded(name: str) -> list:
    return [cell for cell in released(name).cells if cell.metadata.get("nbgrader", {}).get("grade")]


def text_of(name: str) -> str:
    return " ".join(chapter(name).article.get_text().split())


def test_there_are_eleven_sets_and_each_has_its_page():
    assert len(SETS) == 11
    assert [name for name in pages() if name in SETS] == SETS


@pytest.mark.parametrize("name", SETS)
def test_points_and_names_are_those_of_the_released_notebook(name):
    """Counted here by another way than the extension's: cell by cell, and against the notebook's own headings."""
    text = text_of(name)
    total = sum(cell.metadata.nbgrader.points for cell in graded(name))
    by_hand = sum(cell.metadata.nbgrader.points for cell in graded(name) if cell.cell_type == "markdown")
    said = f"{total:g}: {total - by_hand:g} from automatic tests"
    assert said + (f", {by_hand:g} for what you write in words" if by_hand else ".") in text
    headings = re.findall(
        r"^## Exercise (\d+): (.+?) \(([\d +]+)", "\n".join(c.source for c in released(name).cells), re.M
    )
    assert headings
    for number, title, worth in headings:
        value = sum(map(int, worth.split("+")))
        assert f"Exercise {number}: {title} ({value} point" in text.replace("’", "'")
    for cell in released(name).cells:
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "code":
            defined = re.search(r"^(?:def|class) (\w+)", cell.source, re.M)
            assert defined is None or f"{defined[1]}" in text.split("Hand in: ", 1)[1]


@pytest.mark.parametrize("name", SETS)
def test_the_download_is_the_released_file(name):
    links = chapter(name).article.select("a.download[href]")
    offered = {Path(link["href"]).name: (HTML / link["href"]).read_bytes() for link in links}
    files = {p.name: p.read_bytes() for p in (ROOT / "assignments" / name).rglob("*") if p.is_file()}
    assert offered == files
    assert f"{name}.ipynb" in offered
    assert all("download" in link["class"] for link in links)


@pytest.mark.parametrize("name", SETS)
def test_a_set_and_its_chapter_lead_to_each_other(name):
    to = {link["href"].split("#")[0] for link in chapter(name).article.find_all("a", href=True)}
    assert "getting-started.html" in to, "how to work and hand in"
    home = "index" if name.startswith("ps0") else chapters()[SETS.index(name) - 1]
    assert f"{home}.html" in to
    back = {link["href"].split("#")[0] for link in chapter(home).article.find_all("a", href=True)}
    assert f"{name}.html" in back
    assert f"{name}.html" in {a["href"] for a in chapter("index").article.find_all("a", href=True)}
    assert f"{name}.html" in {a["href"] for a in chapter("problem-sets").article.find_all("a", href=True)}


def test_the_overview_counts_as_the_sets_do():
    rows = chapter("problem-sets").article.select("table tbody tr")
    assert len(rows) == len(SETS)
    for row, name in zip(rows, SETS, strict=True):
        cells = [cell.get_text() for cell in row.find_all("td")]
        assert float(cells[1]) == sum(cell.metadata.nbgrader.points for cell in graded(name))


def test_nothing_private_is_on_the_site():
    """No line of a solution, of a hidden test, of a rubric or of a catalogue, in any file that is published.

    A long line is told by itself; what the released notebooks or the chapters say themselves is no secret.
    """
    public = "\n".join(path.read_text(encoding="utf-8") for path in BOOK.rglob("*") if path.suffix in {".md", ".py"})
    public += "\n".join(cell.source for name in SETS for cell in released(name).cells)
    secrets = set()
    for folder in filter(Path.is_dir, (ROOT / "source_solutions").iterdir()):
        files = COURSE.set_files(folder.name)
        private = [files.catalogue, files.set_checks]
        for cell in files.source.cells:
            marks = cell.metadata.get("nbgrader", {})
            if marks.get("solution") or marks.get("grade"):
                private.append(cell.source)
        for line in "\n".join(private).splitlines():
            if len(line.strip()) >= 40 and line.strip() not in public:
                secrets.add(line.strip())
    assert len(secrets) > 1000
    for path in HTML.rglob("*"):
        if path.suffix in {".html", ".ipynb", ".txt", ".md", ".js"} and path.is_file():
            text = path.read_text(encoding="utf-8")
            if path.suffix == ".ipynb":
                text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
            told = [line for line in map(str.strip, text.splitlines()) if line in secrets]
            assert not told, f"{path.relative_to(HTML)}: {told[0]}"
    assert not list(HTML.rglob("catalogue*")) and not list(HTML.rglob("set_checks*"))


def test_a_notebook_of_another_form_is_refused_with_a_reason(tmp_path):
    module = extension()
    read_set, Unreadable = module.read_set, module.UnreadableSet
    folder = tmp_path / "ps0-warm-up"
    folder.mkdir()
    with pytest.raises(Unreadable, match=r"ps0-warm-up: there is no ps0-warm-up\.ipynb in assignments/ps0-warm-up"):
        read_set(folder)
    notebook = released("ps0-warm-up")
    target = folder / "ps0-warm-up.ipynb"
    notebook.cells[0].source = notebook.cells[0].source.replace("Plan one", "Take one")
    nbformat.write(notebook, target)
    with pytest.raises(Unreadable, match=r'has no heading "# Problem set N: …" or no "Plan … hours\."'):
        read_set(folder)
    notebook = released("ps0-warm-up")
    stub = next(cell for cell in notebook.cells if "def softmax" in cell.source)
    stub.source = "# YOUR CODE HERE\nraise NotImplementedError()"
    nbformat.write(notebook, target)
    with pytest.raises(Unreadable, match="the solution cell before softmax-tests does not say what it should bind"):
        read_set(folder)
