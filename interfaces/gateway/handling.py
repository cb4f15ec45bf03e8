"""One request from its arrival to its answer: guard, path, dialect, trial, calls, answer.

Owns that order. Every mistake of a client's, and every call that brings no reply, ends as a problem in the client's own
dialect. Opens no socket: server does.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import orjson
from aiohttp import web
from msgspec import Struct, structs

from ...engine.admission import Stop
from ...engine.call import TRIAL_MAX, Call, Outcome
from ...engine.fault import LocalFault
from ...engine.group import LaneStopped
from ...engine.scheduler import Encoded, Wanted
from ...providers.table import PROVIDERS
from ...wiring import ConfigurationError, Engine
from ..dialects import anthropic_messages, gemini_generate, openai_chat, openai_responses
from ..dialects.dialect import Asked, Dialect, Listed, Problem, Refused
from ..dialects.naming import as_said_to, model_named
from ..dialects.problems import problem_of_failure, problem_of_stop
from .answers import DRAIN_S, Told, answer, refusal, stream_head, told_of
from .asking import Asking
from .bodies import BODY_S, body_of, object_of
from .callers import Caller
from .guard import Rules, Seen, judge
from .listing import models_for
from .metrics import Metrics
from .paths import CHAT, GENERATE, MESSAGES, OFFERED, RESPONSES, RUN_NAME, Way, dialect_of, way_of
from .reach import refuse_unreached, unreached
from .settings import GatewaySettings
from .streaming import PING_S, Saying, stream_out
from .trials import Taken, Trials
from .whole import Whole

DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        CHAT: openai_chat.DIALECT,
        RESPONSES: openai_responses.DIALECT,
        MESSAGES: anthropic_messages.DIALECT,
        GENERATE: gemini_generate.DIALECT,
    }
)
FAMILIES: Mapping[str, str] = MappingProxyType(
    {CHAT: "openai", RESPONSES: "openai-responses", MESSAGES: "anthropic", GENERATE: "gemini"}
)
# What nobody was told: the client had hung up.
_GONE = 499
_DRAINING = Problem(503, "interrupted", "the gateway is stopping: ask again when it is back", retry_after_s=DRAIN_S)
# What the engine tells whoever has a run, and what there is to do here.
_RESUMED = ", then resume"
_LATER = "; the gateway goes on by itself when there is room"


class Exchange(Struct):
    """One request while it is answered."""

    request: web.BaseRequest
    id: str
    way: Way
    caller: Caller
    headers: Mapping[str, str]

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.way.dialect]


class Question(Struct):
    """What one request asks for: its calls, a trial each, and the dialect's reading of it. `encoded`: in the words of
    their provider, which are the same for all of them; None: it has none."""

    asked: Asked
    calls: tuple[Call, ...]
    taken: Taken
    encoded: Encoded | None


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
        has_budgets = any(caller.spending is not None for caller in callers.values())
        self.asking = Asking(engine, has_budgets=has_budgets, spent=metrics.spent, used=metrics.used)
        self.unreached = unreached(engine.settings, settings)
        self._engine = engine
        self._settings = settings
        self._callers = callers
        self._trials = trials
        self._metrics = metrics
        metrics.under_way = lambda: self.under_way
        self._id = f"req_{os.urandom(6).hex()}"
        self._count = 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to anything that came whole as a request."""
        began = time.perf_counter()
        self._count += 1
        request_id = f"{self._id}{self._count:08x}"
        headers: dict[str, list[str]] = {}
        for header, value in request.raw_headers:
            headers.setdefault(header.decode("latin-1").lower(), []).append(value.decode("utf-8", "surrogateescape"))
        target = request.raw_path
        transport = request.transport
        local = "" if transport is None else str(transport.get_extra_info("sockname")[0])
        judged = judge(Seen(request.method, target, headers, request.remote or "", local), self.rules)
        # As HTTP reads a header that came twice: so none of its values is taken for the only one.
        told = {name: ", ".join(given) for name, given in headers.items()}
        way = way_of(request.method, target, told)
        name = way.dialect if way is not None else dialect_of(target.partition("?")[0], told)
        if isinstance(judged, Problem):
            self._metrics.refused(judged)
            return refusal(judged, DIALECTS[name], name, request_id)
        if way is None or (way.kind == "ask") != (request.method == "POST"):
            return refusal(_astray(request.method, target, way), DIALECTS[name], name, request_id)
        exchange = Exchange(request, request_id, way, self._callers[judged], told)
        if way.kind != "ask":
            return self._look(exchange)
        if self.is_draining:
            return refusal(_DRAINING, DIALECTS[name], name, request_id)
        self.under_way += 1
        self.is_idle.clear()
        try:
            return await self._ask(exchange, began)
        finally:
            self.under_way -= 1
            if not self.under_way:
                self.is_idle.set()

    # What sends nothing

    def _look(self, exchange: Exchange) -> web.StreamResponse:
        way, told = exchange.way, Told(False)
        if way.kind == "health":
            state = {"status": "stopping" if self.is_draining else "ok", "in_flight": self.under_way}
            return answer(orjson.dumps(state), told, exchange.id, status=503 if self.is_draining else 200)
        if way.kind == "metrics":
            body, media_type = self._metrics.page()
            return answer(body, told, exchange.id, media_type)
        if way.kind == "models":
            listed = models_for(exchange.caller, self._settings, self._engine, self.unreached)
            return answer(exchange.dialect.listing(listed), told, exchange.id)
        try:
            model = self._named(exchange)(way.model)
        except Refused as refused:
            return refusal(refused.problem, exchange.dialect, way.dialect, exchange.id)
        if not exchange.caller.may_ask(model):
            return refusal(_not_allowed(model), exchange.dialect, way.dialect, exchange.id)
        return answer(exchange.dialect.listed(Listed(way.model, model.partition("/")[0])), told, exchange.id)

    # What asks a model

    async def _ask(self, exchange: Exchange, began: float) -> web.StreamResponse:
        way, dialect, told = exchange.way, exchange.dialect, Told(False)
        taken, is_answered, status = None, False, _GONE
        outcomes: tuple[Outcome, ...] = ()
        try:
            await self.asking.resume()
            question = self._question(exchange, await body_of(exchange.request, within_s=self.body_s))
            taken = question.taken
            found = [self.asking.look_up(call, question.encoded) for call in question.calls]
            told = self._told_before(found, taken)
            if question.asked.is_streamed and any(isinstance(one, Wanted) for one in found):
                response, outcomes = await self._stream(exchange, question, found, told)
            else:
                outcomes = await self._outcomes(exchange.caller, found, None)
                told = told_of(outcomes, taken.numbers)
                response = self._whole(exchange, question.asked, outcomes, told)
            is_answered, status = bool(outcomes), response.status
            return response
        except (Refused, ConfigurationError, LocalFault) as error:
            problem = _problem_of(error)
            status = problem.status
            return refusal(problem, dialect, way.dialect, exchange.id, structs.replace(told, is_cached=False))
        finally:
            if taken is not None:
                self._trials.end(taken, is_answered=is_answered)
            # Once the answer is on its way.
            told_later, seconds = self._metrics.answered, time.perf_counter() - began
            asyncio.get_running_loop().call_soon(told_later, way.dialect, exchange.caller, status, outcomes, seconds)

    def _question(self, exchange: Exchange, body: bytes) -> Question:
        way = exchange.way
        given = object_of(body)
        if way.dialect == GENERATE:
            given = {**given, "model": way.model, "stream": way.is_streamed}
        elif way.model:
            given = {**given, "model": way.model}
        asked = exchange.dialect.read(given, self._named(exchange))
        call = asked.call
        if not exchange.caller.may_ask(call.model):
            raise _refused(_not_allowed(call.model))
        self.asking.refuse_one_model_too_many(call.model)
        if call.extra:
            asked = as_said_to(asked, FAMILIES[way.dialect], self._engine.family_of(call.model))
            call = asked.call
        encoded = self.asking.encoded(call)
        taken = self._take(exchange, encoded, asked.count, body)
        calls = tuple(structs.replace(call, trial=number) for number in taken.numbers)
        return Question(asked, calls, taken, encoded)

    def _take(self, exchange: Exchange, encoded: Encoded | None, count: int, body: bytes) -> Taken:
        said = exchange.headers.get("x-millstream-trial")
        if said is not None:
            if not said.isascii() or not said.isdigit() or len(said) > 19 or int(said) + count > TRIAL_MAX:
                raise Refused("X-Millstream-Trial: expected a whole number, 0 or more", "X-Millstream-Trial")
            return Taken(tuple(range(int(said), int(said) + count)))
        scope = f"{exchange.caller.settings.name}\0{_run_of(exchange)}"
        key = b"" if encoded is None else encoded.question.digest()
        return self._trials.take(scope, key, count, body, exchange.headers.get("idempotency-key", ""))

    @staticmethod
    def _told_before(found: Sequence[Outcome | Wanted], taken: Taken) -> Told:
        """What a stream's head can say, before the answer is there."""
        first = found[0]
        if any(isinstance(one, Wanted) for one in found):
            return Told(False, taken.numbers, first.key.hex() if isinstance(first, Wanted) else first.key)
        return Told(True, taken.numbers, first.key if isinstance(first, Outcome) else "")

    async def _outcomes(
        self, caller: Caller, found: Sequence[Outcome | Wanted], hear: Callable[[str | None], None] | None
    ) -> tuple[Outcome, ...]:
        """One for each, all with a reply, or Refused."""
        try:
            if len(found) == 1:
                outcomes = [await self._outcome(caller, found[0], hear)]
            else:
                first, *others = found
                work = [self._outcome(caller, first, hear), *(self._outcome(caller, one, None) for one in others)]
                outcomes = await asyncio.gather(*work)
        except LaneStopped as error:
            raise _refused(self._stopped(error.stop)) from error
        failure = next((outcome.failure for outcome in outcomes if outcome.failure is not None), None)
        if failure is not None:
            raise _refused(problem_of_failure(failure))
        return tuple(outcomes)

    def _stopped(self, stop: Stop) -> Problem:
        problem = problem_of_stop(stop)
        if stop.reason == "local_fault":
            return structs.replace(problem, message=f"{stop.detail.removesuffix(_RESUMED)}{_LATER}")
        return structs.replace(problem, retry_after_s=self.asking.reopens_in_s(stop))

    async def _outcome(
        self, caller: Caller, found: Outcome | Wanted, hear: Callable[[str | None], None] | None
    ) -> Outcome:
        return found if isinstance(found, Outcome) else await self.asking.fetch(caller, found, hear)

    def _whole(self, exchange: Exchange, asked: Asked, outcomes: Sequence[Outcome], told: Told) -> Whole:
        dialect = exchange.dialect
        if asked.is_streamed:
            stream = dialect.stream(asked)
            return answer(stream.begin() + stream.end(outcomes), told, exchange.id, dialect.stream_type)
        body = dialect.whole(asked, outcomes)
        return answer(b"[" + body + b"]" if exchange.way.is_list else body, told, exchange.id)

    async def _stream(
        self, exchange: Exchange, question: Question, found: Sequence[Outcome | Wanted], told: Told
    ) -> tuple[web.StreamResponse, tuple[Outcome, ...]]:
        """The outcomes are empty where the stream ended in a problem."""
        saying, dialect = Saying(), exchange.dialect
        head = stream_head(told, exchange.id, dialect.stream_type)
        work = asyncio.ensure_future(self._outcomes(exchange.caller, found, saying.hear))
        try:
            stream = dialect.stream(question.asked)
            problem = await stream_out(exchange.request, head, stream, saying, work, ping_s=self.ping_s)
        finally:
            work.cancel()
        return head, () if problem is not None else work.result()

    def _named(self, exchange: Exchange) -> Callable[[str], str]:
        family, names = FAMILIES[exchange.way.dialect], self._settings.models

        def named(word: str) -> str:
            model = model_named(word, family, names, self._is_provider)
            refuse_unreached(word, model, self.unreached)
            return model

        return named

    def _is_provider(self, name: str) -> bool:
        settings = self._engine.settings
        return name in PROVIDERS or name in settings.providers or settings.others.provider(name) is not None


def _run_of(exchange: Exchange) -> str:
    """The run's name, from header or path; they must not differ."""
    said = exchange.headers.get("x-millstream-run", "")
    if said and not RUN_NAME.fullmatch(said):
        raise Refused("X-Millstream-Run: expected up to 100 letters, digits, dots and dashes", "X-Millstream-Run")
    if said and exchange.way.run not in ("", said):
        raise Refused(f"the path says run {exchange.way.run}, X-Millstream-Run {said}: send one", "X-Millstream-Run")
    return said or exchange.way.run


def _astray(method: str, target: str, way: Way | None) -> Problem:
    path = target.partition("?")[0][:200]
    if way is None:
        return Problem(404, "not_found", f"there is no {path}; there are {OFFERED}")
    return Problem(405, "invalid", f"{method} {path}: expected {'POST' if way.kind == 'ask' else 'GET'}")


def _not_allowed(model: str) -> Problem:
    return Problem(403, "forbidden", f"this caller may not ask {model}: name it in its models", "model")


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, LocalFault):
        return Problem(500, "local_fault", str(error))
    return Problem(503, "not_configured", str(error), "model")


def _refused(problem: Problem) -> Refused:
    refused = Refused(problem.message)
    refused.problem = problem
    return refused
