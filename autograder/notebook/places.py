"""The instructor's notebook: what students get of it, and the place that each of its cells is in a submission."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any

from nbformat.notebooknode import NotebookNode
from traitlets.config import Config

from autograder.notebook.names import bound_names
from autograder.notebook.texts import bare, lined

LOCKED, SOLUTION, TEST, WRITTEN, EXTRA, OPEN = "locked", "solution", "test", "written", "extra", "open"
GIVEN, ANSWERS = (LOCKED, TEST), (SOLUTION, WRITTEN, OPEN)


class Place:
    """A cell of the source notebook, of which students got the text `released`.

    `bare` and `block` are the same as it is compared and as it is searched for. `names` are bound by this answer cell
    and by no other cell.
    """

    def __init__(self, index: int, cell: NotebookNode, released: str) -> None:
        self.index, self.cell_type, self.text, self.kind = index, cell.cell_type, cell.source, _kind(cell)
        self.grade_id: str | None = grade_id_of(cell)
        self.cell_id: str = cell.get("id", f"cell-{index}")
        self.label = self.grade_id or self.cell_id
        self.released, self.bare, self.block = released, bare(released), lined(released.strip())
        self.names: set[str] = set()


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
        places.append(Place(index, cell, texts[_key(cell)]))
    code = [p for p in places if p.cell_type == "code" and p.kind != TEST]
    # where nothing of an answer was released, the solution says what it binds
    binds = {p: bound_names(p.released) or bound_names(p.text if p.kind == SOLUTION else "") for p in code}
    count = Counter(name for names in binds.values() for name in names)
    for place in code:
        if place.kind in ANSWERS:
            place.names = {name for name in binds[place] if count[name] == 1}
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
