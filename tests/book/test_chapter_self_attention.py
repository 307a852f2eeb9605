"""Every claim that `self-attention` measures, asserted on the executed chapter."""

from __future__ import annotations

import re

import numpy as np
import pytest
from book_build import ROOT, chapter


@pytest.fixture(scope="module")
def page():
    return chapter("self-attention")


def close(actual, expected, atol=6e-4):
    assert np.allclose(actual, expected, atol=atol), f"{actual} instead of {expected}"


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


# --- the topics have their place ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        "sa-retrieval",
        "sa-argmax",
        "sa-gradient",
        "sa-scaled",
        "sa-worked-self",
        "sa-reading",
        "sa-worked-cross",
        "sa-why-scale",
        "sa-why-softmax",
        "sa-mask",
        "sa-columns",
        "sa-cost",
        "sa-online",
        "sa-torch",
        "sa-root-trained",
        "sa-it",
        "sa-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


# --- looking up -----------------------------------------------------------------------------------------


def test_soft_lookup_finds_pot_and_tea(page):
    keys = np.array([[0, 1], [0, 0], [0.5, 4], [4, 1.5]])
    weights = softmax(np.eye(2) @ keys.T)
    close(page.value("lookup_empty_pot"), weights[0, 3])
    close(page.value("lookup_cold_tea"), weights[1, 2])
    close(page.value("lookup_cold_pot"), weights[1, 3])
    assert weights.argmax(axis=1).tolist() == [3, 2]
    assert weights.max(axis=1).min() > 0.8


def test_hard_lookup_has_the_values_of_the_source(page):
    assert page.vector("hard_scores") == [3, 11, 5, 2]
    assert page.value("hard_best") == 2
    assert page.vector("hard_value") == [1, 4, 3]


def test_argmax_and_the_mean_are_the_limits_of_temperature(page):
    scores, values = np.array([3.0, 11, 5, 2]), np.array([[2, 0, 1], [1, 4, 3], [0, -1, 4], [1, 0, -1]])
    gap = np.abs(softmax(scores / 0.25) @ values - values[1]).max()
    assert gap < 1e-9
    assert page.value("cold_gap") == "2·10⁻¹⁰"
    assert page.value("hot_gap") < 1e-4


def test_no_gradient_passes_argmax(page):
    assert page.value("slope_hard_keys") == 0
    assert page.value("slope_hard_query") == 0
    close(page.value("slope_hard_values"), 1, atol=1e-6)
    assert page.value("slope_keys_4") > 0.1
    assert page.value("slope_keys_quarter") == "2·10⁻⁹"
    rows = page.printed("def slopes").splitlines()
    assert len(rows) == 5 and rows[-1] == "argmax, by keys, query, values: 0 0 1"


def test_argmax_jumps_once_and_is_flat_elsewhere(page):
    assert page.value("number_of_jumps") == 1
    assert page.value("distinct_slopes") == 2  # zero, and the jump


# --- the worked examples --------------------------------------------------------------------------------


def test_self_attention_example(page):
    printed = page.printed("Q, K, V = X @ W_Q")
    for row in ("[ 1.   3. ]", "[-1.   1. ]", "[ 2.5 -2. ]", "[ 3.  -0.5]", "[ 2.  -1.5]", "[-2.5  3.5]"):
        assert row in printed
    for row in ("[ 2.5 -1.5]", "[-1.   3. ]", "[-2.  -3. ]"):
        assert row in printed
    scores = page.printed("scores = Q @ K.T")
    for row in ("[  1.5   -2.5    8.  ]", "[ -3.5   -3.5    6.  ]", "[  8.5    8.   -13.25]"):
        assert row in scores
    assert page.vector("q_row_3") == [2.5, -2.0]
    close(page.vector("row_3"), [0.5875, 0.4125, 0])
    close(page.vector("out_1"), [-1.954, -2.982], atol=1.1e-3)
    close(page.vector("out_2"), [-1.993, -2.991], atol=1.1e-3)
    close(page.vector("out_3"), [1.056, 0.356])
    for row in ("row_1", "row_2", "row_3"):
        close(sum(page.vector(row)), 1, atol=2e-4)
    assert page.vector("row_3")[2] < 5e-5


def test_self_attention_example_without_the_root(page):
    close(page.vector("plain_row_3"), [0.6225, 0.3775, 0])
    close(page.vector("plain_out_1"), [-1.993, -2.998])
    close(page.vector("plain_out_2"), [-2.000, -2.999])
    close(page.vector("plain_out_3"), [1.179, 0.199])


def test_third_query_is_written_out(page):
    assert "= 2.5" in page.printed("third query, first entry")
    assert "= -2" in page.printed("third query, first entry")


def test_outputs_1_and_2_are_dominated_by_input_3(page):
    close(page.value("plain_w13"), 0.9985, atol=5e-5)
    close(page.value("plain_w23"), 0.9999, atol=5e-5)
    assert page.value("w13") > 0.98 and page.value("w23") > 0.98
    close(page.vector("out_1"), [-2, -3], atol=0.05)
    close(page.vector("out_2"), [-2, -3], atol=0.05)


