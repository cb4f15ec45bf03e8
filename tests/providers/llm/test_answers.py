"""Answers of every wire protocol, whole and streamed: what is a reply, what is a fault, and what is read of it."""

from __future__ import annotations

import re
from typing import Any

import bedrock_shapes
import orjson
import pytest
from answer_parts import AnswerPart
from msgspec import structs
from protocols import CHAT, CONVERSE, MESSAGES, ROWS, TEXT, ProtocolRow
from torture import record

from millstream.engine.call import Reply, Usage
from millstream.engine.content import Native
from millstream.engine.endpoint import Fault, Response

in_each_protocol = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
in_each_form = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
BOTH = (False, True)


# --- whole answers and streams ---


@in_each_protocol
def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes(row: ProtocolRow) -> None:
    response = row.answer(*row.sample)
    assert row.reply(response) == row.expected(response)


@in_each_protocol
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_a_stream_is_read_as_the_whole_answer_is_whatever_the_size_of_its_pieces(row: ProtocolRow, size: int) -> None:
    response = row.answer(*row.sample, stream=True, size=size)
    assert row.reply(response) == row.expected(response)


@in_each_protocol
def test_an_answer_has_the_id_that_its_provider_gave_it(row: ProtocolRow) -> None:
    for stream in BOTH:
        response = row.answer(*row.sample, stream=stream)
        given = re.search(rb'"(?:id|responseId)": ?"((?:chatcmpl|cmpl|msg|resp)[-_]\w+|h8-\w+)"', response.body)
        reply = row.wire.decode(response)
        assert isinstance(reply, Reply)
        assert reply.answer_id == (None if given is None else given[1].decode())
        assert reply.answer_id is not None or stream or row.name == "bedrock"


# What a server states of itself, by protocol: the fields of its answer, and what a reply has of them.
STATED: dict[str, tuple[dict[str, Any], tuple[str | None, ...]]] = {
    "openai": (
        {"model": "grok-4.3", "system_fingerprint": "fp_1", "service_tier": "flex", "provider": "xAI"},
        ("grok-4.3", "fp_1", "flex", "xAI"),
    ),
    "openai-completions": (
        {"model": "grok-4.3", "system_fingerprint": "fp_1", "service_tier": "flex"},
        ("grok-4.3", "fp_1", "flex", None),
    ),
    "openai-responses": ({"model": "grok-4.3", "service_tier": "flex"}, ("grok-4.3", None, "flex", None)),
    "anthropic": (
        {"model": "claude-opus-5-5", "usage": {"output_tokens": 1, "service_tier": "standard", "speed": "fast"}},
        ("claude-opus-5-5", None, "fast", None),
    ),
    "gemini": (
        {"modelVersion": "gemini-3.8-flash", "usageMetadata": {"serviceTier": "priority"}},
        ("gemini-3.8-flash", None, "priority", None),
    ),
    "bedrock": (
        {"serviceTier": {"type": "flex"}, "trace": {"promptRouter": {"invokedModelId": "amazon.nova-lite-v1:0"}}},
        ("amazon.nova-lite-v1:0", None, "flex", None),
    ),
}


@in_each_protocol
@in_each_form
def test_an_answer_has_the_name_the_fingerprint_and_the_tier_that_its_server_states(
    row: ProtocolRow, stream: bool
) -> None:
    fields, expected = STATED[
        "anthropic" if row.shape is MESSAGES else "openai" if row.shape is CHAT else row.wire.kind
    ]
    body = _stating(row, fields, stream)
    reply = row.wire.decode(Response(200, body, stream))
    assert isinstance(reply, Reply)
    assert (reply.served, reply.fingerprint, reply.tier, reply.router) == expected
    silent = row.wire.decode(Response(200, _stating(row, dict.fromkeys(fields, 5), stream), stream))
    assert isinstance(silent, Reply)
    assert (silent.served, silent.fingerprint, silent.tier, silent.router) == (None, None, None, None)


def _stating(row: ProtocolRow, fields: dict[str, Any], stream: bool) -> bytes:
    """Returns the ordinary answer with these fields at the place where its protocol has them."""
    if not stream:
        return orjson.dumps({**orjson.loads(row.answer(*row.sample).body), **fields})
    if row.shape is CONVERSE:
        return b"".join([*row.events()[:-1], bedrock_shapes.event("metadata", fields)])
    events = []
    for line in row.answer(*row.sample, stream=True).body.splitlines(keepends=True):
        value = orjson.loads(line[6:]) if line.startswith(b"data: {") else None
        if isinstance(value, dict):
            place = next((value[name] for name in ("response", "message") if name in value), value)
            place.update(fields)
            line = b"data: " + orjson.dumps(value) + b"\n"
        events.append(line)
    return b"".join(events)


@in_each_protocol
def test_a_whole_answer_to_a_streamed_call_is_read_too(row: ProtocolRow) -> None:
    response = structs.replace(row.answer(*row.sample), stream=True)
    assert row.reply(response) == row.expected(response)


