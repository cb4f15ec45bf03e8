"""The engine's endpoint for the web: each call is one request to a page's host.

Owns what a status, a refusal or a broken request means for the page and for its host's lane. A redirect is a reply.
The reader, above the engine, follows redirects, obeys robots.txt and extracts texts.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import time

from ...engine.attempts.retry import RetryPolicy
from ...engine.call import Call, Reply
from ...engine.endpoint import Action, AwaitingEndpoint, Cleared, EncodeError, Fault, Request, Response, SendError
from ...engine.limits import Limit
from ...engine.own_machine import out_of, waiting, what_ran_out
from ..llm.faults import retry_after_s
from ..transport.http_connection import AnswerTooLarge, BrokenOff, ExchangeError, NoHttp
from .connections import NotPublic, PageConnections
from .guard import PageRefusal
from .hop import fetch, headers_of
from .page import reply_of
from .page_limits import PageLimits
from .urls import UrlError, parse_url

HOP_S = 10.0
# A page is requested once more after a pause of at most this. During a longer pause no page of the host is requested;
# one of several days is cut to the maximum.
SHORT_PAUSE_S = 5.0
PAUSE_MAX_S = 3_600.0
# The pause after a 429 without a stated time.
PAUSE_S = 2.0
CRAWL_DELAY_MAX_S = 20.0
# An error after more seconds than this has cost its page too much time for a retry.
QUICK_S = 2.0
# How the lane of a host retries: one retry, soon, and no long wait for a host that is down.
POLICY = RetryPolicy(
    attempts_max=2, wait_min_s=0.25, wait_max_s=1.0, patience_s=30.0, own_patience_s=60.0, rejections_max=1 << 30
)

WITHIN_S, CRAWL_DELAY_S = "within_s", "crawl_delay_s"
"""Names in a call's `extra`: the seconds that the hop may take, and the seconds between requests that the host's
robots.txt asks for. Neither is part of the cache key."""

# A header that no host sends: it carries the pace in robots.txt to the lane, with the answer.
_CRAWL_DELAY = "crawl-delay"
_IDENTITY = "web"
_NEVER_BODIES = (204, 205, 304)
_PAUSES_MAX = 10_000


class PageEndpoint(AwaitingEndpoint):
    """The endpoint for all pages. `timeout_s`: the most seconds that one hop may take. `together`: the limits of all
    hosts together; None: there are none."""

    def __init__(self, connections: PageConnections, timeout_s: float = HOP_S) -> None:
        self._connections = connections
        self.together: PageLimits | None = None
        self._timeout_s = timeout_s
        self._paused_until: dict[str, float] = {}

    def __repr__(self) -> str:
        return (
            f"<PageEndpoint [{self._timeout_s:g} s a hop; {len(self._paused_until)} hosts paused; {self._connections}]>"
        )

    @property
    def base_url(self) -> str:
        return f"{_IDENTITY}:"

    def encode(self, call: Call) -> Request:
        if not isinstance(call.input, str):
            raise EncodeError("a page is asked for by its URL, not by messages")
        try:
            url = parse_url(call.input)
            self._connections.check(url)
        except UrlError as error:
            raise EncodeError(f"not fetched: {error}") from error
        body = json.dumps({"url": url.text}).encode()
        extra = call.extra or {}
        wire = json.dumps({name: extra[name] for name in (WITHIN_S, CRAWL_DELAY_S) if name in extra}).encode()
        return Request(url.text, _IDENTITY, body, wire, body, b"{}", method="GET")

    async def send(self, request: Request, cleared: Cleared) -> Response:
        if self.together is None:
            return await self._hop(request, cleared)
        return await self.together.send(self._hop, request, cleared)

    async def _hop(self, request: Request, cleared: Cleared) -> Response:
        try:
            url = parse_url(request.url)
        except UrlError as error:
            raise SendError(_not_fetched(error)) from error
        self._check_pause(url.authority)
        options = json.loads(request.wire)
        timeout_s = min(self._timeout_s, float(options.get(WITHIN_S, self._timeout_s)))
        began = time.perf_counter()
        try:
            async with asyncio.timeout(timeout_s):
                answer = await fetch(self._connections, url, cleared)
            if answer.broken is not None and answer.status < 400:  # an error's status says what it is
                raise answer.broken
        except (TimeoutError, ExchangeError, OSError, RuntimeError, PageRefusal) as error:
            is_quick = time.perf_counter() - began <= QUICK_S
            if what := what_ran_out(error):
                raise SendError(out_of(what, error)) from error
            if lack := await self._connections.own_lack(error):
                raise SendError(waiting(lack)) from error
            raise SendError(_fault_of(error, timeout_s, is_quick=is_quick)) from error
        elapsed_ms = (time.perf_counter() - began) * 1000
        headers = headers_of(answer)
        if CRAWL_DELAY_S in options:
            headers[_CRAWL_DELAY] = str(options[CRAWL_DELAY_S])
        response = Response(answer.status, answer.body, latency_ms=elapsed_ms, headers=headers)
        self._note_pause(url.authority, response)
        return response

    def decode(self, response: Response) -> Reply | Fault:
        status = response.status
        if not 200 <= status < 400 or status in _NEVER_BODIES:
            return _fault_of_status(response)
        return reply_of(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        """Returns the limits that a host sets: the pause that it asks for, and the pace in its robots.txt."""
        limits = []
        pause_s = _pause_s(response)
        if pause_s is not None and pause_s <= SHORT_PAUSE_S:
            limits.append(Limit("requests", pause_s, remaining=0, reset_s=pause_s))
        delay_s = float(response.headers.get(_CRAWL_DELAY, 0))
        if delay_s > 0:
            # The pace applies from the next start on, so the rest of the pause after this one is stated beside it.
            delay_s = min(delay_s, CRAWL_DELAY_MAX_S)
            left_s = max(0.0, delay_s - response.latency_ms / 1000)
            limits.append(Limit("requests", delay_s, limit=1, remaining=0, reset_s=left_s))
        return tuple(limits)

    def _check_pause(self, host: str) -> None:
        left_s = self._paused_until.get(host, 0.0) - time.monotonic()
        if left_s > 0:
            detail = f"not asked: the host wants a pause that ends in {left_s:.0f} s"
            raise SendError(Fault("rate_limited", detail, "never", quota="refund"))
        self._paused_until.pop(host, None)

    def _note_pause(self, host: str, response: Response) -> None:
        pause_s = _pause_s(response)
        if pause_s is None or pause_s <= SHORT_PAUSE_S:
            return
        now = time.monotonic()
        if len(self._paused_until) >= _PAUSES_MAX:
            self._paused_until = {name: until for name, until in self._paused_until.items() if until > now}
        if len(self._paused_until) < _PAUSES_MAX:
            self._paused_until[host] = now + min(pause_s, PAUSE_MAX_S)


def _pause_s(response: Response) -> float | None:
    """Returns the pause in seconds that a response asks for, None if it asks for none."""
    if response.status not in (429, 503):
        return None
    wait_s = retry_after_s(response.headers)
    if wait_s is None:
        return PAUSE_S if response.status == 429 else None
    return max(wait_s, 0.1)


def _fault_of_status(response: Response) -> Fault:
    status = response.status
    pause_s = _pause_s(response)
    if pause_s is not None:
        detail = f"{status}: the host asks for a pause of {pause_s:.3g} s"
        # The pause is for all pages of the host; after a short one this page is retried once.
        return Fault("rate_limited", detail, "retry" if pause_s <= SHORT_PAUSE_S else "never", status)
    if status >= 500:
        return Fault("server_error", f"{status}: the host failed", "retry", status)
    if 200 <= status < 400:
        return Fault("empty", f"{status}: an answer without a page", "never", status)
    return Fault("rejected", f"{status}: {_MEANT.get(status, 'the host refuses')}", "never", status)


_MEANT = {
    401: "the host wants a password",
    402: "the host wants money",
    403: "the host forbids it",
    404: "there is no such page",
    410: "the page is gone",
    451: "kept back for legal reasons",
}


def _not_fetched(error: Exception) -> Fault:
    return Fault("rejected", f"not fetched: {error}", "never", quota="refund")


def _fault_of(error: Exception, timeout_s: float, *, is_quick: bool) -> Fault:
    """Returns the fault for the error of a hop. Pages cost nothing, so it only decides whether to try once more.
    `is_quick`: the error came soon, so that a repeat fits into the time of a page."""
    text = " ".join(str(error).split()) or type(error).__name__
    again: Action = "retry" if is_quick else "never"
    match error:
        case NotPublic() | PageRefusal():
            return _not_fetched(error)
        case AnswerTooLarge():
            return Fault("too_large", text, "never", error.status)
        case NoHttp():
            return Fault("incomplete", f"the host's answer is no HTTP ({text})", "never")
        case BrokenOff():
            return Fault("incomplete", f"the host broke off ({text})", again)
        case ExchangeError():
            return Fault("disconnected", f"the host broke off ({text})", again)
        case socket.gaierror():
            is_passing = error.errno == socket.EAI_AGAIN
            return Fault("dns", f"the host's name leads nowhere ({text})", again if is_passing else "never")
        case ssl.SSLError():
            return Fault("connect", f"no safe connection to the host ({text})", "never")
        case TimeoutError() if not error.errno:
            return Fault("timeout", f"no whole page within {timeout_s:.3g} s", "never")
    return Fault("connect", f"no connection to the host ({text})", "never")
