"""A class of 100 with 20 hostile submissions against the other 80 alone: the same results, time and memory in bounds.

    python benchmarks/hostile_class.py [--students 100] [--routes grade-1 grade-2 autograde formgrader dask]

One in five is hostile: the attacks of `tests/sandbox/` that take time, processors, memory, disk or patience from
others. Both classes are graded by each route from an empty gradebook, with the same seed. All that is stored of the 80,
and what the gradebook says of them, must be equal, times aside. The whole class may take longer by what their limits
allow the hostile ones, over the number of workers.

Memory is looked at four times a second: of each process of the grader; of one submission's processes together, beside
what the warm process holds, in two looks in a row (between two looks of the grader's own they may pass their limit);
and what is missing on the whole machine, on which nothing else should run. Start it at the usual priority: under `nice`
a crowd of processes cannot be put behind the others. The bounds are those of SECURITY.md. Where anything differs or is
out of bounds, the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import nbformat
import psutil
from made_class import ENGINE, ROOT, course_folder
from nbformat import v4
from nbgrader.apps.api import NbGraderAPI
from nbgrader.coursedir import CourseDirectory

sys.path += [str(ROOT / "tests" / room) for room in ("helpers", "sandbox", "grading")]

from dask_cluster import WORKERS, running_cluster
from outcomes import outcome
from test_busy_machine import CROWD
from test_cheats_channel import RAW, WIRE
from test_cheats_machine import CALL, COLUMN, HAND_ON, HANDED, REFUSED, SOCKETS, TERMINALS, TIMERS
from test_cheats_reach import DEATHS
from test_feedback_hostile import SOURCE_BOMBS

from autograder.audit.bench import as_bytes, submission
from autograder.course import Course, SetFiles
from autograder.grading.pool import OWN_BYTES
from autograder.grading.store import Store
from autograder.judging.reference import Judged
from autograder.notebook.reader import MAX_BYTES
from autograder.sandbox.inside import processes
from autograder.sandbox.launcher import MOST_WAITING, ZYGOTE, Limits

SET = "ps2-self-attention"
LIMITS = Limits()
KERNEL_BYTES = 2**30  # that a submission can take and no process is charged for, as SECURITY.md says
LOOK_SECONDS = 0.25
HOSTILE, EMPTY = 5, 8  # one in so many

# ------------------------------------------------------------------------------------------ the hostile submissions


@dataclass(frozen=True)
class Attack:
    """Cells before all others; an expression that every answer is, of what is `given`; files in place of a notebook.

    It keeps the grader for as long as `cells` of its cells may run, and with its answers for as long as a notebook.
    """

    first: tuple[str, ...] = ()
    answer: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    cells: float = 1.0

    @property
    def seconds(self) -> float:
        """What its limits allow it."""
        return (
            LIMITS.notebook_seconds if self.answer else min(LIMITS.notebook_seconds, self.cells * LIMITS.cell_seconds)
        )


def wire(cheat: str, answer: str = "") -> Attack:
    return Attack((RAW + WIRE[cheat],), answer)


NEAR = f"held = bytearray(b'x') * {LIMITS.memory_bytes * 9 // 10}\nwhile True: held[::4096] = bytes(len(held[::4096]))"
SLOW = "import time\ndef slow():\n    while True: {}"
REST = "\nimport time; time.sleep(60)"  # as long as it may: what it started would end with it
LONG = CROWD.replace("60", "600")
REFUSALS = "\n".join(f"    libc.syscall({call[COLUMN]}, {call[2]})" for call in REFUSED.values())
SCARCE = (
    f"{CALL}\nfor _ in range(10_000):\n{REFUSALS}",
    TERMINALS,
    TIMERS,
    SOCKETS.replace("KIND", "connected()") + REST,
)
BOMBS = tuple(SOURCE_BOMBS.values())
CROWDED = {f"more/{number}.ipynb": b"{}" for number in range(3000)}
ATTACKS = {
    "a fork bomb": Attack((DEATHS["a fork bomb"],)),
    "threads, and a full disk": Attack((DEATHS["a crowd of threads"], DEATHS["a full disk"]), cells=2),
    "a memory hog of many": Attack((DEATHS["a memory hog of many"].replace("range(10)", "range(5)"),)),  # may be made
    "near the limit of memory": Attack((NEAR,)),
    "a crowd on its processor": Attack((LONG,)),
    # its first thread waits for the others, which may be four times its limit
    "a few on its processor": Attack((LONG.replace("range(14)", "range(3)"),), cells=1 + MOST_WAITING),
    "a flood of output": Attack((DEATHS["a flood of output"],)),
    "kills everybody, and stops": Attack((DEATHS["kills everybody"], DEATHS["a stop"]), cells=2),
    "computes in every answer": Attack((SLOW.format("pass"),), "slow()"),
    "sleeps in every answer": Attack((SLOW.format("time.sleep(9)"),), "slow()"),
    "one array in a million places": wire("one array in a million places", "softmax(given)"),
    "ranges that are arrays": wire("ranges that are arrays", "softmax(given)"),
    "answers that stay": Attack(answer="[set()] * 150_000"),
    "no end of messages": wire("no end of messages"),
    "outputs without end": wire("outputs without end"),
    "nested as deep as it goes": wire("nested as deep as it goes"),
    "memory that is handed on": Attack((HAND_ON.format(flags=HANDED["by threads"]) + REST,)),
    "what the machine has few of": Attack(SCARCE, cells=len(SCARCE)),
    "a notebook of bombs": Attack(BOMBS, cells=len(BOMBS)),
    "a file without end": Attack(files={f"{SET}.ipynb": b'{"cells":' * (MAX_BYTES // 9), **CROWDED}),
}


def handed_in(attack: Attack, files: SetFiles, source: Judged, student: str) -> dict[str, bytes]:
    """Files by their paths in the student's folder."""
    if attack.files:
        return attack.files
    cells = dict(source.solutions)
    for test in source.tests.values() if attack.answer else ():
        lines = ["given = ()"]
        for name in sorted(test.solution_names & source.reference.keys()):
            function = "lambda *given, **more: " if callable(source.reference[name]) else ""
            lines.append(f"{name} = {function}{attack.answer}")
        cells |= dict.fromkeys(test.solution_ids, "\n".join(lines))
    notebook = nbformat.reads(submission(files, cells, student).decode(), as_version=4)
    for number, text in enumerate(attack.first):  # as Markdown, too, some are for whoever looks at it
        own = v4.new_code_cell(text, id=f"own-{number}"), v4.new_markdown_cell(text, id=f"own-text-{number}")
        notebook.cells[2 * number : 2 * number] = own
    return {f"{SET}.ipynb": as_bytes(notebook)}


