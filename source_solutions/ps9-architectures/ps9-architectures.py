# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps9-introduction"}
"""
# Problem set 9: architectures

You write the formulas behind the chapter *Architectures side by side* of the book as functions (how large a convolution's
output is, how many parameters a network has, how far apart two tokens are, and what a layer costs), you build two
networks for images that differ in nothing but pooling, you compare four architectures by what was measured, and you write
down the tables with which they mix. 40 points: 30 are graded automatically, and 10, for the written answers, by a person.
Plan four hours.

**How to work, in two minutes**

1. Type your id into the next cell. (No numbers are drawn from it in this set; it goes with your work.)
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

- Images stand in `(B, channels, height, width)`. Here they are square, and so are all kernels: a kernel of size `k` covers
  `k × k` pixels. A sequence has `n` tokens of width `d`.
- Exercises 1, 2, 5 and 6 return one whole number. Its type is free: `5`, `5.0` and a NumPy number are all right; `4.9` is
  not. All sizes that come in are whole numbers, lists that come in stay as they are, and no kernel is larger than
  what it runs over.
- Exercises 3 and 4 return a PyTorch module, which takes float32 tensors, and exercise 9 a table of numbers, compared to
  within 1e-6.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps9-progress"}
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

# %% nbgrader={"grade_id": "ps9-helpers"}
import math

import numpy as np
import torch
from torch import nn

F = nn.functional  # for F.relu and the like, if you prefer functions to modules

# %% [markdown] nbgrader={"grade_id": "conv-output-size-task"}
"""
## Exercise 1: how large is the output? (4 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

A kernel of size `kernel` runs over `n` pixels in a row. Before, `padding` zeros are put **on each side**. The kernel
starts at the left end and moves `stride` pixels at a time, as long as it lies wholly inside. How many places does it
visit? That is the size of the output. Pixels that are left over at the right end are not used.

`n`, `kernel` and `stride` are at least 1, `padding` is at least 0, `kernel` is at most `n`; the stride may be larger
than the kernel. (The same count holds for a pooling layer, whose kernel usually moves by its own size.)

<details><summary>Hint 1</summary>

Draw n = 7, kernel 3, stride 2 on paper and mark where the kernel begins.

</details>

<details><summary>Hint 2</summary>

How long is the line with its zeros? Which is the last pixel at which the kernel may begin?

</details>

<details><summary>Hint 3</summary>

The places are one more than the moves. How many moves of `stride` pixels fit?

</details>
"""


# %% nbgrader={"grade_id": "conv-output-size", "solution": true}
def conv_output_size(n, kernel, stride=1, padding=0):
    """How many places a kernel visits on a line of pixels.

    n: number of pixels. kernel: its size, at most n. stride: pixels per move. padding: zeros added on each side.
    Returns a whole number.
    """
    ### BEGIN SOLUTION
    return (n + 2 * padding - kernel) // stride + 1
    ### END SOLUTION


# %% nbgrader={"grade_id": "conv-output-size-tests", "points": 4}
# Examples of exercise 1: conv_output_size
size = conv_output_size(5, 3)
assert size is not None, "conv_output_size returned None. Is there a return?"
assert np.shape(size) == (), f"Return one number, not something of shape {np.shape(size)}."
assert size != 2, "A kernel of 3 on 5 pixels can start at pixel 0, 1 and 2: that makes 3 places, not 2."
assert size == 3, f"A kernel of 3 on 5 pixels can start at pixel 0, 1 and 2: that makes 3 places, not {size}."
size = conv_output_size(28, 3, padding=1)
assert size != 27, "Padding 1 puts a zero on each side, two in all."
assert size == 28, f"A kernel of 3 with padding 1 keeps the size: 28, not {size}."
size = conv_output_size(7, 3, stride=2)
assert size == 3, f"With stride 2 a kernel of 3 starts at pixel 0, 2 and 4 of 7: 3 places, not {size}."
size = conv_output_size(8, 3, stride=2)
assert size == 3, f"An eighth pixel changes nothing: a kernel at pixel 6 would need a ninth. 3 places, not {size}."
assert conv_output_size(28, 2, 2) == 14, "Windows of 2 that move by 2 cut the size in half: 14 of 28."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("stride 1, with and without padding", points=1)
def _(rng):
    for _ in range(10):
        kernel = int(rng.integers(2, 8))
        n = kernel + int(rng.integers(0, 30))
        agrees(conv_output_size, n, kernel)
        agrees(conv_output_size, n, kernel, padding=int(rng.integers(1, 4)))


@check("larger strides, whether or not pixels are left over", points=1)
def _(rng):
    for stride in [2, 3, 4, 5]:
        for left_over in range(stride):
            kernel, padding, moves = (int(v) for v in rng.integers([2, 0, 1], [7, 4, 9]))
            n = kernel + stride * moves + left_over
            agrees(conv_output_size, n, kernel, stride)
            agrees(conv_output_size, n, kernel, stride=stride, padding=padding)
            agrees(conv_output_size, n, kernel, stride, padding + 1)


@check("kernels of size 1 or as large as the image, one pixel, strides larger than the kernel or the image", points=1)
def _(rng):
    n = int(rng.integers(6, 40))
    agrees(conv_output_size, n, n)
    agrees(conv_output_size, n, n, padding=2)
    agrees(conv_output_size, n, n, 3, 4)
    agrees(conv_output_size, n, 1)
    agrees(conv_output_size, n, 1, 3)
    agrees(conv_output_size, n, 1, 2, 1)
    agrees(conv_output_size, 1, 1)
    agrees(conv_output_size, 1, 1, 4)
    agrees(conv_output_size, 1, 1, 2, 2)
    agrees(conv_output_size, n, 2, 5)
    agrees(conv_output_size, n, 3, n + 7)
    agrees(conv_output_size, n, 2, n + 1, 1)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "parameter-count-task"}
"""
## Exercise 2: how many parameters? (4 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

A network is given as a list of layers, each a tuple:

| tuple | layer |
|---|---|
| `("conv", c_in, c_out, k)` | a convolution from `c_in` to `c_out` channels with kernels of `k × k` |
| `("linear", n_in, n_out)` | a linear layer from `n_in` to `n_out` numbers |
| `("pool", k)` | max pooling in windows of `k × k` |

