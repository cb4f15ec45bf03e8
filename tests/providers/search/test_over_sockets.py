"""Search engines over real sockets: what is sent byte for byte, and that a key comes back in nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from endpoints import CANARY, transport
from loops import on_each_loop, run_on
from mocks import searching, why_no_aimock
from recorder import Recorder, recording
from search_shapes import ROWS, body, brave_error, target

from millstream.engine.call import Call, Failure, Outcome, Reply
from millstream.engine.endpoint import Fault, SendError, send
from millstream.providers.search.joined import Found, search
from millstream.providers.search.table import ENGINES
from millstream.providers.transport.endpoint import USER_AGENT, ModelEndpoint
from millstream.providers.transport.transport import Transport

in_each = pytest.mark.parametrize("name", ENGINES)


def endpoint(name: str, base_url: str, over: Transport) -> ModelEndpoint:
    row = ENGINES[name]
    return ModelEndpoint(row.protocol, target(name, base_url), row.authorizer(CANARY), over, 5.0)


async def once(name: str, base_url: str, **extra: Any) -> Reply | Fault:
    async with transport() as over:
        at = endpoint(name, base_url, over)
        try:
            return at.decode(await send(at, at.encode(Call(f"search/{name}", "blue & whale", extra=extra or None))))
        except SendError as error:
            return error.fault


async def joined(name: str, base_url: str, query: str, count: int) -> Found:
    async with transport() as over:
        at = endpoint(name, base_url, over)

        async def ask(call: Call) -> Outcome:
            result = at.decode(await send(at, at.encode(call)))
            if isinstance(result, Fault):
                return Outcome(call, failure=Failure(result.kind, result.detail, result.status))
            return Outcome(call, result)

        return await search(ask, f"search/{name}", query, count)


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording() as recorder:
        yield recorder


@on_each_loop
@in_each
def test_an_engine_is_asked_with_its_key_in_a_header_and_in_no_address(server: Recorder, name: str, loop: str) -> None:
    server.answer = body(name)
    reply = run_on(loop, once(name, server.origin, count=5))
    assert isinstance(reply, Reply) and [hit.url for hit in reply.hits] == [row["url"] for row in ROWS]
    sent = server.last
    assert CANARY not in sent.path and CANARY.encode() not in sent.body
    assert (CANARY in str(sent.headers)) == (name != "searxng")
    assert (sent.headers["user-agent"], sent.headers["content-length"]) == (USER_AGENT, str(len(sent.body)))
    asked = parse_qs(urlsplit(sent.path).query) if sent.method == "GET" else sent.json
    assert "blue & whale" in str(asked)
    assert (sent.method, bool(sent.body)) == (("GET", False) if "?" in sent.path else ("POST", True))


@in_each
def test_pages_are_joined_over_one_connection_after_another(server: Recorder, name: str) -> None:
    server.answer = body(name)
    found = asyncio.run(joined(name, server.origin, "whale", 20))
    assert (len(found.hits), found.failure) == (3, None)
    assert len(server.sent) == (1 if name in ("tavily", "exa") else 2)


@pytest.mark.parametrize("name", [name for name, row in ENGINES.items() if row.key_variables])
@pytest.mark.parametrize("status", [200, 400, 401, 422, 429, 500])
def test_a_key_that_an_engine_gives_back_is_in_nothing_that_is_told(server: Recorder, name: str, status: int) -> None:
    server.status = status
    for said in (
        json.dumps(brave_error(status, "X", f"the key {CANARY} is wrong")).encode(),
        json.dumps({"message": f"{CANARY}", "statusCode": 403}).encode(),
        json.dumps({"detail": {"error": CANARY.replace("/", "\\/")}}).encode(),
        f"<p>{CANARY}</p>".encode(),
        body(name, [{"url": f"https://a.example/?key={CANARY}", "title": CANARY, "snippet": f"<b>{CANARY}</b>"}]),
        # Put together again by whoever takes the tags out.
        body(name, [{"url": "https://a.example/", "title": f"{CANARY[:9]}<b></b>{CANARY[9:]}", "snippet": "s"}]),
    ):
        server.answer = said
        result = asyncio.run(once(name, server.origin))
        assert CANARY not in str(result)


# --- a mock of Tavily that nobody here wrote ---

MOCKED = [{"title": f"T {n}", "url": f"https://m.example/{n}", "content": f"c {n}", "score": 0.5} for n in range(30)]


@pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")
def test_an_independent_mock_of_tavily_is_searched() -> None:
    with searching({"whale": MOCKED}) as base_url:
        found = asyncio.run(joined("tavily", base_url, "blue whale", 20))
        assert [(hit.rank, hit.url, hit.title, hit.snippet) for hit in found.hits] == [
            (n + 1, f"https://m.example/{n}", f"T {n}", f"c {n}") for n in range(20)
        ]
        assert len(asyncio.run(joined("tavily", base_url, "whale", 7)).hits) == 7
        assert asyncio.run(joined("tavily", base_url, "submarine", 20)) == Found("search/tavily", "submarine")
