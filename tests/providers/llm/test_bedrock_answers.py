"""What counts as a whole answer of Bedrock's: bodies and event streams as recorded, cut, damaged, filtered, odd."""

from __future__ import annotations

from typing import Any

import pytest
from bedrock_shapes import (
    CITATIONS,
    CITED,
    METADATA,
    START,
    STOP,
    delta,
    event,
    whole,
)

from millstream.engine.call import Citation, Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.bedrock.converse import decode


def streamed(*parts: bytes, is_cut: bool = False) -> Response:
    return Response(200, b"".join(parts), stream=True, is_cut=is_cut)


def reply_of(response: Response | bytes) -> Reply:
    result = decode(Response(200, response) if isinstance(response, bytes) else response)
    assert isinstance(result, Reply), result
    return result


def fault_of(response: Response | bytes) -> Fault:
    result = decode(Response(200, response) if isinstance(response, bytes) else response)
    assert isinstance(result, Fault), result
    return result


# --- whole answers ---


def test_pages_that_an_answer_is_based_on_are_its_citations_once_each() -> None:
    reply = reply_of(whole(CITED, {"text": " Truly."}))
    assert (reply.text, reply.citations) == ("So it is said. Truly.", (Citation("https://one.example/a", "One"),))
    given = [event("contentBlockDelta", {"delta": {"citation": one}}) for one in CITATIONS]
    assert reply_of(streamed(delta("A"), *given, STOP)).citations == reply.citations


def test_odd_citations_cost_no_answer() -> None:
    odd: Any
    for odd in (3, [], {"content": 3, "citations": [4, {"location": 5}, {"location": {"web": {"url": 6}}}]}):
        assert reply_of(whole({"text": "A"}, {"citationsContent": odd})).citations == ()


# --- how it ends ---


@pytest.mark.parametrize(
    "body",
    [b'{"stopReason":"end_turn"}', b'{"stopReason":"end_turn","output":{"message":{"content":"A"}}}', whole(stop=None)],
)
def test_an_answer_without_a_stop_reason_or_a_list_of_blocks_is_none(body: bytes) -> None:
    assert fault_of(body).kind == "bad_json"


def test_a_block_that_began_is_an_empty_text_unless_it_is_a_thought() -> None:
    assert reply_of(streamed(START, event("contentBlockStart", {"start": {}}), STOP)).text == ""
    thought_alone = event("contentBlockStart", {"start": {"reasoningContent": {}}})
    assert fault_of(streamed(thought_alone, STOP, METADATA)).kind == "empty"
