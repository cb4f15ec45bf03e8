"""What a host may put on the wire beside a page: odd bytes, endless filling, times without a clock."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from loops import on_each_loop
from page_hops import hop, saying
from page_hosts import http
from raw_server import Visit

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault


@on_each_loop
def test_header_bytes_that_are_no_characters_are_made_such(loop: str) -> None:
    data = b"HTTP/1.1 302 F\r\nLocation: /caf\xe9?\xc3\xa9\r\nContent-Type: text/\xff\r\nContent-Encoding: \xfe\r\n"
    data += b"Retry-After: \x80\r\nDate: \x81\r\nContent-Length: 0\r\n\r\n"
    found, response = hop(saying(data), loop=loop)
    assert isinstance(found, Reply) and found.fetched is not None and response is not None
    fetched = found.fetched
    assert (fetched.location, fetched.content_type, fetched.encoding) == ("/caf%E9?\u00e9", "text/\ufffd", "\ufffd")
    assert all(value.encode() for value in response.headers.values())


@on_each_loop
@pytest.mark.parametrize("data", [b"HTTP/1.1 2\xff0 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nA\xff\x00: \xfe\r\n\r\n"])
def test_what_is_said_of_a_broken_answer_is_one_line_of_characters(loop: str, data: bytes) -> None:
    found, _ = hop(saying(data), loop=loop)
    assert isinstance(found, Fault) and found.detail.encode() and "\n" not in found.detail, found


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("told", [(), ("Date: some day",), ("Date: Sat, 01 Jan 2000 00:00:00 -0000",)])
def test_a_pause_until_a_time_is_held_against_our_clock_where_the_host_tells_none(
    status: int, told: tuple[str, ...]
) -> None:
    for ahead_s, action in ((3_000, "never"), (-3_000, "retry")):
        until = f"Retry-After: {formatdate(time.time() + ahead_s, usegmt=True)}"
        found, _ = hop(saying(http(b"", until, *told, status=status)))
        assert isinstance(found, Fault) and (found.kind, found.action) == ("rate_limited", action), found
        assert found.detail.endswith("of 0.1 s") == (action == "retry")


@on_each_loop
@pytest.mark.parametrize(
    ("head", "again"),
    [
        (b"", b"\r\n" * 32_768),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", (b"1;" + b"e" * 8_000 + b"\r\nx\r\n") * 8),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"e" * 65_536),
    ],
    ids=["empty-lines", "extensions", "one-extension"],
)
def test_what_is_no_payload_counts_on_the_wire_too(loop: str, head: bytes, again: bytes) -> None:
    taken = 0

    async def handle(visit: Visit) -> None:
        nonlocal taken
        await visit.request()
        await visit.send(head)
        # Far more than what waits in the system's own buffers.
        for _ in range(640):
            await visit.send(again)
            taken += len(again)

    found, _ = hop(handle, timeout_s=20.0, loop=loop)
    assert isinstance(found, Fault) and found.action == "never" and found.kind in ("too_large", "incomplete"), found
    assert taken < 30 << 20
