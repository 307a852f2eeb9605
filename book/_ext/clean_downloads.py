"""Sphinx extension: every chapter can be downloaded as a notebook that reads like a notebook.

MyST-NB leaves the executed chapter in ``jupyter_execute``, but its text still holds MyST's roles and
directives, which Jupyter shows as raw markup. This extension writes a plain version beside the page's
source (``_sources/<page>.ipynb``): glued numbers are filled in, admonitions become quotations, hidden
solutions fold away, labels disappear, outputs are left out. The theme then offers the file for download.
"""

from __future__ import annotations

import json
import re
from ast import literal_eval
from pathlib import Path

import nbformat
from pybtex.database import parse_file
from sphinx.application import Sphinx

LABEL = re.compile(r"^\([\w-]+\)=[ ]*$", re.M)
EQUATION_LABEL = re.compile(r"^\$\$[ ]*\([\w-]+\)[ ]*$", re.M)
TARGET_ROLE = re.compile(r"\{(?:ref|numref|doc|download|eq|prf:ref)\}`([^`]*)`")
TERM = re.compile(r"\{term\}`([^`<]*?)\s*(?:<[^`>]*>)?`")
FILE = re.compile(r"\{download\}`[^`]*<([^`<>]+)>`")
CITATION = re.compile(r"\{cite:([tp])\}`([^`]*)`")
GLUED = re.compile(r"\{glue:text\}`([^`:]+)(?::([^`]*))?`")
OTHER_ROLE = re.compile(r"\{[a-z][\w:-]*\}(`[^`]*`)")
FENCE = re.compile(r"^(?P<fence>:{3,}|`{3,})\{(?P<kind>[\w:-]+)\}[ ]*(?P<title>.*)$")
OPTION = re.compile(r"^:[\w-]+:.*$")


def plain_markdown(text: str, glued: dict[str, str], works: dict[str, str]) -> str:
    """Return ``text`` without MyST's own syntax.

    ``glued`` maps names to the text/plain of their values, ``works`` citation keys to "Author, year".
    Raises KeyError for a glued name or a work that does not exist.
    """
    text = EQUATION_LABEL.sub("$$", LABEL.sub("", text))
    text = CITATION.sub(lambda match: _cited(match[1], match[2].split(","), works), text)
    text = GLUED.sub(lambda match: _formatted(glued[match[1]], match[2]), text)
    text = TARGET_ROLE.sub(lambda match: _target_text(match[1]), text)
    text = TERM.sub(r"\1", text)
    text = OTHER_ROLE.sub(r"\1", text)
    return re.sub(r"\n{3,}", "\n\n", _without_directives(text.splitlines())).strip("\n")


def cited_works(bibliography: Path) -> dict[str, str]:
    """Map each key of a BibTeX file to "Author and Author, year" (three or more: "Author et al., year")."""
    works = {}
    for key, entry in parse_file(str(bibliography)).entries.items():
        names = [" ".join(person.last_names) for person in entry.persons["author"]]
        short = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
        works[key] = f"{short}, {entry.fields['year']}"
    return works


def _cited(kind: str, keys: list[str], works: dict[str, str]) -> str:
    # theme_fixes.py has put the page's name in front of each key
    found = [works[key.strip().split("--")[-1]] for key in keys]
    if kind == "p":
        return f"({'; '.join(found)})"
    return " and ".join(re.sub(r", (\d{4})$", r" (\1)", work) for work in found)


def _formatted(plain: str, spec: str | None) -> str:
    try:
        value = literal_eval(plain)
    except (SyntaxError, ValueError):
        value = plain  # not a Python literal: its text is what the book shows
    return format(value, spec) if spec else str(value)


def _target_text(target: str) -> str:
    """'what the reader sees <where-it-points>' or a bare label, which is made readable."""
    titled = re.fullmatch(r"(.*?)\s*<[^>]*>", target, re.S)
    return titled[1] if titled else target.replace("-", " ")


def _without_directives(lines: list[str]) -> str:
    """Turn directives into plain Markdown, innermost ones through recursion."""
    out: list[str] = []
    position = 0
    while position < len(lines):
        opening = FENCE.match(lines[position])
        if opening is None:
            out.append(lines[position])
            position += 1
            continue
        fence = opening["fence"]
        end = position + 1
        while end < len(lines) and lines[end].rstrip() != fence:
            end += 1
        body = lines[position + 1 : end]
        while body and OPTION.match(body[0]):
            body.pop(0)
        out.extend(["", *_rendered(opening["kind"], opening["title"].strip(), body), ""])
        position = end + 1
    return "\n".join(out)


