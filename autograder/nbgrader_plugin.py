"""Plugs the engine into nbgrader, so that every way of autograding gives the same scores.

`nbgrader_config.py` calls `configure(c)`. After that `nbgrader autograde`, `NbGraderAPI.autograde` and formgrader's
button grade by `SubmissionExporter.grade`. Heavy modules are imported when something is graded, not with the
configuration.

| What of nbgrader | becomes | why |
|---|---|---|
| `Autograde.exporter_class` (setting) | `SubmissionExporter` | a student's file is read by this engine alone |
| `Autograde.pre_convert_hook` (setting) | `expect_the_set` | one notebook is graded, whatever the file is called |
| `Autograde.sanitize_preprocessors` (setting) | nothing | they would look for the student's file |
| `Autograde.autograde_preprocessors` (setting) | `RunEngine` | the set's own tests, the sandbox, one writer of scores |
| `GenerateFeedback.preprocessors` (setting) | `WithoutRubrics` before them | rubrics stay with those who mark |
| `HTMLExporter.sanitize_html`, `.filters` (settings) | ours | no script of a student's runs in a marker's browser |
| `Autograde` where nbgrader names it (patched) | `CourseAutograde` | there is no setting, and hooks come too late |
| `GenerateAssignment` likewise (patched) | `CourseGenerate` | a set written as text has no notebook until it is made |
| `NbGraderAPI.get_submitted_timestamp` (patched) | reads by `read_timestamp` | one bad file took the list from all |
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import cached_property
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, v4
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from autograder.errors import AutograderError

if TYPE_CHECKING:
    from autograder.course import Course

HERE = __name__
IGNORED = ("catalogue.py", "set_checks.py")


def configure(c: Any) -> None:
    """Set in the configuration object `c` of nbgrader_config.py what makes nbgrader grade with this engine."""
    ignored = c.CourseDirectory.get("ignore")
    ignored = ignored if isinstance(ignored, list) else CourseDirectory.class_traits()["ignore"].default()
    c.CourseDirectory.ignore = [*(name for name in ignored if name not in IGNORED), *IGNORED]

    c.Autograde.exporter_class = f"{HERE}.SubmissionExporter"
    c.Autograde.pre_convert_hook = f"{HERE}.expect_the_set"
    c.Autograde.sanitize_preprocessors = []
    # RunEngine assigns the penalties for lateness too, with the plugin of AssignLatePenalties.
    c.Autograde.autograde_preprocessors = [f"{HERE}.RunEngine"]

    # What no student is to see: from which text a notebook was made, and rubrics beside the answers in autograded/.
    for converter, drop in (
        (GenerateAssignment, "autograder.notebook.text_source.WithoutOrigin"),
        (GenerateFeedback, f"{HERE}.WithoutRubrics"),
    ):
        usual = converter.class_traits()["preprocessors"].default()
        c[converter.__name__].preprocessors = [drop, *(f"{p.__module__}.{p.__name__}" for p in usual)]

    # What a student wrote is shown in the instructor's browser, where it could act as the instructor. nbconvert's
    # option covers outputs only: formgrader's template renders Markdown cells by this filter, without cleaning them.
    c.HTMLExporter.sanitize_html = True
    # Both filters are also bounded: some thousand blank lines would keep Pygments busy for a minute.
    c.HTMLExporter.filters = {
        "markdown2html": "autograder.html.sanitize.markdown",
        "highlight_code": "autograder.html.sanitize.highlighted",
    }
    _install()


def _install() -> None:
    """The patches of the table above. Courses without `configure` in the same process notice nothing."""
    for name in ("converters", "apps.autogradeapp", "apps.generateassignmentapp", "apps.api"):
        module = sys.modules.get(f"nbgrader.{name}")
        for called, usual, ours in _CONVERTERS:
            if module is not None and getattr(module, called, None) is usual:
                setattr(module, called, ours)
    api = sys.modules.get("nbgrader.apps.api")
    if api is not None and api.NbGraderAPI.get_submitted_timestamp is not _submitted_timestamp:
        # Formgrader lists a class with this method; one bad timestamp.txt would take the list from all of them.
        api.NbGraderAPI.get_submitted_timestamp = _submitted_timestamp


def _submitted_timestamp(self: Any, assignment_id: str, student_id: str) -> Any:
    """As NbGraderAPI.get_submitted_timestamp, but None for a timestamp that cannot be read."""
    from autograder.timestamps import read_timestamp

    dirs = self.coursedir
    return read_timestamp(Path(dirs.format_path(dirs.submitted_directory, student_id, assignment_id)))[0]


def expect_the_set(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's pre_convert_hook: whatever a student's file is called, one notebook of the set's name is graded.

    Nothing in the submitted folder is renamed: the engine finds the file that is meant.
    """
    folders = sorted({os.path.dirname(path) for path in notebooks})
    notebooks[:] = [os.path.join(folder, f"{assignment}.ipynb") for folder in folders]


# --- one run of the converter ----------------------------------------------------------------------------------------


def _course(converter: Any) -> Course:
    """The course of a converter, with nbgrader's own objects: they know what the command line said (--db …)."""
    from autograder.course import Course

    course = Course(Path(converter.coursedir.root))
    course.dirs, course.config = converter.coursedir, converter.config
    return course


