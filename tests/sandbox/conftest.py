"""What several files of this room ask for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confined import LIMITS
from tiny_judge import FULL, RIGHT, grade, scores

from autograder.judging import worker
from autograder.results import GRADED
from autograder.sandbox.launcher import Sandbox, Student


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    one = Sandbox()
    yield one
    one.close()


@pytest.fixture
def student(sandbox: Sandbox) -> Iterator[Student]:
    one = sandbox.start(LIMITS)
    yield one
    one.end()


@pytest.fixture
def the_class_goes_on() -> Iterator[None]:
    """After a cheat the next student gets what is due, from the same warm process."""
    before = {key: sandbox.process for key, sandbox in worker._sandboxes.items()}
    yield
    result = grade(RIGHT)
    assert result.status == GRADED and scores(result) == FULL
    for key, process in before.items():
        assert worker._sandboxes[key].process is process, "the warm process died"
