"""Values as data: what crosses between the grader process and a student process.

Values cross by copy: `pack` turns plain data into JSON nodes and the bytes of arrays, `unpack` turns them back into
exact built-in types, arrays and tensors. Anything else crosses as a handle (an id that only its own side can resolve).
Nothing is ever pickled, and the reader trusts no length, shape, type or depth that the other side states.

This module runs on both sides of the sandbox, so it imports nothing of the package.
"""

from __future__ import annotations

import base64
import math
import re
import sys
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

MAX_DEPTH = 40
MAX_INT_BITS = 4096
MAX_KEYS = 4_000  # of all dicts and sets of a value: keys chosen to collide take time in the square of their number
MAX_RANGE = 1_000_000  # a range is small on the way and large as an array
TENSOR_TYPES = frozenset(
    [
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    ]
)
FORM = re.compile(r"([<>|=][biufcUS][0-9]{1,9})((?: [0-9]{1,8}){0,32})")


class ProtocolError(Exception):
    """Something is not plain data, or the other side sent what is not a message of this protocol."""


Blobs = list[bytes]
Node = dict[str, Any]
Header = dict[str, Any]
Message = tuple[Header, Blobs]
Other = Callable[[Any], Any]
Step = Callable[[Any, "_Crossing", int], Any]


# ---------------------------------------------------------------------------------------------- values


def pack(value: Any, blobs: Blobs, other: Other, exact: bool = False) -> Any:
    """A JSON node for `value`; arrays go to `blobs`. `other(value)` gives the node of what is not plain data.

    Subclasses of plain types are sent as the plain type: whatever they override stays behind. With `exact`, what comes
    out at the other end is of the very same type, or it is not plain data.
    """
    return _Crossing(blobs, other, exact=exact).pack(value, 0)


def unpack(
    node: Any, blobs: Blobs, other: Other, arrays: bool = False, used: set[int] | None = None, exact: bool = False
) -> Any:
    """The value of a JSON node; `other(node)` resolves handles and callbacks. Raises ProtocolError or MemoryError.

    A blob is read once, or a small message could fill the memory of who reads it; `used` are the numbers of those that
    were read, where several values share the blobs. With `arrays`, tensors become arrays of the same numbers: a set
    without torch need not import it for one answer. Only with `exact` may there be kinds of values that `pack` sends
    with it.
    """
    try:
        return _Crossing(blobs, other, arrays, used, exact).read(node, 0)
    except (ProtocolError, MemoryError):
        raise
    except Exception as error:  # whatever numpy, torch or Python think of a stranger's numbers
        raise ProtocolError(f"a value cannot be read: {type(error).__name__}") from None


class _Crossing:
    """A value on its way out or in: its blobs, what becomes of what is not plain, and how much it may still have."""

    def __init__(
        self, blobs: Blobs, other: Other, arrays: bool = False, used: set[int] | None = None, exact: bool = False
    ) -> None:
        self.blobs = blobs
        self.other = other
        self.arrays = arrays
        self.exact = exact
        self.used = set() if used is None else used
        self.keys_left = MAX_KEYS
        self.range_left = MAX_RANGE

    def pack(self, value: Any, depth: int) -> Any:
        if value is None or value is True or value is False:
            return value
        if depth > MAX_DEPTH:
            return self.other(value)
        try:
            packer = _exact_packer_of(value) if self.exact else _PACKERS.get(type(value)) or _packer_of(value)
            return packer(value, self, depth)
        except ProtocolError:
            return self.other(value)

    def read(self, node: Any, depth: int) -> Any:
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        if depth > MAX_DEPTH + 1:
            raise ProtocolError("a message is nested too deeply")
        if not isinstance(node, dict) or not node:
            raise ProtocolError("a value has no type")
        tag = next(iter(node))
        if tag in ("handle", "callback"):
            return self.other(node)
        reader = _READERS.get(tag) or (EXACT_READERS.get(tag) if self.exact else None)
        if reader is None:
            raise ProtocolError(f"unknown kind of value {tag!r}")
        return reader(node, self, depth)

    def count_keys(self, body: Any) -> Any:
        """The body of a dict or set, unless there are too many keys."""
        self.keys_left -= len(body)
        if self.keys_left < 0:
            raise ProtocolError("too many keys")
        return body


# ---------------------------------------------------------------------------------------------- codecs


@lru_cache(maxsize=4096)
def _form(dtype: np.dtype, shape: tuple[int, ...] = ()) -> str:
    """How type and shape of an array cross: `<f8 2 3`. Raises ProtocolError for what is not numbers or texts."""
    form = " ".join(map(str, (dtype.str, *shape)))
    _read_form(form)
    return form


