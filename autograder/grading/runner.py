"""Turns submissions into results: prepares jobs, runs them on an executor, stores what comes back.

The executor is any `concurrent.futures.Executor`. A result is stored as soon as it is there, so that a killed run
goes on where it was; a submission whose rebuilt notebook, set and grader are unchanged is not run again.
"""

from __future__ import annotations

import hashlib
import json
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from queue import SimpleQueue

from autograder import __version__
from autograder.course import Course, CourseError, SetFiles, file_number
from autograder.grading.pool import Hung, Pool
from autograder.grading.store import Store
from autograder.judging.job import Job
from autograder.judging.worker import run_job
from autograder.notebook.finder import find_notebook
from autograder.notebook.reader import AGAIN, Unreadable, read_bytes, read_notebook
from autograder.notebook.rebuild import rebuild
from autograder.results import NOT_SUBMITTED, UNREADABLE, Result
from autograder.sandbox.inside.workspace import OutOfTime, time_limit
from autograder.sandbox.launcher import BUBBLEWRAP, readable_folders
from autograder.text import shown

READ_SECONDS = 60.0  # of computing, for one submission: the class waits meanwhile
JUDGING = ("catalogue", "checks", "errors", "figures", "files", "judging", "notebook", "results", "sandbox", "text")
"""The modules and rooms of the package that may decide a verdict."""


@cache
def grader_version() -> str:
    """Version, a digest of the code that may decide verdicts, and the versions of what it runs on."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0].removesuffix(".py") in JUDGING:
            digest.update(path.read_bytes())
    return (
        f"{__version__}+{digest.hexdigest()[:10]} python {platform.python_version()} "
        f"numpy {version('numpy')} torch {version('torch')}"
    )


@dataclass
class Settings:
    """How to grade. `jobs` processes at once; `seed` None takes the recorded one; `force` runs everything anew."""

    sandbox: str = BUBBLEWRAP
    jobs: int = 1
    seed: int | None = None
    force: bool = False


@dataclass
class Step:
    """One finished submission: its result, whether it was run now, and a problem of the grader's with it."""

    result: Result
    ran: bool
    problem: str = ""


def digest_of(*parts: object) -> str:
    """A digest of plain data and bytes."""
    text = json.dumps(parts, sort_keys=True, default=lambda data: hashlib.sha256(data).hexdigest())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class Prepared:
    """One submission made ready: either a job or a result that needs no run."""

    def __init__(self, files: SetFiles, student: str, settings: Settings, seed: int) -> None:
        self.files, self.student, self.settings, self.seed = files, student, settings, seed
        self.versions = [files.version, grader_version(), settings.sandbox]
        self.arrived = ""

    def ready(self, folder: Path, stored: Result | None) -> Job | Result:
        """As `read`; where it takes too long, or fails by a mistake of our own, a result says so: the class goes on."""
        try:
            with time_limit(READ_SECONDS, again=0, clock=time.process_time):
                return self.read(folder, stored)
        except (Exception, OutOfTime) as error:
            what = f"the grader itself failed ({type(error).__name__}: {shown(error, 300)}); please report it"
            return self._job("").unjudged(what, [what])

    def read(self, folder: Path, stored: Result | None = None) -> Job | Result:
        """The job for a submission folder, or the result saying why there is none.

        `stored` itself where the very same file was read and judged before: then it is not even read as a notebook.
        """
        path, notes = find_notebook(folder, self.files.name)
        if path is None and not notes:
            reason = f"the folder holds no notebook {self.files.name}.ipynb"
            return self._job(digest_of("none", reason)).result(status=NOT_SUBMITTED, reason=reason)
        try:
            if path is None:  # something was handed in, which is no notebook that can be taken
                raise Unreadable(notes[0])
            # A hard link looks like any file, also one to the solution.
            if path.exists() and file_number(path) in self.files.own_numbers:
                raise Unreadable(f"'{shown(path.name)}' is a link to a file of the course, not a copy. {AGAIN}")
            data = read_bytes(path)
        except Unreadable as error:
            return self._unreadable(error, notes)
        self.arrived = digest_of(data, path.name, notes, self.versions)
        if stored is not None and stored.arrived == self.arrived:
            return stored
        return self.from_bytes(data, path.name, notes)

    def from_bytes(self, data: bytes, name: str, notes: Sequence[str]) -> Job | Result:
        """The job for a file of this name and content, or the result saying why there is none."""
        try:
            notebook, mended = read_notebook(data, name)
            rebuilt = rebuild(self.files.places, notebook)
        except Unreadable as error:
            return self._unreadable(error, notes, data, name)
        cells = json.dumps([vars(c) for c in rebuilt.cells])
        key = digest_of(cells, self.versions)
        return self._job(key, cells, [*notes, *mended, *rebuilt.notes], rebuilt.events)

    def _unreadable(self, error: Unreadable, notes: Sequence[str], *what: object) -> Result:
        key = digest_of(UNREADABLE, str(error), self.versions, *what)
        return self._job(key, notes=notes).result(status=UNREADABLE, reason=str(error))

    def _job(self, key: str, cells: str = "[]", notes: Sequence[str] = (), events: Sequence[str] = ()) -> Job:
        return Job(
            student=self.student,
            assignment=self.files.name,
            key=key,
            cells=cells,
            source=self.files.notebook_text,
            catalogue=self.files.catalogue,
            set_checks=self.files.set_checks,
            assignment_version=self.files.version,
            grader_version=grader_version(),
            seed=self.seed,
            files=self.files.files_as_text,
            sandbox=self.settings.sandbox,
            notes=list(notes),
            events=list(events),
            arrived=self.arrived,
        )


