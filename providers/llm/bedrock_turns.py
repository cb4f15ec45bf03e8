"""Turns of a conversation and its tools in the words of Bedrock's Converse.

Pure: values in, values out; what can't be said there is an EncodeError.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...engine.call import Call, Message
from ...engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from ...engine.endpoint import EncodeError
from .blocks import (
    Turn,
    arguments_in,
    beside,
    data_of,
    own,
    refuse_one_at_a_time,
    schema_of_tool,
    together,
    turn_of,
    unsayable,
)
from .protocol import as_it_stands
from .tool_ids import with_sound_ids

FAMILY = "bedrock"
_WORDS = "Bedrock's words"
_SYSTEM = ("system", "developer")
_ROLES = ("system", "user", "assistant")
_CLAUDE = "anthropic.claude"
_FORMATS = {"image/gif": "gif", "image/jpeg": "jpeg", "image/png": "png", "image/webp": "webp"}


def prompt_of(call: Call) -> dict[str, Any]:
    """Converse wants the turns of user and assistant to alternate."""
    if isinstance(call.input, str):
        return {"messages": [{"content": [_text(call.input)], "role": "user"}]}
    turns: list[Turn] = []
    system: list[Any] = []
    for message in with_sound_ids(call).messages():
        turn = _turn(call, message)
        if turn.role != "system":
            turns.append(turn)
        elif turn.says_something:
            system += _content(turn)
    if not turns:
        raise EncodeError(f"{call.model}: Bedrock wants at least one message of a user besides the system prompt")
    messages = [{"content": _content(turn), "role": turn.role} for turn in together(turns, _text, are_all=True)]
    return {"messages": messages, "system": system} if system else {"messages": messages}


def _content(turn: Turn) -> list[Any]:
    return [_text(turn.content)] if isinstance(turn.content, str) else turn.content


def _turn(call: Call, message: Message) -> Turn:
    """What tools have to say is said to the model by the user."""
    role = "system" if message.role in _SYSTEM else message.role
    if isinstance(message.content, str):
        return Turn(_known(call, role), message.content)
    if role == "system":
        for part in message.content:
            if not isinstance(part, str | Native):
                raise unsayable(call, part, "a system prompt of Bedrock's")
    role = _known(call, "user" if role == "tool" else role)
    return turn_of(role, message.content, lambda part: _block(call, part), "toolResult")


def _known(call: Call, role: str) -> str:
    if role not in _ROLES:
        raise EncodeError(
            f"{call.model}: Bedrock has no role {role!r}, only system, user and assistant: mend the messages"
        )
    return role


def _block(call: Call, part: Part) -> Any:
    match part:
        case str():
            return _text(part)
        case Image():
            return _image(call, part)
        case ToolCall():
            asked = {"input": arguments_in(call, part), "name": part.name, "toolUseId": part.id}
            more = {name: as_it_stands(call, name, value) for name, value in beside(part, FAMILY).items()}
            return {"toolUse": more | asked}
        case ToolResult():
            return _result(call, part)
        case Native():
            return own(call, part, FAMILY, _WORDS)


def _text(text: str) -> dict[str, str]:
    return {"text": text}


def _image(call: Call, image: Image) -> dict[str, Any]:
    """Bytes are base64 in JSON. How closely to look is not for the caller to say here."""
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
    """A tool that says nothing has no blocks: an empty text is refused."""
    parts = (result.content,) if isinstance(result.content, str) else result.content
    content = [_text(part) if isinstance(part, str) else _image(call, part) for part in parts if part != ""]
    told: dict[str, Any] = {"content": content, "toolUseId": result.id}
    return {"toolResult": {**told, "status": "error"} if result.is_error else told}


def tools_of(call: Call, model: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Converse's own fields, and the model's. Converse has no way to forbid tools but not to name them, and none to ask
    for one at a time; Claude has one of its own, which must then hold all of the choice."""
    choice = call.tool_choice
    if choice == "none":
        _refuse_hidden(call)
        return {}, {}
    told: dict[str, Any] = {}
    if call.tools:
        told["tools"] = [_tool(call, tool) for tool in call.tools]
    if call.tools and call.parallel_tools is False and choice in (None, "auto") and _CLAUDE in model:
        return told, {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}
    refuse_one_at_a_time(call, "Bedrock")
    if choice is not None:
        known: Mapping[str, Any] = {"auto": {"auto": {}}, "required": {"any": {}}}
        told["toolChoice"] = known.get(choice, {"tool": {"name": choice}})
    return told, {}


def _refuse_hidden(call: Call) -> None:
    if any(isinstance(part, ToolCall | ToolResult) for message in call.messages() for part in _parts(message)):
        raise EncodeError(
            f"{call.model}: Bedrock can't be told to call no tool where the conversation holds calls of some: leave "
            "tool_choice out"
        )


def _parts(message: Message) -> tuple[Part, ...]:
    return () if isinstance(message.content, str) else message.content


def _tool(call: Call, tool: Tool | Native) -> Any:
    if isinstance(tool, Native):
        return own(call, tool, FAMILY, _WORDS)
    told: dict[str, Any] = {"inputSchema": {"json": schema_of_tool(call, tool)}, "name": tool.name}
    if tool.description:
        told["description"] = tool.description
    if tool.strict is not None:
        told["strict"] = tool.strict
    return {"toolSpec": told}
