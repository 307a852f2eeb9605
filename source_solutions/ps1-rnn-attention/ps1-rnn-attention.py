# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps1-introduction"}
"""
# Problem set 1: attention between recurrent networks

You write the attention that Bahdanau and others put between two recurrent networks: additive scores, weights, contexts,
and the alignment of a whole sentence. You read an alignment, measure how alike two texts are in three ways, and build a
decoder in PyTorch that takes one step. It goes with the chapter *Attention between recurrent networks* of the book. 40
points: 33 are graded automatically, and 7, for the written answers, by a person. Plan three to four hours.

**How to work, in two minutes**

1. Type your id into the next cell. Your alignment in exercise 4 is drawn from it.
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

- Annotations and states stand in rows. Exercises 1 to 3 have exactly the shapes of their docstrings, without batch axes.
  All sizes are at least 1.
- In an alignment a **row belongs to the query**: what is being written. Softmax runs over the annotations (the last
  axis) and subtracts the largest score first, so that scores up to ±10,000 do no harm.
- Exercises 1 to 3 take float32 or float64 NumPy arrays, exercise 8 takes float32 tensors. Inputs are never changed. The
  type of what you return is free. It is compared with the right result to within 1e-6 (1e-4 where float32 comes in).
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps1-progress"}
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

# %% nbgrader={"grade_id": "ps1-helpers"}
import io
import zlib
from collections import Counter

import numpy as np
import torch
from torch import nn

READ = ["mirol", "tal", "esu", "kandre", "obi", "vretto"]  # words of one invented language ...
WRITTEN = ["la", "punt", "osk", "emi", "dru", "nayo", "tof"]  # ... and of another


def planted_alignment(student_id):
    """The weights of exercise 4 for this id, (7, 6): a row for each word of WRITTEN, a column for each of READ."""
    rng = np.random.default_rng(zlib.crc32(str(student_id).strip().encode()))
    while True:
        columns = np.delete(np.arange(6), rng.integers(6))  # the word left out
        columns = np.sort(np.append(columns, [rng.choice(columns)] * 2))  # the word written three times
        place = rng.integers(6)  # two neighbours change places
        columns[[place, place + 1]] = columns[[place + 1, place]]
        spread = rng.integers(7)  # one word looks at much
        highest = rng.uniform(0.58, 0.85, size=7)
        highest[spread] = rng.uniform(0.36, 0.42)
        weights = rng.dirichlet([1.2] * 6, size=7)
        weights[np.arange(7), columns] = 0
        weights *= ((1 - highest) / weights.sum(axis=1))[:, None]
        weights[np.arange(7), columns] = highest
        ordered, sums, times = np.sort(weights, axis=1), weights.sum(axis=0), np.bincount(columns, minlength=6)
        clear = (ordered[:, -1] - ordered[:, -2]).min() > 0.12 and np.sort(sums)[1] - sums[times == 0] > 0.15
        planted = (weights.argmax(axis=1) == columns).all() and (np.diff(columns) < 0).sum() == 1
        own = columns[place + 1] != place and columns[spread] != spread
        rows_tell = own and highest.argmax() != times.argmax()  # columns have other numbers
        crosses_late = (np.diff(columns) <= 0).argmax() != place  # a word is read again before
        if clear and planted and rows_tell and crosses_late and times[columns[spread]] == 1:
            return weights


class Picture:
    """A matplotlib figure that a notebook shows when it ends a cell."""

    def __init__(self, figure):
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", dpi=100, bbox_inches="tight", facecolor="white")
        self.png = buffer.getvalue()

    def _repr_png_(self):
        return self.png


def heatmap(weights):
    """An alignment (7, 6) as a picture with its numbers: rows are written words, columns are read words."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 4.8))
    axes = figure.subplots()
    image = axes.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    for (i, j), weight in np.ndenumerate(weights):
        axes.text(j, i, f"{weight:.2f}", ha="center", va="center", color="white" if weight > 0.5 else "black")
    axes.set_xticks(range(6), [f"{j}\n{word}" for j, word in enumerate(READ, 1)])
    axes.set_yticks(range(7), [f"{i}  {word}" for i, word in enumerate(WRITTEN, 1)])
    axes.set(xlabel="read (key)", ylabel="written (query)")
    figure.colorbar(image, ax=axes, label="weight")
    return Picture(figure)


class StepModule(nn.Module):
    """A decoder's `step` as the `forward` of a module. The grader looks at gradients with it."""

    def __init__(self, decoder):
        super().__init__()
        self.decoder = decoder

    def forward(self, y_prev, state, H, mask):
        return self.decoder.step(y_prev, state, H, mask)


# %% [markdown] nbgrader={"grade_id": "additive-scores-task"}
r"""
## Exercise 1: additive scores (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

A decoder in the state $s$ asks each annotation $h_1, \dots, h_{T_x}$ of the encoder how well it fits:

$$e_j = v \cdot \tanh(W_s s + W_h h_j).$$

Both are first brought to the width $a$; $\tanh$ acts on each entry of the sum; the dot product with $v$ makes one number
of it. The scores are asked for as they are, without a softmax and without any scale.

<details><summary>Hint 1</summary>

Which shape has `W_s @ s`? And which shape should hold the changed annotations, if all of them are made in one
product?

</details>

<details><summary>Hint 2</summary>

In the formula $h_j$ is a column, in `H` the annotations are rows: what becomes of the product with `W_h`? *Bahdanau's
attention, by hand* in the chapter goes through it with numbers.

</details>

<details><summary>Hint 3</summary>

Three steps: an array `(T_x, a)` to which the state's part is added in each row; the function that acts on each entry;
a product that leaves `(T_x,)`.

</details>
"""


# %% nbgrader={"grade_id": "additive-scores", "solution": true}
def additive_scores(s, H, W_s, W_h, v):
    """The score of each annotation for a decoder in state s: v . tanh(W_s s + W_h h_j).

    s: state (n,). H: annotations (T_x, m), one in each row. W_s: (a, n). W_h: (a, m). v: (a,).
    Returns an array (T_x,). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    hidden = np.tanh(W_s @ s + H @ W_h.T)  # (T_x, a)
    return hidden @ v
    ### END SOLUTION


# %% nbgrader={"grade_id": "additive-scores-tests", "points": 4}
# Examples of exercise 1: additive_scores
# The example of the book: a state of width 2, four annotations of width 3, and a = 2.
annotations = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0.0]])
state = np.array([1.0, -1])
from_state = np.array([[1.0, 0], [0, 1]])
from_annotation = np.array([[0.0, 1, -1], [1, 0, 1]])
direction = np.array([2.0, 1])
scores = additive_scores(state, annotations, from_state, from_annotation, direction)
assert scores is not None, "additive_scores returned None. Is there a return?"
assert np.shape(scores) == (4,), f"Four annotations, four scores: shape (4,), not {np.shape(scores)}."
assert abs(scores[0] - 1.5232) < 1e-4, (
    "The first annotation brings (0, 1), the state (1, -1). tanh of the sum is (.7616, 0); 2 * .7616 + 0 = 1.5232."
)
assert np.allclose(scores, [1.5232, 1.1665, 0, 1.9281], atol=1e-4), (
    "The first score is right, the others are not: each has an annotation, a row of H, of its own."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare


def inputs(rng, T_x=5, n=3, m=6, a=4):
    return (
        rng.normal(size=n),
        rng.normal(size=(T_x, m)),
        rng.normal(size=(a, n)) / np.sqrt(n),
        rng.normal(size=(a, m)) / np.sqrt(m),
        rng.normal(size=a),
    )


@check("random inputs with all sizes different; annotations in another order", points=2)
def _(rng):
    for sizes in [dict(), dict(T_x=3, n=7, m=2, a=5), dict(T_x=8, n=2, m=3, a=6), dict(T_x=4, n=6, m=5, a=2)]:
        agrees(additive_scores, *inputs(rng, **sizes))
    s, H, *matrices = inputs(rng)
    scores = agrees(additive_scores, s, H, *matrices)
    order = rng.permutation(len(H))
    compare(
        agrees(additive_scores, s, H[order], *matrices),
        np.asarray(scores)[order],
        "the scores of annotations in another order",
    )


@check("equal sizes (where mistakes hide), one annotation, widths of one, large states, float32, views", points=1)
def _(rng):
    agrees(additive_scores, *inputs(rng, T_x=4, n=4, m=4, a=4))
    for sizes in [dict(T_x=4, a=4), dict(n=4, m=4), dict(T_x=6, m=6), dict(T_x=1), dict(n=1), dict(m=1), dict(a=1)]:
        agrees(additive_scores, *inputs(rng, **sizes))
    agrees(additive_scores, *inputs(rng, T_x=1, n=1, m=1, a=1))
    s, H, W_s, W_h, v = inputs(rng)
    agrees(additive_scores, 4 * s, 4 * H, W_s, W_h, v)
    agrees(additive_scores, *[array.astype(np.float32) for array in (s, H, W_s, W_h, v)])
    view = np.repeat(H, 2, axis=0)[::2]
    agrees(additive_scores, np.repeat(s, 2)[::2], view, np.asfortranarray(W_s), np.asfortranarray(W_h), v)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "attend-task"}
r"""
## Exercise 2: weights and context (3 points)

