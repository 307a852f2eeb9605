# ruff: noqa: B905
"""Right variants and misconceptions of ps3-multi-head-attention.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook and of concepts.py, which are there when this is read
    from concepts import attention_mistakes, attention_with
    from the_notebook import merge_heads, scaled_dot_product_attention, shape_numbers, split_heads

# ---------------------------------------------------------------------------------- exercise 1: split_heads


@wrong(
    "split_heads",
    says="Your heads hold whole tokens cut in pieces: a reshape alone reads the numbers off in order. Cut the width "
    "first, where it stands, and then move the heads in front of the tokens.",
)
def split_by_reshape_alone(X, n_heads):
    B, T, d_model = X.shape
    return X.reshape(B, n_heads, T, d_model // n_heads)


@wrong(
    "split_heads",
    says="Your heads take the columns in turn (every n-th one); head i owns columns that stand next to each other.",
)
def split_interleaved(X, n_heads):
    B, T, d_model = X.shape
    return X.reshape(B, T, d_model // n_heads, n_heads).transpose(0, 3, 1, 2)


@wrong(
    "split_heads",
    says="You cut the width rightly, but the tokens still stand before the heads; two axes have to change places.",
)
def split_without_transpose(X, n_heads):
    B, T, d_model = X.shape
    return X.reshape(B, T, n_heads, d_model // n_heads)


@wrong("split_heads", says="Your heads come before the sequences; the order is (B, h, T, d_head).")
def split_heads_first(X, n_heads):
    return np.stack(np.split(X, n_heads, axis=2))


@wrong(
    "split_heads",
    says="You took the number of heads for the width of a head: there should be n_heads of them.",
)
def split_width_for_number(X, n_heads):
    B, T, d_model = X.shape
    return X.reshape(B, T, d_model // n_heads, n_heads).swapaxes(1, 2)


@wrong(
    "split_heads",
    says="Your heads share out the tokens; each head should see all tokens and a part of their width.",
)
def split_along_tokens(X, n_heads):
    T = X.shape[1]
    piece = max(T // n_heads, 1)
    return np.stack([X[:, i * piece : (i + 1) * piece] for i in range(n_heads)], axis=1)


@wrong("split_heads", says="Your heads come in reverse order: head 0 owns the first columns.")
def split_in_reverse(X, n_heads):
    B, T, d_model = X.shape
    return X.reshape(B, T, n_heads, d_model // n_heads).transpose(0, 2, 1, 3)[:, ::-1]


@wrong("split_heads", says="Each of your heads holds the whole width; it should get its own part of it.")
def split_copies_everything(X, n_heads):
    return np.repeat(X[:, None], n_heads, axis=1)


@wrong(
    "split_heads",
    says="Your heads are cut out rightly, but they stand in front of the sequences when you reshape, and a reshape"
    " does not move axes: it mixes heads and sequences.",
)
def split_stacked_then_reshaped(X, n_heads):
    B, T, d_model = X.shape
    pieces = np.split(X, n_heads, axis=-1)
    return np.stack(pieces).reshape(B, n_heads, T, d_model // n_heads)


@wrong(
    "split_heads",
    says="Assigning to X.shape changes the caller's array; X.reshape gives a new view and leaves X as it is.",
)
def split_shape_assigned(X, n_heads):
    B, T, d_model = X.shape
    X.shape = (B, T, n_heads, d_model // n_heads)
    return np.swapaxes(X, 1, 2)


@wrong(
    "split_heads",
    says="Two things: you took the number of heads for the width of a head; and a reshape of the stacked pieces "
    "does not move axes, so sequences and heads are mixed.",
)
def split_width_for_number_and_stacked(X, n_heads):
    B, T, d_model = X.shape
    n_pieces = d_model // n_heads
    pieces = [X[:, :, i * n_heads : (i + 1) * n_heads] for i in range(n_pieces)]
    return np.concatenate(pieces, axis=0).reshape(B, n_pieces, T, n_heads)


@right("split_heads")
def split_by_columns(X, n_heads):
    d_head = X.shape[2] // n_heads
    return np.stack([X[:, :, i * d_head : (i + 1) * d_head] for i in range(n_heads)], axis=1)


@right("split_heads")
def split_by_loops(X, n_heads):
    B, T, d_model = X.shape
    d_head = d_model // n_heads
    heads = np.zeros((B, n_heads, T, d_head))
    for b in range(B):
        for i in range(n_heads):
            for t in range(T):
                for c in range(d_head):
                    heads[b, i, t, c] = X[b, t, i * d_head + c]
    return heads


@right("split_heads")
def split_by_torch(X, n_heads):
    import torch

    return torch.tensor(np.ascontiguousarray(X)).unflatten(-1, (n_heads, -1)).permute(0, 2, 1, 3)


@right("split_heads")
def split_into_nested_lists(X, n_heads):
    pieces = np.array_split(X, n_heads, axis=-1)
    return [[piece[b].tolist() for piece in pieces] for b in range(len(X))]


# ---------------------------------------------------------------------------------- exercise 2: merge_heads


@wrong(
    "merge_heads",
    says="Your rows hold several tokens of one head: the heads have to move behind the tokens before the reshape.",
)
def merge_by_reshape_alone(X):
    B, h, T, d_head = X.shape
    return X.reshape(B, T, h * d_head)


@wrong(
    "merge_heads",
    says="Your rows take one column of each head in turn; all columns of head 0 come before those of head 1.",
)
def merge_interleaved(X):
    B, h, T, d_head = X.shape
    return X.transpose(0, 2, 3, 1).reshape(B, T, h * d_head)


@wrong("merge_heads", says="You add the heads up; they should stand side by side, each in its own columns.")
def merge_by_sum(X):
    return X.sum(axis=1)


@wrong("merge_heads", says="You average the heads; they should stand side by side, each in its own columns.")
def merge_by_mean(X):
    return X.mean(axis=1)


@wrong(
    "merge_heads",
    says="You put the heads one after another along the tokens; they belong side by side, along the width.",
)
def merge_along_tokens(X):
    B, h, T, d_head = X.shape
    return X.reshape(B, h * T, d_head)


@wrong("merge_heads", says="Your heads stand side by side in reverse order: head 0 comes first.")
def merge_in_reverse(X):
    return np.concatenate([X[:, i] for i in reversed(range(X.shape[1]))], axis=-1)


@wrong(
    "merge_heads",
    says="You moved the tokens forward but did not join the last two axes: three axes should be left.",
)
def merge_without_joining(X):
    return X.swapaxes(1, 2)


@wrong(
    "merge_heads",
    says="Your tokens stand before the sequences when you reshape, and a reshape does not move axes: sequences and"
    " tokens are mixed. Only heads and tokens change places.",
)
def merge_tokens_first(X):
    B, h, T, d_head = X.shape
    return np.transpose(X, (2, 0, 1, 3)).reshape(B, T, h * d_head)


@wrong(
    "merge_heads",
    says="You guess which axis holds the tokens by its length; the order (B, h, T, d_head) is fixed, however many "
    "heads there are.",
)
def merge_guesses_the_tokens(X):
    B, n, m, _d_head = X.shape
    if n < m:
        X = np.swapaxes(X, 1, 2)
    return X.reshape(B, X.shape[1], -1)


@wrong(
    "merge_heads",
    says="You average the heads and repeat the mean; they should stand side by side, each in its own columns.",
)
def merge_by_repeated_mean(X):
    h = X.shape[1]
    return np.tile(X.mean(axis=1), (1, 1, h))


@wrong(
    "merge_heads",
    says="np.squeeze removes every axis of size 1, also that of a single token or of heads of width 1; the axes that "
    "are left are then not those you take them for.",
)
def merge_squeezed(X):
    heads = [np.squeeze(X[:, i]) for i in range(X.shape[1])]
    merged = np.concatenate(heads, axis=-1)
    return merged[None] if merged.ndim == 2 else merged


@right("merge_heads")
def merge_by_concatenation(X):
    return np.concatenate([X[:, i] for i in range(X.shape[1])], axis=2)


@right("merge_heads")
def merge_by_loops(X):
    B, h, T, d_head = X.shape
    merged = np.empty((B, T, h * d_head))
    for i in range(h):
        merged[:, :, i * d_head : (i + 1) * d_head] = X[:, i]
    return merged


@right("merge_heads")
def merge_by_einsum(X):
    B, _, T, _ = X.shape
    return np.einsum("bhtc->bthc", X).reshape(B, T, -1)


# ----------------------------------------------------------------------------- exercise 3: attention_shapes

edited(
    "attention_shapes",
    "shapes_before_the_transpose",
    "per_head = (B, h, T, d_model // h)",
    "per_head = (B, T, h, d_model // h)",
    says="Your heads stand behind the tokens, as they do in the middle of split_heads; after it they come before them.",
)
edited(
    "attention_shapes",
    "shapes_without_heads",
    "per_head = (B, h, T, d_model // h)",
    "per_head = (B, T, d_model)",
    says="Your q, k and v have the shape from before split_heads; asked is the one after it.",
)
edited(
    "attention_shapes",
    "shapes_full_width_in_each_head",
    "per_head = (B, h, T, d_model // h)",
    "per_head = (B, h, T, d_model)",
    says="Each of your heads has the whole width d_model; the heads share it.",
)
edited(
    "attention_shapes",
    "shapes_map_of_widths",
    '"map": (B, h, T, T)',
    '"map": (B, h, d_model // h, d_model // h)',
    says="Your map compares columns with columns. A map has a row for each query and a column for each key: tokens.",
)
edited(
    "attention_shapes",
    "shapes_map_without_heads",
    '"map": (B, h, T, T)',
    '"map": (B, T, T)',
    says="Your map has no axis for the heads; every head has a map of its own.",
)
edited(
    "attention_shapes",
    "shapes_map_like_the_values",
    '"map": (B, h, T, T)',
    '"map": per_head',
    says="Your map has the shape of the queries; it holds one number for each pair of a query and a key.",
)
edited(
    "attention_shapes",
    "shapes_z_not_merged",
    '"z": (B, T, d_model)',
    '"z": per_head',
    says="Your z still has an axis for the heads; merge_heads puts them side by side again.",
)
edited(
    "attention_shapes",
    "shapes_z_of_one_head",
    '"z": (B, T, d_model)',
    '"z": (B, T, d_model // h)',
    says="Your z is as wide as one head; merge_heads puts all heads side by side.",
)


@wrong(
    "attention_shapes",
    says="In q, k and v your heads stand behind the tokens, as they do in the middle of split_heads; after it they "
    "come before them.",
)
def shapes_before_the_transpose_in_q_k_v(student_id):
    B, T, d_model, h = shape_numbers(student_id)
    q, z_per_head = (B, T, h, d_model // h), (B, h, T, d_model // h)
    sheet = {"tokens": (B, T, d_model), "q": q, "k": q, "v": q, "map": (B, h, T, T)}
    return sheet | {"z_per_head": z_per_head, "z": (B, T, d_model)}


@wrong("attention_shapes", says="In q, k and v your heads come before the sequences; the order is (B, h, T, d_head).")
def shapes_heads_before_sequences(student_id):
    B, T, d_model, h = shape_numbers(student_id)
    q, z_per_head = (h, B, T, d_model // h), (B, h, T, d_model // h)
    sheet = {"tokens": (B, T, d_model), "q": q, "k": q, "v": q, "map": (B, h, T, T)}
    return sheet | {"z_per_head": z_per_head, "z": (B, T, d_model)}


edited(
    "attention_shapes",
    "shapes_keys_transposed",
    '"k": per_head',
    '"k": (B, h, d_model // h, T)',
    says="Your keys are turned round; asked is their shape after split_heads, before the product with the queries.",
)
edited(
    "attention_shapes",
    "shapes_z_per_head_merged",
    '"z_per_head": per_head',
    '"z_per_head": (B, T, d_model)',
    says="Your averages of the heads have the shape that they get when they are put together; before that each head "
    "has its own.",
)
edited(
    "attention_shapes",
    "shapes_heads_along_the_tokens",
    '"z": (B, T, d_model)',
    '"z": (B, h * T, d_model // h)',
    says="In your z the heads stand one after another along the tokens; merge_heads puts them side by side.",
)
edited(
    "attention_shapes",
    "shapes_map_of_heads",
    '"map": (B, h, T, T)',
    '"map": (B, T, h, h)',
    says="Your map compares the heads of each token with each other; a map has a row for each query and a column for "
    "each key, in every head.",
)


survivor(
    "attention_shapes",
    "d_model // h",
    "d_model / h",
    "h divides d_model, so both give the same number; 8.0 is accepted where 8 is asked for.",
)


@right("attention_shapes")
def shapes_from_arrays(student_id):
    B, T, d_model, h = shape_numbers(student_id)
    tokens = np.zeros((B, T, d_model))
    heads = split_heads(tokens, h)
    weights = heads @ heads.swapaxes(-1, -2)
    z = weights @ heads
    named = {"tokens": tokens, "q": heads, "k": heads, "v": heads, "map": weights, "z_per_head": z}
    return {name: array.shape for name, array in named.items()} | {"z": torch.zeros(B, T, d_model).shape}


@right("attention_shapes")
def shapes_as_lists(student_id):
    B, T, d_model, h = shape_numbers(student_id)
    heads = [B, h, T, d_model / h]
    sheet = {"tokens": [B, T, d_model], "q": heads, "k": heads, "v": np.array(heads), "map": [B, h, T, T]}
    return sheet | {"z_per_head": heads, "z": np.array([B, T, d_model]), "output": [B, T, d_model]}


# ------------------------------------------------------------------------- exercise 4: causal_mask

edited(
    "causal_mask",
    "causal_transposed",
    "np.tri(T, dtype=bool)",
    "np.tri(T, dtype=bool).T",
    says="Your tokens may look ahead and not back: row = query, and True = may attend, so the True entries lie on and "
    "below the diagonal.",
)
edited(
    "causal_mask",
    "causal_true_means_forbidden",
    "np.tri(T, dtype=bool)",
    "~np.tri(T, dtype=bool)",
    says="In your mask True marks what is forbidden (as in PyTorch's own layer); here True means 'may attend'.",
)
edited(
    "causal_mask",
    "causal_without_diagonal",
    "np.tri(T, dtype=bool)",
    "np.tri(T, k=-1, dtype=bool)",
    says="Your tokens may not look at themselves, which leaves the first one nothing; the diagonal is True.",
)
edited(
    "causal_mask",
    "causal_one_too_far",
    "np.tri(T, dtype=bool)",
    "np.tri(T, k=1, dtype=bool)",
    says="Your tokens may look one place ahead, at what they are meant to predict.",
)
edited(
    "causal_mask",
    "causal_of_numbers",
    "np.tri(T, dtype=bool)",
    "np.tri(T)",
    says="Your mask holds the numbers 0 and 1; it should be Boolean (dtype bool). `mask.astype(bool)` makes it so.",
)
edited(
    "causal_mask",
    "causal_added_minus_infinity",
    "np.tri(T, dtype=bool)",
    "np.where(np.tri(T) > 0, 0.0, -np.inf)",
    says="Your mask is one to be added to scores (0 and minus infinity); here a mask is Boolean, True = may attend.",
)
edited(
    "causal_mask",
    "causal_only_itself",
    "np.tri(T, dtype=bool)",
    "np.eye(T, dtype=bool)",
    says="Your tokens may look at themselves only; what came before them is allowed, too.",
)


@wrong(
    "causal_mask",
    says="Your tokens see themselves only, and the last one everything; every token may look at all that came "
    "before it.",
)
def causal_for_the_last_only(T):
    mask = np.eye(T, dtype=bool)
    mask[-1] = True
    return mask


@wrong("causal_mask", says="Only your first token is kept from looking ahead; none of them may.")
def causal_for_the_first_only(T):
    mask = np.ones((T, T), dtype=bool)
    mask[0, 1:] = False
    return mask


@wrong(
    "causal_mask", says="Your tokens see the one before, the first and themselves; what lies between is allowed, too."
)
def causal_window(T):
    i = np.arange(T)
    mask = (i[:, None] == i) | (i[:, None] - 1 == i) | (i == 0)
    mask[-1] = True
    return mask


@right("causal_mask")
def causal_by_comparison(T):
    place = np.arange(T)
    return place[None, :] <= place[:, None]


@right("causal_mask")
def causal_by_lists(T):
    return [[j <= i for j in range(T)] for i in range(T)]


@right("causal_mask")
def causal_by_torch(T):
    return ~torch.triu(torch.ones(T, T, dtype=torch.bool), diagonal=1)


# ------------------------------------------------------------------------ exercise 4: padding_mask

edited(
    "padding_mask",
    "padding_true_means_padding",
    "np.arange(T) < lengths",
    "np.arange(T) >= lengths",
    says="In your mask True marks the padding (as in PyTorch's own layer); here True means 'may attend'.",
)
edited(
    "padding_mask",
    "padding_one_too_many",
    "np.arange(T) < lengths",
    "np.arange(T) <= lengths",
    says="Your sequences are one token too long: counted from 0, the last token of a sequence of length n is n - 1.",
)
edited(
    "padding_mask",
    "padding_one_too_few",
    "np.arange(T) < lengths",
    "np.arange(1, T + 1) < lengths",
    says="Your sequences lose their last token: a sequence of length n has n True entries.",
)
edited(
    "padding_mask",
    "padding_in_front",
    "np.arange(T) < lengths",
    "np.arange(T) >= T - lengths",
    says="Your padding stands at the beginning; here sequences are filled up at the end.",
)
edited(
    "padding_mask",
    "padding_without_axes",
    "[:, None, None, :]",
    "",
    says="Your mask is (B, T); the axes of size 1 for heads and queries are missing, and without them it would be "
    "taken for a mask of queries and keys.",
)
edited(
    "padding_mask",
    "padding_for_queries",
    "[:, None, None, :]",
    "[:, None, :, None]",
    says="Your mask hides queries: its long axis should be the last one, that of the keys.",
)
edited(
    "padding_mask",
    "padding_for_both",
    "return (np.arange(T) < lengths[:, None])[:, None, None, :]",
    "real = (np.arange(T) < lengths[:, None])[:, None, None, :]; return real & real.swapaxes(2, 3)",
    says="Your mask is (B, 1, T, T) and hides padded queries as well; it is about keys only, the same for all queries.",
)
edited(
    "padding_mask",
    "padding_of_numbers",
    "[:, None, None, :]",
    "[:, None, None, :].astype(float)",
    says="Your mask holds the numbers 0 and 1; it should be Boolean (dtype bool).",
)
edited(
    "padding_mask",
    "padding_to_the_longest",
    "np.arange(T)",
    "np.arange(lengths.max())",
    says="Your mask is as long as the longest sequence; it should have T keys, whether a sequence reaches T or not.",
)


@wrong(
    "padding_mask",
    says="Your function works for arrays only: a list has no axes. `np.asarray(lengths)` makes an array of either.",
)
def padding_of_arrays_only(lengths, T):
    return (np.arange(T) < lengths[:, None])[:, None, None, :]


@wrong("padding_mask", says="An empty sequence keeps one key in your mask; with length 0 it has none.")
def padding_at_least_one(lengths, T):
    lengths = np.maximum(np.asarray(lengths), 1)
    return (np.arange(T) < lengths[:, None])[:, None, None, :]


@wrong(
    "padding_mask", says="You sort the lengths, so that sequences get the masks of others; row b belongs to sequence b."
)
def padding_sorted(lengths, T):
    lengths = np.sort(np.asarray(lengths))
    return (np.arange(T)[None] < lengths[:, None]).reshape(-1, 1, 1, T)


@wrong(
    "padding_mask",
    says="Your function changes the array of lengths that it was given: np.asarray makes no copy, and -= works in "
    "place.",
)
def padding_changes_the_lengths(lengths, T):
    last = np.asarray(lengths)
    last -= 1
    return (np.arange(T) <= last[:, None])[:, None, None, :]


@wrong(
    "padding_mask",
    says="You address the padding from the end, with -(T - n); where there is none this is -0, and everything "
    "becomes padding.",
)
def padding_counted_from_the_end(lengths, T):
    mask = np.ones((len(lengths), 1, 1, T), dtype=bool)
    for b, n in enumerate(lengths):
        mask[b, 0, 0, -(T - n) :] = False
    return mask


@right("padding_mask")
def padding_by_a_loop(lengths, T):
    mask = np.zeros((len(lengths), 1, 1, T), dtype=bool)
    for b, length in enumerate(lengths):
        mask[b, ..., :length] = True
    return mask


@right("padding_mask")
def padding_by_lists(lengths, T):
    return [[[[True] * int(n) + [False] * (T - int(n))]] for n in lengths]


@right("padding_mask")
def padding_by_torch(lengths, T):
    return (torch.arange(T) < torch.tensor(np.array(lengths))[:, None]).reshape(-1, 1, 1, T)


# ------------------------------------------------------------------------- exercise 5: multi_head_attention

edited(
    "multi_head_attention",
    "without_W_O",
    "return merge_heads(z) @ W_O, weights",
    "return merge_heads(z), weights",
    says="You put the heads side by side and stop there; the output still goes through W_O.",
)
edited(
    "multi_head_attention",
    "W_O_transposed",
    "merge_heads(z) @ W_O",
    "merge_heads(z) @ W_O.T",
    says="You multiply by the transpose of W_O; here all matrices multiply from the right as they are.",
)
edited(
    "multi_head_attention",
    "weights_averaged_over_heads",
    "return merge_heads(z) @ W_O, weights",
    "return merge_heads(z) @ W_O, weights.mean(axis=1)",
    says="You return the mean of the maps of all heads; each head's own map is asked for, (B, h, T_q, T_k).",
)
edited(
    "multi_head_attention",
    "output_only",
    "return merge_heads(z) @ W_O, weights",
    "return merge_heads(z) @ W_O",
    says="You return the output alone; the weights are asked for, too, as the second of two values.",
)
edited(
    "multi_head_attention",
    "weights_first",
    "return merge_heads(z) @ W_O, weights",
    "return weights, merge_heads(z) @ W_O",
    says="You return the weights first; the order is output, weights.",
)
edited(
    "multi_head_attention",
    "keys_and_values_from_the_asking",
    "X_kv @ W_K, X_kv @ W_V",
    "X_q @ W_K, X_q @ W_V",
    says="Your keys and values are made from X_q; they belong to the tokens that answer, X_kv.",
)
edited(
    "multi_head_attention",
    "roles_swapped",
    "X_q @ W_Q, X_kv @ W_K, X_kv @ W_V",
    "X_kv @ W_Q, X_q @ W_K, X_q @ W_V",
    says="X_kv asks and X_q answers in your function; it is the other way round.",
)
edited(
    "multi_head_attention",
    "keys_and_values_swapped",
    "X_kv @ W_K, X_kv @ W_V",
    "X_kv @ W_V, X_kv @ W_K",
    says="Your keys are made with W_V and your values with W_K: check which matrix makes which.",
)
edited(
    "multi_head_attention",
    "queries_and_keys_swapped",
    "X_q @ W_Q, X_kv @ W_K",
    "X_q @ W_K, X_kv @ W_Q",
    says="Your queries are made with W_K and your keys with W_Q: check which matrix makes which.",
)
edited(
    "multi_head_attention",
    "mask_ignored",
    "scaled_dot_product_attention(Q, K, V, mask)",
    "scaled_dot_product_attention(Q, K, V)",
    says="Your result does not depend on the mask; see what to do when it is not None.",
)
edited(
    "multi_head_attention",
    "mask_inverted",
    "scaled_dot_product_attention(Q, K, V, mask)",
    "scaled_dot_product_attention(Q, K, V, None if mask is None else ~mask)",
    says="Your mask works the other way round: here True means that a query may attend to the key.",
)
edited(
    "multi_head_attention",
    "heads_by_reshape_alone",
    "split_heads(X, n_heads) for X",
    "X.reshape(X.shape[0], n_heads, X.shape[1], -1) for X",
    says="Your heads hold whole tokens cut in pieces: a reshape alone does not move axes; exercise 1 shows how.",
)
edited(
    "multi_head_attention",
    "heads_interleaved",
    "split_heads(X, n_heads) for X",
    "X.reshape(*X.shape[:2], -1, n_heads).transpose(0, 3, 1, 2) for X",
    says="Your heads take the columns in turn; head i owns columns that stand next to each other.",
)
edited(
    "multi_head_attention",
    "merged_by_reshape_alone",
    "merge_heads(z) @ W_O",
    "z.reshape(X_q.shape) @ W_O",
    says="Your weights are right, but a reshape alone mixes heads and tokens when you put the heads together; "
    "exercise 2 shows how.",
)
edited(
    "multi_head_attention",
    "merged_interleaved",
    "merge_heads(z) @ W_O",
    "z.transpose(0, 2, 3, 1).reshape(X_q.shape) @ W_O",
    says="Your weights are right, but the columns of the heads alternate when you put them together; all columns of "
    "head 0 come first.",
)
edited(
    "multi_head_attention",
    "scaled_by_the_root_of_d_model",
    "scaled_dot_product_attention(Q, K, V, mask)",
    "scaled_dot_product_attention(Q / np.sqrt(n_heads), K, V, mask)",
    says="Your scale is the root of d_model; a head compares vectors of width d_head, so this width sets its scale.",
)
edited(
    "multi_head_attention",
    "unscaled",
    "scaled_dot_product_attention(Q, K, V, mask)",
    "scaled_dot_product_attention(Q * np.sqrt(Q.shape[-1]), K, V, mask)",
    says="Your scores are not divided by anything; the wider the heads, the sharper your softmax gets.",
)
edited(
    "multi_head_attention",
    "divided_by_d_head",
    "scaled_dot_product_attention(Q, K, V, mask)",
    "scaled_dot_product_attention(Q / np.sqrt(Q.shape[-1]), K, V, mask)",
    says="Your scores are divided by d_head; the scale is its square root.",
)
edited(
    "multi_head_attention",
    "one_head_of_full_width",
    "split_heads(X, n_heads) for X",
    "X[:, None] for X",
    says="You use one head of the full width, whatever n_heads is.",
)


@wrong(
    "multi_head_attention",
    says="Your softmax runs over the queries: the columns sum to 1. Each query, a row, shares out its own.",
)
def softmax_over_queries(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (
        (X @ W).reshape(*X.shape[:2], n_heads, -1).swapaxes(1, 2) for X, W in [(X_q, W_Q), (X_kv, W_K), (X_kv, W_V)]
    )
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    powers = np.exp(scores - scores.max(axis=-2, keepdims=True))
    weights = powers / powers.sum(axis=-2, keepdims=True)
    return (weights @ V).swapaxes(1, 2).reshape(X_q.shape) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="Your softmax runs over the heads: for each pair of tokens the heads' weights sum to 1. In each head the keys "
    "share the attention.",
)
def softmax_over_heads(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (
        (X @ W).reshape(*X.shape[:2], n_heads, -1).swapaxes(1, 2) for X, W in [(X_q, W_Q), (X_kv, W_K), (X_kv, W_V)]
    )
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights = powers / powers.sum(axis=1, keepdims=True)
    return (weights @ V).swapaxes(1, 2).reshape(X_q.shape) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You set forbidden weights to zero after the softmax, so the rest no longer sums to 1; forbidden keys should "
    "not take part in the softmax at all.",
)
def mask_too_late(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    _, weights = scaled_dot_product_attention(Q, K, V)
    if mask is not None:
        weights = weights * mask
    return merge_heads(weights @ V) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="A query that may attend to nothing gets NaN in your function (0/0, or the difference of two infinities); "
    "it should get zeros.",
)
def nan_for_a_query_without_keys(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights = powers / powers.sum(axis=-1, keepdims=True)
    return merge_heads(weights @ V) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="A query that may attend to nothing attends to all keys equally in your function; it should get zeros.",
)
def uniform_for_a_query_without_keys(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return merge_heads(weights @ V) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="Large scores overflow in your exp; subtract the largest score of the row first, which changes no weight.",
)
def largest_score_not_subtracted(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores) * (1 if mask is None else mask)
        total = powers.sum(axis=-1, keepdims=True)
        weights = np.where(total > 0, powers / np.where(total > 0, total, 1.0), 0.0)
    return merge_heads(weights @ V) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You lower the scores of forbidden keys by 10; large scores get through that. Exclude these keys completely.",
)
def mask_minus_ten(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -10.0)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    return merge_heads(weights @ V) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You folded sequences and heads into one axis and repeated the mask in another order than the heads: "
    "each sequence's mask belongs to all heads of that sequence.",
)
def mask_repeated_in_the_wrong_order(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    B, T_q, T_k = X_q.shape[0], X_q.shape[1], X_kv.shape[1]
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    Q, K, V = (A.reshape(B * n_heads, *A.shape[2:]) for A in (Q, K, V))
    if mask is not None:
        mask = np.broadcast_to(mask, (B, n_heads, T_q, T_k))
        mask = mask.swapaxes(0, 1).reshape(B * n_heads, T_q, T_k)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    z, weights = z.reshape(B, n_heads, T_q, -1), weights.reshape(B, n_heads, T_q, T_k)
    return merge_heads(z) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="Every head uses the mask of head 0; a mask may hold one for each head.",
)
def mask_of_the_first_head_for_all(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    if mask is not None and mask.ndim == 4:
        mask = mask[:, :1]
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(z) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You add up what the heads say; it should stand side by side before it goes through W_O.",
)
def heads_added_up(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return np.tile(z.sum(axis=1), n_heads) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You cut the tokens into heads before you project them; each head then sees its own columns only. Project"
    " first, from the full width, and split afterwards.",
)
def heads_project_their_own_part(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    d_model = X_q.shape[-1]
    d_head = d_model // n_heads
    outputs, maps = ([], [])
    for i in range(n_heads):
        part = slice(i * d_head, (i + 1) * d_head)
        Q = X_q[..., part] @ W_Q[part, part]
        K = X_kv[..., part] @ W_K[part, part]
        V = X_kv[..., part] @ W_V[part, part]
        m = mask
        if mask is not None and mask.ndim == 4:
            m = mask[:, i if mask.shape[1] > 1 else 0]
        z, w = scaled_dot_product_attention(Q, K, V, m)
        outputs.append(z)
        maps.append(w)
    return (np.concatenate(outputs, axis=-1) @ W_O, np.stack(maps, axis=1))


@wrong(
    "multi_head_attention",
    says="You multiply by the transposes of W_Q, W_K and W_V, as nn.Linear does with its weight; here all matrices"
    " multiply from the right as they are.",
)
def matrices_transposed(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q = split_heads(X_q @ W_Q.T, n_heads)
    K = split_heads(X_kv @ W_K.T, n_heads)
    V = split_heads(X_kv @ W_V.T, n_heads)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return (merge_heads(z) @ W_O, weights)


@wrong(
    "multi_head_attention",
    says="Where a mask of two axes has as many rows as there are sequences, you take it for a padding mask (B, "
    "T_k); two axes are always queries and keys.",
)
def mask_of_two_axes_for_sequences(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(x @ w, n_heads) for x, w in [(X_q, W_Q), (X_kv, W_K), (X_kv, W_V)])
    if mask is not None:
        mask = np.asarray(mask)
        if mask.ndim == 2 and mask.shape[0] == X_q.shape[0]:
            mask = mask[:, None, None, :]
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return (merge_heads(z) @ W_O, weights)


@wrong(
    "multi_head_attention",
    says="You share out anew what the mask leaves of a softmax over all keys; where a forbidden key has a far "
    "larger score, nothing is left. Exclude forbidden keys before the softmax.",
)
def renormalised_after_the_mask(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q = split_heads(X_q @ W_Q, n_heads)
    K = split_heads(X_kv @ W_K, n_heads)
    V = split_heads(X_kv @ W_V, n_heads)
    z, weights = scaled_dot_product_attention(Q, K, V)
    if mask is not None:
        weights = np.where(mask, weights, 0)
        total = weights.sum(axis=-1, keepdims=True)
        weights = weights / np.where(total == 0, 1, total)
        z = weights @ np.asarray(V)
    return (merge_heads(z) @ W_O, weights)


@wrong(
    "multi_head_attention",
    says="Where both inputs have the same shape, you make keys and values from X_q; they belong to X_kv, whatever "
    "its shape.",
)
def all_from_the_asking_where_shapes_fit(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    X_q.shape[-1]
    if X_q.shape == X_kv.shape:
        qkv = X_q @ np.concatenate([W_Q, W_K, W_V], axis=1)
        Q, K, V = np.split(qkv, 3, axis=-1)
    else:
        Q, K, V = (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V)
    Q, K, V = (split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads))
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return (merge_heads(z) @ W_O, weights)


@wrong(
    "multi_head_attention",
    says="Two things: you multiply by the transposes of W_Q, W_K and W_V; and a reshape alone mixes heads and "
    "tokens when you put the heads together.",
)
def matrices_transposed_and_merged_by_reshape(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    B, T_q, d_model = X_q.shape
    Q = split_heads(X_q @ W_Q.T, n_heads)
    K = split_heads(X_kv @ W_K.T, n_heads)
    V = split_heads(X_kv @ W_V.T, n_heads)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return (z.reshape(B, T_q, d_model) @ W_O, weights)


for name, score in {"thousand": -1000.0, "ten_thousand": -10000.0}.items():
    edited(
        "multi_head_attention",
        f"mask_minus_{name}",
        "scaled_dot_product_attention(",
        attention_with(
            masked=f"np.where(mask is None or mask, s, {score})",
            weights="np.where(mask is None or mask, e / e.sum(axis=-1, keepdims=True), 0.0)",
        )
        + "(",
        says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
        "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
    )


attention_mistakes(
    "multi_head_attention",
    "heads",
    "scaled_by_d_v",
    "divided_by_d_k",
    "no_maximum",
    "weights_first",
    "all_axes_transposed",
)


@right("multi_head_attention")
def heads_in_a_loop(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    B, T_q, d_model = X_q.shape
    T_k, d_head = X_kv.shape[1], d_model // n_heads
    allowed = np.broadcast_to(True if mask is None else mask, (B, n_heads, T_q, T_k))
    output, weights = np.zeros((B, T_q, d_model)), np.zeros((B, n_heads, T_q, T_k))
    for b in range(B):
        for i in range(n_heads):
            own = slice(i * d_head, (i + 1) * d_head)
            q, k, v = X_q[b] @ W_Q[:, own], X_kv[b] @ W_K[:, own], X_kv[b] @ W_V[:, own]
            for t in range(T_q):
                keys = np.flatnonzero(allowed[b, i, t])
                if len(keys):
                    scores = k[keys] @ q[t] / np.sqrt(d_head)
                    powers = np.exp(scores - scores.max())
                    weights[b, i, t, keys] = powers / powers.sum()
            output[b] += weights[b, i] @ v @ W_O[own]  # each head through its own rows of W_O
    return output, weights


@right("multi_head_attention")
def by_einsum(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    d_model = X_q.shape[-1]
    d_head = d_model // n_heads
    W_Q, W_K, W_V = (W.reshape(d_model, n_heads, d_head) for W in (W_Q, W_K, W_V))
    q = np.einsum("btm,mhc->bhtc", X_q, W_Q) / d_head**0.5
    k, v = np.einsum("btm,mhc->bhtc", X_kv, W_K), np.einsum("btm,mhc->bhtc", X_kv, W_V)
    scores = np.einsum("bhic,bhjc->bhij", q, k)
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e30)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    if mask is not None:
        powers = powers * mask
    total = powers.sum(-1, keepdims=True)
    weights = powers / np.where(total == 0, 1, total)
    z = np.einsum("bhij,bhjc->bihc", weights, v).reshape(X_q.shape)
    return z @ W_O, weights


@right("multi_head_attention")
def folded_into_one_axis(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    B, T_q, _ = X_q.shape
    T_k = X_kv.shape[1]

    def fold(X):
        return split_heads(X, n_heads).reshape(B * n_heads, X.shape[1], -1)

    if mask is not None:
        mask = np.broadcast_to(mask, (B, n_heads, T_q, T_k)).reshape(B * n_heads, T_q, T_k)
    z, weights = scaled_dot_product_attention(fold(X_q @ W_Q), fold(X_kv @ W_K), fold(X_kv @ W_V), mask)
    return [merge_heads(z.reshape(B, n_heads, T_q, -1)) @ W_O, weights.reshape(B, n_heads, T_q, T_k)]


@right("multi_head_attention")
def through_the_library(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    as_tensor = lambda A: torch.tensor(np.ascontiguousarray(A))  # noqa: E731
    X_q, X_kv, W_Q, W_K, W_V, W_O = map(as_tensor, (X_q, X_kv, W_Q, W_K, W_V, W_O))
    B, T_q, d_model = X_q.shape
    layer = nn.MultiheadAttention(d_model, n_heads, bias=False, batch_first=True, dtype=X_q.dtype)
    layer.load_state_dict({"in_proj_weight": torch.cat([W_Q.T, W_K.T, W_V.T]), "out_proj.weight": W_O.T})
    if mask is not None:
        mask = ~as_tensor(np.broadcast_to(mask, (B, n_heads, T_q, X_kv.shape[1])))
        mask = mask.reshape(B * n_heads, T_q, -1)
    with torch.no_grad():
        _, weights = layer(X_q, X_kv, X_kv, attn_mask=mask, average_attn_weights=False)
    weights = weights.nan_to_num(0.0)
    z = weights @ (X_kv @ W_V).view(B, -1, n_heads, d_model // n_heads).transpose(1, 2)
    return z.transpose(1, 2).reshape(B, T_q, d_model) @ W_O, weights


# --------------------------------------------------------------------------- exercise 6: MultiHeadAttention

edited(
    "MultiHeadAttention",
    "module_scaled_by_the_root_of_d_model",
    "q.shape[3] ** 0.5",
    "x_q.shape[2] ** 0.5",
    says="Your scale is the root of d_model; a head compares vectors of width d_head, so this width sets its scale.",
)
edited(
    "MultiHeadAttention",
    "module_unscaled",
    " / q.shape[3] ** 0.5",
    "",
    says="Your scores are not divided by anything; look again at the scale in exercise 5.",
)
edited(
    "MultiHeadAttention",
    "module_divided_by_d_head",
    "q.shape[3] ** 0.5",
    "q.shape[3]",
    says="Your scores are divided by d_head; the scale is its square root.",
)
edited(
    "MultiHeadAttention",
    "module_mask_inverted",
    "scores = scores.masked_fill(~mask, -torch.inf)",
    "mask = ~mask; scores = scores.masked_fill(~mask, -torch.inf)",
    says="Your mask works the other way round: masked_fill fills where its argument is True, and here True means "
    "'may attend'.",
)


@wrong(
    "MultiHeadAttention",
    says="Your result does not depend on the mask; see what to do when it is not None.",
    based_on="MultiHeadAttention",
)
class module_mask_ignored:
    def forward(self, x_q, x_kv, mask=None):
        q, k, v = (
            x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)  # (B, h, T, d_head)
            for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv))
        )
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        mask = None
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=3)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        z = (weights @ v).transpose(1, 2).flatten(2)  # (B, T_q, d_model)
        return self.W_O(z), weights


edited(
    "MultiHeadAttention",
    "module_mask_too_late",
    "scores = scores.masked_fill(~mask, -torch.inf)",
    "pass",
    says="You set forbidden weights to zero after the softmax only, so the rest no longer sums to 1; forbidden keys "
    "should not take part in the softmax at all.",
)
edited(
    "MultiHeadAttention",
    "module_nan_for_a_query_without_keys",
    "weights = weights.masked_fill(~mask, 0.0)",
    "pass",
    says="A query that may attend to nothing gets NaN in your module; it should get zeros, and finite gradients.",
)
edited(
    "MultiHeadAttention",
    "module_uniform_for_a_query_without_keys",
    "weights = weights.masked_fill(~mask, 0.0)",
    "weights = torch.where(weights.isnan(), torch.full_like(weights, 1 / weights.shape[3]), weights)",
    says="A query that may attend to nothing attends to all keys equally in your module; it should get zeros.",
)
edited(
    "MultiHeadAttention",
    "module_mask_added",
    "scores = scores.masked_fill(~mask, -torch.inf)",
    "scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -torch.inf)",
    says="You add minus infinity to the scores. Your answers are right, but where a row of the mask is empty the "
    "softmax's NaN flows back into the gradients; masked_fill on the scores keeps it away.",
)
edited(
    "MultiHeadAttention",
    "module_softmax_over_queries",
    "scores.softmax(dim=3)",
    "scores.softmax(dim=2)",
    says="Your softmax runs over the queries: the columns sum to 1. Each query, a row, shares out its own.",
)
edited(
    "MultiHeadAttention",
    "module_softmax_over_heads",
    "scores.softmax(dim=3)",
    "scores.softmax(dim=1)",
    says="Your softmax runs over the heads (dim=1); it should run over the keys, the last axis.",
)
edited(
    "MultiHeadAttention",
    "module_heads_by_view_alone",
    "x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)",
    "x.reshape(x.shape[0], self.n_heads, x.shape[1], -1)",
    says="Your heads hold whole tokens cut in pieces, because a view or reshape alone does not move axes; exercise 1 "
    "shows how.",
)
edited(
    "MultiHeadAttention",
    "module_heads_interleaved",
    "x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)",
    "x.unflatten(2, (-1, self.n_heads)).permute(0, 3, 1, 2)",
    says="Your heads take the columns in turn; head i owns columns that stand next to each other.",
)
edited(
    "MultiHeadAttention",
    "module_merged_by_reshape_alone",
    "(weights @ v).transpose(1, 2).flatten(2)",
    "(weights @ v).reshape(x_q.shape)",
    says="Your weights are right, but a reshape alone mixes heads and tokens when you put the heads together; "
    "transpose first, as in exercise 2.",
)
edited(
    "MultiHeadAttention",
    "module_without_W_O",
    "return self.W_O(z), weights",
    "return z, weights",
    says="W_O is there but never used; the heads side by side still go through it.",
)
edited(
    "MultiHeadAttention",
    "module_one_length_for_both",
    "x.unflatten(2, (self.n_heads, -1))",
    "x.view(x_q.shape[0], x_q.shape[1], self.n_heads, x_q.shape[2] // self.n_heads)",
    says="You split keys and values with the length of x_q; x_kv has a length of its own, T_k.",
)
edited(
    "MultiHeadAttention",
    "module_keys_and_values_from_the_asking",
    "self.W_K(x_kv), self.W_V(x_kv)",
    "self.W_K(x_q), self.W_V(x_q)",
    says="Your keys and values are made from x_q; they belong to the tokens that answer, x_kv.",
)
edited(
    "MultiHeadAttention",
    "module_keys_and_values_swapped",
    "self.W_K(x_kv), self.W_V(x_kv)",
    "self.W_V(x_kv), self.W_K(x_kv)",
    says="Your keys are made with W_V and your values with W_K: check which layer makes which.",
)
edited(
    "MultiHeadAttention",
    "module_weights_averaged",
    "return self.W_O(z), weights",
    "return self.W_O(z), weights.mean(dim=1)",
    says="You return the mean of the maps of all heads, as nn.MultiheadAttention does unless told otherwise; each "
    "head's own map is asked for.",
)
edited(
    "MultiHeadAttention",
    "module_output_only",
    "return self.W_O(z), weights",
    "return self.W_O(z)",
    says="You return the output alone; the weights are asked for, too, as the second of two values.",
)
edited(
    "MultiHeadAttention",
    "module_weights_without_gradient",
    "z = (weights @ v)",
    "z = (weights.detach() @ v)",
    says="Your weights are cut off from the gradient (detach, .data or no_grad), so W_Q and W_K can never learn.",
)
edited(
    "MultiHeadAttention",
    "module_with_bias",
    "self.W_O = nn.Linear(d_model, d_model, bias=False)",
    "self.W_O = nn.Linear(d_model, d_model)",
    says="Your output layer has a bias, which nn.Linear adds unless told otherwise; here no layer has one.",
)
edited(
    "MultiHeadAttention",
    "module_with_a_layer_too_many",
    "self.n_heads = n_heads",
    "self.n_heads = n_heads; self.norm = nn.LayerNorm(d_model)",
    says="Your module has parameters beside the four layers: something that learns and that was not asked for.",
)
edited(
    "MultiHeadAttention",
    "module_always_one_head",
    "self.n_heads = n_heads",
    "self.n_heads = 1",
    says="You use one head of the full width, whatever n_heads is.",
)


@wrong(
    "MultiHeadAttention",
    says="You put two axes in front of every mask; those that have four already then have six. Masks broadcast as "
    "they come.",
    based_on="MultiHeadAttention",
)
class module_two_axes_put_before_every_mask:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if mask is not None:
            mask = mask[None, None]
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        z = (weights @ v).transpose(1, 2).flatten(2)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
    "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
    based_on="MultiHeadAttention",
)
class module_mask_minus_ten_thousand:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -10000.0)
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights * mask
        z = (weights @ v).transpose(1, 2).flatten(2)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="You write zeros into x_kv where it is padding; the caller's tensor changes. The mask on the scores is "
    "enough.",
    based_on="MultiHeadAttention",
)
class module_padding_wiped_out:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        if mask is not None and mask.dim() == 4 and (mask.shape[1:3] == (1, 1)):
            padding = ~mask[:, 0, 0, :, None]
            x_kv.masked_fill_(padding, 0.0)
        B, T_q, d_model = x_q.shape
        T_k = x_kv.shape[1]
        q = self.W_Q(x_q).view(B, T_q, self.n_heads, self.d_head).permute(0, 2, 1, 3)
        k = self.W_K(x_kv).view(B, T_k, self.n_heads, self.d_head).permute(0, 2, 3, 1)
        v = self.W_V(x_kv).view(B, T_k, self.n_heads, self.d_head).permute(0, 2, 1, 3)
        scores = q @ k / self.d_head**0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        z = (weights @ v).transpose(1, 2).reshape(B, T_q, d_model)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="Large scores overflow in your exp; subtract the largest score first, or use softmax, which does it.",
    based_on="MultiHeadAttention",
)
class module_largest_score_not_subtracted:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        e = torch.exp(scores)
        if mask is not None:
            e = e * mask
        weights = e / e.sum(dim=-1, keepdim=True).clamp(min=1e-12)
        z = (weights @ v).transpose(1, 2).flatten(2)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="Where both inputs are one and the same tensor and no mask is given, your tokens see only what comes "
    "before them; None means that everybody sees everything.",
    based_on="MultiHeadAttention",
)
class module_causal_for_one_and_the_same:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        if mask is None and x_q is x_kv:
            T = x_q.shape[1]
            mask = torch.ones(T, T, dtype=torch.bool, device=x_q.device).tril()
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0)
        z = (weights @ v).transpose(1, 2).flatten(2)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="You cut large scores off, so that scores beyond the limit become equal; softmax copes with them as they are.",
    based_on="MultiHeadAttention",
)
class module_scores_cut_off:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.mT / self.d_head**0.5
        scores = torch.clamp(scores, -60, 60)
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        if mask is not None:
            weights = torch.where(mask, weights, torch.zeros_like(weights))
        z = (weights @ v).transpose(1, 2).flatten(2)
        return (self.W_O(z), weights)


@wrong(
    "MultiHeadAttention",
    says="A query that may attend to nothing gets zero weights in your module, but its output averages all values;"
    " both should be zero.",
    based_on="MultiHeadAttention",
)
class module_output_for_a_query_without_keys:
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q = self.W_Q(x_q).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        k = self.W_K(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        v = self.W_V(x_kv).unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)
        scores = q @ k.transpose(-2, -1) / self.d_head**0.5
        weights = scores.softmax(-1)
        if mask is not None:
            empty = ~mask.any(dim=-1, keepdim=True)
            weights = scores.masked_fill(~(mask | empty), float("-inf")).softmax(-1)
        z = (weights @ v).transpose(1, 2).flatten(2)
        if mask is not None:
            weights = weights.masked_fill(empty, 0)
        return (self.W_O(z), weights)


edited(
    "MultiHeadAttention",
    "module_mask_minus_thousand",
    "masked_fill(~mask, -torch.inf)",
    "masked_fill(~mask, -1000.0)",
    says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
    "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
)


@right("MultiHeadAttention")
class ModuleWithEinsum(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.h, self.d_head = n_heads, d_model // n_heads
        for name in ("W_Q", "W_K", "W_V", "W_O"):
            setattr(self, name, nn.Linear(d_model, d_model, bias=False))
        self.register_buffer("scale", torch.tensor(self.d_head**-0.5))

    def forward(self, x_q, x_kv, mask=None):
        B, T_q, _ = x_q.shape
        q = (self.W_Q(x_q) * self.scale).reshape(B, T_q, self.h, self.d_head)
        k = self.W_K(x_kv).reshape(B, -1, self.h, self.d_head)
        v = self.W_V(x_kv).reshape(B, -1, self.h, self.d_head)
        scores = torch.einsum("bihc,bjhc->bhij", q, k)
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), float("-inf"))
        weights = torch.nan_to_num(torch.softmax(scores, dim=-1))
        z = torch.einsum("bhij,bjhc->bihc", weights, v)
        return self.W_O(z.reshape(B, T_q, self.h * self.d_head)), weights


@right("MultiHeadAttention")
class ModuleWithALoop(torch.nn.Module):
    def __init__(self, d_model, n_heads):
        torch.nn.Module.__init__(self)
        self.d_model, self.n_heads = d_model, n_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = (torch.nn.Linear(d_model, d_model, False) for _ in range(4))

    def forward(self, x_q, x_kv, mask=None):
        B, T_q, T_k = x_q.shape[0], x_q.shape[1], x_kv.shape[1]
        Q, K, V = self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv)
        allowed = torch.ones(B, self.n_heads, T_q, T_k, dtype=torch.bool)
        if mask is not None:
            allowed = allowed & mask
        maps, outputs = [], []
        for i, (q, k, v) in enumerate(zip(*(A.chunk(self.n_heads, dim=-1) for A in (Q, K, V)))):
            scores = torch.bmm(q, k.transpose(1, 2)) / (self.d_model // self.n_heads) ** 0.5
            scores[~allowed[:, i]] = -1e9
            weights = torch.softmax(scores, dim=-1) * allowed[:, i]
            maps.append(weights)
            outputs.append(weights @ v)
        return [self.W_O(torch.cat(outputs, dim=-1)), torch.stack(maps, dim=1)]


@right("MultiHeadAttention")
class ModuleWithOwnSoftmax(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_O = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_Q = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        q, k, v = (split_heads(x, self.n_heads) for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv)))
        scores = torch.matmul(q, k.transpose(-2, -1)) / np.sqrt(q.size(-1))
        if mask is None:
            mask = torch.ones_like(scores, dtype=torch.bool)
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True)) * mask
        weights = powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-12)
        return self.W_O(merge_heads(weights @ v)), weights


@right("MultiHeadAttention")
class ModuleWithTheLibrary(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        attend = nn.functional.scaled_dot_product_attention
        q, k, v = (
            W(x).view(len(x), -1, self.n_heads, x.shape[-1] // self.n_heads).transpose(1, 2)
            for W, x in [(self.W_Q, x_q), (self.W_K, x_kv), (self.W_V, x_kv)]
        )
        weights = attend(q, k, torch.eye(k.shape[2]).expand(*k.shape[:3], -1), attn_mask=mask)
        z = attend(q, k, v, attn_mask=mask)
        return self.W_O(z.transpose(1, 2).contiguous().view(*x_q.shape)), weights


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong("split_heads", says="Your heads are part of the batch axis; they are an axis of their own behind it.")
def heads_in_the_batch_axis(X, n_heads):
    B, T, d = X.shape
    parts = X.reshape(B, T, n_heads, d // n_heads).transpose(0, 2, 1, 3)
    return parts.reshape(B * n_heads, T, d // n_heads)


@wrong(
    "split_heads",
    says="You move the width in front of the tokens and reshape from there, which mixes tokens and columns. First "
    "cut the width into heads, then exchange the axes.",
)
def width_moved_to_the_front(X, n_heads):
    B, T, d = X.shape
    return np.swapaxes(X, 1, 2).reshape(B, n_heads, T, d // n_heads)


@wrong(
    "split_heads",
    says="Your heads take the columns in turn, and stand behind the tokens. A head owns neighbouring columns, and "
    "its axis stands before the tokens.",
)
def columns_in_turn_behind(X, n_heads):
    B, T, d = X.shape
    return X.reshape(B, T, d // n_heads, n_heads).swapaxes(-1, -2)


@wrong("merge_heads", says="You add the heads up; they stand side by side, each in columns of its own.")
def heads_added_up_and_repeated(X):
    return np.concatenate([X.sum(axis=1)] * X.shape[1], axis=-1)


@wrong(
    "merge_heads",
    says="You exchange tokens and width, and the reshape then mixes them up. The heads move next to their width, "
    "behind the tokens.",
)
def tokens_swapped_with_the_width(X):
    B, h, T, d = X.shape
    return X.swapaxes(2, 3).reshape(B, h * d, T).reshape(B, T, h * d)


@wrong(
    "merge_heads",
    says="`.T` turns all axes round, so that a reshape meets them in another order. Exchange the heads and the "
    "tokens only.",
)
def all_axes_reversed_first(X):
    B, h, T, d_head = X.shape
    merged = X.T.reshape(T, h * d_head, B)  # (d_head, T, h, B)
    return np.moveaxis(merged, -1, 0)


@wrong(
    "merge_heads",
    says="The columns of your heads alternate, the last head first; each head's columns stay together, in the order "
    "of the heads.",
)
def heads_alternate_backwards(X):
    B, h, T, d = X.shape
    flipped = X[:, ::-1]
    out = np.zeros((B, T, h * d), dtype=X.dtype)
    for i in range(h):
        out[:, :, i::h] = flipped[:, i]
    return out


@wrong("causal_mask", says="Your tokens do not see themselves; each sees all tokens up to itself, and itself.")
def not_itself(T):
    mask = np.tril(np.ones((T, T)), -1).astype(bool)
    mask[0, 0] = True
    return mask


@wrong("causal_mask", says="Your tokens look back through a window of a few tokens; all earlier ones may be seen.")
def window(T):
    window = 3
    mask = np.zeros((T, T), dtype=bool)
    for i in range(T):
        mask[i, max(0, i - window + 1) : i + 1] = True
    return mask


@wrong(
    "causal_mask",
    says="Your mask has axes of size 1 for batch and heads; two axes were asked for, and they are broadcast anyway.",
)
def axes_for_batch_and_heads(T):
    return np.tri(T, T, dtype=bool)[None, None]


@wrong(
    "multi_head_attention",
    says="The weights that you return are averaged over the heads; each head has a map of its own.",
)
def weights_averaged_over_heads_again(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = (split_heads(p, n_heads) for p in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(z) @ W_O, weights.mean(axis=1, keepdims=True).repeat(n_heads, axis=1)


@wrong(
    "multi_head_attention",
    says="You multiply with the transposed matrices, as nn.Linear does with its own; here they stand on the right as "
    "they are.",
)
def matrices_from_the_left(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    def linear(x, W):
        return np.einsum("bti,oi->bto", x, W)

    Q, K, V = linear(X_q, W_Q), linear(X_kv, W_K), linear(X_kv, W_V)
    out, attn = scaled_dot_product_attention(
        split_heads(Q, n_heads), split_heads(K, n_heads), split_heads(V, n_heads), mask
    )
    return linear(merge_heads(out), W_O), attn


@wrong(
    "multi_head_attention",
    says="Where a query may see nothing in one head, you set its whole output to 0; the other heads still have "
    "something to say.",
)
def zero_where_one_head_is_blind(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q = split_heads(X_q @ W_Q, n_heads)
    K = split_heads(X_kv @ W_K, n_heads)
    V = split_heads(X_kv @ W_V, n_heads)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    output = merge_heads(z) @ W_O
    dead = (weights.sum(axis=-1) == 0).any(axis=1)  # (B, T_q)
    return np.where(dead[..., None], 0.0, output), weights


@wrong(
    "multi_head_attention",
    says="You cut the heads out and join them by a reshape alone, which mixes tokens and columns. The axes of heads "
    "and tokens have to be exchanged.",
)
def cut_and_joined_by_reshape(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    B, T_q, d_model = X_q.shape
    d_head = d_model // n_heads
    Q = (X_q @ W_Q).reshape(B, n_heads, -1, d_head)
    K = (X_kv @ W_K).reshape(B, n_heads, -1, d_head)
    V = (X_kv @ W_V).reshape(B, n_heads, -1, d_head)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return z.reshape(B, T_q, d_model) @ W_O, weights


@wrong(
    "multi_head_attention",
    says="You use only the blocks on the diagonal of W_O; every head's part goes through all columns of its rows.",
)
def own_block_of_the_output_matrix(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    d_head = W_Q.shape[1] // n_heads
    outputs, all_weights = [], []
    m = None if mask is None else np.broadcast_to(mask, (X_q.shape[0], n_heads, X_q.shape[1], X_kv.shape[1]))
    for i in range(n_heads):
        own = slice(i * d_head, (i + 1) * d_head)
        z, w = scaled_dot_product_attention(
            X_q @ W_Q[:, own], X_kv @ W_K[:, own], X_kv @ W_V[:, own], None if m is None else m[:, i]
        )
        outputs.append(z @ W_O[own, own])
        all_weights.append(w)
    return np.concatenate(outputs, axis=-1), np.stack(all_weights, axis=1)


@wrong(
    "multi_head_attention",
    says="You hide keys with a large negative number and set only the weights of a blind query to 0 afterwards: its "
    "output is still an average. It has to be 0 as well.",
)
def finite_mask_weights_zeroed(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = split_heads(X_q @ W_Q, n_heads), split_heads(X_kv @ W_K, n_heads), split_heads(X_kv @ W_V, n_heads)
    scores = Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    output = merge_heads(weights @ V) @ W_O
    if mask is not None:
        weights = np.where(mask, weights, 0.0)
    return output, weights


@wrong(
    "multi_head_attention",
    says="You join what a mask says for several heads or queries into one; each head and query has its own.",
)
def mask_of_heads_merged(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask.any(axis=(1, 2), keepdims=True)
    z, weights = scaled_dot_product_attention(
        split_heads(X_q @ W_Q, n_heads), split_heads(X_kv @ W_K, n_heads), split_heads(X_kv @ W_V, n_heads), mask
    )
    return merge_heads(z) @ W_O, weights


@wrong(
    "MultiHeadAttention",
    says="You cut the heads out by a view to (B, h, T, d_head), which mixes tokens and columns. Cut the width "
    "where it stands, as the last axis; only then move the heads to the front.",
)
class view_for_heads(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        B, T_q, d_model = x_q.shape
        T_k = x_kv.shape[1]
        q = self.W_Q(x_q).view(B, self.n_heads, T_q, self.d_head)
        k = self.W_K(x_kv).view(B, self.n_heads, T_k, self.d_head)
        v = self.W_V(x_kv).view(B, self.n_heads, T_k, self.d_head)
        scores = q @ k.transpose(2, 3) / np.sqrt(self.d_head)
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(-1).nan_to_num(0.0)
        return (self.W_O((weights @ v).view(B, T_q, d_model)), weights)


@wrong(
    "MultiHeadAttention",
    says="Your weights are averaged over the heads, and your scale is the root of d_model. Each head has a map, and "
    "its own width is the scale.",
)
class averaged_and_scaled_by_d_model(nn.Module):
    def __init__(self, d_model, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x_q, x_kv, mask=None):
        def split(x):
            return x.reshape(*x.shape[:2], self.n_heads, -1).transpose(1, 2)

        q, k, v = (split(self.W_Q(x_q)), split(self.W_K(x_kv)), split(self.W_V(x_kv)))
        s = q @ k.transpose(-1, -2) / x_q.shape[-1] ** 0.5
        if mask is not None:
            s = s.masked_fill(~mask, float("-inf"))
        w = s.softmax(-1).nan_to_num(0)
        z = (w @ v).transpose(1, 2).reshape(x_q.shape)
        return (self.W_O(z), w.mean(dim=1))


# -------------------------------------------- mistakes that a third collection of answers brought


@wrong(
    "split_heads",
    says="Your heads begin at the columns i * n_heads; head i begins at i * d_head.",
)
def split_from_other_columns(X, n_heads):
    d_head = X.shape[2] // n_heads
    columns = (np.arange(n_heads)[:, None] * n_heads + np.arange(d_head)) % X.shape[2]
    return X[:, :, columns].swapaxes(1, 2)


@wrong(
    "merge_heads",
    says="Your heads move behind the tokens, but where the axes are joined, the numbers of heads and tokens are "
    "exchanged: X comes as (B, h, T, d_head).",
)
def merge_with_sizes_exchanged(X):
    B, h, T, d_head = X.shape
    return X.swapaxes(1, 2).reshape(B, h, T * d_head)


@wrong("merge_heads", says="Your result holds the first sequence alone; all of the batch are to be merged.")
def merge_of_the_first_sequence(X):
    return np.concatenate(list(X[0]), axis=-1)[None]


edited(
    "attention_shapes",
    "shapes_map_heads_first",
    '"map": (B, h, T, T)',
    '"map": (h, B, T, T)',
    says="In your map the heads come before the sequences; the order is (B, h, T, T).",
)
edited(
    "attention_shapes",
    "shapes_z_per_head_with_heads_last",
    '"z_per_head": per_head',
    '"z_per_head": (B, T, d_model // h, h)',
    says="In your averages of the heads the heads stand last, behind the width; they come before the tokens.",
)
edited(
    "padding_mask",
    "padding_sequences_for_queries",
    "[:, None, None, :]",
    "[None, None]",
    says="Your mask is (1, 1, B, T): the sequences stand where the queries belong; they are the first axis.",
)
edited(
    "multi_head_attention",
    "without_W_V",
    "X_kv @ W_V",
    "X_kv",
    says="Your values are the tokens X_kv themselves; they go through W_V.",
)


@wrong(
    "MultiHeadAttention",
    says="You give forbidden keys a finite score in place of minus infinity; allowed scores may be as low or "
    "lower, and then forbidden keys take a share or all of it. Exclude them completely.",
    based_on="MultiHeadAttention",
)
class module_finite_score_and_no_zeros:
    def forward(self, x_q, x_kv, mask=None):
        q, k, v = (
            x.unflatten(2, (self.n_heads, -1)).transpose(1, 2) for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv))
        )
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        if mask is None:
            weights = scores.softmax(dim=3)
        else:
            weights = scores.masked_fill(~mask, -100.0).softmax(dim=3) * mask.any(dim=-1, keepdim=True)
        return self.W_O((weights @ v).transpose(1, 2).flatten(2)), weights


@wrong(
    "MultiHeadAttention",
    says="You write into the result of the softmax, which its gradient needs as it was, so that backward() raises an "
    "error. masked_fill without an underscore and torch.where make new tensors.",
    based_on="MultiHeadAttention",
)
class module_weights_written_into:
    def forward(self, x_q, x_kv, mask=None):
        q, k, v = (
            x.unflatten(2, (self.n_heads, -1)).transpose(1, 2) for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv))
        )
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        if mask is None:
            weights = scores.softmax(dim=3)
        else:
            weights = scores.masked_fill(~mask, -1e30).softmax(dim=3)
            weights[~mask.expand(weights.shape)] = 0.0
        return self.W_O((weights @ v).transpose(1, 2).flatten(2)), weights


@wrong(
    "MultiHeadAttention",
    says="Two things: your scale is the root of d_model, where the width of a head sets it; and a reshape alone mixes "
    "heads and tokens when you put the heads together.",
    based_on="MultiHeadAttention",
)
class module_scaled_by_d_model_and_merged_by_reshape:
    def forward(self, x_q, x_kv, mask=None):
        q, k, v = (
            x.unflatten(2, (self.n_heads, -1)).transpose(1, 2) for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv))
        )
        scores = q @ k.transpose(2, 3) / x_q.shape[2] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=3)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)
        return self.W_O((weights @ v).reshape(x_q.shape)), weights
