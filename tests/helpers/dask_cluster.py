"""A Dask cluster on this machine: a scheduler and two workers, started as the book's guide says."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from distributed import Client

WORKERS = 2


@contextmanager
def running_cluster(folder: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Its address and its workers, which are there; with it ends all that they started."""
    file = folder / "scheduler.json"
    dask = Path(sys.executable).with_name("dask")
    quietly = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    scheduler = subprocess.Popen(
        [dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file], **quietly
    )
    workers = [
        subprocess.Popen([dask, "worker", "--scheduler-file", file, "--nthreads", "1", "--no-dashboard"], **quietly)
        for _ in range(WORKERS)
    ]
    try:
        while not file.exists() or not file.read_text():
            assert scheduler.poll() is None
            time.sleep(0.1)
        address = re.search(r"tcp://[\d.:]+", file.read_text())[0]
        with Client(address, set_as_default=False) as client:
            client.wait_for_workers(WORKERS, timeout=120)
        yield address, workers
    finally:
        for process in (*workers, scheduler):
            for child in psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []:
                child.kill()
            process.kill()
            process.wait()
