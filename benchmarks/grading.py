"""Time for each submission: nbgrader as it comes against `python -m autograder`, in one run on one core.

    python benchmarks/grading.py [--count 500] [--set ps2-self-attention] [--feedback]

Both grade the same class (see `made_class.py`) from an empty gradebook, as whole commands: start-up is included.
`--feedback` adds `nbgrader generate_feedback` on the one side and `python -m autograder feedback` on the other.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from made_class import ENGINE, STOCK, course_folder


def timed(folder: Path, *command: str) -> float:
    """Wall seconds of a command. Raises CalledProcessError."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by name
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    start = time.monotonic()
    subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True, capture_output=True, env=environment)
    return time.monotonic() - start


def own_share(folder: Path, name: str) -> float:
    """The share of the judging time that the students' own cells took."""
    timings = [json.loads(p.read_text())["timings"] for p in (folder / "results" / name).glob("*.json")]
    return sum(t["cells"] for t in timings) / sum(t["total"] for t in timings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="submissions (default 500)")
    parser.add_argument("--set", default="ps2-self-attention")
    parser.add_argument("--feedback", action="store_true", help="include writing the feedback")
    options = parser.parse_args()
    name, count = options.set, options.count
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by the commands: one core for each
    with tempfile.TemporaryDirectory() as place:
        stock = course_folder(Path(place) / "stock", STOCK, name, count)
        engine = course_folder(Path(place) / "engine", ENGINE, name, count)
        timed(stock, "nbgrader", "generate_assignment", name, "--create")
        print(f"{count} submissions to {name}, on one core; seconds for each:")
        ours = timed(engine, "autograder", "grade", "--jobs", "1")
        print(f"  python -m autograder grade     {ours / count:.3f}", flush=True)
        print(f"    of judging, students' cells  {own_share(engine, name):.0%}")
        theirs = timed(stock, "nbgrader", "autograde", name)
        print(f"  nbgrader autograde             {theirs / count:.3f}   {theirs / ours:.1f} times as long", flush=True)
        if options.feedback:
            ours += timed(engine, "autograder", "feedback")
            print(f"  with feedback: autograder      {ours / count:.3f}", flush=True)
            theirs += timed(stock, "nbgrader", "generate_feedback", name)
            print(f"  with feedback: nbgrader        {theirs / count:.3f}   {theirs / ours:.1f} times as long")
        again = timed(engine, "autograder", "grade", "--jobs", "1")
        print(f"  unchanged, graded again        {again / count:.3f}")


if __name__ == "__main__":
    main()
