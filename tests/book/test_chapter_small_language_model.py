"""Every claim that `small-language-model` measures, asserted on the executed chapter."""

from __future__ import annotations

import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("small-language-model")


@pytest.mark.parametrize(
    "label",
    [
        "lm-tokens",
        "lm-loss",
        "lm-units-trap",
        "lm-floors",
        "lm-sampling",
        "lm-work",
        "lm-torch",
        "lm-data",
        "lm-model",
        "lm-training",
        "lm-leak",
        "lm-writing",
        "lm-cache",
        "lm-heads",
        "lm-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_merging_takes_a_pair_away_from_others(page):
    assert page.value("th_after") < page.value("th_before") / 2
    assert page.value("zen_letters") == 856
    assert page.value("zen_tokens") < page.value("zen_letters")
    assert page.value("zen_vocabulary") == page.value("zen_kinds") + 60


def test_floors_lie_in_their_order(page):
    assert page.value("zen_bigram") < page.value("zen_unigram") < page.value("zen_uniform")
    assert page.value("floor_bigram") < page.value("floor_unigram") < page.value("floor_uniform")
    assert page.value("floor_uniform") == pytest.approx(6.238, abs=1e-3), "512 tokens"


def test_top_p_adapts(page):
    assert [page.value(f"kept_{name}") for name in ("cold", "one", "warm")] == [2, 3, 4]


def test_work_is_counted(page):
    assert page.value("work_tokens") == pytest.approx(1001 / 2)
    assert page.value("work_scores") == pytest.approx(1002 / 3)


def test_the_model_beats_its_floors_in_all_runs(page):
    assert ends(page.value("final_loss"))[1] < page.value("floor_bigram") - 0.4
    assert page.value("counts_5") < ends(page.value("final_loss"))[0]
    assert ends(page.value("train_loss"))[1] < ends(page.value("final_loss"))[0]
    assert ends(page.value("far_128"))[1] < ends(page.value("far_256"))[0]
    assert page.value("xz_bits") < ends(page.value("final_bits"))[0] < page.value("floor_bits")
    assert ends(page.value("late_loss"))[1] < ends(page.value("early_loss"))[0]
    assert ends(page.value("first_loss"))[0] > ends(page.value("late_loss"))[1]


def test_what_it_writes_is_between_the_floors_and_the_text(page):
    assert page.value("unigram_words") < page.value("bigram_words") < ends(page.value("one_words"))[0]
    assert ends(page.value("one_words"))[1] <= page.value("true_words")
    assert ends(page.value("hot_words"))[1] < ends(page.value("cool_words"))[0]
    assert ends(page.value("greedy_repeats"))[0] > ends(page.value("one_repeats"))[1]


def test_the_cache_changes_nothing_and_saves_what_was_counted(page):
    assert page.value("cache_ratio") == pytest.approx(129 / 2)
    assert page.value("cache_held") == page.value("cache_formula")
    assert "⁻" in page.value("cache_gap")
    assert ends(page.value("clock_gain"))[1] < page.value("cache_ratio")


def test_heads_are_compared_with_an_even_look(page):
    assert ends(page.value("head_previous"))[0] > page.value("even_previous")
    assert ends(page.value("head_first"))[1] < 2 * page.value("even_previous")
    assert ends(page.value("head_induction"))[1] < 2 * page.value("even_induction")
