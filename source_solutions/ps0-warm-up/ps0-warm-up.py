# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps0-introduction"}
"""
# Problem set 0: warm-up

Attention is made of three steps: compare everything with everything, turn the comparisons into weights, average with
these weights. You write each of them as a small NumPy function, for arrays with any number of axes, and practise the one
skill that saves most time later: saying what shape comes out before you run the code. It goes with the first chapter of the
book. 23 points, all graded automatically. Plan one to two hours.

**How to work, in two minutes**

1. Type your id into the next cell.
2. Go from top to bottom and run each cell (Shift + Enter). Write only where you see `# YOUR CODE HERE`: replace that
   line and the `raise NotImplementedError()` below it. You may add cells of your own; every other cell is put back to its
   original before grading.
3. Under each heading stands how hard the exercise is and how important for what comes later, both out of five, and how
   long it may take. Below the task are hints, folded: open one, try with it, and only then open the next.
4. After each exercise comes a cell with examples. When it runs without an error, you are on the right way; its messages
   say what to look at. The grader runs these examples and further checks, on other inputs, which you do not see.
   Each check counts by itself, so an unfinished exercise still earns points.
5. At the end choose *Restart kernel and run all cells*. What works only because of the order in which you clicked
   will not work for the grader. A cell that fails does not stop the run, and the last cell says where you stand: what
   passes, what fails, and what is still empty.
6. Save, and hand in this one file. Its name does not matter; neither do printed outputs.

**Conventions** in this set

- Tokens stand in rows: an array of T tokens of width d has the shape `(..., T, d)`. The dots are batch axes; any number of
  them works, also none. So count axes from the end: `axis=-1`, `np.swapaxes(K, -1, -2)`; `K.T` turns *all* axes round.
- Functions take float32 or float64 NumPy arrays and never change them. The type of what you return is free. It is
  compared with the right result to within 1e-6 (1e-4 for float32 inputs). Use NumPy; PyTorch is not needed.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps0-progress"}
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

# %% nbgrader={"grade_id": "ps0-imports"}
import numpy as np

# %% [markdown] nbgrader={"grade_id": "softmax-task"}
r"""
## Exercise 1: softmax (8 points)

*Difficulty ●●○○○ · importance ●●●●● · about 25 minutes*

$$\operatorname{softmax}(z)_j = \frac{e^{z_j}}{\sum_k e^{z_k}}$$

turns any numbers into positive ones that sum to 1, along one axis of an array. Write it for arrays with one or more
axes, along any of them (`axis` counts from the front or, if negative, from the end), so that it works for all finite
numbers up to ±10,000, in float64 and in float32. `np.exp(10000)` is infinite, so the formula as it stands gives NaN. Subtracting
the same number from all $z_j$ does not change the result: which number keeps every exponent at or below 0? Two rows of one
array may lie far apart, say around 10,000 and around −10,000, and each needs its own.

