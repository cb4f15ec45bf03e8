"""The calls of load tests and probes: texts of a wanted size, no two alike."""
