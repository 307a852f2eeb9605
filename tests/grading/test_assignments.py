"""What students get is what `release` makes, gives nothing away, and works with numpy, torch and matplotlib alone."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.course import Course
from autograder.release import release

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
SETS = COURSE.set_names()
PRIVATE = re.compile(r"BEGIN (SOLUTION|HIDDEN|MARK)|autograder|misconception|[Rr]ubric|[Mm]odel answer|\breference\.")
ALLOWED = {"numpy", "torch", "matplotlib"} | set(sys.stdlib_module_names)


def released(name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "assignments" / name / f"{name}.ipynb", as_version=4)


def test_every_set_is_released_and_nothing_else() -> None:
    assert sorted(p.name for p in (ROOT / "assignments").iterdir()) == SETS


@pytest.mark.parametrize("name", SETS)
def test_it_is_what_release_makes(name: str, tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text(
        f"load_subconfig({str(ROOT / 'nbgrader_config.py')!r})\n"
        f"get_config().CourseDirectory.source_directory = {str(ROOT / 'source_solutions')!r}\n"
    )
    made = release(Course(tmp_path), name)
    stored = ROOT / "assignments" / name
    files = sorted(p.relative_to(made) for p in made.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(stored) for p in stored.rglob("*") if p.is_file())
    for file in files:
        assert (made / file).read_bytes() == (stored / file).read_bytes(), f"{file}: run `autograder release`"


@pytest.mark.parametrize("name", SETS)
def test_it_gives_nothing_away(name: str) -> None:
    for cell in released(name).cells:
        found = PRIVATE.search(cell.source)
        assert found is None, f"the cell {cell.id} holds {found[0]!r}"
    for private in ("catalogue*", "set_checks*", f"{name}.py"):
        assert not list((ROOT / "assignments" / name).rglob(private))
    source = COURSE.set_files(name).source
    text = json.dumps(released(name))
    for cell in source.cells:
        if cell.metadata.get("nbgrader", {}).get("solution") and cell.cell_type == "markdown":
            assert json.dumps(cell.source.split("\n")[0])[1:-1] not in text


@pytest.mark.parametrize("name", SETS)
def test_it_needs_only_numpy_torch_and_matplotlib(name: str) -> None:
    for cell in released(name).cells:
        if cell.cell_type != "code":
            continue
        for node in ast.walk(ast.parse(cell.source)):
            modules = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert {m.split(".")[0] for m in modules} <= ALLOWED


@pytest.mark.parametrize("name", SETS)
def test_it_opens_with_the_id_and_has_20_to_45_points(name: str) -> None:
    cells = released(name).cells
    first = next(c for c in cells if c.cell_type == "code")
    assert re.search(r'^student_id = "\.\.\."$', first.source, re.MULTILINE)
    assert 20 <= sum(c.metadata.nbgrader.points for c in cells if c.metadata.get("nbgrader", {}).get("grade")) <= 45


NUMBERS = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5}
EFFORT = re.compile(r"^\*Difficulty [●○]{5} · importance [●○]{5} · about (\d+) minutes\*$", re.M)


@pytest.mark.parametrize("name", SETS)
def test_each_exercise_says_what_it_takes_and_has_hints_in_steps(name: str) -> None:
    text = "\n".join(cell.source for cell in released(name).cells if cell.cell_type == "markdown")
    introduction, *exercises = re.split(r"^## Exercise \d+: ", text, flags=re.M)
    minutes = 0
    for exercise in exercises:
        effort = EFFORT.search(exercise.split("\n\n")[1])
        assert effort, f"{exercise[:40]!r} does not say what it takes"
        minutes += int(effort[1])
        assert "<details><summary>Hint 2</summary>\n\n" in exercise, f"{exercise[:40]!r} has no hints"
    assert text.count("<details>") == text.count("\n\n</details>")
    planned = re.search(r"Plan\s(\w+)(?:\sto\s(\w+))?\shours?\.", introduction)
    low, high = NUMBERS[planned[1]], NUMBERS[planned[2] or planned[1]]
    assert 0.9 * low <= minutes / 60 <= 1.1 * high, f"{minutes} minutes, where {planned[0]!r} is said"


def test_run_all_goes_on_after_an_error_and_ends_with_where_one_stands() -> None:
    notebook = released("ps0-warm-up")
    answers = {
        "softmax": "e = np.exp(z - z.max(axis=axis, keepdims=True))\n    return e / e.sum(axis=axis, keepdims=True)"
    }
    answers["weighted_average"] = "return values"
    for function, answer in answers.items():
        cell = next(cell for cell in notebook.cells if f"def {function}(" in cell.source)
        cell.source = cell.source.replace("# YOUR CODE HERE\n    raise NotImplementedError()", answer)
    start = next(cell for cell in notebook.cells if cell.id == "ps0-progress")
    again = nbformat.v4.new_code_cell(start.source)  # run twice, it counts each error all the same
    notebook.cells.insert(notebook.cells.index(start), again)
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    said = [line.split()[0] for line in notebook.cells[-1].outputs[0].text.splitlines()]
    assert said == ["passes", "fails", "empty", "empty", "Examples:", "Is", "Type"]


def test_the_cells_that_keep_where_one_stands_are_the_same_in_all_sets() -> None:
    for part in ("progress", "summary"):
        found = {cell.source for name in SETS for cell in released(name).cells if cell.id.endswith(f"-{part}")}
        assert len(found) == 1
    for name in SETS:
        tests = [
            c.source
            for c in released(name).cells
            if c.cell_type == "code" and c.metadata.get("nbgrader", {}).get("grade")
        ]
        assert all(re.match(r"# Examples of exercise \d+: \w+\n", source) for source in tests)
        assert released(name).cells[-1].source == "where_you_stand()"


@pytest.mark.slow
def test_nbgrader_validate_speaks_of_the_unsolved_tests() -> None:
    some = SETS[0], SETS[-1]
    paths = [ROOT / "assignments" / name / f"{name}.ipynb" for name in some]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "validate", *paths],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1000,
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"VALIDATION FAILED ON \d+ CELL", done.stdout)) == len(some)
