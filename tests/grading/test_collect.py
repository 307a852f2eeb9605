"""Collecting what learning systems hand out: real archives and folders, in a real course folder."""

from __future__ import annotations

import csv
import json
import os
import struct
import subprocess
import sys
import unicodedata
import zipfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from tiny_course import GOOD, SET, answered, make_course

from autograder.course import Course, CourseError
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.reader import class_list, scores
from autograder.gradebook.writer import note_students, write
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store
from autograder.lms.archives import ArchiveLimits, Found, Sources
from autograder.lms.attempts import NOTES, Attempt, Shelf
from autograder.lms.collect import IGNORED, KEPT, REFUSED, TO_GRADE, UNCHANGED, UNMATCHED, Collected, collect
from autograder.lms.filenames import key_of, lms_owner, match, owners
from autograder.lms.roster import Person, Roster, read_roster
from autograder.notebook.finder import find_notebook
from autograder.timestamps import read_timestamp

FIRST = json.dumps(answered(why="first attempt")).encode()
SECOND = json.dumps(answered(**GOOD)).encode()
THIRD = json.dumps(answered(why="third attempt")).encode()
SMALL = ArchiveLimits(file_bytes=2**20, source_bytes=8 * 2**20, inner_bytes=2 * 2**20, ratio_from=2**20, inner_files=20)


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def archive(path: Path, files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", method) as zipped:
        for name, data in files.items():
            zipped.writestr(name, data)
    return path


def zipped_bytes(folder: Path, files: Mapping[str, bytes]) -> bytes:
    return archive(folder / "inner.zip", files).read_bytes()


def folder_of(path: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(data)
    return path


def roster(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def submitted(course: Course) -> dict[str, bytes]:
    """Everything in submitted/ except the notes, by path."""
    root = course.root / "submitted"
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.name != NOTES
    }


def actions(done: Collected) -> dict[str, str]:
    """What became of each file, by the name's last part."""
    return {row.file.rsplit("/", 1)[-1]: row.action for row in done.rows}


def taken(course: Course, student: str) -> bytes:
    """What grading would take."""
    path, _ = find_notebook(course.root / "submitted" / student / SET, SET)
    assert path is not None
    return path.read_bytes()


# --- names -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smithjane_3143_207797_ps2-self-attention-1.ipynb", ("smithjane", "3143", False, 207797)),
        ("smithjane_LATE_3143_207797_my work (1).ipynb", ("smithjane", "3143", True, 207797)),
        ("müllerjürgen2_77_9_a_b_1_2_c.ipynb", ("müllerjürgen2", "77", False, 9)),
        ("anon_x1Y2z_207797_ps2.ipynb", ("anon", "x1Y2z", False, 207797)),
        ("LATE_anon_12345_207797_ps2.ipynb", ("anon", "12345", True, 207797)),
        ("smithjane_LATE_3143_text.html", ("smithjane", "3143", True, 0)),
    ],
)
def test_names_by_canvas(tmp_path: Path, name: str, expected: tuple[str, str, bool, int]) -> None:
    (found,) = Sources().files(archive(tmp_path / "c.zip", {name: b"{}"}))
    owner = lms_owner(found)
    assert owner is not None
    assert (owner.name, owner.user, owner.late, owner.file) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Jane O Smith_123456_assignsubmission_file_/a.ipynb", ("Jane O Smith", "123456", ("a.ipynb",))),
        ("Jane Smith_123456_assignsubmission_file/sub/a.ipynb", ("Jane Smith", "123456", ("sub", "a.ipynb"))),
        ("Jane Smith_123456_assignsubmission_file_a_b.ipynb", ("Jane Smith", "123456", ("a_b.ipynb",))),
        ("download/Participant_9_assignsubmission_file_/a.ipynb", ("Participant", "9", ("a.ipynb",))),
        ("Default group_assignsubmission_file_/a.ipynb", ("Default group", "", ("a.ipynb",))),
    ],
)
def test_names_by_moodle(tmp_path: Path, name: str, expected: tuple[str, str, tuple[str, ...]]) -> None:
    (found,) = Sources().files(archive(tmp_path / "m.zip", {name: b"{}"}))
    owner = lms_owner(found)
    assert owner is not None
    assert (owner.name, owner.user, owner.inside) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ps2-self-attention_alice", ("alice", 0)),
        ("alice - PS2 Self Attention (3)", ("alice", 3)),
        ("ps2-self-attention", ("", 0)),
        ("student-01_attempt_2", ("student-01", 2)),
        ("Copy of bob", ("bob", 0)),
        ("mops2-self-attention", ("mops2-self-attention", 0)),
    ],
)
def test_what_a_name_says_besides_the_set(text: str, expected: tuple[str, int]) -> None:
    assert key_of(text, "ps2-self-attention") == expected


