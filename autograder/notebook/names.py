"""What the text of a code cell binds and uses, found without running it.

Cells are students' work: they may hold magics, shell lines, syntax errors or be hostile. Nothing here raises
for any text, and the time grows with the length of the text only (IPython's own transformer tokenises the
cell again for every magic).
"""

from __future__ import annotations

import ast
import builtins
import re
import symtable
import warnings
from collections.abc import Callable, Iterable, Set
from functools import lru_cache
from types import CodeType

MAX_PARSED = 60_000  # characters; nobody types a longer cell, and some of Python's ways take the square of it
MAX_DOTS = 200  # in one dotted name: while it reads `import a.a.a…`, Python keeps the square of its length in memory
MAX_KEPT = 5_000  # characters; what is found in a longer cell is found anew, or a stranger's would fill the memory
_PYTHON_CELL_MAGICS = ("time", "timeit", "capture", "prun")
SHOWING = ("print", "display", "show")
_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
_DOTTED = re.compile(r"(?:\.[\s\\]*\w+[\s\\]*)+")
_UNPARSABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


def _kept(find: Callable[..., frozenset[str]]) -> Callable[..., frozenset[str]]:
    """The function, with what it found in the last short texts kept: given cells come again with every submission."""
    known = lru_cache(maxsize=1024)(find)
    return lambda text, *more, **named: (known if len(text) <= MAX_KEPT else find)(text, *more, **named)


def as_python(text: str) -> str:
    """The cell without magics and shell lines, line for line; a cell in another language becomes empty."""
    magic = re.match(r"\s*%%(\w+)", text)
    if magic and magic[1] not in _PYTHON_CELL_MAGICS:
        return ""
    text = re.sub(r"(?m)^([ \t]*)%time[ \t]+(?=\S)", r"\1", text)
    text = re.sub(r"(?m)^([ \t]*)(?:[%!?].*|[\w.]+\?{1,2}[ \t]*)$", r"\1pass", text)
    return re.sub(r"(?m)^([\w, \t]+=)[ \t]*[%!].*$", r"\1 None", text)


def parse(text: str) -> ast.Module | None:
    """The cell's syntax tree, or None where it is no Python."""
    if len(text) > MAX_PARSED or any(match[0].count(".") > MAX_DOTS for match in _DOTTED.finditer(text)):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # e.g. an invalid escape in the student's text
        for candidate in (text, as_python(text)):
            try:
                return ast.parse(candidate)
            except _UNPARSABLE:
                continue
    return None


@_kept
def bound_names(text: str, imports: bool = False) -> frozenset[str]:
    """Names that the cell binds at its top level (also inside `if`, `for`, `with`, `try`, by a `with` or a `:=`).

    Where the cell is no valid Python, lines at column 0 that look like a definition or an assignment count.
    """
    tree = parse(text)
    if tree is not None:
        return frozenset(_bound_by(tree, imports))
    code = as_python(text[:MAX_PARSED])
    defined = re.findall(r"(?m)^(?:(?:async[ \t]+)?def|class)[ \t]+([^\W\d]\w*)", code)
    assigned = re.findall(r"(?m)^([^\W\d]\w*)[ \t]*(?::[^=\n]+)?=(?!=)", code)
    return frozenset(defined + assigned)


def _bound_by(cell: ast.AST, imports: bool) -> set[str]:
    names: set[str] = set()
    waiting = [cell]  # a list, not recursion: blocks may be nested as deep as the parser allows
    while waiting:
        match waiting.pop():
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=modules) | ast.ImportFrom(names=modules) if imports:
                names |= {(a.asname or a.name).split(".")[0] for a in modules}
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.AnnAssign(value=None) | ast.Lambda() | ast.comprehension():
                pass  # a mere annotation, and names of an inner scope
            case node:
                waiting += ast.iter_child_nodes(node)
    return names


@_kept
def used_names(text: str) -> frozenset[str]:
    """Global names that the cell reads, at its top level or inside its functions; built-in ones left out."""
    if parse(text) is None:
        return frozenset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            waiting = [symtable.symtable(as_python(text), "cell", "exec")]
        except _UNPARSABLE:
            return frozenset()
    used = set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        top = table.get_type() == "module"
        used |= {s.get_name() for s in table.get_symbols() if s.is_referenced() and (top or s.is_global())}
    return frozenset(used - set(dir(builtins)))


def needed_names(text: str) -> set[str]:
    """Of the global names that the cell reads, those that its own earlier statements do not always bind."""
    tree, used = parse(text), used_names(text)
    needed: set[str] = set()
    bound: set[str] = set()
    for statement in tree.body if tree is not None else []:
        read = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        if isinstance(statement, ast.For):
            bound |= {n.id for n in ast.walk(statement.target) if isinstance(n, ast.Name)}
        needed |= (read - bound) & used
        if not isinstance(statement, _BLOCKS):
            bound |= _bound_by(statement, imports=True)
    return needed


