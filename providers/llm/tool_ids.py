"""Rewrites ids of tool calls that a provider would refuse, since clients resend ids which another provider gave.

An id that the provider takes stays. Any other is rewritten by a fixed rule, without any memory, so that it is the same
throughout a conversation and in every later one that continues it. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256

from msgspec import structs

from ...engine.call import Call
from ...engine.content import Native, Part, ToolCall, ToolResult
from .families import with_parts

_WRONG = re.compile(r"[^a-zA-Z0-9_-]")
_MOST = 64
_TAIL = 16
# The field in which Anthropic's native parts name the call that they answer.
_ANSWERED = "tool_use_id"


def with_sound_ids(call: Call) -> Call:
    """Returns the call with ids of up to 64 letters, digits, `_` and `-`, each used for one call, as Anthropic and
    Bedrock want."""
    ids = _Ids()
    return with_parts(call, lambda part: (ids.part(part),))


def sound(call_id: str) -> str:
    """Returns an id of up to 64 letters, digits, `_` and `-`. One that has to change ends in its digest, so that
    different ids stay different."""
    if call_id and len(call_id) <= _MOST and not _WRONG.search(call_id):
        return call_id
    return _digested(call_id, _WRONG.sub("_", call_id), _MOST)


def shortened(call_id: str, most: int) -> str:
    """Returns an id of at most `most` characters; a longer one ends in its digest."""
    return call_id if len(call_id) <= most else _digested(call_id, call_id, most)


def _digested(call_id: str, readable: str, most: int) -> str:
    digest = sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:_TAIL]
    return f"{readable[: most - _TAIL - 1]}_{digest}"


class _Ids:
    """The ids of one conversation. An id that is used again belongs to a new call, since some servers start numbering
    anew in every answer; a result belongs to the first call with its id that has no result yet."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._open: dict[str, list[str]] = {}
        self._last: dict[str, str] = {}

    def part(self, part: Part) -> Part:
        if isinstance(part, ToolCall | ToolResult):
            new_id = self._called(part.id) if isinstance(part, ToolCall) else self._answered(part.id)
            return part if new_id == part.id else structs.replace(part, id=new_id)
        if isinstance(part, Native):
            return self._native(part)
        return part

    def _native(self, part: Native) -> Native:
        if isinstance(part.on, str | ToolCall | ToolResult | Native):
            on = self.part(part.on)
            return part if on is part.on else Native(part.protocol, part.value, on)
        call_id = part.value.get(_ANSWERED)
        new_id = self._answered(call_id) if isinstance(call_id, str) and call_id in self._open else call_id
        return part if new_id == call_id else Native(part.protocol, {**part.value, _ANSWERED: new_id})

    def _called(self, call_id: str) -> str:
        new_id = next(name for name in _others(sound(call_id)) if name not in self._taken)
        self._taken.add(new_id)
        self._open.setdefault(call_id, []).append(new_id)
        return new_id

    def _answered(self, call_id: str) -> str:
        if waiting := self._open.get(call_id):
            self._last[call_id] = waiting.pop(0)
        return self._last.get(call_id) or sound(call_id)


def _others(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        end = f"_{number}"
        yield f"{name[: _MOST - len(end)]}{end}"
        number += 1
