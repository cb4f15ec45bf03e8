"""Answers that machines share: each call is sent once, whoever asks, and whatever happens to a machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from chat_server import until
from machines import MODEL, Machine, machine
from scripted import ScriptedProvider
from shared_server import REDIS, VALKEY, SharedServer

from millstream.engine.call import Call, Failure
from millstream.engine.endpoint import Fault, Response
from millstream.engine.shared.answers import value_entry, value_of
from millstream.engine.store.entries import StoredAnswer, StoredFailure

SAME = Call(MODEL, "same")
KEY = bytes(range(32))
ANSWER = StoredAnswer("script://", b"{}", 7, 0, 1_700_000_000.5, Response(200, b"x" * 5000))
FAILURE = StoredFailure("script://", 1_700_000_001.5, Failure("rejected", "400", 400), None)


@pytest.fixture(name="server")
def running_server(tmp_path: Path) -> Any:
    with SharedServer(tmp_path / "server") as running:
        yield running


def with_machines(
    server: SharedServer,
    folder: Path,
    work: Callable[..., Awaitable[Any]],
    provider: ScriptedProvider | None = None,
    count: int = 2,
    **options: Any,
) -> Any:
    """Run work with some machines on one server."""

    async def within() -> Any:
        async with AsyncExitStack() as stack:
            ours = [
                await stack.enter_async_context(machine(server.address, folder / str(number), provider, **options))
                for number in range(count)
            ]
            return await work(*ours)

    return asyncio.run(asyncio.wait_for(within(), 50))


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "writes nothing to its disk" not in record.getMessage()]


async def claimed(of: Machine, key: bytes = KEY) -> object:
    """What the server says to one machine about a key."""
    future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
    of.answers.claim(key, future.set_result)
    return await future


async def put(into: Machine, entry: StoredAnswer | StoredFailure) -> None:
    """Stores an entry in one machine's cache and on the server."""
    stored = asyncio.Event()
    into.cache.put_entry(KEY, entry, lambda _: stored.set())
    await stored.wait()
    into.answers.put(KEY)
    await until(lambda: "0 to put" in repr(into.answers))


@pytest.mark.parametrize("kind", [VALKEY, REDIS])
def test_what_one_machine_was_answered_the_other_has_without_sending(tmp_path: Path, kind: str) -> None:
    provider = ScriptedProvider(lambda prompt, _: prompt * 2000, latency_s=0.01)  # a body that is stored apart

    async def work(first: Machine, second: Machine) -> None:
        mine = await first.ask(SAME)
        await until(lambda: len(server.keys("*answer*")) == 1)
        theirs = await second.ask(SAME)
        assert not mine.cached
        assert theirs.cached
        assert theirs.attempts == 0
        assert theirs.reply == mine.reply
        assert theirs.key == mine.key
        stored = [each.cache.get(bytes.fromhex(mine.key)) for each in (first, second)]
        assert stored[0] == stored[1] is not None
        assert (await second.ask(SAME)).cached

    with SharedServer(tmp_path / "server", kind=kind) as server:
        with_machines(server, tmp_path, work, provider)
        assert provider.counts() == {"same": 1}
        assert server.keys("*lease*") == server.keys("*engine*") == set()


def test_calls_that_several_machines_want_at_once_are_sent_once(tmp_path: Path, server: SharedServer) -> None:
    provider = ScriptedProvider(latency_s=0.05)

    async def work(*machines: Machine) -> None:
        calls = [Call(MODEL, f"prompt {number}") for number in range(40)]
        asked = [each.ask(call) for call in calls for each in machines for _ in range(2)]
        outcomes = await asyncio.gather(*asked)
        assert {outcome.reply.text for outcome in outcomes if outcome.reply} == {
            f"answer to prompt {number}" for number in range(40)
        }

    with_machines(server, tmp_path, work, provider, count=3)
    assert set(provider.counts().values()) == {1}
    assert len(provider.arrivals) == 40
    assert len(server.keys("*answer*")) == 40
    assert server.keys("*lease*") == set()


