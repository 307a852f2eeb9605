"""Confines students' code: the launcher here, what runs confined in `inside`."""
