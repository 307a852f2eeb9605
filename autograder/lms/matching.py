"""Whose is a file? From what its name says and the class list to a student, or to the reason why to none."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.lms.archives import Found
from autograder.lms.filenames import ANONYMOUS, BLIND, CANVAS, MOODLE, Owner, holds_download, made_id
from autograder.lms.roster import Person, Roster
from autograder.text import shown


@dataclass(frozen=True)
class Match:
    """Whose a file is; where it is nobody's, `person` is None and `why` says why.

    `made`: no roster knows the student, so that the id was made of the name.
    """

    person: Person | None = None
    why: str = ""
    made: bool = False


def match(found: Found, owner: Owner | None, roster: Roster) -> Match:
    """The student of a file, of whose name `owner` is what it says (None: it is not named as the others are)."""
    if owner is None:
        return Match(why="it is not named as the other files of this download are")
    if owner.doubt:
        return Match(why=owner.doubt)
    if not owner.system and holds_download(found):
        return Match(why="it lies in a download of Canvas or Moodle in the source; name that archive as a source")
    if owner.system == CANVAS:
        person, why = roster.canvas(owner.name, owner.user)
    elif owner.system == MOODLE:
        person, why = roster.moodle(owner.name, owner.user)
    else:
        person, why = roster.plain(owner.name)
    if person or why:
        return Match(person, why)
    if roster.complete:
        return Match(why=f"{shown(owner.name)!r} is not on the roster")
    if owner.alone and ".ipynb" not in found.parts[-1].lower():
        return Match(why="it is no notebook, and no student is called so")
    student = made_id(owner)
    if not student:
        return Match(why=f"no id can be made of {shown(owner.name)!r}")
    if owner.namesakes:
        return Match(why=f"several participants are called {shown(owner.name)!r}; name a roster with --roster")
    name = owner.name if owner.system == MOODLE and owner.name != BLIND else ""
    number = owner.user if owner.system == CANVAS and owner.name != ANONYMOUS else ""
    return Match(Person(student, name, canvas=number), made=True)