def _rendered(kind: str, title: str, body: list[str]) -> list[str]:
    inner = _without_directives(body).strip("\n").splitlines()
    if kind in ("bibliography", "tableofcontents", "live-figure"):
        return []
    if kind == "math":
        return ["$$", *inner, "$$"]
    if kind in ("figure", "image"):
        return [f"*{' '.join(inner)}*"] if inner else []
    if kind.startswith("solution"):
        return ["<details><summary><b>Solution</b></summary>", "", *inner, "", "</details>"]
    if kind.startswith("exercise"):
        return [f"**Exercise{': ' + title if title else ''}**", "", *inner]
    if "dropdown" in kind:
        return [f"<details><summary><b>{title}</b></summary>", "", *inner, "", "</details>"]
    heading = title or kind.split(":")[-1].capitalize()
    return [f"> **{heading}**", ">", *(f"> {line}".rstrip() for line in inner)]


def plain_notebook(
    executed: Path, glue_file: Path, works: dict[str, str], files_at: str | None = None
) -> nbformat.NotebookNode:
    """Read an executed chapter and return the notebook offered for download.

    Where the address of a folder with the chapters' files is known, a cell fetches those which the text names.
    """
    notebook = nbformat.read(executed, as_version=4)
    records = json.loads(glue_file.read_text(encoding="utf-8")) if glue_file.is_file() else {}
    glued = {name: record["data"].get("text/plain", "") for name, record in records.items()}
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    cells = []
    for cell in notebook.cells:
        wanted: list[str] = []
        if cell.cell_type == "markdown":
            wanted = [Path(path).name for path in FILE.findall(cell.source)]
            cell.source = plain_markdown(cell.source, glued, works)
        elif cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            tags = set(cell.metadata.get("tags", []))
            cell.metadata = nbformat.from_dict({})
            if tags & {"hide-input", "remove-input", "hide-cell", "remove-cell"}:
                cell.metadata["jupyter"] = {"source_hidden": True}
        if cell.source.strip():
            cells.append(cell)
        if wanted and files_at:
            cells.append(nbformat.v4.new_code_cell(fetching(wanted, files_at)))
    notebook.cells = cells
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"  # the reader draws ids: the same sources should give the same file
    return notebook


def fetching(names: list[str], files_at: str) -> str:
    """Code that fetches the files which are not there yet."""
    return "\n".join(
        [
            "# The files that this page needs, if they do not lie beside the notebook.",
            "from pathlib import Path",
            "from urllib.request import urlretrieve",
            "",
            f"for name in {names!r}:",
            "    if not Path(name).is_file():",
            f'        urlretrieve("{files_at}/" + name, name)',
        ]
    )


def files_address(options: dict) -> str | None:
    """Where the branch with the notebooks serves its files, if the book says where its repository is."""
    repository = re.fullmatch(r"https://github\.com/([\w.-]+/[\w.-]+?)/?", options.get("repository_url") or "")
    branch = options.get("repository_branch")
    return f"https://raw.githubusercontent.com/{repository[1]}/{branch}" if repository and branch else None


def executed_page(app: Sphinx, pagename: str, doctree) -> Path | None:
    """The executed notebook of a page that has one."""
    executed = Path(app.outdir).parent / "jupyter_execute" / f"{pagename}.ipynb"
    return executed if app.builder.format == "html" and doctree is not None and executed.is_file() else None


def offer_notebook(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Tell the theme that the page has a download."""
    if executed_page(app, pagename, doctree):
        context["ipynb_source"] = f"{pagename}.ipynb"


def write_notebook(app: Sphinx, pagename: str, templatename: str, context: dict, doctree) -> None:
    """Write the download."""
    executed = executed_page(app, pagename, doctree)
    if executed is None:
        return
    works = cited_works(Path(app.srcdir) / "references.bib")
    glue_file = executed.with_suffix(".glue.json")
    notebook = plain_notebook(executed, glue_file, works, files_address(app.config.html_theme_options))
    target = Path(app.outdir) / "_sources" / f"{pagename}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, target)


def setup(app: Sphinx) -> dict:
    # before the theme (501) turns ipynb_source into a button
    app.connect("html-page-context", offer_notebook, priority=400)
    # after it: with launch buttons it puts the executed notebook in the same place
    app.connect("html-page-context", write_notebook, priority=600)
    return {"version": "1.0", "parallel_read_safe": True, "parallel_write_safe": True}
