"""The final project: tasks whose floors lie below the baseline, the check of its form, its release, and the records."""

from __future__ import annotations

import json
import re
import secrets
import shutil
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest
from click.testing import CliRunner
from read_page import Page
from test_feedback_hostile import HOSTILE

from autograder.cli import cli
from autograder.course import Course, CourseError
from autograder.grading.store import Store
from autograder.html.report import write_records
from autograder.lms.records import FILE, read_records
from autograder.release import release

ROOT = Path(__file__).resolve().parents[2] / "project"
SOURCE = ROOT / "source_solutions" / "final-project"
sys.path[:0] = [str(ROOT), str(SOURCE)]

import measure  # noqa: E402
import tasks  # noqa: E402
from check_form import what_is_missing  # noqa: E402


def complete():
    held_back = tasks.HeldBack(np.zeros((3, 2)), np.zeros(3))
    held_back.open()
    scores = [0.9, 0.92, 0.88, 0.91]
    return {
        "task": "Six pairs go in, and one value comes out.",
        "seeds": [0, 1, 2, 3],
        "floor": 0.25,
        "baseline": [0.33, 0.34, 0.33, 0.35],
        "model": scores,
        "spread": np.std(scores, ddof=1),
        "parameters": 260,
        "held_back": held_back,
        "limits": ["Nothing is shown about longer rows of pairs.", "Only one kind of noise has been tried here."],
    }


@pytest.mark.parametrize("name", tasks.TASKS)
def test_floors_are_below_the_baseline_whatever_the_seed(name):
    for _ in range(3):
        seed = secrets.randbits(32)
        data = tasks.TASKS[name](seed)
        reached, parameters = tasks.baseline(name, data)
        assert all(floor < reached - 0.02 for floor in data.floors.values()), (seed, data.floors, reached)
        assert parameters > 0 and reached < 0.95, "there is room above the baseline"
        assert data.held_back.opened == 0


@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_seed_gives_the_same_data_and_no_input_stands_twice(name):
    seed = secrets.randbits(32)
    one, again, other = (tasks.TASKS[name](s) for s in (seed, seed, seed + 1))
    parts = [one.train, one.choose, one.held_back.open()]
    for mine, same in zip(parts, [again.train, again.choose, again.held_back.open()], strict=True):
        assert np.array_equal(mine[0], same[0]) and np.array_equal(mine[1], same[1])
        assert set(np.unique(mine[1])) == set(range(one.classes))
    assert not np.array_equal(one.train[0], other.train[0])
    rows = np.concatenate([inputs for inputs, _ in parts])
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_the_answers_follow_from_the_inputs():
    inputs, answers = tasks.recall(secrets.randbits(32)).train
    beside = (inputs[:, 0:-1:2] == inputs[:, -1:]).argmax(1)
    assert np.array_equal(inputs[np.arange(len(inputs)), 1 + 2 * beside] - 10, answers)
    inputs, answers = tasks.agreement(secrets.randbits(32)).train
    for row, answer in zip(inputs.tolist(), answers.tolist(), strict=True):
        words = row[row.index(tasks.COMMA) + 1 :] if tasks.COMMA in row else row
        assert answer == (next(word for word in words if word < len(tasks.NOUNS)) >= len(tasks.SINGULAR))


def test_the_table_of_the_brief_is_what_is_measured():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"^\| `(\w+)` \| ([^|]+) \| (\d+) \| ([\d.]+) ", text, re.MULTILINE)
    said = {(task, rule): (int(size), float(mean)) for task, rule, size, mean in lines}
    found = {(name, r): (size, s.mean()) for name in tasks.TASKS for r, size, s in measure.measured(name, range(10))}
    assert said.keys() == found.keys()
    for line, (size, mean) in found.items():
        assert said[line][0] == size and said[line][1] == pytest.approx(mean, abs=0.005), line
    listed = {task: records[0] for task, records in read_records(ROOT / FILE).items()}
    assert listed == {task: (*said[task, "baseline"], "the baseline") for task in tasks.TASKS}