class SubmissionExporter(NotebookExporter):
    """Grades submissions; to nbgrader's preprocessors it hands an empty notebook, for nobody else reads a student's."""

    sandbox = Unicode(
        "bubblewrap", help="'none' runs students' code unconfined; it may read and change everything you can."
    ).tag(config=True)

    @cached_property
    def course(self) -> Course:
        """The course, read once for each run (nbgrader makes an exporter for each). Raises CourseError."""
        return _course(self.parent)

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        """The notebook of this name as the preprocessors make it; nothing is read here."""
        return self.from_notebook_node(v4.new_notebook(), resources, **kw)

    def grade(self, name: str, student: str) -> None:
        """Judge a submission, or take its stored result, and write it into the gradebook and `autograded/`.

        Raises AutograderError; NbGraderException where something could not be written.
        """
        from autograder.gradebook.writer import write
        from autograder.grading.runner import Prepared, Settings, judge_here
        from autograder.grading.store import Store

        files, store = self.course.set_files(name), Store(self.course.results_folder)
        prepared = Prepared(files, student, Settings(sandbox=self.sandbox), store.seed(name, files.version))
        done = judge_here(store, prepared.read(self.course.step_folder("submitted", student, name)))
        written = write(self.course, [done.result])
        for line in written.remarks:
            self.log.warning(line)
        for problem in (*written.problems, done.problem):
            if problem:
                raise NbGraderException(problem)


class RunEngine(NbGraderPreprocessor):
    """Grades a submission inside nbgrader's own converter; gives what was written into `autograded/`."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        name, student = resources["nbgrader"]["assignment"], resources["nbgrader"]["student"]
        self.parent.grade(name, student)
        written = self.parent.course.step_folder("autograded", student, name) / f"{name}.ipynb"
        return nbformat.read(written, nbformat.NO_CONVERT), resources


class WithoutRubrics(NbGraderPreprocessor):
    """Drops the rubrics before feedback is made of an autograded notebook."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        from autograder.gradebook.autograded import RUBRIC

        nb.cells = [cell for cell in nb.cells if RUBRIC not in cell.metadata]
        return nb, resources


# --- the converters --------------------------------------------------------------------------------------------------


class CourseGenerate(GenerateAssignment):
    """nbgrader's GenerateAssignment, for sets that are written as text too."""

    def init_notebooks(self) -> None:
        from autograder.course import CONFIG, CourseError

        name = self.coursedir.assignment_id
        try:
            if (Path(self.coursedir.root) / CONFIG).exists() and name in (course := _course(self)).set_names():
                course.set_files(name).make_ready(self.coursedir)
        except CourseError as error:
            self.log.error(str(error))
            raise NbGraderException(str(error)) from error
        super().init_notebooks()


class CourseAutograde(Autograde):
    """nbgrader's Autograde for courses that call `configure`; for all others nbgrader's own is made.

    Every folder of the set counts as handed in, whatever is in it; a submission that cannot be processed never stops
    the class; files are written by the gradebook's writer alone, so that what was there is not lost on the way.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        usual = Autograde(*args, **kwargs)
        ours = issubclass(usual.exporter_class, SubmissionExporter)
        return super().__new__(cls, *args, **kwargs) if ours else usual

    def init_notebooks(self) -> None:
        name = self.coursedir.assignment_id
        folders = sorted(f for f in glob(self._format_source(name, self.coursedir.student_id)) if os.path.isdir(f))
        self.assignments = {folder: [os.path.join(folder, f"{name}.ipynb")] for folder in folders}
        if not folders:
            super().init_notebooks()  # nothing was handed in: nbgrader says so

    def convert_notebooks(self) -> None:
        """Grade everybody but the excluded; what is unchanged comes from the store, and writing it changes nothing."""
        from autograder.gradebook.assignment import ensure_assignment

        name = self.coursedir.assignment_id
        failed = []
        try:
            course = self.exporter.course
            for remark in ensure_assignment(course, course.set_files(name)):
                self.log.warning(remark)
            for (path,) in self.assignments.values():
                student = self.init_single_notebook_resources(path)["nbgrader"]["student"]
                if student in self.coursedir.student_id_exclude.split(","):
                    continue
                if problem := self._problem(name, student):
                    failed.append(student)
                    self.log.error("%s: %s", student, problem)
            problem = f"{len(failed)} could not be processed: {', '.join(failed)}" if failed else ""
        except AutograderError as error:  # the course, the sandbox, the source or its catalogue: the same for everyone
            problem = str(error)
        if problem:
            self.log.error(problem)
            raise NbGraderException(problem)

    def _problem(self, name: str, student: str) -> str:
        """Grade one submission; what is wrong with it alone, "" where nothing is. Raises AutograderError."""
        from autograder.course import CourseError

        try:
            self.exporter.grade(name, student)
            self.set_permissions(name, student)
            self.run_post_convert_hook()
        except (CourseError, NbGraderException) as error:
            return str(error)
        except AutograderError:
            raise
        except Exception as error:
            self.log.debug(traceback.format_exc())
            return f"the grader failed ({type(error).__name__}: {error}); please report it"
        return ""


_CONVERTERS = (
    ("Autograde", Autograde, CourseAutograde),
    ("GenerateAssignment", GenerateAssignment, CourseGenerate),
)
"""What nbgrader calls them, its own, and ours."""
