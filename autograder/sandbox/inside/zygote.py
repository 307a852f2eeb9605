"""The warm process: imports once, then forks a confined process for each submission, one after the other.

It runs inside bubblewrap (or bare, with `--sandbox none`) and holds nothing secret. What comes on the control socket
is JSON: limits, along with the socket of a student's process, start one, which is answered by a descriptor of how long
it waits for processors; anything else ends it, which is answered by how it ended. Every child leaves this process's
user, mount, PID, IPC, network and host-name namespaces before a line of a student runs.
"""

from __future__ import annotations

import errno
import gc
import json
import os
import select
import signal
import socket
import sys
import time
from importlib.util import find_spec
from typing import Any

from autograder.sandbox.inside import processes, seccomp
from autograder.sandbox.inside.channel import frame
from autograder.sandbox.inside.confinement import fork_into_namespaces, leave_root

ENDING_SECONDS = 10.0
WATCH_SECONDS = 0.1
TRIES = 300  # of a start, WATCH_SECONDS apart, where the kernel has no room for a process just now
LOOKS, BETWEEN_LOOKS = 100, 0.005  # one after the other, and seconds, before what cannot be counted is ended
UNCOUNTED = "processes that come and go faster than they can be counted"
MAX_DATAGRAM = 65536
TASKS = 4  # processes and threads of a submission that run at full priority


def _load_torch() -> None:
    import torch

    torch.set_num_threads(1)
    torch.ones(2) @ torch.ones(2)


def _load_matplotlib() -> None:
    import matplotlib.pyplot as plt

    plt.figure()
    plt.close("all")


LIBRARIES = {"matplotlib": _load_matplotlib, "torch": _load_torch}


def forked(isolate: bool) -> int:
    """A fork's answer; where the kernel has no room for a process, it is asked again. Raises OSError."""
    tries = TRIES
    while True:
        try:
            return fork_into_namespaces() if isolate else os.fork()
        except OSError as error:
            tries -= 1
            if not tries or error.errno not in (errno.EAGAIN, errno.ENOMEM):
                raise
        time.sleep(WATCH_SECONDS)


class Child:
    """What the warm process knows of one submission's processes."""

    def __init__(self, pid: int, memory_bytes: int, isolate: bool) -> None:
        self.pid = pid
        self.ended = os.pidfd_open(pid)
        self.memory_bytes = memory_bytes
        self.isolate = isolate
        self.reason = ""
        self.looks = self.with_others = 0
        self.code: int | None = None

    def exit_code(self, seconds: float = 0.0) -> int | None:
        """Negative for a signal; None if it still runs after `seconds`. With it ends all of its PID namespace."""
        if self.code is None and select.select([self.ended], [], [], seconds)[0]:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def is_ending(self) -> bool:
        """Whether the student process is on its way out by itself: its files close before anybody hears of it."""
        threads = map(processes.stat_of, processes.tasks_of(self.pid))
        return all(one is None or one.state in "ZX" or one.flags & processes.PF_EXITING for one in threads)

    def kill(self, reason: str = "") -> None:
        self.reason = self.reason or reason
        if self.exit_code() is None:
            for pid in [self.pid] if self.isolate else processes.family_of(self.pid):
                processes.kill(pid)

    def watch(self, baseline: int) -> None:
        """Kill its processes where they together hold too much memory, or cannot be counted.

        `baseline` are the bytes that the warm process alone holds; all that they and it hold beyond is theirs.
        """
        for _ in range(LOOKS):
            if self.exit_code() is not None or self._sees_all(baseline):
                return
            time.sleep(BETWEEN_LOOKS)
        self.kill(UNCOUNTED)

    def _sees_all(self, baseline: int) -> bool:
        """One look, which says if none can have been missed. Puts a crowd behind the others."""
        listed = set(processes.every())
        family = processes.family_of(self.pid)
        tasks = [task for pid in family for task in processes.tasks_of(pid)]
        room = self.memory_bytes - (processes.SOCKET_BYTES * processes.sockets_of(self.pid) if self.isolate else 0)
        touched, shares = list(map(processes.memory_of, family)), map(processes.share_of, [*family, os.getpid()])
        # They hold at most what each can touch; only where that is too much are pages looked at, shared ones once.
        if sum(touched) > room and sum(shares) - baseline > room:
            self.kill("out of memory")
        self.looks += 1
        self.with_others += len(tasks) > 1
        if len(tasks) > TASKS:  # the first thread would wait for them, which costs it no time
            processes.step_back([task for task in tasks if task != self.pid])
        # A process or a thread that ended before it was read may have handed its memory to one that began meanwhile.
        unread = any(not size and len(processes.tasks_of(pid)) > 1 for pid, size in zip(family, touched, strict=True))
        return not self.isolate or (not unread and listed.issuperset(processes.every()))

    def end(self) -> dict[str, Any]:
        """Kill whatever is left and say how it ended: exit code (negative: signal), why, and if it was a crowd.

        Two are one, if they were there for most of the time: the second can keep the first waiting as it likes.
        """
        ended_by_itself = self.exit_code(ENDING_SECONDS if self.is_ending() else 0.0)
        self.kill()
        self.exit_code(ENDING_SECONDS)
        os.close(self.ended)
        return {"exit_code": ended_by_itself, "reason": self.reason, "crowd": 2 * self.with_others > self.looks}


