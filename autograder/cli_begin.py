"""The commands with which a course begins: `init`."""

from __future__ import annotations

from pathlib import Path

import click

from autograder.console import out


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> None:
    """Make a course in a new FOLDER: one small set, a page of a book, settings, and next steps in README.md."""
    from autograder.starter.begin import begin

    for path in begin(folder):
        out.print(str(path))
    out.print(f"next: cd {folder}, and read README.md there")
