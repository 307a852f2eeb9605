# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps4-introduction"}
"""
# Problem set 4: positional encoding

Self-attention does not know in which order its tokens came. You measure that, write the sinusoids that tell it, take
apart what happens when positions are added or concatenated, and turn queries and keys by their positions. It goes with
the chapter *Positional encoding* of the book. 32 points: 28 are graded automatically, and 4, for the written answer, by
a person. Plan three hours.

**How to work, in two minutes**

1. Type your id into the next cell.
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

- Tokens stand in rows: arrays are (T, d). Positions are counted from 0.
- **No score in this set is scaled**: there is no division by a root anywhere.
- Functions take float32 or float64 NumPy arrays and never change them. The type of what you return is free. It is
  compared with the right result to within 1e-6 (1e-4 for float32 inputs), so compute angles in float64. Use NumPy;
  PyTorch is not needed.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps4-progress"}
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

# %% nbgrader={"grade_id": "ps4-helpers"}
import numpy as np


def attention_without_positions(X):
    """Self-attention of the rows of X (T, d) with Q = K = V = X, unscaled: no position anywhere. Returns (T, d)."""
    scores = X @ X.T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ X


# %% [markdown] nbgrader={"grade_id": "permutation-gap-task"}
r"""
## Exercise 1: does the order matter? (4 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 20 minutes*

A function `f` of a sequence is *permutation equivariant* if shuffling its tokens first and shuffling its results
afterwards is the same: $f(X[\text{perm}]) = f(X)[\text{perm}]$. Write a function that measures how far `f` is from it:

$$\text{gap} = \max\,\bigl|\,f(X[\text{perm}]) - f(X)[\text{perm}]\,\bigr|$$

over all entries. `X` is (T, d); `f` returns one array whose **first axis is T** and which may have no, one or several
further axes; `perm` is an index array that holds each of 0 … T−1 once. You may call `f` as often as you like.

<details><summary>Hint 1</summary>

Two arrays are compared. In which of them are the rows of the input shuffled, and in which those of the result?

</details>

<details><summary>Hint 2</summary>

The formula stands above. An index array on the first axis picks rows, whatever axes follow.

</details>

<details><summary>Hint 3</summary>

Two calls of `f`, one difference, one number.

