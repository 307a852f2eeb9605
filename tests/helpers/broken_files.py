"""What reaches a course instead of the notebook as released, and what must come of it."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import v4
from tiny_course import GOOD, GOOD_DOUBLE, GOOD_QUADRUPLE, SET, answered, source_notebook

from autograder.notebook.places import release_view
from autograder.results import GRADED, NOT_SUBMITTED, UNREADABLE

NOT_ROOT = os.getuid() != 0
FILE = f"{SET}.ipynb"


@dataclass
class Case:
    """What is put into a student's folder, and what must come of it.

    `said` stands in the reason, the notes or the reason of a check; parts between `|` are alternatives.
    """

    make: Callable[[Path], None]
    score: float | None = 5.0
    status: str = GRADED
    said: str = ""


CASES: dict[str, Case] = {}


def good() -> nbformat.NotebookNode:
    return answered(**GOOD)


def cell(notebook: nbformat.NotebookNode, cell_id: str) -> nbformat.NotebookNode:
    return next(c for c in notebook.cells if c.id == cell_id)


def written(name: str, data: bytes, score: float | None = 5.0, said: str = "", status: str = GRADED) -> None:
    """A student with this file."""
    CASES[name] = Case(lambda folder: (folder / FILE).write_bytes(data) and None, score, status, said)


def text_of(notebook: object) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def changed(
    name: str,
    change: Callable[[nbformat.NotebookNode], object],
    score: float | None = 5.0,
    said: str = "",
    status: str = GRADED,
) -> None:
    """A student whose right notebook was changed by `change`, which may return another object to be saved."""
    notebook = good()
    other = change(notebook)
    written(name, text_of(other if isinstance(other, dict) else notebook).encode(), score, said, status)


def unreadable(name: str, data: bytes, said: str) -> None:
    written(name, data, None, said, UNREADABLE)


# ------------------------------------------------------------------------------------------- ids and metadata


def every(**fields: object) -> Callable[[nbformat.NotebookNode], None]:
    def change(notebook: nbformat.NotebookNode) -> None:
        for one in notebook.cells:
            one.update(deepcopy(fields))

    return change


def bare(notebook: nbformat.NotebookNode) -> None:
    """Neither ids nor metadata nor outputs: what a converter leaves."""
    notebook.metadata = {}
    notebook.cells = [{"cell_type": c.cell_type, "source": c.source} for c in notebook.cells]


def without_nbgrader(notebook: nbformat.NotebookNode) -> None:
    for number, one in enumerate(notebook.cells):
        one.metadata, one.id = {}, f"fresh-{number}"


def colab(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata = {
        "colab": {"provenance": [], "toc_visible": True, "gpuType": "T4"},
        "accelerator": "GPU",
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
    }
    notebook.nbformat_minor = 0
    for number, one in enumerate(notebook.cells):
        del one["id"]
        one.metadata = {"id": f"aB3_x-{number}", "colab": {"base_uri": "https://localhost:8080/"}, "outputId": "e1-2"}
        if one.cell_type == "code":
            one.source = f'#@title A form {{ display-mode: "form" }}\n{one.source}'
            one.outputs = [
                {
                    "output_type": "display_data",
                    "data": {"application/vnd.google.colaboratory.intrinsic+json": {"type": "string"}},
                    "metadata": {},
                }
            ]


def vs_code(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata = {
        "language_info": {"name": "python", "version": "3.13.0"},
        "vscode": {"interpreter": {"hash": 1}},
    }
    for one in notebook.cells:
        one.metadata = {"vscode": {"languageId": "python"}, **one.metadata}
        one.source = one.source.splitlines(keepends=True)


def deepnote(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata = {"deepnote": {}, "deepnote_notebook_id": "8f1", "deepnote_execution_queue": []}
    for number, one in enumerate(notebook.cells):
        kind = "code" if one.cell_type == "code" else "text-cell-p"
        one.metadata = {
            "cell_id": f"{number:032x}",
            "source_hash": "b6",
            "deepnote_cell_type": kind,
            "tags": [],
            "deepnote_to_be_reexecuted": False,
            "execution_start": 1700000000000,
        }
        del one["id"]


def kaggle(notebook: nbformat.NotebookNode) -> None:
    notebook.metadata["kaggle"] = {"accelerator": "none", "dataSources": [], "isInternetEnabled": True}
    notebook.metadata["papermill"] = {"duration": 3.2, "exception": None}
    first = v4.new_code_cell("import os\nfor d, _, files in os.walk('/kaggle/input'):\n    print(d, files)")
    notebook.cells.insert(0, first)
    for one in notebook.cells:
        one.metadata["papermill"] = {"status": "completed"}


changed("no-cell-ids", lambda n: [c.pop("id") for c in n.cells])
changed("equal-cell-ids", every(id="same"))
changed("odd-cell-ids", every(id="not a valid id! ü"))
changed("ids-of-another-type", every(id={"a": [1]}))
changed("no-metadata", lambda n: [n.pop("metadata"), *(c.pop("metadata") for c in n.cells)])
changed("metadata-of-another-type", lambda n: [n.update(metadata=[1]), every(metadata="x")(n)])
changed("without-nbgrader", without_nbgrader, said="lost their ids")
changed("nothing-but-text", bare, said="lost their ids")
changed("colab", colab)
changed("vs-code", vs_code)
changed("deepnote", deepnote)
changed("kaggle", kaggle)
changed(
    "all-points-for-me", lambda n: [c.metadata.nbgrader.update(points=100) for c in n.cells if "nbgrader" in c.metadata]
)
changed("skipped-tests", lambda n: [c.metadata.update(tags=["skip-execution"]) for c in n.cells])
changed("missing-kernelspec", lambda n: [n.metadata.pop("kernelspec")])
changed(
    "unknown-kernelspec", lambda n: n.metadata.update(kernelspec={"name": "conda-env-mine-py", "display_name": "?"})
)
changed(
    "kernelspec-of-another-language",
    lambda n: n.metadata.update(kernelspec={"name": "ir"}, language_info={"name": "R"}),
)
changed("kernelspec-of-another-type", lambda n: n.metadata.update(kernelspec=3))
changed(
    "attachments",
    lambda n: cell(n, "why").update(
        attachments={"a.png": {"image/png": "iVBORw0KGgo="}}, source="Twice. ![a](attachment:a.png)"
    ),
)
changed("huge-outputs", lambda n: cell(n, "double").update(outputs=[v4.new_output("stream", text="x" * 12_000_000)]))
changed("outputs-of-no-kind", lambda n: [c.update(outputs=[{"output_type": "x", "data": 3}, None, 3]) for c in n.cells])
changed("widgets", lambda n: n.metadata.update(widgets={"application/vnd.jupyter.widget-state+json": {"state": {}}}))

# --------------------------------------------------------------------------- cells that moved, merged and split


def add(notebook: nbformat.NotebookNode, *texts: str, kind: str = "code", first: bool = False) -> None:
    new = v4.new_code_cell if kind == "code" else v4.new_markdown_cell
    at = 0 if first else len(notebook.cells)
    notebook.cells[at:at] = [new(text) for text in texts]


def without(*ids: str) -> Callable[[nbformat.NotebookNode], None]:
    def change(notebook: nbformat.NotebookNode) -> None:
        notebook.cells = [c for c in notebook.cells if c.id not in ids]

    return change


def merged(notebook: nbformat.NotebookNode) -> None:
    cell(notebook, "double").source = f"{GOOD_DOUBLE}\n\n{GOOD_QUADRUPLE}"
    without("quadruple", "double-tests")(notebook)


def all_in_one(notebook: nbformat.NotebookNode) -> None:
    code = "\n\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    notebook.cells = [notebook.cells[0], v4.new_code_cell(code)]


def split(notebook: nbformat.NotebookNode) -> None:
    """The cell's two halves, each with the same id, as "Split Cell" leaves them."""
    at = notebook.cells.index(cell(notebook, "double"))
    half = deepcopy(notebook.cells[at])
    notebook.cells[at].source = "factor = 2"
    half.source = "def double(x):\n    return factor * np.asarray(x)"
    notebook.cells.insert(at + 1, half)


