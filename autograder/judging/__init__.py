"""Decides what a submission's answers are worth: test cells, reference, recognised misconceptions."""