@in_each_protocol
@in_each_form
def test_a_whole_answer_cut_at_any_byte_is_never_a_reply(row: ProtocolRow, stream: bool) -> None:
    body = row.answer(*row.sample).body
    for cut in range(len(body)):
        fault = row.fault(Response(200, body[:cut], stream))
        assert fault.kind == ("incomplete" if stream and not cut else "bad_json"), cut
        assert (fault.action, fault.quota, fault.is_billed_maybe) == ("retry", "keep", True), cut
    record("6", len(body), len(body), "no answer that was cut is a reply")


@in_each_protocol
@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"], ids=["LF", "CRLF", "CR"])
def test_a_stream_cut_at_any_byte_is_a_reply_only_if_its_finish_reason_arrived(
    row: ProtocolRow, newline: bytes
) -> None:
    def joined(events: list[bytes]) -> bytes:
        body = b"".join(events)
        return body if row.shape is CONVERSE else body.replace(b"\r\n", b"\n").replace(b"\n", newline)

    events = row.events()
    body, ended = joined(events), len(joined(events[: len(events) - row.shape.events_after_end]))
    if newline == b"\r\n" and row.shape is not CONVERSE:
        ended -= 1  # a lone CR ends a line too, so the last LF adds nothing
    for cut in range(len(body) + 1):
        response = Response(200, body[:cut], stream=True, is_cut=bool(cut % 2))
        if cut < ended:
            fault = row.fault(response)
            told = (fault.kind, fault.action, fault.quota, fault.is_billed_maybe)
            assert told == ("incomplete", "retry", "keep", True), cut
        else:
            reply, expected = row.reply(response), row.expected(response)
            assert structs.replace(reply, usage=None) == structs.replace(expected, usage=None), cut
    assert row.reply(Response(200, body, stream=True, is_cut=True)).usage == row.shape.counts.usage
    record("6", len(body) + 1, len(body) + 1, "no stream that was cut before its finish reason is a reply")


@in_each_protocol
def test_comments_and_unknown_events_of_a_stream_are_ignored(row: ProtocolRow) -> None:
    body = row.shape.noise + row.shape.noise.join(row.events()) + row.shape.noise
    response = Response(200, body, stream=True)
    assert row.reply(response) == row.expected(response)


# --- how it ends ---

ENDINGS = [(row, end) for row in ROWS.values() for end in row.shape.endings.finishes]


@pytest.mark.parametrize(("row", "end"), ENDINGS, ids=[f"{row.name}-{end}" for row, end in ENDINGS])
def test_an_ending_is_read_as_a_finish_reason_that_all_providers_share(row: ProtocolRow, end: str) -> None:
    finish = row.shape.endings.finishes[end]
    for stream in BOTH:
        reply = row.reply(row.answer("A", stream=stream, end=end))
        assert (reply.text, reply.finish_reason, reply.usage) == ("A", finish, row.shape.counts.usage)
        assert (reply.truncated, reply.refused) == (finish == "length", finish == "content_filter")


BROKEN = [(row, end) for row in ROWS.values() for end in row.shape.endings.broken]


@pytest.mark.parametrize(("row", "end"), BROKEN, ids=[f"{row.name}-{end}" for row, end in BROKEN])
def test_an_answer_that_its_provider_calls_broken_is_no_reply_and_may_have_been_billed(
    row: ProtocolRow, end: str
) -> None:
    for stream in BOTH:
        fault = row.fault(row.answer("A", stream=stream, end=end))
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)
        assert end in fault.detail or "`incomplete`" in fault.detail


@in_each_protocol
@pytest.mark.parametrize("end", [None, 17, ""])
def test_an_answer_without_a_finish_reason_is_no_reply(row: ProtocolRow, end: Any) -> None:
    for stream in BOTH:
        response = row.answer("A", stream=stream, end=end)
        if row.shape.is_whole_without_end and not stream:
            assert row.reply(response).text == "A"
            continue
        fault = row.fault(response)
        assert fault.kind in ("server_error", "incomplete", "bad_json")
        assert (fault.action, fault.quota, fault.is_billed_maybe) == ("retry", "keep", True)
        assert re.search("no (stop|finish) reason|is missing|before|no response|status is", fault.detail)


def silent(row: ProtocolRow) -> list[tuple[Native, ...]]:
    """Answers that say nothing."""
    return [(), *((thought,) for thought in row.shape.thoughts)]


@in_each_protocol
@in_each_form
def test_an_answer_without_content_is_empty_and_tried_twice(row: ProtocolRow, stream: bool) -> None:
    for parts in silent(row):
        fault = row.fault(row.answer(*parts, stream=stream))
        assert (fault.kind, fault.action, fault.quota, fault.is_repeated_once) == ("empty", "retry", "settle", True)
        assert fault.usage_tokens == 123


@in_each_protocol
@in_each_form
def test_an_empty_text_is_an_answer(row: ProtocolRow, stream: bool) -> None:
    for thoughts in ((), row.shape.thoughts[:1]):
        reply = row.reply(row.answer(*thoughts, "", stream=stream))
        assert (reply.text, reply.finish_reason, reply.refused) == ("", "stop", False)


