"""Marks as Canvas's gradebook import and Moodle's grade import take them.

With a template (the file that the system exports) its lines are kept in their order and its columns are reduced to
those that say who is meant and those of the sets: marks of other work, which may have changed since, are not imported
again. Cells for which there is no final mark stay as they are in the template. Both systems look students up by their
own numbers and logins, so that names may be guarded against formulas.

Canvas (lib/gradebook_importer.rb): first Student (or LastName, FirstName), ID, SIS columns, Section, then the
assignments, `Title (12345)`; a line "Points Possible". Moodle: the grading worksheet of one assignment (Identifier …
Grade … Last modified (grade)), or any CSV, in which columns are chosen by hand on import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import CourseError
from autograder.lms.csv_files import Cell, Table, csv_text, listed_columns, plain_title, read_table
from autograder.lms.export import Mark, class_roster
from autograder.lms.roster import Person, Roster, folded
from autograder.text import shown

CANVAS_HEADER = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS = "    Points Possible"
MOODLE_HEADER = ("Full name", "ID number", "Email address")
MOODLE_WHO = (
    *("Identifier", "Full name", "First name", "Last name", "Surname", "Username", "ID number", "Email address"),
    *("Email", "Status", "Maximum Grade", "Grade can be changed"),
    *("Last modified (submission)", "Last modified (grade)"),
)
LOGIN_COLUMNS = ("SIS Login ID", "SIS User ID", "Integration ID", "Username", "ID number", "Email address", "Email")
NOT_MARKED = "not yet marked"


@dataclass
class Sheet:
    """The text of a file for a learning system; `remarks` and `problems` for the instructor."""

    text: str
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class _Marks:
    """Looks up the cells to write: a mark that is final, or with `partial` the points so far."""

    def __init__(self, found: Sequence[Mark], partial: bool) -> None:
        self.sets = list(dict.fromkeys(mark.assignment for mark in found))
        self.people = list(dict.fromkeys(mark.student for mark in found))
        self.partial = partial
        self._found = {(mark.student.id, mark.assignment): mark for mark in found}
        self.most = {mark.assignment: mark.max_score for mark in found}

    def cell(self, student: str, name: str) -> float | None:
        mark = self._found.get((student, name))
        return None if mark is None or (mark.needs_manual and not self.partial) else mark.score

    def waiting(self, student: str, name: str) -> bool:
        mark = self._found.get((student, name))
        return mark is not None and mark.needs_manual

    def scored(self) -> set[str]:
        """Students with any mark to write."""
        return {p.id for p in self.people if any(self.cell(p.id, name) is not None for name in self.sets)}


# --- without a template ----------------------------------------------------------------------------------------------


def new_canvas(found: Sequence[Mark], partial: bool) -> Sheet:
    """A file for Canvas's gradebook import. Canvas finds students by its number, or by the id as login or SIS id."""
    marks = _Marks(found, partial)
    rows: list[Sequence[Cell]] = [(POINTS, "", "", "", "", *(marks.most[name] for name in marks.sets))]
    for person in marks.people:
        first, last = person.first_and_last()
        name = f"{last}, {first}" if first and last else first or last or person.id
        cells = (marks.cell(person.id, name) for name in marks.sets)
        rows.append((name, person.canvas, person.id, person.id, "", *cells))
    return Sheet(csv_text((*CANVAS_HEADER, *marks.sets), rows))


def new_moodle(found: Sequence[Mark], partial: bool) -> Sheet:
    """A file for Moodle's grade import (Grades → Import → CSV file), with a column on answers still to be marked.

    Moodle takes an empty cell for a mark that is to be removed; students without any mark get no line.
    """
    marks = _Marks(found, partial)
    rows: list[Sequence[Cell]] = []
    gaps = 0
    for person in marks.people:
        cells = [marks.cell(person.id, name) for name in marks.sets]
        if all(cell is None for cell in cells):
            continue
        gaps += any(cell is None for cell in cells)
        waiting = [marks.waiting(person.id, name) for name in marks.sets]
        rows.append((" ".join(person.first_and_last()).strip(), person.id, person.email, *cells, *waiting))
    header = (*MOODLE_HEADER, *marks.sets, *(f"{name} {NOT_MARKED}" for name in marks.sets))
    sheet = Sheet(csv_text(header, rows))
    if gaps:
        sheet.remarks.append(
            f"{gaps} students have no mark in some sets, and Moodle takes an empty cell for a mark that is to be "
            "removed: export one set at a time (--assignment)"
        )
    return sheet


# --- with a template -------------------------------------------------------------------------------------------------


def fill_canvas(template: Path, found: Sequence[Mark], partial: bool, columns: Mapping[str, str]) -> Sheet:
    """Canvas's own gradebook file with the marks in it. Raises CourseError where it is none or a set has no column."""
    table = read_table(template)
    section = table.column("Section")
    number = table.column("ID")
    if section is None or number is None or table.column("Student", "LastName") is None:
        columns_are = listed_columns(table)
        raise CourseError(f"{template.name} is no gradebook of Canvas (Student, ID, …, Section): it has {columns_are}")
    marks = _Marks(found, partial)
    who = list(range(section + 1))
    places = {name: _column(template, table, name, who, columns) for name in marks.sets}
    sheet = _filled(table, marks, who, places, _Finder(class_roster(found), table, number), added=())
    for row in table.rows:
        if "Points Possible" in row[0]:
            for name, place in places.items():
                sheet.remarks += _other_points(name, marks.most[name], row[place], "Canvas")
    return sheet


