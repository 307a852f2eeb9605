"""The warm process: imports once, then forks a confined process for each submission.

It runs inside bubblewrap (or bare, with `--sandbox none`) and holds nothing secret. The control socket speaks one
JSON datagram a message; `start` carries the student process's socket as a file descriptor. Every child leaves this
process's user, mount, PID, IPC, network and host-name namespaces before a line of a student runs.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import platform
import resource
import select
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

from autograder.sandbox.inside import seccomp
from autograder.sandbox.inside.protocol import frame

CLONE_FLAGS = {
    "CLONE_NEWUSER": 0x10000000,
    "CLONE_NEWNS": 0x00020000,
    "CLONE_NEWPID": 0x20000000,
    "CLONE_NEWIPC": 0x08000000,
    "CLONE_NEWNET": 0x40000000,
    "CLONE_NEWUTS": 0x04000000,
}
MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_RDONLY, MS_BIND, MS_REC, MS_PRIVATE = 2, 4, 8, 1, 4096, 16384, 1 << 18
CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID = 0x00200000, 0x01000000
SYS_CLONE3 = 435  # on every architecture
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS = 1, 4, 24, 38, 40
NOBODY = 65534
HOME = "/home/student"
FRESH = (HOME, "/tmp", "/dev/shm")
COUNTED = ("RssAnon", "RssShmem", "VmSwap", "VmPTE")
PF_EXITING = 4
PF_FORKNOEXEC = 0x40
ENDING_SECONDS = 2.0
WATCH_SECONDS = 0.1
FIRST_SHAPES = [(3,), (1, 3), (3, 4), (5, 4), (5, 6), (2, 3, 4), (2, 5, 4), (2, 5, 6), (2, 3, 5), (2, 3, 6)]
MAX_DATAGRAM = 65536
TASKS = 4  # processes and threads of a submission that run at full priority

libc = ctypes.CDLL(None, use_errno=True)
holding = ctypes.PyDLL(None, use_errno=True)  # does not let go of the interpreter's lock during a call


def _checked(what: str, code: int) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(kind: str, target: str, flags: int, options: str = "") -> None:
    _checked(
        f"mount {kind} on {target}",
        libc.mount(kind.encode(), target.encode(), kind.encode(), flags, options.encode() or None),
    )


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


# ------------------------------------------------------------------------------------------ confinement


class CloneArgs(ctypes.Structure):
    """struct clone_args of the kernel, as far as it is used here; every field has 64 bits."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("flags", "pidfd", "child_tid", "parent_tid", "exit_signal")]
    _fields_ += [(name, ctypes.c_uint64) for name in ("stack", "stack_size", "tls")]


def fork_into_namespaces() -> int:
    """os.fork(), but the child has namespaces of its own from the start. Raises OSError where the kernel refuses.

    `unshare` would take a second fork to enter the new PID namespace, and a fork of this large process is the most
    of what a start costs. What the C library does in a child, keeping its thread's number, is asked of the kernel.
    """
    flags = CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
    for flag in CLONE_FLAGS.values():
        flags |= flag
    tid_place = ctypes.c_uint64()
    _checked("get_tid_address", libc.prctl(PR_GET_TID_ADDRESS, ctypes.byref(tid_place), 0, 0, 0))
    arguments = CloneArgs(flags=flags, child_tid=tid_place.value, exit_signal=signal.SIGCHLD)
    ctypes.pythonapi.PyOS_BeforeFork()
    pid = int(holding.syscall(SYS_CLONE3, ctypes.byref(arguments), ctypes.sizeof(arguments)))
    if pid == 0:
        ctypes.pythonapi.PyOS_AfterFork_Child()
        return 0
    number = ctypes.get_errno()
    ctypes.pythonapi.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(number, f"clone: {os.strerror(number)}")
    return pid


