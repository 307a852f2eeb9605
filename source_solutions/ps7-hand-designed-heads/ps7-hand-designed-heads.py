# ---
# jupyter:
#   autograder:
#     call_seconds: 30
#     cell_seconds: 60
#     exercise_seconds: 60
#     student_side:
#     - FixedHead
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps7-introduction"}
r"""
# Problem set 7: heads designed by hand, heads that learned

What can a single attention head do, and why? You set the matrices of heads yourself so that they look exactly where you
want: at tokens of their own kind, at the first token, at a place of your own. Then you let heads learn the same tasks,
and compare the two without being fooled by different matrices. It goes with the chapter *Hand-designed heads* of the
book. 43 points: 35 are graded automatically, and 8, for the written answers, by a person. The last two exercises are
optional: they lead further, nothing builds on them, and 38 of the points are to be had without them. Plan four to five hours.

**How to work, in two minutes**

1. Type your id into the next cell. Which head you build in exercise 4 is drawn from it.
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

Every exercise is judged by itself: your matrices are put into the grader's own head, so a mistake in your class `Head`
costs nothing later on.

**Conventions** in this set

- Tokens stand in rows. A *sequence* is a list of token numbers such as `[0, 2, 0]`, and `X` (T, n_tokens) holds its
  one-hot rows: row t has its 1 in the column of token t. Several sizes occur; none of them is fixed.
- Scores are divided by $\sqrt{d_{qk}}$, the root of the number of columns of `W_Q` and `W_K`. Softmax runs over the
  keys (last axis), and `weights[i, j]` is how much query i attends to key j. No mask, no residual connection.
- NumPy functions take float32 or float64 arrays and never change them. Numbers are compared to within 1e-6 (1e-4 for
  float32 and for PyTorch) unless an exercise says otherwise. The type of the numbers you return is free.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps7-progress"}
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

# %% nbgrader={"grade_id": "ps7-helpers"}
import itertools
import zlib

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)  # for matrices as small as these one thread is fastest
ENOUGH = 12.0  # a difference of scores that is more than enough for every length in this set (see exercise 5)


def one_hot_rows(sequence, n_tokens):
    """A sequence of T token numbers as one-hot rows (T, n_tokens)."""
    return np.eye(n_tokens)[np.asarray(sequence, dtype=int)]


def every_sequence(n_tokens, longest):
    """All sequences of 1 to `longest` tokens, as tuples: 3 + 9 + 27 + 81 = 120 for three tokens and longest 4."""
    for length in range(1, longest + 1):
        yield from itertools.product(range(n_tokens), repeat=length)


def wanted_keys(task, sequence):
    """Boolean (T, T): True where query i should look at key j.

    task: "content" (every token of the query's own kind, itself included), "first", "second" (a single token keeps
    itself), "previous" (the first token keeps itself) or "last" (the last token of the sequence).
    """
    tokens = np.asarray(sequence)
    T = len(tokens)
    if task == "content":
        return tokens[:, None] == tokens[None, :]
    place = {
        "first": np.zeros(T, dtype=int),
        "second": np.full(T, min(1, T - 1)),
        "previous": np.maximum(np.arange(T) - 1, 0),
        "last": np.full(T, T - 1),
    }[task]
    return np.eye(T, dtype=bool)[place]


def weakest(head, task, n_tokens, longest):
    """Where a head is weakest: (attention on the right keys, sequence, query), over every sequence up to `longest`.

    head: anything with `forward(X) -> (output, weights)`, for instance your `Head(**content_head(3))`.
    """
    found = (np.inf, None, None)
    for sequence in every_sequence(n_tokens, longest):
        weights = head.forward(one_hot_rows(sequence, n_tokens))[1]
        on_right = (np.asarray(weights) * wanted_keys(task, sequence)).sum(axis=1)
        found = min(found, (float(on_right.min()), sequence, int(on_right.argmin())), key=lambda f: f[0])
    return found


def show_pattern(weights, sequence):
    """Print an attention pattern: a row for each query, a column for each key, labelled with letters."""
    letters = ["abcdefghijklmnopqrstuvwxyz"[token] for token in sequence]
    print("query \\ key  " + "".join(f"{letter:>6}" for letter in letters))
    for letter, row in zip(letters, np.asarray(weights), strict=True):
        print(f"{letter:>11}  " + "".join(f"{weight:6.2f}" for weight in row))


class FixedHead:
    """A head that answers every X with the same output and the same weights, for trying out exercise 6."""

    def __init__(self, output, weights):
        self.answer = output, weights

    def forward(self, X):
        return self.answer


# %% [markdown] nbgrader={"grade_id": "head-task"}
r"""
## Exercise 1: a head that takes its matrices from you (5 points)

*Difficulty ●●○○○ · importance ●●●●● · about 30 minutes*

Write the class that all heads of this set are put into. `Head(W_Q, W_K, W_V, positions=None)` keeps the four under
exactly these names as attributes. `forward(X)` takes one-hot rows `X` (T, n_tokens) and

1. puts the rows of `positions` (max_len, d_pos) **to the right** of the tokens, position 0 beside the first token, if
   there are positions; the sequence may be shorter than the table (never longer),
2. makes $Q$, $K$ and $V$ of these rows $Z$ as $ZW_Q$, $ZW_K$ and $ZW_V$,
3. takes the softmax, over the keys, of $QK^\top/\sqrt{d_{qk}}$; scores up to ±10,000 must not overflow,
4. returns `(output, weights)`, with output = weights $V$ and nothing added to it.

Exactly these shapes, without batch axes.

<details><summary>Hint 1</summary>

Write down the shapes: X, the part of `positions` that is used, Z, Q, the scores.

</details>

<details><summary>Hint 2</summary>

*A basis with names* in the chapter. How many rows of the table does a sequence of T tokens need?

</details>

<details><summary>Hint 3</summary>

`__init__` keeps four things. `forward`: side by side, if there are positions; three products; scores with their
scale; a softmax that subtracts each row's largest; the average.

</details>
"""


# %% nbgrader={"grade_id": "head", "solution": true}
class Head:
    """One attention head with given matrices.

    W_Q, W_K: (n_tokens + d_pos, d_qk). W_V: (n_tokens + d_pos, d_v). positions: (max_len, d_pos), or None (d_pos = 0).
    They are kept as the attributes W_Q, W_K, W_V and positions.
    """

    def __init__(self, W_Q, W_K, W_V, positions=None):
        ### BEGIN SOLUTION
        self.W_Q, self.W_K, self.W_V = W_Q, W_K, W_V
        self.positions = positions
        ### END SOLUTION

    def forward(self, X):
        """X: one-hot rows (T, n_tokens), T <= max_len. Returns (output (T, d_v), weights (T, T)); row = query."""
        ### BEGIN SOLUTION
        if self.positions is not None:
            X = np.concatenate([X, self.positions[: len(X)]], axis=1)  # (T, n_tokens + d_pos)
        Q, K, V = X @ self.W_Q, X @ self.W_K, X @ self.W_V
        scores = Q @ K.T / np.sqrt(Q.shape[1])  # (T, T)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        return weights @ V, weights
        ### END SOLUTION


# %% nbgrader={"grade_id": "head-tests", "points": 5}
# Examples of exercise 1: Head
# Two tokens of two kinds, d_qk = 4. Token 0 asks with (2 ln 3, 0, 0, 0), and its own key is (1, 0, 0, 0).
to_query = np.array([[2 * np.log(3), 0, 0, 0], [0, 0, 0, 0.0]])
to_key = np.array([[1.0, 0, 0, 0], [0, 1, 0, 0]])
to_value = np.array([[4.0, 0, 8], [0, 4, 0]])
head = Head(to_query, to_key, to_value)
result = head.forward(np.eye(2))
assert isinstance(result, (tuple, list)) and len(result) == 2, "forward returns two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (2, 2), f"Two tokens look at two tokens: weights (2, 2), not {np.shape(weights)}."
assert np.shape(output) == (2, 3), f"Two tokens, values of width 3: output (2, 3), not {np.shape(output)}."
assert np.allclose(np.sum(np.asarray(weights), axis=1), 1), "Row = query: each row of the weights sums to 1."
assert not np.allclose(weights[0], [0.9, 0.1]), "[0.9, 0.1] comes without the division by the root of d_qk."
assert np.allclose(weights, [[0.75, 0.25], [0.5, 0.5]]), "The scores ln 3 and 0 give 3 : 1; equal scores give halves."
assert np.allclose(output[0], [3, 1, 6]), "The output is 0.75 of the first value plus 0.25 of the second."

# The same sequence twice the same token, told apart by its place alone: one column of positions, on the right.
places = np.array([[0.0], [1.0], [2.0]])
head = Head(np.array([[0.0], [1.0]]), np.array([[5.0], [np.log(3)]]), np.array([[1.0], [10.0]]), positions=places)
output, weights = map(np.asarray, head.forward(np.array([[1.0], [1.0]])))
assert np.allclose(weights, [[0.5, 0.5], [0.25, 0.75]]), (
    "Token and place stand side by side, the place on the right. The second token asks with its place 1, "
    "and the keys are 5 and 5 + ln 3: weights 1 : 3."
)
assert np.allclose(output, [[6], [8.5]]), "Values are made of token and place, too: here 1 and 11."
assert np.shape(head.W_Q) == (2, 1) and np.shape(head.positions) == (3, 1), "Keep the four as attributes, unchanged."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, observe, reference

NAMES = ("output", "weights")


def numbers(rng, T=5, n=3, d_pos=None, max_len=7, d_qk=4, d_v=6, dtype=np.float64):
    """Matrices and a table of positions, and a random sequence."""
    rows = n + (d_pos or 0)
    matrices = [rng.normal(size=(rows, d)).astype(dtype) for d in (d_qk, d_qk, d_v)]
    table = None if d_pos is None else rng.normal(size=(max_len, d_pos)).astype(dtype)
    X = np.eye(n, dtype=dtype)[rng.integers(0, n, size=T)]
    return *matrices, table, X


def judge(W_Q, W_K, W_V, positions, X):
    arrays = [None if a is None else a.copy() for a in (W_Q, W_K, W_V, positions)]
    head = Head(*arrays[:3]) if positions is None else Head(*arrays)
    right = reference.Head(W_Q, W_K, W_V, positions)
    narrow = 1e-4 if W_Q.dtype == np.float32 else 1e-6
    agrees(head.forward, X, names=NAMES, like=("forward", right.forward), atol=narrow)
    return head


@check("tokens alone, all sizes different", points=1)
def _(rng):
    for sizes in [dict(), dict(T=7, n=4, d_qk=2, d_v=3), dict(T=2, n=6, d_qk=9, d_v=5), dict(T=3, n=3, d_qk=3, d_v=3)]:
        judge(*numbers(rng, **sizes))


@check("tokens with positions, also when the sequence is shorter than the table", points=1)
def _(rng):
    for sizes in [
        dict(),
        dict(T=7),
        dict(T=6, n=2, max_len=6, d_qk=3, d_v=5),
        dict(T=4, n=4, max_len=4, d_qk=4, d_v=4),
    ]:
        judge(*numbers(rng, d_pos=2, **sizes))
    judge(*numbers(rng, T=3, n=3, d_pos=3, max_len=3, d_qk=6, d_v=6))


@check("large scores, one token, widths of one, float32, views into larger arrays", points=1)
def _(rng):
    for sizes in [dict(T=1), dict(n=1), dict(d_qk=1, d_v=1), dict(T=1, n=1, d_qk=1, d_v=1), dict(T=1, d_pos=1)]:
        judge(*numbers(rng, **sizes))
    W_Q, W_K, W_V, table, X = numbers(rng, d_pos=2)
    wide = W_Q * 1e4 / np.abs(np.hstack([X, table[:5]]) @ W_Q).max() / np.abs(np.hstack([X, table[:5]]) @ W_K).max()
    judge(wide, W_K, W_V, table, X)
    judge(-np.abs(wide), np.abs(W_K), W_V, np.abs(table), X)
    far = [np.hstack([np.full((3, 1), 140.0), W[:3]]) for W in (W_Q, W_K)]  # all scores are large and close together
    judge(*far, W_V[:3], None, np.eye(3))
    judge(*numbers(rng, dtype=np.float32))
    judge(*numbers(rng, d_pos=2, dtype=np.float32))
    judge(np.asfortranarray(W_Q), np.repeat(W_K, 2, axis=0)[::2], W_V, table, np.repeat(X, 2, axis=1)[:, ::2])


@check("the four are kept as attributes and forward can be called again, also with another length", points=1)
def _(rng):
    for d_pos in (None, 2):
        W_Q, W_K, W_V, table, X = numbers(rng, d_pos=d_pos)
        head = judge(W_Q, W_K, W_V, table, X)
        right = reference.Head(W_Q, W_K, W_V, table)
        for tokens in (X, X[:3], X[2:], X):
            agrees(head.forward, tokens, names=NAMES, like=("forward", right.forward))
        others = {}
        for name, array in (("W_Q", W_Q), ("W_K", W_K), ("W_V", W_V), ("positions", table)):
            try:
                compare(getattr(head, name), array, f"the attribute `{name}`")
            except AssertionError as failure:
                others[name] = failure
        observe(f"attributes that are not as they were given, d_pos = {d_pos}", list(others), beside=True)
        for failure in others.values():
            raise failure


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "content-head-task"}
r"""
## Exercise 2: a head that looks at its own kind (5 points)

