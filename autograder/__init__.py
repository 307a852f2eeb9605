"""The autograder of "Attention by Hand": judges notebooks against reference solutions, safely and fast."""

import os
import sys

__version__ = "0.1.0"


def import_without_web_addresses() -> None:
    """Spare this process a grammar that jsonschema, imported by nbformat, compiles for international web addresses.

    That takes longer than all other imports together, in each worker, and notebooks hold no such addresses. For
    processes that only grade: others may need the grammar.
    """
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


def begin_worker() -> None:
    """What a process that only judges does first; here, where its import brings nothing else with it."""
    import_without_web_addresses()
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    from autograder.sandbox.inside.confinement import die_with_parent

    die_with_parent()
