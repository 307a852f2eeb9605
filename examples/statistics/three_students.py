"""Hands in for three made-up students, from the released notebook: all right, two typical mistakes, and nothing.

python three_students.py   writes submitted/STUDENT/garden-birds/ beside this file; `autograder release` comes before
"""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

HERE = Path(__file__).parent
SET = "garden-birds"
STUB = "# YOUR CODE HERE\n    raise NotImplementedError()"
RIGHT = {
    "group-means": "return table.groupby(group)[value].mean()",
    "missing": "return table.isnull().sum() / len(table)",
    "district": 'return counts.join(gardens.set_index("garden"), on="garden")',
}
MISTAKEN = {
    "group-means": "return table.fillna(0).groupby(group)[value].mean()",
    "missing": RIGHT["missing"],
    "district": "return pd.merge(counts, gardens)",
}
CLASS = {"ada": RIGHT, "bob": MISTAKEN, "eve": {}}


def main() -> None:
    released = HERE / "assignments" / SET
    for student, answers in CLASS.items():
        place = HERE / "submitted" / student / SET
        shutil.copytree(released, place, dirs_exist_ok=True)
        notebook = nbformat.read(place / f"{SET}.ipynb", as_version=4)
        for cell in notebook.cells:
            cell.source = cell.source.replace('"..."', f'"{student}"').replace(STUB, answers.get(cell.id, STUB))
        nbformat.write(notebook, place / f"{SET}.ipynb")


if __name__ == "__main__":
    main()