How many parameters does it have in all? Each convolution has one bias for each of its output channels, each linear
layer one for each of its outputs; they count. Sizes are at least 1, and an empty list has no parameters.

<details><summary>Hint 1</summary>

How many numbers belong to **one** output channel of a convolution with `c_in` input channels?

</details>

<details><summary>Hint 2</summary>

The kernels reach through all input channels. Biases: one for each output, whatever the size of the kernel.

</details>

<details><summary>Hint 3</summary>

Go through the list; the first entry of a tuple says which rule counts. One of the three kinds adds nothing. The five
layers of exercise 3 have 224,892.

</details>
"""


# %% nbgrader={"grade_id": "parameter-count", "solution": true}
def parameter_count(layers):
    """The number of parameters of a network, biases included.

    layers: a list of tuples ("conv", c_in, c_out, k), ("linear", n_in, n_out) or ("pool", k); it is not changed.
    Returns a whole number.
    """
    ### BEGIN SOLUTION
    total = 0
    for kind, *sizes in layers:
        if kind == "conv":
            c_in, c_out, k = sizes
            total += c_out * (c_in * k * k + 1)  # every output channel: a kernel for each input channel, and a bias
        elif kind == "linear":
            n_in, n_out = sizes
            total += n_out * (n_in + 1)
    return total
    ### END SOLUTION


# %% nbgrader={"grade_id": "parameter-count-tests", "points": 4}
# Examples of exercise 2: parameter_count
count = parameter_count([("linear", 5, 3)])
assert count is not None, "parameter_count returned None. Is there a return?"
assert np.shape(count) == (), f"Return one number for all layers together, not something of shape {np.shape(count)}."
assert count != 15, "5 · 3 = 15 are the weights. The three outputs have a bias each."
assert count == 18, f"A linear layer from 5 to 3 has 5 · 3 weights and 3 biases: 18, not {count}."
count = parameter_count([("conv", 2, 4, 3)])
assert count not in (28, 24), "Kernels are square: 3 × 3 numbers for each pair of channels, not 3."
assert count not in (40, 36), "Each output channel has a kernel of its own for each of the input channels."
assert count == 76, (
    f"A convolution from 2 to 4 channels, kernels of 3 × 3: 2 · 4 · 9 weights and 4 biases, not {count}."
)
assert parameter_count([("linear", 5, 3), ("pool", 2)]) == 18, "Pooling takes the largest; it has nothing to learn."
assert parameter_count([("linear", 5, 3), ("linear", 3, 2)]) == 26, "18 parameters and 8 parameters make 26."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def sizes(rng, many, largest=40):
    """Different sizes, so that none can stand for another."""
    return [int(v) for v in 1 + rng.permutation(largest)[:many]]


@check("convolutions", points=1)
def _(rng):
    for k in [1, 2, 3, 5, 7]:
        c_in, c_out = sizes(rng, 2)
        agrees(parameter_count, [("conv", c_in, c_out, k)])
    for c_in, c_out, k in [(1, 6, 5), (6, 1, 5), (1, 1, 4), (5, 5, 3)]:
        agrees(parameter_count, [("conv", c_in, c_out, k)])
    a, b, c = sizes(rng, 3)
    agrees(parameter_count, [("conv", a, b, 3), ("conv", b, c, 5)])


@check("linear layers, and pooling between them", points=1)
def _(rng):
    for _ in range(4):
        a, b, c, d = sizes(rng, 4, 300)
        agrees(parameter_count, [("linear", a, b)])
        agrees(parameter_count, [("linear", a, b), ("linear", b, c), ("linear", c, d)])
        agrees(parameter_count, [("linear", a, b), ("pool", 3), ("linear", c, d), ("pool", 2)])
    for n_in, n_out in [(1, 7), (7, 1), (1, 1)]:
        agrees(parameter_count, [("linear", n_in, n_out)])


@check("whole networks; one layer, no layer; the list stays as it is", points=1)
def _(rng):
    linear = [("linear", 576, 320), ("linear", 320, 120), ("linear", 120, 4)]
    agrees(parameter_count, [("conv", 1, 8, 3), ("pool", 2), ("conv", 8, 16, 3), ("pool", 2), *linear])
    agrees(parameter_count, [("conv", 1, 8, 3), ("conv", 8, 16, 3), *linear])
    for _ in range(3):
        a, b, c, d = sizes(rng, 4)
        agrees(parameter_count, [("pool", 4), ("conv", a, b, 5), ("conv", b, c, 2), ("pool", 3), ("linear", 9 * c, d)])
    agrees(parameter_count, [("linear", 7, 7), ("linear", 7, 7), ("pool", 2), ("conv", 5, 5, 3), ("conv", 5, 5, 3)])
    agrees(parameter_count, [("pool", 3)])
    agrees(parameter_count, [])


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "pooled-cnn-task"}
"""
## Exercise 3: a network with pooling (5 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 30 minutes*

Write a function `pooled_cnn()` that makes a new PyTorch module for images `(B, 1, 28, 28)` in four classes:

| layer | output for one image |
|---|---|
| convolution 1 → 8 channels, kernel 3, padding 1 | 8 × 28 × 28 |
| ReLU, max pooling in windows of 2 × 2 | 8 × 14 × 14 |
| convolution 8 → 16 channels, kernel 3, no padding | 16 × 12 × 12 |
| ReLU, max pooling in windows of 2 × 2 | 16 × 6 × 6 |
| the numbers in a row | 576 |
| linear 576 → 320, ReLU | 320 |
| linear 320 → 120, ReLU | 120 |
| linear 120 → 4, nothing after it | 4 |

Its result are the logits `(B, 4)`, so there is no ReLU and no softmax at the end. Nothing else happens in between, no
dropout and no normalisation, also while the module is in training mode. Strides are 1, and the padding is zeros.

Each of the five layers has one weight and one bias of its own, and they have **224,892** parameters in all, which are
there as soon as the network is made (no lazy layers). How you write it is up to you: `nn.Sequential` or a class of
your own, modules or functions, any names. The grader finds your weights by their sizes, puts its own numbers there,
and compares the logits with the right ones to within 1e-4, and the gradients to within 2 %.

