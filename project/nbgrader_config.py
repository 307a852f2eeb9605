"""The final project: a course folder of its own, with the course's settings."""

load_subconfig("../nbgrader_config.py")  # noqa: F821
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = "final-project"
