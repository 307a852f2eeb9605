"""Recognises a catalogued misconception in a student's answers.

While a student is judged, every answer is recorded. The same test cell is then run on each wrong variant with the same
inputs; a variant is named when it gives the student's wrong answers, mostly, and contradicts none of the right ones.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import numpy as np

from autograder.judging.client import Entry
from autograder.judging.proxies import Proxy
from autograder.judging.variants import Variant
from autograder.sandbox.inside.exact import is_table

Question = tuple[str, str, int]
"""The check that asks, the digest of what it asks, and how often it asked that before."""

RTOL = 1e-3
ATOL = 1e-5
NO_NUMBERS = (str, bytes, dict, set, type(None))
TYPED_ATOL = 5e-3  # numbers that a student typed are rounded
MOST_NUMBERS = 20_000  # of an answer of which more is asked than whether it is the same
FINE_ATOL = 1e-8  # with a hundred times as much relative to the size: for answers of which none is far off


def is_flat(values: Any) -> bool:
    """Whether Python's numbers alone stand in a list or tuple: of these, millions take no time."""
    return set(map(type, values)) <= {bool, int, float, complex}


def close(one: Any, other: Any, atol: float = ATOL) -> bool:
    """Whether two recorded answers are the same, up to rounding."""
    if type(one) is type(other) is np.ndarray:  # most answers are
        return _close_arrays(one, other, atol)
    if isinstance(one, Proxy) or isinstance(other, Proxy):
        return isinstance(one, Proxy) and isinstance(other, Proxy)
    are_lists = isinstance(one, (list, tuple)) and isinstance(other, (list, tuple))
    if are_lists and ({*map(type, (*one, *other))} == {np.ndarray} or _is_ragged(one) or _is_ragged(other)):
        return len(one) == len(other) and all(map(close, one, other, repeat(atol)))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[k], other[k], atol) for k in one)
    if is_table(one) or is_table(other):
        return type(one) is type(other) and _close_tables(one, other, atol)
    if isinstance(one, NO_NUMBERS) or isinstance(other, NO_NUMBERS):
        return type(one) is type(other) and bool(one == other)
    if _is_ragged(one) or _is_ragged(other):
        return False
    return _close_arrays(np.asarray(_plain(one)), np.asarray(_plain(other)), atol)


def _close_tables(one: Any, other: Any, atol: float) -> bool:
    """Whether two tables of pandas, or two columns, have the same labels and, up to rounding, the same values."""
    if not all(mine.equals(theirs) for mine, theirs in zip(one.axes, other.axes, strict=True)):
        return False
    mine, theirs = ([table] if table.ndim == 1 else [column for _, column in table.items()] for table in (one, other))
    pairs = zip(mine, theirs, strict=True)
    return all(a.equals(b) or _close_arrays(np.asarray(a), np.asarray(b), atol) for a, b in pairs)


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
    rtol = min(RTOL, 100 * atol)
    limit = max(atol, rtol * atol * scale)
    if are_finite.all() and np.isfinite(first).all():  # what allclose does, in a fifth of its time
        with np.errstate(over="ignore"):
            apart = np.abs(first - second.astype(np.result_type(second, 1.0)))
        return bool((apart <= limit + rtol * sizes).all())
    return bool(np.allclose(first, second, rtol=rtol, atol=limit, equal_nan=True))


