"""The class list: leads from what learning systems call a student to the student's id.

A roster is a CSV file with a column `id` and any of `name`, `first_name`, `last_name`, `email`, `canvas_id`,
`moodle_id`, `login`, `submitted`. What Canvas and Moodle export can be used as it is: a Canvas gradebook (ids are the
logins) and a Moodle grading worksheet or participants list (ids are the ID numbers, which has to be a column of it).
Without a file, the students in nbgrader's gradebook are the class list.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from autograder.course import CourseError
from autograder.files import is_safe_name
from autograder.lms.csv_files import Table, plain_title, read_table
from autograder.text import shown

# Titles as `plain_title` leaves them.
ID = ("id", "studentid")
LOGINS = ("sisloginid", "sisuserid", "idnumber", "username", "login", "loginid", "integrationid")
ELSE_ID = ("sisloginid", "sisuserid", "idnumber", "username", "login", "email", "emailaddress")
COLUMNS = {
    "name": ("name", "fullname", "student", "studentname"),
    "first": ("firstname", "givenname"),
    "last": ("lastname", "surname", "familyname"),
    "email": ("email", "emailaddress", "mail"),
    "canvas": ("canvasid", "canvasuserid", "lmsuserid"),
    "moodle": ("moodleid", "identifier", "participant", "participantid"),
    "submitted": ("submitted", "submittedat", "timestamp", "lastmodifiedsubmission"),
}
CANVAS, MOODLE = "Canvas", "Moodle"
ANONYMOUS, BLIND = "anon", "Participant"
"""What Canvas and Moodle call those who are marked without their names."""
POINTS = "Points Possible"  # what a row of Canvas's gradebook is called that is no student
TEST_STUDENT = "studenttest"  # Canvas's "Student View": an instructor; its login is a digest
SHORTEST = 3  # shortest id that is looked for inside a name: "1" stands in many


class Match(NamedTuple):
    """Whose a file is; where it is nobody's, `person` is None and `why` says why, if anything is known.

    `made`: no roster knows the student, so that the id was made of the name.
    """

    person: Person | None = None
    why: str = ""
    made: bool = False


@dataclass(frozen=True)
class Person:
    """A student of the class. `canvas`, `moodle`: what these systems number the student; `submitted`: time as text."""

    id: str
    name: str = ""
    first: str = ""
    last: str = ""
    email: str = ""
    canvas: str = ""
    moodle: str = ""
    submitted: str = ""
    logins: tuple[str, ...] = ()

    @classmethod
    def of_gradebook(cls, row: dict[str, str]) -> Person:
        """The student of a row of `gradebook.class_list`."""
        return cls(row["id"], "", row["first_name"], row["last_name"], row["email"], row["lms_user_id"])

    def names(self) -> set[str]:
        """The name in every order of its parts, as learning systems write it."""
        texts = (self.name, f"{self.first} {self.last}")
        split = [re.findall(r"[^\s,]+", text) for text in texts]
        return {squashed("".join(words[i:] + words[:i])) for words in split for i in range(len(words))} - {""}

    def first_and_last(self) -> tuple[str, str]:
        """First and last name; of a name in one piece the last word, or what stands before a comma, is the last."""
        if self.first or self.last:
            return self.first, self.last
        last, comma, first = self.name.partition(",")
        if not comma:
            first, _, last = self.name.rpartition(" ")
        return first.strip(), last.strip()

    def full_name(self) -> str:
        return " ".join(self.first_and_last()).strip()


def squashed(text: str) -> str:
    """Letters and digits only, in small letters, composed."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", text).casefold())


def without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


