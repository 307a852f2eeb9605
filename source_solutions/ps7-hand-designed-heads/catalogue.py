# ruff: noqa: B905
"""Right variants and misconceptions of ps7-hand-designed-heads.

Hand-made matrices are recognised by what they lead to (where attention goes, how much of it, what comes out), so that a
mistake is named in any basis. Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import ENOUGH, VARIANT

# ---------------------------------------------------------------------------------------- exercise 1: Head

edited(
    "Head",
    "head_unscaled",
    " / np.sqrt(Q.shape[1])",
    "",
    says="Your scores are not divided by anything; the scale is the root of the width of queries and keys.",
)
edited(
    "Head",
    "head_divided_by_the_width",
    "np.sqrt(Q.shape[1])",
    "Q.shape[1]",
    says="Your scores are divided by d_qk itself; the scale is its square root.",
)
edited(
    "Head",
    "head_scaled_by_model_width",
    "np.sqrt(Q.shape[1])",
    "np.sqrt(X.shape[1])",
    says="Your scale is the root of the width of token and position together; it should come from d_qk.",
)
edited(
    "Head",
    "head_scaled_by_d_v",
    "np.sqrt(Q.shape[1])",
    "np.sqrt(V.shape[1])",
    says="Your scale is the root of the width of the values; it should come from d_qk.",
)
edited(
    "Head",
    "head_scaled_by_length",
    "np.sqrt(Q.shape[1])",
    "np.sqrt(Q.shape[0])",
    says="Your scale is the root of the number of tokens; it should come from the width of queries and keys.",
)
edited(
    "Head",
    "head_softmax_over_queries",
    "weights / weights.sum(axis=1, keepdims=True)",
    "weights / weights.sum(axis=0, keepdims=True)",
    says="In your pattern the columns sum to 1; each query, a row, has one whole of attention to give away.",
)
edited(
    "Head",
    "head_overflows",
    "np.exp(scores - scores.max(axis=1, keepdims=True))",
    "np.exp(scores)",
    says="Large scores overflow in your exponential; subtract the largest score of the row first.",
)
edited(
    "Head",
    "head_positions_on_the_left",
    "[X, self.positions[: len(X)]]",
    "[self.positions[: len(X)], X]",
    says="Your positions stand on the left of the tokens; they belong on the right, where the last rows of W_Q wait.",
)
edited(
    "Head",
    "head_last_positions",
    "self.positions[: len(X)]",
    "self.positions[-len(X) :]",
    says="A short sequence gets the last rows of your table; its first token should stand at position 0.",
)
edited(
    "Head",
    "head_whole_table",
    "self.positions[: len(X)]",
    "self.positions",
    says="You join the whole table of positions, which only fits a sequence of full length; take its first T rows.",
)
edited(
    "Head",
    "head_positions_ignored",
    "if self.positions is not None:",
    "if False:",
    says="Your head never looks at its positions; they are joined to the right of the tokens.",
)
edited(
    "Head",
    "head_queries_and_keys_swapped",
    "X @ self.W_Q, X @ self.W_K, X @ self.W_V",
    "X @ self.W_K, X @ self.W_Q, X @ self.W_V",
    says="Your queries are made with W_K and your keys with W_Q: the scores come out transposed.",
)
edited(
    "Head",
    "head_residual",
    "return weights @ V, weights",
    "return (weights @ V + X if V.shape == X.shape else weights @ V), weights",
    says="You add the tokens to the output where the shapes allow it; there is no residual connection here.",
)
edited(
    "Head",
    "head_weights_first",
    "return weights @ V, weights",
    "return weights, weights @ V",
    says="You return the weights first; asked is (output, weights).",
)
edited(
    "Head",
    "head_values_are_rows",
    "return weights @ V, weights",
    "return weights @ X, weights",
    says="You average the rows as they came in; they should go through W_V first.",
)


@wrong(
    "Head",
    says="You subtract one largest score from the whole table; a row with much smaller scores then loses all its "
    "weights. Every row has a largest score of its own.",
    based_on="Head",
)
class head_one_maximum:
    def forward(self, X):
        Z = X
        if self.positions is not None:
            Z = np.hstack([X, self.positions[: X.shape[0]]])
        Q = Z @ self.W_Q
        K = Z @ self.W_K
        V = Z @ self.W_V
        scores = Q @ K.T / np.sqrt(K.shape[1])
        e = np.exp(scores - np.max(scores))
        weights = e / np.sum(e, axis=1, keepdims=True)
        return (weights @ V, weights)


@wrong(
    "Head",
    says="You cut large scores off before exp, so that scores beyond the limit become equal. Subtract the largest "
    "one of the row: that changes no weight.",
    based_on="Head",
)
class head_scores_cut_off:
    def forward(self, X):
        T = X.shape[0]
        Z = X if self.positions is None else np.concatenate((X, self.positions[:T]), axis=1)
        scores = Z @ self.W_Q @ (Z @ self.W_K).T / np.sqrt(self.W_Q.shape[1])
        scores = np.clip(scores.astype(np.float64), -500, 500)
        powers = np.exp(scores)
        weights = powers / powers.sum(axis=1, keepdims=True)
        return (weights @ (Z @ self.W_V), weights)


@wrong(
    "Head",
    says="Your values are made of the tokens alone; token and position together go through W_V, whose last rows "
    "belong to the position.",
    based_on="Head",
)
class head_values_without_positions:
    def forward(self, X):
        T, n_tokens = X.shape
        Z = X
        if self.positions is not None:
            Z = np.concatenate([X, self.positions[:T]], axis=-1)
        Q = Z @ self.W_Q
        K = Z @ self.W_K
        V = X @ self.W_V[:n_tokens]
        s = Q @ K.T / np.sqrt(Q.shape[-1])
        s = s - s.max(-1, keepdims=True)
        w = np.exp(s)
        w /= w.sum(-1, keepdims=True)
        return (w @ V, w)


@wrong(
    "Head",
    says="Your attribute W_Q holds the matrix divided by the root; it is kept as it was given, and the scale "
    "belongs to forward.",
    based_on="Head",
)
class head_scale_in_the_attribute:
    def __init__(self, W_Q, W_K, W_V, positions=None):
        self.W_Q = W_Q / np.sqrt(W_Q.shape[1])
        self.W_K = W_K
        self.W_V = W_V
        self.positions = positions

    def forward(self, X):
        Z = X if self.positions is None else np.concatenate([X, self.positions[: len(X)]], axis=1)
        scores = Z @ self.W_Q @ (Z @ self.W_K).T
        scores = scores - scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        weights = weights / weights.sum(axis=1, keepdims=True)
        return (weights @ (Z @ self.W_V), weights)


@wrong(
    "Head",
    says="Where a sequence is shorter than the table, places that are not there take part in your softmax; take the "
    "first rows of the table only.",
    based_on="Head",
)
class head_filled_up_to_max_len:
    def forward(self, X):
        T = len(X)
        if self.positions is None:
            Z = X
        else:
            padded = np.zeros((len(self.positions), X.shape[1]))
            padded[:T] = X
            Z = np.concatenate([padded, self.positions], axis=1)
        Q, K, V = (Z @ self.W_Q, Z @ self.W_K, Z @ self.W_V)
        scores = Q @ K.T / np.sqrt(Q.shape[1])
        scores = scores - scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        weights = weights / weights.sum(axis=1, keepdims=True)
        output = weights @ V
        return (output[:T], weights[:T, :T])


@wrong(
    "Head",
    says="Large scores overflow in your exp, and a row that became NaN cannot be repaired afterwards; subtract the"
    " largest score of the row first.",
    based_on="Head",
)
class head_overflow_repaired:
    def forward(self, X):
        Z = X
        if self.positions is not None:
            Z = np.hstack((X, self.positions[: X.shape[0], :]))
        Q, K, V = (Z @ self.W_Q, Z @ self.W_K, Z @ self.W_V)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            e = np.exp(Q @ K.T / np.sqrt(Q.shape[1]))
            weights = np.nan_to_num(e / e.sum(axis=1, keepdims=True))
        return (weights @ V, weights)


@wrong("Head", says="Your queries see only the keys up to their own place; this head has no mask.", based_on="Head")
class head_causal:
    def forward(self, X):
        T = X.shape[0]
        Z = X if self.positions is None else np.concatenate([X, self.positions[:T]], axis=1)
        Q, K, V = (Z @ self.W_Q, Z @ self.W_K, Z @ self.W_V)
        scores = Q @ K.T / np.sqrt(Q.shape[1])
        scores = np.where(np.tril(np.ones((T, T), dtype=bool)), scores, -np.inf)
        scores = scores - scores.max(axis=1, keepdims=True)
        weights = np.exp(scores)
        weights /= weights.sum(axis=1, keepdims=True)
        return (weights @ V, weights)


@wrong(
    "Head",
    says="You compute in float32, which is too coarse where scores are large and close together; keep float64.",
    based_on="Head",
)
class head_in_single_precision:
    def forward(self, X):
        Z = X if self.positions is None else np.concatenate([X, self.positions[: len(X)]], axis=1)
        Z, W_Q, W_K, W_V = (part.astype(np.float32) for part in (Z, self.W_Q, self.W_K, self.W_V))
        scores = (Z @ W_Q) @ (Z @ W_K).T / np.sqrt(W_Q.shape[1])
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        return (weights @ (Z @ W_V), weights)


@right("Head")
class HeadPrescaled:
    def __init__(self, W_Q, W_K, W_V, positions=None):
        self.W_Q = np.array(W_Q, dtype=np.float64)
        self.W_K = np.array(W_K, dtype=np.float64)
        self.W_V = np.array(W_V, dtype=np.float64)
        self.positions = None if positions is None else np.array(positions, dtype=np.float64)

    def forward(self, X):
        T = X.shape[0]
        rows = X if self.positions is None else np.hstack((X, self.positions[:T]))
        queries = rows @ (self.W_Q * self.W_Q.shape[1] ** -0.5)
        scores = np.einsum("ik,jk->ij", queries, rows @ self.W_K)
        powers = np.exp(scores - np.max(scores, axis=-1)[:, None])
        pattern = powers / np.sum(powers, axis=-1)[:, None]
        return np.einsum("ij,jc,cv->iv", pattern, rows, self.W_V), pattern


@right("Head")
class HeadInTorch(nn.Module):
    def __init__(self, W_Q, W_K, W_V, positions=None):
        super().__init__()
        self.W_Q, self.W_K, self.W_V, self.positions = (
            None if array is None else torch.tensor(np.ascontiguousarray(array), dtype=torch.float64)
            for array in (W_Q, W_K, W_V, positions)
        )

    def forward(self, X):
        rows = torch.tensor(np.ascontiguousarray(X), dtype=torch.float64)
        if self.positions is not None:
            rows = torch.cat([rows, self.positions[: len(rows)]], 1)
        scores = (rows @ self.W_Q) @ (rows @ self.W_K).T / self.W_Q.shape[1] ** 0.5
        weights = scores.softmax(-1)
        return (weights @ (rows @ self.W_V)).numpy(), weights.numpy()


@right("Head")
class HeadByLoops:
    def __init__(self, W_Q, W_K, W_V, positions=None):
        self.W_Q, self.W_K, self.W_V, self.positions = W_Q, W_K, W_V, positions

    def forward(self, X):
        rows = [list(x) + ([] if self.positions is None else list(self.positions[t])) for t, x in enumerate(X)]
        rows = np.array(rows, dtype=np.float64)
        output, weights = [], []
        for row in rows:
            scores = np.array([(row @ self.W_Q) @ (other @ self.W_K) for other in rows]) / np.sqrt(self.W_K.shape[-1])
            powers = np.exp(scores - max(scores))
            weights.append(powers / sum(powers))
            output.append(sum(w * (other @ self.W_V) for w, other in zip(weights[-1], rows)))
        return [np.array(output), np.array(weights)]


# -------------------------------------------------------------------------------- exercise 2: content_head

edited(
    "content_head",
    "content_too_soft",
    "ENOUGH * np.sqrt(n_tokens) * own",
    "1.5 * own",
    says="Your head looks at the right tokens, but too softly: with these scores other kinds keep a share. A right "
    "score has to be ahead by about ln(99 · the number of wrong keys).",
)
edited(
    "content_head",
    "content_root_forgotten",
    "ENOUGH * np.sqrt(n_tokens) * own",
    "6.0 * own",
    says="Your head prefers keys of the query's own kind, but by too small a gap, at least with many kinds or in long "
    "sequences: after the division by the root of d_qk a right key has to be ahead by about ln(99 · the number of "
    "wrong keys), of which there are up to 11.",
)
edited(
    "content_head",
    "content_enough_without_the_root",
    "ENOUGH * np.sqrt(n_tokens) * own",
    "ENOUGH * own",
    says="Your scores are ahead by ENOUGH before the division by the root of d_qk and by less afterwards: the wider "
    "the queries, the less. Multiply by that root.",
)
edited(
    "content_head",
    "content_not_at_all",
    "ENOUGH * np.sqrt(n_tokens) * own",
    "0 * own",
    says="Every key gets the same score in your head, so attention spreads evenly; let queries of a kind meet the keys "
    "of that kind.",
)
edited(
    "content_head",
    "content_sign_turned",
    "ENOUGH * np.sqrt(n_tokens) * own",
    "-ENOUGH * np.sqrt(n_tokens) * own",
    says="Your tokens look at every kind but their own: a sign is turned round.",
)
edited(
    "content_head",
    "content_next_kind",
    '"W_K": own,',
    '"W_K": np.roll(own, 1, axis=0),',
    says="Your tokens of one kind look at another kind: compare the rows of W_Q and W_K that belong to the same token.",
)
edited(
    "content_head",
    "content_all_ones",
    '"W_K": own,',
    '"W_K": np.ones((n_tokens, n_tokens)),',
    says="All keys are the same in your head, whatever the token, so no query can tell them apart.",
)
edited(
    "content_head",
    "content_values_scaled",
    '"W_V": own}',
    '"W_V": ENOUGH * own}',
    says="Your attention is right and your outputs are too large: what comes out should be the one-hot row itself.",
)
edited(
    "content_head",
    "content_values_zero",
    '"W_V": own}',
    '"W_V": 0 * own}',
    says="Your attention is right, but nothing comes out: W_V has to hand the token on.",
)
edited(
    "content_head",
    "content_values_permuted",
    '"W_V": own}',
    '"W_V": np.roll(own, 1, axis=1)}',
    says="Your attention is right, but the output is the one-hot row of another kind; look at W_V.",
)
edited(
    "content_head",
    "content_number_as_output",
    '"W_V": own}',
    '"W_V": np.arange(n_tokens)[:, None]}',
    says="Your output is one number for each token; asked is its one-hot row, of width n_tokens.",
)
edited(
    "content_head",
    "content_three_tokens_only",
    "own = np.eye(n_tokens)",
    "own = np.eye(3)",
    says="Your matrices are made for three tokens, whatever n_tokens is; let their sizes follow from it.",
)
edited(
    "content_head",
    "content_tuple",
    'return {"W_Q": ENOUGH * np.sqrt(n_tokens) * own, "W_K": own, "W_V": own}',
    "return ENOUGH * np.sqrt(n_tokens) * own, own, own",
    says='You return the matrices one after another; they are asked for as a dict with the names "W_Q", "W_K", "W_V".',
)


@wrong(
    "content_head", says="Each token looks at its own place only; a second token of its kind should get an equal share."
)
def content_only_itself(n_tokens):
    own = np.eye(n_tokens)
    return {
        "W_Q": np.vstack([np.zeros((n_tokens, 12)), 4 * ENOUGH * np.eye(12)]),
        "W_K": np.vstack([np.zeros((n_tokens, 12)), np.eye(12)]),
        "W_V": np.eye(n_tokens + 12, n_tokens),
        "positions": np.eye(12),
    }
    return {"W_Q": ENOUGH * np.sqrt(n_tokens) * own, "W_K": own, "W_V": own}


@wrong(
    "content_head",
    says="Your head tells few kinds apart; with many of them two become so alike that they share the attention. "
    "The gap has to be large enough for every n_tokens, also between the two kinds that are most alike.",
)
def content_kinds_too_close(n_tokens):
    angle = 2 * np.pi * np.arange(n_tokens) / n_tokens
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    radius = np.sqrt(ENOUGH * np.sqrt(2))
    return {"W_Q": radius * circle, "W_K": radius * circle, "W_V": np.eye(n_tokens)}


@wrong(
    "content_head",
    says="Your numbers are so large that the products become infinite, and infinity minus infinity is no number. A"
    " score that is ahead by ENOUGH does it.",
)
def content_overflows(n_tokens):
    huge = 1e200
    W_Q = huge * np.eye(n_tokens)
    W_K = huge * np.eye(n_tokens)
    W_V = np.eye(n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}


@wrong(
    "content_head",
    says="Tokens of different kinds look at one and the same kind in your head; each kind has to score highest with "
    "itself. (Where kinds are numbers of different size, for example, the largest scores highest with every query.)",
)
def content_of_single_numbers(n_tokens):
    number = np.arange(1.0, n_tokens + 1).reshape(-1, 1)
    return {"W_Q": ENOUGH * number, "W_K": number, "W_V": np.eye(n_tokens), "positions": None}


@wrong(
    "content_head",
    says="Your head tells few kinds apart; with many of them two become so alike that they share the attention. "
    "The gap has to be large enough for every n_tokens, also between the two kinds that are most alike.",
)
def content_codes_nearly_alike(n_tokens):
    rng = np.random.default_rng(0)
    d_qk = 4
    code = rng.normal(size=(n_tokens, d_qk))
    code = code / np.linalg.norm(code, axis=1, keepdims=True)
    strength = ENOUGH * np.sqrt(d_qk)
    return {"W_Q": strength * code, "W_K": code, "W_V": np.eye(n_tokens)}


@right("content_head")
def content_rotated(n_tokens):
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(n_tokens, n_tokens)))[0]
    return {"W_Q": 40 * n_tokens * turn, "W_K": turn, "W_V": np.eye(n_tokens), "positions": None}


@right("content_head")
def content_skewed_basis(n_tokens):
    change = np.random.default_rng(5).normal(size=(n_tokens, n_tokens)) + 3 * np.eye(n_tokens)
    scale = 20 * np.sqrt(n_tokens)
    return {"W_Q": scale * change, "W_K": np.linalg.inv(change).T, "W_V": np.eye(n_tokens)}


@right("content_head")
def content_split_scale_in_lists(n_tokens):
    root = (15 * n_tokens**0.5) ** 0.5
    rows = [[root * (i == j) for j in range(n_tokens)] for i in range(n_tokens)]
    return {"W_Q": rows, "W_K": rows, "W_V": np.eye(n_tokens).tolist()}


@right("content_head")
def content_wider_than_needed(n_tokens):
    wide = np.eye(n_tokens, 2 * n_tokens + 3)
    return {"W_Q": -30 * n_tokens * wide, "W_K": -wide, "W_V": np.eye(n_tokens, dtype=np.float32)}


@right("content_head")
def content_gap_as_computed(n_tokens):
    gap = np.log(99 * 11)
    matrix = np.eye(n_tokens)
    return dict(W_Q=gap * np.sqrt(n_tokens) * matrix, W_K=matrix, W_V=matrix, positions=None)


@right("content_head")
def content_with_idle_positions(n_tokens):
    grown = np.vstack([np.eye(n_tokens), np.zeros((2, n_tokens))])
    table = np.random.default_rng(1).normal(size=(12, 2))
    return {"W_Q": 50 * n_tokens * grown, "W_K": grown, "W_V": grown, "positions": table}


@right("content_head")
def content_on_a_circle(n_tokens):
    angles = 2 * np.pi * np.arange(n_tokens) / n_tokens
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return {"W_Q": np.float32(1000) * circle, "W_K": circle, "W_V": np.eye(n_tokens)}


survivor(
    "content_head",
    "ENOUGH * np.sqrt(n_tokens)",
    "ENOUGH ** np.sqrt(n_tokens)",
    "larger scores than necessary are as good: 12 to the power of a root is more than 12 times the root",
)

# ------------------------------------------------------------------------------- exercise 3: position_head

edited(
    "position_head",
    "position_too_soft",
    "= ENOUGH  #",
    "= 3  #",
    says="Your queries find the first token, but too softly: after the division by the root of d_qk its score has to "
    "be ahead by about ln(99 · the number of other keys).",
)
edited(
    "position_head",
    "position_second_place",
    "W_K[n_tokens] = 1",
    "W_K[n_tokens + 1 : n_tokens + 2] = 1",
    says="In b a c b all your queries look at the a, as if the second place were asked for, or the token a wherever it "
    "stands. Asked is the first place: positions are counted from 0, so the first row of the table is row 0.",
)
edited(
    "position_head",
    "position_first_kind",
    "W_K[n_tokens] = 1",
    "W_K[0] = 1",
    says="Your key is in a row of W_K that belongs to a token, so queries look for tokens of that kind, wherever they "
    "stand; the rows of the positions come after those of the tokens.",
)
edited(
    "position_head",
    "position_all_places",
    "W_K[n_tokens] = 1",
    "W_K[n_tokens:] = 1",
    says="All places have the same key in your head, so attention spreads evenly.",
)
edited(
    "position_head",
    "position_sign_turned",
    "= ENOUGH  #",
    "= -ENOUGH  #",
    says="Your queries look everywhere but at the first token: a sign is turned round.",
)
edited(
    "position_head",
    "position_last_of_table",
    "W_K[n_tokens] = 1",
    "W_K[-1] = 1",
    says="In a sequence as long as the table your queries look at its last token; asked is the first.",
)
edited(
    "position_head",
    "position_only_first_query",
    "W_Q[:n_tokens] = ENOUGH",
    "W_Q[n_tokens] = ENOUGH",
    says="Only the token at the first place asks for the first place in your head; every token should, wherever it is.",
)
edited(
    "position_head",
    "position_one_kind_asks",
    "W_Q[:n_tokens] = ENOUGH",
    "W_Q[0] = ENOUGH",
    says="Only tokens of the first kind ask for the first place in your head; every kind should.",
)
edited(
    "position_head",
    "position_output_with_code",
    "W_V = np.eye(n_tokens + max_len, n_tokens)",
    "W_V = np.eye(n_tokens + max_len)",
    says="Your output hands on the position, too; asked is the one-hot row of the token, of width n_tokens.",
)
edited(
    "position_head",
    "position_code_in_output",
    "W_V = np.eye(n_tokens + max_len, n_tokens)",
    "W_V = np.ones((n_tokens + max_len, n_tokens))",
    says="Your values are the same for every token, so the output cannot tell which token was looked at.",
)
edited(
    "position_head",
    "position_values_scaled",
    "W_V = np.eye(n_tokens + max_len, n_tokens)",
    "W_V = ENOUGH * np.eye(n_tokens + max_len, n_tokens)",
    says="Your attention is right and your outputs are too large: what comes out should be the one-hot row itself.",
)
edited(
    "position_head",
    "position_without_table",
    ', "positions": np.eye(max_len)}',
    "}",
    says="Your dict has no positions; without them a head cannot tell places apart.",
)


@wrong(
    "position_head",
    says="Your table has room for 12 places, whatever max_len is; let its size follow from max_len.",
)
def position_fixed_table(n_tokens, max_len):
    W_Q, W_K = np.zeros((n_tokens + 12, 1)), np.zeros((n_tokens + 12, 1))
    W_Q[:n_tokens], W_K[n_tokens] = ENOUGH, 1
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + 12, n_tokens), "positions": np.eye(12)}


@wrong(
    "position_head",
    says="Your head prefers the first place, but by too small a gap, at least with a long table: its score has to be "
    "far enough ahead of every other place's, for every max_len, after the division by the root of d_qk.",
)
def position_root_forgotten(n_tokens, max_len):
    W_Q, W_K = np.zeros((2, n_tokens + max_len, max_len))
    W_Q[n_tokens:, 0] = ENOUGH
    W_K[n_tokens:] = np.eye(max_len)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + max_len, n_tokens), "positions": np.eye(max_len)}


@wrong(
    "position_head",
    says="Each token looks at its own place in your head: query and key of the same place meet. All queries should ask "
    "for place 0.",
)
def position_own_place(n_tokens, max_len):
    own = np.vstack([np.zeros((n_tokens, max_len)), np.eye(max_len)])
    return {
        "W_Q": ENOUGH * np.sqrt(max_len) * own,
        "W_K": own,
        "W_V": np.eye(n_tokens + max_len, n_tokens),
        "positions": np.eye(max_len),
    }


@wrong(
    "position_head",
    says="Your queries and keys contain the tokens besides the positions, so tokens of the query's own kind draw "
    "attention away from the first place.",
)
def position_with_content(n_tokens, max_len):
    W_Q, W_K = np.eye(n_tokens + max_len), np.eye(n_tokens + max_len)
    W_Q[:, n_tokens] = 1
    scale = ENOUGH * np.sqrt(n_tokens + max_len)
    return {
        "W_Q": scale * W_Q,
        "W_K": W_K,
        "W_V": np.eye(n_tokens + max_len, n_tokens),
        "positions": np.eye(max_len),
    }


@wrong(
    "position_head",
    says="Places reach the output through your W_V, on top of the token: its rows for the positions should be zero.",
)
def position_code_on_the_tokens(n_tokens, max_len):
    W_Q = np.ones((n_tokens + max_len, 1))
    W_K = np.zeros((n_tokens + max_len, 1))
    W_K[n_tokens] = 2 * ENOUGH
    W_V = np.vstack([np.eye(n_tokens), np.eye(max_len, n_tokens)])
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "position_head",
    says="Your head looks for tokens of the first kind; asked is the token at the first place, whatever its kind.",
)
def position_of_the_first_kind(n_tokens, max_len):
    d = n_tokens + max_len
    W_Q = np.ones((d, 1))
    W_K = np.zeros((d, 1))
    W_K[0] = 3 * ENOUGH
    W_V = np.zeros((d, n_tokens))
    W_V[:n_tokens] = np.eye(n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "position_head",
    says="Your head leans to the first place, but others get too large a share, at least with a long table: its score "
    "has to be far enough ahead of every other place's, for every max_len.",
)
def position_places_too_close(n_tokens, max_len):
    positions = np.linspace(0, 1, max_len).reshape(-1, 1)
    W_Q = np.ones((n_tokens + 1, 1))
    W_Q[n_tokens] = 0
    W_K = np.zeros((n_tokens + 1, 1))
    W_K[n_tokens] = -ENOUGH
    W_V = np.zeros((n_tokens + 1, n_tokens))
    W_V[:n_tokens] = np.eye(n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": positions}


@wrong(
    "position_head",
    says="Your head leans to the first place, but others get too large a share, at least with a long table: its score "
    "has to be far enough ahead of every other place's, for every max_len.",
)
def position_on_a_circle(n_tokens, max_len):
    t = np.arange(max_len)
    angle = 2 * np.pi * t / max_len
    positions = np.stack([np.sin(angle), np.cos(angle)], axis=1)
    W_Q = np.zeros((n_tokens + 2, 2))
    W_Q[:n_tokens, 1] = 1
    W_K = np.zeros((n_tokens + 2, 2))
    W_K[n_tokens:] = ENOUGH * np.sqrt(2) * np.eye(2)
    W_V = np.concatenate([np.eye(n_tokens), np.zeros((2, n_tokens))])
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": positions}


@wrong(
    "position_head",
    says="Two things: the first place is not far enough ahead, at least with a long table; and the place reaches the "
    "output through W_V, whose rows for positions should be zero.",
)
def position_too_close_and_in_the_output(n_tokens, max_len):
    positions = 1 - np.arange(max_len).reshape(-1, 1) / max_len
    W_Q = np.ones((n_tokens + 1, 1))
    W_K = np.zeros((n_tokens + 1, 1))
    W_K[-1] = ENOUGH
    W_Q[-1] = 0
    W_V = np.eye(n_tokens + 1, n_tokens)
    W_V[-1] = 1 / n_tokens
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": positions}


@right("position_head")
def position_counted_down(n_tokens, max_len):
    W_Q, W_K = np.zeros((n_tokens + 1, 1)), np.zeros((n_tokens + 1, 1))
    W_Q[:n_tokens] = 10.0
    W_K[n_tokens] = -1
    return {
        "W_Q": W_Q,
        "W_K": W_K,
        "W_V": np.eye(n_tokens + 1, n_tokens),
        "positions": np.arange(max_len, dtype=float)[:, None],
    }


@right("position_head")
def position_one_flag_in_float32(n_tokens, max_len):
    positions = np.zeros((max_len + 3, 1), dtype=np.float32)
    positions[0] = 1
    W_Q = np.full((n_tokens + 1, 2), 8, dtype=np.float32)
    W_Q[n_tokens] = 0
    W_K = np.zeros((n_tokens + 1, 2), dtype=np.float32)
    W_K[n_tokens] = 2
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + 1, n_tokens), "positions": positions}


@right("position_head")
def position_asked_by_a_constant(n_tokens, max_len):
    positions = np.stack([np.ones(max_len), (-1.0) ** np.arange(max_len) * np.arange(max_len) / max_len], axis=1)
    W_Q, W_K = np.zeros((n_tokens + 2, 3)), np.zeros((n_tokens + 2, 3))
    positions = np.concatenate([positions, 0.5 ** np.arange(max_len)[:, None]], axis=1)
    W_Q, W_K = np.zeros((n_tokens + 3, 3)), np.zeros((n_tokens + 3, 3))
    W_Q[n_tokens, 0], W_K[n_tokens + 2, 0] = 100, 1
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + 3, n_tokens), "positions": positions}


@right("position_head")
def position_rotated(n_tokens, max_len):
    turn = np.linalg.qr(np.random.default_rng(8).normal(size=(max_len, max_len)))[0]
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_Q[:n_tokens] = 30 * max_len * turn[0]
    W_K = np.vstack([np.zeros((n_tokens, max_len)), np.eye(max_len)])
    return dict(W_Q=W_Q, W_K=W_K, W_V=np.eye(n_tokens + max_len, n_tokens), positions=turn)


survivor(
    "position_head",
    "W_K[n_tokens] = 1",
    "W_K[n_tokens] = 2",
    "twice the gap is as good: only the attention is asked for, not the matrices",
)

# --------------------------------------------------------------------------------- exercise 4: variant_head


edited(
    "variant_head",
    "variant_too_soft",
    "ENOUGH * np.sqrt(max_len)",
    "0.9 * np.sqrt(max_len)",
    says="Your head looks at the right place, but too softly: after the division by the root of d_qk its score has to "
    "be ahead by about ln(99 · the number of other keys).",
)
edited(
    "variant_head",
    "variant_root_forgotten",
    "ENOUGH * np.sqrt(max_len)",
    "ENOUGH",
    says="Your head prefers the right place, but by too small a gap, at least with a long table: its score has to be "
    "far enough ahead of its neighbours', for every max_len, after the division by the root of d_qk.",
)
edited(
    "variant_head",
    "variant_sign_turned",
    "table = -np.abs",
    "table = np.abs",
    says="Your queries look at the place farthest from the wanted one: is a sign turned round, or was another place "
    "drawn for you?",
)
edited(
    "variant_head",
    "variant_first_token",
    '{"second": 1, "previous": query - 1, "last": max_len}[VARIANT]',
    "0",
    says="Every token looks at the first place in your head. Look again at the place that was drawn for you.",
)
edited(
    "variant_head",
    "variant_third_token",
    '{"second": 1, "previous": query - 1, "last": max_len}[VARIANT]',
    "2",
    says="Every token looks at the third place in your head. Places are counted from 0 in the table, and the one drawn "
    "for you is another.",
)
edited(
    "variant_head",
    "variant_next_token",
    '{"second": 1, "previous": query - 1, "last": max_len}[VARIANT]',
    "query + 1",
    says="Each token looks at the one after it in your head: row is query, column is key, so check which of the two "
    "is shifted.",
)
edited(
    "variant_head",
    "variant_own_place",
    '{"second": 1, "previous": query - 1, "last": max_len}[VARIANT]',
    "query",
    says="Each token looks at its own place in your head; look again at the place that was drawn for you.",
)
edited(
    "variant_head",
    "variant_output_with_code",
    "W_V = np.eye(n_tokens + max_len, n_tokens)",
    "W_V = np.eye(n_tokens + max_len)",
    says="Your output hands on the position, too; asked is the one-hot row of the token, of width n_tokens.",
)
edited(
    "variant_head",
    "variant_values_scaled",
    "W_V = np.eye(n_tokens + max_len, n_tokens)",
    "W_V = ENOUGH * np.eye(n_tokens + max_len, n_tokens)",
    says="Your attention is right and your outputs are too large: what comes out should be the one-hot row itself.",
)
edited(
    "variant_head",
    "variant_without_table",
    ', "positions": np.eye(max_len)}',
    "}",
    says="Your dict has no positions; without them a head cannot tell places apart.",
)


@wrong(
    "variant_head",
    says="Your queries look for the last row of the table. A sequence may be shorter than the table, and then nobody "
    "stands there. Look again at the place that was drawn for you: for the last token the score has to grow with the "
    "place.",
)
def variant_last_row_of_table(n_tokens, max_len):
    W_Q = np.zeros((n_tokens + max_len, 1))
    W_K = np.zeros((n_tokens + max_len, 1))
    W_Q[:n_tokens], W_K[-1] = ENOUGH, 1
    W_V = np.eye(n_tokens + max_len, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "variant_head",
    says="Each token looks at the one before it, but nobody stands before the first, so it looks everywhere. If the "
    "previous token was drawn for you, the first one keeps itself.",
)
def variant_first_looks_nowhere(n_tokens, max_len):
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_Q[n_tokens:] = ENOUGH * np.sqrt(max_len) * np.eye(max_len, k=-1)
    W_K = np.vstack([np.zeros((n_tokens, max_len)), np.eye(max_len)])
    W_V = np.eye(n_tokens + max_len, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "variant_head",
    says="The first token looks at the last place in your head: an index of -1 wraps round to the end of the table.",
)
def variant_wraps_round(n_tokens, max_len):
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_Q[n_tokens:] = ENOUGH * np.sqrt(max_len) * np.eye(max_len)[np.arange(max_len) - 1]
    W_K = np.vstack([np.zeros((n_tokens, max_len)), np.eye(max_len)])
    W_V = np.eye(n_tokens + max_len, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "variant_head",
    says="Places reach the output through your W_V, on top of the token: its rows for the positions should be zero.",
)
def variant_code_on_the_tokens(n_tokens, max_len):
    places = np.arange(max_len)
    target = {"second": np.ones(max_len, dtype=int), "previous": np.maximum(places - 1, 0)}
    strong = 2 * ENOUGH * np.sqrt(max_len)
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_K = np.zeros((n_tokens + max_len, max_len))
    if VARIANT == "last":
        W_Q[n_tokens:, 0] = 1
        W_K[n_tokens:, 0] = strong * places
    else:
        W_Q[n_tokens:] = np.eye(max_len)[target[VARIANT]]
        W_K[n_tokens:] = strong * np.eye(max_len)
    W_V = np.concatenate([np.eye(n_tokens), np.resize(np.eye(n_tokens), (max_len, n_tokens))])
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong(
    "variant_head",
    says="Your head leans to the right place, but others get too large a share, at least with a long table: its score "
    "has to be far enough ahead of its neighbours', for every max_len.",
)
def variant_places_too_close(n_tokens, max_len):
    t = np.arange(max_len) / (max_len - 1)
    positions = np.stack([t, t**2, np.ones(max_len)], axis=1)
    step = 1 / (max_len - 1)
    W_Q = np.zeros((n_tokens + 3, 2))
    W_K = np.zeros((n_tokens + 3, 2))
    a, b, one = (n_tokens, n_tokens + 1, n_tokens + 2)
    s = ENOUGH * np.sqrt(2)
    W_K[a, 0] = 2 * s
    W_K[b, 1] = -s
    W_Q[one, 1] = 1
    if VARIANT == "previous":
        W_Q[a, 0], W_Q[one, 0] = (1, -step)
    elif VARIANT == "second":
        W_Q[one, 0] = step
    else:
        W_Q[one, 0] = 1
    W_V = np.eye(n_tokens + 3, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": positions}


@wrong(
    "variant_head",
    says="Your queries and keys contain the tokens besides the positions, so tokens of the query's own kind draw "
    "attention away from the place.",
)
def variant_with_content(n_tokens, max_len):
    places = np.arange(max_len)
    d = n_tokens + max_len
    d_qk = d
    strong = 2 * ENOUGH * np.sqrt(d_qk)
    W_Q, W_K = (np.zeros((d, d_qk)), np.zeros((d, d_qk)))
    W_Q[:n_tokens, :n_tokens] = np.eye(n_tokens)
    W_K[:n_tokens, :n_tokens] = strong * np.eye(n_tokens)
    if VARIANT == "last":
        W_Q[n_tokens:, n_tokens] = 1
        W_K[n_tokens:, n_tokens] = strong * (1 + places * 0.9)
    else:
        place = np.ones(max_len, dtype=int) if VARIANT == "second" else np.maximum(places - 1, 0)
        W_Q[n_tokens:, n_tokens:] = np.eye(max_len)[place]
        W_K[n_tokens:, n_tokens:] = 1.01 * strong * np.eye(max_len)
    W_V = np.eye(d, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@wrong("variant_head", says="Your table tells the first four places apart only; sequences may be as long as max_len.")
def variant_four_places_only(n_tokens, max_len):
    positions = np.zeros((max_len, 4))
    for t in range(max_len):
        positions[t, min(t, 3)] = 1
    strong = 2 * ENOUGH * 2
    W_Q, W_K = (np.zeros((n_tokens + 4, 4)), np.zeros((n_tokens + 4, 4)))
    if VARIANT == "second":
        W_Q[n_tokens:, 0] = 1
        W_K[n_tokens : n_tokens + 2, 0] = strong
    elif VARIANT == "previous":
        W_Q[n_tokens:] = np.eye(4)[[0, 0, 1, 2]]
        W_K[n_tokens:] = strong * np.eye(4)
    else:
        W_Q[n_tokens:, 0] = 1
        W_K[n_tokens:, 0] = strong * np.arange(4)
    W_V = np.eye(n_tokens + 4, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": positions}


@wrong(
    "variant_head",
    says="What belongs to the queries stands in your W_K and the other way round: W_Q says which place a token "
    "looks for, W_K at which place it stands.",
)
def variant_queries_and_keys_exchanged(n_tokens, max_len):
    places = np.arange(max_len)
    if VARIANT == "previous":
        wanted = np.maximum(places - 1, 0)
    elif VARIANT == "second":
        wanted = np.ones(max_len, dtype=int)
    else:
        wanted = np.full(max_len, max_len - 1)
    strong = 2 * ENOUGH * np.sqrt(max_len)
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_K = np.zeros((n_tokens + max_len, max_len))
    W_K[n_tokens:] = strong * np.eye(max_len)[wanted]
    W_Q[n_tokens:] = np.eye(max_len)
    W_V = np.eye(n_tokens + max_len, n_tokens)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}


@right("variant_head")
def variant_quadratic_code(n_tokens, max_len):
    place = np.arange(max_len, dtype=float)
    positions = np.stack([place, place**2, np.ones(max_len)], axis=1)
    W_Q, W_K = np.zeros((n_tokens + 3, 2)), np.zeros((n_tokens + 3, 2))
    # -(key - target)^2 without the part that is the same for all keys: 2 target key - key^2
    if VARIANT == "previous":
        W_Q[n_tokens:] = [[2, 0], [0, 0], [-2, -1]]
    else:
        W_Q[n_tokens + 2] = [2 * (1 if VARIANT == "second" else max_len), -1]
    W_K[n_tokens], W_K[n_tokens + 1] = [1, 0], [0, 1]
    return {"W_Q": 20 * W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + 3, n_tokens), "positions": positions}


@right("variant_head")
def variant_rotated_and_mixed(n_tokens, max_len):
    turn = np.linalg.qr(np.random.default_rng(8).normal(size=(max_len, max_len)))[0]
    places = np.arange(max_len)
    table = {
        "second": np.tile(places == 1, (max_len, 1)),
        "previous": np.eye(max_len)[np.maximum(places - 1, 0)],
        "last": np.tile(places, (max_len, 1)),
    }[VARIANT]
    W_Q, W_K = np.zeros((2, n_tokens + max_len, max_len))
    W_Q[n_tokens:] = 12 * np.sqrt(max_len) * turn.T @ table
    W_K[n_tokens:] = turn.T
    W_V = np.eye(n_tokens + max_len, n_tokens)
    return {"W_Q": W_Q.tolist(), "W_K": W_K, "W_V": W_V, "positions": turn}


@right("variant_head")
def variant_through_the_keys(n_tokens, max_len):
    size = max_len + 2
    place = np.arange(size)
    wanted = {"second": place * 0 + 1, "previous": np.maximum(place - 1, 0), "last": place * 0 + size}[VARIANT]
    scores = -np.abs(place[None, :] - wanted[:, None]).astype(float)  # query, key
    zeros = np.zeros((n_tokens, size))
    return {
        "W_Q": np.vstack([zeros, np.eye(size)]).astype(np.float32),
        "W_K": np.vstack([zeros, 100 * scores.T]).astype(np.float32),
        "W_V": np.eye(n_tokens + size, n_tokens),
        "positions": np.eye(size),
    }


survivor(
    "variant_head",
    '"second": 1',
    '"second":',
    "the audit's student has another of the three heads, so this entry is not used",
)
survivor(
    "variant_head",
    "-np.abs(key - target)",
    "~np.abs(key - target)",
    "for whole numbers ~n is -n - 1: all scores of a query are lower by the same, which softmax does not see",
)
survivor(
    "variant_head",
    "ENOUGH * np.sqrt(max_len)",
    "ENOUGH ** np.sqrt(max_len)",
    "larger scores than necessary are as good: 12 to the power of a root is more than 12 times the root",
)

# ------------------------------------------------------------------------------------ exercise 5: score_gap

edited(
    "score_gap",
    "gap_unscaled",
    " / np.sqrt(W_Q.shape[1])",
    "",
    says="Your scores are not divided by the root of d_qk.",
)
edited(
    "score_gap",
    "gap_divided_by_width",
    "np.sqrt(W_Q.shape[1])",
    "W_Q.shape[1]",
    says="Your scores are divided by d_qk itself; the scale is its square root.",
)
edited(
    "score_gap",
    "gap_scaled_by_model_width",
    "np.sqrt(W_Q.shape[1])",
    "np.sqrt(X.shape[1])",
    says="Your scale is the root of the width of X; it should come from d_qk, the columns of W_Q.",
)
edited(
    "score_gap",
    "gap_best_right_key",
    "np.where(right, scores, np.inf).min(axis=1)",
    "np.where(right, scores, -np.inf).max(axis=1)",
    says="You take the best right key of a query; the gap counts from the lowest right one, so that all of them are "
    "ahead.",
)
edited(
    "score_gap",
    "gap_lowest_wrong_key",
    "np.where(right, -np.inf, scores).max(axis=1)",
    "np.where(right, np.inf, scores).min(axis=1)",
    says="You take the lowest wrong key of a query; the dangerous one is the highest.",
)
edited(
    "score_gap",
    "gap_largest_over_queries",
    "(lowest_right - highest_wrong).min()",
    "np.where(right.any(1) & ~right.all(1), lowest_right - highest_wrong, -np.inf).max()",
    says="You return the largest gap of any query; a head is as good as its weakest query.",
)
edited(
    "score_gap",
    "gap_averaged_over_queries",
    "(lowest_right - highest_wrong).min()",
    "np.mean((lowest_right - highest_wrong)[right.any(1) & ~right.all(1)])",
    says="You average the gaps of the queries; a head is as good as its weakest query.",
)
edited(
    "score_gap",
    "gap_across_queries",
    "(lowest_right - highest_wrong).min()",
    "lowest_right.min() - highest_wrong.max()",
    says="You compare right keys of one query with wrong keys of another. Each query has a softmax of its own: take "
    "the gap of each, then the smallest.",
)
edited(
    "score_gap",
    "gap_by_columns",
    "scores = (X @ W_Q) @ (X @ W_K).T",
    "scores = (X @ W_K) @ (X @ W_Q).T",
    says="Your scores have a row for each key; row is query here.",
)
edited(
    "score_gap",
    "gap_sign_turned",
    "(lowest_right - highest_wrong).min()",
    "(highest_wrong - lowest_right).min()",
    says="You subtract the right key from the wrong one; a head that works should have a positive gap.",
)
edited(
    "score_gap",
    "gap_zero_when_skipped",
    "return (lowest_right - highest_wrong).min()",
    "return np.where(right.any(1) & ~right.all(1), lowest_right - highest_wrong, 0).min()",
    says="A query without a right or a wrong key counts as a gap of 0 in your function; it is skipped.",
)


@wrong(
    "score_gap",
    says="You take the gap of the attention weights; asked is that of the scores, before the softmax.",
)
def gap_of_weights(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = weights / weights.sum(axis=1, keepdims=True)
    return (np.where(right, weights, np.inf).min(axis=1) - np.where(right, -np.inf, weights).max(axis=1)).min()


@wrong(
    "score_gap",
    says="Your function stops at a query without a right or without a wrong key: the smallest of no numbers does not "
    "exist. Skip such queries, and return np.inf if none is left.",
)
def gap_without_skipping(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    return min(row[r].min() - row[~r].max() for row, r in zip(scores, right))


@wrong(
    "score_gap",
    says="Your gap is never below 0; a head that looks at the wrong keys has a negative gap, and how negative says"
    " how far it is off.",
)
def gap_never_negative(W_Q, W_K, X, right):
    scores = X @ W_Q @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    best = np.inf
    for s, r in zip(scores, np.asarray(right, dtype=bool)):
        if r.any() and (not r.all()):
            gap = max(0.0, s[r].min() - s[~r].max())
            best = min(best, gap)
    return best


@wrong(
    "score_gap",
    says="You set the scores of right keys to 0 before you look for the highest wrong one; where all wrong scores "
    "are negative, this 0 wins. Leave right keys out with minus infinity.",
)
def gap_with_zeros_for_right_keys(W_Q, W_K, X, right):
    Q, K = (X @ W_Q, X @ W_K)
    scores = Q @ K.T / np.sqrt(Q.shape[-1])
    right = np.asarray(right, dtype=bool)
    lowest_right = np.where(right, scores, np.inf).min(axis=1)
    highest_wrong = (scores * ~right).max(axis=1)
    use = right.any(axis=1) & ~right.all(axis=1)
    if not use.any():
        return np.inf
    return (lowest_right - highest_wrong)[use].min()


@wrong(
    "score_gap",
    says="One query without a right key makes the whole gap infinite in your function; such a query is skipped, "
    "and the others count.",
)
def gap_infinite_for_one_query(W_Q, W_K, X, right):
    d_qk = np.shape(W_K)[1]
    scores = X @ W_Q @ (X @ W_K).T / d_qk**0.5
    gaps = []
    for i in range(len(X)):
        r = right[i]
        if not r.any():
            return np.inf
        if r.all():
            continue
        gaps.append(scores[i][r].min() - scores[i][~r].max())
    return min(gaps) if gaps else np.inf


@wrong(
    "score_gap",
    says="You compare right keys of one query with wrong keys of another. Each query has a softmax of its own: "
    "take the gap of each, then the smallest.",
)
def gap_across_queries_in_use(W_Q, W_K, X, right):
    scores = X @ W_Q @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    right = np.asarray(right, dtype=bool)
    use = right.any(axis=1) & ~right.all(axis=1)
    if not use.any():
        return np.inf
    s, r = (scores[use], right[use])
    return s[r].min() - s[~r].max()


@wrong("score_gap", says="You subtract the mean of the wrong scores; the dangerous key is the highest of them.")
def gap_to_the_mean_wrong_key(W_Q, W_K, X, right):
    scores = X @ W_Q @ (X @ W_K).T / np.sqrt(W_K.shape[1])
    gaps = [s[r].min() - s[~r].mean() for s, r in zip(scores, right) if r.any() and (~r).any()]
    return min(gaps, default=np.inf)


@wrong("score_gap", says="A query without a right key counts with a right score of 0 in your function; it is skipped.")
def gap_with_right_score_zero(W_Q, W_K, X, right):
    scores = X @ W_Q @ (X @ W_K).T / np.sqrt(np.shape(W_Q)[1])
    gap = np.inf
    for i in range(len(X)):
        wrong = scores[i][~right[i]]
        good = scores[i][right[i]]
        if len(wrong) == 0:
            continue
        low = good.min() if len(good) else 0.0
        gap = min(gap, low - wrong.max())
    return gap


@wrong(
    "score_gap",
    says="The keys that do not count get a score such as 1000 from you, and real scores may be larger; use np.inf.",
)
def gap_filled_with_a_thousand(W_Q, W_K, X, right):
    scores = X @ W_Q @ (X @ W_K).T / np.sqrt(W_K.shape[1])
    counts = right.any(axis=1) & ~right.all(axis=1)
    gaps = np.where(right, scores, 1000).min(axis=1) - np.where(right, -1000, scores).max(axis=1)
    return gaps[counts].min() if counts.any() else np.inf


@right("score_gap")
def gap_by_loops(W_Q, W_K, X, right):
    Q, K = X @ W_Q, X @ W_K
    smallest = float("inf")
    for i in range(len(X)):
        of_right = [float(Q[i] @ K[j]) for j in range(len(X)) if right[i][j]]
        of_wrong = [float(Q[i] @ K[j]) for j in range(len(X)) if not right[i][j]]
        if of_right and of_wrong:
            smallest = min(smallest, (min(of_right) - max(of_wrong)) / W_K.shape[1] ** 0.5)
    return smallest


@right("score_gap")
def gap_by_pairs(W_Q, W_K, X, right):
    scores = np.einsum("id,dk,ek,je->ij", X, W_Q, W_K, X) / np.sqrt(W_Q.shape[-1])
    pairs = scores[:, :, None] - scores[:, None, :]  # query, one key, another key
    chosen = pairs[right[:, :, None] & ~right[:, None, :]]
    return chosen.min() if chosen.size else np.inf


@right("score_gap")
def gap_by_sorted_rows(W_Q, W_K, X, right):
    X, W_Q, W_K = (np.asarray(array, dtype=np.float64) for array in (X, W_Q, W_K))
    scores = X @ (W_Q @ W_K.T) @ X.T / W_Q.shape[1] ** 0.5
    kept = right.any(axis=1) & (~right).any(axis=1)
    gaps = [np.sort(row[r])[0] - np.sort(row[~r])[-1] for row, r in zip(scores[kept], right[kept])]
    return np.min(gaps, initial=np.inf)


# ------------------------------------------------------------------------------------ exercise 6: same_head


@wrong("same_head", says="You compare the outputs only; two heads can put out the same and look elsewhere.")
def same_by_outputs(a, b, X, atol):
    one, other = a.forward(X)[0], b.forward(X)[0]
    return one.shape == other.shape and bool(np.all(np.abs(one - other) <= atol))


@wrong("same_head", says="You compare the patterns only; two heads can look at the same and put out something else.")
def same_by_patterns(a, b, X, atol):
    one, other = a.forward(X)[1], b.forward(X)[1]
    return one.shape == other.shape and bool(np.all(np.abs(one - other) <= atol))


@wrong(
    "same_head",
    says="You compare matrices. Heads with quite different matrices can do the same, and a head need not have any: use "
    "forward only.",
)
def same_by_matrices(a, b, X, atol):
    return all(np.allclose(getattr(a, n), getattr(b, n), rtol=0, atol=atol) for n in ("W_Q", "W_K", "W_V"))


edited(
    "same_head",
    "same_if_smaller",
    "> atol",
    ">= atol",
    says="A difference of exactly atol makes two heads different in your function; it is still allowed.",
)
edited(
    "same_head",
    "same_by_signed_difference",
    "np.abs(of_a - of_b)",
    "(of_a - of_b)",
    says="A difference in one direction goes unnoticed in your function: take its size, without the sign.",
)
edited(
    "same_head",
    "same_on_average",
    "np.any(np.abs(of_a - of_b) > atol)",
    "np.mean(np.abs(of_a - of_b)) > atol",
    says="You compare the average difference; a single entry that is off makes it another head.",
)
edited(
    "same_head",
    "same_if_anything_agrees",
    "np.any(np.abs(of_a - of_b) > atol)",
    "np.all(np.abs(of_a - of_b) > atol)",
    says="Your heads count as the same when some entries agree; all of them have to.",
)
edited(
    "same_head",
    "same_shapes_unchecked",
    "np.shape(of_a) != np.shape(of_b) or ",
    "",
    says="Where shapes differ, NumPy stretches one of the arrays or stops with an error; compare the shapes first.",
)


@wrong(
    "same_head",
    says="Your tolerance grows with the size of the numbers: np.allclose adds a share of them unless it is "
    "told rtol=0.",
)
def same_with_relative_tolerance(a, b, X, atol):
    pairs = list(zip(a.forward(X), b.forward(X)))
    return all(np.shape(p) == np.shape(q) and np.allclose(p, q, atol=atol) for p, q in pairs)


@wrong("same_head", says="You ask for exact equality; differences up to atol are allowed.")
def same_to_the_last_digit(a, b, X, atol):
    return all(np.array_equal(p, q) for p, q in zip(a.forward(X), b.forward(X)))


@wrong(
    "same_head",
    says="You compare all differences taken together (their length or their sum) with atol; each of them by itself may "
    "be as large as atol.",
)
def same_by_length(a, b, X, atol):
    oa, wa = a.forward(X)
    ob, wb = b.forward(X)
    if np.shape(oa) != np.shape(ob) or np.shape(wa) != np.shape(wb):
        return False
    return bool(np.linalg.norm(oa - ob) <= atol and np.linalg.norm(wa - wb) <= atol)


@wrong(
    "same_head", says="A difference in one direction goes unnoticed in your function: take its size, without the sign."
)
def same_by_signed_difference_the_other_way(a, b, X, atol):
    out_a, w_a = a.forward(X)
    out_b, w_b = b.forward(X)
    if out_a.shape != out_b.shape or w_a.shape != w_b.shape:
        return False
    return bool(np.max(out_b - out_a) <= atol and np.max(w_b - w_a) <= atol)


@wrong(
    "same_head",
    says="You flatten before you compare, so that heads with outputs of other shapes can count as the same; "
    "compare the shapes first.",
)
def same_flattened(a, b, X, atol):
    out_a, w_a = (np.ravel(part) for part in a.forward(X))
    out_b, w_b = (np.ravel(part) for part in b.forward(X))
    if out_a.size != out_b.size or w_a.size != w_b.size:
        return False
    return bool((np.abs(out_a - out_b) <= atol).all() and (np.abs(w_a - w_b) <= atol).all())


@wrong(
    "same_head",
    says="You do not compare the shapes of the weights; where they differ, NumPy stretches one of them or stops "
    "with an error.",
)
def same_shapes_of_weights_unchecked(a, b, X, atol):
    output_a, weights_a = a.forward(X)
    output_b, weights_b = b.forward(X)
    if output_a.shape != output_b.shape:
        return False
    close_outputs = np.all(np.abs(output_a - output_b) <= atol)
    close_weights = np.all(np.abs(weights_a - weights_b) <= atol)
    return bool(close_outputs and close_weights)


@wrong(
    "same_head",
    says="Two things: you compare average differences, where a single entry that is off makes it another head; and"
    " a difference of exactly atol is still allowed.",
)
def same_on_average_and_smaller(a, b, X, atol):
    for first, second in zip(a.forward(X), b.forward(X)):
        first, second = (np.asarray(first), np.asarray(second))
        if first.shape != second.shape:
            return False
        if not np.mean(np.abs(first - second)) < atol:
            return False
    return True


@wrong(
    "same_head",
    says="You count the differences of outputs and of weights together, as in a sum of both; each of the two may be as "
    "large as atol.",
)
def same_by_the_sum_of_both(a, b, X, atol):
    (output_a, weights_a), (output_b, weights_b) = a.forward(X), b.forward(X)
    if output_a.shape != output_b.shape or weights_a.shape != weights_b.shape:
        return False
    return bool(np.max(np.abs(output_a - output_b)) + np.max(np.abs(weights_a - weights_b)) <= atol)


@wrong(
    "same_head",
    says="Some differences below atol count as too large in your function. (Do you round before you "
    "compare? Two numbers that are close can be rounded apart; compare their difference with atol.)",
)
def same_after_rounding(a, b, X, atol):
    decimals = 12 if atol == 0 else max(0, int(-np.floor(np.log10(atol))))
    for p, q in zip(a.forward(X), b.forward(X)):
        if p.shape != q.shape or not np.array_equal(np.round(p, decimals), np.round(q, decimals)):
            return False
    return True


@wrong("same_head", says="One agreement is enough in your function; outputs and weights both have to agree.")
def same_if_one_of_both_agrees(a, b, X, atol):
    (output_a, weights_a), (output_b, weights_b) = a.forward(X), b.forward(X)
    if output_a.shape != output_b.shape or weights_a.shape != weights_b.shape:
        return False
    return bool(np.max(np.abs(output_a - output_b)) <= atol or np.max(np.abs(weights_a - weights_b)) <= atol)


@right("same_head")
def same_by_allclose(a, b, X, atol):
    (output_a, weights_a), (output_b, weights_b) = a.forward(X), b.forward(X)
    if output_a.shape != output_b.shape or weights_a.shape != weights_b.shape:
        return False
    return np.allclose(weights_a, weights_b, rtol=0, atol=atol) and np.allclose(output_a, output_b, rtol=0.0, atol=atol)


@right("same_head")
def same_by_largest_difference(a, b, X, atol):
    same = np.bool_(True)
    for one, other in zip(a.forward(X), b.forward(X)):
        if np.shape(one) != np.shape(other):
            return np.bool_(False)
        same = same & (np.max(np.abs(np.asarray(one, dtype=float) - other)) <= atol)
    return same


# ---------------------------------------------------------------------------------- exercise 7: LearnedHead

edited(
    "LearnedHead",
    "learned_unscaled",
    " / Q.shape[-1] ** 0.5",
    "",
    says="Your scores are not divided by the root of d_qk.",
)
edited(
    "LearnedHead",
    "learned_divided_by_width",
    "Q.shape[-1] ** 0.5",
    "Q.shape[-1]",
    says="Your scores are divided by d_qk itself; the scale is its square root.",
)
edited(
    "LearnedHead",
    "learned_scaled_by_model_width",
    "Q.shape[-1] ** 0.5",
    "X.shape[-1] ** 0.5",
    says="Your scale is the root of the width of token and position together; it should come from d_qk.",
)
edited(
    "LearnedHead",
    "learned_scaled_by_d_v",
    "Q.shape[-1] ** 0.5",
    "V.shape[-1] ** 0.5",
    says="Your scale is the root of the width of the values; it should come from d_qk.",
)
edited(
    "LearnedHead",
    "learned_scaled_by_length",
    "Q.shape[-1] ** 0.5",
    "Q.shape[-2] ** 0.5",
    says="Your scale is the root of the number of tokens; it should come from d_qk.",
)


@wrong(
    "LearnedHead",
    says="In your pattern the columns sum to 1; each query, a row, has one whole of attention to give away.",
    based_on="LearnedHead",
)
class learned_softmax_over_queries:
    def forward(self, X):
        if self.positions is not None:
            rows = self.positions.weight[: X.shape[-2]]  # (T, d_pos), the same for every sequence
            X = torch.cat([X, rows.expand(*X.shape[:-1], -1)], dim=-1)
        Q, K, V = self.W_Q(X), self.W_K(X), self.W_V(X)
        weights = torch.softmax(Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5, dim=-2)
        return weights @ V, weights


edited(
    "LearnedHead",
    "learned_positions_on_the_left",
    "[X, rows.expand(*X.shape[:-1], -1)]",
    "[rows.expand(*X.shape[:-1], -1), X]",
    says="Your positions stand on the left of the tokens; they belong on the right.",
)
edited(
    "LearnedHead",
    "learned_last_positions",
    "self.positions.weight[: X.shape[-2]]",
    "self.positions.weight[-X.shape[-2] :]",
    says="A short sequence gets the last rows of your table; its first token should stand at position 0.",
)
edited(
    "LearnedHead",
    "learned_position_of_first_only",
    "self.positions.weight[: X.shape[-2]]",
    "self.positions.weight[:1]",
    says="Every token gets the same row of your table, the first; token t should get row t.",
)
edited(
    "LearnedHead",
    "learned_with_bias",
    "self.W_Q = nn.Linear(width, d_qk, bias=False)",
    "self.W_Q = nn.Linear(width, d_qk)",
    says="A layer of your head has a bias; nn.Linear makes one unless it is told bias=False.",
)
edited(
    "LearnedHead",
    "learned_weights_first",
    "return weights @ V, weights",
    "return weights, weights @ V",
    says="You return the weights first; asked is (output, weights).",
)


@wrong(
    "LearnedHead",
    says="No gradient reaches W_Q and W_K in your head: they are cut off (no_grad, detach, .data or a new tensor).",
    based_on="LearnedHead",
)
class learned_pattern_detached:
    def forward(self, X):
        if self.positions is not None:
            rows = self.positions.weight[: X.shape[-2]]  # (T, d_pos), the same for every sequence
            X = torch.cat([X, rows.expand(*X.shape[:-1], -1)], dim=-1)
        Q, K, V = self.W_Q(X), self.W_K(X), self.W_V(X)
        weights = torch.softmax(Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5, dim=-1)
        weights = weights.detach()
        return weights @ V, weights


edited(
    "LearnedHead",
    "learned_positions_detached",
    "self.positions.weight[: X.shape[-2]]",
    "self.positions.weight.data[: X.shape[-2]]",
    says="No gradient reaches your positions: they are cut off (no_grad, detach, .data or a new tensor).",
)


@wrong(
    "LearnedHead",
    says="Your head works for one batch axis only. Count axes from the end, so that none or several may stand "
    "in front.",
)
class LearnedForOneBatchAxis(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        width = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        self.positions = None if max_len is None else nn.Embedding(max_len, d_pos)

    def forward(self, X):
        B, T, _ = X.shape
        if self.positions is not None:
            X = torch.cat([X, self.positions.weight[:T].unsqueeze(0).repeat(B, 1, 1)], dim=2)
        Q, K, V = self.W_Q(X), self.W_K(X), self.W_V(X)
        weights = torch.softmax(torch.bmm(Q, K.transpose(1, 2)) / Q.shape[2] ** 0.5, dim=2)
        return torch.bmm(weights, V), weights


@wrong(
    "LearnedHead",
    says="Your exponential overflows for large scores; torch.softmax subtracts the largest score by itself.",
)
class LearnedOverflows(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        width = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        self.positions = None if max_len is None else nn.Embedding(max_len, d_pos)

    def forward(self, X):
        if self.positions is not None:
            rows = self.positions.weight[: X.shape[-2]]
            X = torch.cat([X, rows.expand(*X.shape[:-1], -1)], dim=-1)
        Q, K, V = self.W_Q(X), self.W_K(X), self.W_V(X)
        powers = torch.exp(Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5)
        weights = powers / powers.sum(dim=-1, keepdim=True)
        return weights @ V, weights


@wrong(
    "LearnedHead",
    says="Your softmax runs over axis 1. That is the keys' axis only without a batch; count from the end.",
    based_on="LearnedHead",
)
class learned_softmax_over_axis_one:
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        if max_len is None:
            self.positions = None
            d = n_tokens
        else:
            self.positions = nn.Embedding(max_len, d_pos)
            d = n_tokens + d_pos
        self.d_qk = d_qk
        self.W_Q = nn.Linear(d, d_qk, bias=False)
        self.W_K = nn.Linear(d, d_qk, bias=False)
        self.W_V = nn.Linear(d, d_v, bias=False)

    def forward(self, X):
        Z = X
        if self.positions is not None:
            p = self.positions(torch.arange(X.shape[-2]))
            Z = torch.cat((X, p.expand(X.shape[:-1] + p.shape[-1:])), dim=-1)
        Q, K, V = (self.W_Q(Z), self.W_K(Z), self.W_V(Z))
        scores = Q @ K.transpose(-2, -1) / np.sqrt(self.d_qk)
        weights = nn.functional.softmax(scores, dim=1)
        return (weights @ V, weights)


@wrong(
    "LearnedHead",
    says="You look up the row of your table by the number of the token; token t of the sequence gets row t, "
    "whatever it is.",
    based_on="LearnedHead",
)
class learned_positions_by_token:
    def forward(self, X):
        if self.positions is not None:
            index = X.argmax(dim=-1)
            X = torch.cat([X, self.positions(index)], dim=-1)
        Q = self.W_Q(X)
        K = self.W_K(X)
        V = self.W_V(X)
        weights = torch.softmax(Q @ K.mT / Q.shape[-1] ** 0.5, dim=-1)
        return (weights @ V, weights)


@wrong(
    "LearnedHead",
    says="You read the length of the sequence from axis 1; that is right with one batch axis only. Count from the end.",
    based_on="LearnedHead",
)
class learned_length_from_axis_one:
    def forward(self, X):
        if self.positions is not None:
            T = X.shape[1]
            P = self.positions(torch.arange(T))
            X = torch.cat([X, P.expand(*X.shape[:-2], *P.shape)], dim=-1)
        Q, K, V = (self.W_Q(X), self.W_K(X), self.W_V(X))
        weights = (Q @ K.transpose(-2, -1) / K.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ V, weights)


@wrong(
    "LearnedHead",
    says="You melt all leading axes into one and leave it so; the result keeps them.",
    based_on="LearnedHead",
)
class learned_batch_axes_melted:
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        width = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        self.positions = nn.Embedding(max_len, d_pos) if max_len is not None else None

    def forward(self, X):
        single = X.dim() == 2
        X = X.reshape(-1, X.shape[-2], X.shape[-1])
        if self.positions is not None:
            P = self.positions.weight[: X.shape[1]]
            X = torch.cat([X, P.unsqueeze(0).expand(X.shape[0], -1, -1)], dim=2)
        Q, K, V = (self.W_Q(X), self.W_K(X), self.W_V(X))
        weights = torch.softmax(torch.bmm(Q, K.transpose(1, 2)) / Q.shape[-1] ** 0.5, dim=2)
        output = torch.bmm(weights, V)
        if single:
            return (output[0], weights[0])
        return (output, weights)


@wrong(
    "LearnedHead",
    says="Your weights start at zero: then no gradient reaches W_Q and W_K, and they stay there for ever. Leave "
    "the random start of nn.Linear.",
    based_on="LearnedHead",
)
class learned_starts_at_zero:
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        d = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(d, d_qk, bias=False)
        self.W_K = nn.Linear(d, d_qk, bias=False)
        self.W_V = nn.Linear(d, d_v, bias=False)
        for layer in (self.W_Q, self.W_K, self.W_V):
            nn.init.zeros_(layer.weight)
        self.positions = None if max_len is None else nn.Embedding(max_len, d_pos)


@wrong(
    "LearnedHead",
    says="You multiply the positions by the root of their width; they are joined to the tokens as they are.",
    based_on="LearnedHead",
)
class learned_positions_scaled:
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        self.d_pos = d_pos
        width = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        self.positions = None if max_len is None else nn.Embedding(max_len, d_pos)

    def forward(self, X):
        if self.positions is not None:
            index = torch.arange(X.shape[-2], device=X.device)
            P = self.positions(index) * self.d_pos**0.5
            X = torch.cat([X, P.expand(*X.shape[:-1], self.d_pos)], dim=-1)
        Q, K, V = (self.W_Q(X), self.W_K(X), self.W_V(X))
        weights = torch.softmax(Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5, dim=-1)
        return (weights @ V, weights)


@wrong(
    "LearnedHead",
    says="Two things: your positions stand on the left of the tokens, where they belong on the right; and your "
    "softmax runs over axis 1, which is the keys' axis only without a batch.",
    based_on="LearnedHead",
)
class learned_left_and_over_axis_one:
    def forward(self, X):
        if self.positions is not None:
            P = self.positions(torch.arange(X.shape[-2]))
            X = torch.cat([P.expand(*X.shape[:-2], *P.shape), X], dim=-1)
        Q, K, V = (self.W_Q(X), self.W_K(X), self.W_V(X))
        weights = torch.softmax(Q @ K.transpose(-1, -2) / K.shape[-1] ** 0.5, dim=1)
        return (weights @ V, weights)


@right("LearnedHead")
class LearnedWithLookup(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        if max_len:
            self.positions = nn.Embedding(max_len, d_pos)
        else:
            self.positions, d_pos = None, 0
        self.W_V = nn.Linear(n_tokens + d_pos, d_v, bias=False)
        self.W_K = nn.Linear(n_tokens + d_pos, d_qk, bias=False)
        self.W_Q = nn.Linear(n_tokens + d_pos, d_qk, bias=False)
        self.scale = d_qk**-0.5

    def forward(self, X):
        *leading, T, _ = X.shape
        if self.positions is not None:
            codes = self.positions(torch.arange(T, device=X.device))
            X = torch.cat((X, codes.repeat(*leading, 1, 1) if leading else codes), dim=-1)
        scores = torch.einsum("...ik,...jk->...ij", self.W_Q(X) * self.scale, self.W_K(X))
        weights = scores.softmax(-1)
        return torch.einsum("...ij,...jv->...iv", weights, self.W_V(X)), weights


@right("LearnedHead")
class LearnedWithSplitMatrices(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        self.n_tokens = n_tokens
        self.positions = nn.Embedding(max_len, d_pos) if max_len is not None else None
        width = n_tokens + (0 if d_pos is None else d_pos)
        self.W_Q, self.W_K, self.W_V = (nn.Linear(width, d, bias=False) for d in (d_qk, d_qk, d_v))

    def forward(self, X):
        def through(layer):
            result = X @ layer.weight[:, : self.n_tokens].T
            if self.positions is not None:
                result = result + self.positions.weight[: X.shape[-2]] @ layer.weight[:, self.n_tokens :].T
            return result

        Q, K, V = map(through, (self.W_Q, self.W_K, self.W_V))
        scores = Q @ K.mT / torch.sqrt(torch.tensor(float(Q.shape[-1])))
        powers = torch.exp(scores - scores.amax(-1, keepdim=True))
        weights = powers / powers.sum(-1, keepdim=True)
        return [weights @ V, weights]


# ---------------------------------------------------------------------------------- exercise 10: unique_head


@wrong("unique_head", says="Your signs are the other way round: positive is for a token that occurs once.")
def unique_signs_swapped(n_tokens):
    kinds = np.eye(n_tokens + 1, n_tokens)  # a query or key for each kind, nothing for the begin token
    W_K = kinds.copy()
    W_K[n_tokens] = 1 + np.log(np.sqrt(2)) / ENOUGH  # the begin token weighs as much as the root of two tokens
    W_V = np.full((n_tokens + 1, 1), 1.0)
    W_V[n_tokens] = -1
    return {"W_Q": ENOUGH * np.sqrt(n_tokens) * kinds, "W_K": W_K, "W_V": W_V}


edited(
    "unique_head",
    "unique_begin_as_one_token",
    "1 + np.log(np.sqrt(2)) / ENOUGH",
    "1",
    says="Begin and a single token balance each other in your head, so that the output of a token that occurs once is "
    "about zero. Begin has to outweigh one token, but not two.",
)
edited(
    "unique_head",
    "unique_begin_too_heavy",
    "1 + np.log(np.sqrt(2)) / ENOUGH",
    "1 + np.log(2.5) / ENOUGH",
    says="The begin token outweighs two tokens in your head, so a repeated token still comes out positive.",
)
edited(
    "unique_head",
    "unique_begin_ignored",
    "W_K[n_tokens] = 1 + np.log(np.sqrt(2)) / ENOUGH",
    "W_K[n_tokens] = -1",
    says="Every token comes out negative in your head, also one that occurs once: begin, the counterweight, does not "
    "outvote even a single token.",
)
edited(
    "unique_head",
    "unique_ratio_forgotten",
    "1 + np.log(np.sqrt(2)) / ENOUGH",
    "np.sqrt(2)",
    says="Every token comes out positive in your head, however often it occurs: tokens do not outvote begin. What they "
    "hand over has to be negative, and begin's score must not be too far ahead: a factor of the attention is a "
    "difference of scores (its logarithm).",
)


@wrong("unique_head", says="Your matrices have no row for the begin token; rows are one-hot of width n_tokens + 1.")
def unique_without_begin(n_tokens):
    kinds = np.eye(n_tokens)
    return {
        "W_Q": ENOUGH * np.sqrt(n_tokens) * kinds,
        "W_K": kinds,
        "W_V": kinds[:, :1],
    }  # a query or key for each kind, nothing for the begin token
    W_K = kinds.copy()
    W_K[n_tokens] = 1 + np.log(np.sqrt(2)) / ENOUGH  # the begin token weighs as much as the root of two tokens
    W_V = np.full((n_tokens + 1, 1), -1.0)
    W_V[n_tokens] = 1
    return {"W_Q": ENOUGH * np.sqrt(n_tokens) * kinds, "W_K": W_K, "W_V": W_V}


edited(
    "unique_head",
    "unique_too_soft",
    '"W_Q": ENOUGH * np.sqrt(n_tokens) * kinds',
    '"W_Q": np.sqrt(n_tokens) * kinds',
    says="Other kinds still get a share in your head and count as repetitions: make the difference between the own "
    "kind and others larger.",
)


@wrong(
    "unique_head",
    says="Other kinds still get a share in your head and count as repetitions: make the gap between the own"
    " kind and others larger.",
)
def unique_too_soft_with_own_begin(n_tokens):
    width = n_tokens + 1
    s = 2 * np.sqrt(width)
    W_Q = s * np.eye(width)
    W_Q[:, n_tokens] = s
    W_V = -np.ones((width, 1))
    W_V[n_tokens] = 1.5
    return {"W_Q": W_Q, "W_K": np.eye(width), "W_V": W_V}


@wrong(
    "unique_head",
    says="The gap of your head is large enough for few kinds only. Scores are divided by the root of d_qk, which grows "
    "with n_tokens: let your numbers grow with it.",
)
def unique_root_forgotten(n_tokens):
    width = n_tokens + 1
    W_Q = 5 * np.eye(width)
    W_Q[:, -1] = 5
    W_K = np.eye(width)
    W_V = np.concatenate([-np.ones((n_tokens, 1)), [[1.5]]])
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V}


@wrong("unique_head", says="Your tokens find an equal only beside them; it may stand anywhere in the sequence.")
def unique_looks_at_neighbours(n_tokens):
    places = 5
    kinds = n_tokens + 1
    d = kinds + places
    near = np.array([[float(abs(i - j) <= 1) for j in range(places)] for i in range(places)])
    W_Q = np.zeros((d, d))
    W_K = np.zeros((d, d))
    s = 2 * ENOUGH * np.sqrt(d)
    W_Q[:n_tokens, :n_tokens] = np.eye(n_tokens)
    W_K[:n_tokens, :n_tokens] = s * np.eye(n_tokens)
    W_Q[:n_tokens, n_tokens] = 1
    W_K[n_tokens, n_tokens] = 2 * s
    W_Q[kinds:, kinds:] = near
    W_K[kinds + 1 :, kinds + 1 :] = s * np.eye(places - 1)
    W_V = np.zeros((d, 1))
    W_V[:n_tokens] = -1
    W_V[n_tokens] = 1.5
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(places)}


@wrong(
    "unique_head",
    says="Your matrices take the first row for the begin token; it has the number n_tokens, the last row.",
)
def unique_begin_in_row_zero(n_tokens):
    width = n_tokens + 1
    s = 2 * ENOUGH * np.sqrt(width)
    W_Q = np.eye(width)
    W_Q[:, 0] = 1
    W_V = np.full((width, 1), -1.0)
    W_V[0] = 1.5
    return {"W_Q": s * W_Q, "W_K": np.eye(width), "W_V": W_V}


@wrong(
    "unique_head",
    says="Your outputs are never negative, for the values of the tokens are 0; they have to outvote the begin "
    "token where a token repeats.",
)
def unique_never_negative(n_tokens):
    width = n_tokens + 1
    s = 2 * ENOUGH * np.sqrt(width)
    W_Q = s * np.eye(width)
    W_Q[:, n_tokens] = s
    W_V = np.zeros((width, 1))
    W_V[n_tokens] = 1.0
    return {"W_Q": W_Q, "W_K": np.eye(width), "W_V": W_V, "positions": None}


@right("unique_head")
def unique_with_large_values(n_tokens):
    d = n_tokens + 1
    W_Q, W_K, W_V = np.zeros((d, d)), np.eye(d), np.full((d, 1), -300.0)
    for token in range(n_tokens):
        W_Q[token, token] = 25 * d**0.5
        W_Q[token, n_tokens] = (25 + np.log(1.4)) * d**0.5
    W_V[n_tokens] = 300
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": None}


@right("unique_head")
def unique_in_float32_with_idle_positions(n_tokens):
    kinds = np.eye(n_tokens + 2, n_tokens, dtype=np.float32)
    kinds[n_tokens] = 0
    keys = kinds.copy()
    keys[n_tokens] = 1 + np.log(1.5) / 20
    values = np.array([[-1.0]] * n_tokens + [[1.0], [0.0]])
    return {
        "W_Q": 20 * np.float32(n_tokens) ** 0.5 * kinds,
        "W_K": keys,
        "W_V": values,
        "positions": np.zeros((6, 1)),
    }


@right("unique_head")
def unique_by_uneven_values(n_tokens):
    kinds = np.eye(n_tokens + 1, n_tokens)
    keys = kinds + (np.arange(n_tokens + 1) == n_tokens)[:, None]
    values = np.full((n_tokens + 1, 1), -2.0)
    values[n_tokens] = 3  # with equal shares: (3 - 2) / 2 for one, (3 - 4) / 3 for two
    return {"W_Q": 30 * n_tokens * kinds, "W_K": keys, "W_V": values}


survivor(
    "unique_head",
    "np.sqrt(2)",
    "np.sqrt(3)",
    "begin may weigh anything between one token and two; the root of three lies in between as well",
)

# ----------------------------------------------------------------------------- exercise 11: induction_circuit

edited(
    "induction_circuit",
    "induction_first_head_keeps_its_place",
    "np.eye(places, k=-1)",
    "np.eye(places)",
    says="Your first head looks at its own place, so each token finds its own kind written beside it, and head 2 looks "
    "at earlier tokens of its kind instead of at what came after them.",
)
edited(
    "induction_circuit",
    "induction_first_head_looks_ahead",
    "np.eye(places, k=-1)",
    "np.eye(places, k=1)",
    says="Your first head asks for the place after its own, which the causal mask hides; it should ask for the one "
    "before. Row is query, column is key.",
)
edited(
    "induction_circuit",
    "induction_two_places_back",
    "np.eye(places, k=-1)",
    "np.eye(places, k=-2)",
    says="Your first head looks two places back; it should look at the place just before its own.",
)
edited(
    "induction_circuit",
    "induction_nothing_written",
    "W_V1[token, before] = np.eye(n_tokens)",
    "W_V1[token, before] = 0",
    says="Your first head looks at the token before, but no key of head 2 ever matches and every token rests on "
    "begin. Does W_V1 write that token into the stream, into columns that W_K2 reads?",
)
edited(
    "induction_circuit",
    "induction_written_over_the_token",
    "W_V1[token, before] = np.eye(n_tokens)",
    "W_V1[token, before] = W_V1[token, token] = np.eye(n_tokens)",
    says="Your first head adds the token before to the columns of the token itself, too. The stream then says of one "
    "row that it is both; write into columns that are free.",
)
edited(
    "induction_circuit",
    "induction_by_content_only",
    "W_K2[before]",
    "W_K2[token]",
    says="The keys of your second head tell what a token is, so it looks at its own kind. They should tell what stands "
    "before the token, as head 1 has written it: that is the composition.",
)
edited(
    "induction_circuit",
    "induction_queries_read_what_was_written",
    "W_Q2[token] = 2",
    "W_Q2[before] = 2",
    says="Your second head asks with the token before the query, not with the query's own token: it finds tokens with "
    "the same predecessor.",
)


@wrong(
    "induction_circuit",
    says="Queries and keys of your second head are the wrong way round: it asks with the token before the query and "
    "looks for tokens of that kind. The token itself should ask, and what stands before a key should answer.",
)
def induction_asked_backwards(n_tokens, max_len):
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + places + n_tokens
    token, place, before = slice(n_tokens), slice(kinds, kinds + places), slice(-n_tokens, None)
    W_Q1, W_K1 = np.zeros((2, d, places))
    W_Q1[place] = ENOUGH * np.sqrt(places) * np.eye(places, k=-1)
    W_K1[place] = np.eye(places)
    W_V1 = np.zeros((d, d))
    W_V1[token, before] = np.eye(n_tokens)
    scale = ENOUGH * np.sqrt(kinds)
    W_Q2, W_K2 = np.zeros((2, d, kinds))
    W_Q2[before] = 2 * scale * np.eye(n_tokens, kinds)
    W_K2[token] = np.eye(n_tokens, kinds)
    W_Q2[token, n_tokens] = scale
    W_K2[n_tokens, n_tokens] = 1
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d, n_tokens),
        "positions": np.eye(places, places + n_tokens),
    }


edited(
    "induction_circuit",
    "induction_hands_on_the_token_before",
    "W_V2 = np.eye(d, n_tokens)",
    "W_V2 = np.eye(d)[:, before]",
    says="Your second head looks at the right token and hands on what stood before it, which is the query's own kind. "
    "The guess is the token looked at.",
)
edited(
    "induction_circuit",
    "induction_hands_on_both",
    "W_V2 = np.eye(d, n_tokens)",
    "W_V2 = np.eye(d, n_tokens) + np.eye(d)[:, before]",
    says="Your output holds the token looked at and, added to it, the one before that. W_V2 should leave out what head "
    "1 has written.",
)
edited(
    "induction_circuit",
    "induction_without_a_default",
    "W_Q2[token, n_tokens] = scale",
    "W_Q2[token, n_tokens] = 0",
    says="For a token that is new all scores are equal in your second head, so it looks everywhere. Begin needs a "
    "score above that of wrong keys.",
)
edited(
    "induction_circuit",
    "induction_default_as_strong",
    "W_Q2[token, n_tokens] = scale",
    "W_Q2[token, n_tokens] = 2 * scale",
    says="Begin has the same score as a right key in your second head and takes its share of the attention. It should "
    "come between right and wrong keys.",
)
edited(
    "induction_circuit",
    "induction_default_too_weak",
    "W_Q2[token, n_tokens] = scale",
    "W_Q2[token, n_tokens] = scale / ENOUGH",
    says="Begin is hardly ahead of wrong keys in your second head, so a token that is new looks everywhere. Its score "
    "has to be ahead by about ln(99 · the number of wrong keys).",
)
edited(
    "induction_circuit",
    "induction_begin_as_a_guess",
    "W_V2 = np.eye(d, n_tokens)",
    "W_V2 = np.eye(d, kinds)",
    says="Your output has a column for begin; the guess is one of n_tokens, and zeros where there is none.",
)
edited(
    "induction_circuit",
    "induction_begin_hands_something_on",
    "W_V2 = np.eye(d, n_tokens)",
    "W_V2 = np.eye(d, n_tokens) + (np.arange(d) == n_tokens)[:, None]",
    says="What your second head hands on for begin is not zero, so a token that is new makes a guess all the same.",
)
edited(
    "induction_circuit",
    "induction_first_root_forgotten",
    "ENOUGH * np.sqrt(places)",
    "ENOUGH",
    says="The gap of your first head is too small, at least with a long table. Scores are divided by the root of d_qk: "
    "where d_qk grows with the number of places, your numbers have to grow with it.",
)
edited(
    "induction_circuit",
    "induction_first_too_soft",
    "ENOUGH * np.sqrt(places)",
    "2",
    says="Your first head looks too softly at the place before, so what it writes is a mixture of all earlier tokens.",
)
edited(
    "induction_circuit",
    "induction_second_too_soft",
    "scale = ENOUGH * np.sqrt(kinds)",
    "scale = 2",
    says="Your second head prefers the right keys, but too softly: right keys have to be ahead of begin, and begin of "
    "wrong keys, by about ln(99 · the number of keys).",
)
edited(
    "induction_circuit",
    "induction_no_place_for_begin",
    "kinds, places = n_tokens + 1, max_len + 1",
    "kinds, places = n_tokens + 1, max_len",
    says="Your table has max_len rows. Begin stands in front and needs a row of its own, so there are max_len + 1.",
)
edited(
    "induction_circuit",
    "induction_fixed_table",
    "kinds, places = n_tokens + 1, max_len + 1",
    "kinds, places = n_tokens + 1, 13",
    says="Your table has the same number of rows whatever max_len is; let its size follow from max_len.",
)
edited(
    "induction_circuit",
    "induction_three_tokens_only",
    "kinds, places = n_tokens + 1, max_len + 1",
    "n_tokens, kinds, places = 3, 4, max_len + 1",
    says="Your matrices are made for three tokens, whatever n_tokens is; let their sizes follow from it.",
)


@wrong(
    "induction_circuit",
    says="What your first head writes has columns of its own, to be set beside the stream. It is added to the stream: "
    "W_V1 has as many columns as rows, and `positions` some columns of zeros as free space.",
)
def induction_output_set_beside(n_tokens, max_len):
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + places
    W_Q1, W_K1 = np.zeros((2, d, places))
    W_Q1[kinds:], W_K1[kinds:] = ENOUGH * np.sqrt(places) * np.eye(places, k=-1), np.eye(places)
    W_Q2, W_K2 = np.zeros((2, d + kinds, kinds))
    W_Q2[:n_tokens] = 2 * ENOUGH * np.sqrt(kinds) * np.eye(n_tokens, kinds)
    W_Q2[:n_tokens, n_tokens] = ENOUGH * np.sqrt(kinds)
    W_K2[d : d + n_tokens] = np.eye(n_tokens, kinds)
    W_K2[n_tokens, n_tokens] = 1
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": np.eye(d, kinds),
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d + kinds, n_tokens),
        "positions": np.eye(places),
    }


@wrong(
    "induction_circuit",
    says="Your second head looks at the latest of the tokens that came after its kind; they should all share its "
    "attention, so that the output is their mean.",
)
def induction_latest_only(n_tokens, max_len):
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + places + n_tokens + 1
    positions = np.eye(places, places + n_tokens + 1)
    positions[:, -1] = np.arange(places)
    W_Q1, W_K1, W_Q2, W_K2 = np.zeros((4, d, places + kinds))
    W_Q1[kinds : kinds + places, :places] = 100 * places * np.eye(places, k=-1)
    W_K1[kinds : kinds + places, :places] = np.eye(places)
    W_V1 = np.zeros((d, d))
    W_V1[:n_tokens, -n_tokens - 1 : -1] = np.eye(n_tokens)
    scale = np.sqrt(places + kinds)
    W_Q2[:n_tokens, :n_tokens] = 800 * scale * np.eye(n_tokens)
    W_K2[-n_tokens - 1 : -1, :n_tokens] = np.eye(n_tokens)
    W_Q2[:n_tokens, n_tokens] = 400 * scale
    W_K2[n_tokens, n_tokens] = 1
    W_Q2[:n_tokens, n_tokens + 1] = 10 * scale
    W_K2[-1, n_tokens + 1] = 1
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d, n_tokens),
        "positions": positions,
    }


@wrong(
    "induction_circuit",
    says="The rows of your matrices do not leave one for begin: tokens are one-hot of width n_tokens + 1.",
)
def induction_without_begin(n_tokens, max_len):
    places = max_len + 1
    d = n_tokens + places + n_tokens
    W_Q1, W_K1 = np.zeros((2, d, places))
    W_Q1[n_tokens:-n_tokens] = ENOUGH * np.sqrt(places) * np.eye(places, k=-1)
    W_K1[n_tokens:-n_tokens] = np.eye(places)
    W_V1 = np.zeros((d, d))
    W_V1[:n_tokens, -n_tokens:] = np.eye(n_tokens)
    W_Q2, W_K2 = np.zeros((2, d, n_tokens))
    W_Q2[:n_tokens] = ENOUGH * np.sqrt(n_tokens) * np.eye(n_tokens)
    W_K2[-n_tokens:] = np.eye(n_tokens)
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d, n_tokens),
        "positions": np.eye(places, places + n_tokens),
    }


@right("induction_circuit")
def induction_as_in_the_chapter(n_tokens, max_len):
    kinds, places = n_tokens + 1, max_len + 1
    d, g = 2 * kinds + places, 12 * (2 * kinds + places) ** 0.5
    sign, place, before = slice(0, kinds), slice(kinds, kinds + places), slice(kinds + places, d)
    QK_1, OV_1, QK_2 = np.zeros((3, d, d), dtype=np.float32)
    QK_1[place, place] = 2 * g * np.eye(places, k=-1)
    OV_1[sign, before] = np.eye(kinds)
    QK_2[sign, before] = 2 * g * np.eye(kinds)
    QK_2[:n_tokens, n_tokens] = g
    same = np.eye(d).tolist()
    table = np.eye(places, places + kinds).tolist()
    names = ("W_Q1", "W_K1", "W_V1", "W_Q2", "W_K2", "W_V2", "positions")
    return dict(zip(names, (QK_1, same, OV_1, QK_2, same, np.eye(d, n_tokens), table)))


@right("induction_circuit")
def induction_in_another_basis(n_tokens, max_len):
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + places + kinds
    QK_1, OV_1, QK_2 = np.zeros((3, d, d))
    QK_1[kinds : kinds + places, kinds : kinds + places] = 20 * np.eye(places, k=-1)
    OV_1[:kinds, -kinds:] = np.eye(kinds)
    QK_2[:kinds, -kinds:] = 60 * np.eye(kinds)
    QK_2[:n_tokens, n_tokens] = 30
    # the columns of the places and of the free space are mixed, and the queries and keys of both heads
    rng = np.random.default_rng(4)
    turn = np.eye(d)
    turn[kinds:, kinds:] = np.linalg.qr(rng.normal(size=(d - kinds, d - kinds)))[0]
    mix = [rng.normal(size=(d, d)) / d + np.eye(d) for _ in range(2)]
    scale = np.sqrt(d)
    return {
        "W_Q1": scale * turn.T @ QK_1 @ mix[0],
        "W_K1": turn.T @ np.linalg.inv(mix[0]).T,
        "W_V1": turn.T @ OV_1 @ turn,
        "W_Q2": scale * turn.T @ QK_2 @ mix[1],
        "W_K2": turn.T @ np.linalg.inv(mix[1]).T,
        "W_V2": turn.T @ np.eye(d, n_tokens),
        "positions": np.eye(places, places + kinds) @ turn[kinds:, kinds:],
    }


@right("induction_circuit")
def induction_by_the_hands_of_a_clock(n_tokens, max_len):
    kinds, step = n_tokens + 1, np.pi / (max_len + 1)
    angles = step * np.arange(max_len + 1)
    positions = np.zeros((max_len + 1, 2 + n_tokens))
    positions[:, :2] = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    d = kinds + positions.shape[1]
    W_Q1, W_K1 = np.zeros((2, d, 2))
    back = np.array([[np.cos(step), -np.sin(step)], [np.sin(step), np.cos(step)]])
    W_Q1[kinds : kinds + 2] = 15 / (1 - np.cos(step)) * np.sqrt(2) * back
    W_K1[kinds : kinds + 2] = np.eye(2)
    W_V1 = np.zeros((d, d))
    W_V1[:n_tokens, -n_tokens:] = 5 * np.eye(n_tokens)
    W_Q2, W_K2 = np.zeros((2, d, kinds))
    W_Q2[:n_tokens, :n_tokens], W_K2[-n_tokens:, :n_tokens] = 50 * np.eye(n_tokens), np.eye(n_tokens)
    W_Q2[:n_tokens, n_tokens], W_K2[n_tokens, n_tokens] = 10, 10
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d, n_tokens),
        "positions": positions,
    }


@right("induction_circuit")
def induction_by_composed_queries(n_tokens, max_len):
    """Head 1 finds the places of its kind and writes them down; head 2 asks for the places after these."""
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + 2 * places
    W_Q1, W_K1, W_Q2, W_K2 = np.zeros((4, d, kinds + places))
    W_Q1[:kinds, :kinds] = 40 * np.sqrt(kinds + places) * np.eye(kinds)
    W_K1[:kinds, :kinds] = np.eye(kinds)
    W_V1 = np.zeros((d, d))
    W_V1[kinds : kinds + places, kinds + places :] = np.eye(places)  # of n places each gets the n-th part
    scale = 20 * (places + 1) * np.sqrt(kinds + places)
    W_Q2[kinds + places :, kinds:] = scale * np.eye(places, k=1)
    W_K2[kinds : kinds + places, kinds:] = np.eye(places)
    W_Q2[:n_tokens, 0] = scale / (places + 1) / 2
    W_K2[n_tokens, 0] = 1
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": np.eye(d, n_tokens),
        "positions": np.eye(places, 2 * places),
    }


LARGER = "larger scores than necessary are as good: only the attention is asked for, not the matrices"
RAISED = "wrong keys score a little more than zero; the right ones are still far enough ahead"

survivor("induction_circuit", "max_len + 1", "max_len + 2", "a table of positions may have more rows than are needed")
survivor("induction_circuit", "ENOUGH * np.sqrt(places)", "ENOUGH ** np.sqrt(places)", LARGER)
survivor("induction_circuit", "np.sqrt(places) * np.eye", "np.sqrt(places) ** np.eye", RAISED)
survivor("induction_circuit", "ENOUGH * np.sqrt(kinds)", "ENOUGH ** np.sqrt(kinds)", LARGER)
survivor("induction_circuit", "scale * np.eye", "scale ** np.eye", RAISED)
survivor("induction_circuit", "2 * scale", "3 * scale", LARGER)


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong("score_gap", says="You leave a query's own key out of the comparison; it counts like the others.")
def own_key_left_out(W_Q, W_K, X, right):
    S = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_K.shape[1])
    other = ~np.eye(len(X), dtype=bool)
    lowest = np.where(right & other, S, np.inf).min(axis=1)
    highest = np.where(~right & other, S, -np.inf).max(axis=1)
    gap = lowest - highest
    return gap.min()


@wrong("score_gap", says="A query without a right key gets minus infinity from you; it is skipped.")
def infinity_without_a_right_key(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    gap = np.inf
    for s, r in zip(scores, right):
        if r.all():
            continue
        if not r.any():
            return -np.inf
        gap = min(gap, s[r].min() - s[~r].max())
    return gap


@wrong("score_gap", says="You compare column by column; a query is a row.")
def compared_by_columns(W_Q, W_K, X, right):
    S = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    result = np.inf
    for j in range(S.shape[1]):
        column, ok = S[:, j], right[:, j]
        if ok.any() and (~ok).any():
            result = min(result, column[ok].min() - column[~ok].max())
    return result


@wrong("LearnedHead", says="You leave the positions out of what the values are made of; W_V reads the whole input.")
class positions_without_values(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        extra = 0 if d_pos is None else d_pos
        self.W_Q = nn.Linear(n_tokens + extra, d_qk, bias=False)
        self.W_K = nn.Linear(n_tokens + extra, d_qk, bias=False)
        self.W_V = nn.Linear(n_tokens + extra, d_v, bias=False)
        self.positions = nn.Embedding(max_len, d_pos) if extra else None

    def forward(self, X):
        Z, content = (X, X)
        if self.positions is not None:
            p = self.positions.weight[: X.shape[-2]].expand(*X.shape[:-2], -1, -1)
            Z = torch.cat([X, p], dim=-1)
            content = torch.cat([X, torch.zeros_like(p)], dim=-1)
        scores = self.W_Q(Z) @ self.W_K(Z).transpose(-1, -2)
        weights = nn.functional.softmax(scores / self.W_Q.out_features**0.5, dim=-1)
        return (weights @ self.W_V(content), weights)


@wrong("score_gap", says="You compare with the lowest wrong score; the highest wrong one is the rival.")
def gap_to_the_lowest_wrong_key(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    pairs = [(row[good], row[~good]) for row, good in zip(scores, right)]
    return min((good.min() - bad.min() for good, bad in pairs if len(good) and len(bad)), default=np.inf)


@wrong(
    "score_gap",
    says="You put 0 where a key does not belong, which then counts as a score; use infinities, or leave them out.",
)
def gap_filled_with_zeros(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    gaps = np.where(right, scores, 0).min(axis=1) - np.where(right, 0, scores).max(axis=1)
    counted = right.any(axis=1) & ~right.all(axis=1)
    return gaps[counted].min() if counted.any() else np.inf


@wrong(
    "score_gap",
    says="You stop at the first query that is to be skipped; the queries after it count.",
)
def gap_stops_at_the_first_to_skip(W_Q, W_K, X, right):
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])
    smallest = np.inf
    for row, good in zip(scores, right):
        if good.all() or not good.any():
            break
        smallest = min(smallest, row[good].min() - row[~good].max())
    return smallest


@wrong(
    "position_head",
    says="Your queries look for the token a (number 0), wherever it stands; asked is the token at the first place.",
)
def position_of_token_zero(n_tokens, max_len):
    n, P = n_tokens, max_len
    W_Q, W_K = np.zeros((n + P, 1)), np.zeros((n + P, 1))
    W_Q[n:], W_K[0] = ENOUGH, 1
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n + P, n), "positions": np.eye(P)}


@wrong(
    "position_head",
    says="Your attention is right, but what comes out is the row of a, whatever token stands first, as if W_V handed "
    "on the place (number 0). Its rows for the tokens should hand the token on.",
)
def position_hands_on_the_place(n_tokens, max_len):
    n, P = n_tokens, max_len
    W_Q, W_K, W_V = np.zeros((n + P, 1)), np.zeros((n + P, 1)), np.zeros((n + P, n))
    W_Q[n:], W_K[n], W_V[n:] = ENOUGH, 1, np.eye(P, n)
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(P)}


@wrong(
    "position_head",
    says="Your queries look at the last token of the sequence; asked is the first. Does a score grow with the place?",
)
def position_last_of_sequence(n_tokens, max_len):
    W_Q, W_K = np.zeros((n_tokens + 1, 1)), np.zeros((n_tokens + 1, 1))
    W_Q[:n_tokens], W_K[n_tokens] = ENOUGH, 1
    positions = np.arange(max_len, dtype=float)[:, None]
    return {"W_Q": W_Q, "W_K": W_K, "W_V": np.eye(n_tokens + 1, n_tokens), "positions": positions}
