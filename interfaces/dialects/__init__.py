"""What clients of a provider say and want to hear, in each provider's own language: pure, whole and streamed."""
