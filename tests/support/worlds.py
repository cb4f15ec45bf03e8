"""Worlds drawn from a seed: models with quotas, prices and weather, asked by one or two engines in virtual time.

What must hold is checked at every call that arrives and once more at the end. A world with a bug in it is a subclass.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted import Bench, ListSink, ScriptedProvider, engine_over

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome, Reply, Usage
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.prices import Price
from millstream.engine.run import run_calls

HOUR = 3600.0
SERVER_ERROR = Fault("server_error", "500", "retry", 500)
REJECTED = Fault("rejected", "400 bad request", "never", 400)
STOPPING = (
    Fault("rejected", "401", "confirm", 401),
    Fault("redirect", "302", "stop", 302),
    Fault("rate_limited", "insufficient_quota", "stop", 429),
)
# Nine tenths of the rate are back so long after the last fault; then no call waits longer for one that is sent.
RECOVERED_S, IDLE_S = 300.0, 130.0
SAID = "answer to "


class Weather:
    """What a model answers when: faults of some kinds with some share, in spells until `ends_at`."""

    def __init__(self, chance: random.Random, *, hours: bool, can_stop: bool) -> None:
        kinds = [
            SERVER_ERROR,
            REJECTED,
            Fault("connect", "refused", "retry", quota="refund"),
            Fault("disconnected", "keepalive closed", "retry", quota="refund", is_immediate=True),
            Fault("incomplete", "cut", "retry", is_billed_maybe=True),
            Fault("empty", "no choices", "retry", 200, quota="settle", is_repeated_once=True, usage_tokens=3),
            Fault("rate_limited", "429", "throttle", 429, cuts_rate=True),
            Fault("rate_limited", "429", "throttle", 429, retry_after_s=chance.uniform(0, 30)),
            Fault("connect", "out of files", "wait", quota="refund"),
            *(STOPPING if can_stop else ()),
        ]
        self._kinds = chance.sample(kinds, chance.randint(1, len(kinds)))
        self._chance = chance
        self._spells: list[tuple[float, float, float]] = []
        at = 0.0
        for _ in range(chance.randint(3, 12) if hours else 1):
            ends_at = at + chance.choice([5.0, 100.0, 400.0])
            self._spells.append((at, ends_at, chance.choice([0.05, 0.3, 0.6, 0.95, 1.0])))
            at = ends_at + chance.uniform(0.0, HOUR / 2)
        self.ends_at = self._spells[-1][1]

    def __call__(self, prompt: str, at: float) -> Fault | None:
        share = next((share for begin, end, share in self._spells if begin <= at < end), 0.0)
        return self._chance.choice(self._kinds) if self._chance.random() < share else None


class WatchedModel(ScriptedProvider):
    """A model that is sent no more than its lane allows, and never rests while its calls wait."""

    def __init__(self, world: World, lane: Lane, weather: Weather, chance: random.Random) -> None:
        super().__init__(weather, lambda: chance.uniform(0.01, 3))
        self.lane = lane
        self.weather = weather
        self.billed = 0.0
        self._waiting, self._wait_since = 0, 0.0
        self._world = world
        self._minute = deque[tuple[float, int]]()

    async def send(self, request: Request, cleared: Cleared) -> Response:
        """Notes what is wrong with a call that should not have been sent now: the engine survives what is raised."""
        now, count = asyncio.get_running_loop().time(), len(self.faults)
        self._check_rest(now)
        waiting = asyncio.ensure_future(super().send(request, cleared))
        await asyncio.sleep(0)
        fault = self.faults[-1][1] if len(self.faults) > count else None
        self._expect(
            self.in_flight <= self.lane.in_flight_most * self._world.engines, f"{self.in_flight} calls in flight"
        )
        tokens = _tokens(request.body.decode())
        if fault is None or fault.quota != "refund":
            self._count(now, fault.usage_tokens or 0 if fault is not None and fault.quota == "settle" else tokens + 1)
        if self._world.price is not None and (fault is None or fault.is_billed_maybe or fault.quota == "settle"):
            self.billed += self._world.price.of(tokens, 1)
        try:
            return await waiting
        finally:
            waiting.cancel()

    def decode(self, response: Response) -> Reply:
        text = response.body.decode()
        return Reply(text, Usage(_tokens(text.removeprefix(SAID)), 1), "stop")

    def _count(self, now: float, tokens: int) -> None:
        self._minute.append((now, tokens))
        while self._minute[0][0] <= now - 60.0:
            self._minute.popleft()
        rpm, tpm = self.lane.rpm, self.lane.tpm
        self._expect(rpm is None or len(self._minute) <= rpm, f"{len(self._minute)} requests in a minute of {rpm}")
        total = sum(tokens for _, tokens in self._minute)
        self._expect(tpm is None or total <= tpm, f"{total} tokens in a minute of {tpm}")

    def take(self) -> None:
        """Notes that an engine has taken one more call from its input, which may be behind calls of other models."""
        if not self._waiting:
            self._wait_since = asyncio.get_running_loop().time()
        self._waiting += 1

    def end(self) -> None:
        """Notes that a call which an engine had taken has ended."""
        self._waiting -= 1

    def _check_rest(self, now: float) -> None:
        """Since the weather is fair, somebody has always been sending while calls waited."""
        if self.arrivals and now > self.weather.ends_at + RECOVERED_S:
            since = max(self.arrivals[-1][0], self.weather.ends_at + RECOVERED_S, self._wait_since)
            self._expect(now - since <= IDLE_S, f"nothing was sent from {since:.0f} s to {now:.0f} s")

    def _expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self._world.wrong.append(f"{self.lane.model}: {otherwise}")


class World:
    """Some hours, or minutes, of one or two engines on one cache. `hours` None: drawn too."""

    def __init__(self, seed: int, folder: Path, *, hours: bool | None = None) -> None:
        self.chance = chance = random.Random(seed)
        self.seed, self.folder = seed, folder
        self.hours = chance.random() < 0.05 if hours is None else hours
        # Engines of one process keep a quota apart, so two share only the cache.
        self.engines = 2 if chance.random() < 0.2 else 1
        self.price = Price(1e5, 1e5, output_max=1) if chance.random() < 0.3 else None
        self.max_cost = chance.choice([2.0, 100.0]) if self.price is not None and self.engines == 1 else None
        can_stop = chance.random() < 0.3
        self.models = {
            lane.model: WatchedModel(self, lane, Weather(chance, hours=self.hours, can_stop=can_stop), chance)
            for lane in self._lanes()
        }
        prompts, count = (4_000, chance.choice([600, 2_000])) if self.hours else (50, chance.choice([0, 1, 10, 80]))
        names = list(self.models)
        self.calls = [
            # The same bytes to two models would be one call.
            Call(model := chance.choice(names), f"{chance.randrange(prompts):05} of {model}", max_tokens=1, tag=number)
            for number in range(count)
        ]
        self.stopped: set[str] = set()
        self.wrong: list[str] = []
        self.lasted_s = 0.0

    def _lanes(self) -> list[Lane]:
        requests: tuple[int | None, ...] = (6, 20) if self.hours else (None, None, 60, 600)
        tokens: tuple[int | None, ...] = (None, 100) if self.hours else (None, 300, 20_000)
        if self.engines == 2:
            requests = tokens = (None,)
        return [
            Lane(
                model,
                rpm=self.chance.choice(requests),
                tpm=self.chance.choice(tokens),
                concurrency=self.chance.choice([1, 4, 32]),
            )
            for model in ["script/m", "script/n"][: self.chance.randint(1, 2)]
        ]

    def lanes_told(self) -> list[Lane]:
        """What the engine is told of the quotas."""
        return [model.lane for model in self.models.values()]

    def price_told(self) -> Price | None:
        """What the engine is told of the price."""
        return self.price

    def open(self, number: int) -> contextlib.AbstractAsyncContextManager[Bench]:
        return engine_over(
            self.models,
            self.folder,
            *self.lanes_told(),
            seed=self.seed + number,
            price=self.price_told(),
            max_cost=self.max_cost,
        )

    async def live(self) -> None:
        """Raises AssertionError, or Deadlock, for whatever went wrong."""
        found = await asyncio.gather(*(self._asked(number) for number in range(self.engines)))
        loop = asyncio.get_running_loop()
        self.lasted_s = loop.time()
        assert not self.wrong, self.wrong[:5]
        assert len(asyncio.all_tasks()) == 1, asyncio.all_tasks()
        timers = [timer for timer in loop._scheduled if not timer.cancelled()]  # type: ignore[attr-defined]
        assert not timers, timers
        for seen in found:
            self._check_outcomes(seen)
        self._check_sends([outcome for seen in found for outcome in seen])
        await self._check_kept([outcome for seen in found for outcome in seen])

    async def _asked(self, number: int) -> list[Outcome]:
        seen, sink = list[Outcome](), ListSink()
        async with self.open(number) as bench:
            try:
                async for outcome in run_calls(bench.scheduler, self._taken(), sink):
                    self.models[outcome.call.model].end()
                    assert outcome in sink.safe[-300:], "an outcome was shown before it was safe"
                    seen.append(outcome)
                    if not self.hours and self.chance.random() < 0.1:
                        await asyncio.sleep(self.chance.uniform(0, 5))
                    self._check_money(bench)
            except Stopped as error:
                self.stopped |= {stop.lane for stop in error.stops}
            assert bench.budget.reserved == pytest.approx(0.0)
            for model in bench.scheduler.routes.lasting:
                kept = bench.lane(model).in_flight
                assert kept == 0, f"{kept} slots were not freed"
        assert sink.safe == sink.taken
        assert Counter(map(id, seen)) == Counter(map(id, sink.taken))
        return seen

    def _taken(self) -> Iterator[Call]:
        for call in self.calls:
            self.models[call.model].take()
            yield call

    def _check_money(self, bench: Bench) -> None:
        billed = sum(model.billed for model in self.models.values())
        assert self.max_cost is None or billed <= self.max_cost + 1e-9, f"${billed} of ${self.max_cost}"

    def _check_outcomes(self, seen: list[Outcome]) -> None:
        tags = [outcome.call.tag for outcome in seen]
        assert len(tags) == len(set(tags)), "a call ended twice"
        missing = [call for call in self.calls if call.tag not in set(tags)]
        assert {call.model for call in missing} <= self.stopped, "a call never ended"
        for outcome in seen:
            assert outcome.call == self.calls[outcome.call.tag]
            assert (outcome.reply is None) != (outcome.failure is None)
            if outcome.reply is not None:
                text = outcome.reply.text
                assert text == f"{SAID}{outcome.call.input}", f"{outcome.call.input} was answered with {text}"
            assert outcome.maybe_billed <= 3

    def _check_sends(self, seen: list[Outcome]) -> None:
        policy, attempts, ends = RetryPolicy(), Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for outcome in seen:
            asked = outcome.call.model, str(outcome.call.input)
            attempts[asked] += outcome.attempts
            ends[asked] += not outcome.cached
        for name, model in self.models.items():
            uncounted = Counter(prompt for prompt, fault in model.faults if _is_uncounted(fault))
            failed = Counter(prompt for prompt, _ in model.faults)
            for prompt, sends in model.counts().items():
                # One end of a call takes at most the configured attempts; one may have been pending at a lane's stop.
                assert sends - uncounted[prompt] <= policy.attempts_max * (ends[name, prompt] + self.engines)
                # An engine waits so long for another one that has begun the same call, then sends it too.
                last = max(at for at, arrived in model.arrivals if arrived == prompt)
                most = self.engines if last >= policy.patience_s else 1
                assert sends - failed[prompt] <= most, f"{prompt} was answered {sends - failed[prompt]} times"
                if name not in self.stopped:
                    assert sends == attempts[name, prompt]

    async def _check_kept(self, seen: list[Outcome]) -> None:
        """What was answered is in the cache: the same calls again are sent to nobody."""
        answered = {outcome.call.tag: outcome.call for outcome in seen if outcome.reply is not None}
        silent: dict[str, ScriptedProvider] = {name: ScriptedProvider() for name in self.models}
        async with engine_over(silent, self.folder) as bench:
            again = [outcome async for outcome in run_calls(bench.scheduler, iter(answered.values()))]
        assert all(outcome.cached for outcome in again) and len(again) == len(answered)
        assert not any(provider.arrivals for provider in silent.values())


def _tokens(prompt: str) -> int:
    """Returns what a prompt is charged: no more than its engine can know before."""
    return -(-len(prompt) // 4)


def _is_uncounted(fault: Fault) -> bool:
    return fault.action in ("wait", "confirm") or (fault.action == "throttle" and fault.retry_after_s is not None)
