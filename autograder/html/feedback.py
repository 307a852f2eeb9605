"""Feedback for students: one self-contained page per student and set, made from the grader's records alone.

A page shows the score, every check with its verdict, its reason and a call that shows it, what the grader recognised
and what to try next, and the student's own cells with their outputs. Task texts and tests are left out: the student has
them, and the grader keeps the hidden ones.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from markupsafe import Markup

from autograder import files
from autograder.gradebook.reader import CellScore, Standing
from autograder.html import sanitize as pages
from autograder.html.sections import Section
from autograder.results import GRADED, Check, Exercise, Result
from autograder.sandbox.inside.workspace import OutOfTime, time_limit
from autograder.text import shown_text

TEXT_CHARACTERS = 20_000  # longest text of one output
CELL_CHARACTERS = 100_000  # longest source of one cell
OUTPUTS_PER_CELL = 60
PAGE_SECONDS = 120.0  # of computing, for one student's page: the class waits meanwhile
CALL_CHARACTERS = 2_000  # longest call, and longest answer to it
PAGE_CHARACTERS = 1_000_000  # most of the student's sources and outputs on one page; the rest is named but not shown

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.+)$", re.MULTILINE)
_NUMBER = re.compile(r"^Exercise (\d+)\b")
_RAISED = re.compile(
    r"line (\d{1,6}) of your cell(?:, in `[^`]*`)?: `(.*?)`(?=\)|$)"
)  # as the judge says it in reasons

Cell = dict[str, Any]
"""A cell of a result's notebook, of the shape that the judge gives it; what a student wrote in it is any text."""


@dataclass
class Written:
    """What `write_all` did: the pages written and one line for each that could not be."""

    paths: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def score_of(exercise: Exercise, standing: Standing) -> float | None:
    """Points of one exercise: a person's where given, else the checks'; None where a person still has to mark."""
    cell = standing.cells.get(exercise.grade_id, CellScore())
    return cell.score if cell.by_hand else exercise.score


def title_of(result: Result) -> str:
    """The set's title: the first heading of the notebook, else the set's name."""
    return next((heading[:200] for cell in _cells(result) for heading in _headings(cell)), result.assignment)


def render(result: Result, standing: Standing | None = None, sections: Mapping[int, Sequence[Section]] = {}) -> str:
    """The feedback page of one student and one set, as HTML that needs nothing else.

    `sections` are those of the book by the exercise's number. Nothing in `result` is trusted to be free of markup.
    """
    standing, budget = standing or Standing(), _Budget()
    groups, rest = _groups(result)
    exercises = [_exercise_view(e, standing, groups.get(e.grade_id, []), budget, sections) for e in result.exercises]
    repeated = Counter(e["title"] for e in exercises)
    for view in exercises:  # parts of an exercise share its heading
        is_part = repeated[view["title"]] > 1
        view["part"] = view["grade_id"].removesuffix("-tests").replace("-", " ") if is_part else ""
    known = [e for e in exercises if e["score"] is not None]
    points = sum(e["points"] for e in known)
    score = standing.mark(sum(e["score"] for e in known))
    return pages.page(
        "feedback.html.j2",
        result=result,
        standing=standing,
        graded=result.status == GRADED and not standing.excused,
        title=title_of(result),
        score=score,
        points=points,
        share=_share(score or 0.0, points),
        waiting=sum(e["points"] for e in exercises if e["score"] is None and e["written"]),
        only_checks=not any(e["by_hand"] or e["written"] for e in known),
        exercises=exercises,
        rest=_group_view(rest, budget),
    )


def write_all(
    results: Iterable[Result],
    folder: Path,
    marks: Mapping[str, Standing] = {},
    sections: Mapping[int, Sequence[Section]] = {},
) -> Written:
    """Write `folder/<student>/<set>/<set>.html` for each result of a set, each page whole or not at all.

    `results` may be a generator: one result is held at a time.
    A name that is no safe file name and a page that cannot be written become a line in `problems`, and the others are
    written all the same.
    """
    written = Written()
    for result in results:
        try:
            student = pages.checked_name(result.student, "student's name")
            name = pages.checked_name(result.assignment, "set's name")
            with time_limit(PAGE_SECONDS, again=0, clock=time.process_time):
                page = render(result, marks.get(result.student), sections)
            path = folder / student / name / f"{name}.html"
            files.write_atomically(path, page.encode())
            written.paths.append(path)
        except (pages.BadName, OSError, OutOfTime) as error:
            written.problems.append(pages.clean(f"{result.student} ({result.assignment}): {error}"))
    return written


