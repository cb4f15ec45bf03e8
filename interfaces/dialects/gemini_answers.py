"""Outcomes, errors and lists of models as Gemini's servers tell them, whole and as events.

Every sample is a candidate. Tokens that nobody counted are 0, and those of several samples are added up: each was asked
for by itself. What another provider alone has words for is left out. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from ...engine.call import Citation, Outcome, Reply, TokenLogprob, Usage
from ...engine.content import Image, Native, Part, ToolCall
from ...providers.llm.families import parts_told_to
from .anthropic_answers import arguments_of, as_it_stands
from .dialect import Asked, Listed, Problem
from .gemini_turns import FAMILY
from .openai_answers import LOGPROB_MIN, digest, reply_of, usage_of
from .openai_problems import dumps

_FINISHES = {"stop": "STOP", "tool_calls": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
_STATUSES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    409: "ABORTED",
    413: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
    529: "UNAVAILABLE",
}
_METHODS = ["generateContent", "streamGenerateContent"]
_ID_CHARS = 23
_NOTHING_USED = Usage(0, 0)


def whole(asked: Asked, outcomes: Sequence[Outcome]) -> bytes:
    candidates = [_candidate(reply_of(outcome), place) for place, outcome in enumerate(outcomes)]
    return dumps(_response(asked, candidates, outcomes, outcomes[0].key[:_ID_CHARS] or _number(asked)))


def _response(
    asked: Asked, candidates: list[dict[str, Any]], outcomes: Sequence[Outcome], number: str
) -> dict[str, Any]:
    return {
        "candidates": candidates,
        "usageMetadata": _usage(usage_of(outcomes) or _NOTHING_USED),
        "modelVersion": asked.model.removeprefix("models/"),
        "responseId": number,
    }


def _number(asked: Asked) -> str:
    return digest(asked.call)[:_ID_CHARS]


def _candidate(reply: Reply, place: int, said: int = 0) -> dict[str, Any]:
    """One sample, without what was said of it before."""
    candidate = {
        "content": {"parts": _parts(reply, said), "role": "model"},
        "finishReason": _finish(reply),
        "index": place,
    }
    if reply.citations:
        candidate["groundingMetadata"] = {"groundingChunks": [_source(each) for each in reply.citations]}
    if reply.logprobs is not None:
        candidate["logprobsResult"] = _logprobs(reply.logprobs)
        if reply.logprobs:
            candidate["avgLogprobs"] = sum(each.logprob for each in reply.logprobs) / len(reply.logprobs)
    return candidate


def _parts(reply: Reply, said: int) -> list[Any]:
    """Clients look at the first part, so that there is one, if only an empty text."""
    told: list[Any] = []
    has_text = False
    for part in parts_told_to(reply.parts, FAMILY):
        text = _text_of(part)
        if text is None:
            told += _part(part)
            continue
        has_text = True
        before, said = said, max(said - len(text), 0)
        if not before:
            told += _part(part)
        elif text[before:] or isinstance(part, Native):
            told.append({**part.value, "text": text[before:]} if isinstance(part, Native) else {"text": text[before:]})
    if not has_text and reply.text[said:]:
        told.append({"text": reply.text[said:]})
    return told or [{"text": ""}]


def _text_of(part: Part) -> str | None:
    """What is visible of it: a text may stand beside a signature."""
    if isinstance(part, Native) and part.protocol == FAMILY and not part.value.get("thought"):
        part = part.value.get("text", part)
    return part if isinstance(part, str) else None


def _part(part: Part) -> list[Any]:
    match part:
        case str():
            return [{"text": part}]
        case ToolCall():
            return [_call(part)]
        case Image():
            return [_image(part)]
        case Native() if part.protocol == FAMILY:
            return [as_it_stands(part.value)]
        case _:
            return []


def _call(call: ToolCall) -> dict[str, Any]:
    beside = call.native.value if call.native is not None and call.native.protocol == FAMILY else {}
    told = {"name": call.name, "args": orjson.Fragment(arguments_of(call))}
    return {"functionCall": {"id": call.id, **told} if call.id else told, **beside}


def _image(image: Image) -> dict[str, Any]:
    kind, _, data = image.url.removeprefix("data:").partition(";base64,")
    if not image.url.startswith("data:"):
        return {"fileData": {"fileUri": image.url}}
    return {"inlineData": {"mimeType": kind, "data": data}}


def _finish(reply: Reply) -> str:
    """Google's own words come in capitals, and go on as they are."""
    if reply.refused:
        return "SAFETY"
    finish = reply.finish_reason or "stop"
    return _FINISHES.get(finish, finish if finish.isupper() else "STOP")


def _usage(usage: Usage) -> dict[str, int]:
    """Tokens of thoughts are counted beside those of the answer."""
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": max(usage.output - usage.reasoning, 0),
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.reasoning:
        counts["thoughtsTokenCount"] = usage.reasoning
    if usage.cached_input:
        counts["cachedContentTokenCount"] = usage.cached_input
    return counts


def _source(citation: Citation) -> dict[str, Any]:
    title = {} if citation.title is None else {"title": citation.title}
    return {"web": {"uri": citation.url, **title}}


def _logprobs(tokens: Sequence[TokenLogprob]) -> dict[str, Any]:
    return {
        "chosenCandidates": [_token(each.token, each.logprob) for each in tokens],
        "topCandidates": [{"candidates": [_token(*pair) for pair in each.top]} for each in tokens],
    }


def _token(token: str, logprob: float) -> dict[str, Any]:
    return {"token": token, "logProbability": max(logprob, LOGPROB_MIN)}


def problem(given: Problem) -> bytes:
    told: dict[str, Any] = {
        "code": given.status,
        "message": given.message,
        "status": _STATUSES.get(given.status, "INTERNAL"),
    }
    if given.param is not None:
        violation = {"field": given.param, "description": given.message}
        told["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return dumps({"error": told})


def listing(models: Sequence[Listed]) -> bytes:
    """All on one page."""
    return dumps({"models": [_model(each) for each in models]})


def listed(model: Listed) -> bytes:
    return dumps(_model(model))


def _model(model: Listed) -> dict[str, Any]:
    return {
        "name": f"models/{model.name}",
        "displayName": model.name,
        "supportedGenerationMethods": _METHODS,
    }


def stream(asked: Asked) -> CandidateStream:
    return CandidateStream(asked)


class CandidateStream:
    """Chunks of a response. Only the last has finish reasons, all that was not said yet, and the tokens."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        # No key is known until the end, and all chunks have one number.
        self._number = _number(asked)
        self._said = 0

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self._said += len(piece)
        return self._chunk(piece) if piece else b""

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        candidates = [
            _candidate(reply_of(outcome), place, 0 if place else self._said) for place, outcome in enumerate(outcomes)
        ]
        return _event(dumps(_response(self._asked, candidates, outcomes, self._number)))

    def fail(self, met: Problem) -> bytes:
        return _event(problem(met))

    def ping(self) -> bytes:
        """A chunk that says nothing: Google's own clients read a comment as an answer that is broken."""
        return self._chunk("")

    def _chunk(self, piece: str) -> bytes:
        chunk = {
            "candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}],
            "modelVersion": self._asked.model.removeprefix("models/"),
            "responseId": self._number,
        }
        return _event(dumps(chunk))


def _event(data: bytes) -> bytes:
    return b"data: %b\r\n\r\n" % data
