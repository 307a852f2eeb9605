"""A class for the benchmarks: whole submissions made from a set's reference and its catalogue, no two on purpose alike.

In each exercise most students solve it like the reference, some in another right way of the catalogue, some with one
of its misconceptions.
"""

from __future__ import annotations

import random
from pathlib import Path

from autograder.audit.bench import cell_with, submission
from autograder.course import Course, SetFiles
from autograder.judging.source import Source

ROOT = Path(__file__).parent.parent
OTHER_RIGHT, WRONG = 0.25, 0.15
STOCK = """\
c = get_config()
c.ExecutePreprocessor.timeout = 120
"""
ENGINE = """\
load_subconfig({config!r})
c = get_config()
c.CourseDirectory.source_directory = {source!r}
"""


def course_folder(folder: Path, config: str, name: str, count: int, seed: int = 1) -> Path:
    """A course folder with `count` submissions to the set `name`; the same ones for the same seed."""
    folder.mkdir(parents=True)
    values = {"source": str(ROOT / "source_solutions"), "config": str(ROOT / "nbgrader_config.py")}
    (folder / "nbgrader_config.py").write_text(config.format(**values))
    files = Course(ROOT).set_files(name)
    source = Source.from_text(files.notebook_text, files.catalogue, name, files.set_checks)
    if config == STOCK:  # which reads notebooks only, and finds what tests import beside them
        stock = folder / "source" / name
        for path, data in {f"{name}.ipynb": files.notebook_text.encode(), **files.files}.items():
            (stock / path).parent.mkdir(parents=True, exist_ok=True)
            (stock / path).write_bytes(data)
        (stock / "set_checks.py").write_text(files.set_checks, encoding="utf-8")
    rng = random.Random(seed)
    for number in range(count):
        student = f"someone-{number:04d}"
        target = folder / "submitted" / student / name
        target.mkdir(parents=True)
        (target / f"{name}.ipynb").write_bytes(_submission(files, source, student, rng))
        for path, data in files.files.items():
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            (target / path).write_bytes(data)
    return folder


def _submission(files: SetFiles, source: Source, student: str, rng: random.Random) -> bytes:
    changes: dict[str, str] = {}
    for text in source.solutions.values():
        drawn = rng.random()
        variants = [
            v
            for v in source.catalogue.variants
            if source.solution_text(v.exercise) == text and v.is_right == (drawn >= WRONG)
        ]
        if drawn < WRONG + OTHER_RIGHT and variants:
            changes |= cell_with(source, rng.choice(variants))
    return submission(files, {**source.solutions, **changes}, student)
