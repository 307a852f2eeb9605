"""Results of an imagined class of fifteen, for the tests of the pages that are made from results."""

from __future__ import annotations

import base64
import io
import random
from functools import cache
from typing import Any

from autograder.results import (
    CRASHED,
    ERROR,
    FAILED,
    GRADED,
    NOT_REACHED,
    NOT_SUBMITTED,
    OUT_OF_MEMORY,
    PASSED,
    TIMEOUT,
    UNREADABLE,
    Check,
    Exercise,
    Misconception,
    Result,
)

SET = "ps2-self-attention"
EXERCISES: list[tuple[str, str, str, float, list[tuple[str, float]]]] = [
    (
        "worksheet-tests",
        "1 Self-attention by hand",
        "worksheet",
        4,
        [
            ("the queries, keys and values", 1),
            ("the scaled scores", 1),
            ("the weights, row by row", 1),
            ("the outputs", 1),
        ],
    ),
    (
        "argmax-attention-tests",
        "2 Retrieval without softness",
        "argmax_attention",
        3,
        [
            ("the examples in the notebook", 1),
            ("the value of the best key comes out", 1),
            ("the first key wins a tie", 1),
        ],
    ),
    ("gradient-answer", "3 Which gradient reaches the keys?", "", 2, []),
    (
        "scaled-dot-product-attention-tests",
        "4 Scaled dot-product attention",
        "scaled_dot_product_attention",
        6,
        [
            ("the examples in the notebook", 1),
            ("the softmax runs over the keys", 2),
            ("masked keys get exactly no weight", 2),
            ("scores of a thousand do not overflow", 1),
        ],
    ),
    (
        "self-attention-tests",
        "5 Self-attention",
        "self_attention",
        3,
        [("the examples in the notebook", 1), ("three different projections", 1), ("any leading axes", 1)],
    ),
    (
        "cross-attention-tests",
        "6 Cross-attention",
        "cross_attention",
        3,
        [
            ("the examples in the notebook", 1),
            ("queries from one sequence, keys and values from the other", 2),
        ],
    ),
    ("why-answer", "7 Why the square root of `d_k`?", "", 3, []),
]
SAYS = {
    "divided_by_d_k": (
        "scaled_dot_product_attention",
        "Your scores are divided by `d_k`; divide them by its square root.",
    ),
    "softmax_over_queries": (
        "scaled_dot_product_attention",
        "Your weights add up to one down each column. Every query spreads its attention over "
        "the keys, so each row has to add up to one.",
    ),
    "last_key_wins": ("argmax_attention", "On a tie you take the last of the best keys; take the first."),
    "keys_from_queries": (
        "cross_attention",
        "Your keys come from `X_q`; in cross-attention they come from `X_kv`.",
    ),
}
CODE = '''def scaled_dot_product_attention(Q, K, V, mask=None):
    """Attention of every query over all keys: output (…, T_q, d_v), weights (…, T_q, T_k)."""
    d_k = Q.shape[-1]
    scores = Q @ np.swapaxes(K, -1, -2) / d_k          # (…, T_q, T_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ V, weights
'''


