"""`make lint` beside the other tests: mypy needs a minute on a new machine, and one processor at a time."""

import subprocess
from pathlib import Path


def test_make_lint_finds_nothing() -> None:
    done = subprocess.run(
        ["make", "-k", "lint"], cwd=Path(__file__).parents[2], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
