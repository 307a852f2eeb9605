"""Files as students hand them in: which one is meant, what is in it, or in one line why it cannot be read."""

import gc
import json
import os
import random
import time
import tracemalloc
from copy import deepcopy
from itertools import pairwise

import nbformat
import pytest
from notebooks import (
    NAME,
    find,
    make,
)

from autograder.notebook.finder import find_notebook
from autograder.notebook.names import additions, bound_names, needed_names, used_names
from autograder.notebook.reader import MAX_BYTES, Unreadable, read_bytes, read_notebook

# --- reading ------------------------------------------------------------------------------------------------


@pytest.fixture
def raw(done):
    find(done, "why").source = "Größe – naïve “Ω”"
    return json.dumps(done, ensure_ascii=False)


@pytest.mark.parametrize(
    ("encode", "note"),
    [
        (lambda t: t.encode(), ""),
        (lambda t: t.replace("\n", "\r\n").encode(), ""),
        (lambda t: b"\xef\xbb\xbf" + t.encode(), "byte order mark"),
        (lambda t: t.encode("utf-16"), "UTF-16"),
        (lambda t: t.encode("utf-16-be"), "UTF-16-BE"),
        (lambda t: t.encode("utf-32"), "UTF-32"),
        (lambda t: t.encode() + b"\n}} trailing", "behind the end"),
        (lambda t: t.encode() + b"\0" * 64, "NUL"),
        (lambda t: b"\0" + t.replace("Größe", "Grö\0ße").encode(), "NUL"),
        (lambda t: t.replace("Größe", "Grö\\u0000ße").encode(), "NUL"),
        (lambda t: json.dumps({"type": "notebook", "content": json.loads(t)}).encode(), ""),
    ],
)
def test_encodings_and_debris(raw, encode, note):
    notebook, notes = read_notebook(encode(raw), "a.ipynb")
    nbformat.validate(notebook)
    assert find(notebook, "why").source == "Größe – naïve “Ω”"
    assert note in "\n".join(notes) and bool(notes) == bool(note)


def test_windows_encoding_and_broken_characters(raw):
    notebook, notes = read_notebook(raw.replace("Ω", "").encode("cp1252"), "a.ipynb")
    assert find(notebook, "why").source == "Größe – naïve “”" and "Windows" in notes[0]
    notebook, notes = read_notebook(raw.encode().replace("ö".encode(), b"\xc3"), "a.ipynb")
    assert find(notebook, "why").source == "Gr�ße – naïve “Ω”" and "broken" in notes[0]
    notebook, notes = read_notebook(raw.replace("Größe", "\\ud800 \\ud83d\\ude00").encode(), "a.ipynb")
    assert find(notebook, "why").source.startswith("� 😀") and "broken" in notes[0]
    notebook, _ = read_notebook(raw.replace("Größe", "\ud83d\ude00").encode("utf-8", "surrogatepass"), "a.ipynb")
    assert find(notebook, "why").source.startswith("😀")


