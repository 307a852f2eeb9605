"""The variants that a set's catalogue holds, made from its text and the reference solutions."""

from __future__ import annotations

import ast
import contextlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from autograder import catalogue
from autograder.errors import AutograderError
from autograder.notebook.names import bound_names, compiled_silent, used_names


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


class BadCatalogue(AutograderError):
    """catalogue.py cannot be used; the message says where and why."""


class Catalogue:
    """The variants of one set, and its explained survivors. `reference` are the names the variants may use."""

    def __init__(self, text: str, reference: dict[str, Any], solution_text: Callable[[str], str], where: str) -> None:
        self.variants: list[Variant] = []
        self.survivors: list[Survivor] = []
        self.where = where
        if text.strip():
            self._read(text, reference, solution_text)

    def _read(self, text: str, reference: dict[str, Any], solution_text: Callable[[str], str]) -> None:
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
        registered: list[tuple[str, dict[str, Any]]] = []
        catalogue.registered = registered
        try:
            exec(compile(tree, f"<{self.where}: catalogue.py>", "exec"), {**reference, "__name__": "catalogue"})
        except Exception as error:
            raise BadCatalogue(f"{self.where}: catalogue.py fails ({type(error).__name__}: {error})") from error
        finally:
            catalogue.registered = None
        for kind, details in registered:
            exercise = details["exercise"]
            if exercise not in reference:
                raise BadCatalogue(f"{self.where}: catalogue.py names the exercise {exercise!r}, which does not exist")
            if kind == "survivor":
                self.survivors.append(Survivor(**details))
            elif kind == "edited":
                self.variants.append(self._edited(details, reference, solution_text(exercise)))
            elif details["based_on"]:
                text = sources[details["value"].__name__]
                self.variants.append(self._based_on(details, reference, text, solution_text(exercise)))
            else:
                value = details["value"]
                text, says = sources[value.__name__], details.get("says", "")
                self.variants.append(Variant(value.__name__, exercise, value, text, kind == "right", says))
        names = [(v.exercise, v.name) for v in self.variants]
        twice = {n for n in names if names.count(n) > 1}
        if twice:
            raise BadCatalogue(f"{self.where}: catalogue.py has two variants called {sorted(twice)[0]}")

    def _edited(self, details: dict[str, Any], reference: dict[str, Any], cell: str) -> Variant:
        old, name = details["old"], details["name"]
        if "\n" in old + details["new"]:
            raise BadCatalogue(
                f"{self.where}: catalogue.py edits several lines for {name!r}; write the function or the method out, "
                "with @wrong(…, based_on=…)"
            )
        if cell.count(old) != 1:
            raise BadCatalogue(
                f"{self.where}: catalogue.py edits {old!r} in the cell of {details['exercise']!r}, "
                f"where it occurs {cell.count(old)} times; it must occur once"
            )
        return self._of_cell(name, details, reference, cell.replace(old, details["new"]))

    def _based_on(self, details: dict[str, Any], reference: dict[str, Any], text: str, cell: str) -> Variant:
        name, base = details["value"].__name__, details["based_on"]
        try:
            changed = _with_parts(cell, base, text)
        except ValueError as problem:
            raise BadCatalogue(f"{self.where}: the variant {name!r} is based on {base!r}: {problem}") from problem
        return self._of_cell(name, details, reference, changed)

    def _of_cell(self, name: str, details: dict[str, Any], reference: dict[str, Any], text: str) -> Variant:
        """The variant that the text of a whole solution cell is."""
        namespace = {**reference}
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(text, f"<{self.where}: {name}>", "exec"), namespace)
        except Exception as error:
            raise BadCatalogue(f"{self.where}: the variant {name!r} fails ({type(error).__name__}: {error})") from error
        exercise, says = details["exercise"], details.get("says", "")
        return Variant(name, exercise, namespace[exercise], text, not says, says, whole_cell=True)

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
