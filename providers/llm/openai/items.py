"""Writes turns and tools as items of OpenAI Responses, and reads the items of an answer as parts.

Pure: values in, values out. Writing raises EncodeError for what the protocol can't express; reading skips odd items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....engine.call import Call, Message
from ....engine.content import Image, Native, Part, ToolCall, ToolResult
from ....engine.endpoint import EncodeError
from ..answer_values import as_text
from ..blocks import beside, native_of, own_value
from ..protocol import as_it_stands
from ..repair import mended
from ..tool_ids import shortened
from .parts import arguments_text
from .turns import result_content

FAMILY = "openai-responses"
_ID_MOST = 64
_CALLS = ("function_call", "custom_tool_call")
_OF_A_CALL = ("type", "call_id", "name", "arguments")


def items_of(call: Call, message: Message) -> Iterator[Any]:
    """Yields the items of one turn: messages with its texts, and between them its tool calls and results."""
    contents: list[Any] = []
    is_empty = True
    for part in message.content:
        spoken = _spoken(call, part, message.role)
        is_empty = False
        if spoken is not None:
            contents.append(spoken)
            continue
        if contents:
            yield _message(message.role, contents)
            contents = []
        yield _item(call, part, message.role)
    if contents or is_empty:
        yield _message(message.role, contents)


def _spoken(call: Call, part: Part, role: str) -> Any:
    """Returns a part as it stands in a message; None if it is an item of its own."""
    if isinstance(part, str):
        return part
    if isinstance(part, Image):
        return _image(part)
    if not isinstance(part, Native):
        return None
    kind = own_value(call, part, FAMILY).get("type")
    is_content = isinstance(kind, str) and (kind.startswith("input_") or kind in ("output_text", "refusal"))
    return as_it_stands(call, "a native part", part.value) if is_content else None


def _message(role: str, contents: Sequence[Any]) -> dict[str, Any]:
    """Returns a message, whose content is a plain text where that is equivalent."""
    texts = [part for part in contents if isinstance(part, str)]
    if len(texts) == len(contents) and (len(texts) < 2 or role == "assistant"):
        return {"content": "".join(texts), "role": role}
    kind = "output_text" if role == "assistant" else "input_text"
    return {"content": [{"type": kind, "text": one} if isinstance(one, str) else one for one in contents], "role": role}


def _image(image: Image) -> dict[str, Any]:
    item = {"type": "input_image", "image_url": image.url}
    return item if image.detail is None else {**item, "detail": image.detail}


def _item(call: Call, part: Part, role: str) -> Any:
    match part:
        case Native():
            return as_it_stands(call, "a native part", part.value)
        case ToolCall():
            if role != "assistant":
                raise EncodeError(f"a call to {call.model}: a tool is called in a turn of `assistant`, not of `{role}`")
            fields = {"type": "function_call", "call_id": shortened(part.id, _ID_MOST)}
            fields |= {"name": part.name, "arguments": part.arguments}
            return {**beside(part, FAMILY), **fields}
        case ToolResult():
            if role == "assistant":
                raise EncodeError(f"a call to {call.model}: a tool's result stands in a turn of `tool` or `user`")
            return {
                "type": "function_call_output",
                "call_id": shortened(part.id, _ID_MOST),
                "output": result_content(part, "input_text", _image),
            }


def function_tool(function: dict[str, Any]) -> dict[str, Any]:
    """Returns a function as a tool, with an explicit null where it has no parameters, which this family needs."""
    return {"type": "function", "parameters": None, **function}


def choice_of(call: Call, choice: str) -> str | dict[str, Any]:
    """Returns the tool choice: a word such as `auto`, or an object with the tool's name or a provider tool's type."""
    if choice in ("auto", "none", "required"):
        return choice
    for tool in call.tools or ():
        if isinstance(tool, Native):
            kind = tool.value.get("type")
            if tool.value.get("name") == choice:
                return {"type": str(kind), "name": choice}
            if kind == choice:
                return {"type": choice}
    return {"type": "function", "name": choice}


def is_call(item: Any) -> bool:
    """Returns whether an item calls one of the caller's tools."""
    return isinstance(item, dict) and item.get("type") in _CALLS


def parts_of(output: Sequence[Any], text: str, raw_hash: str) -> tuple[Part, ...]:
    """Returns the parts of an answer in their order; an empty tuple if it is text alone. `text` is the whole text, for
    answers whose messages leave it out."""
    # A refusal counts as the text if there is no other.
    has_text = any(_text_of(part, "output_text") for item in output for part in content_of(item))
    kind = "output_text" if has_text else "refusal"
    parts: list[Part] = []
    for number, item in enumerate(output):
        if isinstance(item, dict):
            parts += _parts_in(item, f"call_{raw_hash[:20]}{number}", kind)
    if all(isinstance(part, str) for part in parts):
        return ()
    return tuple(parts) if any(isinstance(part, str) for part in parts) or not text else (*parts, text)


def _parts_in(item: dict[str, Any], made_id: str, kind: str) -> Iterator[Part]:
    match item.get("type"):
        case "message":
            for part in content_of(item):
                if text := _text_of(part, kind):
                    yield mended(text)
                elif isinstance(part, dict) and part.get("type") not in ("output_text", kind):
                    yield from _native(part)
        case "function_call":
            yield _call(item, made_id)
        case str():
            yield from _native(item)


def content_of(item: Any) -> list[Any]:
    """Returns the parts of a message; reasoning and tool calls have no visible ones."""
    content = item.get("content") if isinstance(item, dict) and item.get("type") == "message" else None
    return content if isinstance(content, list) else []


def _text_of(part: Any, kind: str) -> str:
    """Returns the text of a message's part of this kind; empty for any other."""
    if not isinstance(part, dict) or part.get("type") != kind:
        return ""
    return as_text(part.get("text" if kind == "output_text" else "refusal"))


def _native(value: dict[str, Any]) -> Iterator[Native]:
    if (native := native_of(FAMILY, value)) is not None:
        yield native


def _call(item: dict[str, Any], made_id: str) -> ToolCall:
    call_id, name = item.get("call_id") or item.get("id"), item.get("name")
    rest = {key: value for key, value in item.items() if key not in _OF_A_CALL and value is not None}
    return ToolCall(
        mended(call_id) if isinstance(call_id, str) else made_id,
        mended(as_text(name)),
        mended(arguments_text(item.get("arguments"))) or "{}",
        native_of(FAMILY, rest) if rest else None,
    )
