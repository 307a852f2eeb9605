"""Proves the tests of a set: variants, trivial answers, mutants, seeds."""