def test_the_larger_weight_need_not_decide_the_sign(page):
    assert page.value("w31") > page.value("w32")
    assert page.value("part_1_second") < 0 < page.value("part_2_second")
    assert page.value("out_3_second") > 0
    close(page.value("part_1_first") + page.value("part_2_first"), 1.056)
    close(page.value("part_1_second") + page.value("part_2_second"), 0.356)


def test_cross_attention_example(page):
    printed = page.printed("X_1 = np.array")
    assert "[[ 0.  1.  2.  2.]\n [-1.  0.  1.  2.]]" in printed
    close(page.vector("cross_row_1"), [0.089, 0.180, 0.365, 0.365])
    close(page.vector("cross_row_2"), [0.065, 0.131, 0.266, 0.539])
    close(page.vector("cross_out_1"), [-0.373, -0.635, 1.008, 0.746])
    close(page.vector("cross_out_2"), [-0.817, -0.461, 1.279, 1.635])
    close(page.vector("cross_plain_1"), [0.054, 0.147, 0.399, 0.399])
    close(page.vector("cross_plain_2"), [0.032, 0.087, 0.237, 0.644])
    close(page.vector("cross_plain_out_1"), [-0.544, -0.601, 1.144, 1.088])
    close(page.vector("cross_plain_out_2"), [-1.137, -0.356, 1.493, 2.273])
    close(page.value("cross_w24"), 0.539)


def test_the_output_is_not_a_map(page):
    assert page.value("cross_lowest") < 0
    assert abs(page.value("cross_row_sum_1") - 1) > 0.1 and abs(page.value("cross_row_sum_2") - 1) > 0.1
    close(page.value("cross_row_sum_1"), sum(page.vector("cross_out_1")), atol=3e-3)
    close(page.vector("cross_consulted"), np.add(page.vector("cross_row_1"), page.vector("cross_row_2")), 2e-3)
    close(sum(page.vector("cross_consulted")), 2, atol=3e-3)


# --- why the root, why the softmax ----------------------------------------------------------------------


def lowest_and_highest(page, name):
    """The two ends of a range of runs, such as 0.32–0.74."""
    ends = [float(end) for end in page.value(name).split("–")]
    return ends[0], ends[-1]


def jk(rng, d_k, n_keys, root):
    """Size of the query's slope, from the whole Jacobian: another way than the chapter's."""
    q, k = rng.normal(size=d_k), rng.normal(size=(n_keys, d_k))
    p = softmax(k @ q / root)
    return np.linalg.norm((np.diag(p) - np.outer(p, p)) @ k / root)


@pytest.mark.parametrize("seed", [101, 102, 103])
def test_the_unscaled_gradient_does_not_vanish_at_usual_widths(seed):
    """The chapter's claims, recomputed for seeds of our own."""
    rng = np.random.default_rng(seed)
    plain, scaled = (np.median([jk(rng, 64, 64, root) for _ in range(150)]) for root in (1, 8))
    assert plain > 2 * scaled
    wide, wide_scaled = (np.median([jk(rng, 1024, 8, root) for _ in range(150)]) for root in (1, 32))
    assert wide < 0.1 * wide_scaled
    assert abs(wide_scaled - 0.365) < 0.04


def test_the_prose_says_where_the_gradient_vanishes_and_where_not(page):
    assert lowest_and_highest(page, "jk_64_plain")[0] > 2 * lowest_and_highest(page, "jk_64_root")[1]
    assert lowest_and_highest(page, "jk_8_plain")[1] < 0.1 * lowest_and_highest(page, "jk_8_root")[0]
    assert lowest_and_highest(page, "top_plain")[0] > 0.85 and lowest_and_highest(page, "top_root")[1] < 0.5
    assert page.value("spread_plain") > 5 > 2.2 > page.value("spread_root")
    assert len(page.printed("def query_slopes").splitlines()) == 4


def test_the_root_is_one_way_to_a_good_start(page):
    assert page.value("plain_low") > 0.3, "the floor, answering zero, has a loss of one"
    for name in ("root_3", "small_1", "norm_3"):
        assert lowest_and_highest(page, name)[1] < 0.1


def test_a_cut_off_key_may_come_back(page):
    shares = [int(number) for number in re.findall(r"\d+", page.value("returned"))]
    assert 10 < shares[0] <= shares[1] < 50


@pytest.mark.slow
def test_it_is_resolved_and_the_floor_is_half(page):
    assert page.value("above_09") >= 7
    assert lowest_and_highest(page, "right_with")[0] > 0.6
    assert lowest_and_highest(page, "right_without")[1] <= 0.55
    assert lowest_and_highest(page, "on_noun")[0] > 0.6


def test_other_ways_to_weights_fail(page):
    assert page.value("by_sum_low") < 0 and page.value("by_sum_high") > 1
    close(page.value("by_sum_low"), -13.25 / 3.25)
    assert page.value("by_size_last") == pytest.approx(13.25 / 29.75)
    assert page.value("by_size_last") > 8.5 / 29.75
    assert page.value("relu_slope") == 0


