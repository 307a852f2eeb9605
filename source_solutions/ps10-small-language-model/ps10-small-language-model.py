# ---
# jupyter:
#   autograder:
#     call_seconds: 60
#     cell_seconds: 120
#     exercise_seconds: 180
#     notebook_seconds: 600
#     student_side:
#     - SmallModel
#     - set_seed
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "ps10-introduction"}
r"""
# Problem set 10: a small language model

You build what a language model needs besides its layers: tokens made by merging, the loss that it learns by, the draw
of the next token, and an attention that remembers what it has read. Then you put them together, train a small model,
and let it write. It goes with the chapter *A small language model* of the book. 40 points: 36 are graded
automatically, and 4, for the written answers, by a person. Plan four hours.

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
again with a right one in its place, so that one mistake costs only once. (For exercise 9 the notebook itself puts right
parts in the place of wrong ones.)

**Conventions** in this set

- `B` sequences of `T` tokens stand in tensors `(B, T, d_model)`; token *numbers* are a tensor `(B, T)` of dtype
  `torch.long`. `V` is the number of different tokens.
- Everything is causal: a token sees itself and what stands before it.
- Exercises 4, 6 and 7 use NumPy: they take float32 or float64 arrays and never change them; whether you return float32
  or float64 is free. Results are compared to within 1e-6 (1e-4 for float32 inputs). Exercises 3, 8 and 9 use PyTorch: results are
  compared to within 1e-4, gradients to within 1e-3.
- Losses are in nats, that is, made with the natural logarithm.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "ps10-progress"}
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

# %% nbgrader={"grade_id": "ps10-helpers"}
import itertools
import math
import zlib
from collections import Counter

import numpy as np
import torch
from torch import nn

torch.set_num_threads(1)  # for models as small as these one thread is fastest


def set_seed(seed):
    """From here on PyTorch draws the same numbers each time."""
    torch.manual_seed(seed)


def turn(x, places):
    """Rotary positions: each pair of columns (2i, 2i + 1) of x turned by its place. (See problem set 4.)

    x: (..., T, d) with even d. places: T numbers, a tensor (T,). Returns (..., T, d).
    """
    d = x.shape[-1]
    angles = places[:, None] / 10000 ** (torch.arange(0, d, 2) / d)  # (T, d / 2)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()
    return torch.stack(turned, dim=-1).flatten(-2)


def sampling_numbers(student_id):
    """The numbers of exercise 5 for this id: five counts, a threshold, and three chances."""
    rng = np.random.default_rng(zlib.crc32(str(student_id).strip().encode()))
    while True:
        counts = rng.choice(np.arange(1, 10), size=5, replace=False)
        share = np.sort(counts)[::-1].cumsum() / counts.sum()
        top_p = round(float(share[1] + share[2]) / 2, 2)  # between two and three tokens
        if share[2] - share[1] > 0.1 and counts.argmax() != 0:
            break
    n, a, b = int(rng.integers(4, 9)), *rng.permutation([1, int(rng.integers(2, 4))])
    return counts, top_p, [float(chance) for chance in (1 / (n * a), 1 / (n * b), a * b / n)]


# %% [markdown] nbgrader={"grade_id": "apply-merges-task"}
"""
## Exercise 1: cut a text into tokens (3 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 15 minutes*

Byte-pair encoding starts from single characters and glues neighbours together. A *merge* is a pair of tokens,
`("t", "h")`, and says: wherever the token `t` stands directly before the token `h`, make one token `th` of the two.

`apply_merges(text, merges)` cuts a text into characters, applies the merges **one after the other, in the order of the
list**, and returns the list of tokens.

- Each merge goes through the whole text from left to right. A token that has just been made is not used again in the
  same pass: with the merge `("a", "a")` the text `aaaaa` becomes `aa`, `aa`, `a`.
- A pair that does not occur changes nothing. What counts are the tokens as they are by then, not the characters: after
  `("b", "c")`, the merge `("a", "b")` finds nothing in `abc`, since its `b` has become part of `bc`.
- Texts may be empty; any characters may occur.

<details><summary>Hint 1</summary>

After the first merge, what is compared with the second: characters or tokens?

</details>

<details><summary>Hint 2</summary>

*Tokens by merging* in the chapter. Think of one pass as copying the tokens into a new list: what do you do when the
last one there and the one at hand are the pair?

</details>

<details><summary>Hint 3</summary>

A loop over the merges, in it a loop over the tokens with a fresh list. (`replace` on the text does not see where
tokens begin and end.)

</details>
"""


# %% nbgrader={"grade_id": "apply-merges", "solution": true}
def apply_merges(text, merges):
    """Cut a text into tokens.

    text: a string. merges: a list of tuples of two strings, applied in this order. Returns a list of strings, which put
    together give the text.
    """
    ### BEGIN SOLUTION
    tokens = list(text)
    for left, right in merges:
        merged = []
        for token in tokens:
            if merged and merged[-1] == left and token == right:
                merged[-1] = left + right
            else:
                merged.append(token)
        tokens = merged
    return tokens
    ### END SOLUTION


# %% nbgrader={"grade_id": "apply-merges-tests", "points": 3}
# Examples of exercise 1: apply_merges
tokens = apply_merges("the hat", [("t", "h")])
assert tokens is not None, "apply_merges returned None. Is there a return?"
assert not isinstance(tokens, str), "Return a list of tokens, not a text."
assert list(tokens) == ["th", "e", " ", "h", "a", "t"], f"Only t before h is merged, in one place; not {list(tokens)}."
tokens = list(apply_merges("the hat", [("t", "h"), ("th", "e")]))
assert tokens == ["the", " ", "h", "a", "t"], f"The second merge works on what the first one has made; not {tokens}."
tokens = list(apply_merges("aaaaa", [("a", "a")]))
assert tokens == ["aa", "aa", "a"], f"From left to right, a new token is not used again in the same pass: not {tokens}."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check


@check("several merges, one after the other", points=1)
def _(rng):
    words = "".join(rng.choice(list("abc "), size=60))
    agrees(
        apply_merges,
        cases=[
            case("abcabcab", [("a", "b"), ("ab", "c"), ("abc", "abc")]),
            case("abcbc", [("b", "c"), ("a", "bc")]),
            case(words, [("a", "b"), ("c", "a"), ("ab", "c"), (" ", "ab")]),
            case(words, [("b", "a"), (" ", "c"), ("ba", "ba"), ("c", " "), ("ba", "c")]),
            case("abababab", [("b", "a"), ("ba", "ba"), ("a", "baba")]),
        ],
    )


@check("pairs whose parts are gone, equal letters, empty texts, no merges, strange characters", points=1)
def _(rng):
    agrees(
        apply_merges,
        cases=[
            case("abcabd", [("b", "c"), ("a", "b")]),
            case("aaaaaaa", [("a", "a"), ("aa", "aa"), ("aa", "a")]),
            case("aabaaab", [("a", "a"), ("aa", "b")]),
            case("", [("a", "b")]),
            case("abc", []),
            case("x", [("x", "x")]),
            case("a.b*a.b*", [("a", "."), ("b", "*"), ("a.", "b*")]),
            case("ß→ß→", [("ß", "→")]),
            case("abcd", [("ab", "cd"), ("a", "b"), ("c", "d")]),
        ],
    )


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "byte-pair-merges-task"}
"""
## Exercise 2: learn the merges (5 points)

*Difficulty ●●●○○ · importance ●●●●○ · about 20 minutes*

Which merges? Those that a text asks for. `byte_pair_merges(text, n_merges)` starts from the characters of the text and
repeats: **count the pairs of neighbours, take the most frequent one as the next merge, and apply it**, before counting
again. It returns the list of merges, in the order in which they were found.

- Every place is counted: `aaa` holds the pair `("a", "a")` twice, although only one of them can be merged.
- A space is a character like any other: pairs with it count, and a token may reach across it, such as `"e h"` in `the
  hat`. (Many tokenizers cut a text at its spaces first. This one does not.)
- Of several pairs that are equally frequent, the one that **comes first in the text**, as it is cut by then, is taken.
- A pair that occurs only once is not worth a token: as soon as no pair occurs twice, it ends, with fewer merges than
  `n_merges`.

`Counter` and `itertools.pairwise`, which are imported above, may help: a counter remembers in which order it met what
it counts.

<details><summary>Hint 1</summary>

What is counted in the third round: the characters of the text, or the tokens after two merges?

</details>

