"""What the chapter on attention between recurrent networks claims, asserted on its executed notebook."""

import re

import numpy as np
import pytest
from book_build import BOOK, chapter


@pytest.fixture(scope="module")
def value():
    return chapter("rnn-attention").value


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(r"[-−]?\d+\.\d+", text)]


def test_a_state_forgets(value):
    assert value("trace_0") > 1
    assert value("trace_50") < 0.02
    assert value("trace_200") < 1e-6


def test_a_state_recalls_no_more_than_its_width(value):
    found = [value(f"memory_{n}") for n in (5, 10, 20, 40)]
    assert found == sorted(found)
    assert all(recalled <= n for recalled, n in zip(found, (5, 10, 20, 40), strict=True))
    assert value("memory_20_far") < 0.05
    assert value("memory_kept") > 0.9


def test_bahdanaus_attention_by_hand(value):
    assert numbers(value("hand_energies")) == [1.523, 1.166, 0.0, 1.928]
    assert numbers(value("hand_alpha")) == [0.293, 0.205, 0.064, 0.439]
    assert numbers(value("hand_context")) == [0.731, 0.644, 0.064]
    assert numbers(value("hand_literal")) == [0.032, 0.087, 0.237, 0.644]
    assert value("hand_peak_raw") > value("hand_peak_scaled") + 0.2


def test_scores(value):
    assert value("scores_bound") == 3
    assert value("scores_additive") <= value("scores_bound")
    assert value("scores_general") == pytest.approx(900)
    assert value("scores_saving") > 10


def test_the_planted_alignment(value):
    assert value("planted_not") > 1.5
    assert value("planted_does") < 0.6
    assert 0.05 < value("planted_le_cat") < 0.3


def test_similarities_by_hand(value):
    assert value("similar_jaccard") == pytest.approx(1 / 5)
    assert value("similar_cosine") == pytest.approx(1 / 3)
    assert value("similar_letters") == pytest.approx(1 - 2 / 15)


def test_the_bottleneck(value):
    assert value("copy_size_without") >= value("copy_size_with")
    assert value("copy_size_without") < 1.05 * value("copy_size_with")
    assert 2.5 < value("copy_size_wide") / value("copy_size_with") < 4
    assert value("copy_with_16") > 0.95
    assert value("copy_with_24") < 0.95
    assert value("copy_without_4") > 0.85
    assert value("copy_without_8") < 0.8
    assert value("copy_without_16") < 0.5
    assert value("copy_wide_8") > value("copy_without_8")
    assert value("copy_wide_16") < 0.6


def test_speech_data(value):
    assert value("speech_training") == 4000
    assert value("speech_validation") == 400
    assert value("speech_new") == 200
    assert 50 < value("speech_frames") < 80


def test_speech_budgets_and_losses(value):
    assert 1 <= value("speech_size_without") / value("speech_size_with") < 1.03
    assert value("loss_with") < 0.08
    assert value("loss_without") > 3 * value("loss_with")
    assert value("loss_without_training") > 3 * value("loss_with_training")


@pytest.mark.parametrize("part", ["known", "new"])
def test_attention_wins_by_every_measure(value, part):
    for measure in ("jaccard", "cosine", "letters", "exact"):
        with_it, without = value(f"result_{part}_with_{measure}"), value(f"result_{part}_without_{measure}")
        assert 0 <= without < with_it - 0.1, (part, measure)
        assert with_it <= 1


def test_known_voices(value):
    assert value("result_known_with_jaccard") > 0.9
    assert value("result_known_with_exact") > 0.8
    assert value("result_known_without_letters") > value("result_known_without_jaccard") + 0.1


def test_a_new_voice_is_harder(value):
    for measure in ("jaccard", "cosine", "letters", "exact"):
        assert value(f"result_new_with_{measure}") < value(f"result_known_with_{measure}") - 0.05


def test_long_phrases_suffer_without_attention(value):
    assert value("quarter_without_long") < value("quarter_without_short")
    assert value("quarter_with_long") > 0.9
    assert abs(value("quarter_with_long") - value("quarter_with_short")) < 0.08


def test_the_plain_mean_closes_most_of_the_gap_but_not_for_long_phrases(value):
    without, with_it = value("result_known_without_exact"), value("result_known_with_exact")
    assert (without + with_it) / 2 < value("mean_exact") < with_it - 0.1
    assert value("mean_short") > 0.8
    assert value("mean_long") < 0.5
    assert value("attentive_long") > 0.8


def test_the_alignment_moves_forward_but_is_not_clean(value):
    assert value("align_correlation") > 0.85
    assert 0.02 < value("align_back") < 0.25
    assert 0.65 < value("align_largest") < 0.85
    assert 0 < value("align_first_late") < 0.2


def test_the_speech_file_is_what_the_chapter_says():
    path = BOOK / "data" / "rnn-attention" / "speech.npz"
    assert path.stat().st_size < 5e6
    data = np.load(path)
    texts = bytes(data["texts"]).decode().split("\n")
    assert len(texts) == len(data["lengths"]) == len(data["split"])
    assert data["bands"].dtype == np.uint8
    assert data["bands"].shape == (data["lengths"].sum(), 24)
    heard = {text for text, part in zip(texts, data["split"], strict=True) if part == 0}
    assert not heard & {text for text, part in zip(texts, data["split"], strict=True) if part != 0}
    assert set(data["voices"][data["split"] == 2]).isdisjoint(data["voices"][data["split"] != 2])
    assert data["speeds"].min() < 180 < 230 < data["speeds"].max()
    assert data["pitches"].min() < 30 < 70 < data["pitches"].max()
