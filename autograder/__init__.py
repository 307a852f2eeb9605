"""The autograder of "Attention by Hand": judges notebooks against reference solutions, safely and fast."""

import sys

__version__ = "0.1.0"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""In the environment of processes that compute: several at once share the processors, and each is bounded in time."""


def import_without_web_addresses() -> None:
    """Spare this process a grammar that jsonschema, imported by nbformat, compiles for international web addresses.

    That takes longer than all other imports together, in each worker, and notebooks hold no such addresses. For
    processes that only grade: others may need the grammar.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
