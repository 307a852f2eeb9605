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

from autograder.course import CourseError
from autograder.files import is_safe_name
from autograder.lms.csv_files import listed_columns, read_table
from autograder.text import shown

ID = ("id", "student_id")
ELSE_ID = ("sis_login_id", "sis_user_id", "id_number", "username", "login", "email", "email_address")
COLUMNS = {
    "name": ("name", "full_name", "student", "student_name"),
    "first": ("first_name", "firstname", "given_name"),
    "last": ("last_name", "lastname", "surname", "family_name"),
    "email": ("email", "email_address", "mail"),
    "canvas": ("canvas_id", "canvas_user_id", "lms_user_id"),
    "moodle": ("moodle_id", "identifier", "participant", "participant_id"),
    "submitted": ("submitted", "submitted_at", "timestamp", "last_modified_submission"),
}
LOGINS = ("login", "login_id", "sis_login_id", "sis_user_id", "username", "id_number", "integration_id")
CANVAS, MOODLE = "Canvas", "Moodle"
SHORTEST = 3
"""Shortest id that is looked for inside a name: "1" stands in many."""


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
        orders = set()
        for text in (self.name, f"{self.first} {self.last}"):
            words = [w for w in re.split(r"[\s,]+", text) if w]
            orders |= {squashed("".join(words[i:] + words[:i])) for i in range(len(words))}
        return orders - {""}

    def first_and_last(self) -> tuple[str, str]:
        """First and last name; of a name in one piece the last word, or what stands before a comma, is the last."""
        if self.first or self.last:
            return self.first, self.last
        if "," in self.name:
            last, _, first = self.name.partition(",")
            return first.strip(), last.strip()
        first, _, last = self.name.rpartition(" ")
        return first.strip(), last


