"""What judging depends on: the code that counts for a verdict, and a package that only processes of ours go without."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

import grimp

from autograder.grading.pool import Pool
from autograder.grading.runner import JUDGING

# what a worker runs, what makes the notebook to judge of a file, and what sets and their catalogues import
DECIDING = (
    "judging.worker",
    "notebook.finder",
    "notebook.reader",
    "notebook.rebuild",
    "checks",
    "figures",
    "catalogue",
)


def test_the_graders_version_covers_what_judging_imports_and_nothing_else() -> None:
    graph = grimp.build_graph("autograder")
    modules = {f"autograder.{name}" for name in DECIDING}
    modules |= {upstream for name in modules for upstream in graph.find_upstream_modules(name)}
    assert {name.split(".")[1] for name in modules if "." in name} == set(JUDGING)


def test_web_addresses_are_left_out_in_workers_only() -> None:
    code = "import sys, autograder.grading.runner; assert sys.modules.get('rfc3987_syntax', 0) is not None"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert find_spec("rfc3987_syntax") is not None
    with Pool(1) as pool:
        assert pool.submit(find_spec, "rfc3987_syntax").result() is None
