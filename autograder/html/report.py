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

ByHand = Mapping[tuple[str, str], Mapping[str, Manual]]
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
    """One student's line: points `earned` of those `known`, and the points still `waiting` to be marked."""

    result: Result
    scores: list[float | None]
    earned: float
    known: float
    waiting: float
    flags: list[tuple[str, str]]
    href: str | None

    @property
    def score(self) -> float | None:
        return self.earned if self.result.status == GRADED else None

    @property
    def share(self) -> float | None:
        return self.earned / self.known if self.score is not None and self.known else None

    @property
    def seconds(self) -> float | None:
        return self.result.timings.get("total")

    @property
    def struggles(self) -> bool:
        return self.share is not None and self.share < NEEDS_A_WORD


class _Set:
    """One set: its exercises as `columns`, its students as `rows`, and of these the `graded` ones."""

    def __init__(self, results: Sequence[Result], manual: ByHand | None, feedback: str | None = None) -> None:
        self.results = sorted(results, key=lambda r: r.student)
        self.columns = _columns(self.results)
        self.rows = [_row(r, self.columns, manual or {}, self.results, feedback) for r in self.results]
        self.graded = [row for row in self.rows if row.score is not None]
        self.unsafe = sum(row.result.sandbox == "none" for row in self.graded)
        self.title = next((title_of(r) for r in self.results if r.notebook), "")
        _statistics(self.columns, self.graded)


def render(
    results: Sequence[Result],
    title: str = "",
    *,
    old: Mapping[str, Result | float | None] | None = None,
    alike: Sequence[Pair] = (),
    manual: ByHand | None = None,
    feedback: str | None = None,
    index: str | None = None,
) -> str:
    """The report on one set.

    `old` maps students to their results (or bare scores) before a regrade: old and new stand side by side. `alike`
    are pairs with near-identical code. `feedback` is the relative address of the feedback folder, `index` that of the
    course's index; both become links.
    """
    one = _Set(results, manual, feedback)
    rows, graded = one.rows, one.graded
    by_student = {row.result.student: row for row in rows}
    name = results[0].assignment if results else ""
    timed = sorted((-row.seconds, n) for n, row in enumerate(rows) if row.seconds is not None)
    return _page(
        "report.html.j2",
        title=title or one.title or name or "Class report",
        name=name,
        index=index,
        results=one.results,
        counts=_counts(results),
        rows=rows,
        columns=one.columns,
        summary=_summary(graded),
        sandboxes=Counter(row.result.sandbox for row in graded),
        unsafe=one.unsafe,
        versions=_versions(graded),
        unreadable=[row for row in rows if row.result.status == UNREADABLE],
        absent=[row for row in rows if row.result.status == NOT_SUBMITTED],
        struggling=[row for row in graded if row.struggles],
        needs_a_word=NEEDS_A_WORD,
        misconceptions=_misconceptions(one),
        checks=_checks(one),
        verdicts=VERDICTS,
        regraded=_regraded(one, old, manual or {}) if old else None,
        alike=[(by_student[p.one], by_student[p.other], p) for p in alike],
        events=[(row, event) for row in rows for event in row.result.events],
        slowest=[rows[n] for _, n in timed[:SLOWEST]],
        fewest=FEWEST_FOR_DISCRIMINATION,
        plots=_plots(one),
    )


def render_course(
    sets: Mapping[str, Sequence[Result]],
    title: str = "Class report",
    *,
    manual: ByHand | None = None,
    links: Mapping[str, str] | None = None,
) -> str:
    """The index over several sets, in the order given: each set in a line, each student in a line.

    `links` maps sets to the addresses of their reports; by default `<set>.html` beside the index.
    """
    read = {name: _Set(results, manual) for name, results in sets.items()}
    overview = []
    for name, one in read.items():
        found = _misconceptions(one)
        measured = [c for c in one.columns if c.stats["mean"] is not None]
        overview.append(
            {
                "name": name,
                "title": one.title or name,
                "href": (links or {}).get(name, f"{quote(pages.clean(name), safe='')}.html"),
                "counts": _counts(one.results),
                "summary": _summary(one.graded),
                "hardest": min(measured, key=lambda c: c.stats["mean"], default=None),
                "misconception": found[0] if found else None,
                "events": sum(len(r.events) for r in one.results),
                "unsafe": one.unsafe,
            }
        )
    by_student = {name: {row.result.student: row for row in one.rows} for name, one in read.items()}
    students = [
        _over_all(s, [rows.get(s) for rows in by_student.values()]) for s in sorted(set().union(*by_student.values()))
    ]
    strips = [(name, [row.share for row in one.rows if row.share is not None]) for name, one in read.items()]
    return _page(
        "course.html.j2",
        title=title,
        overview=overview,
        students=students,
        stuck=[line for line in students if line["stuck"]],
        needs_a_word=NEEDS_A_WORD,
        unsafe=sum(one.unsafe for one in read.values()),
        plot=plots.score_strips(strips) if any(shares for _, shares in strips) else None,
    )


