"""Decides what happens to a call before anything is sent: it is answered from the store, fails unsent, or is pending.

Owns that decision and its messages: cache, mode, the lane's quota, a cost without a bound. Sends nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

from .attempts.money import CostBound, why_unbounded
from .call import Call, Failure, Outcome, Reply
from .claims import Claims
from .endpoint import EncodeError, Request
from .estimate import call_weight
from .events import Events
from .key import key_of, sample_of
from .lanes.key_gate import Payer
from .limits import Tokens
from .routes import Route, Routes
from .store.cache import Mode
from .store.cache_policy import CachePolicy
from .store.entries import StoredAnswer

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

    from .shared.answers import SharedAnswers


class CallEncoding(Struct, frozen=True):
    """A call encoded for its provider, with the part of the cache key that all its trials share."""

    route: Route
    request: Request
    question: HASH


class PendingCall(Struct):
    """A call that the cache does not hold, ready to be sent. `key` is its cache key, `weight` its prompt's, `tokens`
    what is reserved for it, `changes` that of the claims when it was looked up; `payer`: the budget that pays for it
    beside the engine's, None: there is none."""

    call: Call
    route: Route
    request: Request
    key: bytes
    weight: int
    tokens: Tokens
    changes: int
    payer: Payer | None = None
    _bounds: tuple[CostBound, ...] | None = None

    @property
    def bounds(self) -> tuple[CostBound, ...]:
        """The bounds of its cost, by the prices at the time of the first look."""
        if self._bounds is None:
            self._bounds = self.route.cost_bounds(self.call)
        return self._bounds

    @property
    def worst_cost(self) -> float | None:
        """The most that an attempt can cost, in dollars; None if there is no price, or no bound."""
        least = self.route.estimate.most_by_weight(self.weight)
        return max([bound.dollars(least) for bound in self.bounds], default=None)

    @property
    def reckoned_cost(self) -> float:
        """The most that an attempt can cost, in dollars; 0.0 if no limit has to bear it."""
        payer = self.payer
        if self.route.lane.budget.limit is None and (payer is None or not payer.reckons_worst):
            return 0.0
        return self.worst_cost or 0.0


class CallLookup(Struct, eq=False, kw_only=True):
    """The look-up of calls in the store, under one mode; `recall` decides which stored entries may be used. `shared`:
    the answers that several machines share, None where there is no such cache."""

    routes: Routes
    recall: CachePolicy
    claims: Claims
    events: Events
    mode: Mode
    shared: SharedAnswers | None = None

    def look_up(self, call: Call, encoded: CallEncoding | None = None) -> Outcome | PendingCall:
        """Returns the outcome if nothing has to be sent (a stored answer, or a call that can't be sent), else the
        pending call. `encoded`: the call's encoding, made immediately before; None: it is made here."""
        if encoded is not None:
            route, request, key = encoded.route, encoded.request, sample_of(encoded.question, call.trial)
        else:
            # A model's lane has the model's name: the shortest path, for the commonest calls.
            route = self.routes.lasting.get(call.model) or self.routes.of(call.lane)
            try:
                request = route.endpoints[0].encode(call)
            except EncodeError as error:
                return self._unsent(call, Failure("rejected", str(error)))
            key = key_of(request, call.trial)
        if (stored := self.stored(call, route, key)) is not None:
            return stored
        if self.mode == "strict" and self.shared is None:
            return self.not_cached(call, key)
        weight, lane = call_weight(call), route.lane
        tokens = route.estimate.tokens_of(call, weight)
        pending = PendingCall(call, route, request, key, weight, tokens, self.claims.changes)
        if self.mode == "strict":
            return pending  # the shared cache is asked for it
        if tokens.input + tokens.output > lane.least_tokens and (lack := lane.declared.lacks(tokens)) is not None:
            detail = (
                f"call {key.hex()[:12]} needs {lack.needed:,} {lack.what}; lane {call.model} admits at most "
                f"{lack.most:,.0f} a minute: raise {lack.name} or cut the prompt"
            )
            return self._unsent(call, Failure("rejected", detail), key.hex())
        if lane.budget.limit is not None and route.price is not None and not pending.bounds:
            return self._unsent(call, Failure("rejected", why_unbounded(call, route.price)), key.hex())
        return pending

    def stored(self, call: Call, route: Route, key: bytes) -> Outcome | None:
        """Returns the outcome that the store has for a call, an answer or a failure; None if it has none."""
        entry = self.recall.retrieval(key) if route.is_retrieval else self.recall.answer(key)
        if isinstance(entry, StoredAnswer):
            reply = route.endpoints[0].decode(entry.response)
            if isinstance(reply, Reply):
                self.events.tell("cached", call.model)
                route.lane.note_answer(reply)
                cost = None if route.price is None else 0.0
                # The time spent on a page is added up over its redirects, and must be the same when they are read from
                # the cache.
                took_ms = entry.response.latency_ms if route.is_page else None
                return Outcome(call, reply=reply, key=key.hex(), cached=True, cost=cost, latency_ms=took_ms)
        elif entry is not None:
            took_ms = entry.response.latency_ms if route.is_page and entry.response is not None else None
            return structs.replace(self._unsent(call, entry.failure, key.hex()), cached=True, latency_ms=took_ms)
        return None

    def not_cached(self, call: Call, key: bytes) -> Outcome:
        """Returns the outcome of a call that mode strict does not find."""
        detail = f"call {key.hex()[:12]} to {call.model} is not in {self.recall.place} and mode strict sends nothing"
        return self._unsent(call, Failure("not_cached", detail), key.hex())

    def _unsent(self, call: Call, failure: Failure, key: str = "") -> Outcome:
        self.events.tell("unsent", call.model, detail=failure.kind)
        return Outcome(call, failure=failure, key=key)
