"""What students send to whoever looks at their feedback: it stays text, small and quick to show."""

from __future__ import annotations

import base64
import re
import time

import pytest
from read_page import only, read
from sample_results import (
    SOLUTION,
    WRITTEN,
    a_result,
    attention_png,
    code_cell,
    shown,
    stream,
    text_cell,
)

from autograder.gradebook.reader import CellScore, Standing
from autograder.html import feedback
from autograder.html import sanitize as pages
from autograder.html.sections import Section
from autograder.judging.judge import clean_outputs
from autograder.results import Check, Exercise, Misconception

# --- hostile ---------------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>alert(1)</script>",
    "</code></pre><script>alert(1)</script>",
    "</style><script>alert(1)</script><style>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe>",
    "<style>@import 'http://evil.example/x.css'; body{display:none}</style>",
    "<link rel=stylesheet href=http://evil.example/x.css>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    "<base href=http://evil.example>",
    "<form action=http://evil.example><input name=password></form>",
    "<!-- --!> <script>alert(1)</script>",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>",
    "{{ 7 * 7 }} {% raw %} {{ config }}",
    "\ud800 lone surrogate \udfff",
    "\u202eevil\u202c \x00\x07\x1b[2J\x1b]0;title\x07",
    "&lt;script&gt; &#x3c;script&#x3e;",
]
HOSTILE_MARKDOWN = [
    *HOSTILE,
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt:alert(1))",
    "[click](java\nscript:alert(1))",
    "[click](&#106;avascript:alert(1))",
    "[click](\x01javascript:alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    "[click](vbscript:x 'title')",
    "[click](//evil.example/x)",
    "[click](file:///etc/passwd)",
    "<javascript:alert(1)>",
    "![track](http://evil.example/pixel.png)",
    '![x"onerror="alert(1)](http://evil.example/pixel.png)',
    "![x](data:image/svg+xml;base64,PHN2Zz4=)",
    "[a]: javascript:alert(1)\n\n[a]",
    '[x](http://a.example/"onclick="alert(1))',
    "`<script>alert(1)</script>` $<script>alert(1)</script>$ $$<img src=x onerror=alert(1)>$$",
    '```html"><script>alert(1)</script>\n<b>\n```',
    "| <script> | b |\n|---|:-:|\n| <img src=x onerror=alert(1)> | c |",
    "# <script>alert(1)</script>",
    "<a href='javascript:alert(1)'>x</a>",
    "<h1 id=exercise-1>Score: 100</h1>",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text_everywhere(text):
    result = a_result(
        student=text,
        assignment=text,
        typed_id=text + "x",
        notes=[text],
        events=[text],
        graded_at=text,
        grader_version=text,
        assignment_version=text,
        exercises=[
            Exercise(
                text,
                text,
                2,
                score=1,
                checks=[
                    Check(text, 1, "failed", text, example={"says": text, "call": text, "gave": text}),
                    Check(text, 1, text, f"{text} (line 1 of your cell: `{text}`)"),
                ],
                misconceptions=[Misconception(text, text, text)],
                follow_through=[text],
                solution_ids=[text],
                figures=[{"png": attention_png(), "alt": text}, {"png": text, "alt": text}],
            ),
            Exercise("answer", text, 2, kind="written"),
        ],
        notebook={
            "cells": [
                text_cell(f"# {text}", text),
                {"cell_type": text, "source": text, "id": text, "metadata": {"nbgrader": {"grade_id": text}}},
                code_cell(
                    text,
                    text,
                    [
                        *clean_outputs(
                            [
                                stream(text),
                                stream(text, name="stderr"),
                                stream(text, name=text),
                                shown(text_plain=text, text_html=text, image_png=text),
                                shown(text_html=text, **{"image_svg+xml": text, "application_javascript": text}),
                                {"output_type": "display_data", "data": {text: text}},
                                {"output_type": "execute_result", "data": {"text/plain": text}},
                                {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]},
                                {"output_type": "error", "ename": text, "evalue": text, "traceback": text},
                                {"output_type": text, "data": text},
                            ]
                        ),
                        shown(text_plain=text, image_png=text),
                    ],
                    **SOLUTION,
                ),
                text_cell(text, "answer", **WRITTEN),
            ]
        },
    )
    result.exercises[0].title = f"Exercise 1: {text}"
    sections = {1: [Section(text, text, "https://example.org/" + text), Section(text, text)]}
    page = read(feedback.render(result, Standing({"answer": CellScore(manual=1, comment=text)}), sections))
    assert "\x1b" not in page.text and "\u202e" not in page.text and "49" not in page.text
    for status in ("unreadable", "not submitted", text):
        read(feedback.render(a_result(status=status, reason=text, student=text)))