<details><summary>Hint 1</summary>

The table has the shape after each layer. Which of its lines has no parameters?

</details>

<details><summary>Hint 2</summary>

Each line is one to three modules of PyTorch. What makes (B, 576) of (B, 16, 6, 6)?

</details>

<details><summary>Hint 3</summary>

One module after another, in the order of the table; nothing after the last; all of it made anew at every call.

</details>
"""


# %% nbgrader={"grade_id": "pooled-cnn", "solution": true}
def pooled_cnn():
    """A new network of two convolutions with max pooling and three linear layers.

    Returns an nn.Module with 224,892 parameters that maps images (B, 1, 28, 28) to logits (B, 4).
    """
    ### BEGIN SOLUTION
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),  # (B, 8, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 8, 14, 14)
        nn.Conv2d(8, 16, 3),  # (B, 16, 12, 12)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 6, 6)
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )
    ### END SOLUTION


# %% nbgrader={"grade_id": "pooled-cnn-tests", "points": 5}
# Examples of exercise 3: pooled_cnn
model = pooled_cnn()
assert model is not None, "pooled_cnn returned None. Is there a return?"
parameters = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
total = sum(parameter.numel() for _, parameter in parameters)
assert total == 224_892, (
    f"The network should have 224,892 parameters, not {total:,}. Compare layer by layer with exercise 2."
)

# Weights that only take means: every weight is 1 / (the number of inputs it sums over), every bias is zero.
# The image has the column's number in each pixel. So the logits say from where the network took its values.
mean = {72: 1 / 9, 1152: 1 / 72, 184_320: 1 / 576, 38_400: 1 / 320, 480: 1 / 120}
state = {name: torch.full_like(parameter, mean.get(parameter.numel(), 0)) for name, parameter in parameters}
model.load_state_dict(state, strict=False)
image = torch.arange(28.0).expand(2, 1, 28, 28)
with torch.no_grad():
    logits = model(image.clone())
assert tuple(logits.shape) == (2, 4), f"Two images give logits of shape (2, 4), not {tuple(logits.shape)}."
value = logits.mean().item()
assert abs(value - 0.25) > 0.01, "Each row of your result sums to 1. Leave the softmax out: logits are asked for."
assert abs(value - 13.25) > 0.01, "13.25 comes from average pooling. Here the largest of the four is taken."
assert abs(value - 11.80) > 0.01, (
    "11.80 comes from convolutions of stride 2. Here they have stride 1, and pooling follows."
)
assert abs(value - 14.00) > 0.01, "14.00 comes from the padding in the second convolution. It belongs to the first."
assert abs(value - 14.94) < 0.01, f"These weights should give logits of 14.94, not {value:.2f}. Compare with the table."
### BEGIN HIDDEN TESTS
from autograder.checks import check, reference, uses
from set_checks import Network, fitting_parts

uses("conv_output_size")
network = Network(lambda: pooled_cnn(), reference.pooled_cnn, "pooled_cnn", scales=[2.0, 1.7, 1.7, 1.7, 0.4])


@check("the parameters of the five layers", points=1)
def _(rng):
    fitting_parts(pooled_cnn(), "pooled_cnn")


@check("the logits with given weights, for one image and for several", points=2)
def _(rng):
    network.logits(rng)


@check("the gradients that reach the five layers", points=1)
def _(rng):
    network.gradients(rng)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "strided-cnn-task"}
"""
## Exercise 4: the same without pooling (4 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 15 minutes*

Now `strided_cnn()`. The layers and their parameters are those of exercise 3, but **both convolutions move by 2 pixels
at a time, and there is no pooling of any kind**: 28 → 14 → 6, so that again 576 numbers reach the linear layers. The
paddings stay, 1 in the first convolution and 0 in the second; ReLU follows all layers but the last. The grader puts
its weights in and compares as before.

Write it anew rather than from what `pooled_cnn()` returns: a mistake in there would count in both exercises.

<details><summary>Hint 1</summary>

Which arguments of the convolutions change, and which modules go?

</details>

<details><summary>Hint 2</summary>

Check 28 → 14 → 6 with exercise 1.

</details>

<details><summary>Hint 3</summary>

The text of exercise 3 once more, with two modules fewer and two arguments more.

</details>
"""


# %% nbgrader={"grade_id": "strided-cnn", "solution": true}
def strided_cnn():
    """A new network of two convolutions with stride 2 and three linear layers, without pooling.

    Returns an nn.Module with 224,892 parameters that maps images (B, 1, 28, 28) to logits (B, 4).
    """
    ### BEGIN SOLUTION
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, stride=2),  # (B, 8, 14, 14)
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2),  # (B, 16, 6, 6)
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(576, 320),
        nn.ReLU(),
        nn.Linear(320, 120),
        nn.ReLU(),
        nn.Linear(120, 4),
    )
    ### END SOLUTION


# %% nbgrader={"grade_id": "strided-cnn-tests", "points": 4}
# Examples of exercise 4: strided_cnn
model = strided_cnn()
assert model is not None, "strided_cnn returned None. Is there a return?"
parameters = [(name, parameter.detach()) for name, parameter in model.named_parameters()]
total = sum(parameter.numel() for _, parameter in parameters)
assert total == 224_892, f"The network should have 224,892 parameters, not {total:,}: as many as with pooling."

# The weights and the image of exercise 3: means, and the column's number in each pixel.
mean = {72: 1 / 9, 1152: 1 / 72, 184_320: 1 / 576, 38_400: 1 / 320, 480: 1 / 120}
state = {name: torch.full_like(parameter, mean.get(parameter.numel(), 0)) for name, parameter in parameters}
model.load_state_dict(state, strict=False)
image = torch.arange(28.0).expand(2, 1, 28, 28)
with torch.no_grad():
    logits = model(image.clone())
assert tuple(logits.shape) == (2, 4), f"Two images give logits of shape (2, 4), not {tuple(logits.shape)}."
value = logits.mean().item()
assert abs(value - 0.25) > 0.01, "Each row of your result sums to 1. Leave the softmax out: logits are asked for."
assert abs(value - 14.94) > 0.01, "14.94 comes from max pooling. Here the convolutions move by 2 pixels instead."
assert abs(value - 13.25) > 0.01, "13.25 comes from average pooling. Here is none: the convolutions move by 2 pixels."
assert abs(value - 11.80) < 0.01, f"These weights should give logits of 11.80, not {value:.2f}. Both strides are 2."
### BEGIN HIDDEN TESTS
from autograder.checks import check, reference, uses
from set_checks import Network

uses("conv_output_size")
network = Network(lambda: strided_cnn(), reference.strided_cnn, "strided_cnn", scales=[2.0, 2.0, 2.0, 1.7, 0.4])


@check("the logits with given weights, for one image and for several", points=2)
def _(rng):
    network.logits(rng)


@check("the gradients that reach the five layers", points=1)
def _(rng):
    network.gradients(rng)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "path-length-task"}
"""
## Exercise 5: how far is it from the first token to the last? (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

