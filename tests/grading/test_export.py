"""Marks out of the gradebook: real gradebooks, templates as Canvas and Moodle write them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from tiny_course import SET, make_course, source_notebook, submit, write_source

from autograder.course import Course, CourseError
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.writer import note_students, write
from autograder.grading.store import Store
from autograder.lms.csv_files import guarded, read_table
from autograder.lms.export import (
    HEADER,
    Mark,
    as_csv,
    as_json,
    fill,
    marks,
    new_canvas,
    new_moodle,
    unmarked,
)
from autograder.lms.roster import CANVAS, MOODLE
from autograder.results import UNREADABLE, Exercise, Result

PENALTY = """from nbgrader.plugins import BasePlugin


class Half(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return score / 2
"""


def result(student: str, points: float, why: float | None = None, status: str = "graded") -> Result:
    """Points for the first function; `why` None: a written answer that nobody has marked; 0: no answer."""
    if status != "graded":
        return Result(student, SET, "k", status=status, reason="'x.ipynb' is a PDF.")
    return Result(
        student,
        SET,
        "k",
        exercises=[
            Exercise("double-tests", "Double", 4, score=points, solution_ids=["double"]),
            Exercise("quadruple-tests", "Quadruple", 1, score=1.0, solution_ids=["quadruple"]),
            Exercise("why", "Why?", 2, "written", solution_ids=["why"], answered=why is None),
        ],
    )


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A class: amy is marked and late, ben waits for his mark, cat wrote nothing, dan's is a PDF, eve did nothing."""
    folder = tmp_path_factory.mktemp("course")
    (folder / "half_of_late.py").write_text(PENALTY)
    late = 'c.AssignLatePenalties.plugin_class = "half_of_late.Half"'
    course = make_course(folder, f'{late}\nc.Exchange.timezone = "UTC"')
    submit(course, "amy", b"{}", timestamp="2026-10-02 12:00:00 UTC")
    for student in ("ben", "cat", "dan", "fay"):
        submit(course, student, b"{}")
    ensure_assignment(course, course.set_files(SET))
    with Gradebook(course.db_url, "tiny") as book:
        book.update_or_create_assignment(SET, duedate=datetime(2026, 10, 1, 12))
    results = [result("amy", 4), result("ben", 3), result("cat", 2, 0), result("dan", 0, status=UNREADABLE)]
    assert not write(course, results).problems
    for each in results:
        Store(course.results_folder).put(each)
    with Gradebook(course.db_url, "tiny") as book:
        grade = book.find_grade("why", SET, SET, "amy")
        grade.manual_score, grade.extra_credit, grade.needs_manual_grade = 1.5, 0.5, False
        book.db.commit()
    write(course, results[:1])  # the penalty follows the mark
    names = {
        "amy": ("Amy", "Ångström", "amy@x.org", "11"),
        "ben": ("Ben", "=cmd()", "ben@x.org", "12"),
        "cat": ("", "", "cat@x.org", ""),
        "eve": ("Eve", "Evans", "", "15"),
    }
    keys = ("first_name", "last_name", "email", "lms_user_id")
    note_students(course, {s: dict(zip(keys, values, strict=True)) for s, values in names.items()})
    return course


def table(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text)))