# --- whose is it? ----------------------------------------------------------------------------------------------------

AMY, BEN = Person("amy", "Amy Aho", canvas="1"), Person("ben", "Ben Bo", email="ben@x.org")


def whose(path: str, complete: bool = True, beside: str = "", in_archive: int = -1) -> tuple[str, str, bool]:
    """Student, reason and whether the id was made, of one file; `beside` it lies another one."""
    files = [
        Found(name, parts := tuple(name.split("/")), tuple(n == in_archive for n in range(len(parts))))
        for name in (path, beside)
        if name
    ]
    roster = Roster([AMY, BEN], complete)
    found = match(files[0], owners("download", files, roster, SET)[0], roster)
    return (found.person.id if found.person else "", found.why, found.made)


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("ahoamy_1_9_x.ipynb", "amy"),
        ("somebody_1_9_x.ipynb", "amy"),  # the number counts
        ("Ben Bo_77_assignsubmission_file_/x.ipynb", "ben"),
        ("ben@x.org/x.ipynb", "ben"),
        ("ps9-tiny_amy (2).ipynb", "amy"),
    ],
)
@pytest.mark.parametrize("complete", [False, True])
def test_whose_a_file_is(path: str, student: str, complete: bool) -> None:
    assert whose(path, complete) == (student, "", False)


@pytest.mark.parametrize(
    ("path", "made", "why"),
    [
        ("leeann_5_9_x.ipynb", "leeann-5", "'leeann' is not on the roster"),
        ("Ann Lee_5_assignsubmission_file_/x.ipynb", "Ann Lee", "'Ann Lee' is not on the roster"),
        ("Participant_5_assignsubmission_file_/x.ipynb", "Participant 5", "'Participant' is not on the roster"),
        ("ann/x.ipynb", "ann", "'ann' is not on the roster"),
    ],
)
def test_whom_no_roster_knows(path: str, made: str, why: str) -> None:
    assert whose(path, False, "ben/x.ipynb") == (made, "", True)
    assert whose(path, True, "ben/x.ipynb") == ("", why, False)


def test_why_a_file_is_nobodys() -> None:
    assert whose("readme.md", beside="ahoamy_1_9_x.ipynb")[1].startswith("it is not named as the other files")
    assert whose("bobo_1_9_2_8_x.ipynb")[::2] == ("amy", False)
    assert whose("bobo_2_9_x.ipynb", False, "Ann_1_assignsubmission_file_/x")[0] == "bobo-2"
    assert whose("benbo_1_9_x.ipynb")[1] == "the number is amy's, but the name is another student's"
    assert whose("moodle/all.zip/ahoamy_1_9_x.ipynb", in_archive=1)[1].startswith("it lies in a download of Canvas")
    assert whose("notes.txt", False, "amy.ipynb")[1] == "it is no notebook, and no student is called so"
    assert whose("---.ipynb", False, "amy.ipynb")[1] == "its name does not say whose it is"


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
    (remark,) = collect(course, [download], SET).remarks
    assert "counts as one second late" in remark and "(a-1)" in remark
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


