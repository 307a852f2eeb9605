"""Properties of what crosses the channel and of closeness, on inputs that nobody chose."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from autograder.judging.recognition import ATOL, RTOL, close
from autograder.sandbox.inside.channel import FRAME, frame, parse
from autograder.sandbox.inside.protocol import MAX_INT_BITS, ProtocolError, pack, unpack

settings.register_profile("house", deadline=None, max_examples=100, derandomize=True)
settings.load_profile("house")


def refused(what: Any) -> Any:
    raise AssertionError(f"not plain data: {what!r}")


DTYPES = st.one_of(
    npst.boolean_dtypes(),
    npst.integer_dtypes(endianness="="),
    npst.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
    npst.complex_number_dtypes(endianness="=", sizes=(64, 128)),
)
ARRAYS = DTYPES.flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, min_side=0, max_side=4)))
# halves of surrogate pairs are no text of any file, and are replaced on purpose
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
INTEGERS = st.integers(-(2**MAX_INT_BITS) + 1, 2**MAX_INT_BITS - 1)


def keys(integers: st.SearchStrategy[int]) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), st.booleans(), integers, st.floats(), st.complex_numbers(), TEXTS, st.binary())


def plain(integers: st.SearchStrategy[int], *more: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Plain data: numbers, texts and arrays, and containers of them; `more` beside them."""
    return st.recursive(
        st.one_of(keys(integers), ARRAYS, *more),
        lambda inner: st.one_of(
            st.lists(inner, max_size=4),
            st.lists(inner, max_size=4).map(tuple),
            st.dictionaries(keys(integers), inner, max_size=4),
            st.sets(keys(integers), max_size=4),
        ),
        max_leaves=12,
    )


OTHERS = st.just(...), st.builds(range, st.integers(0, 50)), st.builds(slice, st.integers())
PLAIN = plain(INTEGERS, *OTHERS)
MEASURED = plain(st.integers(-(2**62), 2**62))  # what closeness is about: numbers that fit an array, and texts


