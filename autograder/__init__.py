"""The autograder of "Attention by Hand": judges notebooks against reference solutions, safely and fast."""

__version__ = "0.1.0"

import sys

# jsonschema, which nbformat imports, compiles a grammar for international web addresses when it is imported. That
# takes longer than all other imports together, in each worker, and notebooks hold no such addresses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
