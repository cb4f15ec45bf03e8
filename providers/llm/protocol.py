"""How a wire protocol plugs in: what it is told of its target, what it must answer, and how a request is put together.

A protocol is a module beside this one that holds a `PROTOCOL`: two pure functions, a call to bytes and bytes to a
reply or a fault. It knows no socket, no key and no environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import orjson
from msgspec import Struct

from ...engine.call import Call, Reply
from ...engine.endpoint import EncodeError, Fault, Request, Response

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NOTHING: Mapping[str, Any] = {}


class Target(Struct, frozen=True):
    """One model at one address, and what is known of how it is asked.

    `identity` stands for the base URL in keys of calls. `names`: our name of a parameter to the one that it has here,
    where that is not the protocol's own; dots lead into an object (`reasoning.effort`). `refuses`: our names of what
    it is known never to take. `version`, `project` and `region` mean what the protocol makes of them.
    """

    base_url: str
    identity: str
    model: str
    provider: str = ""
    names: Mapping[str, str] = {}
    refuses: frozenset[str] = frozenset()
    version: str | None = None
    project: str | None = None
    region: str | None = None
    headers: Mapping[str, str] = {}

    @property
    def full_name(self) -> str:
        return f"{self.provider}/{self.model}" if self.provider else self.model

    @property
    def specified(self) -> str:
        """What stands for the address in a run's specification."""
        return self.identity if self.version is None else f"{self.identity} ({self.version})"


def no_headers(target: Target) -> Mapping[str, str]:
    return _NOTHING


def nothing_sent(model: str) -> int | None:
    return None


class Listener(Protocol):
    """Of one answer that still comes: the visible text in each piece of its bytes."""

    def take(self, chunk: bytes) -> str: ...


class WireProtocol(Struct, frozen=True):
    """`kind` is its name in a configuration. `headers`: what every request has besides Content-Type and credentials,
    such as a version of the API. `listen`: who hears what is said while an answer is streamed; None: nobody can.
    `max_tokens_sent`: what goes to a model (its name without the provider) as max_tokens where a call sets none; None:
    nothing."""

    kind: str
    encode: Callable[[Call, Target], Request]
    decode: Callable[[Response], Reply | Fault]
    headers: Callable[[Target], Mapping[str, str]] = no_headers
    listen: Callable[[], Listener] | None = None
    max_tokens_sent: Callable[[str], int | None] = nothing_sent


def request_of(
    call: Call,
    target: Target,
    path: str,
    params: Mapping[str, Any],
    prompt: Mapping[str, Any],
    *,
    streamed: Mapping[str, Any] = _NOTHING,
    stream_path: str | None = None,
    identity: str | None = None,
) -> Request:
    """The request whose body is `params` and `prompt` (what is asked: messages, and where the protocol wants it apart,
    the system prompt). `streamed` is added to it, and `stream_path` takes the path's place, where the answer is
    streamed. `identity`: what stands in the key behind the target's own instead of the path."""
    whole = dict(params)
    halves = []
    try:
        for name, value in prompt.items():
            half = orjson.dumps(value)
            halves.append(half)
            whole[name] = orjson.Fragment(half)
        body = wire = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
        if call.stream and streamed:
            wire = orjson.dumps({**streamed, **whole}, option=orjson.OPT_SORT_KEYS)
        stated = orjson.dumps(params, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise EncodeError(f"the call to {call.model} can't be written as JSON ({error}): mend its text") from error
    return Request(
        target.base_url + (stream_path if call.stream and stream_path is not None else path),
        target.identity + (path if identity is None else identity),
        body,
        wire,
        b",".join(halves),
        stated,
        call.stream,
    )


def refuse_known(call: Call, target: Target) -> None:
    """What the target is known to refuse is refused before it is sent."""
    for name in target.refuses:
        value = getattr(call, name, None)
        if value is not None:
            raise EncodeError(
                f"{target.full_name} is known to take no {name}: leave it out, or put it into extra if it does by now"
            )


def put(params: dict[str, Any], name: str, value: Any) -> None:
    """Set a parameter; dots in its name lead into an object."""
    outer, dot, inner = name.partition(".")
    if dot:
        put(params.setdefault(outer, {}), inner, value)
    else:
        params[name] = value


def add_extra(call: Call, params: dict[str, Any], taken: tuple[str, ...]) -> None:
    """The caller's own parameters, as they are; those in `taken` are the call's alone to set."""
    if call.extra is None:
        return
    if wrong := [name for name in taken if name in call.extra]:
        raise EncodeError(f"extra of the call to {call.model} can't set {', '.join(wrong)}: the call itself says it")
    _refuse_infinite(call, "extra", call.extra)
    if call.json_schema is None:
        params.update(call.extra)
    else:
        params.update({name: _with_schema(call, value) for name, value in call.extra.items()})


def _with_schema(call: Call, value: Any) -> Any:
    """A client may say its schema once more, under a name of its own: its order is the same there."""
    if value == call.json_schema:
        return schema_of(call)
    return {name: _with_schema(call, inner) for name, inner in value.items()} if isinstance(value, Mapping) else value


def schema_of(call: Call) -> orjson.Fragment:
    """The call's JSON schema with its properties in their own order, in which answers will have them."""
    return as_it_stands(call, "json_schema", call.json_schema)


def as_it_stands(call: Call, name: str, value: Any) -> orjson.Fragment:
    """A value whose names keep their own order in the body: what else stands there is sorted. `name`: what of the call
    it is."""
    _refuse_infinite(call, name, value)
    try:
        return orjson.Fragment(orjson.dumps(value))
    except (orjson.JSONEncodeError, TypeError) as error:
        raise EncodeError(f"{name} of the call to {call.model} can't be written as JSON ({error})") from error


def named_schema(call: Call) -> dict[str, Any]:
    """As OpenAI wants it: under a name, which is its title where it has one, and strictly kept."""
    title = None if call.json_schema is None else call.json_schema.get("title")
    name = _NO_NAME.sub("_", title)[:64] if isinstance(title, str) and title else "answer"
    return {"name": name, "schema": schema_of(call), "strict": True}


def _refuse_infinite(call: Call, name: str, value: Any) -> None:
    """JSON has no word for what is not finite, and its writer would say null. Values that hold themselves are left to
    that writer."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, float):
            if not math.isfinite(each):
                raise EncodeError(f"{name} of the call to {call.model} holds {each}: it must be finite numbers alone")
        elif isinstance(each, Mapping | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(each.values() if isinstance(each, Mapping) else each)


def finite(call: Call, name: str, value: float) -> float:
    """0 and 0.0 and -0.0 are one request; JSON has no words for infinities."""
    if not math.isfinite(value):
        raise EncodeError(f"{name} ({value}) of the call to {call.model} must be a finite number")
    return float(value) + 0.0
