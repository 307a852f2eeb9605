"""`export`: marks out of nbgrader's gradebook, with manual marks, extra credit and late penalties.

A mark that is not there is empty and has a status; it is never zero. The plain formats hold all that is known; the
others are what Canvas's gradebook import and Moodle's grade import take.

With a template (the file that the system exports) its lines are kept in their order and its columns are reduced to
those that say who is meant and those of the sets: marks of other work, which may have changed since, are not imported
again. Cells for which there is no final mark stay as they are in the template. Both systems look students up by their
own numbers and logins, so that names may be guarded against formulas. Only Canvas takes an excuse: EX.

Canvas (lib/gradebook_importer.rb): first Student (or LastName, FirstName), ID, SIS columns, Section, then the
assignments, `Title (12345)`; a line "Points Possible". Moodle: the grading worksheet of one assignment (Identifier …
Grade … Last modified (grade)), or any CSV, in which columns are chosen by hand on import.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from autograder.course import Course, CourseError
from autograder.gradebook.reader import class_list, due_and_points, scores
from autograder.grading.store import Store
from autograder.lms.csv_files import Cell, Table, csv_text, plain_title, read_table
from autograder.lms.roster import CANVAS, MOODLE, POINTS, Person, Roster, canvas_columns, people_in
from autograder.results import EXCUSED, GRADED, NOT_SUBMITTED
from autograder.text import plural, shown

NOT_MARKED = "not yet marked"
CANVAS_EXCUSE = "EX"
CANVAS_HEADER = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
MOODLE_HEADER = ("Full name", "ID number", "Email address")
MOODLE_WHO = (
    *("Identifier", "Full name", "First name", "Last name", "Surname", "Username", "ID number", "Email address"),
    *("Email", "Status", "Maximum Grade", "Grade can be changed"),
    *("Last modified (submission)", "Last modified (grade)"),
)


class Mark(NamedTuple):
    """One student's mark for one set, after the late penalty. `score` is None where there is nothing to count yet.

    `needs_manual_grading`: somebody still has to mark an answer, so that the score is not the last word.
    """

    student: Person
    assignment: str
    score: float | None
    max_score: float | None
    late_penalty: float = 0.0
    needs_manual_grading: bool = False
    status: str = NOT_SUBMITTED
    reason: str = ""
    submitted: str = ""
    due: str = ""
    late_seconds: float = 0.0
    extension_seconds: float = 0.0

    def row(self) -> tuple[Cell, ...]:
        """The cells below `HEADER`."""
        return (self.student.id, self.student.full_name(), self.student.email, *self[1:])

    def final(self, partial: bool, excuse: str | None = None) -> float | str | None:
        """What a learning system gets: a score, with open answers only with `partial`, or its word for an `excuse`."""
        if self.status == EXCUSED:
            return excuse
        return self.score if partial or not self.needs_manual_grading else None


HEADER = ("id", "name", "email", "set", *Mark._fields[2:])


@dataclass
class Sheet:
    """The text of a file for a learning system; `remarks` and `problems` for the instructor."""

    text: str
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def marks(course: Course, names: Sequence[str]) -> list[Mark]:
    """A mark for every student and set, by set and student. Raises GradebookError, CourseError."""
    people = {row["id"]: Person.of_gradebook(row) for row in class_list(course)}
    found: list[Mark] = []
    store = Store(course.results_folder)
    for name in names:
        standings, (_, most), handed_in = scores(course, name), due_and_points(course, name), course.submissions(name)
        for student in sorted({*people, *standings, *handed_in}):
            person, result = people.get(student) or Person(student), store.get(name, student)
            standing = standings.get(student)
            if standing is None or not (result or standing.begun or standing.excused):
                status = "not graded yet" if result or student in handed_in else NOT_SUBMITTED
                reason = "it is not in the gradebook yet" if result else ""
                found.append(Mark(person, name, None, most, status=status, reason=reason))
                continue
            # nbgrader itself may have graded it: then there is no result of ours
            status, reason = (result.status, result.reason) if result else (GRADED, "")
            if standing.excused:
                status, reason = EXCUSED, ""
            total = standing.total if status == GRADED or not standing.needs_manual else None
            score = None if total is None else round(total, 4)
            penalty = round(standing.late_penalty or 0.0, 4)
            came, due = (course.clock(moment) if moment else "" for moment in (standing.timestamp, standing.due))
            said = standing.needs_manual, status, reason, came, due
            lateness = standing.late.total_seconds(), standing.extension.total_seconds()
            found.append(Mark(person, name, score, standing.max_score or most, penalty, *said, *lateness))
    return found


def with_marks(course: Course) -> list[str]:
    """The sets for which there is anything to export."""
    return [name for name in course.set_names() if course.submissions(name) or scores(course, name)]


def as_csv(found: Sequence[Mark]) -> str:
    return csv_text(HEADER, (mark.row() for mark in found))


def as_json(found: Sequence[Mark]) -> str:
    rows = [dict(zip(HEADER, mark.row(), strict=True)) for mark in found]
    return json.dumps(rows, ensure_ascii=False, indent=1) + "\n"


def unmarked(found: Sequence[Mark], left_out: bool) -> list[str]:
    """A line for each set with answers that nobody has marked; `left_out`: such scores are not in the export."""
    what = "their scores were left out (--partial takes them)" if left_out else "their scores are points so far"
    lines = []
    for name in _points(found):
        mine = [mark for mark in found if mark.assignment == name]
        waiting = [m.student.id for m in mine if m.needs_manual_grading and m.score is not None]
        without = [
            f"{m.student.id} ({m.status})" for m in mine if m.score is None and m.status not in (NOT_SUBMITTED, EXCUSED)
        ]
        for who, said in ((waiting, f"answers that nobody has marked; {what}"), (without, "no score")):
            if who:
                several = plural(len(who), "submission has", "submissions have")
                lines.append(f"{name}: {several} {said}: {shown(', '.join(who), 200)}")
    return lines


def _points(found: Sequence[Mark]) -> dict[str, float | None]:
    """The sets, in order, with the points that each can give."""
    return {mark.assignment: mark.max_score for mark in found}


def _by_student(found: Sequence[Mark]) -> dict[Person, dict[str, Mark]]:
    students: dict[Person, dict[str, Mark]] = {}
    for mark in found:
        students.setdefault(mark.student, {})[mark.assignment] = mark
    return students


def new_canvas(found: Sequence[Mark], partial: bool) -> Sheet:
    """A file for Canvas's gradebook import. Canvas finds students by its number, or by the id as login or SIS id."""
    points = _points(found)
    rows: list[Sequence[Cell]] = [(f"    {POINTS}", "", "", "", "", *points.values())]
    for person, mine in _by_student(found).items():
        first, last = person.first_and_last()
        name = f"{last}, {first}" if first and last else first or last or person.id
        cells = (mine[each].final(partial, CANVAS_EXCUSE) for each in points)
        rows.append((name, person.canvas, person.id, person.id, "", *cells))
    return Sheet(csv_text((*CANVAS_HEADER, *points), rows))


