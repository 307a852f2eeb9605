"""Says which mistake is behind wrong answers, and only what is true of them.

A misconception of the catalogue that explains them; else a general change of the reference, or two mistakes at once,
that give all the same answers and are alone in that; else what the wrong answers are beside the right ones, and where
they are wrong; and else at least which check shows it.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import io
import time
from itertools import takewhile
from typing import Any
from zlib import crc32

import numpy as np

from autograder.judging.client import Entry
from autograder.judging.proxies import Proxy
from autograder.judging.recognition import (
    Answer,
    answers_with_tolerance,
    by_question,
    close,
    recognise,
    same,
    without_form,
)
from autograder.judging.reference import Judged
from autograder.judging.session import EXAMPLES, Outcome
from autograder.judging.source import TestCell
from autograder.judging.trials import Call
from autograder.judging.variants import Variant, names_of
from autograder.results import ERROR, FAILED, Check, Misconception
from autograder.sandbox.inside.workspace import OutOfTime, time_limit

DIAGNOSIS_SECONDS = 60.0  # of computing, after which no further misconception is run; what was run is kept
SEARCH_SECONDS = 2.0  # of computing, for changes and pairs on one exercise of one student
MOST_TRIES = 3000  # of changes and pairs
MOST_FITS = 12  # that give the same answers: so many different things would be said of nothing in particular
CALL_SECONDS = 0.3  # of computing, for one answer of a change, which may loop for long
ENOUGH = 3  # different wrong numbers, and wrong answers, that what is said has to explain
MANY = 8  # numbers, where they are of two answers
MOST_NUMBERS = 20_000  # of an answer: of larger ones nothing is said
CHANGED = "You write into something that your function was given (with -=, out=, an index or the like); work on a copy."

Run = tuple[Variant, list[Entry]]
Said = list[tuple[str, str]]
"""Names and sentences."""


@np.errstate(all="ignore")  # a student's numbers overflow
def diagnosed(
    source: Judged, test: TestCell, expected: Outcome, outcome: Outcome, seed: int, made_for: str, seconds: float
) -> tuple[list[Misconception], bool]:
    """What is said of these answers, and whether all misconceptions were tried.

    Comparing them with all that was run may take twice so many `seconds` of computing. Raises OutOfTime.
    """
    end = time.process_time() + DIAGNOSIS_SECONDS
    student, reference = outcome.transcript, expected.transcript
    only_data = all(entry.is_value for entry in reference)
    variants = source.catalogue.wrong_of(test.names)
    outcomes = source.variant_outcomes(test, variants, seed, made_for, only_data)
    in_time = takewhile(lambda _: time.process_time() < end, outcomes)  # kept: the next student's search goes on
    runs = [(variant, of_variant.transcript) for variant, of_variant in in_time]
    is_done = len(runs) == len(variants)
    with time_limit(seconds, clock=time.process_time):
        found = recognise(student, reference, runs)
    if found:
        return [Misconception(v.name, v.exercise, v.says) for v in found], True
    if any("changes its input in place" in check.reason for check in outcome.checks):
        return [Misconception("changes_its_input", test.grade_id, CHANGED)], True
    answers, atol = answers_with_tolerance(without_form(student, reference), without_form(reference, reference))
    if all(answer.is_right for answer in answers):  # with right helpers, or in what was recorded
        return [], is_done
    failed = {check.name for check in outcome.checks if not check.passed}
    wrong = [answer for answer in answers if not answer.is_right and answer.question[0] in failed]
    said: Said = []
    with time_limit(seconds, clock=time.process_time):
        if is_enough(wrong) and (only_data or not test.is_personal):
            said = Search(source, test, expected, seed, made_for, answers, atol).said()
        if not any(entry.is_observed for entry in reference):  # answers are right in other forms than the reference's
            said = said or _described(source, answers, wrong, runs)
        said = said or _in_one_check(outcome.checks, answers, runs, reference, atol) or _first_check(outcome.checks)
    # one name, one sentence: the report on a class counts by names
    named = [Misconception(f"{name}_{crc32(text.encode()):08x}", test.grade_id, text) for name, text in said]
    return named, is_done


class Search:
    """Looks for the changes and the pairs of mistakes that give all of a student's answers."""

    def __init__(
        self,
        source: Judged,
        test: TestCell,
        expected: Outcome,
        seed: int,
        made_for: str,
        answers: list[Answer],
        atol: float,
    ) -> None:
        self.source, self.test, self.seed, self.made_for = source, test, seed, made_for
        self.reference, self.answers, self.atol = expected.transcript, answers, atol
        self.names = source.namespace_for(test, made_for)
        self.only_data = all(entry.is_value for entry in self.reference)
        asked = [(a, a.right.asked) for a in answers if a.right.asked and not a.given.changed]
        # what tells most at the least cost comes first; beside what is observed, answers themselves do not count
        self.calls = [] if any(e.is_observed for e in self.reference) else sorted(asked, key=lambda c: c[0].is_right)

    def said(self) -> Said:
        """What alone explains the answers, and nothing where the search does not come to its end."""
        end, tries = time.process_time() + SEARCH_SECONDS, 0
        cells = {self.source.solution_text(name): name for name in sorted(self.test.solution_names & self.test.names)}
        catalogue = self.source.catalogue
        for kinds in (catalogue.changes_of, catalogue.pairs_of):
            fits: dict[tuple[str, str], Variant] = {}
            for variant in (v for name in cells.values() for v in kinds(name)):
                tries += 1
                if tries > MOST_TRIES or time.process_time() > end or len(fits) > MOST_FITS:
                    return []
                if (variant.says, variant.also) not in fits and self._fits(variant):
                    fits[variant.says, variant.also] = variant
            if fits:
                return _what_all_say(list(fits.values()))
        return []

    def _fits(self, variant: Variant) -> bool:
        """Whether all answers are the variant's: first those to plain calls, and then those to the whole test cell."""
        try:
            with time_limit(CALL_SECONDS, clock=time.process_time):
                names = names_of(variant, self.names, self.made_for)
        except (Exception, OutOfTime):  # a change after which the cell does not run
            return False
        for answer, call in self.calls:
            root = call.path.removesuffix("()")
            if root in names and not self._gives(names[root], call, answer.given):
                return False
        settings: dict[str, Any] = {"check_seconds": CALL_SECONDS, "stops": True}
        sources = dict.fromkeys(names, variant.source)
        own = self.test, {**self.names, **names}, sources, self.seed, self.only_data
        if not self.calls and not self.only_data:  # then at the first check already most do not fit
            begin = without_form(self.source.outcome_with(*own, **settings).transcript, self.reference)
            given = {a.question: a.given for a in self.answers}
            both = [(given[question], e) for question, e in by_question(begin).items() if question in given]
            if not all(_alike(one, other, self.atol) for one, other in both):
                return False
        settings["stops"] = False
        whole = without_form(self.source.outcome_with(*own, **settings).transcript, self.reference)
        return explains_all(self.answers, whole, self.atol)

    def _gives(self, function: Any, call: Call, given: Entry) -> bool:
        args, kwargs = copy.deepcopy((call.args, call.kwargs))
        try:
            with time_limit(CALL_SECONDS, clock=time.process_time), contextlib.redirect_stdout(io.StringIO()):
                value = function(*args, **kwargs)
        except (Exception, OutOfTime):
            return bool(given.error)
        return not given.error and close(given.value, value, self.atol)


