"""The commands `students extend | excuse | full-marks | attempts | drop`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import click

from autograder.console import out
from autograder.options import Names, course_option

if TYPE_CHECKING:
    from autograder.course import Course


@click.group()
def students() -> None:
    """Decide about students: more time, excuses, full marks, who left, which attempt counts."""


set_argument = click.argument("name", metavar="SET")
students_argument = click.argument("who", nargs=-1, required=True, metavar="STUDENT...")
undo_option = click.option("--undo", is_flag=True, help="Take it back.")
dry_option = click.option("--dry-run", is_flag=True, help="Only show what would change.")


@students.command()
@course_option
@set_argument
@students_argument
@click.option("--days", type=float, default=0.0)
@click.option("--hours", type=float, default=0.0)
@click.option("--until", default="", metavar="TIME", help="Such as '2027-03-01 18:00', in the course's zone.")
@undo_option
def extend(course: Course, name: str, who: Names, days: float, hours: float, until: str, undo: bool) -> None:
    """Give students more time for a set. It counts from the due date and replaces an earlier extension."""
    from autograder.gradebook.students import extend as extend_for

    _say_done(extend_for(course, name, who, timedelta(days=days, hours=hours), until, undo))


@students.command()
@course_option
@set_argument
@students_argument
@undo_option
def excuse(course: Course, name: str, who: Names, undo: bool) -> None:
    """Excuse students from a set: no mark, and no zero."""
    from autograder.gradebook.students import excuse as excuse_from

    _say_done(excuse_from(course, name, who, undo))


@students.command("full-marks")
@course_option
@set_argument
@click.argument("exercises", nargs=-1, required=True, metavar="EXERCISE...")
@undo_option
@dry_option
def full_marks(course: Course, name: str, exercises: Names, undo: bool, dry_run: bool) -> None:
    """Give everybody full marks for exercises, named as in the report. Who is graded later gets them too."""
    from autograder.gradebook.students import full_marks as give_full_marks

    _say_done(give_full_marks(course, name, exercises, undo, dry_run), dry_run)


@students.command()
@course_option
@set_argument
@click.argument("policy", type=click.Choice(["newest", "last-on-time", "best"]))
def attempts(course: Course, name: str, policy: str) -> None:
    """Say which of several attempts at a set counts.

    It holds from the next `grade` on; until something is said, it is the newest.
    'last-on-time' is the newest that came before the due date and extension, and the newest of all where none did.
    'best' grades every attempt and takes the most points, penalties counted; a person's marks do not decide.
    """
    from autograder.gradebook.counting import set_policy

    _say_done(set_policy(course, name, policy))


@students.command()
@course_option
@students_argument
@undo_option
@dry_option
def drop(course: Course, who: Names, undo: bool, dry_run: bool) -> None:
    """Take students who left out of the course.

    All that is known of them goes to dropped/STUDENT/, and comes back with --undo. Later downloads pass them over.
    """
    from autograder.gradebook.students import drop as drop_students

    _say_done(drop_students(course, who, undo, dry_run), dry_run)


def _say_done(lines: list[str], dry_run: bool = False) -> None:
    for line in [*lines, *["nothing was written (--dry-run)"] * dry_run]:
        out.print(line)
