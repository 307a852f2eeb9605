"""Answers that agree with anything gain nothing in test cells without checks, which may do with answers what they like.

Stock nbgrader gives most of them full points: there the test cell runs in the student's process.
"""

from __future__ import annotations

from typing import Any

import pytest
from plain_kinds import Kind, returns
from plain_sets import answered, grade, notebook_of, points_in
from tiny_course import SET, make_course, submit, write_source

from autograder.judging.client import Client
from autograder.judging.reference import Judged
from autograder.judging.session import run_test_cell
from autograder.judging.transports import LocalTransport
from autograder.notebook.places import release_view

AGREES = """import numpy as np

class Agrees:
    __name__ = "double"
    shape, ndim, size, dtype, T = (2,), 1, 2, np.dtype(float), 0.0
    def yes(self, *args, **kwargs):
        return True
    def same(self, *args, **kwargs):
        return self
    def zero(self, *args, **kwargs):
        return 0.0
    __eq__ = __lt__ = __le__ = __gt__ = __ge__ = __contains__ = __bool__ = yes
    __ne__ = lambda self, other: False
    __sub__ = __rsub__ = __mod__ = __xor__ = __abs__ = __float__ = __matmul__ = zero
    __add__ = __mul__ = __rmul__ = __neg__ = __round__ = __call__ = __getitem__ = same
    __len__ = lambda self: 2
    __hash__ = lambda self: 4
    __index__ = __int__ = lambda self: 4
    __array_interface__ = {"data": (16, False), "shape": (2,), "typestr": "<f8", "version": 3}
    def __iter__(self):
        return iter([self, self])
    def __getattr__(self, name):
        return self.same if name in ("sum", "max", "mean", "round") else self.yes
"""
RAISING = "class Raises(Exception):\n    def __str__(self):\n        raise self\n\n"
CHANGED = """import autograder.sandbox.inside.workspace as w
import numpy as np
first = w.Workspace.do_call

def do_call(self, request, blobs, sent):
    reply = first(self, request, blobs, sent)
    return {**reply, "after": AFTER}

w.Workspace.do_call = do_call
"""
# an answer that shows itself twice and no more
SHY = """class Shy(list):
    shown = 0
    def __repr__(self):
        Shy.shown += 1
        if Shy.shown > 1:
            raise ValueError('no more')
        return 'shown'

class Key:
    asked = 0
    def __hash__(self):
        Key.asked += 1
        if Key.asked > 2:
            raise ValueError('no more')
        return 1

class Hidden:
    def __repr__(self):
        raise ValueError('never')
"""


def one_test(name: str, test: str, wrong: str, value: str = "2 * x") -> Kind:
    return Kind(returns(name, value), wrong, test)


def agreeing(name: str, test: str, value: str = "2 * x") -> Kind:
    return one_test(name, test, f"{AGREES}\ndef {name}(x):\n    return Agrees()", value)


def raising(name: str, test: str, kind: str) -> Kind:
    return one_test(name, test, f"{RAISING}def {name}(x):\n    raise {kind}")


