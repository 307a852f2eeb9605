"""An IPython shell that runs the student's cells and collects their outputs as nbformat data."""

from __future__ import annotations

import ast
import base64
import io
import sys
import traceback
from contextlib import nullcontext
from types import CodeType
from typing import Any, NamedTuple

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.sandbox.inside.limits import MAX_TEXT, describe, time_limit

UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError)


class Outputs:
    """Collects a cell's outputs as nbformat dicts, up to a number of bytes; then one remark and nothing more."""

    def __init__(self, cell_bytes: int = 500_000, total_bytes: int = 4_000_000) -> None:
        self.cell_bytes = cell_bytes
        self.total_left = total_bytes
        self.start()

    def start(self) -> None:
        self.items: list[dict[str, Any]] = []
        self.left = min(self.cell_bytes, self.total_left)
        self.full = False

    def _room(self, size: int) -> bool:
        if self.full:
            return False
        if size > self.left:
            self.full = True
            self.items.append(
                {
                    "output_type": "stream",
                    "name": "stderr",
                    "text": "… more output than is kept; the rest was dropped\n",
                }
            )
            return False
        self.left -= size
        self.total_left -= size
        return True

    def stream(self, name: str, text: str) -> None:
        if not self._room(len(text) + 1):
            return
        last = self.items[-1] if self.items else {}
        if last.get("output_type") == "stream" and last["name"] == name:
            last["text"] += text
        else:
            self.items.append({"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict[str, Any], **more: Any) -> None:
        bundle = {}
        for mime, content in data.items():
            if isinstance(content, bytes):
                content = base64.b64encode(content).decode()
            if isinstance(content, str):
                bundle[str(mime)] = content
        if bundle and self._room(sum(map(len, bundle.values()))):
            self.items.append({"output_type": kind, "data": bundle, "metadata": {}, **more})

    def error(self, name: str, message: str, lines: list[str]) -> None:
        if self._room(sum(map(len, lines))):
            self.items.append(
                {"output_type": "error", "ename": name[:200], "evalue": message[:MAX_TEXT], "traceback": lines}
            )


class Stream(io.TextIOBase):
    """sys.stdout or sys.stderr of the student's cells."""

    def __init__(self, outputs: Outputs, name: str) -> None:
        self.outputs = outputs
        self.stream_name = name

    def write(self, text: str) -> int:
        self.outputs.stream(self.stream_name, str(text))
        return len(text)

    def writable(self) -> bool:
        return True


class _Hook(DisplayHook):
    def __call__(self, result: Any = None) -> None:
        if result is None or self.quiet():
            return
        self.update_user_ns(result)
        data, _ = self.shell.display_formatter.format(result)
        self.shell.outputs.rich("execute_result", data, execution_count=self.shell.execution_count)


class _Publisher(DisplayPublisher):
    def publish(self, data: dict[str, Any], metadata: Any = None, **kwargs: Any) -> None:
        self.shell.outputs.rich("display_data", data)

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.items.clear()


KERNEL_MAGICS = ("autosave", "connect_info", "qtconsole", "edit", "less", "more", "man", "clear", "subshell")

SETUP_MAGICS = (
    *("matplotlib", "pylab", "gui", "load_ext", "reload_ext", "config", "colors", "xmode"),
    *("pip", "conda", "mamba", "micromamba", "uv"),
)


def _no_magic(line: str) -> None:
    """Stands for a magic that only a notebook's own kernel has and that changes no result."""


def _whole_lines(cell: str) -> str:
    return cell if cell.endswith("\n") else f"{cell}\n"


def _shows_nothing(statements: list[ast.stmt]) -> list[ast.stmt]:
    """A cell's statements without the expression at its end, whose value is shown."""
    return statements[:-1] if statements and isinstance(statements[-1], ast.Expr) else statements


class _Learnt(NamedTuple):
    """A cell that was compiled before it came; `code` is that of its statements that show nothing."""

    flags: int
    name: str
    tree: ast.Module
    code: CodeType


class _Compiler(CachingCompiler):
    """As IPython's, but nothing is parsed twice: a cell that was parsed to find out how it is written, or one that
    was learnt.
    """

    def __init__(self) -> None:
        super().__init__()
        self._parsed: tuple[str, int, ast.AST] | None = None
        self._learnt: dict[str, _Learnt] = {}
        self._ready: _Learnt | None = None

    def learn(self, cell: str, number: int) -> None:
        """Compile a given cell that most notebooks will run as their cell `number`; keep nothing where that fails."""
        whole, flags = _whole_lines(cell), self.flags
        name = self.get_code_name(cell, whole, number)
        try:
            tree = super().ast_parse(whole)
            code = self(ast.Module(_shows_nothing(tree.body), []), name, "exec")
        except UNPARSABLE:
            return
        if self.flags == flags:
            self._learnt[whole] = _Learnt(flags, name, tree, code)
        self.flags = flags  # an import from the __future__ is for cells that come after it in a run

    def parse(self, source: str) -> None:
        """Parse a cell and keep the tree for `ast_parse`. Raises what `ast_parse` raises."""
        learnt = self._learnt.pop(source, None)
        self._ready = learnt if learnt is not None and learnt.flags == self.flags else None
        self._parsed = source, self.flags, self._ready.tree if self._ready else super().ast_parse(source)

    def ready(self, name: str, statements: list[ast.stmt]) -> CodeType | None:
        """The code of these very statements where they are of the cell that was parsed last, and had been learnt."""
        learnt, self._ready = self._ready, None
        is_same = learnt is not None and learnt.name == name and _shows_nothing(learnt.tree.body) == statements
        return learnt.code if is_same else None

    def get_code_name(self, raw_code: str, transformed_code: str, number: int) -> str:
        """As IPython's, with Python's own hash of the text."""
        return f"<ipython-input-{number}-{hash(transformed_code) & 0xFFFFFFFF:08x}>"

    def ast_parse(self, source: str, filename: str = "<unknown>", symbol: str = "exec") -> ast.AST:
        kept, self._parsed = self._parsed, None  # once: whoever gets a tree may change it
        if kept is not None and symbol == "exec" and kept[:2] == (source, self.flags):
            return kept[2]
        return super().ast_parse(source, filename, symbol)


class Shell(InteractiveShell):
    """An IPython shell without terminal, history file or kernel."""

    displayhook_class = _Hook
    display_pub_class = _Publisher
    compiler_class = _Compiler

    def __init__(self, **kwargs: Any) -> None:
        self.outputs = Outputs()
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.xmode = "Context"
        super().__init__(config=config, **kwargs)
        self.history_manager.store_inputs = self._store_inputs
        self._own_transformers = self._transformers()
        for name in KERNEL_MAGICS:  # a line that works in Jupyter must not stop the cell here
            self.register_magic_function(_no_magic, "line", name)

    def _store_inputs(self, line_num: int, source: str, source_raw: str | None = None) -> None:
        """As the history's, without its observed attributes and its file."""
        raw = (source if source_raw is None else source_raw).rstrip("\n")
        before = [*self.history_manager.input_hist_raw[:-4:-1], "", "", ""]
        names = {**dict(zip(("_i", "_ii", "_iii"), before, strict=False)), f"_i{line_num}": raw}
        self.user_ns.update(names)
        self.user_ns_hidden.update(names)
        self.history_manager.input_hist_parsed.append(source.rstrip("\n"))
        self.history_manager.input_hist_raw.append(raw)

    def _tee(self, channel: str) -> Any:
        """IPython keeps a second copy of all that is printed, for a history that nobody reads here."""
        return nullcontext()

    def enable_gui(self, gui: str | None = None) -> None:
        """`%matplotlib inline` and its like: figures are kept as pictures in any case."""

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """As IPython's, but a magic that only the student's own machine knows, or sets up, does not stop the cell."""
        try:
            return super().run_line_magic(magic_name, line, _stack_depth + 1)
        except Exception as error:
            if magic_name not in SETUP_MAGICS and self.find_line_magic(magic_name) is not None:
                raise
            print(f"%{magic_name} did nothing here: {type(error).__name__}: {error}", file=sys.stderr)
            return None

    def transform_cell(self, raw_cell: str) -> str:
        """As IPython's, which tokenises in Python; several lines that are Python as they stand come out unchanged.

        A single line may be a magic without its percent sign, so it takes the long way, and so does everything once
        the student's code has added a transformer.
        """
        if "\n" in raw_cell.strip() and self._transformers() == self._own_transformers:
            whole = _whole_lines(raw_cell)
            try:
                self.compile.parse(whole)
            except UNPARSABLE:
                return super().transform_cell(raw_cell)
            return whole
        return super().transform_cell(raw_cell)

    def should_run_async(self, raw_cell: str, *, transformed_cell: str | None = None, **more: Any) -> bool:
        """As IPython's, which compiles the whole cell to find out; without either word it waits for nothing."""
        if transformed_cell is not None and "await" not in transformed_cell and "async" not in transformed_cell:
            return False
        return super().should_run_async(raw_cell, transformed_cell=transformed_cell, **more)

    async def run_ast_nodes(
        self,
        nodelist: list[ast.stmt],
        cell_name: str,
        interactivity: str = "last_expr",
        compiler: Any = compile,
        result: Any = None,
    ) -> bool:
        """As IPython's, which compiles every statement by itself; here those that show nothing are compiled as one.

        Where that cannot be done, it is done IPython's way, which runs what stands before the faulty statement.
        """
        others = _shows_nothing(nodelist)
        if interactivity == "last_expr" and len(others) > 1:
            code = None if self.ast_transformers else self.compile.ready(cell_name, others)
            try:
                code = code or compiler(ast.Module(others, []), cell_name, "exec")
            except UNPARSABLE:
                code = None
            if code is not None:
                if await self.run_code(code, result):
                    return True
                nodelist = nodelist[len(others) :]
        return bool(await super().run_ast_nodes(nodelist, cell_name, interactivity, compiler, result))

    def _transformers(self) -> list[list[Any]]:
        manager = self.input_transformer_manager
        return [
            list(found)
            for found in (
                *(manager.cleanup_transforms, manager.line_transforms, manager.token_transformers),
                *(self.input_transformers_post, self.ast_transformers),
            )
        ]

    def _showtraceback(self, etype: type, evalue: BaseException, stb: Any) -> None:
        self.outputs.error(etype.__name__, str(evalue), [str(line) for line in stb])

    def is_cell(self, filename: str) -> bool:
        """Whether a traceback's file is one of the student's cells."""
        return filename in self.compile._filename_map or filename.startswith("<ipython-input")

    def run(self, source: str, seconds: float | None) -> dict[str, Any]:
        """Run one cell: {"error": None or {...}, "outputs": [...]}."""
        self.outputs.start()
        error: BaseException | None = None
        try:
            with time_limit(seconds):
                result = self.run_cell(source, store_history=True)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as raised:  # OutOfTime outside run_cell's own handling, or a broken shell
            error = raised
            self.outputs.error(type(raised).__name__, str(raised), traceback.format_exception_only(raised))
        described = None if error is None else describe(error, self.is_cell)
        return {"error": described, "outputs": self.outputs.items}
