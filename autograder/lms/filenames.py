"""Whose file is it? What the names in a download say, and how they lead to a student of the class.

Canvas (lib/content_zipper.rb) hands out flat archives: `surnamefirstname_LATE_3143_207797_ps2-1.ipynb`, which is the
sortable name in small letters without punctuation, LATE where it was late, Canvas's number of the student, its number
of the file, and the file's name, with -1, -2 … added by Canvas when a name comes again. With anonymous grading
`anon_x1Y2z` stands for name and number. Moodle (mod/assign/classes/downloader.php) hands out a folder
`First Surname_123456_assignsubmission_file_/` (newer versions without the last underscore) for each participant, or, as
a preference, all of that before each file's name; the number is the participant's in this one assignment.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.files import UNSAFE
from autograder.lms.archives import Found
from autograder.lms.roster import ANONYMOUS, BLIND, CANVAS, MOODLE, TEST_STUDENT, Match, Person, Roster, squashed
from autograder.text import shown

OF_TEST_STUDENT = "it is the test student's, which is an instructor in Canvas's Student View"
ENDING = re.compile(r"(?i)(\.(ipynb|json|txt|zip))+$")

_CANVAS_FILE = r"_(?:(?P<file>\d+)_(?P<rest>.+)|(?P<typed>text|link)\.html)"
_CANVAS_ANONYMOUS = re.compile(r"(?P<late>LATE_)?(?P<name>anon)_(?P<user>[0-9A-Za-z]+)" + _CANVAS_FILE, re.DOTALL)
# What follows the name; the lookahead finds every place where it may begin.
_CANVAS_NUMBERS = re.compile(rf"(?=_(?P<late>LATE_)?(?P<user>\d+){_CANVAS_FILE}\Z)", re.DOTALL)
_MOODLE = r"(?P<name>.+?)(?:_(?P<user>\d+))?_assignsubmission_(?P<plugin>[a-z]+)"
_MOODLE_FOLDER = re.compile(_MOODLE + "_?", re.DOTALL)
_MOODLE_FILE = re.compile(_MOODLE + "_(?P<rest>.+)", re.DOTALL)
_COPY = re.compile(r"(?i)^\s*copy[ _-]*(\(\d+\)[ _-]*)?of[ _-]+|[ _-]*\(\d+\)$|[ _-]+copy[ _-]*\d*$")


@dataclass(frozen=True)
class Owner:
    """What a name says. `inside`: the path in the submission; `remark`: what kind of file it is, if a special one.

    `file` is Canvas's number of the file, which grows with time. In plain folders `system` is empty, the files of one
    `group` were handed in together, `order` is the number of a copy ("… (2).ipynb"), and `alone` says that the group is
    a single file. `doubt` says why no reading of the name can be trusted.
    """

    system: str
    name: str
    user: str = ""
    late: bool = False
    file: int = 0
    inside: tuple[str, ...] = ()
    remark: str = ""
    group: str = ""
    order: int = 0
    alone: bool = False
    doubt: str = ""


def match(found: Found, owner: Owner | None, roster: Roster) -> Match:
    """The student of a file, of whose name `owner` is what it says (None: it is not named as the others are)."""
    if owner is None:
        return Match(why="it is not named as the other files of this download are")
    if owner.doubt:
        return Match(why=owner.doubt)
    if not owner.system and holds_download(found):
        return Match(why="it lies in a download of Canvas or Moodle in the source; name that archive as a source")
    known = roster.find(owner.system, owner.name, owner.user)
    if known.person or known.why:
        return known
    if (owner.system, owner.name) == (CANVAS, TEST_STUDENT):
        return Match(why=OF_TEST_STUDENT)
    if roster.complete:
        return Match(why=f"{shown(owner.name)!r} is not on the roster")
    if owner.alone and ".ipynb" not in found.parts[-1].lower():
        return Match(why="it is no notebook, and no student is called so")
    student = made_id(owner)
    if not student:
        return Match(why=f"no id can be made of {shown(owner.name)!r}")
    name = owner.name if owner.system == MOODLE and owner.name != BLIND else ""
    number = owner.user if owner.system == CANVAS and owner.name != ANONYMOUS else ""
    return Match(Person(student, name, canvas=number), made=True)


def owners(source: str, files: Sequence[Found], roster: Roster, name: str) -> list[Owner | None]:
    """What the files' names say, for the set `name`: as a learning system names them, else as plain folders.

    None: the file is not named as the other files of this download are.
    """
    if not files:
        return []
    by_system = [settled(lms_owners(found), roster) for found in files]
    if not any(by_system):
        return [*plain_owners(source, files, roster, name)]
    return [owner and _with_clean_name(owner, name) for owner in by_system]


def lms_owners(found: Found) -> list[Owner]:
    """The owner by Canvas's or Moodle's way of naming, if the file is named so: every reading of Canvas's names.

    The outermost name counts: what a student calls the files in their own archive says nothing.
    """
    for place, part in enumerate(found.parts):
        inside = found.parts[place + 1 :]
        if inside and not found.archives[place]:
            if match := _MOODLE_FOLDER.fullmatch(part):
                return [_moodle(match, inside)]
            continue
        # the file itself, or the student's own archive
        if match := _MOODLE_FILE.fullmatch(part):
            return [_moodle(match, inside or (match["rest"],))]
        return _canvas(part, inside)
    return []


def _canvas(part: str, inside: tuple[str, ...]) -> list[Owner]:
    readings = [(match["name"], match)] if (match := _CANVAS_ANONYMOUS.fullmatch(part)) else []
    for match in _CANVAS_NUMBERS.finditer(part) if not readings else ():
        name = part[: match.start()]
        if re.fullmatch(r"\w+", name) and name == name.lower():  # so that LATE is no part of it
            readings.append((name, match))
    owners = []
    for name, match in readings:
        remark = "typed into Canvas, not a file" if match["typed"] else ""
        file = inside or (match["rest"] or f"{match['typed']}.html",)
        owners.append(Owner(CANVAS, name, match["user"], bool(match["late"]), int(match["file"] or 0), file, remark))
    return owners


def settled(readings: list[Owner], roster: Roster) -> Owner | None:
    """The reading of a name that the roster knows, else the first.

    A student can put numbers into a file's name, and underscores and numbers into their own: so as to hand in for
    somebody else. Where two readings lead to two students of the class, neither is taken; nor is a number whose name is
    not that student's, except the first one, where the class is known completely and without names.
    """
    if len(readings) < 2:
        return readings[0] if readings else None
    known = [reading for reading in readings if roster.numbered(reading.user)]
    if len({reading.user for reading in known}) > 1:
        return replace(readings[0], doubt="its name can be read as that of two students")
    for reading in known:
        people = roster.numbered(reading.user)
        by_number = roster.complete and reading is readings[0] and not any(p.names() for p in people)
        if not (by_number or people & roster.called(reading.name) or made_id(reading) in {p.id for p in people}):
            return replace(readings[0], doubt="it may be another student's; name a roster with --roster")
    return (known or readings)[0]


def _moodle(match: re.Match[str], inside: tuple[str, ...]) -> Owner:
    remark = "" if match["plugin"] == "file" else "typed into Moodle, not a file"
    return Owner(MOODLE, match["name"], match["user"] or "", inside=inside, remark=remark)


def holds_download(found: Found) -> bool:
    """Whether the file lies in an archive in the source that looks like a learning system's download."""
    if True not in found.archives:
        return False
    below = found.archives.index(True) + 1
    return bool(lms_owners(replace(found, parts=found.parts[below:], archives=found.archives[below:])))


