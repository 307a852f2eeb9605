"""An IPython shell that runs the student's cells and collects their outputs as nbformat data."""

from __future__ import annotations

import ast
import base64
import io
import re
import sys
import traceback
from contextlib import nullcontext
from typing import Any

from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.sandbox.inside.workspace import MAX_TEXT, describe, time_limit

# What is slow the first time: imports of modules for tracebacks, regular expressions, numpy's printing.
FIRST_CELLS = (
    "import numpy\n_ = numpy.random.default_rng(0).normal(size=(2, 2)) @ numpy.eye(2)\nrepr(_)",
    "text = 'a single line is tokenised'",
    "def half(x):\n    return 1 / x\nhalf(0)",
    "an error of = = syntax",
)


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

    def _add(self, size: int, item: dict[str, Any]) -> None:
        """Keep an output of `size` while there is room; what is printed goes on where it was."""
        if self.full:
            return
        if size > self.left:
            self.full = True
            remark = "… more output than is kept; the rest was dropped\n"
            self.items.append({"output_type": "stream", "name": "stderr", "text": remark})
            return
        self.left -= size
        self.total_left -= size
        last = self.items[-1] if self.items else {}
        if item["output_type"] == "stream" and item["name"] == last.get("name"):
            last["text"] += item["text"]
        else:
            self.items.append(item)

    def stream(self, name: str, text: str) -> None:
        self._add(len(text) + 1, {"output_type": "stream", "name": name, "text": text})

    def rich(self, kind: str, data: dict[str, Any], **more: Any) -> None:
        bundle = {}
        for mime, content in data.items():
            if isinstance(content, bytes):
                content = base64.b64encode(content).decode()
            if isinstance(content, str):
                bundle[str(mime)] = content
        if bundle:
            size = sum(map(len, bundle.values()))
            self._add(size, {"output_type": kind, "data": bundle, "metadata": {}, **more})

    def error(self, name: str, message: str, lines: list[str]) -> None:
        said = {"output_type": "error", "ename": name[:200], "evalue": message[:MAX_TEXT], "traceback": lines}
        self._add(sum(map(len, lines)), said)


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
    shell: Shell

    def __call__(self, result: Any = None) -> None:
        if result is None or self.quiet():
            return
        self.update_user_ns(result)
        data, _ = self.compute_format_data(result)
        self.shell.outputs.rich("execute_result", data, execution_count=self.shell.execution_count)


class _Publisher(DisplayPublisher):
    shell: Shell

    def publish(self, data: Any, metadata: Any = None, *args: Any, **kwargs: Any) -> None:
        self.shell.outputs.rich("display_data", data)

    def clear_output(self, wait: bool = False) -> None:
        self.shell.outputs.items.clear()


# Magics that only a notebook's own kernel has and that change no result.
KERNEL_MAGICS = ("autosave", "connect_info", "qtconsole", "edit", "less", "more", "man", "clear", "subshell")
INSTALLERS = ("pip", "conda", "mamba", "micromamba", "uv")
# Magics that set up a machine, and may fail on this one.
SETUP_MAGICS = ("matplotlib", "pylab", "gui", "load_ext", "reload_ext", "config", "colors", "xmode", *INSTALLERS)
# Nothing can be installed without a network; pip alone takes seconds to say that what is asked for is there.
INSTALLS = re.compile(
    rf"\s*(sudo\s+)?((python3?\s+-m\s+)?(pip3|{'|'.join(INSTALLERS)})|uv\s+pip|apt|apt-get)\s+install\b"
)


class _Compiler(CachingCompiler):
    """As IPython's, but a cell that was parsed to find out how it is written is not parsed twice."""

    def __init__(self) -> None:
        super().__init__()
        self._parsed: tuple[str, int, ast.AST] | None = None

    def can_parse(self, source: str) -> bool:
        """Whether a cell is Python as it stands; its tree is kept for `ast_parse`."""
        try:
            self._parsed = source, self.flags, super().ast_parse(source)
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return False
        return True

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
    compile: _Compiler

    def __init__(self, **kwargs: Any) -> None:
        self.outputs = Outputs()
        config = Config()
        config.HistoryManager.enabled = False
        config.HistoryManager.hist_file = ":memory:"
        config.InteractiveShell.colors = "nocolor"
        config.InteractiveShell.xmode = "Context"
        super().__init__(config=config, **kwargs)
        self._own_transformers = self._transformers()
        for name in KERNEL_MAGICS:  # a line that works in Jupyter must not stop the cell here
            self.magics_manager.register_function(lambda line: None, "line", name)

    @classmethod
    def warm(cls) -> Shell:
        """A fresh shell in a process that has run cells before."""
        shell = cls.instance()
        for cell in FIRST_CELLS:
            shell.run(cell, None)
        shell.reset(new_session=True)
        return shell

    def _tee(self, channel: str) -> Any:
        """IPython keeps a second copy of all that is printed, without a bound, for a history that nobody reads."""
        return nullcontext()

    def enable_gui(self, gui: str | None = None) -> None:
        """`%matplotlib inline` and its like: figures are kept as pictures in any case."""

    def run_line_magic(self, magic_name: str, line: str, _stack_depth: int = 1) -> Any:
        """As IPython's, but a magic that only the student's own machine knows, or sets up, does not stop the cell."""
        if INSTALLS.match(f"{magic_name} {line}"):
            print(f"%{magic_name} did nothing here: no network", file=sys.stderr)
            return None
        try:
            return super().run_line_magic(magic_name, line, _stack_depth + 1)
        except Exception as error:
            if magic_name not in SETUP_MAGICS and self.find_line_magic(magic_name) is not None:
                raise
            print(f"%{magic_name} did nothing here: {type(error).__name__}: {error}", file=sys.stderr)
            return None

    def system(self, cmd: str) -> None:
        """As IPython's, but what would install something does nothing."""
        if INSTALLS.match(cmd):
            print(f"!{cmd.strip()} did nothing here: no network", file=sys.stderr)
        else:
            super().system(cmd)

    def transform_cell(self, raw_cell: str) -> str:
        """As IPython's, which tokenises in Python; several lines that are Python as they stand come out unchanged.

        A single line may be a magic without its percent sign, so it takes the long way, and so does everything once
        the student's code has added a transformer.
        """
        whole = raw_cell if raw_cell.endswith("\n") else f"{raw_cell}\n"
        is_usual = "\n" in raw_cell.strip() and self._transformers() == self._own_transformers
        return whole if is_usual and self.compile.can_parse(whole) else str(super().transform_cell(raw_cell))

    def should_run_async(self, raw_cell: str, *, transformed_cell: str | None = None, **more: Any) -> bool:
        """As IPython's, which compiles the whole cell to find out; without either word it waits for nothing."""
        if transformed_cell is not None and "await" not in transformed_cell and "async" not in transformed_cell:
            return False
        return super().should_run_async(raw_cell, transformed_cell=transformed_cell, **more)

    def _transformers(self) -> list[list[Any]]:
        manager = self.input_transformer_manager
        built_in = manager.cleanup_transforms, manager.line_transforms, manager.token_transformers
        return [list(found) for found in (*built_in, self.input_transformers_post, self.ast_transformers)]

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
