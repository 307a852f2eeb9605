"""What a page's code cells need, found without running them: names of earlier cells, packages, files."""

from __future__ import annotations

import ast
import symtable
import sys
from pathlib import Path

# calls that hand numbers to the prose, test its claims or ask a question: of no use in the reader's browser
ONLY_FOR_THE_BOOK = {"put", "claim", "quiz"}


def packages(code: str) -> set[str]:
    """Top-level packages that running the cell imports.

    Imports under ``if`` or ``try``, or inside a function, happen on a condition or later: they do not count.
    """
    found: set[str] = set()
    waiting: list[ast.AST] = list(ast.parse(code).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found.update(name.name.split(".")[0] for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.split(".")[0])
        elif not isinstance(node, (ast.If, ast.Try, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
    return found


def names(code: str) -> tuple[set[str], set[str]]:
    """The page's names that the cell reads and those that it binds or changes."""
    table = symtable.symtable(code, "cell", "exec")
    reads: set[str] = set()
    binds = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    waiting = [table]
    while waiting:
        scope = waiting.pop()
        waiting.extend(scope.get_children())
        for symbol in scope.get_symbols():
            if symbol.is_referenced() and (scope is table or symbol.is_global()):
                reads.add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                binds.add(symbol.get_name())
    for node in ast.walk(ast.parse(code)):  # a[0] = …, a.b = … change what an earlier cell made
        if isinstance(node, (ast.Subscript, ast.Attribute)) and isinstance(node.ctx, ast.Store):
            while isinstance(node, (ast.Subscript, ast.Attribute)):
                node = node.value
            if isinstance(node, ast.Name):
                binds.add(node.id)
    return reads, binds


def files(code: str, folder: Path) -> set[str]:
    """Files in ``folder`` that a text in the code names by their path."""
    texts = {node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Constant)}
    named = {text for text in texts if isinstance(text, str) and "." in text and "\n" not in text and len(text) < 200}
    return {text for text in named if (folder / text).is_file()}


def lacking(cells: list[str], available: set[str], folder: Path) -> list[set[str]]:
    """For each cell what it needs, itself or through what earlier cells made, that the browser has not.

    Needs are names of packages, or "the file x.npz" for files beside the chapters.
    """
    lacked: dict[str, set[str]] = {}  # of each name, what was lacking where it was made
    answers = []
    for code in cells:
        reads, binds = names(code)
        needs = packages(code) - available - set(sys.stdlib_module_names)
        needs |= {f"the file {Path(file).name}" for file in files(code, folder)}
        needs = needs.union(*(lacked.get(name, set()) for name in reads))
        lacked.update(dict.fromkeys(binds, needs))
        answers.append(needs)
    return answers


def only_for_the_book(code: str) -> bool:
    """Whether the cell does nothing but hand numbers to the prose, test claims and ask questions."""
    return all(
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and isinstance(statement.value.func, ast.Name)
        and statement.value.func.id in ONLY_FOR_THE_BOOK
        for statement in ast.parse(code).body
    )
