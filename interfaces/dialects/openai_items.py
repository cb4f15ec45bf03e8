"""Items of a request to OpenAI's Responses as turns of a conversation.

Pure. What a model said, thought and asked of tools between two turns of others is one turn; so are results of tools
that follow each other. What no neutral part can say stands in a native part of the family `openai-responses`, as it
came. Dropped: the names that items had where they were stored, and how far they had come.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from ...engine.call import Message
from ...engine.content import Image, Native, Part, ToolCall, ToolResult
from .bounds import check_messages
from .dialect import Refused
from .openai_turns import MARKS, as_content, beside, placed
from .openai_values import field, missing, rows, some, table, text, text_in, writable, wrong_type, wrong_value

FAMILY = "openai-responses"
_CONTENT = "one of a string or array of objects"
_ROLES = ("user", "assistant", "system", "developer")
_STORED = frozenset({"id", "status", "type", *MARKS})
_MESSAGE = _STORED | {"role", "content"}
_TEXT = {"type", "text", "annotations", "logprobs", *MARKS}
_IMAGE = {"type", "image_url", "detail", "file_id", *MARKS}
_CALL = _STORED | {"call_id", "name", "arguments"}
_RESULT = _STORED | {"call_id", "output", "name"}


def turns(value: Any, instructions: Any) -> tuple[Message, ...]:
    """`instructions` come first, as a turn of the system's."""
    first = [] if instructions is None else [Message("system", text(instructions, "instructions"))]
    if isinstance(value, str):
        return (*first, Message("user", value))
    if not isinstance(value, list | tuple):
        wrong_type("input", "one of a string or array of objects", value)
    gathered = _Gathered(first)
    check_messages(value, "input")
    for one, where in placed(some(value, "input"), "input"):
        gathered.take(table(one, where), where)
    return gathered.turns()


class _Gathered:
    """The turns so far; the last one may still grow."""

    def __init__(self, first: list[Message]) -> None:
        self._turns = first
        self._role = ""
        self._parts: list[Part] = []
        self._names: dict[str, str] = {}

    def turns(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._turns)

    def take(self, item: Mapping[str, Any], where: str) -> None:
        kind = item.get("type")
        if kind is None and "role" not in item:
            if "id" in item and "content" not in item:
                refuse_reference(where)
            missing(f"{where}.type")
        if kind is None or kind == "message":
            self._take_message(item, where)
            return
        match text(kind, f"{where}.type"):
            case "item_reference":
                refuse_reference(where)
            case "function_call":
                self._take_call(item, where)
            case "function_call_output":
                self._take_result(item, where)
            case _:
                if any(not isinstance(part, Native) for part in self._parts):
                    self._close()
                self._add("assistant", Native(FAMILY, writable(item, where)))

    def _add(self, role: str, *parts: Part) -> None:
        if role != self._role:
            self._close()
        self._role = role
        self._parts += parts

    def _close(self) -> None:
        parts = self._parts
        if self._role == "assistant" and all(map(_is_thought, parts)) and self._follows_its_own():
            # A thought goes before what came of it: a stream tells it behind a text that went out as it came.
            said = self._turns.pop().content
            parts = [*parts, *((said,) if isinstance(said, str) else said)]
        if self._role:
            self._turns.append(Message(self._role, as_content(parts)))
        self._role, self._parts = "", []

    def _follows_its_own(self) -> bool:
        return bool(self._turns) and self._turns[-1].role == "assistant"

    def _take_message(self, item: Mapping[str, Any], where: str) -> None:
        role = text_in(item, "role", where)
        if role not in _ROLES:
            wrong_value(f"{where}.role", role, _ROLES)
        is_all = not _others(item, _MESSAGE)
        parts = _spoken(item, where) if is_all else [Native(FAMILY, writable({**item, "type": "message"}, where))]
        if role != "assistant" or any(not isinstance(part, Native | ToolCall) for part in self._parts):
            self._close()
        if parts:
            self._add(role, *parts)

    def _take_call(self, item: Mapping[str, Any], where: str) -> None:
        id_, name = text_in(item, "call_id", where), text_in(item, "name", where)
        self._names[id_] = name
        rest = {key: item[key] for key in _others(item, _CALL)}
        self._add("assistant", ToolCall(id_, name, text_in(item, "arguments", where), beside(rest, FAMILY, where)))

    def _take_result(self, item: Mapping[str, Any], where: str) -> None:
        id_, output = text_in(item, "call_id", where), field(item, "output", where)
        told = _output(output, f"{where}.output")
        if told is None or _others(item, _RESULT):
            self._add("tool", Native(FAMILY, writable(item, where)))
            return
        given = item.get("name")
        name = self._names.get(id_) or (text(given, f"{where}.name") if given is not None else "")
        self._add("tool", ToolResult(id_, told, name))


def _is_thought(part: Part) -> bool:
    return isinstance(part, Native) and part.value.get("type") == "reasoning"


def refuse_reference(where: str) -> NoReturn:
    raise Refused(
        f"Unsupported item: '{where}' refers to an item that was stored; nothing is stored here: send the item itself.",
        where,
    )


def _others(item: Mapping[str, Any], known: frozenset[str] | set[str]) -> list[str]:
    return [name for name, value in item.items() if name not in known and value is not None]


def _spoken(item: Mapping[str, Any], where: str) -> list[Part]:
    content = field(item, "content", where)
    if isinstance(content, str):
        return [content]
    at = f"{where}.content"
    # What a model said may be nothing.
    given = rows(content, at) if item["role"] == "assistant" else some(content, at, _CONTENT)
    return [_part(table(one, inner), inner) for one, inner in placed(given, at)]


def _part(part: Mapping[str, Any], where: str) -> Part:
    kind = text_in(part, "type", where)
    if kind in ("input_text", "output_text") and not _others(part, _TEXT):
        return text_in(part, "text", where)
    if kind == "input_image" and not _others(part, _IMAGE) and part.get("file_id") is None:
        detail = part.get("detail")
        return Image(text_in(part, "image_url", where), None if detail is None else text(detail, f"{where}.detail"))
    return Native(FAMILY, writable(part, where))


def _output(output: Any, where: str) -> str | tuple[str | Image, ...] | None:
    """None for what a tool's result can't hold, as a file."""
    if isinstance(output, str):
        return output
    parts = [_part(table(one, at), at) for one, at in placed(rows(output, where), where)]
    told = tuple(part for part in parts if isinstance(part, str | Image))
    return told if len(told) == len(parts) else None
