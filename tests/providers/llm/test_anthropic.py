"""Anthropic Messages as bytes that are sent: what stands in them, in both versions of the API, and what is refused."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import structs

from millstream.engine.call import Call, Message
from millstream.engine.endpoint import EncodeError, Request
from millstream.engine.key import key_of
from millstream.providers.llm.anthropic.messages import (
    OLDER_VERSION,
    OUTPUT_DEFAULT,
    PROTOCOL,
    VERSION,
    encode,
    is_newer,
)
from millstream.providers.llm.protocol import Target

MODEL = "anthropic/claude-sonnet-5-5"
TARGET = Target("http://127.0.0.1:8000", "lab", "claude-sonnet-5-5", "anthropic")
OLDER = structs.replace(TARGET, version=OLDER_VERSION)


def body(call: Call, target: Target = TARGET) -> Any:
    return orjson.loads(encode(call, target).body)


def asked(target: Target = TARGET, /, **parameters: Any) -> Any:
    """What stands in the body besides the model, the prompt and max_tokens."""
    sent = body(Call(MODEL, "x", **parameters), target)
    return {name: value for name, value in sent.items() if name not in ("model", "messages", "max_tokens")}


@pytest.mark.parametrize(
    ("effort", "sent"),
    [
        ("low", {"output_config": {"effort": "low"}}),
        ("max", {"output_config": {"effort": "max"}}),
        ("none", {"thinking": {"type": "disabled"}}),
        ("2048", {"thinking": {"type": "enabled", "budget_tokens": 2048}}),
    ],
)
def test_effort_is_a_word_or_none_or_a_number_of_tokens_to_think(effort: str, sent: Any) -> None:
    assert asked(reasoning_effort=effort) == sent


def test_thoughts_never_raise_what_is_sent_for_max_tokens_in_silence() -> None:
    assert body(Call(MODEL, "x", reasoning_effort="2048"))["max_tokens"] == OUTPUT_DEFAULT
    assert body(Call(MODEL, "x", reasoning_effort="20000", max_tokens=30_000))["max_tokens"] == 30_000
    # What the two that were set must be to each other is the model's to say.
    assert body(Call(MODEL, "x", reasoning_effort="5000", max_tokens=4000))["max_tokens"] == 4000
    for budget in (OUTPUT_DEFAULT, 20_000):
        with pytest.raises(EncodeError, match=r"leave nothing for the answer of the 16,384 .*: set it higher"):
            asked(reasoning_effort=str(budget))


@pytest.mark.parametrize(
    ("model", "most"),
    [
        ("claude-opus-5-5", 16_384),
        ("claude-haiku-4-5-20251001", 16_384),
        ("claude-3-7-sonnet-20250219", 16_384),
        ("some-model", 16_384),
        ("claude-3-5-haiku-20241022", 8_192),
        ("claude-3-5-sonnet-v2@20241022", 8_192),
        ("claude-3-opus-20240229", 4_096),
        ("claude-3-haiku@20240307", 4_096),
        ("claude-2.1", 4_096),
        ("claude-instant-1.2", 4_096),
    ],
)
def test_an_answer_may_be_as_long_as_its_model_allows_and_costs_no_more_than_is_reserved(model: str, most: int) -> None:
    target = structs.replace(OLDER, model=model)
    assert body(Call("anthropic/m", "x"), target)["max_tokens"] == most == PROTOCOL.max_tokens_sent(model)


def test_the_callers_own_parameters_go_before_what_is_sent_for_want_of_them() -> None:
    sent = body(Call(MODEL, "x", extra={"max_tokens": 50, "thinking": {"type": "adaptive"}}))
    assert (sent["max_tokens"], sent["thinking"]) == (50, {"type": "adaptive"})


def test_the_callers_own_output_config_is_added_to_ours() -> None:
    format = {"type": "json_schema", "schema": {}}
    assert asked(reasoning_effort="low", extra={"output_config": {"format": format}}) == {
        "output_config": {"effort": "low", "format": format}
    }
    own = {"effort": "new", "format": format}
    assert asked(reasoning_effort="low", extra={"output_config": own}) == {"output_config": own}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, "x", seed=1), "Anthropic Messages has no seed: leave it out"),
        (Call(MODEL, "x", logprobs=0), "has no logprobs"),
        (Call(MODEL, "x", extra={"system": "y"}), "can't set system"),
        (Call(MODEL, "x", extra={"output_config": 7}), "output_config in extra must be an object"),
        (Call(MODEL, (Message("system", "x"),)), "at least one message of a user"),
    ],
)
def test_a_call_that_the_protocol_can_not_express_is_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encode(call, TARGET)


@pytest.mark.parametrize("name", ["temperature", "top_p"])
@pytest.mark.parametrize("value", [0, 0.5, 1])
def test_the_newer_version_takes_no_sampling_and_the_older_does(name: str, value: float) -> None:
    with pytest.raises(EncodeError) as refused:
        asked(**{name: value})
    said = str(refused.value)
    assert f"takes no {name}, not even the default: send none, or" in said
    assert 'version = "2023-06-01" under [providers.anthropic] in a --config file' in said
    assert asked(OLDER, **{name: value}) == {name: value}


@pytest.mark.parametrize(
    ("version", "newer"),
    [("2026-10-21", True), ("2027-01-01", True), ("2023-06-01", False), ("vertex-2023-10-16", False), ("v1", False)],
)
def test_a_version_is_newer_by_its_date(version: str, newer: bool) -> None:
    assert is_newer(version) == newer


def test_the_version_stands_in_a_header_and_in_the_key() -> None:
    assert PROTOCOL.headers(TARGET) == {"anthropic-version": VERSION}
    assert PROTOCOL.headers(OLDER) == {"anthropic-version": "2023-06-01"}
    keys = {key_of(encode(Call(MODEL, "x"), target), 0) for target in (TARGET, OLDER)}
    assert len(keys) == 2


@pytest.mark.parametrize("base_url", ["http://h", "http://h/v1"])
def test_the_address_is_given_with_its_version_or_without(base_url: str) -> None:
    target = structs.replace(TARGET, base_url=base_url, identity=base_url)
    request: Request = encode(Call(MODEL, "x"), target)
    assert (request.url, request.identity) == ("http://h/v1/messages", "http://h/v1/messages (2026-10-21)")
