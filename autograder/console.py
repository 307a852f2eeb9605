"""What commands print on: two consoles that take what they are given for plain text, and a bar."""

from __future__ import annotations

from functools import partial
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from autograder.text import clean


class _Console(Console):
    def render_str(self, text: str, *args: Any, **kwargs: Any) -> Text:
        """As Console's: every text that is printed passes here, also a table's."""
        return super().render_str(clean(text), *args, **kwargs)


_plain = partial(_Console, markup=False, emoji=False, highlight=False, soft_wrap=True)
out = _plain()
err = _plain(stderr=True)
if not out.is_terminal:
    out.width = max(out.width, 110)  # room for tables in a file or a log


def progress_bar(has_thread: bool = True) -> Progress:
    """Bars on stderr that vanish at their end. Without a thread to draw them, this process may fork."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    text = TextColumn("{task.description}", markup=False)
    return Progress(text, *columns, console=err, transient=True, auto_refresh=has_thread)
