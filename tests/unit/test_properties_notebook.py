"""Whatever is handed in, reading and rebuilding keep their promises."""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache
from typing import Any

import nbformat
from hypothesis import given, settings
from hypothesis import strategies as st
from nbformat.notebooknode import NotebookNode, from_dict
from tiny_course import GOOD, answered, source_notebook

from autograder.notebook.places import Place, places_of, release_view
from autograder.notebook.reader import Unreadable, read_notebook
from autograder.notebook.rebuild import Rebuilt, rebuild, to_content

FAST = settings(max_examples=60, deadline=None, print_blob=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = ("cell_type", "id", "metadata", "source", "outputs", "input", "level")
CELLS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)


@cache
def tiny() -> tuple[NotebookNode, list[Place]]:
    source = source_notebook()
    return source, places_of(source, release_view(source))


def complete() -> list[dict[str, Any]]:
    return deepcopy(json.loads(json.dumps(answered(**GOOD)))["cells"])


def rebuilt(cells: list[dict[str, Any]]) -> Rebuilt:
    notebook, _ = read_notebook(json.dumps({"cells": cells}).encode(), "any.ipynb")
    return rebuild(tiny()[1], notebook)


def keeps_what_is_given(result: Rebuilt) -> None:
    source, places = tiny()
    nbformat.validate(from_dict(to_content(result, source)))
    assert [c.place for c in result.cells if c.place is not None] == list(range(len(places)))
    for cell in result.cells:
        if cell.kind in ("locked", "test") and cell.place is not None:
            assert cell.source == source.cells[cell.place].source


@FAST
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_cells_or_unreadable(data: bytes) -> None:
    for content in (data, b'{"cells": [' + data + b"]}", b'{"cells": [{"source": "' + data + b'"}]}'):
        try:
            notebook, notes = read_notebook(content, "any.ipynb")
        except Unreadable as error:
            assert "\n" not in str(error)
            continue
        nbformat.validate(notebook)
        json.dumps([notebook, notes]).encode()


@FAST
@given(st.lists(CELLS, max_size=6))
def test_any_cells_are_a_notebook(cells: list[dict[str, Any]]) -> None:
    notebook, _ = read_notebook(json.dumps({"cells": cells}).encode(), "any.ipynb")
    nbformat.validate(notebook)
    assert len(notebook.cells) == len(cells)


@FAST
@given(st.data())
def test_a_permutation_loses_no_answer(data: st.DataObject) -> None:
    plain = {c.place: c for c in rebuilt(complete()).cells if c.place is not None}
    result = rebuilt(data.draw(st.permutations(complete())))
    keeps_what_is_given(result)
    assert {c.place: c for c in result.cells if c.place is not None} == plain


@FAST
@given(st.data())
def test_broken_cells_break_nothing_and_what_is_untouched_stays_so(data: st.DataObject) -> None:
    cells = complete()
    stubs = json.loads(json.dumps(release_view(tiny()[0])))["cells"]
    for place in data.draw(st.sets(st.integers(0, len(cells) - 1))):
        cells[place] = stubs[place]
    untouched = {c["id"] for c, stub in zip(cells, stubs, strict=True) if c["source"] == stub["source"]}
    for number in data.draw(st.sets(st.integers(0, len(cells) - 1), max_size=4)):
        if cells[number]["id"] not in untouched:
            cut = data.draw(st.integers(0, len(cells[number]["source"])))
            cells[number]["source"] = cells[number]["source"][:cut] + data.draw(st.text(max_size=5))
            if data.draw(st.booleans()):
                cells[number]["metadata"] = data.draw(VALUES)
    extra = {"cell_type": "code", "metadata": {}, "source": data.draw(st.text("xyz=1 \n", max_size=12))}
    cells.insert(data.draw(st.integers(0, len(cells))), extra)
    try:
        result = rebuilt(cells)
    except Unreadable:
        return
    keeps_what_is_given(result)
    for cell in result.cells:
        if cell.kind == "solution" and cell.cell_id in untouched:
            assert not cell.answered and cell.source == cell.released
