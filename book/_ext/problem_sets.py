"""Sphinx extension: a problem set's page takes its points, names and files from the released notebook.

`{set-facts} ps3-multi-head-attention` gives points, time, packages and a download of every released file, where
`_config.yml` has the address of a repository on GitHub also a link that opens the set in Colab, and

```{set-exercises} ps3-multi-head-attention
1: What exercise 1 asks, and where the chapter explains it.
2: The same for exercise 2.
```

the exercises, with what is to be handed in and its points. `{all-sets}` gives one table of sets; each of its lines is
`set: what it goes with`. Only `assignments/` is read, which holds no solution and no hidden test. An exercise without
a line, or a line without an exercise, is an error of the build.
"""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

RELEASED = "../assignments"  # seen from book/
TITLE = re.compile(r"^## Exercise (\d+): (.+?) \(([^()]*points?[^()]*)\)$", re.M)
TIME = re.compile(r"\bPlan\s+([a-z\s]+\shours?)\.")
NAME = re.compile(r"^(?:def|class) (\w+)|^# Bind (\w+)|^# (\w+) = ", re.M)
LINE = re.compile(r"^(\d+):[ ]+", re.M)
PACKAGES = {"numpy": "NumPy", "torch": "PyTorch", "matplotlib": "Matplotlib"}


class UnreadableSet(Exception):
    """A released notebook that does not have the form of a set; the message says where and what."""


@dataclass(frozen=True)
class Part:
    """Something to hand in: a function, class or variable, or a written answer (name is None)."""

    name: str | None
    points: float


@dataclass(frozen=True)
class Exercise:
    number: int
    title: str
    optional: bool
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class ProblemSet:
    """What a released notebook says about itself."""

    name: str
    title: str
    time: str
    packages: tuple[str, ...]
    exercises: tuple[Exercise, ...]
    files: tuple[str, ...]

    @property
    def total(self) -> float:
        return sum(part.points for exercise in self.exercises for part in exercise.parts)

    @property
    def written(self) -> float:
        return sum(part.points for exercise in self.exercises for part in exercise.parts if part.name is None)


def points(number: float) -> str:
    return f"{number:g} point" + ("" if number == 1 else "s")


def read_set(folder: Path) -> ProblemSet:
    """Read a released set. Raises UnreadableSet where something of the form is missing."""
    name = folder.name
    notebook = folder / f"{name}.ipynb"
    if not notebook.is_file():
        raise UnreadableSet(f"{name}: there is no {notebook.name} in assignments/{name}; run `make release`")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    title = re.search(r"^# Problem set \d+: (.+)$", _source(cells[0]), re.M)
    time = TIME.search(_source(cells[0]))
    if not title or not time:
        raise UnreadableSet(f'{name}: the first cell has no heading "# Problem set N: …" or no "Plan … hours."')
    exercises: list[Exercise] = []
    stub = ""
    for cell in cells:
        about = cell["metadata"].get("nbgrader", {})
        heading = TITLE.search(_source(cell)) if cell["cell_type"] == "markdown" else None
        if heading:
            exercises.append(Exercise(int(heading[1]), heading[2], "optional" in heading[3], ()))
        if about.get("solution"):
            stub = _source(cell)
        if about.get("grade"):
            if not exercises:
                raise UnreadableSet(f"{name}: cell {about['grade_id']} has points but stands before any exercise")
            part = Part(None if cell["cell_type"] == "markdown" else _bound(name, about, stub), about["points"])
            last = exercises.pop()
            exercises.append(Exercise(last.number, last.title, last.optional, (*last.parts, part)))
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    files.sort(key=lambda path: path != notebook.name)
    return ProblemSet(name, title[1], " ".join(time[1].split()), _packages(cells), tuple(exercises), tuple(files))


def _source(cell: dict) -> str:
    return "".join(cell["source"])


def _bound(name: str, about: dict, stub: str) -> str:
    found = NAME.search(stub)
    if found is None:
        raise UnreadableSet(f"{name}: the solution cell before {about['grade_id']} does not say what it should bind")
    return next(group for group in found.groups() if group)


def _packages(cells: list[dict]) -> tuple[str, ...]:
    used = set()
    for cell in cells:
        if cell["cell_type"] == "code":
            for node in ast.walk(ast.parse(_source(cell))):
                if isinstance(node, ast.Import):
                    used |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom) and node.module:
                    used.add(node.module.split(".")[0])
    return tuple(label for package, label in PACKAGES.items() if package in used)


