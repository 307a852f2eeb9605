# ---
# jupyter:
#   autograder:
#     student_side:
#     - peak_megabytes
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps8-introduction"}
r"""
# Problem set 8: linear attention

Attention compares every token with every token: twice as long a sequence costs four times as much. Replace the
exponential by the first terms of its series, and the same kind of average can be had at a cost that grows only in
proportion to the length. You build it, count what it costs, and find where it breaks. Then you read token by token, with a
state of fixed size, and write into it in two ways. It goes with the chapter *Linear attention* of the book. 39 points: 35 are
graded automatically, and 4, for the written answer, by a person. Plan four hours.

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

**Conventions** in this set

- Tokens stand in rows: arrays are `(..., L, D)`. The dots are batch axes; any number of them works, also none.
- **No score in this set is divided by $\sqrt D$**, and only exercise 8 has a mask. Values have the width of the queries and keys, D.
- Functions take float32 or float64 NumPy arrays and never change them. The type of what you return is free. It is
  compared with the right result to within 1e-6 (1e-4 for float32 inputs). Use NumPy; PyTorch is not needed.

**The idea.** Softmax attention weighs the key $k$ for the query $q$ by $e^{q\cdot k}$, divided by the sum over all keys.
Here the weight is the series of the exponential, cut off after the power `order`,

$$s(q, k) = \sum_{n=0}^{\text{order}} \frac{(q\cdot k)^n}{n!}, \qquad\text{for order 2:}\quad 1 + q\cdot k + \tfrac12 (q\cdot k)^2 ,$$

again divided by the sum over all keys. Each $s(q,k)$ is a dot product $\varphi(q)\cdot\varphi(k)$ of longer vectors, and
this is what makes the order of the matrix products a matter of choice.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps8-progress"}
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

# %% nbgrader={"grade_id": "ps8-helpers"}
import itertools
import math
import tracemalloc

import numpy as np


def peak_megabytes(f, *args):
    """The memory that a call f(*args) takes at its peak for new NumPy arrays, in whole megabytes."""
    tracemalloc.start()
    f(*args)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return round(peak / 1e6)


# %% [markdown] nbgrader={"grade_id": "feature-map-task"}
r"""
## Exercise 1: the feature map (8 points)

*Difficulty ●●●●○ · importance ●●●●● · about 45 minutes*

`feature_map(X, order)` turns each row x into a longer row φ(x), so that for **any two** rows

$$\varphi(q)\cdot\varphi(k) = \sum_{n=0}^{\text{order}} \frac{(q\cdot k)^n}{n!}.$$

For order 1, φ(x) = (1, x) does it. For order 2 note that $(q\cdot k)^2 = \sum_i\sum_j (q_iq_j)(k_ik_j)$: the products of
two entries of x, with the right factor. `order` is any whole number from 1 on.

Only the products are compared: the features may stand in any order, have any signs, and there may be more of them than
necessary (as in the double sum above, where $x_ix_j$ and $x_jx_i$ are both there). What is asked is that φ(x) is the
exact finite vector, the same function for queries and keys and for every row by itself.

