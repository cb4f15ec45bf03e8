"""The interface of a wire protocol, the target of its requests, and how all protocols write a request.

A protocol is a module in a vendor's folder with a `PROTOCOL`: two pure functions, from a call to bytes and from bytes
to a reply or a fault. It knows no socket, no API key and no environment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

import orjson
from msgspec import Struct

from ...engine.call import Call, Reply
from ...engine.content import Tool
from ...engine.endpoint import EncodeError, Fault, Request, Response

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_TOKENS = re.compile(r"-?\d{1,9}")
_NOTHING: Mapping[str, Any] = {}


class Target(Struct, frozen=True):
    """One model at one address, and how it is called there."""

    base_url: str
    """The address."""
    identity: str
    """The text that replaces the address in cache keys."""
    model: str
    """The model's name at the provider."""
    provider: str = ""
    """The provider's name."""
    names: Mapping[str, str] = {}
    """Our names of parameters, with the provider's; dots lead into an object, as in `reasoning.effort`."""
    refuses: frozenset[str] = frozenset()
    """Parameters, in our names, that it is known never to take."""
    version: str | None = None
    """The API's version; None: the protocol's default."""
    project: str | None = None
    """The project, for Google's cloud; None: not set."""
    region: str | None = None
    """The region, for providers with regions; None: not set."""
    headers: Mapping[str, str] = {}
    """Headers of every request."""
    extra: Mapping[str, Any] = {}
    """Fields of every request's body, as a configuration sets them for this model."""
    store: bool | None = None
    """Whether the provider may keep answers, for protocols that say it; None: its default. In no key."""
    tiers: tuple[Mapping[str, Any], ...] = ()
    """The field that asks for a tier of service, then that of the attempt which follows where it has no room. In no
    key."""

    @property
    def full_name(self) -> str:
        """The model with its provider, such as `openai/gpt-6-luna`."""
        return f"{self.provider}/{self.model}" if self.provider else self.model

    @property
    def specified(self) -> str:
        """The address as a run's specification holds it, with the version and the extra fields where they are set."""
        version = "" if self.version is None else f" ({self.version})"
        extra = f" with {orjson.dumps(self.extra, option=orjson.OPT_SORT_KEYS).decode()}" if self.extra else ""
        return f"{self.identity}{version}{extra}"


def no_headers(target: Target) -> Mapping[str, str]:
    return _NOTHING


def nothing_sent(model: str) -> int | None:
    return None


class AnswerListener(Protocol):
    """A reader of the visible text in an answer that is still being received."""

    def take(self, chunk: bytes) -> str:
        """Returns the text that the next bytes complete; empty if they complete none."""
        ...


class WireProtocol(Struct, frozen=True):
    """A wire protocol: calls to bytes, and bytes to replies."""

    kind: str
    """Its name in a configuration."""
    encode: Callable[[Call, Target], Request]
    """Writes a call as a request."""
    decode: Callable[[Response], Reply | Fault]
    """Returns the reply or the fault of a response."""
    headers: Callable[[Target], Mapping[str, str]] = no_headers
    """The headers of every request besides Content-Type and credentials."""
    listen: Callable[[], AnswerListener] | None = None
    """Returns a new reader of the text of one streamed answer; None: the text can be read only at the end."""
    max_tokens_sent: Callable[[str], int | None] = nothing_sent
    """Returns the max_tokens that is sent if a call sets none, for a model's name without the provider; None: none is
    sent."""
    efforts: tuple[str, ...] = ("none", "minimal", "low", "medium", "high", "xhigh", "max", "default")
    """The words that it has for a reasoning effort; `N` stands for a number of tokens."""
    caches_marked: bool = False
    """Whether of a prompt only what is marked is written to the provider's cache."""
    opens_any_file: bool = False
    """Whether what an image's address leads to may be a video or a document, which it reads too."""
    is_verbatim: bool = False
    """Whether a prompt that is a text, or one turn of the user, stands in a request as it is, and nothing else of it
    depends on that text: calls that differ in the text alone are then written from one."""
    family: str = ""
    """The family of protocols that have its form for everything in a call beside the text; empty: it has one of its
    own."""

    def efforts_among(self, levels: Collection[str] | None) -> tuple[str, ...]:
        """Returns its reasoning efforts that are among a model's levels; None: these are not known."""
        return tuple(word for word in self.efforts if levels is None or word in levels)


