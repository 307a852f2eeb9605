"""Wrong answers in a form of their own to a real set, which no misconception of the catalogue explains."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder.audit.bench import Bench
from autograder.course import Course
from autograder.judging.variants import Variant


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench(Course(Path(__file__).parents[2]).set_files("ps8-linear-attention"))


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
