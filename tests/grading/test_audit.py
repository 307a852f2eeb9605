"""The audit finds what is wrong with a set: tiny sets, each broken in one way."""

import json
import textwrap
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.audit.audit import audit_set
from autograder.audit.mutants import mutants_of
from autograder.audit.report import AuditReport, Breach, print_table
from autograder.console import out
from autograder.course import Course

SHIFT = '''
def centred(x):
    """The array without its mean."""
    ### BEGIN SOLUTION
    middle = x.mean(axis=-1, keepdims=True)
    return x - middle
    ### END SOLUTION
'''
SHIFT_TESTS = """
assert np.allclose(centred(np.array([1.0, 2.0, 6.0])), [-2, -1, 3]), "1, 2, 6 have the mean 3."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("rows of any number", points=18)
def _(rng):
    agrees(centred, rng.normal(size=(3, 4)))
    agrees(centred, rng.normal(size=(2, 3, 5)))
### END HIDDEN TESTS
"""
CHOICE = """
### BEGIN SOLUTION
answer = "b"
### END SOLUTION
"""
CHOICE_TESTS = """
# The answer is one letter.
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, reference


@check("the right letter")
def _():
    compare(answer, reference.answer)
### END HIDDEN TESTS
"""
CATALOGUE = """
from autograder.catalogue import edited, right, wrong


@wrong("centred", says="You subtract the mean of all entries.")
def mean_of_everything(x):
    return x - x.mean()


edited("centred", "added", "x - middle", "x + middle", says="You add the mean.")


@wrong("answer", says="That is the other one.")
def letter_a(student_id):
    return "a"


@right("centred")
def by_matrix(x):
    n = x.shape[-1]
    return x @ (np.eye(n) - np.ones((n, n)) / n)


@right("answer")
def letter_b(student_id):
    return "b"
"""
MODEL_ANSWER = "**Model answer.** Because.\n\n**Rubric** (1 point)\n\n- **1 point**: says because."


def meta(grade_id, grade=False, solution=False, points=None):
    data = {"grade": grade, "solution": solution, "locked": not solution, "schema_version": 3, "task": False}
    return {"nbgrader": {**data, "grade_id": grade_id, **({"points": points} if points is not None else {})}}