def in_new_cells(notebook: nbformat.NotebookNode) -> None:
    stubs = release_view(source_notebook())
    for one in ("double", "quadruple"):
        cell(notebook, one).source = cell(stubs, one).source
    add(notebook, GOOD_DOUBLE, GOOD_QUADRUPLE)


def retyped(kind: str, *ids: str) -> Callable[[nbformat.NotebookNode], None]:
    def change(notebook: nbformat.NotebookNode) -> None:
        for one in (cell(notebook, i) for i in ids):
            one.cell_type = kind
            for key in ("outputs", "execution_count"):
                one.pop(key, None)

    return change


changed("reversed", lambda n: n.cells.reverse())
changed("tests-first", lambda n: n.cells.sort(key=lambda c: not c.id.endswith("-tests")))
changed(
    "missing-tests", without("double-tests", "quadruple-tests"), said="was missing and has been put back|were missing"
)
changed("missing-imports", without("tiny-helpers"), said="given cell 'tiny-helpers' was missing")
changed("missing-answer", without("double"), 1.0, "'double' was missing")
changed("doubled-tests", lambda n: n.cells.extend(deepcopy([c for c in n.cells if c.id.endswith("-tests")])))
changed("doubled-answer", lambda n: n.cells.append(deepcopy(cell(n, "double"))))
changed("everything-twice", lambda n: n.cells.extend(deepcopy(n.cells)))
changed("answer-as-markdown", retyped("markdown", "double"), said="turned into markdown")
changed("answer-as-raw", retyped("raw", "double", "quadruple"), said="turned into")
changed("test-as-markdown", retyped("markdown", "double-tests"))
changed("merged", merged, said="stood in one cell")
changed("all-in-one", all_in_one)
changed("split", split)
changed("answers-in-new-cells", in_new_cells, said="stood in another cell")
changed("rewritten-tests", lambda n: cell(n, "double-tests").update(source="assert True"), said="was changed")

