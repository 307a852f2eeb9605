# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps2-introduction"}
r"""
# Problem set 2: self-attention

You compute attention by hand once, with your own numbers, and then write it as code: first the hard choice of one
key, then the scaled dot product with masks, then self- and cross-attention. It goes with the chapter *Self-attention*
of the book. 40 points: 32 are graded automatically, and 8, for the written answers, by a person. Plan three to four hours.

**How to work, in two minutes**

1. Type your id into the next cell. Your numbers in exercises 1 and 2 are drawn from it.
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

**Conventions** in this set, unless an exercise says otherwise

- Tokens stand in rows: arrays are `(..., T, d)`. The dots are batch axes; any number of them works, also none.
- Scores are divided by $\sqrt{d_k}$, where $d_k$ is the width of the keys. Softmax runs over the keys (last axis).
- A mask is Boolean and **`True` means "may attend"**.
- Functions take float32 or float64 NumPy arrays and never change them. The type of what you return is free. It is
  compared with the right result to within 1e-6 (1e-4 for float32 inputs). Use NumPy; PyTorch is not needed.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps2-progress"}
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

# %% nbgrader={"grade_id": "ps2-helpers"}
import zlib
from functools import lru_cache

import numpy as np


def clear_winners(products):
    """Which of many maps have one largest entry in each row, by a lead of 1 to 4, and not always in the same column."""
    ordered = np.sort(products, axis=-1)
    lead = ordered[..., -1] - ordered[..., -2]
    best = products.argmax(axis=-1)
    return (lead.min(axis=-1) >= 1) & (lead.max(axis=-1) <= 4) & (best.min(axis=-1) < best.max(axis=-1))


def readings_differ(products):
    """Which of many maps have a column that, read downwards, clearly points elsewhere than the row of its number."""
    behind = products - products.max(axis=-1, keepdims=True)  # distance from the best key of the same query
    alone = (behind == behind.max(axis=-2, keepdims=True)).sum(axis=-2) == 1
    return (alone & (behind.argmax(axis=-2) != products.argmax(axis=-1))).any(axis=-1)


def full_rank(*matrices):
    """True if no matrix repeats itself: no row or column follows from the others."""
    return all(np.linalg.matrix_rank(matrix) == min(matrix.shape) for matrix in matrices)


@lru_cache(maxsize=8)
def draw_self_attention(seed):
    rng = np.random.default_rng(seed)
    while True:  # 64 examples at once, of which the first good one is taken
        X = rng.integers(-2, 3, size=(64, 3, 4)).astype(float)
        W_Q, W_K, W_V = rng.integers(-1, 2, size=(3, 64, 4, 2)).astype(float)
        products = X @ W_Q @ (X @ W_K).swapaxes(-1, -2)
        for n in np.flatnonzero(clear_winners(products) & readings_differ(products)):
            if full_rank(W_Q[n], W_K[n], W_V[n]):
                return X[n], W_Q[n], W_K[n], W_V[n]


@lru_cache(maxsize=8)
def draw_cross_attention(seed):
    rng = np.random.default_rng(seed)
    while True:
        X_q = rng.integers(-2, 3, size=(64, 2, 4)).astype(float)
        X_kv = rng.integers(-2, 3, size=(64, 4, 2)).astype(float)
        W_Q = rng.integers(-1, 2, size=(64, 4, 3)).astype(float)
        W_K, W_V = rng.integers(-1, 2, size=(2, 64, 2, 3)).astype(float)
        for n in np.flatnonzero(clear_winners(X_q @ W_Q @ (X_kv @ W_K).swapaxes(-1, -2))):
            if full_rank(W_Q[n], W_K[n], W_V[n]):
                return X_q[n], X_kv[n], W_Q[n], W_K[n], W_V[n]


def self_attention_numbers(student_id):
    """The numbers of exercise 1 for this id: X (3, 4), W_Q (4, 2), W_K (4, 2), W_V (4, 2)."""
    return [array.copy() for array in draw_self_attention(zlib.crc32(str(student_id).strip().encode()))]


def cross_attention_numbers(student_id):
    """The numbers of exercise 2 for this id: X_q (2, 4), X_kv (4, 2), W_Q (4, 3), W_K (2, 3), W_V (2, 3)."""
    return [array.copy() for array in draw_cross_attention(zlib.crc32(str(student_id).strip().encode()))]


def show(**arrays):
    """Print each array under its name and shape."""
    for name, array in arrays.items():
        print(f"{name} {array.shape}\n{array}\n")


# %% [markdown] nbgrader={"grade_id": "self-attention-worksheet-task"}
r"""
## Exercise 1: self-attention by hand (6 points)

*Difficulty ●●○○○ · importance ●●●●● · about 25 minutes*

Three tokens of width 4 stand in the rows of `X`. The queries, keys and values are $Q = XW_Q$, $K = XW_K$, $V = XW_V$
with $d_k = d_v = 2$. Work out, on paper or with code,

| entry | what it is | shape |
|---|---|---|
| `"Q"`, `"K"`, `"V"` | queries, keys, values | (3, 2) each |
| `"scores"` | $QK^\top$ divided by $\sqrt{d_k}$ | (3, 3) |
| `"weights"` | softmax of each row of the scores: row = query, column = key | (3, 3) |
| `"output"` | the weighted averages of the values | (3, 2) |
| `"dominant"` | for each of the three outputs, the number of the input that dominates it, that is, has the largest weight in it. **Count the inputs from 1.** | 3 whole numbers |

Collect them in a dict called `self_attention_answers`, as arrays or as nested lists:

```python
self_attention_answers = {
    "Q": [[0, 0], [0, 0], [0, 0]],
    ...
    "dominant": [1, 1, 1],
}
```

Your numbers are drawn so that the two largest weights of every row are at least 0.05 apart.

Every number may be off by 0.005. Give three decimals, and carry more in between. Queries, keys and values together,
scores, weights, outputs and dominant inputs earn a point each; the sixth point is for the cell below. Each entry is
compared with the right numbers, so a slip goes on into what you compute from it.

<details><summary>Hint 1</summary>

Which shapes have the queries, and the keys turned round? If a row belongs to a query, along which axis does the
softmax sum to 1?

</details>

<details><summary>Hint 2</summary>

*Worked example: self-attention* in the chapter does it with other numbers. Which number stands under the root here,
and is the division before or after the softmax?

</details>

<details><summary>Hint 3</summary>

A chain, each link made of the one before: Q, K and V; scores; powers; their sums, row by row; weights; outputs; and
the place of the largest weight, counted from 1.