**A picture** (how well the polynomial follows the exponential; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

t = np.linspace(-3, 3, 61)[:, None]
plt.plot(t, np.exp(t), "k", label="exp")
for order in (1, 2, 4):
    plt.plot(t, feature_map(t, order) @ feature_map(np.ones((1, 1)), order).T, label=f"order {order}")
plt.ylim(-3, 10)
plt.legend()
plt.show()
```

<details><summary>Hint 1</summary>

Multiply out (q · k)²/2 for D = 2. Which products of entries of k appear, and with which factors?

</details>

<details><summary>Hint 2</summary>

*A feature map for the exponential* in the chapter. Every factor is shared by φ(q) and φ(k): what does each of them
get?

</details>

<details><summary>Hint 3</summary>

A loop over the degrees from 0 to `order`; for each degree all choices of that many columns (`itertools` helps), their
product, and a weight. The features stand along the last axis.

</details>
"""


# %% nbgrader={"grade_id": "feature-map", "solution": true}
def feature_map(X, order=2):
    """Rows phi(x) with phi(q) . phi(k) = the sum of (q . k)^n / n! for n = 0, ..., order.

    X: (..., L, D). order: a whole number >= 1. Returns (..., L, M) with some M that depends on D and order.
    The input is not changed.
    """
    ### BEGIN SOLUTION
    features = []
    for degree in range(order + 1):
        for factors in itertools.combinations_with_replacement(range(X.shape[-1]), degree):
            # a monomial with the powers a, b, ... occurs n! / (a! b! ...) times in (q . k)^n
            powers = [factors.count(i) for i in set(factors)]
            weight = math.prod(math.factorial(power) for power in powers)
            features.append(np.prod(X[..., list(factors)], axis=-1) / math.sqrt(weight))
    return np.stack(features, axis=-1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "feature-map-tests", "points": 8}
# Examples of exercise 1: feature_map
q, k = np.array([[1.0, 2.0]]), np.array([[0.5, -1.0], [2.0, 1.0]])  # the products of q with the two k are -1.5 and 4
phi_q, phi_k = feature_map(q), feature_map(k)
assert phi_q is not None, "feature_map returned None. Is there a return?"
assert np.ndim(phi_q) == 2 and np.shape(phi_q)[0] == 1 and np.shape(phi_k)[0] == 2, (
    f"Each row of X becomes a row of features; X (1, 2) became {np.shape(phi_q)} and X (2, 2) became {np.shape(phi_k)}."
)
assert np.shape(phi_q)[1] == np.shape(phi_k)[1], "The number of features depends on D and the order alone."
found = (np.asarray(phi_q) @ np.asarray(phi_k).T)[0]
assert np.allclose(found, [0.625, 13]), (
    "For order 2 the product of the features should be 1 + t + t^2 / 2, here for t = -1.5 and t = 4: 0.625 and 13. "
    f"Yours are {np.round(found, 4).tolist()}."
)
found = (np.asarray(feature_map(q, 1)) @ np.asarray(feature_map(k, 1)).T)[0]
assert np.allclose(found, [-0.5, 5]), f"For order 1 it is 1 + t: -0.5 and 5, not {np.round(found, 4).tolist()}."
found = (np.asarray(feature_map(q, 3)) @ np.asarray(feature_map(k, 3)).T)[0]
assert np.allclose(found, [0.0625, 13 + 64 / 6]), "For order 3 the term t^3 / 6 is added."
### BEGIN HIDDEN TESTS
from autograder.checks import changes_its_input, check, compare, fail, observe, to_array


def products(q, k, order):
    t = np.asarray(q, dtype=np.float64) @ np.swapaxes(np.asarray(k, dtype=np.float64), -1, -2)
    total, term = np.ones_like(t), np.ones_like(t)
    for n in range(1, order + 1):
        term = term * t / n
        total = total + term
    return total


def features(X, *order):
    """The student's features of X, of the right form."""
    given = X.copy()
    found = to_array(feature_map(given, *order), "the result of `feature_map`")
    if getattr(feature_map, "_changed", None) or not np.array_equal(given, X):
        changes_its_input("feature_map")
    observe(f"axes before the features of {X.shape}", list(found.shape[:-1]))
    if found.ndim != X.ndim or found.shape[:-1] != X.shape[:-1]:
        fail(f"X has shape {X.shape} and your features {found.shape}; all axes but the last should be the same.")
    return found


def judge(rng, D, order, *leading, L=4, scale=1.0, dtype=np.float64, view=False):
    q = (scale * rng.normal(size=(*leading, L, D))).astype(dtype)
    k = (scale * rng.normal(size=(*leading, L + 2, D))).astype(dtype)
    if view:
        q, k = np.repeat(q, 2, axis=-1)[..., ::2], np.asfortranarray(k)
    named = () if order is None else (order,)
    phi_q, phi_k = features(q, *named), features(k, *named)
    if phi_q.shape[-1] != phi_k.shape[-1]:
        fail(f"Two calls with D = {D} gave {phi_q.shape[-1]} and {phi_k.shape[-1]} features.")
    found = phi_q @ np.swapaxes(phi_k, -1, -2)
    observe(f"products, width {D}, order {order}, scale {scale}", found)
    what = f"the products of the features (width {D}, order {order or 'left out'})"
    atol = 1e-4 if dtype == np.float32 else 1e-6
    compare(found, products(q, k, order or 2), what, atol=atol)
    # A map knows only its row. What remembers the queries to make the keys' features fit gives itself away here.
    both = np.concatenate([k[..., ::-1, :], q], axis=-2)
    mixed = features(both, *named)
    if mixed.shape[-1] != phi_q.shape[-1]:
        fail(f"The number of features depends on the other rows: {phi_q.shape[-1]} and {mixed.shape[-1]} with D = {D}.")
    what = (
        f"the features of the same rows, given in one array in another order (width {D}, order {order or 'left out'})"
    )
    compare(mixed, np.concatenate([phi_k[..., ::-1, :], phi_q], axis=-2), what, atol=atol)
    what = f"the products of the features of all rows with each other (width {D}, order {order or 'left out'})"
    compare(mixed @ np.swapaxes(mixed, -1, -2), products(both, both, order or 2), what, atol=atol)


@check("order 2, which is also the default, for several widths", points=2)
def _(rng):
    for D in (3, 5, 2, 8):
        judge(rng, D, 2)
        judge(rng, D, None, L=3)


@check("orders 1 and 3", points=2)
def _(rng):
    for D in (3, 2, 4):
        judge(rng, D, 1)
        judge(rng, D, 3)


@check("higher orders", points=1)
def _(rng):
    for D, order in [(2, 4), (3, 5), (4, 4), (2, 7)]:
        judge(rng, D, order, scale=0.8)


@check("any number of leading axes", points=1)
def _(rng):
    for leading in [(2,), (2, 3), (3, 1, 2)]:
        judge(rng, 4, 2, *leading)
    judge(rng, 3, 3, 5)


@check("width one, one token, float32, large and small numbers, views into larger arrays", points=1)
def _(rng):
    for order in (1, 2, 3, 5):
        judge(rng, 1, order)
    judge(rng, 3, 2, L=1)
    judge(rng, 4, 2, scale=0.5, dtype=np.float32)
    judge(rng, 3, 3, scale=0.5, dtype=np.float32)
    judge(rng, 4, 2, scale=20.0)
    judge(rng, 4, 2, scale=1e-3)
    judge(rng, 4, 2, 2, view=True)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "feature-dimension-task"}
"""
## Exercise 2: how long is φ(x)? (3 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

Products such as $x_1x_2$ and $x_2x_1$ need to be there only once, with a larger factor. `feature_dimension(D, order)`
returns the **smallest** number M of features with which exercise 1 can be done for every input of width D: the number of
different products of at most `order` of the D entries, the empty product 1 included. (Your feature map may use more.)

<details><summary>Hint 1</summary>

List the products for D = 2 and order 2. There are six.

</details>

<details><summary>Hint 2</summary>

*How many features?* in the chapter. Choosing *at most* `order` of D entries is like choosing *exactly* `order` of D +
1, the 1 among them.

</details>

<details><summary>Hint 3</summary>

Choices with repetition, in which the order does not matter: a sum of binomial coefficients, or a single one
(`math.comb`).

</details>
"""


# %% nbgrader={"grade_id": "feature-dimension", "solution": true}
def feature_dimension(D, order):
    """The smallest number of features of a map as in exercise 1.

    D: width, order: highest power (whole numbers >= 1). Returns a whole number.
    """
    ### BEGIN SOLUTION
    return math.comb(D + order, order)
    ### END SOLUTION


# %% nbgrader={"grade_id": "feature-dimension-tests", "points": 3}
# Examples of exercise 2: feature_dimension
count = feature_dimension(3, 1)
assert count is not None, "feature_dimension returned None. Is there a return?"
assert count == 4, "Order 1: the 1 and the three entries themselves, 4 in all."
assert feature_dimension(2, 2) == 6, "Width 2, order 2: 1, x1, x2, x1 x1, x1 x2 and x2 x2 are 6; x2 x1 is x1 x2 again."
assert feature_dimension(2, 3) == 10, "Order 3 adds x1^3, x1^2 x2, x1 x2^2 and x2^3 to the 6 of order 2."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


# The feature map is not lent here: the reference's is as long as what is asked for.
@check("order 2", points=1)
def _(rng):
    for D in [4, 1, 8, 16, *rng.integers(5, 60, size=3).tolist()]:
        agrees(feature_dimension, D, 2)


@check("other orders", points=1)
def _(rng):
    for D, order in [(4, 3), (3, 5), (1, 7), (8, 4), (16, 3), (5, 1), (2, 9), (7, 6)]:
        agrees(feature_dimension, D, order)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "linear-attention-task"}
r"""
## Exercise 3: attention without the map (8 points)

*Difficulty ●●●○○ · importance ●●●●● · about 35 minutes*

With the weights $s(q_i, k_j) = \varphi(q_i)\cdot\varphi(k_j)$ the output of query i is

$$\text{output}_i = \frac{\sum_j \varphi(q_i)\cdot\varphi(k_j)\; v_j}{\sum_j \varphi(q_i)\cdot\varphi(k_j)}.$$

Written like this, it takes an L×L table of weights. But $\varphi(q_i)$ stands before both sums: move it out, and what
remains of the sums is the same for all queries.

- `linear_attention(Q, K, V, order)` returns the output (..., L, D), with any number of leading axes (the same in all
  three).
- **No array with L·L entries may be formed.** It is checked by memory: for one sequence with L ≥ 2000, D ≤ 4 and order
  2, the peak of new NumPy arrays has to stay below L² bytes. `peak_megabytes(linear_attention, Q, K, V)` tells you.
- Inputs with odd orders are such that the sum below the fraction is positive (see exercise 6).

You may call `feature_map`.

<details><summary>Hint 1</summary>

Which product can be made first, so that no axis of length L is left?

</details>

<details><summary>Hint 2</summary>

*Brackets decide* in the chapter. What remains of each of the two sums when φ(q) stands before it, and which shape has
it?

</details>

<details><summary>Hint 3</summary>

Features of Q and of K; two sums over the keys; two products with the query's features; a division that fits along the
width. `peak_megabytes` tells whether a table of L × L has slipped in.

</details>
"""


# %% nbgrader={"grade_id": "linear-attention", "solution": true}
def linear_attention(Q, K, V, order=2):
    """Attention with the weights sum of (q . k)^n / n!, n = 0, ..., order, divided by their sum over the keys.

    Q, K, V: (..., L, D). order: a whole number >= 1. Returns the output (..., L, D). Never forms an array with L * L
    entries. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)  # (..., L, M)
    summary = np.swapaxes(phi_k, -1, -2) @ V  # (..., M, D): all that is kept of keys and values
    total = phi_k.sum(axis=-2)[..., None]  # (..., M, 1)
    return (phi_q @ summary) / (phi_q @ total)
    ### END SOLUTION


# %% nbgrader={"grade_id": "linear-attention-tests", "points": 8}
# Examples of exercise 3: linear_attention
Q = np.array([[1.0, 0.0], [0.0, 2.0]])
K = np.array([[2.0, 0.0], [0.0, 1.0]])
V = np.array([[6.0, 0.0], [0.0, 12.0]])
output = linear_attention(Q, K, V)
assert output is not None, "linear_attention returned None. Is there a return?"
assert np.shape(output) == (2, 2), f"Two tokens of width 2: output (2, 2), not {np.shape(output)}."
assert np.allclose(np.asarray(output)[0], [5, 2]), (
    "Query 1 has the products 2 and 0 with the keys, so the weights are 1 + 2 + 2 = 5 and 1. Divided by their sum 6, "
    "the output is 5/6 of the first value and 1/6 of the second: (5, 2)."
)
assert np.allclose(np.asarray(output)[1], [1, 10]), "Query 2 has the products 0 and 2: weights 1 and 5, output (1, 10)."
assert np.allclose(linear_attention(Q, K, V, order=1), [[4.5, 3], [1.5, 9]]), (
    "With order 1 the weights are 1 + t: 3 and 1 for the first query, 1 and 3 for the second."
)
long = np.linspace(-1, 1, 8000).reshape(2000, 4)
assert np.shape(linear_attention(long, long, long)) == (2000, 4), "The output has the shape of V."
assert peak_megabytes(linear_attention, long, long, long) < 4, (
    "For 2000 tokens, more than 4 megabytes (2000 * 2000 bytes) are in use at once. Is there an L x L table? Which two "
    "of the three matrices can be multiplied first?"
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, fail, observe, uses

uses("feature_map")
LONG = 24_000  # a table of this length in float32 has 2.3 GB; a process may have 2


def inputs(rng, *leading, L=6, D=4, scale=1.0):
    Q, K = scale * rng.normal(size=(2, *leading, L, D))
    return Q, K, rng.normal(size=(*leading, L, D))


def near(rng, *leading, L=6, D=4):
    """Queries and keys whose products lie between -0.8 and 0.8, so that every order has positive weights."""
    Q, K, V = inputs(rng, *leading, L=L, D=D)
    return Q * 0.8 / np.linalg.norm(Q, axis=-1, keepdims=True), K / np.linalg.norm(K, axis=-1, keepdims=True), V


@check("order 2: outputs for several lengths and widths", points=2)
def _(rng):
    for sizes in [dict(), dict(L=3, D=5), dict(L=9, D=2), dict(L=4, D=4), dict(L=5, D=7)]:
        agrees(linear_attention, *inputs(rng, **sizes))
    Q, K, V = inputs(rng)
    output = agrees(linear_attention, Q, K, V, 2)
    order = rng.permutation(6)
    again = agrees(linear_attention, Q, K[order], V[order], 2)
    compare(again, output, "the output after keys and values changed places")


@check("other orders", points=1)
def _(rng):
    for order in (1, 3, 4, 5):
        agrees(linear_attention, *near(rng), order)
        agrees(linear_attention, *near(rng, L=4, D=2), order=order)
    agrees(linear_attention, *inputs(rng, D=3), 4)


@check("any number of leading axes", points=1)
def _(rng):
    for leading in [(2,), (3, 2), (2, 1, 3)]:
        agrees(linear_attention, *inputs(rng, *leading))
    agrees(linear_attention, *inputs(rng, 5, L=5, D=5))


@check("a long sequence without an L x L table", points=2)
def _(rng):
    for L, D in [(4000, 4), (3000, 2)]:
        Q, K, V = inputs(rng, L=L, D=D)
        agrees(linear_attention, Q, K, V)
        peak = peak_megabytes(linear_attention, Q, K, V)
        limit = L * L / 1e6
        little = isinstance(peak, int) and peak < limit
        observe(f"little memory, length {L}", little, beside=True)
        if not little:
            fail(f"For L = {L} and D = {D} your function needs {peak} megabytes at once; {limit:g} are allowed.")
    # What the student's process says of its memory is its word only; a table of this length does not fit into it.
    agrees(linear_attention, *inputs(rng, L=LONG, D=2))


@check("one token, width one, large scores, float32, views into larger arrays", points=1)
def _(rng):
    for sizes in [dict(L=1), dict(D=1), dict(L=1, D=1)]:
        agrees(linear_attention, *inputs(rng, 2, **sizes))
    agrees(linear_attention, *inputs(rng, scale=10.0))
    agrees(linear_attention, np.full((1, 2), -0.4), np.ones((1, 2)), rng.normal(size=(1, 2)), 1)  # weights sum to 0.2
    agrees(linear_attention, *(array.astype(np.float32) for array in near(rng, 2)))
    Q, K, V = inputs(rng, 2)
    agrees(linear_attention, np.repeat(Q, 2, axis=1)[:, ::2], np.asfortranarray(K), np.repeat(V, 2, axis=2)[..., ::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "multiplications-task"}
"""
## Exercise 4: what linear attention costs (3 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 15 minutes*

Count the multiplications of two numbers in exercise 3 for one sequence, with the smallest number of features M:

- the product of the transposed key features (M, L) with the values (L, D),
- the product of the query features (L, M) with what came out,
- the product of the query features with the sum of the key features, one number for each query.

Nothing else is counted: not the features themselves, no additions, no divisions. (For comparison: softmax attention takes
$2L^2D$ in the same way of counting.)

<details><summary>Hint 1</summary>

How many multiplications does the product of (a, n) with (n, b) take?

</details>

<details><summary>Hint 2</summary>

Three products are listed above: write the sizes of each.

</details>

<details><summary>Hint 3</summary>

Which M is meant? Exercise 2 knows it. Then add the three.

</details>
"""


# %% nbgrader={"grade_id": "multiplications", "solution": true}
def multiplications(L, D, order):
    """The number of multiplications of linear attention, features and divisions left out.

    L: number of tokens, D: width, order: highest power (whole numbers >= 1). Returns a number.
    """
    ### BEGIN SOLUTION
    M = feature_dimension(D, order)
    return 2 * L * M * D + L * M
    ### END SOLUTION


# %% nbgrader={"grade_id": "multiplications-tests", "points": 3}
# Examples of exercise 4: multiplications
count = multiplications(1, 1, 1)
assert count is not None, "multiplications returned None. Is there a return?"
assert count == 6, "One token of width 1 and order 1 has M = 2 features: 2 + 2 for the products, 2 for the sum below."
assert multiplications(5, 3, 1) == 140, (
    "Five tokens of width 3, order 1, M = 4: 4 * 3 entries of 5 multiplications, 5 * 3 entries of 4, and 5 of 4: 140."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, uses

uses("feature_dimension")


@check("order 2", points=1)
def _(rng):
    for L, D in [(1, 4), (7, 1), (512, 64), *rng.integers(2, 100, size=(5, 2)).tolist()]:
        agrees(multiplications, L, D, 2)


@check("other orders", points=1)
def _(rng):
    for L, D, order in [(10, 4, 3), (3, 8, 1), (100, 3, 5), (9, 16, 4), (2, 5, 6)]:
        agrees(multiplications, L, D, order)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "cheaper-task"}
"""
## Exercise 5: from which length on is it cheaper? (3 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

By these counts, from which number of tokens on does linear attention take **fewer** multiplications than softmax
attention? Give the smallest whole L with $2LMD + LM < 2L^2D$ for

1. D = 8, order 2,
2. D = 64, order 2,
3. D = 8, order 4,

as a list of three numbers: `answer_cheaper_from = [..., ..., ...]`. Each counts one point. For D = 4
and order 2 it is 17: see that your way of finding it gives this, since here the right numbers are asked for, whatever
your `multiplications` says.

<details><summary>Hint 1</summary>

The inequality stands above. What can be divided out?

</details>

<details><summary>Hint 2</summary>

Solve it for L, or let a loop count up until it holds.

</details>

<details><summary>Hint 3</summary>

Mind the `<` and the next whole number. For D = 4 and order 2 you have to get 17.

</details>
"""

# %% nbgrader={"grade_id": "cheaper-choice", "solution": true}
# answer_cheaper_from = a list of three whole numbers
### BEGIN SOLUTION
answer_cheaper_from = [48, 2162, 526]
### END SOLUTION

# %% nbgrader={"grade_id": "cheaper-choice-tests", "points": 3}
# Examples of exercise 5: answer_cheaper_from
# Your numbers are checked when you hand in.
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, reference, to_array


def judge(number):
    found = to_array(answer_cheaper_from, "answer_cheaper_from")
    if found.shape != (3,):
        fail("answer_cheaper_from should be a list of three numbers.")
    if found[number] != reference.answer_cheaper_from[number]:
        fail("Not this length. Divide the inequality by L and solve it for L; fewer means fewer, not as many.")


@check("D = 8, order 2", points=1)
def _(rng):
    judge(0)


@check("D = 64, order 2", points=1)
def _(rng):
    judge(1)


@check("D = 8, order 4", points=1)
def _(rng):
    judge(2)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "normaliser-task"}
r"""
## Exercise 6: when can it fail? (1 point)

*Difficulty ●●○○○ · importance ●●○○○ · about 10 minutes*

The output is divided by $\sum_j s(q_i, k_j)$. For which of the orders 1, 2, 3, 4, 5 and 6 can this sum be **zero or
negative** for some queries and keys? Set `answer_orders` to the list of these orders, for example
`answer_orders = [2, 3]`, in any order. (A hint: draw $1 + t$, $1 + t + t^2/2$, … for negative t, or look for the place
where the derivative vanishes.)

<details><summary>Hint 1</summary>

Which term decides when t goes to −∞, and which sign has it?

</details>

<details><summary>Hint 2</summary>

*Weights must be positive* in the chapter. The derivative of each polynomial is the one before it: what remains of the
polynomial where the derivative is 0?

</details>

<details><summary>Hint 3</summary>

If every weight is positive, so is each sum. If one weight can be negative, one key is enough.

</details>
"""

# %% nbgrader={"grade_id": "normaliser-choice", "solution": true}
# answer_orders = a list of some of the numbers 1, 2, 3, 4, 5, 6
### BEGIN SOLUTION
answer_orders = [1, 3, 5]
### END SOLUTION

# %% nbgrader={"grade_id": "normaliser-choice-tests", "points": 1}
# Examples of exercise 6: answer_orders
# Your list is checked when you hand in.
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, reference, to_array


@check("the orders for which the sum of the weights can be zero or negative", points=1)
def _(rng):
    given = list(answer_orders) if isinstance(answer_orders, (set, range)) else answer_orders
    found = np.ravel(to_array(given, "answer_orders")).tolist()
    if not set(found) <= {1, 2, 3, 4, 5, 6}:
        fail("answer_orders should be a list of some of the numbers 1, 2, 3, 4, 5, 6.")
    if set(found) != set(reference.answer_orders):
        fail(
            "Not these. Compute the sum of the first terms of the series for t = -1, -2, -3, ... and look at its sign."
        )


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "complexity-task"}
r"""
## Exercise 7: the complexity of each step (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 25 minutes*

In a few sentences or a table: (1) for **softmax attention**, give the order of growth of time and memory in L and D of
its steps (scores, softmax, averages). (2) For **linear attention** with M features, give the time of each step: the
features, the product of key features and values, the product with the query features, the sum and the division; and the
memory. (3) Why may the products be taken in another order here but not with softmax? (4) M itself depends on D and the
order: what does that mean for wide heads or high orders?

<details><summary>Hint 1</summary>

Write each step as a product of two arrays, with their sizes.

</details>

<details><summary>Hint 2</summary>

*Brackets decide* and *What it costs* in the chapter. Which is the largest array that is kept?

</details>

<details><summary>Hint 3</summary>

For (3): what stands between $QK^\top$ and V in softmax attention? For (4) put D = 64 into exercise 2.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "complexity", "solution": true, "points": 4}
"""
**Model answer.** (1) Softmax: scores L²D, softmax L², averages L²D, so time grows like L²D; the table of weights takes L²
numbers of memory. (2) Linear: the features L·M (a few multiplications for each), φ(K)ᵀV takes L·M·D, φ(Q) times that
L·M·D again, the sum of the key features L·M additions and its products with the queries L·M, the division L·D. In all
L·M·D: linear in L. Memory: L·M for the features and M·D for the summary, no L². (3) The weights are dot products of
features, so the output is (φ(Q)φ(K)ᵀ)V = φ(Q)(φ(K)ᵀV): a chain of matrix products, which may be bracketed at will. With
softmax an exponential is applied to every entry of QKᵀ before V comes in; it cannot be moved past the product. (4) M =
C(D + order, order) grows like D^order / order!: for order 2 and D = 64 it is 2145, so linear attention pays only from L
> 2161 on; with a high order or wide heads M is larger than any sequence, and nothing is gained.

**Rubric** (4 points, each given or not)

- **1 point**: softmax attention: time L²D, in total or for one of the two products, and memory L² (a table of the weights).
  Both are needed.
- **1 point**: linear attention: L·M·D for the two matrix products, a smaller order such as L·M or L·D for at least one
  of the other steps, and memory without L² (such as L·M, M·D or "linear in L"). All three are needed.
- **1 point**: the products may be bracketed differently because the weights are dot products of features (associativity),
  and the softmax's exponential of each entry stands in the way otherwise. Both halves are needed.
- **1 point**: M grows like a power of D with the order as exponent (or the binomial coefficient, or numbers for it),
  **and** so it pays only for sequences longer than about M (or than such a number, as 2162 in exercise 5). "It gets
  slower" or "it needs more memory" alone is not this consequence. Both halves are needed.
"""

# %% [markdown] nbgrader={"grade_id": "attention-step-task"}
r"""
## Exercise 8: one token at a time (5 points)

*Difficulty ●●●●○ · importance ●●●●● · about 40 minutes*

Now with a **causal mask**, the only exercise here that has one: query t may see the keys 1 to t. Then the sums over the keys
are *running* sums, and linear attention is a recurrent network: it reads a token, adds it to a state, and answers.

`attention_step(state, q, k, v, order)` does one such step. `q`, `k` and `v` (..., D) belong to one token, with any number of
leading axes. `state` is `None` before the first token and afterwards whatever your last call returned. It returns
`(output, state)`:

- `output` (..., D) is the average of the values of all tokens **so far, this one included**, with the weights of exercise 3;
- `state` is made of arrays (one, or several in a tuple, list or dict). What is in it is up to you, but it **must not grow**: after a
  thousand tokens it holds as many numbers as after one. A list of all keys and values is the *KV cache* that softmax attention needs.
- Everything the function remembers is in the state: several texts may be read in turns.

You may call `feature_map`. Products of queries and keys are such that the sum below the fraction is positive.

<details><summary>Hint 1</summary>

Exercise 3 forms two sums over the keys. Which shapes have they?

</details>

<details><summary>Hint 2</summary>

*With a causal mask: a recurrent network* in the chapter. What does one more token add to each of the sums?

</details>

<details><summary>Hint 3</summary>

Features of one token (`feature_map` wants an axis for tokens: give it one, and take it away again); the old sums, or
nothing at the beginning; new sums, without changing the old; the answer; both returned.

</details>
"""


# %% nbgrader={"grade_id": "attention-step", "solution": true}
def attention_step(state, q, k, v, order=2):
    """One step of causal linear attention.

    state: None at the beginning of a text, then what the step before returned. q, k, v: one token's (..., D).
    order: a whole number >= 1. Returns (output (..., D), state); the size of the state depends on D, order and the
    leading axes alone.
    """
    ### BEGIN SOLUTION
    phi_q, phi_k = feature_map(q[..., None, :], order), feature_map(k[..., None, :], order)  # (..., 1, M)
    S, z = (0.0, 0.0) if state is None else state
    S = S + np.swapaxes(phi_k, -1, -2) * v[..., None, :]  # (..., M, D)
    z = z + phi_k  # (..., 1, M)
    return (phi_q @ S)[..., 0, :] / (phi_q * z).sum(axis=-1), (S, z)
    ### END SOLUTION


# %% nbgrader={"grade_id": "attention-step-tests", "points": 5}
# Examples of exercise 8: attention_step
Q = np.array([[1.0, 0.0], [0.0, 2.0]])
K = np.array([[2.0, 0.0], [0.0, 1.0]])
V = np.array([[6.0, 0.0], [0.0, 12.0]])
result = attention_step(None, Q[0], K[0], V[0])
assert isinstance(result, (tuple, list)) and len(result) == 2, "attention_step returns two things: output, state."
output, state = result
assert np.shape(output) == (2,), f"The output of one token is (D,), here (2,), not {np.shape(output)}."
assert np.allclose(output, V[0]), "The first token sees itself alone, so its output is its own value."
output, state = attention_step(state, Q[1], K[1], V[1])
assert np.allclose(output, [1, 10]), (
    "Query 2 has the products 0 and 2 with the two keys: weights 1 and 5, output (1, 10), as in exercise 3. Yours is "
    f"{np.round(np.asarray(output), 4).tolist()}."
)
output, state = attention_step(None, Q, K, V)
assert np.allclose(output, V), "With a leading axis these are two texts of one token each, and each sees itself alone."
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, observe, settled, to_array, uses

uses("feature_map")


def causal(Q, K, V, order):
    """What each query gets of the keys up to its own place, by the full table."""
    t = Q.astype(np.float64) @ np.swapaxes(K.astype(np.float64), -1, -2)
    weights = np.tril(sum(t**n / math.factorial(n) for n in range(order + 1)))
    return weights @ V.astype(np.float64) / weights.sum(axis=-1, keepdims=True)


def text(rng, *leading, L=6, D=3, dtype=np.float64):
    """Queries, keys and values of a text; the products lie between -0.8 and 0.8, where every order is positive."""
    Q, K, V = rng.normal(size=(3, *leading, L, D))
    Q, K = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (0.8 * Q, K))
    return (0.8 * Q).astype(dtype), K.astype(dtype), V.astype(dtype)


def step(state, Q, K, V, t, *order):
    """The student's output and state for token t of a text."""
    result = settled(attention_step(state, Q[..., t, :], K[..., t, :], V[..., t, :], *order))
    is_pair = isinstance(result, (tuple, list)) and len(result) == 2
    observe("output and state", is_pair or (len(result) if isinstance(result, (tuple, list)) else "one thing"))
    if not is_pair:
        fail("`attention_step` should return two things: output, state.")
    output = to_array(result[0], "the output")
    if output.shape != V[..., t, :].shape:
        fail(f"The output of one token has shape {output.shape}; it should have shape {V[..., t, :].shape}.")
    return output, result[1]


def judge(rng, order, *leading, **sizes):
    Q, K, V = text(rng, *leading, **sizes)
    state, outputs = None, []
    for t in range(Q.shape[-2]):
        output, state = step(state, Q, K, V, t, *([] if order is None else [order]))
        outputs.append(output)
    outputs = np.stack(outputs, axis=-2)
    observe(f"outputs, {V.shape}, order {order}", outputs)
    what = f"the outputs of {Q.shape[-2]} tokens (width {Q.shape[-1]}, order {order or 'left out'})"
    compare(outputs, causal(Q, K, V, order or 2), what, atol=1e-4 if Q.dtype == np.float32 else 1e-6)


def numbers_in(state):
    """How many numbers a state holds."""
    state = settled(state)
    if isinstance(state, dict):
        state = list(state.values())
    if isinstance(state, (tuple, list)):
        return sum(map(numbers_in, state))
    return 0 if state is None else to_array(state, "the state").size


@check("order 2, which is also the default, for several widths", points=2)
def _(rng):
    for D, L in [(3, 6), (2, 9), (5, 4), (1, 5), (4, 1)]:
        judge(rng, 2, D=D, L=L)
    judge(rng, None, L=5)


@check("other orders, any number of leading axes, float32", points=1)
def _(rng):
    for order in (1, 3, 4):
        judge(rng, order, L=5)
    for leading in [(2,), (3, 2), (2, 1, 3)]:
        judge(rng, 2, *leading, L=4)
    judge(rng, 3, 4, L=4, D=4)
    judge(rng, 2, 2, dtype=np.float32)


@check("the state does not grow, and all that is remembered is in it: two texts in turns", points=1)
def _(rng):
    texts = [text(rng, L=40, D=2) for _ in range(2)]
    states, outputs, sizes = [None, None], [[], []], []
    for t in range(40):
        for i in range(2):
            output, states[i] = step(states[i], *texts[i], t, 2)
            outputs[i].append(output)
        sizes.append(numbers_in(states[0]))
    grows = len(set(sizes)) > 1 or sizes[-1] > 3 * 3 * 7  # 7 features at most are needed, for 2 values and their sum
    observe("outputs in turns", np.array(outputs))
    observe("the state grows", bool(grows))
    for i in range(2):
        compare(np.array(outputs[i]), causal(*texts[i], 2), "the outputs of one of two texts that are read in turns")
    if grows:
        fail(f"The state holds {sizes[0]} numbers after one token and {sizes[-1]} after 40, for tokens of width 2.")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "delta-attention-task"}
r"""
## Exercise 9: a state that is written over (4 points)

*Difficulty ●●●○○ · importance ●●●○○ · about 30 minutes*

The sum never forgets: if a key comes a second time with a new value, it answers with the mean of both. The **delta rule** looks
first what the state answers for the key, and writes only the difference:

$$S_t = S_{t-1} + \beta_t\; k_t^\top\,(v_t - k_t S_{t-1}), \qquad \text{output}_t = q_t\, S_t .$$

The state S (D, D) is zero before the first token; rows are tokens, so $k_t$ is (1, D) and $k_t^\top(\dots)$ is a table. For a key of
length 1 and $\beta_t = 1$ the state answers $v_t$ from then on, whatever was there before. With a smaller step $\beta_t$ it goes
part of the way.

`delta_attention(Q, K, V, beta)` reads whole texts, Q, K and V (..., L, D) with step sizes `beta` (..., L), and returns the outputs
(..., L, D). Queries and keys are used as they are: no feature map, no division by a sum, no change of their lengths. Every token is
written **before** its query is answered.

<details><summary>Hint 1</summary>

What does `k @ S` say, with k of shape (1, D)? Which shape has the table that is added to S?

</details>

<details><summary>Hint 2</summary>

*One state, four writing rules* in the chapter; the formula above is one round of the loop. Is the query answered
before or after?

</details>

<details><summary>Hint 3</summary>

S of zeros with the leading axes; a loop over the tokens; what is missing; write; answer; in the end all answers along
the axis of tokens. `beta[..., t]` lacks two axes.

</details>
"""


# %% nbgrader={"grade_id": "delta-attention", "solution": true}
def delta_attention(Q, K, V, beta):
    """What a state that is written by the delta rule answers to each query, after its own token has been written.

    Q, K, V: (..., L, D). beta: (..., L), from 0 to 1. Returns the outputs (..., L, D). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    S = np.zeros((*K.shape[:-2], K.shape[-1], V.shape[-1]))
    outputs = []
    for t in range(K.shape[-2]):
        q, k, v = Q[..., t, None, :], K[..., t, None, :], V[..., t, None, :]  # (..., 1, D)
        missing = v - k @ S  # what the state does not answer yet
        S = S + np.swapaxes(k, -1, -2) @ (beta[..., t, None, None] * missing)
        outputs.append(q @ S)
    return np.concatenate(outputs, axis=-2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "delta-attention-tests", "points": 4}
# Examples of exercise 9: delta_attention
keys = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])  # the first key comes again
values = np.array([[3.0, 1.0], [5.0, 5.0], [7.0, 2.0]])
output = delta_attention(keys, keys, values, np.ones(3))
assert output is not None, "delta_attention returned None. Is there a return?"
assert np.shape(output) == (3, 2), f"Three tokens of width 2: outputs (3, 2), not {np.shape(output)}."
assert np.allclose(output[0], values[0]), (
    "A token is written before its query is answered: (3, 1), not what was before."
)
assert not np.allclose(np.asarray(output)[2], [10, 3]), "(10, 3) is the sum of both values of the first key."
assert np.allclose(output, values), "Each query asks for the key just written, and its value is what comes back."
output = delta_attention(keys[::-1], keys, values, np.array([1.0, 1.0, 0.5]))
assert np.allclose(output[2], [5, 1.5]), (
    "The third step goes half the way from (3, 1) to (7, 2), so the first key then has (5, 1.5), not "
    f"{np.round(np.asarray(output[2]), 3).tolist()}."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def texts(rng, *leading, L=6, D=4):
    """Keys with lengths between 0.3 and 1, so that no step goes too far."""
    Q, K, V = rng.normal(size=(3, *leading, L, D))
    K = K / np.linalg.norm(K, axis=-1, keepdims=True) * rng.uniform(0.3, 1, size=(*leading, L, 1))
    return Q, K, V, rng.uniform(0, 1, size=(*leading, L))


@check("any keys and step sizes, several lengths and widths", points=1)
def _(rng):
    agrees(delta_attention, cases=[texts(rng, **s) for s in (dict(), dict(L=9, D=2), dict(L=4, D=4), dict(L=5, D=7))])


@check("a key that comes again is written over, and others stay", points=1)
def _(rng):
    for D in (3, 5):
        keys = np.linalg.qr(rng.normal(size=(D, D)))[0]
        which, asked = rng.integers(0, D, size=(2, 12))
        which[:2] = which[2:4] = [0, 1]
        agrees(delta_attention, keys[asked], keys[which], rng.normal(size=(12, D)), np.ones(12))
        agrees(delta_attention, keys[asked], keys[which], rng.normal(size=(12, D)), rng.integers(0, 2, size=12) * 1.0)


@check("any number of leading axes, one token, width one, float32, views into larger arrays", points=1)
def _(rng):
    sizes = [(2,), (3, 2), (2, 1, 3)]
    agrees(delta_attention, cases=[texts(rng, *leading) for leading in sizes])
    agrees(delta_attention, cases=[texts(rng, 2, **s) for s in (dict(L=1), dict(D=1), dict(L=1, D=1), dict(L=2, D=2))])
    agrees(delta_attention, *(array.astype(np.float32) for array in texts(rng, 2)))
    Q, K, V, beta = texts(rng, 2)
    views = np.repeat(Q, 2, axis=1)[:, ::2], np.asfortranarray(K), np.repeat(V, 2, axis=2)[..., ::2]
    agrees(delta_attention, *views, np.repeat(beta, 2, axis=1)[:, ::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "ps8-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps8-summary"}
where_you_stand()