`n` tokens stand in a row, and something that the **first** token knows is to change the output of the **last** one.
Through how many steps must it go, at least?

| kind | what counts as a step |
|---|---|
| `"attention"` | a layer of self-attention (every token may attend to every other) |
| `"recurrent"` | from one token to the next, inside one recurrent layer |
| `"convolution"` | a layer of convolution: its kernel of `k` tokens is **centred** on the token it computes, so that it looks (k − 1)/2 tokens to each side; stride 1, no dilation, padded so that there are as many outputs as tokens |
| `"mlp"` | a linear layer from all numbers of all tokens to all numbers of all tokens |

`n` is at least 2. `k` is odd and at least 3, at most `n`, and of interest to the convolution only: the other kinds
take it and ignore it. Other kinds do not occur.

<details><summary>Hint 1</summary>

Draw n = 7 tokens. How far does the news get in one convolution with k = 3? With k = 5?

</details>

<details><summary>Hint 2</summary>

*How far apart are first and last?* in the chapter. How many places lie between them?

</details>

<details><summary>Hint 3</summary>

Two kinds do not depend on n at all, and one depends on n alone. For the convolution: a distance, and how far one
layer reaches. To which side do you round?

</details>
"""


# %% nbgrader={"grade_id": "path-length", "solution": true}
def path_length(kind, n, k=3):
    """The smallest number of steps from the first of n tokens to the last.

    kind: "attention", "recurrent", "convolution" or "mlp". n: number of tokens (>= 2).
    k: size of the convolution's kernel, odd and >= 3. Returns a whole number: layers, or for "recurrent" steps.
    """
    ### BEGIN SOLUTION
    return {
        "attention": 1,
        "recurrent": n - 1,
        "convolution": math.ceil((n - 1) / (k // 2)),  # k // 2 tokens further with each layer
        "mlp": 1,
    }[kind]
    ### END SOLUTION


# %% nbgrader={"grade_id": "path-length-tests", "points": 4}
# Examples of exercise 5: path_length
steps = path_length("attention", 9)
assert steps is not None, "path_length returned None. Is there a return?"
assert np.shape(steps) == (), f"Return one number, not something of shape {np.shape(steps)}."
assert steps == 1, f"The last token attends to the first directly, in one layer, not {steps}."
assert path_length("mlp", 9) == 1, "In an MLP every output depends on every input after one layer."
assert path_length("recurrent", 9) == 8, "From token 1 to token 9 the state is handed on 8 times."
steps = path_length("convolution", 9)
assert steps != 4, (
    "With k = 3 a layer looks one token to each side. After 4 layers token 9 knows of tokens 5 to 9; the kernel is "
    "centred, so that only half of it looks towards the first token."
)
assert steps == 8, f"With k = 3 news travels one token per layer: 8 layers for 9 tokens, not {steps}."
steps = path_length("convolution", 10, k=5)
assert steps == 5, f"With k = 5 news travels two tokens per layer; 9 tokens away, that takes 5 layers, not {steps}."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("attention, MLP and recurrence, which do not depend on the kernel", points=1)
def _(rng):
    for n in [2, 3, *(int(v) for v in rng.integers(11, 200, size=4))]:
        for kind in ["attention", "recurrent", "mlp"]:
            agrees(path_length, kind, n)
    for kind in ["attention", "recurrent", "mlp"]:
        agrees(path_length, kind, int(rng.integers(11, 200)), 7)
        agrees(path_length, kind, int(rng.integers(11, 200)), k=5)


@check("convolutions that look one token to each side", points=1)
def _(rng):
    for n in [3, 4, 5, 33, *(int(v) for v in rng.integers(6, 200, size=4))]:
        agrees(path_length, "convolution", n)
        agrees(path_length, "convolution", n, 3)


@check("convolutions with wider kernels, whether or not the layers come out even", points=1)
def _(rng):
    for k in [5, 7, 9, 11]:
        aside = (k - 1) // 2
        for left_over in range(aside):
            n = 1 + aside * int(rng.integers(9, 30)) + left_over
            agrees(path_length, "convolution", n, k)
        agrees(path_length, "convolution", n=k, k=k)
        agrees(path_length, "convolution", k + 1, k)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "layer-cost-task"}
"""
## Exercise 6: what does a layer cost? (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

How many multiplications does it take to **mix** `n` tokens of width `d` in one layer? Count exactly these:

| kind | what is counted |
|---|---|
| `"attention"` | the scores: a dot product of width `d` for each pair of a query and a key (mixing the values costs the same once more and is not counted here; nor are the products with $W_Q$, $W_K$ and $W_V$) |
| `"recurrent"` | the product of the state, of width `d`, with a `d × d` matrix, once for each token (the product with the input is not counted) |
| `"convolution"` | for each token the products of its `k` neighbours (itself included) with a `d × d` matrix each; stride 1, as many outputs as inputs, and places outside count like any other |
| `"mlp"` | **one** linear layer across the tokens with an `n × n` matrix, which is shared by all `d` features, as in the MLP-Mixer (one layer on all $nd$ numbers at once would cost $n^2d^2$) |

`n`, `d` and `k` are at least 1, `k` is at most `n` where it matters and ignored by the other kinds. Additions,
biases, softmax and ReLU cost nothing here.

