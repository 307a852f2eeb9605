"""The name by which older sets import what `autograder.figures` holds."""

from autograder.figures import attention_beside

__all__ = ["attention_beside"]
