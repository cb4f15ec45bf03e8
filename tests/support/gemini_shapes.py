"""Answers of Gemini as bytes, whole and streamed, and Google's errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from answer_parts import AnswerPart, literal, pieces

from millstream.engine.content import Native, ToolCall

TEXT = "position <<A>> – ✓ 😀"
USAGE = {
    "promptTokenCount": 19,
    "candidatesTokenCount": 10,
    "totalTokenCount": 41,
    "thoughtsTokenCount": 12,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 19}],
}


def candidate(text: str | None = TEXT, finish: str | None = "STOP", **more: Any) -> dict[str, Any]:
    """`text` None: no content at all, as where a filter has taken it."""
    said: dict[str, Any] = {} if text is None else {"content": {"parts": [{"text": text}], "role": "model"}}
    return {**said, **({} if finish is None else {"finishReason": finish}), "index": 0, **more}


def answer(*candidates: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An answer in the shape that Google's servers gave in 2026, with some of its fields changed."""
    body: dict[str, Any] = {
        "candidates": list(candidates) or [candidate()],
        "usageMetadata": USAGE,
        "modelVersion": "gemini-2.5-flash",
        "responseId": "h8-SaYTpGcmOmNAP4YqWsAk",
    }
    return {**body, **changes}


def whole(*candidates: dict[str, Any], **changes: Any) -> bytes:
    return orjson.dumps(answer(*candidates, **changes), option=orjson.OPT_INDENT_2)


def event(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\r\n\r\n"


def said(*parts: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """One chunk of a stream."""
    ended = {} if finish is None else {"finishReason": finish}
    one = {"content": {"parts": list(parts), "role": "model"}, **ended, "index": 0}
    return {"candidates": [one], "modelVersion": "gemini-2.5-flash", **more}


STREAM = (
    event(said({"text": "I think of A.", "thought": True})),
    event(said({"text": "posi"}, usageMetadata={"promptTokenCount": 19, "totalTokenCount": 19})),
    event(said({"text": "tion <<A>> – ✓ 😀"})),
    event(said({"text": "", "thoughtSignature": "Eu4B"}, finish="STOP", usageMetadata=USAGE)),
)
GROUNDED = {
    "webSearchQueries": ["a query"],
    "groundingChunks": [
        {"web": {"uri": "https://one.example/a", "title": "one.example"}},
        {"retrievedContext": {"uri": "gs://bucket/two.pdf", "title": "Two"}},
        {"web": {"uri": "https://one.example/a", "title": "one.example"}},
    ],
}
RECITED = [{"startIndex": 0, "endIndex": 9, "uri": "https://three.example/"}]
LOGPROBS = {
    "chosenCandidates": [{"token": "A", "tokenId": 235280, "logProbability": -0.25}, {"token": "!"}],
    "topCandidates": [
        {"candidates": [{"token": "A", "logProbability": -0.25}, {"token": "B", "logProbability": -1.5}]},
        {"candidates": [{"token": "!"}]},
    ],
}


def error(code: int, status: str, message: str = "No.", *details: dict[str, Any]) -> bytes:
    told: dict[str, Any] = {"code": code, "message": message, "status": status}
    if details:
        told["details"] = list(details)
    return orjson.dumps({"error": told}, option=orjson.OPT_INDENT_2)


def reason(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": name, "domain": "googleapis.com"}


def retry_in(delay: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


def quota(*ids: str) -> dict[str, Any]:
    violations = [{"quotaMetric": "generate_requests", "quotaId": one, "quotaValue": "250"} for one in ids]
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": violations}


def parts_of(parts: Sequence[AnswerPart]) -> list[dict[str, Any]]:
    """The content of a candidate that holds these parts."""
    return [_part(part) for part in parts]


def _part(part: AnswerPart) -> dict[str, Any]:
    match part:
        case Native():
            return dict(part.value)
        case ToolCall():
            given = orjson.Fragment(part.arguments)
            return {"functionCall": {"args": given, "id": literal(part.id), "name": literal(part.name)}}
        case _:
            return {"text": literal(part)}


def answered(parts: Sequence[AnswerPart], finish: Any = "STOP", usage: Any = USAGE) -> bytes:
    one = {"content": {"parts": parts_of(parts), "role": "model"}, "finishReason": finish, "index": 0}
    return whole(one, usageMetadata=usage)


def answered_in_events(
    parts: Sequence[AnswerPart], finish: Any = "STOP", usage: Any = USAGE, size: int = 7
) -> list[bytes]:
    """Its texts and thoughts grow by `size` characters."""
    told = [
        said(one) for part, value in zip(parts, parts_of(parts), strict=True) for one in _growing(part, value, size)
    ]
    last = said(usageMetadata=usage)
    last["candidates"][0]["finishReason"] = finish
    return [event(one) for one in (*told, last)]


def _growing(part: AnswerPart, value: dict[str, Any], size: int) -> list[dict[str, Any]]:
    if isinstance(part, str | bytes):
        return [{"text": literal(one)} for one in pieces(part, size) or [""]]
    if value.get("thought") is True:
        *texts, last = pieces(value["text"], size)
        return [*({"text": literal(one), "thought": True} for one in texts), {**value, "text": literal(last)}]
    return [value]
