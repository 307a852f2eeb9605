"""`collect`: from what learning systems hand out to `submitted/<student>/<set>/`, with a report about every file.

The steps: list the files of all sources (`archives`), find out whose they are (`filenames`, `roster`), make
attempts of them, put each attempt in its place (`attempts`). What cannot be matched or is refused never stops the rest.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import dateutil.parser
from dateutil.tz import gettz, tzlocal

from autograder.course import Course, CourseError
from autograder.errors import AutograderError
from autograder.files import UNSAFE, write_atomically
from autograder.gradebook.reader import class_list, due_date
from autograder.gradebook.writer import note_students
from autograder.lms.archives import DAMAGED, ArchiveLimits, Found, Sources
from autograder.lms.attempts import EARLIER, Attempt, Note, Shelf
from autograder.lms.csv_files import csv_text
from autograder.lms.filenames import Match, Owner, match, owners
from autograder.lms.roster import CANVAS, MOODLE, Person, Roster, folded, read_roster, usable_id
from autograder.text import shown
from autograder.timestamps import TIMESTAMP, stamp_of

TO_GRADE, KEPT, UNCHANGED = "to be graded", "kept", "unchanged"
IGNORED, UNMATCHED, REFUSED, FAILED = "ignored", "unmatched", "refused", "failed"
BAD = (UNMATCHED, REFUSED, FAILED)
LONGEST_NAME = 120
STUDENTS_TIMESTAMP = "timestamp-by-student.txt"


@dataclass
class Row:
    """What became of one file: `attempt` says where it lies below submitted/<student>/<set>/."""

    file: str
    student: str = ""
    attempt: str = ""
    action: str = ""
    why: str = ""


@dataclass
class Collected:
    """A row for every file; `remarks` for the instructor; `report`: the rows as a file (None after a dry run)."""

    rows: list[Row] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    report: Path | None = None

    @property
    def problems(self) -> list[str]:
        """One line for each kind of trouble; the rows tell the files."""
        lines = []
        for action in BAD:
            bad = [row for row in self.rows if row.action == action]
            if bad:
                files = f"{len(bad)} files were" if len(bad) > 1 else "1 file was"
                reasons = "; ".join(f"{shown(row.file, 120)}: {row.why}" for row in bad[:3])
                more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
                lines.append(f"{files} {'not matched' if action == UNMATCHED else action}: {reasons}{more}")
        return lines

    @property
    def counts(self) -> dict[str, int]:
        """How many files each action befell."""
        return dict(Counter(row.action for row in self.rows))

    @property
    def unusual(self) -> list[Row]:
        """The rows that a person should look at."""
        return [row for row in self.rows if row.action in BAD or (row.why and row.action in (TO_GRADE, KEPT))]

    def to_json(self) -> dict[str, Any]:
        report = str(self.report) if self.report else None
        return {"files": [asdict(row) for row in self.rows], "remarks": self.remarks, "report": report}


@dataclass
class _Item:
    """A student's file, what its name says, and its line in the report."""

    found: Found
    owner: Owner
    row: Row


def collect(
    course: Course,
    sources: Sequence[Path],
    name: str,
    roster_file: Path | None = None,
    dry_run: bool = False,
    limits: ArchiveLimits | None = None,
) -> Collected:
    """Fill the submitted folders of the set `name`. Raises CourseError where nothing can be collected at all."""
    course.set_files(name)
    course.submissions(name)  # says so where the folders are not arranged by student
    for source in sources:
        _check_source(course, source)
    roster = read_roster(roster_file) if roster_file else _known_class(course)
    return _Collection(course, name, roster, dry_run).run(sources, limits)


def _check_source(course: Course, source: Path) -> None:
    submitted = (course.root / course.dirs.submitted_directory).resolve()
    place = source.resolve()
    if source.is_dir() and (place.is_relative_to(submitted) or submitted.is_relative_to(place)):
        raise CourseError(f"{source} holds the course's own folder {submitted.name}, which is filled from the sources")


