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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from autograder.files import UNSAFE
from autograder.lms.archives import Found
from autograder.lms.roster import CANVAS, MOODLE, Person, Roster, squashed
from autograder.text import shown

PLAIN = ""
ANONYMOUS, BLIND = "anon", "Participant"
"""What Canvas and Moodle call those who are marked without their names."""
NOTEBOOK = re.compile(r"(?i)(\.(ipynb|json|txt))+$")

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

    `file` is Canvas's number of the file, which grows with time. In plain folders the files of one `group` were handed
    in together, `order` is the number of a copy ("… (2).ipynb"), and `alone` says that the group is a single file.
    `rivals` are other readings of the same name, `doubt` says why none can be trusted.
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
    rivals: tuple[Owner, ...] = ()
    doubt: str = ""


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
    person, why = roster.find(owner.system, owner.name, owner.user)
    if person or why:
        return Match(person, why)
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
    by_system = [settled(lms_owner(found), roster) for found in files]
    if not any(by_system):
        return [*plain_owners(source, files, roster, name)]
    return [owner and _with_clean_name(owner, name) for owner in by_system]


def lms_owner(found: Found) -> Owner | None:
    """The owner by Canvas's or Moodle's way of naming, if the file is named so.

    The outermost name counts: what a student calls the files in their own archive says nothing.
    """
    for place, part in enumerate(found.parts):
        inside = found.parts[place + 1 :]
        if inside and not found.archives[place]:
            if match := _MOODLE_FOLDER.fullmatch(part):
                return _moodle(match, inside)
            continue
        # the file itself, or the student's own archive
        if match := _MOODLE_FILE.fullmatch(part):
            return _moodle(match, inside or (match["rest"],))
        return _canvas(part, inside)
    return None


def _canvas(part: str, inside: tuple[str, ...]) -> Owner | None:
    readings = []
    if match := _CANVAS_ANONYMOUS.fullmatch(part):
        readings.append((match["name"], match))
    else:
        for match in _CANVAS_NUMBERS.finditer(part):
            name = part[: match.start()]
            if re.fullmatch(r"\w+", name) and name == name.lower():  # so that LATE is no part of it
                readings.append((name, match))
    owners = []
    for name, match in readings:
        remark = "typed into Canvas, not a file" if match["typed"] else ""
        file = inside or (match["rest"] or f"{match['typed']}.html",)
        owners.append(Owner(CANVAS, name, match["user"], bool(match["late"]), int(match["file"] or 0), file, remark))
    return replace(owners[0], rivals=tuple(owners[1:])) if owners else None


def settled(owner: Owner | None, roster: Roster) -> Owner | None:
    """The reading of Canvas's name that the roster knows.

    A student can put numbers into a file's name, and underscores and numbers into their own: so as to hand in for
    somebody else. Where two readings lead to two students of the class, neither is taken; nor is a number alone, while
    the class is not known completely.
    """
    if owner is None or not owner.rivals:
        return owner
    known = [o for o in (owner, *owner.rivals) if roster.numbered(o.user)]
    if len({o.user for o in known}) > 1:
        return replace(owner, doubt="its name can be read as that of two students")
    for reading in known if not roster.complete else ():
        people = roster.numbered(reading.user)
        if not (people & roster.called(reading.name) or made_id(reading) in {p.id for p in people}):
            return replace(owner, doubt="it may be another student's; name a roster with --roster")
    return replace(known[0], rivals=()) if known else owner


def _moodle(match: re.Match[str], inside: tuple[str, ...]) -> Owner:
    remark = "" if match["plugin"] == "file" else "typed into Moodle, not a file"
    return Owner(MOODLE, match["name"], match["user"] or "", inside=inside, remark=remark)


def holds_download(found: Found) -> bool:
    """Whether the file lies in an archive in the source that looks like a learning system's download."""
    for place, archive in enumerate(found.archives):
        if archive:
            rest = replace(found, parts=found.parts[place + 1 :], archives=found.archives[place + 1 :])
            return lms_owner(rest) is not None
    return False


