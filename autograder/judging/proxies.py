"""The grader's view of a student process: requests, handles, and what went wrong, as exceptions.

A test cell uses a student's function like any other: `softmax(z)` sends `z`, waits, and returns a copy of the answer.
Every answer is recorded in a transcript, which is what misconceptions are recognised by.
"""

from __future__ import annotations

import hashlib
import json
import marshal
import re
import secrets
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from autograder.judging.foresight import Answers, Asked, Foresight
from autograder.results import CRASHED, ERROR, NOT_REACHED, OUT_OF_MEMORY, TIMEOUT
from autograder.sandbox.inside.protocol import Closed, ProtocolError, Reading, pack, unpack
from autograder.sandbox.inside.workspace import Workspace
from autograder.sandbox.launcher import Student
from autograder.text import shown_text

GRACE_SECONDS = 2.0
ARRANGE_SECONDS = 5.0
AFTER_TIMEOUT_SECONDS = 3.0
MOST_ITEMS = 10_000
MOST_CALLBACKS = 100_000
EXERCISE_BYTES = 512 * 1024 * 1024  # of all answers to one test cell, as they lie in the grader's memory
JSON_WEIGHT = 16  # bytes in memory for one byte of JSON
KINDS = {"exception": ERROR, "timeout": TIMEOUT, "memory": OUT_OF_MEMORY}


class StudentProblem(Exception):
    """Something on the student's side: a verdict and a reason for the student."""

    def __init__(self, verdict: str, reason: str, type_name: str = "", message: str = "") -> None:
        super().__init__(reason)
        self.verdict = verdict
        self.reason = reason
        self.type_name = type_name
        self.message = message


class StudentRaised(StudentProblem):
    """The student's code raised, ran out of time or out of memory; its process is still there."""


class StudentGone(StudentProblem):
    """The student's process has ended."""


class OneByOne(Exception):
    """Requests asked ahead met trouble: the submission is judged anew, with every request in its turn."""


def _told(node: Any) -> bytes:
    """Bytes that are equal for equal JSON values only: to Python, True, 1 and 1.0 are equal too.

    Written as marshal does, which is quicker than JSON; version 2 does not depend on which parts are one object.
    """
    return marshal.dumps(node, 2)


def _same_node(one: Any, other: Any) -> bool:
    """Whether two JSON nodes are the same value; only nodes that Python takes for equal are written out."""
    return one == other and _told(one) == _told(other)


def raised(error: Any) -> StudentRaised:
    """The exception for an error reply, whatever the reply holds."""
    if not isinstance(error, dict):
        error = {}
    text = {k: shown_text(error.get(k, "")) for k in ("kind", "type", "message", "where")}
    verdict = KINDS.get(text["kind"], ERROR)
    where = f" ({text['where']})" if text["where"] else ""
    if verdict == TIMEOUT:
        reason = f"stopped, because it took too long{where}"
    elif verdict == OUT_OF_MEMORY:
        reason = f"stopped, because it needs more memory than a submission may use{where}"
    elif text["type"] == "NotImplementedError" and not text["message"]:
        reason = "there is no answer yet: the cell still raises NotImplementedError"
    else:
        reason = f"{text['type'] or 'an error without a name'}: {text['message']}{where}"
    return StudentRaised(verdict, reason, text["type"], text["message"])


# ------------------------------------------------------------------------------------------- transports


class Transport(Protocol):
    received: int
    """Bytes that the answers so far take up in this process."""

    def ask(self, header: dict, blobs: list[bytes], seconds: float, call_back: Callable) -> tuple[dict, list[bytes]]:
        """Reply to one request. Raises StudentGone."""


