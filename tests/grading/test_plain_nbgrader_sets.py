"""Sets written for nbgrader alone: stock nbgrader and this grader give a right, a wrong and an empty submission the
same points, or the set is refused with one line. Never is a cell judged weaker than nbgrader would without a word.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from plain_kinds import HIDDEN, Kind, returns
from plain_sets import FILES, FURTHER, answered, grade, notebook_of, points_in
from tiny_course import SET, make_course, marked_cell, submit, write_source

from autograder.checks import CheckFailed, compare
from autograder.course import Course
from autograder.judging.client import Client
from autograder.judging.reference import Judged
from autograder.judging.session import Outcome, run_test_cell
from autograder.judging.source import BadSource
from autograder.judging.transports import LocalTransport
from autograder.notebook.places import release_view
from autograder.release import release

STUBS = """
c.ClearSolutions.code_stub = {"python": "...  # your turn"}
c.ClearSolutions.text_stub = "Write here."
"""
STOCK = f"c = get_config()\nc.CourseDirectory.course_id = 'stock'\n{STUBS}"


KINDS = {
    "bare-asserts-under-the-mark": Kind(
        returns("double", "2 * x"),
        returns("double", "4"),
        "assert double(2) == 4\n" + HIDDEN.format("assert double(5) == 10, 'a further number'\nassert double(0) == 0"),
    ),
    "only-hidden": Kind(returns("half", "x / 2"), returns("half", "x"), HIDDEN.format("assert half(4) == 2")),
    "only-visible": Kind(
        returns("third", "x / 3"), returns("third", "2"), "assert third(6) == 2\nassert third(3) == 1"
    ),
    "hidden-first": Kind(
        returns("negative", "-x"),
        returns("negative", "-2"),
        HIDDEN.format("tried = [2, 3]") + "\nassert [negative(x) for x in tried] == [-2, -3]",
    ),
    "as-a-program": Kind(
        returns("square", "x * x"),
        returns("square", "2 * x"),
        "def try_it():\n    assert square(3) == 9\n\nif __name__ == '__main__':\n    try_it()",
    ),
    "hidden-program": Kind(
        returns("cube", "x ** 3"),
        returns("cube", "8"),
        "assert cube(2) == 8\n" + HIDDEN.format("if __name__ == '__main__':\n    assert cube(3) == 27"),
    ),
    "number-at-the-end": Kind(
        returns("is_even", "x % 2 == 0"),
        returns("is_even", "True"),
        HIDDEN.format("found = sum(is_even(x) == (x in (0, 2, 4, 6)) for x in range(8))") + "\nfound / 2",
        points=(4, 2, 0),
    ),
    "whole-number-at-the-end": Kind(
        returns("is_odd", "x % 2 == 1"),
        returns("is_odd", "x > 2"),
        "score = 1\nif is_odd(3):\n    score += 1\n" + HIDDEN.format("if is_odd(1):\n    score += 2\nscore"),
        points=(4, 2, 0),
    ),
    "no-number-at-the-end": Kind(
        returns("is_big", "x > 9"), returns("is_big", "False"), "is_big(10) == True", points=(4, 4, 0)
    ),
    "said-on-stderr": Kind(
        returns("is_small", "x < 9"),
        returns("is_small", "True"),
        "import sys\nif is_small(10):\n    print('10 is not small', file=sys.stderr)",
    ),
    "given-list": Kind("lengths.sort()", "del lengths", "assert lengths == [1, 2, 3]", "lengths = [3, 1, 2]"),
    "given-array": Kind(
        "grid[0] = 1",
        "grid[1] = 1",
        HIDDEN.format("assert grid[0].sum() == 2"),
        "import numpy as np\ngrid = np.zeros((3, 2))",
    ),
    "given-object": Kind(
        "account.pay(5)",
        "account.pay(4)",
        "assert account.balance == 5",
        "class Account:\n    balance = 0\n    def pay(self, x):\n        self.balance += x\n\naccount = Account()",
    ),
    "given-result": Kind(
        returns("one_more", "x + 1"), returns("one_more", "x"), "assert further == 7", after="further = one_more(6)"
    ),
    "given-loop": Kind(
        returns("times_ten", "10 * x"),
        returns("times_ten", "x"),
        "assert collected == [0, 10, 20]",
        "collected = []",
        "for number in range(3):\n    collected.append(times_ten(number))",
    ),
    "given-function": Kind(
        returns("step", "x + 2"),
        returns("step", "x"),
        "assert two_steps(1) == 5",
        "def two_steps(x):\n    return step(step(x))",
    ),
    "given-function-of-a-given-function": Kind(
        returns("inner", "x + 3"),
        returns("inner", "x"),
        "assert outer(1) == 4",
        "def outer(x):\n    return middle(x)\n\ndef middle(x):\n    return inner(x)",
    ),
    "given-function-of-given-data": Kind(
        "prices.append(5)",
        "prices.clear()",
        "assert sum_of_prices() == 8",
        "prices = [3]\ndef sum_of_prices():\n    return sum(prices)",
    ),
    "test-changes-given-data": Kind(
        returns("longest", "max(x, key=len)"),
        returns("longest", "x[0]"),
        "assert len(words) == 2\nwords.append('three')\nassert longest(words) == 'three'",
        "words = ['a', 'bb']",
    ),
    "further-keys": Kind(
        returns("counts", "{c: x.count(c) for c in sorted(set(x))}"),
        returns("counts", "{c: x.count(c) for c in 'abc'}"),
        HIDDEN.format(
            "from autograder.checks import check, compare\n\n@check('each letter', points=4)\ndef _():\n"
            "    compare(counts('aab'), {'a': 2, 'b': 1})"
        ),
    ),
    "assert-beside-a-check": Kind(
        returns("absolute", "abs(x)"),
        returns("absolute", "-x"),
        HIDDEN.format(
            "from autograder.checks import agrees, check\n\n@check('below zero', points=4)\ndef _():\n"
            "    agrees(absolute, -3)\n\nassert absolute(3) == 3"
        ),
    ),
    "second-test-of-an-answer": Kind(
        "def quotient(x):\n    return x // 3\n\ndef remainder(x):\n    return x % 3",
        "def quotient(x):\n    return x // 3\n\ndef remainder(x):\n    return x",
        "assert quotient(7) == 2",
        points=(4, 4, 0),
    ),
}
KINDS |= FURTHER
TESTS = {test: points for name, kind in KINDS.items() for test, (_, points) in kind.tests(name).items()}
REFUSED = [(name, text) for name, kind in KINDS.items() for text, _ in kind.tests(name, is_refused=True).values()]
ESSAY, CODE_BY_HAND = "why", "drawing"


def whole_notebook() -> nbformat.NotebookNode:
    notebook = notebook_of(KINDS)
    notebook.cells += [
        marked_cell("code", "assert remainder(7) == 1", "remainder-tests", grade=True, points=2),
        marked_cell("markdown", "Because.", ESSAY, grade=True, solution=True, points=3),
        marked_cell(
            "code",
            "### BEGIN SOLUTION\nprint('a tree')\n### END SOLUTION",
            CODE_BY_HAND,
            grade=True,
            solution=True,
            points=3,
        ),
    ]
    return notebook


def class_of(course: Course) -> None:
    """Two right submissions, so that the second meets what judging the first has left behind."""
    released = release_view(whole_notebook(), course.config)
    by_hand = {ESSAY: "So that it is.", CODE_BY_HAND: "print('a house')"}
    right = {name: kind.answer for name, kind in KINDS.items()} | by_hand
    wrong = {name: kind.wrong for name, kind in KINDS.items()} | by_hand
    for student, answers in {"1-right": right, "2-wrong": wrong, "3-empty": {}, "4-right": right}.items():
        submit(course, student, answered(released, answers))


def add_files(folder: Path) -> None:
    for name, data in FILES.items():
        path = folder / SET / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    folder = tmp_path_factory.mktemp("stock")
    (folder / "nbgrader_config.py").write_text(STOCK, encoding="utf-8")
    write_source(folder, whole_notebook(), "source")
    add_files(folder / "source")
    course = Course(folder)
    class_of(course)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by name
    for command in ("generate_assignment", "autograde"):
        arguments = [sys.executable, "-m", "nbgrader", command, SET, "--create"]
        done = subprocess.run(
            arguments, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr[-4000:]
    return points_in(course)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    course = make_course(tmp_path_factory.mktemp("ours"), more=STUBS)
    (course.source_folder / SET / "catalogue.py").unlink()
    write_source(course.root, whole_notebook())
    add_files(course.source_folder)
    class_of(course)
    grade(course)
    return points_in(course)


@pytest.mark.slow
@pytest.mark.parametrize("cell", TESTS)
def test_points_are_those_of_nbgrader(cell: str, stock: dict, ours: dict) -> None:
    right, wrong, empty = TESTS[cell]
    wanted = {"1-right": right, "2-wrong": wrong, "3-empty": empty, "4-right": right}
    assert {student: found[cell] for student, found in stock.items()} == wanted
    assert {student: found[cell] for student, found in ours.items()} == wanted


@pytest.mark.slow
@pytest.mark.parametrize("name", ["remainder-tests", ESSAY, CODE_BY_HAND])
def test_other_cells_have_the_points_of_nbgrader(name: str, stock: dict, ours: dict) -> None:
    """A second test of one answer; answers that a person marks, of which the course's stubs say what is untouched."""
    wanted = {student: found[name] for student, found in stock.items()}
    assert {student: found[name] for student, found in ours.items()} == wanted
    assert wanted["3-empty"] == 0 and wanted["1-right"] == (2 if name == "remainder-tests" else None)


