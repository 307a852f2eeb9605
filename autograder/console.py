"""What commands print on: two consoles that read no markup and no emoji codes in what they are given, and a bar."""

from __future__ import annotations

from functools import partial

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_plain = partial(Console, markup=False, emoji=False, highlight=False, soft_wrap=True)
out = _plain()
err = _plain(stderr=True)
if not out.is_terminal:
    out.width = max(out.width, 110)  # room for tables in a file or a log


def progress_bar(has_thread: bool = True) -> Progress:
    """Bars on stderr that vanish at their end. Without a thread to draw them, this process may fork."""
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    text = TextColumn("{task.description}", markup=False)
    return Progress(text, *columns, console=err, transient=True, auto_refresh=has_thread)
