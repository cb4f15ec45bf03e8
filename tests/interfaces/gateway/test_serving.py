"""The gateway's life: what is refused before it listens, what it says, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from command_line import Done, Provider, finish, run_command, start
from gateways import CHAT, Client, get, post, request
from raw_server import RawServer, Visit, answer, http

TURN = [{"role": "user", "content": "hello"}]
ASKED = {"model": "sim/open", "max_tokens": 100, "messages": TURN}
CALLERS = '[gateway.callers.ann]\ntoken = "env:ANN"\nmax_cost = 1.0\n[prices."sim/open"]\ninput = 1.0\noutput = 1.0\n'
ANN = "token-of-ann"


@contextmanager
def serving(home: Path, *arguments: str, **variables: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """`millstream serve` in a process of its own, and its port."""
    file = home / "gateway-port"
    file.unlink(missing_ok=True)
    with start(home, "serve", "--port", "0", "--port-file", str(file), *arguments, **variables) as process:
        try:
            deadline = time.monotonic() + 20
            while not file.exists():
                assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1]
                time.sleep(0.02)
            yield process, int(file.read_text())
        finally:
            process.kill()


def asked(port: int, **headers: str) -> int:
    return asyncio.run(post(port, ASKED, **headers)).status


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> Done:
    process.send_signal(number)
    return finish(process)


def test_it_says_where_it_is_and_sums_up_at_its_end(tmp_path: Path, provider: Provider) -> None:
    with serving(tmp_path, "--base-url", provider.base_url) as (process, port):
        assert [asked(port), asked(port), asked(port, x_millstream_trial="0")] == [200] * 3
        done = ended(process)
    assert done.code == 0 and done.err == ""
    assert f"export OPENAI_BASE_URL=http://127.0.0.1:{port}/v1 OPENAI_API_KEY=any\n" in done.out
    assert f"export ANTHROPIC_BASE_URL=http://127.0.0.1:{port} ANTHROPIC_API_KEY=any\n" in done.out
    assert f"export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:{port} GEMINI_API_KEY=any\n" in done.out
    assert "3 requests, 1 from the cache, 0 failed; 2 calls sent, cost unknown (no price)" in done.out
    with serving(tmp_path, "--base-url", provider.base_url, "--json") as (process, port):
        assert [asked(port), asked(port)] == [200] * 2
        done = ended(process, signal.SIGINT)
    assert done.code == 0 and json.loads(done.out) == {
        "requests": 2, "from_cache": 2, "failed": 0, "sent": 0, "unpriced": 0, "cost": 0.0, "money": None,
        "stopped": [],
    }  # fmt: skip


def test_what_is_under_way_is_answered_before_it_ends(tmp_path: Path, provider: Provider) -> None:
    provider.set_faults("slow_headers=1.5")

    async def scenario(process: subprocess.Popen[str], port: int) -> None:
        async with Client(port) as client, Client(port) as other:
            client.post(ASKED)
            other.send(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            assert (await other.answer()).json["status"] == "ok"
            await asyncio.to_thread(provider.await_calls, 1)
            process.send_signal(signal.SIGTERM)
            while True:
                other.send(f"GET /health HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
                health = await other.answer()
                if health.status == 503:
                    break
            assert health.json["status"] == "stopping"
            other.post(ASKED)
            refused = await other.answer()
            assert (refused.status, refused.headers["retry-after"]) == (503, "30")
            with pytest.raises(OSError):
                await get(port, "/health")
            assert (await client.answer()).status == 200

    with serving(tmp_path, "--base-url", provider.base_url) as (process, port):
        asyncio.run(asyncio.wait_for(scenario(process, port), 30))
        done = finish(process)
    assert done.code == 0 and "1 request," in done.out


def test_a_large_answer_to_a_slow_client_comes_whole_after_a_signal(tmp_path: Path) -> None:
    """The client takes nothing for longer than connections get to be closed, then all of it."""
    text = "x" * (12 << 20)

    async def answering(visit: Visit) -> None:
        while await visit.request():
            await visit.send(http(answer(text)))

    async def scenario() -> Done:
        async with RawServer(answering) as server:
            with serving(tmp_path, "--base-url", server.base_url) as (process, port):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
                body = json.dumps(ASKED).encode()
                lines = [("Host", f"127.0.0.1:{port}"), ("Content-Type", "application/json")]
                writer.write(request("POST", CHAT, lines, body))
                head = await reader.readuntil(b"\r\n\r\n")
                process.send_signal(signal.SIGTERM)
                await asyncio.sleep(2.0)
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                whole = json.loads(await reader.readexactly(length))
                assert whole["choices"][0]["message"]["content"] == text
                writer.close()
                return await asyncio.to_thread(finish, process)

    done = asyncio.run(asyncio.wait_for(scenario(), 50))
    assert done.code == 0 and done.err == ""


def test_a_second_signal_cuts_off(tmp_path: Path, provider: Provider) -> None:
    provider.set_faults("silence=60")

    async def scenario(process: subprocess.Popen[str], port: int) -> None:
        async with Client(port) as client:
            client.post(ASKED)
            await asyncio.to_thread(provider.await_calls, 1)
            for _ in range(2):
                process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.3)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.answer()

    with serving(tmp_path, "--base-url", provider.base_url) as (process, port):
        asyncio.run(asyncio.wait_for(scenario(process, port), 30))
        done = finish(process, within_s=10)
    assert done.code == 143 and "cut off" in done.err and "Traceback" not in done.err


def test_a_port_in_use_is_a_local_fault(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = run_command(tmp_path, "serve", "--port", str(port))
    assert done.code == 5 and f"127.0.0.1:{port} can't be listened on" in done.err and done.err.count("\n") == 1


REFUSED: dict[str, tuple[tuple[str, ...], str, dict[str, str], str]] = {
    "beyond loopback without a token": (("--host", "0.0.0.0"), "", {}, "no token is set"),
    "a name without a token": (("--host", "gateway.example"), "", {}, "no token is set"),
    "an empty variable": ((), '[gateway]\ntoken = "env:TOKEN"\n', {}, "TOKEN must hold a token"),
    "a token that is too short": (
        (),
        '[gateway]\ntoken = "env:TOKEN"\n',
        {"TOKEN": "short"},
        "TOKEN must hold a token",
    ),
    "a token written out": ((), '[gateway]\ntoken = "sk-secret-value"\n', {}, "not shown"),
    "one token for two": (
        (),
        '[gateway]\ntoken = "env:A"\n[gateway.callers.b]\ntoken = "env:B"\n',
        {"A": "the-same-token", "B": "the-same-token"},
        "same token",
    ),
    "one variable for two": ((), '[gateway]\ntoken = "env:A"\n[gateway.callers.b]\ntoken = "env:A"\n', {}, "twice"),
    "an unknown key": ((), "[gateway]\nhost = 1\n", {}, "nearest: hosts"),
    "a caller without a token": ((), "[gateway.callers.b]\nrpm = 3\n", {}, "expected token"),
    "a caller's odd name": ((), '[gateway.callers."../x"]\ntoken = "env:A"\n', {}, "expected a name"),
    "an origin with a path": ((), '[gateway]\norigins = ["https://a.example/x"]\n', {}, "the origin of a page"),
    "a model that is none": ((), '[gateway.models]\nx = "gpt-4o"\n', {}, "provider/model"),
    "a budget that is none": ((), '[gateway.callers.b]\ntoken = "env:A"\nmax_cost = "1"\n', {}, "max_cost"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_not_be_served_safely_is_refused_in_one_line(tmp_path: Path, case: str) -> None:
    flags, configuration, variables, said = REFUSED[case]
    (tmp_path / "c.toml").write_text(configuration)
    done = run_command(tmp_path, "serve", "--port", "0", "--config", "c.toml", *flags, **variables)
    assert done.code == 2 and said in done.err and done.err.count("\n") == 1, done.err
    assert "sk-secret-value" not in done.err and done.out == ""


OWN = {
    "OPENAI_BASE_URL": "http://127.0.0.1:{}/v1",
    "ANTHROPIC_BASE_URL": "http://localhost:{}",
    "GOOGLE_GEMINI_BASE_URL": "http://[::1]:{}",
}


@pytest.mark.parametrize("variable", OWN)
def test_an_upstream_that_is_the_gateway_itself_is_refused(tmp_path: Path, variable: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    done = run_command(tmp_path, "serve", "--port", str(port), **{variable: OWN[variable].format(port)})
    assert done.code == 2 and f"{variable} leads to this gateway itself" in done.err and done.err.count("\n") == 1


def test_two_gateways_share_one_cache_and_one_budget(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "c.toml").write_text(CALLERS.replace("1.0\n[prices", "0.0002\n[prices"))
    homes = [tmp_path / "one", tmp_path / "two"]
    for home in homes:
        home.mkdir()
    files = ("--config", str(tmp_path / "c.toml"), "--cache", str(tmp_path / "cache"))
    flags = ("--base-url", provider.base_url, *files)
    with serving(homes[0], *flags, ANN=ANN) as (_, one), serving(homes[1], *flags, ANN=ANN) as (_, two):
        first = asyncio.run(post(one, ASKED, x_api_key=ANN))
        time.sleep(0.5)  # an answer leaves a moment before it is stored, where the other one can see it
        second = asyncio.run(post(two, ASKED, x_api_key=ANN))
        assert (first.status, second.status, second.is_cached, provider.calls()) == (200, 200, True, 1)
        texts = [{**ASKED, "messages": [{"role": "user", "content": f"q {n}"}]} for n in range(8)]
        answers = [asyncio.run(post(port, body, x_api_key=ANN)) for body in texts for port in (one, two)]
        assert {answer.status for answer in answers} == {200, 429}
        assert sum(answer.status == 200 and not answer.is_cached for answer in answers) + 1 == provider.calls() < 8


def test_a_kill_loses_no_answer_and_counts_what_was_under_way(tmp_path: Path, provider: Provider) -> None:
    (tmp_path / "c.toml").write_text(CALLERS)
    flags = ("--base-url", provider.base_url, "--config", "c.toml")

    async def cut(process: subprocess.Popen[str], port: int) -> None:
        assert (await post(port, ASKED, x_api_key=ANN)).status == 200
        await asyncio.sleep(0.5)  # an answer of the last few milliseconds may not be on disk yet (docs/gateway.md)
        provider.set_faults("silence=60")
        async with Client(port) as client:
            client.post({**ASKED, "max_tokens": 99}, CHAT, {"x-api-key": ANN})
            await asyncio.to_thread(provider.await_calls, 2)
            os.kill(process.pid, signal.SIGKILL)

    async def left(port: int) -> float:
        assert (await post(port, ASKED, x_api_key=ANN)).is_cached
        told = (await get(port, "/metrics", x_api_key=ANN)).body.decode()
        return float(told.split('millstream_caller_dollars_left{caller="ann"} ')[1].split("\n")[0])

    with serving(tmp_path, *flags, ANN=ANN) as (process, port):
        asyncio.run(asyncio.wait_for(cut(process, port), 30))
    with serving(tmp_path, *flags, ANN=ANN) as (_, port):
        # 30 tokens of an answer, 99 and the prompt at its worst, and what is left of a block of half a percent.
        assert 0.0001 < 1.0 - asyncio.run(left(port)) < 0.0052
    assert provider.calls() == 2
