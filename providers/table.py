"""Providers by name: where each is reached and which variable holds its key.

Rows over one protocol. A configuration adds rows of its own or changes these; nothing here reads the
environment.
"""

from __future__ import annotations

from msgspec import Struct


class Provider(Struct, frozen=True):
    """`key_variable` None: no key is needed. `identity` None: the base URL itself stands in keys of calls."""

    base_url: str
    key_variable: str | None = None
    url_variable: str | None = None
    identity: str | None = None
    kind: str = "openai"
    max_tokens_name: str = "max_tokens"


OPENAI_URL = "https://api.openai.com/v1"
SIM_PORT = 8099

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(OPENAI_URL, "OPENAI_API_KEY", "OPENAI_BASE_URL", max_tokens_name="max_completion_tokens"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "ollama": Provider("http://127.0.0.1:11434/v1", None, "OLLAMA_BASE_URL"),
    "vllm": Provider("http://127.0.0.1:8000/v1", None),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", None),
    "sim": Provider(f"http://127.0.0.1:{SIM_PORT}/v1", None, None, identity="sim"),
}
