"""Near-identical code: pairs of students of one set whose own code shares what few others wrote.

Code is read as a stream of tokens in which names, numbers, texts and comments do not matter, so renaming and
re-wording hide nothing. What counts are runs of tokens that the released notebook does not hold and most of the class
did not write: two students who solve an exercise in the usual way share only what everybody shares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Name, Number, String, Text

from autograder.results import GRADED, Result

RUN = 8
"""Tokens in a run; a line of NumPy has some fifteen."""
COMMON = 0.25
"""A run that more of the class than this has written says nothing about two of them."""
FEWEST_RUNS = 60
"""Shared runs below which nothing is reported: short answers are alike by chance."""
NEAR = 0.8
"""Share of the shorter one's telling runs that the other holds as well."""
MOST_PAIRS = 200
MOST_CODE = 200_000
"""Characters of a student's code that are read, answers first; a set has some 10,000, and reading takes its time."""


@dataclass
class Pair:
    """Two students, the share (0 to 1) of telling runs in common, and their number."""

    one: str
    other: str
    share: float
    runs: int


def code_of(notebook: dict[str, Any]) -> str:
    """What the student wrote into code cells, answers before own cells; test cells and given ones are left out."""
    answers: list[str] = []
    own: list[str] = []
    for cell in notebook["cells"]:
        meta = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and not meta.get("locked") and not meta.get("grade"):
            (answers if meta.get("solution") else own).append("".join(cell["source"]))
    return "\n".join([*answers, *own])[:MOST_CODE]


def runs(code: str) -> Iterator[str]:
    """The runs of `RUN` tokens in a text, each as one word."""
    tokens = []
    for kind, text in PythonLexer().get_tokens(code):
        if kind in Comment or kind in String.Doc or (kind in Text and not text.strip()):
            continue
        if kind in Name and kind not in Name.Builtin:
            text = "name"
        elif kind in Number or kind in String:
            text = "value"
        tokens.append(text.strip())
    for start in range(len(tokens) - RUN + 1):
        yield " ".join(tokens[start : start + RUN])


def near_identical(results: Sequence[Result], released: Iterable[str] = ()) -> list[Pair]:
    """Pairs of graded submissions that are nearly the same, the nearest first; `released` are texts all have."""
    graded = [(r.student, code_of(r.notebook)) for r in results if r.status == GRADED and r.notebook is not None]
    given = {run for text in released for run in runs(text)}
    written = [{run for run in runs(code) if run not in given} for _, code in graded]
    if sum(map(bool, written)) < 2:
        return []
    shared, sizes = _shared(written, most=max(2, math.ceil(COMMON * len(graded))))
    pairs = []
    for a, (one, _) in enumerate(graded):
        least = np.minimum(sizes[a], sizes)
        near = (shared[a] >= FEWEST_RUNS) & (shared[a] >= NEAR * least)
        for b in a + 1 + np.flatnonzero(near[a + 1 :]):
            pairs.append(Pair(one, graded[b][0], float(shared[a, b] / least[b]), int(shared[a, b])))
    return sorted(pairs, key=lambda p: (-p.share, -p.runs, p.one, p.other))[:MOST_PAIRS]


def _shared(written: Sequence[set[str]], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """How many runs each two have in common (n, n), and how many each has (n); of runs that at most `most` wrote."""
    numbers: dict[str, int] = {}
    own = [np.array([numbers.setdefault(run, len(numbers)) for run in each], dtype=np.int64) for each in written]
    writers = np.bincount(np.concatenate(own))
    own = [runs_of[writers[runs_of] <= most] for runs_of in own]
    writers[writers > most] = 0
    sizes = np.array([len(runs_of) for runs_of in own])
    # Who wrote each run, one run after the other: run `r` from `first[r]` on.
    who = np.repeat(np.arange(len(own)), sizes)[np.argsort(np.concatenate(own), kind="stable")]
    first = np.cumsum(writers) - writers
    shared = np.zeros((len(own), len(own)), dtype=np.int64)
    for student, runs_of in enumerate(own):
        lengths = writers[runs_of]
        shift = first[runs_of] - (np.cumsum(lengths) - lengths)
        shared[student] = np.bincount(who[np.arange(lengths.sum()) + np.repeat(shift, lengths)], minlength=len(own))
    return shared, sizes
