"""Small faults put into a reference solution, one at a time, and a way to run them so that none can do harm.

The faults are cosmic-ray's (operators, comparisons, numbers, booleans, unary operators, break and continue, loops,
decorators, exceptions) and some of our own: a statement, a keyword argument or a `.T` dropped, neighbours among the
arguments of a call or the operands of `@` swapped. Only what students have to write is changed: the lines between
BEGIN SOLUTION and END SOLUTION.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import json
import os
import re
import resource
import selectors
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType
from typing import Any

BEGIN, END = "BEGIN SOLUTION", "END SOLUTION"
EXTRA_MEMORY = 3 * 1024**3
MAX_FILE = 64 * 1024**2

_RANDOM = ("VariableReplacer", "VariableInserter")
_SYMMETRIC = {"maximum", "minimum", "max", "min", "add", "multiply", "logical_and", "logical_or", "isclose", "allclose"}
_BITS = ("RShift", "LShift", "BitOr", "BitAnd", "BitXor")


@dataclass(frozen=True)
class Mutant:
    """`text` is the whole mutated cell; `old` and `new` the lines that differ, `line` the number of the first."""

    text: str
    operator: str
    line: int
    old: str
    new: str


# ------------------------------------------------------------------------------------------- making them


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


def _fingerprint(text: str) -> Any:
    """Equal for cells that do the same to the letter, whatever their layout; None for what is no Python."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _code_key(compile(text, "<mutant>", "exec"))
    except (SyntaxError, ValueError, OverflowError):
        return None


