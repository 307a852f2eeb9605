"""Runs a set's test cells on answers made here: mutants, variants, trivial answers, other seeds, whole submissions.

All that the audit asks of the code that judges is asked in this module.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import numpy as np

from autograder.course import SetFiles
from autograder.grading.pool import Pool
from autograder.grading.runner import Prepared, Run, Settings
from autograder.grading.store import Store
from autograder.judging.client import Client
from autograder.judging.recognition import recognise
from autograder.judging.reference import Judged
from autograder.judging.session import Outcome, run_test_cell
from autograder.judging.source import Source, TestCell
from autograder.judging.transports import LocalTransport
from autograder.judging.variants import Variant, value_for
from autograder.notebook.names import bound_names
from autograder.results import Check, Result

SEED = 1
STUDENT = "student-01"
PATIENCE = 600.0
STUB, NOTHING, EMPTY = "the cell as released", "None", "an empty string"
ZEROS, NAN = "zeros of the right shape", "NaN of the right shape"
Answers = dict[str, tuple[Any, str]]  # a name: its value, and the text that is shown as its source
Fill = Callable[[np.ndarray], np.ndarray]
Answer = Callable[[Callable[[], Any], list[Any]], Any]  # of a function that gives the right answer, and the arguments


class Bench:
    """Runs test cells of a set on answers made here. Its tasks run in forked children and return what can be pickled.

    Making it runs the notebook, so that no child has to. Raises BadSource, BadCatalogue.
    """

    def __init__(self, files: SetFiles) -> None:
        self.source = Judged.from_text(files.notebook_text, files.catalogue, files.name, files.set_checks, files.files)
        texts = {c.metadata.get("nbgrader", {}).get("grade_id", ""): c.source for c in files.released.cells}
        self.released = {s: texts[s] for s in self.source.solutions}
        _ = self.source.reference, self.source.catalogue
        self._stages = dict(self._run_notebook())

    def _run_notebook(self) -> Iterator[tuple[str, tuple[dict[str, Any], list[tuple[str, str]]]]]:
        """For each test: the names before its first solution cell, and the cells (id, text) from there to the test."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        before: dict[str, Any] | None = None
        between: list[tuple[str, str]] = []
        for cell in self.source.notebook.cells:
            meta, text = cell.metadata.get("nbgrader", {}), cell.source
            grade_id = meta.get("grade_id", "")
            if cell.cell_type != "code":
                continue
            if meta.get("grade"):
                yield grade_id, (dict(namespace) if before is None else before, between)
                before, between = None, []
                continue
            if not meta and "student_id" in bound_names(text):
                text = f"student_id = {STUDENT!r}"
            if meta.get("solution") and before is None:
                before = dict(namespace)
            if before is not None:
                between.append((grade_id, text))
            with contextlib.redirect_stdout(io.StringIO()), self.source.in_folder():
                exec(compile(text, f"<{self.source.name}: {grade_id}>", "exec"), namespace)

    def _judge(
        self, test: TestCell, namespace: dict[str, Any], sources: dict[str, str], seed: int, stops: bool
    ) -> Outcome:
        client = Client(LocalTransport(namespace), call_seconds=PATIENCE, sources=sources)
        return run_test_cell(test, client, self.source, seed, stops=stops)

    def judged(
        self, test: TestCell, replaced: dict[str, str] | None = None, put: Answers | None = None, stops: bool = False
    ) -> tuple[list[Check], str, float]:
        """The checks, the complaint and the seconds, with solution cells `replaced` (by id) and names then `put`.

        `stops` where one check that fails is enough.
        """
        begin = time.monotonic()
        before, between = self._stages[test.grade_id]
        namespace, sources = dict(before), {n: self.source.solution_text(n) for n in test.names}
        for grade_id, text in between:
            text = (replaced or {}).get(grade_id, text)
            sources.update(dict.fromkeys(bound_names(text), text))
            # A cell that raises binds what it bound so far, as in a notebook.
            with contextlib.suppress(BaseException), contextlib.redirect_stdout(io.StringIO()), self.source.in_folder():
                exec(compile(text, "<answer>", "exec"), namespace)
        for name, (value, text) in (put or {}).items():
            namespace[name], sources[name] = value, text
        outcome = self._judge(test, namespace, sources, SEED, stops)
        return outcome.checks, first_complaint(outcome.checks, outcome.internal), time.monotonic() - begin

    def trivial(self, test: TestCell) -> Iterator[tuple[str, dict[str, str], Answers]]:
        """Answers without work: of what kind, and what `judged` is to replace and to put in place."""
        yield STUB, {s: self.released[s] for s in test.solution_ids}, {}
        names = test.solution_names & test.names & self.source.reference.keys()
        given = set().union(*(bound_names(self.released[s]) for s in test.solution_ids))
        asked = {n for n in names if callable(self.source.reference[n]) or n not in given} or names
        before = self._stages[test.grade_id][0].values()
        earlier = [v for v in before if callable(v) and getattr(v, "__module__", "") == "__main__"]
        for kind, answer in _trivial_answers(earlier).items():
            answers: Answers = {}
            for name in asked:
                value = self.source.reference[name]
                if callable(value):
                    answers[name] = answering(value, answer), f"def {name}(*args, **kwargs):\n    return None"
                elif kind in (NOTHING, EMPTY) or (kind in (ZEROS, NAN) and all(map(_is_number, _leaves(value)))):
                    answers[name] = answer(partial(self.source.reference.get, name), []), f"{name} = None"
            if answers:
                yield kind, {}, answers

    def seeds(self, test: TestCell, seeds: list[int], variant: Variant | None) -> list[tuple[int, str]]:
        """(seed, complaint) for each seed: "" where the answer gets full marks."""
        found = []
        for seed in seeds:
            student_id = f"student-{seed}"
            namespace = self.source.namespace_for(test, student_id)
            sources = {n: self.source.solution_text(n) for n in test.names}
            if variant is not None:
                namespace[variant.exercise] = value_for(variant, namespace, student_id)
                sources[variant.exercise] = variant.source
            outcome = self._judge(test, namespace, sources, seed, stops=True)
            found.append((seed, first_complaint(outcome.checks, outcome.internal)))
        return found

    def variants(self, test: TestCell, variants: list[Variant]) -> list[tuple[list[Check], str, list[str]]]:
        """For each variant: checks, complaint and names recognised in it, as in a submission but without sandbox."""
        expected = self.source.reference_outcome(test, SEED, STUDENT)
        known = self.source.catalogue.wrong_of(test.names)
        asked = [*known, *(v for v in variants if v.is_right)]
        outcomes = {(v.exercise, v.name): o for v, o in self.source.variant_outcomes(test, asked, SEED, STUDENT)}
        runs = [(v, outcomes[v.exercise, v.name].transcript) for v in known]
        found = []
        for outcome in (outcomes[v.exercise, v.name] for v in variants):
            named = recognise(outcome.transcript, expected.transcript, runs)
            complaint = first_complaint(outcome.checks, outcome.internal)
            found.append((outcome.checks, complaint, [v.name for v in named]))
        return found


