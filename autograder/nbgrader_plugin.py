"""Plugs the engine into nbgrader, so that every way of autograding gives the same scores.

`nbgrader_config.py` calls `configure(c)`. After that `nbgrader autograde`, `NbGraderAPI.autograde` and formgrader's
button grade as `python -m autograder grade` does. ARCHITECTURE.md says what of nbgrader is replaced by what, and why.
"""

from __future__ import annotations

import fnmatch
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nbconvert.exporters import NotebookExporter
from nbconvert.preprocessors import Preprocessor
from nbformat import NotebookNode
from nbgrader.apps.api import NbGraderAPI
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback, NbGraderException
from nbgrader.converters.base import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import chdir
from traitlets import Bool, Unicode

from autograder.course import CONFIG, PRIVATE, Course, CourseError
from autograder.errors import AutograderError
from autograder.gradebook.assignment import ensure_assignment
from autograder.gradebook.autograded import RUBRIC
from autograder.gradebook.decisions import decided, folder_of
from autograder.gradebook.reader import lateness
from autograder.notebook.text_source import MADE_FROM
from autograder.results import Result
from autograder.timestamps import read_timestamp

if TYPE_CHECKING:
    from autograder.grading.runner import Step

HERE = __name__


def configure(c: Any) -> None:
    """Set in the configuration object `c` of nbgrader_config.py what makes nbgrader grade with this engine."""
    ignored = c.CourseDirectory.get("ignore")
    ignored = ignored if isinstance(ignored, list) else CourseDirectory.class_traits()["ignore"].default()
    c.CourseDirectory.ignore = [*(name for name in ignored if name not in PRIVATE), *PRIVATE]

    c.Autograde.exporter_class = f"{HERE}.SubmissionExporter"
    # Whoever makes nbgrader convert a student's notebook all the same runs nothing in it.
    c.Autograde.sanitize_preprocessors = c.Autograde.autograde_preprocessors = []
    for converter in (GenerateAssignment, GenerateFeedback):
        usual = converter.class_traits()["preprocessors"].default()
        names = (f"{p.__module__}.{p.__name__}" for p in usual)
        c[converter.__name__].preprocessors = [f"{HERE}.ForStudents", *names]

    # What a student wrote is shown in the instructor's browser, where it could act as the instructor. nbconvert's
    # option covers outputs only: formgrader's template renders Markdown cells by this filter, without cleaning them.
    c.HTMLExporter.sanitize_html = True
    c.HTMLExporter.preprocessors = [f"{HERE}.ForBrowsers"]
    # The filters are also bounded: some thousand blank lines would keep Pygments busy for a minute.
    c.HTMLExporter.filters = {
        "ansi2html": "autograder.html.sanitize.terminal",
        "markdown2html": "autograder.html.sanitize.markdown",
        "highlight_code": "autograder.html.sanitize.highlighted",
    }
    # There is no setting for these. In courses that do not call `configure` they do what they always did.
    Autograde.start = _autograde
    GenerateAssignment.init_notebooks = _init_notebooks
    NbGraderAPI.get_submitted_timestamp = _submitted_timestamp


def _submitted_timestamp(self: Any, assignment_id: str, student_id: str) -> Any:
    """As NbGraderAPI.get_submitted_timestamp, of the attempt that counts, but None for one that cannot be read."""
    dirs = self.coursedir
    newest = Path(dirs.format_path(dirs.submitted_directory, student_id, assignment_id))
    return read_timestamp(folder_of(newest, decided(Path(dirs.root), assignment_id), student_id))[0]


def _course(converter: Any) -> Course:
    """The course of a converter, with nbgrader's own objects: they know what the command line said (--db …)."""
    course = Course(Path(converter.coursedir.root))
    course.dirs, course.config = converter.coursedir, converter.config
    return course


class ForStudents(NbGraderPreprocessor):
    """Drops the cells that only instructors see: rubrics, and what says of which text a notebook was made."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        nb.cells = [cell for cell in nb.cells if RUBRIC not in cell.metadata and cell.get("id") != MADE_FROM]
        return nb, resources


class ForBrowsers(Preprocessor):
    """Bounds what a page shows, and makes names text: formgrader has them as they are, and students choose some."""

    enabled = Bool(True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        from autograder.html.sanitize import bound

        bound(cell for cell in nb.cells if RUBRIC not in cell.metadata)
        names = {n: resources[n] for n in ("student", "first_name", "last_name", "notebook_path") if resources.get(n)}
        resources.update({name: html.escape(text) for name, text in names.items()})
        return nb, resources


def _init_notebooks(self: Any) -> None:
    """As GenerateAssignment.init_notebooks, for sets that are written as text too."""
    name = self.coursedir.assignment_id
    try:
        if (Path(self.coursedir.root) / CONFIG).exists() and name in (course := _course(self)).set_names():
            course.set_files(name).make_ready()
            self.coursedir.ignore = [*self.coursedir.ignore, f"{name}.py"]
    except CourseError as error:
        self.log.error(str(error))
        raise NbGraderException(str(error)) from error
    BaseConverter.init_notebooks(self)


class SubmissionExporter(NotebookExporter):
    """Stands where nbgrader's converter has what exports a student's notebook: who has it grades with this engine."""

    sandbox = Unicode(
        "bubblewrap", help="'none' runs students' code unconfined; it may read and change everything you can."
    ).tag(config=True)


def _autograde(self: Any) -> None:
    """As Autograde.start: grades everybody but the excluded, in courses that call `configure` with this engine.

    Every folder of the set counts as handed in, whatever is in it; a submission that cannot be processed never stops
    the class; files are written by the gradebook's writer alone, so that what was there is not lost on the way.
    What is unchanged comes from the store, and writing it changes nothing.
    """
    if not issubclass(self.exporter_class, SubmissionExporter):
        BaseConverter.start(self)
        return
    # takes a while to import, and most of nbgrader's commands grade nothing
    from autograder.gradebook.counting import attempts_that_count
    from autograder.gradebook.writer import write
    from autograder.grading.runner import Settings, grade_set
    from autograder.grading.store import Store

    name = self.coursedir.assignment_id
    problems: list[str] = []
    settings = Settings(sandbox=self.exporter_class(parent=self, config=self.config).sandbox)

    def noted(step: Step) -> Result:
        problems.extend([step.problem] if step.problem else [])
        return step.result

    try:
        with chdir(self.coursedir.root):
            course = _course(self)
            students = fnmatch.filter(course.submissions(name), self.coursedir.student_id)
            if not students:
                self.init_notebooks()  # nothing was handed in: nbgrader says so
            students = [s for s in students if s not in self.coursedir.student_id_exclude.split(",")]
            for remark in ensure_assignment(course, course.set_files(name)):
                self.log.warning(remark)
            folders, chosen = attempts_that_count(course, name, students, settings)
            steps = grade_set(course, Store(course.results_folder), name, settings, folders=folders)
            written = write(course, map(noted, steps))
            problems += written.problems
            for student in students:
                self.set_permissions(name, student)
                self.run_post_convert_hook()
            for remark in [*chosen, *written.remarks, *lateness(course, name)]:
                self.log.warning(remark)
    except AutograderError as error:  # the course, the sandbox, the source or its catalogue: the same for everyone
        problems = [str(error)]
    for problem in problems:
        self.log.error(problem)
    if problems:
        raise NbGraderException("\n".join(problems))
