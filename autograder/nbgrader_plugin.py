"""Plugs the engine into nbgrader, so that every way of autograding gives the same scores.

`nbgrader_config.py` calls `configure(c)`. After that `nbgrader autograde`, `NbGraderAPI.autograde` and formgrader's
button go through nbgrader's own converter with our parts in it. Heavy modules are imported when something is graded,
not with the configuration.

| What of nbgrader | becomes | why |
|---|---|---|
| `Autograde.exporter_class` (setting) | `SubmissionExporter` | a student's file is parsed by `Rebuild` alone |
| `Autograde.pre_convert_hook` (setting) | `expect_the_set` | one notebook is graded, whatever the file is called |
| `Autograde.sanitize_preprocessors` (setting) | `Rebuild` | the set's own tests stand around the student's answers |
| `Autograde.autograde_preprocessors` (setting) | `RunEngine`, `SaveVerdicts` | the sandbox; one writer of scores |
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
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from nbconvert.exporters import NotebookExporter
from nbformat import NotebookNode, v4
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback, NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Unicode

from autograder.errors import AutograderError

if TYPE_CHECKING:
    from autograder.course import SetFiles
    from autograder.gradebook.writer import Written
    from autograder.judging.job import Job
    from autograder.results import Result

HERE = __name__
IGNORED = ("catalogue.py", "set_checks.py")


def configure(c: Any) -> None:
    """Set in the configuration object `c` of nbgrader_config.py what makes nbgrader grade with this engine."""
    ignored = c.CourseDirectory.get("ignore")
    ignored = ignored if isinstance(ignored, list) else CourseDirectory.class_traits()["ignore"].default()
    c.CourseDirectory.ignore = [*(name for name in ignored if name not in IGNORED), *IGNORED]

    c.Autograde.exporter_class = f"{HERE}.SubmissionExporter"
    c.Autograde.pre_convert_hook = f"{HERE}.expect_the_set"
    c.Autograde.sanitize_preprocessors = [f"{HERE}.Rebuild"]
    # SaveVerdicts assigns the penalties for lateness too, with the plugin of AssignLatePenalties.
    c.Autograde.autograde_preprocessors = [f"{HERE}.RunEngine", f"{HERE}.SaveVerdicts"]

    # A set may be written as text; nbgrader reads a notebook that is made from it.
    usual = GenerateAssignment.class_traits()["preprocessors"].default()
    drop = "autograder.notebook.text_source.WithoutOrigin"
    c.GenerateAssignment.preprocessors = [drop, *(f"{p.__module__}.{p.__name__}" for p in usual)]

    # Rubrics stand beside the answers in autograded/, and stay there.
    usual = GenerateFeedback.class_traits()["preprocessors"].default()
    c.GenerateFeedback.preprocessors = [f"{HERE}.WithoutRubrics", *(f"{p.__module__}.{p.__name__}" for p in usual)]

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

    Nothing in the submitted folder is renamed: `Rebuild` finds the file that is meant.
    """
    folders = sorted({os.path.dirname(path) for path in notebooks})
    notebooks[:] = [os.path.join(folder, f"{assignment}.ipynb") for folder in folders]


# --- one run of the converter ----------------------------------------------------------------------------------------


