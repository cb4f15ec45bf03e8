"""Batch files: many requests in, their answers out, whoever answers."""