def listed(items: list[str] | tuple[str, ...]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def in_colab(name: str, options: dict) -> str:
    """Where Colab opens the set, by the options of the book's theme; empty where nothing is configured."""
    colab = (options.get("launch_buttons") or {}).get("colab_url")
    if not colab:
        return ""
    repository = options["repository_url"].rstrip("/").removeprefix("https://github.com/")
    return f"{colab}/github/{repository}/blob/{options['repository_branch']}/{name}.ipynb"


def facts(found: ProblemSet, colab: str) -> str:
    """Points, time, packages, downloads and the link to Colab, if there is one, as MyST text."""
    by_hand = f", {found.written:g} for what you write in words, marked by a person" if found.written else ""
    downloads = [f"{{download}}`{file} <{RELEASED}/{found.name}/{file}>`" for file in found.files]
    alone = "" if len(downloads) > 1 else " It is the whole set: there are no data to download."
    opened = [f"Without installing anything\n: [Open the set in Colab]({colab})."] if colab else []
    return "\n\n".join(
        [
            f"Points\n: {found.total:g}: {found.total - found.written:g} from automatic tests{by_hand}.",
            f"Time\n: Plan {found.time}.",
            f"Packages\n: Python 3.11 or newer with {listed(found.packages)}.",
            f"Download\n: {listed(downloads)}.{alone}",
            *opened,
        ]
    )


def described(exercise: Exercise, asks: str) -> str:
    """An exercise as MyST text: a term and its definition."""
    worth = points(sum(part.points for part in exercise.parts)) + (", optional" if exercise.optional else "")
    several = len(exercise.parts) > 1
    named = [
        f"`{part.name}`" + (f" ({points(part.points)})" if several else "") for part in exercise.parts if part.name
    ]
    words = [points(part.points) for part in exercise.parts if part.name is None]
    if words:
        answers = "a written answer" if len(words) == 1 else f"{len(words)} written answers"
        named.append(f"{answers} ({' + '.join(words) + ', ' if several else ''}marked by a person)")
    text = " ".join(asks.split())
    return f"Exercise {exercise.number}: {exercise.title} ({worth})\n: {text}\n\n  *Hand in:* {listed(named)}."


class FromReleased(SphinxDirective):
    """What both directives share: reading released sets, and turning text into the page."""

    has_content = True

    def read(self, name: str) -> ProblemSet:
        folder = Path(self.env.srcdir) / RELEASED / name
        self.env.note_dependency(str((folder / f"{name}.ipynb").resolve()))
        try:
            return read_set(folder)
        except UnreadableSet as error:
            raise self.error(str(error)) from error

    def parsed(self, text: str) -> list[nodes.Node]:
        holder = nodes.container()
        self.state.nested_parse(text.splitlines(), self.content_offset, holder)
        return holder.children


class SetFacts(FromReleased):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        return self.parsed(facts(self.read(name), in_colab(name, self.config.html_theme_options)))


class SetExercises(FromReleased):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        found = self.read(self.arguments[0])
        pieces = LINE.split("\n".join(self.content))[1:]
        asks = {int(number): text for number, text in zip(pieces[::2], pieces[1::2], strict=True)}
        there = [exercise.number for exercise in found.exercises]
        if sorted(asks) != there:
            raise self.error(f"{found.name} has the exercises {there}; its page describes {sorted(asks)}")
        return self.parsed("\n\n".join(described(exercise, asks[exercise.number]) for exercise in found.exercises))


class AllSets(FromReleased):
    def run(self) -> list[nodes.Node]:
        rows = ["| set | points | in words | time | goes with |", "|---|---|---|---|---|"]
        for line in self.content:
            name, chapter = (part.strip() for part in line.split(":", 1))
            found = self.read(name)
            rows.append(
                f"| {{doc}}`{found.title} <{name}>` | {found.total:g} | {found.written:g} | {found.time} | {chapter} |"
            )
        return self.parsed("\n".join(rows))


def setup(app: Sphinx) -> dict:
    app.add_directive("set-facts", SetFacts)
    app.add_directive("set-exercises", SetExercises)
    app.add_directive("all-sets", AllSets)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
