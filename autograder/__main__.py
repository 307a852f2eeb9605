"""`python -m autograder`."""

from autograder import imports_of_a_grader

if __name__ == "__main__":
    with imports_of_a_grader():
        from autograder.cli import cli

    cli(prog_name="python -m autograder")
