"""Probes: tests that find a provider's quotas; from options to calls, from answers to limits and a lanes file."""
