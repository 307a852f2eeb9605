"""A worker: judges one job after the other, keeps warm sandboxes and parsed sources."""

from __future__ import annotations

import base64
import json

from autograder.errors import AutograderError
from autograder.judging.job import Job
from autograder.judging.judge import Judge
from autograder.judging.reference import Judged
from autograder.sandbox.launcher import Sandbox

_sandboxes: dict[tuple[str, bool], Sandbox] = {}
_sources: dict[str, Judged] = {}


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
        files = {name: base64.b64decode(data) for name, data in job.files.items()}
        _sources[job.assignment_version] = Judged.from_text(
            job.source, job.catalogue, job.assignment, job.set_checks, files
        )
    return _sources[job.assignment_version]


def run_job(data: bytes) -> bytes:
    """Judge one submission; what an executor runs. Raises AutograderError or MemoryError."""
    job = Job.from_bytes(data)
    judge = Judge(job, source_of(job))
    try:
        result = judge.run(sandbox_for(job.sandbox, "torch" in judge.libraries))
    except (AutograderError, MemoryError):  # a process that is full ends, and a fresh one judges this again
        raise
    except Exception as error:  # our own mistake, met by one submission: the class goes on, and it is not silent
        result = judge.broken(error)
    return json.dumps(result.to_json()).encode()
