"""Runs and batches as typed tables, for other tools."""
