"""Feedback for students: one self-contained page per student and set, made from the grader's records alone.

A page shows the score, every check with its verdict and reason, what the grader recognised, and the student's own
cells with their outputs. Task texts and tests are left out: the student has them, and the grader keeps the hidden ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from autograder.html import sanitize as pages
from autograder.results import GRADED, Exercise, Manual, Result

TEXT_CHARACTERS = 20_000
"""Longest text of one output."""
CELL_CHARACTERS = 100_000
"""Longest source of one cell."""
OUTPUTS_PER_CELL = 60
PAGE_CHARACTERS = 1_000_000
"""Most characters of the student's sources and outputs on one page; the rest is named but not shown."""
PAGE_PICTURE_CHARACTERS = 12_000_000
"""The same for pictures, in characters of base64."""

_HIDDEN = re.compile(r"^### BEGIN HIDDEN TESTS.*?(?:^### END HIDDEN TESTS[^\n]*|\Z)", re.DOTALL | re.MULTILINE)
_HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.+?)[ \t#]*$", re.MULTILINE)


@dataclass
class Written:
    """What `write_all` did: the pages written and one line for each that could not be."""

    paths: list[Path] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def score_of(exercise: Exercise, manual: Mapping[str, Manual] | None) -> float | None:
    """Points of one exercise: a person's where given, else the checks'; None where a person still has to mark."""
    by_hand = (manual or {}).get(exercise.grade_id)
    if by_hand is not None and by_hand.score is not None:
        return by_hand.score
    return exercise.score


def title_of(result: Result) -> str:
    """The set's title: the first heading of the notebook, else the set's name."""
    for cell in _cells(result):
        match = _HEADING.search(_source(cell)) if cell.get("cell_type") == "markdown" else None
        if match:
            return match[2].strip()[:200]
    return result.assignment


def render(result: Result, manual: dict[str, Manual] | None = None) -> str:
    """The feedback page of one student and one set, as HTML that needs nothing else.

    `manual` maps grade_ids to what a person gave. Nothing in `result` is trusted to be free of markup.
    """
    return pages.page("feedback.html.j2", **_view(result, manual or {}))


def write_all(
    results: Iterable[Result],
    folder: Path | str,
    manual: Mapping[tuple[str, str], dict[str, Manual]] | None = None,
    done: Callable[[Path], None] | None = None,
) -> Written:
    """Write `folder/<student>/<set>/<set>.html` for each result, each page whole or not at all.

    `results` may be a generator: one result is held at a time. `manual` maps (student, set) to what a person gave;
    `done` is called with the path after each page. A name that is no safe file name and a page that cannot be
    written become a line in `problems`, and the others are written all the same.
    """
    written = Written()
    for result in results:
        try:
            student = pages.checked_name(result.student, "student's name")
            name = pages.checked_name(result.assignment, "set's name")
            page = render(result, (manual or {}).get((result.student, result.assignment)))
            path = pages.write_page(Path(folder) / student / name / f"{name}.html", page)
        except (pages.BadName, OSError) as error:
            written.problems.append(pages.clean(f"{result.student} ({result.assignment}): {error}"))
            continue
        written.paths.append(path)
        if done is not None:
            done(path)
    return written


# --- the page's values -----------------------------------------------------------------------------------------------


def _view(result: Result, manual: Mapping[str, Manual]) -> dict[str, Any]:
    budget = _Budget()
    groups, rest = _groups(result)
    exercises = [
        _exercise_view(exercise, manual, groups.get(exercise.grade_id, []), budget, number)
        for number, exercise in enumerate(result.exercises, 1)
    ]
    known = [e for e in exercises if e["score"] is not None]
    waiting = [e for e in exercises if e["score"] is None and e["written"]]
    points = sum(e["points"] for e in known)
    score = sum(e["score"] for e in known)
    return {
        "result": result,
        "graded": result.status == GRADED,
        "title": title_of(result),
        "score": score,
        "points": points,
        "share": min(1.0, max(0.0, score / points)) if points else None,
        "waiting": sum(e["points"] for e in waiting),
        "only_checks": not any(e["by_hand"] or e["written"] for e in known),
        "other_id": result.typed_id if result.typed_id not in (None, result.student) else None,
        "exercises": exercises,
        "rest": _group_view(rest, budget),
    }


def _exercise_view(
    exercise: Exercise,
    manual: Mapping[str, Manual],
    cells: list[dict[str, Any]],
    budget: _Budget,
    number: int,
) -> dict[str, Any]:
    score = score_of(exercise, manual)
    by_hand = manual.get(exercise.grade_id, Manual())
    weights = sum(c.points for c in exercise.checks)
    return {
        "number": number,
        "title": exercise.title or exercise.grade_id,
        "written": exercise.kind != "auto",
        "points": exercise.points,
        "score": score,
        "share": min(1.0, max(0.0, score / exercise.points)) if score is not None and exercise.points else None,
        "by_hand": by_hand.score is not None,
        "auto_score": exercise.score,
        "comment": pages.markdown(by_hand.comment) if by_hand.comment.strip() else "",
        "answered": exercise.answered,
        "checks": [
            # A check's weight says what part of the cell's points it carries.
            {"check": c, "worth": exercise.points * c.points / weights if weights else 0.0}
            for c in exercise.checks
        ],
        "says": list(dict.fromkeys(m.says for m in exercise.misconceptions)),
        "follow_through": [f"`{name}`" for name in exercise.follow_through],
        "figures": [_figure(f.get("png"), f.get("alt", ""), budget) for f in exercise.figures],
        "group": _group_view(cells, budget),
    }


@dataclass
class _Budget:
    """What one page may still show of the student's texts and pictures, in characters."""

    text: int = PAGE_CHARACTERS
    pictures: int = PAGE_PICTURE_CHARACTERS

    def take(self, text: str, limit: int) -> tuple[str, str]:
        """The part of `text` that may be shown, and a remark if that is not all of it."""
        text, left_out = pages.shorten(text, limit)
        if len(text) > self.text:
            return "", f"{len(text):,} characters are not shown: this page is long enough."
        self.text -= len(text)
        return text, f"{left_out:,} characters in the middle were left out." if left_out else ""


def _cells(result: Result) -> list[dict[str, Any]]:
    cells = (result.notebook or {}).get("cells")
    return [c for c in cells if isinstance(c, dict)] if isinstance(cells, list) else []


def _source(cell: dict[str, Any]) -> str:
    return pages.text_of(cell.get("source"))


def _nbgrader(cell: dict[str, Any]) -> dict[str, Any]:
    metadata = cell.get("metadata")
    found = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _groups(result: Result) -> tuple[dict[str, list[dict[str, Any]]], list[dict[str, Any]]]:
    """The student's cells by exercise (grade_id), in notebook order, and those that belong to none.

    An exercise owns the cells up to and including its graded cell, from the heading that gives it its title.
    """
    graded = {e.grade_id: e for e in result.exercises}
    groups: dict[str, list[dict[str, Any]]] = {}
    rest: list[dict[str, Any]] = []
    pending: list[dict[str, Any]] = []
    for cell in _cells(result):
        pending.append(cell)
        grade_id = _nbgrader(cell).get("grade_id") or cell.get("id")
        exercise = graded.get(grade_id) if isinstance(grade_id, str) else None
        if exercise is None or exercise.grade_id in groups:
            continue
        start = 0
        for i, earlier in enumerate(pending):
            if earlier.get("cell_type") == "markdown" and any(
                m[2].strip() == exercise.title.strip() for m in _HEADING.finditer(_source(earlier))
            ):
                start = i
                break
        rest += pending[:start]
        groups[exercise.grade_id] = pending[start:]
        pending = []
    return groups, rest + pending


def _group_view(cells: list[dict[str, Any]], budget: _Budget) -> dict[str, Any]:
    """What is shown of a group of cells: the student's, and locked ones that put something out."""
    shown = [view for cell in cells if (view := _cell_view(cell, budget)) is not None]
    return {
        "cells": shown,
        "count": len(shown),
        "outputs": sum(len(c["outputs"]) for c in shown),
        "errors": sum(any(o["kind"] == "error" for o in c["outputs"]) for c in shown),
    }


def _cell_view(cell: dict[str, Any], budget: _Budget) -> dict[str, Any] | None:
    marks = _nbgrader(cell)
    locked = bool(marks.get("locked")) or (bool(marks.get("grade")) and not marks.get("solution"))
    kind = cell.get("cell_type")
    outputs = _outputs(cell, budget) if kind == "code" else []
    if locked and not outputs:
        return None
    source = _source(cell)
    if marks.get("grade") and not marks.get("solution"):
        # Results hold only the released text of tests. Should one ever hold more, it ends here.
        source = _HIDDEN.sub("", source)
    if not source.strip() and not outputs:
        return None
    source, remark = budget.take(source, CELL_CHARACTERS)
    count = cell.get("execution_count")
    return {
        "kind": kind if kind in ("code", "markdown") else "raw",
        "count": count if isinstance(count, int) and 0 <= count < 10**6 else None,
        "given": locked,
        "html": pages.markdown(source) if kind == "markdown" else pages.code(source) if kind == "code" else source,
        "remark": remark,
        "outputs": outputs,
        "attachments": _attachments(cell, budget) if kind == "markdown" else [],
    }


def _outputs(cell: dict[str, Any], budget: _Budget) -> list[dict[str, Any]]:
    """The outputs of a code cell that may be shown, streams of one name joined, the others named in a remark."""
    outputs = cell.get("outputs")
    if not isinstance(outputs, list):
        return []
    joined: list[dict[str, Any]] = []
    for output in (o for o in outputs if isinstance(o, dict)):
        if output.get("output_type") != "stream":
            joined.append(output)
            continue
        name = output.get("name")
        last = joined[-1] if joined else {}
        if last.get("output_type") != "stream" or name != last.get("name"):
            last = {"output_type": "stream", "name": name, "parts": []}
            joined.append(last)
        last["parts"].append(pages.text_of(output.get("text")))
    views = [view for output in joined[:OUTPUTS_PER_CELL] if (view := _output(output, budget)) is not None]
    if len(joined) > OUTPUTS_PER_CELL:
        views.append(_remark(f"{len(joined) - OUTPUTS_PER_CELL:,} more outputs of this cell are not shown."))
    return views


def _output(output: dict[str, Any], budget: _Budget) -> dict[str, Any] | None:
    kind = output.get("output_type")
    if kind == "stream":
        text = "".join(output["parts"])
        return _text("stderr" if output["name"] == "stderr" else "text", text, budget) if text.strip() else None
    if kind == "error":
        traceback = output.get("traceback")
        lines = [line for line in traceback if isinstance(line, str)] if isinstance(traceback, list) else []
        name = f"{pages.text_of(output.get('ename'))}: {pages.text_of(output.get('evalue'))}"
        return _text("error", "\n".join(lines) or name, budget)
    if kind not in ("execute_result", "display_data"):
        return None
    data = output.get("data")
    data = data if isinstance(data, dict) else {}
    plain = pages.text_of(data.get("text/plain"))
    if "image/png" in data:
        return _figure(data["image/png"], f"output of the cell: {plain.strip()[:200] or 'a picture'}", budget)
    if plain.strip():
        return _text("text", plain, budget)
    others = sorted(k for k in data if isinstance(k, str) and k != "text/plain")
    return _remark(f"An output of type {others[0][:60]} is not shown here.") if others else None


def _text(kind: str, text: str, budget: _Budget) -> dict[str, Any]:
    # Cut before colours are read, so that no amount of escape sequences costs more than the limit.
    text, remark = budget.take(pages.overwritten(text), TEXT_CHARACTERS)
    return {"kind": kind, "html": pages.terminal(text.rstrip("\n")), "remark": remark}


def _remark(text: str) -> dict[str, Any]:
    return {"kind": "remark", "html": text, "remark": ""}


def _figure(data: Any, alt: Any, budget: _Budget) -> dict[str, Any]:
    try:
        png, width, height = pages.checked_png(data)
    except pages.BadPicture as error:
        return _remark(f"A picture is not shown: {error}.")
    if len(png) > budget.pictures:
        return _remark("A picture is not shown: this page holds enough of them.")
    budget.pictures -= len(png)
    # Base64 has no character that HTML treats in a special way, and escaping megabytes takes time.
    source = Markup("data:image/png;base64," + png)
    size = {"width": width, "height": height}
    return {"kind": "picture", "src": source, "alt": pages.text_of(alt), "remark": ""} | size


def _attachments(cell: dict[str, Any], budget: _Budget) -> list[dict[str, Any]]:
    """The pictures pasted into a Markdown cell, such as a derivation on paper."""
    attachments = cell.get("attachments")
    views = []
    for name, data in list(attachments.items())[:20] if isinstance(attachments, dict) else []:
        if isinstance(data, dict) and "image/png" in data:
            views.append(_figure(data["image/png"], f"picture in the answer: {name}", budget))
        else:
            views.append(_remark(f"The attachment {name!s:.60} is not shown here: only PNG pictures are."))
    return views