class Sets:
    """Writes sets into a course folder and audits them."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "nbgrader_config.py").write_text(
            "c = get_config()\nc.CourseDirectory.source_directory = 'source'\n"
            "c.CourseDirectory.ignore = ['catalogue.py', '__pycache__']\n"
        )

    def write(self, exercises, catalogue=CATALOGUE, answer=MODEL_ANSWER, helpers="import numpy as np"):
        """`exercises`: (grade_id, solution cell, test cell, points)."""
        cells = [new_markdown_cell("# A tiny set", id="intro", metadata=meta("intro"))]
        cells.append(new_code_cell('student_id = "..."', id="student-id"))
        cells.append(new_code_cell(helpers, id="helpers", metadata=meta("helpers")))
        for grade_id, solution, tests, points in exercises:
            cells.append(new_code_cell(solution.strip(), id=grade_id, metadata=meta(grade_id, solution=True)))
            data = meta(f"{grade_id}-tests", grade=True, points=points)
            cells.append(new_code_cell(tests.strip(), id=f"{grade_id}-tests", metadata=data))
        cells.append(new_markdown_cell(answer, id="why", metadata=meta("why", grade=True, solution=True, points=1)))
        folder = self.folder / "source" / "tiny"
        folder.mkdir(parents=True, exist_ok=True)
        nbformat.write(new_notebook(cells=cells), folder / "tiny.ipynb")
        (folder / "catalogue.py").write_text(catalogue)

    def audit(self, exercises=None, seeds=6, quick=True, **more) -> AuditReport:
        self.write(exercises or self.good(), **more)
        return audit_set(Course(self.folder), "tiny", seeds=seeds, quick=quick)

    @staticmethod
    def good():
        return [("shift", SHIFT, SHIFT_TESTS, 19), ("choice", CHOICE, CHOICE_TESTS, 1)]


@pytest.fixture
def sets(tmp_path):
    return Sets(tmp_path)


def breaches(report, kind):
    return [b.text for b in report.breaches if b.kind == kind]


def only(report, kind):
    """The texts of the breaches, all of one kind."""
    assert {b.kind for b in report.breaches} == {kind}, report.breaches
    return breaches(report, kind)


# ------------------------------------------------------------------------------------------- whole audits


def test_good_set_is_green(sets):
    report = sets.audit()
    assert report.ok, report.breaches
    assert report.points == 21 and report.reference_full and report.flaky == 0
    assert (report.total("right_full"), report.total("caught"), report.total("named")) == (2, 3, 3)
    assert report.total("mutants") == report.total("killed") > 5
    assert report.total("trivial") == report.total("trivial_zero") == 9 + 3
    assert report.seconds_per_submission is None
    noticed = {(c.exercise, c.name): (c.refused, c.alone, c.mutants) for c in report.checks}
    assert len(noticed) == report.total("checks")
    assert sum(mutants for *_, mutants in noticed.values()) == report.total("killed")
    data = json.loads(json.dumps(report.to_json()))
    assert data["ok"] is True and data["exercises"][0]["grade_id"] == "shift-tests"


def test_good_set_is_green_in_the_sandbox(sets):
    report = sets.audit(quick=False, seeds=2)
    assert report.ok, report.breaches
    assert (report.total("right_full"), report.total("caught"), report.total("named")) == (2, 3, 3)
    assert 0 < report.seconds_per_submission < 60


@pytest.mark.parametrize("quick", [True, False])
def test_a_check_that_notices_nothing_is_seen(sets, quick):
    """A check that says of every answer that it is an answer decides about none."""
    idle = "@check('is there', points=0)\ndef _():\n    assert centred is not None\n### END HIDDEN TESTS"
    tests = SHIFT_TESTS.replace("### END HIDDEN TESTS", idle)
    report = sets.audit([("shift", SHIFT, tests, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], quick=quick, seeds=1)
    (check,) = [c for c in report.checks if c.name == "is there"]
    assert (check.alone, check.mutants) == (0, 0)
    others = [c for c in report.checks if c.exercise == "shift-tests" and c is not check]
    assert any(c.refused for c in others) and any(c.mutants for c in others)


def test_table_shows_what_was_found(sets):
    good = sets.audit(seeds=1)
    bad = sets.audit(answer="Because.", seeds=1)
    bad.breaches.append(Breach("naming", "[why]", "a name like :smile: or [red]"))
    with out.capture() as text:
        print_table([good, bad])
    shown = text.get()
    assert "none" in shown and "breach (source) why: this written question has no rubric" in shown
    assert "breach (naming) [why]: a name like :smile: or [red]" in shown


def test_broken_reference_is_the_only_breach(sets):
    wrong = SHIFT.replace("x - middle", "x + middle")
    report = sets.audit([("shift", wrong, SHIFT_TESTS, 20)], catalogue="")
    assert any("'the examples in the notebook': 1, 2, 6 have the mean 3." in t for t in breaches(report, "reference"))
    assert not report.reference_full and report.total("mutants") == 0


def test_source_that_does_not_run_is_a_breach(sets):
    assert "division by zero" in only(sets.audit(helpers="import numpy as np\n1 / 0"), "source")[0]


def test_catalogue_that_does_not_run_is_a_breach(sets):
    assert "catalogue.py fails" in only(sets.audit(catalogue="nonsense"), "source")[0]


# ------------------------------------------------------------------------------------------ kinds of breach


WEAK_TESTS = SHIFT_TESTS.replace("(3, 4)", "(1, 4)").replace("(2, 3, 5)", "(5,)")


def test_checks_that_ask_too_little_leave_survivors(sets):
    report = sets.audit([("shift", SHIFT, WEAK_TESTS, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], seeds=1)
    old, new = "middle = x.mean(axis=-1, keepdims=True)", "middle = x.mean(keepdims=True)"
    assert (old, new, "") in {(s.old, s.new, s.why) for s in report.survivors}
    assert f"no test notices line 4: {old} → {new}" in breaches(report, "mutant")
    assert any(t.startswith("only ") for t in breaches(report, "mutant"))
    assert report.total("killed") < report.total("mutants")


def test_explained_survivor_is_accepted(sets):
    same = SHIFT.replace("x.mean(axis=-1, keepdims=True)", "x.mean(axis=-1, keepdims=True) * max(len(x), 1) / len(x)")
    exercises = [("shift", same, SHIFT_TESTS, 19), ("choice", CHOICE, CHOICE_TESTS, 1)]
    found = {(s.old, s.new) for s in sets.audit(exercises, seeds=1).survivors}
    assert any("max(len(x), 0)" in new for _, new in found)
    why = 'survivor("centred", "max(len(x), 1)", "max( len(x) ,0)", why="No axis has length 0.")\n'
    head = CATALOGUE.replace("import edited", "import edited, survivor")
    report = sets.audit(exercises, catalogue=head + why, seeds=1)
    explained = [s for s in report.survivors if s.why]
    assert explained and all("max(len(x), 0)" in s.new for s in explained)
    assert report.total("explained") == len(explained)
    assert not any("max(len(x), 0)" in text for text in breaches(report, "mutant"))


def test_explanation_without_survivor_is_a_breach(sets):
    why = 'survivor("centred", "keepdims=True", "keepdims=False", why="It never mattered.")\n'
    report = sets.audit(catalogue=CATALOGUE.replace("import edited", "import edited, survivor") + why, seeds=1)
    assert only(report, "mutant") == [
        "no survivor of 'centred' turns 'keepdims=True' into 'keepdims=False': drop that line"
    ]


def test_flaky_check_is_found(sets):
    flaky = SHIFT_TESTS.replace("def _(rng):", "def _(rng):\n    assert rng.random() < 0.8, 'bad luck'")
    report = sets.audit([("shift", SHIFT, flaky, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], seeds=40)
    found = [t for t in breaches(report, "seeds") if t.startswith("the reference: ")]
    assert found and "bad luck" in found[0]
    assert report.flaky > 0


def test_missed_misconception_is_a_breach(sets):
    report = sets.audit([("shift", SHIFT, WEAK_TESTS, 19), ("choice", CHOICE, CHOICE_TESTS, 1)])
    assert breaches(report, "wrong variant") == ["mean_of_everything gets full marks"]
    assert report.total("caught") == 2
    assert any(t.startswith("mean_of_everything: with 6 seeds") for t in breaches(report, "seeds"))


def test_misconception_that_cannot_be_told_from_another_is_counted(sets):
    twin = '\n\n@wrong("centred", says="The same again.")\ndef doubled(x):\n    return x - x.mean()\n'
    report = sets.audit(catalogue=CATALOGUE + twin, seeds=1)
    assert report.unnamed == ["doubled: named as mean_of_everything"]
    assert only(report, "naming") == ["only 3 of 4 misconceptions are named first (at least 95%)"]


def test_right_variant_without_full_marks_is_a_breach(sets):
    strict = SHIFT_TESTS.replace("def _(rng):", "def _(rng):\n    assert centred(np.ones(1)).dtype == np.float64")
    variant = (
        '\n\n@right("centred")\ndef in_single(x):\n    return (x - x.mean(axis=-1, keepdims=True)).astype(np.float32)\n'
    )
    report = sets.audit(
        [("shift", SHIFT, strict, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], catalogue=CATALOGUE + variant
    )
    assert any(t.startswith("in_single does not get full marks: 'rows of") for t in breaches(report, "right variant"))


def test_trivial_answer_that_scores_is_a_breach(sets):
    kind = SHIFT_TESTS.replace("points=18", "points=17").replace(
        "### END",
        '\n@check("the mean is nought")\ndef _(rng):\n'
        "    assert abs(np.mean(centred(rng.normal(size=5)))) < 1e-9\n### END",
    )
    report = sets.audit([("shift", SHIFT, kind, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], seeds=1)
    assert only(report, "trivial") == ["zeros of the right shape passes 'the mean is nought'"]


SCALED = '''
def scaled(x):
    """Twice the array without its mean."""
    ### BEGIN SOLUTION
    return 2.0 * (x - x.mean())
    ### END SOLUTION
'''
PROPERTIES = """
# No examples here.
### BEGIN HIDDEN TESTS
from autograder.checks import check