class Run:
    """Jobs under way on an executor. A job whose process dies is run once more, when nothing else is."""

    def __init__(self, store: Store, make_executor: Callable[[], Executor], most: int) -> None:
        self.store = store
        self.make_executor = make_executor
        self.most = most
        self.executor: Executor | None = None
        self.pending: dict[Future[bytes], Job] = {}
        self.done: SimpleQueue[Future[bytes]] = SimpleQueue()

    def submit(self, job: Job) -> Iterator[Step]:
        """Start a job; first waits, and yields what is done, where too many are under way.

        It then waits for half of them: several jobs made in a row take less time than one now and then.
        """
        if len(self.pending) >= self.most:
            while len(self.pending) > self.most // 2:
                yield from self.wait()
        future = self._start(job)
        self.pending[future] = job
        future.add_done_callback(self.done.put)

    def _start(self, job: Job) -> Future[bytes]:
        self.executor = self.executor or self.make_executor()
        return self.executor.submit(run_job, job.to_bytes())

    def wait(self) -> Iterator[Step]:
        """The next that is done; where a process died, all that is under way, and then once more what that one held."""
        lost: list[Job] = []
        while True:
            future = self.done.get()
            job = self.pending.pop(future)
            try:
                yield _judged(self.store, future.result())
            except Hung:
                yield self._without(job, "the grader's own process hung on these answers")
            except BrokenExecutor:
                lost.append(job)
            if not lost or not self.pending:
                break
        for job in lost:
            try:
                yield _judged(self.store, self._start(job).result())
            except BrokenExecutor:  # it dies also alone
                yield self._without(job, "the grader's own process died twice while it judged this submission")

    def _without(self, job: Job, why: str) -> Step:
        return _stored(self.store, job.unjudged(f"{why}; please report it", [why]))

    def close(self) -> None:
        if self.executor is not None:
            self.executor.shutdown(wait=True, cancel_futures=True)
            self.executor = None


def grade_set(
    course: Course,
    store: Store,
    name: str,
    settings: Settings,
    make_executor: Callable[[], Executor] | None = None,
    folders: Mapping[str, Path] | None = None,
) -> Iterator[Step]:
    """Grade a set's submissions, all or those in `folders`, by student; yields each as it is done.

    Raises AutograderError.
    """
    if settings.sandbox == BUBBLEWRAP and (found := [f for f in readable_folders() if course.root.is_relative_to(f)]):
        said = f"{course.root} lies in {found[0]}, which students' code can read: move the course elsewhere"
        raise CourseError(said)
    files = course.set_files(name)
    seed = settings.seed if settings.seed is not None else store.seed(name, files.version, settings.force)
    run = Run(store, make_executor or (lambda: Pool(settings.jobs)), 16 * settings.jobs)
    try:
        for student, folder in (course.submissions(name) if folders is None else folders).items():
            stored = None if settings.force else store.get(name, student)
            prepared = Prepared(files, student, settings, seed).ready(folder, stored)
            if stored is not None and stored.key == prepared.key != "":
                yield Step(stored, False)
            elif isinstance(prepared, Result):
                yield _stored(store, prepared)
            else:
                yield from run.submit(prepared)
        while run.pending:
            yield from run.wait()
        store.end_run(name)
    finally:
        run.close()


def _judged(store: Store, data: bytes) -> Step:
    return _stored(store, Result.from_json(json.loads(data)))


def _stored(store: Store, result: Result) -> Step:
    problem = "" if result.key else f"{result.student}: {result.reason}"  # the grader is to blame
    try:
        store.put(result)
    except OSError as error:
        where = store.path(result.assignment, result.student)
        problem = f"{result.student}: {where} cannot be written: {error.strerror}"
    return Step(result, True, problem)
