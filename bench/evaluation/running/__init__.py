"""Sends a run's items, and counts what its journals hold."""
