"""One request from its arrival to its answer: guard, path, question, calls, answer.

Owns that order. Every mistake of a client's, and every call that brings no reply, ends as a problem in the client's own
dialect. Opens no socket: connection does.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence

import orjson
from msgspec import structs

from ...engine.admission import Stop
from ...engine.call import Outcome
from ...engine.fault import LocalFault
from ...engine.group import LaneStopped
from ...engine.scheduler import Wanted
from ...wiring import ConfigurationError, Engine
from ..dialects.dialect import Dialect, Listed, Problem, Refused
from ..dialects.problems import problem_of_failure, problem_of_stop
from .answers import DRAIN_S, Told, answer, refusal, stream_fields, told_of
from .asking import Asking, Booking
from .bodies import BODY_S, body_of, is_plain
from .callers import Caller
from .guard import Rules, judge
from .listing import models_for
from .metrics import Metrics
from .paths import OFFERED, Way, dialect_of, way_of
from .reading import DIALECTS, Question, Reading, not_allowed, refused
from .request import Back, Request
from .room import LONG_BYTES
from .settings import GatewaySettings
from .streaming import PING_S, Saying, stream_out
from .trials import Trials
from .whole import Whole

# What nobody was told: the client had hung up.
_GONE = 499
_DRAINING = Problem(503, "interrupted", "the gateway is stopping: ask again when it is back", retry_after_s=DRAIN_S)
# What the engine tells whoever has a run, and what there is to do here.
_RESUMED = ", then resume"
_LATER = "; the gateway goes on by itself when there is room"


class Exchange:
    """One request while it is answered. `booking`: its one call, where that has been begun; `said`: what its answer's
    headers say."""

    __slots__ = (
        *("_handling", "began", "booking", "caller", "found", "id", "outcomes", "question", "request", "status"),
        *("said", "told", "way", "whole"),
    )

    def __init__(self, handling: Handling, request: Request, number: str, way: Way, caller: Caller) -> None:
        self._handling = handling
        self.began = time.perf_counter()
        self.request = request
        self.id = number
        self.way = way
        self.caller = caller
        self.question: Question | None = None
        self.found: Sequence[Outcome | Wanted] = ()
        self.booking: Booking | None = None
        self.said = Told(False)
        self.told: Callable[[], None] | None = None
        self.outcomes: Sequence[Outcome] = ()
        self.whole: Whole | None = None
        self.status = _GONE

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.way.dialect]

    @property
    def is_begun(self) -> bool:
        return self.booking is not None

    def finish(self) -> Whole | None:
        return self._handling.finish(self)

    async def answer(self, back: Back) -> Whole | None:
        return await self._handling.answer(self, back)

    def end(self) -> None:
        self._handling.end(self)

    def heard(self) -> None:
        if self.told is not None:
            self.told()


class Handling:
    """`callers` by their names; `rules` are set once the port is known."""

    def __init__(
        self,
        engine: Engine,
        settings: GatewaySettings,
        callers: Mapping[str, Caller],
        trials: Trials,
        metrics: Metrics,
    ) -> None:
        self.rules = Rules(0)
        self.body_s = BODY_S
        self.ping_s = PING_S
        self.is_draining = False
        self.under_way = 0
        self.is_idle = asyncio.Event()
        self.is_idle.set()
        has_budgets = any(caller.purse is not None for caller in callers.values())
        self.asking = Asking(engine, has_budgets=has_budgets, spent=metrics.spent, used=metrics.used)
        self._reading = Reading(engine, settings, self.asking, trials)
        self._engine = engine
        self._settings = settings
        self._callers = callers
        self._trials = trials
        self._metrics = metrics
        self._id = f"req_{os.urandom(6).hex()}"
        self._count = 0
        metrics.under_way = lambda: self.under_way

    def begin(self, request: Request) -> Whole | Exchange:
        """The answer to anything that came as a request, or what brings it."""
        self._count += 1
        number = f"{self._id}{self._count:08x}"
        seen = request.seen
        if request.fault is not None:
            name = dialect_of(seen.target.partition("?")[0], seen.headers)
            return refusal(request.fault, DIALECTS[name], name, number)
        judged = judge(seen, self.rules)
        way = way_of(seen.method, seen.target, seen.headers)
        if isinstance(judged, Problem) or way is None or (way.kind == "ask") != (seen.method == "POST"):
            name = way.dialect if way is not None else dialect_of(seen.target.partition("?")[0], seen.headers)
            if isinstance(judged, Problem):
                self._metrics.refused(judged)
                return refusal(judged, DIALECTS[name], name, number)
            return refusal(_astray(seen.method, seen.target, way), DIALECTS[name], name, number)
        caller = self._callers[judged]
        if way.kind != "ask":
            return self._look(way, caller, number)
        if self.is_draining:
            return refusal(_DRAINING, DIALECTS[way.dialect], way.dialect, number)
        exchange = Exchange(self, request, number, way, caller)
        self.under_way += 1
        self.is_idle.clear()
        if is_plain(request) and not self.asking.is_halted:
            self._begin_asking(exchange, request.body.data)
        return exchange

    # What sends nothing

    def _look(self, way: Way, caller: Caller, number: str) -> Whole:
        dialect, told = DIALECTS[way.dialect], Told(False)
        if way.kind == "health":
            state = {"status": "stopping" if self.is_draining else "ok", "in_flight": self.under_way}
            return answer(orjson.dumps(state), told, number, status=503 if self.is_draining else 200)
        if way.kind == "metrics":
            body, media_type = self._metrics.page()
            return answer(body, told, number, media_type)
        if way.kind == "models":
            listed = models_for(caller, self._settings, self._engine, self._reading.unreached)
            return answer(dialect.listing(listed), told, number)
        try:
            model = self._reading.model(way)
        except Refused as error:
            return refusal(error.problem, dialect, way.dialect, number)
        if not caller.may_ask(model):
            return refusal(not_allowed(model), dialect, way.dialect, number)
        return answer(dialect.listed(Listed(way.model, model.partition("/")[0])), told, number)

    # What asks a model

    def _begin_asking(self, exchange: Exchange, body: bytes) -> None:
        """All that has to wait for nothing: what is stored is answered, and one plain call is on its way."""
        try:
            self._ask(exchange, self._reading.question(exchange.request, exchange.way, exchange.caller, body))
        except (Refused, ConfigurationError, LocalFault) as error:
            self._refuse(exchange, error)

    def _ask(self, exchange: Exchange, question: Question) -> None:
        """Raises Refused, ConfigurationError, LocalFault."""
        exchange.question = question
        numbers, look_up = question.taken.numbers, self.asking.look_up
        found = exchange.found = [look_up(call, question.encoded) for call in question.calls]
        known = [one for one in found if isinstance(one, Outcome)]
        if len(known) == len(found):
            self._tell(exchange, known)
            return
        first = found[0]
        # What a stream's head can say, before the answer is there.
        exchange.said = Told(False, numbers, first.key.hex() if isinstance(first, Wanted) else first.key)
        if len(found) == 1 and isinstance(first, Wanted) and not question.asked.is_streamed:
            exchange.booking = self.asking.begin(exchange.caller, first, exchange.heard)

    def finish(self, exchange: Exchange) -> Whole | None:
        """None: it brought no outcome."""
        booking = exchange.booking
        outcome = None if booking is None else booking.outcome
        if outcome is None:
            return None
        try:
            self._tell(exchange, [outcome])
        except Refused as error:
            self._refuse(exchange, error)
        return exchange.whole

    async def answer(self, exchange: Exchange, back: Back) -> Whole | None:
        """None: it went back as a stream."""
        try:
            if exchange.question is None:
                await self.asking.resume()
                body = await body_of(exchange.request, back, within_s=self.body_s)
                if len(body) > LONG_BYTES:
                    read = self._reading.long_question(exchange.request, exchange.way, exchange.caller, body)
                    del body  # it may be long before this one is answered
                    self._ask(exchange, await read)
                else:
                    self._begin_asking(exchange, body)
            question = exchange.question
            if exchange.whole is None and question is not None:
                if question.asked.is_streamed:
                    await self._stream(exchange, question, back)
                    return None
                self._tell(exchange, await self._outcomes(exchange, None))
        except (Refused, ConfigurationError, LocalFault) as error:
            self._refuse(exchange, error)
        return exchange.whole

    async def close(self) -> None:
        await self.asking.close()
        self._reading.close()

    def end(self, exchange: Exchange) -> None:
        """It is answered, or its client has gone."""
        if exchange.booking is not None:
            exchange.booking.seat.leave()
        if exchange.question is not None:
            self._trials.end(exchange.question.taken, is_answered=bool(exchange.outcomes))
        seconds = time.perf_counter() - exchange.began
        self._metrics.answered(exchange.way.dialect, exchange.caller, exchange.status, exchange.outcomes, seconds)
        # Its seat knows it and it knows its seat: a long body must not wait for the collector.
        exchange.question, exchange.found, exchange.booking, exchange.outcomes = None, (), None, ()
        self.under_way -= 1
        if not self.under_way:
            self.is_idle.set()

    def _tell(self, exchange: Exchange, outcomes: Sequence[Outcome]) -> None:
        """Raises Refused where one has no reply."""
        question, dialect, way = exchange.question, exchange.dialect, exchange.way
        assert question is not None
        _refuse_failed(outcomes)
        asked = question.asked
        told = exchange.said = told_of(outcomes, question.taken.numbers)
        if asked.is_streamed:
            stream = dialect.stream(asked)
            body, media_type = stream.begin() + stream.end(outcomes), dialect.stream_type
            exchange.whole = answer(body, told, exchange.id, media_type)
        else:
            body = dialect.whole(asked, outcomes)
            exchange.whole = answer(b"[" + body + b"]" if way.is_list else body, told, exchange.id)
        exchange.outcomes, exchange.status = outcomes, 200

    def _refuse(self, exchange: Exchange, error: Exception) -> None:
        problem = _problem_of(error)
        told = structs.replace(exchange.said, is_cached=False)
        exchange.status = problem.status
        exchange.whole = refusal(problem, exchange.dialect, exchange.way.dialect, exchange.id, told)

    async def _outcomes(self, exchange: Exchange, hear: Callable[[str | None], None] | None) -> Sequence[Outcome]:
        """One for each of what was found."""
        first, *others = exchange.found
        try:
            if not others:
                return [await self._outcome(exchange, first, hear)]
            work = [self._outcome(exchange, first, hear), *(self._outcome(exchange, one, None) for one in others)]
            return await asyncio.gather(*work)
        except LaneStopped as error:
            raise refused(self._stopped(error.stop)) from error

    async def _outcome(
        self, exchange: Exchange, found: Outcome | Wanted, hear: Callable[[str | None], None] | None
    ) -> Outcome:
        if isinstance(found, Outcome):
            return found
        return await self.asking.fetch(exchange.caller, found, hear, exchange.booking)

    def _stopped(self, stop: Stop) -> Problem:
        problem = problem_of_stop(stop)
        if stop.reason == "local_fault":
            return structs.replace(problem, message=f"{stop.detail.removesuffix(_RESUMED)}{_LATER}")
        return structs.replace(problem, retry_after_s=self.asking.reopens_in_s(stop))

    async def _stream(self, exchange: Exchange, question: Question, back: Back) -> None:
        saying, dialect = Saying(), exchange.dialect
        fields = stream_fields(exchange.said, exchange.id, dialect.stream_type)

        async def outcomes() -> Sequence[Outcome]:
            found = await self._outcomes(exchange, saying.hear)
            _refuse_failed(found)
            return found

        work = asyncio.ensure_future(outcomes())
        try:
            stream = dialect.stream(question.asked)
            exchange.status = 200
            problem = await stream_out(back, fields, exchange.id, stream, saying, work, ping_s=self.ping_s)
        finally:
            work.cancel()
        if problem is None:
            exchange.outcomes = work.result()


def _refuse_failed(outcomes: Sequence[Outcome]) -> None:
    """All of them are needed."""
    for outcome in outcomes:
        if outcome.failure is not None:
            raise refused(problem_of_failure(outcome.failure))


def _astray(method: str, target: str, way: Way | None) -> Problem:
    path = target.partition("?")[0][:200]
    if way is None:
        return Problem(404, "not_found", f"there is no {path}; there are {OFFERED}")
    return Problem(405, "invalid", f"{method} {path}: expected {'POST' if way.kind == 'ask' else 'GET'}")


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, LocalFault):
        return Problem(500, "local_fault", str(error))
    return Problem(503, "not_configured", str(error), "model")