<details><summary>Hint 2</summary>

Of several largest, `max` takes the one that it meets first. In which order does a counter go through what it has
counted?

</details>

<details><summary>Hint 3</summary>

At most `n_merges` rounds: the tokens by now, the counts, the best pair, stop or append. What if there is no pair at
all?

</details>
"""


# %% nbgrader={"grade_id": "byte-pair-merges", "solution": true}
def byte_pair_merges(text, n_merges):
    """The merges of byte-pair encoding, learned from a text.

    text: a string. n_merges: how many at most, a whole number >= 0. Returns a list of tuples of two strings.
    """
    ### BEGIN SOLUTION
    merges = []
    for _ in range(n_merges):
        tokens = apply_merges(text, merges)
        counts = Counter(itertools.pairwise(tokens))
        pair = max(counts, key=counts.get, default=None)  # of equal ones the first that was met
        if pair is None or counts[pair] == 1:
            break
        merges.append(pair)
    return merges
    ### END SOLUTION


# %% nbgrader={"grade_id": "byte-pair-merges-tests", "points": 5}
# Examples of exercise 2: byte_pair_merges
merges = byte_pair_merges("banana bandana", 1)
assert merges is not None, "byte_pair_merges returned None. Is there a return?"
assert [tuple(pair) for pair in merges] == [("a", "n")], (
    f"a before n stands there four times, every other pair less often; not {merges}."
)
merges = [tuple(pair) for pair in byte_pair_merges("banana bandana", 2)]
assert merges == [("a", "n"), ("an", "a")] or merges[1:] != [("n", "a")], (
    'After the first merge the text is cut anew: there is no token "n" left that could be merged.'
)
assert merges == [("a", "n"), ("b", "an")], (
    '("b", "an") and ("an", "a") both occur twice then; the first in the text is taken. ' + f"Yours are {merges}."
)
assert len(byte_pair_merges("abcab", 9)) == 1, "After one merge no pair of abcab occurs twice, so it ends there."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check, uses

uses("apply_merges")


def letters(rng, alphabet, n):
    return "".join(rng.choice(list(alphabet), size=n))


@check("the most frequent pair first, again and again", points=2)
def _(rng):
    agrees(
        byte_pair_merges,
        cases=[
            case("low lower lowest low slow", 6),
            case(letters(rng, "abcd", 80), 5),
            case(letters(rng, "aabbc ", 120), 8),
            case(" ".join(rng.choice(["the", "then", "other", "hat", "heat"], size=25)), 10),
        ],
    )


@check("pairs that are equally frequent", points=1)
def _(rng):
    agrees(
        byte_pair_merges,
        cases=[
            case("cd ab cd ab", 1),
            case("zyxzyx", 3),
            case("ab ba ab ba", 4),
            case(letters(rng, "xyz", 24), 4),
            case(letters(rng, "vwxyz", 30), 5),
        ],
    )


@check("pairs of equal letters, no merge asked for, an end before n_merges, short and empty texts", points=1)
def _(rng):
    agrees(
        byte_pair_merges,
        cases=[
            case("aaabab", 1),
            case("aaaaaaaa", 5),
            case("bbbaaaabb", 3),
            case("abab", 0),
            case("abcdef", 4),
            case("abababab", 9),
            case("", 3),
            case("a", 3),
            case("ab", 2),
        ],
    )


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "next-token-loss-task"}
r"""
## Exercise 3: the loss (3 points)

*Difficulty ●●○○○ · importance ●●●●● · about 15 minutes*

A language model reads `tokens` (B, T) and gives `logits` (B, T, V): those at place t were made from the tokens up to
and with t, and are its opinion on **the next one**. Write `next_token_loss(logits, tokens)`: the mean of $-\log
p(\text{right next token})$ over all predictions that can be judged, as a tensor with one number. The logits of
the last place have no token to be compared with, and the first token has no logits that predict it: logits 0 … T − 2
stand beside tokens 1 … T − 1, so there are B · (T − 1) predictions.

The logits are not yet probabilities, and they may be large: ±10,000 must not overflow. Gradients have to flow through
your function to the logits.

<details><summary>Hint 1</summary>

Which T − 1 places of the logits can be judged, and by which T − 1 of the tokens?

</details>

<details><summary>Hint 2</summary>

*What is learned: the next token* in the chapter. PyTorch has a function that takes logits, so that nothing overflows:
which shapes does it want?

</details>

<details><summary>Hint 3</summary>

One place is cut off at the end of one, and at the beginning of the other. Then bring both to the shapes of that
function.

</details>
"""


# %% nbgrader={"grade_id": "next-token-loss", "solution": true}
def next_token_loss(logits, tokens):
    """Mean cross-entropy, in nats, of predicting each token from those before it.

    logits: (B, T, V); logits[:, t] was made from tokens[:, : t + 1]. tokens: (B, T), torch.long. T >= 2.
    Returns a tensor with one number, through which gradients flow. Nothing is changed in place.
    """
    ### BEGIN SOLUTION
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
    ### END SOLUTION


# %% nbgrader={"grade_id": "next-token-loss-tests", "points": 3}
# Examples of exercise 3: next_token_loss
tokens = torch.tensor([[0, 2, 1]])
chances = torch.tensor([[[0.2, 0.3, 0.5], [0.1, 0.25, 0.65], [0.7, 0.2, 0.1]]])
loss = next_token_loss(chances.log(), tokens)
assert loss is not None, "next_token_loss returned None. Is there a return?"
assert isinstance(loss, torch.Tensor) and loss.numel() == 1, "Return a tensor with one number."
loss = loss.detach()
assert not torch.isclose(loss, torch.tensor(1.2164), atol=1e-3), (
    "Yours compares each place with the very token that stands there, which the model has read; the next one is asked."
)
assert torch.isclose(loss, torch.tensor(math.log(8) / 2), atol=1e-4), (
    "Place 1 gives token 2 the chance 0.5, and place 2 gives token 1 the chance 0.25; place 3 is not judged. "
    f"The mean of ln 2 and ln 4 is 1.0397, not {loss.item():.4f}."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check, compare, gradients, reference


def some(rng, B, T, V, scale=1.0):
    logits = torch.tensor(scale * rng.normal(size=(B, T, V)), dtype=torch.float32)
    return logits, torch.tensor(rng.integers(0, V, size=(B, T)))


@check("the mean over all predictions, for batches of all sizes", points=1)
def _(rng):
    sizes = [(3, 5, 7), (2, 9, 4), (1, 6, 11), (5, 2, 3), (1, 2, 2), (4, 4, 4)]
    agrees(next_token_loss, cases=[case(*some(rng, *size)) for size in sizes])


@check("large logits, sequences that are views, and the gradient that reaches the logits", points=1)
def _(rng):
    logits, tokens = some(rng, 3, 6, 5, scale=3000.0)
    view = torch.tensor(rng.integers(0, 5, size=(6, 3))).T
    offset = torch.tensor(rng.normal(size=(3, 6, 5)) + 9000.0, dtype=torch.float32)
    agrees(next_token_loss, logits, tokens, atol=1e-2)
    agrees(next_token_loss, offset, view, atol=1e-2)
    agrees(next_token_loss, -offset, view, atol=1e-2)
    logits, tokens = some(rng, 3, 6, 5)
    agrees(next_token_loss, logits.transpose(0, 1).contiguous().transpose(0, 1), view)
    (found,), (wanted,) = (gradients(f, logits, tokens) for f in (next_token_loss, reference.next_token_loss))
    if found is None:
        found = np.zeros(0)
    compare(found, wanted, "the gradient of the logits", atol=1e-3)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "perplexity-task"}
r"""
## Exercise 4: perplexity (2 points)

*Difficulty ●○○○○ · importance ●●●○○ · about 10 minutes*

The perplexity is the exponential of the mean loss per token: a model with perplexity 10 is as unsure as somebody who
draws one of ten tokens. A long text is read in pieces, since a model has a longest length. `losses` holds the
**mean** loss of each piece, and `counts` the number of tokens that were predicted in it. The pieces differ in length.
Write `perplexity(losses, counts)`: the perplexity of the **whole** text, as if all its tokens had been judged in one
go.

<details><summary>Hint 1</summary>

A piece of 10 tokens has the mean loss 2. What is the sum of its losses?

</details>

<details><summary>Hint 2</summary>

Is the exponential taken of each piece, or once at the end?

</details>

<details><summary>Hint 3</summary>

