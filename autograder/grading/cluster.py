"""Runs jobs on a Dask cluster: `grade --scheduler tcp://host:8786`.

A job is bytes and so is its result, so workers share nothing with the course: no folder and no database. They need
this package in the same version, bubblewrap, and user namespaces, like any machine that grades.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

from autograder.errors import AutograderError
from autograder.grading.job_process import JobProcess

CONNECT_SECONDS = 20
_local = threading.local()


class NoCluster(AutograderError):
    """The cluster cannot be used; the message says why and how to mend it."""


def run_on_worker(job: bytes) -> bytes:
    """Judge one job on a worker of the cluster, in a process of the worker thread's own. Raises NoCluster."""
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
    return _local.process.run(job)


class DaskExecutor(Executor):
    """A `concurrent.futures.Executor` on the cluster; a job whose workers die again and again is BrokenExecutor."""

    def __init__(self, address: str) -> None:
        """Raises NoCluster where nobody answers at `address` or no worker is there."""
        from distributed import Client

        try:
            self.client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            said = str(error).split("\n")[0][:200]
            raise NoCluster(
                f"no Dask scheduler answers at {address} ({said}); start one with `dask scheduler` and workers with "
                "`dask worker ADDRESS`"
            ) from None
        if not self.client.scheduler_info(n_workers=-1)["workers"]:
            self.client.close()
            raise NoCluster(f"the scheduler at {address} has no workers; start some with `dask worker {address}`")

    def submit(self, function: Callable[[bytes], bytes], /, *args: Any, **kwargs: Any) -> Future:
        """`function` is what a local pool would run; the cluster runs the same job by `run_on_worker`."""
        from distributed.scheduler import KilledWorker

        result: Future = Future()
        remote = self.client.submit(run_on_worker, *args, pure=False, **kwargs)

        def done(finished: Any) -> None:
            if finished.status == "finished":
                result.set_result(finished.result())
                return
            error = finished.exception() if finished.status == "error" else None
            if error is None or isinstance(error, KilledWorker):
                error = BrokenExecutor("the cluster lost this job")
            result.set_exception(error)

        remote.add_done_callback(done)
        result.remote = remote  # a Dask future that nobody holds is cancelled
        return result

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.client.close()


def workers_of(address: str) -> int:
    """How many jobs the cluster runs at once. Raises NoCluster."""
    executor = DaskExecutor(address)
    try:
        return sum(executor.client.nthreads().values())
    finally:
        executor.shutdown()
