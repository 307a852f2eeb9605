"""What holds for every test: one thread for linear algebra, here and in all programs that a test starts.

`make test` runs three tests at a time. Where each of them has a thread for every core, the threads wait for each
other's turn: a chapter's cells that need 8 s of processor time took 85 s. And Ctrl-C means what it means: a run that a
shell started in the background ignores it, as would all that it starts.

One worker begins with the book, which takes one processor ten minutes where it was not built; what reads its pages
comes last, so that nobody waits for it. On a new machine that is five minutes of twenty.
"""

import os
import signal

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    def turn(item):
        room = item.path.parent.name
        return 0 if item.path.name == "test_book.py" else 2 if room in ("book", "browser") else 1

    items.sort(key=turn)
