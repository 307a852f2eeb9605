"""Small faults put into a reference solution, one at a time.

The faults are cosmic-ray's (operators, comparisons, numbers, booleans, unary operators, break and continue, loops,
decorators, exceptions) and some of our own: a statement, a keyword argument or a `.T` dropped, neighbours among the
arguments of a call or the operands of `@` swapped. Only what students have to write is changed: the lines between
BEGIN SOLUTION and END SOLUTION.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import CodeType, ModuleType
from typing import Any

from autograder.errors import AutograderError

BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"

_RANDOM = ("VariableReplacer", "VariableInserter")
_SYMMETRIC = {"maximum", "minimum", "max", "min", "add", "multiply", "logical_and", "logical_or", "isclose", "allclose"}
_BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")

_Place = tuple[int, int]  # line and column
_Node = ast.stmt | ast.expr | ast.keyword


class NoMutants(AutograderError):
    """cosmic-ray is missing; the message says how to install it."""


@dataclass(frozen=True)
class Mutant:
    """`text` is the whole mutated cell; `old` and `new` the lines that differ, `line` the number of the first."""

    text: str
    operator: str
    line: int
    old: str
    new: str


def mutants_of(cell: str) -> list[Mutant]:
    """The mutants of a solution cell, in the order of their lines; none two of which compile to the same code."""
    tree = ast.parse(cell)
    lines = cell.split("\n")
    allowed = _student_lines(lines)
    quiet = _quiet_lines(tree)
    seen = {_fingerprint(cell)}
    found = []
    for operator, text in [*_by_cosmic_ray(cell), *_by_dropping(cell, tree), *_by_swapping(cell, tree)]:
        key = _fingerprint(text)
        if key is None or key in seen:
            continue
        first, last, old, new = _difference(lines, text.split("\n"))
        if any(n not in allowed or n in quiet for n in range(first, last + 1)):
            continue
        seen.add(key)
        found.append(Mutant(text, operator, first, old, new))
    return sorted(found, key=lambda m: m.line)


def _student_lines(lines: list[str]) -> set[int]:
    """Numbers of the lines that students write; all where the cell has no marks."""
    if not any(BEGIN in line for line in lines):
        return set(range(1, len(lines) + 1))
    inside, numbers = False, set()
    for number, line in enumerate(lines, 1):
        if BEGIN in line or END in line:
            inside = BEGIN in line
        elif inside:
            numbers.add(number)
    return numbers


def _quiet_lines(tree: ast.Module) -> set[int]:
    """Lines that no test has to notice: docstrings and the texts of errors that span lines of their own."""
    quiet: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            quiet |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return quiet


def _difference(old: list[str], new: list[str]) -> tuple[int, int, str, str]:
    """First and last changed line of `old`, and the changed lines of both, stripped."""
    blocks = [b for b in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if b[0] != "equal"]
    if not blocks:
        return 1, 1, "", ""
    first, last = blocks[0][1], blocks[-1][2]
    before = " ".join(line.strip() for line in old[first:last])
    after = " ".join(line.strip() for line in new[blocks[0][3] : blocks[-1][4]])
    return first + 1, max(last, first + 1), before, after


def _fingerprint(text: str) -> tuple[object, ...] | None:
    """Equal for cells that do the same to the letter, whatever their layout; None for what is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _code_key(compile(text, "<mutant>", "exec"))
    except (SyntaxError, ValueError, OverflowError):
        return None


