"""The one way a call goes out: cache, then lane, then transport, then cache and journal.

Owns the order of these steps, single flight and retries. It is given endpoints and lanes; it knows no
provider and no benchmark. Workers, iterator and results of a whole run: run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Protocol

from msgspec import MsgspecError, Struct, structs

from .admission import Permit, Stop, StopReason
from .cache import Cache, Mode
from .call import Call, Failure, Outcome, Reply
from .endpoint import EncodeError, Fault, Hear, Request, Response, SendError
from .entries import Entry
from .events import Events
from .fault import LocalFault, Stopped
from .group import LaneStopped
from .key import key_of, question_of, sample_of
from .limits import Tokens
from .money import cost_of, why_unbounded
from .own_machine import own_fault_of, own_stop
from .recall import Recall
from .repeats import is_left_pending, may_repeat, wait_to_repeat
from .retry import RetryPolicy, Tries, told_to_wait
from .routes import Route as Route
from .routes import Routes
from .sink import Line, Sink

if TYPE_CHECKING:
    from hashlib import _Hash as HASH

# Stops that are nothing of the host's: what was not sent stays pending.
_OUR_OWN: tuple[StopReason, ...] = ("budget", "interrupted", "local_fault")
# A commit that nobody waits for any more tells nobody when it is done.
_LOOK_AGAIN_S = 0.002
# What the encoder raises of an entry that has no bytes, such as half a character in a header.
_NOT_ENCODED = (ValueError, TypeError, OverflowError, MsgspecError)


class Endable(Protocol):
    """A run, as far as it matters here."""

    async def abandon(self) -> None: ...


class Encoded(Struct, frozen=True):
    """A call in its provider's words, and the key of all its samples but for their number."""

    route: Route
    request: Request
    question: HASH


class Wanted(Struct):
    """A call that the cache did not hold, ready to be sent. `answered` is told its outcome before that is stored."""

    call: Call
    route: Route
    request: Request
    key: bytes
    tokens: Tokens
    answered: Callable[[Outcome], Awaitable[None]] | None = None


