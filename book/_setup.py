# Set-up: drawing, seeds, numbers for the text, claims, self-check questions.
# Nothing here is about attention.
import json
from importlib.util import find_spec
from os import environ

import matplotlib.pyplot as plt
import numpy as np

np.set_printoptions(precision=3, suppress=True, linewidth=72)

# Okabe and Ito's colours, each with its own dash and marker: lines differ
# without colour too.
plt.rcParams.update(
    {
        "figure.facecolor": "#fbfbf8",
        "axes.facecolor": "#fbfbf8",
        "savefig.facecolor": "#fbfbf8",
        "figure.figsize": (5.0, 3.2),
        "figure.constrained_layout.use": True,
        "svg.hashsalt": "attention",
        "font.size": 11,
        "axes.titlesize": 11,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.prop_cycle": plt.cycler(
            color=["#0072b2", "#d55e00", "#007a5a", "#aa4499", "#7a5c00"]
        )
        + plt.cycler(linestyle=["-", "--", "-.", ":", (0, (5, 1, 1, 1))])
        + plt.cycler(marker=list("os^Dv")),
    }
)
if "inline" in plt.get_backend():  # Jupyter, not the browser's own Python
    from matplotlib_inline.backend_inline import set_matplotlib_formats

    set_matplotlib_formats("svg", metadata={"Date": None})


def heatmap(
    ax, values, queries, keys, label, signed=False, digits=2, limit=None,
    query_axis="query", key_axis="key", bar=True,
):
    """Draw values (T_q, T_k): a row per query, a column per key.

    signed=False runs from 0 to limit (default 1, for weights), signed=True
    from -limit to limit (default the largest size). queries and keys are
    lists of tokens, label names the colour bar.
    """
    values = np.asarray(values, dtype=float)
    limit = limit or (np.abs(values).max() if signed else 1.0)
    image = ax.imshow(values, cmap="PuOr" if signed else "Blues",
                      vmin=-limit if signed else 0, vmax=limit)
    ax.set_xticks(range(len(keys)), keys)
    ax.set_yticks(range(len(queries)), queries)
    ax.set(xlabel=key_axis, ylabel=query_axis)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    for (i, j), value in np.ndenumerate(values):
        red, green, blue, _ = image.cmap(image.norm(value))
        dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.55
        ax.text(j, i, f"{value:.{digits}f}", ha="center", va="center",
                color="white" if dark else "black")
    if bar:
        ax.figure.colorbar(image, ax=ax, label=label, shrink=0.85)
    return image


def seeds(n, offset=0):
    """n seeds; BOOK_SEEDS=3 in the environment moves all chapters' at once.

    BOOK_FEWER=5 leaves a fifth of them, to see that a chapter runs.
    """
    first = 10_000 * int(environ.get("BOOK_SEEDS", "0")) + offset
    return range(first, first + max(1, n // int(environ.get("BOOK_FEWER", 1))))


def seeded(offset=0):
    """NumPy's generator of random numbers for one such seed."""
    return np.random.default_rng(seeds(1, offset)[0])


def claim(words, holds, found=""):
    """A sentence of the text as a test: holds is one Boolean, or one per run.

    One that does not hold ends the build; `make replicate` goes on and lists
    it, with what was found.
    """
    holds = np.asarray(holds)
    if holds.dtype != bool or not holds.size:
        raise TypeError(f"True or False, not {holds!r}, for: {words}")
    if environ.get("BOOK_CLAIMS"):
        noted = [words, bool(holds.all()), f"{found}"]
        with open(environ["BOOK_CLAIMS"], "a", encoding="utf-8") as file:
            file.write(json.dumps(noted) + "\n")
    elif not holds.all():
        raise AssertionError(f"This does not hold: {words} {found}".rstrip())


def put(**numbers):
    """Hand numbers or texts to the prose of the built book, by their names."""
    if find_spec("myst_nb"):
        from myst_nb import glue

        for name, value in numbers.items():
            value = value.item() if hasattr(value, "item") else value
            glue(name, value, display=False)


def vec(values, digits=3):
    """A vector as text: (0.589, 0.411)."""
    numbers = ", ".join(f"{value:.{digits}f}" for value in np.ravel(values))
    return f"({numbers})".replace("-", "−")


def sci(value):
    """A very large or small number as text: 2·10⁻¹⁰."""
    mantissa, power = f"{value:.0e}".split("e")
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return f"{mantissa}·10{str(int(power)).translate(raised)}"


class quiz:
    """Self-check: quiz((question, [(answer, is it right, why), ...]), ...)."""

    def __init__(self, *questions):
        self.questions = questions

    def __repr__(self):
        return "\n\n".join(
            "\n".join([q, *(f"  - {text}" for text, _, _ in a)])
            for q, a in self.questions
        )

    def _repr_html_(self):
        return self._buttons() if find_spec("jupyterquiz") else self._plain()

    def _buttons(self):
        import random

        from IPython.utils.capture import capture_output
        from jupyterquiz import display_quiz

        asked = [
            {
                "question": question,
                "type": "many_choice" if sum(a[1] for a in answers) > 1
                else "multiple_choice",
                "answers": [
                    {"answer": a, "correct": right, "feedback": why}
                    for a, right, why in answers
                ],
            }
            for question, answers in self.questions
        ]
        purple = {
            "--jq-multiple-choice-bg": "#3d2b66",
            "--jq-many-choice-bg": "#3d2b66",
            "--jq-text-color": "#ffffff",
            "--jq-correct-color": "#0b6e3b",
            "--jq-incorrect-color": "#a8281e",
        }
        # the page's element names are drawn: the same in every build
        random.seed(self.questions[0][0])
        with capture_output() as shown:
            display_quiz(asked, shuffle_answers=False, colors=purple,
                         border_radius=6, max_width=680)
        page, script = shown.outputs  # the library leaves its <div> open
        # no formulas in questions: without MathJax the library does not wait
        code = script.data["application/javascript"]
        code = f"(function () {{ var MathJax; {code} }})();"
        return f"{page.data['text/html']}</div><script>{code}</script>"

    def _plain(self):
        rows = []
        for question, answers in self.questions:
            options = "".join(f"<li>{text}</li>" for text, _, _ in answers)
            reasons = "".join(
                f"<li>{'Right' if right else 'Wrong'}: {why}</li>"
                for _, right, why in answers
            )
            rows.append(
                f"<p><b>{question}</b></p><ol type='a'>{options}</ol>"
                "<details><summary>Answers</summary>"
                f"<ol type='a'>{reasons}</ol></details>"
            )
        return "".join(rows)
