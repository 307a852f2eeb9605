"""What can be said of wrong answers that no misconception explains: only what is true of all of them.

What they are beside the right ones, whatever led to it, or beside those of a misconception; where they are wrong; and
which check shows it. This text is read in front of each catalogue, in whose namespace its names stand; they begin with
an underscore.
"""

import inspect
from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import description
from autograder.judging.proxies import Proxy
from autograder.judging.recognition import numbers_in

if TYPE_CHECKING:  # read in front of this
    from changes import _ALIKE


def _same(one, other):
    return one.shape == other.shape and bool(np.allclose(one, other, rtol=1e-4, atol=1e-6, equal_nan=True))


def _made(change):
    return lambda given, right: _same(given, np.asarray(change(right)))


_OVER = {"the last axis": -1, "the last axis but one": -2, "the last axis but two": -3}
_ANSWERS = {
    **_ALIKE,
    "after taking the logarithm": np.log,
    "after taking the exponential": np.exp,
    "after taking the square root": np.sqrt,
    "after tanh": np.tanh,
    "subtracted from 1": lambda x: 1 - x,
    "as divisor of 1": lambda x: 1 / x,
    "with 0 for all that is negative": lambda x: np.maximum(x, 0),
    "rounded to whole numbers": np.round,
    "rounded to two decimals": lambda x: x.round(2),
    "added up along the last axis (running sums)": lambda x: np.cumsum(x, -1),
    "with 1 for the largest number of each row and 0 for the others": lambda x: np.where(
        x == x.max(-1, keepdims=True), 1.0, 0.0
    ),
    **{f"averaged over {words}": lambda x, axis=axis: x.mean(axis) for words, axis in _OVER.items()},
    **{f"summed over {words}": lambda x, axis=axis: x.sum(axis) for words, axis in _OVER.items()},
    "for the first part of the leading axis alone": lambda x: x[0],
}


def _wrong_only(where):
    """Whether all wrong numbers lie in a part of the array, which is half of it at most."""

    def holds(given, right):
        if given.shape != right.shape or right.ndim < 1 or right.size < 4:
            return False
        wrong = ~np.isclose(given, right, rtol=1e-4, atol=1e-6, equal_nan=True)
        part = np.broadcast_to(where(right), right.shape)
        return bool(wrong.any() and not (wrong & ~part).any() and part.sum() <= right.size / 2)

    return holds


def _at(axis, place):
    def where(x):
        part = np.zeros(x.shape, bool)
        np.moveaxis(part, axis, -1)[..., place] = True
        return part

    return where


def _is_flat(x, axes):
    """Whether there are equal numbers only along an axis: of these everything is a multiple."""
    return bool((np.ptp(x, axis=axes) <= 1e-3 * abs(x).max(initial=0.0)).any())


def _times(axes):
    def holds(given, right):
        if given.shape != right.shape or right.ndim < 1 or np.size(right, axes) < 3 or _is_flat(right, axes):
            return False
        size = (right * right).sum(axis=axes, keepdims=True)
        factor = (given * right).sum(axis=axes, keepdims=True) / np.where(size > 0, size, 1)
        return bool((abs(factor) > 1e-6).all()) and _same(given, factor * right)

    return holds


def _plus(axes):
    def holds(given, right):
        if given.shape != right.shape or right.ndim < 1 or np.size(right, axes) < 3 or _is_flat(right, axes):
            return False
        more = given - right
        return _same(more, np.broadcast_to(more.mean(axis=axes, keepdims=True), more.shape))

    return holds


def _to_one(x, axis=-1):
    return x.ndim > 1 and bool(np.allclose(x.sum(axis=axis), 1, atol=1e-4))


def _no_longer_to_one(given, right):
    return _to_one(right) and given.ndim > 1 and not _to_one(given) and bool((right >= 0).all())


def _is_lower(x):
    return x.ndim > 1 and not np.triu(x, 1).any()


def _is_repeated(x):
    return _same(x, np.broadcast_to(x[..., :1, :], x.shape))


def _off_by_at_most(given, right, share):
    """Of the largest right number."""
    return given.shape == right.shape and bool(
        (abs(given - right) <= share * abs(right).max(initial=0.0)).all() and right.any()
    )


def _alike(given, right):
    return given.shape == right.shape and right.size > 3


