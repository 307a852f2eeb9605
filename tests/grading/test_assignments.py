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
        assert (made / file).read_bytes() == (stored / file).read_bytes(), f"{file}: run `python -m autograder release`"


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


def test_nbgrader_validate_speaks_of_the_unsolved_tests() -> None:
    paths = [ROOT / "assignments" / name / f"{name}.ipynb" for name in SETS]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "validate", *paths],
        capture_output=True,
        text=True,
        env=environment,
        timeout=1000,
    )
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"VALIDATION FAILED ON \d+ CELL", done.stdout)) == len(SETS)
