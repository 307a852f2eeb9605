# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps3-introduction"}
r"""
# Problem set 3: multi-head attention

You cut the width of the tokens into heads and put it together again, write the two masks that every transformer needs,
and build multi-head attention twice: in NumPy, where every axis is in your hands, and as a PyTorch module that can be
trained. It goes with the chapter *Multi-head attention* of the book. 36 points: 32 are graded automatically, and 4, for
the written answers, by a person. Plan three hours.

**How to work, in two minutes**

1. Type your id into the next cell. Your numbers in exercise 3 are drawn from it.
2. Go from top to bottom and run each cell (Shift + Enter). Write only where you see `# YOUR CODE HERE` (replace that
   line and the `raise NotImplementedError()` below it) or *YOUR ANSWER HERE*. You may add cells of your own; every
   other cell is put back to its original before grading.
3. Under each heading stands how hard the exercise is and how important for what comes later, both out of five, and how
   long it may take. Below the task are hints, folded: open one, try with it, and only then open the next.
4. After each exercise comes a cell with examples. When it runs without an error, you are on the right way; its messages
   say what to look at. The grader runs these examples and further checks, on other inputs, which you do not see.
   Each check counts by itself, so an unfinished exercise still earns points.
5. At the end choose *Restart kernel and run all cells*. What works only because of the order in which you clicked
   will not work for the grader. A cell that fails does not stop the run, and the last cell says where you stand: what
   passes, what fails, and what is still empty.
6. Save, and hand in this one file. Its name does not matter; neither do printed outputs.

An exercise may call the functions of earlier ones. If your earlier function was wrong, the later exercise is judged
again with a right one in its place, so that one mistake costs only once.

**Conventions** in this set

- `B` sequences of `T` tokens each stand in an array `(B, T, d_model)`: tokens in rows, axis 0 for the sequences.
- `h` heads share the width: $d_\text{head} = d_\text{model} / h$, and `n_heads` always divides `d_model`. Head `i` (counted
  from 0) owns the columns `i * d_head` to `(i + 1) * d_head`, the last one not included.
- A mask is Boolean and **`True` means "may attend"**.
- Exercises 1 to 5 take float32 or float64 NumPy arrays, exercise 6 takes float32 tensors. Inputs are never changed. The
  type of what you return is free, except that masks are Boolean. It is compared with the right result to within 1e-6
  (1e-4 where float32 comes in).
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps3-progress"}
# So that "run all" goes on after an error, and the last cell can say where you stand. The grader uses none of it.
import time

started, shell = time.time(), globals().get("get_ipython", lambda: None)()


def note_examples(ran):
    """After each cell: note how its examples went, and let the run go on, unless it was interrupted."""
    title, error = ran.info.raw_cell.partition("\n")[0], ran.error_before_exec or ran.error_in_exec
    if title.startswith("# Examples of "):
        shell.examples[title.removeprefix("# Examples of ")] = error
    if not isinstance(error, KeyboardInterrupt):
        ran.error_before_exec = ran.error_in_exec = None


def where_you_stand():
    """Print which examples pass, which fail, and where nothing is written yet."""
    states = []
    for title, error in getattr(shell, "examples", {}).items():
        empty = isinstance(error, NotImplementedError) or getattr(error, "name", None) == title.split(": ")[1]
        states.append("passes" if error is None else "empty" if empty else "fails")
        print(f"{states[-1]:8}{title}", f"  ({error})"[:80] if states[-1] == "fails" else "")
    if states:
        counts = ", ".join(f"{states.count(state)} {state}" for state in ("passes", "fails", "empty"))
        print(f"Examples: {counts}. (The grader has more checks.) {(time.time() - started) / 60:.1f} minutes.")
        print(f"Is your id {globals().get('student_id')!r}, exactly as your class knows it?")
        if str(globals().get("student_id")).strip() in ("", "..."):
            print("Type it into the cell that says student_id = ..., and run all again.")


if hasattr(shell, "kernel") and not hasattr(shell, "examples"):  # in a notebook, and only once
    shell.examples = {}
    shell.events.register("post_run_cell", note_examples)

# %% nbgrader={"grade_id": "ps3-helpers"}
import zlib

import numpy as np
import torch
from torch import nn


def scaled_dot_product_attention(Q, K, V, mask=None):
    """What you wrote in problem set 2, here with PyTorch's own function. You may call it in exercise 5.

    Q: (..., T_q, d_k). K: (..., T_k, d_k). V: (..., T_k, d_v).
    mask: None or Boolean, broadcastable to (..., T_q, T_k); True = may attend.
    Returns (output, weights) as NumPy arrays: (..., T_q, d_v) and (..., T_q, T_k). A query without a key gets zeros.
    """
    Q, K, V = (torch.tensor(np.array(array), dtype=torch.float64) for array in (Q, K, V))
    if mask is not None:
        mask = torch.tensor(np.array(mask))
    one_value_per_key = torch.eye(K.shape[-2], dtype=torch.float64).expand(*K.shape[:-1], -1)
    weights = nn.functional.scaled_dot_product_attention(Q, K, one_value_per_key, attn_mask=mask)
    weights = weights.nan_to_num()  # older versions of PyTorch give NaN to a query without a key
    return (weights @ V).numpy(), weights.numpy()


def shape_numbers(student_id):
    """The sizes of exercise 3 for this id: B, T, d_model, h; they and d_model / h are all different."""
    rng = np.random.default_rng(zlib.crc32(str(student_id).strip().encode()))
    while True:
        B, T, h, d_head = rng.integers([2, 3, 2, 6], [10, 20, 9, 17]).tolist()
        if len({B, T, h, d_head, h * d_head}) == 5:
            return B, T, h * d_head, h


# %% [markdown] nbgrader={"grade_id": "split-heads-task"}
"""
## Exercise 1: one width, several heads (4 points)

*Difficulty ●●○○○ · importance ●●●●● · about 20 minutes*

Cut the width of every token into `n_heads` pieces and give each head an array of its own: `(B, T, d_model)` becomes
`(B, h, T, d_head)`. Head `i` gets the columns `i * d_head : (i + 1) * d_head` of every token. Exactly three axes come
in, and `n_heads` divides `d_model`. (What happens otherwise is not checked.)

There is a one-line answer that has the right shape and mixes tokens. The examples below tell the two apart.

<details><summary>Hint 1</summary>

Take a batch of one, two tokens of width 4, holding 0 to 7, and two heads. What must head 0 hold? Write it down before
you code.

</details>

<details><summary>Hint 2</summary>

