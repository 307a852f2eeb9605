"""`collect`: from what learning systems hand out to `submitted/<student>/<set>/`, with a report about every file.

The steps: list the files of all sources (`archives`), find out whose they are (`filenames`, `roster`), make
attempts of them, put each attempt in its place (`attempts`). What cannot be matched or is refused never stops the rest.
"""

from __future__ import annotations

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from datetime import datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any

from autograder.course import EARLIER, Course, CourseError
from autograder.errors import AutograderError, said_by
from autograder.files import UNSAFE, write_atomically
from autograder.gradebook.decisions import decided, dropped, folder_of
from autograder.gradebook.reader import Standing, class_list, due_and_points, lateness, scores
from autograder.gradebook.writer import note_students
from autograder.lms.archives import DAMAGED, IGNORED, REFUSED, ArchiveLimits, Found, Sources
from autograder.lms.attempts import Attempt, Shelf
from autograder.lms.csv_files import csv_text
from autograder.lms.filenames import OF_TEST_STUDENT, Owner, match, owners
from autograder.lms.roster import CANVAS, MOODLE, Match, Person, Roster, folded, read_roster, usable_id
from autograder.text import plural, shown
from autograder.timestamps import NO_DATE, TIMESTAMP, moment_in, read_timestamp, stamp_of

TO_GRADE, KEPT, UNCHANGED = "to be graded", "kept", "unchanged"
UNMATCHED, FAILED = "unmatched", "failed"
BAD = (UNMATCHED, REFUSED, FAILED)
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
                files = plural(len(bad), "file was", "files were")
                reasons = "; ".join(f"{shown(row.file, 120)}: {row.why}" for row in bad[:3])
                more = f"; and {len(bad) - 3} more" if len(bad) > 3 else ""
                lines.append(f"{files} {'not matched' if action == UNMATCHED else action}: {reasons}{more}")
        return lines

    @property
    def unusual(self) -> list[Row]:
        """The rows that a person should look at."""
        return [row for row in self.rows if row.action in BAD or (row.why and row.action in (TO_GRADE, KEPT))]

    def to_json(self) -> dict[str, Any]:
        files = [asdict(row) for row in self.rows]
        return {"files": files, "remarks": self.remarks, "report": self.report and str(self.report)}


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
    own = (course.root / course.dirs.submitted_directory).resolve()
    for source in sources:
        place = source.resolve()
        if source.is_dir() and (place.is_relative_to(own) or own.is_relative_to(place)):
            raise CourseError(f"{source} holds the course's own folder {own.name}, which is filled from the sources")
    if roster_file:
        roster = read_roster(roster_file)
    else:
        rows = [*reversed(class_list(course)), *dropped(course.root).values()]
        known = [Person.of_gradebook(row) for row in rows]
        roster = Roster({folded(person.id): person for person in known if usable_id(person.id)}.values())
    return _Collection(course, name, roster, dry_run).run(sources, limits)


