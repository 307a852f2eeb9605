"""Says which mistake is behind wrong answers, or only what is true of them; the most certain first."""

from __future__ import annotations

import contextlib
import copy
import io
import time
from dataclasses import replace
from itertools import takewhile
from typing import Any
from zlib import crc32

import numpy as np

from autograder.judging import recognition
from autograder.judging.client import Entry
from autograder.judging.proxies import Proxy
from autograder.judging.recognition import Answer, Question, answers_with_tolerance, by_question, same, without_form
from autograder.judging.reference import Judged, Names
from autograder.judging.session import Outcome
from autograder.judging.source import TestCell
from autograder.judging.trials import Call
from autograder.judging.variants import Variant
from autograder.results import Misconception
from autograder.sandbox.inside.workspace import OutOfTime, time_limit

DIAGNOSIS_SECONDS = 60.0  # of computing, after which no further misconception is run; what was run is kept
SEARCH_SECONDS = 2.0  # of computing, for changes and pairs on one exercise of one student
MOST_TRIES = 3000  # of changes, and of pairs
CALL_SECONDS = 0.3  # of computing, for one answer of a change, which may loop for long
ENOUGH = 3  # different wrong numbers, and wrong answers, that what is said has to explain
CHANGED = "You write into something that your function was given (with -=, out=, an index or the like); work on a copy."


@np.errstate(all="ignore")  # a student's numbers overflow
def diagnosed(
    source: Judged, test: TestCell, expected: Outcome, outcome: Outcome, seed: int, made_for: str, seconds: float
) -> tuple[list[Misconception], bool]:
    """What is said of these answers, and whether all misconceptions were tried; OutOfTime after twice the `seconds`."""
    end = time.process_time() + DIAGNOSIS_SECONDS
    only_data = all(entry.is_value for entry in expected.transcript)
    variants = source.catalogue.wrong_of(test.names)
    outcomes = source.variant_outcomes(test, variants, seed, made_for, only_data)
    in_time = takewhile(lambda _: time.process_time() < end, outcomes)  # kept: the next student's search goes on
    runs = [(variant, of_variant.transcript) for variant, of_variant in in_time]
    is_done = len(runs) == len(variants)
    with time_limit(seconds, clock=time.process_time):
        found = recognition.recognise(outcome.transcript, expected.transcript, runs)
    if found:
        return [Misconception(v.name, v.exercise, v.says) for v in found], True
    if any("changes its input in place" in check.reason for check in outcome.checks):
        return [Misconception("changes_its_input", test.grade_id, CHANGED)], True
    right = without_form(expected.transcript, expected.transcript)
    answers, atol = answers_with_tolerance(without_form(outcome.transcript, expected.transcript), right)
    failed = {check.name for check in outcome.checks if not check.passed}  # others accept what is right in another way
    answers = [replace(a, is_right=a.is_right or a.question[0] not in failed) for a in answers]
    wrong = [answer for answer in answers if not answer.is_right]
    said = None
    with time_limit(seconds, clock=time.process_time):
        others = [(variant, by_question(without_form(theirs, right))) for variant, theirs in runs]
        if _is_enough(wrong) and (only_data or not test.is_personal):
            # a mistake that leaves these answers right is no part of what is wrong with them
            here = {v.says for v, its in others for a in wrong if not same(its.get(a.question, a.right), a.right, atol)}
            said = _searched(source, test, source.namespace_for(test, made_for), seed, answers, atol, here)
        descriptions, checks = source.catalogue.descriptions, outcome.checks
        told = ((say.__name__.strip("_"), say(answers, others, checks)) for say in descriptions)
        said = said or next((one for one in told if one[1]), None)
    # one sentence, one name: the report on a class counts by names
    names = [(f"{name}_{crc32(text.encode()):08x}", text) for name, text in filter(None, [said])]
    return [Misconception(name, test.grade_id, text) for name, text in names], is_done


