"""What a reader does with a figure to take hold of, and what is to be seen then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from playwright.sync_api import Locator, Page, expect

Setting = dict[str, Any]
Step = Callable[["Hand"], None]


@dataclass
class Hand:
    """A figure in an open page, and what Python makes of its settings."""

    page: Page
    figure: Locator
    python: Callable[..., Setting]
    start: Setting

    def settings(self) -> Setting:
        return self.figure.evaluate("el => el.model.values")

    def agrees(self, settings: Setting | None = None) -> None:
        """The figure's result is Python's: of what the model holds, or of settings made with one call."""
        found = settings or self.settings()
        for name, right in self.python(**{name: found[name] for name in self.start}).items():
            numbers = np.array(found["result"][name], dtype=float)  # None becomes NaN
            assert np.allclose(numbers, np.array(right, dtype=float), rtol=0, atol=1e-9, equal_nan=True), (found, right)

    def part(self, role: str, name: str) -> Locator:
        return self.figure.get_by_role(role, name=name, exact=True)

    def middle(self, role: str, name: str) -> tuple[float, float]:
        part = self.part(role, name)
        part = part.locator(".grip") if part.locator(".grip").count() else part
        part.scroll_into_view_if_needed()
        box = part.bounding_box()
        return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def press(name: str) -> Step:
    return lambda hand: hand.part("button", name).click()


def keys(role: str, name: str, *pressed: str) -> Step:
    def step(hand: Hand) -> None:
        hand.part(role, name).focus()
        for key in pressed:
            hand.page.keyboard.press(key)

    return step


def pull(role: str, name: str, across: float, down: float) -> Step:
    """By mouse."""

    def step(hand: Hand) -> None:
        x, y = hand.middle(role, name)
        hand.page.mouse.move(x, y)
        hand.page.mouse.down()
        hand.page.mouse.move(x + across, y + down, steps=4)
        hand.page.mouse.up()

    return step


def finger(role: str, name: str, across: float = 0, down: float = 0) -> Step:
    """A tap, or a pull by touch."""

    def step(hand: Hand) -> None:
        x, y = hand.middle(role, name)
        client = hand.page.context.new_cdp_session(hand.page)
        for share, kind in ((0, "touchStart"), (0.4, "touchMove"), (1, "touchMove")):
            if share == 0 or across or down:
                points = [{"x": x + share * across, "y": y + share * down}]
                client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
        client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
        hand.page.evaluate("() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(seen)))")

    return step


def types(name: str, text: str) -> Step:
    return lambda hand: hand.part("textbox", name).fill(text)


def says(text: str) -> Step:
    return lambda hand: expect(hand.figure.get_by_role("status")).to_contain_text(text)


def holds(**wanted: Any) -> Step:
    """What the model holds: a value, or a function that says whether it is right."""

    def step(hand: Hand) -> None:
        found = hand.settings()
        for name, right in wanted.items():
            assert right(found[name]) if callable(right) else found[name] == right, (name, found[name])

    return step


def shows(selector: str, count: int) -> Step:
    return lambda hand: expect(hand.figure.locator(selector)).to_have_count(count)
