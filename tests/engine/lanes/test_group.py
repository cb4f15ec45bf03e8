"""Several keys of one model: each with its own quota and its own troubles, one queue for all."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from permits import admit
from scripted import Bench, ScriptedProvider, engine_over, prompts, worst_minute
from virtual_time import run_virtually

from millstream.engine.attempts.money import CostBudget
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.events import Events
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.lanes.key_gate import KeyGate, Permit
from millstream.engine.lanes.lane_queue import LaneQueue
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Limit, Tokens, declared_quota
from millstream.engine.run import run_calls
from millstream.engine.verdict import verdict

M = "script/m"
UNTOLD = Fault("rate_limited", "429", "throttle", 429, cuts_rate=True)
TOLD = Fault("rate_limited", "429", "throttle", 429, retry_after_s=30.0)
DEAD = Fault("rejected", "401: no such key", "confirm", 401)
EMPTY = Fault("rate_limited", "the account can't pay", "stop", 429)
REDIRECT = Fault("redirect", "302 to elsewhere", "stop", 302)
SERVER_ERROR = Fault("server_error", "500", "retry", 500)


def always(fault: Fault | None) -> ScriptedProvider:
    return ScriptedProvider(lambda prompt, at: fault, latency_s=0.2)


async def all_of(bench: Bench, calls: int) -> list[Outcome]:
    return [outcome async for outcome in run_calls(bench.scheduler, prompts(calls))]


def group_of(*lanes: Lane, budget: CostBudget | None = None) -> LaneQueue:
    events, budget = Events(), budget or CostBudget()
    keys = [
        KeyGate(lane, ledger=Ledger(declared_quota(lane)), budget=budget, policy=RetryPolicy(), events=events)
        for lane in lanes
    ]
    return LaneQueue(keys)


def test_each_key_keeps_the_declared_quota_and_all_are_used(tmp_path: Path) -> None:
    keys = [ScriptedProvider(latency_s=0.3) for _ in range(3)]

    async def main() -> None:
        async with engine_over({M: keys}, tmp_path, Lane(M, rpm=300, concurrency=16)) as bench:
            async for _ in run_calls(bench.scheduler, prompts(10**9)):
                if keys[0].arrivals[-1][0] > 120:
                    break

    run_virtually(main())
    for key in keys:
        sends = [(at, 1) for at, _ in key.arrivals if at <= 120]
        assert worst_minute(sends) <= 300
        assert len(sends) >= 0.98 * 300 * 2
        assert key.peak <= 16


def test_a_group_stops_when_all_its_keys_have_and_names_each(tmp_path: Path) -> None:
    keys = [always(DEAD), always(EMPTY)]

    async def main() -> list[Outcome]:
        found = []
        async with engine_over({M: keys}, tmp_path, Lane(M, concurrency=4)) as bench:
            with pytest.raises(Stopped) as stopped:
                async for outcome in run_calls(bench.scheduler, prompts(100)):
                    found.append(outcome)
            (stop,) = stopped.value.stops
            assert stop.detail.startswith("all 2 keys of script/m stopped: ")
            assert "KEY_1: script/m refuses the key in KEY_1 (401: no such key)" in stop.detail
            assert "KEY_2: the account can't pay" in stop.detail
            assert bench.lane(M).in_flight == 0
        return found

    assert run_virtually(main()) == []
    assert len(keys[1].arrivals) <= 4 + 1


def test_a_redirect_stops_all_keys_since_it_is_the_addresss(tmp_path: Path) -> None:
    keys = [always(REDIRECT), always(None)]

    async def main() -> None:
        async with engine_over({M: keys}, tmp_path, Lane(M, concurrency=1)) as bench:
            with pytest.raises(Stopped) as stopped:
                await all_of(bench, 100)
            assert [stop.reason for stop in stopped.value.stops] == ["redirect"]
            assert len(bench.lane(M).stopped_keys) == 2

    run_virtually(main())


def few_a_second(limit: int) -> Callable[[str, float], Fault | None]:
    taken: list[float] = []

    def script(prompt: str, at: float) -> Fault | None:
        taken[:] = [then for then in taken if then > at - 1.0]
        if len(taken) >= limit:
            return UNTOLD
        taken.append(at)
        return None

    return script


WRONG_TIER: dict[str, Callable[[], ScriptedProvider]] = {
    "refuses everything": lambda: always(UNTOLD),
    "asks for pauses": lambda: always(TOLD),
    "takes one a second": lambda: ScriptedProvider(few_a_second(1), latency_s=0.2),
    "is dead": lambda: always(DEAD),
    "is empty": lambda: always(EMPTY),
    "answers slowly": lambda: ScriptedProvider(latency_s=40.0),
    "fails": lambda: always(SERVER_ERROR),
}


@pytest.mark.long
@pytest.mark.parametrize("rpm", [300, None])
@pytest.mark.parametrize("trouble", WRONG_TIER)
def test_keys_in_the_wrong_tier_never_slow_the_good_ones(trouble: str, rpm: int | None, tmp_path: Path) -> None:
    """Two of each kind; the good ones send what they would send without the others."""
    bad = [WRONG_TIER[trouble]() for _ in range(2)]
    good = [ScriptedProvider(latency_s=0.4) for _ in range(2)]
    seconds = 90 if rpm is not None else 50
    kinds: Counter[str] = Counter()

    async def main() -> None:
        async with engine_over({M: [bad[0], good[0], bad[1], good[1]]}, tmp_path, Lane(M, rpm, concurrency=8)) as bench:
            async for outcome in run_calls(bench.scheduler, prompts(10**9)):
                kinds[outcome.status] += 1
                if good[0].arrivals[-1][0] > seconds:
                    break

    run_virtually(main())
    # An answer keeps its slot while it waits for its commit, 50 ms at most.
    alone = 0.98 * rpm / 60 if rpm is not None else 8 / 0.45
    for key in good:
        # The first seconds are those in which the troubles are found out.
        sends = [at for at, _ in key.arrivals if 20 <= at < seconds]
        assert len(sends) >= 0.97 * alone * (seconds - 20)
    assert set(kinds) <= ({"ok", "server_error"} if trouble == "fails" else {"ok"})


def test_a_call_that_one_key_refuses_goes_to_another_at_once_and_spends_no_attempt(tmp_path: Path) -> None:
    keys = [always(UNTOLD), always(UNTOLD), always(None)]

    async def main() -> tuple[Outcome, float]:
        async with engine_over(
            {M: keys}, tmp_path, Lane(M, concurrency=1), policy=RetryPolicy(attempts_max=1)
        ) as bench:
            return await bench.scheduler.ask(Call(M, "a")), asyncio.get_running_loop().time()

    outcome, ended = run_virtually(main())
    assert (outcome.status, outcome.attempts) == ("ok", 3)
    assert ended == pytest.approx(0.6, abs=0.05)


def test_a_call_that_every_key_refuses_ends_with_its_attempts(tmp_path: Path) -> None:
    keys = [always(UNTOLD), always(UNTOLD)]

    async def main() -> Outcome:
        async with engine_over(
            {M: keys}, tmp_path, Lane(M, concurrency=1), policy=RetryPolicy(attempts_max=3)
        ) as bench:
            return await bench.scheduler.ask(Call(M, "a"))

    outcome = run_virtually(main())
    # One for each key that another might have taken it from, then as many as configured.
    assert outcome.status == "rate_limited" and 3 <= outcome.attempts <= 3 + 2


def test_a_call_that_one_key_alone_can_hold_waits_for_it_and_holds_nobody_up() -> None:
    """The second key has learned that its minute holds a tenth of the first's."""

    async def main() -> None:
        group = group_of(*[Lane(M, tpm=100_000, concurrency=64)] * 2)
        loop = asyncio.get_running_loop()
        _, small = group.keys
        small.learn((Limit("tokens", 60.0, 10_000.0),), loop.time())
        assert small.quota.tpm == 10_000 and group.quota.tpm == 110_000
        sent: list[tuple[float, int, int]] = []

        async def one(size: int) -> None:
            permit = await admit(group, Tokens(size))
            sent.append((loop.time(), size, permit.gate.number))
            await asyncio.sleep(0.2)
            permit.gate.succeeded(permit, Tokens(size), 0.0)
            group.release(permit, loop.time())

        # Four of 60,000 fill the first key for four minutes; what is small goes on with the second meanwhile.
        sizes = [60_000] * 4 + [100] * 300
        await asyncio.gather(*(one(size) for size in sizes))
        assert {number for _, size, number in sent if size == 60_000} == {0}
        early = [at for at, size, _ in sent if size == 100 and at < 55]
        assert len(early) >= 0.9 * 10_000 / 100 * 55 / 60

    run_virtually(main())


