"""What goes back: status, headers and body of every answer, streams' heads too.

Owns the headers that clients may rely on. Every answer says whether it came from the cache; an error says that it is
not to be sent again, since all that could help was done here. Knows no call and no caller.
"""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web
from msgspec import Struct, structs

from ...engine.call import Outcome
from ..dialects.dialect import Dialect, Problem
from .paths import MESSAGES
from .whole import Whole

JSON, EVENTS = "application/json", "text/event-stream"
CACHED, TRIAL, KEY, COST = "X-Millstream-Cached", "X-Millstream-Trial", "X-Millstream-Key", "X-Millstream-Cost"
# What FAULTS gives a drain.
DRAIN_S = 30
_ALLOWED = "GET, HEAD, POST"
_PAYMENT_REQUIRED = 402


class Told(Struct, frozen=True):
    """What an answer's headers say of its calls. `cost` None: not known, or not yet."""

    is_cached: bool
    numbers: tuple[int, ...] = ()
    key: str = ""
    cost: float | None = None


def told_of(outcomes: Sequence[Outcome], numbers: tuple[int, ...]) -> Told:
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    cost = sum(costs) if len(costs) == len(outcomes) else None
    return Told(all(outcome.cached for outcome in outcomes), numbers, outcomes[0].key, cost)


def headers_of(told: Told, request_id: str, media_type: str) -> dict[str, str]:
    headers = {
        "Content-Type": media_type,
        CACHED: "true" if told.is_cached else "false",
        "x-request-id": request_id,
        "X-Content-Type-Options": "nosniff",
        "Server": "millstream",
    }
    if told.numbers:
        headers[TRIAL] = ",".join(map(str, told.numbers))
    if told.key:
        headers[KEY] = told.key
    if told.cost is not None:
        headers[COST] = f"{told.cost:.10g}"
    return headers


def answer(body: bytes, told: Told, request_id: str, media_type: str = JSON, status: int = 200) -> Whole:
    return Whole(status, headers_of(told, request_id, media_type), body)


def refusal(problem: Problem, dialect: Dialect, name: str, request_id: str, told: Told | None = None) -> Whole:
    """An error in the words of the client's dialect; `name` is the dialect's path."""
    status = problem.status
    if problem.kind == "over_budget" and name == MESSAGES:
        status = _PAYMENT_REQUIRED
    body = dialect.problem(structs.replace(problem, request_id=request_id or None))
    made = answer(body, told or Told(False), request_id, status=status)
    made.fields["x-should-retry"] = "false"
    if name == MESSAGES:
        made.fields["request-id"] = request_id
    if status == 401:
        made.fields["WWW-Authenticate"] = "Bearer"
    elif status == 405:
        made.fields["Allow"] = _ALLOWED
    if problem.retry_after_s is not None:
        made.fields["Retry-After"] = str(problem.retry_after_s)
    return made


def stream_head(told: Told, request_id: str, media_type: str) -> web.StreamResponse:
    headers = headers_of(told, request_id, media_type)
    # So that a proxy in between passes on each piece as it comes.
    headers |= {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return web.StreamResponse(headers=headers)