# --------------------------------------------------------------------------------- what only some notebooks run


def typed(name: str, source: str, score: float = 5.0, said: str = "") -> None:
    """An own cell before everything."""
    changed(name, lambda n: add(n, source, first=True), score, said)


def answer(name: str, source: str, score: float = 5.0, said: str = "") -> None:
    """The cell of `double` begins with this."""
    changed(name, lambda n: cell(n, "double").update(source=f"{source}\n{GOOD_DOUBLE}"), score, said)


typed("input", "name = input('Your name? ')\nprint(name)")
answer("a-file-that-was-not-handed-in", "%run helpers.py", 1.0, "`'helpers.py'` not found")
answer("a-cell-magic-of-ones-own", "%%no_such_magic", 1.0, "Cell magic `%%no_such_magic` not found")
answer("input-in-the-answers-cell", "n = int(input())", 1.0, "input() cannot be answered while a notebook is graded")
changed(
    "input-in-the-answer",
    lambda n: cell(n, "double").update(source="def double(x):\n    return float(input()) * 2"),
    1.0,
    "input() cannot be answered while a notebook is graded",
)
for number, line in enumerate([
    "%matplotlib inline", "%matplotlib widget", "%matplotlib notebook", "%load_ext autoreload\n%autoreload 2",
    "%config InlineBackend.figure_format = 'retina'", "%load_ext tensorboard", "%load_ext no_such_extension",
    "%tensorflow_version 2.x", "%no_such_magic 3", "!nvidia-smi", "!pip install numpy", "%pip install -q numpy",
    "%conda install numpy", "%cd /", "%env A=1", "%time x = 3", "%timeit -n1 -r1 1 + 1", "%precision 3", "%pdb on",
    "%who", "%xmode Verbose", "files = !ls", "print?", "%reload_ext no_such_extension", "%autosave 60",
    "%store -r nothing", "%notebook x.ipynb", "%history", "%colors nocolor",
    "%alias_magic t time",
]):  # fmt: skip
    answer(f"line-{number:02d}-{line.strip('%!').split()[0].strip('?')}", line)