*Difficulty ●●○○○ · importance ●●●●● · about 15 minutes*

A softmax turns the scores into weights, and the context is the average of the annotations with these weights:

$$\alpha_j = \frac{e^{\,e_j}}{\sum_k e^{\,e_k}}, \qquad c = \sum_j \alpha_j h_j.$$

Return both. You may call `additive_scores`.

<details><summary>Hint 1</summary>

How many weights are there, and what do they sum to? Which shape has the context?

</details>

<details><summary>Hint 2</summary>

The scores are exercise 1. Which number does the convention at the top of the notebook subtract before `exp`, and why?

</details>

<details><summary>Hint 3</summary>

Scores as a NumPy array, weights `(T_x,)`, and a product in which T_x disappears. Two things are returned, the weights
first.

</details>
"""


# %% nbgrader={"grade_id": "attend", "solution": true}
def attend(s, H, W_s, W_h, v):
    """The weights of the annotations for a decoder in state s, by additive scores, and the context.

    s: state (n,). H: annotations (T_x, m). W_s: (a, n). W_h: (a, m). v: (a,).
    Returns (alpha, context): alpha (T_x,), which sums to 1, and context (m,). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    powers = np.exp(scores - scores.max())
    alpha = powers / powers.sum()
    return alpha, alpha @ H
    ### END SOLUTION


# %% nbgrader={"grade_id": "attend-tests", "points": 3}
# Examples of exercise 2: attend
annotations = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0.0]])
state = np.array([1.0, -1])
from_state = np.array([[1.0, 0], [0, 1]])
from_annotation = np.array([[0.0, 1, -1], [1, 0, 1]])
direction = np.array([2.0, 1])
result = attend(state, annotations, from_state, from_annotation, direction)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: alpha, context."
alpha, context = result
assert np.shape(alpha) == (4,), f"Four annotations, four weights: alpha has shape (4,), not {np.shape(alpha)}."
assert np.shape(context) == (3,), (
    f"The context is an average of annotations of width 3: its shape is (3,), not {np.shape(context)}."
)
assert np.isclose(np.sum(np.asarray(alpha)), 1), "The weights should sum to 1."
assert np.allclose(alpha, [0.2926, 0.2048, 0.0638, 0.4387], atol=1e-3), (
    "The scores are 1.5232, 1.1665, 0 and 1.9281; their exponentials, divided by the sum of these, are the weights."
)
assert np.allclose(context, [0.7314, 0.6436, 0.0638], atol=1e-3), (
    "The weights are right, the context is not: weigh the annotations themselves, and add up."
)
with np.errstate(over="ignore", invalid="ignore"):
    alpha, context = attend(state, annotations, from_state, from_annotation, 1000 * direction)
assert np.allclose(alpha, [0, 0, 0, 1]), (
    "With scores near 2000, exp overflows. Subtract the largest score first: the weights stay the same."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, reference, uses

uses("additive_scores")
NAMES = ("alpha", "context")


def inputs(rng, T_x=5, n=3, m=6, a=4):
    return (
        rng.normal(size=n),
        rng.normal(size=(T_x, m)),
        rng.normal(size=(a, n)) / np.sqrt(n),
        rng.normal(size=(a, m)) / np.sqrt(m),
        2 * rng.normal(size=a),
    )


@check("random inputs with all sizes different; annotations in another order", points=1)
def _(rng):
    for sizes in [dict(), dict(T_x=3, n=7, m=2, a=5), dict(T_x=8, n=2, m=3, a=6), dict(T_x=4, n=6, m=5, a=2)]:
        agrees(attend, *inputs(rng, **sizes), names=NAMES)
    s, H, *matrices = inputs(rng)
    alpha, context = agrees(attend, s, H, *matrices, names=NAMES)
    order = rng.permutation(len(H))
    again = agrees(attend, s, H[order], *matrices, names=NAMES)
    compare(again[0], np.asarray(alpha)[order], "alpha for annotations in another order")
    compare(again[1], context, "the context for annotations in another order")


@check("equal sizes (where mistakes hide), one annotation, widths of one, large scores, float32, views", points=1)
def _(rng):
    agrees(attend, *inputs(rng, T_x=4, n=4, m=4, a=4), names=NAMES)
    for sizes in [dict(T_x=4, a=4), dict(n=4, m=4), dict(T_x=6, m=6), dict(T_x=1), dict(n=1), dict(m=1), dict(a=1)]:
        agrees(attend, *inputs(rng, **sizes), names=NAMES)
    agrees(attend, *inputs(rng, T_x=1, n=1, m=1, a=1), names=NAMES)
    s, H, W_s, W_h, v = inputs(rng)
    scores = reference.additive_scores(s, H, W_s, W_h, v)
    apart = 3000 * v / np.ptp(scores)  # from the lowest score to the highest it is 3000
    for order in [np.argsort(scores), np.argsort(-scores)]:
        agrees(attend, s, H[order], W_s, W_h, apart, names=NAMES)
    low = np.array([-9900.0, 1, 2, 3])  # all scores are far below zero and close to each other
    W_low, H_low = W_h.copy(), H.copy()
    W_low[0], H_low[:, 0] = 0, 1
    W_low[0, 0] = 30
    agrees(attend, 0 * s, H_low, W_s, W_low, low, names=NAMES)
    agrees(attend, *[array.astype(np.float32) for array in (s, H, W_s, W_h, v)], names=NAMES)
    view = np.repeat(H, 2, axis=0)[::2]
    agrees(attend, np.repeat(s, 2)[::2], view, np.asfortranarray(W_s), np.asfortranarray(W_h), v, names=NAMES)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "alignment-matrix-task"}
"""
## Exercise 3: the alignment (3 points)

*Difficulty ●○○○○ · importance ●●●●○ · about 10 minutes*

Put the weights of all states of the decoder below one another: row $i$ holds the weights with which the state $s_i$ (row
$i$ of `S`) looks at the annotations. You may call `attend` or `additive_scores`; a loop over the states is welcome.

<details><summary>Hint 1</summary>

How many rows has the result, and what does each of them sum to?

</details>

<details><summary>Hint 2</summary>

One row belongs to one state: which of your functions makes it, and which of the two things that it returns is it?

</details>

<details><summary>Hint 3</summary>

Go through the rows of `S`, collect, and make one array at the end.

</details>
"""


# %% nbgrader={"grade_id": "alignment-matrix", "solution": true}
def alignment_matrix(S, H, W_s, W_h, v):
    """The attention weights of several states, by additive scores.

    S: states (T_y, n), one in each row. H: annotations (T_x, m). W_s: (a, n). W_h: (a, m). v: (a,).
    Returns an array (T_y, T_x) whose rows sum to 1: row = state (query), column = annotation (key).
    The inputs are not changed.
    """
    ### BEGIN SOLUTION
    rows = [attend(s, H, W_s, W_h, v)[0] for s in S]
    return np.array(rows)
    ### END SOLUTION


