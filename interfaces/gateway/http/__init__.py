"""The gateway's own HTTP server: bytes in, whole requests out, and back."""
