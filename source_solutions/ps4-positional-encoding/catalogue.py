# ruff: noqa: B905
"""Right variants and misconceptions of ps4-positional-encoding.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import concatenated_score, sinusoidal_encoding

# ----------------------------------------------------------------------------- exercise 1: permutation_gap

edited(
    "permutation_gap",
    "gap_without_sign_lost",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.max(f(X[perm]) - f(X)[perm])",
    says="Differences below zero do not count in your gap; take their size, without the sign.",
)
edited(
    "permutation_gap",
    "gap_on_average",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.mean(np.abs(f(X[perm]) - f(X)[perm]))",
    says="You average the differences; asked is the largest of them.",
)
edited(
    "permutation_gap",
    "gap_summed",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.sum(np.abs(f(X[perm]) - f(X)[perm]))",
    says="You add the differences up; asked is the largest of them.",
)
edited(
    "permutation_gap",
    "gap_as_a_length",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.linalg.norm(f(X[perm]) - f(X)[perm])",
    says="You take the length of all differences together; asked is the largest single one.",
)
edited(
    "permutation_gap",
    "gap_of_invariance",
    "f(X[perm]) - f(X)[perm]",
    "f(X[perm]) - f(X)",
    says="You compare with the results in their old order, which asks whether shuffling changes nothing at all. "
    "Equivariance shuffles the results as well.",
)
edited(
    "permutation_gap",
    "gap_shuffled_back",
    "f(X[perm]) - f(X)[perm]",
    "f(X[perm]) - f(X)[np.argsort(perm)]",
    says="You shuffle tokens and results in different ways, one of them backwards or twice: f(X[perm]), as it comes, "
    "is compared with f(X)[perm].",
)
edited(
    "permutation_gap",
    "gap_of_features",
    "f(X[perm]) - f(X)[perm]",
    "f(X[perm]) - f(X)[..., np.arange(f(X).shape[-1])[::-1]]",
    says="You reorder the features of the results; it is the tokens, along the first axis, that are shuffled.",
)
edited(
    "permutation_gap",
    "gap_as_yes_or_no",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.allclose(f(X[perm]), f(X)[perm])",
    says="You return whether the two agree; asked is by how much they differ at most.",
)


@wrong(
    "permutation_gap",
    says="You shuffle X in place, so that your function changes its input; X[perm] is a copy, ready to be used.",
)
def gap_in_place(f, X, perm):
    before = np.array(f(X))
    X[:] = X[perm]
    return np.max(np.abs(f(X) - before[perm]))


@wrong("permutation_gap", says="You compare the last token only; the largest difference may stand at any place.")
def gap_of_the_last_token(f, X, perm):
    a = np.asarray(f(X[perm]))
    b = np.asarray(f(X))[perm]
    return np.abs(a[-1] - b[-1]).max()


@wrong(
    "permutation_gap",
    says="You sort the results before you compare them; then it no longer matters which token got which. Shuffle "
    "the results as the tokens were shuffled.",
)
def gap_of_sorted_results(f, X, perm):
    a = np.sort(np.asarray(f(X[perm])), axis=0)
    b = np.sort(np.asarray(f(X)), axis=0)
    return np.abs(a - b).max()


@wrong(
    "permutation_gap",
    says="You sum the differences of a token before you take the largest; they are single numbers, and signs "
    "cancel in a sum.",
)
def gap_summed_over_features(f, X, perm):
    difference = np.asarray(f(X[perm])) - np.asarray(f(X))[perm]
    difference = difference.reshape(len(X), -1)
    per_token = np.abs(difference.sum(axis=1))
    return per_token.max()


@wrong("permutation_gap", says="You report small gaps as 0; asked is the number itself, however small.")
def small_gaps_set_to_zero(f, X, perm):
    gap = np.abs(f(X[perm]) - f(X)[perm]).max()
    if gap < 0.01:
        return 0.0
    return gap


@wrong(
    "permutation_gap",
    says="Two things: you compare with the results in their old order, where equivariance shuffles them as well; "
    "and differences below zero do not count in your gap.",
)
def gap_of_invariance_with_sign(f, X, perm):
    out = f(X)
    out_shuffled = f(X[perm])
    return (out_shuffled - out).max()


@wrong(
    "permutation_gap",
    says="You report a gap as 0 where it is small beside the results (np.allclose does); asked is the number itself.",
)
def gaps_beside_large_results_set_to_zero(f, X, perm):
    shuffled, plain = f(X[perm]), f(X)[perm]
    return 0.0 if np.allclose(shuffled, plain) else np.abs(shuffled - plain).max()


@right("permutation_gap")
def gap_by_loop(f, X, perm):
    shuffled, plain = np.asarray(f(X[perm])), np.asarray(f(X))
    largest = 0.0
    for place, token in enumerate(perm):
        largest = max(largest, float(np.max(np.abs(shuffled[place] - plain[token]))))
    return largest


@right("permutation_gap")
def gap_by_taking_back(f, X, perm):
    back = np.argsort(perm)
    difference = np.take(f(np.take(X, perm, axis=0)), back, axis=0) - f(X)
    return np.linalg.norm(difference.ravel(), ord=np.inf)


# ------------------------------------------------------------------------- exercise 2: sinusoidal_encoding


@wrong(
    "sinusoidal_encoding",
    says="Your table has all sines first and then all cosines; here they take turns: sine in columns 0, 2, ..., "
    "cosine in columns 1, 3, ...",
)
def sinusoids_in_halves(T, d):
    angles = np.arange(T)[:, None] / 10000 ** (2 * (np.arange(d) // 2) / d)  # (T, d)
    return np.concatenate([np.sin(angles[:, 0::2]), np.cos(angles[:, 1::2])], axis=1)


@wrong(
    "sinusoidal_encoding",
    says="Sine and cosine have changed places: sine stands in the even columns, counted from 0.",
    based_on="sinusoidal_encoding",
)
def sinusoids_cosine_first(T, d):
    angles = np.arange(T)[:, None] / 10000 ** (2 * (np.arange(d) // 2) / d)  # (T, d)
    table = np.sin(angles)
    table[:, 0::2] = np.cos(angles[:, 0::2])
    return table


edited(
    "sinusoidal_encoding",
    "sinusoids_angle_for_each_column",
    "2 * (np.arange(d) // 2)",
    "np.arange(d)",
    says="Each of your columns has an angle of its own; columns 2i and 2i + 1 share one.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_column_for_pair",
    "2 * (np.arange(d) // 2)",
    "2 * np.arange(d)",
    says="You put the number of the column where that of the pair belongs: columns 2i and 2i + 1 share 2i / d.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_exponent_doubled",
    "2 * (np.arange(d) // 2)",
    "4 * (np.arange(d) // 2)",
    says="Your exponent is twice as large as asked: columns 2i and 2i + 1 have 2i / d, where d is the whole width.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_exponent_halved",
    "2 * (np.arange(d) // 2)",
    "(np.arange(d) // 2)",
    says="Your exponent is half as large as asked: it is the number of the pair times 2, divided by d.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_from_position_one",
    "np.arange(T)[:, None]",
    "np.arange(1, T + 1)[:, None]",
    says="Your positions start at 1; the first row belongs to position 0.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_multiplied",
    "np.arange(T)[:, None] / 10000",
    "np.arange(T)[:, None] * 10000",
    says="Your angles grow with the column instead of shrinking: the position is divided by the power of 10000.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_another_base",
    "10000 **",
    "1000 **",
    says="Your base is not 10000; the first two columns do not depend on it, the others do.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_odd_width_rounded_up",
    "(2 * (np.arange(d) // 2) / d)",
    "(2 * (np.arange(d) // 2) / (d + d % 2))",
    says="For odd widths you cut off a table that is one column wider; its exponents have another d in them.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_odd_width_rounded_down",
    "(2 * (np.arange(d) // 2) / d)",
    "(2 * (np.arange(d) // 2) / max(1, d - d % 2))",
    says="For odd widths your exponents are divided by d - 1; they are divided by the given d.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_over_d_minus_two",
    "(2 * (np.arange(d) // 2) / d)",
    "(2 * (np.arange(d) // 2) / max(1, d - 2))",
    says="Your slowest wave is slower than asked: the exponents are divided by d, not by d - 2.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_next_pair_for_cosine",
    "np.cos(angles[:, 1::2])",
    "np.cos(np.arange(T)[:, None] / 10000 ** ((np.arange(1, d, 2) + 1) / d))",
    says="Your cosines use the angle of the next pair; sine and cosine of the same angle stand side by side.",
)
edited(
    "sinusoidal_encoding",
    "sinusoids_transposed",
    "return table",
    "return table.T",
    says="Your table has a column for each position; positions stand in rows here.",
)


@wrong(
    "sinusoidal_encoding",
    says="Your function works for even widths only. With odd d there is one sine more than there are cosines.",
)
def sinusoids_even_only(T, d):
    angles = np.arange(T)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    table = np.zeros((T, d))
    table[:, 0::2] = np.sin(angles)
    table[:, 1::2] = np.cos(angles)
    return table


@wrong(
    "sinusoidal_encoding",
    says="You compute the angles in float32, which knows an angle of some hundreds to four decimals only; compute "
    "in float64.",
)
def sinusoids_in_float32(T, d):
    t = np.arange(T, dtype=np.float32)[:, None]
    j = np.arange(d)
    frequency = (1 / 10000 ** (2 * (j // 2) / d)).astype(np.float32)
    angles = t * frequency
    table = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, 1::2])
    return table


edited(
    "sinusoidal_encoding",
    "sinusoids_ends_included",
    "(2 * (np.arange(d) // 2) / d)",
    "np.linspace(0, 1, (d + 1) // 2)[np.arange(d) // 2]",
    says="Your exponents run from 0 to 1 with both ends; they are 2i / d, so that 1 is not reached.",
)


@wrong(
    "sinusoidal_encoding",
    says="You squeeze long tables into 512 positions; row t belongs to position t, however long the table is.",
)
def sinusoids_squeezed_beyond_512(T, d):
    t = np.arange(T, dtype=np.float64)
    if T > 512:
        t = t * 512 / T
    j = np.arange(d)
    angles = t[:, None] / 10000 ** (2 * (j // 2) / d)
    return np.where(j % 2 == 0, np.sin(angles), np.cos(angles))


@wrong(
    "sinusoidal_encoding",
    says="Two things: sine and cosine have changed places; and your exponent is half as large as asked.",
)
def sinusoids_cosine_first_and_halved(T, d):
    pos = np.arange(T)[:, None]
    i = np.arange(d) // 2
    angles = pos / np.power(10000, i / d)
    pe = np.empty((T, d))
    pe[:, 0::2] = np.cos(angles[:, 0::2])
    pe[:, 1::2] = np.sin(angles[:, 1::2])
    return pe


@right("sinusoidal_encoding")
def sinusoids_by_loops(T, d):
    import math

    table = []
    for t in range(T):
        row = []
        for j in range(d):
            angle = t / 10000 ** ((j - j % 2) / d)
            row.append(math.cos(angle) if j % 2 else math.sin(angle))
        table.append(row)
    return table


@right("sinusoidal_encoding")
def sinusoids_by_complex_numbers(T, d):
    pairs = (d + 1) // 2
    waves = np.exp(1j * np.outer(np.arange(T), np.exp(-np.log(10000.0) * 2 * np.arange(pairs) / d)))
    return np.stack([waves.imag, waves.real], axis=-1).reshape(T, 2 * pairs)[:, :d]


@right("sinusoidal_encoding")
def sinusoids_in_torch(T, d):
    import torch

    j = torch.arange(d, dtype=torch.float64)
    angles = torch.arange(T, dtype=torch.float64)[:, None] * 10000 ** (-2 * torch.floor(j / 2) / d)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


# ------------------------------------------------------------------------ exercise 3: additive_score_terms

edited(
    "additive_score_terms",
    "terms_middle_swapped",
    "x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "x_i @ x_j, p_i @ x_j, x_i @ p_j, p_i @ p_j",
    says="The two terms in the middle have changed places: first the query's content with the key's position.",
)
edited(
    "additive_score_terms",
    "terms_added_up",
    "return x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "return x_i @ x_j + x_i @ p_j + p_i @ x_j + p_i @ p_j",
    says="You return the whole score; asked are its four terms, each by itself.",
)
edited(
    "additive_score_terms",
    "terms_scaled",
    "return x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "return tuple(np.array([x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j]) / np.sqrt(len(x_i)))",
    says="You divide the terms by the root of the width; nothing is scaled in this set.",
)
edited(
    "additive_score_terms",
    "terms_of_one_token",
    "x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "x_i @ x_j, x_i @ p_i, x_j @ p_j, p_i @ p_j",
    says="Two of your terms multiply content and position of the same token; in a score the query's parts meet the "
    "key's parts.",
)
edited(
    "additive_score_terms",
    "terms_two_only",
    "x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "x_i @ x_j, p_i @ p_j",
    says="You return two terms; multiplying out a product of two sums gives four.",
)
edited(
    "additive_score_terms",
    "terms_entry_by_entry",
    "x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "x_i * x_j, x_i * p_j, p_i * x_j, p_i * p_j",
    says="Your terms are vectors: * multiplies entry by entry; a dot product also adds the products up.",
)
edited(
    "additive_score_terms",
    "terms_positions_first",
    "x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j",
    "p_i @ p_j, p_i @ x_j, x_i @ p_j, x_i @ x_j",
    says="Your terms stand in the reverse order: content with content comes first, position with position last.",
)


@wrong(
    "additive_score_terms",
    says="Your last term is 0 unless both positions are the same; p_i . p_j is a dot product like the others, and "
    "only rarely 0.",
)
def terms_of_other_positions_dropped(x_i, p_i, x_j, p_j):
    same_position = np.array_equal(p_i, p_j)
    position = p_i @ p_j if same_position else 0.0
    return (x_i @ x_j, x_i @ p_j, p_i @ x_j, position)


@wrong(
    "additive_score_terms",
    says="You share what is left over equally between the two mixed terms; x_i . p_j and p_i . x_j are two numbers"
    " of their own.",
)
def terms_in_equal_halves(x_i, p_i, x_j, p_j):
    total = (x_i + p_i) @ (x_j + p_j)
    content, position = (x_i @ x_j, p_i @ p_j)
    cross = total - content - position
    return np.array([content, cross / 2, cross / 2, position])


@wrong(
    "additive_score_terms", says="You take the terms without their signs; they are added up in the score as they are."
)
def terms_without_sign(x_i, p_i, x_j, p_j):
    terms = [x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j]
    return np.abs(terms)


@wrong(
    "additive_score_terms",
    says="Two things: the two terms in the middle have changed places; and your last term is a cosine, where the "
    "dot product as it is was asked for.",
)
def terms_swapped_and_cosine(x_i, p_i, x_j, p_j):
    cosine = p_i @ p_j / (np.linalg.norm(p_i) * np.linalg.norm(p_j) + 1e-12)
    return (x_i @ x_j, p_i @ x_j, x_i @ p_j, cosine)


@right("additive_score_terms")
def terms_as_a_table(x_i, p_i, x_j, p_j):
    return (np.stack([x_i, p_i]) @ np.stack([x_j, p_j]).T).reshape(-1)


@right("additive_score_terms")
def terms_in_a_list(x_i, p_i, x_j, p_j):
    return [sum(float(a) * float(b) for a, b in zip(one, other)) for one in (x_i, p_i) for other in (x_j, p_j)]


survivor("additive_score_terms", "x_i @ x_j", ") @ (", "the dot product of two vectors is the same in both orders")

# -------------------------------------------------------------------------- exercise 4: concatenated_score

edited(
    "concatenated_score",
    "concatenated_scaled",
    "return x_i @ x_j + p_i @ p_j",
    "return (x_i @ x_j + p_i @ p_j) / np.sqrt(len(x_i) + len(p_i))",
    says="You divide by the root of the whole width; nothing is scaled in this set.",
)
edited(
    "concatenated_score",
    "concatenated_multiplied",
    "x_i @ x_j + p_i @ p_j",
    "(x_i @ x_j) * (p_i @ p_j)",
    says="You multiply the two parts; the dot product of concatenations adds them.",
)
edited(
    "concatenated_score",
    "concatenated_contents_only",
    "x_i @ x_j + p_i @ p_j",
    "x_i @ x_j",
    says="Your score leaves the positions out; they stand beside the contents and meet each other.",
)
edited(
    "concatenated_score",
    "concatenated_two_numbers",
    "x_i @ x_j + p_i @ p_j",
    "x_i @ x_j, p_i @ p_j",
    says="You return the two parts; asked is the score, their sum.",
)


@wrong(
    "concatenated_score",
    says="You add contents and positions where their widths allow it; concatenated, they stand side by side and never "
    "meet.",
)
def concatenated_as_sums(x_i, p_i, x_j, p_j):
    return (x_i + p_i) @ (x_j + p_j)


@wrong(
    "concatenated_score",
    says="Content meets position in your score: check which part of one token stands opposite which part of the other.",
)
def concatenated_crosswise(x_i, p_i, x_j, p_j):
    return np.concatenate([x_i, p_i]) @ np.concatenate([p_j, x_j])


@wrong(
    "concatenated_score",
    says="Of each position only the first entry counts in your score; all of its entries stand in the longer vector.",
)
def concatenated_first_entries(x_i, p_i, x_j, p_j):
    return x_i @ x_j + p_i[0] * p_j[0]


@wrong(
    "concatenated_score",
    says="You cut positions off at the width of the contents; they may be wider, and all of them stand in the "
    "longer vector.",
)
def concatenated_cut_off(x_i, p_i, x_j, p_j):
    d = len(x_i)
    token_i = np.concatenate([x_i, p_i[:d]])
    token_j = np.concatenate([x_j, p_j[:d]])
    return token_i @ token_j


@wrong("concatenated_score", says="You take both parts without their signs; the dot product adds them as they are.")
def concatenated_without_signs(x_i, p_i, x_j, p_j):
    content = abs(np.dot(x_i, x_j))
    position = abs(np.dot(p_i, p_j))
    return content + position


@wrong("concatenated_score", says="You average the products of each part; a dot product sums them.")
def concatenated_means(x_i, p_i, x_j, p_j):
    return np.mean(x_i * x_j) + np.mean(p_i * p_j)


@wrong(
    "concatenated_score",
    says="Two things: content meets position in your score, as one of the tokens is put together in the other "
    "order; and you divide by a root, where nothing is scaled.",
)
def concatenated_crosswise_and_scaled(x_i, p_i, x_j, p_j):
    query = np.concatenate([x_i, p_i])
    key = np.concatenate([p_j, x_j])
    return np.dot(query, key) / np.sqrt(len(x_i))


@right("concatenated_score")
def concatenated_literally(x_i, p_i, x_j, p_j):
    return float(np.dot(np.hstack((x_i, p_i)), np.hstack((x_j, p_j))))


@right("concatenated_score")
def concatenated_as_two_sums(x_i, p_i, x_j, p_j):
    return np.sum(x_i * x_j) + np.einsum("k,k->", p_i, p_j)


survivor("concatenated_score", "x_i @ x_j", ") @ (", "the dot product of two vectors is the same in both orders")

# ------------------------------------------------------------------------------- exercise 5: relative_bias

edited(
    "relative_bias",
    "bias_scaled",
    "P_q @ P_k.T",
    "P_q @ P_k.T / np.sqrt(P_q.shape[1])",
    says="You divide the bias by the root of the width; nothing is scaled in this set.",
)
edited(
    "relative_bias",
    "bias_transposed",
    "P_q @ P_k.T",
    "P_k @ P_q.T",
    says="Your table has a row for each key; row is query.",
)
edited(
    "relative_bias",
    "bias_from_distances",
    "P_q @ P_k.T",
    "np.arange(len(P_q))[:, None] - np.arange(len(P_k))",
    says="You return the distances i - j; the bias is a dot product, and only for encodings such as the sinusoids does "
    "it depend on the distance alone.",
)
edited(
    "relative_bias",
    "bias_from_first_row",
    "P_q @ P_k.T",
    "(P_q[:1] @ P_k.T)[0][np.minimum(np.abs(np.arange(len(P_q))[:, None] - np.arange(len(P_k))), len(P_k) - 1)]",
    says="You compute the first row and move it along the diagonals; that holds for sinusoids, not for any rows.",
)


@wrong("relative_bias", says="You take a softmax; the bias is added to the scores before it.")
def bias_after_softmax(P_q, P_k):
    powers = np.exp(P_q @ P_k.T)
    return powers / powers.sum(axis=1, keepdims=True)


edited(
    "relative_bias",
    "bias_from_differences",
    "P_q @ P_k.T",
    "np.linalg.norm(P_q[:, None] - P_k, axis=2)",
    says="You measure distances between the rows; the bias is their dot product.",
)


@wrong(
    "relative_bias",
    says="Where the table is square you make it symmetric; the dot product of row i with row j need not be that of"
    " row j with row i, for queries and keys have rows of their own.",
)
def bias_made_symmetric(P_q, P_k):
    bias = P_q @ P_k.T
    if bias.shape[0] == bias.shape[1]:
        bias = (bias + bias.T) / 2
    return bias


@wrong("relative_bias", says="You cut off what is negative; a bias is a dot product and can have either sign.")
def bias_never_negative(P_q, P_k):
    bias = np.dot(P_q, P_k.T)
    return np.maximum(bias, 0)


@wrong(
    "relative_bias",
    says="Where the table is square you set its diagonal to 0; a dot product of two rows at the same place is "
    "rarely 0.",
)
def bias_zero_on_the_diagonal(P_q, P_k):
    bias = P_q @ P_k.T
    if len(P_q) == len(P_k):
        np.fill_diagonal(bias, 0)
    return bias


@wrong(
    "relative_bias",
    says="You compute the first row and the first column and move them along the diagonals; that holds for "
    "sinusoids, not for any rows.",
)
def bias_from_first_row_and_column(P_q, P_k):
    T_q, T_k = (len(P_q), len(P_k))
    table = np.zeros((T_q, T_k))
    for i in range(T_q):
        for j in range(T_k):
            if i >= j:
                table[i, j] = P_q[i - j] @ P_k[0]
            else:
                table[i, j] = P_q[0] @ P_k[j - i]
    return table


@wrong("relative_bias", says="You return distances between the rows, with a minus; the bias is their dot product.")
def bias_as_negative_distance(P_q, P_k):
    difference = P_q[:, None, :] - P_k[None, :, :]
    return -np.sqrt((difference**2).sum(axis=-1))


@wrong(
    "relative_bias",
    says="Two things: you bring the rows to length 1 first, where the dot product counts how long they are; and "
    "you set the bias of later keys to 0.",
)
def bias_of_cosines_and_causal(P_q, P_k):
    Q = P_q / (np.linalg.norm(P_q, axis=1, keepdims=True) + 1e-12)
    K = P_k / (np.linalg.norm(P_k, axis=1, keepdims=True) + 1e-12)
    return np.tril(Q @ K.T)


@right("relative_bias")
def bias_by_loops(P_q, P_k):
    return [[concatenated_score(np.zeros(1), p, np.zeros(1), r) for r in P_k] for p in P_q]


@right("relative_bias")
def bias_by_einsum(P_q, P_k):
    return np.einsum("id,jd->ij", P_q, P_k)


# -------------------------------------------------------------------------------- exercise 6: shift_matrix

edited(
    "shift_matrix",
    "shift_transposed",
    "[[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]",
    "[[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]",
    says="Your matrix moves back where it should move forward: the minus sign stands in the other corner, because the "
    "sine comes first in each pair.",
)
edited(
    "shift_matrix",
    "shift_without_minus",
    "[-np.sin(angle), np.cos(angle)]]",
    "[np.sin(angle), np.cos(angle)]]",
    says="A sign is missing: cos(a + b) = cos a cos b - sin a sin b.",
)
edited(
    "shift_matrix",
    "shift_sine_and_cosine_swapped",
    "[[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]",
    "[[np.sin(angle), np.cos(angle)], [np.cos(angle), -np.sin(angle)]]",
    says="Sine and cosine have changed places in your blocks: to move by 0, a block has to be the identity.",
)
edited(
    "shift_matrix",
    "shift_one_angle",
    "delta / 10000 ** (j / d)",
    "delta",
    says="All your blocks turn by the same angle; each pair of columns has an angle of its own.",
)
edited(
    "shift_matrix",
    "shift_by_one",
    "delta / 10000 ** (j / d)",
    "1 / 10000 ** (j / d)",
    says="Your matrix always moves by 1, whatever delta is.",
)
edited(
    "shift_matrix",
    "shift_exponent_doubled",
    "(j / d)",
    "(2 * j / d)",
    says="Your exponents are twice as large as asked: columns 2i and 2i + 1 have 2i / d, where d is the whole width.",
)
edited(
    "shift_matrix",
    "shift_exponent_halved",
    "(j / d)",
    "(j / 2 / d)",
    says="Your exponents are half as large as asked: they are the even column number, divided by d.",
)
edited(
    "shift_matrix",
    "shift_without_sign_of_delta",
    "angle = delta",
    "angle = abs(delta)",
    says="A negative delta moves forward in your function; it should move back.",
)


@wrong(
    "shift_matrix",
    says="Your matrix is made for a table with all sines first and then all cosines; here sine and cosine take turns.",
)
def shift_in_halves(delta, d):
    angles = delta / 10000 ** (np.arange(0, d, 2) / d)
    cos, sin = np.diag(np.cos(angles)), np.diag(np.sin(angles))
    return np.block([[cos, sin], [-sin, cos]])


@wrong(
    "shift_matrix",
    says="Your blocks overlap: block i stands in rows and columns 2i and 2i + 1, not in i and i + 1.",
)
def shift_with_overlapping_blocks(delta, d):
    shift = np.zeros((d, d))
    for i in range(d // 2):
        angle = delta / 10000 ** (2 * i / d)
        shift[i, i] = shift[i + 1, i + 1] = np.cos(angle)
        shift[i, i + 1] = np.sin(angle)
        shift[i + 1, i] = -np.sin(angle)
    return shift


@wrong(
    "shift_matrix",
    says="You shift the entries of a vector; what has to move is the position, which turns each pair (sin, cos).",
)
def shift_of_entries(delta, d):
    return np.roll(np.eye(d), delta, axis=0)


@wrong(
    "shift_matrix",
    says="Each of your pairs turns 100 times more slowly than the one before, whatever d is; the exponents are "
    "divided by d.",
)
def shift_frequencies_without_the_width(delta, d):
    M = np.zeros((d, d))
    for i in range(d // 2):
        b = delta / 100.0**i
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(b), np.sin(b)], [-np.sin(b), np.cos(b)]]
    return M


@wrong(
    "shift_matrix",
    says="Your matrix is right for position 0 alone; it has to move every position by delta, which a matrix of "
    "rank one cannot.",
)
def shift_from_position_zero_only(delta, d):
    j = np.arange(d)

    def pe(t):
        a = t / 10000 ** (2 * (j // 2) / d)
        return np.where(j % 2 == 0, np.sin(a), np.cos(a))

    start, end = (pe(0), pe(delta))
    return np.outer(end, start) / (start @ start)


@wrong(
    "shift_matrix",
    says="To move back you take the matrix that moves forward and turn its sign; it is the angles that change "
    "their sign.",
)
def shift_back_as_minus(delta, d):
    M = np.zeros((d, d))
    steps = abs(delta)
    for i in range(d // 2):
        b = steps / 10000 ** (2 * i / d)
        M[2 * i, 2 * i] = M[2 * i + 1, 2 * i + 1] = np.cos(b)
        M[2 * i, 2 * i + 1] = np.sin(b)
        M[2 * i + 1, 2 * i] = -np.sin(b)
    return M if delta >= 0 else -M


@wrong("shift_matrix", says="You leave the slowest pairs as they are; they turn, too, if only a little.")
def shift_slow_pairs_left_out(delta, d):
    M = np.eye(d)
    for i in range(0, d, 2):
        frequency = 10000 ** (-i / d)
        if frequency < 0.001:
            continue
        b = delta * frequency
        M[i, i], M[i, i + 1] = (np.cos(b), np.sin(b))
        M[i + 1, i], M[i + 1, i + 1] = (-np.sin(b), np.cos(b))
    return M


@wrong(
    "shift_matrix",
    says="Two things: your exponents are half as large as asked; and a negative delta moves forward in your function.",
)
def shift_halved_and_without_sign(delta, d):
    M = np.zeros((d, d))
    for i in range(d // 2):
        b = abs(delta) / 10000 ** (i / d)
        M[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] = [[np.cos(b), np.sin(b)], [-np.sin(b), np.cos(b)]]
    return M


@right("shift_matrix")
def shift_by_kron(delta, d):
    result = np.zeros((d, d))
    for i in range(d // 2):
        a = delta * 10000 ** (-2 * i / d)
        pick = np.zeros((d // 2, d // 2))
        pick[i, i] = 1
        result += np.kron(pick, np.array([[np.cos(a), np.sin(a)], [-np.sin(a), np.cos(a)]]))
    return result


@right("shift_matrix")
def shift_from_the_table(delta, d):
    size = abs(delta) + 1
    row = np.asarray(sinusoidal_encoding(size, d))[-1]  # sin and cos of the angle of the distance
    sin, cos = np.sign(delta) * row[0::2], row[1::2]
    result = [[0.0] * d for _ in range(d)]
    for i in range(d // 2):
        result[2 * i][2 * i] = result[2 * i + 1][2 * i + 1] = float(cos[i])
        result[2 * i][2 * i + 1], result[2 * i + 1][2 * i] = float(sin[i]), -float(sin[i])
    return result


# -------------------------------------------------------------------------------------- exercise 7: rotary

edited(
    "rotary",
    "rotary_backwards",
    "[x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)]",
    "[x * np.cos(angles) + y * np.sin(angles), y * np.cos(angles) - x * np.sin(angles)]",
    says="You turn in the other direction: the minus sign belongs to the first of the two.",
)
edited(
    "rotary",
    "rotary_without_minus",
    "x * np.cos(angles) - y * np.sin(angles)",
    "x * np.cos(angles) + y * np.sin(angles)",
    says="A sign is missing: the first column becomes x cos a - y sin a. A rotation keeps lengths, and yours does not.",
)
edited(
    "rotary",
    "rotary_one_angle",
    "positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)",
    "positions[:, None] * np.ones(d // 2)",
    says="All pairs turn by the same angle in your function; the later ones turn more slowly.",
)
edited(
    "rotary",
    "rotary_exponent_doubled",
    "(np.arange(0, d, 2) / d)",
    "(2 * np.arange(0, d, 2) / d)",
    says="Your exponents are twice as large as asked: pair i has 2i / d, where d is the whole width.",
)
edited(
    "rotary",
    "rotary_exponent_halved",
    "(np.arange(0, d, 2) / d)",
    "(np.arange(d // 2) / d)",
    says="Your exponents are half as large as asked: pair i has the exponent 2i / d.",
)
edited(
    "rotary",
    "rotary_positions_ignored",
    "positions[:, None] /",
    "np.arange(X.shape[-2])[:, None] /",
    says="You count the rows yourself; the positions are given and need not be 0, 1, 2, ...",
)
edited(
    "rotary",
    "rotary_from_position_one",
    "positions[:, None] /",
    "(positions[:, None] + 1) /",
    says="Your positions are one too large; the token at position 0 is not turned at all.",
)
edited(
    "rotary",
    "rotary_halves_put_together",
    "turned.reshape(X.shape)",
    "turned.swapaxes(-1, -2).reshape(X.shape)",
    says="You turn pairs of neighbours and then put all first columns before all second ones; each pair goes back to "
    "its own two columns.",
)
edited(
    "rotary",
    "rotary_multiplied_base",
    "positions[:, None] / 10000",
    "positions[:, None] * 10000",
    says="Your later pairs turn faster and faster; the position is divided by the power of 10000.",
)


@wrong(
    "rotary",
    says="You pair the first half of the columns with the second half, as some libraries do; here neighbours form "
    "a pair: columns 2i and 2i + 1.",
)
def rotary_by_halves(X, positions):
    d = X.shape[-1]
    angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    x, y = X[..., : d // 2], X[..., d // 2 :]
    return np.concatenate([x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)], axis=-1)


@wrong("rotary", says="You add sinusoids to X; rotary encoding adds nothing, it turns each pair of columns.")
def rotary_added(X, positions):
    d = X.shape[-1]
    angles = positions[:, None] / 10000 ** (2 * (np.arange(d) // 2) / d)
    return X + np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))


@wrong(
    "rotary",
    says="You overwrite X while you compute: the second column is made from the first one's new value, and the input "
    "is changed. Work on a copy, and keep the old values.",
)
def rotary_in_place(X, positions):
    d = X.shape[-1]
    angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    X[..., 0::2] = X[..., 0::2] * np.cos(angles) - X[..., 1::2] * np.sin(angles)
    X[..., 1::2] = X[..., 0::2] * np.sin(angles) + X[..., 1::2] * np.cos(angles)
    return X


@wrong(
    "rotary",
    says="Each column turns by an angle of its own in your function; the two columns of a pair share one angle.",
)
def rotary_angle_for_each_column(X, positions):
    d = X.shape[-1]
    angles = positions[:, None] / 10000 ** (np.arange(d) / d)
    turned = np.empty(X.shape)
    x, y = X[..., 0::2], X[..., 1::2]
    turned[..., 0::2] = x * np.cos(angles[:, 0::2]) - y * np.sin(angles[:, 0::2])
    turned[..., 1::2] = x * np.sin(angles[:, 1::2]) + y * np.cos(angles[:, 1::2])
    return turned


@wrong(
    "rotary",
    says="Your function takes exactly two axes; any number of batch axes may stand in front. Count axes from the end.",
)
def rotary_without_batches(X, positions):
    T, d = X.shape
    angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    x, y = X[:, 0::2], X[:, 1::2]
    turned = np.zeros((T, d))
    turned[:, 0::2] = x * np.cos(angles) - y * np.sin(angles)
    turned[:, 1::2] = x * np.sin(angles) + y * np.cos(angles)
    return turned


@wrong(
    "rotary",
    says="You reduce the positions modulo 2 pi before you divide; only the first pair turns by the position "
    "itself, the others by a part of it.",
)
def rotary_positions_modulo_two_pi(X, positions):
    d = X.shape[-1]
    reduced = np.mod(np.asarray(positions, dtype=np.float64), 2 * np.pi)
    angles = reduced[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    c, s = (np.cos(angles), np.sin(angles))
    out = np.empty(X.shape)
    out[..., 0::2] = X[..., 0::2] * c - X[..., 1::2] * s
    out[..., 1::2] = X[..., 0::2] * s + X[..., 1::2] * c
    return out


@wrong(
    "rotary",
    says="You subtract the first position; scores would not notice, but each token is to be turned by its own "
    "position.",
)
def rotary_from_the_first_position_given(X, positions):
    d = X.shape[-1]
    offset = np.asarray(positions, dtype=float)
    offset = offset - offset[0]
    angles = offset[:, None] * 10000.0 ** (-np.arange(0, d, 2) / d)
    x, y = (X[..., 0::2], X[..., 1::2])
    turned = np.stack([x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)], axis=-1)
    return turned.reshape(X.shape)


@wrong(
    "rotary", says="With four axes you take another axis for the tokens; they always stand on the axis before the last."
)
def rotary_positions_along_another_axis(X, positions):
    d = X.shape[-1]
    angles = np.asarray(positions, dtype=np.float64)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    if X.ndim == 4:
        angles = angles[:, None, :]
    c, s = (np.cos(angles), np.sin(angles))
    out = np.array(X, dtype=np.float64)
    out[..., 0::2] = X[..., 0::2] * c - X[..., 1::2] * s
    out[..., 1::2] = X[..., 0::2] * s + X[..., 1::2] * c
    return out


@wrong(
    "rotary",
    says="You make the second column of a pair from the first one's new value; both are made from the old ones.",
)
def rotary_second_from_the_turned_first(X, positions):
    d = X.shape[-1]
    angles = np.asarray(positions)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    out = np.array(X, dtype=np.float64)
    out[..., 0::2] = out[..., 0::2] * np.cos(angles) - out[..., 1::2] * np.sin(angles)
    out[..., 1::2] = out[..., 0::2] * np.sin(angles) + out[..., 1::2] * np.cos(angles)
    return out


@wrong(
    "rotary", says="You take positions without their signs; a token at position -2 is turned in the other direction."
)
def rotary_positions_without_sign(X, positions):
    d = X.shape[-1]
    t = np.abs(np.asarray(positions, dtype=np.float64))
    angles = t[:, None] / 10000 ** (2 * np.arange(d // 2) / d)
    z = X[..., 0::2] + 1j * X[..., 1::2]
    z = z * np.exp(1j * angles)
    return np.stack([z.real, z.imag], axis=-1).reshape(X.shape)


@wrong(
    "rotary",
    says="Two things: you count the rows yourself, where positions are given; and you turn in the other direction.",
)
def rotary_counted_and_backwards(X, positions):
    T, d = X.shape[-2:]
    angles = np.arange(T)[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    c, s = (np.cos(angles), np.sin(angles))
    out = np.empty(X.shape)
    out[..., 0::2] = X[..., 0::2] * c + X[..., 1::2] * s
    out[..., 1::2] = X[..., 1::2] * c - X[..., 0::2] * s
    return out


@right("rotary")
def rotary_by_complex_numbers(X, positions):
    d = X.shape[-1]
    pairs = np.asarray(X[..., 0::2] + 1j * X[..., 1::2], dtype=complex)
    turned = pairs * np.exp(1j * np.outer(positions, 10000.0 ** (-np.arange(d // 2) * 2 / d)))
    result = np.zeros_like(X)
    result[..., 0::2], result[..., 1::2] = turned.real, turned.imag
    return result


@right("rotary")
def rotary_with_a_swapped_copy(X, positions):
    d = X.shape[-1]
    angles = np.repeat(np.asarray(positions, dtype=float)[:, None] / 10000 ** (np.arange(0, d, 2) / d), 2, axis=1)
    swapped = np.stack([-X[..., 1::2], X[..., 0::2]], axis=-1).reshape(X.shape)
    return X * np.cos(angles) + swapped * np.sin(angles)


@right("rotary")
def rotary_by_matrices(X, positions):
    d = X.shape[-1]
    result = np.array(X, dtype=np.float64)
    for t, position in enumerate(positions):
        turn = np.eye(d)
        for i in range(0, d, 2):
            a = float(position) / 10000 ** (i / d)
            turn[i : i + 2, i : i + 2] = [[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]
        result[..., t, :] = result[..., t, :] @ turn.T
    return result


@right("rotary")
def rotary_in_torch(X, positions):
    import torch

    X, positions = (torch.tensor(np.ascontiguousarray(a), dtype=torch.float64) for a in (X, positions))
    d = X.shape[-1]
    angles = positions[:, None] * torch.exp(-torch.arange(0, d, 2, dtype=torch.float64) / d * np.log(10000))
    x, y = X.reshape(*X.shape[:-1], d // 2, 2).unbind(-1)
    return torch.stack([x * angles.cos() - y * angles.sin(), x * angles.sin() + y * angles.cos()], -1).flatten(-2)


# -------------------------------------------- mistakes that a second collection of answers brought


edited(
    "permutation_gap",
    "length_of_the_difference",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.max(np.linalg.norm((f(X[perm]) - f(X)[perm]).reshape(len(perm), -1), axis=1))",
    says="You measure a token's difference by the length of the vector; the largest single entry, without its sign, "
    "is asked for.",
)
edited(
    "permutation_gap",
    "length_of_the_difference_of_other_pairs",
    "np.max(np.abs(f(X[perm]) - f(X)[perm]))",
    "np.max(np.linalg.norm((f(X[perm]) - f(X)[np.argsort(perm)]).reshape(len(perm), -1), axis=1))",
    says="Two things: you shuffle tokens and results in different ways, one of them backwards or twice; and you "
    "measure a token's difference by the length of the vector, where the largest single entry is asked for.",
)


@wrong("permutation_gap", says="You divide the difference by the size of the results; it is asked for as it is.")
def relative_difference(f, X, perm):
    first, second = f(X[perm]), f(X)[perm]
    size = np.abs(second).max()
    gap = np.abs(first - second).max()
    return gap / size if size > 1 else gap


@wrong("permutation_gap", says="You compare only the first number of each token; all numbers count.")
def first_number_only(f, X, perm):
    shuffled_first = f(X[perm])
    shuffled_after = f(X)[perm]
    gap = 0.0
    for t in range(len(perm)):
        gap = max(gap, abs(float(np.ravel(shuffled_first[t])[0] - np.ravel(shuffled_after[t])[0])))
    return gap


@wrong(
    "sinusoidal_encoding",
    says="Your even columns hold cosines, and your positions begin with 1; sines come first, and the first position "
    "is 0.",
)
def cosine_first_from_one(T, d):
    pos = np.arange(1, T + 1)[:, None]
    j = np.arange(d)
    a = pos / 10000 ** (2 * (j // 2) / d)
    a[:, 0::2] = np.cos(a[:, 0::2])
    a[:, 1::2] = np.sin(a[:, 1::2])
    return a


@wrong(
    "additive_score_terms",
    says="Your two terms between content and position are 0; content meets position, too, in a dot product of sums.",
)
def cross_terms_left_out(x_i, p_i, x_j, p_j):
    return [float(np.dot(x_i, x_j)), 0.0, 0.0, float(np.dot(p_i, p_j))]


@wrong(
    "additive_score_terms",
    says="Your last term is made from the difference of the positions; it is the dot product of the two, like the "
    "others.",
)
def distance_as_last_term(x_i, p_i, x_j, p_j):
    d = p_i - p_j
    return np.dot(x_i, x_j), np.dot(x_i, p_j), np.dot(p_i, x_j), np.dot(d, d)


@wrong(
    "additive_score_terms",
    says="Your two middle terms have changed places, and all terms are divided by a root; nothing is scaled here.",
)
def cross_terms_exchanged_and_scaled(x_i, p_i, x_j, p_j):
    return np.array([x_i @ x_j, p_i @ x_j, x_i @ p_j, p_i @ p_j]) / np.sqrt(x_i.shape[-1])


@wrong(
    "concatenated_score",
    says="Where contents and positions have the same width, you let them meet as in a sum; in a concatenation each "
    "meets its own kind only.",
)
def cross_terms_where_widths_are_equal(x_i, p_i, x_j, p_j):
    score = x_i @ x_j + p_i @ p_j
    if len(x_i) == len(p_i):
        score = score + x_i @ p_j + p_i @ x_j
    return score


@wrong(
    "concatenated_score",
    says="You put the two contents together and the two positions, and multiply these; a token's content and "
    "position stand together, and token meets token.",
)
def contents_meet_positions(x_i, p_i, x_j, p_j):
    contents = np.concatenate([x_i, x_j])
    positions = np.concatenate([p_i, p_j])
    n = min(len(contents), len(positions))
    return contents[:n] @ positions[:n]


@wrong(
    "concatenated_score",
    says="In your score content meets position, as where positions are filled up with zeros and added; side by side "
    "means that each keeps columns of its own.",
)
def position_filled_up_and_added(x_i, p_i, x_j, p_j):
    width = max(len(x_i), len(p_i))

    def token(x, p):
        return np.pad(x, (0, width - len(x))) + np.pad(p, (0, width - len(p)))

    return token(x_i, p_i) @ token(x_j, p_j)


@wrong(
    "concatenated_score",
    says="Your key has its position first, and the score is divided by a root. Both tokens have the content first, "
    "and nothing is scaled.",
)
def key_turned_and_scaled(x_i, p_i, x_j, p_j):
    left = np.hstack((x_i, p_i))
    right = np.hstack((p_j, x_j))
    return (left * right).sum() / len(left) ** 0.5


@wrong(
    "relative_bias",
    says="You replace each diagonal by its mean; the bias is asked for as it is, the product of each pair of "
    "positions.",
)
def diagonals_averaged(P_q, P_k):
    raw = P_q @ P_k.T
    i, j = np.indices(raw.shape)
    out = np.empty_like(raw)
    for offset in range(-raw.shape[0] + 1, raw.shape[1]):
        out[j - i == offset] = raw[j - i == offset].mean()
    return out


@wrong("relative_bias", says="You bring the positions to length 1 first; their lengths count in the dot product.")
def positions_brought_to_length_one(P_q, P_k):
    def unit(P):
        return P / np.sqrt((P**2).sum(axis=1, keepdims=True))

    return unit(P_q) @ unit(P_k).T


@wrong(
    "relative_bias",
    says="Your rows belong to the keys, and the products are scaled. Rows are queries, and nothing is scaled here.",
)
def turned_and_scaled(P_q, P_k):
    return np.inner(P_k, P_q) / P_k.shape[1] ** 0.5


@wrong(
    "shift_matrix",
    says="You repeat a single step delta times, and do nothing for a delta below 1. Steps back, and parts of a step, "
    "are rotations as well.",
)
def no_steps_back(delta, d):
    step = np.eye(d)
    for i in range(0, d, 2):
        w = 10000.0 ** (-i / d)
        step[i, i] = step[i + 1, i + 1] = np.cos(w)
        step[i, i + 1], step[i + 1, i] = np.sin(w), -np.sin(w)
    M = np.eye(d)
    for _ in range(delta):
        M = step @ M
    return M


@wrong(
    "shift_matrix",
    says="Your matrix is the first step of a series, the identity plus delta times the derivative; the rotation "
    "itself is exact for every delta.",
)
def first_order(delta, d):
    M = np.eye(d)
    for i in range(d // 2):
        w = 1 / 10000 ** (2 * i / d)
        M[2 * i, 2 * i + 1] += delta * w
        M[2 * i + 1, 2 * i] -= delta * w
    return M


@wrong(
    "shift_matrix",
    says="You fit the matrix to two positions; there are more entries than that, and other positions come out wrong. "
    "The angle sums give it exactly.",
)
def fitted_to_two_positions(delta, d):
    rate = np.repeat(10000.0 ** (-np.arange(0, d, 2) / d), 2)

    def pe(t):
        return np.where(np.arange(d) % 2 == 0, np.sin(t * rate), np.cos(t * rate))

    before = np.stack([pe(0), pe(1)], axis=1)
    after = np.stack([pe(delta), pe(1 + delta)], axis=1)
    return after @ np.linalg.pinv(before)


@wrong(
    "shift_matrix",
    says="Your blocks turn in the other direction, and each column has an angle of its own; the two columns of a "
    "pair share one.",
)
def turned_round_every_column_its_angle(delta, d):
    M = np.zeros((d, d))
    for j in range(0, d, 2):
        a = delta / 10000 ** (j / d)
        b = delta / 10000 ** ((j + 1) / d)
        M[j, j], M[j, j + 1] = np.cos(a), -np.sin(a)
        M[j + 1, j], M[j + 1, j + 1] = np.sin(b), np.cos(b)
    return M


@wrong("rotary", says="You make the positions whole numbers; they may be any numbers.")
def positions_made_whole(X, positions):
    t = np.rint(positions).astype(int)
    d = X.shape[-1]
    out = np.zeros(X.shape, dtype=np.float64)
    for row, p in enumerate(t):
        for i in range(d // 2):
            a = p / 10000 ** (2 * i / d)
            R = np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
            out[..., row, 2 * i : 2 * i + 2] = X[..., row, 2 * i : 2 * i + 2] @ R.T
    return out


@wrong(
    "rotary",
    says="You flatten the batch and repeat each position in a row; the positions of a sequence come one after the "
    "other, and again for the next sequence.",
)
def repeated_for_tiled(X, positions):
    *_batch, T, d = X.shape
    flat = X.reshape(-1, d)
    t = np.repeat(positions, len(flat) // T)  # one position for each row of the flattened batch
    a = t[:, None] / 10000 ** (np.arange(0, d, 2) / d)
    x, y = flat[:, 0::2], flat[:, 1::2]
    out = np.empty(flat.shape)
    out[:, 0::2] = x * np.cos(a) - y * np.sin(a)
    out[:, 1::2] = x * np.sin(a) + y * np.cos(a)
    return out.reshape(X.shape)


@wrong("rotary", says="You compute the angles in single precision, which is not enough for far positions.")
def angles_in_single_precision(X, positions):
    d = X.shape[-1]
    inv_freq = (10000.0 ** (-np.arange(0, d, 2) / d)).astype(np.float32)
    freqs = np.outer(np.asarray(positions, dtype=np.float32), inv_freq)
    cos, sin = np.repeat(np.cos(freqs), 2, axis=-1), np.repeat(np.sin(freqs), 2, axis=-1)
    swapped = np.stack([-X[..., 1::2], X[..., 0::2]], axis=-1).reshape(X.shape)
    return X * cos + swapped * sin


@wrong(
    "rotary",
    says="Your pairs lie half the width apart, and they are turned backwards. Neighbouring columns are a pair.",
)
def halves_turned_backwards(X, positions):
    d = X.shape[-1]
    a = positions[:, None] / 10000 ** (2 * np.arange(d // 2) / d)
    left, right = np.split(X, 2, axis=-1)
    return np.concatenate([left * np.cos(a) + right * np.sin(a), right * np.cos(a) - left * np.sin(a)], axis=-1)


edited(
    "relative_bias",
    "bias_of_squared_distances",
    "P_q @ P_k.T",
    "((P_q[:, None, :] - P_k[None, :, :]) ** 2).sum(axis=-1)",
    says="Your table holds squared distances of the rows; dot products are asked for.",
)
edited(
    "concatenated_score",
    "concatenated_sums_multiplied",
    "p_i @ p_j",
    "p_i.sum() * p_j.sum()",
    says="You multiply the sums of the two positions; their dot product multiplies entry by entry and then sums.",
)
edited(
    "concatenated_score",
    "concatenated_entries_added",
    "x_i @ x_j + p_i @ p_j",
    "np.sum(x_i * x_j + p_i * p_j)",
    says="You add the products of contents and positions entry by entry before the sum; their widths may differ. Sum "
    "each part by itself.",
)


@wrong(
    "additive_score_terms",
    says="You multiply into one of the given vectors (*=), so that later terms are made of a vector that has changed; "
    "make a new array.",
)
def terms_multiplied_in_place(x_i, p_i, x_j, p_j):
    terms = []
    for left in (x_i, p_i):
        for right_one in (x_j, p_j):
            left *= right_one
            terms.append(left.sum())
    return terms


@wrong("additive_score_terms", says="You round the terms to whole numbers; they are asked for as they are.")
def terms_rounded(x_i, p_i, x_j, p_j):
    return [round(float(a @ b)) for a in (x_i, p_i) for b in (x_j, p_j)]


@wrong(
    "shift_matrix",
    says="You fit the matrix to a few positions; in a wide table these do not settle it, and others are moved to wrong "
    "places. It can be written down.",
)
def shift_fitted_to_few_positions(delta, d):
    def rows(t):
        angles = t[:, None] / 10000 ** (2 * (np.arange(d) // 2) / d)
        return np.where(np.arange(d) % 2 == 0, np.sin(angles), np.cos(angles))

    t = np.arange(8)
    return np.linalg.lstsq(rows(t), rows(t + delta), rcond=None)[0].T
