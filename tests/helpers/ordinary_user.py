"""Runs a command as an account without rights, wherever the course and its Python lie."""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

from autograder.sandbox.launcher import find_bwrap

ROOT = Path(__file__).parents[2]
USER = 54321


def as_ordinary_user() -> list[str]:
    """The beginning of a command line that makes root an ordinary user, for what follows it.

    Folders that only root may enter, such as /root with a Python in it, get empty stand-ins in a mount namespace of
    the command's own; of what they hold, only this course and its Python are put back.
    """
    bwrap, setpriv = find_bwrap(), shutil.which("setpriv")
    assert bwrap and setpriv, "bubblewrap and util-linux are needed"
    needed = {ROOT, Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).resolve().parent.parent}
    closed = {p for path in needed for p in path.parents if not p.stat().st_mode & stat.S_IXOTH}
    command = [bwrap, "--dev-bind", "/", "/"]
    for folder in sorted(closed):
        command += ["--perms", "0755", "--tmpfs", str(folder)]
    for path in sorted(p for p in needed if closed & set(p.parents)):
        for parent in reversed(path.parents):
            if closed & {parent, *parent.parents} - {parent}:
                command += ["--perms", "0755", "--dir", str(parent)]
        command += ["--bind", str(path), str(path)]
    command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID", "--"]
    return [*command, setpriv, "--reuid", str(USER), "--regid", str(USER), "--clear-groups"]