@in_each_protocol
@in_each_form
def test_an_answer_that_was_cut_or_filtered_before_its_first_word_is_a_reply(row: ProtocolRow, stream: bool) -> None:
    answers: list[tuple[AnswerPart, ...]] = [("",), *(silent(row) if row.shape.says_nothing_without_text else ())]
    for parts in answers:
        cut = row.reply(row.answer(*parts, stream=stream, end=row.shape.endings.length))
        assert (cut.text, cut.truncated, cut.refused, cut.is_cut_empty) == ("", True, False, True)
        filtered = row.reply(row.answer(*parts, stream=stream, end=row.shape.endings.filtered))
        assert (filtered.text, filtered.refused, filtered.usage) == ("", True, row.shape.counts.usage)


# --- what is odd ---

ODD_COUNTS: tuple[Any, ...] = (None, "5", -5, True, 2.5, 10**18, [])


def _without_input(row: ProtocolRow) -> Usage:
    return structs.replace(row.shape.counts.usage, input=None)


@in_each_protocol
@in_each_form
def test_an_odd_count_is_unknown_and_costs_no_answer(row: ProtocolRow, stream: bool) -> None:
    usages: list[tuple[Any, Usage | None]] = [
        *row.shape.counts.others,
        *(({**row.shape.counts.given, row.shape.counts.input: odd}, _without_input(row)) for odd in ODD_COUNTS),
        (None, None),
        ([], None),
        ("many", None),
    ]
    for usage, known in usages:
        reply = row.reply(row.answer(TEXT, stream=stream, usage=usage))
        assert (reply.text, reply.usage) == (TEXT, known), usage


@in_each_protocol
@in_each_form
@pytest.mark.parametrize(
    ("inside", "text"),
    [
        (b"A \xff\xfe", "A \ufffd\ufffd"),
        (b"A \\ud800", "A \ufffd"),
        (b"\\udc00 A", "\ufffd A"),
        (b"\\ud83d \\ude00", "\ufffd \ufffd"),
        (b"\\ud83d\\ude00 \\ud800", "😀 \ufffd"),
    ],
)
def test_invalid_utf_8_and_lone_surrogates_are_replaced_and_the_bytes_are_kept(
    row: ProtocolRow, stream: bool, inside: bytes, text: str
) -> None:
    response = row.answer(inside, stream=stream)
    reply = row.reply(response)
    assert (reply.text, reply.raw, reply.parts) == (text, response.body, ())


@in_each_protocol
def test_a_surrogate_pair_in_two_pieces_of_a_stream_is_one_character(row: ProtocolRow) -> None:
    assert row.reply(row.answer(b"\\ud83d", b"\\ude00", stream=True)).text == "😀"


@in_each_protocol
def test_a_finish_reason_with_a_lone_surrogate_is_mended(row: ProtocolRow) -> None:
    body = row.answer("A", end="new #").body.replace(b"#", b"\\ud800")
    result = row.wire.decode(Response(200, body))
    assert isinstance(result, Fault) or result.finish_reason == "new \ufffd"


@in_each_protocol
@pytest.mark.parametrize(
    "body", [b"", b"null", b"17", b'"text"', b"[]", b"[1]", b"{}", b"<html>502</html>", b'{"object":"new"}']
)
def test_a_body_that_is_no_answer_is_bad_json_and_may_have_been_billed(row: ProtocolRow, body: bytes) -> None:
    fault = row.fault(Response(200, body))
    assert (fault.kind, fault.action, fault.quota, fault.is_billed_maybe) == ("bad_json", "retry", "keep", True)


@in_each_protocol
def test_a_body_with_more_or_less_than_one_answer_is_bad_json(row: ProtocolRow) -> None:
    body = row.answer(TEXT).body
    assert {row.fault(Response(200, each)).kind for each in (body + b"}", body + body, body[:-1])} == {"bad_json"}


@in_each_protocol
@in_each_form
def test_an_answer_in_another_protocol_is_no_reply(row: ProtocolRow, stream: bool) -> None:
    for other in (other for other in ROWS.values() if row.shape is not other.shape):
        assert not isinstance(row.wire.decode(other.answer(TEXT, stream=stream)), Reply), other.name


@in_each_protocol
@pytest.mark.parametrize("payload", [b"{oops", b"{", b"", b"17", b"null", b'"A"'])
def test_an_event_that_is_no_json_object_makes_the_stream_bad_json(row: ProtocolRow, payload: bytes) -> None:
    first, *others = row.events()
    body = b"".join([first, row.shape.frame(payload), *others])
    assert row.fault(Response(200, body, stream=True)).kind == "bad_json"


@in_each_protocol
def test_an_error_within_an_answer_leaves_nothing_of_it(row: ProtocolRow) -> None:
    events, error = row.events(), orjson.dumps(row.shape.error)
    told = row.shape.failure or row.shape.frame(error)
    ended = len(events) - row.shape.events_after_end
    bodies = [(error, False), *((b"".join([*events[:at], told]), True) for at in range(ended))]
    for body, stream in bodies:
        fault = row.fault(Response(200, body, stream))
        assert (fault.kind, fault.action) == ("server_error", "retry"), body
        assert "No." in fault.detail
