"""What clients of Gemini ask, read as calls: every parameter in both spellings, what is left out, what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.providers.llm.google.serve_generate import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest

MODEL = "gemini-2.5-flash"
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
GOOGLE_SCHEMA = {"type": "OBJECT", "properties": {"place": {"type": "STRING"}}}


def request(**changes: Any) -> dict[str, Any]:
    return {"model": MODEL, "contents": [{"role": "user", "parts": [{"text": "x"}]}], **changes}


def read(body: Any) -> ServedRequest:
    return DIALECT.read(body, "gemini/{}".format)


def call_of(**changes: Any) -> Call:
    return read(request(**changes)).call


def configured(**config: Any) -> Call:
    return call_of(generationConfig=config)


def said(*parts: Any, role: str = "user") -> Any:
    return call_of(contents=[{"role": role, "parts": list(parts)}]).input[0]


def test_a_question_is_a_call_under_the_name_that_the_gateway_knows() -> None:
    assert read(request()) == ServedRequest(Call(f"gemini/{MODEL}", (Message("user", "x"),)), MODEL)
    assert read({"model": MODEL, "contents": {"parts": {"text": "x"}}}) == read(request())


def test_every_parameter_finds_its_field() -> None:
    config = {
        "temperature": 0.5,
        "topP": 1,
        "maxOutputTokens": 9,
        "stopSequences": ["END"],
        "candidateCount": 3,
        "seed": 7,
        "responseLogprobs": True,
        "logprobs": 2,
        "responseMimeType": "application/json",
        "responseJsonSchema": SCHEMA,
        "thinkingConfig": {"thinkingBudget": 1024},
    }
    asked = read(
        request(systemInstruction={"parts": [{"text": "Be brief."}]}, generationConfig=config, stream=True, labels={})
    )
    assert (asked.count, asked.is_streamed, asked.model) == (3, True, MODEL)
    assert asked.call == Call(
        f"gemini/{MODEL}",
        (Message("system", "Be brief."), Message("user", "x")),
        temperature=0.5,
        max_tokens=9,
        top_p=1,
        stop=("END",),
        seed=7,
        stream=True,
        reasoning_effort="1024",
        json_schema=SCHEMA,
        logprobs=2,
    )


def test_names_with_underscores_and_numbers_in_quotes_are_the_same() -> None:
    body = request(
        system_instruction={"parts": [{"text": "Be brief."}]},
        generation_config={"max_output_tokens": "9", "top_p": "0.5", "response_mime_type": "text/plain"},
        tool_config={"function_calling_config": {"mode": "ANY", "allowed_function_names": ["weather"]}},
        tools=[{"function_declarations": [{"name": "weather", "parameters_json_schema": SCHEMA}]}],
    )
    call = read(body).call
    assert (call.max_tokens, call.top_p, call.tool_choice) == (9, 0.5, "weather")
    assert call.tools == (Tool("weather", "", SCHEMA),)
    assert isinstance(call.input, tuple)
    assert call.input[0] == Message("system", "Be brief.")


def test_what_no_field_covers_goes_on_in_googles_words_and_what_others_can_do_without_is_told() -> None:
    asked = read(request(safety_settings=[{"category": "c"}], cachedContent="c", generationConfig={"top_k": 40}))
    assert asked.call.extra == {
        "safetySettings": [{"category": "c"}],
        "cachedContent": "c",
        "generationConfig": {"topK": 40},
    }
    assert asked.spare == {"safetySettings"}
    assert read(request(generationConfig={"responseModalities": ["TEXT"]})).spare == {"generationConfig"}


@pytest.mark.parametrize(
    ("thinking", "effort", "kept"),
    [
        ({"thinkingBudget": 0}, "none", False),
        ({"thinkingBudget": "512"}, "512", False),
        ({"thinkingLevel": "HIGH"}, "high", False),
        ({"includeThoughts": False}, None, False),
        ({"thinkingBudget": -1}, None, True),
        ({"thinkingLevel": "THINKING_LEVEL_UNSPECIFIED"}, None, True),
        ({"thinkingBudget": 512, "includeThoughts": True}, "512", True),
    ],
)
def test_how_hard_to_think_is_said_without_loss(thinking: Any, effort: str | None, kept: bool) -> None:
    asked = read(request(generationConfig={"thinkingConfig": thinking}))
    assert asked.call.reasoning_effort == effort
    assert asked.call.extra == ({"generationConfig": {"thinkingConfig": thinking}} if kept else None)
    assert asked.spare == ({"generationConfig"} if kept else frozenset())


def test_an_answers_schema_is_everyones_and_other_kinds_of_json_are_googles() -> None:
    kind = "application/json"
    assert configured(responseMimeType=kind, responseSchema=GOOGLE_SCHEMA).json_schema == SCHEMA
    assert configured(responseMimeType=kind).extra == {"generationConfig": {"responseMimeType": kind}}
    choice = {"responseMimeType": "text/x.enum", "responseSchema": {"type": "STRING", "enum": ["A", "B"]}}
    assert configured(**choice).extra == {"generationConfig": choice}


def test_log_probabilities_are_asked_for_with_or_without_alternatives() -> None:
    assert configured(responseLogprobs=True).logprobs == 0
    assert configured(responseLogprobs=False).logprobs is None


def test_googles_own_form_of_a_schema_becomes_a_json_schema() -> None:
    own = {
        "type": "OBJECT",
        "propertyOrdering": ["b", "a"],
        "properties": {
            "a": {"type": "STRING", "format": "enum", "enum": ["x", "y"], "nullable": True},
            "b": {"type": "ARRAY", "items": {"type": "INTEGER", "format": "int32"}, "minItems": "1", "maxItems": 4},
            "type": {"any_of": [{"type": "NUMBER"}, {"type": "TYPE_UNSPECIFIED"}], "nullable": True, "example": 1.5},
        },
        "required": ["a"],
    }
    schema = call_of(tools=[{"functionDeclarations": [{"name": "n", "parameters": own}]}]).tools
    expected = {
        "type": "object",
        "properties": {
            "b": {"type": "array", "items": {"type": "integer", "format": "int32"}, "minItems": 1, "maxItems": 4},
            "a": {"type": ["string", "null"], "enum": ["x", "y", None]},
            "type": {"anyOf": [{"type": "number"}, {}, {"type": "null"}], "examples": [1.5]},
        },
        "required": ["a"],
    }
    assert schema == (Tool("n", "", expected),)
    assert isinstance(schema[0], Tool)
    assert schema[0].parameters is not None
    assert list(schema[0].parameters["properties"]) == ["b", "a", "type"]


def test_images_are_read_from_their_bytes_and_from_addresses_that_everyone_can_open() -> None:
    # Google's client writes base64 in the alphabet for addresses.
    data = {"inlineData": {"mimeType": "image/png", "data": "--___g=="}}
    address = {"file_data": {"file_uri": "https://one.example/a.png", "mime_type": "image/png"}}
    stored = {"fileData": {"fileUri": "https://one.example/v1beta/files/a", "mimeType": "image/png"}}
    sound = {"inlineData": {"mimeType": "audio/wav", "data": "UklG"}}
    images = (Image("data:image/png;base64,++///g=="), Image("https://one.example/a.png"))
    assert said(data, address) == Message("user", images)
    assert said(stored, sound) == Message("user", (Native("gemini", stored), Native("gemini", sound)))


def test_calls_of_functions_and_their_results_find_each_other_without_ids() -> None:
    asked = {"name": "weather", "args": {"place": "Bonn"}}
    signed = {"functionCall": asked, "thoughtSignature": "Eu4B"}
    answers = [
        {"functionResponse": {"name": "weather", "response": {"output": "rain"}}},
        {"functionResponse": {"name": "weather", "response": {"error": "none"}}},
        {"functionResponse": {"name": "time", "id": "t", "response": {"hour": 9}}},
    ]
    contents = [
        {"role": "model", "parts": [signed, {"functionCall": asked}, {"functionCall": {"name": "time", "id": "t"}}]},
        {"role": "function", "parts": answers},
    ]
    signature = Native("gemini", {"thoughtSignature": "Eu4B"})
    assert call_of(contents=contents).input == (
        Message(
            "assistant",
            (
                ToolCall("call_1", "weather", '{"place":"Bonn"}', signature),
                ToolCall("call_2", "weather", '{"place":"Bonn"}'),
                ToolCall("t", "time", "{}"),
            ),
        ),
        Message(
            "tool",
            (
                ToolResult("call_1", "rain", "weather"),
                ToolResult("call_2", "none", "weather", is_error=True),
                ToolResult("t", '{"hour":9}', "time"),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("calling", "choice"),
    [
        ({"mode": "AUTO"}, "auto"),
        ({"mode": "ANY"}, "required"),
        ({"mode": "NONE"}, "none"),
        ({"mode": "ANY", "allowedFunctionNames": ["weather"]}, "weather"),
        ({"mode": "MODE_UNSPECIFIED"}, None),
    ],
)
def test_the_choice_of_a_function_is_read(calling: Any, choice: str | None) -> None:
    call = call_of(toolConfig={"functionCallingConfig": calling})
    assert (call.tool_choice, call.extra) == (choice, None)


@pytest.mark.parametrize(
    "config",
    [
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}},
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["auto"]}},
        {"functionCallingConfig": {"mode": "VALIDATED"}},
        {"functionCallingConfig": {"mode": "AUTO"}, "retrievalConfig": {"languageCode": "de"}},
    ],
)
def test_a_choice_that_only_google_can_be_told_goes_on_as_it_stands(config: Any) -> None:
    call = call_of(toolConfig=config)
    assert (call.tool_choice, call.extra) == (None, {"toolConfig": config})


@pytest.mark.parametrize(
    ("body", "told", "param"),
    [
        ({}, "* GenerateContentRequest.model: unexpected model name format", "model"),
        ({"model": "m"}, "* GenerateContentRequest.contents: contents is not specified", "contents"),
        (request(contents="x"), "Invalid value at 'contents' (a list), 'x'", "contents"),
        (
            request(contents=[{"role": "user"}]),
            "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty",
            "contents",
        ),
        (
            request(contents=[{"role": "system", "parts": [{"text": "x"}]}]),
            "* GenerateContentRequest.contents[0].role: Please use a valid role: user, model; came 'system'",
            "contents",
        ),
        (
            request(contents=[{"parts": [{}]}]),
            "* GenerateContentRequest.contents[0].parts[0].data: "
            "required oneof field 'data' must have one initialized field",
            "contents",
        ),
        (
            request(contents=[{"parts": [{"functionResponse": {"response": {}}}]}]),
            "* GenerateContentRequest.contents[0].parts[0].functionResponse.name: Name cannot be empty.",
            "contents",
        ),
        (
            request(generationConfig={"temperature": "hot"}),
            "Invalid value at 'generationConfig.temperature' (TYPE_FLOAT), 'hot'",
            "generationConfig",
        ),
        (
            request(generationConfig={"maxOutputTokens": 1.5}),
            "Invalid value at 'generationConfig.maxOutputTokens' (TYPE_INT32), 1.5",
            "generationConfig",
        ),
        (
            request(generationConfig={"candidateCount": 9}),
            "* GenerateContentRequest.generationConfig.candidateCount: 9 is out of range: it must be at most 8",
            "generationConfig",
        ),
        (
            request(generationConfig={"topP": -1}),
            "* GenerateContentRequest.generationConfig.topP: -1.0 is out of range: it must be at least 0",
            "generationConfig",
        ),
        (
            request(systemInstruction={"parts": [{"inlineData": {}}]}),
            "* GenerateContentRequest.systemInstruction.parts[0]: a system instruction holds nothing but text",
            "systemInstruction",
        ),
        (request(tools=["t"]), "Invalid value at 'tools[0]' (an object), 't'", "tools"),
    ],
)
def test_what_is_wrong_or_missing_is_refused_as_google_words_it(body: Any, told: str, param: str) -> None:
    with pytest.raises(RequestRefusal) as refused:
        read(body)
    problem = refused.value.problem
    assert (problem.status, problem.message, problem.param) == (400, told, param)
