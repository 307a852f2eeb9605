"""Writes the example class: made-up submissions to ps2 that look like those of a real class.

    python examples/example_class.py [FOLDER]

makes `<FOLDER>/submitted/<student>/ps2-self-attention/…` (by default beside this file) from the released notebook.
What each student must score, and why, stands in expected.csv; a test holds the grader to it.
"""

from __future__ import annotations

import copy
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbformat
from right_answers import EINSUM, LOOPS, RIGHT

HERE = Path(__file__).parent
SET = "ps2-self-attention"
RELEASED = HERE.parent / "assignments" / SET / f"{SET}.ipynb"
STUB = "# YOUR CODE HERE\nraise NotImplementedError()"
Edit = Callable[[nbformat.NotebookNode], tuple[str, bytes] | None]


def cell(notebook: nbformat.NotebookNode, grade_id: str) -> nbformat.NotebookNode:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def answer(notebook: nbformat.NotebookNode, answers: dict[str, str]) -> None:
    """Put answers where the stubs stand, with the indentation of the stub."""
    for grade_id, text in answers.items():
        target = cell(notebook, grade_id)
        if target.cell_type == "markdown":
            target.source = text
            continue
        indent = next(line for line in target.source.splitlines() if line.strip() == "# YOUR CODE HERE").split("#")[0]
        stub = "\n".join(indent + line for line in STUB.splitlines())
        assert target.source.count(stub) == 1, grade_id
        target.source = target.source.replace(stub, "\n".join(indent + line for line in text.splitlines()))


def insert(notebook: nbformat.NotebookNode, before: str, text: str, kind: str = "code") -> None:
    """A cell of the student's own in front of another."""
    make = nbformat.v4.new_code_cell if kind == "code" else nbformat.v4.new_markdown_cell
    number = notebook.cells.index(cell(notebook, before))
    notebook.cells.insert(number, make(text, id=f"own-{number}"))


def right(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, RIGHT)


def einsum(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, {**RIGHT, **EINSUM})
    insert(
        notebook,
        "self-attention",
        "def cross_attention_by_hand(X_q, X_kv, W_Q, W_K, W_V):\n"
        '    project = lambda X, W: np.einsum("...td,dk->...tk", X, W)\n'
        "    return scaled_dot_product_attention(project(X_q, W_Q), project(X_kv, W_K), project(X_kv, W_V))",
    )


def loops(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, {**RIGHT, **LOOPS})


def single_precision(notebook: nbformat.NotebookNode) -> None:
    """Right, in a class-based style, and float64 only where the input is."""
    answer(notebook, RIGHT)
    insert(
        notebook,
        "argmax-attention",
        "class Attention:\n"
        '    """My helper: holds the scale."""\n\n'
        "    def __init__(self, d_k):\n"
        "        self.scale = 1 / d_k**0.5\n\n"
        "    def scores(self, Q, K):\n"
        "        return (Q * self.scale) @ np.moveaxis(K, -1, -2)",
    )
    attention = cell(notebook, "scaled-dot-product-attention")
    attention.source = attention.source.replace(
        "scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])", "scores = Attention(K.shape[-1]).scores(Q, K)"
    )


def wrong_scale(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, RIGHT)
    for grade_id in ("scaled-dot-product-attention",):
        target = cell(notebook, grade_id)
        target.source = target.source.replace("np.sqrt(K.shape[-1])", "K.shape[-1]")
    sheet = cell(notebook, "self-attention-worksheet")
    sheet.source = sheet.source.replace(" / np.sqrt(2)", "")


def wrong_axis(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, {**RIGHT, "attention-multiplications": "return L**2 * D"})
    target = cell(notebook, "scaled-dot-product-attention")
    target.source = target.source.replace("axis=-1", "axis=-2")
    columns = cell(notebook, "self-attention-columns")
    columns.source = columns.source.replace("return output.T, weights", "return output.T, weights.T")


def half_finished(notebook: nbformat.NotebookNode) -> None:
    done = ("self-attention-worksheet", "argmax-attention", "gradient-choice", "gradient-why")
    answer(notebook, {name: RIGHT[name] for name in done})
    answer(notebook, {"scaled-dot-product-attention": "scores = Q @ K.T\n# to do: softmax, mask"})