# %% nbgrader={"grade_id": "alignment-matrix-tests", "points": 3}
# Examples of exercise 3: alignment_matrix
annotations = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0.0]])
states = np.array([[1.0, -1], [-1, 1], [0, 0]])
from_state = np.array([[1.0, 0], [0, 1]])
from_annotation = np.array([[0.0, 1, -1], [1, 0, 1]])
direction = np.array([2.0, 1])
alignment = alignment_matrix(states, annotations, from_state, from_annotation, direction)
assert alignment is not None, "alignment_matrix returned None. Is there a return?"
assert np.shape(alignment) == (3, 4), (
    f"Three states look at four annotations: the alignment has shape (3, 4), not {np.shape(alignment)}."
)
assert np.allclose(np.sum(np.asarray(alignment), axis=1), 1), (
    "Each state has one whole of attention to give away: the rows sum to 1, the columns need not."
)
assert np.allclose(alignment[0], attend(states[0], annotations, from_state, from_annotation, direction)[0]), (
    "The first row should hold the weights that attend gives for the first state."
)
assert np.allclose(alignment[1], attend(states[1], annotations, from_state, from_annotation, direction)[0]), (
    "The first row is right, the second is not: it belongs to the second state."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check, compare, uses

uses("additive_scores", "attend")


def inputs(rng, T_y=7, T_x=5, n=3, m=6, a=4):
    return (
        rng.normal(size=(T_y, n)),
        rng.normal(size=(T_x, m)),
        rng.normal(size=(a, n)) / np.sqrt(n),
        rng.normal(size=(a, m)) / np.sqrt(m),
        2 * rng.normal(size=a),
    )


@check("random inputs with all sizes different; states and annotations in another order", points=1)
def _(rng):
    for sizes in [dict(), dict(T_y=2, T_x=8, n=5), dict(T_y=4, T_x=3, n=7, m=2, a=5)]:
        agrees(alignment_matrix, *inputs(rng, **sizes))
    S, H, *matrices = inputs(rng)
    alignment = agrees(alignment_matrix, S, H, *matrices)
    rows, columns = rng.permutation(len(S)), rng.permutation(len(H))
    again = agrees(alignment_matrix, S[rows], H[columns], *matrices)
    compare(again, np.asarray(alignment)[rows][:, columns], "the alignment after states and annotations changed places")


@check("equal sizes (where mistakes hide), one state, one annotation, large scores, float32, views", points=1)
def _(rng):
    agrees(alignment_matrix, *inputs(rng, T_y=4, T_x=4, n=4, m=4, a=4))
    for sizes in [dict(T_y=4), dict(T_y=5), dict(T_x=4), dict(n=6, m=6), dict(T_y=1), dict(T_x=1), dict(n=1, m=1, a=1)]:
        agrees(alignment_matrix, *inputs(rng, **sizes))
    agrees(alignment_matrix, *inputs(rng, T_y=1, T_x=1, n=1, m=1, a=1))
    S, H, W_s, W_h, v = inputs(rng)
    agrees(alignment_matrix, S, H, W_s, W_h, 2000 * v / np.abs(v).max())
    # the scores of each state are close to each other, but those of one state are far below those of another
    apart = np.zeros((2, 3))
    apart[0] = 30 * np.sign(S[0])
    S_apart, W_apart = np.array([S[0], -S[0]]), W_s.copy()
    W_apart[0], W_h_apart = apart[0], W_h.copy()
    W_h_apart[0] = 0
    agrees(alignment_matrix, S_apart, H, W_apart, W_h_apart, np.array([5000.0, 1, 2, 3]))
    agrees(alignment_matrix, *[array.astype(np.float32) for array in (S, H, W_s, W_h, v)])
    views = [np.repeat(array, 2, axis=0)[::2] for array in (S, H)]
    agrees(alignment_matrix, *views, np.asfortranarray(W_s), np.asfortranarray(W_h), v)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "alignment-reading-task"}
"""
## Exercise 4: read an alignment (4 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 20 minutes*

A translator has read six words of one language and written seven of another. Both languages are invented, so nothing
can be guessed from the meaning; all you have is **your** alignment, which the next cell prints and draws. A row belongs to a
written word, a column to a read word. Answer by numbers, **counted from 1** as in the picture, in a dict called
`alignment_reading`. We say that a written word *reads* the word on which it has its largest weight.

| entry | question | answer |
|---|---|---|
| `"reads"` | which word does each of the seven written words read? | 7 numbers |
| `"three_times"` | which word is read by three written words? | 1 number |
| `"left_out"` | which word is read by no written word? | 1 number |
| `"crossing"` | two neighbouring written words stand in the other order than the words that they read. Which two? | 2 numbers |
| `"undecided"` | for which written word does no word get half of the attention? | 1 number |

```python
alignment_reading = {
    "reads": [1, 1, 1, 1, 1, 1, 1],
    "three_times": 1,
    ...
}
```

You may look or compute. A point each is given for `"reads"`, for `"three_times"` and `"left_out"` together, and for
`"crossing"` and `"undecided"` together; the fourth is for the cell below.

<details><summary>Hint 1</summary>

Write beside each row of the picture the number of the column with the largest weight. Are you counting from 1?

</details>

<details><summary>Hint 2</summary>

All entries but `"undecided"` follow from these seven numbers: count how often each of 1 to 6 occurs, and look for the
place where they go down.

</details>

<details><summary>Hint 3</summary>

With code: NumPy has one function for the *place* of the largest entry along an axis, and one that counts whole
numbers. Both count from 0. `"undecided"` asks for a row whose largest weight is small.

</details>
"""

# %% nbgrader={"grade_id": "alignment-picture"}
alignment = planted_alignment(student_id)
print(np.array2string(alignment, precision=2, floatmode="fixed", suppress_small=True))
heatmap(alignment)

# %% nbgrader={"grade_id": "alignment-reading", "solution": true}
# Bind alignment_reading: a dict with "reads", "three_times", "left_out", "crossing" and "undecided".
### BEGIN SOLUTION
reads = alignment.argmax(axis=1)
times = np.bincount(reads, minlength=6)
first = int(np.flatnonzero(np.diff(reads) < 0)[0])
alignment_reading = {
    "reads": (reads + 1).tolist(),
    "three_times": int(times.argmax()) + 1,
    "left_out": int(times.argmin()) + 1,
    "crossing": [first + 1, first + 2],
    "undecided": int(alignment.max(axis=1).argmin()) + 1,
}
### END SOLUTION

# %% nbgrader={"grade_id": "alignment-reading-tests", "points": 4}
# Examples of exercise 4: alignment_reading
reading = alignment_reading
assert isinstance(reading, dict), 'alignment_reading should be a dict such as {"reads": [1, 2, ...], ...}.'
reading = {entry: list(found) if isinstance(found, set) else found for entry, found in reading.items()}
for entry, count, most in [
    ("reads", 7, 6),
    ("three_times", 1, 6),
    ("left_out", 1, 6),
    ("crossing", 2, 7),
    ("undecided", 1, 7),
]:
    assert entry in reading, f'The entry "{entry}" is missing.'
    assert np.size(reading[entry]) == count, f'"{entry}" should hold {count} number(s), not {np.size(reading[entry])}.'
    assert set(np.ravel(reading[entry])) <= set(range(1, most + 1)), (
        f'"{entry}" counts from 1: whole numbers from 1 to {most} are possible.'
    )
row = planted_alignment(student_id)[0]
assert row[int(np.ravel(reading["reads"])[0]) - 1] == row.max(), (
    "Written word 1 is the first row. Find the largest weight in this row; the number of its column is the answer. "
    "(Is this the alignment of the id you typed?)"
)
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, to_array


def judge_reading(*entries):
    weights = planted_alignment(student_id)
    reads = weights.argmax(axis=1)
    times = np.bincount(reads, minlength=6)
    first = np.flatnonzero(np.diff(reads) < 0)[0]
    right = {
        "reads": reads + 1,
        "three_times": [times.argmax() + 1],
        "left_out": [times.argmin() + 1],
        "crossing": [first + 1, first + 2],
        "undecided": [weights.max(axis=1).argmin() + 1],
    }
    if not isinstance(alignment_reading, dict):
        fail("alignment_reading should be a dict of numbers.")
    for entry in entries:
        if entry not in alignment_reading:
            fail(f'The entry "{entry}" is missing.')
        found = alignment_reading[entry]
        found = to_array(list(found) if isinstance(found, set) else found, f'"{entry}"').ravel()
        if entry == "crossing":
            found = np.sort(found)
        if found.shape != np.shape(right[entry]):
            compare(found, right[entry], f'"{entry}"')
        if (found != right[entry]).any():
            fail(f'Not these numbers for "{entry}". Read it again from the alignment of your id, counted from 1.')


@check("which word each written word reads", points=1)
def _(rng):
    judge_reading("reads")


