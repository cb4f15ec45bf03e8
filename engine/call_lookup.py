"""What becomes of a call before anything is sent: stored, not to be sent, or pending.

Owns that decision and its messages: cache, mode, the lane's quota, a budget without a bound. Sends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from .attempts.money import why_unbounded
from .call import Call, Failure, Outcome, Reply
from .endpoint import EncodeError, Request
from .events import Events
from .key import key_of, question_of, sample_of
from .routes import Route, Routes
from .shared_calls import PendingCall
from .store.cache import Mode
from .store.cache_policy import CachePolicy
from .store.entries import StoredAnswer

if TYPE_CHECKING:
    from hashlib import _Hash as HASH


class CallEncoding(Struct, frozen=True):
    """A call in its provider's words, and the key of all its samples but for their number."""

    route: Route
    request: Request
    question: HASH


class CallLookup:
    """Looks calls up under one mode; `policy` says what may be taken from what is stored."""

    def __init__(self, routes: Routes, policy: CachePolicy, events: Events, mode: Mode) -> None:
        self._routes = routes
        self._policy = policy
        self._events = events
        self._mode = mode

    def encoded(self, call: Call) -> CallEncoding:
        """What all samples of a call have in common. Raises EncodeError. A lane that had stopped is opened anew where
        it is time."""
        route = self._routes.of(call.lane)
        request = route.endpoint.encode(call)
        return CallEncoding(route, request, question_of(request))

    def look_up(self, call: Call, encoded: CallEncoding | None = None) -> Outcome | PendingCall:
        """What needs no sending: a stored answer, or a call that can't be sent. `encoded`: made of it just now."""
        if encoded is not None:
            route, request, key = encoded.route, encoded.request, sample_of(encoded.question, call.trial)
        else:
            # A lane that lasts has its model's name: the shortest way for what is asked most.
            route = self._routes.lasting.get(call.model) or self._routes.of(call.lane)
            try:
                request = route.endpoint.encode(call)
            except EncodeError as error:
                return self._unsent(call, Failure("rejected", str(error)))
            key = key_of(request, call.trial)
        return self.find(call, route, request, key)

    def find(self, call: Call, route: Route, request: Request, key: bytes) -> Outcome | PendingCall:
        """The same of a call that is encoded already."""
        entry = self._policy.retrieval(key) if route.is_retrieval else self._policy.answer(key)
        if isinstance(entry, StoredAnswer):
            reply = route.endpoint.decode(entry.response)
            if isinstance(reply, Reply):
                self._events.tell("cached", call.model)
                route.lane.note_answer(reply)
                cost = None if route.price is None else 0.0
                # What a page may cost is reckoned over its hops, and must come out the same when they are repeated.
                took_ms = entry.response.latency_ms if route.is_page else None
                return Outcome(call, reply=reply, key=key.hex(), cached=True, cost=cost, latency_ms=took_ms)
        elif entry is not None:
            took_ms = entry.response.latency_ms if route.is_page and entry.response is not None else None
            return structs.replace(self._unsent(call, entry.failure, key.hex()), cached=True, latency_ms=took_ms)
        if self._mode == "strict":
            detail = (
                f"call {key.hex()[:12]} to {call.model} is not in {self._policy.place} and mode strict sends nothing"
            )
            return self._unsent(call, Failure("not_cached", detail), key.hex())
        tokens, lane = route.estimate.tokens_of(call), route.lane
        if tokens.total > lane.least_tokens and (lack := lane.declared.lacks(tokens)) is not None:
            detail = (
                f"call {key.hex()[:12]} needs {lack.needed:,} {lack.what}; lane {call.model} admits at most "
                f"{lack.most:,.0f} a minute: raise {lack.name} or cut the prompt"
            )
            return self._unsent(call, Failure("rejected", detail), key.hex())
        if lane.purse.is_limited and route.is_unbounded(call):
            return self._unsent(call, Failure("rejected", why_unbounded(call.model)), key.hex())
        return PendingCall(call, route, request, key, tokens)

    def _unsent(self, call: Call, failure: Failure, key: str = "") -> Outcome:
        self._events.tell("unsent", call.model, detail=failure.kind)
        return Outcome(call, failure=failure, key=key)
