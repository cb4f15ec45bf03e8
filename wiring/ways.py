"""The ways to a model or a search engine: its address, its keys, the endpoint there, and where its lane's files lie.

Chooses between models and searches; how each is reached, providers know.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from ..engine.lane_files import lane_stem
from ..providers.access import Access, accesses, protocol_of
from ..providers.access import keyless_endpoint_to as keyless_model_endpoint_to
from ..providers.endpoint import ModelEndpoint
from ..providers.llm import azure, vertex, vertex_anthropic
from ..providers.search.access import SearchAccess, is_search, keyless_search_endpoint_to, search_accesses
from .settings import Settings

# Protocols that write in another's words, for whatever a call holds beside text.
_FAMILIES = (
    ("openai", azure.PROTOCOL),
    ("openai", vertex.OPEN),
    ("gemini", vertex.GEMINI),
    ("anthropic", vertex_anthropic.PROTOCOL),
)


def access_to(model: str, settings: Settings) -> Access:
    """Where a model string leads and with which key, the first where there are several, or a ConfigurationError that
    says what is missing."""
    return accesses_to(model, settings)[0]


def accesses_to(model: str, settings: Settings) -> tuple[Access, ...]:
    """The ways to one model or search engine, one for each key; two variables that hold the same key are one way. In
    mode strict nothing is sent, so no key is needed."""
    means = settings.means
    if settings.mode == "strict":
        means = structs.replace(means, needs_keys=False)
    if is_search(model):
        return search_accesses(model, means, settings.searches, settings.others.search)
    return accesses(model, means)


def family_of(model: str, settings: Settings) -> str:
    """In whose words a model is spoken with: `openai` (chat completions, whoever serves them), `openai-responses`,
    `anthropic`, `gemini` or `bedrock`, else the name of its own protocol. No key and no address is needed."""
    protocol = protocol_of(model, settings.means)
    return next((family for family, spoken in _FAMILIES if protocol is spoken), protocol.kind)


def keyless_endpoint_to(access: Access) -> ModelEndpoint:
    """For encode and decode alone: what a call's key in the cache is, no credentials tell."""
    if isinstance(access, SearchAccess):
        return keyless_search_endpoint_to(access)
    return keyless_model_endpoint_to(access)


def stem_of(access: Access, settings: Settings) -> Path:
    """Where a lane's files lie, without their suffixes."""
    return lane_stem(settings.cache_folder(), access.target.base_url, access.target.model, access.account)
