"""Data-only messages between the grader process and a student process.

A message is one frame: two lengths, a JSON header, then `.npy` blobs. Values cross by copy: `pack` turns plain data
into JSON nodes and blobs, `unpack` turns them back into exact built-in types, arrays and tensors. Anything else
crosses as a handle (an id that only its own side can resolve). Nothing is ever pickled, and the reader trusts no
length, shape, type or depth that the other side states.

This module runs on both sides of the sandbox, so it imports nothing of the package.
"""

from __future__ import annotations

import base64
import json
import math
import re
import socket
import struct
import sys
import time
from array import array
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np

MAX_HEADER = 32 * 1024 * 1024
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
FRAME = struct.Struct("!IQ")
NPY_START = b"\x93NUMPY\x01\x00"
NPY_HEAD = len(NPY_START) + 2  # bytes before the header's text; the last two hold the text's length
NPY_HEADER = re.compile(
    rb"\{'descr': '([<>|][biufcUS]\d{1,9})', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n"
)
DTYPE = re.compile(r"[<>|=][biufcUS]\d{1,9}")
LONE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


class Closed(Exception):
    """The other side has gone."""


class TooLarge(Exception):
    """What is to be sent is larger than the other side reads."""


class Plain(Exception):
    """Raised inside `pack` when a value is not plain data."""


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


def _array_node(tag: str, array: np.ndarray, blobs: list[bytes], **more: Any) -> dict[str, Any]:
    blobs.append(_npy(array))
    flags = array.flags
    if not flags.c_contiguous and array.ndim:
        more["layout"] = "fortran" if flags.f_contiguous else "strided"
    return {tag: len(blobs) - 1, **more}


def _laid_out(array: np.ndarray, layout: Any) -> np.ndarray:
    """The array in the memory layout that the sender had, so that code which needs contiguous arrays is found out."""
    if layout is None:
        return array
    if layout == "fortran":
        return np.asfortranarray(array)
    if layout == "strided":
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return wide[..., ::2]
    return array


def _pack_tensor(torch: Any, value: Any, blobs: list[bytes]) -> dict[str, Any]:
    if value.layout != torch.strided or value.is_quantized:
        raise Plain
    name = str(value.dtype).removeprefix("torch.")
    if name not in TENSOR_TYPES:
        raise Plain
    data = value.detach().cpu().resolve_conj().resolve_neg()
    if name == "bfloat16":  # which numpy does not know
        data = data.to(torch.float32)
    return _array_node("tensor", np.asarray(data.numpy()), blobs, dtype=name)


def pack(value: Any, blobs: list[bytes], other: Callable[[Any], dict[str, Any]], depth: int = 0) -> Any:
    """A JSON node for `value`; arrays go to `blobs`. `other(value)` gives the node of what is not plain data.

    Subclasses of plain types are sent as the plain type: whatever they override stays behind.
    """
    if value is None or value is True or value is False:
        return value
    if depth > MAX_DEPTH:
        return other(value)
    try:
        return _pack_plain(value, blobs, other, depth)
    except Plain:
        return other(value)


