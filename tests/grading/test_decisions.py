"""What an instructor decides about students: every page, export and command, and nbgrader itself, say the same mark."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from downloads import archive
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from one_mark import BERLIN, exported, graded, late_course, mark, nbgraders_mark, page, result, run
from tiny_course import GOOD, SET, answered, make_course, submit

from autograder.cli import cli
from autograder.course import Course
from autograder.lms.collect import collect

pytestmark = pytest.mark.usefixtures("server_in_utc")


# --- decisions about students ----------------------------------------------------------------------------------------


def decided_course(folder: Path) -> Course:
    """As `late_course`, with Bob's `double` wrong and his answer to "why" empty; graded by the command."""
    course = late_course(folder)
    submit(course, "bob", answered(**{**GOOD, "double": "def double(x):\n    return x ** 2", "why": ""}))
    graded(course)
    run(course, "grade", "--sandbox", "none", "--jobs", "1")
    return course


def said(course: Course, student: str) -> float | str:
    """The one mark that every command, every page and nbgrader's own gradebook say."""
    told = run(course, "grade", "--sandbox", "none", "--jobs", "1", "--json")
    (row,) = (row for row in json.loads(told[told.index("[{") :]) if row["student"] == student)
    run(course, "report")
    report = (course.report_folder / f"{SET}.html").read_text()
    in_report = re.search(rf'>{student}</a></th><td class="num" data-v="([^"]*)">', report)
    on_page = re.search(r"Score: </span>(\S+) ", page(course, student))
    line = exported(course, student)
    assert in_report
    marks = [in_report[1], on_page[1] if on_page else "", line["score"], "" if row["excused"] else row["mark"]]
    with Gradebook(course.db_url, "tiny") as book:
        stored = book.find_submission(SET, student)
        if not row["excused"]:
            marks += [stored.score - stored.late_submission_penalty, nbgraders_mark(course, student)]
    one, *others = {str(float(each)) if each != "" else line["status"] for each in marks}
    assert not others, marks
    return float(one) if one[0].isdigit() else one


@pytest.mark.slow
def test_with_an_extension_all_say_the_same(tmp_path: Path) -> None:
    course = decided_course(tmp_path)
    assert said(course, "ada") == 0.0
    extend = "students", "extend", SET, "ada"
    told = run(course, *extend, "--hours", "1")
    assert f"ada: {SET} is extended by 1:00:00: due 2027-03-01 19:00:00 CET" in told
    assert run(course, *extend, "--hours", "1") == told and said(course, "ada") == 5.0
    assert exported(course, "ada")["extension_seconds"] == "3600"
    run(course, *extend, "--until", "2027-03-01 18:10")
    assert said(course, "ada") == 0.0, "the last one counts, not the sum"
    run(course, *extend, "--until", "2027-03-01 17:20 UTC")
    assert said(course, "ada") == 5.0
    for _ in range(2):
        run(course, *extend, "--undo")
        assert said(course, "ada") == 0.0


def test_an_extension_may_come_before_the_work(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course)
    with Gradebook(course.db_url, "tiny") as book:
        book.update_or_create_student("cat")
    run(course, "students", "extend", SET, "ada", "cat", "--days", "0.5")
    assert exported(course, "cat")["status"] == "not submitted"
    run(course, "grade", "--sandbox", "none", "--jobs", "1")
    assert said(course, "ada") == 5.0


@pytest.mark.slow
def test_with_an_excuse_all_say_the_same(tmp_path: Path) -> None:
    course = decided_course(tmp_path)
    with Gradebook(course.db_url, "tiny") as book:
        book.update_or_create_student("cat", first_name="Cat", last_name="Clark")
    for _ in range(2):
        told = run(course, "students", "excuse", SET, "ada", "cat")
        assert f"ada: excused from {SET}" in told and said(course, "ada") == "excused"
    assert "You are excused from this set" in page(course, "ada")
    assert "Excused</dt><dd>1" in (course.report_folder / f"{SET}.html").read_text()
    assert "came late" not in run(course, "export")
    canvas = run(course, "export", "--format", "canvas", "--partial")
    assert '"Clark, Cat",,cat,cat,,EX' in canvas and canvas.count("EX") == 2
    assert "EX" not in run(course, "export", "--format", "moodle", "--partial")
    run(course, "students", "excuse", SET, "ada", "cat", "--undo")
    assert (said(course, "ada"), exported(course, "cat")["status"]) == (0.0, "not submitted")


