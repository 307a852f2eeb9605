"""What the chapter on normalisation claims, asserted on its executed notebook."""

import re

import pytest
from book_build import chapter


@pytest.fixture(scope="module")
def value():
    return chapter("normalization").value


def test_numbers_run_away_without_a_norm(value):
    assert value("drift_low_law") == pytest.approx(0.9**60)
    assert value("drift_high_law") == pytest.approx(1.1**60)
    assert value("drift_low") < 0.01
    assert value("drift_high") > 100
    assert value("drift_ratio") > 1e4


def test_the_pencil_example_and_eps(value):
    numbers = [float(x.replace("−", "-")) for x in re.findall(r"[-−]?\d\.\d+", value("standard_pencil"))]
    assert numbers == [-1.0, -0.333, -0.333, 1.667]
    assert value("standard_in_001") == pytest.approx((1e-6 / (1e-6 + 1e-5)) ** 0.5, abs=1e-9)
    assert value("standard_out_001") == pytest.approx(1e-3 / (1e-3 + 1e-5), abs=1e-9)
    assert value("standard_factor") == pytest.approx(value("standard_out_001") / value("standard_in_001"))
    assert value("standard_unbiased") == pytest.approx((4 / 3) ** 0.5 - 1)


def test_batch_norm_with_unequal_lengths(value):
    assert value("lengths_first") == 16
    assert value("lengths_longest") == 22
    assert value("lengths_spread_worst") > 1.5 * value("lengths_spread_first")
    assert value("lengths_last_output") == 0
    assert abs(value("padding_real")) < 0.15
    assert value("padding_all") > 0.6
    assert abs(value("padding_cut")) < 0.3 < value("padding_all")
    assert 0.3 < value("padding_share") < 0.7
    assert value("padding_layer_gap") == 0


def test_batch_norm_with_small_batches(value):
    assert value("small_slope") == pytest.approx(-0.5, abs=0.05)
    assert value("small_256") < 0.1 < 0.35 < value("small_8")
    assert value("small_sign") > 0.95


def test_online_learning_and_the_other_way_round(value):
    assert 0.45 < value("online_batch") < 0.55
    assert value("online_layer") > 0.95
    assert value("online_layer_32") > 0.95
    assert 0.6 < value("online_running") < value("online_layer") - 0.1
    assert value("online_batch_32") < value("online_layer_32") - 0.1
    assert value("units_batch_32") > value("units_layer_32") + 0.2


def test_a_layer_norm_is_blind_in_two_directions(value):
    assert value("layer_zero") < 1e-9
    assert value("layer_one") == pytest.approx(value("layer_inverse"), rel=1e-6)
    assert value("layer_seventh") == pytest.approx(7, rel=1e-6)
    assert value("layer_cosine") < 1e-9


def test_rms_norm_and_the_shortcut_for_the_variance(value):
    assert value("rms_ratio") > 1
    assert abs(value("shortcut_two") - 0.93) < 0.01
    assert abs(value("shortcut_wrong") - value("shortcut_two")) > 1


def test_residual_streams(value):
    assert 1 < value("stream_growth") < 1.5
    assert 6 < value("stream_pre") < 9
    assert value("stream_share_pre") == pytest.approx(1 / value("stream_pre"))
    assert value("stream_share_post") < 1e-6
    assert 1.5 < value("stream_halving") < 2.5


def test_pytorchs_two_variances(value):
    assert value("torch_running") == pytest.approx(12)
    assert value("torch_train_last") == pytest.approx(5 / 3, abs=1e-4)
    assert value("torch_eval_last") == pytest.approx(5 / 12**0.5, abs=1e-4)


def test_gradients_do_not_vanish_but_tokens_become_alike(value):
    assert value("start_post_24_first") > value("start_pre_24_first") > 0.05
    assert value("start_pre_24_last") < 0.75 * value("start_pre_4_last")
    assert value("start_post_24_last") > 1.5 * value("start_post_2_last")
    assert value("start_post_16_likeness") > 0.97
    assert value("start_pre_16_likeness") < 0.8


def test_depth_stops_post_norm_and_not_pre_norm(value):
    for name in ("depth_pre_2", "depth_post_2", "depth_pre_16"):
        assert value(name) > 0.95
    assert value("depth_post_16") < 0.5
    assert value("depth_post_warm") < 0.5
    assert value("depth_post_8") < 0.9