@lru_cache(maxsize=4096)
def _read_form(form: str) -> tuple[np.dtype, np.dtype, tuple[int, ...], int]:
    """The type as written and as this machine has it, the shape, and the number of bytes. Raises ProtocolError."""
    match = FORM.fullmatch(form)
    if match is None:
        raise ProtocolError("unknown type or impossible shape of an array")
    dtype, shape = np.dtype(match[1]), tuple(map(int, match[2].split()))
    return dtype, dtype.newbyteorder("="), shape, math.prod(shape) * dtype.itemsize


def _array_node(tag: str, array: np.ndarray, way: _Crossing, **more: Any) -> Node:
    node = {tag: len(way.blobs), "form": _form(array.dtype, array.shape), **more}
    way.blobs.append(array.tobytes())
    flags = array.flags
    if not flags.c_contiguous and array.ndim:
        node["layout"] = "fortran" if flags.f_contiguous else "strided"
    return node


def _array_of(tag: str, node: Node, way: _Crossing) -> np.ndarray:
    """The array of a node, which can be written to; every stated size is checked against what is there."""
    index = node[tag]
    if type(index) is not int or not 0 <= index < len(way.blobs) or index in way.used:
        raise ProtocolError("a value points at data that is not there, or was read before")
    way.used.add(index)
    dtype, native, shape, size = _read_form(node["form"])
    if dtype.itemsize == 0 or size != len(way.blobs[index]):
        raise ProtocolError("an array's shape does not fit its bytes")
    array = np.ndarray(shape, dtype, way.blobs[index]).astype(native)
    # in the memory layout that the sender had, so that code which needs contiguous arrays is found out
    if node.get("layout") == "fortran":
        return np.asfortranarray(array)
    if node.get("layout") == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def _pack_array(value: Any, way: _Crossing, depth: int) -> Any:
    if value.dtype.kind == "O":
        return way.pack(np.ndarray.tolist(value), depth + 1)
    return _array_node("array", np.asarray(value), way)


def _pack_tensor(value: Any, way: _Crossing, *_: Any) -> Any:
    torch = sys.modules["torch"]
    if value.layout != torch.strided or value.is_quantized:
        raise ProtocolError("not a table of numbers")
    name = _name_of(value.dtype)
    data = value.detach().cpu().resolve_conj().resolve_neg()
    if name == "bfloat16":  # which numpy does not know
        data = data.to(torch.float32)
    return _array_node("tensor", np.asarray(data.numpy()), way, dtype=name)


def _read_tensor(node: Node, way: _Crossing, *_: Any) -> Any:
    array, name = _array_of("tensor", node, way), node.get("dtype")
    if array.dtype.name != ("float32" if name == "bfloat16" else name):  # it would grow sixteen times
        raise ProtocolError("a tensor is of another type than its numbers")
    if way.arrays:
        return array
    import torch

    return torch.from_numpy(array).to(_tensor_type(name))


def _name_of(dtype: Any) -> str:
    """The name of a torch dtype that crosses."""
    name = str(dtype).removeprefix("torch.")
    _tensor_type(name)
    return name


def _tensor_type(name: Any) -> Any:
    import torch

    if not isinstance(name, str) or name not in TENSOR_TYPES:
        raise ProtocolError("unknown tensor type")
    return getattr(torch, name)


def _pack_int(value: int, *_: Any) -> int:
    number = int.__index__(value)
    if number.bit_length() > MAX_INT_BITS:
        raise ProtocolError("a number is too long")
    return number


def _pack_float(value: float, *_: Any) -> Any:
    number = float.__float__(value)
    return number if math.isfinite(number) else {"float": repr(number)}


def _read_float(node: Node, *_: Any) -> float:
    if node["float"] not in ("nan", "inf", "-inf"):
        raise ProtocolError("a number that is written otherwise")
    return float(node["float"])


def _pack_dict(value: dict[Any, Any], way: _Crossing, depth: int) -> Any:
    return {"dict": [[way.pack(k, depth + 1), way.pack(v, depth + 1)] for k, v in dict.items(value)]}


def _read_dict(node: Node, way: _Crossing, depth: int) -> Any:
    return {way.read(k, depth + 1): way.read(v, depth + 1) for k, v in way.count_keys(node["dict"])}


def _range_of(ends: list[int], way: _Crossing) -> range:
    """A range, which is short here and long as an array; all ranges of a value together are bounded."""
    if not all(abs(n) < 2**62 for n in ends) or len(range(*ends)) > way.range_left:
        raise ProtocolError("a range is too long")
    way.range_left -= len(range(*ends))
    return range(*ends)


def _pack_range(value: range, way: _Crossing, *_: Any) -> Any:
    ends = [value.start, value.stop, value.step]
    _range_of(ends, way)
    return {"range": ends}


def _pack_dtype(value: Any, *_: Any) -> Any:
    if isinstance(value, type):
        if not issubclass(value, np.generic):
            raise ProtocolError("a class is no data")
        value = np.dtype(value)
    return {"dtype": _form(value)}


