"""Judges anew the answers that a run keeps, and compares the judges."""
