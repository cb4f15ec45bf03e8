"""One call of a caller's to its end: what is stored at once, else by the caller's lane and budget, then by the engine.

Owns the order of these steps and whose money an attempt costs. Knows no HTTP and no dialect.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, NamedTuple

from msgspec import structs

from ...engine.admission import Permit, Stop
from ...engine.call import Call, Outcome
from ...engine.endpoint import EncodeError, Hear
from ...engine.events import Event
from ...engine.fault import LocalFault
from ...engine.key import question_of
from ...engine.limits import Tokens
from ...engine.money import over_budget, why_unbounded
from ...engine.scheduler import Encoded, Wanted
from ...wiring import Engine
from ..dialects.dialect import Refused
from .callers import Caller
from .disk import has_room
from .flights import Flight, Flights, Seat

# Every model has a lane with files of its own that stay open, and a name costs whoever asks nothing. Those that are
# declared or have a price are not counted.
MODELS_MAX = 256
# Who asks one thing after another asks the next within so long.
_STORED_AFTER_S = 0.002
# With no budget of its own the engine would not reckon what an attempt may cost.
_NO_LIMIT = math.inf


class _NotCarried(Exception):
    """The budget that carried a call can't bear another attempt, or can't be written down: `why` is for its caller;
    whoever else waits for the call asks anew."""

    def __init__(self, caller: Caller, why: Refused | LocalFault) -> None:
        super().__init__(caller.settings.name)
        self.caller = caller
        self.why = why


class _Turn:
    """A caller's right to have one call sent: a permit of its lane, and whether its budget reserved an attempt. `most`
    is what one may cost."""

    def __init__(self, caller: Caller, permit: Permit | None) -> None:
        self.caller = caller
        self.most = 0.0
        self.is_reserved = False
        self.has_begun = False
        self.why_not: Refused | LocalFault | None = None
        self._permit = permit

    def begin_attempt(self) -> None:
        """Each is reserved before it is sent. Cancels the call where that can't be."""
        self.has_begun = True
        if self.caller.purse is None or self.is_reserved:
            return
        try:
            self.is_reserved = self.caller.try_reserve(self.most)
        except LocalFault as fault:
            self.why_not = fault
        else:
            self.why_not = None if self.is_reserved else self.caller.over_budget(self.most)
        if self.why_not is not None:
            raise asyncio.CancelledError

    def pay(self, cost: float, *, is_sure: bool) -> None:
        if self.is_reserved:
            self.is_reserved = False
            self.caller.settle(self.most, cost, is_sure=is_sure)

    def end(self, used: Tokens) -> None:
        """What is still reserved was never sent."""
        self.pay(0.0, is_sure=True)
        self.caller.give_back(self._permit, used if self.has_begun else None)


class Booking(NamedTuple):
    """A call that was begun for somebody. `is_joining`: it was under way before."""

    seat: Seat
    is_joining: bool

    @property
    def outcome(self) -> Outcome | None:
        """What is known of it by now, if it is good."""
        outcome = self.seat.known
        return outcome if outcome is None or not self.is_joining else _shared(outcome)


