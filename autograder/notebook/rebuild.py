"""Rebuild the notebook to grade: the instructor's notebook with the student's text in its answer cells.

Order, given cells, tests, points and metadata come from the instructor's *source* notebook. From the submission
come the texts of the answer cells and the student's own extra cells, where they stood. Cells are recognised by
their nbgrader id, their cell id, their text, the names they bind, and at last by their neighbours, so that honest
work keeps its points whatever an editor, a learning system or a slip of the hand did to the file.

Four steps: `_split` takes given text out of the submission and leaves pieces of student's text; each piece claims
places, and the best claim to a place wins (`_claims`, `_settled`; `_place_by_neighbours` for what nobody claims);
`_assemble` puts the notebook together; `_bring_late_helpers` moves up what an answer needs but what stood behind its
test.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from nbformat import NotebookNode

from autograder.notebook.names import additions, bound_names, parse, used_names
from autograder.notebook.places import (
    ANSWERS,
    EXTRA,
    GIVEN,
    LOCKED,
    OPEN,
    SOLUTION,
    TEST,
    WRITTEN,
    Place,
    bare,
    cut,
    grade_id_of,
    lined,
    similar,
    without_fence,
)
from autograder.notebook.reader import AGAIN, Unreadable, few, new_cell
from autograder.text import shown

_LONG = 80  # characters; shorter texts are alike by chance ("## Exercise 2", "## Exercise 3")
# Why a piece may be the answer to a place: the id says so and it binds the place's name, or one of the two.
_BY_ID_AND_NAME, _BY_NAME, _BY_ID = range(3)


@dataclass
class RebuiltCell:
    """One cell of the notebook to grade.

    `source` is the student's text in solution, written, open and extra cells, the source notebook's own text in
    locked and test cells (with hidden tests: for the judge only). `released` is what students got in this cell,
    "" in extra cells. `answered`: a solution, written or open cell differs from what was released. `place` is
    the index of the cell in the source notebook, None for an extra cell.
    """

    kind: str
    cell_type: str
    source: str
    grade_id: str | None
    answered: bool
    cell_id: str
    released: str = ""
    place: int | None = None


@dataclass
class Rebuilt:
    """The cells in order; `notes` for the student name each mend; `events` are for the instructor."""

    cells: list[RebuiltCell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)


@dataclass(eq=False)
class _Piece:
    """A stretch of the submission: student's text, or the trace of a given or untouched cell (text "").

    `tag` is the answer place that its metadata name; `anchor` the place behind which the following extra cells
    stand.
    """

    text: str
    cell_type: str
    tag: int | None = None
    anchor: int | None = None
    names: Set[str] = frozenset()

    @property
    def free(self) -> bool:
        return bool(self.text) and self.anchor is None


_Homes = dict[int, list[_Piece]]
"""The pieces that answer each place. One piece may answer several places: cells that were merged."""


def rebuild(places: list[Place], submission: NotebookNode) -> Rebuilt:
    """The notebook to grade, from the cells of the instructor's notebook (`places_of`) and what was handed in.

    `submission` is what `reader.read_notebook` returns. Raises Unreadable where no answer or test cell of the
    set is found in it.
    """
    result = Rebuilt()
    tags = _tags(places, submission)
    _watch(places, submission, tags, result)
    pieces, given = _split(places, submission, tags, result)
    untouched = _mark_untouched(places, pieces)
    homes = _settled(_claims(places, pieces, untouched), pieces)
    _refuse_foreign(places, given | untouched | homes.keys())
    _place_by_neighbours(places, pieces, homes, untouched)
    known = given | untouched | homes.keys()
    _assemble(places, pieces, homes, result)
    _bring_late_helpers(places, result)
    _tell_missing(places, known, result)
    _tell_found(places, pieces, homes, any(tag is not None for tag in tags), result)
    result.notes[:], result.events[:] = few(result.notes), few(result.events)
    return result


def to_content(rebuilt: Rebuilt, source: NotebookNode) -> dict[str, Any]:
    """The notebook to show, as JSON: the student's text, and released text in given and test cells.

    It shares the source's metadata: to be written out, not to be changed.
    """
    cells = []
    for cell in rebuilt.cells:
        text = cell.released if cell.kind in GIVEN else cell.source
        metadata = {} if cell.place is None else source.cells[cell.place].metadata
        cells.append(new_cell(cell.cell_type, text, cell.cell_id, metadata))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": source.metadata, "cells": cells}


# --- step 1: pieces -----------------------------------------------------------------------------------------


def _names_in(text: str, cell_type: str) -> Set[str]:
    if cell_type == "code":
        return bound_names(text)
    code = without_fence(text)
    return bound_names(code) if parse(code) is not None else frozenset()


def _names_of(places: Iterable[Place]) -> set[str]:
    return set().union(*(p.names for p in places))


def _tags(places: list[Place], submission: NotebookNode) -> list[int | None]:
    """For each submitted cell the place that its nbgrader id, or else its cell id, names."""
    by_grade_id = {p.grade_id: p.index for p in places if p.grade_id}
    by_cell_id = {p.cell_id: p.index for p in places}
    return [by_grade_id.get(grade_id_of(cell), by_cell_id.get(cell.id)) for cell in submission.cells]


def _watch(places: list[Place], submission: NotebookNode, tags: list[int | None], result: Rebuilt) -> None:
    """Tags, types and ids that were changed: all without effect, but the instructor may want to know."""
    used: Counter[int] = Counter()
    tagged: dict[str, list[str]] = {}
    for cell, tag in zip(submission.cells, tags, strict=True):
        place = None if tag is None else places[tag]
        where = f"the {place.kind} cell '{place.label}'" if place else "a cell of the student's own"
        for name in cell.metadata.get("tags", []):
            tagged.setdefault(shown(name), []).append(where)
        if place is None:
            continue
        used[place.index] += place.grade_id == grade_id_of(cell) is not None
        if cell.cell_type != place.cell_type:
            result.events.append(f"{where} was turned into {cell.cell_type}")
            result.notes.append(
                f"The cell '{place.label}' was turned into {cell.cell_type}; it is {place.cell_type} again."
            )
    for name, cells in tagged.items():
        more = f" and {len(cells) - 1} more" if len(cells) > 1 else ""
        result.events.append(f"tag '{name}' on {cells[0]}{more}")
    result.events += [f"grade_id '{places[i].label}' used {n} times" for i, n in sorted(used.items()) if n > 1]


def _split(
    places: list[Place], submission: NotebookNode, tags: list[int | None], result: Rebuilt
) -> tuple[list[_Piece], set[int]]:
    """Pieces of the submission in order, and the given places that were found."""
    pieces: list[_Piece] = []
    found: set[int] = set()
    answer_names = _names_of(places)
    all_given = [p for p in places if p.kind in GIVEN]
    for cell, tag in zip(submission.cells, tags, strict=True):
        text, cell_type = cell.source, cell.cell_type
        names = _names_in(text, cell_type)
        given = _given_place(all_given, text, tag, names & answer_names, found)
        if given is not None:
            text, cell_type, tag = _students_part(given, text), given.cell_type, None
            if given.bare != bare(cell.source):
                kept = " What you added was kept in a cell of its own." if text.strip() else ""
                what = "test" if given.kind == TEST else "given"
                result.notes.append(f"The {what} cell '{given.label}' was changed; the original was used.{kept}")
                result.events.append(f"the {given.kind} cell '{given.label}' was changed")
        text, stood_for = _cut_given(all_given, text)
        if given is not None:
            stood_for.append(given)
        found |= {p.index for p in stood_for}
        own = _Piece(text, cell_type, tag)
        if text.strip():
            own.names = names if text == cell.source else _names_in(text, cell_type)
        else:
            own.text, own.anchor = "", tag
        pieces += [_Piece("", p.cell_type, anchor=p.index) for p in stood_for if p.kind == LOCKED]
        pieces.append(own)
        pieces += [_Piece("", p.cell_type, anchor=p.index) for p in stood_for if p.kind == TEST]
    return pieces, found


def _given_place(given: list[Place], text: str, tag: int | None, answers: Set[str], found: set[int]) -> Place | None:
    """The one of the `given` cells that this cell is or was, if any; `answers` are names of exercises it binds."""
    tagged = next((p for p in given if p.index == tag), None)
    plain = bare(text)
    equal = [p for p in given if p.bare == plain] if plain else []
    if equal:
        return tagged if tagged in equal else min(equal, key=lambda p: p.index in found)
    if tag is not None or answers:
        return tagged
    return next((p for p in given if len(p.bare) >= _LONG and similar(plain, p.bare)), None)


def _students_part(given: Place, text: str) -> str:
    """What a student wrote into a given cell and what must not be lost, e.g. an import."""
    if given.bare == bare(text):
        return ""
    rest = cut(text, given.block)
    if rest is None and given.cell_type == "code":
        rest = additions(text, given.released)
    if rest is not None:
        return rest
    return "" if similar(bare(text), given.bare) else text


def _cut_given(given: list[Place], text: str) -> tuple[str, list[Place]]:
    """The text without given cells of two lines or more that were merged into it, and these cells."""
    lines, merged = lined(text), []
    for place in given:
        if "\n" in place.bare and place.block in lines:
            lines = lines.replace(place.block, "\n", 1)
            merged.append(place)
    return (lines.strip("\n"), merged) if merged else (text, [])


# --- step 2: claims to places -------------------------------------------------------------------------------


def _mark_untouched(places: list[Place], pieces: list[_Piece]) -> set[int]:
    """Take out answer cells that nobody touched; returns the places that stand so in the submission."""
    stubs: dict[str, list[int]] = {}
    for place in places:
        if place.kind in ANSWERS:
            stubs.setdefault(place.bare, []).append(place.index)
    given = {p.index for p in places if p.kind in GIVEN}
    untouched = {p.anchor for p in pieces if not p.text and p.anchor is not None} - given
    for piece in pieces:
        alike = stubs.get(bare(piece.text), []) if piece.text else []
        if piece.tag in alike or len(alike) == 1:
            piece.anchor = piece.tag if piece.tag in alike else alike[0]
            piece.text = ""
            untouched.add(piece.anchor)
        elif alike and piece.cell_type == "code":
            piece.text = ""  # one of several equal stubs: nothing to keep
    return untouched


def _claims(places: list[Place], pieces: list[_Piece], untouched: set[int]) -> Iterator[tuple[int, int, int]]:
    """(why, place, number of the piece) for each answer that a piece may be; the less, the better."""
    answers = [p for p in places if p.kind in ANSWERS]
    exercises = _names_of(p for p in places if p.kind != OPEN)
    standing = {p.tag for p in pieces} | untouched
    for number, piece in enumerate(pieces):
        for place in answers if piece.free else ():
            if piece.tag == place.index:
                yield _BY_ID_AND_NAME if piece.names & place.names else _BY_ID, place.index, number
            elif piece.names & place.names and _may_answer(piece, place, places, standing, exercises):
                yield _BY_NAME, place.index, number


def _may_answer(
    piece: _Piece, place: Place, places: list[Place], standing: Set[int | None], exercises: set[str]
) -> bool:
    """Whether a piece that binds the place's name, but has not its id, is its answer."""
    if cut(piece.text, place.block) is not None:
        return False  # it only carries the untouched stub along
    if place.kind == OPEN:
        return piece.tag is None and not piece.names & exercises
    if piece.tag is None:
        return True
    own = places[piece.tag]
    if own.kind == WRITTEN and own.cell_type != "code":
        return False
    if own.names and not own.names & piece.names:
        return True  # a copied cell that was rewritten for this exercise: its id is wrong
    return place.index not in standing  # merged into its neighbour


