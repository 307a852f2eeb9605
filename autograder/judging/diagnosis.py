"""Says which mistake is behind wrong answers, the most certain first.

A misconception of the catalogue that explains them; a general change of the reference that gives the same answers; what
can be said of all wrong answers beside the right ones, or beside those of a misconception; and what is true of one
check, of which alone it is then said.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import numpy as np

from autograder.judging.client import Entry
from autograder.judging.proxies import Proxy
from autograder.judging.recognition import Answer, answers_with_tolerance, begins_like, by_question, recognise, same
from autograder.judging.reference import Judged
from autograder.judging.session import EXAMPLES, Outcome
from autograder.judging.source import TestCell
from autograder.judging.variants import Relation, Variant
from autograder.results import Misconception

DIAGNOSIS_SECONDS = 60.0  # of computing, after which no further variant is run for an exercise
GENERAL_SECONDS = 3.0  # of computing for a check of a general variant, which may loop for long
PAIR_SECONDS = 5.0  # of computing, for two mistakes at once, on each submission until all were tried
MOST_ALIKE = 50  # of two mistakes at once that begin like the student's answers
ENOUGH = 3  # different wrong numbers that what is said has to explain; one more where they are a few by hand
RIGHT_BESIDE = 3  # right answers, where it is said of which questions the wrong ones are
MOST_NUMBERS = 20_000  # of an answer: of larger ones nothing is said
CHANGED = "You write into something that your function was given (with -=, out=, an index or the like); work on a copy."

Run = tuple[Variant, list[Entry]]


def diagnosed(
    source: Judged, test: TestCell, expected: Outcome, outcome: Outcome, seed: int, made_for: str
) -> tuple[list[Misconception], bool]:
    """What is said of these answers, and whether everything was tried."""
    end = time.process_time() + DIAGNOSIS_SECONDS
    student, reference = outcome.transcript, expected.transcript
    only_data = all(entry.is_value for entry in reference)

    def runs_of(variants: list[Variant], **settings: Any) -> list[Run]:
        # those that were run are kept: the next student's search goes on from there
        outcomes = source.variant_outcomes(test, variants, seed, made_for, only_data, **settings)
        in_time = takewhile(lambda _: time.process_time() < end, outcomes)
        return [(variant, of_variant.transcript) for variant, of_variant in in_time]

    variants = source.catalogue.wrong_of(test.names)
    runs = runs_of(variants)
    if found := recognise(student, reference, runs):
        return [Misconception(v.name, v.exercise, v.says) for v in found], True
    if any("changes its input in place" in check.reason for check in outcome.checks):
        return [Misconception("changes_its_input", test.grade_id, CHANGED)], True
    if any(entry.is_observed for entry in reference):  # answers may be right in other forms than the reference's
        return [], len(runs) == len(variants)
    answers, atol = answers_with_tolerance(student, reference)
    if all(answer.is_right for answer in answers):  # with right helpers, or in what was recorded
        return [], len(runs) == len(variants)
    general: list[Variant] = []
    if not (only_data or test.is_personal):
        general = [v for name in sorted(test.solution_names & test.names) for v in source.catalogue.general_of(name)]
    tried = runs_of(general, stops=True, check_seconds=GENERAL_SECONDS)
    alike = runs_of([variant for variant, start in tried if begins_like(student, start, atol)])
    is_done = len(runs) == len(variants) and len(tried) == len(general)
    if general and not any(evidence(answers, transcript, atol) for _, transcript in alike):
        given = {a.question: a.given for a in answers}
        pairs, is_done = source.first_wrong_of_pairs(test, seed, PAIR_SECONDS)
        both = [v for v, first in pairs if (e := given.get(first.question)) and same(e, first.given, atol)]
        alike += runs_of(sorted(both, key=lambda v: v.whole_cell)[:MOST_ALIKE])  # changed arguments first
    failed = [check.name for check in outcome.checks if not check.passed]
    said = _without_a_name(answers, atol, failed, runs, alike, source.catalogue.relations)
    return [Misconception(name, test.grade_id, sentence) for name, sentence in said], is_done


def _without_a_name(
    answers: list[Answer], atol: float, failed: list[str], runs: list[Run], alike: list[Run], relations: list[Relation]
) -> list[tuple[str, str]]:
    """A name and a sentence for what no misconception explains: what is true of all answers, else of one check."""
    answered = [r for r in relations if r.of_any is not None]
    wrong = [a for a in answers if not a.is_right and a.question[0] in failed]
    for variant, transcript in alike:
        if evidence(answers, transcript, atol) >= ENOUGH and transcript:
            return [(variant.name, variant.says)]
    if said := _related(answered, wrong, runs):
        return [said]
    if said := _just_where([r for r in relations if r.of_any is None], answers):
        return [said]
    if said := _only_part(wrong):
        return [said]
    for check in failed:
        mine, least = [a for a in answers if a.question[0] == check], ENOUGH + (check == EXAMPLES)
        begin = f"In the check “{check}” your answers are those of this mistake: "
        for some, said_first, most in ((runs, begin, 1), (alike, f"In the check “{check}”: ", MOST_ALIKE)):
            fits = {v.says: v.name for v, transcript in some if evidence(mine, transcript, atol) >= least}
            for says, name in fits.items() if len(fits) <= most else ():
                return [(f"{name}_in_one_check", f"{said_first}{says}")]
    for check in failed:
        if said := _related(answered, [a for a in wrong if a.question[0] == check and check != EXAMPLES], []):
            return [(f"{said[0]}_in_one_check", f"In the check “{check}”: {said[1]}")]
    return []


def evidence(answers: list[Answer], variant: list[Entry], atol: float) -> int:
    """How many different wrong numbers a variant shares with these answers; 0 where it gives another answer.

    Where both fail with an error, in words of their own, nothing is shared and nothing contradicted.
    """
    theirs, shared = by_question(variant), 0
    for answer in answers:
        entry = theirs.get(answer.question)
        if entry is None or not (same(answer.given, entry, atol) or (answer.given.error and entry.error)):
            return 0
        if not answer.is_right and not answer.given.error:
            shared += _different_numbers(answer)
    return shared


def _different_numbers(answer: Answer) -> int:
    given, right = _parts(answer.given), _parts(answer.right)
    found = 0
    for name, mine in given.items():
        theirs = right.get(name, np.empty(0))
        apart = mine[~_near(mine, theirs)] if mine.shape == theirs.shape else mine
        found += len(np.unique(apart.round(4))) if set(np.unique(apart)) - {0.0, 1.0} else apart.size
    return max(found, 1)


def _related(relations: list[Relation], wrong: list[Answer], runs: list[Run]) -> tuple[str, str] | None:
    """What is true of all these wrong answers, beside the right ones or beside those of a variant."""
    numbers = [a for a in wrong if not a.given.error and not a.right.error]
    if not numbers:
        return None
    for part, number in _holding(relations, [(a.given, a.right) for a in numbers]):
        return f"relation_{number}", f"Where {part} is wrong, it is {relations[number].says}."
    found = {}
    of_any = [r for r in relations if r.of_any]
    for variant, transcript in runs if len(numbers) > 1 else []:
        theirs = by_question(transcript)
        others = [(a.given, e) for a in numbers if (e := theirs.get(a.question)) is not None and not e.error]
        for _, number in _holding(of_any, others) if len(others) == len(numbers) else []:
            says = f"Two things at once: {variant.says} And what comes of it, you return {of_any[number].of_any}."
            found[says] = f"{variant.name}_and_more"
    return next(((name, says) for says, name in found.items()), None) if len(found) == 1 else None


def _just_where(conditions: list[Relation], answers: list[Answer]) -> tuple[str, str] | None:
    """What tells the questions with wrong answers from those with right ones, where there are several of both."""
    about = [(a.is_right, *_of_kinds(a.right.asked)) for a in answers if a.right.asked]
    counts = Counter(is_right for is_right, *_ in about)
    for number, condition in enumerate(conditions):
        is_one = counts[True] >= RIGHT_BESIDE and counts[False] >= condition.least
        if is_one and all(condition.holds(arrays, numbers) != is_right for is_right, arrays, numbers in about):
            return f"just_where_{number}", f"Of all that was asked, your answers are wrong just where {condition.says}."
    return None


def _of_kinds(asked: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    return [a for a in asked if isinstance(a, tuple)], [a for a in asked if isinstance(a, (int, float))]


def _holding(relations: list[Relation], pairs: list[tuple[Entry, Entry]]) -> Iterator[tuple[str, int]]:
    """Which parts of the first answers are what beside the second ones, in all pairs that differ there."""
    for name, both in _by_part(pairs).items():
        wrong = [(g, r) for g, r in both if not _is_near(g, r)]
        if sum(min(g.size, r.size) for g, r in wrong) >= ENOUGH:
            for number, relation in enumerate(relations):
                if all(_holds(relation, g, r) for g, r in wrong):
                    yield name, number


def _by_part(pairs: list[tuple[Entry, Entry]]) -> dict[str, list[tuple[np.ndarray, np.ndarray]]]:
    """The arrays of both, side by side, for each part that they have; none where they have not the same."""
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    for given, right in pairs:
        mine, theirs = _parts(given), _parts(right)
        if mine.keys() != theirs.keys():
            return {}
        for name in mine:
            parts.setdefault(name, []).append((mine[name], theirs[name]))
    return parts


def _only_part(wrong: list[Answer]) -> tuple[str, str] | None:
    """Which part of what is returned is wrong, where another is right in all wrong answers."""
    parts = _by_part([(a.given, a.right) for a in wrong]) if len(wrong) > 1 else {}
    bad = [name for name, both in parts.items() if not all(_is_near(g, r) for g, r in both)]
    if len(bad) != 1 or len(parts) == 1:
        return None
    return "only_part", f"Only {bad[0]} is wrong; the rest is right in every answer that was compared."


def _is_near(one: np.ndarray, other: np.ndarray) -> bool:
    return one.shape == other.shape and bool(_near(one, other).all())


def _near(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.asarray(np.isclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))


def _holds(relation: Relation, given: np.ndarray, right: np.ndarray) -> bool:
    with np.errstate(all="ignore"):
        try:
            return relation.holds(given, right)
        except (ValueError, IndexError, TypeError):  # it is about more axes than these arrays have
            return False


def _parts(entry: Entry) -> dict[str, np.ndarray]:
    """The arrays of floats in an answer, and what they are called; none where there is something else in it."""
    value = entry.value
    if isinstance(value, dict):
        named = {f'your "{key}"': item for key, item in value.items()}
    elif isinstance(value, (tuple, list)) and any(isinstance(v, np.ndarray) or _is_tensor(v) for v in value):
        named = {f"value {number} of those you return": item for number, item in enumerate(value, 1)}
    else:
        named = {f'your "{entry.key.split(" ", 2)[2]}"' if entry.is_value else "your answer": value}
    found = {}
    for name, item in named.items():
        if isinstance(item, Proxy):
            return {}
        try:
            array = np.asarray(item.detach().cpu() if _is_tensor(item) else item)
        except (ValueError, TypeError):  # rows of unequal lengths, numbers of a kind that NumPy does not have
            return {}
        if array.dtype.kind not in "biuf" or array.size > MOST_NUMBERS:
            return {}
        found[name] = array.astype(float)
    return found


def _is_tensor(value: Any) -> bool:
    return not isinstance(value, Proxy) and hasattr(value, "detach")
