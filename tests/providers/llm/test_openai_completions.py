"""OpenAI's older completions as bytes: what is sent, what counts as whole, cut, odd, and its log-probabilities."""

from __future__ import annotations

import math
from typing import Any

import orjson
import pytest
from completion_shapes import DONE, STREAM, USAGE, choice, chunk, event, whole

from millstream.engine.call import Call, Message, Reply, TokenLogprob
from millstream.engine.content import Image, Tool
from millstream.engine.endpoint import EncodeError, Fault, Request, Response
from millstream.providers.llm.openai.completions import decode, encode
from millstream.providers.llm.protocol import Target

MODEL = "vllm-completions/llama"
URL = "http://127.0.0.1:8000/v1"


def encoded(call: Call, **known: Any) -> Request:
    return encode(call, Target(URL, "lab", "llama", "vllm-completions", **known))


def reply_of(body: bytes, *, stream: bool = False) -> Reply:
    result = decode(Response(200, body, stream=stream))
    assert isinstance(result, Reply), result
    return result


def fault_of(body: bytes, *, stream: bool = False, status: int = 200) -> Fault:
    result = decode(Response(status, body, stream=stream))
    assert isinstance(result, Fault), result
    return result


# --- what is sent ---


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
    ],
)
def test_a_call_that_the_protocol_can_not_express_is_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


def test_a_server_that_refuses_stream_options_is_sent_none() -> None:
    without = encoded(Call(MODEL, "x", stream=True), refuses=frozenset({"stream_options"}))
    assert orjson.loads(without.wire) == {"model": "llama", "prompt": "x", "stream": True}


# --- what is read ---


def test_only_the_first_of_several_choices_is_read() -> None:
    other = {**choice()[0], "index": 1, "text": "no", "finish_reason": "length"}
    assert reply_of(whole(choices=[other, *choice()])).text == " B ✓"
    assert fault_of(event({"choices": [other]}), stream=True).kind == "incomplete"


@pytest.mark.parametrize(
    ("body", "stream", "kind"),
    [
        (whole(choices=[]), False, "empty"),
        (USAGE + DONE, True, "empty"),
        (whole(choices=None), False, "bad_json"),
        (whole(choices=choice(text=7, finish_reason=None)), False, "bad_json"),
        (whole(error={"message": "no", "code": "server_error"}), False, "server_error"),
        (whole(choices=choice(error={"code": 429, "message": "slow"})), False, "rate_limited"),
        (STREAM[0] + event({"error": {"message": "no", "code": "insufficient_quota"}}), True, "rate_limited"),
    ],
)
def test_an_empty_broken_or_failed_completion_is_the_right_kind_of_fault(body: bytes, stream: bool, kind: str) -> None:
    assert fault_of(body, stream=stream).kind == kind


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
