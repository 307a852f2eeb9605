# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps5-introduction"}
"""
# Problem set 5: normalisation

You write layer norm, batch norm and RMS norm, the backward pass of layer norm by hand, and the two places where a
transformer can put its norm. All are a few lines long; what goes wrong is which numbers a mean and a variance are taken
over, which variance it is, and where `eps` stands. It goes with the chapter *Normalization* of the book. 36 points: 33
are graded automatically, and 3, for the written answer, by a person. Plan three hours.

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

- Tokens stand in rows: arrays are `(..., T, d)` or, for one token, `(d,)`. The dots are batch axes; any number works.
- Layer norm and batch norm normalise with the **biased** variance: the mean of the squared deviations, divided by the
  number of values and not by that number less one. `eps` is added to the variance, **inside** the root.
- Functions take float32 or float64 NumPy arrays and never change them. The type of what you return is free. It is
  compared with the right result to within 1e-6 (1e-4 for float32 inputs). In float32 the mean of a row is at most ten
  deviations away from 0. Use NumPy; PyTorch is not needed.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps5-progress"}
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

# %% nbgrader={"grade_id": "ps5-imports"}
import numpy as np

# %% [markdown] nbgrader={"grade_id": "layer-norm-task"}
r"""
## Exercise 1: layer norm (6 points)

*Difficulty ●●○○○ · importance ●●●●● · about 25 minutes*

$$\mu = \frac1d\sum_j x_j, \qquad \sigma^2 = \frac1d\sum_j (x_j-\mu)^2, \qquad
y_j = \gamma_j\,\frac{x_j-\mu}{\sqrt{\sigma^2+\varepsilon}} + \beta_j$$

for every token by itself, that is, along the last axis, whatever the number of leading axes (also none). A token whose
entries are all equal, and any token of width 1, becomes $\beta$.

<details><summary>Hint 1</summary>

How many means are there for `x` of shape `(B, T, d)`, and which shape lets each be subtracted from its own token?

</details>

<details><summary>Hint 2</summary>

*One group of numbers* in the chapter. Is the variance biased or unbiased, and where does eps stand?

</details>

<details><summary>Hint 3</summary>

Deviation, variance, quotient, then gamma and beta. Entries that are all equal need no case of their own: what is
their deviation?

</details>
"""


# %% nbgrader={"grade_id": "layer-norm", "solution": true}
def layer_norm(x, gamma, beta, eps=1e-5):
    """Every token with mean 0 and variance 1, then stretched by gamma and moved by beta.

    x: tokens (..., d). gamma, beta: (d,). eps: added to the biased variance, inside the root.
    Returns an array of the same shape as x. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    deviation = x - x.mean(axis=-1, keepdims=True)
    variance = (deviation**2).mean(axis=-1, keepdims=True)
    return gamma * deviation / np.sqrt(variance + eps) + beta
    ### END SOLUTION