class Scheduler:
    """Runs calls. `route` builds what a model string needs, once each."""

    def __init__(
        self,
        route: Callable[[str], Route],
        *,
        cache: Cache,
        mode: Mode,
        policy: RetryPolicy,
        events: Events,
        random: Random,
        recall: Recall | None = None,
    ) -> None:
        self.events = events
        self.cache = cache
        self.recall = recall if recall is not None else Recall(cache, mode)
        self.ways = Routes(route, policy.reopened_s)
        # Those of models and searches, by lane; those of hosts come and go.
        self.routes: Mapping[str, Route] = self.ways.lasting
        self.hosts: Mapping[str, Route] = self.ways.hosts
        self._mode = mode
        self._policy = policy
        self._random = random
        self.maybe_billed_pending = 0
        self._out = 0
        self._flying: dict[bytes, asyncio.Future[Outcome | None]] = {}
        self.on_halt: set[Callable[[], None]] = set()
        self.runs: set[Endable] = set()

    def __repr__(self) -> str:
        in_flight = sum(route.lane.in_flight for route in self.ways)
        hosts = f"{len(self.ways.hosts)} hosts, " if self.ways.hosts else ""
        return f"<Scheduler [{len(self.routes)} lanes, {hosts}{in_flight} in flight, mode {self._mode}]>"

    @property
    def halted(self) -> tuple[StopReason, str] | None:
        return self.ways.halted

    def route_of(self, lane: str) -> Route:
        return self.ways.of(lane)

    async def end_runs(self) -> None:
        """Those that somebody left in the middle, or waits for: the engine is about to be closed."""
        for run in tuple(self.runs):
            await run.abandon()

    def close(self) -> None:
        self.ways.close()

    async def ask(self, call: Call, sink: Sink | None = None, hear: Hear | None = None) -> Outcome:
        """One call to its end. Raises Stopped where its lane sends nothing more. `hear` is told of a call that is sent
        and streamed; of one that is stored or under way already it hears nothing."""
        found = self.look_up(call)
        if isinstance(found, Outcome):
            self._write(found, sink)
            return found
        if hear is not None:
            found.request = structs.replace(found.request, hear=hear)
        try:
            return await self.fetch(found, sink)
        except LaneStopped as error:
            raise Stopped([error.stop]) from error

    def halt(self, reason: StopReason, detail: str) -> None:
        """Send nothing more on any lane; what is in flight is finished."""
        self.ways.halt(reason, detail)
        for listener in tuple(self.on_halt):
            listener()

    def encoded(self, call: Call) -> Encoded:
        """What all samples of a call have in common. Raises EncodeError. A lane that had stopped is opened anew where
        it is time."""
        route = self.ways.of(call.lane)
        request = route.endpoint.encode(call)
        return Encoded(route, request, question_of(request))

    def look_up(self, call: Call, encoded: Encoded | None = None) -> Outcome | Wanted:
        """What needs no sending: a stored answer, or a call that can't be sent. `encoded`: made of it just now."""
        if encoded is not None:
            route, request, key = encoded.route, encoded.request, sample_of(encoded.question, call.trial)
        else:
            # A lane that lasts has its model's name: the shortest way for what is asked most.
            route = self.routes.get(call.model) or self.ways.of(call.lane)
            try:
                request = route.endpoint.encode(call)
            except EncodeError as error:
                return self._unsent(call, Failure("rejected", str(error)))
            key = key_of(request, call.trial)
        entry = self.recall.retrieval(key) if route.is_retrieval else self.recall.answer(key)
        if isinstance(entry, Entry):
            reply = route.endpoint.decode(entry.response)
            if isinstance(reply, Reply):
                self.events.tell("cached", call.model)
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
                f"call {key.hex()[:12]} to {call.model} is not in {self.recall.place} and mode strict sends nothing"
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
        return Wanted(call, route, request, key, tokens)

    def _unsent(self, call: Call, failure: Failure, key: str = "") -> Outcome:
        self.events.tell("unsent", call.model, detail=failure.kind)
        return Outcome(call, failure=failure, key=key)

    async def fetch(self, wanted: Wanted, sink: Sink | None) -> Outcome:
        """Send a call, unless the same call is under way: then its answer serves both."""
        while True:
            leader, commit = self._flying.get(wanted.key), self.cache.under_way(wanted.key)
            if leader is not None:
                first = await asyncio.shield(leader)
                if first is not None:
                    return self._shared(wanted.call, first, sink)
            elif commit is not None:
                await (asyncio.sleep(_LOOK_AGAIN_S) if commit.cancelled() else asyncio.wait([commit]))
            else:
                break
            # The leader left, or its lane stopped. Its answer may have come; else who wakes first takes its place.
            found = self.look_up(wanted.call)
            if isinstance(found, Outcome):
                self._write(found, sink)
                return found
            wanted = found
        flight = self._flying[wanted.key] = asyncio.get_running_loop().create_future()
        tries = Tries(wanted.route.policy or self._policy)
        wanted.route.under_way += 1
        try:
            try:
                outcome = await self._send_until_final(wanted, tries, sink)
            except LaneStopped as error:
                self.ways.note_stop(wanted.route)
                if not wanted.route.is_page or error.stop.reason in _OUR_OWN:
                    raise
                if (ours := own_stop(wanted.route.latest_fault, error.stop)) is not None:
                    self.halt(ours.reason, ours.detail)
                    raise LaneStopped(ours) from error
                outcome = await self._given_up(wanted, error.stop, tries, sink)
        except BaseException:
            # The call stays pending, so no record will tell of what was sent for it.
            self.maybe_billed_pending += tries.maybe_billed
            flight.set_result(None)
            raise
        else:
            flight.set_result(outcome)
            return outcome
        finally:
            wanted.route.under_way -= 1
            del self._flying[wanted.key]

    def _shared(self, call: Call, first: Outcome, sink: Sink | None) -> Outcome:
        """The outcome of another caller's identical call, as this call's own."""
        outcome = Outcome(
            call,
            reply=first.reply,
            failure=first.failure,
            key=first.key,
            cached=first.reply is not None,
            cost=None if first.cost is None else 0.0,
        )
        if first.failure is None:
            self.events.tell("cached", call.model)
        else:
            self.events.tell("unsent", call.model, detail=first.failure.kind)
        self._write(outcome, sink)
        return outcome

    async def _given_up(self, wanted: Wanted, stop: Stop, tries: Tries, sink: Sink | None) -> Outcome:
        """One host has stopped: that is the end of its pages, and of nothing else."""
        fault = wanted.route.latest_fault
        failure = Failure("connect", stop.detail)
        if fault is not None:
            failure = Failure(fault.kind, stop.detail, fault.status)
        outcome = self._final_failure(wanted, failure, tries)
        await self._keep_failure(wanted, failure, None)
        self._write(outcome, sink)
        return outcome

    async def _send_until_final(self, wanted: Wanted, tries: Tries, sink: Sink | None) -> Outcome:
        call, route, lane = wanted.call, wanted.route, wanted.route.lane
        loop = asyncio.get_running_loop()
        while True:
            worst = 0.0 if lane.purse.limit is None else route.worst_cost(call) or 0.0
            permit = await lane.admit(wanted.tokens, worst, tries.refused_by)
            try:
                self.events.tell("sent", call.model)
                try:
                    result, response = await self._attempt(route, permit, wanted.request)
                except BaseException:
                    tries.maybe_billed += 1  # cancelled on its way: the provider may finish it all the same
                    raise
                if response is not None and isinstance(result, Reply):
                    tries.attempts += 1
                    outcome = self._success(wanted, result, response, tries)
                    if wanted.answered is not None:
                        await wanted.answered(outcome)
                    route.settle(permit, call, result)
                    await self._store(wanted, response, outcome, sink)
                    self.events.tell("answered", call.model, response.latency_ms, outcome.status)
                    return outcome
                assert isinstance(result, Fault)
                now = loop.time()
                route.latest_fault = result
                lane.failed(permit, result, now)
                if not may_repeat(result, permit, lane, tries) and not is_left_pending(result, lane):
                    failure = Failure(result.kind, result.detail, result.status)
                    outcome = self._final_failure(wanted, failure, tries)
                    if route.is_page and response is not None:
                        outcome = structs.replace(outcome, latency_ms=response.latency_ms)
                    if route.is_retrieval:
                        await self._keep_failure(wanted, failure, response)
                    self._write(outcome, sink)
                    return outcome
            finally:
                lane.release(permit, loop.time())
            self.events.tell("retried", call.model, detail=result.kind)
            await wait_to_repeat(lane, permit, result, tries, self._random)

    async def _attempt(self, route: Route, permit: Permit, request: Request) -> tuple[Reply | Fault, Response | None]:
        """One try, whatever happens to it."""
        endpoint = route.endpoints[permit.lane.number]
        self._out += 1
        try:
            if request.hear is not None:
                request.hear(None)
            response = await endpoint.send(request)
            result = endpoint.decode(response)
            if response.headers and (limits := endpoint.limits(response)):
                route.lane.learn(permit, limits, asyncio.get_running_loop().time())
                if isinstance(result, Fault):
                    result = told_to_wait(result, limits)
            return result, response
        except SendError as error:
            return error.fault, None
        except Exception as error:  # noqa: BLE001
            # The one broad except: an attempt that broke in a way nobody foresaw may have been billed, and
            # must not take the other hundred thousand with it.
            if (own := own_fault_of(error)) is not None:
                if own.is_lasting:
                    self.halt("local_fault", own.fault.detail)
                return own.fault, None
            detail = f"{type(error).__name__}: {error}"
            return Fault("incomplete", detail, "retry", is_billed_maybe=True), None
        finally:
            self._out -= 1

    async def _store(self, wanted: Wanted, response: Response, outcome: Outcome, sink: Sink | None) -> None:
        """Into the cache, then into the journal: the line follows its commit, so that one write serves many."""
        if not wanted.route.is_kept:
            self._write(outcome, sink)
            return
        if response.headers and not wanted.route.is_page:
            # What they tell is of this moment; a page's tell what it is.
            response = structs.replace(response, headers={})
        try:
            # With nothing else out there is nothing to wait for: a narrow lane pays no pause for each answer.
            is_last = self._out == 0
            url = wanted.request.url if wanted.route.is_page else ""
            trial, line = wanted.call.trial, None if sink is None else Line(sink, outcome)
            stored = self.cache.put(wanted.key, wanted.request, trial, response, is_last=is_last, url=url, line=line)
        except _NOT_ENCODED:
            # The answer reaches its caller, and whoever wants it next asks again.
            self._write(outcome, sink)
            return
        try:
            await stored
        except LocalFault as fault:
            # The answer still reaches the journal; nothing more is sent.
            self.halt("local_fault", str(fault))
            self._write(outcome, sink)
            return
        if sink is not None and sink.fault is not None:
            self.halt("local_fault", str(sink.fault))

    async def _keep_failure(self, wanted: Wanted, failure: Failure, response: Response | None) -> None:
        """So that whoever goes on with a run meets the same pages."""
        url = wanted.request.url if wanted.route.is_page else ""
        try:
            await self.cache.put_failure(wanted.key, wanted.request, failure, response, url=url)
        except LocalFault as fault:
            self.halt("local_fault", str(fault))
        except _NOT_ENCODED:
            pass

    def _write(self, outcome: Outcome, sink: Sink | None) -> None:
        if sink is None:
            return
        sink.write(outcome)
        sink.flush()
        if sink.fault is not None:
            self.halt("local_fault", str(sink.fault))

    def _success(self, wanted: Wanted, reply: Reply, response: Response, tries: Tries) -> Outcome:
        return Outcome(
            wanted.call,
            reply=reply,
            key=wanted.key.hex(),
            attempts=tries.sent,
            maybe_billed=tries.maybe_billed,
            cost=cost_of(reply.usage, wanted.route.price),
            latency_ms=response.latency_ms,
        )

    def _final_failure(self, wanted: Wanted, failure: Failure, tries: Tries) -> Outcome:
        self.events.tell("failed", wanted.call.model, detail=failure.kind)
        return Outcome(
            wanted.call,
            failure=failure,
            key=wanted.key.hex(),
            attempts=tries.sent,
            maybe_billed=tries.maybe_billed,
        )
