"""Wrong answers to real sets that no one misconception of the catalogue explains, or that a neighbour's name would fit.

What is said of them must be true of them; saying nothing is allowed where nothing is certain.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_unearned_points import INVENTED

from autograder.audit import bench as benches
from autograder.audit.bench import Bench, graded, submission
from autograder.course import Course
from autograder.grading.runner import Settings
from autograder.judging.source import Source
from autograder.judging.variants import Variant

COURSE = Course(Path(__file__).parents[2])
SAYS_NO_MISTAKE = "first_check"  # only which check shows it first

SMALL_LETTERS_AND_NO_ROOTS = """
def cosine_similarity(a, b):
    x, y = Counter(a.lower().split()), Counter(b.lower().split())
    if not x or not y:
        return float(x == y)
    dot = sum(x[word] * y[word] for word in x)
    return dot / (sum(n * n for n in x.values()) * sum(n * n for n in y.values()))
"""
SMALL_LETTERS_AND_SETS = """
def cosine_similarity(a, b):
    x, y = set(a.lower().split()), set(b.lower().split())
    if not x or not y:
        return float(x == y)
    return len(x & y) / np.sqrt(len(x) * len(y))
"""

# the set, the answer's cell and its text, and words of the sentences that are true of it
CASES = {
    "cosine: small letters, no roots": (
        ("ps1-rnn-attention", "cosine-similarity", SMALL_LETTERS_AND_NO_ROOTS),
        ("You make capitals small", "You divide by the squares of the lengths"),
    ),
    "cosine: small letters, sets": (
        ("ps1-rnn-attention", "cosine-similarity", SMALL_LETTERS_AND_SETS),
        ("You make capitals small", "Each word counts once in your vectors"),
    ),
    "curves that nothing was trained for": (("ps6-transformer", "train-classifier", INVENTED), ()),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_no_sentence_is_said_that_is_not_true(case: str) -> None:
    (name, cell, code), true = CASES[case]
    files = COURSE.set_files(name)
    handed_in = submission(files, {**Source(files.source).solutions, cell: code})
    (result,) = graded(files, {"wrong": handed_in}, Settings())
    (exercise,) = (e for e in result.exercises if e.grade_id == f"{cell}-tests")
    assert exercise.score is not None and exercise.score < exercise.points
    said = [m.says for m in exercise.misconceptions if not m.name.startswith(SAYS_NO_MISTAKE)]
    assert [sentence for sentence in said if not any(words in sentence for words in true)] == []


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(COURSE.set_files("ps8-linear-attention"))


@pytest.mark.parametrize("wrong_from", [3, 4])
def test_features_in_another_order_with_a_wrong_factor_are_not_told_of_axes(bench: Bench, wrong_from: int) -> None:
    def tensors(X: Any, order: int = 2) -> Any:
        parts = [np.ones((*X.shape[:-1], 1))]
        power = parts[0]
        for n in range(1, order + 1):
            power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
            parts.append(power * (1 / math.sqrt(math.factorial(n)) if n < wrong_from else 1 / n))
        return np.concatenate(parts, axis=-1)

    # as if it were a right one, so that it is judged without being in the catalogue
    answer = Variant("tensors", "feature_map", tensors, "def feature_map(X, order=2): ...", True, "")
    ((_, complaint, named),) = bench.variants(bench.source.tests["feature-map-tests"], [answer])
    assert complaint and named == []


NEIGHBOURS = {
    "nearly_equal_is_a_tie": ("ps2-self-attention", "argmax-attention-tests"),
    "same_if_anything_agrees": ("ps7-hand-designed-heads", "same-head-tests"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_variant_that_is_like_another_has_its_own_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    in_set, test = NEIGHBOURS[name]
    bench = Bench(COURSE.set_files(in_set))
    variants = [v for v in bench.source.catalogue.variants if v.name == name]
    for seed in range(1, 6):
        monkeypatch.setattr(benches, "SEED", seed)
        ((_, complaint, named),) = bench.variants(bench.source.tests[test], variants)
        assert complaint and named == [name]