**A picture** (the hotter, the more even; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

for temperature in (0.3, 1, 3):
    plt.plot(softmax(np.linspace(-2, 2, 9) / temperature), "o-", label=f"divided by {temperature}")
plt.legend()
plt.show()
```

<details><summary>Hint 1</summary>

For `z` of shape `(2, 3)` and `axis=-1`: how many largest numbers are there, and which shape must they have so that
each can be subtracted from its own row?

</details>

<details><summary>Hint 2</summary>

The task names the trick: the same number may be subtracted from all entries that are summed together. `keepdims=True`
keeps the axis along which you reduce, so that the result still fits to `z`.

</details>

<details><summary>Hint 3</summary>

Three steps: what is to be subtracted, reduced along `axis`; the powers; a division by their sums, reduced along the
same `axis`. Nothing is written into `z`.

</details>
"""


# %% nbgrader={"grade_id": "softmax", "solution": true}
def softmax(z, axis=-1):
    """exp(z) divided by its sum along `axis`, computed without overflow.

    z: an array with at least one axis, finite numbers up to ±10,000. axis: a whole number, the axis that sums to 1.
    Returns an array of the same shape as z. z is not changed.
    """
    ### BEGIN SOLUTION
    powers = np.exp(z - z.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade_id": "softmax-tests", "points": 8}
# Examples of exercise 1: softmax
weights = softmax(np.array([0, np.log(3), np.log(4)]))
assert weights is not None, "softmax returned None. Is there a return?"
assert np.shape(weights) == (3,), f"Three numbers in, three out: the shape is (3,), not {np.shape(weights)}."
assert np.isclose(np.asarray(weights).sum(), 1), "The three weights should sum to 1."
assert np.allclose(weights, [1 / 8, 3 / 8, 4 / 8]), "exp gives 1, 3 and 4, which sum to 8."

# Two rows, three columns: the last axis unless something else is asked for.
table = np.log(np.array([[1.0, 2, 1], [3, 2, 5]]))
assert np.allclose(softmax(table), [[0.25, 0.5, 0.25], [0.3, 0.2, 0.5]]), (
    "Without `axis` the softmax runs along the last axis: each row sums to 1. (keepdims=True keeps the axes.)"
)
assert np.allclose(softmax(table, axis=0), [[0.25, 0.5, 1 / 6], [0.75, 0.5, 5 / 6]]), (
    "With axis=0 it runs down the columns: each column sums to 1."
)

# Large numbers.
assert np.allclose(softmax(np.array([9998 + np.log(3), 9998.0, 0.0])), [0.75, 0.25, 0]), (
    "exp(9998) is infinite. Subtract the largest number first. (Cutting large numbers off would make them equal.)"
)
apart = np.array([[10000.0, 10000.0], [-10000.0, -10000.0]])
assert np.allclose(softmax(apart), 0.5), "Each row has a largest number of its own; subtract that one."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare


@check("along the last axis, of arrays with one to four axes; a constant added changes nothing", points=2)
def _(rng):
    for shape in [(5,), (3, 5), (2, 3, 5), (2, 4, 3, 5), (4, 4)]:
        agrees(softmax, 2 * rng.normal(size=shape))
    z = rng.normal(size=(3, 5))
    before = agrees(softmax, z)
    compare(agrees(softmax, z + 7), before, "softmax after adding 7 to everything")


@check("along every other axis, counted from the front and from the end", points=2)
def _(rng):
    z = 2 * rng.normal(size=(2, 4, 3, 5))
    for axis in [-4, -3, -2, -1, 0, 1, 2, 3]:
        agrees(softmax, z, axis=axis)
    for shape, axis in [((4, 4), 0), ((3, 6), 0), ((3, 6), -2), ((5,), 0), ((2, 3, 2), 1)]:
        agrees(softmax, rng.normal(size=shape), axis)


@check("numbers up to ±10,000, also side by side with small ones", points=2)
def _(rng):
    z = rng.normal(size=(4, 6))
    z[0] += 9_990
    z[1] -= 9_990
    z[2] = np.clip(3_000 * z[2], -10_000, 10_000)
    agrees(softmax, z)
    agrees(softmax, np.ascontiguousarray(z.T), axis=0)
    agrees(softmax, rng.uniform(-10_000, 10_000, size=(2, 3, 5)), axis=1)
    # in float32 with one clear winner in each row: numbers of this size are known to 0.001 only
    apart = 100.0 * rng.permuted(np.tile(np.arange(-100, 101, 8), (4, 1)), axis=1)
    apart[1] = 10.0 * np.arange(26) - 10_000
    agrees(softmax, apart.astype(np.float32))
    agrees(softmax, np.ascontiguousarray(apart.T).astype(np.float32), axis=0)


@check("float32, an axis of size 1, equal numbers, views", points=1)
def _(rng):
    agrees(softmax, rng.normal(size=(2, 3, 5)).astype(np.float32))
    agrees(softmax, rng.normal(size=(2, 3, 5)).astype(np.float32), axis=-2)
    for shape, axis in [((4, 1), -1), ((1, 4), 0), ((1,), -1), ((1, 1, 3), 1)]:
        agrees(softmax, rng.normal(size=shape), axis=axis)
    agrees(softmax, np.full((2, 5), 3.5))
    z = rng.normal(size=(4, 6))
    agrees(softmax, np.asfortranarray(z), axis=0)
    agrees(softmax, np.repeat(z, 2, axis=1)[:, ::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "weighted-average-task"}
r"""
## Exercise 2: weighted average (5 points)

*Difficulty ●○○○○ · importance ●●●●● · about 15 minutes*

Every row of `weights` belongs to one output, every row of `values` is something to be averaged:

$$\text{output}_i = \sum_j \text{weights}_{ij}\,\text{values}_j$$

Two kinds of `weights` occur:

- `(..., T_q, T_k)` with `values` `(..., T_k, d_v)` and the same leading axes (any number): the result is `(..., T_q, d_v)`;
- one row alone, `(T_k,)`, with `values` `(T_k, d_v)`: the result is `(d_v,)`.

The weights are **used as given**: do not make them sum to 1. They may be negative or sum to something else.

<details><summary>Hint 1</summary>

Say the shapes aloud: `(T_q, T_k)` and `(T_k, d_v)` give `(T_q, d_v)`. Which axis disappears, and what has happened to
it?

</details>

<details><summary>Hint 2</summary>

In the formula the sum over j runs along the last axis of the first array and the last but one of the second. Which
product of arrays is defined just so? What does it do with leading axes, and with a first array that has one axis
only?

</details>

<details><summary>Hint 3</summary>

One expression serves both kinds of weights: there is no case to tell apart, and nothing to divide by.

</details>
"""


# %% nbgrader={"grade_id": "weighted-average", "solution": true}
def weighted_average(weights, values):
    """The sums of the values with these weights.

    weights: (..., T_q, T_k), or (T_k,). They are used as given, whatever they sum to.
    values: (..., T_k, d_v) with the same leading axes, or (T_k, d_v).
    Returns (..., T_q, d_v), or (d_v,). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return weights @ values
    ### END SOLUTION


# %% nbgrader={"grade_id": "weighted-average-tests", "points": 5}
# Examples of exercise 2: weighted_average
values = np.array([[4.0, 0], [0, 4], [8, 8]])
one = weighted_average(np.array([0.5, 0.25, 0.25]), values)
assert one is not None, "weighted_average returned None. Is there a return?"
assert np.shape(one) == (2,), f"One row of weights, values of width 2: the shape is (2,), not {np.shape(one)}."
assert np.allclose(one, [4, 3]), "0.5 of [4, 0], 0.25 of [0, 4] and 0.25 of [8, 8] make [4, 3]."
two = weighted_average(np.array([[0.5, 0.25, 0.25], [0, 0, 1]]), values)
assert np.shape(two) == (2, 2), f"Two rows of weights give two outputs of width 2: (2, 2), not {np.shape(two)}."
assert np.allclose(two, [[4, 3], [8, 8]]), "Output i uses row i of the weights; all on value 3 gives value 3."
assert np.allclose(weighted_average(np.array([1.0, 1, -1]), values), [-4, -4]), (
    "The weights are used as given, also if they are negative: [4, 0] + [0, 4] - [8, 8]."
)
assert np.shape(weighted_average(np.ones((7, 2, 3)), np.ones((7, 3, 5)))) == (7, 2, 5), (
    "A batch of seven: weights (7, 2, 3) and values (7, 3, 5) give (7, 2, 5)."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare


def shares(rng, *shape):
    weights = rng.random(shape)
    return weights / weights.sum(axis=-1, keepdims=True)


@check("several rows of weights", points=1)
def _(rng):
    for T_q, T_k, d_v in [(3, 5, 6), (4, 4, 4), (5, 3, 3)]:
        agrees(weighted_average, shares(rng, T_q, T_k), rng.normal(size=(T_k, d_v)))
    chosen = rng.integers(5, size=3)
    values = rng.normal(size=(5, 6))
    compare(
        agrees(weighted_average, np.eye(5)[chosen], values), values[chosen], "the average with all weight on one value"
    )


@check("one and two leading axes", points=1)
def _(rng):
    for leading in [(2,), (4,), (3, 2)]:
        agrees(weighted_average, shares(rng, *leading, 3, 5), rng.normal(size=(*leading, 5, 6)))
        agrees(weighted_average, rng.normal(size=(*leading, 3, 5)), rng.normal(size=(*leading, 5, 6)))
        agrees(weighted_average, shares(rng, *leading, 4, 4), rng.normal(size=(*leading, 4, 4)))


@check("one row of weights alone", points=1)
def _(rng):
    for T_k, d_v in [(5, 3), (2, 6), (4, 4), (1, 3), (5, 1), (1, 1)]:
        agrees(weighted_average, shares(rng, T_k), rng.normal(size=(T_k, d_v)))
        agrees(weighted_average, rng.normal(size=T_k), rng.normal(size=(T_k, d_v)))


@check("weights used as given; sizes of 1, float32, views", points=1)
def _(rng):
    agrees(weighted_average, rng.normal(size=(3, 5)), rng.normal(size=(5, 6)))
    agrees(weighted_average, rng.integers(0, 3, size=(3, 5)) * 1.0, rng.normal(size=(5, 6)))
    for T_q, T_k, d_v in [(1, 5, 6), (3, 1, 6), (3, 5, 1), (1, 1, 1)]:
        agrees(weighted_average, rng.normal(size=(T_q, T_k)), rng.normal(size=(T_k, d_v)))
    weights, values = rng.normal(size=(3, 5)), rng.normal(size=(5, 6))
    agrees(weighted_average, weights.astype(np.float32), values.astype(np.float32))
    agrees(weighted_average, np.asfortranarray(weights), np.repeat(values, 2, axis=0)[::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "pairwise-dot-task"}
"""
## Exercise 3: everything with everything (6 points)

*Difficulty ●●○○○ · importance ●●●●● · about 20 minutes*

Compare each of n vectors with each of m others: entry `[i, j]` of the result is the dot product of row i of `A` and row j
of `B`. `A` is `(..., n, d)`, `B` is `(..., m, d)` with the same leading axes (any number, also none), and the result is
`(..., n, m)`.

Write it **without loops**: no `for`, no `while`, no comprehension. A loop over millions of pairs takes Python minutes;
one product of arrays takes it a moment. (A point is given for this; a right answer with loops earns the others.)

<details><summary>Hint 1</summary>

Which shape must stand on the right of `A @ …`, so that `(..., n, m)` comes out?

</details>

<details><summary>Hint 2</summary>

Entry `[i, j]` of a matrix product is row i of the first times *column* j of the second. Where do your vectors stand
in `B`?

</details>

<details><summary>Hint 3</summary>

One turn of axes, one product. Turn no more axes than necessary: try it with a batch of shape `(7, 2, 4)` and look at
the shapes.

</details>
"""


# %% nbgrader={"grade_id": "pairwise-dot", "solution": true}
def pairwise_dot(A, B):
    """The dot products of every row of A with every row of B, without loops.

    A: (..., n, d). B: (..., m, d) with the same leading axes.
    Returns (..., n, m): entry [..., i, j] is the dot product of A[..., i, :] and B[..., j, :].
    The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return A @ np.swapaxes(B, -1, -2)
    ### END SOLUTION


# %% nbgrader={"grade_id": "pairwise-dot-tests", "points": 6}
# Examples of exercise 3: pairwise_dot
first, second = np.array([[1.0, 2], [0, 1], [3, 0]]), np.array([[1.0, 1], [2, -1]])
products = pairwise_dot(first, second)
assert products is not None, "pairwise_dot returned None. Is there a return?"
assert np.shape(products) == (3, 2), f"Three rows against two: the result is (3, 2), not {np.shape(products)}."
products = np.asarray(products)
assert np.isclose(products[0, 0], 3), "Row 0 of A is [1, 2], row 0 of B is [1, 1]: 1 · 1 + 2 · 1 = 3."
assert np.isclose(products[2, 1], 6), "Row 2 of A is [3, 0], row 1 of B is [2, -1]: 3 · 2 + 0 · (-1) = 6."
assert np.allclose(products, [[3, 0], [1, -1], [3, 6]]), "Rows belong to A, columns to B."
assert np.shape(pairwise_dot(np.ones((7, 3, 4)), np.ones((7, 2, 4)))) == (7, 3, 2), (
    "A batch of seven: (7, 3, 4) and (7, 2, 4) give (7, 3, 2). Swap the last two axes only; .T turns all of them round."
)
### BEGIN HIDDEN TESTS
import ast

from autograder.checks import agrees, check, fail, observe, student_source
from autograder.notebook.names import parse

LOOPS = ast.For, ast.While, ast.AsyncFor, ast.comprehension
LOOPING = {"map", "filter", "exec", "eval", "vectorize", "frompyfunc", "apply_along_axis", "fromfunction", "fromiter"}


def definition(tree, name):
    """What a cell binds to the name last: a function, or the expression assigned; None if it does neither."""
    for node in reversed(tree.body if tree else []):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            return definition(tree, node.value.id) if isinstance(node.value, ast.Name) else node.value
    return None


def has_loop(name, seen):
    """Whether a loop stands in what the name is bound to, or in a helper of the student's that is named there."""
    seen.add(name)
    found = definition(parse(student_source(name)), name)
    nodes = list(ast.walk(found)) if found else []
    named = {
        n.attr if isinstance(n, ast.Attribute) else n.id for n in nodes if isinstance(n, (ast.Name, ast.Attribute))
    }
    return (
        any(isinstance(node, LOOPS) for node in nodes)
        or bool(named & LOOPING)
        or any(has_loop(other, seen) for other in sorted(named) if other not in seen)
    )


@check("two tables of vectors, in all sizes", points=2)
def _(rng):
    for n, m, d in [(3, 5, 4), (6, 2, 3), (4, 4, 4), (4, 4, 3), (2, 7, 7)]:
        agrees(pairwise_dot, rng.normal(size=(n, d)), rng.normal(size=(m, d)))


@check("one, two and three leading axes", points=1)
def _(rng):
    for leading in [(2,), (4,), (3, 2), (2, 3, 2)]:
        agrees(pairwise_dot, rng.normal(size=(*leading, 3, 4)), rng.normal(size=(*leading, 5, 4)))
        agrees(pairwise_dot, rng.normal(size=(*leading, 4, 4)), rng.normal(size=(*leading, 4, 4)))


@check("sizes of 1, float32, views", points=1)
def _(rng):
    for n, m, d in [(1, 5, 4), (3, 1, 4), (3, 5, 1), (1, 1, 1)]:
        agrees(pairwise_dot, rng.normal(size=(n, d)), rng.normal(size=(m, d)))
    A, B = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    agrees(pairwise_dot, A.astype(np.float32), B.astype(np.float32))
    agrees(pairwise_dot, np.asfortranarray(A), np.repeat(B, 2, axis=0)[::2])


@check("without a loop", points=1)
def _(rng):
    agrees(pairwise_dot, rng.normal(size=(3, 4)), rng.normal(size=(5, 4)))
    loops = has_loop("pairwise_dot", set())
    observe("a loop", loops, beside=True)
    if loops:
        fail("There is a loop in your function, or in a helper that it calls; one product of arrays does it all.")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "product-shapes-task"}
"""
## Exercise 4: which shape comes out? (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

Six products of NumPy arrays with these shapes:

| array | shape | | array | shape |
|---|---|---|---|---|
| `A` | (3, 4) | | `Q` | (2, 3, 4) |
| `B` | (4, 2) | | `K` | (2, 5, 4) |
| `v` | (4,) | | `E` | (6, 1, 3, 4) |
| `w` | (3,) | | `F` | (5, 4, 2) |

| | product |
|---|---|
| `"a"` | `A @ B` |
| `"b"` | `A @ v` |
| `"c"` | `Q @ np.swapaxes(K, -1, -2)` |
| `"d"` | `Q @ K` |
| `"e"` | `w[:, None] * A` |
| `"f"` | `E @ F` |

Give for each the shape of the result as a tuple, such as `(7,)` or `(7, 2)`, or the string `"error"` if NumPy refuses the
product. Collect them in a dict called `product_shapes`, with the keys `"a"` to `"f"`. Decide before you try. Each is worth
half a point; one point is for the cell below.

<details><summary>Hint 1</summary>

Write the last two axes of both arrays side by side. Which two numbers must agree for `@`, and which two are left?

</details>

<details><summary>Hint 2</summary>

`@` takes all axes but the last two as batch axes. They are compared from the right: each pair has to be equal, or one
of the two is 1 or missing. A vector on the right of `@` has one axis, which is used up.

</details>

<details><summary>Hint 3</summary>

`"e"` is no matrix product: find the shape of `w[:, None]` first. In `"f"` do the last two axes and the leading ones
one after the other.

</details>
"""

# %% nbgrader={"grade_id": "product-shapes", "solution": true}
# Bind product_shapes: a dict with "a", "b", "c", "d", "e" and "f", each a tuple or "error".
### BEGIN SOLUTION
product_shapes = {
    "a": (3, 2),
    "b": (3,),
    "c": (2, 3, 5),
    "d": "error",
    "e": (3, 4),
    "f": (6, 5, 3, 2),
}
### END SOLUTION

# %% nbgrader={"grade_id": "product-shapes-tests", "points": 4}
# Examples of exercise 4: product_shapes
assert isinstance(product_shapes, dict), 'product_shapes should be a dict such as {"a": (7, 2), ...}.'
for entry in ["a", "b", "c", "d", "e", "f"]:
    assert entry in product_shapes, f'The entry "{entry}" is missing.'
    shape = product_shapes[entry]
    if isinstance(shape, str):
        assert shape.strip().lower() == "error", f'"{entry}": the only text that is an answer is "error".'
    else:
        assert np.ndim(shape) == 1, (
            f'"{entry}" should be a tuple of whole numbers, or "error". A tuple of one is written (7,), with a comma.'
        )
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, reference, to_array


def judge_shape(entry, hint):
    found = product_shapes.get(entry) if isinstance(product_shapes, dict) else None
    right = reference.product_shapes[entry]
    if isinstance(found, str):
        found = found.strip().lower()
        if found != right:
            fail(f'"{entry}" is not right. {hint}')
        return
    if isinstance(right, str) or to_array(found, f'"{entry}"').tolist() != list(right):
        fail(f'"{entry}" is not right. {hint}')


@check("a: two matrices", points=0.5)
def _(rng):
    judge_shape("a", "The inner sizes meet and vanish, the outer ones stay.")


@check("b: a matrix and a vector", points=0.5)
def _(rng):
    judge_shape("b", "Every row of A meets v once.")


@check("c: queries and keys in a batch", points=0.5)
def _(rng):
    judge_shape("c", "The batch axis stays; every query meets every key.")


@check("d: queries and keys as they are", points=0.5)
def _(rng):
    judge_shape("d", "Which sizes have to be equal in a matrix product?")


@check("e: a column of factors", points=0.5)
def _(rng):
    judge_shape("e", "w[:, None] has the shape (3, 1), and an axis of size 1 is stretched.")


@check("f: leading axes of unequal number", points=0.5)
def _(rng):
    judge_shape("f", "Set the last two axes aside; the leading ones are aligned from the right and stretched.")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "ps0-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps0-summary"}
where_you_stand()
