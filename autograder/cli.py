"""The command line: `autograder init | release | collect | grade | students | mark | feedback | report | export |
audit | doctor`.

What is heavy is imported by the command that uses it, so that `--help` takes no time.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Column, Table
from rich.text import Text

from autograder.cli_begin import init
from autograder.cli_students import students
from autograder.console import err, out, progress_bar
from autograder.errors import AutograderError
from autograder.mark import mark
from autograder.options import (
    FILE,
    Names,
    chosen_sets,
    course_option,
    folder_option,
    jobs_option,
    json_option,
    sets_argument,
    sets_option,
    student_option,
)
from autograder.results import GRADED, Result
from autograder.text import plural, shown

if TYPE_CHECKING:
    from autograder.course import Course
    from autograder.grading.runner import Step
    from autograder.lms.collect import Collected

LONGEST_TABLE = 60


class Commands(click.Group):
    """Commands whose known problems end in one line on stderr and a non-zero exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AutograderError as error:
            raise click.ClickException(str(error)) from error
        except (BrokenPipeError, click.ClickException, click.Abort, click.exceptions.Exit):  # click ends the command
            raise
        except OSError as error:
            raise click.ClickException(f"{error.filename or 'a file'}: {error.strerror}") from error
        except Exception as error:
            from sqlalchemy.exc import SQLAlchemyError

            if not isinstance(error, SQLAlchemyError):
                raise
            raise click.ClickException(f"the gradebook cannot be used: {str(error).splitlines()[0]}") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="attention-by-hand", prog_name="autograder")
def cli() -> None:
    """Release problem sets, grade submissions in a sandbox, and say what was wrong."""


cli.add_command(init)
cli.add_command(students)
cli.add_command(mark)


@cli.command()
@course_option
@sets_argument
@json_option
def release(course: Course, sets: Names, as_json: bool) -> None:
    """Make what students get from the source notebooks (all sets by default)."""
    from autograder.release import release as release_set

    made = {}
    with progress_bar() as bar:
        for name in bar.track(chosen_sets(course, sets, course.set_names()), description="releasing"):
            made[name] = str(release_set(course, name))
    if as_json:
        click.echo(json.dumps(made))
    else:
        for name, path in made.items():
            out.print(f"released {name} to {os.path.relpath(path)}")


@cli.command()
@course_option
@click.argument("sources", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path), metavar="SOURCE...")
@click.option("--assignment", "-a", "name", required=True, metavar="SET", help="The set that was handed in.")
@click.option(
    "--roster",
    type=FILE,
    help="CSV with a column 'id' and any of name, email, canvas_id, moodle_id; or a Canvas gradebook, or a Moodle "
    "grading worksheet. Without it, the students in the gradebook.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would become of each file.")
@json_option
def collect(
    course: Course, sources: tuple[Path, ...], name: str, roster: Path | None, dry_run: bool, as_json: bool
) -> None:
    """Fill submitted/ from downloads of Canvas or Moodle, zip archives or folders.

    Each SOURCE holds one folder, archive or file for each student. The newest attempt is graded, earlier ones are kept
    beside it, and collecting again changes nothing.
    """
    from autograder.lms.collect import collect as collect_files

    done = collect_files(course, sources, name, roster, dry_run)
    if as_json:
        click.echo(json.dumps(done.to_json()))
    else:
        _say_collected(done, dry_run)
    _say_all(done.remarks, "yellow")
    _end_with(done.problems)


def _say_collected(done: Collected, dry_run: bool) -> None:
    """Every file with what became of it; in a large class only those that need a look."""
    shown = done.rows if len(done.rows) <= LONGEST_TABLE else done.unusual
    table = Table(Column("file", overflow="fold"), "student", "attempt", "", Column("why", overflow="fold"))
    for row in shown[:LONGEST_TABLE]:
        table.add_row(row.file, row.student, row.attempt, row.action, row.why)
    if shown:
        out.print(table)
    counts = ", ".join(f"{count} {action}" for action, count in Counter(row.action for row in done.rows).items())
    students = len({row.student for row in done.rows if row.attempt})
    out.print(f"{plural(len(done.rows), 'file')} of {plural(students, 'student')}: {counts or 'nothing'}")
    if done.report:
        out.print(f"every file is listed in {os.path.relpath(done.report)}")
    if dry_run:
        out.print("nothing was written (--dry-run)")


