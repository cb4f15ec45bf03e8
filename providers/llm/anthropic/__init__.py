"""Anthropic's Messages protocol: the client's side and the server's (serve_*)."""