def test_old_formats_and_incomplete_cells(done, hand_in):
    old = nbformat.convert(deepcopy(done), 3)
    notebook, notes = read_notebook(json.dumps(old).encode(), "a.ipynb")
    nbformat.validate(notebook)
    assert [c.source for c in notebook.cells] == [c.source for c in done.cells]
    assert "old format" in notes[0]
    old["nbformat"] = 2
    old["worksheets"][0]["cells"].append({"cell_type": "heading", "level": 2, "source": "Con\nclusion"})
    notebook, _ = read_notebook(json.dumps(old).encode(), "a.ipynb")
    assert notebook.cells[-1].source == "## Con clusion"
    odd = {
        "cells": [
            {"source": ["a = 1", "b = 2"], "outputs": []},
            {"source": ["x\n", "y"], "cell_type": "markdown", "metadata": None, "id": "not valid!"},
            {"cell_type": "code", "id": "same"},
            {"cell_type": "code", "id": "same", "source": 3},
            "no cell",
            {"metadata": {"id": "colab-id", "tags": ["a,b", "a,b", 3], "nbgrader": {"grade_id": [1]}}},
        ],
        "nbformat": 5,
    }
    notebook, notes = read_notebook(json.dumps(odd).encode(), "a.ipynb")
    nbformat.validate(notebook)
    assert [c.source for c in notebook.cells] == ["a = 1\nb = 2", "x\ny", "", "", ""]
    assert [c.id for c in notebook.cells] == ["cell-0", "cell-1", "same", "cell-3", "colab-id"]
    assert notebook.cells[4].metadata == {"tags": ["a;b"]}
    assert len(notes) == 3


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b"\0\0 \n", "is empty"),
        (b"PK\x03\x04rest", "zip"),
        (b"<!DOCTYPE html><html>", "web page"),
        (b"%PDF-1.7", "PDF"),
        (b"\x89PNG\r\n", "picture"),
        (b"import numpy as np\n", "Python script"),
        (b"[1, 2]", "JSON file"),
        (b'{"paragraphs": []}', "without notebook cells"),
        (b'{"cells": 3}', "without notebook cells"),
        (b'{"cells": [{"source": "a', "ends in the middle"),
        (b'{"cells": [{"source": "a"', "ends in the middle"),
        (b'{"cells": [}, "metadata": {}, "nbformat": 4}', "damaged at line 1, column 12"),
        (b'{\n<<<<<<< HEAD\n"cells": []\n>>>>>>> b\n}', "merge conflict"),
        (b'{"a":' * 200_000, "nested too deeply"),
        (b'{"cells": [], "n": ' + b"9" * 6000 + b"}", "number too long"),
        (b'{"cells": [' + b"{}," * 6000 + b"{}]}", "6001 cells"),
        (b"[" + b"{}," * 3_000_000, "far more data"),
        (json.dumps({"cells": [{"source": "x = 1\n" * 10**6}]}).encode(), "6,000,000 characters"),
        (b" " * (MAX_BYTES + 1), "at most 20 MB"),
    ],
)
def test_unreadable_files_say_why_in_one_line(data, says):
    with pytest.raises(Unreadable, match=says) as caught:
        read_notebook(data, "an \n evil\u202ename.ipynb")
    assert "\n" not in str(caught.value) and str(caught.value).endswith((".", "again."))


def test_random_damage_never_raises_anything_but_unreadable(raw):
    rng = random.Random(7)
    good = raw.encode()
    for _ in range(1500):
        data = bytearray(good)
        for _ in range(rng.randrange(1, 8)):
            at = rng.randrange(len(data) + 1)
            match rng.randrange(5):
                case 0:
                    data[at : at + 1] = rng.randbytes(1)
                case 1:
                    del data[at : at + rng.randrange(1, 200)]
                case 2:
                    data[at:at] = rng.choice([b"\0", b"null", b"[]", b'"', b"{", b"\xed\xa0\x80", b"1e999", b"NaN"])
                case 3:
                    data[at:at] = data[rng.randrange(len(data) + 1) :][:300]
                case 4:
                    data = bytearray(rng.choice([data.replace(b'"', b"'"), data[::-1], data + data, data[at:]]))
        try:
            notebook, notes = read_notebook(bytes(data), "a.ipynb")
        except Unreadable:
            continue
        nbformat.validate(notebook)
        json.dumps([notebook, notes]).encode()


def test_random_values_in_place_of_fields(raw):
    rng = random.Random(9)
    values = [None, 3, -1.5, "", "x", [], {}, [None], {"a": [1]}, True, float("nan"), ["a", ["b"]], "\ud800", 10**30]
    for _ in range(500):
        content = json.loads(raw)
        for _ in range(rng.randrange(1, 6)):
            place = content
            while True:
                key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
                if not isinstance(place[key], (dict, list)) or not place[key] or rng.random() < 0.2:
                    place[key] = deepcopy(rng.choice(values))
                    break
                place = place[key]
            if not content:
                break
        try:
            notebook, _ = read_notebook(json.dumps(content).encode(), "a.ipynb")
        except Unreadable:
            continue
        nbformat.validate(notebook)
        json.dumps(notebook).encode()