@cli.command()
@course_option
@sets_option
@student_option
@jobs_option
@click.option("--scheduler", metavar="ADDRESS", help="Run the jobs on this Dask cluster, e.g. tcp://host:8786.")
@click.option("--force", is_flag=True, help="Run unchanged submissions again, with fresh random inputs.")
@click.option("--seed", type=int, help="Seed of the hidden checks' inputs (default: the recorded one).")
@click.option(
    "--sandbox",
    type=click.Choice(["bubblewrap", "none"]),
    default="bubblewrap",
    help="'none' runs students' code unconfined: it may read and change everything you can.",
)
@json_option
def grade(
    course: Course,
    sets: Names,
    students: Names,
    jobs: int,
    scheduler: str | None,
    force: bool,
    seed: int | None,
    sandbox: str,
    as_json: bool,
) -> None:
    """Grade what was handed in (all sets and students by default)."""
    from autograder.gradebook.assignment import ensure_assignment
    from autograder.gradebook.counting import attempts_that_count
    from autograder.gradebook.reader import Standing, lateness, scores
    from autograder.gradebook.writer import write
    from autograder.grading.runner import Settings, grade_set
    from autograder.grading.store import Store

    settings = Settings(sandbox=sandbox, jobs=max(1, jobs), seed=seed, force=force)
    problems: list[str] = []
    graded: list[dict[str, Any]] = []
    store = Store(course.results_folder)
    make_executor = None
    if scheduler:
        from autograder.grading.cluster import DaskExecutor, workers_of

        settings.jobs = workers_of(scheduler)
        make_executor = partial(DaskExecutor, scheduler)
    if sandbox == "none":
        err.print("Students' code runs unconfined (--sandbox none); results and reports say so.", style="bold red")
    names = chosen_sets(course, sets, course.set_names())
    handed_in = {name: places for name in names if (places := course.submissions(name)) or sets}
    for student in students:
        missing = [name for name, places in handed_in.items() if student not in places]
        if missing and (sets or len(missing) == len(handed_in)):
            raise AutograderError(f"{student!r} has handed in nothing" + f" for {missing[0]}" * bool(sets))
    for name, places in handed_in.items():
        who = [s for s in places if not students or s in students]
        if students and not who:
            continue
        _say_all(ensure_assignment(course, course.set_files(name)), "yellow")
        rows: list[dict[str, Any]] = []
        with progress_bar() as bar:
            folders, chosen = attempts_that_count(course, name, who, settings, make_executor)
            steps = grade_set(course, store, name, settings, make_executor, folders)
            watched = bar.track(steps, total=len(folders), description=f"grading {name}")
            # the gradebook's writer takes the results as they come, some hundred at a time
            written = write(course, _noted(watched, rows, problems))
        problems += written.problems
        graded += rows
        found = scores(course, name)
        for row in rows:
            one = found.get(row["student"], Standing())
            row |= {"late": one.when if one.late else "", "late_penalty": one.late_penalty or 0.0}
            row |= {"mark": one.total if row["status"] == GRADED else None, "marked": one.known, "excused": one.excused}
        if not as_json:
            _say_graded(name, rows)
            _say_all([*chosen, *written.remarks, *lateness(course, name, found)], "yellow")
    if not sets:
        for student, name in course.unknown_folders():
            err.print(f"{name!r} (handed in by {student!r}) is no set of this course; it was left out.")
    if as_json:
        click.echo(json.dumps(graded))
    elif not graded:
        err.print("Nothing has been handed in.")
    _end_with(problems)


