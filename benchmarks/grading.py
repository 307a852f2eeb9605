"""Time for each submission: `nbgrader autograde` as it comes against `python -m autograder grade`, in one run.

    python benchmarks/grading.py [--count 40] [--set ps2-self-attention]

Both grade the same honest submissions (right and wrong ones of the example class, under new ids) from an empty
gradebook, as whole commands on one and the same core: start-up is included. Two figures are printed for each: wall
time, and CPU time of the command with all its children.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
HONEST = ("student-01", "student-02", "student-03", "student-04", "student-05", "student-06")
STOCK = """\
c = get_config()
c.CourseDirectory.source_directory = {source!r}
c.CourseDirectory.ignore = [".ipynb_checkpoints", "*.pyc", "__pycache__", "catalogue.py"]
c.ExecutePreprocessor.timeout = 120
"""
ENGINE = """\
load_subconfig({config!r})
c = get_config()
c.CourseDirectory.source_directory = {source!r}
"""


def course(folder: Path, text: str, name: str, count: int) -> Path:
    folder.mkdir()
    values = {"source": str(ROOT / "source_solutions"), "config": str(ROOT / "nbgrader_config.py")}
    (folder / "nbgrader_config.py").write_text(text.format(**values))
    for number in range(count):
        model = HONEST[number % len(HONEST)]
        target = folder / "submitted" / f"someone-{number:04d}" / name
        shutil.copytree(ROOT / "examples" / "submitted" / model / name, target)
        for path in target.glob("*.ipynb"):
            path.write_text(path.read_text(encoding="utf-8").replace(model, f"someone-{number:04d}"), encoding="utf-8")
    return folder


def timed(folder: Path, *command: str) -> tuple[float, float]:
    """Wall and CPU seconds of a command with its children. Raises CalledProcessError."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by name
    environment = {**os.environ, "PATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run(command, cwd=folder, check=True, capture_output=True, env=environment)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=40, help="submissions (default 40)")
    parser.add_argument("--set", default="ps2-self-attention")
    options = parser.parse_args()
    name, count, python = options.set, options.count, sys.executable
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by the commands: one core for each
    with tempfile.TemporaryDirectory() as place:
        stock = course(Path(place) / "stock", STOCK, name, count)
        engine = course(Path(place) / "engine", ENGINE, name, count)
        timed(stock, python, "-m", "nbgrader", "generate_assignment", name, "--create")
        print(f"{count} submissions to {name}, on one core")
        ours = timed(engine, python, "-m", "autograder", "grade", "--jobs", "1")
        print(f"python -m autograder grade: {ours[0] / count:.3f} s each (CPU {ours[1] / count:.3f} s)", flush=True)
        theirs = timed(stock, python, "-m", "nbgrader", "autograde", name)
        print(f"nbgrader autograde:         {theirs[0] / count:.3f} s each (CPU {theirs[1] / count:.3f} s)")
        print(f"faster by: {theirs[0] / ours[0]:.1f} times (CPU {theirs[1] / ours[1]:.1f} times)")
        again = timed(engine, python, "-m", "autograder", "grade", "--jobs", "1")
        print(f"unchanged, graded again: {again[0] / count:.3f} s each")


if __name__ == "__main__":
    main()
