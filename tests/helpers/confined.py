"""A confined process that a test speaks to: its limits, what a cell prints there, how it ends, what runs beside it."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from autograder.sandbox.inside.channel import Closed
from autograder.sandbox.launcher import Limits, Sandbox, Student

MB = 2**20
LIMITS = Limits(
    cell_seconds=2, notebook_seconds=60, memory_bytes=400 * MB, processes=24, file_bytes=4 * MB, disk_bytes=8 * MB
)


def ask(student: Student, source: str, seconds: float = 5.0, patience: float = 30.0) -> dict[str, Any]:
    student.channel.send({"op": "run", "source": source, "seconds": seconds, "number": 1})
    return student.channel.receive(time.monotonic() + patience)[0]


def shown(student: Student, source: str, seconds: float = 5.0) -> str:
    """What a cell prints; its error, if any, is part of it."""
    reply = ask(student, source, seconds, seconds + 25)
    text = "".join(o.get("text", "") for o in reply["outputs"])
    return text + (f"{reply['error']['type']}: {reply['error']['message']}" if reply["error"] else "")


def ended(sandbox: Sandbox, source: str) -> str:
    """What a cell prints in a process of its own."""
    student = sandbox.start(LIMITS)
    try:
        return shown(student, source)
    finally:
        student.end()


def why_it_ended(sandbox: Sandbox, code: str) -> str:
    """The reason for which a process is killed in which a cell with `code` would run for a minute."""
    student = sandbox.start(LIMITS)
    with pytest.raises(Closed):
        ask(student, f"{code}\nimport time; time.sleep(60)", seconds=60, patience=60)
    return str(student.end()["reason"])


def processes_of(sandbox: Sandbox) -> list[int]:
    """All processes in the sandbox, seen from outside: bubblewrap's, the warm one, the student's."""
    assert sandbox.process is not None
    found, waiting = [], [sandbox.process.pid]
    while waiting:
        pid = waiting.pop()
        for child in children(pid):
            found.append(child)
            waiting.append(child)
    return found


def children(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> bool:
    limit = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True