*Difficulty ●●●○○ · importance ●●●●● · about 40 minutes*

From here on you do not compute with matrices, you choose them. `content_head(n_tokens)` returns a dict with the entries
`"W_Q"`, `"W_K"`, `"W_V"` (and `"positions"`, which you may leave out or set to `None` where you need none), so that
`Head(**content_head(n_tokens))` does the following for every sequence:

- **each token attends to all tokens of its own kind**, itself included. In `a b a` the two `a` share their attention
  between places 1 and 3, and `b` looks at itself;
- **the output of each token is its own one-hot row**, so `output` has the shape (T, n_tokens).

Matrices are never compared with ours: any that do this are right, of any widths and in any basis. What is asked:

- For **every** sequence up to length 4 (for three tokens these are 120), and for others up to length 12, the attention on
  the right keys together is at least **0.99** in every row. "Together" is the sum over all right keys.
- Every entry of the output is within **0.05** of the wanted row.
- Any number of tokens from 1 on. All numbers finite, of any float type; the grader puts them into its own head, which
  computes in float64.

How large do scores have to be, and what does the division by $\sqrt{d_{qk}}$ do to your numbers? `ENOUGH` in the second
cell is a difference of *scores* (after that division) that suffices everywhere in this set. The examples below see only
which score is highest, so look after the 0.99 yourself: `weakest(Head(**content_head(3)), "content", 3, 4)` and the
same for 9 tokens, or `show_pattern(...)` for one sequence.

<details><summary>Hint 1</summary>

What is the dot product of two one-hot rows of the same kind, and of different kinds?

</details>

<details><summary>Hint 2</summary>

*By content: who is my partner?* and *How large is large enough?* in the chapter. Which difference of scores is
needed, and what does the division make of the numbers that you put in?

</details>

<details><summary>Hint 3</summary>

Two of the matrices make the scores: keep one simple, and put the factor into the other. The third hands the token on.
Then test with `weakest`, for 3 and for 9 tokens.

</details>
"""


# %% nbgrader={"grade_id": "content-head", "solution": true}
def content_head(n_tokens):
    """Matrices of a head in which every token attends to its own kind and puts out its own one-hot row.

    Returns a dict: "W_Q" and "W_K" (n_tokens + d_pos, d_qk), "W_V" (n_tokens + d_pos, n_tokens), and "positions"
    (at least 12, d_pos) if there are any.
    """
    ### BEGIN SOLUTION
    own = np.eye(n_tokens)
    return {"W_Q": ENOUGH * np.sqrt(n_tokens) * own, "W_K": own, "W_V": own}
    ### END SOLUTION


# %% nbgrader={"grade_id": "content-head-tests", "points": 5}
# Examples of exercise 2: content_head
matrices = content_head(3)
assert isinstance(matrices, dict), 'content_head returns a dict such as {"W_Q": ..., "W_K": ..., "W_V": ...}.'
for name in ("W_Q", "W_K", "W_V"):
    assert name in matrices, f'The entry "{name}" is missing.'
rows = one_hot_rows([0, 1, 0, 2], 3)
if matrices.get("positions") is not None:
    rows = np.concatenate([rows, np.asarray(matrices["positions"])[:4]], axis=1)
for name in ("W_Q", "W_K", "W_V"):
    found = np.shape(matrices[name])
    assert len(found) == 2 and found[0] == rows.shape[1], (
        f"{name} should have a row for each column of token and position together ({rows.shape[1]}), "
        f"but its shape is {found}."
    )
assert np.shape(matrices["W_Q"])[1] == np.shape(matrices["W_K"])[1], "W_Q and W_K have equally many columns, d_qk."
assert np.shape(matrices["W_V"])[1] == 3, "Outputs are one-hot rows of three tokens, so W_V has three columns."
products = (rows @ np.asarray(matrices["W_Q"])) @ (rows @ np.asarray(matrices["W_K"])).T
assert products[0, 0] > products[0, 1] and products[0, 2] > products[0, 3], (
    "In the sequence a b a c the first query, a, should score higher with the keys 1 and 3 (a) than with 2 and 4."
)
assert products[1].argmax() == 1 and products[3].argmax() == 3, "b and c occur once: each scores highest with itself."
### BEGIN HIDDEN TESTS
from autograder.checks import check
from set_checks import Pattern, put_together

pattern = Pattern("content", "tokens of its own kind", most=0.9)


def own_head(n_tokens, longest):
    size = f"{n_tokens} tokens"
    return put_together(content_head(n_tokens), "content_head", size, longest, n_tokens), size


def probe(n_tokens):
    return [token % n_tokens for token in (0, 1, 0, 2)]


@check("each token attends to its own kind, in every sequence up to length 4", points=2)
def _(rng):
    for n_tokens, longest in [(3, 4), (1, 4), (2, 4), (4, 4), (7, 2)]:
        head, size = own_head(n_tokens, longest)
        pattern.attention(head, size, every_sequence(n_tokens, longest), probe(n_tokens))


@check("and in longer sequences up to length 12", points=1)
def _(rng):
    for n_tokens in (3, 2, 6, 9):
        head, size = own_head(n_tokens, 12)
        lone = [[0] + [1] * 11, [1] * 6 + [0] + [1] * 5, [k % n_tokens for k in range(12)], [0] * 12]
        drawn_at_random = [rng.integers(0, n_tokens, size=length).tolist() for length in range(5, 13) for _ in range(4)]
        pattern.attention(head, size, lone + drawn_at_random, probe(n_tokens))


@check("each output is the token's own one-hot row", points=1)
def _(rng):
    for n_tokens in (3, 2, 5):
        head, size = own_head(n_tokens, 12)
        sequences = [*every_sequence(n_tokens, 3), *(rng.integers(0, n_tokens, size=t).tolist() for t in (5, 8, 12))]
        off = [(head([s])[0][0] - one_hot_rows(s, n_tokens), s) for s in sequences]
        pattern.outputs(size, off, len(off) // 2, "the one-hot row of its own token")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "position-head-task"}
"""
## Exercise 3: a head that looks at one place (4 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 30 minutes*

`position_head(n_tokens, max_len)` returns such a dict for a head in which **every token attends to the first token** of
the sequence, whatever the tokens are, and puts out **the one-hot row of that first token**. Now you need `"positions"`:
a table (max_len, d_pos) of your own making, with as many columns as you like (one-hot, numbers, sines, ...).

As before: at least 0.99 of every row's attention on the first token, outputs (T, n_tokens) within 0.05, for **every**
sequence up to length 4 and for others up to length `max_len`. `n_tokens` is any whole number
from 1 on, `max_len` any from 2 on. Try `weakest(Head(**position_head(3, 12)), "first", 3, 4)`.

<details><summary>Hint 1</summary>

What do all queries ask for, whatever their token and their place? How does a key say that it is the first?

</details>

<details><summary>Hint 2</summary>

*By position: a head that reverses* in the chapter. A row of Z is the token's part and then the position's part: which
rows of your matrices belong to which?