def _over_all(student: str, cells: list[_Row | None]) -> dict[str, Any]:
    """A student's line in the index; stuck is who has little or nothing in the last two sets."""
    there = [row for row in cells if row is not None]
    known = [row for row in there if row.score is not None]
    return {
        "student": student,
        "cells": cells,
        "score": sum(row.earned for row in known) if known else None,
        "points": sum(row.known for row in known),
        "stuck": len(there) > 1 and all(row.share is None or row.struggles for row in there[-2:]),
    }


def write_all(
    sets: Mapping[str, Sequence[Result]],
    folder: Path | str,
    title: str = "Class report",
    *,
    old: Mapping[str, Mapping[str, Result | float | None]] | None = None,
    alike: Mapping[str, Sequence[Pair]] | None = None,
    manual: ByHand | None = None,
    feedback: str | None = "../feedback",
) -> list[Path]:
    """Write `folder/<set>.html` for each set and `folder/index.html`.

    `old` and `alike` map sets to what `render` takes. Raises pages.BadName for a set whose name cannot be a file's,
    and OSError.
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
        paths.append(pages.write_page(folder / f"{pages.checked_name(name, 'set’s name')}.html", page))
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
    result: Result, columns: Sequence[_Column], manual: ByHand, results: Sequence[Result], feedback: str | None
) -> _Row:
    exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
    marks = manual.get((result.student, result.assignment))
    scores = {name: score_of(e, marks) for name, e in exercises.items()}
    return _Row(
        result=result,
        scores=[scores.get(c.grade_id) for c in columns],
        earned=sum(score for score in scores.values() if score is not None),
        known=sum(e.points for name, e in exercises.items() if scores[name] is not None),
        waiting=sum(e.points for name, e in exercises.items() if scores[name] is None and e.kind != "auto"),
        flags=_flags(result, results),
        href=_href(result, feedback),
    )


def _href(result: Result, feedback: str | None) -> str | None:
    """Where the student's feedback is, if there can be any: a name that is unsafe in paths has no page."""
    if feedback is None:
        return None
    try:
        student, name = quote(pages.checked_name(result.student)), quote(pages.checked_name(result.assignment))
    except pages.BadName:
        return None
    return f"{feedback}/{student}/{name}/{name}.html"


def _flags(result: Result, results: Sequence[Result]) -> list[tuple[str, str]]:
    """Short words for the table, each with the sentence behind it."""
    flags = []
    if result.typed_id not in (None, result.student):
        owner = "another student's" if any(r.student == result.typed_id for r in results) else "nobody's in this class"
        flags.append(("other id", f"typed the id {result.typed_id!r:.80}, {owner}; graded with its numbers"))
    verdicts = Counter(c.verdict for e in result.exercises for c in e.checks)
    bad = [verdict for verdict in (TIMEOUT, CRASHED, OUT_OF_MEMORY) if verdicts[verdict]]
    flags += [(verdict, f"{pages.amount(verdicts[verdict], 'check')} ended so") for verdict in bad]
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
    scores = [row.earned for row in graded]
    times = [row.seconds for row in graded if row.seconds is not None]
    return {
        "n": len(scores),
        "mean": statistics.fmean(scores) if scores else None,
        "median": statistics.median(scores) if scores else None,
        "spread": statistics.stdev(scores) if len(scores) > 1 else None,
        "points": max((row.known for row in graded), default=0.0),
        "waiting": sum(1 for row in graded if row.waiting),
        "waiting_points": max((row.waiting for row in graded), default=0.0),
        "seconds": statistics.median(times) if times else None,
    }


