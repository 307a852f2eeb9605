"""Near-identical code is found through renaming; ways of writing that many share are not reported."""

from __future__ import annotations

import random
import re
import time

import pytest

from autograder.html.similarity import code_of, near_identical, runs
from autograder.results import GRADED, UNREADABLE, Result

USUAL = """def softmax(z, axis=-1):
    shifted = z - z.max(axis=axis, keepdims=True)
    powers = np.exp(shifted)
    return powers / powers.sum(axis=axis, keepdims=True)
"""
RELEASED = "def softmax(z, axis=-1):\n    raise NotImplementedError()\n"


def own_code(seed: int) -> str:
    """A long answer that nobody else writes like this."""
    rng = random.Random(seed)
    lines = ["def worked_out(a, b, c):"]
    for n in range(30):
        x, y, z = rng.sample(["a", "b", "c", "a.T", "b[0]", "np.exp(c)", "(a - b)", "c.sum()", "[a, b]"], 3)
        lines.append(f"    v{n} = {x} {rng.choice('+-*/@')} {y} {rng.choice('+-*/@')} {z} if {y} is not {x} else {z}")
    return "\n".join([*lines, "    return v0, v29"])


def renamed(code: str) -> str:
    """The same with other names, numbers, comments and blank lines."""
    code = re.sub(r"\bv(\d+)", r"value_\1", code).replace("worked_out", "mine")
    return "# all my own work\n" + code.replace("\n", "  # yes\n\n")


def submission(student: str, *codes: str, status: str = GRADED) -> Result:
    solution = {"nbgrader": {"solution": True, "grade": False, "locked": False, "grade_id": "x"}}
    test = {"nbgrader": {"solution": False, "grade": True, "locked": True, "grade_id": "t"}}
    cells = [{"cell_type": "code", "metadata": solution, "source": code} for code in codes]
    cells.append({"cell_type": "code", "metadata": test, "source": own_code(99)})
    cells.append({"cell_type": "markdown", "metadata": {}, "source": own_code(98)})
    return Result(student, "ps", "k", status=status, notebook={"cells": cells})


def test_a_renamed_copy_is_found_and_nobody_else() -> None:
    results = [submission(f"s{n:02d}", USUAL, own_code(n)) for n in range(20)]
    results.append(submission("copyist", renamed(USUAL), renamed(own_code(7))))
    (pair,) = near_identical(results, [RELEASED])
    assert {pair.one, pair.other} == {"s07", "copyist"}
    assert pair.share > 0.9 and pair.runs >= 200


def test_half_a_copy_is_not_near_identical() -> None:
    results = [submission(f"s{n:02d}", own_code(n)) for n in range(10)]
    half = "\n".join(own_code(3).split("\n")[:15] + own_code(50).split("\n")[1:])
    assert near_identical([*results, submission("half", half)]) == []


def test_what_most_of_the_class_writes_tells_nothing() -> None:
    everybody = own_code(1)
    assert near_identical([submission(f"s{n}", everybody) for n in range(12)]) == []


def test_the_released_text_tells_nothing() -> None:
    results = [submission(f"s{n}", own_code(1) if n < 2 else own_code(n)) for n in range(12)]
    assert len(near_identical(results)) == 1
    assert near_identical(results, [own_code(1)]) == []


@pytest.mark.parametrize("code", ["def f(:\n  return ((", "\x00\x01", "%%bash\nrm -rf x", "'''never closed", "é = 'ü'"])
def test_any_text_is_read(code: str) -> None:
    list(runs([code * 20]))
    assert near_identical([submission("a", code), submission("b", code), submission("c", own_code(1))]) == []


@pytest.mark.parametrize("flood", ["(", "a ", 'f"{', "@", "{", "a."])
def test_a_flood_of_code_costs_little_and_hides_no_copy(flood: str) -> None:
    results = [submission(f"s{n:02d}", own_code(n)) for n in range(10)]
    copyist = submission("copyist", renamed(own_code(7)))
    copyist.notebook["cells"].insert(0, {"cell_type": "code", "metadata": {}, "source": flood * 700_000})
    start = time.process_time()
    (pair,) = near_identical([*results, copyist])
    assert {pair.one, pair.other} == {"s07", "copyist"}
    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    "padding",
    ["#" * 300_000, "# a line\n" * 40_000, '"""' + "text " * 60_000 + '"""', "\n" * 300_000, "'x" + " y" * 200_000],
)
def test_what_tells_nothing_hides_nothing_however_long_it_is(padding: str) -> None:
    results = [submission(f"s{n:02d}", own_code(n)) for n in range(10)]
    (pair,) = near_identical([*results, submission("copyist", padding + "\n" + renamed(own_code(7)))])
    assert {pair.one, pair.other} == {"s07", "copyist"}


@pytest.mark.parametrize("start", ['"""', "'''", "%%html\n<p>'''", "f('"])
def test_a_cell_that_is_never_closed_hides_no_other(start: str) -> None:
    results = [submission(f"s{n:02d}", own_code(n)) for n in range(10)]
    (pair,) = near_identical([*results, submission("copyist", start, renamed(own_code(7)))])
    assert {pair.one, pair.other} == {"s07", "copyist"}


def test_only_graded_submissions_and_no_empty_ones_are_compared() -> None:
    unreadable = Result("u", "ps", "k", status=UNREADABLE)
    assert near_identical([]) == []
    assert near_identical([unreadable, submission("a", own_code(1)), submission("b", "")]) == []
    assert code_of(submission("a", "x = 1", "y = 2").notebook) == ["x = 1", "y = 2"]
