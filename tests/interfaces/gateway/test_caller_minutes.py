"""A caller's quota counts what is written at its expense, and holds up no other caller. In virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvloop
from scripted import Bench, ScriptedProvider, engine_over, prompts, worst_minute
from virtual_time import run_virtually

from millstream.configuration.gateway_settings import CallerSettings
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Fault
from millstream.engine.lane import Lane
from millstream.interfaces.gateway.callers import Caller

M, OTHER = "script/m", "script/other"
RPM = 30


@asynccontextmanager
async def gateway_of(
    folder: Path, provider: ScriptedProvider, concurrency: int, *callers: CallerSettings
) -> AsyncIterator[tuple[Bench, list[Caller]]]:
    """Two models behind one provider, and their callers. Nothing is stored: a thread would wait in real time."""
    made = [Caller(settings, folder) for settings in callers]
    lanes = [Lane(model, concurrency=concurrency) for model in (M, OTHER)]
    async with engine_over({M: provider, OTHER: provider}, folder / "cache", *lanes) as bench:
        for lane in lanes:
            bench.scheduler.routes.of(lane.model).is_kept = False
        yield bench, made
    for caller in made:
        assert caller.in_flight == 0 and not caller.waiting_for
        caller.close()


async def ask(bench: Bench, caller: Caller, call: Call) -> Outcome:
    pending = bench.scheduler.look_up(call)
    assert not isinstance(pending, Outcome)
    pending.payer = caller
    return await bench.scheduler.fetch(pending, None)


def test_a_caller_whose_turn_comes_at_once_may_be_told_of_another_time(tmp_path: Path) -> None:
    async def main() -> None:
        caller = Caller(CallerSettings("one", "ONE", rpm=RPM), tmp_path)
        for seconds in (0.0, 1.0, 0.0):
            caller._wake_in(seconds)
        caller.close()

    uvloop.run(main())


def test_calls_that_waited_together_for_the_model_are_not_written_together(tmp_path: Path) -> None:
    """The model's first answer takes 150 s, the others a tenth of a second, one at a time."""
    latencies = iter([150.0])
    provider = ScriptedProvider(latency_s=lambda: next(latencies, 0.1))

    async def main() -> list[Outcome]:
        async with gateway_of(tmp_path, provider, 1, CallerSettings("ann", "ANN", rpm=RPM)) as (bench, (ann,)):
            return await asyncio.gather(*(ask(bench, ann, call) for call in prompts(120)))

    assert {outcome.status for outcome in run_virtually(main())} == {"ok"}
    sent = [at for at, _ in provider.arrivals]
    assert len(sent) == 120 and worst_minute([(at, 1) for at in sent]) <= RPM
    # The quota is used when the lane is free again.
    assert sent[-1] - sent[1] <= 118 / RPM * 60 * 1.05


def test_a_caller_without_quota_holds_up_no_other_and_keeps_no_place(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.5)

    async def main() -> None:
        bounds = CallerSettings("ann", "ANN", rpm=1), CallerSettings("bob", "BOB")
        async with gateway_of(tmp_path, provider, 1, *bounds) as (bench, (ann, bob)):
            hers = [asyncio.ensure_future(ask(bench, ann, call)) for call in prompts(100)]
            await asyncio.sleep(5)
            assert (len(provider.arrivals), bench.lane(M).in_flight, ann.waiting_for) == (1, 0, "requests")
            his = [Call(M, f"bob {number}") for number in range(20)]
            await asyncio.gather(*(ask(bench, bob, call) for call in his))
            assert asyncio.get_running_loop().time() < 5 + 20 * 0.55
            # Bob's are sent in their order, and so are hers.
            await asyncio.sleep(130)
            for task in hers:
                task.cancel()
            await asyncio.gather(*hers, return_exceptions=True)
            assert [prompt for _, prompt in provider.arrivals] == [
                "prompt 0", *(call.input for call in his), "prompt 1", "prompt 2"
            ]  # fmt: skip
            await asyncio.sleep(70)  # until the caller's timer has found nobody

    run_virtually(main())


def test_the_calls_of_a_caller_to_two_models_share_its_minute_by_turns(tmp_path: Path) -> None:
    provider = ScriptedProvider(latency_s=0.1)

    async def main() -> None:
        async with gateway_of(tmp_path, provider, 8, CallerSettings("ann", "ANN", rpm=RPM)) as (bench, (ann,)):
            calls = [Call(M, f"to one {number}") for number in range(40)] + [Call(OTHER, f"{n}") for n in range(40)]
            await asyncio.gather(*(ask(bench, ann, call) for call in calls))

    run_virtually(main())
    early = [prompt.startswith("to one") for _, prompt in provider.arrivals[:40]]
    assert 15 <= sum(early) <= 25
    assert worst_minute([(at, 1) for at, _ in provider.arrivals]) <= RPM


def test_a_repeat_is_sent_within_the_callers_minute_too(tmp_path: Path) -> None:
    busy = Fault("server_error", "busy", "retry")
    provider = ScriptedProvider(lambda prompt, now: busy if prompt not in prompts_seen(provider) else None)

    async def main() -> list[Outcome]:
        async with gateway_of(tmp_path, provider, 8, CallerSettings("ann", "ANN", rpm=RPM)) as (bench, (ann,)):
            return await asyncio.gather(*(ask(bench, ann, call) for call in prompts(40)))

    assert {(outcome.status, outcome.attempts) for outcome in run_virtually(main())} == {("ok", 2)}
    assert len(provider.arrivals) == 80 and worst_minute([(at, 1) for at, _ in provider.arrivals]) <= RPM


def prompts_seen(provider: ScriptedProvider) -> list[str]:
    """The prompts that arrived before the latest."""
    return [prompt for _, prompt in provider.arrivals[:-1]]


def test_a_place_of_a_caller_is_free_before_a_repeat(tmp_path: Path) -> None:
    pause = Fault("rate_limited", "later", "throttle", 429, retry_after_s=20.0)
    provider = ScriptedProvider(lambda prompt, now: pause if now < 0.05 else None)

    async def main() -> None:
        async with gateway_of(tmp_path, provider, 8, CallerSettings("ann", "ANN", concurrency=1)) as (bench, (ann,)):
            first = asyncio.ensure_future(ask(bench, ann, Call(M, "first")))
            await asyncio.sleep(1)
            assert ann.in_flight == 0
            await ask(bench, ann, Call(OTHER, "second"))
            assert not first.done() and (await first).status == "ok"

    run_virtually(main())
