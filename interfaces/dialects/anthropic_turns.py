"""What the turns and the tools of a request to Anthropic Messages hold, as parts that every provider can be told.

What only Anthropic has words for (thoughts, documents, its own tools) stays as it stood. cache_control is a mark on
what it stands beside: it says what shall be cheaper, and changes no answer. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.call import Message
from ...engine.content import Content, Image, Native, Part, Tool, ToolCall, ToolResult
from .anthropic_fields import flag, holds_only, items, mapping, refuse, refuse_type, required, text, written
from .bounds import check_messages

FAMILY = "anthropic"
_ROLES = ("user", "assistant", "system")
_MARK = "cache_control"
_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"type", "source"})
_SOURCES = {"base64": frozenset({"type", "media_type", "data"}), "url": frozenset({"type", "url"})}
_TOOL_USE = frozenset({"type", "id", "name", "input"})
_TOOL_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
# The last asks only how a call of the tool is streamed.
_TOOL = frozenset({"type", "name", "description", "input_schema", "strict", "eager_input_streaming"})
_DIRECT = {"type": "direct"}


def turns_of(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The system prompt and the conversation."""
    given = items(required(body, "messages"), "messages")
    if not given:
        refuse("messages", "at least one message is required")
    check_messages(given, "messages")
    turns = _system(body.get("system"))
    names: dict[str, str] = {}
    for place, each in enumerate(given):
        path = f"messages.{place}"
        turn = mapping(each, path)
        role = text(turn, "role", path)
        if role not in _ROLES:
            refuse_type(f"{path}.role", "'user', 'assistant' or 'system'", role)
        content = _content(required(turn, "content", path), f"{path}.content", names)
        if not content and not (role == "assistant" and place == len(given) - 1):
            refuse(path, "all messages must have non-empty content except for the optional final assistant message")
        turns.append(Message(role, content))
    return tuple(turns)


def _system(given: Any) -> list[Message]:
    if given is None or given == "" or given == []:
        return []
    if isinstance(given, str):
        return [Message("system", given)]
    for place, each in enumerate(items(given, "system")):
        kind = mapping(each, f"system.{place}").get("type")
        if kind != "text":
            refuse_type(f"system.{place}.type", "'text'", kind)
    return [Message("system", _content(given, "system", {}))]


def _content(given: Any, path: str, names: dict[str, str]) -> Content:
    """One text is that text, in a list or not. `names`: those of the tools called so far, by the calls' ids."""
    if isinstance(given, str):
        return given
    parts = tuple(_part(each, f"{path}.{place}", names) for place, each in enumerate(items(given, path)))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts


def _part(given: Any, path: str, names: dict[str, str]) -> Part:
    block, mark = _unmarked(mapping(given, path), path)
    if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
        block, inner = _unmarked_within(block, path)
        mark = mark or inner
    part = _said(block, path, names)
    return part if mark is None else Native(FAMILY, mark, part)


