"""Students' cells run as in IPython itself, although the shell takes shorter ways through it."""

import json
import re
import subprocess
import sys

import pytest

RUN = """
import json, sys
from IPython.core.compilerop import CachingCompiler
from IPython.core.interactiveshell import InteractiveShell
from autograder.sandbox.inside.shell import Shell, Stream

class Long(Shell):
    compiler_class = CachingCompiler
    transform_cell = InteractiveShell.transform_cell
    should_run_async = InteractiveShell.should_run_async
    _tee = InteractiveShell._tee

shell = (Long if sys.argv[1] == "long" else Shell).instance()
cells = json.load(sys.stdin)
real, sys.stdout, sys.stderr = sys.stdout, Stream(shell.outputs, "stdout"), Stream(shell.outputs, "stderr")
results = [shell.run(cell, 60.0) for cell in cells]
sys.stdout = real
print(json.dumps(results))
"""
NOTEBOOKS = {
    "values shown, hidden and kept": ["1", "a = 2\na", "_", "3;", "a\n4;", "Out", "for n in range(2):\n    n\nn"],
    "what was typed before": ["a = 1", "b = 2\nb", "print([_i, _ii, _iii, _i1, len(In)])", "%history -n 1-2"],
    "an error at the end of some lines": ["def f():\n    return 1 / 0\n\nw = 5\nf()\nq = 3", "w", "q"],
    "a statement that cannot be compiled behind some that can": ["x = 1\nreturn 3\ny = 2", "x", "y"],
    "errors of syntax": ["a = = 1", "if True:\nb = 1", "'open"],
    "imports of the future": ["from __future__ import annotations\ndef g(x: Nowhere): pass", "g.__annotations__"],
    "the future after something": ["a = 1\nfrom __future__ import annotations\ndef g(x: Nowhere): pass", "a", "g"],
    "waiting": ["import asyncio\nawait asyncio.sleep(0)\n7", "async def h():\n    return 8\n\nawait h()"],
    "magics and the shell": ["%pwd", "here = %pwd\ntype(here)", "!echo hello", "%%capture kept\nprint(1)"],
    "every expression shown": ["get_ipython().ast_node_interactivity = 'all'", "1\n2\na = 3\n4"],
    "leaving": ["raise SystemExit", "import sys\nsys.exit(3)", "1"],
    "rich output": ["from IPython.display import HTML, display\ndisplay(HTML('<b>x</b>'))\nHTML('y')"],
    "printing and warning": ["import warnings\nprint('a', end='')\nwarnings.warn('w')", "warnings.warn('w')"],
    "hooks": ["def told(*a): print('a cell')\nget_ipython().events.register('pre_execute', told)", "1\n2"],
    "transformers": ["def cut(lines): return [l.replace('x', 'y') for l in lines]\n"
                     "get_ipython().input_transformers_post.append(cut)", "x = 1\ny"],
    "the same cell again": ["a = 1\nb = 2\na + b"] * 3,
    "the future for a cell that was compiled before": ["from __future__ import annotations\n1",
                                                       "def g(x: Nowhere): pass\ng.__annotations__"],
    "trees changed before they are run": ["import ast\nclass Two(ast.NodeTransformer):\n"
                                          "    def visit_Constant(self, node): return ast.Constant(2)\n"
                                          "get_ipython().ast_transformers.append(Two())", "a = 1\nb = 1\na + b"],
}  # fmt: skip


def results_of(way: str, cells: list[str]) -> list:
    """Errors and outputs; the names of cells in warnings without their hash."""
    command = [sys.executable, "-c", RUN, way]
    done = subprocess.run(command, input=json.dumps(cells), capture_output=True, text=True, check=True)
    return json.loads(re.sub(r"<ipython-input-(\d+)-\w+>", r"<cell \1>", done.stdout))


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_cells_do_what_they_do_in_ipython(notebook: str) -> None:
    short, long = (results_of(way, NOTEBOOKS[notebook]) for way in ("short", "long"))
    assert short == long
    assert any(r["outputs"] or r["error"] for r in short)


@pytest.mark.parametrize(
    "line",
    [
        "%pip install numpy",
        "!pip3 install -q numpy",
        "!python -m pip install a",
        "!uv pip install a",
        "!sudo apt install b",
    ],
)
def test_what_would_install_something_is_not_run_and_does_not_stop_the_cell(line: str) -> None:
    (result,) = results_of("short", [f"{line}\nprint('went on')"])
    said = "".join(output["text"] for output in result["outputs"])
    assert result["error"] is None
    assert "did nothing here: no network" in said and "went on" in said


def test_what_only_names_an_installer_is_run() -> None:
    (result,) = results_of("short", ["!echo pip install numpy"])
    assert [output["text"].strip() for output in result["outputs"]] == ["pip install numpy"]