A reshape keeps the order of the numbers. Which axis can be cut in two without moving any of them?

</details>

<details><summary>Hint 3</summary>

Two steps: one cuts an axis, one moves axes. The one-line answer that mixes tokens tries to do both at once.

</details>
"""


# %% nbgrader={"grade_id": "split-heads", "solution": true}
def split_heads(X, n_heads):
    """The heads' parts of the tokens, one array (T, d_head) for each sequence and head.

    X: tokens (B, T, d_model). n_heads: a whole number h that divides d_model.
    Returns (B, h, T, d_head) with d_head = d_model / h; head i owns columns i*d_head to (i+1)*d_head.
    X is not changed.
    """
    ### BEGIN SOLUTION
    B, T, d_model = X.shape
    # the width falls into (h, d_head) where it stands, last; then the heads move in front of the tokens
    return X.reshape(B, T, n_heads, d_model // n_heads).swapaxes(1, 2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "split-heads-tests", "points": 4}
# Examples of exercise 1: split_heads
# Three tokens of width 4. The first digit is the token, the second the column.
tokens = np.array([[[10, 11, 12, 13], [20, 21, 22, 23], [30, 31, 32, 33.0]]])
heads = split_heads(tokens, 2)
assert heads is not None, "split_heads returned None. Is there a return?"
assert np.shape(heads) == (1, 2, 3, 2), (
    f"One sequence, two heads, three tokens, width 2: (1, 2, 3, 2), not {np.shape(heads)}."
)
heads = np.asarray(heads)
assert not np.allclose(heads[0, 0], [[10, 11], [12, 13], [20, 21]]), (
    "Head 0 holds 10, 11, 12, 13: all of token 1. A reshape alone reads the numbers off in order; it cannot bring "
    "the heads in front of the tokens. Which reshape leaves the tokens where they are?"
)
assert not np.allclose(heads[0, 0], [[10, 12], [20, 22], [30, 32]]), (
    "Head 0 holds every second column; it owns the first half of the width."
)
assert np.allclose(heads[0, 0], [[10, 11], [20, 21], [30, 31]]), "Head 0 owns columns 0 and 1 of every token."
assert np.allclose(heads[0, 1], [[12, 13], [22, 23], [32, 33]]), "Head 1 owns columns 2 and 3 of every token."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("each head holds its own columns of all tokens, in several sequences", points=2)
def _(rng):
    for B, T, h, d_head in [(2, 5, 3, 4), (4, 2, 5, 3), (3, 7, 2, 6)]:
        agrees(split_heads, rng.normal(size=(B, T, h * d_head)), h)


@check("one head, heads of width 1, one token, one sequence, equal sizes, float32, views", points=1)
def _(rng):
    for B, T, h, d_head in [(2, 5, 1, 6), (2, 5, 6, 1), (3, 1, 2, 4), (1, 5, 3, 2), (4, 4, 4, 4), (1, 1, 1, 1)]:
        agrees(split_heads, rng.normal(size=(B, T, h * d_head)), h)
    X = rng.normal(size=(2, 5, 12))
    agrees(split_heads, X.astype(np.float32), 3)
    agrees(split_heads, np.asfortranarray(X), 3)
    agrees(split_heads, np.repeat(X, 2, axis=2)[:, :, ::2], 4)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "merge-heads-task"}
"""
## Exercise 2: and back (3 points)

*Difficulty ●●○○○ · importance ●●●●● · about 15 minutes*

Put the heads side by side again: `(B, h, T, d_head)` becomes `(B, T, h * d_head)`. The columns of head 0 come first,
then those of head 1 and so on, so that `merge_heads(split_heads(X, h))` is `X`. That alone proves little: two wrong
functions can undo each other, too. Exactly four axes come in.

<details><summary>Hint 1</summary>

Two axes can become one if they are neighbours. Which two must become neighbours here, and in which order?

</details>

<details><summary>Hint 2</summary>

The two steps of exercise 1, undone in the opposite order.

</details>

<details><summary>Hint 3</summary>

First move, then one reshape to three axes. To see whether it is right, fill each head with its own number.

</details>
"""


# %% nbgrader={"grade_id": "merge-heads", "solution": true}
def merge_heads(X):
    """The heads' parts side by side again, as one row for each token.

    X: (B, h, T, d_head). Returns (B, T, h * d_head): columns i*d_head to (i+1)*d_head come from head i.
    X is not changed.
    """
    ### BEGIN SOLUTION
    B, h, T, d_head = X.shape
    return X.swapaxes(1, 2).reshape(B, T, h * d_head)
    ### END SOLUTION


# %% nbgrader={"grade_id": "merge-heads-tests", "points": 3}
# Examples of exercise 2: merge_heads
# Two heads, three tokens, width 2: the hundreds are the head, the tens the token.
heads = np.array([[[[10, 11], [20, 21], [30, 31]], [[110, 111], [120, 121], [130, 131.0]]]])
merged = merge_heads(heads)
assert merged is not None, "merge_heads returned None. Is there a return?"
assert np.shape(merged) == (1, 3, 4), (
    f"One sequence, three tokens, width 2 + 2: the shape is (1, 3, 4), not {np.shape(merged)}."
)
merged = np.asarray(merged)
assert not np.allclose(merged[0, 0], [10, 11, 20, 21]), (
    "Row 0 holds two tokens of head 0. The heads have to move next to their width before the reshape."
)
assert not np.allclose(merged[0, 0], [10, 110, 11, 111]), (
    "Row 0 takes a column of each head in turn; all columns of head 0 come before those of head 1."
)
assert np.allclose(merged[0], [[10, 11, 110, 111], [20, 21, 120, 121], [30, 31, 130, 131]]), (
    "Row t is what head 0 says about token t, followed by what head 1 says about it."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare


@check("the heads of each token stand side by side, in order; splitting is undone", points=1)
def _(rng):
    for B, h, T, d_head in [(2, 3, 5, 4), (4, 5, 2, 3), (3, 2, 7, 6)]:
        agrees(merge_heads, rng.normal(size=(B, h, T, d_head)))
    X = rng.normal(size=(2, 5, 12))
    heads = np.ascontiguousarray(X.reshape(2, 5, 3, 4).swapaxes(1, 2))
    compare(agrees(merge_heads, heads), X, "the tokens after splitting and merging")


@check("one head, heads of width 1, one token, one sequence, equal sizes, float32, views", points=1)
def _(rng):
    for B, h, T, d_head in [(2, 1, 5, 6), (2, 6, 5, 1), (3, 2, 1, 4), (1, 3, 5, 2), (4, 4, 4, 4), (1, 1, 1, 1)]:
        agrees(merge_heads, rng.normal(size=(B, h, T, d_head)))
    X = rng.normal(size=(2, 3, 5, 4))
    agrees(merge_heads, X.astype(np.float32))
    agrees(merge_heads, np.asfortranarray(X))
    agrees(merge_heads, np.repeat(X, 2, axis=3)[..., ::2])
    agrees(merge_heads, rng.normal(size=(2, 5, 3, 4)).swapaxes(1, 2))


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "attention-shapes-task"}
"""
## Exercise 3: predict the shapes (4 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 15 minutes*

