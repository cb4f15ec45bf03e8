"""What ends a lane: a dead key, an empty account, a redirect, a limit, patience. What was answered is kept, the rest is
pending, and the next engine asks only that."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import COST, MODEL, PRICE, QUICK, Asked, ChatServer, Script, Step, held, settings_for, sound, status
from msgspec import structs
from virtual_time import run_with_sockets

import millstream as ms

COUNT = 20
PROMPTS = [f"prompt {number}" for number in range(COUNT)]
DEAD = status(401, "Incorrect API key provided", code="invalid_api_key")
EMPTY = status(429, "You exceeded your current quota", code="insufficient_quota", type="insufficient_quota")
ONE, TWO = "sk-one-0123456789", "sk-two-0123456789"
KEYS: dict[str, Any] = {
    "key_variables": {MODEL: ("ONE", "TWO")},
    "environment": {"LAB_KEY": "sk-lab-0123456789", "ONE": ONE, "TWO": TWO},
}


def calls(prompts: Sequence[str] = PROMPTS) -> list[ms.Call]:
    return [ms.Call(MODEL, prompt, max_tokens=20) for prompt in prompts]


class Ended:
    """How a run over the calls ended: its outcomes, its stops, and what the server was asked."""

    def __init__(self) -> None:
        self.outcomes: list[ms.Outcome] = []
        self.stops: tuple[ms.Stop, ...] = ()
        self.asked: list[Asked] = []
        self.spent = 0.0

    @property
    def answered(self) -> set[str]:
        return {str(outcome.call.input) for outcome in self.outcomes if outcome.reply is not None}


def ran(folder: Path, script: Script, prompts: Sequence[str] = PROMPTS, concurrency: int = 4, **more: Any) -> Ended:
    """A run in virtual time, which must leave nothing."""
    ended = Ended()

    async def main() -> None:
        async with ChatServer(script, latency_s=0.01) as server:
            made = settings_for(server.base_url, folder, ms.Lane(MODEL, concurrency=concurrency), **more)
            async with ms.Engine(settings=made) as engine:
                try:
                    async for outcome in engine.run(calls(prompts)):
                        ended.outcomes.append(outcome)
                except ms.Stopped as error:
                    ended.stops = error.stops
                statistics = engine.statistics()
                assert (statistics.in_flight, statistics.reserved) == (0, 0.0)
                ended.spent = statistics.spent
            ended.asked = server.asked

    run_with_sockets(main())
    return ended


def from_the(number: int, step: Step) -> Script:
    """The step for the request of that number and all after it."""
    count = 0

    def script(asked: Asked) -> Step | None:
        nonlocal count
        count += 1
        return step if count >= number else None

    return script


def check_resumed(folder: Path, before: Ended) -> None:
    """A next engine, before a sound server, asks what is pending and nothing else."""
    after = ran(folder, lambda asked: None)
    assert after.stops == () and after.answered == set(PROMPTS)
    assert Counter(asked.prompt for asked in after.asked) == Counter(set(PROMPTS) - before.answered)


@pytest.mark.parametrize(
    ("step", "reason"), [(DEAD, "dead_key"), (status(403, "forbidden"), "dead_key"), (EMPTY, "empty_account")]
)
@pytest.mark.parametrize("number", [1, 9])
def test_a_run_raises_what_stopped_its_lane_and_loses_nothing(
    step: Step, reason: str, number: int, tmp_path: Path
) -> None:
    ended = ran(tmp_path, from_the(number, step))
    (stop,) = ended.stops
    assert (stop.lane, stop.reason) == (MODEL, reason) and stop.detail and "\n" not in stop.detail
    # What was answered before was seen; what was refused is pending, so no outcome says that it failed.
    assert ended.answered == {asked.prompt for asked in ended.asked[: number - 1]}
    assert len(ended.outcomes) == number - 1
    # Those in flight, and the probe of a dead key.
    assert len(ended.asked) <= number - 1 + 4 + (reason == "dead_key")
    check_resumed(tmp_path, ended)


def test_a_redirect_stops_the_lane_and_no_key_goes_there(tmp_path: Path) -> None:
    async def main() -> tuple[list[str], list[Asked], list[Asked], ms.Stopped]:
        async with ChatServer() as elsewhere, ChatServer(latency_s=0.01) as server:
            moved = status(302, "moved", f"Location: {elsewhere.base_url}/chat/completions")
            server.script = from_the(3, moved)
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=1))
            seen = []
            async with ms.Engine(settings=made) as engine:
                with pytest.raises(ms.Stopped) as stopped:
                    async for outcome in engine.run(calls()):
                        seen.append(outcome.status)
            return seen, server.asked, elsewhere.asked, stopped.value

    seen, asked, elsewhere, stopped = run_with_sockets(main())
    assert [stop.reason for stop in stopped.stops] == ["redirect"]
    assert elsewhere == [] and len(asked) == 3
    assert seen == ["ok", "ok", "redirect"]


def test_of_two_keys_a_dead_one_leaves_all_calls_to_the_other(tmp_path: Path) -> None:
    ended = ran(tmp_path, lambda asked: DEAD if asked.key == ONE else None, **KEYS)
    assert ended.stops == () and ended.answered == set(PROMPTS)
    # Its share of the places, and a probe.
    assert 1 <= sum(asked.key == ONE for asked in ended.asked) <= 4 + 1
    assert Counter(asked.prompt for asked in ended.asked if asked.key == TWO) == Counter(PROMPTS)


@pytest.mark.parametrize("step", [DEAD, EMPTY])
def test_two_keys_that_end_stop_the_lane(step: Step, tmp_path: Path) -> None:
    ended = ran(tmp_path, from_the(5, step), **KEYS)
    (stop,) = ended.stops
    assert stop.lane == MODEL and len(ended.outcomes) == 4
    check_resumed(tmp_path, ended)


def test_one_refusal_of_a_key_that_lives_stops_nothing(tmp_path: Path) -> None:
    ended = ran(tmp_path, lambda asked: DEAD if asked.prompt == "prompt 3" and asked.number == 1 else None)
    assert ended.stops == () and ended.answered == set(PROMPTS)
    assert Counter(asked.prompt for asked in ended.asked) == Counter([*PROMPTS, "prompt 3"])


def test_a_key_that_dies_after_its_probe_was_rejected_stops_the_lane(tmp_path: Path) -> None:
    def script(asked: Asked) -> Step | None:
        # The probe of the first refusal shows that the key lives: only what it asks is wrong.
        return status(400) if asked.prompt == "prompt 0" and asked.number == 2 else DEAD

    ended = ran(tmp_path, script, concurrency=1)
    assert [outcome.status for outcome in ended.outcomes] == ["rejected"]
    assert [stop.reason for stop in ended.stops] == ["dead_key"]
    # Another refusal, and its probe.
    assert [asked.prompt for asked in ended.asked] == ["prompt 0"] * 2 + ["prompt 1"] * 2


def test_a_limit_of_cost_is_never_passed_and_stops_the_run(tmp_path: Path) -> None:
    # A call costs at most some 20 tokens of output and few of input; its answer has 15 in all.
    ended = ran(tmp_path, lambda asked: None, concurrency=1, prices={MODEL: PRICE}, max_cost=8 * COST)
    (stop,) = ended.stops
    assert stop.reason == "budget" and "max_cost" in stop.detail.replace("-", "_")
    assert 0 < ended.spent == len(ended.outcomes) * COST <= 8 * COST
    assert len(ended.asked) == len(ended.outcomes) < COUNT
    check_resumed(tmp_path, ended)


def test_a_server_that_only_fails_is_given_up_after_patience(tmp_path: Path) -> None:
    policy = structs.replace(QUICK, patience_s=30.0, probe_every_s=5.0, breaker_failures=4)
    ended = ran(tmp_path, lambda asked: status(503), policy=policy, prompts=PROMPTS)
    assert [stop.reason for stop in ended.stops] == ["patience"]
    assert ended.answered == set()
    # After some failures in a row only probes are sent, one every five seconds.
    assert len(ended.asked) <= 4 + 4 + 30 / 5 + 1
    check_resumed(tmp_path, ended)


def test_another_lane_of_the_run_goes_on(tmp_path: Path) -> None:
    other = [f"other {number}" for number in range(COUNT)]

    async def main() -> None:
        async with ChatServer(latency_s=0.01) as server:
            server.script = lambda asked: DEAD if asked.prompt.startswith("prompt") else None
            lanes = (ms.Lane(MODEL, concurrency=2), ms.Lane("lab/other", concurrency=2))
            async with ms.Engine(settings=settings_for(server.base_url, tmp_path, *lanes)) as engine:
                mixed = [each for pair in zip(calls(), (ms.Call("lab/other", p) for p in other)) for each in pair]  # noqa: B905
                seen = []
                with pytest.raises(ms.Stopped) as stopped:
                    async for outcome in engine.run(mixed):
                        seen.append(outcome)
                assert [stop.lane for stop in stopped.value.stops] == [MODEL]
                assert Counter(str(outcome.call.input) for outcome in seen if outcome.status == "ok") == Counter(other)

    run_with_sockets(main())


def test_what_was_read_ahead_for_a_stopped_lane_holds_up_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        stops = asyncio.Event()

        async def dead(asked: Asked) -> bool:
            await stops.wait()
            return await DEAD(asked)

        async with ChatServer(lambda asked: dead if asked.prompt.startswith("prompt") else None) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=1))
            async with ms.Engine(settings=made) as engine:
                prompts = [f"prompt {number}" for number in range(1_000)]
                others = [ms.Call("lab/other", f"other {number}") for number in range(10)]
                asyncio.get_running_loop().call_later(30.0, stops.set)
                seen = []
                with pytest.raises(ms.Stopped) as stopped:
                    async for outcome in engine.run([others[0], *calls(prompts), *others[1:]]):
                        seen.append(str(outcome.call.input))
                assert sorted(seen) == sorted(str(call.input) for call in others)
                assert [stop.lane for stop in stopped.value.stops] == [MODEL]

    run_with_sockets(main())


def test_ask_raises_the_same_and_asks_a_stopped_lane_for_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer(lambda asked: EMPTY) as server:
            made = settings_for(server.base_url, tmp_path)
            async with ms.Engine(settings=made) as engine:
                waiting = [asyncio.create_task(engine.ask(call)) for call in calls()[:3]]
                for task in waiting:
                    with pytest.raises(ms.Stopped, match="the account"):
                        await task
                count = len(server.asked)
                assert count <= 3
                for call in calls()[:5]:
                    with pytest.raises(ms.Stopped):
                        await engine.ask(call)
                assert len(server.asked) == count and engine.statistics().lanes[0].stopped

    run_with_sockets(main())


def test_a_halt_finishes_what_is_in_flight_and_leaves_the_rest(tmp_path: Path) -> None:
    async def main() -> None:
        release = asyncio.Event()
        async with ChatServer(lambda asked: held(release)) as server:
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=3))
            async with ms.Engine(settings=made) as engine:
                outcomes = engine.run(calls())
                first = asyncio.ensure_future(anext(outcomes))
                await asyncio.sleep(0.1)
                assert server.in_flight == 3
                engine.halt("interrupted", "somebody stopped it")
                await asyncio.sleep(0.1)
                assert not first.done()
                release.set()
                seen = [(await first).status]
                with pytest.raises(ms.Stopped, match="somebody stopped it") as stopped:
                    async for outcome in outcomes:
                        seen.append(outcome.status)
                assert seen == ["ok"] * 3 and len(server.asked) == 3
                assert [stop.reason for stop in stopped.value.stops] == ["interrupted"]
                with pytest.raises(ms.Stopped, match="somebody stopped it"):
                    await engine.ask(calls()[-1])
                # What is stored is still answered.
                assert (await engine.ask(calls()[0])).cached

    run_with_sockets(main())


def test_calls_that_back_off_are_pending_after_a_halt(tmp_path: Path) -> None:
    async def main() -> None:
        async with ChatServer(lambda asked: sound if asked.prompt == "prompt 0" else status(500)) as server:
            policy = structs.replace(QUICK, wait_min_s=30.0, wait_max_s=60.0, patience_s=600.0)
            made = settings_for(server.base_url, tmp_path, ms.Lane(MODEL, concurrency=2), policy=policy)
            async with ms.Engine(settings=made) as engine:
                asyncio.get_running_loop().call_later(5.0, engine.halt, "interrupted", "enough")
                seen = []
                with pytest.raises(ms.Stopped, match="enough"):
                    async for outcome in engine.run(calls()):
                        seen.append(outcome.status)
                assert seen == ["ok"] and asyncio.get_running_loop().time() == pytest.approx(5.0, abs=0.5)

    run_with_sockets(main())
