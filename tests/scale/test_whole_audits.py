"""Every set passes its whole audit: 200 seeds, and each variant as a submission in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import judging_digest, proved_once

from autograder.audit.audit import audit_set
from autograder.course import Course

COURSE = Course(Path(__file__).parents[2])


@pytest.mark.slow
@pytest.mark.parametrize("name", COURSE.set_names())
def test_the_whole_audit_finds_no_breach(name: str) -> None:
    def prove() -> None:
        report = audit_set(COURSE, name, jobs=2)
        assert report.ok, report.breaches

    proved_once(f"whole-audit-{name}", judging_digest(name, __file__), prove)
