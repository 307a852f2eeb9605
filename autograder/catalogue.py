"""What a set's `catalogue.py` imports: it registers known right and wrong variants of the exercises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

registered: list[tuple[str, dict[str, Any]]] | None = None
"""What the catalogue that is being read has said so far; None where none is read, as when a linter imports it."""


def _register(kind: str, **details: Any) -> None:
    if registered is not None:
        registered.append((kind, details))


def _variant(kind: str, **details: Any) -> Callable[[Any], Any]:
    def decorate(value: Any) -> Any:
        _register(kind, value=value, **details)
        return value

    return decorate


def wrong(exercise: str, says: str, based_on: str | None = None) -> Callable[[Any], Any]:
    """Decorator: the function or class is a wrong variant of `exercise`; `says` is the sentence for the student.

    `based_on` names a function or class of the reference's cell for `exercise`, and the variant is that cell with one
    thing changed: a decorated function takes the place of that function, and the methods of a decorated class take the
    place of that class's methods of the same names.
    """
    return _variant("wrong", exercise=exercise, says=says, based_on=based_on)


def right(exercise: str, based_on: str | None = None) -> Callable[[Any], Any]:
    """Decorator: the function or class is a right variant of `exercise`, in another style; `based_on` as in `wrong`."""
    return _variant("right", exercise=exercise, based_on=based_on)


def edited(exercise: str, name: str, old: str, new: str, says: str = "") -> None:
    """A variant made from the reference's cell by replacing `old`, which occurs once, by `new`; both within one line.

    With `says` it is a wrong variant, without it a right one. Where more changes, write it out: `wrong(…, based_on=…)`.
    """
    _register("edited", exercise=exercise, name=name, old=old, new=new, says=says)


def general(make: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    """Decorator: `make(value, cell)` changes any exercise's reference, which has this value and stands in this cell.

    It yields, for each change, words that go on from "your answers are those", and a value or the text of a cell.
    """
    _register("general", value=make)
    return make


def description(say: Callable[..., str]) -> Callable[..., str]:
    """Decorator: `say(answers, others, checks)` says what is true of wrong answers, "" for nothing.

    It is given each `recognition.Answer`, each misconception with its answers by their questions, and the verdicts.
    """
    _register("description", value=say)
    return say


def survivor(exercise: str, old: str, new: str, why: str) -> None:
    """Explain surviving mutants: those of the cell binding `exercise` that turn a line with `old` into one with `new`.

    A dropped statement becomes `pass`. `audit` accepts no survivor without explanation and no explanation without one.
    """
    _register("survivor", exercise=exercise, old=old, new=new, why=why)
