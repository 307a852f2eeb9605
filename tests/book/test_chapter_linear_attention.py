"""Every claim that `linear-attention` measures, asserted on the executed chapter."""

from __future__ import annotations

from math import comb

import pytest
from book_build import chapter


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
        "la-count",
        "la-measured",
        "la-memory",
        "la-error",
        "la-fails",
        "la-sharp",
        "la-capacity",
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
    assert page.value("lowest_4") > 0.2
    assert page.value("lowest_6") > 0.1
    assert page.value("even_rootless") == 1
    assert page.value("root_1") == pytest.approx(-1, abs=1e-3)
    assert page.value("root_3") == pytest.approx(-1.596, abs=1e-3)
    assert page.value("root_5") == pytest.approx(-2.181, abs=1e-3)


def test_an_odd_order_leaves_the_range_of_the_values(page):
    assert page.value("odd_answer") == pytest.approx(6)
    assert 0 < page.value("exact_answer") < page.value("even_answer") < 1
    assert page.value("bad_1") > 3
    assert page.value("bad_3") > 3
    assert page.value("negative_3") > 70
    assert page.value("bad_even") == page.value("negative_even") == 0


def test_the_algorithm_is_exact_and_the_polynomial_is_not(page):
    assert page.value("algorithm_gap") < 1e-12
    assert page.value("to_softmax") > 0.05
    assert page.value("causal_gap") < 1e-12
    assert page.value("state_size") == 6 * 3
    assert page.value("cache_100k") == 12_800_000
    assert page.value("state_64") == 2145 * 65


def test_counts_and_crossings(page):
    assert "L = 12: full   864, linear   840" in page.printed("def counted")
    assert page.value("cross_3") == 12
    assert page.value("cross_16") == 158
    assert page.value("cross_64") == 2162


def test_time_has_the_slopes_of_the_count(page):
    assert 1.5 < page.value("slope_full") < 2.5
    assert 0.7 < page.value("slope_linear") < 1.4
    assert page.value("slope_full") > page.value("slope_linear") + 0.4
    assert page.value("ratio_2048") > 5
    assert 64 <= page.value("first_faster") <= 1024


def test_memory_has_the_slopes_of_the_count(page):
    assert page.value("slope_memory_full") == pytest.approx(2, abs=0.05)
    assert page.value("slope_memory_linear") == pytest.approx(1, abs=0.15)
    assert page.value("memory_full_2048") > 30
    assert page.value("memory_linear_2048") < 1
    assert page.value("memory_features_2048") == pytest.approx(2 * 2048 * 153 * 4 / 2**20)


def test_the_error_grows_with_the_scores(page):
    assert page.value("wrong_half") < 3 < page.value("wrong_one") < 20 < page.value("wrong_four_6")
    assert page.value("wrong_four") > 50
    assert page.value("error_slope") == pytest.approx(3, abs=0.3)


def test_a_polynomial_cannot_point(page):
    assert page.value("need_softmax") == pytest.approx(9.2, abs=0.1)
    assert page.value("need_4") == pytest.approx(21, abs=0.5)
    assert page.value("need_2") == pytest.approx(139, abs=2)


def test_a_fixed_state_forgets(page):
    assert page.value("recall_softmax") > 99
    assert page.value("recall_2_small") > 98
    assert page.value("recall_2_64") < 85
    assert 50 < page.value("recall_2") < page.value("recall_4") - 5
    assert page.value("recall_4") < 90


def test_the_library_is_what_is_approximated(page):
    assert page.value("library_gap") < 1e-12
    assert page.value("small_gap") < 0.01


def test_trained_lookups_follow_the_size_of_the_state(page):
    assert page.value("lookup_softmax") > 90
    assert page.value("lookup_2_few") > 95
    assert page.value("lookup_2_mid") > 90
    assert page.value("lookup_2_many") < page.value("lookup_softmax") - 10
    assert page.value("lookup_random") < page.value("lookup_2_many") - 5, "training helps"
    assert page.value("lookup_64") < page.value("lookup_softmax") - 10, "but not beyond the state"
    assert page.value("lookup_elu_few") < page.value("lookup_2_few") - 3
    assert page.value("lookup_elu_mid") < page.value("lookup_2_mid") - 20
    assert page.value("lookup_elu_many") < page.value("lookup_2_many") - 20