A sum, another sum, a quotient, an exponential. Try the pieces of the example with 10 and 30 tokens, on paper as well: 11.31.

</details>
"""


# %% nbgrader={"grade_id": "perplexity", "solution": true}
def perplexity(losses, counts):
    """The perplexity of a text that was read in pieces.

    losses: mean loss of each piece in nats, an array (n,). counts: tokens predicted in each, an array (n,), all >= 1.
    Returns a number.
    """
    ### BEGIN SOLUTION
    return np.exp(np.sum(losses * counts) / np.sum(counts))
    ### END SOLUTION


# %% nbgrader={"grade_id": "perplexity-tests", "points": 2}
# Examples of exercise 4: perplexity
one = perplexity(np.array([math.log(8)]), np.array([5.0]))
assert one is not None, "perplexity returned None. Is there a return?"
assert abs(one - 8) < 1e-6, f"A mean loss of ln 8 is a perplexity of 8, however long the text is; not {one}."
both = perplexity(np.array([math.log(4), math.log(16)]), np.array([10.0, 10.0]))
assert abs(both - 8) < 1e-6, f"Two pieces of the same length, ln 4 and ln 16: the mean is ln 8, so 8; not {both}."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check


@check("pieces of different lengths", points=1)
def _(rng):
    cases = []
    for n in (2, 3, 6, 1):
        cases.append(case(rng.uniform(0.5, 3.0, size=n), rng.integers(1, 60, size=n).astype(float)))
    cases.append(case(np.array([2.5, 0.1]), np.array([1.0, 99.0])))
    agrees(perplexity, cases=cases)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "sampling-worksheet-task"}
r"""
## Exercise 5: sampling by hand (4 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 20 minutes*

After some text a model has five candidates for the next token, numbered from 0 to 4, with the logits $\ln c_0, …, \ln
c_4$. So at temperature 1 their probabilities are $c_i$ divided by the sum of all c. Your counts c, your threshold
`top_p` and three chances are printed below. Work out, on paper or with code,

| entry | what it is | shape |
|---|---|---|
| `"cold"` | the probabilities of the five tokens at temperature ½ | (5,) |
| `"top_k"` | at temperature 1, with the **two** likeliest tokens kept | (5,) |
| `"top_p"` | at temperature 1, with the fewest of the likeliest tokens kept that together reach `top_p` | (5,) |
| `"perplexity"` | the perplexity of a text of three tokens, to which the model gave the three `chances` | one number |

Tokens that are not kept have probability 0, and the others are divided by their sum. Collect the entries in a dict
called `sampling_answers`, as arrays, lists or numbers. Every number may be off by 0.002.

<details><summary>Hint 1</summary>

At temperature ½ each logit is twice as large. What does this make of $e^{\ln c}$?

</details>

<details><summary>Hint 2</summary>

*From probabilities to text* in the chapter. For `"top_p"`: order the counts, and add from the largest on until the
sum reaches the threshold.

</details>

<details><summary>Hint 3</summary>

What is kept is divided by *its own* sum. `"perplexity"` is exercise 4 with one piece of three tokens: which loss
belongs to a chance?

</details>
"""

# %% nbgrader={"grade_id": "sampling-worksheet", "solution": true}
counts, top_p, chances = sampling_numbers(student_id)
print("counts", counts, "  top_p", top_p, "  chances", np.round(chances, 4))

# Bind sampling_answers: a dict with "cold", "top_k", "top_p" and "perplexity".
### BEGIN SOLUTION
best = np.argsort(-counts)
two, three = (np.where(np.isin(np.arange(5), best[:n]), counts, 0) for n in (2, 3))
sampling_answers = {
    "cold": counts**2 / np.sum(counts**2),
    "top_k": two / two.sum(),
    "top_p": three / three.sum(),
    "perplexity": np.prod(chances) ** (-1 / 3),
}
### END SOLUTION

# %% nbgrader={"grade_id": "sampling-worksheet-tests", "points": 4}
# Examples of exercise 5: sampling_answers
sheet = sampling_answers
assert isinstance(sheet, dict), 'sampling_answers should be a dict such as {"cold": [...], "top_k": ...}.'
for entry, shape in {"cold": (5,), "top_k": (5,), "top_p": (5,), "perplexity": ()}.items():
    assert entry in sheet, f'The entry "{entry}" is missing.'
    found = np.shape(sheet[entry])
    assert found == shape, f'"{entry}" should have the shape {shape}, not {found}.'
for entry in ("cold", "top_k", "top_p"):
    assert abs(np.sum(np.asarray(sheet[entry])) - 1) < 0.01, f'The probabilities of "{entry}" should sum to 1.'
assert np.count_nonzero(np.asarray(sheet["top_k"])) == 2, "With the two likeliest tokens kept, three of five are 0."
### BEGIN HIDDEN TESTS
from autograder.checks import check, compare, fail, to_array


def right_answers():
    counts, _, chances = sampling_numbers(student_id)
    best = np.argsort(-counts)
    answers = {"cold": counts**2 / np.sum(counts**2), "perplexity": np.exp(-np.mean(np.log(chances)))}
    for entry, n in (("top_k", 2), ("top_p", 3)):
        kept = np.where(np.isin(np.arange(5), best[:n]), counts, 0)
        answers[entry] = kept / kept.sum()
    return answers


def judge(*entries):
    answers = right_answers()
    for entry in entries:
        if not isinstance(sampling_answers, dict) or entry not in sampling_answers:
            fail(f'sampling_answers has no entry "{entry}".')
        found = to_array(sampling_answers[entry], f'sampling_answers["{entry}"]')
        compare(found, answers[entry], f'sampling_answers["{entry}"]', atol=2.01e-3)


@check("the probabilities at temperature ½", points=1)
def _():
    judge("cold")


@check("the probabilities after top-k and after top-p", points=1)
def _():
    judge("top_k", "top_p")


@check("the perplexity", points=1)
def _():
    judge("perplexity")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "sampling-distribution-task"}
"""
## Exercise 6: what the next token is drawn from (6 points)

*Difficulty ●●●●○ · importance ●●●●● · about 35 minutes*

`sampling_distribution(logits, temperature, top_k, top_p)` makes probabilities (V,) of logits (V,), in this order:

1. **Temperature.** The logits are divided by it. At temperature 0 the first of the largest logits gets probability 1
   and all others 0; then top-k and top-p change nothing.
2. **Top-k.** The `top_k` tokens with the largest logits stay. If `top_k` is V or more, or `None`, all stay.
3. A softmax over what is left.
4. **Top-p.** Tokens stay from the likeliest on, as many as it takes for the sum of their probabilities (those of step
   3) to reach `top_p`. **The token with which it is reached stays**, so there is always at least one. `None` keeps
   all. What stays is divided by its sum.

- Where tokens are equally likely, those with **smaller numbers** come first, in both steps.
- Logits may be ±10,000, and −∞ for a token that is forbidden (at least one is finite); temperatures may be as small
  as 1e-3. Nothing overflows.
- Rounding matters in one place only: at `top_p=1` all stay, though a sum may come out a little below 1, or reach 1
  before the last token.
  No other case comes so close to `top_p` that the last digits decide.
- Entry i of the result belongs to token i, and a token that does not stay has exactly 0.

(No token is drawn here: that is left to the function `write` below, with `rng.choice`.)

**A picture** (what each setting leaves of the same logits; in a cell of your own, once it works):

```python
import matplotlib.pyplot as plt

logits = np.log([8.0, 5, 3, 2, 1, 0.5])
for i, how in enumerate([dict(), dict(temperature=0.5), dict(temperature=2), dict(top_k=3), dict(top_p=0.6)]):
    plt.bar(np.arange(6) + 0.15 * i, sampling_distribution(logits, **how), width=0.15, label=str(how))
plt.legend()
plt.show()
```

<details><summary>Hint 1</summary>

After each step: which tokens are left, and do you still know which number each of them has?

</details>

<details><summary>Hint 2</summary>

*From probabilities to text* in the chapter. What can be subtracted before a division by a small temperature, so that
nothing overflows? And for top-p: is it the sum *before* a token that decides about it, or the sum *with* it?

</details>

<details><summary>Hint 3</summary>

Order the tokens once, from the likeliest on, in a way that leaves equal ones as they were (`np.argsort` has
`kind="stable"`). Then steps 2 and 4 only cut off ends; at last everything goes back to its number.

