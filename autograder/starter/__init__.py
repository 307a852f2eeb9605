"""A small course to begin with, as files: a set, a page, settings and next steps."""
