"""What every protocol is built of: requests, names, parameters that are known to be refused, schemas."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Call, Message
from millstream.engine.endpoint import EncodeError
from millstream.engine.key import key_of
from millstream.providers.llm.protocol import Target, named_schema, put, request_of, sampling_of, schema_of

TARGET = Target("http://h/v1", "lab", "m", "mylab")
CALL = Call("mylab/m", "x")
STREAM = Call("mylab/m", "x", stream=True)


def test_a_request_is_made_of_what_is_asked_and_how() -> None:
    prompt = {"system": "be brief", "messages": [{"role": "user", "content": "ä"}]}
    request = request_of(CALL, TARGET, "/messages", {"model": "m", "a": 1}, prompt)
    messages = '[{"role":"user","content":"ä"}]'
    assert request.body.decode() == f'{{"a":1,"messages":{messages},"model":"m","system":"be brief"}}'
    assert request.prompt.decode() == f'"be brief",{messages}'
    assert request.params == b'{"a":1,"model":"m"}'
    assert (request.url, request.identity, request.method) == ("http://h/v1/messages", "lab/messages", "POST")


def test_streaming_changes_address_and_wire_and_never_the_key() -> None:
    def made(call: Call) -> Any:
        streamed = {"stream": True}
        prompt: dict[str, Any] = {"messages": []}
        return request_of(call, TARGET, "/m:ask", {"a": 1}, prompt, streamed=streamed, stream_path="/m:stream?alt=sse")

    plain, stream = made(CALL), made(STREAM)
    assert (plain.url, stream.url) == ("http://h/v1/m:ask", "http://h/v1/m:stream?alt=sse")
    assert plain.wire == plain.body == stream.body
    assert orjson.loads(stream.wire) == {"a": 1, "messages": [], "stream": True}
    assert key_of(plain, 0) == key_of(stream, 0)


def test_what_may_change_an_answer_and_is_no_part_of_the_path_can_stand_in_the_key() -> None:
    one = request_of(CALL, TARGET, "/messages", {}, {}, identity="/messages 2023-06-01")
    other = request_of(CALL, TARGET, "/messages", {}, {}, identity="/messages 2026-10-21")
    assert one.url == other.url
    assert key_of(one, 0) != key_of(other, 0)


def test_what_the_caller_sets_is_not_overridden_by_what_streaming_adds() -> None:
    request = request_of(STREAM, TARGET, "/m", {"options": {"usage": False}}, {}, streamed={"options": {"usage": True}})
    assert orjson.loads(request.wire) == {"options": {"usage": False}}


@pytest.mark.parametrize("value", [float("inf"), "\ud800", object(), 2**70])
def test_what_json_can_not_hold_is_refused_with_the_model_it_was_for(value: Any) -> None:
    if isinstance(value, float):
        assert request_of(CALL, TARGET, "/m", {"a": value}, {}).body == b'{"a":null}'
        return
    with pytest.raises(EncodeError, match="the call to mylab/m can't be written as JSON"):
        request_of(CALL, TARGET, "/m", {"a": value}, {})


def test_a_parameter_that_is_known_to_be_refused_is_not_sent() -> None:
    target = Target("http://h/v1", "lab", "m", "mylab", refuses=frozenset({"seed", "stream_options"}))
    assert sampling_of(CALL, target) == {}
    with pytest.raises(EncodeError, match="mylab/m is known to take no seed: leave it out, or put it into extra"):
        sampling_of(Call("mylab/m", "x", seed=0), target)


def test_dots_in_a_name_lead_into_an_object() -> None:
    params: dict[str, Any] = {}
    put(params, "reasoning.effort", "low")
    put(params, "reasoning.exclude", True)
    put(params, "seed", 1)
    assert params == {"reasoning": {"effort": "low", "exclude": True}, "seed": 1}


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"title": "Stance"}, "Stance"),
        ({"title": "My stance, 2nd – ✓"}, "My_stance__2nd____"),
        ({"title": "x" * 100}, "x" * 64),
        ({"title": ""}, "answer"),
        ({"title": 7}, "answer"),
        ({}, "answer"),
    ],
)
def test_a_schema_has_a_name_that_openai_takes(schema: dict[str, Any], name: str) -> None:
    named = named_schema(Call("mylab/m", "x", json_schema=schema))
    assert orjson.loads(orjson.dumps(named)) == {"name": name, "schema": schema, "strict": True}


def test_the_properties_of_a_schema_keep_their_order_and_another_order_is_another_question() -> None:
    def made(*names: str) -> Any:
        call = Call("mylab/m", "x", json_schema={"properties": {name: {} for name in names}})
        return request_of(call, TARGET, "/m", {"z": 1, "a": schema_of(call)}, {})

    one, other = made("reason", "answer"), made("answer", "reason")
    assert one.body == one.params == b'{"a":{"properties":{"reason":{},"answer":{}}},"z":1}'
    assert key_of(one, 0) != key_of(other, 0)


def test_a_schema_that_is_no_json_is_refused() -> None:
    with pytest.raises(EncodeError, match="json_schema of the call to mylab/m can't be written as JSON"):
        schema_of(Call("mylab/m", "x", json_schema={"a": object()}))


def test_a_target_is_told_by_its_full_name_and_its_version() -> None:
    assert (TARGET.full_name, TARGET.specified) == ("mylab/m", "lab")
    dated = Target("http://h/v1", "lab", "m", version="2024-10-21")
    assert (dated.full_name, dated.specified) == ("m", "lab (2024-10-21)")


def test_a_conversation_may_begin_with_a_system_prompt() -> None:
    talk = (Message("system", "be brief"), Message("user", "x"))
    assert tuple(Call("mylab/m", talk).messages()) == talk
