"""Every way to a model: its address, its credentials and its errors, with the answers of its protocol (protocols).

What differs between two rows of one protocol (the address, the credentials) stands in the row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import bedrock_shapes
import gemini_shapes
import google_server
import orjson
from msgspec import Struct
from protocols import CHAT, CONVERSE, GENERATE, MESSAGES, RESPONSES, AnswerShape

Ending = Literal["stop", "length", "filtered"]
# How much of a stream: up to somewhere in its text, or to its finish reason, or all of it.
Part = Literal["middle", "finish", "all"]

CANARY = "sk-canary/7f+3a=9d2e1b8c4e5f60718293a4b5c6"
ACCESS, SECRET = "AKIACANARYKEY7F3A9D2", "cAnArY/7f+3a9d2e1b8c4e5f60718293a4b5c6d7"
SESSION = "cAnArY+session/token==" + "7f3a9d2e1b8c4e5f" * 8


class Told(NamedTuple):
    """An error as its servers tell it."""

    status: int
    body: bytes
    headers: tuple[str, ...] = ()


# --- errors ---

# A status that the provider itself never tells comes from a gateway before it, which knows no JSON.
_OPENAI_TYPES = {
    400: "invalid_request_error", 401: "invalid_request_error", 403: "insufficient_permissions",
    404: "invalid_request_error", 409: "invalid_request_error", 413: "invalid_request_error",
    422: "invalid_request_error", 429: "requests", 500: "server_error", 503: "server_error",
}  # fmt: skip
_ANTHROPIC_TYPES = {
    400: "invalid_request_error", 401: "authentication_error", 402: "billing_error", 403: "permission_error",
    404: "not_found_error", 409: "conflict_error", 413: "request_too_large", 429: "rate_limit_error",
    500: "api_error", 504: "timeout_error", 529: "overloaded_error",
}  # fmt: skip
_GOOGLE_NAMES = {
    400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
    429: "RESOURCE_EXHAUSTED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}  # fmt: skip
_AWS_NAMES = {
    400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException",
    408: "ModelTimeoutException", 409: "ConflictException", 429: "ThrottlingException",
    500: "InternalServerException", 503: "ServiceUnavailableException",
}  # fmt: skip


def by_gateway(status: int, said: str) -> Told:
    return Told(status, f"<html><body>{status}: {said}</body></html>".encode())


def openai_error(status: int, said: str, code: str | None = None) -> Told:
    if status not in _OPENAI_TYPES:
        return by_gateway(status, said)
    kind = {"message": said, "type": code or _OPENAI_TYPES[status], "param": None, "code": code}
    return Told(status, orjson.dumps({"error": kind}))


def anthropic_error(status: int, said: str) -> Told:
    if status not in _ANTHROPIC_TYPES:
        return by_gateway(status, said)
    told = {"type": _ANTHROPIC_TYPES[status], "message": said}
    return Told(status, orjson.dumps({"type": "error", "error": told}))


def google_error(status: int, said: str) -> Told:
    if status not in _GOOGLE_NAMES:
        return by_gateway(status, said)
    return Told(status, gemini_shapes.error(status, _GOOGLE_NAMES[status], said))


def aws_error(status: int, said: str, name: str = "") -> Told:
    name = name or _AWS_NAMES.get(status, "")
    if not name:
        return by_gateway(status, said)
    header = f"x-amzn-ErrorType: {name}:http://internal.amazon.com/coral/com.amazon.bedrock/"
    return Told(status, bedrock_shapes.error(said), (header,))


def aws_error_within(said: str, stream: bool) -> bytes:
    if stream:
        return bedrock_shapes.START + bedrock_shapes.exception("internalServerException", said)
    return orjson.dumps({"__type": "com.amazon.bedrock#InternalServerException", "message": said})


def _within(error: Callable[[int, str], Told], is_named: bool = False) -> Callable[[str, bool], bytes]:
    def told(said: str, stream: bool) -> bytes:
        body = orjson.dumps(json.loads(error(500, said).body))
        return (b"event: error\n" if is_named else b"") + b"data: " + body + b"\n\n" if stream else body

    return told


class Errors(Struct, frozen=True):
    """How its servers fail: with a status, within an answer, because an account can't pay (`poor`), and by a content
    filter, where they tell that as an error."""

    told: Callable[[int, str], Told]
    within: Callable[[str, bool], bytes]
    poor: Callable[[str], Told]
    filtered: Callable[[str], Told] | None = None


class Credentials(Struct, frozen=True):
    """`set_up`: the variables that hold them, with files in a folder and a token server where these are wanted."""

    set_up: Callable[[Path, str], Mapping[str, str]]
    secrets: tuple[str, ...]


class Dialect(Struct, frozen=True):
    """One way to a model. `path`: what its address has behind the origin."""

    name: str
    model: str
    answers: AnswerShape
    errors: Errors
    credentials: Credentials
    path: str = ""
    version: str | None = None

    def answer(self, text: str | None, *, stream: bool, ending: Ending = "stop", part: Part = "all") -> bytes:
        shape, parts = self.answers, [] if text is None else [text]
        end = {"stop": shape.endings.stop, "length": shape.endings.length, "filtered": shape.endings.filtered}[ending]
        if not stream:
            return shape.whole(parts, end, shape.counts.given)
        events = shape.events(parts, end, shape.counts.given, max(1, -(-len(text or "") // 2)))
        ended = len(events) - shape.events_after_end
        return b"".join(events[: {"middle": ended - 1, "finish": ended, "all": len(events)}[part]])


def _variables(**variables: str) -> Callable[[Path, str], Mapping[str, str]]:
    return lambda folder, token_uri: variables


def _service_account(folder: Path, token_uri: str) -> Mapping[str, str]:
    path = google_server.written(folder, google_server.service_account(token_uri))
    return {"GOOGLE_APPLICATION_CREDENTIALS": str(path)}


def _aws(folder: Path, token_uri: str) -> Mapping[str, str]:
    none = {name: str(folder / "none") for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE")}
    keys = {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": SESSION}
    return {"AWS_REGION": "eu-west-1", **keys, **none}


def _openai_poor(said: str) -> Told:
    return openai_error(429, f"You exceeded your current quota. {said}", "insufficient_quota")


def _anthropic_poor(said: str) -> Told:
    return anthropic_error(400, f"Your credit balance is too low to access the Anthropic API. {said}")


def _google_poor(said: str) -> Told:
    return Told(429, gemini_shapes.error(429, "RESOURCE_EXHAUSTED", f"Your prepayment credits are depleted. {said}"))


def _billing_disabled(said: str) -> Told:
    told = gemini_shapes.error(403, "PERMISSION_DENIED", said, gemini_shapes.reason("BILLING_DISABLED"))
    return Told(403, told)


def _aws_poor(said: str) -> Told:
    return aws_error(403, f"INVALID_PAYMENT_INSTRUMENT: {said}")


def _openai_filtered(said: str) -> Told:
    return openai_error(400, said, "content_filter")


def _anthropic_filtered(said: str) -> Told:
    return anthropic_error(400, f"Output blocked by content filtering policy. {said}")


def _aws_filtered(said: str) -> Told:
    return aws_error(400, f"Output blocked by content filtering policy. {said}")


_OPENAI_ERRORS = Errors(openai_error, _within(openai_error), _openai_poor, _openai_filtered)
_ANTHROPIC_ERRORS = Errors(
    anthropic_error, _within(anthropic_error, is_named=True), _anthropic_poor, _anthropic_filtered
)
_GEMINI_ERRORS = Errors(google_error, _within(google_error), _google_poor)
_VERTEX_ERRORS = Errors(google_error, _within(google_error), _billing_disabled)
_CLAUDE_ERRORS = Errors(google_error, _within(anthropic_error, is_named=True), _billing_disabled, _anthropic_filtered)
_AWS_ERRORS = Errors(aws_error, aws_error_within, _aws_poor, _aws_filtered)

_PEM = tuple(line for line in google_server.PEM.splitlines() if len(line) > 20 and "-" not in line)
_GOOGLE = Credentials(_service_account, (*_PEM, "ya29.canary-token"))
_SIGNED = Credentials(_aws, (ACCESS, SECRET, SESSION))


def _in_variables(**others: str) -> Callable[[str], Credentials]:
    """The canary in a variable, and what else has to be set."""
    return lambda name: Credentials(_variables(**{name: CANARY}, **others), (CANARY,))


_in = _in_variables()

DIALECTS = (
    Dialect("chat", "openai/m", CHAT, _OPENAI_ERRORS, _in("OPENAI_API_KEY"), "/v1"),
    Dialect("responses", "openai-responses/m", RESPONSES, _OPENAI_ERRORS, _in("OPENAI_API_KEY"), "/v1"),
    Dialect("azure", "azure/m", CHAT, _OPENAI_ERRORS, _in("AZURE_OPENAI_API_KEY")),
    Dialect("azure with a token", "azure/m", CHAT, _OPENAI_ERRORS, _in("AZURE_OPENAI_AD_TOKEN"), version="2024-10-21"),
    Dialect("anthropic", "anthropic/m", MESSAGES, _ANTHROPIC_ERRORS, _in("ANTHROPIC_API_KEY")),
    Dialect(
        "anthropic, older", "anthropic/m", MESSAGES, _ANTHROPIC_ERRORS, _in("ANTHROPIC_API_KEY"), version="2023-06-01"
    ),
    Dialect("gemini", "gemini/m", GENERATE, _GEMINI_ERRORS, _in("GEMINI_API_KEY")),
    Dialect("vertex, gemini", "vertex/gemini-m", GENERATE, _VERTEX_ERRORS, _GOOGLE),
    Dialect("vertex, claude", "vertex/claude-m", MESSAGES, _CLAUDE_ERRORS, _GOOGLE),
    Dialect("vertex, llama", "vertex/meta/llama-m", CHAT, _VERTEX_ERRORS, _GOOGLE),
    Dialect("bedrock", "bedrock/m", CONVERSE, _AWS_ERRORS, _SIGNED),
    Dialect(
        "bedrock with a token",
        "bedrock/m",
        CONVERSE,
        _AWS_ERRORS,
        _in_variables(AWS_REGION="eu-west-1")("AWS_BEARER_TOKEN_BEDROCK"),
    ),
)