class Warm:
    """The imported libraries, the shell that every student's process starts with, and the one that runs now."""

    def __init__(self, control: socket.socket, isolate: bool) -> None:
        self.control = control
        self.isolate = isolate
        self.child: Child | None = None
        self.loaded: set[str] = set()
        gc.disable()  # during the imports: all that they make stays
        from autograder.sandbox.inside.server import student_process, warm_shell

        self.student_process, self.shell = student_process, warm_shell()
        self._settle()

    def load(self, names: list[str]) -> None:
        """Import the large libraries that a notebook speaks of, where they are installed, for all that come after."""
        missing = [n for n in names if n in LIBRARIES and n not in self.loaded and find_spec(n)]
        if not missing:
            return
        gc.disable()
        for name in missing:
            LIBRARIES[name]()
        self.loaded.update(missing)
        self._settle()

    def _settle(self) -> None:
        """Keep what is there out of the garbage collector's way, and measure it: limits count on top of it."""
        gc.collect()
        gc.freeze()
        gc.enable()
        self.base = processes.data_size()
        self.baseline = processes.memory_of(os.getpid())

    def run(self) -> None:
        """Do what is asked for, until the other side hangs up."""
        while True:
            if not select.select([self.control], [], [], WATCH_SECONDS if self.child else None)[0]:
                assert self.child is not None
                self.child.watch(self.baseline)
                continue
            data, fds, _, _ = socket.recv_fds(self.control, MAX_DATAGRAM, 1)
            if not data:
                return
            if fds:
                self.start(socket.socket(fileno=fds[0]), **json.loads(data))
            else:
                self.control.send(json.dumps(self.end()).encode())

    def start(self, sock: socket.socket, limits: dict[str, Any], libraries: list[str]) -> None:
        self.end()
        self.load(libraries)
        outside = (os.getuid(), os.getgid()) if self.isolate else None
        try:
            if self.isolate:
                seccomp.program()  # made once, here: the child finds it
            pid = forked(self.isolate)
        except OSError as error:
            sock.sendall(frame({"refused": str(error)}))
            sock.close()
            self.control.send(b"refused")
            return
        if pid == 0:
            try:
                self.control.close()
                self.student_process(sock, limits, outside, self.base, self.shell)
            finally:
                os._exit(1)
        sock.close()
        self.child = Child(pid, limits["memory_bytes"], self.isolate)
        waits = processes.open_waits(pid)
        socket.send_fds(self.control, [b"started"], [waits])
        os.close(waits)

    def end(self) -> dict[str, Any]:
        child, self.child = self.child, None
        return {"exit_code": None, "reason": ""} if child is None else child.end()  # none: it could not be started


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    isolate = sys.argv[2] != "none"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's business, not this process's
    if isolate and os.getuid() == 0:
        leave_root()
    time.tzset()
    Warm(control, isolate).run()


if __name__ == "__main__":
    main()
