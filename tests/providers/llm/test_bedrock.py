"""Bedrock's Converse as bytes: what is sent, and what a key is made of."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.endpoint import EncodeError, Request
from millstream.engine.key import key_of
from millstream.providers.llm.bedrock.converse import encode
from millstream.providers.llm.protocol import Target

URL = "https://bedrock-runtime.eu-central-1.amazonaws.com"
NAME = "anthropic.claude-sonnet-4-5-20250929-v1:0"
MODEL = f"bedrock/{NAME}"


def encoded(call: Call, *, identity: str = URL, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    return encode(call, Target(URL, identity, model, provider, **known))


def body_of(call: Call) -> Any:
    return orjson.loads(encoded(call).body)


def test_everything_that_was_set_is_sent_under_bedrocks_names() -> None:
    talk = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "Why?"))
    call = Call(
        MODEL, talk, temperature=0.5, max_tokens=100, top_p=1, stop=("\n", "END"), reasoning_effort="low", tag="unsent"
    )
    assert encoded(call).body.decode() == (
        '{"inferenceConfig":{"maxTokens":100,"stopSequences":["\\n","END"],"temperature":0.5,"topP":1.0},'
        '"messages":[{"content":[{"text":"Ä ✓"}],"role":"user"},{"content":[{"text":"A"}],"role":"assistant"},'
        '{"content":[{"text":"Why?"}],"role":"user"}],"outputConfig":{"effort":"low"},'
        '"system":[{"text":"Be brief."}]}'
    )


def test_an_answer_in_a_shape_is_json_of_that_schema_with_its_properties_in_their_order() -> None:
    schema = {"title": "A stance", "type": "object", "properties": {"why": {"type": "string"}, "letter": {}}}
    told = body_of(Call(MODEL, "x", json_schema=schema))["outputConfig"]["textFormat"]
    assert told == {
        "type": "json_schema",
        "structure": {"jsonSchema": {"name": "A_stance", "schema": orjson.dumps(schema).decode()}},
    }


def test_extras_are_the_models_own_but_for_what_converse_knows_itself() -> None:
    extra = {
        "top_k": 5,
        "thinking": {"type": "disabled"},
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "inferenceConfig": {"topP": 0.1},
        "outputConfig": {"effort": "max"},
        "additionalModelRequestFields": {"top_k": 6, "x": 1},
    }
    body = body_of(Call(MODEL, "x", temperature=0, top_p=0.9, reasoning_effort="low", extra=extra))
    del body["messages"]
    assert body == {
        "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
        "performanceConfig": {"latency": "optimized"},
        "inferenceConfig": {"temperature": 0.0, "topP": 0.1},
        "outputConfig": {"effort": "max"},
        "additionalModelRequestFields": {"top_k": 6, "thinking": {"type": "disabled"}, "x": 1},
    }
    assert extra["inferenceConfig"] == {"topP": 0.1}
    assert body_of(Call(MODEL, "x", extra={"top_k": 5}))["additionalModelRequestFields"] == {"top_k": 5}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, (Message("tool", "x"),)), "no role 'tool', only system, user and assistant"),
        (Call(MODEL, (Message("system", "x"),)), "at least one message of a user"),
        (Call(MODEL, ()), "at least one message of a user"),
        (Call(MODEL, "x", seed=7), "Bedrock has no seed: leave it out, or put the model's own field"),
        (Call(MODEL, "x", logprobs=0), "Bedrock has no logprobs"),
        (Call(MODEL, "x", extra={"messages": [], "modelId": "m"}), "can't set messages, modelId"),
        (Call(MODEL, "x", extra={"system": []}), "can't set system"),
        (Call(MODEL, "x", top_p=1, extra={"inferenceConfig": [1]}), "inferenceConfig in extra must be an object"),
    ],
)
def test_a_call_that_converse_can_not_hold_is_refused_before_it_is_sent(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


# --- addresses and keys ---


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("us.amazon.nova-2-lite-v1:0", "us.amazon.nova-2-lite-v1%3A0"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.meta.llama3-3-70b-instruct-v1:0",
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.meta.llama3-3-70b-instruct-v1%3A0",
        ),
        ("a b?c#d~e_f", "a%20b%3Fc%23d~e_f"),
        ("../ü", "..%2F%C3%BC"),
    ],
)
def test_a_model_is_one_part_of_the_path_whatever_is_in_its_name(model: str, path: str) -> None:
    assert encoded(Call(f"bedrock/{model}", "x")).url == f"{URL}/model/{path}/converse"


def test_the_model_stands_in_the_key() -> None:
    keys = {key_of(encoded(Call(f"bedrock/{model}", "x")), 0) for model in ("a:0", "a:1", "a%3A0")}
    assert len(keys) == 3
