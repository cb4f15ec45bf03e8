"""Where requests begin and end: cut anywhere they are the same, and nothing that two readers may read in two ways."""

from __future__ import annotations

import itertools
import tracemalloc

import pytest

from millstream.interfaces.http.http_framing import HEAD_MAX, LINE_MAX, RequestFramer
from millstream.interfaces.http.http_request import BODY_BYTES_MAX, HttpRequest

HOST = b"Host: localhost:8400\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def post(head: bytes, body: bytes = b"", version: bytes = b"1.1") -> bytes:
    return b"POST /v1/messages HTTP/%b\r\n%b%b\r\n%b" % (version, HOST, head, body)


def fed(*pieces: bytes) -> list[HttpRequest]:
    framing = RequestFramer("127.0.0.1", "127.0.0.1")
    return list(itertools.chain.from_iterable(framing.feed(piece) for piece in pieces))


def told(request: HttpRequest) -> tuple[object, ...]:
    seen = request.seen
    body = request.body.data if request.body.is_whole else None
    return seen.method, seen.target, dict(seen.headers), request.is_new, request.is_last, body, request.fault


THREE = (
    post(b"Content-Length: 3\r\nX-Twice: a\r\nx-twice: b\r\n", b"abc")
    + post(CHUNKED, b"2;note=x\r\nde\r\n1\r\nf\r\n0\r\nTrailer: no header\r\n\r\n")
    + b"GET /health?key=%c3%bc HTTP/1.0\r\nX-Name: \xc3\xbc\xff\r\n\r\n"
)


def test_cut_anywhere_they_are_the_same() -> None:
    whole = [told(request) for request in fed(THREE)]
    for at in range(1, len(THREE)):
        assert [told(request) for request in fed(THREE[:at], THREE[at:])] == whole, at
    assert [told(request) for request in fed(*(bytes([one]) for one in THREE))] == whole


def test_a_head_is_handed_over_before_its_body() -> None:
    framing = RequestFramer("", "")
    (request,) = framing.feed(post(b"Content-Length: 3\r\n", b"a"))
    assert not request.body.is_whole and request.length == 3 and not framing.is_between
    assert framing.feed(b"bc") == [] and request.body.data == b"abc" and framing.is_between


AMBIGUOUS = {
    "two lengths": post(b"Content-Length: 3\r\nContent-Length: 4\r\n", b"abc"),
    "one length twice": post(b"Content-Length: 3\r\nContent-Length: 3\r\n", b"abc"),
    "a list of lengths": post(b"Content-Length: 3, 3\r\n", b"abc"),
    "a length with a sign": post(b"Content-Length: +3\r\n", b"abc"),
    "a length in hexadecimal": post(b"Content-Length: 0x3\r\n", b"abc"),
    "a length below nothing": post(b"Content-Length: -3\r\n", b"abc"),
    "a length beyond all numbers": post(b"Content-Length: 99999999999999999999999\r\n", b"abc"),
    "length, then chunks": post(b"Content-Length: 3\r\n" + CHUNKED, b"0\r\n\r\n"),
    "chunks, then length": post(CHUNKED + b"Content-Length: 3\r\n", b"0\r\n\r\n"),
    "chunks twice": post(CHUNKED + CHUNKED, b"0\r\n\r\n"),
    "chunks within something": post(b"Transfer-Encoding: gzip, chunked\r\n", b"0\r\n\r\n"),
    "something within chunks": post(b"Transfer-Encoding: chunked, gzip\r\n", b"0\r\n\r\n"),
    "no such coding": post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n"),
    "identity": post(b"Transfer-Encoding: identity\r\n", b"abc"),
    "chunks in HTTP/1.0": post(CHUNKED, b"0\r\n\r\n", b"1.0"),
    "a space before the colon": post(b"Content-Length : 3\r\n", b"abc"),
    "a folded line": post(b"X-A: b\r\n c\r\n"),
    "bare line feeds": b"GET / HTTP/1.1\nHost: localhost\n\n",
    "a bare carriage return": post(b"X-A: b\rc\r\n"),
    "a zero in a value": post(b"X-A: b\0c\r\n"),
    "a header without a name": post(b": b\r\n"),
    "another version": post(b"", b"", b"2.0"),
    "no version": b"GET /\r\n\r\n",
    "a space in the target": b"GET /a b HTTP/1.1\r\n\r\n",
    "the other protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "a handshake": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "words": b"this is no HTTP\r\n\r\n",
}


@pytest.mark.parametrize("case", AMBIGUOUS)
def test_what_can_be_read_in_two_ways_is_the_last_thing_read(case: str) -> None:
    behind = b"GET /smuggled HTTP/1.1\r\n" + HOST + b"\r\n"
    sent = AMBIGUOUS[case]
    for pieces in ((sent + behind,), (sent, behind), tuple(bytes([one]) for one in sent + behind)):
        (request,) = fed(*pieces)
        assert request.fault is not None and request.fault.status == 400 and request.is_last
        assert "\n" not in request.fault.message