@check("the word read three times, and the word left out", points=1)
def _(rng):
    judge_reading("three_times", "left_out")


@check("the two that cross, and the undecided one", points=1)
def _(rng):
    judge_reading("crossing", "undecided")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "jaccard-similarity-task"}
"""
## Exercise 5: Jaccard similarity (3 points)

*Difficulty ●○○○○ · importance ●●○○○ · about 10 minutes*

How alike are two texts? In this exercise: how many words they share, divided by how many occur in either. A word
counts once, however often it occurs; its place does not matter.

Here and in exercise 6, **the words of a text are `text.split()`**: what stands between spaces, line breaks or other white
space. `"Dogs"` and `"dogs"` are two words, and so are `"dogs"` and `"dogs."`. A text without words is empty, also one of
spaces only: two empty texts have similarity 1, an empty and another one 0.

<details><summary>Hint 1</summary>

Does it matter how often a word occurs? Which of Python's collections forgets that?

</details>

<details><summary>Hint 2</summary>

*How alike are two texts?* in the chapter. What is the quotient of two texts without words, before you have said
anything about them?

</details>

<details><summary>Hint 3</summary>

Split both, deal with the case that both are empty, then one quotient.

</details>
"""


# %% nbgrader={"grade_id": "jaccard-similarity", "solution": true}
def jaccard_similarity(a, b):
    """Words that both texts share, divided by the words that occur in either; each counts once.

    a, b: texts (str); the words are text.split(). Returns a number from 0 to 1.
    Two texts without words have similarity 1.0, one without and one with words 0.0.
    """
    ### BEGIN SOLUTION
    words_a, words_b = set(a.split()), set(b.split())
    if not words_a and not words_b:
        return 1.0
    return len(words_a & words_b) / len(words_a | words_b)
    ### END SOLUTION


# %% nbgrader={"grade_id": "jaccard-similarity-tests", "points": 3}
# Examples of exercise 5: jaccard_similarity
similarity = jaccard_similarity("three cold dogs", "tree cold dgos")
assert similarity is not None, "jaccard_similarity returned None. Is there a return?"
assert np.ndim(similarity) == 0, "Return one number."
assert np.isclose(similarity, 1 / 5), (
    "One word is shared, cold. Five occur in either: three, tree, cold, dogs, dgos. So 1/5."
)
assert np.isclose(jaccard_similarity("no no yes", "yes no"), 1), "Both texts have the words no and yes: similarity 1."
assert np.isclose(jaccard_similarity("one", "one two three four"), 1 / 4), "One shared word of four: 1/4."
assert np.isclose(jaccard_similarity("", ""), 1), "Two empty texts are equal: similarity 1."
assert np.isclose(jaccard_similarity("dogs", ""), 0), "An empty text shares nothing with another one: similarity 0."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check
from set_checks import some_text


@check("random texts with repeated and shared words", points=1)
def _(rng):
    agrees(jaccard_similarity, "cold old dog", "cold")
    for most in [2, 3, 4, 6, 9, 15] * 3:
        agrees(jaccard_similarity, some_text(rng, most), some_text(rng, most))
    agrees(jaccard_similarity, "dog dog dog cold", "dog cold cold old")
    agrees(jaccard_similarity, "old dog", "tree god a three")


@check("empty texts, all kinds of white space, capitals, full stops, equal texts", points=1)
def _(rng):
    for a, b in [("", ""), ("", "dog"), ("cold dogs", ""), ("  ", ""), ("\n", " \t "), ("dog", "   "), (" ", "a dog")]:
        agrees(jaccard_similarity, a, b)
    for a, b in [
        ("dog", "dog"),
        ("god", "dog"),
        ("dog dog", "dog"),
        ("a", "aa"),
        ("Dog a", "dog A"),
        ("dog. a", "dog a"),
    ]:
        agrees(jaccard_similarity, a, b)
    agrees(jaccard_similarity, "  cold   dogs\n", "\tdogs\tcold old")
    for _ in range(6):
        spaces = [" ", "  ", "\n", "\t", " \n "]
        agrees(jaccard_similarity, " " + some_text(rng, 5, spaces), some_text(rng, 5, spaces) + "  ")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "cosine-similarity-task"}
r"""
## Exercise 6: cosine similarity (3 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

Now repetitions count. Each text becomes a vector with an entry for every word: how often it occurs there. The similarity
is the cosine of the angle between the two vectors,

$$\frac{x \cdot y}{\lVert x \rVert \, \lVert y \rVert}.$$

Words and empty texts as in exercise 5: two empty texts have similarity 1, an empty and another one 0.

<details><summary>Hint 1</summary>

What are the two vectors for `a b b` and `b c`? They need an entry for the same words in the same order.

</details>

<details><summary>Hint 2</summary>

`Counter` is imported: a word that it has not met counts 0. Below the line of the formula stand the lengths of both
vectors.

</details>

<details><summary>Hint 3</summary>

Empty texts first (one of them, or both). Then: all words of either text, two vectors of counts, one quotient.

</details>
"""


# %% nbgrader={"grade_id": "cosine-similarity", "solution": true}
def cosine_similarity(a, b):
    """The cosine of the angle between the word counts of two texts.

    a, b: texts (str); the words are text.split(). Returns a number from 0 to 1.
    Two texts without words have similarity 1.0, one without and one with words 0.0.
    """
    ### BEGIN SOLUTION
    counts_a, counts_b = Counter(a.split()), Counter(b.split())
    if not counts_a or not counts_b:
        return float(counts_a == counts_b)
    words = sorted({*counts_a, *counts_b})
    x = np.array([counts_a[word] for word in words])
    y = np.array([counts_b[word] for word in words])
    return x @ y / np.sqrt((x @ x) * (y @ y))
    ### END SOLUTION


# %% nbgrader={"grade_id": "cosine-similarity-tests", "points": 3}
# Examples of exercise 6: cosine_similarity
similarity = cosine_similarity("three cold dogs", "tree cold dgos")
assert similarity is not None, "cosine_similarity returned None. Is there a return?"
assert np.ndim(similarity) == 0, "Return one number."
assert np.isclose(similarity, 1 / 3), (
    "The counts share one entry, cold, where both are 1: the dot product is 1, each length is the root of 3. So 1/3."
)
assert np.isclose(cosine_similarity("no no yes", "yes no"), 3 / np.sqrt(10)), (
    "The counts of no and yes are (2, 1) and (1, 1): dot product 3, lengths the roots of 5 and of 2."
)
assert np.isclose(cosine_similarity("cold dogs", "dogs cold"), 1), "The same counts: similarity 1."
assert np.isclose(cosine_similarity("", ""), 1), "Two empty texts are equal: similarity 1."
assert np.isclose(cosine_similarity("dogs", ""), 0), "An empty text shares nothing with another one: similarity 0."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check
from set_checks import some_text


@check("random texts with repeated and shared words", points=1)
def _(rng):
    for most in [2, 3, 4, 6, 9, 15] * 3:
        agrees(cosine_similarity, some_text(rng, most), some_text(rng, most))
    agrees(cosine_similarity, "dog dog dog cold", "dog cold cold old")
    agrees(cosine_similarity, "dog dog dog dog", "dog dog a a")
    agrees(cosine_similarity, "old dog", "tree god a three")


@check("empty texts, all kinds of white space, capitals, full stops, proportional counts", points=1)
def _(rng):
    for a, b in [("", ""), ("", "dog"), ("cold dogs", ""), ("  ", ""), ("\n", " \t "), ("dog", "   "), (" ", "a dog")]:
        agrees(cosine_similarity, a, b)
    for a, b in [
        ("dog", "dog"),
        ("god", "dog"),
        ("dog dog", "dog"),
        ("a", "aa"),
        ("Dog a", "dog A"),
        ("dog. a", "dog a"),
    ]:
        agrees(cosine_similarity, a, b)
    agrees(cosine_similarity, "  cold   dogs\n", "\tdogs\tcold old dogs")
    for _ in range(6):
        spaces = [" ", "  ", "\n", "\t", " \n "]
        agrees(cosine_similarity, " " + some_text(rng, 5, spaces), some_text(rng, 5, spaces) + "  ")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "damerau-levenshtein-similarity-task"}
