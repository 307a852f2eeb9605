"""What checks may do beside comparing: figures, observations, methods, given classes on the student's side."""

import base64

import nbformat
import numpy as np
import pytest
from nbformat import v4

from autograder.figures import attention_beside
from autograder.judging.client import Client
from autograder.judging.reference import Judged
from autograder.judging.session import run_test_cell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import Catalogue, value_for

HELPERS = """import numpy as np

class Given:
    def __init__(self, value):
        self.value = value

    def ask(self):
        return self.value

flavour = student_id + "!"
"""
SOLUTION = """class Machine:
    def run(self, x):
        return 2 * x

def asked(given):
    return given.ask() + 1
"""
TESTS = """assert asked(Given(3)) == 4, "one more"
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, figure, observe, reference
from autograder.figures import attention_beside

def drawing():
    return attention_beside(np.eye(2), np.eye(2, dtype=bool), ["a", "b"])

@check("the machine", points=1)
def _(rng):
    observe("how many", 2)
    for _ in range(3):
        figure(drawing, "two maps")
    agrees(Machine().run, rng.normal(size=3), like=("run", reference.Machine().run))

@check("asked", points=1)
def _(rng):
    agrees(asked, Given(7), like=("asked", lambda given: 8))
### END HIDDEN TESTS"""


def notebook():
    def cell(text, name, **meta):
        made = v4.new_code_cell(text, id=name)
        kind = {"grade": False, "solution": False, "locked": False, **meta}
        made.metadata["nbgrader"] = {"schema_version": 3, "grade_id": name, "task": False, **kind}
        return made

    made = v4.new_notebook(metadata={"autograder": {"student_side": ["Given"]}})
    made.cells = [
        v4.new_code_cell('student_id = "..."', id="student-id"),
        cell(HELPERS, "helpers", locked=True),
        cell(SOLUTION, "machine", solution=True),
        cell(TESTS, "machine-tests", grade=True, locked=True, points=3),
    ]
    return made


@pytest.fixture(scope="module")
def source():
    return Judged.from_text(nbformat.writes(notebook()), "", "ps-test")


def outcome(source, draws, **changed):
    client = Client(LocalTransport({**source.reference, **changed}), call_seconds=60.0)
    return run_test_cell(source.tests["machine-tests"], client, source, 1, draws=draws)


def test_everything_right(source):
    found = outcome(source, draws=True)
    assert [c.verdict for c in found.checks] == ["passed"] * 3, found.checks
    assert [e.value for e in found.transcript if e.key == "observed how many"] == [2]
    assert len(found.figures) == 2, "further ones are dropped"
    assert found.figures[0]["alt"] == "two maps"
    assert base64.b64decode(found.figures[0]["png"]).startswith(b"\x89PNG")


def test_nothing_is_drawn_where_nobody_looks(source):
    assert outcome(source, draws=False).figures == []


def test_a_wrong_method_is_found(source):
    class Machine:
        def run(self, x):
            return 3 * x

    found = outcome(source, draws=False, Machine=Machine)
    assert [c.verdict for c in found.checks] == ["passed", "failed", "passed"]
    assert "`run`" in found.checks[1].reason


def test_pictures_take_any_numbers():
    attention_beside(np.full((1, 1), np.nan), np.zeros((1, 1), dtype=bool), ["a"])
    attention_beside(np.full((12, 12), 1 / 12), np.eye(12, dtype=bool), list("abcabcabcabc"), "long")


def test_variants_read_the_data_of_the_student_at_hand():
    names = {"student_id": "...", "flavour": "...!", "taste": lambda: "...!"}
    text = (
        "from autograder.catalogue import edited, right\n"
        '@right("taste")\ndef plain(suffix=""):\n    return flavour + suffix\n'
        'edited("taste", "fixed", "flavour", "own")\n'
    )
    cell = 'own = "mine"\n\ndef taste():\n    return flavour\n'
    plain, fixed = Catalogue(text, names, lambda name: cell, "ps-test").variants
    theirs = {**names, "flavour": "student-01!"}
    assert value_for(plain, names, "...") is plain.value
    assert value_for(plain, theirs, "student-01")(".") == "student-01!."
    assert value_for(fixed, {**theirs, "own": "another"}, "student-01")() == "mine", "what its own cell binds stays"
