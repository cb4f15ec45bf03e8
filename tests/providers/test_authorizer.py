"""Credentials that are made anew for each attempt, and requests as they stand on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from endpoints import ask, endpoint, fault_in, text_of, transport
from raw_server import RawServer, Visit, answer, http

from millstream.engine.call import Call
from millstream.engine.endpoint import Fault, Request, SendError, send
from millstream.providers.credentials.authorizer import NO_CREDENTIALS, FixedHeaders

TOKENS = ("token-one-0123456789", "token-two-0123456789")


class Renewed:
    """A token for each attempt until one is refused."""

    fixed = None

    def __init__(self) -> None:
        self.secrets: tuple[str, ...] = ()
        self.seen: list[bytes] = []
        self.refusals = 0

    async def headers(self, request: Request) -> Mapping[str, str]:
        await asyncio.sleep(0)
        self.seen.append(request.wire)
        self.secrets = (TOKENS[self.refusals],)
        return {"Authorization": f"Bearer {TOKENS[self.refusals]}", "X-Signed": str(len(request.wire))}

    def refused(self) -> None:
        self.refusals += 1


class Keyless(Renewed):
    async def headers(self, request: Request) -> Mapping[str, str]:
        self.secrets = (TOKENS[0],)
        raise SendError(Fault("rejected", f"no token for {TOKENS[0]}", "confirm"))


async def echo(visit: Visit) -> None:
    while (request := await visit.request()) is not None:
        head = request.partition(b"\r\n\r\n")[0]
        if b"Bearer token-one" in head and b"refuse" in request:
            await visit.send(http(b'{"error":"no"}', status="401 Unauthorized"))
        else:
            said = head.decode().replace("\r\n", " | ")
            await visit.send(http(answer(said)))


def test_headers_made_for_an_attempt_are_sent_with_the_bytes_they_were_made_for() -> None:
    async def scenario() -> tuple[str, Renewed]:
        authorizer = Renewed()
        async with RawServer(echo) as server, transport() as over:
            return text_of(await ask(endpoint(over, server.base_url, authorizer=authorizer))), authorizer

    said, authorizer = asyncio.run(scenario())
    (wire,) = authorizer.seen
    assert f"X-Signed: {len(wire)}" in said and f"Content-Length: {len(wire)}" in said
    assert "Authorization: Bearer [key]" in said


def test_a_token_that_was_refused_is_made_anew_and_the_new_one_is_struck_out_too() -> None:
    async def scenario() -> tuple[str, str, int]:
        authorizer = Renewed()
        async with RawServer(echo) as server, transport() as over:
            at = endpoint(over, server.base_url, authorizer=authorizer)
            first = fault_in(await ask(at, "refuse the first"))
            return first.action, text_of(await ask(at, "refuse the first")), authorizer.refusals

    action, said, refusals = asyncio.run(scenario())
    assert (action, refusals) == ("confirm", 1)
    assert "Bearer [key]" in said and not any(token in said for token in TOKENS)


def test_no_credentials_to_be_had_are_a_fault_that_names_no_secret() -> None:
    async def scenario() -> Fault:
        async with transport() as over:
            return fault_in(await ask(endpoint(over, "http://127.0.0.1:1/v1", authorizer=Keyless())))

    fault = asyncio.run(scenario())
    assert (fault.action, fault.detail) == ("confirm", "no token for [key]")


def test_nothing_is_proved_where_there_are_no_credentials() -> None:
    assert NO_CREDENTIALS.fixed == {} and NO_CREDENTIALS.secrets == ()
    assert asyncio.run(NO_CREDENTIALS.headers(REQUEST)) == {}


REQUEST = Request("", "", b"", b"{}", b"", b"")
PATHS = [
    "/model/a%3A0/converse",
    "/model/arn%3Aaws%2Fx%2By/invoke",
    "/v1/models/x:generateContent?alt=sse",
    "/a//b/../c",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_is_sent_as_it_was_written(path: str) -> None:
    async def scenario() -> bytes:
        async with RawServer(echo) as server, transport() as over:
            origin = server.base_url.removesuffix("/v1")
            request = Request(origin + path, "", b"", b"{}", b"", b"")
            return (await send(endpoint(over, server.base_url, authorizer=NO_CREDENTIALS), request)).body

    assert f"POST {path} HTTP/1.1 |".encode() in asyncio.run(scenario())


def test_a_get_has_its_question_in_the_address_and_many_share_connections() -> None:
    async def scenario() -> tuple[list[bytes], int]:
        async with RawServer(echo) as server, transport() as over:
            at = endpoint(over, server.base_url, authorizer=FixedHeaders({"X-Key": "k"}))
            bodies = []
            for number in range(20):
                url = f"{server.base_url}/search?q={number}"
                response = await send(at, Request(url, "", b"", b"", b"", b"", method="GET"))
                bodies.append(response.body)
            return bodies, server.connections

    bodies, connections = asyncio.run(scenario())
    assert all(f"GET /v1/search?q={number} HTTP/1.1".encode() in body for number, body in enumerate(bodies))
    assert connections == 1


def test_encoding_asks_for_no_credentials() -> None:
    at = endpoint(None, "http://127.0.0.1:1/v1", authorizer=Keyless())  # type: ignore[arg-type]
    assert at.encode(Call("sim/steady", "x")).body == b'{"messages":[{"content":"x","role":"user"}],"model":"steady"}'
