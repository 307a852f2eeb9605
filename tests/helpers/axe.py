"""axe-core, the accessibility checker that Lighthouse uses too, run on a page that Playwright has open."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe

# all rules that are on by default, and one that only Lighthouse switches on
OPTIONS = {"resultTypes": ["violations"], "rules": {"label-content-name-mismatch": {"enabled": True}}}


# for a page that was looked at with all rules, and now stands in its other colours or another width
COLOURS = {"resultTypes": ["violations"], "runOnly": ["color-contrast", "link-in-text-block"]}
STRUCTURE = OPTIONS | {"rules": {**OPTIONS["rules"], "color-contrast": {"enabled": False}}}


def violations(page: Any, within: str | None = None, options: dict = OPTIONS) -> list[str]:
    """What axe finds wrong, one line for each element; an empty list when nothing is.

    ``within`` is a CSS selector: only what lies in it is looked at. Use it as
    ``assert violations(page) == []``, so that a failure prints the lines. ``options`` may be ``COLOURS`` or
    ``STRUCTURE``, which are quicker than all rules.
    """
    found = Axe().run(page, context=within, options=options).response["violations"]
    return [
        f"{rule['id']} ({rule['impact']}): {rule['help']}: {' '.join(map(str, node['target']))} {node['html'][:160]}"
        for rule in found
        for node in rule["nodes"]
    ]
