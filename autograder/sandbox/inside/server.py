"""The student's side of the sandbox: runs the student's cells and answers requests about what they defined.

`Workspace` answers requests on a namespace; it also serves the grader itself, which runs reference solutions and
catalogue variants through the very same code. `Shell` is an IPython shell that collects outputs as nbformat data.
Everything in this process is under the student's control once the first cell has run: the grader treats each answer
as data from a stranger. This module imports nothing of the package but `channel`.
"""

from __future__ import annotations

import ast
import base64
import builtins
import io
import json
import linecache
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np
from IPython.core.compilerop import CachingCompiler
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from autograder.sandbox.inside.protocol import Channel, Closed, TooLarge, pack, unpack

MAX_TEXT = 2000
MISSING = object()
UNPARSABLE = (SyntaxError, ValueError, MemoryError, RecursionError)


class OutOfTime(KeyboardInterrupt):
    """A cell or a call used up its time; a KeyboardInterrupt, so that libraries let it through."""


def _alarm(signum: int, frame: Any) -> None:
    raise OutOfTime("out of time")


class time_limit:
    """Raise OutOfTime in the main thread after `seconds`, again every half second until the block ends.

    `is_prepared`: an earlier limit in the same request has set the signal's handler.
    """

    def __init__(self, seconds: float | None, is_prepared: bool = False) -> None:
        self.seconds = seconds
        self.is_prepared = is_prepared

    def __enter__(self) -> None:
        if self.seconds:
            if not self.is_prepared:
                signal.signal(signal.SIGALRM, _alarm)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.5)

    def __exit__(self, *raised: Any) -> None:
        if self.seconds:
            signal.setitimer(signal.ITIMER_REAL, 0)


def is_memory_error(error: BaseException) -> bool:
    """numpy raises MemoryError, torch a RuntimeError of its allocator."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "allocate memory" in str(error))


def describe(error: BaseException, is_student_file: Callable[[str], bool]) -> dict[str, Any]:
    """An exception as data: what happened and the last line of the student's own code on the way to it."""
    kind = "exception"
    if isinstance(error, OutOfTime):
        kind = "timeout"
    elif is_memory_error(error):
        kind = "memory"
    try:
        message = str(error)[:MAX_TEXT]
    except Exception as broken:  # a student's exception class whose __str__ fails
        message = f"(its message cannot be shown: {type(broken).__name__})"
    where = ""
    for item in traceback.extract_tb(error.__traceback__):
        if is_student_file(item.filename):
            line = (item.line or linecache.getline(item.filename, item.lineno or 0)).strip()[:200]
            name = "" if item.name == "<module>" else f" of `{item.name}`"
            where = f"line {item.lineno} of your cell{name and ', in'}{name.removeprefix(' of')}: `{line}`"
    return {"kind": kind, "type": type(error).__name__, "message": message, "where": where}


# --------------------------------------------------------------------------------------------- requests