# %% nbgrader={"grade_id": "layer-norm-tests", "points": 6}
# Examples of exercise 1: layer_norm
# Row 0 has mean 4 and deviations -3, -1, 1, 3: variance (9 + 1 + 1 + 9) / 4 = 5. Row 1 is ten times row 0.
tokens = np.array([[1.0, 3, 5, 7], [10, 30, 50, 70]])
ones, zeros = np.ones(4), np.zeros(4)
result = layer_norm(tokens, ones, zeros)
assert result is not None, "layer_norm returned None. Is there a return?"
assert np.shape(result) == (2, 4), f"The shape stays as it is, (2, 4); yours is {np.shape(result)}."
result = np.asarray(result)
assert np.allclose(result.mean(axis=-1), 0), "Each row should have the mean 0: the mean is taken over the width."
assert not np.allclose(result[0], np.array([-3, -1, 1, 3]) / np.sqrt(20 / 3), atol=1e-3), (
    "This is the unbiased variance, 20 / 3. Here the squared deviations are divided by their number: 20 / 4."
)
assert np.allclose(result, np.array([-3, -1, 1, 3]) / np.sqrt(5), atol=1e-4), (
    "Row 0 is its deviations over the root of 5, and row 1, ten times as large, comes out the same."
)
gamma, beta = np.array([1.0, 2, 3, 4]), np.array([10.0, 20, 30, 40])
assert np.allclose(layer_norm(tokens, gamma, beta)[0], gamma * result[0] + beta), (
    "gamma multiplies the normalised entries, one factor for each column; beta is added afterwards."
)
assert np.allclose(layer_norm(np.full((1, 4), 7.0), gamma, beta), beta), (
    "All entries equal: no deviation, so the token becomes beta. eps keeps the division from being 0 / 0."
)
assert np.allclose(layer_norm(tokens[0], ones, zeros, eps=4.0), [-1, -1 / 3, 1 / 3, 1]), (
    "With eps = 4 the root is that of 5 + 4, which is 3: eps stands inside the root."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare


def inputs(rng, *leading, d=6):
    return rng.normal(size=(*leading, d)) * 2 + 1, rng.normal(size=d), rng.normal(size=d)


@check("any number of leading axes; permuted columns permute the result", points=2)
def _(rng):
    for leading in [(2, 5), (5,), (), (3, 2, 5), (6,)]:
        x, gamma, beta = inputs(rng, *leading)
        agrees(layer_norm, 1e3 * x, gamma, beta)  # so large that eps does not matter
    x, gamma, beta = inputs(rng, 2, 5, d=4)
    order = rng.permutation(4)
    before = agrees(layer_norm, 1e3 * x, gamma, beta)
    after = agrees(layer_norm, 1e3 * x[..., order], gamma[order], beta[order])
    compare(after, np.asarray(before)[..., order], "the result after the columns changed places")


@check("eps: tokens with little or no variance, and other values of eps", points=1)
def _(rng):
    x, gamma, beta = inputs(rng, 4)
    agrees(layer_norm, 1e-3 * x, gamma, beta)
    agrees(layer_norm, np.repeat(x[:, :1], 6, axis=1), gamma, beta)
    agrees(layer_norm, np.zeros((2, 6)), gamma, beta)
    for eps in [0.5, 1e-2, 1e-8]:
        agrees(layer_norm, x, gamma, beta, eps)
        agrees(layer_norm, 0.1 * x, gamma, beta, eps=eps)


@check("tokens of very different scale side by side, far from 0", points=1)
def _(rng):
    x, gamma, beta = inputs(rng, 4, d=7)
    agrees(layer_norm, x * np.array([[1e-2], [1.0], [1e2], [1e4]]), gamma, beta)
    agrees(layer_norm, x + np.array([[100.0], [-50.0], [0.0], [20.0]]), gamma, beta)


@check("width 1, one token, float32, views", points=1)
def _(rng):
    agrees(layer_norm, *inputs(rng, 5, d=1))
    agrees(layer_norm, *inputs(rng, 1, d=2))
    agrees(layer_norm, *inputs(rng, 1, 1, d=1))
    x, gamma, beta = inputs(rng, 2, 5, d=9)
    agrees(layer_norm, *[array.astype(np.float32) for array in (x, gamma, beta)])
    agrees(layer_norm, np.asfortranarray(x), gamma, beta)
    agrees(layer_norm, np.repeat(x, 2, axis=2)[..., ::2], np.repeat(gamma, 2)[::2], beta)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "batch-norm-task"}
"""
## Exercise 2: batch norm (8 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 35 minutes*

Batch norm takes mean and variance of every **column**, over the N examples of a batch, and keeps running values of both
for the time when there is no batch. `x` is `(N, d)`.

- **In training** (`training=True`, N ≥ 2): `y` is normalised with the mean and the biased variance of *this batch*, with `eps`
  inside the root, then multiplied by gamma and moved by beta. New running values are returned:
  `new = (1 - momentum) * old + momentum * batch`, where the running variance takes the **unbiased** variance of the
  batch (divided by N − 1), as PyTorch does.
- **In evaluation** (`training=False`, N ≥ 1): `y` is normalised with the running mean and the running variance, whatever the batch looks
  like, and the running values are returned as they came.

The arrays that come in are never changed, the running values neither: return new arrays.

<details><summary>Hint 1</summary>

Over which axis of `(N, d)` is averaged, and how many means come out?

</details>

<details><summary>Hint 2</summary>

In training there are two variances: one makes `y`, the other goes into the running value. Which of them divides by N
− 1? (NumPy's `var` has `ddof`.)

</details>

<details><summary>Hint 3</summary>

Two branches decide which mean and variance are used and what is returned as running values. The line that normalises
is the same in both. And `+=` on an argument changes it.

</details>
"""


# %% nbgrader={"grade_id": "batch-norm", "solution": true}
def batch_norm(x, gamma, beta, running_mean, running_var, training, momentum=0.1, eps=1e-5):
    """Every column with mean 0 and variance 1 over the batch (training) or by the running values (evaluation).

    x: (N, d). gamma, beta, running_mean, running_var: (d,). training: True or False.
    momentum: the share of the batch in the new running values. eps: added to the variance, inside the root.
    Returns (y, running_mean, running_var): y (N, d); the other two (d,), new in training.
    The inputs are not changed.
    """
    ### BEGIN SOLUTION
    if training:
        mean, var = x.mean(axis=0), x.var(axis=0)
        running_mean = (1 - momentum) * running_mean + momentum * mean
        running_var = (1 - momentum) * running_var + momentum * x.var(axis=0, ddof=1)
    else:
        mean, var = running_mean, running_var
    return gamma * (x - mean) / np.sqrt(var + eps) + beta, running_mean, running_var
    ### END SOLUTION


