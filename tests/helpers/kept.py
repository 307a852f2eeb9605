"""What is done once for all workers of a test run, and proofs that are kept while nothing they judge has changed."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build"
PROOFS = BUILD / "proofs"
# what shows results or hands them on; all else of the package may decide a verdict
NOT_JUDGING = (
    "html",
    "lms",
    "gradebook",
    "cli.py",
    "cli_begin.py",
    "cli_students.py",
    "mark.py",
    "options.py",
    "console.py",
    "doctor.py",
    "nbgrader_plugin.py",
    "__main__.py",
)


def some_always(names: Iterable[str], always: Iterable[str]) -> list:
    """What a test is parametrised with: `always` in every run, the other names when all is run."""
    usual = set(always)
    return [pytest.param(name, marks=[] if name in usual else pytest.mark.slow) for name in names]


@contextmanager
def alone(name: str) -> Iterator[None]:
    """One process at a time, of all that run tests of this checkout; the lock ends with its holder."""
    BUILD.mkdir(exist_ok=True)
    with (BUILD / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest_of(paths: Iterable[Path], *more: str) -> str:
    """A digest of names and contents of files, and of `more`."""
    digest = hashlib.sha256("\0".join(more).encode())
    for path in sorted(paths):
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def judging_digest(name: str, test: str) -> str:
    """Of all that decides what is found about the set `name`: itself, the grader, the audit, the asking `test` file.

    The set's source and what is released of it are digested whole, and so is all of the package but what only shows
    results, so that a new module counts before anybody thinks of it.
    """
    package = ROOT / "autograder"
    files = [p for p in package.rglob("*.py") if p.relative_to(package).parts[0] not in NOT_JUDGING]
    for folder in ("source_solutions", "assignments"):
        found = [p for p in (ROOT / folder / name).rglob("*") if p.is_file() and "__pycache__" not in p.parts]
        # a notebook beside its text is made from it on the way
        files += [p for p in found if p.suffix != ".ipynb" or not p.with_suffix(".py").exists()]
    files += (ROOT / "source_solutions").glob("*.py")  # what the sets' catalogues share
    helpers = Path(__file__).parent
    packages = [f"{package} {version(package)}" for package in ("numpy", "torch", "ipython", "cosmic-ray")]
    wanted = [*files, ROOT / "nbgrader_config.py", Path(test), helpers / "kept.py"]
    return digest_of(wanted, platform.python_version(), platform.machine(), *packages)


def proved_once(what: str, state: str, prove: Callable[[], None]) -> None:
    """Call `prove`, which raises where something is wrong, unless it was well in this very `state` before.

    Each account has proofs of its own; one that may not write here proves it each time.
    """
    if not os.access(ROOT, os.W_OK):
        prove()
        return
    proof = PROOFS / f"{what}-{os.getuid()}"
    if proof.is_file() and proof.read_text(encoding="utf-8") == state:
        return
    proof.unlink(missing_ok=True)
    prove()
    PROOFS.mkdir(parents=True, exist_ok=True)
    proof.write_text(state, encoding="utf-8")


def audit_in_its_own_process(name: str, *options: str) -> None:
    """Audit a set of this repository by the command; AssertionError with what it said where there is a breach.

    What it found is left in `_build/proofs`, to compare one state of the grader with another.

    An audit forks, and the process of a test run may hold threads of a browser, a cluster or torch that a fork would
    leave with their locks taken.
    """
    command = [sys.executable, "-m", "autograder", "audit", name, "--jobs", "2", "--json", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    if os.access(ROOT, os.W_OK):
        PROOFS.mkdir(parents=True, exist_ok=True)
        (PROOFS / f"found-{name}{''.join(options)}.json").write_text(ran.stdout, encoding="utf-8")
