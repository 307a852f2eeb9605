"""What the feedback and the report share: turning hostile text and pictures into safe, self-contained HTML.

Everything a student supplies (source, outputs, names) passes through here. The rules:

- text is escaped by Jinja's autoescape or by the functions below, which return `Markup` only for what they built;
- Markdown is rendered with raw HTML escaped and then cleaned again by bleach: two independent locks;
- of pictures only PNG is let through, decoded and looked at, and encoded again by us;
- sizes are capped, and a cap leaves a remark, so that nothing disappears in silence.
"""

from __future__ import annotations

import base64
import binascii
import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import bleach.sanitizer
import jinja2
import mistune
from markupsafe import Markup, escape
from nbconvert.filters.highlight import Highlight2HTML
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from autograder import files
from autograder.errors import AutograderError

REASON_CHARACTERS = 2_000
"""Longest reason, note or event that is shown in full."""
MARKDOWN_CHARACTERS = 20_000
"""Longest Markdown cell that is rendered; a longer one is shown as plain text."""
MARKDOWN_LINES = 1_000
"""Most lines of a Markdown cell that is rendered: looking for tables takes the square of their number."""
HIGHLIGHT_CHARACTERS = 30_000
"""Longest code cell that is highlighted; a longer one is shown as plain text."""
PICTURE_BYTES = 3_000_000
PICTURE_SIDE = 8_000
"""Longest side of a picture in pixels: a small file can hold a picture that fills the reader's memory."""
STYLE_CHANGES = 2_000
"""Most changes of colour in one output; after them the text goes on without colour."""

_PNG = b"\x89PNG\r\n\x1a\n"

# Controls, lone surrogates (which cannot be written as UTF-8) and characters that reorder the text around them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\u202a-\u202e\u2066-\u2069]")


def clean(text: str) -> str:
    """`text` without characters that HTML or UTF-8 cannot hold, or that disguise what is written."""
    return _UNPRINTABLE.sub("\ufffd", text)


def text_of(value: Any) -> str:
    """The text of a notebook field, which is a string or a list of strings; anything else is no text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return ""


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
    text, _ = shorten(text, REASON_CHARACTERS)
    pieces = str(escape(clean(text))).split("`")
    # With an even number of pieces one backtick has no partner; it stays what it is.
    closed = len(pieces) if len(pieces) % 2 else len(pieces) - 1
    out = [f"<code>{piece}</code>" if i % 2 else piece for i, piece in enumerate(pieces[:closed])]
    if closed < len(pieces):
        out.append("`" + pieces[-1])
    return Markup("".join(out).replace("\n", "<br>"))


# --- code ------------------------------------------------------------------------------------------------------------

# At each line Pygments looks through all white space that follows for a docstring: the square of its length.
_MUCH_SPACE = re.compile(r"\n\s{400}")
_LEXER = PythonLexer(stripnl=False, ensurenl=False)
_FORMATTER = HtmlFormatter(nowrap=True)


@lru_cache(maxsize=512)
def code(source: str) -> Markup:
    """Python source as highlighted HTML (the inside of a `pre`); very long source stays plain."""
    source = clean(source)
    return Markup(highlight(source, _LEXER, _FORMATTER)) if _is_cheap(source) else escape(source)


def _is_cheap(source: str) -> bool:
    return len(source) <= HIGHLIGHT_CHARACTERS and not _MUCH_SPACE.search(source)


def highlighted(source: str, language: str = "ipython3", metadata: Any = None) -> str:
    """nbconvert's filter `highlight_code`, except that source whose colours would cost too much stays plain."""
    if _is_cheap(source):
        return str(Highlight2HTML(pygments_lexer="ipython3")(source, language, metadata))
    return Markup('<div class="highlight"><pre>{}</pre></div>').format(clean(source))


# --- terminal output -------------------------------------------------------------------------------------------------

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


def _after(style: tuple[bool, int | None], codes: str) -> tuple[bool, int | None]:
    """The style (bold, colour 0–15 or None) after the numbers of one colour sequence."""
    bold, colour = style
    numbers = [int(c) if c.isdigit() and len(c) < 4 else 0 for c in codes.replace(":", ";").split(";")[:32]]
    i = 0
    while i < len(numbers):
        n = numbers[i]
        if n == 0:
            bold, colour = False, None
        elif n == 1:
            bold = True
        elif n == 22:
            bold = False
        elif 30 <= n <= 37:
            colour = n - 30
        elif 90 <= n <= 97:
            colour = n - 82
        elif n == 39:
            colour = None
        elif n in (38, 48):
            # 256 colours (38;5;n) and true colour (38;2;r;g;b) are no part of our palette, but 38;5;0–15 are.
            if n == 38 and numbers[i + 1 : i + 2] == [5] and i + 2 < len(numbers):
                colour = numbers[i + 2] if numbers[i + 2] < 16 else None
            i += 2 if numbers[i + 1 : i + 2] == [5] else 4
        i += 1
    return bold, colour


