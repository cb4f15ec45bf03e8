"""Chameleon's part of a report: its tables, figures and browser of conversations."""