</details>
"""


# %% nbgrader={"grade_id": "sampling-distribution", "solution": true}
def sampling_distribution(logits, temperature=1.0, top_k=None, top_p=None):
    """The probabilities with which the next token is drawn.

    logits: (V,), the largest is finite. temperature: >= 0. top_k: None or a whole number >= 1. top_p: None or a number
    in (0, 1]. Returns probabilities (V,), which sum to 1. The input is not changed.
    """
    ### BEGIN SOLUTION
    order = np.argsort(-logits, kind="stable")  # from the likeliest on
    chances = np.zeros(len(logits))
    if temperature == 0:
        chances[order[0]] = 1
        return chances
    scaled = (logits[order[:top_k]] - logits[order[0]]) / temperature
    kept = np.exp(scaled) / np.exp(scaled).sum()
    if top_p is not None:
        reached_before = np.cumsum(kept) - kept >= top_p
        kept = np.where(reached_before, 0, kept) / kept[~reached_before].sum()
    chances[order[: len(kept)]] = kept
    return chances
    ### END SOLUTION


# %% nbgrader={"grade_id": "sampling-distribution-tests", "points": 6}
# Examples of exercise 6: sampling_distribution
logits = np.log([2.0, 8.0, 1.0, 4.0, 1.0])
chances = sampling_distribution(logits)
assert chances is not None, "sampling_distribution returned None. Is there a return?"
assert np.shape(chances) == (5,), f"Five logits give five probabilities, not {np.shape(chances)}."
assert np.allclose(chances, [0.125, 0.5, 0.0625, 0.25, 0.0625]), "At temperature 1 it is the softmax of the logits."
chances = np.round(np.asarray(sampling_distribution(logits, temperature=0.5)), 4).tolist()
assert np.allclose(chances, np.array([4, 64, 1, 16, 1]) / 86, atol=1e-3), (
    f"At temperature ½ the logits are twice as large, so the chances are as 4 : 64 : 1 : 16 : 1, not {chances}."
)
assert np.allclose(sampling_distribution(logits, temperature=0), [0, 1, 0, 0, 0]), "Temperature 0: the largest logit."
chances = np.round(np.asarray(sampling_distribution(logits, top_k=2)), 4).tolist()
assert np.allclose(chances, [0, 2 / 3, 0, 1 / 3, 0], atol=1e-3), (
    f"Top-k 2 keeps 8 : 4, which is 2/3 and 1/3, not {chances}."
)
chances = np.round(np.asarray(sampling_distribution(logits, top_p=0.6)), 4).tolist()
assert np.allclose(chances, [0, 2 / 3, 0, 1 / 3, 0], atol=1e-3), (
    f"0.5 alone does not reach 0.6, 0.5 and 0.25 do, so tokens 1 and 3 stay: 2/3 and 1/3, not {chances}."
)
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check


def drawn(rng, V, scale=1.5):
    return scale * rng.normal(size=V)


@check("temperature", points=1)
def _(rng):
    cases = [case(drawn(rng, V), temperature=t) for V, t in [(6, 0.7), (4, 2.5), (9, 0.25), (1, 0.5), (5, 0)]]
    agrees(sampling_distribution, cases=[*cases, case(drawn(rng, 7), 1.3), case(drawn(rng, 8))])


@check("top-k and top-p, each alone and with a temperature", points=1)
def _(rng):
    cases = [case(drawn(rng, 8), top_k=k) for k in (3, 1, 5, 8, 20)]
    cases += [case(drawn(rng, 9), top_p=p) for p in (0.3, 0.62, 0.8, 0.97, 0.01, 1.0)]
    cases += [case(drawn(rng, 7), 1.7, 3), case(drawn(rng, 7), temperature=0.6, top_p=0.7)]
    cases += [case(drawn(rng, 7), temperature=3.0, top_p=0.7), case(drawn(rng, 7), 2.2, None, 0.55)]
    agrees(sampling_distribution, cases=cases)


@check("all three together, in this order", points=1)
def _(rng):
    cases = []
    for temperature, top_k, top_p in [(0.8, 4, 0.7), (2.0, 6, 0.6), (3.0, 3, 0.75), (1.0, 5, 0.5), (0, 3, 0.9)]:
        cases += [case(drawn(rng, 10), temperature, top_k, top_p) for _ in range(3)]
    # of 12 equal logits 4 stay: their chances are a quarter each, not a twelfth
    cases += [case(np.zeros(12), 1.0, 4, 0.6), case(np.zeros(12), 5.0, 4, 0.3)]
    agrees(sampling_distribution, cases=cases)


@check("tokens that are equally likely: smaller numbers first", points=1)
def _(rng):
    level = np.array([1.0, 2.0, 2.0, 0.0, 2.0, 1.0, 2.0, 1.0, 1.0, 0.0])
    cases = [case(level, 1.0, k) for k in (1, 2, 3, 5, 6, 7, 9)]
    cases += [case(np.zeros(40), top_k=7), case(np.zeros(40), top_p=0.49), case(level, temperature=0)]
    cases += [case(np.full(5, -3.0), 0.0), case(level, 1.5, None, 0.3), case(level, 0.9, 7, 0.85)]
    agrees(sampling_distribution, cases=cases)


@check("large and forbidden logits, small temperatures, float32, views", points=1)
def _(rng):
    large = 1e4 * np.sign(drawn(rng, 6)) + drawn(rng, 6)
    forbidden = drawn(rng, 7)
    forbidden[rng.permutation(7)[:3]] = -np.inf
    cases = [case(large), case(np.full(4, -1e4) + drawn(rng, 4)), case(1e4 + drawn(rng, 5), 0.5, 3)]
    cases += [case(drawn(rng, 5), 1e-3), case(1e4 + drawn(rng, 5), 1e-3), case(forbidden), case(forbidden, 0.7, 6)]
    cases += [case(forbidden, 1.2, None, 0.8), case(forbidden, 0), case(drawn(rng, 6).astype(np.float32), 0.8, 4)]
    cases += [case(np.repeat(drawn(rng, 6), 2)[::2], 1.1, 4, 0.9), case(drawn(rng, 8)[::-1], 1.0, 5)]
    agrees(sampling_distribution, cases=cases)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "grouped-attention-task"}
r"""
## Exercise 7: heads that share keys (3 points)

*Difficulty ●●○○○ · importance ●●●●○ · about 15 minutes*

What a model keeps while it writes are keys and values. With `h` heads of queries but only `g` of keys and values
(grouped-query attention) it keeps h/g times less. Query heads stand in groups of `h / g` **neighbours**: with h = 6
and g = 2, query heads 0, 1 and 2 look into key head 0, and query heads 3, 4 and 5 into key head 1, and they average
the values of the same head.

`grouped_attention(Q, K, V)` returns the output (B, h, T, d) of **causal** attention: token t sees tokens 0 to t.
Scores are divided by $\sqrt d$; they may be as large as ±10,000.

<details><summary>Hint 1</summary>

Which axis of `K` has to become longer, and in which order do its heads come for h = 4 and g = 2?

</details>

<details><summary>Hint 2</summary>

*Heads that share keys* in the chapter on several heads. `np.repeat` and `np.tile` differ in just this order.

</details>

<details><summary>Hint 3</summary>

With h heads of keys and values it is causal attention as you know it, with each row's largest score subtracted.

