"""Peak memory of `python -m autograder grade` for a small and a large class, and the time to grade the large one again.

    python benchmarks/scale.py [--small 100] [--large 1000] [--set ps2-self-attention]

Memory is the largest sum, over the command and all its processes, of the pages each holds (shared ones in shares).
One worker by default: with several, a small class may not bring every kind of submission (one with torch, say) to
each of them, and the difference would be that of the workers, not that of the sizes. The large class begins with the
small one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
from made_class import ENGINE, course_folder

GRADE = [sys.executable, "-m", "autograder", "grade", "--jobs"]


def watched(folder: Path, jobs: int) -> tuple[float, float]:
    """Seconds and peak megabytes of grading what lies in a course folder. Raises CalledProcessError."""
    start, peak = time.monotonic(), 0
    process = subprocess.Popen([*GRADE, str(jobs)], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None:
        peak = max(peak, held_by(process.pid))
        time.sleep(0.25)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, GRADE, stderr=process.stderr.read())
    return time.monotonic() - start, peak / 2**20


def held_by(pid: int) -> int:
    """Bytes of a process and all below it; those that end while they are counted hold nothing any more."""
    total = 0
    try:
        family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in family:
        try:
            total += process.memory_full_info().pss
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", type=int, default=100)
    parser.add_argument("--large", type=int, default=1000)
    parser.add_argument("--set", default="ps2-self-attention")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    peaks = []
    for count in (options.small, options.large):
        with tempfile.TemporaryDirectory() as place:
            folder = course_folder(Path(place) / "course", ENGINE, options.set, count)
            seconds, peak = watched(folder, options.jobs)
            peaks.append(peak)
            print(
                f"{count:5d} submissions: {seconds:6.1f} s ({seconds / count:.3f} each), peak {peak:.0f} MB", flush=True
            )
            if count == options.large:
                again, _ = watched(folder, options.jobs)
                print(f"{count:5d} unchanged:   {again:6.1f} s")
    print(f"the large class needs {peaks[1] / peaks[0] - 1:+.0%} of memory")


if __name__ == "__main__":
    main()