def file(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


# --- plain -----------------------------------------------------------------------------------------------------------


def test_marks_as_nbgrader_counts_them(course: Course) -> None:
    found = {mark.student.id: mark for mark in marks(course, [SET])}
    amy = found["amy"]
    assert (amy.score, amy.max_score, amy.late_penalty, amy.needs_manual_grading) == (3.5, 7.0, 3.5, False)
    assert amy.submitted == "2026-10-02 12:00:00 UTC"
    assert (found["ben"].score, found["ben"].needs_manual_grading, found["ben"].status) == (4.0, True, "graded")
    assert (found["cat"].score, found["cat"].needs_manual_grading) == (3.0, False)
    assert (found["dan"].score, found["dan"].status, found["dan"].reason) == (None, UNREADABLE, "'x.ipynb' is a PDF.")
    assert (found["eve"].score, found["eve"].status) == (None, "not submitted")
    assert (found["fay"].score, found["fay"].status) == (None, "not graded yet")
    with Gradebook(course.db_url, "tiny") as book:
        submission = book.find_submission(SET, "amy")
        assert amy.score == submission.score - submission.late_submission_penalty


def test_csv_and_json(course: Course) -> None:
    found = marks(course, [SET])
    lines = table(as_csv(found))
    assert tuple(lines[0]) == HEADER
    assert lines[1] == [
        *("amy", "Amy Ångström", "amy@x.org", SET, "3.5", "7", "3.5", "no", "graded", ""),
        *("2026-10-02 12:00:00 UTC", "2026-10-01 12:00:00 UTC", "86400", "0"),
    ]
    assert lines[2][:8] == ["ben", "Ben =cmd()", "ben@x.org", SET, "4", "7", "0", "yes"]
    assert lines[4][4:10] == ["", "7", "0", "yes", UNREADABLE, "''x.ipynb' is a PDF."[1:]]
    told = json.loads(as_json(found))
    assert told[0]["score"] == 3.5 and told[0]["needs_manual_grading"] is False
    assert told[4]["id"] == "eve" and told[4]["score"] is None


def test_answers_to_be_marked_are_named(course: Course) -> None:
    first, second = unmarked(marks(course, [SET]), left_out=True)
    assert first.startswith(f"{SET}: 1 submission has answers that nobody has marked") and first.endswith(": ben")
    assert second == f"{SET}: 2 submissions have no score: dan (unreadable), fay (not graded yet)"


@pytest.mark.parametrize(
    ("cell", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        (" =1", "' =1"),
        ("\ufeff=1", "'\ufeff=1"),
        ("\u200b=1", "'\u200b=1"),
        ("\uff1d1", "'\uff1d1"),
        ("-", "-"),
        ("a=1", "a=1"),
        ("", ""),
        (None, ""),
        (True, "yes"),
        (2.50, "2.5"),
        (-0.5, "-0.5"),
        (1e6, "1000000"),
        ("a\0\ud800b", "a?b"),
    ],
)
def test_cells_are_no_formulas(cell: str | float | None, safe: str) -> None:
    assert guarded(cell) == safe


def test_a_course_without_a_gradebook_gets_none(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    submit(course, "amy", b"{}")
    (mark,) = marks(course, [SET])
    assert (mark.status, mark.score) == ("not graded yet", None)
    assert not (tmp_path / "gradebook.db").exists()


# --- Canvas ----------------------------------------------------------------------------------------------------------

GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Notes,ps9 Tiny (77),Homework 10 (78),Current Score\n"
    ",,,,,,Manual Posting,,(read only)\n"
    "    Points Possible,,,,,,10,5,(read only)\n"
    '"Ångström, Amy",11,s1,amy77,A,- weak,,3,50\n'
    '"=cmd(), Ben",99,s2,BEN,"A and B",,6,4,50\n'
    '"Nobody, Knows",98,s3,nobody,A,,5,4,50\n'
    '"Evans, Eve",97,s4,ee,A,,N/A,4,50\n'
)


def test_a_canvas_template_is_filled(course: Course, tmp_path: Path) -> None:
    sheet = fill(CANVAS, file(tmp_path / "c.csv", GRADEBOOK), marks(course, [SET]), partial=False, columns={})
    assert table(sheet.text) == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "ps9 Tiny (77)"],
        ["", "", "", "", "", "Manual Posting"],
        ["Points Possible", "", "", "", "", "10"],
        ["Ångström, Amy", "11", "s1", "amy77", "A", "3.5"],
        ["'=cmd(), Ben", "99", "s2", "BEN", "A and B", "6"],
        ["Nobody, Knows", "98", "s3", "nobody", "A", "5"],
        ["Evans, Eve", "97", "s4", "ee", "A", "N/A"],
    ]
    assert sheet.problems == ["not in the template, so that their marks are not in the file: cat"]
    assert sheet.remarks == [
        "3 cells of the template stay as they are: there is no final mark for them",
        f"{SET} has 7 points, in Canvas 10; marks are not converted",
    ]
    partial = fill(CANVAS, file(tmp_path / "c.csv", GRADEBOOK), marks(course, [SET]), partial=True, columns={})
    assert table(partial.text)[4][5] == "4"


def test_canvas_with_semicolons_and_split_names(course: Course, tmp_path: Path) -> None:
    text = "LastName;FirstName;ID;SIS Login ID;Section;Aufgabe (5)\n;;;;;\n;;;;;7\nÅngström;Amy;1;x;A;\n"
    found = marks(course, [SET])
    path = file(tmp_path / "c.csv", text)
    with pytest.raises(CourseError, match="has no column for ps9-tiny; name it with --column 'ps9-tiny=TITLE'"):
        fill(CANVAS, path, found, False, {})
    sheet = fill(CANVAS, path, found, False, {SET: "Aufgabe (5)"})
    assert table(sheet.text)[-1] == ["Ångström", "Amy", "1", "x", "A", "3.5"], "found by the name"


def test_a_template_that_is_none(course: Course, tmp_path: Path) -> None:
    found = marks(course, [SET])
    with pytest.raises(CourseError, match="is no gradebook of Canvas"):
        fill(CANVAS, file(tmp_path / "c.csv", "a,b\n1,2\n"), found, False, {})
    with pytest.raises(CourseError, match="no column that says who is meant"):
        fill(MOODLE, file(tmp_path / "c.csv", "a,b\n1,2\n"), found, False, {})
    double = GRADEBOOK.replace("Homework 10 (78)", "ps9 again (78)").replace("Tiny", "small")
    twins = [*found, *(mark._replace(assignment="ps9-again") for mark in found)]
    with pytest.raises(CourseError, match="has one column for two sets"):
        fill(CANVAS, file(tmp_path / "c.csv", GRADEBOOK), twins, False, {})
    with pytest.raises(CourseError, match="has several columns for ps9-tiny"):
        fill(CANVAS, file(tmp_path / "c.csv", double), found, False, {})


