"""Conversations as clients of three dialects write them, from one telling of each.

A turn is a role and what is said in it, in its order: texts, an image, a thought, calls of one tool and their results.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import orjson
from tool_talk import PIXEL

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}


class Asked(NamedTuple):
    id: str
    place: str


class Got(NamedTuple):
    id: str
    text: str
    is_error: bool = False


IMAGE: Literal[1] = 1
THOUGHT: Literal[2] = 2
Said = str | Asked | Got | Literal[1, 2]
Turn = tuple[str, list[Said]]
ODD, LONG = "functions.weather:0", "a" * 70

TALKS: dict[str, list[Turn]] = {
    "a question": [("system", ["Be brief."]), ("user", ["one"])],
    "images": [("user", ["one", IMAGE, "two"]), ("assistant", ["three"]), ("user", [IMAGE])],
    "two tools at once, their results in the other order": [
        ("user", ["one"]),
        ("assistant", ["two", Asked("toolu_1", "Bonn"), Asked(ODD, "Köln")]),
        ("user", [Got(ODD, "rain"), Got("toolu_1", "sun")]),
        ("user", ["three"]),
    ],
    "an error as a result, then the same id anew": [
        ("user", ["one"]),
        ("assistant", [Asked("call_0", "Bonn")]),
        ("user", [Got("call_0", "No such place.", is_error=True)]),
        ("assistant", [Asked("call_0", "Köln")]),
        ("user", [Got("call_0", "sun"), "two"]),
    ],
    "thoughts": [
        ("user", ["one"]),
        ("assistant", [THOUGHT, "two", Asked(LONG, "Bonn")]),
        ("user", [Got(LONG, "sun")]),
        ("assistant", [THOUGHT, "three"]),
        ("user", ["four"]),
    ],
    "blank texts": [
        ("user", ["one"]),
        ("assistant", ["", Asked("t", "Bonn")]),
        ("user", [Got("t", "sun")]),
        ("assistant", [" "]),
        ("user", ["two"]),
    ],
    "users one after the other": [("user", ["one"]), ("user", ["two", "three"]), ("assistant", ["four"])],
    "the assistant first": [("assistant", ["one"]), ("assistant", ["two"]), ("user", ["three"])],
    "an answer begun": [("user", ["one"]), ("assistant", ["two"])],
    "a system prompt in the middle": [("system", ["s"]), ("user", ["one"]), ("system", ["t"]), ("user", ["two"])],
}


def in_chat(turns: list[Turn]) -> dict[str, Any]:
    messages: list[dict[str, Any]] = []
    for role, said in turns:
        for one in said:
            if isinstance(one, Got):
                messages.append({"role": "tool", "tool_call_id": one.id, "content": one.text})
        content = [_chat_part(one) for one in said if isinstance(one, str) or one == IMAGE]
        calls = [_chat_call(one) for one in said if isinstance(one, Asked)]
        if not content and not calls:
            continue
        only = content[0]["text"] if len(content) == 1 and "text" in content[0] else content
        message: dict[str, Any] = {"role": role, "content": only or None}
        if THOUGHT in said:
            message["reasoning_content"] = "I think."
        messages.append({**message, "tool_calls": calls} if calls else message)
    tool = {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": SCHEMA}}
    return {"model": "m", "messages": messages, "tools": [tool], "tool_choice": "auto", "user": "u"}


def _chat_part(one: Said) -> dict[str, Any]:
    if one == IMAGE:
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    return {"type": "text", "text": one}


def _chat_call(one: Asked) -> dict[str, Any]:
    arguments = orjson.dumps({"place": one.place}).decode()
    return {"id": one.id, "type": "function", "function": {"name": "weather", "arguments": arguments}}


def in_messages(turns: list[Turn]) -> dict[str, Any]:
    """The last block of every turn is marked."""
    messages: list[dict[str, Any]] = [{"role": role, "content": [_block(one) for one in said]} for role, said in turns]
    for message in messages:
        message["content"][-1]["cache_control"] = {"type": "ephemeral"}
    body: dict[str, Any] = {"model": "m", "max_tokens": 9, "tool_choice": {"type": "auto"}, "messages": messages}
    if messages[0]["role"] == "system":
        body["system"] = messages.pop(0)["content"]
    return {**body, "tools": [{"name": "weather", "description": "Tells it.", "input_schema": SCHEMA}]}


def _block(one: Said) -> dict[str, Any]:
    match one:
        case str():
            return {"type": "text", "text": one}
        case Asked():
            return {"type": "tool_use", "id": one.id, "name": "weather", "input": {"place": one.place}}
        case Got():
            return {"type": "tool_result", "tool_use_id": one.id, "content": one.text, "is_error": one.is_error}
        case 1:
            return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        case _:
            return {"type": "thinking", "thinking": "I think.", "signature": "c2ln"}


def in_generate(turns: list[Turn]) -> dict[str, Any]:
    """Gemini's clients have one system prompt."""
    system = [{"text": one} for role, said in turns if role == "system" for one in said]
    roles = {"user": "user", "assistant": "model"}
    contents = [
        {"role": roles[role], "parts": [_part(one) for one in said]} for role, said in turns if role != "system"
    ]
    function = {"name": "weather", "description": "Tells it.", "parametersJsonSchema": SCHEMA}
    body: dict[str, Any] = {"model": "m", "contents": contents, "tools": [{"functionDeclarations": [function]}]}
    return {**body, "systemInstruction": {"parts": system}} if system else body


def _part(one: Said) -> dict[str, Any]:
    match one:
        case str():
            return {"text": one}
        case Asked():
            return {"functionCall": {"id": one.id, "name": "weather", "args": {"place": one.place}}}
        case Got():
            response = {"error" if one.is_error else "output": one.text}
            return {"functionResponse": {"id": one.id, "name": "weather", "response": response}}
        case 1:
            return {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
        case _:
            return {"text": "I think.", "thought": True}
