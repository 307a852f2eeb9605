"""Makes what students get of a set, by the preprocessors of nbgrader's GenerateAssignment; proves that nothing leaks.

The set is made in memory, looked through, and only then written to the release folder: a faulty source leaves what
was released before as it was. The same source gives the same bytes. The database and the hooks of GenerateAssignment
are left to `ensure_assignment` and to `nbgrader generate_assignment`.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat

from autograder.course import Course, CourseError, SetFiles
from autograder.files import write_changed
from autograder.judging.source import Source, split_region, split_tests
from autograder.text import shown

MARKERS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "BEGIN MARK SCHEME", "END MARK SCHEME")
TELLING = 30  # a private line of at least so many characters is no coincidence when it stands in a released file


class ReleaseError(CourseError):
    """A set cannot be released; one line that says which and why."""


def release(course: Course, name: str) -> Path:
    """Release a set into the course's release folder; returns the set's folder there.

    Files that are already as they should be are not touched, files that the set no longer has are removed. Raises
    ReleaseError where the source is faulty or something private would get out, BadSource, CourseError.
    """
    files = course.set_files(name)
    files.make_ready()
    faults = list(_faults_of(files))
    if not faults:
        try:
            notebook = course.generated(files)
        except CourseError as error:
            raise ReleaseError(f"{name} is not released: {shown(error.__cause__, 300)}") from error
        made = {f"{name}.ipynb": nbformat.writes(notebook).encode() + b"\n", **files.files}
        faults = [*leaks_in(files, made), *_differences(files, notebook)]
    if faults:
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        raise ReleaseError(f"{name} is not released: {faults[0]}{more}")
    Source(files.source, name=name)  # says what the grader could not judge
    folder = Path(course.dirs.format_path(course.dirs.release_directory, ".", name)).resolve()
    _copy(made, folder)
    return folder


def _faults_of(files: SetFiles) -> Iterator[str]:
    """What makes a source folder no source of one set."""
    for number, cell in enumerate(json.loads(files.notebook_text).get("cells", []), 1):
        # Such cells get a new one at every reading: what is released would never be the same twice.
        if not cell.get("id"):
            yield f"cell {number} of the source has no id; save it as nbformat 4.5 or newer"
    for path in sorted(files.folder.glob("[!.]*.ipynb")):
        if path.stem != files.name:
            yield f"{path.name} lies beside the set's notebook; a set has one notebook"


def leaks_in(files: SetFiles, made: dict[str, bytes]) -> Iterator[str]:
    """One sentence for everything in files, by path, that students must not see."""
    private = _private_lines(files)
    for path, data in made.items():
        text = data.decode("utf-8", "replace")
        yield from (f"{path} holds {marker!r}" for marker in MARKERS if marker in text)
        cells = nbformat.reads(text, as_version=4).cells if path.endswith(".ipynb") else []
        texts = [cell.source for cell in cells] or [text]
        lines = {line.strip() for part in texts for line in part.splitlines()}
        yield from (f"{path} holds a line of {what}" for line, what in private.items() if line in lines)


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


def _differences(files: SetFiles, released: nbformat.NotebookNode) -> Iterator[str]:
    """Where the released notebook is not that against which submissions are rebuilt."""
    wanted = files.released
    if len(wanted.cells) != len(released.cells):
        yield f"the notebook has {len(released.cells)} cells instead of {len(wanted.cells)}"
        return
    for mine, theirs in zip(wanted.cells, released.cells, strict=True):
        label = mine.metadata.get("nbgrader", {}).get("grade_id") or mine.id
        if (mine.id, mine.cell_type, mine.source) != (theirs.id, theirs.cell_type, theirs.source):
            yield f"the cell '{label}' is not what students should get"
        if theirs.cell_type == "code" and (theirs.outputs or theirs.execution_count):
            yield f"the cell '{label}' still has its output"


def _copy(made: dict[str, bytes], folder: Path) -> None:
    """Make `folder` hold exactly these files."""
    for name, data in made.items():
        write_changed(folder / name, data)
    if folder.is_dir():
        for path in sorted(folder.rglob("*"), reverse=True):
            if path.is_file() and path.relative_to(folder).as_posix() not in made:
                path.unlink()
            elif path.is_dir() and not any(path.iterdir()):
                shutil.rmtree(path)
