"""Requests that a test cell makes whatever the answers are: one message asks them all.

A class shares one seed, so most requests of a test cell are known before a student's process answers the first. Which
ones is found from runs on the reference: one as it is, and others in which every answer is replaced by something
else. The reference itself is disturbed in them too, for a test cell may make inputs of what `reference.NAME` gives.
Only a request that all of them make, and that holds no answer of the reference to another one, is asked ahead of its
turn: so nothing that depends on a right answer reaches a student's process early.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

import numpy as np

from autograder.sandbox.inside.protocol import read_npy

SMALLEST_ANSWER = 3  # entries; one or two numbers are also the input of many a question
DISTURBANCE_SEED = 1
DISTURBANCES = (1.0, -1.0)
"""Signs of the numbers put in: one run alone may leave by chance the place of an answer's largest entry."""


@dataclass
class Asked:
    """One request of a test cell, and what the reference answered.

    `header` holds the target as its origin: {"name": …} of a name, {"reply": n} of what request n gave; {} when
    unknown. `key` is the digest by which transcripts are compared.
    """

    check: str
    path: str
    header: dict[str, Any]
    blobs: list[bytes]
    key: str
    reply: dict[str, Any]
    answer: list[bytes]
    value: Any = None

    @property
    def identity(self) -> tuple:
        return self.check, self.path, json.dumps(self.header, sort_keys=True), tuple(self.blobs)

    @property
    def is_plain(self) -> bool:
        """Whether it speaks to a known target with nothing but data."""
        text = json.dumps([v for k, v in self.header.items() if k != "target"])
        return bool(self.header.get("target")) and '"callback"' not in text and '"handle"' not in text


def disturbed(value: Any, rng: np.random.Generator, sign: float = 1.0) -> Any:
    """Another value of the same kind and shape, which shares no number, truth value or text with it.

    With the other `sign`, random numbers have the opposite order. Handles and None stay: they tell nothing.
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + int(7 * sign)
    if isinstance(value, (float, complex)):
        return (value if np.isfinite(value) else 0.0) + sign * (1.0 + rng.random())
    if isinstance(value, str):
        return f"not {value}"
    if isinstance(value, bytes):
        return b"not " + value
    if isinstance(value, (list, tuple, set)):
        return type(value)(disturbed(v, rng, sign) for v in value)
    if isinstance(value, dict):
        return {k: disturbed(v, rng, sign) for k, v in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _disturbed_array(np.asarray(value), rng, sign)[()]
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        as_array = value.detach().float() if value.is_floating_point() else value.detach()
        return torch.from_numpy(np.array(_disturbed_array(as_array.numpy(), rng, sign))).to(value.dtype)
    return value


def _disturbed_array(array: np.ndarray, rng: np.random.Generator, sign: float) -> np.ndarray:
    if array.dtype.kind == "b":
        return ~array
    if array.dtype.kind in "iu":
        return array + array.dtype.type(7)
    if array.dtype.kind in "fc":
        return (sign * rng.normal(size=array.shape)).astype(array.dtype)
    return np.full_like(array, "?")


@contextmanager
def disturbed_names(
    namespace: dict[str, Any], names: Iterable[str], rng: np.random.Generator, sign: float
) -> Iterator[None]:
    """For a while, `names` of the reference's namespace give something else than they do: also to given helpers."""
    before = {name: namespace[name] for name in names if name in namespace}
    namespace.update({name: _giving_others(value, rng, sign) for name, value in before.items()})
    try:
        yield
    finally:
        namespace.update(before)


def _giving_others(value: Any, rng: np.random.Generator, sign: float) -> Any:
    """A function or class whose calls and methods give disturbed values; for data, other data."""

    def other(function: Callable) -> Callable:
        @functools.wraps(function)
        def disturbing(*args: Any, **kwargs: Any) -> Any:
            return disturbed(function(*args, **kwargs), rng, sign)

        return disturbing

    if not isinstance(value, type):
        return other(value) if callable(value) else disturbed(value, rng, sign)
    methods = {
        name: other(method)
        for name, method in vars(value).items()
        if isinstance(method, FunctionType) and (name == "__call__" or not name.startswith("__"))
    }
    return type(value.__name__, (value,), {**methods, "__module__": value.__module__})


def _is_telling(blob: bytes) -> bool:
    """Whether an answer's array would give something away; one that holds a single value everywhere does not."""
    array = read_npy(blob)
    return array.size >= SMALLEST_ANSWER and bool((array != array.flat[0]).any())


class Foresight:
    """The requests of a test cell that may be asked ahead, in order."""

    def __init__(self, names: list[str], asked: list[Asked], disturbed_runs: list[list[Asked]]) -> None:
        self.names = names
        self.requests: list[Asked] = []
        self._blobs: dict[float, list[bytes]] = {}
        answered_to: dict[bytes, set[tuple[bytes, ...]]] = {}  # by answer, what was asked
        for request in asked:
            for blob in filter(_is_telling, request.answer):
                answered_to.setdefault(blob, set()).add(tuple(request.blobs))
        independent = Counter(a.identity for a in disturbed_runs[0])
        for run in disturbed_runs[1:]:
            independent &= Counter(a.identity for a in run)
        numbers: dict[int, int] = {}
        ended: set[str] = set()  # checks whose further requests must keep their order behind one that is not asked
        for number, request in enumerate(asked):
            origin = request.header.get("target", {})
            known = origin.get("name") in names or origin.get("reply") in numbers
            if (
                request.check in ended
                or not known
                or not request.is_plain
                or not independent[request.identity]
                or any(answered_to.get(blob, set()) - {tuple(request.blobs)} for blob in request.blobs)
            ):
                ended.add(request.check)
                continue
            independent[request.identity] -= 1
            numbers[number] = len(self.requests)
            if "reply" in origin:
                header = {**request.header, "target": {"reply": numbers[origin["reply"]]}}
                request = replace(request, header=header)
            self.requests.append(request)

    def message(self, seconds: float) -> tuple[dict[str, Any], list[bytes]]:
        """The one request for all of them, as a first blob of JSON; each may take `seconds`."""
        if seconds not in self._blobs:  # the same for the whole class
            requests = [{**r.header, "seconds": seconds, "blobs": len(r.blobs)} for r in self.requests]
            self._blobs[seconds] = [json.dumps(requests).encode(), *(blob for r in self.requests for blob in r.blobs)]
        return {"op": "several", "names": self.names}, self._blobs[seconds]


class Answers:
    """What a student's process answered to a `Foresight`; each answer is taken once, in its check's order."""

    def __init__(self, foresight: Foresight, replies: list[tuple[dict, list[bytes]]]) -> None:
        self.waiting: dict[str, list[tuple[int, Asked, dict, list[bytes]]]] = {}
        for number, (request, (reply, blobs)) in enumerate(zip(foresight.requests, replies, strict=True)):
            self.waiting.setdefault(request.check, []).append((number, request, reply, blobs))
        for queue in self.waiting.values():
            queue.reverse()

    def take(
        self, check: str, path: str, header: dict[str, Any], blobs: list[bytes]
    ) -> tuple[int, Asked, dict, list[bytes]] | None:
        """Number, request and answer when this is the check's next request; None ends what is foreseen of the check."""
        queue = self.waiting.get(check)
        if not queue:
            return None
        _, request, _, _ = queue[-1]
        if request.path == path and request.blobs == blobs and request.header == header:
            return queue.pop()
        queue.clear()
        return None
