"""The last lines of `make course`: what was made, and how to look at it."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent


def counted(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.glob(pattern))


def main() -> None:
    notebooks = counted(ROOT / "assignments", "*/*.ipynb")
    pages = counted(HERE / "feedback", "*/*/*.html")
    lines = [
        ("the book", "_build/html/index.html", "make serve, then http://localhost:8000"),
        ("the released sets", "assignments/", f"{notebooks} notebooks for students"),
        ("feedback", "examples/feedback/", f"{pages} pages, one for each student; try student-05 or student-11"),
        ("the class report", "examples/report/index.html", "open it in a browser"),
        ("another subject", "examples/statistics/", "a set with pandas; feedback/bob/ names two mistakes"),
        ("what each must score", "examples/expected.csv", "a test holds the grader to it"),
    ]
    print("\nMade:")
    for what, path, how in lines:
        print(f"  {what:<22}{path:<28}{how}")


if __name__ == "__main__":
    main()
