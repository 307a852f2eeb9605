"""The author's guide is true: its chapter builds, its set goes through audit, release and grading as it says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from book_build import BOOK, ROOT
from bs4 import BeautifulSoup

BLOCK = re.compile(r"^(`{3,})\{code-block\} \w+\n:caption: ([^\n]+)\n(.*?)\n\1$", re.S | re.M)
SHELL = re.compile(r"^```bash\n(.*?)^```$", re.S | re.M)
GUIDE = (BOOK / "authors-guide.md").read_text(encoding="utf-8")
TEXT = Path("source_solutions/ps11-cosine/ps11-cosine.py")
CATALOGUE = TEXT.with_name("catalogue.py")


def block(caption: str) -> str:
    found = [text for _, name, text in BLOCK.findall(GUIDE) if name == caption]
    assert len(found) == 1, f"the guide has {len(found)} blocks called {caption!r}"
    return found[0] + "\n"


def said(command: list[str], folder: Path, code: int = 0) -> str:
    """What a command prints, in one line."""
    # a wide terminal, so that lines are not broken
    wide = {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(command, cwd=folder, env=wide, capture_output=True, text=True, check=False)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return " ".join((done.stdout + done.stderr).split())


def autograder(folder: Path, *arguments: str, code: int = 0) -> str:
    return said([sys.executable, "-m", "autograder", *arguments], folder, code)


def add(text: str, line: str, after: str) -> str:
    assert text.count(after) == 1
    return text.replace(after, after + line)


@pytest.mark.slow
def test_the_set_of_the_guide_works_as_the_guide_says(tmp_path):
    shown = [line for group in SHELL.findall(GUIDE) for line in group.splitlines()]
    for command in ("audit ps11-cosine", "release ps11-cosine", "grade", "feedback"):
        assert f"autograder {command}" in shown
    (tmp_path / TEXT.parent).mkdir(parents=True)
    for name in ("nbgrader_config.py", "hand_in.py", str(TEXT), str(CATALOGUE)):
        (tmp_path / name).write_text(block(name), encoding="utf-8")

    # fewer seeds than an author takes, everything else the same
    first = autograder(tmp_path, "audit", "ps11-cosine", "--seeds", "5", code=1)
    complaints = block("what audit says").strip().splitlines()
    assert len(re.findall(r"\bbreach \(", first)) == len(complaints) == 3
    for complaint in complaints:
        assert " ".join(complaint.split()) in first

    line = block("ps11-cosine.py, one more line in cosine-sheet-tests")
    below = 'assert np.shape(cosine_sheet) == (3,), "cosine_sheet should be a list of three numbers."\n'
    (tmp_path / TEXT).write_text(add(block(str(TEXT)), line, below), encoding="utf-8")
    catalogue = block(str(CATALOGUE)).replace("import edited, right, wrong", "import edited, right, survivor, wrong")
    catalogue += "\n\n" + block("catalogue.py, at the end") + "\n\n" + block("catalogue.py, after that")
    (tmp_path / CATALOGUE).write_text(catalogue, encoding="utf-8")
    second = autograder(tmp_path, "audit", "ps11-cosine", "--seeds", "5")
    assert "ps11-cosine full 1/1 4/4 4/4 14/14 30/31 1/1 0/5" in second
    assert "breach (" not in second
    assert "`1/1`" in GUIDE and GUIDE.count("`4/4`") == 2 and "30 of 31 mutants" in GUIDE

    autograder(tmp_path, "release", "ps11-cosine")
    released = (tmp_path / "assignments/ps11-cosine/ps11-cosine.ipynb").read_text(encoding="utf-8")
    assert "np.linalg.norm(K, axis=1)" not in released and "Rubric" not in released and "agrees" not in released
    said([sys.executable, "hand_in.py"], tmp_path)
    autograder(tmp_path, "grade")
    autograder(tmp_path, "feedback")
    page = next((tmp_path / "feedback/ada/ps11-cosine").glob("*.html"))
    sentence = re.search(r"has the sentence \"(.+?)\"", GUIDE, re.S)[1]
    assert " ".join(sentence.split()) in BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser").get_text()


@pytest.mark.slow
def test_the_chapter_of_the_guide_builds(tmp_path):
    """In a book of its own, with this book's settings and extensions, and with nothing else than the glossary."""
    text = block("book/cosine-scores.md")
    place = "# (here stands book/_setup.py)"
    assert text.count(place) == 1
    small = tmp_path / "book"
    small.mkdir()
    for folder in BOOK.glob("_*/"):  # extensions, styles, templates
        shutil.copytree(folder, small / folder.name)
    shutil.copy(BOOK / "references.bib", small)
    setup = (BOOK / "_setup.py").read_text(encoding="utf-8").strip()
    (small / "cosine-scores.md").write_text(text.replace(place, setup), encoding="utf-8")
    words = "\n\n".join(f"{word}\n  A word." for word in ("key", "query", "score"))
    (small / "glossary.md").write_text(f"# Glossary\n\n```{{glossary}}\n{words}\n```\n", encoding="utf-8")
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config), encoding="utf-8")
    toc = {"format": "jb-book", "root": "cosine-scores", "chapters": [{"file": "glossary"}]}
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump(toc), encoding="utf-8")
    build = [str(Path(sys.executable).parent / "jupyter-book"), "build", "book/", "--config", "_config.yml"]
    said([*build, "--toc", str(tmp_path / "_toc.yml"), "--path-output", ".", "-W", "--keep-going"], tmp_path)
    html = (tmp_path / "_build/html/cosine-scores.html").read_text(encoding="utf-8")
    article = BeautifulSoup(html, "html.parser").find("article")
    assert "cosine is 0.995" in " ".join(article.get_text().split())
    assert article.find("img")["alt"].startswith("Heatmap of one row")
    assert "Its cosine with the query" in str(article)
    assert len(article.select('a[href*="glossary.html#term-"]')) == 3
    assert (tmp_path / "_build/html/_sources/cosine-scores.ipynb").is_file()
