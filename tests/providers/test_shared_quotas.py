"""Quotas over a real socket: learned from headers, kept for the next process, and shared between processes."""

from __future__ import annotations

import asyncio
import itertools
import signal
import sys
import time
from bisect import bisect_left
from pathlib import Path

import pytest
from endpoints import CANARY, endpoint, transport
from raw_server import RawServer, Visit, answer, http
from torture import IS_LONG, record, times

from millstream import Call, Engine, Lane, Outcome, Settings
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import send
from millstream.engine.lanes.lane_files import notes_in
from millstream.engine.limits import Limit
from millstream.fixtures.provider import AccountQuota, ModelProvider, Options
from millstream.providers.table import Provider
from millstream.providers.transport.transport import LOOK_EVERY_S

# Engines in processes of their own.
pytestmark = pytest.mark.process

MODEL = "mylab/open"


def settings(base_url: str, folder: Path, lane: Lane, *keys: str) -> Settings:
    names = tuple(f"MYLAB_KEY_{number}" for number, _ in enumerate(keys, 1))
    return Settings(
        lanes=(lane,),
        providers={"mylab": Provider(base_url, "MYLAB_KEY_1")},
        key_variables={MODEL: names} if len(keys) > 1 else {},
        cache=folder,
        environment=dict(zip(names, keys, strict=True)),
        policy=RetryPolicy(wait_min_s=0.01, wait_max_s=0.05),
    )


async def ask(engine: Engine, *prompts: str) -> list[Outcome]:
    return [outcome async for outcome in engine.run(Call(MODEL, prompt) for prompt in prompts)]


# --- headers ---


def test_a_sound_answers_headers_are_looked_at_now_and_then_and_an_errors_always() -> None:
    async def told(visit: Visit) -> None:
        while (request := await visit.request()) is not None:
            is_error = b"an error" in request
            limit = "X-RateLimit-Limit-Requests: 60", "x-ratelimit-remaining-requests: 59", "X-Other: 1"
            await visit.send(http(answer("A"), *limit, status="429 Slow" if is_error else "200 OK"))

    async def scenario() -> tuple[list[bool], list[bool], float]:
        async with RawServer(told) as server, transport() as over:
            at = endpoint(over, server.base_url)
            looked: list[list[bool]] = []
            for prompt in ("an error", "fine"):
                began = time.perf_counter()
                request = at.encode(Call("sim/steady", prompt))
                responses = [await send(at, request) for _ in range(50)]
                expected = (Limit("requests", 60.0, 60.0, 59.0),)
                assert {at.limits(one) for one in responses if one.headers} == {expected}
                assert not [one for one in responses if "x-other" in one.headers]
                looked.append([bool(one.headers) for one in responses])
                took_s = time.perf_counter() - began
            await asyncio.sleep(LOOK_EVERY_S)
            assert (await send(at, request)).headers
            return looked[0], looked[1], took_s

    errors, sound, took_s = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert all(errors)
    assert sound[0] and sum(sound) <= 1 + took_s / LOOK_EVERY_S


def test_what_one_run_learned_the_next_begins_with(tmp_path: Path) -> None:
    """No quota is declared; the provider enforces one of 200 and says so."""

    async def scenario() -> None:
        async with ModelProvider(Options(quota=AccountQuota(requests=200, tokens=90_000))) as provider:
            first = settings(provider.base_url, tmp_path, Lane(MODEL, concurrency=2), CANARY)
            async with Engine(settings=first) as engine:
                assert engine.scheduler.routes.of(MODEL).lane.quota.rpm is None
                assert {outcome.status for outcome in await ask(engine, "a", "b", "c")} == {"ok"}
                quota = engine.scheduler.routes.of(MODEL).lane.quota
                assert (quota.rpm, quota.tpm) == (200.0, 90_000.0)
            async with Engine(settings=first) as engine:
                lane = engine.scheduler.routes.of(MODEL).lane
                assert (lane.quota.rpm, lane.quota.tpm) == (200.0, 90_000.0)
                # The minute that the first run began is this one's too.
                assert lane.used(asyncio.get_running_loop().time())[0] == 3
            declared = settings(provider.base_url, tmp_path, Lane(MODEL, rpm=50, tpm=1e6), CANARY)
            async with Engine(settings=declared) as engine:
                quota = engine.scheduler.routes.of(MODEL).lane.quota
                assert (quota.rpm, quota.tpm) == (50.0, 90_000.0)

    asyncio.run(asyncio.wait_for(scenario(), 30))
    ((path, note),) = notes_in(tmp_path / "lanes")
    assert (note.model, note.key) == (MODEL, "MYLAB_KEY_1")
    assert CANARY.encode() not in path.read_bytes()


# --- several keys ---

GOOD = ("sk-good-one-0123456789abcdef", "sk-good-two-0123456789abcdef")


