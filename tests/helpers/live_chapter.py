"""Run a page's live cells with the runner that the browser uses: python live_chapter.py [PACKAGES] < cells > results.

Reads a JSON list of {"code": …, "name": …}, writes a JSON list of what each cell told. Packages that are named are
hidden too. Needs nothing but NumPy and Matplotlib, so it also runs in a Python that has exactly the versions of the
browser.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext" / "live_cells" / "site"))
NOT_IN_THE_BROWSER = ("torch", "myst_nb", "jupyterquiz", "IPython", "rapidfuzz", "sklearn", *sys.argv[1:])


class Absent:
    """Makes this Python as poor as the browser's: the packages are neither imported nor found."""

    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in NOT_IN_THE_BROWSER:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main() -> None:
    import importlib.util

    from live_runner import run_cell

    usual = importlib.util.find_spec
    importlib.util.find_spec = lambda name, package=None: (
        None if name.split(".")[0] in NOT_IN_THE_BROWSER else usual(name, package)
    )
    sys.meta_path.insert(0, Absent())
    page = {"__name__": "__main__"}
    results = []
    for cell in json.load(sys.stdin):
        told: list[tuple] = []
        ok = run_cell(cell["code"], cell["name"], page, lambda *what, told=told: told.append(what))
        results.append({"ok": ok, "told": told})
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
