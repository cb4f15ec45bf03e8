"""Reads the values that answers of every protocol hold: objects, texts, counts of tokens, citations.

A value of another type than it should have is missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, structs

from ...engine.call import Citation, Usage
from .repair import mended

# No model counts this far: a usage beyond it is noise, and would keep a lane waiting for years.
TOKENS_MAX = 1_000_000_000
_NAME_MAX = 256
# The same two limits, for bodies that are decoded straight into structs.
Count = Annotated[int, Meta(ge=0, lt=TOKENS_MAX)]
Name = Annotated[str, Meta(max_length=_NAME_MAX)]


def as_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Returns the objects in a list, without its other values; none if the value is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def id_of(value: Any) -> str | None:
    """Returns the provider's id of an answer; None if it has none of a usual length."""
    if not isinstance(value, str) or not 0 < len(value) <= _NAME_MAX:
        return None
    return value if value.isascii() else mended(value)


def origin_of(**values: Any) -> dict[str, Any]:
    """Returns the fields of a reply that state who answered, from the values of an answer's fields; one that is no text
    of a usual length is missing."""
    return {name: id_of(value) if value else None for name, value in values.items()}


def as_index(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def is_number(value: Any) -> bool:
    # JSON's integers have no end, and lenient readers know infinities.
    return isinstance(value, int | float) and not isinstance(value, bool) and -1e308 < value < 1e308


def count_in(holder: Any, name: str) -> int | None:
    """Returns the number of tokens in a field; None if it is missing or makes no sense."""
    value: Any = as_object(holder).get(name)
    return int(value) if is_number(value) and 0 <= value < TOKENS_MAX and value == int(value) else None


def sum_in(holder: Any, name: str, *more: str) -> int | None:
    """Returns the sum of several counts of tokens, of which all but the first may be missing; None if one of them makes
    no sense."""
    fields = (name, *(each for each in more if as_object(holder).get(each) is not None))
    counts = [count for each in fields if (count := count_in(holder, each)) is not None]
    total = sum(counts)
    return total if len(counts) == len(fields) and total < TOKENS_MAX else None


def usage_of(
    input_tokens: int | None,
    output_tokens: int | None,
    reasoning: int | None = None,
    cached: int | None = None,
    total: int | None = None,
    *,
    writes: tuple[int | None, int | None] = (None, None),
    billed: float | None = None,
) -> Usage | None:
    """Returns the usage in tokens, from counts that `count_in` or a struct has read; None if nothing of it is known. A
    count that is missing is unknown unless `total` shows it, and so is an input of 0, since every prompt has tokens.
    Tokens that only `total` has count as output, the dearer kind: xAI and others do not include thinking in the
    answer's tokens. `writes` are the input tokens written to the provider's cache for its usual time, and for an hour
    (None: not counted apart)."""
    read, written, total = input_tokens or None, output_tokens, total or None
    reasoning, cached = reasoning or 0, cached or 0
    if read is None and written is None:
        return None if total is None and billed is None else Usage(None, None, total=total, billed=billed)
    if read is not None and total is not None and total >= read + (written or 0):
        written = total - read
    if written is not None and reasoning > written:
        written += reasoning
    reasoning = reasoning if written is None else min(reasoning, written)
    if writes != (None, None):
        # Parts that don't fit into the whole make no sense together: the dearer ones count first.
        brief, hour = writes[0] or 0, writes[1] or 0
        rest = TOKENS_MAX if read is None else read
        hour = min(hour, rest)
        brief = min(brief, rest - hour)
        # More reads than there is room for make no sense, and none of them counts as cheap.
        cached = cached if cached <= rest - hour - brief else 0
        is_apart = writes[1] is not None or not brief
        return Usage(read, written, reasoning, cached, brief, hour if is_apart else None, billed=billed)
    return Usage(read, written, reasoning, cached if read is None or cached <= read else 0, billed=billed)


def later_usage(earlier: Usage | None, latest: Usage | None, *, has_more: bool) -> Usage | None:
    """Returns the usage of a stream up to an event that reports `latest` (None: nothing). With `has_more` the event
    holds a part of the answer, which no earlier count of the output includes."""
    if latest is None:
        return structs.replace(earlier, output=None, total=None) if earlier is not None and has_more else earlier
    if earlier is None or latest.is_whole or latest.total is not None:
        return latest
    if latest.input is None:  # then it has none of the prompt's parts either
        parts = ("input", "cached_input", "cache_write_5m", "cache_write_1h", "place")
        latest = structs.replace(latest, **{name: getattr(earlier, name) for name in parts})
    return structs.replace(latest, output=earlier.output if latest.output is None and not has_more else latest.output)


def citation_of(url: Any, title: Any) -> Citation | None:
    """Returns the citation of a source; None if it has no address, such as a document in the request."""
    if not isinstance(url, str) or not url:
        return None
    return Citation(mended(url), mended(title) if isinstance(title, str) and title else None)


def each_once(citations: Iterable[Citation | None]) -> tuple[Citation, ...]:
    """Returns one citation for every address, in their order: the first that has a title, else the first."""
    by_url: dict[str, Citation] = {}
    for citation in citations:
        if citation is not None and (citation.url not in by_url or by_url[citation.url].title is None):
            by_url[citation.url] = citation
    return tuple(by_url.values())
