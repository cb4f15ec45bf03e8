"""Evaluations from a program or a notebook."""
