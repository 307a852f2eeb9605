"""A course folder: where its sets, submissions and results are, as nbgrader_config.py says."""

from __future__ import annotations

import base64
import hashlib
import logging
import re
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cached_property
from pathlib import Path
from typing import Any

import dateutil.parser
import nbformat
from dateutil.tz import gettz
from nbgrader.converters import GenerateAssignment
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import SaveCells
from nbgrader.utils import find_all_files, is_grade, is_solution
from traitlets.config import Config
from traitlets.config.loader import PyFileConfigLoader
from traitlets.utils.importstring import import_item

from autograder.errors import AutograderError
from autograder.notebook.places import Place, places_of, release_view
from autograder.notebook.text_source import BadText, made_from_text, read_text, write_notebook
from autograder.text import shown
from autograder.timestamps import STAMP_FORMAT

CONFIG = "nbgrader_config.py"
CATALOGUE = "catalogue.py"
SET_CHECKS = "set_checks.py"
PRIVATE = (CATALOGUE, SET_CHECKS)  # what stands beside a set's notebook and never reaches students

EARLIER = "attempts"  # in the folder of a student's newest attempt: the folder of those before it

log = logging.getLogger(__name__)


class CourseError(AutograderError):
    """The course folder cannot be used as asked; one line that says what is wrong and how to mend it."""


def file_number(path: Path) -> tuple[int, int]:
    """What the names of one and the same file have in common: device and inode. Raises OSError."""
    found = path.stat()
    return found.st_dev, found.st_ino


@dataclass
class SetFiles:
    """One set of the course: its source notebook, catalogue, shared checks and data files, read from disk.

    `path` is what was read: `NAME.py`, or `NAME.ipynb`. `notebook_text` is the notebook as JSON in either case.
    `config` is that of the course: it may have stubs and delimiters of its own.
    """

    name: str
    path: Path
    notebook_text: str
    catalogue: str
    set_checks: str
    files: dict[str, bytes]
    config: Config

    @property
    def folder(self) -> Path:
        return self.path.parent

    @cached_property
    def source(self) -> nbformat.NotebookNode:
        source: nbformat.NotebookNode = nbformat.reads(self.notebook_text, as_version=4)
        return source

    @cached_property
    def released(self) -> nbformat.NotebookNode:
        return release_view(self.source, self.config)

    @cached_property
    def places(self) -> list[Place]:
        """The set's cells, for the rebuild of submissions."""
        return places_of(self.source, self.released)

    @cached_property
    def rubrics(self) -> dict[str, str]:
        """What the source says to each written question, model answer and rubric, by grade_id."""
        return {c.metadata.nbgrader.grade_id: c.source for c in self.source.cells if is_grade(c) and is_solution(c)}

    @cached_property
    def tasks(self) -> dict[str, str]:
        """The Markdown right above the answer to each written question, by grade_id."""
        tasks: dict[str, str] = {}
        above: list[str] = []
        for cell in self.source.cells:
            if cell.cell_type == "markdown" and not is_solution(cell):
                above.append(cell.source)
                continue
            if is_grade(cell) and is_solution(cell):
                tasks[cell.metadata.nbgrader.grade_id] = "\n\n".join(above)
            above = []
        return tasks

    @cached_property
    def version(self) -> str:
        """A digest of everything that decides the verdicts of this set."""
        digest = hashlib.sha256("\0".join([self.notebook_text, self.catalogue, self.set_checks]).encode())
        for name in sorted(self.files):
            digest.update(name.encode() + b"\0" + self.files[name] + b"\0")
        return digest.hexdigest()[:16]

    @cached_property
    def own_numbers(self) -> set[tuple[int, int]]:
        """The `file_number` of every file in the set's source folder."""
        return {file_number(path) for path in self.folder.rglob("*") if path.is_file()}

    def make_ready(self) -> None:
        """Write the notebook of a text, which nbgrader reads, beside it. Raises CourseError where that cannot be."""
        try:
            if self.path.suffix == ".py":
                write_notebook(self.source, self.path.with_suffix(".ipynb"))
        except OSError as error:
            raise CourseError(f"the notebook of {self.path} cannot be written beside it: {error}") from error

    @property
    def files_as_text(self) -> dict[str, str]:
        return {name: base64.b64encode(data).decode() for name, data in self.files.items()}


