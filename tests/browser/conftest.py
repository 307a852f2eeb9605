"""What tests of this room may ask for."""

from fixtures import browser, open_page, site

__all__ = ["browser", "open_page", "site"]
