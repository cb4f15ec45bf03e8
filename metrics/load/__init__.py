"""What a load test leaves behind, and what can be read from it."""