@check("the mean")
def _(rng):
    assert not abs(np.mean(scaled(rng.normal(size=5)))) > 1e-9


@check("larger for larger")
def _(rng):
    x = rng.normal(size=5)
    assert np.ptp(scaled(3 * x)) > np.ptp(scaled(x))


@check("the same when shifted")
def _(rng):
    x = rng.normal(size=5)
    assert np.allclose(scaled(x), scaled(x + 1)) and np.ptp(scaled(x)) > 0.1


@check("the sum")
def _(rng):
    found = scaled(rng.normal(size=5))
    assert abs(found.sum()) < 1e-9 < 0.1 < np.ptp(found)
### END HIDDEN TESTS
"""


def test_hostile_answers_that_score_are_breaches(sets):
    exercises = [*sets.good(), ("scaled", SCALED, PROPERTIES, 4)]
    found = breaches(sets.audit(exercises, seeds=1), "trivial")
    for hole in (
        "NaN of the right shape passes 'the mean'",
        "what was given, in the right shape passes 'larger for larger'",
        "an earlier answer of the right shape passes 'the same when shifted'",
        "what a function of an earlier cell answers passes 'the mean', 'larger for larger', 'the same when shifted', "
        "'the sum'",
    ):
        assert hole in found


def test_trivial_data_that_scores_is_a_breach(sets):
    easy = CHOICE_TESTS.replace("compare(answer, reference.answer)", "assert answer != 'a'")
    report = sets.audit([("shift", SHIFT, SHIFT_TESTS, 19), ("choice", CHOICE, easy, 1)], seeds=1)
    assert set(breaches(report, "trivial")) == {
        "None passes 'the right letter'",
        "an empty string passes 'the right letter'",
    }


def test_disorder_in_the_source_is_found(sets):
    twice = SHIFT_TESTS.replace(
        "### END", '\n@check("rows of any number")\ndef _(rng):\n    agrees(centred, np.ones(2))\n### END'
    )
    only_examples = "assert answer == 'b'"
    report = sets.audit(
        [("shift", SHIFT, twice, 36), ("choice", CHOICE, only_examples, 12)],
        catalogue=CATALOGUE.split("@wrong")[0] + '@right("np")\ndef nothing(student_id):\n    return 1\n',
        answer="Because.",
        seeds=1,
    )
    found = breaches(report, "source")
    for part in (
        "two checks are called 'rows of any number'",
        "the cell has 36 points, but its checks make 20",
        "there is no hidden check",
        "the set has 49 points, not 20 to 45",
        "no misconception is catalogued",
        "which no test cell judges",
        "no rubric",
    ):
        assert any(part in text for text in found), (part, found)


def test_variant_that_needs_names_outside_the_notebook_fails_in_the_sandbox(sets):
    helped = "\n\nONE = 1\n\n\n" + textwrap.dedent("""
        @right("centred")
        def with_a_constant(x):
            return ONE * (x - x.mean(axis=-1, keepdims=True))
    """)
    report = sets.audit(catalogue=CATALOGUE + helped, quick=False, seeds=1)
    assert "name 'ONE' is not defined" in only(report, "right variant")[0]


@pytest.mark.slow
def test_exercise_that_falls_with_another_is_found_in_the_sandbox(sets):
    scaled = 'def scaled(x):\n    """x"""\n    ### BEGIN SOLUTION\n    return 2.0 * centred(x)\n    ### END SOLUTION\n'
    tests = SHIFT_TESTS.replace("centred", "scaled").replace("[-2, -1, 3]", "[-4, -2, 6]")
    exercises = [("shift", SHIFT, SHIFT_TESTS, 19), ("scaled", scaled, tests, 19)]
    catalogue = CATALOGUE.split('@wrong("answer"')[0] + (
        '\n\n@wrong("scaled", says="Twice means two.")\ndef thrice(x):\n    return 3 * centred(x)\n'
    )
    report = sets.audit(exercises, catalogue=catalogue, quick=False, seeds=1)
    assert len(only(report, "independence")) == 2
    uses = tests.replace("import agrees, check", 'import agrees, check, uses\n\nuses("centred")')
    report = sets.audit([exercises[0], ("scaled", scaled, uses, 19)], catalogue=catalogue, quick=False, seeds=1)
    assert report.ok, report.breaches


MODULE = '''
class Doubler(torch.nn.Module):
    """Twice the input."""

    ### BEGIN SOLUTION
    def __init__(self, width):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.full((width,), 2.0))

    def forward(self, x):
        return self.factor * x
    ### END SOLUTION
'''
MODULE_TESTS = """
# No examples here.
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare


