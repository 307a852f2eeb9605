"""Time for each submission: nbgrader as it comes against `python -m autograder`, in one run on one core.

    python benchmarks/grading.py [--count 500] [--set ps2-self-attention] [--feedback]

Both grade the same class (see `made_class.py`) from an empty gradebook, as whole commands. Two times are printed for
each: the whole over the number of submissions, start-up included; and what a further submission takes, which is what
the whole class takes longer than a class of one. The autograder grades the class twice, before and after nbgrader
does, and the mean is taken: what else a machine does changes within minutes. `--feedback` adds
`nbgrader generate_feedback` on the one side and `python -m autograder feedback` on the other.
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


class Run:
    """A class of one and the whole class, and the seconds that the commands run on them have taken so far."""

    def __init__(self, place: Path, config: str, name: str, count: int) -> None:
        self.folders = {number: course_folder(place / str(number), config, name, number) for number in (1, count)}
        self.count = count
        self.seconds = dict.fromkeys(self.folders, 0.0)

    def run(self, *command: str) -> None:
        for number, folder in self.folders.items():
            self.seconds[number] += timed(folder, *command)

    @property
    def each(self) -> float:
        """Seconds for each submission, start-up included."""
        return self.seconds[self.count] / self.count

    @property
    def further(self) -> float:
        """Seconds that one more submission takes."""
        return (self.seconds[self.count] - self.seconds[1]) / (self.count - 1)


def tell(what: str, ours: list[Run], theirs: Run) -> None:
    """Two lines: the mean of our runs, and theirs beside it."""
    each, further = (sum(getattr(run, name) for run in ours) / len(ours) for name in ("each", "further"))
    ratios = f"{theirs.each / each:.1f} and {theirs.further / further:.1f} times as long"
    print(f"  {what + 'autograder':24} {each:9.3f} {further:10.3f}")
    print(f"  {what + 'nbgrader':24} {theirs.each:9.3f} {theirs.further:10.3f}   {ratios}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="submissions, two or more (default 500)")
    parser.add_argument("--set", default="ps2-self-attention")
    parser.add_argument("--feedback", action="store_true", help="include writing the feedback")
    options = parser.parse_args()
    name, count = options.set, options.count
    if count < 2:
        parser.error("--count must be 2 or more")
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # inherited by the commands: one core for each
    with tempfile.TemporaryDirectory() as place:
        before, after = (Run(Path(place) / f"engine-{n}", ENGINE, name, count) for n in (1, 2))
        stock = Run(Path(place) / "stock", STOCK, name, count)
        for folder in stock.folders.values():
            timed(folder, "nbgrader", "generate_assignment", name, "--create")
        print(f"{count} submissions to {name}, on one core; seconds for")
        print(f"  {'':24} {'each':>9} {'a further':>10}", flush=True)
        before.run("autograder", "grade", "--jobs", "1")
        stock.run("nbgrader", "autograde", name)
        after.run("autograder", "grade", "--jobs", "1")
        tell("", [before, after], stock)
        if options.feedback:
            before.run("autograder", "feedback")
            stock.run("nbgrader", "generate_feedback", name)
            after.run("autograder", "feedback")
            tell("with feedback: ", [before, after], stock)
        whole = after.folders[count]
        print(f"  of judging, the students' cells take {own_share(whole, name):.0%}")
        again = timed(whole, "autograder", "grade", "--jobs", "1")
        print(f"  unchanged, graded again: {again / count:.3f} each")


if __name__ == "__main__":
    main()
