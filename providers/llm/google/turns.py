"""Writes the turns of a conversation and its tools for Gemini.

A tool's result needs the tool's name there, where others need only the call's id. Pure: values in, values out; raises
EncodeError for what the protocol can't express.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec import Struct

from ....engine.call import Call, Message
from ....engine.content import Image, Native, Part, Tool, ToolCall, ToolResult
from ....engine.endpoint import EncodeError
from ..blocks import SYSTEM, arguments_in, beside, check_parallel_tools, data_of, object_in, own_json, unsayable
from ..protocol import as_it_stands, described, schema_in

FAMILY = "gemini"
MADE_ID = "call_"
# Ids that calls.py has made from a place in an answer, since Google gave none: they are not sent.
_IS_MADE = re.compile(rf"{MADE_ID}\d{{1,4}}")
_ROLES = {"user": "user", "assistant": "model", "model": "model"}
_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_TYPES = {
    "avif": "image/avif",
    "bmp": "image/bmp",
    "gif": "image/gif",
    "heic": "image/heic",
    "heif": "image/heif",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
# From Gemini 3 on a tool call without its thought's signature is refused. This stands for the signature of one that
# another model made, or whose client keeps none.
_SIGNATURE = "thoughtSignature"
_UNSIGNED = "skip_thought_signature_validator"
_WANTS_SIGNATURES = re.compile(r"gemini-(?![12]\b)")


class _CalledTools(Struct):
    """The tools called so far: their names by call id, and the places, from 0, of the calls in the last such turn."""

    names: dict[str, str] = {}
    places: dict[str, int] = {}

    def note(self, message: Message) -> None:
        calls = [part for part in message.content if isinstance(part, ToolCall)]
        if calls:
            self.places = {call.id: place for place, call in enumerate(calls)}
            self.names.update({call.id: call.name for call in calls})


def prompt_of(call: Call, model: str) -> dict[str, Any]:
    contents: list[dict[str, Any]] = []
    system: list[Any] = []
    tools = _CalledTools()
    results: list[ToolResult] = []
    for message in _without_empty(tuple(call.messages())):
        if message.role in SYSTEM:
            system.extend(_system(call, message))
            continue
        role = _role(call, message)
        answers, rest = _apart(message, role)
        results.extend(answers)
        if answers and not rest.content:
            # All of one turn's calls are answered in one turn.
            continue
        if results and not answers:
            contents.append({"parts": _answered(call, results, tools), "role": "user"})
            results = []
        contents.append({"parts": [*_answered(call, results, tools), *_parts(call, rest, tools, model)], "role": role})
        results = []
    if results:
        contents.append({"parts": _answered(call, results, tools), "role": "user"})
    if not contents:
        raise EncodeError(f"{call.model}: Gemini wants at least one message of a user besides the system prompt")
    return {"contents": contents, "systemInstruction": {"parts": system}} if system else {"contents": contents}


def _without_empty(messages: tuple[Message, ...]) -> list[Message]:
    """Returns the turns without empty ones, which Gemini refuses; all of them if no turn has content."""
    filled = [message for message in messages if any(part != "" for part in _parts_of(message))]
    return filled if any(message.role not in SYSTEM for message in filled) else list(messages)


def _parts_of(message: Message) -> tuple[Part, ...]:
    return (message.content,) if isinstance(message.content, str) else message.content


def _role(call: Call, message: Message) -> str:
    """Returns Gemini's role of a message; results of tools stand in a turn of the user."""
    role = "user" if message.role == "tool" and not isinstance(message.content, str) else _ROLES.get(message.role)
    if role is None:
        raise EncodeError(
            f"{call.model}: Gemini has no role {message.role!r}, only system, user and assistant: correct the messages"
        )
    return role


def _system(call: Call, message: Message) -> Iterator[Any]:
    if isinstance(message.content, str):
        yield {"text": message.content}
        return
    for part in message.content:
        if isinstance(part, Native):
            yield own_json(call, part, FAMILY)
        elif isinstance(part, str):
            yield {"text": part}
        else:
            raise unsayable(call, part, "a system prompt of Gemini's")


def _apart(message: Message, role: str) -> tuple[list[ToolResult], Message]:
    """Returns the results of tools in a user's message, and the message without them."""
    if isinstance(message.content, str) or role != "user":
        return [], message
    results = [part for part in message.content if isinstance(part, ToolResult)]
    if not results:
        return [], message
    rest = tuple(part for part in message.content if not isinstance(part, ToolResult) and part != "")
    return results, Message(message.role, rest)


