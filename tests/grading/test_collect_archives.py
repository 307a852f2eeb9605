"""Archives that are hostile or damaged, and attempts on disk: nothing is lost, nobody else is touched."""

from __future__ import annotations

import os
import struct
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from downloads import (
    FIRST,
    SECOND,
    SMALL,
    actions,
    archive,
    folder_of,
    submitted,
    taken,
    zipped_bytes,
)
from tiny_course import SET, make_course

from autograder.course import Course
from autograder.lms.archives import Sources
from autograder.lms.attempts import Attempt, Shelf
from autograder.lms.collect import REFUSED, TO_GRADE, collect
from autograder.notebook.finder import find_notebook

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


def test_a_students_many_archives_do_not_cost_the_class_its_archive(course: Course, tmp_path: Path) -> None:
    """Each is within its own limit; together they hold more than a class may."""
    large = zipped_bytes(tmp_path, {f"{n}.txt": b"0123456789abcdef" * 40_000 for n in range(3)})
    files = {f"amy_1_{n}_x{n}.zip": large for n in range(1, 15)} | {"ben_2_20_ps9-tiny.ipynb": SECOND}
    download = archive(tmp_path / "c.zip", files)
    limits = replace(SMALL, ratio_from=4 * 2**20)
    done = collect(course, [download], SET, limits=limits)
    assert taken(course, "ben-2") == SECOND
    assert {row.why for row in done.rows if row.action == REFUSED} == {
        "it and the archives before it unpack to more than 8 MB"
    }
    assert sum(row.student == "amy-1" and row.action == TO_GRADE for row in done.rows) == 3 * 4


def test_a_source_that_is_a_bomb_stops_nothing_else(course: Course, tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.zip", {f"s{n}/ps9-tiny.ipynb": b"0" * 2**20 for n in range(9)})
    good = archive(tmp_path / "good.zip", {"amy_1_2_ps9-tiny.ipynb": FIRST})
    done = collect(course, [bomb, good], SET, limits=SMALL)
    assert set(submitted(course)) == {"amy-1/ps9-tiny/ps9-tiny.ipynb"}
    assert done.problems == ["1 file was refused: bomb.zip: it holds more than 8 MB"]


def test_long_lists_of_files_are_not_even_read(course: Course, tmp_path: Path) -> None:
    """In memory an entry takes up ten times its bytes; what the archive says of their number need not be true."""
    data = zipped_bytes(tmp_path, {f"{n:x}": b"" for n in range(25_000)})
    end = data.rindex(b"PK\5\6")
    lying = data[: end + 8] + struct.pack("<HH", 1, 1) + data[end + 12 :]
    usual = zipped_bytes(tmp_path, {f"{'data' * 50}/{n}.txt": b"" for n in range(300)} | {"ps9-tiny.ipynb": FIRST})
    files = {"amy_1_1_many.zip": data, "ben_2_2_many.zip": lying, "cat_3_3_usual.zip": usual}
    done = collect(course, [archive(tmp_path / "c.zip", files)], SET)
    why = {row.student: row.why for row in done.rows if row.action == REFUSED}
    (size,) = struct.unpack("<I", data[end + 12 : end + 16])
    assert why == dict.fromkeys(("amy-1", "ben-2"), f"its list of files has {size // 1000:,} kB")
    assert "cat-3/ps9-tiny/ps9-tiny.ipynb" in submitted(course)


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
    first, second = Attempt({"a.ipynb": found}), Attempt({"b.ipynb": found})
    assert not shelf.add(first) and first.note is shelf.newest
    assert not Shelf(tmp_path / "out").add(second) and second.note.place == ""


@pytest.mark.slow
def test_many_files_of_one_name_cost_no_more_each(course: Course, tmp_path: Path) -> None:
    """Each once took the square of how many came before it: two thousand of one student stopped a class for minutes."""
    same = zipped_bytes(tmp_path, {f"{n}/data/x": b"" for n in range(1_990)} | {"ps9-tiny.ipynb": SECOND})
    other = zipped_bytes(tmp_path, {f"{n}/DATA/X": b"" for n in range(1_990)})
    files = {f"amy_1_{n}_{n}.zip": other for n in range(2, 12)} | {"amy_1_1_same.zip": same}
    before = time.process_time()
    done = collect(course, [archive(tmp_path / "c.zip", files)], SET, dry_run=True)
    assert time.process_time() - before < 30
    assert len(done.rows) == 1 + 11 * 1_990 and not done.problems


def test_files_of_archives_inside_count_together(course: Course, tmp_path: Path) -> None:
    few = zipped_bytes(tmp_path, {f"{n}.txt": b"" for n in range(9)})
    many = zipped_bytes(tmp_path, {f"{n}.zip": few for n in range(9)})
    files = {
        "amy_1_1_many.zip": many,
        "ben_2_2_ps9-tiny.ipynb": SECOND,
        **{f"cat_3_{n}_{n}.zip": few for n in range(9)},
    }
    done = collect(course, [archive(tmp_path / "c.zip", files)], SET, limits=SMALL)
    assert [row.why for row in done.rows if row.student == "amy-1"] == ["it holds 27 files"]
    assert {path.split("/")[0] for path in submitted(course)} == {"ben-2", "cat-3"}


def test_endless_names_in_a_students_archive(course: Course, tmp_path: Path) -> None:
    names = [
        "a_1_" + "9" * 5_000 + "_x",
        "a" + "_1" * 30_000 + "_x",
        "copy " * 12_000 + ".ipynb",
        ".zip" * 16_000 + "x",
        "(1) " * 16_000 + ".ipynb",
    ]
    inner = zipped_bytes(tmp_path, {name: b"" for name in names})
    own = zipped_bytes(tmp_path, {"amy/work.zip": inner, "ben/ps9-tiny.ipynb": SECOND})
    before = time.process_time()
    collect(course, [archive(tmp_path / "c.zip", {"all.zip": own})], SET)
    collect(course, [archive(tmp_path / "d.zip", {"amy/work.zip": inner, "ben/ps9-tiny.ipynb": SECOND})], SET)
    assert time.process_time() - before < 10
    assert "ben/ps9-tiny/ps9-tiny.ipynb" in submitted(course)
