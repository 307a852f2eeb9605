"""Every claim that `hand-designed-heads` measures, asserted on the executed chapter."""

from __future__ import annotations

import numpy as np
import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("hand-designed-heads")


@pytest.mark.parametrize(
    "label",
    [
        "hh-basis",
        "hh-content",
        "hh-sharpness",
        "hh-width-trap",
        "hh-begin",
        "hh-average",
        "hh-position",
        "hh-previous",
        "hh-induction",
        "hh-freedom",
        "hh-second",
        "hh-torch",
        "hh-compare",
        "hh-longer",
        "hh-stuck",
        "hh-induction-learned",
        "hh-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_content_head_finds_partners_in_every_text_and_is_lost_without_one(page):
    assert page.value("content_texts") == 4 + 16 + 64 + 256
    assert page.value("content_rows") + page.value("content_lost") == 4 + 2 * 16 + 3 * 64 + 4 * 256
    assert page.value("content_weakest") > 0.99
    assert 0.5 < page.value("content_weak_scale") < 0.9
    assert page.value("content_spread") == pytest.approx(1)
    assert page.value("content_half") == pytest.approx(0.5, abs=1e-3)


def test_gap_for_a_weight_of_99_hundredths(page):
    for name, keys in (("sharp_gap_4", 4), ("sharp_gap_12", 12), ("sharp_gap_100", 100)):
        assert page.value(name) == pytest.approx(np.log(99 * (keys - 1)))
    assert page.value("sharp_slope_3") > 0.1
    assert page.value("sharp_slope_14") == "2·10⁻⁶"


def test_useless_columns_blunt_a_head(page):
    assert page.value("pad_narrow") == pytest.approx(np.exp(7) / (np.exp(7) + 3))
    assert page.value("pad_wide") == pytest.approx(np.exp(7 / 4) / (np.exp(7 / 4) + 3))


def test_begin_is_the_default(page):
    assert page.value("begin_lonely") > 0.99
    assert min(page.value("begin_partner"), page.value("begin_default")) > 0.99
    assert page.value("begin_worst") < 0.01


def test_an_average_does_not_count(page):
    assert page.value("average_one") == page.value("average_three")
    assert page.value("average_gap") < 1e-3


def test_mirror_head_reverses_every_text_of_five_and_no_shorter_one(page):
    assert page.value("mirror_read") == "(()[]"[::-1]
    assert page.value("mirror_texts") == 4**5
    assert page.value("mirror_weakest") > 0.99
    assert page.value("mirror_change") == 0
    assert page.value("mirror_error") < 0.01
    assert page.value("mirror_short") == pytest.approx(1 / 3)


def test_a_clock_needs_a_scale_that_grows_with_the_square(page):
    assert page.value("clock_slope") == pytest.approx(2, abs=0.05)
    assert page.value("clock_blunt") < 0.7 < 0.99 < page.value("clock_sharp")
    assert page.value("clock_12") > 5 * np.log(99 * 11)
    assert page.value("onehot_192") == pytest.approx(np.log(99 * 191))
    assert page.value("clock_192") > 900 * page.value("onehot_192")


def test_a_disguised_head_is_the_same_head(page):
    assert page.value("free_q") > 1 and page.value("free_k") > 1 and page.value("free_table") > 1
    for name in ("free_centred", "free_weights"):
        assert page.value(name)[-3:] in {f"⁻¹{digit}" for digit in "²³⁴⁵⁶⁷"}


def test_the_induction_circuit_is_right_in_every_short_text(page):
    assert page.value("induction_rows") == sum(n * 4**n for n in range(1, 6))
    assert min(page.value("induction_first"), page.value("induction_second")) > 0.99
    assert page.value("induction_output") < 0.01


def test_two_tables_have_one_map(page):
    assert page.value("second_gap") < 0.002


def test_learned_heads_agree_in_patterns_gaps_and_outputs(page):
    assert ends(page.value("learned_weakest"))[0] > 0.97
    assert page.value("learned_map_gap") < 0.03
    assert page.value("learned_out_gap") < 0.03
    for name in ("learned_partner", "learned_begin"):
        assert 3 < ends(page.value(name))[0] <= ends(page.value(name))[1] < 8, (
            "smaller than the 8 of the hand-made head"
        )


@pytest.mark.slow
def test_some_learned_heads_have_the_second_table(page):
    assert 0 < page.value("learned_second") < 15
    assert page.value("below_least") < 4 < page.value("below_most")
    assert page.value("table_cosine") < 0.9
    assert abs(page.value("learned_cosine") - page.value("chance_cosine")) < 0.05


def test_a_gap_is_paid_for_in_steps(page):
    assert ends(page.value("steps_growth"))[0] > 0.1
    assert ends(page.value("steps_last"))[1] < 8 < ends(page.value("quick_gap"))[0]
    assert ends(page.value("long_learned"))[1] < page.value("long_hand")


def test_learning_values_as_well_gets_stuck(page):
    assert page.value("stuck_free") <= 4
    assert 0.2 < page.value("stuck_even") < 0.3
    assert ends(page.value("stuck_range"))[0] < 0.6 < page.value("stuck_freed_mean")


@pytest.mark.slow
def test_two_layers_learn_the_circuit_and_the_same_heads_in_one_do_not(page):
    assert ends(page.value("circuit_right"))[0] > 0.9
    assert page.value("circuit_floor") < ends(page.value("circuit_one"))[0] <= ends(page.value("circuit_one"))[1] < 0.7
    assert ends(page.value("circuit_inside"))[0] > 0.95
    assert page.value("circuit_keys") >= 6
    assert ends(page.value("cut_k"))[1] < 0.6 < 0.7 < ends(page.value("cut_qv"))[0], "keys are composed"
    assert min(ends(page.value("circuit_previous"))[0], ends(page.value("circuit_induction"))[0]) > 0.5