<details><summary>Hint 1</summary>

For each kind two questions: how many products are there, and how many multiplications has one of them?

</details>

<details><summary>Hint 2</summary>

*What each costs* in the chapter. A vector of width d times a d × d matrix takes d² multiplications.

</details>

<details><summary>Hint 3</summary>

Each of the four is a product of n, d and k to some powers. Check yourself with the table of exercise 7, where n = 8
and d = 16.

</details>
"""


# %% nbgrader={"grade_id": "layer-cost", "solution": true}
def layer_cost(kind, n, d, k=3):
    """The number of multiplications with which one layer mixes n tokens of width d.

    kind: "attention", "recurrent", "convolution" or "mlp". n: number of tokens. d: width of a token.
    k: size of the convolution's kernel. Returns a whole number.
    """
    ### BEGIN SOLUTION
    return {
        "attention": n * n * d,  # queries, keys, their width
        "recurrent": n * (d * d),  # one matrix for each token
        "convolution": n * k * (d * d),  # k of them
        "mlp": (n * n) * d,  # one matrix for each feature
    }[kind]
    ### END SOLUTION


# %% nbgrader={"grade_id": "layer-cost-tests", "points": 4}
# Examples of exercise 6: layer_cost
cost = layer_cost("attention", 8, 16)
assert cost is not None, "layer_cost returned None. Is there a return?"
assert np.shape(cost) == (), f"Return one number, not something of shape {np.shape(cost)}."
assert cost != 2048, (
    "2048 counts the values as well (or goes with the square of the width). Only the scores count here."
)
assert cost == 1024, f"8 queries, 8 keys, a dot product of width 16 for each pair: 1024, not {cost}."
cost = layer_cost("recurrent", 8, 16)
assert cost == 2048, f"The state meets a 16 × 16 matrix 8 times: 2048 multiplications, not {cost}."
cost = layer_cost("convolution", 8, 16)
assert cost == 6144, f"With the default k = 3 each of 8 tokens meets three 16 × 16 matrices: 6144, not {cost}."
cost = layer_cost("mlp", 8, 16)
assert cost != 16384, "16384 is one layer on all 8 · 16 numbers at once. Here one 8 × 8 matrix serves every feature."
assert cost == 1024, f"An 8 × 8 matrix is applied to each of 16 features: 1024, not {cost}."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


def sizes(rng):
    """n, d and k, all different and at least 2."""
    while True:
        n, d, k = (int(v) for v in rng.integers([6, 2, 2], [60, 60, 6]))
        if len({n, d, k, 3}) == 4:
            return n, d, k


@check("attention, and the MLP across tokens", points=1)
def _(rng):
    for _ in range(5):
        n, d, _ = sizes(rng)
        agrees(layer_cost, "attention", n, d)
        agrees(layer_cost, "mlp", n, d)
        agrees(layer_cost, "attention", d + 4, n)
        agrees(layer_cost, "mlp", d + 4, n)


@check("recurrence and convolution", points=1)
def _(rng):
    for _ in range(5):
        n, d, k = sizes(rng)
        agrees(layer_cost, "recurrent", n, d)
        agrees(layer_cost, "convolution", n, d)
        agrees(layer_cost, "convolution", n, d, k)
        agrees(layer_cost, "recurrent", d + 4, n)
        agrees(layer_cost, "convolution", n=d + 4, d=n, k=k)


@check("one token, width 1, kernels of size 1; a kernel is of no interest to the others; long texts", points=1)
def _(rng):
    n, d, k = sizes(rng)
    for kind in ["attention", "recurrent", "mlp", "convolution"]:
        agrees(layer_cost, kind, n, 1)
        agrees(layer_cost, kind, 1, d, 1)
        agrees(layer_cost, kind, 1, 1, k=1)
        agrees(layer_cost, kind, n, d, k=k)
        agrees(layer_cost, kind, n, d, 1)
        agrees(layer_cost, kind, 1000 + n, 500 + d)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "compare-task"}
r"""
## Exercise 7: the transformer and the three others (2 + 2 + 2 points)

*Difficulty ●●●○○ · importance ●●●●● · about 45 minutes*

These are measurements like those of the chapter, made once for this set; you need nothing else. **Table 1** is about one layer of each kind with
random weights: self-attention (the heart of a transformer, without positions), a recurrence (of an RNN), a
convolution of width 3 (of a CNN) and a layer of an MLP on all numbers of all tokens at once.

| | attention | recurrence | convolution | MLP |
|---|---|---|---|---|
| of the 81 pairs (input, output) of 9 tokens, so many are connected | 81 | 45 | 25 | 81 |
| steps from the first of 33 tokens to the last | 1 layer | 32 steps in one layer | 32 layers | 1 layer |
| influence on the last output that is left for each further step back in time | 0.98 | 0.42 | not measured | not measured |
| multiplications that mix 8 tokens of width 16 | 1024 | 2048 | 6144 | 1024 * |
| … twice as many tokens | × 4 | × 2 | × 2 | × 4 * |
| … twice the width | × 2 | × 4 | × 4 | × 2 * |
| input shifted by one place (zeros at the ends): the output differs from the shifted output by | 0 | 0 | 0 | 1.1 |
| tokens permuted: the output differs from the permuted output by | 0 | 1.4 | 1.6 | 1.5 |
| the same layer takes another number of tokens | yes | yes | yes | no |
| a weight between two tokens depends on | what the tokens hold | – (handed on by the state) | their distance | their places |

\* one $n \times n$ matrix shared by all features, as in exercise 6.

**Table 2** is about four small trained models of 2,860 to 3,364 parameters: a transformer layer with learned
positions, an RNN (GRU), a CNN that ends in the maximum over all places, an MLP. Each saw 1024 sequences of 16 symbols
(out of four) in 300 steps; the accuracies are those on 1000 new sequences. *Motif*: do the symbols 0 and 1 stand side
by side anywhere? *Place*: which symbol stands at place 7? *Majority*: which symbol is the most frequent? Guessing
gives about 0.5 for the motif and 0.25 for the other two. As it is one run of each, let accuracies **less than 0.05
apart count as alike**, and others as different.

