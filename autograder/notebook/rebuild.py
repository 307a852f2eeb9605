"""Rebuild the notebook to grade: the instructor's notebook with the student's text in its answer cells.

Order, given cells, tests, points and metadata come from the instructor's *source* notebook. From the submission
come the texts of the answer cells and the student's own extra cells, where they stood. Cells are recognised by
their nbgrader id, their cell id, their text, the names they bind, and at last by their neighbours, so that honest
work keeps its points whatever an editor, a learning system or a slip of the hand did to the file.

Four steps: `_split` takes given text out of the submission and leaves pieces of student's text;
`_place_by_id_and_name` and `_place_by_neighbours` find the answer cell of each piece; `_assemble` puts the
notebook together; `_bring_late_helpers` moves up what an answer needs but what stood behind its test.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from nbformat.notebooknode import NotebookNode, from_dict
from rapidfuzz import fuzz
from traitlets.config import Config

from autograder.notebook.names import additions, bound_names, parse, used_names
from autograder.notebook.reader import AGAIN, Unreadable, few, new_cell
from autograder.text import shown

LOCKED, SOLUTION, TEST, WRITTEN, EXTRA, OPEN = "locked", "solution", "test", "written", "extra", "open"
_GIVEN, _ANSWERS = (LOCKED, TEST), (SOLUTION, WRITTEN, OPEN)
_SIMILAR = 90  # per cent of characters in common: a given cell with a slip in it
_SHORT = 10_000  # characters: what a cache may hold
_LONG = 80  # characters; shorter texts are alike by chance ("## Exercise 2", "## Exercise 3")


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


@dataclass
class Place:
    """A cell of the source notebook; `names` are bound by this answer cell and by no other cell."""

    index: int
    kind: str
    cell_type: str
    label: str
    grade_id: str | None
    cell_id: str
    text: str
    released: str
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.bare = _bare(self.released)
        self.block = _lined(self.released.strip())


@dataclass(eq=False)
class _Piece:
    """A stretch of the submission: student's text, or the trace of a given or untouched cell (text "").

    `tag` is the answer place that its metadata name; `anchor` the place behind which the following extra cells
    stand.
    """

    position: int
    text: str
    cell_type: str
    tag: int | None = None
    anchor: int | None = None
    names: set[str] = field(default_factory=set)

    @property
    def free(self) -> bool:
        return bool(self.text) and self.anchor is None


def rebuild(places: list[Place], submission: NotebookNode) -> Rebuilt:
    """The notebook to grade, from the cells of the instructor's notebook (`places_of`) and what was handed in.

    `submission` is what `notebooks.read_notebook` returns. Raises Unreadable where no answer or test cell of the
    set is found in it.
    """
    result = Rebuilt()
    tags = _tags(places, submission)
    _watch(places, submission, tags, result)
    pieces, given = _split(places, submission, tags, result)
    untouched = _mark_untouched(places, pieces)
    homes = _place_by_id_and_name(places, pieces, untouched)
    _refuse_foreign(places, given | untouched | homes.keys())
    _place_by_neighbours(places, pieces, homes, untouched)
    known = given | untouched | homes.keys()
    _assemble(places, pieces, homes, result)
    _bring_late_helpers(places, result)
    _tell_missing(places, known, result)
    _tell_found(places, pieces, homes, any(tag is not None for tag in tags), result)
    result.notes[:], result.events[:] = few(result.notes), few(result.events)
    return result


def to_notebook(rebuilt: Rebuilt, source: NotebookNode) -> NotebookNode:
    """The notebook to show: the source's metadata, the student's text, released text in given and test cells."""
    return from_dict(to_content(rebuilt, source))


def to_content(rebuilt: Rebuilt, source: NotebookNode) -> dict[str, Any]:
    """`to_notebook` as plain data, which shares the source's metadata: to be written out, not to be changed."""
    cells = []
    for cell in rebuilt.cells:
        text = cell.released if cell.kind in _GIVEN else cell.source
        metadata = {} if cell.place is None else source.cells[cell.place].metadata
        cells.append(new_cell(cell.cell_type, text, cell.cell_id, metadata))
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": source.metadata, "cells": cells}


