"""What grading a class left behind, in a form in which two runs are compared."""

from __future__ import annotations

from typing import Any

from autograder.course import Course
from autograder.gradebook.reader import Standing, scores
from autograder.grading.store import Store

TIMES = ("graded_at", "timings", "seconds")


def without_times(data: Any) -> Any:
    """Plain data without when it was made and how long anything took."""
    if isinstance(data, dict):
        return {key: without_times(value) for key, value in data.items() if key not in TIMES}
    return [without_times(part) for part in data] if isinstance(data, list) else data


def outcome(course: Course, name: str) -> dict[str, tuple[dict[str, Any], Standing | None]]:
    """By student, all that is stored, which is what feedback is made of, and what stands in the gradebook."""
    booked = scores(course, name)
    stored = Store(course.results_folder).all(name)
    return {r.student: (without_times(r.to_json()), booked.get(r.student)) for r in stored}
