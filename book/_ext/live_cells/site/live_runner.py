"""Runs one cell like a notebook does, and tells what came out of it piece by piece.

Runs in the browser (Pyodide) and, for the tests, in any Python. Everything goes to ``tell(kind, text, more)``:
kinds are "stdout", "stderr", "value", "figure", "error", "note" and "package" (one that was not found).
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import linecache
import os
import sys
import time
import traceback

if sys.platform == "emscripten":
    time.process_time = time.perf_counter  # a browser does not say how long its processor worked
os.environ["MPLBACKEND"] = "module://live_figures"

LONGEST, MOST_LINES, MOST_FIGURES = 20_000, 400, 12
budget: Budget  # of the cell that runs now; live_figures asks it for room
NO_INPUT = "input() does not work here: nobody can answer it. Write the value into the code instead"


class Output(io.TextIOBase):
    """A stream that passes on what is written, up to a limit that both streams of a cell share."""

    def __init__(self, kind: str, budget: Budget):
        self.kind, self.budget = kind, budget

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.budget.spend(self.kind, text)
        return len(text)


class Budget:
    """How much a cell may still print; what is beyond is counted, and said at the end."""

    def __init__(self, tell):
        self.tell = tell
        self.letters, self.lines, self.figures = LONGEST, MOST_LINES, MOST_FIGURES
        self.cut_letters = self.cut_figures = 0

    def spend(self, kind: str, text: str) -> None:
        kept = "".join(text[: self.letters].splitlines(keepends=True)[: self.lines])
        self.letters -= len(kept)
        self.lines -= kept.count("\n")
        self.cut_letters += len(text) - len(kept)
        if self.cut_letters:
            self.letters = 0  # nothing small may slip in behind the gap
        if kept:
            self.tell(kind, kept, None)

    def picture(self, png: str, words: str, width: float) -> None:
        if self.figures:
            self.figures -= 1
            self.tell("figure", png, {"words": words, "width": width})
        else:
            self.cut_figures += 1

    def say_what_was_cut(self) -> None:
        if self.cut_letters:
            self.tell("note", f"The output is cut here: {self.cut_letters:,} more characters are not shown.", None)
        if self.cut_figures:
            self.tell("note", f"{self.cut_figures} more figures are not shown.", None)


def no_input(prompt: object = "") -> str:
    raise RuntimeError(NO_INPUT)


def run_cell(code: str, name: str, page: dict, tell) -> bool:
    """Run ``code`` in the namespace ``page``; ``name`` stands in tracebacks. Return whether it went through."""
    global budget
    budget = Budget(tell)
    # a last line without its end would put the marks of a traceback one place too far
    linecache.cache[name] = (len(code), None, f"{code}\n".splitlines(keepends=True), name)
    usual = builtins.input
    builtins.input = no_input
    try:
        with (
            contextlib.redirect_stdout(Output("stdout", budget)),
            contextlib.redirect_stderr(Output("stderr", budget)),
        ):
            error = _error_of(lambda: _run(code, name, page))
            error = _error_of(_show_figures) or error  # figures that were begun are shown all the same
    finally:
        builtins.input = usual
    budget.say_what_was_cut()
    if error is not None:
        _tell_error(error, tell)
    return error is None


def _error_of(step) -> BaseException | None:
    try:
        step()
    except BaseException as error:
        # SystemExit and KeyboardInterrupt too: they end the cell, not the session
        return error
    return None


def _run(code: str, name: str, page: dict) -> None:
    value = _result(code, name, page)
    if value is not None:
        page["_"] = value
        budget.spend("value", repr(value))


def _result(code: str, name: str, page: dict):
    """Execute everything; the value of the last expression, unless a semicolon ends it."""
    tree = ast.parse(code, name)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not code.rstrip().endswith(";"):
        last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, name, "exec"), page)
    if last is not None:
        return eval(compile(last, name, "eval"), page)
    return None


def _show_figures() -> None:
    if "live_figures" in sys.modules:  # Matplotlib loads its backend with the first figure
        sys.modules["live_figures"].show()


def _tell_error(error: BaseException, tell) -> None:
    """The traceback from the cell's own first line on, without what stands around it here."""
    if isinstance(error, KeyboardInterrupt):
        tell("note", "Stopped.", None)
        return
    if isinstance(error, ModuleNotFoundError):
        error.msg = str(error).split("\n")[0]  # Pyodide adds advice that is for its own users
        error.args = (error.msg,)
    step = error.__traceback__
    while step and not _of_a_cell(step.tb_frame.f_code.co_filename):
        step = step.tb_next
    text = "".join(traceback.format_exception(type(error), error, step))
    tell("error", text[:LONGEST], {"last": text.rstrip().split("\n")[-1]})
    if isinstance(error, ModuleNotFoundError) and error.name:
        tell("package", error.name.split(".")[0], None)
    if isinstance(error, MemoryError):
        tell(
            "note",
            "This is more memory than a browser page can have. Make the arrays smaller, or run the notebook "
            "on your computer.",
            None,
        )


def _of_a_cell(filename: str) -> bool:
    return filename.startswith("cell ")
