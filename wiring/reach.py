"""Where the settings say that a model or a search engine is reached: its address, its API keys, its protocol.

Decides between models and searches. Opens nothing and sends nothing.
"""

from __future__ import annotations

from pathlib import Path

from msgspec import structs

from ..engine.lanes.lane_files import lane_stem
from ..providers.access import Access, accesses, protocol_of
from ..providers.search.access import is_search, search_accesses
from .settings import Settings


def access_to(model: str, settings: Settings) -> Access:
    """Returns the address and the first API key of a model. Raises ConfigurationError if something is missing."""
    return accesses_to(model, settings)[0]


def accesses_to(model: str, settings: Settings) -> tuple[Access, ...]:
    """Returns how to reach a model or search engine, once for each API key; two variables with the same value count as
    one. In mode strict nothing is sent, so no API key is needed."""
    means = settings.means
    if settings.mode == "strict":
        means = structs.replace(means, needs_keys=False)
    if is_search(model):
        return search_accesses(model, means, settings.searches, settings.others.search)
    return accesses(model, means)


def family_of(model: str, settings: Settings) -> str:
    """Returns the name of a model's wire protocol: `openai` (chat completions of any server), `openai-responses`,
    `anthropic`, `gemini` or `bedrock`, else the protocol's own name. No API key and no address needs to be
    configured."""
    protocol = protocol_of(model, settings.means)
    return protocol.family or protocol.kind


def stem_of(access: Access, settings: Settings) -> Path:
    """Returns the path of a lane's files without their suffixes."""
    return lane_stem(settings.cache_folder(), access.target.base_url, access.target.model, access.account)
