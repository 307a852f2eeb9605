"""Feedback pages in an archive for Canvas or Moodle: each system finds the right student by the names in it."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from click.testing import CliRunner, Result
from downloads import FIRST, SECOND, THIRD, archive, folder_of, roster
from one_mark import graded, result
from tiny_course import SET

from autograder.cli import cli
from autograder.course import Course
from autograder.gradebook.decisions import Decisions, decide
from autograder.lms.attempts import NOTES
from autograder.lms.collect import collect


def canvas_reads(name: str) -> tuple[str, str]:
    """The user, or anonymous id, and the file that Canvas takes a name of an uploaded archive for."""
    parts = [part for part in PurePosixPath(name).name.split("_") if part != "LATE"]
    assert not parts[-1].startswith("link")
    digits = [part for part in parts if re.fullmatch("[0-9]+", part)]
    user, file = parts[1:3] if parts[0] == "anon" else digits[:2]
    return user, file


def moodle_reads(path: str) -> tuple[str, str]:
    """The participant, and the name that the page gets in Moodle."""
    first, *below = path.split("/")
    _, participant, kind, plugin, rest = first.split("_", 4)
    assert (kind, plugin, rest) == ("assignsubmission", "file", "") and participant.isdecimal()
    return participant, "/".join(below)


def feedback(course: Course, system: str, *more: str) -> Result:
    return CliRunner().invoke(cli, ["feedback", "--zip", system, "--course", str(course.root), *more])


def packed(course: Course, system: str) -> dict[str, str]:
    """The student whose page it is, by the name in the archive; no name leads anywhere else."""
    with zipfile.ZipFile(course.feedback_folder / f"{SET}-{system}.zip") as zipped:
        names = zipped.namelist()
        assert len(set(names)) == len(names)
        assert not any(name.startswith(("/", ".")) or ".." in name.split("/") or "\\" in name for name in names)
        pages = {path.read_bytes(): path.parts[-3] for path in course.feedback_folder.glob("*/*/*.html")}
        return {name: pages[zipped.read(name)] for name in names}


def test_canvas_finds_each_student(course: Course, tmp_path: Path) -> None:
    people = roster(
        tmp_path / "canvas.csv",
        "Student,ID,SIS User ID,SIS Login ID,Section,Tiny (12)\n    Points Possible,,,,,7\n"
        '"Smith, Jane",3143,s1,12345,A,\n"Smith, Jane",3150,s2,jane_2_3,A,\n"López, María",3144,s3,maría,A,\n',
    )
    download = {
        "smithjane_3143_207700_ps9-tiny.ipynb": FIRST,
        "smithjane_LATE_3143_207797_ps9-tiny-1.ipynb": SECOND,
        "smithjane_3150_207701_ps9-tiny.ipynb": FIRST,
        "lópezmaría_3144_207800_1_2_work.ipynb": FIRST,
        "lópezmaría_3144_207801_numbers.csv": b"1,2",
    }
    collect(course, [archive(tmp_path / "c.zip", download)], SET, people)
    graded(course, result("12345"), result("jane_2_3"), result("maría"))
    done = feedback(course, "canvas")
    assert done.exit_code == 0 and "3 pages packed in" in done.output and "not in the zip" not in done.output
    read = {student: canvas_reads(name) for name, student in packed(course, "canvas").items()}
    assert read == {"12345": ("3143", "207797"), "jane_2_3": ("3150", "207701"), "maría": ("3144", "207801")}


def test_canvas_with_anonymous_grading(course: Course, tmp_path: Path) -> None:
    download = {"anon_x1Y2z_207797_ps9-tiny.ipynb": FIRST, "LATE_anon_12345_207798_ps9-tiny.ipynb": SECOND}
    collect(course, [archive(tmp_path / "c.zip", download)], SET)
    graded(course, result("anon-x1Y2z"), result("anon-12345"))
    feedback(course, "canvas")
    assert {canvas_reads(name) for name in packed(course, "canvas")} == {("x1Y2z", "207797"), ("12345", "207798")}


def test_canvas_knows_the_newest_upload_only(course: Course, tmp_path: Path) -> None:
    """The page is that of the attempt that counts; where it is an earlier one, its file is no longer Canvas's."""
    for number, (file, data) in enumerate(((20, SECOND), (30, THIRD), (10, FIRST))):
        name = f"smithjane_3143_{file}_ps9-tiny.ipynb"
        collect(course, [archive(tmp_path / f"{number}.zip", {name: data})], SET)
    decide(course.root, SET, Decisions(attempts="best", counts={"smithjane-3143": "2"}))
    graded(course, result("smithjane-3143"))
    feedback(course, "canvas")
    assert [canvas_reads(name) for name in packed(course, "canvas")] == [("3143", "30")]


