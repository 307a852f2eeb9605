"""Cells that run in the page: in a real browser with a real Pyodide.

The browser gets Pyodide's core, which has no NumPy, from the npm registry; that is enough for everything but the
chapters' own cells. With PYODIDE_DIST=<folder of the full distribution> those run too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from book_build import BOOK, HTML, ROOT, chapter, chapters, pages
from live_pages import LivePageCell, live_cells

EXTENSIONS = BOOK / "_ext"
SITE = EXTENSIONS / "live_cells" / "site"
HELPERS = Path(__file__).parents[1] / "helpers"
sys.path[:0] = [str(EXTENSIONS), str(ROOT / "tools")]

from live_cells import needs as cell_needs  # noqa: E402

# --- which cells are live, found without a browser ------------------------------------------------------


def test_packages_count_only_where_they_are_surely_imported():
    code = "import a.b, c\nfrom d.e import f\nif x:\n    import g\ndef h():\n    import i\nwith j:\n    import k\n"
    assert cell_needs.packages(code) == {"a", "c", "d", "k"}


def test_names_are_read_through_functions_but_locals_are_not():
    reads, binds = cell_needs.names("def f(x):\n    y = x\n    return y + z\n[i for i in w]\nq[0] = 1\np.r.s = 2\n")
    assert {"z", "w"} <= reads and not {"x", "y", "i"} & reads
    assert binds == {"f", "q", "p"}


def test_what_a_cell_lacks_is_handed_on_to_cells_that_use_its_names(tmp_path):
    (tmp_path / "sound.npz").write_bytes(b"")
    cells = [
        "import torch\nmodel = torch.zeros(3)",
        "import math\nx = math.pi",
        "def f():\n    return model",
        "f()",
        "model = x",
        "model",
        "data = 'sound.npz'",
        "data, model",
    ]
    found = cell_needs.lacking(cells, {"numpy"}, tmp_path)
    torch, sound = {"torch"}, {"the file sound.npz"}
    assert found == [torch, set(), torch, torch, set(), set(), sound, sound]


def test_a_cell_depends_on_what_its_names_were_made_of():
    cells = [
        "import numpy as np\nrng = seeded(1)",
        "x = rng.normal(size=3)",
        "i = 5\nfor i in range(3):\n    y = x + i",
        "def f(x):\n    return x + y\ntotal = f(2)",
        "x = 1",
        "x + y",
        "found = []",
        "found.append(1)",
        "print(found, [x for x in range(3)])",
        "rng.normal()",
        "if x:\n    z = 1",
        "z = z + 1",
    ]
    needs, touched = cell_needs.dependencies(cells)
    assert needs == [set(), {0}, {1}, {2}, set(), {2, 4}, set(), {6}, {6, 7}, {0, 1}, {4}, {10}]
    assert touched[1] == {"x", "rng"} and touched[7] == {"found"}


def test_a_set_up_is_divided_into_what_draws_and_what_does_not():
    plain, drawing = cell_needs.without_drawing((BOOK / "_setup.py").read_text(encoding="utf-8"))
    assert "matplotlib" not in plain.replace("# ", "") and "def heatmap" in plain and "set_printoptions" in plain
    assert "plt.rcParams.update" in drawing and "set_matplotlib_formats" in drawing
    assert "numpy" not in cell_needs.packages(drawing)


def test_questions_and_numbers_for_the_prose_need_not_run():
    assert cell_needs.only_for_the_book("put(a=1)\nclaim('b', True)\nquiz(('?', []))")
    assert not cell_needs.only_for_the_book("a = 1\nput(a=a)")


@pytest.mark.parametrize("name", [*chapters(), "index"])
def test_every_cell_is_live_or_says_what_it_needs(name):
    page = chapter(name)
    data = page.soup.find(id="live-cells-data")
    live = page.article.select("div.cell .live-bar")
    assert len(live) == sum("number" in cell for cell in json.loads(data.string)["cells"]) > 0
    for cell in page.article.select("div.cell"):
        if cell.select_one(".cell_input") is None or "tag_setup" in cell["class"]:
            assert not cell.select(".live-bar, .live-need")
            continue
        needs = cell.select(".live-need")
        assert len(cell.select(".live-bar")) + len(needs) == 1
        if needs:
            assert "tag_torch" in cell["class"], f"a reader without PyTorch should run this: {cell.get_text()[:200]}"
    said = [need.get_text() for need in page.article.select(".live-need") if "browser" in need.get_text()]
    assert len(said) == len(set(said)), "what does not run in the browser is said once"
    for link in page.article.select(".live-need a"):
        assert (HTML / link["href"]).is_file() and link.has_attr("download")
    if page.article.select(".live-need"):
        assert page.article.select_one(".live-need").find("a")


@pytest.mark.parametrize("name", pages())
def test_only_pages_with_cells_load_the_script_and_none_loads_python(name):
    soup = chapter(name).soup
    loaded = [tag["src"] for tag in soup.find_all("script", src=True)]
    scripts = [source for source in loaded if "live" in source and "live-figures.js" not in source]
    assert len(scripts) == (1 if soup.select(".live-bar") else 0)
    assert all("live-cells.js" in source for source in scripts)
    assert not any("pyodide" in source for source in loaded)


def test_the_page_script_is_small():
    """What every chapter pays, uncompressed; Python and the editor come later."""
    assert (SITE / "live-cells.js").stat().st_size + (SITE / "live-cells.css").stat().st_size < 30_000


def test_the_vendored_editor_brings_its_licences():
    locked = json.loads((ROOT / "tools" / "live_editor" / "package-lock.json").read_text(encoding="utf-8"))
    notices = (SITE / "live-editor.licences.txt").read_text(encoding="utf-8")
    bundled = (SITE / "live-editor.js").read_text(encoding="utf-8")
    for path, package in locked["packages"].items():
        if "codemirror" in path:
            assert f"{path.removeprefix('node_modules/')} {package['version']}" in notices
    assert notices.count("MIT License") >= 10
    assert "liveCellsEditor" in bundled and "live-editor.licences.txt" in bundled[:200]


# --- the runner, in this Python -------------------------------------------------------------------------


@cache
def ran(*codes: str, hidden: str = "") -> list[dict]:
    asked = json.dumps([{"code": code, "name": f"cell {n}"} for n, code in enumerate(codes, 1)])
    program = [sys.executable, str(HELPERS / "live_chapter.py"), *hidden.split()]
    done = subprocess.run(program, input=asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def told(result: dict, kind: str) -> str:
    return "".join(text for found, text, _ in result["told"] if found == kind)


def test_a_figure_is_shown_once_and_says_what_it_holds():
    draw = (
        "import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nax.plot([1, 2], label='a')\n"
        "ax.set(title='Rise', xlabel='step', ylabel='loss')\n"
    )
    shown, left_open, none = ran(draw + "plt.show()\nprint('after')", draw, "plt.get_fignums()")
    for result in (shown, left_open):
        figures = [more for kind, _, more in result["told"] if kind == "figure"]
        assert len(figures) == 1
        assert figures[0]["words"] == "axes: “Rise”, x axis step, y axis loss, 1 line"
        assert 200 < figures[0]["width"] < 1000
    assert next(kind for kind, *_ in shown["told"]) == "figure" and told(shown, "stdout") == "after\n"
    assert told(none, "value") == "[]", "figures are closed when they have been shown"


def test_output_beyond_the_limit_is_counted():
    many, long, small = ran("for i in range(1000): print(i)", "print('x' * 50_000); print('late')", "print('fine')")
    assert told(many, "stdout").endswith("\n399\n")
    assert "more characters are not shown" in told(many, "note")
    assert len(told(long, "stdout")) == 20_000 and "30,006 more" in told(long, "note")
    assert told(small, "note") == ""


def test_the_marks_of_a_traceback_stand_under_the_code():
    (result,) = ran("a = 1\na / 0")
    assert "    a / 0\n    ~~^~~\n" in told(result, "error")


def test_a_broken_figure_does_not_break_the_session():
    bad, good = ran("import matplotlib.pyplot as plt\nplt.title('$\\\\nosuch$')", "print('on')")
    assert not bad["ok"] and "nosuch" in told(bad, "error")
    assert good["ok"] and told(good, "stdout") == "on\n"


def compare(cells: list[LivePageCell], results: list[dict]) -> list[str]:
    faults = []
    for cell, result in zip(cells, results, strict=True):
        figures = sum(kind == "figure" for kind, *_ in result["told"])
        if not result["ok"] or told(result, "stderr"):
            faults.append(f"{cell.name}: {told(result, 'error')}{told(result, 'stderr')}")
        elif cell.number and (not cell.agrees(told(result, "stdout")) or figures != cell.figures):
            faults.append(f"{cell.name} printed\n{told(result, 'stdout')}\nnot\n{cell.printed}")
    return faults


@pytest.mark.slow
@pytest.mark.parametrize("name", chapters())
def test_live_cells_print_what_is_published_without_what_the_browser_lacks(name):
    """In this Python, with PyTorch and the rest hidden: quick, and needs no Pyodide."""
    cells = live_cells(chapter(name).soup)
    faults = compare(cells, ran(*(cell.code for cell in cells)))
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.parametrize("name", chapters())
def test_cells_that_do_not_draw_print_what_is_published_without_those_that_do(name):
    """In a Python that has no Matplotlib either: nobody loads it for a cell that only needs NumPy."""
    soup = chapter(name).soup
    cells = live_cells(soup)
    drawing: set[int] = set()
    for place, cell in enumerate(json.loads(soup.find(id="live-cells-data").string)["cells"]):
        if "matplotlib" in cell_needs.packages(cells[place].code) or drawing & set(cell["needs"]):
            drawing.add(place)
    kept = [cell for place, cell in enumerate(cells) if place not in drawing]
    assert sum(cell.number is not None for cell in kept) > 4
    faults = compare(kept, ran(*(cell.code for cell in kept), hidden="matplotlib"))
    assert not faults, "\n".join(faults)


def test_the_comparison_sees_a_difference():
    plain = LivePageCell(1, "", "loss 0.5\n")
    noise = LivePageCell(1, "", "off by 8e-17\n")
    clock = LivePageCell(1, "", "took 1.7 s\n", timing=True)
    assert plain.agrees("loss 0.5\n") and not plain.agrees("loss 0.6\n") and not plain.agrees("")
    assert noise.agrees("off by 0e+00\n") and not noise.agrees("off by 8e-10\n")
    assert clock.agrees("took 22.1 s\n") and not clock.agrees("gave 1.7 s\n") and not clock.agrees("took nan s\n")