def new_moodle(found: Sequence[Mark], partial: bool) -> Sheet:
    """A file for Moodle's grade import (Grades → Import → CSV file), with a column on answers still to be marked.

    Moodle takes an empty cell for a mark that is to be removed; students without any mark get no line.
    """
    sets = list(_points(found))
    rows: list[Sequence[Cell]] = []
    gaps = 0
    for person, mine in _by_student(found).items():
        cells = [mine[name].final(partial) for name in sets]
        if any(cell is not None for cell in cells):
            gaps += None in cells
            waiting = (mine[name].needs_manual_grading for name in sets)
            rows.append((person.full_name(), person.id, person.email, *cells, *waiting))
    sheet = Sheet(csv_text((*MOODLE_HEADER, *sets, *(f"{name} {NOT_MARKED}" for name in sets)), rows))
    if gaps:
        sheet.remarks.append(
            f"{gaps} students have no mark in some sets, and Moodle takes an empty cell for a mark that is to be "
            "removed: export one set at a time (--assignment)"
        )
    return sheet


def fill(system: str, template: Path, found: Sequence[Mark], partial: bool, columns: Mapping[str, str]) -> Sheet:
    """The template with the marks in it, for Moodle with columns on answers still to be marked.

    `system`: CANVAS takes Canvas's gradebook, MOODLE a grading worksheet or another CSV file of Moodle's; `columns`:
    the titles of sets' columns. Raises CourseError where it is no such file, or has no column for a set.
    """
    table, sets = read_table(template), [*_points(found)]
    who, theirs, known = _canvas_layout(table) if system == CANVAS else _moodle_layout(table, sets)
    places = {name: _column(table, name, who, {**known, **columns}) for name in sets}
    if len({*places.values()}) < len(places):
        raise table.error("has one column for two sets; name each set's with --column 'SET=TITLE'")
    students = _by_student(found)
    excuse = CANVAS_EXCUSE if system == CANVAS else None
    final: dict[Person, dict[int, Cell]] = {
        person: {places[name]: cell for name, mark in mine.items() if (cell := mark.final(partial, excuse)) is not None}
        for person, mine in students.items()
    }
    added = sets if system == MOODLE else []
    keep = sorted({*who, *places.values()})
    lines = people_in(table)
    roster = Roster(students)
    meant = [line and roster.again(line) for line in lines]
    rows: list[list[Cell]] = []
    empty = 0
    for row, line, person in zip(table.rows, lines, meant, strict=True):
        scored = final[person] if person else {}
        waiting = [students[person][name].needs_manual_grading if person else "" for name in added]
        rows.append([*(scored.get(place, row[place]) for place in keep), *waiting])
        if line:
            empty += len(places) - len(scored)
    titles = (*(table.header[place] for place in keep), *(f"{name} {NOT_MARKED}" for name in added))
    sheet = Sheet(csv_text(titles, rows))
    lines_of = Counter(meant)
    missing = sorted(person.id for person, scored in final.items() if scored and person not in lines_of)
    twice = sorted(person.id for person, count in lines_of.items() if person and count > 1)
    for ids, what in (
        (missing, "not in the template, so that their marks are not in the file"),
        (twice, "several lines of the template are the same student"),
    ):
        if ids:
            sheet.problems.append(f"{what}: {shown(', '.join(ids), 300)}")
    if empty:
        sheet.remarks.append(f"{empty} cells of the template stay as they are: there is no final mark for them")
    for name, points in _points(found).items() if theirs else ():
        most = re.fullmatch(r"\d+([.,]\d+)?", theirs[places[name]])
        if most and points is not None and abs(float(most[0].replace(",", ".")) - points) > 1e-6:
            sheet.remarks.append(f"{name} has {points:g} points, in {system} {most[0]}; marks are not converted")
    return sheet