def bound_from(texts: Iterable[str], names: Set[str]) -> set[str]:
    """`names`, and what the cells' statements bind with their help."""
    statements = [s for text in texts if (tree := parse(text)) is not None for s in tree.body]
    facts = [(_bound_by(s, imports=False), used_names(ast.unparse(s))) for s in statements]
    found, before = set(names), None
    while found != before:
        before, found = found, found.union(*(bound for bound, used in facts if used & found))
    return found


UNREACHING = r"(unittest\.main|(\w+\.)*(patch|setattr|delattr|testmod|redirect_stdout))(\.\w+)*\("


def unreaching(text: str, modules: Set[str]) -> str:
    """What in the cell works only in a student's own process, as setting something in a module; "" for nothing."""
    for node in ast.walk(parse(text) or ast.Module([], [])):
        shown = ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)) else ""
        if _is_set(node, shown, modules) or re.match(UNREACHING, shown):
            return shown
    return ""


def _is_set(node: ast.AST, shown: str, modules: Set[str]) -> bool:
    return not isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and re.split(r"\W", shown)[0] in modules


BESIDE = re.compile(
    r"(unittest\.main|(\w+\.)*(patch|testmod|getsource\w*|signature|assertIs(Not)?))(\.\w+)*\("
    r"|(id|globals|locals|vars|eval|exec)\(|dir\(\)|get_ipython|.*\.__dict__$|sys\.(modules|argv|path)"
)
REPLAYED = ("sys.stdout", "sys.stderr")  # what students' functions print is printed again by whoever called them


def only_beside(text: str, modules: Set[str]) -> str:
    """What in a test cell asks about the process or the very objects of the answers; "" for nothing."""
    tree = parse(text)
    if tree is None or as_runnable(text) != text:
        return next((line for line in text.splitlines() if re.match(r"\s*[\w, =]*[%!]", line)), "its text")
    for node in ast.walk(tree):
        shown = ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Compare)) else ""
        if (_is_set(node, shown, modules) and shown not in REPLAYED) or BESIDE.match(shown) or _tells_identity(node):
            return shown
        if re.match(r"(setattr|delattr)\(", shown) and re.split(r"\W", shown)[1] in modules:
            return shown
    return ""


def _tells_identity(node: ast.AST) -> bool:
    """Whether it asks if two are one object, which copies are not; of None and of types this can be asked of copies."""
    if not isinstance(node, ast.Compare) or not any(isinstance(sign, (ast.Is, ast.IsNot)) for sign in node.ops):
        return False
    sides = [ast.unparse(s) for s in (node.left, *node.comparators)]
    return not any(s in ("None", "True", "False", *dir(builtins)) or s.startswith("type(") for s in sides)


def as_runnable(text: str) -> str:
    """The cell itself, or without its magics where it is no Python with them."""
    with warnings.catch_warnings(action="ignore"):
        try:
            ast.parse(text)
        except _UNPARSABLE:
            return as_python(text)
    return text


def definitions(texts: Iterable[str], names: Set[str], taken: Set[str]) -> str:
    """The statements of these cells that bind `names`, and what those need; nothing of what is `taken`."""
    statements = [s for text in texts if (tree := parse(text)) is not None for s in tree.body]
    facts = [(s, _bound_by(s, imports=True) - taken, used_names(ast.unparse(s))) for s in statements]
    kept: set[int] = set()
    wanted, before = set(names), -1
    while len(kept) != before:
        before = len(kept)
        for number, (statement, bound, used) in enumerate(facts):
            if bound & wanted and not isinstance(statement, ast.Expr):
                kept.add(number)
                wanted |= used
    return "\n".join(ast.unparse(facts[number][0]) for number in sorted(kept))


@lru_cache(maxsize=1024)
def compiled_silent(text: str, filename: str) -> CodeType:
    """The code object of a cell that runs again and again, without what only shows something. Raises SyntaxError."""
    tree = ast.parse(text)
    tree.body = [statement for statement in tree.body if not _only_shows(statement)]
    return compile(tree, filename, "exec")


def _only_shows(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(ast.Call(ast.Name(name))):
            return name in SHOWING
    return False


def additions(text: str, given: str) -> str | None:
    """The statements that a student added to a given cell, as text; None where `text` is no Python.

    Changed versions of what the cell already binds are left out (the given ones hold), and so are assertions.
    """
    tree, original = parse(text), parse(given)
    if tree is None or original is None:
        return None
    lines, given_lines = text.split("\n"), given.split("\n")
    known = {_lines_of(s, given_lines) for s in original.body}
    kept = dict.fromkeys(  # a line once, however many statements share it
        _lines_of(s, lines)
        for s in tree.body
        if not isinstance(s, (ast.Assert, ast.Pass)) or _lines_of(s, lines).lstrip().startswith(("%", "!"))
    )
    taken = bound_names(given, imports=True)
    return "\n".join(s for s in kept if s not in known and not bound_names(s, imports=True) & taken)


def _lines_of(statement: ast.stmt, lines: list[str]) -> str:
    """The whole lines of a statement, with its decorators."""
    first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
    return "\n".join(line.rstrip() for line in lines[first - 1 : statement.end_lineno])