def _unmarked(block: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    if _MARK not in block:
        return block, None
    rest = {name: value for name, value in block.items() if name != _MARK}
    if block[_MARK] is None:
        return rest, None
    where = f"{path}.{_MARK}"
    mark = {_MARK: mapping(block[_MARK], where)}
    written(mark, where)
    return rest, mark


def _unmarked_within(block: Mapping[str, Any], path: str) -> tuple[Mapping[str, Any], Mapping[str, Any] | None]:
    """A mark on what a result holds stands on the result: a cache that ends there holds the same and a little more."""
    content, mark = [], None
    for place, each in enumerate(block["content"]):
        where = f"{path}.tool_result.content.{place}"
        rest, inner = _unmarked(mapping(each, where), where)
        content.append(rest)
        mark = inner or mark
    return {**block, "content": content}, mark


def _said(block: Mapping[str, Any], path: str, names: dict[str, str]) -> Part:
    match text(block, "type", path):
        case "text":
            return _text(block, path)
        case "image":
            return _image(block, path)
        case "tool_use":
            call = _tool_call(block, path)
            names[call.id] = call.name
            return call
        case "tool_result":
            return _tool_result(block, path, names)
        case _:
            return _own(block, path)


def _own(block: Mapping[str, Any], path: str) -> Native:
    """What can't be written again is refused here, before anyone else looks at it."""
    written(block, path)
    return Native(FAMILY, block)


def _text(block: Mapping[str, Any], path: str) -> str | Native:
    said = text(block, "text", f"{path}.text")
    if holds_only(block, _TEXT) or (not block.get("citations") and holds_only(block, _TEXT | {"citations"})):
        return said
    return _own(block, path)


def _image(block: Mapping[str, Any], path: str) -> Image | Native:
    source = mapping(required(block, "source", f"{path}.image"), f"{path}.image.source")
    kind = text(source, "type", f"{path}.image.source")
    known = _SOURCES.get(kind)
    if known is None or not holds_only(block, _IMAGE) or not holds_only(source, known):
        return _own(block, path)
    where = f"{path}.image.source.{kind}"
    if kind == "url":
        return Image(text(source, "url", where))
    data, media_type = text(source, "data", where), text(source, "media_type", where)
    return Image(f"data:{media_type};base64,{data}")


def _tool_call(block: Mapping[str, Any], path: str) -> ToolCall:
    """What is said beside the call goes back to Anthropic alone; that the model itself called is the rule."""
    path = f"{path}.tool_use"
    arguments = mapping(required(block, "input", path), f"{path}.input")
    beside = {name: value for name, value in block.items() if name not in _TOOL_USE and value is not None}
    if beside.get("caller") == _DIRECT:
        del beside["caller"]
    return ToolCall(
        text(block, "id", path),
        text(block, "name", path),
        written(arguments, f"{path}.input"),
        _own(beside, path) if beside else None,
    )


def _tool_result(block: Mapping[str, Any], path: str, names: dict[str, str]) -> ToolResult | Native:
    inner = f"{path}.tool_result"
    call_id = text(block, "tool_use_id", inner)
    is_error = flag(block, "is_error", inner) or False
    given = block.get("content")
    content: str | list[str | Image | Native]
    if given is None or isinstance(given, str):
        content = given or ""
    else:
        content = [_shown(each, f"{inner}.content.{place}") for place, each in enumerate(items(given, inner))]
    said = tuple(part for part in content if not isinstance(part, Native))
    if not holds_only(block, _TOOL_RESULT) or len(said) < len(content):
        return _own(block, path)
    if len(said) == 1 and isinstance(said[0], str):
        content = said[0]
    return ToolResult(call_id, content if isinstance(content, str) else said, names.get(call_id, ""), is_error)


def _shown(given: Any, path: str) -> str | Image | Native:
    """What a tool may have to say: texts, images, and what only Anthropic has words for."""
    block = mapping(given, path)
    match text(block, "type", path):
        case "text":
            return _text(block, path)
        case "image":
            return _image(block, path)
        case _:
            return _own(block, path)


def tools_of(body: Mapping[str, Any]) -> tuple[Tool | Native, ...] | None:
    given = body.get("tools")
    if given is None:
        return None
    return tuple(_tool(each, f"tools.{place}") for place, each in enumerate(items(given, "tools"))) or None


def _tool(given: Any, path: str) -> Tool | Native:
    tool, mark = _unmarked(mapping(given, path), path)
    told = _told(tool, path)
    return told if mark is None else Native(FAMILY, mark, told)


def _told(tool: Mapping[str, Any], path: str) -> Tool | Native:
    """Tools of Anthropic's own have a type; so may the caller's, and may then be told more than others understand."""
    kind = tool.get("type")
    if kind is not None and not isinstance(kind, str):
        refuse_type(f"{path}.type", "a valid string", kind)
    written(tool, path)
    if kind not in (None, "custom"):
        return Native(FAMILY, tool)
    path = f"{path}.custom"
    name, schema = text(tool, "name", path), mapping(required(tool, "input_schema", path), f"{path}.input_schema")
    strict = flag(tool, "strict", path)
    if not holds_only(tool, _TOOL):
        return Native(FAMILY, tool)
    description = "" if tool.get("description") is None else text(tool, "description", path)
    return Tool(name, description, schema, strict)