def test_a_complete_form_lacks_nothing():
    assert what_is_missing(complete()) == []


CHANGES = [
    ("task", "recall"),
    ("seeds", [0, 1, 2]),
    ("seeds", [5, 5, 5, 5]),
    ("floor", None),
    ("baseline", [0.3]),
    ("model", [0.9, 0.9, float("nan"), 0.9]),
    ("spread", 0.5),
    ("spread", "small"),
    ("parameters", 2.5),
    ("parameters", True),
    ("held_back", None),
    ("held_back", tasks.HeldBack(0, 0)),
    ("limits", "None."),
    ("limits", ["It is fine.", "It is fine."]),
]


@pytest.mark.parametrize(("name", "value"), CHANGES)
def test_what_is_missing_is_said_in_one_line(name, value):
    for report in ({**complete(), name: value}, {k: v for k, v in complete().items() if k != name}):
        missing = what_is_missing(report)
        assert any(line.startswith(f"{name}: ") for line in missing)
        assert all("\n" not in line for line in missing)


def test_a_second_look_at_held_back_data_is_seen_and_an_empty_report_is_no_error():
    report = complete()
    report["held_back"].open()
    assert what_is_missing(report) == [
        "held_back: open the held-back data once in a run of all cells; it was opened 2 times"
    ]
    assert len(what_is_missing({})) >= 8 and len(what_is_missing(None)) == 1


def a_course(folder: Path) -> Path:
    """A copy of the project's course folder, with nothing in it but the set."""
    course = folder / "project"
    shutil.copytree(SOURCE, course / "source_solutions" / "final-project", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT.parent / "nbgrader_config.py", folder)
    shutil.copy(ROOT / "nbgrader_config.py", course)
    return course