def release_view(source: NotebookNode, config: Config | None = None) -> NotebookNode:
    """What students get of a source notebook, made in memory by nbgrader's own preprocessors.

    `config` is the course's nbgrader configuration (own stubs or delimiters). Raises RuntimeError, as nbgrader
    does, where a solution or hidden-test region is not closed or stands in the wrong kind of cell.
    """
    # Only the instructor's side needs nbgrader, whose import takes longer than a rebuild.
    from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, ClearOutput, ClearSolutions

    notebook, resources = deepcopy(source), {}
    for preprocessor in (ClearSolutions, ClearOutput, ClearHiddenTests, ClearMarkScheme):
        notebook, resources = preprocessor(config=config or Config()).preprocess(notebook, resources)
    return notebook


# --- the source notebook ------------------------------------------------------------------------------------


def places_of(source: NotebookNode, released: NotebookNode) -> list[Place]:
    """The cells of the instructor's notebook, each with what students got of it.

    Raises ValueError where `released` does not belong to `source`.
    """
    texts = {_key(cell): cell.source for cell in released.cells}
    places = []
    for index, cell in enumerate(source.cells):
        if _key(cell) not in texts:
            raise ValueError(f"cell {_key(cell)!r} is not in the released notebook: release the set again")
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id")
        label, cell_id = grade_id or cell.get("id", f"cell-{index}"), cell.get("id", f"cell-{index}")
        places.append(
            Place(index, _kind(cell), cell.cell_type, label, grade_id, cell_id, cell.source, texts[_key(cell)])
        )
    code = [p for p in places if p.cell_type == "code" and p.kind != TEST]
    binds = {p.index: bound_names(p.released) for p in code}
    for place in code:
        if place.kind == SOLUTION and not binds[place.index]:  # nothing of the cell was released
            binds[place.index] = bound_names(place.text)
    count = Counter(name for names in binds.values() for name in names)
    for place in code:
        if place.kind in _ANSWERS:
            place.names = {name for name in binds[place.index] if count[name] == 1}
    return places


def _key(cell: NotebookNode) -> str | None:
    return cell.metadata.get("nbgrader", {}).get("grade_id") or cell.get("id")


def _kind(cell: NotebookNode) -> str:
    nbgrader = cell.metadata.get("nbgrader")
    if not nbgrader:
        return OPEN
    if nbgrader.get("solution"):
        return WRITTEN if nbgrader.get("grade") else SOLUTION
    return TEST if nbgrader.get("grade") else LOCKED


# --- texts --------------------------------------------------------------------------------------------------


def _bare(text: str) -> str:
    """The text without blank lines and trailing blanks: what counts when texts are compared."""
    return _bare_short(text) if len(text) <= _SHORT else _bare_short.__wrapped__(text)