def _canvas_layout(table: Table) -> tuple[Sequence[int], Sequence[str], dict[str, str]]:
    """The columns that say who is meant, what the system takes for the most points in each column, known columns."""
    canvas = canvas_columns(table)
    if canvas is None:
        raise table.error("is no gradebook of Canvas (Student, ID, …, Section)")
    return range(canvas[1] + 1), next((row for row in table.rows if POINTS in row[0]), []), {}


def _moodle_layout(table: Table, sets: list[str]) -> tuple[Sequence[int], Sequence[str], dict[str, str]]:
    """The same of a file of Moodle's; in a grading worksheet the set's column is known."""
    who = [n for n, title in enumerate(table.header) if plain_title(title) in map(plain_title, MOODLE_WHO)]
    if not who:
        raise table.error("has no column that says who is meant")
    grade, most = table.column("Grade"), table.column("Maximum Grade")
    theirs = [table.rows[0][most]] * len(table.header) if most is not None and table.rows else []
    if grade is None or table.column("Identifier") is None:
        return who, theirs, {}
    if len(sets) != 1:
        raise CourseError(f"{table.name} is the worksheet of one assignment; name the set with --assignment")
    return who, theirs, {sets[0]: table.header[grade]}


def _column(table: Table, name: str, who: Sequence[int], columns: Mapping[str, str]) -> int:
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
        raise table.error(f"{said} for {name}; name it with --column '{name}=TITLE'")
    return wanted[0]
