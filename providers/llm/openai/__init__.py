"""OpenAI's Chat Completions and Responses protocols: the client's side and the server's (serve_*)."""