def _known_class(course: Course) -> Roster:
    """The students whom the gradebook knows, as far as their ids can be used."""
    people: dict[str, Person] = {}
    for row in class_list(course):
        person = Person.of_gradebook(row)
        if usable_id(person.id):
            people.setdefault(folded(person.id), person)
    return Roster(people.values())


class _Collection:
    """One run of `collect`."""

    def __init__(self, course: Course, name: str, roster: Roster, dry: bool) -> None:
        self.course, self.name, self.roster, self.dry = course, name, roster, dry
        self.done = Collected()
        self.sets = set(course.set_names())
        self.folders = {folded(s): s for other in sorted(self.sets) for s in course.submissions(other)}
        self.due = due_date(course, name)
        self.spelled: dict[str, str] = {}
        self.people: dict[str, Person] = {}
        self.late: list[str] = []

    def run(self, sources: Sequence[Path], limits: ArchiveLimits | None) -> Collected:
        groups: dict[str, dict[int, list[_Item]]] = defaultdict(lambda: defaultdict(list))
        with Sources(limits) as opened:
            for number, source in enumerate(sources):
                for student, item in self._matched(source, opened.files(source)):
                    groups[student][number].append(item)
            placed = [student for student in sorted(groups) if self._put(student, list(groups[student].values()))]
        self._say_late()
        if not self.dry:
            self._note_students(placed)
            self.done.report = write_report(self.course, self.name, self.done.rows)
        return self.done

    # --- whose is it? ------------------------------------------------------------------------------------------------

    def _matched(self, source: Path, files: list[Found]) -> list[tuple[str, _Item]]:
        """The files of one source that are a student's, with the student; every file gets its row."""
        usable = []
        for found in files:
            action = IGNORED if found.ignored else REFUSED if found.refused else ""
            row = Row(found.label, action=action, why=found.ignored or found.refused)
            self.done.rows.append(row)
            if not found.ignored and found.parts and ".." not in found.parts:
                usable.append((found, row))
        said = owners(source.name, [found for found, _ in usable], self.roster, self.name)
        matched = []
        for (found, row), owner in zip(usable, said, strict=True):
            whose = self._spelled(match(found, owner, self.roster))
            row.student = whose.person.id if whose.person else ""
            if row.action == REFUSED:
                continue
            if owner is None or whose.person is None:
                row.action, row.why = UNMATCHED, whose.why
            elif not owner.system and len(owner.inside) > 1 and owner.inside[0] in self.sets - {self.name}:
                row.action, row.why = IGNORED, f"it belongs to {owner.inside[0]}"
            else:
                row.why = "; ".join(text for text in (owner.remark, found.note) if text)
                self.people[row.student] = whose.person
                matched.append((row.student, _Item(found, owner, row)))
        return matched

    def _spelled(self, whose: Match) -> Match:
        """The match with an id that was made spelled as the student's folder is; nobody's where two differ in case."""
        if not whose.person or not whose.made:
            return whose
        student = whose.person.id
        other = self.spelled.setdefault(folded(student), student)
        if other != student:
            return Match(why=f"{student!r} and {other!r} differ only in case; name a roster with --roster")
        return replace(whose, person=replace(whose.person, id=self.folders.get(folded(student), student)))

    # --- attempts ----------------------------------------------------------------------------------------------------

    def _put(self, student: str, mine: list[list[_Item]]) -> bool:
        """All of one student's attempts, oldest first, each in its place. `mine`: the files of each source.

        False where they may be two students', so that nothing was taken.
        """
        folder = self.course.step_folder("submitted", student, self.name)
        placed: list[tuple[Attempt, list[Row], Note, bool]] = []
        try:
            shelf = Shelf(folder, self.dry)
            doubt = self._doubt(student, [item.owner for part in mine for item in part], shelf)
            if doubt:
                for row in (item.row for part in mine for item in part):
                    row.student, row.action, row.why = "", UNMATCHED, doubt
                return False
            attempts = list(self._attempts(mine))
            if attempts:
                attempts[-1][0].submitted = self._submitted(student)
            for attempt, rows in attempts:
                placed.append((attempt, rows, *shelf.add(attempt, self._stamp(attempt))))
        except (AutograderError, *DAMAGED) as error:
            said = getattr(error, "strerror", None) or str(error)
            for row in (item.row for part in mine for item in part if not item.row.action):
                row.action, row.why = FAILED, f"it could not be put into {student}'s folder: {said}"
        for attempt, rows, note, was_there in placed:
            is_newest = note is shelf.newest
            for row in rows:
                row.attempt = "newest" if is_newest else f"{EARLIER}/{note.place}"
                row.action = UNCHANGED if was_there else TO_GRADE if is_newest else KEPT
            if is_newest and attempt.late:
                self.late.append(student)
            if is_newest and not any(".ipynb" in name.lower() for name in attempt.files):
                self.done.remarks.append(f"{student}: there is no notebook in the newest attempt")
        return True

    def _doubt(self, student: str, owners: list[Owner], shelf: Shelf) -> str:
        """Why files are not taken for the student's: another participant of the system has been, or may be as well."""
        person = self.people[student]
        for system, ours in ((CANVAS, person.canvas), (MOODLE, person.moodle)):
            users = {owner.user for owner in owners if owner.system == system}
            several = sorted(users | shelf.participants(system))
            if users and users != {ours} and len(several) > 1:
                return (
                    f"two participants ({', '.join(several)}) may both be {student}; "
                    f"name a roster with their numbers in {system} (--roster)"
                )
        return ""

    def _attempts(self, mine: list[list[_Item]]) -> Iterator[tuple[Attempt, list[Row]]]:
        """A student's attempts with their rows, oldest first as far as the names tell."""
        for part in mine:
            for batch in _batches(part):
                attempt, rows = Attempt(), [item.row for item in batch]
                wrapped = _wrapped([item.owner.inside for item in batch])
                for found, owner in ((item.found, item.owner) for item in batch):
                    name = _path(owner.inside[wrapped:], attempt.files)
                    if name.casefold() == TIMESTAMP and not owner.system and not any(found.archives):
                        # nbgrader's own, from an instructor's folder; a student may claim any time
                        attempt.stamp = found.read()[:200].decode("utf-8", "replace").strip()
                        continue
                    attempt.files[STUDENTS_TIMESTAMP if name.casefold() == TIMESTAMP else name] = found
                    attempt.late = attempt.late or owner.late
                    attempt.canvas_file = max(attempt.canvas_file, owner.file)
                    attempt.participant = f"{owner.system} {owner.user}" if owner.user else ""
                if attempt.files:
                    yield attempt, rows
                else:
                    for row in rows:
                        row.action, row.why = IGNORED, "there is nothing but a timestamp"

    def _submitted(self, student: str) -> datetime | None:
        """When the roster says that the student's newest work came; a time without a zone is the course's."""
        text = self.people[student].submitted
        if not text or text == "-":
            return None
        try:
            moment: datetime = dateutil.parser.parse(text)
        except (ValueError, OverflowError, TypeError, ArithmeticError):
            remark = f"the roster's time of submission {shown(text, 40)!r} cannot be read; it was left out"
            if remark not in self.done.remarks:
                self.done.remarks.append(remark)
            return None
        zone = self.course.config.Exchange.timezone if "timezone" in self.course.config.Exchange else ""
        return moment if moment.tzinfo else moment.replace(tzinfo=gettz(zone) if zone else tzlocal())

    def _stamp(self, attempt: Attempt) -> str:
        """The text for timestamp.txt. Where a system only says "late", the least that makes nbgrader agree."""
        if attempt.submitted:
            return stamp_of(attempt.submitted)
        if attempt.late and self.due and not attempt.stamp:
            return stamp_of(self.due + timedelta(seconds=1))
        return attempt.stamp

    def _say_late(self) -> None:
        if not self.late:
            return
        several = len(self.late) > 1
        who = f"{len(self.late)} submissions are late" if several else "1 submission is late"
        listed = shown(", ".join(self.late), 200)
        if self.due:
            what = f"{'each' if several else 'it'} counts as one second late unless timestamp.txt says more"
        else:
            what = (
                f"the gradebook has no due date, so that there is no penalty: set one with `nbgrader db assignment add "
                f"{self.name} --duedate …` and collect again"
            )
        self.done.remarks.append(f"{who} by Canvas's mark, which does not tell how late; {what} ({listed})")

    def _note_students(self, groups: Iterable[str]) -> None:
        """Names and addresses go where nbgrader keeps them, so that formgrader and exports show them."""
        people = self.roster.people if self.roster.complete else [self.people[student] for student in groups]
        noted: dict[str, dict[str, str]] = {}
        for person in people:
            first, last = person.first_and_last()
            details = {"first_name": first, "last_name": last, "email": person.email, "lms_user_id": person.canvas}
            noted[person.id] = details
        if noted:
            note_students(self.course, noted)