</details>
"""


# %% nbgrader={"grade_id": "grouped-attention", "solution": true}
def grouped_attention(Q, K, V):
    """Causal attention in which groups of neighbouring query heads share a head of keys and values.

    Q: (B, h, T, d). K, V: (B, g, T, d), where g divides h. Returns the output (B, h, T, d). The inputs are not changed.
    """
    ### BEGIN SOLUTION
    _, h, T, d = Q.shape
    K, V = (np.repeat(array, h // K.shape[1], axis=1) for array in (K, V))  # (B, h, T, d)
    scores = Q @ K.swapaxes(2, 3) / np.sqrt(d)
    scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return powers / powers.sum(axis=3, keepdims=True) @ V
    ### END SOLUTION


# %% nbgrader={"grade_id": "grouped-attention-tests", "points": 3}
# Examples of exercise 7: grouped_attention
# Four heads that ask with zeros look evenly at all they see; the two heads of values hold 1, 3 and 10, 30.
V = np.array([[[[1.0], [3.0]], [[10.0], [30.0]]]])
output = grouped_attention(np.zeros((1, 4, 2, 1)), np.ones((1, 2, 2, 1)), V)
assert output is not None, "grouped_attention returned None. Is there a return?"
assert np.shape(output) == (1, 4, 2, 1), f"Four query heads give four outputs: (1, 4, 2, 1), not {np.shape(output)}."
output = np.asarray(output)[0, :, :, 0]
assert np.allclose(output[:, 0], [1, 1, 10, 10]) or not np.allclose(output[:, 0], [1, 10, 1, 10]), (
    "Neighbours share: query heads 0 and 1 belong to values 0, query heads 2 and 3 to values 1."
)
assert np.allclose(output[:, 0], [1, 1, 10, 10]), (
    f"The first token sees itself alone: 1, 1, 10, 10, not {output[:, 0]}."
)
assert np.allclose(output[:, 1], [2, 2, 20, 20]), f"The second sees both, evenly: 2, 2, 20, 20, not {output[:, 1]}."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, case, check


def heads(rng, B=2, h=6, g=3, T=5, d=4, scale=1.0):
    return scale * rng.normal(size=(B, h, T, d)), rng.normal(size=(B, g, T, d)), rng.normal(size=(B, g, T, d))


@check("outputs for all numbers of heads and groups", points=1)
def _(rng):
    sizes = [dict(), dict(g=2), dict(B=3, h=8, g=2, T=6, d=3), dict(h=4, g=4), dict(h=4, g=1), dict(B=1, h=8, g=4, T=7)]
    agrees(grouped_attention, cases=[case(*heads(rng, **one)) for one in sizes])


@check("large scores, one token, one head, width one, float32, views", points=1)
def _(rng):
    Q, K, V = heads(rng)
    largest = np.abs(Q @ np.repeat(K, 2, axis=1).swapaxes(2, 3) / 2).max()
    aligned = np.ones((2, 6, 5, 4)), np.ones((2, 3, 5, 4)) + 1e-3 * rng.normal(size=(2, 3, 5, 4))
    cases = [
        case(0.9e4 / largest * Q, K, V),
        case(-1e4 * aligned[0], aligned[1], V),
        case(5e3 * aligned[0], aligned[1], V),
    ]
    cases += [case(*heads(rng, **one)) for one in [dict(T=1), dict(h=1, g=1), dict(d=1), dict(B=1, h=1, g=1, T=1, d=1)]]
    cases.append(case(*(array.astype(np.float32) for array in heads(rng))))
    cases.append(case(np.asfortranarray(Q), np.repeat(K, 2, axis=2)[:, :, ::2], np.asfortranarray(V)))
    agrees(grouped_attention, cases=cases)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "cached-attention-task"}
r"""
## Exercise 8: attention that remembers (6 points)

*Difficulty ●●●●○ · importance ●●●●● · about 50 minutes*

A model writes one token at a time. If it read the whole text again for each of them, it would compute the same keys and
values over and over. So it keeps them. Write the module `CachedAttention(d_model, n_heads, n_groups)` with
`d_head = d_model / n_heads` and exactly four layers with parameters, all `nn.Linear` without bias:

| layer | from | to |
|---|---|---|
| `W_Q`, `W_O` | `d_model` | `d_model` |
| `W_K`, `W_V` | `d_model` | `n_groups * d_head` |

`forward(x, cache=None)` reads the **new** tokens `x` (B, T_new, d_model), and what it has kept of the tokens before
them:

- Heads own columns, as always: head i has the columns from `i * d_head` on. Query heads share keys and values in
  groups of neighbours, as in exercise 7.
- Queries and keys are turned by their places, with `turn`, which is given above. Places are counted from 0, **from
  the beginning of the whole text**: the first new token has the place T_before, the number of tokens that have been
  read before.
- Each new token sees all tokens before it, the old and the new ones, and itself. Scores are divided by
  $\sqrt{d_\text{head}}$.
- It returns `(output, cache)`: the output (B, T_new, d_model) of the new tokens after `W_O`, and the cache to be
  handed in next time, **a tuple of two tensors, keys and values, (B, n_groups, T_so_far, d_head) each**. (Turned or
  not turned keys: choose yourself.) With `cache=None` nothing has been read before.

However a text is cut into pieces, the outputs are the same as when it is read in one go. A cache is not changed: two
different continuations can start from the same one. And nothing is kept in the module itself, so that several texts
can be read in turns.

Several new tokens may come at once, with a cache as without one. A text `x` of seven tokens, read in two pieces:

```python
first, cache = attention(x[:, :4])  # places 0 to 3; the cache holds 4 keys and 4 values for each group
rest, cache = attention(x[:, 4:], cache)  # places 4 to 6; the cache holds 7
```

In the second call token 5 is the second of three new ones: it sees tokens 0 to 3 from the cache and the new tokens 4
and 5, but not token 6.

<details><summary>Hint 1</summary>

Where can you read off how many tokens have been read before? Which places have the new tokens, and which the keys of
the cache?

</details>

<details><summary>Hint 2</summary>

*The cache changes nothing* in the chapter. The mask is `(T_new, T_so_far)`: a row has the query's place, a column the
key's. When may it look?

</details>

<details><summary>Hint 3</summary>

Project, cut into heads, turn what is new, put old and new together along the axis of tokens, share out to the groups,
masked softmax, merge, `W_O`. At which of these moments have keys and values the shape that the cache must have?

</details>
"""


# %% nbgrader={"grade_id": "cached-attention", "solution": true}
class CachedAttention(nn.Module):
    """Causal attention with rotary positions and shared keys, which goes on from a cache."""

    def __init__(self, d_model, n_heads, n_groups):
        """d_model: width of the tokens. n_heads: heads of queries. n_groups: heads of keys and values."""
        super().__init__()
        ### BEGIN SOLUTION
        d_head = d_model // n_heads
        self.n_heads = n_heads
        self.n_groups = n_groups
        self.W_Q = nn.Linear(d_model, d_model, bias=False)
        self.W_K = nn.Linear(d_model, n_groups * d_head, bias=False)
        self.W_V = nn.Linear(d_model, n_groups * d_head, bias=False)
        self.W_O = nn.Linear(d_model, d_model, bias=False)
        ### END SOLUTION

    def forward(self, x, cache=None):
        """x: new tokens (B, T_new, d_model). cache: None or what the call before has returned.

        Returns (output, cache): output (B, T_new, d_model), cache = (keys, values), (B, n_groups, T_so_far, d_head) each.
        """
        ### BEGIN SOLUTION
        T_before = 0 if cache is None else cache[0].shape[2]
        places = torch.arange(T_before, T_before + x.shape[1])
        q = self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)  # (B, h, T_new, d_head)
        k = self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)  # (B, g, T_new, d_head)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        q = turn(q, places)
        k = turn(k, places)
        if cache is not None:
            k = torch.cat([cache[0], k], dim=2)
            v = torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        keys = k.repeat_interleave(size, dim=1)  # (B, h, T_so_far, d_head)
        values = v.repeat_interleave(size, dim=1)
        scores = q @ keys.transpose(2, 3) / q.shape[3] ** 0.5
        may = places[:, None] >= torch.arange(k.shape[2])  # (T_new, T_so_far)
        weights = scores.masked_fill(~may, -torch.inf).softmax(dim=3)
        return self.W_O((weights @ values).transpose(1, 2).flatten(2)), (k, v)
        ### END SOLUTION


# %% nbgrader={"grade_id": "cached-attention-tests", "points": 6}
# Examples of exercise 8: CachedAttention
attention = CachedAttention(16, 4, 2)  # heads of width 4
for name, rows in {"W_Q": 16, "W_K": 8, "W_V": 8, "W_O": 16}.items():
    layer = getattr(attention, name)
    assert tuple(layer.weight.shape) == (rows, 16), f"{name} should go from 16 to {rows}."
    assert layer.bias is None, f"{name} should have no bias."
torch.manual_seed(0)
x = torch.randn(3, 7, 16)
result = attention(x)
assert isinstance(result, (tuple, list)) and len(result) == 2, "Return two things: output, cache."
whole, cache = result
assert tuple(whole.shape) == (3, 7, 16), f"The output is (B, T_new, d_model) = (3, 7, 16), not {tuple(whole.shape)}."
assert not isinstance(cache, torch.Tensor) and [tuple(part.shape) for part in cache] == [(3, 2, 7, 4)] * 2, (
    "The cache holds keys and values, (B, n_groups, T_so_far, d_head) = (3, 2, 7, 4) each."
)
whole = whole.detach()
assert whole.abs().max() > 1e-3, "The output is zero. Do the values get there?"
first, cache = attention(x[:, :4])
assert torch.allclose(first, whole[:, :4], atol=1e-4), "Tokens 0 to 3 give something else when later ones are there."
for t in range(4, 7):
    step, cache = attention(x[:, t : t + 1], cache)
    assert cache[0].shape[2] == t + 1, f"After {t + 1} tokens the cache holds {cache[0].shape[2]} keys."
    assert tuple(step.shape) == (3, 1, 16), "Only the outputs of the new tokens are returned."
    assert torch.allclose(step[:, 0], whole[:, t], atol=1e-4), (
        f"Token {t}, read alone with the cache, differs from token {t} read in one go. Has it the right place?"
    )
_, cache = attention(x[:, :4])
several, _ = attention(x[:, 4:], cache)
assert torch.allclose(several, whole[:, 4:], atol=1e-4), (
    "Tokens 4 to 6, read together with the cache of tokens 0 to 3, differ. Which of the seven may each of them see?"
)
### BEGIN HIDDEN TESTS
from autograder.checks import check, later, reference
from set_checks import Attentions, tensor

attentions = Attentions(lambda *sizes: later(CachedAttention, *sizes), reference.CachedAttention)
twins, same = attentions.twins, attentions.same


@check("four layers without bias, and no other parameters", points=1)
def _(rng):
    for d_model, n_heads, n_groups in [(12, 3, 1), (16, 4, 2), (8, 2, 2)]:
        attentions.parts(rng, d_model, n_heads, n_groups)


@check("a text read in one go", points=1)
def _(rng):
    for d_model, n_heads, n_groups in [(24, 6, 3), (16, 4, 1), (12, 2, 2), (20, 2, 1), (16, 8, 2), (4, 1, 1)]:
        pair = twins(rng, d_model, n_heads, n_groups)
        for B, T in [(2, 5), (1, 9), (3, 1)]:
            same(pair, tensor(rng.normal(size=(B, T, d_model))), [T])


@check("any way of cutting it: token by token, in pieces, long texts; scores of any size", points=2)
def _(rng):
    pair = twins(rng, 24, 6, 2)
    for pieces in [[1] * 6, [4, 1, 1], [1, 5], [2, 3, 1], [3, 3], [5, 4, 3, 2, 1], [1, 1, 4]]:
        same(pair, tensor(rng.normal(size=(2, sum(pieces), 24))), pieces)
    same(twins(rng, 16, 4, 1), tensor(rng.normal(size=(1, 70, 16))), [60, 1, 1, 8])
    same(twins(rng, 8, 2, 2), tensor(rng.normal(size=(4, 5, 8))), [2, 1, 2])
    attentions.far_below_zero(rng)


@check("two continuations of one cache, texts read in turns, and the gradients", points=1)
def _(rng):
    pair = twins(rng, 16, 4, 2)
    attentions.continued_twice(rng, pair)
    attentions.gradients(rng, pair)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "small-model-given"}
"""
## A language, and a model for it