</details>

<details><summary>Hint 3</summary>

All queries may be equal, so few columns are enough. `W_V` hands on one part of the row and drops the other. Choose a
table in which place 0 is easy to recognise.

</details>
"""


# %% nbgrader={"grade_id": "position-head", "solution": true}
def position_head(n_tokens, max_len):
    """Matrices of a head in which every token attends to the first token and puts out that token's one-hot row.

    Returns a dict: "W_Q" and "W_K" (n_tokens + d_pos, d_qk), "W_V" (n_tokens + d_pos, n_tokens) and "positions"
    (max_len, d_pos).
    """
    ### BEGIN SOLUTION
    W_Q = np.zeros((n_tokens + max_len, 1))
    W_Q[:n_tokens] = ENOUGH  # every token asks the same: "are you the first?"
    W_K = np.zeros((n_tokens + max_len, 1))
    W_K[n_tokens] = 1  # and only position 0 says yes
    W_V = np.eye(n_tokens + max_len, n_tokens)  # the token, without its position
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}
    ### END SOLUTION


# %% nbgrader={"grade_id": "position-head-tests", "points": 4}
# Examples of exercise 3: position_head
matrices = position_head(3, 6)
assert isinstance(matrices, dict), "position_head returns a dict with W_Q, W_K, W_V and positions."
for name in ("W_Q", "W_K", "W_V", "positions"):
    assert matrices.get(name) is not None, f'The entry "{name}" is missing.'
table = np.asarray(matrices["positions"])
assert table.ndim == 2 and len(table) >= 6, f"positions needs a row for each of 6 places, not the shape {table.shape}."
rows = np.concatenate([one_hot_rows([1, 1, 0, 2], 3), table[:4]], axis=1)
for name in ("W_Q", "W_K", "W_V"):
    found = np.shape(matrices[name])
    assert len(found) == 2 and found[0] == rows.shape[1], (
        f"{name} should have a row for each column of token and position together ({rows.shape[1]}), "
        f"but its shape is {found}."
    )
assert np.shape(matrices["W_V"])[1] == 3, "The output is the one-hot row of a token, so W_V has three columns here."
products = (rows @ np.asarray(matrices["W_Q"])) @ (rows @ np.asarray(matrices["W_K"])).T
assert (products[:, :1] > products[:, 1:]).all(), (
    "In the sequence b b a c every query, whatever it is, should score highest with the first key."
)
### BEGIN HIDDEN TESTS
from autograder.checks import check
from set_checks import SIZES, Pattern, put_together

pattern = Pattern("first", "the first token")


def own_head(n_tokens, max_len):
    size = f"{n_tokens} tokens and max_len {max_len}"
    return put_together(position_head(n_tokens, max_len), "position_head", size, max_len, n_tokens), size


def probe(n_tokens, max_len):
    return [token % n_tokens for token in (1, 0, 2, 1)][:max_len]


@check("every token attends to the first one, in every sequence up to length 4", points=1)
def _(rng):
    for n_tokens, max_len in SIZES:
        head, size = own_head(n_tokens, max_len)
        pattern.attention(head, size, every_sequence(n_tokens, min(4, max_len)), probe(n_tokens, max_len))


@check("and in longer sequences up to max_len", points=1)
def _(rng):
    for n_tokens, max_len in [(3, 12), (5, 7), (2, 20), (4, 9)]:
        head, size = own_head(n_tokens, max_len)
        lengths = [*range(5, max_len + 1), max_len, max_len]
        random = [rng.integers(0, n_tokens, size=length).tolist() for length in lengths]
        same = [[0] * max_len, [1] + [0] * (max_len - 1)]
        pattern.attention(head, size, same + random, probe(n_tokens, max_len))


@check("each output is the one-hot row of the first token", points=1)
def _(rng):
    for n_tokens, max_len in SIZES:
        head, size = own_head(n_tokens, max_len)
        lengths = range(1, max_len + 1)
        sequences = [rng.permutation(max(n_tokens, length))[:length] % n_tokens for length in lengths]
        off = [(head([s])[0][0] - one_hot_rows(s, n_tokens)[:1], s) for s in sequences]
        pattern.outputs(size, off, -1, "the one-hot row of the first token")


### END HIDDEN TESTS


# %% nbgrader={"grade_id": "ps7-variant"}
def variant_of(student_id):
    """Which head exercise 4 asks of this id: "second", "previous" or "last"."""
    return ("second", "previous", "last")[zlib.crc32(str(student_id).strip().encode()) % 3]


VARIANT = variant_of(student_id)
print(f"In exercise 4 every token looks at: {VARIANT}")

# %% [markdown] nbgrader={"grade_id": "variant-head-task"}
"""
## Exercise 4: your own place to look at (4 points)

*Difficulty ●●●●○ · importance ●●●●○ · about 25 minutes*

The cell above drew one of three heads for your id (`VARIANT`):

- `"second"`: every token attends to the **second token** of the sequence. A sequence of a single token can only attend
  to itself;
- `"previous"`: every token attends to the token **before it**; the first one keeps itself;
- `"last"`: every token attends to the **last token of the sequence**, which is not always the last row of the table.

Write `variant_head(n_tokens, max_len)` for yours; you need not do the other two. The **output is the one-hot row of the
token that is looked at**. Otherwise everything is as in exercise 3: attention of at least 0.99, outputs within 0.05,
**every** sequence up to length 4 and others up to `max_len`, any `n_tokens` from 1 on and
`max_len` from 2 on.

<details><summary>Hint 1</summary>

For a text of four tokens: which key is wanted for each query? And in a text of one token?

</details>

<details><summary>Hint 2</summary>

With one-hot positions the scores of all pairs of places are a table that you may fill as you like. Where must its
rows be largest, and what must not happen when the text is shorter than the table?

</details>

<details><summary>Hint 3</summary>

Let the score fall with the distance from the wanted place: then whoever is nearest wins, and short texts need no case
of their own. The factor and the root are as before.

</details>
"""


# %% nbgrader={"grade_id": "variant-head", "solution": true}
def variant_head(n_tokens, max_len):
    """Matrices of a head in which every token attends to the place that VARIANT names, and puts out that token's row.

    Returns a dict: "W_Q" and "W_K" (n_tokens + d_pos, d_qk), "W_V" (n_tokens + d_pos, n_tokens) and "positions"
    (max_len, d_pos).
    """
    ### BEGIN SOLUTION
    query, key = np.arange(max_len)[:, None], np.arange(max_len)
    target = {"second": 1, "previous": query - 1, "last": max_len}[VARIANT]
    table = -np.abs(key - target)  # largest at the key nearest to the target, by at least 1
    W_Q = np.zeros((n_tokens + max_len, max_len))
    W_Q[n_tokens:] = ENOUGH * np.sqrt(max_len) * table
    W_K = np.eye(n_tokens + max_len)[:, n_tokens:]  # each key names its place
    W_V = np.eye(n_tokens + max_len, n_tokens)  # the token, without its position
    return {"W_Q": W_Q, "W_K": W_K, "W_V": W_V, "positions": np.eye(max_len)}
    ### END SOLUTION


# %% nbgrader={"grade_id": "variant-head-tests", "points": 4}
# Examples of exercise 4: variant_head
matrices = variant_head(3, 6)
assert isinstance(matrices, dict), "variant_head returns a dict with W_Q, W_K, W_V and positions."
for name in ("W_Q", "W_K", "W_V", "positions"):
    assert matrices.get(name) is not None, f'The entry "{name}" is missing.'
table = np.asarray(matrices["positions"])
assert table.ndim == 2 and len(table) >= 6, f"positions needs a row for each of 6 places, not the shape {table.shape}."
rows = np.concatenate([one_hot_rows([1, 1, 0, 2], 3), table[:4]], axis=1)
for name in ("W_Q", "W_K", "W_V"):
    found = np.shape(matrices[name])
    assert len(found) == 2 and found[0] == rows.shape[1], (
        f"{name} should have a row for each column of token and position together ({rows.shape[1]}), "
        f"but its shape is {found}."
    )
assert np.shape(matrices["W_V"])[1] == 3, "The output is the one-hot row of a token, so W_V has three columns here."
products = (rows @ np.asarray(matrices["W_Q"])) @ (rows @ np.asarray(matrices["W_K"])).T
place = wanted_keys(variant_of(student_id), [1, 1, 0, 2]).argmax(axis=1)
assert (products.argmax(axis=1) == place).all(), (
    f"Your head is '{variant_of(student_id)}'. In the sequence b b a c the four queries should score highest with "
    f"the keys {(place + 1).tolist()} (counted from 1)."
)
### BEGIN HIDDEN TESTS
from autograder.checks import check
from set_checks import SIZES, Pattern, put_together

MINE = variant_of(student_id)
WORDS = {"second": "the second token", "previous": "the token before", "last": "the last token of the sequence"}[MINE]


pattern = Pattern(MINE, WORDS)


def own_head(n_tokens, max_len):
    size = f"{n_tokens} tokens and max_len {max_len}"
    return put_together(variant_head(n_tokens, max_len), "variant_head", size, max_len, n_tokens), size


def probe(n_tokens, max_len):
    return [token % n_tokens for token in (1, 0, 2, 1)][:max_len]


@check("every token attends to your place, in every sequence up to length 4", points=1)
def _(rng):
    for n_tokens, max_len in SIZES:
        head, size = own_head(n_tokens, max_len)
        pattern.attention(head, size, every_sequence(n_tokens, min(4, max_len)), probe(n_tokens, max_len))


@check("and in longer sequences up to max_len", points=1)
def _(rng):
    for n_tokens, max_len in [(3, 12), (5, 7), (2, 20), (4, 9)]:
        head, size = own_head(n_tokens, max_len)
        lengths = [*range(5, max_len + 1), max_len, max_len]
        random = [rng.integers(0, n_tokens, size=length).tolist() for length in lengths]
        same = [[0] * max_len, [1] + [0] * (max_len - 1)]
        pattern.attention(head, size, same + random, probe(n_tokens, max_len))


@check("each output is the one-hot row of the token that is looked at", points=1)
def _(rng):
    for n_tokens, max_len in SIZES:
        head, size = own_head(n_tokens, max_len)
        off = []
        for length in range(1, max_len + 1):
            sequence = rng.permutation(max(n_tokens, length))[:length] % n_tokens
            X = one_hot_rows(sequence, n_tokens)
            off.append((head([sequence])[0][0] - wanted_keys(MINE, sequence) @ X, sequence))
        pattern.outputs(size, off, -1, f"the one-hot row of {WORDS}")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "score-gap-task"}
r"""
## Exercise 5: how far are the right keys ahead? (4 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 20 minutes*

