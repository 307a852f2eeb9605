"""Every claim that `multi-head-attention` measures, asserted on the executed chapter."""

from __future__ import annotations

from pathlib import Path

import pytest
from book_build import chapter


@pytest.fixture(scope="module")
def page():
    return chapter("multi-head-attention")


@pytest.mark.parametrize(
    "label",
    [
        "mh-three-questions",
        "mh-one-average",
        "mh-definition",
        "mh-sum",
        "mh-cost",
        "mh-ambiguous",
        "mh-shapes",
        "mh-reshape",
        "mh-masks",
        "mh-mask-axis",
        "mh-planted",
        "mh-mean-map",
        "mh-ablation",
        "mh-too-many",
        "mh-torch",
        "mh-torch-mask",
        "mh-trained",
        "mh-trained-ablation",
        "mh-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_every_number_for_the_prose_is_used_or_asserted_here(page):
    here = Path(__file__).read_text(encoding="utf-8")
    unused = [name for name in page.glued if not page.shown(name) and f'"{name}"' not in here]
    assert not unused


def test_three_heads_answer_three_questions_and_one_shares_its_row(page):
    assert page.value("three_right") > 0.99
    assert page.value("one_share") == pytest.approx(1 / 3, abs=0.005)
    assert 0 < page.value("one_left") < 0.01


def test_exchanged_names_are_the_same_to_one_head(page):
    assert page.value("one_gap") == 0.0
    assert page.value("three_gap") > 0.9


def test_packed_answers_are_lost_in_noise_first(page):
    assert page.value("noisy_three") > 99
    assert 48 < page.value("noisy_one") < 60


def test_the_output_is_a_sum_over_heads(page):
    assert page.value("sum_gap") < 1e-12
    assert page.value("head_rank") == 2


def test_costs_do_not_depend_on_the_number_of_heads(page):
    lines = [line.split() for line in page.printed("projections + products").splitlines()[1:]]
    assert len({(line[2], line[3]) for line in lines}) == 1
    assert page.value("n_parameters") == 2_359_296
    assert page.value("maps_12") == 12 * page.value("maps_1") == 12 * 512**2


def test_an_ambiguous_word_hears_both_answers_only_from_two_heads(page):
    assert page.vector("sense_flew") == pytest.approx([0.99, 0.0], abs=0.01)
    assert page.vector("sense_broke") == pytest.approx([0.0, 0.99], abs=0.01)
    assert page.vector("sense_mixed") == pytest.approx([0.5, 0.0], abs=0.01)
    assert page.value("number_flew") > 0.98
    assert page.value("number_mixed") == pytest.approx(0.5, abs=0.01)
    assert page.value("animal_before") == 0.5 < page.value("animal_one") < page.value("animal_two") - 0.05


def test_shapes_of_the_coursework_example(page):
    assert page.value("shape_q") == "(1, 5, 12, 64)"
    assert page.value("shape_map") == "(1, 12, 5, 5)"
    assert page.value("shape_z_heads") == "(1, 5, 12, 64)"
    assert page.value("shape_z") == "(1, 5, 768)"
    assert page.value("loop_gap") < 1e-10


def test_the_wrong_reshape_mixes_tokens(page):
    assert (page.value("wrong_rows"), page.value("right_rows")) == (2, 4)


def test_what_is_masked_moves_nothing(page):
    assert (page.value("allowed_long"), page.value("allowed_short")) == (15, 12)
    assert page.value("leak_none") > 0.1
    assert page.value("leak_padding") == 0.0
    assert page.value("leak_causal") == 0.0
    assert page.value("after_causal") > 0.01


def test_a_mask_without_its_axis_becomes_a_mask_of_heads(page):
    assert page.value("mask_right") == "(3, 3, 3)"
    assert page.value("mask_wrong") == "(5, 3, 4)"
    assert page.value("pads_seen") > 0 < page.value("pads_hidden")


def test_the_mean_of_the_maps_hides_the_jobs(page):
    assert page.value("mean_next") == pytest.approx(0.5, abs=0.01)
    assert page.value("mean_other") == pytest.approx(1 / 6, abs=0.01)
    assert page.value("mean_same") == pytest.approx(1 / 18, abs=0.01)


def test_each_planted_head_is_needed_for_its_own_question_only(page):
    assert page.value("all_right") == 1.0
    assert page.value("damage_own") >= 0.5
    assert page.value("damage_other") == 0.0


def test_narrow_heads_have_few_favourites_and_small_leads(page):
    assert page.value("favourites_line") == 2
    assert page.value("favourites_circle") == 16
    assert page.value("lead_circle") == pytest.approx(0.076, abs=0.001)
    assert page.value("lead_corners") == 1.0
    assert page.value("gain_circle") == pytest.approx(69.5, abs=1)
    assert page.value("gain_corners") == pytest.approx(7.3, abs=0.05)


def test_the_library_agrees_once_masks_are_inverted(page):
    assert page.value("torch_gap") < 1e-12
    assert page.value("torch_map_gap") < 1e-12
    assert page.value("mask_gap") < 1e-12
    assert page.value("mask_wrong_gap") > 0.1


def test_one_trained_head_fails_where_several_succeed(page):
    assert page.value("same_parameters") == 1
    assert page.value("trained_1") < 85
    assert page.value("trained_2") > page.value("trained_1") + 8
    assert page.value("trained_3") > 95
    assert page.value("trained_6") > 97


def test_three_trained_heads_share_out_the_parts_with_seed_0_only(page):
    assert page.value("parts_0") == 3
    assert {page.value(f"{which}_job") for which in ("first", "second", "third")} == {"giver", "gift", "receiver"}
    assert page.value("clear_0") > 0.9
    assert page.value("clear_1") < 0.75
    assert 0.2 < page.value("one_low") <= page.value("one_high") < 0.5
    assert page.value("no_part") < 0.1


def test_switching_trained_heads_off_costs_their_own_question(page):
    assert page.value("lost_own") > 80
    assert page.value("lost_others") < 15
    assert page.value("lost_six_mean") < page.value("lost_three_mean") - 5
