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
    spoken_parts,
    together,
    unsayable,
)
from .protocol import as_it_stands

FAMILY = "bedrock"
_WORDS = "Bedrock's words"
_SYSTEM = ("system", "developer")
_ROLES = ("user", "assistant")
_FORMATS = {"image/gif": "gif", "image/jpeg": "jpeg", "image/png": "png", "image/webp": "webp"}


def prompt_of(call: Call) -> dict[str, Any]:
    if isinstance(call.input, str):
        return {"messages": [{"content": [_text(call.input)], "role": "user"}]}
    turns: list[Turn] = []
    system: list[Any] = []
    for message in call.input:
        if message.role in _SYSTEM:
            system.extend(_system(call, message))
        else:
            turns.append(Turn(_role(call, message), _content(call, message), _has_results(message)))
    if not turns:
        raise EncodeError(f"{call.model}: Bedrock wants at least one message of a user besides the system prompt")
    messages = [{"content": turn.content, "role": turn.role} for turn in together(turns, _text)]
    return {"messages": messages, "system": system} if system else {"messages": messages}


def _role(call: Call, message: Message) -> str:
    """What tools have to say is said to the model by the user."""
    if message.role == "tool" and not isinstance(message.content, str):
        return "user"
    if message.role not in _ROLES:
        raise EncodeError(
            f"{call.model}: Bedrock has no role {message.role!r}, only system, user and assistant: mend the messages"
        )
    return message.role


def _system(call: Call, message: Message) -> list[Any]:
    if isinstance(message.content, str):
        return [_text(message.content)]
    for part in message.content:
        if not isinstance(part, str | Native):
            raise unsayable(call, part, "a system prompt of Bedrock's")
    return [_block(call, part) for part in spoken_parts(message)]


def _content(call: Call, message: Message) -> list[Any]:
    if isinstance(message.content, str):
        return [_text(message.content)]
    return [_block(call, part) for part in spoken_parts(message)]


def _has_results(message: Message) -> bool:
    return not isinstance(message.content, str) and any(
        isinstance(part, ToolResult) or (isinstance(part, Native) and "toolResult" in part.value)
        for part in message.content
    )


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


def tools_of(call: Call) -> Mapping[str, Any]:
    """Converse has no way to forbid tools but not to name them."""
    refuse_one_at_a_time(call, "Bedrock")
    choice = call.tool_choice
    if choice == "none":
        _refuse_hidden(call)
        return {}
    told: dict[str, Any] = {}
    if call.tools:
        told["tools"] = [_tool(call, tool) for tool in call.tools]
    if choice is not None:
        known: Mapping[str, Any] = {"auto": {"auto": {}}, "required": {"any": {}}}
        told["toolChoice"] = known.get(choice, {"tool": {"name": choice}})
    return told


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
