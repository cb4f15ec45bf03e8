"""Rewrites native parts of one family of protocols for another: marks and thoughts are left out, texts become plain.

A native part that remains another family's after that can't be sent, and each encoder refuses it. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import structs

from ...engine.call import Call, Message
from ...engine.content import Native, Part, unmarked
from ...engine.endpoint import Request

# The same mark as on parts, on a whole request.
CACHE_CONTROL = "cache_control"
_THINKING = ("thinking", "redacted_thinking", "reasoning")
_SIGNED_TEXT = {"text", "thought", "thoughtSignature", "thought_signature"}
_THOUGHTS_OF_CHAT = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


def written_for(call: Call, family: str) -> Call:
    """Returns the call as it can be sent to a family: without marks, and with other families' parts rewritten."""
    return _without_marks(_kept(call, family))


def parts_for(parts: Sequence[Part], family: str) -> tuple[Part, ...]:
    """Returns an answer's parts for a client of the family, rewritten where they can be. Parts that only another family
    knows stay."""
    return tuple(one for part in parts for one in _part_for(part, family))


def marked(call: Call, family: str, written: Callable[[Call], Request]) -> Request:
    """Returns the request for a call with marks (cache_control). They are sent but left out of the cache key, since
    they change no answer."""
    call = _kept(call, family)
    plain = _without_marks(call)
    if plain.extra is not None and CACHE_CONTROL in plain.extra:
        extra = {name: value for name, value in plain.extra.items() if name != CACHE_CONTROL}
        plain = structs.replace(plain, extra=extra or None)
    request = written(plain)
    if plain is call:
        return request
    sent = written(call)
    return structs.replace(request, wire=sent.wire, instead=sent.instead)


def _kept(call: Call, family: str) -> Call:
    return _rewritten(call, lambda part: _part_for(part, family), lambda tool: _part_for(tool, family, is_tool=True))


def _without_marks(call: Call) -> Call:
    return _rewritten(call, _without_mark, _without_mark)


def _rewritten(call: Call, on_part: Callable[[Any], Iterator[Any]], on_tool: Callable[[Any], Iterator[Any]]) -> Call:
    if call.tools and any(isinstance(tool, Native) for tool in call.tools):
        tools = tuple(one for tool in call.tools for one in on_tool(tool))
        if not _is_same(tools, call.tools):
            call = structs.replace(call, tools=tools)
    return with_parts(call, on_part)


def with_parts(call: Call, on_part: Callable[[Any], Iterable[Any]]) -> Call:
    """Returns the call with what `on_part` returns in place of each part; the same object if nothing changes."""
    if isinstance(call.input, str) or not any(map(_has_parts, call.input)):
        return call
    messages = tuple(one for message in call.input for one in _turn(message, on_part))
    return call if _is_same(messages, call.input) else structs.replace(call, input=messages)


def _is_same(new: Sequence[Any], old: Sequence[Any]) -> bool:
    return len(new) == len(old) and all(one is other for one, other in zip(new, old, strict=True))


def _has_parts(message: Message) -> bool:
    return not isinstance(message.content, str)


def _turn(message: Message, on_part: Callable[[Any], Iterable[Any]]) -> Iterator[Message]:
    """Yields the rewritten turn, or nothing if none of its parts is left. A single text becomes a plain string."""
    parts = (
        message.content if isinstance(message.content, str) else [x for part in message.content for x in on_part(part)]
    )
    if isinstance(parts, str) or _is_same(parts, message.content):
        yield message
    elif parts:
        yield Message(message.role, parts[0] if len(parts) == 1 and isinstance(parts[0], str) else tuple(parts))


def _without_mark(part: Any) -> Iterator[Any]:
    yield unmarked(part)


def _part_for(part: Any, family: str, *, is_tool: bool = False) -> Iterator[Any]:
    if not isinstance(part, Native):
        yield part
    elif part.on is not None:
        for one in _part_for(part.on, family, is_tool=is_tool):
            same = part if one is part.on else Native(part.protocol, part.value, one)
            yield same if part.protocol == family else one
    elif part.protocol == family or is_tool:
        yield part
    else:
        yield from _translated(part)


def _translated(part: Native) -> Iterator[str | Native]:
    """Yields a part in a form that every family knows, or unchanged if there is none. Thoughts are left out: only the
    model that had them can read them."""
    value = part.value
    match part.protocol, value.get("type"):
        case "bedrock", _:
            yield from _of_bedrock(part)
        case "gemini", _ if value.get("thought") is True:
            return
        case "gemini", _ if value.keys() <= _SIGNED_TEXT:
            yield value.get("text", "")
        case "openai", None:
            yield from _of_chat(part)
        case _, kind if kind in _THINKING:
            return
        case ("anthropic", "text") | ("openai-responses", "output_text") if isinstance(value.get("text"), str):
            yield value["text"]
        case (("openai" | "openai-responses"), "refusal") if isinstance(value.get("refusal"), str):
            yield value["refusal"]
        case _:
            yield part


def _of_chat(part: Native) -> Iterator[str | Native]:
    """Yields a chat message's own fields without thoughts: a refusal as a text, the rest unchanged."""
    rest = {name: value for name, value in part.value.items() if name not in _THOUGHTS_OF_CHAT}
    if isinstance(rest.get("refusal"), str):
        yield rest.pop("refusal")
    if rest:
        yield Native(part.protocol, rest)


def _of_bedrock(part: Native) -> Iterator[str | Native]:
    match part.value:
        case {"reasoningContent": _}:
            return
        case {"citationsContent": {"content": [*texts]}} if all(_is_text(one) for one in texts):
            yield "".join(one["text"] for one in texts)
        case _:
            yield part


def _is_text(block: Any) -> bool:
    return isinstance(block, dict) and isinstance(block.get("text"), str)