Before a line of attention is written: a batch of `B` sequences of `T` tokens of width `d_model` goes through multi-head
self-attention with `h` heads. Which shapes do these arrays have? Give each as a tuple of whole numbers, in the order
of the axes used in this set, with **your** numbers (run the cell to see them).

| entry | what it is |
|---|---|
| `"tokens"` | the input |
| `"q"`, `"k"`, `"v"` | queries, keys, values **after** `split_heads` |
| `"map"` | the attention weights of all heads |
| `"z_per_head"` | the weighted averages of the values, each head its own |
| `"z"` | the heads put together by `merge_heads` |

Collect them in a dict called `attention_shapes`. Write down the numbers first; then, if you like, check them with code.
A point each is given for q, k and v together, for the map, and for the two z together; the fourth is for the cell below.

<details><summary>Hint 1</summary>

How many tables of weights are there in the whole batch, and how large is each?

</details>

<details><summary>Hint 2</summary>

*Shapes: predict, then look* in the chapter. Which axis does `split_heads` make shorter, and which one is new?

</details>

<details><summary>Hint 3</summary>

Four of the seven have one shape, two have another, and one is like no other.

</details>
"""

# %% nbgrader={"grade_id": "attention-shapes", "solution": true}
B, T, d_model, h = shape_numbers(student_id)
print(f"B = {B} sequences, T = {T} tokens, d_model = {d_model}, h = {h} heads")

# Bind attention_shapes: a dict with "tokens", "q", "k", "v", "map", "z_per_head" and "z", each a tuple.
### BEGIN SOLUTION
per_head = (B, h, T, d_model // h)
attention_shapes = {
    "tokens": (B, T, d_model),
    "q": per_head,
    "k": per_head,
    "v": per_head,
    "map": (B, h, T, T),
    "z_per_head": per_head,
    "z": (B, T, d_model),
}
### END SOLUTION

# %% nbgrader={"grade_id": "attention-shapes-tests", "points": 4}
# Examples of exercise 3: attention_shapes
assert isinstance(attention_shapes, dict), 'attention_shapes should be a dict such as {"tokens": (2, 3, 4), ...}.'
for entry in ["tokens", "q", "k", "v", "map", "z_per_head", "z"]:
    assert entry in attention_shapes, f'The entry "{entry}" is missing.'
    assert np.ndim(attention_shapes[entry]) == 1, f'"{entry}" should be a tuple of whole numbers.'
sequences, length, width, _ = shape_numbers(student_id)
assert tuple(attention_shapes["tokens"]) == (sequences, length, width), (
    "The tokens are (B, T, d_model), with the numbers printed above. (Are these the numbers of the id you typed?)"
)
for entry in ["q", "k", "v", "z_per_head", "z"]:
    assert np.prod(attention_shapes[entry]) == sequences * length * width, (
        f'"{entry}": splitting and merging only move numbers about. Multiply the sizes: as many as the tokens have.'
    )
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, to_array


def judge_shapes(*entries):
    B, T, d_model, h = shape_numbers(student_id)
    per_head = [B, h, T, d_model // h]
    right = {"q": per_head, "k": per_head, "v": per_head, "z_per_head": per_head}
    right |= {"map": [B, h, T, T], "z": [B, T, d_model]}
    if not isinstance(attention_shapes, dict):
        fail("attention_shapes should be a dict of tuples.")
    for entry in entries:
        if entry not in attention_shapes:
            fail(f'The entry "{entry}" is missing.')
        found = to_array(attention_shapes[entry], f'"{entry}"')
        if found.shape != (len(right[entry]),):
            fail(f'"{entry}" does not have the right number of axes.')
        compare(found, right[entry], f'"{entry}"')


@check("queries, keys and values", points=1)
def _(rng):
    judge_shapes("q", "k", "v")


@check("the attention map", points=1)
def _(rng):
    judge_shapes("map")


@check("the weighted averages, before and after the heads are put together", points=1)
def _(rng):
    judge_shapes("z_per_head", "z")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "masks-task"}
"""
## Exercise 4: who may look where (2 + 3 points)

*Difficulty ●●○○○ · importance ●●●●● · about 25 minutes*

**The causal mask.** When a model learns to predict the next token, a token may look at itself and at what came before
it, not at what comes after. Write `causal_mask(T)`: a Boolean array `(T, T)`, row = query, column = key. `True` means
"may attend", and the diagonal is `True`.

<details><summary>Hint 1</summary>

Draw the table for four tokens: the row looks, the column is looked at. On which side of the diagonal is `True`?

</details>

<details><summary>Hint 2</summary>

There is a picture in *Padding and causal masks*. NumPy can make triangles; or compare the number of a row with that
of a column.

</details>

<details><summary>Hint 3</summary>

Whatever you take: what is its dtype, and what stands on the diagonal?

</details>
"""


# %% nbgrader={"grade_id": "causal-mask", "solution": true}
def causal_mask(T):
    """Which token may attend to which, if none may look ahead.

    T: number of tokens (>= 1).
    Returns a Boolean array (T, T): True in row i, column j if token i may attend to token j.
    """
    ### BEGIN SOLUTION
    return np.tri(T, dtype=bool)
    ### END SOLUTION


# %% nbgrader={"grade_id": "causal-mask-tests", "points": 2}
# Examples of exercise 4: causal_mask
mask = causal_mask(3)
assert mask is not None, "causal_mask returned None. Is there a return?"
assert np.shape(mask) == (3, 3), f"Three tokens: the mask is (3, 3), not {np.shape(mask)}."
mask = np.asarray(mask)
assert mask.dtype == bool, f"A mask holds True and False (dtype bool); yours has dtype {mask.dtype}."
assert mask.diagonal().all(), "Every token may look at itself: the diagonal is True."
assert mask[2].all(), "The last token may look at all three."
assert not mask[0, 1:].any(), "Row 0 is the first token, a query; it may not look at the two that come after it."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("sequences of other lengths, one token among them", points=1)
def _(rng):
    for T in [1, 2, 5, 8, 17]:
        agrees(causal_mask, T)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "padding-mask-task"}
"""
**The padding mask.** Sequences of unequal length are filled up to a common length `T` with padding at the end, which
nobody may look at. Write `padding_mask(lengths, T)`: a Boolean array `(B, 1, 1, T)`, in which entry `[b, 0, 0, j]` is
`True` if key `j` of sequence `b` is a token and `False` if it is padding. The two axes of size 1 stand for the heads and
for the queries: the mask is the same for all of them and broadcasts to `(B, h, T_q, T)`.