def plain_owners(source: str, files: Sequence[Found], roster: Roster, name: str) -> list[Owner]:
    """The owners of files that no learning system named, for the set `name`.

    One level of names tells the students apart: that with the most students of the roster, else the first that is not
    the same for all files. Names below it, and in a student's own archive, say nothing about whose work it is.
    """
    rooted = [((source, *f.parts), (True, *f.archives)) for f in files]
    outermost = _level(rooted, roster, name)
    owners = []
    for path, archives in rooted:
        level = min(outermost, len(path) - 1)
        part, inside = path[level], path[level + 1 :]
        alone = not inside
        key, order = key_of(ENDING.sub("", part) if alone or archives[level] else part, name)
        if alone:
            ending = ENDING.search(part)
            inside = (name + ending[0] if ending else part,)
        elif len(inside) > 1 and inside[0] == name:  # nbgrader's own folders: student/set/file
            inside = inside[1:]
        owners.append(Owner("", key, inside=inside, group=part, order=order, alone=alone))
    return owners


def key_of(text: str, name: str) -> tuple[str, int]:
    """What is left of a file's or folder's name without the set's name and marks of copying; the copy's number."""
    order = 0
    while match := _COPY.search(text):
        order = max(order, *(int(n) for n in re.findall(r"\d+", match[0])), 0)
        text = text[: match.start()] + text[match.end() :]
    words = [re.escape(word) for word in re.split(r"[\W_]+", name) if word]
    text = re.sub(r"(?i)(?<![^\W_])" + r"[\W_]*".join(words) + r"(?![^\W_])", " ", text)
    if match := re.search(r"(?i)[\W_]+(?:attempt|version|try|v)[ _-]*(\d{1,6})$", text):
        order, text = int(match[1]), text[: match.start()]
    return text.strip(" _-.,;#()[]"), order


