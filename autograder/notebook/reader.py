"""Read what a student handed in, however it was saved; where that fails, say why in one sentence.

A notebook is read for its cells' text and for what helps to recognise them (type, id, tags, nbgrader
metadata). Outputs, attachments and all other metadata are left behind: outputs are computed anew, the rest
comes from the instructor's notebook.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from nbformat.notebooknode import NotebookNode

from autograder.errors import AutograderError
from autograder.files import NotOrdinary, open_ordinary
from autograder.text import shown

MAX_BYTES = 20 * 1024 * 1024
MAX_CELLS = 5_000
MOST_LINES = 100  # of notes or events about one submission
MAX_TYPED = 2_000_000  # characters in all cells, pasted pictures not counted; a problem set has some 30,000
# Objects and lists in the JSON: far more than Jupyter writes into 20 MB, few enough to fit into memory.
MAX_OBJECTS = 2_000_000
AGAIN = "Save it in Jupyter (File → Save Notebook) and hand in the .ipynb file again."

_FORMATS = (  # how a file that is no notebook begins
    (rb"PK\x03\x04", "a zip archive or an Office document"),
    (rb"\x1f\x8b", "a compressed archive"),
    (rb"%PDF", "a PDF"),
    (rb"\x89PNG|\xff\xd8\xff|GIF8", "a picture"),
    (rb"(?i)\s*<(!doctype|html|head|body|script)", "a web page (HTML)"),
    (rb"\s*<", "an XML or HTML file"),
    (rb"\s*(#|import |from |def |\"\"\"|%%)", "a Python script or plain text"),
)


class Unreadable(AutograderError):
    """One clear sentence for student and instructor: what is wrong, where, how to mend."""


def few(lines: list[str]) -> list[str]:
    """The lines once each, and not endlessly many: what a submission makes us say must not fill the class's pages."""
    once = list(dict.fromkeys(lines))
    more = len(once) - MOST_LINES
    return once if more <= 0 else [*once[:MOST_LINES], f"… and {more} more of the kind."]


def read_bytes(path: Path) -> bytes:
    """The content of a submitted file; Unreadable where it is too big, no ordinary file or not permitted."""
    try:
        with open_ordinary(path) as file:
            _check_size(os.fstat(file.fileno()).st_size, path.name)
            return file.read(MAX_BYTES + 1)
    except NotOrdinary as error:
        raise Unreadable(f"'{shown(path.name)}' is not an ordinary file. {AGAIN}") from error
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise Unreadable(f"'{shown(path.name)}' cannot be opened ({reason}). Hand it in again.") from error


def read_notebook(data: bytes, name: str) -> tuple[NotebookNode, list[str]]:
    """An nbformat 4.5 notebook from any notebook version, and notes on what was mended.

    Every cell has an id, a type ("code" or "markdown") and a text with plain newlines; ids are the file's own
    where they are valid, else `cell-<position>`. Raises Unreadable, and nothing else, for any bytes.
    """
    notes: list[str] = []
    _check_size(len(data), name)
    if not data.strip(b"\0 \t\r\n"):
        raise Unreadable(f"'{shown(name)}' is empty ({len(data)} bytes). {AGAIN}")
    text = _decode(data, name, notes).lstrip("\ufeff\0 \t\r\n")
    content = _parse(text, data.removeprefix(b"\xef\xbb\xbf"), name, notes)
    cells = _cells_of(content, name, notes)
    used: set[str] = set()
    mended: set[str] = set()
    read = [_read_cell(cell, position, used, mended) for position, cell in enumerate(cells)]
    typed = sum(len(re.sub(r"data:image/[\w+.-]+;base64,[\w+/=]+", "", cell["source"])) for cell in read)
    if typed > MAX_TYPED:
        raise Unreadable(
            f"'{shown(name)}' has {typed:,} characters in its cells; at most {MAX_TYPED:,} are read. "
            f"Remove pasted data. {AGAIN}"
        )
    notes += sorted(mended)
    return NotebookNode(nbformat=4, nbformat_minor=5, metadata=NotebookNode(), cells=read), notes


