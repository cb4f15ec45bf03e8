"""Explains why the cache answers a call or not: compares its cache key with everything stored for the same prompt.

Builds a call's request as the engine does, but without an API key, which is no part of a cache key. Sends nothing and
writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
from msgspec import Struct, structs

from ...bench.evaluation.reading.stored_calls import KeyedLine
from ...configuration.errors import UsageError
from ...engine.call import Call, Reply
from ...engine.endpoint import EncodeError, Request
from ...engine.key import key_of
from ...engine.store.cache import Cache, StoredAnswer, prompt_mark
from ...engine.store.entries import StoredFailure
from ...format import count_text
from ...providers.transport.endpoint import ModelEndpoint
from ...wiring import Settings, access_to, keyless_endpoint_to

_RANGES_SHOWN = 6
_GROUPS_SHOWN = 8


class EncodedCall(Struct, frozen=True):
    """A call as the provider's request, and its cache key."""

    call: Call
    request: Request
    key: bytes
    endpoint: ModelEndpoint


class StoredSamples(Struct, frozen=True):
    """The trial numbers of stored answers to the same prompt under one endpoint and one set of parameters."""

    identity: str
    params: bytes
    samples: tuple[int, ...]


def encoded_call(call: Call, settings: Settings) -> EncodedCall:
    # No API key is needed to compute a call's cache key.
    endpoint = keyless_endpoint_to(access_to(call.model, structs.replace(settings, needs_keys=False)))
    try:
        request = endpoint.encode(call)
    except EncodeError as error:
        raise UsageError(str(error)) from error
    return EncodedCall(call, request, key_of(request, call.trial), endpoint)


def explain(cache: Cache, encoded: EncodedCall) -> list[str]:
    """Returns lines of text: the call, the verdict, then how each kind of stored answer to the same prompt differs."""
    entry = cache.get(encoded.key)
    lines = [f"call {encoded.key.hex()}", _described(encoded)]
    if entry is not None:
        reply = encoded.endpoint.decode(entry.response)
        if isinstance(reply, Reply):
            size = f"{len(entry.response.body):,} bytes"
            return [*lines, f"hit: answered from the cache ({size}, stored {_when(entry)}) by {_origin(reply)}"]
        return [*lines, f"miss: what is stored is no answer ({reply.kind}: {reply.detail}); the call is sent again"]
    alike = _alike(cache.entries(), encoded)
    if not alike:
        return [*lines, "miss: never asked; no stored answer has this prompt"]
    lines.append("miss: this prompt was asked, but not this call")
    lines += [
        f"  {count_text(len(group.samples), 'stored answer')}: {'; '.join(_differences(encoded, group))}"
        for group in alike[:_GROUPS_SHOWN]
    ]
    if len(alike) > _GROUPS_SHOWN:
        lines.append(f"and {len(alike) - _GROUPS_SHOWN:,} more kinds of calls with this prompt")
    return lines


def explain_keys(cache: Cache, line: KeyedLine) -> list[str]:
    """Returns what is stored under the keys of a record's calls: a heading, then one line each."""
    texts = [_stored(cache, key) for key in line.call_keys]
    there = sum(each is not None for each in texts)
    heading = f"{line.id} of {line.pair} ({line.status}): "
    if not texts:
        return [f"{heading}its record keeps no keys, so its calls are not known"]
    rows = [
        f"  {key}: {each or 'missing: nothing is stored under this key'}"
        for key, each in zip(line.call_keys, texts, strict=True)
    ]
    return [f"{heading}{there:,} of {len(texts):,} calls are stored", *rows]


def _stored(cache: Cache, key: str) -> str | None:
    """Returns a description of the entry under a cache key, with its time; None: there is no entry."""
    try:
        name = bytes.fromhex(key)
    except ValueError:
        return None
    entry = cache.get(name)
    if entry is not None:
        model = _parsed(entry.params).get("model")
        what = entry.url or (f"{entry.identity}, model {_value(model)}" if model else entry.identity)
        return f"stored {_when(entry)} ({len(entry.response.body):,} bytes) from {what}"
    failed = cache.failure(name)
    if failed is None:
        return None
    return f"stored {_when(failed)} as a failure ({failed.failure.kind}) of {failed.url or failed.identity}"


def _origin(reply: Reply) -> str:
    """Returns who gave an answer, by the server's own words."""
    stated = [f"{name} {getattr(reply, name)}" for name in ("fingerprint", "tier", "router") if getattr(reply, name)]
    return ", ".join([reply.served or "a model that the server does not name", *stated])


def _described(encoded: EncodedCall) -> str:
    params = ", ".join(f"{name} {_value(value)}" for name, value in orjson.loads(encoded.request.params).items())
    where = encoded.request.identity
    return f"to {where}: {params}; sample {encoded.call.trial}; prompt of {len(encoded.request.prompt):,} bytes"


def _alike(entries: Iterable[tuple[bytes, StoredAnswer]], encoded: EncodedCall) -> list[StoredSamples]:
    """Returns the stored answers to the same prompt, those with the fewest differences first."""
    mark = prompt_mark(encoded.request)
    kinds: dict[tuple[str, bytes], list[int]] = {}
    for _, entry in entries:
        if entry.prompt_mark == mark:
            kinds.setdefault((entry.identity, entry.params), []).append(entry.sample)
    groups = [StoredSamples(identity, params, tuple(sorted(samples))) for (identity, params), samples in kinds.items()]
    # The same endpoint, parameters and sample under another key is another prompt with the same mark.
    groups = [group for group in groups if _differences(encoded, group)]
    return sorted(groups, key=lambda group: (len(_differences(encoded, group)), group.identity, group.params))


def _differences(encoded: EncodedCall, group: StoredSamples) -> list[str]:
    differences = []
    if group.identity != encoded.request.identity:
        differences.append(f"endpoint {group.identity} there, {encoded.request.identity} here")
    differences += _parameters(_parsed(group.params), _parsed(encoded.request.params))
    if encoded.call.trial not in group.samples:
        differences.append(f"samples {_ranges(group.samples)} there, {encoded.call.trial} here")
    return differences


def _parameters(there: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    names = sorted(there.keys() | here.keys())
    return [
        f"{name} {_value(there[name]) if name in there else 'not sent'} there, "
        f"{_value(here[name]) if name in here else 'not sent'} here"
        for name in names
        if (name in there) != (name in here) or there.get(name) != here.get(name)
    ]


def _parsed(params: bytes) -> dict[str, Any]:
    try:
        fields = orjson.loads(params)
    except orjson.JSONDecodeError:
        return {"parameters": "unreadable"}
    return fields if isinstance(fields, dict) else {"parameters": fields}


def _value(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:59]}…"


def _ranges(numbers: Iterable[int]) -> str:
    """Returns numbers as ranges: `0 to 14, 17`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number <= runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(low) if low == high else f"{low} to {high}" for low, high in runs[:_RANGES_SHOWN]]
    return ", ".join(texts) + (", …" if len(runs) > _RANGES_SHOWN else "")


def _when(entry: StoredAnswer | StoredFailure) -> str:
    return datetime.fromtimestamp(entry.received_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
