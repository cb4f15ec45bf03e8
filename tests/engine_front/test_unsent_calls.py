"""What is answered, or refused, before anything is sent: by the store, by the mode, by what a lane can bear."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from chat_server import COST, MODEL, PRICE, ChatServer, settings_for, status, text_to

import millstream as ms

CALL = ms.Call(MODEL, "call", max_tokens=20)


def with_engine(
    folder: Path, check: Callable[[ms.Engine, ChatServer], Awaitable[None]], *lanes: ms.Lane, **more: Any
) -> ChatServer:
    """The server after a check of an engine on the one cache of a folder."""

    async def main() -> ChatServer:
        async with ChatServer() as server:
            async with ms.Engine(settings=settings_for(server.base_url, folder, *lanes, **more)) as engine:
                await check(engine, server)
                assert engine.statistics().in_flight == 0 and engine.statistics().reserved == 0
            return server

    return asyncio.run(asyncio.wait_for(main(), 20))


async def in_both_ways(engine: ms.Engine, call: ms.Call) -> ms.Outcome:
    """The outcome by `run`, which must be that by `ask`."""
    (by_run,) = [outcome async for outcome in engine.run([call])]
    by_ask = await engine.ask(call)
    assert (by_run.status, by_run.key, by_run.attempts) == (by_ask.status, by_ask.key, by_ask.attempts)
    return by_run


async def asks(engine: ms.Engine, server: ChatServer) -> None:
    """Has the call answered, so that it is stored."""
    assert (await engine.ask(CALL)).status == "ok"


def test_a_stored_answer_is_the_answer_that_came(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        sent = await engine.ask(CALL)
        again = await in_both_ways(engine, ms.Call(MODEL, "call", max_tokens=20, tag="mine"))
        assert again.reply == sent.reply and again.key == sent.key == engine.key_of(CALL)
        assert sent.reply is not None and sent.reply.text == text_to("call")
        assert (sent.cached, sent.attempts, sent.cost, sent.latency_ms is None) == (False, 1, COST, False)
        assert (again.cached, again.attempts, again.cost, again.latency_ms) == (True, 0, 0.0, None)
        assert again.call.tag == "mine" and engine.statistics().spent == COST

    assert with_engine(tmp_path, check, prices={MODEL: PRICE}).counts() == {"call": 1}


def test_trials_and_parameters_are_other_calls_and_tags_and_streams_are_not(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        same = [CALL, ms.Call(MODEL, "call", max_tokens=20, tag=3), ms.Call(MODEL, "call", max_tokens=20, stream=True)]
        others = [
            ms.Call(MODEL, "call", max_tokens=20, trial=1),
            ms.Call(MODEL, "call", max_tokens=21),
            ms.Call(MODEL, "call", max_tokens=20, temperature=0.5),
            ms.Call("lab/other", "call", max_tokens=20),
            ms.Call(MODEL, [ms.Message("system", "be brief"), ms.Message("user", "call")], max_tokens=20),
        ]
        keys = {outcome.key async for outcome in engine.run([*same, *others])}
        assert len(keys) == 1 + len(others) == len(server.asked)

    with_engine(tmp_path, check)


def test_strict_sends_nothing_and_says_what_is_missing(tmp_path: Path) -> None:
    with_engine(tmp_path, asks)

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        assert (await in_both_ways(engine, CALL)).cached
        missing = await in_both_ways(engine, ms.Call(MODEL, "another"))
        assert missing.failure is not None and missing.failure.kind == "not_cached" and missing.attempts == 0
        assert missing.key[:12] in missing.failure.detail and "mode strict sends nothing" in missing.failure.detail

    assert with_engine(tmp_path, check, mode="strict").asked == []


@pytest.mark.parametrize("mode", ["record", "replay"])
def test_record_and_replay_send_what_is_missing(mode: str, tmp_path: Path) -> None:
    with_engine(tmp_path, asks)

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        calls = [CALL, ms.Call(MODEL, "another")]
        cached = {outcome.call.input: outcome.cached async for outcome in engine.run(calls)}
        assert cached == {"call": True, "another": False}

    assert with_engine(tmp_path, check, mode=mode).counts() == {"another": 1}


def test_live_takes_no_answer_of_another_run_and_keeps_its_own(tmp_path: Path) -> None:
    with_engine(tmp_path, asks)

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        assert [(await engine.ask(CALL)).cached for _ in range(2)] == [False, True]

    for run, sends in (("one", 1), ("two", 1)):
        assert with_engine(tmp_path, check, mode="live", run_id=run).counts() == {"call": sends}

    async def resumed(engine: ms.Engine, server: ChatServer) -> None:
        assert (await engine.ask(CALL)).cached

    assert with_engine(tmp_path, resumed, mode="live", run_id="one").asked == []


def test_a_call_that_no_minute_can_hold_is_refused_with_both_numbers(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        outcome = await in_both_ways(engine, ms.Call(MODEL, "large " * 5_000, max_tokens=20))
        assert outcome.failure is not None and (outcome.status, outcome.attempts) == ("rejected", 0)
        assert "lane lab/m admits at most 1,000 a minute: raise tpm or cut the prompt" in outcome.failure.detail
        assert (await engine.ask(CALL)).status == "ok"

    assert with_engine(tmp_path, check, ms.Lane(MODEL, tpm=1_000)).counts() == {"call": 1}


def test_a_call_whose_cost_has_no_bound_is_refused_under_a_limit(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        outcome = await in_both_ways(engine, ms.Call(MODEL, "endless"))
        assert outcome.failure is not None and (outcome.status, outcome.attempts) == ("rejected", 0)
        assert "max_tokens" in outcome.failure.detail
        assert (await engine.ask(CALL)).status == "ok"

    assert with_engine(tmp_path, check, prices={MODEL: PRICE}, max_cost=1e6).counts() == {"call": 1}


def test_a_call_that_can_not_be_written_is_refused_alone(tmp_path: Path) -> None:
    async def check(engine: ms.Engine, server: ChatServer) -> None:
        odd = ms.Call(MODEL, "odd", extra={"a": float("nan")})
        outcome = await in_both_ways(engine, odd)
        assert (outcome.status, outcome.attempts, outcome.key, engine.key_of(odd)) == ("rejected", 0, "", "")
        assert {outcome.status async for outcome in engine.run([CALL, odd])} == {"ok", "rejected"}

    assert with_engine(tmp_path, check).counts() == {"call": 1}


# What listeners of the engine's events are told


def told(folder: Path, calls: list[ms.Call], script: Any = None, **more: Any) -> list[tuple[str, str]]:
    """The kinds of events of calls asked one after another, with their details, but waits and nothing spent."""
    events: list[ms.Event] = []

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        if script is not None:
            server.script = script
        engine.events.subscribe(events.append)
        for call in calls:
            await engine.ask(call)

    with_engine(folder, check, **more)
    assert {event.lane for event in events} == {MODEL}
    return [
        (event.kind, event.detail)
        for event in events
        if event.kind != "waited" and (event.kind != "spent" or event.value)
    ]


def test_events_tell_what_became_of_a_call(tmp_path: Path) -> None:
    priced: dict[str, Any] = {"prices": {MODEL: PRICE}, "max_cost": 1e6}
    sound = [("sent", ""), ("spent", ""), ("answered", "ok")]
    assert told(tmp_path, [CALL], **priced) == sound
    assert told(tmp_path, [CALL], **priced) == [("cached", "")]
    assert told(tmp_path, [ms.Call(MODEL, "missing")], mode="strict") == [("unsent", "not_cached")]


@pytest.mark.parametrize(("code", "unsure"), [(500, []), (504, [("spent", "unsure")])])
def test_events_tell_of_repeats_and_of_money_that_may_be_spent(
    code: int, unsure: list[tuple[str, str]], tmp_path: Path
) -> None:
    priced: dict[str, Any] = {"prices": {MODEL: PRICE}, "max_cost": 1e6}
    fails = lambda asked: status(code) if asked.number == 1 else None  # noqa: E731
    events = told(tmp_path, [CALL], fails, **priced)
    sound = [("sent", ""), ("spent", ""), ("answered", "ok")]
    assert events == [("sent", ""), *unsure, ("retried", "server_error"), *sound]


def test_events_tell_of_a_failure_once(tmp_path: Path) -> None:
    events = told(tmp_path, [CALL], lambda asked: status(422))
    assert events == [("sent", ""), ("failed", "rejected")]


def test_a_call_that_joins_another_is_told_as_cached(tmp_path: Path) -> None:
    kinds: list[str] = []

    async def check(engine: ms.Engine, server: ChatServer) -> None:
        engine.events.subscribe(lambda event: kinds.append(event.kind))
        await asyncio.gather(*(engine.ask(CALL) for _ in range(3)))

    with_engine(tmp_path, check)
    assert sorted(kinds) == ["answered", "cached", "cached", "sent"]