def test_two_keys_are_both_used_and_a_wrong_one_is_left_out(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], set[str], list[tuple[str, str]]]:
        async with ModelProvider(Options(keys=GOOD)) as provider:
            keys = (GOOD[0], "sk-wrong-0123456789abcdef", GOOD[1])
            made = settings(provider.base_url, tmp_path, Lane(MODEL, concurrency=2), *keys)
            async with Engine(settings=made) as engine:
                found = await ask(engine, *(f"prompt {number}" for number in range(60)))
                stops = engine.scheduler.routes.of(MODEL).lane.stopped_keys
            used = {row.key for row in provider.log.rows() if row.status == 200}
            return found, used, [(key, stop.reason) for key, stop in stops]

    found, used, stops = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert {outcome.status for outcome in found} == {"ok"}
    assert len(used) == 2
    assert stops == [("MYLAB_KEY_2", "dead_key")]


def test_an_answer_is_the_same_whichever_key_paid_for_it(tmp_path: Path) -> None:
    async def scenario() -> tuple[list[Outcome], int]:
        async with ModelProvider(Options(keys=GOOD)) as provider:
            found = []
            for keys in ((GOOD[0],), (GOOD[1],), GOOD):
                made = settings(provider.base_url, tmp_path, Lane(MODEL), *keys)
                async with Engine(settings=made) as engine:
                    found += await ask(engine, "the same")
            return found, provider.log.total

    found, received = asyncio.run(asyncio.wait_for(scenario(), 30))
    assert received == 1
    assert [outcome.cached for outcome in found] == [False, True, True]
    assert len({outcome.key for outcome in found}) == 1


# --- several processes ---

# Too short for a whole minute, but in `make torture`.
SHARED_S = float(times(6, 150))

SENDER = """
import asyncio, itertools, sys
from pathlib import Path
from millstream import Call, Engine, Lane, Settings

async def main(base_url, folder, name, rpm, seconds):
    lane = Lane("sim/open", rpm=rpm, concurrency=16)
    settings = Settings(lanes=(lane,), base_url=base_url, cache=Path(folder), environment={})
    async with Engine(settings=settings) as engine:
        print("ready", flush=True)
        sys.stdin.readline()
        calls = (Call("sim/open", f"{name} {number}") for number in itertools.count())
        try:
            async with asyncio.timeout(seconds):
                async for outcome in engine.run(calls):
                    assert outcome.status == "ok", outcome
        except TimeoutError:
            pass

asyncio.run(main(*sys.argv[1:4], float(sys.argv[4]), float(sys.argv[5])))
"""


async def four_processes(base_url: str, folder: Path, rpm: int, seconds: float) -> list[asyncio.subprocess.Process]:
    """Started one by one; they begin to send at once."""
    started = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", SENDER, base_url, str(folder), f"process {number}", str(rpm), str(seconds)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        for number in range(4)
    ]
    for one in started:
        assert one.stdout is not None
        assert await one.stdout.readline() == b"ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
    return started


@pytest.mark.timeout(120 + 2 * SHARED_S)
def test_four_processes_stay_under_one_declared_quota_together_also_when_one_is_killed(tmp_path: Path) -> None:
    rpm = 240

    async def scenario() -> tuple[list[float], float]:
        async with ModelProvider() as provider:
            started = await four_processes(provider.base_url, tmp_path, rpm, SHARED_S)
            await asyncio.sleep(SHARED_S / 3)
            started[0].kill()
            killed_at = time.monotonic()
            for number, one in enumerate(started):
                _, complained = await one.communicate()
                assert one.returncode == (0 if number else -signal.SIGKILL), complained.decode()
            return sorted(row.at for row in provider.log.rows()), killed_at

    arrivals, killed_at = asyncio.run(asyncio.wait_for(scenario(), 60 + SHARED_S))
    # 99.5% of the quota spread over 60.5 s, and 1 + 1/200 of it at once; an arrival may be half a second late.
    spacing, burst = 60.5 / (0.995 * rpm), 1 + rpm / 200
    for first, last in itertools.combinations(range(len(arrivals)), 2):
        assert last - first + 1 <= burst + (arrivals[last] - arrivals[first] + 0.5) / spacing + 0.01
    # What was declared, from the first second on: no minute that begins with an arrival holds more.
    fullest = max(bisect_left(arrivals, at + 60.0) - number for number, at in enumerate(arrivals))
    assert fullest <= rpm
    # Nobody's share is lost with a process: those that are left use the whole quota.
    rest = [at for at in arrivals if at > killed_at + 0.5]
    assert len(rest) >= (0.95 if IS_LONG else 0.75) * (arrivals[-1] - killed_at - 0.5) / spacing
    if IS_LONG:
        assert arrivals[-1] - arrivals[0] > 120 and fullest >= 0.95 * rpm
    record(
        "8",
        len(arrivals),
        len(arrivals),
        f"four processes, one killed: the fullest minute had {fullest} of {rpm} requests",
    )
