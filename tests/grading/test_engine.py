"""Jobs, store and resuming on a real course folder: nothing lost, nothing run twice, nobody stopped by another."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from nbformat import v4
from tiny_course import GOOD, GOOD_DOUBLE, SET, answered, make_course, submit

from autograder.course import Course, CourseError
from autograder.files import write_atomically
from autograder.grading import runner
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store
from autograder.notebook.reader import MAX_BYTES
from autograder.results import GRADED, NOT_SUBMITTED, UNREADABLE


@pytest.fixture
def course(tmp_path: Path) -> Course:
    course = make_course(tmp_path)
    for student in ("ada", "bob", "eve"):
        submit(course, student, answered(**GOOD))
    return course


def grade(course: Course, **settings: object) -> dict[str, tuple[str, bool]]:
    """Status of each student's result and whether it was run now."""
    store = Store(course.results_folder)
    return {s.result.student: (s.result.status, s.ran) for s in grade_set(course, store, SET, Settings(**settings))}


def command(course: Course, *arguments: str, before: str = "") -> subprocess.CompletedProcess:
    call = f"{before}{sys.executable} -m autograder {' '.join(arguments)}"
    return subprocess.run(["sh", "-c", call], cwd=course.root, capture_output=True, text=True, timeout=300)


def test_unchanged_work_is_not_run_again_and_changed_work_is(course: Course) -> None:
    assert grade(course) == {s: (GRADED, True) for s in ("ada", "bob", "eve")}
    submit(course, "bob", answered(**{**GOOD, "double": GOOD_DOUBLE.replace("2 * np.asarray(x)", "x + x")}))
    assert grade(course) == {"ada": (GRADED, False), "bob": (GRADED, True), "eve": (GRADED, False)}