def same(one: Any, other: Any) -> bool:
    """Equal to the last bit and type; NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, (set, frozenset)):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    if isinstance(one, (float, complex)):
        return repr(one) == repr(other)
    return bool(one == other)


def carried(value: Any) -> Any:
    """The value as it arrives on the other side."""
    blobs: list[bytes] = []
    data = frame({"value": pack(value, blobs, refused)}, blobs)
    size, _ = FRAME.unpack(data[: FRAME.size])
    header, found = parse(data[FRAME.size :][:size], data[FRAME.size + size :])
    return unpack(header["value"], found, refused)


@given(PLAIN)
def test_plain_data_cross_whole(value: Any) -> None:
    assert same(carried(value), value)


# Whatever a stranger writes: a value, or ProtocolError. A handle is none of the two ways to fail.
TAGS = ("array", "scalar", "tensor", "float", "complex", "bytes", "dict", "list", "tuple", "set", "range", "slice")
TAGS += ("ellipsis", "dtype", "torch_dtype", "handle", "callback", "layout", "unknown")
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(TAGS), inner, min_size=1, max_size=2)
    ),
    max_leaves=15,
)


@st.composite
def lying_arrays(draw: st.DrawFn) -> tuple[Any, list[bytes]]:
    """An array as it crosses, of which one thing that is said, or a stretch of its bytes, is something else."""
    blobs: list[bytes] = []
    node = pack(draw(ARRAYS), blobs, refused)
    said = draw(st.sampled_from([*node, "layout", "bytes"]))
    if said == "bytes":
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(blobs[0]))] * 2)))
        return node, [blobs[0][:start] + draw(st.binary(max_size=16)) + blobs[0][end:]]
    other = st.one_of(JSON, st.from_regex(r"\A[<>|=]?[a-zA-Z]\d{0,10}( -?\d{1,12}){0,4}\Z"))
    return {**node, said: draw(other)}, blobs


@settings(max_examples=250)
@given(st.one_of(lying_arrays(), st.tuples(JSON, st.lists(st.binary(max_size=80), max_size=3))))
@example(({"range": [0, 2**61, 1]}, []))
@example(({"set": [{"list": []}]}, []))
@example(({"complex": ["1" * 5000, "0"]}, []))
def test_a_strangers_value_is_read_or_refused(sent: tuple[Any, list[bytes]]) -> None:
    node, blobs = sent
    try:
        value = unpack(node, blobs, lambda handle: ("handle", sorted(handle)))
    except ProtocolError:
        return
    # what was read is data that the grader could have made itself
    again: list[bytes] = []
    pack(value, again, lambda other: {"list": []})


@settings(max_examples=250)
@given(st.binary(max_size=200), st.binary(max_size=40))
@example(b'{"m": {}, "b": [' + b"1e999" + b"]}", b"")
@example(b"[" * 100_000, b"")
def test_any_bytes_are_a_message_or_refused(head: bytes, body: bytes) -> None:
    try:
        header, blobs = parse(head, body)
    except ProtocolError:
        return
    assert isinstance(header, dict) and b"".join(blobs) == body


@given(
    st.dictionaries(st.text(max_size=5), JSON, max_size=3), st.lists(st.integers(-5, 50) | st.text() | st.booleans())
)
def test_sizes_of_blobs_are_believed_only_where_they_fit(header: dict[str, Any], sizes: list[Any]) -> None:
    body = bytes(40)
    try:
        _, blobs = parse(json.dumps({"m": header, "b": sizes}).encode(), body)
    except ProtocolError:
        return
    assert [len(b) for b in blobs] == sizes and sum(sizes) == len(body)


# ------------------------------------------------------------------------------------------------ closeness

FINITE = st.floats(-1e6, 1e6)
SOLID = npst.arrays(np.float64, npst.array_shapes(max_dims=3, max_side=4), elements=FINITE)


@given(MEASURED)
def test_everything_is_close_to_itself(value: Any) -> None:
    assert close(value, value)


@given(SOLID, st.floats(-0.99, 0.99))
def test_rounding_is_forgiven(value: np.ndarray, part: float) -> None:
    """Each number may be off by ATOL and by RTOL of itself."""
    assert close(value + part * (ATOL + RTOL * np.abs(value)), value)


@given(SOLID, st.data())
def test_one_number_that_is_off_is_noticed(value: np.ndarray, data: st.DataObject) -> None:
    """Off by twice what is forgiven there, in one place: in whatever order, the two are not the same."""
    place = data.draw(st.integers(0, value.size - 1))
    wrong = value.copy()
    largest = float(np.max(np.abs(value)))
    wrong.flat[place] += 2.5 * (max(ATOL, RTOL * ATOL * largest) + RTOL * abs(value.flat[place]))
    assert not close(wrong, value) and not close(value, wrong)


@given(st.one_of(st.none(), TEXTS, st.binary(), st.sets(TEXTS)), PLAIN)
def test_what_has_no_tolerance_is_the_same_in_both_orders(one: Any, other: Any) -> None:
    assert close(one, other) == close(other, one) == (type(one) is type(other) and one == other)


@given(SOLID, SOLID)
def test_closeness_is_symmetric_but_for_the_second_tolerance(one: np.ndarray, other: np.ndarray) -> None:
    """Where one order accepts and the other does not, the two differ by no more than RTOL of the difference more."""
    if close(one, other) != close(other, one):
        allowed = (
            ATOL + RTOL * np.maximum(np.abs(one), np.abs(other)) + RTOL * ATOL * float(np.max(np.abs([one, other])))
        )
        assert one.shape == other.shape and (np.abs(one - other) <= allowed).all()


@given(SOLID, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_what_is_no_number_is_close_to_nothing_else(value: np.ndarray, strange: float) -> None:
    wrong = value.copy()
    wrong.flat[0] = strange
    assert not close(wrong, value) and not close(value, wrong) and close(wrong, wrong.copy())
