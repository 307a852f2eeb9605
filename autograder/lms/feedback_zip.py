"""Feedback pages of a set as one archive that Canvas or Moodle takes back.

Both find the student by the numbers in a name and by nothing else in it. Moodle (mod/assign/feedback/file/
importziplib.php) wants `Anything_123456_assignsubmission_file_/page.html`, with the participant's number. Canvas
(`infer_comment_context_from_filename`) wants `anything_3143_207797_anything`, where the first two parts of digits alone
are the student and a file of their newest submission, and, with anonymous grading, `anon_x1Y2z_207797_anything`. It
passes over a name whose last part begins with "link". `collect` keeps the numbers: no name of a download is used.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import Course
from autograder.files import write_atomically
from autograder.lms.attempts import Shelf
from autograder.lms.roster import CANVAS, MOODLE
from autograder.text import shown


@dataclass
class Packed:
    """The archive, if any page went into it, and how many did; lines on students whose page did not."""

    path: Path | None = None
    pages: int = 0
    remarks: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def pack(course: Course, name: str, pages: Iterable[Path], system: str) -> Packed:
    """Write `feedback/<set>-<system>.zip` with the pages `<student>/<set>/<set>.html` of a set. Raises OSError."""
    packed, numbered, without = Packed(), defaultdict(list), []
    for page in pages:
        student = page.parent.parent.name
        number, file = Shelf(course.step_folder("submitted", student, name), dry=True).number(system)
        into = _name(system, student, number, file, page.name)
        if into:
            numbered[number].append((student, into, page))
        else:
            without.append(student)
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for number, theirs in numbered.items():
            if len(theirs) > 1:
                who = shown(", ".join(student for student, _, _ in theirs), 200)
                packed.problems.append(f"{name}: not in the zip: {who} (all have the number {number} in {system})")
                continue
            zipped.write(theirs[0][2], theirs[0][1])
            packed.pages += 1
    if packed.pages:
        packed.path = course.feedback_folder / f"{name}-{system.lower()}.zip"
        write_atomically(packed.path, archive.getvalue())
    if without:
        why = f"`collect` has noted no file of theirs from {system}; if there is one, collect the download again"
        lines = packed.remarks if packed.pages else packed.problems
        lines.append(f"{name}: not in the zip: {shown(', '.join(without), 300)} ({why})")
    return packed


def _name(system: str, student: str, number: str, file: int, page: str) -> str:
    """What the page is called in the archive; empty where the system would not know whose it is."""
    label = "id-" + re.sub(r"[\W_]+", "-", student)  # never digits alone, nor "anon"
    if system == MOODLE and re.fullmatch(r"[0-9]+", number):
        return f"{label}_{number}_assignsubmission_file_/{page}"
    if system == CANVAS and file and re.fullmatch(r"[0-9A-Za-z]+", number):
        anonymous = not number.isdecimal() or student == f"anon-{number}"  # as `filenames.made_id` has it
        return f"{'anon' if anonymous else label}_{number}_{file:d}_feedback.html"
    return ""