def _exercise_view(
    exercise: Exercise,
    standing: Standing,
    cells: list[Cell],
    budget: _Budget,
    sections: Mapping[int, Sequence[Section]],
) -> dict[str, Any]:
    score = score_of(exercise, standing)
    # a comment on a student's cell belongs to the exercise that judges it
    ids = dict.fromkeys([*exercise.solution_ids, exercise.grade_id])
    entered = {i: standing.cells.get(i, CellScore()) for i in ids}
    share = None if score is None else _share(score, exercise.points)
    failed = [c for c in exercise.checks if not c.passed]
    number = _NUMBER.match(exercise.title)
    verdicts = _verdicts(exercise)
    raised = {(int(m[1]), m[2]) for c in failed for m in _RAISED.finditer(c.reason)}
    return {
        **vars(exercise),
        "title": exercise.title or exercise.grade_id,
        "written": exercise.kind != "auto",
        "score": score,
        "share": share,
        "by_hand": entered[exercise.grade_id].by_hand,
        "auto_score": exercise.score,
        "comment": pages.markdown("\n\n".join(cell.comment for cell in entered.values() if cell.comment)),
        "verdicts": verdicts,
        "says": list(dict.fromkeys(m.says for m in exercise.misconceptions)),
        "has_call": any(v["example"] for v in verdicts),
        "read": sections.get(int(number[1]), ()) if number and (failed or not exercise.answered) else (),
        "follow_through": [f"`{name}`" for name in exercise.follow_through],
        "figures": [_figure(f["png"], f["alt"]) for f in exercise.figures],
        "is_open": exercise.kind != "auto" or bool(failed and exercise.answered),
        "group": _group_view(cells, budget, raised),
    }


def answer_cells(result: Result, grade_id: str) -> list[dict[str, Any]]:
    """The student's cells with the answer to one question, as views for those who mark it."""
    shown: list[dict[str, Any]] = _group_view(_groups(result)[0].get(grade_id, []), _Budget(200_000))["cells"]
    return shown


def _verdicts(exercise: Exercise) -> list[dict[str, Any]]:
    """What is said of the checks, in their order; those that did not pass for the same reason share one entry."""
    said: dict[Any, list[Check]] = {}
    for number, check in enumerate(exercise.checks):
        said.setdefault(number if check.passed or not check.reason else check.reason, []).append(check)
    total = sum(c.points for c in exercise.checks)
    return [
        {
            # a check's weight says what part of the cell's points it carries
            "checks": [(c, exercise.points * c.points / total if total else 0) for c in checks],
            "reason": checks[0].reason,
            "example": _example(checks) if exercise.answered else None,
        }
        for checks in said.values()
    ]


def _example(checks: list[Check]) -> dict[str, Any] | None:
    """The shortest call among those that the grader kept for these checks."""
    shown = [check.example for check in checks if check.example]
    if not shown:
        return None
    best = min(shown, key=lambda example: len(example["call"]))
    call, gave = (pages.shorten(best[part], CALL_CHARACTERS)[0] for part in ("call", "gave"))
    return {"says": best["says"], "call": pages.code(call), "gave": gave}


def _share(score: float, points: float) -> float | None:
    return min(1.0, max(0.0, score / points)) if points else None


@dataclass
class _Budget:
    """What one page may still show of the student's texts, in characters."""

    text: int = PAGE_CHARACTERS

    def take(self, text: str, limit: int) -> tuple[str, str]:
        """The part of `text` that may be shown, and a remark if that is not all of it."""
        text, left_out = pages.shorten(text, limit)
        if len(text) > self.text:
            return "", f"{len(text):,} characters are not shown: this page is long enough."
        self.text -= len(text)
        return text, f"{left_out:,} characters in the middle were left out." if left_out else ""


def _cells(result: Result) -> list[Cell]:
    return result.notebook["cells"] if result.notebook else []


def _headings(cell: Cell) -> list[str]:
    found = _HEADING.finditer(cell["source"]) if cell["cell_type"] == "markdown" else ()
    # cut off here: a search for the end of a long row of marks takes the square of its length
    return [heading for match in found if (heading := match[1].rstrip(" \t#"))]


def _groups(result: Result) -> tuple[dict[str, list[Cell]], list[Cell]]:
    """The student's cells by exercise (grade_id), in notebook order, and those that belong to none.

    An exercise owns the cells up to and including its graded cell, from the heading that gives it its title.
    """
    graded = {e.grade_id: e for e in result.exercises}
    groups: dict[str, list[Cell]] = {}
    rest: list[Cell] = []
    pending: list[Cell] = []
    for cell in _cells(result):
        pending.append(cell)
        exercise = graded.pop(cell["metadata"].get("nbgrader", {}).get("grade_id", cell["id"]), None)
        if exercise is not None:
            title = exercise.title.strip()
            start = next((i for i, earlier in enumerate(pending) if title in _headings(earlier)), 0)
            rest += pending[:start]
            groups[exercise.grade_id] = pending[start:]
            pending = []
    return groups, rest + pending


