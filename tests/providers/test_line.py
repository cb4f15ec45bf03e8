"""One connection, on bytes alone: where an answer begins and ends, however it is divided and wherever it breaks."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loops import run_on

from millstream.providers.transport.http_connection import (
    BODY_MAX,
    HEAD_MAX,
    AnswerTooLarge,
    BrokenOff,
    ExchangeError,
    HttpAnswer,
    HttpConnection,
    HungUp,
    NeverSent,
    NoHttp,
    Tap,
)

BODY = b'{"choices": []}' + bytes(range(256)) * 3


def http(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    return b"\r\n".join([b"HTTP/1.1 " + status, *headers, b"", b""]) + body


def length(body: bytes) -> bytes:
    return b"Content-Length: %d" % len(body)


def chunked(body: bytes, size: int = 100) -> bytes:
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def deflated(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(body) + packer.flush()


CHUNKED = b"Transfer-Encoding: chunked"
ENDING: dict[str, bytes] = {
    "a length": http(BODY, length(BODY)),
    "chunks": http(chunked(BODY), CHUNKED),
    "chunks with extensions": http(chunked(BODY).replace(b"\r\n", b";name=1\r\n", 1), CHUNKED),
    "gzip": http(gzip.compress(BODY), length(gzip.compress(BODY)), b"Content-Encoding: GZIP"),
    "gzip in two parts": http(
        chunked(gzip.compress(BODY[:100]) + gzip.compress(BODY[100:])), CHUNKED, b"Content-Encoding: gzip"
    ),
    "gzip and padding": http(chunked(gzip.compress(BODY) + bytes(9)), CHUNKED, b"Content-Encoding: gzip"),
    "zlib": http(chunked(zlib.compress(BODY)), CHUNKED, b"Content-Encoding: deflate"),
    "deflate": http(chunked(deflated(BODY)), CHUNKED, b"Content-Encoding: deflate"),
    "hints first": http(b"", b"Link: </a>", status=b"103 Early Hints") + http(BODY, length(BODY)),
    "go on first": http(b"", status=b"100 Continue") * 2 + http(chunked(BODY), CHUNKED),
    "bare line ends": http(BODY, length(BODY)).replace(b"\r\n", b"\n"),
    "no word for the status": http(BODY, length(BODY), status=b"200"),
    "HTTP/1.0": http(BODY, length(BODY)).replace(b"HTTP/1.1", b"HTTP/1.0"),
}
CLOSING: dict[str, bytes] = {
    "no length": http(BODY, b"Connection: close"),
    "no length, packed": http(gzip.compress(BODY), b"Connection: close", b"Content-Encoding: gzip"),
}


class Wire(asyncio.Transport):
    """Takes what is written; its other end is the test."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.is_ended = False
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return self.is_ended

    def close(self) -> None:
        self.is_ended = True

    def abort(self) -> None:
        self.is_ended = True


class Asked(asyncio.Future[HttpAnswer]):
    answered = asyncio.Future.set_result
    failed = asyncio.Future.set_exception

    def __init__(self, line: HttpConnection, request: bytes = b"GET", tap: Tap | None = None) -> None:
        super().__init__()
        line.ask(self, request, tap)


class Told:
    """What came of one exchange, and the state that it left."""

    def __init__(self, line: HttpConnection, result: HttpAnswer | BaseException, heard: bytes) -> None:
        self.result = result
        self.can_go_on = not line.should_close and line.is_connected()
        self.heard = heard

    @property
    def answer(self) -> HttpAnswer:
        assert isinstance(self.result, HttpAnswer), self.result
        return self.result


def exchange(pieces: Sequence[bytes], *, ends: bool = False, error: Exception | None = None) -> Told:
    async def work() -> Told:
        line, heard = HttpConnection(asyncio.get_running_loop()), bytearray()
        line.connection_made(Wire())
        coming = Asked(line, b"GET", heard.extend)
        for piece in pieces:
            line.data_received(piece)
        if ends and error is None:
            line.eof_received()
        if ends:
            line.connection_lost(error)
        (result,) = await asyncio.gather(asyncio.wait_for(coming, 0.5), return_exceptions=True)
        return Told(line, result, bytes(heard))

    return run_on("asyncio", work())


@pytest.mark.parametrize("name", ENDING)
@given(sizes=st.lists(st.integers(1, 60), max_size=60))
def test_an_answer_is_the_same_however_it_is_divided(name: str, sizes: list[int]) -> None:
    data, pieces, at = ENDING[name], [], 0
    for size in sizes:
        pieces.append(data[at : at + size])
        at += size
    told = exchange([piece for piece in (*pieces, data[at:]) if piece])
    assert (told.answer.status, told.answer.body, told.answer.broken) == (200, BODY, None)
    assert told.heard == BODY
    assert told.can_go_on == (name != "HTTP/1.0")


@pytest.mark.parametrize("name", CLOSING)
def test_an_answer_without_a_length_ends_with_its_connection(name: str) -> None:
    told = exchange([CLOSING[name]], ends=True)
    assert (told.answer.body, told.answer.broken, told.can_go_on) == (BODY, None, False)