def test_what_students_get_is_that_of_the_source_and_the_brief_has_its_criteria(tmp_path):
    folder = release(Course(a_course(tmp_path)), "final-project")
    released = ROOT / "assignments" / "final-project"
    names = {path.name for path in folder.iterdir()}
    assert names == {"final-project.ipynb", "tasks.py", "check_form.py"} == {path.name for path in released.iterdir()}
    for name in names:
        assert (folder / name).read_bytes() == (released / name).read_bytes(), "run `autograder release` in project/"
    notebook = nbformat.read(folder / "final-project.ipynb", as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells)
    brief = (ROOT / "README.md").read_text(encoding="utf-8")
    criteria = re.findall(r"\*\*Criterion (\d+), (\w+)\.\*\*", text)
    assert criteria == re.findall(r"^\| (\d+) \| (\w+) \|", brief, re.MULTILINE) and len(criteria) == 10
    marked = [c.metadata.nbgrader for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert [mark.points for mark in marked] == [2] * 5 and all(mark.solution for mark in marked)


DATA = """
data = tasks.order(seed=3)
report["task"] = "A noisy series goes in, and which bump came first comes out."
report["seeds"] = [0, 1, 2, 3]
report["floor"] = max(data.floors.values())
report["baseline"] = [tasks.baseline("order", data)[0]] * 4
report["held_back"] = data.held_back
"""
MODEL = "report['parameters'] = 1"
RESULTS = """
inputs, answers = data.held_back.open()
guesses = [np.random.default_rng(seed).integers(2, size=len(answers)) for seed in report["seeds"]]
report["model"] = [tasks.score(guess, answers) for guess in guesses]
report["spread"] = np.std(report["model"], ddof=1)
"""
LIMITS = "report['limits'] = ['Nothing is shown about anything but coins.', 'A coin of another make was not tried.']"


def test_a_project_is_run_and_waits_for_five_marks(tmp_path):
    """The worked example in the source needs PyTorch and more time; this one guesses."""
    course = Course(a_course(tmp_path))
    notebook = nbformat.read(ROOT / "assignments" / "final-project" / "final-project.ipynb", as_version=4)
    cells = {cell.id: cell for cell in notebook.cells}
    cells["student-id"].source = 'student_id = "ada"'
    written = {"task-code": DATA, "design-code": MODEL, "results-code": RESULTS, "limits-code": LIMITS}
    for name in ("task", "design", "results", "explanation", "limits"):
        cells[f"project-{name}-code"].source = written.get(f"{name}-code", "pass")
        cells[f"project-{name}"].source = "It is what it is."
    folder = course.step_folder("submitted", "ada", "final-project")
    folder.mkdir(parents=True)
    nbformat.write(notebook, folder / "final-project.ipynb")
    ran = CliRunner().invoke(cli, ["grade", "--course", str(course.root), "-j", "1"])
    assert ran.exit_code == 0, ran.output
    result = Store(course.results_folder).get("final-project", "ada")
    assert result.status == "graded" and result.events == []
    assert [(e.kind, e.score, e.points) for e in result.exercises] == [("written", None, 2)] * 5
    assert "The form is complete." in json.dumps(result.notebook["cells"][-1]["outputs"])


def records(folder: Path, text: str) -> Path:
    (folder / FILE).write_text(text, encoding="utf-8")
    return folder / FILE


def test_records_are_the_smallest_models_that_reach_a_score(tmp_path):
    path = records(
        tmp_path,
        "task,score,parameters,name\nrecall,0.9,300,b\nrecall,0.9,260,\nrecall,0.5,280,c\norder,0.8,4,d\nrecall,1,900,e\n",
    )
    assert read_records(path) == {
        "order": [(4, 0.8, "d")],
        "recall": [(260, 0.9, "anonymous"), (900, 1.0, "e")],
    }


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("recall,0.9,many,a", "parameters"),
        ("recall,0.9,-3,a", "parameters"),
        ("recall,0.9,٣,a", "parameters"),
        ("recall,90 %,3,a", "score"),
        ("recall,nan,3,a", "score"),
        ("recall,1.5,3,a", "score"),
        (",0.9,3,a", "task"),
        (f"recall,0.9,3,{'a' * 100}", "name"),
    ],
)
def test_a_bad_line_is_named_with_its_column(tmp_path, line, column):
    path = records(tmp_path, f"task,score,parameters,name\norder,0.5,4,x\n{line}\n")
    with pytest.raises(CourseError, match=rf"^records.csv, line 3, column '{column}': '.*' is \S") as error:
        read_records(path)
    assert "\n" not in str(error.value)
    with pytest.raises(CourseError, match="no column 'score'"):
        read_records(records(tmp_path, "task,parameters,name\norder,4,x\n"))


def test_names_are_text_on_the_page(tmp_path):
    listed = {
        text[:60]: [(3, 0.5, text[:60])] for text in (*HOSTILE, "<script>alert(1)</script>", "<img src=x onerror=a>")
    }
    page = write_records(listed, tmp_path, "<b>A course</b>").read_text(encoding="utf-8")
    tags = [tag for tag, _ in Page(page).tags]
    assert tags.count("script") == 1 and "img" not in tags and "b" not in tags
    assert "<script>alert(1)</script>" in Page(page).text


def test_the_command_publishes_them_only_where_the_file_is(tmp_path):
    (tmp_path / "nbgrader_config.py").write_bytes((ROOT.parent / "nbgrader_config.py").read_bytes())
    (tmp_path / "source_solutions").mkdir()
    page = tmp_path / "report" / "records" / "index.html"
    ran = CliRunner().invoke(cli, ["report", "--course", str(tmp_path)])
    assert ran.exit_code == 0 and not page.exists()
    records(tmp_path, "task,score,parameters,name\nrecall,0.9,260,somebody\n")
    ran = CliRunner().invoke(cli, ["report", "--course", str(tmp_path)])
    assert ran.exit_code == 0 and "somebody" in page.read_text(encoding="utf-8")