The texts of exercises 9 and 10 are made by a small grammar: *the dogs near the river bark often .* An animal does what
its kind does, in nine cases of ten, and the verb's ending belongs to the **animal**, however many places stand
between the two. So the word before does not tell the next one: one has to look back.

`TRAIN` and `VAL` are long texts as tensors of token numbers (about 8,800 and 2,300); `show_text` turns numbers into
words. Two losses say what is to be had: `BIGRAM_FLOOR` is the loss on `VAL` of counting which word follows which in
`TRAIN`, and `BEST` that of somebody who knows the grammar.

`SmallModel()` is a decoder of one layer; `model(tokens)` returns `(logits, cache)`, with logits (B, T, V), and
`loss_of(model, rows)` is its mean loss on rows (B, T) of token numbers, in which each token but the first is predicted. They are made of **your** `CachedAttention` and **your**
`next_token_loss`, if these are right; the cell says whether they are. Otherwise plain ones take their place, so that you can
go on.
"""

# %% nbgrader={"grade_id": "ps10-language"}
KINDS = [("dog", "bark"), ("cat", "purr"), ("bird", "sing"), ("cow", "moo")]
PLACES = ["river", "tree", "house"]
WORDS = ["the", "near", "often", "."]
WORDS += [word + end for animal, verb in KINDS for word in (animal, verb) for end in ("", "s")]
WORDS += [place + end for place in PLACES for end in ("", "s")]


def sentence(rng):
    """The words of a random sentence, and the natural logarithm of its probability."""
    kind, many = int(rng.integers(4)), int(rng.integers(2))
    words, log_chance = ["the", KINDS[kind][0] + "s" * many], -math.log(8)
    near = int(rng.integers(3))
    log_chance -= math.log(3)
    for _ in range(near):
        words += ["near", "the", PLACES[rng.integers(3)] + "s" * int(rng.integers(2))]
        log_chance -= math.log(6)
    own = rng.random() < 0.9
    does = kind if own else (kind + 1 + int(rng.integers(3))) % 4
    words.append(KINDS[does][1] + "s" * (1 - many))
    log_chance += math.log(0.9 if own else 0.1 / 3)
    often = rng.random() < 0.5
    return [*words, *["often"] * often, "."], log_chance - math.log(2)


def language(seed, n):
    """n sentences as one text of token numbers, and the loss per token of somebody who knows the grammar."""
    rng = np.random.default_rng(seed)
    texts, log_chances = zip(*(sentence(rng) for _ in range(n)), strict=True)
    tokens = torch.tensor([WORDS.index(word) for text in texts for word in text])
    return tokens, -sum(log_chances) / len(tokens)


def show_text(tokens):
    """The words of a row of token numbers."""
    return " ".join(WORDS[token] for token in tokens)


def bigram_floor():
    """The loss on VAL of counting, in TRAIN, which token follows which (with 0.1 added to each count)."""
    counts = torch.full((len(WORDS), len(WORDS)), 0.1, dtype=torch.float64)
    for before, after in itertools.pairwise(TRAIN):
        counts[before, after] += 1
    chances = counts / counts.sum(dim=1, keepdim=True)
    return -chances[VAL[:-1], VAL[1:]].log().mean().item()


TRAIN, BEST_TRAIN = language(10, 1200)
VAL, BEST = language(11, 300)
BIGRAM_FLOOR = bigram_floor()


class PlainAttention(nn.Module):
    """What CachedAttention has to give, but without keeping keys and values: its cache is the text, read anew each time."""

    def __init__(self, d_model, n_heads, n_groups):
        super().__init__()
        self.heads = {"W_Q": n_heads, "W_K": n_groups, "W_V": n_groups}
        for name, n in self.heads.items():
            setattr(self, name, nn.Linear(d_model, n * d_model // n_heads, bias=False))
        self.W_O = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, cache=None):
        text = x if cache is None else torch.cat([cache, x], dim=1)
        q, k, v = (getattr(self, name)(text).unflatten(2, (n, -1)).transpose(1, 2) for name, n in self.heads.items())
        q, k = (turn(part, torch.arange(text.shape[1])) for part in (q, k))
        z = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.W_O(z.transpose(1, 2).flatten(2))[:, -x.shape[1] :], text


def plain_loss(model, rows):
    """The loss of rows (B, T) of tokens, of which the model reads all but the last."""
    return nn.functional.cross_entropy(model(rows[:, :-1])[0].transpose(1, 2), rows[:, 1:])


def your_loss(model, rows):
    """The same by your function."""
    return next_token_loss(model(rows)[0], rows)


def or_else(what, yours, plain, is_right):
    """Yours, if is_right() says so, otherwise the plain one."""
    try:
        with torch.random.fork_rng():
            torch.manual_seed(0)
            good, why = bool(is_right()), "does not give what it should"
    except Exception as problem:
        good, why = False, f"cannot be used yet ({type(problem).__name__})"
    print(f"Your {what} is right, and used." if good else f"Your {what} {why}; a plain one takes its place.")
    return yours() if good else plain


def attention_is_right():
    mine, plain, x = CachedAttention(8, 2, 1), PlainAttention(8, 2, 1), torch.randn(2, 5, 8)
    mine.load_state_dict(plain.state_dict(), strict=False)
    first, cache = mine(x[:, :3])
    rest, _ = mine(x[:, 3:], cache)
    whole = plain(x)[0]
    return all(torch.allclose(text, whole, atol=1e-4) for text in (mine(x)[0], torch.cat([first, rest], dim=1)))


def loss_is_right():
    model, rows = SmallModel(), torch.randint(len(WORDS), (3, 6))
    found, wanted = your_loss(model, rows), plain_loss(model, rows)
    gradients = [torch.autograd.grad(loss, model.embedding.weight)[0] for loss in (found, wanted)]
    return torch.isclose(found, wanted, atol=1e-4) and torch.allclose(*gradients, atol=1e-4)


Attention = or_else("CachedAttention", lambda: CachedAttention, PlainAttention, attention_is_right)


class SmallModel(nn.Module):
    """tokens (B, T) -> (logits (B, T, V), cache): one pre-norm layer around the attention, tied embeddings."""

    def __init__(self, d=32, n_heads=4, n_groups=2):
        super().__init__()
        self.embedding = nn.Embedding(len(WORDS), d)
        self.attention = Attention(d, n_heads, n_groups)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.think = nn.Sequential(nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))
        nn.init.normal_(self.embedding.weight, std=0.1)

    def forward(self, tokens, cache=None):
        x = self.embedding(tokens)  # (B, T, d)
        found, cache = self.attention(self.norm1(x), cache)
        x = x + found
        x = x + self.think(self.norm2(x))
        return self.norm3(x) @ self.embedding.weight.T, cache


loss_of = or_else("next_token_loss", lambda: your_loss, plain_loss, loss_is_right)


def text_loss(model, text, T=40):
    """The mean loss per token of a model on a text of token numbers, read in rows of T + 1."""
    with torch.no_grad():
        return plain_loss(model, text[: len(text) // (T + 1) * (T + 1)].view(-1, T + 1)).item()


print(show_text(TRAIN[:40]))
print(f"bigram floor {BIGRAM_FLOOR:.3f}, best {BEST:.3f}")

# %% [markdown] nbgrader={"grade_id": "train-language-model-task"}
"""
## Exercise 9: train it (4 points)

