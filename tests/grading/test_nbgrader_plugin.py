"""nbgrader with the engine in it: a real course, a real gradebook, the real sandbox."""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from pathlib import Path

import nbformat
import pytest
from nbconvert.exporters import HTMLExporter
from nbgrader.api import Gradebook
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.server_extensions.formgrader import handlers
from tiny_course import CATALOGUE, GOOD, GOOD_DOUBLE, SET, answered, make_course, source_notebook, submit, write_source
from traitlets.config import Config

from autograder import nbgrader_plugin
from autograder.course import Course
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.reader import scores
from autograder.gradebook.writer import write
from autograder.grading import runner as engine
from autograder.grading.runner import Settings, grade_set
from autograder.grading.store import Store
from autograder.notebook.reader import MAX_BYTES
from autograder.notebook.rebuild import Rebuilt, rebuild
from autograder.release import ReleaseError, release

SQUARES = "def double(x):\n    return np.asarray(x) ** 2"
LIAR = """class Liar(int):
    def __eq__(self, other):
        return True
    def __hash__(self):
        return 1
def double(x):
    return Liar(7)"""
EVIL = "<script>alert('gotcha')</script> <img src=x onerror=\"alert('gotcha')\"> [link](javascript:alert('gotcha'))"


def hand_in(course: Course) -> dict[str, float | None]:
    """A class as it is; returns the points by tests of each (None: not graded)."""
    good = answered(**GOOD)
    submit(course, "good", good, timestamp="2026-01-02 03:04:05 UTC")
    submit(course, "squares", answered(**{**GOOD, "double": SQUARES}))
    submit(course, "renamed", good, f"{SET} (1).ipynb")
    submit(course, "extension", good, f"{SET}.ipynb.txt")
    submit(course, "bom", b"\xef\xbb\xbf" + json.dumps(good).replace('"# A tiny set"', '"# A tiny\0 set"').encode())
    copied = answered(**GOOD)
    copied.cells.insert(5, copied.cells[4].copy())
    submit(course, "copied", copied)
    stripped = answered(**GOOD)
    for cell in stripped.cells:
        cell.metadata = nbformat.NotebookNode()
    submit(course, "stripped", stripped)
    skipped = answered(double="def double(x):\n    return 4")
    for cell in skipped.cells:
        cell.metadata["tags"] = ["skip-execution"]
    submit(course, "skipped", skipped)
    submit(course, "liar", answered(double=LIAR))
    submit(course, "dead", answered(**{**GOOD, "quadruple": "import os\nos._exit(1)"}))
    submit(course, "noisy", answered(**{**GOOD, "double": "import sys\nprint('!', file=sys.stderr)\n" + GOOD_DOUBLE}))
    submit(course, "evil", answered(**{**GOOD, "why": EVIL}))
    submit(course, "stamped", good, timestamp="when I was done")
    submit(course, "empty", None)
    submit(course, "pdf", b"%PDF-1.7")
    submit(course, "huge", b" " * (MAX_BYTES + 1))
    ids = "good renamed extension bom copied stripped noisy evil stamped"
    return {
        **dict.fromkeys(ids.split(), 5.0),
        **{"squares": 2.0, "skipped": 1.0, "liar": 0.0, "dead": 4.0},
        **dict.fromkeys(["empty", "pdf", "huge"], None),
    }


def auto(course: Course) -> dict[str, dict[str, float | None]]:
    """Automatic scores by student and cell."""
    return {
        student: {name: c.auto for name, c in found.cells.items() if c.max_score is not None}
        for student, found in scores(course, SET).items()
    }


def by_tests(course: Course) -> dict[str, float | None]:
    found = auto(course)
    tests = {s: [v for name, v in cells.items() if name.endswith("-tests")] for s, cells in found.items()}
    return {s: None if None in values else sum(values) for s, values in tests.items()}


