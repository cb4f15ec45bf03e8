"""What Google's own client really sends, in its own spelling, is read as what its user asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gemini_shapes
import pytest
from google import genai
from google.genai import types
from recorder import Recorder, recording

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Tool, ToolCall, ToolResult
from millstream.providers.llm.google.serve_generate import DIALECT

SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording(gemini_shapes.whole()) as recorder:
        yield recorder


def asked(server: Recorder, contents: Any, **config: Any) -> Call:
    with genai.Client(api_key="k", vertexai=False, http_options=types.HttpOptions(base_url=server.origin)) as client:
        client.models.generate_content(model="m", contents=contents, config=types.GenerateContentConfig(**config))
    return DIALECT.read({"model": "m", **server.last.json}, "gemini/{}".format).call


def test_settings_are_read(server: Recorder) -> None:
    call = asked(
        server,
        "x",
        system_instruction="Be brief.",
        temperature=0.5,
        top_p=0.9,
        max_output_tokens=9,
        stop_sequences=["END"],
        seed=7,
        response_logprobs=True,
        logprobs=2,
        response_mime_type="application/json",
        response_schema={"type": "OBJECT", "properties": {"place": {"type": "STRING"}}},
        thinking_config=types.ThinkingConfig(thinking_budget=512, include_thoughts=True),
    )
    assert call == Call(
        "gemini/m",
        (Message("system", "Be brief."), Message("user", "x")),
        temperature=0.5,
        max_tokens=9,
        top_p=0.9,
        stop=("END",),
        seed=7,
        extra={"generationConfig": {"thinkingConfig": {"thinkingBudget": 512, "includeThoughts": True}}},
        reasoning_effort="512",
        json_schema=SCHEMA,
        logprobs=2,
    )


def test_images_functions_and_results_are_read(server: Recorder) -> None:
    part = types.Part
    function = types.FunctionDeclaration(name="weather", description="Tells.", parameters_json_schema=SCHEMA)
    call = asked(
        server,
        [
            types.Content(role="user", parts=[part(text="x"), part.from_bytes(data=b"\x89PNG", mime_type="image/png")]),
            types.Content(role="model", parts=[part.from_function_call(name="weather", args={"place": "Bonn"})]),
            types.Content(
                role="user", parts=[part.from_function_response(name="weather", response={"output": "rain"})]
            ),
        ],
        tools=[types.Tool(function_declarations=[function]), types.Tool(google_search=types.GoogleSearch())],
        tool_config=types.ToolConfig(
            function_calling_config=types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
        ),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    assert call.input == (
        Message("user", ("x", Image("data:image/png;base64,iVBORw=="))),
        Message("assistant", (ToolCall("call_1", "weather", '{"place":"Bonn"}'),)),
        Message("user", (ToolResult("call_1", "rain", "weather"),)),
    )
    assert call.tools == (Native("gemini", {"googleSearch": {}}), Tool("weather", "Tells.", SCHEMA))
    assert call.tool_choice == "required"


def test_an_image_that_the_client_writes_in_its_own_alphabet_is_read_in_everyones(server: Recorder) -> None:
    image = types.Part.from_bytes(data=b"\xfb\xef\xff\xfe", mime_type="image/png")
    call = asked(server, [image, "x"])
    assert server.last.json["contents"][0]["parts"][0]["inlineData"]["data"] == "--___g=="
    assert call.input == (Message("user", (Image("data:image/png;base64,++///g=="), "x")),)


def weather(place: str) -> str:
    """Tells what it is like."""
    return place


def test_a_python_function_is_a_tool_with_a_schema_that_others_take(server: Recorder) -> None:
    call = asked(
        server,
        "x",
        tools=[weather],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    assert call.tools is not None
    tool = call.tools[0]
    assert isinstance(tool, Tool)
    assert (tool.name, tool.description) == ("weather", "Tells what it is like.")
    assert tool.parameters is not None
    assert tool.parameters["properties"]["place"]["type"] == "string"
