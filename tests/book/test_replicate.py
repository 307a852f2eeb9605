"""`make replicate`: other seeds reach a chapter, a false claim is reported, and the others are still heard."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from book_build import BOOK, ROOT

TOOL = ROOT / "tools" / "replicate.py"
HEAD = "---\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n\n# A chapter\n\n"
CELL = "```{{code-cell}} ipython3\n:tags: [remove-cell]\n{}\n```\n\n"


@pytest.fixture
def book(tmp_path):
    """Write chapters of one cell each, after the common set-up."""
    setup = (BOOK / "_setup.py").read_text(encoding="utf-8")

    def write(**chapters: str) -> Path:
        folder = tmp_path / "book"
        folder.mkdir()
        for name, code in chapters.items():
            text = HEAD + CELL.format(setup) + CELL.format(code)
            (folder / f"{name}.md").write_text(text, encoding="utf-8")
        return folder

    return write


def command(book: Path, *arguments: str) -> list[str]:
    return [sys.executable, str(TOOL), "--book", str(book), *arguments]


def replicate(book: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(command(book, *arguments), capture_output=True, text=True, check=False, timeout=120)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def test_a_false_claim_is_reported_and_the_others_are_heard(book):
    code = (
        "values = np.array([seed / 10_000 for seed in seeds(3)])\n"
        'claim("the seeds were moved", values >= 1, values)\n'
        'claim("only the published seeds are small", values < 1, values)\n'
        'claim("the same offset gives the same numbers", seeded(2).normal() == seeded(2).normal())\n'
    )
    folder = book(tiny=code)
    ended, said = replicate(folder, "tiny", "--seeds", "1", "--seeds", "7")
    assert ended == 1
    assert "4 of 6 claims held." in said
    lines = said.split("4 of 6 claims held.")[1].split("\n")
    assert [line.split("  ")[0].split() for line in lines if line] == [["NOT", "HELD", "tiny"]] * 2
    assert "seeds 1 " in said and "seeds 7 " in said and "[7. 7. 7.]" in said
    assert said.count("held     tiny") == 4, "claims after the false one are heard"
    assert sorted(path.name for path in folder.iterdir()) == ["tiny.md"], "nothing is left behind"


def test_published_seeds_hold_and_end_well(book):
    folder = book(tiny='claim("first seeds", list(seeds(3, offset=5)) == [5, 6, 7])', quiet="x = 1")
    ended, said = replicate(folder, "tiny", "quiet", "--seeds", "0")
    assert ended == 0, said
    assert "1 of 1 claims held." in said and "No claims yet: quiet." in said


@pytest.mark.slow
def test_a_chapter_that_breaks_off_is_a_failure_and_its_claims_are_kept(book):
    ended, said = replicate(book(tiny='claim("so far", True)\nraise ValueError("no more")'), "tiny", "--seeds", "3")
    assert ended == 1
    assert "held     tiny  seeds 3  so far" in said
    assert re.search(r"NOT HELD tiny  seeds 3  breaks off in cell 2 of 2: ValueError: no more", said)


def test_an_unknown_chapter_is_named(book):
    done = subprocess.run(command(book(tiny="x = 1"), "tniy"), capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "no chapter tniy" in done.stderr


def test_ctrl_c_shows_what_was_found(book, tmp_path):
    here = tmp_path / "reached"
    code = f'import time\nclaim("before", True)\nopen({str(here)!r}, "w").close()\ntime.sleep(1000)'
    with subprocess.Popen(
        command(book(tiny=code), "tiny"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        deadline = time.monotonic() + 300
        while not here.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        os.kill(running.pid, signal.SIGINT)
        try:
            said, errors = running.communicate(timeout=300)
        finally:
            running.kill()
    assert running.returncode == 130, said + errors
    assert re.search(r"held     tiny  seeds \d+  before", said) and "Interrupted" in said


def test_a_false_claim_ends_a_build(book):
    """Without the tool: the kernel of a build gets an error that says which claim."""
    setup = (BOOK / "_setup.py").read_text(encoding="utf-8")
    code = f'{setup}\nclaim("all is well", np.array([True, False]), "1 of 2")'
    quiet = {name: value for name, value in os.environ.items() if not name.startswith("BOOK_")}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**quiet, "MPLBACKEND": "Agg"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("AssertionError: This does not hold: all is well 1 of 2")
    empty = subprocess.run(
        [sys.executable, "-c", f'{setup}\nclaim("of nothing", [])'],
        env={**quiet, "MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "TypeError" in empty.stderr, "a claim over no runs is none"
