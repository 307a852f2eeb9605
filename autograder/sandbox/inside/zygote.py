"""The warm process: imports once, then forks a confined process for each submission.

It runs inside bubblewrap (or bare, with `--sandbox none`) and holds nothing secret. The control socket speaks one
JSON datagram a message; `start` carries the student process's socket as a file descriptor. Every child leaves this
process's user, mount, PID, IPC, network and host-name namespaces before a line of a student runs.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import select
import signal
import socket
import sys
import time
from typing import Any

from autograder.sandbox.inside import seccomp
from autograder.sandbox.inside.channel import Channel, frame
from autograder.sandbox.inside.confinement import confine, die_with_parent, fork_into_namespaces, keep_only, leave_root
from autograder.sandbox.inside.processes import (
    PF_EXITING,
    PF_FORKNOEXEC,
    below,
    data_size,
    kill,
    memory_of,
    process_tree,
    stat_of,
    step_back,
    tasks_of,
)

ENDING_SECONDS = 2.0
WATCH_SECONDS = 0.1
FIRST_SHAPES = [(3,), (1, 3), (3, 4), (5, 4), (5, 6), (2, 3, 4), (2, 5, 4), (2, 5, 6), (2, 3, 5), (2, 3, 6)]
MAX_DATAGRAM = 65536
TASKS = 4  # processes and threads of a submission that run at full priority


def student_process(
    sock: socket.socket, limits: dict[str, Any], outside: tuple[int, int] | None, base: int, shell: Any
) -> None:
    """The last steps before the student's code: confine, then serve. Never returns. See `confine`."""
    from autograder.sandbox.inside import server

    os.setsid()  # signals to its own group must not reach the warm process, which is outside the PID namespace
    die_with_parent()
    keep_only(sock.detach())
    channel = Channel(socket.socket(fileno=3))
    try:
        confine(limits, outside, base)
    except OSError as error:
        channel.send({"refused": str(error)})
        os._exit(1)
    channel.max_sent = limits["answer_header"], limits["answer_blobs"]
    channel.send({"ready": os.getpid()})
    server.serve(shell, channel)


def _load_torch() -> None:
    import torch

    torch.set_num_threads(1)
    torch.ones(2) @ torch.ones(2)


def _load_matplotlib() -> None:
    import matplotlib.pyplot as plt

    plt.figure()
    plt.close("all")


LIBRARIES = {"matplotlib": _load_matplotlib, "torch": _load_torch}


def _rehearse() -> None:
    """Answer calls like those of a test cell: Python adapts its code to what it runs again and again."""
    import numpy as np

    from autograder.sandbox.inside.protocol import Blobs, Header, pack
    from autograder.sandbox.inside.workspace import Workspace

    workspace = Workspace({"first": lambda *values: values}, seconds=False)
    for kind in (float, np.float32, bool):
        for shape in FIRST_SHAPES:
            blobs: Blobs = []
            value = np.ones(shape, kind)
            call: Header = {"op": "call", "target": 1, "kwargs": {}}
            call["args"] = [pack(value, blobs, repr), pack(value.T, blobs, repr), 1]
            call["blobs"] = len(blobs)
            workspace.answer({"op": "get", "names": ["first"], "forget": True}, [])
            several: Header = {"op": "several", "seconds": 1.0, "all_seconds": 2.0}
            reply, _ = workspace.answer(several, [json.dumps([call, call]).encode(), *blobs, *blobs])
            assert len(reply["replies"]) == 2, reply


class Child:
    """What the warm process knows of one submission's processes."""

    def __init__(self, pid: int, limits: dict[str, Any], isolate: bool) -> None:
        self.pid = pid
        self.ended = os.pidfd_open(pid)
        self.limits = limits
        self.isolate = isolate
        self.reason = ""
        self.strangers: set[int] = set()  # its processes that began another program, and their children
        self.code: int | None = None

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, within `seconds`; what else is in its PID namespace has ended by then too."""
        return bool(select.select([self.ended], [], [], seconds)[0])

    def exit_code(self) -> int | None:
        """None while it runs; negative for a signal. Once it has ended, the kernel may forget it."""
        if self.code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.code = os.waitstatus_to_exitcode(status)
        return self.code

    @property
    def is_ending(self) -> bool:
        """Whether the student process is on its way out by itself: its files close before anybody hears of it."""
        stat = stat_of(self.pid)
        return stat is None or stat.state in "ZX" or bool(stat.flags & PF_EXITING)

    def note_strangers(self, pids: list[int], tree: dict[int, list[int]]) -> None:
        """Find the processes that share none of the warm process's memory, because they began a program anew."""
        self.strangers.intersection_update(pids)
        for pid in pids:
            stat = stat_of(pid)
            if stat is not None and not stat.flags & PF_FORKNOEXEC:
                self.strangers.update((pid, *below(pid, tree)))

    def kill(self, reason: str = "") -> None:
        self.reason = self.reason or reason
        if self.exit_code() is None:
            if not self.isolate:
                for pid in below(self.pid, process_tree()):
                    kill(pid)
            kill(self.pid)