def make_class(folder: Path, count: int) -> dict[str, Attack]:
    """A course folder with a class in it, and a seed for all its runs; returns who is hostile, in which way."""
    course = Course(course_folder(folder, ENGINE, SET, count))
    files = course.set_files(SET)
    source = Judged.from_text(files.notebook_text, files.catalogue, SET, files.set_checks)
    Store(course.results_folder).seed(SET, files.version)
    attacks, hostile = cycle(ATTACKS.items()), {}
    for number, (student, place) in enumerate(course.submissions(SET).items()):
        if number % HOSTILE == HOSTILE // 2:
            name, attack = next(attacks)
            of_that_name = f"{student}-{name.replace(',', '').replace(' ', '-')}"
            shutil.move(place.parent, place.parents[1] / of_that_name)
            hostile[of_that_name] = attack
        elif number % EMPTY == 0:
            (place / f"{SET}.ipynb").write_bytes(as_bytes(files.released))
    for student, attack in hostile.items():
        for path, data in handed_in(attack, files, source, student).items():
            target = course.submissions(SET)[student] / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes(data)
    return hostile


# ------------------------------------------------------------------------------------------------------- the routes


def run(folder: Path, *command: str) -> float:
    """Wall seconds of a command. Whether it complains of hostile ones is its business."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # nbgrader calls alembic by name
    start = time.monotonic()
    with (folder / "said.log").open("wb") as said:
        subprocess.run(
            [sys.executable, *command], cwd=folder, stdout=said, stderr=said, env={**os.environ, "PATH": path}
        )
    return time.monotonic() - start


def on_a_cluster(folder: Path) -> float:
    with running_cluster(folder) as (address, _):
        return run(folder, "-m", "autograder", "grade", "--scheduler", address)


def press_buttons() -> None:
    """What formgrader's server does when its button is pressed for one after the other, in this course folder."""
    course = Course(Path())
    api = NbGraderAPI(CourseDirectory(config=course.config), config=course.config)
    seed = course.results_folder / SET / ".seed"
    data = seed.read_bytes()
    for student in course.submissions(SET):
        seed.write_bytes(data)  # with which each press ends
        api.autograde(SET, student)


GRADE = "-m", "autograder", "grade", "--jobs"
ROUTES: dict[str, tuple[int, Callable[[Path], float]]] = {
    "grade-1": (1, lambda folder: run(folder, *GRADE, "1")),
    "grade-2": (2, lambda folder: run(folder, *GRADE, "2")),
    "autograde": (1, lambda folder: run(folder, "-m", "nbgrader", "autograde", SET)),
    "formgrader": (1, lambda folder: run(folder, __file__, "--press-buttons")),
    "dask": (WORKERS, on_a_cluster),
}


# ------------------------------------------------------------------------------------------------------- the memory


