"""Writes outcomes, errors and lists of models as Gemini's servers do, whole and as events.

Every sample is a candidate. Unknown counts of tokens are 0, and those of several samples are added up, since each was a
call of its own. Native parts of other providers are left out. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from ....engine.call import NOT_REPORTED, Citation, Outcome, Reply, TokenLogprob, Usage
from ....engine.content import Image, Native, Part, ToolCall
from ..families import parts_for
from ..serve_dialect import Problem, ServedModel, ServedRequest
from ..serve_replies import (
    LOGPROB_MIN,
    arguments_of,
    as_it_stands,
    digest,
    dumps,
    is_writable,
    model_of,
    own_fields,
    reply_of,
    usage_of,
)
from .serve_turns import FAMILY

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


def whole(request: ServedRequest, outcomes: Sequence[Outcome]) -> bytes:
    candidates = [_candidate(reply_of(outcome), place) for place, outcome in enumerate(outcomes)]
    return dumps(_response(request, candidates, outcomes, outcomes[0].key[:_ID_CHARS] or _number(request)))


def _response(
    request: ServedRequest, candidates: list[dict[str, Any]], outcomes: Sequence[Outcome], number: str
) -> dict[str, Any]:
    return {
        "candidates": candidates,
        "usageMetadata": _usage(usage_of(outcomes) or NOT_REPORTED),
        "modelVersion": model_of(request, outcomes).removeprefix("models/"),
        "responseId": number,
    }


def _number(request: ServedRequest) -> str:
    return digest(request.call)[:_ID_CHARS]


def _candidate(reply: Reply, place: int, sent: int = 0) -> dict[str, Any]:
    """Returns one sample as a candidate, whose `place` counts from 0. The first `sent` characters of its text are left
    out: they were sent before."""
    candidate = {
        "content": {"parts": _parts(reply, sent), "role": "model"},
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


def _parts(reply: Reply, sent: int) -> list[Any]:
    """Returns the parts of an answer without the first `sent` characters of text. There is at least one, since clients
    read the first: an empty text, if nothing else."""
    parts: list[Any] = []
    has_text = False
    for part in parts_for(reply.parts, FAMILY):
        text = _text_of(part)
        if text is None:
            parts += _part(part)
            continue
        has_text = True
        before, sent = sent, max(sent - len(text), 0)
        if not before:
            parts += _part(part)
        elif text[before:] or isinstance(part, Native):
            parts.append({**part.value, "text": text[before:]} if isinstance(part, Native) else {"text": text[before:]})
    if not has_text and reply.text[sent:]:
        parts.append({"text": reply.text[sent:]})
    return parts or [{"text": ""}]


def _text_of(part: Part) -> str | None:
    """Returns the visible text of a part, which may have a signature; None if it has none."""
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
        case Native() if part.protocol == FAMILY and is_writable(part.value):
            return [as_it_stands(part.value)]
        case _:
            return []


def _call(call: ToolCall) -> dict[str, Any]:
    fields = {"name": call.name, "args": orjson.Fragment(arguments_of(call))}
    return {"functionCall": {"id": call.id, **fields} if call.id else fields, **own_fields(call, FAMILY)}


def _image(image: Image) -> dict[str, Any]:
    kind, _, data = image.url.removeprefix("data:").partition(";base64,")
    if not image.url.startswith("data:"):
        return {"fileData": {"fileUri": image.url}}
    return {"inlineData": {"mimeType": kind, "data": data}}


def _finish(reply: Reply) -> str:
    """Returns Google's finish reason; a reason in capitals is Google's own and stays unchanged."""
    if reply.refused:
        return "SAFETY"
    finish = reply.finish_reason or "stop"
    return _FINISHES.get(finish, finish if finish.isupper() else "STOP")


def _usage(usage: Usage) -> dict[str, int]:
    """Returns the counts of tokens. Google counts thoughts apart from the answer."""
    counts = {
        "promptTokenCount": usage.input or 0,
        "candidatesTokenCount": max((usage.output or 0) - usage.reasoning, 0),
        "totalTokenCount": usage.tokens or 0,
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


def problem(cause: Problem) -> bytes:
    error: dict[str, Any] = {
        "code": cause.status,
        "message": cause.message,
        "status": _STATUSES.get(cause.status, "INTERNAL"),
    }
    if cause.param is not None:
        violation = {"field": cause.param, "description": cause.message}
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]
    return dumps({"error": error})


def listing(models: Sequence[ServedModel]) -> bytes:
    """Returns the JSON of the list of models, all on one page."""
    return dumps({"models": [_model(each) for each in models]})


def listed(model: ServedModel) -> bytes:
    return dumps(_model(model))


def _model(model: ServedModel) -> dict[str, Any]:
    return {
        "name": f"models/{model.name}",
        "displayName": model.name,
        "supportedGenerationMethods": _METHODS,
    }


class CandidateStream:
    """The stream of one response. The last chunk has finish reasons, the rest of the texts, and token counts."""

    def __init__(self, request: ServedRequest) -> None:
        self._request = request
        # All chunks have one id, and the cache key is not known before the end.
        self._number = _number(request)
        self._sent = 0

    def begin(self) -> bytes:
        return b""

    def text(self, piece: str) -> bytes:
        self._sent += len(piece)
        return self._chunk(piece) if piece else b""

    def end(self, outcomes: Sequence[Outcome]) -> bytes:
        candidates = [
            _candidate(reply_of(outcome), place, 0 if place else self._sent) for place, outcome in enumerate(outcomes)
        ]
        return _event(dumps(_response(self._request, candidates, outcomes, self._number)))

    def fail(self, cause: Problem) -> bytes:
        return _event(problem(cause))

    def ping(self) -> bytes:
        """Returns a chunk without text: Google's own clients take a comment for a broken answer."""
        return self._chunk("")

    def _chunk(self, piece: str) -> bytes:
        chunk = {
            "candidates": [{"content": {"parts": [{"text": piece}], "role": "model"}, "index": 0}],
            "modelVersion": self._request.model.removeprefix("models/"),
            "responseId": self._number,
        }
        return _event(dumps(chunk))


def _event(data: bytes) -> bytes:
    return b"data: %b\r\n\r\n" % data
