"""The gradebook's writer, on real databases and with results made by hand (no student's code runs here)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import v4
from nbgrader.api import Gradebook
from sqlalchemy.engine import make_url
from tiny_course import GOOD, SET, answered, make_course, source_notebook, submit, write_source

from autograder.course import Course, CourseError
from autograder.gradebook import database, writer
from autograder.gradebook.assignment import REMOVED, ensure_assignment
from autograder.gradebook.database import GradebookError
from autograder.gradebook.reader import CellScore, lateness, scores
from autograder.gradebook.writer import Written, write
from autograder.notebook.reader import new_cell
from autograder.notebook.rebuild import EXTRA_ID
from autograder.release import release
from autograder.results import PASSED, UNREADABLE, Check, Exercise, Result


def result(student: str, points: float = 4.0, more: float = 1.0, **answers: str) -> Result:
    """A graded submission with these points for the two functions; `answers` as for `answered`."""
    answers = answers or GOOD
    return Result(
        student,
        SET,
        key=f"{student}-{points}",
        exercises=[
            Exercise(
                "double-tests",
                "Double",
                4,
                score=points,
                solution_ids=["double"],
                answered="double" in answers,
                checks=[Check("works", 4, PASSED)],
            ),
            Exercise("quadruple-tests", "Quadruple", 1, score=more, solution_ids=["quadruple"]),
            Exercise("why", "Why?", 2, "written", solution_ids=["why"], answered="why" in answers),
        ],
        notebook=json.loads(nbformat.writes(answered(**answers))),
    )


def unreadable(student: str, reason: str = "'x.ipynb' is a PDF, not a Jupyter notebook.") -> Result:
    return Result(student, SET, key="u", status=UNREADABLE, reason=reason)


def graded(course: Course, *results: Result) -> Written:
    ensure_assignment(course, course.set_files(SET))
    return write(course, results)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def mark(course: Course, student: str, cell: str, score: float | None = None, comment: str | None = None) -> None:
    """What a person does in formgrader: a score that needs no further look, and a comment."""
    with Gradebook(course.db_url) as book:
        if score is not None:
            grade = book.find_grade(cell, SET, SET, student)
            grade.manual_score, grade.needs_manual_grade = score, False
        if comment is not None:
            book.find_comment(cell, SET, SET, student).manual_comment = comment
        book.db.commit()


def dump(course: Course) -> list[tuple]:
    """Every row of the gradebook."""
    with sqlite3.connect(course.root / "gradebook.db") as db:
        tables = [r[0] for r in db.execute("select name from sqlite_master where type = 'table' order by name")]
        return [(table, *row) for table in tables for row in db.execute(f"select * from {table} order by 1")]


# --- writing ---------------------------------------------------------------------------------------------------------


def test_scores_reach_the_gradebook_and_nbgrader_adds_them_up(course: Course) -> None:
    graded(course, result("ada"), result("bob", 1.0, 0.0, double="def double(x): ..."))
    found = scores(course, SET)
    assert found["ada"].cells["double-tests"] == CellScore(4.0, None, None, False, max_score=4.0)
    assert found["ada"].cells["why"] == CellScore(None, None, None, True, max_score=2.0), "a person has to mark it"
    assert found["bob"].cells["why"].auto == 0.0, "an answer that is not there gets nothing"
    assert not found["bob"].cells["why"].needs_manual
    assert found["bob"].cells["why"].auto_comment == "No response."
    with Gradebook(course.db_url, "tiny") as book:
        ada = book.find_submission(SET, "ada")
        assert (ada.score, ada.max_score, ada.needs_manual_grade) == (5.0, 7.0, True)
        assert book.find_assignment(SET).course_id == "tiny"
    assert found["ada"].total == 5.0


def test_writing_again_changes_nothing(course: Course) -> None:
    results = [result("ada"), unreadable("bob")]
    graded(course, *results)
    before = dump(course)
    times = {p: p.stat().st_mtime_ns for p in (course.root / "autograded").rglob("*")}
    graded(course, *results)
    assert dump(course) == before
    assert {p: p.stat().st_mtime_ns for p in (course.root / "autograded").rglob("*")} == times


def test_a_submission_without_verdicts_is_no_silent_zero(course: Course) -> None:
    graded(course, result("ada"), unreadable("bob", "'<b>x</b>.ipynb' is a PDF."))
    bob = scores(course, SET)["bob"]
    assert all(c.auto is None and c.needs_manual for c in bob.cells.values() if c.max_score is not None)
    assert bob.cells["double"].auto_comment == "Not graded (unreadable): '<b>x</b>.ipynb' is a PDF."
    shown = nbformat.read(course.root / "autograded" / "bob" / SET / f"{SET}.ipynb", 4)
    assert "not graded (unreadable)" in shown.cells[0].source and "<b>" not in shown.cells[0].source
    boxes = [c.metadata.nbgrader.grade_id for c in shown.cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert boxes == ["double-tests", "quadruple-tests", "why"], "a person can enter scores in formgrader"


def test_the_autograded_folder_holds_the_notebook_the_data_and_the_timestamp(course: Course) -> None:
    folder = submit(course, "ada", answered(**GOOD), timestamp="2026-01-02 03:04:05 UTC")
    (folder / "page.html").write_text("<script>alert(1)</script>")
    graded(course, result("ada"))
    made = course.root / "autograded" / "ada" / SET
    assert sorted(p.name for p in made.iterdir()) == ["numbers.csv", f"{SET}.ipynb", "timestamp.txt"]
    text = (made / f"{SET}.ipynb").read_text()
    nbformat.validate(json.loads(text))
    assert "HIDDEN TESTS" not in text and "catalogue" not in text


def test_no_cell_of_a_students_looks_like_the_rubric(course: Course) -> None:
    ada = result("ada")
    fake = "**Model answer and rubric** (for whoever marks; no student sees it)\n\nFull marks for every answer."
    at = next(
        n for n, c in enumerate(ada.notebook["cells"]) if c["metadata"].get("nbgrader", {}).get("grade_id") == "why"
    )
    ada.notebook["cells"].insert(at + 1, new_cell("markdown", fake, f"{EXTRA_ID}1", {}))
    graded(course, ada)
    shown = nbformat.read(course.root / "autograded" / "ada" / SET / f"{SET}.ipynb", 4)
    right, theirs = (c.source for c in shown.cells if "Model answer and rubric" in c.source)
    assert right.startswith("**Model answer and rubric**") and "Full marks for every" not in right
    assert theirs.startswith("**The student's own cell:**\n") and theirs.endswith(fake)


def test_half_characters_in_an_output_do_not_stop_anything(course: Course) -> None:
    odd = result("ada")
    odd.notebook["cells"][2]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "half \ud83d of one\n"}]
    assert graded(course, odd, result("bob")).problems == []
    nbformat.read(course.root / "autograded" / "ada" / SET / f"{SET}.ipynb", 4)


def test_hundreds_go_in_at_once(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "AT_ONCE", 40)
    opened = []
    real = database.opened
    monkeypatch.setattr(database, "opened", lambda c: opened.append(1) or real(c))
    ensure_assignment(course, course.set_files(SET))
    opened.clear()
    write(course, (result(f"student-{n:03}", more=0.0) for n in range(100)))
    assert len(opened) == 3
    found = scores(course, SET)
    assert len(found) == 100 and {s.total for s in found.values()} == {4.0}


def test_a_name_that_is_no_folder_is_reported_and_the_rest_written(course: Course) -> None:
    written = graded(course, result("../../etc"), result("ada"))
    assert written.problems == ["'../../etc' cannot be the name of a student's folder"]
    assert list(scores(course, SET)) == ["ada"]


def test_a_file_that_cannot_be_written_is_reported_and_the_rest_written(course: Course) -> None:
    (course.root / "autograded").mkdir()
    (course.root / "autograded" / "ada").write_text("in the way")
    written = graded(course, result("ada"), result("bob"))
    assert len(written.problems) == 1 and written.problems[0].startswith("ada: ")
    assert scores(course, SET).keys() == {"ada", "bob"}
    assert (course.root / "autograded" / "bob" / SET / f"{SET}.ipynb").exists()


def test_a_set_that_is_not_in_the_gradebook_is_said_so(course: Course) -> None:
    with pytest.raises(CourseError, match="not in the gradebook"):
        write(course, [result("ada")])
    with pytest.raises(CourseError, match="no set 'ps7'"):
        write(course, [Result("ada", "ps7", "k")])


# --- what people entered ---------------------------------------------------------------------------------------------


def test_marks_and_comments_survive_and_are_looked_at_again_only_after_a_change(course: Course) -> None:
    graded(course, result("ada"), result("bob"))
    mark(course, "ada", "why", 1.5)
    mark(course, "ada", "why", comment="Nearly.")
    mark(course, "ada", "double-tests", 3.5)
    mark(course, "ada", "double", comment="No loops please.")
    graded(course, result("ada"), result("bob"))
    ada = scores(course, SET)["ada"]
    assert ada.cells["why"] == CellScore(None, 1.5, None, False, "Nearly.", max_score=2.0)
    assert ada.cells["double-tests"] == CellScore(4.0, 3.5, None, False, max_score=4.0)
    assert ada.total == 6.0

    graded(course, result("ada", 2.0, **{**GOOD, "why": "Another answer."}))
    ada = scores(course, SET)["ada"]
    assert ada.cells["why"] == CellScore(None, 1.5, None, True, "Nearly.", max_score=2.0)
    assert ada.cells["double-tests"] == CellScore(2.0, 3.5, None, True, max_score=4.0)
    assert (ada.cells["double"].comment, ada.cells["double-tests"].score) == ("No loops please.", 3.5)


def test_extra_credit_counts_as_nbgrader_counts_it(course: Course) -> None:
    graded(course, result("ada"))
    with Gradebook(course.db_url) as book:
        book.find_grade("double-tests", SET, SET, "ada").extra_credit = 0.5
        book.db.commit()
        assert book.find_submission(SET, "ada").score == 5.5
    graded(course, result("ada"))
    assert scores(course, SET)["ada"].total == 5.5
    assert scores(course, SET)["ada"].cells["double-tests"].score == 4.5


def test_there_are_no_marks_without_a_gradebook(course: Course) -> None:
    assert scores(course, SET) == {}
    assert not (course.root / "gradebook.db").exists(), "reading makes no file"


# --- the set changes -------------------------------------------------------------------------------------------------


def test_cells_change_under_submissions(course: Course) -> None:
    graded(course, result("ada"), result("bob"))
    mark(course, "ada", "why", 2.0, "Good.")
    mark(course, "ada", "quadruple-tests", 0.25)
    with Gradebook(course.db_url) as book:
        before = {g.name: g.id for g in book.find_submission(SET, "ada").notebooks[0].grades}

    source = source_notebook()
    by_id = {c.id: c for c in source.cells}
    by_id["double-tests"].metadata.nbgrader.points = 6
    source.cells.remove(by_id["quadruple-tests"])
    new = by_id["quadruple-tests"].copy()
    new.id = "quadruple-checks"
    new.metadata = v4.new_code_cell(metadata={"nbgrader": {**new.metadata.nbgrader, "grade_id": new.id}}).metadata
    source.cells.insert(8, new)
    write_source(course.root, source)
    course = Course(course.root)

    remarks = ensure_assignment(course, course.set_files(SET))
    assert len(remarks) == 1 and "quadruple-tests" in remarks[0]
    kept = [json.loads(line) for line in (course.results_folder / SET / REMOVED).read_text().splitlines()]
    assert [(k["student"], k["cell"], k["manual_score"]) for k in kept] == [("ada", "quadruple-tests", 0.25)]
    with Gradebook(course.db_url) as book:
        after = {g.name: g.id for g in book.find_submission(SET, "ada").notebooks[0].grades}
        assert after.keys() == {"double-tests", "quadruple-checks", "why"}
        assert after["why"] == before["why"] and after["double-tests"] == before["double-tests"]
        assert book.find_assignment(SET).max_score == 9.0
    ada = scores(course, SET)["ada"]
    assert ada.cells["why"].manual == 2.0 and ada.cells["why"].comment == "Good."
    assert ada.cells["quadruple-checks"] == CellScore(None, None, None, True, max_score=1.0)
    assert ensure_assignment(course, course.set_files(SET)) == []
    release(course, SET)


def test_a_faulty_source_is_one_line(course: Course) -> None:
    source = source_notebook()
    source.cells[4].source = source.cells[4].source.replace("    ### END SOLUTION", "")
    write_source(course.root, source)
    course = Course(course.root)
    with pytest.raises(CourseError, match=rf"{SET}: .*no end solution statement") as raised:
        ensure_assignment(course, course.set_files(SET))
    assert "\n" not in str(raised.value)


# --- time ------------------------------------------------------------------------------------------------------------


def test_lateness_costs_what_the_course_says(tmp_path: Path) -> None:
    plugin = (
        "from nbgrader.plugins import BasePlugin\n\n\nclass PerHour(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n"
        "        if student_id == 'eve':\n            raise KeyError('eve')\n"
        "        return total_seconds_late / 3600\n"
    )
    course = make_course(tmp_path / "course", "c.AssignLatePenalties.plugin_class = 'late_by_hour.PerHour'")
    (course.root / "late_by_hour.py").write_text(plugin)
    stamps = {
        "ada": "2026-01-01 10:00:00 UTC",
        "bob": "2026-01-01 14:00:00 +0100",
        "cyd": "2026-01-03 12:00:00 UTC",
        "eve": "2026-01-01 13:00:00 UTC",
    }
    for student, stamp in stamps.items():
        submit(course, student, answered(**GOOD), timestamp=stamp)
    ensure_assignment(course, course.set_files(SET))
    with Gradebook(course.db_url, "tiny") as book:
        book.update_or_create_assignment(SET, duedate="2026-01-01 12:00:00 UTC")
    write(course, [result(s) for s in stamps])
    found = scores(course, SET)
    assert found["ada"].late_penalty is None
    assert (found["bob"].late_penalty, found["bob"].total) == (1.0, 4.0)
    assert (found["cyd"].late_penalty, found["cyd"].total) == (5.0, 0.0), "never more than the score"
    assert found["bob"].timestamp == datetime(2026, 1, 1, 13)
    assert found["eve"].late_penalty is None and any("eve: " in line for line in lateness(course, SET))
    with Gradebook(course.db_url, "tiny") as book:
        book.grant_extension(SET, "cyd", days=2)
    write(course, [result("cyd")])
    assert scores(course, SET)["cyd"].late_penalty is None


@pytest.mark.parametrize(
    "stamp",
    [
        "yesterday evening",
        "2026-13-45 99:00",
        "0001-01-01 00:00:00 +1400",
        "",
        "1" * 5000,
        "\udcff",
        "2026 1 2 3 4 5 6",
    ],
)
def test_a_bad_timestamp_is_a_remark(course: Course, stamp: str) -> None:
    folder = submit(course, "ada", answered(**GOOD))
    (folder / "timestamp.txt").write_bytes(stamp.encode("utf-8", "surrogateescape"))
    written = graded(course, result("ada"), result("bob"))
    assert written.problems == []
    assert len(written.remarks) == 1 and written.remarks[0].startswith("ada: timestamp.txt")
    assert scores(course, SET)["ada"].timestamp is None and scores(course, SET)["bob"].total == 5.0


# --- a database in trouble -------------------------------------------------------------------------------------------


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite waits not at all, so that only the writer's own tries count."""
    real = database.create_engine
    monkeypatch.setattr(database, "create_engine", lambda url: real(f"{url}?timeout=0"))


