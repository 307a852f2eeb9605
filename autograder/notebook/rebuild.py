"""Rebuild the notebook to grade: the instructor's notebook with the student's text in its answer cells.

Order, given cells, tests, points and metadata come from the instructor's *source* notebook. From the submission
come the texts of the answer cells and the student's own extra cells, where they stood. Cells are recognised by
their nbgrader id, their cell id, their text, the names they bind, and at last by their neighbours, so that honest
work keeps its points whatever an editor, a learning system or a slip of the hand did to the file.

Four steps: `_split` takes out of the submission what students were given and leaves pieces of their own text; each
piece claims places, and the best claim to a place wins (`_settled`; `_place_by_neighbours` for what nobody claims);
`_assemble` puts the notebook together; `_bring_late_helpers` moves up what an answer needs but what stood behind its
test.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from itertools import count
from operator import itemgetter
from typing import Any

from nbformat import NotebookNode

from autograder.notebook.names import additions, bound_names, parse, used_names
from autograder.notebook.places import ANSWERS, EXTRA, GIVEN, LOCKED, OPEN, SOLUTION, TEST, WRITTEN, Place, grade_id_of
from autograder.notebook.reader import AGAIN, Unreadable, few, new_cell
from autograder.notebook.texts import bare, cut, similar, without_fence
from autograder.text import shown

EXTRA_ID = "extra-"  # how the ids of a student's own cells begin
_LONG = 80  # characters; shorter texts are alike by chance ("## Exercise 2", "## Exercise 3")
# Why a piece may be the answer to a place: the id says so and it binds the place's name, or one of the two.
_BY_ID_AND_NAME, _BY_NAME, _BY_ID, _NOT = range(4)


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

    text: str = ""
    cell_type: str = "code"
    tag: Place | None = None
    anchor: Place | None = None
    names: Set[str] = frozenset()

    @property
    def free(self) -> bool:
        return bool(self.text) and self.anchor is None


_Cells = list[tuple[NotebookNode, Place | None]]
"""The submitted cells, each with the place that its nbgrader id, or else its cell id, names."""
_Homes = dict[Place, list[_Piece]]
"""The pieces that answer each place. One piece may answer several places: cells that were merged."""


def rebuild(places: list[Place], submission: NotebookNode) -> Rebuilt:
    """The notebook to grade, from the cells of the instructor's notebook (`places_of`) and what was handed in.

    `submission` is what `reader.read_notebook` returns. Raises Unreadable where no answer or test cell of the
    set is found in it.
    """
    result = Rebuilt()
    by_grade_id = {p.grade_id: p for p in places if p.grade_id}
    by_cell_id = {p.cell_id: p for p in places}
    cells = [(cell, by_grade_id.get(grade_id_of(cell), by_cell_id.get(cell.id))) for cell in submission.cells]
    _watch(places, cells, result)
    pieces, known = _split(places, cells, result)
    homes = _settled(places, pieces, known)
    _refuse_foreign(places, known | homes.keys())
    _place_by_neighbours(places, pieces, homes, known)
    result.cells = _assemble(places, pieces, homes)
    _bring_late_helpers(places, result)
    _tell_missing(places, known | homes.keys(), result)
    _tell_found(places, pieces, homes, any(tag for _, tag in cells), result)
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


def _watch(places: list[Place], cells: _Cells, result: Rebuilt) -> None:
    """Tags, types and ids that were changed: all without effect, but the instructor may want to know."""
    used: Counter[Place] = Counter()
    tagged: dict[str, list[str]] = {}
    for cell, place in cells:
        where = f"the {place.kind} cell '{place.label}'" if place else "a cell of the student's own"
        for name in cell.metadata.get("tags", []):
            tagged.setdefault(shown(name), []).append(where)
        if place is None:
            continue
        used[place] += place.grade_id == grade_id_of(cell) is not None
        if cell.cell_type != place.cell_type:
            result.events.append(f"{where} was turned into {cell.cell_type}")
            result.notes.append(
                f"The cell '{place.label}' was turned into {cell.cell_type}; it is {place.cell_type} again."
            )
    for name, cells_with_it in tagged.items():
        more = f" and {len(cells_with_it) - 1} more" if len(cells_with_it) > 1 else ""
        result.events.append(f"tag '{name}' on {cells_with_it[0]}{more}")
    result.events += [f"grade_id '{p.label}' used {used[p]} times" for p in places if used[p] > 1]


def _names_in(text: str, cell_type: str) -> Set[str]:
    if cell_type == "code":
        return bound_names(text)
    code = without_fence(text)
    return bound_names(code) if parse(code) is not None else frozenset()


def _names_of(places: Iterable[Place]) -> set[str]:
    return set().union(*(p.names for p in places))


def _split(places: list[Place], cells: _Cells, result: Rebuilt) -> tuple[list[_Piece], set[Place]]:
    """Pieces of the submission in order, and the places that stand in it as they were given: none is an answer."""
    pieces: list[_Piece] = []
    found: set[Place] = set()
    answer_names = _names_of(places)
    all_given = [p for p in places if p.kind in GIVEN]
    answers = [p for p in places if p.kind in ANSWERS]
    for cell, tag in cells:
        text, cell_type = cell.source, cell.cell_type
        names = _names_in(text, cell_type)
        given = _given_place(all_given, text, tag, names & answer_names, found)
        if given is not None:
            cell_type, tag = given.cell_type, None
            if given.bare == bare(text):
                text = ""
            else:
                text = _students_part(given, text)
                kept = " What you added was kept in a cell of its own." if text.strip() else ""
                what = "test" if given.kind == TEST else "given"
                result.notes.append(f"The {what} cell '{given.label}' was changed; the original was used.{kept}")
                result.events.append(f"the {given.kind} cell '{given.label}' was changed")
        text, stood_for = _cut_given(all_given, text)
        stood_for += [given] if given else []
        own = _Piece(text, cell_type, tag)
        stubs = [p for p in answers if p.bare == bare(text)]
        if not text.strip() or tag in stubs:
            own.text, own.anchor = "", tag
        elif len(stubs) == 1:
            own.text, own.anchor = "", stubs[0]
        elif stubs and cell_type == "code":
            own.text = ""  # one of several equal stubs: nothing to keep
        else:
            own.names = names if text == cell.source else _names_in(text, cell_type)
        pieces += [_Piece(anchor=p) for p in stood_for if p.kind == LOCKED]
        pieces.append(own)
        pieces += [_Piece(anchor=p) for p in stood_for if p.kind == TEST]
        found.update(stood_for, [own.anchor] if own.anchor else [])
    return pieces, found


def _given_place(
    given: list[Place], text: str, tag: Place | None, answers: Set[str], found: set[Place]
) -> Place | None:
    """The one of the `given` cells that this cell is or was, if any; `answers` are names of exercises it binds."""
    tagged = tag if tag in given else None
    plain = bare(text)
    equal = [p for p in given if p.bare == plain] if plain else []
    if equal:
        return tagged if tagged in equal else min(equal, key=found.__contains__)
    if tag is not None or answers:
        return tagged
    return next((p for p in given if len(p.bare) >= _LONG and similar(plain, p.bare)), None)


def _students_part(given: Place, text: str) -> str:
    """What a student wrote into a given cell and what must not be lost, e.g. an import."""
    rest = cut(text, given.block)
    if rest is None and given.cell_type == "code":
        rest = additions(text, given.released)
    if rest is not None:
        return rest
    return "" if similar(bare(text), given.bare) else text


def _cut_given(given: list[Place], text: str) -> tuple[str, list[Place]]:
    """The text without given cells of two lines or more that were merged into it, and these cells."""
    merged = []
    for place in given:
        if "\n" in place.bare and (rest := cut(text, place.block)) is not None:
            text = rest
            merged.append(place)
    return text, merged


def _settled(places: list[Place], pieces: list[_Piece], known: set[Place]) -> _Homes:
    """Each place goes to its best claim. By its id alone a piece gets a place only where it has no other."""
    exercises = _names_of(p for p in places if p.kind != OPEN)
    standing = {p.tag for p in pieces} | known
    answers = [p for p in places if p.kind in ANSWERS]
    claims = [(_why(n, p, standing, exercises), p, n) for p in answers for n in pieces if n.free]
    homes: _Homes = {}
    taken: set[_Piece] = set()
    for why, place, piece in sorted(claims, key=itemgetter(0)):
        if why != _NOT and place not in homes and not (why == _BY_ID and piece in taken):
            homes[place] = [piece]
            taken.add(piece)
    return homes


def _why(piece: _Piece, place: Place, standing: Set[Place | None], exercises: set[str]) -> int:
    """Why a piece may be the answer to a place; the less, the better."""
    own, shared = piece.tag, piece.names & place.names
    if own is place:
        return _BY_ID_AND_NAME if shared else _BY_ID
    if not shared or cut(piece.text, place.block) is not None:
        return _NOT  # at most it carries the untouched stub along
    if own is None:
        return _NOT if place.kind == OPEN and piece.names & exercises else _BY_NAME
    if place.kind == OPEN or (own.kind == WRITTEN and own.cell_type != "code"):
        return _NOT
    if own.names and not own.names & piece.names:
        return _BY_NAME  # a copied cell that was rewritten for this exercise: its id is wrong
    return _NOT if place in standing else _BY_NAME  # else it was merged into its neighbour


def _refuse_foreign(places: list[Place], known: set[Place]) -> None:
    """Another set may share the cell with the imports, but no exercise and not most of the given text."""
    exercises = {p for p in places if p.kind in (SOLUTION, WRITTEN, TEST)}
    given = {p for p in places if p.kind == LOCKED}
    if exercises and known.isdisjoint(exercises) and (not given or 2 * len(given & known) < len(given)):
        raise Unreadable(
            "The notebook contains no exercise of this problem set: it is probably a different file. "
            f"Open the notebook of this set. {AGAIN}"
        )


def _place_by_neighbours(places: list[Place], pieces: list[_Piece], homes: _Homes, known: set[Place]) -> None:
    """Give each answer cell that is still empty the unclaimed text between its recognised neighbours."""
    order = _anchors_in_order(pieces, homes)
    names = _names_of(places)
    groups: dict[tuple[str, int, int], list[Place]] = {}
    for place in places if order else ():
        if place.kind not in (SOLUTION, WRITTEN) or place in homes:
            continue
        if place.kind == SOLUTION and place.names and place in known:
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
                homes[group[number]] = [piece]
            elif cell_type != "code":  # prose in several cells
                homes[group[-1]].append(piece)
    for place in list(homes):
        if all(bare(p.text) == place.bare for p in homes[place]):
            known.add(place)
            homes.pop(place)[0].anchor = place


def _anchors_in_order(pieces: list[_Piece], homes: _Homes) -> dict[int, int]:
    """Indices of recognised places → number of their piece, without what was moved (longest increasing chain)."""
    where: dict[int, int] = {}
    for n, piece in enumerate(pieces):
        if piece.anchor is not None:
            where.setdefault(piece.anchor.index, n)
    where.update({place.index: pieces.index(home[0]) for place, home in homes.items()})
    best: list[list[tuple[int, int]]] = []  # best[k]: the chain of length k + 1 that ends earliest
    for index, n in sorted(where.items()):
        k = bisect_left([chain[-1][1] for chain in best], n)
        best[k : k + 1] = [[*(best[k - 1] if k else []), (index, n)]]
    return dict(best[-1]) if best else {}


def _assemble(places: list[Place], pieces: list[_Piece], homes: _Homes) -> list[RebuiltCell]:
    """The cells in order; a piece that answers several places stands in the first of them."""
    for place in places:
        for piece in homes.get(place, []):
            piece.anchor = piece.anchor or place
    extras = _extras(places, pieces)
    cells = extras[None]
    for place in places:
        text, home = place.text if place.kind in GIVEN else place.released, homes.get(place, [])
        if home and home[0].anchor is place:
            text = "\n\n".join(p.text for p in home)
            if place.cell_type == "code" and home[0].cell_type != "code":
                text = without_fence(text)
        elif home and home[0].anchor:
            text = f"# This answer stands in the cell '{home[0].anchor.label}' above."
        found = bool(home), place.cell_id, place.released, place.index
        cells += [RebuiltCell(place.kind, place.cell_type, text, place.grade_id, *found), *extras[place]]
    return cells


def _extras(places: list[Place], pieces: list[_Piece]) -> dict[Place | None, list[RebuiltCell]]:
    """The student's own cells by the place that they follow (None: they stood before everything)."""
    taken = {p.cell_id for p in places}
    free_ids = (name for name in map(f"{EXTRA_ID}{{}}".format, count(1)) if name not in taken)
    stubs = {p.bare for p in places if p.kind in ANSWERS}
    extras: dict[Place | None, list[RebuiltCell]] = defaultdict(list)
    last, seen = None, set()
    for piece in pieces:
        if piece.anchor is not None:
            last = last if piece.anchor in seen else piece.anchor  # a second copy is no landmark
            seen.add(piece.anchor)
        elif piece.text and bare(piece.text) not in stubs:
            extras[last].append(RebuiltCell(EXTRA, piece.cell_type, piece.text, None, False, next(free_ids)))
    return extras


