"""What tests of this room may ask for."""

from fixtures import browser

__all__ = ["browser"]