</details>
"""

# %% nbgrader={"grade_id": "self-attention-worksheet", "solution": true}
X, W_Q, W_K, W_V = self_attention_numbers(student_id)
show(X=X, W_Q=W_Q, W_K=W_K, W_V=W_V)

# Bind self_attention_answers: a dict with "Q", "K", "V", "scores", "weights", "output" and "dominant".
### BEGIN SOLUTION
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
scores = Q @ K.T / np.sqrt(2)
weights = np.exp(scores)
weights = weights / weights.sum(axis=1, keepdims=True)
self_attention_answers = {
    "Q": Q,
    "K": K,
    "V": V,
    "scores": scores,
    "weights": weights,
    "output": weights @ V,
    "dominant": weights.argmax(axis=1) + 1,
}
### END SOLUTION

# %% nbgrader={"grade_id": "self-attention-worksheet-tests", "points": 6}
# Examples of exercise 1: self_attention_answers
sheet = self_attention_answers
assert isinstance(sheet, dict), 'self_attention_answers should be a dict such as {"Q": ..., "K": ...}.'
for entry, shape in {
    "Q": (3, 2),
    "K": (3, 2),
    "V": (3, 2),
    "scores": (3, 3),
    "weights": (3, 3),
    "output": (3, 2),
    "dominant": (3,),
}.items():
    assert entry in sheet, f'The entry "{entry}" is missing.'
    found = np.shape(sheet[entry])
    assert found == shape, f'"{entry}" should have the shape {shape}, not {found}.'
tokens, to_query, _, _ = self_attention_numbers(student_id)
assert abs(sheet["Q"][0][0] - tokens[0] @ to_query[:, 0]) <= 0.0051, (
    "The first number of the first query is row 1 of X times column 1 of W_Q: "
    "multiply entry by entry and add up. (Are these the numbers of the id you typed?)"
)
assert np.allclose(np.sum(np.asarray(sheet["weights"]), axis=1), 1, atol=0.02), (
    "Each query has one whole of attention to give away: every row of the weights sums to 1."
)
assert set(np.ravel(np.asarray(sheet["dominant"])).tolist()) <= {1, 2, 3}, (
    '"dominant" holds numbers of inputs, counted from 1: each is 1, 2 or 3.'
)
### BEGIN HIDDEN TESTS
from autograder.checks import check
from set_checks import judge_entries, right_answers

X, *matrices = self_attention_numbers(student_id)
RIGHT = right_answers(X, X, *matrices)


@check("queries, keys and values", points=1)
def _():
    judge_entries(self_attention_answers, "self_attention_answers", RIGHT, "Q", "K", "V")


@check("the scores", points=1)
def _():
    judge_entries(self_attention_answers, "self_attention_answers", RIGHT, "scores")


@check("the attention weights", points=1)
def _():
    judge_entries(self_attention_answers, "self_attention_answers", RIGHT, "weights")


@check("the outputs", points=1)
def _():
    judge_entries(self_attention_answers, "self_attention_answers", RIGHT, "output")


@check("which input dominates each output", points=1)
def _():
    judge_entries(self_attention_answers, "self_attention_answers", RIGHT, "dominant")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "cross-attention-worksheet-task"}
r"""
## Exercise 2: cross-attention by hand (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 15 minutes*

Now two tokens ask (`X_q`, width 4) and four others answer (`X_kv`, width 2): $Q = X_qW_Q$, $K = X_{kv}W_K$,
$V = X_{kv}W_V$, with $d_k = d_v = 3$. Collect in a dict called `cross_attention_answers`

| entry | what it is | shape |
|---|---|---|
| `"Q"` | queries | (2, 3) |
| `"K"`, `"V"` | keys and values | (4, 3) each |
| `"scores"` | $QK^\top$ divided by $\sqrt{d_k}$ | (2, 4) |
| `"weights"` | the attention map: softmax of each row of the scores | (2, 4) |
| `"output"` | the weighted averages of the values | (2, 3) |

As before, every number may be off by 0.005; arrays and nested lists are both fine.

<details><summary>Hint 1</summary>

Two tokens ask, four answer. Which arrays have two rows, and which have four?

</details>

<details><summary>Hint 2</summary>

*Worked example: cross-attention* in the chapter. What has changed beside the origin of K and V? Look at $d_k$.

</details>

<details><summary>Hint 3</summary>

The chain of exercise 1. Nothing in it needs as many queries as keys.

</details>
"""

# %% nbgrader={"grade_id": "cross-attention-worksheet", "solution": true}
X_q, X_kv, W_Q, W_K, W_V = cross_attention_numbers(student_id)
show(X_q=X_q, X_kv=X_kv, W_Q=W_Q, W_K=W_K, W_V=W_V)

# Bind cross_attention_answers: a dict with "Q", "K", "V", "scores", "weights" and "output".
### BEGIN SOLUTION
Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
scores = Q @ K.T / np.sqrt(3)
weights = np.exp(scores)
weights = weights / weights.sum(axis=1, keepdims=True)
cross_attention_answers = {
    "Q": Q,
    "K": K,
    "V": V,
    "scores": scores,
    "weights": weights,
    "output": weights @ V,
}
### END SOLUTION

# %% nbgrader={"grade_id": "cross-attention-worksheet-tests", "points": 4}
# Examples of exercise 2: cross_attention_answers
sheet = cross_attention_answers
assert isinstance(sheet, dict), 'cross_attention_answers should be a dict such as {"Q": ..., "K": ...}.'
for entry, shape in {
    "Q": (2, 3),
    "K": (4, 3),
    "V": (4, 3),
    "scores": (2, 4),
    "weights": (2, 4),
    "output": (2, 3),
}.items():
    assert entry in sheet, f'The entry "{entry}" is missing.'
    found = np.shape(sheet[entry])
    assert found == shape, f'"{entry}" should have the shape {shape}, not {found}.'
tokens, _, to_query, _, _ = cross_attention_numbers(student_id)
assert abs(sheet["Q"][0][0] - tokens[0] @ to_query[:, 0]) <= 0.0051, (
    "The first number of the first query is row 1 of X_q times column 1 of W_Q. "
    "(Are these the numbers of the id you typed?)"
)
assert np.allclose(np.sum(np.asarray(sheet["weights"]), axis=1), 1, atol=0.025), (
    "The map has a row for each of the two queries, and every row sums to 1."
)
### BEGIN HIDDEN TESTS
from autograder.checks import check
from set_checks import judge_entries, right_answers

RIGHT = right_answers(*cross_attention_numbers(student_id))


@check("queries, keys and values", points=1)
def _():
    judge_entries(cross_attention_answers, "cross_attention_answers", RIGHT, "Q", "K", "V")


@check("the scores and the attention map", points=1)
def _():
    judge_entries(cross_attention_answers, "cross_attention_answers", RIGHT, "scores", "weights")


@check("the outputs", points=1)
def _():
    judge_entries(cross_attention_answers, "cross_attention_answers", RIGHT, "output")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "argmax-attention-task"}
"""
## Exercise 3: take the best key only (3 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 10 minutes*

The simplest way to look something up: compare the query with every key by the dot product, and return the value that
belongs to the key with the largest one. If several keys share the largest product, **the first of them wins** (this is
checked with whole numbers only, where equal really means equal).

Here `q`, `K` and `V` have exactly the shapes of the docstring, without batch axes; T, d and d_v are at least 1.

<details><summary>Hint 1</summary>

`K` is `(T, d)`, `q` is `(d,)`: which product gives all T dot products at once?

</details>

<details><summary>Hint 2</summary>

NumPy has a function for the *place* of the largest entry. Which place does it give if two are equal?

