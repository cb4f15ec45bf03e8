"""What an answer of Converse holds, whole or in the events of a stream, gathered block by block.

What has another type than it should is not there. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from ...engine.call import Citation, Usage
from ...engine.content import Native, Part, ToolCall
from .bedrock_turns import FAMILY
from .blocks import Spoken, native_of, object_in, written
from .faults import TOKENS_MAX
from .openai_shapes import counted
from .repair import mended

_OF_A_CALL = ("input", "name", "toolUseId")
# Said of a tool that Bedrock runs itself.
_SERVER_TOOL = "server_tool_use"


class _Block:
    """What is no text, as far as it has come: a tool call, a thought, a tool of Bedrock's own. `value` has one name,
    the block's kind, and under it what the block began with."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._pieces: dict[str, list[str]] = {}
        self._results: list[Any] = []

    @property
    def is_call(self) -> bool:
        asked = self._value.get("toolUse")
        return isinstance(asked, dict) and asked.get("type") != _SERVER_TOOL

    def take(self, delta: dict[str, Any]) -> None:
        for kind in ("toolUse", "reasoningContent"):
            for name, piece in _object(delta.get(kind)).items():
                if isinstance(piece, str):
                    self._pieces.setdefault(name, []).append(piece)
        self._results += _dicts(delta.get("toolResult"))
        if isinstance(delta.get("image"), dict):
            self._value = {"image": {**_object(self._value.get("image")), **delta["image"]}}

    def part(self) -> Part | None:
        if "toolUse" in self._value:
            return self._asked(_object(self._value["toolUse"]))
        if self._results:
            return native_of(
                FAMILY, {"toolResult": {**_object(self._value.get("toolResult")), "content": self._results}}
            )
        if "reasoningContent" in self._value and self._pieces:
            return self._thought()
        return native_of(FAMILY, self._value)

    def _asked(self, asked: dict[str, Any]) -> Part | None:
        came = mended("".join(self._pieces.get("input", ())))
        if not self.is_call:
            given = object_in(came) if came else _object(asked.get("input"))
            return native_of(FAMILY, {"toolUse": {**asked, "input": {} if given is None else given}})
        arguments = came or written(_object(asked.get("input")))
        call_id, name = asked.get("toolUseId"), asked.get("name")
        if arguments is None or not isinstance(call_id, str) or not isinstance(name, str):
            return None
        rest = {name: value for name, value in asked.items() if name not in _OF_A_CALL and value is not None}
        return ToolCall(mended(call_id), mended(name), arguments, native_of(FAMILY, rest) if rest else None)

    def _thought(self) -> Native | None:
        if "redactedContent" in self._pieces:
            return native_of(
                FAMILY, {"reasoningContent": {"redactedContent": _joined(self._pieces["redactedContent"])}}
            )
        told = {name: "".join(self._pieces[name]) for name in ("text", "signature") if name in self._pieces}
        return native_of(FAMILY, {"reasoningContent": {"reasoningText": {"text": "", **told}}})


def _joined(pieces: list[str]) -> str:
    """Bytes that came in pieces, each in base64 of its own."""
    try:
        return b64encode(b"".join(b64decode(piece) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)


class Gathered:
    """`is_said`: there was something besides thoughts, if only an empty text."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.spoken = Spoken()
        self.is_said = False
        self._citations: dict[str, Citation] = {}
        self._open: dict[Any, _Block] = {}

    @property
    def citations(self) -> tuple[Citation, ...]:
        return tuple(self._citations.values())

    def add_blocks(self, blocks: Iterable[dict[str, Any]]) -> None:
        for block in blocks:
            if "text" in block:
                self._say(block["text"])
            elif "citationsContent" in block:
                cited = _object(block["citationsContent"])
                for part in _dicts(cited.get("content")):
                    self._say(part.get("text"))
                for citation in _dicts(cited.get("citations")):
                    self._cite(citation)
            elif block:
                self._begin(block, None)

    def add_event(self, kind: str, value: dict[str, Any]) -> None:
        """There are kinds that mean nothing here."""
        index = value.get("contentBlockIndex")
        index = index if isinstance(index, int) else None
        if kind == "contentBlockStart":
            start = value.get("start")
            self.is_said = self.is_said or (start is not None and "reasoningContent" not in _object(start))
            if _object(start):
                self._begin(_object(start), index)
        elif kind == "contentBlockDelta":
            self._add_delta(_object(value.get("delta")), index)
        elif kind == "messageStop":
            self.finish = finish_of(value)
        elif kind == "metadata":
            self.usage = usage_of(value.get("usage"))

    def _begin(self, block: dict[str, Any], index: int | None) -> None:
        self._open[index] = begun = _Block(block)
        self.is_said = self.is_said or begun.is_call
        self.spoken.add(begun)

    def _add_delta(self, delta: dict[str, Any], index: int | None) -> None:
        if "text" in delta:
            self._say(delta["text"])
        elif index in self._open:
            self._open[index].take(delta)
        elif isinstance(delta.get("reasoningContent"), dict):
            # Thoughts begin with their first piece.
            self._begin({"reasoningContent": {}}, index)
            self._open[index].take(delta)
        self._cite(delta.get("citation"))

    def _say(self, text: Any) -> None:
        self.is_said = True
        if isinstance(text, str):
            self.spoken.say(text)

    def _cite(self, given: Any) -> None:
        """Only what leads somewhere: a place in a document that was sent along has no address."""
        location, title = _object(given).get("location"), _object(given).get("title")
        url = _object(_object(location).get("web")).get("url")
        if isinstance(url, str) and url:
            named = mended(title) if isinstance(title, str) and title else None
            self._citations.setdefault(url, Citation(mended(url), named))


def finish_of(value: dict[str, Any]) -> str | None:
    reason = value.get("stopReason")
    return reason if isinstance(reason, str) and reason else None


def usage_of(given: Any) -> Usage | None:
    """Bedrock counts as input only what was neither read from a cache nor written into one."""
    if not isinstance(given, dict):
        return None
    counts = [given.get(name) for name in ("inputTokens", "outputTokens")]
    counts += [given.get(f"cache{way}InputTokens") or 0 for way in ("Read", "Write")]
    fresh, written, cached, stored = (_count(count) for count in counts)
    if fresh is None or written is None or cached is None or stored is None:
        return None
    return counted(fresh + cached + stored, written, 0, cached)


def _count(given: Any) -> int | None:
    is_count = isinstance(given, int) and not isinstance(given, bool) and 0 <= given < TOKENS_MAX
    return given if is_count else None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
