"""The class report for the instructor: one self-contained page per set, and an index over the sets of a course.

It reads results (and what was marked by hand) and nothing else. Submissions that could not be read or were not handed
in are counted and named as such; they have no score and enter no statistic.
"""

from __future__ import annotations

import base64
import hashlib
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from autograder.html import plots
from autograder.html import sanitize as pages
from autograder.html.feedback import score_of, title_of
from autograder.html.similarity import Pair
from autograder.results import (
    CRASHED,
    GRADED,
    NOT_SUBMITTED,
    OUT_OF_MEMORY,
    PASSED,
    TIMEOUT,
    UNREADABLE,
    VERDICTS,
    Exercise,
    Manual,
    Result,
)

Marks = Mapping[tuple[str, str], Mapping[str, Manual]]
"""What was marked by hand: (student, set) → grade_id → points and comment."""

FEWEST_FOR_DISCRIMINATION = 5
"""With fewer students the correlation of one exercise with the others says nothing."""
NEEDS_A_WORD = 0.4
"""Below this share of the points a student is listed as one who may need help."""
SLOWEST = 10


@dataclass
class _Column:
    """One exercise of the set over the whole class."""

    grade_id: str
    number: int
    title: str
    points: float
    written: bool
    shares: list[float] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def short(self) -> str:
        return self.grade_id.removesuffix("-tests")


@dataclass
class _Row:
    """One student's line: `score` is None without a graded submission, `waiting` the points still to be marked."""

    result: Result
    scores: list[float | None]
    score: float | None
    known: float
    waiting: float
    flags: list[tuple[str, str]]
    href: str | None

    @property
    def share(self) -> float | None:
        return self.score / self.known if self.score is not None and self.known else None

    @property
    def seconds(self) -> float | None:
        return self.result.timings.get("total")


def render(
    results: Sequence[Result],
    title: str = "",
    *,
    old: Mapping[str, Result | float | None] | None = None,
    alike: Sequence[Pair] = (),
    manual: Marks | None = None,
    feedback: str | None = None,
    index: str | None = None,
) -> str:
    """The report on one set.

    `old` maps students to their results (or bare scores) before a regrade: old and new stand side by side. `alike`
    are pairs with near-identical code. `feedback` is the relative address of the feedback folder, `index` that of the
    course's index; both become links.
    """
    manual = manual or {}
    results = sorted(results, key=lambda r: r.student)
    columns = _columns(results)
    rows = [_row(r, columns, manual, results, feedback) for r in results]
    graded = [row for row in rows if row.score is not None]
    by_student = {row.result.student: row for row in rows}
    _statistics(columns, graded)
    name = results[0].assignment if results else ""
    sandboxes = Counter(r.sandbox for r in results if r.status == GRADED)
    return _page(
        "report.html.j2",
        title=title or next((title_of(r) for r in results if r.notebook), name) or "Class report",
        name=name,
        index=index,
        results=results,
        counts=_counts(results),
        rows=rows,
        columns=columns,
        summary=_summary(graded),
        sandboxes=sandboxes,
        unsafe=sandboxes.get("none", 0),
        versions=_versions(results),
        unreadable=[row for row in rows if row.result.status == UNREADABLE],
        absent=[row for row in rows if row.result.status == NOT_SUBMITTED],
        struggling=[r for r in graded if r.share is not None and r.share < NEEDS_A_WORD],
        needs_a_word=NEEDS_A_WORD,
        misconceptions=_misconceptions(columns, graded),
        checks=_checks(columns, graded),
        verdicts=VERDICTS,
        regraded=_regraded(rows, columns, old, manual) if old else None,
        alike=[(by_student[p.one], by_student[p.other], p) for p in alike],
        events=[(row, event) for row in rows for event in row.result.events],
        slowest=sorted((r for r in rows if r.seconds is not None), key=lambda r: -r.seconds)[:SLOWEST],
        fewest=FEWEST_FOR_DISCRIMINATION,
        plots=_plots(columns, graded, rows),
    )