</details>

<details><summary>Hint 3</summary>

Products, place, row: three steps.

</details>
"""


# %% nbgrader={"grade_id": "argmax-attention", "solution": true}
def argmax_attention(q, K, V):
    """The value of the key whose dot product with the query is largest; the first key wins a tie.

    q: query (d,). K: keys (T, d). V: values (T, d_v). Returns an array (d_v,). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    products = K @ q
    return V[np.argmax(products)]
    ### END SOLUTION


# %% nbgrader={"grade_id": "argmax-attention-tests", "points": 3}
# Examples of exercise 3: argmax_attention
query = np.array([1.0, 1.0, 2.0])
keys = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
values = np.array([[2.0, 0.0], [1.0, 4.0], [0.0, -1.0], [1.0, 0.0]])
chosen = argmax_attention(query, keys, values)
assert chosen is not None, "argmax_attention returned None. Is there a return?"
assert np.shape(chosen) == (2,), f"Return one value, here of width 2, not shape {np.shape(chosen)}."
assert np.allclose(chosen, [1, 4]), (
    "The products of the query with the four keys are 3, 11, 5 and 2: the second value, (1, 4), comes out."
)
assert np.allclose(argmax_attention(-query, keys, values), [1, 0]), (
    "With the query turned round the products are -3, -11, -5 and -2. The largest is -2, of the fourth key."
)
assert np.allclose(argmax_attention(query[:2], np.array([[0, 2.0], [2, 0], [1, 0]]), values[:3]), [2, 0]), (
    "The first two keys have the same product, 2. The first one wins."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def lookup(rng, T, d, d_v, dtype=np.float64, shift=0.0):
    """Random query, keys and values in which the best key leads by at least 0.01."""
    while True:
        q, K, V = rng.normal(size=d), rng.normal(size=(T, d)), rng.normal(size=(T, d_v))
        K = K - shift * q / (q @ q)  # every product becomes smaller by the shift
        leaders = np.sort(K @ q)[-2:]
        if abs(q).min() > 0.1 and leaders[-1] - leaders[0] > (0.01 if T > 1 else -1):
            return q.astype(dtype), K.astype(dtype), V.astype(dtype)


@check("random queries and keys, among them keys that all point away from the query", points=1)
def _(rng):
    # first leads that only whole numbers lose, and narrower ones, the last without rounding: nearly equal is not equal,
    # and which of them an answer loses tells apart how it takes them for equal
    cases = []
    for scale, best in ((1.0, 2.4), (1.0, 2.03), (1.0, 2.01001), (2.0**-50, 2.03)):
        cases.append((np.full(1, scale), np.array([[0.5], [1.98], [2.01], [best]]), rng.normal(size=(4, 3))))
    sizes = [(5, 4, 6), (7, 3, 2), (2, 6, 5), (4, 1, 3), (1, 3, 2), (6, 4, 1)]
    cases += [lookup(rng, T, d, d_v, shift=float(rng.choice([0, 20]))) for T, d, d_v in sizes]
    cases += [lookup(rng, 5, 4, 6, shift=shift) for shift in (0.0, 20.0, 2e3, -2e3)]
    cases.append(lookup(rng, 5, 4, 6, dtype=np.float32))
    q, K, V = lookup(rng, 5, 4, 6)
    cases.append((q, np.asfortranarray(K), np.repeat(V, 2, axis=1)[:, ::2]))
    agrees(argmax_attention, cases=cases)


@check("the first key wins a tie", points=1)
def _(rng):
    cases = []
    for T, d, d_v in [(6, 3, 4), (5, 2, 3), (4, 1, 2)]:
        q = rng.integers(1, 4, size=d).astype(float)
        K = rng.integers(-3, 4, size=(T, d)).astype(float)
        best = K[np.argmax(K @ q)].copy()
        K[[1, T - 1]] = best  # the best key stands in several rows, not always in the first
        if T > 5:
            K[0] = best - 1
        V = rng.normal(size=(T, d_v))
        cases.append((q, K, V))
    cases.append((np.zeros(3), rng.normal(size=(4, 3)), rng.normal(size=(4, 2))))
    for T in (12, 20, 33, 50):  # many keys with few different products: a sort must be stable
        for _ in range(2):
            K = rng.integers(-2, 3, size=(T, 1)).astype(float)
            cases.append((np.ones(1), K, rng.normal(size=(T, 3))))
    agrees(argmax_attention, cases=cases)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "gradient-task"}
r"""
## Exercise 4: which gradient reaches the keys? (1 + 2 points)

*Difficulty ●●●○○ · importance ●●●●● · about 15 minutes*

Let `output = argmax_attention(q, K, V)` feed a loss, say $L = \lVert\text{output}\rVert^2$, and let one key win clearly
(no tie) with a value that is not zero. What is the gradient of $L$ with respect to the keys `K`?

- **a** Only the winning key gets a gradient that is not zero.
- **b** Every key gets a gradient that is not zero, the winning key the largest.
- **c** Every key gets the gradient zero.
- **d** The winning key gets an infinite gradient, the others zero.

Set `answer_gradient` to one letter, for example `answer_gradient = "a"`.

<details><summary>Hint 1</summary>

Move one entry of a key by a millionth. Which row of `V` comes out now?

</details>

<details><summary>Hint 2</summary>

A gradient says how fast the loss changes with its input. *A hard choice cannot learn* in the chapter looks at just
this.

</details>

<details><summary>Hint 3</summary>

Ask it twice: for an entry of the winning key, and for one of a losing key.

</details>
"""

# %% nbgrader={"grade_id": "gradient-choice", "solution": true}
# answer_gradient = one of "a", "b", "c", "d"
### BEGIN SOLUTION
answer_gradient = "c"
### END SOLUTION

# %% nbgrader={"grade_id": "gradient-choice-tests", "points": 1}
# Examples of exercise 4: answer_gradient
# Your letter is checked when you hand in.
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, reference


@check("the gradient that reaches the keys", points=1)
def _():
    letter = answer_gradient
    if not isinstance(letter, str) or letter.strip().lower() not in ("a", "b", "c", "d"):
        fail('answer_gradient should be one of the letters "a", "b", "c", "d".')
    if letter.strip().lower() != reference.answer_gradient:
        fail("Not this one. Move one key by a tiny amount in exercise 3 and watch the output.")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "gradient-why-task"}
"""
Now say why, in three to five sentences: (1) why this is the gradient of the keys, and (2) what that means for learning
$W_Q$ and $W_K$ by gradient descent.

<details><summary>Hint 1</summary>

What does the output depend on: on which numbers directly, and on which only through a place?

</details>

<details><summary>Hint 2</summary>

For (2) follow the chain rule one step further back: by which way alone do $W_Q$ and $W_K$ act on the loss?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "gradient-why", "solution": true, "points": 2}
"""
**Model answer.** The output is one row of V, and which row depends on the keys only through the place of the largest
product. When one key wins clearly, a small change of any key leaves the winner the winner, so the output does not move
at all: as a function of the keys it is constant piece by piece, and its gradient is zero everywhere except at ties,
where it jumps and has no derivative. The same holds for the query. So no gradient reaches W_Q and W_K: gradient
descent never changes them, whatever the loss, and the model cannot learn where to look. (The winning row of V does get
a gradient.)