# %% nbgrader={"grade_id": "batch-norm-tests", "points": 8}
# Examples of exercise 2: batch_norm
# Four examples with two features. Column 0: mean 4, squared deviations 9 + 1 + 1 + 9 = 20. Column 1: mean 0, sum 16.
batch = np.array([[1.0, 2], [3, -2], [5, 2], [7, -2]])
ones, zeros = np.ones(2), np.zeros(2)
old_mean, old_var = np.array([2.0, 10.0]), np.array([9.0, 4.0])
result = batch_norm(batch, ones, zeros, old_mean, old_var, True)
assert isinstance(result, (tuple, list)) and len(result) == 3, "Return three things: y, running_mean, running_var."
y, new_mean, new_var = map(np.asarray, result)
assert np.shape(y) == (4, 2), f"y has the shape of x, (4, 2); yours is {np.shape(y)}."
assert np.allclose(y.mean(axis=0), 0), "In training each column of y has the mean 0: means are taken over the batch."
assert np.allclose(y[:, 0], np.array([-3, -1, 1, 3]) / np.sqrt(5), atol=1e-4), (
    "Column 0: deviations over the root of the biased variance, 20 / 4."
)
assert np.allclose(new_mean, [2.2, 9]), "Running mean: 0.9 of the old values, [2, 10], and 0.1 of the batch's, [4, 0]."
assert not np.allclose(new_var, [8.6, 4]), "The running variance takes the unbiased one: 20 / 3, not 20 / 4."
assert np.allclose(new_var, [0.9 * 9 + 0.1 * 20 / 3, 0.9 * 4 + 0.1 * 16 / 3]), (
    "Running variance: 0.9 of the old values, [9, 4], and 0.1 of the unbiased variances, [20 / 3, 16 / 3]."
)
assert np.allclose(old_mean, [2, 10]) and np.allclose(old_var, [9, 4]), "The old running values should not be changed."
y, same_mean, same_var = map(np.asarray, batch_norm(batch, ones, zeros, old_mean, old_var, False))
assert np.allclose(y[0], [-1 / 3, -4], atol=1e-4), (
    "In evaluation row 0 is ([1, 2] - [2, 10]) / [3, 2]: by the running values, not by those of the batch."
)
assert np.allclose(same_mean, old_mean) and np.allclose(same_var, old_var), (
    "In evaluation the running values come back as they were."
)
### BEGIN HIDDEN TESTS
from autograder.checks import check, reference
from set_checks import judge_three

Y, MEAN, VAR = range(3)


def judged(*args, **named):
    results = ["y", "running_mean", "running_var"]
    judge_three("batch_norm", batch_norm, reference.batch_norm, results, *args, **named)


def inputs(rng, N=7, d=4):
    return (
        rng.normal(size=(N, d)) * rng.uniform(0.5, 3, size=d) + rng.normal(size=d),
        rng.normal(size=d),
        rng.normal(size=d),
        rng.normal(size=d) * 2,
        rng.uniform(0.2, 3, size=d),
    )


@check("training: the batch normalised by its own mean and variance", points=2)
def _(rng):
    for N, d in [(7, 4), (3, 5), (5, 5), (2, 3), (6, 1)]:
        x, *rest = inputs(rng, N, d)
        judged([Y], 1e3 * x, *rest, True)  # so large that eps does not matter
    x, *rest = inputs(rng)
    judged([Y], x * np.array([1e2, 1e3, 1e4, 1e5]), *rest, training=True)
    judged([Y], 1e3 * x, *rest, True, 0.3)


@check("training: the new running values", points=2)
def _(rng):
    for N, d in [(7, 4), (3, 5), (5, 5), (2, 3), (6, 1)]:
        judged([MEAN, VAR], *inputs(rng, N, d), True)
    for momentum in [0.3, 0.0, 1.0, 0.9]:
        judged([MEAN, VAR], *inputs(rng), True, momentum)
        judged([MEAN, VAR], *inputs(rng), training=True, momentum=momentum)


@check("evaluation: normalised by the running values, which stay what they are", points=2)
def _(rng):
    for N, d in [(7, 4), (3, 5), (4, 4), (1, 3), (6, 1)]:
        x, gamma, beta, mean, var = inputs(rng, N, d)
        judged([Y, MEAN, VAR], 1e3 * x, gamma, beta, 1e3 * mean, 1e6 * var, False)  # eps does not matter
    x, gamma, beta, mean, var = inputs(rng)
    judged([Y, MEAN, VAR], 1e3 * x, gamma, beta, 1e3 * mean, 1e6 * var, training=False, momentum=0.7, eps=1e-6)


@check("eps, columns without variance, float32, views", points=1)
def _(rng):
    for training in [True, False]:
        x, gamma, beta, mean, var = inputs(rng)
        judged([Y], 1e-3 * x, gamma, beta, mean, 1e-6 * var, training)
        judged([Y], x * np.array([1e-2, 1.0, 1e2, 1e3]), gamma, beta, mean, var, training)
        judged([Y], x, gamma, beta, mean, var, training, eps=0.5)
        judged([Y], x, gamma, beta, mean, var, training, 0.1, 0.02)
        judged([Y], np.repeat(x[:1], 5, axis=0), gamma, beta, mean, var, training)
        judged([Y], *[a.astype(np.float32) for a in (x, gamma, beta, mean, var)], training)
        judged([Y], np.asfortranarray(x), gamma, beta, mean, var, training)
        judged([Y, MEAN], np.repeat(x, 2, axis=1)[:, ::2], gamma, beta, mean, var, training)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "rms-norm-task"}
