"""One truth about a mark: lateness, penalties and points are the same in every command and on every page."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from downloads import archive
from nbgrader.api import Gradebook
from one_mark import (
    BERLIN,
    ZERO,
    exported,
    graded,
    late_course,
    mark,
    nbgraders_mark,
    page,
    result,
    run,
)
from tiny_course import GOOD, SET, answered, make_course, source_notebook, write_source

from autograder.course import Course
from autograder.doctor import examine
from autograder.gradebook.assignment import REMOVED, ensure_assignment
from autograder.gradebook.reader import scores
from autograder.lms.collect import collect
from autograder.lms.export import marks
from autograder.results import PASSED, Check
from autograder.timestamps import read_timestamp

WORKSHEET = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade)\n"
    'Participant 11,Ada Able,ada,ada@x.org,Submitted,,7.00,Yes,"Monday, 1 March 2027, 5:58 PM",-\n'
    'Participant 12,Bob Baker,bob,bob@x.org,Submitted,,7.00,Yes,"Monday, 1 March 2027, 6:20 PM",-\n'
)
pytestmark = pytest.mark.usefixtures("server_in_utc")


# --- zones -----------------------------------------------------------------------------------------------------------


def moodle(course: Course, folder: Path) -> list[str]:
    """Collect what Moodle hands out; returns the remarks, which a dry run foretells each time."""
    files = {
        f"{name}_{number}_assignsubmission_file_/{SET}.ipynb": json.dumps(answered(**GOOD)).encode()
        for name, number in (("Ada Able", 11), ("Bob Baker", 12))
    }
    (folder / "worksheet.csv").write_text(WORKSHEET)
    sources = [archive(folder / "moodle.zip", files)]
    dry, real, again = (collect(course, sources, SET, folder / "worksheet.csv", d).remarks for d in (True, False, True))
    assert dry == real == again
    return real


def test_a_worksheets_times_are_in_the_courses_zone(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", f"{ZERO}\n{BERLIN}")
    graded(course)
    (said,) = moodle(course, tmp_path)
    assert said.startswith(f"{SET}: 1 of 2 submissions came late") and "(due 2027-03-01 18:00:00 CET): bob" in said
    stamps = [read_timestamp(course.root / "submitted" / s / SET)[0] for s in ("ada", "bob")]
    assert [str(stamp) for stamp in stamps] == ["2027-03-01 16:58:00", "2027-03-01 17:20:00"]
    graded(course, result("ada"), result("bob"))
    assert [scores(course, SET)[s].total for s in ("ada", "bob")] == [5.0, 0.0]
    assert [nbgraders_mark(course, s) for s in ("ada", "bob")] == [5.0, 0.0]


def test_a_class_that_is_late_by_another_clock_is_said_so(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", ZERO)
    graded(course)
    (said,) = moodle(course, tmp_path)
    assert "2 of 2 submissions came late" in said and "times without a zone count as UTC" in said
    assert "c.Exchange.timezone" in said
    graded(course, result("ada"), result("bob"))
    assert f"{SET}: 2 of 2 submissions came late, 2 with a penalty" in run(course, "export")


def test_a_time_that_names_its_zone_keeps_it(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", BERLIN)
    roster = tmp_path / "roster.csv"
    times = {"ada": "2027-03-01 17:58 EST", "bob": "2027-03-01T17:58:00Z", "cat": "2027-03-01 17:58 -0330"}
    roster.write_text("id,submitted\n" + "".join(f"{s},{t}\n" for s, t in times.items()))
    collect(course, [archive(tmp_path / "a.zip", {f"{s}/{SET}.ipynb": b"{}" for s in times})], SET, roster)
    stamps = [read_timestamp(course.root / "submitted" / s / SET)[0] for s in times]
    assert [stamp and stamp.strftime("%H:%M") for stamp in stamps] == ["22:58", "17:58", "21:28"]


@pytest.mark.slow
def test_doctor_compares_zones(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", BERLIN)
    zone = {f.what: f for f in examine(course.root)}["time zone"]
    assert zone.ok and "Europe/Berlin" in zone.said and "UTC" in zone.said
    course = make_course(tmp_path / "other")
    assert {f.what: f.ok for f in examine(course.root)}["time zone"], "nothing is due"
    graded(course)
    zone = {f.what: f for f in examine(course.root)}["time zone"]
    assert not zone.ok and "c.Exchange.timezone" in zone.mend
    config = course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + 'c.Exchange.timezone = "Europe/Berlln"\n')
    told = {f.what: f for f in examine(course.root)}["course"]
    assert not told.ok and "'Europe/Berlln', which is no time zone" in told.said


# --- penalties -------------------------------------------------------------------------------------------------------


def test_a_mark_given_after_grading_changes_the_penalty(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"), result("bob"))
    for student in ("ada", "bob"):
        mark(course, student, "why", 2.0)
    assert (exported(course, "ada")["score"], exported(course, "bob")["score"]) == ("0", "7")
    for each in marks(course, [SET]):
        assert each.score == nbgraders_mark(course, each.student.id)


def test_an_extension_given_after_grading_lifts_the_penalty(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"))
    assert exported(course, "ada")["score"] == "0"
    with Gradebook(course.db_url, "tiny") as book:
        book.grant_extension(SET, "ada", hours=1)
    row = exported(course, "ada")
    assert (row["score"], row["late_penalty"], row["extension_seconds"]) == ("5", "0", "3600")
    assert (row["due"], row["submitted"]) == ("2027-03-01 18:00:00 CET", "2027-03-01 18:20:00 CET")
    assert float(row["score"]) == nbgraders_mark(course, "ada")


@pytest.mark.filterwarnings("ignore:Object of type")  # nbgrader warns of its own way to add one
def test_an_extension_given_before_the_work_came_is_no_zero_and_counts(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course)
    with Gradebook(course.db_url, "tiny") as book:
        for student in ("ada", "cat"):
            book.update_or_create_student(student)
            book.update_or_create_submission(SET, student, extension=timedelta(hours=1))
    assert (exported(course, "cat")["score"], exported(course, "cat")["status"]) == ("", "not submitted")
    graded(course, result("ada"))
    assert (exported(course, "ada")["score"], exported(course, "ada")["extension_seconds"]) == ("5", "3600")


def test_every_page_and_command_says_the_same(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course, result("ada"), result("bob"))
    when = "handed in 2027-03-01 18:20:00 CET, due 2027-03-01 18:00:00 CET, 0:20:00 late with a penalty of 5"
    shown = page(course, "ada")
    assert "Score: </span>0 " in shown and f"{when}." in shown
    assert "Score: </span>5 " in page(course, "bob")
    run(course, "report")
    report = (course.report_folder / f"{SET}.html").read_text()
    assert when in report and 'data-v="0.0">0 / 5' in report and 'data-v="5.0">5 / 5' in report
    row = exported(course, "ada")
    assert (row["score"], row["late_penalty"], row["late_seconds"]) == ("0", "5", "1200")


def test_a_penalty_that_cannot_be_computed_is_said_so_wherever_it_would_count(tmp_path: Path) -> None:
    course = late_course(tmp_path, "c.AssignLatePenalties.plugin_class = 'broken_rule.Broken'")
    (course.root / "broken_rule.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\n\nclass Broken(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        raise KeyError(score)\n"
    )
    graded(course, result("ada"))
    assert "ada: the penalty for lateness could not be computed (KeyError: 5.0)" in run(course, "export")


# --- points that change ----------------------------------------------------------------------------------------------


def test_a_mark_is_never_above_the_points_of_its_cell(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    graded(course, result("ada"), result("bob"), due="")
    mark(course, "ada", "why", 2.0)
    mark(course, "bob", "why", 1.0)
    source = source_notebook()
    next(c for c in source.cells if c.id == "why").metadata.nbgrader.points = 1
    write_source(course.root, source)
    course = Course(course.root)
    (said,) = ensure_assignment(course, course.set_files(SET))
    assert f"{SET}: why has fewer points now" in said
    found = scores(course, SET)
    assert (found["ada"].cells["why"].score, found["ada"].needs_manual) == (1.0, True)
    assert (found["bob"].cells["why"].score, found["bob"].needs_manual) == (1.0, False)
    assert found["ada"].total == nbgraders_mark(course, "ada") == 6.0
    (kept,) = map(json.loads, (course.results_folder / SET / REMOVED).read_text().splitlines())
    assert (kept["student"], kept["cell"], kept["manual_score"]) == ("ada", "why", 2.0)
    assert ensure_assignment(course, course.set_files(SET)) == []


def test_checks_that_do_not_make_the_points_of_their_cell_are_named(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course")
    checks = Check("small", 1, PASSED), Check("large", 1, PASSED)
    said = f"{SET}: double-tests has 4 points, its checks 2: each counts in proportion"
    assert graded(course, result("ada", *checks), result("bob", *checks), due="").remarks == [said]
    assert graded(course, result("ada", Check("all", 1, PASSED)), due="").remarks == []
    exact = Check("small", 1, PASSED), Check("large", 3, PASSED)
    assert graded(course, result("ada", *exact), due="").remarks == []


def test_grade_says_who_came_late_and_by_which_clock(tmp_path: Path) -> None:
    course = late_course(tmp_path)
    graded(course)
    said = " ".join(run(course, "grade", "--sandbox", "none", "--jobs", "1").split())
    assert f"{SET}: 1 of 2 submissions came late, 1 with a penalty (due 2027-03-01 18:00:00 CET): ada" in said
    told = run(course, "grade", "--sandbox", "none", "--json")
    ada, bob = json.loads(told[told.index("[{") :])
    assert "0:20:00 late" in ada["late"] and ada["late_penalty"] == 5.0 and bob["late"] == ""
