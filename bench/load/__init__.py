"""Load tests that tell the truth about time, and what a provider really allows."""
