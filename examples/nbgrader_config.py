"""The example class: the course's own sets and settings, with made-up submissions."""

load_subconfig("../nbgrader_config.py")  # noqa: F821
c = get_config()  # noqa: F821

c.CourseDirectory.source_directory = "../source_solutions"
c.CourseDirectory.release_directory = "../assignments"