The scores $QK^\top/\sqrt{d_{qk}}$ decide where a head looks. For one query, the *gap* is

> the **lowest** score on a right key, minus the **highest** score on a wrong key.

If it is positive, every right key beats every wrong one. `score_gap` returns the smallest gap over all queries:

- `X` (T, d) holds the rows as they enter the head, positions already in them; `W_Q` and `W_K` are (d, d_qk).
- `right` (T, T) is Boolean: `right[i, j]` is True where key j is a right one for query i.
- A query without a right key, or without a wrong one, is skipped. If no query is left, the gap is infinite: return
  `np.inf`.

Why it is worth knowing: with one right key and at most L − 1 wrong ones, a gap of $\ln(99\,(L-1))$ guarantees the
attention 0.99 on the right key, since the wrong ones together get at most $(L-1)\,e^{-\text{gap}}$ times its share. For
L = 12 that is 6.99.

<details><summary>Hint 1</summary>

Which shape have the scores, and which has `right`? How many numbers come out for each query?

</details>

<details><summary>Hint 2</summary>

The smallest of *some* entries of a row: what can the others be filled with, so that they never win?

</details>

<details><summary>Hint 3</summary>

Two filled tables, one reduced by its smallest, one by its largest; a difference; a smallest. What do the fillings
make of a query that is to be skipped?

</details>
"""


# %% nbgrader={"grade_id": "score-gap", "solution": true}
def score_gap(W_Q, W_K, X, right):
    """The smallest gap over the queries: lowest score on a right key minus highest score on a wrong key.

    W_Q, W_K: (d, d_qk). X: (T, d), positions included. right: Boolean (T, T), row = query.
    Queries without a right or without a wrong key are skipped; np.inf if none is left. Returns a number.
    """
    ### BEGIN SOLUTION
    scores = (X @ W_Q) @ (X @ W_K).T / np.sqrt(W_Q.shape[1])  # (T, T)
    lowest_right = np.where(right, scores, np.inf).min(axis=1)
    highest_wrong = np.where(right, -np.inf, scores).max(axis=1)
    return (lowest_right - highest_wrong).min()  # a query to skip has an infinite gap
    ### END SOLUTION


# %% nbgrader={"grade_id": "score-gap-tests", "points": 4}
# Examples of exercise 5: score_gap
# d_qk = 4, so the products are halved. Query 1 has the scores 4, 3, 1 with its three keys, query 2 has 0, 5, 2.
to_query = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 0.0]])
to_key = 2 * np.array([[4, 0, 0, 0], [3, 5, 0, 0], [1, 2, 0, 0.0]])
right = np.array([[True, True, False], [False, True, False], [True, True, True]])
gap = score_gap(to_query, to_key, np.eye(3), right)
assert gap is not None, "score_gap returned None. Is there a return?"
assert np.shape(gap) == (), f"The gap of the whole head is one number, not an array of shape {np.shape(gap)}."
assert not np.isclose(gap, 4), "Divide the scores by the root of d_qk."
assert np.isclose(gap, 2), (
    "Query 1: the right keys have 4 and 3, the wrong one 1, so its gap is 2. Query 2: 5 - 2 = 3. Query 3 has no wrong "
    "key and is skipped. The smallest gap is 2."
)
assert score_gap(to_query, to_key, np.eye(3), np.ones((3, 3), dtype=bool)) == np.inf, (
    "No query has a wrong key: the gap is infinite."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def inputs(rng, T=5, d=7, d_qk=3):
    W_Q, W_K = rng.normal(size=(2, d, d_qk))
    return W_Q, W_K, rng.normal(size=(T, d))


def mixed(rng, T):
    """Some right and some wrong keys for every query."""
    right = rng.random((T, T)) < 0.5
    for row in right:
        one, other = rng.permutation(T)[:2]
        row[one], row[other] = True, False
    return right


@check("several right and several wrong keys, positive and negative gaps", points=1)
def _(rng):
    for sizes in [
        dict(),
        dict(T=8, d=4, d_qk=6),
        dict(T=4, d=4, d_qk=4),
        dict(T=2, d=3, d_qk=5),
        dict(T=6, d=9, d_qk=2),
    ]:
        for _ in range(3):
            W_Q, W_K, X = inputs(rng, **sizes)
            agrees(score_gap, W_Q, W_K, X, mixed(rng, len(X)))
    W_Q, W_K, X = inputs(rng)
    agrees(score_gap, W_Q, W_K, X, np.eye(5, dtype=bool))
    scores = (X @ W_Q) @ (X @ W_K).T
    agrees(score_gap, W_Q, W_K, X, scores >= np.median(scores, axis=1, keepdims=True))
    agrees(score_gap, W_Q, W_K, X, scores == scores.max(axis=1, keepdims=True))


@check("queries without a right key or without a wrong one are skipped", points=1)
def _(rng):
    for kind in (True, False):
        W_Q, W_K, X = inputs(rng, T=6)
        right = mixed(rng, 6)
        right[[1, 4]] = kind
        agrees(score_gap, W_Q, W_K, X, right)
    W_Q, W_K, X = inputs(rng, T=4)
    only = np.array([[True] * 4, [False] * 4, [True, False, False, True], [True] * 4])
    agrees(score_gap, W_Q, W_K, X, only)
    agrees(score_gap, W_Q, W_K, X, np.ones((4, 4), dtype=bool))
    agrees(score_gap, W_Q, W_K, X, np.zeros((4, 4), dtype=bool))
    agrees(score_gap, *inputs(rng, T=1), np.array([[True]]))
    agrees(score_gap, W_Q, W_K, X, np.array([[True] * 4, [False] * 4] * 2))


@check("large scores, width one, float32, views into larger arrays", points=1)
def _(rng):
    W_Q, W_K, X = inputs(rng)
    right = mixed(rng, 5)
    agrees(score_gap, 1e3 * W_Q, W_K, X, right)
    own = np.eye(3, dtype=bool)
    for sign, wanted in [(1, own), (-1, ~own)]:  # gaps of several thousand
        agrees(score_gap, sign * 1e4 * np.eye(3), np.eye(3), np.eye(3), wanted)
    agrees(score_gap, *inputs(rng, d_qk=1), right)
    agrees(score_gap, *inputs(rng, d=1), right)
    single = [(array / 2).astype(np.float32) for array in inputs(rng)]
    agrees(score_gap, *single, right)
    view = np.repeat(X, 2, axis=0)[::2]
    agrees(score_gap, np.asfortranarray(W_Q), np.repeat(W_K, 2, axis=1)[:, ::2], view, np.asfortranarray(right))


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "same-head-task"}
"""
## Exercise 6: when are two heads the same? (3 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

Multiply `W_Q` by an invertible matrix and `W_K` by the transpose of its inverse: all numbers change, and the head does
exactly what it did before. So heads are not compared by their matrices but by what they do. Write
`same_head(a, b, X, atol)`:

- `a` and `b` are any objects with `forward(X) -> (output, weights)` in NumPy arrays. Use nothing else of them.
- It returns `True` if all weights **and** all outputs of the two for this `X` differ by at most `atol`, that is
  |difference| ≤ `atol` (equality counts). There is no tolerance in proportion to the size of the numbers: note that
  `np.allclose` adds one unless it is told `rtol=0`.
- If weights or outputs have different shapes, these are different heads: `False`, without an error.

<details><summary>Hint 1</summary>

How many pairs of arrays are compared?

</details>

<details><summary>Hint 2</summary>

What does NumPy do with the difference of arrays of shapes (3, 1) and (3, 3)?

</details>

<details><summary>Hint 3</summary>

One call of each `forward`. For both pairs: shapes first, then the largest difference against `atol`.

