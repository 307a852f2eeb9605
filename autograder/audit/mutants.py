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
from types import CodeType
from typing import Any

from autograder.errors import missing_extra
from autograder.judging.source import split_region

_RANDOM = ("VariableReplacer", "VariableInserter")
_SYMMETRIC = {"maximum", "minimum", "max", "min", "add", "multiply", "logical_and", "logical_or", "isclose", "allclose"}
_BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")

_Node = ast.stmt | ast.expr | ast.keyword


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
    tree, lines = ast.parse(cell), cell.split("\n")
    given = split_region(cell, "SOLUTION")[0].split("\n") if "BEGIN SOLUTION" in cell else [""] * len(lines)
    seen = {_noticeable(cell), None}
    found = []
    for operator, text in [*_by_cosmic_ray(cell), *_by_dropping(cell, tree), *_by_swapping(cell, tree)]:
        first, last, old, new = _difference(lines, text.split("\n"))
        code = _noticeable(text)
        if code not in seen and not any(given[first - 1 : last]):
            seen.add(code)
            found.append(Mutant(text, operator, first, old, new))
    return sorted(found, key=lambda m: m.line)


def _difference(old: list[str], new: list[str]) -> tuple[int, int, str, str]:
    """First and last changed line of `old`, and the changed lines of both, stripped."""
    blocks = [b for b in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes() if b[0] != "equal"]
    if not blocks:
        return 1, 1, "", ""
    first, last = blocks[0][1], blocks[-1][2]
    before = " ".join(line.strip() for line in old[first:last])
    after = " ".join(line.strip() for line in new[blocks[0][3] : blocks[-1][4]])
    return first + 1, max(last, first + 1), before, after


def _noticeable(text: str) -> CodeType | None:
    """The code of a cell without what no test has to notice; None for what is no Python.

    It is equal for cells that differ only in layout, in type annotations, or in what `raise` and `assert` say.
    """
    place = {"lineno": 1, "col_offset": 0, "end_lineno": 1, "end_col_offset": 0}
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(text)
            for node in ast.walk(tree):
                for part in ("annotation", "returns", "exc", "msg"):
                    if getattr(node, part, None) is not None:
                        setattr(node, part, ast.Constant(None))
            for node in ast.walk(tree):
                if "lineno" in node._attributes:
                    vars(node).update(place)
            return compile(tree, "<mutant>", "exec")
    except (SyntaxError, ValueError, OverflowError):
        return None


@cache
def operators() -> list[tuple[str, Any]]:
    """cosmic-ray's operators but those that draw at random, and those whose result can only be a type error.

    Arithmetic becomes other arithmetic and bit operations other bit operations: a float shifted by a float says
    nothing about the tests. `==` never becomes `is`, which on arrays and on small numbers is chance. Raises
    AutograderError where cosmic-ray is not installed.
    """
    try:
        from cosmic_ray.plugins import get_operator, operator_names
    except ImportError as error:
        raise missing_extra("an audit", "audit") from error
    identity = ("Is", "IsNot")
    kept = []
    for full_name in operator_names():
        name = full_name.rpartition("/")[2]
        kind, _, change = name.partition("_")
        old, _, new = change.partition("_")
        alike = {"ReplaceBinaryOperator": _BITS, "ReplaceComparisonOperator": identity}.get(kind, ())
        if name not in _RANDOM and (old in alike) == (new in alike):
            kept.append((name, get_operator(full_name)()))
    return kept


def _by_cosmic_ray(cell: str) -> Iterator[tuple[str, str]]:
    from cosmic_ray.mutating import mutate_code

    for name, operator in operators():
        for occurrence in itertools.count():
            text = mutate_code(cell, operator, occurrence)
            if text is None:
                break
            yield name, text


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
    """Where a node begins and ends in the text, in characters (ast counts columns in bytes)."""
    lines = cell.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None, "the node was parsed from text"
    places = ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
    begin, end = (len((b"".join(lines[: line - 1]) + lines[line - 1][:column]).decode()) for line, column in places)
    return begin, end


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