def _noted(steps: Iterable[Step], rows: list[dict[str, Any]], problems: list[str]) -> Iterator[Result]:
    """The results of the steps; on the way their summaries and problems are noted."""
    as_they_are = ("student", "assignment", "status", "reason", "typed_id", "notes", "events", "sandbox")
    for step in steps:
        result = step.result
        rows.append({name: getattr(result, name) for name in as_they_are})
        rows[-1] |= {
            "score": result.auto_score if result.status == GRADED else None,
            "points": result.auto_points,
            "exercises": {e.grade_id: e.score for e in result.exercises},
            "misconceptions": [m.name for e in result.exercises for m in e.misconceptions],
            "seconds": result.timings.get("total"),
            "ran": step.ran,
        }
        problems += [step.problem] if step.problem else []
        yield result


def _say_graded(name: str, rows: list[dict[str, Any]]) -> None:
    fresh = sum(row["ran"] for row in rows)
    out.print(f"{name}: {plural(len(rows), 'submission')}, {fresh} run now")
    if len(rows) <= LONGEST_TABLE:
        table = Table("student", Column("score", justify="right"), "remarks")
        for row in sorted(rows, key=lambda r: r["student"]):
            if row["status"] == GRADED:
                other = "" if row["typed_id"] in (None, row["student"]) else f"typed the id {shown(row['typed_id'])!r}"
                said = "; ".join(filter(None, [row["late"], other, *row["events"]]))
                mark = "excused" if row["excused"] else f"{row['mark']:g} of {row['marked']:g}"
                table.add_row(row["student"], mark, said)
            else:
                table.add_row(row["student"], row["status"], row["reason"])
        out.print(table)


@cli.command()
@course_option
@sets_option
@student_option
@click.option(
    "--zip",
    "system",
    type=click.Choice(["canvas", "moodle"]),
    help="Also pack each set's pages into feedback/SET-canvas.zip or SET-moodle.zip, which that system takes back.",
)
def feedback(course: Course, sets: Names, students: Names, system: str | None) -> None:
    """Write one HTML page for each student and set, from the stored results."""
    from autograder.gradebook.reader import scores
    from autograder.grading.store import Store
    from autograder.html.feedback import write_all
    from autograder.html.sections import sections_of
    from autograder.lms.feedback_zip import pack

    problems: list[str] = []
    store = Store(course.results_folder)
    for name in chosen_sets(course, sets, store.assignments()):
        results = [r for r in store.all(name) if not students or r.student in students]
        with progress_bar() as bar:
            watched = bar.track(results, description=f"feedback for {name}")
            sections = sections_of(name, course.source_folder)
            written = write_all(watched, course.feedback_folder, scores(course, name), sections)
        problems += written.problems
        out.print(f"{name}: {plural(len(written.paths), 'page')} in {os.path.relpath(course.feedback_folder)}")
        if system:
            packed = pack(course, name, written.paths, system.title())
            problems += packed.problems
            if packed.path:
                out.print(f"{name}: {plural(packed.pages, 'page')} packed in {os.path.relpath(packed.path)}")
            _say_all(packed.remarks, "yellow")
    _end_with(problems)


@cli.command()
@course_option
@sets_option
def report(course: Course, sets: Names) -> None:
    """Write the instructor's report: one HTML page for each set, and one for the course."""
    from autograder.gradebook.reader import scores
    from autograder.grading.store import Store
    from autograder.html.report import write_all, write_records
    from autograder.html.similarity import code_of, near_identical
    from autograder.lms import records

    store = Store(course.results_folder)
    names = chosen_sets(course, sets, store.assignments())
    results = {name: list(store.all(name)) for name in names}
    marks = {name: scores(course, name) for name in names}
    away = os.path.relpath(course.feedback_folder, course.report_folder)
    title = course.dirs.course_id or course.root.name
    old = {name: store.before(name) for name in names}
    with progress_bar() as bar:
        alike = {
            name: near_identical(results[name], code_of(course.set_files(name).released))
            for name in bar.track(names, description="comparing code")
        }
    write_all(results, course.report_folder, title, old=old, alike=alike, marks=marks, feedback=away)
    out.print(f"report: {os.path.relpath(course.report_folder / 'index.html')}")
    if (listed := course.root / records.FILE).exists():
        page = write_records(records.read_records(listed), course.report_folder, title)
        out.print(f"records: {os.path.relpath(page)}, without a word about the class")


