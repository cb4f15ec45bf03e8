"""Gemini's protocol, on AI Studio and Vertex AI: the client's side and the server's (serve_*)."""