</details>
"""


# %% nbgrader={"grade_id": "same-head", "solution": true}
def same_head(a, b, X, atol):
    """Whether two heads do the same with X: all weights and all outputs differ by at most atol.

    a, b: objects with forward(X) -> (output, weights). X: (T, n_tokens). atol: a number >= 0. Returns a bool.
    """
    ### BEGIN SOLUTION
    output_a, weights_a = a.forward(X)
    output_b, weights_b = b.forward(X)
    for of_a, of_b in ((output_a, output_b), (weights_a, weights_b)):
        if np.shape(of_a) != np.shape(of_b) or np.any(np.abs(of_a - of_b) > atol):
            return False
    return True
    ### END SOLUTION


# %% nbgrader={"grade_id": "same-head-tests", "points": 3}
# Examples of exercise 6: same_head
X = np.eye(2)
weights = np.array([[0.75, 0.25], [0.5, 0.5]])
output = np.array([[1.0, 0.0, 2.0], [0.0, 4.0, 0.0]])
one = FixedHead(output, weights)
assert same_head(one, FixedHead(output.copy(), weights.copy()), X, 0.0) is not None, "Is there a return?"
assert same_head(one, FixedHead(output + 0.001, weights), X, 0.01), (
    "Outputs that differ by less than atol are the same."
)
assert not same_head(one, FixedHead(output + 0.1, weights), X, 0.01), "Equal weights, other outputs: another head."
assert not same_head(one, FixedHead(output, weights[::-1]), X, 0.01), "Equal outputs, other weights: another head."
assert not same_head(one, FixedHead(output[:, :1], weights), X, 9.0), (
    "Outputs of width 3 and of width 1 are those of different heads, even if NumPy can subtract them."
)
### BEGIN HIDDEN TESTS
from autograder.checks import CheckFailed, agrees, check


def numbers(rng, T=4, d_v=3):
    weights = rng.random((T, T)) + 0.1
    return rng.normal(size=(T, d_v)), weights / weights.sum(axis=1, keepdims=True)


failures = []


def demand(same, first, second, X, atol):
    """Ask for two heads with these (output, weights), in both orders; what is wrong is told at the end."""
    for a, b in ((first, second), (second, first)):
        try:
            agrees(same_head, FixedHead(*a), FixedHead(*b), X, atol, like=("same_head", lambda *_: same))
        except CheckFailed as failed:
            failures.append(failed if same else CheckFailed(f"{failed} (two different heads taken for the same)"))


def tell():
    if failures:
        raise failures[0]


@check("both weights and outputs count, in any place, in both directions", points=1)
def _(rng):
    failures.clear()
    X = np.eye(4)[rng.integers(0, 4, size=4)]
    output, weights = numbers(rng)
    demand(True, (output, weights), (output, weights), X, 0.01)
    demand(True, (output, weights), (output + rng.uniform(-4e-3, 4e-3, size=output.shape), weights), X, 0.005)
    demand(True, (output, weights), (output, weights + rng.uniform(-4e-3, 4e-3, size=weights.shape)), X, 0.005)
    moved = output.copy(), weights.copy()
    moved[0][place := tuple(rng.integers(0, 3, size=2))] += 4e-3  # one entry of each
    moved[1][place] -= 4e-3
    demand(True, (output, weights), moved, X, 0.005)
    for place in [(0, 0), (3, 2), tuple(rng.integers(0, 3, size=2))]:
        for sign in (1, -1):
            moved = output.copy()
            moved[place] += 0.02 * sign
            demand(False, (output, weights), (moved, weights), X, 0.01)
            moved = weights.copy()
            moved[place] += 0.02 * sign
            demand(False, (output, weights), (output, moved), X, 0.01)
    demand(False, (output, weights), (output + 0.02, weights), X, 0.01)
    place = tuple(rng.integers(0, 3, size=2))
    for change in [(0.02, 0.0), (0.0, 0.02)]:  # every entry is off but one
        moved = [part + more for part, more in zip((output, weights), change, strict=True)]
        for part, right in zip(moved, (output, weights), strict=True):
            part[place] = right[place]
        demand(False, (output, weights), moved, X, 0.01)
    demand(False, (output, weights), numbers(rng), X, 0.01)
    tell()


@check("at most atol, whatever the size of the numbers; other shapes are another head", points=1)
def _(rng):
    failures.clear()
    X = np.eye(4)
    weights = np.full((4, 4), 0.25)
    whole = rng.integers(-3, 4, size=(4, 3)).astype(float)
    demand(True, (whole, weights), (whole + 0.25, weights), X, 0.25)
    demand(False, (whole, weights), (whole + 0.25, weights), X, 0.2)
    demand(True, (whole, weights), (whole, weights), X, 0.0)
    large = 1e6 * (np.abs(whole) + 1)
    demand(False, (large, weights), (large + 0.5, weights), X, 0.25)
    demand(True, (large, weights), (large + 0.125, weights), X, 0.25)
    single = whole.astype(np.float32)
    demand(True, (single, weights), (single + np.float32(0.25), weights), X, 0.5)
    same = np.ones((4, 3))
    demand(False, (same, weights), (same[:, :1], weights), X, 1.0)
    demand(False, (same, weights), (same[:, :2], weights), X, 1.0)
    demand(False, (same, weights), (same[:1], weights), X, 1.0)
    demand(False, (same, weights), (same.reshape(2, 6), weights), X, 1.0)
    demand(False, (same, weights), (same, weights[:, :1]), X, 1.0)
    demand(True, (same[:1, :1], weights[:1, :1]), (same[:1, :1], weights[:1, :1]), X[:1], 0.001)
    tell()


### END HIDDEN TESTS


# %% nbgrader={"grade_id": "ps7-training"}
def train_head(head, task, steps=300, rate=0.1):
    """Train a head for 3 tokens on every sequence of length 1 to 4, by the squared error of its output.

    task: "content" or the place to look at, as for `wanted_keys`. Returns the list of losses.
    """
    data = []
    for length in (1, 2, 3, 4):
        sequences = [s for s in every_sequence(3, length) if len(s) == length]
        X = torch.eye(3)[torch.tensor(sequences)]  # (3 ** length, length, 3)
        wanted = torch.tensor(np.stack([wanted_keys(task, s) for s in sequences])).float()
        data.append((X, wanted / wanted.sum(dim=-1, keepdim=True) @ X))
    optimiser = torch.optim.Adam(head.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        loss = sum(((head.forward(X)[0] - target) ** 2).mean() for X, target in data)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


class InNumpy:
    """A learned head that answers in NumPy arrays, for `weakest`, `show_pattern` and `same_head`."""

    def __init__(self, head):
        self.head = head

    def forward(self, X):
        with torch.no_grad():
            return tuple(part.numpy() for part in self.head.forward(torch.tensor(X, dtype=torch.float32)))


# %% [markdown] nbgrader={"grade_id": "learned-head-task"}
r"""
## Exercise 7: a head that learns (5 points)

*Difficulty ●●●○○ · importance ●●●●● · about 35 minutes*

The same head in PyTorch, with matrices that are trained. `LearnedHead(n_tokens, d_qk, d_v, max_len=None, d_pos=None)`
has exactly these attributes:

- `W_Q`, `W_K`, `W_V`: `nn.Linear` **without bias**, from width n_tokens + d_pos to d_qk, d_qk and d_v;
- `positions`: an `nn.Embedding` of `max_len` rows of width `d_pos`. `max_len` and `d_pos` are either both given or both
  `None`; without them, `positions` is `None` and the width is n_tokens alone.

`forward(X)` takes float one-hot rows `X` (..., T, n_tokens) with **any number of leading batch axes** (also none), puts
the first T rows of the positions to the right of the tokens of every sequence, and returns `(output, weights)`,
(..., T, d_v) and (..., T, T), with the scale $\sqrt{d_{qk}}$ and the softmax over the keys. Gradients must reach all
weights.

No other parameters: the grader sets the weights through `load_state_dict`, compares the results with a reference that
has the same weights, and trains your head by the function `train_head` in the cell above. There it has to put at least **0.95** of the
attention on the right keys, on the lengths it was trained on (1 to 4).

<details><summary>Hint 1</summary>

Which axis of X counts the tokens, if any number of axes may stand before it? Which rows of `positions.weight` belong
to them?

</details>

<details><summary>Hint 2</summary>

`nn.Linear` acts on the last axis. The rows of positions, (T, d_pos), need the leading axes of X: tensors have a
method that repeats without copying.

</details>

<details><summary>Hint 3</summary>

`__init__`: the width, with or without positions; three layers. `forward`: side by side along the last axis, three
products, scaled softmax over the keys, average.

</details>
"""


# %% nbgrader={"grade_id": "learned-head", "solution": true}
class LearnedHead(nn.Module):
    """One attention head whose matrices are parameters; max_len and d_pos are given together or not at all."""

    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        ### BEGIN SOLUTION
        self.positions = None
        width = n_tokens
        if max_len is not None:
            self.positions = nn.Embedding(max_len, d_pos)
            width = n_tokens + d_pos
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        ### END SOLUTION

    def forward(self, X):
        """X: (..., T, n_tokens). Returns (output (..., T, d_v), weights (..., T, T)); row = query."""
        ### BEGIN SOLUTION
        if self.positions is not None:
            rows = self.positions.weight[: X.shape[-2]]  # (T, d_pos), the same for every sequence
            X = torch.cat([X, rows.expand(*X.shape[:-1], -1)], dim=-1)
        Q, K, V = self.W_Q(X), self.W_K(X), self.W_V(X)
        weights = torch.softmax(Q @ K.transpose(-1, -2) / Q.shape[-1] ** 0.5, dim=-1)
        return weights @ V, weights
        ### END SOLUTION


# %% nbgrader={"grade_id": "learned-head-tests", "points": 5}
# Examples of exercise 7: LearnedHead
head = LearnedHead(2, 4, 3)
for name in ("W_Q", "W_K", "W_V"):
    assert getattr(head, name).bias is None, f"{name} is a linear layer without bias: nn.Linear(..., bias=False)."
assert head.positions is None, "Without max_len and d_pos there are no positions: the attribute is None."
assert tuple(head.W_Q.weight.shape) == (4, 2) and tuple(head.W_V.weight.shape) == (3, 2), (
    "nn.Linear keeps its matrix as (out, in): W_Q (d_qk, n_tokens) and W_V (d_v, n_tokens)."
)
to_query = torch.zeros(4, 2)
to_query[0, 0] = 2 * float(np.log(3))
to_key = torch.eye(4, 2)
to_value = torch.tensor([[4.0, 0], [0, 4], [8, 0]])
head.load_state_dict({"W_Q.weight": to_query, "W_K.weight": to_key, "W_V.weight": to_value})
result = head.forward(torch.eye(2))
assert isinstance(result, (tuple, list)) and len(result) == 2, "forward returns two things: output, weights."
output, weights = result
assert tuple(weights.shape) == (2, 2) and tuple(output.shape) == (2, 3), "Two tokens: weights (2, 2), output (2, 3)."
assert torch.allclose(weights, torch.tensor([[0.75, 0.25], [0.5, 0.5]])), (
    "The same head as in exercise 1: scores ln 3 and 0 give 3 : 1. Is the scale the root of d_qk, softmax over keys?"
)
assert torch.allclose(output[0], torch.tensor([3.0, 1, 6])), "The output is 0.75 and 0.25 of the two values."

head = LearnedHead(3, 4, 2, max_len=6, d_pos=5)
assert tuple(head.positions.weight.shape) == (6, 5), "positions is an nn.Embedding of max_len rows of width d_pos."
assert tuple(head.W_K.weight.shape) == (4, 8), "With positions the layers read n_tokens + d_pos columns."
output, weights = head.forward(torch.eye(3).expand(7, 3, 3))
assert tuple(weights.shape) == (7, 3, 3) and tuple(output.shape) == (7, 3, 2), "Batch axes stay in front."
### BEGIN HIDDEN TESTS
from autograder.checks import (
    agrees,
    check,
    compare,
    fail,
    is_instance,
    later,
    observe,
    parameter_gradients,
    reference,
    settled,
    student_side,
)

NAMES = ("output", "weights")


def pair(rng, *sizes, largest=None):
    """The student's module and the reference with the same random weights (whole numbers up to `largest`, if given)."""
    right, head = reference.LearnedHead(*sizes), later(LearnedHead, *sizes)
    state = {}
    for name, old in right.state_dict().items():
        drawn = rng.normal(size=tuple(old.shape)) if largest is None else rng.integers(-largest, largest + 1, old.shape)
        state[name] = torch.tensor(drawn, dtype=torch.float32)
    set_weights(head, state)
    right.load_state_dict(state)
    return head, right


