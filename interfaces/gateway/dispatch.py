"""The calls of one request, from the question to those that wait for their outcomes.

Owns the checks before the engine is asked: the caller's models, how many models there may be, calls that no budget can
bear. Numbers the trials. Knows no HTTP and no dialect.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, structs

from ...engine.attempts.money import over_budget, why_unbounded
from ...engine.call import Call, Outcome
from ...engine.call_lookup import PendingCall
from ...engine.endpoint import EncodeError, Hear
from ...engine.fault import Stop
from ...engine.key import question_of
from ...engine.scheduler import CallEncoding, Route
from ...engine.shared_calls import Waiter
from ...providers.llm.serve_dialect import Problem, RequestRefusal, ServedRequest
from ...providers.llm.serve_naming import request_for_family
from ...wiring.engine import Engine
from .callers import Caller
from .request_parser import Question
from .trials import RequestTrials, TrialCounter

# Every model has a lane with files that stay open, and any client can make up names. Models that are declared or have a
# price are not counted.
MODELS_MAX = 256
_TRIED_BYTES = 4 << 20


class CallGroup(Struct, eq=False):
    """The calls of one request, one for each trial number that it has `taken`: `parts` are stored outcomes, calls to
    send, or waiters."""

    asked: ServedRequest
    taken: RequestTrials
    parts: list[Outcome | PendingCall | Waiter]

    @property
    def known(self) -> list[Outcome] | None:
        """All outcomes; None while one is missing."""
        results = [part.known if isinstance(part, Waiter) else part for part in self.parts]
        outcomes = [one for one in results if isinstance(one, Outcome)]
        return outcomes if len(outcomes) == len(results) else None

    @property
    def first_key(self) -> str:
        first = self.parts[0]
        if isinstance(first, Outcome):
            return first.key
        return (first.pending if isinstance(first, Waiter) else first).key.hex()

    async def outcomes(self) -> list[Outcome]:
        """Waits for all outcomes and returns them. Raises LaneStopped, RequestRefusal, LocalFault."""
        waiting = [part.outcome() for part in self.parts if isinstance(part, Waiter)]
        if len(waiting) == len(self.parts) == 1:
            return [await waiting[0]]
        rest = iter(await asyncio.gather(*waiting))
        return [part if isinstance(part, Outcome) else next(rest) for part in self.parts]

    def leave(self) -> None:
        """Stops waiting for these calls; one that nobody else waits for is cancelled."""
        for part in self.parts:
            if isinstance(part, Waiter):
                part.leave()


class Dispatch:
    """The way of all callers' calls into the one engine."""

    def __init__(self, engine: Engine, trials: TrialCounter) -> None:
        self._scheduler = engine.scheduler
        self._settings = settings = engine.settings
        self._budget = engine.budget
        self._family_of = engine.family_of
        self._trials = trials
        self._declared = {lane.model for lane in settings.lanes} | settings.price_table().models.keys()
        self._next_look = 0.0

    def __repr__(self) -> str:
        return f"<Dispatch {self._scheduler}>"

    def prepare(self, caller: Caller, question: Question) -> CallGroup:
        """Returns a question's calls, stored and to be sent. Raises RequestRefusal, ConfigurationError."""
        served = self._checked(caller, question)
        return self._looked_up(caller, question, served, _encoded(self._route_of(served), served.call))

    async def prepare_long(
        self, caller: Caller, question: Question, run: Callable[..., asyncio.Future[CallEncoding | None]]
    ) -> CallGroup:
        """Returns the same as `prepare`, for a long body; `run` runs its encoding in a thread."""
        served = self._checked(caller, question)
        encoded = await run(_encoded, self._route_of(served), served.call)
        return self._looked_up(caller, question, served, encoded)

    def begin(self, caller: Caller, group: CallGroup, hear: Hear | None, on_end: Callable[[Waiter], None]) -> None:
        """Sends the calls that have to be sent, or joins those under way. `hear` listens to the first one; `on_end` is
        called whenever a call has ended, with an outcome or an error. Raises RequestRefusal, LocalFault."""
        for number, part in enumerate(group.parts):
            if not isinstance(part, PendingCall):
                continue
            self._check_budgets(caller, part)
            part.payer = caller
            waiter = Waiter(part, hear=None if number else hear, on_end=on_end, is_early=True)
            group.parts[number] = waiter
            self._scheduler.begin(waiter)

    def end(self, group: CallGroup, *, is_answered: bool) -> None:
        """Ends a request's calls. Its trial numbers are free again if it was not answered."""
        group.leave()
        self._trials.end(group.taken, is_answered=is_answered)

    def _route_of(self, served: ServedRequest) -> Route:
        return self._scheduler.routes.of(served.call.lane)

    def _checked(self, caller: Caller, question: Question) -> ServedRequest:
        served = question.asked
        model = served.call.model
        if not caller.may_ask(model):
            raise refusal_of(not_allowed(model))
        self._check_model_count(model)
        return request_for_family(served, question.family, self._family_of(model)) if served.call.extra else served

    def _looked_up(
        self, caller: Caller, question: Question, served: ServedRequest, encoded: CallEncoding | None
    ) -> CallGroup:
        call, look_up = served.call, self._scheduler.look_up
        if question.trial is not None:
            taken = RequestTrials(tuple(range(question.trial, question.trial + served.count)))
        else:
            scope = f"{caller.settings.name}\0{question.run}"
            key = b"" if encoded is None else encoded.question.digest()
            taken = self._trials.take(scope, key, served.count, question.digest, question.idempotency)
        numbered = [structs.replace(call, trial=number) if number else call for number in taken.numbers]
        return CallGroup(served, taken, [look_up(one, encoded) for one in numbered])

    def _check_model_count(self, model: str) -> None:
        """Raises RequestRefusal if too many undeclared models were asked. Comes first: a cache key needs the model's
        lane."""
        routes = self._scheduler.routes.lasting
        if model in routes or model in self._declared or len(routes.keys() - self._declared) < MODELS_MAX:
            return
        problem = f"{MODELS_MAX} models that nobody declared have been asked, and no more can be"
        raise RequestRefusal(
            f"{problem}: name {model} under [lanes], and start the gateway again", "model", "unknown_model", 503
        )

    def _check_budgets(self, caller: Caller, pending: PendingCall) -> None:
        """Raises RequestRefusal for a call that the engine's or the caller's budget can never bear; in the queue it
        would stop its whole lane."""
        budget = self._budget
        if budget.limit is not None:
            most = _worst_cost(pending)
            if budget.spent + most * budget.overrun > budget.limit:
                budget.is_exhausted = True
                raise RequestRefusal(
                    f"{over_budget('the next call', most, budget)}, or cut max_tokens", None, "over_budget", 429
                )
        if caller.budget is not None:
            most = _worst_cost(pending)
            is_over = caller.budget.charged + most * caller.budget.overrun > (caller.budget.limit or 0.0)
            # An answer that is not stored yet costs nothing either.
            if is_over and pending.key not in self._scheduler.calls:
                raise caller.over_budget(most)

    # Lanes and disks in trouble

    def reopens_in_s(self, stop: Stop) -> int | None:
        """Returns the whole seconds, rounded up, until a stopped model is tried again; None: it won't be."""
        left = self._scheduler.routes.reopens_in_s(stop.lane)
        return None if left is None else math.ceil(left)

    @property
    def is_halted(self) -> bool:
        """Whether sending has stopped for all models."""
        return self._scheduler.routes.halted is not None

    async def resume(self) -> None:
        """Ends a halt that a full disk caused, if the disk has room again; looks only now and then."""
        halted = self._scheduler.routes.halted
        if halted is None or halted[0] != "local_fault":
            return
        now = asyncio.get_running_loop().time()
        if now < self._next_look:
            return
        self._next_look = now + (self._settings.policy.reopened_s or 0.0)
        if await asyncio.to_thread(_has_room, self._settings.cache_folder()):
            self._scheduler.routes.resume()


