"""What /proc says of processes, and what can be done to them; one that is gone is no error."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import NamedTuple

TOUCHED = ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
SHARES = ("Pss_Anon", "Pss_Shmem", "SwapPss:")
SOCKET_BYTES = 320 * 1024  # the most that waits in one: the kernel's 208 KiB, and one message that passes them by half
PF_EXITING = 4


def _lines(process: int | str, file: str, names: str | tuple[str, ...] = "") -> list[str]:
    """Lines that begin so. Where the first thread has ended, which then knows no memory, another's."""
    for thread in (process, *tasks_of(process)):
        with suppress(OSError), open(f"/proc/{thread}/{file}", encoding="utf-8", errors="replace") as text:
            if found := [line for line in text if line.startswith(names)]:
                return found
    return []


def _bytes_of(process: int | str, file: str, names: tuple[str, ...]) -> int:
    return sum(int(line.split()[1]) * 1024 for line in _lines(process, file, names))


def memory_of(pid: int) -> int:
    """Bytes of anonymous and shared memory that a process can touch, page tables too; 0 when it is gone."""
    return _bytes_of(pid, "status", TOUCHED)


def share_of(pid: int) -> int:
    """As `memory_of`, but of a page that n processes can touch 1/n for each. Slow: the kernel walks page tables."""
    share = _bytes_of(pid, "smaps_rollup", SHARES)
    return share + _bytes_of(pid, "status", ("VmPTE",)) if share else memory_of(pid)  # where one may not look


def sockets_of(pid: int) -> int:
    """Unix sockets in the network namespace of a process, with those that nobody has accepted or received yet."""
    return max(0, len(_lines(pid, "net/unix")) - 1)  # below a head


def data_size() -> int:
    """Bytes of this process's writable private memory, which RLIMIT_DATA counts."""
    return _bytes_of("self", "status", ("VmData",))


class Stat(NamedTuple):
    """What /proc says of a process: its state as a letter, its parent, and the kernel's flags."""

    state: str
    parent: int
    flags: int


def stat_of(pid: int) -> Stat | None:
    """None when the process is gone."""
    fields = "".join(_lines(pid, "stat")).rpartition(")")[2].split()
    return Stat(fields[0], int(fields[1]), int(fields[6])) if fields else None


def every() -> list[int]:
    """All processes of this process's PID namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def family_of(pid: int) -> list[int]:
    """A process and all below it, parents first."""
    children: dict[int, list[int]] = {}
    for child in every():
        if (stat := stat_of(child)) is not None:
            children.setdefault(stat.parent, []).append(child)
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def tasks_of(pid: int | str) -> list[int]:
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
        with suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, task, 19)


def kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
