"""Whose a file is: names by Canvas, Moodle and people, and the lists of who is in the class."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from downloads import (
    FIRST,
    SECOND,
    THIRD,
    archive,
    roster,
    submitted,
    taken,
)
from tiny_course import SET

from autograder.course import Course, CourseError
from autograder.gradebook.reader import class_list
from autograder.gradebook.writer import note_students
from autograder.lms.archives import Found, Sources
from autograder.lms.collect import IGNORED, UNMATCHED, collect
from autograder.lms.filenames import key_of, lms_owners, match, owners
from autograder.lms.roster import Match, Person, Roster, read_roster

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
    owner = lms_owners(found)[0]
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
    owner = lms_owners(found)[0]
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
    assert whose("ahoamy_1_9_2_8_x.ipynb")[::2] == ("amy", False)
    assert whose("bobo_1_9_2_8_x.ipynb")[1].startswith("it may be another student's")
    assert whose("bobo_2_9_x.ipynb", False, "Ann_1_assignsubmission_file_/x")[0] == "bobo-2"
    assert whose("benbo_1_9_x.ipynb")[1] == "the number is amy's, but the name is another student's"
    assert whose("moodle/all.zip/ahoamy_1_9_x.ipynb", in_archive=1)[1].startswith("it lies in a download of Canvas")
    assert whose("notes.txt", False, "amy.ipynb")[1] == "it is no notebook, and no student is called so"
    assert whose("---.ipynb", False, "amy.ipynb")[1] == "its name does not say whose it is"


# --- rosters ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,mail\nAmy,a@x\n", "has no column 'id'"),
        ("id,name\n,Amy\n", "line 2: there is no id"),
        ("id,name\na/b,Amy\n", "cannot be the name"),
        ('id,name\n"<b>a",Amy\n', "cannot be the name"),
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
    assert people.find("Canvas", "smithjürgengroß", "1").person.id == "jsm"
    assert people.find("Moodle", "Jürgen Groß Smith", "77").person.id == "jsm"
    assert people.find("Moodle", "jsm Jurgen Gross Smith", "77").person.id == "jsm"
    assert people.plain("J@X.org").person.id == "jsm"
    assert people.plain("homework jsm final").person.id == "jsm"
    assert people.plain("jsmx") == Match()
    path.write_text('Student,ID,SIS Login ID\n    Points Possible,,\n"Smith, Jo",7,jo\n')
    assert [(p.id, p.logins) for p in read_roster(path).people] == [("7", ("jo",))], "a shortened gradebook of Canvas"


@pytest.mark.parametrize("is_listed", [True, False])
def test_canvas_test_student_is_nobody(course: Course, tmp_path: Path, is_listed: bool) -> None:
    """An instructor's Student View leaves a row and a file behind; a student who is called so has a login."""
    names = ("studenttest_7_1_ps9-tiny.ipynb", "smithjo_8_2_ps9-tiny.ipynb")
    download = archive(tmp_path / "c.zip", dict.fromkeys(names, FIRST))
    head, digest = "Student,ID,SIS User ID,SIS Login ID,Section\n", hashlib.sha1(b"Test Student_7").hexdigest()
    people = roster(tmp_path / "r.csv", f'{head}"Smith, Jo",8,,jo,A\n"Student, Test",7,,{digest},A\n')
    done = collect(course, [download], SET, people if is_listed else None)
    assert {row.action for row in done.rows if "studenttest" in row.file} == {IGNORED}
    assert done.problems == [] and list(course.submissions(SET)) == ["jo" if is_listed else "smithjo-8"]
    if is_listed:
        assert [row["id"] for row in class_list(course)] == ["jo"]
        people = roster(tmp_path / "r.csv", f'{head}"Student, Test",7,,tstudent,A\n')
        assert [row.student for row in collect(course, [download], SET, people).rows] == ["tstudent", ""]


def test_names_that_two_students_have(tmp_path: Path) -> None:
    people = read_roster(roster(tmp_path / "r.csv", "id,name,canvas_id\na1,Ann Lee,5\na2,Ann Lee,6\nb,Bo Li,7\n"))
    assert people.find("Canvas", "leeann", "9") == Match(why="'leeann' may be any of a1, a2")
    assert people.find("Canvas", "leeann", "6").person.id == "a2"
    assert people.find("Canvas", "libo", "6").person is None, "number and name disagree"
    assert people.find("Canvas", "libo", "8") == Match(why="b has another number in Canvas than 8")


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


def test_who_is_not_of_the_class_hands_in_for_nobody(course: Course, tmp_path: Path) -> None:
    """Number 1 is in Canvas and not on the roster; behind it a file's name goes on as if it were the victim's."""
    files = {
        "mallory_1_10_x_2_999_ps9-tiny.ipynb": THIRD,
        "victim_2_11_ps9-tiny.ipynb": FIRST,
        "carol_3_12_task_1a_5_6_x.ipynb": SECOND,
    }
    for text in ("id,canvas_id\nvictim,2\ncarol,3\n", "id,name,canvas_id\nv,Victim,2\nc,Carol,3\n"):
        people = roster(tmp_path / "r.csv", text)
        done = collect(course, [archive(tmp_path / "c.zip", files)], SET, people)
        assert "it may be another student's" in done.problems[0]
        assert sorted(submitted(course).values()) == sorted([FIRST, SECOND] * (1 + ("name" in text)))


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
