"""The wire format of SearXNG's JSON: pure encode and decode.

If its own engines failed it answers 200 without results and lists them: that is a failure, not "no hits". If there are
results, the failed engines become a remark. The instance decides how many results a page has.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from ...engine.call import Call
from ...engine.endpoint import Fault, Request, Response
from ..llm.errors import ErrorBody
from ..llm.protocol import Target, WireProtocol
from .answer import AnswerLayout, Object, list_at
from .faults import search_fault
from .query import Reach, request_by_url, search_query
from .results import plain

PATH = "/search"
REACH = Reach(100, 10)
_TAKEN = ("q", "format", "pageno")
# At the start of a word these are commands: `!!g` redirects the user to Google, `:de` sets a language, `<3` a deadline.
_COMMAND = re.compile(r"(?<!\S)(?:!+|:+|<(?=\d))(?=\S)")
_NAME_MAX = 60
_NAMED_MAX = 12


def encode(call: Call, target: Target) -> Request:
    search = search_query(call, REACH, _TAKEN)
    query = {"format": "json", "q": _COMMAND.sub("", search.query)}
    if search.page > 1:
        query["pageno"] = str(search.page)
    return request_by_url(call, target, PATH, query, search.more)


def silent_engines(answer: Object) -> str:
    """Returns the engines that did not answer, each with its reason, in one text; empty if all did."""
    silent = list_at(answer, "unresponsive_engines") or []
    named = [_named(each) for each in silent[:_NAMED_MAX]]
    rest = len(silent) - len(named)
    return ", ".join(named) + (f" and {rest} more" if rest else "")


def _named(engine: Any) -> str:
    words = [plain(word, _NAME_MAX) for word in engine] if isinstance(engine, list) else [plain(engine, _NAME_MAX)]
    name, *reasons = words or ["?"]
    return f"{name} ({' '.join(reasons)})" if reasons else name


def _fails(answer: Object, rows: list[Any]) -> Fault | None:
    if rows or not list_at(answer, "unresponsive_engines"):
        return None
    detail = f"200 without results, since engines of this SearXNG failed: {silent_engines(answer)}"
    return Fault("search_failed", detail, "retry", 200)


def _remarks(answer: Object) -> tuple[str, ...]:
    silent = silent_engines(answer)
    return (f"engines without an answer: {silent}",) if silent else ()


def _fault(response: Response, error: ErrorBody) -> Fault:
    if response.status == 403:
        advice = "its settings.yml must have `json` under search, formats, and its limiter must let you in"
        error = structs.replace(error, message=f"{error.message or 'Forbidden'} ({advice})")
    return search_fault(response, error)


_LAYOUT = AnswerLayout(
    lambda answer: list_at(answer, "results"),
    "url",
    "title",
    "content",
    fault=_fault,
    remarks=_remarks,
    fails=_fails,
)
PROTOCOL = WireProtocol("searxng", encode, _LAYOUT.decode)
