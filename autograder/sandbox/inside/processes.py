"""What /proc says of processes, and what can be done to them; one that is gone is no error."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

COUNTED = ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
PF_EXITING = 4
PF_FORKNOEXEC = 0x40


def memory_of(pid: int) -> int:
    """Bytes of anonymous and shared memory that a process holds, page tables too; 0 when it is gone."""
    total = 0
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith(COUNTED):
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


class Stat(NamedTuple):
    """What /proc says of a process: its state as a letter, its parent, and the kernel's flags."""

    state: str
    parent: int
    flags: int


def stat_of(pid: int) -> Stat | None:
    """None when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return Stat(fields[0], int(fields[1]), int(fields[6]))


def data_size() -> int:
    """Bytes of this process's writable private memory, which RLIMIT_DATA counts."""
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        for line in file:
            if line.startswith("VmData"):
                return int(line.split()[1]) * 1024
    raise OSError("no VmData in /proc/self/status")


def process_tree() -> dict[int, list[int]]:
    """Children of every process visible here."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            stat = stat_of(int(name))
            if stat is not None:
                children.setdefault(stat.parent, []).append(int(name))
    return children


def below(pid: int, tree: dict[int, list[int]]) -> list[int]:
    """All descendants of a process."""
    found, waiting = [], [pid]
    while waiting:
        for child in tree.get(waiting.pop(), []):
            found.append(child)
            waiting.append(child)
    return found


def tasks_of(pid: int) -> list[int]:
    """The threads of a process; none when it is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def step_back(tasks: list[int]) -> None:
    """Lowest priority for these threads, for good: however many they are, other submissions keep their time."""
    for task in tasks:
        try:
            os.setpriority(os.PRIO_PROCESS, task, 19)
        except ProcessLookupError:
            continue


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