r"""
## Exercise 3: RMS norm (4 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 15 minutes*

Many recent models leave the mean and $\beta$ out and divide by the root of the mean square alone:

$$y_j = \gamma_j\,\frac{x_j}{\sqrt{\frac1d\sum_k x_k^2+\varepsilon}}$$

for every token by itself, with any number of leading axes. `eps` stands inside the root here as well.

<details><summary>Hint 1</summary>

What is left out, compared with layer norm?

</details>

<details><summary>Hint 2</summary>

*RMS norm: leave the mean out* in the chapter. In which order do square, mean and root come?

</details>

<details><summary>Hint 3</summary>

One expression; the reduced axis is kept.

</details>
"""


# %% nbgrader={"grade_id": "rms-norm", "solution": true}
def rms_norm(x, gamma, eps=1e-6):
    """Every token divided by the root of its mean square, then stretched by gamma.

    x: tokens (..., d). gamma: (d,). eps: added to the mean square, inside the root.
    Returns an array of the same shape as x. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    return gamma * x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + eps)
    ### END SOLUTION


# %% nbgrader={"grade_id": "rms-norm-tests", "points": 4}
# Examples of exercise 3: rms_norm
# Row 0 has the squares 1, 1, 49, 49: their mean is 25, its root 5.
tokens = np.array([[1.0, 1, 7, -7], [2, 2, 14, -14]])
result = rms_norm(tokens, np.ones(4))
assert result is not None, "rms_norm returned None. Is there a return?"
assert np.shape(result) == (2, 4), f"The shape stays as it is, (2, 4); yours is {np.shape(result)}."
result = np.asarray(result)
assert not np.allclose(result[0], np.array([1, 1, 7, -7]) / 10, atol=1e-4), (
    "You divide by the length of the vector, 10; the root of the *mean* square is 5."
)
assert np.allclose(result, [[0.2, 0.2, 1.4, -1.4]] * 2, atol=1e-4), (
    "Row 0 divided by 5, row 1 by 10. No mean is subtracted."
)
assert np.allclose(rms_norm(tokens, np.array([1.0, 2, 3, 4]))[0], [0.2, 0.4, 4.2, -5.6], atol=1e-4), (
    "gamma multiplies, one factor for each column."
)
assert np.allclose(rms_norm(tokens[0], np.ones(4), eps=11.0), np.array([1, 1, 7, -7]) / 6), (
    "With eps = 11 the root is that of 25 + 11, which is 6: eps stands inside the root."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def inputs(rng, *leading, d=6):
    return rng.normal(size=(*leading, d)) * 2 + 1, rng.normal(size=d)


@check("any number of leading axes", points=1)
def _(rng):
    for leading in [(), (5,), (2, 5), (3, 2, 5), (6,)]:
        x, gamma = inputs(rng, *leading)
        agrees(rms_norm, 1e3 * x, gamma)  # so large that eps does not matter
    x, gamma = inputs(rng, 5)
    agrees(rms_norm, 1e3 * np.maximum(x, 0), gamma)  # zeros count as numbers


@check("eps: tokens that are small or zero, and other values of eps", points=1)
def _(rng):
    x, gamma = inputs(rng, 4)
    agrees(rms_norm, 1e-3 * x, gamma)
    agrees(rms_norm, np.concatenate([x, np.zeros((1, 6))]), gamma)
    for eps in [0.5, 1e-2, 1e-8]:
        agrees(rms_norm, x, gamma, eps)
        agrees(rms_norm, 0.1 * x, gamma, eps=eps)


@check("tokens of very different scale, width 1, one token, float32, views", points=1)
def _(rng):
    x, gamma = inputs(rng, 4, d=7)
    agrees(rms_norm, x * np.array([[1e-2], [1.0], [1e2], [1e4]]), gamma)
    agrees(rms_norm, *inputs(rng, 5, d=1))
    agrees(rms_norm, *inputs(rng, 1, 1, d=2))
    x, gamma = inputs(rng, 2, 5, d=9)
    agrees(rms_norm, x.astype(np.float32), gamma.astype(np.float32))
    agrees(rms_norm, np.asfortranarray(x), gamma)
    agrees(rms_norm, np.repeat(x, 2, axis=2)[..., ::2], np.repeat(gamma, 2)[::2])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "layer-norm-backward-task"}
r"""
## Exercise 4: the gradient of layer norm (7 points)

*Difficulty ●●●●● · importance ●●●○○ · about 45 minutes*

