"""Messages of a chat completion's request as turns of a conversation.

Pure. What no neutral part can say stands in a native part of the family `openai`, as it came: a content part, a tool
call of another type, or an object of fields of the message itself, which has no `type`. Dropped, since they say
nothing to a model: fields that are null, marks of where a provider may keep a prompt, and what the SDK's own parsing
adds to answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...engine.call import Message
from ...engine.content import Content, Image, Native, Part, ToolCall, ToolResult
from .bounds import check_messages
from .dialect import Refused
from .openai_values import field, rows, some, table, text, text_in, writable, wrong_value

FAMILY = "openai"
# Beside a tool call: what another family's protocol said with it and wants back, by the family's name.
BESIDE = "extra_content"
_FAMILIES = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
ROLES = ("system", "assistant", "user", "function", "tool", "developer")
MARKS = ("cache_control", "prompt_cache_breakpoint")
_READ = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_ADDED_BY_CLIENTS = frozenset({"annotations", "parsed"})
_CALL = frozenset({"id", "type", "function", "index"})
_SAYING = ("refusal", "function_call", "audio")
_CONTENT = "one of a string or array of objects"


def turns(value: Any) -> tuple[Message, ...]:
    # Results of tools don't say which tool gave them, the calls before them do.
    names: dict[str, str] = {}
    given = some(value, "messages")
    check_messages(given, "messages")
    return tuple(_turn(table(one, where), where, names) for one, where in placed(given, "messages"))


def placed(values: Any, where: str) -> Iterator[tuple[Any, str]]:
    for index, one in enumerate(values):
        yield one, f"{where}[{index}]"


def _turn(message: Mapping[str, Any], where: str, names: dict[str, str]) -> Message:
    role = text_in(message, "role", where)
    content = message.get("content")
    if content.__class__ is str and len(message) == 2 and role in ("user", "assistant", "system", "developer"):
        return Message(role, content)
    if role not in ROLES:
        wrong_value(f"{where}.role", role, ROLES)
    if role == "tool":
        return Message(role, (_result(message, where, names),))
    parts: list[Part] = []
    if fields := _fields(message, where):
        parts.append(Native(FAMILY, fields))
    parts += _said(message, role, where, is_needed=not any(name in fields for name in _SAYING))
    if role == "assistant" and message.get("tool_calls") is not None:
        parts += _tool_calls(message["tool_calls"], f"{where}.tool_calls", names)
    return Message(role, as_content(parts))


def as_content(parts: list[Part]) -> Content:
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else tuple(parts)


def _fields(message: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Fields of a message that no part of ours is for, as they stand."""
    names = [name for name, value in message.items() if name not in _READ and value is not None]
    return {
        name: writable(message[name], f"{where}.{name}")
        for name in names
        if name not in _ADDED_BY_CLIENTS and name not in MARKS and name != "type"
    }


def _said(message: Mapping[str, Any], role: str, where: str, *, is_needed: bool) -> list[Part]:
    content = message.get("content")
    if role == "assistant" and message.get("tool_calls") and content in (None, ""):
        return []
    if content is None and role in ("assistant", "function"):
        if is_needed and role == "assistant":
            raise Refused("Invalid value for 'content': expected a string, got null.", f"{where}.content")
        return []
    if isinstance(content, str):
        return [content]
    if content is None:
        field(message, "content", where)
    return [_part(one, at) for one, at in placed(some(content, f"{where}.content", _CONTENT), f"{where}.content")]


def _part(value: Any, where: str) -> Part:
    part = table(value, where)
    kind = text_in(part, "type", where)
    named = {name for name in part if name not in MARKS}
    if kind == "text" and named == {"type", "text"}:
        return text_in(part, "text", where)
    if kind == "image_url" and named == {"type", "image_url"}:
        at = f"{where}.image_url"
        image = table(part["image_url"], at)
        url, detail = text_in(image, "url", at), image.get("detail")
        said = None if detail is None else text(detail, f"{at}.detail")
        if not image.keys() - {"url", "detail"}:
            return Image(url, said)
    elif kind in ("text", "image_url"):
        field(part, kind, where)
    return Native(FAMILY, writable(part, where))


def _tool_calls(value: Any, where: str, names: dict[str, str]) -> Iterator[Part]:
    for one, at in placed(rows(value, where), where):
        call = table(one, at)
        if text_in(call, "type", at) != "function":
            yield Native(FAMILY, writable(call, at))
            continue
        function = table(field(call, "function", at), f"{at}.function")
        id_, name = text_in(call, "id", at), text_in(function, "name", f"{at}.function")
        names[id_] = name
        rest = {key: said for key, said in call.items() if key not in _CALL and said is not None}
        yield ToolCall(id_, name, text_in(function, "arguments", f"{at}.function"), beside(rest, FAMILY, at))


def beside(rest: Mapping[str, Any], family: str, where: str) -> Native | None:
    """What stands beside a tool call: another family's own, where we gave it to the client, else this one's."""
    if not rest:
        return None
    told = rest.get(BESIDE)
    if isinstance(told, Mapping) and len(told) == 1:
        theirs, value = next(iter(told.items()))
        if theirs in _FAMILIES and theirs != family and isinstance(value, Mapping):
            return Native(theirs, writable(value, f"{where}.{BESIDE}"))
    return Native(family, writable(rest, where))


def _result(message: Mapping[str, Any], where: str, names: dict[str, str]) -> ToolResult:
    id_ = text_in(message, "tool_call_id", where)
    content, told_name = field(message, "content", where), message.get("name")
    name = names.get(id_) or (text(told_name, f"{where}.name") if told_name is not None else "")
    if isinstance(content, str):
        return ToolResult(id_, content, name)
    told: list[str | Image] = []
    for one, at in placed(rows(content, f"{where}.content", _CONTENT), f"{where}.content"):
        part = _part(one, at)
        if not isinstance(part, str | Image):
            wrong_value(f"{at}.type", one["type"], ("text", "image_url"))
        told.append(part)
    return ToolResult(id_, tuple(told), name)
