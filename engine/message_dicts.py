"""Reads a message given as a dict, in the form of OpenAI's chat completions, which most harnesses write.

Owns which roles, keys and parts are allowed. Knows no call and no provider.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .content import Content, Image, Part, ToolCall, ToolResult, wrong_type

ROLES = ("system", "developer", "user", "assistant", "tool")
_KEYS: Mapping[str, tuple[str, ...]] = {
    "assistant": ("role", "content", "tool_calls"),
    "tool": ("role", "content", "tool_call_id", "name"),
}
_OTHER_KEYS = ("role", "content")


def role_and_content(message: Mapping[str, Any]) -> tuple[str, Content]:
    """Returns the role and the content of a message. A key whose value is None counts as absent. Raises ValueError for
    a role, key or part that is not allowed, TypeError for a value of the wrong type."""
    fields = {name: value for name, value in message.items() if value is not None}
    role = fields.get("role")
    if role not in ROLES:
        raise ValueError(f"a message's role must be one of {', '.join(ROLES)}; came {role!r}")
    allowed = _KEYS.get(role, _OTHER_KEYS)
    _check_keys(f"a message of the role {role}", fields, allowed)
    content = fields.get("content")
    if role == "tool":
        return role, (_tool_result(fields),)
    calls = _list(fields.get("tool_calls", []), "a message's tool_calls")
    if content is None and not calls:
        raise ValueError(f"a message of the role {role} must have content; came {sorted(fields)}")
    if isinstance(content, str) and not calls:
        return role, content
    parts = _parts(content) if content else []
    return role, (*parts, *map(_tool_call, calls))


def _check_keys(what: str, fields: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    unknown = [name for name in fields if name not in allowed]
    if unknown:
        raise ValueError(f"{what} may have {', '.join(allowed)}; came {', '.join(map(repr, unknown))} too")


def _parts(content: Any) -> list[Part]:
    if isinstance(content, str):
        return [content]
    return [each if isinstance(each, Part) else _part(each) for each in _list(content, "a message's content")]


def _part(part: Any) -> str | Image:
    fields = _object(part, "a part of a message's content")
    match fields.get("type"):
        case "text":
            _check_keys("a text part", fields, ("type", "text"))
            return _text(fields, "text", "a text part")
        case "image_url":
            _check_keys("an image part", fields, ("type", "image_url"))
            image = _object(fields.get("image_url"), "an image part's image_url")
            _check_keys("an image part's image_url", image, ("url", "detail"))
            return Image(_text(image, "url", "an image part"), image.get("detail"))
        case kind:
            raise ValueError(f"a part's type must be text or image_url; came {kind!r}: other parts are ms.Native")


def _tool_call(part: Any) -> ToolCall:
    fields = _object(part, "a tool call")
    _check_keys("a tool call", fields, ("id", "type", "function"))
    if fields.get("type", "function") != "function":
        raise ValueError(f"a tool call's type must be function; came {fields['type']!r}")
    function = _object(fields.get("function"), "a tool call's function")
    _check_keys("a tool call's function", function, ("name", "arguments"))
    where = "a tool call's function"
    return ToolCall(_text(fields, "id", "a tool call"), _text(function, "name", where), function.get("arguments", "{}"))


def _tool_result(fields: Mapping[str, Any]) -> ToolResult:
    what = "a message of the role tool"
    content = fields.get("content")
    if content is None:
        raise ValueError(f"{what} must have content, the tool's result; came {sorted(fields)}")
    result = content if isinstance(content, str) else tuple(map(_part, _list(content, f"{what}'s content")))
    return ToolResult(_text(fields, "tool_call_id", what), result, fields.get("name", ""))


def _text(fields: Mapping[str, Any], name: str, what: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str):
        raise wrong_type(f"{what}'s {name}", value, "text")
    return value


def _object(entry: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise wrong_type(what, entry, "a mapping")
    return {name: value for name, value in entry.items() if value is not None}


def _list(value: Any, what: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise wrong_type(what, value, "a list")
    return list(value)
