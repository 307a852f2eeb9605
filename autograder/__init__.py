"""The autograder of "Attention by Hand": judges notebooks against reference solutions, safely and fast."""

__version__ = "0.1.0"