class Watch(threading.Thread):
    """Looks at all that this process started, and keeps the most bytes that each kind held.

    `process` is one of the grader's, `student` one submission, `machine` what is missing of the machine's memory.
    """

    def __init__(self) -> None:
        super().__init__()
        self.process = self.student = self.machine = 0
        self.before: dict[int, int] = {}
        self.free = psutil.virtual_memory().available
        self.over = threading.Event()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        took = 0.0
        while not self.over.wait(max(LOOK_SECONDS, 3 * took)):
            begin = time.monotonic()
            self.look()
            took = time.monotonic() - begin

    def look(self) -> None:
        self.machine = max(self.machine, self.free - psutil.virtual_memory().available)
        families: dict[int, list[int]] = {}  # of each warm process, itself first
        of: dict[int, int] = {}
        for pid in processes.family_of(os.getpid())[1:]:
            parent = getattr(processes.stat_of(pid), "parent", 0)
            warm = of.get(parent) or (pid if is_warm(pid) else 0)
            if warm:
                of[pid] = warm
                families.setdefault(warm, []).append(pid)
            else:
                self.process = max(self.process, processes.memory_of(pid))
        now = {warm: sum(map(processes.share_of, all_)) - processes.memory_of(warm) for warm, all_ in families.items()}
        self.student = max([self.student, *(min(held, self.before.get(warm, 0)) for warm, held in now.items())])
        self.before = now


def is_warm(pid: int) -> bool:
    """Whether it is a sandbox's warm process, and not the bubblewrap before it, whose command line goes on so."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return ZYGOTE.encode() in words and b"--die-with-parent" not in words


# ---------------------------------------------------------------------------------------------------------- the runs


@dataclass
class Graded:
    """One class by one route: seconds, the most memory, and by student what was stored and booked."""

    seconds: float
    watch: Watch
    found: dict[str, tuple[dict[str, Any], Any]]
    took: dict[str, float]


def graded(made: Path, route: str, without: list[str]) -> Graded:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "course"
        shutil.copytree(made, folder)
        for student in without:
            shutil.rmtree(folder / "submitted" / student)
        with Watch() as watch:
            seconds = ROUTES[route][1](folder)
        course = Course(folder)
        took = {r.student: r.timings.get("total", 0.0) for r in Store(course.results_folder).all(SET)}
        found = outcome(course, SET)
        if len(found) != len(course.submissions(SET)):
            print((folder / "said.log").read_text(encoding="utf-8", errors="replace")[-3000:])
        return Graded(seconds, watch, found, took)


def differing(quiet: Graded, loud: Graded) -> list[str]:
    """A line for each of the quiet class who does not have the same in the other."""
    lines = []
    for student, (result, standing) in quiet.found.items():
        other, booked = loud.found.get(student, ({}, None))
        parts = [name for name in result if result[name] != other.get(name)] + ["gradebook"] * (standing != booked)
        lines += [f"{student}: {', '.join(parts)} differ"] if parts else []
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--students", type=int, default=100, help="of whom one in five is hostile (default 100)")
    parser.add_argument("--routes", nargs="+", default=list(ROUTES), choices=ROUTES, metavar="ROUTE")
    parser.add_argument("--press-buttons", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.press_buttons:
        press_buttons()
        return
    wrong: list[str] = []
    slowest: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as place:
        made = Path(place) / "made"
        hostile = make_class(made, options.students)
        print(
            f"{options.students} submissions to {SET}, {len(hostile)} of them hostile; seconds, and gigabytes at most"
        )
        heads = ("quiet", "hostile", "allowed", "process", "of", "student", "of", "machine", "of")
        print(f"{'route':10} {'jobs':>4}" + "".join(f"{head:>9}" for head in heads), flush=True)
        for route in options.routes:
            jobs = ROUTES[route][0]
            quiet, loud = graded(made, route, list(hostile)), graded(made, route, [])
            wrong += [f"{route}: {line}" for line in differing(quiet, loud)]
            wrong += [f"{route}: {student}: no result" for student in hostile if student not in loud.found]
            allowed = quiet.seconds + sum(attack.seconds for attack in hostile.values()) / jobs
            whole = OWN_BYTES + jobs * (OWN_BYTES + LIMITS.memory_bytes + KERNEL_BYTES)
            measured = {
                "time": (loud.seconds, allowed),
                "process": (loud.watch.process / 2**30, OWN_BYTES / 2**30),
                "student": (loud.watch.student / 2**30, LIMITS.memory_bytes / 2**30),
                "machine": (loud.watch.machine / 2**30, whole / 2**30),
            }
            wrong += [
                f"{route}: {what} {found:.2f} > {most:.2f}" for what, (found, most) in measured.items() if found > most
            ]
            shown = [quiet.seconds, *(value for pair in measured.values() for value in pair)]
            print(f"{route:10} {jobs:4d}" + "".join(f"{value:9.2f}" for value in shown), flush=True)
            for student in hostile:
                slowest[student] = max(slowest.get(student, 0.0), loud.took.get(student, 0.0))
        print("the hostile ones: most seconds of each, what its limits allow, and what was said of it last")
        for student, attack in hostile.items():
            said = loud.found[student][0]["reason"][:100] if student in loud.found else "no result"
            print(f"  {student:50} {slowest[student]:7.1f} {attack.seconds:7.1f}  {said}")
    print("\n".join(wrong) or "the others have the same results by every route, and nothing is out of bounds")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
