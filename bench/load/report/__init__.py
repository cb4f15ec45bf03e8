"""The page of a load test, or of several side by side."""