@pytest.mark.slow
def test_with_full_marks_for_an_exercise_all_say_the_same(tmp_path: Path) -> None:
    course = decided_course(tmp_path)
    run(course, "students", "extend", SET, "ada", "--hours", "1")
    mark(course, "ada", "double-tests", 3.0)
    assert (said(course, "ada"), said(course, "bob")) == (4.0, 2.0)
    give = "students", "full-marks", SET, "double"
    would = run(course, *give, "--dry-run")
    assert f"{SET}: full marks for double-tests (4) to 2 students" in would and said(course, "bob") == 2.0
    for _ in range(2):
        assert run(course, *give) in would
        assert (said(course, "ada"), said(course, "bob")) == (5.0, 5.0)
    submit(course, "cat", answered(quadruple=GOOD["quadruple"]))
    submit(course, "dan", b"no notebook")
    run(course, "grade", "--sandbox", "none", "--jobs", "1", "--force")
    assert (said(course, "ada"), said(course, "bob"), said(course, "cat")) == (5.0, 5.0, 5.0)
    assert exported(course, "dan")["score"] == "", "what was not graded has no marks"
    mark(course, "bob", "double-tests", 2.0)
    run(course, *give, "--undo")
    assert (said(course, "ada"), said(course, "bob"), said(course, "cat")) == (4.0, 3.0, 1.0)
    assert "for 0 students" in run(course, *give, "--undo")


