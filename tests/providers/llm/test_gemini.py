"""Gemini's generateContent as bytes: what is sent, and what a key is made of."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.endpoint import EncodeError, Request
from millstream.providers.llm.google.generate import encode
from millstream.providers.llm.protocol import Target

URL = "https://generativelanguage.googleapis.com"
MODEL = "gemini/gemini-2.5-flash"


def encoded(call: Call, *, base_url: str = URL, identity: str = URL, **known: Any) -> Request:
    provider, _, model = call.model.partition("/")
    return encode(call, Target(base_url, identity, model, provider, **known))


def body_of(call: Call) -> Any:
    return orjson.loads(encoded(call).body)


def test_everything_that_was_set_is_sent_under_googles_names() -> None:
    talk = (Message("system", "Be brief."), Message("user", "Ä ✓"), Message("assistant", "A"), Message("user", "Why?"))
    call = Call(
        MODEL, talk, temperature=0.5, max_tokens=100, top_p=1, stop=("\n", "END"), seed=7, logprobs=3, tag="unsent"
    )
    assert encoded(call).body.decode() == (
        '{"contents":[{"parts":[{"text":"Ä ✓"}],"role":"user"},{"parts":[{"text":"A"}],"role":"model"},'
        '{"parts":[{"text":"Why?"}],"role":"user"}],"generationConfig":{"logprobs":3,"maxOutputTokens":100,'
        '"responseLogprobs":true,"seed":7,"stopSequences":["\\n","END"],"temperature":0.5,"topP":1.0},'
        '"systemInstruction":{"parts":[{"text":"Be brief."}]}}'
    )


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-3.1-pro", "low", {"thinkingLevel": "LOW"}),
        ("gemini-3.1-pro", "high", {"thinkingLevel": "HIGH"}),
        ("gemini-3.1-pro", "something", {"thinkingLevel": "SOMETHING"}),
        ("gemini-3.1-pro", "none", {"thinkingBudget": 0}),
        ("gemini-3.1-pro", "2048", {"thinkingBudget": 2048}),
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0}),
        ("gemini-2.5-flash", "low", {"thinkingBudget": 1024}),
        ("gemini-2.5-flash", "medium", {"thinkingBudget": 8192}),
        ("gemini-2.5-pro", "high", {"thinkingBudget": 24576}),
        ("gemini-2.5-pro", "-1", {"thinkingBudget": -1}),
        ("gemini-2.5-pro", "xhigh", {"thinkingLevel": "XHIGH"}),
    ],
)
def test_an_effort_is_a_level_or_for_older_models_a_number_of_tokens(model: str, effort: str, thinking: Any) -> None:
    config = body_of(Call(f"gemini/{model}", "x", reasoning_effort=effort))["generationConfig"]
    assert config == {"thinkingConfig": thinking}


def test_the_callers_own_parameters_stand_beside_ours() -> None:
    extra = {"safetySettings": [{"category": "C", "threshold": "OFF"}], "generationConfig": {"topK": 5, "topP": 0.1}}
    body = body_of(Call(MODEL, "x", temperature=0, top_p=0.9, extra=extra))
    assert body["safetySettings"] == extra["safetySettings"]
    assert body["generationConfig"] == {"temperature": 0.0, "topK": 5, "topP": 0.1}
    assert extra["generationConfig"] == {"topK": 5, "topP": 0.1}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call(MODEL, (Message("tool", "x"),)), "no role 'tool', only system, user and assistant"),
        (Call(MODEL, (Message("system", "x"),)), "at least one message of a user"),
        (Call(MODEL, ()), "at least one message of a user"),
        (Call(MODEL, "x", extra={"systemInstruction": {}, "model": "m"}), "can't set model, systemInstruction"),
        (Call(MODEL, "x", extra={"generationConfig": [1]}), "generationConfig in extra must be an object"),
    ],
)
def test_a_call_that_gemini_can_not_hold_is_refused_before_it_is_sent(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encoded(call)


# --- addresses and keys ---


@pytest.mark.parametrize(
    ("base_url", "version", "url"),
    [
        ("http://a", None, "http://a/v1/models/gemini-2.5-flash:generateContent"),
        ("http://a", "v1beta", "http://a/v1beta/models/gemini-2.5-flash:generateContent"),
        ("http://a/v1beta", None, "http://a/v1beta/models/gemini-2.5-flash:generateContent"),
        ("http://a/v1", "v1beta", "http://a/v1/models/gemini-2.5-flash:generateContent"),
        ("http://a/behind/v1alpha", None, "http://a/behind/v1alpha/models/gemini-2.5-flash:generateContent"),
        ("http://a/behind", None, "http://a/behind/v1/models/gemini-2.5-flash:generateContent"),
    ],
)
def test_the_version_stands_in_the_path_once(base_url: str, version: str | None, url: str) -> None:
    assert encoded(Call(MODEL, "x"), base_url=base_url, version=version).url == url


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("models/gemini-2.5-flash", "models/gemini-2.5-flash"),
        ("tunedModels/mine-1", "tunedModels/mine-1"),
        ("a b?c", "models/a%20b%3Fc"),
    ],
)
def test_a_model_may_be_named_as_google_lists_it(model: str, path: str) -> None:
    assert encoded(Call(f"gemini/{model}", "x")).url == f"{URL}/v1/{path}:generateContent"
