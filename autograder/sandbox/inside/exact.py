"""Values that cross as themselves where a test cell may ask for their types: see `exact` of `protocol.pack`.

Their nodes hold texts, numbers and further values, which are read as carefully as all others. Tables of pandas cross
where pandas is installed; what of them is not plain (categories, several levels of an index) makes the whole an object
that stays on its side.
"""

from __future__ import annotations

import builtins
import sys
from collections import Counter, deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from autograder.sandbox.inside import protocol
from autograder.sandbox.inside.protocol import Node, ProtocolError, Step

MOST_DIGITS = 2_000
TABLES = ("DataFrame", "Series")
TIMES = ("datetime64[s]", "datetime64[ms]", "datetime64[us]", "datetime64[ns]")


def _pack_decimal(value: Decimal, *_: Any) -> Node:
    return {"decimal": str(value)}


def _read_decimal(node: Node, *_: Any) -> Decimal:
    value = Decimal(node["decimal"])
    if value.is_finite() and max(len(value.as_tuple().digits), abs(value.adjusted())) > MOST_DIGITS:
        raise ProtocolError("a number is too long")
    return value


def _pack_fraction(value: Fraction, way: Any, depth: int) -> Node:
    return {"fraction": [way.pack(n, depth + 1) for n in (value.numerator, value.denominator)]}


def _read_fraction(node: Node, way: Any, depth: int) -> Fraction:
    above, below = node["fraction"]
    if type(above) is not int or type(below) is not int:
        raise ProtocolError("a fraction is made of whole numbers")
    return Fraction(above, below)


def _pack_moment(value: Any, *_: Any) -> Node:
    if getattr(value, "tzinfo", None) is not None:
        raise ProtocolError("a time with a zone")
    return {type(value).__name__: value.isoformat()}


def _read_moment(kind: Any, node: Node, *_: Any) -> Any:
    return kind.fromisoformat(node[kind.__name__])


def _pack_timedelta(value: timedelta, *_: Any) -> Node:
    return {"timedelta": [value.days, value.seconds, value.microseconds]}


def _pack_type(value: type, *_: Any) -> Node:
    if getattr(builtins, value.__name__, None) is not value:
        raise ProtocolError("a class of one side only")
    return {"type": value.__name__}


def _read_type(node: Node, *_: Any) -> type:
    found = getattr(builtins, node["type"])
    if not isinstance(found, type):
        raise ProtocolError("no type")
    return found


def _series(tag: str, make: Callable[[list[Any]], Any], is_keys: bool) -> tuple[Step, Step]:
    def pack_items(value: Any, way: Any, depth: int) -> Node:
        if getattr(value, "maxlen", None) is not None:
            raise ProtocolError("a series that drops what does not fit")
        return {tag: [way.pack(item, depth + 1) for item in value]}

    def read_items(node: Node, way: Any, depth: int) -> Any:
        body = way.count_keys(node[tag]) if is_keys else node[tag]
        return make([way.read(item, depth + 1) for item in body])

    return pack_items, read_items


def _pack_counter(value: Counter[Any], way: Any, depth: int) -> Node:
    return {"counter": [[way.pack(k, depth + 1), way.pack(n, depth + 1)] for k, n in value.items()]}


def _read_counter(node: Node, way: Any, depth: int) -> Counter[Any]:
    return Counter({way.read(k, depth + 1): way.read(n, depth + 1) for k, n in way.count_keys(node["counter"])})


def _pack_objects(value: Any, way: Any, depth: int) -> Node:
    return {"objects": [_only_data(v, way, depth + 1) for v in value.ravel().tolist()], "shape": list(value.shape)}


def _read_objects(node: Node, way: Any, depth: int) -> np.ndarray:
    items = [way.read(item, depth + 1) for item in node["objects"]]
    array = np.empty(len(items), object)
    for place, item in enumerate(items):  # one by one: lists among them stay lists
        array[place] = item
    return array.reshape(node["shape"])


# ----------------------------------------------------------------------------------------------------- tables


def _pack_values(values: Any, way: Any, depth: int) -> Node:
    """The values of a column or an index: numbers as an array, texts and objects one by one."""
    kind = str(values.dtype)
    if kind in TIMES:
        return {"values": way.pack(values.to_numpy().view("i8"), depth + 1), "dtype": kind}
    if kind in ("object", "str"):
        plain = [None if kind == "str" and not isinstance(v, str) else v for v in values.tolist()]
        return {"values": [_only_data(v, way, depth + 1) for v in plain], "dtype": kind}
    if not isinstance(values.dtype, np.dtype) or values.dtype.kind not in "biuf":
        raise ProtocolError("a column of another kind")
    return {"values": way.pack(values.to_numpy(), depth + 1), "dtype": ""}


