"""Known right and wrong variants of the exercises, and how a wrong one is recognised in a student's answers.

A set's `catalogue.py` registers variants with `wrong`, `right` and `edited`. While a student is judged, every answer
is recorded. The same test cell is then run on each wrong variant with the same inputs; a variant is named when it
gives the student's wrong answers, mostly, and contradicts none of the right ones.
"""

from __future__ import annotations

import ast
import contextlib
import io
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import repeat
from types import FunctionType
from typing import Any

import numpy as np

from autograder.judging.proxies import Entry, Handle
from autograder.notebook.names import bound_names, compiled_silent, used_names

RTOL = 1e-3
ATOL = 1e-5
TYPED_ATOL = 5e-3  # numbers that a student typed are rounded


@dataclass
class Variant:
    """`value` is the function or class, or for data a function of the student's id; `source` its text."""

    name: str
    exercise: str
    value: Any
    source: str
    is_right: bool
    says: str = ""
    whole_cell: bool = False
    expects: str = ""


@dataclass
class Survivor:
    """Why some mutants of the reference solution are no worse than it: they answer every allowed question the same.

    `old` and `new` are parts of the line before and after the mutation, spaces not counted.
    """

    exercise: str
    old: str
    new: str
    why: str


class BadCatalogue(Exception):
    """catalogue.py cannot be used; the message says where and why."""


_registering: list[tuple[str, dict[str, Any]]] | None = None


def _register(kind: str, **details: Any) -> None:
    if _registering is not None:
        _registering.append((kind, details))


def wrong(exercise: str, says: str) -> Callable[[Any], Any]:
    """Decorator: the function or class is a wrong variant of `exercise`; `says` is the sentence for the student."""

    def decorate(value: Any) -> Any:
        _register("wrong", exercise=exercise, says=says, value=value)
        return value

    return decorate


def right(exercise: str) -> Callable[[Any], Any]:
    """Decorator: the function or class is a right variant of `exercise`, in another style."""

    def decorate(value: Any) -> Any:
        _register("right", exercise=exercise, value=value)
        return value

    return decorate


def edited(exercise: str, name: str, old: str, new: str, says: str = "") -> None:
    """A variant made from the reference's cell by replacing `old`, which occurs once, by `new`.

    With `says` it is a wrong variant, without it a right one.
    """
    _register("edited", exercise=exercise, name=name, old=old, new=new, says=says)


def survivor(exercise: str, old: str, new: str, why: str) -> None:
    """Explain surviving mutants: those of the cell binding `exercise` that turn a line with `old` into one with `new`.

    A dropped statement becomes `pass`. `audit` accepts no survivor without explanation and no explanation without one.
    """
    _register("survivor", exercise=exercise, old=old, new=new, why=why)


