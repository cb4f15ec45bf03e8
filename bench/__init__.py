"""What is run: benchmarks, load tests. Each asks through the engine and speaks no wire protocol."""
