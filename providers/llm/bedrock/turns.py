"""Writes the turns of a conversation and its tools for Bedrock's Converse.

Pure: values in, values out; raises EncodeError for what the protocol can't express.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....engine.call import Call, Message
from ....engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from ....engine.endpoint import EncodeError
from ..blocks import (
    SYSTEM,
    PromptTurn,
    arguments_in,
    beside,
    check_parallel_tools,
    data_of,
    own_json,
    schema_of_tool,
    together,
    turn_of,
)
from ..protocol import as_it_stands, described
from ..tool_ids import with_sound_ids

FAMILY = "bedrock"
_ROLES = (*SYSTEM, "user", "assistant")
_CLAUDE = "anthropic.claude"
_FORMATS = {"image/gif": "gif", "image/jpeg": "jpeg", "image/png": "png", "image/webp": "webp"}


def prompt_of(call: Call) -> dict[str, Any]:
    """Returns the fields `messages` and, if the call has a system text, `system`. Neighbouring turns of one role are
    joined, since Converse requires that user and assistant alternate; raises EncodeError without any turn of theirs."""
    turns: list[PromptTurn] = []
    system: list[Any] = []
    for message in with_sound_ids(call).messages():
        _check_role(call, message)
        turn = turn_of(call, message, _block, "toolResult", "Bedrock's")
        if turn.role != "system":
            turns.append(turn)
        elif turn.says_something:
            system += turn.blocks(_text)
    if not turns:
        raise EncodeError(f"{call.model}: Bedrock wants at least one message of a user besides the system prompt")
    messages = [{"content": turn.blocks(_text), "role": turn.role} for turn in together(turns, _text, are_all=True)]
    return {"messages": messages, "system": system} if system else {"messages": messages}


def _check_role(call: Call, message: Message) -> None:
    is_result = message.role == "tool" and not isinstance(message.content, str)
    if message.role not in _ROLES and not is_result:
        raise EncodeError(
            f"{call.model}: Bedrock has no role {message.role!r}, only system, user and assistant: correct the messages"
        )


def _block(call: Call, part: Part) -> Any:
    match part:
        case str():
            return _text(part)
        case Image():
            return _image(call, part)
        case ToolCall():
            fields = {"input": arguments_in(call, part), "name": part.name, "toolUseId": part.id}
            more = {name: as_it_stands(call, name, value) for name, value in beside(part, FAMILY).items()}
            return {"toolUse": more | fields}
        case ToolResult():
            return _result(call, part)
        case Native():
            return own_json(call, part, FAMILY)


def _text(text: str) -> dict[str, str]:
    return {"text": text}


def _image(call: Call, image: Image) -> dict[str, Any]:
    """Returns the block of an image, whose bytes are base64; its detail is left out, since Bedrock has no such
    setting."""
    data = data_of(call, image)
    if data is None:
        raise EncodeError(
            f"the call to {call.model}: Bedrock fetches no image from an address: send it as data:image/…;base64,…"
        )
    kind, content = data
    if kind not in _FORMATS:
        raise EncodeError(
            f"the call to {call.model}: Bedrock takes images as gif, jpeg, png and webp; came {kind}: convert it"
        )
    return {"image": {"format": _FORMATS[kind], "source": {"bytes": content}}}


def _result(call: Call, result: ToolResult) -> dict[str, Any]:
    """Returns the block of a tool's result; an empty text is left out, since Bedrock refuses it."""
    parts = (result.content,) if isinstance(result.content, str) else result.content
    content = [_text(part) if isinstance(part, str) else _image(call, part) for part in parts if part != ""]
    block: dict[str, Any] = {"content": content, "toolUseId": result.id}
    return {"toolResult": {**block, "status": "error"} if result.is_error else block}


def tools_of(call: Call, model: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Returns the toolConfig of Converse, and the fields for the model itself. Converse can forbid tools only by
    omitting them, and can't ask for one call at a time; Claude can by its own field, which must hold the whole
    choice."""
    choice = call.tool_choice
    if choice == "none":
        _check_no_tools_used(call)
        return {}, {}
    config: dict[str, Any] = {}
    if call.tools:
        config["tools"] = [_tool(call, tool) for tool in call.tools]
    if call.tools and call.parallel_tools is False and choice in (None, "auto") and _CLAUDE in model:
        return config, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    check_parallel_tools(call, "Bedrock")
    if choice is not None:
        choices: Mapping[str, Any] = {"auto": {"auto": {}}, "required": {"any": {}}}
        config["toolChoice"] = choices.get(choice, {"tool": {"name": choice}})
    return config, {}


def _check_no_tools_used(call: Call) -> None:
    listed = (message.content for message in call.messages() if not isinstance(message.content, str))
    if any(isinstance(part, ToolCall | ToolResult) for content in listed for part in content):
        raise EncodeError(
            f"{call.model}: Bedrock can't be told to call no tool where the conversation holds calls of some: leave "
            "tool_choice out"
        )


def _tool(call: Call, tool: Tool | Native) -> Any:
    if isinstance(tool, Native):
        return own_json(call, tool, FAMILY)
    return {"toolSpec": {**described(tool), "inputSchema": {"json": schema_of_tool(call, tool)}}}
