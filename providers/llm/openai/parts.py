"""Reads the parts of a chat completion's message beside its plain text: tool calls, thoughts, other kinds.

One builder for whole messages and for streams, whose pieces it joins, however a server cuts and numbers them; odd
pieces cost no answer. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import orjson

from ....engine.content import Native, Part, ToolCall
from ..answer_values import as_text, objects_in
from ..blocks import native_of, object_in
from ..repair import mended
from .shapes import CompletionMessage
from .turns import FAMILY

_THOUGHTS = ("reasoning_content", "reasoning")
_OF_A_CALL = ("id", "type", "index", "function", "custom")
# The fields of a thought's details that are sent in pieces.
_GROWING = ("text", "summary", "data", "signature")


class _ToolCallBuilder:
    """One tool call, as far as it was received."""

    def __init__(self, index: int, call_id: str, kind: str) -> None:
        self.index = index
        self.id = call_id
        self.kind = kind
        self.name = ""
        self.arguments = ""
        self.beside: dict[str, Any] = {}

    @property
    def is_complete(self) -> bool:
        return self.arguments.endswith("}") and object_in(self.arguments) is not None

    def part(self, made_id: str) -> Part | None:
        call_id, name = mended(self.id) or made_id, mended(self.name)
        if self.kind == "custom":
            custom = {"name": name, "input": mended(self.arguments)}
            return Native(FAMILY, {"id": call_id, "type": "custom", "custom": custom})
        beside = native_of(FAMILY, self.beside) if self.beside else None
        return ToolCall(call_id, name, mended(self.arguments) or "{}", beside)


class MessageParts:
    """The parts of a message beside its text, gathered from the whole message or from deltas."""

    def __init__(self) -> None:
        self._thoughts: dict[str, list[str]] = {}
        self._details: list[dict[str, Any]] = []
        self._calls: list[_ToolCallBuilder] = []

    def take(self, message: CompletionMessage, *, is_whole: bool = False) -> None:
        """Adds a whole message, or one delta of a stream."""
        for name in _THOUGHTS:
            thought = getattr(message, name)
            if isinstance(thought, str) and thought:
                self._thoughts.setdefault(name, []).append(thought)
        for detail in _objects(message.reasoning_details):
            self._take_detail(detail, is_whole)
        for one in _objects(message.tool_calls):
            self._take_call(one, is_whole)
        if isinstance(message.function_call, dict):
            self._take_call({"index": 0, "function": message.function_call}, is_whole)

    @property
    def has_calls(self) -> bool:
        return bool(self._calls)

    def parts(self, spoken: Iterable[str | dict[str, Any]], raw_hash: str) -> tuple[Part, ...]:
        """Returns thoughts, contents (`spoken`) and tool calls, in this order; an empty tuple for plain text alone."""
        before = {name: mended("".join(pieces)) for name, pieces in self._thoughts.items()}
        details = {"reasoning_details": self._details} if self._details else {}
        thought = native_of(FAMILY, {**before, **details}) if before or details else None
        contents = [
            part for one in joined(spoken) if (part := mended(one) if isinstance(one, str) else native_of(FAMILY, one))
        ]
        in_order = sorted(self._calls, key=lambda one: one.index)
        # Made from the answer's bytes, so that the ids are the same whenever it is read again.
        calls = [one.part(f"call_{raw_hash[:20]}{number}") for number, one in enumerate(in_order)]
        if thought is None and not calls and all(isinstance(one, str) for one in contents):
            return ()
        return tuple(one for one in (thought, *contents, *calls) if one is not None)

    def _take_detail(self, detail: dict[str, Any], is_whole: bool) -> None:
        last = self._details[-1] if self._details and not is_whole else None
        if last is None or any(last.get(name) != detail.get(name) for name in ("type", "index")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            before = last.get(name)
            if name in _GROWING and isinstance(before, str) and isinstance(value, str):
                last[name] = before + value
            elif value is not None:
                last[name] = value

    def _take_call(self, one: dict[str, Any], is_whole: bool) -> None:
        kind = "custom" if isinstance(one.get("custom"), dict) else "function"
        inner = one.get(kind)
        function = inner if isinstance(inner, dict) else one
        name = as_text(function.get("name"))
        arguments = arguments_text(function.get("arguments" if kind == "function" else "input"))
        call_id = as_text(one.get("id"))
        if not (name or arguments or call_id):
            return
        number = one.get("index")
        index = number if isinstance(number, int) and not isinstance(number, bool) else None
        calling = None if is_whole else self._begun(index, call_id, name, arguments)
        if calling is None:
            calling = _ToolCallBuilder(len(self._calls) if index is None else index, call_id, kind)
            self._calls.append(calling)
        elif name and calling.is_complete and arguments == calling.arguments:
            return  # the whole call is repeated at its end
        calling.id = calling.id or call_id
        # Some servers repeat the name in every piece, others split it.
        if name != calling.name and not (calling.name and calling.arguments):
            calling.name += name
        calling.arguments += arguments
        calling.beside |= {key: value for key, value in _beside(one, inner).items() if value is not None}

    def _begun(self, index: int | None, call_id: str, name: str, arguments: str) -> _ToolCallBuilder | None:
        """Returns the tool call that a piece continues; None if it begins one. `index` is the call's number in the
        stream, None: the piece has none."""
        same = [one for one in self._calls if _is_same(one, index, call_id)]
        if not same:
            return None if name or not self._calls or index is not None else self._calls[-1]
        last = same[-1]
        if not name:
            return last
        if call_id and last.id and call_id != last.id:
            return None
        # Two whole calls under one number.
        is_another = arguments and last.is_complete and (arguments != last.arguments or not call_id)
        return None if is_another else last


def _is_same(one: _ToolCallBuilder, index: int | None, call_id: str) -> bool:
    return one.index == index if index is not None else bool(call_id) and one.id == call_id


def _beside(one: dict[str, Any], inner: Any) -> dict[str, Any]:
    """Returns the fields that a server adds to a tool call and wants sent back."""
    if not isinstance(inner, dict):
        return {}
    kind = one.get("type")
    fields = {"type": kind} if isinstance(kind, str) and kind not in ("function", "custom", "") else {}
    return fields | {name: value for name, value in one.items() if name not in _OF_A_CALL}


def joined(spoken: Iterable[str | dict[str, Any]]) -> list[str | dict[str, Any]]:
    """Returns the contents with neighbouring texts joined into one, and neighbouring thoughts too."""
    result: list[str | dict[str, Any]] = []
    for one in spoken:
        last = result[-1] if result else None
        if isinstance(one, str) and isinstance(last, str):
            result[-1] = last + one
        elif isinstance(one, dict) and isinstance(last, dict) and _is_thinking(one) and _is_thinking(last):
            result[-1] = {**last, **one, "thinking": _grown(last["thinking"], one["thinking"])}
        else:
            result.append(one)
    return result


def _is_thinking(part: dict[str, Any]) -> bool:
    return part.get("type") == "thinking" and isinstance(part.get("thinking"), list)


def _grown(thoughts: list[Any], more: list[Any]) -> list[Any]:
    for one in more:
        last = thoughts[-1] if thoughts else None
        if isinstance(last, dict) and isinstance(one, dict) and _are_texts(last, one):
            thoughts = [*thoughts[:-1], {**last, "text": last["text"] + one["text"]}]
        else:
            thoughts = [*thoughts, one]
    return thoughts


def _are_texts(*parts: dict[str, Any]) -> bool:
    return all(part.get("type") == "text" and isinstance(part.get("text"), str) for part in parts)


def _objects(value: Any) -> list[dict[str, Any]]:
    return objects_in([value] if isinstance(value, dict) else value)


def arguments_text(value: Any) -> str:
    """Returns a tool's arguments as a text: as JSON if a server sends the object itself, empty if there are none."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        try:
            return mended(json.dumps(value, ensure_ascii=False))
        except (ValueError, RecursionError):
            return ""
