"""What the author of a benchmark writes, and the registry of benchmarks."""
