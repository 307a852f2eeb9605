"""A kept proof holds for what it was made from, and for nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import kept
import pytest

SET = "ps0-warm-up"


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that a set's audit reads."""
    ignored = shutil.ignore_patterns("__pycache__")
    for part in ("autograder", f"source_solutions/{SET}", f"assignments/{SET}", "tests/helpers"):
        shutil.copytree(kept.ROOT / part, tmp_path / part, ignore=ignored)
    shutil.copy(kept.ROOT / "nbgrader_config.py", tmp_path)
    monkeypatch.setattr(kept, "ROOT", tmp_path)
    monkeypatch.setattr(kept, "PROOFS", tmp_path / "proofs")
    monkeypatch.setattr(kept, "__file__", str(tmp_path / "tests" / "helpers" / "kept.py"))
    return tmp_path


@pytest.mark.parametrize(
    "changed",
    [
        f"source_solutions/{SET}/catalogue.py",
        f"assignments/{SET}/{SET}.ipynb",
        "autograder/judging/recognition.py",
        "autograder/audit/mutants.py",
        "autograder/sandbox/inside/protocol.py",
        "autograder/brand_new.py",
    ],
)
def test_what_matters_changes_the_digest(checkout: Path, changed: str) -> None:
    test = str(checkout / "tests" / "helpers" / "kept.py")
    before = kept.judging_digest(SET, test)
    assert kept.judging_digest(SET, test) == before
    with (checkout / changed).open("a") as file:
        file.write("\n")
    assert kept.judging_digest(SET, test) != before


def test_what_only_shows_results_does_not(checkout: Path) -> None:
    test = str(checkout / "tests" / "helpers" / "kept.py")
    before = kept.judging_digest(SET, test)
    with (checkout / "autograder" / "html" / "report.py").open("a") as file:
        file.write("\n")
    assert kept.judging_digest(SET, test) == before


def test_a_proof_holds_for_its_state_only(checkout: Path) -> None:
    made = []
    for state in ("one", "one", "two", "one"):
        kept.proved_once("a", state, lambda state=state: made.append(state))
    assert made == ["one", "two", "one"]


def test_what_failed_is_proved_again(checkout: Path) -> None:
    def fails() -> None:
        raise AssertionError("a breach")

    kept.proved_once("a", "one", lambda: None)
    with pytest.raises(AssertionError, match="a breach"):
        kept.proved_once("a", "two", fails)
    with pytest.raises(AssertionError, match="a breach"):
        kept.proved_once("a", "one", fails)
