"""Anthropic Messages as bytes that came: what counts as whole, cut, refused, repaired, odd, and at random."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic_shapes import (
    READ,
    SAID,
    START,
    STOP,
    STREAM,
    THOUGHT,
    USAGE,
    closed,
    delta,
    ended,
    event,
    failed,
    opened,
    said,
    text,
    whole,
)

from millstream.engine.call import Citation, Reply, Usage
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.anthropic.messages import decode


def reply_of(body: bytes, *, stream: bool = False, is_cut: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream, is_cut=is_cut))
    assert isinstance(result, Reply), result
    return result


def fault_of(body: bytes, *, stream: bool = False, status: int = 200) -> Fault:
    result = decode(Response(status, body, stream=stream))
    assert isinstance(result, Fault), result
    return result


def streamed(*events: bytes) -> bytes:
    return START + b"".join(events)


REFUSED = {"type": "refusal", "category": "bio", "explanation": "Not that."}


def test_a_refusal_without_a_text_is_a_reply_with_its_explanation() -> None:
    for details, expected in ((REFUSED, "Not that."), ({**REFUSED, "explanation": None}, ""), (None, "")):
        changes: Any = {"stop_reason": "refusal", "stop_details": details}
        stream = streamed(ended("refusal", stop_details=details), STOP)
        for reply in (reply_of(whole(content=[], **changes)), reply_of(stream, stream=True)):
            assert (reply.text, reply.refused, reply.usage) == (expected, True, Usage(36, 87, 64, 12, 4))


def test_a_text_before_a_refusal_replaces_its_explanation() -> None:
    assert reply_of(whole(content=[said("Well")], stop_reason="refusal", stop_details=REFUSED)).text == "Well"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ([said("A"), {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, 7, None], "A"),
        ([{"type": "redacted_thinking", "data": "x"}, said("A")], "A"),
    ],
)
def test_the_text_is_that_of_all_text_blocks(content: list[Any], expected: str) -> None:
    assert reply_of(whole(content=content)).text == expected


@pytest.mark.parametrize("stop", ["stop_sequence", "tool_use"])
def test_an_answer_without_content_that_was_stopped_is_a_reply(stop: str) -> None:
    assert reply_of(whole(content=[THOUGHT], stop_reason=stop)).text == ""


PAGE = {"type": "web_search_result_location", "url": "https://a.example/1", "title": "One", "cited_text": "…"}
RESULT = {"type": "search_result_location", "source": "https://b.example/2", "title": None, "cited_text": "…"}
PASSAGE = {"type": "char_location", "document_index": 0, "document_title": "Doc", "cited_text": "…"}
CITED = (Citation("https://a.example/1", "One"), Citation("https://b.example/2"))


def test_citations_are_addresses_each_once() -> None:
    content = [said("A", citations=[PAGE, PASSAGE]), said("B", citations=None), said("C", citations=[RESULT, PAGE, 7])]
    assert reply_of(whole(content=content)).citations == CITED
    cited = [delta("citations_delta", citation=one) for one in (PAGE, PASSAGE, RESULT, PAGE)]
    body = streamed(opened(0, said("", citations=[])), text("ABC"), *cited, closed(0), ended(), STOP)
    assert reply_of(body, stream=True).citations == CITED
    assert reply_of(whole()).citations == ()


def test_the_last_counts_of_a_stream_replace_those_before_them() -> None:
    for usage, expected in (
        ({"output_tokens": 50}, Usage(36, 50, 0, 12, 4)),
        ({"output_tokens": 50, "input_tokens": None, "cache_read_input_tokens": None}, Usage(36, 50, 0, 12, 4)),
        ({**USAGE, "input_tokens": 30}, Usage(46, 87, 64, 12, 4)),
        (None, Usage(36, None, 0, 12, 4)),
    ):
        body = streamed(opened(0, SAID), ended(usage=usage), STOP)
        assert reply_of(body, stream=True).usage == expected


def test_events_of_unknown_kinds_and_odd_types_are_ignored() -> None:
    odd = (
        event("something_new", delta={"text": "x"}),
        event("content_block_delta", index=0, delta=None),
        event("content_block_start", index=0, content_block=None),
        event("message_delta", delta=None, usage=[]),
        b": a comment\n\n",
    )
    body = streamed(*odd, *STREAM[1:])
    assert reply_of(body, stream=True).text == READ


def test_events_after_the_end_are_ignored() -> None:
    assert reply_of(b"".join(STREAM) + failed("api_error") + b"data: {oops\n\n", stream=True).text == READ


def test_a_message_without_a_list_of_blocks_is_none() -> None:
    fault = decode(Response(200, whole(content=None)))
    assert isinstance(fault, Fault) and fault.kind == "bad_json"
