"""Runs jobs on a Dask cluster: `grade --scheduler tcp://host:8786`, with the extra `[cluster]`.

A job is bytes and so is its result, so workers share nothing with the course: no folder and no database. They need
this package in the same version, bubblewrap, and user namespaces, like any machine that grades.

A worker of the cluster runs jobs in threads. Time limits on checks need a main thread, and a check that hangs or
swells must be able to take its process with it; so each thread has a process of its own, as in the pool.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, ParamSpec, TypeVar

from autograder.errors import AutograderError, missing_extra
from autograder.grading.pool import Process

CONNECT_SECONDS = 20
_local = threading.local()
P = ParamSpec("P")
T = TypeVar("T")


class NoCluster(AutograderError):
    """The cluster cannot be used; the message says why and how to mend it."""


def run_on_worker(job: bytes) -> bytes:
    """Judge one job on a worker of the cluster, in a process of the worker thread's own. Raises AutograderError."""
    from autograder.grading.runner import grader_version
    from autograder.judging.job import Job
    from autograder.judging.worker import run_job

    asked, here = Job.from_bytes(job).grader_version, grader_version()
    if asked != here:
        raise NoCluster(
            f"the worker on {socket.gethostname()} runs another version ({here}) than this command ({asked}): "
            "install the same requirements.txt and the same autograder on both"
        )
    if not hasattr(_local, "process"):
        _local.process = Process()
    process: Process = _local.process
    return process.run(run_job, job)


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
        self.jobs: int = sum(self.client.nthreads().values())
        if not self.jobs:
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
    with DaskExecutor(address) as executor:
        return executor.jobs
