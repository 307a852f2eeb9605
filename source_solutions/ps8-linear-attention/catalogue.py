# ruff: noqa: F821
"""Right variants and misconceptions of ps8-linear-attention.

Feature maps are recognised by the products of their features. Each misconception carries the sentence that its author
reads in the feedback.
"""

from autograder.catalogue import edited, right, survivor, wrong

# ---------------------------------------------------------------------------------- exercise 1: feature_map

edited(
    "feature_map",
    "features_without_factors",
    " / math.sqrt(weight)",
    "",
    says="Your products of several entries carry no factor; (q . k)^n is divided by n!, and both rows bring a root.",
)
edited(
    "feature_map",
    "features_with_the_whole_factor",
    "math.sqrt(weight)",
    "weight",
    says="The factor enters twice, once from each of the two rows, so each row should carry its square root.",
)
edited(
    "feature_map",
    "features_without_constant",
    "range(order + 1)",
    "range(1, order + 1)",
    says="The feature 1, which gives the first term of the series, is missing.",
)
edited(
    "feature_map",
    "features_without_linear_terms",
    "for degree in range(order + 1):",
    "for degree in [0, *range(2, order + 1)]:",
    says="The entries of x themselves are missing; they give the term q . k.",
)
edited(
    "feature_map",
    "features_one_order_short",
    "range(order + 1)",
    "range(order)",
    says="Your highest power is missing: with order 2 the squares belong to it.",
)
edited(
    "feature_map",
    "features_one_order_too_many",
    "range(order + 1)",
    "range(order + 2)",
    says="Your series has one term more than asked for: the last power is the order.",
)
edited(
    "feature_map",
    "features_always_of_order_two",
    "range(order + 1)",
    "range(3)",
    says="Your features are those of order 2, whatever the order is.",
)
edited(
    "feature_map",
    "features_root_of_factorial_of_degree",
    "math.sqrt(weight)",
    "math.sqrt(math.factorial(degree))",
    says="Each mixed product such as x1 x2 stands there once with the factor of a single one; it occurs several times "
    "in (q . k)^n, as x1 x2 and x2 x1, which has to be made up for.",
)
edited(
    "feature_map",
    "features_scaled_by_width",
    "np.prod(X[..., list(factors)], axis=-1)",
    "np.prod((X / X.shape[-1] ** 0.25)[..., list(factors)], axis=-1)",
    says="You divide the products by the root of D; nothing is scaled in this set.",
)


@wrong(
    "feature_map",
    says="You take powers of the single entries; those of different entries, such as x1 x2, belong to it, too.",
)
def features_of_single_entries(X, order=2):
    parts = [np.ones((*X.shape[:-1], 1))]
    for n in range(1, order + 1):
        parts.append(X**n / math.sqrt(math.factorial(n)))
    return np.concatenate(parts, axis=-1)


@wrong(
    "feature_map",
    says="Your products give (1 + q . k) to the power of the order; the series has other factors: 1 / n!.",
)
def features_of_a_binomial(X, order=2):
    grown = np.concatenate([np.ones((*X.shape[:-1], 1)), X], axis=-1)
    result = grown
    for _ in range(order - 1):
        result = (result[..., :, None] * grown[..., None, :]).reshape(*X.shape[:-1], -1)
    return result


@wrong(
    "feature_map",
    says="You keep the highest power only; the series is the sum of all powers from 0 on.",
)
def features_of_highest_power(X, order=2):
    result = X
    for _ in range(order - 1):
        result = (result[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
    return result / math.sqrt(math.factorial(order))


@wrong(
    "feature_map",
    says="Your function takes exactly two axes; any number of batch axes may stand in front. Count axes from the end.",
)
def features_without_batches(X, order=2):
    L, _ = X.shape
    parts, power = [np.ones((L, 1))], np.ones((L, 1))
    for n in range(1, order + 1):
        power = np.einsum("la,lb->lab", power, X).reshape(L, -1)
        parts.append(power / math.sqrt(math.factorial(n)))
    return np.concatenate(parts, axis=1)


@wrong(
    "feature_map",
    says="The factor 1/n! enters twice, once from each of the two rows, so each row should carry its square root.",
)
def features_with_factor_on_both_sides(X, order=2):
    X = np.asarray(X)
    parts = [np.ones((*X.shape[:-1], 1))]
    block = parts[0]
    for n in range(1, order + 1):
        block = (block[..., :, None] * X[..., None, :]).reshape((*X.shape[:-1], -1))
        parts.append(block / math.factorial(n))
    return np.concatenate(parts, axis=-1)


@wrong(
    "feature_map",
    says="You let every mixed product of n entries occur n times; how often it occurs depends on which entries are"
    " equal, as x1 x2 x3 occurs six times in (q . k)^3 and x1 x1 x2 three times.",
)
def features_of_n_occurrences(X, order=2):
    D = X.shape[-1]
    columns = [np.ones(X.shape[:-1])]
    for n in range(1, order + 1):
        for combo in itertools.combinations_with_replacement(range(D), n):
            times = n if len(set(combo)) > 1 else 1
            product = np.prod(X[..., list(combo)], axis=-1)
            columns.append(np.sqrt(times / math.factorial(n)) * product)
    return np.stack(columns, axis=-1)


@wrong("feature_map", says="Your features end with the cubes, whatever the order is.")
def features_up_to_the_cube(X, order=2):
    one = np.ones((*X.shape[:-1], 1))
    parts = [one, X]
    if order >= 2:
        square = (X[..., :, None] * X[..., None, :]).reshape((*X.shape[:-1], -1))
        parts.append(square / np.sqrt(2))
    if order >= 3:
        cube = (square[..., :, None] * X[..., None, :]).reshape((*X.shape[:-1], -1))
        parts.append(cube / np.sqrt(6))
    return np.concatenate(parts, axis=-1)


@wrong(
    "feature_map",
    says="Your function takes the first axis for the tokens and melts the others; any number of batch axes may "
    "stand in front. Count axes from the end.",
)
def features_of_rows_only(X, order=2):
    result = []
    for x in X:
        x = np.ravel(x)
        phi = [np.ones(1)]
        power = np.ones(1)
        for n in range(1, order + 1):
            power = np.outer(power, x).ravel()
            phi.append(power / math.sqrt(math.factorial(n)))
        result.append(np.concatenate(phi))
    return np.array(result)


@wrong(
    "feature_map",
    says="Your features are elu(x) + 1, which other linear attention uses; here their products are to be the first"
    " terms of the exponential series.",
)
def features_of_elu(X, order=2):
    X = np.asarray(X)
    return np.where(X > 0, X + 1, np.exp(np.minimum(X, 0)))


@wrong(
    "feature_map",
    says="Two things: you bring the rows to length 1 first, where they are used as they are; and the factor enters"
    " from both rows, so each should carry its square root.",
)
def features_of_unit_rows_with_factor_on_both_sides(X, order=2):
    X = X / np.linalg.norm(X, axis=-1, keepdims=True)
    block = np.ones((*X.shape[:-1], 1))
    blocks = [block]
    for n in range(1, order + 1):
        block = np.einsum("...i,...j->...ij", block, X).reshape(*X.shape[:-1], -1) / n
        blocks.append(block)
    return np.concatenate(blocks, axis=-1)


@right("feature_map")
def features_of_all_tensors(X, order=2):
    parts, power = [np.ones((*X.shape[:-1], 1), dtype=X.dtype)], np.ones((*X.shape[:-1], 1), dtype=X.dtype)
    for n in range(1, order + 1):
        power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1) / np.sqrt(n)
        parts.append(power)
    return np.concatenate(parts, axis=-1)


@right("feature_map")
def features_with_signs_and_idle_columns(X, order=2):
    from itertools import product
    from math import factorial

    columns = [np.zeros(X.shape[:-1])]
    for powers in product(range(order + 1), repeat=X.shape[-1]):
        if sum(powers) <= order:
            value = np.full(X.shape[:-1], -1.0)
            for i, a in enumerate(powers):
                value = value * X[..., i] ** a / factorial(a) ** 0.5
            columns.append(value)
    return np.stack(columns[::-1], axis=-1)


@right("feature_map")
def features_turned(X, order=2):
    def features(rows, n):
        if n == 0:
            return np.ones((*rows.shape[:-1], 1))
        power = rows
        for _ in range(n - 1):
            power = np.einsum("...a,...b->...ab", power, rows).reshape(*rows.shape[:-1], -1)
        return np.concatenate([features(rows, n - 1), power / math.sqrt(math.factorial(n))], axis=-1)

    plain = features(np.asarray(X, dtype=np.float64), order)
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(plain.shape[-1],) * 2))[0]
    return plain @ turn


