"""Sets written as text: read as the notebook they stand for, made into one for nbgrader, with set_checks.py beside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import pytest
from tiny_course import DOUBLE_TESTS, GOOD_DOUBLE, SET, answered, make_course, source_notebook, submit, write_source

from autograder.course import Course, CourseError
from autograder.grading.runner import Prepared, Settings
from autograder.judging.source import BadSource, Source
from autograder.judging.worker import run_job
from autograder.notebook.text_source import MADE_FROM, read_text
from autograder.release import ReleaseError, release
from autograder.results import FAILED, PASSED, Result

SHARED = '''"""What the hidden tests share."""

from autograder.checks import agrees


def all_shapes(function, rng, most_axes=3):
    for axes in range(most_axes):
        agrees(function, rng.normal(size=(2,) * axes))
'''
SHARING = DOUBLE_TESTS.replace("agrees(double, rng.normal(size=(3, 4)))", "all_shapes(double, rng)").replace(
    "import agrees, check\n", "import agrees, check\nfrom set_checks import all_shapes\n"
)


def as_text(notebook: nbformat.NotebookNode) -> str:
    """The notebook as a person would write it: only the marks that do not follow from others."""
    for cell in notebook.cells:
        if marks := cell.metadata.get("nbgrader"):
            kept = {"grade_id": marks["grade_id"]}
            kept |= {name: marks[name] for name in ("solution", "points") if marks.get(name)}
            cell.metadata = nbformat.NotebookNode(nbgrader=kept)
    return jupytext.writes(notebook, fmt="py:percent")


@pytest.fixture
def course(tmp_path: Path) -> Course:
    """The tiny course with its set as text, whose tests use set_checks.py."""
    made = make_course(tmp_path)
    notebook = source_notebook()
    next(c for c in notebook.cells if c.id == "double-tests").source = SHARING
    folder = made.source_folder / SET
    (folder / f"{SET}.ipynb").unlink()
    (folder / f"{SET}.py").write_text(as_text(notebook), encoding="utf-8")
    (folder / "set_checks.py").write_text(SHARED, encoding="utf-8")
    return Course(tmp_path)


def text_of(course: Course) -> Path:
    return course.source_folder / SET / f"{SET}.py"


def made_for_nbgrader(course: Course) -> Path:
    return text_of(course).with_suffix(".ipynb")


def released(course: Course) -> dict[str, bytes]:
    folder = course.root / "assignments" / SET
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


# --- reading ---------------------------------------------------------------------------------------------------------


def test_a_text_is_the_notebook_it_stands_for(tmp_path: Path) -> None:
    path = tmp_path / "set.py"
    path.write_text(as_text(source_notebook()), encoding="utf-8")
    assert read_text(path) == {**source_notebook(), "metadata": read_text(path).metadata}
    assert read_text(path).metadata.kernelspec.name == "python3"


def test_an_own_id_a_header_and_other_marks_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "set.py"
    path.write_text(
        "# ---\n# jupyter:\n#   autograder:\n#     cell_seconds: 5\n# ---\n\n"
        '# %% id="scratch"\n# try things here\n\n'
        '# %% [markdown] nbgrader={"grade_id": "why", "solution": true, "points": 2.5}\nr"""\n$\\alpha$\n"""\n\n'
        '# %% nbgrader={"grade_id": "all", "task": true, "points": 1, "locked": false}\n1\n',
        encoding="utf-8",
    )
    notebook = read_text(path)
    assert notebook.metadata.autograder.cell_seconds == 5
    scratch, why, task = notebook.cells
    assert (scratch.id, dict(scratch.metadata), scratch.source) == ("scratch", {}, "# try things here")
    assert why.source == "$\\alpha$" and why.metadata.nbgrader.grade and not why.metadata.nbgrader.locked
    assert not task.metadata.nbgrader.grade and not task.metadata.nbgrader.locked
    nbformat.validate(notebook)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# ---\n# jupyter:\n#   a: [\n# ---\n\n# %%\nstudent_id = 1\n", "has a header that cannot be read"),
        ("# %%\ndef (\n", r"is no Python \(line 2"),
        ('# %% nbgrader={"grade_id": "a"\nx = 1\n', "has a cell line that cannot be read"),
        ('# %% nbgrader={"points": 1}\nx = 1\n', 'needs "grade_id"'),
        ("# %% A title\nx = 1\n", "has a cell without nbgrader=.*begins 'x = 1'"),
        ('# %% nbgrader={"grade_id": "a"}\n1\n# %% nbgrader={"grade_id": "a"}\n2\n', "two cells called 'a'"),
    ],
)
def test_a_text_that_cannot_be_read_says_why_in_one_line(course: Course, text: str, said: str) -> None:
    text_of(course).write_text(text, encoding="utf-8")
    with pytest.raises(CourseError, match=f"{SET}.py.*{said}") as raised:
        course.set_files(SET)
    assert "\n" not in str(raised.value)


def test_no_utf8_is_said_too(course: Course) -> None:
    text_of(course).write_bytes(b"x = '\xff'\n")
    with pytest.raises(CourseError, match="cannot be read"):
        course.set_files(SET)


def test_two_sources_are_one_too_many(course: Course) -> None:
    made_for_nbgrader(course).write_text(nbformat.writes(source_notebook()), encoding="utf-8")
    with pytest.raises(CourseError, match=f"holds both {SET}.py and {SET}.ipynb"):
        course.set_files(SET)


# --- the notebook for nbgrader ---------------------------------------------------------------------------------------


def test_release_makes_the_same_of_a_text_as_of_a_notebook(course: Course, tmp_path: Path) -> None:
    release(course, SET)
    other = make_course(tmp_path / "other")
    notebook = source_notebook()
    notebook.metadata = course.set_files(SET).source.metadata
    write_source(other.root, notebook)
    release(other, SET)
    assert released(course) == released(other)
    assert course.set_files(SET).files.keys() == {"numbers.csv"}


def test_the_notebook_is_renewed_with_the_text_and_else_left_alone(course: Course) -> None:
    release(course, SET)
    path = made_for_nbgrader(course)
    first = nbformat.read(path, as_version=4).cells[0]
    assert first.id == MADE_FROM and f"{SET}.py" in first.source
    before = path.stat()
    release(Course(course.root), SET)
    assert path.stat().st_mtime_ns == before.st_mtime_ns and path.stat().st_ino == before.st_ino
    text_of(course).write_text(text_of(course).read_text().replace("# A tiny set", "# A small set"))
    release(Course(course.root), SET)
    assert "A small set" in path.read_text() and b"A small set" in released(course)[f"{SET}.ipynb"]
    assert not list(path.parent.glob(".part-*"))


def test_outputs_in_the_made_notebook_do_no_harm_but_an_edit_stops(course: Course) -> None:
    release(course, SET)
    path = made_for_nbgrader(course)
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="1\n")]
    nbformat.write(notebook, path)
    release(Course(course.root), SET)
    assert not nbformat.read(path, as_version=4).cells[2].outputs
    notebook.cells[5].source += "\n# one more line"
    nbformat.write(notebook, path)
    with pytest.raises(CourseError, match=f"{SET}.ipynb was edited, but it is made from {SET}.py"):
        Course(course.root).set_files(SET)
    assert "one more line" in path.read_text()


@pytest.mark.slow
def test_nbgraders_own_command_reads_the_text(course: Course) -> None:
    release(course, SET)
    ours = released(course)
    made_for_nbgrader(course).unlink()
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", SET, "--force"]
    done = subprocess.run(command, cwd=course.root, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = released(course)
    assert found.keys() == ours.keys() == {"numbers.csv", f"{SET}.ipynb"}
    notebook, as_ours = (json.loads(files[f"{SET}.ipynb"]) for files in (found, ours))
    assert [c["source"] for c in notebook["cells"]] == [c["source"] for c in as_ours["cells"]]
    assert MADE_FROM not in [c["id"] for c in notebook["cells"]]
    text_of(course).write_text("# %%\ndef (\n", encoding="utf-8")
    done = subprocess.run(command, cwd=course.root, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode != 0 and f"{SET}.py is no Python (line 2" in done.stderr


# --- what hidden tests share -----------------------------------------------------------------------------------------


def test_hidden_tests_use_what_they_share(course: Course) -> None:
    def verdicts(student: str, double: str) -> list[str]:
        folder = submit(course, student, answered(double=double))
        job = Prepared(course.set_files(SET), student, Settings(), seed=7).read(folder)
        result = Result.from_json(json.loads(run_job(job.to_bytes())))
        return [check.verdict for check in result.exercises[0].checks]

    assert verdicts("ada", GOOD_DOUBLE) == [PASSED] * 3
    assert verdicts("bob", "def double(x):\n    return 2 * x if np.ndim(x) < 2 else x") == [PASSED, FAILED, PASSED]


def test_shared_checks_are_private(course: Course) -> None:
    release(course, SET)
    assert not [name for name in released(course) if name.endswith(".py")]
    (course.source_folder / SET / "notes.txt").write_text(SHARED, encoding="utf-8")
    with pytest.raises(ReleaseError, match=r"holds a line of set_checks\.py"):
        release(Course(course.root), SET)


def test_they_are_part_of_the_version(course: Course) -> None:
    before = course.set_files(SET).version
    (course.source_folder / SET / "set_checks.py").write_text(SHARED + "\n\nMORE = 1\n", encoding="utf-8")
    assert Course(course.root).set_files(SET).version != before


def test_each_set_in_a_process_has_its_own() -> None:
    one, other = (Source(source_notebook(), name=f"set {n}", set_checks=f"NUMBER = {n}") for n in (1, 2))
    for source, number in ((one, 1), (other, 2), (one, 1)):
        source.share_checks()
        from set_checks import NUMBER

        assert number == NUMBER
    with pytest.raises(BadSource, match=r"set 3: set_checks\.py fails \(ZeroDivisionError"):
        Source(source_notebook(), name="set 3", set_checks="1 / 0").share_checks()
