"""What the chapter on attention between recurrent networks claims, asserted on its executed notebook.

What is trained is claimed in the chapter itself, over all its runs; here stands what is the same in every run.
"""

import re

import numpy as np
import pytest
from book_build import BOOK, chapter


@pytest.fixture(scope="module")
def page():
    return chapter("rnn-attention")


@pytest.fixture(scope="module")
def value(page):
    return page.value


def numbers(text):
    return [float(number.replace("−", "-")) for number in re.findall(r"[-−]?\d+\.\d+", text)]


def test_bahdanaus_attention_by_hand(value):
    assert numbers(value("hand_energies")) == [1.523, 1.166, 0.0, 1.928]
    assert numbers(value("hand_alpha")) == [0.293, 0.205, 0.064, 0.439]
    assert numbers(value("hand_context")) == [0.731, 0.644, 0.064]


def test_another_state_gives_the_same_annotations_other_weights(value):
    before, after = numbers(value("hand_alpha")), numbers(value("hand_next"))
    assert after[0] < before[0] - 0.1 and after[1] > before[1] + 0.1


def test_an_additive_score_is_bounded_and_a_general_one_grows_with_the_square(value):
    assert value("scores_bound") == 3
    assert value("scores_additive") <= value("scores_bound")
    assert value("scores_general") == pytest.approx(30**2)
    assert value("scores_saving") == pytest.approx(20 * 50 * 225 / (50 * 128 + 20 * 96 + 1000))


def test_no_kind_of_score_is_the_cheapest_in_all_cases(page):
    found = {}
    for line in page.printed("def costs(").splitlines():
        if "products" in line:
            kind = line.split("  ")[1].strip()
            products = int(re.search(r"([\d,]+) products", line)[1].replace(",", ""))
            found.setdefault(kind, []).append(products)
    first, states, additive = (
        found[kind] for kind in ("general, annotations first", "general, states first", "additive")
    )
    assert states[0] < additive[0] < first[0]
    assert first[1] < additive[1] < states[1]


def test_the_planted_alignment(value):
    assert value("planted_not") > 1.5
    assert value("planted_does") < 0.6
    assert 0.05 < value("planted_le_cat") < 0.3


def test_errors_by_hand(page, value):
    assert value("similar_wer") == pytest.approx(2 / 3)
    assert value("similar_cer") == pytest.approx(3 / 15)  # plain edits: an exchange counts two
    assert numbers(page.printed("letters_alike = 1")) == [0.20, 0.67, 0.20, 0.87]


def test_speech_budgets_are_equal(page):
    sizes = [
        int(size.replace(",", ""))
        for size in re.findall(r"([\d,]+) parameters; validation", page.printed("= fit(model, seed)"))
    ]
    assert len(sizes) == 3
    assert max(sizes) < 1.03 * min(sizes)


def test_the_table_has_two_floors_and_three_models_for_both_parts(page):
    rows = [line for line in page.printed("± spread").splitlines() if line.startswith(("validation", "new voice"))]
    names = ["deaf", "sceptic", "none", "mean", "general"]
    assert [re.search("|".join(names), row)[0] for row in rows] == names * 2


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
