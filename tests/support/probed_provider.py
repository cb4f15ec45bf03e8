"""A provider for probes in virtual time: the simulated provider's own quotas, headers that may lie, and failures."""

from __future__ import annotations

import asyncio
import math
import random
from typing import Any, Literal

from msgspec import Struct
from virtual_time import run_virtually

from millstream.bench.probe.answers import Answer
from millstream.bench.probe.calls import Bounds, Outside, Watcher
from millstream.bench.probe.run import Probe
from millstream.engine.limits import Limit
from millstream.fixtures.provider.quotas import Account, AccountQuota, Decision

MODEL = "mylab/m"
WIDE = Bounds(max_calls=100_000, max_cost=1_000.0)
# No tokens are probed: not even the smallest call may be sent for them.
REQUESTS = Bounds(max_calls=100_000, max_cost=1_000.0, tokens=1)
PER_TOKEN = 1e-6
STALL_S = 0.1


class Manners(Struct, frozen=True):
    """What a provider says beside what it enforces, and how it errs. `told`: its limits times this, in headers; 0 for
    none. `refuses`: the share of calls that it refuses for no reason. `others`: calls a second that come from others on
    the same quota. `changes_after`: so many calls on, `later` holds. `apart_s`: what a call takes of the caller's
    machine, one after the other; `paced`: the share of it that passes before it counts as sent. `jitter_s`: by so much
    at the most a call comes later, and a share `stalls` of them by `STALL_S`."""

    told: float = 1.0
    retry_after: Literal["none", "exact", "seconds", "short"] = "exact"
    latency_s: float = 0.4
    noise: float = 0.5
    starts_at_s: float = 0.0
    dies_after: int | None = None
    fails: float = 0.0
    refuses: float = 0.0
    others: float = 0.0
    changes_after: int | None = None
    later: AccountQuota | None = None
    apart_s: float = 0.0
    paced: float = 0.0
    jitter_s: float = 0.02
    stalls: float = 0.0


PLAIN = Manners()


def drawn_manners(draw: random.Random, told: list[float], **errs: Any) -> Manners:
    """Returns manners with headers, waits, latency and the clock's second at random."""
    return Manners(
        told=draw.choice(told),
        retry_after=draw.choice(["none", "exact", "seconds", "short"]),
        latency_s=draw.choice([0.1, 0.4, 1.0]),
        starts_at_s=draw.uniform(0, 60),
        **errs,
    )


class ProbedProvider:
    def __init__(self, quota: AccountQuota, manners: Manners = PLAIN, seed: int = 0) -> None:
        self.account = Account(quota)
        self.quota, self.manners = quota, manners
        self.calls = self.refusals = 0
        self.cost = 0.0
        # Of calls that came sooner than a refusal had asked for.
        self.too_early = 0
        self.admitted_at: list[tuple[float, int]] = []
        # When the last call was answered.
        self.ended_s = 0.0
        self._random = random.Random(seed)
        self._not_before = 0.0
        self._others_at = self.manners.starts_at_s
        self._busy_until = 0.0

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds or self.manners.paced * self.manners.apart_s)

    def worst_cost(self, model: str, tokens: int) -> float:
        return (tokens + 40) * PER_TOKEN

    def quiet_in_s(self, model: str) -> float:
        return 0.0

    async def ask(self, model: str, tokens: int) -> Answer:
        self.calls += 1
        sent = self.now()
        if sent < self._not_before - 1e-6:
            self.too_early += 1
        await self._reach()
        if self.manners.dies_after is not None and self.calls > self.manners.dies_after:
            return Answer("failed", detail="the key is refused (401): give another", is_fatal=True)
        if self._random.random() < self.manners.fails:
            return Answer("failed", detail="the provider answers 500: try later")
        answer = await self._decided(self.now() + self.manners.starts_at_s, tokens + self._random.randrange(12, 15))
        self.ended_s = self.now()
        return answer

    async def _reach(self) -> None:
        """A call's way from the one who asks to the one who decides."""
        manners = self.manners
        if manners.apart_s:
            self._busy_until = max(self._busy_until, self.now()) + manners.apart_s
            await asyncio.sleep(self._busy_until - self.now())
        stall_s = STALL_S if manners.stalls and self._random.random() < manners.stalls else 0.0
        await asyncio.sleep(manners.jitter_s * self._random.random() + stall_s)

    def _admit_others(self, now: float) -> None:
        while self.manners.others:
            then = self._others_at + self._random.expovariate(self.manners.others)
            if then > now:
                return
            self._others_at = then
            self.account.decide(then, 1)

    def _decide(self, now: float, used: int) -> Decision:
        manners = self.manners
        if manners.later is not None and manners.changes_after is not None and self.calls == manners.changes_after:
            before, self.account = self.account, Account(manners.later)
            if before.requests is not None and self.account.requests is not None:
                # What was used stays used.
                self.account.requests.take(now, before.requests.limit - before.requests.remaining(now))
        self._admit_others(now)
        if self._random.random() < manners.refuses:
            return Decision("requests", 1.0)
        return self.account.decide(now, used)

    async def _decided(self, now: float, used: int) -> Answer:
        decision = self._decide(now, used)
        limits = self._limits(now)
        if not decision.is_admitted:
            self.refusals += 1
            told = self._retry_after(decision.wait_s)
            await asyncio.sleep(0.02)
            if told is not None:
                self._not_before = max(self._not_before, now - self.manners.starts_at_s + told)
            return Answer("refused", retry_after_s=told, limits=limits)
        self.admitted_at.append((now, used))
        self.account.in_flight += 1
        noise = 1 + self.manners.noise * self._random.uniform(-1, 1)
        try:
            await asyncio.sleep(self.manners.latency_s * noise)
        finally:
            self.account.in_flight -= 1
        self.cost += used * PER_TOKEN
        return Answer("admitted", used, used * PER_TOKEN, limits=limits)

    def _retry_after(self, wait_s: float | None) -> float | None:
        if wait_s is None:
            return None
        match self.manners.retry_after:
            case "none":
                return None
            case "exact":
                return wait_s
            case "seconds":
                return float(math.ceil(wait_s))
            case "short":
                return wait_s / 3

    def _limits(self, now: float) -> tuple[Limit, ...]:
        if not self.manners.told:
            return ()
        requests, tokens = self.account.requests, self.account.tokens
        found = []
        if requests is not None:
            found.append(
                Limit(
                    "requests", 60.0, requests.limit * self.manners.told, requests.remaining(now), requests.reset_s(now)
                )
            )
        if tokens is not None:
            found.append(
                Limit("tokens", 60.0, tokens.limit * self.manners.told, tokens.remaining(now), tokens.reset_s(now))
            )
        return tuple(found)


def probed(outside: Outside, bounds: Bounds = WIDE, watcher: Watcher | None = None) -> Probe:
    """A probe of one model, at its end in virtual time."""

    async def main() -> Probe:
        probe = Probe(outside, bounds, watcher)
        await probe.run([MODEL])
        return probe

    return run_virtually(main())