# --- hostile archives ------------------------------------------------------------------------------------------------


def link(name: str, mode: int = 0o120777) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def test_paths_links_and_locked_files_are_refused(course: Course, tmp_path: Path) -> None:
    path = tmp_path / "evil.zip"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("../../../amy/ps9-tiny.ipynb", FIRST)
        zipped.writestr("/etc/cron.d/ps9-tiny.ipynb", FIRST)
        zipped.writestr("C:\\Windows\\ps9-tiny.ipynb", FIRST)
        zipped.writestr("amy\\..\\..\\ps9-tiny.ipynb", FIRST)
        zipped.writestr(link("amy/link.ipynb"), b"/etc/passwd")
        zipped.writestr(link("amy/pipe", 0o010644), b"")
        zipped.writestr("amy/packed.ipynb", FIRST, zipfile.ZIP_LZMA)
        zipped.writestr("amy/ps9-tiny.ipynb", SECOND)
        zipped.writestr("ben/nul#.ipynb", FIRST)
        zipped.writestr("ben/secret.ipynb", FIRST)
        zipped.writestr("ben/ps9-tiny.ipynb", SECOND)
    data = bytearray(path.read_bytes().replace(b"ben/nul#.ipynb", b"ben/nul\0.ipynb"))
    entry = data.rfind(b"PK\x01\x02", 0, data.rfind(b"ben/secret.ipynb"))
    data[entry + 8] |= 1  # the mark of encryption
    path.write_bytes(data)
    done = collect(course, [path], SET)
    assert submitted(course) == {"amy/ps9-tiny/ps9-tiny.ipynb": SECOND, "ben/ps9-tiny/ps9-tiny.ipynb": SECOND}
    refused = {row.why for row in done.rows if row.action == REFUSED}
    assert refused == {
        "its path leads out of the archive",
        "its path is absolute",
        "it is a symbolic link",
        "it is no ordinary file",
        "its name holds a NUL character",
        "it is packed in an unusual way",
        "it is encrypted",
    }
    assert done.problems[0].startswith("9 files were refused")
    assert {row.student for row in done.rows if row.why == "it is encrypted"} == {"ben"}, "said whose it is"


