"""Answers kept on disk: the cache and its file, what of it may be used again, and snapshots of it."""