@pytest.mark.parametrize("text", HOSTILE_MARKDOWN)
def test_hostile_markdown_is_disarmed(text):
    page = read(
        feedback.render(
            only(text_cell(text, "answer", **WRITTEN)), Standing({"answer": CellScore(manual=1, comment=text)})
        )
    )
    assert not any(tag == "img" for tag, _ in page.tags)


def test_markdown_shows_what_was_meant():
    text = (
        "*a* **b** `c` [d](https://example.org/?a=1&b=2)\n\n- $x_1 * x_2 * x_3$\n\n> q\n\n"
        "| h |\n|---|\n| v |\n\n$$\na_b_c\n$$"
    )
    html = str(pages.markdown(text))
    for piece in (
        "<em>a</em>",
        "<strong>b</strong>",
        "<code>c</code>",
        'href="https://example.org/?a=1&amp;b=2"',
        '<span class="math">$x_1 * x_2 * x_3$</span>',
        "<blockquote>",
        "<td>v</td>",
        "a_b_c",
    ):
        assert piece in html
    assert "<h1" not in str(pages.markdown("# Title"))
    fold = "<details><summary>Hint 1</summary>\n\nWhich *axis*?\n\n</details>"
    assert str(pages.markdown(fold)).split("\n")[:2] == [
        "<p><strong>Hint 1</strong></p>",
        "<p>Which <em>axis</em>?</p>",
    ]


def png(width=1, height=1):
    """A PNG which says it has this size; the grader looks at structure, not at pixels."""
    size = width.to_bytes(4, "big") + height.to_bytes(4, "big")
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            b"\0\0\0\rIHDR",
            size,
            b"\x08\0\0\0\0" + b"crc!",
            b"\0\0\0\x02IDATxxcrc!",
            b"\0\0\0\0IENDcrc!",
        ]
    )


def test_png_is_looked_at():
    good = base64.b64encode(png(3, 2)).decode()
    assert pages.checked_png(good)[1:] == (3, 2)
    assert pages.checked_png(good[:20] + "\n" + good[20:])[0] == good
    # Whatever is hidden behind the picture's end is cut off.
    trailing = base64.b64encode(png(3, 2) + b"<script>").decode()
    assert pages.checked_png(trailing)[0] == good


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("not base64!", "damaged"),
        ("iVBORw0KGgo", "damaged"),
        ("", "not a PNG"),
        ("\ud800é", "damaged"),
        (base64.b64encode(b"<svg onload=alert(1)>").decode(), "not a PNG"),
        (base64.b64encode(b"GIF89a" + b"\0" * 60).decode(), "not a PNG"),
        (base64.b64encode(png()[:-8]).decode(), "cut off"),
        (base64.b64encode(png()[:33]).decode(), "cut off"),
        (base64.b64encode(png(100_000, 100_000)).decode(), "100000 × 100000"),
        (base64.b64encode(png(0, 5)).decode(), "0 × 5"),
        ("A" * 10_000_000, "larger"),
    ],
)
def test_bad_pictures_leave_a_remark(data, why):
    html = feedback.render(only(code_cell("x", "answer", [shown(image_png=data)])))
    assert "A picture is not shown" in read(html).text and why in read(html).text and "<img" not in html


