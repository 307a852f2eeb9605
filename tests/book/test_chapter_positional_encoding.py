"""Every claim that `positional-encoding` measures, asserted on the executed chapter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from book_build import chapter


@pytest.fixture(scope="module")
def page():
    return chapter("positional-encoding")


@pytest.mark.parametrize(
    "label",
    [
        "pe-no-order",
        "pe-wanted",
        "pe-clock",
        "pe-distance",
        "pe-layout",
        "pe-shift",
        "pe-add-concat",
        "pe-relative",
        "pe-alibi",
        "pe-rotary",
        "pe-pairs",
        "pe-learned",
        "pe-torch",
        "pe-task",
        "pe-extrapolation",
        "pe-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_every_number_for_the_prose_is_used_or_asserted_here(page):
    here = Path(__file__).read_text(encoding="utf-8")
    unused = [name for name in page.glued if not page.shown(name) and f'"{name}"' not in here]
    assert not unused


def test_attention_is_equivariant_and_a_causal_mask_is_not(page):
    assert page.value("spread_plain") < 1e-12
    assert page.value("spread_causal") > 0.1
    assert page.value("distinct_causal") == 4


def test_candidates_for_a_code(page):
    assert page.value("number_largest") == 1500
    assert page.value("share_moved") == pytest.approx(0.25)
    assert page.value("binary_low") == 1.0
    assert page.value("binary_high") == pytest.approx(np.sqrt(11), abs=1e-3)
    assert page.value("clock_high") - page.value("clock_low") < 1e-9


def test_dot_products_of_sinusoids_depend_on_the_distance_and_ripple(page):
    assert page.value("along") < 1e-12
    assert 1 > page.value("wide_1") > page.value("wide_10") > page.value("wide_50")
    assert page.value("rises") > 10
    assert page.value("narrow_rises") > 10


def test_wrong_layouts_pass_the_popular_tests(page):
    assert page.value("trap_pass") == 3
    assert page.value("trap_error") > 0.9


def test_one_rotation_moves_every_place_by_a_step(page):
    assert page.value("miss_clock") < 1e-10
    assert page.value("miss_far") < 1e-9
    assert page.value("miss_random") > 1
    assert page.value("block_gap") < 1e-9
    assert page.value("outside") < 1e-9


def test_the_step_back_of_the_exercise_is_the_transpose():
    angle = 3 / np.array([1, 10, 100, 1000])
    M = np.zeros((8, 8))
    for i, a in enumerate(angle):
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
    turn = np.arange(30)[:, None] / np.array([1, 10, 100, 1000])
    P = np.stack([np.sin(turn), np.cos(turn)], axis=2).reshape(30, 8)
    assert np.allclose(P[:-3] @ M, P[3:])
    assert np.allclose(P[3:] @ M.T, P[:-3])


def test_two_hands_meet_first_at_377():
    turn = np.arange(1, 2000)[:, None] / np.array([1, 10])
    codes = np.stack([np.sin(turn), np.cos(turn)], axis=2).reshape(-1, 4)
    near = np.abs(codes - np.array([0, 1, 0, 1])).max(axis=1) < 0.1
    assert 1 + np.flatnonzero(near)[0] == 377


def test_adding_gives_four_terms_and_concatenating_two_unless_mixed(page):
    assert page.value("four_gap") < 1e-12
    assert page.value("two_gap") < 1e-12
    assert page.value("tied_gap") < 1e-12
    lines = page.printed("concatenated, parts kept apart").splitlines()
    assert len(lines) == 3
    assert all(line.endswith("True") for line in lines)


def test_a_wide_sum_keeps_word_and_place_readable(page):
    assert page.value("word_8") < 50
    assert page.value("place_8") < 40
    assert page.value("word_256") > 99
    assert page.value("place_256") > 99


def test_a_bias_is_relative_only_for_suitable_codes_and_matrices(page):
    assert page.value("uneven_plain") < 1e-12
    assert page.value("uneven_apart") < 1e-12
    assert page.value("uneven_any") > 0.3
    assert page.value("uneven_random") > 0.3


def test_alibi_heads_are_windows(page):
    assert page.value("reach_short") == 10
    assert page.value("reach_long") > 150


def test_rotary_scores_depend_on_the_distance_and_its_sign(page):
    assert page.value("rotary_spread") < 1e-10
    assert abs(page.value("rotary_forward") - page.value("rotary_back")) > 0.1
    assert page.value("rotary_zero") < 1e-12
    assert page.value("pair_gap_0") < 1e-12
    assert page.value("pair_gap_5") > 0.5


def test_a_learned_table_has_no_row_beyond_its_length(page):
    assert "out of bounds" in page.printed("24 places")


def test_all_schemes_but_none_learn_the_task(page):
    assert page.value("inside_low") > 85
    assert page.value("none_24") < page.value("inside_low") - 20
    assert page.value("rotary_24") >= page.value("alibi_24")


def test_schemes_differ_beyond_the_training_length(page):
    assert page.value("learned_48") < 65
    assert page.value("sinusoidal_48") < 65
    assert page.value("learned_192") < 40
    assert page.value("sinusoidal_192") < 40
    assert page.value("rotary_48") > max(page.value("learned_48"), page.value("sinusoidal_48")) + 5
    assert page.value("rotary_192") < 60
    assert 55 < page.value("relative_192") < page.value("alibi_192") - 5
    assert page.value("alibi_192") > 85
    assert page.value("none_192") < page.value("none_24")


def test_the_best_head_finds_the_digit_no_longer_except_with_alibi(page):
    assert page.value("found_short") > 0.5
    assert page.value("found_long") < 0.3
    assert page.value("found_relative_long") < page.value("found_relative_short") - 0.1
    assert abs(page.value("found_alibi_long") - page.value("found_alibi_short")) < 0.1