def test_engines_on_one_cache_folder_ask_the_server_once(tmp_path: Path, server: SharedServer) -> None:
    provider = ScriptedProvider(latency_s=0.2)

    async def work() -> None:
        async with (
            machine(server.address, tmp_path / "one", provider) as first,
            machine(server.address, tmp_path / "one", provider) as second,
        ):
            outcomes = await asyncio.gather(first.ask(SAME), second.ask(SAME))
            assert sorted(outcome.cached for outcome in outcomes) == [False, True]

    asyncio.run(asyncio.wait_for(work(), 50))
    assert len(provider.arrivals) == 1


def test_a_call_that_ends_without_an_answer_gives_its_lease_back(tmp_path: Path, server: SharedServer) -> None:
    faults = [Fault("rejected", "400 bad request", "never", 400)]
    provider = ScriptedProvider(lambda *_: faults.pop() if faults else None, latency_s=0.01)

    async def work(first: Machine, second: Machine) -> None:
        assert (await first.ask(SAME)).failure is not None
        assert (await second.ask(SAME)).reply is not None

    with_machines(server, tmp_path, work, provider)
    assert len(provider.arrivals) == 2


@pytest.mark.parametrize("after_s", [0.0, 0.1])
def test_a_caller_who_leaves_before_or_after_its_claim_is_answered_gives_the_lease_back(
    tmp_path: Path, server: SharedServer, after_s: float
) -> None:
    provider = ScriptedProvider(latency_s=0.5)

    async def work(first: Machine, second: Machine) -> None:
        task = asyncio.create_task(first.ask(SAME))
        await asyncio.sleep(after_s)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        began = asyncio.get_running_loop().time()
        assert (await second.ask(SAME)).reply is not None
        # Else it would wait until the first engine has ended.
        assert asyncio.get_running_loop().time() - began < 10

    with_machines(server, tmp_path, work, provider)


def test_a_lease_stays_with_an_engine_that_lives_and_is_taken_from_one_that_has_ended(
    tmp_path: Path, server: SharedServer
) -> None:
    async def work(first: Machine, second: Machine) -> None:
        assert await claimed(first) == "ours"
        assert await claimed(first) == "ours"
        until_s = asyncio.get_running_loop().time() + 2.0
        while asyncio.get_running_loop().time() < until_s:
            assert await claimed(second) == "taken"
            await asyncio.sleep(0.05)
        await first.vanish()
        waited = 0
        while await claimed(second) == "taken":
            waited += 1
            await asyncio.sleep(0.05)
        assert waited > 0

    with_machines(server, tmp_path, work, ended_s=1.5, sign_every_s=0.2, close_s=0.1)


def test_after_a_break_nobody_takes_a_lease_over_before_the_others_could_show_that_they_live(tmp_path: Path) -> None:
    async def work(first: Machine, second: Machine) -> None:
        await asyncio.sleep(2.0)  # from here on the second one may take over
        assert await claimed(first) == "ours"
        server.kill()
        task = asyncio.create_task(claimed(second))
        await asyncio.sleep(2.2)  # the first one's sign of life is too old by now
        await asyncio.to_thread(server.start)
        assert await task == "taken"
        assert await claimed(first) == "ours"
        assert await claimed(second) == "taken"

    with SharedServer(tmp_path / "server", "--appendonly", "yes") as server:
        with_machines(server, tmp_path, work, ended_s=2.0, sign_every_s=0.2)


@pytest.mark.parametrize("entry", [ANSWER, FAILURE])
def test_an_entry_comes_to_the_other_machine_as_it_is(
    tmp_path: Path, server: SharedServer, entry: StoredAnswer | StoredFailure
) -> None:
    async def work(first: Machine, second: Machine) -> None:
        await put(first, entry)
        assert await claimed(second) == "stored"
        for each in (first, second):
            got = each.cache.failure(KEY) if isinstance(entry, StoredFailure) else each.cache.get(KEY)
            assert got is not None
            assert (got.received_at, got.response) == (entry.received_at, entry.response)
        # It was of no use: then the machine may ask for another one.
        assert await claimed(second) == "ours"
        second.answers.leave(KEY)
        # Who has not seen it gets it still.
        assert await claimed(first) == "stored"

    with_machines(server, tmp_path, work)


