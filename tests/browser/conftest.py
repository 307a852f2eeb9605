"""What tests of this room may ask for."""

from fixtures import browser, site

__all__ = ["browser", "site"]