*Difficulty ●●●○○ · importance ●●●●● · about 30 minutes*

Write `train_language_model(steps, seed)`: it makes a **new** `SmallModel()`, makes its `loss_of(model, rows)` small on rows
of `TRAIN` for `steps` steps, and returns the trained model.

- Each step takes some rows of neighbouring tokens from `TRAIN`, for example 16 rows of 24, beginning at random
  places. Optimiser, step size and rows are yours: Adam with a step size of 0.01 does it. Two hundred steps should
  take a few seconds at most.
- With 200 steps the loss on `VAL` has to be **below the bigram floor by at least 0.2**.
- **The same seed gives the same model**, whatever has been drawn before, and another seed another one: call
  `set_seed(seed)` before the model is made, and draw with PyTorch alone.
- `VAL` is for looking only: nothing is learned from it. `steps` may be 0; then the model is as new.

<details><summary>Hint 1</summary>

Which shape have the rows that `loss_of` takes? How can rows be cut out of one long text at random places?

</details>

<details><summary>Hint 2</summary>

*Training, against the floors* in the chapter. A column of first places plus a row 0, 1, 2, … is a table of places.
Which is the last place at which a row may begin?

</details>

<details><summary>Hint 3</summary>

Seed, model, optimiser; `steps` times: rows, loss, old gradients away, new gradients, step; the model is returned.
Zero steps need no case of their own.

</details>
"""


# %% nbgrader={"grade_id": "train-language-model", "solution": true}
def train_language_model(steps, seed):
    """Train a new SmallModel on TRAIN.

    steps: how many gradient steps (>= 0). seed: a whole number that decides all that is random. Returns the model.
    """
    ### BEGIN SOLUTION
    torch.manual_seed(seed)
    model = SmallModel()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        starts = torch.randint(len(TRAIN) - 24, (16, 1))
        rows = TRAIN[starts + torch.arange(24)]  # (16, 24)
        loss = loss_of(model, rows)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model
    ### END SOLUTION


# %% nbgrader={"grade_id": "train-language-model-tests", "points": 4}
# Examples of exercise 9: train_language_model
model = train_language_model(200, 1)
assert model is not None, "train_language_model returned None. Is there a return?"
assert not isinstance(model, (tuple, list, float)), "Return the SmallModel that was made and trained, and nothing else."
found = text_loss(model, VAL)
print(f"loss on VAL {found:.3f}, bigram floor {BIGRAM_FLOOR:.3f}, best {BEST:.3f}")
assert found < BIGRAM_FLOOR - 0.2, (
    f"After 200 steps the loss on VAL is {found:.3f}; at most {BIGRAM_FLOOR - 0.2:.3f} is asked for. Does the loss on the "
    "training rows fall from step to step?"
)
### BEGIN HIDDEN TESTS
from autograder.checks import check, fail, is_instance, observe, settled, to_array

LENGTH = 41


def trained(steps, seed):
    made = train_language_model(steps, seed)
    if settled(made) is None or not is_instance(made, "SmallModel"):
        observe("returns", "no model")
        fail("train_language_model should return the SmallModel that it has made and trained.")
    observe("returns", "a model")
    return made


def rows_of(text):
    return text[: len(text) // LENGTH * LENGTH].view(-1, LENGTH)


def logits_of(made, rows):
    answer = settled(made(rows))
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        fail("The model does not answer with (logits, cache).")
    logits = to_array(answer[0], "the logits")
    if logits.shape != (*rows.shape, len(WORDS)):
        fail(f"The logits should have the shape {(*rows.shape, len(WORDS))}, not {logits.shape}.")
    return logits


def loss_of(made, text):
    """What the model really does, computed here of its logits; their beginning is asked for before the rest is known."""
    rows = rows_of(text)
    begun, logits = logits_of(made, rows[:2, :9]), logits_of(made, rows)
    if np.abs(begun - logits[:2, :9]).max() > 1e-2:
        observe("later tokens", "change what is said before them")
        fail("What your model says of the next token changes with the tokens that come later. It may not see them.")
    logits = torch.tensor(logits, dtype=torch.float64)
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), rows[:, 1:].flatten()).item()


@check("the same seed gives the same model, another seed another one", points=1)
def _(rng):
    seed = int(rng.integers(1000))
    made = {}
    for steps in (0, 3):
        one, other, again = (logits_of(trained(steps, s), rows_of(VAL)[:2]) for s in (seed, seed + 1, seed))
        made[steps] = one
        repeats, differs = np.abs(one - again).max() < 1e-4, np.abs(one - other).max() > 1e-4
        observe(f"the same seed, {steps} steps", "the same" if repeats else "others")
        observe(f"another seed, {steps} steps", "others" if differs else "the same")
        if not repeats:
            fail("The same seed gives a different model the second time: not everything random follows the seed.")
        if not differs:
            fail("Two different seeds give the same model.")
    observe("three steps", "change the model" if np.abs(made[0] - made[3]).max() > 1e-4 else "change nothing")


@check("after 200 steps it is clearly below the bigram floor", points=1)
def _(rng):
    made = globals().get("model") or trained(200, 1)  # the one of the examples, if there is one
    found = loss_of(made, VAL)
    limits = {"in order": BIGRAM_FLOOR - 0.2, "too high": 2.2, "untrained": 4.0, "worse than untrained": np.inf}
    level = next((name for name, limit in limits.items() if found < limit), "not finite")
    observe("loss after 200 steps", level)
    if level != "in order":
        fail(f"After 200 steps the loss on VAL is {found:.3f}; at most {BIGRAM_FLOOR - 0.2:.3f} is asked for.")


@check("it learns with every step, from TRAIN and not from VAL", points=1)
def _(rng):
    seed = int(rng.integers(1000))
    losses = {steps: loss_of(trained(steps, seed), TRAIN) for steps in (0, 20, 60)}
    new, few, more = losses.values()
    learns = "new at 0 steps" if new > 2.6 else "not new at 0 steps"
    learns += ", falls" if new - 0.3 > few > more + 0.02 else ", does not fall"
    observe("steps", learns)
    made = trained(200, seed)
    # against somebody who knows the grammar, so that the luck of either text cancels
    behind = {"VAL": loss_of(made, VAL) - BEST, "TRAIN": loss_of(made, TRAIN) - BEST_TRAIN}
    seen = behind["VAL"] < behind["TRAIN"] - 0.03
    observe("knows VAL better than TRAIN", bool(seen))
    if not learns.startswith("new"):
        fail("With 0 steps the model should be as new; yours has learned already.")
    if learns.endswith("not fall"):
        fail(f"On TRAIN the losses after 0, 20 and 60 steps are {new:.2f}, {few:.2f} and {more:.2f}; they should fall.")
    if seen:
        fail("The model knows VAL better than TRAIN. Has it been trained on VAL?")


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "write-given"}
"""
## Let it write

