"""Reads an answer of Converse, whole or in the events of a stream, block by block.

A field of a wrong type counts as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from ....engine.call import Citation, Usage
from ....engine.content import Native, Part, ToolCall
from ..answer_values import as_index, as_object, citation_of, count_in, each_once, objects_in, sum_in
from ..answer_values import usage_of as checked_usage
from ..blocks import AnswerContent, native_of, object_in, written
from ..repair import mended
from .turns import FAMILY

_OF_A_CALL = ("input", "name", "toolUseId")
_CACHE_COUNTS = ("cacheReadInputTokens", "cacheWriteInputTokens")
# Said of a tool that Bedrock runs itself.
_SERVER_TOOL = "server_tool_use"


class _ConverseBlock:
    """A streamed content block that is no text: a tool call, a thought, a tool of Bedrock's own. `value` is the block
    as it begins, an object with one field named by its kind; `take` collects the pieces that follow."""

    def __init__(self, value: dict[str, Any]) -> None:
        self._value = value
        self._pieces: dict[str, list[str]] = {}
        self._results: list[Any] = []

    @property
    def is_call(self) -> bool:
        tool_use = self._value.get("toolUse")
        return isinstance(tool_use, dict) and tool_use.get("type") != _SERVER_TOOL

    def take(self, delta: dict[str, Any]) -> None:
        for kind in ("toolUse", "reasoningContent"):
            for name, piece in as_object(delta.get(kind)).items():
                if isinstance(piece, str):
                    self._pieces.setdefault(name, []).append(piece)
        self._results += objects_in(delta.get("toolResult"))
        if isinstance(delta.get("image"), dict):
            self._value = {"image": {**as_object(self._value.get("image")), **delta["image"]}}

    def part(self) -> Part | None:
        if "toolUse" in self._value:
            return self._tool_part(as_object(self._value["toolUse"]))
        if self._results:
            return native_of(
                FAMILY, {"toolResult": {**as_object(self._value.get("toolResult")), "content": self._results}}
            )
        if "reasoningContent" in self._value and self._pieces:
            return self._thought()
        return native_of(FAMILY, self._value)

    def _tool_part(self, tool_use: dict[str, Any]) -> Part | None:
        input_json = mended("".join(self._pieces.get("input", ())))
        if not self.is_call:
            whole_input = object_in(input_json) if input_json else as_object(tool_use.get("input"))
            return native_of(FAMILY, {"toolUse": {**tool_use, "input": {} if whole_input is None else whole_input}})
        arguments = input_json or written(as_object(tool_use.get("input")))
        call_id, name = tool_use.get("toolUseId"), tool_use.get("name")
        if arguments is None or not isinstance(call_id, str) or not isinstance(name, str):
            return None
        rest = {name: value for name, value in tool_use.items() if name not in _OF_A_CALL and value is not None}
        return ToolCall(mended(call_id), mended(name), arguments, native_of(FAMILY, rest) if rest else None)

    def _thought(self) -> Native | None:
        if "redactedContent" in self._pieces:
            return native_of(
                FAMILY, {"reasoningContent": {"redactedContent": _joined(self._pieces["redactedContent"])}}
            )
        fields = {name: "".join(self._pieces[name]) for name in ("text", "signature") if name in self._pieces}
        return native_of(FAMILY, {"reasoningContent": {"reasoningText": {"text": "", **fields}}})


def _joined(pieces: list[str]) -> str:
    """Returns the base64 of some bytes from the base64 of each of their pieces."""
    try:
        return b64encode(b"".join(b64decode(piece) for piece in pieces)).decode()
    except (binascii.Error, ValueError):
        return "".join(pieces)


class ConverseReader:
    """The builder of an answer from blocks or events. `is_said`: it holds anything but thoughts, even an empty text."""

    def __init__(self) -> None:
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.served: Any = None
        self.tier: Any = None
        self.spoken = AnswerContent()
        self.is_said = False
        self._citations: list[Citation | None] = []
        self._open: dict[Any, _ConverseBlock] = {}

    @property
    def citations(self) -> tuple[Citation, ...]:
        return each_once(self._citations)

    def add_blocks(self, blocks: Iterable[dict[str, Any]]) -> None:
        for block in blocks:
            if "text" in block:
                self._say(block["text"])
            elif "citationsContent" in block:
                cited = as_object(block["citationsContent"])
                for part in objects_in(cited.get("content")):
                    self._say(part.get("text"))
                for citation in objects_in(cited.get("citations")):
                    self._cite(citation)
            elif block:
                self._begin(block, None)

    def add_event(self, kind: str, value: dict[str, Any]) -> None:
        """Adds an event of a stream; kinds that hold nothing of the answer are ignored."""
        index = as_index(value.get("contentBlockIndex"))
        if kind == "contentBlockStart":
            start = value.get("start")
            self.is_said = self.is_said or (start is not None and "reasoningContent" not in as_object(start))
            if as_object(start):
                self._begin(as_object(start), index)
        elif kind == "contentBlockDelta":
            self._add_delta(as_object(value.get("delta")), index)
        elif kind == "messageStop":
            self.finish = finish_of(value)
        elif kind == "metadata":
            self.add_metadata(value)

    def add_metadata(self, value: dict[str, Any]) -> None:
        """Adds usage, tier, and the model that a prompt router chose: Converse names no other."""
        self.usage = usage_of(value.get("usage"))
        self.tier = as_object(value.get("serviceTier")).get("type")
        routed = as_object(as_object(value.get("trace")).get("promptRouter"))
        self.served = routed.get("invokedModelId")

    def _begin(self, block: dict[str, Any], index: int | None) -> None:
        self._open[index] = begun = _ConverseBlock(block)
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

    def _cite(self, value: Any) -> None:
        """Adds a citation that has an address; a place in a document of the request has none."""
        citation = as_object(value)
        page = as_object(as_object(citation.get("location")).get("web"))
        self._citations.append(citation_of(page.get("url"), citation.get("title")))


def finish_of(value: dict[str, Any]) -> str | None:
    reason = value.get("stopReason")
    return reason if isinstance(reason, str) and reason else None


def usage_of(counts: Any) -> Usage | None:
    """Returns the tokens, None if unknown. Includes input that the cache has read or written, which Bedrock counts
    apart."""
    if not isinstance(counts, dict):
        return None
    output, cached, total = (count_in(counts, name) for name in ("outputTokens", _CACHE_COUNTS[0], "totalTokens"))
    written = count_in(counts, _CACHE_COUNTS[1])
    hour = None
    if details := objects_in(counts.get("cacheDetails")):
        hour = sum(count_in(one, "inputTokens") or 0 for one in details if one.get("ttl") == "1h")
    writes = (None if written is None else max(written - (hour or 0), 0), hour)
    return checked_usage(sum_in(counts, "inputTokens", *_CACHE_COUNTS), output, None, cached, total, writes=writes)