r"""
## Exercise 7: Damerau–Levenshtein similarity (5 points)

*Difficulty ●●●●○ · importance ●●○○○ · about 35 minutes*

The third similarity compares **characters** in their order. The distance of two texts is the smallest number of edits
that turn one into the other. An edit inserts a character, deletes one, replaces one by another, or **exchanges two
neighbouring ones**; each counts 1. The similarity is

$$1 - \frac{\text{distance}}{\text{length of the longer text}}.$$

We use the simple form of this distance, called *optimal string alignment*: what has been exchanged is not edited again.
So `"ca"` and `"abc"` are 3 apart and have similarity 0. (One might exchange, `ca → ac`, and then insert a b between the
two: 2 edits. This form does not allow it.)

With $d_{ij}$ for the distance of the first $i$ characters of `a` and the first $j$ of `b`, a table can be filled row by row:
$d_{i0} = i$, $d_{0j} = j$, and $d_{ij}$ is the smallest of

- $d_{i-1,j} + 1$ and $d_{i,j-1} + 1$,
- $d_{i-1,j-1}$, plus 1 if the last characters $a_i$ and $b_j$ differ,
- $d_{i-2,j-2} + 1$, if $a_{i-1} a_i$ is $b_j b_{j-1}$, that is, the last two characters are exchanged.

Every character counts as it is: spaces, too, and capitals differ from small letters. Only `""` is empty here. Two
empty texts have similarity 1; `""` and `" "` have similarity 0. Texts have up to 100 characters; what tries out all
edits one after another does not come to an end with these.

<details><summary>Hint 1</summary>

Fill the table for `ab` and `ba` by hand: it has 3 × 3 entries. Which of them is the answer?

</details>

<details><summary>Hint 2</summary>

Row 0 and column 0 belong to the empty text, so the table is one larger than the texts in each direction. The letters
of the formula are counted from 1, those of Python from 0.

</details>

<details><summary>Hint 3</summary>

The first row and column; two loops; the smallest of three numbers, and of a fourth where both texts have two letters
to exchange. At the end the similarity, and the case of two empty texts.

</details>
"""


# %% nbgrader={"grade_id": "damerau-levenshtein-similarity", "solution": true}
def damerau_levenshtein_similarity(a, b):
    """1 - distance / length of the longer text, with the distance of optimal string alignment.

    a, b: texts (str). Insertions, deletions, replacements and exchanges of two neighbouring characters count 1 each.
    Returns a number from 0 to 1; two empty texts have similarity 1.0.
    """
    ### BEGIN SOLUTION
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    d[0, :] = range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    longer = max(len(a), len(b))
    return 1 - d[len(a), len(b)] / longer if longer else 1.0
    ### END SOLUTION


# %% nbgrader={"grade_id": "damerau-levenshtein-similarity-tests", "points": 5}
# Examples of exercise 7: damerau_levenshtein_similarity
similarity = damerau_levenshtein_similarity("dogs", "dog")
assert similarity is not None, "damerau_levenshtein_similarity returned None. Is there a return?"
assert np.ndim(similarity) == 0, "Return one number."
assert np.isclose(similarity, 3 / 4), "One deletion, and the longer text has 4 characters: 1 - 1/4."
assert np.isclose(damerau_levenshtein_similarity("old", "cold"), 3 / 4), "One insertion: 1 - 1/4."
assert np.isclose(damerau_levenshtein_similarity("cold", "gold"), 3 / 4), "One replacement: 1 - 1/4."
assert np.isclose(damerau_levenshtein_similarity("dogs", "dgos"), 3 / 4), (
    "The neighbours o and g are exchanged. This counts as one edit: 1 - 1/4."
)
assert np.isclose(damerau_levenshtein_similarity("three cold dogs", "tree cold dgos"), 1 - 2 / 15), (
    "Delete the h, exchange o and g: 2 edits, and the longer text has 15 characters."
)
assert np.isclose(damerau_levenshtein_similarity("ca", "abc"), 0), (
    "ca and abc are 3 apart here: characters that were exchanged are not edited again. 1 - 3/3."
)
assert np.isclose(damerau_levenshtein_similarity("", ""), 1), "Two empty texts are equal: similarity 1."
assert np.isclose(damerau_levenshtein_similarity("", "dog"), 0), "Three insertions, longer length 3: similarity 0."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def some_text(rng, least, most, letters):
    return "".join(rng.choice(list(letters), size=rng.integers(least, most + 1)))


@check("insertions, deletions and replacements in random texts without exchanges", points=1)
def _(rng):
    for _ in range(12):  # no letter of one stands next to letters that an exchange would need
        a = some_text(rng, 3, 9, "abcdef")
        b = "".join(letter for letter in a if rng.random() < 0.7) + some_text(rng, 0, 3, "xyz")
        agrees(damerau_levenshtein_similarity, a, b)
        agrees(damerau_levenshtein_similarity, b, a)
    for a, b in [("kitten", "sitting"), ("sunday", "saturday"), ("abc", "xyz"), ("a", "b"), ("a", "a"), ("a", "xaxx")]:
        agrees(damerau_levenshtein_similarity, a, b)


@check("exchanges: in all places, several, in random texts of few letters", points=2)
def _(rng):
    for a, b in [
        ("ab", "ba"),
        ("abcd", "bacd"),
        ("abcd", "acbd"),
        ("abcd", "abdc"),
        ("abcd", "badc"),
        ("abcde", "baced"),
    ]:
        agrees(damerau_levenshtein_similarity, a, b)
    for a, b in [("ca", "abc"), ("abc", "ca"), ("abcdef", "bcdaef"), ("ab", "bxa"), ("acb", "bca"), ("aabb", "bbaa")]:
        agrees(damerau_levenshtein_similarity, a, b)
    for _ in range(24):
        agrees(damerau_levenshtein_similarity, some_text(rng, 1, 8, "abc"), some_text(rng, 1, 8, "abc"))
    text = some_text(rng, 10, 14, "abcdefgh")
    for place in rng.permutation(8)[:3]:
        changed = text[:place] + text[place + 1] + text[place] + text[place + 2 :]
        agrees(damerau_levenshtein_similarity, text, changed)


@check("empty texts, spaces and capitals, texts of very different length, long texts", points=1)
def _(rng):
    for a, b in [("Dog", "dog"), (" dog ", "dog"), ("a b", "ab"), ("a  b", "a b"), ("dog.", "dog"), ("naïve", "naive")]:
        agrees(damerau_levenshtein_similarity, a, b)
    for a, b in [("", ""), ("", "dog"), ("cold dogs", ""), ("", " "), (" ", ""), (" ", "  "), ("\n", " ")]:
        agrees(damerau_levenshtein_similarity, a, b)
    agrees(damerau_levenshtein_similarity, "dogs cold three", "three cold dogs")
    agrees(damerau_levenshtein_similarity, "d", some_text(rng, 20, 30, "abcd "))
    agrees(damerau_levenshtein_similarity, some_text(rng, 20, 30, "abcd "), "ab")
    agrees(damerau_levenshtein_similarity, some_text(rng, 80, 100, "abcdefg "), some_text(rng, 60, 100, "abcdefg "))


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "attention-decoder-task"}
r"""
## Exercise 8: a decoder with attention (8 points)

*Difficulty ●●●●○ · importance ●●●●● · about 50 minutes*

Now the decoder, as a PyTorch module, in Bahdanau's order. `AttentionDecoder(n_tokens, d_embed, d_hidden, d_annotation,
d_attention)` has exactly these layers, under these names:

| name | layer |
|---|---|
| `embedding` | `nn.Embedding`, `n_tokens` vectors of width `d_embed` |
| `W_s` | `nn.Linear` without bias, `d_hidden` to `d_attention` |
| `W_h` | `nn.Linear` without bias, `d_annotation` to `d_attention` |
| `v` | `nn.Linear` without bias, `d_attention` to 1 |
| `cell` | `nn.GRUCell`, which reads `d_embed + d_annotation` numbers and has a state of `d_hidden` |
| `output` | `nn.Linear` with bias, `d_hidden + d_annotation` to `n_tokens` |

It has no `forward`. Its method `step(y_prev, state, H, mask)` writes one token for each of `B` sequences:

1. The **previous** state asks the annotations: additive scores with `W_s`, `W_h` and `v`, a softmax over the annotations
   which the mask allows, and the context, as in exercises 1 and 2.
2. The cell reads `[embedding of y_prev, context]`, in this order, and makes the new state from the previous one.
3. The output layer reads `[new state, context]`, in this order, and gives the logits.

`step` returns `(logits, state, alpha)` with the new state.

- `y_prev` is `(B,)` (dtype `torch.long`), `state` `(B, d_hidden)`, `H` `(B, T_x, d_annotation)`.
- `mask` is `(B, T_x)` (dtype `torch.bool`), is always given, and `True` means "may be read": the others are padding. A
  row without a `True` gives zero weights and a zero context; the step goes on with it.
- Gradients flow from the logits and the new state to all layers, and they stay finite when a row of the mask is empty.
  (Scores of $-\infty$ in a whole row become NaN in the softmax. `masked_fill` before it keeps this NaN away from the
  gradients of the scores; an added $-\infty$ does not.)
- Scores up to ±10,000 do not overflow.

Any of the sizes may be 1, also `B` and `T_x`: say which axis you squeeze. Work with tensors throughout; what goes through
NumPy has no gradient. `step` keeps nothing for the next call: all it needs is in its arguments.

<details><summary>Hint 1</summary>

Write the shape beside every line. Where does what comes of `state` need an axis of size 1, so that it can be added to
what comes of all annotations?

</details>

<details><summary>Hint 2</summary>

Exercise 1 was the first step for one sequence; `nn.Linear` acts on the last axis, whatever stands before it. The mask
belongs between scores and softmax. What does the softmax leave in a row without a `True`, and what has to be done
with it?

</details>

<details><summary>Hint 3</summary>

`__init__`: six layers with the widths of the table. `step`: scores `(B, T_x)`, masked softmax, context `(B,
d_annotation)`, the cell with the *previous* state, the output layer with the *new* one. Vectors are put side by side
along the last axis.

</details>
"""


