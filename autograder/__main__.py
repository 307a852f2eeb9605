"""`python -m autograder`."""

import gc

gc.disable()  # what is imported stays: the collector need not look at it, here and in each worker of the pool

if __name__ == "__main__":
    from autograder.cli import cli

    gc.freeze()
    gc.enable()
    cli(prog_name="python -m autograder")