def test_long_outputs_are_cut_and_say_so():
    page = read(feedback.render(only(code_cell("x", "a", [stream("start" + "x" * 5_000_000 + "end")]))))
    assert "characters in the middle were left out" in page.text and "start" in page.text and "xend" in page.text
    assert len(page.text) < 3 * feedback.TEXT_CHARACTERS


def test_many_outputs_and_many_cells_stay_within_the_page():
    many = [shown(text_plain=f"output {i}") for i in range(5_000)]
    html = feedback.render(only(code_cell("x", "a", many)))
    assert f"{5_000 - feedback.OUTPUTS_PER_CELL:,} more outputs" in html
    cells = [code_cell("y" * 90_000, f"c{i}", [stream("z" * 20_000)]) for i in range(200)]
    html = feedback.render(only(*cells))
    assert len(html) < 3 * feedback.PAGE_CHARACTERS and "this page is long enough" in html
    pictures = [code_cell("p", f"p{i}", [shown(image_png=base64.b64encode(png()).decode())]) for i in range(20)]
    assert feedback.render(only(*pictures)).count("<img") == 20


def test_streams_are_joined_and_progress_bars_end_where_they_ended():
    bars = [stream(f"\r{i} %", name="stderr") for i in range(100)]
    page = read(feedback.render(only(code_cell("x", "a", [stream("a"), stream("b\n"), *bars, stream("c")]))))
    assert "ab" in page.text and "99 %" in page.text and "98 %" not in page.text


def test_terminal_colours():
    html = str(pages.terminal("\x1b[1;31mred & bold\x1b[0m plain \x1b[38;5;2mgreen\x1b[39m \x1b[38;2;1;31;4mx\x1b[0m"))
    assert html == (
        '<span class="ansi-red-intense-fg ansi-bold">red &amp; bold</span> plain '
        '<span class="ansi-green-fg">green</span> <span>x</span>'
    )
    assert str(pages.terminal("a\x1b[2J\x1b[10;10Hb\x1b]8;;http://x\x07c\x1b]8;;\x1b\\d\x1b(Be\x1b")) == "abcde"
    assert str(pages.terminal("one\rtwo\r\nthree")) == "two\nthree"
    assert str(pages.terminal("\x1b[31ma\x1b[38m<b>\x1b[48;2m")) == "a&lt;b&gt;"


