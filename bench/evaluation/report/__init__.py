"""The general part of a report, for benchmarks that have no page of their own."""