def fill_moodle(template: Path, found: Sequence[Mark], partial: bool, columns: Mapping[str, str]) -> Sheet:
    """A grading worksheet, or another CSV file of Moodle's, with the marks in it. Raises CourseError."""
    table = read_table(template)
    marks = _Marks(found, partial)
    who = [n for n, title in enumerate(table.header) if plain_title(title) in map(plain_title, MOODLE_WHO)]
    if not who:
        raise CourseError(
            f"{template.name} has no column that says who is meant; its columns are {listed_columns(table)}"
        )
    grade = table.column("Grade")
    if grade is not None and table.column("Identifier") is not None:
        if len(marks.sets) != 1:
            raise CourseError(f"{template.name} is the worksheet of one assignment; name the set with --assignment")
        columns = {marks.sets[0]: table.header[grade], **columns}
    places = {name: _column(template, table, name, who, columns) for name in marks.sets}
    added = [f"{name} {NOT_MARKED}" for name in marks.sets]
    sheet = _filled(table, marks, who, places, _Finder(class_roster(found), table, None), added)
    most = table.column("Maximum Grade")
    if most is not None and table.rows:
        sheet.remarks += _other_points(marks.sets[0], marks.most[marks.sets[0]], table.rows[0][most], "Moodle")
    return sheet


def _column(template: Path, table: Table, name: str, who: list[int], columns: Mapping[str, str]) -> int:
    """The column of a set: the one named by the instructor, of the set's name, or the only one that begins with ps2."""
    titles = {n: title for n, title in enumerate(table.header) if n not in who}
    if name in columns:
        wanted = [n for n, title in titles.items() if title == columns[name].strip()]
    else:
        plain = {n: re.sub(r"\s*\([^()]*\)$", "", title).rpartition(": ")[2] for n, title in titles.items()}
        wanted = [n for n, title in plain.items() if plain_title(title) == plain_title(name)]
        short = re.match(r"[^\W\d_]+\d+", name)
        if not wanted and short:
            pattern = rf"(?i)(?<![^\W_]){short[0]}(?!\d)"
            wanted = [n for n, title in titles.items() if re.search(pattern, title)]
    if len(wanted) != 1:
        said = "has several columns" if wanted else "has no column"
        mend = f"name it with --column '{name}=TITLE'; its columns are {listed_columns(table)}"
        raise CourseError(f"{template.name} {said} for {name}; {mend}")
    return wanted[0]


class _Finder:
    """Finds the student of a template's line: by the system's number, by a login or address, or by the name."""

    def __init__(self, roster: Roster, table: Table, number: int | None) -> None:
        self.roster, self.number = roster, number
        self.identifier = table.column("Identifier")
        self.logins = [c for title in LOGIN_COLUMNS if (c := table.column(title)) is not None]
        self.name = table.column("Student", "Full name")
        self.parts = [table.column("First name", "FirstName"), table.column("Last name", "LastName", "Surname")]
        self._numbers = {p.canvas: p for p in roster.people if p.canvas}
        self._ids = {folded(key): p for p in roster.people for key in (p.email, p.id) if key}

    def person(self, row: list[str]) -> Person | None:
        if self.number is not None and row[self.number] in self._numbers:
            return self._numbers[row[self.number]]
        places = [*self.logins, *([self.identifier] if self.identifier is not None else [])]
        for place in places:
            if folded(row[place]) in self._ids:
                return self._ids[folded(row[place])]
        name = row[self.name] if self.name is not None else " ".join(row[c] for c in self.parts if c is not None)
        called = self.roster.called(name)
        return next(iter(called)) if len(called) == 1 else None


def _filled(
    table: Table, marks: _Marks, who: list[int], places: dict[str, int], finder: _Finder, added: Sequence[str]
) -> Sheet:
    """The template's lines with the marks; `added` are the titles of columns on answers still to be marked."""
    keep = sorted({*who, *places.values()})
    titles = {place: name for name, place in places.items()}
    rows: list[list[Cell]] = []
    seen: dict[str, int] = {}
    empty = 0
    for row in table.rows:
        person = finder.person(row)
        cells: list[Cell] = [row[place] for place in keep]
        if person is not None:
            seen[person.id] = seen.get(person.id, 0) + 1
            for n, place in enumerate(keep):
                mark = marks.cell(person.id, titles[place]) if place in titles else None
                cells[n] = cells[n] if mark is None else mark
                empty += place in titles and mark is None
        elif "Points Possible" not in row[0]:
            empty += bool("".join(row[c] for c in who))
        rows.append([*cells, *(marks.waiting(person.id, name) if person else "" for name in titles.values() if added)])
    sheet = Sheet(csv_text([*(table.header[place] for place in keep), *added], rows))
    missing = sorted(marks.scored() - seen.keys())
    if missing:
        sheet.problems.append(
            f"not in the template, so that their marks are not in the file: {shown(', '.join(missing), 300)}"
        )
    twice = sorted(student for student, count in seen.items() if count > 1)
    if twice:
        sheet.problems.append(f"several lines of the template are the same student: {shown(', '.join(twice), 300)}")
    if empty:
        sheet.remarks.append(f"{empty} cells of the template stay as they are: there is no final mark for them")
    return sheet


def _other_points(name: str, ours: float | None, theirs: str, system: str) -> list[str]:
    """A remark where the system counts another maximum: marks are points and are not converted."""
    try:
        differs = ours is not None and abs(float(theirs.replace(",", ".")) - ours) > 1e-6
    except ValueError:
        return []
    return [f"{name} has {ours:g} points, in {system} {theirs}; marks are not converted"] if differs else []
