"""Writes the report's files, and the part of the page that every benchmark has."""