@lru_cache(maxsize=1024)  # a class hands in the same given cells again and again
def _bare_short(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def _lined(text: str) -> str:
    """The text without trailing blanks, between newlines: whole lines can be searched in it."""
    return "\n" + "\n".join(line.rstrip() for line in text.split("\n")) + "\n"


def _cut(text: str, block: str) -> str | None:
    """`text` without the lines of `block`, or None where they do not stand in it one after the other."""
    lines = _lined(text)
    return lines.replace(block, "\n", 1).strip("\n") if block.strip() and block in lines else None


def _similar(text: str, given: str) -> bool:
    # The lengths first: a text of megabytes is not to be compared character by character.
    return len(given) / 2 <= len(text) <= len(given) * 2 and fuzz.ratio(text, given) >= _SIMILAR


def _without_fence(text: str) -> str:
    """Code that was put into a Markdown cell, without its ``` lines."""
    lines = text.strip().split("\n")
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text


def _names_in(text: str, cell_type: str) -> set[str]:
    if cell_type == "code":
        return bound_names(text)
    code = _without_fence(text)
    return bound_names(code) if parse(code) is not None else set()


# --- step 1: pieces -----------------------------------------------------------------------------------------


def _tags(places: list[Place], submission: NotebookNode) -> list[int | None]:
    """For each submitted cell the place that its nbgrader id, or else its cell id, names."""
    by_grade_id = {p.grade_id: p.index for p in places if p.grade_id}
    by_cell_id = {p.cell_id: p.index for p in places}
    return [
        by_grade_id.get(cell.metadata.get("nbgrader", {}).get("grade_id"), by_cell_id.get(cell.id))
        for cell in submission.cells
    ]


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
        used[place.index] += place.grade_id == cell.metadata.get("nbgrader", {}).get("grade_id") is not None
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
    answer_names = set().union(*(p.names for p in places))
    all_given = [p for p in places if p.kind in _GIVEN]
    for position, (cell, tag) in enumerate(zip(submission.cells, tags, strict=True)):
        text, cell_type = cell.source, cell.cell_type
        names = _names_in(text, cell_type)
        given = _given_place(all_given, text, tag, names & answer_names, found)
        if given is not None:
            text, cell_type, tag = _students_part(given, text), given.cell_type, None
            if given.bare != _bare(cell.source):
                _tell_changed(given, text, result)
        text, stood_for = _cut_given(all_given, text)
        if given is not None:
            stood_for.append(given)
        found |= {p.index for p in stood_for}
        own = _Piece(position, text, cell_type, tag)
        if text.strip():
            own.names = names if text == cell.source else _names_in(text, cell_type)
        else:
            own.text, own.anchor = "", tag
        pieces += [_Piece(position, "", p.cell_type, anchor=p.index) for p in stood_for if p.kind == LOCKED]
        pieces.append(own)
        pieces += [_Piece(position, "", p.cell_type, anchor=p.index) for p in stood_for if p.kind == TEST]
    return pieces, found


def _given_place(given: list[Place], text: str, tag: int | None, answers: set[str], found: set[int]) -> Place | None:
    """The one of the `given` cells that this cell is or was, if any; `answers` are names of exercises it binds."""
    tagged = next((p for p in given if p.index == tag), None)
    bare = _bare(text)
    equal = [p for p in given if p.bare == bare] if bare else []
    if equal:
        return tagged if tagged in equal else min(equal, key=lambda p: p.index in found)
    if tag is not None or answers:
        return tagged
    return next((p for p in given if len(p.bare) >= _LONG and _similar(bare, p.bare)), None)


def _students_part(given: Place, text: str) -> str:
    """What a student wrote into a given cell and what must not be lost, e.g. an import."""
    if given.bare == _bare(text):
        return ""
    rest = _cut(text, given.block)
    if rest is None and given.cell_type == "code":
        rest = additions(text, given.released)
    if rest is None:
        rest = "" if _similar(_bare(text), given.bare) else text
    return rest


def _tell_changed(given: Place, rest: str, result: Rebuilt) -> None:
    kept = " What you added was kept in a cell of its own." if rest.strip() else ""
    what = "test" if given.kind == TEST else "given"
    result.notes.append(f"The {what} cell '{given.label}' was changed; the original was used.{kept}")
    result.events.append(f"the {given.kind} cell '{given.label}' was changed")


def _cut_given(given: list[Place], text: str) -> tuple[str, list[Place]]:
    """The text without given cells of two lines or more that were merged into it, and these cells."""
    if not text:
        return text, []
    lines, merged = _lined(text), []
    for place in given:
        if "\n" in place.bare and place.block in lines:
            lines = lines.replace(place.block, "\n", 1)
            merged.append(place)
    return (lines.strip("\n"), merged) if merged else (text, [])


# --- step 2: answers by id and name -------------------------------------------------------------------------


def _mark_untouched(places: list[Place], pieces: list[_Piece]) -> set[int]:
    """Take out answer cells that nobody touched; returns the places that stand so in the submission."""
    stubs: dict[str, list[int]] = {}
    for place in places:
        if place.kind in _ANSWERS:
            stubs.setdefault(place.bare, []).append(place.index)
    untouched = {p.anchor for p in pieces if not p.text and p.anchor is not None} - {
        p.index for p in places if p.kind in _GIVEN
    }
    for piece in pieces:
        alike = stubs.get(_bare(piece.text), []) if piece.text else []
        if piece.tag in alike or len(alike) == 1:
            piece.anchor = piece.tag if piece.tag in alike else alike[0]
            piece.text = ""
            untouched.add(piece.anchor)
        elif alike and piece.cell_type == "code":
            piece.text = ""  # one of several equal stubs: nothing to keep
    return untouched


def _place_by_id_and_name(places: list[Place], pieces: list[_Piece], untouched: set[int]) -> dict[int, list[_Piece]]:
    """The pieces that answer each place. One piece may answer several places: cells that were merged."""
    homes: dict[int, list[_Piece]] = {}
    tagged = {p.tag for p in pieces} | untouched
    free = [p for p in pieces if p.free]
    for place in places:
        if place.kind not in _ANSWERS or not place.names:
            continue
        claims = [p for p in free if p.names & place.names and _may_answer(p, place, places, tagged)]
        own = [p for p in claims if p.tag == place.index]
        if claims:
            homes[place.index] = (own or claims)[:1]
    for place in places:
        taken = [p for home in homes.values() for p in home]
        if place.kind in _ANSWERS and place.index not in homes:
            own = [p for p in free if p.tag == place.index and p not in taken]
            if own:
                homes[place.index] = own[:1]
    return homes


def _may_answer(piece: _Piece, place: Place, places: list[Place], tagged: set[int | None]) -> bool:
    """Whether a piece that binds the place's name is its answer."""
    if piece.tag == place.index:
        return True
    if _cut(piece.text, place.block) is not None:
        return False  # it only carries the untouched stub along
    if place.kind == OPEN:
        return piece.tag is None and not piece.names & set().union(*(p.names for p in places if p.kind != OPEN))
    if piece.tag is None:
        return True
    own = places[piece.tag]
    if own.kind == WRITTEN and own.cell_type != "code":
        return False
    if own.names and not own.names & piece.names:
        return True  # a copied cell that was rewritten for this exercise: its id is wrong
    return place.index not in tagged  # merged into its neighbour


def _refuse_foreign(places: list[Place], known: set[int]) -> None:
    """Another set may share the cell with the imports, but no exercise and not most of the given text."""
    exercises = {p.index for p in places if p.kind in (SOLUTION, WRITTEN, TEST)}
    given = {p.index for p in places if p.kind == LOCKED}
    if exercises and known.isdisjoint(exercises) and (not given or 2 * len(given & known) < len(given)):
        raise Unreadable(
            "The notebook contains no exercise of this problem set: it is probably a different file. "
            f"Open the notebook of this set. {AGAIN}"
        )


# --- step 3: answers by their neighbours --------------------------------------------------------------------


def _place_by_neighbours(
    places: list[Place], pieces: list[_Piece], homes: dict[int, list[_Piece]], untouched: set[int]
) -> None:
    """Give each answer cell that is still empty the unclaimed text between its recognised neighbours."""
    order = _anchors_in_order(pieces, homes)
    groups: dict[tuple[str, int, int], list[Place]] = {}
    for place in places:
        if place.kind not in (SOLUTION, WRITTEN) or place.index in homes:
            continue
        if place.kind == SOLUTION and place.names and place.index in untouched:
            continue  # its stub stands there: code beside it is not the answer
        before = max((n for i, n in order.items() if i < place.index), default=-1)
        after = min((n for i, n in order.items() if i > place.index), default=len(pieces))
        if order:
            groups.setdefault((place.cell_type, before, after), []).append(place)
    answer_names = set().union(*(p.names for p in places))
    for (cell_type, before, after), group in groups.items():
        between = [
            p
            for p in pieces[before + 1 : after]
            if p.free and p.tag is None and not p.names & answer_names and _fits(p, cell_type)
        ]
        if len(between) != len(group):
            between = [p for p in between if _bare(p.text) not in {place.bare for place in group}]
        for place, piece in zip(group, between, strict=False):
            homes[place.index] = [piece]
        if cell_type != "code" and group[-1].index in homes:
            homes[group[-1].index] += between[len(group) :]
    for place in [places[i] for i in homes]:
        if all(_bare(p.text) == place.bare for p in homes[place.index]):
            untouched.add(place.index)
            homes.pop(place.index)[0].anchor = place.index


def _fits(piece: _Piece, cell_type: str) -> bool:
    if cell_type == "code":
        return piece.cell_type == "code"
    return piece.cell_type != "code" or parse(piece.text) is None  # prose in a code cell


def _anchors_in_order(pieces: list[_Piece], homes: dict[int, list[_Piece]]) -> dict[int, int]:
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


def _assemble(places: list[Place], pieces: list[_Piece], homes: dict[int, list[_Piece]], result: Rebuilt) -> None:
    first: dict[_Piece, int] = {}  # the first place that a piece answers
    for index in sorted(homes):
        for piece in homes[index]:
            first.setdefault(piece, index)
    extras = _extras(places, pieces, first)
    result.cells += extras.get(-1, [])
    for place in places:
        result.cells += [_cell(place, homes.get(place.index, []), first, places), *extras.get(place.index, [])]


def _cell(place: Place, home: list[_Piece], first: dict[_Piece, int], places: list[Place]) -> RebuiltCell:
    text = place.text if place.kind in _GIVEN else place.released
    if home and first[home[0]] == place.index:
        text = "\n\n".join(p.text for p in home)
        if place.cell_type == "code" and home[0].cell_type != "code":
            text = _without_fence(text)
    elif home:
        text = f"# This answer stands in the cell '{places[first[home[0]]].label}' above."
    return RebuiltCell(
        kind=place.kind,
        cell_type=place.cell_type,
        source=text,
        grade_id=place.grade_id,
        answered=bool(home),
        cell_id=place.cell_id,
        released=place.released,
        place=place.index,
    )


def _extras(places: list[Place], pieces: list[_Piece], first: dict[_Piece, int]) -> dict[int, list[RebuiltCell]]:
    """The student's own cells by the place that they follow (-1: they stood before everything)."""
    taken = {p.cell_id for p in places}
    stubs = {p.bare for p in places if p.kind in _ANSWERS}
    extras: dict[int, list[RebuiltCell]] = {}
    last, seen, number = -1, set(), 0
    for piece in pieces:
        anchor = first.get(piece, piece.anchor)
        if anchor is not None:
            last = last if anchor in seen else anchor  # a second copy is no landmark
            seen.add(anchor)
        elif piece.text and _bare(piece.text) not in stubs:
            number += 1
            while f"extra-{number}" in taken:
                number += 1
            cell = RebuiltCell(EXTRA, piece.cell_type, piece.text, None, False, f"extra-{number}")
            extras.setdefault(last, []).append(cell)
    return extras


def _bring_late_helpers(places: list[Place], result: Rebuilt) -> None:
    """Move an extra code cell up to the answer that needs it, where it stood only behind the answer's test."""
    cells = result.cells
    binds = {
        c.cell_id: bound_names(c.source, imports=True) if c.cell_type == "code" and c.kind != TEST else set()
        for c in cells
    }
    for answer in [c for c in cells if c.kind == SOLUTION and c.answered]:
        own = places[answer.place].names
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
        (_ANSWERS, "The answer cell {} was missing; no answer was found for it."),
    ):
        _add(result.notes, [p.label for p in places if p.kind in kinds and p.index not in known], sentence)


