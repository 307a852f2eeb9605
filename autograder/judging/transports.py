"""Ways to a namespace with answers in it: in this process, where it is trusted, or in a confined student process."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from autograder.judging.problems import StudentGone
from autograder.results import CRASHED, NOT_REACHED, OUT_OF_MEMORY, TIMEOUT
from autograder.sandbox.inside.channel import Closed
from autograder.sandbox.inside.protocol import Blobs, Header, Message, ProtocolError
from autograder.sandbox.inside.workspace import Workspace
from autograder.sandbox.launcher import Student

GRACE_SECONDS = 2.0
MOST_CALLBACKS = 100_000

CallBack = Callable[[Header, Blobs], Message]


class LocalTransport:
    """Asks a namespace in this very process: reference solutions, catalogue variants and mutants, which are trusted."""

    received = 0
    used = 0.0

    def __init__(self, namespace: dict[str, Any]) -> None:
        self.workspace = Workspace(namespace, use_time_limit=False)

    def ask(self, header: Header, blobs: Blobs, seconds: float, call_back: CallBack) -> Message:
        self.workspace.call_back = call_back
        return self.workspace.answer(header, blobs)


class RemoteTransport:
    """Asks a confined student process, which has `seconds` of its own for all answers. Once it is gone, all say so.

    `received` are the bytes that the answers so far take up in this process, `used` the student's seconds.
    """

    def __init__(self, student: Student, seconds: float) -> None:
        self.student = student
        self.seconds = seconds
        self.used = 0.0
        self.gone: StudentGone | None = None
        self.events: list[str] = []
        self.received = 0

    def ask(self, header: Header, blobs: Blobs, seconds: float, call_back: CallBack) -> Message:
        if self.gone is not None:
            raise StudentGone(NOT_REACHED, f"not reached: {self.gone.reason}")
        begin, left = self.student.clock(), self.seconds - self.used
        limit = begin + min(seconds + GRACE_SECONDS, left)
        number = secrets.randbits(62)  # an answer sent before it was asked for cannot know it
        try:
            self.student.channel.send({**header, "number": number}, blobs, limit)
            for _ in range(MOST_CALLBACKS):
                reply, answer = self.student.channel.receive(limit)
                self.received = self.student.channel.received
                if reply.pop("number", None) != number:
                    raise ProtocolError("an answer that nobody asked for")
                if "callback" not in reply:
                    return reply, answer
                self.student.channel.send(*call_back(reply, answer), limit)
            raise ProtocolError("asked for too many answers")
        except TimeoutError:
            reason = "the notebook used up its time and was stopped"
            if left > seconds + GRACE_SECONDS:
                reason = "the notebook's process did not stop when its time was over, so it was ended"
            raise self._lost(TIMEOUT, reason) from None
        except Closed:
            raise self._lost(*self._how_it_ended()) from None
        except ProtocolError as error:
            self.events.append(f"the student's process sent something that is not an answer: {error}")
            reason = "the notebook's process sent something that is not an answer, so it was ended"
            raise self._lost(CRASHED, reason) from None
        finally:
            self.used += self.student.clock() - begin

    def _how_it_ended(self) -> tuple[str, str]:
        ended = self.student.end()
        if ended["reason"] == "out of memory":
            return OUT_OF_MEMORY, "the notebook's processes used more memory than a submission may use"
        if ended["reason"]:
            return CRASHED, f"the notebook's processes were ended: {ended['reason']}"
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
