"""The query of a search call, with the number of results and the page, for the encoders of all engines.

Pure. `count` and `page` in a call's `extra` are ours; everything else there is sent to the engine unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import orjson
from msgspec import Struct

from ...engine.call import Call
from ...engine.endpoint import EncodeError, Request
from ..llm.protocol import Target
from ..llm.repair import mended

OURS = ("count", "page")
_OF_MODELS = (
    "temperature",
    "max_tokens",
    "top_p",
    "stop",
    "seed",
    "reasoning_effort",
    "json_schema",
    "logprobs",
)


class Reach(Struct, frozen=True):
    """The limits of one search engine."""

    count_max: int
    """The most results on one page."""
    pages_max: int = 1
    """The most pages of results."""
    characters_max: int | None = None
    """The most characters of a query; None: any number."""
    words_max: int | None = None
    """The most words of a query; None: any number."""

    def fitted(self, query: str) -> str:
        """Returns as much of a query's beginning as the engine takes, in whole words."""
        words = query.split(None, self.words_max)[: self.words_max] if self.words_max is not None else [query.strip()]
        fitted = " ".join(words)
        if self.characters_max is None or len(fitted) <= self.characters_max:
            return fitted
        cut = fitted[: self.characters_max + 1]
        return (cut[: cut.rindex(" ")] if " " in cut else cut[: self.characters_max]).rstrip()


class SearchQuery(Struct, frozen=True):
    """The query of a call. `count`: results on a page, None for the engine's default. `page` counts from 1. `more`: the
    engine's own parameters."""

    query: str
    count: int | None
    page: int
    more: Mapping[str, Any]


def search_query(call: Call, reach: Reach, taken: tuple[str, ...]) -> SearchQuery:
    """Returns the query of a call; raises EncodeError if the engine can't answer it. `taken` lists the names that
    `extra` must not set."""
    if not isinstance(call.input, str):
        raise EncodeError(f"a call to {call.model} holds messages: a search takes one query, as a text")
    query = reach.fitted(mended(call.input))
    if not query:
        raise EncodeError(f"the query to {call.model} is empty: a search needs a word")
    if wrong := [name for name in _OF_MODELS if getattr(call, name) is not None]:
        raise EncodeError(f"{call.model} takes no {', '.join(wrong)}: that is for models")
    extra = call.extra or {}
    if wrong := [name for name in taken if name in extra]:
        raise EncodeError(f"extra of the call to {call.model} can't set {', '.join(wrong)}: the call itself says it")
    count = _number(call, "count", reach.count_max)
    page = _number(call, "page", reach.pages_max)
    return SearchQuery(query, count, 1 if page is None else page, {k: v for k, v in extra.items() if k not in OURS})


def _number(call: Call, name: str, most: int) -> int | None:
    value = (call.extra or {}).get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise EncodeError(f"{name} ({value!r}) of the call to {call.model} must be a number from 1 to {most}")
    return value


def request_by_url(call: Call, target: Target, path: str, query: Mapping[str, str], more: Mapping[str, Any]) -> Request:
    """Returns a GET request with its parameters in the URL. The cache key is made from the same parameters as JSON."""
    written = {name: _written(call, name, value) for name, value in more.items()}
    whole = {**written, **query}
    try:
        body = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
        url = f"{target.base_url}{path}?{urlencode(whole, doseq=True)}"
    except (TypeError, ValueError) as error:
        raise EncodeError(f"the call to {call.model} can't be written as a URL ({error}): correct its extra") from error
    return Request(
        url,
        target.identity + path,
        body,
        b"",
        orjson.dumps(query, option=orjson.OPT_SORT_KEYS),
        orjson.dumps(written, option=orjson.OPT_SORT_KEYS),
        method="GET",
    )


def _written(call: Call, name: str, value: Any) -> str | list[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return list(value)
    raise EncodeError(f"{name} ({value!r}) in extra of the call to {call.model} must be a text, a number or yes or no")
