"""Reads what a path asks for, and in which dialect. Pure: knows no model and no caller.

Clients begin the same paths differently: `/v1`, nothing, Azure's deployments, Google's projects. All of them may follow
`/run/NAME`, which names a run for clients in which only the address can be set.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal
from urllib.parse import parse_qsl, unquote

from msgspec import Struct, structs

from ...providers.llm.anthropic import serve_messages as anthropic_messages
from ...providers.llm.google import serve_generate as gemini_generate
from ...providers.llm.openai import serve_chat as openai_chat
from ...providers.llm.openai import serve_responses as openai_responses
from ...providers.llm.serve_dialect import Dialect, Problem

Kind = Literal["ask", "models", "model", "health", "metrics", "status"]

CHAT, RESPONSES, MESSAGES, GENERATE = "openai-chat", "openai-responses", "anthropic-messages", "gemini-generate"
DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        CHAT: openai_chat.DIALECT,
        RESPONSES: openai_responses.DIALECT,
        MESSAGES: anthropic_messages.DIALECT,
        GENERATE: gemini_generate.DIALECT,
    }
)
RUN_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
OFFERED = (
    "POST /v1/chat/completions, /v1/responses, /v1/messages and /v1beta/models/MODEL:generateContent, GET /v1/models, "
    "/health, /metrics and / (a page for browsers)"
)
_NO_EMBEDDINGS = "this gateway passes on calls that ask for text: send embeddings to the provider itself"
ASKED: Mapping[str, str] = {"chat/completions": CHAT, "responses": RESPONSES, "messages": MESSAGES}
_ROOTS = r"(?:/openai/v1|/openai|/v1)?"
_ASK = re.compile(rf"{_ROOTS}/(chat/completions|responses|messages)")
_DEPLOYMENT = re.compile(r"/openai/deployments/([^/]+)/chat/completions")
_GOOGLE = r"(?:/(?:v1|v1beta|v1beta1))?(?:/projects/[^/]+/locations/[^/]+)?"
_GENERATE = re.compile(rf"{_GOOGLE}(?:/publishers/([^/]+))?/models/(.+):(generateContent|streamGenerateContent)")
_MODELS = re.compile(r"(?:/openai/v1|/openai|/v1|/v1beta|/v1beta1)?(?:/publishers/[^/]+)?/models(?:/(.+))?")
_OF_GOOGLE = ("x-goog-api-key", "x-goog-api-client")


class RequestPath(Struct, frozen=True):
    """The meaning of a request's method and path. `kind`: a call to a model (`ask`), a list of models, one model,
    health, metrics or the page for a browser (`status`); `dialect`: the protocol of the answer; `model`: the model's
    name in the path, `run`: the run's name, empty: none; `is_list`: Google's way to stream without events, as one list
    of answers; `problem`: why the request is rejected (None: it is not)."""

    kind: Kind
    dialect: str = CHAT
    model: str = ""
    run: str = ""
    is_streamed: bool = False
    is_list: bool = False
    problem: Problem | None = None


def read_path(method: str, target: str, headers: Mapping[str, list[str]]) -> RequestPath:
    """Returns what a method and target ask for, with a `problem` if that does not exist or not for this method."""
    path = target.partition("?")[0]
    way = _way_of(method, target, headers)
    if way is None:
        hint = _NO_EMBEDDINGS if path.endswith("/embeddings") else f"there are {OFFERED}"
        problem = Problem(404, "not_found", f"there is no {path[:200]}; {hint}")
        return RequestPath("ask", dialect_of(path, headers), problem=problem)
    if (way.kind == "ask") == (method == "POST"):
        return way
    expected = "POST" if way.kind == "ask" else "GET"
    return structs.replace(way, problem=Problem(405, "invalid", f"{method} {path[:200]}: expected {expected}"))


def _way_of(method: str, target: str, headers: Mapping[str, list[str]]) -> RequestPath | None:
    path, _, query = target.partition("?")
    run = ""
    if path.startswith("/run/"):
        name, slash, rest = path[len("/run/") :].partition("/")
        run = unquote(name)
        if not slash or not RUN_NAME.fullmatch(run):
            return None
        path = f"/{rest}"
    if path == "/" and method != "POST":
        return RequestPath("status", run=run)
    if path in ("/health", "/metrics"):
        return RequestPath("health" if path == "/health" else "metrics", run=run)
    if match := _ASK.fullmatch(path):
        return RequestPath("ask", ASKED[match[1]], run=run)
    if match := _DEPLOYMENT.fullmatch(path):
        return RequestPath("ask", CHAT, unquote(match[1]), run)
    if match := _GENERATE.fullmatch(path):
        return _generate(match, query, run)
    # Other posts of Google's clients are a model's name and a verb.
    if method != "POST" and (match := _MODELS.fullmatch(path)):
        return RequestPath("model" if match[1] else "models", dialect_of(path, headers), unquote(match[1] or ""), run)
    return None


def dialect_of(path: str, headers: Mapping[str, list[str]]) -> str:
    """Returns the dialect in which a request is answered whose path does not say it."""
    if "anthropic-version" in headers or path.endswith("/messages") or "/messages/" in path:
        return MESSAGES
    if "/v1beta" in path or ":" in path.rpartition("/")[2] or any(name in headers for name in _OF_GOOGLE):
        return GENERATE
    return RESPONSES if "/responses" in path else CHAT


def _generate(match: re.Match[str], query: str, run: str) -> RequestPath:
    publisher, model = unquote(match[1] or ""), unquote(match[2])
    if publisher and publisher != "google":
        # Google's own client writes a name with a slash in it so.
        model = f"{publisher}/{model}"
    is_streamed = match[3] == "streamGenerateContent"
    is_list = is_streamed and ("alt", "sse") not in parse_qsl(query)
    return RequestPath("ask", GENERATE, model, run, is_streamed and not is_list, is_list)