def _batches(files: list[_Item]) -> list[list[_Item]]:
    """Files that were handed in together, the oldest first.

    From a learning system all that it hands out for a student, except that of files with the same name the ones with
    lower numbers are earlier attempts. From folders, what lies in one folder or archive, or a lone file.
    """
    if files[0].owner.system:
        layers: list[list[_Item]] = []
        times: Counter[tuple[str, ...]] = Counter()
        for item in sorted(files, key=lambda i: -i.owner.file):
            name, layer = item.owner.inside, 0
            if item.owner.system == CANVAS and not any(item.found.archives):
                layer, times[name] = times[name], times[name] + 1
            layers += [[] for _ in range(layer + 1 - len(layers))]
            layers[layer].append(item)
        return layers[::-1]
    groups: dict[str, list[_Item]] = defaultdict(list)
    for item in files:
        groups[item.owner.group].append(item)
    ordered = sorted(groups.values(), key=lambda g: (g[0].owner.order, max(item.found.modified for item in g)))
    work = [g for g in ordered if not g[0].owner.alone or ".ipynb" in g[0].owner.inside[0].lower()]
    beside = [item for g in ordered if g not in work for item in g]
    return [*work[:-1], (work[-1] if work else []) + beside]


def _wrapped(paths: list[tuple[str, ...]]) -> int:
    """How many folders lie around all the files."""
    depth = 0
    while all(len(p) > depth + 1 for p in paths) and len({p[depth] for p in paths}) == 1:
        depth += 1
    return depth


