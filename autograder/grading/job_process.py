"""A process beside this one that judges one job after another, for workers that run jobs in threads.

Time limits on checks need a main thread, and a check that hangs or swells must be able to take its process with it:
a thread of a Dask worker offers neither. Jobs and results go through a pipe, each behind its length.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from concurrent.futures import BrokenExecutor

from autograder.judging.source import BadSource
from autograder.judging.variants import BadCatalogue
from autograder.sandbox.launcher import SandboxRefused

HEAD = struct.Struct("!BQ")  # whether it is an error, and the length
ERRORS = {kind.__name__: kind for kind in (SandboxRefused, BadSource, BadCatalogue)}


class JobProcess:
    """The process; started with the first job, and again with the next one after it died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen | None = None

    def run(self, job: bytes) -> bytes:
        """The result of `run_job`. Raises what that raises, and BrokenExecutor when the process dies."""
        if self.process is None:
            command = [sys.executable, "-m", "autograder.grading.job_process"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process = self.process
        try:
            process.stdin.write(HEAD.pack(0, len(job)) + job)
            process.stdin.flush()
            is_error, size = HEAD.unpack(process.stdout.read(HEAD.size))
            data = process.stdout.read(size)
            if len(data) < size:
                raise EOFError
        except (OSError, EOFError, struct.error):
            self.close()
            raise BrokenExecutor("the process that judged this submission died") from None
        if is_error:
            name, message = json.loads(data)
            raise ERRORS.get(name, RuntimeError)(message)
        return data

    def close(self) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()


def main() -> None:
    """Answer jobs on standard input until it ends; whatever is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    from autograder.judging.worker import be_worker, run_job

    be_worker()
    jobs = sys.stdin.buffer
    while head := jobs.read(HEAD.size):
        _, size = HEAD.unpack(head)
        try:
            is_error, data = 0, run_job(jobs.read(size))
        except Exception as error:  # told to the other side, which raises it
            is_error, data = 1, json.dumps([type(error).__name__, str(error)]).encode()
        answers.write(HEAD.pack(is_error, len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
