"""The documents at the top say what is so: their paths, names, links, pictures and versions are those of the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path

import pytest
import yaml
from PIL import Image

from autograder.grading.pool import OWN_BYTES
from autograder.sandbox.launcher import Limits

ROOT = Path(__file__).resolve().parents[2]
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
DOCUMENTS = sorted(ROOT.glob("*.md"))
# a course folder holds these after a command has made them
MADE = {
    "submitted/",
    "autograded/",
    "results/",
    "feedback/",
    "report/",
    "_build/",
    "dropped/",
    "gradebook.db",
    "decisions.json",
    "records.csv",
    ".venv/",
}
TREE_LINE = re.compile(r"^(?P<indent> *)(?P<name>[\w./-]+)(?:  +| (?=the ))(?P<about>\S.*)$")
QUOTED = re.compile(r"`([^`\s]+)`")
LINK = re.compile(r"!?\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")


def tree() -> dict[str, str]:
    """The paths of ARCHITECTURE.md's tree and the sentence beside each."""
    block = ARCHITECTURE.split("```")[1].strip("\n")
    found: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for line in block.splitlines():
        match = TREE_LINE.match(line)
        assert match, f"not `name  what it is`: {line!r}"
        depth = len(match["indent"])
        above = [(at, name) for at, name in above if at < depth]
        found["".join(name for _, name in above) + match["name"]] = match["about"]
        above.append((depth, match["name"]))
    return found


def named(text: str) -> set[str]:
    """What stands between backticks and is a path of the repository, with `::name` where it has one."""
    words = {word.rstrip(",.;") for word in QUOTED.findall(text) if "<" not in word and "://" not in word}
    paths = {word for word in words if "/" in word.split("::")[0] or re.fullmatch(r"[\w.-]+\.(md|csv|cff|toml)", word)}
    return {path for path in paths if path.split("/")[0] + "/" not in MADE and path not in MADE}


@cache
def defined(path: Path) -> frozenset[str]:
    """Functions, classes and methods (`Class.method`) of a module."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef))
    return frozenset(found)


def test_the_tree_is_there_as_the_page_draws_it():
    missing = [path for path in tree() if not (ROOT / path).exists()]
    assert not missing
    folders = [path for path in tree() if (ROOT / path).is_dir() != path.endswith("/")]
    assert not folders, "a folder's name ends with a slash, a file's does not"


def test_every_package_and_top_level_folder_is_in_the_tree():
    packages = {f"{path.parent.relative_to(ROOT)}/" for path in (ROOT / "autograder").rglob("__init__.py")}
    assert packages <= tree().keys()
    hidden_or_made = {name for name in MADE if name.endswith("/")}
    top = {f"{path.name}/" for path in ROOT.iterdir() if path.is_dir() and path.name[0] not in "._"}
    top = {name for name in top if not name.startswith(("build/", "attention_by_hand.egg-info"))} - hidden_or_made
    assert top <= {f"{path.split('/')[0]}/" for path in tree()}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_names_exists(document):
    for word in named(document.read_text(encoding="utf-8")):
        path, _, name = word.partition("::")
        assert (ROOT / path).exists(), f"{document.name}: {path}"
        assert not name or name in defined(ROOT / path), f"{document.name}: {path} defines no {name}"


def test_the_limits_of_memory_are_those_of_the_code():
    of_submission, of_judging = Limits().memory_bytes >> 30, OWN_BYTES >> 30
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for said in (
        f"({of_submission} GiB where a set says nothing else",
        f"each has {of_judging} GiB of memory",
        f"a job can take about {of_judging + of_submission + 1} GiB at the most",
    ):
        assert said in text


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_and_pictures_lead_somewhere(document):
    text = document.read_text(encoding="utf-8")
    for match in LINK.finditer(text):
        target, _, anchor = match["target"].partition("#")
        if "://" in target:
            continue
        path = ROOT / target if target else document
        assert path.exists(), f"{document.name}: {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), flags=re.M)
            assert anchor in {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        if path.suffix == ".png":
            assert len(match["text"]) > 60, f"{target} needs words for those who cannot see it"
            assert path.stat().st_size <= 150_000
            with Image.open(path) as picture:
                assert picture.width >= 900


def test_the_citation_is_valid_and_of_this_version():
    """The fields that the Citation File Format 1.2.0 demands, and those it allows that stand here."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"cff-version", "message", "title", "authors"} <= citation.keys()
    assert citation.keys() <= {
        *("cff-version", "message", "title", "authors", "type", "abstract", "version", "license", "keywords"),
        *("date-released", "repository-code", "url"),
    }
    assert citation["cff-version"] == "1.2.0" and citation["type"] == "software"
    assert all(set(author) == {"name"} for author in citation["authors"])
    assert str(citation["version"]) == project["version"]
    assert citation["license"][0] == project["license"]
    assert f"## [{project['version']}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_hooks_of_a_commit_download_nothing():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert [repo["repo"] for repo in hooks["repos"]] == ["local"]
    for hook in hooks["repos"][0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"].startswith(".venv/bin/")
