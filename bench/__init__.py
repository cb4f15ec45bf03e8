"""The benchmarks, load tests and probes. All send their calls through the engine and know no wire protocol."""