@check("twice", points=10)
def _(rng):
    x = torch.tensor(rng.normal(size=(2, 3)), dtype=torch.float32)
    compare(Doubler(3)(x), 2 * x)


@check("any output", points=10)
def _(rng):
    Doubler(3)(torch.ones(3))
### END HIDDEN TESTS
"""


def test_trivial_classes(sets):
    catalogue = 'from autograder.catalogue import edited\nedited("Doubler", "thrice", "2.0", "3.0", says="No.")\n'
    report = sets.audit([("module", MODULE, MODULE_TESTS, 20)], catalogue=catalogue, seeds=1, helpers="import torch")
    trivial = breaches(report, "trivial")
    assert sorted(t.split(" passes ")[0] for t in trivial) == [
        "NaN of the right shape",
        "None",
        "an earlier answer of the right shape",
        "an empty string",
        "the first argument",
        "what a function of an earlier cell answers",
        "what was given, in the right shape",
        "zeros of the right shape",
    ]
    assert all(t.endswith("passes 'any output'") for t in trivial)
    assert not breaches(report, "seeds") + breaches(report, "wrong variant")


PERSONAL = """
number = drawn(student_id)
### BEGIN SOLUTION
twice = 2.0 * number
### END SOLUTION
"""
PERSONAL_TESTS = """
assert twice > 0, "Twice a positive number is positive."
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare


@check("twice your number", points=18)
def _():
    compare(twice, 2.0 * drawn(student_id))
### END HIDDEN TESTS
"""


def test_personal_numbers_are_audited_with_many_ids(sets):
    helpers = "import zlib\n\n\ndef drawn(student_id):\n    return float(1 + zlib.crc32(student_id.encode()) % 50)"
    catalogue = textwrap.dedent("""
        from autograder.catalogue import edited, right, wrong

        edited("twice", "thrice", "2.0", "3.0", says="That is three times.")
        edited("twice", "added", "2.0 * number", "number + number")


        @wrong("twice", says="That is the number itself.")
        def once(student_id):
            return drawn(student_id)


        @right("twice")
        def in_steps(student_id):
            return sum([drawn(student_id)] * 2)
    """)
    exercise = ("twice", PERSONAL, PERSONAL_TESTS, 19)
    report = sets.audit([exercise], catalogue=catalogue, quick=False, helpers=helpers, seeds=20)
    assert report.ok, report.breaches
    assert (report.total("right_full"), report.total("caught"), report.total("named")) == (2, 2, 2)


@pytest.mark.slow
def test_mutant_that_never_ends_is_killed(sets):
    loop = SHIFT.replace("    middle", "    n = 3\n    while n > 0:\n        n -= 1\n    middle")
    began = time.monotonic()
    report = sets.audit([("shift", loop, SHIFT_TESTS, 19), ("choice", CHOICE, CHOICE_TESTS, 1)], seeds=1)
    assert time.monotonic() - began < 200
    endless = {m.new for m in mutants_of(loop.strip())} & {"n += 1", "n -= 0"}
    assert endless and not endless & {s.new for s in report.survivors}
