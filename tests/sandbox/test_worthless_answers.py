"""Answers that hold no work gain no point in any exercise of any set, however they dress up."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from kept import judging_digest, proved_once, some_always

from autograder.audit.bench import STUDENT, Bench, answering, shaped, submission
from autograder.audit.forked import run_apart
from autograder.course import Course
from autograder.grading.runner import Prepared, Settings
from autograder.judging.job import Job
from autograder.judging.reference import Judged
from autograder.judging.worker import run_job
from autograder.results import GRADED, Result

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)
ALWAYS = ("ps2-self-attention",)  # the others when all is run


def of_itself() -> list:
    value: list = [0.5]
    value.append(value)
    return value


def kind_mock(kind: type) -> MagicMock:
    """A mock that passes for another class and finds everything equal, small and true."""
    mock = MagicMock(spec=kind)
    for name in ("__eq__", "__le__", "__ge__", "__lt__", "__gt__", "__contains__", "__bool__"):
        setattr(mock, name, MagicMock(return_value=True))
    return mock


class Odd:
    """Any number of the right shape, to those who believe what it says of itself."""

    shape, ndim, dtype, size = (3, 4), 2, np.dtype("f8"), 12

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        return np.full((3, 4), np.nan)

    def __len__(self) -> int:
        return 3

    def __index__(self) -> int:
        return 0

    def __iter__(self) -> Any:
        return itertools.repeat(True)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: self

    __call__ = __getitem__ = __sub__ = __rsub__ = __abs__ = lambda self, *args, **kwargs: self
    __eq__ = __ne__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
    __hash__ = object.__hash__


WORTHLESS: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "a mock": MagicMock,
    "a mock of an array": lambda: kind_mock(np.ndarray),
    "a mock of a tensor": lambda: kind_mock(torch.Tensor),
    "an odd object": Odd,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "True": lambda: True,
    "a huge number": lambda: 10**400,
    "an endless iterator": lambda: itertools.repeat(1.0),
    "a generator": lambda: (n for n in (0.25, 0.75)),
    "a list of itself": of_itself,
    "an empty array": lambda: np.zeros((0, 4)),
    "an array of objects": lambda: np.array([0.5, None, print], dtype=object),
    "a type": lambda: np.ndarray,
    "not implemented": lambda: NotImplemented,
    "dots": lambda: Ellipsis,
}
FILLED = {"all infinity": np.inf, "all minus infinity": -np.inf, "all 1e300": 1e300}  # the audit fills with NaN


def worthless(reference: Any, kind: str) -> Any:
    if kind in FILLED:

        def make(right: Callable[[], Any]) -> Any:
            return shaped(right(), lambda part: np.full(part.shape, FILLED[kind]))

        return (
            answering(reference, lambda right, given: make(right)) if callable(reference) else make(lambda: reference)
        )
    name, _, how = kind.partition(" by ")
    make_one = WORTHLESS[name]
    if not callable(reference):
        return make_one()
    return answering(reference, lambda right, given: make_one()) if how else lambda *args, **kwargs: make_one()


def passed(bench: Bench, grade_id: str, kind: str) -> list[str]:
    """The checks that a submission passes whose names of this exercise are all worthless in this way."""
    test = bench.source.tests[grade_id]
    names = bench.source.namespace_for(test, STUDENT)
    put = {n: (worthless(names[n], kind), f"{n} = None") for n in test.solution_names & names.keys()}
    return [c.name for c in bench.judged(test, put=put)[0] if c.passed]


def right(bench: Bench, grade_id: str) -> list[str]:
    """The checks that the reference does not pass."""
    return [c.name for c in bench.judged(bench.source.tests[grade_id])[0] if not c.passed]


@pytest.mark.parametrize("name", some_always(COURSE.set_names(), ALWAYS))
def test_worthless_answers_gain_no_point(name: str) -> None:
    proved_once(f"worthless-{name}", judging_digest(name, __file__), partial(no_point_is_gained, name))


def no_point_is_gained(name: str) -> None:
    bench = Bench(COURSE.set_files(name))
    asked: dict[str, Callable[[], Any]] = {}
    for grade_id, test in bench.source.tests.items():
        kinds = [*WORTHLESS, *FILLED]
        if any(isinstance(bench.source.reference.get(n), type) for n in test.solution_names):
            kinds += [f"{kind} by its methods" for kind in WORTHLESS]
        asked |= {f"{grade_id}: {kind}": partial(passed, bench, grade_id, kind) for kind in kinds}
        asked[f"{grade_id}: the reference"] = partial(right, bench, grade_id)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # torch's threads do not live through a fork
    try:
        runs = dict(run_apart([(task, 60.0) for task in asked.values()], jobs=2))
    finally:
        torch.set_num_threads(threads)
    found = {what: runs[number].lost or runs[number].value for number, what in enumerate(asked)}
    assert {what: said for what, said in found.items() if said} == {}


# The same in the sandbox, for one set: what a student can type. `{name}` is each name of the exercise.
TYPED = {
    "a mock": "from unittest.mock import MagicMock\n{name} = MagicMock()",
    "a mock of an array": "from unittest.mock import MagicMock\n{name} = lambda *a, **k: MagicMock(spec=np.ndarray)",
    "all NaN": "{name} = lambda *a, **k: np.full_like(np.asarray(a[0], float), np.nan)",
    "all infinity": "{name} = lambda *a, **k: (np.full((2, 3), np.inf), np.full((2, 3), np.inf))",
    "nothing": "{name} = lambda *a, **k: None",
    "an endless iterator": "import itertools\n{name} = lambda *a, **k: itertools.count()",
    "a generator that does not end": "def {name}(*a, **k):\n    while True: yield 1.0",
    "a list of itself": "def {name}(*a, **k):\n    x = [0.5]\n    x.append(x)\n    return x",
    "a huge number": "{name} = lambda *a, **k: 10**5000",
}


@pytest.mark.parametrize("typed", TYPED)
def test_worthless_answers_in_the_sandbox(typed: str) -> None:
    files = COURSE.set_files("ps2-self-attention")
    source = Judged.from_text(files.notebook_text, files.catalogue, files.name, files.set_checks)
    cells = {}
    for test in source.tests.values():
        texts = "\n".join(TYPED[typed].replace("{name}", name) for name in sorted(test.solution_names))
        cells |= dict.fromkeys(test.solution_ids, texts)
    job = Prepared(files, STUDENT, Settings(), 7).from_bytes(submission(files, cells), f"{files.name}.ipynb", [])
    assert isinstance(job, Job)
    result = Result.from_json(json.loads(run_job(job.to_bytes())))
    assert result.status == GRADED and result.auto_score == 0.0
    assert all(c.reason for e in result.exercises for c in e.checks)
