"""The class report: what it counts, that it is sound HTML, and that it behaves in a browser."""

from __future__ import annotations

import copy
import itertools
import re
import warnings
from pathlib import Path

import pytest
from read_page import TAGS, Page
from sample_results import SAYS, SET, a_result, example_class, exercise_of, text_cell, with_misconception
from test_feedback_hostile import HOSTILE

from autograder.gradebook.reader import CellScore, Standing
from autograder.html import plots, report
from autograder.html import sanitize as pages
from autograder.results import Check, Exercise, Misconception, Result

_WORDS = "nav small script label input g defs clippath lineargradient text tspan image stop"
MORE_TAGS = TAGS | set(_WORDS.split())


def read(html: str) -> Page:
    """The page read back, after the promises that hold for every report."""
    page = Page(html)
    html.encode("utf-8")
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert [tag for tag, _ in page.tags].count("script") == 1
    for tag, attributes in page.tags:
        assert tag in MORE_TAGS, tag
        for name, value in attributes.items():
            assert not name.startswith("on") and name not in ("srcset", "action", "formaction", "src", "ping")
            if name == "href" and value.startswith("#"):
                assert value[1:] in ids
            if name in ("href", "xlink:href"):
                assert not re.match(r"\s*(javascript|vbscript|file|http)", value), value
                assert not value.startswith("data:") or value.startswith("data:image/png;base64,")
            if name == "style":
                assert "url(" not in value.replace("url(#", "")
            if name == "aria-labelledby":
                assert value in ids
        if tag == "svg" and "aria-hidden" not in attributes:
            assert attributes["role"] == "img" and attributes["aria-label"]
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(b <= a + 1 for a, b in itertools.pairwise(levels))
    return page


