"""The commands: help, clear errors in one line, exit codes, JSON."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from click import Group
from tiny_course import GOOD, SET, answered, make_course, source_notebook, submit, write_source

from autograder.cli import cli

ROOT = Path(__file__).parents[2]
COMMANDS = ("release", "collect", "grade", "mark", "feedback", "report", "export", "audit", "doctor")


def autograder(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "autograder", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str) -> None:
    done = autograder(command, "--help")
    assert done.returncode == 0
    assert "--course" in done.stdout


def one_line(done: subprocess.CompletedProcess) -> str:
    """The command failed with one line on stderr, without a traceback."""
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_no_course_folder(tmp_path: Path) -> None:
    assert "holds no nbgrader_config.py" in one_line(autograder("grade", "--course", str(tmp_path)))


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, autograder.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"distributed", "nbgrader", "numpy", "sqlalchemy", "torch"} & set(done.stdout.split())


def test_the_console_command_is_the_module() -> None:
    command = Path(sys.executable).with_name("autograder")
    done = subprocess.run([command, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: autograder ")
    assert done.stdout.partition("\n")[2] == autograder("--help").stdout.partition("\n")[2]


@pytest.mark.slow
def test_a_scheduler_without_its_extra_is_one_line() -> None:
    code = "import sys; sys.modules['distributed'] = None; from autograder.cli import cli; cli(sys.argv[1:])"
    command = [sys.executable, "-c", code, "grade", "--course", "examples", "--scheduler", "tcp://127.0.0.1:9"]
    line = one_line(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300))
    assert "--scheduler needs packages" in line and "pip install -e '.[cluster]'" in line


def test_unknown_set() -> None:
    line = one_line(autograder("grade", "--assignment", "ps99"))
    assert "no set 'ps99'" in line
    assert "ps2-self-attention" in line


def test_unknown_student() -> None:
    line = one_line(autograder("grade", "--course", "examples", "-a", "ps2-self-attention", "-s", "nobody"))
    assert "'nobody' has handed in nothing" in line
    assert "'nobody' has handed in nothing" in one_line(autograder("grade", "--course", "examples", "-s", "nobody"))


@pytest.mark.slow
def test_a_students_sets_are_graded_whatever_the_student_has_not_handed_in(tmp_path: Path) -> None:
    course, notebook = make_course(tmp_path), source_notebook()
    tests = next(cell for cell in notebook.cells if cell.id == "double-tests")
    tests.source = "assert student_id\n" + tests.source
    write_source(tmp_path, notebook)
    other = course.root / "source_solutions" / "other"
    shutil.copytree(other.parent / SET, other)
    (other / f"{SET}.ipynb").rename(other / "other.ipynb")
    submit(course, "ada", answered(student_id='student_id = "bob"', **GOOD))
    for name in ("other", SET):
        folder = course.root / "submitted" / "bob" / name
        folder.mkdir(parents=True)
        (folder / f"{name}.ipynb").write_text(nbformat.writes(answered(**GOOD)))
    done = autograder("grade", "-s", "ada", cwd=course.root)
    assert done.returncode == 0, done.stderr
    assert f"{SET}: 1 submission" in done.stdout and "other" not in done.stdout
    assert "typed the id 'bob'" in " ".join(done.stdout.split())
    line = one_line(autograder("grade", "-a", "other", "-s", "ada", cwd=course.root))
    assert "'ada' has handed in nothing for other" in line


def test_broken_configuration(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text("c = get_config(\n")
    assert "cannot be read: SyntaxError" in one_line(autograder("report", cwd=tmp_path))


def test_doctor_says_what_works() -> None:
    done = autograder("doctor", "--json")
    findings = {f["what"]: f for f in json.loads(done.stdout)}
    assert done.returncode == 0, findings
    assert {"Python", "torch", "bubblewrap", "sandbox", "gradebook", "course"} <= findings.keys()
    assert "ms for each submission" in findings["sandbox"]["said"]


def test_doctor_and_grade_without_bubblewrap(tmp_path: Path) -> None:
    """A PATH and an environment without bwrap: said in one line, nothing is graded unconfined."""
    hidden = {"PATH": str(tmp_path), "AUTOGRADER_BWRAP": str(tmp_path / "none")}
    done = autograder("doctor", "--json", **hidden)
    findings = {f["what"]: f for f in json.loads(done.stdout)}
    assert done.returncode != 0
    assert "apt-get install bubblewrap" in findings["bubblewrap"]["mend"]
    line = one_line(autograder("grade", "-s", "student-01", "--force", cwd=ROOT / "examples", **hidden))
    assert "bubblewrap is missing" in line and "--sandbox none" in line


def test_every_command_of_the_instructors_guide_is_one() -> None:
    text = (ROOT / "book" / "instructors-guide.md").read_text(encoding="utf-8")
    lines = re.findall(r"^autograder (\w+)(.*?)(?:#.*)?$", text, re.MULTILINE)
    assert {name for name, _ in lines} >= set(cli.commands), "each command has its place in the term"
    for name, rest in lines:
        command = cli.commands[name]
        if isinstance(command, Group):
            command = command.commands[rest.split()[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert set(re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)) <= options, f"{name} {rest}"
