"""A request to Gemini, read and written again for Gemini: the same, but for what is left out or mended on purpose.

Left out or written in another way: labels, null and defaults; names with underscores; the role `function`; schemas in
Google's own form, which become JSON schemas, and those of results, which are left out; tools of Google's come last.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from google.genai import types

from millstream.providers.llm.google.generate import PROTOCOL
from millstream.providers.llm.google.serve_generate import DIALECT
from millstream.providers.llm.protocol import Target

MODEL = "gemini-2.5-flash"
TARGET = Target("http://127.0.0.1:8000", "lab", MODEL, "gemini")
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}, "day": {"type": "integer"}}}
JSON = "application/json"
PICTURE = {"inlineData": {"mimeType": "image/png", "data": "iVBO"}}
USE = {"functionCall": {"id": "w1", "name": "weather", "args": {"place": "Bonn"}}, "thoughtSignature": "Eu4B"}
UNNAMED = {"functionCall": {"name": "time", "args": {}}}


def turn(*parts: Any, role: str = "user") -> dict[str, Any]:
    return {"role": role, "parts": list(parts)}


def request(*turns: Any, **changes: Any) -> dict[str, Any]:
    return {"contents": list(turns) or [turn({"text": "x"})], **changes}


def again(body: Any) -> Any:
    call = DIALECT.read({"model": MODEL, **body}, "gemini/{}".format).call
    return orjson.loads(PROTOCOL.encode(call, TARGET).wire)


def answered(name: str, response: Any, **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **more}}


SAME = {
    "a question": request(),
    "settings": request(
        generationConfig={
            "temperature": 0.5,
            "topP": 0.9,
            "topK": 40,
            "maxOutputTokens": 9,
            "stopSequences": ["\n"],
            "seed": 7,
            "responseLogprobs": True,
            "logprobs": 2,
            "presencePenalty": 0.5,
            "mediaResolution": "MEDIA_RESOLUTION_LOW",
        }
    ),
    "a system prompt": request(systemInstruction={"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}),
    "a schema": request(generationConfig={"responseMimeType": JSON, "responseJsonSchema": SCHEMA}),
    "json of any shape": request(generationConfig={"responseMimeType": JSON}),
    "a budget to think": request(generationConfig={"thinkingConfig": {"thinkingBudget": 512}}),
    "a budget to think aloud": request(
        generationConfig={"thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True}}
    ),
    "a budget of the model's own": request(generationConfig={"thinkingConfig": {"thinkingBudget": -1}}),
    "images and files": request(
        turn(
            {"text": "Look:"},
            PICTURE,
            {"fileData": {"fileUri": "https://one.example/a.png", "mimeType": "image/png"}},
            {"fileData": {"fileUri": "gs://bucket/a.pdf", "mimeType": "application/pdf"}},
        )
    ),
    "calls of functions and results": request(
        turn({"text": "x"}),
        turn({"text": "I think.", "thought": True}, {"text": "I'll look."}, USE, UNNAMED, role="model"),
        turn(
            answered("weather", {"output": "rain"}, id="w1", parts=[PICTURE]),
            answered("time", {"error": "No."}),
        ),
        turn({"text": "A", "thoughtSignature": "Eu4B"}, role="model"),
        turn({"text": "Well?"}),
        tools=[
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Tells.", "parametersJsonSchema": SCHEMA},
                    {"name": "time"},
                ]
            },
            {"googleSearch": {}},
        ],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["weather"]}},
    ),
    "results of any shape": request(
        turn(UNNAMED, UNNAMED, role="model"), turn(answered("time", {"hour": 9}), answered("time", {"output": [1]}))
    ),
    "a choice of several": request(
        tools=[{"functionDeclarations": [{"name": "a"}, {"name": "b"}]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}},
    ),
    "what no field covers": request(
        safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}], cachedContent="cachedContents/c"
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_what_a_client_asks_is_asked_of_gemini(name: str) -> None:
    assert again(SAME[name]) == SAME[name]


@pytest.mark.parametrize(
    ("given", "written"),
    [
        (
            request(labels={"a": "b"}, generationConfig={"candidateCount": 3, "responseMimeType": "text/plain"}),
            request(),
        ),
        ({"contents": {"parts": {"text": "x"}}, "system_instruction": {"parts": []}}, request()),
        (
            request(generation_config={"max_output_tokens": "9", "thinking_config": {"thinking_budget": 0}}),
            request(generationConfig={"maxOutputTokens": 9, "thinkingConfig": {"thinkingBudget": 0}}),
        ),
        (
            request(tools=[{"functionDeclarations": [{"name": "n", "parameters": {"type": "OBJECT"}}]}]),
            request(tools=[{"functionDeclarations": [{"name": "n", "parametersJsonSchema": {"type": "object"}}]}]),
        ),
        (
            request(
                tools=[
                    {"googleSearch": {}},
                    {"functionDeclarations": [{"name": "n", "behavior": "BLOCKING", "response": {"type": "STRING"}}]},
                ]
            ),
            request(tools=[{"functionDeclarations": [{"name": "n"}]}, {"googleSearch": {}}]),
        ),
        (
            request(turn(UNNAMED, role="model"), turn(answered("time", {}), role="function")),
            request(turn(UNNAMED, role="model"), turn(answered("time", {}))),
        ),
    ],
)
def test_what_is_left_out_or_mended_is_so_on_purpose(given: Any, written: Any) -> None:
    assert again(given) == written


def test_what_is_said_here_is_what_googles_own_types_allow() -> None:
    """The pictures of requests above are no invention."""
    for name in ("images and files", "calls of functions and results"):
        for each in SAME[name]["contents"]:
            types.Content.model_validate(each)


def test_a_properties_order_is_kept() -> None:
    function = {"name": "n", "parameters": SCHEMA}
    told = again(request(tools=[{"functionDeclarations": [function]}]))["tools"][0]["functionDeclarations"][0]
    assert list(told["parametersJsonSchema"]["properties"]) == ["place", "day"]
