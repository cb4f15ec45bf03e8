"""Load tests: calls at a rate, with latencies counted from when each was due; from options to figures and a page."""
