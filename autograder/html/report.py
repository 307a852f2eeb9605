"""The class report for the instructor: one self-contained page per set, and an index over the sets of a course.

It reads results and what the gradebook adds to them. Submissions that could not be read or were not handed in are
counted and named as such; they have no score and enter no statistic.
"""

from __future__ import annotations

import base64
import hashlib
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
from markupsafe import Markup

from autograder import files
from autograder.gradebook.reader import Standing
from autograder.html import plots
from autograder.html import sanitize as pages
from autograder.html.feedback import score_of, title_of
from autograder.html.similarity import Pair
from autograder.results import CRASHED, EXCUSED, GRADED, OUT_OF_MEMORY, TIMEOUT, VERDICTS, Exercise, Result

FEWEST_FOR_DISCRIMINATION = 5  # with fewer students the correlation of one exercise with the others says nothing
NEEDS_A_WORD = 0.4  # below this share of the points a student is listed as one who may need help
SLOWEST = 10


@dataclass
class _Column:
    """One exercise of the set over the whole class; shares are of its points, None where nobody has any."""

    grade_id: str
    number: int
    title: str
    points: float
    written: bool
    n: int = 0
    mean: float | None = None
    full: float | None = None
    zero: float | None = None
    discrimination: float | None = None

    @property
    def short(self) -> str:
        return self.grade_id.removesuffix("-tests")

    def measure(self, scores: Sequence[tuple[float | None, float]]) -> None:
        """Fill in the numbers from each student's points in this exercise and in the whole set."""
        pairs = [(score / self.points, whole - score) for score, whole in scores if score is not None and self.points]
        shares = [share for share, _ in pairs]
        self.n = len(shares)
        if shares:
            self.mean = statistics.fmean(shares)
            self.full = sum(s >= 1 - 1e-9 for s in shares) / self.n
            self.zero = sum(s <= 1e-9 for s in shares) / self.n
            self.discrimination = discrimination(pairs)


@dataclass
class _Row:
    """One student's line: points `earned` of those `known`, and the points still `waiting` to be marked."""

    result: Result
    standing: Standing
    scores: list[float | None]
    earned: float
    known: float
    waiting: float
    flags: list[tuple[str, str]]
    href: str | None

    @property
    def status(self) -> str:
        return EXCUSED if self.standing.excused else self.result.status

    @property
    def score(self) -> float | None:
        return self.standing.mark(self.earned) if self.result.status == GRADED else None

    @property
    def share(self) -> float | None:
        return self.score / self.known if self.score is not None and self.known else None

    @property
    def seconds(self) -> float | None:
        return self.result.timings.get("total")

    @property
    def struggles(self) -> bool:
        return self.share is not None and self.share < NEEDS_A_WORD


class _Set:
    """One set: its exercises as `columns`, its students as `rows`, and of these the `graded` ones."""

    def __init__(self, results: Sequence[Result], marks: Mapping[str, Standing], feedback: str = "") -> None:
        self.marks, self.feedback = marks, feedback
        self.results = sorted(results, key=lambda r: r.student)
        self.students = {r.student for r in results}
        self.columns = _columns(self.results)
        self.rows = [self.row(r) for r in self.results]
        self.graded = [row for row in self.rows if row.score is not None]
        self.sandboxes = Counter(row.result.sandbox for row in self.graded)
        titles = Counter(title_of(r) for r in self.results if r.notebook)  # one student's own heading is nobody else's
        self.title = max(titles, key=titles.__getitem__, default="")
        self.counts = Counter(row.status for row in self.rows)
        self.summary = _summary(self.graded)
        for number, column in enumerate(self.columns):
            column.measure([(row.scores[number], row.earned) for row in self.graded])

    def row(self, result: Result) -> _Row:
        """A student's line, of a result of this set: of today or from before a regrade."""
        exercises = {e.grade_id: e for e in result.exercises} if result.status == GRADED else {}
        standing = self.marks.get(result.student, Standing())
        scores = {name: score_of(e, standing) for name, e in exercises.items()}
        return _Row(
            result=result,
            standing=standing,
            scores=[scores.get(c.grade_id) for c in self.columns],
            earned=sum(score for score in scores.values() if score is not None),
            known=sum(e.points for name, e in exercises.items() if scores[name] is not None),
            waiting=sum(e.points for name, e in exercises.items() if scores[name] is None and e.kind != "auto"),
            flags=_flags(result, self.students, standing),
            href=_href(result, self.feedback),
        )


