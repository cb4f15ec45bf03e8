"""Reads kept answers once more: scores, proofs, people's labels, other judges, changes between runs."""