def test_an_earlier_answer_takes_no_later_ones_place(tmp_path: Path, server: SharedServer) -> None:
    async def work(first: Machine, second: Machine) -> None:
        for each, entry in ((first, FAILURE), (second, ANSWER)):
            await put(each, entry)

    with_machines(server, tmp_path, work)
    key = b"millstream:1:answer:" + KEY
    assert isinstance(value_entry(KEY, server.say("GET", key).partition(b"\r\n")[2][:-2]), StoredFailure)


def damaged(value: bytes) -> bytes:
    return value[:40] + bytes([value[40] ^ 1]) + value[41:]


@pytest.mark.parametrize(
    "value",
    [b"", b"a", b"something else altogether", damaged(value_of(KEY, ANSWER)), value_of(bytes(32), ANSWER)],
    ids=["empty", "short", "foreign", "damaged", "another key's"],
)
def test_a_value_that_is_no_answer_to_this_call_counts_as_none(
    tmp_path: Path, server: SharedServer, value: bytes
) -> None:
    async def work(first: Machine) -> None:
        server.say("SET", b"millstream:1:answer:" + KEY, value)
        assert await claimed(first) == "ours"

    with_machines(server, tmp_path, work, count=1)


def test_a_key_of_another_type_counts_as_none_and_is_written_over(tmp_path: Path, server: SharedServer) -> None:
    async def work(first: Machine, second: Machine) -> None:
        mine = await first.ask(SAME)
        await until(lambda: len(server.keys("*answer*")) == 1)
        (key,) = server.keys("*answer*")
        server.say("DEL", key)
        server.say("LPUSH", key, "x")
        assert not (await second.ask(SAME)).cached
        await until(lambda: server.say("TYPE", key) == b"+string\r\n")
        assert mine.reply is not None

    with_machines(server, tmp_path, work)


def test_a_value_is_read_only_as_far_as_an_answer_can_be_long() -> None:
    assert value_entry(KEY, value_of(KEY, ANSWER)) == ANSWER
    assert value_entry(KEY, value_of(KEY, FAILURE)) == FAILURE
    for length in range(len(value_of(KEY, FAILURE))):
        assert value_entry(KEY, value_of(KEY, FAILURE)[:length]) is None


def test_mode_strict_asks_the_server_and_claims_and_sends_nothing(tmp_path: Path, server: SharedServer) -> None:
    provider = ScriptedProvider(latency_s=0.01)

    async def work(first: Machine) -> None:
        await first.ask(SAME)
        async with machine(server.address, tmp_path / "strict", provider, mode="strict") as strict:
            assert (await strict.ask(SAME)).cached
            missing = await strict.ask(Call(MODEL, "another"))
            assert missing.failure is not None
            assert missing.failure.kind == "not_cached"
            assert server.keys("*lease*") == set()
            assert len(server.keys("*engine*")) == 1

    with_machines(server, tmp_path, work, provider, count=1)
    assert provider.counts() == {"same": 1}


def test_a_full_server_refuses_answers_but_no_claims_and_this_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider = ScriptedProvider(latency_s=0.05)

    async def work(first: Machine, second: Machine) -> None:
        calls = [Call(MODEL, f"prompt {number}") for number in range(10)]
        outcomes = await asyncio.gather(*(each.ask(call) for call in calls for each in (first, second)))
        assert all(outcome.reply for outcome in outcomes)

    with (
        SharedServer(tmp_path / "server", "--maxmemory", "1mb", "--save", "") as server,
        caplog.at_level(logging.WARNING, "millstream"),
    ):
        with_machines(server, tmp_path, work, provider)
        assert server.keys("*answer*") == server.keys("*lease*") == set()
    # One after the other, since the claims hold.
    assert set(provider.counts().values()) == {2}
    texts = warnings_in(caplog)
    assert len([text for text in texts if "is full" in text]) == 2  # one machine each
    assert len([text for text in texts if text.startswith("10 answers are in this machine's cache alone")]) == 2
    assert len(texts) == 4