def test_a_call_that_no_key_can_hold_is_sent_alone_rather_than_never() -> None:
    async def main() -> Permit:
        group = group_of(*[Lane(M, tpm=100_000)] * 2)
        for key in group.keys:
            key.learn((Limit("tokens", 60.0, 5_000.0),), 0.0)
        return await asyncio.wait_for(admit(group, Tokens(30_000, 10_000)), 130)

    permit = run_virtually(main())
    assert permit.tokens == Tokens(5_000, 0)


def test_a_reached_budget_stops_all_keys(tmp_path: Path) -> None:
    async def main() -> None:
        budget = CostBudget(limit=1.0)
        group = group_of(*[Lane(M)] * 2, budget=budget)
        first, second = [await admit(group, Tokens(1), 0.5) for _ in range(2)]
        assert first.gate is not second.gate
        waiting = asyncio.ensure_future(admit(group, Tokens(1), 0.5))
        await asyncio.sleep(1)
        assert not waiting.done() and group.waiting_for == "budget"
        for permit in (first, second):
            permit.gate.succeeded(permit, Tokens(1), 0.5)
            group.release(permit, 1.0)
        with pytest.raises(Exception, match=r"the next call to script/m may cost \$0.5000"):
            await waiting
        assert group.stopped is not None and group.stopped.reason == "budget"

    run_virtually(main())