class Grading:
    """What the parts of one run share: the course, the store, and the submission that is under way."""

    def __init__(self, dirs: CourseDirectory, config: Any, sandbox: str) -> None:
        from autograder.course import Course
        from autograder.grading.runner import Settings
        from autograder.grading.store import Store

        self.course = Course(Path(dirs.root))
        # nbgrader's own objects: they know what was said on the command line (--db, --student …).
        self.course.dirs, self.course.config = dirs, config
        self.store = Store(self.course.results_folder)
        self.settings = Settings(sandbox=sandbox)
        self.prepared: Job | Result | None = None
        self.result: Result | None = None
        self.problem = ""

    def ensure(self, name: str) -> list[str]:
        """The set stands in the gradebook as the source has it; returns remarks."""
        from autograder.gradebook.assignment import ensure_assignment

        return ensure_assignment(self.course, self.course.set_files(name))

    def prepare(self, name: str, student: str) -> NotebookNode:
        """Read and rebuild a submission; returns the notebook to grade, as its student may see it."""
        from autograder.gradebook.autograded import autograded_notebook
        from autograder.grading.runner import Prepared
        from autograder.notebook.rebuild import to_notebook
        from autograder.results import Result

        files = self.course.set_files(name)
        seed = self.store.seed(name, files.version)
        folder = self.course.step_folder("submitted", student, name)
        self.result, self.problem = None, ""
        self.prepared = Prepared(files, student, self.settings, seed).read(folder)
        if isinstance(self.prepared, Result):
            return autograded_notebook(files, self.prepared)
        return to_notebook(self.prepared.rebuilt(), files.source)

    def judge(self) -> NotebookNode:
        """Judge the prepared submission, or take its stored result; returns the executed notebook."""
        from autograder.gradebook.autograded import autograded_notebook
        from autograder.grading.runner import judge_here

        if self.prepared is None:
            raise RuntimeError("RunEngine needs Rebuild before it, in c.Autograde.sanitize_preprocessors")
        done = judge_here(self.store, self.prepared)
        self.result, self.problem = done.result, done.problem
        return autograded_notebook(self.files, self.result)

    @property
    def files(self) -> SetFiles:
        assert self.prepared is not None
        return self.course.set_files(self.prepared.assignment)

    def save(self) -> Written:
        from autograder.gradebook.writer import write

        if self.result is None:
            raise RuntimeError("SaveVerdicts needs RunEngine before it, in c.Autograde.autograde_preprocessors")
        return write(self.course, [self.result])


class SubmissionExporter(NotebookExporter):
    """An exporter that hands an empty notebook to the preprocessors: a student's file is read by `Rebuild` alone."""

    sandbox = Unicode(
        "bubblewrap", help="'none' runs students' code unconfined; it may read and change everything you can."
    ).tag(config=True)
    _grading: Grading | None = None

    @property
    def grading(self) -> Grading:
        """The run that this exporter belongs to (nbgrader makes an exporter for each run). Raises CourseError."""
        if self._grading is None:
            converter: Any = self.parent
            self._grading = Grading(converter.coursedir, converter.config, self.sandbox)
        return self._grading

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        """The notebook of this name as the preprocessors make it; nothing is read here."""
        return self.from_notebook_node(v4.new_notebook(), resources, **kw)


class Rebuild(NbGraderPreprocessor):
    """The instructor's notebook with the student's text in its answer cells, from whatever was handed in."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        where = resources["nbgrader"]
        return self.parent.grading.prepare(where["assignment"], where["student"]), resources


class RunEngine(NbGraderPreprocessor):
    """Runs the student's cells in the sandbox and judges them with the test cells."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        return self.parent.grading.judge(), resources


class SaveVerdicts(NbGraderPreprocessor):
    """Writes scores, automatic comments, the timestamp and the penalty for lateness into the gradebook."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        written = self.parent.grading.save()
        for line in written.remarks:
            self.log.warning(line)
        if written.problems:
            raise NbGraderException(written.problems[0])
        return nb, resources


class WithoutRubrics(NbGraderPreprocessor):
    """Drops the rubrics before feedback is made of an autograded notebook."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        from autograder.gradebook.autograded import without_rubrics

        return without_rubrics(nb), resources


# --- the converters --------------------------------------------------------------------------------------------------


