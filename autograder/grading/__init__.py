"""Runs many submissions: jobs on an executor, and the store of results."""