def _check_size(size: int, name: str) -> None:
    if size > MAX_BYTES:
        raise Unreadable(
            f"'{shown(name)}' has {size / 2**20:.1f} MB; at most {MAX_BYTES // 2**20} MB are read. "
            "In Jupyter choose Edit → Clear Outputs of All Cells, save and hand it in again."
        )


def _decode(data: bytes, name: str, notes: list[str]) -> str:
    """Text of the file; UTF-8 is what Jupyter writes, everything else is mended and noted."""
    encoding = json.detect_encoding(data[:4])  # tells UTF-16 and UTF-32 by their mark or their zero bytes
    if data.count(b"\0") * 4 < len(data) and not encoding.startswith("utf-8"):
        encoding = "utf-8"  # a few stray NUL bytes
    if encoding not in ("utf-8", "utf-8-sig"):
        notes.append(f"'{shown(name)}' was saved as {encoding.upper()}; it was read all the same.")
        return data.decode(encoding, "replace")
    if encoding == "utf-8-sig":
        notes.append("The file began with a byte order mark; it was removed.")
    try:
        return data.decode("utf-8", "surrogatepass")  # halves are mended cell by cell
    except UnicodeDecodeError:
        text = data.decode("utf-8", "replace")
    broken = text.count("\ufffd")
    if sum(c > "\x7f" for c in text) - broken >= broken:
        notes.append("Some characters of the file were broken; they were replaced by �.")
        return text
    notes.append("The file was saved in an old Windows encoding; it was read as such.")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _parse(text: str, data: bytes, name: str, notes: list[str]) -> dict[str, Any]:
    """The JSON object at the beginning of the text."""
    if not text.startswith(("{", "[")):
        kind = next((kind for start, kind in _FORMATS if re.match(start, data)), "something else")
        raise Unreadable(f"'{shown(name)}' is {kind}, not a Jupyter notebook. {AGAIN}")
    if text.count("{") + text.count("[") > MAX_OBJECTS:
        raise Unreadable(f"'{shown(name)}' holds far more data than a notebook. Clear all outputs. {AGAIN}")
    if "\0" in text:
        text = text.replace("\0", "")
        notes.append("The file contained NUL bytes; they were removed.")
    try:
        content, end = json.JSONDecoder(strict=False).raw_decode(text)
    except json.JSONDecodeError as error:
        raise Unreadable(_what_is_wrong(text, error, name)) from error
    except (RecursionError, MemoryError) as error:
        raise Unreadable(f"'{shown(name)}' is nested too deeply for a notebook. {AGAIN}") from error
    except ValueError as error:  # a number of thousands of digits
        raise Unreadable(f"'{shown(name)}' contains a number too long to read. {AGAIN}") from error
    if text[end:].strip():
        notes.append("Something stood behind the end of the notebook in the file; it was left out.")
    if isinstance(content, dict) and isinstance(content.get("content"), dict) and "cells" not in content:
        content = content["content"]  # what the Jupyter server sends
    if not isinstance(content, dict):
        raise Unreadable(f"'{shown(name)}' is a JSON file, but not a Jupyter notebook. {AGAIN}")
    return content


def _what_is_wrong(text: str, error: json.JSONDecodeError, name: str) -> str:
    if re.search(r"(?m)^(<{7}|>{7}) ", text):
        return f"'{shown(name)}' contains marks of a git merge conflict. Resolve the conflict. {AGAIN}"
    if error.msg.startswith("Unterminated string") or error.pos >= len(text.rstrip()) - 5:
        return (
            f"'{shown(name)}' ends in the middle of the notebook (line {text.count(chr(10)) + 1}): "
            f"it was not saved or uploaded completely. {AGAIN}"
        )
    return f"'{shown(name)}' is damaged at line {error.lineno}, column {error.colno} ({error.msg}). {AGAIN}"