def first_complaint(checks: list[Check], others: Sequence[str] = ()) -> str:
    """The first thing that keeps an answer from full marks: a check, or one of `others`; "" for full marks."""
    failed = [f"'{c.name}': {c.reason or c.verdict}" for c in checks if not c.passed]
    return next(iter([*failed, *others]), "")


def _trivial_answers(earlier: list[Callable[..., Any]]) -> dict[str, Answer]:
    """What is answered to a call without work, by kind; `earlier` are the functions of earlier cells."""
    kept: dict[str, Any] = {}

    def reflected(right: Callable[[], Any], given: list[Any]) -> Any:
        source = next((_array(v) for v in _leaves(given) if _is_number(v)), np.arange(5.0))
        return shaped(right(), lambda part: np.resize(source, part.shape).astype(part.dtype))

    def remembered(right: Callable[[], Any], given: list[Any]) -> Any:
        found = reflected(right, given)
        return deepcopy(kept.setdefault(str(_shapes(found)), found))

    def lent(right: Callable[[], Any], given: list[Any]) -> Any:
        shapes = _shapes(right())
        for function in earlier[::-1]:
            with contextlib.suppress(Exception):
                if _shapes(found := function(*given)) == shapes:
                    return found
        return None

    return {
        NOTHING: lambda right, given: None,
        EMPTY: lambda right, given: "",
        "the first argument": lambda right, given: next(iter(given), None),
        ZEROS: lambda right, given: shaped(right(), np.zeros_like),
        NAN: lambda right, given: shaped(right(), lambda part: np.full(part.shape, np.nan, np.result_type(part, "f2"))),
        "what was given, in the right shape": reflected,
        "an earlier answer of the right shape": remembered,
        "what a function of an earlier cell answers": lent,
    }


