"""A search as it is asked: the query, how many results of which page, and how that becomes a request.

What every engine's encode needs. Pure. `count` and `page` in a call's `extra` are ours; whatever else stands there is
the engine's own word and is sent as it is.
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
    """How far one engine goes: results a page, pages, and the longest query that it takes."""

    count_max: int
    pages_max: int = 1
    characters_max: int | None = None
    words_max: int | None = None

    def fitted(self, query: str) -> str:
        """As much of a query as the engine takes, in whole words."""
        words = query.split(None, self.words_max)[: self.words_max] if self.words_max is not None else [query.strip()]
        fitted = " ".join(words)
        if self.characters_max is None or len(fitted) <= self.characters_max:
            return fitted
        cut = fitted[: self.characters_max + 1]
        return (cut[: cut.rindex(" ")] if " " in cut else cut[: self.characters_max]).rstrip()


class Asked(Struct, frozen=True):
    """`count` None: as many as the engine gives. `more`: the engine's own parameters."""

    query: str
    count: int | None
    page: int
    more: Mapping[str, Any]


def asked_of(call: Call, reach: Reach, taken: tuple[str, ...]) -> Asked:
    """What a call asks, held against what the engine can do; `taken` are names that `extra` may not set."""
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
    return Asked(query, count, 1 if page is None else page, {k: v for k, v in extra.items() if k not in OURS})


def _number(call: Call, name: str, most: int) -> int | None:
    value = (call.extra or {}).get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise EncodeError(f"{name} ({value!r}) of the call to {call.model} must be a number from 1 to {most}")
    return value


def request_by_url(call: Call, target: Target, path: str, query: Mapping[str, str], more: Mapping[str, Any]) -> Request:
    """A GET whose parameters stand in its URL. The same parameters as JSON are what is hashed."""
    written = {name: _written(call, name, value) for name, value in more.items()}
    whole = {**written, **query}
    try:
        body = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
        url = f"{target.base_url}{path}?{urlencode(whole, doseq=True)}"
    except (TypeError, ValueError) as error:
        raise EncodeError(f"the call to {call.model} can't be written as a URL ({error}): mend its extra") from error
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
