"""Ourselves and the peers, measured side by side in one run. `python -m millstream.speed` prints the table."""