class Asking:
    """The engine as callers share it. `has_budgets`: some caller's. `spent` is told what callers' attempts cost, and
    `used` each answer that was sent for, both by the name of who had it sent, whoever gets the answer."""

    def __init__(
        self,
        engine: Engine,
        *,
        has_budgets: bool,
        spent: Callable[[str, float], None],
        used: Callable[[str, Outcome], None],
    ) -> None:
        self._engine = engine
        self._in_turn = Flights()
        self._flights = Flights()
        self._spent = spent
        self._used = used
        # By the task that carries a call: the engine tells in it what an attempt cost.
        self._payers: dict[asyncio.Task[object] | None, tuple[str, _Turn | None]] = {}
        self._next_look = 0.0
        settings = engine.settings
        self._known = {lane.model for lane in settings.lanes} | settings.price_table().models.keys()
        self._unsubscribe = engine.events.subscribe(self._hear_event)
        if has_budgets and engine.purse.limit is None:
            engine.purse.limit = _NO_LIMIT

    def __repr__(self) -> str:
        return f"<Asking {self._flights}>"

    @property
    def under_way(self) -> int:
        return len(self._flights)

    def encoded(self, call: Call) -> Encoded | None:
        """In its provider's words, for any trial of it; None: it can't be said. Raises ConfigurationError for a model
        that can't be reached."""
        try:
            return self._engine.scheduler.encoded(call)
        except EncodeError:
            return None

    def encoder_of(self, call: Call) -> Callable[[], Encoded | None]:
        """The same in two steps, of which the second may be made in another thread."""
        route = self._engine.scheduler.route_of(call.lane)

        def encoded() -> Encoded | None:
            try:
                request = route.endpoint.encode(call)
            except EncodeError:
                return None
            return Encoded(route, request, question_of(request))

        return encoded

    def look_up(self, call: Call, encoded: Encoded | None = None) -> Outcome | Wanted:
        """What needs no sending, or what does. `encoded`: what was made of it just now."""
        found = self._engine.scheduler.look_up(call, encoded)
        if isinstance(found, Outcome) or (known := self._flights.known(found.key)) is None:
            return found
        return _shared(structs.replace(known, call=call))

    def refuse_one_model_too_many(self, model: str) -> None:
        """Before anything is asked of the engine about it: even a call's key needs the model's lane."""
        routes = self._engine.scheduler.routes
        if model in routes or model in self._known or len(routes.keys() - self._known) < MODELS_MAX:
            return
        said = f"{MODELS_MAX} models that nobody declared have been asked, and no more can be"
        raise Refused(f"{said}: name {model} under [lanes], and start the gateway again", "model", "unknown_model", 503)

    def begin(self, caller: Caller, wanted: Wanted, told: Callable[[], None]) -> Booking | None:
        """Have a call sent from now on, where its caller needs no turn for it. `told` at the instant of its end, be it
        good or not; `fetch` waits for it. Raises Refused."""
        if caller.is_limited:
            return None
        self._refuse_what_no_budget_bears(caller, wanted)
        is_joining = wanted.key in self._flights
        return Booking(self._board(caller, wanted, None, told), is_joining)

    async def fetch(self, caller: Caller, wanted: Wanted, hear: Hear | None, booking: Booking | None = None) -> Outcome:
        """The outcome of a call that has to be sent, or is under way already. Raises LaneStopped, Refused."""
        if booking is None:
            self._refuse_what_no_budget_bears(caller, wanted)
        while True:
            is_joining = wanted.key in self._flights if booking is None else booking.is_joining
            try:
                if booking is not None:
                    seat, booking = booking.seat, None
                    outcome = await seat.outcome()
                elif caller.is_limited and not is_joining:
                    key = (caller.settings.name, wanted.key)
                    is_joining = key in self._in_turn
                    outcome = await self._in_turn.join(key, partial(self._wait_for_turn, caller, wanted), hear)
                else:
                    outcome = await self._board(caller, wanted, hear).outcome()
            except _NotCarried as error:
                if error.caller is caller:
                    raise error.why from error
                found = self.look_up(wanted.call, self.encoded(wanted.call))
                if isinstance(found, Outcome):
                    return found
                wanted = found
            else:
                return _shared(outcome) if is_joining else outcome

    def _board(self, caller: Caller, wanted: Wanted, hear: Hear | None, told: Callable[[], None] | None = None) -> Seat:
        carry = partial(self._send, wanted, caller, None, is_heard=hear is not None)
        return self._flights.board(wanted.key, carry, hear, told=told)

    async def close(self) -> None:
        await self._in_turn.close()
        await self._flights.close()
        self._unsubscribe()

    def reopens_in_s(self, stop: Stop) -> int | None:
        """When a model that stopped is tried again, in whole seconds."""
        left = self._engine.scheduler.ways.reopens_in_s(stop.lane)
        return None if left is None else math.ceil(left)

    @property
    def is_halted(self) -> bool:
        """Nothing is sent to anybody."""
        return self._engine.scheduler.halted is not None

    async def resume(self) -> None:
        """Where a disk that took nothing more had halted everything, see now and then whether it takes something."""
        scheduler = self._engine.scheduler
        if scheduler.halted is None or scheduler.halted[0] != "local_fault":
            return
        now = asyncio.get_running_loop().time()
        if now < self._next_look:
            return
        self._next_look = now + (self._engine.settings.policy.reopened_s or 0.0)
        if await asyncio.to_thread(has_room, scheduler.cache.folder):
            scheduler.ways.resume()

    async def _wait_for_turn(self, caller: Caller, wanted: Wanted, own: Flight) -> Outcome:
        """One for all of a caller's identical requests, so that these take one place in its lane."""
        turn = _Turn(caller, await caller.admit(wanted.tokens))
        is_sent = False

        def send(flight: Flight) -> Coroutine[Any, Any, Outcome]:
            nonlocal is_sent
            is_sent = True
            return self._send(wanted, caller, turn, flight, is_heard=True)

        def landed(task: asyncio.Task[Outcome]) -> None:
            turn.end(_used(wanted, None if task.cancelled() or task.exception() else task.result()))

        try:
            if caller.purse is not None:
                turn.most = self._most(wanted)
                await caller.reserve(turn.most)
                turn.is_reserved = True
            # Somebody else may have had it answered meanwhile.
            found = self.look_up(wanted.call, self.encoded(wanted.call))
            if isinstance(found, Outcome):
                return found
            wanted = found
            outcome = await self._flights.join(wanted.key, send, own.hear, landed)
            return outcome if is_sent else _shared(outcome)
        finally:
            # Once it is sent the turn belongs to the call, which may outlive this caller.
            if not is_sent:
                turn.end(Tokens())

    async def _send(
        self, wanted: Wanted, caller: Caller, turn: _Turn | None, flight: Flight, *, is_heard: bool
    ) -> Outcome:
        name, lane = caller.settings.name, wanted.route.lane

        def hear_attempt(piece: str | None) -> None:
            if piece is None and turn is not None:
                turn.begin_attempt()
            flight.hear(piece)

        async def answered(outcome: Outcome) -> None:
            flight.tell(outcome)
            self._used(name, outcome)
            # Whoever waits goes first, and with it what it asks next: making an entry and committing it take as long as
            # a call's whole way through here. A turn or a place that others may want is not kept longer for it; uvloop
            # writes at the end of a turn of its loop. Nobody cancels from here.
            if turn is None and lane.in_flight < lane.concurrency:
                await asyncio.sleep(_STORED_AFTER_S)
            else:
                await asyncio.sleep(0)
                await asyncio.sleep(0)

        wanted.answered = answered
        if is_heard:
            wanted.request = structs.replace(wanted.request, hear=hear_attempt)
        task = asyncio.current_task()
        self._payers[task] = name, turn
        try:
            return await self._engine.scheduler.fetch(wanted, None)
        except asyncio.CancelledError:
            if turn is not None and turn.why_not is not None:
                raise _NotCarried(turn.caller, turn.why_not) from None
            raise
        finally:
            del self._payers[task]

    def _hear_event(self, event: Event) -> None:
        if event.kind != "spent" or (payer := self._payers.get(asyncio.current_task())) is None:
            return
        name, turn = payer
        self._spent(name, event.value)
        if turn is not None:
            turn.pay(event.value, is_sure=event.detail != "unsure")

    def _most(self, wanted: Wanted) -> float:
        price = wanted.route.price
        if price is None:
            said = f"model {wanted.call.model!r} has no price, so max_cost can't be kept: give it one under [prices]"
            raise Refused(said, "model")
        most = wanted.route.worst_cost(wanted.call)
        if most is None:
            raise Refused(why_unbounded(wanted.call.model, "max_cost"), "max_tokens")
        return most

    def _refuse_what_no_budget_bears(self, caller: Caller, wanted: Wanted) -> None:
        """One call that is too dear must not stop its whole lane, as it would in a run."""
        purse = self._engine.purse
        if self._engine.settings.max_cost is not None and purse.limit is not None:
            most = self._most(wanted)
            if purse.spent + most > purse.limit:
                purse.is_exhausted = True
                raise Refused(
                    f"{over_budget('the next call', most, purse)}, or cut max_tokens", None, "over_budget", 429
                )
        if caller.purse is not None:
            most = self._most(wanted)
            if caller.purse.charged + most > (caller.purse.limit or 0.0):
                raise caller.over_budget(most)


def _shared(outcome: Outcome) -> Outcome:
    """Another request's answer, as that of one that joined it."""
    if outcome.reply is None:
        return outcome
    return structs.replace(outcome, cached=True, cost=None if outcome.cost is None else 0.0)


def _used(wanted: Wanted, outcome: Outcome | None) -> Tokens:
    usage = None if outcome is None or outcome.reply is None else outcome.reply.usage
    return wanted.tokens if usage is None else Tokens(usage.input, usage.output)