**Rubric** (2 points, each given or not)

- **1 point**: a small change of a key does not change which key wins, hence not the output (or: the output is
  piecewise constant in the keys). "Because argmax is not differentiable" alone is not enough: it must be said that the
  output does not change, or that the derivative is zero rather than missing.
- **1 point**: W_Q and W_K (or the queries and keys) receive no gradient and so do not learn. Saying that the
  gradient is zero without the consequence for learning does not earn this point.
"""

# %% [markdown] nbgrader={"grade_id": "scaled-dot-product-attention-task"}
r"""
## Exercise 5: scaled dot-product attention (8 points)

*Difficulty ●●●●○ · importance ●●●●● · about 45 minutes*

$$\text{weights} = \operatorname{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right), \qquad \text{output} = \text{weights}\;V$$

with the softmax over the keys. Write it for any number of leading axes (none, one, several; they are the same in `Q`,
`K` and `V`), and for these cases:

- **Masks.** `mask` is `None` or a Boolean array that broadcasts to `(..., T_q, T_k)`: shapes such as `(T_k,)`,
  `(T_q, T_k)`, `(B, 1, T_k)` or `(T_q, 1)` all occur. `True` means that the query may attend to the key. A key that may
  not be attended to gets the weight 0 and has no influence at all, however large its score is: the remaining keys share
  the whole attention. (Float masks of zeros and ones are not used and not checked.)
- **Queries without a key.** A query that may attend to nothing gets a row of zeros in the weights and zeros in the
  output. No NaN.
- **Large scores.** Scores up to ±10,000 must not overflow, also when one row of scores is large and another small:
  subtract the largest score of the row before `exp`.
- **Small sizes.** One query, one key and widths of 1 work, and T_q, T_k, d_k and d_v can all differ.

The inputs stay as they are. No infinities or NaN come in.