def _pack_plain(value: Any, blobs: list[bytes], other: Callable, depth: int) -> Any:
    if isinstance(value, np.ndarray):
        kind = value.dtype.kind
        if kind == "O":
            return pack(np.ndarray.tolist(value), blobs, other, depth + 1)
        if kind not in ARRAY_KINDS:
            raise Plain
        return _array_node("array", np.asarray(value), blobs)

    def inner(item: Any) -> Any:
        return pack(item, blobs, other, depth + 1)

    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.generic):
        if value.dtype.kind not in ARRAY_KINDS:
            raise Plain
        return _array_node("scalar", np.array(value), blobs)
    if isinstance(value, int):
        number = int.__index__(value)
        if number.bit_length() > MAX_INT_BITS:
            raise Plain
        return number
    if isinstance(value, float):
        number = float.__float__(value)
        return number if math.isfinite(number) else {"float": repr(number)}
    if isinstance(value, tuple):
        return {"tuple": [inner(v) for v in tuple.__iter__(value)]}
    if isinstance(value, list):
        return {"list": [inner(v) for v in list.__iter__(value)]}
    if isinstance(value, dict):
        return {"dict": [[inner(k), inner(v)] for k, v in dict.items(value)]}
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (Fraction, Decimal)):
        return inner(float(value))
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, (deque, array)):
        return {"list": [inner(v) for v in value]}
    if isinstance(value, (set, frozenset)):
        return {"set": [inner(v) for v in value]}
    if isinstance(value, range):
        if not all(abs(n) < 2**62 for n in (value.start, value.stop, value.step)) or len(value) > MAX_RANGE:
            raise Plain
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, slice):
        return {"slice": [inner(value.start), inner(value.stop), inner(value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, type) and issubclass(value, np.generic):
        value = np.dtype(value)
    if isinstance(value, np.dtype):
        if not DTYPE.fullmatch(value.str):
            raise Plain
        return {"dtype": value.str}
    torch = sys.modules.get("torch")
    if torch is not None:
        if isinstance(value, torch.Tensor):
            return _pack_tensor(torch, value, blobs)
        if isinstance(value, torch.dtype) and str(value).removeprefix("torch.") in TENSOR_TYPES:
            return {"torch_dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.Size):
            return {"tuple": [int(v) for v in value]}
    raise Plain


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


def _tensor_type(name: Any) -> Any:
    import torch

    if not isinstance(name, str) or name not in TENSOR_TYPES:
        raise ProtocolError("unknown tensor type")
    return getattr(torch, name)


def _blob(index: Any, blobs: list[bytes]) -> bytes:
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(blobs):
        raise ProtocolError("a value points at data that is not there")
    return blobs[index]


class Reading:
    """How one message is read: the keys that its dicts and sets may still have, and what tensors become.

    With `arrays`, tensors become arrays of the same numbers: a set without torch need not import it for one answer.
    """

    def __init__(self, arrays: bool = False) -> None:
        self.left = MAX_KEYS
        self.arrays = arrays

    def take(self, body: Any) -> Any:
        self.left -= len(body)
        if self.left < 0:
            raise ProtocolError("too many keys")
        return body


def unpack(
    node: Any,
    blobs: list[bytes],
    other: Callable[[dict[str, Any]], Any],
    depth: int = 0,
    reading: Reading | None = None,
) -> Any:
    """The value of a JSON node; `other(node)` resolves handles and callbacks. Raises ProtocolError, nothing else."""
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if depth > MAX_DEPTH + 1:
        raise ProtocolError("a message is nested too deeply")
    if not isinstance(node, dict) or not node:
        raise ProtocolError("a value has no type")
    try:
        if "array" in node:  # most values are
            return _laid_out(read_npy(_blob(node["array"], blobs)), node.get("layout"))
        return _unpack_tagged(node, blobs, other, depth, reading or Reading())
    except ProtocolError:
        raise
    except Exception as error:  # whatever numpy, torch or Python think of a stranger's numbers
        raise ProtocolError(f"a value cannot be read: {type(error).__name__}") from None


def _unpack_tagged(node: dict[str, Any], blobs: list[bytes], other: Callable, depth: int, reading: Reading) -> Any:
    def inner(item: Any) -> Any:
        return unpack(item, blobs, other, depth + 1, reading)

    tag = next(iter(node))
    body = node[tag]
    if tag == "scalar":
        array = read_npy(_blob(body, blobs))
        if array.shape != ():
            raise ProtocolError("a scalar has a shape")
        return array[()]
    if tag == "tensor":
        if reading.arrays:
            return read_npy(_blob(body, blobs))
        import torch

        return torch.from_numpy(read_npy(_blob(body, blobs))).to(_tensor_type(node.get("dtype")))
    if tag == "float" and body in ("nan", "inf", "-inf"):
        return float(body)
    if tag == "complex":
        return complex(float(body[0]), float(body[1]))
    if tag == "bytes":
        return base64.b64decode(body, validate=True)
    if tag == "dict":
        return {inner(k): inner(v) for k, v in reading.take(body)}
    if tag == "list":
        return [inner(v) for v in body]
    if tag == "tuple":
        return tuple(inner(v) for v in body)
    if tag == "set":
        return {inner(v) for v in reading.take(body)}
    if tag == "range":
        value = range(*(int(v) for v in body))
        if not all(abs(int(v)) < 2**62 for v in body) or len(value) > MAX_RANGE:
            raise ProtocolError("a range is too long")
        return value
    if tag == "slice":
        return slice(*(inner(v) for v in body))
    if tag == "ellipsis":
        return Ellipsis
    if tag == "dtype":
        if not isinstance(body, str) or not DTYPE.fullmatch(body):
            raise ProtocolError("unknown array type")
        return np.dtype(body)
    if tag == "torch_dtype":
        return _tensor_type(body)
    if tag in ("handle", "callback"):
        return other(node)
    raise ProtocolError(f"unknown kind of value {tag!r}")


# ---------------------------------------------------------------------------------------------- frames


def frame(header: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """The bytes of one message."""
    blobs = blobs or []
    text = json.dumps({"m": header, "b": [len(b) for b in blobs]}, allow_nan=False, ensure_ascii=False)
    head = text.encode("utf-8", "replace")  # halves of surrogate pairs are text in no file and no database
    return FRAME.pack(len(head), sum(map(len, blobs))) + head + b"".join(blobs)


def parse(head: bytes, body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and blobs of one message. Raises ProtocolError."""
    try:
        data = json.loads(head)
        if b"\\u" in head and LONE_HALF.search(head):  # written by a stranger: `frame` never escapes
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
        header, sizes = data["m"], data["b"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"a message cannot be read: {type(error).__name__}") from None
    if not isinstance(header, dict) or not isinstance(sizes, list):
        raise ProtocolError("a message has no header")
    blobs, start = [], 0
    for size in sizes:
        if not isinstance(size, int) or isinstance(size, bool) or size < 0 or start + size > len(body):
            raise ProtocolError("a message states sizes that do not fit")
        blobs.append(body[start : start + size])
        start += size
    if start != len(body):
        raise ProtocolError("a message states sizes that do not fit")
    return header, blobs


class Channel:
    """Frames over a connected stream socket. `deadline` (time.monotonic seconds) bounds every read and write."""

    def __init__(self, sock: socket.socket, max_header: int = MAX_HEADER, max_blobs: int = MAX_BLOBS) -> None:
        self.sock = sock
        self.max_header = max_header
        self.max_blobs = max_blobs
        self.received = 0
        self.max_sent: tuple[int, int] | None = None

    def _set_timeout(self, deadline: float | None) -> None:
        if deadline is None:
            if self.sock.gettimeout() is not None:
                self.sock.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)

    def _read(self, size: int, deadline: float | None) -> bytes:
        data = bytearray()  # holds what has come, not what was promised, however small the pieces
        while len(data) < size:
            self._set_timeout(deadline)
            try:
                chunk = self.sock.recv(min(size - len(data), 1 << 20))
            except ConnectionError:
                raise Closed from None
            if not chunk:
                raise Closed
            data += chunk
        self.received += size
        return bytes(data)

    def send(self, header: dict[str, Any], blobs: list[bytes] | None = None, deadline: float | None = None) -> None:
        """Raises Closed or TimeoutError; TooLarge, with nothing sent, where `max_sent` (header, blobs) is set."""
        data = memoryview(frame(header, blobs))
        sizes = FRAME.unpack(data[: FRAME.size])
        if self.max_sent is not None and (sizes[0] > self.max_sent[0] or sizes[1] > self.max_sent[1]):
            raise TooLarge(f"an answer of {sum(sizes) / 2**20:.0f} MB is too large")
        try:
            while data:
                self._set_timeout(deadline)
                data = data[self.sock.send(data[: 1 << 20]) :]
        except ConnectionError:
            raise Closed from None

    def receive(self, deadline: float | None = None) -> tuple[dict[str, Any], list[bytes]]:
        """Raises Closed, TimeoutError or ProtocolError."""
        head_size, body_size = FRAME.unpack(self._read(FRAME.size, deadline))
        if head_size > self.max_header or body_size > self.max_blobs:
            raise ProtocolError("an answer is too large")
        data = self._read(head_size + body_size, deadline)
        return parse(data[:head_size], data[head_size:])