def _bring_late_helpers(places: list[Place], result: Rebuilt) -> None:
    """Move an extra code cell up to the answer that needs it, where it stood only behind the answer's test."""
    cells = result.cells
    binds = {
        c.cell_id: bound_names(c.source, imports=True) if c.cell_type == "code" and c.kind != TEST else frozenset()
        for c in cells
    }
    for place in [p for p in places if p.kind == SOLUTION]:
        answer = next(c for c in cells if c.place == place.index)
        needed = place.names | used_names(answer.source)
        while answer.answered:
            at = cells.index(answer)
            test = next((n for n in range(at, len(cells)) if cells[n].kind == TEST), len(cells))
            missing = needed.difference(*(binds[c.cell_id] for c in cells[:test]))
            late = next((c for c in cells[test:] if c.kind == EXTRA and binds[c.cell_id] & missing), None)
            if late is None:
                break
            cells.remove(late)
            cells.insert(at + 1 if binds[late.cell_id] & place.names else at, late)
            needed |= used_names(late.source)
            result.notes.append(
                f"A cell that '{place.grade_id}' needs stood behind its test; it was moved to its answer."
            )


def _tell_missing(places: list[Place], known: set[Place], result: Rebuilt) -> None:
    for kinds, sentence in (
        ((TEST,), "The test cell {} was missing and has been put back."),
        ((LOCKED,), "The given cell {} was missing and has been put back."),
        (ANSWERS, "The answer cell {} was missing; no answer was found for it."),
    ):
        _add(result.notes, [p for p in places if p.kind in kinds and p not in known], sentence)