class Warm:
    def __init__(self, control: socket.socket, isolate: bool) -> None:
        self.control = control
        self.isolate = isolate
        self.children: dict[int, Child] = {}
        self.loaded: set[str] = set()
        self.next_watch = 0.0
        gc.disable()  # during the imports: all that they make stays
        self.shell = self._shell()
        self._settle()

    @staticmethod
    def _shell() -> Any:
        """A shell that has run a cell, and beside it what numpy loads late."""
        import asyncio  # noqa: F401

        import numpy.fft
        import numpy.linalg
        import numpy.random  # noqa: F401

        from autograder.sandbox.inside import server  # noqa: F401
        from autograder.sandbox.inside.shell import Shell

        os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"
        shell = Shell.warm()
        _rehearse()
        return shell

    def load(self, names: list[str]) -> None:
        """Import the large libraries that a notebook speaks of, once for all that come after it."""
        missing = [n for n in names if n in LIBRARIES and n not in self.loaded]
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
        self.base = data_size()
        self.baseline = memory_of(os.getpid())

    def run(self) -> None:
        self.control.send(json.dumps({"ready": True}).encode())
        while True:
            ready, _, _ = select.select([self.control], [], [], WATCH_SECONDS if self.children else None)
            if time.monotonic() >= self.next_watch:
                self.watch_memory()
                self.next_watch = time.monotonic() + WATCH_SECONDS
            if ready and not self.one_message():
                return

    def one_message(self) -> bool:
        data, fds, _, _ = socket.recv_fds(self.control, MAX_DATAGRAM, 1)
        if not data:
            return False
        message = json.loads(data)
        if message["op"] == "start":
            self.load(message["libraries"])
            self.start(message["id"], message["limits"], fds[0])
        elif message["op"] == "end":
            self.control.send(json.dumps(self.end(message["id"])).encode())
        return True

    def start(self, number: int, limits: dict[str, Any], fd: int) -> None:
        outside = (os.getuid(), os.getgid()) if self.isolate else None
        sock = socket.socket(fileno=fd)
        try:
            if self.isolate:
                seccomp.program(platform.machine())  # made once, here: the child finds it
            pid = fork_into_namespaces() if self.isolate else os.fork()
        except OSError as error:
            sock.sendall(frame({"refused": str(error)}))
            sock.close()
            return
        if pid == 0:
            try:
                self.control.close()
                for child in self.children.values():
                    os.close(child.ended)
                student_process(sock, limits, outside, self.base, self.shell)
            finally:
                os._exit(1)
        sock.close()
        self.children[number] = Child(pid, limits, self.isolate)

    def end(self, number: int) -> dict[str, Any]:
        """Kill whatever is left of a submission and say how it ended: exit code (negative: signal) and why."""
        child = self.children.pop(number, None)
        if child is None:  # it could not be started
            return {"exit_code": None, "reason": ""}
        if child.exit_code() is None and child.is_ending:
            child.wait(ENDING_SECONDS)
        ended_by_itself = child.exit_code()
        child.kill()
        if child.wait(ENDING_SECONDS):
            child.exit_code()
        os.close(child.ended)
        return {"exit_code": ended_by_itself, "reason": child.reason}

    def watch_memory(self) -> None:
        """Kill the submissions whose processes together hold too much memory; put crowds behind the others."""
        if not self.children:
            return
        tree = process_tree()
        for child in self.children.values():
            if child.exit_code() is not None:
                continue
            pids = [child.pid, *below(child.pid, tree)]
            child.note_strangers(pids, tree)
            held = sum(max(0, memory_of(p) - (0 if p in child.strangers else self.baseline)) for p in pids)
            if held > child.limits["memory_bytes"]:
                child.kill("out of memory")
            tasks = [t for p in pids for t in tasks_of(p)]
            if len(tasks) > TASKS:
                step_back(tasks)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    isolate = sys.argv[2] == "isolate"
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the command's business, not this process's
    if isolate and os.getuid() == 0:
        leave_root()
    time.tzset()
    Warm(control, isolate).run()


if __name__ == "__main__":
    main()
