"""What /proc says of processes, and what can be done to them; one that is gone is no error."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

COUNTED = ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
PF_EXITING = 4
PF_FORKNOEXEC = 0x40


def _bytes_of(process: int | str, lines: tuple[str, ...]) -> int:
    with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as file:
        return sum(int(line.split()[1]) * 1024 for line in file if line.startswith(lines))


def memory_of(pid: int) -> int:
    """Bytes of anonymous and shared memory that a process holds, page tables too; 0 when it is gone."""
    try:
        return _bytes_of(pid, COUNTED)
    except OSError:
        return 0


def data_size() -> int:
    """Bytes of this process's writable private memory, which RLIMIT_DATA counts."""
    return _bytes_of("self", ("VmData",))


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


def family_of(pid: int) -> dict[int, Stat]:
    """A process and all below it, parents first."""
    stats = {int(name): stat_of(int(name)) for name in os.listdir("/proc") if name.isdigit()}
    children: dict[int, list[int]] = {}
    for child, stat in stats.items():
        if stat is not None:
            children.setdefault(stat.parent, []).append(child)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return {one: stat for one in found if (stat := stats.get(one)) is not None}


def tasks_of(pid: int) -> list[int]:
    """The threads of a process; none when it is gone."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def open_waits(process: int | str) -> int:
    """A descriptor that tells how long a thread waited, see `waited`; readable where there is no /proc any more."""
    path = f"/proc/{process}/schedstat"
    return os.open(path if os.path.exists(path) else os.devnull, os.O_RDONLY)  # not every kernel counts


def waited(descriptor: int) -> float:
    """Seconds in which a thread could have run and others had the processors. Raises ProcessLookupError at its end."""
    counts = os.pread(descriptor, 64, 0).split()
    return int(counts[1]) / 1e9 if counts else 0.0


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
