"""What tests of this room may ask for."""

from downloads import course
from fixtures import browser

__all__ = ["browser", "course"]