def test_softmax_sees_only_differences(page):
    assert page.value("shift") < 1e-12


def test_softmax_is_the_best_compromise():
    """The chapter derives it; here weights that were moved a little are worse."""
    scores = np.array([0.5, -1.0, 1.5, 0.0])
    best = softmax(scores)

    def compromise(p):
        return p @ scores - p @ np.log(p)

    close(compromise(best), np.log(np.exp(scores).sum()), atol=1e-9)
    moved = best + 1e-3 * (np.eye(4) - 1 / 4)
    assert max(compromise(p) for p in moved) < compromise(best)


# --- masks, columns, cost -------------------------------------------------------------------------------


def test_an_empty_row_gives_zeros(page):
    assert page.value("empty_sum") == 0
    assert page.vector("empty_output") == [0, 0]
    assert page.vector("masked_row_2") == [0.5, 0.5, 0.0]
    assert page.value("infinity_row") == "[nan nan nan]"
    close(page.vector("large_row"), [1 / 3] * 3)
    assert page.value("others_agree") < 1e-12


def test_rows_and_columns(page):
    assert page.value("feature_shape") == "(768, 768)" and page.value("token_shape") == "(6, 6)"
    assert page.value("feature_map_size") == 768**2 and page.value("token_map_size") == 36
    assert page.printed("feature_map = softmax_rows").count("(768, 6)") == 2
    assert "·10⁻¹" in page.value("error_right"), "ten to the minus ten or less"
    assert page.value("error_wrong") > 1


def test_cost_is_counted(page):
    assert page.value("count_small") == 2 * 5**2 * 3
    assert page.value("map_megabytes") == 16


def test_online_softmax_gives_the_same_in_two_blocks(page):
    assert page.value("online_gap") < 1e-12
    total = page.value("online_old") + page.value("online_new")
    close(page.value("online_weight"), 1 / total, 1e-9)
    close(page.value("online_weight"), page.value("cross_w24"), 1e-9)
    assert page.value("online_top_1") < page.value("online_top_2"), "the second block brings a new maximum"
    assert page.value("online_old") < page.value("online_sum_1")


# --- PyTorch, exercises ---------------------------------------------------------------------------------


def test_torch_agrees_and_finds_no_path(page):
    assert page.value("torch_gap") < 1e-9 and page.value("torch_mask_gap") < 1e-9
    assert page.value("grads_hard") == "no path, no path, 1.000"
    assert "['no path', 'no path', 'a path']" in page.printed("torch.autograd.grad")


def test_solutions_of_the_exercises_are_right():
    X = np.array([[1, -1, 0, 2], [0, -1, 2, 1], [-2, 2, -1, 0.0]])
    W_Q = np.array([[0, 1], [1, 0], [-0.5, 0], [1, 1]])
    W_K = np.array([[1, -0.5], [0, 1], [0.5, -0.5], [1, 0.5]])
    W_V = np.array([[1, 0.5], [-0.5, 0], [-1, 2], [0.5, -1]])

    def layer(X, W_Q, W_K):
        weights = softmax((X @ W_Q) @ (X @ W_K).T / np.sqrt(2))
        return weights, weights @ (X @ W_V)

    weights, output = layer(X, W_Q, W_K)
    two = softmax(np.eye(2) / np.sqrt(2))
    close(two[0], [0.67, 0.33], atol=5e-3)
    close(two @ [4, 8], [5.32, 6.68], atol=6e-3)
    close(np.log(99 * np.array([7, 999])), [6.5, 11.5], atol=0.05)
    order = [1, 0, 2]
    moved_weights, moved = layer(X[order], W_Q, W_K)
    close(moved, output[order], 1e-12)
    close(moved_weights, weights[order][:, order], 1e-12)
    A = np.array([[2.0, 1.0], [0.0, 0.5]])
    close(layer(X, W_Q @ A, W_K @ np.linalg.inv(A).T)[0], weights, 1e-12)
    close(layer(3 * X, W_Q, W_K)[0][2], [0.96, 0.04, 0], atol=5e-3)
    table = np.array(
        [[0.70, 0.10, 0.10, 0.10], [0.05, 0.15, 0.75, 0.05], [0.05, 0.80, 0.10, 0.05], [0.25, 0.15, 0.35, 0.25]]
    )
    close(table.sum(axis=1), 1, 1e-12)
    close(table.sum(axis=0)[[1, 2]], [1.20, 1.30], 1e-12)
    assert table.sum(axis=0).argmax() == 2 and np.unravel_index(table.argmax(), table.shape)[1] == 1
    assert (-(table * np.log(table)).sum(axis=1)).argmax() == 3


def test_the_chapter_does_not_print_the_solutions_of_its_set(page):
    """The set asks for these functions; the chapter shows the idea on one small case."""
    code = "\n".join(cell.source for cell in page.notebook.cells if cell.cell_type == "code")
    for name in (
        "argmax_attention",
        "scaled_dot_product_attention",
        "self_attention",
        "self_attention_columns",
        "cross_attention",
        "attention_multiplications",
    ):
        assert f"def {name}(" not in code
    assert (ROOT / "book" / "self-attention.md").is_file()
