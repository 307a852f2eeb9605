"""Messages between the grader process and a student process, as frames over a socket.

A message is one frame: two lengths, a JSON header, then blobs. The reader trusts no length that the other side states.
"""

from __future__ import annotations

import json
import re
import socket
import struct
import time

from autograder.sandbox.inside.protocol import MAX_BLOBS, Blobs, Header, Message, ProtocolError

MAX_HEADER = 32 * 1024 * 1024
PIECE = 64 * 1024  # bytes that are read at once at least
FRAME = struct.Struct("!IQ")
LONE_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


class Closed(Exception):
    """The other side has gone."""


class TooLarge(Exception):
    """What is to be sent is larger than the other side reads."""


def frame(header: Header, blobs: Blobs | None = None) -> bytes:
    """The bytes of one message."""
    blobs = blobs or []
    text = json.dumps({"m": header, "b": [len(b) for b in blobs]}, allow_nan=False, ensure_ascii=False)
    head = text.encode("utf-8", "replace")  # halves of surrogate pairs are text in no file and no database
    return FRAME.pack(len(head), sum(map(len, blobs))) + head + b"".join(blobs)


def parse(head: bytes, body: bytes) -> Message:
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
        self._came = bytearray()  # what has come and is not read yet

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
        # it holds what has come, not what was promised; most messages come whole with the first piece
        while len(self._came) < size:
            self._set_timeout(deadline)
            try:
                chunk = self.sock.recv(max(PIECE, min(size - len(self._came), 1 << 20)))
            except ConnectionError:
                raise Closed from None
            if not chunk:
                raise Closed
            self._came += chunk
        self.received += size
        data = bytes(memoryview(self._came)[:size])
        del self._came[:size]
        return data

    def send(self, header: Header, blobs: Blobs | None = None, deadline: float | None = None) -> None:
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

    def receive(self, deadline: float | None = None) -> Message:
        """Raises Closed, TimeoutError or ProtocolError."""
        head_size, body_size = FRAME.unpack(self._read(FRAME.size, deadline))
        if head_size > self.max_header or body_size > self.max_blobs:
            raise ProtocolError("an answer is too large")
        data = self._read(head_size + body_size, deadline)
        return parse(data[:head_size], data[head_size:])
