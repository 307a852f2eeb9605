# ruff: noqa: B905
"""Right variants and misconceptions of ps2-self-attention.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import edited, right, wrong

if TYPE_CHECKING:  # the names of the notebook and of concepts.py, which are there when this is read
    from concepts import CONCEPTS, attention_mistakes, attention_with
    from the_notebook import (
        cross_attention_numbers,
        scaled_dot_product_attention,
        self_attention,
        self_attention_numbers,
    )

# -------------------------------------------------------------------- exercise 1: worksheet, self-attention

edited(
    "self_attention_answers",
    "sheet_unscaled",
    "Q @ K.T / np.sqrt(2)",
    "Q @ K.T",
    says="Your worksheet uses the products of queries and keys as they are; look again at what a score is divided by.",
)
edited(
    "self_attention_answers",
    "sheet_divided_by_width",
    "np.sqrt(2)",
    "2",
    says="Your scores are divided by 2. Here that is the width of the keys and also the root of the width of "
    "the tokens; the scale is neither of them.",
)
edited(
    "self_attention_answers",
    "sheet_only_scores_unscaled",
    '"scores": scores',
    '"scores": Q @ K.T',
    says='Your weights are right, so you did scale; the entry "scores" holds the products from before the division.',
)
edited(
    "self_attention_answers",
    "sheet_softmax_over_queries",
    "weights.sum(axis=1, keepdims=True)",
    "weights.sum(axis=0, keepdims=True)",
    says="In your map the columns sum to 1. It is each query, a row, that has one whole of attention to give away.",
)
edited(
    "self_attention_answers",
    "sheet_softmax_over_everything",
    "weights.sum(axis=1, keepdims=True)",
    "weights.sum()",
    says="All nine of your weights together sum to 1; every query, that is every row, needs a softmax of its own.",
)
edited(
    "self_attention_answers",
    "sheet_no_exponential",
    "weights = np.exp(scores)",
    "weights = scores",
    says="You divided each score by the sum of its row; softmax applies the exponential function first.",
)
edited(
    "self_attention_answers",
    "sheet_queries_and_keys_swapped",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_K, X @ W_Q, X @ W_V",
    says="Your queries and keys have changed places: check which matrix makes which.",
)
edited(
    "self_attention_answers",
    "sheet_keys_and_values_swapped",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_Q, X @ W_V, X @ W_K",
    says="Your keys and values have changed places: keys are compared with the queries, values are averaged.",
)
edited(
    "self_attention_answers",
    "sheet_output_from_columns",
    '"output": weights @ V',
    '"output": weights.T @ V',
    says="Your outputs average the values with the columns of the map; output 1 belongs to query 1, which is row 1.",
)
edited(
    "self_attention_answers",
    "sheet_output_averages_tokens",
    '"output": weights @ V',
    '"output": weights @ X',
    says="Your outputs average the tokens themselves; what is averaged are their values.",
)
edited(
    "self_attention_answers",
    "sheet_output_averages_parts_of_tokens",
    '"output": weights @ V',
    '"output": (weights @ X)[:, :2]',
    says="Your outputs average the first two columns of the tokens; what is averaged are their values.",
)
edited(
    "self_attention_answers",
    "sheet_counted_from_zero",
    "weights.argmax(axis=1) + 1",
    "weights.argmax(axis=1)",
    says='The inputs in "dominant" are counted from 0 in your answer; the task counts the first input as 1.',
)
edited(
    "self_attention_answers",
    "sheet_dominance_by_columns",
    "weights.argmax(axis=1) + 1",
    "weights.argmax(axis=0) + 1",
    says="You looked down the columns of the map: that says which query an input matters most to. What"
    " dominates an output is read along its row.",
)
edited(
    "self_attention_answers",
    "sheet_dominance_by_large_values",
    "weights.argmax(axis=1) + 1",
    "np.full(3, np.abs(V).sum(axis=1).argmax() + 1)",
    says="You named the input with the largest value for every output; the task asks for the largest "
    "weight in each row.",
)

for exercise, prefix, root in [
    ("self_attention_answers", "sheet", "np.sqrt(2)"),
    ("cross_attention_answers", "cross_sheet", "np.sqrt(3)"),
]:
    PRODUCTS, OUTPUT = f"Q @ K.T / {root}", '"output": weights @ V'
    edited(
        exercise,
        f"{prefix}_shares_of_shifted_scores",
        "weights = np.exp(scores)",
        "weights = scores - scores.min(axis=1, keepdims=True)",
        says="You subtract the smallest score of each row and divide by the sum; softmax applies the exponential "
        "function first.",
    )
    edited(
        exercise,
        f"{prefix}_weights_of_products",
        "weights = np.exp(scores)",
        "weights = np.exp(Q @ K.T)",
        says="Your weights are made of the products from before the division; softmax takes the scores.",
    )
    edited(
        exercise,
        f"{prefix}_scores_rounded",
        PRODUCTS,
        f"np.round({PRODUCTS})",
        says="You round the scores to whole numbers; the weights are made of the scores as they are.",
    )
    edited(
        exercise,
        f"{prefix}_scores_rounded_to_tenths",
        PRODUCTS,
        f"np.round({PRODUCTS}, 1)",
        says="You round the scores to one decimal and go on with that; two decimals of all that follows are asked for.",
    )
    edited(
        exercise,
        f"{prefix}_values_compared",
        PRODUCTS,
        f"Q @ V.T / {root}",
        says="Your scores compare the queries with the values; queries are compared with keys.",
    )
    edited(
        exercise,
        f"{prefix}_columns_first",
        "weights = np.exp(scores)",
        "weights = np.exp(scores) / np.exp(scores).sum(axis=0)",
        says="You divide by the sums of the columns first and by those of the rows then; only the rows count.",
    )
    edited(
        exercise,
        f"{prefix}_one_sum_for_the_map",
        "weights.sum(axis=1, keepdims=True)",
        "(weights.sum() / len(weights))",
        says="You divide the whole map by one sum; every query, that is every row, needs its own.",
    )
    edited(
        exercise,
        f"{prefix}_output_averages_keys",
        OUTPUT,
        '"output": weights @ K',
        says="Your outputs average the keys; keys are compared, and what is averaged are the values.",
    )
    edited(
        exercise,
        f"{prefix}_output_of_the_best_key",
        OUTPUT,
        '"output": V[weights.argmax(axis=1)]',
        says="Your outputs are the value with the largest weight alone; each is the weighted average of all values.",
    )
    edited(
        exercise,
        f"{prefix}_output_plus_query",
        OUTPUT,
        '"output": Q + weights @ V',
        says="You add the queries to the outputs; an output is the weighted average of the values and nothing else.",
    )
    edited(
        exercise,
        f"{prefix}_output_from_scores",
        OUTPUT,
        '"output": scores @ V',
        says="Your outputs average the values with the scores; the weights, after the softmax, are for that.",
    )
    edited(
        exercise,
        f"{prefix}_causal",
        "weights = np.exp(scores)",
        "weights = np.exp(scores) * np.tri(*scores.shape)",
        says="Your queries see only the keys up to their own place; no mask is asked for here, every query sees every "
        "key.",
    )
    edited(
        exercise,
        f"{prefix}_scaled_twice",
        "weights = np.exp(scores)",
        f"weights = np.exp(scores / {root})",
        says="Your scores are right, but you divide by the root once more inside the softmax.",
    )
    edited(
        exercise,
        f"{prefix}_cosines",
        PRODUCTS,
        f"(lambda Q, K: Q @ K.T / {root})(*(A / np.maximum(np.linalg.norm(A, axis=1)[:, None], 1e-9) for A in (Q, K)))",
        says="You bring queries and keys to length 1 first; the dot product as it is also counts how long they are.",
    )
    edited(
        exercise,
        f"{prefix}_hard",
        "weights = np.exp(scores)",
        "weights = 1.0 * (scores == scores.max(axis=1, keepdims=True))",
        says="Your weights are those of an argmax, 1 for the best key and 0 for all others; softmax shares out.",
    )
edited(
    "self_attention_answers",
    "sheet_scores_transposed",
    "Q @ K.T / np.sqrt(2)",
    "K @ Q.T / np.sqrt(2)",
    says="Your scores are transposed: row i belongs to query i, which asks every key.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_divided_by_the_smallest_root",
    "np.sqrt(3)",
    "np.sqrt(2)",
    says="Your scores are divided by the root of 2, which is the width of X_kv and the number of queries; the width of "
    "the keys sets the scale.",
)


@right("self_attention_answers")
def sheet_of_rounded_lists(student_id):
    X, W_Q, W_K, W_V = self_attention_numbers(student_id)
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = (Q @ K.T) / 2**0.5
    rows = []
    for row in scores:
        powers = np.exp(row - row.max())
        rows.append(powers / powers.sum())
    sheet = {
        "Q": Q,
        "K": K,
        "V": V,
        "scores": scores,
        "weights": np.array(rows),
        "output": np.array(rows) @ V,
    }
    sheet = {name: np.round(array, 3).tolist() for name, array in sheet.items()}
    sheet["dominant"] = [row.index(max(row)) + 1 for row in sheet["weights"]]
    return sheet


@right("self_attention_answers")
def sheet_by_plain_python(student_id):
    import math

    X, W_Q, W_K, W_V = (array.tolist() for array in self_attention_numbers(student_id))

    def times(A, B):
        return [[sum(a * b for a, b in zip(row, column)) for column in zip(*B)] for row in A]

    Q, K, V = times(X, W_Q), times(X, W_K), times(X, W_V)
    scores = [[entry / math.sqrt(2) for entry in row] for row in times(Q, list(zip(*K)))]
    weights = [[math.exp(s) / sum(map(math.exp, row)) for s in row] for row in scores]
    return {
        "Q": Q,
        "K": K,
        "V": V,
        "scores": scores,
        "weights": weights,
        "output": times(weights, V),
        "dominant": tuple(1.0 + row.index(max(row)) for row in weights),
        "remarks": "worked out on paper first",
    }


# ------------------------------------------------------------------- exercise 2: worksheet, cross-attention

edited(
    "cross_attention_answers",
    "cross_sheet_unscaled",
    "Q @ K.T / np.sqrt(3)",
    "Q @ K.T",
    says="Your worksheet uses the products of queries and keys as they are; look again at what a score is divided by.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_divided_by_width",
    "np.sqrt(3)",
    "3",
    says="Your scores are divided by the width of the keys itself; look again at the function around it.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_divided_by_another_root",
    "np.sqrt(3)",
    "np.sqrt(4)",
    says="Your scores are divided by 2, the root of the number of keys or of the width of X_q; the "
    "width of the keys sets the scale.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_only_scores_unscaled",
    '"scores": scores',
    '"scores": Q @ K.T',
    says='Your weights are right, so you did scale; the entry "scores" holds the products from before the division.',
)
edited(
    "cross_attention_answers",
    "cross_sheet_softmax_over_queries",
    "weights.sum(axis=1, keepdims=True)",
    "weights.sum(axis=0, keepdims=True)",
    says="In your map the columns sum to 1. It is each of the two queries, a row, that gives away one whole.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_softmax_over_everything",
    "weights.sum(axis=1, keepdims=True)",
    "weights.sum()",
    says="All eight of your weights together sum to 1; every query, that is every row, needs a softmax of its own.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_output_called_map",
    '"weights": weights',
    '"weights": weights @ V',
    says='Under "weights" stands your output. The map comes one step earlier and has a column for each key.',
)
edited(
    "cross_attention_answers",
    "cross_sheet_values_are_keys",
    "X_kv @ W_K, X_kv @ W_V",
    "X_kv @ W_K, X_kv @ W_K",
    says="Your values are made with `W_K`, the matrix of the keys; they have one of their own.",
)
edited(
    "cross_attention_answers",
    "cross_sheet_keys_and_values_swapped",
    "X_kv @ W_K, X_kv @ W_V",
    "X_kv @ W_V, X_kv @ W_K",
    says="Your keys and values have changed places: keys are compared with the queries, values are averaged.",
)


@right("cross_attention_answers")
def cross_sheet_of_rounded_lists(student_id):
    X_q, X_kv, W_Q, W_K, W_V = cross_attention_numbers(student_id)
    scores = X_q @ W_Q @ W_K.T @ X_kv.T / np.sqrt(3)
    weights = np.exp(scores) / np.exp(scores).sum(axis=-1)[:, None]
    sheet = {"Q": X_q @ W_Q, "K": X_kv @ W_K, "V": X_kv @ W_V, "scores": scores, "weights": weights}
    sheet["output"] = weights @ sheet["V"]
    return {name: np.round(array, 3).tolist() for name, array in sheet.items()}


# ----------------------------------------------------------------------------- exercise 3: argmax_attention


@wrong(
    "argmax_attention",
    says="Where several keys share the largest product, you return the value of the last of them; the first one wins.",
)
def last_key_wins_the_tie(q, K, V):
    products = K @ q
    best = 0
    for j in range(len(products)):
        if products[j] >= products[best]:
            best = j
    return V[best].copy()


@wrong(
    "argmax_attention",
    says="Where several keys share the largest product, you average their values; only the first one counts.",
)
def ties_are_averaged(q, K, V):
    products = K @ q
    return V[products == products.max()].mean(axis=0)


@wrong("argmax_attention", says="You return which key wins; asked is the value that belongs to this key.")
def place_instead_of_value(q, K, V):
    return np.argmax(K @ q)


@wrong("argmax_attention", says="You return the winning key itself; asked is the value that belongs to this key.")
def key_instead_of_value(q, K, V):
    return K[np.argmax(K @ q)].copy()


@wrong("argmax_attention", says="You average all values with a softmax; here the best key takes everything.")
def soft_instead_of_hard(q, K, V):
    products = K @ q
    weights = np.exp(products - products.max())
    return weights / weights.sum() @ V


@wrong("argmax_attention", says="You average all values with a softmax; here the best key takes everything.")
def sharp_softmax(q, K, V):
    products = 10 * (K @ q)
    weights = np.exp(products - products.max())
    return weights / weights.sum() @ V


@wrong(
    "argmax_attention",
    says="You look for the largest product of two single entries; a key's product with the query is the sum of them.",
)
def largest_product_of_entries(q, K, V):
    return V[np.argmax((K * q).max(axis=1))].copy()


@wrong(
    "argmax_attention",
    says="You return the value of the key with the smallest product; look for the largest.",
)
def smallest_product(q, K, V):
    return V[np.argmin(K @ q)].copy()


@wrong(
    "argmax_attention",
    says="A key that points away from the query wins in your function, because its product is large "
    "without the sign; -5 is less than -2.",
)
def largest_without_sign(q, K, V):
    return V[np.argmax(np.abs(K @ q))].copy()


@wrong(
    "argmax_attention",
    says="Your search starts from 0, so when all products are negative no key is ever found; let it "
    "start from the first key's product.",
)
def search_starts_at_zero(q, K, V):
    best, highest = 0, 0.0
    for j, key in enumerate(K):
        if key @ q > highest:
            best, highest = j, key @ q
    return V[best].copy()


@wrong(
    "argmax_attention",
    says="You compare directions (cosines); the dot product as it is also counts how long a key is.",
)
def cosine_instead_of_product(q, K, V):
    lengths = np.linalg.norm(K, axis=1)
    return V[np.argmax(K @ q / np.where(lengths > 0, lengths, 1.0))].copy()


@wrong(
    "argmax_attention",
    says="You take the key that lies nearest to the query; the dot product is another measure.",
)
def nearest_key(q, K, V):
    return V[np.argmin(np.linalg.norm(K - q, axis=1))].copy()


@wrong(
    "argmax_attention", says="You compare directions (cosines); the dot product as it is also counts how long a key is."
)
def cosine_kept_from_zero(q, K, V):
    similarity = K @ q / (np.linalg.norm(K, axis=1) * np.linalg.norm(q) + 1e-12)
    return V[np.argmax(similarity)]


@wrong(
    "argmax_attention",
    says="Products that differ by little count as equal in your function, because they are rounded or given a "
    "margin, so that an earlier key beats a better one; only the largest product wins.",
)
def products_rounded(q, K, V):
    scores = np.round(K @ q).astype(int)
    return V[int(np.argmax(scores))]


@wrong(
    "argmax_attention",
    says="Products that differ by little count as equal in your function, because they are rounded or given a "
    "margin, so that an earlier key beats a better one; only the largest product wins.",
)
def nearly_equal_is_a_tie(q, K, V):
    scores = K @ q
    best = scores.max()
    tied = np.flatnonzero(scores > best - 0.05)
    return V[tied[0]]


@wrong(
    "argmax_attention",
    says="Products that differ by little count as equal in your function, because they are rounded or given a "
    "margin, so that an earlier key beats a better one; only the largest product wins.",
)
def close_to_the_best_is_a_tie(q, K, V):
    scores = K @ q
    return V[int(np.argmax(np.isclose(scores, scores.max())))]


@wrong(
    "argmax_attention",
    says="You take the argmax of a softmax in which large products overflow; the products themselves show which is"
    " largest.",
)
def argmax_of_the_softmax(q, K, V):
    scores = K @ q
    weights = np.exp(scores) / np.exp(scores).sum()
    return V[np.argmax(weights)]


@right("argmax_attention")
def sorted_stably(q, K, V):
    order = np.argsort(-(K @ q), kind="stable")
    return V[order[0]].copy()


@right("argmax_attention")
def argmax_by_loop(q, K, V):
    best, highest = 0, -np.inf
    for j in range(K.shape[0]):
        product = sum(float(a) * float(b) for a, b in zip(q, K[j]))
        if product > highest:
            best, highest = j, product
    return [float(v) for v in V[best]]


@right("argmax_attention")
def argmax_by_one_hot(q, K, V):
    products = np.einsum("d,td->t", q, K)
    one_hot = np.zeros(len(products))
    one_hot[np.flatnonzero(products == products.max())[0]] = 1
    return one_hot @ V


# ------------------------------------------------------------------------ exercise 4: the gradient's letter


@wrong(
    "answer_gradient",
    says="You let the winning key have a gradient. Its value does get one; ask whether the output "
    "moves when the key does.",
)
def gradient_for_the_winner(student_id):
    return "a"


@wrong(
    "answer_gradient",
    says="You let every key have a gradient, as softmax would give it; this function picks a single value.",
)
def gradient_for_all(student_id):
    return "b"


@wrong(
    "answer_gradient",
    says="The output jumps only where two keys tie. Here one wins clearly: ask what a tiny change of a key does.",
)
def gradient_infinite(student_id):
    return "d"


@right("answer_gradient")
def letter_in_capitals(student_id):
    return "C "


# ----------------------------------------------------------------- exercise 5: scaled_dot_product_attention

edited(
    "scaled_dot_product_attention",
    "divided_by_d_k",
    "np.sqrt(d_k)",
    "d_k",
    says="Your scores are divided by d_k; the scale is smaller than that: its square root.",
)
edited(
    "scaled_dot_product_attention",
    "unscaled",
    " / np.sqrt(d_k)",
    "",
    says="Your scores are not divided by anything; the wider the keys, the sharper your softmax gets.",
)
edited(
    "scaled_dot_product_attention",
    "multiplied_by_the_root",
    "/ np.sqrt(d_k)",
    "* np.sqrt(d_k)",
    says="Your products are multiplied by the square root of d_k; it should make them smaller, not larger.",
)
edited(
    "scaled_dot_product_attention",
    "divided_by_root_of_T_k",
    "Q.shape[-1]",
    "K.shape[-2]",
    says="Your scale is the root of the number of keys; it should come from their width.",
)
edited(
    "scaled_dot_product_attention",
    "divided_by_root_of_T_q",
    "Q.shape[-1]",
    "Q.shape[-2]",
    says="Your scale is the root of the number of queries; it should come from the width of the keys.",
)
edited(
    "scaled_dot_product_attention",
    "divided_by_root_of_d_v",
    "Q.shape[-1]",
    "V.shape[-1]",
    says="Your scale is the root of the width of the values; it should come from the width of the keys.",
)
edited(
    "scaled_dot_product_attention",
    "mask_inverted",
    "np.where(mask, scores, -np.inf)",
    "np.where(mask, -np.inf, scores)",
    says="Your mask works the other way round: here True means that a query may attend to the key.",
)
edited(
    "scaled_dot_product_attention",
    "mask_ignored",
    "scores = np.where(mask, scores, -np.inf)",
    "pass",
    says="Your result does not depend on the mask; see what to do when it is not None.",
)


@wrong(
    "scaled_dot_product_attention",
    says="A forbidden key gets the score -1 in your function, which is a score like any other: it still takes a share.",
)
def mask_minus_one(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d_k)  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(mask, scores, -1.0)
    # the initial value lies below every score and keeps the maximum of a row without keys finite
    highest = np.max(scores, axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    unnormalised = np.exp(scores - highest)
    total = np.sum(unnormalised, axis=-1, keepdims=True)
    # the best key adds exp(0) = 1, so only a row without keys has a total below 1
    weights = unnormalised / np.maximum(total, 1.0)
    return weights @ V, weights


edited(
    "scaled_dot_product_attention",
    "mask_minus_ten",
    "np.where(mask, scores, -np.inf)",
    "scores + np.where(mask, 0.0, -10.0)",
    says="You lower the scores of forbidden keys by 10; large scores get through that. Exclude these keys completely.",
)
edited(
    "scaled_dot_product_attention",
    "mask_times_scores",
    "np.where(mask, scores, -np.inf)",
    "scores * mask",
    says="You multiply the scores by the mask; a score of 0 is not 'no attention', since exp(0) is 1.",
)


@wrong(
    "scaled_dot_product_attention",
    says="You set forbidden weights to zero after the softmax, so the rest no longer sums to 1; "
    "forbidden keys should not take part in the softmax at all.",
)
def mask_too_late(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    if mask is not None:
        weights = weights * mask
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="scores[~mask] = ... needs a mask of the very shape of the scores. Smaller ones broadcast, for example with "
    "np.where(mask, scores, -np.inf).",
)
def mask_as_an_index(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores[~mask] = -np.inf
    highest = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total > 0, total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="A query that may attend to nothing gets NaN in your function (0/0, or the difference of two "
    "infinities); it should get zeros.",
)
def nan_for_a_query_without_keys(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="The weights of a query that may attend to nothing are NaN in your function, and only the output is mended; "
    "they should be zeros, too.",
)
def nan_weights_beside_a_mended_output(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = powers / powers.sum(axis=-1, keepdims=True)
    return np.nan_to_num(weights @ V), weights


@wrong(
    "scaled_dot_product_attention",
    says="A query that may attend to nothing attends to all keys equally in your function; it should get zeros.",
)
def uniform_for_a_query_without_keys(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Large scores overflow in your exp; subtract the largest score of the row first, which changes no weight.",
)
def largest_score_not_subtracted(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores)
        if mask is not None:
            powers = np.where(mask, powers, 0.0)
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.where(total > 0, powers / np.where(total > 0, total, 1.0), 0.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="You subtract one largest score from the whole array; a row with much smaller scores then "
    "loses all its weights. Every row has a largest score of its own.",
)
def one_maximum_for_all_rows(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    highest = scores.max()
    powers = np.exp(scores - (highest if np.isfinite(highest) else 0.0))
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total > 0, total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="The largest score that you subtract, or a whole softmax that you share out anew afterwards, counts "
    "forbidden keys as well; where one of them is far larger, all allowed ones vanish beside it. Exclude the "
    "forbidden keys first.",
)
def maximum_over_forbidden_keys(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    if mask is not None:
        powers = powers * mask
    total = powers.sum(axis=-1, keepdims=True)
    weights = powers / np.where(total > 0, total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Your softmax runs over the queries: the columns sum to 1. Each query, a row, shares its "
    "attention among the keys.",
)
def softmax_over_queries(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = powers / powers.sum(axis=-2, keepdims=True)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Where there is a batch, your softmax runs over axis 1; the keys' axis is the last one. Count from the end.",
)
def softmax_over_axis_one(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    highest = scores.max(axis=1, keepdims=True)
    powers = np.exp(scores - np.where(np.isfinite(highest), highest, 0.0))
    total = powers.sum(axis=1, keepdims=True)
    weights = powers / np.where(total > 0, total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="All weights of your map together sum to 1; every query, that is every row, needs a softmax of its own.",
)
def softmax_over_everything(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum()
    return weights @ V, weights


@wrong("scaled_dot_product_attention", says="Your weights are the scores themselves; the softmax is missing.")
def softmax_forgotten(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    weights = scores if mask is None else np.where(mask, scores, 0.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="You divide each score by the sum of its row; without the exponential function, weights can be negative.",
)
def shares_without_exponential(Q, K, V, mask=None):
    weights = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        weights = np.where(mask, weights, 0.0)
    total = weights.sum(axis=-1, keepdims=True)
    weights = weights / np.where(total != 0, total, 1.0)
    return weights @ V, weights


edited(
    "scaled_dot_product_attention",
    "weights_transposed",
    "return weights @ V, weights",
    "return weights @ V, np.swapaxes(weights, -1, -2)",
    says="The weights you return are transposed: the rows should belong to the queries, the columns to the keys.",
)
edited(
    "scaled_dot_product_attention",
    "output_only",
    "return weights @ V, weights",
    "return weights @ V",
    says="You return the output alone; the weights are asked for, too, as the second of two values.",
)
edited(
    "scaled_dot_product_attention",
    "weights_first",
    "return weights @ V, weights",
    "return weights, weights @ V",
    says="You return the weights first; the order is output, weights.",
)
edited(
    "scaled_dot_product_attention",
    "scores_returned_as_weights",
    "return weights @ V, weights",
    "return weights @ V, scores",
    says="Your output is right, but the second value you return holds the scores from before the softmax.",
)
edited(
    "scaled_dot_product_attention",
    "transpose_forgotten",
    "Q @ np.swapaxes(K, -1, -2)",
    "Q @ K",
    says="You multiply Q by K as it is. Every query should meet every key in a dot product: what has "
    "to be turned round?",
)
edited(
    "scaled_dot_product_attention",
    "reshape_for_transpose",
    "np.swapaxes(K, -1, -2)",
    "K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2])",
    says="You reshape K where it should be transposed. Reshaping keeps the order of the numbers and mixes the keys up.",
)
edited(
    "scaled_dot_product_attention",
    "all_axes_transposed",
    "np.swapaxes(K, -1, -2)",
    "K.T",
    says="K.T reverses all axes, the batch axis too. Only the last two should change places.",
)


@wrong(
    "scaled_dot_product_attention",
    says="Keys and values have changed places: queries are compared with the keys, and the values are averaged.",
)
def keys_and_values_swapped(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    K, V = V, K
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(d_k)  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    # the initial value lies below every score and keeps the maximum of a row without keys finite
    highest = np.max(scores, axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    unnormalised = np.exp(scores - highest)
    total = np.sum(unnormalised, axis=-1, keepdims=True)
    # the best key adds exp(0) = 1, so only a row without keys has a total below 1
    weights = unnormalised / np.maximum(total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Your function changes the Q it was given (`/=` and `*=` work in place); the next user of Q "
    "finds other numbers.",
)
def queries_scaled_in_place(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    Q /= np.sqrt(d_k)
    scores = Q @ np.swapaxes(K, -1, -2)  # (..., T_q, T_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    # the initial value lies below every score and keeps the maximum of a row without keys finite
    highest = np.max(scores, axis=-1, keepdims=True, initial=np.finfo(scores.dtype).min)
    unnormalised = np.exp(scores - highest)
    total = np.sum(unnormalised, axis=-1, keepdims=True)
    # the best key adds exp(0) = 1, so only a row without keys has a total below 1
    weights = unnormalised / np.maximum(total, 1.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Your function takes one leading axis or none, not several: transpose(0, 2, 1) names three axes. Swap the "
    "last two, counted from the end, and any number may stand in front.",
)
def one_leading_axis_at_most(Q, K, V, mask=None):
    K_t = K.T if K.ndim == 2 else np.transpose(K, (0, 2, 1))
    scores = Q @ K_t / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return (weights @ V, weights)


@wrong(
    "scaled_dot_product_attention",
    says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
    "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
)
def mask_minus_ten_thousand(Q, K, V, mask=None):
    scores = np.matmul(Q, np.swapaxes(K, -1, -2)) / np.sqrt(Q.shape[-1])
    allowed = np.ones(scores.shape, bool) if mask is None else np.broadcast_to(mask, scores.shape)
    scores = np.where(allowed, scores, -10000.0)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    weights = np.where(allowed, weights, 0.0)
    return (weights @ V, weights)


@wrong(
    "scaled_dot_product_attention",
    says="Where a mask has one axis and there are as many queries as keys, you hide queries with it as well; it "
    "says which keys may be attended to, for every query.",
)
def mask_of_keys_for_queries_too(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        mask = np.asarray(mask)
        if mask.ndim == 1 and scores.shape[-2] == scores.shape[-1]:
            mask = mask[:, None] & mask[None, :]
        scores = np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total == 0, 1, total)
    return (weights @ V, weights)


@wrong(
    "scaled_dot_product_attention",
    says="You compute in float32, which knows a score of some thousands to three decimals only; where float64 "
    "comes in, compute in it.",
)
def computed_in_float32(Q, K, V, mask=None):
    Q, K, V = (np.asarray(x, dtype=np.float32) for x in (Q, K, V))
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(np.float32(K.shape[-1]))
    allowed = True if mask is None else mask
    scores = np.where(allowed, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    e = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = e.sum(axis=-1, keepdims=True)
    weights = e / np.where(total > 0, total, 1)
    return (weights @ V, weights)


@wrong(
    "scaled_dot_product_attention",
    says="You cut large scores off before exp, so that scores beyond the limit become equal. Subtract the largest "
    "one of the row: that changes no weight.",
)
def scores_cut_off(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])
    e = np.exp(np.clip(scores, -50, 50))
    if mask is not None:
        e = np.where(mask, e, 0)
    total = e.sum(axis=-1, keepdims=True)
    weights = np.divide(e, total, out=np.zeros_like(e), where=total > 0)
    return (weights @ V, weights)


@wrong(
    "scaled_dot_product_attention",
    says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
    "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
)
def mask_minus_thousand(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    allowed = True if mask is None else mask
    scores = np.where(allowed, scores, -1000.0)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = np.where(allowed, powers / powers.sum(axis=-1, keepdims=True), 0.0)
    return weights @ V, weights


@wrong(
    "scaled_dot_product_attention",
    says="Where a mask of one axis leaves nothing to attend to, your rows are not zeros; they are, whatever the mask's "
    "shape.",
)
def mask_of_one_axis_with_nothing_to_attend_to(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, np.finfo(scores.dtype).min)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    if mask is not None and mask.ndim > 1:
        weights = np.where(mask.any(axis=-1, keepdims=True), weights, 0)
    return weights @ V, weights


@right("scaled_dot_product_attention")
def with_einsum(Q, K, V, mask=None):
    scores = np.einsum("...id,...jd->...ij", Q, K) * K.shape[-1] ** -0.5
    allowed = np.ones(scores.shape, dtype=bool) if mask is None else np.broadcast_to(mask, scores.shape)
    scores = np.where(allowed, scores, -np.inf)
    top = np.amax(scores, axis=-1, keepdims=True)
    top[np.isneginf(top)] = 0
    powers = np.exp(scores - top)
    total = np.einsum("...ij->...i", powers)[..., np.newaxis]
    weights = np.divide(powers, total, out=np.zeros_like(powers), where=total > 0)
    return np.einsum("...ij,...jd->...id", weights, V), weights


@right("scaled_dot_product_attention")
def with_loops(Q, K, V, mask=None):
    T_q, T_k = Q.shape[-2], K.shape[-2]
    leading = Q.shape[:-2]
    if mask is not None:
        mask = np.broadcast_to(mask, (*leading, T_q, T_k))
    weights = np.zeros((*leading, T_q, T_k))
    output = np.zeros((*leading, T_q, V.shape[-1]))
    for at in np.ndindex(*leading, T_q):
        batch = at[:-1]
        keys = [j for j in range(T_k) if mask is None or mask[(*at, j)]]
        if not keys:
            continue
        scores = [float(np.dot(Q[at], K[(*batch, j)])) / np.sqrt(K.shape[-1]) for j in keys]
        powers = [np.exp(s - max(scores)) for s in scores]
        for j, power in zip(keys, powers):
            weights[(*at, j)] = power / sum(powers)
            output[at] += weights[(*at, j)] * V[(*batch, j)]
    return output, weights


@right("scaled_dot_product_attention")
def with_log_sum_exp(Q, K, V, mask=None):
    scores = np.matmul(Q, np.moveaxis(K, -1, -2)) / np.sqrt(K.shape[-1])
    allowed = np.broadcast_to(True if mask is None else mask, scores.shape)
    top = np.max(np.where(allowed, scores, -1e300), axis=-1, keepdims=True)
    some = allowed.any(axis=-1, keepdims=True)
    summed = np.sum(np.exp(np.where(allowed, scores - top, -np.inf)), axis=-1, keepdims=True)
    log_total = top + np.log(np.where(some, summed, 1.0))
    weights = np.exp(np.where(allowed, scores - log_total, -np.inf))
    return np.matmul(weights, V), weights


@right("scaled_dot_product_attention")
def with_additive_mask(Q, K, V, mask=None):
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        weights = np.nan_to_num(powers / np.sum(powers, axis=-1, keepdims=True))
    return weights @ V, weights


@right("scaled_dot_product_attention")
def with_large_negative_scores(Q, K, V, mask=None):
    scores = Q @ K.swapaxes(-2, -1) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    weights = powers / powers.sum(-1, keepdims=True)
    if mask is not None:
        weights = np.where(mask, weights, 0.0)  # a row without keys is uniform up to here
    return weights @ V, weights


@right("scaled_dot_product_attention")
def with_prescaled_queries(Q, K, V, mask=None):
    Q = Q / np.sqrt(Q.shape[-1])
    scores = Q @ np.swapaxes(K, -1, -2)
    if mask is None:
        mask = np.ones_like(scores, dtype=bool)
    top = np.max(scores, axis=-1, keepdims=True, where=mask, initial=-1e30)
    weights = np.exp(np.where(mask, scores - top, -np.inf))
    weights /= weights.sum(axis=-1, keepdims=True) + 1e-30
    return weights @ V, weights


@right("scaled_dot_product_attention")
def in_place_on_copies(Q, K, V, mask=None):
    Q, K = Q.copy(), K.copy()
    Q /= Q.shape[-1] ** 0.25
    K /= K.shape[-1] ** 0.25
    scores = Q @ np.swapaxes(K, -1, -2)
    if mask is not None:
        scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    scores -= np.maximum(scores.max(axis=-1, keepdims=True), -1e30)
    np.exp(scores, out=scores)
    total = scores.sum(axis=-1, keepdims=True)
    total[total == 0] = 1
    scores /= total
    return scores @ V, scores


@right("scaled_dot_product_attention")
def with_float32_results(Q, K, V, mask=None):
    scores = Q.astype(np.float64) @ np.swapaxes(K, -1, -2).astype(np.float64) / np.sqrt(Q.shape[-1])
    scores = scores if mask is None else np.where(mask, scores, -np.inf)
    top = scores.max(axis=-1, keepdims=True)
    powers = np.exp(scores - np.where(top == -np.inf, 0, top))
    weights = powers / np.maximum(powers.sum(axis=-1, keepdims=True), 1e-12)
    return (weights @ V).astype(np.float32), weights.astype(np.float32)


@right("scaled_dot_product_attention")
def one_batch_at_a_time(Q, K, V, mask=None):
    def single(q, k, v, m):
        scores = q.dot(k.T) / np.sqrt(k.shape[1])
        weights = np.zeros_like(scores)
        for i in range(len(scores)):
            if m[i].any():
                seen = scores[i][m[i]]
                weights[i, m[i]] = np.exp(seen - seen.max()) / np.exp(seen - seen.max()).sum()
        return weights.dot(v), weights

    leading, (T_q, T_k) = Q.shape[:-2], (Q.shape[-2], K.shape[-2])
    mask = np.broadcast_to(True if mask is None else mask, (*leading, T_q, T_k))
    flat = [a.reshape(-1, *a.shape[-2:]) for a in (Q, K, V, mask)]
    parts = [single(*group) for group in zip(*flat)]
    output = np.array([o for o, _ in parts]).reshape(*leading, T_q, V.shape[-1])
    return output, np.array([w for _, w in parts]).reshape(*leading, T_q, T_k)


@right("scaled_dot_product_attention")
def with_torch(Q, K, V, mask=None):
    import torch

    Q, K, V = (torch.tensor(np.ascontiguousarray(array)) for array in (Q, K, V))
    scores = Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~torch.tensor(np.ascontiguousarray(mask)), -torch.inf)
    weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
    return weights @ V, weights


# ------------------------------------------------------------------------------- exercise 6: self_attention


edited(
    "self_attention",
    "self_queries_and_keys_swapped",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_K, X @ W_Q, X @ W_V",
    says="Your queries are made with W_K and your keys with W_Q: the map comes out with its scores transposed.",
)
edited(
    "self_attention",
    "self_keys_and_values_swapped",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_Q, X @ W_V, X @ W_K",
    says="Your keys are made with W_V and your values with W_K: check which matrix makes which.",
)
edited(
    "self_attention",
    "self_keys_from_W_Q",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_Q, X @ W_Q, X @ W_V",
    says="Your queries and keys are made with the same matrix, so W_K has no influence.",
)
edited(
    "self_attention",
    "self_values_are_tokens",
    "X @ W_Q, X @ W_K, X @ W_V",
    "X @ W_Q, X @ W_K, X",
    says="You average the tokens themselves; they should go through W_V first.",
)
edited(
    "self_attention",
    "self_output_only",
    "return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)",
    "return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)[0]",
    says="You return the output alone; the weights are asked for, too, as the second of two values.",
)


@wrong(
    "self_attention",
    says="Your scale is the root of the width of the tokens (the model width); it should come from the"
    " width of the keys.",
)
def self_scaled_by_model_width(X, W_Q, W_K, W_V):
    scores = (X @ W_Q) @ np.swapaxes(X @ W_K, -1, -2) / np.sqrt(X.shape[-1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ (X @ W_V), weights


@wrong("self_attention", says="Your scores are not divided by anything; look again at the scale in exercise 5.")
def self_unscaled(X, W_Q, W_K, W_V):
    scores = (X @ W_Q) @ np.swapaxes(X @ W_K, -1, -2)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ (X @ W_V), weights


@wrong(
    "self_attention",
    says="Your softmax runs over the queries: the columns sum to 1. Each query, a row, shares its "
    "attention among the keys.",
)
def self_softmax_over_queries(X, W_Q, W_K, W_V):
    scores = (X @ W_Q) @ np.swapaxes(X @ W_K, -1, -2) / np.sqrt(W_K.shape[-1])
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = powers / powers.sum(axis=-2, keepdims=True)
    return weights @ (X @ W_V), weights


@wrong(
    "self_attention",
    says="It works for a single sequence but not with batch axes: `.T` reverses all axes. Count axes from the end.",
)
def self_without_batches(X, W_Q, W_K, W_V):
    Q, K, V = X @ W_Q, X @ W_K, X @ W_V
    scores = Q @ K.T / np.sqrt(K.shape[1])
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return weights @ V, weights


@wrong(
    "self_attention",
    says="You add the tokens to the output where the widths allow it. A residual connection is a matter of the "
    "layer around; attention returns the averages alone.",
)
def self_residual(X, W_Q, W_K, W_V):
    output, weights = scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    if output.shape == X.shape:
        output = output + X
    return (output, weights)


@wrong(
    "self_attention",
    says="Where W_V is square you average the tokens themselves; whatever its shape, they go through W_V first.",
)
def self_values_are_tokens_where_square(X, W_Q, W_K, W_V):
    Q, K = (X @ W_Q, X @ W_K)
    V = X if W_V.shape[0] == W_V.shape[1] else X @ W_V
    return scaled_dot_product_attention(Q, K, V)


@wrong(
    "self_attention",
    says="Two things: your scale is the root of the width of the values, where that of the keys is needed; and you"
    " add the tokens to the output where the widths allow it.",
)
def self_scaled_by_d_v_with_residual(X, W_Q, W_K, W_V):
    Q, K, V = (X @ W_Q, X @ W_K, X @ W_V)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(V.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    output = weights @ V
    return (output + X if output.shape == X.shape else output, weights)


attention_mistakes("self_attention", "self", "causal_where_square", "weights_transposed")


@right("self_attention")
def self_with_einsum(X, W_Q, W_K, W_V):
    scores = np.einsum("...ic,ck,dk,...jd->...ij", X, W_Q, W_K, X, optimize=True) / np.sqrt(W_K.shape[1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return np.einsum("...ij,...jc,cv->...iv", weights, X, W_V, optimize=True), weights


@right("self_attention")
def self_with_one_projection(X, W_Q, W_K, W_V):
    d_k = W_Q.shape[1]
    QKV = X @ np.concatenate([W_Q, W_K, W_V], axis=1)
    Q, K, V = QKV[..., :d_k], QKV[..., d_k : 2 * d_k], QKV[..., 2 * d_k :]
    return scaled_dot_product_attention(Q, K, V, mask=None)


@right("self_attention")
def self_with_an_open_mask(X, W_Q, W_K, W_V):
    T = X.shape[-2]
    output, weights = scaled_dot_product_attention(
        np.matmul(X, W_Q), np.matmul(X, W_K), np.matmul(X, W_V), np.ones((T, T), dtype=bool)
    )
    return [output, weights]


# ----------------------------------------------------------------------- exercise 7: self_attention_columns


@wrong(
    "self_attention_columns",
    says="Your map compares features with features (d_k by d_k). Tokens are columns here, so it is "
    "columns that have to meet in dot products.",
)
def columns_features_mixed(X, W_Q, W_K, W_V):
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X
    scores = Q @ K.T / np.sqrt(K.shape[0])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ V, weights


edited(
    "self_attention_columns",
    "columns_weights_transposed",
    "return output.T, weights",
    "return output.T, weights.T",
    says="Your map has a column for each query, as texts with columns throughout draw it; here a row "
    "belongs to a query.",
)
edited(
    "self_attention_columns",
    "columns_output_in_rows",
    "return output.T, weights",
    "return output, weights",
    says="Your output has the tokens in rows; in this convention they stand in columns, as in X.",
)
edited(
    "self_attention_columns",
    "columns_output_with_wrong_side",
    "return output.T, weights",
    "return V @ weights, weights",
    says="Your output multiplies V by the weights as they are; then every token gives out by its row "
    "instead of collecting. One of the two has to be turned round.",
)
edited(
    "self_attention_columns",
    "columns_queries_and_keys_swapped",
    "(Q.T, K.T, V.T)",
    "(K.T, Q.T, V.T)",
    says="Queries and keys have changed places: check who asks and who answers.",
)
edited(
    "self_attention_columns",
    "columns_treated_as_rows",
    "Q, K, V = W_Q @ X, W_K @ X, W_V @ X",
    "Q, K, V = (X @ W_Q).T, (X @ W_K).T, (X @ W_V).T",
    says="You multiply X by the matrices from the right, which is for tokens in rows; with columns "
    "they stand on the left.",
)


@wrong(
    "self_attention_columns",
    says="Your softmax runs over the queries: the columns of the map sum to 1, but its rows are the queries.",
)
def columns_softmax_over_queries(X, W_Q, W_K, W_V):
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X
    scores = Q.T @ K / np.sqrt(K.shape[0])
    powers = np.exp(scores - scores.max(axis=0))
    weights = powers / powers.sum(axis=0)
    return V @ weights.T, weights


edited(
    "self_attention_columns",
    "columns_scaled_by_tokens",
    "scaled_dot_product_attention(",
    f"{attention_with(**CONCEPTS['scaled_by_keys'][1])}(",
    says="Your scale is the root of the number of tokens: in K (d_k, T) the width is the first axis, not the last.",
)


@wrong(
    "self_attention_columns",
    says="Your scale is the root of the width of the tokens (the model width); it should come from the"
    " width of the keys.",
)
def columns_scaled_by_model_width(X, W_Q, W_K, W_V):
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X
    scores = Q.T @ K / np.sqrt(X.shape[0])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return V @ weights.T, weights


@wrong(
    "self_attention_columns",
    says="Where the tokens stand depends on the shape of X in your code (by a guess, or a reshape). Here they always "
    "stand in columns, and a transposition makes rows of them.",
)
def columns_orientation_guessed(X, W_Q, W_K, W_V):
    tokens = X if X.shape[1] == W_Q.shape[1] else X.T
    output, weights = self_attention(tokens, W_Q.T, W_K.T, W_V.T)
    return (output.T, weights)


@wrong(
    "self_attention_columns",
    says="You turn the output round only where its shape does not fit yet; where it is square it stays the wrong "
    "way round. Its tokens always belong in columns.",
)
def columns_output_turned_by_shape(X, W_Q, W_K, W_V):
    output, weights = self_attention(X.T, W_Q.T, W_K.T, W_V.T)
    if output.shape != (W_V.shape[0], X.shape[1]):
        output = output.T
    return (output, weights)


@wrong(
    "self_attention_columns",
    says="Two things: your scale is the root of the width of the values, where that of the keys is needed; and you"
    " turn the output round only where its shape does not fit yet.",
)
def columns_scaled_by_d_v_and_turned_by_shape(X, W_Q, W_K, W_V):
    Q, K, V = (X.T @ W_Q.T, X.T @ W_K.T, X.T @ W_V.T)
    scores = Q @ K.T / np.sqrt(W_V.shape[0])
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = e / e.sum(axis=1, keepdims=True)
    output = weights @ V
    if output.shape[0] != W_V.shape[0]:
        output = output.T
    return (output, weights)


attention_mistakes(
    "self_attention_columns",
    "columns",
    "causal_where_square",
    "all_axes_transposed",
    "axis_one",
    "one_maximum",
    "weights_transposed",
    "scaled_by_keys",
)


@right("self_attention_columns")
def columns_through_rows(X, W_Q, W_K, W_V):
    output, weights = self_attention(X.T, W_Q.T, W_K.T, W_V.T)
    return np.transpose(output), weights


@right("self_attention_columns")
def columns_kept_throughout(X, W_Q, W_K, W_V):
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X
    scores = K.T @ Q / np.sqrt(K.shape[0])  # a column for each query
    powers = np.exp(scores - scores.max(axis=0, keepdims=True))
    table = powers / powers.sum(axis=0, keepdims=True)
    return V @ table, table.T


@right("self_attention_columns")
def columns_by_loops(X, W_Q, W_K, W_V):
    T = X.shape[1]
    weights, output = np.zeros((T, T)), np.zeros((W_V.shape[0], T))
    for i in range(T):
        query = W_Q @ X[:, i]
        scores = np.array([query @ (W_K @ X[:, j]) for j in range(T)]) / np.sqrt(len(query))
        scores = np.exp(scores - max(scores))
        weights[i] = scores / sum(scores)
        for j in range(T):
            output[:, i] += weights[i, j] * (W_V @ X[:, j])
    return output, weights


# ------------------------------------------------------------------------------ exercise 8: cross_attention

edited(
    "cross_attention",
    "cross_roles_swapped",
    "X_q @ W_Q, X_kv @ W_K, X_kv @ W_V",
    "X_kv @ W_Q, X_q @ W_K, X_q @ W_V",
    says="X_kv asks and X_q answers in your function; it is the other way round.",
)
edited(
    "cross_attention",
    "cross_keys_from_the_asking",
    "X_q @ W_Q, X_kv @ W_K, X_kv @ W_V",
    "X_q @ W_Q, X_q @ W_K, X_kv @ W_V",
    says="Your keys are made from X_q; the tokens that are asked, X_kv, give both keys and values.",
)
edited(
    "cross_attention",
    "cross_values_from_the_asking",
    "X_q @ W_Q, X_kv @ W_K, X_kv @ W_V",
    "X_q @ W_Q, X_kv @ W_K, X_q @ W_V",
    says="Your values are made from X_q; the tokens that are asked, X_kv, give both keys and values.",
)
edited(
    "cross_attention",
    "cross_keys_and_values_swapped",
    "X_q @ W_Q, X_kv @ W_K, X_kv @ W_V",
    "X_q @ W_Q, X_kv @ W_V, X_kv @ W_K",
    says="Your keys are made with W_V and your values with W_K: check which matrix makes which.",
)


@wrong(
    "cross_attention",
    says="Your scale is the root of the width of X_q (the model width); it should come from the width of the keys.",
)
def cross_scaled_by_model_width(X_q, X_kv, W_Q, W_K, W_V):
    scores = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2) / np.sqrt(X_q.shape[-1])
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ (X_kv @ W_V), weights


@wrong("cross_attention", says="Your scores are not divided by anything; look again at the scale in exercise 5.")
def cross_unscaled(X_q, X_kv, W_Q, W_K, W_V):
    scores = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return weights @ (X_kv @ W_V), weights


@wrong(
    "cross_attention",
    says="Your softmax runs over the queries: the columns sum to 1. Each query, a row, shares its "
    "attention among the keys.",
)
def cross_softmax_over_queries(X_q, X_kv, W_Q, W_K, W_V):
    scores = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2) / np.sqrt(W_K.shape[-1])
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = powers / powers.sum(axis=-2, keepdims=True)
    return weights @ (X_kv @ W_V), weights


@wrong(
    "cross_attention",
    says="Two things: your scale is the root of the width of X_q, where that of the keys is needed; and your softmax "
    "runs over the queries.",
)
def cross_scaled_by_model_width_over_queries(X_q, X_kv, W_Q, W_K, W_V):
    scores = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2) / np.sqrt(X_q.shape[-1])
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = powers / powers.sum(axis=-2, keepdims=True)
    return weights @ (X_kv @ W_V), weights


@wrong(
    "cross_attention", says="Your scale is the root of the width of X_kv; it should come from the width of the keys."
)
def cross_scaled_by_answering_width(X_q, X_kv, W_Q, W_K, W_V):
    Q, K, V = (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V)
    scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(X_kv.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return (weights @ V, weights)


@wrong(
    "cross_attention",
    says="Where the shapes allow it your values are made from X_q; the tokens that are asked, X_kv, give both keys"
    " and values, always.",
)
def cross_values_from_the_asking_where_they_fit(X_q, X_kv, W_Q, W_K, W_V):
    Q = X_q @ W_Q
    K = X_kv @ W_K
    source = X_q if X_q.shape[-1] == W_V.shape[0] and X_q.shape[-2] == X_kv.shape[-2] else X_kv
    return scaled_dot_product_attention(Q, K, source @ W_V)


@wrong(
    "cross_attention",
    says="All sequences of the batch ask the answering tokens of the first one; each has answering tokens of its own.",
)
def cross_first_sequence_answers_all(X_q, X_kv, W_Q, W_K, W_V):
    context = X_kv
    while context.ndim > 2:
        context = context[0]
    Q, K, V = (X_q @ W_Q, context @ W_K, context @ W_V)
    scores = Q @ K.T / np.sqrt(K.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return (weights @ V, weights)


attention_mistakes("cross_attention", "cross")


@right("cross_attention")
def cross_with_values_last(X_q, X_kv, W_Q, W_K, W_V):
    Q, K = np.matmul(X_q, W_Q), np.matmul(X_kv, W_K)
    scores = np.matmul(Q, np.swapaxes(K, -2, -1)) / np.sqrt(K.shape[-1])
    powers = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    weights = powers / np.sum(powers, axis=-1, keepdims=True)
    return (weights @ X_kv) @ W_V, weights


@right("cross_attention")
def cross_with_einsum(X_q, X_kv, W_Q, W_K, W_V):
    Q = np.einsum("...ic,ck->...ik", X_q, W_Q)
    K = np.einsum("...jc,ck->...jk", X_kv, W_K)
    V = np.einsum("...jc,cv->...jv", X_kv, W_V)
    output, weights = scaled_dot_product_attention(Q=Q, K=K, V=V)
    return output, weights


# -------------------------------------------------------------------- exercise 9: attention_multiplications


@wrong(
    "attention_multiplications",
    says="You count one of the two matrix products; the map is made in one and used in another.",
)
def one_product_only(L, D):
    return L * L * D


@wrong("attention_multiplications", says="You multiply the costs of the two matrix products; they are to be added.")
def costs_multiplied(L, D):
    return (L * L * D) ** 2


@wrong(
    "attention_multiplications",
    says="You count the entries of the two results; each entry is a sum of several products, and those count.",
)
def entries_counted(L, D):
    return L * L + L * D


@wrong(
    "attention_multiplications",
    says="Length and width have changed places: for every pair of tokens there is a dot product of width D.",
)
def length_and_width_swapped(L, D):
    return 2 * L * D * D


@wrong(
    "attention_multiplications",
    says="You count the entries of the map; each of them takes several multiplications.",
)
def entries_of_the_map(L, D):
    return L * L


@wrong(
    "attention_multiplications",
    says="Your count grows in proportion to the length; but every token is compared with every token.",
)
def linear_in_the_length(L, D):
    return 2 * L * D


@wrong(
    "attention_multiplications",
    says="You count the projections as well; only the products QK^T and weights V are asked for.",
)
def with_projections(L, D):
    return 2 * L * L * D + 3 * L * D * D


@wrong(
    "attention_multiplications",
    says="You count the additions as well; only multiplications are asked for.",
)
def with_additions(L, D):
    return L * L * (2 * D - 1) + L * D * (2 * L - 1)


@wrong(
    "attention_multiplications",
    says="Two things: you count the projections, and you count additions; only the multiplications in QK^T and "
    "weights V are asked for.",
)
def with_projections_and_additions(L, D):
    return 3 * L * D * D + 2 * L * L * (2 * D - 1)


@wrong(
    "attention_multiplications",
    says="You count the division by the root or the softmax as well; only the two matrix products are asked for.",
)
def with_the_scale(L, D):
    return 2 * L * L * D + L * L


@wrong(
    "attention_multiplications",
    says="Your count is L D (D + 1). There is a score for each pair of tokens, not for each entry of the output; and "
    "each entry of the output sums over all tokens.",
)
def one_average_for_each_entry(L, D):
    return L * D * (D + 1)


@wrong(
    "attention_multiplications",
    says="In your second product each entry takes D multiplications; it sums over the tokens, so it takes L.",
)
def average_costs_the_width(L, D):
    return L * L * D + L * D * D


@wrong(
    "attention_multiplications",
    says="You count the scores of one half of the map; the score of i with j is not that of j with i, so all L "
    "times L are computed.",
)
def half_the_map(L, D):
    return L * (L + 1) // 2 * D + L * L * D


@right("attention_multiplications")
def counted_one_by_one(L, D):
    for_scores = sum(D for _ in range(L) for _ in range(L))
    return for_scores + L * sum(L for _ in range(D))


@right("attention_multiplications")
def count_as_a_float(L, D):
    return 2.0 * L**2 * D


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong(
    "scaled_dot_product_attention",
    says="You hide keys with a large negative number. Where the other scores are lower still, hidden keys then get "
    "weight; minus infinity is below everything.",
)
def minus_ten_thousand(Q, K, V, mask=None):
    scores = (Q / np.sqrt(Q.shape[-1])) @ np.swapaxes(K, -1, -2)
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e4)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    weights = e / e.sum(-1, keepdims=True)
    if mask is not None:
        weights = np.where(np.any(np.broadcast_to(mask, weights.shape), axis=-1, keepdims=True), weights, 0)
    return weights @ V, weights


@wrong(
    "self_attention",
    says="You make one long sequence of the batch, so that tokens of different sequences see each other; each "
    "sequence attends within itself.",
)
def one_long_sequence(X, W_Q, W_K, W_V):
    flat = X.reshape(-1, X.shape[-1])
    output, weights = scaled_dot_product_attention(flat @ W_Q, flat @ W_K, flat @ W_V)
    return output.reshape(*X.shape[:-1], W_V.shape[-1]), weights


@wrong("self_attention", says="You normalise the tokens before they are projected; nothing is normalised here.")
def tokens_normalised(X, W_Q, W_K, W_V):
    mu = X.mean(axis=-1, keepdims=True)
    sd = X.std(axis=-1, keepdims=True) + 1e-5
    N = (X - mu) / sd
    return scaled_dot_product_attention(N @ W_Q, N @ W_K, N @ W_V)


@wrong(
    "self_attention_columns",
    says="You reshape the matrices where they should be transposed. Reshaping keeps the order of the numbers and "
    "mixes rows and columns up.",
)
def reshape_for_transpose_in_columns(X, W_Q, W_K, W_V):
    def project(W):
        return X.T @ W.reshape(W.shape[1], W.shape[0])

    output, weights = scaled_dot_product_attention(project(W_Q), project(W_K), project(W_V))
    return output.T, weights


@wrong(
    "self_attention_columns",
    says="Your scale comes from the width of the tokens, and your output mixes the values by the columns of the "
    "weights. The width of the keys counts, and query i has row i.",
)
def scaled_by_d_and_turned(X, W_Q, W_K, W_V):
    d = X.shape[0]
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X
    s = Q.T @ K / np.sqrt(d)
    s = np.exp(s - s.max(1, keepdims=True))
    s = s / s.sum(1, keepdims=True)
    return V @ s, s


@wrong(
    "cross_attention",
    says="Where both sides have the same width, the asking tokens answer as well in your function; keys and values "
    "come from X_kv alone.",
)
def asking_tokens_answer_too(X_q, X_kv, W_Q, W_K, W_V):
    n = X_kv.shape[-2]
    tokens = np.concatenate([X_kv, X_q], axis=-2) if X_q.shape[-1] == X_kv.shape[-1] else X_kv
    out, w = scaled_dot_product_attention(X_q @ W_Q, tokens @ W_K, tokens @ W_V)
    return out, w[..., :n]


@wrong("cross_attention", says="You average the keys; they are for matching, and what is averaged are the values.")
def keys_averaged(X_q, X_kv, W_Q, W_K, W_V):
    Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
    _, weights = scaled_dot_product_attention(Q, K, V)
    return weights @ K, weights


@wrong(
    "cross_attention",
    says="Your scores are not divided by the root of the width, and your softmax runs over the queries.",
)
def unscaled_over_queries(X_q, X_kv, W_Q, W_K, W_V):
    s = (X_q @ W_Q) @ np.swapaxes(X_kv @ W_K, -1, -2)
    e = np.exp(s - s.max(axis=-2, keepdims=True))
    w = e / e.sum(axis=-2, keepdims=True)
    return w @ (X_kv @ W_V), w


@wrong(
    "attention_multiplications",
    says="Beside one matrix product you count one for each weight (L²). Both matrix products count, with D for each "
    "weight, and nothing else.",
)
def softmax_counted_one_product_only(L, D):
    return L * L * D + L * L
