"""Providers by name: the address of each, its protocol, the variable that holds its API key, its own names of
parameters.

A configuration adds rows of its own or changes these; nothing here reads the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from .kinds import Kind


class Provider(Struct, frozen=True):
    """One provider: its address, its API key's variable and its wire protocol."""

    base_url: str
    """Its address, in which `{region}` and `{project}` are filled in."""
    key_variable: str | None = None
    """The variable of its API key; None: it needs none."""
    url_variable: str | None = None
    """The variable that replaces the address; None: there is none."""
    identity: str | None = None
    """The text that replaces the address in cache keys; None: the address itself."""
    kind: str | Kind = "openai"
    """The name of a kind that comes with this package, or a `Kind`."""
    names: Mapping[str, str] = {}
    """Our names of parameters, with the provider's where these differ from the protocol's; see `Target`."""
    refuses: frozenset[str] = frozenset()
    """Parameters, in our names, that it never takes."""
    version: str | None = None
    """The default of the API's version, which the configuration or a variable replaces; None: the protocol's own."""
    region: str | None = None
    """The default of the region, which the configuration or a variable replaces; None: there is none."""
    project: str | None = None
    """The default of the project, which the configuration or a variable replaces; None: there is none."""
    fact_variables: Mapping[str, tuple[str, ...]] = {}
    """The variables that set `version`, `region` and `project`, by these names."""
    key_variables_too: tuple[str, ...] = ()
    """The variables of an optional API key, which is sent if one of them is set."""
    tiers: Mapping[str, Mapping[str, str]] = {}
    """The tiers of service that it can be asked for, each with the field of a request that does so."""
    store: bool | None = None
    """Whether it may keep answers, for kind `openai-responses`; None: its default."""


# What a call may ask for; the last is two attempts.
TIERS = ("standard", "flex", "priority", "flex-then-standard")
OPENAI_TIERS = {
    "standard": {"service_tier": "default"},
    "flex": {"service_tier": "flex"},
    "priority": {"service_tier": "priority"},
}
OPENAI_URL = "https://api.openai.com/v1"
SIM_PORT = 8099

# Only for OpenAI's own address: other servers with its protocol are more likely to know the older name.
OPENAI_NAMES = {"max_tokens": "max_completion_tokens"}

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(OPENAI_URL, "OPENAI_API_KEY", "OPENAI_BASE_URL", names=OPENAI_NAMES, tiers=OPENAI_TIERS),
    "openai-responses": Provider(
        OPENAI_URL, "OPENAI_API_KEY", "OPENAI_BASE_URL", kind="openai-responses", tiers=OPENAI_TIERS
    ),
    "openai-completions": Provider(OPENAI_URL, "OPENAI_API_KEY", "OPENAI_BASE_URL", kind="openai-completions"),
    "azure": Provider(
        "",
        "AZURE_OPENAI_API_KEY",
        "AZURE_OPENAI_ENDPOINT",
        kind="azure",
        names={"max_tokens": "max_completion_tokens"},
        tiers=OPENAI_TIERS,
        fact_variables={"version": ("OPENAI_API_VERSION", "AZURE_OPENAI_API_VERSION")},
    ),
    "anthropic": Provider(
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        kind="anthropic",
        # Its priority is what an organization has paid for beforehand.
        tiers={"standard": {"service_tier": "standard_only"}, "priority": {"service_tier": "auto"}},
    ),
    "gemini": Provider(
        "https://generativelanguage.googleapis.com",
        "GEMINI_API_KEY",
        "GOOGLE_GEMINI_BASE_URL",
        kind="gemini",
        tiers={tier: {"serviceTier": tier} for tier in ("standard", "flex", "priority")},
        key_variables_too=("GOOGLE_API_KEY",),
    ),
    "vertex": Provider(
        "https://{region}-aiplatform.googleapis.com",
        None,
        "GOOGLE_VERTEX_BASE_URL",
        kind="vertex",
        region="global",
        fact_variables={
            "region": ("GOOGLE_CLOUD_LOCATION", "CLOUD_ML_REGION"),
            "project": ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "ANTHROPIC_VERTEX_PROJECT_ID"),
        },
    ),
    # The region is put into its address.
    "bedrock": Provider(
        "https://bedrock-runtime.amazonaws.com",
        None,
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
        kind="bedrock",
        fact_variables={"region": ("AWS_REGION", "AWS_DEFAULT_REGION")},
        key_variables_too=("AWS_BEARER_TOKEN_BEDROCK",),
    ),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY", refuses=frozenset({"logprobs"})),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY", names={"top_logprobs": "logprobs"}),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", names={"reasoning_effort": "reasoning.effort"}
    ),
    # It accepts a seed but ignores it.
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", refuses=frozenset({"seed"})),
    # It refuses parameters that are not in its schema.
    "mistral": Provider(
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        names={"seed": "random_seed"},
        refuses=frozenset({"logprobs", "stream_options"}),
    ),
    "fireworks": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "ollama": Provider("http://127.0.0.1:11434/v1", None, "OLLAMA_BASE_URL"),
    "vllm": Provider("http://127.0.0.1:8000/v1", None, key_variables_too=("VLLM_API_KEY",)),
    "vllm-completions": Provider(
        "http://127.0.0.1:8000/v1", None, kind="openai-completions", key_variables_too=("VLLM_API_KEY",)
    ),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", None, key_variables_too=("LLAMA_API_KEY",)),
    "sim": Provider(f"http://127.0.0.1:{SIM_PORT}/v1", None, None, identity="sim", tiers=OPENAI_TIERS),
}


def row_of_kind(kind: str) -> Provider | None:
    """Returns the provider for which a kind was made; None for a kind of many providers, such as OpenAI's protocols."""
    if kind in ("openai", "openai-completions"):
        return None
    return next((row for row in PROVIDERS.values() if row.kind == kind), None)
