"""The system's Chromium, driven by Playwright."""

from __future__ import annotations

import os
from typing import Any

PROGRAMS = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")


def launched(playwright: Any, **options: Any) -> Any:
    """A browser; Playwright's own where the system has none. Raises playwright's Error where there is neither.

    Instead of Playwright a browser's type will do; ``options`` go to its ``launch``.
    """
    system = next((path for path in PROGRAMS if os.path.exists(path)), None)
    kind = getattr(playwright, "chromium", playwright)
    return kind.launch(executable_path=system, args=["--no-sandbox"], **options)