def test_a_lock_is_waited_for(course: Course, impatient: None) -> None:
    graded(course, result("ada"))
    holder = sqlite3.connect(course.root / "gradebook.db", check_same_thread=False, isolation_level=None)
    holder.execute("begin exclusive")
    threading.Timer(0.5, lambda: holder.execute("commit")).start()
    begin = time.monotonic()
    write(course, [result("ada", 2.0), result("bob")])
    assert time.monotonic() - begin > 0.4
    holder.close()
    assert scores(course, SET)["ada"].cells["double-tests"].auto == 2.0


def test_a_lock_that_stays_is_one_clear_line(course: Course, impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    graded(course, result("ada"))
    monkeypatch.setattr(database, "TRIES", 3)
    monkeypatch.setattr(database, "FIRST_PAUSE", 0.01)
    holder = sqlite3.connect(course.root / "gradebook.db", isolation_level=None)
    holder.execute("begin exclusive")
    with pytest.raises(GradebookError, match=r"in 3 tries \(database is locked\)") as raised:
        write(course, [result("ada", 2.0)])
    assert "\n" not in str(raised.value)
    holder.execute("rollback")
    holder.close()
    assert scores(course, SET)["ada"].cells["double-tests"].auto == 4.0


def test_neither_a_lock_nor_a_stop_loses_what_came_before(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "AT_ONCE", 2)
    ensure_assignment(course, course.set_files(SET))
    real, seen = writer._write_group, []

    def locked_at_first(*arguments: Any) -> None:
        seen.append(1)
        if len(seen) == 1:
            raise GradebookError("locked")
        real(*arguments)

    def stopped() -> Iterator[Result]:
        yield from map(result, "abc")
        raise KeyboardInterrupt

    monkeypatch.setattr(writer, "_write_group", locked_at_first)
    with pytest.raises(GradebookError, match="locked"):
        write(course, (result(s) for s in "abcde"))
    assert scores(course, SET).keys() == set("cde")
    with pytest.raises(KeyboardInterrupt):
        write(course, stopped())
    assert scores(course, SET).keys() == set("abcde")


def test_no_password_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://me:secret@nowhere.invalid/grades"
    course = make_course(tmp_path / "course", f"c.CourseDirectory.db_url = {url!r}")
    assert "secret" not in database.shown_url(course)


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a database on a PostgreSQL server of our own; AUTOGRADER_TEST_DB names another, an empty one."""
    if "AUTOGRADER_TEST_DB" in os.environ:
        yield os.environ["AUTOGRADER_TEST_DB"]
        return
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    programs, as_user = found[-1].parent, []
    # not below pytest's folder, which other accounts may not enter; root may not run a server
    place = Path(tempfile.mkdtemp(prefix="postgres-"))
    if os.getuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        shutil.chown(place, "postgres")
    settings = f"-c listen_addresses= -c unix_socket_directories={place} -c fsync=off"
    try:
        for command in (
            ["initdb", "-D", place / "data", "-U", "teacher", "--auth=trust", "--no-sync"],
            ["pg_ctl", "-D", place / "data", "-w", "-l", place / "log", "-o", settings, "start"],
            ["createdb", "-h", place, "-U", "teacher", "grades"],
        ):
            program = [*as_user, programs / command[0], *command[1:]]
            subprocess.run(program, check=True, capture_output=True, cwd=place, timeout=120)
        yield f"postgresql+psycopg://teacher@/grades?host={place}"
    finally:
        stop = [*as_user, programs / "pg_ctl", "-D", place / "data", "-m", "immediate", "stop"]
        subprocess.run(stop, capture_output=True, cwd="/", timeout=60)
        shutil.rmtree(place)


def test_postgresql(tmp_path: Path, postgres: str) -> None:
    """Everything above in one go, on a real server."""
    url = postgres
    assert make_url(url).get_backend_name() == "postgresql"
    course = make_course(tmp_path / "course", f"c.CourseDirectory.db_url = {url!r}")
    submit(course, "ada", answered(**GOOD), timestamp="2026-01-02 03:04:05 UTC")
    graded(course, result("ada"), unreadable("bob", "nul \0 inside"))
    mark(course, "ada", "why", 1.5, "Nearly.")
    mark(course, "ada", "quadruple-tests", 0.25)
    too_long = "x" * 200  # ids have at most 128 characters in nbgrader's tables
    written = graded(course, result("ada", 3.0), result(too_long), result("cyd"))
    assert len(written.problems) == 1 and written.problems[0].startswith(too_long)
    found = scores(course, SET)
    assert found.keys() == {"ada", "bob", "cyd"}
    assert found["ada"].cells["why"].manual == 1.5 and found["ada"].total == 3.0 + 0.25 + 1.5
    source = source_notebook()
    source.cells = [c for c in source.cells if c.id != "quadruple-tests"]
    write_source(course.root, source)
    course = Course(course.root)
    assert len(ensure_assignment(course, course.set_files(SET))) == 1
    assert "quadruple-tests" not in scores(course, SET)["ada"].cells