def _settled(claims: Iterable[tuple[int, int, int]], pieces: list[_Piece]) -> _Homes:
    """Each place goes to its best claim. By its id alone a piece gets a place only where it has no other."""
    homes: _Homes = {}
    taken: set[int] = set()
    for why, index, number in sorted(claims):
        if index not in homes and not (why == _BY_ID and number in taken):
            homes[index] = [pieces[number]]
            taken.add(number)
    return homes


def _refuse_foreign(places: list[Place], known: set[int]) -> None:
    """Another set may share the cell with the imports, but no exercise and not most of the given text."""
    exercises = {p.index for p in places if p.kind in (SOLUTION, WRITTEN, TEST)}
    given = {p.index for p in places if p.kind == LOCKED}
    if exercises and known.isdisjoint(exercises) and (not given or 2 * len(given & known) < len(given)):
        raise Unreadable(
            "The notebook contains no exercise of this problem set: it is probably a different file. "
            f"Open the notebook of this set. {AGAIN}"
        )


# --- step 3: what nobody claimed ----------------------------------------------------------------------------


def _place_by_neighbours(places: list[Place], pieces: list[_Piece], homes: _Homes, untouched: set[int]) -> None:
    """Give each answer cell that is still empty the unclaimed text between its recognised neighbours."""
    order = _anchors_in_order(pieces, homes)
    names = _names_of(places)
    groups: dict[tuple[str, int, int], list[Place]] = {}
    for place in places if order else ():
        if place.kind not in (SOLUTION, WRITTEN) or place.index in homes:
            continue
        if place.kind == SOLUTION and place.names and place.index in untouched:
            continue  # its stub stands there: code beside it is not the answer
        before = max((n for i, n in order.items() if i < place.index), default=-1)
        after = min((n for i, n in order.items() if i > place.index), default=len(pieces))
        groups.setdefault((place.cell_type, before, after), []).append(place)
    for (cell_type, before, after), group in groups.items():
        between = [
            p
            for p in pieces[before + 1 : after]
            if p.free
            and p.tag is None
            and not p.names & names
            # prose may stand in a code cell
            and (p.cell_type == cell_type or (cell_type != "code" and parse(p.text) is None))
        ]
        if len(between) != len(group):
            stubs = {place.bare for place in group}
            between = [p for p in between if bare(p.text) not in stubs]
        for number, piece in enumerate(between):
            if number < len(group):
                homes[group[number].index] = [piece]
            elif cell_type != "code":  # prose in several cells
                homes[group[-1].index].append(piece)
    for index in list(homes):
        if all(bare(p.text) == places[index].bare for p in homes[index]):
            untouched.add(index)
            homes.pop(index)[0].anchor = index


