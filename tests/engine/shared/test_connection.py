"""The connection to a shared server: what it asks together, what it does when the server is away, which it refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from certificates import make_certificate
from raw_server import RawServer, Visit
from shared_server import FORGETTING, KEEPING, REDIS, VALKEY, SharedServer, free_port

from millstream.engine.fault import LocalFault
from millstream.engine.server_address import ServerAddress, address_of
from millstream.engine.shared.connection import Reply, Script, SharedConnection

ECHO = Script("#!lua flags=no-writes\nreturn ARGV[1]")
ADD = Script("#!lua\nreturn redis.call('INCRBY', KEYS[1], ARGV[1])")
WRITE = Script("#!lua\nreturn redis.call('SET', KEYS[1], ARGV[1])")
WRITE_ANYWAY = Script("#!lua flags=allow-oom\nreturn redis.call('SET', KEYS[1], ARGV[1])")
WRONG = Script("#!lua\nreturn redis.call('LPUSH', KEYS[1], ARGV[1])")


def connected(address: str, work: Callable[[SharedConnection], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    """Run work with an open connection, which is closed after it."""

    async def within() -> Any:
        connection = SharedConnection(address_of(address), **options)
        await connection.open()
        try:
            return await work(connection)
        finally:
            await connection.close()

    return asyncio.run(asyncio.wait_for(within(), 30))


def refusal(address: str, **options: Any) -> str:
    async def nothing(_: SharedConnection) -> None:
        pass

    with pytest.raises(LocalFault) as raised:
        connected(address, nothing, **options)
    return str(raised.value)


@pytest.mark.parametrize("kind", [VALKEY, REDIS])
def test_what_is_asked_in_one_turn_goes_out_together_and_in_order(tmp_path: Path, kind: str) -> None:
    async def work(connection: SharedConnection) -> list[Reply]:
        return list(await asyncio.gather(*(connection.ask(ECHO, (), (b"%d" % number,)) for number in range(3000))))

    with SharedServer(tmp_path, kind=kind) as server:
        assert connected(server.address, work) == [b"%d" % number for number in range(3000)]
        stats = server.say("INFO", "commandstats").decode()
        assert "cmdstat_evalsha:calls=3001," in stats  # and the proof of rights
        assert "cmdstat_script|load:calls=2," in stats


def test_a_script_that_a_killed_server_did_not_answer_is_run_again_when_it_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    again: list[bool] = []

    async def work(connection: SharedConnection) -> None:
        connection.on_again = again.append
        first_uptime_s = connection.uptime_s
        assert await connection.ask(ADD, (b"n",), (b"1",)) == 1
        server.kill()
        waiting = [connection.ask(ADD, (b"n",), (b"1",)) for _ in range(5)]
        await asyncio.sleep(0.5)
        assert "away, " in repr(connection)
        assert not any(task.done() for task in waiting)
        await asyncio.to_thread(server.start)
        assert [await task for task in waiting] == [2, 3, 4, 5, 6]
        assert "connected, 0 asked" in repr(connection)
        assert connection.uptime_s < first_uptime_s + 2

    with SharedServer(tmp_path, *KEEPING) as server, caplog.at_level(logging.WARNING, "millstream"):
        connected(server.address, work)
    assert again == [True]
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith(f"the shared cache {server.address}/0 does not answer (")
    assert line.endswith("): calls wait for it")


def test_a_silent_server_is_taken_for_gone_at_the_deadline_and_asked_again(tmp_path: Path) -> None:
    again: list[bool] = []

    async def work(connection: SharedConnection) -> Reply:
        connection.on_again = again.append
        await connection.ask(ECHO, (), (b"1",))
        server.stop_answering()
        task = connection.ask(ECHO, (), (b"2",))
        await asyncio.sleep(1.0)
        assert not task.done()
        assert connection.is_away
        server.stop_answering(False)
        return await task

    with SharedServer(tmp_path) as server:
        assert connected(server.address, work, deadline_s=0.3) == b"2"
    assert again[-1:] == [False]


def test_after_its_patience_it_says_once_that_the_server_is_lost_and_goes_on_trying(tmp_path: Path) -> None:
    lost: list[str] = []

    async def work(connection: SharedConnection) -> Reply:
        connection.on_lost = lost.append
        server.kill()
        task = connection.ask(ECHO, (), (b"1",))
        await asyncio.sleep(1.5)
        assert len(lost) == 1
        await asyncio.to_thread(server.start)
        return await task

    with SharedServer(tmp_path) as server:
        assert connected(server.address, work, patience_s=0.2) == b"1"
    assert lost[0].startswith(f"the shared cache {server.address}/0 has not answered for ")
    assert lost[0].endswith("): start its server, then resume")


def test_what_a_server_refuses_for_lack_of_memory_is_said_and_nothing_else_is_held_up(tmp_path: Path) -> None:
    async def work(connection: SharedConnection) -> list[Reply]:
        asked = [(WRITE, b"a"), (WRITE_ANYWAY, b"b"), (WRITE, b"c")]
        return [await connection.ask(script, (key,), (b"x",)) for script, key in asked]

    with SharedServer(tmp_path, "--maxmemory", "1mb", "--save", "") as server:
        first, second, third = connected(server.address, work)
    assert first is None
    assert second == b"OK"
    assert third is None


def test_a_script_that_the_server_can_not_run_counts_as_a_server_that_does_not_answer(tmp_path: Path) -> None:
    lost: list[str] = []

    async def work(connection: SharedConnection) -> Reply:
        connection.on_lost = lost.append
        await connection.ask(WRITE, (b"a",), (b"x",))
        task = connection.ask(WRONG, (b"a",), (b"x",))
        others = [await connection.ask(ECHO, (), (b"1",)) for _ in range(3)]
        await asyncio.sleep(1.0)
        assert others == [b"1"] * 3
        assert not task.done()
        server.say("DEL", "a")
        return await task

    with SharedServer(tmp_path) as server:
        assert connected(server.address, work, patience_s=0.2) == 1
    assert "WRONGTYPE" in lost[0]


def test_scripts_that_the_server_has_forgotten_are_given_to_it_again(tmp_path: Path) -> None:
    async def work(connection: SharedConnection) -> Reply:
        await connection.ask(ECHO, (), (b"1",))
        server.say("SCRIPT", "FLUSH")
        return await connection.ask(ECHO, (), (b"2",))

    with SharedServer(tmp_path) as server:
        assert connected(server.address, work) == b"2"


def test_an_address_where_nothing_listens_is_refused_in_a_line() -> None:
    port = free_port()
    line = refusal(f"redis://127.0.0.1:{port}/2")
    assert line.startswith(f"the shared cache redis://127.0.0.1:{port}/2 can't be reached (")
    assert line.endswith("): start its server, or correct --cache")


def test_a_server_of_another_protocol_is_refused_in_a_line() -> None:
    async def http(visit: Visit) -> None:
        await visit.some()
        await visit.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async def attempt() -> str:
        async with RawServer(http) as server:
            with pytest.raises(LocalFault) as raised:
                await SharedConnection(ServerAddress("127.0.0.1", server.port)).open()
            return str(raised.value)

    assert "can't be reached (" in asyncio.run(asyncio.wait_for(attempt(), 20))


def test_a_wrong_password_is_refused_with_the_names_of_the_variables_and_without_itself(tmp_path: Path) -> None:
    async def work(connection: SharedConnection) -> Reply:
        return await connection.ask(ECHO, (), (b"1",))

    with SharedServer(tmp_path, "--requirepass", "right-one") as server:
        assert connected(server.address, work, password="right-one") == b"1"
        for options in ({}, {"password": "wrong-one"}, {"user": "somebody", "password": "wrong-one"}):
            line = refusal(server.address, **options)
            assert line.startswith(f"the server of the shared cache {server.address}/0 refuses this user (")
            assert line.endswith("): set MILLSTREAM_CACHE_USER and MILLSTREAM_CACHE_PASSWORD, or its rights")
            assert "wrong-one" not in line
        assert "right-one" not in repr(SharedConnection(address_of(server.address), password="right-one"))


def test_a_user_without_the_rights_that_scripts_need_is_refused_and_one_with_them_is_enough(tmp_path: Path) -> None:
    async def work(connection: SharedConnection) -> Reply:
        return await connection.ask(ECHO, (), (b"1",))

    rights = ["+evalsha", "+script|load", "+info", "+select", "+get", "+getrange", "+set", "+exists", "+del", "+time"]
    with SharedServer(tmp_path) as server:
        for left_out in ("+evalsha", "+script|load", "+info", "+set"):
            server.say("ACL", "SETUSER", "some", "reset", "on", ">pw", "~millstream:1:*", *(set(rights) - {left_out}))
            assert "refuses this user (" in refusal(server.address, user="some", password="pw")
        server.say("ACL", "SETUSER", "some", "reset", "on", ">pw", "~millstream:1:*", *rights)
        assert connected(server.address + "/1", work, user="some", password="pw") == b"1"


@pytest.mark.parametrize("policy", ["allkeys-lru", "volatile-ttl"])
def test_a_server_that_drops_keys_when_it_is_full_is_refused(tmp_path: Path, policy: str) -> None:
    with SharedServer(tmp_path, "--maxmemory", "100mb", "--maxmemory-policy", policy) as server:
        assert f"maxmemory-policy {policy}" in refusal(server.address)


def test_a_cluster_is_refused(tmp_path: Path) -> None:
    with SharedServer(tmp_path, "--cluster-enabled", "yes", "--cluster-port", str(free_port())) as server:
        assert refusal(server.address).endswith("is a cluster: use a server that is none")


def test_a_replica_is_refused(tmp_path: Path) -> None:
    with SharedServer(tmp_path, "--replicaof", "127.0.0.1 1") as server:
        assert "is a replica" in refusal(server.address)


@pytest.mark.parametrize(("options", "remarks"), [(FORGETTING, 1), (KEEPING, 0), (("--save", "3600 1"), 0)])
def test_a_server_that_keeps_nothing_on_disk_is_remarked_upon_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, options: tuple[str, ...], remarks: int
) -> None:
    async def work(connection: SharedConnection) -> Reply:
        return await connection.ask(ECHO, (), (b"1",))

    with SharedServer(tmp_path, *options) as server, caplog.at_level(logging.WARNING, "millstream"):
        connected(server.address, work)
    lines = [record.getMessage() for record in caplog.records]
    assert len([line for line in lines if "writes nothing to its disk" in line]) == remarks == len(lines)


def test_a_server_with_tls_is_used_if_its_certificate_is_vouched_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(connection: SharedConnection) -> Reply:
        return await connection.ask(ECHO, (), (b"1",))

    certificate, key = make_certificate(tmp_path)
    port = free_port()
    files = ("--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate)
    options = ("--tls-port", str(port), *files, "--tls-auth-clients", "no", "--save", "")
    with SharedServer(tmp_path / "server", *options, kind=REDIS):
        assert "certificate verify failed" in refusal(f"rediss://localhost:{port}")
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        assert connected(f"rediss://localhost:{port}", work) == b"1"
        assert "certificate" in refusal(f"rediss://127.0.0.1:{port}")
        assert "can't be reached (" in refusal(f"redis://localhost:{port}")
