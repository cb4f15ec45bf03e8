"""What the JSON of a generateContent answer may hold, joined from one chunk or from many.

Read field by field: what has another type than it should is not there. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from ...engine.call import Citation, TokenLogprob, Usage
from ...engine.content import Native, Part
from .blocks import Spoken, native_of
from .faults import TOKENS_MAX
from .gemini_calls import Calls
from .gemini_turns import FAMILY
from .openai_shapes import counted
from .repair import mended

# What tells an answer from any other JSON.
_KNOWN = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"})
_SIGNATURE = "thoughtSignature"
_CITING = frozenset({"groundingMetadata", "citationMetadata"})


class Joined(Struct):
    """`blocked`: what is said of a prompt that was not let through. `has_parts`: something was said, if only an empty
    text; what was thought aloud is not said."""

    text: str = ""
    finish: str | None = None
    blocked: str | None = None
    usage: Usage | None = None
    logprobs: list[TokenLogprob] | None = None
    citations: tuple[Citation, ...] = ()
    is_known: bool = False
    has_candidate: bool = False
    has_parts: bool = False
    parts: tuple[Part, ...] = ()
    is_whole: bool = True


class _Block:
    """What is neither text nor a tool call: a thought, whose pieces are joined until it is signed, or a tool of
    Google's own."""

    def __init__(self, part: dict[str, Any]) -> None:
        self._part = part
        self._texts = [part["text"]] if isinstance(part.get("text"), str) else []

    def goes_on_with(self, part: dict[str, Any]) -> bool:
        return bool(self._texts) and part.get("thought") is True and _SIGNATURE not in self._part and _is_text(part)

    def take(self, part: dict[str, Any]) -> None:
        self._texts.append(part["text"])
        self._part = {**self._part, **part}

    def part(self) -> Native | None:
        value = {**self._part, "text": "".join(self._texts)} if self._texts else self._part
        return native_of(FAMILY, value)


class _Parts:
    """All that a candidate says, in its order."""

    def __init__(self) -> None:
        self.spoken = Spoken()
        self.calls = Calls()
        self.has_said = False
        self._thought: _Block | None = None

    def take(self, part: dict[str, Any]) -> None:
        if part.get("thought") is True:
            self._think(part)
            return
        self._thought = None
        self.has_said = True
        if isinstance(part.get("functionCall"), dict):
            begun = self.calls.take(part)
            if begun is not None:
                self.spoken.add(begun)
        elif isinstance(part.get("text"), str):
            self.spoken.say(part["text"])
            if _SIGNATURE in part:
                # The text is for everyone; who goes on with it sends the signature behind it, as in a stream.
                self.spoken.add(_Block({"text": "", _SIGNATURE: part[_SIGNATURE]}))
        elif part and "text" not in part:
            self.spoken.add(_Block(part))

    def _think(self, part: dict[str, Any]) -> None:
        if self._thought is not None and self._thought.goes_on_with(part):
            self._thought.take(part)
        else:
            self._thought = _Block(part)
            self.spoken.add(self._thought)


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def joined(chunks: Iterable[dict[str, Any]]) -> Joined:
    """The first candidate of every chunk, one after the other."""
    whole = Joined()
    said = _Parts()
    cited: dict[str, Citation] = {}
    for chunk in chunks:
        if "usageMetadata" in chunk:
            whole.usage = usage_of(chunk["usageMetadata"]) or whole.usage
        if "promptFeedback" in chunk:
            whole.blocked = _blocked(chunk["promptFeedback"]) or whole.blocked
        candidate = _first(chunk.get("candidates"))
        if candidate is None:
            whole.is_known = whole.is_known or not _KNOWN.isdisjoint(chunk)
            continue
        whole.is_known = whole.has_candidate = True
        finish = candidate.get("finishReason")
        if isinstance(finish, str) and finish:
            whole.finish = finish
        for part in _dicts(_object(candidate.get("content")).get("parts")):
            said.take(part)
        if (tokens := _logprobs_of(candidate.get("logprobsResult"))) is not None:
            whole.logprobs = [*(whole.logprobs or ()), *tokens]
        if not _CITING.isdisjoint(candidate):
            for citation in _citations_of(candidate):
                cited.setdefault(citation.url, citation)
    whole.text, whole.parts = said.spoken.text, said.spoken.parts()
    whole.has_parts, whole.is_whole = said.has_said, said.calls.are_whole
    whole.citations = tuple(cited.values())
    return whole