**A picture** (who looks at whom, without a mask and with a causal one; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

X = np.random.default_rng(0).normal(size=(8, 4))
for mask in (None, np.tri(8, dtype=bool)):
    plt.matshow(scaled_dot_product_attention(X, X, X, mask)[1], cmap="Blues", vmin=0)
plt.show()
```

<details><summary>Hint 1</summary>

Which two axes of `K` change places, if any number of axes may stand before them? Along which axis does the softmax
run?

</details>

<details><summary>Hint 2</summary>

*Masks: what may be looked at* in the chapter. Which score has an `exp` of exactly 0? Where in the order of steps must
it be put in, so that the remaining keys share everything?

</details>

<details><summary>Hint 3</summary>

Scores, mask, subtract each row's largest, powers, sums, weights, output. Then go through it once more with a row that
is masked wholly: what is its largest score, and what is its sum? Both must be made harmless *before* they are used.

</details>
"""


# %% nbgrader={"grade_id": "scaled-dot-product-attention", "solution": true}
def scaled_dot_product_attention(Q, K, V, mask=None):
    """Attention of every query over all keys; softmax over the keys of QK^T / sqrt(d_k).

    Q: queries (..., T_q, d_k). K: keys (..., T_k, d_k). V: values (..., T_k, d_v).
    mask: None or Boolean, broadcastable to (..., T_q, T_k); True = may attend.
    Returns (output, weights): output (..., T_q, d_v), weights (..., T_q, T_k), each row of which sums to 1.
    A query that may attend to nothing has zeros in both. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    d_k = Q.shape[-1]
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
    ### END SOLUTION


# %% nbgrader={"grade_id": "scaled-dot-product-attention-tests", "points": 8}
# Examples of exercise 5: scaled_dot_product_attention
# One query, two keys, d_k = 4. The products are 2 ln 3 and 0, the scores ln 3 and 0, so exp gives 3 and 1.
queries = np.array([[2.0, 0.0, 0.0, 0.0]])
keys = np.array([[np.log(3), 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 5.0]])
values = np.array([[4.0, 0.0, 8.0], [0.0, 4.0, 0.0]])
result = scaled_dot_product_attention(queries, keys, values)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (1, 2), f"One query and two keys give weights (1, 2), not {np.shape(weights)}."
assert np.shape(output) == (1, 3), f"One query, values of width 3: output (1, 3), not {np.shape(output)}."
assert np.allclose(np.sum(np.asarray(weights), axis=-1), 1), "The weights of a query sum to 1 over the keys."
assert not np.allclose(weights, [[0.9, 0.1]]), "[0.9, 0.1] comes without the division by sqrt(d_k)."
assert np.allclose(weights, [[0.75, 0.25]]), "The scores ln 3 and 0 give weights 3 : 1, that is [0.75, 0.25]."
assert np.allclose(output, [[3, 1, 6]]), "The output is 0.75 of the first value plus 0.25 of the second."

# A mask: the first query may see both keys, the second only the last, the third none.
queries = np.repeat(queries, 3, axis=0)
mask = np.array([[True, True], [False, True], [False, False]])
output, weights = map(np.asarray, scaled_dot_product_attention(queries, keys, values, mask))
assert np.allclose(weights[:2], [[0.75, 0.25], [0, 1]]), (
    "True means 'may attend'. A query that may see one key only gives it all its attention."
)
assert np.allclose(weights[2], 0) and np.allclose(output[2], 0), "A query without a key gets zeros."

# Large scores, and a batch of two.
queries, keys, values = (
    1e4 * np.stack([queries, -queries]),
    np.stack([keys, keys]),
    np.stack([values, values]),
)
output, weights = map(np.asarray, scaled_dot_product_attention(queries, keys, values))
assert np.shape(weights) == (2, 3, 2), f"The batch axis stays: weights (2, 3, 2), not {np.shape(weights)}."
assert np.allclose(weights, [[[1, 0]] * 3, [[0, 1]] * 3]), (
    "Scores of ±10,000 give weights of 1 and 0, not NaN. Subtract the largest score of each row before exp."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check, compare

NAMES = ("output", "weights")


def qkv(rng, *leading, T_q=3, T_k=5, d_k=4, d_v=6):
    return (
        rng.normal(size=(*leading, T_q, d_k)),
        rng.normal(size=(*leading, T_k, d_k)),
        rng.normal(size=(*leading, T_k, d_v)),
    )


def some_mask(rng, *shape):
    """A random mask in which every row has a True and a False (for at least two keys)."""
    mask = rng.random(shape) < 0.5
    rows = mask.reshape(-1, shape[-1])
    for row in rows:
        first, second = rng.permutation(shape[-1])[:2]
        row[first], row[second] = True, False
    return mask


def scaled_up(Q, K, largest):
    """Q in the scale that makes the largest score as large as asked."""
    return Q * largest / np.abs(Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])).max()


@check("a batch in which all sizes differ", points=1)
def _(rng):
    cases = [
        qkv(rng, 2),
        qkv(rng, 3, T_q=7, T_k=2, d_k=9, d_v=5),
        qkv(rng, 2, T_q=4, T_k=6, d_k=5, d_v=5),
    ]
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("no, two and three leading axes; permuted keys permute the weights", points=1)
def _(rng):
    cases = [qkv(rng, *leading) for leading in [(), (2, 7), (2, 1, 4)]]
    Q, K, V = qkv(rng, 2)
    order = rng.permutation(5)
    cases += [(Q, K, V), (Q, K[:, order], V[:, order])]
    *_, (output, weights), again = agrees(scaled_dot_product_attention, cases=cases, names=NAMES)
    compare(again[0], output, "output after the keys and values changed places")
    compare(again[1], np.asarray(weights)[..., order], "weights after the keys and values changed places")


@check("masks: True means 'may attend', and the keys that remain share the whole attention", points=1)
def _(rng):
    cases = [
        case(*qkv(rng, 2), some_mask(rng, 2, 3, 5)),
        case(*qkv(rng, 2), some_mask(rng, 2, 3, 5)),
        case(*qkv(rng, 2), mask=np.ones((2, 3, 5), dtype=bool)),
        case(*qkv(rng), some_mask(rng, 3, 5)),
    ]
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("masks that broadcast, with and without batch axes", points=0.5)
def _(rng):
    shapes = [(5,), (3, 5), (1, 5), (2, 1, 5), (1, 3, 5)]
    cases = [(*qkv(rng, 2), some_mask(rng, *shape)) for shape in shapes]
    cases += [(*qkv(rng, 2, 7), some_mask(rng, *shape)) for shape in [(2, 1, 1, 5), (2, 1, 3, 5), (7, 1, 5)]]
    for mask in [some_mask(rng, 3, 5), np.ones((3, 1), dtype=bool)]:
        cases += [(*qkv(rng, 2, 7), mask), (*qkv(rng), mask)]
    cases.append((*qkv(rng, 3), some_mask(rng, 3, 5)))
    cases += [(*qkv(rng, *leading, T_q=5), some_mask(rng, 5)) for leading in [(), (2,)]]
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("a query that may attend to nothing gets zero weights and a zero output", points=1)
def _(rng):
    mask = some_mask(rng, 2, 3, 5)
    mask[0, 1] = mask[1, 2] = False
    one = np.zeros((3, 5), dtype=bool)
    one[1, 4] = True
    rows = np.array([[True], [False], [True]])
    cases = [
        (*qkv(rng, 2), mask),
        (*qkv(rng, 2), one),
        (*qkv(rng, 2), np.zeros((2, 3, 5), dtype=bool)),
        (*qkv(rng, 2, 4), one),
        (*qkv(rng, 2), np.zeros(5, dtype=bool)),
        (*qkv(rng), np.zeros(5, dtype=bool)),
    ]
    for leading in [(), (2, 7)]:
        cases += [(*qkv(rng, *leading), rows), (*qkv(rng, *leading, T_k=1), rows)]
    Q, K, V = qkv(rng, 2)
    single = [array.astype(np.float32) for array in qkv(rng, 2)]
    cases += [(scaled_up(Q, K, 1e4), K, V, rows), (*single, mask)]
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("large scores, and rows of very different scale", points=1)
def _(rng):
    Q, K, V = qkv(rng, 2)
    scale = np.array([[1e-6], [1e-3], [1.0]])
    positive = scaled_up(np.abs(Q), np.abs(K), 1e4)
    wide = scaled_up(np.concatenate([1e-3 * Q, 1e-6 * Q, Q], axis=1), K, 1e4)
    cases = [
        (scaled_up(Q * scale, K, 1e4), K, V),
        (positive, np.abs(K), V),
        (-positive, np.abs(K), V),
        (wide, K, V, some_mask(rng, 2, 9, 5)),
    ]
    for leading in [(), (2, 4), (1,)]:
        Q, K, V = qkv(rng, *leading)
        cases.append((1e3 * np.abs(Q), np.abs(K), V))
    # the only keys that may be attended to have the lowest scores
    ends = np.array([[1.0], [-1.0], [-0.95], [0.9], [-0.99]])
    low = np.array([False, True, True, False, True])
    cases += [(np.full((3, 1), size), ends, rng.normal(size=(5, 6)), low) for size in (5e3, 1e4)]
    cases.append((np.full((3, 1), 1e4), np.sign(ends), rng.normal(size=(5, 6)), low))
    # scores that are large and differ by little
    cases.append((np.ones((3, 1)), 9_990 + rng.normal(size=(5, 1)), rng.normal(size=(5, 6))))
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("a masked key has no influence, however large it is", points=0.5)
def _(rng):
    Q, K, V = qkv(rng, 2)
    mask = np.array([True, False, True, True, False]) & np.ones((2, 3, 1), dtype=bool)
    cases = [(Q, K, V, mask)]
    for size in (3.0, 1e3):
        K_new, V_new = K.copy(), V.copy()
        K_new[:, [1, 4]] = size * rng.normal(size=(2, 2, 4))
        V_new[:, [1, 4]] = size * rng.normal(size=(2, 2, 6))
        cases.append((Q, K_new, V_new, mask))
    (output, weights), *others = agrees(scaled_dot_product_attention, cases=cases, names=NAMES)
    for again in others:
        compare(again[0], output, "output after a masked key and value changed")
        compare(again[1], weights, "weights after a masked key and value changed")


@check("equal sizes, where exchanged axes and arguments still fit", points=0.5)
def _(rng):
    cases = [
        qkv(rng, 4, T_q=4, T_k=4, d_k=4, d_v=4),
        (*qkv(rng, T_q=6, T_k=6, d_k=6, d_v=6), some_mask(rng, 6, 6)),
        qkv(rng, 2, d_k=6, d_v=6),
    ]
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


@check("one query, one key, width one, float32, views into larger arrays", points=0.5)
def _(rng):
    ones = [dict(T_q=1), dict(T_k=1), dict(d_k=1), dict(d_v=1), dict(T_q=1, T_k=1, d_k=1, d_v=1)]
    cases = [qkv(rng, 2, **sizes) for sizes in ones]
    cases.append(qkv(rng, 1, T_q=1, T_k=1))
    cases.append((*qkv(rng, 2, T_q=1), some_mask(rng, 2, 1, 5)))
    single = [array.astype(np.float32) for array in qkv(rng, 2)]
    cases.append((*single, some_mask(rng, 2, 3, 5)))
    # whole numbers, so that large scores are exact in float32
    Q, K = rng.integers(-8, 9, size=(2, 3, 4)), rng.integers(-8, 9, size=(2, 5, 4))
    Q[0, 0], K[0, 1] = 8, 8
    cases.append((Q.astype(np.float32), K.astype(np.float32), single[2]))
    Q, K, V = qkv(rng, 2)
    Q_view, K_view = np.repeat(Q, 2, axis=1)[:, ::2], np.ascontiguousarray(K.swapaxes(1, 2)).swapaxes(1, 2)
    V_view = np.asfortranarray(V)
    mask_view = np.repeat(some_mask(rng, 2, 3, 5), 3, axis=2)[..., ::3]
    cases.append((Q_view, K_view, V_view, mask_view))
    agrees(scaled_dot_product_attention, cases=cases, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "self-attention-task"}
"""
## Exercise 6: self-attention (3 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 10 minutes*

The tokens `X` ask themselves: $Q = XW_Q$, $K = XW_K$, $V = XW_V$. Any number of leading axes in `X`; the matrices have
none and serve the whole batch. You may call `scaled_dot_product_attention`.

<details><summary>Hint 1</summary>

Which shapes have Q, K and V if `X` is `(B, T, d)` and the matrices have no leading axes?

</details>

<details><summary>Hint 2</summary>

The formulas stand above; `@` takes care of the leading axes.

</details>

<details><summary>Hint 3</summary>

Three products and one call.

</details>
"""


# %% nbgrader={"grade_id": "self-attention", "solution": true}
def self_attention(X, W_Q, W_K, W_V):
    """Self-attention of the tokens in the rows of X, without a mask.

    X: tokens (..., T, d). W_Q and W_K: (d, d_k). W_V: (d, d_v).
    Returns (output, weights): output (..., T, d_v), weights (..., T, T), row = query.
    The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)
    ### END SOLUTION


# %% nbgrader={"grade_id": "self-attention-tests", "points": 3}
# Examples of exercise 6: self_attention
# The worked example of the book: three tokens of width 4, d_k = d_v = 2.
tokens = np.array([[1, -1, 0, 2], [0, -1, 2, 1], [-2, 2, -1, 0.0]])
to_query = np.array([[0, 1], [1, 0], [-0.5, 0], [1, 1]])
to_key = np.array([[1, -0.5], [0, 1], [0.5, -0.5], [1, 0.5]])
to_value = np.array([[1, 0.5], [-0.5, 0], [-1, 2], [0.5, -1]])
result = self_attention(tokens, to_query, to_key, to_value)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (3, 3), f"Three tokens look at three tokens: weights (3, 3), not {np.shape(weights)}."
assert np.shape(output) == (3, 2), f"Three tokens, values of width 2: output (3, 2), not {np.shape(output)}."
assert np.allclose(np.sum(np.asarray(weights), axis=-1), 1), "The weights of each query, that is each row, sum to 1."
assert np.allclose(weights[2], [0.5875, 0.4125, 0], atol=1e-4), (
    "Token 3 has the products 8.5, 8 and -13.25 with the keys. Divided by sqrt(2), they give .5875, .4125 and 0. "
    "Is Q made with W_Q and K with W_K? Is the scale the square root of the width of the keys?"
)
assert np.allclose(output, [[-1.954, -2.982], [-1.993, -2.991], [1.056, 0.356]], atol=1e-3), (
    "The weights are right here, the output is not: it averages the values V = X W_V."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, uses

uses("scaled_dot_product_attention")
NAMES = ("output", "weights")


def inputs(rng, *leading, T=5, d=7, d_k=4, d_v=6):
    W_Q, W_K = rng.normal(size=(2, d, d_k)) / np.sqrt(d)
    return rng.normal(size=(*leading, T, d)), W_Q, W_K, rng.normal(size=(d, d_v)) / np.sqrt(d)


@check("all sizes different, any number of leading axes; permuted tokens permute the result", points=1)
def _(rng):
    cases = [inputs(rng, *leading) for leading in [(), (1,), (2,), (2, 3)]]
    X, *matrices = inputs(rng, 2)
    order = rng.permutation(5)
    cases += [(X, *matrices), (X[:, order], *matrices)]
    *_, (output, weights), again = agrees(self_attention, cases=cases, names=NAMES)
    compare(again[0], np.asarray(output)[:, order], "output after the tokens changed places")
    compare(again[1], np.asarray(weights)[:, order][:, :, order], "weights after the tokens changed places")


@check("equal sizes (where mistakes hide), one token, width one, large scores, float32, views", points=1)
def _(rng):
    cases = [inputs(rng, 4, T=4, d=4, d_k=4, d_v=4)]
    for sizes in [dict(T=6, d=3, d_k=2, d_v=2), dict(T=1), dict(d=1), dict(d_k=1, d_v=1)]:
        cases.append(inputs(rng, 2, **sizes))
    X, W_Q, W_K, W_V = inputs(rng, 2)
    view = np.repeat(X, 2, axis=1)[:, ::2]
    cases += [
        (X, 1e3 * W_Q, W_K, W_V),
        tuple(array.astype(np.float32) for array in (X, W_Q, W_K, W_V)),
        (view, np.asfortranarray(W_Q), np.asfortranarray(W_K), W_V),
    ]
    agrees(self_attention, cases=cases, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "self-attention-columns-task"}
r"""
## Exercise 7: the same with tokens in columns (3 points)

*Difficulty ●●●○○ · importance ●●●○○ · about 15 minutes*

Some texts write tokens as **columns**: `X` is (d, T), and $Q = W_QX$, $K = W_KX$, $V = W_VX$. If one now writes down
$\operatorname{softmax}(QK^\top/\sqrt{d_k})\,V$ as before, the shapes may even fit, but the map compares features instead
of tokens. Write self-attention between the tokens in this convention:

- `weights` is (T_q, T_k) = (T, T), with a row for each query, as everywhere in this course. (A text that keeps columns
  throughout would show its transpose.)
- `output` is $V\,\text{weights}^\top$, of shape (d_v, T): one column for each token.

Exactly these shapes, without batch axes. You may call the functions of earlier exercises.

<details><summary>Hint 1</summary>

Which axis of $Q = W_QX$ counts the tokens now?

</details>

<details><summary>Hint 2</summary>

*Trap: rows and columns* in the chapter. Entry (i, j) of the map compares query i with key j: where do these two
vectors stand in Q and K?

</details>

<details><summary>Hint 3</summary>

Turn what comes in, use what you have, and turn back what has to be turned. Which of the two results is right as it
comes?

</details>
"""


# %% nbgrader={"grade_id": "self-attention-columns", "solution": true}
def self_attention_columns(X, W_Q, W_K, W_V):
    """Self-attention of the tokens in the columns of X, without a mask; Q = W_Q X and so on.

    X: tokens (d, T). W_Q and W_K: (d_k, d). W_V: (d_v, d).
    Returns (output, weights): output (d_v, T), a column for each token; weights (T, T), row = query.
    Rows of the weights sum to 1. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    Q, K, V = W_Q @ X, W_K @ X, W_V @ X  # (d_k, T), (d_k, T), (d_v, T)
    output, weights = scaled_dot_product_attention(Q.T, K.T, V.T)
    return output.T, weights
    ### END SOLUTION


# %% nbgrader={"grade_id": "self-attention-columns-tests", "points": 3}
# Examples of exercise 7: self_attention_columns
# The example of exercise 6 turned over: three tokens in three columns.
tokens = np.array([[1, -1, 0, 2], [0, -1, 2, 1], [-2, 2, -1, 0.0]]).T
to_query = np.array([[0, 1], [1, 0], [-0.5, 0], [1, 1]]).T
to_key = np.array([[1, -0.5], [0, 1], [0.5, -0.5], [1, 0.5]]).T
to_value = np.array([[1, 0.5], [-0.5, 0], [-1, 2], [0.5, -1]]).T
result = self_attention_columns(tokens, to_query, to_key, to_value)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (3, 3), (
    f"Three tokens look at three tokens: weights (3, 3), not {np.shape(weights)}. A (2, 2) map compares features."
)
assert np.shape(output) == (2, 3), f"Three tokens in columns, values of width 2: (2, 3), not {np.shape(output)}."
assert np.allclose(np.sum(np.asarray(weights), axis=1), 1), (
    "Row = query: the rows of the weights sum to 1, not the columns."
)
assert np.allclose(weights[2], [0.5875, 0.4125, 0], atol=1e-4), "Row 3 belongs to token 3: .5875, .4125 and 0."
assert np.allclose(output[:, 2], [1.056, 0.356], atol=1e-3), (
    "Column 3 of the output is the average of the columns of V with the weights in row 3."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, uses

uses("scaled_dot_product_attention", "self_attention")
NAMES = ("output", "weights")


def inputs(rng, T=5, d=7, d_k=4, d_v=6):
    W_Q, W_K = rng.normal(size=(2, d_k, d)) / np.sqrt(d)
    return rng.normal(size=(d, T)), W_Q, W_K, rng.normal(size=(d_v, d)) / np.sqrt(d)


@check("all sizes different; permuted tokens permute the result", points=1)
def _(rng):
    cases = [inputs(rng, T=3, d=8, d_k=5, d_v=2)]
    X, *matrices = inputs(rng)
    order = rng.permutation(5)
    cases += [(X, *matrices), (X[:, order], *matrices)]
    _, (output, weights), again = agrees(self_attention_columns, cases=cases, names=NAMES)
    compare(again[0], np.asarray(output)[:, order], "output after the tokens changed places")
    compare(again[1], np.asarray(weights)[order][:, order], "weights after the tokens changed places")


@check("equal sizes (where mistakes hide), one token, width one, large scores, float32, views", points=1)
def _(rng):
    cases = []
    for sizes in [
        dict(T=4, d=4, d_k=4, d_v=4),
        dict(T=5, d=6, d_k=3, d_v=3),
        dict(T=4, d=6, d_k=6, d_v=6),
        dict(T=1),
        dict(d=1),
        dict(d_k=1, d_v=1),
        dict(T=1, d=1, d_k=1, d_v=1),
    ]:
        cases.append(inputs(rng, **sizes))
    X, W_Q, W_K, W_V = inputs(rng)
    view = np.repeat(X, 2, axis=1)[:, ::2]
    cases += [
        (X, 1e3 * W_Q, W_K, W_V),
        tuple(array.astype(np.float32) for array in (X, W_Q, W_K, W_V)),
        (view, np.asfortranarray(W_Q), np.asfortranarray(W_K), W_V),
    ]
    agrees(self_attention_columns, cases=cases, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "cross-attention-task"}
"""
## Exercise 8: cross-attention (2 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 10 minutes*

The tokens `X_q` ask, the tokens `X_kv` answer: $Q = X_qW_Q$, $K = X_{kv}W_K$, $V = X_{kv}W_V$. The two may differ in
number and in width, and share their leading axes (any number of them). You may call `scaled_dot_product_attention`.

<details><summary>Hint 1</summary>

Which of Q, K and V are made of `X_q`?

</details>

<details><summary>Hint 2</summary>

It is what you did by hand in exercise 2.

</details>

<details><summary>Hint 3</summary>

As in exercise 6, with two inputs.

</details>
"""


# %% nbgrader={"grade_id": "cross-attention", "solution": true}
def cross_attention(X_q, X_kv, W_Q, W_K, W_V):
    """Attention of the tokens X_q over the tokens X_kv, without a mask.

    X_q: asking tokens (..., T_q, d_q). X_kv: answering tokens (..., T_k, d_kv).
    W_Q: (d_q, d_k). W_K: (d_kv, d_k). W_V: (d_kv, d_v).
    Returns (output, weights): output (..., T_q, d_v), weights (..., T_q, T_k). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return scaled_dot_product_attention(X_q @ W_Q, X_kv @ W_K, X_kv @ W_V)
    ### END SOLUTION


# %% nbgrader={"grade_id": "cross-attention-tests", "points": 2}
# Examples of exercise 8: cross_attention
# The second worked example of the book: two tokens ask, four answer.
asking = np.array([[-1, 1, 0], [0, 1, 0.0]])
answering = np.array([[-1, 1], [0, 1], [1, 1], [2, 0.0]])
to_query = np.array([[0, -1], [1, 1], [-1, 0.0]])
to_key = np.array([[1, 0], [-1, 1.0]])
to_value = np.array([[-1, 0, 1, 2], [1, -1, 0, -2.0]])
result = cross_attention(asking, answering, to_query, to_key, to_value)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, weights."
output, weights = map(np.asarray, result)
assert np.shape(weights) == (2, 4), f"Two tokens ask and four answer: weights (2, 4), not {np.shape(weights)}."
assert np.shape(output) == (2, 4), f"Two tokens ask, the values have width 4: output (2, 4), not {np.shape(output)}."
assert np.allclose(weights, [[0.089, 0.180, 0.365, 0.365], [0.065, 0.131, 0.266, 0.539]], atol=1e-3), (
    "The products of queries and keys are [0, 1, 2, 2] and [-1, 0, 1, 2]; divide by sqrt(2), softmax each row."
)
assert np.allclose(output, [[-0.373, -0.635, 1.008, 0.746], [-0.817, -0.461, 1.279, 1.635]], atol=1e-3), (
    "The weights are right here, the output is not: it averages the values of the answering tokens."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, uses

uses("scaled_dot_product_attention")
NAMES = ("output", "weights")


def inputs(rng, *leading, T_q=3, T_k=5, d_q=7, d_kv=8, d_k=4, d_v=6):
    return (
        rng.normal(size=(*leading, T_q, d_q)),
        rng.normal(size=(*leading, T_k, d_kv)),
        rng.normal(size=(d_q, d_k)) / np.sqrt(d_q),
        rng.normal(size=(d_kv, d_k)) / np.sqrt(d_kv),
        rng.normal(size=(d_kv, d_v)) / np.sqrt(d_kv),
    )


@check("all sizes different, any number of leading axes", points=0.5)
def _(rng):
    cases = [inputs(rng, *leading) for leading in [(), (1,), (2,), (2, 4)]]
    cases.append(inputs(rng, 2, T_q=6, T_k=2, d_q=3, d_kv=5))
    agrees(cross_attention, cases=cases, names=NAMES)


@check("equal sizes (where mistakes hide), one token, width one, large scores, float32, views", points=0.5)
def _(rng):
    cases = []
    for sizes in [
        dict(T_q=4, T_k=4, d_q=4, d_kv=4, d_k=4, d_v=4),
        dict(d_q=7, d_kv=7),
        dict(T_q=1),
        dict(T_k=1),
        dict(d_q=1, d_kv=1),
        dict(d_k=1, d_v=1),
    ]:
        cases.append(inputs(rng, 2, **sizes))
    X_q, X_kv, W_Q, W_K, W_V = inputs(rng, 2)
    view = np.repeat(X_kv, 2, axis=1)[:, ::2]
    cases += [
        (X_q, X_kv, 1e3 * W_Q, W_K, W_V),
        tuple(array.astype(np.float32) for array in (X_q, X_kv, W_Q, W_K, W_V)),
        (np.asfortranarray(X_q), view, W_Q, np.asfortranarray(W_K), W_V),
    ]
    agrees(cross_attention, cases=cases, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "attention-multiplications-task"}
r"""
## Exercise 9: what attention costs (2 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 10 minutes*

Count the multiplications of two numbers in the two matrix products of self-attention, $QK^\top$ and $\text{weights}\,V$,
for one sequence of `L` tokens with $d_k = d_v = D$. Every entry of a matrix product is a dot product, and a dot product
of width n takes n multiplications. Nothing else is counted: no projections, no scale, no softmax, no additions.

<details><summary>Hint 1</summary>

How many entries has $QK^\top$, and how wide is the dot product behind each of them?

</details>

<details><summary>Hint 2</summary>

The same question for $\text{weights}\,V$: which width is used up there?

</details>

<details><summary>Hint 3</summary>

Two products, each worth *number of entries × width*.

</details>
"""


# %% nbgrader={"grade_id": "attention-multiplications", "solution": true}
def attention_multiplications(L, D):
    """The number of multiplications in QK^T and weights V together.

    L: number of tokens, D: width of queries, keys and values (whole numbers >= 1). Returns a number.
    """
    ### BEGIN SOLUTION
    scores = L * L * D
    averages = L * D * L
    return scores + averages
    ### END SOLUTION


# %% nbgrader={"grade_id": "attention-multiplications-tests", "points": 2}
# Examples of exercise 9: attention_multiplications
count = attention_multiplications(2, 3)
assert count is not None, "attention_multiplications returned None. Is there a return?"
assert count == 24, (
    "Two tokens of width 3: QK^T has 4 entries of 3 multiplications, weights V has 6 entries of 2. 24 in all."
)
assert attention_multiplications(1, 1) == 2, (
    "One token of width 1: one multiplication for the score, one for the average. Two in all."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check


@check("other lengths and widths", points=1)
def _(rng):
    sizes = [(3, 4), (1, 5), (5, 1), (40, 16), *rng.integers(2, 40, size=(4, 2)).tolist()]
    agrees(attention_multiplications, cases=[case(L, D) for L, D in sizes])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "why-scale-task"}
r"""
## Exercise 10: why it is made this way (2 + 2 + 2 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 40 minutes*

Three to five sentences for each question.

**Why $\sqrt{d_k}$?** Let the entries of a query and a key be independent, with mean 0 and variance 1. (1) How does the
variance of their dot product depend on $d_k$, and what does the division by $\sqrt{d_k}$ make of it? (2) What would go
wrong in the softmax, and in training, without it when $d_k$ is large?

<details><summary>Hint 1</summary>

For $d_k = 1$, 4 and 100: how far from zero does a dot product typically lie? (*Why the square root?* in the chapter.)

</details>

<details><summary>Hint 2</summary>

What does a softmax make of scores that lie 20 apart, and how steep is it there?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "why-scale", "solution": true, "points": 2}
"""
**Model answer.** The dot product is a sum of d_k independent terms of mean 0 and variance 1, so its variance is d_k and
its typical size √d_k. Divided by √d_k, the scores have variance 1 whatever the width. Without the division wide keys
make scores far apart: the softmax puts nearly all its weight on one key and becomes almost an argmax. There its
derivatives w_i(δ_ij − w_j) are close to zero, so hardly any gradient reaches queries and keys, and learning stalls.

**Rubric** (2 points, each given or not)

- **1 point**: the variance is d_k, or grows in proportion to it (or the standard deviation to √d_k), and the division
  brings it to 1 (or: makes it independent of d_k). Both parts are needed. "It grows with d_k" without saying how does not
  earn it.
- **1 point**: without it the softmax saturates (nearly one-hot) **and** its gradients become tiny. Both parts are
  needed. "The numbers get too large" or "overflow" alone does not earn it: the maximum is subtracted anyway.
"""

# %% [markdown] nbgrader={"grade_id": "why-softmax-task"}
"""
**Why softmax?** (1) Which two properties of its weights make the output a weighted average of the values? (2) What does
it offer that picking the best key (exercise 3) does not?

<details><summary>Hint 1</summary>

What has to be true of some numbers so that a sum with them may be called an average?

</details>

<details><summary>Hint 2</summary>

Go back to exercise 4: what happens to the output when one score changes a little?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "why-softmax", "solution": true, "points": 2}
"""
**Model answer.** Softmax turns any scores, also negative ones, into weights that are positive (not negative) and sum to
1. So the output is a weighted average of the values: it stays between them and does not grow with the number of keys.
It keeps the order of the scores and prefers the best key, as argmax does, but it is smooth: a small change of any
score changes all weights a little. So a gradient reaches every query and key, and where to look can be learnt.

**Rubric** (2 points, each given or not)

- **1 point**: the weights are not negative **and** sum to one. Both are needed.
- **1 point**: with softmax a gradient reaches queries and keys (scores, W_Q, W_K, "where to look"); said of softmax, or
  as what argmax fails to give them. "It is differentiable, so the model can be trained" without saying what gets the
  gradient does not earn it (values learn with argmax, too), nor does "a soft version of argmax".
"""

# %% [markdown] nbgrader={"grade_id": "why-map-task"}
"""
**Why is it called an "attention map"?** (1) Say what the entry in row i and column j of `weights` tells. (2) Name one
thing that the map does not show or that is easily read into it wrongly, and why.

<details><summary>Hint 1</summary>

Take one row: whose is it, and what do its entries sum to?

</details>

<details><summary>Hint 2</summary>

The output is made of the weights *and* of what else? Could that be small, or hold something of other tokens?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "why-map", "solution": true, "points": 2}
"""
**Model answer.** The weights are a table with a row for each query and a column for each key. Entry (i, j) is the share
of value j in output i; drawn as a picture it maps which token looks at which, and each row sums to 1. It does not show
what is taken: that is in the values, and a large weight on a value close to zero adds little to the output.

**Rubric** (2 points, each given or not)

- **1 point**: entry (i, j) is how much query (output) i attends to, or takes from, key (value) j. The direction must be
  right: rows are queries. "How important token j is for token i" earns it.
- **1 point**: one limit **and** a "because". Accepted among others: a large weight may add little, because the value
  may be small; the map does not tell what is taken, because that is in the values; a column is not a share of attention,
  because only rows sum to 1; a row of a deeper layer is not about one word, because tokens are mixed by then; a large
  weight does not prove influence on the answer, because values, other heads or later layers come after it. "It is not an
  explanation" or "it does not show why" alone does not earn it.
"""

# %% [markdown] nbgrader={"grade_id": "ps2-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps2-summary"}
where_you_stand()