def set_weights(head, state):
    parts = {name: getattr(head, name) for name in ("W_Q", "W_K", "W_V")}
    for name, part in parts.items():
        if not is_instance(part, "torch.nn.modules.linear.Linear"):
            fail(f"`{name}` should be an nn.Linear.")
    names = {str(name) for name, _ in head.named_parameters()}
    observe("parameters", sorted(names), beside=True)
    for name in sorted(names - set(state)):
        fail(f"Your module has a parameter `{name}`, which is not asked for here.")
    for name in sorted(set(state) - names):
        fail(f"Your module has no parameter `{name}`.")
    if "positions.weight" in state and not is_instance(head.positions, "torch.nn.modules.sparse.Embedding"):
        fail("`positions` should be an nn.Embedding.")
    later(head.load_state_dict, state, strict=False)


def one_hot(rng, *shape, n):
    return torch.eye(n)[torch.tensor(rng.integers(0, n, size=shape))]


def judge(head, right, *inputs):
    agrees(head.forward, cases=[(X,) for X in inputs], names=NAMES, like=("forward", right.forward))


@check("without positions: outputs and weights, any number of leading axes", points=1)
def _(rng):
    for n, d_qk, d_v in [(3, 5, 4), (4, 2, 6), (5, 4, 4)]:
        head, right = pair(rng, n, d_qk, d_v)
        compare(head.positions, None, "`positions`")
        judge(head, right, *(one_hot(rng, *shape, n=n) for shape in [(6,), (2, 6), (2, 3, 4), (7, 2), (3, 1)]))
    head, right = pair(rng, 1, 1, 1)
    judge(head, right, one_hot(rng, 2, 3, n=1))
    head, right = pair(rng, 4, 4, 3, largest=20)  # scores of several hundred
    judge(head, right, one_hot(rng, 2, 6, n=4))


@check("with positions: the first T rows stand on the right of the tokens", points=1)
def _(rng):
    for n, d_qk, d_v, max_len, d_pos in [(3, 5, 4, 7, 2), (2, 3, 6, 6, 5), (4, 4, 4, 4, 4), (1, 2, 3, 5, 1)]:
        head, right = pair(rng, n, d_qk, d_v, max_len, d_pos)
        shapes = [(max_len,), (2, max_len), (2, 3, 3), (3, 1), (max_len, max_len)]
        judge(head, right, *(one_hot(rng, *shape, n=n) for shape in shapes))
    head, right = pair(rng, 3, 5, 4, 1, 2)
    judge(head, right, one_hot(rng, 2, 1, n=3))


@check("the gradients of the output reach all weights", points=1)
def _(rng):
    for sizes in [(3, 5, 4), (3, 5, 4, 7, 2)]:
        head, right = pair(rng, *sizes)
        X = one_hot(rng, 2, 6, n=3)
        judge(head, right, X)
        found = parameter_gradients(head, X, of=0)
        for name, gradient in parameter_gradients(right, X, of=0).items():
            if found.get(name) is None:
                fail(f"No gradient reaches `{name}`.")
            compare(found[name], gradient, f"the gradient of `{name}`", atol=1e-3)
    found = parameter_gradients(LearnedHead(3, 5, 4), one_hot(rng, 2, 6, n=3), of=0)
    learns = any(found.get(f"{name}.weight") is not None and np.any(found[f"{name}.weight"]) for name in ("W_Q", "W_K"))
    observe("a new head can learn where to look", learns, beside=True)
    if not learns:
        fail("In a new head no gradient reaches W_Q and W_K: with both at zero they stay there for ever.")


@check("trained, it puts 0.95 of the attention on the right keys (content and first token, lengths 1 to 4)", points=1)
def _(rng):
    start = np.random.default_rng(7)
    for task, sizes in [("content", (3, 3, 3)), ("first", (3, 4, 3, 4, 4))]:
        right, head = reference.LearnedHead(*sizes), LearnedHead(*sizes)
        state = {
            name: torch.tensor(start.uniform(-0.6, 0.6, size=tuple(old.shape)), dtype=torch.float32)
            for name, old in right.state_dict().items()
        }
        set_weights(head, state)
        student_side("train_head")(head, task, steps=80)
        trained = {name: settled(getattr(head, name.partition(".")[0]).weight) for name in state}
        if not all(bool(torch.isfinite(torch.as_tensor(value)).all()) for value in trained.values()):
            fail(f"After training ({task}) a weight is not a finite number.")
        right.load_state_dict(trained)
        for length in (1, 2, 3, 4):
            sequences = [s for s in every_sequence(3, length) if len(s) == length]
            X = torch.eye(3)[torch.tensor(sequences)]
            judge(head, right, X)
            wanted = np.stack([wanted_keys(task, s) for s in sequences])
            least = (right.forward(X)[1].detach().numpy() * wanted).sum(axis=-1).min()
            if not least >= 0.95:
                fail(f"After training ({task}) only {least:.3f} of a query's attention is on the right keys.")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "training-task"}
"""
### Hand-designed and learned, side by side

The next cell is given. `train_head` (above exercise 7) shows a head every sequence of three tokens up to length 4 and
asks for the right *output* only; where to look, it has to find out for itself. Run the cell when exercises 1, 2, 3 and 7
are done, look at the numbers, try other seeds in a cell of your own, and then answer exercises 8 and 9.
"""

# %% nbgrader={"grade_id": "ps7-side-by-side"}
torch.manual_seed(0)
learned_content = LearnedHead(3, 3, 3)
learned_first = LearnedHead(3, 4, 3, max_len=4, d_pos=4)
train_head(learned_content, "content")
train_head(learned_first, "first")
pairs = {
    "content": (Head(**content_head(3)), InNumpy(learned_content)),
    "first": (Head(**position_head(3, 4)), InNumpy(learned_first)),
}
np.set_printoptions(precision=2, suppress=True)
for task, (designed, learned) in pairs.items():
    print(f"=== {task}: a b a c")
    for name, one in (("designed by hand", designed), ("learned", learned)):
        print(f"--- {name}")
        show_pattern(one.forward(one_hot_rows([0, 1, 0, 2], 3))[1], [0, 1, 0, 2])
        print(f"least attention on the right keys, all lengths up to 4: {weakest(one, task, 3, 4)[0]:.4f}")
        if task == "content":
            long = [0] + [1] * 11
            share = (np.asarray(one.forward(one_hot_rows(long, 3))[1]) * wanted_keys(task, long)).sum(axis=1)
            print(f"the same for one a among eleven b: {share.min():.4f}")
    print(f"--- W_Q designed, then learned\n{designed.W_Q}\n{learned.head.W_Q.weight.detach().numpy().T}\n")

# %% [markdown] nbgrader={"grade_id": "compare-content-task"}
"""
## Exercise 8: by content, designed and learned (4 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 25 minutes*

Compare your content head with the learned one: **two similarities and two differences**, each explained in one or two
sentences (what you see, and why it is so). Use numbers from the cell above where you have them.
The matrices of both are in `pairs`; where a head looks depends on the product of W_Q and the transpose of W_K alone, which
is `designed.W_Q @ designed.W_K.T` and, as `nn.Linear` keeps its matrices transposed, `W_Q.weight.T @ W_K.weight` for
`learned.head`.

<details><summary>Hint 1</summary>

Print the product for both heads, one below the other. What is alike, and what is not?

</details>

<details><summary>Hint 2</summary>

*Three comparisons that mean something* in the chapter. A similarity says something if the task leaves no other
choice: what forces it here?

</details>

<details><summary>Hint 3</summary>

Four times *what I see, with a number; because …*. Single entries of W_Q are no good evidence: exercise 6 says why.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "compare-content", "solution": true, "points": 4}
"""
**Model answer.** *Similar (1):* both have the same pattern, nearly all attention on tokens of the own kind, because the
task leaves no other choice: tokens of the same kind have the same row, so they must get equal attention, and any
attention elsewhere would spoil the output. *Similar (2):* in both, what counts is the product W_Q W_Kᵀ: its diagonal is
clearly larger than the rest of the same row, and W_V hands the token on (close to the identity), since scores depend on
the matrices through this product alone. *Different (1):* the entries of W_Q and W_K have nothing in common: mine are a
multiple of the identity, the learned ones dense and different with every seed, because any invertible change of the
query/key basis gives the same scores and the training has no reason to prefer one. *Different (2):* the gap of mine is
larger, 12 by design, with attention 0.99999; the learned head stops at about 0.99, because the gradient of the loss
fades as the softmax saturates; so with one a among eleven b it drops further, and mine does not.

**Rubric** (4 points, each given or not)

- **1 point**: a first true similarity of the two heads **with a reason** (or with the numbers that show it).
- **1 point**: a second, different similarity with a reason. "Both are attention heads", "both have three matrices" and
  the like do not count.
- **1 point**: a first true difference with a reason.
- **1 point**: a second, different difference with a reason. "One is learned and one is not" alone does not count.

A reason is a sentence that says why; numbers of both heads from the output may stand in its place. One property each,
however many of its numbers are given: pattern and outputs; the entries of the matrices (basis, zeros, readability); the
gap of scores, or the attention it gives (up to length 4, and with one a among eleven b).

Accepted among others: patterns, outputs, the role of W_Q W_Kᵀ or W_V, no use of position (both are equivariant under
permutations); entries, gaps, other numbers of tokens (the function designs for any number, the learned head
is for three), dependence on the seed.
"""

# %% [markdown] nbgrader={"grade_id": "compare-position-task"}
"""
## Exercise 9: by position, designed and learned (4 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 20 minutes*

The same for the heads that look at the first token: **two similarities and two differences**, each explained.

<details><summary>Hint 1</summary>

Which part of each head knows the places, and how many places does it know?

</details>

<details><summary>Hint 2</summary>

Give the cell above other seeds. What stays the same, and what is different every time?

