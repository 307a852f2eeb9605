"""What every command of the grader may raise."""


class AutograderError(Exception):
    """Something the person at the keyboard can mend; one line that says what is wrong, where, and how to mend it."""


def said_by(error: BaseException) -> str:
    """What the system or a library says about an error, without numbers and paths."""
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def missing_extra(what: str, extra: str) -> AutograderError:
    """The error for `what` where the optional packages `extra` of pyproject.toml are not installed."""
    return AutograderError(
        f"{what} needs packages that are not installed; in the repository's folder, run pip install -e '.[{extra}]'"
    )
