"""Copy what the live cells need from a full Pyodide distribution into book/pyodide/, for a site of one's own.

    python tools/self_host_pyodide.py pyodide-0.27.7.tar.bz2

The distribution is Pyodide's release file or a folder with its contents. Taken are the core and the packages
named in --packages with all they depend on, each compared with its checksum; the lock file is cut down to
these, so that asking for another package gets a clear answer.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

VERSION = "0.27.7"
LOCK = "pyodide-lock.json"
# SHA-256 of the core's files; those of the packages stand in the lock file
CORE = {
    "pyodide.js": "b4cb23a53aba19c221659b9fb40a2f18281d685691dc06647fb0afd0681baf98",
    "pyodide.asm.js": "6b4c90de5b7172873f04f21884d0e9d2274e305fe32116558fe3e4fbe3618d51",
    "pyodide.asm.wasm": "a50dd1843f805a0b7c45b61037ee0d7b26dfe85efe0e18ef95a34ad24e401f5f",
    "python_stdlib.zip": "16611534726e5d8ac2bd8f926410b2dcb8d6f49aa24913463533b457a2115c16",
}


class CannotCopy(Exception):
    """The distribution is not what it should be."""


def reader(distribution: Path) -> Callable[[str], bytes]:
    """A function that reads a file of the distribution, a folder or an archive, by its name. Raises CannotCopy."""
    if not distribution.exists():
        raise CannotCopy(f"{distribution} is not there: give the full distribution of Pyodide {VERSION}")
    if not distribution.is_dir() and not tarfile.is_tarfile(distribution):
        raise CannotCopy(f"{distribution} is neither a folder nor a tar archive")
    contents: dict[str, Callable[[], bytes]]
    if distribution.is_dir():
        contents = {path.name: path.read_bytes for path in distribution.iterdir()}
    else:
        archive = tarfile.open(distribution)  # noqa: SIM115 - stays open for the life of this short program
        files = [member for member in archive if member.isfile()]
        contents = {PurePosixPath(member.name).name: partial(_content, archive, member) for member in files}

    def read(name: str) -> bytes:
        if name not in contents:
            raise CannotCopy(f"{distribution} holds no {name}: take the full distribution of Pyodide, not its core")
        return contents[name]()

    return read


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(member)
    assert opened is not None, "only regular files are asked for"
    return opened.read()


def with_dependencies(wanted: list[str], packages: dict[str, Any]) -> list[str]:
    """The wanted packages and all they depend on, sorted. Raises CannotCopy for a package Pyodide has not."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        name = waiting.pop()
        if name not in packages:
            raise CannotCopy(f"Pyodide {VERSION} has no package {name!r}")
        if name not in found:
            found.add(name)
            waiting.extend(packages[name]["depends"])
    return sorted(found)


def copy(distribution: Path, target: Path, wanted: list[str]) -> int:
    """Fill ``target`` and return the number of bytes. Raises CannotCopy and then writes nothing."""
    read = reader(distribution)
    lock = json.loads(read(LOCK))
    if lock["info"]["version"] != VERSION:
        raise CannotCopy(f"{distribution} is Pyodide {lock['info']['version']}; the cells are made for {VERSION}")
    names = with_dependencies(wanted, lock["packages"])
    lock["packages"] = {name: lock["packages"][name] for name in names}
    sums = CORE | {package["file_name"]: package["sha256"] for package in lock["packages"].values()}
    files = {name: read(name) for name in sums}
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != sums[name]:
            raise CannotCopy(f"{name} in {distribution} is damaged: its checksum differs; download it again")
    files[LOCK] = json.dumps(lock, separators=(",", ":")).encode()
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        old.unlink()
    for name, content in files.items():
        (target / name).write_bytes(content)
    return sum(map(len, files.values()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("distribution", type=Path, help=f"pyodide-{VERSION}.tar.bz2 or a folder with its contents")
    parser.add_argument(
        "--target", type=Path, default=Path(__file__).parents[1] / "book" / "pyodide", help="default: book/pyodide"
    )
    parser.add_argument("--packages", nargs="+", default=["numpy", "matplotlib"])
    asked = parser.parse_args()
    try:
        size = copy(asked.distribution, asked.target, asked.packages)
    except CannotCopy as reason:
        sys.exit(f"Nothing was copied: {reason}")
    print(f"{asked.target}: {size / 1e6:.0f} MB. Now set `pyodide_url: pyodide/` in _config.yml and build the book.")


if __name__ == "__main__":
    main()