@pytest.mark.parametrize("ending", ["_/", "/", "_"])
def test_moodle_finds_each_student(course: Course, tmp_path: Path, ending: str) -> None:
    people = roster(
        tmp_path / "class.csv",
        "id,name,moodle_id\njane_1,Jane Smith,123456\njane_2,Jane Smith,123457\nmüller,Jürgen Müller,123458\n",
    )
    download = {
        f"Jane Smith_123456_assignsubmission_file{ending}ps9-tiny.ipynb": FIRST,
        f"Jane Smith_123457_assignsubmission_file{ending}ps9-tiny.ipynb": SECOND,
        f"Group A-Jürgen Müller_123458_assignsubmission_file{ending}ps9-tiny.ipynb": FIRST,
    }
    collect(course, [archive(tmp_path / "m.zip", download)], SET, people)
    graded(course, result("jane_1"), result("jane_2"), result("müller"))
    assert feedback(course, "moodle").exit_code == 0
    read = {student: moodle_reads(name) for name, student in packed(course, "moodle").items()}
    page = f"{SET}.html"
    assert read == {"jane_1": ("123456", page), "jane_2": ("123457", page), "müller": ("123458", page)}


def test_who_is_not_in_the_zip_is_named(course: Course, tmp_path: Path) -> None:
    download = {"Amy Able_7_assignsubmission_file_/ps9-tiny.ipynb": FIRST}
    collect(course, [archive(tmp_path / "m.zip", download)], SET)
    collect(course, [folder_of(tmp_path / "plain", {"bob/ps9-tiny.ipynb": FIRST, "cy/ps9-tiny.ipynb": FIRST})], SET)
    graded(course, result("Amy Able"), result("bob"), result("cy"))
    done = feedback(course, "moodle")
    said = " ".join(done.output.split())
    assert done.exit_code == 0 and list(packed(course, "moodle").values()) == ["Amy Able"]
    assert f"{SET}: not in the zip: bob, cy (`collect` has noted no file of theirs from Moodle" in said
    nobody = feedback(course, "canvas")
    assert nobody.exit_code == 1 and "Amy Able, bob, cy" in nobody.output
    assert not (course.feedback_folder / f"{SET}-canvas.zip").exists()


def test_notes_without_the_number_are_mended_by_collecting_again(course: Course, tmp_path: Path) -> None:
    download = archive(tmp_path / "m.zip", {"Amy Able_7_assignsubmission_file_/ps9-tiny.ipynb": FIRST})
    collect(course, [download], SET)
    notes = course.root / "submitted" / "Amy Able" / SET / NOTES
    old = json.loads(notes.read_text())
    del old["attempts"][0]["participant"]
    notes.write_text(json.dumps(old))
    graded(course, result("Amy Able"))
    done = feedback(course, "moodle")
    assert done.exit_code == 1 and "collect the download again" in " ".join(done.output.split())
    collect(course, [download], SET)
    assert feedback(course, "moodle").exit_code == 0
    assert [moodle_reads(name)[0] for name in packed(course, "moodle")] == ["7"]


@pytest.mark.parametrize("number", ["../../7", "7/../8", "7_8", "٧", "", "7\n8"])
def test_a_number_that_is_none_makes_no_name(course: Course, tmp_path: Path, number: str) -> None:
    download = {"amy_1_2_ps9-tiny.ipynb": FIRST, "bob_3_4_ps9-tiny.ipynb": FIRST}
    collect(course, [archive(tmp_path / "c.zip", download)], SET)
    notes = course.root / "submitted" / "amy-1" / SET / NOTES
    noted = json.loads(notes.read_text())
    noted["attempts"][0]["participant"] = f"Canvas {number}"
    notes.write_text(json.dumps(noted))
    graded(course, result("amy-1"), result("bob-3"))
    assert "not in the zip: amy-1" in feedback(course, "canvas").output
    assert [canvas_reads(name) for name in packed(course, "canvas")] == [("3", "4")]


def test_two_students_with_one_number_get_no_page(course: Course, tmp_path: Path) -> None:
    """Collected with two rosters, one participant may have two folders: one of the pages is out of date."""
    download = {"amy_1_2_ps9-tiny.ipynb": FIRST, "bob_3_4_ps9-tiny.ipynb": FIRST}
    collect(course, [archive(tmp_path / "c.zip", download)], SET)
    people = roster(tmp_path / "class.csv", "id,name,canvas_id\namy,Amy,1\nbob-3,Bob,3\n")
    collect(course, [tmp_path / "c.zip"], SET, people)
    graded(course, result("amy-1"), result("amy"), result("bob-3"))
    done = feedback(course, "canvas")
    assert done.exit_code == 1 and "not in the zip: amy, amy-1 (all have the number 1 in Canvas)" in done.output
    assert list(packed(course, "canvas").values()) == ["bob-3"]
