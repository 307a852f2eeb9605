"""The grader's view of a student process: what is asked, what came back, and the transcript of it.

A test cell uses a student's function like any other: `softmax(z)` sends `z`, waits, and returns a copy of the answer.
Requests whose answers are not needed yet wait, and go in one message with the first whose answer is. Answers are read
in the order in which they were asked for, and each is recorded in a transcript when it is read: misconceptions are
recognised by it, and it is the same as if everything had been asked one by one.
"""

from __future__ import annotations

import copy
import hashlib
import json
import marshal
import re
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from autograder.judging.problems import StudentProblem, StudentRaised, raised
from autograder.judging.proxies import Double, Proxy, settled
from autograder.judging.transports import LocalTransport, RemoteTransport
from autograder.judging.trials import Call, call_of
from autograder.results import ERROR, NOT_REACHED, OUT_OF_MEMORY, TIMEOUT
from autograder.sandbox.inside.exact import is_table, know_tables
from autograder.sandbox.inside.protocol import Message, ProtocolError, pack, unpack
from autograder.text import shown_text

ARRANGE_SECONDS = 5.0
AFTER_TIMEOUT_SECONDS = 3.0
EXERCISE_BYTES = 512 * 1024 * 1024  # of all answers to one test cell, as they lie in the grader's memory


@dataclass
class Entry:
    """One recorded answer: which check asked, what was asked (a digest), and the value or the exception.

    `changed` names the arguments that the call changed in place; `asked` is the call where a client keeps calls.
    """

    check: str
    key: str
    value: Any = None
    error: str | None = None
    changed: tuple[str, ...] = ()
    asked: Call | None = None

    @property
    def is_value(self) -> bool:
        """Whether it is plain data that a name holds, as typed by a student, and no answer to a call."""
        return self.key.startswith("value ")

    @property
    def is_observed(self) -> bool:
        """Whether a check noted it about an answer, by `checks.observe`."""
        return self.key.startswith("observed ")


@dataclass
class Exchange:
    """A message to the student's process, without its times, and what came back; or why nothing did."""

    question: dict[str, Any]
    blobs: list[bytes]
    reply: dict[str, Any] = field(default_factory=dict)
    answer: list[bytes] = field(default_factory=list)
    problem: StudentProblem | None = None
    size: int = 0  # of what came back, as it lies in memory

    @cached_property
    def told(self) -> bytes | None:
        """A digest of all that came back; None where nothing did or it is nested more deeply than any value.

        marshal, unlike ==, tells 1 from True and from 1.0; its version 2 does not depend on which parts are one object.
        """
        try:
            node = marshal.dumps([self.reply, [len(blob) for blob in self.answer]], 2)
        except ValueError:
            return None
        return None if self.problem else hashlib.sha256(b"".join([node, *self.answer])).digest()

    def asks(self, question: dict[str, Any], blobs: list[bytes]) -> bool:
        return self.question == question and self.blobs == blobs


@dataclass
class Promise:
    """One request and, once it is read, its answer.

    `details` say what is asked of `target`, `header` and `blobs` are that as it crosses; `came` is the part of a reply
    that answers it.
    """

    target: Proxy
    op: str
    details: dict[str, Any]
    header: dict[str, Any]
    blobs: list[bytes]
    came: Message | None = None
    is_read: bool = False
    value: Any = None
    changed: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """What it gives, in words."""
        return self.target._path + (f".{self.details['name']}" if self.op == "attribute" else "()")

    @cached_property
    def key(self) -> str:
        """The digest of the question by which transcripts are compared."""
        asked = json.dumps([self.path, self.header], default=str)
        # functions are numbered in the order in which they are given, which says how far earlier checks got
        digest = hashlib.sha1(re.sub(r'"callback": \d+', '"callback": 0', asked).encode())
        for blob in self.blobs:
            digest.update(blob)
        return digest.hexdigest()

    def answered_by(self, found: Any) -> Any:
        """The answer where its target turned out to be plain data, which is here."""
        if self.op == "attribute":
            return getattr(found, self.details["name"])
        if self.op == "item":
            return found[self.details["key"]]
        if self.op in ("length", "items"):
            return len(found) if self.op == "length" else list(found)
        return found(*self.details["args"], **self.details["kwargs"])


