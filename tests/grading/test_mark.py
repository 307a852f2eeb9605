"""Marking by question: the page asks and writes what formgrader would, and never over somebody else's mark."""

from __future__ import annotations

import http.client
import json
import re
from pathlib import Path

import pytest
from marking import HOSTILE, RUBRIC, STUDENTS, in_gradebook, serving, waiting_class
from one_mark import exported, graded, mark, page
from tiny_course import SET

from autograder.course import Course
from autograder.gradebook.rubric import rubric_items, with_rubric, without_rubric
from autograder.mark import Server


@pytest.fixture
def course(tmp_path: Path) -> Course:
    return waiting_class(tmp_path / "course")


@pytest.fixture
def server(course: Course):
    with serving(course) as server:
        yield server


def ask(server: Server, place: str, body: dict | None = None, path: str = "", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    sent = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    data = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", path or server.marking.base + place, data, sent)
    reply = connection.getresponse()
    text = reply.read().decode()
    assert "script-src 'self'" in reply.headers["Content-Security-Policy"]
    connection.close()
    return reply.status, text


def opened(server: Server, student: str) -> dict:
    """What the student's page sends when nothing was changed in it."""
    server.marking.index()
    number = server.marking._orders["question/1"].index(student) + 1
    status, text = ask(server, f"question/1/{number}")
    assert status == 200
    version, key = (re.search(rf'data-{what}="([^"]*)"', text)[1] for what in ("version", "key"))
    return {"number": number, "version": version, "key": key, "points": 1, "comment": "", "given": None}


def test_a_mark_is_what_formgrader_writes_and_is_exported(course: Course, server: Server) -> None:
    before = float(exported(course, "ada")["score"])
    mark(course, "bob", "why", 1.5)
    saved = ask(server, "question/1", opened(server, "ada") | {"points": 1.5, "comment": " Say *why*. "})
    assert saved[0] == 200, saved
    assert in_gradebook(course, "ada") == (1.5, False, "Say *why*.")
    assert in_gradebook(course, "ada")[:2] == in_gradebook(course, "bob")[:2]
    assert float(exported(course, "ada")["score"]) == before + 1.5
    assert "Say <em>why</em>." in page(course, "ada")


def test_undo_restores_that_nobody_has_marked(course: Course, server: Server) -> None:
    before = in_gradebook(course, "ada")
    undo = json.loads(ask(server, "question/1", opened(server, "ada"))[1])
    assert ask(server, "question/1", undo)[0] == 200
    assert in_gradebook(course, "ada") == before == (None, True, None)
    assert ask(server, "question/1", undo)[0] == 409


def test_of_two_markers_the_second_is_told(course: Course, server: Server) -> None:
    first, second = opened(server, "ada"), opened(server, "ada") | {"points": 2}
    undo = json.loads(ask(server, "question/1", first)[1])
    status, text = ask(server, "question/1", second)
    assert status == 409 and "changed this mark meanwhile" in text
    mark(course, "ada", "why", 0.5)  # in formgrader
    assert ask(server, "question/1", undo)[0] == 409
    assert in_gradebook(course, "ada")[0] == 0.5


def test_an_answer_that_was_graded_again_is_not_marked_unseen(course: Course, server: Server) -> None:
    seen = opened(server, "ada")
    again = server.marking.store.get(SET, "ada")
    again.key = "another"
    server.marking.store.put(again)
    assert ask(server, "question/1", seen)[0] == 409
    assert in_gradebook(course, "ada") == (None, True, None)


@pytest.mark.parametrize("points", [-1, 2.5, float("nan"), 10**400, "2", None, True])
def test_points_that_are_none_are_refused(course: Course, server: Server, points: object) -> None:
    assert ask(server, "question/1", opened(server, "ada") | {"points": points})[0] == 409
    assert in_gradebook(course, "ada") == (None, True, None)


def test_nobody_without_the_address_reads_or_writes(course: Course, server: Server) -> None:
    seen = opened(server, "ada")
    assert ask(server, "", path="/")[0] == 403
    assert ask(server, "question/1", seen, path="/question/1")[0] == 403
    assert ask(server, "question/1", seen, Host="evil.example")[0] == 403
    assert ask(server, "question/1", seen, Origin="http://evil.example")[0] == 403
    assert ask(server, "question/1", seen, Origin="null")[0] == 403
    assert ask(server, "question/1", seen, path=server.marking.base[:-2] + "/question/1")[0] == 403
    assert ask(server, "question/1", seen, Content_Type="text/plain")[0] == 409
    assert in_gradebook(course, "ada") == (None, True, None)
    assert server.server_address[0] == "127.0.0.1"


def test_what_no_page_of_ours_sends_is_refused(course: Course, server: Server) -> None:
    seen = opened(server, "ada")
    for place in (
        "question/1/" + "9" * 5000,
        "question/2/1",
        "question/1/0",
        "mark.html",
        "../mark.css",
    ):
        assert ask(server, place)[0] == 404, place
    assert ask(server, "question/2", seen)[0] == 404
    assert ask(server, "question/1", seen | {"number": 4})[0] == 404
    for wrong in ({"number": True}, {"comment": None}, {"comment": "x" * 200_000}, {"given": {}}, {"given": [7]}):
        assert ask(server, "question/1", seen | wrong)[0] in (404, 409), wrong
    assert in_gradebook(course, "ada") == (None, True, None)
    half = seen | {"comment": "a\0b\ud800"}  # what some databases do not take
    assert ask(server, "question/1", half)[0] == 200
    assert in_gradebook(course, "ada") == (1, False, "ab?")


def test_a_grade_run_in_between_asks_for_another_look(course: Course, server: Server) -> None:
    undo = json.loads(ask(server, "question/1", opened(server, "ada"))[1])
    again = server.marking.store.get(SET, "ada")
    again.key, again.notebook["cells"][-1]["source"] = "another", "Another answer."
    graded(course, again, due="")
    assert in_gradebook(course, "ada")[:2] == (1.0, True)
    assert ask(server, "question/1", undo)[0] == 409
    seen = opened(server, "ada")
    shown = ask(server, f"question/1/{seen['number']}")[1]
    assert "look again" in shown and "Another answer." in shown and "0 of 3 marked" in shown
    assert ask(server, "question/1", seen | {"points": 2})[0] == 200
    assert in_gradebook(course, "ada")[:2] == (2.0, False)


def test_hostile_text_stays_text_and_no_name_reaches_the_page(course: Course, server: Server) -> None:
    assert ask(server, "question/1", opened(server, "eve") | {"comment": HOSTILE})[0] == 200
    for student in STUDENTS:
        number = opened(server, student)["number"]
        text = ask(server, f"question/1/{number}")[1]
        assert text.count("<script") == 1 and "<img" not in text and 'href="javascript' not in text
        assert not re.search(r"\b(ada|bob|eve)\b", text)
        assert "&lt;script&gt;" in text  # the comment can be used again
    assert "<img src=x" not in page(course, "eve")


def test_points_of_the_rubric_stand_on_the_students_page(course: Course, server: Server) -> None:
    assert ask(server, "question/1", opened(server, "ada") | {"given": [1], "comment": "Nearly."})[0] == 200
    assert ask(server, "question/1", opened(server, "bob") | {"given": [0, 1]})[0] == 409  # 2 points, and 1 is said
    text = page(course, "ada")
    assert "<strong>Not given</strong> (1 point): addition is <em>named</em>." in text
    assert "<strong>Given</strong> (1 point): of a number to itself." in text and "Nearly." in text
    shown = ask(server, f"question/1/{opened(server, 'ada')['number']}")[1]
    assert shown.count("checked") == 1 and ">Nearly.</textarea>" in shown


def test_a_comment_with_a_rubric_is_read_back() -> None:
    items = rubric_items(RUBRIC, 2)
    assert [(i.points, i.text) for i in items] == [(1, "addition is *named*."), (1, "of a number to itself.")]
    assert without_rubric(with_rubric(items, [0], "More.")) == ({i.text: i is items[0] for i in items}, "More.")
    assert without_rubric("- a list\n- of one's own") == ({}, "- a list\n- of one's own")
    assert rubric_items(RUBRIC, 3) == rubric_items("2 points for naming addition", 2) == []
