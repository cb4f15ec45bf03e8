"""Calls carried by other processes: what driver and workers hand each other, and the two ends of it."""