def empty(notebook: nbformat.NotebookNode) -> None:
    cell_id = next(c for c in notebook.cells if c.get("id") == "student-id")
    cell_id.source = cell_id.source.replace("student-07", "...")


def messy(notebook: nbformat.NotebookNode) -> tuple[str, bytes]:
    """Everything right, handed in untidily: renamed, a test cell deleted, one retyped, a cell copied."""
    answer(notebook, RIGHT)
    notebook.cells.remove(cell(notebook, "argmax-attention-tests"))
    original = cell(notebook, "scaled-dot-product-attention")
    duplicate = copy.deepcopy(original)
    duplicate.id = "copied-cell"
    notebook.cells.insert(notebook.cells.index(original) + 1, duplicate)
    tests = cell(notebook, "cross-attention-tests")
    tests.cell_type = "markdown"
    for name in ("outputs", "execution_count"):
        tests.pop(name, None)
    multiplications = cell(notebook, "attention-multiplications")
    multiplications.source += "\n\n# first try, wrong:\n# return L * D"
    return f"{SET} (1).ipynb", as_bytes(notebook)


def noisy(notebook: nbformat.NotebookNode) -> tuple[str, bytes]:
    """All right, with a byte order mark, Windows line ends, no metadata, prints and warnings everywhere."""
    loud = (
        'import warnings\nwarnings.warn("careful")\nprint("here we go")\nimport sys\nprint("noise", file=sys.stderr)\n'
    )
    answer(notebook, {k: v if cell(notebook, k).cell_type == "markdown" else loud + v for k, v in RIGHT.items()})
    insert(notebook, "argmax-attention", "%config InlineBackend.figure_format = 'png'\n%matplotlib inline\n!echo shell")
    insert(
        notebook,
        "why-scale-task",
        "import matplotlib.pyplot as plt\n"
        "plt.imshow(self_attention_answers['weights'], vmin=0, vmax=1)\nplt.colorbar()\nplt.xlabel('key')\n"
        "plt.ylabel('query')\nplt.show()",
    )
    for item in notebook.cells:
        item.metadata.clear()
        item.pop("id", None)
    notebook.nbformat_minor = 4
    text = json.dumps(notebook, indent=1).replace("\n", "\r\n")
    return f"{SET}.ipynb", b"\xef\xbb\xbf" + text.encode()


def endless(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, RIGHT)
    target = cell(notebook, "argmax-attention")
    target.source = target.source.replace("return V[np.argmax(K @ q)]", "i = 0\n    while i < len(K):\n        pass")


def leaves(notebook: nbformat.NotebookNode) -> None:
    """Ends its own process in the cell before exercise 6; what came before counts."""
    answer(notebook, RIGHT)
    insert(notebook, "self-attention", "import os\nos._exit(0)")


def hungry(notebook: nbformat.NotebookNode) -> None:
    answer(notebook, RIGHT)
    target = cell(notebook, "cross-attention")
    target.source = target.source.replace("return scaled", "memory = np.ones((100, 10**8))\n    return scaled")


def skips_tests(notebook: nbformat.NotebookNode) -> None:
    """Tags and metadata that make nbgrader skip or revalue the tests."""
    for item in notebook.cells:
        if item.metadata.get("nbgrader", {}).get("grade"):
            item.metadata["tags"] = ["skip-execution", "raises-exception"]
            item.metadata["nbgrader"]["points"] = 0
            item.metadata["nbgrader"]["grade"] = False
    notebook.metadata["celltoolbar"] = "Create Assignment"


