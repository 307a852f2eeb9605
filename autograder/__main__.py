"""`python -m autograder`."""

if __name__ == "__main__":
    import gc

    from autograder.cli import cli

    gc.freeze()  # what is imported stays: the collector need not look at it again
    cli(prog_name="python -m autograder")
