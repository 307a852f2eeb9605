"""Ways to a namespace with answers in it: in this process, where it is trusted, or in a confined student process."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Any, Protocol

from autograder.judging.problems import StudentGone
from autograder.results import CRASHED, NOT_REACHED, OUT_OF_MEMORY, TIMEOUT
from autograder.sandbox.inside.channel import Closed
from autograder.sandbox.inside.protocol import Blobs, Header, Message, ProtocolError
from autograder.sandbox.inside.workspace import Workspace
from autograder.sandbox.launcher import Student

GRACE_SECONDS = 2.0
MOST_CALLBACKS = 100_000
JSON_WEIGHT = 16  # bytes in memory for one byte of JSON

CallBack = Callable[[Header, Blobs], Message]


class Transport(Protocol):
    is_remote: bool
    """Whether a message costs more than what it asks, so that it should ask much."""
    received: int
    """Bytes that the answers so far take up in this process."""

    def ask(self, header: Header, blobs: Blobs, seconds: float, call_back: CallBack) -> Message:
        """Reply to one request. Raises StudentGone."""


class LocalTransport:
    """Asks a namespace in this very process: reference solutions, catalogue variants and mutants, which are trusted."""

    is_remote = False

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.workspace = Workspace(namespace, seconds=False)
        self.received = 0

    def ask(self, header: Header, blobs: Blobs, seconds: float, call_back: CallBack) -> Message:
        self.workspace.call_back = call_back
        return self.workspace.answer(header, blobs)


class RemoteTransport:
    """Asks a confined student process until `deadline` (of time.monotonic). Once it is gone, every request says so."""

    is_remote = True

    def __init__(self, student: Student, deadline: float) -> None:
        self.student = student
        self.deadline = deadline
        self.gone: StudentGone | None = None
        self.events: list[str] = []
        self.received = 0

    def ask(self, header: Header, blobs: Blobs, seconds: float, call_back: CallBack) -> Message:
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
                if reply.pop("number", None) != number:
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
            raise self._lost(TIMEOUT, reason) from None
        except Closed:
            raise self._lost(*self._how_it_ended()) from None
        except ProtocolError as error:
            self.events.append(f"the student's process sent something that is not an answer: {error}")
            reason = "the notebook's process sent something that is not an answer, so it was ended"
            raise self._lost(CRASHED, reason) from None

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

    def _lost(self, verdict: str, reason: str) -> StudentGone:
        self.student.end()
        self.gone = StudentGone(verdict, reason)
        return self.gone
