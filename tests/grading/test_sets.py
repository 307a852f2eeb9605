"""Every set passes its audit (here with few seeds and without the sandbox; the whole proof is in the room `scale`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import judging_digest, proved_once

from autograder.audit.audit import audit_set
from autograder.course import Course

ROOT = Path(__file__).parents[2]
COURSE = Course(ROOT)


@pytest.mark.parametrize("name", COURSE.set_names())
def test_the_audit_finds_no_breach(name: str) -> None:
    def prove() -> None:
        report = audit_set(COURSE, name, seeds=8, quick=True, jobs=2)
        assert report.ok, report.breaches

    proved_once(f"audit-{name}", judging_digest(name, __file__), prove)
