# ---
# jupyter:
#   autograder:
#     cell_seconds: 900
#     notebook_seconds: 1200
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown] nbgrader={"grade_id": "project-introduction"}
"""
# Final project: a small model of your own

You design, train and explain a small model on a task of your own, or on one of three in `tasks.py`. Ten criteria, two to a
question, are each given or not by a person: 10 points. Plan two to three days of work. The whole notebook runs in fifteen minutes
on one processor, without a graphics card: small is the point.

**How to work**

1. Keep `tasks.py` and `check_form.py` beside this notebook. Type your id into the next cell.
2. Write where you see `# YOUR CODE HERE` (replace that line and the `raise NotImplementedError()` below it) or *YOUR ANSWER
   HERE*, and add as many cells as you like. Above each question stand its two criteria, as the marker reads them.
3. What you find goes into the dictionary `report` as well. The last cell, which you may run at any time, reads it and says in a line each what is missing. It
   checks the form only: no score is too low. A model that loses to its baseline, found out honestly, can earn all ten points.
4. At the end choose *Restart kernel and run all cells*, read what the last cell says, save, and hand in this file. A task of your
   own comes with its data, made in the notebook from a seed.

**Words.** A *floor* is what the best simple rule reaches: guessing, copying, the nearest neighbour. A *baseline* is a simple model that
learned from the same data. *Held-back data* was neither learned from nor chosen with. A *spread* is the standard deviation over seeds,
and a *seed* fixes a whole run: data, first weights, order.
"""

# %%
# Your id, exactly as your class knows it. Keep the quotes.
student_id = "..."

# %% nbgrader={"grade_id": "project-imports"}
import matplotlib.pyplot as plt
import numpy as np
import tasks
from check_form import what_is_missing

report = {}  # what the last cell reads

# %% [markdown] nbgrader={"grade_id": "project-task-task"}
"""
## Question 1: the task (2 points)

Make the data, and put into `report`: `"task"`, a sentence on what goes in and what comes out; `"seeds"`, a list of at least four;
`"floor"`, the score of the best simple rule; `"baseline"`, a list with the score of the baseline for each seed; and
`"held_back"`, the `HeldBack` object of the data that all your models are scored on.

For a task of `tasks.py`, `data = tasks.recall(seed=7)` has `data.floors`, and `tasks.baseline("recall", data)` returns score and
parameters. A task of your own needs both of its own.

Then answer: what is the question, and what does a score on it mean?

* **Criterion 1, question.** Input, answer and score are said so that a stranger could program them, with how many examples there are to
  learn from, to choose with, and held back.
* **Criterion 2, floor.** There is a floor and a baseline on the same held-back data, and a reason why no simpler rule that comes to mind
  does better.
"""

# %% nbgrader={"grade_id": "project-task-code", "solution": true}
### BEGIN SOLUTION
data = tasks.recall(seed=7)
seeds = [0, 1, 2, 3, 4]
report["task"] = "Six pairs of key and value and one of the keys go in, and the value beside that key comes out."
report["seeds"] = seeds
report["floor"] = max(data.floors.values())
report["baseline"] = [tasks.baseline("recall", data)[0]] * len(seeds)  # least squares has no first weights
report["held_back"] = data.held_back
print(data.floors, report["baseline"][0])
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project-task", "solution": true, "points": 2}
"""
**Rubric** (2 points, each given or not)

- **1 point**, criterion 1: a stranger could write the generator and the score from the text and the code. Not given if it is left
  open what counts as right, or how many examples there are.
- **1 point**, criterion 2: floor and baseline have numbers from the held-back data, and the reason is one about the task ("the last
  value is right in one case of six, and by chance in one of ten of the others"). "It is simple" is no reason.
"""

# %% [markdown] nbgrader={"grade_id": "project-design-task"}
"""
## Question 2: the design (2 points)

Write the model, and put its number of parameters into `report["parameters"]`.

Then answer: what is each part there for, and what did you choose with which data?

* **Criterion 3, design.** Each part of the model has a reason that follows from the task, and one part was left out or made smaller
  because it was not needed.
* **Criterion 4, choices.** Whatever was chosen (sizes, steps, learning rate) was chosen with data that is not held back, and it is said
  what was tried.
"""

# %% nbgrader={"grade_id": "project-design-code", "solution": true}
### BEGIN SOLUTION
import torch
from torch import nn


class OneHead(nn.Module):
    """One attention head over six pairs: keys are compared with the key asked for, values are read out."""

    def __init__(self, d=8):
        super().__init__()
        self.W_Q = nn.Parameter(torch.randn(10, d) / d**0.5)
        self.W_K = nn.Parameter(torch.randn(10, d) / d**0.5)
        self.W_V = nn.Parameter(torch.randn(10, 10) / 10**0.5)

    def weights(self, inputs):
        """The attention (N, 6) that the key asked for pays to the six pairs."""
        query, keys = self.W_Q[inputs[:, -1]], self.W_K[inputs[:, 0:-1:2]]
        return torch.softmax((keys @ query[:, :, None])[:, :, 0], dim=-1)

    def forward(self, inputs, even=False):
        weights = self.weights(inputs)
        weights = torch.full_like(weights, 1 / 6) if even else weights
        return (weights[:, :, None] * self.W_V[inputs[:, 1:-1:2] - 10]).sum(1)


report["parameters"] = sum(weights.numel() for weights in OneHead().parameters())
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project-design", "solution": true, "points": 2}
"""
**Rubric** (2 points, each given or not)

- **1 point**, criterion 3: the reasons are about this task, and the part that was left out is named. "Transformers use it" is no
  reason.
- **1 point**, criterion 4: it is said what was tried and on which data it was compared. Not given if the code chooses by a score on
  held-back data, whatever the text says.
"""

