"""What tests of this room may ask for."""

from downloads import course
from fixtures import browser
from one_mark import server_in_utc

__all__ = ["browser", "course", "server_in_utc"]
