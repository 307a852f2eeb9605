"""The built book: complete, self-contained, accessible, and every chapter made the same way."""

from __future__ import annotations

import importlib.util
import re
import shutil
from copy import deepcopy
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from book_build import BOOK, HTML, built, chapter, chapters, pages
from bs4 import BeautifulSoup
from kept import some_always
from live_site import build
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from pybtex.database import parse_file

CODE_WIDTH = 78  # columns that fit beside the contents at 1280 pixels
LEFTOVER = re.compile(r"\{(?:glue|cite|ref|doc|numref|eq|term|code-cell)[:\w-]*\}")


@pytest.fixture(scope="session", autouse=True)
def book():
    return built()


def plain(text: str) -> str:
    """Letters and digits only: headings pass through typography on their way to the page."""
    return re.sub(r"[\W_]+", "", text.lower())


@cache
def anchors(path: Path) -> set[str]:
    soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
    return {tag["id"] for tag in soup.find_all(id=True)}


def extension(name: str):
    spec = importlib.util.spec_from_file_location(name, BOOK / "_ext" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def shows(cell, *tags: str) -> bool:
    return not set(tags) & set(cell.metadata.get("tags", []))


# --- every page -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", pages())
def test_every_heading_of_the_source_is_on_the_page(name):
    page = chapter(name)
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1\s*$", "", page.source, flags=re.S | re.M)
    wanted = [plain(re.sub(r"\$.*?\$", "", line)) for line in re.findall(r"^#{1,4} (.+)$", text, flags=re.M)]
    assert wanted
    found = [plain(heading.get_text()) for heading in page.article.find_all(["h1", "h2", "h3", "h4"])]
    missing = [heading for heading in wanted if not any(heading in other for other in found)]
    assert not missing


@pytest.mark.parametrize("name", pages())
def test_nothing_of_the_markup_is_left_on_the_page(name):
    article = BeautifulSoup(str(chapter(name).article), "html.parser")
    for code in article.find_all(["pre", "code", "script", "style"]):
        code.decompose()
    assert not LEFTOVER.findall(article.get_text())
    assert ":::" not in article.get_text()


@pytest.mark.parametrize("name", pages())
def test_every_picture_says_what_it_shows(name):
    for image in chapter(name).article.find_all("img"):
        alt = image.get("alt", "")
        assert len(alt) > 60, f"{name}: {image.get('src')} needs a description, not {alt!r}"
        assert not alt.startswith(("../", "_images", "http"))


@pytest.mark.parametrize("name", pages())
def test_links_inside_the_book_lead_somewhere(name):
    page = chapter(name)
    for link in page.article.find_all("a", href=True):
        address = urlsplit(link["href"])
        if address.scheme or address.netloc:
            assert address.scheme == "https", link["href"]
            continue
        target = HTML / unquote(address.path) if address.path else HTML / f"{name}.html"
        assert target.is_file(), f"{name} links to {link['href']}"
        if address.fragment and target.suffix == ".html":
            assert unquote(address.fragment) in anchors(target), f"{name} links to {link['href']}"


@pytest.mark.parametrize("name", pages())
def test_a_page_loads_nothing_from_elsewhere_but_mathjax(name):
    soup = chapter(name).soup
    loaded = [tag["src"] for tag in soup.find_all(["script", "img", "iframe"], src=True)]
    loaded += [tag["href"] for tag in soup.find_all("link", href=True) if tag.get("rel") == ["stylesheet"]]
    elsewhere = [address for address in loaded if urlsplit(address).netloc]
    assert all("/mathjax@" in address for address in elsewhere), elsewhere
    inline = " ".join(script.get_text() for script in soup.find_all("script"))
    assert "THEBE_JS_URL" not in inline


def test_the_first_page_lists_every_chapter():
    first = chapter("index")
    linked = {link["href"].split("#")[0] for link in first.article.find_all("a", href=True)}
    assert {f"{name}.html" for name in chapters()} <= linked
    assert "getting-started.html" in linked


def test_getting_started_serves_its_three_readers():
    page = chapter("getting-started")
    for anchor in ("for-readers", "for-students", "for-instructors"):
        assert page.article.find(id=anchor)
    text = page.article.get_text()
    for words in ("student_id", "make course", "autograder grade", "Hand in"):
        assert words in text


def test_conventions_are_stated_on_the_first_page():
    text = chapter("index").article.find(id="conventions").get_text()
    for words in ("(..., T, d)", "may attend", "zero weights", "square root"):
        assert words in text


# --- every chapter --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", chapters())
def test_the_set_up_cell_is_the_common_one(name):
    common = (BOOK / "_setup.py").read_text(encoding="utf-8").strip()
    first = next(cell for cell in chapter(name).notebook.cells if cell.cell_type == "code")
    assert first.source.strip() == common, f"copy book/_setup.py into the first cell of {name}"


@pytest.mark.parametrize("name", chapters())
def test_a_chapter_has_all_its_parts(name):
    page = chapter(name)
    text = page.article.get_text()
    assert "What you will be able to do" in text
    headings = [plain(heading.get_text()) for heading in page.article.find_all("h2")]
    for wanted in ("exercises", "summary", "problemset", "furtherreading", "inpytorch"):
        assert any(wanted in heading for heading in headings), f"{name} has no section {wanted}"
    assert page.article.find(string=re.compile(r"^ps\d+-[a-z-]+$")), f"{name} does not name its problem set"


@pytest.mark.parametrize("name", chapters())
def test_a_chapter_asks_and_explains(name):
    asked = chapter(name).questions()
    assert len(asked) >= 4
    for question in asked:
        answers = question["answers"]
        assert len(answers) >= 2
        assert any(answer["correct"] for answer in answers), question["question"]
        assert not all(answer["correct"] for answer in answers), question["question"]
        assert all(len(answer["feedback"]) > 20 for answer in answers), question["question"]
    assert len({question["question"] for question in asked}) == len(asked)


@pytest.mark.parametrize("name", chapters())
def test_every_exercise_has_a_folded_solution(name):
    article = chapter(name).article
    exercises = article.select("div.exercise")
    solutions = article.select(".solution")
    assert len(exercises) >= 3
    assert len(solutions) == len(exercises)
    assert all(solution.name == "details" and not solution.has_attr("open") for solution in solutions)
    titles = [solution.find("summary") for solution in solutions]
    assert all(title.find("a") is None for title in titles), "a press on the title opens, and goes nowhere else"
    assert len({title.get_text() for title in titles}) == len(titles)


@pytest.mark.parametrize("name", chapters())
def test_every_citation_has_its_entry(name):
    page = chapter(name)
    keys = {key for group in re.findall(r"\{cite:[tp]\}`([^`]+)`", page.source) for key in group.split(",")}
    assert len(keys) >= 2, "further reading needs real citations"
    library = parse_file(str(BOOK / "references.bib"))
    assert keys <= set(library.entries)
    assert len(page.article.select("div.citation")) == len(keys)
    listed = {entry["id"] for entry in page.article.select("div.citation")}
    used = {link["href"] for link in page.article.select("a.reference.internal") if "#id" in link["href"]}
    assert {link.removeprefix("#") for link in used} == listed, "citations lead to the list of their own page"
    for entry in page.article.select("div.citation"):
        assert entry.select("a.external[href^='https://']"), entry.get_text()


def test_the_library_is_complete():
    library = parse_file(str(BOOK / "references.bib"))
    for key, entry in library.entries.items():
        assert entry.persons.get("author") and entry.fields.get("title") and entry.fields.get("year"), key
        assert {"booktitle", "journal", "publisher", "howpublished"} & set(entry.fields), key
        assert entry.fields.get("url", "").startswith("https://"), f"{key} needs a link, best its DOI"


@pytest.mark.parametrize("name", chapters())
def test_cells_print_no_warning_and_fit_the_page(name):
    for cell in chapter(name).notebook.cells:
        if cell.cell_type != "code":
            continue
        for output in cell.outputs:
            assert output.output_type != "error"
            assert not (output.output_type == "stream" and output.name == "stderr"), output.text
        if shows(cell, "hide-input", "remove-input", "hide-cell", "remove-cell"):
            wide = [line for line in cell.source.splitlines() if len(line) > CODE_WIDTH]
            assert not wide, f"{name}: lines run out of the page: {wide}"


@pytest.mark.parametrize("name", chapters())
def test_torch_comes_last(name):
    """A reader without PyTorch can run everything before the part that needs it."""
    cells = [cell for cell in chapter(name).notebook.cells if cell.cell_type == "code"]
    uses = [bool(re.search(r"^\s*(?:import|from) torch\b", cell.source, re.M)) for cell in cells]
    marked = ["torch" in cell.metadata.get("tags", []) for cell in cells]
    assert all(tag for tag, used in zip(marked, uses, strict=True) if used), "tag these cells `torch`"
    assert True not in marked or True in uses[marked.index(True) :]
    if True in marked:
        after = marked[marked.index(True) :]
        quizzes = ["remove-input" in cell.metadata.get("tags", []) for cell in cells[marked.index(True) :]]
        assert all(tag or quiz for tag, quiz in zip(after, quizzes, strict=True))


@pytest.mark.parametrize("name", chapters())
def test_numbers_come_from_cells_and_are_there(name):
    page = chapter(name)
    used = set(re.findall(r"\{glue:text\}`([\w]+)(?::[^`]*)?`", page.source))
    assert used
    assert used <= set(page.glued)
    assert len(page.article.select(".pasted-text")) == len(re.findall(r"\{glue:text\}`", page.source))


@pytest.mark.parametrize("name", chapters())
def test_every_number_for_the_prose_is_used_or_asserted_in_the_chapters_test(name):
    page = chapter(name)
    test = Path(__file__).with_name(f"test_chapter_{name.replace('-', '_')}.py").read_text(encoding="utf-8")
    assert not [number for number in page.glued if not page.shown(number) and f'"{number}"' not in test]


# --- the notebooks for download -------------------------------------------------------------------------


@pytest.mark.parametrize("name", chapters())
def test_the_download_is_a_clean_notebook(name):
    page = chapter(name)
    button = page.soup.find(class_="btn-download-notebook-button") or page.soup.find(
        "a", href=re.compile(rf"_sources/{re.escape(name)}\.ipynb$")
    )
    assert button is not None
    notebook = page.download
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    executed = [cell for cell in page.notebook.cells if cell.cell_type == "code"]
    assert [cell.source for cell in code] == [cell.source for cell in executed]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert not LEFTOVER.findall(cell.source), cell.source
            assert not re.search(r"^(:::|`{3,}\{)", cell.source, re.M), cell.source
            assert not re.search(r"^\([\w-]+\)=", cell.source, re.M), cell.source


def run_alone(cells: list, folder: Path) -> None:
    """Run cells as a notebook in a fresh kernel, in a folder in which nothing else lies but what a test put there."""
    notebook = nbformat.v4.new_notebook(cells=deepcopy(cells))
    NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()


@pytest.mark.parametrize("name", some_always(chapters(), ["transformer"]))
def test_the_download_runs_in_an_empty_folder(name, tmp_path):
    """Up to the cells that train: those are the very cells that the build ran."""
    page = chapter(name)
    nbformat.validate(page.download)
    trains = {cell.source for cell in page.notebook.cells if "torch" in cell.metadata.get("tags", [])}
    first = next(i for i, cell in enumerate(page.download.cells) if cell.source in trains)
    cells = page.download.cells[:first]
    assert sum(cell.cell_type == "code" for cell in cells) > 8
    run_alone(cells, tmp_path)


def test_the_download_says_which_file_it_needs_and_takes_it_from_beside(tmp_path):
    cells = [cell for cell in chapter("rnn-attention").download.cells if cell.cell_type == "code"]
    needs = [cells[0], next(cell for cell in cells if "speech.npz" in cell.source)]
    with pytest.raises(CellExecutionError, match=r"Save speech\.npz from the chapter's page beside"):
        run_alone(needs, tmp_path)
    link = chapter("rnn-attention").article.find("a", href=re.compile(r"speech\.npz$"))
    assert "download" in link["class"]
    shutil.copy(HTML / link["href"], tmp_path)
    run_alone(needs, tmp_path)


def test_clean_downloads_turns_markup_into_markdown():
    made = extension("clean_downloads").plain_markdown(
        "\n".join(
            [
                "(a-label)=",
                "# Title",
                "The weight is {glue:text}`w:.2f`, the row {glue:text}`row`; see {ref}`the rules <rules>`,",
                "{eq}`the-equation` and {cite:p}`a-page--ada1843,grace1952`.",
                "A {term}`self-attention` layer has {term}`heads <head>`.",
                ":::{admonition} Trap: a trap",
                ":class: warning",
                "Mind the *gap*.",
                ":::",
                "$$",
                "a = b",
                "$$ (the-equation)",
                "```{exercise} Try",
                ":label: try",
                "Do it.",
                "```",
                "````{solution} try",
                ":class: dropdown",
                "```python",
                "print(1)",
                "```",
                "````",
                "```{bibliography}",
                ":filter: docname in docnames",
                "```",
            ]
        ),
        {"w": "0.12345", "row": "'(0.1, 0.2)'"},
        {"ada1843": "Lovelace, 1843", "grace1952": "Hopper, 1952"},
    )
    assert made.splitlines()[0] == "# Title"
    assert "The weight is 0.12, the row (0.1, 0.2); see the rules," in made
    assert "(Lovelace, 1843; Hopper, 1952)" in made
    assert "A self-attention layer has heads." in made
    assert "> **Trap: a trap**\n>\n> Mind the *gap*." in made
    assert "$$\na = b\n$$\n" in made
    assert "**Exercise: Try**\n\nDo it." in made
    assert "<summary><b>Solution</b></summary>\n\n```python\nprint(1)\n```" in made
    assert "{" not in made and "the-equation)" not in made


def test_clean_downloads_refuses_an_unknown_number():
    with pytest.raises(KeyError, match="missing"):
        extension("clean_downloads").plain_markdown("{glue:text}`missing`", {}, {})


@pytest.mark.slow
def test_a_style_that_alone_was_changed_reaches_the_site(tmp_path):
    style = tmp_path / "book" / "_static" / "own.css"
    style.parent.mkdir(parents=True)
    for words in ("p { color: red }", "p { color: blue }"):
        style.write_text(words, encoding="utf-8")
        html = build(tmp_path, cells="# No cells\n")
        assert (html / "_static" / "own.css").read_text(encoding="utf-8") == words


def test_a_line_that_a_kernel_sends_in_pieces_stays_whole():
    pieces = [("stdout", "seen:"), ("stdout", " [1, 0]\n"), ("stderr", "oh\n"), ("stdout", "pairs: 2\n")]
    outputs = [nbformat.v4.new_output("stream", name=name, text=text) for name, text in pieces]
    whole = extension("theme_fixes").merged_whole(outputs)
    assert [output.text for output in whole] == ["seen: [1, 0]\npairs: 2\n", "oh\n"]