def _searched(
    source: Judged, test: TestCell, names: Names, seed: int, answers: list[Answer], atol: float, here: set[str]
) -> tuple[str, str] | None:
    """The change, or the two mistakes `here`, that alone explain the answers; None where the search meets a bound."""
    right, end = [answer.right for answer in answers], time.process_time() + SEARCH_SECONDS
    only_data = all(entry.is_value for entry in right)
    # plain answers of functions, wrong ones first, which tell most; where something is observed, they do not count
    calls = [(a, a.right.asked) for a in sorted(answers, key=lambda a: a.is_right) if a.right.asked]
    calls = [(a, call) for a, call in calls if call[0].count("()") == 1 and not isinstance(a.right.value, Proxy)]
    calls = [] if any(entry.is_observed for entry in right) else calls

    def fits(variant: Variant) -> bool:
        try:
            with time_limit(CALL_SECONDS, clock=time.process_time):
                made = variant.value or source.catalogue.made(variant.name, variant.exercise, variant.source, names)
        except (Exception, OutOfTime):  # a change after which the cell does not run
            return False
        for answer, call in calls:  # that takes a hundredth of the time of a whole test cell
            if call[0] == f"{variant.exercise}()" and not _alike(answer.given, _answered(made, call), atol):
                return False
        own = {variant.exercise: made}
        for stops in (False,) if calls or only_data else (True, False):  # most do not fit from the first check on
            more = {"check_seconds": CALL_SECONDS, "stops": stops}
            whole = source.outcome_with(test, names, own, variant.source, seed, only_data, **more).transcript
            theirs = by_question(without_form(whole, right))
            if not _explains([a for a in answers if not stops or a.question in theirs], theirs, atol):
                return False
        return True

    for kinds in (source.catalogue.changes_of, source.catalogue.pairs_of):
        found: dict[tuple[str, str], Variant] = {}
        every = (variant for name in sorted(test.solution_names & test.names) for variant in kinds(name))
        for tries, variant in enumerate(every):
            if tries > MOST_TRIES or time.process_time() > end:
                return None
            if variant.also and not {variant.says, variant.also} <= here:
                continue
            if (variant.says, variant.also) not in found and fits(variant):
                found[variant.says, variant.also] = variant
        if found:
            return _what_all_say([*found.values()])
    return None


def _what_all_say(fits: list[Variant]) -> tuple[str, str] | None:
    """A name and a sentence where one thing alone explains the answers; of pairs of mistakes what is in all of them."""
    if not fits[0].also:
        steps = sum(variant.value is None for variant in fits)
        if steps > 1 or len(fits) - steps > 1:
            return None
        # a changed step is often the same as a changed argument, which says it in the words of the task
        return "a_change", f"Your answers are those {fits[0].says}."
    common = sorted(set.intersection(*({variant.says, variant.also} for variant in fits)))
    begin = "Two mistakes at once give your answers" + (":" if len(fits) == 1 else ", of which one is this:")
    return ("two_at_once", " ".join([begin, *common])) if common else None


def _answered(function: Any, call: Call) -> Entry:
    args, kwargs = copy.deepcopy(call[1:])
    try:
        with time_limit(CALL_SECONDS, clock=time.process_time), contextlib.redirect_stdout(io.StringIO()):
            return Entry("", "", function(*args, **kwargs))
    except (Exception, OutOfTime) as error:
        return Entry("", "", error=type(error).__name__)


def _alike(one: Entry, other: Entry, atol: float) -> bool:
    """Where both fail with an error, in words of their own, nothing is contradicted."""
    return bool(one.error and other.error) or same(replace(one, changed=()), replace(other, changed=()), atol)


def _explains(answers: list[Answer], variant: dict[Question, Entry], atol: float) -> bool:
    return all((theirs := variant.get(a.question)) and _alike(a.given, theirs, atol) for a in answers)


def _is_enough(wrong: list[Answer]) -> bool:
    """Whether wrong answers tell one mistake from another: several numbers, of several inputs in several shapes."""
    calls = [a.right.asked for a in wrong if a.right.asked and not a.given.error]
    numbers = sum(map(_wrong_numbers, wrong))
    if not calls:
        return numbers > ENOUGH
    forms = {str([getattr(v, "shape", v) for v in (*call[1], *call[2].values())]) for call in calls}
    return len(forms) > 1 and numbers >= (ENOUGH if len(calls) >= ENOUGH else 3 * ENOUGH)


def _wrong_numbers(answer: Answer) -> int:
    """How many different ones; NaN and infinities come from all kinds of mistakes and do not count."""
    if answer.is_right or answer.given.error:
        return 0
    given, right = (recognition.numbers_in(entry.value) for entry in (answer.given, answer.right))
    if given.size == 0:
        return int(answer.given.value is not None)
    apart = given if given.shape != right.shape else given[~np.isclose(given, right, rtol=1e-4, equal_nan=True)]
    apart = apart[np.isfinite(apart)]
    return len(np.unique(apart.round(4))) if set(apart) - {0.0, 1.0} else apart.size
