"""`python -m autograder`. Worker processes import this module too, so it does nothing but start the command line."""

import sys

# jsonschema, which nbformat imports, compiles a grammar for international web addresses when it is imported. That
# takes longer than all other imports together, and notebooks hold no such addresses.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

if __name__ == "__main__":
    import gc

    from autograder.cli import cli

    gc.freeze()  # what is imported stays: the collector need not look at it again
    cli(prog_name="python -m autograder")
