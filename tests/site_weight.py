"""How many bytes a browser with an empty cache is sent for a page, by kind of resource."""

from __future__ import annotations

from collections import Counter
from typing import Any


def weight(browser: Any, address: str) -> Counter[str]:
    """Bodies and headers of all answers until the page is at rest, pictures further down included."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    answers: list[Any] = []
    page.on("requestfinished", lambda request: answers.append(request))
    page.goto(address)
    page.evaluate("window.MathJax?.startup?.promise")
    page.evaluate("document.fonts.ready")
    page.wait_for_load_state("networkidle")
    sent: Counter[str] = Counter()
    for request in answers:
        sizes = request.sizes()
        sent[request.resource_type] += sizes["responseBodySize"] + sizes["responseHeadersSize"]
    context.close()
    return sent
