"""Execute chapters whose cells were changed, one on each processor, and put them where Jupyter Book finds them.

Jupyter Book executes one chapter after the other. What fails here it executes again, and says what is wrong.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import yaml
from jupyter_cache import get_cache
from jupyter_cache.executors import load_executor

ROOT = Path(__file__).resolve().parents[1]


def main(place: str) -> None:
    """Fill the cache in ``_build`` of the folder `place`, which is made where it is missing."""
    folder = ROOT / place / "_build"
    folder.mkdir(parents=True, exist_ok=True)
    cache = get_cache(folder / ".jupyter_cache")
    for path in sorted((ROOT / "book").glob("*.md")):
        if "\nkernelspec:" in path.read_text(encoding="utf-8"):
            cache.add_nb_to_project(str(path), read_data={"name": "myst_nb_md", "type": "plugin"})
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    run = load_executor("local-parallel", cache, logging.getLogger(__name__))
    run.run_and_cache(timeout=config["execute"]["timeout"])


if __name__ == "__main__":
    main(sys.argv[1])