</details>

<details><summary>Hint 3</summary>

Again *what I see; because …*, two and two. Think of a sequence that is longer than those of the training, too.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "compare-position", "solution": true, "points": 4}
"""
**Model answer.** *Similar (1):* both put all queries on the first key whatever the tokens are, because the target
output is the first token's row in every sequence, so the scores must not depend on what the tokens are. *Similar (2):*
both hand on the token and drop the position: W_V is close to the identity on the token columns, for the output is to be
a token's row, and in both, only the position code of the keys tells the places apart. *Different (1):* my positions are
one-hot rows that I can read, the learned table is dense: any rows do as long as row 0 can be separated from the others
by a product with the queries. *Different (2):* mine works for any max_len, by an argument of the function; the learned
table has four rows, and a fifth place has no row at all, or, had it one, it would be untrained noise.

**Rubric** (4 points, each given or not)

- **1 point**: a first true similarity of the two heads **with a reason** (or with the numbers that show it).
- **1 point**: a second, different similarity with a reason. "Both use positions" without saying for what does not count.
- **1 point**: a first true difference with a reason.
- **1 point**: a second, different difference with a reason. What was said in exercise 8 counts again if it is said of
  places or position codes, or with numbers of these two heads.

A reason is a sentence that says why; numbers of both heads from the output may stand in its place. One property each:
pattern and outputs; the entries of the matrices; the entries of the position table; the gap.

Accepted among others: the pattern is independent of content, one column of the map takes all, outputs equal in all
rows; position codes and their basis, gaps, lengths beyond training, learned queries that use tokens as well as
positions, speed of learning (an easier task than content: nearly 1 after the same steps).
"""

# %% [markdown] nbgrader={"grade_id": "unique-head-task"}
"""
## Exercise 10: does my kind occur again? (2 points, optional)

*Difficulty ●●●●○ · importance ●●○○○ · about 25 minutes*

For the curious; nothing else builds on it. Now a begin token stands before each sequence: it has the number `n_tokens`,
so rows are one-hot of width n_tokens + 1, and the first row of `X` always is the begin token's.

`unique_head(n_tokens)` returns matrices (with `"positions"` or without) whose output has **width 1**: for each token
after the begin token it is **positive if that token occurs once** in the sequence and **negative if it occurs more than
once**, in both cases by more than **0.05**. The row of the begin token itself is free, and so is the pattern of
attention. It is checked for every sequence up to length 4 (plus the begin token), for several numbers of tokens.

A hint: when a token looks at its own kind and at the begin token, how is the attention shared between them, once there
are two of its kind?

<details><summary>Hint 1</summary>

Let begin and each token of the own kind have equal scores. Which share has begin if the kind occurs once? Twice?
Three times?

</details>

<details><summary>Hint 2</summary>

The output has width 1: with which two values is it a measure of this share, and for which share is it 0?

</details>

<details><summary>Hint 3</summary>

One of the shares of the first hint falls just on that border. In which direction must begin's score be moved, and how
far may it go before the next one crosses it as well?

</details>
"""


# %% nbgrader={"grade_id": "unique-head", "solution": true}
def unique_head(n_tokens):
    """Matrices of a head whose output (T + 1, 1) is > 0.05 where a token occurs once and < -0.05 where it repeats.

    Rows are one-hot of width n_tokens + 1; row 0 is the begin token, with the number n_tokens; its output is free.
    Returns a dict: "W_Q" and "W_K" (n_tokens + 1 + d_pos, d_qk), "W_V" (n_tokens + 1 + d_pos, 1), and "positions"
    (at least 5, d_pos) if there are any.
    """
    ### BEGIN SOLUTION
    kinds = np.eye(n_tokens + 1, n_tokens)  # a query or key for each kind, nothing for the begin token
    W_K = kinds.copy()
    W_K[n_tokens] = 1 + np.log(np.sqrt(2)) / ENOUGH  # the begin token weighs as much as the root of two tokens
    W_V = np.full((n_tokens + 1, 1), -1.0)
    W_V[n_tokens] = 1
    return {"W_Q": ENOUGH * np.sqrt(n_tokens) * kinds, "W_K": W_K, "W_V": W_V}
    ### END SOLUTION


# %% nbgrader={"grade_id": "unique-head-tests", "points": 2}
# Examples of exercise 10: unique_head
matrices = unique_head(3)
assert isinstance(matrices, dict), 'unique_head returns a dict such as {"W_Q": ..., "W_K": ..., "W_V": ...}.'
for name in ("W_Q", "W_K", "W_V"):
    assert name in matrices, f'The entry "{name}" is missing.'
columns = 4 if matrices.get("positions") is None else 4 + np.shape(matrices["positions"])[1]
for name in ("W_Q", "W_K", "W_V"):
    found = np.shape(matrices[name])
    assert len(found) == 2 and found[0] == columns, (
        f"With three tokens and the begin token, {name} needs {columns} rows; its shape is {found}."
    )
assert np.shape(matrices["W_V"])[1] == 1, "The output has width 1, so W_V has one column."
for sequence, sign in (([3, 0, 1], 1), ([3, 0, 0], -1)):  # begin a b, begin a a
    rows = one_hot_rows(sequence, 4)
    if columns > 4:
        rows = np.concatenate([rows, np.asarray(matrices["positions"])[:3]], axis=1)
    queries, keys, values = (rows @ np.asarray(matrices[name]) for name in ("W_Q", "W_K", "W_V"))
    powers = np.exp((queries @ keys.T - (queries @ keys.T).max()) / np.sqrt(queries.shape[1]))
    found = (powers @ values)[1:, 0] / powers.sum(axis=1)[1:]
    assert (sign * found > 0.05).all(), (
        "After begin, a b should both come out positive (each occurs once), and a a both negative; yours are "
        f"{found.round(3).tolist()} for {'a b' if sign == 1 else 'a a'}."
    )
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, observe
from set_checks import Pattern, letters_of, put_together

pattern = Pattern("content", "tokens of its own kind")


def judge_signs(n_tokens):
    size = f"{n_tokens} tokens and begin"
    head = put_together(unique_head(n_tokens), "unique_head", size, 5, n_tokens + 1, width=1)
    failing, signs = None, []
    for _, group in itertools.groupby(every_sequence(n_tokens, 4), key=len):
        group = list(group)
        outputs, patterns = head([(n_tokens, *sequence) for sequence in group])
        for sequence, output, weights in zip(group, outputs[:, 1:, 0], patterns, strict=True):
            count = np.array([sequence.count(token) for token in sequence])
            margin = np.nan_to_num(np.where(count == 1, 1, -1) * output, nan=-1.0)
            signs.append((np.sign(output) * (np.abs(output) > 0.05)).tolist())
            if failing is None and margin.min() <= 0.05:
                failing = sequence, weights, int(margin.argmin()), count
    observe(f"signs, {n_tokens} tokens", signs)
    if failing is None:
        return
    sequence, weights, place, count = failing
    letters = letters_of(sequence)
    wanted = np.zeros_like(weights, dtype=bool)
    wanted[1:, 0] = True
    wanted[1:, 1:] = wanted_keys("content", sequence)
    says = "beside one way to solve it: every token looks at its own kind and at the begin token."
    pattern.draw(weights, wanted, ["begin", *letters], says)
    times, sign = ("once", "positive") if count[place] == 1 else (f"{count[place]} times", "negative")
    fail(
        f"With {n_tokens} tokens and the sequence {' '.join(letters)}, token {place + 1} ({letters[place]}) occurs "
        f"{times}: its output should be {sign}, by more than 0.05."
    )


@check("positive for what occurs once, negative for what repeats: every sequence of three tokens", points=0.5)
def _(rng):
    judge_signs(3)


@check("the same for other numbers of tokens", points=0.5)
def _(rng):
    for n_tokens in (2, 1, 5, 4):
        judge_signs(n_tokens)


### END HIDDEN TESTS

# %% nbgrader={"grade_id": "ps7-circuit"}
import matplotlib.pyplot as plt


