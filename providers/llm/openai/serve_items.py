"""Reads the items of a request to OpenAI's Responses as turns of a conversation.

Pure. A model's messages, thoughts and tool calls that follow each other are one turn; so are results of tools. What no
neutral part can hold stands in a native part of the family `openai-responses`, unchanged. Left out: the ids of stored
items, and their status.
"""

from __future__ import annotations

from ....engine.call import Message
from ....engine.content import Image, Native, Part, ToolCall, ToolResult
from ..serve_bounds import check_messages
from ..serve_dialect import RequestRefusal
from .serve_fields import CONTENT, OpenAIFields
from .serve_turns import MARKS, as_content, beside

FAMILY = "openai-responses"
_ROLES = ("user", "assistant", "system", "developer")
_STORED = frozenset({"id", "status", "type", *MARKS})
_MESSAGE = _STORED | {"role", "content"}
_TEXT = {"type", "text", "annotations", "logprobs", *MARKS}
_IMAGE = {"type", "image_url", "detail", "file_id", *MARKS}
_CALL = _STORED | {"call_id", "name", "arguments"}
_RESULT = _STORED | {"call_id", "output", "name"}


def turns(body: OpenAIFields) -> tuple[Message, ...]:
    """Returns the conversation; the request's instructions come first, as a turn of the system's."""
    value, instructions = body.required("input"), body.optional_text("instructions")
    first = [] if instructions is None else [Message("system", instructions)]
    if isinstance(value, str):
        return (*first, Message("user", value))
    items = body.list("input", CONTENT)
    check_messages(items, "input")
    body.filled_list("input")
    gathered = TurnBuilder(first)
    for item in body.objects("input"):
        gathered.take(item)
    return gathered.turns()


class TurnBuilder:
    """The builder of turns from items; the last turn may still grow."""

    def __init__(self, first: list[Message]) -> None:
        self._turns = first
        self._role = ""
        self._parts: list[Part] = []
        self._names: dict[str, str] = {}

    def turns(self) -> tuple[Message, ...]:
        self._close()
        return tuple(self._turns)

    def take(self, item: OpenAIFields) -> None:
        is_typed = item.has("type")
        if not is_typed and "role" not in item.fields:
            if "id" in item.fields and "content" not in item.fields:
                raise _stored_item(item)
            item.required("type")
        match item.text("type", "message"):
            case "message":
                self._take_message(item)
            case "item_reference":
                raise _stored_item(item)
            case "function_call":
                self._take_call(item)
            case "function_call_output":
                self._take_result(item)
            case _:
                if any(not isinstance(part, Native) for part in self._parts):
                    self._close()
                self._add("assistant", item.native(FAMILY))

    def _add(self, role: str, *parts: Part) -> None:
        if role != self._role:
            self._close()
        self._role = role
        self._parts += parts

    def _close(self) -> None:
        parts = self._parts
        if self._role == "assistant" and all(map(_is_thought, parts)) and self._follows_its_own():
            # A thought goes before the text it led to: a stream writes it behind a text that was sent at once.
            content = self._turns.pop().content
            parts = [*parts, *((content,) if isinstance(content, str) else content)]
        if self._role:
            self._turns.append(Message(self._role, as_content(parts)))
        self._role, self._parts = "", []

    def _follows_its_own(self) -> bool:
        return bool(self._turns) and self._turns[-1].role == "assistant"

    def _take_message(self, item: OpenAIFields) -> None:
        role = item.choice("role", _ROLES)
        is_all = item.holds_only(_MESSAGE)
        parts = _content_parts(item, role) if is_all else [item.native(FAMILY, {**item.raw, "type": "message"})]
        if role != "assistant" or any(not isinstance(part, Native | ToolCall) for part in self._parts):
            self._close()
        if parts:
            self._add(role, *parts)

    def _take_call(self, item: OpenAIFields) -> None:
        id_, name = item.text("call_id"), item.text("name")
        self._names[id_] = name
        self._add("assistant", ToolCall(id_, name, item.text("arguments"), beside(item, _CALL, FAMILY)))

    def _take_result(self, item: OpenAIFields) -> None:
        id_ = item.text("call_id")
        output = _output(item)
        if output is None or not item.holds_only(_RESULT):
            self._add("tool", item.native(FAMILY))
            return
        self._add("tool", ToolResult(id_, output, self._names.get(id_) or item.text("name", "")))


def _is_thought(part: Part) -> bool:
    return isinstance(part, Native) and part.value.get("type") == "reasoning"


def _stored_item(item: OpenAIFields) -> RequestRefusal:
    message = f"Unsupported item: '{item.path}' refers to an item that was stored; nothing is stored here"
    return RequestRefusal(f"{message}: send the item itself.", item.path)


def _content_parts(item: OpenAIFields, role: str) -> list[Part]:
    content = item.required("content")
    if isinstance(content, str):
        return [content]
    # A model's message may be empty.
    if role != "assistant":
        item.filled_list("content", CONTENT)
    return [_part(part) for part in item.objects("content")]


def _part(part: OpenAIFields) -> Part:
    kind = part.text("type")
    if kind in ("input_text", "output_text") and part.holds_only(_TEXT):
        return part.text("text")
    if kind == "input_image" and part.holds_only(_IMAGE) and not part.has("file_id"):
        return Image(part.text("image_url"), part.optional_text("detail"))
    return part.native(FAMILY)


def _output(item: OpenAIFields) -> str | tuple[str | Image, ...] | None:
    """Returns a tool's output; None if a tool's result can't hold it, such as a file."""
    output = item.required("output")
    if isinstance(output, str):
        return output
    parts = [_part(part) for part in item.objects("output")]
    neutral = tuple(part for part in parts if isinstance(part, str | Image))
    return neutral if len(neutral) == len(parts) else None