def _tell_found(
    places: list[Place],
    pieces: list[_Piece],
    homes: dict[int, list[_Piece]],
    marked: bool,
    result: Rebuilt,
) -> None:
    """Answers that were not where they belong. `marked`: the submission's cells still had their ids."""
    answers: dict[_Piece, list[int]] = {}
    for index in sorted(homes):
        answers.setdefault(homes[index][0], []).append(index)
    if not marked:
        result.notes.append("The cells had lost their ids; they were recognised by their text and names.")
    moved = [places[i].label for p, found in answers.items() if p.tag is None for i in found[:1]]
    if marked:
        _add(result.notes, moved, "The answer to {} stood in another cell; it was taken from there.")
    merged = [places[i].label for found in answers.values() for i in found[1:]]
    _add(result.notes, merged, "The answer to {} stood in one cell with another answer; it was kept there.")
    for piece, found in answers.items():
        if piece.tag is not None and piece.tag not in found:
            wrong, right = places[piece.tag].label, places[found[0]].label
            result.events.append(f"a cell with the id '{wrong}' answers '{right}'; it was graded as such")
    copies = Counter(p.tag for p in pieces if p.tag is not None and p.text and p.tag in homes)
    doubled = [places[i].label for i, n in sorted(copies.items()) if n > 1]
    _add(
        result.notes,
        doubled,
        "The answer cell {} was there more than once; the first changed one was graded, the others were kept.",
    )


def _add(notes: list[str], labels: list[str], sentence: str) -> None:
    if len(labels) > 1:
        sentence = sentence.replace("cell {} was", "cells {} were").replace("has been", "have been")
    if labels:
        notes.append(sentence.format(", ".join(f"'{label}'" for label in labels)))
