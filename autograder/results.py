"""What grading a submission leaves behind: plain data that is written to the store as JSON.

Everything downstream (gradebook, feedback, report, export) reads these records and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PASSED = "passed"
FAILED = "failed"
ERROR = "error"
TIMEOUT = "timeout"
CRASHED = "crashed"
OUT_OF_MEMORY = "out of memory"
NOT_REACHED = "not reached"
VERDICTS = (PASSED, FAILED, ERROR, TIMEOUT, CRASHED, OUT_OF_MEMORY, NOT_REACHED)

GRADED = "graded"
UNREADABLE = "unreadable"
NOT_SUBMITTED = "not submitted"
EXCUSED = "excused"  # no result's own: an instructor's decision, in reports and exports


@dataclass
class Check:
    """One verdict: a named property, its weight in the cell, and a reason a student can act on.

    `example` is a call that shows it: what it "says" of the "call" (Python code), and what it "gave"; {} where there is
    none to show.
    """

    name: str
    points: float
    verdict: str
    reason: str = ""
    hidden: bool = True
    seconds: float = 0.0
    example: dict[str, str] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.verdict == PASSED


@dataclass
class Misconception:
    """A known wrong variant that explains the student's answers; `says` is shown to the student."""

    name: str
    exercise: str
    says: str


@dataclass
class Exercise:
    """A graded cell. `kind` is "auto" (score from its checks) or "written" (score None: a person has to mark it; 0
    where there is no answer).

    `grade_id` names the cell in the gradebook; `solution_ids` the student's cells it judges; `title` is the nearest
    heading above it.
    """

    grade_id: str
    title: str
    points: float
    kind: str = "auto"
    score: float | None = None
    checks: list[Check] = field(default_factory=list)
    misconceptions: list[Misconception] = field(default_factory=list)
    follow_through: list[str] = field(default_factory=list)
    solution_ids: list[str] = field(default_factory=list)
    answered: bool = True
    figures: list[dict[str, str]] = field(default_factory=list)
    """Pictures for the feedback made by the grader: {"png": base64, "alt": text}."""
    seconds: float = 0.0


@dataclass
class Result:
    """The outcome for one student and one set.

    `notebook` is the executed notebook as nbformat JSON: the student's cells with their (sanitised) outputs; test
    cells hold only their released text. `notes` are remarks of the rebuild that student and instructor may read
    ("your file was called 'ps2 (1).ipynb'"). `events` are suspicious or unusual happenings for the instructor.
    `timings` are in seconds: total, cells (the student's own), checks. `key` is a digest of what was judged and by
    what; `arrived` one of the very file that was handed in, its name and by what it was read, "" where none was.
    """

    student: str
    assignment: str
    key: str
    arrived: str = ""
    status: str = GRADED
    reason: str = ""
    seed: int = 0
    sandbox: str = "bubblewrap"
    graded_at: str = ""
    grader_version: str = ""
    assignment_version: str = ""
    typed_id: str | None = None
    exercises: list[Exercise] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    notebook: dict[str, Any] | None = None

    @property
    def auto_score(self) -> float:
        """Points from checks; written answers count nothing until somebody marks them."""
        return sum(e.score or 0.0 for e in self.exercises if e.kind == "auto")

    @property
    def auto_points(self) -> float:
        return sum(e.points for e in self.exercises if e.kind == "auto")

    def to_json(self) -> dict[str, Any]:
        exercises = [
            {**vars(e), "checks": [vars(c) for c in e.checks], "misconceptions": [vars(m) for m in e.misconceptions]}
            for e in self.exercises
        ]
        return {**vars(self), "exercises": exercises}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Result:
        exercises = []
        for e in data["exercises"]:
            checks, named = [Check(**c) for c in e["checks"]], [Misconception(**m) for m in e["misconceptions"]]
            exercises.append(Exercise(**e | {"checks": checks, "misconceptions": named}))
        return cls(**data | {"exercises": exercises})
