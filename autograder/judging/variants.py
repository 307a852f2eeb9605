"""The variants that a set's catalogue holds, made from its text and the reference solutions."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from types import FunctionType
from typing import Any

from autograder import catalogue
from autograder.errors import AutograderError
from autograder.notebook.names import bound_names, compiled_silent, used_names


@dataclass
class Variant:
    """`value` is the function or class, or for data a function of the student's id; `source` a cell that binds it, and
    that is to be run where there is no value. `also` is the sentence for a second mistake.
    """

    name: str
    exercise: str
    value: Any
    source: str
    is_right: bool
    says: str = ""
    whole_cell: bool = False
    also: str = ""


@dataclass
class Survivor:
    """Why some mutants of the reference solution are no worse than it: they answer every allowed question the same.

    `old` and `new` are parts of the line before and after the mutation, spaces not counted.
    """

    exercise: str
    old: str
    new: str
    why: str


class BadCatalogue(AutograderError):
    """catalogue.py cannot be used; the message says where and why."""


class Catalogue:
    """The variants of one set, and its explained survivors. `reference` are the names the variants may use."""

    def __init__(self, text: str, reference: dict[str, Any], solution_text: Callable[[str], str], where: str) -> None:
        self.variants: list[Variant] = []
        self.survivors: list[Survivor] = []
        self.descriptions: list[Callable[..., str]] = []
        self.where = where
        self._makers: list[Callable[[Any, str], Any]] = []
        self._edits: list[dict[str, str]] = []
        self._general: dict[str, list[Variant]] = {}
        self._reference, self._solution_text = reference, solution_text
        try:
            tree = ast.parse(text)
        except SyntaxError as error:
            raise self._bad(f"is no Python (line {error.lineno}: {error.msg})") from error
        lines = text.split("\n")
        sources = {
            node.name: "\n".join(lines[node.lineno - 1 : node.end_lineno])
            for node in tree.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        }
        registered: list[tuple[str, dict[str, Any]]] = []
        catalogue.registered = registered
        try:
            exec(compile(tree, f"<{self.where}: catalogue.py>", "exec"), {**reference, "__name__": "catalogue"})
        except Exception as error:
            raise self._bad(f"fails ({type(error).__name__}: {error})") from error
        finally:
            catalogue.registered = None
        for kind, details in registered:
            if kind in ("general", "description"):
                (self._makers if kind == "general" else self.descriptions).append(details["value"])
                continue
            exercise, says = details["exercise"], details.get("says", "")
            if exercise not in reference:
                raise self._bad(f"names the exercise {exercise!r}, which does not exist")
            if kind == "survivor":
                self.survivors.append(Survivor(**details))
                continue
            value: Any = details.get("value")
            whole_cell = True
            name = details["name"] if kind == "edited" else value.__name__
            if kind == "edited":
                self._edits += [details] if says else []
                source = self._edited(name, exercise, details["old"], details["new"], solution_text(exercise))
            elif details["based_on"]:
                source = self._based_on(name, details["based_on"], sources[name], solution_text(exercise))
            else:
                source, whole_cell = f"{sources[name]}\n\n\n{exercise} = {name}", False
            if whole_cell:
                value = self.made(name, exercise, source, reference)
            if any((v.exercise, v.name) == (exercise, name) for v in self.variants):
                raise self._bad(f"has two variants called {(exercise, name)}")
            is_right = kind == "right" or (kind == "edited" and not says)
            self.variants.append(Variant(name, exercise, value, source, is_right, says, whole_cell))

    def _bad(self, why: str) -> BadCatalogue:
        return BadCatalogue(f"{self.where}: catalogue.py {why}")

    def _edited(self, name: str, exercise: str, old: str, new: str, cell: str) -> str:
        if "\n" in old + new:
            raise self._bad(
                f"edits several lines for {name!r}; write the function or the method out, with @wrong(…, based_on=…)"
            )
        times = cell.count(old)
        if times != 1:
            where = f"the cell of {exercise!r}, where it occurs {times} times; it must occur once"
            raise self._bad(f"edits {old!r} in {where}")
        return cell.replace(old, new)

    def _based_on(self, name: str, base: str, text: str, cell: str) -> str:
        try:
            return _with_parts(cell, base, text)
        except ValueError as problem:
            raise BadCatalogue(f"{self.where}: the variant {name!r} is based on {base!r}: {problem}") from problem

    def made(self, name: str, exercise: str, text: str, reference: dict[str, Any]) -> Any:
        """What the text of a whole solution cell gives."""
        namespace = {**reference}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{self.where}: {name}>", "exec"), namespace)
        except Exception as error:
            raise BadCatalogue(f"{self.where}: the variant {name!r} fails ({type(error).__name__}: {error})") from error
        return namespace[exercise]

    def changes_of(self, exercise: str) -> list[Variant]:
        """General changes of the reference for this exercise, made when they are first asked for."""
        if exercise not in self._general:
            value, cell = self._reference[exercise], self._solution_text(exercise)
            made = [(says, new, isinstance(new, str)) for make in self._makers for says, new in make(value, cell)]
            self._general[exercise] = [
                Variant("a_change", exercise, None if is_text else new, new if is_text else cell, False, says)
                for says, new, is_text in made
            ]
        return self._general[exercise]

    def pairs_of(self, exercise: str) -> Iterator[Variant]:
        """Two mistakes of the catalogue at once: cells with a mistake, and in them the edit that makes another."""
        edits = [edit for edit in self._edits if edit["exercise"] == exercise]
        for variant, edit in product((v for v in self.wrong_of({exercise}) if v.whole_cell), edits):
            is_new = variant.says != edit["says"] and "right" not in variant.says + edit["says"]  # beside it, less is
            if is_new and variant.source.count(edit["old"]) == 1:
                text = variant.source.replace(edit["old"], edit["new"])
                says, also = sorted([variant.says, edit["says"]])
                yield Variant("two_at_once", exercise, None, text, False, says, also=also)

    def wrong_of(self, names: set[str]) -> list[Variant]:
        return [v for v in self.variants if not v.is_right and v.exercise in names]


def _with_parts(cell: str, base: str, text: str) -> str:
    """The cell with `text`, a function, in place of its function `base`, or its methods in place of the class's own.

    A method that the class does not have is added to it. Raises ValueError with what does not fit.
    """
    cell = "\n".join(line for line in cell.split("\n") if "### BEGIN SOLUTION" not in line and "### END" not in line)
    (written,) = ast.parse(text).body
    found = next((node for node in ast.parse(cell).body if getattr(node, "name", None) == base), None)
    if isinstance(written, ast.FunctionDef) and isinstance(found, ast.FunctionDef):
        renamed = text.replace(f"def {written.name}", f"def {base}", 1)
        return _with_lines(cell, [(found.lineno, found.end_lineno, renamed)])
    if not isinstance(written, ast.ClassDef) or not isinstance(found, ast.ClassDef):
        raise ValueError("the reference's cell has no function, or for a class no class, of this name")
    own = {node.name: node for node in found.body if isinstance(node, ast.FunctionDef)}
    lines, parts = text.split("\n"), []
    for node in written.body:
        if not isinstance(node, ast.FunctionDef):
            raise ValueError(f"a class holds methods only, not line {node.lineno} of it")
        part = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        place = own.get(node.name)
        first, last = (place.lineno, place.end_lineno) if place else ((found.end_lineno or 0) + 1, found.end_lineno)
        parts.append((first, last, part))
    return _with_lines(cell, parts)


def _with_lines(cell: str, parts: list[tuple[int, int | None, str]]) -> str:
    """The cell with texts in place of lines: (first, last, text), counted from 1; none where last is before first."""
    lines = cell.split("\n")
    for first, last, text in sorted(parts, reverse=True):
        lines[first - 1 : last] = text.split("\n")
    return "\n".join(lines)


def value_for(variant: Variant, reference: dict[str, Any], student_id: str) -> Any:
    """What the variant puts in place of the exercise's name: itself, or for data the value for this student.

    `reference` are the names of the source notebook, for personal data best those made for this student: a function
    reads the data in them, where these are not what it reads anyway.
    """
    value = variant.value
    is_function = callable(reference[variant.exercise])
    if not is_function and not variant.whole_cell:
        return value(student_id)
    own = value.__globals__ if isinstance(value, FunctionType) else {}
    used = used_names(variant.source) - bound_names(variant.source)
    others = {n: v for n, v in reference.items() if n in used and not callable(v) and v is not own.get(n)}
    if is_function and not (own and others):
        return value
    namespace = {**own, **others} if is_function else {**reference, "student_id": student_id}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compiled_silent(variant.source, f"<{variant.name}>"), namespace)
    return namespace[variant.exercise if variant.whole_cell else variant.name]
