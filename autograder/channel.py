"""Data-only messages between the grader process and a student process.

A message is one frame: two lengths, a JSON header, then `.npy` blobs. Values cross by copy: `pack` turns plain data
into JSON nodes and blobs, `unpack` turns them back into exact built-in types, arrays and tensors. Anything else
crosses as a handle (an id that only its own side can resolve). Nothing is ever pickled, and the reader trusts no
length, shape, type or depth that the other side states.

This module runs on both sides of the sandbox, so it imports nothing of the package.
"""

from __future__ import annotations

import base64
import io
import json
import math
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

MAX_HEADER = 32 * 1024 * 1024
MAX_BLOBS = 256 * 1024 * 1024
MAX_DEPTH = 40
MAX_INT_BITS = 4096
ARRAY_KINDS = "biufcUS"
FRAME = struct.Struct("!IQ")


class ProtocolError(Exception):
    """The other side sent something that is not a message of this protocol."""


class Closed(Exception):
    """The other side has gone."""


class Plain(Exception):
    """Raised inside `pack` when a value is not plain data."""


# ---------------------------------------------------------------------------------------------- values


def _npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(array).reshape(array.shape), allow_pickle=False)
    return buffer.getvalue()


def _array_node(tag: str, array: np.ndarray, blobs: list[bytes], **more: Any) -> dict[str, Any]:
    blobs.append(_npy(array))
    return {tag: len(blobs) - 1, **more}


def _pack_tensor(torch: Any, value: Any, blobs: list[bytes]) -> dict[str, Any]:
    if value.layout != torch.strided or value.is_quantized:
        raise Plain
    name = str(value.dtype).removeprefix("torch.")
    data = value.detach().cpu().resolve_conj().resolve_neg()
    if not hasattr(np, name) and name != "bool":  # bfloat16 and other types numpy does not know
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
    def inner(item: Any) -> Any:
        return pack(item, blobs, other, depth + 1)

    torch = sys.modules.get("torch")
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, np.ndarray):
        if value.dtype.kind not in ARRAY_KINDS:
            raise Plain
        return _array_node("array", np.array(value, subok=False), blobs)
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
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, (bytes, bytearray)):
        return {"bytes": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, dict):
        return {"dict": [[inner(k), inner(v)] for k, v in dict.items(value)]}
    if isinstance(value, list):
        return {"list": [inner(v) for v in list.__iter__(value)]}
    if isinstance(value, tuple):
        return {"tuple": [inner(v) for v in tuple.__iter__(value)]}
    if isinstance(value, (set, frozenset)):
        return {"set": [inner(v) for v in value]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    if isinstance(value, slice):
        return {"slice": [inner(value.start), inner(value.stop), inner(value.step)]}
    if value is Ellipsis:
        return {"ellipsis": True}
    if isinstance(value, np.dtype):
        return {"dtype": value.str}
    if isinstance(value, type) and issubclass(value, np.generic):
        return {"dtype": np.dtype(value).str}
    if torch is not None:
        if isinstance(value, torch.Tensor):
            return _pack_tensor(torch, value, blobs)
        if isinstance(value, torch.dtype):
            return {"torch_dtype": str(value).removeprefix("torch.")}
        if isinstance(value, torch.Size):
            return {"tuple": [int(v) for v in value]}
    raise Plain


def _read_npy(blob: bytes) -> np.ndarray:
    """An array from `.npy` bytes; every stated size is checked against the bytes that are there."""
    stream = io.BytesIO(blob)
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream, max_header_size=10_000)
    elif version == (2, 0):
        shape, fortran, dtype = np.lib.format.read_array_header_2_0(stream, max_header_size=10_000)
    else:
        raise ProtocolError("unknown .npy version")
    if dtype.kind not in ARRAY_KINDS or dtype.hasobject or dtype.names or dtype.subdtype:
        raise ProtocolError(f"arrays of type {dtype.str} do not cross")
    if len(shape) > 32 or any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in shape):
        raise ProtocolError("impossible array shape")
    data = blob[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(data):
        raise ProtocolError("an array's shape does not fit its bytes")
    if dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    array = np.frombuffer(data, dtype=dtype).reshape(shape, order="F" if fortran else "C")
    return array.astype(dtype.newbyteorder("="), order="C", copy=True)


def unpack(node: Any, blobs: list[bytes], other: Callable[[dict[str, Any]], Any], depth: int = 0) -> Any:
    """The value of a JSON node; `other(node)` resolves handles and callbacks. Raises ProtocolError."""
    if depth > MAX_DEPTH + 1:
        raise ProtocolError("a message is nested too deeply")
    if node is None or isinstance(node, (bool, int, float, str)):
        return node
    if not isinstance(node, dict) or not node:
        raise ProtocolError("a value has no type")
    try:
        return _unpack_tagged(node, blobs, other, depth)
    except ProtocolError:
        raise
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError, MemoryError) as error:
        raise ProtocolError(f"a value cannot be read: {error}") from None