class Codec(NamedTuple):
    """One kind of value: the tag of its nodes, what is packed so, how, and how a node is read.

    The tag is "" for what JSON knows itself. Types are given as such or, for torch, by name.
    """

    tag: str
    types: tuple[type, ...] | str
    pack: Step
    read: Step | None = None


def _series(
    tag: str, types: tuple[type, ...], items: Callable[[Any], Iterable[Any]], make: Callable[[list[Any]], Any]
) -> Codec:
    """What is a series of values; the members of a set count as keys."""

    def pack_items(value: Any, way: _Crossing, depth: int) -> Any:
        return {tag: [way.pack(v, depth + 1) for v in items(value)]}

    def read_items(node: Node, way: _Crossing, depth: int) -> Any:
        body = way.count_keys(node[tag]) if make is set else node[tag]
        return make([way.read(n, depth + 1) for n in body])

    return Codec(tag, types, pack_items, read_items)


# The first whose types fit packs a value: `np.float64` is a scalar of numpy's and a float, `np.str_` a text.
CODECS = (
    Codec("array", (np.ndarray,), _pack_array, lambda node, way, _: _array_of("array", node, way)),
    Codec("", (str,), lambda v, *_: str.__str__(v)),
    Codec(
        "scalar",
        (np.generic,),
        lambda v, way, _: _array_node("scalar", np.array(v), way),
        lambda node, way, _: _array_of("scalar", node, way)[()],
    ),
    Codec("", (int,), _pack_int),
    Codec("float", (float,), _pack_float, _read_float),
    _series("tuple", (tuple,), tuple.__iter__, tuple),
    _series("list", (list,), list.__iter__, list),
    Codec("dict", (dict,), _pack_dict, _read_dict),
    Codec(
        "complex",
        (complex,),
        lambda v, *_: {"complex": [repr(v.real), repr(v.imag)]},
        lambda node, *_: complex(float(node["complex"][0]), float(node["complex"][1])),
    ),
    Codec("", (Fraction, Decimal), lambda v, *_: _pack_float(float(v))),
    Codec(
        "bytes",
        (bytes, bytearray),
        lambda v, *_: {"bytes": base64.b64encode(bytes(v)).decode()},
        lambda node, *_: base64.b64decode(node["bytes"], validate=True),
    ),
    Codec("", (deque, array), lambda v, way, depth: way.pack(list(v), depth)),
    _series("set", (set, frozenset), iter, set),
    Codec("range", (range,), _pack_range, lambda node, way, _: _range_of(node["range"], way)),
    _series("slice", (slice,), lambda v: (v.start, v.stop, v.step), lambda found: slice(*found)),
    Codec("ellipsis", (EllipsisType,), lambda v, *_: {"ellipsis": True}, lambda *_: Ellipsis),
    Codec("dtype", (np.dtype, type), _pack_dtype, lambda node, *_: _read_form(node["dtype"])[0]),
    Codec("tensor", "Tensor", _pack_tensor, _read_tensor),
    Codec(
        "torch_dtype",
        "dtype",
        lambda v, *_: {"torch_dtype": _name_of(v)},
        lambda node, *_: _tensor_type(node["torch_dtype"]),
    ),
)
_PACKERS = {kind: codec.pack for codec in CODECS if not isinstance(codec.types, str) for kind in codec.types}
_READERS = {codec.tag: codec.read for codec in CODECS if codec.read is not None}


def _packer_of(value: Any) -> Step:
    """The packer for what is of no listed type itself, but of a subclass or of torch."""
    torch = sys.modules.get("torch")
    for codec in CODECS:
        types = getattr(torch, codec.types, ()) if isinstance(codec.types, str) else codec.types
        if isinstance(value, types):
            if type(value) is types:  # torch's own, known from now on
                _PACKERS[type(value)] = codec.pack
            return codec.pack
    raise ProtocolError("no plain data")


# What crosses as itself only where types must stay as they are; elsewhere as what compares like it. See `exact.py`.
EXACT: dict[type, Step] = {}
EXACT_READERS: dict[str, Step] = {}
_AS_THEY_ARE = (np.ndarray, str, int, float, complex, bytes, tuple, list, dict, set, range, slice, EllipsisType)


def _exact_packer_of(value: Any) -> Step:
    kind = type(value)
    if kind in EXACT:
        return EXACT[kind]
    if kind is np.ndarray and value.dtype.kind == "O":
        return EXACT[np.object_]
    torch = sys.modules.get("torch")
    if kind in _AS_THEY_ARE or isinstance(value, (np.generic, np.dtype)) or kind is getattr(torch, "Tensor", None):
        return _PACKERS.get(kind) or _packer_of(value)
    raise ProtocolError("no plain data")


def add_codecs(packers: dict[type, Step], readers: dict[str, Step]) -> None:
    """Further kinds of values that cross as themselves; a node's tag names its reader."""
    EXACT.update(packers)
    EXACT_READERS.update(readers)