def _anchors_in_order(pieces: list[_Piece], homes: _Homes) -> dict[int, int]:
    """Recognised places → number of their piece, without those that were moved (longest increasing chain)."""
    number = {p: n for n, p in enumerate(pieces)}
    where: dict[int, int] = {}
    for n, piece in enumerate(pieces):
        if piece.anchor is not None:
            where.setdefault(piece.anchor, n)
    where.update({index: number[home[0]] for index, home in homes.items()})
    best: list[list[tuple[int, int]]] = []  # best[k]: the chain of length k + 1 that ends earliest
    for index, n in sorted(where.items()):
        k = bisect_left([chain[-1][1] for chain in best], n)
        best[k : k + 1] = [[*(best[k - 1] if k else []), (index, n)]]
    return dict(best[-1]) if best else {}


# --- step 4: the notebook -----------------------------------------------------------------------------------


def _answers(homes: _Homes) -> dict[_Piece, list[int]]:
    """The places that each piece answers, in order."""
    answers: dict[_Piece, list[int]] = {}
    for index in sorted(homes):
        for piece in homes[index]:
            answers.setdefault(piece, []).append(index)
    return answers


def _assemble(places: list[Place], pieces: list[_Piece], homes: _Homes, result: Rebuilt) -> None:
    first = {piece: found[0] for piece, found in _answers(homes).items()}
    extras = _extras(places, pieces, first)
    result.cells += extras.get(-1, [])
    for place in places:
        result.cells += [_cell(place, homes.get(place.index, []), first, places), *extras.get(place.index, [])]


