"""Pages for students and instructors, made of results."""
