"""A set as the instructor wrote it: its cells, its reference solutions, its tests and its catalogue.

Everything here is trusted and never leaves the grader process.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Set
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any, Self

import nbformat
from nbformat import NotebookNode

from autograder.errors import AutograderError
from autograder.judging.session import LAST
from autograder.judging.variants import Catalogue
from autograder.notebook.names import (
    as_runnable,
    bound_from,
    bound_names,
    definitions,
    needed_names,
    only_beside,
    unreaching,
    used_names,
)

SET_CHECKS = "set_checks"
AUTOTEST = re.compile(r"(?m)^\s*#+ *(HASHED )?AUTOTEST\b")


class BadSource(AutograderError):
    """The instructor's notebook or catalogue cannot be used; the message says where and why."""


def split_region(text: str, mark: str) -> tuple[str, str]:
    """What stands outside and inside of the regions from `BEGIN mark` to `END mark`; each keeps its line numbers."""
    outside, inside, within = [], [], False
    for line in text.split("\n"):
        marker = f"BEGIN {mark}" in line or f"END {mark}" in line
        if marker:
            within = f"BEGIN {mark}" in line
        outside.append("" if within or marker else line)
        inside.append(line if within and not marker else "")
    return "\n".join(outside), "\n".join(inside)


def split_tests(code: str) -> tuple[str, str]:
    """The visible part of a test cell and the hidden one; each keeps its line numbers."""
    return split_region(code, "HIDDEN TESTS")


def is_whole(text: str) -> bool:
    """Whether a test cell has no `@check`: it is judged as one, as nbgrader does."""
    return re.search(r"(?m)^\s*@(\w+\.)?check\(", text) is None


@dataclass
class TestCell:
    """A test cell of the source: what it asks, and which student's names it needs.

    `helpers` are the statements of earlier test cells that it relies on.
    """

    grade_id: str
    title: str
    points: float
    text: str
    visible: str
    hidden: str
    solution_ids: list[str]
    solution_names: set[str]
    names: set[str] = field(default_factory=set)
    helpers: str = ""

    @cached_property
    def is_whole(self) -> bool:
        """Whether it has no `@check`: it is judged as one, as nbgrader does."""
        return is_whole(self.text)

    @cached_property
    def visible_code(self) -> Any:
        """The visible part, or all of a cell without checks; the value of an expression at its end is bound to LAST."""
        tree = ast.parse(self.text if self.is_whole else self.visible)
        if tree.body and isinstance(last := tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name(LAST, ast.Store())], last.value)
        return compile(ast.fix_missing_locations(tree), f"<{self.grade_id}>", "exec") if tree.body else None

    @cached_property
    def helpers_code(self) -> Any:
        return compile(self.helpers, f"<{self.grade_id}: helpers>", "exec")

    @cached_property
    def hidden_code(self) -> Any:
        return compile(self.hidden, f"<hidden {self.grade_id}>", "exec")

    @property
    def is_personal(self) -> bool:
        """Whether it judges by numbers that are made from the student's id."""
        return "student_id" in self.names


