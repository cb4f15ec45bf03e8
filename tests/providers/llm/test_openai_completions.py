"""OpenAI's older completions as bytes: what is sent, what counts as whole, cut, odd, and its log-probabilities."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.call import Call, Message, Reply, TokenLogprob, Usage
from millstream.engine.content import Image, Tool
from millstream.engine.endpoint import EncodeError, Fault, Request, Response
from millstream.engine.key import key_of
from millstream.providers.llm.openai.completions import decode, encode
from millstream.providers.llm.protocol import Target

MODEL = "vllm-completions/llama"
URL = "http://127.0.0.1:8000/v1"


def encoded(call: Call, **known: Any) -> Request:
    return encode(call, Target(URL, "lab", "llama", "vllm-completions", **known))


def choice(**changes: Any) -> list[dict[str, Any]]:
    return [{"index": 0, "text": " B ✓", "logprobs": None, "finish_reason": "stop", **changes}]


def whole(**changes: Any) -> bytes:
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
    body = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "llama", "choices": choice()}
    return orjson.dumps({**body, "usage": usage, **changes})


def event(value: Any) -> bytes:
    return b"data: " + orjson.dumps(value) + b"\n\n"


def chunk(text: str, finish: str | None = None, logprobs: Any = None, **more: Any) -> bytes:
    one = {"index": 0, "text": text, "logprobs": logprobs, "finish_reason": finish}
    return event({"id": "cmpl-1", "object": "text_completion", "choices": [one], **more})


USAGE = event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}})
DONE = b"data: [DONE]\n\n"
STREAM = (chunk(" B"), chunk(" ✓"), chunk("", "stop"), USAGE, DONE)


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def fault_of(body: bytes, *, stream: bool = False, status: int = 200) -> Fault:
    result = decode(Response(status, body, stream=stream))
    assert isinstance(result, Fault), result
    return result


# --- what is sent ---


def test_only_what_was_set_is_sent() -> None:
    request = encoded(Call(MODEL, "Say A or"))
    assert request.body == request.wire == b'{"model":"llama","prompt":"Say A or"}'
    assert (request.url, request.identity) == (f"{URL}/completions", "lab/completions")
    assert encoded(Call(MODEL, (Message("user", "Say A or"),))).body == request.body


def test_everything_that_was_set_is_sent() -> None:
    call = Call(
        MODEL, "x", temperature=0, max_tokens=1, top_p=0.5, stop=("\n",), seed=7, logprobs=5, extra={"echo": True}
    )
    assert orjson.loads(encoded(call).body) == {
        "prompt": "x",
        "model": "llama",
        "temperature": 0.0,
        "max_tokens": 1,
        "top_p": 0.5,
        "stop": ["\n"],
        "seed": 7,
        "logprobs": 5,
        "echo": True,
    }


def test_streamed_and_whole_calls_have_one_key() -> None:
    plain, stream = encoded(Call(MODEL, "x")), encoded(Call(MODEL, "x", stream=True))
    assert key_of(plain, 0) == key_of(stream, 0)
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    assert orjson.loads(stream.wire) == {**orjson.loads(plain.wire), **asked}
    without = encoded(Call(MODEL, "x", stream=True), refuses=frozenset({"stream_options"}))
    assert "stream_options" not in orjson.loads(without.wire)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, (Message("system", "Be brief."), Message("user", "x"))), "go on with one text: give a prompt"),
        (Call(MODEL, (Message("assistant", "x"),)), "go on with one text"),
        (Call(MODEL, (Message("user", ("x", Image("u"))),)), "go on with one text"),
        (Call(MODEL, ()), "go on with one text"),
        (Call(MODEL, "x", json_schema={}), "have no json_schema: leave it out, or use kind openai"),
        (Call(MODEL, "x", tools=(Tool("f"),)), "have no tools"),
        (Call(MODEL, "x", tool_choice="auto"), "have no tool_choice"),
        (Call(MODEL, "x", reasoning_effort="low"), "have no reasoning_effort"),
        (Call(MODEL, "x", extra={"prompt": "y"}), "can't set prompt"),
        (Call(MODEL, "x", temperature=float("nan")), "must be a finite number"),
        (Call(MODEL, "lone \ud800"), "can't be written as JSON"),
    ],
)
def test_what_the_protocol_can_not_hold_is_refused_before_it_is_sent(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


# --- what is read ---


def test_a_whole_answer_is_read_with_its_usage_and_the_hash_of_its_bytes() -> None:
    body = whole()
    reply = reply_of(body)
    assert (reply.text, reply.usage, reply.finish_reason, reply.logprobs) == (" B ✓", Usage(5, 2), "stop", None)
    assert (reply.refused, reply.raw, reply.raw_hash) == (False, None, hashlib.sha256(body).hexdigest())


def test_a_stream_is_joined_into_one_answer() -> None:
    reply = reply_of(b"".join(STREAM), stream=True)
    assert (reply.text, reply.usage, reply.finish_reason) == (" B ✓", Usage(5, 2), "stop")


def test_a_body_cut_at_any_byte_is_never_a_reply() -> None:
    body = whole()
    for cut in range(len(body)):
        fault = fault_of(body[:cut])
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("bad_json", "retry", True)


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"])
def test_a_stream_cut_at_any_byte_is_an_answer_only_if_its_finish_reason_came(newline: bytes) -> None:
    body = b"".join(STREAM).replace(b"\n", newline)
    finish_came = len(b"".join(STREAM[:3]).replace(b"\n", newline)) - (newline == b"\r\n")
    for cut in range(len(body) + 1):
        result = decode(Response(200, body[:cut], stream=True, is_cut=True))
        assert isinstance(result, Reply) == (cut >= finish_came), (cut, result)
        if isinstance(result, Fault):
            assert result.kind == "incomplete"


@pytest.mark.parametrize(
    ("given", "finish", "refused"),
    [
        ("length", "length", False),
        ("eos", "stop", False),
        ("content_filter", "content_filter", True),
        (None, None, False),
    ],
)
def test_an_answer_ends_in_the_words_that_replies_have(given: str | None, finish: str | None, refused: bool) -> None:
    reply = reply_of(whole(choices=choice(finish_reason=given)))
    assert (reply.finish_reason, reply.refused, reply.truncated) == (finish, refused, given == "length")


def test_only_the_first_of_several_choices_is_read() -> None:
    other = {**choice()[0], "index": 1, "text": "no", "finish_reason": "length"}
    assert reply_of(whole(choices=[other, *choice()])).text == " B ✓"
    assert fault_of(event({"choices": [other]}), stream=True).kind == "incomplete"


@pytest.mark.parametrize(
    ("body", "stream", "kind"),
    [
        (whole(choices=[]), False, "empty"),
        (whole(choices=choice(text=None)), False, "empty"),
        (USAGE + DONE, True, "empty"),
        (whole(choices=None), False, "bad_json"),
        (whole(choices=choice(text=7, finish_reason=None)), False, "bad_json"),
        (b"{}", False, "bad_json"),
        (b"", False, "bad_json"),
        (b"data: {oops\n\n" + STREAM[2], True, "bad_json"),
        (whole(error={"message": "no", "code": "server_error"}), False, "server_error"),
        (whole(choices=choice(finish_reason="error")), False, "server_error"),
        (whole(choices=choice(error={"code": 429, "message": "slow"})), False, "rate_limited"),
        (STREAM[0] + event({"error": {"message": "no", "code": "insufficient_quota"}}), True, "rate_limited"),
    ],
)
def test_what_is_no_whole_answer_is_the_fault_that_it_is(body: bytes, stream: bool, kind: str) -> None:
    assert fault_of(body, stream=stream).kind == kind


def test_an_empty_text_is_an_answer() -> None:
    assert reply_of(whole(choices=choice(text=""))).text == ""


def test_text_that_no_encoding_allows_is_replaced_and_its_bytes_are_kept() -> None:
    body = whole(choices=choice(text="A X")).replace(b"X", b"\\ud800")
    assert (reply_of(body).text, reply_of(body).raw) == ("A \ufffd", body)


def test_an_error_status_is_what_the_table_says() -> None:
    assert fault_of(b'{"error":{"message":"no"}}', status=404).kind == "rejected"


# --- log-probabilities ---

ECHOED: dict[str, Any] = {
    "tokens": ["Q:", " A", " B", " ✓"],
    "token_logprobs": [None, -0.5, -2, -0.25],
    "top_logprobs": [None, {" A": -0.5}, {" C": -0.1, " B": -2}, {" ✓": -0.25}],
    "text_offset": [0, 2, 4, 6],
}


def rows_of(reply: Reply) -> list[tuple[str, float | None, tuple[tuple[str, float], ...]]]:
    return [(one.token, None if math.isnan(one.logprob) else one.logprob, one.top) for one in reply.logprobs or ()]


READ: list[Any] = [
    ("Q:", None, ()),
    (" A", -0.5, ((" A", -0.5),)),
    (" B", -2.0, ((" C", -0.1), (" B", -2.0))),
    (" ✓", -0.25, ((" ✓", -0.25),)),
]


def test_every_token_has_its_row_even_where_its_log_probability_is_null() -> None:
    assert rows_of(reply_of(whole(choices=choice(text="Q: A B ✓", logprobs=ECHOED)))) == READ
    without = {**ECHOED, "top_logprobs": None}
    assert rows_of(reply_of(whole(choices=choice(logprobs=without)))) == [(t, p, ()) for t, p, _ in READ]


def test_log_probabilities_of_a_stream_are_those_of_its_chunks() -> None:
    def part(low: int, high: int) -> dict[str, Any]:
        return {name: values[low:high] for name, values in ECHOED.items()}

    parts = (chunk("Q: A", None, part(0, 2)), chunk(" B", None, part(2, 3)), chunk(" ✓", None, part(3, 4)))
    reply = reply_of(b"".join((*parts, chunk("", "stop"), DONE)), stream=True)
    assert (reply.text, rows_of(reply)) == ("Q: A B ✓", READ)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"content": [{"token": "A", "logprob": -1, "top_logprobs": [{"token": "B", "logprob": -2}]}]},
         (TokenLogprob("A", -1.0, (("B", -2.0),)),)),
        (None, None),
        ("many", None),
        ({"tokens": []}, None),
        ({"tokens": [], "token_logprobs": []}, ()),
        ({"tokens": ["A", "B"], "token_logprobs": [-1]}, (TokenLogprob("A", -1.0),)),
    ],
)  # fmt: skip
def test_other_shapes_are_read_as_chat_completions_are(given: Any, expected: Any) -> None:
    assert reply_of(whole(choices=choice(logprobs=given))).logprobs == expected


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["tokens", "token_logprobs", "top_logprobs", "content", "text", "index"]), inner, max_size=4),
    max_leaves=8,
)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(st.dictionaries(st.sampled_from(["text", "logprobs", "finish_reason", "index", "error"]), _ANY), st.booleans())
def test_any_answer_is_a_reply_or_a_fault_that_can_be_written(changes: Any, stream: bool) -> None:
    body = json.dumps({"choices": [{**choice()[0], **changes}], "usage": changes.get("logprobs")}).encode()
    body = b"data: " + body + b"\n\n" if stream else body
    result = decode(Response(200, body, stream=stream))
    told = result.text if isinstance(result, Reply) else result.detail
    assert orjson.loads(orjson.dumps(told)) == told


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_noise_is_never_a_reply(body: bytes, stream: bool) -> None:
    assert isinstance(decode(Response(200, body, stream=stream)), Fault)
