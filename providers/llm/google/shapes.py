"""Reads the JSON of a generateContent answer, joined from one chunk or from many, field by field.

A field of a wrong type counts as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from ....engine.call import Citation, TokenLogprob, Usage
from ....engine.content import Native, Part
from ..answer_values import as_object, citation_of, count_in, each_once, later_usage, objects_in, sum_in
from ..answer_values import usage_of as checked_usage
from ..blocks import AnswerContent, native_of
from ..repair import mended
from .calls import FunctionCalls
from .turns import FAMILY

# The fields by which an answer is recognised among other JSON.
_KNOWN = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"})
_COUNTS = ("candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "totalTokenCount")
_SIGNATURE = "thoughtSignature"
_CITING = frozenset({"groundingMetadata", "citationMetadata"})


class CandidateAnswer(Struct):
    """An answer, joined from its chunks. `blocked` is the message if the prompt was blocked. `is_known`: some chunk has
    a field of this protocol; `has_candidate`: some chunk has a candidate; `has_parts`: it holds anything but
    thoughts, even an empty text; `is_whole`: no tool call is cut."""

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
    id: Any = None
    served: Any = None
    tier: Any = None


class _CandidateBlock:
    """A part without text or tool call: a thought, whose pieces are joined until it is signed, or a tool of
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


class _CandidateParts:
    """The parts of a candidate in their order: texts, tool calls, thoughts and others."""

    def __init__(self) -> None:
        self.spoken = AnswerContent()
        self.calls = FunctionCalls()
        self.has_said = False
        self._thought: _CandidateBlock | None = None

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
                # The text is for every provider; a client that continues the conversation sends the signature after it,
                # as in a stream.
                self.spoken.add(_CandidateBlock({"text": "", _SIGNATURE: part[_SIGNATURE]}))
        elif part and "text" not in part:
            self.spoken.add(_CandidateBlock(part))

    def _think(self, part: dict[str, Any]) -> None:
        if self._thought is not None and self._thought.goes_on_with(part):
            self._thought.take(part)
        else:
            self._thought = _CandidateBlock(part)
            self.spoken.add(self._thought)


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


def candidate_answer(chunks: Iterable[dict[str, Any]]) -> CandidateAnswer:
    """Returns the answer that is joined from the first candidates of all chunks."""
    whole = CandidateAnswer()
    parts = _CandidateParts()
    cited: list[Citation | None] = []
    for chunk in chunks:
        usage = None
        if "usageMetadata" in chunk:
            usage = usage_of(chunk["usageMetadata"])
            whole.tier = _tier_of(chunk["usageMetadata"]) or whole.tier
        whole.id = whole.id or chunk.get("responseId")
        whole.served = whole.served or chunk.get("modelVersion")
        if "promptFeedback" in chunk:
            whole.blocked = _blocked(chunk["promptFeedback"]) or whole.blocked
        candidate = _first(chunk.get("candidates"))
        whole.usage = later_usage(whole.usage, usage, has_more=candidate is not None)
        if candidate is None:
            whole.is_known = whole.is_known or not _KNOWN.isdisjoint(chunk)
            continue
        whole.is_known = whole.has_candidate = True
        finish = candidate.get("finishReason")
        if isinstance(finish, str) and finish:
            whole.finish = finish
        for part in objects_in(as_object(candidate.get("content")).get("parts")):
            parts.take(part)
        if (tokens := _logprobs_of(candidate.get("logprobsResult"))) is not None:
            whole.logprobs = [*(whole.logprobs or ()), *tokens]
        if not _CITING.isdisjoint(candidate):
            cited += _citations_of(candidate)
    whole.text, whole.parts = parts.spoken.text, parts.spoken.parts()
    whole.has_parts, whole.is_whole = parts.has_said, parts.calls.are_whole
    whole.citations = each_once(cited)
    return whole


def _tier_of(usage: Any) -> Any:
    """Returns the service tier; Vertex AI names it by the kind of traffic."""
    return as_object(usage).get("serviceTier") or as_object(usage).get("trafficType")


def usage_of(counts: Any) -> Usage | None:
    """Returns the tokens, None if unknown. Thoughts count as output, as they are billed; tools' additions as input."""
    if not isinstance(counts, dict):
        return None
    prompt = sum_in(counts, "promptTokenCount", "toolUsePromptTokenCount")
    output, thoughts, cached, total = (count_in(counts, name) for name in _COUNTS)
    # If the total leaves no room for thoughts, the answer's number already includes them.
    if prompt is None or output is None or total != prompt + output or (thoughts or 0) > output:
        output = sum_in(counts, "candidatesTokenCount", "thoughtsTokenCount")
    return checked_usage(prompt, output, thoughts, cached, total)


def _blocked(feedback: Any) -> str | None:
    """Returns Google's message for a blocked prompt; None if it is not blocked, as with a safety rating alone."""
    reason = as_object(feedback).get("blockReason")
    if not isinstance(reason, str) or not reason or reason == "BLOCKED_REASON_UNSPECIFIED":
        return None
    message = as_object(feedback).get("blockReasonMessage")
    return message if isinstance(message, str) and message else f"The prompt was blocked: {reason}"


def _first(candidates: Any) -> dict[str, Any] | None:
    # Google leaves out an index of 0.
    return next((one for one in objects_in(candidates) if one.get("index", 0) == 0), None)


def _logprobs_of(value: Any) -> list[TokenLogprob] | None:
    if not isinstance(value, dict) or not isinstance(value.get("chosenCandidates"), list):
        return None
    rows = value.get("topCandidates")
    tops = rows if isinstance(rows, list) else []
    tokens = []
    for place, chosen in enumerate(value["chosenCandidates"]):
        pair = _pair(chosen)
        if pair is not None:
            row = as_object(tops[place]).get("candidates") if place < len(tops) else None
            tokens.append(TokenLogprob(*pair, tuple(filter(None, map(_pair, objects_in(row))))))
    return tokens


def _pair(entry: Any) -> tuple[str, float] | None:
    token, value = as_object(entry).get("token", ""), as_object(entry).get("logProbability", 0.0)
    if not isinstance(entry, dict) or not isinstance(token, str) or isinstance(value, bool):
        return None
    return (mended(token), float(value)) if isinstance(value, int | float) else None


def _citations_of(candidate: dict[str, Any]) -> Iterator[Citation | None]:
    """Yields the pages that an answer is grounded on and the sources that it quotes, for which Vertex has another name;
    None for a source without an address."""
    for chunk in objects_in(as_object(candidate.get("groundingMetadata")).get("groundingChunks")):
        for kind in ("web", "retrievedContext", "maps"):
            yield _citation(chunk.get(kind))
    recited = as_object(candidate.get("citationMetadata"))
    for name in ("citationSources", "citations"):
        for source in objects_in(recited.get(name)):
            yield _citation(source)


def _citation(source: Any) -> Citation | None:
    return citation_of(as_object(source).get("uri"), as_object(source).get("title"))
