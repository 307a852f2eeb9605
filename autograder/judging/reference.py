"""What is known of a set while a class is judged: what its reference, its variants and other students were told."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

from autograder.judging.client import Client, Exchange
from autograder.judging.session import Outcome, run_test_cell
from autograder.judging.source import BadSource, Source, TestCell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import Variant, value_for
from autograder.notebook.names import bound_names, compiled_silent, used_names

MOST_KEPT_BYTES = 256 * 1024**2  # of questions and answers, for all test cells of a set
MOST_KEPT_OUTCOMES = 2000
TRUSTED_SECONDS = 600.0  # for a call of the reference or of a variant
Names = dict[str, Any]


@dataclass
class Turn:
    """A place in the conversation: what is asked there, where each answer leads; or what is said at the end."""

    question: dict[str, Any] = field(default_factory=dict)
    blobs: list[bytes] = field(default_factory=list)
    then: dict[bytes | None, Turn] = field(default_factory=dict)
    outcome: Outcome | None = None


class Conversations:
    """Equal answers of a class are judged once: what a test cell asks and says follows from the answers alone.

    A class shares its seed, so a test cell puts the same question to two students as long as they answered all earlier
    ones the same. What was asked and answered is kept as a tree, for each test cell, seed and helpers that were lent; a
    submission follows it without its test cell being run, until it answers what nobody did before. No question is sent
    before its turn: it is the one that the test cell asked after just these answers.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[Any, ...], Turn] = {}
        self._bytes = 0

    def follow(self, key: tuple[Any, ...], client: Client) -> Outcome | None:
        """Ask what is known to be asked; the outcome, or None where the test cell has to go on from there."""
        turn = self._first.get(key)
        while turn is not None and turn.outcome is None:
            turn = turn.then.get(client.exchange(turn.question, turn.blobs).told)
        return None if turn is None else turn.outcome

    def keep(self, key: tuple[Any, ...], exchanges: list[Exchange], outcome: Outcome) -> None:
        size = sum(e.size + sum(map(len, e.blobs)) for e in exchanges)
        if size > MOST_KEPT_BYTES or None in [exchange.told for exchange in exchanges]:
            return
        if self._bytes + size > MOST_KEPT_BYTES:
            self._first.clear()
            self._bytes = 0
        self._bytes += size
        turn = self._first.setdefault(key, Turn())
        for exchange in exchanges:
            if not turn.question:
                turn.question, turn.blobs = exchange.question, exchange.blobs
            elif not exchange.asks(turn.question, turn.blobs):  # a test cell that draws without the seed
                return
            turn = turn.then.setdefault(exchange.told, Turn())
        turn.outcome = outcome


class Judged(Source):
    """A source with its own outcomes and those of the catalogue's variants, each made when it is first asked for.

    `conversations` are those of the class with its test cells.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.conversations = Conversations()
        self._runs: dict[tuple[Any, ...], Outcome] = {}
        self._known: dict[tuple[str, int], dict[str, Any]] = {}
        self._of_student: tuple[str | None, dict[str, Any]] = None, {}

    @cached_property
    def own_id(self) -> str:
        """The student_id that the source notebook itself holds; "" where it holds none."""
        return str(self.reference.get("student_id", ""))

    def known_answers(self, test: TestCell, seed: int) -> dict[str, Any]:
        """The reference's answers to what the test cell asks of everybody, by digests of the questions."""
        return {} if test.is_personal else self._known.setdefault((test.grade_id, seed), {})

    def _run(self, key: tuple[Any, ...] | None, make: Callable[[], Outcome]) -> Outcome:
        """The outcome that `make` gives, kept under `key`; that is None for what only one student will ask for."""
        if key is None:
            return make()
        if key not in self._runs:
            if len(self._runs) > MOST_KEPT_OUTCOMES:
                self._runs.clear()
            self._runs[key] = make()
        return self._runs[key]

    def _client(self, test: TestCell, namespace: dict[str, Any]) -> Client:
        client = Client(LocalTransport(namespace), call_seconds=TRUSTED_SECONDS)
        client.exact = test.is_whole
        client.sources = {n: self.solution_text(n) for n in test.solution_names}
        return client

    def namespace_for(self, test: TestCell, student_id: str) -> dict[str, Any]:
        """The reference's names, with data for this student where the test is personal."""
        return self._personal(student_id) if test.is_personal else dict(self.names_at(test))

    def _personal(self, student_id: str) -> dict[str, Any]:
        """The source with another student's id: the cells that make data from it run anew, in order."""
        if self._of_student[0] == student_id:
            return dict(self._of_student[1])
        namespace = {**self.reference, "student_id": student_id}
        personal = {"student_id"}
        for text in self.code_in_order:
            if used_names(text) & personal and "student_id" not in bound_names(text):
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        exec(compiled_silent(text, f"<{self.name}: personal>"), namespace)
                except Exception as error:
                    raise BadSource(f"{self.name}: no numbers for {student_id!r}: {type(error).__name__}") from error
                personal |= {n for n in bound_names(text) if not callable(namespace.get(n))}
        self._of_student = student_id, namespace
        return dict(namespace)

    def reference_outcome(self, test: TestCell, seed: int, student_id: str) -> Outcome:
        """What the test cell says about the reference's answers. Raises BadSource when they are not all right."""

        def make() -> Outcome:
            client = self._client(test, self.namespace_for(test, student_id))
            client.keeps_calls = True
            return run_test_cell(test, client, self, seed, known=self.known_answers(test, seed), learns=True)

        is_own = student_id == self.own_id or not test.is_personal
        outcome = self._run((test.grade_id, seed) if is_own else None, make)
        wrong = [c for c in outcome.checks if not c.passed]
        if wrong or outcome.internal:
            said = f"'{wrong[0].name}': {wrong[0].reason}" if wrong else outcome.internal[0]
            raise BadSource(f"{self.name}: the reference solution fails its own test cell '{test.grade_id}' ({said})")
        return outcome

    def variant_outcomes(
        self, test: TestCell, variants: list[Variant], seed: int, student_id: str, only_data: bool = False
    ) -> Iterator[tuple[Variant, Outcome]]:
        """What the test cell says about each variant, on the same inputs; with `only_data`, just what it reads."""
        names = self.namespace_for(test, student_id)

        def make(variant: Variant) -> Outcome:
            with warnings.catch_warnings(action="ignore"):  # wrong variants divide by zero when their data are made
                own = {variant.exercise: value_for(variant, names, student_id)}
            return self.outcome_with(test, names, own, variant.source, seed, only_data)

        for variant in variants:
            key = None if test.is_personal else (test.grade_id, seed, variant.exercise, variant.name)
            yield variant, self._run(key, partial(make, variant))

    def outcome_with(
        self, test: TestCell, names: Names, own: Names, text: str, seed: int, only_data: bool, **more: Any
    ) -> Outcome:
        """What the test cell says about `names` and its `own`, which `text` makes; `more` are fields of `Session`."""
        client = self._client(test, {**names, **own})
        client.sources.update(dict.fromkeys(own, text))
        if only_data:
            client.get(list(test.names))
            return Outcome(transcript=client.transcript)
        return run_test_cell(test, client, self, seed, known=self.known_answers(test, seed), **more)