def _cell(place: Place, home: list[_Piece], first: dict[_Piece, int], places: list[Place]) -> RebuiltCell:
    text = place.text if place.kind in GIVEN else place.released
    if home and first[home[0]] == place.index:
        text = "\n\n".join(p.text for p in home)
        if place.cell_type == "code" and home[0].cell_type != "code":
            text = without_fence(text)
    elif home:
        text = f"# This answer stands in the cell '{places[first[home[0]]].label}' above."
    found = bool(home), place.cell_id, place.released, place.index
    return RebuiltCell(place.kind, place.cell_type, text, place.grade_id, *found)


def _extras(places: list[Place], pieces: list[_Piece], first: dict[_Piece, int]) -> dict[int, list[RebuiltCell]]:
    """The student's own cells by the place that they follow (-1: they stood before everything)."""
    taken = {p.cell_id for p in places}
    free_ids = (name for name in map("extra-{}".format, count(1)) if name not in taken)
    stubs = {p.bare for p in places if p.kind in ANSWERS}
    extras: dict[int, list[RebuiltCell]] = {}
    last, seen = -1, set()
    for piece in pieces:
        anchor = first.get(piece, piece.anchor)
        if anchor is not None:
            last = last if anchor in seen else anchor  # a second copy is no landmark
            seen.add(anchor)
        elif piece.text and bare(piece.text) not in stubs:
            cell = RebuiltCell(EXTRA, piece.cell_type, piece.text, None, False, next(free_ids))
            extras.setdefault(last, []).append(cell)
    return extras