def table(html: str, label: str) -> list[list[str]]:
    """The rows of the table in the scrolling box with this label, as texts."""
    part = html[html.index(f'aria-label="{label}"') :]
    part = part[part.index("<table") : part.index("</table>") + len("</table>")]
    rows = re.findall(r"<tr>(.*?)</tr>", part, re.DOTALL)
    return [
        [Page(f"<p>{c}</p>").text.strip() for c in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


def test_the_class_is_counted_and_nobody_gets_a_silent_zero():
    html = report.render(example_class())
    page = read(html)
    for name, value in (("Graded", "13"), ("Unreadable", "1"), ("Not submitted", "1")):
        assert re.search(rf"<dt>{name}</dt><dd>{value}\b", html)
    rows = {row[0]: row for row in table(html, "Table of students")}
    assert rows["student-14"][1] == "unreadable" and rows["student-15"][1] == "not submitted"
    assert set(rows["student-14"][2:9]) == {"–"} and rows["student-13"][1] == "0 / 19"
    assert "it ends in the middle of line 812" in page.text
    assert "Below 40 % of the points" in page.text
    assert len(rows) == 16


def test_scores_and_cells_are_those_of_the_results():
    results = example_class()
    rows = {row[0]: row for row in table(report.render(results), "Table of students")}
    for result in results[:13]:
        row = rows[result.student]
        assert row[1] == f"{pages.number(result.auto_score)} / 19"
        assert row[2:9] == [pages.number(e.score) if e.kind == "auto" else "–" for e in result.exercises]


def test_the_title_is_the_sets_and_no_students():
    results = example_class()
    first = next(r for r in results if r.notebook)
    first.notebook["cells"].insert(0, text_cell("# Everybody has failed", "own"))
    assert "Everybody has failed" not in read(report.render(results)).text


def test_statistics_of_an_exercise():
    results = [
        a_result(f"s{i}", exercises=[Exercise("a-tests", "A", 4, score=a), Exercise("b-tests", "B", 2, score=b)])
        for i, (a, b) in enumerate([(4, 2), (4, 2), (2, 1), (0, 1), (0, 0)])
    ]
    rows = table(report.render(results), "Table of exercises")
    assert rows[1] == ["1", "A", "4", "5", "50 %", "40 %", "40 %", "0.5 medium", "0.9"]
    assert rows[2][4:8] == ["60 %", "40 %", "20 %", "0.4 medium"]


def test_discrimination():
    assert report.discrimination([(0, 1), (0.5, 2), (1, 3), (0, 1), (1, 3)]) == pytest.approx(1)
    assert report.discrimination([(1, 1), (0.5, 2), (0, 3), (1, 1), (0, 3)]) == pytest.approx(-1)
    assert report.discrimination([(0, 1), (1, 2)]) is None
    assert report.discrimination([(1, i) for i in range(9)]) is None
    assert report.discrimination([(i, 1) for i in range(9)]) is None
    assert report.discrimination([]) is None


def test_misconceptions_are_counted_once_per_student_the_most_frequent_first():
    results = example_class()
    found = exercise_of(results[3], "scaled").misconceptions
    found.append(found[0])
    rows = table(report.render(results), "Table of misconceptions")[1:]
    assert [row[0] for row in rows] == ["3", "1", "1", "1"]
    assert rows[0][1] == "23 %" and SAYS["divided_by_d_k"][1].replace("`", "") in rows[0][3]
    assert rows[0][4] == "student-04, student-05, student-09"


def test_verdicts_are_counted_by_check():
    html = report.render(example_class())
    rows = table(html, "Verdicts of exercise 4")
    assert rows[0] == ["Check", "Passed share", "passed", "failed", "timeout", "out of memory"]
    last = next(row for row in rows if row[0] == "scores of a thousand do not overflow")
    assert sum(map(int, last[2:])) == 13 and last[4:] == ["1", "1"]


def test_manual_marks_count_and_complete_the_set():
    results = example_class()[:6]
    given = Standing({"gradient-answer": CellScore(manual=1), "why-answer": CellScore(manual=3)})
    html = report.render(results, marks={r.student: given for r in results})
    rows = {row[0]: row for row in table(html, "Table of students")}
    assert rows["student-01"][1] == "23 / 24" and rows["student-01"][4] == "1"
    assert "To be marked" not in html
    assert "<dt>To be marked</dt><dd>6" in report.render(results)


def test_without_a_sandbox_there_is_a_loud_banner():
    results = example_class()
    assert "Graded without a sandbox" not in report.render(results)
    results[2].sandbox = "none"
    html = report.render(results)
    assert "Graded without a sandbox: 1 of 13 submissions" in read(html).text
    assert html.index('class="alarm"') < html.index('class="tiles"')
    assert "1 submission graded without a sandbox" in read(report.render_course({SET: results})).text


def test_different_versions_are_pointed_out():
    results = example_class()
    assert "Grade again" not in report.render(results)
    results[1].assignment_version = "another"
    assert "2 different versions of the set" in read(report.render(results)).text


def test_events_flags_and_slow_submissions():
    html = report.render(example_class())
    page = read(html)
    events = table(html, "Table of unusual events")[1:]
    assert [row[0] for row in events] == ["student-11", "student-12", "student-12"]
    assert "refused" in events[1][1]
    assert "'student-02', another student's" in page.text and "'student-06x', nobody's in this class" in page.text
    slow = table(html, "Table of the slowest submissions")[1:]
    assert [row[0] for row in slow][:2] == ["student-12", "student-08"] and len(slow) == 10
    assert slow[0][1:] == ["61 s", "60 s", "1.1 s"]
    flags = {row[0]: row[-1] for row in table(html, "Table of students")}
    assert "crashed" in flags["student-11"] and "follow-through" in flags["student-07"]
    assert flags["student-01"] == ""


def test_old_and_new_scores_stand_side_by_side():
    results = example_class()
    old = {r.student: Result.from_json(copy.deepcopy(r.to_json())) for r in results}
    exercise_of(old["student-03"], "worksheet").score = 2
    exercise_of(old["student-02"], "argmax").score = 4
    old["student-14"].status, old["student-14"].exercises = (
        "graded",
        [Exercise("worksheet-tests", "W", 4, score=3)],
    )
    old["student-01"].status = "unreadable"
    html = report.render(results, old=old)
    rows = {row[0]: row[1:] for row in table(html, "Table of old and new scores")[1:]}
    assert rows == {
        "student-03": ["17", "19", "+2", "worksheet: 2 → 4"],
        "student-02": ["20", "19", "−1", "argmax-attention: 4 → 3"],
        "student-14": ["3", "unreadable", "–", ""],
        "student-01": ["unreadable", "19", "–", ""],
    }
    assert "4 changed (1 up, 1 down), 11 stayed as they were." in read(html).text


def test_nothing_changed_is_said():
    results = example_class()
    text = read(report.render(results, old={r.student: r for r in results})).text
    assert "0 changed (0 up, 0 down), 15 stayed as they were." in text


def test_links_lead_to_feedback_and_index():
    html = report.render([a_result("José (1)")], feedback="../away")
    assert f'href="../away/Jos%C3%A9%20%281%29/{SET}/{SET}.html"' in html and 'href="index.html"' in html
    assert '<th scope="row">../x</th>' in report.render([a_result("../x")]), "there can be no feedback of this name"


@pytest.mark.parametrize(
    "results",
    [
        [],
        [Result("a", SET, "", status="unreadable", reason="no JSON")],
        [Result("a", SET, "", status="not submitted")],
        [a_result()],
        [a_result(exercises=[])],
        [a_result(exercises=[Exercise("w", "W", 3, kind="written")])],
        [a_result(exercises=[Exercise("z-tests", "Z", 0, score=0)])],
        [a_result(timings={}), a_result("b", timings={})],
        [a_result(exercises=[Exercise("n-tests", "N", 2)])],
        [a_result(status="withdrawn")],
        [a_result("a", 0), a_result("b", 0)],
        [a_result("a", timings={"total": 0.0}), a_result("b", timings={"total": 0.0})],
    ],
)
def test_unusual_classes_have_a_report(results):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(report.render(results, old={}))
        read(report.render_course({SET: results}))


def test_students_with_different_exercises_are_put_together():
    short = a_result("short")
    del short.exercises[2:]
    extra = a_result("extra")
    extra.exercises.append(Exercise("new-tests", "New", 2, score=2))
    rows = table(report.render([short, extra, a_result("c")]), "Table of students")
    assert len({len(row) for row in rows}) == 1
    assert rows[0][2:10][-1].startswith("8 new") and rows[3][4] == "–"


@pytest.mark.parametrize("text", [*HOSTILE, "$\\frac{$", "$x$ $$", "李雷", "%s %(x)s {0}", "a" * 3000])
def test_hostile_names_and_texts_stay_text(text):
    exercise = Exercise(
        text,
        text,
        2,
        score=1,
        checks=[Check(text, 1, "failed", text), Check("b", 1, text, text)],
        misconceptions=[Misconception(text, text, text)],
        follow_through=[text],
        answered=False,
    )
    results = [
        a_result(
            f"{text}{i}",
            assignment=text,
            exercises=[copy.deepcopy(exercise)],
            notes=[text],
            events=[text],
            typed_id=text,
            grader_version=text,
            assignment_version=text + str(i),
            sandbox=text,
        )
        for i in range(3)
    ]
    results.append(Result(text, text, "", status="unreadable", reason=text))
    results.append(Result(text + "x", text, "", status=text, reason=text))
    old = {results[0].student: a_result(exercises=[Exercise(text, text, 2, score=0)])}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = read(report.render(results, old=old))
        read(report.render_course({text: results}, text))
    assert "\u202e" not in page.text and "\x1b" not in page.text


def test_equal_results_give_equal_pages():
    assert report.render(example_class()) == report.render(list(reversed(example_class())))


def test_course_index():
    first, second = example_class(), example_class()
    for result in second:
        result.assignment = "ps3-multi-head-attention"
    second[0].status = "not submitted"
    second.append(a_result("late-arrival", 0.1, assignment="ps3-multi-head-attention"))
    html = report.render_course({SET: first, "ps3-multi-head-attention": second}, "Attention by Hand")
    page = read(html)
    assert "2 sets, 16 students." in page.text
    rows = {row[0]: row[1:] for row in table(html, "Table of students")}
    assert rows["student-01"] == ["19 / 19", "19 / 19", "not submitted"]
    assert rows["student-14"] == ["no score", "unreadable", "unreadable"]
    assert rows["late-arrival"][1] == "–"
    stuck = page.text[page.text.index("Who may be stuck") : page.text.index("Find a student")]
    assert all(s in stuck for s in ("student-13", "student-14", "student-15")) and "late" not in stuck
    assert 'href="ps3-multi-head-attention.html"' in html
    sets = table(html, "Table of sets")[1:]
    assert sets[1][1:4] == ["13", "1", "2"] and "square root" in sets[0][8]


def test_files(tmp_path):
    paths = report.write_all({SET: example_class()}, tmp_path)
    assert [p.name for p in paths] == [f"{SET}.html", "index.html"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["index.html", f"{SET}.html"]
    assert "index.html" in paths[0].read_text(encoding="utf-8")
    with pytest.raises(pages.BadName):
        report.write_all({"../x": []}, tmp_path / "deeper")


def test_a_class_of_a_thousand_is_small():
    results = [a_result(f"student-{i:04}", i % 97 / 97, notebook=None) for i in range(1000)]
    with_misconception(results[0], "divided_by_d_k")
    html = report.render(results)
    assert len(html) < 1_500_000


def test_heat_steps_cover_everything_and_text_on_them_is_readable():
    assert [plots.heat_step(s) for s in (-1, 0, 0.05, 0.5, 0.99, 1, 2)] == [0, 0, 0, 5, 9, 9, 9]

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        parts = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]

    for colour in plots.HEAT:
        assert (luminance(colour) + 0.05) / (luminance("#15181d") + 0.05) >= 4.5


# --- in a browser ----------------------------------------------------------------------------------------------------


def written(path: Path, html: str) -> Path:
    path.write_text(html, encoding="utf-8")
    return path


def visit(browser, path: Path, width: int = 1280):
    """A tab on the page, and the lists of requests to elsewhere and of complaints it collects."""
    tab = browser.new_page(viewport={"width": width, "height": 900})
    requests, complaints = [], []
    tab.on("request", lambda r: None if r.url.startswith(("file:", "data:")) else requests.append(r.url))
    tab.on("console", lambda m: complaints.append(m.text))
    tab.on("pageerror", lambda e: complaints.append(str(e)))
    tab.goto(path.as_uri())
    return tab, requests, complaints


def test_tables_sort_by_keyboard_and_say_so(browser, tmp_path):
    path = written(tmp_path / "r.html", report.render(example_class()))
    tab, requests, complaints = visit(browser, path)
    names = "[...document.querySelectorAll('#students-table tbody tr')].map(r => r.cells[0].textContent)"
    head = tab.locator("#students-table thead th").nth(1)
    head.locator("button").focus()
    tab.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    ascending = tab.evaluate(names)
    assert ascending[0] == "student-13" and ascending[-2:] == ["student-14", "student-15"]
    tab.keyboard.press("Space")
    assert head.get_attribute("aria-sort") == "descending"
    descending = tab.evaluate(names)
    assert descending[:3] == ["student-01", "student-02", "student-03"]
    assert descending[-2:] == ["student-14", "student-15"], "no score is last in both directions"
    tab.locator("#students-table thead th").nth(0).locator("button").click()
    assert head.get_attribute("aria-sort") is None
    assert tab.evaluate(names) == sorted(descending)
    tab.get_by_label("Find a student").fill("-07")
    assert tab.locator("#students-table tbody tr:visible").count() == 1
    assert tab.locator("#found").text_content() == "1 found"
    assert requests == [] and complaints == []
    tab.close()


@pytest.mark.parametrize("width", [1280, 375, 320])
def test_pages_fit_the_screen_and_ask_for_nothing(browser, tmp_path, width):
    from autograder.html import feedback

    results = example_class()
    results[0].student = "a" * 120
    htmls = [
        report.render(results),
        report.render_course({SET: results}),
        *(feedback.render(r) for r in (results[0], results[8], results[13])),
    ]
    for i, html in enumerate(htmls):
        tab, requests, complaints = visit(browser, written(tmp_path / f"{i}.html", html), width)
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert requests == [] and complaints == []
        tab.close()


def test_nothing_hostile_runs(browser, tmp_path):
    from sample_results import SOLUTION, WRITTEN, code_cell, shown, stream, text_cell
    from test_feedback_hostile import HOSTILE_MARKDOWN

    from autograder.html import feedback

    everything = "\n\n".join(HOSTILE_MARKDOWN)
    result = a_result(
        everything,
        notes=[everything],
        events=[everything],
        typed_id=everything,
        notebook={
            "cells": [
                text_cell(everything, "gradient-answer", **WRITTEN),
                code_cell(
                    everything,
                    "c",
                    [stream(everything), shown(text_html=everything, text_plain=everything)],
                    **SOLUTION,
                ),
            ]
        },
    )
    result.exercises[0].checks[0].reason = result.exercises[0].checks[0].name = everything
    for i, html in enumerate((feedback.render(result), report.render([result], feedback="f"))):
        path = written(tmp_path / f"{i}.html", html)
        tab, requests, complaints = visit(browser, path)
        dialogs = []
        tab.on("dialog", lambda d, seen=dialogs: (seen.append(d.message), d.dismiss()))
        tab.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
        tab.mouse.move(300, 300)
        tab.wait_for_timeout(200)
        assert dialogs == [] and requests == [] and complaints == [] and tab.url == path.as_uri()
        assert tab.locator("iframe, form, base, object, embed, main script").count() == 0
        tab.close()
