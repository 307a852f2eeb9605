"""What an audit found: its breaches, its numbers, and the table that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table


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

    `seconds_per_submission`: the reference through the sandbox, None without it. `phases`: seconds of each part.
    """

    assignment: str
    points: float = 0.0
    seeds: int = 0
    quick: bool = False
    reference_full: bool = False
    exercises: list[ExerciseAudit] = field(default_factory=list)
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


SETS: dict[str, Callable[[AuditReport], str]] = {
    "ref.": lambda r: "full" if r.reference_full else "[red]not full[/]",
    "right full": lambda r: _share(r.total("right_full"), r.total("right")),
    "wrong caught": lambda r: _share(r.total("caught"), r.total("wrong")),
    "wrong named": lambda r: _share(r.total("named"), r.total("wrong")),
    "trivial at 0": lambda r: _share(r.total("trivial_zero"), r.total("trivial")),
    "mutants killed": lambda r: _share(r.total("killed"), r.total("mutants")),
    "rest explained": lambda r: _share(r.total("explained"), len(r.survivors)) if r.survivors else "–",
    "seeds flaky": lambda r: f"[red]{r.flaky}/{r.seeds}[/]" if r.flaky else f"0/{r.seeds}",
    "s each": lambda r: "–" if r.seconds_per_submission is None else f"{r.seconds_per_submission:.2f}",
    "breaches": lambda r: "[green]none[/]" if r.ok else f"[red]{len(r.breaches)}[/]",
}
EXERCISES: dict[str, Callable[[ExerciseAudit], str]] = {
    "points": lambda e: f"{e.points:g}",
    "checks": lambda e: "written" if e.kind == "written" else str(e.checks),
    "right full": lambda e: _share(e.right_full, e.right),
    "wrong caught": lambda e: _share(e.caught, e.wrong),
    "wrong named": lambda e: _share(e.named, e.wrong),
    "trivial at 0": lambda e: _share(e.trivial_zero, e.trivial),
    "mutants killed": lambda e: _share(e.killed, e.mutants),
    "ms": lambda e: f"{1000 * e.seconds:.0f}",
}


def print_table(reports: list[AuditReport], console: Console | None = None) -> None:
    """One table with a row for each set; then, for each set, its exercises, survivors and breaches."""
    console = console or _console()
    table = _table("set", "Audit", SETS)
    for report in reports:
        table.add_row(report.assignment, *(show(report) for show in SETS.values()))
    console.print(table)
    for report in reports:
        _print_details(report, console)


def _console() -> Console:
    """Standard output, wide enough for the table where it is a file or a log."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=110)


def _table(first: str, title: str, columns: Iterable[str]) -> Table:
    table = Table(first, title=title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.columns[0].no_wrap = True
    for header in columns:
        table.add_column(header.replace(" ", "\n"), justify="right", no_wrap=True)
    return table


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" if part == whole else f"[yellow]{part}/{whole}[/]"


def _print_details(report: AuditReport, console: Console) -> None:
    how = ", without the sandbox" if report.quick else ""
    title = f"{report.assignment}: {report.points:g} points; audited in {report.audit_seconds:.0f} s{how}"
    table = _table("exercise", title, EXERCISES)
    for row in report.exercises:
        shown = 2 if row.kind == "written" else None  # nothing is counted of a question that people mark
        table.add_row(row.grade_id, *(show(row) for show in list(EXERCISES.values())[:shown]))
    console.print(table)
    for name in report.unnamed:
        console.print(f"  [yellow]misconception[/] {escape(name)}")
    for s in report.survivors:
        if s.why:
            console.print(f"  [dim]survivor[/] {escape(s.exercise)} line {s.line}: {escape(s.old)} → {escape(s.new)}")
            console.print(f"    [dim]{escape(s.why)}[/]")
    for b in report.breaches:
        where = f" {escape(b.exercise)}" if b.exercise else ""
        console.print(f"  [red]breach[/] ({b.kind}){where}: {escape(b.text)}")
