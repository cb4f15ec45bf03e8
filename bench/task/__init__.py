"""Tasks: an evaluation of one's own, declared as data, a prompt and a way to score the answers.

Owns how a task is declared, read and scored. Knows no other benchmark.
"""
