"""Batch files: a file of many requests is read, and their answers are written to another, from any provider."""