def usage_of(given: Any) -> Usage | None:
    """Tokens of thoughts are paid as output and counted in it; those that a tool brought in are input."""
    if not isinstance(given, dict):
        return None
    read, tool = _count(given, "promptTokenCount"), _count(given, "toolUsePromptTokenCount")
    written, thought = _count(given, "candidatesTokenCount"), _count(given, "thoughtsTokenCount")
    cached, total = _count(given, "cachedContentTokenCount"), given.get("totalTokenCount")
    if read is None or written is None or tool is None or thought is None:
        return None
    read += tool
    # Where the total has no room for them, they stand in the answer's number already.
    if total != read + written or thought > written:
        written += thought
    return counted(read, written, thought, cached or 0)


def _count(given: dict[str, Any], name: str) -> int | None:
    """A number of tokens: Google leaves out what is 0. None: nonsense."""
    value = given.get(name, 0)
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < TOKENS_MAX
    return int(value) if is_count else None


def _blocked(feedback: Any) -> str | None:
    """Why a prompt was not let through, in Google's words; a safety rating alone is no block."""
    reason = _object(feedback).get("blockReason")
    if not isinstance(reason, str) or not reason or reason == "BLOCKED_REASON_UNSPECIFIED":
        return None
    said = _object(feedback).get("blockReasonMessage")
    return said if isinstance(said, str) and said else f"The prompt was blocked: {reason}"


def _first(candidates: Any) -> dict[str, Any] | None:
    # Google leaves out an index of 0.
    return next((one for one in _dicts(candidates) if one.get("index", 0) == 0), None)


def _logprobs_of(given: Any) -> list[TokenLogprob] | None:
    if not isinstance(given, dict) or not isinstance(given.get("chosenCandidates"), list):
        return None
    rows = given.get("topCandidates")
    tops = rows if isinstance(rows, list) else []
    tokens = []
    for place, chosen in enumerate(given["chosenCandidates"]):
        pair = _pair(chosen)
        if pair is not None:
            row = _object(tops[place]).get("candidates") if place < len(tops) else None
            tokens.append(TokenLogprob(*pair, tuple(filter(None, map(_pair, _dicts(row))))))
    return tokens


def _pair(given: Any) -> tuple[str, float] | None:
    token, value = _object(given).get("token", ""), _object(given).get("logProbability", 0.0)
    if not isinstance(given, dict) or not isinstance(token, str) or isinstance(value, bool):
        return None
    return (mended(token), float(value)) if isinstance(value, int | float) else None


def _citations_of(candidate: dict[str, Any]) -> Iterator[Citation]:
    """Pages that an answer stands on, and sources that it recites: Vertex has another name for these."""
    for chunk in _dicts(_object(candidate.get("groundingMetadata")).get("groundingChunks")):
        for kind in ("web", "retrievedContext", "maps"):
            yield from _citation(chunk.get(kind))
    recited = _object(candidate.get("citationMetadata"))
    for name in ("citationSources", "citations"):
        for source in _dicts(recited.get(name)):
            yield from _citation(source)


def _citation(source: Any) -> Iterator[Citation]:
    url, title = _object(source).get("uri"), _object(source).get("title")
    if isinstance(url, str) and url:
        yield Citation(mended(url), mended(title) if isinstance(title, str) and title else None)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