# ---------------------------------------------------------------------------- exercise 2: feature_dimension

edited(
    "feature_dimension",
    "dimension_of_highest_power",
    "math.comb(D + order, order)",
    "math.comb(D + order - 1, order)",
    says="You count the products of exactly `order` entries; shorter ones and the 1 belong to it, too.",
)
edited(
    "feature_dimension",
    "dimension_without_constant",
    "math.comb(D + order, order)",
    "math.comb(D + order, order) - 1",
    says="The constant feature 1 is missing in your count.",
)
edited(
    "feature_dimension",
    "dimension_with_repetitions",
    "math.comb(D + order, order)",
    "sum(D**n for n in range(order + 1))",
    says="You count x1 x2 and x2 x1 as two; once is enough.",
)
edited(
    "feature_dimension",
    "dimension_without_squares",
    "math.comb(D + order, order)",
    "sum(math.comb(D, n) for n in range(order + 1))",
    says="You count products of different entries only; an entry may occur several times, as in x1 x1.",
)
edited(
    "feature_dimension",
    "dimension_single_powers",
    "math.comb(D + order, order)",
    "1 + D * order",
    says="You count the powers of single entries; products of different entries, such as x1 x2, are missing.",
)
edited(
    "feature_dimension",
    "dimension_of_order_two",
    "math.comb(D + order, order)",
    "1 + D + D * (D + 1) // 2",
    says="Your formula holds for order 2 only.",
)
edited(
    "feature_dimension",
    "dimension_highest_with_repetitions",
    "math.comb(D + order, order)",
    "D**order",
    says="You count ordered products of exactly `order` entries; each counts once, and shorter ones belong to it.",
)


@wrong("feature_dimension", says="Your formula ends with the cubes, whatever the order is.")
def dimension_up_to_the_cube(D, order):
    M = 1 + D
    if order >= 2:
        M += D * (D + 1) // 2
    if order >= 3:
        M += D * (D + 1) * (D + 2) // 6
    return M


@wrong(
    "feature_dimension",
    says="You count products of one or two different entries; from order 3 on there are products of three and more.",
)
def dimension_of_two_entries_at_most(D, order):
    total = 1
    for n in range(1, order + 1):
        pure = D
        mixed = (n - 1) * D * (D - 1) // 2
        total += pure + mixed
    return total


@wrong(
    "feature_dimension",
    says="You let every entry have each exponent from 0 to the order; together they may not be more than the order.",
)
def dimension_of_single_exponents(D, order):
    return (order + 1) ** D


@wrong(
    "feature_dimension",
    says="You count the products of exactly `order` entries and the 1; those in between belong to it, too, for "
    "they are other products.",
)
def dimension_of_highest_power_and_one(D, order):
    if order == 1:
        return D + 1
    return math.comb(D + order - 1, order) + 1


@wrong(
    "feature_dimension",
    says="You divide the number of ordered products by n!; products in which an entry occurs twice have fewer "
    "orders, so that is too few. And the constant 1 is missing.",
)
def dimension_ordered_divided(D, order):
    return sum(D**n // math.factorial(n) for n in range(1, order + 1))


@right("feature_dimension")
def dimension_by_degrees(D, order):
    return sum(math.comb(n + D - 1, n) for n in range(order + 1))


@right("feature_dimension")
def dimension_by_recursion(D, order):
    if D == 0 or order == 0:
        return 1
    row = [1.0] * (order + 1)
    for _ in range(D):
        for n in range(1, order + 1):
            row[n] += row[n - 1]
    return row[order]


# ----------------------------------------------------------------------------- exercise 3: linear_attention

edited(
    "linear_attention",
    "attention_not_normalised",
    "(phi_q @ summary) / (phi_q @ total)",
    "phi_q @ summary",
    says="Your weights do not sum to 1: the output is divided by the sum of the query's weights over all keys.",
)
edited(
    "linear_attention",
    "attention_divided_by_length",
    "(phi_q @ summary) / (phi_q @ total)",
    "(phi_q @ summary) / Q.shape[-2]",
    says="You divide by the number of keys; each query has a sum of weights of its own.",
)
edited(
    "linear_attention",
    "attention_queries_and_keys_swapped",
    "feature_map(Q, order), feature_map(K, order)",
    "feature_map(K, order), feature_map(Q, order)",
    says="Queries and keys have changed places: the summary is made of keys and values.",
)
edited(
    "linear_attention",
    "attention_normalised_over_queries",
    "phi_k.sum(axis=-2)",
    "phi_q.sum(axis=-2)",
    says="Below the fraction you sum the features of the queries; the sum runs over the keys.",
)
edited(
    "linear_attention",
    "attention_order_ignored",
    "feature_map(Q, order), feature_map(K, order)",
    "feature_map(Q), feature_map(K)",
    says="Your result does not depend on the order; hand it on to the feature map.",
)
edited(
    "linear_attention",
    "attention_scaled",
    "feature_map(Q, order)",
    "feature_map(Q / np.sqrt(Q.shape[-1]), order)",
    says="You divide the scores by the root of D; nothing is scaled in this set.",
)
edited(
    "linear_attention",
    "attention_values_are_keys",
    "np.swapaxes(phi_k, -1, -2) @ V",
    "np.swapaxes(phi_k, -1, -2) @ K",
    says="You average the keys; what is averaged are the values.",
)


@wrong(
    "linear_attention",
    says="Your result is right, but on the way there stands the L x L table that linear attention is made to avoid, "
    "above the fraction or below it. What can be summed over the keys before any query comes?",
)
def attention_with_the_table(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)  # (..., L, M)
    weights = phi_q @ np.swapaxes(phi_k, -1, -2)
    return (weights @ V) / weights.sum(axis=-1, keepdims=True)


@wrong("linear_attention", says="Each query sees the keys up to its own place only; here it sees them all.")
def attention_causal(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)  # (..., L, M)
    sums = np.cumsum(phi_k[..., None] * V[..., None, :], axis=-3)
    return np.einsum("...m,...md->...d", phi_q, sums) / np.sum(
        phi_q * np.cumsum(phi_k, axis=-2), axis=-1, keepdims=True
    )


@wrong(
    "linear_attention",
    says="You compute softmax attention itself; asked is its approximation by the first terms of the series.",
)
def attention_by_softmax(Q, K, V, order=2):
    scores = Q @ np.swapaxes(K, -1, -2)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers @ V / powers.sum(axis=-1, keepdims=True)


@wrong(
    "linear_attention",
    says="Your function takes exactly two axes; `.T` reverses all of them. Count axes from the end.",
)
def attention_without_batches(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)
    return phi_q @ (phi_k.T @ V) / (phi_q @ phi_k.sum(axis=0))[:, None]


@wrong(
    "linear_attention",
    says="Your result is right, but you compute the L x L table of scores first; with features none is needed.",
)
def attention_by_the_series(Q, K, V, order=2):
    t = Q @ np.swapaxes(K, -1, -2)
    weights, term = np.ones_like(t), np.ones_like(t)
    for n in range(1, order + 1):
        term = term * t / n
        weights = weights + term
    return weights @ V / weights.sum(axis=-1, keepdims=True)


@wrong(
    "linear_attention",
    says="You sum the key features over axis 0. That is the tokens' axis only without a batch; count from the end.",
)
def attention_keys_summed_over_axis_zero(Q, K, V, order=2):
    phi_q = feature_map(Q, order)
    phi_k = feature_map(K, order)
    kv = np.swapaxes(phi_k, -1, -2) @ V
    z = phi_k.sum(axis=0)
    below = (phi_q * z).sum(axis=-1, keepdims=True)
    return phi_q @ kv / below


@wrong(
    "linear_attention",
    says="You put all sequences of the batch in one line, so that queries see keys of other sequences; each "
    "sequence has keys of its own.",
)
def attention_over_the_whole_batch(Q, K, V, order=2):
    shape, D = (V.shape, V.shape[-1])
    phi_q = feature_map(np.reshape(Q, (-1, D)), order)
    phi_k = feature_map(np.reshape(K, (-1, D)), order)
    memory = phi_k.T @ np.reshape(V, (-1, D))
    total = phi_q @ phi_k.sum(axis=0)
    return (phi_q @ memory / total[:, None]).reshape(shape)


@wrong(
    "linear_attention",
    says="You hold the sum of the weights at 1 or more; it may be smaller, and then the weights no longer sum to 1.",
)
def attention_sum_held_above_one(Q, K, V, order=2):
    phi_q, phi_k = (feature_map(Q, order), feature_map(K, order))
    numerator = phi_q @ (np.swapaxes(phi_k, -1, -2) @ V)
    denominator = phi_q @ phi_k.sum(axis=-2)[..., None]
    return numerator / np.maximum(denominator, 1.0)


@wrong(
    "linear_attention",
    says="You subtract the mean key; softmax does not notice that, but the first terms of the series do.",
)
def attention_of_centred_keys(Q, K, V, order=2):
    K = K - K.mean(axis=-2, keepdims=True)
    phi_q = feature_map(Q, order)
    phi_k = feature_map(K, order)
    above = phi_q @ (np.swapaxes(phi_k, -1, -2) @ V)
    below = phi_q @ phi_k.sum(axis=-2, keepdims=True).swapaxes(-1, -2)
    return above / below


@wrong(
    "linear_attention",
    says="You divide features by their sums; it is the weights, products of features, that are divided by their "
    "sum over the keys.",
)
def attention_of_normalised_features(Q, K, V, order=2):
    phi_q = feature_map(Q, order)
    phi_k = feature_map(K, order)
    phi_q = phi_q / phi_q.sum(axis=-1, keepdims=True)
    phi_k = phi_k / phi_k.sum(axis=-2, keepdims=True)
    return phi_q @ (np.swapaxes(phi_k, -1, -2) @ V)


@wrong(
    "linear_attention",
    says="Two things: you do not hand the order on to the feature map; and you sum the key features over axis 0, "
    "which is the tokens' axis only without a batch.",
)
def attention_order_ignored_and_axis_zero(Q, K, V, order=2):
    fq, fk = (feature_map(Q), feature_map(K))
    kv = np.swapaxes(fk, -1, -2) @ V
    z = np.sum(fk, axis=0)
    return fq @ kv / np.sum(fq * z, axis=-1, keepdims=True)


@right("linear_attention")
def attention_with_a_column_of_ones(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)
    grown = np.concatenate([V, np.ones((*V.shape[:-1], 1), dtype=V.dtype)], axis=-1)
    result = phi_q @ np.einsum("...lm,...ld->...md", phi_k, grown)
    return result[..., :-1] / result[..., -1:]


@right("linear_attention")
def attention_by_moments(Q, K, V, order=2):
    D = Q.shape[-1]
    Q, K, V = (np.asarray(array, dtype=np.float64) for array in (Q, K, V))
    above = np.zeros(V.shape)
    below = np.zeros(V.shape[:-1])
    q_power, k_power = np.ones((*Q.shape[:-1], 1)), np.ones((*K.shape[:-1], 1))
    for n in range(order + 1):
        if n:
            q_power = (q_power[..., :, None] * Q[..., None, :]).reshape(*Q.shape[:-1], D**n)
            k_power = (k_power[..., :, None] * K[..., None, :]).reshape(*K.shape[:-1], D**n)
        above = above + q_power @ (np.swapaxes(k_power, -1, -2) @ V) / math.factorial(n)
        below = below + np.einsum("...lm,...m->...l", q_power, k_power.sum(axis=-2)) / math.factorial(n)
    return above / below[..., None]


@right("linear_attention")
def attention_token_by_token(Q, K, V, order=2):
    phi_q, phi_k = np.asarray(feature_map(Q, order)), np.asarray(feature_map(K, order))
    summary = np.zeros((*phi_k.shape[:-2], phi_k.shape[-1], V.shape[-1]))
    total = np.zeros((*phi_k.shape[:-2], phi_k.shape[-1]))
    for j in range(K.shape[-2]):
        summary += phi_k[..., j, :, None] * V[..., j, None, :]
        total += phi_k[..., j, :]
    output = np.empty(V.shape)
    for i in range(Q.shape[-2]):
        above = np.einsum("...m,...md->...d", phi_q[..., i, :], summary)
        output[..., i, :] = above / np.sum(phi_q[..., i, :] * total, axis=-1)[..., None]
    return output


@right("linear_attention")
def attention_normalised_last(Q, K, V, order=2):
    phi_q = np.array(feature_map(Q, order))
    phi_k = np.array(feature_map(K, order))
    phi_q /= phi_q @ phi_k.sum(-2, keepdims=True).swapaxes(-1, -2)
    return np.matmul(phi_q, np.matmul(phi_k.swapaxes(-1, -2), V))


# ------------------------------------------------------------------------------ exercise 4: multiplications

edited(
    "multiplications",
    "count_without_normaliser",
    "2 * L * M * D + L * M",
    "2 * L * M * D",
    says="The product of the query features with the sum of the key features is missing in your count.",
)
edited(
    "multiplications",
    "count_one_product",
    "2 * L * M * D + L * M",
    "L * M * D + L * M",
    says="You count one of the two matrix products.",
)
edited(
    "multiplications",
    "count_quadratic",
    "2 * L * M * D + L * M",
    "2 * L * L * D",
    says="You count softmax attention; linear attention has no L x L table.",
)
edited(
    "multiplications",
    "count_quadratic_in_features",
    "2 * L * M * D + L * M",
    "2 * L * L * M + L * M",
    says="Your count is that of multiplying the features with each other first; key features and values come first.",
)
edited(
    "multiplications",
    "count_with_divisions",
    "2 * L * M * D + L * M",
    "2 * L * M * D + L * M + L * D",
    says="Your count is larger by L · D, as many as there are divisions; only multiplications are asked for.",
)
edited(
    "multiplications",
    "count_with_repeated_features",
    "feature_dimension(D, order)",
    "sum(D**n for n in range(order + 1))",
    says="Your number of features counts x1 x2 and x2 x1 as two; take the smallest number, from exercise 2.",
)
edited(
    "multiplications",
    "count_of_order_two",
    "feature_dimension(D, order)",
    "feature_dimension(D, 2)",
    says="Your count is that of order 2, whatever the order is.",
)
edited(
    "multiplications",
    "count_sum_for_one_query",
    "2 * L * M * D + L * M",
    "2 * L * M * D + M",
    says="The product with the sum of the key features is taken once for each query, not once in all.",
)


edited(
    "multiplications",
    "count_of_order_one",
    "feature_dimension(D, order)",
    "D + 1",
    says="Your number of features is that of order 1, whatever the order is.",
)
edited(
    "multiplications",
    "count_doubled",
    "2 * L * M * D + L * M",
    "2 * (2 * L * M * D + L * M)",
    says="Your count is twice the number of multiplications, as if additions were counted, too.",
)
edited(
    "multiplications",
    "count_second_product_of_features",
    "2 * L * M * D + L * M",
    "L * M * D + L * M * M + L * M",
    says="You count L · M · M for the product with the query features; what comes out of the first product has D "
    "columns, so it takes L · M · D.",
)
edited(
    "multiplications",
    "count_with_additions",
    "2 * L * M * D + L * M",
    "M * D * (2 * L - 1) + L * (D + 1) * (2 * M - 1)",
    says="You count the additions inside the products as well; only multiplications are asked for.",
)


@wrong(
    "multiplications",
    says="Your number of features counts the powers of single entries; products of different entries, such as x1 "
    "x2, are missing.",
)
def count_of_single_powers(L, D, order):
    M = 1 + order * D
    key_value = M * L * D
    query = L * M * D
    below = L * M
    return key_value + query + below


@wrong(
    "multiplications",
    says="Your number of features counts products of different entries only; an entry may occur several times, as "
    "in x1 x1.",
)
def count_of_different_entries(L, D, order):
    M = sum(math.comb(D, n) for n in range(order + 1))
    return L * M * (2 * D + 1)


@wrong(
    "multiplications",
    says="Two things: your number of features counts the powers of single entries only; and your count is larger by as "
    "many as there are divisions.",
)
def count_of_single_powers_with_divisions(L, D, order):
    M = 1 + order * D
    return 2 * L * M * D + L * M + L * D


@right("multiplications")
def count_step_by_step(L, D, order):
    M = math.factorial(D + order) // (math.factorial(D) * math.factorial(order))
    summary = M * D * L
    averages = L * D * M
    return summary + averages + sum(M for _ in range(L))


survivor(
    "multiplications",
    "feature_dimension(D, order)",
    "feature_dimension(order, D)",
    "(D + order)! / (D! order!) is the same when the two change places",
)

# ------------------------------------------------------------------------------- exercises 5 and 6: choices


@wrong(
    "answer_cheaper_from",
    says="At your lengths linear attention is not cheaper yet: look for the first whole number above the solution of "
    "the equation.",
)
def cheaper_one_too_small(student_id):
    return [47, 2161, 525]


@wrong(
    "answer_cheaper_from",
    says="You compare L with M alone; the sum below the fraction costs L times M more.",
)
def cheaper_without_normaliser(student_id):
    return [46, 2146, 496]


@wrong(
    "answer_cheaper_from",
    says="You used the number of features with repetitions; the counts are for the smallest number, from exercise 2.",
)
def cheaper_with_repeated_features(student_id):
    return [78, 4194, 4974]


@wrong("answer_cheaper_from", says="You give the number of features; it takes a few tokens more.")
def cheaper_from_M(student_id):
    return [45, 2145, 495]


edited(
    "answer_cheaper_from",
    "cheaper_than_the_scores_alone",
    "[48, 2162, 526]",
    "[96, 4324, 1052]",
    says="You compare with L^2 D multiplications, those of the scores alone; softmax attention also averages the "
    "values, which takes as many once more.",
)
edited(
    "answer_cheaper_from",
    "cheaper_from_powers_of_two",
    "[48, 2162, 526]",
    "[64, 4096, 1024]",
    says="You name powers of two; the first whole number from which it is cheaper lies before them.",
)
edited(
    "answer_cheaper_from",
    "cheaper_with_the_highest_power_only",
    "[48, 2162, 526]",
    "[39, 2097, 351]",
    says="Your number of features counts the products of exactly `order` entries; shorter ones and the 1 belong to it.",
)


@right("answer_cheaper_from")
def cheaper_by_search(student_id):
    def first(D, order):
        L = 1
        while multiplications(L, D, order) >= 2 * L * L * D:
            L += 1
        return L

    return np.array([first(8, 2), first(64, 2), first(8, 4)])


@wrong(
    "answer_orders",
    says="You name the even orders. Compute 1 + t + t^2 / 2 for some negative t: it stays above 0.",
)
def orders_even(student_id):
    return [2, 4, 6]


@wrong(
    "answer_orders",
    says="Order 1 is among them, but not alone: look at the sign of the highest power far out on the negative side.",
)
def orders_one_only(student_id):
    return [1]


@wrong(
    "answer_orders",
    says="You name all orders; with an even highest power the sum of the first terms stays positive for every t.",
)
def orders_all(student_id):
    return [1, 2, 3, 4, 5, 6]


@wrong("answer_orders", says="Order 1 is missing: 1 + t is negative for every t below -1.")
def orders_from_three(student_id):
    return [3, 5]


@wrong(
    "answer_orders",
    says="Order 5 is missing: however close it is to the exponential near 0, far out on the negative side its "
    "highest power wins.",
)
def orders_below_five(student_id):
    answer_orders = [1, 3]
    return answer_orders


@wrong(
    "answer_orders",
    says="You name the low orders; it is not how high the order is that counts, but the sign of its highest power "
    "far out on the negative side.",
)
def orders_low(student_id):
    answer_orders = [1, 2, 3]
    return answer_orders


@wrong(
    "answer_orders",
    says="You name no order; for t far on the negative side a term of odd power is larger than all others, also "
    "than the 1.",
)
def orders_none(student_id):
    answer_orders = []
    return answer_orders


@wrong(
    "answer_orders",
    says="You name even orders. With an even highest power the sum of the first terms stays positive for every t.",
)
def orders_even_above_two(student_id):
    answer_orders = [4, 6]
    return answer_orders


@right("answer_orders")
def orders_as_a_set(student_id):
    return {5.0, 1.0, 3.0}


# ------------------------------------------------------------------------------- exercise 8: attention_step

edited(
    "attention_step",
    "step_not_normalised",
    " / (phi_q * z).sum(axis=-1)",
    "",
    says="Your weights do not sum to 1: the output is divided by the sum of the query's weights over the keys so far.",
)
edited(
    "attention_step",
    "step_values_forgotten",
    "S = S + ",
    "S = 0 * S + ",
    says="Your state keeps the value of the latest token only; add each token's part to what was there.",
)
edited(
    "attention_step",
    "step_sum_of_keys_forgotten",
    "z = z + phi_k",
    "z = phi_k",
    says="What you divide by is the weight of the latest key alone; it is a running sum, too.",
)
edited(
    "attention_step",
    "step_everything_forgotten",
    "(0.0, 0.0) if state is None else state",
    "(0.0, 0.0)",
    says="Each step begins with an empty state in your function, so every token sees itself alone.",
)
edited(
    "attention_step",
    "step_order_ignored",
    "feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)",
    "feature_map(q[..., None, :]), feature_map(k[..., None, :])",
    says="Your result does not depend on the order; hand it on to the feature map.",
)
edited(
    "attention_step",
    "step_queries_and_keys_swapped",
    "feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)",
    "feature_map(k[..., None, :], order), feature_map(q[..., None, :], order)",
    says="Queries and keys have changed places: keys and values are written, queries ask.",
)
edited(
    "attention_step",
    "step_scaled",
    "feature_map(q[..., None, :], order),",
    "feature_map(q[..., None, :] / np.sqrt(q.shape[-1]), order),",
    says="You divide the scores by the root of D; nothing is scaled in this set.",
)
edited(
    "attention_step",
    "step_output_and_sums_side_by_side",
    "sum(axis=-1), (S, z)",
    "sum(axis=-1), S, z",
    says="You return three things; asked are two, the output and the state. Put what belongs to the state together.",
)


@wrong(
    "attention_step",
    says="Your output leaves the token itself out: it is answered before it is written. A token sees itself, too.",
)
def step_answers_before_it_writes(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)
    S, z = (0.0, 0.0) if state is None else state
    written = S + np.swapaxes(phi_k, -1, -2) * v[..., None, :]
    if state is None:
        return np.zeros_like(v), (written, z + phi_k)
    return (phi_q @ S)[..., 0, :] / (phi_q * z).sum(axis=-1), (written, z + phi_k)


@wrong(
    "attention_step",
    says="You divide by the number of tokens so far; each query has a sum of weights of its own.",
)
def step_divided_by_the_number(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)
    S, n = (0.0, 0) if state is None else state
    S = S + np.swapaxes(phi_k, -1, -2) * v[..., None, :]
    return (phi_q @ S)[..., 0, :] / (n + 1), (S, n + 1)


@wrong(
    "attention_step",
    says="Your state grows with every token, or is larger than it need be. What the queries need of all keys and "
    "values are two running sums.",
)
def step_with_a_cache(state, q, k, v, order=2):
    keys, values = (k[..., None, :], v[..., None, :]) if state is None else state
    if state is not None:
        keys, values = np.concatenate([keys, k[..., None, :]], -2), np.concatenate([values, v[..., None, :]], -2)
    weights = feature_map(q[..., None, :], order) @ np.swapaxes(feature_map(keys, order), -1, -2)
    return (weights @ values / weights.sum(axis=-1, keepdims=True))[..., 0, :], (keys, values)


@wrong(
    "attention_step",
    says="Your state is larger than it need be, and late outputs are not the averages over all tokens so far. A window "
    "of the last keys and values forgets older ones; two running sums keep something of each.",
)
def step_with_a_window(state, q, k, v, order=2):
    keys, values = (k[..., None, :], v[..., None, :]) if state is None else state
    if state is not None:
        keys, values = np.concatenate([keys, k[..., None, :]], -2), np.concatenate([values, v[..., None, :]], -2)
    keys, values = keys[..., -16:, :], values[..., -16:, :]
    weights = feature_map(q[..., None, :], order) @ np.swapaxes(feature_map(keys, order), -1, -2)
    return (weights @ values / weights.sum(axis=-1, keepdims=True))[..., 0, :], (keys, values)


@wrong(
    "attention_step",
    says="Your function keeps something of its own beside the state that it is given, so texts that are read in turns "
    "get mixed.",
)
def step_remembers_outside(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)
    kept = vars(step_remembers_outside)
    if state is None:
        kept.update(S=0.0, z=0.0)
    kept["S"] = kept["S"] + np.swapaxes(phi_k, -1, -2) * v[..., None, :]
    kept["z"] = kept["z"] + phi_k
    return (phi_q @ kept["S"])[..., 0, :] / (phi_q * kept["z"]).sum(axis=-1), 1


@wrong(
    "attention_step",
    says="You use the exponential itself; asked are the weights of exercise 3, the first terms of its series.",
)
def step_of_softmax(state, q, k, v, order=2):
    keys, values = ([], []) if state is None else state
    keys, values = [*keys, k], [*values, v]
    powers = np.exp([(q * one).sum(axis=-1) for one in keys])[..., None]
    return (powers * values).sum(axis=0) / powers.sum(axis=0), (keys, values)


@wrong(
    "attention_step",
    says="Your function takes one text only; any number of leading axes may stand in front. Count axes from the end.",
)
def step_without_batches(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[None], order)[0], feature_map(k[None], order)[0]
    S, z = (0.0, 0.0) if state is None else state
    S, z = S + np.outer(phi_k, v), z + phi_k
    return phi_q @ S / (phi_q @ z), (S, z)


@right("attention_step")
def step_with_a_column_of_ones(state, q, k, v, order=2):
    phi_q, phi_k = (np.asarray(feature_map(x[..., None, :], order))[..., 0, :] for x in (q, k))
    grown = np.concatenate([v, np.ones((*v.shape[:-1], 1))], axis=-1)
    written = np.einsum("...m,...d->...md", phi_k, grown)
    if state is not None:
        written += state
    answer = np.einsum("...m,...md->...d", phi_q, written)
    return answer[..., :-1] / answer[..., -1:], written


@right("attention_step")
def step_with_a_dict(state, q, k, v, order=2):
    rows = np.asarray(feature_map(np.stack([q, k], axis=-2), order))
    phi_q, phi_k = rows[..., 0, :], rows[..., 1, :]
    if state is None:
        state = {"sum": np.zeros(phi_k.shape), "table": np.zeros((*v.shape, phi_k.shape[-1])), "tokens": 0}
    state["sum"] = state["sum"] + phi_k
    state["table"] = state["table"] + v[..., :, None] * phi_k[..., None, :]
    state["tokens"] += 1
    above = (state["table"] * phi_q[..., None, :]).sum(axis=-1)
    return [above / (state["sum"] * phi_q).sum(axis=-1, keepdims=True), state]


@right("attention_step")
def step_by_moments(state, q, k, v, order=2):
    grown = np.concatenate([v, np.ones((*v.shape[:-1], 1))], axis=-1)[..., None, :]
    state = [0.0] * (order + 1) if state is None else list(state)
    answer, q_power, k_power = 0.0, np.ones((*q.shape[:-1], 1)), np.ones((*k.shape[:-1], 1))
    for n in range(order + 1):
        if n:
            q_power = (q_power[..., :, None] * q[..., None, :]).reshape(*q.shape[:-1], -1)
            k_power = (k_power[..., :, None] * k[..., None, :]).reshape(*k.shape[:-1], -1)
        state[n] = state[n] + k_power[..., None] * grown
        answer = answer + (q_power[..., None, :] @ state[n])[..., 0, :] / math.factorial(n)
    return answer[..., :-1] / answer[..., -1:], state


survivor(
    "attention_step",
    "(phi_q @ S)[..., 0, :]",
    "(phi_q @ S)[..., -1, :]",
    "there is one row, which is the first and the last",
)

# ------------------------------------------------------------------------------ exercise 9: delta_attention

edited(
    "delta_attention",
    "delta_by_sum",
    "missing = v - k @ S",
    "missing = v",
    says="You add every value to what is there; the delta rule takes off first what the state already answers for the "
    "key.",
)
edited(
    "delta_attention",
    "delta_step_size_ignored",
    "beta[..., t, None, None] * missing",
    "missing",
    says="Your steps go all the way, whatever beta is.",
)
edited(
    "delta_attention",
    "delta_asks_with_the_query",
    "v - k @ S",
    "v - q @ S",
    says="You take off what the state answers to the query; what counts for writing is its answer to the key.",
)
edited(
    "delta_attention",
    "delta_writes_at_the_query",
    "np.swapaxes(k, -1, -2)",
    "np.swapaxes(q, -1, -2)",
    says="You write at the place of the query; a value is written at its key.",
)
edited(
    "delta_attention",
    "delta_reads_with_the_key",
    "outputs.append(q @ S)",
    "outputs.append(k @ S)",
    says="Your outputs answer the key just written; it is the query that asks.",
)
edited(
    "delta_attention",
    "delta_sign_turned",
    "S = S + np.swapaxes",
    "S = S - np.swapaxes",
    says="You take the difference off instead of adding it, so each step leads away from the value.",
)
edited(
    "delta_attention",
    "delta_forgets_the_rest",
    "S = S + np.swapaxes",
    "S = np.swapaxes",
    says="Your state holds the latest token alone; what was written at other keys should stay.",
)
edited(
    "delta_attention",
    "delta_beta_for_values_only",
    "missing = v - k @ S",
    "missing = v - k @ S / np.maximum(beta[..., t, None, None], 1e-300)",
    says="Your step size stands before the value alone; it stands before the whole difference.",
)
edited(
    "delta_attention",
    "delta_keys_made_unit",
    "K[..., t, None, :], V",
    "K[..., t, None, :] / np.linalg.norm(K[..., t, None, :], axis=-1, keepdims=True), V",
    says="You divide the keys by their lengths; they are used as they are.",
)
edited(
    "delta_attention",
    "delta_steps_of_the_first_token",
    "beta[..., t, None, None]",
    "beta[..., :1, None]",
    says="All your steps have the size of the first one; each token brings its own.",
)


@wrong("delta_attention", says="You answer a query before its own token is written; writing comes first.")
def delta_reads_before_it_writes(Q, K, V, beta):
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    outputs = []
    for t in range(K.shape[-2]):
        q, k, v = Q[..., t, None, :], K[..., t, None, :], V[..., t, None, :]
        outputs.append(q @ S)
        S = S + np.swapaxes(k, -1, -2) @ (beta[..., t, None, None] * (v - k @ S))
    return np.concatenate(outputs, axis=-2)


@wrong(
    "delta_attention",
    says="All your queries ask the state at the end of the text; each asks it as it is after its own token.",
)
def delta_reads_at_the_end(Q, K, V, beta):
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    for t in range(K.shape[-2]):
        k, v = K[..., t, None, :], V[..., t, None, :]
        S = S + np.swapaxes(k, -1, -2) @ (beta[..., t, None, None] * (v - k @ S))
    return Q @ S


@wrong(
    "delta_attention",
    says="Your whole state is multiplied by 1 − beta at every token; only what it answers for this key should give "
    "way.",
)
def delta_by_decay(Q, K, V, beta):
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    outputs = []
    for t in range(K.shape[-2]):
        q, k, v = Q[..., t, None, :], K[..., t, None, :], V[..., t, None, :]
        step = beta[..., t, None, None]
        S = (1 - step) * S + step * np.swapaxes(k, -1, -2) @ v
        outputs.append(q @ S)
    return np.concatenate(outputs, axis=-2)


@wrong(
    "delta_attention",
    says="You divide the outputs by a sum of weights, as for an average. The delta rule's state answers with values, "
    "not with sums: nothing is divided.",
)
def delta_normalised(Q, K, V, beta):
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    z, outputs = 0.0, []
    for t in range(K.shape[-2]):
        q, k, v = Q[..., t, None, :], K[..., t, None, :], V[..., t, None, :]
        S = S + np.swapaxes(k, -1, -2) @ (beta[..., t, None, None] * (v - k @ S))
        z = z + k
        outputs.append(q @ S / (q * z).sum(axis=-1, keepdims=True))
    return np.concatenate(outputs, axis=-2)


@wrong(
    "delta_attention",
    says="Your function takes exactly two axes; any number of batch axes may stand in front. Count axes from the end.",
)
def delta_without_batches(Q, K, V, beta):
    S, outputs = np.zeros((K.shape[1], V.shape[1])), []
    for q, k, v, step in zip(Q, K, V, beta, strict=True):
        S = S + step * np.outer(k, v - k @ S)
        outputs.append(q @ S)
    return np.stack(outputs)


@right("delta_attention")
def delta_as_a_product(Q, K, V, beta):
    D = K.shape[-1]
    S = np.zeros((*K.shape[:-2], D, V.shape[-1]))
    outputs = np.empty(V.shape)
    for t in range(K.shape[-2]):
        k, step = K[..., t, :], np.asarray(beta)[..., t, None, None]
        keeps = np.eye(D) - step * k[..., :, None] * k[..., None, :]
        S = keeps @ S + step * k[..., :, None] * V[..., t, None, :]
        outputs[..., t, :] = np.einsum("...d,...de->...e", Q[..., t, :], S)
    return outputs


@right("delta_attention")
def delta_text_by_text(Q, K, V, beta):
    *leading, L, D = V.shape
    flat = [array.reshape(-1, L, D).astype(float) for array in (Q, K, V)]
    outputs = []
    for queries, keys, values, steps in zip(*flat, np.reshape(beta, (-1, L)), strict=True):
        table = np.zeros((D, D))
        for q, k, v, step in zip(queries, keys, values, steps, strict=True):
            table += step * np.outer(k, v - k @ table)
            outputs.append(q @ table)
    return np.reshape(outputs, (*leading, L, D)).tolist()


@right("delta_attention")
def delta_with_what_was_written(Q, K, V, beta):
    """Without a state: what each token writes, found one after the other, and then causal attention over it."""
    scores = np.tril(K @ np.swapaxes(K, -1, -2), -1)
    written = np.zeros(V.shape)
    for t in range(K.shape[-2]):
        answer = (scores[..., t, None, :] @ written)[..., 0, :]
        written[..., t, :] = beta[..., t, None] * (V[..., t, :] - answer)
    return np.tril(Q @ np.swapaxes(K, -1, -2)) @ written


survivor(
    "delta_attention",
    "K.shape[:-2]",
    "K.shape[:not 2]",
    "a state of zeros without leading axes gets them when the first token is written",
)


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong("feature_map", says="Your factor for the power n is one over the root of n (n - 1); it comes from n factorial.")
def root_of_n_and_n_minus_one(X, order=2):
    parts = [np.ones((*X.shape[:-1], 1)), X]
    power = X
    for n in range(2, order + 1):
        power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
        parts.append(power / np.sqrt(n * (n - 1)))
    return np.concatenate(parts, axis=-1)


@wrong(
    "feature_dimension",
    says="You divide the number of ordered products by their power; how many orders a product has depends on how "
    "often each factor occurs in it.",
)
def divided_by_the_power(D, order):
    total = 1 + D
    for n in range(2, order + 1):
        distinct = D**n - D  # not all factors the same
        total += D + -(-distinct // n)  # ... and n orders of each of these
    return total


@wrong(
    "feature_dimension",
    says="You leave the constant out and count ordered products apart; the 1 is a feature, and x y and y x are the "
    "same one.",
)
def ordered_and_no_constant(D, order):
    count = 0
    for n in range(1, order + 1):
        count += len(list(itertools.product(range(D), repeat=n)))
    return count


@wrong(
    "linear_attention",
    says="You set negative features to 0; only their products have to be positive, and cut off they are no longer "
    "those of the exponential's series.",
)
def negative_features_cut_off(Q, K, V, order=2):
    phi_q = np.maximum(feature_map(Q, order), 0)
    phi_k = np.maximum(feature_map(K, order), 0)
    S = np.swapaxes(phi_k, -1, -2) @ V
    z = phi_k.sum(axis=-2)[..., None]
    return (phi_q @ S) / (phi_q @ z)


@wrong(
    "linear_attention", says="Your weights are normalised over the queries; for each query they sum to 1 over the keys."
)
def normalised_over_the_queries(Q, K, V, order=2):
    fq, fk = feature_map(Q, order), feature_map(K, order)
    total = fq.sum(axis=-2)  # (..., M)
    share = fk / np.einsum("...lm,...m->...l", fk, total)[..., None]
    return fq @ np.einsum("...lm,...ld->...md", share, V)


@wrong(
    "linear_attention",
    says="You set negative features to 0, and your sum of the keys runs over axis 0. Features may be negative, and "
    "axes are counted from the end.",
)
def cut_off_and_summed_over_axis_0(Q, K, V, order=2):
    fq, fk = np.clip(feature_map(Q, order), 0, None), np.clip(feature_map(K, order), 0, None)
    upper = fq @ (np.swapaxes(fk, -1, -2) @ V)
    lower = (fq * fk.sum(axis=0)).sum(axis=-1)
    return upper / lower[..., None]


@wrong(
    "multiplications",
    says="The sum below takes as many in your count as each of the two products with values; it is the same for all "
    "entries of a query.",
)
def sum_below_for_each_entry(L, D, order):
    M = math.comb(D + order, D)
    return 3 * L * M * D


@wrong("multiplications", says="You leave the constant feature out of the count; it is multiplied like the others.")
def constant_feature_for_nothing(L, D, order):
    M = math.comb(D + order, order) - 1
    return 2 * L * M * D + L * M


@wrong("multiplications", says="You count a table of L times L products first; the features' sums make do without it.")
def table_of_products(L, D, order):
    M = math.comb(D + order, order)
    return L * L * M + L * L * D


@wrong("multiplications", says="Your number of features is right for the orders 1 and 2 only.")
def order_two_at_most(L, D, order):
    M = 1 + D
    if order >= 2:
        M += D * (D + 1) // 2
    return L * M * (2 * D + 1)


@wrong(
    "multiplications",
    says="You count ordered products apart, and multiplications for the sum of the key features; there are fewer "
    "features, and a sum multiplies nothing.",
)
def ordered_and_sum_of_keys(L, D, order):
    M = sum(D**n for n in range(order + 1))
    return 2 * L * M * D + 2 * L * M


@wrong(
    "attention_step",
    says="Your sum below adds the weight of each earlier query with its own key; it is asked with the present query, "
    "so keep the sum of the key features.",
)
def weights_summed_with_their_own_queries(state, q, k, v, order=2):
    fq, fk = feature_map(q, order), feature_map(k, order)
    S, total = (0.0, 0.0) if state is None else state
    S = S + fk[..., :, None] * v[..., None, :]
    total = total + np.sum(fq * fk, axis=-1, keepdims=True)
    return (fq[..., None, :] @ S).squeeze(-2) / total, (S, total)


@wrong(
    "attention_step",
    says="Your state forgets: old sums are made smaller before the new token is added. Here nothing is forgotten.",
)
def forgetting(state, q, k, v, order=2):
    fq, fk = feature_map(q, order), feature_map(k, order)
    new = np.concatenate([v, np.ones_like(v[..., :1])], axis=-1)
    update = fk[..., :, None] * new[..., None, :]
    state = update if state is None else 0.99 * state + update
    both = np.einsum("...m,...md->...d", fq, state)
    return both[..., :-1] / both[..., -1:], state


@wrong("delta_attention", says="You divide the step by the squared length of the key; the step is used as it is given.")
def divided_by_the_length_of_the_key(Q, K, V, beta):
    D = K.shape[-1]
    S = np.zeros((*K.shape[:-2], D, D))
    result = np.empty(V.shape)
    for t in range(K.shape[-2]):
        k, v = K[..., t, :], V[..., t, :]
        step = beta[..., t] / np.maximum((k * k).sum(-1), 1e-12)
        diff = v - np.einsum("...i,...ij->...j", k, S)
        S = S + step[..., None, None] * k[..., :, None] * diff[..., None, :]
        result[..., t, :] = np.einsum("...i,...ij->...j", Q[..., t, :], S)
    return result


@wrong("delta_attention", says="All sequences of the batch write into one state; each has its own.")
def one_state_for_the_batch(Q, K, V, beta):
    D = Q.shape[-1]
    S = np.zeros((D, D))
    outs = []
    for t in range(Q.shape[-2]):
        k, v, b = K[..., t, :], V[..., t, :], beta[..., t]
        delta = b[..., None] * (v - k @ S)
        S = S + k.reshape(-1, D).T @ delta.reshape(-1, D)
        outs.append(Q[..., t, :] @ S)
    return np.stack(outs, axis=-2)


@wrong(
    "delta_attention",
    says="You bring the keys to length 1 and ask the state with the query; the key asks what is stored for it, and "
    "it is used as it is.",
)
def keys_normalised_and_asked_by_the_query(Q, K, V, beta):
    D = Q.shape[-1]
    K = K / (np.linalg.norm(K, axis=-1, keepdims=True) + 1e-12)
    S = np.zeros((*Q.shape[:-2], D, D))
    outs = []
    for t in range(Q.shape[-2]):
        q, k, v = (A[..., t : t + 1, :] for A in (Q, K, V))
        S = S + beta[..., t, None, None] * (np.swapaxes(k, -1, -2) @ (v - q @ S))
        outs.append(q @ S)
    return np.concatenate(outs, axis=-2)


# -------------------------------------------- mistakes that a third collection of answers brought


@wrong(
    "feature_map",
    says="Your products of several entries carry no factor; (q . k)^n is divided by n!, and both rows bring a root.",
)
def all_products_without_factors(X, order=2):
    parts, power = [np.ones((*X.shape[:-1], 1))], np.ones((*X.shape[:-1], 1))
    for _ in range(order):
        power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
        parts.append(power)
    return np.concatenate(parts, axis=-1)


@wrong(
    "feature_map",
    says="You take products of different entries only; those in which an entry occurs more than once, such as x1 x1, "
    "belong to it, too.",
)
def features_of_different_entries(X, order=2):
    columns = [np.ones(X.shape[:-1])]
    for n in range(1, order + 1):
        columns += [np.prod(X[..., list(chosen)], axis=-1) for chosen in itertools.combinations(range(X.shape[-1]), n)]
    return np.stack(columns, axis=-1)


edited(
    "feature_map",
    "features_up_to_the_square",
    "range(order + 1)",
    "range(min(order, 2) + 1)",
    says="Your features end with the squares, also where the order is higher.",
)


@wrong("feature_map", says="Your factor for the power n is one over the root of n; it comes from n factorial.")
def root_of_n(X, order=2):
    parts, power = [np.ones((*X.shape[:-1], 1))], np.ones((*X.shape[:-1], 1))
    for n in range(1, order + 1):
        power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1)
        parts.append(power / np.sqrt(n))
    return np.concatenate(parts, axis=-1)


edited(
    "feature_map",
    "features_in_one_list",
    "return np.stack(features, axis=-1)",
    "return np.stack(features, axis=-1).reshape(-1, len(features))",
    says="You put the rows of all batch axes into one list; the features keep the axes of X, and only the last one "
    "gets longer.",
)
edited(
    "feature_map",
    "features_by_the_number_of_different_entries",
    "math.sqrt(weight)",
    "math.sqrt(math.factorial(degree) / math.factorial(len(powers)))",
    says="Your factor asks how many different entries a product has; how often it occurs in (q . k)^n depends on how "
    "often each of them stands in it, as x1 x1 x2 occurs three times and x1 x2 x3 six times.",
)


@wrong(
    "feature_map",
    says="Two things: the feature 1, which gives the first term of the series, is missing; and from order 2 on so is "
    "your highest power.",
)
def features_without_constant_and_one_order_short(X, order=2):
    parts, power = [X], X
    for n in range(2, order):
        power = (power[..., :, None] * X[..., None, :]).reshape(*X.shape[:-1], -1) / np.sqrt(n)
        parts.append(power)
    return np.concatenate(parts, axis=-1)


edited(
    "feature_map",
    "features_of_unit_rows",
    "X[..., list(factors)]",
    "(X / np.maximum(np.linalg.norm(X, axis=-1, keepdims=True), 1e-12))[..., list(factors)]",
    says="You bring the rows to length 1 first; they are used as they are.",
)


edited(
    "feature_dimension",
    "dimension_of_order_two_at_most",
    "math.comb(D + order, order)",
    "1 + D + (order > 1) * D * (D + 1) // 2",
    says="Your formula holds for the orders 1 and 2 only.",
)
edited(
    "feature_dimension",
    "dimension_of_one_entry_more",
    "math.comb(D + order, order)",
    "math.comb(D + order + 1, order)",
    says="Your count is that of one entry more: with the 1 among them there are D + 1 to choose from.",
)


@wrong(
    "feature_dimension",
    says="You halve the number of ordered products, as is right for two entries; three different ones already stand in "
    "six orders.",
)
def ordered_products_halved(D, order):
    return 1 + D + sum((D**n + D) // 2 for n in range(2, order + 1))


edited(
    "linear_attention",
    "attention_divided_by_all_key_features",
    "(phi_q @ total)",
    "total.sum(axis=(-1, -2))[..., None, None]",
    says="You divide by one number for all queries, the sum of all key features; each query has a sum of weights of "
    "its own.",
)


@wrong(
    "linear_attention",
    says="You divide features by their sums; it is the weights, products of features, that are divided by their "
    "sum over the keys.",
)
def attention_of_features_divided_by_sizes(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)
    phi_q = phi_q / phi_q.sum(axis=-1, keepdims=True)
    phi_k = phi_k / (np.abs(phi_k).sum(axis=-2, keepdims=True) + 1e-9)
    return phi_q @ (np.swapaxes(phi_k, -1, -2) @ V)


@wrong(
    "attention_step",
    says="From the second token on your output leaves the token itself out: it is answered before it is written. A "
    "token sees itself, too.",
)
def step_answers_with_the_tokens_before(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)
    S, z = (0.0, 0.0) if state is None else state
    output = v if state is None else (phi_q @ S)[..., 0, :] / (phi_q * z).sum(axis=-1)
    return output, (S + np.swapaxes(phi_k, -1, -2) * v[..., None, :], z + phi_k)


@wrong(
    "attention_step",
    says="Your state is the mean of the old one and of what the new token brings, so that older tokens count less and "
    "less; what a token brings is added.",
)
def step_of_means(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)
    S, z = np.swapaxes(phi_k, -1, -2) * v[..., None, :], phi_k
    if state is not None:
        S, z = (state[0] + S) / 2, (state[1] + z) / 2
    return (phi_q @ S)[..., 0, :] / (phi_q * z).sum(axis=-1), (S, z)


@wrong(
    "attention_step",
    says="You add up over the leading axes, as if they were tokens of one text; each text has sums of its own.",
)
def step_of_one_text(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(np.atleast_2d(q), order), feature_map(np.atleast_2d(k), order)
    rows = phi_k.reshape(-1, phi_k.shape[-1])
    S, z = rows.T @ v.reshape(-1, v.shape[-1]), rows.sum(axis=0)
    if state is not None:
        S, z = S + state[0], z + state[1]
    return (phi_q @ S / (phi_q @ z)[..., None]).reshape(v.shape), (S, z)


edited(
    "attention_step",
    "step_fading",
    "state is None else state",
    "state is None else (0.9 * state[0], 0.9 * state[1])",
    says="Your state forgets: old sums are made smaller before the new token is added. Here nothing is forgotten.",
)


@wrong(
    "attention_step",
    says="Two things: your features are those of order 2, whatever the order is; and your state forgets, for old sums "
    "are made smaller before the new token is added.",
)
def step_fading_and_of_order_two(state, q, k, v, order=2):
    phi_q, phi_k = feature_map(q[..., None, :]), feature_map(k[..., None, :])
    S, z = (0.0, 0.0) if state is None else (0.9 * state[0], 0.9 * state[1])
    S, z = S + np.swapaxes(phi_k, -1, -2) * v[..., None, :], z + phi_k
    return (phi_q @ S)[..., 0, :] / (phi_q * z).sum(axis=-1), (S, z)


edited(
    "attention_step",
    "step_sum_begins_above_zero",
    "(0.0, 0.0) if state is None",
    "(0.0, 1e-3) if state is None",
    says="Your sum below does not begin at 0 but at a small number, which stays in every output.",
)
edited(
    "delta_attention",
    "delta_and_decay",
    "S = S + np.swapaxes(k, -1, -2)",
    "S = (1 - beta[..., t, None, None]) * S + np.swapaxes(k, -1, -2)",
    says="Your whole state is multiplied by 1 − beta at every token; only what it answers for this key should give "
    "way.",
)
edited(
    "delta_attention",
    "delta_table_turned",
    "np.swapaxes(k, -1, -2) @ (beta[..., t, None, None] * missing)",
    "np.swapaxes(beta[..., t, None, None] * missing, -1, -2) @ k",
    says="You add the table with its rows and columns exchanged: the key stands on the left, turned into a column, and "
    "the difference on the right.",
)
edited(
    "delta_attention",
    "delta_steps_of_the_first_text",
    "beta[..., t, None, None]",
    "np.reshape(beta, (-1, np.shape(beta)[-1]))[0, t]",
    says="All your texts take the step sizes of the first one; each brings its own.",
)


@wrong(
    "delta_attention",
    says="You take off what a plain sum of the earlier tokens answers; what counts is what the state answers, and into "
    "it only differences were written.",
)
def delta_against_the_sum(Q, K, V, beta):
    before = np.tril(K @ np.swapaxes(K, -1, -2), -1)
    written = beta[..., None] * (V - before @ (beta[..., None] * V))
    return np.tril(Q @ np.swapaxes(K, -1, -2)) @ written
