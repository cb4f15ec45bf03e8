"""The framework of all benchmarks: preparing, sending, counting and proving a run, and its report."""