class Here(Executor):
    """Runs jobs in this process, so that the tests share one warm sandbox."""

    def submit(self, fn, /, *args):
        future = Future()
        try:
            future.set_result(fn(*args))
        except BaseException as error:
            future.set_exception(error)
        return future


def grade(course: Course) -> None:
    """What `python -m autograder grade` does."""
    store = Store(course.results_folder)
    ensure_assignment(course, course.set_files(SET))
    write(course, [p.result for p in grade_set(course, store, SET, Settings(), make_executor=Here)])


def nbgrader(course: Course, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nbgrader", *arguments]
    return subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=600)


def api(course: Course) -> NbGraderAPI:
    """nbgrader's API as a program or formgrader makes it, from the course's configuration."""
    config = Course(course.root).config
    return NbGraderAPI(CourseDirectory(config=config), config=config)


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Course, Course, dict, str]]:
    """The class graded twice: by `nbgrader autograde` in a process of its own, and by the engine."""
    course = make_course(tmp_path_factory.mktemp("nbgrader") / "course")
    expected = hand_in(course)
    other = tmp_path_factory.mktemp("engine") / "course"
    shutil.copytree(course.root, other)
    done = nbgrader(course, "autograde", SET)
    assert done.returncode == 0, done.stderr[-4000:]
    twin = Course(other)
    grade(twin)
    yield course, twin, expected, done.stderr


# --- autograding -----------------------------------------------------------------------------------------------------


def test_nbgrader_gives_the_scores_of_the_engine(graded: tuple) -> None:
    course, twin, expected, _ = graded
    assert by_tests(course) == expected
    assert auto(course) == auto(twin)


def test_everything_else_is_the_same_too(graded: tuple) -> None:
    course, twin, _, _ = graded
    mine, theirs = scores(course, SET), scores(twin, SET)
    assert mine == theirs
    assert all(c.needs_manual for c in mine["pdf"].cells.values() if c.max_score is not None)
    assert "PDF" in mine["pdf"].cells["why"].auto_comment
    for student in ("good", "pdf", "empty", "copied"):
        a, b = (c.root / "autograded" / student / SET for c in (course, twin))
        assert sorted(p.name for p in a.iterdir()) == sorted(p.name for p in b.iterdir())
        nbformat.read(a / f"{SET}.ipynb", 4)
    assert (course.root / "autograded" / "good" / SET / "timestamp.txt").exists()


def test_nothing_in_the_submitted_folder_is_touched(graded: tuple) -> None:
    course, _, _, _ = graded
    assert [p.name for p in (course.root / "submitted" / "renamed" / SET).iterdir()] == [f"{SET} (1).ipynb"]


def test_the_log_has_a_line_for_what_is_odd_and_no_traceback(graded: tuple) -> None:
    _, _, _, log = graded
    assert "Traceback" not in log
    assert "stamped: timestamp.txt holds no date ('when I was done')" in log


def test_no_hidden_test_stands_in_what_nbgrader_wrote(graded: tuple) -> None:
    course, _, _, log = graded
    for path in (course.root / "autograded").rglob("*.ipynb"):
        text = path.read_text()
        assert "HIDDEN" not in text and "rng.normal" not in text and "twice_the_value_of_x" not in text, path
    assert "rng.normal" not in log


def test_the_api_takes_stored_results_and_grades_what_changed(graded: tuple, tmp_path: Path) -> None:
    shutil.copytree(graded[0].root, tmp_path / "course")
    course = Course(tmp_path / "course")
    stored = {path: path.read_bytes() for path in (course.results_folder / SET).glob("*.json")}
    for student in ("renamed", "extension", "pdf", "empty", "good"):
        assert api(course).autograde(SET, student)["success"], student
    assert {path: path.read_bytes() for path in stored} == stored, "stored results are reused"
    submit(course, "good", answered(**{**GOOD, "double": SQUARES}))
    done = api(course).autograde(SET, "good")
    assert done["success"], done
    assert [path.stem for path in stored if path.read_bytes() != stored[path]] == ["good"]
    assert by_tests(course)["good"] == 2.0


