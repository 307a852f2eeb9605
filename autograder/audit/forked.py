"""Runs tasks apart: each in a forked child that may loop for ever, eat memory or die, and harms nobody."""

from __future__ import annotations

import json
import os
import resource
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing import connection, get_context
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

EXTRA_MEMORY = 3 * 1024**3
MAX_FILE = 64 * 1024**2
RESULT = "result.json"


@dataclass
class Ran:
    """How a task ended: its `value`, or in `lost` why there is none ("timeout" or "crashed"). `seconds` it took."""

    value: Any = None
    lost: str = ""
    seconds: float = 0.0


@dataclass
class _Child:
    """A task under way in a process of its own, in `folder`; it must end by `limit` (time.monotonic seconds)."""

    number: int
    process: ForkProcess
    folder: Path
    began: float
    limit: float

    @classmethod
    def start(cls, number: int, task: Callable[[], Any], seconds: float, folder: Path) -> _Child:
        folder.mkdir()
        process = get_context("fork").Process(target=_be_child, args=(task, folder))
        with warnings.catch_warnings():
            # Python 3.12 warns of threads. The only ones are numpy's and torch's idle workers: the first are made anew
            # after a fork, the second are not used with one thread (see audit).
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        now = time.monotonic()
        return cls(number, process, folder, now, now + seconds)

    def end(self, is_late: bool) -> Ran:
        """Wait for the child, with force where it is late."""
        if is_late:
            self._kill()
        self.process.join()
        seconds, code = time.monotonic() - self.began, self.process.exitcode
        self.process.close()
        if is_late or code != 0:
            return Ran(None, "timeout" if is_late else "crashed", seconds)
        return Ran(json.loads((self.folder / RESULT).read_bytes()), "", seconds)

    def _kill(self) -> None:
        pid = self.process.pid
        assert pid is not None, "the child was started"
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:  # it had no time yet to make a group of its own
            self.process.kill()


def run_apart(
    tasks: Iterable[tuple[Callable[[], Any], float]],
    jobs: int = 1,
    done: Callable[[int, Ran], None] = lambda number, ran: None,
) -> list[Ran]:
    """Run each task (a function that returns JSON data, and its seconds) in a forked child; results in order.

    A child has limits on memory and file size, a folder of its own and no output. One that does not come back in time
    is killed with its children. The functions need not be picklable, for a fork copies the whole process. `done` is
    told of each result as it comes.
    """
    results: dict[int, Ran] = {}
    running: dict[Any, _Child] = {}

    def reap() -> None:
        patience = min(child.limit for child in running.values()) - time.monotonic()
        ended = connection.wait(list(running), max(0.0, patience))
        now = time.monotonic()
        late = [sentinel for sentinel, child in running.items() if sentinel not in ended and now >= child.limit]
        for sentinel in (*ended, *late):
            child = running.pop(sentinel)
            results[child.number] = child.end(sentinel in late)
            done(child.number, results[child.number])

    with tempfile.TemporaryDirectory(prefix="audit-") as folder:
        try:
            for number, (task, seconds) in enumerate(tasks):
                while len(running) >= max(1, jobs):
                    reap()
                child = _Child.start(number, task, seconds, Path(folder) / str(number))
                running[child.process.sentinel] = child
            while running:
                reap()
        finally:
            for child in running.values():
                child.end(is_late=True)
    return [results[number] for number in sorted(results)]


def _be_child(task: Callable[[], Any], folder: Path) -> None:
    """Runs in the forked child and never returns: nothing of the parent's may run at its end."""
    code = 1
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _limit_resources()
        os.chdir(folder)
        (folder / RESULT).write_text(json.dumps(task()))
        code = 0
    finally:
        os._exit(code)


def _limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    try:
        with open("/proc/self/statm") as file:
            held = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux: there the address space cannot be limited in a useful way
        return
    most = held + EXTRA_MEMORY
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