class Roster:
    """Looks students up. `complete`: whoever is not on it is not in the class."""

    def __init__(self, people: Iterable[Person], complete: bool = False) -> None:
        self.people = list(people)
        self.complete = complete
        self._found: dict[tuple[str, str], set[Person]] = defaultdict(set)
        for person in self.people:
            ids = {person.id, person.email, person.email.partition("@")[0], *person.logins}
            keys = {("id", folded(key)) for key in ids} | {(CANVAS, person.canvas), (MOODLE, person.moodle)}
            keys |= {("exact", folded(key)) for key in (person.id, person.email)}
            for name in person.names():
                keys |= {("name", name), ("loose", without_accents(name))}
            for kind, key in keys:
                if key:
                    self._found[kind, key].add(person)

    def find(self, system: str, name: str, user: str) -> Match:
        """The student whom a learning system calls and numbers so; without a system, whom the name says."""
        if not system:
            return self.plain(name)
        numbered, called = self.numbered(user, system), self.called(name) if name else set()
        if len(numbered) == 1 and called and not numbered & called:
            return Match(why=f"the number is {next(iter(numbered)).id}'s, but the name is another student's")
        found = _one(numbered or called, name)
        if system == CANVAS and found.person and found.person.canvas not in ("", user):
            return Match(why=f"{found.person.id} has another number in Canvas than {user}")
        if system == MOODLE and found.person is None and not numbered:
            login, _, rest = name.partition(" ")  # the user name may stand before the name
            known = self._found.get(("id", folded(login)), set()) & self.called(rest)
            if len(known) == 1:
                return Match(known.pop())
        return found

    def numbered(self, user: str, system: str = CANVAS) -> set[Person]:
        """Who has this number in the system."""
        return self._found.get((system, user), set())

    def plain(self, key: str) -> Match:
        """The student with this id, login, e-mail address or name, or whose id stands in the text."""
        if not key:
            return Match(why="its name does not say whose it is")
        known = self._found.get(("id", folded(key)), set())
        exact = {person for person in known if folded(person.id) == folded(key)}
        return _one(exact or known or self.called(key) or self._with_id_in(key), key)

    def again(self, line: Person) -> Person | None:
        """Whom a line of a learning system's list means: by Canvas's number, a login or address, or else the name."""
        known = (*line.logins, line.email, f"{BLIND} {line.moodle}")
        keys = [(CANVAS, line.canvas), *(("exact", folded(key)) for key in known)]
        found = next((self._found[key] for key in keys if key in self._found), None)
        found = found or self.called(line.name or f"{line.first} {line.last}")
        return next(iter(found)) if len(found) == 1 else None

    def called(self, name: str) -> set[Person]:
        """Everybody of this name, in whatever order its parts stand."""
        name = squashed(name)
        return self._found.get(("name", name)) or self._found.get(("loose", without_accents(name))) or set()

    def _with_id_in(self, key: str) -> set[Person]:
        text = folded(key)
        there = [person for person in self.people if len(person.id) >= SHORTEST and folded(person.id) in text]
        return {p for p in there if re.search(rf"(?<![^\W_]){re.escape(folded(p.id))}(?![^\W_])", text)}


def _one(people: set[Person], name: str) -> Match:
    if len(people) > 1:
        ids = ", ".join(sorted(p.id for p in people)[:3])
        return Match(why=f"{shown(name)!r} may be any of {ids}")
    return Match(next(iter(people), None))


def read_roster(path: Path) -> Roster:
    """Raises CourseError, with one line that says what is wrong in which line of the file."""
    table = read_table(path)
    if table.column(*ID, *ELSE_ID, *COLUMNS["canvas"]) is None:
        raise table.error("has no column 'id'")
    people: dict[str, Person] = {}
    for person, line in zip(people_in(table), table.lines, strict=True):
        if person is None:
            continue
        if not person.id:
            raise CourseError(f"{path.name}, line {line}: there is no id")
        if not usable_id(person.id):
            raise CourseError(f"{path.name}: the id {shown(person.id)!r} cannot be the name of a student's folder")
        other = people.setdefault(folded(person.id), person)
        if other is not person:
            ids = f"{other.id!r} and {person.id!r}"
            raise CourseError(f"{path.name}: the ids {ids} are the same, or differ only in case")
    return Roster(people.values(), complete=True)


def people_in(table: Table) -> list[Person | None]:
    """Who each row of a list is; None for rows of Canvas's that are no students. An id is empty where none is given."""
    titles = [plain_title(title) for title in table.header]
    canvas = canvas_columns(table)
    people: list[Person | None] = []
    for row in table.rows:
        cells = dict(zip(reversed(titles), reversed(row), strict=True))  # of equal titles the first counts
        values = {what: next((cells[n] for n in names if cells.get(n)), "") for what, names in COLUMNS.items()}
        number = re.search(r"\d+$", values["moodle"])  # "Participant 123456"
        values["moodle"] = number[0] if number else values["moodle"]
        if canvas:
            values["canvas"] = row[canvas[0]]
        student = next((cells[n] for n in (*(() if canvas else ID), *ELSE_ID) if cells.get(n)), values["canvas"])
        logins = tuple(cells[title] for title in LOGINS if cells.get(title))
        called = squashed(values["name"] + values["last"] + values["first"])
        is_test = called == TEST_STUDENT and all(re.fullmatch("[0-9a-f]{40}", login) for login in logins)
        no_student = POINTS in row[0] or (canvas and (is_test or not any(row[: canvas[1] + 1])))
        people.append(None if no_student else Person(unicodedata.normalize("NFC", student), **values, logins=logins))
    return people


def canvas_columns(table: Table) -> tuple[int, int] | None:
    """Where a gradebook of Canvas has Canvas's number of the student and, the last on who is meant, the section."""
    number, section = table.column("ID"), table.column("Section")
    if number is None or section is None or table.column("Student", "LastName") is None:
        return None
    return number, section


def usable_id(student: str) -> bool:
    """Whether an id can name a folder, is no markup, and no pattern to nbgrader, which looks for folders by those."""
    return is_safe_name(student) and not re.search(r"[*?\[\]{}<>\"]", student)