for number, line in enumerate(["%%time", "%%capture", "%%capture out\n%%time", "%%prun -q"]):
    answer(f"whole-cell-{number}-{line.strip('%').split()[0]}", line)
for number, source in enumerate([
    "%%bash\necho hello; exit 3", "%%html\n<b>x</b>", "%%javascript\nalert(1)", "%%latex\n$x$",
    "%%writefile a.py\nx = 1",
    "%%timeit -n1 -r1\n1 + 1", "%%no_such_magic\nx = 1", "%%script false\nx", "%%sh\nrm -rf /", "%%markdown\n# x",
]):  # fmt: skip
    typed(f"cell-{number}-{source.split()[0].strip('%')}", source)
typed("await", "import asyncio\nawait asyncio.sleep(0.01)\nasync with asyncio.timeout(1):\n    pass")
answer("await-in-the-answers-cell", "import asyncio\nfactor = await asyncio.sleep(0, 2)")
typed("stops-half-way", "raise SystemExit")
typed("warnings", "import warnings, sys\nwarnings.warn('careful')\nprint('oops', file=sys.stderr)")
answer("only-indented", "if True:\n    import math")
answer("tabs", "if True:\n\timport math")
changed(
    "python-2",
    lambda n: cell(n, "double").update(source="def double(x):\n    print x\n    return 2 * x"),
    1.0,
    "SyntaxError",
)
changed(
    "nothing-done",
    lambda n: [cell(n, c.id).update(source=c.source) for c in release_view(source_notebook()).cells],
    0.0,
    "there is no answer yet",
)

# --------------------------------------------------------------------------------------------- files and folders


def put(folder: Path, name: str, notebook: nbformat.NotebookNode | None = None, age: int = 0) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text_of(notebook or good()), encoding="utf-8")
    os.utime(path, (time.time() - age,) * 2)


def wrong() -> nbformat.NotebookNode:
    return answered(double="def double(x):\n    return x", quadruple="def quadruple(x):\n    return x")


def file(
    name: str, make: Callable[[Path], object], score: float | None = 5.0, status: str = GRADED, said: str = ""
) -> None:
    CASES[name] = Case(lambda folder: make(folder) and None, score, status, said)