class Catalogue:
    """The variants of one set, and its explained survivors. `reference` are the names the variants may use."""

    def __init__(self, text: str, reference: dict[str, Any], solution_text: Callable[[str], str], where: str) -> None:
        self.variants: list[Variant] = []
        self.survivors: list[Survivor] = []
        self.where = where
        if text.strip():
            self._read(text, reference, solution_text)

    def _read(self, text: str, reference: dict[str, Any], solution_text: Callable[[str], str]) -> None:
        global _registering
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise BadCatalogue(f"{self.where}: catalogue.py is no Python (line {error.lineno}: {error.msg})") from error
        lines = text.split("\n")
        sources = {
            node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        _registering = registered = []
        try:
            exec(compile(tree, f"<{self.where}: catalogue.py>", "exec"), {**reference, "__name__": "catalogue"})
        except Exception as error:
            raise BadCatalogue(f"{self.where}: catalogue.py fails ({type(error).__name__}: {error})") from error
        finally:
            _registering = None
        for kind, details in registered:
            exercise = details["exercise"]
            if exercise not in reference:
                raise BadCatalogue(f"{self.where}: catalogue.py names the exercise {exercise!r}, which does not exist")
            if kind == "survivor":
                self.survivors.append(Survivor(**details))
            elif kind == "edited":
                self.variants.append(self._edited(details, reference, solution_text(exercise)))
            else:
                value = details["value"]
                self.variants.append(
                    Variant(
                        value.__name__,
                        exercise,
                        value,
                        sources[value.__name__],
                        kind == "right",
                        details.get("says", ""),
                    )
                )
        names = [(v.exercise, v.name) for v in self.variants]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise BadCatalogue(f"{self.where}: catalogue.py has two variants called {sorted(twice)[0]}")

    def _edited(self, details: dict[str, Any], reference: dict[str, Any], cell: str) -> Variant:
        old, name = details["old"], details["name"]
        if cell.count(old) != 1:
            raise BadCatalogue(
                f"{self.where}: catalogue.py edits {old!r} in the cell of {details['exercise']!r}, "
                f"where it occurs {cell.count(old)} times; it must occur once"
            )
        text = cell.replace(old, details["new"])
        namespace = {**reference}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{self.where}: {name}>", "exec"), namespace)
        except Exception as error:
            raise BadCatalogue(f"{self.where}: the variant {name!r} fails ({type(error).__name__}: {error})") from error
        return Variant(
            name, details["exercise"], namespace[details["exercise"]], text, not details["says"], details["says"], True
        )

    def wrong_of(self, names: set[str]) -> list[Variant]:
        return [v for v in self.variants if not v.is_right and v.exercise in names]


def value_for(variant: Variant, reference: dict[str, Any], student_id: str) -> Any:
    """What the variant puts in place of the exercise's name: itself, or for data the value for this student.

    `reference` are the names of the source notebook, for personal data best those made for this student.
    """
    if callable(reference[variant.exercise]):
        return _with_data_of(variant, reference)
    if not variant.whole_cell:
        return variant.value(student_id)
    namespace = {**reference, "student_id": student_id}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compiled_silent(variant.source, f"<{variant.name}>"), namespace)
    return namespace[variant.exercise]


def _with_data_of(variant: Variant, names: dict[str, Any]) -> Any:
    """The variant's function reading the data in `names`, which may be another student's; else just itself."""
    function = variant.value
    if not isinstance(function, FunctionType):
        return function
    data = {
        n: names[n]
        for n in used_names(variant.source) - bound_names(variant.source)
        if n in names and not callable(names[n]) and names[n] is not function.__globals__.get(n)
    }
    if not data:
        return function
    changed = FunctionType(
        function.__code__,
        {**function.__globals__, **data},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    changed.__kwdefaults__ = function.__kwdefaults__
    return changed


# ---------------------------------------------------------------------------------------- recognition


def close(one: Any, other: Any, atol: float = ATOL) -> bool:
    """Whether two recorded answers are the same, up to rounding."""
    if type(one) is type(other) is np.ndarray:  # most answers are
        return _close_arrays(one, other, atol)
    if isinstance(one, Handle) or isinstance(other, Handle):
        return isinstance(one, Handle) and isinstance(other, Handle)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k], atol) for k in one)
    if isinstance(one, (str, bytes, type(None))) or isinstance(other, (str, bytes, type(None))):
        return type(one) is type(other) and one == other
    if isinstance(one, (set, dict)) or isinstance(other, (set, dict)):
        return type(one) is type(other) and one == other
    if _are_arrays(one) and _are_arrays(other):
        return len(one) == len(other) and all(map(_close_arrays, one, other, repeat(atol)))
    ragged = _ragged(one), _ragged(other)
    if any(ragged):
        return (
            isinstance(one, (list, tuple))
            and isinstance(other, (list, tuple))
            and len(one) == len(other)
            and all(close(a, b, atol) for a, b in zip(one, other, strict=True))
        )
    return _close_arrays(np.asarray(_plain(one)), np.asarray(_plain(other)), atol)