# %% nbgrader={"grade_id": "attention-decoder", "solution": true}
class AttentionDecoder(nn.Module):
    """A recurrent decoder with additive attention; layers embedding, cell, W_s, W_h, v and output."""

    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        """Number of tokens; widths of embeddings, states and annotations; width a of the additive score."""
        super().__init__()
        ### BEGIN SOLUTION
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)
        ### END SOLUTION

    def step(self, y_prev, state, H, mask):
        """One step of the decoder for B sequences.

        y_prev: the tokens written last (B,), long. state: (B, d_hidden). H: annotations (B, T_x, d_annotation).
        mask: (B, T_x), bool; True = may be read.
        Returns (logits, state, alpha): logits (B, n_tokens), the new state (B, d_hidden), alpha (B, T_x).
        The inputs are not changed.
        """
        ### BEGIN SOLUTION
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha
        ### END SOLUTION


# %% nbgrader={"grade_id": "attention-decoder-tests", "points": 8}
# Examples of exercise 8: AttentionDecoder
model = AttentionDecoder(5, 2, 3, 4, 6)  # n_tokens, d_embed, d_hidden, d_annotation, d_attention
for name, shape in [("embedding", (5, 2)), ("W_s", (6, 3)), ("W_h", (6, 4)), ("v", (1, 6)), ("output", (5, 7))]:
    found = tuple(getattr(model, name).weight.shape)
    assert found == shape, f"The weight of `{name}` should have shape {shape} here, not {found}."
for name in ["W_s", "W_h", "v"]:
    assert getattr(model, name).bias is None, f"`{name}` should have no bias."
assert tuple(model.cell.weight_ih.shape) == (9, 6), (
    "The cell reads embedding and context, 2 + 4 numbers here: its weight_ih should have shape (9, 6)."
)

# Weights that are no random numbers, so that the results below are always the same.
shapes = {
    "embedding.weight": (5, 2),
    "W_s.weight": (6, 3),
    "W_h.weight": (6, 4),
    "v.weight": (1, 6),
    "cell.weight_ih": (9, 6),
    "cell.weight_hh": (9, 3),
    "cell.bias_ih": (9,),
    "cell.bias_hh": (9,),
    "output.weight": (5, 7),
    "output.bias": (5,),
}
model.load_state_dict(
    {name: torch.cos(torch.arange(1.0, 1 + np.prod(shape))).reshape(shape) for name, shape in shapes.items()},
    strict=False,
)
y_prev = torch.tensor([3, 0])
state = torch.tensor([[1.0, -1, 0.5], [0, 2, -1]])
H = torch.sin(torch.arange(2.0 * 3 * 4)).reshape(2, 3, 4)
mask = torch.tensor([[True, True, True], [True, True, False]])
result = model.step(y_prev, state, H, mask)
assert isinstance(result, (tuple, list)) and len(result) == 3, "Return three things: logits, state, alpha."
logits, new_state, alpha = result
assert tuple(alpha.shape) == (2, 3), f"alpha is (B, T_x) = (2, 3) here, not {tuple(alpha.shape)}."
assert tuple(new_state.shape) == (2, 3), f"The state is (B, d_hidden) = (2, 3) here, not {tuple(new_state.shape)}."
assert tuple(logits.shape) == (2, 5), f"The logits are (B, n_tokens) = (2, 5) here, not {tuple(logits.shape)}."
assert torch.allclose(alpha.sum(dim=1), torch.ones(2)), "The weights of each sequence sum to 1, also with a mask."
assert alpha[1, 2] == 0, "The third annotation of the second sequence is padding: its weight is 0. True = may be read."
assert torch.allclose(alpha[0], torch.tensor([0.1248, 0.6726, 0.2025]), atol=1e-3), (
    "The weights of the first sequence differ: softmax over v . tanh(W_s s + W_h h), with the previous state."
)
assert torch.allclose(new_state[0], torch.tensor([0.9925, -0.9137, 0.4098]), atol=1e-3), (
    "The weights are right, the new state is not: the cell reads [embedding, context], in this order."
)
assert torch.allclose(logits[0, :3], torch.tensor([1.1399, -0.5908, -1.8529]), atol=1e-3), (
    "The state is right, the logits are not: the output layer reads [new state, context], in this order."
)
logits, new_state, alpha = model.step(y_prev, state, H, mask & torch.tensor([[True], [False]]))
assert (alpha[1] == 0).all(), "A sequence without an annotation that may be read gets zero weights, not NaN."
assert torch.isfinite(logits).all() and torch.isfinite(new_state).all(), (
    "A sequence without an annotation that may be read gets a zero context, and the step goes on with it."
)
### BEGIN HIDDEN TESTS
from autograder.checks import (
    agrees,
    check,
    compare,
    fail,
    gradients,
    is_instance,
    observe,
    parameter_gradients,
    reference,
    student_side,
    to_array,
)

NAMES = ("logits", "state", "alpha")


def tensor(array):
    return torch.tensor(array, dtype=torch.float32)


def twins(rng, n_tokens=9, d_embed=4, d_hidden=6, d_annotation=7, d_attention=8, **given):
    """The student's decoder and the reference's, with the same random weights or those given."""
    sizes = n_tokens, d_embed, d_hidden, d_annotation, d_attention
    right = reference.AttentionDecoder(*sizes)
    weights = {}
    for name, value in right.state_dict().items():
        width = value.shape[-1] if value.dim() > 1 else 1
        scale = {"embedding.weight": 1.0, "v.weight": 1.6}.get(name, 1.5) / (
            width**0.5 if name != "embedding.weight" else 1
        )
        weights[name] = tensor(scale * rng.normal(size=tuple(value.shape)))
    weights |= {name.replace("__", "."): value for name, value in given.items()}
    mine = AttentionDecoder(*sizes)
    # a bias that should not be there costs the check on it; buffers of the student's own stay as they are
    no_bias = {f"{name}.bias": torch.zeros(len(weights[f"{name}.weight"])) for name in ("W_s", "W_h", "v")}
    mine.load_state_dict(weights | no_bias, strict=False)
    right.load_state_dict(weights)
    return mine, right


def inputs(rng, B=3, T_x=5, n_tokens=9, d_hidden=6, d_annotation=7, mask=None):
    if mask is None:
        mask = np.ones((B, T_x), dtype=bool)
    return (
        torch.tensor(rng.integers(0, n_tokens, size=B)),
        tensor(rng.normal(size=(B, d_hidden))),
        tensor(rng.normal(size=(B, T_x, d_annotation))),
        torch.tensor(mask),
    )


def some_mask(rng, B=3, T_x=5):
    """A random mask in which every row has a True and a False."""
    mask = rng.random((B, T_x)) < 0.5
    for row in mask:
        first, second = rng.permutation(T_x)[:2]
        row[first], row[second] = True, False
    return mask