def _group_view(cells: list[Cell], budget: _Budget, raised: Collection[tuple[int, str]] = ()) -> dict[str, Any]:
    """What is shown of a group of cells: the student's, and locked ones that put something out.

    `raised` are the numbers and texts of lines in which errors were raised.
    """
    shown = [view for cell in cells if (view := _cell_view(cell, budget, raised)) is not None]
    return {
        "cells": shown,
        "count": len(shown),
        "marked": any(c["marked"] for c in shown),
        "outputs": sum(len(c["outputs"]) for c in shown),
        "errors": sum(any(o["kind"] == "error" for o in c["outputs"]) for c in shown),
    }


def _cell_view(cell: Cell, budget: _Budget, raised: Collection[tuple[int, str]]) -> dict[str, Any] | None:
    marks = cell["metadata"].get("nbgrader", {})
    if marks.get("grade") and not marks.get("solution"):  # a test: its output says again what stands above
        return None
    given = bool(marks.get("locked"))
    kind, source = cell["cell_type"], cell["source"]
    outputs = _outputs(cell["outputs"], budget) if kind == "code" else []
    if not outputs and (given or not source.strip()):
        return None
    source, remark = budget.take(source, CELL_CHARACTERS)
    marked = _marked(source, raised) if kind == "code" and not given and not remark else ()
    renderers: dict[str, Callable[[str], str]] = {
        "markdown": pages.markdown,
        "code": lambda text: pages.code(text, marked),
    }
    return {
        "kind": kind,
        "given": given,
        "html": renderers.get(kind, str)(source),
        "marked": [str(number) for number in marked],
        "remark": remark,
        "outputs": outputs,
    }


def _marked(source: str, raised: Collection[tuple[int, str]]) -> tuple[int, ...]:
    """The numbers of those lines of a cell that read as the ones in which errors were raised."""
    lines = source.split("\n") if raised else []
    found = {n for n, text in raised if n <= len(lines) and n and shown_text(lines[n - 1].strip()[:200]) == text}
    return tuple(sorted(found))


def _outputs(outputs: list[dict[str, Any]], budget: _Budget) -> list[dict[str, Any]]:
    """The outputs of a code cell that may be shown, streams of one name joined, the others named in a remark."""
    joined: list[dict[str, Any]] = []
    for name, alike in groupby(outputs, key=lambda output: output.get("name")):  # only streams have one
        if name is None:
            joined += alike
        else:
            joined.append({"output_type": "stream", "name": name, "text": "".join(o["text"] for o in alike)})
    views = [view for output in joined[:OUTPUTS_PER_CELL] if (view := _output(output, budget)) is not None]
    if len(joined) > OUTPUTS_PER_CELL:
        views.append(_remark(f"{len(joined) - OUTPUTS_PER_CELL:,} more outputs of this cell are not shown."))
    return views


def _output(output: dict[str, Any], budget: _Budget) -> dict[str, Any] | None:
    kind = output["output_type"]
    if kind == "stream":
        text = output["text"]
        return _text("stderr" if output["name"] == "stderr" else "text", text, budget) if text.strip() else None
    if kind == "error":
        name = f"{output['ename']}: {output['evalue']}"
        return _text("error", "\n".join(output["traceback"]) or name, budget)
    data = output["data"]
    plain = data.get("text/plain", "")
    if "image/png" in data:
        return _figure(data["image/png"], f"output of the cell: {plain.strip()[:200] or 'a picture'}")
    return _text("text", plain, budget) if plain.strip() else None


def _text(kind: str, text: str, budget: _Budget) -> dict[str, Any]:
    # Cut before colours are read, so that no amount of escape sequences costs more than the limit.
    text, remark = budget.take(pages.overwritten(text), TEXT_CHARACTERS)
    return {"kind": kind, "html": pages.terminal(text.rstrip("\n")), "remark": remark}


def _remark(text: str) -> dict[str, Any]:
    return {"kind": "remark", "html": text, "remark": ""}


def _figure(data: str, alt: str) -> dict[str, Any]:
    try:
        png, width, height = pages.checked_png(data)
    except pages.BadPicture as error:
        return _remark(f"A picture is not shown: {error}.")
    # Base64 has no character that HTML treats in a special way, and escaping megabytes takes time.
    source = Markup("data:image/png;base64," + png)
    return {"kind": "picture", "src": source, "alt": alt, "width": width, "height": height, "remark": ""}
