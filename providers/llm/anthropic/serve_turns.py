"""Reads the turns and the tools of a request to Anthropic Messages as parts that every provider can be sent.

What only Anthropic knows (thoughts, documents, its own tools) stays unchanged. cache_control is a mark on the block
that it stands in: it lowers the price, and changes no answer. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....engine.call import Message
from ....engine.content import Content, Image, Native, Part, Tool, ToolCall, ToolResult
from ..serve_bounds import check_messages
from .serve_fields import AnthropicFields

FAMILY = "anthropic"
_ROLES = ("user", "assistant", "system")
_MARK = "cache_control"
_TEXT = frozenset({"type", "text"})
_IMAGE = frozenset({"type", "source"})
_SOURCES = {"base64": frozenset({"type", "media_type", "data"}), "url": frozenset({"type", "url"})}
_TOOL_USE = frozenset({"type", "id", "name", "input"})
_TOOL_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
# The last field only sets how a call of the tool is streamed.
_TOOL = frozenset({"type", "name", "description", "input_schema", "strict", "eager_input_streaming"})
_DIRECT = {"type": "direct"}


def turns_of(body: AnthropicFields) -> tuple[Message, ...]:
    """Returns the messages: the system prompt, if any, and the conversation."""
    body.required("messages")
    messages = body.list("messages")
    if not messages:
        raise body.refusal("messages", "messages: at least one message is required")
    check_messages(messages, "messages")
    turns = _system(body)
    names: dict[str, str] = {}
    for place, turn in enumerate(body.objects("messages")):
        role = turn.choice("role", _ROLES)
        turn.required("content")
        content = _content(turn, "content", names)
        if not content and not (role == "assistant" and place == len(messages) - 1):
            why = "all messages must have non-empty content except for the optional final assistant message"
            raise turn.refusal(turn.path, f"{turn.path}: {why}")
        turns.append(Message(role, content))
    return tuple(turns)


def _system(body: AnthropicFields) -> list[Message]:
    if body.fields.get("system") in (None, "", []):
        return []
    if not isinstance(body.fields["system"], str):
        for block in body.objects("system"):
            if (kind := block.fields.get("type")) != "text":
                raise block.wrong_choice(block.path_to("type"), ("text",), kind)
    return [Message("system", _content(body, "system", {}))]


def _content(holder: AnthropicFields, name: str, names: dict[str, str]) -> Content:
    """Returns the content in the field `name`: a plain string where it is one or a list of one text block, else its
    parts. `names` maps tool-call ids to tool names; it is read for tool results, and this turn's calls are added to
    it."""
    value = holder.fields[name]
    if isinstance(value, str):
        return value
    parts = tuple(_part(block, names) for block in holder.objects(name))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts


def _part(marked: AnthropicFields, names: dict[str, str]) -> Part:
    block, mark = _unmarked(marked)
    if block.fields.get("type") == "tool_result" and isinstance(block.fields.get("content"), list):
        block, inner = _unmarked_within(block)
        mark = mark or inner
    part = _block_part(block, names)
    return part if mark is None else Native(FAMILY, mark, part)


def _unmarked(block: AnthropicFields) -> tuple[AnthropicFields, Mapping[str, Any] | None]:
    """Returns a block or a tool without its cache_control, and that mark; None if it has none."""
    if _MARK not in block.fields:
        return block, None
    rest = {name: value for name, value in block.fields.items() if name != _MARK}
    mark = None
    if block.has(_MARK):
        marking = block.object(_MARK)
        mark = {_MARK: marking.raw}
        marking.written(mark)
    return AnthropicFields(rest, block.path), mark


def _unmarked_within(block: AnthropicFields) -> tuple[AnthropicFields, Mapping[str, Any] | None]:
    """Returns a tool's result without the marks on its content, and the last of them, or None, as the mark of the whole
    result: a cache that ends there holds the same and a little more."""
    content, mark = [], None
    for each in block.under("tool_result").objects("content"):
        rest, inner = _unmarked(each)
        content.append(rest.raw)
        mark = inner or mark
    return AnthropicFields({**block.fields, "content": content}, block.path), mark


def _block_part(block: AnthropicFields, names: dict[str, str]) -> Part:
    match block.text("type"):
        case "tool_use":
            call = _tool_call(block)
            names[call.id] = call.name
            return call
        case "tool_result":
            return _tool_result(block, names)
        case _:
            return _result_part(block)


def _result_part(block: AnthropicFields) -> str | Image | Native:
    """Returns a block that results of tools may hold as well as turns: a text, an image, or as a native part any
    other."""
    match block.text("type"):
        case "text":
            return _text(block)
        case "image":
            return _image(block)
        case _:
            return block.native(FAMILY)


def _text(block: AnthropicFields) -> str | Native:
    text = block.under("text").text("text")
    text_fields = _TEXT if block.fields.get("citations") else _TEXT | {"citations"}
    return text if block.holds_only(text_fields) else block.native(FAMILY)


def _image(block: AnthropicFields) -> Image | Native:
    source = block.under("image").object("source")
    kind = source.text("type")
    source_fields = _SOURCES.get(kind)
    if source_fields is None or not block.holds_only(_IMAGE) or not source.holds_only(source_fields):
        return block.native(FAMILY)
    source = source.under(kind)
    if kind == "url":
        return Image(source.text("url"))
    data, media_type = source.text("data"), source.text("media_type")
    return Image(f"data:{media_type};base64,{data}")


def _tool_call(block: AnthropicFields) -> ToolCall:
    """Returns a tool call; its other fields become a native part for Anthropic alone. The field for a direct call by
    the model is left out, since that is the default."""
    call = block.under("tool_use")
    arguments = call.object("input")
    beside = block.others(_TOOL_USE)
    if beside.get("caller") == _DIRECT:
        del beside["caller"]
    return ToolCall(
        call.text("id"),
        call.text("name"),
        arguments.written(arguments.raw),
        call.native(FAMILY, beside) if beside else None,
    )


def _tool_result(block: AnthropicFields, names: dict[str, str]) -> ToolResult | Native:
    result = block.under("tool_result")
    call_id, is_error = result.text("tool_use_id"), result.boolean("is_error") or False
    content = block.fields["content"] if block.has("content") else ""
    if not isinstance(content, str):
        content = [_result_part(each) for each in result.objects("content")]
    neutral = tuple(part for part in content if not isinstance(part, Native))
    if not block.holds_only(_TOOL_RESULT) or len(neutral) < len(content):
        return block.native(FAMILY)
    if len(neutral) == 1 and isinstance(neutral[0], str):
        content = neutral[0]
    return ToolResult(call_id, content if isinstance(content, str) else neutral, names.get(call_id, ""), is_error)


def tools_of(body: AnthropicFields) -> tuple[Tool | Native, ...] | None:
    return tuple(_marked_tool(tool) for tool in body.objects("tools")) or None


def _marked_tool(marked: AnthropicFields) -> Tool | Native:
    tool, mark = _unmarked(marked)
    plain = _tool(tool)
    return plain if mark is None else Native(FAMILY, mark, plain)


def _tool(tool: AnthropicFields) -> Tool | Native:
    """Returns the caller's own tool; a native part for one of Anthropic's, which has a type, or one with fields that no
    other provider knows."""
    native = tool.native(FAMILY)
    if tool.optional_text("type") not in (None, "custom"):
        return native
    custom = tool.under("custom")
    name, schema, strict = custom.text("name"), custom.object("input_schema").raw, custom.boolean("strict")
    return Tool(name, custom.text("description", ""), schema, strict) if tool.holds_only(_TOOL) else native