def _cells_of(content: dict[str, Any], name: str, notes: list[str]) -> list[dict[str, Any]]:
    """The cells of any notebook version: `cells`, or `worksheets` in versions 2 and 3."""
    cells = content.get("cells")
    worksheets = content.get("worksheets")
    if not isinstance(cells, list) and isinstance(worksheets, list):
        parts = [w.get("cells") for w in worksheets if isinstance(w, dict)]
        cells = [cell for part in parts if isinstance(part, list) for cell in part]
        notes.append("The notebook is in an old format; it was converted.")
    if not isinstance(cells, list):
        raise Unreadable(f"'{shown(name)}' is a JSON file without notebook cells. {AGAIN}")
    good = [cell for cell in cells if isinstance(cell, dict)]
    if len(good) < len(cells):
        notes.append(f"{len(cells) - len(good)} entries in the file were no cells; they were left out.")
    if len(good) > MAX_CELLS:
        raise Unreadable(f"'{shown(name)}' has {len(good)} cells; at most {MAX_CELLS} are read. {AGAIN}")
    return good


def _read_cell(cell: dict[str, Any], position: int, used: set[str], mended: set[str]) -> NotebookNode:
    metadata = cell.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    text = _text_of(cell, mended)
    cell_type = cell.get("cell_type")
    if cell_type == "heading":  # notebook version 3
        level = cell.get("level")
        text = "#" * (level if level in (1, 2, 3, 4, 5, 6) else 1) + " " + " ".join(text.split())
    elif cell_type not in ("code", "markdown", "raw", "html"):
        mended.add("Cells without a type were recognised by their content.")
        cell_type = "code" if {"outputs", "execution_count", "input"} & cell.keys() else "markdown"
    own_id = _id_of(cell, metadata, position, used)
    cell_type = "code" if cell_type == "code" else "markdown"
    return NotebookNode(new_cell(cell_type, text, own_id, _cell_metadata(metadata)))


def new_cell(cell_type: str, text: str, cell_id: str, metadata: dict[str, Any]) -> dict[str, Any]:
    """A cell without outputs; nbformat's own functions would validate each one against the schema (2 ms)."""
    cell = {"cell_type": cell_type, "id": cell_id, "metadata": metadata, "source": text}
    return cell | ({"execution_count": None, "outputs": []} if cell_type == "code" else {})


def _text_of(cell: dict[str, Any], mended: set[str]) -> str:
    raw = next((cell[key] for key in ("source", "input", "code", "text") if key in cell), "")
    if isinstance(raw, list):
        lines = [line for line in raw if isinstance(line, str)]
        # Some tools write the lines without their newlines.
        raw = ("" if any("\n" in line for line in lines) else "\n").join(lines)
    if not isinstance(raw, str):
        mended.add("A cell's text was no text; it was left out.")
        return ""
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        mended.add("Cells contained NUL characters; they were removed.")
    clean = _clean(text)
    if clean != text.replace("\0", ""):
        mended.add("Cells contained broken characters; they were replaced by �.")
    return clean.removeprefix("\ufeff")


def _clean(text: str) -> str:
    """The text without NUL and half characters (lone surrogates); a pair of halves is joined."""
    text = text.replace("\0", "")
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _id_of(cell: dict[str, Any], metadata: dict[str, Any], position: int, used: set[str]) -> str:
    """The cell's own id (Colab and Deepnote keep it in the metadata), the first of equal ones only."""
    for own in (cell.get("id"), metadata.get("id"), metadata.get("cell_id")):
        if isinstance(own, str) and re.fullmatch(r"[A-Za-z0-9_-]{1,64}", own) and own not in used:
            used.add(own)
            return own
    number = position
    while f"cell-{number}" in used:
        number += MAX_CELLS
    used.add(f"cell-{number}")
    return f"cell-{number}"


def _cell_metadata(metadata: dict[str, Any]) -> NotebookNode:
    """The nbgrader id, by which a cell is recognised, and the tags, of which the instructor is told."""
    kept = NotebookNode()
    nbgrader, tags = metadata.get("nbgrader"), metadata.get("tags")
    if isinstance(nbgrader, dict) and isinstance(nbgrader.get("grade_id"), str):
        kept["nbgrader"] = NotebookNode(grade_id=_clean(nbgrader["grade_id"]))
    if isinstance(tags, list):
        texts = [_clean(tag).replace(",", ";") for tag in tags[:50] if isinstance(tag, str) and tag]
        kept["tags"] = list(dict.fromkeys(texts))  # nbformat allows no commas and no doubles
    return kept