def test_a_new_file_for_canvas(course: Course) -> None:
    lines = table(new_canvas(marks(course, [SET]), partial=False).text)
    assert lines[:4] == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", SET],
        ["    Points Possible", "", "", "", "", "7"],
        ["Ångström, Amy", "11", "amy", "amy", "", "3.5"],
        ["'=cmd(), Ben", "12", "ben", "ben", "", ""],
    ]
    assert [line[5] for line in lines[4:]] == ["3", "", "", ""]


# --- Moodle ----------------------------------------------------------------------------------------------------------

WORKSHEET = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade),Feedback comments\n"
    'Participant 5,Amy Ångström,,amy@x.org,Submitted,,7.00,Yes,"Friday, 2 October 2026",-,-well done\n'
    "Participant 6,Somebody Else,ben,,Submitted,6.00,7.00,Yes,-,-,\n"
    "Participant 7,Cat,,CAT@x.org,Submitted,,7.00,Yes,-,-,\n"
)


def test_a_moodle_worksheet_is_filled(course: Course, tmp_path: Path) -> None:
    sheet = fill(MOODLE, file(tmp_path / "m.csv", WORKSHEET), marks(course, [SET]), partial=False, columns={})
    lines = table(sheet.text)
    assert lines[0][:6] == ["Identifier", "Full name", "ID number", "Email address", "Status", "Grade"]
    assert lines[0][-2:] == ["Last modified (grade)", f"{SET} not yet marked"], "feedback is not imported again"
    assert [(line[5], line[-1]) for line in lines[1:]] == [("3.5", "no"), ("6.00", "yes"), ("3", "no")]
    assert lines[1][9] == "-", "an empty date stays what it is"
    assert not sheet.problems


def test_another_file_of_moodle(course: Course, tmp_path: Path) -> None:
    text = 'First name,Surname,Email address,"Assignment: ps9-tiny (Real)",Course total (Real)\nAmy,A,amy@x.org,-,5\n'
    sheet = fill(MOODLE, file(tmp_path / "m.csv", text), marks(course, [SET]), partial=False, columns={})
    assert table(sheet.text)[1] == ["Amy", "A", "amy@x.org", "3.5", "no"]
    assert sheet.problems == ["not in the template, so that their marks are not in the file: cat"]


def test_a_new_file_for_moodle(course: Course) -> None:
    found = marks(course, [SET])
    lines = table(new_moodle(found, partial=False).text)
    assert lines == [
        ["Full name", "ID number", "Email address", SET, f"{SET} not yet marked"],
        ["Amy Ångström", "amy", "amy@x.org", "3.5", "no"],
        ["", "cat", "cat@x.org", "3", "no"],
    ]
    partial = table(new_moodle(found, partial=True).text)
    assert ["Ben =cmd()", "ben", "ben@x.org", "4", "yes"] in partial


def test_two_sets(course: Course) -> None:
    amy = next(mark.student for mark in marks(course, [SET]) if mark.student.id == "amy")
    found = [Mark(amy, "a", 1.0, 2.0, status="graded"), Mark(amy, "b", None, 2.0)]
    sheet = new_moodle(found, partial=False)
    assert table(sheet.text)[1][3:] == ["1", "", "no", "no"]
    assert "export one set at a time" in sheet.remarks[0]


def test_a_worksheet_is_of_one_set(course: Course, tmp_path: Path) -> None:
    found = marks(course, [SET])
    more = [*found, Mark(found[0].student, "other", 1.0, 2.0)]
    with pytest.raises(CourseError, match="name the set with --assignment"):
        fill(MOODLE, file(tmp_path / "m.csv", WORKSHEET), more, False, {})


# --- the command -----------------------------------------------------------------------------------------------------


def command(course: Course, *arguments: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "autograder", "export", "--course", str(course.root), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])


def test_the_command(course: Course, tmp_path: Path) -> None:
    done = command(course, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert [row["id"] for row in json.loads(done.stdout)] == ["amy", "ben", "cat", "dan", "eve", "fay"]
    assert "answers that nobody has marked; their scores are points so far: ben" in done.stderr
    template = file(tmp_path / "c.csv", GRADEBOOK)
    output = tmp_path / "out" / "grades.csv"
    done = command(course, "--format", "canvas", "--template", str(template), "-o", str(output))
    assert done.returncode == 1 and "not in the template" in done.stderr and done.stdout == ""
    assert read_table(output).header[-1] == "ps9 Tiny (77)"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("-a", "ps0"), "no set 'ps0'"),
        (("--template", "{template}"), "--template needs --format canvas or moodle"),
        (("--format", "canvas", "--template", "{template}", "--column", "x=y"), "no set 'x'"),
        (("--format", "moodle", "--template", "{template}"), "is no CSV file"),
    ],
)
def test_one_clear_line(course: Course, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    template = file(tmp_path / "t.csv", "nothing")
    done = command(course, *(a.format(template=template) for a in arguments))
    assert done.returncode == 1 and said in done.stderr.strip()
    assert len(done.stderr.strip().splitlines()) == 1


def test_nothing_to_export(tmp_path: Path) -> None:
    course = make_course(tmp_path)
    write_source(tmp_path, source_notebook())
    done = command(course)
    assert done.returncode == 1 and "there are no marks to export" in done.stderr
