"""Ourselves and the peers, measured side by side in one run. `python -m millstream.bench.speed` prints the table."""
