"""Reads the turns and the tools of a request to Gemini as parts that every provider can be sent.

What only Gemini knows (thoughts and their signatures, stored files, code that it ran) stays unchanged. Pure.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any

from ....engine.call import Message
from ....engine.content import Content, Image, Native, Part, Tool, ToolCall, ToolResult
from ..serve_bounds import check_messages
from .serve_fields import GeminiFields
from .serve_schema import json_schema

FAMILY = "gemini"
_ROLES = {"user": "user", "model": "assistant", "function": "tool", "": "user"}
_SIGNATURE = "thoughtSignature"
# Google's own client writes base64 in the alphabet for addresses, which no other provider takes.
_TO_STANDARD = str.maketrans("-_", "+/")
_DATA, _STORED = {"mimeType", "data"}, {"mimeType", "fileUri"}
_CALL, _RESULT = {"id", "name", "args"}, {"id", "name", "response", "parts"}
_FUNCTION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"}


def turns_of(body: GeminiFields) -> tuple[Message, ...]:
    """Returns the messages: the system prompt, if any, and the conversation."""
    contents = body.list("contents")
    if not contents:
        raise body.refused("contents", "contents is not specified")
    check_messages(contents, "contents")
    turns = []
    system = _system(body)
    if system:
        turns.append(Message("system", system))
    ids = CallIds()
    for content in body.objects("contents"):
        role = content.text("role", "")
        if role not in _ROLES:
            raise content.refused("role", f"Please use a valid role: user, model; came {role!r}")
        if not content.list("parts"):
            raise content.refused("parts", "contents.parts must not be empty")
        turns.append(Message(_ROLES[role], _content(content, ids)))
    return tuple(turns)


def _system(body: GeminiFields) -> Content:
    instruction = body.object("systemInstruction", {})
    for part in instruction.objects("parts"):
        if part.fields.keys() != {"text"}:
            raise part.refusal(part.path, part.line(part.path, "a system instruction holds nothing but text"))
    return _content(instruction, CallIds()) or ""


class CallIds:
    """The ids of a request's function calls, which are made if missing and by which each result's call is found.
    Gemini's clients may leave ids out; results of one function are then in the order of its calls."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def called(self, call_id: str, name: str) -> str:
        call_id = call_id or self._next_id()
        self._open.append((name, call_id))
        return call_id

    def answered(self, call_id: str, name: str) -> str:
        for waiting in self._open:
            if (call_id == waiting[1]) if call_id else (name == waiting[0]):
                self._open.remove(waiting)
                return waiting[1]
        return call_id or self._next_id()

    def _next_id(self) -> str:
        self._count += 1
        return f"call_{self._count}"


def _content(holder: GeminiFields, ids: CallIds) -> Content:
    """Returns the parts; a single text as a plain string."""
    parts = tuple(_part(part, ids) for part in holder.objects("parts"))
    return parts[0] if len(parts) == 1 and isinstance(parts[0], str) else parts


def _part(part: GeminiFields, ids: CallIds) -> Part:
    fields = part.others({"thought"} if part.fields.get("thought") is False else ())
    kinds = fields.keys() - {_SIGNATURE}
    if not fields:
        raise part.refused("data", "required oneof field 'data' must have one initialized field")
    if kinds == {"functionCall"}:
        return _call(part, fields, ids)
    if _SIGNATURE not in fields:
        if kinds == {"text"}:
            return part.text("text")
        if kinds == {"functionResponse"}:
            return _result(part, ids)
        if kinds == {"inlineData"}:
            return _data(part) or part.native(FAMILY)
        if kinds == {"fileData"}:
            return _stored(part) or part.native(FAMILY)
    return part.native(FAMILY)


def _data(part: GeminiFields) -> Image | None:
    blob = part.object("inlineData")
    kind, data = blob.text("mimeType", ""), blob.text("data", "")
    if blob.fields.keys() != _DATA or not kind.startswith("image/"):
        return None
    data = data.translate(_TO_STANDARD).rstrip("=")
    return Image(f"data:{kind};base64,{data}{'=' * (-len(data) % 4)}")