def _plain(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().cpu().float().numpy() if value.is_floating_point() else value.detach().cpu().numpy()
    if isinstance(value, (list, tuple)) and not is_flat(value):
        return [_plain(v) for v in value]
    return value


def _is_ragged(value: Any) -> bool:
    """Whether a list or tuple is something else than an array written out."""
    if not isinstance(value, (list, tuple)) or is_flat(value):
        return False
    has_others = any(isinstance(item, (*NO_NUMBERS, Proxy)) or _is_ragged(item) for item in value)
    return has_others or len({np.shape(_plain(item)) for item in value}) > 1


def numbers_in(value: Any) -> np.ndarray:
    """All numbers of an answer in a row; none where there is something else in it, or very many."""
    parts = list(value.values()) if isinstance(value, dict) else value
    parts = parts if isinstance(parts, (list, tuple)) and not is_flat(parts) else [parts]
    is_other = any(isinstance(p, (Proxy, *NO_NUMBERS)) or _is_ragged(p) for p in parts)
    if is_other or sum(int(np.prod(np.shape(p))) for p in parts) > MOST_NUMBERS:
        return np.empty(0)
    array = np.concatenate([[], *(np.ravel(_plain(p)) for p in parts)])
    return array.astype(float) if array.dtype.kind in "biuf" else np.empty(0)


def by_question(transcript: list[Entry]) -> dict[Question, Entry]:
    asked: Counter[tuple[str, str]] = Counter()
    entries = {}
    for entry in transcript:
        place = entry.check, entry.key
        entries[*place, asked[place]] = entry
        asked[place] += 1
    return entries


def same(one: Entry, other: Entry, atol: float = ATOL) -> bool:
    if one.error or other.error:
        return one.error == other.error
    if one.changed != other.changed:
        return False
    return close(one.value, other.value, TYPED_ATOL if one.is_value else atol)


@dataclass
class Answer:
    """A student's answer beside the reference's to the same question."""

    question: Question
    given: Entry
    right: Entry
    is_right: bool


def answers_beside(student: list[Entry], reference: list[Entry], atol: float = ATOL) -> list[Answer]:
    references = by_question(reference)
    both = [(q, entry, references[q]) for q, entry in by_question(student).items() if q in references]
    return [Answer(question, entry, right, same(entry, right, atol)) for question, entry, right in both]


def answers_with_tolerance(student: list[Entry], reference: list[Entry]) -> tuple[list[Answer], float]:
    """The answers, and by how much they may differ: by less where none is far off."""
    answers = answers_beside(student, reference)
    if all(answer.is_right for answer in answers):
        return answers_beside(student, reference, FINE_ATOL), FINE_ATOL
    return answers, ATOL


def explained(answers: list[Answer], variant: list[Entry], atol: float = ATOL) -> set[Question]:
    """The questions to which the variant gives the student's wrong answers; none where it is not what the student did.

    It is not when it contradicts an answer that is right, when it gives fewer than half of the wrong answers in the
    places where it is wrong itself, or when it gives only errors and not all of those: errors have many causes.
    """
    variants = by_question(variant)
    beside = [(answer, variants[answer.question]) for answer in answers if answer.question in variants]
    wrong = [(answer, of_variant) for answer, of_variant in beside if not answer.is_right]
    gives = [answer for answer, of_variant in wrong if same(answer.given, of_variant, atol)]
    if not gives or not all(same(answer.given, of_variant, atol) for answer, of_variant in beside if answer.is_right):
        return set()
    given = {answer.question for answer in gives}
    misses = sum(a.question not in given and not same(of_variant, a.right, atol) for a, of_variant in wrong)
    if misses > len(gives) or (misses and all(answer.given.error for answer in gives)):
        return set()
    return given


def without_form(transcript: list[Entry], reference: list[Entry]) -> list[Entry]:
    """What counts where a test cell observes what answers lead to: that, and the errors.

    The answers themselves may be right in many forms, such as a matrix in another basis, and equal by chance.
    """
    if not any(entry.is_observed for entry in reference):
        return transcript
    return [entry if entry.is_observed else replace(entry, value=None) for entry in transcript]


def recognise(
    student: list[Entry], reference: list[Entry], runs: list[tuple[Variant, list[Entry]]], most: int = 2
) -> list[Variant]:
    """The variants that explain the student's wrong answers, those that explain most first."""
    answers, atol = answers_with_tolerance(without_form(student, reference), without_form(reference, reference))
    candidates = []
    for variant, transcript in runs:
        gives = explained(answers, without_form(transcript, reference), atol)
        if gives:  # of those that explain as much, the one that is alike in form
            alike = sum(answer.is_right for answer in answers_beside(student, transcript))
            candidates.append((variant, gives, alike))
    found: list[Variant] = []
    covered: set[Question] = set()
    for _ in range(most if candidates else 0):
        variant, gives, _ = max(candidates, key=lambda c: (len(c[1] - covered), c[2]))
        if gives - covered:
            found.append(variant)
            covered |= gives
    return found