class _Collection:
    """One run of `collect`."""

    def __init__(self, course: Course, name: str, roster: Roster, dry: bool) -> None:
        self.course, self.name, self.roster, self.dry = course, name, roster, dry
        self.done = Collected()
        self.others = set(course.set_names()) - {name}
        self.folders = {folded(s): s for each in course.set_names() for s in course.submissions(each)}
        self.dropped = dropped(course.root)
        self.due = due_and_points(course, name)[0]
        self.spelled: dict[str, str] = {}
        self.people: dict[str, Person] = {}
        self.late: list[str] = []
        self.came: dict[str, datetime | None] = {}

    def run(self, sources: Sequence[Path], limits: ArchiveLimits | None) -> Collected:
        groups: dict[str, dict[int, list[_Item]]] = defaultdict(lambda: defaultdict(list))
        with closing(Sources(limits)) as opened:
            for number, source in enumerate(sources):
                for student, item in self._matched(source, opened.files(source)):
                    groups[student][number].append(item)
            placed = [student for student in sorted(groups) if self._put(student, list(groups[student].values()))]
        if self.late:
            self._say_late()
        if not self.dry:
            self._note_students(placed)
            self.done.report = self.course.report_folder / f"collected-{self.name}.csv"
            text = csv_text([column.name for column in fields(Row)], map(astuple, self.done.rows))
            write_atomically(self.done.report, text.encode())
        known, new = scores(self.course, self.name), Standing(due=self.due)
        decisions = decided(self.course.root, self.name)
        folders = self.course.submissions(self.name).items()
        times = {student: read_timestamp(folder_of(newest, decisions, student))[0] for student, newest in folders}
        come = {
            student: replace(known.get(student, new), timestamp=moment, late_penalty=None)
            for student, moment in {**times, **(self.came if self.dry else {})}.items()
        }
        self.done.remarks += lateness(self.course, self.name, come)
        return self.done

    def _matched(self, source: Path, files: list[Found]) -> Iterator[tuple[str, _Item]]:
        """The files of one source that are a student's, with the student; every file gets its row."""
        usable = []
        for found in files:
            row = Row(found.label, action=found.action, why=found.why)
            self.done.rows.append(row)
            if found.action != IGNORED and found.parts and ".." not in found.parts:
                usable.append((found, row))
        said = owners(source.name, [found for found, _ in usable], self.roster, self.name)
        for (found, row), owner in zip(usable, said, strict=True):
            whose = self._spelled(match(found, owner, self.roster))
            row.student = whose.person.id if whose.person else ""
            if row.action == REFUSED:
                continue
            if owner is None or whose.person is None:
                row.action, row.why = IGNORED if whose.why == OF_TEST_STUDENT else UNMATCHED, whose.why
            elif whose.person.id in self.dropped:
                row.action, row.why = IGNORED, "the student was dropped (`students drop --undo` takes it back)"
            elif not owner.system and len(owner.inside) > 1 and owner.inside[0] in self.others:
                row.action, row.why = IGNORED, f"it belongs to {owner.inside[0]}"
            else:
                row.why = "; ".join(text for text in (owner.remark, found.why) if text)
                self.people[row.student] = whose.person
                yield row.student, _Item(found, owner, row)

    def _spelled(self, whose: Match) -> Match:
        """The match with an id that was made spelled as the student's folder is; nobody's where two differ in case."""
        if not whose.person or not whose.made:
            return whose
        student = whose.person.id
        other = self.spelled.setdefault(folded(student), student)
        if other != student:
            return Match(why=f"{student!r} and {other!r} differ only in case; name a roster with --roster")
        return Match(replace(whose.person, id=self.folders.get(folded(student), student)))

    def _put(self, student: str, mine: list[list[_Item]]) -> bool:
        """All of one student's attempts, oldest first, each in its place. `mine`: the files of each source.

        False where they may be two students', so that nothing was taken.
        """
        items = [item for part in mine for item in part]
        placed: list[tuple[Attempt, list[Row], bool]] = []
        try:
            shelf = Shelf(self.course.step_folder("submitted", student, self.name), self.dry)
            doubt = self._doubt(student, [item.owner for item in items], shelf)
            if doubt:
                for item in items:
                    item.row.student, item.row.action, item.row.why = "", UNMATCHED, doubt
                return False
            attempts = [_attempt(batch) for part in mine for batch in _batches(part)]
            attempts = [(attempt, rows) for attempt, rows in attempts if attempt.files]
            self._date(student, [attempt for attempt, _ in attempts])
            for attempt, rows in attempts:
                placed.append((attempt, rows, shelf.add(attempt)))
        except (AutograderError, *DAMAGED) as error:
            for row in (item.row for item in items if not item.row.action):
                row.action, row.why = FAILED, f"it could not be put into {student}'s folder: {said_by(error)}"
        for attempt, rows, was_there in placed:
            is_newest = attempt.note is shelf.newest
            for row in rows:
                row.attempt = "newest" if is_newest else f"{EARLIER}/{attempt.note.place}"
                row.action = UNCHANGED if was_there else TO_GRADE if is_newest else KEPT
            if is_newest and attempt.late:
                self.late.append(student)
            if is_newest and (not was_there or (attempt.stamp and not attempt.late)):
                self.came[student] = moment_in(attempt.stamp)[0]
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
                who = f"two participants ({', '.join(several)}) may both be {student}"
                return f"{who}; name a roster with their numbers in {system} (--roster)"
        return ""

    def _date(self, student: str, attempts: list[Attempt]) -> None:
        """When the newest came, by the roster. Where a system only says "late", the least that makes nbgrader agree."""
        text = self.people[student].submitted
        try:
            moment = self.course.moment(text) if attempts and text not in ("", "-") else None
        except NO_DATE:
            moment = None
            remark = f"the roster's time of submission {shown(text, 40)!r} cannot be read; it was left out"
            if remark not in self.done.remarks:
                self.done.remarks.append(remark)
        if moment:
            attempts[-1].note.submitted, attempts[-1].stamp = moment.isoformat(), stamp_of(moment)
        for attempt in attempts:
            if attempt.late and self.due and not attempt.stamp:
                attempt.stamp = stamp_of(self.due + timedelta(seconds=1))

    def _say_late(self) -> None:
        what = "each counts as one second late unless timestamp.txt says more"
        if self.due is None:
            add = f"`nbgrader db assignment add {self.name} --duedate …`"
            what = f"the gradebook has no due date, so that there is no penalty; set one with {add} and collect again"
        who = f"{plural(len(self.late), 'submission')} as late ({shown(', '.join(self.late), 200)})"
        self.done.remarks.append(f"Canvas marks {who}, but not how late: {what}")

    def _note_students(self, placed: Iterable[str]) -> None:
        """Names and addresses go where nbgrader keeps them, so that formgrader and exports show them."""
        noted: dict[str, dict[str, str]] = {}
        for person in self.roster.people if self.roster.complete else [self.people[student] for student in placed]:
            first, last = person.first_and_last()
            details = {"first_name": first, "last_name": last, "email": person.email, "lms_user_id": person.canvas}
            if person.id not in self.dropped:
                noted[person.id] = details
        if noted:
            note_students(self.course, noted)


