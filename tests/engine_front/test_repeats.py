"""What is sent again, how often and when, and what is not: one call before a server that fails in every way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from chat_server import (
    COST,
    MODEL,
    PRICE,
    QUICK,
    Asked,
    ChatServer,
    Script,
    Step,
    cut,
    held,
    settings_for,
    sound,
    sound_answer,
    status,
    text_to,
)
from loops import on_each_loop, run_on
from msgspec import structs
from raw_server import http
from virtual_time import run_with_sockets

import millstream as ms

CALL = ms.Call(MODEL, "call", max_tokens=20)
LENGTH = len(sound_answer("call"))
HEAD = sound_answer("call").index(b"\r\n\r\n") + 4
# Many attempts, of which as many may be billed as the default allows.
STUBBORN = structs.replace(QUICK, attempts_max=6)


def body(data: bytes) -> Step:
    """A response with status 200."""

    async def step(asked: Asked) -> bool:
        await asked.visit.send(http(data))
        return True

    return step


def first(*steps: Step) -> Script:
    """These steps for the call's first requests, and sound answers for all others."""
    return lambda asked: steps[asked.number - 1] if asked.prompt == "call" and asked.number <= len(steps) else None


def asked(
    folder: Path, script: Script, *lanes: ms.Lane, loop: str = "", policy: ms.RetryPolicy = QUICK
) -> tuple[ms.Outcome, ChatServer, ms.Statistics]:
    """The outcome of one call, and the engine's state after it. One more call must then be answered. In virtual time,
    unless a loop is named."""

    async def main() -> tuple[ms.Outcome, ChatServer, ms.Statistics]:
        async with ChatServer(script) as server:
            made = settings_for(server.base_url, folder, *lanes, policy=policy, prices={MODEL: PRICE}, max_cost=1e6)
            async with ms.Engine(settings=made) as engine:
                outcome = await engine.ask(CALL)
                statistics = engine.statistics()
                assert (statistics.in_flight, statistics.reserved) == (0, 0.0)
                assert (await engine.ask(ms.Call(MODEL, "next", max_tokens=20))).status == "ok"
                return outcome, server, statistics

    return run_on(loop, main()) if loop else run_with_sockets(main())


REPEATED = {
    "500": (status(500), 0),
    "503": (status(503), 0),
    "529": (status(529), 0),
    "408": (status(408), 0),
    "409": (status(409), 0),
    "502": (status(502), 1),
    "504": (status(504), 1),
    "429": (status(429), 0),
    "429 with a time": (status(429, "no", "retry-after-ms: 50"), 0),
    "429 with a time of none": (status(429, "no", "Retry-After: 0"), 0),
    "JSON cut short": (body(b'{"choices":[{"message":{"content":"A'), 1),
    "no JSON": (body(b"<html>"), 1),
    "no choices": (body(b'{"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":0}}'), 0),
    "an error with 200": (body(b'{"error":{"message":"overloaded","code":503}}'), 0),
}


@pytest.mark.parametrize("fault", REPEATED)
def test_what_may_pass_is_sent_again(fault: str, tmp_path: Path) -> None:
    step, maybe_billed = REPEATED[fault]
    outcome, server, statistics = asked(tmp_path, first(step))
    assert outcome.reply is not None and outcome.reply.text == text_to("call")
    assert (outcome.attempts, outcome.maybe_billed, server.counts()["call"]) == (2, maybe_billed, 2)
    assert not outcome.cached and outcome.cost == COST
    assert (statistics.spent > COST) == (maybe_billed > 0 or fault == "no choices")


@pytest.mark.parametrize("code", [400, 404, 413, 422])
def test_what_would_fail_again_is_sent_once(code: int, tmp_path: Path) -> None:
    outcome, server, statistics = asked(tmp_path, first(status(code, "not like this")))
    failure = outcome.failure
    assert failure is not None and (failure.kind, failure.status) == ("rejected", code)
    assert "not like this" in failure.detail
    assert (outcome.attempts, server.counts()["call"], statistics.spent) == (1, 1, 0.0)


def test_attempts_have_an_end(tmp_path: Path) -> None:
    outcome, server, statistics = asked(tmp_path, first(*[status(500)] * 9), policy=STUBBORN)
    assert outcome.failure is not None and outcome.failure.kind == "server_error"
    assert outcome.attempts == server.counts()["call"] == STUBBORN.attempts_max
    assert (outcome.cost, statistics.spent) == (None, 0.0)


def test_attempts_that_may_have_been_billed_end_sooner(tmp_path: Path) -> None:
    outcome, server, statistics = asked(tmp_path, first(*[status(504)] * 9), policy=STUBBORN)
    assert outcome.attempts == outcome.maybe_billed == server.counts()["call"] == 1 + STUBBORN.billed_repeats_max
    # Each counts at the most that it can cost.
    assert statistics.spent >= outcome.attempts * 20 * PRICE.output / 1e6


