"""What counts as a whole answer of Gemini's: bodies and streams as recorded, cut, filtered, odd, and at random."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from gemini_shapes import (
    GROUNDED,
    LOGPROBS,
    RECITED,
    STREAM,
    TEXT,
    USAGE,
    answer,
    candidate,
    event,
    said,
    whole,
)

from millstream.engine.call import Citation, Reply, TokenLogprob, Usage
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.google.generate import decode


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


def test_an_earlier_usage_of_a_stream_does_not_count_what_was_said_after_it() -> None:
    for more in ({}, {"usageMetadata": None}, {"usageMetadata": {"promptTokenCount": "many"}}):
        last = event(said({"text": "!"}, finish="STOP", **more))
        assert reply_of(streamed(*STREAM[:2], last)).usage == Usage(19, None)


def test_an_answer_with_a_finish_reason_was_not_blocked() -> None:
    assert not reply_of(whole(promptFeedback={"blockReason": "OTHER"})).refused


def test_a_list_of_chunks_cut_at_any_byte_is_never_a_reply() -> None:
    chunks = [said({"text": "posi"}), said({"text": "tion"}, finish="STOP", usageMetadata=USAGE)]
    body = orjson.dumps(chunks)
    for stream in (False, True):
        assert reply_of(Response(200, body, stream=stream)).text == "position"
        for cut in range(len(body)):
            assert isinstance(decode(Response(200, body[:cut], stream=stream)), Fault)


def test_only_the_first_candidate_is_read() -> None:
    second = candidate("B", index=1)
    assert reply_of(whole(second, candidate("A"))).text == "A"
    assert reply_of(orjson.dumps({"candidates": [{**candidate("A"), "index": 0}, second]})).text == "A"
    only = candidate("A")
    del only["index"]
    assert reply_of(whole(only)).text == "A"


def test_log_probabilities_are_read_with_their_alternatives() -> None:
    expected = (
        TokenLogprob("A", -0.25, (("A", -0.25), ("B", -1.5))),
        TokenLogprob("!", 0.0, (("!", 0.0),)),  # Google leaves out a zero
    )
    assert reply_of(whole(candidate("A!", logprobsResult=LOGPROBS))).logprobs == expected
    halves = [
        event(said({"text": "A"}, finish=None)),
        event({"candidates": [candidate("!", logprobsResult=LOGPROBS)]}),
    ]
    assert reply_of(streamed(*halves)).logprobs == expected


@pytest.mark.parametrize(
    "given", [None, [], "x", {"chosenCandidates": 3}, {"topCandidates": []}, {"chosenCandidates": [3, {"token": 4}]}]
)
def test_odd_log_probabilities_cost_no_answer(given: Any) -> None:
    assert not reply_of(whole(candidate("A", logprobsResult=given))).logprobs


@pytest.mark.parametrize("name", ["citationSources", "citations"])
def test_pages_that_an_answer_is_based_on_or_quotes_are_its_citations_once_each(name: str) -> None:
    one = candidate(groundingMetadata=GROUNDED, citationMetadata={name: RECITED})
    assert reply_of(whole(one)).citations == (
        Citation("https://one.example/a", "one.example"),
        Citation("gs://bucket/two.pdf", "Two"),
        Citation("https://three.example/"),
    )


def test_odd_citations_cost_no_answer() -> None:
    one = candidate(groundingMetadata={"groundingChunks": [3, {"web": {"uri": 4}}]}, citationMetadata={"citations": 5})
    assert reply_of(whole(one)).citations == ()


# --- how it ends ---


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR", "JAILBREAK"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_prompt_that_was_blocked_is_a_refusal_with_its_usage(reason: str, stream: bool) -> None:
    body = {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 7, "totalTokenCount": 7}}
    reply = reply_of(streamed(event(body)) if stream else orjson.dumps(body))
    assert (reply.text, reply.refused, reply.finish_reason) == (
        f"The prompt was blocked: {reason}",
        True,
        "content_filter",
    )
    assert reply.usage == Usage(7, None)


def test_googles_own_word_for_a_block_is_the_text_and_ratings_alone_block_nothing() -> None:
    blocked = {"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "Too rude."}}
    assert reply_of(orjson.dumps(blocked)).text == "Too rude."
    assert reply_of(whole(promptFeedback={"safetyRatings": [{"category": "C", "probability": "LOW"}]})).text == TEXT


def test_a_limited_account_stops_the_lane() -> None:
    fault = fault_of(whole(candidate(None, "PUP_LIMITED_DISABLED")))
    assert (fault.kind, fault.action) == ("rejected", "confirm") and "limited this account" in fault.detail


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_answer_without_parts_or_candidates_is_settled_and_tried_twice(stream: bool) -> None:
    bodies = [
        answer(candidate(None)),
        answer({"content": {"role": "model"}, "finishReason": "STOP"}),
    ]
    if not stream:
        bodies += [answer(candidates=[]), {"usageMetadata": USAGE, "modelVersion": "gemini-2.5-flash"}]
    for body in bodies:
        fault = fault_of(streamed(event(body)) if stream else orjson.dumps(body))
        assert (fault.kind, fault.action, fault.quota, fault.is_repeated_once) == ("empty", "retry", "settle", True)
        assert fault.usage_tokens == 41


def test_the_end_mark_of_a_gateway_is_no_chunk_and_no_finish_reason() -> None:
    done = b"data: [DONE]\n\n"
    assert reply_of(streamed(*STREAM, done)).text == TEXT
    assert fault_of(streamed(*STREAM[:3], done)).kind == "incomplete"
