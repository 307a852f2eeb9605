"""Says what works on this machine and how to mend what does not."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import NullPool, create_engine, text
from sqlalchemy.exc import SQLAlchemyError

from autograder.course import Course, CourseError
from autograder.gradebook.database import said, shown_url
from autograder.gradebook.reader import due_and_points
from autograder.sandbox.launcher import BUBBLEWRAP, Limits, Sandbox, SandboxRefused, find_bwrap

PACKAGES = ("numpy", "matplotlib", "nbgrader", "ipython", "nbformat")
OPTIONAL = {"torch": "sets that import it need it", "jupyter-book": "building a book needs it"}
LOW_DISK_BYTES = 1024**3


@dataclass
class Finding:
    """One thing looked at: `mend` says what to do when it is not `ok`."""

    what: str
    ok: bool
    said: str
    mend: str = ""


def _package(name: str) -> Finding:
    try:
        return Finding(name, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        if name in OPTIONAL:
            return Finding(name, True, f"not installed; only {OPTIONAL[name]}")
        return Finding(name, False, "not installed", "run `make course`, or pip install -r requirements.txt")


def _sandbox() -> Finding:
    """Starts a real sandbox and runs a line in it."""
    with closing(Sandbox(BUBBLEWRAP)) as sandbox:
        try:
            begin = time.monotonic()
            sandbox.start(Limits()).end()
            warm = time.monotonic()
            student = sandbox.start(Limits())
            student.channel.send({"op": "run", "source": "1 + 1", "seconds": 10}, [], student.clock() + 20)
            student.channel.receive(student.clock() + 20)
            student.end()
        except SandboxRefused as refused:
            mend = (
                "allow unprivileged user namespaces (sysctl user.max_user_namespaces, "
                "kernel.apparmor_restrict_unprivileged_userns=0) or run as root outside a container"
            )
            return Finding("sandbox", False, str(refused), mend)
        each = (time.monotonic() - warm) * 1000
    return Finding("sandbox", True, f"works ({warm - begin:.1f} s to warm up, {each:.0f} ms for each submission)")


def _database(course: Course) -> Finding:
    try:
        with create_engine(course.db_url, poolclass=NullPool).connect() as connection:
            connection.execute(text("select 1"))
        return Finding("gradebook", True, f"{shown_url(course)} answers")
    except (SQLAlchemyError, ImportError) as error:
        mend = "check c.CourseDirectory.db_url in nbgrader_config.py"
        return Finding("gradebook", False, f"{shown_url(course)}: {said(error)}", mend)


def _zone(course: Course) -> Finding:
    named, now, here = course.config.Exchange.get("timezone"), datetime.now(course.zone), datetime.now().astimezone()
    clocks = f"c.Exchange.timezone is {named or 'not set'} ({now:%H:%M %Z}); this machine's clock says {here:%H:%M %Z}"
    ok = bool(named) or not any(due_and_points(course, name)[0] for name in course.set_names())
    return Finding(
        "time zone", ok, clocks, 'set it in nbgrader_config.py, such as c.Exchange.timezone = "Europe/Berlin"'
    )


def examine(folder: Path) -> list[Finding]:
    """All findings for this machine and a course folder."""
    version, bwrap, free = platform.python_version(), find_bwrap(), shutil.disk_usage(folder).free
    findings = [
        Finding("Python", sys.version_info >= (3, 11), version, "use Python 3.11 or newer, then `make course`"),
        *map(_package, [*PACKAGES, *OPTIONAL]),
        Finding("bubblewrap", bool(bwrap), bwrap or "not found", "apt-get install bubblewrap (Debian, Ubuntu)"),
        _sandbox(),
        Finding("disk", free > LOW_DISK_BYTES, f"{free / 1024**3:.1f} GB free", "free at least 1 GB for results"),
    ]
    try:
        course = Course(folder)
        names = course.set_names()
        findings.append(Finding("course", bool(names), f"{len(names)} sets", "put sets into source_solutions/"))
        findings.append(_database(course))
        findings += [_zone(course)] if findings[-1].ok else []
    except CourseError as error:
        mend = "mend nbgrader_config.py, or name a course folder with --course"
        findings.append(Finding("course", False, str(error), mend))
    return findings
