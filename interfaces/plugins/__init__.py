"""Millstream inside other harnesses: each module is loaded by the harness that it is for, and by nothing else."""
