"""What a page's code cells need, found without running them: names of earlier cells, packages, files."""

from __future__ import annotations

import ast
import symtable
import sys
from pathlib import Path
from typing import Any

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


# --- which earlier cells have to run first ---------------------------------------------------------------

MUTATING = {"add", "append", "clear", "extend", "fill", "insert", "pop", "remove", "shuffle", "sort", "update"}
STREAMS = {"default_rng", "seeded"}  # what they return changes with each use


class Uses(ast.NodeVisitor):
    """Names that code reads before it has bound them itself (``reads``), and those it surely binds (``fresh``)."""

    def __init__(self, code: str):
        self.reads: set[str] = set()
        self.fresh: set[str] = set()
        self.changes: set[str] = set()
        self.streams: set[str] = set()
        self.visit(ast.parse(code))

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load) and node.id not in self.fresh:
            self.reads.add(node.id)
        elif isinstance(node.ctx, ast.Store):
            self.fresh.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self.visit(target)
        calls = [call.func for call in ast.walk(node.value) if isinstance(call, ast.Call)]
        if {getattr(call, "id", getattr(call, "attr", "")) for call in calls} & STREAMS:
            self.streams |= {name.id for part in node.targets for name in ast.walk(part) if isinstance(name, ast.Name)}

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name) and node.target.id not in self.fresh:
            self.reads.add(node.target.id)
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr in MUTATING:
            self.changes.update(name.id for name in ast.walk(node.func) if isinstance(name, ast.Name))
        self.generic_visit(node)

    def _in_a_scope(self, node: ast.AST, local: set[str], parts: list[ast.AST]) -> None:
        before = set(self.fresh)
        self.fresh |= local
        for part in parts:
            self.visit(part)
        self.fresh = before

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.visit(part)
        arguments = {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
        self._in_a_scope(node, arguments, list(node.body))
        self.fresh.add(node.name)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._in_a_scope(node, set(), [*node.bases, *node.decorator_list, *node.body])
        self.fresh.add(node.name)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._in_a_scope(node, {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}, [node.body])

    def _comprehension(self, node: Any) -> None:
        parts = [part for loop in node.generators for part in (loop.iter, loop.target, *loop.ifs)]
        ends = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        self._in_a_scope(node, set(), [*parts, *ends])

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _perhaps(self, node: ast.AST) -> None:
        """What a branch binds, an earlier cell may have to bind all the same."""
        self._in_a_scope(node, set(), list(ast.iter_child_nodes(node)))

    visit_If = visit_While = visit_Try = _perhaps


def dependencies(cells: list[str]) -> tuple[list[set[int]], list[set[str]]]:
    """For each cell the earlier ones whose names it uses (directly), and the names that it binds or changes.

    A cell that draws from a stream of random numbers changes it, so later draws depend on it.
    """
    made_by: dict[str, set[int]] = {}
    streams: set[str] = set()
    needs, touched = [], []
    for place, code in enumerate(cells):
        uses = Uses(code)
        streams |= uses.streams
        changes = names(code)[1] | uses.changes | (uses.reads & streams)
        needs.append(set().union(*(made_by.get(name, set()) for name in uses.reads | (changes - uses.fresh))))
        touched.append(changes)
        for name in changes:
            made_anew = name in uses.fresh and name not in uses.reads
            made_by[name] = {place} if made_anew else made_by.get(name, set()) | {place}
    return needs, touched


def without_drawing(code: str) -> tuple[str, str]:
    """Divide a set-up into what runs without Matplotlib and what needs it."""
    parts: tuple[list[str], list[str]] = ([], [])
    lines, end, drawing = code.splitlines(), 0, set[str]()
    for statement in ast.parse(code).body:
        text = "\n".join(lines[end : statement.end_lineno])
        end = statement.end_lineno or end
        uses = Uses(ast.unparse(statement))
        imported = [node for node in ast.walk(statement) if isinstance(node, (ast.Import, ast.ImportFrom))]
        modules = {getattr(node, "module", None) or node.names[0].name for node in imported}
        draws = bool(uses.reads & drawing) or any(name.startswith("matplotlib") for name in modules)
        if draws:
            drawing |= names(text)[1]
        parts[draws].append(text)
    return "\n".join(parts[False]).strip("\n"), "\n".join(parts[True]).strip("\n")
