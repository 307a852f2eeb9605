"""The autograder of "Attention by Hand": judges notebooks against reference solutions, safely and fast."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__version__ = "0.1.0"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""In the environment of processes that compute: several at once share the processors, and each is bounded in time."""


@contextmanager
def imports_of_a_grader() -> Iterator[None]:
    """Around the imports of a process that only grades: what stays for good need not be looked at again and again.

    The collector passes over what is imported, and later looks seldom: a class's notebooks and results are many small
    things and hardly a circle among them. Left out is a grammar that jsonschema, imported by nbformat, compiles for
    international web addresses: that takes longer than all other imports together, and notebooks hold none.
    """
    gc.disable()
    gc.set_threshold(50_000)
    sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
    yield
    gc.freeze()
    gc.enable()
