"""What can be said of wrong answers that no misconception explains: only what is true of all of them.

What they are beside the right ones, whatever led to it, or beside those of a misconception; and to which questions they
are wrong. This text is read in front of each catalogue; its names begin with an underscore, for they stand in its
namespace.
"""

from itertools import combinations, permutations
from typing import TYPE_CHECKING

import numpy as np

from autograder.catalogue import description

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
    "the right one times one and the same factor": _times(None),
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
        g.shape == r.shape and bool((abs(g - r) <= 1e-2 * abs(r).max(initial=0.0)).all() and r.any())
    ),
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
        _alike(g, r) and g.ndim > 1 and g.shape[-2] > 1 and _same(g, np.broadcast_to(g[..., :1, :], g.shape))
    ),
}
for _one, _other in [*((n, n) for n in range(4)), *combinations(range(4), 2)]:
    _places = f"place {_one}" if _one == _other else f"places {_one} and {_other}"
    _RELATIONS[f"right everywhere but at {_places} along the last axis, counted from 0"] = _wrong_only(
        _at(-1, [_one, _other])
    )
_BESIDE = {says: holds for says, holds in _RELATIONS.items() if "shape" in says or "axes" in says}
_BESIDE |= {f"the right one {says}": _made(change) for says, change in _ANSWERS.items()}
_BESIDE |= _RELATIONS  # those of the shape come first: a mean over an axis of size 1 is one, too
_ENOUGH = 3  # wrong numbers, of all answers together, that a relation has to explain; of a single answer twice as many


def _by_part(pairs):
    """The arrays of both sides for each part that all have, where they differ; all of them in the second."""
    names = [[*one] for pair in pairs for one in pair]
    if not names or any(each != names[0] for each in names):
        return {}, {}
    whole = {name: [(one[name], other[name]) for one, other in pairs] for name in names[0]}
    return {name: [(g, r) for g, r in both if not _same(g, r)] for name, both in whole.items()}, whole


def _holding(relations, pairs):
    for name, wrong in _by_part(pairs)[0].items():
        if sum(min(g.size, r.size) for g, r in wrong) >= (_ENOUGH if len(wrong) > 1 else 2 * _ENOUGH):
            for says, holds in relations.items():
                if all(_holds(holds, g, r) for g, r in wrong):
                    yield name, says


def _holds(holds, given, right):
    with np.errstate(all="ignore"):
        try:
            return holds(given, right)
        except (ValueError, IndexError, TypeError):  # it is about more axes than these arrays have
            return False


@description
def _relation(pairs, asked, others):
    return next((f"Where {part} is wrong, it is {says}." for part, says in _holding(_BESIDE, pairs)), "")


@description
def _mistake_and_relation(pairs, asked, others):
    made = {says: _made(change) for says, change in _ANSWERS.items()}
    found = {
        f"Two things at once: {mistake} And what comes of it, you return {says}."
        for mistake, answers in (others if len(pairs) > 1 else [])
        for _, says in _holding(made, [(given, other) for (given, _), other in zip(pairs, answers, strict=True)])
    }
    return found.pop() if len(found) == 1 else ""


# what a question is, where all wrong answers and no right ones are given: arrays as (shape, is a mask, largest number)


def _some(holds):
    return lambda arrays, numbers: any(holds(shape, is_mask, size) for shape, is_mask, size in arrays)


_CONDITIONS = {
    "an array has more than two axes": _some(lambda shape, is_mask, size: len(shape) > 2),
    "an array has more than three axes": _some(lambda shape, is_mask, size: len(shape) > 3),
    "an array has more than four axes": _some(lambda shape, is_mask, size: len(shape) > 4),
    "no array has more than two axes": lambda arrays, numbers: all(len(shape) < 3 for shape, *_ in arrays),
    "an array has a single axis": _some(lambda shape, is_mask, size: len(shape) == 1),
    "there is a mask": _some(lambda shape, is_mask, size: is_mask),
    "there is a mask with more than two axes": _some(lambda shape, is_mask, size: is_mask and len(shape) > 2),
    "numbers are larger than 20, or smaller than -20": _some(lambda shape, is_mask, size: size > 20),
    "an axis has size 1": _some(lambda shape, is_mask, size: 1 in shape),
    "the first two arrays have the same shape": lambda arrays, numbers: (
        len({a[0] for a in arrays[:2]}) == 1 < len(arrays)
    ),
    "the first two arrays differ in shape": lambda arrays, numbers: len(arrays) > 1 and arrays[0][0] != arrays[1][0],
    "a width is odd": _some(lambda shape, is_mask, size: len(shape) > 0 and shape[-1] % 2 == 1),
    "a number is negative": lambda arrays, numbers: any(n < 0 for n in numbers),
    "a number is 0": lambda arrays, numbers: 0 in numbers,
    "a number is 1": lambda arrays, numbers: 1 in numbers,
    "a number is odd": lambda arrays, numbers: any(n % 2 == 1 for n in numbers),
    "a number is larger than 1": lambda arrays, numbers: any(n > 1 for n in numbers),
    "a number is no whole one": lambda arrays, numbers: any(n % 1 for n in numbers),
}
_OF_ONE = ("axes", "mask", "axis")  # what is said of a single wrong answer, too
_RIGHT_BESIDE = 3  # right answers, where it is said of which questions the wrong ones are


@description
def _just_where(pairs, asked, others):
    known = [(is_right, about) for is_right, about in asked if about]
    right = sum(is_right for is_right, _ in known)
    for says, holds in _CONDITIONS.items() if right >= _RIGHT_BESIDE else []:
        if len(known) - right >= (1 if any(word in says for word in _OF_ONE) else 2) and all(
            holds([a for a in about if isinstance(a, tuple)], [a for a in about if isinstance(a, (int, float))])
            != is_right
            for is_right, about in known
        ):
            return f"Of all that was asked, your answers are wrong just where {says}."
    return ""


@description
def _only_part(pairs, asked, others):
    wrong, whole = _by_part(pairs)
    bad = [name for name, both in wrong.items() if both]
    if len(pairs) < 2 or len(bad) != 1 or len(whole) == 1:
        return ""
    return f"Only {bad[0]} is wrong; the rest is right in every answer that was compared."
