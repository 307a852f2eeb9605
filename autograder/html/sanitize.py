"""What the feedback and the report share: turning hostile text and pictures into safe, self-contained HTML.

Everything a student supplies (source, outputs, names) passes through here. The rules:

- text is escaped by Jinja's autoescape or by the functions below, which return `Markup` only for what they built;
- Markdown is rendered with raw HTML escaped and then cleaned again by bleach: two independent locks;
- of pictures only PNG is let through, decoded and looked at, and encoded again by us;
- sizes are capped, and a cap leaves a remark, so that nothing disappears in silence.
"""

from __future__ import annotations

import base64
import contextlib
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import bleach.sanitizer
import jinja2
import mistune
from markupsafe import Markup, escape
from nbconvert.filters.ansi import ansi2html
from nbconvert.filters.highlight import Highlight2HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder import files
from autograder.errors import AutograderError
from autograder.text import clean as clean

REASON_CHARACTERS = 2_000  # longest reason, note or event that is shown in full
MARKDOWN_CHARACTERS = 20_000  # longest Markdown cell that is rendered; a longer one is shown as plain text
MARKDOWN_LINES = 1_000  # most lines of a cell that is rendered: looking for tables takes the square of their number
HIGHLIGHT_CHARACTERS = 30_000  # longest code cell that is highlighted; a longer one is shown as plain text
SHOWN_CHARACTERS, SHOWN_OUTPUTS = 200_000, 500  # of a notebook in formgrader; some 20 characters take a millisecond
COLOURED_TOKENS = 20_000  # of its code: each is a `span`, and four of them take a millisecond to colour and to clean
PICTURE_BYTES = 3_000_000
PICTURE_SIDE = 8_000  # longest side in pixels: a small file can hold a picture that fills the reader's memory

_PNG = b"\x89PNG\r\n\x1a\n"


def shorten(text: str, limit: int) -> tuple[str, int]:
    """The first and last part of `text` when it is longer than `limit`, and how many characters were left out."""
    if len(text) <= limit:
        return text, 0
    tail = limit // 5
    left_out = len(text) - limit
    return f"{text[: limit - tail]}\n[… {left_out:,} characters left out …]\n{text[-tail:]}", left_out


def number(value: float | None, digits: int = 2) -> str:
    """`value` without superfluous zeros: 14, 14.5, 0.33; a dash for None."""
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text.replace("-", "−")


def amount(value: float, word: str) -> str:
    """`1 point`, `2.5 points`."""
    return f"{number(value)} {word}" if value == 1 else f"{number(value)} {word}s"


def percent(share: float | None) -> str:
    """A share as whole per cent, a dash for None."""
    return "–" if share is None else f"{100 * share:.0f} %"


def seconds(value: float | None) -> str:
    """A duration for people: 0.4 s, 12 s, 3 min 5 s."""
    if value is None:
        return "–"
    if value < 10:
        return f"{value:.1f} s" if value >= 0.05 else f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.0f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def prose(text: str) -> Markup:
    """A sentence by the grader: escaped, `names in backticks` as code, line breaks kept, length capped."""
    text = str(escape(clean(shorten(text, REASON_CHARACTERS)[0])))
    # A backtick without a partner stays what it is.
    return Markup(re.sub("`([^`]*)`", r"<code>\1</code>", text).replace("\n", "<br>"))


# At each line Pygments looks through all white space that follows for a docstring: the square of its length.
_MUCH_SPACE = re.compile(r"\n\s{400}")
_TOKENS = re.compile(r"\w+|[^\w\s]")
_UNCOLOURED = "autograder_uncoloured"
_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_FORMATTER = HtmlFormatter(nowrap=True)


@lru_cache(maxsize=64)
def code(source: str, lines: tuple[int, ...] = ()) -> Markup:
    """Python source as highlighted HTML (the inside of a `pre`), these lines marked; very long source stays plain."""
    source = clean(source)
    formatter = HtmlFormatter(nowrap=True, hl_lines=lines) if lines else _FORMATTER
    return Markup(highlight(source, _LEXER, formatter)) if _is_cheap(source) else escape(source)


def _is_cheap(source: str) -> bool:
    return len(source) <= HIGHLIGHT_CHARACTERS and not _MUCH_SPACE.search(source)


def highlighted(source: str, language: str = "ipython3", metadata: Any = None) -> str:
    """nbconvert's filter `highlight_code`, except that source whose colours would cost too much stays plain."""
    if _is_cheap(source) and _UNCOLOURED not in (metadata or {}):
        return str(Highlight2HTML(pygments_lexer="ipython3")(source, language, metadata))
    return Markup('<div class="highlight"><pre>{}</pre></div>').format(clean(source))


# Each alternative stops at the next escape character, so that the scan is linear in hostile text too.
_ESCAPES = re.compile(
    r"\x1b\[(?P<sgr>[0-9;:]*)m"
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"
    r"|\x1b[ -/]*[0-~]?"
)


def overwritten(text: str) -> str:
    """`text` as a terminal shows it: what stands before a carriage return is overwritten (progress bars)."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def terminal(text: str) -> Markup:
    """Terminal text as HTML: colours become nbconvert's classes, every other escape sequence and control is dropped."""
    coloured = _ESCAPES.sub(lambda m: "" if m["sgr"] is None else m[0].replace(":", ";"), overwritten(text))
    try:
        html = ansi2html(coloured)
    except IndexError:  # nbconvert's, where a sequence ends before it names its colour
        html = escape(_ESCAPES.sub("", coloured))
    # Colours beyond the terminal's sixteen come as styles, and are no part of the page's palette.
    return Markup(clean(re.sub(' style="[^"]*"', "", html)))


