"""Writes the turns of a conversation and its tools for Anthropic Messages.

Pure: values in, values out; raises EncodeError for what the protocol can't express. A turn of plain text stays a text.
"""

from __future__ import annotations

from typing import Any

from ....engine.call import Call
from ....engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from ....engine.endpoint import EncodeError
from ..blocks import PromptTurn, arguments_in, beside, data_of, own_json, schema_of_tool, together, turn_of
from ..protocol import as_it_stands, described
from ..tool_ids import with_sound_ids

FAMILY = "anthropic"
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}


def prompt_of(call: Call) -> dict[str, Any]:
    """Returns the fields `messages` and `system`. System prompts before the first turn go into `system`; one between
    turns stays in its place."""
    system: list[PromptTurn] = []
    turns: list[PromptTurn] = []
    for message in with_sound_ids(call).messages():
        turn = turn_of(call, message, _block, "tool_result", "Anthropic's")
        (system if turn.role == "system" and not turns else turns).append(turn)
    if not turns:
        raise EncodeError(f"{call.model}: Anthropic wants at least one message of a user besides the system prompt")
    messages = [{"content": turn.content, "role": turn.role} for turn in together(turns, _text)]
    prompts = [turn for turn in system if turn.says_something]
    if not prompts:
        return {"messages": messages}
    whole = prompts[0].content if len(prompts) == 1 else [block for turn in prompts for block in turn.blocks(_text)]
    return {"messages": messages, "system": whole}


def _block(call: Call, part: Part) -> Any:
    match part:
        case str():
            return _text(part)
        case Image():
            return _image(call, part)
        case ToolCall():
            block = {"id": part.id, "input": arguments_in(call, part), "name": part.name, "type": "tool_use"}
            return {name: as_it_stands(call, name, value) for name, value in beside(part, FAMILY).items()} | block
        case ToolResult():
            return _result(call, part)
        case Native():
            return _own(call, part)


def _marked(call: Call, mark: Native) -> Any:
    """Returns, as JSON, the part or tool that a mark is attached to, with the mark's fields added."""
    on = mark.on
    if isinstance(on, Native):
        own_json(call, on, FAMILY)
        return _own(call, Native(FAMILY, {**mark.value, **on.value}, on.on))
    fields = {name: as_it_stands(call, name, value) for name, value in mark.value.items()}
    return fields | (_tool(call, on) if isinstance(on, Tool) else _block(call, on or ""))


def _own(call: Call, part: Native) -> Any:
    return own_json(call, part, FAMILY) if part.on is None else _marked(call, part)


def _text(text: str) -> dict[str, Any]:
    return {"text": text, "type": "text"}


def _image(call: Call, image: Image) -> dict[str, Any]:
    """Returns the block of an image; its detail is left out, since Anthropic has no such setting."""
    data = data_of(call, image)
    if data is None:
        return {"source": {"type": "url", "url": image.url}, "type": "image"}
    return {"source": {"data": data[1], "media_type": data[0], "type": "base64"}, "type": "image"}


def _result(call: Call, result: ToolResult) -> dict[str, Any]:
    content = result.content
    if not isinstance(content, str):
        written: Any = [_text(part) if isinstance(part, str) else _image(call, part) for part in content]
    else:
        written = content
    block = {"content": written, "tool_use_id": result.id, "type": "tool_result"}
    return {**block, "is_error": True} if result.is_error else block


def add_tools(call: Call, params: dict[str, Any]) -> None:
    if call.tools:
        params["tools"] = [_tool(call, tool) for tool in call.tools]
    choice = call.tool_choice
    if choice is None and call.parallel_tools is None:
        return
    kind = "auto" if choice is None else _CHOICES.get(choice, "tool")
    tool_choice: dict[str, Any] = {"type": kind, "name": choice} if kind == "tool" else {"type": kind}
    if call.parallel_tools is not None and kind != "none":
        tool_choice["disable_parallel_tool_use"] = not call.parallel_tools
    params["tool_choice"] = tool_choice


def _tool(call: Call, tool: Tool | Native) -> Any:
    if isinstance(tool, Native):
        return _own(call, tool)
    return {**described(tool), "input_schema": schema_of_tool(call, tool)}