def _path(parts: tuple[str, ...], taken: dict[str, Found]) -> str:
    """A path for a file that is safe, not taken, and not deeper than grading looks (one folder)."""
    parts = tuple(_clean(part) for part in parts[-2:])
    if parts[0].casefold() == EARLIER:
        parts = (f"{parts[0]}_", *parts[1:])
    folders = {name.split("/")[0].casefold() for name in taken if "/" in name}
    files = {name.casefold() for name in taken}
    path, number = "/".join(parts), 1
    while (
        path.casefold() in files
        or path.casefold() in folders
        or ("/" in path and path.split("/")[0].casefold() in files)
    ):
        number += 1
        path = f"same-name-{number}/{parts[-1]}"
    return path


def _clean(part: str) -> str:
    part = UNSAFE.sub("_", unicodedata.normalize("NFC", part)).lstrip(".").strip() or "_"
    stem, dot, suffix = part.rpartition(".")
    if len(part) > LONGEST_NAME:
        part = f"{stem[: LONGEST_NAME - 12]}{dot}{suffix[:11]}" if stem else part[:LONGEST_NAME]
    while len(part.encode()) > 200:
        part = part[1:]
    return part


def write_report(course: Course, name: str, rows: Sequence[Row]) -> Path:
    """The rows as a CSV file for spreadsheets. Raises OSError."""
    path = course.report_folder / f"collected-{name}.csv"
    table = [(row.file, row.student, row.attempt, row.action, row.why) for row in rows]
    text = csv_text(("file", "student", "attempt", "action", "why"), table)
    write_atomically(path, text.encode())
    return path