@cache
def attention_png() -> str:
    """A small heatmap with a colour bar as base64 of a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 2.8), dpi=90, layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.25, 0.25, 0.5]], vmin=0, vmax=1, cmap="Blues")
    axes.set(xlabel="key", ylabel="query", xticks=range(3), yticks=range(3))
    axes.set_xticklabels(["the", "cat", "sat"])
    axes.set_yticklabels(["the", "cat", "sat"])
    figure.colorbar(image, label="weight")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return base64.b64encode(buffer.getvalue()).decode()


def code_cell(
    source: str,
    cell_id: str,
    outputs: list[dict[str, Any]] | None = None,
    count: int | None = 1,
    **nbgrader: Any,
) -> dict[str, Any]:
    metadata = {"nbgrader": {"schema_version": 3, "grade_id": cell_id, **nbgrader}} if nbgrader else {}
    return {
        "cell_type": "code",
        "id": cell_id,
        "metadata": metadata,
        "source": source,
        "execution_count": count,
        "outputs": outputs or [],
    }


def text_cell(source: str, cell_id: str, **nbgrader: Any) -> dict[str, Any]:
    metadata = {"nbgrader": {"schema_version": 3, "grade_id": cell_id, **nbgrader}} if nbgrader else {}
    return {"cell_type": "markdown", "id": cell_id, "metadata": metadata, "source": source}


def stream(text: str, name: str = "stdout") -> dict[str, Any]:
    return {"output_type": "stream", "name": name, "text": text}


def shown(**data: Any) -> dict[str, Any]:
    return {
        "output_type": "display_data",
        "metadata": {},
        "data": {k.replace("_", "/", 1): v for k, v in data.items()},
    }


LOCKED = {"grade": False, "solution": False, "locked": True}
SOLUTION = {"grade": False, "solution": True, "locked": False}
TEST = {"grade": True, "solution": False, "locked": True, "points": 1}
WRITTEN = {"grade": True, "solution": True, "locked": False, "points": 2}


def notebook(student: str) -> dict[str, Any]:
    """An executed notebook with task texts, code, outputs of several kinds and written answers."""
    cells = [
        text_cell("# Problem set 2: self-attention\n\nHow to work with this notebook …", "intro", **LOCKED),
        code_cell(f'student_id = "{student}"', "student-id"),
        code_cell("import numpy as np\nimport matplotlib.pyplot as plt", "imports", **LOCKED),
    ]
    for grade_id, title, name, _points, _checks in EXERCISES:
        base = grade_id.removesuffix("-tests").removesuffix("-answer")
        cells.append(text_cell(f"## {title}\n\nThe task of the exercise stands here.", f"{base}-task", **LOCKED))
        if grade_id.endswith("-answer"):
            cells.append(
                text_cell(
                    "The variance of a sum of $d_k$ independent products is $d_k$ times that of one, so the scores "
                    "grow with $\\sqrt{d_k}$:\n\n$$\\operatorname{Var}(q \\cdot k) = d_k$$\n\n"
                    "- large scores → one weight *near one*,\n- and then **no gradient**.",
                    grade_id,
                    **WRITTEN,
                )
            )
            continue
        if name == "scaled_dot_product_attention":
            cells.append(code_cell(CODE, base, count=5, **SOLUTION))
            cells.append(
                code_cell(
                    "Q = np.eye(3)\nout, w = scaled_dot_product_attention(Q, Q, Q)\nprint(w.round(3))\n"
                    "plt.imshow(w); plt.colorbar()",
                    "own-1",
                    [
                        stream("[[0.411 0.295 0.295]\n [0.295 0.411 0.295]\n [0.295 0.295 0.411]]\n"),
                        shown(image_png=attention_png(), text_plain="<Figure size 324x252 with 2 Axes>"),
                    ],
                    count=6,
                )
            )
        else:
            cells.append(
                code_cell(
                    f"def {name}(*args):\n    # (T_q, T_k)\n    raise NotImplementedError()",
                    base,
                    count=3,
                    **SOLUTION,
                )
            )
        cells.append(code_cell(f"assert {name} is not None, 'define it'", grade_id, count=None, **TEST))
    cells.append(
        code_cell(
            "1 / 0",
            "own-2",
            [
                {
                    "output_type": "error",
                    "ename": "ZeroDivisionError",
                    "evalue": "division by zero",
                    "traceback": [
                        "\x1b[31m---------------------------------------------------------------------\x1b[39m",
                        "\x1b[31mZeroDivisionError\x1b[39m                         Traceback (most recent call last)",
                        "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[9]\x1b[39m\x1b[32m, line 1\x1b[39m\n"
                        "\x1b[32m----> \x1b[39m\x1b[32m1\x1b[39m \x1b[32;1m1\x1b[39m / 0",
                        "\x1b[31mZeroDivisionError\x1b[39m: division by zero",
                    ],
                }
            ],
            count=9,
        )
    )
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells}


def a_result(student: str = "student-01", passed: float = 1.0, seed: int = 1, **changes: Any) -> Result:
    """One graded result in which each check passes with the probability `passed`."""
    draw = random.Random(ascii(f"{student}/{seed}"))
    exercises = []
    for grade_id, title, name, points, checks in EXERCISES:
        if not checks:
            exercises.append(Exercise(grade_id, title, points, kind="written", solution_ids=[grade_id]))
            continue
        verdicts = []
        for check, weight in checks:
            if draw.random() < passed:
                verdicts.append(Check(check, weight, PASSED, hidden=check != "the examples in the notebook"))
            else:
                verdicts.append(
                    Check(
                        check,
                        weight,
                        FAILED,
                        "7 of 18 entries of the weights are wrong, the worst by 0.31. Each row must add up to 1.",
                    )
                )
        total = sum(w for _, w in checks)
        score = points * sum(c.points for c in verdicts if c.passed) / total
        exercises.append(
            Exercise(
                grade_id,
                title,
                points,
                score=score,
                checks=verdicts,
                solution_ids=[name.replace("_", "-")],
                seconds=0.02,
            )
        )
    fields: dict[str, Any] = {
        "student": student,
        "assignment": SET,
        "key": f"key-{student}",
        "seed": 20240917,
        "exercises": exercises,
        "graded_at": "2024-10-02T09:41:07+00:00",
        "grader_version": "0.1.0",
        "assignment_version": "3f9a1c77d2e04b5a",
        "typed_id": student,
        "notebook": notebook(student),
        "timings": {"total": 0.31 + draw.random() * 0.4, "cells": 0.12 + draw.random() * 0.2, "checks": 0.1},
    }
    return Result(**{**fields, **changes})


def exercise_of(result: Result, name: str) -> Exercise:
    return next(e for e in result.exercises if e.grade_id.startswith(name))


def with_misconception(result: Result, name: str) -> Result:
    exercise, says = SAYS[name]
    found = exercise_of(result, exercise.replace("_", "-"))
    found.misconceptions.append(Misconception(name, exercise, says))
    for check in found.checks[1:]:
        check.verdict, check.reason = FAILED, "11 of 15 entries of the weights are wrong, the worst by 0.22."
    found.score = found.points * found.checks[0].points / sum(c.points for c in found.checks)
    return result


def spoil(result: Result, name: str, verdict: str, reason: str) -> Result:
    """Let the last check of an exercise, and those after it in a crash, end badly."""
    found = exercise_of(result, name)
    found.checks[-1].verdict, found.checks[-1].reason = verdict, reason
    found.score = found.points * sum(c.points for c in found.checks if c.passed) / sum(c.points for c in found.checks)
    return result


def example_class() -> list[Result]:
    """Fifteen students: right, mistaken, half finished, messy, dead, hostile, unreadable, absent."""
    students = [f"student-{i:02}" for i in range(1, 16)]
    results = [
        a_result(s, p)
        for s, p in zip(students, [1, 1, 1, 0.95, 0.9, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5, 0.35, 0.0], strict=False)
    ]
    with_misconception(results[3], "divided_by_d_k")
    with_misconception(results[4], "divided_by_d_k")
    with_misconception(results[6], "softmax_over_queries")
    with_misconception(results[7], "keys_from_queries")
    with_misconception(results[8], "divided_by_d_k")
    with_misconception(results[8], "last_key_wins")
    exercise_of(results[6], "self-attention").follow_through = ["scaled_dot_product_attention"]
    results[2].notes = [
        "Your file was called `ps2 (1).ipynb`; it was graded as `ps2-self-attention.ipynb`.",
        "The test cell of exercise 5 was missing and was put back.",
    ]
    results[5].typed_id = "student-06x"
    results[9].typed_id = "student-02"
    spoil(results[7], "scaled", TIMEOUT, "It ran for more than 10 s on a 64 × 64 input and was stopped.")
    spoil(
        results[8],
        "self",
        ERROR,
        "ValueError: matmul: Input operand 1 has a mismatch in its core dimension 0",
    )
    spoil(results[10], "cross", CRASHED, "Your process ended (exit code 1) during this check.")
    spoil(results[10], "self", NOT_REACHED, "Your process had ended in an earlier check.")
    spoil(results[11], "scaled", OUT_OF_MEMORY, "It asked for more than 2 GB.")
    results[10].events = ["called os._exit(1) in the cell `own-1`"]
    results[11].events = ["read /proc/1/environ: refused", "opened a socket to 192.0.2.7: refused"]
    results[11].timings = {"total": 61.2, "cells": 60.0, "checks": 1.1}
    results[7].timings = {"total": 14.8, "cells": 3.4, "checks": 11.3}
    for exercise in results[12].exercises:
        exercise.answered = False
    exercise_of(results[0], "scaled").figures = [
        {"png": attention_png(), "alt": "Your weights for three tokens: each query looks at itself most."}
    ]
    results.append(
        Result(
            students[13],
            SET,
            "",
            status=UNREADABLE,
            reason="The file is not JSON: it ends in the middle of line 812.",
            seed=20240917,
        )
    )
    results.append(Result(students[14], SET, "", status=NOT_SUBMITTED, seed=20240917))
    assert all(r.status == GRADED for r in results[:13])
    return results
