"""How a provider's quotas are found: what to send next, and what follows from what came."""