def _stored(part: GeminiFields) -> Image | None:
    """Returns an image at an address whose ending shows its kind; None for any other file, such as one in Google's own
    storage, which only Gemini can read."""
    file = part.object("fileData")
    url, kind = file.text("fileUri", ""), file.text("mimeType", "")
    is_image = kind.startswith("image/") and mimetypes.guess_type(url.partition("?")[0])[0] == kind
    is_reachable = url.startswith(("https://", "http://"))
    return Image(url) if file.fields.keys() == _STORED and is_image and is_reachable else None


def _call(part: GeminiFields, fields: dict[str, Any], ids: CallIds) -> ToolCall | Native:
    call = part.object("functionCall")
    name, arguments = call.named(), call.object("args", {})
    call_id = ids.called(call.text("id", ""), name)
    if not call.fields.keys() <= _CALL:
        return part.native(FAMILY, fields)
    signature = part.native(FAMILY, {_SIGNATURE: fields[_SIGNATURE]}) if _SIGNATURE in fields else None
    return ToolCall(call_id, name, arguments.written(arguments.raw), signature)


def _result(part: GeminiFields, ids: CallIds) -> ToolResult | Native:
    """Returns a function's result. `output` and `error` are Google's names for a text; any other object becomes JSON
    text."""
    result = part.object("functionResponse")
    name, response = result.named(), result.object("response", {})
    call_id = ids.answered(result.text("id", ""), name)
    is_error = response.raw.keys() == {"error"}
    output = next(iter(response.raw.values())) if is_error or response.raw.keys() == {"output"} else None
    is_error = is_error and isinstance(output, str)
    text = output if isinstance(output, str) else response.written(response.raw)
    images = [_image_in(each) for each in result.objects("parts")]
    readable = [image for image in images if image is not None]
    if not result.fields.keys() <= _RESULT or len(readable) < len(images):
        return part.native(FAMILY)
    return ToolResult(call_id, (text, *readable) if readable else text, name, is_error)


def _image_in(part: GeminiFields) -> Image | None:
    return _data(part) if part.fields.keys() == {"inlineData"} else None


def tools_of(body: GeminiFields) -> tuple[Tool | Native, ...] | None:
    tools: list[Tool | Native] = []
    for tool in body.objects("tools"):
        tools += [_function(function) for function in tool.objects("functionDeclarations")]
        if others := tool.others({"functionDeclarations"}):
            tools.append(tool.native(FAMILY, others))
    return tuple(tools) or None


def _function(function: GeminiFields) -> Tool | Native:
    """Returns a tool without the schema of its results, which Google's client adds to every Python function and no
    other provider has a field for; a native part for one with fields that only Gemini knows."""
    allowed = _FUNCTION | {"behavior"} if function.fields.get("behavior") in ("UNSPECIFIED", "BLOCKING") else _FUNCTION
    name = function.named()
    if not function.fields.keys() <= allowed:
        native = {"functionDeclarations": [function.raw]}
        return function.native(FAMILY, native)
    function.written(function.raw)
    schema = None
    if function.has("parameters"):
        schema = json_schema(function.fields["parameters"], function.path_to("parameters"))
    if function.has("parametersJsonSchema"):
        parameters = function.fields["parametersJsonSchema"]
        if not isinstance(parameters, Mapping):
            raise function.wrong_type(function.path_to("parametersJsonSchema"), "a schema", parameters)
        schema = dict(parameters)
    return Tool(name, function.text("description", ""), schema)


def choice_of(body: GeminiFields, extra: dict[str, Any]) -> str | None:
    """Returns the tool choice, None if not set; a choice that a call can't express goes into `extra`."""
    if not body.has("toolConfig"):
        return None
    config = body.object("toolConfig")
    calling = config.object("functionCallingConfig", {})
    mode, names = calling.text("mode", "").upper(), calling.list("allowedFunctionNames")
    calling.boolean("streamFunctionCallArguments")
    is_known = config.fields.keys() <= {"functionCallingConfig"}
    is_known = is_known and calling.fields.keys() <= {"mode", "allowedFunctionNames"}
    if is_known and not names and mode in ("", "MODE_UNSPECIFIED", "AUTO", "NONE", "ANY"):
        return {"AUTO": "auto", "NONE": "none", "ANY": "required"}.get(mode)
    if is_known and mode == "ANY" and len(names) == 1:
        name = calling.texts("allowedFunctionNames", may_be_one=True)
        if name is not None and name[0] not in ("auto", "none", "required"):
            return name[0]
    extra["toolConfig"] = config.fields
    return None