def _what_all_say(fits: list[Variant]) -> Said:
    """One thing where it alone explains the answers, of pairs what is in all of them.

    A changed step is often the same as a changed argument, which says it in the words of the task.
    """
    arguments = [v for v in fits if v.value is not None]
    steps = [v for v in fits if v.value is None and not v.also]
    if arguments or steps:
        is_one = len(arguments) < 2 and len(steps) < 2
        return [("a_change", f"Your answers are those {(arguments or steps)[0].says}.")] if is_one else []
    if len(fits) == 1:
        return [("two_at_once", f"Two mistakes at once give your answers. {fits[0].says} And: {fits[0].also}")]
    common = {fits[0].says, fits[0].also}.intersection(*({v.says, v.also} for v in fits))
    return [("one_of_two", f"Two mistakes at once give your answers. One of them: {says}") for says in sorted(common)]


def _alike(one: Entry, other: Entry, atol: float) -> bool:
    """Where both fail with an error, in words of their own, nothing is contradicted."""
    return bool(one.error and other.error) or same(one, other, atol)


def explains_all(answers: list[Answer], variant: list[Entry], atol: float) -> bool:
    theirs = by_question(variant)
    return all((entry := theirs.get(a.question)) and _alike(a.given, entry, atol) for a in answers)


def is_enough(wrong: list[Answer]) -> bool:
    """Whether wrong answers tell one mistake from another: several numbers, of several inputs in several shapes."""
    told = [a for a in wrong if not a.given.error and not a.right.error]
    calls = [_form(a.right.asked) for a in told if a.right.asked]
    numbers = wrong_numbers(told)
    if not calls:
        return numbers > ENOUGH
    return len(set(calls)) > 1 and numbers >= (ENOUGH if len(calls) >= ENOUGH else MANY)