def test_a_call_that_is_told_to_wait_spends_no_attempt(tmp_path: Path) -> None:
    wait = status(429, "later", "retry-after-ms: 5")
    outcome, server, _ = asked(tmp_path, first(*[wait] * 8))
    assert (outcome.status, server.counts()["call"]) == ("ok", 9)


@pytest.mark.parametrize(("header", "least_s"), [("retry-after-ms: 150", 0.15), ("Retry-After: 4", 4.0)])
def test_the_whole_lane_waits_as_long_as_the_server_says(header: str, least_s: float, tmp_path: Path) -> None:
    async def main() -> list[Asked]:
        async with ChatServer(first(status(429, "later", header))) as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                refused = asyncio.create_task(engine.ask(CALL))
                await asyncio.sleep(0.02)
                # Nobody else is sent into it.
                assert (await engine.ask(ms.Call(MODEL, "other"))).status == (await refused).status == "ok"
                return server.asked

    refused, *others = run_with_sockets(main())
    assert sorted(each.prompt for each in others) == ["call", "other"]
    assert min(each.at for each in others) - refused.at >= least_s


REGIONS = {
    "before the first byte": 0,
    "in the status line": 7,
    "in the head": HEAD // 2,
    "before the body": HEAD,
    "in the body": (HEAD + LENGTH) // 2,
    "before the last byte": -1,
}


@on_each_loop
@pytest.mark.parametrize("region", REGIONS)
def test_an_answer_cut_anywhere_is_asked_for_again_and_may_have_been_billed(
    region: str, loop: str, tmp_path: Path
) -> None:
    outcome, server, statistics = asked(tmp_path, first(cut(REGIONS[region])), loop=loop)
    assert outcome.reply is not None and outcome.reply.text == text_to("call")
    assert (outcome.attempts, outcome.maybe_billed, server.counts()["call"]) == (2, 1, 2)
    assert statistics.spent >= COST + 20 * PRICE.output / 1e6


@on_each_loop
def test_a_kept_connection_that_the_server_closes_costs_no_call(loop: str, tmp_path: Path) -> None:
    async def closing(asked: Asked) -> bool:
        await sound(asked)
        return False

    async def main() -> None:
        async with ChatServer(lambda asked: closing) as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                outcomes = [await engine.ask(ms.Call(MODEL, f"call {number}")) for number in range(20)]
                assert {outcome.status for outcome in outcomes} == {"ok"}

    run_on(loop, main())


def test_a_refused_connection_is_tried_again_and_costs_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer() as server:
            address = server.base_url
        # Nobody listens there any more.
        made = settings_for(address, tmp_path, prices={MODEL: PRICE}, max_cost=1e6)
        async with ms.Engine(settings=made) as engine:
            outcome = await engine.ask(CALL)
            assert outcome.failure is not None and outcome.failure.kind == "connect"
            assert (outcome.attempts, outcome.maybe_billed) == (QUICK.attempts_max, 0)
            statistics = engine.statistics()
            assert (statistics.spent, statistics.reserved, statistics.lanes[0].requests) == (0.0, 0.0, 0)

    asyncio.run(asyncio.wait_for(main(), 20))


@pytest.mark.parametrize(
    ("sent", "loop", "timeout_s"), [(0, "", 10.0), (HEAD, "", 10.0), (HEAD + 20, "", 10.0), (HEAD + 20, "uvloop", 0.8)]
)
def test_an_answer_that_does_not_come_in_time_is_given_up_and_asked_for_again(
    sent: int, loop: str, timeout_s: float, tmp_path: Path
) -> None:
    lane = ms.Lane(MODEL, timeout_s=timeout_s)
    outcome, server, _ = asked(tmp_path, first(held(asyncio.Event(), sent=sent)), lane, loop=loop)
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == ("ok", 2, 1)
    assert server.lost == ["call"]


def test_a_call_that_never_ends_in_time_is_a_timeout(tmp_path: Path) -> None:
    lane = ms.Lane(MODEL, timeout_s=5.0)
    outcome, server, _ = asked(tmp_path, first(*[held(asyncio.Event())] * 9), lane)
    assert outcome.failure is not None and outcome.failure.kind == "timeout"
    assert outcome.maybe_billed == outcome.attempts == server.counts()["call"] == QUICK.attempts_max


def test_what_failed_is_not_stored_and_what_was_answered_after_it_is(tmp_path: Path) -> None:
    async def main(script: Script) -> tuple[list[Any], int]:
        async with ChatServer(script) as server:
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path)) as engine:
                outcome = await engine.ask(CALL)
            return [outcome.status, outcome.cached], len(server.asked)

    never: Script = first(*[status(500)] * 9)
    assert asyncio.run(main(never)) == (["server_error", False], QUICK.attempts_max)
    assert asyncio.run(main(first(status(500)))) == (["ok", False], 2)
    assert asyncio.run(main(never)) == (["ok", True], 0)