def _encoded(route: Route, call: Call) -> CallEncoding | None:
    """Returns the encoding that all trials of a call share, None for a call that can't be sent."""
    try:
        request = route.endpoint.encode(call)
    except EncodeError:
        return None
    return CallEncoding(route, request, question_of(request))


def _worst_cost(pending: PendingCall) -> float:
    """Returns the most dollars that an attempt can cost. Raises RequestRefusal if that is not known."""
    if pending.route.price is None:
        problem = f"model {pending.call.model!r} has no price, so max_cost can't be kept: give it one under [prices]"
        raise RequestRefusal(problem, "model")
    most = pending.worst_cost
    if most is None:
        raise RequestRefusal(why_unbounded(pending.call, pending.route.price, "max_cost"), "max_tokens")
    return most


def not_allowed(model: str) -> Problem:
    return Problem(403, "forbidden", f"this caller may not ask {model}: name it in its models", "model")


def refusal_of(problem: Problem) -> RequestRefusal:
    made = RequestRefusal(problem.message)
    made.problem = problem
    return made


def _has_room(folder: Path) -> bool:
    """Whether the folder's disk has room. It writes a file of 4 MiB, since free space is reported of full disks too."""
    file = folder / f"room.{os.getpid()}"
    try:
        with file.open("wb") as tried:
            tried.write(bytes(_TRIED_BYTES))
            tried.flush()
            os.fsync(tried.fileno())
    except OSError:
        return False
    else:
        return True
    finally:
        with contextlib.suppress(OSError):
            file.unlink()
