"""Near-identical code: pairs of students of one set whose own code shares what few others wrote.

Code is read as a stream of tokens in which names, numbers, texts and comments do not matter, so renaming and
re-wording hide nothing. What counts are runs of tokens that the released notebook does not hold and most of the class
did not write: two students who solve an exercise in the usual way share only what everybody shares.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from autograder.results import GRADED, Result

RUN = 8  # tokens in a run; a line of NumPy has some fifteen
COMMON = 0.25  # a run that more of the class than this has written says nothing about two of them
FEWEST_RUNS = 60  # shared runs below which nothing is reported: short answers are alike by chance
NEAR = 0.8  # share of the shorter one's telling runs that the other holds as well
MOST_PAIRS = 200
MOST_RUNS = 500_000  # telling runs of a student that are read, answers first; a set has some 3,000

# Whatever is never closed ends with the cell or the line, so that the time is linear in hostile text too.
_TOKEN = re.compile(
    r"""(?P<nothing>\#[^\n]* | ^[^\S\n]*[bru]{0,2}(?P<doc>\"{3}|'{3})(?s:.*?)(?:(?P=doc)|\Z) | [^\S\n]+ | \n)
    | (?P<value>[bfrtu]{0,2}(?:(?P<long>\"{3}|'{3})(?s:.*?)(?:(?P=long)|\Z) | "(?:\\.|[^"\\\n])*"?
      | '(?:\\.|[^'\\\n])*'?) | \.?\d[\w.]*)
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>[-+*/%@&|^<>=!:]=|\*\*|//|->|[^\w\s])""",
    re.VERBOSE | re.IGNORECASE | re.MULTILINE,
)
_TELLING = frozenset(keyword.kwlist) | frozenset(dir(builtins))


@dataclass
class Pair:
    """Two students, the share (0 to 1) of telling runs in common, and their number."""

    one: str
    other: str
    share: float
    runs: int


def code_of(notebook: dict[str, Any]) -> list[str]:
    """The code cells the student wrote, answers before own cells; test cells and given ones are left out."""
    answers: list[str] = []
    own: list[str] = []
    for cell in notebook["cells"]:
        meta = cell["metadata"].get("nbgrader", {})
        if cell["cell_type"] == "code" and not meta.get("locked") and not meta.get("grade"):
            (answers if meta.get("solution") else own).append("".join(cell["source"]))
    return [*answers, *own]


def runs(cells: Iterable[str]) -> Iterator[str]:
    """The runs of `RUN` tokens in some cells, each as one word; no cell hides what stands in another."""
    for code in cells:
        last: deque[str] = deque(maxlen=RUN)
        for match in _TOKEN.finditer(code):
            kind = match.lastgroup
            if kind == "nothing":
                continue
            text = match[0]
            last.append(text if kind == "sign" or text in _TELLING else str(kind))
            if len(last) == RUN:
                yield " ".join(last)


def near_identical(results: Sequence[Result], released: Iterable[str] = ()) -> list[Pair]:
    """Pairs of graded submissions that are nearly the same, the nearest first; `released` are texts all have."""
    graded = [(r.student, code_of(r.notebook)) for r in results if r.status == GRADED and r.notebook is not None]
    given = set(runs(released))
    written = [set(islice((run for run in runs(cells) if run not in given), MOST_RUNS)) for _, cells in graded]
    if sum(map(bool, written)) < 2:
        return []
    shared = _shared(written, most=max(2, math.ceil(COMMON * len(graded))))
    sizes = shared.diagonal()
    pairs = []
    for a, (one, _) in enumerate(graded):
        least = np.minimum(sizes[a], sizes)
        near = (shared[a] >= FEWEST_RUNS) & (shared[a] >= NEAR * least)
        for b in a + 1 + np.flatnonzero(near[a + 1 :]):
            pairs.append(Pair(one, graded[b][0], float(shared[a, b] / least[b]), int(shared[a, b])))
    return sorted(pairs, key=lambda p: (-p.share, -p.runs, p.one, p.other))[:MOST_PAIRS]


def _shared(written: Sequence[set[str]], most: int) -> np.ndarray:
    """How many runs each two have in common (n, n), of those that at most `most` wrote."""
    numbers: dict[str, int] = {}
    columns = [numbers.setdefault(run, len(numbers)) for each in written for run in each]
    ends = np.cumsum([0, *map(len, written)])
    wrote = csr_array((np.ones(len(columns), dtype=np.int64), columns, ends), shape=(len(written), len(numbers)))
    wrote = wrote[:, wrote.sum(axis=0) <= most]
    return np.asarray((wrote @ wrote.T).toarray())