# --- plain folders and archives --------------------------------------------------------------------------------------


def plain_owners(source: str, files: Sequence[Found], roster: Roster, name: str) -> list[Owner]:
    """The owners of files that no learning system named, for the set `name`.

    One level of names tells the students apart: that with the most students of the roster, else the first that is not
    the same for all files. Names below it, and in a student's own archive, say nothing about whose work it is.
    """
    rooted = [((source, *f.parts), (True, *f.archives)) for f in files]
    level = _level(rooted, roster, name)
    return [_plain_owner(path, archives, min(level, len(path) - 1), name) for path, archives in rooted]


def _plain_owner(path: tuple[str, ...], archives: tuple[bool, ...], level: int, name: str) -> Owner:
    part, inside = path[level], path[level + 1 :]
    if inside:
        if len(inside) > 1 and inside[0] == name:  # nbgrader's own folders: student/set/file
            inside = inside[1:]
        key, order = key_of(_unzipped(part) if archives[level] else part, name)
        return Owner(PLAIN, key, inside=inside, group=part, order=order)
    stem = NOTEBOOK.sub("", part)
    key, order = key_of(stem, name)
    file = f"{name}{part[len(stem) :]}" if stem != part else part
    return Owner(PLAIN, key, inside=(file,), group=part, order=order, alone=True)


def _unzipped(part: str) -> str:
    return re.sub(r"(?i)\.zip$", "", part)


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
    matched: Counter[int] = Counter()
    names: dict[int, set[str]] = {}
    for path, archives in rooted:
        for level, part in enumerate(path):
            names.setdefault(level, set()).add(part)
            if level and archives[level]:
                break  # what lies in a student's own archive was named by the student
    for level, parts in names.items():
        keys = {_key(part, name) for part in parts}
        matched[level] = len({person.id for key in keys if (person := roster.plain(key)[0])})
    named, matched[0] = matched[0], 0
    best = max(matched.values(), default=0)
    if best:
        return min(level for level, count in matched.items() if count == best)
    return 0 if named else _first_difference([path for path, _ in rooted], name)


def _key(part: str, name: str) -> str:
    return key_of(NOTEBOOK.sub("", _unzipped(part)), name)[0]


def _first_difference(paths: list[tuple[str, ...]], name: str) -> int:
    level = 1
    while all(len(p) > level + 2 for p in paths) and len({p[level] for p in paths}) == 1:
        level += 1
    keys = [_key(p[-1], name) for p in paths if ".ipynb" in p[-1].lower()]
    if keys and not any(keys) and all(len(p) == level + 1 for p in paths):
        return level - 1  # no notebook but the set's: the folder or archive is one student's
    if keys and all(keys) and all(len(p) == level + 2 for p in paths) and len({p[level] for p in paths}) == 1:
        return level + 1  # one folder with a file for each student
    return level


# --- ids for those whom no roster knows ------------------------------------------------------------------------------


def made_id(owner: Owner) -> str:
    """An id for a student that is the same in every download, safe as a folder's name; empty where there is none."""
    if owner.system == CANVAS:
        text = f"{owner.name}-{owner.user}"
    elif owner.system == MOODLE and owner.name == BLIND:
        text = f"{owner.name} {owner.user}"
    else:
        text = owner.name
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"[*?\[\]{}:\"<>|]", "_", UNSAFE.sub("_", text)).strip(" ").lstrip(".").rstrip(". ")
    if len(text.encode()) > 120:
        text = f"{text.encode()[:100].decode(errors='ignore')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text if squashed(text) else ""


def _with_clean_name(owner: Owner, name: str) -> Owner:
    """Canvas calls a second upload ps2-1.ipynb; that is not the student's doing and is undone."""
    if owner.system == CANVAS and len(owner.inside) == 1:
        stem = NOTEBOOK.sub("", owner.inside[0])
        if re.sub(r"-\d{1,3}$", "", stem).casefold() == name.casefold():
            return replace(owner, inside=(f"{name}{owner.inside[0][len(stem) :]}",))
    return owner