# --- what cannot be judged rightly is refused ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "test"),
    [
        ("np.linalg.solve", "np.linalg.solve = None\nassert double(2) == 4"),
        ("np.linalg.solve", "kept = np.linalg.solve\ndel np.linalg.solve\nassert double(2) == 4"),
        ("math.sqrt", "import math\n" + HIDDEN.format("math.sqrt, root = None, math.sqrt\nassert double(2) == 4")),
        ("sys.modules['scipy']", "import sys\nsys.modules['scipy'] = None\nassert double(2) == 4"),
        ("setattr(np, 'sum', None)", "setattr(np, 'sum', None)\nassert double(2) == 4"),
        ("mock.patch('numpy.sum')", "from unittest import mock\nwith mock.patch('numpy.sum'):\n    double(2)"),
        ("doctest.testmod().failed == 0", "import doctest\nassert doctest.testmod().failed == 0"),
        ("unittest.main(exit=False)", "import unittest\nunittest.main(exit=False)"),
        ("patch.object(np, 'sum')", "from unittest.mock import patch\nwith patch.object(np, 'sum'):\n    double(2)"),
        ("first is second", "first, second = double(2), double(2)\nassert first is second"),
    ],
)
def test_what_is_true_only_in_a_students_process_is_refused(change: str, test: str) -> None:
    """A patched library would also stay patched in the process that judges the next submissions."""
    kind = Kind(returns("double", "2 * x"), returns("double", "4"), test, before="import numpy as np")
    with pytest.raises(BadSource, match=f"'double-tests' cannot be used: `{re.escape(change)}`"):
        Judged(notebook_of({"double": kind}))