@pytest.mark.parametrize("error", [None, ConnectionResetError("reset by peer")], ids=["closed", "reset"])
@pytest.mark.parametrize("name", [*ENDING, "no length, packed"])
def test_an_answer_cut_at_any_byte_is_never_whole(name: str, error: Exception | None) -> None:
    data = {**ENDING, **CLOSING}[name]
    # Behind the last byte of gzip only padding is missing, and a last chunk.
    last = len(data) - (1 if "gzip" not in name else 16)
    for at in range(0, last, 7):
        told = exchange([data[:at]] if at else [], ends=True, error=error)
        assert not told.can_go_on
        if isinstance(told.result, HttpAnswer):
            assert isinstance(told.result.broken, BrokenOff), (at, data[:at])
            assert BODY.startswith(told.result.body)
        else:
            assert isinstance(told.result, HungUp), (at, told.result)


PACKERS: dict[str, tuple[bytes, bytes]] = {
    "gzip": (gzip.compress(BODY), b"gzip"),
    "gzip in two parts": (gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]), b"gzip"),
    "zlib": (zlib.compress(BODY), b"deflate"),
    "deflate": (deflated(BODY), b"deflate"),
}


@pytest.mark.parametrize("behind", [b"x", b"\0" * 9 + b"x", BODY])
@pytest.mark.parametrize("name", PACKERS)
def test_bytes_behind_a_packed_bodys_end_are_refused_however_they_come(name: str, behind: bytes) -> None:
    packed, coding = PACKERS[name]
    whole = packed + behind
    for data in (
        http(chunked(whole), CHUNKED, b"Content-Encoding: " + coding),
        http(whole, length(whole), b"Content-Encoding: " + coding),
    ):
        for pieces in ([data], [data[: len(data) - 3], data[len(data) - 3 :]]):
            told = exchange(pieces)
            broken = told.result.broken if isinstance(told.result, HttpAnswer) else told.result
            assert broken is not None and not told.can_go_on
            assert "bytes follow its compressed end" in str(broken)


def test_a_body_without_a_length_that_is_reset_is_broken() -> None:
    told = exchange([CLOSING["no length"]], ends=True, error=ConnectionResetError("reset by peer"))
    assert isinstance(told.answer.broken, BrokenOff)


@pytest.mark.parametrize("behind", [b"x", b"HTTP/1.1 200 OK\r\n", ENDING["a length"], b"\0" * 99])
@pytest.mark.parametrize("name", ["a length", "chunks", "gzip"])
def test_what_comes_behind_an_answer_costs_it_nothing_and_ends_the_connection(name: str, behind: bytes) -> None:
    told = exchange([ENDING[name] + behind])
    assert (told.answer.body, told.answer.broken, told.can_go_on) == (BODY, None, False)


def test_what_nobody_asked_for_ends_the_connection() -> None:
    async def work() -> bool:
        line = HttpConnection(asyncio.get_running_loop())
        line.connection_made(Wire())
        line.data_received(ENDING["a length"])
        with pytest.raises(NeverSent):
            await Asked(line)
        return line.is_connected()

    assert not run_on("asyncio", work())


