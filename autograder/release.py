"""Makes what students get of a set, with nbgrader's GenerateAssignment, and proves that nothing leaks.

The set is made in a folder of its own, looked through, and only then copied to the release folder: a faulty source
leaves what was released before as it was. The same source gives the same bytes.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from logging.handlers import BufferingHandler
from pathlib import Path

import nbformat
from nbgrader.converters import GenerateAssignment, NbGraderException
from nbgrader.coursedir import CourseDirectory

from autograder.course import PRIVATE, Course, CourseError, SetFiles
from autograder.files import write_changed
from autograder.judging.source import split_region, split_tests
from autograder.notebook.places import release_view

MARKERS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "BEGIN MARK SCHEME", "END MARK SCHEME")
TELLING = 30
"""A private line of at least so many characters is no coincidence when it stands in a released file."""


class ReleaseError(CourseError):
    """A set cannot be released; one line that says which and why."""


def release(course: Course, name: str) -> Path:
    """Release a set into the course's release folder; returns the set's folder there.

    Files that are already as they should be are not touched, files that the set no longer has are removed. Raises
    ReleaseError where the source is faulty or something private would get out, CourseError for an unknown set.
    """
    files = course.set_files(name)
    _check_ids(files)
    with tempfile.TemporaryDirectory(prefix="release-") as place:
        made = _generate(course, files, Path(place))
        found = {p.relative_to(made).as_posix(): p.read_bytes() for p in sorted(made.rglob("*")) if p.is_file()}
    leaks = list(leaks_in(course, files, found))
    if leaks:
        more = f" (and {len(leaks) - 1} more)" if len(leaks) > 1 else ""
        raise ReleaseError(f"{name} is not released: {leaks[0]}{more}")
    folder = Path(course.dirs.format_path(course.dirs.release_directory, ".", name)).resolve()
    _copy(found, folder)
    return folder


def _check_ids(files: SetFiles) -> None:
    """Cells without an id get a new one at every reading: what is released would never be the same twice."""
    for number, cell in enumerate(json.loads(files.notebook_text).get("cells", []), 1):
        if not cell.get("id"):
            raise ReleaseError(f"{files.name}: cell {number} of the source has no id; save it as nbformat 4.5 or newer")


def _generate(course: Course, files: SetFiles, place: Path) -> Path:
    """Run nbgrader's converter into `place`, without the database (`ensure_assignment` looks after that)."""
    config, name = deepcopy(course.config), files.name
    config.CourseDirectory.assignment_id = name
    config.CourseDirectory.release_directory = str(place)
    config.SaveCells.enabled = False
    # keeps what nbgrader logs as errors: its exceptions only say "see the traceback above"
    said = BufferingHandler(1000)
    said.setLevel(logging.ERROR)
    logger = logging.Logger("release")
    logger.addHandler(said)
    dirs = CourseDirectory(config=config, log=logger)
    files.make_ready(dirs)
    converter = GenerateAssignment(coursedir=dirs, config=config, log=logger, force=True, no_database=True)
    try:
        converter.start()
    except NbGraderException as error:
        reason = _reason([record.getMessage() for record in said.buffer])
        raise ReleaseError(f"{name} is not released: {reason or error}") from error
    return Path(dirs.format_path(str(place), ".", name))


def _reason(errors: list[str]) -> str:
    """The last line of the first traceback, else the first error."""
    for text in errors:
        if text.startswith("Traceback"):
            return re.sub(r"^[\w.]+: ", "", text.strip().splitlines()[-1])
    return errors[0].splitlines()[0] if errors else ""


def leaks_in(course: Course, files: SetFiles, found: dict[str, bytes]) -> Iterator[str]:
    """One sentence for everything in the released files that students must not see, or that is not as it should be."""
    notebook = f"{files.name}.ipynb"
    wanted = {notebook, *files.files}
    for path in sorted(wanted ^ found.keys()):
        if Path(path).name in PRIVATE:
            yield f"{path} is private"
        elif path.endswith(".ipynb") and path in found:
            yield f"{path} lies beside the set's notebook; a set has one notebook"
        else:
            yield f"{path} is {'missing' if path in wanted else 'no file of the set'}"
    private = _private_lines(files)
    for path, data in found.items():
        text = data.decode("utf-8", "replace")
        yield from (f"{path} holds {marker!r}" for marker in MARKERS if marker in text)
        cells = nbformat.reads(text, as_version=4).cells if path.endswith(".ipynb") else []
        texts = [cell.source for cell in cells] or [text]
        lines = {line.strip() for part in texts for line in part.splitlines()}
        yield from (f"{path} holds a line of {what}" for line, what in private.items() if line in lines)
    if notebook in found:
        yield from _differences(course, files, nbformat.reads(found[notebook].decode("utf-8"), as_version=4))


def _private_lines(files: SetFiles) -> dict[str, str]:
    """Telling lines of solutions, tests, model answers and rubrics, with what they belong to.

    A line that the author also wrote where students see it is no secret.
    """
    private = dict.fromkeys(_telling(files.set_checks), "set_checks.py")
    open_lines: set[str] = set()
    for cell in files.source.cells:
        meta, seen, hidden = cell.metadata.get("nbgrader", {}), cell.source, ""
        what = "the hidden tests"
        if meta.get("solution") and meta.get("grade"):
            seen, hidden, what = "", cell.source, "the model answer or rubric"
        elif meta.get("solution"):
            # without a region all of it is the solution
            seen, hidden = split_region(seen, "SOLUTION") if "BEGIN SOLUTION" in seen else ("", seen)
            what = "the solution"
        elif meta.get("grade"):
            seen, hidden = split_tests(seen)
        private.update(dict.fromkeys(_telling(hidden), f"{what} '{meta.get('grade_id', cell.id)}'"))
        open_lines |= set(_telling(seen))
    return {line: what for line, what in private.items() if line not in open_lines}


def _telling(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if len(line.strip()) >= TELLING]


def _differences(course: Course, files: SetFiles, released: nbformat.NotebookNode) -> Iterator[str]:
    """Where the released notebook is not what `release_view` says, against which submissions are rebuilt."""
    wanted = release_view(files.source, course.config)
    if len(wanted.cells) != len(released.cells):
        yield f"the notebook has {len(released.cells)} cells instead of {len(wanted.cells)}"
        return
    for mine, theirs in zip(wanted.cells, released.cells, strict=True):
        label = mine.metadata.get("nbgrader", {}).get("grade_id") or mine.id
        if (mine.id, mine.cell_type, mine.source) != (theirs.id, theirs.cell_type, theirs.source):
            yield f"the cell '{label}' is not what students should get"
        if theirs.cell_type == "code" and (theirs.outputs or theirs.execution_count):
            yield f"the cell '{label}' still has its output"


def _copy(found: dict[str, bytes], folder: Path) -> None:
    """Make `folder` hold exactly these files."""
    for name, data in found.items():
        write_changed(folder / name, data)
    if folder.is_dir():
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(folder).as_posix() not in found:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                shutil.rmtree(path)