def render(
    results: Sequence[Result],
    *,
    old: Mapping[str, Result] = {},
    alike: Sequence[Pair] = (),
    marks: Mapping[str, Standing] = {},
    feedback: str = "../feedback",
) -> str:
    """The report on one set.

    By student, `marks` is what the gradebook says and `old` the result before a regrade, which stands beside the new
    one. `alike` are pairs with near-identical code. `feedback` is the relative address of the feedback folder.
    """
    one = _Set(results, marks, feedback)
    name = results[0].assignment if results else ""
    by_student = {row.result.student: row for row in one.rows}
    timed = [row for row in one.rows if row.seconds is not None]
    return _page(
        "report.html.j2",
        one=one,
        name=name,
        title=one.title or name or "Class report",
        versions=_versions(one.graded),
        needs_a_word=NEEDS_A_WORD,
        misconceptions=_misconceptions(one),
        checks=_checks(one),
        verdicts=VERDICTS,
        regraded=_regraded(one, old),
        alike=[(by_student[p.one], by_student[p.other], p) for p in alike],
        events=[(row, event) for row in one.rows for event in row.result.events],
        slowest=sorted(timed, key=lambda row: row.seconds or 0.0, reverse=True)[:SLOWEST],
        fewest=FEWEST_FOR_DISCRIMINATION,
        plots=_plots(one),
    )


def render_course(
    sets: Mapping[str, Sequence[Result]], title: str = "Class report", marks: Mapping[str, Mapping[str, Standing]] = {}
) -> str:
    """The index over several sets, in the order given: each set in a line, each student in a line."""
    read = {name: _Set(results, marks.get(name, {})) for name, results in sets.items()}
    overview = []
    for name, one in read.items():
        hardest = min((c for c in one.columns if c.mean is not None), key=lambda c: c.mean or 0.0, default=None)
        said, events = next(iter(_misconceptions(one)), None), sum(len(r.events) for r in one.results)
        overview.append({"name": name, "one": one, "hardest": hardest, "misconception": said, "events": events})
    by_student = [{row.result.student: row for row in one.rows} for one in read.values()]
    students = [_over_all(s, [rows.get(s) for rows in by_student]) for s in sorted(set().union(*by_student))]
    strips = [(name, [row.share for row in one.rows if row.share is not None]) for name, one in read.items()]
    return _page(
        "course.html.j2",
        title=title,
        overview=overview,
        students=students,
        stuck=[line["student"] for line in students if line["stuck"]],
        needs_a_word=NEEDS_A_WORD,
        unsafe=sum(one.sandboxes["none"] for one in read.values()),
        plot=plots.score_strips(strips) if any(shares for _, shares in strips) else None,
    )


def _over_all(student: str, cells: list[_Row | None]) -> dict[str, Any]:
    """A student's line in the index; stuck is who has little or nothing in the last two sets."""
    there = [row for row in cells if row is not None and not row.standing.excused]
    known = [row for row in there if row.score is not None]
    return {
        "student": student,
        "cells": cells,
        "score": sum(row.score or 0.0 for row in known) if known else None,
        "points": sum(row.known for row in known),
        "stuck": len(there) > 1 and all(row.share is None or row.struggles for row in there[-2:]),
    }


def write_all(
    sets: Mapping[str, Sequence[Result]],
    folder: Path,
    title: str = "Class report",
    *,
    old: Mapping[str, Mapping[str, Result]] = {},
    alike: Mapping[str, Sequence[Pair]] = {},
    marks: Mapping[str, Mapping[str, Standing]] = {},
    feedback: str = "../feedback",
) -> list[Path]:
    """Write `folder/<set>.html` for each set and `folder/index.html`.

    `old`, `alike` and `marks` map sets to what `render` takes. Raises pages.BadName for a set whose name cannot be a
    file's, and OSError.
    """
    written = {}
    for name, results in sets.items():
        written[pages.checked_name(name, "set’s name")] = render(
            results, old=old.get(name, {}), alike=alike.get(name, ()), marks=marks.get(name, {}), feedback=feedback
        )
    written["index"] = render_course(sets, title, marks)
    for name, page in written.items():
        files.write_atomically(folder / f"{name}.html", page.encode())
    return [folder / f"{name}.html" for name in written]


def write_records(records: Mapping[str, Sequence[tuple[int, float, str]]], folder: Path, title: str) -> Path:
    """Write the page of the smallest models, by task (parameters, score, name), into a folder that can be published."""
    path = folder / "records" / "index.html"
    files.write_atomically(path, _page("records.html.j2", title=title, tasks=records).encode())
    return path


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