`lengths` is a list or an array of `B` whole numbers from 0 to `T`; none of them needs to reach `T`.

<details><summary>Hint 1</summary>

For `lengths = [2, 0]` and T = 3: write down both rows.

</details>

<details><summary>Hint 2</summary>

One comparison makes `(B, T)`: the places, `(T,)`, against the lengths. Which of the two needs an axis of size 1, and
where?

</details>

<details><summary>Hint 3</summary>

Afterwards two more axes of size 1. (A list has no axes.)

</details>
"""


# %% nbgrader={"grade_id": "padding-mask", "solution": true}
def padding_mask(lengths, T):
    """Which keys are tokens and not padding.

    lengths: a list or array of B whole numbers, 0 <= length <= T. T: the length after padding.
    Returns a Boolean array (B, 1, 1, T): True at [b, 0, 0, j] if j < lengths[b]. `lengths` is not changed.
    """
    ### BEGIN SOLUTION
    lengths = np.asarray(lengths)
    return (np.arange(T) < lengths[:, None])[:, None, None, :]
    ### END SOLUTION


# %% nbgrader={"grade_id": "padding-mask-tests", "points": 3}
# Examples of exercise 4: padding_mask
mask = padding_mask([2, 4], 4)
assert mask is not None, "padding_mask returned None. Is there a return?"
assert np.shape(mask) == (2, 1, 1, 4), (
    f"Two sequences padded to 4: the mask is (2, 1, 1, 4), with axes of size 1 for heads and queries. "
    f"Yours is {np.shape(mask)}."
)
mask = np.asarray(mask)
assert mask.dtype == bool, f"A mask holds True and False (dtype bool); yours has dtype {mask.dtype}."
assert mask[1].all(), "The second sequence has 4 tokens and no padding: all True."
assert mask[0, 0, 0, 0] and not mask[0, 0, 0, 3], "True stands for a token, False for padding, which comes at the end."
assert mask[0].sum() == 2, "The first sequence has two tokens, so two keys may be attended to."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("other batches, as lists and as arrays; padding beyond the longest sequence", points=1)
def _(rng):
    for B, T in [(3, 5), (5, 3), (7, 12)]:
        lengths = rng.integers(1, T + 1, size=B)
        agrees(padding_mask, lengths.tolist(), T)
        agrees(padding_mask, lengths, T)
        agrees(padding_mask, lengths.astype(np.int32), T + 2)


@check("an empty sequence, one sequence, one token, no padding at all", points=1)
def _(rng):
    for lengths, T in [([0, 3, 5], 6), ([4], 7), ([1, 0], 1), ([5, 5, 5], 5), ([1], 1), ([2, 0, 0, 1], 2)]:
        agrees(padding_mask, lengths, T)
        agrees(padding_mask, np.array(lengths), T)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "multi-head-attention-task"}
r"""
## Exercise 5: multi-head attention (8 points)

*Difficulty ●●●○○ · importance ●●●●● · about 35 minutes*

Tokens `X_q` ask and tokens `X_kv` answer (for self-attention both are the same array). With $Q = X_qW_Q$,
$K = X_{kv}W_K$, $V = X_{kv}W_V$, split into heads,

$$\text{weights}_i = \operatorname{softmax}\!\left(\frac{Q_iK_i^\top}{\sqrt{d_\text{head}}}\right), \qquad
z_i = \text{weights}_i\,V_i, \qquad \text{output} = [z_0 \mid z_1 \mid \dots \mid z_{h-1}]\;W_O$$

There are no biases. The four matrices are `(d_model, d_model)`, and exactly the shapes of the docstring come in.

- **Weights.** Return those of all heads, `(B, h, T_q, T_k)`, not their mean.
- **Masks.** `mask` is `None` or a Boolean array that broadcasts to `(B, h, T_q, T_k)`: `(T_q, T_k)`, `(B, 1, 1, T_k)`,
  `(B, 1, T_q, T_k)`, `(1, h, T_q, T_k)` and `(B, h, T_q, T_k)` all occur. Keys that may not be attended to have no
  influence at all. A query that may attend to nothing gets zeros in the weights of that head and zeros from that head.
- **Large scores.** Scores up to ±10,000 must not overflow.
- Sizes of 1 work, and `T_q` and `T_k` may differ.

You may call `scaled_dot_product_attention`, which stands at the top of this notebook and takes any leading axes, and
your functions from exercises 1 and 2.