def _statistics(columns: Sequence[_Column], graded: Sequence[_Row]) -> None:
    """Fill in each column: shares of the points, and how the exercise goes with the rest of the set."""
    for j, column in enumerate(columns):
        pairs = [
            (score / column.points, row.earned - score)
            for row in graded
            if (score := row.scores[j]) is not None and column.points
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


def _of_exercise(one: _Set, column: _Column) -> list[tuple[_Row, Exercise]]:
    """The graded students whose results have this exercise, with what they have of it."""
    return [(row, e) for row in one.graded for e in row.result.exercises if e.grade_id == column.grade_id]


def _misconceptions(one: _Set) -> list[dict[str, Any]]:
    """Each misconception that occurred, the most frequent first, with the students it was seen in."""
    entries = []
    for column in one.columns:
        says: dict[str, str] = {}
        seen_in: dict[str, list[_Row]] = {}
        for row, exercise in _of_exercise(one, column):
            for name in dict.fromkeys(m.name for m in exercise.misconceptions):
                seen_in.setdefault(name, []).append(row)
            says = {m.name: m.says for m in exercise.misconceptions} | says
        for name, rows in seen_in.items():
            shares = {"count": len(rows), "share": len(rows) / len(one.graded)}
            entries.append({"column": column, "name": name, "says": says[name], "rows": rows} | shares)
    return sorted(entries, key=lambda e: (-e["count"], e["column"].number, e["name"]))


def _checks(one: _Set) -> list[dict[str, Any]]:
    """For each exercise its checks in order, with how often each verdict was given."""
    tables = []
    for column in one.columns:
        counts: dict[str, Counter[str]] = {}
        for _, exercise in _of_exercise(one, column):
            for check in exercise.checks:
                counts.setdefault(check.name, Counter())[check.verdict] += 1
        if counts:
            lines = [
                {"name": n, "counts": c, "total": c.total(), "passed": c[PASSED] / c.total()} for n, c in counts.items()
            ]
            tables.append({"column": column, "lines": lines, "total": sum(counts.values(), Counter[str]())})
    return tables


@dataclass
class _Change:
    """What a regrade changed for one student; `words` name the exercises."""

    row: _Row
    old: float | None
    old_status: str
    words: list[str]

    @property
    def difference(self) -> float | None:
        return None if self.old is None or self.row.score is None else self.row.score - self.old


def _regraded(one: _Set, old: Mapping[str, Result | float | None], manual: ByHand) -> dict[str, Any]:
    """Old and new scores of those whose score or status changed, and how many stayed as they were."""
    changed = []
    again = [row for row in one.rows if row.result.student in old]
    for row in again:
        before = old[row.result.student]
        words: list[str] = []
        if isinstance(before, Result):
            earlier = _row(before, one.columns, manual, [], None)
            score, status = earlier.score, before.status
            for column, was, now in zip(one.columns, earlier.scores, row.scores, strict=True):
                if row.score is not None and score is not None and _differ(was, now):
                    words.append(f"{column.short}: {pages.number(was)} → {pages.number(now)}")
        else:
            score, status = before, GRADED if before is not None else "no score"
        if _differ(score, row.score) or words:
            changed.append(_Change(row, score, status, words))
    changed.sort(key=lambda c: float("-inf") if c.difference is None else -abs(c.difference))
    return {
        "changed": changed,
        "same": len(again) - len(changed),
        "up": sum((c.difference or 0) > 0 for c in changed),
        "down": sum((c.difference or 0) < 0 for c in changed),
    }


def _differ(a: float | None, b: float | None) -> bool:
    return (a is None) != (b is None) or (a is not None and b is not None and abs(a - b) > 1e-9)


def _versions(graded: Sequence[_Row]) -> list[tuple[str, list[str]]]:
    """Seed and versions the results were made with; more than one of a kind deserves a look."""
    results = [row.result for row in graded]
    return [
        ("set", sorted({r.assignment_version[:12] for r in results if r.assignment_version})),
        ("grader", sorted({r.grader_version for r in results if r.grader_version})),
        ("seed", sorted({str(r.seed) for r in results})),
    ]


def _plots(one: _Set) -> dict[str, plots.Plot]:
    drawn = {}
    if one.graded:
        drawn["histogram"] = plots.histogram([r.earned for r in one.graded], max(r.known for r in one.graded))
    measured = [(j, c) for j, c in enumerate(one.columns) if c.points]
    if one.graded and measured:
        ordered = sorted(one.graded, key=lambda r: (r.earned, r.result.student))
        scores = np.array([[r.scores[j] for r in ordered] for j, _ in measured], dtype=float)  # NaN for None
        shares = scores / np.array([[c.points] for _, c in measured])
        labels = [f"{c.number} {c.short}" for _, c in measured]
        drawn["heatmap"] = plots.heatmap([r.result.student for r in ordered], labels, shares)
    totals = [r.seconds for r in one.rows if r.seconds is not None]
    if len(totals) > 1:
        drawn["run_times"] = plots.run_times(totals)
    return drawn


# --- pages -----------------------------------------------------------------------------------------------------------


def _page(template: str, **values: Any) -> str:
    script = (Path(__file__).parent / "templates" / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The page's policy lets this one script run, whatever else might find its way into the page.
    values |= {"script": Markup(script), "script_hash": f"sha256-{digest}", "heat": plots.HEAT, "step": plots.heat_step}
    return pages.page(template, **values)