def _tell_found(places: list[Place], pieces: list[_Piece], homes: _Homes, marked: bool, result: Rebuilt) -> None:
    """Answers that were not where they belong. `marked`: the submission's cells still had their ids."""
    answers: dict[_Piece, list[Place]] = defaultdict(list)
    for place in places:
        for piece in homes.get(place, []):
            answers[piece].append(place)
    if marked:
        moved = [found[0] for p, found in answers.items() if p.tag is None and p is homes[found[0]][0]]
        _add(result.notes, moved, "The answer to {} stood in another cell; it was taken from there.")
    else:
        result.notes.append("The cells had lost their ids; they were recognised by their text and names.")
    merged = [place for found in answers.values() for place in found[1:]]
    _add(result.notes, merged, "The answer to {} stood in one cell with another answer; it was kept there.")
    for piece, found in answers.items():
        if piece.tag is not None and piece.tag not in found:
            wrong, right = piece.tag.label, found[0].label
            result.events.append(f"a cell with the id '{wrong}' answers '{right}'; it was graded as such")
    copies = Counter(p.tag for p in pieces if p.text and p.tag in homes)
    kept = "the first changed one was graded, the others were kept."
    _add(result.notes, [p for p in places if copies[p] > 1], f"The answer cell {{}} was there more than once; {kept}")


def _add(notes: list[str], places: list[Place], sentence: str) -> None:
    if len(places) > 1:
        sentence = sentence.replace("cell {} was", "cells {} were").replace("has been", "have been")
    if places:
        notes.append(sentence.format(", ".join(f"'{place.label}'" for place in places)))