</details>
"""


# %% nbgrader={"grade_id": "permutation-gap", "solution": true}
def permutation_gap(f, X, perm):
    """The largest absolute difference between f(X[perm]) and f(X)[perm]; 0 for a permutation-equivariant f.

    f: function of an array (T, d) that returns an array (T, ...). X: (T, d). perm: whole numbers (T,), 0 to T - 1.
    Returns a number. X and perm are not changed.
    """
    ### BEGIN SOLUTION
    return np.max(np.abs(f(X[perm]) - f(X)[perm]))
    ### END SOLUTION


# %% nbgrader={"grade_id": "permutation-gap-tests", "points": 4}
# Examples of exercise 1: permutation_gap
tokens = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
perm = np.array([1, 2, 0])


def doubled(X):
    return 2 * X


def running_sums(X):
    return np.cumsum(X, axis=0)


gap = permutation_gap(doubled, tokens, perm)
assert gap is not None, "permutation_gap returned None. Is there a return?"
assert np.shape(gap) == (), f"The gap is one number, not an array of shape {np.shape(gap)}."
assert np.isclose(gap, 0), "Doubling looks at each token alone: shuffle first or later, it is the same. The gap is 0."
assert np.isclose(permutation_gap(running_sums, tokens, perm), 3), (
    "Running sums of the shuffled tokens: (0, 2), (3, 3), (4, 3). The running sums, shuffled: (1, 2), (4, 3), (1, 0). "
    "The differences are -1, 0, -1, 0, 3 and 3; the largest without its sign is 3."
)
assert permutation_gap(attention_without_positions, tokens, perm) < 1e-9, (
    "Self-attention without positions is permutation equivariant: its gap is 0 up to rounding."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def neighbours(X):
    return X - np.roll(X, 1, axis=0)


def weighted_by_place(X):
    return X * (1 + np.arange(len(X)))[:, None]


def row_sums(X):
    return np.sum(X, axis=1)


def first_differences(X):
    return X[:, 0] - X[0, 0]


def outer(X):
    return X[:, :, None] * X[:, None, :] * np.linspace(1, 2, len(X))[:, None, None]


def lowered_by_place(X):
    return -np.arange(len(X))[:, None] - np.abs(X)


def attend(X):
    scores = X @ X.T
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True) @ X


def barely(X):
    return 1e4 + 1e-3 * weighted_by_place(X)


def inputs(rng, T=5, d=3):
    """Random tokens, and an order that is not its own inverse where there is one."""
    perm = rng.permutation(T)
    while T > 2 and (perm[perm] == np.arange(T)).all():
        perm = rng.permutation(T)
    return rng.normal(size=(T, d)), perm


@check("functions that depend on the place and functions that do not", points=2)
def _(rng):
    for f in (neighbours, weighted_by_place, attend, lowered_by_place):
        for sizes in [dict(), dict(T=7, d=2), dict(T=3, d=4)]:
            agrees(permutation_gap, f, *inputs(rng, **sizes))


@check("results of other shapes, one token, the order as it is, float32, views into larger arrays", points=1)
def _(rng):
    for f in (row_sums, first_differences, outer):
        agrees(permutation_gap, f, *inputs(rng))
        agrees(permutation_gap, f, *inputs(rng, T=4, d=6))
    agrees(permutation_gap, neighbours, *inputs(rng, T=1))
    agrees(permutation_gap, neighbours, *inputs(rng, d=1))
    X, perm = inputs(rng)
    agrees(permutation_gap, weighted_by_place, X, np.arange(5))
    agrees(permutation_gap, weighted_by_place, 1e-4 * X, perm)  # a small gap is one, too
    agrees(permutation_gap, barely, X, perm)  # also beside large numbers
    agrees(permutation_gap, weighted_by_place, X.astype(np.float32), perm)
    agrees(permutation_gap, weighted_by_place, np.repeat(X, 2, axis=1)[:, ::2], perm)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "sinusoidal-encoding-task"}
r"""
## Exercise 2: sinusoids (6 points)

*Difficulty ●●●○○ · importance ●●●●● · about 30 minutes*

The table of sinusoidal encodings has a row for each position t = 0 … T−1 and a column for each j = 0 … d−1. Column j has
the angle

$$a_{t,j} = \frac{t}{10000^{\,2\lfloor j/2\rfloor/d}}$$

and the table holds $\sin a_{t,j}$ in the **even** columns (0, 2, …) and $\cos a_{t,j}$ in the **odd** ones: sine and
cosine of the same angle stand side by side. `d` may be odd; then the last column is a sine, and the exponent has this
odd d in it.