def test_marks_survive_formgraders_button(graded: tuple, tmp_path: Path) -> None:
    shutil.copytree(graded[0].root, tmp_path / "course")
    course = Course(tmp_path / "course")
    with Gradebook(course.db_url) as book:
        mark = book.find_grade("why", SET, SET, "good")
        mark.manual_score, mark.needs_manual_grade = 1.5, False
        book.find_comment("why", SET, SET, "good").manual_comment = "Nearly."
        book.db.commit()
    assert api(course).autograde(SET, "good")["success"]
    why = scores(course, SET)["good"].cells["why"]
    assert (why.manual, why.comment, why.needs_manual) == (1.5, "Nearly.", False)


def test_formgrader_lists_the_whole_class(graded: tuple) -> None:
    course, _, expected, _ = graded
    listed = {s["student"]: s for s in api(course).get_submissions(SET)}
    assert listed.keys() == expected.keys()
    assert all(s["autograded"] for s in listed.values())
    assert listed["good"]["score"] == 5.0 and listed["pdf"]["needs_manual_grade"]


def test_who_has_nbgraders_converter_already_gets_the_same(graded: tuple, tmp_path: Path) -> None:
    """A program that imported it before the configuration was read, and makes it itself."""
    shutil.copytree(graded[0].root, tmp_path / "course")
    course = Course(tmp_path / "course")
    shutil.rmtree(course.root / "autograded")
    config = course.config
    for student in ("renamed", "bom", "copied", "squares", "pdf"):
        config.CourseDirectory.assignment_id, config.CourseDirectory.student_id = SET, student
        Autograde(coursedir=CourseDirectory(config=config), config=config).start()
        assert (course.root / "autograded" / student / SET / f"{SET}.ipynb").exists()
    assert auto(course) == auto(graded[0])


# --- what stops a run ------------------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return make_course(tmp_path / "course")


def autograde(course: Course, caplog: pytest.LogCaptureFixture, student: str = "*") -> tuple[bool, list[str]]:
    """Whether it went well, and what was logged as errors."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        done = api(course).autograde(SET, student)
    errors = [line for line in done["log"].splitlines() if "ERROR" in line]
    assert "Traceback" not in done["log"], done["log"]
    return done["success"], errors


def test_a_refused_sandbox_stops_the_run_with_one_line(
    course: Course, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for student in ("ada", "bob"):
        submit(course, student, answered(**GOOD))
    monkeypatch.setenv("AUTOGRADER_BWRAP", "/nowhere/bwrap")
    success, errors = autograde(course, caplog)
    assert not success
    assert len(errors) == 1 and "bubblewrap is missing" in errors[0]
    assert scores(course, SET) == {}


def test_a_fault_of_the_grader_costs_one_submission(
    course: Course, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def faulty(places: list, notebook: nbformat.NotebookNode) -> Rebuilt:
        if any("nine" in cell.source for cell in notebook.cells):
            raise ZeroDivisionError("oops")
        return rebuild(places, notebook)

    submit(course, "ada", answered(**{**GOOD, "why": "nine"}))
    submit(course, "bob", answered(**GOOD))
    with monkeypatch.context() as patch:
        patch.setattr(engine, "rebuild", faulty)
        success, errors = autograde(course, caplog)
    assert not success
    assert any("ada: the grader itself failed (ZeroDivisionError: oops)" in e for e in errors)
    assert by_tests(course) == {"ada": None, "bob": 5.0}
    assert autograde(course, caplog) == (True, [])
    assert by_tests(course) == {"ada": 5.0, "bob": 5.0}


@pytest.mark.slow
def test_an_answer_that_hangs_or_ends_a_worker_costs_one_submission(course: Course) -> None:
    """No exception reaches `sum`. The program that asks, as formgrader's server does, is none of the judging's own."""
    source = source_notebook()
    source.cells[5].source = source.cells[5].source.replace(
        "    agrees(double, -rng.uniform(1, 2, size=3))",
        """    import os
    from autograder.judging.judge import watch
    number = int(double(3))
    if number == 10**9:
        os._exit(1)
    if number > 10**9:
        watch(2.0)  # this test need not wait for as long as a class does
    sum(range(number))""",
    )
    assert "watch(2.0)" in source.cells[5].source
    write_source(course.root, source)
    course = Course(course.root)
    submit(course, "ada", answered(**GOOD))
    submit(course, "bob", answered(**{**GOOD, "double": "def double(x):\n    return 10**15"}))
    submit(course, "dan", answered(**{**GOOD, "double": "def double(x):\n    return 10**9"}))
    submit(course, "eve", answered(**GOOD))
    code = f"""