| | transformer | RNN | CNN | MLP |
|---|---|---|---|---|
| motif, 16 symbols | 0.731 | 1.000 | 1.000 | 0.759 |
| place, 16 symbols | 1.000 | 0.430 | 0.337 | 1.000 |
| majority, 16 symbols | 0.989 | 0.952 | 0.854 | 0.958 |
| motif, 48 symbols | 0.766 | 0.979 | 1.000 | cannot be asked |
| place, 48 symbols | 1.000 | 0.273 | 0.283 | cannot be asked |
| majority, 48 symbols | 0.983 | 0.941 | 0.897 | cannot be asked |

For each of the three pairs below write **two similarities and two differences**, numbered S1, S2, D1, D2, a sentence
or two for each. Each names a property in words and quotes the entries of **both** partners that show it (a figure, or
an entry such as *yes* or *their places*). Four different properties: two rows of a table that show the same one count
as one. (One property each: the three rows of multiplications; a task with 16 and with 48 symbols; and, where they say
the same, that all pairs are connected and that one layer is enough.) What no table shows ("transformers are newer", "MLPs are for structured data") does not count, nor do the
numbers of parameters, which were chosen alike.

<details><summary>Hint 1</summary>

Cover the columns that are not asked for, and go down the lines: where do the two say the same, and where not?

</details>

<details><summary>Hint 2</summary>

Which lines show one and the same property? The text below the tables says which count as one.

</details>

<details><summary>Hint 3</summary>

Each sentence has three parts: the property in words, the entry of one partner, the entry of the other.

</details>

**The transformer and the RNN**
"""

# %% [markdown] nbgrader={"grade_id": "compare-rnn", "solution": true, "points": 2}
"""
**Model answer.** S1: Both take sequences of another length with the same weights (*yes* and *yes*). S2: Both can
count over the whole sequence: on the majority they reach 0.989 and 0.952. D1: In attention the last token sees the
first in 1 layer; in the recurrence the news is handed on in 32 steps, one after the other. D2: The cost grows
differently: twice the tokens make attention cost 4 times and the recurrence 2 times as much, and twice the width 2
and 4 times.

**Rubric** (2 points: half a point for each of S1, S2, D1 and D2, given or not)

An item earns its half point when all four hold: it names a property in words; it quotes an entry for the transformer
**and** one for the RNN; what it says agrees with the entries (a similarity: they are equal, or accuracies less than
0.05 apart; a difference: they are not); and the property has not been counted for this pair before. A reason is
welcome and not required.

- **½ point each for S1 and S2**, for example: other lengths (yes, yes); shifted input (0, 0); majority (0.989 and
  0.952; with 48 symbols 0.983 and 0.941). The accuracies of the majority with 16 and with 48 symbols are one
  property.
- **½ point each for D1 and D2**, for example: connected pairs, the recurrence does not look ahead (81, 45); path (1,
  32); how a token reaches another (by what the tokens hold; handed on by the state); influence over time (0.98,
  0.42); growth or amount of the cost (× 4, × 2 and × 2, × 4; or 1024, 2048); order (0, 1.4); place (1.000, 0.430);
  motif (0.731, 1.000). Pairs and path are two properties; the cost counts once, and so does each of motif and place,
  with 16 and with 48 symbols.
- Not earned by: "RNNs handle any length whereas transformers use positions" (both take any length); "transformers
  need no padding"; an item without entries, or with those of one partner only.
"""

# %% [markdown] nbgrader={"grade_id": "compare-cnn-task"}
"""
**The transformer and the CNN**
"""

# %% [markdown] nbgrader={"grade_id": "compare-cnn", "solution": true, "points": 2}
"""
**Model answer.** S1: Shifting the input shifts the output, in both (off by 0 and 0), for neither has weights that
belong to places. S2: Both take another length with the same weights (*yes*, *yes*). D1: In attention all 81 pairs are
connected in one layer, in the convolution only the 25 of neighbours. D2: What a token gets from another depends on
what the tokens hold in attention, and on their distance in the convolution, which therefore notices a permutation
(off by 1.6; attention 0).

**Rubric** (2 points: half a point for each of S1, S2, D1 and D2, given or not)

An item earns its half point when all four hold: it names a property in words; it quotes an entry for the transformer
**and** one for the CNN; what it says agrees with the entries (a similarity: they are equal, or accuracies less than
0.05 apart; a difference: they are not); and the property has not been counted for this pair before. A reason is
welcome and not required.

- **½ point each for S1 and S2**, for example: shifted input (0, 0); other lengths (yes, yes); the motif is found in
  48 symbols about as well as in 16, by both (0.731 and 0.766; 1.000 and 1.000).
- **½ point each for D1 and D2**, for example: connected pairs (81, 25); path (1, 32 layers); cost (× 4, × 2 and × 2,
  × 4; or 1024, 6144); order (0, 1.6); what the weight depends on (content, distance); motif (0.731, 1.000); place
  (1.000, 0.337); majority (0.989, 0.854). Pairs and path are two properties; an accuracy with 16 and with 48 symbols
  is one.
- Not earned by: "CNNs are for images"; "a CNN cannot take text"; an item without entries, or with those of one
  partner only.
"""

# %% [markdown] nbgrader={"grade_id": "compare-mlp-task"}
"""
**The transformer and the MLP**
"""

# %% [markdown] nbgrader={"grade_id": "compare-mlp", "solution": true, "points": 2}
"""
**Model answer.** S1: Every output depends on every input after a single layer (81 and 81 of 81 pairs). S2: Both know
places: on the task *place* both reach 1.000. D1: Attention takes another number of tokens, the MLP does not (*yes*,
*no*), so with 48 symbols it cannot be asked. D2: Permuted tokens give permuted outputs in attention (0), but not in
the MLP (1.5), since its weights belong to places and those of attention depend on what the tokens hold.

**Rubric** (2 points: half a point for each of S1, S2, D1 and D2, given or not)

An item earns its half point when all four hold: it names a property in words; it quotes an entry for the transformer
**and** one for the MLP; what it says agrees with the entries (a similarity: they are equal, or accuracies less than
0.05 apart; a difference: they are not); and the property has not been counted for this pair before. A reason is
welcome and not required.

