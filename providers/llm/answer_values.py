"""Reads the values that answers of every protocol hold: objects, texts, counts of tokens, citations.

A value of another type than it should have is missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...engine.call import Citation, Usage
from .repair import mended

# No model counts this far: a usage beyond it is noise, and would keep a lane waiting for years.
TOKENS_MAX = 1_000_000_000


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Returns the objects in a list, without its other values; none if the value is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def as_index(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def is_number(value: Any) -> bool:
    # JSON's integers have no end, and lenient readers know infinities.
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e308 < value < 1e308


def count_in(holder: Any, name: str) -> int | None:
    """Returns the number of tokens in a field; None if it is missing or makes no sense."""
    value: Any = as_object(holder).get(name)
    return int(value) if is_number(value) and 0 <= value < TOKENS_MAX else None


def usage_of(
    input_tokens: int, output_tokens: int, reasoning: int = 0, cached: int = 0, total: int | None = None
) -> Usage | None:
    """Returns the usage in tokens; None if a count is negative or impossibly large. `reasoning` is added to the output
    only if `total` shows that the output does not include it."""
    if not (0 <= input_tokens < TOKENS_MAX and 0 <= output_tokens < TOKENS_MAX):
        return None
    if not reasoning and not cached:
        return Usage(input_tokens, output_tokens)
    if reasoning and total == input_tokens + output_tokens + reasoning:
        output_tokens += reasoning  # xAI does not include them in the answer's tokens, as others do
    return Usage(input_tokens, output_tokens, min(max(reasoning, 0), output_tokens), min(max(cached, 0), input_tokens))


def citation_of(url: Any, title: Any) -> Citation | None:
    """Returns the citation of a source; None if it has no address, such as a document in the request."""
    if not isinstance(url, str) or not url:
        return None
    return Citation(mended(url), mended(title) if isinstance(title, str) and title else None)


def each_once(citations: Iterable[Citation | None]) -> tuple[Citation, ...]:
    """Returns one citation for every address, in their order: the first that has a title, else the first."""
    found: dict[str, Citation] = {}
    for citation in citations:
        if citation is not None and (citation.url not in found or found[citation.url].title is None):
            found[citation.url] = citation
    return tuple(found.values())