def same(pair, *given):
    """Demand equal logits, states and weights of the two decoders, and unchanged inputs; returns the student's."""
    mine, right = pair
    return agrees(mine.step, *given, names=NAMES, like=("step", right.step), atol=1e-4)


def large(rng, B, T_x, offset, apart=False):
    """Two decoders and inputs whose scores are whole numbers: the offset and -2 to 2, the same in float32.

    Where they are `apart`, the first number of an annotation is the sign of its offset.
    """
    v = tensor([[offset, 1.0, 1.0]])
    W_s, W_h = torch.zeros(3, 4), torch.zeros(3, 3)
    if apart:
        W_h[0, 0] = 30
    else:
        W_s[0, 0] = 30
    W_h[1, 1] = W_h[2, 2] = 30
    pair = twins(rng, 9, 5, 4, 3, 3, W_s__weight=W_s, W_h__weight=W_h, v__weight=v)
    y_prev, state, H, _ = inputs(rng, B, T_x, 9, 4, 3)
    state[:, 0] = 1
    return pair, y_prev, state, torch.where(H > 0, 1.0, -1.0)


@check("six layers of the right kind and size, under the names of the task", points=1)
def _(rng):
    for n_tokens, d_embed, d_hidden, d_annotation, d_attention in [(9, 4, 6, 7, 8), (2, 3, 1, 5, 4)]:
        model = AttentionDecoder(n_tokens, d_embed, d_hidden, d_annotation, d_attention)
        observe(
            "layers with a bias",
            [getattr(model, name).bias is not None for name in ("W_s", "W_h", "v", "output")],
            beside=True,
        )
        names = [str(name) for name, _ in model.named_parameters()]
        layers = "embedding", "cell", "W_s", "W_h", "v", "output"
        others = [n for n in names if n.partition(".")[0] not in layers] if len(names) > 10 else []
        observe("parameters beside the layers", bool(others), beside=True)
        for name, kind, places in [
            ("embedding", "torch.nn.modules.sparse.Embedding", {"weight": (n_tokens, d_embed)}),
            ("W_s", "torch.nn.modules.linear.Linear", {"weight": (d_attention, d_hidden)}),
            ("W_h", "torch.nn.modules.linear.Linear", {"weight": (d_attention, d_annotation)}),
            ("v", "torch.nn.modules.linear.Linear", {"weight": (1, d_attention)}),
            (
                "cell",
                "torch.nn.modules.rnn.GRUCell",
                {
                    "weight_ih": (3 * d_hidden, d_embed + d_annotation),
                    "weight_hh": (3 * d_hidden, d_hidden),
                    "bias_ih": (3 * d_hidden,),
                    "bias_hh": (3 * d_hidden,),
                },
            ),
            (
                "output",
                "torch.nn.modules.linear.Linear",
                {"weight": (n_tokens, d_hidden + d_annotation), "bias": (n_tokens,)},
            ),
        ]:
            layer = getattr(model, name)
            if not is_instance(layer, kind):
                fail(f"`{name}` should be an nn.{kind.rpartition('.')[2]}.")
            for place, shape in places.items():
                found = to_array(getattr(layer, place), f"the {place} of `{name}`").shape
                if found != shape:
                    fail(f"The {place} of `{name}` has shape {found}; it should have shape {shape}.")
            if name in ("W_s", "W_h", "v") and layer.bias is not None:
                fail(f"`{name}` should have no bias.")
        if others:
            fail(f"The module has parameters beside those of the six layers: {', '.join(others)}.")


@check("one step and several with given weights, in all sizes", points=2)
def _(rng):
    pair = twins(rng)
    pair[0].step(*inputs(rng))  # whatever a decoder keeps from this call must not matter for the next ones
    for sizes in [dict(), dict(T_x=1), dict(B=1), dict(B=1, T_x=1), dict(B=5, T_x=4), dict(B=4, T_x=4)]:
        same(pair, *inputs(rng, **sizes))
    for sizes in [(4, 4, 4, 4, 4), (6, 6, 3, 3, 5), (5, 3, 4, 3, 1), (2, 1, 1, 1, 1), (1, 2, 5, 3, 2)]:
        n_tokens, _, d_hidden, d_annotation, _ = sizes
        same(twins(rng, *sizes), *inputs(rng, 4, 4, n_tokens, d_hidden, d_annotation))
    y_prev, state, H, mask = inputs(rng)
    for _ in range(3):  # each step begins with the state that the one before has made
        state = pair[1].step(y_prev, state, H, mask)[1].detach()
        same(pair, y_prev, state, H, mask)
    same(pair, y_prev, state, H.transpose(0, 1).contiguous().transpose(0, 1), mask)
    for offset in [9998.0, -9998.0]:
        pair, y_prev, state, H = large(rng, 3, 6, offset)
        same(pair, y_prev, state, H, torch.ones(3, 6, dtype=torch.bool))


@check("masks: random ones, padding at the end, a single annotation left", points=2)
def _(rng):
    pair = twins(rng)
    for B, T_x in [(3, 5), (5, 3), (4, 4), (2, 7)]:
        same(pair, *inputs(rng, B, T_x, mask=some_mask(rng, B, T_x)))
    same(pair, *inputs(rng, mask=np.arange(5) < np.array([[2], [5], [1]])))
    same(pair, *inputs(rng, mask=np.arange(5) == rng.integers(5, size=(3, 1))))
    y_prev, state, H, mask = inputs(rng, mask=some_mask(rng))
    before = same(pair, y_prev, state, H, mask)
    padding = torch.where(mask[:, :, None], H, H + 1.0)
    after = same(pair, y_prev, state, padding, mask)
    compare(after[0], before[0], "the logits after the padding changed", atol=1e-4)
    for offset in [9998.0, -9998.0]:
        pair, y_prev, state, H = large(rng, 3, 6, offset)
        same(pair, y_prev, state, H, torch.tensor(some_mask(rng, 3, 6)))
    # what may be read has the lowest scores of all
    pair, y_prev, state, H = large(rng, 3, 6, 9998.0, apart=True)
    H[:, :2, 0] = tensor([-1.0, 1.0])
    same(pair, y_prev, state, H, H[:, :, 0] < 0)


@check("rows without an annotation that may be read: zero weights and context, and finite gradients", points=1)
def _(rng):
    mask = some_mask(rng, 4, 5)
    mask[1] = mask[3] = False
    pair = twins(rng)
    mine = pair[0]
    for given in [
        inputs(rng, 4, 5, mask=mask),
        inputs(rng, mask=np.zeros((3, 5), bool)),
        inputs(rng, 1, 1, mask=[[False]]),
    ]:
        same(pair, *given)
        for name, found in parameter_gradients(student_side("StepModule")(mine), *given, of=0).items():
            if found is not None and not np.isfinite(found).all():
                fail(f"With an empty row in the mask, the gradient of {name.removeprefix('decoder.')} is not finite.")
        for what, found in zip(["state", "H"], gradients(mine.step, *given, wrt=(1, 2), of=0), strict=True):
            if found is not None and not np.isfinite(found).all():
                fail(f"With an empty row in the mask, the gradient of {what} is not finite.")


@check("the gradients that reach all six layers, the previous state and the annotations", points=1)
def _(rng):
    mine, right = pair = twins(rng)
    for mask in [None, some_mask(rng)]:
        given = inputs(rng, mask=mask)
        given[0][0] = 0  # a token like others, where an embedding with padding would learn nothing
        same(pair, *given)
        for of, source in [(0, "the logits"), (1, "the new state")]:
            found = parameter_gradients(student_side("StepModule")(mine), *given, of=of)
            for name, wanted in parameter_gradients(StepModule(right), *given, of=of).items():
                if wanted is not None:
                    layer = name.removeprefix("decoder.")
                    if found.get(name) is None:
                        fail(f"No gradient goes from {source} to {layer}.")
                    compare(found[name], wanted, f"the gradient of {layer} from {source}", atol=1e-3)
            found, wanted = (gradients(decoder.step, *given, wrt=(1, 2), of=of) for decoder in pair)
            for what, one, other in zip(["the previous state", "H"], found, wanted, strict=True):
                if one is None:
                    fail(f"No gradient goes from {source} to {what}.")
                compare(one, other, f"the gradient of {what} from {source}", atol=1e-3)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "bottleneck-task"}
