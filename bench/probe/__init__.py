"""How a provider's quotas are found: from options to calls, from answers to limits and a lanes file."""
