"""A worker: judges one job after the other, keeps warm sandboxes and parsed sources, and guards itself."""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import gc
import json
import multiprocessing
import os
import resource
import signal
import sys
from collections.abc import Iterator

from autograder.errors import AutograderError
from autograder.judging.job import Job
from autograder.judging.judge import Judge
from autograder.judging.reference import Judged
from autograder.sandbox.inside.processes import data_size
from autograder.sandbox.launcher import Sandbox

OWN_BYTES = 4 * 1024**3  # of a worker, on top of what it holds at first

_sandboxes: dict[tuple[str, bool], Sandbox] = {}
_sources: dict[str, Judged] = {}


@atexit.register
def _close_sandboxes() -> None:
    for sandbox in _sandboxes.values():
        sandbox.close()
    _sandboxes.clear()


def sandbox_for(mode: str, wants_torch: bool) -> Sandbox:
    """The kept sandbox; one with torch in it is apart, where each start and end of a process takes twice as long."""
    key = mode, wants_torch
    if key not in _sandboxes:
        _sandboxes[key] = Sandbox(mode)
    return _sandboxes[key]


def source_of(job: Job) -> Judged:
    """The parsed source of the job's set, kept from job to job."""
    if job.assignment_version not in _sources:
        _sources.clear()
        gc.freeze()  # modules stay: the collector need not look at them again, nor at the end
        gc.enable()  # a worker of the pool imported them without it
        _sources[job.assignment_version] = Judged.from_text(job.source, job.catalogue, job.assignment, job.set_checks)
    return _sources[job.assignment_version]


_is_worker = multiprocessing.parent_process() is not None


def be_worker() -> None:
    """This process judges and does nothing else: it may be bounded."""
    global _is_worker
    _is_worker = True


def guard_worker(seconds: float) -> None:
    """Bound a worker process of a pool: in memory for good, and in what it computes until it is guarded again.

    A check that hands a student's numbers to compiled code can hang or swell where no exception reaches it. The pool
    notices that a worker is gone and judges its submissions once more, each alone. Not for the command's own process.
    """
    if not _is_worker:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_DATA, (data_size() + OWN_BYTES, hard))
    faulthandler.register(signal.SIGVTALRM, file=sys.__stderr__ or sys.stderr, chain=True)  # chain: and end
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def run_job(data: bytes) -> bytes:
    """Judge one submission; what an executor runs. Raises SandboxRefused, BadSource or BadCatalogue."""
    job = Job.from_bytes(data)
    with _drawing_without_a_screen():
        source = source_of(job)
        judge = Judge(job, source)
        guard_worker(3 * judge.limits.notebook_seconds + 60)
        try:
            result = judge.run(sandbox_for(job.sandbox, "torch" in judge.libraries))
        except AutograderError:
            raise
        except Exception as error:  # our own mistake, met by one submission: the class goes on, and it is not silent
            result = judge.broken(error)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return json.dumps(result.to_json()).encode()


@contextlib.contextmanager
def _drawing_without_a_screen() -> Iterator[None]:
    """For a set that draws (others need not import it); kernels of formgrader's server go on drawing in pages."""
    before = os.environ.get("MPLBACKEND")
    os.environ["MPLBACKEND"] = "agg"
    try:
        yield
    finally:
        if before is None:
            del os.environ["MPLBACKEND"]
        else:
            os.environ["MPLBACKEND"] = before