def test_a_penalty_that_depends_on_the_mark_follows_full_marks(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"))
    mark(course, "ada", "double-tests", 1.0)
    run(course, "students", "full-marks", SET, "double-tests")
    with Gradebook(course.db_url, "tiny") as book:
        stored = book.find_submission(SET, "ada")
        assert (stored.score, stored.late_submission_penalty) == (5.0, 5.0)
    assert exported(course, "ada")["late_penalty"] == "5"


def everything(course: Course) -> set[str]:
    """The words of all that commands say and write of the class."""
    words = [run(course, "grade", "--sandbox", "none", "--jobs", "1"), run(course, "export", "--format", "json")]
    words += [run(course, "report"), run(course, "export", "--format", "canvas"), run(course, "feedback")]
    words += [path.read_text() for path in sorted(course.report_folder.glob("*.html"))]
    with Gradebook(course.db_url, "tiny") as book:
        words += [each.id for each in (*book.students, *book.assignment_submissions(SET))]
        words += [str(book.notebook_submission_dicts(SET, SET)), str(book.student_dicts())]
    return set(re.findall(r"\w+", " ".join([*words, *map(str, course.root.glob("[!d]*/**/*"))])))


def test_who_is_dropped_vanishes_everywhere_and_comes_back_whole(tmp_path: Path) -> None:
    course = decided_course(tmp_path)
    run(course, "students", "extend", SET, "ada", "--hours", "1")
    mark(course, "ada", "why", 2.0)
    assert said(course, "ada") == 7.0
    before = sorted(course.root.glob("[!d]*/**/*")), exported(course, "ada"), page(course, "ada")
    assert "ada: dropped; " in run(course, "students", "drop", "ada", "--dry-run") and said(course, "ada") == 7.0
    for _ in range(2):
        run(course, "students", "drop", "ada")
    for roster in ({}, {"roster_file": tmp_path / "roster.csv"}):
        (tmp_path / "roster.csv").write_text("id,name\nada,Ada Able\nbob,Bob Baker\n")
        done = collect(course, [archive(tmp_path / "a.zip", {f"ada/{SET}.ipynb": b"{}"})], SET, **roster)
        assert [(row.action, row.student) for row in done.rows] == [("ignored", "ada")] and not done.problems
        (course.report_folder / f"collected-{SET}.csv").unlink()
    words = everything(course)
    assert "ada" not in words and "bob" in words
    run(course, "students", "drop", "ada", "--undo")
    assert said(course, "ada") == 7.0 and not (course.root / "dropped" / "ada").exists()
    assert before == (sorted(course.root.glob("[!d]*/**/*")), exported(course, "ada"), page(course, "ada"))
    assert "ada: was not dropped" in run(course, "students", "drop", "ada", "--undo")


def test_a_drop_that_was_interrupted_is_completed(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"))
    work = course.root / "submitted" / "ada" / SET
    run(course, "students", "drop", "ada")
    shutil.move(course.root / "dropped" / "ada" / "submitted", course.root / "submitted-again")
    shutil.move(course.root / "submitted-again" / "ada", work.parent)
    run(course, "students", "drop", "ada")
    assert not work.exists()
    run(course, "students", "drop", "ada", "--undo")
    assert work.is_dir() and exported(course, "ada")["score"] == "0"


@pytest.mark.parametrize(
    ("arguments", "said_so"),
    [
        (("extend", SET, "eve", "--days", "1"), "there is no student 'eve'"),
        (("extend", "ps0", "ada", "--days", "1"), "there is no set 'ps0'"),
        (("extend", SET, "ada"), "no time would be added"),
        (("extend", SET, "ada", "--until", "2027-02-01"), "no time would be added"),
        (("extend", SET, "ada", "--until", "soon"), "'soon' is no time"),
        (("excuse", SET, "ada", "eve"), "there is no student 'eve'"),
        (("excuse", "ps0", "ada"), "there is no set 'ps0'"),
        (("drop", "eve"), "there is no student 'eve'"),
        (("full-marks", "ps0", "double"), "there is no set 'ps0'"),
        (("full-marks", SET, "triple"), "there is no exercise 'triple'"),
    ],
)
def test_who_and_what_is_not_known_is_said_in_a_line(tmp_path: Path, arguments: list[str], said_so: str) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"))
    before = everything_kept(course)
    done = CliRunner().invoke(cli, ["students", *arguments, "--course", str(course.root)])
    assert done.exit_code == 1 and said_so in done.output and len(done.output.strip().splitlines()) == 1
    assert everything_kept(course) == before


def everything_kept(course: Course) -> list[tuple[str, bytes]]:
    return [(str(path), path.read_bytes()) for path in sorted(course.root.glob("**/*")) if path.is_file()]


def test_a_set_that_is_not_due_cannot_be_extended(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"), due="")
    arguments = ["students", "extend", SET, "ada", "--days", "1", "--course", str(course.root)]
    assert "has no due date" in CliRunner().invoke(cli, arguments).output


# --- which attempt counts --------------------------------------------------------------------------------------------


def attempts_course(folder: Path) -> Course:
    """Ada handed in thrice: all right, then a mistake, both in time, then all right but late. Bob once, late."""
    course = make_course(folder / "course", f'{BERLIN}\nc.AssignLatePenalties.plugin_class = "rule.Minus"')
    (course.root / "rule.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\n\nclass Minus(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        return 2\n"
    )
    graded(course)
    wrong = {**GOOD, "quadruple": "def quadruple(x):\n    return x"}
    handed_in = (("16:00", answered(**GOOD)), ("17:00", answered(**wrong)), ("18:20", answered(**{**GOOD, "why": "!"})))
    for number, (when, notebook) in enumerate(handed_in):
        students = ("ada", "bob") if number == 2 else ("ada",)
        (folder / "roster.csv").write_text("id,submitted\n" + "".join(f"{s},2027-03-01 {when}\n" for s in students))
        files = {f"{s}/{SET}.ipynb": json.dumps(notebook).encode() for s in students}
        assert not collect(course, [archive(folder / f"{number}.zip", files)], SET, folder / "roster.csv").problems
    return course


@pytest.mark.slow
def test_the_attempt_that_counts_is_the_same_everywhere(tmp_path: Path) -> None:
    course = attempts_course(tmp_path)
    assert (said(course, "ada"), said(course, "bob")) == (3.0, 3.0)
    policy = "students", "attempts", SET
    assert "the last-on-time counts" in run(course, *policy, "last-on-time")
    assert "ada: attempt 2 counts (last-on-time)" in run(course, "grade", "--sandbox", "none", "--jobs", "1")
    assert (said(course, "ada"), exported(course, "ada")["submitted"]) == (4.0, "2027-03-01 17:00:00 CET")
    assert said(course, "bob") == 3.0, "none was on time"
    stamp = course.step_folder("autograded", "ada", SET) / "timestamp.txt"
    assert stamp.read_text() == "2027-03-01 16:00:00 UTC"
    run(course, *policy, "best")
    assert said(course, "ada") == 5.0 and "16:00:00 CET" in page(course, "ada")
    run(course, "students", "extend", SET, "ada", "--hours", "1")
    assert said(course, "ada") == 5.0 and exported(course, "ada")["submitted"] == "2027-03-01 18:20:00 CET", "a tie"
    assert ", 0 run now" in run(course, "grade", "--sandbox", "none", "--jobs", "1")
    run(course, "students", "drop", "ada")
    assert "ada" not in everything(course)
    run(course, "students", "drop", "ada", "--undo")
    run(course, "students", "extend", SET, "ada", "--undo")
    run(course, *policy, "newest")
    assert said(course, "ada") == 3.0


def test_formgrader_shows_whose_earlier_attempt_counts_as_graded(tmp_path: Path) -> None:
    course = attempts_course(tmp_path)
    run(course, "students", "attempts", SET, "last-on-time")
    run(course, "grade", "--sandbox", "none", "--jobs", "1")
    assert NbGraderAPI(course.dirs, config=course.config).get_autograded_students(SET) == {"ada", "bob"}
