"""Answers by people who knew neither catalogue nor reference: right ones are right, wrong ones lose and are named.

`tests/answers/` holds them, a file for each set and an answer in each line, with what its author believed. They are
strangers' code: it runs in the sandbox like any submission.
`unjudged/` holds answers that wait to be judged by a person before they count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kept import judging_digest, proved_once

from autograder.audit.bench import graded, submission
from autograder.course import Course
from autograder.grading.runner import Settings
from autograder.judging.source import Source
from autograder.notebook.names import bound_names

COURSE = Course(Path(__file__).parents[2])
ANSWERS = Path(__file__).parents[1] / "answers"
NAMES = sorted(path.stem for path in ANSWERS.glob("*.jsonl"))
UNNAMED = {
    **{"ps0-warm-up": 3, "ps1-rnn-attention": 3, "ps2-self-attention": 1, "ps3-multi-head-attention": 1},
    **{"ps6-transformer": 2, "ps7-hand-designed-heads": 27},
    **{"ps8-linear-attention": 4, "ps9-architectures": 13, "ps10-small-language-model": 2},
}
"""Sets with wrong answers of which nothing is said yet, and how many at most; the others have none."""
LEAST_NAMED = 0.95
ONLY_WHERE = "first_check"  # which says where it shows, and of no mistake
WORTHLESS = 3


@dataclass
class Judged:
    """What became of a set's answers: by number, those that lost marks, and those for which a mistake was named."""

    lost: set[int] = field(default_factory=set)
    named: set[int] = field(default_factory=set)


def answers_to(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (ANSWERS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def worthless(text: str, number: int) -> str:
    """A line after a solution that puts a function of no use in the place of all that it binds."""
    return "\n".join(f"{name} = lambda *args, **kwargs: {number}" for name in sorted(bound_names(text)))


def judged(name: str) -> Judged:
    files = COURSE.set_files(name)
    solutions = Source(files.source).solutions
    # a search for misconceptions is cut short after a minute, and goes on with the next answer: these begin it
    cases = {
        f"worthless-{cell}-{n}": submission(files, {**solutions, cell: f"{text}\n\n\n{worthless(text, n)}"})
        for n in range(WORTHLESS)
        for cell, text in solutions.items()
    }
    for number, row in enumerate(answers_to(name)):
        assert row["cell"] in solutions
        student = f"s-{number}"
        cases[student] = submission(files, {**solutions, row["cell"]: row["code"]}, student_id=student)
    found = Judged()
    for result in graded(files, cases, Settings()):
        if result.student.startswith("worthless"):
            continue
        number = int(result.student.removeprefix("s-"))
        if any(e.kind == "auto" and (e.score is None or e.score < e.points) for e in result.exercises):
            found.lost.add(number)
        if any(not m.name.startswith(ONLY_WHERE) for e in result.exercises for m in e.misconceptions):
            found.named.add(number)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_right_answers_get_full_marks_and_wrong_ones_are_named(name: str) -> None:
    rows = answers_to(name)
    right = {number for number, row in enumerate(rows) if row["kind"] == "right"}
    wrong = set(range(len(rows))) - right

    def prove() -> None:
        found = judged(name)
        assert not [rows[n]["mistake"] for n in right & found.lost], "right answers lose marks"
        assert not [rows[n]["mistake"] for n in wrong - found.lost], "wrong answers get full marks"
        unnamed = [rows[n]["mistake"] for n in sorted(wrong - found.named)]
        assert len(unnamed) <= UNNAMED.get(name, 0), unnamed

    proved_once(f"answers-{name}", judging_digest(name, __file__), prove)


def test_nearly_all_wrong_answers_are_named() -> None:
    wrong = sum(row["kind"] != "right" for name in NAMES for row in answers_to(name))
    assert sum(UNNAMED.values()) <= (1 - LEAST_NAMED) * wrong