def be_nobody(uid: int, gid: int) -> None:
    """In a new user namespace: the user outside, `uid` and `gid`, is nobody inside."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{NOBODY} {uid} 1"), ("gid_map", f"{NOBODY} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
            file.write(text)


def private_folders(limits: dict[str, Any]) -> None:
    """Fresh empty folders in place of everything writable, no /proc, no device that memory or words pass through."""
    _checked("make mounts private", libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
    flags = MS_NOSUID | MS_NODEV
    size = f"size={limits['disk_bytes']},nr_inodes=4096,mode=0700"
    # a Python environment may itself lie below /tmp: it is held open and put back
    kept = {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in (sys.prefix, sys.base_prefix)}
    for folder in FRESH:
        _mount("tmpfs", folder, flags, size)
    for folder, held in kept.items():
        if folder.startswith(tuple(f"{fresh}/" for fresh in FRESH)):
            os.makedirs(folder, exist_ok=True)
            _checked(
                f"put {folder} back",
                libc.mount(f"/proc/self/fd/{held}".encode(), folder.encode(), None, MS_BIND | MS_REC, None),
            )
        os.close(held)
    _mount("tmpfs", "/proc", flags | MS_NOEXEC | MS_RDONLY, "mode=0555")
    _mount("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")  # for lines like !ls
    # A shared mapping of /dev/zero holds memory that no process is charged for.
    _checked("hide /dev/zero", libc.mount(b"/dev/null", b"/dev/zero", None, MS_BIND, None))


class CapHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class CapData(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_privileges() -> None:
    """No capability and no system call that a notebook does not need, now or ever again."""
    _checked("no_new_privs", libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    capability = 0
    while libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header, data = CapHeader(0x20080522, 0), (CapData * 2)()
    _checked("capset", libc.capset(ctypes.byref(header), ctypes.byref(data)))
    seccomp.install(libc)


def set_limits(limits: dict[str, Any], base: int) -> None:
    """Memory is counted on top of `base`, what the warm process itself already holds."""
    for name, value in (
        (resource.RLIMIT_DATA, base + limits["memory_bytes"]),
        (resource.RLIMIT_NPROC, limits["processes"]),
        (resource.RLIMIT_FSIZE, limits["file_bytes"]),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, 256),
        (resource.RLIMIT_CPU, int(limits["notebook_seconds"]) + 60),
    ):
        resource.setrlimit(name, (value, value))


def keep_only(number: int) -> None:
    """Close every descriptor but `number`, which becomes 3; 0, 1 and 2 lead to /dev/null."""
    null = os.open("/dev/null", os.O_RDWR)
    high = os.dup2(number, 200, inheritable=False)
    for target in (0, 1, 2):
        os.dup2(null, target)
    os.dup2(high, 3, inheritable=False)
    os.closerange(4, 1024)


def student_process(
    sock: socket.socket, limits: dict[str, Any], outside: tuple[int, int] | None, base: int, shell: Any
) -> None:
    """The last steps before the student's code: confine, then serve. Never returns.

    `outside` are user and group outside of the new namespaces; None where there are none.
    """
    from autograder.sandbox.inside import server as student
    from autograder.sandbox.inside.protocol import Channel

    os.setsid()  # signals to its own group must not reach the warm process, which is outside the PID namespace
    _checked("pdeathsig", libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))
    keep_only(sock.detach())
    channel = Channel(socket.socket(fileno=3))
    isolate = outside is not None
    try:
        if outside is not None:
            be_nobody(*outside)
            private_folders(limits)
            home = HOME
        else:
            home = limits["folder"]
        os.chdir(home)
        os.environ.update(HOME=home, TMPDIR="/tmp" if isolate else home)
        set_limits(limits, base)
        if isolate:
            drop_privileges()
    except OSError as error:
        channel.send({"refused": str(error)})
        os._exit(1)
    channel.max_sent = limits["answer_header"], limits["answer_blobs"]
    channel.send({"ready": os.getpid()})
    student.serve(shell, channel)


# --------------------------------------------------------------------------------------------- the loop


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
            call: Header = {"op": "call", "target": {"name": "first"}, "kwargs": {}}
            call["args"] = [pack(value, blobs, repr), pack(value.T, blobs, repr), 1]
            call["blobs"] = len(blobs)
            blobs.insert(0, json.dumps([call, call]).encode())
            workspace.answer({"op": "several", "names": ["first"], "forget": True}, [*blobs, *blobs[1:]])


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
                    _kill(pid)
            _kill(self.pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


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
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        _checked("dumpable", libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # so that children may write their uid_map
    time.tzset()
    Warm(control, isolate).run()


if __name__ == "__main__":
    main()