BOMBS = {
    "colours": "\x1b[31mx\x1b[0m" * 300_000,
    "unclosed": "\x1b[" + "0;" * 500_000,
    "escapes": "\x1b" * 1_000_000,
    "osc": "\x1b]" * 500_000,
    "returns": "x\r" * 500_000,
    "one long line": "x" * 2_000_000,
    "huge numbers": "\x1b[" + "9" * 100_000 + "m",
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_terminal_bombs_cost_little(bomb):
    start = time.process_time()
    html = feedback.render(
        only(
            code_cell(
                "x",
                "a",
                [
                    stream(BOMBS[bomb]),
                    {"output_type": "error", "ename": "E", "evalue": "", "traceback": [BOMBS[bomb]]},
                ],
            )
        )
    )
    assert time.process_time() - start < 2
    assert len(html) < 400_000
    read(html)


SOURCE_BOMBS = {
    "quotes": "'" * 100_000,
    "triple": '"""' * 30_000,
    "brackets": "[" * 100_000,
    "braces in f-string": "f'" + "{" * 29_000,
    "backslashes": "'" + "\\" * 29_000,
    "decorators": "@" * 29_000,
    "stars": "*" * 20_000,
    "stars with words": "*a " * 6_000,
    "underscores": "_a" * 10_000,
    "quoted": "> " * 9_000,
    "lists": "\n".join("  " * i + "- x" for i in range(150)),
    "links": "[" * 10_000 + "](" * 4_000,
    "images": "![" * 9_000,
    "ticks": "".join("`" * i + " " for i in range(150)),
    "dollars": "$a " * 6_000,
    "dollar pairs": "$$" * 9_000,
    "dollar tick": "$`" * 9_000,
    "tables": "|a" * 4_000 + "\n" + "|-" * 4_000 + "\n",
    "html": "<a " * 6_000,
    "comments": "<!--" * 5_000,
    "entities": "&" * 19_000,
    "tildes": "~~a" * 6_000,
    "references": "[a]: <" * 3_000,
    "headings": "#" * 19_000,
    "a heading that does not end": "# a" + "#" * 200_000 + "a",
    "blank lines": " \n" * 15_000,
    "bars in lines": "a" + "|\n" * 9_990,
}


@pytest.mark.parametrize("bomb", SOURCE_BOMBS)
def test_source_bombs_cost_little(bomb):
    text = SOURCE_BOMBS[bomb]
    for cell in (code_cell(text, "a"), text_cell(text, "answer", **WRITTEN)):
        start = time.process_time()
        read(feedback.render(only(cell)))
        assert time.process_time() - start < 4, cell["cell_type"]


def exported(cells, resources=None, **settings):
    """The page that nbconvert makes of cells with the settings that formgrader and nbgrader's feedback are given."""
    from nbconvert.exporters import HTMLExporter
    from nbformat import v4
    from traitlets.config import Config

    from autograder.nbgrader_plugin import configure

    config = Config()
    configure(config)
    exporter = HTMLExporter(config=config, **settings)
    return exporter.from_notebook_node(v4.new_notebook(cells=cells), resources=resources)[0]


def test_names_are_text_in_formgrader():
    from nbformat import v4
    from nbgrader.server_extensions.formgrader import handlers

    formgrade = {"template_name": "formgrade", "extra_template_basedirs": [handlers.template_path]}
    keys = ["submission_id", "notebook_id", "assignment_id", "base_url", "notebook_path"]
    who = {"student": "<b>s</b>", "index": 0, "total": 1, **dict.fromkeys(keys, "x")}
    for name in ({}, {"last_name": "<img src=x onerror=alert(1)>", "first_name": "&lt;i>"}):
        html = exported([v4.new_markdown_cell("a")], {**who, **name}, **formgrade)
        assert "<b>" not in html and "<img" not in html and "<i>" not in html
        assert ("&lt;img src=x" in html and "&amp;lt;i&gt;" in html) if name else "&lt;b&gt;s" in html


@pytest.mark.slow
def test_nbconverts_pages_are_bounded_too():
    """Formgrader and nbgrader's feedback, with the settings that `configure` makes."""
    from nbformat import v4

    cells = [
        v4.new_code_cell(" \n" * 15_000 + "x = 1"),
        v4.new_markdown_cell("a" + "|\n" * 9_990),
        v4.new_code_cell("y = 2"),
        v4.new_code_cell("z", outputs=[v4.new_output("stream", text="\x1b[38mgreen" + "\x1b[1m<b>" * 400_000)]),
        v4.new_code_cell("z", outputs=[v4.new_output("error", traceback=["\x1b[48;2m"])]),
        *(v4.new_code_cell("a=1;" * 7_400) for _ in range(60)),
        *(v4.new_markdown_cell("*a* " * 4_900) for _ in range(60)),
        *(v4.new_code_cell("w", outputs=[v4.new_output("stream", text="w")] * 50) for _ in range(60)),
    ]
    html = exported(cells)
    assert "green" in html and "<b>" not in html and "characters left out" in html and len(html) < 3_000_000
    assert "x = 1" in html and re.search(r'<span class="n">y</span>\s*<span class="o">=</span>', html)


@pytest.mark.slow
def test_colours_of_code_are_bounded_too():
    """Each token is a `span` that is cleaned: 200,000 characters of `a=1;` kept a server busy for 50 seconds."""
    from nbformat import v4

    cells = [v4.new_code_cell("y = 2"), *(v4.new_code_cell("a=1;" * 3_000) for _ in range(16))]
    html = exported(cells)
    assert re.search(r'<span class="n">y</span>\s*<span class="o">=</span>', html)
    assert 1_000 < html.count("<span") < 25_000 and html.count("a=1;a=1;") > 10_000
