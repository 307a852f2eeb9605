"""What the chapter on several heads claims, asserted on its executed notebook.

What is trained is claimed in the chapter itself, over all its runs; here stands what is the same in every run.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from book_build import chapter


@pytest.fixture(scope="module")
def page():
    return chapter("multi-head-attention")


def test_three_heads_answer_three_questions_and_one_shares_its_row(page):
    assert page.value("three_right") > 0.99
    assert page.value("one_share") == pytest.approx(1 / 3, abs=0.005)


def test_exchanged_names_are_the_same_to_one_head(page):
    assert page.value("one_gap") == pytest.approx(0.0, abs=1e-12)
    assert page.value("three_gap") > 0.9


def test_the_pencil_example(page):
    weights = [np.full((2, 2), 0.5), np.array([[0.75, 0.25], [0.25, 0.75]])]
    handed = [head @ [4.0, 8.0] for head in weights]
    assert np.stack(handed, axis=1).tolist() == [[6, 5], [6, 7]]
    W_O = np.array([[1.0, 0], [1, 2]])
    assert (np.stack(handed, axis=1) @ W_O).tolist() == [[11, 10], [13, 14]]
    assert np.outer(handed[0], W_O[0]).tolist() == [[6, 0], [6, 0]]
    assert np.outer(handed[1], W_O[1]).tolist() == [[5, 10], [7, 14]]
    for numbers in (r"6 & 5 \\ 6 & 7", r"1 & 0 \\ 1 & 2", r"11 & 10 \\ 13 & 14"):
        assert numbers in page.source


def test_a_head_writes_in_as_many_directions_as_it_is_wide(page):
    assert re.findall(r"in (\d) of 6 directions", page.printed("matrix_rank")) == ["2", "2", "2"]


def test_shapes_of_twelve_heads(page):
    shapes = re.findall(r"\(\d[\d, ]*\)", page.printed('"bqhd,bkhd->bhqk"'))
    assert shapes == ["(1, 5, 12, 64)", "(1, 12, 5, 5)", "(1, 5, 12, 64)", "(1, 5, 768)"]


def test_the_wrong_reshape_mixes_tokens(page):
    right, wrong = re.findall(r"\[\[.*?\]\]", page.printed("tempting = "))
    assert right == "[[0, 0], [1, 1], [2, 2], [3, 3]]"
    assert wrong == "[[0, 0], [0, 0], [0, 0], [1, 1]]"


def test_masks_allow_what_they_say(page):
    assert (page.value("allowed_long"), page.value("allowed_short")) == (15, 12)
    moved = [
        [float(number) for number in re.search(r"\[(.*)\]", line)[1].split()]
        for line in page.printed("outputs move by").splitlines()
    ]
    nothing, padding, causal = moved
    assert min(nothing[:3]) > 0.01
    assert padding[:3] == [0, 0, 0]
    assert causal[:2] == [0, 0] < causal[2:]


def test_narrow_heads_have_few_favourites_and_small_gaps(page):
    assert page.value("favourites_circle") == 16
    assert page.value("gap_circle") == pytest.approx((1 - np.cos(np.pi / 8)) / 2**0.5)
    assert page.value("gap_corners") == pytest.approx(1 / 16**0.5)


def test_heads_that_share_keys_make_the_cache_smaller(page):
    lines = page.printed("project.counted = 0").splitlines()
    assert [[int(number) for number in re.findall(r"\d+", line)] for line in lines] == [
        [4, 4, 12, 42, 96],
        [4, 2, 12, 42, 48],
        [4, 1, 12, 42, 24],
    ]
    assert (page.value("cache_mha"), page.value("cache_gqa")) == (4.0, 1.0)


def test_the_library_agrees_once_masks_are_inverted(page):
    off = [float(line.split()[-1]) for line in page.printed("mask not inverted").splitlines()]
    assert max(off[:3]) < 1e-12
    assert off[3] > 0.01


def test_each_number_of_heads_is_trained_ten_times(page):
    for share in ("right_0", "right_1", "right_2", "right_3", "right_6"):
        assert re.fullmatch(r"\d\.\d\d(–\d\.\d\d)?", page.value(share))
    for runs in ("two_good", "even_runs", "clear_runs", "told"):
        assert 0 <= page.value(runs) <= 10