Let $L$ be a loss and `dy` its gradient by the output of `layer_norm`: `dy[..., j]` is $\partial L/\partial y_j$ of that
token. Work out the gradients by the three inputs.

- `dx`, `(..., d)`: entry $x_k$ acts on **all** outputs of its token, on one directly and on the others through
  $\mu$ and $\sigma^2$. Write $\hat x = (x-\mu)/\sqrt{\sigma^2+\varepsilon}$ and
  $g_j = \gamma_j\,\partial L/\partial y_j$; then $dx$ can be written with $g$, $\hat x$, the root, and two means over the width.
- `dgamma` and `dbeta`, `(d,)`: all tokens share $\gamma$ and $\beta$, so these sum over **all** leading axes.

Derive it on paper. To test yourself, move one entry of `x` by ±0.00001 and watch the sum of `dy * layer_norm(x, gamma, beta)`.
(As an answer such differences are not exact enough: they lose more digits than the 1e-6 to which results are compared.)

<details><summary>Hint 1</summary>

Over which axes are `dgamma` and `dbeta` summed if x has three axes? And if it has one?

</details>

<details><summary>Hint 2</summary>

Begin with the two easy ones. For `dx` write down the three ways from $x_k$ to the loss, directly, through $\mu$ and
through $\sigma^2$, each with its own derivative.

</details>

<details><summary>Hint 3</summary>

All three parts share the division by the root. One is $g$ itself; the two others take something away: a mean over the
width, and something that is proportional to $\hat x$ with a mean as its factor. For a check: the entries of `dx` of
one token sum to 0.

</details>
"""


# %% nbgrader={"grade_id": "layer-norm-backward", "solution": true}
def layer_norm_backward(dy, x, gamma, eps=1e-5):
    """Gradients of a loss by the inputs of layer_norm, from the gradient dy by its output.

    dy, x: (..., d). gamma: (d,). eps: as in layer_norm.
    Returns (dx, dgamma, dbeta): dx (..., d); dgamma and dbeta (d,), summed over all leading axes.
    The inputs are not changed.
    """
    ### BEGIN SOLUTION
    deviation = x - x.mean(axis=-1, keepdims=True)
    root = np.sqrt((deviation**2).mean(axis=-1, keepdims=True) + eps)
    normalised = deviation / root
    g = dy * gamma
    through_mean = g.mean(axis=-1, keepdims=True)
    through_variance = normalised * (g * normalised).mean(axis=-1, keepdims=True)
    dx = (g - through_mean - through_variance) / root
    leading = tuple(range(x.ndim - 1))
    return dx, (dy * normalised).sum(axis=leading), dy.sum(axis=leading)
    ### END SOLUTION


# %% nbgrader={"grade_id": "layer-norm-backward-tests", "points": 7}
# Examples of exercise 4: layer_norm_backward
# Two tokens that are normalised already (mean 0, variance 1), so with eps = 0 the root is 1.
tokens = np.array([[1.0, 1, -1, -1], [1, -1, 1, -1]])
gamma, upstream = np.array([1.0, 2, 1, 1]), np.array([[1.0, 0, 0, 0], [0, 2, 0, 0]])
result = layer_norm_backward(upstream, tokens, gamma, eps=0.0)
assert isinstance(result, (tuple, list)) and len(result) == 3, "Return three things: dx, dgamma, dbeta."
dx, dgamma, dbeta = map(np.asarray, result)
assert np.shape(dx) == (2, 4), f"dx has the shape of x, (2, 4); yours is {np.shape(dx)}."
assert np.shape(dgamma) == np.shape(dbeta) == (4,), (
    f"gamma and beta are shared by all tokens: dgamma and dbeta are (4,), not {np.shape(dgamma)} and {np.shape(dbeta)}."
)
assert np.allclose(dbeta, [1, 2, 0, 0]), "y = gamma * x_hat + beta, so dbeta is dy, summed over the tokens."
assert np.allclose(dgamma, [1, -2, 0, 0]), "dgamma is dy times the normalised token, summed over the tokens."
assert np.allclose(dx.sum(axis=-1), 0), (
    "Adding the same number to a whole token changes nothing in y, so the entries of dx sum to 0 in each row."
)
assert np.allclose(dx[0], [0.5, -0.5, 0, 0]), (
    "Token 0: entry 0 acts on the loss directly, through the mean and through the variance. Are all three there?"
)
assert np.allclose(dx[1], [0, 2, 0, -2]), (
    "Token 1: g = dy * gamma = [0, 4, 0, 0]; both of its means are taken over the width."
)
assert np.allclose(layer_norm_backward(upstream, tokens, gamma, eps=3.0)[1], [0.5, -1, 0, 0]), (
    "With eps = 3 the root is that of 1 + 3, so the normalised tokens, and dgamma with them, are half as large."
)
### BEGIN HIDDEN TESTS
from autograder.checks import check, reference, uses
from set_checks import judge_three

uses("layer_norm")
DX, DGAMMA, DBETA = range(3)


def judged(*args, **named):
    results = ["dx", "dgamma", "dbeta"]
    judge_three("layer_norm_backward", layer_norm_backward, reference.layer_norm_backward, results, *args, **named)


def inputs(rng, *leading, d=6):
    return rng.normal(size=(*leading, d)), rng.normal(size=(*leading, d)) * 2 + 1, rng.normal(size=d)


@check("dx, with any number of leading axes", points=2)
def _(rng):
    for leading in [(), (5,), (2, 5), (3, 2, 5), (6,)]:
        dy, x, gamma = inputs(rng, *leading)
        judged([DX], 1e3 * dy, 1e3 * x, gamma)  # so large that eps does not matter
    dy, x, gamma = inputs(rng, 4, d=7)
    scale = np.array([[1e2], [1e3], [1e4], [1e5]])
    judged([DX], scale * dy, scale * x, gamma)


@check("dgamma and dbeta, with any number of leading axes", points=2)
def _(rng):
    for leading in [(), (5,), (2, 5), (3, 2, 5), (6,)]:
        dy, x, gamma = inputs(rng, *leading)
        judged([DGAMMA, DBETA], dy, 1e3 * x, gamma)
    dy, x, gamma = inputs(rng, 4, d=7)
    judged([DGAMMA, DBETA], dy, x * np.array([[1e2], [1e3], [1e4], [1e5]]), gamma)


@check("eps: tokens with little or no variance, and other values of eps", points=1)
def _(rng):
    dy, x, gamma = inputs(rng, 4)
    judged([DX, DGAMMA], dy, x, gamma)
    judged([DX, DGAMMA], dy, 1e-2 * x, gamma)
    judged([DX, DGAMMA], dy, np.repeat(x[:, :1], 6, axis=1), gamma)
    for eps in [0.5, 1e-2]:
        judged([DX, DGAMMA], dy, x, gamma, eps)
        judged([DX, DGAMMA], dy, 0.1 * x, gamma, eps=eps)


@check("width 1 and 2, one token, float32, views", points=1)
def _(rng):
    for leading, d in [((5,), 1), ((1,), 2), ((1, 1), 1), ((1, 1), 4), ((2, 3), 2)]:
        judged([DX, DGAMMA, DBETA], *inputs(rng, *leading, d=d))
    dy, x, gamma = inputs(rng, 2, 3, d=12)
    judged([DX, DGAMMA, DBETA], *[array.astype(np.float32) for array in (dy, x, gamma)])
    judged([DX, DGAMMA, DBETA], np.asfortranarray(dy), np.repeat(x, 2, axis=2)[..., ::2], gamma)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "residual-block-task"}
r"""
## Exercise 5: where the norm stands (5 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

