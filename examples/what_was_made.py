"""The last lines of `make course`: what was made, and how to look at it."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent


def counted(folder: Path, pattern: str) -> int:
    return sum(1 for _ in folder.glob(pattern))


def main() -> None:
    feedback = HERE / "feedback"
    notebooks, pages = counted(ROOT / "assignments", "*/*.ipynb"), counted(feedback, "*/*/*.html")
    lines = [
        ("the book", ROOT / "_build" / "html" / "index.html", "make serve, then http://localhost:8000"),
        (
            "the released sets",
            ROOT / "assignments",
            f"{counted(ROOT / 'assignments', '*/*.ipynb')} notebooks for students",
        ),
        (
            "feedback",
            feedback,
            f"{counted(feedback, '*/*/*.html')} pages; open one in a browser, for example in {shown.name}",
        ),
        ("the class report", HERE / "report" / "index.html", "open it in a browser"),
        ("scores as they must be", HERE / "expected.csv", "a test holds the grader to them"),
    ]
    print("\nMade:")
    for what, path, how in lines:
        print(f"  {what:<24}{path.relative_to(ROOT)}  ({how})")


if __name__ == "__main__":
    main()