- **½ point each for S1 and S2**, for example: connected pairs, or the path of 1 layer (81, 81; 1, 1: these two count
  as one); the cost and its growth (1024, 1024; × 4, × 4; × 2, × 2); place (1.000, 1.000); majority (0.989,
  0.958); the motif, which neither has learned well (0.731, 0.759).
- **½ point each for D1 and D2**, for example: other lengths (yes, no; the missing figures for 48 symbols are the same
  property); order (0, 1.5); shift (0, 1.1); what the weight depends on (content, places). Majority and motif are no
  differences: less than 0.05 apart.
- Not earned by: "MLPs are for structured data"; "MLPs are smaller" (2,860 to 3,364 for all); an item without entries,
  or with those of one partner only.
"""

# %% [markdown] nbgrader={"grade_id": "pooling-task"}
"""
## Exercise 8: what pooling changes when the parameters do not (4 points)

*Difficulty ●●●○○ · importance ●●●○○ · about 30 minutes*

The two networks of exercises 3 and 4 were trained as in the chapter on 400 images of handwritten digits (3, 5, 8 and 9),
three times each with other first weights, and tested on 319 other images, also on these moved by 3 pixels to the
right. In addition there is a coursework that trained each once on medical images, and tested on 1000.

| | max pooling | stride 2 |
|---|---|---|
| parameters of the five layers | 80 + 1,168 + 184,640 + 38,520 + 484 | 80 + 1,168 + 184,640 + 38,520 + 484 |
| sides of the image on the way | 28 → 28 → 14 → 12 → 6 | 28 → 14 → 6 |
| multiplications in the convolutions, for one image | 222,336 | 55,584 |
| test accuracy, three seeds | 0.950, 0.956, 0.956 (mean 0.954) | 0.956, 0.959, 0.966 (mean 0.960) |
| standard error of a difference, had each network 319 test images of its own | 0.017 | |
| the same, counted image by image, as both saw the same images | 0.004 | |
| test accuracy on the moved images, three seeds | 0.649, 0.658, 0.577 (mean 0.63) | 0.636, 0.639, 0.564 (mean 0.61) |
| the coursework: test accuracy, one run | 0.8280 | 0.8147 |
| standard error of that difference, from the choice of 1000 test images | 0.017 | |

Answer in one to three sentences each, with the figures you rely on:

1. Why do both networks have the same number of parameters? (Two reasons are needed: one about the pooling itself, one
   about the linear layers.)
2. The parameters are the same, the networks are not. Name two things that pooling changes in what is **computed**.
3. Which of the two networks is the better one, on the digits and in the coursework?
4. "Pooling makes a network immune to shifts." What do the measurements say?

<details><summary>Hint 1</summary>

(1) What has a pooling layer to learn? How many numbers reach the first linear layer in each of the networks?

</details>

<details><summary>Hint 2</summary>

(2) Take one window of 2 × 2 and ask of both networks what is computed there and what goes on. (3) Put each difference
beside its standard error, and beside the spread of the seeds.

</details>

<details><summary>Hint 3</summary>

(4) Two numbers of each network are needed: before and after the move. Which of them would be equal if the sentence
were true?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "pooling", "solution": true, "points": 4}
"""
**Model answer.** (1) Taking the largest of four numbers has nothing to learn, so pooling adds no parameters; and
either way 16 · 6 · 6 = 576 numbers reach the first linear layer, so the linear layers are equally large. (The kernels
are the same as well: stride and image size do not enter their number.) (2) The work: with pooling each convolution is
computed at all places and three quarters are thrown away, 222,336 multiplications against 55,584, four times as many.
And the rule by which one of four places survives: with pooling the largest response of each 2 × 2 window, with stride
2 always the one at the same place of it. (3) Neither is shown to be better. On the digits the difference of the
means, 0.006, is smaller than the standard error of 0.017, and no two of the errors of 0.004 counted image by image
(and smaller than the 0.010 between seeds of the same network); in the coursework 0.0133 with one run each is smaller than 0.017, too. (4) It does not: moved by 3 pixels, the images are
recognised in 0.63 instead of 0.954 of cases with pooling, hardly otherwise than without (0.61 instead of 0.960). The
linear layers know places.

**Rubric** (4 points, each given or not)

- **1 point** for question 1: pooling has no parameters (nothing to learn) **and** the input of the first linear layer
  is equally large in both (576, or 16 · 6 · 6, or the last side is 6 in both). One of the two alone does not earn it.
- **1 point** for question 2: two different ones out of these: (a) the amount of work, with the figures or "four
  times"; (b) the rule, the largest of a window against the same place of each window (or: every second pixel); (c)
  the sides of what the convolutions give out (28 and 12 against 14 and 6); (d) the gradient, which goes to the
  largest place only. "It makes the image smaller" does not count: both do.
- **1 point** for question 3: neither is shown to be better, **with** a difference compared to its standard error (or
  to the spread of the seeds) for the digits **and** for the coursework. Saying which figure is higher is no
  harm; an answer that still calls one network the better one, in either, does not earn it.
- **1 point** for question 4: the sentence is refuted by the fall of the pooled network (0.954, or one of its seeds,
  to about 0.63). The comparison with strides or a reason is welcome and not required. "Pooling helps a little" (0.63
  against 0.61) without saying that the accuracy falls by a third does not earn it.
"""

# %% nbgrader={"grade_id": "ps9-drawing"}
import matplotlib.pyplot as plt


def draw_tables(**tables):
    """Draw tables (T, T) side by side, each under its name: purple above zero, orange below."""
    figure, axes = plt.subplots(1, len(tables), figsize=(3.2 * len(tables), 3.2), squeeze=False)
    for ax, (name, table) in zip(axes[0], tables.items(), strict=True):
        limit = np.abs(table).max()
        ax.imshow(table, cmap="PuOr", vmin=-limit, vmax=limit)
        ax.set(title=name.replace("_", " "), xlabel="input", ylabel="output")
    figure.tight_layout()
    plt.show()


