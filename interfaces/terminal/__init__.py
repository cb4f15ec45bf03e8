"""The terminal's displays: progress of runs, load tests and probes, remarks, and the dialogue of `review`."""
