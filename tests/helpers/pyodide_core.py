"""Pyodide's core (Python for browsers, without packages), fetched once from the npm registry into _build/."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from kept import alone

VERSION = "0.27.7"
SHA512 = "RUSVJlhQdfWfgO9hVHCiXoG+nVZQRS5D9FzgpLJ/VcgGBLSAKoPL8kTiOikxbHQm1kRISeWUBdulEgO26qpSRA=="
CACHE = Path(__file__).resolve().parents[2] / "_build" / f"pyodide-core-{VERSION}"


def pyodide_core() -> Path:
    """The folder with the core; skips the test where it is not there and the registry cannot be reached."""
    with alone("pyodide-core"):
        return _fetched()


def _fetched() -> Path:
    if (CACHE / "pyodide.js").is_file():
        return CACHE
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is needed once to fetch pyodide@{VERSION}, and is not installed")
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [npm, "pack", f"pyodide@{VERSION}", "--pack-destination", str(CACHE)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"pyodide@{VERSION} cannot be fetched from the npm registry: {done.stderr.strip()[-300:]}")
    archive = CACHE / f"pyodide-{VERSION}.tgz"
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    assert found == SHA512, f"pyodide@{VERSION} from the registry is not the file that was pinned"
    with tarfile.open(archive) as files:
        for member in files:
            if member.isfile():
                (CACHE / Path(member.name).name).write_bytes(files.extractfile(member).read())
    return CACHE