def _bring_late_helpers(places: list[Place], result: Rebuilt) -> None:
    """Move an extra code cell up to the answer that needs it, where it stood only behind the answer's test."""
    cells = result.cells
    binds = {
        c.cell_id: bound_names(c.source, imports=True) if c.cell_type == "code" and c.kind != TEST else frozenset()
        for c in cells
    }
    names = {p.cell_id: p.names for p in places}
    for answer in [c for c in cells if c.kind == SOLUTION and c.answered]:
        own = names[answer.cell_id]
        needed = own | used_names(answer.source)
        while True:
            at = cells.index(answer)
            test = next((n for n in range(at, len(cells)) if cells[n].kind == TEST), len(cells))
            missing = needed.difference(*(binds[c.cell_id] for c in cells[:test]))
            late = next((c for c in cells[test:] if c.kind == EXTRA and binds[c.cell_id] & missing), None)
            if late is None:
                break
            cells.remove(late)
            cells.insert(at + 1 if binds[late.cell_id] & own else at, late)
            needed |= used_names(late.source)
            result.notes.append(
                f"A cell that '{answer.grade_id}' needs stood behind its test; it was moved to its answer."
            )


# --- what student and instructor are told -------------------------------------------------------------------


def _tell_missing(places: list[Place], known: set[int], result: Rebuilt) -> None:
    for kinds, sentence in (
        ((TEST,), "The test cell {} was missing and has been put back."),
        ((LOCKED,), "The given cell {} was missing and has been put back."),
        (ANSWERS, "The answer cell {} was missing; no answer was found for it."),
    ):
        _add(result.notes, [p.label for p in places if p.kind in kinds and p.index not in known], sentence)


def _tell_found(places: list[Place], pieces: list[_Piece], homes: _Homes, marked: bool, result: Rebuilt) -> None:
    """Answers that were not where they belong. `marked`: the submission's cells still had their ids."""
    answers = _answers(homes)
    if marked:
        moved = [places[found[0]].label for p, found in answers.items() if p.tag is None and p is homes[found[0]][0]]
        _add(result.notes, moved, "The answer to {} stood in another cell; it was taken from there.")
    else:
        result.notes.append("The cells had lost their ids; they were recognised by their text and names.")
    merged = [places[i].label for found in answers.values() for i in found[1:]]
    _add(result.notes, merged, "The answer to {} stood in one cell with another answer; it was kept there.")
    for piece, found in answers.items():
        if piece.tag is not None and piece.tag not in found:
            wrong, right = places[piece.tag].label, places[found[0]].label
            result.events.append(f"a cell with the id '{wrong}' answers '{right}'; it was graded as such")
    copies = Counter(p.tag for p in pieces if p.tag is not None and p.text and p.tag in homes)
    doubled = [places[i].label for i, n in sorted(copies.items()) if n > 1]
    kept = "the first changed one was graded, the others were kept."
    _add(result.notes, doubled, f"The answer cell {{}} was there more than once; {kept}")


def _add(notes: list[str], labels: list[str], sentence: str) -> None:
    if len(labels) > 1:
        sentence = sentence.replace("cell {} was", "cells {} were").replace("has been", "have been")
    if labels:
        notes.append(sentence.format(", ".join(f"'{label}'" for label in labels)))
