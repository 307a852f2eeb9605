"""What the tests of live cells need to know about a page: its cells, and what is published under them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from bs4 import BeautifulSoup

NUMBER = re.compile(r"-?\d[\d,.]*(?:e[+-]?\d+)?")
SCIENTIFIC = re.compile(r"-?\d+(?:\.\d+)?e[+-]\d+")


@dataclass(frozen=True)
class LivePageCell:
    """A cell that runs in the browser. ``number`` is None for what readers do not see."""

    number: int | None
    code: str
    printed: str = ""
    figures: int = 0
    timing: bool = False

    @property
    def name(self) -> str:
        return f"cell {self.number}" if self.number else "cell of the page’s set-up"

    def agrees(self, printed: str) -> bool:
        """Whether this is what is published.

        Numbers below 1e-12 are rounding noise, which depends on the machine, and all count as zero. Of a cell tagged
        ``timing`` the numbers may differ, not the words.
        """
        return self._comparable(self.printed) == self._comparable(printed)

    def _comparable(self, text: str) -> str:
        if self.timing:
            return " ".join(NUMBER.sub("#", text).split())
        return SCIENTIFIC.sub(lambda number: "~0" if abs(float(number[0])) < 1e-12 else number[0], text).strip()


def live_cells(soup: BeautifulSoup) -> list[LivePageCell]:
    """The cells of a built page in the order in which they run; empty where the page has none."""
    data = soup.find(id="live-cells-data")
    cells = []
    for position, cell in enumerate(json.loads(data.string)["cells"] if data else []):
        if "number" not in cell:
            cells.append(LivePageCell(None, cell["code"]))
            continue
        shown = soup.find(class_="live-bar", attrs={"data-cell": str(position)}).find_parent("div", class_="cell")
        streams = shown.select(".cell_output .output.stream pre")
        cells.append(
            LivePageCell(
                number=cell["number"],
                code=shown.select_one(".cell_input pre").get_text().removesuffix("\n"),
                printed="".join(stream.get_text() for stream in streams),
                figures=len(shown.select(".cell_output img")),
                timing="tag_timing" in shown["class"],
            )
        )
    return cells
