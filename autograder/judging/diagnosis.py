"""Says which mistake is behind wrong answers, the most certain first.

A misconception of the catalogue that explains them; a general change of the reference that gives the same answers; what
can be said of all wrong answers beside the right ones, or beside those of a misconception; and what is true of one
check, of which alone it is then said.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any
from zlib import crc32

import numpy as np

from autograder.judging.client import Entry
from autograder.judging.proxies import Proxy
from autograder.judging.recognition import Answer, answers_with_tolerance, begins_like, by_question, recognise, same
from autograder.judging.reference import Judged
from autograder.judging.session import EXAMPLES, Outcome
from autograder.judging.source import TestCell
from autograder.judging.variants import Variant
from autograder.results import Misconception
from autograder.sandbox.inside.workspace import time_limit

DIAGNOSIS_SECONDS = 60.0  # of computing, after which no further variant is run for an exercise
GENERAL_SECONDS = 3.0  # of computing for a check of a general variant, which may loop for long
PAIR_SECONDS = 3.0  # of computing, for two mistakes at once, on each submission until all were tried
MOST_ALIKE = 50  # of two mistakes at once that begin like the student's answers
ENOUGH = 3  # different wrong numbers that what is said has to explain; one more where they are a few by hand
MOST_NUMBERS = 20_000  # of an answer: of larger ones nothing is said
CHANGED = "You write into something that your function was given (with -=, out=, an index or the like); work on a copy."

Run = tuple[Variant, list[Entry]]
Asked = tuple[Any, ...]


@np.errstate(all="ignore")  # a student's numbers overflow
def diagnosed(
    source: Judged, test: TestCell, expected: Outcome, outcome: Outcome, seed: int, made_for: str, seconds: float
) -> tuple[list[Misconception], bool]:
    """What is said of these answers, and whether everything was tried.

    Comparing them with all that was run may take twice so many `seconds` of computing. Raises OutOfTime.
    """
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
    with time_limit(seconds, clock=time.process_time):
        found = recognise(student, reference, runs)
    if found:
        return [Misconception(v.name, v.exercise, v.says) for v in found], True
    if any("changes its input in place" in check.reason for check in outcome.checks):
        return [Misconception("changes_its_input", test.grade_id, CHANGED)], True
    if any(entry.is_observed for entry in reference):  # answers may be right in other forms than the reference's
        return [], len(runs) == len(variants)
    answers, atol = answers_with_tolerance(student, reference)
    if all(answer.is_right for answer in answers):  # with right helpers, or in what was recorded
        return [], len(runs) == len(variants)
    general: list[Variant] = []
    if only_data or not test.is_personal:  # numbers are made in no time, what is asked of functions is kept
        general = [v for name in sorted(test.solution_names & test.names) for v in source.catalogue.general_of(name)]
    tried = runs_of(general, stops=True, check_seconds=GENERAL_SECONDS)
    alike = runs_of([variant for variant, start in tried if begins_like(student, start, atol)])
    is_done = len(runs) == len(variants) and len(tried) == len(general)
    if general and not only_data and not any(evidence(answers, transcript, atol) for _, transcript in alike):
        given = {a.question: a.given for a in answers}
        pairs, is_done = source.first_wrong_of_pairs(test, seed, PAIR_SECONDS)
        both = [v for v, first in pairs if (e := given.get(first.question)) and same(e, first.given, atol)]
        alike += runs_of(sorted(both, key=lambda v: v.whole_cell)[:MOST_ALIKE])  # changed arguments first
    failed = [check.name for check in outcome.checks if not check.passed]
    with time_limit(seconds, clock=time.process_time):
        said = _without_a_name(answers, atol, failed, runs, alike, source.catalogue.descriptions)
    # one name, one sentence: the report on a class counts by names
    named = [Misconception(f"{name}_{crc32(text.encode()):08x}", test.grade_id, text) for name, text in said]
    return named, is_done


def _without_a_name(
    answers: list[Answer],
    atol: float,
    failed: list[str],
    runs: list[Run],
    alike: list[Run],
    descriptions: list[Callable[..., str]],
) -> list[tuple[str, str]]:
    """A name and a sentence for what no misconception explains: what is true of all answers, else of one check."""

    def described(wrong: list[Answer], asked: list[tuple[bool, Asked]], others: list[Run]) -> Iterator[tuple[str, str]]:
        numbers = [a for a in wrong if not a.given.error and not a.right.error]
        theirs = [(v.says, by_question(transcript)) for v, transcript in others]
        answered = [
            (says, [parts_of(entries[a.question]) for a in numbers])
            for says, entries in theirs
            if all((entry := entries.get(a.question)) and not entry.error for a in numbers)
        ]
        pairs = [(parts_of(a.given), parts_of(a.right)) for a in numbers]
        for say in descriptions:
            if sentence := say(pairs, asked, answered):
                yield say.__name__.strip("_"), sentence

    wrong = [a for a in answers if not a.is_right and a.question[0] in failed]
    for variant, transcript in alike:
        if evidence(answers, transcript, atol) >= ENOUGH:
            return [(variant.name, variant.says)]
    for said in described(wrong, [(a.is_right, a.right.asked) for a in answers], runs):
        return [said]
    for check in failed:
        mine, least = [a for a in answers if a.question[0] == check], ENOUGH + (check == EXAMPLES)
        begin = f"In the check “{check}” your answers are those of this mistake: "
        for some, said_first, most in ((runs, begin, 1), (alike, f"In the check “{check}”: ", MOST_ALIKE)):
            fits = {v.says: v.name for v, transcript in some if evidence(mine, transcript, atol) >= least}
            for says, name in fits.items() if len(fits) <= most else ():
                return [(f"{name}_in_one_check", f"{said_first}{says}")]
    for check in failed if len(failed) > 1 else []:
        for name, says in described([a for a in wrong if a.question[0] == check != EXAMPLES], [], []):
            return [(f"{name}_in_one_check", f"In the check “{check}”: {says}")]
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
    given, right, found = parts_of(answer.given), parts_of(answer.right), 0
    for name, mine in given.items():
        theirs = right.get(name, np.empty(0))
        apart = mine.ravel()
        if mine.shape == theirs.shape:
            apart = mine[~np.isclose(mine, theirs, rtol=1e-4, atol=1e-6, equal_nan=True)]
        found += len(np.unique(apart.round(4))) if set(np.unique(apart)) - {0.0, 1.0} else apart.size
    return max(found, 1)


def parts_of(entry: Entry) -> dict[str, np.ndarray]:
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
