"""Settings of this course, read by nbgrader and by `python -m autograder`."""

from autograder.nbgrader_plugin import configure

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "statistics"
c.CourseDirectory.source_directory = "source_solutions"
c.CourseDirectory.release_directory = "assignments"

configure(c)
