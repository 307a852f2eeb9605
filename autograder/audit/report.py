"""What an audit found: its breaches, its numbers, and the table that shows them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from autograder.console import out


@dataclass
class Breach:
    """One thing that is not as it must be. `exercise` is a grade_id, or "" for the whole set."""

    kind: str
    exercise: str
    text: str


@dataclass
class ExerciseAudit:
    """The numbers of one graded cell. `seconds`: one run of the test cell on the reference."""

    grade_id: str
    title: str
    points: float
    kind: str = "auto"
    checks: int = 0
    right: int = 0
    right_full: int = 0
    wrong: int = 0
    caught: int = 0
    named: int = 0
    trivial: int = 0
    trivial_zero: int = 0
    mutants: int = 0
    killed: int = 0
    explained: int = 0
    seconds: float = 0.0


@dataclass
class CheckAudit:
    """What one check notices: how many wrong variants and trivial answers fail it, how many fail no other check.

    `mutants`: of the reference, that failed here first.
    """

    exercise: str
    name: str
    points: float
    refused: int = 0
    alone: int = 0
    mutants: int = 0


@dataclass
class SurvivorFound:
    """A mutant that got full marks; `why` from the catalogue, "" where nothing explains it."""

    exercise: str
    operator: str
    line: int
    old: str
    new: str
    why: str = ""


@dataclass
class AuditReport:
    """What was found about one set. `flaky` counts seeds with which an answer was not judged as it must be.

    `seconds_per_submission`: the median over all in the sandbox, None without it. `phases`: seconds of each part.
    """

    assignment: str
    points: float = 0.0
    seeds: int = 0
    quick: bool = False
    reference_full: bool = False
    exercises: list[ExerciseAudit] = field(default_factory=list)
    checks: list[CheckAudit] = field(default_factory=list)
    survivors: list[SurvivorFound] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    flaky: int = 0
    seconds_per_submission: float | None = None
    audit_seconds: float = 0.0
    phases: dict[str, float] = field(default_factory=dict)
    breaches: list[Breach] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.breaches

    def total(self, name: str) -> int:
        """Sum of a number over the exercises."""
        return sum(int(getattr(e, name)) for e in self.exercises)

    def to_json(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


SHARES = {
    "right full": ("right_full", "right"),
    "wrong caught": ("caught", "wrong"),
    "wrong named": ("named", "wrong"),
    "trivial at 0": ("trivial_zero", "trivial"),
    "mutants killed": ("killed", "mutants"),
}
"""The columns of both tables that say how many of how many."""


def print_table(reports: list[AuditReport]) -> None:
    """One table with a row for each set; then, for each set, its exercises, survivors and breaches."""
    table = _table("set", "Audit", "ref.", *SHARES, "rest explained", "seeds flaky", "s each", "breaches")
    for r in reports:
        table.add_row(
            r.assignment,
            "full" if r.reference_full else Text("not full", "red"),
            *(_share(r.total(part), r.total(whole)) for part, whole in SHARES.values()),
            _share(r.total("explained"), len(r.survivors)) if r.survivors else "–",
            Text(f"{r.flaky}/{r.seeds}", "red" if r.flaky else ""),
            "–" if r.seconds_per_submission is None else f"{r.seconds_per_submission:.2f}",
            Text("none", "green") if r.ok else Text(str(len(r.breaches)), "red"),
        )
    out.print(table)
    for r in reports:
        _print_details(r)


def _table(first: str, title: str, *columns: str) -> Table:
    table = Table(first, title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for header in columns:
        table.add_column(header.replace(" ", "\n"), justify="right", no_wrap=True)
    return table


def _share(part: int, whole: int) -> Text:
    return Text(f"{part}/{whole}", "" if part == whole else "yellow")


def _print_details(report: AuditReport) -> None:
    how = ", without the sandbox" if report.quick else ""
    title = f"{report.assignment}: {report.points:g} points; audited in {report.audit_seconds:.0f} s{how}"
    table = _table("exercise", title, "points", "checks", *SHARES, "ms")
    for e in report.exercises:
        counted = [_share(getattr(e, part), getattr(e, whole)) for part, whole in SHARES.values()]
        numbers = [str(e.checks), *counted, f"{1000 * e.seconds:.0f}"]
        table.add_row(e.grade_id, f"{e.points:g}", *(["written"] if e.kind == "written" else numbers))
    out.print(table)
    table = _table("check", "", "points", "wrong refused", "by it alone", "mutants first")
    for c in report.checks:
        counted = [Text(str(n), "" if n else "yellow") for n in (c.refused, c.alone, c.mutants)]
        table.add_row(f"{c.exercise}: {c.name}", f"{c.points:g}", *counted)
    out.print(table)
    for name in report.unnamed:
        _say("misconception", "yellow", name)
    for s in report.survivors:
        if s.why:
            _say("survivor", "dim", f"{s.exercise} line {s.line}: {s.old} → {s.new}")
            out.print(f"    {s.why}", style="dim")
    for b in report.breaches:
        _say("breach", "red", f"({b.kind}){f' {b.exercise}' if b.exercise else ''}: {b.text}")


def _say(what: str, style: str, said: str) -> None:
    out.print(Text.assemble("  ", (what, style), " ", said))
