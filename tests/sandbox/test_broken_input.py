"""A class in which nobody's notebook arrived as it was released: what each gets, and what is said about it.

Every submission is right unless its entry says otherwise: 4 points for `double`, 1 for `quadruple`. So honest work
keeps all five whatever happened to the file, and what cannot be graded has a status of its own and one clear sentence.
The whole class goes through the command line at once, with its gradebook: nobody stops anybody else.
"""

from __future__ import annotations

import csv
import html
import io
import json
import subprocess
import sys
from dataclasses import dataclass

import nbformat
import pytest
from broken_files import CASES, FILE, cell, changed, good, text_of, unreadable, written
from nbformat import v4
from tiny_course import SET, make_course, source_notebook, write_source

from autograder.course import Course
from autograder.gradebook.reader import scores
from autograder.grading.store import Store
from autograder.results import GRADED, Result

# ----------------------------------------------------------------------------------------- encodings and debris

ACCENTED = good()
cell(ACCENTED, "why").source = "Größe – naïve “Ω”"
TEXT = text_of(ACCENTED)
WESTERN = TEXT.replace("Ω", "o")

written("utf-8", TEXT.encode())
written("bom", b"\xef\xbb\xbf" + TEXT.encode(), said="byte order mark")
for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"):
    written(encoding, TEXT.encode(encoding), said="was saved as UTF-")
