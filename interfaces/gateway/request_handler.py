"""One request from its arrival to its answer: guard, path, question, calls, answer.

Owns that order. Every mistake of a client's, and every call without a reply, ends as a problem in the client's own
dialect. Opens no socket: http_connection does.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import orjson
from msgspec import Struct, field, structs

from ...engine.call import Outcome
from ...engine.fault import LocalFault, Stop
from ...engine.lanes.lane_queue import LaneStopped
from ...engine.shared_calls import Waiter
from ...providers.llm.serve_dialect import AnswerStream, Dialect, Problem, RequestRefusal, ServedModel, ServedRequest
from ...providers.llm.serve_problems import problem_of_failure, problem_of_stop
from ...providers.llm.serve_replies import model_of
from ...wiring import ConfigurationError
from ..http.bodies import BODY_S, body_of, is_plain
from ..http.body_memory import LONG_BYTES
from ..http.guard import GuardRules, judge
from ..http.http_connection import Connection
from ..http.http_request import HttpRequest
from ..http.http_response import HttpResponse
from ..terminal.output import note
from .callers import Caller
from .dispatch import CallGroup, Dispatch, not_allowed, refusal_of
from .metrics import Metrics
from .paths import CHAT, DIALECTS, RequestPath, read_path
from .request_log import RequestLog
from .request_parser import RequestParser
from .response_headers import DRAIN_S, EVENTS, AnswerFacts, answer, facts_of, refusal, stream_fields
from .status_page import STATUS_PAGE_TYPE
from .streaming import PING_S, StreamedText, stream_out

# A status that was never sent: the client had left.
_GONE = 499
_DRAINING = Problem(503, "interrupted", "the gateway is stopping: ask again when it is back", retry_after_s=DRAIN_S)
# The engine's advice to a person with a run, and the advice here in its place.
_RESUMED = ", then resume"
_LATER = "; the gateway goes on by itself when there is room"


class GatewayState(Struct, eq=False):
    """What all requests to one gateway share. `callers` are by name; `rules` are set once the port is known; `name`
    begins the id of every answer. A body may take `body_s` seconds to arrive, and a silent stream gets a comment
    every `ping_s` seconds. `under_way`: requests that wait for their answer (`is_idle`: there are none); `count`:
    all requests so far; `is_draining`: no new request begins. `status_page` returns the page for a browser; `log` notes
    each request."""

    dispatch: Dispatch
    parser: RequestParser
    metrics: Metrics
    callers: Mapping[str, Caller]
    models_for: Callable[[Caller], list[ServedModel]]
    rules: GuardRules
    is_idle: asyncio.Event
    name: str
    status_page: Callable[[], bytes]
    log: RequestLog
    body_s: float = BODY_S
    ping_s: float = PING_S
    is_draining: bool = False
    under_way: int = 0
    count: int = 0

    async def drained(self) -> None:
        """Begins no new request to a model, and waits until all that are under way are answered."""
        self.is_draining = True
        if self.under_way:
            await self.is_idle.wait()


class RequestHandler(Struct, eq=False):
    """One request to a model, from its arrival to its end. `number` is its id in answers, `way` the meaning of its
    path. `told` is called at the end of one without a task."""

    _state: GatewayState
    _request: HttpRequest
    _id: str
    _way: RequestPath
    _caller: Caller
    told: Callable[[], None] | None = None
    whole: HttpResponse | None = None
    _began: float = field(default_factory=time.perf_counter)
    _group: CallGroup | None = None
    _saying: StreamedText | None = None
    _facts: AnswerFacts = AnswerFacts(False)
    _outcomes: Sequence[Outcome] = ()
    _status: int = _GONE
    _problem: str = ""

    def __post_init__(self) -> None:
        self._state.under_way += 1
        self._state.is_idle.clear()

    @property
    def is_begun(self) -> bool:
        return self._group is not None and self._saying is None and len(self._group.parts) == 1

    @property
    def _dialect(self) -> Dialect:
        return DIALECTS[self._way.dialect]

    def begin(self, body: bytes) -> None:
        """Answers a request whose calls are all stored, else begins its calls; never waits."""
        state = self._state
        try:
            question = state.parser.question(self._request, self._way, body)
            self._begin(state.dispatch.prepare(self._caller, question))
        except (RequestRefusal, ConfigurationError, LocalFault) as error:
            self._refuse(error)

    async def _begin_long(self, body: bytes) -> None:
        """Does what `begin` does, for a long body, which is read and encoded in a thread, one body at a time."""
        state = self._state
        async with state.parser.in_thread() as run:
            question = await run(state.parser.question, self._request, self._way, body)
            group = await state.dispatch.prepare_long(self._caller, question, run)
        self._begin(group)

    def _begin(self, group: CallGroup) -> None:
        """Begins the calls that are not stored; answers if all are known. Raises RequestRefusal, LocalFault."""
        self._group, dispatch = group, self._state.dispatch
        outcomes = group.known
        if outcomes is None:
            # What a stream's head can contain before the answer is known.
            self._facts = AnswerFacts(False, group.taken.numbers, group.first_key)
            if group.asked.is_streamed:
                self._saying = StreamedText()
            hear = None if self._saying is None else self._saying.hear
            dispatch.begin(self._caller, group, hear, self._heard)
            outcomes = group.known
        if outcomes is not None:
            self._tell(outcomes)

    def _heard(self, _: Waiter) -> None:
        if self.told is not None:
            self.told()

    def finish(self) -> HttpResponse | None:
        """Returns the answer, once the call has ended; None: the call has no outcome."""
        group = self._group
        outcomes = None if group is None else group.known
        if outcomes is None:
            return None
        try:
            self._tell(outcomes)
        except RequestRefusal as error:
            self._refuse(error)
        return self.whole

    async def answer(self, back: Connection) -> HttpResponse | None:
        """Waits for the answer and returns it; None: it was sent as a stream."""
        try:
            if self._group is None:
                await self._state.dispatch.resume()
                body = await body_of(self._request, back, within_s=self._state.body_s)
                if len(body) > LONG_BYTES:
                    begun = self._begin_long(body)
                    del body  # it may take long until this request is answered
                    await begun
                else:
                    self.begin(body)
            group = self._group
            if self.whole is None and group is not None:
                if self._saying is not None:
                    await self._stream(group, self._saying, back)
                    return None
                self._tell(await self._wait(group))
        except (RequestRefusal, ConfigurationError, LocalFault) as error:
            self._refuse(error)
        return self.whole

    async def _wait(self, group: CallGroup) -> Sequence[Outcome]:
        try:
            return await group.outcomes()
        except LaneStopped as error:
            raise refusal_of(self._stopped(error.stop)) from error

    def _stopped(self, stop: Stop) -> Problem:
        problem = problem_of_stop(stop)
        if stop.reason == "local_fault":
            return structs.replace(problem, message=f"{stop.detail.removesuffix(_RESUMED)}{_LATER}")
        return structs.replace(problem, retry_after_s=self._state.dispatch.reopens_in_s(stop))

    async def _stream(self, group: CallGroup, saying: StreamedText, back: Connection) -> None:
        dialect = self._dialect
        fields = stream_fields(self._facts, self._id)

        async def outcomes() -> Sequence[Outcome]:
            found = await self._wait(group)
            _check_replies(found)
            return found

        work = asyncio.ensure_future(outcomes())
        try:
            stream_of = partial(_stream_of, dialect, group.asked)
            self._status = 200
            problem = await stream_out(back, fields, self._id, stream_of, saying, work, ping_s=self._state.ping_s)
        finally:
            work.cancel()
        if problem is None:
            self._outcomes = work.result()
        else:
            self._problem = problem.kind

    def _tell(self, outcomes: Sequence[Outcome]) -> None:
        """Sets `whole` to the answer with these outcomes. Raises RequestRefusal if one has no reply."""
        group, dialect = self._group, self._dialect
        assert group is not None
        _check_replies(outcomes)
        served = group.asked
        facts = self._facts = facts_of(outcomes, group.taken.numbers)
        if served.is_streamed:
            stream = _stream_of(dialect, served, outcomes)
            self.whole = answer(stream.begin() + stream.end(outcomes), facts, self._id, EVENTS)
        else:
            body = dialect.whole(served, outcomes)
            self.whole = answer(b"[" + body + b"]" if self._way.is_list else body, facts, self._id)
        self._outcomes, self._status = outcomes, 200

    def _refuse(self, error: Exception) -> None:
        problem = _problem_of(error)
        facts = structs.replace(self._facts, is_cached=False)
        self._status, self._problem = problem.status, problem.kind
        self.whole = refusal(problem, self._dialect, self._way.dialect, self._id, facts)

    def end(self) -> None:
        """Ends the request: it was answered, or its client has left."""
        state, group = self._state, self._group
        if group is not None:
            state.dispatch.end(group, is_answered=bool(self._outcomes))
        seconds = time.perf_counter() - self._began
        state.metrics.answered(self._way.dialect, self._caller, self._status, self._outcomes, seconds)
        model = self._way.model if group is None else group.asked.model
        state.log.ended(model, self._status, seconds, self._outcomes, self._problem)
        # A reference cycle with its waiters: a long body must not stay until the garbage collector runs.
        self._group, self._outcomes = None, ()
        state.under_way -= 1
        if not state.under_way:
            state.is_idle.set()


def _stream_of(dialect: Dialect, served: ServedRequest, outcomes: Sequence[Outcome]) -> AnswerStream:
    """Returns the stream of an answer, in whose events the model is the one that answered, where that is known."""
    return dialect.stream(structs.replace(served, model=model_of(served, outcomes)) if outcomes else served)


def begin_request(state: GatewayState, request: HttpRequest) -> HttpResponse | RequestHandler:
    """Returns the answer to a request, or the handler that will make it."""
    state.count += 1
    number = f"{state.name}{state.count:08x}"
    seen = request.seen
    way = read_path(seen.method, seen.target, seen.headers)
    judged = request.fault or judge(seen, state.rules)
    if isinstance(judged, Problem):
        if request.fault is None:
            state.metrics.refused(judged)
        return _refused(state, request, way, judged, number)
    caller = state.callers[judged]
    if way.problem is not None:
        return _refused(state, request, way, way.problem, number)
    if way.kind != "ask":
        return _look(state, way, caller, number)
    if state.is_draining:
        return _refused(state, request, way, _DRAINING, number)
    handler = RequestHandler(state, request, number, way, caller)
    if is_plain(request) and not state.dispatch.is_halted:
        handler.begin(request.body.data)
    return handler


def _refused(
    state: GatewayState, request: HttpRequest, way: RequestPath, problem: Problem, number: str
) -> HttpResponse:
    state.log.refused(request.seen.method, request.seen.target.partition("?")[0], problem)
    return refusal(problem, DIALECTS[way.dialect], way.dialect, number)


def failed_request(error: BaseException) -> HttpResponse:
    """Returns the answer to a request at which the gateway itself failed; reports the defect in a line on stderr."""
    note(f"millstream serve: a defect, please report it: {type(error).__name__}: {error}")
    problem = Problem(500, "local_fault", "the gateway failed at this request")
    return structs.replace(refusal(problem, DIALECTS[CHAT], CHAT, ""), is_last=True)


def _look(state: GatewayState, way: RequestPath, caller: Caller, number: str) -> HttpResponse:
    """Returns the answer to a request that needs no call: health, metrics, models."""
    dialect, facts = DIALECTS[way.dialect], AnswerFacts(False)
    if way.kind == "health":
        health = {"status": "stopping" if state.is_draining else "ok", "in_flight": state.under_way}
        return answer(orjson.dumps(health), facts, number, status=503 if state.is_draining else 200)
    if way.kind == "metrics":
        body, media_type = state.metrics.page()
        return answer(body, facts, number, media_type)
    if way.kind == "status":
        return answer(state.status_page(), facts, number, STATUS_PAGE_TYPE)
    if way.kind == "models":
        return answer(dialect.listing(state.models_for(caller)), facts, number)
    try:
        model = state.parser.model(way)
    except RequestRefusal as error:
        return refusal(error.problem, dialect, way.dialect, number)
    if not caller.may_ask(model):
        return refusal(not_allowed(model), dialect, way.dialect, number)
    return answer(dialect.listed(ServedModel(way.model, model.partition("/")[0])), facts, number)


def _check_replies(outcomes: Sequence[Outcome]) -> None:
    """Raises RequestRefusal if one of the outcomes is a failure, since all are needed."""
    for outcome in outcomes:
        if outcome.failure is not None:
            raise refusal_of(problem_of_failure(outcome.failure))


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, RequestRefusal):
        return error.problem
    if isinstance(error, LocalFault):
        return Problem(500, "local_fault", str(error))
    return Problem(503, "not_configured", str(error), "model")
