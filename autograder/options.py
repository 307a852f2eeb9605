"""Arguments and options that several commands share."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from autograder.course import Course


def course_in(context: click.Context, option: click.Parameter, folder: Path) -> Course:
    """The course in a folder. Raises CourseError."""
    from autograder.course import Course

    return Course(folder)


def chosen_sets(course: Course, names: Names, default: list[str]) -> list[str]:
    """The sets named on the command line, or the default; an unknown name is an error."""
    for name in names:
        course.set_files(name)
    return list(names) or default


Names = tuple[str, ...]
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
folder_option = partial(click.option, "--course", type=FOLDER, default=".", help="The folder of nbgrader_config.py.")
course_option = folder_option(callback=course_in)
sets_argument = click.argument("sets", nargs=-1, metavar="[SET]...")
sets_option = click.option("--assignment", "-a", "sets", multiple=True, metavar="SET", help="A set; repeatable.")
student_option = click.option("--student", "-s", "students", multiple=True, metavar="ID", help="A student; repeatable.")
jobs_option = click.option("--jobs", "-j", default=os.cpu_count() or 1, help="Worker processes.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON for a script to read.")
