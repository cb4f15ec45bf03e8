"""Makes the answers: status, headers and body, and the headers of streams.

Owns the headers that clients may rely on. Every answer says whether it is from the cache; an error says that it is not
to be sent again, since the gateway has made all retries. Knows no call and no caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, structs

from ...engine.call import Outcome
from ...providers.llm.serve_dialect import Dialect, Problem
from ..http.http_response import HttpResponse
from .paths import MESSAGES

JSON, EVENTS = "application/json", "text/event-stream"
CACHED, TRIAL, KEY, COST = "X-Millstream-Cached", "X-Millstream-Trial", "X-Millstream-Key", "X-Millstream-Cost"
# The seconds that a drain takes at most.
DRAIN_S = 30
_ALLOWED = "GET, HEAD, POST"
_PAYMENT_REQUIRED = 402
# With these a proxy in between passes on each piece at once.
_STREAMED = "Cache-Control: no-cache\r\nX-Accel-Buffering: no\r\n"


class AnswerFacts(Struct, frozen=True):
    """What an answer's headers say of its calls: `numbers` are their trial numbers, `key` is the first cache key.
    `cost` is in dollars; None: not known, or not yet."""

    is_cached: bool
    numbers: tuple[int, ...] = ()
    key: str = ""
    cost: float | None = None


def facts_of(outcomes: Sequence[Outcome], numbers: tuple[int, ...]) -> AnswerFacts:
    if len(outcomes) == 1:
        one = outcomes[0]
        return AnswerFacts(one.cached, numbers, one.key, one.cost)
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    cost = sum(costs) if len(costs) == len(outcomes) else None
    return AnswerFacts(all(outcome.cached for outcome in outcomes), numbers, outcomes[0].key, cost)


def fields_of(facts: AnswerFacts, request_id: str, media_type: str) -> str:
    """Returns the lines of a head, each with its line end."""
    fields = (
        f"Content-Type: {media_type}\r\n{CACHED}: {'true' if facts.is_cached else 'false'}\r\n"
        f"x-request-id: {request_id}\r\nX-Content-Type-Options: nosniff\r\nServer: millstream\r\n"
    )
    if facts.numbers:
        fields += f"{TRIAL}: {','.join(map(str, facts.numbers))}\r\n"
    if facts.key:
        fields += f"{KEY}: {facts.key}\r\n"
    if facts.cost is not None:
        fields += f"{COST}: {facts.cost:.10g}\r\n"
    return fields


def stream_fields(facts: AnswerFacts, request_id: str) -> str:
    return fields_of(facts, request_id, EVENTS) + _STREAMED


def answer(body: bytes, facts: AnswerFacts, request_id: str, media_type: str = JSON, status: int = 200) -> HttpResponse:
    return HttpResponse(status, fields_of(facts, request_id, media_type), body)


def refusal(
    problem: Problem, dialect: Dialect, name: str, request_id: str, facts: AnswerFacts | None = None
) -> HttpResponse:
    """Returns a problem as an answer in the client's dialect; `name` is the dialect's name in `paths`."""
    status = problem.status
    if problem.kind == "over_budget" and name == MESSAGES:
        status = _PAYMENT_REQUIRED
    body = dialect.problem(structs.replace(problem, request_id=request_id or None))
    more = "x-should-retry: false\r\n"
    if name == MESSAGES:
        more += f"request-id: {request_id}\r\n"
    if status == 401:
        more += "WWW-Authenticate: Bearer\r\n"
    elif status == 405:
        more += f"Allow: {_ALLOWED}\r\n"
    if problem.retry_after_s is not None:
        more += f"Retry-After: {problem.retry_after_s}\r\n"
    return HttpResponse(status, fields_of(facts or AnswerFacts(False), request_id, JSON) + more, body)