_RELATIONS = {
    "the right one in another shape: its numbers and their order are right": lambda g, r: (
        g.shape != r.shape and _same(g.ravel(), r.ravel())
    ),
    "the right one with its axes in another order": lambda g, r: (
        1 < r.ndim < 5 and any(_same(g, r.transpose(order)) for order in permutations(range(r.ndim)))
    ),
    "the right one but for NaN in some places": lambda g, r: (
        _alike(g, r)
        and bool(np.isnan(g).any() and np.isfinite(g).any() and np.isfinite(r).all())
        and _same(g[~np.isnan(g)], r[~np.isnan(g)])
    ),
    "right everywhere but on the diagonal": _wrong_only(lambda x: np.eye(*x.shape[-2:], dtype=bool)),
    "right everywhere but above the diagonal": _wrong_only(lambda x: ~np.tri(*x.shape[-2:], dtype=bool)),
    "right everywhere but below the diagonal": _wrong_only(lambda x: np.tri(*x.shape[-2:], k=-1, dtype=bool)),
    "right everywhere but in the first row": _wrong_only(_at(-2, 0)),
    "right everywhere but in the last row": _wrong_only(_at(-2, -1)),
    "right everywhere but in the first column": _wrong_only(_at(-1, 0)),
    "right everywhere but in the last column": _wrong_only(_at(-1, -1)),
    "right everywhere but in columns 1, 3, 5 and so on (counted from 0)": _wrong_only(_at(-1, slice(1, None, 2))),
    "right everywhere but in columns 0, 2, 4 and so on (counted from 0)": _wrong_only(_at(-1, slice(0, None, 2))),
    "right everywhere but where the right one is 0": _wrong_only(lambda x: x == 0),
    "the right one times a factor, the same for all its numbers": _times(None),
    "the right one but for a factor, another one for each row": _times(-1),
    "the right one but for a factor, another one for each column": lambda g, r: r.ndim > 1 and _times(-2)(g, r),
    "the right one with the same number added everywhere": _plus(None),
    "the right one but for a number added to each row, another one for each": _plus(-1),
    "the right one with its rows in another order": lambda g, r: (
        _alike(g, r) and r.ndim == 2 and _same(g[np.lexsort(g.T.round(6))], r[np.lexsort(r.T.round(6))])
    ),
    "the right one with the numbers of each row in another order": lambda g, r: (
        _alike(g, r) and _same(np.sort(g, -1), np.sort(r, -1))
    ),
    "made of the right numbers, which stand in other places": lambda g, r: (
        r.size > 3 and _same(np.sort(g, None), np.sort(r, None))
    ),
    "right to two or three digits, and not to more": lambda g, r: (
        _off_by_at_most(g, r, 1e-2) and not (_off_by_at_most(g, r, 1e-4))
    ),
    "right to four digits or more, but not as nearly as numbers can be": lambda g, r: _off_by_at_most(g, r, 1e-4),
    "such that its columns sum to 1, where the rows should": lambda g, r: _no_longer_to_one(g, r) and _to_one(g, -2),
    "such that all its numbers together sum to 1, where each row should": lambda g, r: (
        _no_longer_to_one(g, r) and abs(g.sum() - 1) < 1e-4
    ),
    "not such that each row sums to 1, as it should": _no_longer_to_one,
    "0 above the diagonal, where the right one is not": lambda g, r: (
        _alike(g, r) and _is_lower(g) and not _is_lower(r) and bool(g.any())
    ),
    "not 0 above the diagonal, as the right one is": lambda g, r: _alike(g, r) and _is_lower(r) and not _is_lower(g),
    "the same in every row, where the rows should differ": lambda g, r: (
        _alike(g, r) and g.ndim > 1 and _is_repeated(g) and not _is_repeated(r)
    ),
}
for _one, _other in [*((n, n) for n in range(4)), *combinations(range(4), 2)]:
    _places = f"place {_one}" if _one == _other else f"places {_one} and {_other}"
    _RELATIONS[f"right everywhere but at {_places} along the last axis, counted from 0"] = _wrong_only(
        _at(-1, [_one, _other])
    )
_BESIDE = {says: holds for says, holds in _RELATIONS.items() if any(word in says for word in ("shape", "axes", "NaN"))}
_BESIDE |= {f"the right one {says}": _made(change) for says, change in _ANSWERS.items()}
# those of the shape come first: a mean over an axis of size 1 is one, too; and what is made of a 0 may be NaN
_BESIDE |= _RELATIONS
# different numbers, of all wrong answers together, that a relation has to explain; of one answer twice that
_ENOUGH = 3


def _by_part(pairs):
    """The arrays of both sides for each part that all have, where they differ; all of them in the second."""
    names = [[*one] for pair in pairs for one in pair]
    if not names or any(each != names[0] for each in names):
        return {}, {}
    whole = {name: [(one[name], other[name]) for one, other in pairs] for name in names[0]}
    return {name: [(g, r) for g, r in both if not _same(g, r)] for name, both in whole.items()}, whole


