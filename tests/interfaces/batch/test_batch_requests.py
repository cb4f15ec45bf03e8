"""What a line of a batch asks, or what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from batches import BROKEN, request
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.call import Message
from millstream.interfaces.batch.input import InputLine
from millstream.interfaces.batch.requests import BadLine, BatchRequest, Envelope, envelope_of, gist_of, request_of
from millstream.providers.llm.serve_naming import model_named

PROVIDERS = {"openai", "anthropic", "gemini", "sim"}
CLAUDE = {"model": "claude", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}


def named(word: str, family: str) -> str:
    return model_named(word, family, {}, PROVIDERS.__contains__)


def read(row: Any, number: int = 7) -> BatchRequest | BadLine:
    data = row if isinstance(row, bytes) else json.dumps(row).encode()
    envelope = envelope_of(InputLine(number, data))
    families = {"anthropic/claude": "anthropic", "gemini/gemini-2.5-flash": "gemini"}
    return (
        envelope if isinstance(envelope, BadLine) else request_of(envelope, named, lambda m: families.get(m, "openai"))
    )


def asked(row: Any) -> BatchRequest:
    found = read(row)
    assert isinstance(found, BatchRequest), found
    return found


@pytest.mark.parametrize(("data", "code"), [each for each in BROKEN if each[1] != "duplicate_custom_id"])
def test_each_broken_line_is_told_with_its_number_and_a_code(data: bytes, code: str) -> None:
    found = read(data)
    assert isinstance(found, BadLine)
    assert (found.line, found.code) == (7, code)
    assert found.said.isprintable() and len(found.said) < 200


def test_a_line_that_was_too_long_to_be_kept_is_told() -> None:
    found = envelope_of(InputLine(3, None))
    assert isinstance(found, BadLine) and (found.line, found.code) == (3, "line_too_long")


@given(st.binary(max_size=80) | st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists).map(
    lambda value: json.dumps(value).encode()
))  # fmt: skip
def test_garbage_is_a_broken_line_and_never_an_error(data: bytes) -> None:
    assert isinstance(envelope_of(InputLine(1, data)), BadLine)


@given(st.dictionaries(st.sampled_from(["custom_id", "method", "url", "body"]), st.none() | st.text() | st.integers()))
def test_no_field_of_the_wrong_type_is_an_error(row: dict[str, Any]) -> None:
    assert isinstance(envelope_of(InputLine(1, json.dumps(row).encode())), BadLine)


@pytest.mark.parametrize(
    ("url", "body", "model"),
    [
        ("/v1/chat/completions", request("x", "Hello", model="gpt-4o")["body"], "openai/gpt-4o"),
        ("/chat/completions", request("x", "Hello", model="sim/m")["body"], "sim/m"),
        ("/v1/responses", {"model": "openai/gpt-4o", "input": "Hello"}, "openai/gpt-4o"),
        ("/v1/messages", CLAUDE, "anthropic/claude"),
        ("/v1beta/models/gemini-2.5-flash:generateContent", {"contents": [{"parts": [{"text": "Hello"}]}]},
         "gemini/gemini-2.5-flash"),
        ("/v1/models/sim%2Fm:generateContent", {"contents": [{"parts": [{"text": "Hello"}]}]}, "sim/m"),
    ],
)  # fmt: skip
def test_every_dialect_is_understood_by_its_url(url: str, body: dict[str, Any], model: str) -> None:
    found = asked({"custom_id": "x", "method": "POST", "url": url, "body": body})
    assert found.asked.call.model == model
    prompt = found.asked.call.input
    assert prompt == "Hello" or prompt == (Message("user", "Hello"),)


def test_a_row_of_a_file_is_whole_even_if_a_stream_was_wanted() -> None:
    assert asked(request("x", "Hello", stream=True)).asked.call.stream is False


def test_a_parameter_that_the_models_provider_has_no_words_for_breaks_the_line() -> None:
    found = read(request("x", "Hello", model="anthropic/claude", logit_bias={"7": 5}))
    assert isinstance(found, BadLine)
    assert (found.code, found.param) == ("invalid_request", "logit_bias")


def test_calls_that_ask_the_same_are_alike_whatever_the_order_of_their_fields() -> None:
    one = request("x", "Hello", temperature=0.5, logit_bias={"1": 2, "3": 4})
    other = {**one, "custom_id": "y", "body": dict(reversed(one["body"].items()))}
    other["body"]["logit_bias"] = {"3": 4, "1": 2}
    assert gist_of(asked(one).asked.call) == gist_of(asked(other).asked.call)
    # Who asks is no part of the question.
    plain = gist_of(asked(request("y", "Hello")).asked.call)
    assert gist_of(asked(request("x", "Hello", user="me")).asked.call) == plain
    for changed in (request("x", "Hello."), request("x", "Hello", seed=1), request("x", "Hello", model="sim/open")):
        assert gist_of(asked(changed).asked.call) != plain


def test_an_envelope_keeps_what_stands_around_a_request() -> None:
    envelope = envelope_of(InputLine(4, json.dumps(request("x", "Hello")).encode() + b"\r"))
    assert isinstance(envelope, Envelope) and (envelope.line, envelope.custom_id) == (4, "x")