from pathlib import Path
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory
from autograder.course import Course
config = Course(Path()).config
done = NbGraderAPI(CourseDirectory(config=config), config=config).autograde({SET!r}, "*")
print(done["success"], done["log"])"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=course.root, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("False")
    assert "bob: the grader's own process hung on these answers" in done.stdout
    assert "dan: the grader's own process died twice while it judged this submission" in done.stdout
    assert by_tests(course) == {"ada": 5.0, "bob": None, "dan": None, "eve": 5.0}
    for student in ("bob", "dan"):
        assert not Store(course.results_folder).get(SET, student).key, "no verdict: it is judged again the next time"


def test_a_complete_run_ends_its_seed(course: Course, caplog: pytest.LogCaptureFixture) -> None:
    store = Store(course.results_folder)
    seeds = []
    for why in ("First.", "Second."):
        submit(course, "ada", answered(**{**GOOD, "why": why}))
        assert autograde(course, caplog) == (True, [])
        seeds.append(store.get(SET, "ada").seed)
    assert seeds[0] != seeds[1], "a second attempt meets other inputs"


def test_an_unknown_set_and_a_faulty_one_are_one_line(course: Course, caplog: pytest.LogCaptureFixture) -> None:
    folder = submit(course, "ada", answered(**GOOD))
    shutil.copytree(folder, folder.parent / "ps7")
    done = api(course).autograde("ps7", "ada")
    assert not done["success"] and f"there is no set 'ps7'; the sets are {SET}" in done["log"]
    source = source_notebook()
    source.cells[2].source += "\nnumbers = np.load('nowhere.npy')"
    write_source(course.root, source)
    success, errors = autograde(course, caplog)
    assert not success and len(errors) == 1
    assert f"{SET}: the source notebook's cell 'tiny-helpers' fails (FileNotFoundError" in errors[0]


@pytest.mark.slow
def test_courses_without_configure_keep_nbgraders_converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbgrader_plugin.configure(Config())
    folder = tmp_path / "submitted" / "ada" / SET
    folder.mkdir(parents=True)
    nbformat.write(source_notebook(), folder / f"{SET}.ipynb")
    converter = Autograde(coursedir=CourseDirectory(root=str(tmp_path), assignment_id=SET))
    assert next(p.__name__ for p in converter.sanitize_preprocessors) == "ClearOutput"
    converted = []
    monkeypatch.setattr(Autograde, "init_assignment", lambda self, name, student: converted.append((name, student)))
    with pytest.raises(NbGraderException):
        converter.start()
    assert converted == [(SET, "ada")]


def test_configure_again_changes_nothing() -> None:
    c = Config()
    c.CourseDirectory.ignore = ["*.bak"]
    nbgrader_plugin.configure(c)
    once = json.dumps(c)
    nbgrader_plugin.configure(c)
    assert json.dumps(c) == once
    assert c.CourseDirectory.ignore == ["*.bak", "catalogue.py", "set_checks.py"]


# --- formgrader's page -----------------------------------------------------------------------------------------------


