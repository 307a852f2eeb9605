"""A process beside this one that judges one job after another, for workers that run jobs in threads.

Time limits on checks need a main thread, and a check that hangs or swells must be able to take its process with it:
a thread of a Dask worker offers neither, and may not use multiprocessing. Jobs and results go through a pipe, each
behind its length.
"""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from concurrent.futures import BrokenExecutor

from autograder import import_without_web_addresses
from autograder.errors import AutograderError

HEAD = struct.Struct("!BQ")  # which of KINDS, and the length
KINDS = (None, AutograderError, RuntimeError)
"""A result, or the words of an error: one that a person can mend, or one of ours."""


class JobProcess:
    """The process; started with the first job, and again with the next one after it died."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None

    def run(self, job: bytes) -> bytes:
        """The result of `run_job`. Raises AutograderError as that does, and BrokenExecutor when the process dies."""
        if self.process is None:
            command = [sys.executable, "-m", "autograder.grading.job_process"]
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        jobs, answers = self.process.stdin, self.process.stdout
        assert jobs and answers
        try:
            jobs.write(HEAD.pack(0, len(job)) + job)
            jobs.flush()
            kind, size = HEAD.unpack(answers.read(HEAD.size))
            data = answers.read(size)
            if len(data) < size:
                raise EOFError
        except (OSError, EOFError, struct.error):
            self.close()
            raise BrokenExecutor("the process that judged this submission died") from None
        if error := KINDS[kind]:
            raise error(data.decode())
        return data

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, self.process = self.process, None
        if process is not None:
            process.kill()
            process.communicate()


def main() -> None:
    """Answer jobs on standard input until it ends; whatever is printed goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import_without_web_addresses()
    from autograder.judging.worker import be_worker, run_job

    be_worker()
    jobs = sys.stdin.buffer
    while head := jobs.read(HEAD.size):
        _, size = HEAD.unpack(head)
        kind: type[Exception] | None = None
        try:
            data = run_job(jobs.read(size))
        except AutograderError as error:  # told to the other side, which raises it
            kind, data = AutograderError, str(error).encode()
        except Exception as error:
            kind, data = RuntimeError, f"{type(error).__name__}: {error}".encode()
        answers.write(HEAD.pack(KINDS.index(kind), len(data)) + data)
        answers.flush()


if __name__ == "__main__":
    main()
