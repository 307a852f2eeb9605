"""A marker's browser: three answers by key and click, one taken back, and the gradebook has just that."""

from __future__ import annotations

from pathlib import Path

from axe import violations
from marking import STUDENTS, in_gradebook, serving, waiting_class


def test_three_answers_are_marked(tmp_path: Path, browser) -> None:
    course = waiting_class(tmp_path / "course")
    with serving(course) as server:
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        errors: list[str] = []
        tab.on("pageerror", lambda error: errors.append(str(error)))
        tab.on("console", lambda said: errors.append(said.text) if said.type == "error" else None)
        tab.goto(server.address)
        assert violations(tab) == []
        tab.get_by_role("link", name="Why?").click()
        for width in (1280, 375):
            for colours in ("light", "dark"):
                tab.set_viewport_size({"width": width, "height": 900})
                tab.emulate_media(color_scheme=colours)
                assert violations(tab) == []
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                tab.screenshot(path=tmp_path / f"mark-{width}-{colours}.png", full_page=True)
        tab.set_viewport_size({"width": 1280, "height": 900})

        # by key: the first point of the rubric, a comment, saved
        tab.keyboard.press("1")
        assert tab.locator("#points").input_value() == "1"
        tab.keyboard.press("c")
        tab.keyboard.type("Say which number.")
        tab.keyboard.press("Control+Enter")
        tab.get_by_text("1 of 3 marked").wait_for()
        # by click, with the same comment
        tab.get_by_label("of a number to itself").check()
        tab.get_by_label("addition is").check()
        tab.get_by_role("button", name="Say which number.").click()
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("2 of 3 marked").wait_for()
        # by hand
        tab.get_by_label("Points of 2").fill("0.5")
        tab.get_by_role("button", name="Save").click()
        tab.get_by_text("3 of 3 marked").wait_for()
        # the page is loaded anew, and the last one is taken back
        tab.reload()
        tab.keyboard.press("u")
        tab.get_by_text("is as it was before").wait_for()
        assert tab.locator("#progress").inner_text() == "2 of 3 marked"
        assert errors == []
        order = server.marking._orders["question/1"]
        tab.close()
    first, second, third = (in_gradebook(course, student) for student in order)
    assert sorted(order) == sorted(STUDENTS)
    assert first[:2] == (1.0, False) and first[2].endswith("to itself.\n\nSay which number.")
    assert second[:2] == (2.0, False) and second[2].endswith("\n\nSay which number.")
    assert third == (None, True, None)
