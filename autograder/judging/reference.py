"""What judging needs to know of a set: the outcomes of its reference and of its catalogue's variants."""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

from autograder.judging.client import Client
from autograder.judging.conversations import Conversations
from autograder.judging.source import BadSource, Source, TestCell
from autograder.judging.test_cells import Outcome, run_test_cell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import Variant, value_for
from autograder.notebook.names import bound_names, compiled_silent, used_names

MOST_KEPT_OUTCOMES = 2000
TRUSTED_SECONDS = 600.0  # for a call of the reference or of a variant


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
        return self._known.setdefault((test.grade_id, seed), {})

    def _run(self, key: tuple[Any, ...] | None, make: Callable[[], Outcome]) -> Outcome:
        """The outcome that `make` gives, kept under `key`; that is None for what only one student will ask for."""
        outcome = None if key is None else self._runs.get(key)
        if outcome is None:
            outcome = make()
            if key is not None:
                if len(self._runs) > MOST_KEPT_OUTCOMES:
                    self._runs.clear()
                self._runs[key] = outcome
        return outcome

    def _client(self, test: TestCell, namespace: dict[str, Any]) -> Client:
        client = Client(LocalTransport(namespace), call_seconds=TRUSTED_SECONDS)
        client.sources = {n: self.solution_text(n) for n in test.solution_names}
        return client

    def namespace_for(self, test: TestCell, student_id: str) -> dict[str, Any]:
        """The reference's names, with data for this student where the test is personal."""
        return self._personal(student_id) if test.is_personal else dict(self.reference)

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
            known = {} if test.is_personal else self.known_answers(test, seed)
            return run_test_cell(test, client, self, seed, known=known, learns=True)

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
                client = self._client(test, {**names, variant.exercise: value_for(variant, names, student_id)})
            if only_data:
                client.get(list(test.names))
                return Outcome([], client.transcript, [], [])
            known = {} if test.is_personal else self.known_answers(test, seed)
            return run_test_cell(test, client, self, seed, known=known)

        for variant in variants:
            key = None if test.is_personal else (test.grade_id, seed, variant.exercise, variant.name)
            yield variant, self._run(key, partial(make, variant))
