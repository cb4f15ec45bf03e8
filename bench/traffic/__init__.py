"""Calls of a wanted size, no two alike: what load tests and probes send."""
