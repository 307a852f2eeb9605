"""What the chapter on normalisation claims, asserted on its executed notebook."""

from __future__ import annotations

import re

import numpy as np
import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("normalization")


@pytest.fixture(scope="module")
def value(page):
    return page.value


@pytest.mark.parametrize(
    "label",
    [
        "norm-drift",
        "norm-standardise",
        "norm-cube",
        "norm-batch-lengths",
        "norm-small-batches",
        "norm-online",
        "norm-which",
        "norm-layer",
        "norm-rms",
        "norm-residual",
        "norm-torch",
        "norm-gradients",
        "norm-depth",
        "norm-today",
        "norm-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_numbers_run_away_without_a_norm(value):
    assert value("drift_low_law") == pytest.approx(0.9**60)
    assert value("drift_high_law") == pytest.approx(1.1**60)
    assert ends(value("drift_low"))[1] < 0.02
    assert ends(value("drift_high"))[0] > 30


def test_the_pencil_example_and_eps(value):
    numbers = [float(x.replace("−", "-")) for x in re.findall(r"[-−]?\d\.\d+", value("standard_pencil"))]
    assert numbers == [-1.0, -0.333, -0.333, 1.667]
    assert value("standard_in_001") == pytest.approx((1e-6 / (1e-6 + 1e-5)) ** 0.5, abs=1e-9)
    assert value("standard_out_001") == pytest.approx(1e-3 / (1e-3 + 1e-5), abs=1e-9)
    assert value("standard_unbiased") == pytest.approx((4 / 3) ** 0.5 - 1)


def test_batch_norm_with_small_batches(value):
    assert ends(value("small_256"))[1] < 0.12 < 0.3 < ends(value("small_8"))[0]
    assert value("small_sign") > 0.95
    assert value("small_alone") == 0


def test_online_learning_and_the_other_way_round(value):
    layer, limit = ends(value("online_layer")), ends(value("online_limit"))
    assert limit[0] - 0.1 < layer[0] <= layer[1] < limit[1] + 0.03
    assert ends(value("online_none"))[0] > 0.7, "the floor is above guessing"
    assert ends(value("units_batch"))[0] > 0.8
    assert ends(value("units_layer"))[1] < ends(value("units_batch"))[0]


@pytest.mark.parametrize("seed", [201, 202, 203])
def test_what_a_layer_norm_can_reach_is_an_angle(seed):
    """The part of a random plane that asks about the mean is lost; the chapter's limit from another way."""
    rng = np.random.default_rng(seed)
    plane, content = rng.normal(size=8), rng.normal(size=(200_000, 8))
    seen = content - content.mean(axis=1, keepdims=True)
    agreement = ((content @ plane > 0) == (seen @ plane > 0)).mean()
    cosine = np.linalg.norm(plane - plane.mean()) / np.linalg.norm(plane)
    assert agreement == pytest.approx(1 - np.arccos(cosine) / np.pi, abs=0.005)


def test_a_layer_norm_is_blind_in_two_directions(value):
    assert value("layer_zero") < 1e-9
    assert value("layer_one") == pytest.approx(value("layer_inverse"), rel=1e-6)
    assert value("layer_seventh") == pytest.approx(7, rel=1e-6)
    assert value("layer_cosine") < 1e-9


def test_residual_streams(value):
    assert ends(value("stream_pre"))[0] > 5 and ends(value("stream_pre"))[1] < 9
    assert ends(value("stream_share"))[0] > 0.1
    assert ends(value("stream_halving"))[1] < 2.5
    assert ends(value("stream_calm"))[1] < 1.8, "branches over the root of their number: √2"


def test_squares_in_half_precision(value):
    assert value("rms_half") == 0


def test_pytorchs_two_variances(value):
    assert value("torch_running") == pytest.approx(12)
    assert value("torch_train_last") == pytest.approx(5 / 3, abs=1e-4)
    assert value("torch_eval_last") == pytest.approx(5 / 12**0.5, abs=1e-4)


def test_queries_and_keys_lose_their_gradient_where_tokens_are_alike(value):
    assert re.fullmatch(r"\d·10⁻[⁵⁶⁷⁸⁹¹]\S*", value("qk_post"))
    assert min(ends(value("v_post"))[0], ends(value("ffn_post"))[0]) > 0.05
    assert ends(value("alike_post"))[0] > 0.97 > 0.95 > ends(value("alike_pre"))[1]
    assert ends(value("alike_alone"))[1] < 0.9, "without averaging tokens stay different"
    assert sum(ends(value("ffn_post"))) > 2 * sum(ends(value("ffn_pre")))


def test_depth_order_and_start_act_together(value):
    assert value("others") > 0.9
    assert ends(value("stuck"))[1] < 0.6
    most = [np.bincount(word).max() / 8 for word in np.random.default_rng(3).integers(8, size=(20_000, 8))]
    assert value("occur") == pytest.approx(np.mean(most), abs=0.006)
    assert min(ends(value("longer"))[0], ends(value("warm"))[0]) > 0.125


def test_qk_norm_bounds_the_scores(value):
    assert ends(value("score_with"))[1] < 8 < ends(value("score_without"))[1]
    assert 12 < ends(value("score_with_20"))[0] <= ends(value("score_with_20"))[1] < 28
