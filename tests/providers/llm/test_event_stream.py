"""The binary messages of AWS's event streams: whole, cut, damaged, and at random."""

from __future__ import annotations

import struct
import uuid
import zlib

import pytest
from bedrock_shapes import STREAM, event, frame, header
from hypothesis import given, settings
from hypothesis import strategies as st
from torture import times

from millstream.providers.llm.event_stream import BrokenStream, messages_of


def read(body: bytes) -> list[tuple[dict[str, str], bytes]]:
    """The headers and the payload of each message."""
    return [(one.headers, one.payload) for one in messages_of(body)]


def test_every_whole_message_is_read_with_its_headers() -> None:
    body = event("messageStop", {"stopReason": "end_turn"}) + event("metadata", {})
    told = {":content-type": "application/json", ":message-type": "event"}
    assert read(body) == [
        ({":event-type": "messageStop", **told}, b'{"stopReason":"end_turn"}'),
        ({":event-type": "metadata", **told}, b"{}"),
    ]
    assert read(b"") == []
    assert read(frame(b"", b"")) == [({}, b"")]


def test_headers_that_are_no_texts_are_passed_over() -> None:
    block = b"".join(
        [
            b"\x04true\x00",
            b"\x05false\x01",
            b"\x04byte\x02\xff",
            b"\x05short\x03" + struct.pack(">h", -2),
            b"\x03int\x04" + struct.pack(">i", -3),
            b"\x04long\x05" + struct.pack(">q", -4),
            b"\x05bytes\x06\x00\x02\xff\xfe",
            b"\x04time\x08" + struct.pack(">q", 1_700_000_000_000),
            b"\x04uuid\x09" + uuid.UUID(int=7).bytes,
            header(":event-type", "late ✓"),
        ]
    )
    assert read(frame(block, b"x")) == [({":event-type": "late ✓"}, b"x")]


def test_a_body_cut_at_any_byte_has_the_messages_that_came_whole() -> None:
    body = b"".join(STREAM)
    ends = [sum(map(len, STREAM[:number])) for number in range(len(STREAM) + 1)]
    for cut in range(len(body) + 1):
        assert len(list(messages_of(body[:cut]))) == sum(end <= cut for end in ends) - 1


def test_a_flipped_bit_anywhere_is_noticed() -> None:
    body = b"".join(STREAM[-3:])
    for place in range(len(body) * 8):
        damaged = bytearray(body)
        damaged[place // 8] ^= 1 << place % 8
        with pytest.raises(BrokenStream):
            list(messages_of(bytes(damaged)))


@pytest.mark.parametrize(
    "block",
    [b"\x04name", b"\x04name\x0a", b"\x04name\x07", b"\x04name\x07\x00\x05abc", b"\x09x", b"\x01\xff\x07\x00\x00",
     b"\x01x\x07\x00\x01\xff", b"\x01x\x05abc"],
)  # fmt: skip
def test_headers_of_an_unknown_shape_break_the_stream_though_their_checks_hold(block: bytes) -> None:
    with pytest.raises(BrokenStream, match="header"):
        list(messages_of(frame(block, b"")))


def test_lengths_that_can_not_be_break_the_stream() -> None:
    for total, size in ((0, 0), (15, 0), (40, 25), (17, 0xFFFFFFFF)):
        prelude = struct.pack(">II", total, size)
        with pytest.raises(BrokenStream, match="shorter than its headers"):
            list(messages_of(prelude + struct.pack(">I", zlib.crc32(prelude)) + bytes(40)))


@settings(max_examples=times(60, 300), deadline=None)
@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_messages_or_broken(body: bytes, is_framed: bool) -> None:
    try:
        list(messages_of(frame(body, b"") if is_framed else body))
    except BrokenStream as error:
        assert "\n" not in str(error)
