"""Reads the JSON of an Anthropic message, whole or in events, field by field.

A field of a wrong type counts as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ....engine.call import NOT_REPORTED, Usage
from ....engine.content import Part
from ..answer_values import (
    as_index,
    as_object,
    as_text,
    citation_of,
    count_in,
    objects_in,
    origin_of,
    sum_in,
)
from ..answer_values import usage_of as checked_usage
from ..blocks import BlockReader, call_of, native_of, object_in
from .turns import FAMILY

# A paused turn waits for a request to continue, which is never sent: it is an answer that stopped before its end.
_CACHE_READ = "cache_read_input_tokens"
_CACHE_WRITTEN = "cache_creation_input_tokens"
# What the usage calls the place of a call that no place was asked for.
_ANYWHERE = ("global", "not_available", "")
_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}
_DIRECT = {"type": "direct"}
# Kinds of deltas -> the field whose pieces they hold.
_GROWING = {"thinking_delta": "thinking", "input_json_delta": "partial_json"}


class _MessageBlock:
    """A block without text, as far as it was received: a tool call, a thought, a tool of Anthropic's own."""

    def __init__(self, begun: dict[str, Any]) -> None:
        self._begun = begun
        self._pieces: dict[str, list[str]] = {}
        self._signature: str | None = None

    @property
    def is_call(self) -> bool:
        return self._begun.get("type") == "tool_use"

    def take(self, delta: dict[str, Any]) -> None:
        name = _GROWING.get(as_text(delta.get("type")))
        if name is not None and isinstance(delta.get(name), str):
            self._pieces.setdefault(name, []).append(delta[name])
        elif isinstance(delta.get("signature"), str):
            self._signature = delta["signature"]

    def part(self) -> Part | None:
        input_json = "".join(self._pieces.get("partial_json", ()))
        if self.is_call:
            # A direct call by the model is the default. The type is known, too.
            left_out = ("type", "caller") if self._begun.get("caller") == _DIRECT else ("type",)
            begun = {name: value for name, value in self._begun.items() if name not in left_out}
            return call_of(FAMILY, begun, "id", input_json)
        value = dict(self._begun)
        if "thinking" in self._pieces:
            value["thinking"] = f"{as_text(value.get('thinking'))}{''.join(self._pieces['thinking'])}"
        if self._signature is not None:
            value["signature"] = self._signature
        if (arguments := object_in(input_json)) is not None:
            value["input"] = arguments
        return native_of(FAMILY, value)


class MessageReader(BlockReader):
    """The builder of a reply from the fields of a message, or from its events."""

    finishes = _FINISHES
    # One that a stop sequence ended may be empty.
    full = ("end_turn",)

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[str, Any] = {}
        self._id: Any = None
        self._served: Any = None

    @property
    def usage(self) -> Usage | None:
        usage, place = _usage_of(self._counts), self._counts.get("inference_geo")
        if usage is not None and isinstance(place, str) and place not in _ANYWHERE:
            usage = structs.replace(usage, place=place)
        # The message's own counts leave out what compacting the context took, and the bill doesn't.
        for one in objects_in(self._counts.get("iterations")):
            if one.get("type") == "compaction":
                usage = (usage or NOT_REPORTED) + (_usage_of(one) or NOT_REPORTED)
        return usage

    @property
    def origin(self) -> dict[str, Any]:
        # Fast mode is a tier of its own, at its own price, but is reported apart.
        speed = self._counts.get("speed")
        tier = speed if speed == "fast" else self._counts.get("service_tier")
        return origin_of(answer_id=self._id, served=self._served, tier=tier)

    def add_message(self, message: dict[str, Any]) -> None:
        for block in objects_in(message.get("content")):
            self._add_block(block)
        self._id, self._served = message.get("id"), message.get("model")
        self._add_end(message)
        self._add_usage(message.get("usage"))

    def add_event(self, event: dict[str, Any]) -> None:
        """Adds an event. Kinds that hold nothing of the message are ignored; the caller handles errors."""
        match event.get("type"):
            case "message_start":
                if isinstance(event.get("message"), dict):
                    self.add_message(event["message"])
                    self._counts.pop("output_tokens", None)  # that of the first words; `message_delta` has all
            case "content_block_start":
                self._add_block(event.get("content_block"), as_index(event.get("index")))
            case "content_block_delta":
                self._add_delta(event.get("delta"), as_index(event.get("index")))
            case "message_delta":
                self._add_end(event.get("delta"))
                self._add_usage(event.get("usage"))

    def _add_block(self, block: Any, index: int | None = None) -> None:
        if not isinstance(block, dict):
            return
        if block.get("type") != "text":
            self.begin(_MessageBlock(block), index)
            return
        self.say(block.get("text"))
        for one in objects_in(block.get("citations")):
            self._add_citation(one)

    def _add_delta(self, delta: Any, index: int | None) -> None:
        if not isinstance(delta, dict):
            return
        if delta.get("type") == "text_delta":
            self.say(delta.get("text"))
        elif delta.get("type") == "citations_delta":
            self._add_citation(delta.get("citation"))
        elif index in self._open:
            self._open[index].take(delta)

    def _add_citation(self, citation: Any) -> None:
        """Adds a citation: a page has an address, a result of the caller's own search a source, a document neither."""
        if isinstance(citation, dict):
            self._citations.append(citation_of(citation.get("url") or citation.get("source"), citation.get("title")))

    def _add_end(self, holder: Any) -> None:
        if not isinstance(holder, dict):
            return
        if stop := as_text(holder.get("stop_reason")):
            self.stop = stop
        details = holder.get("stop_details")
        if isinstance(details, dict) and isinstance(details.get("explanation"), str):
            self.explanation = details["explanation"]

    def _add_usage(self, usage: Any) -> None:
        """Replaces the counts that are given: each is for the whole message so far."""
        if isinstance(usage, dict):
            self._counts.update({name: value for name, value in usage.items() if value is not None})


def _usage_of(counts: dict[str, Any]) -> Usage | None:
    """Returns the tokens of a message or of one round of it; None if they are unknown."""
    split = as_object(counts.get("cache_creation"))
    hour, brief = (count_in(split, f"ephemeral_{time}_input_tokens") for time in ("1h", "5m"))
    if (written := count_in(counts, _CACHE_WRITTEN)) is not None:
        if hour is None and brief is not None:
            hour = max(written - brief, 0)
        brief = max(written - (hour or 0), 0)
    elif split:
        counts = {**counts, _CACHE_WRITTEN: (hour or 0) + (brief or 0)}
    return checked_usage(
        sum_in(counts, "input_tokens", _CACHE_READ, _CACHE_WRITTEN),
        count_in(counts, "output_tokens"),
        count_in(counts.get("output_tokens_details"), "thinking_tokens"),
        count_in(counts, _CACHE_READ),
        writes=(brief, hour),
    )