def _are_telling(given, enough):
    """Whether there are enough different numbers, or zeros and ones in a pattern: much becomes NaN, or all zeros."""
    numbers = np.concatenate([x[np.isfinite(x)] for x in given]) if given else np.empty(0)
    different = len(np.unique(numbers.round(6)))
    return different >= enough or (different == 2 and set(numbers) == {0.0, 1.0} and len(numbers) >= 4 * enough)


def _holding(relations, pairs):
    for name, wrong in _by_part(pairs)[0].items():
        if _are_telling([g for g, _ in wrong], _ENOUGH if len(wrong) > 1 else 2 * _ENOUGH):
            for says, holds in relations.items():
                if all(_holds(holds, g, r) for g, r in wrong):
                    yield name, says


def _holds(holds, given, right):
    with np.errstate(all="ignore"):
        try:
            return holds(given, right)
        except (ValueError, IndexError, TypeError):  # it is about more axes than these arrays have
            return False


def _told(answers):
    """Those that are wrong and no error; what a check observed of them is none."""
    wrong = [a for a in answers if not a.is_right and not a.right.is_observed]
    return [a for a in wrong if not a.given.error and not a.right.error]


def _parts(entry):
    """The arrays of floats in an answer, and what they are called; none where there is something else in it."""
    value = entry.value
    if isinstance(value, dict):
        named = {f'your "{key}"': item for key, item in value.items()}
    elif isinstance(value, (tuple, list)) and any(not isinstance(v, Proxy) and hasattr(v, "shape") for v in value):
        named = {f"value {number} of those you return": item for number, item in enumerate(value, 1)}
    else:
        named = {f'your "{entry.key.split(" ", 2)[2]}"' if entry.is_value else "your answer": value}
    found = {}
    for name, item in named.items():
        numbers = numbers_in(item)
        if numbers.size == 0:
            return {}
        try:
            found[name] = numbers.reshape(np.shape(item))
        except ValueError:  # a list whose rows have different lengths
            return {}
    return found


def _relation(answers):
    pairs = [(_parts(a.given), _parts(a.right)) for a in _told(answers)]
    return next((f"Where {part} is wrong, it is {says}." for part, says in _holding(_BESIDE, pairs)), "")


# where answers are wrong: what is asked there, by the names of the parameters, and nowhere else or hardly ever


def _given(call):
    """What was given to a call, by the names of the parameters; None where that is not known."""
    path, args, kwargs = call or ("", (), {})
    root, *rest = path.split("()")
    function, first = globals().get(root), ()
    if len(rest) > 1:  # an object's method, or the object itself is called
        function, first = getattr(function, rest[0].removeprefix(".") or "forward", None), ("self",)
    try:
        bound = inspect.signature(function).bind(*first, *args, **kwargs)
    except (TypeError, AttributeError):
        return None
    bound.apply_defaults()
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def _arrays(given):
    return [np.asarray(v.detach() if hasattr(v, "detach") else v) for v in given.values() if hasattr(v, "shape")]


def _some(holds):
    return lambda given: any(holds(x) for x in _arrays(given))


_CIRCUMSTANCES = {
    "there is a mask": _some(lambda x: x.dtype.kind == "b"),
    "there is a mask with batch axes": _some(lambda x: x.dtype.kind == "b" and x.ndim > 2),
    "there are batch axes (an array has more than two axes)": _some(lambda x: x.ndim > 2),
    "there are several batch axes (an array has more than three)": _some(lambda x: x.ndim > 3),
    "there are no batch axes (no array has more than two axes)": lambda given: (
        len(_arrays(given)) > 0 and not any(x.ndim > 2 for x in _arrays(given))
    ),
    "an array has a single axis": _some(lambda x: x.ndim == 1),
    "an axis has size 1": _some(lambda x: 1 in x.shape),
    "numbers are beyond 20 or -20": _some(lambda x: x.dtype.kind in "iuf" and abs(x).max(initial=0) > 20),
    "an array holds whole numbers as integers": _some(lambda x: x.dtype.kind in "iu"),
    "an array is of float32": _some(lambda x: x.dtype == np.float32),
    "a width is odd": _some(lambda x: x.ndim > 0 and x.shape[-1] % 2 == 1),
    "all arrays have one and the same shape": lambda given: (
        len(_arrays(given)) > 1 == len({x.shape for x in _arrays(given)})
    ),
    "the arrays do not all have the same shape": lambda given: len({x.shape for x in _arrays(given)}) > 1,
}
_OF_NUMBERS = {
    "negative": lambda n: n < 0,
    "0": lambda n: n == 0,
    "1": lambda n: n == 1,
    "larger than 1": lambda n: n > 1,
    "odd": lambda n: n % 2 == 1,
    "not a whole number": lambda n: n % 1 != 0,
}
_RIGHT_ELSEWHERE = 2  # right answers at least, and as many wrong or right ones beside them
_MOST_VALUES = 8  # different ones of a parameter that chooses