def squashed(text: str) -> str:
    """Letters and digits only, in small letters, composed."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", text).casefold())


def without_accents(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def folded(text: str) -> str:
    return unicodedata.normalize("NFC", text).casefold()


class Roster:
    """Looks students up. `complete`: whoever is not on it is not in the class.

    Each look-up returns the student, or None and why, where more than one comes into question.
    """

    def __init__(self, people: Iterable[Person], complete: bool = False) -> None:
        self.people = list(people)
        self.complete = complete
        self._found: dict[tuple[str, str], set[Person]] = defaultdict(set)
        for person in self.people:
            ids = {person.id, person.email, person.email.partition("@")[0], *person.logins}
            keys = {("id", folded(key)) for key in ids}
            keys |= {(CANVAS, person.canvas), (MOODLE, person.moodle)}
            for name in person.names():
                keys |= {("name", name), ("loose", without_accents(name))}
            for kind, key in keys:
                if key:
                    self._found[kind, key].add(person)

    def find(self, system: str, name: str, user: str) -> tuple[Person | None, str]:
        """The student whom a learning system calls and numbers so; without a system, whom the name says."""
        return {CANVAS: self.canvas, MOODLE: self.moodle}[system](name, user) if system else self.plain(name)

    def numbered(self, user: str, system: str = CANVAS) -> set[Person]:
        """Who has this number in the system."""
        return self._found.get((system, user), set())

    def canvas(self, name: str, user: str) -> tuple[Person | None, str]:
        """The student whom Canvas calls so."""
        found, why = self._both(self.numbered(user), name)
        if found and found.canvas and found.canvas != user:
            return None, f"{found.id} has another number in Canvas than {user}"
        return found, why

    def moodle(self, name: str, user: str) -> tuple[Person | None, str]:
        """The student whom Moodle calls so (the user name may stand before the name)."""
        numbered = self.numbered(user, MOODLE)
        found, why = self._both(numbered, name)
        login, _, rest = name.partition(" ")
        if found is None and not numbered and rest:
            known = self._found.get(("id", folded(login)), set()) & self.called(rest)
            if len(known) == 1:
                return known.pop(), ""
        return found, why

    def plain(self, key: str) -> tuple[Person | None, str]:
        """The student with this id, login, e-mail address or name, or whose id stands in the text."""
        if not key:
            return None, "its name does not say whose it is"
        known = self._found.get(("id", folded(key)), set())
        exact = {person for person in known if folded(person.id) == folded(key)}
        return _one(exact or known or self.called(key) or self._with_id_in(key), key)

    def _both(self, numbered: set[Person], name: str) -> tuple[Person | None, str]:
        called = self.called(name) if name else set()
        if len(numbered) == 1 and called and not numbered & called:
            return None, f"the number is {next(iter(numbered)).id}'s, but the name is another student's"
        return _one(numbered or called, name)

    def called(self, name: str) -> set[Person]:
        """Everybody of this name, in whatever order its parts stand."""
        name = squashed(name)
        return self._found.get(("name", name)) or self._found.get(("loose", without_accents(name))) or set()

    def _with_id_in(self, key: str) -> set[Person]:
        text = folded(key)
        return {
            person
            for person in self.people
            if len(person.id) >= SHORTEST
            and folded(person.id) in text
            and re.search(rf"(?<![^\W_]){re.escape(folded(person.id))}(?![^\W_])", text)
        }


def _one(people: set[Person], name: str) -> tuple[Person | None, str]:
    if len(people) > 1:
        ids = ", ".join(sorted(p.id for p in people)[:3])
        return None, f"{shown(name)!r} may be any of {ids}"
    return (next(iter(people)), "") if people else (None, "")


# --- reading ---------------------------------------------------------------------------------------------------------


def read_roster(path: Path) -> Roster:
    """Raises CourseError, with one line that says what is wrong in which line of the file."""
    table = read_table(path)
    places = {what: table.column(*names) for what, names in COLUMNS.items()}
    ids = [table.column(name) for name in ELSE_ID]
    own = table.column(*ID)
    if table.column("Section") is not None and own is not None and table.column("Student", "LastName") is not None:
        # Canvas's gradebook: its ID is Canvas's number of the student
        places["canvas"], own = own, table.column("sis_login_id", "sis_user_id", "id")
    columns = [c for c in (own, *ids, places["canvas"]) if c is not None]
    if not columns:
        raise CourseError(f"{path.name} has no column 'id'; its columns are {listed_columns(table)}")
    logins = [c for name in LOGINS if (c := table.column(name)) is not None]
    people: dict[str, Person] = {}
    for row, line in zip(table.rows, table.lines, strict=True):
        person = _person(row, places, columns, logins)
        if "Points Possible" in row[0] or (not row[0] and places["canvas"] is not None and not person.canvas):
            continue  # rows of Canvas's that are no students
        if not person.id:
            raise CourseError(f"{path.name}, line {line}: there is no id")
        if not usable_id(person.id):
            raise CourseError(f"{path.name}: the id {shown(person.id)!r} cannot be the name of a student's folder")
        other = people.setdefault(folded(person.id), person)
        if other is not person:
            raise CourseError(
                f"{path.name}: the ids {other.id!r} and {person.id!r} are the same, or differ only in case"
            )
    return Roster(people.values(), complete=True)


def usable_id(student: str) -> bool:
    """Whether an id can be a folder's name, and is no pattern to nbgrader, which looks for folders by patterns."""
    return is_safe_name(student) and not re.search(r"[*?\[\]{}]", student)


def _person(row: list[str], places: dict[str, int | None], ids: list[int], logins: list[int]) -> Person:
    values = {what: row[place] if place is not None else "" for what, place in places.items()}
    number = re.search(r"\d+$", values["moodle"])  # "Participant 123456"
    values["moodle"] = number[0] if number else values["moodle"]
    name = next((unicodedata.normalize("NFC", row[c]) for c in ids if row[c]), "")
    return Person(name, **values, logins=tuple(row[c] for c in logins if row[c]))
