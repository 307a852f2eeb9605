"""The name by which older catalogues import what `autograder.catalogue` holds."""

from autograder.catalogue import edited, right, survivor, wrong

__all__ = ["edited", "right", "survivor", "wrong"]