@pytest.mark.parametrize(("name", "test"), REFUSED)
def test_what_copies_of_answers_do_not_tell_is_refused(name: str, test: str) -> None:
    """No cell gives points for what it was not asked: it is refused as it stands, or when the reference is judged."""
    kind = replace(KINDS[name], test=test, also=(), refused=())
    with pytest.raises(BadSource, match=f"'{name}-tests'"):
        source = Judged(notebook_of({name: kind}), files=FILES)
        source.reference_outcome(source.tests[f"{name}-tests"], 5, source.own_id)


def test_what_a_test_cell_makes_itself_it_may_change(tmp_path: Path) -> None:
    test = (
        "class Counter:\n    def __init__(self, start):\n        self.start = start\n\n"
        "counter = Counter(2)\ncounter.start = 3\ntable = {'a': 0}\ntable['a'] = double(counter.start)\n"
        "assert table['a'] == 6"
    )
    course = make_course(tmp_path)
    (course.source_folder / SET / "catalogue.py").unlink()
    write_source(course.root, notebook_of({"double": Kind(returns("double", "2 * x"), "", test)}))
    assert (release(course, SET) / f"{SET}.ipynb").exists()


def outcome(test: str, answer: str | None = None) -> Outcome:
    """What a test cell of 4 points says about a function `double`; the reference's without an `answer`."""
    source = Judged(notebook_of({"double": Kind(returns("double", "2 * x"), "", test)}))
    cell = source.tests["double-tests"]
    if answer is None:
        return source.reference_outcome(cell, 5, "")
    names: dict[str, object] = {}
    exec(returns("double", answer), names)
    return run_test_cell(cell, Client(LocalTransport(names)), source, 5)


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("assert double(2) == 4\n3", "3 of 4 points"),
        ("double(2) + 1", "5 of 4 points"),
        ("assert double(2) == 5", "`assert double\\(2\\) == 5` does not hold"),
    ],
)
def test_what_gives_the_reference_fewer_points_is_refused(test: str, said: str) -> None:
    with pytest.raises(BadSource, match=f"the reference solution fails its own test cell 'double-tests' .*{said}"):
        outcome(test)


@pytest.mark.parametrize(
    ("answer", "share"), [("2 * x", 1), ("x", 0.5), ("0 * x", 0), ("x ** 3", 0), ("-x", 1), ("'1'", 1)]
)
def test_a_number_at_the_end_is_the_points(answer: str, share: float) -> None:
    """nbgrader fails where it is more than there are; it takes a negative one, or what is no number, for all points."""
    assert outcome("double(2)", answer).share == share


@pytest.mark.parametrize("answer", [{"a": 1, "b": 2}, {"a": 1, "c": None}, {"b": 1}])
def test_further_entries_are_no_right_answer(answer: dict[str, int | None]) -> None:
    compare({"a": 1}, {"a": 1})
    with pytest.raises(CheckFailed):
        compare(answer, {"a": 1})


@pytest.mark.parametrize("line", ["### AUTOTEST double(2)", "### HASHED AUTOTEST double(2)"])
def test_tests_that_nbgrader_would_write_out_are_no_comments(line: str) -> None:
    with pytest.raises(BadSource, match="generate_assignment"):
        outcome(line)