class Source:
    """The parsed source notebook of a set, with its reference solutions run once.

    Names in the notebook's metadata `autograder: {"student_side": [...]}` resolve in test cells to the student's
    values although locked cells bind them: given classes whose objects are handed to a student's function.
    `catalogue` and `set_checks` are the texts of catalogue.py and set_checks.py, `files` what lies beside the notebook.
    """

    def __init__(
        self,
        notebook: NotebookNode,
        catalogue: str = "",
        name: str = "the set",
        set_checks: str = "",
        files: dict[str, bytes] | None = None,
    ) -> None:
        self.notebook = notebook
        self.name = name
        self.catalogue_text = catalogue
        self.set_checks_text = set_checks
        self.files = files or {}
        self.tests: dict[str, TestCell] = {}
        self.written: dict[str, tuple[str, float]] = {}
        self.solutions: dict[str, str] = {}
        self.code_in_order: list[str] = []
        self._names_at: dict[str, dict[str, Any]] = {}
        self._given: list[str] = []
        self._trusted_names: set[str] = set()
        self._read_cells()

    @classmethod
    def from_text(cls, text: str, *more: Any, **named: Any) -> Self:
        return cls(nbformat.reads(text, as_version=4), *more, **named)

    def _read_cells(self) -> None:
        title, pending = self.name, []
        for cell in self.notebook.cells:
            meta = cell.metadata.get("nbgrader", {})
            if cell.cell_type == "markdown":
                title = next(
                    (line.lstrip("# ").strip() for line in cell.source.splitlines() if line.startswith("#")), title
                )
            if cell.cell_type == "code" and (not meta.get("grade") or meta.get("solution")):
                self.code_in_order.append(cell.source)
            if not meta:
                continue
            grade_id, grade, solution = meta["grade_id"], meta.get("grade"), meta.get("solution")
            if grade and solution:
                self.written[grade_id] = (title, float(meta["points"]))
            elif cell.cell_type != "code":
                continue
            elif solution:
                pending.append(grade_id)
                self.solutions[grade_id] = cell.source
            elif grade:
                own = set().union(*(bound_names(self.solutions[s]) for s in pending))
                about = grade_id, title, float(meta["points"]), cell.source
                self.tests[grade_id] = TestCell(*about, *split_tests(cell.source), pending, own)
                pending = []
            else:
                self._given.append(cell.source)
                self._trusted_names |= bound_names(cell.source, imports=True)
        self._trusted_names -= bound_from(self._given, set().union(*map(bound_names, self.solutions.values())))
        self._trusted_names -= set(self.notebook.metadata.get("autograder", {}).get("student_side", []))
        free = set(self.code_in_order) - set(self._given) - set(self.solutions.values())
        self._trusted_names |= set().union(*(_imported(text) for text in free))  # what a free cell imports
        bound = set().union(*map(bound_names, self.code_in_order))
        earlier: list[str] = []
        for test in self.tests.values():
            wanted = needed_names(test.text) - bound - self._trusted_names
            test.helpers = definitions(earlier, wanted, bound | self._trusted_names) if test.is_whole else ""
            parts = [test.helpers, test.text] if test.is_whole else [test.visible, test.hidden]
            own = set(bound_names(test.helpers, imports=True))
            test.names = set().union(*map(needed_names, parts)) - self._trusted_names - own
            earlier.append(test.text)
            texts = [*self.code_in_order, test.text]
            modules = set().union(*map(_imported, texts))
            if written_out := AUTOTEST.search(test.text):
                said = f"nbgrader writes out `{written_out[0].strip()}`; take the cell as generate_assignment leaves it"
                raise BadSource(f"{self.name}: the test cell '{test.grade_id}' cannot be used: {said}")
            if what := only_beside(test.text, modules) if test.is_whole else unreaching(test.text, modules):
                said = f"`{what}` does not reach students' answers, which run in a process of their own"
                raise BadSource(f"{self.name}: the test cell '{test.grade_id}' cannot be used: {said}")

    @cached_property
    def reference(self) -> dict[str, Any]:
        """The namespace after all cells but the tests. Raises BadSource."""
        namespace: dict[str, Any] = {"__name__": "__main__"}
        with contextlib.redirect_stdout(io.StringIO()), self.in_folder():
            for cell in self.notebook.cells:
                if (grade_id := cell.metadata.get("nbgrader", {}).get("grade_id")) in self.tests:
                    self._names_at[grade_id] = dict(namespace)
                elif cell.cell_type == "code":
                    self._run_cell(cell, namespace)
        # given data that answers use may be changed by them: test cells without checks take it from the student, too
        using = [*self.solutions.values(), *(t for t in self._given if used_names(t) - self._trusted_names)]
        self._data = {n for n, v in namespace.items() if not callable(v) and not isinstance(v, ModuleType)}
        theirs = bound_from(self._given, self._data & set().union(*map(used_names, using)))
        for test in self.tests.values():
            test.names |= used_names(f"{test.helpers}\n{test.text}") & theirs if test.is_whole else set()
        return namespace

    def names_at(self, test: TestCell) -> dict[str, Any]:
        """The reference's names; where the test cell stands, if it has no checks: later cells may bind them anew."""
        return self.reference and self._names_at[test.grade_id] if test.is_whole else self.reference

    @cached_property
    def kinds(self) -> dict[str, type[Exception]]:
        """The exceptions that given cells define."""
        known = {n: v for n, v in self.reference.items() if n in self._trusted_names and isinstance(v, type)}
        return {n: v for n, v in known.items() if issubclass(v, Exception)}

    def _run_cell(self, cell: NotebookNode, namespace: dict[str, Any]) -> None:
        where = cell.metadata.get("nbgrader", {}).get("grade_id", cell.get("id", "a cell"))
        try:
            exec(compile(as_runnable(cell.source), f"<{self.name}: {where}>", "exec"), namespace)
        except Exception as error:
            if not self.is_plain:  # else as nbgrader does: what comes after it may need nothing of it
                said = f"the source notebook's cell '{where}' fails ({type(error).__name__}: {error})"
                raise BadSource(f"{self.name}: {said}") from error

    @property
    def is_plain(self) -> bool:
        """Whether there are test cells without a check, as in sets that were written for nbgrader alone."""
        return any(test.is_whole for test in self.tests.values())

    @contextlib.contextmanager
    def in_folder(self) -> Iterator[None]:
        """Be in a folder with the set's files, and nothing that other code has left there."""
        if not self.files:
            yield
            return
        before = os.getcwd()
        with tempfile.TemporaryDirectory(prefix="set-") as folder:
            for name, data in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            sys.path.insert(0, "")
            try:
                os.chdir(folder)
                yield
            finally:
                os.chdir(before)
                sys.path.remove("")
                for name in [n for n, m in sys.modules.items() if str(getattr(m, "__file__", "")).startswith(folder)]:
                    del sys.modules[name]  # another set may have a module of this name

    @cached_property
    def _set_checks(self) -> ModuleType:
        module = sys.modules[SET_CHECKS] = ModuleType(SET_CHECKS)
        try:
            exec(compile(self.set_checks_text, f"<{self.name}: {SET_CHECKS}.py>", "exec"), vars(module))
        except Exception as error:
            raise BadSource(f"{self.name}: {SET_CHECKS}.py fails ({type(error).__name__}: {error})") from error
        return module

    def share_checks(self) -> None:
        """Make `from set_checks import …` mean this set's, in a process that judges several. Raises BadSource."""
        sys.modules[SET_CHECKS] = self._set_checks

    def given_to(self, test: TestCell) -> dict[str, Any]:
        """What locked cells bind, for one run of a test cell: the grader's own, data copied where it may be changed."""
        given = {n: v for n, v in self.names_at(test).items() if n in self._trusted_names and n not in test.names}
        data = used_names(f"{test.helpers}\n{test.text}") & self._data & given.keys() if test.is_whole else set()
        return {**given, **deepcopy({n: given[n] for n in data})}

    @cached_property
    def catalogue(self) -> Catalogue:
        return Catalogue(self.catalogue_text, self.reference, self.solution_text, self.name)

    def solution_text(self, name: str) -> str:
        """The text of the source's solution cell that binds `name`; empty when none does."""
        for text in self.solutions.values():
            if name in bound_names(text):
                return text
        return ""

    def exercise_of(self, name: str) -> TestCell | None:
        """The test cell that judges the solution cell binding `name`."""
        return next((t for t in self.tests.values() if name in t.solution_names), None)


def _imported(text: str) -> Set[str]:
    return bound_names(text, imports=True) - bound_names(text)
