"""The feedback pages: what they say, and that nothing a student writes gets out of its box."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from read_page import only, read
from sample_results import (
    SAYS,
    SET,
    TEST,
    a_result,
    code_cell,
    example_class,
    exercise_of,
    spoil,
    stream,
    with_misconception,
)

from autograder import files
from autograder.gradebook.reader import CellScore, Standing
from autograder.html import feedback
from autograder.html.sections import Section, sections_of
from autograder.results import VERDICTS, Check, Exercise


def given(**cells: CellScore) -> Standing:
    """What the gradebook holds for the written answers."""
    return Standing({f"{name}-answer": cell for name, cell in cells.items()})


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
    manual = given(gradient=CellScore(manual=1.5, comment="Almost: *why* none?"), why=CellScore(manual=3))
    page = read(feedback.render(result, manual))
    assert "23.5 / 24 points" in page.text and "to be marked" not in page.text
    assert "Almost: why none?" in page.text and "<em>why</em>" in feedback.render(result, manual)
    half = read(feedback.render(result, given(gradient=CellScore(manual=0, comment="no"))))
    assert "19 / 21 points so far" in half.text and "(3 points more)" in half.text


def test_a_comment_without_points_is_shown_and_still_to_be_marked():
    page = read(feedback.render(a_result(), given(why=CellScore(comment="See me."))))
    assert "See me." in page.text and "to be marked / 3" in page.text


def test_a_score_by_hand_replaces_the_checks_and_says_so():
    result = with_misconception(a_result(), "divided_by_d_k")
    page = read(feedback.render(result, Standing({"scaled-dot-product-attention-tests": CellScore(manual=4)})))
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


def test_a_result_without_a_notebook_has_a_page():
    read(feedback.render(a_result(notebook=None)))


# --- what can be acted on --------------------------------------------------------------------------------------------

SAME = "the result of `f`: 2 of 5 entries are off by more than 1e-06"
CALL = {"says": "An input that fails", "call": "f(np.array([1., 2.]))", "gave": "np.array([0.5, 0.5])"}


def section_of(html: str, number: int) -> str:
    return html[html.index(f'id="exercise-{number}"') :].split("</section>")[0]


def words(html: str) -> str:
    return " ".join(re.sub("<.*?>", "", html).split())


def with_checks(*checks: Check, **more) -> str:
    exercise = Exercise("x-tests", "Exercise 3: X (6 points)", 6, score=2, checks=list(checks), **more)
    return feedback.render(a_result(exercises=[exercise]))


def test_a_reason_is_said_once_with_the_checks_that_it_holds_for():
    html = with_checks(
        Check("a", 1, "failed", SAME),
        Check("b", 1, "passed"),
        Check("c", 2, "error", SAME),
        Check("d", 2, "failed", "e"),
    )
    text = read(html).text
    assert text.count("2 of 5 entries") == 1 and "(the same for all 2)" in text
    assert "failed a 0 of 1 point error c 0 of 2 points the result of f" in text
    assert text.index("passed b") > text.index("error c")


def test_the_call_that_fails_is_shown_with_what_came_out_and_what_to_do():
    long = {**CALL, "call": "f(" + "np.array([1, 2, 3]), " * 9 + ")"}
    text = read(
        with_checks(Check("a", 1, "failed", SAME, example=long), Check("b", 1, "failed", SAME, example=CALL))
    ).text
    assert "An input that fails f(np.array([1., 2.])) What your code gave np.array([0.5, 0.5])" in text
    assert "np.array([1, 2, 3])" not in text  # of calls with the same reason the shortest
    assert "Try this next Run the call below in your notebook" in text
    result = with_misconception(a_result(), "divided_by_d_k")
    exercise_of(result, "scaled").checks[1].example = CALL
    text = read(feedback.render(result)).text
    assert text.index("What we saw") < text.index("Change the place that we speak of above") < text.index(CALL["call"])


def test_an_exercise_without_an_answer_or_a_mistake_shows_no_call():
    assert CALL["call"] not in read(with_checks(Check("a", 1, "failed", "no", example=CALL), answered=False)).text
    assert "Try this next" not in read(feedback.render(a_result())).text


def test_parts_of_an_exercise_have_names():
    parts = [Exercise(name, "Exercise 1: why", 2, kind="written") for name in ("why-scale", "why-map-tests")]
    text = read(feedback.render(a_result(exercises=[*parts, Exercise("x-tests", "Exercise 2", 1, score=1)]))).text
    assert text.count("Exercise 1: why why scale") == 2 and text.count("Exercise 1: why why map ") == 2
    assert "Exercise 2 x" not in text


def test_calls_are_bounded():
    endless = {"says": "s", "call": "f(" + "1, " * 400_000 + ")", "gave": "[" + "x" * 10**6 + "]"}
    html = with_checks(Check("a", 1, "failed", SAME, example=endless))
    assert len(html) < 80_000 and "characters left out" in read(html).text


def test_the_code_of_a_failed_exercise_is_open_with_the_line_marked_that_raised():
    result = spoil(
        a_result(),
        "scaled",
        "error",
        "ValueError: no (line 5 of your cell, in `scaled_dot_product_attention`: `if mask is not None:`)",
    )
    html = feedback.render(result)
    section = section_of(html, 4)
    assert '<details class="group" open>' in section
    assert "The error was raised in line 5, which is marked." in words(section)
    assert "Look at the marked line" in words(section)
    (marked,) = re.findall(r'<span class="hll">(.*?)\n</span>', section)
    assert re.sub("<.*?>", "", marked) == "    if mask is not None:"
    assert '<details class="group">' in section_of(html, 5) and "hll" not in section_of(html, 5)


@pytest.mark.parametrize(
    "where",
    [
        "line 5 of your cell: `d_k = Q.shape[-1]`",
        "line 0 of your cell: `return weights @ V, weights`",
        "line 99999 of your cell: ``",
        "line 99999999999999999999999 of your cell: `x`",
        "line ` of your cell",
    ],
)
def test_a_line_that_is_not_there_is_not_marked(where):
    html = feedback.render(spoil(a_result(), "scaled", "error", f"ValueError: no ({where})"))
    assert "hll" not in section_of(html, 4) and "which is marked" not in read(html).text


def test_the_section_that_treats_an_exercise_is_linked_or_named():
    exercises = [
        Exercise(f"{n}-tests", f"Exercise {n}: X (2 points)", 2, score=score, checks=[Check("a", 1, verdict, "no")])
        for n, score, verdict in [(1, 0, "failed"), (2, 2, "passed"), (3, 0, "failed"), (4, 0, "failed")]
    ]
    linked = Section("Why a `softmax`?", "Self-attention", "https://example.org/book/self-attention.html#sa-why")
    html = feedback.render(
        a_result(exercises=exercises), None, {1: [linked], 2: [linked], 3: [Section("Masks", "Self-attention")]}
    )
    assert html.count('href="https://example.org/book/self-attention.html#sa-why"') == 1
    text = read(html).text
    assert "Read Why a softmax? in the chapter Self-attention." in text
    assert "Read “Masks” in the chapter Self-attention." in text
    assert "Try this next" not in words(section_of(html, 4))


def test_sections_come_from_the_set_s_page_in_the_book(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    (book / "ps1.md").write_text(
        "# Set\n\n{ref}`other`\n\n```{set-exercises} ps1\n1: Asks. Needs {ref}`one` and {ref}`the trap <two>`.\n"
        "2: Asks {ref}`nowhere`.\n10: Needs {ref}`two`, {ref}`one` and\n  {ref}`other`.\n```\n"
    )
    (book / "chapter.md").write_text("# Chapter\n\n(one)=\n## First\n\n(two)=\n### Second\n\n(other)=\n## Third\n")
    first, second = Section("First", "Chapter"), Section("Second", "Chapter")
    assert sections_of("ps1", tmp_path / "sets") == {1: [first, second], 10: [second, first]}
    assert sections_of("ps2", tmp_path / "sets") == {}
    (tmp_path / "_config.yml").write_text("html:\n  baseurl: https://example.org/b/  # ours\n")
    assert sections_of("ps1", tmp_path / "sets")[10][0].address == "https://example.org/b/chapter.html#two"
    (tmp_path / "_config.yml").write_text("html:\n  # baseurl: https://example.org\n  baseurl: javascript:alert(1)\n")
    assert sections_of("ps1", tmp_path / "sets")[10][0].address == ""


def test_every_set_names_sections_for_its_exercises():
    sets = Path(__file__).parents[2] / "source_solutions"
    for folder in filter(Path.is_dir, sets.iterdir()):
        found = sections_of(folder.name, sets)
        titles = len(re.findall(r"(?m)^## Exercise \d+", (folder / f"{folder.name}.py").read_text(encoding="utf-8")))
        assert (titles and len(found) >= 0.7 * titles) or folder.name == "ps0-warm-up", folder.name


# --- files -----------------------------------------------------------------------------------------------------------


def test_pages_are_written_where_nbgrader_puts_them(tmp_path):
    written = feedback.write_all(iter(example_class()), tmp_path)
    assert written.problems == [] and len(written.paths) == 15
    path = tmp_path / "student-01" / SET / f"{SET}.html"
    assert path in written.paths and "student-01" in path.read_text(encoding="utf-8")
    assert not list(tmp_path.rglob("*.part"))


def test_extra_credit_alone_is_no_mark():
    page = read(feedback.render(a_result(), given(why=CellScore(extra_credit=1.0))))
    assert "Written answers: to be marked (5 points more)" in page.text


def test_manual_marks_reach_the_right_page(tmp_path):
    feedback.write_all(
        [a_result("a"), a_result("b")], tmp_path, {"a": given(why=CellScore(manual=2.5, comment="Fine."))}
    )
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
