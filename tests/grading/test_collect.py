"""Collecting what learning systems hand out: real archives and folders, in a real course folder."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import unicodedata
import zipfile
from datetime import datetime
from pathlib import Path

import pytest
from downloads import (
    FIRST,
    SECOND,
    THIRD,
    actions,
    archive,
    folder_of,
    roster,
    submitted,
    taken,
    zipped_bytes,
)
from nbgrader.api import Gradebook
from tiny_course import SET, make_course

from autograder.course import Course, CourseError
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.reader import class_list, scores
from autograder.gradebook.writer import write
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store
from autograder.lms.collect import IGNORED, KEPT, TO_GRADE, UNCHANGED, UNMATCHED, collect
from autograder.timestamps import read_timestamp

# --- Canvas ----------------------------------------------------------------------------------------------------------


def test_canvas(course: Course, tmp_path: Path) -> None:
    download = archive(
        tmp_path / "submissions.zip",
        {
            "smithjane_3143_207797_ps9-tiny-1.ipynb": SECOND,
            "smithjane_3143_207700_ps9-tiny.ipynb": FIRST,
            "lópezmaría_3144_207800_=cmd (1).ipynb": FIRST,
            "lópezmaría_3144_207801_numbers.csv": b"1,2",
            "textonly_3145_text.html": b"<p>here</p>",
            "readme.md": b"by hand",
        },
    )
    class_list_file = roster(
        tmp_path / "canvas.csv",
        "Student,ID,SIS User ID,SIS Login ID,Section,Tiny (12)\n    Points Possible,,,,,7\n"
        '"Smith, Jane",3143,s1,jsmith,A,\n"López, María",3144,s2,mlopez,A,\n"Only, Text",3145,s3,tonly,A,\n',
    )
    done = collect(course, [download], SET, class_list_file)
    assert submitted(course) == {
        "jsmith/ps9-tiny/attempts/1/ps9-tiny.ipynb": FIRST,
        "jsmith/ps9-tiny/ps9-tiny.ipynb": SECOND,
        "mlopez/ps9-tiny/=cmd (1).ipynb": FIRST,
        "mlopez/ps9-tiny/numbers.csv": b"1,2",
        "tonly/ps9-tiny/text.html": b"<p>here</p>",
    }
    assert actions(done) == {
        "smithjane_3143_207797_ps9-tiny-1.ipynb": TO_GRADE,
        "smithjane_3143_207700_ps9-tiny.ipynb": KEPT,
        "lópezmaría_3144_207800_=cmd (1).ipynb": TO_GRADE,
        "lópezmaría_3144_207801_numbers.csv": TO_GRADE,
        "textonly_3145_text.html": TO_GRADE,
        "readme.md": UNMATCHED,
    }
    assert done.problems == [
        "1 file was not matched: submissions.zip/readme.md: it is not named as the other files of this download are"
    ]
    assert done.remarks == ["tonly: there is no notebook in the newest attempt"]
    people = {p["id"]: p for p in class_list(course)}
    assert people["mlopez"] == {
        "id": "mlopez",
        "first_name": "María",
        "last_name": "López",
        "email": "",
        "lms_user_id": "3144",
    }


def test_canvas_without_a_roster_makes_ids_that_stay_the_same(course: Course, tmp_path: Path) -> None:
    first = archive(tmp_path / "a.zip", {"smithjane_3143_10_ps9-tiny.ipynb": FIRST, "anon_Ab3_11_x.ipynb": FIRST})
    second = archive(tmp_path / "b.zip", {"smithjane_LATE_3143_20_ps9-tiny-1.ipynb": SECOND})
    assert not collect(course, [first], SET).problems
    assert not collect(course, [second], SET).problems
    assert taken(course, "smithjane-3143") == SECOND
    assert set(submitted(course)) == {
        "anon-Ab3/ps9-tiny/x.ipynb",
        "smithjane-3143/ps9-tiny/attempts/1/ps9-tiny.ipynb",
        "smithjane-3143/ps9-tiny/ps9-tiny.ipynb",
    }


def test_an_older_download_later_changes_nothing_that_is_graded(course: Course, tmp_path: Path) -> None:
    old = archive(tmp_path / "old.zip", {"smithjane_3143_10_ps9-tiny.ipynb": FIRST})
    new = archive(tmp_path / "new.zip", {"smithjane_3143_20_ps9-tiny-1.ipynb": SECOND})
    collect(course, [new], SET)
    done = collect(course, [old], SET)
    assert [(r.attempt, r.action) for r in done.rows] == [("attempts/1", KEPT)]
    assert taken(course, "smithjane-3143") == SECOND
    again = archive(tmp_path / "again.zip", {"smithjane_3143_30_ps9-tiny-2.ipynb": FIRST})
    collect(course, [again], SET)
    assert taken(course, "smithjane-3143") == FIRST, "handed in again, it is the newest"


def test_twice_is_once(course: Course, tmp_path: Path) -> None:
    sources = [
        archive(tmp_path / "a.zip", {"smithjane_3143_10_ps9-tiny.ipynb": FIRST, "b_LATE_2_3_x.ipynb": SECOND}),
        archive(tmp_path / "b.zip", {"smithjane_3143_20_ps9-tiny-1.ipynb": SECOND}),
    ]
    collect(course, sources, SET)
    before = {p: p.stat().st_mtime_ns for p in (course.root / "submitted").rglob("*")}
    done = collect(course, sources, SET)
    assert {row.action for row in done.rows} == {UNCHANGED}
    assert {p: p.stat().st_mtime_ns for p in (course.root / "submitted").rglob("*")} == before


def test_lateness_reaches_nbgraders_penalty(tmp_path: Path) -> None:
    (tmp_path / "course").mkdir()
    (tmp_path / "course" / "one_if_late.py").write_text(
        "from nbgrader.plugins import BasePlugin\n\n\nclass One(BasePlugin):\n"
        "    def late_submission_penalty(self, student_id, score, total_seconds_late):\n        return 1.0\n"
    )
    course = make_course(tmp_path / "course", 'c.AssignLatePenalties.plugin_class = "one_if_late.One"')
    download = archive(tmp_path / "a.zip", {"a_LATE_1_2_ps9-tiny.ipynb": SECOND, "b_2_3_ps9-tiny.ipynb": SECOND})
    (remark,) = collect(course, [download], SET).remarks
    assert "no due date" in remark and "nbgrader db assignment add ps9-tiny" in remark
    with Gradebook(course.db_url, "tiny") as book:
        book.update_or_create_assignment(SET, duedate=datetime(2026, 10, 1, 12))
    remark, late = collect(course, [download], SET).remarks
    assert "counts as one second late" in remark and "(a-1)" in remark
    assert f"{SET}: 1 of 2 submissions came late" in late and "): a-1" in late
    stamp = course.root / "submitted" / "a-1" / SET / "timestamp.txt"
    assert stamp.read_text() == "2026-10-01 12:00:01 UTC"
    assert read_timestamp(stamp.parent) == (datetime(2026, 10, 1, 12, 0, 1), "")
    ensure_assignment(course, course.set_files(SET))
    store = Store(course.results_folder)
    steps = grade_set(course, store, SET, Settings(sandbox="none", jobs=1))
    assert not write(course, [step.result for step in steps]).problems
    assert (scores(course, SET)["a-1"].late_penalty, scores(course, SET)["b-2"].late_penalty) == (1.0, None)


# --- Moodle ----------------------------------------------------------------------------------------------------------

WORKSHEET = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum Grade,Grade can be changed,"
    "Last modified (submission),Last modified (grade)\n"
    'Participant 123456,Jane O\'Smith,u1,jane@x.org,Submitted,,7.00,Yes,"Monday, 5 October 2026, 11:59 PM",-\n'
    "Participant 123457,Zoë Ångström,u2,zoe@x.org,Submitted,,7.00,Yes,-,-\n"
)


def test_moodle_with_its_worksheet(course: Course, tmp_path: Path) -> None:
    decomposed = unicodedata.normalize("NFD", "Zoë Ångström")
    download = archive(
        tmp_path / "course-ps9-77.zip",
        {
            "Jane OSmith_123456_assignsubmission_file_/ps9-tiny (2).ipynb": SECOND,
            f"{decomposed}_999_assignsubmission_file_/homework/ps9/{decomposed}.ipynb": FIRST,
            "Eve_5_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
        },
    )
    done = collect(course, [download], SET, roster(tmp_path / "sheet.csv", WORKSHEET))
    assert set(submitted(course)) == {
        "u1/ps9-tiny/ps9-tiny (2).ipynb",
        "u1/ps9-tiny/timestamp.txt",
        "u2/ps9-tiny/Zoë Ångström.ipynb",
    }
    (problem,) = done.problems
    assert problem.startswith("1 file was not matched") and problem.endswith("'Eve' is not on the roster")
    came, _ = read_timestamp(course.root / "submitted" / "u1" / SET)
    assert came is not None and abs((came - datetime(2026, 10, 5, 23, 59)).total_seconds()) <= 14 * 3600
    assert {p["id"]: (p["last_name"], p["email"]) for p in class_list(course)}["u2"] == ("Ångström", "zoe@x.org")


def test_the_timezone_is_the_courses(tmp_path: Path) -> None:
    course = make_course(tmp_path / "course", 'c.Exchange.timezone = "Europe/Berlin"')
    download = archive(tmp_path / "m.zip", {"Jane OSmith_123456_assignsubmission_file_/ps9-tiny.ipynb": SECOND})
    collect(course, [download], SET, roster(tmp_path / "sheet.csv", WORKSHEET))
    assert submitted(course)["u1/ps9-tiny/timestamp.txt"] == b"2026-10-05 21:59:00 UTC"


def test_moodle_without_a_roster(course: Course, tmp_path: Path) -> None:
    download = archive(
        tmp_path / "m.zip",
        {
            "Jane Smith_1_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
            "Jane Smith_1_assignsubmission_onlinetext_/onlinetext.html": b"hello",
            "Ann Lee_2_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
            "Ann Lee_3_assignsubmission_file_/ps9-tiny.ipynb": SECOND,
            "Participant_4_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
            "Participant_5_assignsubmission_file_/ps9-tiny.ipynb": SECOND,
        },
    )
    done = collect(course, [download], SET)
    assert set(submitted(course)) == {
        "Jane Smith/ps9-tiny/onlinetext.html",
        "Jane Smith/ps9-tiny/ps9-tiny.ipynb",
        "Participant 4/ps9-tiny/ps9-tiny.ipynb",
        "Participant 5/ps9-tiny/ps9-tiny.ipynb",
    }
    (problem,) = done.problems
    assert problem.startswith("2 files were not matched") and "two participants (2, 3) may both be Ann Lee" in problem
    assert not {p["id"] for p in class_list(course)} & {"Ann Lee"}


def test_a_students_timestamp_is_not_believed(course: Course, tmp_path: Path) -> None:
    early = b"2000-01-01 00:00:00 UTC"
    download = archive(
        tmp_path / "m.zip",
        {
            "Jane_1_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
            "Jane_1_assignsubmission_file_/timestamp.txt": early,
        },
    )
    own = folder_of(
        tmp_path / "class",
        {
            "bob.zip": zipped_bytes(tmp_path, {"ps9-tiny.ipynb": FIRST, "timestamp.txt": early}),
            "amy/ps9-tiny.ipynb": FIRST,
            "amy/timestamp.txt": b"2026-10-01 12:00:00 UTC",
        },
    )
    collect(course, [download, own], SET)
    stamps = {k: v for k, v in submitted(course).items() if "timestamp" in k}
    assert stamps == {
        "Jane/ps9-tiny/timestamp-by-student.txt": early,
        "bob/ps9-tiny/timestamp-by-student.txt": early,
        "amy/ps9-tiny/timestamp.txt": b"2026-10-01 12:00:00 UTC",
    }


# --- plain folders and archives --------------------------------------------------------------------------------------


def test_a_folder_or_a_file_for_each_student(course: Course, tmp_path: Path) -> None:
    names = {"alice/ps9-tiny.ipynb": FIRST, "alice/data/numbers.csv": b"1", "bob/ps9.ipynb": SECOND}
    files = {"carol.ipynb": FIRST, "carol (1).ipynb": SECOND, "PS9 Tiny - dave.ipynb": THIRD, "grades.txt": b"x"}
    sources = [
        archive(tmp_path / "folders.zip", {f"wrapper/inner/{k}": v for k, v in names.items()}),
        folder_of(tmp_path / "files", files),
    ]
    done = collect(course, sources, SET)
    assert submitted(course) == {
        "alice/ps9-tiny/data/numbers.csv": b"1",
        "alice/ps9-tiny/ps9-tiny.ipynb": FIRST,
        "bob/ps9-tiny/ps9.ipynb": SECOND,
        "carol/ps9-tiny/attempts/1/ps9-tiny.ipynb": FIRST,
        "carol/ps9-tiny/ps9-tiny.ipynb": SECOND,
        "dave/ps9-tiny/ps9-tiny.ipynb": THIRD,
    }
    assert done.problems == ["1 file was not matched: files/grades.txt: it is no notebook, and no student is called so"]


def test_nbgraders_own_folders_and_other_sets(course: Course, tmp_path: Path) -> None:
    other = course.root / "source_solutions" / "ps8-other"
    other.mkdir()
    (other / "ps8-other.ipynb").write_bytes((course.root / "source_solutions" / SET / f"{SET}.ipynb").read_bytes())
    files = {f"amy/{SET}/{SET}.ipynb": FIRST, "amy/ps8-other/ps8-other.ipynb": SECOND, f"ben/{SET}/x.ipynb": FIRST}
    done = collect(course, [folder_of(tmp_path / "backup", files)], SET)
    assert set(submitted(course)) == {"amy/ps9-tiny/ps9-tiny.ipynb", "ben/ps9-tiny/x.ipynb"}
    assert actions(done)["ps8-other.ipynb"] == IGNORED and not done.problems


def test_archives_of_students_one_by_one(course: Course, tmp_path: Path) -> None:
    sources = [
        archive(tmp_path / "amy.zip", {"ps9-tiny.ipynb": FIRST}),
        archive(
            tmp_path / "ps9-tiny-ben.zip", {"work/ps9-tiny.ipynb": SECOND, "__MACOSX/work/._ps9-tiny.ipynb": b"\0"}
        ),
    ]
    done = collect(course, sources, SET, roster(tmp_path / "r.csv", "id,name\namy,Amy Aho\nben,Ben Bo\n"))
    assert (taken(course, "amy"), taken(course, "ben")) == (FIRST, SECOND)
    assert actions(done)["._ps9-tiny.ipynb"] == IGNORED


def test_a_students_own_archive_is_opened_and_says_nothing_about_others(course: Course, tmp_path: Path) -> None:
    own = zipped_bytes(
        tmp_path, {"a/b/c/ben.ipynb": SECOND, "a/b/attempts/x.ipynb": FIRST, "a/b/c/ben_7_8_x.csv": b"1"}
    )
    download = archive(tmp_path / "c.zip", {"amy_1_2_work.zip": own, "ben_2_3_ps9-tiny.ipynb": FIRST})
    people = roster(tmp_path / "r.csv", "id,canvas_id\namy,1\nben,2\n")
    assert not collect(course, [download], SET, people).problems
    assert set(submitted(course)) == {
        "amy/ps9-tiny/attempts_/x.ipynb",
        "amy/ps9-tiny/c/ben.ipynb",
        "amy/ps9-tiny/c/ben_7_8_x.csv",
        "ben/ps9-tiny/ps9-tiny.ipynb",
    }
    # a student who is not in the class cannot hand in for somebody who is
    foreign = folder_of(tmp_path / "f", {"mallory/ben.ipynb": THIRD, "amy/ps9-tiny.ipynb": FIRST, "ben/q.ipynb": FIRST})
    done = collect(course, [foreign], SET, people)
    assert "'mallory' is not on the roster" in done.problems[0]
    assert THIRD not in submitted(course).values()


def test_a_download_inside_an_archive_is_no_student(course: Course, tmp_path: Path) -> None:
    inner = zipped_bytes(tmp_path, {"amy_1_2_ps9-tiny.ipynb": FIRST, "ben_2_3_ps9-tiny.ipynb": FIRST})
    done = collect(course, [folder_of(tmp_path / "f", {"moodle/download.zip": inner})], SET)
    assert submitted(course) == {} and "name that archive as a source" in done.problems[0]


@pytest.mark.parametrize("name", ["Ünï cödé", 'O\'Brien "Bob"', "=HYPERLINK(1)", "-dash", "a b (c)", "x" * 150])
def test_odd_names(course: Course, tmp_path: Path, name: str) -> None:
    forms = {unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
    sources = [
        archive(tmp_path / f"{n}.zip", {f"{form}/ps9-tiny.ipynb": SECOND, "amy/ps9-tiny.ipynb": FIRST})
        for n, form in enumerate(forms)
    ]
    done = collect(course, sources, SET)
    assert not done.problems
    assert len(list((course.root / "submitted").iterdir())) == 2, "composed and decomposed are one student"
    lines = list(csv.reader((course.root / "report" / f"collected-{SET}.csv").read_text().splitlines()))
    assert lines[0] == ["file", "student", "attempt", "action", "why"] and len(lines) == 1 + len(done.rows)
    assert not any(cell.startswith(("=", "+", "-", "@")) for line in lines for cell in line)


def test_names_without_the_mark_of_utf8(course: Course, tmp_path: Path) -> None:
    """macOS and others write UTF-8 names without saying so."""
    path = archive(tmp_path / "m.zip", {"J#rg/ps9-tiny.ipynb": FIRST, "amy/ps9-tiny.ipynb": FIRST}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(b"J#rg/", "Jörg"[:3].encode() + b"/"))
    collect(course, [path], SET)
    assert any(student.startswith("Jör") for student in os.listdir(course.root / "submitted"))


def test_ids_that_differ_in_case_only(course: Course, tmp_path: Path) -> None:
    done = collect(course, [archive(tmp_path / "a.zip", {"Bob/a.ipynb": FIRST, "bob/a.ipynb": SECOND})], SET)
    assert [row.action for row in done.rows] == [TO_GRADE, UNMATCHED]
    assert "differ only in case" in done.problems[0]
    with pytest.raises(CourseError, match="differ only in case"):
        collect(course, [tmp_path / "a.zip"], SET, roster(tmp_path / "r.csv", "id,name\nBob,B\nbob,C\n"))


# --- the command -----------------------------------------------------------------------------------------------------


def command(course: Course, *arguments: str) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "autograder", "collect", "--course", str(course.root), *arguments]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[2])


def test_the_command(course: Course, tmp_path: Path) -> None:
    download = archive(tmp_path / "c.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST, "[red]:x:.md": b""})
    done = command(course, str(download), "-a", SET)
    assert done.returncode == 1
    assert "amy-1" in done.stdout and "to be graded" in done.stdout and "[red]:x:.md" in done.stdout
    assert done.stderr.startswith("1 file was not matched: c.zip/[red]:x:.md: ")
    told = json.loads(command(course, str(download), "-a", SET, "--json", "--dry-run").stdout)
    assert [row["action"] for row in told["files"]] == [UNCHANGED, UNMATCHED] and told["report"] is None


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{zip}", "-a", "ps0"), "no set 'ps0'"),
        (("nowhere.zip", "-a", SET), "does not exist"),
        (("{course}", "-a", SET), "holds the course's own folder submitted"),
        (("{zip}", "-a", SET, "--roster", "{zip}"), "is no CSV file"),
    ],
)
def test_one_clear_line(course: Course, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    download = archive(tmp_path / "c.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST})
    done = command(course, *(a.format(zip=download, course=course.root) for a in arguments))
    assert done.returncode != 0 and said in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr
