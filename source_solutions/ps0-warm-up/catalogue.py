# ruff: noqa: B905
"""Right variants and misconceptions of ps0-warm-up.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import edited, right, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import pairwise_dot, softmax

# -------------------------------------------------------------------------------------- exercise 1: softmax


@wrong(
    "softmax",
    says="Large numbers overflow in your exp; subtract the largest one along the axis first, which changes no weight.",
)
def largest_not_subtracted(z, axis=-1):
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(z)
        return powers / powers.sum(axis=axis, keepdims=True)


@wrong(
    "softmax",
    says="You subtract one largest number from the whole array; a row with much smaller numbers then becomes 0/0. "
    "Every row has a largest number of its own.",
)
def one_maximum_for_everything(z, axis=-1):
    with np.errstate(invalid="ignore"):
        powers = np.exp(z - z.max())
        return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="Your softmax always runs along the last axis; it should run along the axis that is asked for.")
def axis_ignored(z, axis=-1):
    powers = np.exp(z - z.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@wrong("softmax", says="All your numbers together sum to 1; along the axis, each row should sum to 1 by itself.")
def over_everything(z, axis=-1):
    powers = np.exp(z - z.max())
    return powers / powers.sum()


@wrong("softmax", says="Your softmax runs along the first axis unless told otherwise; the default is the last one.")
def first_axis_by_default(z, axis=0):
    powers = np.exp(z - z.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong(
    "softmax",
    says="The sum or the largest number loses its axis in your function, so NumPy works along another one or not at "
    "all; keepdims=True keeps the axis.",
)
def without_keepdims(z, axis=-1):
    powers = np.exp(z - z.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis)


@wrong(
    "softmax",
    says="Your largest number is that of the last axis, whatever `axis` is; along another axis a column of small "
    "numbers then becomes 0/0.",
)
def maximum_along_the_last_axis(z, axis=-1):
    with np.errstate(invalid="ignore"):
        powers = np.exp(z - z.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You divide each number by the sum; softmax applies the exponential function first.")
def without_exponential(z, axis=-1):
    with np.errstate(divide="ignore", invalid="ignore"):
        return z / z.sum(axis=axis, keepdims=True)


@wrong(
    "softmax", says="You return the exponentials, which do not sum to 1; they still have to be divided by their sum."
)
def without_division(z, axis=-1):
    return np.exp(z - z.max(axis=axis, keepdims=True))


@wrong("softmax", says="You return the logarithm of the softmax.")
def logarithm(z, axis=-1):
    below = z - z.max(axis=axis, keepdims=True)
    return below - np.log(np.exp(below).sum(axis=axis, keepdims=True))


@wrong("softmax", says="The smallest number gets the largest weight in your function: a sign is turned round.")
def sign_turned_round(z, axis=-1):
    powers = np.exp(z.min(axis=axis, keepdims=True) - z)
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You subtract the smallest number, which makes the others larger; the largest one is needed.")
def smallest_subtracted(z, axis=-1):
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(z - z.min(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You subtract the mean; numbers far above it still overflow. The largest one is safe.")
def mean_subtracted(z, axis=-1):
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(z - z.mean(axis=axis, keepdims=True))
        return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You cut large numbers off before exp, so that numbers beyond the limit become equal.")
def large_numbers_cut_off(z, axis=-1):
    powers = np.exp(np.clip(z, -60, 60))
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You cut large numbers off before exp, so that numbers beyond the limit become equal.")
def large_numbers_cut_off_late(z, axis=-1):
    powers = np.exp(np.clip(np.asarray(z, dtype=np.float64), -700, 700))
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="You divide by the largest absolute value instead of subtracting: that changes the weights.")
def divided_by_the_largest(z, axis=-1):
    powers = np.exp(z / np.abs(z).max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong("softmax", says="Your weights are those of an argmax, 1 for the largest number and 0 for all others.")
def hard_maximum(z, axis=-1):
    return (z == z.max(axis=axis, keepdims=True)) * 1.0


@wrong("softmax", says="Your function subtracts in place (-=), so the caller's array is changed; work on a new one.")
def changes_its_input(z, axis=-1):
    z -= z.max(axis=axis, keepdims=True)
    powers = np.exp(z)
    return powers / powers.sum(axis=axis, keepdims=True)


@wrong(
    "softmax",
    says="You subtract the largest absolute value; in a row of very negative numbers every exponential then "
    "becomes 0. Subtract the largest number, with its sign.",
)
def largest_size_subtracted(z, axis=-1):
    biggest = np.abs(z).max(axis=axis, keepdims=True)
    e = np.exp(z - biggest)
    return e / e.sum(axis=axis, keepdims=True)


@wrong(
    "softmax",
    says="Your largest number follows `axis`, but your sum always runs along the last axis; both run along the "
    "axis that is asked for.",
)
def sum_along_the_last_axis(z, axis=-1):
    shifted = z - np.max(z, axis=axis, keepdims=True)
    exps = np.exp(shifted)
    return exps / np.sum(exps, axis=-1, keepdims=True)


@wrong(
    "softmax",
    says="Your function knows two kinds of axes: for 0 it turns the whole array round (.T), and all others it "
    "takes for the last one. Any axis can be asked for.",
)
def two_axes_known(z, axis=-1):
    if axis == 0:
        return softmax(z.T).T
    z = z - z.max(axis=-1, keepdims=True)
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


@wrong(
    "softmax",
    says="You move the axis to the end and then make the same move once more; with three or more axes that need not "
    "bring it back. The way back goes from the end to `axis`.",
)
def moved_back_the_same_way(z, axis=-1):
    moved = np.moveaxis(z, axis, -1)
    moved = moved - moved.max(axis=-1, keepdims=True)
    e = np.exp(moved)
    weights = e / e.sum(axis=-1, keepdims=True)
    return np.moveaxis(weights, axis, -1)


@wrong(
    "softmax",
    says="You add a small number to the sum, so the weights sum to less than 1. Once the largest number is "
    "subtracted, the sum is at least 1 and needs no help.",
)
def small_number_in_the_sum(z, axis=-1):
    eps = 1e-05
    e = np.exp(z - z.max(axis=axis, keepdims=True))
    return e / (e.sum(axis=axis, keepdims=True) + eps)


@right("softmax")
def softmax_by_moving_the_axis(z, axis=-1):
    rows = np.moveaxis(z, axis, -1).astype(np.float64)
    result = np.empty_like(rows)
    for place in np.ndindex(rows.shape[:-1]):
        powers = np.exp(rows[place] - max(rows[place]))
        result[place] = powers / sum(powers)
    return np.moveaxis(result, -1, axis)


@right("softmax")
def softmax_by_logarithms(z, axis=-1):
    highest = np.expand_dims(np.max(z, axis=axis), axis)
    return np.exp(z - highest - np.log(np.exp(z - highest).sum(axis=axis, keepdims=True)))


@right("softmax")
def softmax_by_the_log_of_the_sum(z, axis=-1):
    highest = z.max(axis=axis, keepdims=True)
    log_of_the_sum = highest + np.log(np.exp(z - highest).sum(axis=axis, keepdims=True))
    return np.exp(z - log_of_the_sum)


@right("softmax")
def softmax_by_torch(z, axis=-1):
    import torch

    return torch.softmax(torch.tensor(np.ascontiguousarray(z)), dim=axis)


@right("softmax")
def softmax_in_place_on_a_copy(z, axis=-1):
    z = np.array(z, dtype=float)
    z -= z.max(axis, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis, keepdims=True)
    return z.tolist()


# ----------------------------------------------------------------------------- exercise 2: weighted_average


@wrong("weighted_average", says="You make the weights sum to 1 first; here they are used as given.")
def weights_normalised(weights, values):
    return weights / weights.sum(axis=-1, keepdims=True) @ values


@wrong("weighted_average", says="You put the weights through a softmax first; here they are used as given.")
def weights_through_softmax(weights, values):
    return softmax(weights) @ values


@wrong("weighted_average", says="You divide by the number of values as well; the weights already say how much of each.")
def divided_by_the_number(weights, values):
    return weights @ values / values.shape[-2]


@wrong(
    "weighted_average",
    says="You sum over the rows of the weights. Output i uses row i: the sum runs over the columns.",
)
def weights_transposed(weights, values):
    return np.swapaxes(weights, -1, -2) @ values if weights.ndim > 1 else weights @ values


@wrong(
    "weighted_average",
    says="One row of weights alone comes out with an axis too many; the result of (T_k,) and (T_k, d_v) is (d_v,).",
)
def single_row_keeps_an_axis(weights, values):
    return np.atleast_2d(weights) @ values


@wrong(
    "weighted_average",
    says="Your function works for one row of weights only; with several, each row gives an output of its own.",
)
def one_row_only(weights, values):
    return (weights[..., None] * values).sum(axis=-2)


@wrong(
    "weighted_average",
    says="Your function works for several rows without batch axes only; one row alone and a batch occur as well. "
    "(In einsum, ... stands for any leading axes; @ takes all of these.)",
)
def two_axes_only(weights, values):
    return np.einsum("qk,kd->qd", weights, values)


@wrong(
    "weighted_average",
    says="In a batch your weights meet the values of every sequence; each sequence has its own (np.dot and tensordot "
    "combine all with all, @ does not).",
)
def every_sequence_with_every(weights, values):
    return np.tensordot(weights, values, axes=([-1], [-2]))


@wrong(
    "weighted_average", says="You multiply and do not add up: for each output the products are summed over the values."
)
def products_not_summed(weights, values):
    return weights[..., None] * values[..., None, :, :] if weights.ndim > 1 else weights[:, None] * values


@wrong("weighted_average", says="Your result is transposed: a row for each output, as wide as the values.")
def result_transposed(weights, values):
    result = weights @ values
    return np.swapaxes(result, -1, -2) if result.ndim > 1 else result


@wrong("weighted_average", says="You take negative weights as positive; they are used as given.")
def negative_weights_turned(weights, values):
    return np.abs(weights) @ values


@wrong(
    "weighted_average",
    says="np.average, which you use for a single row, makes the weights sum to 1 first; here they are used as given.",
)
def single_row_by_np_average(weights, values):
    if weights.ndim == 1:
        return np.average(values, axis=0, weights=weights)
    return np.matmul(weights, values)


@wrong(
    "weighted_average", says="You melt the leading axes into one and leave it so; the result keeps all leading axes."
)
def batch_axes_melted(weights, values):
    if weights.ndim <= 2:
        return weights @ values
    T_q, T_k = weights.shape[-2:]
    d_v = values.shape[-1]
    w = weights.reshape(-1, T_q, T_k)
    v = values.reshape(-1, T_k, d_v)
    return np.einsum("bqk,bkd->bqd", w, v)


@wrong(
    "weighted_average",
    says="np.squeeze removes every axis of size 1, also one that stands for a single output, a single sequence or "
    "a width of 1. Only where `weights` has one axis does the result lose one.",
)
def axes_of_size_one_squeezed(weights, values):
    weights = np.atleast_2d(weights)
    return np.squeeze(weights @ values)


@wrong("weighted_average", says="You set negative weights to 0; they are used as given.")
def negative_weights_left_out(weights, values):
    weights = np.where(weights > 0, weights, 0)
    return weights @ values


@wrong(
    "weighted_average", says="In a batch you set negative weights to 0; they are used as given, with leading axes, too."
)
def negative_weights_left_out_of_batches(weights, values):
    return (weights if weights.ndim < 3 else np.maximum(weights, 0)) @ values


@right("weighted_average")
def average_by_einsum(weights, values):
    return np.einsum("...j,jc->...c" if weights.ndim == 1 else "...ij,...jc->...ic", weights, values)


@right("weighted_average")
def average_by_broadcasting(weights, values):
    if weights.ndim == 1:
        return (weights[:, None] * values).sum(axis=0)
    return (weights[..., :, :, None] * values[..., None, :, :]).sum(axis=-2)


@right("weighted_average")
def average_by_loops(weights, values):
    def single(row, table):
        return sum(float(w) * v.astype(float) for w, v in zip(row, table))

    if weights.ndim == 1:
        return single(weights, values)
    leading, (T_q, T_k), d_v = weights.shape[:-2], weights.shape[-2:], values.shape[-1]
    pairs = zip(weights.reshape(-1, T_q, T_k), values.reshape(-1, T_k, d_v))
    return np.array([[single(row, table) for row in rows] for rows, table in pairs]).reshape(*leading, T_q, d_v)


@right("weighted_average")
def average_by_torch(weights, values):
    import torch

    return torch.matmul(torch.tensor(np.ascontiguousarray(weights)), torch.tensor(np.ascontiguousarray(values)))


# --------------------------------------------------------------------------------- exercise 3: pairwise_dot


@wrong(
    "pairwise_dot",
    says="You compare row i with row i only; every row of A should meet every row of B.",
)
def row_with_its_own_number(A, B):
    return (A * B).sum(axis=-1)


@wrong(
    "pairwise_dot",
    says="It works for two tables but not with batch axes. Swap the last two axes of B only (`.T` turns all of them "
    "round); `@` then keeps the leading ones.",
)
def transpose_of_all_axes(A, B):
    return A @ B.T


@wrong(
    "pairwise_dot",
    says="It works for two tables but not with batch axes. Swap the last two axes of B only (`.T` turns all of them "
    "round); `@` then keeps the leading ones.",
)
def dot_with_transpose_of_all_axes(A, B):
    return np.dot(A, B.T)


@wrong(
    "pairwise_dot",
    says="It works for two tables but not with batch axes; in einsum, `...` stands for any leading axes.",
)
def einsum_of_two_axes(A, B):
    return np.einsum("nd,md->nm", A, B)


@wrong(
    "pairwise_dot",
    says="Your loop goes over the rows of two tables; it is slow and knows no batch axes. One product does it all.",
)
def loops_over_rows(A, B):
    return np.array([[np.dot(a, b) for b in B] for a in A])


@wrong(
    "pairwise_dot",
    says="You multiply A by B as it stands, so rows of A meet columns of B; swap the last two axes of B first.",
)
def product_without_swapped_axes(A, B):
    return A @ B


@wrong("pairwise_dot", says="Your result is transposed: rows belong to A, columns to B.")
def result_turned_round(A, B):
    return B @ np.swapaxes(A, -1, -2)


@wrong(
    "pairwise_dot", says="You divide by the lengths of the vectors (cosines); the dot product as it is was asked for."
)
def cosines(A, B):
    A, B = (X / np.linalg.norm(X, axis=-1, keepdims=True) for X in (A, B))
    return A @ np.swapaxes(B, -1, -2)


@wrong(
    "pairwise_dot", says="You divide by the root of the width; that comes later, in attention. Here nothing is scaled."
)
def scaled(A, B):
    return A @ np.swapaxes(B, -1, -2) / np.sqrt(A.shape[-1])


@wrong("pairwise_dot", says="You give back distances between the rows, where dot products are asked for.")
def distances(A, B):
    return np.linalg.norm(A[..., :, None, :] - B[..., None, :, :], axis=-1)


@wrong("pairwise_dot", says="Your products still stand side by side; a dot product adds them up over the width.")
def products_not_added_up(A, B):
    return A[..., :, None, :] * B[..., None, :, :]


@wrong("pairwise_dot", says="You compare columns with columns; tokens stand in rows.")
def columns_with_columns(A, B):
    return np.swapaxes(A, -1, -2) @ B


@wrong(
    "pairwise_dot",
    says="In a batch every sequence of A meets every sequence of B in your function (np.dot, np.inner and tensordot do "
    "that); the leading axes should be kept side by side.",
)
def every_batch_with_every_batch(A, B):
    return np.inner(A, B)


@wrong("pairwise_dot", says="You compare A with itself; the other rows are those of B.")
def with_itself(A, B):
    return A @ np.swapaxes(A, -1, -2)


@wrong(
    "pairwise_dot",
    says="Your function takes one leading axis or none, not several: transpose(0, 2, 1) names three axes. Swap the "
    "last two, counted from the end, and any number may stand in front.",
)
def one_leading_axis_at_most(A, B):
    B_t = B.transpose(1, 0) if B.ndim == 2 else B.transpose(0, 2, 1)
    return A @ B_t


@wrong(
    "pairwise_dot",
    says="You reshape B where it should be transposed. Reshaping keeps the order of the numbers and mixes the rows up.",
)
def reshape_for_transpose(A, B):
    m, d = B.shape[-2:]
    B_t = B.reshape((*B.shape[:-2], d, m))
    return A @ B_t


@wrong(
    "pairwise_dot",
    says="Your function still goes through the batch in a loop: a comprehension is one, too. One product of arrays"
    " does all sequences at once.",
)
def loop_over_the_batch(A, B):
    if A.ndim == 2:
        return A @ B.T
    return np.stack([pairwise_dot(a, b) for a, b in zip(A, B)])


edited(
    "pairwise_dot",
    "dots_squeezed",
    "return A @ np.swapaxes(B, -1, -2)",
    "return np.squeeze(A @ np.swapaxes(B, -1, -2))",
    says="np.squeeze removes every axis of size 1, also one that stands for a single vector or a single sequence.",
)
edited(
    "pairwise_dot",
    "leading_axes_melted",
    "return A @ np.swapaxes(B, -1, -2)",
    "return (A @ np.swapaxes(B, -1, -2)).reshape(*[-1] * (A.ndim > 2), A.shape[-2], B.shape[-2])",
    says="You melt the leading axes into one and leave it so; the result keeps all leading axes.",
)


@right("pairwise_dot")
def dots_by_einsum(A, B):
    return np.einsum("...id,...jd->...ij", A, B)


@right("pairwise_dot")
def dots_by_broadcasting(A, B):
    return np.sum(A[..., :, np.newaxis, :] * B[..., np.newaxis, :, :], axis=-1)


@right("pairwise_dot")
def dots_by_torch(A, B):
    import torch

    A, B = torch.tensor(np.ascontiguousarray(A)), torch.tensor(np.ascontiguousarray(B))
    return A @ B.mT


@right("pairwise_dot")
def dots_by_matmul_of_double(A, B):
    last = B.ndim - 1
    turned = np.transpose(B, [*range(last - 1), last, last - 1])
    return np.matmul(A.astype(np.float64), turned.astype(np.float64)).tolist()


# ------------------------------------------------------------------------------- exercise 4: product_shapes

edited(
    "product_shapes",
    "vector_taken_for_a_column",
    '"b": (3,)',
    '"b": (3, 1)',
    says='In "b" you take v for a column, (4, 1). It has one axis only, and so has the result.',
)
edited(
    "product_shapes",
    "columns_before_rows",
    '"a": (3, 2)',
    '"a": (2, 3)',
    says='In "a" rows and columns have changed places: the rows come from the array on the left.',
)
edited(
    "product_shapes",
    "length_of_the_vector",
    '"b": (3,)',
    '"b": (4,)',
    says='In "b" you give the length of v. That is the axis that is summed over and vanishes; the rows of A remain.',
)
edited(
    "product_shapes",
    "column_keeps_an_axis",
    '"e": (3, 4)',
    '"e": (3, 1, 4)',
    says='In "e" you give the result an axis more; w[:, None] and A have two axes each, and so has the result.',
)
edited(
    "product_shapes",
    "leading_axes_in_another_order",
    '"f": (6, 5, 3, 2)',
    '"f": (5, 6, 3, 2)',
    says='In "f" the leading axes stand in another order; they are aligned from the right, so 5 meets 1.',
)
edited(
    "product_shapes",
    "vector_taken_for_a_row",
    '"b": (3,)',
    '"b": "error"',
    says='In "b" nothing goes wrong: a vector on the right of @ is taken as a column and its axis vanishes.',
)
edited(
    "product_shapes",
    "batches_crossed",
    '"c": (2, 3, 5)',
    '"c": (2, 3, 2, 5)',
    says='In "c" you let every sequence meet every other; with @ the batch axis is kept side by side.',
)
edited(
    "product_shapes",
    "map_of_features",
    '"c": (2, 3, 5)',
    '"c": (2, 4, 4)',
    says='In "c" your result compares columns with columns. The inner sizes, which meet and vanish, are the two 4s.',
)
edited(
    "product_shapes",
    "map_turned_round",
    '"c": (2, 3, 5)',
    '"c": (2, 5, 3)',
    says='In "c" rows and columns have changed places: the rows come from the array on the left, Q.',
)
edited(
    "product_shapes",
    "inner_sizes_not_compared",
    '"d": "error"',
    '"d": (2, 3, 4)',
    says='In "d" the inner sizes are 4 and 5; a matrix product needs them to be equal.',
)
edited(
    "product_shapes",
    "transposed_by_itself",
    '"d": "error"',
    '"d": (2, 3, 5)',
    says='In "d" you turned K round; NumPy does not do that by itself.',
)
edited(
    "product_shapes",
    "column_not_stretched",
    '"e": (3, 4)',
    '"e": "error"',
    says='In "e" nothing goes wrong: w[:, None] is (3, 1), and its axis of size 1 is stretched to 4.',
)
edited(
    "product_shapes",
    "elementwise_taken_for_matrix_product",
    '"e": (3, 4)',
    '"e": (4,)',
    says='In "e" stands *, not @: entry by entry, nothing is summed.',
)
edited(
    "product_shapes",
    "leading_axes_must_be_equal",
    '"f": (6, 5, 3, 2)',
    '"f": "error"',
    says='In "f" nothing goes wrong: (6, 1) and (5,) are aligned from the right, and 1 is stretched to 5.',
)
edited(
    "product_shapes",
    "leading_axis_not_stretched",
    '"f": (6, 5, 3, 2)',
    '"f": (6, 1, 3, 2)',
    says='In "f" an axis of size 1 is stretched to its partner; that holds for leading axes, too.',
)
edited(
    "product_shapes",
    "leading_axes_multiplied",
    '"f": (6, 5, 3, 2)',
    '"f": (30, 3, 2)',
    says='In "f" you make one axis of the two leading ones; each stays an axis of its own.',
)

edited(
    "product_shapes",
    "products_summed_over_the_width",
    '"e": (3, 4)',
    '"e": (3, 1)',
    says='In "e" you sum the width away, as a matrix product would; * multiplies entry by entry and sums nothing.',
)


@right("product_shapes")
def shapes_from_arrays(student_id):
    A, B, v, w = np.ones((3, 4)), np.ones((4, 2)), np.ones(4), np.ones(3)
    Q, K, E, F = np.ones((2, 3, 4)), np.ones((2, 5, 4)), np.ones((6, 1, 3, 4)), np.ones((5, 4, 2))
    shapes = {"a": (A @ B).shape, "b": (A @ v).shape, "c": (Q @ np.swapaxes(K, -1, -2)).shape, "d": "Error"}
    return shapes | {"e": list((w[:, None] * A).shape), "f": np.array((E @ F).shape)}


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong(
    "softmax",
    says="Your exp overflows, and you put a number in the place of the NaN that follows; beside it all others lose "
    "their weight. Subtract the largest number first, and nothing overflows.",
)
def nan_replaced_by_one(z, axis=-1):
    with np.errstate(all="ignore"):
        e = np.exp(np.asarray(z, dtype=np.float64))
        p = e / e.sum(axis=axis, keepdims=True)
    return np.nan_to_num(p, nan=1.0)


@wrong(
    "weighted_average", says="You sum over the rows of the weights. Output i uses row i: the sum runs over the columns."
)
def columns_of_the_weights(weights, values):
    if weights.ndim == 1:
        return weights @ values
    return np.einsum("...ji,...jd->...id", weights, values)


@wrong(
    "pairwise_dot",
    says="You name the last two axes by numbers from the front, which is right for one number of leading axes only. "
    "Count them from the end, -2 and -1.",
)
def axes_counted_from_the_front(A, B):
    if B.ndim == 2:
        return A @ B.transpose(1, 0)
    return np.matmul(A, B.swapaxes(1, 2))


@wrong(
    "pairwise_dot", says="You give back squared distances between the rows, with a minus; dot products are asked for."
)
def negative_squared_distances(A, B):
    diff = A[..., :, None, :] - B[..., None, :, :]
    return -(diff**2).sum(axis=-1)
