"""`python -m autograder`."""

import gc

from autograder import import_without_web_addresses

import_without_web_addresses()
# What is imported stays, so the collector need not look at it; later it looks seldom, for a class's notebooks and
# results are made of many small things and hardly a circle among them.
gc.disable()
gc.set_threshold(50_000)

if __name__ == "__main__":
    from autograder.cli import cli

    gc.freeze()
    gc.enable()
    cli(prog_name="python -m autograder")
