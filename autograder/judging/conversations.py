"""Equal answers are judged once: what a test cell asks, and what it says in the end, follows from the answers alone.

A class shares its seed, so a test cell puts the same question to two students as long as they answered all earlier
ones the same. What was asked and answered is kept as a tree; a submission follows it without its test cell being run,
until it answers what nobody did before. No question is sent before its turn: it is the one that the test cell asked
after just these answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from autograder.judging.client import Client, Exchange
from autograder.judging.test_cells import Outcome

MOST_KEPT_BYTES = 256 * 1024**2  # of questions and answers, for all test cells of a set


@dataclass
class Turn:
    """A place in the conversation: what is asked there, where each answer leads; or what is said at the end."""

    question: dict[str, Any] = field(default_factory=dict)
    blobs: list[bytes] = field(default_factory=list)
    then: dict[bytes | None, Turn] = field(default_factory=dict)
    outcome: Outcome | None = None


class Conversations:
    """Those of one set, by what they begin with: a test cell, a seed, and the helpers that were lent."""

    def __init__(self) -> None:
        self._first: dict[tuple[Any, ...], Turn] = {}
        self._bytes = 0

    def __len__(self) -> int:
        """How many different ends are known."""
        turns = list(self._first.values())
        for turn in turns:
            turns += turn.then.values()
        return sum(turn.outcome is not None for turn in turns)

    def follow(self, key: tuple[Any, ...], client: Client) -> Outcome | None:
        """Ask what is known to be asked; the outcome, or None where the test cell has to go on from there."""
        turn = self._first.get(key)
        while turn is not None and turn.outcome is None:
            turn = turn.then.get(client.exchange(turn.question, turn.blobs).told)
        return None if turn is None else turn.outcome

    def keep(self, key: tuple[Any, ...], exchanges: list[Exchange], outcome: Outcome) -> None:
        if None in [exchange.told for exchange in exchanges]:
            return
        self._bytes += sum(len(blob) for e in exchanges for blob in (*e.blobs, *e.answer))
        if self._bytes > MOST_KEPT_BYTES:
            self._first.clear()
            self._bytes = 0
        turn = self._first.setdefault(key, Turn())
        for exchange in exchanges:
            if not turn.question:
                turn.question, turn.blobs = exchange.question, exchange.blobs
            elif not exchange.asks(turn.question, turn.blobs):  # a test cell that draws without the seed
                return
            turn = turn.then.setdefault(exchange.told, Turn())
        turn.outcome = outcome