def causal_head(stream, W_Q, W_K, W_V):
    """One head on the rows of a stream (..., T, d); no token sees what comes after it.

    Returns its output (..., T, d_v) and its weights (..., T, T).
    """
    scores = (stream @ W_Q) @ (stream @ W_K).swapaxes(-1, -2) / np.sqrt(W_Q.shape[1])
    scores = np.where(np.tri(scores.shape[-1], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    return weights @ (stream @ W_V), weights


def run_circuit(matrices, X):
    """Two heads in a row on one stream. X: one-hot rows (..., T, n_tokens + 1), the first of them the begin token's.

    matrices: what induction_circuit returns. Returns the output of head 2 (..., T, n_tokens), and the weights of head 1
    and of head 2, (..., T, T).
    """
    of = {name: np.asarray(matrix, dtype=np.float64) for name, matrix in matrices.items()}
    places = of["positions"][: X.shape[-2]]
    stream = np.concatenate([X, np.broadcast_to(places, (*X.shape[:-1], places.shape[1]))], axis=-1)  # (..., T, d)
    written, first = causal_head(stream, of["W_Q1"], of["W_K1"], of["W_V1"])
    output, second = causal_head(stream + written, of["W_Q2"], of["W_K2"], of["W_V2"])
    return output, first, second


def keys_after_my_kind(sequence):
    """Boolean (T + 1, T + 1), for begin and a sequence of T tokens: True where query i of head 2 should look at key j."""
    tokens = np.asarray(sequence)
    wanted = np.zeros((len(tokens) + 1, len(tokens) + 1), dtype=bool)
    wanted[1:, 2:] = tokens[:, None] == tokens[None, :-1]  # key j comes after token j - 1
    wanted = np.tril(wanted)
    wanted[~wanted.any(axis=1), 0] = True  # what is new looks at begin
    return wanted


def draw_circuit(matrices, sequence, n_tokens):
    """Draw where both heads look, for begin and a sequence of token numbers."""
    output, *patterns = run_circuit(matrices, one_hot_rows([n_tokens, *sequence], n_tokens + 1))
    names = ["begin", *("abcdefghijklmnopqrstuvwxyz"[token] for token in sequence)]
    figure, axes = plt.subplots(1, 2, figsize=(1.5 + 0.9 * len(names), 1 + 0.45 * len(names)))
    for number, (ax, pattern) in enumerate(zip(axes, patterns, strict=True), 1):
        ax.imshow(pattern, cmap="Blues", vmin=0, vmax=1)
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
        ax.set(title=f"head {number}", xlabel="key", ylabel="query")
    figure.tight_layout()
    plt.show()
    print(f"guess after the last token: {np.round(output[-1], 2).tolist()}")


# %% [markdown] nbgrader={"grade_id": "induction-circuit-task"}
"""
## Exercise 11: two heads that continue a text (3 points, optional)

*Difficulty ●●●●● · importance ●●●○○ · about 40 minutes*

For the curious; nothing else builds on it. What comes next in `a b c a`? "The last time, `b` came after `a`" is a good
guess. One head cannot make it, two heads in a row can: the *induction circuit* of the chapter. Compose it of a head that
looks at the token before, as in exercise 4, and one that looks by content, as in exercise 2. `run_circuit` above says
exactly how they are put together:

- A begin token, number `n_tokens`, stands before each sequence, at place 0. A row of the **stream** holds the token's one-hot
  row (n_tokens + 1) and, on its right, its row of `positions` (max_len + 1, d_pos). Its width is d = n_tokens + 1 + d_pos.
- Head 1 reads the stream, and its output is **added** to the stream: `W_V1` is (d, d). Columns in which `positions` is zero
  throughout are free space for what it writes.
- Head 2 reads the stream as it is then. Its output is the guess: `W_V2` is (d, n_tokens).
- Both are causal: a token sees itself and what came before it. Each divides its scores by the root of its own d_qk.

`induction_circuit(n_tokens, max_len)` returns a dict with `"W_Q1"`, `"W_K1"`, `"W_V1"`, `"W_Q2"`, `"W_K2"`, `"W_V2"` and
`"positions"`, such that in each row of **head 2** but begin's own

- **a token attends to all tokens that came directly after an earlier token of its kind**: in `a b c a` the last `a` looks at
  `b`; in `a b a c a` the last `a` shares its attention between `b` and `c`; in `a a` the second `a` looks at itself, as it came after the first;
- **a token that is new attends to begin**;
- **the output** is the mean of the one-hot rows of the tokens looked at, and zero for a token that is new.

`keys_after_my_kind(sequence)` is this wish as a Boolean table. As before: together at least 0.99 of the attention on the right
keys, outputs within 0.05, for **every** sequence up to length 4 and for others up to length `max_len`, any `n_tokens` from 1
on and any `max_len` from 2 on. Where head 1 looks and what it writes is your affair; only head 2 is judged.

Two questions to begin with: what must a key of head 2 know that no token knows of itself? And how should the score of begin
compare with that of a right key, and with that of a wrong one? `draw_circuit(induction_circuit(3, 6), [0, 1, 2, 0], 3)` draws both heads.

<details><summary>Hint 1</summary>

In `a b c a` the last `a` wants to find `b`. Of which token must the row of `b` know, and who can tell it?

</details>

<details><summary>Hint 2</summary>

Head 1 is the *previous* head of exercise 4. Where does what it finds go, so that nothing is overwritten? (Make the
table of positions wider than it need be.)

</details>

<details><summary>Hint 3</summary>

Head 2 compares one part of the query's row with another part of the key's row. Order its scores: a right key above
begin, begin above all others, each step large enough. `W_V2` hands on the token's part, and nothing for begin.

</details>
"""


# %% nbgrader={"grade_id": "induction-circuit", "solution": true}
def induction_circuit(n_tokens, max_len):
    """Matrices of two heads: each token of head 2 looks at what came after earlier tokens of its kind, else at begin.

    Rows of the stream have the width d = n_tokens + 1 + d_pos; the begin token has the number n_tokens and stands first.
    Returns a dict: "W_Q1" and "W_K1" (d, d_qk), "W_V1" (d, d), "W_Q2" and "W_K2" (d, d_qk, not necessarily the same),
    "W_V2" (d, n_tokens) and "positions" (max_len + 1, d_pos).
    """
    ### BEGIN SOLUTION
    kinds, places = n_tokens + 1, max_len + 1
    d = kinds + places + n_tokens  # the parts of a row: the token, its place, and free space for the token before it
    token, place, before = slice(n_tokens), slice(kinds, kinds + places), slice(-n_tokens, None)
    W_Q1, W_K1 = np.zeros((2, d, places))
    W_Q1[place] = ENOUGH * np.sqrt(places) * np.eye(places, k=-1)  # each place asks for the one before it
    W_K1[place] = np.eye(places)
    W_V1 = np.zeros((d, d))
    W_V1[token, before] = np.eye(n_tokens)  # the token found there is written into the free space
    scale = ENOUGH * np.sqrt(kinds)
    W_Q2, W_K2 = np.zeros((2, d, kinds))
    W_Q2[token] = 2 * scale * np.eye(n_tokens, kinds)  # "does a token of my kind stand before you?"
    W_K2[before] = np.eye(n_tokens, kinds)
    W_Q2[token, n_tokens] = scale  # "are you begin?", half as strongly
    W_K2[n_tokens, n_tokens] = 1
    W_V2 = np.eye(d, n_tokens)  # the token looked at; nothing for begin
    positions = np.eye(places, places + n_tokens)  # the last columns are the free space
    return {
        "W_Q1": W_Q1,
        "W_K1": W_K1,
        "W_V1": W_V1,
        "W_Q2": W_Q2,
        "W_K2": W_K2,
        "W_V2": W_V2,
        "positions": positions,
    }
    ### END SOLUTION


# %% nbgrader={"grade_id": "induction-circuit-tests", "points": 3}
# Examples of exercise 11: induction_circuit
matrices = induction_circuit(3, 6)
assert isinstance(matrices, dict), "induction_circuit returns a dict with seven entries."
for name in ("W_Q1", "W_K1", "W_V1", "W_Q2", "W_K2", "W_V2", "positions"):
    assert matrices.get(name) is not None, f'The entry "{name}" is missing.'
table = np.asarray(matrices["positions"])
assert table.ndim == 2 and len(table) >= 7, (
    f"positions needs a row for begin and one for each of 6 places, not the shape {table.shape}."
)
width = 4 + table.shape[1]
for name in ("W_Q1", "W_K1", "W_V1", "W_Q2", "W_K2", "W_V2"):
    found = np.shape(matrices[name])
    assert len(found) == 2 and found[0] == width, (
        f"{name} should have a row for each column of the stream, {width} (three tokens, begin and the "
        f"{table.shape[1]} of positions), but its shape is {found}."
    )
assert np.shape(matrices["W_V1"])[1] == width, f"Head 1 writes to the stream: W_V1 is ({width}, {width}) here."
assert np.shape(matrices["W_V2"])[1] == 3, "The guess is one of three tokens, so W_V2 has three columns here."
guess, _, weights = run_circuit(matrices, one_hot_rows([3, 0, 1, 2, 0], 4))
assert weights[4].argmax() == 2, (
    "In begin a b c a the last a should look most at b, which came after the first a; it looks at "
    f"{['begin', 'the first a', 'b', 'c', 'itself'][weights[4].argmax()]}."
)
assert guess[4].argmax() == 1, f"After begin a b c a the guess should be b; the output is {guess[4].round(2).tolist()}."
assert weights[3].argmax() == 0, "In begin a b c a the token c is new: it should look most at begin."
### BEGIN HIDDEN TESTS
from autograder.checks import check, observe
from set_checks import SIZES, Induction, circuit_of

pattern = Induction()


def own_circuit(n_tokens, max_len):
    size = f"{n_tokens} tokens and max_len {max_len}"
    return circuit_of(induction_circuit(n_tokens, max_len), size, max_len, n_tokens), size


def begun(n_tokens, sequences):
    return [(n_tokens, *(int(token) for token in sequence)) for sequence in sequences]


def probe(n_tokens, max_len):
    """A sequence in which tokens are new, come again, and follow one of their own kind."""
    return begun(n_tokens, [[token % n_tokens for token in (0, 1, 2, 0, 0, 1, 3)][:max_len]])[0]


def judge(n_tokens, max_len, sequences):
    circuit, size = own_circuit(n_tokens, max_len)
    seen = circuit([probe(n_tokens, max_len)])[2][0]
    observe(f"where head 1 looks, {size}", (seen >= 0.5 * seen.max(axis=1, keepdims=True)).tolist())
    pattern.attention(circuit, size, begun(n_tokens, sequences), probe(n_tokens, max_len))


@check("head 2 looks at what came after its kind, or at begin: every sequence up to length 4", points=1)
def _(rng):
    for n_tokens, max_len in SIZES:
        judge(n_tokens, max_len, every_sequence(n_tokens, min(4, max_len)))


@check("and in longer sequences up to max_len", points=0.5)
def _(rng):
    for n_tokens, max_len in [(3, 12), (5, 7), (2, 20), (4, 9)]:
        random = [rng.integers(0, n_tokens, size=length) for length in range(5, max_len + 1)]
        for length in (max_len, max_len):
            random.append(rng.integers(0, n_tokens, size=length))
        once = [[0] + [1] * (max_len - 1), [1] * (max_len - 1) + [0], [0] * max_len]
        judge(n_tokens, max_len, [*random, *once])


@check("each output is the mean of what is looked at, and zero for a token that is new", points=0.5)
def _(rng):
    for n_tokens, max_len in SIZES:
        circuit, size = own_circuit(n_tokens, max_len)
        random = [rng.integers(0, n_tokens, size=length) for length in range(1, max_len + 1)]
        sequences = [*every_sequence(n_tokens, min(3, max_len)), *random]
        off = []
        for sequence in [*begun(n_tokens, sequences), probe(n_tokens, max_len)]:
            right = keys_after_my_kind(sequence[1:])
            tokens = one_hot_rows(sequence, n_tokens + 1)[:, :n_tokens]  # begin counts as zeros
            wanted = right @ tokens / right.sum(axis=1, keepdims=True)
            off.append(((circuit([sequence])[0][0] - wanted)[1:], sequence))
        pattern.outputs(size, off, -1, "the mean of the one-hot rows of the tokens to look at, zero where one is new")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "ps7-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps7-summary"}
where_you_stand()