def test_a_call_waits_for_a_sound_key_rather_than_go_back_to_the_one_that_refused_it() -> None:
    async def main() -> None:
        group = group_of(*[Lane(M, concurrency=1)] * 2)
        refusing, sound = group.keys
        one, first = [await admit(group) for _ in range(2)]
        assert (one.gate, first.gate) == (refusing, sound)
        group.release(one, 0.0)
        waiting = asyncio.ensure_future(admit(group, refused_by=1 << refusing.number))
        other = asyncio.ensure_future(admit(group))
        await asyncio.sleep(1)
        # Who comes later may have the key that the first in the queue must not.
        assert not waiting.done() and (await other).gate is refusing
        group.release(first, 1.0)
        assert (await waiting).gate is sound
        # Where no sound key is left, one that refused it is better than none.
        sound.breaker.open(1.0, probe_in_s=1_000)
        group.release(await other, 1.0)
        assert (await admit(group, refused_by=1 << refusing.number)).gate is refusing

    run_virtually(main())


def test_a_slot_that_is_handed_over_as_its_caller_leaves_is_handed_on() -> None:
    async def main() -> None:
        group = group_of(Lane(M, concurrency=1))
        first = await admit(group)
        leaving, next_one = (asyncio.ensure_future(admit(group)) for _ in range(2))
        await asyncio.sleep(0)
        group.release(first, 0.0)
        leaving.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
        assert leaving.cancelled()
        group.release(await next_one, 0.0)
        assert repr(group) == "<Lane script/m [0 in flight, 0 queued, open]>"

    run_virtually(main())


def test_when_the_one_that_probes_leaves_another_probes_in_its_place() -> None:
    async def main() -> None:
        group = group_of(Lane(M, concurrency=8))
        permit = await admit(group)
        group.failed(permit, DEAD, verdict(DEAD), 0.0)
        group.release(permit, 0.0)
        probe = await admit(group)
        assert probe.is_probe
        waiting = asyncio.ensure_future(admit(group))
        await asyncio.sleep(100)
        assert not waiting.done()
        left_at = asyncio.get_running_loop().time()
        group.release(probe, left_at)  # nothing came of it
        assert (await waiting).is_probe
        assert asyncio.get_running_loop().time() < left_at + 1.0

    run_virtually(main())