class CourseGenerate(GenerateAssignment):
    """nbgrader's GenerateAssignment, for sets that are written as text too."""

    def init_notebooks(self) -> None:
        from autograder.course import CONFIG, Course, CourseError

        name, root = self.coursedir.assignment_id, Path(self.coursedir.root)
        try:
            if (root / CONFIG).exists():
                course = Course(root)
                course.dirs, course.config = self.coursedir, self.config
                if name in course.set_names():
                    course.set_files(name).make_ready(self.coursedir)
        except CourseError as error:
            self.log.error(str(error))
            raise NbGraderException(str(error)) from error
        super().init_notebooks()


class CourseAutograde(Autograde):
    """nbgrader's Autograde for courses that call `configure`; for all others exactly nbgrader's.

    Every folder of the set counts as handed in, whatever is in it; a submission that cannot be processed never stops
    the class; files are written by the gradebook's writer alone, so that what was there is not lost on the way.
    """

    @property
    def _ours(self) -> bool:
        return issubclass(self.exporter_class, SubmissionExporter)

    def init_notebooks(self) -> None:
        if not self._ours:
            super().init_notebooks()
            return
        name = self.coursedir.assignment_id
        folders = sorted(f for f in glob(self._format_source(name, self.coursedir.student_id)) if os.path.isdir(f))
        if not folders:
            super().init_notebooks()  # nothing was handed in: nbgrader says so
            return
        self.notebooks: list[str] = []
        self.assignments = {folder: [os.path.join(folder, f"{name}.ipynb")] for folder in folders}

    def convert_notebooks(self) -> None:
        if not self._ours:
            super().convert_notebooks()
            return
        self._stop = ""
        self._failed: list[str] = []
        try:
            remarks = self.exporter.grading.ensure(self.coursedir.assignment_id)
        except AutograderError as error:
            self._end(str(error))
        for remark in remarks:
            self.log.warning(remark)
        for folder, notebooks in sorted(self.assignments.items()):
            self.assignments = {folder: notebooks}
            super().convert_notebooks()
            if self._stop:
                self._end(self._stop)
        if self._failed:
            self._end(f"{len(self._failed)} could not be processed: {', '.join(self._failed)}")

    def _end(self, text: str) -> NoReturn:
        """What stops the whole run becomes one line and nbgrader's own exception."""
        self.log.error(text)
        raise NbGraderException(text)

    def init_destination(self, assignment_id: str, student_id: str) -> bool:
        """Always processed unless excluded: what is unchanged comes from the store, and writing it changes nothing."""
        if not self._ours:
            return bool(super().init_destination(assignment_id, student_id))
        return student_id not in self.coursedir.student_id_exclude.split(",")

    def init_assignment(self, assignment_id: str, student_id: str) -> None:
        if not self._ours:
            super().init_assignment(assignment_id, student_id)

    def convert_single_notebook(self, notebook_filename: str) -> None:
        if not self._ours:
            super().convert_single_notebook(notebook_filename)
            return
        from autograder.course import CourseError

        # An exception that left this method would make nbgrader delete what stands in autograded/.
        student = self.init_single_notebook_resources(notebook_filename)["nbgrader"]["student"]
        problem = ""
        try:
            super().convert_single_notebook(notebook_filename)
            problem = self.exporter.grading.problem
        except (CourseError, NbGraderException) as error:
            problem = str(error)
        except AutograderError as error:
            self._stop = str(error)  # the sandbox, the source or its catalogue: it would be the same for everyone
        except Exception as error:
            self.log.debug(traceback.format_exc())
            problem = f"the grader failed ({type(error).__name__}: {error}); please report it"
        if problem:
            self._failed.append(student)
            self.log.error("%s: %s", student, problem)

    def write_single_notebook(self, output: str, resources: Any) -> None:
        if not self._ours:
            super().write_single_notebook(output, resources)
            return
        where = resources["nbgrader"]
        self.writer.build_directory = self._format_dest(where["assignment"], where["student"])


_CONVERTERS = (
    ("Autograde", Autograde, CourseAutograde),
    ("GenerateAssignment", GenerateAssignment, CourseGenerate),
)
"""What nbgrader calls them, its own, and ours."""
