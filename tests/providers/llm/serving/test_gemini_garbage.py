"""Whatever comes to Gemini is a call or is refused: nothing else is raised, however odd or deep it is."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from mutations import mutated

from millstream.engine.call import Call
from millstream.providers.llm.google.serve_generate import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "contents": [{"role": "user", "parts": [{"text": "x"}]}], **changes}


def call_of(body: Any) -> Call:
    return DIALECT.read(body, "gemini/{}".format).call


DEEP: Any = orjson.loads(b'{"items":' * 900 + b"1" + b"}" * 900)
PARTS = [
    {"executableCode": DEEP},
    {"text": DEEP},
    {"functionCall": {"name": "n", "args": DEEP}},
    {"functionCall": {"name": "n"}, "thoughtSignature": DEEP},
    {"functionResponse": {"name": "n", "response": DEEP}},
    {"functionResponse": {"name": "n", "response": {}, "scheduling": DEEP}},
    {"inlineData": {"mimeType": "a/b", "data": "", "more": DEEP}},
]


@pytest.mark.parametrize(
    "changes",
    [
        *({"contents": [{"parts": [part]}]} for part in PARTS),
        {"cachedContent": DEEP},
        {"tools": [{"functionDeclarations": [{"name": "n", "parameters": DEEP}]}]},
        {"tools": [{"functionDeclarations": [{"name": "n", "behavior": DEEP}]}]},
        {"tools": [{"googleSearch": DEEP}]},
        {"generationConfig": {"responseMimeType": "application/json", "responseSchema": DEEP}},
        {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": DEEP}},
        {"generationConfig": {"temperature": DEEP}},
        {"toolConfig": {"retrievalConfig": DEEP}},
    ],
)
def test_what_is_too_deep_to_be_written_again_is_refused(changes: Any) -> None:
    with pytest.raises(RequestRefusal):
        call_of(request(**changes))


FUNCTION = {"name": "weather", "parameters": {"type": "OBJECT", "nullable": True, "required": ["a"]}}
SOUND = [
    request(
        systemInstruction={"parts": [{"text": "Be brief."}]},
        safetySettings=[{"category": "c"}],
        tools=[{"functionDeclarations": [FUNCTION, {"name": "n", "parametersJsonSchema": {}}], "googleSearch": {}}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
        generationConfig={
            "temperature": 0.5,
            "topK": 40,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "candidateCount": 2,
            "responseLogprobs": True,
            "logprobs": 2,
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {"a": {"anyOf": [{"type": "STRING", "enum": ["A"]}]}, "b": {"items": {"minItems": "1"}}},
                "propertyOrdering": ["b", "a"],
            },
            "thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True},
        },
    ),
    request(
        contents=[
            {
                "role": "model",
                "parts": [
                    {"text": "I think.", "thought": True},
                    {"functionCall": {"id": "w", "name": "weather", "args": {"a": 1}}, "thoughtSignature": "Eu4B"},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {
                        "functionResponse": {
                            "name": "weather",
                            "response": {"output": "rain"},
                            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBO"}}],
                        }
                    },
                    {"fileData": {"fileUri": "https://one.example/a.png", "mimeType": "image/png"}},
                ],
            },
        ]
    ),
]


@given(mutated(SOUND))
def test_whatever_comes_is_a_call_or_refused_and_nothing_else(body: Any) -> None:
    try:
        assert isinstance(call_of(body), Call)
    except RequestRefusal as refused:
        assert refused.problem.message


@pytest.mark.parametrize("body", SOUND)
def test_what_oddities_are_put_into_is_sound(body: Any) -> None:
    assert call_of(body)