def _circumstances(asked):
    """What may be the matter where answers are wrong: words and a function of what is given by name."""
    yield from _CIRCUMSTANCES.items()
    for name in dict.fromkeys(n for given in asked for n in given):
        values = [given[name] for given in asked if name in given]
        if any(v is None for v in values):
            yield f"`{name}` is given", lambda given, name=name: given.get(name) is not None
            yield f"`{name}` is not given", lambda given, name=name: given.get(name) is None
        elif all(isinstance(v, (bool, str)) for v in values) and len({*values}) <= _MOST_VALUES:
            for value in sorted({*values}):
                yield f"`{name}` is {value!r}", lambda given, name=name, value=value: given.get(name) == value
        elif all(isinstance(v, (int, float)) for v in values):
            for says, holds in _OF_NUMBERS.items():
                yield f"`{name}` is {says}", lambda given, name=name, holds=holds: bool(holds(given.get(name, 0.5)))
        elif all(isinstance(v, (str, list, tuple)) for v in values):
            yield f"`{name}` is empty", lambda given, name=name: len(given.get(name, "?")) == 0


def _where(answers):
    asked = [(a.is_right, _given(a.right.asked)) for a in answers]
    if any(given is None for is_right, given in asked if not is_right):
        return ""
    known = [(is_right, given) for is_right, given in asked if given is not None]
    bad, best = sum(not is_right for is_right, _ in known), {}
    if len(known) < 2 * _RIGHT_ELSEWHERE:
        return ""
    for says, holds in _circumstances([given for _, given in known]):
        there = frozenset(n for n, (_, given) in enumerate(known) if holds(given))
        is_all = all(is_right or n in there for n, (is_right, _) in enumerate(known))
        # of a parameter's value, much is so by chance
        is_much = 2 * bad >= len(there) if says in _CIRCUMSTANCES else bad == len(there) > 1
        if bad and is_all and is_much and len(known) - len(there) >= _RIGHT_ELSEWHERE:
            best.setdefault(there, []).append(says)
    if not best:
        return ""
    there = min(best, key=len)
    if sum(len(other) == len(there) for other in best) > 1 or len(best[there]) > 2:  # it may be any of these
        return ""
    here = f"{bad} of {len(there)} {'is' if bad == 1 else 'are'} wrong"
    return f"As far as we saw, your answers are right except where {' and '.join(best[there])}; there {here}."


@description
def _seen(answers, others, checks):
    return " ".join(filter(None, [_relation(answers), _where(answers)]))


@description
def _only_part(answers, others, checks):
    told = _told(answers)
    parts, whole = _by_part([(_parts(a.given), _parts(a.right)) for a in told])
    bad = [name for name, both in parts.items() if both]
    if len(told) < 2 or len(bad) != 1 or len(whole) == 1:
        return ""
    return f"Only {bad[0]} is wrong; the rest is right in every answer that was compared."


@description
def _mistake_and_relation(answers, others, checks):
    made, told, found = {says: _made(change) for says, change in _ANSWERS.items()}, _told(answers), set()
    for mistake, entries in others if len(told) > 1 else []:
        theirs = [entries.get(a.question) for a in told]
        if all(entry and not entry.error for entry in theirs):
            pairs = [(_parts(a.given), _parts(entry)) for a, entry in zip(told, theirs, strict=True)]
            found |= {(mistake.says, says) for _, says in _holding(made, pairs)}
    if len(found) != 1:
        return ""
    ((mistake, says),) = found
    return f"Two things at once: {mistake} And what comes of it, you return {says}."


@description
def _first_check(answers, others, checks):
    failing = [c for c in checks if not c.passed]
    if not failing or failing[0].verdict not in ("failed", "error"):
        return ""
    name, holding, begin = failing[0].name, len(checks) - len(failing), "We know no mistake that gives all your answers"
    more = _relation([a for a in answers if a.question[0] == name])
    if holding and len(failing) == 1:
        return f"{begin}; this much is seen: they are right in every check but “{name}”. {more}".strip()
    if holding:
        begin = f"{begin}; {holding} of {len(checks)} checks hold"
    said = f"{begin}. The first that does not hold is “{name}”."
    more = more.replace(" is wrong", " is wrong there", 1)  # in the other checks it may be more
    return f"{said} {more}".strip() if more or holding else ""
