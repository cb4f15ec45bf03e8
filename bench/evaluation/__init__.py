"""What all benchmarks share: preparing, sending, counting and proving a run, and its report."""