def test_links_and_pipes_in_folders_are_refused(course: Course, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    folder = folder_of(tmp_path / "class", {"amy/ps9-tiny.ipynb": FIRST, "ben/ps9-tiny.ipynb": FIRST})
    (folder / "amy" / "link.ipynb").symlink_to(secret)
    (folder / "carol").symlink_to(tmp_path)
    os.link(secret, folder / "amy" / "hard.ipynb")
    os.mkfifo(folder / "amy" / "pipe.ipynb")
    done = collect(course, [folder], SET)
    assert set(submitted(course)) == {"amy/ps9-tiny/ps9-tiny.ipynb", "ben/ps9-tiny/ps9-tiny.ipynb"}
    assert sum(row.action == REFUSED for row in done.rows) == 4
    assert b"secret" not in b"".join(submitted(course).values())


def test_bombs(course: Course, tmp_path: Path) -> None:
    big = b"0" * (3 * 2**20)
    many = zipped_bytes(tmp_path, {f"{n}.txt": b"" for n in range(30)})
    wide = zipped_bytes(tmp_path, {f"{n}.txt": os.urandom(2**19) for n in range(6)})
    flat = zipped_bytes(tmp_path, {f"{n}.txt": b"0" * 2**19 for n in range(3)})
    deep = zipped_bytes(tmp_path, {"ps9-tiny.ipynb": FIRST})
    for _ in range(4):
        deep = zipped_bytes(tmp_path, {"deeper.zip": deep})
    download = archive(
        tmp_path / "c.zip",
        {
            "amy_1_1_big.ipynb": big,
            "ben_2_2_many.zip": many,
            "cat_3_3_wide.zip": wide,
            "dan_4_4_flat.zip": flat,
            "eve_5_5_deep.zip": deep,
            "fay_6_6_ps9-tiny.ipynb": SECOND,
        },
        zipfile.ZIP_STORED,
    )
    download.write_bytes(archive(tmp_path / "d.zip", {**read_zip(download)}).read_bytes())
    done = collect(course, [download], SET, limits=SMALL)
    assert set(submitted(course)) == {"fay-6/ps9-tiny/ps9-tiny.ipynb"}
    why = {row.student: row.why for row in done.rows if row.action == REFUSED}
    assert why == {
        "amy-1": "it has more than 1 MB",
        "ben-2": "it holds 30 files",
        "cat-3": "it has more than 1 MB",
        "dan-4": "it unpacks to more than 100 times its size",
        "eve-5": "archives lie inside each other, more than 3 deep",
    }


def read_zip(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def test_a_students_bombs_do_not_cost_the_class_its_archive(course: Course, tmp_path: Path) -> None:
    bomb = zipped_bytes(tmp_path, {f"{n}.txt": b"0" * 2**19 for n in range(3)})
    files = {f"amy_1_{n}_x{n}.zip": bomb for n in range(1, 15)} | {"ben_2_20_ps9-tiny.ipynb": SECOND}
    done = collect(course, [archive(tmp_path / "c.zip", files)], SET, limits=SMALL)
    assert set(submitted(course)) == {"ben-2/ps9-tiny/ps9-tiny.ipynb"}
    assert sum(row.action == REFUSED for row in done.rows) == 14


def test_a_source_that_is_a_bomb_stops_nothing_else(course: Course, tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.zip", {f"s{n}/ps9-tiny.ipynb": b"0" * 2**20 for n in range(9)})
    good = archive(tmp_path / "good.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST})
    done = collect(course, [bomb, good], SET, limits=SMALL)
    assert set(submitted(course)) == {"amy-1/ps9-tiny/ps9-tiny.ipynb"}
    assert done.problems == ["1 file was refused: bomb.zip: it holds more than 8 MB"]


def test_lying_sizes_and_damage(course: Course, tmp_path: Path) -> None:
    path = archive(tmp_path / "c.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST * 50, "ben_2_3_ps9-tiny.ipynb": SECOND})
    data = bytearray(path.read_bytes())
    entry = data.find(b"PK\x01\x02")
    data[entry + 24 : entry + 28] = struct.pack("<I", 10)  # claims to have ten bytes
    path.write_bytes(data)
    done = collect(course, [path], SET)
    assert actions(done) == {"amy_1_2_ps9-tiny.ipynb": REFUSED, "ben_2_3_ps9-tiny.ipynb": TO_GRADE}
    cut = tmp_path / "cut.zip"
    cut.write_bytes(bytes(data[: len(data) // 2]))
    done = collect(course, [cut], SET)
    assert done.problems == [
        "1 file was refused: cut.zip: it is no zip archive that can be read; unpack it and name the folder"
    ]


def test_archives_that_are_not_opened_are_kept(course: Course, tmp_path: Path) -> None:
    done = collect(
        course, [archive(tmp_path / "c.zip", {"amy_1_2_work.rar": b"Rar!", "ben_2_3_work.zip": b"no zip"})], SET
    )
    assert set(submitted(course)) == {"amy-1/ps9-tiny/work.rar", "ben-2/ps9-tiny/work.zip"}
    assert [row.why for row in done.rows] == [
        "an archive of this kind is not opened",
        "it is no zip archive that can be read; it is kept as it is",
    ]
    assert len(done.remarks) == 2


# --- attempts on disk ------------------------------------------------------------------------------------------------


def test_work_that_was_there_before_is_kept(course: Course, tmp_path: Path) -> None:
    here = folder_of(
        course.root / "submitted" / "amy" / SET,
        {f"{SET}.ipynb": FIRST, "sub/helper.py": b"x = 1", "timestamp.txt": b"2026-10-01 12:00:00 UTC"},
    )
    source = folder_of(tmp_path / "class", {"amy/ps9-tiny.ipynb": SECOND, "ben/ps9-tiny.ipynb": FIRST})
    collect(course, [source], SET)
    assert {k: v for k, v in submitted(course).items() if k.startswith("amy")} == {
        "amy/ps9-tiny/attempts/1/ps9-tiny.ipynb": FIRST,
        "amy/ps9-tiny/attempts/1/sub/helper.py": b"x = 1",
        "amy/ps9-tiny/attempts/1/timestamp.txt": b"2026-10-01 12:00:00 UTC",
        "amy/ps9-tiny/ps9-tiny.ipynb": SECOND,
    }
    assert find_notebook(here, SET) == (here / f"{SET}.ipynb", []), "earlier attempts are not even mentioned"


def test_a_kill_in_the_middle_loses_nothing(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop at every replacement of a file in turn: what had been there is still there, and the next run ends well."""
    first = archive(tmp_path / "a.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST, "amy_1_3_notes.csv": b"1"})
    second = archive(tmp_path / "b.zip", {"amy_1_4_ps9-tiny-1.ipynb": SECOND, "amy_1_5_other.csv": b"2"})
    real = os.replace
    for stop in range(12):
        fresh = make_course(tmp_path / f"course-{stop}")
        collect(fresh, [first], SET)
        calls = iter(range(1000))

        def replace_until(source: str, target: str, stop: int = stop, calls=calls) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt
            real(source, target)

        monkeypatch.setattr(os, "replace", replace_until)
        try:
            collect(fresh, [second], SET)
            finished = True
        except KeyboardInterrupt:
            finished = False
        monkeypatch.setattr(os, "replace", real)
        contents = list(submitted(fresh).values())
        assert FIRST in contents and b"1" in contents
        assert not collect(fresh, [second], SET).problems
        assert submitted(fresh) == {
            "amy-1/ps9-tiny/attempts/1/notes.csv": b"1",
            "amy-1/ps9-tiny/attempts/1/ps9-tiny.ipynb": FIRST,
            "amy-1/ps9-tiny/other.csv": b"2",
            "amy-1/ps9-tiny/ps9-tiny.ipynb": SECOND,
        }
        if finished:
            break
    assert finished


def test_a_full_disk_is_one_line(course: Course, tmp_path: Path) -> None:
    (course.root / "submitted").mkdir()
    (course.root / "submitted" / "amy-1").write_text("a file where a folder should be")
    download = archive(tmp_path / "c.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST, "ben_2_3_ps9-tiny.ipynb": FIRST})
    done = collect(course, [download], SET)
    (problem,) = done.problems
    assert "could not be put into amy-1's folder: Not a directory" in problem
    assert taken(course, "ben-2") == FIRST


def test_dry_run_writes_nothing_and_says_the_same(course: Course, tmp_path: Path) -> None:
    download = archive(
        tmp_path / "c.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST, "amy_1_3_ps9-tiny-1.ipynb": SECOND, "x.md": b""}
    )
    before = sorted(course.root.rglob("*"))
    planned = collect(course, [download], SET, dry_run=True)
    assert sorted(course.root.rglob("*")) == before and planned.report is None
    assert planned.rows == collect(course, [download], SET).rows


def test_a_shelf_of_one_attempt(tmp_path: Path) -> None:
    (found,) = Sources().files(folder_of(tmp_path / "in", {"a.ipynb": FIRST}))
    shelf = Shelf(tmp_path / "out")
    note, was_there = shelf.add(Attempt({"a.ipynb": found}), "")
    assert (note is shelf.newest, was_there) == (True, False)
    assert Shelf(tmp_path / "out").add(Attempt({"b.ipynb": found}), "")[0].place == ""


# --- rosters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,mail\nAmy,a@x\n", "has no column 'id'"),
        ("id,name\n,Amy\n", "line 2: there is no id"),
        ("id,name\na/b,Amy\n", "cannot be the name"),
        ("id,name\namy,Amy\namy,Amy\n", "are the same"),
        ("just text", "no CSV file"),
    ],
)
def test_bad_rosters(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(CourseError, match=said):
        read_roster(roster(tmp_path / "r.csv", text))


def test_rosters_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_bytes("id;Name;E-Mail Address\njsm;Jürgen Groß Smith;j@x.org\n".encode("utf-16"))
    people = read_roster(path)
    assert people.canvas("smithjürgengroß", "1")[0].id == "jsm"
    assert people.moodle("Jürgen Groß Smith", "77")[0].id == "jsm"
    assert people.moodle("jsm Jurgen Gross Smith", "77")[0].id == "jsm"
    assert people.plain("J@X.org")[0].id == "jsm"
    assert people.plain("homework jsm final")[0].id == "jsm"
    assert people.plain("jsmx") == (None, "")


def test_names_that_two_students_have(tmp_path: Path) -> None:
    people = read_roster(roster(tmp_path / "r.csv", "id,name,canvas_id\na1,Ann Lee,5\na2,Ann Lee,6\nb,Bo Li,7\n"))
    assert people.canvas("leeann", "9") == (None, "'leeann' may be any of a1, a2")
    assert people.canvas("leeann", "6")[0].id == "a2"
    assert people.canvas("libo", "6")[0] is None, "number and name disagree"
    assert people.canvas("libo", "8") == (None, "b has another number in Canvas than 8")


def test_numbers_in_a_name_do_not_hand_in_for_others(course: Course, tmp_path: Path) -> None:
    """Canvas leaves underscores and numbers in names; `a__2__9` arrives as `a_2_9`."""
    people = roster(tmp_path / "r.csv", "id,canvas_id\nmallory,1\nvictim,2\ncarol,3\n")
    files = {
        "a_2_9_1_77_ps9-tiny.ipynb": THIRD,
        "victim_2_10_ps9-tiny.ipynb": FIRST,
        "carol_3_11_task_1a_5_6_x.ipynb": SECOND,
    }
    done = collect(course, [archive(tmp_path / "c.zip", files)], SET, people)
    assert "can be read as that of two students" in done.problems[0]
    assert submitted(course) == {
        "carol/ps9-tiny/task_1a_5_6_x.ipynb": SECOND,
        "victim/ps9-tiny/ps9-tiny.ipynb": FIRST,
    }


def test_numbers_in_a_name_without_a_roster(course: Course, tmp_path: Path) -> None:
    collect(course, [archive(tmp_path / "a.zip", {"victim_2_10_ps9-tiny.ipynb": FIRST})], SET)
    files = {"a_2_99_1_77_ps9-tiny.ipynb": THIRD, "victim_2_50_my_7_8_work.ipynb": SECOND}
    done = collect(course, [archive(tmp_path / "b.zip", files)], SET)
    assert done.problems[0].endswith("it may be another student's; name a roster with --roster")
    assert THIRD not in submitted(course).values()
    assert taken(course, "victim-2") == SECOND


def test_two_participants_are_not_one_student(course: Course, tmp_path: Path) -> None:
    files = {
        "Ann Lee_1_assignsubmission_file_/ps9-tiny.ipynb": FIRST,
        "Ann Lee_2_assignsubmission_file_/ps9-tiny.ipynb": SECOND,
    }
    people = roster(tmp_path / "r.csv", "id,name\nann,Ann Lee\n")
    done = collect(course, [archive(tmp_path / "m.zip", files)], SET, people)
    assert submitted(course) == {}
    assert "two participants (1, 2) may both be ann" in done.problems[0]


@pytest.mark.parametrize(
    ("system", "name"),
    [("Canvas", "leeann_{}_{}_ps9-tiny.ipynb"), ("Moodle", "Ann Lee_{}_assignsubmission_file_/{}/ps9-tiny.ipynb")],
)
@pytest.mark.parametrize("source", ["roster", "gradebook", "nothing"])
def test_a_namesakes_later_download_takes_nothing(
    course: Course, tmp_path: Path, system: str, name: str, source: str
) -> None:
    """Where no number says who Ann Lee is, the first who came stays; a roster with her number settles it."""
    people = roster(tmp_path / "r.csv", "id,name\nann,Ann Lee\n") if source == "roster" else None
    if source == "gradebook":
        note_students(course, {"ann": {"first_name": "Ann", "last_name": "Lee", "email": "", "lms_user_id": ""}})
    victim = archive(tmp_path / "v.zip", {name.format(5, 10): FIRST})
    namesake = archive(tmp_path / "n.zip", {name.format(6, 20): SECOND})
    assert not collect(course, [victim], SET, people).problems
    if source == "nothing" and system == "Canvas":
        assert not collect(course, [namesake], SET).problems, "here the ids differ"
        return
    before = submitted(course)
    for _ in range(2):
        done = collect(course, [namesake], SET, people)
        assert "two participants (5, 6) may both be " in done.problems[0] and done.rows[0].action == UNMATCHED
        assert submitted(course) == before and list(before.values()) == [FIRST]
    assert "two participants (5, 6)" in collect(course, [victim, namesake], SET, people).problems[0]
    assert not collect(course, [victim], SET, people).problems
    if source == "roster":
        numbered = f"id,name,{system}_id\nann,Ann Lee,6\n"
        assert not collect(course, [namesake], SET, roster(tmp_path / "r.csv", numbered)).problems
        assert taken(course, "ann") == SECOND


def test_a_file_called_attempts(course: Course, tmp_path: Path) -> None:
    files = {"amy_1_2_ps9-tiny.ipynb": FIRST, "amy_1_3_Attempts": b"mine"}
    assert not collect(course, [archive(tmp_path / "a.zip", files)], SET).problems
    files = {"amy_1_4_ps9-tiny-1.ipynb": SECOND, "amy_1_5_attempts": b"more"}
    assert not collect(course, [archive(tmp_path / "b.zip", files)], SET).problems
    assert submitted(course) == {
        "amy-1/ps9-tiny/attempts/1/Attempts_": b"mine",
        "amy-1/ps9-tiny/attempts/1/ps9-tiny.ipynb": FIRST,
        "amy-1/ps9-tiny/attempts_": b"more",
        "amy-1/ps9-tiny/ps9-tiny.ipynb": SECOND,
    }


@pytest.mark.parametrize("unseen", ["\u200b", "\u00ad", "\ufeff", "\u202b", "\u2060", "\u3164", "\U000e0041"])
def test_what_is_not_seen_in_a_name(course: Course, tmp_path: Path, unseen: str) -> None:
    """Neither a student's folder nor a file in it looks like another one's."""
    files = {"amy_1_2_a.ipynb": FIRST, f"amy{unseen}_1_3_a{unseen}.ipynb": SECOND}
    plain = {"ben/x.ipynb": FIRST, f"cat{unseen}/x{unseen}.ipynb": SECOND}
    collect(course, [archive(tmp_path / "m.zip", plain), archive(tmp_path / "c.zip", files)], SET)
    assert "cat_/ps9-tiny/x_.ipynb" in submitted(course)
    assert not any(unseen in path for path in submitted(course))
    with pytest.raises(CourseError, match="cannot be the name of a student's folder"):
        collect(course, [tmp_path / "m.zip"], SET, roster(tmp_path / "r.csv", f"id,name\nben,B\ncat{unseen}x,C\n"))


def test_long_names_stay_apart(course: Course, tmp_path: Path) -> None:
    long = "ü" * 90
    files = {f"{long}a_1_2_ps9-tiny.ipynb": FIRST, f"{long}b_2_3_ps9-tiny.ipynb": SECOND}
    assert not collect(course, [archive(tmp_path / "c.zip", files)], SET).problems
    assert sorted(submitted(course).values()) == sorted([FIRST, SECOND])
    assert len(os.listdir(course.root / "submitted")) == 2


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
