"""What the turns and the tools of a request to Gemini hold, as parts that every provider can be told.

What only Gemini has words for (thoughts and their signatures, stored files, code that it ran) stays as it stood. Pure.
"""

from __future__ import annotations

import mimetypes
from collections.abc import Mapping
from typing import Any

from ...engine.call import Message
from ...engine.content import Content, Image, Native, Part, Tool, ToolCall, ToolResult
from .bounds import check_messages
from .gemini_fields import fields, flag, items, refuse, refuse_value, text, written
from .gemini_schema import json_schema

FAMILY = "gemini"
_ROLES = {"user": "user", "model": "assistant", "function": "tool", "": "user"}
_SIGNATURE = "thoughtSignature"
# Google's own client writes bytes in the alphabet made for addresses, which Google alone takes for an image's.
_TO_STANDARD = str.maketrans("-_", "+/")
_DATA, _STORED = {"mimeType", "data"}, {"mimeType", "fileUri"}
_CALL, _RESULT = {"id", "name", "args"}, {"id", "name", "response", "parts"}
_FUNCTION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema"}


def turns_of(body: Mapping[str, Any]) -> tuple[Message, ...]:
    """The system prompt and the conversation."""
    given = items(body.get("contents", []), "contents")
    if not given:
        refuse("contents", "contents is not specified")
    check_messages(given, "contents")
    turns = []
    system = _system(body.get("systemInstruction"))
    if system:
        turns.append(Message("system", system))
    calls = _Calls()
    for place, each in enumerate(given):
        path = f"contents[{place}]"
        content = fields(each, path)
        role = text(content.get("role", ""), f"{path}.role")
        if role not in _ROLES:
            refuse(f"{path}.role", f"Please use a valid role: user, model; came {role!r}")
        parts = items(content.get("parts", []), f"{path}.parts")
        if not parts:
            refuse(f"{path}.parts", "contents.parts must not be empty")
        turns.append(Message(_ROLES[role], _content(parts, f"{path}.parts", calls)))
    return tuple(turns)


def _system(given: Any) -> Content:
    if given is None:
        return ""
    path = "systemInstruction.parts"
    parts = items(fields(given, "systemInstruction").get("parts", []), path)
    for place, each in enumerate(parts):
        if fields(each, f"{path}[{place}]").keys() != {"text"}:
            refuse(f"{path}[{place}]", "a system instruction holds nothing but text")
    return _content(parts, path, _Calls()) if parts else ""


class _Calls:
    """The functions that were asked for, so that results find theirs: Gemini's clients may leave the ids out, and then
    results come in the order of the calls."""

    def __init__(self) -> None:
        self._count = 0
        self._open: list[tuple[str, str]] = []

    def asked(self, call_id: str, name: str) -> str:
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


def _content(parts: list[Any], path: str, calls: _Calls) -> Content:
    """One text is that text."""
    read = tuple(_part(each, f"{path}[{place}]", calls) for place, each in enumerate(parts))
    return read[0] if len(read) == 1 and isinstance(read[0], str) else read


def _part(given: Any, path: str, calls: _Calls) -> Part:
    part = fields(given, path)
    if part.get("thought") is False:
        del part["thought"]
    kinds = part.keys() - {_SIGNATURE}
    if not part:
        refuse(f"{path}.data", "required oneof field 'data' must have one initialized field")
    if kinds == {"functionCall"}:
        return _call(part, path, calls)
    if _SIGNATURE not in part:
        if kinds == {"text"}:
            return text(part["text"], f"{path}.text")
        if kinds == {"functionResponse"}:
            return _result(given, part, path, calls)
        if kinds == {"inlineData"}:
            return _data(part["inlineData"], f"{path}.inlineData") or _own(given, path)
        if kinds == {"fileData"}:
            return _stored(part["fileData"], f"{path}.fileData") or _own(given, path)
    return _own(given, path)


def _own(value: Mapping[str, Any], path: str) -> Native:
    """What can't be written again is refused here, before anyone else looks at it."""
    written(value, path)
    return Native(FAMILY, value)


def _data(given: Any, path: str) -> Image | None:
    blob = fields(given, path)
    kind, data = text(blob.get("mimeType", ""), f"{path}.mimeType"), text(blob.get("data", ""), f"{path}.data")
    if blob.keys() != _DATA or not kind.startswith("image/"):
        return None
    data = data.translate(_TO_STANDARD).rstrip("=")
    return Image(f"data:{kind};base64,{data}{'=' * (-len(data) % 4)}")


def _stored(given: Any, path: str) -> Image | None:
    """An image at an address that tells its kind; what Google itself keeps has no such address, and only Gemini can
    look at it."""
    file = fields(given, path)
    url, kind = text(file.get("fileUri", ""), f"{path}.fileUri"), text(file.get("mimeType", ""), f"{path}.mimeType")
    is_told = kind.startswith("image/") and mimetypes.guess_type(url.partition("?")[0])[0] == kind
    return Image(url) if file.keys() == _STORED and is_told and url.startswith(("https://", "http://")) else None


