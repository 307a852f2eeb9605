"""Every set passes its whole audit: 200 seeds, and each variant as a submission in the sandbox."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import audit_in_its_own_process, judging_digest, proved_once

from autograder.course import Course

NAMES = Course(Path(__file__).parents[2]).set_names()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_audit_finds_no_breach(name: str) -> None:
    proved_once(f"whole-audit-{name}", judging_digest(name, __file__), lambda: audit_in_its_own_process(name))