class Course:
    """The folder that holds nbgrader_config.py. Raises CourseError when there is none."""

    def __init__(self, folder: Path) -> None:
        self.root = folder.resolve()
        if not (self.root / CONFIG).exists():
            raise CourseError(f"{folder} is no course folder: it holds no {CONFIG}; name one with --course")
        loader = PyFileConfigLoader(CONFIG, path=str(self.root))
        try:
            self.config: Config = loader.load_config()
        except Exception as error:
            raise CourseError(f"{self.root / CONFIG} cannot be read: {type(error).__name__}: {error}") from error
        self.config.CourseDirectory.root = str(self.root)
        self.dirs = CourseDirectory(config=self.config)
        self.results_folder, self.report_folder = self.root / "results", self.root / "report"
        zone = self.config.Exchange.get("timezone")
        self.zone: tzinfo = gettz(zone)
        """The zone of times that name none: c.Exchange.timezone, else this machine's."""
        if self.zone is None:
            raise CourseError(f"{self.root / CONFIG}: c.Exchange.timezone is {zone!r}, which is no time zone")
        self._sets: dict[str, SetFiles] = {}

    @property
    def db_url(self) -> str:
        return str(self.dirs.db_url)

    def clock(self, moment: datetime) -> str:
        """A time of the gradebook (UTC, without a zone) in the course's zone, such as "2027-03-01 18:00:00 CET"."""
        return moment.replace(tzinfo=UTC).astimezone(self.zone).strftime(STAMP_FORMAT)

    def moment(self, words: str) -> datetime:
        """A time that a person or another system wrote, in the zone it names, else in the course's. Raises NO_DATE."""

        def zone_of(name: str | None, offset: int | None) -> tzinfo | int:
            return offset if offset is not None else (name and gettz(name)) or self.zone

        found: datetime = dateutil.parser.parse(words, tzinfos=zone_of)
        return found

    @property
    def source_folder(self) -> Path:
        return self.root / str(self.dirs.source_directory)

    @property
    def feedback_folder(self) -> Path:
        return self.root / str(self.dirs.feedback_directory)

    def step_folder(self, step: str, student: str, name: str) -> Path:
        """The folder of one student's set in a step such as "submitted" or "autograded"."""
        return Path(self.dirs.format_path(getattr(self.dirs, f"{step}_directory"), student, name))

    def set_names(self) -> list[str]:
        """Names of the sets that have a source of their own name, a text or a notebook, in order."""
        if not self.source_folder.is_dir():
            raise CourseError(f"there is no folder of source notebooks at {self.source_folder}")
        folders = self.source_folder.iterdir()
        return sorted(p.name for p in folders if any((p / f"{p.name}{kind}").exists() for kind in (".py", ".ipynb")))

    def set_files(self, name: str) -> SetFiles:
        """Raises CourseError for an unknown set, and for one whose source cannot be read."""
        if name not in self._sets:
            known = self.set_names()
            if name not in known:
                raise CourseError(f"there is no set {name!r}; the sets are {', '.join(known) or 'none'}")
            folder = self.source_folder / name
            try:
                path, notebook = _read_source(folder)
            except BadText as error:
                raise CourseError(str(error)) from error
            ignore = [*self.dirs.ignore, "*.ipynb", f"{name}.py", *PRIVATE]
            found = map(Path, find_all_files(str(folder), ignore))
            files = {str(file.relative_to(folder)): file.read_bytes() for file in found}
            own = (folder / private for private in PRIVATE)
            catalogue, shared = (path.read_text(encoding="utf-8") if path.exists() else "" for path in own)
            if catalogue:  # what catalogues share, in the first line: the others keep their numbers
                texts = [path.read_text(encoding="utf-8") for path in sorted(self.source_folder.glob("*.py"))]
                catalogue = f"{''.join(f'exec({text!r}); ' for text in texts)}{catalogue}"
            self._sets[name] = SetFiles(name, path, notebook, catalogue, shared, files, self.config)
        return self._sets[name]

    def generated(self, files: SetFiles, recorded: bool = False) -> nbformat.NotebookNode:
        """The set as GenerateAssignment's own preprocessors make it: for students, or as SaveCells finds it.

        `recorded` says the latter. Raises CourseError where nbgrader cannot use the source.
        """
        name, notebook = files.name, deepcopy(files.source)
        resources: dict[str, Any] = {
            "unique_key": name,
            "metadata": {"path": str(files.folder)},
            "nbgrader": {"student": ".", "assignment": name, "notebook": name, "db_url": self.db_url},
        }
        try:
            for preprocessor in GenerateAssignment(coursedir=self.dirs, config=self.config).preprocessors:
                kind = import_item(preprocessor) if isinstance(preprocessor, str) else preprocessor
                if not issubclass(kind, SaveCells):
                    notebook, resources = kind(config=self.config, log=log)(notebook, resources)
                elif recorded:
                    break
        except Exception as error:  # nbgrader raises RuntimeError, ValueError, KeyError, its own kinds …
            raise CourseError(f"{name}: nbgrader cannot use the source notebook: {shown(error, 300)}") from error
        return notebook

    def submissions(self, name: str) -> dict[str, Path]:
        """Folders with something handed in for a set, by student."""
        parts = self.step_folder("submitted", "*", name).relative_to(self.root).parts
        if "*" not in parts:
            raise CourseError(f"directory_structure {self.dirs.directory_structure!r} needs a folder for each student")
        above = self.root.joinpath(*parts[: parts.index("*")])
        found = {}
        for student in sorted(above.iterdir()) if above.is_dir() else []:
            folder = self.step_folder("submitted", student.name, name)
            try:
                if not folder.is_dir():
                    continue
            except PermissionError:  # something that cannot be opened is not nothing: it gets a result that says so
                pass
            found[student.name] = folder
        return found

    def unknown_folders(self) -> list[tuple[str, str]]:
        """(student, folder) of submissions that belong to no set of this course."""
        submitted = self.dirs.submitted_directory
        form = self.dirs.format_path(submitted, "(?P<student>[^/]*)", "(?P<name>[^/]*)", escape=True)
        places = sorted(self.root.glob(str(self.step_folder("submitted", "*", "*").relative_to(self.root))))
        matches = [re.fullmatch(form, str(path)) for path in places if path.is_dir()]
        known = self.set_names()
        return [(m["student"], m["name"]) for m in matches if m and m["name"] not in known]


def _read_source(folder: Path) -> tuple[Path, str]:
    """The file that a set was written in, and its notebook as JSON. Raises CourseError, BadText."""
    text, notebook = (folder / f"{folder.name}{kind}" for kind in (".py", ".ipynb"))
    if not text.exists():
        return notebook, notebook.read_text(encoding="utf-8")
    if notebook.exists() and not made_from_text(notebook):
        raise CourseError(f"{folder} holds both {text.name} and {notebook.name}, but a set has one source: remove one")
    return text, nbformat.writes(read_text(text))
