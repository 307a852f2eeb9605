"""Runs tasks apart: each in a forked child that may loop for ever, eat memory or die, and harms nobody."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from multiprocessing import connection, get_context
from typing import Any, NamedTuple

from autograder.sandbox.inside.processes import data_size

EXTRA_MEMORY = 3 * 1024**3
MAX_FILE = 64 * 1024**2


class Ran(NamedTuple):
    """How a task ended: its `value`, or in `lost` why there is none ("timeout" or "crashed")."""

    value: Any = None
    lost: str = ""


class _Child:
    """A task under way in a process of its own; it must end by `limit` (time.monotonic seconds)."""

    def __init__(self, number: int, task: Callable[[], Any], seconds: float, folder: str) -> None:
        fork = get_context("fork")
        self.number, self.limit = number, time.monotonic() + seconds
        self.answer, theirs = fork.Pipe(duplex=False)
        self.process = fork.Process(target=_be_child, args=(task, theirs, folder))
        with warnings.catch_warnings():
            # Python 3.12 warns of threads. The only ones are numpy's and torch's idle workers: the first are made anew
            # after a fork, the second are not used with one thread (see audit).
            warnings.simplefilter("ignore", DeprecationWarning)
            self.process.start()
        theirs.close()

    def end(self, is_late: bool) -> Ran:
        """What the child answered; one that is late is killed, with its children."""
        pid = self.process.pid
        assert pid is not None, "the child was started"
        try:
            return Ran(lost="timeout") if is_late else Ran(self.answer.recv())
        except (EOFError, OSError):  # nothing came, or half a message
            return Ran(lost="crashed")
        finally:
            try:
                os.killpg(pid, signal.SIGKILL)
            except ProcessLookupError:  # it is gone, or had no time yet to make a group of its own
                self.process.kill()
            self.process.join()
            self.process.close()
            self.answer.close()


def run_apart(tasks: Iterable[tuple[Callable[[], Any], float]], jobs: int = 1) -> Iterator[tuple[int, Ran]]:
    """Run each task (a function that returns what can be pickled, and its seconds) in a forked child.

    Yields the number of a task and how it ended, as they end. A child has limits on memory and file size, a folder of
    its own and no output. One that does not come back in time is killed with its children. The functions need not be
    picklable, for a fork copies the whole process.
    """
    running: dict[Any, _Child] = {}

    def ended(most: int) -> Iterator[tuple[int, Ran]]:
        """Those that ended, once no more than `most` are left."""
        while len(running) > most:
            patience = min(child.limit for child in running.values()) - time.monotonic()
            answered = connection.wait(list(running), max(0.0, patience))
            late = [a for a, child in running.items() if a not in answered and time.monotonic() >= child.limit]
            for answer in (*answered, *late):
                child = running.pop(answer)
                yield child.number, child.end(answer in late)

    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        try:
            for number, (task, seconds) in enumerate(tasks):
                yield from ended(max(1, jobs) - 1)
                child = _Child(number, task, seconds, folder)
                running[child.answer] = child
            yield from ended(0)
        finally:
            for child in running.values():
                child.end(is_late=True)


def _be_child(task: Callable[[], Any], answer: connection.Connection, folder: str) -> None:
    """Runs in the forked child and never returns: nothing of the parent's may run at its end."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
        if sys.platform == "linux":  # elsewhere memory cannot be limited in a useful way
            most, hard = data_size() + EXTRA_MEMORY, resource.getrlimit(resource.RLIMIT_DATA)[1]
            if hard == resource.RLIM_INFINITY or most < hard:
                resource.setrlimit(resource.RLIMIT_DATA, (most, most))
        os.chdir(tempfile.mkdtemp(dir=folder))
        answer.send(task())
        code = 0
    finally:
        os._exit(code)