# %% [markdown] nbgrader={"grade_id": "mixing-matrix-task"}
r"""
## Exercise 9: one table for every way to mix (5 points)

*Difficulty ●●●○○ · importance ●●●●● · about 40 minutes*

Many layers mix tokens by a product with a matrix, $Y = AX$, which has a row for each output and a column for each input. What
differs is where the entries of $A$ come from. `mixing_matrix(kind, numbers)` returns $A$ (T, T) for

| kind | `numbers` | what the layer does |
|---|---|---|
| `"convolution"` | `(w, T)`: a list of k numbers `w`, k odd, and the number of tokens | output i is the sum of `w[0]` times the token (k − 1)/2 places before it, …, `w[-1]` times the token (k − 1)/2 places after it; a token that does not exist counts as zero |
| `"state space"` | `keep` (T,) | before token t is read, the state, zero at first, is multiplied by `keep[t]`; then the token is added, and the state is output t |
| `"attention"` | `scores` (T, T), row = query | the softmax of each row's scores, with a causal mask: a token sees itself and what came before |

So the same question has three answers: a number for each *distance*, a product of what was kept *in between*, and a number for each
pair of *tokens*. Kernels may be longer than the text, `keep` may hold zeros, and scores up to ±1,000 must not overflow. The inputs
stay as they are. Look at your tables, in a cell of your own:

    draw_tables(
        convolution=mixing_matrix("convolution", ([0.5, 1.0, 0.25], 9)),
        state_space=mixing_matrix("state space", np.full(9, 0.7)),
        attention=mixing_matrix("attention", np.random.default_rng(0).normal(size=(9, 9))),
    )

<details><summary>Hint 1</summary>

Write the three tables for T = 4 by hand, with letters for the numbers. The row is the output.

</details>

<details><summary>Hint 2</summary>

*Five ways to mix* in the chapter. Convolution: which diagonal belongs to which number of `w`? State space: by which
numbers has token 0 been multiplied when it arrives in output 3?

</details>

<details><summary>Hint 3</summary>

Three branches: one adds diagonals; one makes each row of the row above it; one is a masked softmax that subtracts
each row's largest. (A quotient of running products breaks down at a zero.)

</details>
"""


# %% nbgrader={"grade_id": "mixing-matrix", "solution": true}
def mixing_matrix(kind, numbers):
    """The matrix A (T, T) with which a layer mixes T tokens: its output is A @ X for every X (T, d).

    kind: "convolution", "state space" or "attention". numbers: (w, T) with w of odd length k, keep (T,), or scores
    (T, T). Row = output (query), column = input (key).
    """
    ### BEGIN SOLUTION
    if kind == "convolution":
        w, T = numbers
        middle = len(w) // 2
        return sum(weight * np.eye(T, k=place - middle) for place, weight in enumerate(w))
    if kind == "state space":
        A = np.eye(len(numbers))
        for t in range(1, len(numbers)):
            A[t, :t] = numbers[t] * A[t - 1, :t]  # all that was there fades
        return A
    scores = np.where(np.tri(len(numbers), dtype=bool), numbers, -np.inf)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
    ### END SOLUTION


# %% nbgrader={"grade_id": "mixing-matrix-tests", "points": 5}
# Examples of exercise 9: mixing_matrix
A = mixing_matrix("convolution", ([1.0, 10.0, 100.0], 4))
assert A is not None, "mixing_matrix returned None. Is there a return?"
assert np.shape(A) == (4, 4), f"Four tokens: A is (4, 4), not {np.shape(A)}."
assert not np.allclose(np.asarray(A)[1], [100, 10, 1, 0]), "w[0] belongs to the token before, w[-1] to the one after."
assert np.allclose(np.asarray(A)[1], [1, 10, 100, 0]), (
    "Output 2 is w[0] times token 1, w[1] times itself, w[2] times token 3."
)
assert np.allclose(np.asarray(A)[0], [10, 100, 0, 0]), "Nothing stands before the first token; it counts as zero."
A = mixing_matrix("state space", np.array([0.5, 0.5, 0.25]))
assert np.allclose(A, [[1, 0, 0], [0.5, 1, 0], [0.125, 0.25, 1]]), (
    "Of token 1 a half is left at token 2, and a quarter of this half at token 3. Each token itself counts in full."
)
A = mixing_matrix("attention", np.log([[1.0, 5.0], [1.0, 3.0]]))
assert np.allclose(A, [[1, 0], [0.25, 0.75]]), (
    "Token 1 sees itself alone; token 2 has the scores ln 1 and ln 3: 1 to 3."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("a convolution: a band with one number for each distance", points=1)
def _(rng):
    for k, T in [(3, 7), (5, 6), (1, 4), (7, 7), (3, 12)]:
        agrees(mixing_matrix, "convolution", (rng.normal(size=k).tolist(), T))


@check("a state space: a triangle of what was kept in between", points=1)
def _(rng):
    agrees(mixing_matrix, cases=[("state space", rng.uniform(0.1, 1, size=T)) for T in (5, 9, 3)])
    agrees(mixing_matrix, "state space", np.full(8, rng.uniform(0.3, 0.9)))


@check("attention: a softmax of each row, up to the token itself", points=1)
def _(rng):
    agrees(mixing_matrix, cases=[("attention", 2 * rng.normal(size=(T, T))) for T in (5, 8, 3)])


@check("one token, kernels longer than the text, nothing kept, large scores", points=1)
def _(rng):
    for k, T in [(3, 1), (9, 3), (5, 2)]:
        agrees(mixing_matrix, "convolution", (rng.normal(size=k).tolist(), T))
    keep = rng.uniform(0.2, 1, size=8)
    keep[[2, 5]] = 0.0
    agrees(mixing_matrix, cases=[("state space", keep), ("state space", np.array([0.3])), ("state space", np.zeros(4))])
    agrees(mixing_matrix, cases=[("attention", scale * rng.normal(size=(6, 6))) for scale in (300.0, 1e-3)])
    agrees(mixing_matrix, "attention", rng.normal(size=(1, 1)))
    levels = np.array([[-900.0], [0.0], [900.0], [-900.0]])  # a row's scores are compared with each other alone
    agrees(mixing_matrix, "attention", levels + rng.normal(size=(4, 4)))


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "ps9-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps9-summary"}
where_you_stand()
