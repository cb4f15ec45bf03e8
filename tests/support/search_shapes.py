"""Answers of search engines in the shapes that they document, written by us, and SearXNG's as its server gave it.

Not more of each than a client may come to need: the fields around the results are there, so that none is mistaken for
one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from millstream.engine.call import Call, Reply
from millstream.engine.endpoint import Fault, Request, Response
from millstream.providers.llm.protocol import Target
from millstream.providers.search.table import ENGINES

Row = Mapping[str, Any]
ROWS: tuple[Row, ...] = tuple(
    {"url": f"https://pages.example/{number}", "title": f"Title {number}", "snippet": f"Snippet {number}"}
    for number in range(1, 4)
)


def brave(rows: list[Row], *, has_more: bool) -> Any:
    results = [
        {
            "title": row.get("title"),
            "url": row.get("url"),
            "is_source_local": False,
            "description": row.get("snippet"),
            "language": "en",
            "meta_url": {"scheme": "https", "netloc": "pages.example", "hostname": "pages.example", "path": "/"},
        }
        for row in rows
    ]
    web = {"web": {"type": "search", "results": results, "family_friendly": True}} if rows else {}
    query = {"original": "q", "show_strict_warning": False, "more_results_available": has_more}
    return {"type": "search", "query": query, "mixed": {"type": "mixed", "main": []}, **web}


def serper(rows: list[Row], *, has_more: bool) -> Any:
    organic = [
        {"title": row.get("title"), "link": row.get("url"), "snippet": row.get("snippet"), "position": position}
        for position, row in enumerate(rows, 1)
    ]
    asked = {"q": "q", "type": "search", "engine": "google"}
    return {"searchParameters": asked, "organic": organic, "peopleAlsoAsk": [], "credits": 1}


def tavily(rows: list[Row], *, has_more: bool) -> Any:
    results = [
        {"title": row.get("title"), "url": row.get("url"), "content": row.get("snippet"), "score": 0.9} for row in rows
    ]
    return {"query": "q", "answer": None, "images": [], "results": results, "response_time": 1.5, "request_id": "r"}


def exa(rows: list[Row], *, has_more: bool) -> Any:
    results = [
        {
            "id": row.get("url"),
            "title": row.get("title"),
            "url": row.get("url"),
            "author": None,
            "highlights": [row.get("snippet")],
            "highlightScores": [0.5],
        }
        for row in rows
    ]
    return {"requestId": "r", "resolvedSearchType": "neural", "results": results, "costDollars": {"total": 0.007}}


def searxng(rows: list[Row], *, has_more: bool, silent: list[list[str]] | None = None) -> Any:
    """As the server of August 2026 answered, with an engine of the kind `json_engine`."""
    results = [
        {
            "url": row.get("url"),
            "title": row.get("title"),
            "content": row.get("snippet"),
            "engine": "good",
            "template": "default.html",
            "parsed_url": ["https", "pages.example", "/", "", "", ""],
            "img_src": "",
            "thumbnail": "",
            "priority": "",
            "engines": ["good"],
            "positions": [position],
            "score": 1.0 / position,
            "category": "general",
            "publishedDate": None,
        }
        for position, row in enumerate(rows, 1)
    ]
    rest: dict[str, list[Any]] = {"answers": [], "corrections": [], "infoboxes": [], "suggestions": []}
    return {"query": "q", "results": results, **rest, "unresponsive_engines": silent or []}


def google(rows: list[Row], *, has_more: bool) -> Any:
    items = [
        {
            "kind": "customsearch#result",
            "title": row.get("title"),
            "htmlTitle": f"<b>{row.get('title')}</b>",
            "link": row.get("url"),
            "displayLink": "pages.example",
            "snippet": row.get("snippet"),
            "formattedUrl": row.get("url"),
        }
        for row in rows
    ]
    page = {"title": "Google Custom Search - q", "totalResults": "90", "searchTerms": "q", "count": 10, "startIndex": 1}
    queries = {"request": [page], **({"nextPage": [page]} if has_more else {})}
    found = {"items": items} if rows else {}
    told = {"searchTime": 0.2, "totalResults": str(len(rows))}
    return {"kind": "customsearch#search", "queries": queries, "searchInformation": told, **found}


SHAPES: dict[str, Callable[..., Any]] = {
    "brave": brave,
    "serper": serper,
    "tavily": tavily,
    "exa": exa,
    "searxng": searxng,
    "google": google,
}


def body(name: str, rows: Sequence[Row] = ROWS, *, has_more: bool = True) -> bytes:
    return json.dumps(SHAPES[name](list(rows), has_more=has_more), ensure_ascii=False).encode()


def brave_error(status: int, code: str, detail: str, **meta: Any) -> Any:
    error = {"id": "i", "status": status, "detail": detail, "meta": meta, "code": code}
    return {"type": "ErrorResponse", "error": error, "time": 1_773_685_964}


def google_error(status: int, message: str, reason: str, word: str, **metadata: str) -> Any:
    info = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason.upper(), "metadata": metadata}
    inner = {"message": message, "domain": "global", "reason": reason}
    return {"error": {"code": status, "message": message, "errors": [inner], "status": word, "details": [info]}}


DAY_USED_UP = "Quota exceeded for quota metric 'Queries' and limit 'Queries per day' of service 'customsearch'"
BRAVE_PLAN = {"plan": "Free", "rate_limit": 1, "rate_current": 1, "quota_limit": 2_000}


class Error(Struct, frozen=True):
    """What an engine says, and what has to follow."""

    engine: str
    name: str
    status: int
    said: Any
    kind: str
    action: str

    @property
    def body(self) -> bytes:
        return self.said if isinstance(self.said, bytes) else json.dumps(self.said).encode()


ERRORS = (
    Error("brave", "wrong key", 422, brave_error(422, "SUBSCRIPTION_TOKEN_INVALID", "No."), "rejected", "confirm"),
    Error("brave", "a second's quota", 429, brave_error(429, "RATE_LIMITED", "Request rate limit exceeded for plan",
        **BRAVE_PLAN, quota_current=15), "rate_limited", "throttle"),
    Error("brave", "a month's quota", 429, brave_error(429, "RATE_LIMITED", "Request rate limit exceeded for plan",
        **BRAVE_PLAN, quota_current=2_000), "rate_limited", "stop"),
    Error("brave", "no quota left", 402, brave_error(402, "QUOTA_LIMITED", "Limit."), "rate_limited", "stop"),
    Error("brave", "not in the plan", 400, brave_error(400, "OPTION_NOT_IN_PLAN", "The option is not subscribed in the "
        "plan.", component="authentication"), "rejected", "never"),
    Error("brave", "wrong parameter", 422, brave_error(422, "VALIDATION", "Unable to validate request parameter(s)"),
        "rejected", "never"),
    Error("serper", "wrong key", 403, {"message": "Unauthorized.", "statusCode": 403}, "rejected", "confirm"),
    Error("serper", "no credits", 400, {"message": "Not enough credits", "statusCode": 400}, "rate_limited", "stop"),
    Error("serper", "no credits, as a limit", 429, {"message": "Not enough credits"}, "rate_limited", "stop"),
    Error("serper", "too fast", 429, {"message": "Rate limit exceeded", "statusCode": 429}, "rate_limited", "throttle"),
    Error("serper", "wrong parameter", 400, {"message": "Missing query parameter", "statusCode": 400}, "rejected",
        "never"),
    Error("tavily", "wrong key", 401, {"detail": {"error": "Unauthorized: missing or invalid API key."}}, "rejected",
        "confirm"),
    Error("tavily", "the plan's limit", 432, {"detail": {"error": "This request exceeds your plan's set usage limit. "
        "Please upgrade your plan or contact support@tavily.com"}}, "rate_limited", "stop"),
    Error("tavily", "the limit of paying", 433, {"detail": {"error": "This request exceeds the pay-as-you-go limit."}},
        "rate_limited", "stop"),
    Error("tavily", "too fast", 429, {"detail": {"error": "Your request has been blocked due to excessive requests."}},
        "rate_limited", "throttle"),
    Error("tavily", "wrong parameter", 400, {"detail": {"error": "Invalid topic."}}, "rejected", "never"),
    Error("tavily", "wrong shape", 422, {"detail": [{"loc": ["body", "max_results"], "msg": "too many"}]}, "rejected",
        "never"),
    Error("exa", "wrong key", 401, {"requestId": "r", "error": "Invalid API key", "tag": "INVALID_API_KEY"}, "rejected",
        "confirm"),
    Error("exa", "no credits", 402, {"requestId": "r", "error": "You are out of credits", "tag": "NO_MORE_CREDITS"},
        "rate_limited", "stop"),
    Error("exa", "the key's budget", 402, {"requestId": "r", "error": "Budget.", "tag": "API_KEY_BUDGET_EXCEEDED"},
        "rate_limited", "stop"),
    Error("exa", "too fast", 429, {"error": "rate limit exceeded"}, "rate_limited", "throttle"),
    Error("exa", "wrong parameter", 400, {"requestId": "r", "error": "Bad.", "tag": "INVALID_REQUEST_BODY"}, "rejected",
        "never"),
    Error("exa", "overloaded", 503, {"error": "Overloaded", "tag": "SERVICE_OVERLOADED"}, "server_error", "retry"),
    Error("searxng", "no JSON", 403, b"<!doctype html>\n<html lang=en>\n<title>403 Forbidden</title>\n<h1>Forbidden"
        b"</h1>", "rejected", "confirm"),
    Error("searxng", "the limiter", 429, b"Too Many Requests", "rate_limited", "throttle"),
    Error("searxng", "no query", 400, {"error": "No query"}, "rejected", "never"),
    Error("searxng", "its engines failed", 200, searxng([], has_more=False, silent=[["bad", "HTTP error"]]),
        "search_failed", "retry"),
    Error("google", "wrong key", 400, google_error(400, "API key not valid. Please pass a valid API key.",
        "API_KEY_INVALID", "INVALID_ARGUMENT"), "rejected", "confirm"),
    Error("google", "closed to newcomers", 403, google_error(403, "This project does not have the access to Custom "
        "Search JSON API.", "forbidden", "PERMISSION_DENIED"), "rejected", "confirm"),
    Error("google", "a day's quota", 429, google_error(429, DAY_USED_UP, "rateLimitExceeded", "RESOURCE_EXHAUSTED"),
        "rate_limited", "stop"),
    Error("google", "a day's quota, as of old", 403, google_error(403, "Daily Limit Exceeded", "dailyLimitExceeded",
        "PERMISSION_DENIED"), "rate_limited", "stop"),
    Error("google", "a minute's quota", 429, google_error(429, DAY_USED_UP.replace("per day", "per minute per user"),
        "rateLimitExceeded", "RESOURCE_EXHAUSTED"), "rate_limited", "throttle"),
    Error("google", "wrong parameter", 400, google_error(400, "Request contains an invalid argument.", "badRequest",
        "INVALID_ARGUMENT"), "rejected", "never"),
)  # fmt: skip


def target(name: str, base_url: str = "") -> Target:
    base_url = base_url or ENGINES[name].base_url or "http://searxng.example"
    return Target(base_url, base_url, name, "search", project="cx-1" if name == "google" else None)


def encoded(name: str, query: str = "blue whale", **extra: Any) -> Request:
    return ENGINES[name].protocol.encode(Call(f"search/{name}", query, extra=extra or None), target(name))


def decoded(name: str, said: bytes, status: int = 200, **headers: str) -> Reply | Fault:
    named = {header.replace("_", "-"): value for header, value in headers.items()}
    return ENGINES[name].protocol.decode(Response(status, said, headers=named))


def reply_in(name: str, said: bytes) -> Reply:
    reply = decoded(name, said)
    assert isinstance(reply, Reply), reply
    return reply


def fault_in(name: str, said: bytes, status: int = 200, **headers: str) -> Fault:
    fault = decoded(name, said, status, **headers)
    assert isinstance(fault, Fault), fault
    return fault
