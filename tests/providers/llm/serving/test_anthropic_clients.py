"""What Anthropic's own client really sends is read as what its user asked for, and an answer goes back as it came."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest
from anthropic import beta_tool
from anthropic.types import Message as Theirs
from pydantic import BaseModel
from recorder import Recorder, Sent, recording
from told_replies import outcomes

from millstream.engine.call import Call, Message, Reply
from millstream.engine.content import Native, Tool, ToolCall, ToolResult
from millstream.providers.llm.anthropic.serve_messages import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest

ASKED = ServedRequest(Call("anthropic/m", "x"), "m")
THOUGHT = Native("anthropic", {"type": "thinking", "thinking": "I think.", "signature": "EqQB"})
CALLED = Reply("So:", parts=(THOUGHT, "So:", ToolCall("toolu_1", "weather", '{"place":"Bonn"}')))


class Place(BaseModel):
    name: str


@beta_tool
def weather(place: str) -> str:
    """Tells what it is like."""
    return f"rain in {place}"


@pytest.fixture
def server() -> Iterator[Recorder]:
    with recording(DIALECT.whole(ASKED, outcomes(Reply('{"name":"Bonn"}')))) as recorder:
        yield recorder


@pytest.fixture
def client(server: Recorder) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="k", base_url=server.origin, max_retries=0) as opened:
        yield opened


def read(sent: Any) -> Call:
    return DIALECT.read(sent, "anthropic/{}".format).call


def test_an_answers_shape_is_read_and_its_answer_parsed(server: Recorder, client: anthropic.Anthropic) -> None:
    message = client.messages.parse(
        model="m",
        max_tokens=9,
        system="Be brief.",
        messages=[{"role": "user", "content": "x"}],
        thinking={"type": "disabled"},
        output_format=Place,
    )
    assert message.parsed_output == Place(name="Bonn")
    call = read(server.last.json)
    assert call.input == (Message("system", "Be brief."), Message("user", "x"))
    assert (call.max_tokens, call.reasoning_effort, call.extra) == (9, "none", None)
    assert call.json_schema is not None
    assert list(call.json_schema["properties"]) == ["name"]


def test_a_turn_goes_back_as_it_was_answered(server: Recorder, client: anthropic.Anthropic) -> None:
    answer = Theirs.model_validate_json(DIALECT.whole(ASKED, outcomes(CALLED)))
    result: Any = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "rain"}
    client.messages.create(
        model="m",
        max_tokens=9,
        messages=[
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": answer.content},
            {"role": "user", "content": [result]},
        ],
    )
    assert read(server.last.json).input == (
        Message("user", "x"),
        Message("assistant", CALLED.parts),
        Message("user", (ToolResult("toolu_1", "rain", "weather"),)),
    )


def test_a_python_function_is_a_tool_that_the_client_runs(server: Recorder, client: anthropic.Anthropic) -> None:
    """It would have the server hold the conversation, and sends all of it when it is told that none is held."""

    def answer(sent: Sent) -> tuple[int, bytes]:
        try:
            read(sent.json)
        except RequestRefusal as refused:
            return refused.problem.status, DIALECT.problem(refused.problem)
        return 200, DIALECT.whole(ASKED, outcomes(CALLED))

    server.react = answer
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=9, tools=[weather], messages=[{"role": "user", "content": "x"}], max_iterations=2
    )
    assert [message.stop_reason for message in runner] == ["tool_use", "tool_use"]
    assert ["thread" in sent.json for sent in server.sent] == [True, False, False]
    call = read(server.last.json)
    assert call.tools is not None
    tool = call.tools[0]
    assert isinstance(tool, Tool)
    assert (tool.name, tool.description) == ("weather", "Tells what it is like.")
    assert call.input[1:] == (
        Message("assistant", CALLED.parts),
        Message("user", (ToolResult("toolu_1", "rain in Bonn", "weather"),)),
    )
