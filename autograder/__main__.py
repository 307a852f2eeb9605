"""`autograder`, and `python -m autograder`."""

from autograder import imports_of_a_grader


def main() -> None:
    """The command line, as the console command starts it."""
    with imports_of_a_grader():
        from autograder.cli import cli

    cli()


if __name__ == "__main__":
    main()
