"""The instructor's notebook: what students get of it, and the place that each of its cells is in a submission.

Also how the texts of both are compared.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from nbformat.notebooknode import NotebookNode
from rapidfuzz import fuzz
from traitlets.config import Config

from autograder.notebook.names import bound_names

LOCKED, SOLUTION, TEST, WRITTEN, EXTRA, OPEN = "locked", "solution", "test", "written", "extra", "open"
GIVEN, ANSWERS = (LOCKED, TEST), (SOLUTION, WRITTEN, OPEN)
ALIKE = 90  # per cent of characters in common: a given cell with a slip in it


@dataclass
class Place:
    """A cell of the source notebook; `names` are bound by this answer cell and by no other cell.

    `released` is what students got in it, `bare` and `block` the same as it is compared and as it is searched for.
    """

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
        self.bare = bare(self.released)
        self.block = lined(self.released.strip())


def release_view(source: NotebookNode, config: Config | None = None) -> NotebookNode:
    """What students get of a source notebook, made in memory by nbgrader's own preprocessors.

    `config` is the course's nbgrader configuration (own stubs or delimiters). Raises RuntimeError, as nbgrader
    does, where a solution or hidden-test region is not closed or stands in the wrong kind of cell.
    """
    # Only the instructor's side needs nbgrader, whose import takes longer than a rebuild.
    from nbgrader.preprocessors import ClearHiddenTests, ClearMarkScheme, ClearOutput, ClearSolutions

    notebook, resources = deepcopy(source), dict[str, Any]()
    for preprocessor in (ClearSolutions, ClearOutput, ClearHiddenTests, ClearMarkScheme):
        notebook, resources = preprocessor(config=config or Config()).preprocess(notebook, resources)
    return notebook


def places_of(source: NotebookNode, released: NotebookNode) -> list[Place]:
    """The cells of the instructor's notebook, each with what students got of it.

    Raises ValueError where `released` does not belong to `source`.
    """
    texts = {_key(cell): cell.source for cell in released.cells}
    places = []
    for index, cell in enumerate(source.cells):
        if _key(cell) not in texts:
            raise ValueError(f"cell {_key(cell)!r} is not in the released notebook: release the set again")
        grade_id, cell_id = grade_id_of(cell), cell.get("id", f"cell-{index}")
        text = texts[_key(cell)]
        places.append(
            Place(index, _kind(cell), cell.cell_type, grade_id or cell_id, grade_id, cell_id, cell.source, text)
        )
    code = [p for p in places if p.cell_type == "code" and p.kind != TEST]
    binds = {p.index: bound_names(p.released) for p in code}
    for place in code:
        if place.kind == SOLUTION and not binds[place.index]:  # nothing of the cell was released
            binds[place.index] = bound_names(place.text)
    count = Counter(name for names in binds.values() for name in names)
    for place in code:
        if place.kind in ANSWERS:
            place.names = {name for name in binds[place.index] if count[name] == 1}
    return places


def grade_id_of(cell: NotebookNode) -> Any:
    """What the cell's metadata give as its nbgrader id: text in a source notebook, anything in a student's."""
    return cell.metadata.get("nbgrader", {}).get("grade_id")


def _key(cell: NotebookNode) -> Any:
    return grade_id_of(cell) or cell.get("id")


def _kind(cell: NotebookNode) -> str:
    nbgrader = cell.metadata.get("nbgrader")
    if not nbgrader:
        return OPEN
    if nbgrader.get("solution"):
        return WRITTEN if nbgrader.get("grade") else SOLUTION
    return TEST if nbgrader.get("grade") else LOCKED


# --- texts --------------------------------------------------------------------------------------------------


def bare(text: str) -> str:
    """The text without blank lines and trailing blanks: what counts when texts are compared."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def lined(text: str) -> str:
    """The text without trailing blanks, between newlines: whole lines can be searched in it."""
    return "\n" + "\n".join(line.rstrip() for line in text.split("\n")) + "\n"


def cut(text: str, block: str) -> str | None:
    """`text` without the lines of `block`, or None where they do not stand in it one after the other."""
    lines = lined(text)
    return lines.replace(block, "\n", 1).strip("\n") if block.strip() and block in lines else None


def similar(text: str, given: str) -> bool:
    # The lengths first: a text of megabytes is not to be compared character by character.
    return len(given) / 2 <= len(text) <= len(given) * 2 and fuzz.ratio(text, given) >= ALIKE


def without_fence(text: str) -> str:
    """Code that was put into a Markdown cell, without its ``` lines."""
    lines = text.strip().split("\n")
    fenced = len(lines) > 2 and lines[0].startswith("```") and lines[-1].strip() == "```"
    return "\n".join(lines[1:-1]) if fenced else text
