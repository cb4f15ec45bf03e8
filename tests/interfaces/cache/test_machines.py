"""Machines with cache folders of their own that share one server: together they pay once for each answer, and a server
that is lost stops a run that the same command goes on with."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import SMALL, SMALL_PROMPTS, Done, Provider, environment, finish, ids_of, lines_of, scores_of, start
from endpoints import CANARY
from shared_server import KEEPING, REDIS, VALKEY, SharedServer, free_port

from millstream.engine.server_address import PASSWORD_VARIABLE

pytestmark = pytest.mark.process

CONCURRENCY = 32
# What a machine prints at its end: what it was answered, and how much of it it did not send itself.
PROGRAM = """
import asyncio, json, sys
import millstream as ms

async def main(address, base_url, count, first):
    calls = (ms.Call("sim/open", f"shared {(first + n) % count}", max_tokens=20) for n in range(count))
    right = cached = 0
    async with ms.Engine(ms.Lane("sim/open", concurrency=CONCURRENCY), base_url=base_url, cache=address) as engine:
        open("has begun", "w").close()
        async for outcome in engine.run(calls):
            right += outcome.reply is not None
            cached += outcome.cached
    print(json.dumps([right, cached]))

asyncio.run(main(*sys.argv[1:3], *map(int, sys.argv[3:])))
""".replace("CONCURRENCY", str(CONCURRENCY))


def machine(home: Path, address: str, provider: Provider, count: int, first: int) -> subprocess.Popen[str]:
    """A process with a home of its own, which asks all calls, beginning with the `first`."""
    home.mkdir()
    command = [sys.executable, "-P", "-c", PROGRAM, address, provider.base_url, str(count), str(first)]
    piped = subprocess.PIPE
    return subprocess.Popen(command, cwd=home, env=environment(home), stdout=piped, stderr=piped, text=True)


def await_calls(provider: Provider, count: int, within_s: float) -> None:
    until = time.monotonic() + within_s
    while provider.calls() < count:
        assert time.monotonic() < until, f"{provider.calls()} of {count} calls came"
        time.sleep(0.05)


def check_sent_once(provider: Provider, count: int, done: list[Done]) -> None:
    """Both machines have every answer, each was sent once, and what one sent is what the other did not."""
    assert [each.code for each in done] == [0, 0], done
    ended = [json.loads(each.out) for each in done]
    assert [right for right, _ in ended] == [count, count]
    assert sum(count - cached for _, cached in ended) == count
    received = provider.received()
    assert (len(received), set(received.values())) == (count, {1})


# The promise's whole size is for the long tests.
SIZES = [1_000, pytest.param(50_000, marks=[pytest.mark.long, pytest.mark.timeout(600)])]


@pytest.mark.parametrize("count", SIZES)
@pytest.mark.parametrize("kind", [VALKEY, REDIS])
def test_two_machines_that_ask_the_same_send_each_call_once(
    provider: Provider, tmp_path: Path, count: int, kind: str
) -> None:
    with SharedServer(tmp_path / "server", kind=kind) as server:
        machines = [
            machine(tmp_path / str(first), server.address, provider, count, first) for first in (0, 2 * count // 3)
        ]
        check_sent_once(provider, count, [finish(each, 300) for each in machines])


@pytest.mark.parametrize("count", SIZES)
def test_a_server_that_is_killed_and_started_again_in_the_middle_has_no_call_sent_twice(
    provider: Provider, tmp_path: Path, count: int
) -> None:
    with SharedServer(tmp_path / "server", *KEEPING, "--appendfsync", "always") as server:
        machines = [
            machine(tmp_path / str(first), server.address, provider, count, first) for first in (0, 2 * count // 3)
        ]
        # A server that is away when a machine begins ends that one.
        until = time.monotonic() + 60
        while not all((tmp_path / str(first) / "has begun").exists() for first in (0, 2 * count // 3)):
            assert time.monotonic() < until, "a machine has not begun"
            time.sleep(0.05)
        for part in (1, 2, 3):
            await_calls(provider, part * count // 4, 120)
            server.kill()
            time.sleep(0.5)
            server.start()
        check_sent_once(provider, count, [finish(each, 300) for each in machines])


@pytest.mark.long  # its leases last until it counts as ended
def test_of_a_machine_that_is_killed_only_what_was_not_on_the_server_yet_is_sent_again(
    provider: Provider, tmp_path: Path
) -> None:
    count = 6_000
    with SharedServer(tmp_path / "server") as server:
        killed = machine(tmp_path / "killed", server.address, provider, count, 0)
        other = machine(tmp_path / "other", server.address, provider, count, 2 * count // 3)
        await_calls(provider, count // 4, 60)
        killed.kill()
        finish(killed)
        # A machine that has nothing of the killed one's.
        again = machine(tmp_path / "again", server.address, provider, count, 0)
        done = [finish(each, 100) for each in (other, again)]
    assert [each.code for each in done] == [0, 0], done
    assert [json.loads(each.out)[0] for each in done] == [count, count]
    received = provider.received()
    assert len(received) == count
    # What was in flight, and the answers of a few turns of its loop that were on their way to the server.
    assert count < provider.calls() <= count + 8 * CONCURRENCY


def run(address: str, provider: Provider, *more: str) -> tuple[str, ...]:
    where = ("--base-url", provider.base_url, "--cache", address, "--out", "run", "--no-progress", "--no-report")
    return ("run", "millstone", "--model", "sim/open", *where, *more)


@pytest.mark.needs_benchmark("millstone")
def test_a_grid_that_another_machine_has_run_is_paid_for_once_and_gives_the_same_scores(
    provider: Provider, tmp_path: Path
) -> None:
    with SharedServer(tmp_path / "server", "--requirepass", CANARY) as server:
        homes = [tmp_path / name for name in ("one", "two")]
        for home in homes:
            home.mkdir()
            secret = {PASSWORD_VARIABLE: CANARY}
            done = finish(start(home, *run(server.address, provider, *SMALL), **secret))
            assert done.code == 0, done.err
            assert CANARY not in done.out + done.err
            assert len(set(ids_of(home / "run"))) == SMALL_PROMPTS
        assert f"{SMALL_PROMPTS} answers" in done.out or "all from the cache" in done.out, done.out
        refused = finish(start(homes[0], *run(server.address, provider, *SMALL, "--trials", "3"), PASSWORD=CANARY))
    assert provider.calls() == SMALL_PROMPTS
    assert scores_of(homes[0] / "run") == scores_of(homes[1] / "run")
    assert refused.code != 0
    written = [path for home in homes for path in home.rglob("*") if path.is_file()]
    assert len(written) > 10
    assert [path for path in written if CANARY.encode() in path.read_bytes()] == []


@pytest.mark.long  # the leases of the command that was stopped last until it counts as ended
@pytest.mark.needs_benchmark("millstone")
def test_a_server_that_stays_away_is_a_fault_of_ours_and_the_same_command_goes_on(
    provider: Provider, tmp_path: Path
) -> None:
    provider.set_faults("slow_body=0.2")
    with SharedServer(tmp_path / "server", *KEEPING) as server:
        grid = ("--limit", "3", "--templates", "4", "--trials", "3", "--concurrency", "4")
        command = run(server.address, provider, *grid, "--patience", "1s")
        process = start(tmp_path, *command)
        provider.await_calls(4)
        server.kill()
        done = finish(process)
        assert done.code == 5, done
        assert "the shared cache" in done.err
        assert "start its server, then resume" in done.err
        kept = len(lines_of(tmp_path / "run" / "records.jsonl"))
        assert kept == provider.calls()
        assert len(lines_of(tmp_path / "run" / "failures.jsonl")) == 0
        server.start()
        provider.set_faults()
        done = finish(start(tmp_path, *run(server.address, provider, *grid)), 60)
        assert done.code == 0, done
    assert len(set(ids_of(tmp_path / "run"))) == 3 * 4 * 11 * 3 == provider.calls()


@pytest.mark.needs_benchmark("millstone")
@pytest.mark.parametrize(
    ("variables", "line"),
    [
        ({}, "can't be reached ("),
        ({"hidden": "redis"}, "needs the package redis: pip install 'redis>=8.1'"),
    ],
)
def test_what_a_shared_cache_lacks_is_said_before_anything_is_written(
    provider: Provider, tmp_path: Path, variables: dict[str, str], line: str
) -> None:
    more = {}
    if "hidden" in variables:
        hiding = tmp_path / "in its place"
        hiding.mkdir()
        (hiding / "redis.py").write_text("raise ModuleNotFoundError('hidden by the test', name='redis')")
        more["PYTHONPATH"] = str(hiding)
    done = finish(start(tmp_path, *run(f"redis://127.0.0.1:{free_port()}", provider, *SMALL), **more))
    assert done.code == 5, done
    assert line in done.err.splitlines()[-1]
    assert provider.calls() == 0


@pytest.mark.needs_benchmark("millstone")
def test_nothing_of_the_server_is_imported_where_none_is_named(provider: Provider, tmp_path: Path) -> None:
    hiding = tmp_path / "in its place"
    hiding.mkdir()
    (hiding / "redis.py").write_text("raise RuntimeError('imported')")
    done = finish(start(tmp_path, *run(str(tmp_path / "cache"), provider, *SMALL), PYTHONPATH=str(hiding)))
    assert done.code == 0, done