def _code_key(code: CodeType) -> tuple[object, ...]:
    constants = tuple(_code_key(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_name, code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_flags


def _cosmic_ray(module: str) -> ModuleType:
    """A module of cosmic-ray, which only the audit needs. Raises NoMutants where it is not installed."""
    try:
        return import_module(f"cosmic_ray.{module}")
    except ModuleNotFoundError as error:
        raise NoMutants(f"an audit needs cosmic-ray ({error}): pip install 'attention-by-hand[audit]'") from None


@cache
def operators() -> list[tuple[str, Any]]:
    """cosmic-ray's operators but those that draw at random, and those whose result can only be a type error.

    Arithmetic becomes other arithmetic and bit operations other bit operations: a float shifted by a float says
    nothing about the tests. `==` never becomes `is`, which on arrays and on small numbers is chance. Raises NoMutants.
    """
    plugins = _cosmic_ray("plugins")
    kept = []
    for full_name in plugins.operator_names():
        name = full_name.rpartition("/")[2]
        if name in _RANDOM:
            continue
        kind, _, change = name.partition("_")
        old, _, new = change.partition("_")
        if kind == "ReplaceBinaryOperator" and (old in _BITS) != (new in _BITS):
            continue
        identity = {"Is", "IsNot"}
        if kind == "ReplaceComparisonOperator" and (old in identity) != (new in identity):
            continue
        kept.append((name, plugins.get_operator(full_name)()))
    return kept


def _by_cosmic_ray(cell: str) -> Iterator[tuple[str, str]]:
    trees, mutate_code = _cosmic_ray("ast"), _cosmic_ray("mutating").mutate_code
    skipped = _annotations_and_errors(cell)
    for name, operator in operators():
        places = [place for node in trees.ast_nodes(trees.get_ast(cell)) for place in operator.mutation_positions(node)]
        for occurrence, (start, end) in enumerate(places):
            if any(first <= start and end <= last for first, last in skipped):
                continue
            text = mutate_code(cell, operator, occurrence)
            if text is not None:
                yield name, text


def _annotations_and_errors(cell: str) -> list[tuple[_Place, _Place]]:
    """Stretches that decide nothing a test could see: type annotations, and the texts of `raise` and `assert`."""
    stretches = []
    for node in ast.walk(ast.parse(cell)):
        part: ast.expr | None = None
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            part = node.returns
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            part = node.annotation
        elif isinstance(node, ast.Raise):
            part = node.exc
        elif isinstance(node, ast.Assert):
            part = node.msg
        if part is not None:
            stretches.append(_places(cell.split("\n"), part))
    return stretches


def _places(lines: list[str], node: _Node) -> tuple[_Place, _Place]:
    """Where a node begins and ends: line and column, in characters (ast counts columns in bytes)."""

    def place(line: int, offset: int) -> _Place:
        return line, len(lines[line - 1].encode()[:offset].decode(errors="ignore"))

    assert node.end_lineno is not None and node.end_col_offset is not None, "the node was parsed from text"
    return place(node.lineno, node.col_offset), place(node.end_lineno, node.end_col_offset)


def _by_dropping(cell: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Mutants without one statement, one keyword argument, or one transposition."""
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and _may_drop(node):
            yield "DropStatement", _replaced(cell, node, "pass")
        elif isinstance(node, ast.Call):
            for keyword in node.keywords:
                if keyword.arg is not None:
                    yield "DropKeyword", _without_argument(cell, keyword)
        elif isinstance(node, ast.Attribute) and node.attr in ("T", "mT") and isinstance(node.ctx, ast.Load):
            yield "DropTranspose", _replaced(cell, node, ast.get_source_segment(cell, node.value) or "")


def _by_swapping(cell: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Mutants with two neighbouring arguments, or the operands of a matrix product, in each other's place.

    Two constants are left alone (`swapaxes(x, -1, -2)`), and so are functions which do not care.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in _SYMMETRIC or any(isinstance(a, ast.Starred) for a in node.args):
                continue
            for one, other in itertools.pairwise(node.args):
                if not (_is_constant(one) and _is_constant(other)):
                    yield "SwapArguments", _swapped(cell, one, other)
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "SwapOperands", _swapped(cell, node.left, node.right, "({})")


def _is_constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _swapped(cell: str, one: ast.expr, other: ast.expr, form: str = "{}") -> str:
    (a, b), (c, d) = _span(cell, one), _span(cell, other)
    first, second = form.format(cell[a:b]), form.format(cell[c:d])
    return cell[:a] + second + cell[b:c] + first + cell[d:]


def _may_drop(node: ast.stmt) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Pass, ast.Import, ast.ImportFrom)):
        return False
    return not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _span(cell: str, node: _Node) -> tuple[int, int]:
    """Where a node begins and ends in the text, in characters."""
    lines = cell.split("\n")
    starts = [0, *itertools.accumulate(len(line) + 1 for line in lines)]
    (first, begin), (last, end) = _places(lines, node)
    return starts[first - 1] + begin, starts[last - 1] + end


def _replaced(cell: str, node: _Node, text: str) -> str:
    begin, end = _span(cell, node)
    return cell[:begin] + text + cell[end:]


def _without_argument(cell: str, keyword: ast.keyword) -> str:
    """The cell without this argument and the comma before it, or after it where it comes first."""
    begin, end = _span(cell, keyword)
    before = re.search(r",\s*$", cell[:begin])
    if before:
        return cell[: before.start()] + cell[end:]
    after = re.match(r"\s*,\s*", cell[end:])
    return cell[:begin] + cell[end + (after.end() if after else 0) :]
