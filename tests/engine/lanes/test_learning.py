"""What answers tell of the provider's limits is obeyed: the pace, the pause, and no more than was declared."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over, prompts, worst_minute
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.events import Event
from millstream.engine.lane import Lane
from millstream.engine.limits import DAY_S, Limit
from millstream.engine.run import run_calls
from millstream.engine.store.cache import Cache

M = "script/m"
Telling = Callable[[float], tuple[Limit, ...]]


class TellingProvider(ScriptedProvider):
    """Tells limits with every answer, and refuses without a word of when to come back."""

    def __init__(self, tell: Telling, is_refused: Callable[[float], bool] | None = None) -> None:
        super().__init__(latency_s=0.2)
        self.tell = tell
        self.is_refused = is_refused or (lambda at: False)
        self.told: dict[str, tuple[Limit, ...]] = {}
        self.refusals: list[float] = []

    async def send(self, request: Request, cleared: Cleared) -> Response:
        at = asyncio.get_running_loop().time()
        is_refused = self.is_refused(at)
        if is_refused:
            self.refusals.append(at)
        response = await super().send(request, cleared)
        mark = str(len(self.told))
        self.told[mark] = self.tell(asyncio.get_running_loop().time())
        return Response(429 if is_refused else 200, response.body, headers={"mark": mark})

    def decode(self, response: Response) -> Reply | Fault:
        if response.status == 429:
            return Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
        return super().decode(response)

    def limits(self, response: Response) -> tuple[Limit, ...]:
        return self.told[response.headers["mark"]]


class Metered:
    """A sliding minute of requests, enforced and told."""

    def __init__(self, rpm: int) -> None:
        self.rpm = rpm
        self.taken: deque[float] = deque()

    def is_refused(self, at: float) -> bool:
        while self.taken and self.taken[0] <= at - 60:
            self.taken.popleft()
        if len(self.taken) >= self.rpm:
            return True
        self.taken.append(at)
        return False

    def tell(self, at: float) -> tuple[Limit, ...]:
        left = self.rpm - sum(then > at - 60 for then in self.taken)
        reset_s = self.taken[-1] + 60 - at if self.taken else 0.0
        return (Limit("requests", 60.0, float(self.rpm), float(left), reset_s),)


def steady(*limits: Limit) -> Telling:
    return lambda at: limits


async def send_until(seconds: float, provider: ScriptedProvider, lane: Lane, folder: Path) -> Counter[str]:
    kinds: Counter[str] = Counter()
    async with engine_over({M: provider}, folder, lane) as bench:
        async for outcome in run_calls(bench.scheduler, prompts(10**9)):
            kinds[outcome.status] += 1
            if provider.arrivals[-1][0] > seconds:
                break
    return kinds


@pytest.mark.parametrize("rpm", [60, 600])
def test_a_lane_with_no_declared_quota_keeps_the_one_that_it_is_told(rpm: int, tmp_path: Path) -> None:
    meter = Metered(rpm)
    provider = TellingProvider(meter.tell, meter.is_refused)
    kinds = run_virtually(send_until(360, provider, Lane(M, concurrency=32), tmp_path))
    # What was sent before the first answer came could not know.
    assert not [at for at in provider.refusals if at > 0.3]
    assert set(kinds) == {"ok"}
    sends = [(at, 1) for at, _ in provider.arrivals if at <= 360]
    assert worst_minute(sends) <= rpm
    assert len([at for at, _ in sends if at > 60]) >= 0.98 * rpm * 5 - 1


@pytest.mark.parametrize(("declared", "told", "kept"), [(120, 600, 120), (600, 120, 120)])
def test_of_what_is_declared_and_what_is_told_the_smaller_is_kept(
    declared: int, told: int, kept: int, tmp_path: Path
) -> None:
    provider = TellingProvider(steady(Limit("requests", 60.0, float(told))))
    run_virtually(send_until(180, provider, Lane(M, rpm=declared, concurrency=16), tmp_path))
    sends = [(at, 1) for at, _ in provider.arrivals if 1 < at <= 180]
    assert worst_minute(sends) <= kept
    assert len(sends) >= 0.98 * kept * 3 - 20


def test_a_quota_that_changes_is_followed(tmp_path: Path) -> None:
    provider = TellingProvider(lambda at: (Limit("requests", 60.0, 60.0 if at < 120 else 600.0),))
    learned: list[Event] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=16)) as bench:
            bench.events.subscribe(lambda event: learned.append(event) if event.kind == "learned" else None)
            async for _ in run_calls(bench.scheduler, prompts(10**9)):
                if provider.arrivals[-1][0] > 240:
                    break
            assert bench.lane(M).quota.rpm == 600

    run_virtually(main())
    assert len(learned) == 2
    assert 58 <= len([at for at, _ in provider.arrivals if 60 < at <= 120]) <= 61
    assert len([at for at, _ in provider.arrivals if 180 < at <= 240]) >= 0.97 * 600


def test_told_tokens_are_reserved_and_settled_from_then_on(tmp_path: Path) -> None:
    provider = TellingProvider(steady(Limit("tokens", 60.0, 6_000.0), Limit("output", 60.0, 600.0)))

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=4)) as bench:
            calls = (Call(M, f"prompt {number:010}" * 20, max_tokens=2) for number in range(10**9))
            async for _ in run_calls(bench.scheduler, calls):
                if provider.arrivals[-1][0] > 300:
                    break

    run_virtually(main())
    # An answer comes to a quarter of a token a sign and one for itself: what was said of each prompt, and ten more.
    each = (20 * len("prompt 0000000001") + len("answer to ")) // 4 + 1
    sends = [(at, each) for at, _ in provider.arrivals if at > 1]
    assert worst_minute(sends) <= 6_000 + 4 * each
    assert sum(amount for _, amount in sends) >= 0.95 * 6_000 * 5


def test_nothing_left_until_then_is_a_pause_of_the_whole_lane_and_no_attempt(tmp_path: Path) -> None:
    """Another program has used up what was left: the answer that says so is a sound one."""
    provider = TellingProvider(
        lambda at: (Limit("requests", 60.0, 600.0, 0.0 if 10 <= at < 10.5 else 50.0, 25.0),),
    )
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=8)) as bench:
            async for outcome in run_calls(bench.scheduler, prompts(400)):
                found.append(outcome)

    run_virtually(main())
    assert not [at for at, _ in provider.arrivals if 10.7 < at < 35]
    assert {(outcome.status, outcome.attempts) for outcome in found} == {("ok", 1)}


def test_a_pause_that_a_sound_answer_tells_lasts_no_longer_than_patience(tmp_path: Path) -> None:
    provider = TellingProvider(lambda at: (Limit("requests", DAY_S, 200.0, 0.0, 40_000.0),))

    async def main() -> float:
        policy = RetryPolicy(patience_s=100)
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1), policy=policy) as bench:
            assert {outcome.status async for outcome in run_calls(bench.scheduler, prompts(3))} == {"ok"}
            return asyncio.get_running_loop().time()

    assert 200 <= run_virtually(main()) <= 202


@pytest.mark.parametrize("remaining", [0.0, None])
def test_a_refusal_that_tells_when_it_ends_spends_no_attempt(remaining: float | None, tmp_path: Path) -> None:
    provider = TellingProvider(
        lambda at: (Limit("tokens", 60.0, None, remaining, 40.0),) if at < 1 else (), lambda at: at < 1
    )

    async def main() -> tuple[Outcome, float]:
        policy = RetryPolicy(attempts_max=1)
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=1), policy=policy) as bench:
            return await bench.scheduler.ask(Call(M, "a")), asyncio.get_running_loop().time()

    outcome, ended = run_virtually(main())
    assert (outcome.status, outcome.attempts) == ("ok", 2)
    assert 40 <= ended <= 41


def test_a_stored_answer_holds_nothing_of_what_was_told(tmp_path: Path) -> None:
    provider = TellingProvider(steady(Limit("requests", 60.0, 600.0)))

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path) as bench:
            for _ in range(2):
                assert (await bench.scheduler.ask(Call(M, "a"))).reply is not None

    run_virtually(main())
    cache = Cache(tmp_path)
    assert [entry.response.headers for _, entry in cache.entries()] == [{}]
    cache.close()
    assert len(provider.arrivals) == 1
