"""What a worker needs to judge one submission, as plain data: bytes on the way to it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from autograder.notebook.rebuild import Rebuilt, RebuiltCell
from autograder.results import UNREADABLE, Result
from autograder.sandbox.launcher import BUBBLEWRAP

OF_THE_SET = ("source", "catalogue", "set_checks", "files")


@dataclass
class Job:
    """Everything a worker needs to judge one submission; `cells` are those of the rebuilt notebook, as JSON."""

    student: str
    assignment: str
    key: str
    cells: str
    source: str
    catalogue: str
    assignment_version: str
    grader_version: str
    seed: int
    files: dict[str, str] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    sandbox: str = BUBBLEWRAP
    notes: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    arrived: str = ""
    set_checks: str = ""

    def to_bytes(self) -> bytes:
        """Three lines of JSON: the submission's own fields, its cells, and what is the same for the whole class."""
        own = {name: value for name, value in vars(self).items() if name not in ("cells", *OF_THE_SET)}
        of_the_set = _set_to_bytes(self.source, self.catalogue, self.set_checks, *self.files.items())
        return b"\n".join([json.dumps(own).encode(), self.cells.encode(), of_the_set])

    @classmethod
    def from_bytes(cls, data: bytes) -> Job:
        own, cells, of_the_set = data.split(b"\n")
        return cls(**json.loads(own), cells=cells.decode(), **_set_from_bytes(of_the_set))

    def result(self, **more: Any) -> Result:
        """A result of this job: what is known beforehand, and `more` fields of it."""
        return Result(
            student=self.student,
            assignment=self.assignment,
            key=self.key,
            arrived=self.arrived,
            seed=self.seed,
            sandbox=self.sandbox,
            graded_at=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
            grader_version=self.grader_version,
            assignment_version=self.assignment_version,
            notes=list(self.notes),
            **more,
        )

    def unjudged(self, reason: str, events: list[str]) -> Result:
        """The result where the grader, not the submission, is to blame: no score, and who must act.

        It stands for nothing that was handed in, so the next run of `grade` judges the submission again.
        """
        return replace(self.result(status=UNREADABLE, reason=reason, events=events), key="", arrived="")

    def rebuilt(self) -> Rebuilt:
        return Rebuilt([RebuiltCell(**c) for c in json.loads(self.cells)], list(self.notes), list(self.events))


@lru_cache(maxsize=2)
def _set_to_bytes(source: str, catalogue: str, set_checks: str, *files: tuple[str, str]) -> bytes:
    return json.dumps(dict(zip(OF_THE_SET, (source, catalogue, set_checks, dict(files)), strict=True))).encode()


@lru_cache(maxsize=2)
def _set_from_bytes(data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(data)
    return found
