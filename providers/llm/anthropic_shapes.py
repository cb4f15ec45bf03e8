"""What the JSON of an Anthropic message holds, whole or in events, gathered field by field.

What has another type than it should is not there. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from ...engine.call import Reply, Usage
from ...engine.content import Part, ToolCall
from .anthropic_turns import FAMILY
from .blocks import Spoken, finish_with, native_of, object_in, written
from .openai_shapes import citations_of, counted
from .repair import mended

# A turn that paused waits to be gone on with, which nobody does here: like the others it stopped before its end.
_FINISHES = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "length",
    "refusal": "content_filter",
    "tool_use": "tool_calls",
}
_OF_A_CALL = ("id", "input", "name", "type")
_DIRECT = {"type": "direct"}
# What comes in pieces, by the kinds of deltas that bring it.
_GROWING = {"thinking_delta": "thinking", "input_json_delta": "partial_json"}


class _Block:
    """What is no text, as far as it has come: a tool call, a thought, a tool of Anthropic's own."""

    def __init__(self, begun: dict[str, Any]) -> None:
        self._begun = begun
        self._pieces: dict[str, list[str]] = {}
        self._signature: str | None = None

    @property
    def is_call(self) -> bool:
        return self._begun.get("type") == "tool_use"

    def take(self, delta: dict[str, Any]) -> None:
        name = _GROWING.get(_text(delta.get("type")))
        if name is not None and isinstance(delta.get(name), str):
            self._pieces.setdefault(name, []).append(delta[name])
        elif isinstance(delta.get("signature"), str):
            self._signature = delta["signature"]

    def part(self) -> Part | None:
        came = "".join(self._pieces.get("partial_json", ()))
        if self.is_call:
            return self._call(mended(came))
        value = dict(self._begun)
        if "thinking" in self._pieces:
            value["thinking"] = f"{_text(value.get('thinking'))}{''.join(self._pieces['thinking'])}"
        if self._signature is not None:
            value["signature"] = self._signature
        if (given := object_in(came)) is not None:
            value["input"] = given
        return native_of(FAMILY, value)

    def _call(self, came: str) -> ToolCall | None:
        """That the model itself has called is the rule, and not told again."""
        begun = self._begun
        whole = begun.get("input")
        arguments = came or written(whole if isinstance(whole, dict) else {})
        if arguments is None or not isinstance(begun.get("id"), str) or not isinstance(begun.get("name"), str):
            return None
        rest = {name: value for name, value in begun.items() if name not in _OF_A_CALL and value is not None}
        if rest.get("caller") == _DIRECT:
            del rest["caller"]
        native = native_of(FAMILY, rest) if rest else None
        return ToolCall(mended(begun["id"]), mended(begun["name"]), arguments, native)


class Gathered:
    """A message as far as it was read."""

    def __init__(self) -> None:
        self.stop: str | None = None
        self._spoken = Spoken()
        self._open: dict[Any, _Block] = {}
        self._notes: list[Any] = []
        self._counts: dict[str, Any] = {}
        self._explanation = ""
        self._is_said = False

    @property
    def is_empty(self) -> bool:
        """Said to be done, and nothing said. A stop sequence may be the first that was to be said."""
        return self.stop == "end_turn" and not self._is_said

    @property
    def usage(self) -> Usage | None:
        """Input that was written to the provider's cache or read from it is told beside the rest."""
        read, written = _count(self._counts, "input_tokens"), _count(self._counts, "output_tokens")
        if read is None or written is None:
            return None
        cached = _count(self._counts, "cache_read_input_tokens") or 0
        stored = _count(self._counts, "cache_creation_input_tokens") or 0
        thoughts = _count(self._counts.get("output_tokens_details"), "thinking_tokens") or 0
        return counted(read + cached + stored, written, thoughts, cached)

    def add_message(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        for block in content if isinstance(content, list) else ():
            self._add_block(block)
        self._add_end(message)
        self._add_usage(message.get("usage"))

    def add_event(self, event: dict[str, Any]) -> None:
        """Every event but errors and the last, which adds nothing. There are kinds that mean nothing here."""
        match event.get("type"):
            case "message_start":
                if isinstance(event.get("message"), dict):
                    self.add_message(event["message"])
            case "content_block_start":
                self._add_block(event.get("content_block"), _index(event))
            case "content_block_delta":
                self._add_delta(event.get("delta"), _index(event))
            case "message_delta":
                self._add_end(event.get("delta"))
                self._add_usage(event.get("usage"))

    def reply(self, body: bytes, is_repaired: bool) -> Reply:
        stop = self.stop or ""
        parts = self._spoken.parts()
        finish = finish_with(parts, _FINISHES.get(stop, mended(stop)))
        is_refused = finish == "content_filter"
        text = self._spoken.text
        if is_refused and not text:
            text = self._explanation
        return Reply(
            mended(text),
            self.usage,
            finish,
            is_refused,
            sha256(body).hexdigest(),
            body if is_repaired else None,
            citations=citations_of(self._notes, None, None),
            parts=parts,
        )

    def _add_block(self, block: Any, index: int | None = None) -> None:
        if not isinstance(block, dict):
            return
        if block.get("type") != "text":
            opened = _Block(block)
            self._open[index] = opened
            self._spoken.add(opened)
            self._is_said = self._is_said or opened.is_call
            return
        self._add_text(block.get("text"))
        for one in block["citations"] if isinstance(block.get("citations"), list) else ():
            self._add_citation(one)

    def _add_delta(self, delta: Any, index: int | None) -> None:
        if not isinstance(delta, dict):
            return
        if delta.get("type") == "text_delta":
            self._add_text(delta.get("text"))
        elif delta.get("type") == "citations_delta":
            self._add_citation(delta.get("citation"))
        elif index in self._open:
            self._open[index].take(delta)

    def _add_text(self, text: Any) -> None:
        self._is_said = True
        if isinstance(text, str):
            self._spoken.say(text)

    def _add_citation(self, citation: Any) -> None:
        """Pages have an address, results of the caller's own search a source; documents have neither."""
        if isinstance(citation, dict):
            self._notes.append({"url": citation.get("url") or citation.get("source"), "title": citation.get("title")})

    def _add_end(self, holder: Any) -> None:
        if not isinstance(holder, dict):
            return
        if isinstance(holder.get("stop_reason"), str):
            self.stop = holder["stop_reason"]
        details = holder.get("stop_details")
        if isinstance(details, dict) and isinstance(details.get("explanation"), str):
            self._explanation = details["explanation"]

    def _add_usage(self, usage: Any) -> None:
        """Later counts are of all that came, not of what came since."""
        if isinstance(usage, dict):
            self._counts.update({name: value for name, value in usage.items() if value is not None})


def _index(event: dict[str, Any]) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(holder: Any, name: str) -> int | None:
    value = holder.get(name) if isinstance(holder, dict) else None
    return value if isinstance(value, int) and value >= 0 else None
