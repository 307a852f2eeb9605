"""How many bytes a browser with an empty cache is sent for a page, by kind of resource."""

from __future__ import annotations

from collections import Counter
from typing import Any


def weight(page: Any, address: str) -> Counter[str]:
    """Open ``address`` in a fresh ``page`` and count the bodies and headers of all answers until it is at rest."""
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
    return sent