def _unpack_tagged(node: dict[str, Any], blobs: list[bytes], other: Callable, depth: int) -> Any:
    def inner(item: Any) -> Any:
        return unpack(item, blobs, other, depth + 1)

    def blob(index: Any) -> bytes:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < len(blobs):
            raise ProtocolError("a value points at data that is not there")
        return blobs[index]

    tag = next(iter(node))
    body = node[tag]
    if tag == "array":
        return _read_npy(blob(body))
    if tag == "scalar":
        array = _read_npy(blob(body))
        if array.shape != ():
            raise ProtocolError("a scalar has a shape")
        return array[()]
    if tag == "tensor":
        import torch

        dtype = getattr(torch, str(node.get("dtype")), None)
        if not isinstance(dtype, torch.dtype):
            raise ProtocolError("unknown tensor type")
        return torch.from_numpy(_read_npy(blob(body))).to(dtype)
    if tag == "float" and body in ("nan", "inf", "-inf"):
        return float(body)
    if tag == "complex":
        return complex(float(body[0]), float(body[1]))
    if tag == "bytes":
        return base64.b64decode(body, validate=True)
    if tag == "dict":
        return {inner(k): inner(v) for k, v in body}
    if tag == "list":
        return [inner(v) for v in body]
    if tag == "tuple":
        return tuple(inner(v) for v in body)
    if tag == "set":
        return {inner(v) for v in body}
    if tag == "range":
        start, stop, step = (int(v) for v in body)
        return range(start, stop, step)
    if tag == "slice":
        return slice(*(inner(v) for v in body))
    if tag == "ellipsis":
        return Ellipsis
    if tag == "dtype":
        dtype = np.dtype(str(body))
        if dtype.kind not in ARRAY_KINDS:
            raise ProtocolError("unknown array type")
        return dtype
    if tag == "torch_dtype":
        import torch

        dtype = getattr(torch, str(body), None)
        if not isinstance(dtype, torch.dtype):
            raise ProtocolError("unknown tensor type")
        return dtype
    if tag in ("handle", "callback"):
        return other(node)
    raise ProtocolError(f"unknown kind of value {tag!r}")


# ---------------------------------------------------------------------------------------------- frames


def frame(header: dict[str, Any], blobs: list[bytes] | None = None) -> bytes:
    """The bytes of one message."""
    blobs = blobs or []
    head = json.dumps({"m": header, "b": [len(b) for b in blobs]}, allow_nan=False).encode()
    return FRAME.pack(len(head), sum(map(len, blobs))) + head + b"".join(blobs)


def parse(head: bytes, body: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """Header and blobs of one message. Raises ProtocolError."""
    try:
        data = json.loads(head)
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

    def _set_timeout(self, deadline: float | None) -> None:
        if deadline is None:
            self.sock.settimeout(None)
            return
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.sock.settimeout(left)

    def _read(self, size: int, deadline: float | None) -> bytes:
        chunks, missing = [], size
        while missing:
            self._set_timeout(deadline)
            try:
                chunk = self.sock.recv(min(missing, 1 << 20))
            except ConnectionError:
                raise Closed from None
            if not chunk:
                raise Closed
            chunks.append(chunk)
            missing -= len(chunk)
        return b"".join(chunks)

    def send(self, header: dict[str, Any], blobs: list[bytes] | None = None, deadline: float | None = None) -> None:
        """Raises Closed or TimeoutError."""
        data = memoryview(frame(header, blobs))
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
        head = self._read(head_size, deadline)
        return parse(head, self._read(body_size, deadline))