def test_formgrader_shows_no_html_of_a_student(graded: tuple) -> None:
    course, _, _, _ = graded
    config = Course(course.root).config
    config.HTMLExporter.template_name = "formgrade"  # as FormgradeExtension.build_extra_config
    config.HTMLExporter.extra_template_basedirs = [handlers.template_path]
    exporter = HTMLExporter(config=config)
    resources = {
        "submission_id": "1",
        "notebook_id": SET,
        "assignment_id": SET,
        "index": 0,
        "total": 1,
        "base_url": "",
        "student": "evil",
        "last_name": "",
        "first_name": "",
        "notebook_path": "",
    }
    html, _ = exporter.from_filename(
        str(course.root / "autograded" / "evil" / SET / f"{SET}.ipynb"), resources=resources
    )
    assert "gotcha" in html, "the answer is shown"
    assert "<script>alert" not in html and '<img src="x"' not in html and "<img src=x" not in html
    assert 'href="javascript' not in html
    assert 'id="why"' in html, "there is a box for the score"


# --- release ---------------------------------------------------------------------------------------------------------


def test_release_gives_the_same_bytes_and_nothing_private(course: Course) -> None:
    folder = release(course, SET)
    assert folder == course.root / "assignments" / SET
    assert sorted(p.name for p in folder.iterdir()) == ["numbers.csv", f"{SET}.ipynb"]
    first = (folder / f"{SET}.ipynb").read_bytes()
    for secret in (b"SOLUTION", b"HIDDEN", b"Rubric", b"twice_the_value_of_x", b"squares", b"rng.normal"):
        assert secret not in first
    assert b"YOUR ANSWER HERE" in first and b"raise NotImplementedError" in first
    (folder / "old.csv").write_text("1")
    (folder / f"{SET}.ipynb").unlink()
    release(Course(course.root), SET)
    assert (folder / f"{SET}.ipynb").read_bytes() == first
    assert not (folder / "old.csv").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("notes.py", CATALOGUE, None),
        ("notes.txt", "    twice_the_value_of_x = np.asarray(x) + np.asarray(x)\n", "a line of the solution 'double'"),
        ("notes.txt", "Rubric: 2 points for naming addition.\n", "a line of the model answer or rubric 'why'"),
        ("sub/notes.txt", "### BEGIN HIDDEN TESTS\n", "'HIDDEN TESTS'"),
        ("sub/catalogue.py", CATALOGUE, None),
        ("other.ipynb", nbformat.writes(nbformat.v4.new_notebook()), "one notebook"),
    ],
)
def test_release_lets_nothing_private_out(course: Course, name: str, content: str, said: str | None) -> None:
    release(course, SET)
    before = {p: p.read_bytes() for p in (course.root / "assignments").rglob("*") if p.is_file()}
    path = course.source_folder / SET / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    course = Course(course.root)
    if said is None:
        release(course, SET)
        assert not list((course.root / "assignments").rglob("catalogue.py"))
        return
    with pytest.raises(ReleaseError, match=f"{SET} is not released: .*{said}"):
        release(course, SET)
    assert {p: p.read_bytes() for p in before} == before, "what was released before stays"


def test_release_names_the_fault_of_a_source(course: Course) -> None:
    source = source_notebook()
    source.cells[4].source = source.cells[4].source.replace("    ### END SOLUTION", "")
    write_source(course.root, source)
    with pytest.raises(ReleaseError, match=f"{SET} is not released: no end solution statement found") as raised:
        release(Course(course.root), SET)
    assert "\n" not in str(raised.value)
    assert not (course.root / "assignments" / SET).exists()
    data = json.loads(nbformat.writes(source_notebook()))
    del data["cells"][3]["id"]
    (course.source_folder / SET / f"{SET}.ipynb").write_text(json.dumps(data))
    with pytest.raises(ReleaseError, match="cell 4 of the source has no id"):
        release(Course(course.root), SET)