CHEATS = {
    "equal": agreeing("a1", "assert a1(2) == 4 and 4 == a1(2)"),
    "near": agreeing("a2", "assert abs(a2(2) - 4) < 1e-9 and abs(6 - a2(3)) < 1e-9"),
    "among": agreeing("a3", "assert a3(2) in (4, 5) and 4 in [a3(2)]"),
    "all": agreeing("a4", "import numpy as np\nassert (a4(np.ones(2)) == np.full(2, 2.0)).all()"),
    "close": agreeing("a5", "import numpy as np\nassert np.allclose(a5(np.ones(2)), np.full(2, 2.0))"),
    "as-numpy-sees-it": agreeing("a6", "import numpy as np\nnp.testing.assert_allclose(a6(np.ones(2)), [2.0, 2.0])"),
    "asserted": agreeing("a7", "import unittest\nunittest.TestCase().assertAlmostEqual(a7(2), 4)"),
    "by-a-method": agreeing("a8", "assert not a8('x').endswith('y') and a8('x').replace('x', 'z') == 'zz'"),
    "of-many": agreeing("a9", "assert sorted(a9([3, 1])) == [1, 3]", "sorted(x)"),
    "by-reversed-signs": agreeing("b1", "assert not (b1(2) != 4) and not (b1(2) < 4)"),
    "as-a-tensor": one_test(
        "b2",
        "import torch\nassert torch.allclose(b2(torch.ones(2)), torch.full((2,), 2.0))",
        "class Tensor:\n    pass\n\nTensor.__module__ = 'torch'\n\ndef b2(x):\n    return Tensor()",
    ),
    "ends-the-loop": raising(
        "c1", "for got, want in zip(map(c1, [1, 2]), [2, 4]):\n    assert got == want", "StopIteration"
    ),
    "a-group": raising("c2", "assert c2(1) == 2", "ExceptionGroup('many', [ValueError(1)])"),
    "no-text": raising("c3", "assert c3(1) == 2", "UnicodeDecodeError('utf-8', b'', 0, 1, 'why')"),
    "no-message": raising("c4", "assert c4(1) == 2", "Raises()"),
    "leaves": raising("c5", "assert c5(1) == 2", "SystemExit(0)"),
    "interrupts": raising("c6", "assert c6(1) == 2", "KeyboardInterrupt"),
    "no-number": raising("c7", "assert c7(1) == 2", "ValueError(float('nan'), 1 << 60_000)"),
    "makes-its-input-nothing": one_test(
        "d1",
        "import numpy as np\nx = np.ones(3)\nnp.testing.assert_allclose(d1(x), 2 * x)",
        "def d1(x):\n    x[:] = 0\n    return x",
    ),
    "leaves-its-tensor": Kind(
        "def d3(x):\n    x.mul_(2)",
        "def d3(x):\n    return x.mul(2)",
        "import torch\nt = torch.ones(2)\nd3(t)\nassert t.sum() == 4",
    ),
    "empties-its-input": one_test(
        "d2",
        "x = [1, 2]\nfound = d2(x)\nassert found == [2 * n for n in x]",
        "def d2(x):\n    x.clear()\n    return []",
        "[2 * n for n in x]",
    ),
    "fails-when-its-failure-is-told": one_test(
        "g1", "got = g1([1])\nassert got == [1, 1], got", f"{SHY}\ndef g1(x):\n    return Shy()"
    ),
    "fails-in-an-error-of-the-test": one_test(
        "g2", "got = g2([1])\nif got != [1, 1]:\n    raise ValueError(got)", f"{SHY}\ndef g2(x):\n    return Shy()"
    ),
    "fails-when-its-call-is-shown": one_test("g3", "assert g3(2) == 4", f"{SHY}\ndef g3(x):\n    return {{Key(): 1}}"),
    "is-the-points-and-no-number": one_test("g4", "g4(2)", f"{SHY}\ndef g4(x):\n    return Hidden()"),
    "prints-for-the-test": one_test(
        "e1", "print(e1(2))\nassert e1(2) == 4", "def e1(x):\n    print('4 of 4 points')\n    return 5"
    ),
    "honest": one_test("e2", "assert e2(2) == 4", returns("e2", "x + x")),
    "lies-of-what-became-of-it": one_test(
        "f1",
        "import numpy as np\nx = np.ones(3)\nassert f1(x).sum() == 2 * x.sum()",
        CHANGED.replace("AFTER", "[[0, {'array': 'no such thing'}], [7, 1], ['y', None]]") + returns("f1", "x"),
    ),
    "of-another-kind": one_test(
        "f2",
        "x = [1]\nassert f2(x) == [1, 1]",
        CHANGED.replace("AFTER", "[[0, self.out({'a': 1}, sent)]]") + returns("f2", "2 * x"),
    ),
    "larger-than-it-was": one_test(
        "f3",
        "import numpy as np\nx = np.ones(3)\npart = x[1:]\nassert f3(x).sum() == 6 and part.sum() == 2",
        CHANGED.replace("AFTER", "[[0, self.out(np.ones(10**6), sent)]]") + returns("f3", "2 * x"),
    ),
}
COUNTED = "def {0}(x):\n    n = {1}\n    for a in x:\n        n[a] = n.get(a, 0) + 1\n    return n"
ALIKE = {  # right answers of another kind than the reference's, in place of wrong ones
    "a-kind-of-dictionary": Kind(
        COUNTED.format("k1", "{}"),
        f"from collections import defaultdict\n{COUNTED.format('k1', 'defaultdict(int)')}",
        "assert isinstance(k1('aab'), dict)\nassert k1('aab') == {'a': 2, 'b': 1} and k1('b')['b'] == 1",
    ),
    "a-kind-of-text": one_test(
        "k2",
        "assert isinstance(k2(1), str) and k2(1) == 'ab' and k2(1).upper() == 'AB'",
        "from enum import Enum\n\nclass Name(str, Enum):\n    AB = 'ab'\n\ndef k2(x):\n    return Name.AB",
        "'ab'",
    ),
    "a-view-of-keys": one_test(
        "k3", "assert k3('aab') == {'a', 'b'}", returns("k3", "dict.fromkeys(x).keys()"), "set(x)"
    ),
    "an-array-of-objects": Kind(
        f"import numpy as np\n{returns('k4', 'np.array(x)')}",
        f"import numpy as np\n{returns('k4', 'np.array(x, dtype=object)')}",
        "import numpy as np\nassert isinstance(k4([1, 2]), np.ndarray) and k4([1, 2]).sum() == 3\n"
        "assert np.array_equal(k4(['a', 'bb']), np.array(['a', 'bb'])) and k4([[1], [2]]).shape == (2, 1)",
    ),
    "an-object-of-no-kind": Kind(
        f"KEPT = object()\n{returns('k5', 'KEPT')}",
        f"MINE = object()\n{returns('k5', 'MINE')}",
        "assert k5(1) == k5(2)",
    ),
}
EVERY = {**CHEATS, **ALIKE}


