"""The HTTP server of our own: who may ask, bytes in, whole requests out, and back. Knows no path."""
