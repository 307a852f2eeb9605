"""Every claim that `architectures` measures, asserted on the executed chapter."""

from __future__ import annotations

import pytest
from book_build import chapter


@pytest.fixture(scope="module")
def page():
    return chapter("architectures")


@pytest.mark.parametrize(
    "label",
    [
        "ar-four",
        "ar-path",
        "ar-cost",
        "ar-cannot",
        "ar-length",
        "ar-torch",
        "ar-cnn",
        "ar-shuffle",
        "ar-applications",
        "ar-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_who_sees_whom(page):
    assert page.value("reach_mlp") == page.value("reach_attention") == page.value("reach_all") == 81
    assert page.value("reach_conv") == 3 * 9 - 2
    assert page.value("reach_rnn") == 9 * 10 // 2


def test_paths_and_fading(page):
    assert page.value("path_conv") == "4, 8, 16, 32"
    assert page.value("path_conv_33") == 32
    assert page.value("path_attention") == 1
    assert 0.2 < page.value("fade_step") < 0.6
    assert page.value("fade_ratio_value") < 1e-5
    assert page.value("fade_ratio").startswith(f"{page.value('fade_ratio_value'):.0e}"[0])
    assert page.value("fade_attention") == pytest.approx(1, abs=0.08)


def test_costs_grow_with_length_or_width(page):
    for name in ("mlp", "attention"):
        assert page.value(f"cost_{name}_n") == 4 and page.value(f"cost_{name}_d") == 2
    for name in ("conv", "recurrence"):
        assert page.value(f"cost_{name}_n") == 2 and page.value(f"cost_{name}_d") == 4
    # glued for this test: "cost_mlp_n", "cost_mlp_d", "cost_conv_n", "cost_conv_d"
    assert page.value("cost_cross") == 17


def test_symmetries(page):
    assert page.value("shift_conv") < 1e-12 and page.value("shift_attention") < 1e-12
    assert page.value("shift_rnn") < 1e-12
    assert page.value("shift_mlp") > 0.1
    assert page.value("order_attention") < 1e-12
    assert min(page.value("order_mlp"), page.value("order_conv"), page.value("order_rnn")) > 0.1
    assert page.value("lengths_taken") == "convolution, recurrence, attention"


def test_padding_needs_a_mask(page):
    assert page.value("pad_no_mask") > 0.1
    assert page.value("pad_mask") < 1e-12
    assert "index 6 is out of bounds" in page.printed("except IndexError")


def test_models_are_of_like_size(page):
    assert 2000 < page.value("tasks_least") <= page.value("tasks_most") < 4000
    assert page.value("tasks_most") < 1.3 * page.value("tasks_least")


def test_each_task_has_its_architecture(page):
    assert page.value("motif_cnn") > 0.97 and page.value("motif_rnn") > 0.97
    assert 0.5 < page.value("motif_mlp") < 0.9 and 0.5 < page.value("motif_transformer") < 0.9
    assert max(page.value("motif_mlp"), page.value("motif_transformer")) - page.value("motif_counting") < 0.08
    assert page.value("place_mlp") > 0.97 and page.value("place_transformer") > 0.97
    assert 0.2 < page.value("place_cnn") < 0.45
    assert page.value("place_rnn") < 0.8
    others = [page.value(name) for name in ("majority_mlp", "majority_cnn", "majority_rnn")]
    assert page.value("majority_transformer") > max(others)
    assert page.value("majority_cnn") == min(others) < 0.93


def test_longer_inputs(page):
    assert page.value("long_place_rnn") < 0.35
    assert page.value("long_motif_rnn") < page.value("motif_rnn")
    assert page.value("long_motif_cnn") > 0.97
    assert page.value("long_place_transformer") > 0.9
    assert page.value("long_place_cnn") < 0.4
    for name in ("long_motif_transformer", "long_majority_cnn", "long_majority_rnn", "long_majority_transformer"):
        assert 0.25 < page.value(name) <= 1
    # shown in the figure only: "long_motif_transformer", "majority_rnn", "majority_mlp"


def test_equal_parameters_equal_accuracy_unequal_work(page):
    assert page.value("cnn_parameters") == 224_892
    assert page.value("cnn_layers") == "80 + 1,168 + 184,640 + 38,520 + 484"
    assert page.value("cnn_learn") == 400 and page.value("cnn_check") == 319
    assert page.value("cnn_worst") > 0.9
    assert page.value("cnn_gap") < 2 * page.value("cnn_paired") < page.value("cnn_error")
    assert page.value("cnn_spread") < 0.05
    assert page.value("cnn_multiply_pooled") == 222_336 and page.value("cnn_multiply_strided") == 55_584
    assert page.value("cnn_multiply_ratio") == 4
    assert page.value("cnn_shifted_most") < 0.85
    assert max(page.value("cnn_shifted_pooled"), page.value("cnn_shifted_strided")) < page.value("cnn_pooled") - 0.1


def test_the_source_compared_two_runs_within_chance(page):
    assert page.value("cnn_source_gap") == pytest.approx(1.33)
    assert page.value("cnn_source_error") == pytest.approx(1.71, abs=0.01)


def test_scrambled_pixels(page):
    assert abs(page.value("shuffle_mlp") - page.value("shuffle_mlp_scrambled")) < 0.015
    loss = page.value("shuffle_cnn") - page.value("shuffle_cnn_scrambled")
    assert 0 < loss < 0.05
    assert loss < 4 * page.value("shuffle_error") < 0.05
    assert page.value("shuffle_mlp") > page.value("shuffle_cnn") - 0.02