A block of a transformer adds what its sublayer $f$ (attention, or the network after it) says to its input. The norm
stands in one of two places:

- `order="pre"`: $\;x + f(\operatorname{LN}(x))$. The norm comes first, and the sum is not normalised.
- `order="post"`: $\;\operatorname{LN}(x + f(x))$. The sublayer sees $x$ as it is, and the sum is normalised.

`sublayer` is a function that takes an array of the shape of `x` and returns one of the same shape. Call it exactly once:
it may be costly. LN is layer norm with `gamma`, `beta` and eps = 1e-5.

**A picture** (how large the stream is after each of 30 blocks; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

W = np.random.default_rng(0).normal(size=(30, 16, 16)) / 4
for order in ("pre", "post"):
    x, sizes = np.ones((1, 16)) * np.linspace(-1, 1, 16), []
    for matrix in W:
        x = residual_block(x, lambda z: z @ matrix, np.ones(16), np.zeros(16), order)
        sizes.append(np.sqrt(np.mean(np.square(x))))
    plt.plot(sizes, label=order)
plt.legend()
plt.show()
```

<details><summary>Hint 1</summary>

In which of the two orders does the sublayer see normalised tokens?

</details>

<details><summary>Hint 2</summary>

The two formulas of the task, word for word; the layer norm is yours of exercise 1.

</details>

<details><summary>Hint 3</summary>

A branch for each order, and in each of them one call of `sublayer` and one of `layer_norm`. `x +=` would change the
input.

</details>
"""


# %% nbgrader={"grade_id": "residual-block", "solution": true}
def residual_block(x, sublayer, gamma, beta, order):
    """A sublayer with its residual connection and its layer norm (eps 1e-5).

    x: tokens (..., d). sublayer: a function of an array (..., d) that returns one of the same shape; called once.
    gamma, beta: (d,), of the layer norm. order: "pre" for x + f(LN(x)), "post" for LN(x + f(x)).
    Returns an array of the same shape as x. The inputs are not changed.
    """
    ### BEGIN SOLUTION
    if order == "pre":
        return x + sublayer(layer_norm(x, gamma, beta))
    return layer_norm(x + sublayer(x), gamma, beta)
    ### END SOLUTION


# %% nbgrader={"grade_id": "residual-block-tests", "points": 5}
# Examples of exercise 5: residual_block
# A token with mean 0 and variance 9, and a sublayer that doubles. The norm divides this token by 3.
tokens = np.array([[3.0, -3, 3, -3]])
ones, zeros = np.ones(4), np.zeros(4)
result = residual_block(tokens, lambda z: 2 * z, ones, zeros, "pre")
assert result is not None, "residual_block returned None. Is there a return?"
assert np.shape(result) == (1, 4), f"The shape stays as it is, (1, 4); yours is {np.shape(result)}."
assert np.allclose(result, [[5, -5, 5, -5]], atol=1e-4), (
    "Pre-norm: LN(x) is [1, -1, 1, -1], the sublayer doubles it, and x itself is added: 3 + 2 = 5."
)
result = residual_block(tokens, lambda z: 2 * z, ones, zeros, "post")
assert np.allclose(result, [[1, -1, 1, -1]], atol=1e-4), (
    "Post-norm: x + f(x) is [9, -9, 9, -9], and the norm of this sum is [1, -1, 1, -1]."
)
result = residual_block(tokens, lambda z: z**2, ones, np.full(4, 10.0), "pre")
assert np.allclose(result, [[124, 78, 124, 78]], atol=1e-2), (
    "Pre-norm with beta = 10: the sublayer squares [11, 9, 11, 9], and x is added. gamma and beta belong to the norm."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, fail, observe, reference, uses

uses("layer_norm")


def inputs(rng, *leading, d=6):
    """Tokens, a sublayer that mixes columns, gamma and beta."""
    W, c = rng.normal(size=(d, d)) / np.sqrt(d), rng.normal(size=d)

    def sublayer(z):
        z = np.asarray(z)
        return np.tanh(z @ W + c).astype(z.dtype)

    return rng.normal(size=(*leading, d)) * 3 + 1, sublayer, rng.normal(size=d), rng.normal(size=d)


def all_sizes(rng, order):
    for leading, d in [((), 6), ((5,), 4), ((2, 5), 6), ((3, 2, 5), 4), ((6,), 6), ((5,), 1), ((1,), 2)]:
        agrees(residual_block, *inputs(rng, *leading, d=d), order)
    x, f, gamma, beta = inputs(rng, 2, 5)
    agrees(
        residual_block, x, lambda z: np.cumsum(np.asarray(z), axis=-2) / 5, gamma, beta, order=order
    )  # mixes the tokens
    agrees(residual_block, 1e-3 * x, lambda z: 1e-3 * f(z), gamma, beta, order)  # eps matters
    agrees(residual_block, x, lambda z: 0 * z, gamma, beta, order)
    x, f, gamma, beta = inputs(rng, 2, 5, d=9)
    agrees(residual_block, x.astype(np.float32), f, gamma.astype(np.float32), beta.astype(np.float32), order)
    agrees(residual_block, np.repeat(x, 2, axis=2)[..., ::2], f, gamma, beta, order)


@check("pre-norm", points=1.5)
def _(rng):
    all_sizes(rng, "pre")


@check("post-norm", points=1.5)
def _(rng):
    all_sizes(rng, "post")


@check("the sublayer is called once", points=1)
def _(rng):
    wrong = []
    for order in ["pre", "post"]:
        x, f, gamma, beta = inputs(rng, 2, 5)
        seen = []

        def sublayer(z, f=f, seen=seen):
            seen.append(np.array(z))
            return f(z)

        found = residual_block(x.copy(), sublayer, gamma, beta, order)
        right = reference.residual_block(x, f, gamma, beta, order)
        try:
            compare(found, right, f'the result with order "{order}"')
        except AssertionError as failure:
            wrong.append(failure)
        observe(f"calls for {order}", len(seen), beside=True)
        if len(seen) != 1:
            fail(f'With order "{order}" the sublayer was called {len(seen)} times; call it once and keep what it says.')
    if len(wrong) == 2:  # the point is for at least one right block that calls once
        raise wrong[0]


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "statistics-task"}
"""
## Exercise 6: which statistics are there? (3 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

A recurrent network reads a batch of five sequences with **8, 6, 6, 3 and 2** tokens, step by step. Sequences that have ended
take no part any more (their padding does not count). Steps are counted from 1. Batch norm would take mean and variance of
each feature over the sequences at the same time step, with statistics (and running values) for every step of its own; layer
norm takes them over the features of each token. To estimate a variance takes at least two values; there are many features.

| entry | question | answer |
|---|---|---|
| `"sequences"` | How many sequences still have a token at steps 1, 2, …, 8? | a list of 8 whole numbers |
| `"batch_until"` | What is the last step at which batch norm can estimate a variance? | a whole number |
| `"layer_until"` | What is the last step at which layer norm has its statistics, for every token that is there? | a whole number |
| `"step_9"` | After training on such batches, one sequence of 9 tokens comes in for evaluation. Whose statistics exist at step 9? | `"batch"`, `"layer"`, `"both"` or `"neither"` |

Collect them in a dict called `statistics_answers`. Each is worth half a point; one point is for the cell below.

<details><summary>Hint 1</summary>

Draw five bars of 8, 6, 6, 3 and 2 squares, one below the other, and count the squares in each column.

</details>

<details><summary>Hint 2</summary>

How many values does a variance take at least? From which numbers does each of the norms take it?

</details>

<details><summary>Hint 3</summary>

For `"step_9"`: who must have seen a step 9 before, and who needs the token alone?

</details>
"""

# %% nbgrader={"grade_id": "statistics", "solution": true}
# Bind statistics_answers: a dict with "sequences", "batch_until", "layer_until" and "step_9".
### BEGIN SOLUTION
statistics_answers = {
    "sequences": [5, 5, 4, 3, 3, 3, 1, 1],
    "batch_until": 6,
    "layer_until": 8,
    "step_9": "layer",
}
### END SOLUTION

# %% nbgrader={"grade_id": "statistics-tests", "points": 3}
# Examples of exercise 6: statistics_answers
assert isinstance(statistics_answers, dict), 'statistics_answers should be a dict such as {"sequences": [...], ...}.'
for entry in ["sequences", "batch_until", "layer_until", "step_9"]:
    assert entry in statistics_answers, f'The entry "{entry}" is missing.'
assert np.shape(statistics_answers["sequences"]) == (8,), '"sequences" should hold 8 numbers, one for each step.'
assert statistics_answers["sequences"][0] == 5, "At step 1 all five sequences have a token."
assert isinstance(statistics_answers["step_9"], str), '"step_9" should be "batch", "layer", "both" or "neither".'
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, reference


def judge_entry(entry, hint):
    found = statistics_answers.get(entry) if isinstance(statistics_answers, dict) else None
    right = reference.statistics_answers[entry]
    if isinstance(right, str):
        if not isinstance(found, str) or found.strip().lower() != right:
            fail(f'"{entry}" is not right. {hint}')
        return
    compare(found, np.array(right), f'"{entry}"')


@check("how many sequences there are at each step", points=0.5)
def _(rng):
    judge_entry("sequences", "")


@check("how far batch norm gets", points=0.5)
def _(rng):
    judge_entry("batch_until", "")


@check("how far layer norm gets", points=0.5)
def _(rng):
    judge_entry("layer_until", "")


@check("a step that no batch in training had", points=0.5)
def _(rng):
    judge_entry(
        "step_9", "Where would the statistics of a ninth step have come from, for the one norm and for the other?"
    )


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "batch-norm-in-rnns-task"}
"""
## Exercise 7: why batch norm suits recurrent networks badly (3 points)

*Difficulty ●●●○○ · importance ●●●○○ · about 25 minutes*

Answer in five to eight sentences. (1) What happens in training to the statistics of the later time steps, when the
sequences of a batch differ in length? (2) What goes wrong in evaluation, where the running values are used? Name one thing. (3) Why does layer norm have
neither of these troubles?

<details><summary>Hint 1</summary>

How many sequences are left at the later steps of exercise 6?

</details>

<details><summary>Hint 2</summary>

*Batch norm and unequal lengths* in the chapter. What does evaluation need that only training can have provided, and
for which steps is it there?

</details>

<details><summary>Hint 3</summary>

Three parts: the estimates in training; what is missing or poor in evaluation; over which numbers layer norm takes its
statistics, and what follows for lengths, batches and modes.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "batch-norm-in-rnns", "solution": true, "points": 3}
"""
**Model answer.** The activations at different time steps are distributed differently, so each step needs a mean and a variance
of its own. The more steps have passed, the fewer sequences of a batch are still there: the estimates of the later steps
rest on a handful of tokens and are noisy, and with one sequence left there is no variance at all. In evaluation the running values of
every step are needed. A sequence that is longer than all in training comes to steps for which no values were ever
collected, and the values of rare steps are poor. Layer norm takes mean and variance over the features of a single token. So
it needs no other sequence and no running values: it works alike for every length, every step and every size of
batch, and does the same in training and in evaluation.

**Rubric** (3 points, each given or not)

- **1 point**: at later steps fewer sequences are left, **and** what follows: noisy or undefined statistics. (Also accepted:
  if padding is counted, it distorts the statistics.) "The lengths differ" alone does not earn it.
- **1 point**: one trouble in evaluation. Accepted among others: no running values for steps beyond the longest sequence of
  training; poor ones for rare steps; training (batch) and evaluation (running values) compute different things; running values
  shared by all steps fit none, because the steps are distributed differently. "With a single sequence there are no
  statistics of the batch" does not earn it: evaluation uses the running values.
- **1 point**: layer norm uses the features of one token only ("over the features, not over the batch" will do), **and** one consequence: independent of the other
  sequences (batch size, lengths) or of the step, or the same in training and evaluation.
"""

# %% [markdown] nbgrader={"grade_id": "ps5-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps5-summary"}
where_you_stand()
