"""What every command of the grader may raise."""


class AutograderError(Exception):
    """Something the person at the keyboard can mend; one line that says what is wrong, where, and how to mend it."""
