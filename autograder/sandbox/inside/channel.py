"""Messages between the grader process and a student process, as frames over a socket.

A message is one frame: two lengths, a JSON header, then blobs. The reader trusts no length that the other side states.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from autograder.sandbox.inside.protocol import Blobs, Header, Message, ProtocolError

UNBOUNDED = 2**32, 2**64
MAX_ANSWER = 8 * 1024**2, 64 * 1024**2  # bytes of header and of blobs that a student's process may send at once
PIECE = 64 * 1024  # bytes that are read at once at least
JSON_WEIGHT = 16  # bytes in memory for one byte of JSON
FRAME = struct.Struct("!IQ")
LONE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
ENCODER = json.JSONEncoder(allow_nan=False, ensure_ascii=False)


class Closed(Exception):
    """The other side has gone."""


def frame(header: Header, blobs: Blobs | None = None) -> bytes:
    """The bytes of one message."""
    blobs = blobs or []
    sizes = list(map(len, blobs))
    text = ENCODER.encode({"m": header, "b": sizes})
    head = text.encode("utf-8", "replace")  # halves of surrogate pairs are text in no file and no database
    return b"".join([FRAME.pack(len(head), sum(sizes)), head, *blobs])


def parse(head: bytes, body: bytes) -> Message:
    """Header and blobs of one message. Raises ProtocolError."""
    try:
        data = json.loads(head.decode())
        if b"\\u" in head and LONE_HALF.search(head):  # written by a stranger: `frame` never escapes
            data = json.loads(json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
        header, sizes = data["m"], data["b"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ProtocolError(f"a message cannot be read: {type(error).__name__}") from None
    if not isinstance(header, dict) or not isinstance(sizes, list):
        raise ProtocolError("a message has no header")
    if any(type(size) is not int or size < 0 for size in sizes) or sum(sizes) != len(body):
        raise ProtocolError("a message states sizes that do not fit")
    return header, [body[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]


class Channel:
    """Frames over a connected stream socket. `deadline` (seconds of `clock`) bounds every read and write.

    `max_sent` and `max_received` are bytes of header and of blobs. The clock may be late, but not early.
    """

    def __init__(
        self, sock: socket.socket, max_sent: tuple[int, int] = UNBOUNDED, max_received: tuple[int, int] = UNBOUNDED
    ) -> None:
        self.sock = sock
        self.clock: Callable[[], float] = time.monotonic
        self.max_sent = max_sent
        self.max_received = max_received
        self.received = 0  # bytes in memory that what came takes up
        self._came = bytearray()  # what has come and is not read yet

    def _in_time(self, step: Callable[[Any], Any], what: Any, deadline: float | None) -> Any:
        """What a step on the socket gives, tried again until the clock reaches the deadline."""
        while (left := float("inf") if deadline is None else deadline - self.clock()) > 0:
            self.sock.settimeout(None if deadline is None else left)
            try:
                return step(what)
            except TimeoutError:
                continue
            except ConnectionError:
                raise Closed from None
        raise TimeoutError

    def _read(self, size: int, deadline: float | None) -> bytes:
        # it holds what has come, not what was promised; most messages come whole with the first piece
        while len(self._came) < size:
            chunk = self._in_time(self.sock.recv, max(PIECE, min(size - len(self._came), 1 << 20)), deadline)
            if not chunk:
                raise Closed
            self._came += chunk
        data = bytes(memoryview(self._came)[:size])
        del self._came[:size]
        return data

    def send(self, header: Header, blobs: Blobs | None = None, deadline: float | None = None) -> None:
        """Raises Closed or TimeoutError; ProtocolError, with nothing sent, where it is too large."""
        data = memoryview(frame(header, blobs))
        sizes = FRAME.unpack(data[: FRAME.size])
        if sizes[0] > self.max_sent[0] or sizes[1] > self.max_sent[1]:
            raise ProtocolError(f"an answer of {sum(sizes) / 2**20:.0f} MB is too large")
        while data:
            data = data[self._in_time(self.sock.send, data[: 1 << 20], deadline) :]

    def receive(self, deadline: float | None = None) -> Message:
        """Raises Closed, TimeoutError or ProtocolError."""
        head_size, body_size = FRAME.unpack(self._read(FRAME.size, deadline))
        if head_size > self.max_received[0] or body_size > self.max_received[1]:
            raise ProtocolError("an answer is too large")
        self.received += JSON_WEIGHT * head_size + body_size
        return parse(self._read(head_size, deadline), self._read(body_size, deadline))