class Workspace:
    """Answers requests on `namespace`. Values that are not plain data stay here and are known outside by an id."""

    def __init__(
        self,
        namespace: dict[str, Any],
        call_back: Callable[[int, tuple, dict], Any] | None = None,
        is_student_file: Callable[[str], bool] = lambda filename: False,
        seconds: bool = True,
    ) -> None:
        self.namespace = namespace
        self.call_back = call_back
        self.is_student_file = is_student_file
        self.use_time_limit = seconds
        self.objects: dict[int, Any] = {}
        self.ids: dict[int, int] = {}
        self.saved: dict[str, Any] = {}
        self.saved_defaults: dict[FunctionType, tuple] = {}

    # what crosses

    def _other_out(self, value: Any) -> dict[str, Any]:
        key = self.ids.get(id(value))
        if key is None:
            key = len(self.objects) + 1
            self.objects[key] = value
            self.ids[id(value)] = key
        kind = type(value)
        return {
            "handle": key,
            "type": f"{kind.__module__}.{kind.__qualname__}"[:200],
            "callable": callable(value),
            "mro": [f"{c.__module__}.{c.__qualname__}"[:200] for c in type.mro(kind)][:30],
        }

    def _other_in(self, node: dict[str, Any]) -> Any:
        if "handle" in node:
            return self.objects[node["handle"]]
        number = node["callback"]

        def given_function(*args: Any, **kwargs: Any) -> Any:
            return self.call_back(number, args, kwargs)

        given_function.__name__ = given_function.__qualname__ = str(node.get("name", "given_function"))
        return given_function

    def out(self, value: Any, blobs: list[bytes]) -> Any:
        return pack(value, blobs, self._other_out)

    def read(self, node: Any, blobs: list[bytes]) -> Any:
        return unpack(node, blobs, self._other_in)

    # requests

    def answer(
        self, request: dict[str, Any], blobs: list[bytes], is_prepared: bool = False
    ) -> tuple[dict[str, Any], list[bytes]]:
        """The reply to one request: {"ok": node, ...} or {"error": {...}}.

        `forget` in it drops all handles first: the test cell that held them is over.
        """
        sent: list[bytes] = []
        if request.get("forget"):
            self.objects.clear()
            self.ids.clear()
        try:
            operation = getattr(self, f"do_{request['op']}")
            with time_limit(request.get("seconds") if self.use_time_limit else None, is_prepared):
                return operation(request, blobs, sent), sent
        except BaseException as error:  # SystemExit and KeyboardInterrupt of the student's code are answers too
            return {"error": describe(error, self.is_student_file)}, []

    def do_get(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        found = {n: self.namespace[n] for n in request["names"] if n in self.namespace}
        return {"found": {n: self.out(v, sent) for n, v in found.items()}}

    def do_call(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        function = self.objects[request["target"]]
        args = [self.read(a, blobs) for a in request["args"]]
        kwargs = {k: self.read(v, blobs) for k, v in request["kwargs"].items()}
        watched = {**dict(enumerate(args)), **kwargs}
        before = {k: _snapshot(v) for k, v in watched.items()}
        value = function(*args, **kwargs)
        changed = [str(k) for k, v in watched.items() if _snapshot(v) != before[k]]
        return {"ok": self.out(value, sent), "changed": changed}

    def do_several(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        """Values of names and the replies to many requests, one after the other; the first to take too long ends it.

        The requests are the JSON of the first blob; the target of one is the value of a name, or what an earlier one
        gave.
        """
        reply = self.do_get(request, [], sent)
        reply["blobs"], reply["replies"] = len(sent), []
        start = 1
        for number, part in enumerate(json.loads(blobs[0])):
            origin = part["target"]
            node = (
                reply["found"].get(origin["name"]) if "name" in origin else reply["replies"][origin["reply"]].get("ok")
            )
            target = node.get("handle") if isinstance(node, dict) else None
            end = start + part["blobs"]
            answered, part_sent = self.answer({**part, "target": target}, blobs[start:end], number > 0)
            start = end
            sent += part_sent
            reply["replies"].append({**answered, "blobs": len(part_sent)})
            if answered.get("error", {}).get("kind") in ("timeout", "memory"):
                break
        return reply

    def do_attribute(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        return {"ok": self.out(getattr(self.objects[request["target"]], request["name"]), sent)}

    def do_item(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        return {"ok": self.out(self.objects[request["target"]][self.read(request["key"], blobs)], sent)}

    def do_length(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        return {"ok": self.out(len(self.objects[request["target"]]), sent)}

    def do_items(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        """The first `most` things an iterable gives."""
        values = []
        for value in self.objects[request["target"]]:
            if len(values) >= request["most"]:
                break
            values.append(value)
        return {"ok": self.out(values, sent)}

    def do_gradients(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        """Gradients of a fixed weighted sum of the outputs, by the arguments `wrt` or by the parameters."""
        import torch

        function = self.objects[request["target"]]
        args = [self.read(a, blobs) for a in request["args"]]
        kwargs = {k: self.read(v, blobs) for k, v in request["kwargs"].items()}
        for index in request["wrt"]:
            args[index] = args[index].clone().requires_grad_(True)
        with torch.enable_grad():
            outputs = function(*args, **kwargs)
            if request["of"] is not None:
                outputs = outputs[request["of"]]
            total = _weighted_sum(torch, outputs)
            if request["parameters"]:
                names, targets = zip(*function.named_parameters(), strict=True)
            else:
                names, targets = request["wrt"], [args[i] for i in request["wrt"]]
            if not total.requires_grad:
                found = [None] * len(targets)
            else:
                found = torch.autograd.grad(total, targets, allow_unused=True)
        value = dict(zip(names, found, strict=True)) if request["parameters"] else list(found)
        return {"ok": self.out(value, sent)}

    def do_replace(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        """Put the grader's answer in place of a name (follow-through), until `restore`.

        It also takes the place of the old value under other names and in functions' default arguments, where a
        student's code may have put it already.
        """
        name = request["name"]
        new, old = self.read(request["value"], blobs), self.namespace.get(name, MISSING)
        for other, value in [(name, old), *self.namespace.items()]:
            if value is old and (other == name or callable(old)):
                self.saved.setdefault(other, value)
                self.namespace[other] = new
            elif isinstance(value, FunctionType) and callable(old):
                self._replace_defaults(value, old, new)
        return {"ok": None}

    def _replace_defaults(self, function: FunctionType, old: Any, new: Any) -> None:
        given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
        if any(value is old for value in (*given, *named.values())):
            self.saved_defaults.setdefault(function, (function.__defaults__, function.__kwdefaults__))
            function.__defaults__ = tuple(new if value is old else value for value in given) or None
            function.__kwdefaults__ = {k: new if value is old else value for k, value in named.items()} or None

    def do_restore(self, request: dict, blobs: list, sent: list) -> dict[str, Any]:
        for name, value in self.saved.items():
            if value is MISSING:
                self.namespace.pop(name, None)
            else:
                self.namespace[name] = value
        for function, (given, named) in self.saved_defaults.items():
            function.__defaults__, function.__kwdefaults__ = given, named
        self.saved.clear()
        self.saved_defaults.clear()
        return {"ok": None}


def _snapshot(value: Any) -> Any:
    """Something that differs when an array or tensor argument was changed in place."""
    if isinstance(value, np.ndarray):
        return (value.shape, value.tobytes())
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.detach().cpu().numpy().tobytes())
    if isinstance(value, (list, tuple)):
        return [_snapshot(v) for v in value]
    return None


def _weighted_sum(torch: Any, outputs: Any) -> Any:
    """Σ cos(1 + index)·output over all floating outputs: no symmetry makes it constant, unlike a plain sum."""
    if isinstance(outputs, torch.Tensor):
        outputs = [outputs]
    elif isinstance(outputs, dict):
        outputs = list(outputs.values())
    total = torch.zeros(())
    for output in outputs:
        if isinstance(output, torch.Tensor) and output.is_floating_point():
            weights = torch.cos(1.0 + torch.arange(output.numel(), dtype=output.dtype))
            total = total + (output.reshape(-1) * weights).sum()
    return total


# ----------------------------------------------------------------------------------------------- shell


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


def no_input(prompt: str = "") -> str:
    raise EOFError("input() cannot be answered while a notebook is graded; give the value in the cell instead")


def serve(shell: Shell, channel: Channel) -> None:
    """Answer the grader until it hangs up. Runs in the student process's main thread."""
    lock = threading.RLock()

    def call_back(number: int, args: tuple, kwargs: dict) -> Any:
        with lock:
            blobs: list[bytes] = []
            header = {
                "number": asked[-1],
                "callback": number,
                "args": [workspace.out(a, blobs) for a in args],
                "kwargs": {k: workspace.out(v, blobs) for k, v in kwargs.items()},
            }
            channel.send(header, blobs)
            reply, blobs = channel.receive()
        if "error" in reply:
            raise RuntimeError(reply["error"])
        return workspace.read(reply["ok"], blobs)

    asked = [0]  # the number of the request that is being answered; each answer repeats it
    workspace = Workspace(shell.user_ns, call_back, shell.is_cell)
    sys.stdout, sys.stderr = Stream(shell.outputs, "stdout"), Stream(shell.outputs, "stderr")
    builtins.input = no_input
    sys.path.insert(0, "")  # a notebook can import the files that it has written beside itself
    signal.signal(signal.SIGINT, signal.default_int_handler)
    while True:
        try:
            request, blobs = channel.receive()
        except Closed:
            os._exit(0)
        asked[-1] = request.get("number", 0)
        if request["op"] == "run":
            channel.send({"number": asked[-1], **shell.run(request["source"], request["seconds"])})
        elif request["op"] == "file":
            folder = os.path.dirname(request["name"])
            if folder:
                os.makedirs(folder, exist_ok=True)
            with open(request["name"], "wb") as file:
                file.write(blobs[0])
            channel.send({"ok": None})
        else:
            shell.outputs.start()
            reply, sent = workspace.answer(request, blobs)
            try:
                channel.send({"number": asked[-1], **reply}, sent)
            except TooLarge as error:
                said = {"kind": "exception", "type": "TooLarge", "message": str(error), "where": ""}
                channel.send({"number": asked[-1], "error": said})