class LocalTransport:
    """Asks a namespace in this very process: reference solutions, catalogue variants and mutants, which are trusted."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.workspace = Workspace(namespace, seconds=False)
        self.received = 0

    def ask(self, header: dict, blobs: list[bytes], seconds: float, call_back: Callable) -> tuple[dict, list[bytes]]:
        def direct(number: int, args: tuple, kwargs: dict) -> Any:
            sent: list[bytes] = []
            request = {
                "callback": number,
                "args": [self.workspace.out(a, sent) for a in args],
                "kwargs": {k: self.workspace.out(v, sent) for k, v in kwargs.items()},
            }
            reply, back = call_back(request, sent)
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return self.workspace.read(reply["ok"], back)

        self.workspace.call_back = direct
        return self.workspace.answer(header, blobs)


class RemoteTransport:
    """Asks a confined student process. Once that is gone, every further request says so."""

    def __init__(self, student: Student, deadline: float) -> None:
        self.student = student
        self.deadline = deadline
        self.gone: StudentGone | None = None
        self.events: list[str] = []
        self.received = 0

    def ask(self, header: dict, blobs: list[bytes], seconds: float, call_back: Callable) -> tuple[dict, list[bytes]]:
        if self.gone is not None:
            raise StudentGone(NOT_REACHED, f"not reached: {self.gone.reason}")
        limit = min(time.monotonic() + seconds + GRACE_SECONDS, self.deadline)
        number = secrets.randbits(62)  # an answer sent before it was asked for cannot know it
        try:
            self.student.channel.send({**header, "number": number}, blobs, limit)
            for _ in range(MOST_CALLBACKS):
                before = self.student.channel.received
                reply, answer = self.student.channel.receive(limit)
                blob_bytes = sum(map(len, answer))
                head_bytes = self.student.channel.received - before - blob_bytes
                self.received += blob_bytes + JSON_WEIGHT * head_bytes
                if reply.get("number") != number:
                    raise ProtocolError("an answer that nobody asked for")
                if "callback" not in reply:
                    return reply, answer
                self.student.channel.send(*call_back(reply, answer), limit)
            raise ProtocolError("asked for too many answers")
        except TimeoutError:
            whole = time.monotonic() >= self.deadline
            reason = (
                "the notebook used up its time and was stopped"
                if whole
                else "the notebook's process did not stop when its time was over, so it was ended"
            )
            self._lost(TIMEOUT, reason)
        except Closed:
            self._lost(*self._how_it_ended())
        except ProtocolError as error:
            self.events.append(f"the student's process sent something that is not an answer: {error}")
            self._lost(CRASHED, "the notebook's process sent something that is not an answer, so it was ended")
        assert self.gone is not None
        raise self.gone

    def _how_it_ended(self) -> tuple[str, str]:
        ended = self.student.end()
        if ended["reason"] == "out of memory":
            return OUT_OF_MEMORY, "the notebook's processes used more memory than a submission may use"
        code = ended["exit_code"]
        if code is None:
            return CRASHED, "the notebook's process closed its connection to the grader"
        if code < 0:
            return CRASHED, f"the notebook's process was ended by signal {-code}"
        return CRASHED, f"the notebook ended its own process (exit code {code})"

    def _lost(self, verdict: str, reason: str) -> None:
        self.student.end()
        self.gone = StudentGone(verdict, reason)


# --------------------------------------------------------------------------------------------- requests


@dataclass
class Entry:
    """One recorded answer: which check asked, what was asked (a digest), and the value or the exception.

    `changed` names the arguments that the call changed in place.
    """

    check: str
    key: str
    value: Any = None
    error: str | None = None
    changed: tuple[str, ...] = ()

    @property
    def is_value(self) -> bool:
        """Whether it is plain data that a name holds, as typed by a student, and no answer to a call."""
        return self.key.startswith("value ")

    @property
    def is_observed(self) -> bool:
        """Whether a check noted it about an answer, by `checks.observe`."""
        return self.key.startswith("observed ")


@dataclass
class Client:
    """Sends requests, turns replies into values and handles, and records them.

    `sources` maps names to the text of the cell that defines them. `budget` is the time left for one test cell.
    `asked` lists the requests of the test cell where they are wanted; `seen` changes every answer on its way in.
    `right` are, by their digests, calls that the reference has answered. `foreseen` is the latest request where it is
    one of them or was asked ahead, and `same` says that its answer is the reference's, bit for bit. `live` counts what
    the test cell learnt from elsewhere than the answers asked ahead. `is_new` says that the student's process still
    holds what an earlier test cell's handles stand for.
    """

    transport: Transport
    call_seconds: float = 10.0
    sources: dict[str, str] = field(default_factory=dict)
    transcript: list[Entry] = field(default_factory=list)
    check: str = ""
    budget: float = float("inf")
    callbacks: dict[int, Callable] = field(default_factory=dict)
    callbacks_given: int = 0
    room: float = EXERCISE_BYTES
    asked: list[Asked] | None = None
    seen: Callable[[Any], Any] | None = None
    right: dict[str, Asked] = field(default_factory=dict)
    ahead: Answers | None = None
    found_ahead: tuple[list[str], dict, list[bytes]] | None = None
    foreseen: Asked | None = None
    same: bool = False
    origins: dict[int, dict[str, Any]] = field(default_factory=dict)
    live: int = 0
    is_new: bool = True

    def begin(self) -> None:
        """A test cell begins: its answers have all the room again, and no handle is known."""
        self.is_new = True
        self.room = EXERCISE_BYTES
        self.ahead = self.found_ahead = self.foreseen = None
        self.origins = {}
        self.live = 0

    def ask_ahead(self, foresight: Foresight) -> str:
        """Ask all that is foreseen in one message; a digest of what came back. Raises OneByOne on any trouble."""
        header, blobs = foresight.message(self.call_seconds)
        try:
            reply, answer = self._charged(header, blobs, self.budget)
        except StudentGone:
            raise OneByOne from None
        parts, replies = reply.get("replies"), []
        if not isinstance(parts, list) or len(parts) != len(foresight.requests) or self.room < 0:
            raise OneByOne
        sizes = [p.get("blobs") if isinstance(p, dict) else None for p in (reply, *parts)]
        if not all(type(n) is int and n >= 0 for n in sizes) or sum(sizes) != len(answer):
            raise OneByOne
        rest = iter(answer)
        self.found_ahead = foresight.names, reply, list(islice(rest, sizes[0]))
        for part, size in zip(parts, sizes[1:], strict=True):
            if "error" in part and raised(part["error"]).verdict != ERROR:
                raise OneByOne  # time and memory are for one request after the other
            replies.append((part, list(islice(rest, size))))
        self.ahead = Answers(foresight, replies)
        try:
            told = _told([reply.get("found"), parts, list(map(len, answer))])
        except ValueError:  # nested more deeply than any value
            raise OneByOne from None
        return hashlib.sha256(b"".join([told, *answer])).hexdigest()

    def request(self, header: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        """A request that runs the student's code, within the time that the exercise has left."""
        self.live += 1
        seconds = min(self.call_seconds, self.budget)
        if seconds <= 0:
            raise StudentRaised(TIMEOUT, "not tried: earlier calls of this exercise used up its time")
        if self.room < 0:
            raise StudentRaised(OUT_OF_MEMORY, "not tried: earlier answers of this exercise are too large")
        reply, answer = self._charged({**header, "seconds": seconds}, blobs, seconds)
        if self.room < 0:
            raise StudentRaised(OUT_OF_MEMORY, "the answers of this exercise are too large")
        if "error" in reply:
            problem = raised(reply["error"])
            if problem.verdict == TIMEOUT:  # what hangs once will hang again: the other checks get a short try
                self.budget = min(self.budget, AFTER_TIMEOUT_SECONDS)
            raise problem
        return reply, answer

    def _charged(self, header: dict, blobs: list[bytes], seconds: float) -> tuple[dict, list[bytes]]:
        """The reply to a request, whose time and size the exercise pays for."""
        start, received = time.monotonic(), self.transport.received
        header, self.is_new = {**header, "forget": self.is_new}, False
        try:
            return self.transport.ask(header, blobs, seconds, self._call_back)
        finally:
            self.budget -= time.monotonic() - start
            self.room -= self.transport.received - received

    def arrange(self, header: dict, blobs: list[bytes] | None = None) -> None:
        """A request that runs none of the student's code and costs the exercise no time."""
        reply, _ = self.transport.ask(
            {**header, "seconds": ARRANGE_SECONDS}, blobs or [], ARRANGE_SECONDS, self._call_back
        )
        if "error" in reply:
            raise raised(reply["error"])

    def _call_back(self, request: dict, blobs: list[bytes]) -> tuple[dict, list[bytes]]:
        """Run a function of the grader's that was passed to the student's code. Only data goes in and out."""

        def refuse(node: Any) -> Any:
            raise ProtocolError("only data can be passed to a given function")

        sent: list[bytes] = []
        try:
            function = self.callbacks[request["callback"]]
            args = [unpack(a, blobs, refuse) for a in request["args"]]
            kwargs = {str(k): unpack(v, blobs, refuse) for k, v in dict(request.get("kwargs", {})).items()}
            value = function(*args, **kwargs)
            return {"ok": pack(value, sent, refuse)}, sent
        except Exception as error:  # the student's arguments may be anything; the message goes back to their code
            return {"error": f"{type(error).__name__}: {error}"}, []

    # values

    def pack(self, value: Any, blobs: list[bytes]) -> Any:
        def other(item: Any) -> dict[str, Any]:
            if isinstance(item, Handle):
                return {"handle": item._id}
            if callable(item):
                self.callbacks_given += 1  # a number is never used again: what was given for one exercise ends with it
                self.callbacks[self.callbacks_given] = item
                return {"callback": self.callbacks_given, "name": getattr(item, "__name__", "given_function")}
            raise TypeError(f"a {type(item).__name__} cannot be passed to a student's function")

        return pack(value, blobs, other)

    def unpack(self, node: Any, blobs: list[bytes], path: str, root: str | None = None) -> Any:
        def other(item: dict[str, Any]) -> Handle:
            number = item.get("handle")
            if not isinstance(number, int):
                raise ProtocolError("a handle without a number")
            names = item.get("mro")
            mro = tuple(str(n) for n in names) if isinstance(names, list) else ()
            return Handle(self, number, path, str(item.get("type", "object"))[:200], mro, root)

        try:
            return unpack(node, blobs, other, reading=Reading(arrays="torch" not in sys.modules))
        except ProtocolError as error:
            raise StudentRaised(ERROR, f"the answer cannot be read: {error}") from None

    def _ask(self, path: str, header: dict, *values: Any, record: bool = True) -> tuple[Any, dict]:
        """One request about `path`; `values` are its arguments, which make up the digest."""
        blobs: list[bytes] = []
        for name, value in values:
            header[name] = value(blobs)
        by_origin = {**header, "target": self.origins.get(header["target"], {})}
        taken = self.ahead.take(self.check, path, by_origin, blobs) if self.ahead else None
        if taken is not None:
            number, self.foreseen, reply, answer = taken
            entry = Entry(self.check, self.foreseen.key)
        else:
            number, reply, answer = len(self.asked or ()), None, []
            entry = Entry(self.check, self._digest(path, header, [header[n] for n, _ in values], blobs))
            self.foreseen = self.right.get(entry.key) if "name" in by_origin["target"] else None
        try:
            if reply is None:
                reply, answer = self.request(header, blobs)
            elif "error" in reply:
                raise raised(reply["error"])
            if self.foreseen is not None:
                right = self.foreseen
                self.same = answer == right.answer and _same_node(reply.get("ok"), right.reply.get("ok"))
            value = self.unpack(reply.get("ok"), answer, f"{path}()")
        except StudentRaised as error:
            # with the message: the same kind of error may have quite another cause
            entry.error = f"{error.type_name or error.verdict}: {error.message}"
            self.transcript.append(entry)
            raise
        if self.asked is not None:
            # a value of its own: what the test cell does to the one it gets must not change what is compared with
            kept = self.unpack(reply.get("ok"), answer, f"{path}()")
            self.asked.append(Asked(self.check, path, by_origin, blobs, entry.key, reply, answer, kept))
        if isinstance(value, Handle) and (taken is not None or self.asked is not None):
            self.origins.setdefault(value._id, {"reply": number})
        if self.seen is not None:
            value = self.seen(value)
        if record and not isinstance(value, Handle):
            entry.value = value
            changed = reply.get("changed")
            entry.changed = tuple(sorted(map(str, changed))) if isinstance(changed, list) else ()
            self.transcript.append(entry)
        return value, reply

    @staticmethod
    def _digest(path: str, header: dict, arguments: list[Any], blobs: list[bytes]) -> str:
        asked = json.dumps([path, header["op"], *arguments], default=str)
        # functions are numbered in the order in which they are given, which says how far earlier checks got
        digest = hashlib.sha1(re.sub(r'"callback": \d+', '"callback": 0', asked).encode())
        for blob in blobs:
            digest.update(blob)
        return digest.hexdigest()

    # what test cells use

    def source_of(self, name: str) -> str:
        """The text of the cell that defines `name`; empty when none does."""
        self.live += 1
        return self.sources.get(name, "")

    def get(self, names: list[str]) -> dict[str, Any]:
        """Values of those of `names` that exist. Data is recorded, dictionaries key by key."""
        names = sorted(names)
        if self.found_ahead is not None and self.found_ahead[0] == names:
            _, reply, answer = self.found_ahead
        else:
            reply, answer = self.request({"op": "get", "names": names}, [])
        nodes = reply.get("found")
        found = {}
        for name in names:
            if isinstance(nodes, dict) and name in nodes:
                value = self.unpack(nodes[name], answer, name, root=name)
                if isinstance(value, Handle):
                    self.origins.setdefault(value._id, {"name": name})
                elif self.seen is not None:
                    value = self.seen(value)
                found[name] = value
                parts = value.items() if isinstance(value, dict) else [("", value)]
                for key, part in parts:
                    if not isinstance(part, Handle):
                        self.transcript.append(Entry(self.check, f"value {name} {key}", part))
        return found

    def replace(self, name: str, value: Any) -> None:
        blobs: list[bytes] = []
        self.arrange({"op": "replace", "name": name, "value": self.pack(value, blobs)}, blobs)

    def restore(self) -> None:
        self.arrange({"op": "restore"})


