"""Shared pieces of the answers of all served dialects: an outcome's reply, its usage, an id for it, JSON.

Pure: values in, values and bytes out. Knows no dialect's words.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from hashlib import sha256
from operator import add
from typing import Any

import orjson

from ...engine.call import NOT_REPORTED, Call, Outcome, Reply, Usage
from ...engine.content import ToolCall
from .blocks import object_in
from .repair import mended
from .serve_dialect import ServedRequest

# Written in place of a log-probability that JSON can't hold, such as minus infinity.
LOGPROB_MIN = -9999.0
ID_CHARS = 29


def reply_of(outcome: Outcome) -> Reply:
    if outcome.reply is None:
        raise ValueError("an answer is made of outcomes that have a reply")
    return outcome.reply


def digest(call: Call) -> str:
    """Returns a name of 29 characters for the answer to a call without a known cache key; equal calls share it."""
    identity = repr((call.model, call.input, call.extra, call.tools, call.trial))
    return sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:ID_CHARS]


def model_of(request: ServedRequest, outcomes: Sequence[Outcome]) -> str:
    """Returns the model that answered, as its server states it; the client's own word where none is stated."""
    return reply_of(outcomes[0]).served or request.model


def usage_of(outcomes: Iterable[Outcome]) -> Usage | None:
    """Returns the sum of the tokens of all outcomes; None if one of them was not reported in whole, since no dialect
    has a word for that."""
    usage = reduce(add, (reply_of(outcome).usage or NOT_REPORTED for outcome in outcomes))
    return usage if usage.is_whole else None


def own_fields(call: ToolCall, family: str) -> Mapping[str, Any]:
    """Returns the fields beside a tool call if they are this family's own and can be written, else an empty mapping."""
    native = call.native
    return native.value if native is not None and native.protocol == family and is_writable(native.value) else {}


def arguments_of(call: ToolCall) -> str:
    """Returns a tool call's arguments as a JSON object on one line, since clients of some dialects read only objects:
    any other text becomes its field `arguments`, an empty text an empty object."""
    if not call.arguments.strip():
        return "{}"
    if object_in(call.arguments) is None:
        return dumps({"arguments": call.arguments}).decode()
    # Line breaks can occur only between tokens here. Files of answers need one line for each.
    return call.arguments.replace("\n", " ").replace("\r", " ")


def dumps(value: Any) -> bytes:
    """Returns a value as JSON; texts that UTF-8 can't hold are mended."""
    try:
        return orjson.dumps(value)
    except (orjson.JSONEncodeError, TypeError):
        return orjson.dumps(_mended(value))


def as_it_stands(value: Mapping[str, Any]) -> orjson.Fragment:
    """Returns an object as JSON that is already written, since within an answer it might be nested too deeply."""
    return orjson.Fragment(dumps(value))


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, Mapping):
        return {mended(str(name)): _mended(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(one) for one in value]
    return value


def is_writable(value: Any) -> bool:
    """Returns whether a value can be written as JSON, and is not nested too deeply for that."""
    try:
        orjson.dumps(_mended(value))
    except (orjson.JSONEncodeError, TypeError, RecursionError):
        return False
    return True