@cli.command()
@course_option
@sets_option
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "json", "canvas", "moodle"]),
    default="csv",
    help="canvas and moodle: what these systems import.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="A file (default: the terminal).")
@click.option("--template", type=FILE, help="A Canvas gradebook, or a Moodle grading worksheet, to be filled in.")
@click.option("--column", "columns", multiple=True, metavar="SET=TITLE", help="The template's column of a set.")
@click.option("--partial", is_flag=True, help="canvas, moodle: also scores with answers that nobody has marked yet.")
def export(
    course: Course, sets: Names, form: str, output: Path | None, template: Path | None, columns: Names, partial: bool
) -> None:
    """Write the gradebook's marks, with manual marks and late penalties (all sets by default)."""
    from autograder.files import write_atomically
    from autograder.gradebook.reader import lateness
    from autograder.lms import export as lms

    is_lms = form in ("canvas", "moodle")
    if template and not is_lms:
        raise AutograderError("--template needs --format canvas or moodle")
    named = dict(column.partition("=")[::2] for column in columns)
    for name in named:
        course.set_files(name)
    names = chosen_sets(course, sets, lms.with_marks(course))
    found = lms.marks(course, names)
    if not found:
        raise AutograderError("there are no marks to export: no student is known and nothing has been handed in")
    if not is_lms:
        sheet = lms.Sheet(lms.as_csv(found) if form == "csv" else lms.as_json(found))
    elif template:
        sheet = lms.fill(form.title(), template, found, partial, named)
    else:
        sheet = (lms.new_canvas if form == "canvas" else lms.new_moodle)(found, partial)
    if output:
        write_atomically(output, sheet.text.encode())
    else:
        click.echo(sheet.text, nl=False)
    _say_all([line for name in names for line in lateness(course, name)], "yellow")
    _say_all([*lms.unmarked(found, left_out=is_lms and not partial), *sheet.remarks], "yellow")
    _end_with(sheet.problems)


def _say_all(lines: list[str], style: str) -> None:
    for line in lines:
        err.print(line, style=style)


def _end_with(problems: list[str]) -> None:
    """Say what went wrong, a line each, and end with a non-zero exit code if anything did."""
    _say_all(problems, "red")
    if problems:
        sys.exit(1)


@cli.command()
@course_option
@sets_argument
@click.option("--seeds", default=200, help="Runs of the hidden checks with fresh inputs.")
@click.option("--quick", is_flag=True, help="Judge variants in this process instead of the sandbox.")
@click.option("--mutants/--no-mutants", default=True, help="Also judge the reference changed in one place each.")
@jobs_option
@json_option
def audit(course: Course, sets: Names, seeds: int, quick: bool, mutants: bool, jobs: int, as_json: bool) -> None:
    """Prove the tests: right variants pass, misconceptions are named, mutants are killed, nothing flakes."""
    from autograder.audit.audit import audit_set
    from autograder.audit.report import print_table

    names = chosen_sets(course, sets, course.set_names())
    reports = [audit_set(course, name, seeds, quick, jobs, mutants) for name in names]
    if as_json:
        click.echo(json.dumps([r.to_json() for r in reports]))
    else:
        print_table(reports)
    if not all(r.ok for r in reports):
        sys.exit(1)


@cli.command()
@folder_option()
@json_option
def doctor(course: Path, as_json: bool) -> None:
    """Say what works on this machine, and how to mend what does not."""
    from autograder.doctor import examine

    findings = examine(course)
    if as_json:
        click.echo(json.dumps([vars(f) for f in findings]))
    else:
        table = Table(show_header=False, box=None)
        for found in findings:
            mark = Text("ok", "green") if found.ok else Text("no", "bold red")
            table.add_row(mark, found.what, found.said + ("" if found.ok else f"\nto mend: {found.mend}"))
        out.print(table)
    if not all(f.ok for f in findings):
        sys.exit(1)
