"""Conversations of every dialect's clients, told to providers of every family.

A client may change its model in the middle of a conversation, so that what one family gave is sent to another. Every
body has the types that the provider's official client declares, and says the same in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import orjson
import pytest
from family_talks import IMAGE, ODD, TALKS, THOUGHT, Asked, Got, Turn, in_chat, in_generate, in_messages
from google.genai import types as google
from pydantic import TypeAdapter

from millstream.engine.call import Call, Outcome, Reply
from millstream.engine.content import Native, ToolCall
from millstream.engine.endpoint import EncodeError
from millstream.providers.llm.anthropic import messages
from millstream.providers.llm.anthropic import serve_messages as anthropic_messages
from millstream.providers.llm.bedrock import converse as bedrock
from millstream.providers.llm.google import generate as gemini
from millstream.providers.llm.google import serve_generate as gemini_generate
from millstream.providers.llm.openai import chat, responses
from millstream.providers.llm.openai import serve_chat as openai_chat
from millstream.providers.llm.openai import serve_responses as openai_responses
from millstream.providers.llm.protocol import Target, WireProtocol
from millstream.providers.llm.serve_dialect import Dialect
from millstream.providers.llm.serve_dialect import ServedRequest as Read
from millstream.providers.llm.serve_naming import request_for_family
from millstream.providers.llm.tool_ids import sound

Writer = Callable[[list[Turn]], dict[str, Any]]
CLIENTS: dict[str, tuple[Dialect, str, Writer]] = {
    "chat": (openai_chat.DIALECT, "openai", in_chat),
    "messages": (anthropic_messages.DIALECT, "anthropic", in_messages),
    "generate": (gemini_generate.DIALECT, "gemini", in_generate),
}
PROVIDERS: dict[str, WireProtocol] = {
    "openai": chat.PROTOCOL,
    "openai-responses": responses.PROTOCOL,
    "anthropic": messages.PROTOCOL,
    "gemini": gemini.PROTOCOL,
    "bedrock": bedrock.PROTOCOL,
}
ANSWERING = (openai_chat.DIALECT, openai_responses.DIALECT, anthropic_messages.DIALECT, gemini_generate.DIALECT)
# A text, a call (its id, its place) or a result (its id, its text): what is told, in whose words ever.
Event = tuple[str, ...]


def sent(client: str, provider: str, body: dict[str, Any]) -> Any:
    dialect, family, _ = CLIENTS[client]
    asked = request_for_family(dialect.read(body, f"{provider}/{{}}".format), family, provider)
    return orjson.loads(PROVIDERS[provider].encode(asked.call, Target("http://h", "h", "m", provider)).wire)


# --- what a body says ---


def in_openai(body: Any) -> Iterator[Event]:
    for message in body["messages"]:
        if message["role"] == "tool":
            yield "result", message["tool_call_id"], message["content"]
            continue
        yield from _texts(message["content"])
        for call in message.get("tool_calls", ()):
            yield "call", call["id"], orjson.loads(call["function"]["arguments"])["place"]


def _texts(content: Any) -> Iterator[Event]:
    parts: list[dict[str, Any]] = [{"text": content}] if isinstance(content, str) else content or []
    for part in parts:
        yield ("text", part["text"]) if "text" in part else ("image",)


def in_responses(body: Any) -> Iterator[Event]:
    for item in body["input"]:
        if item.get("type") == "function_call":
            yield "call", item["call_id"], orjson.loads(item["arguments"])["place"]
        elif item.get("type") == "function_call_output":
            yield "result", item["call_id"], item["output"]
        else:
            yield from _texts(item["content"])


def in_anthropic(body: Any) -> Iterator[Event]:
    yield from _texts(body.get("system"))
    for message in body["messages"]:
        content = message["content"]
        blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        for block in blocks:
            match block["type"]:
                case "tool_use":
                    yield "call", block["id"], block["input"]["place"]
                case "tool_result":
                    yield "result", block["tool_use_id"], block["content"]
                case "text" | "image":
                    yield from _texts([block])


def in_gemini(body: Any) -> Iterator[Event]:
    """A call without an id is answered at its place."""
    yield from _texts(body.get("systemInstruction", {}).get("parts"))
    for number, content in enumerate(body["contents"]):
        for place, part in enumerate(content["parts"]):
            if "functionCall" in part:
                yield "call", part["functionCall"].get("id", f"{number} {place}"), part["functionCall"]["args"]["place"]
            elif "functionResponse" in part:
                result = part["functionResponse"]
                yield "result", result.get("id", f"{number - 1} {place}"), next(iter(result["response"].values()))
            elif not part.get("thought"):
                yield from _texts([part])


def in_bedrock(body: Any) -> Iterator[Event]:
    yield from _texts(body.get("system"))
    for message in body["messages"]:
        for block in message["content"]:
            if "toolUse" in block:
                yield "call", block["toolUse"]["toolUseId"], block["toolUse"]["input"]["place"]
            elif "toolResult" in block:
                yield "result", block["toolResult"]["toolUseId"], block["toolResult"]["content"][0]["text"]
            else:
                yield from _texts([block])


READERS: dict[str, Callable[[Any], Iterator[Event]]] = {
    "openai": in_openai,
    "openai-responses": in_responses,
    "anthropic": in_anthropic,
    "gemini": in_gemini,
    "bedrock": in_bedrock,
}


def in_talk(turns: list[Turn], *, is_system_first: bool) -> Iterator[Event]:
    if is_system_first:
        turns = sorted(turns, key=lambda turn: turn[0] != "system")
    for _, said in turns:
        for one in said:
            if isinstance(one, Asked):
                yield "call", one.id, one.place
            elif isinstance(one, Got):
                yield "result", one.id, one.text
            elif one != THOUGHT:
                yield ("image",) if one == IMAGE else ("text", str(one))


def told(events: Iterator[Event]) -> list[Event]:
    """What is said, with every result beside the place that it is about, and no blank text."""
    script: list[Event] = []
    places: dict[str, str] = {}
    for event in events:
        if event[0] == "call":
            places[event[1]] = event[2]
            script.append(("call", event[2]))
        elif event[0] == "result":
            # Results of one turn are in whatever order.
            script.append(("result", places[event[1]], event[2]))
        elif event[0] == "image" or event[1].strip():
            script.append(event)
    return [event for group in _results_together(script) for event in sorted(group)]


def _results_together(script: list[Event]) -> Iterator[list[Event]]:
    results: list[Event] = []
    for event in script:
        if event[0] == "result":
            results.append(event)
            continue
        yield results
        results = []
        yield [event]
    yield results


# --- what the official clients take ---


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _is_declared(kind: Any, value: Any) -> None:
    _walk(_adapter(kind).validate_python(value, strict=True))


def _walk(value: Any) -> None:
    """What is declared as something to iterate over is looked at only by then."""
    if isinstance(value, str | bytes) or value is None:
        return
    if isinstance(value, dict):
        value = value.values()
    if hasattr(value, "__iter__"):
        for one in value:
            _walk(one)


def openai_takes(body: Any) -> None:
    _is_declared(list[openai.types.chat.ChatCompletionMessageParam], body["messages"])
    _is_declared(list[openai.types.chat.ChatCompletionToolParam], body["tools"])


def responses_takes(body: Any) -> None:
    """Two fields with defaults are declared as if they had to be there."""
    for item in body["input"]:
        for part in item["content"] if isinstance(item.get("content"), list) else ():
            if part["type"] == "input_image":
                part.setdefault("detail", "auto")
    _is_declared(openai.types.responses.ResponseInputParam, body["input"])
    tools = [{"strict": None, **tool} for tool in body["tools"]]
    _is_declared(list[openai.types.responses.FunctionToolParam], tools)


def anthropic_takes(body: Any) -> None:
    _is_declared(list[anthropic.types.MessageParam], body["messages"])
    _is_declared(list[anthropic.types.ToolParam], body["tools"])
    _is_declared(str | list[anthropic.types.TextBlockParam], body.get("system", ""))


def gemini_takes(body: Any) -> None:
    for content in (*body["contents"], *([body["systemInstruction"]] if "systemInstruction" in body else ())):
        google.Content.model_validate(content)
    for tool in body["tools"]:
        google.Tool.model_validate(tool)


def bedrock_takes(body: Any) -> None:
    report = pytest.importorskip("botocore.validate").ParamValidator().validate({"modelId": "m", **body}, _converse())
    assert not report.has_errors(), report.generate_report()
    roles = [message["role"] for message in body["messages"]]
    assert all(one != other for one, other in pairwise(roles))


@cache
def _converse() -> Any:
    model = pytest.importorskip("botocore.session").Session().get_service_model("bedrock-runtime")
    return model.operation_model("Converse").input_shape


TAKEN: dict[str, Callable[[Any], None]] = {
    "openai": openai_takes,
    "openai-responses": responses_takes,
    "anthropic": anthropic_takes,
    "gemini": gemini_takes,
    "bedrock": bedrock_takes,
}


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_conversation_is_told_to_every_family_in_its_own_types_and_says_the_same(
    client: str, provider: str, talk: str
) -> None:
    body = sent(client, provider, CLIENTS[client][2](TALKS[talk]))
    TAKEN[provider](body)
    is_system_first = client == "generate" or provider in ("gemini", "bedrock")
    assert told(READERS[provider](body)) == told(in_talk(TALKS[talk], is_system_first=is_system_first))


@pytest.mark.parametrize("provider", ["anthropic", "bedrock"])
@pytest.mark.parametrize("client", CLIENTS)
def test_ids_that_a_provider_does_not_take_are_told_as_such_as_it_takes(client: str, provider: str) -> None:
    for talk, wanted in (("two tools at once, their results in the other order", sound(ODD)), ("thoughts", "a" * 47)):
        body = sent(client, provider, CLIENTS[client][2](TALKS[talk]))
        ids = [event[1] for event in READERS[provider](body) if event[0] in ("call", "result")]
        assert all(one == sound(one) for one in ids) and any(one.startswith(wanted) for one in ids)
    same = sent(client, provider, CLIENTS[client][2](TALKS["an error as a result, then the same id anew"]))
    assert [event[1] for event in READERS[provider](same) if event[0] == "call"] == ["call_0", "call_0_2"]


def one_at_a_time(client: str) -> dict[str, Any]:
    body = CLIENTS[client][2](TALKS["a question"])
    if client == "chat":
        return {**body, "parallel_tool_calls": False}
    return {**body, "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}


@pytest.mark.parametrize("client", ["chat", "messages"])
def test_one_tool_at_a_time_is_asked_for_wherever_there_is_a_word_and_else_refused(client: str) -> None:
    for provider in ("openai", "openai-responses"):
        assert sent(client, provider, one_at_a_time(client))["parallel_tool_calls"] is False
    assert sent(client, "anthropic", one_at_a_time(client))["tool_choice"]["disable_parallel_tool_use"] is True
    for provider in ("gemini", "bedrock"):
        with pytest.raises(EncodeError, match="no way to be asked for one tool call at a time"):
            sent(client, provider, one_at_a_time(client))


def test_a_text_that_is_signed_is_told_to_clients_of_others_in_its_place() -> None:
    signed = Native("gemini", {"text": "world", "thoughtSignature": "Eu4B"})
    reply = Reply("Hello world", None, "tool_calls", parts=("Hello ", signed, ToolCall("t", "f")))
    asked = Read(Call("gemini/m", "x"), "m")
    read = {dialect.family: orjson.loads(dialect.whole(asked, [Outcome(asked.call, reply)])) for dialect in ANSWERING}
    assert [block.get("text") for block in read["anthropic"]["content"]] == ["Hello ", "world", None]
    message, call = read["openai-responses"]["output"]
    assert message["content"][0]["text"] == "Hello world" and call["type"] == "function_call"
    assert read["openai"]["choices"][0]["message"]["content"] == "Hello world"
    parts = read["gemini"]["candidates"][0]["content"]["parts"]
    assert parts[:2] == [{"text": "Hello "}, signed.value]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_what_a_client_does_not_declare_is_not_taken_here(provider: str) -> None:
    """That the test above can fail."""
    body = sent("chat", provider, in_chat(TALKS["images"]))
    turn = body[next(name for name in ("messages", "contents", "input") if name in body)][0]
    part = turn["parts" if "parts" in turn else "content"][0]
    part["text"] = 7
    with pytest.raises((ValueError, AssertionError)):
        TAKEN[provider](body)
