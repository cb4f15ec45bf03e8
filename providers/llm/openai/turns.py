"""Writes the turns of a conversation and its tools for OpenAI's chat completions.

Pure: values in, values out; raises EncodeError for what the protocol can't express. A turn of plain text is written by
chat itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....engine.call import Call, Message
from ....engine.content import Image, Native, Part, ToolCall, ToolResult
from ....engine.endpoint import EncodeError
from ..blocks import beside, own_json, own_value
from ..protocol import as_it_stands, described, schema_in
from ..tool_ids import shortened

FAMILY = "openai"
_ID_MOST = 40
# Fields that a native part can't set, since the turn itself sets them.
_NOT_FIELDS = ("role", "content", "tool_calls", "tool_call_id")


def turns_of(call: Call, message: Message) -> Iterator[dict[str, Any]]:
    """Yields the messages of one turn. Each result of a tool is a message of its own, before the rest, since results
    must follow their calls."""
    results = [part for part in message.content if isinstance(part, ToolResult)]
    if results and message.role == "assistant":
        raise EncodeError(f"a call to {call.model}: a tool's result stands in a turn of `tool` or `user`")
    for result in results:
        yield {
            "content": result_content(result, "text", _image),
            "role": "tool",
            "tool_call_id": shortened(result.id, _ID_MOST),
        }
    rest: list[Part] = [part for part in message.content if not isinstance(part, ToolResult)]
    if rest or not message.content:
        yield _turn(call, message.role, rest)


def _turn(call: Call, role: str, parts: Sequence[Part]) -> dict[str, Any]:
    if role == "tool":
        raise EncodeError(f"a call to {call.model}: a turn with the role `tool` holds results of tools alone")
    content: list[Any] = []
    tools: list[Any] = []
    fields: dict[str, Any] = {}
    for part in parts:
        match part:
            case str():
                content.append(part)
            case Image():
                content.append(_image(part))
            case ToolCall():
                tools.append(_tool_call(part))
            case Native():
                value = own_value(call, part, FAMILY)
                if "type" not in value:
                    fields |= _fields(call, value)
                else:
                    is_tool_call = value["type"] in ("custom", "function")
                    (tools if is_tool_call else content).append(as_it_stands(call, "a native part", value))
    if tools and role != "assistant":
        raise EncodeError(f"a call to {call.model}: a tool is called in a turn of `assistant`, not of `{role}`")
    is_silent = not (content or tools or fields)
    turn: dict[str, Any] = {"content": "" if is_silent else _content(content, role), "role": role}
    return turn | ({"tool_calls": tools} if tools else {}) | fields


def _content(parts: list[Any], role: str) -> Any:
    """Returns the content as a plain text where that is equivalent: not every server takes a list."""
    if not parts:
        return None if role == "assistant" else ""
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts) and (len(texts) == 1 or role == "assistant"):
        return "".join(texts)
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in parts]


def _image(image: Image) -> dict[str, Any]:
    fields = {"url": image.url} if image.detail is None else {"url": image.url, "detail": image.detail}
    return {"type": "image_url", "image_url": fields}


def _tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": shortened(call.id, _ID_MOST), "type": "function", **beside(call, FAMILY), "function": function}


def result_content(result: ToolResult, kind: str, image: Callable[[Image], Any]) -> str | list[Any]:
    """Returns a result's content, whose texts are of this kind if they stand in a list with images."""
    if isinstance(result.content, str):
        return result.content
    return [{"type": kind, "text": part} if isinstance(part, str) else image(part) for part in result.content]


def _fields(call: Call, value: Mapping[str, Any]) -> dict[str, Any]:
    if wrong := [name for name in _NOT_FIELDS if name in value]:
        names = ", ".join(wrong)
        raise EncodeError(f"a call to {call.model}: a native part can't set {names}: the turn itself says it")
    return {name: as_it_stands(call, "a native part", field) for name, field in value.items()}


def add_tools(
    call: Call,
    params: dict[str, Any],
    family: str,
    form_of: Callable[[dict[str, Any]], dict[str, Any]],
    choice_of: Callable[[Call, str], Any],
    parallel_name: str = "parallel_tool_calls",
) -> None:
    """Adds the tools and their choice. `form_of` returns the form of a function's fields in this family."""
    if call.tools is not None:
        params["tools"] = [
            own_json(call, tool, family, "tools")
            if isinstance(tool, Native)
            else form_of(described(tool) | schema_in(call, tool, "parameters"))
            for tool in call.tools
        ]
    if call.tool_choice is not None:
        params["tool_choice"] = choice_of(call, call.tool_choice)
    if call.parallel_tools is not None:
        params[parallel_name] = call.parallel_tools


def function_tool(function: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": function}


def choice_of(call: Call, choice: str) -> str | dict[str, Any]:
    if choice in ("auto", "none", "required"):
        return choice
    for tool in call.tools or ():
        if isinstance(tool, Native) and tool.value.get("type") == "custom":
            custom = tool.value.get("custom")
            if isinstance(custom, Mapping) and custom.get("name") == choice:
                return {"type": "custom", "custom": {"name": choice}}
    return {"type": "function", "function": {"name": choice}}