BROKEN = {
    "no number": b"zz\r\nabc\r\n0\r\n\r\n",
    "a sign": b"-1\r\nabc\r\n0\r\n\r\n",
    "beyond all numbers": b"fffffffffffffffff\r\nabc\r\n",
    "longer than it says": b"3\r\nabcX0\r\n\r\n",
    "bare line feeds": b"3\nabc\n0\n\n",
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_body_whose_chunks_are_none_is_never_whole(case: str) -> None:
    for pieces in ((BROKEN[case],), tuple(bytes([one]) for one in BROKEN[case])):
        framing = RequestFramer("", "")
        (request,) = framing.feed(post(CHUNKED))
        behind = [one for piece in pieces for one in framing.feed(piece)]
        assert behind == [] and request.body.is_broken and not request.body.is_whole
        assert framing.is_over and framing.feed(post(b"")) == []


def test_a_line_or_a_head_that_is_too_long_is_refused_as_soon_as_that_is_known() -> None:
    for sent in (post(b"X-Long: %b\r\n" % (b"x" * LINE_MAX)), b"GET /%b HTTP/1.1\r\n\r\n" % (b"x" * LINE_MAX)):
        (request,) = fed(sent)
        assert request.fault is not None and "too long" in request.fault.message
    (request,) = fed(post(b"X-Long: %b\r\n" % (b"x" * (LINE_MAX - 6))))
    assert request.fault is None
    framing, came, sent_bytes = RequestFramer("", ""), list[HttpRequest](), 0
    for piece in itertools.chain([b"GET / HTTP/1.1\r\n"], itertools.repeat(b"X-A: b\r\n" * 100)):
        came, sent_bytes = framing.feed(piece), sent_bytes + len(piece)
        if came:
            break
    assert came[0].fault is not None and sent_bytes < HEAD_MAX + 2_000


def test_what_stands_around_chunks_has_an_end_too() -> None:
    framing = RequestFramer("", "")
    (request,) = framing.feed(post(CHUNKED, b"1\r\na\r\n0\r\n"))
    fed_bytes = 0
    while not request.body.is_broken:
        assert framing.feed(b"X-Trailer: " + b"x" * 1_000) == []
        fed_bytes += 1_000
    assert fed_bytes < HEAD_MAX + 10_000


def test_a_body_is_read_up_to_its_bound_and_no_further() -> None:
    framing = RequestFramer("", "")
    (request,) = framing.feed(post(CHUNKED))
    piece = b"x" * (1 << 20)
    for number in range(18):
        framing.feed(b"%x\r\n%b\r\n" % (len(piece), piece))
        assert request.body.is_broken == (number >= BODY_BYTES_MAX >> 20)
    assert framing.is_over and request.body.size <= BODY_BYTES_MAX + (1 << 20) and request.body.data == b""


def test_a_body_in_very_small_chunks_costs_no_more_than_its_length() -> None:
    framing = RequestFramer("", "")
    (request,) = framing.feed(post(CHUNKED))
    pieces = b"2\r\nxy\r\n" * 10_000
    tracemalloc.start()
    try:
        for _ in range(20):
            framing.feed(pieces)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert request.body.size == 400_000 and held < 1_000_000
    framing.feed(b"0\r\n\r\n")
    assert request.body.data == b"xy" * 200_000


OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


@pytest.mark.parametrize("framed", [b"Content-Length: 3\r\n\r\nabc", CHUNKED + b"\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n"])
def test_an_offer_to_go_over_to_something_else_is_passed_over_and_the_body_read(framed: bytes) -> None:
    asked = b"POST / HTTP/1.1\r\n" + OFFER + framed
    sent = asked + b"GET /chat HTTP/1.1\r\n" + OFFER + b"\r\n" + asked
    whole = [told(request) for request in fed(sent)]
    assert [one[5] for one in whole] == [b"abc", b"", b"abc"] and not any(one[4] or one[6] for one in whole)
    for at in range(1, len(sent)):
        assert [told(request) for request in fed(sent[:at], sent[at:])] == whole, at


def test_nothing_is_read_behind_a_request_that_is_the_last() -> None:
    behind = b"GET /2 HTTP/1.1\r\n\r\n"
    for first in (
        b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"CONNECT a:1 HTTP/1.1\r\n\r\n",
    ):
        for pieces in ((first + behind,), (first, behind)):
            (request,) = fed(*pieces)
            assert request.is_last and request.fault is None
    assert len(fed(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + behind)) == 2