def render_course(
    sets: Mapping[str, Sequence[Result]],
    title: str = "Class report",
    *,
    manual: Marks | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """The index over several sets, in the order given: each set in a line, each student in a line.

    `links` maps sets to the addresses of their reports; by default `<set>.html` beside the index.
    """
    manual = manual or {}
    overview, shares = [], {}
    for name, results in sets.items():
        columns = _columns(results)
        rows = [_row(r, columns, manual, results, None) for r in results]
        graded = [row for row in rows if row.score is not None]
        _statistics(columns, graded)
        found = _misconceptions(columns, graded)
        measured = [c for c in columns if c.stats["mean"] is not None]
        overview.append(
            {
                "name": name,
                "title": next((title_of(r) for r in results if r.notebook), name),
                "href": (links or {}).get(name, f"{quote(pages.clean(name), safe='')}.html"),
                "counts": _counts(results),
                "summary": _summary(graded),
                "hardest": min(measured, key=lambda c: c.stats["mean"], default=None),
                "misconception": found[0] if found else None,
                "events": sum(len(r.events) for r in results),
                "unsafe": sum(r.sandbox == "none" and r.status == GRADED for r in results),
            }
        )
        shares[name] = {row.result.student: row for row in rows}
    students = sorted({student for by_student in shares.values() for student in by_student})
    lines = []
    for student in students:
        cells = [shares[name].get(student) for name in sets]
        known = [row for row in cells if row is not None and row.score is not None]
        points = sum(row.known for row in known)
        latest = [row for row in cells if row is not None][-2:]
        stuck = len(latest) == 2 and all(row.share is None or row.share < NEEDS_A_WORD for row in latest)
        lines.append(
            {
                "student": student,
                "cells": cells,
                "score": sum(row.score for row in known) if known else None,
                "points": points,
                "stuck": stuck,
            }
        )
    strips = [(o["name"], [r.share for r in shares[o["name"]].values() if r.share is not None]) for o in overview]
    return _page(
        "course.html.j2",
        title=title,
        overview=overview,
        students=lines,
        stuck=[line for line in lines if line["stuck"]],
        needs_a_word=NEEDS_A_WORD,
        unsafe=sum(o["unsafe"] for o in overview),
        plot=plots.score_strips(strips) if any(s for _, s in strips) else None,
    )


def write_all(
    sets: Mapping[str, Sequence[Result]],
    folder: Path | str,
    title: str = "Class report",
    *,
    old: Mapping[str, Mapping[str, Result | float | None]] | None = None,
    alike: Mapping[str, Sequence[Pair]] | None = None,
    manual: Marks | None = None,
    feedback: str | None = "../feedback",
) -> list[Path]:
    """Write `folder/<set>.html` for each set and `folder/index.html`.

    `old` and `alike` map sets to what `render` takes.

    Raises pages.UnsafeName for a set whose name cannot be a file's, and OSError.
    """
    folder = Path(folder)
    paths = []
    for name, results in sets.items():
        page = render(
            results,
            old=(old or {}).get(name),
            alike=(alike or {}).get(name, ()),
            manual=manual,
            feedback=feedback,
            index="index.html",
        )
        paths.append(pages.write_page(folder / f"{pages.safe_name(name, 'set’s name')}.html", page))
    paths.append(pages.write_page(folder / "index.html", render_course(sets, title, manual=manual)))
    return paths


# --- one set in numbers ----------------------------------------------------------------------------------------------


def _columns(results: Sequence[Result]) -> list[_Column]:
    """The exercises of the set in notebook order, as the fullest result has them; then any that only others have."""
    graded = [r for r in results if r.status == GRADED]
    columns: dict[str, _Column] = {}
    for result in sorted(graded, key=lambda r: -len(r.exercises)):
        for e in result.exercises:
            if e.grade_id not in columns:
                written = e.kind != "auto"
                columns[e.grade_id] = _Column(e.grade_id, len(columns) + 1, e.title or e.grade_id, e.points, written)
    return list(columns.values())


def _row(
    result: Result, columns: Sequence[_Column], manual: Marks, results: Sequence[Result], feedback: str | None
) -> _Row:
    marks = manual.get((result.student, result.assignment))
    exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
    scores = [score_of(exercises[c.grade_id], marks) if c.grade_id in exercises else None for c in columns]
    known = [e for e in exercises.values() if score_of(e, marks) is not None]
    waiting = [e for e in exercises.values() if score_of(e, marks) is None and e.kind != "auto"]
    return _Row(
        result=result,
        scores=scores,
        score=sum(score_of(e, marks) for e in known) if result.status == GRADED else None,
        known=sum(e.points for e in known),
        waiting=sum(e.points for e in waiting),
        flags=_flags(result, results),
        href=_href(result, feedback),
    )


def _href(result: Result, feedback: str | None) -> str | None:
    """Where the student's feedback is, if there can be any: a name that is unsafe in paths has no page."""
    if feedback is None:
        return None
    try:
        student, name = quote(pages.safe_name(result.student)), quote(pages.safe_name(result.assignment))
    except pages.UnsafeName:
        return None
    return f"{feedback}/{student}/{name}/{name}.html"


def _flags(result: Result, results: Sequence[Result]) -> list[tuple[str, str]]:
    """Short words for the table, each with the sentence behind it."""
    flags = []
    if result.typed_id not in (None, result.student):
        owner = "another student's" if any(r.student == result.typed_id for r in results) else "nobody's in this class"
        flags.append(("other id", f"typed the id {result.typed_id!r:.80}, {owner}; graded with its numbers"))
    verdicts = Counter(c.verdict for e in result.exercises for c in e.checks)
    flags += [
        (word, f"{pages.amount(verdicts[word], 'check')} ended so")
        for word in (TIMEOUT, CRASHED, OUT_OF_MEMORY)
        if verdicts[word]
    ]
    if result.events:
        flags.append(("event", "; ".join(result.events)))
    replaced = sorted({name for e in result.exercises for name in e.follow_through})
    if replaced:
        flags.append(("follow-through", f"judged with our {pages.listed(replaced)}"))
    empty = sum(not e.answered for e in result.exercises)
    if empty:
        flags.append((f"{empty} unanswered", "left as released"))
    if result.notes:
        flags.append(("note", " ".join(result.notes)))
    return flags


def _counts(results: Sequence[Result]) -> dict[str, int]:
    counts = Counter(r.status for r in results)
    return {status: counts.pop(status, 0) for status in (GRADED, UNREADABLE, NOT_SUBMITTED)} | dict(counts)


def _summary(graded: Sequence[_Row]) -> dict[str, Any]:
    """Mean, median and spread of the scores; None where there is nothing to average."""
    scores = [row.score for row in graded]
    return {
        "n": len(scores),
        "mean": statistics.fmean(scores) if scores else None,
        "median": statistics.median(scores) if scores else None,
        "spread": statistics.stdev(scores) if len(scores) > 1 else None,
        "points": max((row.known for row in graded), default=0.0),
        "waiting": sum(1 for row in graded if row.waiting),
        "waiting_points": max((row.waiting for row in graded), default=0.0),
        "seconds": statistics.median(t) if (t := [r.seconds for r in graded if r.seconds is not None]) else None,
    }


def _statistics(columns: Sequence[_Column], graded: Sequence[_Row]) -> None:
    """Fill in each column: shares of the points, and how the exercise goes with the rest of the set."""
    for j, column in enumerate(columns):
        pairs = [
            (row.scores[j] / column.points, row.score - row.scores[j])
            for row in graded
            if row.scores[j] is not None and column.points
        ]
        column.shares = [share for share, _ in pairs]
        n = len(pairs)
        mean = statistics.fmean(column.shares) if n else None
        column.stats = {
            "n": n,
            "mean": mean,
            "full": sum(s >= 1 - 1e-9 for s in column.shares) / n if n else None,
            "zero": sum(s <= 1e-9 for s in column.shares) / n if n else None,
            "difficulty": None if mean is None else 1 - mean,
            "word": None if mean is None else "easy" if mean >= 0.85 else "medium" if mean >= 0.5 else "hard",
            "discrimination": discrimination(pairs),
        }


def discrimination(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Correlation (−1 to 1) of an exercise with the rest of the set, from (exercise, rest) of each student.

    None with fewer than five students, or when all have the same in one of the two.
    """
    if len(pairs) < FEWEST_FOR_DISCRIMINATION:
        return None
    item, rest = np.asarray(pairs, dtype=float).T
    if np.ptp(item) < 1e-9 or np.ptp(rest) < 1e-9:
        return None
    return float(np.corrcoef(item, rest)[0, 1])


def _exercises(row: _Row) -> dict[str, Exercise]:
    return {e.grade_id: e for e in row.result.exercises}


def _misconceptions(columns: Sequence[_Column], graded: Sequence[_Row]) -> list[dict[str, Any]]:
    """Each misconception that occurred, the most frequent first, with the students it was seen in."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in graded:
        exercises = _exercises(row)
        for column in columns:
            for m in exercises[column.grade_id].misconceptions if column.grade_id in exercises else []:
                entry = found.setdefault(
                    (column.grade_id, m.name), {"column": column, "name": m.name, "says": m.says, "rows": []}
                )
                if row not in entry["rows"]:
                    entry["rows"].append(row)
    for entry in found.values():
        entry["count"] = len(entry["rows"])
        entry["share"] = entry["count"] / len(graded)
    return sorted(found.values(), key=lambda e: (-e["count"], e["column"].number, e["name"]))


def _checks(columns: Sequence[_Column], graded: Sequence[_Row]) -> list[dict[str, Any]]:
    """For each exercise its checks in order, with how often each verdict was given."""
    tables = []
    for column in columns:
        counts: dict[str, Counter[str]] = {}
        for row in graded:
            exercise = _exercises(row).get(column.grade_id)
            for check in exercise.checks if exercise else []:
                counts.setdefault(check.name, Counter())[check.verdict] += 1
        lines = [
            {"name": name, "counts": c, "total": c.total(), "passed": c[PASSED] / c.total()}
            for name, c in counts.items()
        ]
        if lines:
            total = sum((line["counts"] for line in lines), Counter())
            tables.append({"column": column, "lines": lines, "total": total})
    return tables


def _regraded(
    rows: Sequence[_Row], columns: Sequence[_Column], old: Mapping[str, Result | float | None], manual: Marks
) -> dict[str, Any]:
    """Old and new scores of those whose score or status changed, and how many stayed as they were."""
    changed, same = [], 0
    for row in rows:
        if row.result.student not in old:
            continue
        before = old[row.result.student]
        words: list[str] = []
        if isinstance(before, Result):
            earlier = _row(before, columns, manual, [], None)
            score, status = earlier.score, before.status
            for column, was, now in zip(columns, earlier.scores, row.scores, strict=True):
                if row.score is not None and score is not None and _differ(was, now):
                    words.append(f"{column.short}: {pages.number(was)} → {pages.number(now)}")
        else:
            score, status = before, GRADED if before is not None else "no score"
        if not _differ(score, row.score) and not words:
            same += 1
            continue
        changed.append(
            {
                "row": row,
                "old": score,
                "old_status": status,
                "difference": row.score - score if score is not None and row.score is not None else None,
                "words": words,
            }
        )
    changed.sort(key=lambda c: -abs(c["difference"]) if c["difference"] is not None else float("-inf"))
    return {
        "changed": changed,
        "same": same,
        "up": sum((c["difference"] or 0) > 0 for c in changed),
        "down": sum((c["difference"] or 0) < 0 for c in changed),
    }


def _differ(a: float | None, b: float | None) -> bool:
    return (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > 1e-9)


def _versions(results: Sequence[Result]) -> list[tuple[str, list[str]]]:
    """Seed and versions the results were made with; more than one of a kind deserves a look."""
    graded = [r for r in results if r.status == GRADED]
    return [
        ("set", sorted({r.assignment_version[:12] for r in graded if r.assignment_version})),
        ("grader", sorted({r.grader_version for r in graded if r.grader_version})),
        ("seed", sorted({str(r.seed) for r in graded})),
    ]


def _plots(columns: Sequence[_Column], graded: Sequence[_Row], rows: Sequence[_Row]) -> dict[str, plots.Plot]:
    drawn = {}
    if graded:
        drawn["histogram"] = plots.histogram([r.score for r in graded], max(r.known for r in graded))
    measured = [(j, c) for j, c in enumerate(columns) if c.points]
    if graded and measured:
        ordered = sorted(graded, key=lambda r: (r.score, r.result.student))
        shares = np.array(
            [[np.nan if r.scores[j] is None else r.scores[j] / c.points for r in ordered] for j, c in measured]
        )
        labels = [f"{c.number} {c.short}" for _, c in measured]
        drawn["heatmap"] = plots.heatmap([r.result.student for r in ordered], labels, shares)
    totals = [r.seconds for r in rows if r.seconds is not None]
    if len(totals) > 1:
        drawn["run_times"] = plots.run_times(totals)
    return drawn


# --- pages -----------------------------------------------------------------------------------------------------------


def _page(template: str, **values: Any) -> str:
    script = (Path(__file__).parent / "templates" / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The page's policy lets this one script run, whatever else might find its way into the page.
    return pages.page(
        template,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        heat=plots.HEAT,
        step=plots.heat_step,
        **values,
    )
