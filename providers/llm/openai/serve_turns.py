"""Reads the messages of a chat completion's request as turns of a conversation.

Pure. What no neutral part can hold stands in a native part of the family `openai`, unchanged: a content part, a tool
call of another type, or an object with the message's other fields, which has no `type`. Left out, since no model sees
them: null fields, marks for a provider's prompt cache, and fields that the SDK's own parsing adds to answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....engine.call import Message
from ....engine.content import Content, Image, Native, Part, ToolCall, ToolResult
from ..serve_bounds import check_messages
from .serve_fields import CONTENT, OpenAIFields

FAMILY = "openai"
# The field beside a tool call for fields of another family's protocol that it wants back, by the family's name.
BESIDE = "extra_content"
_FAMILIES = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
MARKS = ("cache_control", "prompt_cache_breakpoint")
_READ = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_ADDED_BY_CLIENTS = frozenset({"annotations", "parsed"})
_CALL = frozenset({"id", "type", "function", "index"})
_SAYING = ("refusal", "function_call", "audio")


def turns(body: OpenAIFields) -> tuple[Message, ...]:
    # Results of tools don't name their tool; the calls before them do.
    names: dict[str, str] = {}
    check_messages(body.filled_list("messages"), "messages")
    return tuple(_turn(message, names) for message in body.objects("messages"))


def _turn(message: OpenAIFields, names: dict[str, str]) -> Message:
    role = message.text("role")
    content = message.fields.get("content")
    if content.__class__ is str and len(message.fields) == 2 and role in ("user", "assistant", "system", "developer"):
        return Message(role, content)
    message.choice("role", ROLES)
    if role == "tool":
        return Message(role, (_result(message, names),))
    parts: list[Part] = []
    if fields := _fields(message):
        parts.append(Native(FAMILY, fields))
    parts += _content_parts(message, role, is_needed=not any(name in fields for name in _SAYING))
    if role == "assistant":
        parts += _tool_calls(message, names)
    return Message(role, as_content(parts))


def as_content(parts: list[Part]) -> Content:
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else tuple(parts)


def _fields(message: OpenAIFields) -> dict[str, Any]:
    """Returns the fields of a message, unchanged, that no part of a Message can hold; empty if there are none. Cache
    marks, and fields that clients' SDKs add, are left out."""
    names = message.others(_READ | _ADDED_BY_CLIENTS | {*MARKS, "type"})
    return {name: message.kept(name) for name in names}


def _content_parts(message: OpenAIFields, role: str, *, is_needed: bool) -> list[Part]:
    content = message.fields.get("content")
    if role == "assistant" and message.fields.get("tool_calls") and content in (None, ""):
        return []
    if content is None and role in ("assistant", "function"):
        if is_needed and role == "assistant":
            why = "Invalid value for 'content': expected a string, got null."
            raise message.refusal(message.path_to("content"), why)
        return []
    if isinstance(content, str):
        return [content]
    message.filled_list("content", CONTENT)
    return [_part(part) for part in message.objects("content")]


def _part(part: OpenAIFields) -> Part:
    kind = part.text("type")
    names = part.fields.keys() - set(MARKS)
    if kind == "text" and names == {"type", "text"}:
        return part.text("text")
    if kind == "image_url" and names == {"type", "image_url"}:
        image = part.object("image_url")
        url, detail = image.text("url"), image.optional_text("detail")
        if not image.fields.keys() - {"url", "detail"}:
            return Image(url, detail)
    elif kind in ("text", "image_url"):
        part.required(kind)
    return part.native(FAMILY)


def _tool_calls(message: OpenAIFields, names: dict[str, str]) -> Iterator[Part]:
    for call in message.objects("tool_calls"):
        if call.text("type") != "function":
            yield call.native(FAMILY)
            continue
        function = call.object("function")
        id_, name = call.text("id"), function.text("name")
        names[id_] = name
        yield ToolCall(id_, name, function.text("arguments"), beside(call, _CALL, FAMILY))


def beside(call: OpenAIFields, names: frozenset[str], family: str) -> Native | None:
    """Returns the other fields of a tool call as a native part, None if it has none. They belong to another family if
    this program gave them to the client as that family's, else to the call's own."""
    rest = call.others(names)
    if not rest:
        return None
    foreign = rest.get(BESIDE)
    if isinstance(foreign, Mapping) and len(foreign) == 1:
        theirs, value = next(iter(foreign.items()))
        if theirs in _FAMILIES and theirs != family and isinstance(value, Mapping):
            call.kept(BESIDE)
            return Native(theirs, value)
    return call.native(family, rest)


def _result(message: OpenAIFields, names: dict[str, str]) -> ToolResult:
    id_, content = message.text("tool_call_id"), message.required("content")
    name = names.get(id_) or message.text("name", "")
    if isinstance(content, str):
        return ToolResult(id_, content, name)
    parts: list[str | Image] = []
    for one in message.objects("content", CONTENT):
        part = _part(one)
        if not isinstance(part, str | Image):
            raise one.wrong_choice(one.path_to("type"), ("text", "image_url"), one.fields["type"])
        parts.append(part)
    return ToolResult(id_, tuple(parts), name)
