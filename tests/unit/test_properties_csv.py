"""Whatever text goes out as CSV comes back the same, and no spreadsheet runs it."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.lms.csv_files import csv_text, guarded, read_table

FAST = settings(max_examples=100, deadline=None, print_blob=True)
RISKY = st.sampled_from(
    ["", "=", "+", "-", "@", "\t", "\r", "\n", "'", '"', ",", " =", "\ufeff=", "\u200b@", "＝", "-1"]
)
TEXT = st.builds(str.__add__, RISKY, st.text(max_size=30))


def as_sent(text: str) -> str:
    """What is left of a text that cannot be written: half characters and NUL."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "")


@FAST
@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=5))
def test_what_goes_out_is_read_back_and_is_no_formula(rows: list[list[str]]) -> None:
    text = csv_text(("a", "b"), rows)
    read = list(csv.reader(io.StringIO(text, newline="")))[1:]
    assert read == [[guarded(cell) for cell in row] for row in rows]
    for cell, sent in zip((c for row in read for c in row), (c for row in rows for c in row), strict=True):
        assert cell.replace("'", "") == as_sent(sent).replace("'", "")
        assert not cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) or cell == "-"


@FAST
@given(st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(";\t\n"), st.sampled_from(";\t"))
def test_nor_where_lines_are_cut_at_other_marks(texts: list[str], mark: str, cut: str) -> None:
    text = csv_text(("a", "b"), [["x", mark.join(["y", *texts])]])
    for cell in (cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=cut) for cell in row):
        assert not cell.lstrip(' \t\r\n\ufeff\u200b"').startswith(("=", "+", "-", "@", "\uff1d")), text


@FAST
@given(st.one_of(st.floats(-1e12, 1e12), st.integers(-(10**6), 10**6)))
def test_numbers_are_written_as_numbers(value: float) -> None:
    assert abs(float(guarded(value)) - value) <= 1e-9 * abs(value)


@FAST
@given(st.binary(max_size=200))
def test_any_bytes_are_a_table_or_one_line(tmp_path_factory, data: bytes) -> None:
    from autograder.errors import AutograderError

    path: Path = tmp_path_factory.getbasetemp() / "table.csv"
    path.write_bytes(data)
    try:
        table = read_table(path)
    except AutograderError as error:
        assert "\n" not in str(error)
        return
    assert all(len(row) == len(table.header) for row in table.rows) and len(table.lines) == len(table.rows)