**A picture** (fast columns on the left, slow ones on the right; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

plt.imshow(sinusoidal_encoding(60, 32), cmap="RdBu", aspect="auto")
plt.xlabel("column")
plt.ylabel("position")
plt.show()
```

<details><summary>Hint 1</summary>

Which columns share an angle? Write down the exponents of columns 0 to 4 for d = 5.

</details>

<details><summary>Hint 2</summary>

*The hands of a clock* in the chapter. Positions as a column and exponents as a row: which shape does the table of
angles have?

</details>

<details><summary>Hint 3</summary>

First the table of all angles, for all columns. Then sines in every second column from 0 on, cosines in every second
from 1 on. An odd d needs no case of its own.

</details>
"""


# %% nbgrader={"grade_id": "sinusoidal-encoding", "solution": true}
def sinusoidal_encoding(T, d):
    """Sinusoidal positions, interleaved: sin in columns 0, 2, ... and cos in columns 1, 3, ..., base 10000.

    T: number of positions, d: width (whole numbers >= 1; d may be odd). Returns an array (T, d).
    """
    ### BEGIN SOLUTION
    angles = np.arange(T)[:, None] / 10000 ** (2 * (np.arange(d) // 2) / d)  # (T, d)
    table = np.sin(angles)
    table[:, 1::2] = np.cos(angles[:, 1::2])
    return table
    ### END SOLUTION


# %% nbgrader={"grade_id": "sinusoidal-encoding-tests", "points": 6}
# Examples of exercise 2: sinusoidal_encoding
table = sinusoidal_encoding(3, 4)
assert table is not None, "sinusoidal_encoding returned None. Is there a return?"
assert np.shape(table) == (3, 4), f"A row for each position, a column for each feature: (3, 4), not {np.shape(table)}."
table = np.asarray(table)
assert np.allclose(table[0], [0, 1, 0, 1]), "Position 0 has the angle 0 everywhere: sin 0 = 0, cos 0 = 1, in turn."
assert np.allclose(table[1, :2], [np.sin(1), np.cos(1)]), "Columns 0 and 1 are sine and cosine of t itself."
assert np.allclose(table[2, 2:], [np.sin(0.02), np.cos(0.02)]), (
    "Columns 2 and 3 share one angle. With d = 4 it is t / 10000 ** (2 / 4) = t / 100."
)
odd = np.asarray(sinusoidal_encoding(2, 3))
assert np.shape(odd) == (2, 3), f"An odd width is allowed: (2, 3), not {np.shape(odd)}."
assert np.allclose(odd[1], [np.sin(1), np.cos(1), np.sin(10000 ** (-2 / 3))]), (
    "With d = 3 the last column is a sine, and its exponent is 2 / 3."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("even widths: which angle and which function stands where", points=2)
def _(rng):
    for T, d in [(7, 6), (5, 8), (3, 16), (9, 2), (8, 8)]:
        agrees(sinusoidal_encoding, T, d)
    for T, d in rng.integers(2, 30, size=(4, 2)).tolist():
        agrees(sinusoidal_encoding, T, 2 * d)


@check("odd widths, which end with a sine", points=2)
def _(rng):
    for T, d in [(7, 5), (4, 9), (5, 3), (6, 1)]:
        agrees(sinusoidal_encoding, T, d)
    for T, d in rng.integers(2, 20, size=(4, 2)).tolist():
        agrees(sinusoidal_encoding, T, 2 * d + 1)


@check("one position, a long table", points=1)
def _(rng):
    for T, d in [(1, 6), (1, 1), (1, 5), (300, 12), (2, 200), (2500, 4)]:
        agrees(sinusoidal_encoding, T, d)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "additive-score-terms-task"}
r"""
## Exercise 3: adding positions makes four terms (3 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 10 minutes*

Let token i be the sum $x_i + p_i$ of its content and its position, and token j likewise, and let the score of query i
and key j be the plain dot product $(x_i + p_i)\cdot(x_j + p_j)$. Multiply out, and return the four terms in the order

$$x_i\cdot x_j,\qquad x_i\cdot p_j,\qquad p_i\cdot x_j,\qquad p_i\cdot p_j$$

as a tuple, a list or an array of four numbers. Nothing is scaled.

<details><summary>Hint 1</summary>

Multiply out (a + b)(c + d): how many products are there?

</details>

<details><summary>Hint 2</summary>

Which of the four knows contents only, and which one positions only? The order stands in the task.

</details>

<details><summary>Hint 3</summary>

Four dot products of vectors, nothing else.

</details>
"""


# %% nbgrader={"grade_id": "additive-score-terms", "solution": true}
def additive_score_terms(x_i, p_i, x_j, p_j):
    """The four terms of (x_i + p_i) . (x_j + p_j): x_i.x_j, x_i.p_j, p_i.x_j, p_i.p_j, in this order.

    All four are vectors (d,). Returns four numbers. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return x_i @ x_j, x_i @ p_j, p_i @ x_j, p_i @ p_j
    ### END SOLUTION


# %% nbgrader={"grade_id": "additive-score-terms-tests", "points": 3}
# Examples of exercise 3: additive_score_terms
x_i, p_i = np.array([1.0, 2.0]), np.array([10.0, 0.0])
x_j, p_j = np.array([3.0, 1.0]), np.array([0.0, 100.0])
terms = additive_score_terms(x_i, p_i, x_j, p_j)
assert terms is not None, "additive_score_terms returned None. Is there a return?"
assert np.shape(terms) == (4,), f"Four numbers are asked for, not something of shape {np.shape(terms)}."
assert np.isclose(np.sum(np.asarray(terms)), (x_i + p_i) @ (x_j + p_j)), (
    "The four terms add up to the whole score, here 233."
)
assert np.allclose(terms, [5, 200, 30, 0]), (
    "x_i . x_j = 5, x_i . p_j = 200, p_i . x_j = 30, p_i . p_j = 0. Mind the order of the two in the middle."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, reference


def judge(*vectors):
    def four(*args):
        return np.array(reference.additive_score_terms(*args))

    agrees(additive_score_terms, *vectors, like=("additive_score_terms", four))


@check("the four terms in their order", points=1)
def _(rng):
    for d in (4, 7, 2, 16):
        judge(*rng.normal(size=(4, d)))


@check("width one, zeros, float32, views into larger arrays", points=1)
def _(rng):
    judge(*rng.normal(size=(4, 1)))
    x_i, p_i, x_j, p_j = rng.normal(size=(4, 5))
    judge(x_i, np.zeros(5), x_j, p_j)
    judge(x_i, p_i, np.zeros(5), p_j)
    judge(*rng.normal(size=(4, 6)).astype(np.float32))
    judge(x_i, np.repeat(p_i, 2)[::2], rng.normal(size=(5, 4))[:, 1], np.repeat(p_j, 3)[::3])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "concatenated-score-task"}
"""
## Exercise 4: concatenating positions leaves two (2 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 10 minutes*

Now content and position stand **side by side**: token i is $(x_i, p_i)$ and token j is $(x_j, p_j)$. Return their dot
product, one number. The contents have the width $d_x$, the positions another width $d_p$. Nothing is scaled.

<details><summary>Hint 1</summary>

Write both tokens as lists of $d_x + d_p$ numbers. Which entries meet in the dot product?

</details>

<details><summary>Hint 2</summary>

*Add or concatenate?* in the chapter. Which of the terms of exercise 3 cannot occur?

</details>

<details><summary>Hint 3</summary>

Put side by side and multiply, or add what is left of exercise 3: both are right.

</details>
"""


# %% nbgrader={"grade_id": "concatenated-score", "solution": true}
def concatenated_score(x_i, p_i, x_j, p_j):
    """The dot product of the concatenations (x_i, p_i) and (x_j, p_j).

    x_i, x_j: (d_x,). p_i, p_j: (d_p,). Returns a number. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return x_i @ x_j + p_i @ p_j
    ### END SOLUTION


# %% nbgrader={"grade_id": "concatenated-score-tests", "points": 2}
# Examples of exercise 4: concatenated_score
score = concatenated_score(np.array([1.0, 2.0]), np.array([10.0]), np.array([3.0, 1.0]), np.array([4.0]))
assert score is not None, "concatenated_score returned None. Is there a return?"
assert np.shape(score) == (), f"The score is one number, not something of shape {np.shape(score)}."
assert np.isclose(score, 45), (
    "(1, 2, 10) . (3, 1, 4) = 3 + 2 + 40 = 45: content meets content, position meets position."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, uses

uses("additive_score_terms")


def vectors(rng, d_x=5, d_p=3):
    return rng.normal(size=d_x), rng.normal(size=d_p), rng.normal(size=d_x), rng.normal(size=d_p)


@check("contents and positions of any widths, float32, views into larger arrays", points=1)
def _(rng):
    for d_x, d_p in [(5, 3), (2, 6), (4, 4), (1, 7), (6, 1), (1, 1)]:
        agrees(concatenated_score, *vectors(rng, d_x, d_p))
    agrees(concatenated_score, *(v.astype(np.float32) for v in vectors(rng)))
    x_i, p_i, _, p_j = vectors(rng)
    agrees(concatenated_score, np.repeat(x_i, 2)[::2], np.repeat(p_i, 3)[::3], rng.normal(size=(5, 4))[:, 1], p_j)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "relative-bias-task"}
r"""
## Exercise 5: the bias that equals concatenation (3 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 10 minutes*

Concatenated positions add to the score of query i and key j a number that does not depend on the contents: a bias
$\pi_{ij}$. With the positions' own queries in the rows of `P_q` and keys in the rows of `P_k`, it is
$\pi_{ij} = p^{q}_i\cdot p^{k}_j$. Return the whole table, a row for each query. Nothing is scaled, and the rows may be
anything, not only sinusoids.

(Try it with `P_q = P_k = sinusoidal_encoding(6, 8)`: along each diagonal all entries are the same, so that the bias
depends on i − j alone. Is it so for random rows?)

<details><summary>Hint 1</summary>

A row for each query, a column for each key: which shape has the table?

</details>

<details><summary>Hint 2</summary>

Every row of one array with every row of another: you wrote it in problem set 0.

</details>

<details><summary>Hint 3</summary>

One product, without a loop.

</details>
"""


# %% nbgrader={"grade_id": "relative-bias", "solution": true}
def relative_bias(P_q, P_k):
    """The table of biases P_q[i] . P_k[j] that concatenated positions add to the scores.

    P_q: (T_q, d_p). P_k: (T_k, d_p). Returns (T_q, T_k), row = query. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return P_q @ P_k.T
    ### END SOLUTION


# %% nbgrader={"grade_id": "relative-bias-tests", "points": 3}
# Examples of exercise 5: relative_bias
asking = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0]])
answering = np.array([[1.0, 1.0, 1.0], [2.0, 0.0, 0.0], [0.0, 3.0, 1.0], [0.0, 0.0, 0.5]])
bias = relative_bias(asking, answering)
assert bias is not None, "relative_bias returned None. Is there a return?"
assert np.shape(bias) == (2, 4), f"A row for each of 2 queries, a column for each of 4 keys, not {np.shape(bias)}."
assert np.allclose(bias, [[3, 2, 2, 1], [1, 0, 3, 0]]), (
    "Entry (i, j) is the dot product of P_q[i] and P_k[j], unscaled."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, uses

uses("concatenated_score", "sinusoidal_encoding", "additive_score_terms")


@check("any rows, all sizes different", points=1)
def _(rng):
    for T_q, T_k, d in [(3, 5, 4), (6, 2, 7), (4, 4, 4), (5, 5, 2)]:
        agrees(relative_bias, rng.normal(size=(T_q, d)), rng.normal(size=(T_k, d)))


@check("one query, one key, width one, sinusoids, float32, views into larger arrays", points=1)
def _(rng):
    for T_q, T_k, d in [(1, 5, 4), (3, 1, 4), (3, 5, 1), (1, 1, 1)]:
        agrees(relative_bias, rng.normal(size=(T_q, d)), rng.normal(size=(T_k, d)))
    angles = np.arange(6)[:, None] / np.array([1.0, 10.0, 100.0])
    waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    agrees(relative_bias, waves, waves)
    P_q, P_k = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    agrees(relative_bias, P_q.astype(np.float32), P_k.astype(np.float32))
    agrees(relative_bias, np.asfortranarray(P_q), np.repeat(P_k, 2, axis=1)[:, ::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "shift-matrix-task"}
r"""
## Exercise 6: moving by a fixed distance is linear (4 points)

*Difficulty ●●●●○ · importance ●●●○○ · about 30 minutes*

Write PE[t] for row t of the sinusoidal table of width d. For every distance δ there is one matrix (d, d), the same for
**all** t, with

$$\text{PE}[t+\delta] = \text{shift\_matrix}(\delta, d)\;\text{PE}[t]$$

(PE[t] as a column). Find it from the formulas for $\sin(a+b)$ and $\cos(a+b)$. `d` is even; `delta` is any whole
number, also zero or negative. It is judged by what it does with rows of the table: the result may be off by **1e-5**.

<details><summary>Hint 1</summary>

Begin with d = 2: a row of the table is sin a, cos a. How can sin(a + b) and cos(a + b) be written with these two, if
b is fixed?

</details>

<details><summary>Hint 2</summary>

*One matrix for every step* in the chapter. Write it as a table of 2 × 2 numbers times the column (sin a, cos a). Does
a occur in the table?

</details>

<details><summary>Hint 3</summary>

With more columns each pair has an angle of its own, and pairs do not mix. Where is the matrix zero? For `delta = 0`
it has to be the identity, and twice the shift by 1 is the shift by 2.

</details>
"""


# %% nbgrader={"grade_id": "shift-matrix", "solution": true}
def shift_matrix(delta, d):
    """The matrix that moves every sinusoidal encoding by delta: PE[t + delta] = shift_matrix(delta, d) @ PE[t].

    delta: a whole number. d: the even width of the encoding. Returns (d, d).
    """
    ### BEGIN SOLUTION
    shift = np.zeros((d, d))
    for j in range(0, d, 2):
        angle = delta / 10000 ** (j / d)
        shift[j : j + 2, j : j + 2] = [[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]]
    return shift
    ### END SOLUTION


# %% nbgrader={"grade_id": "shift-matrix-tests", "points": 4}
# Examples of exercise 6: shift_matrix
matrix = shift_matrix(1, 4)
assert matrix is not None, "shift_matrix returned None. Is there a return?"
assert np.shape(matrix) == (4, 4), f"A matrix (d, d) = (4, 4) is asked for, not {np.shape(matrix)}."


def encoding(t):
    """Row t of the table of width 4."""
    return np.array([np.sin(t), np.cos(t), np.sin(t / 100), np.cos(t / 100)])


assert np.allclose(shift_matrix(0, 4) @ encoding(3), encoding(3), atol=1e-5), "To move by 0 is to stay."
assert np.allclose((matrix @ encoding(0))[:2], encoding(1)[:2], atol=1e-5), (
    "From position 0, (sin, cos) = (0, 1), to position 1: sin(a + b) = sin a cos b + cos a sin b gives the first row "
    "of the block, cos(a + b) = cos a cos b - sin a sin b the second."
)
assert np.allclose(matrix @ encoding(5), encoding(6), atol=1e-5), (
    "The same matrix takes every position to the next one, with an angle of its own for each pair of columns."
)
assert np.allclose(shift_matrix(-2, 4) @ encoding(5), encoding(3), atol=1e-5), "A negative delta moves back."
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, to_array, uses

uses("sinusoidal_encoding")


def judge(delta, d, largest=40):
    matrix = to_array(shift_matrix(delta, d), "the result of `shift_matrix`")
    if matrix.shape != (d, d):
        fail(f"`shift_matrix` returned something of shape {matrix.shape}; for d = {d} it should be {(d, d)}.")
    places = np.arange(max(0, -delta), max(0, -delta) + largest)
    table = (places + np.array([[0], [delta]]))[..., None] / 10000 ** (2 * (np.arange(d) // 2) / d)
    table = np.where(np.arange(d) % 2 == 0, np.sin(table), np.cos(table))
    compare(table[0] @ matrix.T, table[1], f"the moved encodings (delta {delta}, width {d})", atol=1e-5)


@check("every position is moved by delta, for several widths", points=2)
def _(rng):
    for delta, d in [(1, 6), (3, 8), (2, 2), (7, 16), (4, 4)]:
        judge(delta, d)
    for delta, d in rng.integers(1, 12, size=(4, 2)).tolist():
        judge(delta, 2 * d)


@check("back, not at all, and far away", points=1)
def _(rng):
    for delta, d in [(-1, 6), (-5, 10), (0, 8), (500, 6), (-300, 4), (1000, 12)]:
        judge(delta, d)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "rotary-task"}
r"""
## Exercise 7: turning by the position (6 points)

*Difficulty ●●●○○ · importance ●●●●● · about 35 minutes*

Rotary encoding adds nothing; it turns each pair of columns (2i, 2i+1) of a query or key by the angle that the sinusoids
have there. For the token at position t and the pair $(x, y)$ in the columns 2i and 2i+1,

$$a = \frac{t}{10000^{\,2i/d}},\qquad (x, y)\;\to\;(x\cos a - y\sin a,\;\; x\sin a + y\cos a).$$

`X` is (..., T, d) with any number of leading axes and even d. `positions` (T,) holds the position of each token: any
real numbers, not necessarily 0, 1, 2, …; the same for the whole batch.

(What it is good for: the dot product of two turned vectors depends on their positions only through the difference. And
how does `shift_matrix` fit in? It is the transpose of the rotation by δ.)

<details><summary>Hint 1</summary>

How many angles are there for T tokens of width d, and which shape has their table?

</details>

<details><summary>Hint 2</summary>

Take even and odd columns apart, `(..., T, d / 2)` each: the formula is about one of these and one of those. The
angles are those of exercise 2.

</details>

<details><summary>Hint 3</summary>

Angles, the two halves, two new halves, and back: x and y of a pair are neighbours again. Either write into every
second column of a new array, or stack along a new last axis and reshape.

</details>
"""


# %% nbgrader={"grade_id": "rotary", "solution": true}
def rotary(X, positions):
    """X with each pair of columns (2i, 2i + 1) turned by the angle position / 10000 ** (2i / d).

    X: (..., T, d), d even. positions: real numbers (T,). Returns an array shaped like X. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    d = X.shape[-1]
    angles = positions[:, None] / 10000 ** (np.arange(0, d, 2) / d)  # (T, d / 2)
    x, y = X[..., 0::2], X[..., 1::2]  # (..., T, d / 2) each
    turned = np.stack([x * np.cos(angles) - y * np.sin(angles), x * np.sin(angles) + y * np.cos(angles)], axis=-1)
    return turned.reshape(X.shape)  # (..., T, d / 2, 2) -> (..., T, d)
    ### END SOLUTION


# %% nbgrader={"grade_id": "rotary-tests", "points": 6}
# Examples of exercise 7: rotary
rows = np.array([[1.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 2.0]])
turned = rotary(rows, np.array([0.0, np.pi / 2]))
assert turned is not None, "rotary returned None. Is there a return?"
assert np.shape(turned) == (2, 4), f"The shape stays (2, 4), not {np.shape(turned)}."
turned = np.asarray(turned)
assert np.allclose(turned[0], rows[0]), "At position 0 every angle is 0, and nothing is turned."
assert np.allclose(turned[1, :2], [0, 1]), (
    "The first pair is turned by the position itself, here a quarter turn: (1, 0) becomes (0, 1)."
)
angle = np.pi / 200  # with d = 4 the second pair turns 100 times more slowly
assert np.allclose(turned[1, 2:], [-2 * np.sin(angle), 2 * np.cos(angle)]), (
    "Columns 2 and 3 are the second pair: (0, 2) turned by position / 10000 ** (2 / 4)."
)
batch = np.asarray(rotary(np.stack([rows, 2 * rows, -rows]), np.array([0.0, np.pi / 2])))
assert np.shape(batch) == (3, 2, 4) and np.allclose(batch[1], 2 * turned), "Batch axes stay in front."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, uses

uses("sinusoidal_encoding", "shift_matrix")


def inputs(rng, *leading, T=5, d=6):
    return rng.normal(size=(*leading, T, d)), np.arange(T, dtype=float)


@check("each pair of columns is turned by its own angle", points=2)
def _(rng):
    for sizes in [dict(), dict(T=3, d=8), dict(T=7, d=4), dict(T=6, d=6), dict(T=4, d=2), dict(T=2, d=16)]:
        agrees(rotary, *inputs(rng, **sizes))


@check("any positions: not in order, repeated, negative, not whole", points=1)
def _(rng):
    X, _ = inputs(rng)
    for positions in (np.array([3.0, 0, 7, 7, 1]), np.array([-2.0, 5, -31, 0, 2]), rng.uniform(-9, 9, size=5)):
        agrees(rotary, X, positions)
    agrees(rotary, X, rng.permutation(5) + 400.0)


@check("any number of leading axes; scores depend on the difference of positions alone", points=1)
def _(rng):
    for leading in [(2,), (2, 3), (4, 1, 2), (5,)]:
        agrees(rotary, *inputs(rng, *leading))
    Q, positions = inputs(rng, 2)
    K, _ = inputs(rng, 2)

    def scores(shift):
        turned = (np.asarray(agrees(rotary, X, positions + shift), dtype=float) for X in (Q, K))
        first, second = turned
        return first @ second.swapaxes(-1, -2)

    compare(scores(13.0), scores(0.0), "scores after all positions moved by 13")


@check("one token, one pair, float32, views into larger arrays", points=1)
def _(rng):
    agrees(rotary, rng.normal(size=(1, 6)), np.array([4.0]))
    agrees(rotary, rng.normal(size=(2, 1, 2)), np.array([-1.5]))
    X, positions = inputs(rng, 2)
    agrees(rotary, X.astype(np.float32), positions)
    agrees(rotary, X.astype(np.float32), positions.astype(np.float32))
    agrees(rotary, np.repeat(X, 2, axis=2)[..., ::2], np.repeat(positions, 3)[::3])
    agrees(rotary, np.asfortranarray(X), np.repeat(positions, 2)[::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "needs-order-task"}
"""
## Exercise 8: a task that needs order (4 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 30 minutes*

Six to ten sentences. (1) Name a task on sequences whose right answer depends on the order of the tokens, and give **two
sequences of the same tokens** with the right answer of each. (2) Explain why a network that consists of self-attention
without positions and without a mask, followed by the average of its outputs, must give both the same answer; say what
exercise 1 has to do with it. (3) What do positional encodings change in this argument? (4) Name a task for which such a
network needs no positions, and say why not.

<details><summary>Hint 1</summary>

Which question about a sentence gets another answer when two of its words change places?

</details>

<details><summary>Hint 2</summary>

For (2): follow the shuffled tokens through scores, weights, outputs and average. What happens to the numbers at each
step?

</details>

<details><summary>Hint 3</summary>

Four parts, as numbered. (3) asks what happens to the *rows* that enter; (4) wants a question whose answer collects or
counts.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "needs-order", "solution": true, "points": 4}
"""
**Model answer.** (1) Who is bitten? "dog bites man" and "man bites dog" consist of the same words, and the right answers
are the man and the dog. (2) Self-attention without positions is permutation equivariant: if the tokens are shuffled,
scores, weights and outputs are the same numbers in another order, which exercise 1 measures as a gap of 0. Layers on top
of each other stay equivariant, and the average does not depend on the order of what is averaged. So both sequences,
shuffled versions of each other, give the same average and the same answer. (3) With a positional encoding the rows of
the two sequences are no longer the same rows in another order: "dog" at place 0 and "dog" at place 2 have different
vectors, so queries and keys can depend on where a token stands, and the outputs differ. (4) Whether a word occurs in a
text at all (or counting words): the right answer is the same for every order, so nothing is lost.

**Rubric** (4 points, each given or not)

- **1 point**: a task and two sequences that hold exactly the same tokens, **and** the right answers to that very task, which
  differ.
- **1 point**: equivariance of self-attention (shuffled inputs give shuffled outputs, gap 0) **and** that the average is
  the same whatever the order; both are needed.
- **1 point**: with positions the same token has different vectors at different places (or: the shuffled sequence is not
  the same set of rows). "A vector of the place is added to the token" earns it; "they tell the model the order" alone
  does not.
- **1 point**: a task whose answer does not depend on the order, with this as the reason, in words: the name of a method,
  such as "bag of words", is none.
"""

# %% [markdown] nbgrader={"grade_id": "ps4-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps4-summary"}
where_you_stand()
