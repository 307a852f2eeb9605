"""Course settings, read by nbgrader and by `autograder`."""

from autograder.nbgrader_plugin import configure

c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "describing-data"
c.CourseDirectory.source_directory = "source_solutions"
c.CourseDirectory.release_directory = "assignments"
# The zone of due dates and of the times in downloads:
# c.Exchange.timezone = "Europe/Berlin"

configure(c)
