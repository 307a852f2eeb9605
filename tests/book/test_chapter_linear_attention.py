"""Every claim that `linear-attention` measures, asserted on the executed chapter."""

from __future__ import annotations

from math import comb

import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("linear-attention")


@pytest.mark.parametrize(
    "label",
    [
        "la-order",
        "la-feature-map",
        "la-dimension",
        "la-positive",
        "la-algorithm",
        "la-causal",
        "la-chunks",
        "la-count",
        "la-measured",
        "la-memory",
        "la-error",
        "la-fails",
        "la-sharp",
        "la-capacity",
        "la-writing",
        "la-hybrids",
        "la-other-maps",
        "la-torch",
        "la-trained",
        "la-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_brackets_move(page):
    assert page.value("bracket_gap") < 1e-12
    assert (page.value("between_left"), page.value("between_right")) == (36, 4)


def test_the_feature_map_gives_the_polynomial(page):
    assert page.value("phi_gap") < 1e-12
    assert page.value("phi_wrong") > 1


def test_the_dimension_has_a_closed_form(page):
    assert page.value("dimension_agrees") == 1
    assert page.value("m_64_2") == 2145
    assert page.value("m_64_4") == comb(68, 4)
    assert page.value("m_16_2") == 153


def test_even_orders_are_positive_and_odd_ones_are_not(page):
    assert page.value("lowest_2") == pytest.approx(0.5, abs=1e-6)
    assert page.value("lowest_6") > 0.1
    assert page.value("odd_answer") == pytest.approx(6)
    assert page.value("negative_3") > 70
    assert page.value("negative_even") == 0


def test_the_algorithm_is_exact_and_the_polynomial_is_not(page):
    assert page.value("algorithm_gap") < 1e-12
    assert page.value("to_softmax") > 0.01
    assert page.value("causal_gap") < 1e-12
    assert page.value("state_size") == 6 * 3
    assert page.value("cache_100k") == 12_800_000
    assert page.value("state_64") == 2145 * 65
    assert page.value("state_even") == 1089


def test_counts_and_crossings(page):
    assert "T = 12: full   864, linear   840" in page.printed("def counted")
    assert page.value("cross_3") == 12
    assert page.value("cross_16") == 158
    assert page.value("cross_64") == 2162


def test_time_has_the_slopes_of_the_count(page):
    assert 1.5 < page.value("slope_full") < 2.5
    assert 0.7 < page.value("slope_linear") < 1.4
    assert page.value("slope_full") > page.value("slope_linear") + 0.4
    assert page.value("ratio_2048") > 5
    assert 64 <= page.value("first_faster") <= 1024


def test_memory_grows_as_counted(page):
    assert page.value("memory_full_double") == pytest.approx(4, abs=0.2)
    assert page.value("memory_linear_double") == pytest.approx(2, abs=0.2)
    assert page.value("memory_linear_16384") < 4 < 30 < page.value("memory_full_2048")


def test_the_error_grows_with_the_scores(page):
    assert page.value("wrong_half") < 3 < page.value("wrong_one") < 20 < page.value("wrong_four_6")
    assert page.value("wrong_four") > 50


def test_a_polynomial_cannot_point(page):
    assert page.value("need_softmax") == pytest.approx(9.2, abs=0.1)
    assert page.value("need_4") == pytest.approx(21, abs=0.5)
    assert page.value("need_2") == pytest.approx(139, abs=2)


def test_below_the_rank_the_price_is_that_of_writing_by_sum(page):
    assert page.value("recall_best") == "1.00"
    assert ends(page.value("recall_sum"))[1] < 0.9 > ends(page.value("recall_once"))[1]
    assert ends(page.value("recall_often"))[0] > 0.8
    assert 0.5 < page.value("recall_256") < 0.75 < 0.85 < ends(page.value("recall_64"))[0]


def test_each_writing_rule_wins_somewhere(page):
    def mean(name):
        return float(page.value(f"write_{name}").split(" ± ")[0])

    assert mean("noisy_sum") < 0.5 * mean("noisy_delta")
    assert mean("drift_decay") < 0.85 * mean("drift_sum")
    assert mean("new_gate") < 0.85 * mean("new_decay")
    assert mean("over_delta") == 0 < page.value("write_over_tuned") < mean("over_decay")
    assert page.value("write_drift_stepped") == pytest.approx(page.value("write_drift_tuned"), rel=0.1)
    assert mean("noisy_sum") < page.value("write_noisy_stepped") < mean("noisy_delta")
    assert mean("new_gate") < page.value("write_new_tuned") < mean("new_decay")


def test_the_library_is_what_is_approximated(page):
    assert page.value("library_gap") < 1e-12
    assert page.value("small_gap") < 0.01


def test_trained_lookups_follow_the_size_of_the_state(page):
    assert ends(page.value("lookup_softmax"))[0] > 0.9
    assert ends(page.value("lookup_2_many"))[1] < ends(page.value("lookup_softmax"))[0] - 0.1
    assert ends(page.value("lookup_elu_many"))[1] < ends(page.value("lookup_2_many"))[0] - 0.1
    assert ends(page.value("lookup_elu_many"))[0] > page.value("bag_many")
    assert ends(page.value("lookup_elu_mid"))[1] < ends(page.value("lookup_2_mid"))[0]
    assert ends(page.value("wide_many"))[0] > ends(page.value("lookup_elu_many"))[1]
    assert ends(page.value("lookup_64_long"))[0] > ends(page.value("lookup_64_short"))[0], "still rising"
