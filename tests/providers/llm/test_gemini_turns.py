"""Tools, images and parts of its own in what Gemini is sent."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from msgspec import structs
from tool_talk import ASKED, CLOCK, FAR, PIXEL, RESULTS, SHOWN, TOOLS

from millstream.engine.call import Call, Message
from millstream.engine.content import Image, Native, Part, ToolCall, ToolResult
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.google.generate import encode
from millstream.providers.llm.protocol import Target

MODEL = "gemini/gemini-2.5-flash"
TARGET = Target("http://a", "http://a", "gemini-2.5-flash", "gemini")
SIGNED = Native("gemini", {"thoughtSignature": "Eu4B"})
THOUGHT = {"text": "Hm.", "thought": True}


def body(given: Any, model: str = "gemini-2.5-flash", **parameters: Any) -> Any:
    return orjson.loads(encode(Call(MODEL, given, **parameters), structs.replace(TARGET, model=model)).body)


def contents(*messages: Message, model: str = "gemini-2.5-flash") -> Any:
    return body(messages, model)["contents"]


def parts(*given: Part, role: str = "user", model: str = "gemini-2.5-flash") -> Any:
    return contents(Message(role, given), model=model)[0]["parts"]


def called(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": arguments} | ({} if call_id is None else {"id": call_id})}


def answered(name: str, response: Any, call_id: str | None = None) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response} | ({} if call_id is None else {"id": call_id})}


def test_results_are_sent_in_the_order_of_their_calls() -> None:
    asked = Message("assistant", ASKED)
    for results in ((Message("tool", RESULTS[::-1]),), tuple(Message("user", (one,)) for one in RESULTS[::-1])):
        told = contents(asked, *results)[1]["parts"]
        assert [part["functionResponse"]["id"] for part in told] == ["call_a1", "call_b2"]


def test_results_are_sent_before_texts_and_in_the_order_of_their_calls() -> None:
    """Without the ids, which Google did not give, only the order tells which is which."""
    asked = Message("assistant", (ToolCall("call_0", "f"), ToolCall("call_1", "f")))
    late, first = ToolResult("call_1", "b"), ToolResult("call_0", "a")
    for turns in ((("and", late, first),), (("", late), (first, "and")), ((late,), "", (first, "and"))):
        _, told = contents(asked, *(Message("user", turn) for turn in turns))
        assert told["parts"] == [answered("f", {"output": "a"}), answered("f", {"output": "b"}), {"text": "and"}]


def test_an_empty_turn_is_left_out_unless_there_is_no_other() -> None:
    blank = Message("system", ""), Message("user", ("", "")), Message("assistant", "")
    assert body((*blank, Message("user", "a"))) == body((Message("user", "a"),))
    assert [turn["role"] for turn in contents(*blank)] == ["user", "model"]


def test_ids_that_google_did_not_give_are_not_sent() -> None:
    asked = (ToolCall("call_0", "f"), ToolCall("call_1", "f"), ToolCall("", "g"))
    results = (ToolResult("call_1", "b"), ToolResult("call_0", "a"), ToolResult("", "c"))
    told = contents(Message("assistant", asked), Message("tool", results))
    assert told[0]["parts"] == [called("f", {}), called("f", {}), called("g", {})]
    assert told[1]["parts"] == [answered(name, {"output": text}) for name, text in (("f", "a"), ("f", "b"), ("g", "c"))]


def test_a_result_has_its_tools_name_from_itself_or_from_the_last_call_of_its_id() -> None:
    told = contents(
        Message("assistant", (ToolCall("call_0", "f"),)),
        Message("tool", (ToolResult("call_0", "1"),)),
        Message("assistant", (ToolCall("call_0", "g"),)),
        Message("tool", (ToolResult("call_0", "2"),)),
        Message("tool", (ToolResult("x", "3", "h"), "and")),
    )
    assert [content["parts"][0].get("functionResponse", {}).get("name") for content in told] == [
        None, "f", None, "g",
    ]  # fmt: skip
    assert told[3]["parts"][1:] == [answered("h", {"output": "3"}, "x"), {"text": "and"}]
    with pytest.raises(EncodeError, match="wants the name of the tool whose result 'y' is: give it, or the turn"):
        parts(ToolResult("y", "4"), role="tool")


def test_a_result_is_an_object_an_output_or_an_error_and_may_hold_images() -> None:
    inline = {"inlineData": {"mimeType": "image/png", "data": PIXEL}}
    told = parts(
        ToolResult("a", '{"b": {"c": 1}}', "f"),
        ToolResult("b", "[1]", "f"),
        ToolResult("c", '{"no": 1}', "f", is_error=True),
        ToolResult("d", ("seen", SHOWN, " here"), "f"),
        role="tool",
    )
    assert [part["functionResponse"]["response"] for part in told] == [
        {"b": {"c": 1}},
        {"output": "[1]"},
        {"error": '{"no": 1}'},
        {"output": "seen here"},
    ]
    assert told[3]["functionResponse"]["parts"] == [inline] and "parts" not in told[0]["functionResponse"]


def test_an_image_goes_along_or_by_its_address() -> None:
    assert parts("see", SHOWN, FAR, Image("gs://b/c"), Image("http://[x/a.png")) == [
        {"text": "see"},
        {"inlineData": {"mimeType": "image/png", "data": PIXEL}},
        {"fileData": {"fileUri": FAR.url, "mimeType": "image/jpeg"}},
        {"fileData": {"fileUri": "gs://b/c"}},
        {"fileData": {"fileUri": "http://[x/a.png"}},
    ]


def test_native_parts_are_sent_unchanged() -> None:
    signed = ToolCall("call_0", "f", "{}", SIGNED)
    assert parts(Native("gemini", THOUGHT), "a", Native("gemini", {"text": "", **SIGNED.value}), signed) == [
        THOUGHT,
        {"text": "a"},
        {"text": "", "thoughtSignature": "Eu4B"},
        {**called("f", {}), "thoughtSignature": "Eu4B"},
    ]
    assert body("x", tools=(Native("gemini", {"googleSearch": {}}), CLOCK))["tools"] == [
        {"functionDeclarations": [{"name": "get_time"}]},
        {"googleSearch": {}},
    ]
    assert body("x", tools=(Native("gemini", {"codeExecution": {}}),))["tools"] == [{"codeExecution": {}}]
    system = (Message("system", (Native("gemini", THOUGHT), "b")), Message("user", "x"))
    assert body(system)["systemInstruction"]["parts"] == [THOUGHT, {"text": "b"}]


@pytest.mark.parametrize(
    ("model", "is_wanted"),
    [
        ("gemini-3.1-pro", True),
        ("gemini-flash-latest", True),
        ("gemini-10", True),
        ("gemini-2.5-flash", False),
        ("gemini-2-x", False),
        ("gemma-4", False),
    ],
)
def test_an_unsigned_call_is_marked_for_models_that_require_signatures(model: str, is_wanted: bool) -> None:
    first, second = parts(*ASKED, role="assistant", model=model)
    assert first.get("thoughtSignature") == ("skip_thought_signature_validator" if is_wanted else None)
    assert "thoughtSignature" not in second
    # One that is signed leaves the others as they were.
    signed = ToolCall("a", "f", "{}", SIGNED)
    assert "thoughtSignature" not in parts(ASKED[0], signed, role="assistant", model=model)[0]
    foreign = ToolCall("a", "f", "{}", Native("openai", {"thoughtSignature": "no"}))
    told = parts(foreign, role="assistant", model=model)[0].get("thoughtSignature")
    assert told == first.get("thoughtSignature")


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ("get_time", {"mode": "ANY", "allowedFunctionNames": ["get_time"]}),
    ],
)
def test_tool_choice_is_sent_as_google_spells_it(choice: str, told: Any) -> None:
    assert body("x", tools=TOOLS, tool_choice=choice)["toolConfig"] == {"functionCallingConfig": told}
    extra = {"toolConfig": {"retrievalConfig": {"languageCode": "de"}}}
    assert body("x", tools=TOOLS, tool_choice=choice, extra=extra)["toolConfig"] == {
        "functionCallingConfig": told,
        "retrievalConfig": {"languageCode": "de"},
    }


def test_parallel_tools_are_geminis_default() -> None:
    assert body("x", tools=TOOLS, parallel_tools=True) == body("x", tools=TOOLS)
    assert body("x", parallel_tools=False) == body("x")
    forbidden = body("x", tools=TOOLS, tool_choice="none")
    assert body("x", tools=TOOLS, tool_choice="none", parallel_tools=False) == forbidden
    assert "tools" not in body("x", tools=())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            Call(MODEL, "x", tools=TOOLS, parallel_tools=False),
            r"Gemini has no way to be asked for one tool call at a time, .*: leave parallel_tool_calls \(",
        ),
        (Call(MODEL, (Message("assistant", (ToolCall("t", "f", "7"),)),)), "arguments of f must be one JSON object"),
        (
            Call(MODEL, (Message("system", (RESULTS[0],)), Message("user", "x"))),
            "a tool's result can't stand in",
        ),
        (Call(MODEL, (Message("user", (Image("data:x"),)),)), "must be data:image"),
        (Call(MODEL, "x", tools=(CLOCK,), extra={"tools": []}), "can't set tools: the call itself says it"),
        (Call(MODEL, "x", tool_choice="auto", extra={"toolConfig": 1}), "toolConfig in extra must be an object"),
    ],
)
def test_parts_that_gemini_can_not_express_are_refused(call: Call, said: str) -> None:
    with pytest.raises(EncodeError, match=said):
        encode(call, TARGET)