def request_of(
    call: Call,
    target: Target,
    path: str,
    params: Mapping[str, Any],
    prompt: Mapping[str, Any],
    *,
    streamed: Mapping[str, Any] = _NOTHING,
    unkeyed: Mapping[str, Any] = _NOTHING,
    stream_path: str | None = None,
    identity: str | None = None,
) -> Request:
    """Returns the request whose body is `params` and `prompt` (the messages, and the system prompt where the protocol
    has a field for it). If the answer is to be streamed, `streamed` is added to the body and `stream_path` replaces the
    path. `unkeyed` is added to the body, but not to the cache key, in which `identity` replaces the path."""
    whole = dict(params)
    halves = []
    try:
        for name, value in prompt.items():
            half = orjson.dumps(value)
            halves.append(half)
            whole[name] = orjson.Fragment(half)
        body = wire = orjson.dumps(whole, option=orjson.OPT_SORT_KEYS)
        added = {**streamed, **unkeyed} if call.stream else unkeyed
        instead = None
        if target.tiers:
            wire, *others = (
                orjson.dumps({**added, **tier, **whole}, option=orjson.OPT_SORT_KEYS) for tier in target.tiers
            )
            instead = next((other for other in others if other != wire), None)
        elif added:
            wire = orjson.dumps({**added, **whole}, option=orjson.OPT_SORT_KEYS)
        stated = orjson.dumps(params, option=orjson.OPT_SORT_KEYS)
    except (orjson.JSONEncodeError, TypeError) as error:
        raise EncodeError(f"the call to {call.model} can't be written as JSON ({error}): correct its text") from error
    return Request(
        target.base_url + (stream_path if call.stream and stream_path is not None else path),
        target.identity + (path if identity is None else identity),
        body,
        wire,
        b",".join(halves),
        stated,
        call.stream,
        instead=instead,
    )


def check_absent(call: Call, names: Collection[str], message: str) -> None:
    """Raises EncodeError if the call sets one of these parameters, which the protocol lacks; its name replaces `NAME`
    in the message."""
    for name in names:
        if getattr(call, name) is not None:
            raise EncodeError(f"{call.model}: {message.replace('NAME', name)}")


def sampling_of(
    call: Call,
    target: Target,
    *,
    max_tokens: str = "max_tokens",
    top_p: str = "top_p",
    stop: str = "stop",
    seed: str = "seed",
) -> dict[str, Any]:
    """Returns the call's sampling parameters that are set, under the names that the protocol has for them. Raises
    EncodeError if the call sets any parameter that the target is known to refuse."""
    for name in target.refuses:
        if getattr(call, name, None) is not None:
            raise EncodeError(
                f"{target.full_name} is known to take no {name}: leave it out, or put it into extra if it does by now"
            )
    sampling: dict[str, Any] = {}
    if call.temperature is not None:
        sampling["temperature"] = require_finite(call, "temperature", call.temperature)
    if call.max_tokens is not None:
        sampling[max_tokens] = call.max_tokens
    if call.top_p is not None:
        sampling[top_p] = require_finite(call, "top_p", call.top_p)
    if call.stop is not None:
        sampling[stop] = call.stop
    if call.seed is not None:
        sampling[seed] = call.seed
    return sampling


def put(params: dict[str, Any], name: str, value: Any) -> None:
    """Sets a parameter in `params`; a name with a dot, such as `reasoning.effort`, sets it in an object there."""
    outer, dot, inner = name.partition(".")
    if dot:
        put(params.setdefault(outer, {}), inner, value)
    else:
        params[name] = value


def add_extra(call: Call, params: dict[str, Any], taken: tuple[str, ...]) -> None:
    """Adds the caller's own parameters as they are. Raises EncodeError for those in `taken`, which the call itself
    sets."""
    if call.extra is None:
        return
    if wrong := [name for name in taken if name in call.extra]:
        raise EncodeError(f"extra of the call to {call.model} can't set {', '.join(wrong)}: the call itself says it")
    _check_finite(call, "extra", call.extra)
    if call.json_schema is None:
        params.update(call.extra)
    else:
        params.update({name: _with_schema(call, value) for name, value in call.extra.items()})