written("cp1252", WESTERN.encode("cp1252"), said="old Windows encoding")
written("latin-1", WESTERN.replace("–", "-").replace("“", '\\"').replace("”", '\\"').encode("latin-1"), said="Windows")
written("broken-utf-8", TEXT.encode().replace("ö".encode(), b"\xc3"), said="were broken")
written("crlf", TEXT.replace("\n", "\r\n").encode())
written("cr-only", TEXT.replace("\n", "\r").encode())
written("crlf-in-cells", TEXT.replace("\\n", "\\r\\n").encode())
written("cr-in-cells", TEXT.replace("\\n", "\\r").encode())
written("nul-in-file", TEXT.replace("Größe", "Grö\0ße").encode() + b"\0" * 512, said="NUL")
written("nul-in-cell", TEXT.replace("def double", "\\u0000def double").encode(), said="NUL")
written("half-characters", TEXT.replace("Größe", "\\ud800 \\udc00").encode(), said="broken characters")
written("half-character-in-code", TEXT.replace("return 2 *", "'\\ud83d'\\n    return 2 *").encode(), said="broken")
written("raw-surrogates", TEXT.replace("Größe", "\ud83d\ude00").encode("utf-8", "surrogatepass"))
written("control-characters", TEXT.replace("Größe", "\x01\x0b\x1b[31m").encode())
written("something-behind", TEXT.encode() + b"\n}\n<html>", said="behind the end")
written("twice-in-a-row", TEXT.encode() * 2, said="behind the end")
written("no-break-spaces", TEXT.replace("return 2 *", "return 2\u00a0*").encode(), 1.0, "character U+00A0")
unreadable("truncated", TEXT.encode()[: len(TEXT) // 2], "not saved or uploaded completely")
unreadable("truncated-at-the-end", TEXT.encode().rstrip()[:-1], "not saved or uploaded completely")
unreadable("empty", b"", "is empty")
unreadable("only-zeros", b"\0" * 4096, "is empty")
unreadable("a-pdf", b"%PDF-1.7\n", "is a PDF")
unreadable("a-zip", b"PK\x03\x04" + bytes(100), "a zip archive")
unreadable("a-web-page", b"<!DOCTYPE html><html><body>Sign in</body></html>", "a web page")
unreadable("a-script", b"def double(x):\n    return 2 * x\n", "a Python script or plain text")
unreadable("merge-conflict", TEXT.replace(' "cells"', '<<<<<<< HEAD\n "cells"').encode(), "merge conflict")
unreadable("deep-json", b'{"cells":' * 100_000, "nested too deeply")
unreadable("deep-lists", b"[" * 100_000, "nested too deeply")
unreadable("a-number-without-end", b'{"cells": [], "n": ' + b"9" * 10_000 + b"}", "number too long")
unreadable("too-big", TEXT.encode() + b" " * 21_000_000, "at most 20 MB")
unreadable("json-of-something-else", b'{"rows": [1, 2, 3]}', "without notebook cells")
unreadable(
    "another-set",
    text_of(v4.new_notebook(cells=[v4.new_code_cell("def half(x):\n    return x / 2")])).encode(),
    "no exercise of this problem set",
)

# ----------------------------------------------------------------------------------------------------- formats

for minor in range(6):
    changed(f"nbformat-4.{minor}", lambda n, minor=minor: n.update(nbformat_minor=minor))
    if minor < 5:
        changed(
            f"nbformat-4.{minor}-without-ids",
            lambda n, minor=minor: n.update(nbformat_minor=minor) or [c.pop("id") for c in n.cells],
        )
for version in [(4, 6), (4, 99), (5, 0), (1, 0), (99, 1)]:
    changed(f"nbformat-{version[0]}.{version[1]}", lambda n, v=version: n.update(nbformat=v[0], nbformat_minor=v[1]))
changed("nbformat-3", lambda n: nbformat.convert(n, 3), said="old format")
changed("nbformat-2", lambda n: {**nbformat.convert(n, 3), "nbformat": 2}, said="old format")
changed("nbformat-as-text", lambda n: n.update(nbformat="4", nbformat_minor=None))
changed("no-nbformat", lambda n: [n.pop("nbformat"), n.pop("nbformat_minor")])
changed("server-answer", lambda n: {"name": FILE, "type": "notebook", "content": dict(n)})
written("duplicate-keys", TEXT.replace('"cells": [', '"cells": [],\n "nbformat": 3,\n "cells": [', 1).encode())
written("duplicate-sources", TEXT.replace('"source": "def double', '"source": "1/0", "source": "def double').encode())


# --------------------------------------------------------------------------------------------------- the class


@dataclass
class Graded:
    course: Course
    rows: dict[str, dict]
    results: dict[str, Result]
    said: str


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Graded:
    course = make_course(tmp_path_factory.mktemp("class"))
    source = source_notebook()
    source.metadata["autograder"] = {"cell_seconds": 60}  # the time of a cell is not what is looked at here
    write_source(course.root, source)
    for student, case in CASES.items():
        folder = course.root / "submitted" / student / SET
        folder.mkdir(parents=True)
        case.make(folder)
    command = [sys.executable, "-m", "autograder", "grade", "--json", "--jobs", "2"]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=900)
    for student in CASES:
        (course.root / "submitted" / student).chmod(0o755)
        (course.root / "submitted" / student / SET).chmod(0o755)
    assert done.stdout.startswith("["), done.stderr[-3000:]
    rows = {row["student"]: row for row in json.loads(done.stdout)}
    results = {result.student: result for result in Store(course.results_folder).all(SET)}
    return Graded(course, rows, results, f"{done.returncode} {done.stderr}")


def test_nobody_is_left_out_and_nobody_stops_the_others(graded: Graded) -> None:
    assert set(graded.rows) == set(graded.results) == set(CASES)
    assert graded.said.startswith("0 ") and "Traceback" not in graded.said


@pytest.mark.parametrize("student", CASES)
def test_what_each_gets(graded: Graded, student: str) -> None:
    case, result = CASES[student], graded.results[student]
    reasons = [c.reason for e in result.exercises for c in e.checks]
    told = "\n".join([result.reason, *result.notes, *reasons])
    assert (result.status, graded.rows[student]["score"]) == (case.status, case.score), told
    assert any(part in told.replace("\\", "") for part in case.said.replace("\\", "").split("|")), told
    assert "\n" not in result.reason and (result.reason or result.status == GRADED)


def test_the_gradebook_holds_what_was_graded_and_no_silent_zero(graded: Graded) -> None:
    found = scores(graded.course, SET)
    assert set(found) == set(CASES)
    for student, case in CASES.items():
        automatic = [found[student].cells[i] for i in ("double-tests", "quadruple-tests")]
        if case.status == GRADED:
            assert sum(c.auto for c in automatic) == case.score, student
        else:
            assert all(c.auto is None and c.needs_manual for c in automatic), student


def test_the_exported_table_holds_everybody_and_no_formula(graded: Graded) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "autograder", "export", "-o", "marks.csv"],
        cwd=graded.course.root,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    table = (graded.course.root / "marks.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == len(CASES)
    assert not any(value.startswith(("=", "+", "@", "\t", "\r")) for row in rows for value in row.values())
    said = {row["id"].lstrip("'"): row for row in rows}
    for student, case in CASES.items():
        row = said[student.lstrip("'")]
        assert (row["status"], bool(row["reason"])) == (case.status, case.status != GRADED), row


@pytest.mark.slow
def test_pages_for_everybody(graded: Graded) -> None:
    for command in ("feedback", "report"):
        done = subprocess.run(
            [sys.executable, "-m", "autograder", command],
            cwd=graded.course.root,
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    report = (graded.course.report_folder / f"{SET}.html").read_text(encoding="utf-8")
    assert "<b>bold" not in report
    for student, case in CASES.items():
        page = graded.course.feedback_folder / student / SET / f"{SET}.html"
        assert page.exists(), student
        if case.status != GRADED:
            said = " ".join(html.unescape(page.read_text(encoding="utf-8")).split())
            assert graded.results[student].reason in said, student
