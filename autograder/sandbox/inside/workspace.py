"""Answers requests on a namespace: the student's, or the grader's own with reference solutions and variants in it.

Everything in a student's process is under the student's control once the first cell has run: the grader treats each
answer as data from a stranger.
"""

from __future__ import annotations

import gc
import json
import linecache
import signal
import sys
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import FunctionType
from typing import Any

import numpy as np

from autograder.sandbox.inside.exact import know_tables
from autograder.sandbox.inside.operations import OPERATIONS
from autograder.sandbox.inside.processes import waited
from autograder.sandbox.inside.protocol import Blobs, Header, Message, Node, pack, unpack

MAX_TEXT = 2000
MISSING = object()
VIEWS = (type({}.keys()), type({}.items()))
MOST_GIVEN = 1e300  # of a number that an exception was given
SOON = 0.001  # seconds
MOST_TOGETHER = 8 * 1024**2  # bytes of answers after which a message takes no further one


class OutOfTime(KeyboardInterrupt):
    """A cell or a call used up its time; a KeyboardInterrupt, so that libraries let it through."""


waits: list[int] = []  # what `open_waits` gave for this process


def own_clock() -> float:
    """Seconds that count as this process's own: not those in which others had the processors that it needed."""
    return time.monotonic() - sum(map(waited, waits))


collecting = False  # whether garbage is collected: what finalizers and callbacks raise meanwhile goes to nobody


def _notice_collection(phase: str, _: Any) -> None:
    global collecting
    collecting = phase == "start"


gc.callbacks.append(_notice_collection)


@contextmanager
def time_limit(seconds: float | None, again: float = 0.5, clock: Callable[[], float] = own_clock) -> Iterator[None]:
    """Raise OutOfTime after `seconds` of `clock`, and every `again` seconds until the block ends, unless that is 0.

    In the main thread only: elsewhere there are no signals. May be nested.
    """
    if not seconds or threading.current_thread() is not threading.main_thread():
        yield
        return
    end = clock() + seconds

    def alarm(signum: int, frame: Any) -> None:
        left = end - clock()
        # what a dying object calls back raises to nobody
        is_heard = not collecting and (frame is None or frame.f_code.co_filename != weakref.__file__)
        if left <= 0 and is_heard:
            raise OutOfTime("out of time")
        signal.setitimer(signal.ITIMER_REAL, max(left, SOON), again)  # or the clock stood still meanwhile

    handler = signal.signal(signal.SIGALRM, alarm)
    outer = signal.setitimer(signal.ITIMER_REAL, seconds, again)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, *outer)
        signal.signal(signal.SIGALRM, handler)


def _crosses(value: Any) -> bool:
    """Whether what an exception was given can stand in a reply as it is."""
    if type(value) in (int, float):
        return bool(abs(value) < MOST_GIVEN)  # neither is nan
    return value is None or type(value) in (str, bool)


def describe(error: BaseException, is_student_file: Callable[[str], bool]) -> dict[str, Any]:
    """An exception as data: what happened and the last line of the student's own code on the way to it."""
    try:
        message = str(error)[:MAX_TEXT]
    except Exception as broken:  # a student's exception class whose __str__ fails
        message = f"(its message cannot be shown: {type(broken).__name__})"
    kind = "exception"
    if isinstance(error, OutOfTime):
        kind = "timeout"
    elif isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in message):  # torch
        kind = "memory"
    where = ""
    kinds = [f"{c.__module__}.{c.__qualname__}"[:200] for c in type(error).__mro__][:30]
    plain = all(map(_crosses, error.args[:9]))
    given = [a[:MAX_TEXT] if isinstance(a, str) else a for a in error.args[:9]] if plain else [message]
    if isinstance(error, SyntaxError) and is_student_file(str(error.filename)):
        message = str(error.msg)[:MAX_TEXT]  # without the name that the cell has here
        where = f"line {error.lineno} of your cell: `{str(error.text or '').strip()[:200]}`"
    for item in traceback.extract_tb(error.__traceback__):
        if is_student_file(item.filename):
            line = (item.line or linecache.getline(item.filename, item.lineno or 0)).strip()[:200]
            function = "" if item.name == "<module>" else f", in `{item.name}`"
            where = f"line {item.lineno} of your cell{function}: `{line}`"
    said = {"kind": kind, "type": type(error).__name__, "message": message, "where": where}
    return {**said, "mro": kinds, "args": given}