def test_a_course_that_students_code_could_read_is_not_graded(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Python that was installed into the home folder has all of it as its own."""
    monkeypatch.setattr(sys, "base_prefix", str(course.root.parent))
    with pytest.raises(CourseError, match="which students' code can read"):
        grade(course)


def test_what_takes_too_long_to_read_does_not_keep_the_class(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "READ_SECONDS", 0.5)
    slow = answered(**{**GOOD, "double": "def double(x):\n    return f0(x)"})
    chain = (v4.new_code_cell(f"def f{n}(x):\n    return f{n + 1}(x)") for n in range(4_500))
    slow.cells.extend(chain)
    submit(course, "bob", slow)
    found = grade(course)
    assert found == {"ada": (GRADED, True), "bob": (UNREADABLE, True), "eve": (GRADED, True)}
    bob = Store(course.results_folder).get(SET, "bob")
    assert "OutOfTime" in bob.reason and not bob.key, "the next run tries again"


def test_outputs_and_counts_in_the_file_are_no_change(course: Course) -> None:
    grade(course)
    notebook = answered(**GOOD)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.metadata["tags"] = 7, []
    submit(course, "ada", notebook)
    assert grade(course)["ada"] == (GRADED, False)


def test_a_changed_set_is_judged_anew_with_a_seed_of_its_own(course: Course) -> None:
    grade(course)
    before = Store(course.results_folder).get(SET, "ada")
    path = course.source_folder / SET / f"{SET}.ipynb"
    path.write_text(path.read_text().replace("negative numbers too", "numbers below zero too"))
    again = Course(course.root)
    assert all(ran for _, ran in grade(again).values())
    after = Store(course.results_folder).get(SET, "ada")
    assert before.assignment_version != after.assignment_version
    assert before.seed != after.seed


def test_force_runs_everything_with_fresh_inputs(course: Course) -> None:
    grade(course)
    seed = Store(course.results_folder).get(SET, "ada").seed
    assert all(ran for _, ran in grade(course, force=True).values())
    assert Store(course.results_folder).get(SET, "ada").seed != seed


def test_bad_files_have_a_status_of_their_own_and_the_rest_is_graded(course: Course) -> None:
    folder = course.step_folder("submitted", "big", SET)
    folder.mkdir(parents=True)
    (folder / f"{SET}.ipynb").write_bytes(b" " * (MAX_BYTES + 1))
    nothing = course.step_folder("submitted", "nil", SET)
    nothing.mkdir(parents=True)
    foreign = course.step_folder("submitted", "pdf", SET)
    foreign.mkdir(parents=True)
    (foreign / f"{SET}.ipynb").write_bytes(b"%PDF-1.7 not a notebook")
    graded = grade(course)
    assert graded["big"][0] == graded["pdf"][0] == UNREADABLE
    assert graded["nil"][0] == NOT_SUBMITTED
    assert graded["ada"][0] == graded["eve"][0] == GRADED
    store = Store(course.results_folder)
    assert "20 MB" in store.get(SET, "big").reason
    assert "PDF" in store.get(SET, "pdf").reason


def test_a_damaged_result_is_made_anew(course: Course) -> None:
    grade(course)
    Store(course.results_folder).path(SET, "ada").write_text('{"student": "ada"')
    assert grade(course)["ada"] == (GRADED, True)


def test_nothing_is_written_by_halves(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    write_atomically(path, b"old")
    limit = "ulimit -f 1; "
    code = (
        f"from pathlib import Path; from autograder.files import write_atomically; import signal; "
        f"signal.signal(signal.SIGXFSZ, signal.SIG_IGN); write_atomically(Path({str(path)!r}), b'x' * 10_000)"
    )
    done = subprocess.run(["sh", "-c", f'{limit}{sys.executable} -c "{code}"'], capture_output=True, text=True)
    assert "File too large" in done.stderr
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["result.json"]


def test_a_full_disk_is_one_line_for_each_and_the_others_are_graded(course: Course) -> None:
    """A real file system that is too small for all results, in a mount namespace of its own."""
    results = course.results_folder
    results.mkdir()
    user = "" if os.getuid() == 0 else "-r"
    tiny = f"unshare -m {user} sh -c 'mount -t tmpfs -o size=20k tmpfs {results} && exec \"$@\"' sh "
    done = command(course, "grade", "--json", before=tiny)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "cannot be written" in line]
    assert 1 <= len(lines) <= 2 and all("No space left" in line for line in lines)
    rows = json.loads(done.stdout)
    assert [row["score"] for row in rows] == [rows[0]["points"]] * 3  # judged, and in the gradebook


def under_way(course: Course) -> subprocess.Popen:
    """`grade` in a session of its own, once three results are stored."""
    started = subprocess.Popen(
        [sys.executable, "-m", "autograder", "grade", "--jobs", "1"],
        cwd=course.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    while len(list((course.results_folder / SET).glob("*.json"))) < 3:
        assert started.poll() is None
        time.sleep(0.05)
    return started


def test_a_killed_run_goes_on_where_it_was(course: Course) -> None:
    for number in range(12):
        slow = GOOD_DOUBLE.replace("return", f"import time\n    time.sleep(0.3 + {number} * 0)\n    return")
        submit(course, f"many-{number:02d}", answered(**{**GOOD, "double": slow}))
    first = under_way(course)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    kept = {p.stem for p in (course.results_folder / SET).glob("*.json")}
    done = command(course, "grade", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["student"]: row for row in json.loads(done.stdout)}
    assert len(rows) == 15
    assert all(not rows[student]["ran"] for student in kept)
    assert all(row["score"] == row["points"] for row in rows.values())


def test_a_kill_of_the_command_alone_ends_its_workers_and_sandboxes(course: Course) -> None:
    slow = GOOD_DOUBLE.replace("return", "import time\n    time.sleep(8)\n    return")
    submit(course, "sleeper", answered(**{**GOOD, "double": slow}))
    first = under_way(course)
    started = psutil.Process(first.pid).children(recursive=True)
    assert any("zygote" in " ".join(p.cmdline()) for p in started)
    first.kill()
    first.wait()
    _, alive = psutil.wait_procs(started, timeout=5)
    for process in alive:
        process.kill()
    assert alive == []


def test_folders_that_are_no_set_are_named(course: Course) -> None:
    (course.root / "submitted" / "ada" / "ps99").mkdir()
    done = command(course, "grade")
    assert done.returncode == 0
    assert "'ps99' (handed in by 'ada') is no set of this course" in " ".join(done.stderr.split())


@pytest.mark.slow
def test_the_result_before_a_change_is_kept_for_the_report(course: Course) -> None:
    grade(course)
    store = Store(course.results_folder)
    assert store.before(SET) == {}, "nothing was replaced"
    grade(course, force=True)
    assert store.before(SET) == {}, "graded again, with the same score"
    submit(course, "bob", answered(**{**GOOD, "double": "def double(x):\n    return x"}))
    grade(course)
    before = store.before(SET)
    assert list(before) == ["bob"]
    assert before["bob"].auto_score > store.get(SET, "bob").auto_score
    done = command(course, "report")
    assert done.returncode == 0, done.stderr
    page = (course.report_folder / f"{SET}.html").read_text(encoding="utf-8")
    assert "Old and new scores" in page and "1 changed (0 up, 1 down)" in page
