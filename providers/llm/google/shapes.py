"""Reads the JSON of a generateContent answer, joined from one chunk or from many, field by field.

A field of a wrong type counts as missing. Pure: values in, values out, never an exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from ....engine.call import Citation, Reply, TokenLogprob, Usage
from ....engine.content import Native
from ....engine.endpoint import Fault, Response
from ..answer_values import as_object, as_text, citation_of, count_in, later_usage, objects_in, origin_of, sum_in
from ..answer_values import usage_of as checked_usage
from ..blocks import BlockReader, native_of
from ..faults import bad_json, cut_stream, empty_answer
from ..repair import mended
from .calls import FunctionCall, made_id
from .turns import FAMILY

NO_ANSWER = "200 with JSON that is no answer of Gemini's"
_FILTERED = (
    "SAFETY",
    "RECITATION",
    "LANGUAGE",
    "BLOCKLIST",
    "PROHIBITED_CONTENT",
    "SPII",
    "IMAGE_SAFETY",
    "IMAGE_PROHIBITED_CONTENT",
    "IMAGE_RECITATION",
    "MODEL_ARMOR",
    "ESCALATION",
)
# The last is not a reason of Google's own, but of servers that imitate it.
_FINISHES = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "FUNCTION_CALL": "tool_calls",
    **dict.fromkeys(_FILTERED, "content_filter"),
}
# The finish reason of a prompt that was blocked, which has none.
_BLOCKED = "SAFETY"
# Google's reasons for an answer that it could not give.
_BROKEN = (
    "FINISH_REASON_UNSPECIFIED",
    "OTHER",
    "MALFORMED_FUNCTION_CALL",
    "MALFORMED_RESPONSE",
    "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS",
    "MISSING_THOUGHT_SIGNATURE",
    "IMAGE_OTHER",
    "NO_IMAGE",
)
# The ends of an answer that may cut a tool call.
_MAY_BE_CUT = ("length", "content_filter")
_LIMITED_ACCOUNT = "PUP_LIMITED_DISABLED"
# The fields by which an answer is recognised among other JSON.
_KNOWN = frozenset({"candidates", "promptFeedback", "usageMetadata", "modelVersion", "responseId"})
_COUNTS = ("candidatesTokenCount", "thoughtsTokenCount", "cachedContentTokenCount", "totalTokenCount")
_SIGNATURE = "thoughtSignature"
_CITING = frozenset({"groundingMetadata", "citationMetadata"})


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


class CandidateReader(BlockReader):
    """The builder of a reply from the first candidates of all chunks, whose parts stand in their order: texts, tool
    calls, thoughts and others."""

    finishes: ClassVar[Mapping[str, str]] = _FINISHES
    broken = _BROKEN
    full = ("STOP",)
    reason = "finish reason"

    def __init__(self, *, is_stream: bool) -> None:
        super().__init__()
        self._is_stream = is_stream
        # Whether some chunk has a field of this protocol, and whether one has a candidate.
        self._is_known = self._has_candidate = False
        self._usage: Usage | None = None
        self._id: Any = None
        self._served: Any = None
        self._tier: Any = None
        self._calls: list[FunctionCall] = []
        self._thought: _CandidateBlock | None = None

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def origin(self) -> dict[str, Any]:
        return origin_of(answer_id=self._id, served=self._served, tier=self._tier)

    def take(self, chunk: dict[str, Any]) -> None:
        usage = None
        if "usageMetadata" in chunk:
            usage = usage_of(chunk["usageMetadata"])
            self._tier = _tier_of(chunk["usageMetadata"]) or self._tier
        self._id = self._id or chunk.get("responseId")
        self._served = self._served or chunk.get("modelVersion")
        if "promptFeedback" in chunk:
            self.explanation = _blocked(chunk["promptFeedback"]) or self.explanation
        candidate = _first(chunk.get("candidates"))
        self._usage = later_usage(self._usage, usage, has_more=candidate is not None)
        if candidate is None:
            self._is_known = self._is_known or not _KNOWN.isdisjoint(chunk)
            return
        self._is_known = self._has_candidate = True
        self.stop = as_text(candidate.get("finishReason")) or self.stop
        for part in objects_in(as_object(candidate.get("content")).get("parts")):
            self._take_part(part)
        if (tokens := _logprobs_of(candidate.get("logprobsResult"))) is not None:
            self.logprobs = (*(self.logprobs or ()), *tokens)
        if not _CITING.isdisjoint(candidate):
            self._citations += _citations_of(candidate)

    def result(self, response: Response, raw: bytes | None) -> Reply | Fault:
        are_whole = all(call.is_whole for call in self._calls)
        if self.stop is None:
            if self.explanation:
                self.stop = _BLOCKED
            elif self._is_stream:
                return cut_stream("its finish reason")
            elif not self._is_known:
                return bad_json(NO_ANSWER)
            elif not self._has_candidate:
                return empty_answer("no candidates", self.usage)
        elif self.stop == _LIMITED_ACCOUNT:
            return Fault(
                "rejected", f"200 whose finish reason is `{self.stop}`: Google has limited this account", "confirm", 200
            )
        elif not (are_whole or self.stop in _BROKEN or self.finishes.get(self.stop) in _MAY_BE_CUT):
            why = "200 whose tool calls come in pieces: ask without streamFunctionCallArguments"
            return Fault("rejected", why, "never", 200, is_billed_maybe=True)
        return super().result(response, raw)

    def _take_part(self, part: dict[str, Any]) -> None:
        if part.get("thought") is True:
            self._think(part)
            return
        self._thought = None
        self.is_said = True
        if isinstance(part.get("functionCall"), dict):
            self._call(part)
        elif isinstance(part.get("text"), str):
            self.say(part["text"])
            if _SIGNATURE in part:
                # The text is for every provider; a client that continues the conversation sends the signature after it,
                # as in a stream.
                self._contents.append(_CandidateBlock({"text": "", _SIGNATURE: part[_SIGNATURE]}))
        elif part and "text" not in part:
            self._contents.append(_CandidateBlock(part))

    def _call(self, part: dict[str, Any]) -> None:
        """Adds a call, if it has a name."""
        call = FunctionCall(part, made_id(self._calls))
        if call.is_named:
            self._calls.append(call)
            self._contents.append(call)

    def _think(self, part: dict[str, Any]) -> None:
        if self._thought is not None and self._thought.goes_on_with(part):
            self._thought.take(part)
        else:
            self._thought = _CandidateBlock(part)
            self._contents.append(self._thought)


def _is_text(part: dict[str, Any]) -> bool:
    return isinstance(part.get("text"), str)


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
