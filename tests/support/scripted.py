"""A provider that does what a script says, in the loop's own time: no socket, no HTTP."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import WEB, Call, Outcome, Reply, Usage
from millstream.engine.claims import Claims
from millstream.engine.endpoint import AwaitingEndpoint, Cleared, Fault, Request, Response, SendError
from millstream.engine.estimate import TokenEstimate
from millstream.engine.events import Events
from millstream.engine.fault import LocalFault
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Limit, declared_quota
from millstream.engine.prices import Price
from millstream.engine.routes import Routes
from millstream.engine.scheduler import Route, Scheduler
from millstream.engine.store.cache import Cache, Mode
from millstream.engine.store.cache_policy import Ages, CachePolicy
from millstream.engine.store.snapshot import Snapshot
from millstream.providers.retrieval import is_page

Script = Callable[[str, float], Fault | str | None]
"""Given a prompt and the time of arrival: the fault it gets, or the answer; None: the prompt itself as the answer."""


class ScriptedProvider(AwaitingEndpoint):
    """Answers after `latency_s`, unless the script has a fault for it; each connection takes `connecting_s`. Keeps when
    each prompt arrived. Of several messages the prompt is all that they say."""

    base_url = "script://"

    def __init__(
        self,
        script: Script | None = None,
        latency_s: float | Callable[[], float] = 0.1,
        connecting_s: float | Callable[[], float] = 0.0,
    ) -> None:
        self.script = script
        self.connecting = connecting_s if callable(connecting_s) else lambda: connecting_s
        self.latency = latency_s if callable(latency_s) else lambda: latency_s
        self.arrivals: list[tuple[float, str]] = []
        self.faults: list[tuple[str, Fault]] = []
        self.in_flight = 0
        self.peak = 0

    def encode(self, call: Call) -> Request:
        prompt = "\n".join(message.words for message in call.messages())
        body = prompt.encode()
        return Request(prompt if call.model == WEB else "script://", "script://", body, body, body, b"{}")

    async def send(self, request: Request, cleared: Cleared) -> Response:
        loop = asyncio.get_running_loop()
        prompt = request.body.decode()
        if (connecting_s := self.connecting()) > 0:
            await asyncio.sleep(connecting_s)
        await cleared()
        self.arrivals.append((loop.time(), prompt))
        said = self.script(prompt, loop.time()) if self.script is not None else None
        fault = said if isinstance(said, Fault) else None
        if fault is not None:
            self.faults.append((prompt, fault))
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.latency())
        finally:
            self.in_flight -= 1
        if fault is not None:
            raise SendError(fault)
        return Response(200, said.encode() if isinstance(said, str) else b"answer to " + request.body)

    def decode(self, response: Response) -> Reply | Fault:
        text = response.body.decode()
        return Reply(text, Usage(len(text) // 4, 1), "stop")

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return ()

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for _, prompt in self.arrivals:
            found[prompt] = found.get(prompt, 0) + 1
        return found


class ListSink:
    """Keeps what it was given, and what it was asked to make safe."""

    def __init__(self, probe: Callable[[Outcome], None] | None = None) -> None:
        self.taken: list[Outcome] = []
        self.safe: list[Outcome] = []
        self.fault: LocalFault | None = None
        self.probe = probe

    def write(self, outcome: Outcome) -> None:
        if self.probe is not None:
            self.probe(outcome)
        self.taken.append(outcome)

    def flush(self) -> None:
        self.safe = list(self.taken)


PAGES = RetryPolicy(
    attempts_max=2, wait_min_s=0.25, wait_max_s=1.0, patience_s=30.0, own_patience_s=60.0, rejections_max=1 << 30
)


class Bench:
    """A scheduler over scripted providers: one for each model string, or one for each of its keys; the one for `web`
    serves every host."""

    def __init__(self, scheduler: Scheduler, budget: CostBudget, events: Events) -> None:
        self.scheduler = scheduler
        self.budget = budget
        self.events = events

    def lane(self, model: str) -> LaneQueue:
        return self.scheduler.routes.of(model).lane


@asynccontextmanager
async def engine_over(
    providers: Mapping[str, ScriptedProvider | Sequence[ScriptedProvider]],
    folder: Path,
    *lanes: Lane,
    mode: Mode = "record",
    policy: RetryPolicy | None = None,
    max_cost: float | None = None,
    price: Price | None = None,
    seed: int = 1,
    scope: bytes = b"",
    ages: Ages | None = None,
    snapshot: Snapshot | None = None,
) -> AsyncIterator[Bench]:
    events = Events()
    budget = CostBudget(max_cost)
    policy = policy or RetryPolicy()
    declared = {lane.model: lane for lane in lanes}

    def host(name: str) -> Route:
        lane = declared.get(name, Lane(name, concurrency=2, spacing_s=1.0))
        served, own = providers.get(WEB) or providers[name], CostBudget()
        assert isinstance(served, ScriptedProvider)
        key = KeyGate(lane, ledger=Ledger(declared_quota(lane)), budget=own, policy=PAGES, events=Events())
        group = LaneQueue([key])
        return Route((served,), group, None, TokenEstimate(), policy=PAGES, is_retrieval=True, is_page=True)

    def route(model: str) -> Route:
        if is_page(model):
            return host(model)
        lane = declared.get(model, Lane(model, concurrency=8))
        served = providers[model]
        endpoints = (served,) if isinstance(served, ScriptedProvider) else tuple(served)
        keys = [
            KeyGate(
                lane,
                ledger=Ledger(declared_quota(lane)),
                budget=budget,
                policy=policy,
                events=events,
                key=f"KEY_{number}" if len(endpoints) > 1 else "",
            )
            for number, _ in enumerate(endpoints, 1)
        ]
        group = LaneQueue(keys)
        return Route(endpoints, group, price, TokenEstimate(), is_retrieval=model.startswith("search/"))

    cache = Cache(folder, scope=scope)
    recall = CachePolicy(cache, mode, ages, snapshot=snapshot)
    chance = random.Random(seed)
    claims = Claims(folder, is_shared=not scope)
    scheduler = Scheduler(
        routes=Routes(route, policy.reopened_s),
        cache=cache,
        claims=claims,
        mode=mode,
        policy=policy,
        events=events,
        random=chance,
        recall=recall,
    )
    try:
        yield Bench(scheduler, budget, events)
    finally:
        cache.close()
        claims.close()


def prompts(count: int, model: str = "script/m") -> Iterator[Call]:
    return (Call(model, f"prompt {number}") for number in range(count))


def worst_minute(times: list[tuple[float, int]], window_s: float = 60.0) -> int:
    """The largest sum over any sliding window that is closed at its beginning and open at its end."""
    worst = total = begin = 0
    for at, amount in times:
        total += amount
        while times[begin][0] <= at - window_s:
            total -= times[begin][1]
            begin += 1
        worst = max(worst, total)
    return worst