def terminal(text: str) -> Markup:
    """Terminal text as HTML: colours become classes, every other escape sequence and control is dropped."""
    text = overwritten(text)
    if "\x1b" not in text:
        return escape(clean(text))
    out: list[str] = []
    style: tuple[bool, int | None] = (False, None)
    start = changes = 0

    def put(piece: str) -> None:
        if not piece:
            return
        bold, colour = style
        names = (["ansi-bold"] if bold else []) + ([f"ansi-{colour}"] if colour is not None else [])
        safe = str(escape(clean(piece)))
        out.append(f'<span class="{" ".join(names)}">{safe}</span>' if names else safe)

    for match in _ESCAPES.finditer(text):
        put(text[start : match.start()])
        start = match.end()
        if match["sgr"] is not None:
            changes += 1
            style = _after(style, match["sgr"]) if changes <= STYLE_CHANGES else (False, None)
    put(text[start:])
    return Markup("".join(out))


# --- Markdown --------------------------------------------------------------------------------------------------------


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


_TAGS = {"a", "p", "br", "hr", "em", "strong", "del", "code", "pre", "blockquote", "ul", "ol", "li", "span", "div"}
_TAGS |= {"table", "thead", "tbody", "tr", "th", "td"}


def _allowed(tag: str, name: str, value: str) -> bool:
    if tag == "a":
        return name == "href" or (name, value) == ("rel", "noopener noreferrer nofollow")
    return tag in ("span", "div") and (name, value) == ("class", "math")


@cache
def _markdown_machine() -> tuple[mistune.Markdown, bleach.sanitizer.Cleaner]:
    renderer = _Markdown(escape=True)
    machine = mistune.create_markdown(renderer=renderer, plugins=["table", "strikethrough", "math"])
    # No script typesets the mathematics, so that it stays as it was typed.
    renderer.register("block_math", lambda r, text: f'<div class="math">$${escape(text)}$$</div>\n')
    renderer.register("inline_math", lambda r, text: f'<span class="math">${escape(text)}$</span>')
    protocols = {"http", "https", "mailto"}
    return machine, bleach.sanitizer.Cleaner(tags=_TAGS, attributes=_allowed, protocols=protocols, strip=False)


@lru_cache(maxsize=256)
def markdown(text: str) -> Markup:
    """Markdown by a student or marker as clean HTML; mathematics stays text; too long or too deep stays plain."""
    text = clean(text)
    if len(text) > MARKDOWN_CHARACTERS or text.count("\n") > MARKDOWN_LINES:
        return Markup('<pre tabindex="0">{}</pre>').format(text)
    machine, cleaner = _markdown_machine()
    try:
        rendered = cleaner.clean(str(machine(text)))
    except RecursionError:  # nested hundreds of levels deep: nobody's answer, but it must not stop the class
        return Markup('<pre tabindex="0">{}</pre>').format(text)
    return Markup(rendered)


# --- pictures --------------------------------------------------------------------------------------------------------


class BadPicture(ValueError):
    """A picture that is not shown; the message says why, as the rest of "a picture is not shown: …"."""


def checked_png(data: Any) -> tuple[str, int, int]:
    """Base64 of a PNG, decoded, looked at and encoded again, with its width and height in pixels.

    Raises BadPicture when it is not base64, not a whole PNG, or too large.
    """
    text = text_of(data)
    if len(text) > PICTURE_BYTES * 3 // 2:
        raise BadPicture(f"it is larger than {PICTURE_BYTES / 1e6:g} MB")
    try:
        raw = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadPicture("its data are damaged") from error
    if len(raw) > PICTURE_BYTES:
        raise BadPicture(f"it is larger than {PICTURE_BYTES / 1e6:g} MB")
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


# --- pages -----------------------------------------------------------------------------------------------------------


@cache
def environment() -> jinja2.Environment:
    """The one template environment; templates are compiled at first use and kept."""
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        auto_reload=False,
    )
    filters = (number, amount, seconds, prose, clean, listed, percent)
    env.filters.update({function.__name__: function for function in filters})
    return env


def percent(share: float | None) -> str:
    """A share as whole per cent, a dash for None."""
    return "–" if share is None else f"{100 * share:.0f} %"


def page(template: str, **values: Any) -> str:
    """The rendered template, free of characters that could not be written."""
    return clean(environment().get_template(template).render(**values))


class BadName(AutograderError):
    """A name that must not become part of a path."""


def checked_name(name: str, what: str = "name") -> str:
    """`name` if it can be one component of a path; raises BadName otherwise."""
    if not files.is_safe_name(name):
        raise BadName(f"the {what} {clean(name)[:80]!r} cannot be the name of a file or folder")
    return name


def write_page(path: Path, text: str) -> Path:
    """Write a page whole or not at all. Raises OSError."""
    files.write_atomically(path, text.encode("utf-8"))
    return path
