"""What holds for every test: one thread for linear algebra, here and in all programs that a test starts.

`make test` runs three tests at a time. Where each of them has a thread for every core, the threads wait for each
other's turn: a chapter's cells that need 8 s of processor time took 85 s. And Ctrl-C means what it means: a run that a
shell started in the background ignores it, as would all that it starts.
"""

import os
import signal

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
signal.signal(signal.SIGINT, signal.default_int_handler)
