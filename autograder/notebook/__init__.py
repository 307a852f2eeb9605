"""Reads whatever was handed in and rebuilds from it the notebook to grade."""