class Workspace:
    """Answers requests on `namespace`. Values that are not plain data stay here and are known outside by an id."""

    def __init__(
        self,
        namespace: dict[str, Any],
        call_back: Callable[[Header, Blobs], Message] | None = None,
        is_student_file: Callable[[str], bool] = lambda filename: False,
        use_time_limit: bool = True,
    ) -> None:
        self.namespace = namespace
        self.call_back = call_back
        self.is_student_file = is_student_file
        self.use_time_limit = use_time_limit
        self.exact = False
        self.objects: dict[int, Any] = {}
        self.saved: dict[str, Any] = {}
        self.saved_defaults: dict[FunctionType, tuple[tuple[Any, ...] | None, dict[str, Any] | None]] = {}

    # what crosses

    def _other_out(self, value: Any) -> Node:
        number = len(self.objects) + 1
        self.objects[number] = value
        kind = type(value)
        return {
            "handle": number,
            "type": f"{kind.__module__}.{kind.__qualname__}"[:200],
            "mro": [f"{c.__module__}.{c.__qualname__}"[:200] for c in type.mro(kind)][:30],
        }

    def _other_in(self, node: Node) -> Any:
        if "handle" in node:
            return self.objects[node["handle"]]
        number = node["callback"]

        def given_function(*args: Any, **kwargs: Any) -> Any:
            assert self.call_back is not None
            sent: Blobs = []
            request = {
                "callback": number,
                "args": [self.out(a, sent) for a in args],
                "kwargs": {k: self.out(v, sent) for k, v in kwargs.items()},
            }
            reply, back = self.call_back(request, sent)
            if "error" in reply:
                raise RuntimeError(reply["error"])
            return self.read(reply["ok"], back)

        given_function.__name__ = given_function.__qualname__ = str(node.get("name", "given_function"))
        return given_function

    def out(self, value: Any, blobs: Blobs) -> Any:
        if self.exact:
            know_tables()
        return pack(value, blobs, self._other_out, self.exact)

    def read(self, node: Any, blobs: Blobs) -> Any:
        return unpack(node, blobs, self._other_in, exact=True)

    def _arguments(self, request: Header, blobs: Blobs) -> tuple[list[Any], dict[str, Any]]:
        args: list[Any] = []
        for node in request["args"]:
            is_again = isinstance(node, dict) and "again" in node
            args.append(args[node["again"]] if is_again else self.read(node, blobs))
        return args, {k: self.read(v, blobs) for k, v in request["kwargs"].items()}

    # requests

    def answer(self, request: Header, blobs: Blobs) -> Message:
        """The reply to one request: {"ok": node, ...} or {"error": {...}}.

        `forget` in it drops all handles first: the test cell that held them is over. `exact` says that values cross as
        their very type only, and that calls tell what became of their arguments.
        """
        sent: Blobs = []
        self.exact = request.get("exact", self.exact)
        if request.get("forget"):
            self.objects.clear()
            if self.exact:
                close_figures()
        try:
            operation = getattr(self, f"do_{request['op']}")
            with time_limit(request.get("seconds") if self.use_time_limit else None):
                return operation(request, blobs, sent), sent
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the student's code are answers too
            return {"error": describe(error, self.is_student_file)}, []

    def do_get(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        found = {n: self.namespace[n] for n in request["names"] if n in self.namespace}
        return {"found": {n: self.out(v, sent) for n, v in found.items()}}

    def do_call(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        function = self.objects[request["target"]]
        args, kwargs = self._arguments(request, blobs)
        watched: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        look = self._content if self.exact else _snapshot
        before = {k: look(v) for k, v in watched.items()}
        value = function(*args, **kwargs)
        changed = [k for k, v in watched.items() if look(v) != before[k]]
        reply = {"ok": self.out(value, sent), "changed": list(map(str, changed))}
        return {**reply, "after": [[k, self.out(watched[k], sent)] for k in changed]} if self.exact else reply

    def _content(self, value: Any) -> Any:
        """What differs when an argument that is data was changed in place."""
        blobs: Blobs = []
        return pack(value, blobs, lambda other: {"object": id(other)}, True), blobs

    def do_operate(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """An operator, or a built-in function, on the arguments."""
        args, _ = self._arguments({"kwargs": {}, **request}, blobs)
        return {"ok": self.out(OPERATIONS[request["name"]](*args), sent)}

    def do_plain(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """What an object holds that is of a subclass of a plain type, or a view that is compared as a set."""
        value = self.objects[request["target"]]
        return {"ok": pack(set(value) if type(value) in VIEWS else value, sent, self._other_out)}

    def do_several(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """Replies to several requests, in order, up to the first that fails; what is left out is asked for again.

        They are the first blob, as JSON: the same text for a whole class.

        The target of a part is the number of an object, or {"reply": n} for the object that part n of this message
        gave. A part has `seconds`, all have `all_seconds` together; a large answer ends the message.
        """
        end = own_clock() + request["all_seconds"]
        replies: list[Header] = []
        start, size = 1, 0
        for part in json.loads(blobs[0]):
            target = part["target"]
            if isinstance(target, dict):
                node = replies[target["reply"]].get("ok")
                target = node.get("handle") if isinstance(node, dict) else None
            seconds = min(request["seconds"], end - own_clock())
            if replies and (target is None or seconds <= 0 or size > MOST_TOGETHER or "error" in replies[-1]):
                break
            stop = start + part["blobs"]
            one = {**part, "target": target, "seconds": seconds}
            reply, part_sent = self.answer(one, blobs[start:stop])
            start, size = stop, size + sum(map(len, part_sent))
            replies.append({**reply, "blobs": len(part_sent)})
            sent += part_sent
        return {"replies": replies}

    def do_attribute(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        return {"ok": self.out(getattr(self.objects[request["target"]], request["name"]), sent)}

    def do_item(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        return {"ok": self.out(self.objects[request["target"]][self.read(request["key"], blobs)], sent)}

    def do_length(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        return {"ok": self.out(len(self.objects[request["target"]]), sent)}

    def do_items(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """The first `most` things an iterable gives."""
        return {"ok": self.out(list(islice(self.objects[request["target"]], request["most"])), sent)}

    def do_gradients(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """Gradients of a fixed weighted sum of the outputs, by the arguments `wrt` or by the parameters."""
        import torch

        function = self.objects[request["target"]]
        args, kwargs = self._arguments(request, blobs)
        for index in request["wrt"]:
            args[index] = args[index].clone().requires_grad_(True)
        with torch.enable_grad():
            outputs = function(*args, **kwargs)
            if request["of"] is not None:
                outputs = outputs[request["of"]]
            total = _weighted_sum(torch, outputs)
            wanted = (
                dict(function.named_parameters()) if request["parameters"] else {i: args[i] for i in request["wrt"]}
            )
            found: list[Any] = [None] * len(wanted)
            if total.requires_grad:
                found = list(torch.autograd.grad(total, list(wanted.values()), allow_unused=True))
        value = dict(zip(wanted, found, strict=True)) if request["parameters"] else found
        return {"ok": self.out(value, sent)}

    def do_replace(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        """Put the grader's answer in place of a name (follow-through), until `restore`.

        It also takes the place of the old value under other names and in functions' default arguments, where a
        student's code may have put it already.
        """
        name = request["name"]
        new, old = self.read(request["value"], blobs), self.namespace.get(name, MISSING)
        for other, value in [(name, old), *self.namespace.items()]:
            if value is old and (other == name or callable(old)):
                self.saved.setdefault(other, value)
                self.namespace[other] = new
            elif isinstance(value, FunctionType) and callable(old):
                self._replace_defaults(value, old, new)
        return {"ok": None}

    def _replace_defaults(self, function: FunctionType, old: Any, new: Any) -> None:
        given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        if any(value is old for value in (*given, *named.values())):
            self.saved_defaults.setdefault(function, (function.__defaults__, function.__kwdefaults__))
            function.__defaults__ = tuple(new if value is old else value for value in given) or None
            function.__kwdefaults__ = {k: new if value is old else value for k, value in named.items()} or None

    def do_restore(self, request: Header, blobs: Blobs, sent: Blobs) -> Header:
        for name, value in self.saved.items():
            if value is MISSING:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value
        for function, (given, named) in self.saved_defaults.items():
            function.__defaults__, function.__kwdefaults__ = given, named
        self.saved.clear()
        self.saved_defaults.clear()
        return {"ok": None}


def close_figures() -> None:
    """As a notebook does after each cell: of too many that are open matplotlib warns, and a warning costs points."""
    if (pyplot := sys.modules.get("matplotlib.pyplot")) is not None:
        pyplot.close("all")


def _snapshot(value: Any) -> Any:
    """Something that differs when an array or tensor argument was changed in place."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.detach().cpu().numpy().tobytes())
    if isinstance(value, (list, tuple)):
        return [_snapshot(v) for v in value]
    return None


def _weighted_sum(torch: Any, outputs: Any) -> Any:
    """Σ cos(1 + index)·output over all floating outputs: no symmetry makes it constant, unlike a plain sum."""
    if isinstance(outputs, torch.Tensor):
        outputs = [outputs]
    elif isinstance(outputs, dict):
        outputs = list(outputs.values())
    total = torch.zeros(())
    for output in outputs:
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            weights = torch.cos(1.0 + torch.arange(output.numel(), dtype=output.dtype))
            total = total + (output.reshape(-1) * weights).sum()
    return total