def wrong_numbers(answers: list[Answer]) -> int:
    return sum(_different_numbers(a) for a in answers if not a.is_right and not a.given.error)


def _form(call: Call) -> tuple[Any, ...]:
    return tuple(tuple(v.shape) if hasattr(v, "shape") else str(v) for v in (*call.args, *call.kwargs.values()))


def _different_numbers(answer: Answer) -> int:
    """How many there are that are wrong; NaN and infinities come from all kinds of mistakes and do not count."""
    given, right, found = parts_of(answer.given), parts_of(answer.right), 0
    for name, mine in given.items():
        theirs = right.get(name, np.empty(0))
        apart = mine.ravel()
        if mine.shape == theirs.shape:
            apart = mine[~np.isclose(mine, theirs, rtol=1e-4, atol=1e-6, equal_nan=True)]
        apart = apart[np.isfinite(apart)]
        found += len(np.unique(apart.round(4))) if set(np.unique(apart)) - {0.0, 1.0} else apart.size
    return found if given else 1


# ------------------------------------------------------------------------- what is true of the answers


def _described(source: Judged, answers: list[Answer], wrong: list[Answer], runs: list[Run]) -> Said:
    """What the wrong answers are, and where they are wrong: the first of the catalogue's descriptions of each kind."""
    numbers = [a for a in wrong if not a.given.error and not a.right.error]
    pairs = [(parts_of(a.given), parts_of(a.right)) for a in numbers]
    theirs = [(v.says, by_question(transcript)) for v, transcript in runs]
    answered = [
        (says, [parts_of(entries[a.question]) for a in numbers])
        for says, entries in theirs
        if all((entry := entries.get(a.question)) and not entry.error for a in numbers)
    ]
    asked = [(a.is_right, _by_parameter(source, a.right.asked)) for a in answers]
    found: dict[bool, tuple[str, str]] = {}
    for say in source.catalogue.descriptions:
        is_where = say.__name__.startswith("_where")
        if is_where not in found and (sentence := say(pairs, asked, answered)):
            found[is_where] = say.__name__.strip("_"), sentence
    return list(found.values())


def _by_parameter(source: Judged, call: Call | None) -> dict[str, Any] | None:
    """What was given, by the names of the parameters; None where that is not known."""
    if call is None:
        return None
    root, *rest = call.path.split("()")
    function = source.reference.get(root)
    if any(rest):  # a method
        function = getattr(function, rest[0].removeprefix("."), None)
    elif len(rest) > 1:
        function = getattr(function, "forward", None)
    try:
        first = () if function is source.reference.get(root) else (None,)
        bound = inspect.signature(function).bind(*first, *call.args, **call.kwargs)  # type: ignore[arg-type]
    except TypeError:
        return None
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def _in_one_check(
    checks: list[Check], answers: list[Answer], runs: list[Run], reference: list[Entry], atol: float
) -> Said:
    """The misconception that alone explains all answers to a check which fails, of which alone it is then said."""
    for check in (c.name for c in checks if not c.passed and c.name != EXAMPLES):
        mine = [a for a in answers if a.question[0] == check]
        if wrong_numbers(mine) <= ENOUGH:
            continue
        fits = {v.says: v for v, transcript in runs if explains_all(mine, without_form(transcript, reference), atol)}
        if len(fits) == 1:
            ((says, variant),) = fits.items()
            begin = f"In the check “{check}” alone your answers are those of this mistake: "
            return [(f"{variant.name}_in_one_check", f"{begin}{says}")]
    return []


def _first_check(checks: list[Check]) -> Said:
    """Where nothing explains the answers: which check they fail first, and that others hold."""
    failing = [c for c in checks if not c.passed]
    holding = len(checks) - len(failing)
    if not holding or failing[0].verdict not in (FAILED, ERROR) or len(checks) < 2:
        return []
    name, begin = failing[0].name, "We know no mistake that gives all your answers; this much is seen: "
    if len(failing) == 1:
        return [("first_check", f"{begin}they are right in every check but “{name}”.")]
    others = f"{holding} of {len(checks)} checks hold"
    return [("first_check", f"{begin}{others}, and the first in which they are wrong is “{name}”.")]


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