# %% [markdown] nbgrader={"grade_id": "project-results-task"}
"""
## Question 3: the results (2 points)

Train one model for each seed. Then open the held-back data, once, and score all of them. Put the scores into `report["model"]`,
a list, and their standard deviation, `np.std(scores, ddof=1)`, into `report["spread"]`.

Then answer: is your model better than the baseline?

* **Criterion 5, figures.** All scores stand in one table or figure, every seed, with mean and spread, beside floor and baseline.
* **Criterion 6, comparison.** The sentence about the difference follows from its size and the spread; where they do not decide, it says
  so.
"""


# %% nbgrader={"grade_id": "project-results-code", "solution": true}
### BEGIN SOLUTION
def trained(seed, steps=400, batch=200):
    torch.manual_seed(seed)
    model = OneHead()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.03)
    inputs, answers = (torch.as_tensor(part) for part in data.train)
    for _ in range(steps):
        rows = torch.randint(len(inputs), (batch,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(inputs[rows]), answers[rows]).backward()
        optimiser.step()
    return model


def score(model, inputs, answers, **how):
    with torch.no_grad():
        return tasks.score(model(torch.as_tensor(inputs), **how).argmax(1).numpy(), answers)


models = [trained(seed) for seed in seeds]
print("to choose with:", [score(model, *data.choose) for model in models])
held_back = data.held_back.open()
report["model"] = [score(model, *held_back) for model in models]
report["spread"] = np.std(report["model"], ddof=1)
print("held back:", report["model"], "spread", report["spread"])
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project-results", "solution": true, "points": 2}
"""
**Rubric** (2 points, each given or not)

- **1 point**, criterion 5: no seed is left out, and floor and baseline stand in the same table or figure.
- **1 point**, criterion 6: the sentence is no stronger than the figures. A difference below the spread that is called better does
  not earn it; "not shown" earns it where that is so.
"""

# %% [markdown] nbgrader={"grade_id": "project-explanation-task"}
"""
## Question 4: the explanation (2 points)

Look into the trained models, and then change something: take out a head, even out its weights, permute what should not matter. Write
down what you expect before you run it.

Then answer: how does the model do it?

* **Criterion 7, inside.** One figure shows something inside a trained model, with its axes named and a scale, and the text says what is to
  be seen there.
* **Criterion 8, intervention.** Something was changed, with an expectation written down before and the outcome for every seed; where they
  differ, it is said.
"""

# %% nbgrader={"grade_id": "project-explanation-code", "solution": true}
### BEGIN SOLUTION
with torch.no_grad():
    table = (models[0].W_Q @ models[0].W_K.T).numpy()
limit = np.abs(table).max()
plt.imshow(table, cmap="PuOr", vmin=-limit, vmax=limit)
plt.xlabel("key of a pair")
plt.ylabel("key asked for")
plt.colorbar(label="score")
plt.show()

inputs, answers = data.choose
print("as trained", [score(model, inputs, answers) for model in models])
print("even weights", [score(model, inputs, answers, even=True) for model in models])
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project-explanation", "solution": true, "points": 2}
"""
**Rubric** (2 points, each given or not)

- **1 point**, criterion 7: the figure is from inside (weights, attention, activations), not a learning curve, and the text says
  what of it speaks for the explanation.
- **1 point**, criterion 8: expectation, change and outcome for every seed. An outcome against the expectation earns it when it is
  named as such.
"""

# %% [markdown] nbgrader={"grade_id": "project-limits-task"}
"""
## Question 5: the limits (2 points)

Find inputs on which your model fails: longer ones, rarer ones, noisier ones. Put at least two sentences into `report["limits"]`, a list:
things that a reader might believe now and that you have not shown.

Then answer: where does it end?

* **Criterion 9, failure.** One kind of input on which the model does worse is named, with its score, and a reason that could be tested.
* **Criterion 10, open.** It is said what the figures do not show, and which experiment would decide it.
"""

# %% nbgrader={"grade_id": "project-limits-code", "solution": true}
### BEGIN SOLUTION
inputs, answers = data.choose
unknown = inputs.copy()
unknown[:, -1] = (inputs[:, -1] + 1) % 10  # often a key that no pair has, and at times that of another pair
print("another key is asked for", [score(model, unknown, answers) for model in models])
report["limits"] = [
    "The pairs were cut out by hand, so nothing is shown about a model that must find them in a row of tokens.",
    "All rows had six pairs, and nothing is shown about longer ones.",
]
### END SOLUTION

# %% [markdown] nbgrader={"grade_id": "project-limits", "solution": true, "points": 2}
"""
**Rubric** (2 points, each given or not)

- **1 point**, criterion 9: a kind of input, its score, and a reason with a test that could refute it. "More data would help" is none.
- **1 point**, criterion 10: a limit of what was claimed (not of the machine), with an experiment that could come out either way.
"""

# %% [markdown] nbgrader={"grade_id": "project-hand-in"}
"""
## Before you hand in

Restart the kernel and run all cells. The next cell says what is missing in the form. Do you want your model in the table of the
smallest ones? Then say so when you hand in, with a name that need not be yours: task, score (the mean over your seeds, on the held-back
data) and number of parameters.
"""

# %% nbgrader={"grade_id": "project-form"}
missing = what_is_missing(report)
print("\n".join(missing) or "The form is complete.")