def _href(result: Result, feedback: str) -> str | None:
    """Where the student's feedback is, if there can be any: a name that is unsafe in paths has no page."""
    if not files.is_safe_name(result.student) or not files.is_safe_name(result.assignment):
        return None
    student, name = quote(result.student), quote(result.assignment)
    return f"{feedback}/{student}/{name}/{name}.html"


def _flags(result: Result, students: Set[str], standing: Standing) -> list[tuple[str, str]]:
    """Short words for the table, each with the sentence behind it."""
    flags = [("late", standing.when)] if standing.late else []
    if result.typed_id not in (None, result.student):
        owner = "another student's" if result.typed_id in students else "nobody's in this class"
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


def _summary(graded: Sequence[_Row]) -> dict[str, Any]:
    """Mean, median and spread of the scores; None where there is nothing to average."""
    scores = [row.score for row in graded if row.score is not None]
    return {
        "n": len(scores),
        "mean": statistics.fmean(scores) if scores else None,
        "median": statistics.median(scores) if scores else None,
        "spread": statistics.stdev(scores) if len(scores) > 1 else None,
        "points": max((row.known for row in graded), default=0.0),
        "waiting": sum(row.waiting > 0 for row in graded),
        "waiting_points": max((row.waiting for row in graded), default=0.0),
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
        seen: dict[str, tuple[str, list[_Row]]] = {}
        for row, exercise in _of_exercise(one, column):
            for name, says in {m.name: m.says for m in exercise.misconceptions}.items():
                seen.setdefault(name, (says, []))[1].append(row)
        for name, (says, rows) in seen.items():
            share = len(rows) / len(one.graded)
            entries.append({"column": column, "name": name, "says": says, "rows": rows, "share": share})
    return sorted(entries, key=lambda e: (-e["share"], e["column"].number, e["name"]))


def _checks(one: _Set) -> list[dict[str, Any]]:
    """For each exercise its checks in order, with how often each verdict was given."""
    tables = []
    for column in one.columns:
        counts: dict[str, Counter[str]] = {}
        for _, exercise in _of_exercise(one, column):
            for check in exercise.checks:
                counts.setdefault(check.name, Counter())[check.verdict] += 1
        if counts:
            tables.append({"column": column, "lines": counts, "total": sum(counts.values(), Counter[str]())})
    return tables


def _regraded(one: _Set, old: Mapping[str, Result]) -> dict[str, Any]:
    """Old and new scores of those whose score or status changed, and how many stayed as they were."""
    changed: list[dict[str, Any]] = []
    again = [row for row in one.rows if row.result.student in old]
    for row in again:
        earlier = one.row(old[row.result.student])
        difference = None if earlier.score is None or row.score is None else row.score - earlier.score
        words = [] if difference is None else _changes(one.columns, earlier.scores, row.scores)
        if words or pages.number(earlier.score) != pages.number(row.score):
            changed.append({"row": row, "old": earlier, "difference": difference, "words": words})
    changed.sort(key=lambda c: float("-inf") if c["difference"] is None else -abs(c["difference"]))
    by = [c["difference"] or 0.0 for c in changed]
    return {"changed": changed, "all": len(again), "up": sum(d > 0 for d in by), "down": sum(d < 0 for d in by)}


def _changes(columns: Sequence[_Column], old: Sequence[float | None], new: Sequence[float | None]) -> list[str]:
    """The exercises whose points are others now, with both."""
    shown = [(c.short, pages.number(was), pages.number(now)) for c, was, now in zip(columns, old, new, strict=True)]
    return [f"{name}: {was} → {now}" for name, was, now in shown if was != now]


def _versions(graded: Sequence[_Row]) -> list[tuple[str, list[str]]]:
    """Seed and versions the results were made with; more than one of a kind deserves a look."""
    results = [row.result for row in graded]
    return [
        ("set", sorted({r.assignment_version[:12] for r in results if r.assignment_version})),
        ("grader", sorted({r.grader_version for r in results if r.grader_version})),
        ("seed", sorted({str(r.seed) for r in results})),
    ]


def _plots(one: _Set) -> dict[str, Markup]:
    drawn = {}
    if one.graded:
        drawn["histogram"] = plots.histogram([r.score or 0.0 for r in one.graded], max(r.known for r in one.graded))
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


def _page(template: str, **values: Any) -> str:
    script = (Path(__file__).parent / "templates" / "sort.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # The page's policy lets this one script run, whatever else might find its way into the page.
    values |= {"script": Markup(script), "script_hash": f"sha256-{digest}", "heat": plots.HEAT, "step": plots.heat_step}
    return pages.page(template, **values)
