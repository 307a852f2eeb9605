"""Runs jobs on a Dask cluster: `grade --scheduler tcp://host:8786`, with the extra `[cluster]`.

A job is bytes and so is its result, so workers share nothing with the course: no folder and no database. They need
this package in the same version, bubblewrap, and user namespaces, like any machine that grades.

A worker of the cluster runs jobs in threads. Time limits on checks need a main thread, and a check that hangs or
swells must be able to take its process with it; so each thread has a process of its own, which runs this module.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing.connection import Connection, Pipe
from typing import Any, ParamSpec, TypeVar

from autograder import begin_worker
from autograder.errors import AutograderError, missing_extra

CONNECT_SECONDS = 20
_local = threading.local()
P = ParamSpec("P")
T = TypeVar("T")


class NoCluster(AutograderError):
    """The cluster cannot be used; the message says why and how to mend it."""


class JobProcess:
    """A process that judges one job after another; started with the first, and again with the next after it died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, job: bytes) -> bytes:
        """The result of `run_job`. Raises AutograderError as that does, and BrokenExecutor when the process dies."""
        if self.process is None:
            self.pipe, theirs = Pipe()
            command = [sys.executable, "-m", __name__, str(theirs.fileno())]
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()])
            theirs.close()
        try:
            self.pipe.send_bytes(job)
            kind, data = self.pipe.recv()
        except (OSError, EOFError):
            self.close()
            raise BrokenExecutor("the process that judged this submission died") from None
        if kind is not None:
            raise kind(data)
        return bytes(data)

    def close(self) -> None:
        """End the process, whatever it is doing."""
        if self.process is not None:
            self.pipe.close()
            self.process.kill()
            self.process.wait()
            self.process = None


def answer_jobs(pipe: Connection) -> None:
    """What the process of a `JobProcess` does until the other end is closed."""
    begin_worker()
    from autograder.judging.worker import be_worker, run_job

    be_worker()
    while True:
        try:
            job = pipe.recv_bytes()
        except EOFError:
            return
        try:
            answer: tuple[type[Exception] | None, Any] = (None, run_job(job))
        except AutograderError as error:  # told to the other side, which raises it
            answer = (AutograderError, str(error))
        except Exception as error:
            answer = (RuntimeError, f"{type(error).__name__}: {error}")
        pipe.send(answer)


def run_on_worker(job: bytes) -> bytes:
    """Judge one job on a worker of the cluster, in a process of the worker thread's own. Raises AutograderError."""
    from autograder.grading.runner import grader_version
    from autograder.judging.job import Job

    asked, here = Job.from_bytes(job).grader_version, grader_version()
    if asked != here:
        raise NoCluster(
            f"the worker on {socket.gethostname()} runs another version ({here}) than this command ({asked}): "
            "install the same requirements.txt and the same autograder on both"
        )
    if not hasattr(_local, "process"):
        _local.process = JobProcess()
    process: JobProcess = _local.process
    return process.run(job)


class DaskExecutor(Executor):
    """A `concurrent.futures.Executor` on the cluster; a job whose workers die again and again is BrokenExecutor."""

    def __init__(self, address: str) -> None:
        """Raises AutograderError where nobody answers at `address`, no worker is there, or Dask is not installed."""
        try:
            from distributed import Client
        except ImportError as error:
            raise missing_extra("--scheduler", "cluster") from error
        try:
            self.client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            said = str(error).split("\n")[0][:200]
            raise NoCluster(
                f"no Dask scheduler answers at {address} ({said}); start one with `dask scheduler` and workers with "
                "`dask worker ADDRESS`"
            ) from None
        self.remotes: dict[Any, Any] = {}  # a Dask future that nobody holds is cancelled
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            self.client.close()
            raise NoCluster(f"the scheduler at {address} has no workers; start some with `dask worker {address}`")

    def submit(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """`function` is what a local pool would run; the cluster runs the same job by `run_on_worker`."""
        from distributed.scheduler import KilledWorker

        result: Future[T] = Future()
        remote = self.client.submit(run_on_worker, *args, pure=False, **kwargs)

        def done(finished: Any) -> None:
            if finished.status == "finished":
                result.set_result(finished.result())
            else:
                error = finished.exception() if finished.status == "error" else None
                if error is None or isinstance(error, KilledWorker):
                    error = BrokenExecutor("the cluster lost this job")
                result.set_exception(error)
            self.remotes.pop(finished.key, None)

        self.remotes[remote.key] = remote
        remote.add_done_callback(done)
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, which goes on without this command."""
        self.client.close()


def workers_of(address: str) -> int:
    """How many jobs the cluster runs at once. Raises AutograderError."""
    executor = DaskExecutor(address)
    try:
        return sum(executor.client.nthreads().values())
    finally:
        executor.shutdown()


if __name__ == "__main__":
    answer_jobs(Connection(int(sys.argv[1])))
