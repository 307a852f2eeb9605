"""Everything about hostile and broken submissions once more, as an account without rights."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ordinary_user import ROOT, USER, as_ordinary_user

CHEATS = [f"test_cheats{of}.py" for of in ("", "_channel", "_grader", "_machine", "_reach")]
OTHERS = ["test_hostile_class.py", "test_busy_machine.py", "test_broken_input.py", "test_worthless_answers.py"]
TESTS = ["test_sandbox.py", *CHEATS, *OTHERS]


def run(*command: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        [*as_ordinary_user(), *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=3000
    )


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_the_account_has_no_rights(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    code = (
        "import os\nprint(os.getuid(), os.getgroups())\n"
        f"for act in (lambda: open({str(secret)!r}), lambda: os.setuid(0), lambda: os.listdir('/root')):\n"
        "    try: print(act())\n    except OSError as error: print(type(error).__name__)\n"
        "print([line for line in open('/proc/self/status') if line.startswith('CapEff')])"
    )
    said = run(sys.executable, "-c", code).stdout.splitlines()
    assert said[0] == f"{USER} []" and said[1:3] == ["PermissionError"] * 2
    assert "0000000000000000" in said[4]


@pytest.mark.slow
@pytest.mark.skipif(os.getuid() != 0, reason="these tests run as an ordinary user already")
@pytest.mark.parametrize("module", TESTS)
def test_as_an_ordinary_user(module: str) -> None:
    path = Path(__file__).parents[1] / "sandbox" / module
    done = run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(path))
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