def _are_arrays(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(type(item) is np.ndarray for item in value)


def _close_arrays(first: np.ndarray, second: np.ndarray, atol: float) -> bool:
    if first.shape != second.shape or first.dtype.kind not in "biufc" or second.dtype.kind not in "biufc":
        return False
    if first.dtype == second.dtype and first.tobytes() == second.tobytes():
        return True
    if (first.dtype.kind == "b") != (second.dtype.kind == "b"):  # a mask of numbers is not a mask of truth values
        return False
    if first.dtype.kind == "b":
        return bool((first == second).all())
    sizes = np.abs(second).astype(np.float64)
    are_finite = np.isfinite(sizes)
    scale = float(np.max(sizes, initial=0.0, where=are_finite))
    limit = max(atol, RTOL * atol * scale)
    if are_finite.all() and np.isfinite(first).all():  # what allclose does, in a fifth of its time
        with np.errstate(over="ignore"):
            apart = np.abs(first - second.astype(np.result_type(second, 1.0)))
        return bool((apart <= limit + RTOL * sizes).all())
    return bool(np.allclose(first, second, rtol=RTOL, atol=limit, equal_nan=True))


def _plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return value


def _ragged(value: Any) -> bool:
    """Whether a list or tuple is something else than an array written out."""
    if not isinstance(value, (list, tuple)):
        return False
    shapes = set()
    for item in value:
        if isinstance(item, (str, bytes, dict, set, type(None), Handle)) or _ragged(item):
            return True
        shapes.add(np.shape(_plain(item)))
    return len(shapes) > 1


def _grouped(transcript: list[Entry]) -> dict[tuple[str, str], list[Entry]]:
    groups = defaultdict(list)
    for entry in transcript:
        groups[entry.check, entry.key].append(entry)
    return groups


def _same(one: Entry, other: Entry) -> bool:
    if one.error or other.error:
        return one.error == other.error
    if one.changed != other.changed:
        return False
    return close(one.value, other.value, TYPED_ATOL if one.is_value else ATOL)


@dataclass
class Answer:
    """A student's answer beside the reference's to the same question; `place` and `index` tell the question."""

    number: int
    given: Entry
    right: Entry
    is_right: bool
    place: tuple[str, str]
    index: int


def answers_beside(student: list[Entry], reference: list[Entry]) -> list[Answer]:
    references = _grouped(reference)
    seen: dict[tuple[str, str], int] = defaultdict(int)
    answers = []
    for number, entry in enumerate(student):
        place = entry.check, entry.key
        index = seen[place]
        seen[place] += 1
        if index < len(references.get(place, [])):
            right = references[place][index]
            answers.append(Answer(number, entry, right, _same(entry, right), place, index))
    return answers


def explained(answers: list[Answer], observed: set[str], variant: list[Entry]) -> set[int]:
    """Which of the student's wrong answers (by number) the variant gives; none where it is not what the student did.

    It is not when it contradicts an answer that is right, when it gives fewer than half of the wrong answers in the
    places where it is wrong itself, or when all it gives are errors and not all of those: errors are alike for many
    reasons. Where a check observes what an answer leads to, its raw form, such as a matrix in some basis, need not be
    given: `observed` names these checks.
    """
    variants = _grouped(variant)
    gives, misses = [], 0
    for answer in answers:
        of_variant = variants.get(answer.place, [])
        if answer.index >= len(of_variant):
            continue
        entry, given = answer.given, of_variant[answer.index]
        is_same = _same(entry, given)
        if answer.is_right:
            if not is_same:
                return set()
        elif is_same:
            gives.append(answer)
        elif not _same(given, answer.right) and (entry.check not in observed or entry.is_observed):
            misses += 1
    if misses > len(gives) or (misses and all(answer.given.error for answer in gives)):
        return set()
    return {answer.number for answer in gives}


def recognise(
    student: list[Entry], reference: list[Entry], runs: list[tuple[Variant, list[Entry]]], most: int = 2
) -> list[Variant]:
    """The variants that explain the student's wrong answers, those that explain most first."""
    answers = answers_beside(student, reference)
    observed = {entry.check for entry in reference if entry.is_observed}
    candidates = []
    for variant, transcript in runs:
        gives = explained(answers, observed, transcript)
        if gives:
            candidates.append((variant, gives))
    found: list[Variant] = []
    covered: set[int] = set()
    while candidates and len(found) < most:
        variant, gives = max(candidates, key=lambda c: len(c[1] - covered))
        if not gives - covered:
            break
        found.append(variant)
        covered |= gives
    return found