def always_equal(notebook: nbformat.NotebookNode) -> None:
    """Answers that claim to equal everything."""
    insert(
        notebook,
        "self-attention-worksheet",
        """\
class Yes(int):
    __eq__ = __ne__ = __le__ = __ge__ = __lt__ = __gt__ = lambda self, other: True
    __hash__ = int.__hash__
    shape = property(lambda self: Yes())
    def __array__(self, *args, **kwargs): return self
    def __getattr__(self, name): return self
    def __call__(self, *args, **kwargs): return self
    def __iter__(self): return iter([self, self])
    def __len__(self): return 2
    def __getitem__(self, key): return self
    def __sub__(self, other): return Yes()
    def __instancecheck__(self, other): return True
yes = Yes()
class Sheet(dict):
    def __contains__(self, key): return True
    def __getitem__(self, key): return yes
    def __missing__(self, key): return yes""",
    )
    answer(
        notebook,
        {
            "self-attention-worksheet": "self_attention_answers = Sheet()",
            "cross-attention-worksheet": "cross_attention_answers = Sheet()",
            "gradient-choice": "class Letter(str):\n    __eq__ = lambda s, o: True\n    def strip(self): return self\n"
            "    def lower(self): return 'c'\nanswer_gradient = Letter('z')",
            "argmax-attention": "return yes",
            "scaled-dot-product-attention": "return yes, yes",
            "self-attention": "return yes",
            "self-attention-columns": "return (yes, yes)",
            "cross-attention": "return yes",
            "attention-multiplications": "return yes",
        },
    )


def hooks(notebook: nbformat.NotebookNode) -> None:
    """Shell hooks and patched libraries that would rewrite the tests, were they run here."""
    insert(
        notebook,
        "self-attention-worksheet",
        """\
import ast, builtins
ip = get_ipython()
ip.input_transformers_post.append(lambda lines: [] if any("assert" in l or "check" in l for l in lines) else lines)
class Drop(ast.NodeTransformer):
    def visit_Assert(self, node): return ast.Pass()
ip.ast_transformers.append(Drop())
parse = ip.compile.ast_parse
ip.compile.ast_parse = lambda source, *a, **k: parse("pass" if "HIDDEN" in source else source, *a, **k)
ip.run_cell = lambda *a, **k: None
ip.set_custom_exc((Exception,), lambda *a, **k: None)
ip.events.register("post_run_cell", lambda result: setattr(result, "error_in_exec", None))
np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
np.testing.assert_allclose = lambda *a, **k: None
builtins.AssertionError = type("AssertionError", (Exception,), {})
builtins.abs = lambda x: 0""",
    )


def looks_around(notebook: nbformat.NotebookNode) -> None:
    """Searches frames, history, memory and files for expected values, and answers with what it finds."""
    insert(
        notebook,
        "self-attention-worksheet",
        """\
import gc, glob, os, sys
found = []
def search():
    frame = sys._getframe()
    while frame is not None:
        for value in [*frame.f_locals.values(), *frame.f_globals.values()]:
            if hasattr(value, "scaled_dot_product_attention"):
                found.append(value)
        frame = frame.f_back
    for thing in gc.get_objects():
        name = type(thing).__name__
        if name in ("Session", "TestCell", "Judged", "Source") or (isinstance(thing, str) and "BEGIN HIDDEN" in thing):
            found.append(thing)
    found.extend(t for t in globals().get("In", []) if "HIDDEN" in t and "found" not in t)
    for pattern in ("/*/*.ipynb", "/*/*/gradebook.db", "../*/*/*/catalogue.py", "/home/**/*"):
        found.extend(glob.glob(pattern, recursive=True))
def steal(*args):
    search()
    for thing in found:
        for name in ("expected", "reference", "answers"):
            if hasattr(thing, name):
                return getattr(thing, name)
    return None
print("found:", found)""",
    )
    answer(
        notebook,
        {
            "argmax-attention": "return steal(q, K, V)",
            "scaled-dot-product-attention": "return steal(Q, K, V, mask)",
            "self-attention": "return steal(X)",
            "attention-multiplications": "return steal(L, D)",
            "self-attention-worksheet": "search()\nself_attention_answers = found[0] if found else {}",
        },
    )


