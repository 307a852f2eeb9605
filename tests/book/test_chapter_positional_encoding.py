"""Every claim that `positional-encoding` measures, asserted on the executed chapter."""

from __future__ import annotations

import numpy as np
import pytest
from book_build import chapter, ends


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
        "pe-base",
        "pe-learned",
        "pe-torch",
        "pe-task",
        "pe-extrapolation",
        "pe-extension",
        "pe-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_attention_is_equivariant_and_a_causal_mask_is_not(page):
    assert page.value("spread_plain") < 1e-12
    assert page.value("distinct_causal") == 4


def test_candidates_for_a_code(page):
    assert page.value("binary_low") == 1.0
    assert page.value("binary_high") == pytest.approx(np.sqrt(11), abs=1e-3)
    assert page.value("clock_high") - page.value("clock_low") < 1e-9


def test_dot_products_of_sinusoids_ripple(page):
    assert 1 > page.value("wide_1") > 0.96 > page.value("wide_10") > page.value("wide_50")
    assert page.value("rises") > 10
    assert page.value("narrow_rises") > 10


def test_wrong_layouts_pass_the_popular_tests_and_fail_one_element(page):
    assert page.value("trap_pass") == 4
    assert page.value("trap_error") > 0.9
    rows = {line.split()[0]: line.split()[1:6] for line in page.printed("wrong = {").splitlines()[1:]}
    assert rows["slow"] == ["passes"] * 4 + ["-"], "only the slowest hand betrays wrong speeds"
    assert all(row[:2] == ["passes", "passes"] and "-" in row[2:] for row in rows.values())


def test_one_rotation_moves_every_place_by_a_step(page):
    assert page.value("miss_clock") < 1e-10
    assert page.value("miss_random") > 1


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


def test_stretched_four_times_as_in_the_exercise():
    speeds = (10000 * 4 ** (8 / 6)) ** (-np.arange(4) / 4)
    assert np.allclose(1 / speeds, [1, 15.9, 252, 4000], rtol=2e-3)


def test_one_block_for_word_and_place_is_adding():
    rng = np.random.default_rng(5)
    x, p, W = rng.normal(size=(3, 8)), rng.normal(size=(3, 8)), rng.normal(size=(8, 4))
    assert np.allclose(np.concatenate([x, p], axis=1) @ np.concatenate([W, W]), (x + p) @ W)


def test_a_wide_sum_keeps_the_word_readable_and_the_place_roughly(page):
    assert ends(page.value("word_8"))[1] < 0.6
    assert page.value("word_64") > 0.98
    assert page.value("near_64") > 0.95
    assert 0.5 < ends(page.value("place_64"))[0] <= ends(page.value("place_64"))[1] < 0.85


def test_a_bias_is_relative_only_for_suitable_codes_and_matrices(page):
    assert page.value("uneven_apart") < 1e-9
    assert ends(page.value("uneven_any"))[0] > 0.15
    assert ends(page.value("uneven_random"))[0] > 0.15


def test_alibi_heads_are_windows(page):
    assert page.value("reach_short") == 10
    assert abs(page.value("reach_long") - np.log(10) * 256) < 1, "nine tenths of a geometric series"


def test_rotary_scores_depend_on_the_distance_and_its_sign(page):
    assert page.value("rotary_spread") < 1e-9
    assert page.value("rotary_forward") != page.value("rotary_back")
    printed = page.printed("def rotary_score").splitlines()
    assert len({line.split("score")[1] for line in printed[:3]}) == 1
    assert printed[4].split()[-1] == printed[5].split()[-1]


@pytest.mark.parametrize("seed", [301, 302])
def test_turning_is_multiplication_by_a_unit_number(seed):
    """The five lines of the chapter against complex numbers, for sizes of our own."""
    rng = np.random.default_rng(seed)
    x, places = rng.normal(size=(5, 6)), np.array([0, 3, 4, 50, 1000])
    speed = 10000.0 ** (-np.arange(3) / 3)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * places[:, None] * speed)
    space: dict = {"np": np}
    cell = next(c for c in chapter("positional-encoding").notebook.cells if "def rotate(" in c.source)
    exec(cell.source.split("\nquery, key")[0], space)
    turned = space["rotate"](x, places)
    assert np.allclose(turned[:, 0::2] + 1j * turned[:, 1::2], z)


def test_a_larger_base_sees_farther(page):
    assert page.value("turn_1e4") == f"{2 * np.pi * 1e4 ** (63 / 64):,.0f}"
    assert float(page.value("turn_5e5")) == pytest.approx(2 * np.pi * 5e5 ** (63 / 64) / 1e6, abs=0.05)
    near, far = (int(page.value(name).replace(",", "")) for name in ("quarter_1e4", "quarter_5e5"))
    assert far > 5 * near


def test_packed_sequences_do_not_see_each_other(page):
    assert page.printed("packed and one by one agree").strip().endswith("True")


def test_angles_in_half_precision_move_scores(page):
    assert page.value("moved_half") > 0.3


@pytest.mark.parametrize("T", [24, 192])
def test_what_counting_digits_gets(page, T):
    """The order-free floor by another way: of the earlier tokens any may be the last digit."""
    rng = np.random.default_rng(T)
    right = []
    for _ in range(1500):
        digits = [int(rng.integers(10))]
        last, seen = digits[0], np.bincount(digits, minlength=10)
        for place in range(1, T):
            if rng.random() < 0.2:
                last = int(rng.integers(10))
                seen[last] += 1
                answer = last
            else:
                answer = int(rng.choice(np.flatnonzero(seen == seen.max())))
            if place >= T // 2:
                right.append(answer == last)
    assert page.value(f"counting_{T}") == pytest.approx(np.mean(right), abs=0.03)


def test_inside_the_training_length_two_layers_do_without_a_code_and_one_does_not(page):
    assert ends(page.value("nope_24"))[0] > 0.75 > 0.65 > ends(page.value("shallow_24"))[1]


def test_schemes_differ_beyond_the_training_length(page):
    for name in ("learned_48", "sinusoidal_96", "rope_192"):
        assert ends(page.value(name))[1] < 0.65
    assert ends(page.value("nope_48"))[0] > ends(page.value("learned_48"))[1]
    assert sum(ends(page.value("nope_48"))) > sum(ends(page.value("sinusoidal_48")))
    assert ends(page.value("nope_96"))[0] > ends(page.value("rope_96"))[1]
    assert ends(page.value("patient_48"))[0] > sum(ends(page.value("nope_48"))) / 2, "it learns slowly"
    assert ends(page.value("patient_192"))[0] > page.value("counting_192") + 0.03
    assert ends(page.value("rope_48"))[0] > 0.7
    assert ends(page.value("alibi_192"))[0] > 0.9 > ends(page.value("relative_192"))[1]


def test_rope_is_stretched_without_training(page):
    assert ends(page.value("window_192"))[0] > 0.93 > ends(page.value("interpolation_192"))[1]
    assert ends(page.value("interpolation_192"))[0] > ends(page.value("rope_192"))[1] + 0.2
    assert ends(page.value("clamped_192"))[0] > 0.85, "the distances, not the number of keys"
    assert ends(page.value("ntk_48"))[0] > 0.85
    assert ends(page.value("ntk_192"))[1] < 0.4
