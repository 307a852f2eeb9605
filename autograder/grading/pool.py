"""A pool of processes that judge: each is bounded in memory, serves one thread, and ends with it.

A check that hangs or swells where no exception reaches it takes its process with it, and costs the job in hand only.
The processes are started apart from the program that asks, which may be a web server or a notebook: they import
nothing of it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from multiprocessing.connection import Connection, Pipe
from typing import Any, TypeVar

from autograder import ONE_THREAD, imports_of_a_grader
from autograder.errors import AutograderError

OWN_BYTES = 4 * 1024**3  # of a process, on top of what it holds at first
T = TypeVar("T")


class Hung(BrokenExecutor):
    """The process computed for longer than `autograder.judging.judge.watch` allows, as it would again."""


class Process:
    """A process that runs one function after the other; the first call starts it, also the first after it died."""

    def __init__(self) -> None:
        self.started: tuple[subprocess.Popen[bytes], Connection] | None = None

    def run(self, function: Callable[..., T], *args: Any) -> T:
        """What the function, one of a module's own, returns there.

        Raises Hung or another BrokenExecutor where the process dies, an AutograderError as the function does, else
        RuntimeError.
        """
        process, pipe = self.started = self.started or _start()
        try:
            pipe.send((function, args))
            answer: T | Exception = pipe.recv()
        except (OSError, EOFError):
            self.end()
            kind = Hung if process.returncode == -signal.SIGVTALRM else BrokenExecutor
            raise kind("the process that judged this submission died") from None
        if isinstance(answer, Exception):
            raise answer
        return answer

    def kill(self) -> None:
        """Also from another thread than the one that waits in `run`."""
        if self.started:
            self.started[0].kill()

    def end(self) -> None:
        self.kill()
        if self.started:
            self.started[0].wait()
            self.started[1].close()
            self.started = None


def _start() -> tuple[subprocess.Popen[bytes], Connection]:
    ours, theirs = Pipe()
    with theirs:
        command = [sys.executable, "-P", "-m", __name__, str(theirs.fileno())]
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[theirs.fileno()],
            env={**os.environ, **ONE_THREAD, "MPLBACKEND": "agg"},  # a set may draw, and there need be no screen
            start_new_session=True,  # Ctrl-C is the command's business
        )
    return process, ours


class Pool(ThreadPoolExecutor):
    """An executor of threads with a process each, which is kept from job to job."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.processes = [Process() for _ in range(count)]
        self.free = list(self.processes)

    def submit(self, function: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        def run() -> T:
            process = self.free.pop()
            try:
                return process.run(function, *args)
            finally:
                self.free.append(process)

        return super().submit(run)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Always waits; `cancel_futures` also ends what is under way."""
        super().shutdown(wait=not cancel_futures, cancel_futures=cancel_futures)
        for process in self.processes:
            process.kill()
        super().shutdown()
        for process in self.processes:
            process.end()


def serve(pipe: Connection) -> None:
    """What a process of the pool does until the other end is closed."""
    with imports_of_a_grader():
        from autograder.judging import worker  # noqa: F401
        from autograder.sandbox.inside.confinement import die_with_parent
        from autograder.sandbox.inside.processes import data_size

    die_with_parent()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (data_size() + OWN_BYTES, hard))
    while True:
        try:
            function, args = pipe.recv()
        except EOFError:
            return
        try:
            answer = function(*args)
        except MemoryError:  # what fills this process would stay
            return
        except AutograderError as error:  # told to the other side, which raises it
            answer = AutograderError(str(error))
        except Exception as error:
            answer = RuntimeError(f"{type(error).__name__}: {error}")
        pipe.send(answer)


if __name__ == "__main__":
    serve(Connection(int(sys.argv[1])))