def answering(reference: Any, answer: Answer) -> Any:
    """A function or class in the place of `reference` that gives what `answer` makes of each call."""

    def called(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return answer(lambda: function(*args, **kwargs), [*args, *kwargs.values()])

    if not isinstance(reference, type):
        return partial(called, reference)

    def method(name: str) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: called(getattr(self.__dict__["_right"], name), *args, **kwargs)

    base: Any = next((b for b in reference.__mro__[1:] if b.__module__.startswith("torch.")), object)

    def begin(self: Any, *args: Any, **kwargs: Any) -> None:
        base.__init__(self)
        self.__dict__["_right"] = reference(*args, **kwargs)  # no submodule: its parameters stay out of sight

    own = {n: method(n) for n, m in vars(reference).items() if callable(m) and (n == "__call__" or n[:2] != "__")}
    return type(reference.__name__, (base,), {**own, "__init__": begin})


def shaped(value: Any, fill: Fill) -> Any:
    """The same kinds and shapes, where `fill` makes one array in the place of another; None for what is no data."""
    if isinstance(value, dict):
        return {k: shaped(v, fill) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(shaped(v, fill) for v in value)
    if isinstance(value, np.ndarray):
        return fill(value)
    if hasattr(value, "detach"):
        import torch

        return torch.as_tensor(fill(_array(value)))
    return fill(np.asarray(value)).item() if isinstance(value, (int, float, complex, str, np.generic)) else None


def _shapes(value: Any) -> list[tuple[int, ...]]:
    return [np.shape(v) for v in _leaves(value)]


def _array(value: Any) -> np.ndarray:
    return np.asarray(value.detach() if hasattr(value, "detach") else value)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _leaves(part)
    else:
        yield value


def _is_number(value: Any) -> bool:
    """Whether a part is of numbers, not all nought; truth values are none, for half of them are right by chance."""
    return _array(value).dtype.kind in "iufc" and bool(_array(value).any())


def submission(files: SetFiles, solutions: dict[str, str], student_id: str = STUDENT) -> bytes:
    """A notebook as a student would hand it in: the released one with `solutions`, the texts of cells by grade_id."""
    notebook = deepcopy(files.released)
    for cell in notebook.cells:
        meta = cell.metadata.get("nbgrader", {})
        if not meta and cell.cell_type == "code" and "student_id" in bound_names(cell.source):
            cell.source = f"student_id = {student_id!r}"
        elif meta.get("solution") and cell.cell_type == "code":
            lines = solutions[meta["grade_id"]].split("\n")
            cell.source = "\n".join(line for line in lines if not re.search("(BEGIN|END) SOLUTION", line))
        elif meta.get("solution"):
            cell.source = "An answer in words."
    return as_bytes(notebook)


def cell_with(source: Source, variant: Variant) -> dict[str, str]:
    """The grade_id of the cell where the variant belongs, and the text of that cell with it."""
    grade_id, text = next((g, t) for g, t in source.solutions.items() if variant.exercise in bound_names(t))
    if variant.whole_cell:
        return {grade_id: variant.source}
    value = variant.name if callable(source.reference[variant.exercise]) else f"{variant.name}(student_id)"
    return {grade_id: f"{text}\n\n\n{variant.source}\n\n\n{variant.exercise} = {value}"}


def as_bytes(notebook: nbformat.NotebookNode) -> bytes:
    return str(nbformat.writes(notebook)).encode()


def graded(files: SetFiles, submissions: dict[str, bytes], settings: Settings) -> Iterator[Result]:
    """Judge submissions (notebooks' bytes by student) as any class is judged; results as they come."""
    with (
        tempfile.TemporaryDirectory(prefix="audit-") as folder,
        contextlib.closing(Run(Store(Path(folder)), lambda: Pool(settings.jobs), 2 * settings.jobs)) as run,
    ):
        for student, data in submissions.items():
            prepared = Prepared(files, student, settings, SEED).from_bytes(data, f"{files.name}.ipynb", [])
            if isinstance(prepared, Result):
                yield prepared
            else:
                yield from (step.result for step in run.submit(prepared))
        while run.pending:
            yield from (step.result for step in run.wait())
