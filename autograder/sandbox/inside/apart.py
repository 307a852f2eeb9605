"""Runs a test cell in a copy of the student's process, which ends with it: what the cell changes stays there.

This is for test cells that cannot be judged outside. A student's code could answer in the cell's place, so that results
of this kind are marked wherever they are shown.
"""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from autograder.sandbox.inside.shell import Shell
from autograder.sandbox.inside.workspace import OutOfTime, time_limit

MOST_BYTES = 8 * 1024**2
GRACE_SECONDS = 1.0


def run_apart(shell: Shell, source: str, helpers: str, seconds: float) -> dict[str, Any]:
    """The reply of `Shell.run` to this cell, as it comes from a fork of this process, in which `helpers` run first."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            shell.outputs.total_left = shell.outputs.cell_bytes
            if helpers:
                shell.run(helpers, seconds)
            data = json.dumps(shell.run(source, seconds)).encode()
            with open(theirs, "wb") as pipe:
                pipe.write(data[:MOST_BYTES])
        finally:
            os._exit(0)
    os.close(theirs)
    said = {"kind": "exception", "type": "", "message": "the process of the test cell ended before it did", "where": ""}
    try:
        with open(ours, "rb") as pipe, time_limit(seconds + GRACE_SECONDS):
            return dict(json.loads(pipe.read(MOST_BYTES)))
    except OutOfTime:
        said["kind"] = "timeout"
    except ValueError:  # nothing came, or no whole reply
        pass
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return {"error": said, "outputs": []}