def _call(part: dict[str, Any], path: str, calls: _Calls) -> ToolCall | Native:
    path = f"{path}.functionCall"
    call = fields(part["functionCall"], path)
    name = text(call.get("name", ""), f"{path}.name")
    if not name:
        refuse(f"{path}.name", "Name cannot be empty.")
    arguments = call.get("args", {})
    if not isinstance(arguments, Mapping):
        refuse_value(f"{path}.args", "an object", arguments)
    call_id = calls.asked(text(call.get("id", ""), f"{path}.id"), name)
    if not call.keys() <= _CALL:
        return _own(part, path)
    signature = _own({_SIGNATURE: part[_SIGNATURE]}, path) if _SIGNATURE in part else None
    return ToolCall(call_id, name, written(arguments, f"{path}.args"), signature)


def _result(given: Any, part: dict[str, Any], path: str, calls: _Calls) -> ToolResult | Native:
    """`output` and `error` are Google's names for a text that came of it; all else is told as it stands there."""
    path = f"{path}.functionResponse"
    told = fields(part["functionResponse"], path)
    name = text(told.get("name", ""), f"{path}.name")
    if not name:
        refuse(f"{path}.name", "Name cannot be empty.")
    response = told.get("response", {})
    if not isinstance(response, Mapping):
        refuse_value(f"{path}.response", "an object", response)
    call_id = calls.answered(text(told.get("id", ""), f"{path}.id"), name)
    is_error, is_output = response.keys() == {"error"}, response.keys() == {"output"}
    output = next(iter(response.values())) if is_error or is_output else None
    is_error = is_error and isinstance(output, str)
    said = output if isinstance(output, str) else written(response, f"{path}.response")
    images = [_shown(each, f"{path}.parts[{place}]") for place, each in enumerate(items(told.get("parts", []), path))]
    shown = [image for image in images if image is not None]
    if not told.keys() <= _RESULT or len(shown) < len(images):
        return _own(given, path)
    return ToolResult(call_id, (said, *shown) if shown else said, name, is_error)


def _shown(given: Any, path: str) -> Image | None:
    part = fields(given, path)
    return _data(part["inlineData"], f"{path}.inlineData") if part.keys() == {"inlineData"} else None


def tools_of(body: Mapping[str, Any]) -> tuple[Tool | Native, ...] | None:
    tools: list[Tool | Native] = []
    for place, each in enumerate(items(body.get("tools", []), "tools")):
        path = f"tools[{place}]"
        told = fields(each, path)
        functions = items(told.pop("functionDeclarations", []), f"{path}.functionDeclarations")
        tools += [_tool(one, f"{path}.functionDeclarations[{number}]") for number, one in enumerate(functions)]
        if told:
            tools.append(_own(told, path))
    return tuple(tools) or None


def _tool(given: Any, path: str) -> Tool | Native:
    """Of which form its results are is left out: Google's client says it of every function in Python, no other provider
    has a word for it, and the results themselves will show. Whether it is waited for only Gemini is told."""
    told = fields(given, path)
    if told.get("behavior") in ("UNSPECIFIED", "BLOCKING"):
        del told["behavior"]
    name = text(told.get("name", ""), f"{path}.name")
    if not name:
        refuse(f"{path}.name", "Name cannot be empty.")
    if not told.keys() <= _FUNCTION:
        return _own({"functionDeclarations": [given]}, path)
    written(told, path)
    schema = None
    if "parameters" in told:
        schema = json_schema(told["parameters"], f"{path}.parameters")
    if "parametersJsonSchema" in told:
        if not isinstance(told["parametersJsonSchema"], Mapping):
            refuse_value(f"{path}.parametersJsonSchema", "a schema", told["parametersJsonSchema"])
        schema = dict(told["parametersJsonSchema"])
    return Tool(name, text(told.get("description", ""), f"{path}.description"), schema)


def choice_of(body: Mapping[str, Any], extra: dict[str, Any]) -> str | None:
    """Which function; what else can be said of it goes on as it stands."""
    if "toolConfig" not in body:
        return None
    config = fields(body["toolConfig"], "toolConfig")
    path = "toolConfig.functionCallingConfig"
    calling = fields(config.get("functionCallingConfig", {}), path)
    mode = text(calling.get("mode", ""), f"{path}.mode").upper()
    names = items(calling.get("allowedFunctionNames", []), f"{path}.allowedFunctionNames")
    if calling.get("streamFunctionCallArguments") is not None:
        flag(calling["streamFunctionCallArguments"], f"{path}.streamFunctionCallArguments")
    is_known = config.keys() <= {"functionCallingConfig"} and calling.keys() <= {"mode", "allowedFunctionNames"}
    if is_known and not names and mode in ("", "MODE_UNSPECIFIED", "AUTO", "NONE", "ANY"):
        return {"AUTO": "auto", "NONE": "none", "ANY": "required"}.get(mode)
    if is_known and mode == "ANY" and len(names) == 1:
        name = text(names[0], f"{path}.allowedFunctionNames[0]")
        if name not in ("auto", "none", "required"):
            return name
    extra["toolConfig"] = config
    return None
