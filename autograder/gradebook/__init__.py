"""nbgrader's database and the autograded notebooks: the one writer, and what is read back."""