def bound(cells: Iterable[Any]) -> None:
    """Cut what the cells of one notebook take too long to show: formgrader's server does nothing else meanwhile."""
    left, outputs_left, tokens_left = SHOWN_CHARACTERS, SHOWN_OUTPUTS, COLOURED_TOKENS

    def cut(text: str) -> str:
        nonlocal left
        text = shorten(text, max(left, 100))[0]
        left -= len(text)
        return text

    for cell in cells:
        cell.source = cut(cell.source)
        if cell.cell_type == "code":
            tokens_left -= len(_TOKENS.findall(cell.source))
            if tokens_left < 0:
                cell.metadata[_UNCOLOURED] = True
            del cell.outputs[outputs_left:]
            outputs_left -= len(cell.outputs)
        for output in cell.get("outputs", ()):
            if "text" in output:
                output.text = cut(output.text)
            if "traceback" in output:
                output.traceback = [cut("\n".join(output.traceback))]
            if "text/plain" in output.get("data", ()):
                output.data["text/plain"] = cut(output.data["text/plain"])


class _Markdown(mistune.HTMLRenderer):
    """Headings without heading level (the page has its own), no pictures, links that tell nobody where from."""

    def heading(self, text: str, level: int, **attrs: Any) -> str:
        return f"<p><strong>{text}</strong></p>\n"

    def image(self, text: str, url: str, title: str | None = None) -> str:
        # A picture from elsewhere would be a request to elsewhere; pictures inside the notebook follow below the text.
        return f"[picture: {escape(Markup(text).striptags())}]" if text else "[picture]"

    def link(self, text: str, url: str, title: str | None = None) -> str:
        if not url.lower().startswith(("http://", "https://", "mailto:")):
            return text  # a relative link leads nowhere from here, and every other scheme is not wanted
        return f'<a href="{self.safe_url(url)}" rel="noopener noreferrer nofollow">{text}</a>'

    # No script typesets the mathematics, so that it stays as it was typed.
    def block_math(self, text: str) -> str:
        return f'<div class="math">$${escape(text)}$$</div>\n'

    def inline_math(self, text: str) -> str:
        return f'<span class="math">${escape(text)}$</span>'


_TAGS = {"a", "p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "span", "div"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "a":
        return name == "href" or (name, value) == ("rel", "noopener noreferrer nofollow")
    return tag in ("span", "div") and (name, value) == ("class", "math")


_render = mistune.create_markdown(renderer=_Markdown(escape=True), plugins=["table", "strikethrough", "math"])
_cleaner = bleach.sanitizer.Cleaner(tags=_TAGS, attributes=_allowed, protocols={"http", "https", "mailto"}, strip=False)


_FOLD = re.compile(r"^<details><summary>([^<\n]*)</summary>$|^</details>$", re.M)  # a hint in a task


@lru_cache(maxsize=64)
def markdown(text: str) -> Markup:
    """Markdown as clean HTML, folds shown open; mathematics stays text; too long or too deep stays plain."""
    text = _FOLD.sub(lambda fold: f"**{fold[1]}**" if fold[1] else "", clean(text))
    if len(text) <= MARKDOWN_CHARACTERS and text.count("\n") <= MARKDOWN_LINES:
        # Nested hundreds of levels deep it is nobody's answer, but it must not stop the class.
        with contextlib.suppress(RecursionError):
            return Markup(_cleaner.clean(str(_render(text))))
    return Markup('<pre tabindex="0">{}</pre>').format(text)


def inline(text: str) -> Markup:
    """One paragraph of Markdown without the paragraph's own tags, to stand in a label."""
    return Markup(str(markdown(text)).strip().removeprefix("<p>").removesuffix("</p>"))


class BadPicture(ValueError):
    """A picture that is not shown; the message says why, as the rest of "a picture is not shown: …"."""


def checked_png(data: str) -> tuple[str, int, int]:
    """Base64 of a PNG, decoded, looked at and encoded again, with its width and height in pixels.

    Raises BadPicture when it is not base64, not a whole PNG, or too large.
    """
    text = "".join(data.split())
    if len(text) * 3 // 4 > PICTURE_BYTES:
        raise BadPicture(f"it is larger than {PICTURE_BYTES / 1e6:g} MB")
    try:
        raw = base64.b64decode(text, validate=True)
    except ValueError as error:
        raise BadPicture("its data are damaged") from error
    if not raw.startswith(_PNG) or raw[8:16] != b"\x00\x00\x00\rIHDR" or len(raw) < 33:
        raise BadPicture("it is not a PNG picture")
    at = 8
    while raw[at + 4 : at + 8] != b"IEND":  # walk the chunks: a truncated picture never reaches the last one
        at += 12 + int.from_bytes(raw[at : at + 4], "big")
        if at + 12 > len(raw):
            raise BadPicture("it is cut off")
    width, height = int.from_bytes(raw[16:20], "big"), int.from_bytes(raw[20:24], "big")
    if not (0 < width <= PICTURE_SIDE and 0 < height <= PICTURE_SIDE):
        raise BadPicture(f"it measures {width} × {height} pixels")
    return base64.b64encode(raw[: at + 12]).decode("ascii"), width, height


_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
    auto_reload=False,
)
_TEMPLATES.filters |= {f.__name__: f for f in (number, amount, seconds, prose, clean, listed, percent)}


def page(template: str, **values: Any) -> str:
    """The rendered template, free of characters that could not be written."""
    return clean(_TEMPLATES.get_template(template).render(**values))


class BadName(AutograderError):
    """A name that must not become part of a path."""


def checked_name(name: str, what: str) -> str:
    """`name` if it can be one component of a path; raises BadName otherwise."""
    if not files.is_safe_name(name):
        raise BadName(f"the {what} {clean(name)[:80]!r} cannot be the name of a file or folder")
    return name