**A picture** (four heads, four maps of the same tokens; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
X, (W_Q, W_K, W_V, W_O) = rng.normal(size=(1, 8, 16)), rng.normal(size=(4, 16, 16)) / 3
_, weights = multi_head_attention(X, X, W_Q, W_K, W_V, W_O, n_heads=4)
for ax, head in zip(plt.subplots(1, 4, figsize=(10, 3))[1], weights[0], strict=True):
    ax.imshow(head, cmap="Blues", vmin=0)
plt.show()
```

<details><summary>Hint 1</summary>

Follow one array from `(B, T_q, d_model)` to `(B, T_q, d_model)`: which shapes does it have on the way?

</details>

<details><summary>Hint 2</summary>

*The definition* in the chapter. Which width stands under the root, and what is done with the heads' results at the
very end?

</details>

<details><summary>Hint 3</summary>

Project, split, attend, merge, project. You have functions for three of the five; the mask goes to the attention as it
is.

</details>
"""


# %% nbgrader={"grade_id": "multi-head-attention", "solution": true}
def multi_head_attention(X_q, X_kv, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    """Attention of the tokens X_q over the tokens X_kv with several heads.

    X_q: (B, T_q, d_model). X_kv: (B, T_k, d_model). W_Q, W_K, W_V, W_O: (d_model, d_model), multiplied from the right.
    n_heads: h, which divides d_model. mask: None or Boolean, broadcastable to (B, h, T_q, T_k); True = may attend.
    Returns (output, weights): output (B, T_q, d_model), weights (B, h, T_q, T_k). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    Q, K, V = (split_heads(X, n_heads) for X in (X_q @ W_Q, X_kv @ W_K, X_kv @ W_V))  # (B, h, T, d_head)
    z, weights = scaled_dot_product_attention(Q, K, V, mask)
    return merge_heads(z) @ W_O, weights
    ### END SOLUTION


# %% nbgrader={"grade_id": "multi-head-attention-tests", "points": 8}
# Examples of exercise 5: multi_head_attention
# One token of width 4 asks two others, with two heads of width 2 and identity matrices for W_Q, W_K and W_V.
# Head 0 has the scores ln 3 and 0, head 1 the scores 0 and ln 3: they look at different tokens.
asking = np.sqrt(2) * np.log(3) * np.array([[[1, 0, 0, 1.0]]])
answering = np.array([[[1, 0, 5, 0], [0, 2, 0, 1.0]]])
same, to_output = np.eye(4), np.eye(4)
to_output[0, 3] = 1  # column 0 of what the heads say is also added to column 3 of the output
result = multi_head_attention(asking, answering, same, same, same, to_output, 2)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (1, 2, 1, 2), (
    f"One sequence, two heads, one query, two keys: weights (1, 2, 1, 2), not {np.shape(weights)}."
)
assert np.shape(output) == (1, 1, 4), f"One sequence, one asking token, width 4: (1, 1, 4), not {np.shape(output)}."
assert np.allclose(weights.sum(axis=-1), 1), "The weights of a query sum to 1 in each head."
assert not np.allclose(weights[0, 0], [0.685, 0.315], atol=1e-3), (
    "[.685, .315] comes from a division by the root of d_model. A head compares vectors of width d_head."
)
assert np.allclose(weights[0, 0], [[0.75, 0.25]]), "Head 0 compares columns 0 and 1: scores ln 3 and 0, weights 3 : 1."
assert np.allclose(weights[0, 1], [[0.25, 0.75]]), "Head 1 compares columns 2 and 3: scores 0 and ln 3."
assert not np.allclose(output, [[[0.75, 0.5, 1.25, 0.75]]]), (
    "[.75, .5, 1.25, .75] is what the two heads say, side by side. It still goes through W_O."
)
assert np.allclose(output, [[[0.75, 0.5, 1.25, 1.5]]]), (
    "The heads give [.75, .5] and [1.25, .75], side by side; W_O (from the right) makes [.75, .5, 1.25, 1.5] of it."
)

# The second token is padding; then both are.
mask = np.array([[[[True, False]]]])
output, weights = map(np.asarray, multi_head_attention(asking, answering, same, same, same, to_output, 2, mask))
assert np.allclose(weights, [[[[1, 0]], [[1, 0]]]]), "With one key left, it gets all the attention of both heads."
assert np.allclose(output, [[[1, 0, 5, 1]]]), "With one key left, the heads give its value, [1, 0] and [5, 0]."
output, weights = map(
    np.asarray, multi_head_attention(asking, answering, same, same, same, to_output, 2, np.zeros_like(mask))
)
assert np.allclose(weights, 0) and np.allclose(output, 0), "A query that may attend to nothing gets zeros, not NaN."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, uses
from set_checks import some_mask

uses("split_heads", "merge_heads")
NAMES = ("output", "weights")


def inputs(rng, B=2, T_q=5, T_k=7, h=3, d_head=4):
    d_model = h * d_head
    matrices = rng.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)
    matrices[:2] *= 1.5  # scores of some size, so that the scale matters
    return rng.normal(size=(B, T_q, d_model)), rng.normal(size=(B, T_k, d_model)), *matrices, h


@check("a batch in which all sizes differ; permuted keys permute the weights", points=2)
def _(rng):
    agrees(multi_head_attention, *inputs(rng), names=NAMES)
    agrees(multi_head_attention, *inputs(rng, B=4, T_q=6, T_k=3, h=2, d_head=5), names=NAMES)
    X_q, X_kv, *rest = inputs(rng, B=3, T_q=2, T_k=6, h=4, d_head=5)
    output, weights = agrees(multi_head_attention, X_q, X_kv, *rest, names=NAMES)
    order = rng.permutation(6)
    again = agrees(multi_head_attention, X_q, X_kv[:, order], *rest, names=NAMES)
    compare(again[0], np.asarray(output), "output after the answering tokens changed places")
    compare(again[1], np.asarray(weights)[..., order], "weights after the answering tokens changed places")


@check("masks: for all, for each sequence, for each head, for both; causal", points=2)
def _(rng):
    B, T_q, T_k, h = 2, 5, 7, 3
    for shape in [(T_q, T_k), (B, 1, 1, T_k), (B, 1, T_q, T_k), (1, h, T_q, T_k), (B, h, T_q, T_k)]:
        agrees(multi_head_attention, *inputs(rng), some_mask(rng, *shape), names=NAMES)
    agrees(multi_head_attention, *inputs(rng), mask=np.ones((B, 1, T_q, T_k), dtype=bool), names=NAMES)
    # two sequences and two heads: an axis mixed up with another does not show in the shape
    agrees(multi_head_attention, *inputs(rng, h=2), some_mask(rng, 2, 1, 5, 7), names=NAMES)
    agrees(multi_head_attention, *inputs(rng, h=2), some_mask(rng, 1, 2, 5, 7), names=NAMES)
    agrees(multi_head_attention, *inputs(rng, B=5), some_mask(rng, 5, 7), names=NAMES)  # as many queries as sequences
    X, _, *rest = inputs(rng, T_q=6)
    causal = np.tri(6, dtype=bool)
    before, _ = agrees(multi_head_attention, X, X, *rest, causal, names=NAMES)
    changed = X.copy()
    changed[:, 4:] += 1
    after, _ = agrees(multi_head_attention, changed, changed, *rest, mask=causal, names=NAMES)
    compare(np.asarray(after)[:, :4], np.asarray(before)[:, :4], "output before the place where the tokens changed")


@check("queries that may attend to nothing get zeros, and the others are not disturbed", points=1)
def _(rng):
    mask = some_mask(rng, 2, 3, 5, 7)
    mask[0, 1, 2] = mask[1, 0, 4] = mask[1, 2, 4] = False
    agrees(multi_head_attention, *inputs(rng), mask, names=NAMES)
    agrees(multi_head_attention, *inputs(rng), np.array([True, False])[:, None, None, None], names=NAMES)
    agrees(multi_head_attention, *inputs(rng), mask=np.zeros((5, 7), dtype=bool), names=NAMES)


@check("large scores, also those of keys that are masked out", points=1)
def _(rng):
    for _ in range(3):
        X_q, X_kv, W_Q, W_K, W_V, W_O, h = inputs(rng)
        d_head = X_q.shape[-1] // h
        Q, K = ((X @ W).reshape(2, -1, h, d_head).swapaxes(1, 2) for X, W in [(X_q, W_Q), (X_kv, W_K)])
        largest = np.abs(Q @ K.swapaxes(-1, -2) / np.sqrt(d_head)).max()
        arguments = X_q, X_kv, 0.9e4 / largest * W_Q, W_K, W_V, W_O, h
        agrees(multi_head_attention, *arguments, names=NAMES)
        agrees(multi_head_attention, *arguments, some_mask(rng, 2, 1, 5, 7), names=NAMES)
    # all keys that may be attended to have the score -10,000, the others 10,000
    mask = some_mask(rng, 2, 1, 1, 7)
    X_kv = np.where(mask[:, 0, 0, :, None], -1.0, 1.0) * np.ones(12)
    matrices = 100 * np.eye(12), 50 * np.eye(12), *rng.normal(size=(2, 12, 12))
    agrees(multi_head_attention, np.ones((2, 5, 12)), X_kv, *matrices, 3, mask, names=NAMES)


@check("one head, heads of width 1, one token, one sequence, equal sizes, float32, views", points=1)
def _(rng):
    for sizes in [
        dict(h=1, d_head=6),
        dict(h=6, d_head=1),
        dict(T_q=1),
        dict(T_k=1),
        dict(B=1),
        dict(B=3, T_q=3, T_k=3, h=3, d_head=3),
        dict(B=1, T_q=1, T_k=1, h=1, d_head=1),
    ]:
        agrees(multi_head_attention, *inputs(rng, **sizes), names=NAMES)
    *arrays, h = inputs(rng)
    agrees(multi_head_attention, *[array.astype(np.float32) for array in arrays], h, names=NAMES)
    X_q, X_kv, W_Q, *rest = arrays
    view = np.repeat(X_kv, 2, axis=1)[:, ::2]
    mask = np.asfortranarray(some_mask(rng, 2, 1, 5, 7))
    agrees(multi_head_attention, np.asfortranarray(X_q), view, np.asfortranarray(W_Q), *rest, h, mask, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "multi-head-module-task"}
r"""
## Exercise 6: a module that can learn (8 points)

*Difficulty ●●●○○ · importance ●●●●● · about 40 minutes*

Now the same as a PyTorch module. `MultiHeadAttention(d_model, n_heads)` has exactly four layers with parameters, all
`nn.Linear(d_model, d_model, bias=False)` and called `W_Q`, `W_K`, `W_V` and `W_O`, and no dropout. Its `forward(x_q, x_kv, mask=None)`
returns `(output, weights)` as in exercise 5, with float32 tensors, `(B, T_q, d_model)` and `(B, h, T_q, T_k)`.

- With the same weights it equals PyTorch's own `nn.MultiheadAttention(d_model, n_heads, bias=False, batch_first=True)`, as
  the cell below shows. (Yours is not to use it: a module of that kind keeps its weights elsewhere.)
- Masks are `torch.bool`, `True` means "may attend", and they broadcast to `(B, h, T_q, T_k)` in the same shapes as in
  exercise 5. A query that may attend to nothing gets zeros in weights and output.
- Gradients reach all four layers, and they stay finite when a row of the mask is empty. (Scores of $-\infty$ in a
  whole row become NaN in the softmax. `masked_fill` before it keeps this NaN away from the gradients of the scores;
  an added $-\infty$ does not.)
- Scores up to ±10,000 do not overflow.

Work with tensors throughout, and write the splitting and merging anew with their methods (`view`, `unflatten`,
`transpose`, …): what goes through NumPy has no gradient.

<details><summary>Hint 1</summary>

Which steps of exercise 5 have a tensor method of the same name, and which one has another?

</details>

<details><summary>Hint 2</summary>

*The same in PyTorch* in the chapter. Which value do forbidden scores get before the softmax, and what has to be done
after it for a row without a `True`?

</details>

<details><summary>Hint 3</summary>

`__init__`: four layers and the number of heads. `forward`: project, split, scores, masked softmax, average, merge,
`W_O`. `masked_fill` wants the places that may *not* be seen.

</details>
"""


# %% nbgrader={"grade_id": "multi-head-module", "solution": true}
class MultiHeadAttention(nn.Module):
    """Multi-head attention with bias-free layers W_Q, W_K, W_V and W_O."""

    def __init__(self, d_model, n_heads):
        """d_model: width of the tokens. n_heads: number of heads, which divides d_model."""
        super().__init__()
        ### BEGIN SOLUTION
        self.n_heads = n_heads
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, d_model, bias=False)
        self.W_V = nn.Linear(d_model, d_model, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x_q, x_kv, mask=None):
        """Attention of the tokens x_q (B, T_q, d_model) over the tokens x_kv (B, T_k, d_model).

        mask: None or torch.bool, broadcastable to (B, h, T_q, T_k); True = may attend.
        Returns (output, weights): output (B, T_q, d_model), weights (B, h, T_q, T_k). The inputs are not changed.
        """
        ### BEGIN SOLUTION
        q, k, v = (
            x.unflatten(2, (self.n_heads, -1)).transpose(1, 2)  # (B, h, T, d_head)
            for x in (self.W_Q(x_q), self.W_K(x_kv), self.W_V(x_kv))
        )
        scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=3)
        if mask is not None:
            weights = weights.masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        z = (weights @ v).transpose(1, 2).flatten(2)  # (B, T_q, d_model)
        return self.W_O(z), weights
        ### END SOLUTION


# %% nbgrader={"grade_id": "multi-head-module-tests", "points": 8}
# Examples of exercise 6: MultiHeadAttention
model = MultiHeadAttention(8, 2)
theirs = nn.MultiheadAttention(8, 2, bias=False, batch_first=True)
for name in ["W_Q", "W_K", "W_V", "W_O"]:
    layer = getattr(model, name)
    assert tuple(layer.weight.shape) == (8, 8), f"{name} should be nn.Linear(d_model, d_model, bias=False)."
    assert layer.bias is None, f"{name} should have no bias."

# The same weights for both. Theirs keeps those of queries, keys and values in one matrix.
torch.manual_seed(0)
matrices = {f"{name}.weight": torch.randn(8, 8) / 2 for name in ["W_Q", "W_K", "W_V", "W_O"]}
model.load_state_dict(matrices, strict=False)
theirs.load_state_dict(
    {
        "in_proj_weight": torch.cat([matrices[f"{name}.weight"] for name in ["W_Q", "W_K", "W_V"]]),
        "out_proj.weight": matrices["W_O.weight"],
    }
)
asking, answering = torch.randn(3, 4, 8), torch.randn(3, 5, 8)
result = model(asking, answering)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = result
assert tuple(weights.shape) == (3, 2, 4, 5), f"Weights are (B, h, T_q, T_k) = (3, 2, 4, 5), not {tuple(weights.shape)}."
assert tuple(output.shape) == (3, 4, 8), f"The output is (B, T_q, d_model) = (3, 4, 8), not {tuple(output.shape)}."
with torch.no_grad():
    their_output, their_weights = theirs(asking, answering, answering, average_attn_weights=False)
assert torch.allclose(weights, their_weights, atol=1e-4), "The weights differ from those of nn.MultiheadAttention."
assert torch.allclose(output, their_output, atol=1e-4), (
    "The weights are right and the output is not. Look at the values, at the merging of the heads, and at W_O."
)

# A causal mask. In theirs True means "may NOT attend", so it is inverted.
mask = torch.ones(5, 5, dtype=torch.bool).tril()
output, weights = model(answering, answering, mask)
with torch.no_grad():
    their_output, their_weights = theirs(answering, answering, answering, attn_mask=~mask, average_attn_weights=False)
assert torch.allclose(weights, their_weights, atol=1e-4), "With a causal mask the weights differ. True = may attend."
assert torch.allclose(output, their_output, atol=1e-4), "With a causal mask the output differs from theirs."
output, weights = model(answering, answering, mask & mask.new_tensor([0, 1, 1, 1, 1])[:, None])
assert (weights[:, :, 0] == 0).all() and (output[:, 0] == 0).all(), "A query without a key gets zeros, not NaN."
### BEGIN HIDDEN TESTS
from autograder.checks import (
    changes_its_input,
    check,
    compare,
    fail,
    is_instance,
    observe,
    parameter_gradients,
    reference,
    to_array,
    uses,
)
from set_checks import some_mask

uses("split_heads", "merge_heads")
NAMES = ["W_Q", "W_K", "W_V", "W_O"]


def tensor(array):
    return torch.tensor(array, dtype=torch.float32)


def twins(rng, d_model, n_heads, scale=1.0):
    """The student's module and the reference's, with the same random weights."""
    matrices = rng.normal(size=(4, d_model, d_model)) / np.sqrt(d_model)
    matrices[:2] *= 1.5 * scale
    state = {f"{name}.weight": tensor(matrix) for name, matrix in zip(NAMES, matrices, strict=True)}
    mine = MultiHeadAttention(d_model, n_heads)
    # a bias that should not be there costs the check on it; buffers of the student's own stay as they are
    mine.load_state_dict(state | {f"{name}.bias": torch.zeros(d_model) for name in NAMES}, strict=False)
    right = reference.MultiHeadAttention(d_model, n_heads)
    right.load_state_dict(state)
    return mine, right


def tokens(rng, B=2, T_q=5, T_k=7, d_model=12):
    return tensor(rng.normal(size=(B, T_q, d_model))), tensor(rng.normal(size=(B, T_k, d_model)))


def same(pair, *inputs, **named):
    """Demand equal outputs and weights of the two modules, and unchanged inputs; returns the student's."""
    mine, right = pair
    with torch.no_grad():
        expected = right(*inputs, **named)
    clones = {id(i): i.clone() for i in inputs}
    copies = [clones[id(i)] for i in inputs]  # what is one tensor stays one
    found = mine(*copies, **named)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        fail("forward should return two things: output, weights.")
    for what, one, other in zip(["`output`", "`weights`"], found, expected, strict=True):
        compare(one, other, what, atol=1e-4)
    if getattr(mine, "_changed", None) or any(not torch.equal(a, b) for a, b in zip(copies, inputs, strict=True)):
        changes_its_input("forward")
    return found


@check("four layers without bias, under the names of the task", points=1)
def _(rng):
    for d_model, n_heads in [(12, 3), (6, 1)]:
        model = MultiHeadAttention(d_model, n_heads)
        names = [str(name) for name, _ in model.named_parameters()]
        others = [n for n in names if n.partition(".")[0] not in NAMES] if len(names) > 4 else []
        observe("parameters beside the layers", bool(others), beside=True)
        for name in NAMES:
            layer = getattr(model, name)
            if not is_instance(layer, "torch.nn.modules.linear.Linear"):
                fail(f"`{name}` should be an nn.Linear.")
            if to_array(layer.weight, f"the weight of `{name}`").shape != (d_model, d_model):
                fail(f"`{name}` should go from d_model to d_model: all heads share one layer.")
            if layer.bias is not None:
                fail(f"`{name}` should have no bias.")
        if others:
            fail(f"The module has parameters beside those of the four layers: {', '.join(others)}.")


@check("outputs and weights with given matrices, in all sizes; large scores, also under a mask", points=2)
def _(rng):
    pair = twins(rng, 12, 3)
    for sizes in [dict(), dict(T_q=1), dict(T_k=1), dict(B=1), dict(B=1, T_q=1, T_k=1)]:
        same(pair, *tokens(rng, **sizes))
    x, _ = tokens(rng)
    same(pair, x, x)
    same(pair, x.transpose(0, 1).contiguous().transpose(0, 1), x)
    same(twins(rng, 10, 2), *tokens(rng, B=4, T_q=6, T_k=3, d_model=10))
    for d_model, n_heads in [(6, 1), (6, 6), (9, 3)]:
        same(twins(rng, d_model, n_heads), *tokens(rng, B=3, T_q=3, T_k=3, d_model=d_model))
    # scores of up to ±10,000 whole numbers, which float32 holds exactly
    mine, right = pair
    large = {f"{name}.weight": torch.eye(12) * {"W_Q": 64.0, "W_K": 78.125}.get(name, 1.0) for name in NAMES}
    mine.load_state_dict(large, strict=False)
    right.load_state_dict(large)
    x_q, x_kv = (tensor(rng.integers(0, 2, size=(2, T, 12)) * 2 - 1) for T in (5, 7))
    same(pair, x_q, x_kv)
    same(pair, x_q, x_kv, torch.tensor(some_mask(rng, 2, 1, 5, 7)))
    # all keys that may be attended to have the score -10,000, the others 10,000
    mask = torch.tensor(some_mask(rng, 2, 1, 1, 7))
    same(pair, torch.ones(2, 5, 12), torch.where(mask[:, 0, 0, :, None], -1.0, 1.0).expand(-1, -1, 12), mask)


@check("masks: for all, for each sequence, for each head, for both; causal", points=2)
def _(rng):
    B, T_q, T_k, h = 2, 5, 7, 3
    pair = twins(rng, 12, h)
    for shape in [(T_q, T_k), (B, 1, 1, T_k), (B, 1, T_q, T_k), (1, h, T_q, T_k), (B, h, T_q, T_k)]:
        same(pair, *tokens(rng), torch.tensor(some_mask(rng, *shape)))
    same(pair, *tokens(rng), mask=torch.ones(B, 1, T_q, T_k, dtype=torch.bool))
    two_heads = twins(rng, 8, 2)  # as many as sequences: an axis mixed up with another does not show in the shape
    same(two_heads, *tokens(rng, d_model=8), torch.tensor(some_mask(rng, 2, 1, 5, 7)))
    same(two_heads, *tokens(rng, d_model=8), torch.tensor(some_mask(rng, 1, 2, 5, 7)))
    same(pair, *tokens(rng, B=5), torch.tensor(some_mask(rng, 5, 7)))  # as many queries as sequences
    x, _ = tokens(rng, T_q=6)
    causal = torch.ones(6, 6, dtype=torch.bool).tril()
    before = same(pair, x, x, causal)[0]
    changed = x.clone()
    changed[:, 4:] += 1
    after = same(pair, changed, changed, causal)[0]
    compare(after[:, :4], before[:, :4], "output before the place where the tokens changed", atol=1e-4)


@check("a query that may attend to nothing: zeros, and finite gradients", points=1)
def _(rng):
    mask = torch.tensor(some_mask(rng, 2, 3, 5, 7))
    mask[0, 1, 2] = mask[1, 0, 4] = mask[1, 2, 4] = False
    pair, (x_q, x_kv) = twins(rng, 12, 3), tokens(rng)
    for given in [mask, torch.tensor([True, False])[:, None, None, None], torch.zeros(5, 7, dtype=torch.bool)]:
        same(pair, x_q, x_kv, given)
        mine, right = (parameter_gradients(module, x_q, x_kv, given, of=0) for module in pair)
        for name in right:
            if mine.get(name) is not None and not np.isfinite(mine[name]).all():
                fail(f"With an empty row in the mask, the gradient of {name} is not finite.")


@check("the gradients that reach the four layers", points=1)
def _(rng):
    pair, (x_q, x_kv) = twins(rng, 12, 3), tokens(rng)
    for mask in [None, torch.tensor(some_mask(rng, 2, 1, 5, 7))]:
        same(pair, x_q, x_kv, mask=mask)
        mine, right = (parameter_gradients(module, x_q, x_kv, mask, of=0) for module in pair)
        for name in right:
            if mine.get(name) is None:
                fail(f"No gradient reaches {name}.")
            compare(mine[name], right[name], f"the gradient of {name}", atol=1e-3)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "what-heads-buy-task"}
"""
## Exercise 7: what several heads buy (2 + 2 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 30 minutes*

Three to five sentences for each question.

Take the sentence *"The girl saw the man with the telescope."* It has two readings: she looks through the telescope, or
the man carries it. Think of the query of the word *with*.

**One head or two?** (1) Which different words may the query of *with* have to look at, and for what? Name two. (2) Why can
one head not serve both well? Argue with what a softmax gives out and what an average of values keeps.

<details><summary>Hint 1</summary>

If the query of *with* gives one half to each of two words, what comes out? Can one see which word gave what?

</details>

<details><summary>Hint 2</summary>

*What exactly is lost?* in the chapter. What do the weights of one query sum to, and who loses when another key gains?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "what-heads-buy", "solution": true, "points": 2}
"""
**Model answer.** *With* has to find the word it hangs on: *saw* (she sees by means of the telescope) or *man* (he
has it). It also has to find its own noun, *telescope*, which says what it is about. A head has one softmax for
each query, so its weights sum to 1: what goes to *telescope* is taken from *saw* and *man*. If it looks at several
words at once, only one weighted average of their values comes out, and from the mixture one cannot tell which word gave
what. Two heads have a map and values each, and their outputs stand side by side: one can look at *saw* or *man*
fully, the other at *telescope*.

**Rubric** (2 points, each given or not)

- **1 point**: two different words to look at, each with what it is looked at for (for example *saw* and *man* as the two
  words that *with* may belong to; *telescope* as its object; *girl* as the one who looks through it). Any two words of the
  sentence count. Words without a reason do not earn it.
- **1 point**: one head has one distribution that sums to 1 for each query, so attention is shared out, **and** its output is a single
  average in which the values are mixed. Both parts are needed. "More heads see more" or "one head can look at one thing
  only" does not earn it.
"""

# %% [markdown] nbgrader={"grade_id": "what-heads-cost-task"}
r"""
**What do they cost?** (1) `h` heads of width $d_\text{model}/h$ or one head of width $d_\text{model}$: compare the number of
parameters and say in one sentence why. (2) Name one thing that a head loses when there are very many heads, and why.

<details><summary>Hint 1</summary>

Count the columns of $W_Q$ that belong to one head, and then those of all.

</details>

<details><summary>Hint 2</summary>

How many kinds of keys can a dot product of vectors of width 1 still tell apart?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "what-heads-cost", "solution": true, "points": 2}
"""
**Model answer.** The number is the same, 4·d_model² without biases: splitting only deals out the columns of the same
matrices W_Q, W_K and W_V among the heads, and W_O is d_model by d_model in both cases. With many heads each is narrow. Its
scores are dot products of vectors of width d_head, so a head of width 1 or 2 can tell few kinds of keys apart
(the matrix W_Q W_Kᵀ of a head has rank d_head at most), and it hands over only d_head numbers of each value.

**Rubric** (2 points, each given or not)

- **1 point**: the number of parameters is the same **and** the reason: the matrices keep their size and their columns are
  dealt out among the heads (or the count 4·d_model² for both; or h · d_head = d_model). "Because the heads are smaller"
  alone does not earn it.
- **1 point**: one loss of a head **and** the reason, that d_head gets small. Accepted among others: scores of low rank;
  few kinds of keys told apart; few numbers of each value handed over ("less information" counts). "It gets slower" does
  not earn it.
"""

# %% [markdown] nbgrader={"grade_id": "ps3-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps3-summary"}
where_you_stand()
