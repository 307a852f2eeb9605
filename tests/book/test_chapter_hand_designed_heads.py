"""Every claim that `hand-designed-heads` measures, asserted on the executed chapter."""

from __future__ import annotations

import numpy as np
import pytest
from book_build import chapter


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
        "hh-freedom",
        "hh-torch",
        "hh-compare",
        "hh-longer",
        "hh-stuck",
        "hh-shortcut",
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
    assert page.value("clock_wrap") > 0.99


def test_a_disguised_head_is_the_same_head(page):
    assert page.value("free_q") > 1 and page.value("free_k") > 1 and page.value("free_table") > 1
    for name in ("free_centred", "free_weights"):
        assert page.value(name)[-3:] in {f"⁻¹{digit}" for digit in "²³⁴⁵⁶⁷"}


def test_learned_heads_agree_in_patterns_gaps_and_outputs_only(page):
    assert page.value("learned_weakest") > 0.96
    assert page.value("learned_mean") > 0.98
    assert page.value("learned_map_gap") < 0.04
    assert page.value("learned_out_gap") < 0.04
    assert page.value("learned_table_cosine") > 0.95
    assert page.value("learned_hand_cosine") > 0.95
    assert page.value("learned_cosine") < 0.7
    assert page.value("learned_lead_partner") > 3 and page.value("learned_lead_begin") > 3
    assert page.value("learned_lead_most") < 7, "all leads are smaller than the 8 of the hand-made head"


def test_firmness_grows_with_the_logarithm_of_the_steps(page):
    first, second, third = (page.value(f"steps_lead_{n}") for n in (200, 400, 800))
    assert 0.3 < second - first < 1.2 and 0.3 < third - second < 1.2
    assert 0.5 < (third - second) / (second - first) < 2
    assert page.value("long_learned") < 0.85 < 0.95 < page.value("long_hand")
    assert page.value("long_learned_low") <= page.value("long_learned")


def test_learning_values_as_well_gets_stuck(page):
    assert page.value("stuck_given") == page.value("stuck_seeds") == 4
    assert page.value("stuck_free") <= 1
    assert page.value("stuck_best") < 0.95 or page.value("stuck_free") == 1


def test_learned_position_heads_are_good_and_not_quite_blind_to_signs(page):
    assert min(page.value("place_opposite"), page.value("place_previous")) > 0.97
    assert 1e-4 < page.value("place_change_least") <= page.value("place_change") < 0.05
    assert page.value("place_sign_rows") > page.value("place_place_rows") / 2, "the rows of the signs are not small"
    assert page.value("place_lead_move") > 2 and page.value("place_lead_least") > 4, "only outvoted"


def test_a_shortcut_is_learned_when_the_data_allow_it(page):
    assert page.value("short_texts") == 2 * 2**4
    assert page.value("short_home") > 0.98
    assert page.value("short_away") < 0.3
    assert page.value("short_mixed") > 0.97