def partial_credit(notebook: nbformat.NotebookNode) -> None:
    """Outputs that nbgrader would read as credit: a displayhook, NaN, a printed score."""
    insert(
        notebook,
        "self-attention-worksheet",
        "import sys\nip = get_ipython()\nsys.displayhook = lambda value: None\nip.displayhook = lambda value=None: -1\n"
        'print("32 of 32 points")\nfloat("nan")',
    )
    answer(
        notebook,
        {
            "argmax-attention": 'return np.full(V.shape[-1], float("nan"))',
            "attention-multiplications": 'return float("nan")',
            "gradient-choice": 'answer_gradient = float("nan")',
            "scaled-dot-product-attention": (
                'w = np.full((*Q.shape[:-1], K.shape[-2]), float("nan"))\nreturn w @ V, w'
            ),
        },
    )


def writes_marks(notebook: nbformat.NotebookNode) -> None:
    """Tries to write marks into the gradebook, wherever it is, and to leave a process behind that goes on trying."""
    insert(
        notebook,
        "self-attention-worksheet",
        """\
import glob, os, sqlite3, subprocess, sys
def write_marks():
    for path in glob.glob("/*/gradebook.db") + glob.glob("/home/**/gradebook.db", recursive=True):
        with sqlite3.connect(path) as db:
            db.execute("update grade set manual_score = 100")
write_marks()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        import time
        for _ in range(3600):
            write_marks()
            time.sleep(1)
    os._exit(0)
for folder in ("/tmp", os.path.expanduser("~"), os.getcwd(), "/usr", "/opt"):
    try:
        open(os.path.join(folder, "student-was-here"), "w").write("x")
    except OSError as error:
        print(folder, error)""",
    )


def forges(notebook: nbformat.NotebookNode) -> None:
    """Writes messages of its own into every open descriptor, as if checks had passed."""
    insert(
        notebook,
        "self-attention-worksheet",
        """\
import json, os, struct
head = json.dumps({"m": {"ok": True, "verdict": "passed", "score": 6, "found": {}}, "b": []}).encode()
message = struct.pack("!IQ", len(head), 0) + head
for descriptor in range(3, 64):
    try:
        os.write(descriptor, message * 3)
    except OSError:
        pass""",
    )


def borrowed_id(notebook: nbformat.NotebookNode) -> None:
    """Everything right, for the numbers of another student."""
    answer(notebook, RIGHT)
    own = next(c for c in notebook.cells if c.get("id") == "student-id")
    own.source = own.source.replace("student-20", "student-01")


def cut_off(notebook: nbformat.NotebookNode) -> tuple[str, bytes]:
    """An upload that stopped half-way."""
    answer(notebook, RIGHT)
    data = as_bytes(notebook)
    return f"{SET}.ipynb", data[: len(data) // 2]


CLASS: dict[str, Edit] = {
    "student-01": right,
    "student-02": einsum,
    "student-03": loops,
    "student-04": single_precision,
    "student-05": wrong_scale,
    "student-06": wrong_axis,
    "student-07": empty,
    "student-08": half_finished,
    "student-09": messy,
    "student-10": noisy,
    "student-11": endless,
    "student-12": leaves,
    "student-13": hungry,
    "student-14": skips_tests,
    "student-15": always_equal,
    "student-16": hooks,
    "student-17": looks_around,
    "student-18": partial_credit,
    "student-19": writes_marks,
    "student-20": borrowed_id,
    "student-21": forges,
    "student-22": cut_off,
}


def as_bytes(notebook: nbformat.NotebookNode) -> bytes:
    return (json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n").encode()


def write_class(folder: Path, released: Path = RELEASED) -> None:
    """All submissions below `folder`/submitted, which is made anew."""
    submitted = folder / "submitted"
    shutil.rmtree(submitted, ignore_errors=True)
    text = released.read_text(encoding="utf-8")
    for student, edit in CLASS.items():
        notebook = nbformat.reads(text, as_version=4)
        own = next(c for c in notebook.cells if c.get("id") == "student-id")
        own.source = own.source.replace('"..."', f'"{student}"')
        name, data = edit(notebook) or (f"{SET}.ipynb", as_bytes(notebook))
        place = submitted / student / SET
        place.mkdir(parents=True)
        (place / name).write_bytes(data)
        (place / "timestamp.txt").write_text("2026-10-12 17:30:00 UTC\n")


if __name__ == "__main__":
    write_class(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
