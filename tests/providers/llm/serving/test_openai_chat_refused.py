"""What clients of OpenAI's chat completions ask and can't: refused in OpenAI's own words."""

from __future__ import annotations

from typing import Any

import pytest

from millstream.providers.llm.openai.serve_chat import DIALECT
from millstream.providers.llm.serve_dialect import RequestRefusal, ServedRequest


def request(**changes: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": "x"}], **changes}


def form(**changes: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "Answer_Of", "schema": {}, "strict": True, **changes}}


def read(body: Any) -> ServedRequest:
    return DIALECT.read(body, "openai/{}".format)


def refused(body: Any) -> RequestRefusal:
    with pytest.raises(RequestRefusal) as told:
        read(body)
    assert told.value.problem.status == 400
    return told.value


@pytest.mark.parametrize(
    ("changes", "said", "param"),
    [
        ({"model": None}, "you must provide a model parameter", "model"),
        ({"model": 5}, "Invalid type for 'model': expected a string, but got an integer instead.", "model"),
        ({"messages": None}, "Missing required parameter: 'messages'.", "messages"),
        ({"messages": []}, "Invalid 'messages': empty array.", "messages"),
        ({"messages": "x"}, "Invalid type for 'messages': expected an array of objects, but got a string", "messages"),
        ({"messages": [1]}, "Invalid type for 'messages[0]': expected an object, but got an integer", "messages[0]"),
        ({"messages": [{"content": "x"}]}, "Missing required parameter: 'messages[0].role'.", "messages[0].role"),
        ({"messages": [{"role": "bot", "content": "x"}]}, "Invalid value: 'bot'. Supported values are: 'system', ",
         "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "Missing required parameter: 'messages[0].content'.", "messages[0].content"),
        ({"messages": [{"role": "user", "content": 5}]},
         "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer",
         "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"text": "x"}]}]},
         "Missing required parameter: 'messages[0].content[0].type'.", "messages[0].content[0].type"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "u"}]}]},
         "Invalid type for 'messages[0].content[0].image_url': expected an object, but got a string",
         "messages[0].content[0].image_url"),
        ({"messages": [{"role": "assistant"}]}, "Invalid value for 'content': expected a string, got null.",
         "messages[0].content"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "Missing required parameter: 'messages[0].tool_call_id'.",
         "messages[0].tool_call_id"),
        ({"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "type": "function"}]}]},
         "Missing required parameter: 'messages[0].tool_calls[0].function'.", "messages[0].tool_calls[0].function"),
        ({"temperature": "hot"}, "Invalid type for 'temperature': expected a decimal, but got a string instead.",
         "temperature"),
        ({"temperature": True}, "Invalid type for 'temperature': expected a decimal, but got a boolean", "temperature"),
        ({"temperature": -1}, "Invalid 'temperature': decimal below minimum value. Expected", "temperature"),
        ({"top_p": 10**400}, "Invalid 'top_p': expected a finite number.", "top_p"),
        ({"max_tokens": 0}, "Invalid 'max_tokens': integer below minimum value. "
         "Expected a value >= 1, but got 0 instead.", "max_tokens"),
        ({"max_tokens": 1.5}, "Invalid type for 'max_tokens': expected an integer, but got a decimal", "max_tokens"),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "Setting 'max_tokens' and 'max_completion_tokens' at the same",
         None),
        ({"seed": 1 << 70}, "Invalid 'seed': integer above maximum value.", "seed"),
        ({"seed": 10**5000}, "Invalid 'seed': integer above maximum value.", "seed"),
        ({"stop": 5}, "Invalid type for 'stop': expected one of a string or array of strings, but got an", "stop"),
        ({"stop": ["a", 5]}, "Invalid type for 'stop[1]': expected a string, but got an integer", "stop[1]"),
        ({"n": 0}, "Invalid 'n': integer below minimum value.", "n"),
        ({"n": 129}, "Invalid 'n': integer above maximum value.", "n"),
        ({"stream": "yes"}, "Invalid type for 'stream': expected a boolean, but got a string", "stream"),
        ({"stream_options": {"include_usage": 1}}, "Invalid type for 'stream_options.include_usage'",
         "stream_options.include_usage"),
        ({"logprobs": 5}, "Invalid type for 'logprobs': expected a boolean, but got an integer", "logprobs"),
        ({"top_logprobs": 5}, "'top_logprobs' is only allowed when 'logprobs' is true.", "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "Invalid 'top_logprobs': integer above maximum", "top_logprobs"),
        ({"reasoning_effort": 3}, "Invalid type for 'reasoning_effort': expected a string", "reasoning_effort"),
        ({"response_format": "json"}, "Invalid type for 'response_format': expected an object, but got a string",
         "response_format"),
        ({"response_format": {"type": "json_schema"}}, "Missing required parameter: 'response_format.json_schema'.",
         "response_format.json_schema"),
        ({"response_format": form(strict="yes")}, "Invalid type for 'response_format.json_schema.strict'",
         "response_format.json_schema.strict"),
        ({"tools": [{"type": "function"}]}, "Missing required parameter: 'tools[0].function.name'.",
         "tools[0].function.name"),
        ({"tools": [{"function": {"name": "f"}}]}, "Missing required parameter: 'tools[0].type'.", "tools[0].type"),
        ({"tool_choice": "any"}, "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
         "tool_choice"),
        ({"tool_choice": 5}, "Invalid type for 'tool_choice': expected one of a string or an object", "tool_choice"),
        ({"tool_choice": {"type": "function", "function": {"name": "f"}}},
         "Invalid value for 'tool_choice': no function named 'f' was specified in 'tools'.", "tool_choice"),
        ({"modalities": ["text", "audio"]}, "Invalid value: 'audio'. Supported values are: 'text'.", "modalities[1]"),
        ({"audio": {"voice": "x"}}, "Unsupported parameter: 'audio'", "audio"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_in_openais_words(changes: dict[str, Any], said: str, param: str | None) -> None:
    problem = refused(request(**changes)).problem
    assert problem.message.startswith(said)
    assert (problem.param, problem.kind) == (param, "invalid")


def test_a_name_that_means_no_model_is_refused_as_the_one_who_knows_says_it() -> None:
    def nobody(word: str) -> str:
        raise RequestRefusal(f"no model {word}", "model", "unknown_model", 404)

    with pytest.raises(RequestRefusal) as told:
        DIALECT.read(request(), nobody)
    assert told.value.problem.status == 404