def _code_key(code: CodeType) -> tuple:
    constants = tuple(_code_key(c) if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_name, code.co_code, constants, names, code.co_argcount, code.co_kwonlyargcount, code.co_flags


@cache
def _operators() -> list[tuple[str, Any]]:
    """cosmic-ray's operators but those that draw at random, and those whose result can only be a type error.

    Arithmetic becomes other arithmetic and bit operations other bit operations: a float shifted by a float says
    nothing about the tests. `==` never becomes `is`, which on arrays and on small numbers is chance.
    """
    from cosmic_ray.plugins import get_operator, operator_names

    kept = []
    for full_name in operator_names():
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
        kept.append((name, get_operator(full_name)()))
    return kept


def _by_cosmic_ray(cell: str) -> Iterator[tuple[str, str]]:
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    skipped = _annotations_and_errors(cell)
    for name, operator in _operators():
        places = [place for node in ast_nodes(get_ast(cell)) for place in operator.mutation_positions(node)]
        for occurrence, (start, end) in enumerate(places):
            if any(first <= start and end <= last for first, last in skipped):
                continue
            text = mutate_code(cell, operator, occurrence)
            if text is not None:
                yield name, text


def _annotations_and_errors(cell: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Stretches that decide nothing a test could see: type annotations, and the texts of `raise` and `assert`."""
    data = cell.split("\n")
    stretches = []
    for node in ast.walk(ast.parse(cell)):
        parts: list[ast.AST | None] = []
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            parts = [node.returns]
        elif isinstance(node, (ast.arg, ast.AnnAssign)):
            parts = [node.annotation]
        elif isinstance(node, ast.Raise):
            parts = [node.exc]
        elif isinstance(node, ast.Assert):
            parts = [node.msg]
        for part in parts:
            if part is not None:
                begin = _place(data, part.lineno, part.col_offset)
                stretches.append((begin, _place(data, part.end_lineno, part.end_col_offset)))
    return stretches


def _place(lines: list[str], line: int, offset: int) -> tuple[int, int]:
    """ast counts columns in bytes, everybody else in characters."""
    return line, len(lines[line - 1].encode()[:offset].decode(errors="ignore"))


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


def _span(cell: str, node: Any) -> tuple[int, int]:
    """Where a node begins and ends in the text, in characters."""
    lines = cell.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    begin, end = _place(lines, node.lineno, node.col_offset), _place(lines, node.end_lineno, node.end_col_offset)
    return starts[begin[0] - 1] + begin[1], starts[end[0] - 1] + end[1]


def _replaced(cell: str, node: Any, text: str) -> str:
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


# ------------------------------------------------------------------------------------------ running them


@dataclass
class Ran:
    """How a task ended: its `value`, or in `lost` why there is none ("timeout" or "crashed"). `seconds` it took."""

    value: Any = None
    lost: str = ""
    seconds: float = 0.0


@dataclass
class _Child:
    number: int
    pid: int
    pipe: int
    began: float
    data: bytearray


def run_apart(
    tasks: Iterable[tuple[Callable[[], Any], float]],
    jobs: int = 1,
    done: Callable[[int, Ran], None] = lambda number, ran: None,
) -> list[Ran]:
    """Run each task (a function that returns JSON data, and its seconds) in a forked child; results in order.

    A child has limits on memory and file size, a folder of its own and no output. One that does not come back in time
    is killed with its children. The functions need not be picklable, for a fork copies the whole process. `done` is
    told of each result as it comes.
    """
    results: dict[int, Ran] = {}
    running: dict[int, tuple[_Child, float]] = {}
    waiting = enumerate(tasks)
    exhausted = False
    with selectors.DefaultSelector() as selector, tempfile.TemporaryDirectory(prefix="audit-") as folder:
        try:
            while running or not exhausted:
                while len(running) < max(1, jobs) and not exhausted:
                    entry = next(waiting, None)
                    if entry is None:
                        exhausted = True
                        break
                    number, (task, seconds) = entry
                    child = _start(number, task, folder)
                    running[child.pipe] = child, child.began + seconds
                    selector.register(child.pipe, selectors.EVENT_READ)
                if not running:
                    break
                now = time.monotonic()
                ready = selector.select(max(0.0, min(limit for _, limit in running.values()) - now))
                for key, _ in ready:
                    child, _limit = running[key.fd]
                    data = os.read(key.fd, 1 << 16)
                    child.data += data
                    if not data:
                        selector.unregister(key.fd)
                        del running[key.fd]
                        results[child.number] = _finish(child, "")
                        done(child.number, results[child.number])
                for child, limit in list(running.values()):
                    if time.monotonic() >= limit:
                        selector.unregister(child.pipe)
                        del running[child.pipe]
                        results[child.number] = _finish(child, "timeout")
                        done(child.number, results[child.number])
        finally:
            for child, _ in running.values():
                _finish(child, "timeout")
    return [results[n] for n in sorted(results)]


def _start(number: int, task: Callable[[], Any], folder: str) -> _Child:
    own = os.path.join(folder, str(number))
    os.mkdir(own)
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads. The only ones are numpy's and torch's idle workers: the first are made anew
        # after a fork, the second are not used with one thread (see audit).
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _be_child(task, own, read, write)
    os.close(write)
    return _Child(number, pid, read, time.monotonic(), bytearray())


def _be_child(task: Callable[[], Any], folder: str, read: int, write: int) -> None:
    """Runs in the forked child and never returns."""
    code = 1
    try:
        os.setsid()
        os.close(read)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        _limit_resources()
        os.chdir(folder)
        view = memoryview(json.dumps(task()).encode())
        while view:
            view = view[os.write(write, view) :]
        code = 0
    finally:
        os._exit(code)


def _limit_resources() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    try:
        with open("/proc/self/statm") as file:
            held = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:  # not Linux: there the address space cannot be limited in a useful way
        return
    most = held + EXTRA_MEMORY
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _finish(child: _Child, lost: str) -> Ran:
    """Wait for the child, with force where it is `lost`."""
    if lost:
        _kill(child.pid)
    os.close(child.pipe)
    _, status = os.waitpid(child.pid, 0)
    seconds = time.monotonic() - child.began
    if lost:
        return Ran(None, lost, seconds)
    if os.waitstatus_to_exitcode(status) != 0:
        return Ran(None, "crashed", seconds)
    return Ran(json.loads(bytes(child.data)), "", seconds)


def _kill(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:  # it had no time yet to make a group of its own
        os.kill(pid, signal.SIGKILL)