file("renamed", lambda f: put(f, f"{SET} (1).ipynb"), said=f"called '{SET} \\(1\\).ipynb'")
file("renamed-by-a-friend", lambda f: put(f, "Jane Doe's ps9 – final (2).IPYNB"))
file("ending-txt", lambda f: put(f, f"{SET}.ipynb.txt"))
file("ending-json", lambda f: put(f, f"{SET}.json"))
file("one-folder-deeper", lambda f: put(f, f"homework/{FILE}"))
file(
    "exact-name-counts",
    lambda f: [put(f, FILE), put(f, f"{SET} (1).ipynb", wrong())],
    said="There were other files too",
)
file(
    "highest-copy-counts",
    lambda f: [
        put(f, f"{SET} (1).ipynb", wrong()),
        put(f, f"{SET} (12).ipynb", age=99),
        put(f, f"{SET} (3).ipynb", wrong()),
    ],
    said="There were other files too",
)
file("newest-counts", lambda f: [put(f, "a.ipynb", age=10), put(f, "b.ipynb", wrong(), age=500)], said="other files")
file("no-checkpoint-counts", lambda f: [put(f, f".ipynb_checkpoints/{FILE}", wrong()), put(f, f"x/{FILE}")])
file("attempts-do-not-count", lambda f: [put(f, FILE), put(f, f"attempts/7/{FILE}", wrong())])
file("nothing", lambda f: None, None, NOT_SUBMITTED, f"the folder holds no notebook {FILE}")
file("only-data", lambda f: (f / "numbers.csv").write_text("1"), None, NOT_SUBMITTED, "holds no notebook")
file("only-another-set", lambda f: put(f, "ps3-heads.ipynb"), None, UNREADABLE, "named like another problem set")
file("a-folder", lambda f: (f / FILE).mkdir(), None, UNREADABLE, f"'{FILE}' is a folder")
file("a-folder-of-that-name-around-it", lambda f: put(f, f"{FILE}/{FILE}"))
file("a-pipe", lambda f: os.mkfifo(f / FILE), None, UNREADABLE, f"'{FILE}' is no ordinary file")
file("a-socket", lambda f: bind(f / FILE), None, UNREADABLE, f"'{FILE}' is no ordinary file")
file(
    "a-link-out",
    lambda f: (f / FILE).symlink_to(f.parents[2] / "source_solutions" / SET / FILE),
    None,
    UNREADABLE,
    f"'{FILE}' is a link that leads elsewhere",
)
file(
    "a-link-to-a-device",
    lambda f: (f / FILE).symlink_to("/dev/zero"),
    None,
    UNREADABLE,
    "is a link that leads elsewhere",
)
file("a-link-to-itself", lambda f: (f / FILE).symlink_to(FILE), None, UNREADABLE, "is a link that leads elsewhere")
file(
    "a-link-to-nothing",
    lambda f: (f / FILE).symlink_to("gone.ipynb"),
    None,
    UNREADABLE,
    "is a link that leads elsewhere",
)
file("a-link-inside", lambda f: [put(f, "mine.ipynb"), (f / FILE).symlink_to("mine.ipynb")])
file(
    "a-linked-folder",
    lambda f: (f / "all").symlink_to(f.parents[1]),
    None,
    UNREADABLE,
    "is a link that leads elsewhere",
)
file(
    "a-hard-link-to-the-solution",
    lambda f: os.link(f.parents[2] / "source_solutions" / SET / FILE, f / FILE),
    None,
    UNREADABLE,
    "is a link to a file of the course",
)
file("a-hard-link-of-a-backup", lambda f: [put(f, FILE), os.link(f / FILE, f.parents[2] / "backup.ipynb")])
file(
    "locked",
    lambda f: [put(f, FILE), (f / FILE).chmod(0)],
    None if NOT_ROOT else 5.0,
    UNREADABLE if NOT_ROOT else GRADED,
    "cannot be opened (Permission denied)" if NOT_ROOT else "",
)
file(
    "locked-folder",
    lambda f: [put(f, FILE), f.chmod(0)],
    None if NOT_ROOT else 5.0,
    UNREADABLE if NOT_ROOT else GRADED,
    "cannot be opened (Permission denied)" if NOT_ROOT else "",
)
file(
    "locked-student",
    lambda f: [put(f, FILE), f.parent.chmod(0)],
    None if NOT_ROOT else 5.0,
    UNREADABLE if NOT_ROOT else GRADED,
    "cannot be opened (Permission denied)" if NOT_ROOT else "",
)
for number, stamp in enumerate([b"yesterday", b"", b"\xff\xfe\0", b"9" * 10**6, b"2026-13-45 99:99", b"=1+1"]):
    file(f"timestamp-{number}", lambda f, s=stamp: [put(f, FILE), (f / "timestamp.txt").write_bytes(s)])
file("timestamp-folder", lambda f: [put(f, FILE), (f / "timestamp.txt").mkdir()])
file("timestamp-pipe", lambda f: [put(f, FILE), os.mkfifo(f / "timestamp.txt")])
file("timestamp-link", lambda f: [put(f, FILE), (f / "timestamp.txt").symlink_to("/dev/zero")])
for name in ["Ünï Cödé", "O'Brien \"Bob\"", "=HYPERLINK(1)", "+1", "-dash", "@sum", "a b (1)", "<b>bold<b>", "{{x}}",
             "$(id)", "100%", "语言 🙂", "e\u0301clair", "x" * 150, "semi;colon, comma", "[bold]red",
             "#1", "~", "a&b"]:  # fmt: skip
    file(name, lambda f: put(f, FILE))


def bind(path: Path) -> None:
    """A socket of this name, which a path of a temporary folder is too long to be bound to."""
    with socket.socket(socket.AF_UNIX) as one:
        folder = os.open(path.parent, os.O_RDONLY)
        one.bind(f"/proc/self/fd/{folder}/{path.name}")
        os.close(folder)