def _level(rooted: list[tuple[tuple[str, ...], tuple[bool, ...]]], roster: Roster, name: str) -> int:
    names: dict[int, set[str]] = defaultdict(set)
    for path, archives in rooted:
        for level, part in enumerate(path):
            names[level].add(part)
            if level and archives[level]:
                break  # what lies in a student's own archive was named by the student
    students: dict[int, int] = {}
    for level in sorted(names):
        keys = {key_of(ENDING.sub("", part), name)[0] for part in names[level]}
        students[level] = len({person.id for key in keys if (person := roster.plain(key).person)})
    named = students.pop(0)
    best = max(students, key=lambda level: students[level], default=0)  # of equal ones the outermost
    if students.get(best):
        return best
    return 0 if named else _first_difference([path for path, _ in rooted], name)


def _first_difference(paths: list[tuple[str, ...]], name: str) -> int:
    level = 1
    while all(len(p) > level + 2 for p in paths) and len({p[level] for p in paths}) == 1:
        level += 1
    keys = [key_of(ENDING.sub("", p[-1]), name)[0] for p in paths if ".ipynb" in p[-1].lower()]
    if keys and not any(keys) and all(len(p) == level + 1 for p in paths):
        return level - 1  # no notebook but the set's: the folder or archive is one student's
    if keys and all(keys) and all(len(p) == level + 2 for p in paths) and len({p[level] for p in paths}) == 1:
        return level + 1  # one folder with a file for each student
    return level


def made_id(owner: Owner) -> str:
    """An id for a student that is the same in every download, safe as a folder's name; empty where there is none."""
    text = f"{owner.name}-{owner.user}" if owner.system == CANVAS else owner.name
    text = f"{text} {owner.user}" if (owner.system, text) == (MOODLE, BLIND) else text
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"[*?\[\]{}:\"<>|]", "_", UNSAFE.sub("_", text)).strip(" ").lstrip(".").rstrip(". ")
    if len(text.encode()) > 120:
        text = f"{text.encode()[:100].decode(errors='ignore')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text if squashed(text) else ""


def _with_clean_name(owner: Owner, name: str) -> Owner:
    """Canvas calls a second upload ps2-1.ipynb; that is not the student's doing and is undone."""
    if owner.system == CANVAS and len(owner.inside) == 1:
        stem = ENDING.sub("", owner.inside[0])
        if re.sub(r"-\d{1,3}$", "", stem).casefold() == name.casefold():
            return replace(owner, inside=(f"{name}{owner.inside[0][len(stem) :]}",))
    return owner