def _answered(call: Call, results: list[ToolResult], tools: _CalledTools) -> list[Any]:
    """Returns the results in the order of their calls, by which calls of one tool are matched if they have no ids."""
    ordered = sorted(results, key=lambda one: tools.places.get(one.id, len(tools.places)))
    return [_result(call, one, tools.names) for one in ordered]


def _parts(call: Call, message: Message, tools: _CalledTools, model: str) -> list[Any]:
    if isinstance(message.content, str):
        return [{"text": message.content}]
    tools.note(message)
    parts: list[Any] = []
    is_signed = any(_is_signed(part) for part in message.content if not isinstance(part, str))
    stands_in = not is_signed and _WANTS_SIGNATURES.search(model) is not None
    for part in message.content:
        if isinstance(part, ToolCall):
            parts.append(_tool_call(call, part, {_SIGNATURE: _UNSIGNED} if stands_in else {}))
            # Of calls that were made together only the first one has a signature.
            stands_in = False
        elif part != "" or len(message.content) == 1:
            parts.append(_part(call, part, tools.names))
    return parts


def _is_signed(part: Part) -> bool:
    native = part.native if isinstance(part, ToolCall) else part
    return isinstance(native, Native) and native.protocol == FAMILY and _SIGNATURE in native.value


def _part(call: Call, part: str | Image | ToolResult | Native, names: Mapping[str, str]) -> Any:
    match part:
        case str():
            return {"text": part}
        case Image():
            return _image(call, part)
        case ToolResult():
            return _result(call, part, names)
        case Native():
            return own_json(call, part, FAMILY)


def _image(call: Call, image: Image) -> dict[str, Any]:
    """Returns the part of an image; its detail is left out, since Gemini has no such setting."""
    if (data := data_of(call, image)) is not None:
        return {"inlineData": {"data": data[1], "mimeType": data[0]}}
    kind = _TYPES.get(_path_of(image.url).rpartition(".")[2].lower())
    return {"fileData": {"fileUri": image.url} | ({} if kind is None else {"mimeType": kind})}


def _path_of(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _tool_call(call: Call, tool_call: ToolCall, unsigned: Mapping[str, str]) -> dict[str, Any]:
    fields = {"args": arguments_in(call, tool_call), "name": tool_call.name, **_id(tool_call.id)}
    more = {name: as_it_stands(call, name, value) for name, value in beside(tool_call, FAMILY).items()}
    return {"functionCall": fields, **unsigned, **more}


def _id(call_id: str) -> dict[str, str]:
    return {"id": call_id} if call_id and not _IS_MADE.fullmatch(call_id) else {}


def _result(call: Call, result: ToolResult, names: Mapping[str, str]) -> dict[str, Any]:
    name = result.name or names.get(result.id, "")
    if not name:
        raise EncodeError(
            f"the call to {call.model}: Gemini wants the name of the tool whose result {result.id!r} is: give it, or "
            "the turn that called the tool"
        )
    content = (result.content,) if isinstance(result.content, str) else result.content
    text = "".join(part for part in content if isinstance(part, str))
    images = [_image(call, part) for part in content if isinstance(part, Image)]
    fields = {"name": name, "response": _response(text, is_error=result.is_error), **_id(result.id)}
    return {"functionResponse": {**fields, "parts": images} if images else fields}


def _response(text: str, *, is_error: bool) -> Any:
    """Returns a tool's result as an object: a JSON object unchanged, any other text under `output` or `error`."""
    if is_error:
        return {"error": text}
    return {"output": text} if object_in(text) is None else orjson.Fragment(text)


def add_tools(call: Call, params: dict[str, Any]) -> None:
    check_parallel_tools(call, "Gemini")
    if call.tools:
        functions = [_function(call, tool) for tool in call.tools if isinstance(tool, Tool)]
        others = [own_json(call, tool, FAMILY) for tool in call.tools if isinstance(tool, Native)]
        params["tools"] = [*([{"functionDeclarations": functions}] if functions else []), *others]
    if (choice := call.tool_choice) is not None:
        config: dict[str, Any] = {"mode": _CHOICES.get(choice, "ANY")}
        if choice not in _CHOICES:
            config["allowedFunctionNames"] = [choice]
        params["toolConfig"] = {"functionCallingConfig": config}


def _function(call: Call, tool: Tool) -> dict[str, Any]:
    """Returns the declaration of a tool; `strict` is left out, since Gemini has no such field."""
    return described(tool, has_strict=False) | schema_in(call, tool, "parametersJsonSchema")
