"""Every set passes its audit (here without mutants, seeds and sandbox; the whole proof is in the room `scale`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import audit_in_its_own_process, judging_digest, proved_once

from autograder.course import Course

NAMES = Course(Path(__file__).parents[2]).set_names()


@pytest.mark.parametrize("name", NAMES)
def test_the_audit_finds_no_breach(name: str) -> None:
    def prove() -> None:
        audit_in_its_own_process(name, "--quick", "--no-mutants", "--seeds", "1")

    proved_once(f"audit-{name}", judging_digest(name, __file__), prove)