`write(model, n, seed, ...)` writes n sentences, token by token, from your `sampling_distribution` and with the
model's cache. It begins each sentence **anew**: with an empty cache, the model reads a full stop, and nothing of the
sentences before. `report` prints the share of sentences that the grammar can make and the share of different ones among
all. The last lines of the cell print the same figures for 50 sentences of `TRAIN`, to compare with.
"""

# %% nbgrader={"grade_id": "ps10-write"}
LONGEST = 12  # of the grammar: two places, and "often"


def write(model, n, seed=0, **how):
    """n sentences as lists of words, each written after a full stop; `how` goes to sampling_distribution."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n):
        words, cache, token = [], None, WORDS.index(".")
        while len(words) < 20 and words[-1:] != ["."]:
            with torch.no_grad():
                logits, cache = model(torch.tensor([[token]]), cache)
            chances = np.asarray(sampling_distribution(logits[0, -1].double().numpy(), **how))
            token = int(rng.choice(len(WORDS), p=chances / chances.sum()))
            words.append(WORDS[token])
        sentences.append(words)
    return sentences


def is_right(words):
    """Whether the grammar makes this sentence."""
    words = list(words)
    if len(words) < 4 or words[0] != "the" or words[-1] != ".":
        return False
    animals = {animal + "s" * many: many for animal, _ in KINDS for many in (0, 1)}
    verbs = {verb + "s" * (1 - many): many for _, verb in KINDS for many in (0, 1)}
    places = {place + end for place in PLACES for end in ("", "s")}
    subject, rest, near = words[1], words[2:-1], 0
    while rest[:2] == ["near", "the"] and len(rest) > 2 and rest[2] in places:
        rest, near = rest[3:], near + 1
    if rest[1:] not in ([], ["often"]) or near > 2 or subject not in animals:
        return False
    return verbs.get(rest[0] if rest else "") == animals[subject]


def report(sentences):
    """Print the share of right and of different sentences, and the first three."""
    right = sum(map(is_right, sentences)) / len(sentences)
    different = len({tuple(words) for words in sentences}) / len(sentences)
    print(f"right {right:.2f}, different {different:.2f}")
    for words in sentences[:3]:
        print("   ", " ".join(words))


print("50 sentences of TRAIN")
report([[*text.split(), "."] for text in show_text(TRAIN).split(" .")[:50]])


# %% [markdown] nbgrader={"grade_id": "compare-texts-task"}
"""
## Exercise 10: greedy or drawn? (2 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 20 minutes*

Let a trained model write 50 sentences in five ways: at temperature 0, at 1, at 2, at 2 with `top_k=3`, and at 2 with
`top_p=0.5`. The figures of 50 sentences of `TRAIN` stand above. (No points for this cell; the answer below needs its
numbers.)
"""

# %% nbgrader={"grade_id": "compare-texts", "solution": true}
# Train a model with 200 steps, let it write in the five ways, and print a report on each.
### BEGIN SOLUTION
model = train_language_model(200, seed=1)
warm = dict(temperature=2)
for how in [dict(temperature=0), dict(), warm, dict(**warm, top_k=3), dict(**warm, top_p=0.5)]:
    print(how)
    report(write(model, 50, **how))
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "greedy-or-drawn-task"}
"""
Answer in four to six sentences, with **your numbers**. (1) Compare greedy text (temperature 0) with text drawn at
temperature 1: what does each have that the other lacks, and why does the likeliest *next* token, taken again and
again, not make a text like those of `TRAIN`? (2) What happens at temperature 2, and which part of it do top-k or
top-p mend, and how?

<details><summary>Hint 1</summary>

How many different sentences are there at temperature 0? Could it be otherwise, when each begins in the same way?

</details>

<details><summary>Hint 2</summary>

Compare each row of figures with that of `TRAIN`: what does a text have that somebody who always takes the maximum
never writes?

</details>

<details><summary>Hint 3</summary>

(2) Some words gain probability as the temperature rises: which, how many are they, and what happens to them in top-k
and top-p?

</details>
"""

# %% [markdown] nbgrader={"grade_id": "greedy-or-drawn", "solution": true, "points": 2}
"""
**Model answer.** (1) At temperature 0 all 50 sentences are the same one (different 0.02), and it is right (1.00); at
temperature 1 some 0.95 are right, and about 0.8 are different. Greedy writing is never wrong here, but it has no
variety: TRAIN holds each animal equally often, and a choice between equally good words is made by always taking the
same one. What is typical of a text is that rarer words come as often as they should, and the maximum never takes
them. (2) At temperature 2 the differences of the logits are halved, so the many words that are wrong here get chances
that together are large: fewer sentences are right (about 0.4). Top-k and top-p cut off this tail before the draw, so
that a wrong word cannot come at all; the share of right sentences rises again (to 0.9 or more), while there is still
variety (about 0.5).

**Rubric** (2 points, each given or not)

- **1 point**: greedy text is right but always the same and drawn text varied with some mistakes, **with numbers** for
  both, **and** a reason: the maximum never takes the less likely words, although they belong to the text (or: it is
  deterministic, so the same beginning always goes on in the same way). All three are needed.
- **1 point**: at temperature 2 much is wrong, with a number, because unlikely tokens get more of the probability,
  **and** top-k or top-p removes these unlikely tokens (the tail), so that more is right again. Both are needed.
"""

# %% [markdown] nbgrader={"grade_id": "what-the-cache-costs-task"}
"""
## Exercise 11: what the cache costs and saves (2 points)

*Difficulty ●●○○○ · importance ●●●○○ · about 15 minutes*

A model of L layers with h heads of width d_head, of which g are heads of keys and values, writes a text of T tokens.
All T tokens go through the model, the last one too. Answer in three to five sentences or with formulas. (1) How many
numbers does its cache hold at the end, and what do grouped keys save? (2) How many scores does it compute in all, per
head and layer, with the cache, and how many if it read the whole text anew for every token? Name one more thing that is
not done again with the cache.

A *score* is one product of a query with a key, that of a token with itself included. Without the cache you may count
the scores that the mask removes or leave them out; say which. (Who counts T − 1 tokens, since nothing has to be read
after the last one, is as right; what counts is the power of T.)

<details><summary>Hint 1</summary>

What is kept of one token in one layer? Exercise 8 has its shapes.

</details>

<details><summary>Hint 2</summary>

*Keep what was computed* in the chapter. Write down the number of scores for tokens 1, 2 and 3, with and without the
cache.

</details>

<details><summary>Hint 3</summary>

Then sum up: 1 + 2 + … + T, and 1 + 4 + … + T² or what you counted. For the last question follow an old token through
a layer that reads it once more.

</details>
"""

# %% [markdown] nbgrader={"grade_id": "what-the-cache-costs", "solution": true, "points": 2}
"""
**Model answer.** (1) Keys and values of every token in every layer: 2 · L · g · d_head · T numbers for each text.
With g = h it would be 2 · L · h · d_head · T, so grouped keys save the factor h/g. It grows in proportion to T. (2)
With the cache token t has t scores, 1 + 2 + … + T = T(T + 1)/2, about T²/2. Without it, the whole text of t tokens is
read at each step, t² scores (or t(t + 1)/2 if the masked ones are left out), in all about T³/3 (or T³/6). Nor are
queries, keys, values and the feed-forward layers of the old tokens computed again: T tokens go through the layers
instead of about T²/2.

**Rubric** (2 points, each given or not)

- **1 point**: 2 · L · g · d_head · T (the two for keys and values; the number of layers may be left out only if the
  answer is said to be for one layer) **and** the factor h/g. Both are needed.
- **1 point**: about T² scores with the cache (T²/2, T(T + 1)/2) against about T³ without (T³/3, T³/6) **and** one
  further thing that is saved: keys, values, queries, or feed-forward layers of tokens read before. "It is faster"
  does not earn it.
"""

# %% [markdown] nbgrader={"grade_id": "ps10-hand-in"}
"""
## Before you hand in

Restart the kernel, run all cells, see what the last cell says, look once more at your id at the top, save, and hand in
this file.
"""

# %% nbgrader={"grade_id": "ps10-summary"}
where_you_stand()
