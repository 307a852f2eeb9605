"""What a reader's browser loads for each page of the book, and what Lighthouse says about it.

    python benchmarks/site.py [--lighthouse] [--page self-attention]

Serves ``_build/html`` as a host would (compressed), opens each page in Chromium with an empty cache and counts the
bytes that were sent, MathJax and its fonts included. With ``--lighthouse`` it runs Lighthouse's desktop settings on
each page too; for this ``lighthouse`` must be on the PATH, or ``npx`` and a network to fetch it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
sys.path.append(str(ROOT / "tests" / "helpers"))

from browsers import PROGRAMS, launched  # noqa: E402
from site_server import serving  # noqa: E402
from site_weight import weight  # noqa: E402

CATEGORIES = ("performance", "accessibility", "best-practices", "seo")
CHROME_FLAGS = "--headless=new --no-sandbox --disable-gpu"


def lighthouse_program() -> list[str]:
    """How to start Lighthouse; ends the program with a sentence where it cannot be."""
    if shutil.which("lighthouse"):
        return ["lighthouse"]
    if shutil.which("npx"):
        return ["npx", "--yes", "lighthouse@13"]
    sys.exit("Lighthouse needs Node.js: install it (it brings npx), or leave out --lighthouse")


def lighthouse(program: list[str], address: str) -> dict[str, float]:
    """The scores of one page, from 0 to 1, and the audits that lost points for accessibility."""
    chrome = os.environ.get("CHROME_PATH") or next((path for path in PROGRAMS if os.path.exists(path)), "")
    options = ["--preset=desktop", "--output=json", "--quiet", f"--chrome-flags={CHROME_FLAGS}"]
    done = subprocess.run(
        [*program, address, *options, f"--only-categories={','.join(CATEGORIES)}"],
        capture_output=True,
        text=True,
        env={**os.environ, "CHROME_PATH": chrome},
        check=False,
    )
    if done.returncode:
        sys.exit(f"Lighthouse failed on {address}:\n{done.stderr[-2000:]}")
    report = json.loads(done.stdout)
    for category in report["categories"].values():
        for ref in category["auditRefs"]:
            audit = report["audits"][ref["id"]]
            if ref["weight"] and audit["score"] is not None and audit["score"] < 0.9:
                print(f"    {category['id']}: {audit['title']} {audit.get('displayValue', '')}", file=sys.stderr)
    return {name: report["categories"][name]["score"] for name in CATEGORIES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lighthouse", action="store_true", help="run Lighthouse on each page, too")
    parser.add_argument("--page", action="append", help="only this page; may be given several times")
    arguments = parser.parse_args()
    if not (HTML / "index.html").is_file():
        sys.exit("There is no book in _build/html; run `make book` first")
    known = {path.relative_to(HTML).with_suffix("").as_posix() for path in HTML.rglob("*.html")}
    known = sorted(name for name in known if not name.startswith("_"))
    for name in arguments.page or ():
        if name not in known:
            sys.exit(f"The book has no page {name!r}; it has {', '.join(known)}")
    program = lighthouse_program() if arguments.lighthouse else []
    with serving(HTML) as address:
        rows = {}
        with sync_playwright() as playwright:
            browser = launched(playwright)
            for name in arguments.page or known:
                context = browser.new_context(viewport={"width": 1280, "height": 900})  # its cache is empty
                rows[name] = weight(context.new_page(), f"{address}{name}.html")
                context.close()
            browser.close()
        kinds = ("document", "stylesheet", "script", "image", "font")
        scores = "".join(f"{name[:14]:>16}" for name in CATEGORIES) if program else ""
        print(f"{'kB sent':<24}{'all':>8}" + "".join(f"{kind[:8]:>10}" for kind in kinds) + scores)
        for name, sent in rows.items():
            line = f"{name[:24]:<24}{sum(sent.values()) / 1000:>8.0f}"
            line += "".join(f"{sent.get(kind, 0) / 1000:>10.0f}" for kind in kinds)
            print(line, end="", flush=True)
            if program:
                found = lighthouse(program, f"{address}{name}.html")
                print("".join(f"{found[name]:>16.2f}" for name in CATEGORIES), end="")
            print(flush=True)


if __name__ == "__main__":
    main()
