"""Limits of a student's process that a test can reach."""

from autograder.sandbox.launcher import Limits

MB = 2**20
LIMITS = Limits(
    cell_seconds=2, notebook_seconds=60, memory_bytes=400 * MB, processes=24, file_bytes=4 * MB, disk_bytes=8 * MB
)