class Handle:
    """Stands for a student's function or object; calls, attributes, items and length are requests."""

    def __init__(
        self, client: Client, number: int, path: str, type_name: str, mro: tuple[str, ...], root: str | None
    ) -> None:
        self._client = client
        self._id = number
        self._path = path
        self._type = type_name
        self._mro = mro
        self._root = root
        self._changed: list[str] = []

    def __repr__(self) -> str:
        return f"<{self._type} in the student's process>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        client = self._client
        value, reply = client._ask(
            self._path,
            {"op": "call", "target": self._id},
            ("args", lambda blobs: [client.pack(a, blobs) for a in args]),
            ("kwargs", lambda blobs: {k: client.pack(v, blobs) for k, v in kwargs.items()}),
        )
        changed = reply.get("changed")
        self._changed = [str(c) for c in changed] if isinstance(changed, list) else []
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        client = self._client
        header = {"op": "attribute", "target": self._id, "name": name}
        value, _ = client._ask(f"{self._path}.{name}", header, record=False)
        if isinstance(value, Handle):
            value._path = f"{self._path}.{name}"
        return value

    def __getitem__(self, key: Any) -> Any:
        client = self._client
        header = {"op": "item", "target": self._id}
        value, _ = client._ask(self._path, header, ("key", lambda blobs: client.pack(key, blobs)), record=False)
        return value

    def __len__(self) -> int:
        value, _ = self._client._ask(self._path, {"op": "length", "target": self._id}, record=False)
        if type(value) is not int or value < 0:
            raise StudentRaised(ERROR, "the answer's length is not a number")
        return value

    def __iter__(self) -> Any:
        header = {"op": "items", "target": self._id, "most": MOST_ITEMS}
        value, _ = self._client._ask(self._path, header, record=False)
        return iter(value if isinstance(value, list) else [])

    def __bool__(self) -> bool:
        return True

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise StudentRaised(ERROR, f"the answer is a {self._type}, where an array is asked for")

    def _gradients(
        self, args: tuple, kwargs: dict, wrt: tuple[int, ...] = (), of: int | None = None, parameters: bool = False
    ) -> Any:
        client = self._client
        value, _ = client._ask(
            self._path,
            {"op": "gradients", "target": self._id},
            ("args", lambda blobs: [client.pack(a, blobs) for a in args]),
            ("kwargs", lambda blobs: {k: client.pack(v, blobs) for k, v in kwargs.items()}),
            ("wrt", lambda blobs: list(wrt)),
            ("of", lambda blobs: of),
            ("parameters", lambda blobs: parameters),
        )
        return value
