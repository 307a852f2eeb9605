"""Values as data: what crosses between the grader process and a student process.

Values cross by copy: `pack` turns plain data into JSON nodes and `.npy` blobs, `unpack` turns them back into exact
built-in types, arrays and tensors. Anything else crosses as a handle (an id that only its own side can resolve).
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
from typing import Any, Literal, NamedTuple

import numpy as np

MAX_BLOBS = 256 * 1024 * 1024
MAX_DEPTH = 40
MAX_INT_BITS = 4096
MAX_KEYS = 4_000  # of all dicts and sets of a message: keys chosen to collide take time in the square of their number
MAX_KEPT_HEADER = 256  # bytes of an array's header that are kept beside what they say
MAX_RANGE = 1_000_000  # a range is small on the way and large as an array
ARRAY_KINDS = "biufcUS"
TENSOR_TYPES = frozenset(
    [
        *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
        *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    ]
)
NPY_START = b"\x93NUMPY\x01\x00"
NPY_HEAD = len(NPY_START) + 2  # bytes before the header's text; the last two hold the text's length
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufcUS]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n"
)
DTYPE = re.compile(r"[<>|=][biufcUS]\d{1,9}")


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


class _NotPlain(Exception):
    """Raised inside `pack` when a value is not plain data."""


Blobs = list[bytes]
Node = dict[str, Any]
Header = dict[str, Any]
Message = tuple[Header, Blobs]
Other = Callable[[Any], Any]
Packer = Callable[[Any, Blobs, Other, int], Any]
Reader = Callable[[Node, Blobs, Other, int, "Reading"], Any]


# ---------------------------------------------------------------------------------------------- values


@lru_cache(maxsize=4096)
def _npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Magic, version and header of a C-ordered `.npy`, as its format says; numpy's own takes 20 times as long."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    size = NPY_HEAD + len(text) + 1
    text += b" " * (-size % 64) + b"\n"
    return NPY_START + len(text).to_bytes(2, "little") + text


def _npy(array: np.ndarray) -> bytes:
    return _npy_header(array.dtype.str, array.shape) + array.tobytes()


class _Layout(NamedTuple):
    """What the header of `.npy` bytes states: the type as written and as this machine has it, shape, size, order."""

    dtype: np.dtype
    native: np.dtype
    shape: tuple[int, ...]
    size: int
    order: Literal["C", "F"]


@lru_cache(maxsize=4096)
def _npy_layout(head: bytes) -> _Layout:
    """What a header states. Raises ProtocolError."""
    match = NPY_HEADER.fullmatch(head[NPY_HEAD:]) if head.startswith(NPY_START) else None
    if match is None:
        raise ProtocolError("an array does not begin like one")
    dtype = np.dtype(match[1].decode())
    shape = tuple(int(n) for n in match[3].split(b",") if n.strip())
    if dtype.itemsize == 0 or len(shape) > 32 or (0 in shape and max(shape) > MAX_BLOBS):
        raise ProtocolError("impossible array shape")
    size = math.prod(shape) * dtype.itemsize
    return _Layout(dtype, dtype.newbyteorder("="), shape, size, "F" if match[2] == b"True" else "C")


def read_npy(blob: bytes) -> np.ndarray:
    """An array from `.npy` bytes, exactly as `_npy` writes them; every stated size is checked against what is there.

    numpy's own reader is not for strangers: it parses the header as Python and gives warnings.
    """
    header_end = NPY_HEAD + int.from_bytes(blob[NPY_HEAD - 2 : NPY_HEAD], "little")
    read = _npy_layout if header_end <= MAX_KEPT_HEADER else _npy_layout.__wrapped__
    dtype, native, shape, size, order = read(blob[:header_end])
    if size != len(blob) - header_end:
        raise ProtocolError("an array's shape does not fit its bytes")
    if size == 0:
        return np.empty(shape, native)
    view = np.ndarray(shape, dtype, blob, header_end, None, order)
    return view.astype(native, "C")  # a copy: the view cannot be written to


def pack(value: Any, blobs: Blobs, other: Other, depth: int = 0) -> Any:
    """A JSON node for `value`; arrays go to `blobs`. `other(value)` gives the node of what is not plain data.

    Subclasses of plain types are sent as the plain type: whatever they override stays behind.
    """
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        return other(value)
    try:
        packer = _PACKERS.get(type(value)) or _packer_of(value)
        return packer(value, blobs, other, depth)
    except _NotPlain:
        return other(value)


class Reading:
    """How one message is read: the keys that its dicts and sets may still have, and what tensors become.

    With `arrays`, tensors become arrays of the same numbers: a set without torch need not import it for one answer.
    """

    def __init__(self, arrays: bool = False) -> None:
        self.left = MAX_KEYS
        self.arrays = arrays

    def take(self, body: Any) -> Any:
        """The body of a dict or set, whose keys are counted. Raises ProtocolError."""
        self.left -= len(body)
        if self.left < 0:
            raise ProtocolError("too many keys")
        return body


def unpack(node: Any, blobs: Blobs, other: Other, depth: int = 0, reading: Reading | None = None) -> Any:
    """The value of a JSON node; `other(node)` resolves handles and callbacks. Raises ProtocolError, nothing else."""
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if depth > MAX_DEPTH + 1:
        raise ProtocolError("a message is nested too deeply")
    if not isinstance(node, dict) or not node:
        raise ProtocolError("a value has no type")
    try:
        if "array" in node:  # most values are
            return _read_array(node, blobs)
        tag = next(iter(node))
        if tag in ("handle", "callback"):
            return other(node)
        if tag not in _READERS:
            raise ProtocolError(f"unknown kind of value {tag!r}")
        return _READERS[tag](node, blobs, other, depth, reading or Reading())
    except ProtocolError:
        raise
    except Exception as error:  # whatever numpy, torch or Python think of a stranger's numbers
        raise ProtocolError(f"a value cannot be read: {type(error).__name__}") from None


# ---------------------------------------------------------------------------------------------- codecs


def _blob(index: Any, blobs: Blobs) -> bytes:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(blobs):
        raise ProtocolError("a value points at data that is not there")
    return blobs[index]


def _array_node(tag: str, array: np.ndarray, blobs: Blobs, **more: Any) -> Node:
    blobs.append(_npy(array))
    flags = array.flags
    if not flags.c_contiguous and array.ndim:
        more["layout"] = "fortran" if flags.f_contiguous else "strided"
    return {tag: len(blobs) - 1, **more}


def _laid_out(array: np.ndarray, layout: Any) -> np.ndarray:
    """The array in the memory layout that the sender had, so that code which needs contiguous arrays is found out."""
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def _packed(values: Iterable[Any], blobs: Blobs, other: Other, depth: int) -> list[Any]:
    return [pack(v, blobs, other, depth + 1) for v in values]


def _unpacked(nodes: Iterable[Any], blobs: Blobs, other: Other, depth: int, reading: Reading) -> list[Any]:
    return [unpack(n, blobs, other, depth + 1, reading) for n in nodes]


def _pack_array(value: Any, blobs: Blobs, other: Other, depth: int) -> Any:
    kind = value.dtype.kind
    if kind == "O":
        return pack(np.ndarray.tolist(value), blobs, other, depth + 1)
    if kind not in ARRAY_KINDS:
        raise _NotPlain
    return _array_node("array", np.asarray(value), blobs)


def _read_array(node: Node, blobs: Blobs, *_: Any) -> Any:
    return _laid_out(read_npy(_blob(node["array"], blobs)), node.get("layout"))


def _pack_scalar(value: Any, blobs: Blobs, *_: Any) -> Any:
    if value.dtype.kind not in ARRAY_KINDS:
        raise _NotPlain
    return _array_node("scalar", np.array(value), blobs)


def _read_scalar(node: Node, blobs: Blobs, *_: Any) -> Any:
    array = read_npy(_blob(node["scalar"], blobs))
    if array.shape != ():
        raise ProtocolError("a scalar has a shape")
    return array[()]


def _pack_tensor(value: Any, blobs: Blobs, *_: Any) -> Any:
    torch = sys.modules["torch"]
    if value.layout != torch.strided or value.is_quantized:
        raise _NotPlain
    name = _name_of(value.dtype)
    data = value.detach().cpu().resolve_conj().resolve_neg()
    if name == "bfloat16":  # which numpy does not know
        data = data.to(torch.float32)
    return _array_node("tensor", np.asarray(data.numpy()), blobs, dtype=name)


def _read_tensor(node: Node, blobs: Blobs, other: Other, depth: int, reading: Reading) -> Any:
    array = read_npy(_blob(node["tensor"], blobs))
    if reading.arrays:
        return array
    import torch

    return torch.from_numpy(array).to(_tensor_type(node.get("dtype")))


def _name_of(dtype: Any) -> str:
    """The name of a torch dtype that crosses."""
    name = str(dtype).removeprefix("torch.")
    if name not in TENSOR_TYPES:
        raise _NotPlain
    return name


def _tensor_type(name: Any) -> Any:
    import torch

    if not isinstance(name, str) or name not in TENSOR_TYPES:
        raise ProtocolError("unknown tensor type")
    return getattr(torch, name)


def _pack_int(value: int, *_: Any) -> int:
    number = int.__index__(value)
    if number.bit_length() > MAX_INT_BITS:
        raise _NotPlain
    return number


def _pack_float(value: float, *_: Any) -> Any:
    number = float.__float__(value)
    return number if math.isfinite(number) else {"float": repr(number)}


def _read_float(node: Node, *_: Any) -> float:
    if node["float"] not in ("nan", "inf", "-inf"):
        raise ProtocolError("a number that is written otherwise")
    return float(node["float"])


def _pack_dict(value: dict[Any, Any], *way: Any) -> Any:
    return {"dict": [_packed(item, *way) for item in dict.items(value)]}


def _read_dict(node: Node, blobs: Blobs, other: Other, depth: int, reading: Reading) -> Any:
    way = blobs, other, depth + 1, reading
    return {unpack(k, *way): unpack(v, *way) for k, v in reading.take(node["dict"])}


def _pack_range(value: range, *_: Any) -> Any:
    ends = [value.start, value.stop, value.step]
    if not all(abs(n) < 2**62 for n in ends) or len(value) > MAX_RANGE:
        raise _NotPlain
    return {"range": ends}


def _read_range(node: Node, *_: Any) -> range:
    ends = [int(v) for v in node["range"]]
    if not all(abs(n) < 2**62 for n in ends) or len(range(*ends)) > MAX_RANGE:
        raise ProtocolError("a range is too long")
    return range(*ends)


def _pack_dtype(value: Any, *_: Any) -> Any:
    if isinstance(value, type):
        if not issubclass(value, np.generic):
            raise _NotPlain
        value = np.dtype(value)
    if not DTYPE.fullmatch(value.str):
        raise _NotPlain
    return {"dtype": value.str}


def _read_dtype(node: Node, *_: Any) -> Any:
    if not isinstance(node["dtype"], str) or not DTYPE.fullmatch(node["dtype"]):
        raise ProtocolError("unknown array type")
    return np.dtype(node["dtype"])


class Codec(NamedTuple):
    """One kind of value: the tag of its nodes, what is packed so, how, and how a node is read.

    The tag is "" for what JSON knows itself. Types are given as such or, for torch, by name.
    """

    tag: str
    types: tuple[type, ...] | str
    pack: Packer
    read: Reader | None = None


def _series(
    tag: str, types: tuple[type, ...], items: Callable[[Any], Iterable[Any]], make: Callable[[list[Any]], Any]
) -> Codec:
    """What is a series of values; the members of a set count as keys."""

    def pack_items(value: Any, *way: Any) -> Any:
        return {tag: _packed(items(value), *way)}

    def read_items(node: Node, blobs: Blobs, other: Other, depth: int, reading: Reading) -> Any:
        body = reading.take(node[tag]) if make is set else node[tag]
        return make(_unpacked(body, blobs, other, depth, reading))

    return Codec(tag, types, pack_items, read_items)


# The first whose types fit packs a value: `np.float64` is a scalar of numpy's and a float, `np.str_` a text.
CODECS = (
    Codec("array", (np.ndarray,), _pack_array, _read_array),
    Codec("", (str,), lambda v, *_: str.__str__(v)),
    Codec("scalar", (np.generic,), _pack_scalar, _read_scalar),
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
    Codec("", (deque, array), lambda v, *way: {"list": _packed(v, *way)}),
    _series("set", (set, frozenset), iter, set),
    Codec("range", (range,), _pack_range, _read_range),
    _series("slice", (slice,), lambda v: (v.start, v.stop, v.step), lambda found: slice(*found)),
    Codec("ellipsis", (EllipsisType,), lambda v, *_: {"ellipsis": True}, lambda *_: Ellipsis),
    Codec("dtype", (np.dtype, type), _pack_dtype, _read_dtype),
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


def _packer_of(value: Any) -> Packer:
    """The packer for what is of no listed type itself, but of a subclass or of torch."""
    torch = sys.modules.get("torch")
    for codec in CODECS:
        types = getattr(torch, codec.types, ()) if isinstance(codec.types, str) else codec.types
        if isinstance(value, types):
            if type(value) is types:  # torch's own, known from now on
                _PACKERS[type(value)] = codec.pack
            return codec.pack
    raise _NotPlain