@pytest.fixture(scope="module")
def marks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float | None]]:
    course = make_course(tmp_path_factory.mktemp("course"))
    (course.source_folder / SET / "catalogue.py").unlink()
    notebook = notebook_of(EVERY)
    write_source(course.root, notebook)
    released = release_view(notebook, course.config)
    submit(course, "cheat", answered(released, {name: kind.wrong for name, kind in CHEATS.items()}))
    submit(course, "alike", answered(released, {name: kind.wrong for name, kind in ALIKE.items()}))
    submit(course, "right", answered(released, {name: kind.answer for name, kind in EVERY.items()}))
    grade(course)
    return points_in(course)


@pytest.mark.parametrize("name", [name for name in CHEATS if name != "honest"])
def test_what_agrees_with_anything_gains_nothing(name: str, marks: dict[str, dict[str, float | None]]) -> None:
    assert marks["cheat"][f"{name}-tests"] == 0
    assert marks["right"][f"{name}-tests"] == 4


def test_the_process_is_still_there_after_most_of_them(marks: dict[str, dict[str, float | None]]) -> None:
    assert marks["cheat"]["honest-tests"] == marks["right"]["honest-tests"] == 4


@pytest.mark.parametrize("name", ALIKE)
def test_a_right_answer_of_another_kind_is_right(name: str, marks: dict[str, dict[str, float | None]]) -> None:
    assert marks["alike"][f"{name}-tests"] == marks["right"][f"{name}-tests"] == 4


def test_data_of_the_set_that_an_answer_changes_are_whole_for_the_next() -> None:
    kind = Kind(
        "def total(x):\n    return sum(x)",
        "def total(x):\n    found = sum(x)\n    x[:] = x[:0] if isinstance(x, list) else 0\n    return found",
        "assert total(Kept.numbers) == 3 and total(Kept.array) == 4 and total(Kept.tensor) == 6",
        before="import numpy as np\nimport torch\n\nclass Kept:\n"
        "    numbers, array, tensor = [1, 2], np.full(2, 2), torch.full((2,), 3)",
    )
    source = Judged(notebook_of({"total": kind}))
    test = source.tests["total-tests"]
    expected = source.reference_outcome(test, 1, "")
    for answer in (kind.wrong, kind.answer):
        names: dict[str, Any] = {"__name__": "__main__"}
        exec(f"{kind.before}\n{answer}", names)
        client = Client(LocalTransport(names))
        client.begin(30)
        client.exact, client.may_be_asked = True, expected.asked
        assert run_test_cell(test, client, source, 1).full