@dataclass
class Client:
    """Sends requests, turns replies into values and proxies, and records them.

    `sources` maps names to the text of the cell that defines them. `budget` is the time left for one test cell, `room`
    the bytes left for its answers. `exchanges` are those of this test cell so far; `replayed` begins with what was
    exchanged for it before it ran. `latest` is the call whose answer was read last, where there is one. `is_told` says
    that all it learnt is in the exchanges, `is_new` that the student's process still holds what an earlier test cell's
    proxies stand for; `keeps_calls` that the transcript says what was given to each call. `exact` is said for test
    cells without checks, which ask what any code may ask: values cross as their very type only, what calls print and
    what becomes of their arguments comes with them, and exceptions are of the kind that they were; `kinds` are those
    that given cells define. `asked` is what objects were told and which arguments were changed, `may_be_asked` that of
    the reference where the answers are not trusted. Of changes that the reference does not make `took` says that there
    were some, `takes` whether the test cell sees them. `changed_here` are the arguments that were changed, each with
    what it was.
    """

    transport: LocalTransport | RemoteTransport
    call_seconds: float = 10.0
    sources: dict[str, str] = field(default_factory=dict)
    transcript: list[Entry] = field(default_factory=list)
    check: str = ""
    latest: Promise | None = None
    budget: float = float("inf")
    room: float = EXERCISE_BYTES
    callbacks: dict[int, Callable[..., Any]] = field(default_factory=dict)
    callbacks_given: int = 0
    waiting: deque[Promise] = field(default_factory=deque)
    exchanges: list[Exchange] = field(default_factory=list)
    replayed: deque[Exchange] = field(default_factory=deque)
    is_told: bool = True
    is_new: bool = True
    keeps_calls: bool = False
    exact: bool = False
    kinds: dict[str, type[Exception]] | None = None
    asked: set[str] = field(default_factory=set)
    may_be_asked: set[str] | None = None
    takes: bool = True
    took: bool = False
    changed_here: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def begin(self, budget: float) -> None:
        """A test cell begins: it has `budget` seconds and all the room, and no proxy is known."""
        self.budget, self.room = budget, EXERCISE_BYTES
        self.exchanges, self.replayed = [], deque()
        self.is_new = self.is_told = True
        self.exact, self.kinds = False, None
        self.takes, self.took = True, False

    def replay(self) -> None:
        """What was exchanged since `begin` counts as the answers to the same questions, asked again in this order."""
        self.exchanges, self.replayed = [], deque(self.exchanges)

    # messages

    def exchange(self, question: dict[str, Any], blobs: list[bytes]) -> Exchange:
        """Ask, within the time and room that the exercise has left."""
        if self.replayed and self.replayed[0].asks(question, blobs):
            done = self.replayed.popleft()
        else:
            self.replayed.clear()
            done = Exchange(question, blobs)
            try:
                self._charge(done)
            except StudentProblem as problem:
                done.problem = problem
        self.exchanges.append(done)
        return done

    def _charge(self, asked: Exchange) -> None:
        """Send a message; the exercise pays for the time and the size of what comes back."""
        if self.budget <= 0:
            raise StudentRaised(TIMEOUT, "not tried: earlier calls of this exercise used up its time")
        if self.room < 0:
            raise StudentRaised(OUT_OF_MEMORY, "not tried: earlier answers of this exercise are too large")
        each = min(self.call_seconds, self.budget)
        seconds = min(each * asked.question.get("count", 1), self.budget)
        header = {**asked.question, "seconds": each, "all_seconds": seconds, "forget": self.is_new, "exact": self.exact}
        self.is_new = False
        used, received = self.transport.used, self.transport.received
        try:
            asked.reply, asked.answer = self.transport.ask(header, asked.blobs, seconds, self._call_back)
        finally:
            self.budget -= self.transport.used - used
            asked.size = self.transport.received - received
            self.room -= asked.size
        if self.room < 0:
            raise StudentRaised(OUT_OF_MEMORY, "the answers of this exercise are too large")

    def _answered(self, question: dict[str, Any], blobs: list[bytes]) -> Message:
        """Reply and blobs of an exchange. Raises StudentProblem."""
        done = self.exchange(question, blobs)
        problem = done.problem or (raised(done.reply["error"], self.kinds) if "error" in done.reply else None)
        if self.exact and question["op"] == "several":
            self._show(done.reply.get("printed"))
        if problem is not None:
            raise self._noted(problem)
        return done.reply, done.answer

    def _show(self, printed: Any) -> None:
        for part in printed if isinstance(printed, list) else []:
            match part:
                case ["stdout" | "stderr" as name, str(text)]:
                    print(text, end="", file=getattr(sys, name))

    def _noted(self, problem: StudentProblem) -> StudentProblem:
        if problem.verdict != ERROR:  # another time it may go better
            self.is_told = False
        if problem.verdict == TIMEOUT:  # what hangs once will hang again: the other checks get a short try
            self.budget = min(self.budget, AFTER_TIMEOUT_SECONDS)
        return problem

    def arrange(self, header: dict[str, Any], blobs: list[bytes] | None = None) -> None:
        """A request that runs none of the student's code and costs the exercise no time."""
        header = {**header, "seconds": ARRANGE_SECONDS}
        reply, _ = self.transport.ask(header, blobs or [], ARRANGE_SECONDS, self._call_back)
        if "error" in reply:
            raise raised(reply["error"])

    def _call_back(self, request: dict[str, Any], blobs: list[bytes]) -> Message:
        """Run a function of the grader's that was passed to the student's code. Only data goes in and out."""

        def refuse(node: Any) -> Any:
            raise ProtocolError("only data can be passed to a given function")

        sent: list[bytes] = []
        used: set[int] = set()
        try:
            function = self.callbacks[request["callback"]]
            args = [unpack(a, blobs, refuse, used=used, exact=self.exact) for a in request["args"]]
            given = dict(request.get("kwargs", {}))
            kwargs = {str(k): unpack(v, blobs, refuse, used=used, exact=self.exact) for k, v in given.items()}
            value = function(*args, **kwargs)
            return {"ok": pack(value, sent, refuse, self.exact)}, sent
        except Exception as error:  # the student's arguments may be anything; the message goes back to their code
            return {"error": f"{type(error).__name__}: {error}"}, []

    # values

    def pack(self, value: Any, blobs: list[bytes]) -> Any:
        def other(item: Any) -> dict[str, Any]:
            item = settled(item)
            if isinstance(item, Proxy):
                return {"handle": item._id}
            if callable(item):
                self.is_told = False  # what it is called with is in no exchange
                self.callbacks_given += 1  # a number is never used again: what was given for one exercise ends with it
                self.callbacks[self.callbacks_given] = item
                return {"callback": self.callbacks_given, "name": getattr(item, "__name__", "given_function")}
            raise TypeError(f"a {type(item).__name__} cannot be passed to a student's function")

        if self.exact:
            know_tables()
        return pack(value, blobs, other, self.exact)

    def unpack(
        self, node: Any, blobs: list[bytes], path: str, root: str | None = None, used: set[int] | None = None
    ) -> Any:
        def other(item: dict[str, Any]) -> Proxy:
            number = item.get("handle")
            if not isinstance(number, int):
                raise ProtocolError("a handle without a number")
            names = item.get("mro")
            mro = tuple(shown_text(n, 200) for n in names[:100]) if isinstance(names, list) else ()
            kind = Double if self.exact else Proxy
            return kind(self, path, number, shown_text(item.get("type", "object"), 200), mro, root)

        try:
            return unpack(node, blobs, other, "torch" not in sys.modules, used, self.exact)
        except ProtocolError as error:
            raise StudentRaised(ERROR, f"the answer cannot be read: {error}") from None

    # requests

    def may_ask(self, what: str) -> bool:
        """Whether the reference's object was asked this in the place of this one."""
        if self.may_be_asked is not None:
            return what in self.may_be_asked
        self.asked.add(what)
        return True

    def ask(self, target: Proxy, op: str, **details: Any) -> Promise:
        """What is asked waits until an answer is read."""
        blobs: list[bytes] = []
        header = {"op": op, **details}
        if "args" in details:
            given = list(map(id, details["args"]))  # one object given twice is one object there
            again = [{"again": given.index(i)} if i in given[:n] else None for n, i in enumerate(given)]
            header["args"] = [one or self.pack(a, blobs) for one, a in zip(again, details["args"], strict=True)]
            header["kwargs"] = {k: self.pack(v, blobs) for k, v in details["kwargs"].items()}
        if "key" in details:
            header["key"] = self.pack(details["key"], blobs)
        promise = Promise(target, op, details, header, blobs)
        self.waiting.append(promise)
        return promise

    def read(self, promise: Promise) -> Any:
        """Its answer; all that was asked before it is read first. Raises StudentProblem."""
        while not promise.is_read:
            if not self.waiting:  # it was dropped, or an earlier check met its error
                raise StudentRaised(NOT_REACHED, "not reached: what it needs did not come")
            first = self.waiting[0]
            source = first.target._promise
            if source is not None and source.is_read and not isinstance(source.value, Proxy):
                self.waiting.popleft()
                first.value = first.answered_by(source.value)
            else:
                if first.came is None:
                    self._send()
                self.waiting.popleft()
                first.value = self._read(first)
            first.is_read = True
        return promise.value

    def read_all(self) -> None:
        """Read what was asked and not yet read: a check ends only with all its answers."""
        for promise in list(self.waiting):
            self.read(promise)

    def _send(self) -> None:
        """All that waits goes in one message; what is not answered, as an earlier part failed, waits on."""
        places = {id(promise): {"reply": number} for number, promise in enumerate(self.waiting)}
        parts: list[dict[str, Any]] = []
        blobs: list[bytes] = []
        for promise in self.waiting:
            of: Any = promise.target._id
            if (source := promise.target._promise) is not None:
                of = getattr(source.value, "_id", None) if source.is_read else places.get(id(source))
            parts.append({**promise.header, "target": of, "blobs": len(promise.blobs)})
            blobs += promise.blobs
        if parts[0]["target"] is None:
            raise StudentRaised(NOT_REACHED, "not reached: what it needs did not come")
        self.latest = None
        try:
            reply, answer = self._answered({"op": "several", "count": len(parts)}, [json.dumps(parts).encode(), *blobs])
        except StudentRaised as error:
            self._record(self.waiting[0], error=error)
            raise
        replies = reply.get("replies")
        if not isinstance(replies, list) or not 0 < len(replies) <= len(parts):
            raise StudentRaised(ERROR, "the answers cannot be read: they do not fit the questions")
        stated = [r.get("blobs") if isinstance(r, dict) else None for r in replies]
        sizes = [n if type(n) is int else -1 for n in stated]
        if min(sizes) < 0 or sum(sizes) != len(answer):
            raise StudentRaised(ERROR, "the answers cannot be read: their sizes do not fit")
        rest = iter(answer)
        for promise, one, size in zip(self.waiting, replies, sizes, strict=False):
            promise.came = one, list(islice(rest, size))

    def _read(self, promise: Promise) -> Any:
        reply, answer = promise.came or ({}, [])
        if promise.op in ("call", "gradients"):
            self.latest = promise if promise.op == "call" else None
        try:
            if "error" in reply:
                raise self._noted(raised(reply["error"], self.kinds))
            used = set[int]()
            value = self.unpack(reply.get("ok"), answer, promise.path, used=used)
            if self.exact and promise.op == "call":
                self._take_over(promise, reply.get("after"), answer, used)
        except StudentRaised as error:
            self._record(promise, error=error)
            raise
        changed = reply.get("changed")
        promise.changed = tuple(sorted(map(str, changed))) if isinstance(changed, list) else ()
        if promise.op in ("call", "gradients") and not isinstance(value, Proxy):
            self._record(promise, value)
        return value

    def _take_over(self, promise: Promise, after: Any, answer: list[bytes], used: set[int]) -> None:
        """Let arguments that a call changed in place be changed here, too."""
        given = {**dict(enumerate(promise.details["args"])), **promise.details["kwargs"]}
        for key, node in after if isinstance(after, list) else []:
            old, new = given.get(key), self.unpack(node, answer, promise.path, used=used)
            is_foreseen = self.may_ask(f"{promise.path} changes {key}")
            self.took |= not is_foreseen
            if isinstance(old, Proxy) or not (is_foreseen or self.takes):  # what a proxy stands for is there
                continue
            if id(old) not in self.changed_here and hasattr(old, "__len__"):
                was = old.detach().clone() if hasattr(old, "detach") else copy.copy(old)
                self.changed_here[id(old)] = old, was
            if type(old) is not type(new) or not put_into(old, new):
                raise StudentRaised(ERROR, "the answer cannot be read: an argument became another kind of value")

    def put_back(self) -> None:
        """Let arguments be again what they were: they may be data of the set, which others are asked about, too."""
        for old, was in self.changed_here.values():
            put_into(old, was)
        self.changed_here.clear()

    def _record(self, promise: Promise, value: Any = None, error: StudentRaised | None = None) -> None:
        # with the message: the same kind of error may have quite another cause
        said = None if error is None else f"{error.type_name or error.verdict}: {error.message}"
        asked = call_of(promise) if self.keeps_calls else None
        self.transcript.append(Entry(self.check, promise.key, value, said, promise.changed, asked))

    # what test cells use

    def source_of(self, name: str) -> str:
        """The text of the cell that defines `name`; empty when none does."""
        self.is_told = False
        return self.sources.get(name, "")

    def get(self, names: list[str]) -> dict[str, Any]:
        """Values of those of `names` that exist. Data is recorded, dictionaries key by key."""
        self.read_all()
        reply, answer = self._answered({"op": "get", "names": sorted(names)}, [])
        nodes = reply.get("found")
        found, used = {}, set[int]()
        for name in sorted(names):
            if isinstance(nodes, dict) and name in nodes:
                found[name] = value = self.unpack(nodes[name], answer, name, root=name, used=used)
                is_table = isinstance(value, dict) and not isinstance(value, Proxy)
                parts = value.items() if is_table else [("", value)]
                for key, part in parts:
                    if not isinstance(part, Proxy):
                        self.transcript.append(Entry(self.check, f"value {name} {key}", part))
        return found

    def replace(self, name: str, value: Any) -> None:
        blobs: list[bytes] = []
        self.arrange({"op": "replace", "name": name, "value": self.pack(value, blobs)}, blobs)

    def restore(self) -> None:
        self.arrange({"op": "restore"})


def put_into(old: Any, new: Any) -> bool:
    """Make a value hold what another one of its type holds; whether that can be."""
    if isinstance(old, np.ndarray):
        if old.shape != new.shape or old.dtype != new.dtype:
            return False
        old[...] = new
    elif (torch := sys.modules.get("torch")) is not None and isinstance(old, torch.Tensor):
        if old.shape != new.shape or old.dtype != new.dtype:
            return False
        old.detach().copy_(new)
    elif isinstance(old, (list, deque)):
        old.clear()
        old.extend(new)
    elif isinstance(old, (dict, set)):
        old.clear()
        old.update(new)
    elif is_table(old):
        vars(old).update(vars(new))
    else:
        return False
    return True
