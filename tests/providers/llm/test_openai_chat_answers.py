"""What counts as a whole answer: bodies and streams as recorded, cut, repaired, odd, and at random."""

from __future__ import annotations

from typing import Any

import pytest
from chat_shapes import (
    DONE,
    ROLE,
    USAGE,
    choice,
    chunk,
    event,
    fault_of,
    message,
    ok,
    reply_of,
    streamed,
    whole,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from millstream.providers.llm.sse import events_of

# --- whole answers ---


PARTS = [{"type": "text", "text": "A"}, {"type": "image"}, {"type": "text", "text": "B"}]
RECORDED = "position <<A>> – ✓ 😀"


@pytest.mark.parametrize(
    ("body", "text", "finish"),
    [
        (whole(choices=message(PARTS)), "AB", "stop"),
        (whole(choices=message("A", reasoning_content="because")), "A", "stop"),
        (whole(choices=choice(finish_reason=None)), "A", None),
        (whole(choices=choice(finish_reason=17)), "A", None),
        (whole(error=None), RECORDED, "stop"),
        (b"[" + whole() + b"]", RECORDED, "stop"),
        (b" \n" + whole() + b"\n\n", RECORDED, "stop"),
    ],
)
def test_answers_of_less_usual_shapes_are_answers(body: bytes, text: str, finish: str | None) -> None:
    reply = reply_of(ok(body))
    assert (reply.text, reply.finish_reason, reply.refused, reply.raw) == (text, finish, False, None)


# Counts and names at the edges of what makes sense.
ODD: tuple[Any, ...] = (None, 0, 1, 7, 30, 10**9 - 1, 10**9, -1, 2**64 - 1, 5.0, 5.5, True, "7", [])
NAMES: tuple[Any, ...] = (None, "", "flex", "é", "x" * 256, "é" * 256, "x" * 257, 5, True, {})
counts = st.sampled_from(ODD)
ANSWERS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("id", "model", "system_fingerprint", "service_tier", "provider"), st.sampled_from(NAMES)),
        "usage": st.fixed_dictionaries(
            {},
            optional={
                "prompt_tokens": counts,
                "completion_tokens": counts,
                "total_tokens": counts,
                "num_cached_tokens": counts,
                "prompt_tokens_details": st.fixed_dictionaries(
                    {"cached_tokens": counts}, optional={"cache_write_tokens": counts}
                ),
                "completion_tokens_details": st.fixed_dictionaries({"reasoning_tokens": counts}),
            },
        ),
    },
)


@settings(max_examples=200, deadline=None)
@given(ANSWERS)
def test_what_makes_no_sense_in_an_answer_of_usual_shape_is_missing_and_costs_it_nothing_else(given: Any) -> None:
    body = whole(**given)
    usual, by_field = reply_of(ok(body)), reply_of(ok(b"[" + body + b"]"))
    assert usual == structs.replace(by_field, raw_hash=usual.raw_hash)
    usage = given["usage"]
    if usual.usage is not None and usage.get("total_tokens") is None:
        for count, name in ((usual.usage.input, "prompt_tokens"), (usual.usage.output, "completion_tokens")):
            assert count is None or count >= int(usage[name])
    for word, name in ((usual.answer_id, "id"), (usual.served, "model"), (usual.tier, "service_tier")):
        value = given[name]
        assert word == (value if isinstance(value, str) and 0 < len(value) <= 256 else None)


def test_a_stream_has_each_name_from_the_first_chunk_in_which_it_makes_sense() -> None:
    first = {"id": 5, "model": "x" * 257, "service_tier": ""}
    then = {"id": "a", "model": "b", "service_tier": "flex"}
    reply = reply_of(streamed(*(event({"choices": choice(delta={"content": "A"}), **one}) for one in (first, then))))
    assert (reply.answer_id, reply.served, reply.tier) == ("a", "b", "flex")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (whole(choices=choice(message={"content": None, "refusal": "I can't."})), "I can't."),
        (whole(choices=choice(message={"content": None}, finish_reason="content_filter")), ""),
        (whole(choices=choice(message={"content": "half"}, finish_reason="content_filter")), "half"),
        (b'{"error":{"code":"content_filter","message":"filtered"}}', "filtered"),
    ],
)
def test_a_refusal_is_a_valid_answer(body: bytes, text: str) -> None:
    reply = reply_of(ok(body))
    assert (reply.text, reply.refused) == (text, True)


def test_an_answer_without_a_refusal_text_is_not_refused() -> None:
    assert not reply_of(ok(whole(choices=message("A", refusal="")))).refused


def test_empty_choices_are_settled_at_their_usage_and_tried_twice() -> None:
    fault = fault_of(ok(whole(choices=[])))
    assert (fault.kind, fault.action, fault.quota, fault.is_repeated_once, fault.usage_tokens) == (
        "empty",
        "retry",
        "settle",
        True,
        29,
    )


@pytest.mark.parametrize(
    "body",
    [whole(choices=None), whole(choices={}), whole(choices=[{"index": 0}]), b'{"choices":[{"message":"A"}]}'],
)
def test_json_without_a_message_is_bad_json_and_may_have_been_billed(body: bytes) -> None:
    fault = fault_of(ok(body))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


@pytest.mark.parametrize(
    "body",
    [
        b'{"error":{"message":"upstream","code":"server_error"}}',
        whole(error={"message": "upstream", "code": 500}),
        whole(error="upstream"),
        whole(choices=choice(finish_reason="error")),
        b'[{"error":{"message":"upstream","code":503}}]',
    ],
)
def test_a_200_that_holds_an_error_is_never_ok(body: bytes) -> None:
    assert fault_of(ok(body)).kind == "server_error"


# --- text that no encoding allows ---


# --- streams ---


def test_a_stream_that_ends_with_no_choice_is_empty() -> None:
    fault = fault_of(streamed(USAGE, DONE))
    assert (fault.kind, fault.quota, fault.is_repeated_once, fault.usage_tokens) == ("empty", "settle", True, 22)
    assert fault_of(streamed(USAGE)).kind == "incomplete"


def test_only_the_first_of_several_choices_is_read() -> None:
    other = event({"choices": [{"index": 1, "delta": {"content": "no"}, "finish_reason": "length"}]})
    assert fault_of(streamed(ROLE, other)).kind == "incomplete"
    reply = reply_of(streamed(ROLE, other, chunk({"content": "A"}), other, chunk({}, "stop")))
    assert (reply.text, reply.finish_reason) == ("A", "stop")


def test_a_streamed_refusal_is_a_refusal() -> None:
    reply = reply_of(streamed(ROLE, chunk({"refusal": "I "}), chunk({"refusal": "can't."}), chunk({}, "stop")))
    assert (reply.text, reply.refused) == ("I can't.", True)
    reply = reply_of(streamed(ROLE, chunk({}, "content_filter")))
    assert (reply.text, reply.refused) == ("", True)
    reply = reply_of(streamed(ROLE, event({"error": {"message": "filtered", "code": "content_filter"}})))
    assert (reply.text, reply.refused) == ("filtered", True)


def test_the_data_of_an_event_may_have_several_lines_and_other_fields_mean_nothing() -> None:
    assert list(events_of(b"data: a\ndata:b\n\nevent: x\n\ndata: c")) == [b"a\nb"]
