"""Damaged and smuggled requests, against another reader of HTTP: the gateway never takes bytes for a request that h11
takes for something else, however they are divided.

Some thousands here, a hundred thousand in `make torture`.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import h11
from mutants import kept, mutants
from torture import SEED, record, times

from millstream.interfaces.http.http_framing import RequestFramer

COUNT = times(3_000, 100_000)
HOST = b"Host: localhost:8400\r\n"
CHUNKS = b"3\r\nabc\r\n5;x=y\r\ndefgh\r\n0\r\n\r\n"
SOUND = (
    b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\n" + HOST + b"Content-Length: 7\r\n\r\n" + b'{"a":1}',
    b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"POST /v1/messages HTTP/1.0\r\n" + HOST + b"Connection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
    b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Content-Length: 42\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\nContent-Length: 0\r\n\r\nabc",
    b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Transfer-Encoding:\x0bchunked\r\nX: y\r\n\r\n" + CHUNKS,
    b"POST /v1/messages HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: identity\r\nContent-Length: 3\r\n\r\nabc",
)
# What h11 refuses and the gateway reads: none of it says where a request ends. Names of hosts are its guard's.
STRICTER = ("Missing mandatory Host", "Found multiple Host", "illegal request line", "no request line", "closed")
SMUGGLED = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"


class Read(NamedTuple):
    """What a reader made of some bytes: the whole requests, and why it read nothing after them; empty: it waits."""

    requests: list[tuple[bytes, bytes, bytes]]
    refused: str


def read_by_us(*pieces: bytes) -> Read:
    framer = RequestFramer("127.0.0.1", "127.0.0.1")
    came = [request for piece in pieces for request in framer.feed(piece)]
    whole = [request for request in came if request.fault is None and request.body.is_whole]
    found = [
        (one.seen.method.encode(), one.seen.target.encode("utf-8", "surrogateescape"), one.body.data) for one in whole
    ]
    is_over = framer.is_over or any(one.fault or one.is_last or one.body.is_broken for one in came)
    return Read(found, "the last" if is_over else "")


def read_by_h11(data: bytes) -> Read:
    """By a server that answers each request with an empty answer."""
    server, found = h11.Connection(h11.SERVER), list[tuple[bytes, bytes, bytes]]()
    # h11 takes nothing for the end of the connection.
    server.receive_data(data or b"\r\n")
    asked, body = None, b""
    try:
        while (event := server.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            if isinstance(event, h11.Request):
                asked, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and asked is not None:
                found.append((asked.method, asked.target, body))
                server.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                server.send(h11.EndOfMessage())
                if server.our_state is not h11.DONE or server.their_state is not h11.DONE:
                    return Read(found, "closed")
                server.start_next_cycle()
    except h11.RemoteProtocolError as error:
        return Read(found, str(error))
    return Read(found, "")


def disagreement(data: bytes) -> str:
    """Returns how the two readers differ in a way that could hide a request; empty: in none."""
    ours, theirs = read_by_us(data), read_by_h11(data)
    for number, (mine, other) in enumerate(zip(ours.requests, theirs.requests, strict=False)):
        if mine != other:
            return f"request {number}: {mine} here, {other} there"
    if len(ours.requests) > len(theirs.requests) and not theirs.refused.startswith(STRICTER):
        return f"{ours.requests[len(theirs.requests)]} here alone"
    if len(theirs.requests) > len(ours.requests) and not ours.refused:
        return f"{theirs.requests[len(ours.requests)]} there alone"
    return ""


def test_no_damaged_request_is_read_as_another_than_a_second_reader_reads() -> None:
    chance, refused = random.Random(SEED), 0
    inputs = [*kept("framing"), *mutants([*SOUND, *(sound + SMUGGLED for sound in SOUND)], COUNT, SEED)]
    for data in inputs:
        wrong = disagreement(data)
        assert not wrong, f"{data!r}: {wrong}"
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randint(1, 4)))
        pieces = [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert read_by_us(*pieces).requests == read_by_us(data).requests, f"{pieces!r} is read in another way"
        refused += bool(read_by_us(data).refused)
    assert len(inputs) // 3 < refused < len(inputs), "some are refused, and some are not"
    record("15", len(inputs), len(inputs), "no request was read that another reader reads otherwise", f"{SEED}")


def test_sound_requests_are_read_alike_and_whole() -> None:
    # h11 closes after a request of HTTP/1.0, whatever that asks for.
    for sound in SOUND[:3]:
        assert read_by_us(sound + SMUGGLED).requests == read_by_h11(sound + SMUGGLED).requests
        assert len(read_by_us(sound + SMUGGLED).requests) == 2
