"""Every set passes its audit (here without mutants, seeds and sandbox; the whole proof is in the room `scale`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import audit_in_its_own_process, judging_digest, proved_once, some_always

from autograder.audit.bench import graded, submission
from autograder.course import Course
from autograder.grading.runner import Settings
from autograder.judging.reference import Judged

COURSE = Course(Path(__file__).parents[2])
NAMES = COURSE.set_names()
# the others wait for `make test-all`; of those that train no networks it is seen that their solutions earn all points
ALWAYS = [name for name in NAMES if name.split("-")[0] == "ps0"]
QUICK = ("ps1", "ps2", "ps3", "ps4", "ps5", "ps8")


@pytest.mark.parametrize("name", some_always(NAMES, ALWAYS))
def test_the_audit_finds_no_breach(name: str) -> None:
    def prove() -> None:
        audit_in_its_own_process(name, "--quick", "--no-mutants", "--seeds", "1")

    proved_once(f"audit-{name}", judging_digest(name, __file__), prove)


@pytest.mark.parametrize("name", some_always(NAMES, [name for name in NAMES if name.split("-")[0] in QUICK]))
def test_solutions_have_full_marks(name: str) -> None:
    def prove() -> None:
        files = COURSE.set_files(name)
        source = Judged.from_text(files.notebook_text, files.catalogue, files.name, files.set_checks)
        (result,) = graded(files, {"solved": submission(files, source.solutions)}, Settings())
        assert [c.reason for e in result.exercises for c in e.checks if not c.passed] == []
        assert all(e.score == e.points for e in result.exercises if e.kind == "auto")

    proved_once(f"solved-{name}", judging_digest(name, __file__), prove)