# --- finding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "taken"),
    [
        ([f"{NAME}.ipynb", f"{NAME} (1).ipynb", "z.ipynb"], f"{NAME}.ipynb"),
        ([f"{NAME} (1).ipynb"], f"{NAME} (1).ipynb"),
        ([f"{NAME} (10).ipynb", f"{NAME} (9).ipynb"], f"{NAME} (10).ipynb"),
        (["ps2.ipynb", "data.json"], "ps2.ipynb"),
        (["PS2 Self Attention.ipynb"], "PS2 Self Attention.ipynb"),
        ([f"Copy of {NAME}.ipynb", "notes.ipynb"], f"Copy of {NAME}.ipynb"),
        ([f"Copy of Copy of {NAME}-Copy2.ipynb"], f"Copy of Copy of {NAME}-Copy2.ipynb"),
        ([f"{NAME}.ipynb.txt"], f"{NAME}.ipynb.txt"),
        ([f"{NAME}.json", f"{NAME}.png"], f"{NAME}.json"),
        ([f"work/{NAME}.ipynb", f"work/.ipynb_checkpoints/{NAME}.ipynb"], f"work/{NAME}.ipynb"),
        ([f"attempt 2/{NAME}.ipynb", f"attempt 1/{NAME}.ipynb"], f"attempt 2/{NAME}.ipynb"),
        (["jane_doe_ps2 final.ipynb", "other.ipynb"], "jane_doe_ps2 final.ipynb"),
        (["old.ipynb", "new.ipynb"], "new.ipynb"),
        (["Übung “2”.ipynb"], "Übung “2”.ipynb"),
        (["ps3-multi-head.ipynb", "readme.txt"], None),
        ([f"a/b/{NAME}.ipynb"], None),
        ([f"__MACOSX/{NAME}.ipynb", f"._{NAME}.ipynb"], None),
        ([], None),
    ],
)
def test_the_file_that_stands_for_the_set(tmp_path, names, taken):
    make(tmp_path, *names)
    path, notes = find_notebook(tmp_path, NAME)
    assert path == (taken and tmp_path / taken)
    if taken and taken != f"{NAME}.ipynb":
        assert notes[0] == f"Your file was called '{taken}'; it was graded as {NAME}.ipynb."
    if len(names) > 1 and taken == f"{NAME}.ipynb":
        assert "There were other files too" in notes[0]


def test_links_out_of_the_folder_are_not_followed(tmp_path):
    make(tmp_path, "other/secret.ipynb", "mine/work.ipynb")
    (tmp_path / "mine" / f"{NAME}.ipynb").symlink_to(tmp_path / "other" / "secret.ipynb")
    (tmp_path / "mine" / "sub").symlink_to(tmp_path / "other")
    (tmp_path / "mine" / f"{NAME} (1).ipynb").symlink_to("nowhere")
    path, notes = find_notebook(tmp_path / "mine", NAME)
    assert path == tmp_path / "mine" / "work.ipynb" and sum("is a link" in n for n in notes) == 3
    assert find_notebook(tmp_path / "absent", NAME) == (None, [])


def test_files_that_are_no_files(tmp_path):
    make(tmp_path, "good.ipynb")
    assert read_bytes(tmp_path / "good.ipynb") == b"{}"
    os.mkfifo(tmp_path / f"{NAME}.ipynb")
    assert find_notebook(tmp_path, NAME)[0] == tmp_path / "good.ipynb"
    for name, says in ((f"{NAME}.ipynb", "not an ordinary file"), ("gone.ipynb", "cannot be opened")):
        with pytest.raises(Unreadable, match=says):
            read_bytes(tmp_path / name)
    with (tmp_path / "big.ipynb").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(Unreadable, match="at most 20 MB"):
        read_bytes(tmp_path / "big.ipynb")