def _attempt(batch: list[_Item]) -> tuple[Attempt, list[Row]]:
    """Files that were handed in together, with their rows."""
    attempt, taken = Attempt(), _Names()
    levels = zip(*(item.owner.inside[:-1] for item in batch), strict=False)
    wrapped = len([*takewhile(lambda names: len(set(names)) == 1, levels)])  # folders that lie around all the files
    for found, owner in ((item.found, item.owner) for item in batch):
        name = taken.path(owner.inside[wrapped:])
        if name.casefold() == TIMESTAMP and not owner.system and not any(found.archives):
            # nbgrader's own, from an instructor's folder; a student may claim any time
            attempt.stamp = found.read()[:200].decode("utf-8", "replace").strip()
            continue
        attempt.files[taken.path((STUDENTS_TIMESTAMP,)) if name.casefold() == TIMESTAMP else name] = found
        attempt.late = attempt.late or owner.late
        attempt.note.canvas_file = max(attempt.note.canvas_file, owner.file)
        attempt.note.participant = f"{owner.system} {owner.user}" if owner.user else ""
    for item in batch if not attempt.files else ():
        item.row.action, item.row.why = IGNORED, "there is nothing but a timestamp"
    return attempt, [item.row for item in batch]


def _batches(files: list[_Item]) -> list[list[_Item]]:
    """Files that were handed in together, the oldest first.

    From a learning system all that it hands out for a student, except that of files with the same name the ones with
    lower numbers are earlier attempts. From folders, what lies in one folder or archive, or a lone file.
    """
    if files[0].owner.system:
        layers: dict[int, list[_Item]] = defaultdict(list)
        times: Counter[tuple[str, ...]] = Counter()
        for item in sorted(files, key=lambda i: -i.owner.file):
            name, layer = item.owner.inside, 0
            if item.owner.system == CANVAS and not any(item.found.archives):
                layer, times[name] = times[name], times[name] + 1
            layers[layer].append(item)
        return [layers[layer] for layer in sorted(layers, reverse=True)]
    groups: dict[str, list[_Item]] = defaultdict(list)
    for item in files:
        groups[item.owner.group].append(item)
    ordered = sorted(groups.values(), key=lambda g: (g[0].owner.order, max(item.found.modified for item in g)))
    work = [g for g in ordered if not g[0].owner.alone or ".ipynb" in g[0].owner.inside[0].lower()]
    beside = [item for g in ordered if g not in work for item in g]
    return [*work[:-1], (work[-1] if work else []) + beside]


class _Names:
    """Paths for the files of an attempt: safe, not taken in any case, and not deeper than grading looks (one folder).

    Their number is a student's: each costs the same, however many there are and however many are called the same.
    """

    def __init__(self) -> None:
        self.files: set[str] = set()
        self.folders: set[str] = set()
        self.alike: Counter[str] = Counter()

    def path(self, parts: tuple[str, ...]) -> str:
        parts = tuple(_clean(part) for part in parts[-2:])
        if parts[0].casefold() == EARLIER:
            parts = (f"{parts[0]}_", *parts[1:])
        path, last = "/".join(parts), parts[-1].casefold()
        while self._is_taken(path.casefold()):
            self.alike[last] += 1
            path = f"same-name-{self.alike[last] + 1}/{parts[-1]}"
        folded_path = path.casefold()
        self.files.add(folded_path)
        self.folders |= {folded_path.rpartition("/")[0]} - {""}
        return path

    def _is_taken(self, path: str) -> bool:
        return path in self.files or path in self.folders or path.partition("/")[0] in self.files


def _clean(part: str) -> str:
    part = UNSAFE.sub("_", unicodedata.normalize("NFC", part)).lstrip(".").strip() or "_"
    while len(part.encode()) > 200:  # the end of a name tells what kind of file it is
        part = part[1:].lstrip(". ")
    return part