def _only_data(value: Any, way: Any, depth: int) -> Any:
    node = way.pack(value, depth)
    if isinstance(node, dict) and "handle" in node:
        raise ProtocolError("an object in a table")
    return node


def _read_values(node: Node, way: Any, depth: int, make: Any) -> Any:
    kind, body = node["dtype"], node["values"]
    if kind in ("object", "str"):
        return make([way.read(v, depth + 1) for v in body], dtype=kind)
    values = way.read(body, depth + 1)
    if not isinstance(values, np.ndarray) or values.ndim != 1 or kind not in ("", *TIMES):
        raise ProtocolError("a column is a row of numbers")
    return make(values.view(kind) if kind else values)


def _pack_index(index: Any, way: Any, depth: int) -> Node:
    pandas = sys.modules["pandas"]
    if type(index) is pandas.RangeIndex:
        return {"range": [index.start, index.stop, index.step], "name": _only_data(index.name, way, depth)}
    if type(index) not in (pandas.Index, pandas.DatetimeIndex) or getattr(index, "freq", None) is not None:
        raise ProtocolError("an index of another kind")
    return {**_pack_values(index, way, depth), "name": _only_data(index.name, way, depth)}


def _read_index(node: Node, way: Any, depth: int) -> Any:
    import pandas

    name = way.read(node["name"], depth)
    if "range" in node:
        return pandas.RangeIndex(way.read({"range": node["range"]}, depth), name=name)
    return _read_values(node, way, depth, partial(pandas.Index, name=name))


def _pack_series(value: Any, way: Any, depth: int) -> Node:
    name = _only_data(value.name, way, depth + 1)
    return {"series": _pack_values(value, way, depth), "index": _pack_index(value.index, way, depth), "name": name}


def _read_series(node: Node, way: Any, depth: int) -> Any:
    import pandas

    index, name = _read_index(node["index"], way, depth), way.read(node["name"], depth + 1)
    return _read_values(node["series"], way, depth, partial(pandas.Series, index=index, name=name))


def _pack_frame(value: Any, way: Any, depth: int) -> Node:
    columns = [_pack_values(value.iloc[:, number], way, depth) for number in range(value.shape[1])]
    index, names = (_pack_index(one, way, depth) for one in (value.index, value.columns))
    return {"frame": columns, "index": index, "columns": names}


def _read_frame(node: Node, way: Any, depth: int) -> Any:
    import pandas

    index, names = (_read_index(node[what], way, depth) for what in ("index", "columns"))
    columns = [_read_values(c, way, depth, partial(pandas.Series, index=index)) for c in way.count_keys(node["frame"])]
    frame = pandas.DataFrame(dict(enumerate(columns)), index=index)
    frame.columns = names
    return frame


def is_table(value: Any) -> bool:
    """Whether it is a table of pandas or a column of one."""
    pandas = sys.modules.get("pandas")
    return type(value) in [getattr(pandas, name, None) for name in TABLES]


def know_tables() -> None:
    """Let tables cross from now on, if pandas is there already: nobody who has none waits for its import."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and hasattr(pandas, "Series"):
        protocol.add_codecs({pandas.Series: _pack_series, pandas.DataFrame: _pack_frame}, {})


pack_deque, read_deque = _series("deque", deque, False)
pack_frozenset, read_frozenset = _series("frozenset", frozenset, True)
protocol.add_codecs(
    {
        Decimal: _pack_decimal,
        Fraction: _pack_fraction,
        **dict.fromkeys((date, datetime, time), _pack_moment),
        timedelta: _pack_timedelta,
        Counter: _pack_counter,
        type: _pack_type,
        deque: pack_deque,
        frozenset: pack_frozenset,
        np.object_: _pack_objects,  # arrays of them
    },
    {
        "decimal": _read_decimal,
        "fraction": _read_fraction,
        **{kind.__name__: partial(_read_moment, kind) for kind in (date, datetime, time)},
        "timedelta": lambda node, *_: timedelta(*map(int, node["timedelta"])),
        "counter": _read_counter,
        "type": _read_type,
        "deque": read_deque,
        "frozenset": read_frozenset,
        "objects": _read_objects,
        "series": _read_series,
        "frame": _read_frame,
    },
)
