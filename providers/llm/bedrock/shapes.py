"""Reads an answer of Converse, whole or in the events of a stream, block by block.

A field of a wrong type counts as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from ....engine.call import Usage
from ....engine.content import Native, Part
from ..answer_values import as_index, as_object, as_text, citation_of, count_in, objects_in, origin_of, sum_in
from ..answer_values import usage_of as checked_usage
from ..blocks import BlockReader, call_of, native_of, object_in
from ..repair import mended
from .turns import FAMILY

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
        return call_of(FAMILY, tool_use, "toolUseId", input_json)

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


class ConverseReader(BlockReader):
    """The builder of a reply from the blocks of an answer, or from its events."""

    finishes: ClassVar[Mapping[str, str]] = {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "guardrail_intervened": "content_filter",
        "content_filtered": "content_filter",
        "refusal": "content_filter",
        "tool_use": "tool_calls",
    }
    broken = ("malformed_model_output", "malformed_tool_use")
    full = ("end_turn", "stop_sequence")

    def __init__(self) -> None:
        super().__init__()
        self._metadata: dict[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        return usage_of(self._metadata.get("usage"))

    @property
    def origin(self) -> dict[str, Any]:
        """The tier, and the model that a prompt router chose: Converse names no other."""
        routed = as_object(as_object(self._metadata.get("trace")).get("promptRouter"))
        tier = as_object(self._metadata.get("serviceTier")).get("type")
        return origin_of(served=routed.get("invokedModelId"), tier=tier)

    def add_answer(self, answer: dict[str, Any], blocks: Iterable[dict[str, Any]]) -> None:
        """Adds a whole answer with these blocks."""
        self._add_stop(answer)
        self._metadata = answer
        self._add_blocks(blocks)

    def _add_blocks(self, blocks: Iterable[dict[str, Any]]) -> None:
        for block in blocks:
            if "text" in block:
                self.say(block["text"])
            elif "citationsContent" in block:
                cited = as_object(block["citationsContent"])
                for part in objects_in(cited.get("content")):
                    self.say(part.get("text"))
                for citation in objects_in(cited.get("citations")):
                    self._cite(citation)
            elif block:
                self.begin(_ConverseBlock(block))

    def add_event(self, kind: str, value: dict[str, Any]) -> None:
        """Adds an event of a stream; kinds that hold nothing of the answer are ignored."""
        index = as_index(value.get("contentBlockIndex"))
        if kind == "contentBlockStart":
            start = value.get("start")
            self.is_said = self.is_said or (start is not None and "reasoningContent" not in as_object(start))
            if as_object(start):
                self.begin(_ConverseBlock(as_object(start)), index)
        elif kind == "contentBlockDelta":
            self._add_delta(as_object(value.get("delta")), index)
        elif kind == "messageStop":
            self._add_stop(value)
        elif kind == "metadata":
            self._metadata = value

    def _add_stop(self, value: dict[str, Any]) -> None:
        self.stop = as_text(value.get("stopReason")) or None

    def _add_delta(self, delta: dict[str, Any], index: int | None) -> None:
        if "text" in delta:
            self.say(delta["text"])
        elif index in self._open:
            self._open[index].take(delta)
        elif isinstance(delta.get("reasoningContent"), dict):
            # Thoughts begin with their first piece.
            self.begin(_ConverseBlock({"reasoningContent": {}}), index)
            self._open[index].take(delta)
        self._cite(delta.get("citation"))

    def _cite(self, value: Any) -> None:
        """Adds a citation that has an address; a place in a document of the request has none."""
        citation = as_object(value)
        page = as_object(as_object(citation.get("location")).get("web"))
        self._citations.append(citation_of(page.get("url"), citation.get("title")))


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