GARBAGE = {
    "words": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
    "two lengths": http(BODY, b"Content-Length: 5", b"Content-Length: 6"),
    "a length that is none": http(BODY, b"Content-Length: -5"),
    "a chunk that is none": http(b"zz\r\n", CHUNKED),
    "another protocol": http(b"", b"Connection: Upgrade", b"Upgrade: websocket", status=b"101 Switching Protocols"),
    "a head without end": http(b"", b"X: " + b"a" * HEAD_MAX)[:-4],
    "a head of many lines": http(b"", *[b"X: a"] * (HEAD_MAX // 6))[:-4],
    "one interim answer after the other": http(b"", status=b"100 Continue") * (HEAD_MAX // 25 + 1),
}


@pytest.mark.parametrize("name", GARBAGE)
def test_what_is_no_http_is_called_so(name: str) -> None:
    told = exchange([GARBAGE[name]])
    assert isinstance(told.result, NoHttp), told.result
    assert "\n" not in str(told.result)
    assert not told.can_go_on


@given(st.binary(min_size=1, max_size=400), st.booleans())
def test_no_bytes_raise_anything_but_what_is_documented(data: bytes, has_head: bool) -> None:
    told = exchange([http(data, CHUNKED) if has_head else data], ends=True)
    assert isinstance(told.result, HttpAnswer | ExchangeError), told.result


def test_what_says_it_is_packed_and_is_not_breaks_off() -> None:
    told = exchange([http(BODY, length(BODY), b"Content-Encoding: gzip")])
    assert isinstance(told.answer.broken, BrokenOff)
    assert not told.can_go_on


@pytest.mark.parametrize("coding", [b"br", b"zstd", b"gzip, BR"])
def test_a_coding_that_was_not_asked_for_is_named(coding: bytes) -> None:
    told = exchange([http(BODY, length(BODY), b"Content-Encoding: " + coding)])
    assert isinstance(told.answer.broken, BrokenOff)
    assert coding.decode().lower() in str(told.answer.broken)
    assert not told.can_go_on


@pytest.mark.parametrize("coding", [b"gzip", b"br"])
def test_an_error_whose_body_cant_be_unpacked_is_told_by_its_status_all_the_same(coding: bytes) -> None:
    packed = http(BODY, length(BODY), b"Retry-After: 3", b"Content-Encoding: " + coding, status=b"429 Wait")
    told = exchange([packed])
    assert (told.answer.status, told.answer.headers[b"Retry-After"]) == (429, b"3")


@pytest.mark.parametrize("coding", [b"identity", b"utf-8", b""])
def test_a_coding_that_packs_nothing_changes_nothing(coding: bytes) -> None:
    assert exchange([http(BODY, length(BODY), b"Content-Encoding: " + coding)]).answer.body == BODY


def test_one_connection_carries_any_number_of_answers() -> None:
    async def work() -> None:
        line, wire = HttpConnection(asyncio.get_running_loop()), Wire()
        line.connection_made(wire)
        for name in [name for name in ENDING if name != "HTTP/1.0"] * 3:
            coming = Asked(line, b"GET %b\r\n" % name.encode())
            line.data_received(ENDING[name])
            assert (await coming).body == BODY
        assert wire.written.count(b"GET") == 3 * (len(ENDING) - 1)

    run_on("asyncio", work())


@pytest.mark.parametrize(
    "endless", [b"X: aaaaaaaaaaaaaaaaaaaa\r\n", b"a" * 40, b"X: a\r\n "], ids=["lines", "one line", "folded lines"]
)
def test_what_comes_behind_the_last_chunk_comes_to_an_end(endless: bytes) -> None:
    body = b"x" * 100
    head = http(chunked(body)[:-2], CHUNKED)
    told = exchange([head, *[endless * 1_000] * (40 * HEAD_MAX // (1_000 * len(endless)))])
    assert isinstance(told.result, NoHttp), told.result
    assert not told.can_go_on


def test_a_body_that_comes_byte_for_byte_is_no_fault() -> None:
    body = bytes(range(256)) * 200
    pieces = [b"1\r\n", b"x", b"\r\n"] * len(body)
    pieces[1::3] = [body[at : at + 1] for at in range(len(body))]
    told = exchange([http(b"", CHUNKED), *pieces, b"0\r\n\r\n"])
    assert (told.answer.body, told.can_go_on) == (body, True)


def test_what_is_packed_and_says_nothing_for_ever_comes_to_an_end() -> None:
    parts = gzip.compress(b"") * 12_000
    told = exchange([http(parts, b"Content-Encoding: gzip")])
    assert isinstance(told.answer.broken, BrokenOff)
    assert not told.can_go_on
    blocks = b"\0\0\0\xff\xff" * 50_000
    told = exchange([http(b"\x78\x9c", b"Content-Encoding: deflate"), *[blocks] * (2 * BODY_MAX // len(blocks) + 1)])
    assert isinstance(told.result, AnswerTooLarge), told.result


def test_many_small_pieces_take_no_more_room_than_what_they_hold() -> None:
    body = b"ab" * 50_000
    data = http(chunked(body, 2), CHUNKED)
    tracemalloc.start()
    try:
        told = exchange([data[at : at + 65_536] for at in range(0, len(data), 65_536)])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert told.answer.body == body
    # The pieces handed in are as long again as the chunks around them make them: seven bytes for two.
    assert most < 10 * len(body)


def test_a_trailer_is_no_header_of_this_answer_or_the_next() -> None:
    async def work() -> None:
        line = HttpConnection(asyncio.get_running_loop())
        line.connection_made(Wire())
        for data in (http(chunked(BODY)[:-2] + b"Retry-After: 9\r\n\r\n", CHUNKED), ENDING["a length"]):
            coming = Asked(line)
            line.data_received(data)
            answer = await coming
            assert answer.body == BODY
            assert b"Retry-After" not in answer.headers

    run_on("asyncio", work())


def test_a_coding_of_the_transfer_that_marks_no_end_lasts_until_the_connection_ends() -> None:
    told = exchange([http(BODY, b"Transfer-Encoding: identity")], ends=True)
    assert (told.answer.body, told.answer.broken, told.can_go_on) == (BODY, None, False)


def test_a_listener_that_fails_is_told_of_and_costs_no_answer() -> None:
    told: list[BaseException] = []
    heard: list[bytes] = []

    def listen(data: bytes) -> None:
        heard.append(data)
        raise ValueError("not my words")

    async def work() -> HttpAnswer:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context["exception"]))
        line = HttpConnection(loop)
        line.connection_made(Wire())
        coming = Asked(line, b"GET", listen)
        line.data_received(ENDING["chunks"])
        return await coming

    assert run_on("asyncio", work()).body == BODY
    assert len(heard) == len(told) == 1
    assert isinstance(told[0], ValueError)
