"""Chameleon's tables, figures and conversations, for the report."""