def _with_schema(call: Call, value: Any) -> Any:
    """Returns a value of `extra` in which each part equal to the call's JSON schema is replaced by that schema with its
    properties in their own order; the rest of a body is sorted."""
    if value == call.json_schema:
        return schema_of(call)
    return {name: _with_schema(call, inner) for name, inner in value.items()} if isinstance(value, Mapping) else value


def schema_of(call: Call) -> orjson.Fragment:
    """Returns the call's JSON schema with its properties in their own order, which answers follow."""
    return as_it_stands(call, "json_schema", call.json_schema)


def add_object(call: Call, params: dict[str, Any], name: str, ours: Mapping[str, Any]) -> None:
    """Adds our fields to the object of this name, in which the caller's own go first; one without fields is left out.
    Raises EncodeError if the caller has anything else there."""
    caller_fields = params.pop(name, {})
    if not isinstance(caller_fields, Mapping):
        raise EncodeError(f"{call.model}: {name} in extra must be an object")
    if ours or caller_fields:
        params[name] = {**ours, **caller_fields}


def described(tool: Tool, *, has_strict: bool = True) -> dict[str, Any]:
    """Returns the fields of a tool that all protocols have, those that are set: its name, its description and, with
    `has_strict`, whether its arguments follow their schema strictly."""
    fields: dict[str, Any] = {"name": tool.name}
    if tool.description:
        fields["description"] = tool.description
    if has_strict and tool.strict is not None:
        fields["strict"] = tool.strict
    return fields


def schema_in(call: Call, tool: Tool, name: str) -> dict[str, Any]:
    """Returns the schema of a tool's arguments in a field of this name; no field if it has none."""
    if tool.parameters is None:
        return {}
    return {name: as_it_stands(call, f"the parameters of tool {tool.name}", tool.parameters)}


def as_it_stands(call: Call, name: str, value: Any) -> orjson.Fragment:
    """Returns a value as JSON whose names keep their own order, while the rest of a body is sorted; raises EncodeError.
    `name` is the value's name in the error."""
    _check_finite(call, name, value)
    try:
        return orjson.Fragment(orjson.dumps(value))
    except (orjson.JSONEncodeError, TypeError) as error:
        raise EncodeError(f"{name} of the call to {call.model} can't be written as JSON ({error})") from error


def named_schema(call: Call) -> dict[str, Any]:
    """Returns the call's schema as OpenAI wants it: with a name and with `strict`."""
    return {"name": schema_name(call.json_schema or {}), "schema": schema_of(call), "strict": True}


def schema_name(schema: Mapping[str, Any]) -> str:
    """Returns the name that OpenAI is sent for a schema: its title, or `answer` if it has none."""
    title = schema.get("title")
    return _NO_NAME.sub("_", title)[:64] if isinstance(title, str) and title else "answer"


def _check_finite(call: Call, name: str, value: Any) -> None:
    """Raises EncodeError if a value holds an infinity or NaN, which JSON lacks and its writer would turn into null. A
    value that contains itself is not followed twice; the writer refuses it."""
    waiting, seen = [value], set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, float):
            if not math.isfinite(each):
                raise EncodeError(f"{name} of the call to {call.model} holds {each}: it must be finite numbers alone")
        elif isinstance(each, Mapping | list | tuple) and id(each) not in seen:
            seen.add(id(each))
            waiting.extend(each.values() if isinstance(each, Mapping) else each)


def is_effort(word: str, efforts: Collection[str]) -> bool:
    """Returns whether a word is one of these reasoning efforts, of which `N` stands for a number of tokens."""
    return word in efforts or ("N" in efforts and _TOKENS.fullmatch(word) is not None)


def require_finite(call: Call, name: str, value: float) -> float:
    """Returns a finite number as a float, with 0, 0.0 and -0.0 as the same number; raises EncodeError for any other."""
    if not math.isfinite(value):
        raise EncodeError(f"{name} ({value}) of the call to {call.model} must be a finite number")
    return float(value) + 0.0
