"""Run the book's chapters with other seeds and say which of their claims hold.

    python tools/replicate.py --seeds 11 --seeds 12 self-attention

A chapter takes its seeds from ``seeds`` and ``seeded`` of its set-up cell, which BOOK_SEEDS moves, and states what
its text claims with ``claim``. Without names all chapters run, without --seeds the number of a set is drawn. Chapters
run in kernels of their own, beside the book's cache and not through it; nothing is kept. The exit code is 1 if a claim
did not hold or a chapter did not come to its end, 2 if a named chapter does not exist, 130 after Ctrl-C, when the
table has what was found so far.
"""

from __future__ import annotations

import json
import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import click
import jupytext
import yaml
from jupyter_client.manager import start_new_kernel

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Outcome:
    """One claim under one set of seeds, or the end of a chapter that broke off."""

    chapter: str
    seeds: int
    claim: str
    held: bool
    found: str = ""


class Run:
    """One chapter under one set of seeds. ``outcomes`` has what was noted, also after an interruption."""

    def __init__(self, chapter: Path, seeds: int, notes: Path):
        self.chapter, self.seeds, self.notes = chapter, seeds, notes
        self.broke_off = ""

    def go(self, timeout: float) -> None:
        """Execute the chapter up to its end or its first error; a cell may take ``timeout`` seconds."""
        cells = [cell for cell in jupytext.read(self.chapter, fmt="md:myst").cells if cell.cell_type == "code"]
        moved = {**os.environ, "BOOK_SEEDS": str(self.seeds), "BOOK_CLAIMS": str(self.notes)}
        started = monotonic()
        manager, kernel = start_new_kernel(
            env=moved, cwd=str(self.chapter.parent), extra_arguments=["--log-level=ERROR"]
        )
        try:
            for number, cell in enumerate(cells, 1):
                at = f"cell {number} of {len(cells)}"
                tell(f"{self.chapter.stem}, seeds {self.seeds}: {at}, {monotonic() - started:.0f} s")
                reply = kernel.execute_interactive(cell.source, timeout=timeout, output_hook=lambda _: None)["content"]
                if reply["status"] != "ok":
                    self.broke_off = f"breaks off in {at}: {reply['ename']}: {reply['evalue']}"
                    return
        except TimeoutError:
            self.broke_off = f"breaks off in {at}: it takes more than {timeout:.0f} s"
        finally:
            kernel.stop_channels()
            manager.shutdown_kernel(now=True)

    def outcomes(self) -> Iterator[Outcome]:
        name = self.chapter.stem
        if self.notes.is_file():
            for line in self.notes.read_text(encoding="utf-8").splitlines():
                claim, held, found = json.loads(line)
                yield Outcome(name, self.seeds, claim, held, found)
        if self.broke_off:
            yield Outcome(name, self.seeds, self.broke_off, False)


def tell(progress: str) -> None:
    """Show how far a run is: one line that changes, or none where nobody looks."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{progress}", end="", file=sys.stderr, flush=True)


def numbered(toc: Path) -> list[str]:
    """The names of the numbered chapters."""
    parts = yaml.safe_load(toc.read_text(encoding="utf-8"))["parts"]
    return [chapter["file"] for part in parts if part.get("numbered") for chapter in part["chapters"]]


def table(outcomes: list[Outcome]) -> str:
    """A line for each claim; one that did not hold is marked, with what was found."""
    width = max((len(outcome.chapter) for outcome in outcomes), default=0)
    lines = []
    for one in outcomes:
        mark = "held     " if one.held else "NOT HELD "
        found = " ".join(one.found.split())
        lines.append(f"{mark}{one.chapter:{width}}  seeds {one.seeds}  {one.claim}  {found}".rstrip())
    return "\n".join(lines)


@click.command(help=__doc__.splitlines()[0])
@click.argument("names", nargs=-1)
@click.option("--seeds", multiple=True, type=click.IntRange(0), help="A set of seeds; may be given several times.")
@click.option("--book", type=click.Path(path_type=Path), default=ROOT / "book", help="The chapters' folder.")
@click.option("--timeout", default=1200.0, help="Seconds that one cell may take.")
def main(names: tuple[str, ...], seeds: tuple[int, ...], book: Path, timeout: float) -> None:
    names = names or tuple(numbered(book.parent / "_toc.yml"))
    missing = [name for name in names if not (book / f"{name}.md").is_file()]
    if missing:
        raise click.UsageError(f"no chapter {', '.join(missing)} in {book}")
    outcomes: list[Outcome] = []
    without: set[str] = set()
    interrupted = False
    with TemporaryDirectory() as folder:
        for number, (chosen, name) in enumerate((s, n) for s in seeds or (random.randint(1, 9999),) for n in names):
            run = Run(book / f"{name}.md", chosen, Path(folder) / str(number))
            try:
                run.go(timeout)
            except KeyboardInterrupt:
                interrupted = True
            tell("")
            new = list(run.outcomes())
            outcomes += new
            if not new and not interrupted:
                without.add(name)
            else:
                print(table(new), flush=True)
            if interrupted:
                break
    failed = [outcome for outcome in outcomes if not outcome.held]
    print(f"\n{len(outcomes) - len(failed)} of {len(outcomes)} claims held.")
    if without:
        print(f"No claims yet: {', '.join(sorted(without))}.")
    if failed:
        print(f"\n{table(failed)}")
    if interrupted:
        print("Interrupted: the rest was not run.")
        sys.exit(130)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
