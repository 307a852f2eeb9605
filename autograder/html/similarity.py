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
    answers, own = [], []
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
    from sklearn.feature_extraction.text import CountVectorizer  # takes a second

    graded = [r for r in results if r.status == GRADED and r.notebook is not None]
    given = {run for text in released for run in runs(text)}
    words = [{run for run in runs(code_of(r.notebook)) if run not in given} for r in graded]
    if sum(map(bool, words)) < 2:
        return []
    most = max(2, math.ceil(COMMON * len(graded)))
    counts = CountVectorizer(analyzer=lambda own: own, binary=True, dtype=np.int32).fit_transform(words).tocsc()
    telling = counts[:, np.asarray(counts.sum(axis=0)).ravel() <= most].tocsr()
    sizes = np.asarray(telling.sum(axis=1)).ravel()
    shared = (telling @ telling.T).tocoo()
    pairs = []
    for a, b, number in zip(shared.row, shared.col, shared.data, strict=True):
        if a < b and number >= FEWEST_RUNS and number >= NEAR * min(sizes[a], sizes[b]):
            share = float(number / min(sizes[a], sizes[b]))
            pairs.append(Pair(graded[a].student, graded[b].student, share, int(number)))
    return sorted(pairs, key=lambda p: (-p.share, -p.runs, p.one, p.other))[:MOST_PAIRS]