"""
## Exercise 9: the bottleneck (3 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

In the chapter three translators learn to copy words of 2 to 16 letters, each with the same number of training steps. The
table shows the share of letters that they copy right, in words of different lengths.

| | parameters | 2 | 4 | 6 | 8 | 12 | 16 | 20 | 24 letters |
|---|---|---|---|---|---|---|---|---|---|
| attention | 42,217 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | 1.00 | .86 | .74 |
| no attention | 42,441 | 1.00 | .97 | .73 | .50 | .34 | .26 | .21 | .17 |
| no attention, wide | 140,649 | 1.00 | 1.00 | .86 | .59 | .36 | .26 | .20 | .18 |

Answer in four to six sentences. (1) What is the bottleneck of a translator without attention: what has to go through what,
and which of the two grows with the length of the word and which does not? (2) Somebody says: "The model without
attention is just too small." Answer with numbers from the table. (3) Why does attention take the bottleneck away, and
which numbers show that it still does not give "any length" for nothing?

<details><summary>Hint 1</summary>

What does the decoder without attention get of a word of 24 letters, and how many numbers is that? And of a word of 2
letters?

</details>

<details><summary>Hint 2</summary>

For (2) compare two rows of the table at the same length, together with their parameters. For (3) look at the columns
beyond 16.

</details>

<details><summary>Hint 3</summary>

Three parts, each with its evidence: what is fixed and what grows; what more parameters change; what attention reads
from, and where its own row falls.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "bottleneck", "solution": true, "points": 3}
"""
**Model answer.** Without attention all that the decoder learns of the input is the encoder's last state. The information
in the word grows with its length, the vector which has to carry it has the same width for 2 letters as for 16; so the
share copied right falls with the length, from 1.00 to .26. Size is not what is missing: with more than three times the
parameters (140,649 for 42,441) it is still .26 at 16 letters, and the model with attention copies everything with
fewer, 42,217. Attention keeps all states of the encoder, one for each letter, and at every step the decoder looks up
those it needs: what it can read from grows with the word. But where to look was learned on words of up to 16 letters
only. Beyond, the share falls to .86 at 20 letters and .74 at 24.

**Rubric** (3 points, each given or not)

- **1 point**: the whole input has to go through one vector (the last state, the summary), **and** this vector has a fixed
  width while the input gets longer. Both parts are needed. "RNNs forget" alone does not earn it.
- **1 point**: the wide model is named with a number of its own: about three times the parameters and still .26 (or "no
  better") at 16 letters; **or** the attentive model with a number of its own: no more parameters and 1.00 at 16. One of
  the two is enough. An answer without a number from the table does not earn it.
- **1 point**: attention lets the decoder read all states of the encoder (one for each letter, so that the memory grows
  with the input), **and** .86 at 20 or .74 at 24 letters (or "it falls beyond the 16 letters of the training") is named
  as the limit. Both parts are needed.
"""

# %% [markdown] nbgrader={"grade_id": "speech-curves-introduction"}
"""
## Exercise 10: two models that write down speech (4 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 25 minutes*

The chapter trains two recognisers on 4,000 spoken phrases, one with attention and one without. The next cell draws their
loss per letter after each of the 8 epochs of the training (with teacher forcing, that is, with the right letters as
inputs).
"""

# %% nbgrader={"grade_id": "speech-curves"}
speech_losses = {  # of the chapter's run, one number for each epoch
    "attention, training": [2.184, 0.368, 0.137, 0.070, 0.039, 0.025, 0.019, 0.018],
    "attention, validation": [0.598, 0.153, 0.058, 0.028, 0.013, 0.008, 0.007, 0.007],
    "no attention, training": [2.129, 0.474, 0.395, 0.369, 0.347, 0.328, 0.309, 0.301],
    "no attention, validation": [0.577, 0.390, 0.377, 0.350, 0.328, 0.311, 0.301, 0.298],
}


def speech_curves():
    """A picture of the losses above, on a logarithmic axis."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.5, 3.8))
    axes = figure.subplots()
    for (name, losses), style in zip(speech_losses.items(), ["o-", "o--", "s-", "s--"], strict=True):
        colour = "#d55e00" if name.startswith("no") else "#0072b2"
        axes.plot(range(1, 9), losses, style, color=colour, label=name, markersize=4)
    axes.set(yscale="log", xlabel="epoch", ylabel="loss per letter")
    axes.legend(frameon=False)
    return Picture(figure)


for name, losses in speech_losses.items():
    print(f"{name:25}", "  ".join(f"{loss:.3f}" for loss in losses))
speech_curves()

# %% [markdown] nbgrader={"grade_id": "speech-models-task"}
"""
Afterwards each model writes down phrases without help, reading its own letters. The phrases are new; in the lower half of
the table, so is the voice. The similarities are those of exercises 5 to 7, means over all phrases.

| | | with attention | without |
|---|---|---|---|
| | parameters | 182,844 | 183,224 |
| known voices (400 phrases) | Jaccard | .991 | .269 |
| | cosine | .994 | .403 |
| | Damerau–Levenshtein | .995 | .501 |
| | exactly right | 96.75% | 1.25% |
| new voice (200 phrases) | Jaccard | .722 | .184 |
| | cosine | .806 | .293 |
| | Damerau–Levenshtein | .848 | .424 |
| | exactly right | 43.0% | 0.0% |

| said | with attention | without |
|---|---|---|
| five heavy dogs jump at home | five heavy dogs jump at home | five broken boats sleep |
| three cold happy spiders sing under water | three cold happy spiders sing under water | three cold happy trains sleep in winter |
| eight cold red birds dance by the river | eight cold birds dance by the river | eight old broken teapots sleep in winter |
| nine horses | nine horses | nine spiders sing |

Compare the two models in five to eight sentences. (1) Is the comparison fair, and which of the two is better? Name what
was kept equal, and two of the measures. (2) Somebody says: "The model without attention overfits." What do its curves
say? (3) Without attention, why is the Damerau–Levenshtein similarity so much higher than the Jaccard similarity? Use one
of the outputs. (4) What happens to the model with attention when the voice is new, and what does this say about what
attention does and does not repair?

<details><summary>Hint 1</summary>

For (2): how would the two curves of a model that overfits look towards the end? Compare them with those above.

</details>

<details><summary>Hint 2</summary>

For (3): take one wrong output. Count the words that it shares with what was said, then look for letters that stand in
the same order.

</details>

<details><summary>Hint 3</summary>

For (1) and (4) numbers of both models are asked for, side by side. In (4) follow a new sound through the model: which
part meets it first?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "speech-models", "solution": true, "points": 4}
"""
**Model answer.** Both models have about 183,000 parameters, the same data and the same number of epochs, so the comparison is
fair; with attention all measures are better, for example Jaccard .991 against .269 and 96.75% against 1.25% exactly right.
The model without attention does not overfit: its training and validation losses end at the same height (.301 and .298) and
are both still falling. It has not learned enough, it underfits. It writes proper words of the language which are often the
wrong ones: "nine spiders sing" for "nine horses" shares one word of four, but many letters stand in order, such as all of
"nine " and the s. Jaccard gives nothing for a wrong word, Damerau–Levenshtein something for each letter that fits. With a
new voice the attentive model falls from 96.75% to 43.0% exactly right. It is still ahead, but attention only removes the
bottleneck between encoder and decoder; it does not teach the encoder sounds it has never heard.

**Rubric** (4 points, each given or not)

- **1 point**: something that was kept equal (parameters, data, or epochs/steps) **and** attention better by two measures
  with their numbers for both models. Both parts are needed. Losses count as measures.
- **1 point**: no overfitting, **because** training and validation loss are about equal (or: both still fall together).
  "It has a high loss" without the comparison of the two curves does not earn it.
- **1 point**: whole words count for Jaccard and single letters for Damerau–Levenshtein, so that wrong words still get
  something, **and** one output of the table is used as an example (which letters or words fit). Both parts are needed.
- **1 point**: the drop with the new voice is stated with a number (such as 96.75% to 43.0%) **and** it is put down to
  the encoder or to sounds/voices missing in the training, and not to the bottleneck that attention removes. Both
  parts are needed. "It does not generalise" without what was missing is not the second part.
"""

# %% [markdown] nbgrader={"grade_id": "ps1-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps1-summary"}
where_you_stand()
