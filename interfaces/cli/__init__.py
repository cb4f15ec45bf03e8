"""The command line: reads a verb's options, prints its results, and returns its exit code."""