# --- names --------------------------------------------------------------------------------------------------


def test_names_in_cells():
    assert bound_names("import a.b as c\nx, (y, *z) = 1, (2, 3)\nclass K: w = 1\nif x:\n  for i in y: d = 1") == set(
        "xyzKid"
    )
    assert bound_names("import a.b, c as d", imports=True) == {"a", "d"}
    assert bound_names("x: int\ny: int = 2\n%time z = 3\nq = !ls\nf?") == {"y", "z", "q"}
    assert bound_names("%%bash\nx=1") == set()
    assert bound_names("def f(:\nasync def g():\nclass H\nk = 2\nk == 3\n  n = 1") == {"f", "g", "H", "k"}
    assert used_names("def f(a, b=one):\n    c = two(a)\n    return [d.e for d in c] + list(three)") == {
        "one",
        "two",
        "three",
    }
    assert used_names("def f(:") == set()
    assert additions("import a\nimport m\nassert 0\n%who\n@d\ndef g(): pass\ndef f(): 2", "import a\ndef f(): 1") == (
        "import m\n%who\n@d\ndef g(): pass"
    )
    assert additions("def f(:", "") is None


def test_names_that_a_cell_binds_before_it_reads_them_are_not_needed():
    assert needed_names("from a import check\nx = f(y)\ncheck(x)") == {"f", "y"}
    assert needed_names("check(x)\nx = 1") == {"check", "x"}
    assert needed_names("if y:\n    x = 1\nprint(x)") == {"x", "y"}  # not always bound
    assert needed_names("def g():\n    return h(k)\nk = 1\ng()") == {"h", "k"}
    assert needed_names("k = 1\ndef g():\n    return h(k)\ng()") == {"h"}
    assert needed_names("x = = 1") == set()


@pytest.mark.parametrize("line", [" ", "\t", "a", "a,", "a =", "%time ", "?", ".", "a?", "\n ", "def ", "async ", "a:"])
def test_long_lines_take_no_more_than_their_length(line: str):
    """The class waits meanwhile, in one process: of 200,000 blanks each look at a cell once took a minute."""
    before = time.process_time()
    assert bound_names("x = 1\n" + line * (1_900_000 // len(line)) + "\n= =") >= {"x"}
    assert used_names("x = y\n" + " " * 50_000 + "\nz") == {"y", "z"}
    assert time.process_time() - before < 10


@pytest.mark.parametrize("name", ["a" + ".a" * 9_000, "a" + " . \\\n a" * 9_000])
def test_endless_dotted_names_do_not_fill_the_memory(name: str):
    """Python keeps each beginning of one: 200,000 characters took ten gigabytes in the process of the class."""
    tracemalloc.start()
    try:
        for text in (f"x = 1\nimport {name}", f"x = 1\nfrom {name} import b", f"x = 1\n@{name}\ndef f(): pass"):
            assert bound_names(text) >= {"x"} and used_names(text) == set()
        assert tracemalloc.get_traced_memory()[1] < 10 * 2**20
    finally:
        tracemalloc.stop()
    assert bound_names("import a.b.c as x\ny = x" + ".T" * 100, imports=True) == {"x", "y"}


@pytest.mark.slow
def test_no_more_is_kept_of_a_long_cell_than_of_none():
    """What a stranger wrote is looked through once; of a million brackets hundreds of megabytes would stay."""
    tracemalloc.start()
    held = []
    try:
        for letter in "abc":
            text = f"{letter} = 1\n" + "(),\n" * 6_000 + ";".join(f"{letter}{n}=1" for n in range(1_500))
            assert len(bound_names(text)) == 1_501 and used_names(text) == set()
            assert needed_names(text) == set() and additions(text, "") is not None
            del text
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
        # what is kept is kept of each; Python's own table of names grows once, by megabytes
        assert min(after - before for before, after in pairwise(held)) < 2**20, held
    finally:
        tracemalloc.stop()
