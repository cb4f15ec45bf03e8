"""What came of a call, as Inspect expects it."""

from __future__ import annotations

from typing import Any

import pytest
from inspect_ai.model import ChatMessageAssistant, ContentReasoning, ContentText, GenerateConfig, ModelOutput
from inspect_ai.tool import ToolInfo, ToolParams
from inspect_ai.util import JSONSchema

from millstream.engine.call import Call, Failure, Message, Outcome, Reply, TokenLogprob, Usage
from millstream.engine.content import Native, Part, ToolCall
from millstream.interfaces.plugins.inspect_answers import InspectCallError, output_of, record_of
from millstream.interfaces.plugins.inspect_asking import call_of

CALL = Call("lab/model", "A or B?")
ADD = ToolInfo(name="add", description="", parameters=ToolParams(properties={"x": JSONSchema(type="integer")}))


def answered(text: str = "A", *, tools: tuple[ToolInfo, ...] = (), **reply: Any) -> ModelOutput:
    return output_of([Outcome(CALL, Reply(text, **{"finish_reason": "stop", **reply}))], tools)


@pytest.mark.parametrize(
    ("finish", "reason"),
    [
        ("stop", "stop"),
        ("length", "max_tokens"),
        ("tool_calls", "tool_calls"),
        ("content_filter", "content_filter"),
        ("weary", "unknown"),
        (None, "unknown"),
    ],
)
def test_why_an_answer_ended_is_told_in_inspects_words(finish: str | None, reason: str) -> None:
    assert answered(finish_reason=finish).stop_reason == reason


def test_a_refusal_is_an_answer_that_inspect_knows_for_one() -> None:
    output = answered("I can't.", refused=True)
    assert (output.stop_reason, output.completion, output.error) == ("content_filter", "I can't.", "I can't.")


def test_tokens_are_counted_as_inspect_counts_them() -> None:
    usage = answered(usage=Usage(100, 20, reasoning=5, cached_input=60)).usage
    assert usage is not None
    counted = (usage.input_tokens, usage.input_tokens_cache_read, usage.output_tokens, usage.reasoning_tokens)
    assert (*counted, usage.total_tokens) == (40, 60, 20, 5, 120)
    assert answered().usage is None


def test_log_probabilities_keep_their_alternatives() -> None:
    output = answered(logprobs=(TokenLogprob("A", -0.1, (("A", -0.1), ("B", -2.5))),))
    told = output.choices[0].logprobs
    assert told is not None and told.content[0].top_logprobs is not None
    assert (told.content[0].token, told.content[0].logprob) == ("A", -0.1)
    assert [(each.token, each.logprob) for each in told.content[0].top_logprobs] == [("A", -0.1), ("B", -2.5)]


def test_calls_of_tools_have_their_arguments_read() -> None:
    parts = ("Adding.", ToolCall("call_1", "add", '{"x": 1}'), ToolCall("call_2", "add", '{"x": '))
    message = answered("Adding.", parts=parts, finish_reason="tool_calls", tools=(ADD,)).message
    assert message.content == "Adding."
    assert message.tool_calls is not None
    assert [(each.id, each.function, each.arguments) for each in message.tool_calls] == [
        ("call_1", "add", {"x": 1}),
        ("call_2", "add", {}),
    ]
    assert message.tool_calls[0].parse_error is None
    assert message.tool_calls[1].parse_error


THOUGHTS: list[tuple[str, dict[str, Any], str]] = [
    ("openai", {"reasoning_content": "Hm."}, "Hm."),
    ("openai", {"reasoning": "Hm."}, "Hm."),
    (
        "openai-responses",
        {"type": "reasoning", "id": "rs_1", "summary": [{"text": "Hm."}, {"text": "So."}]},
        "Hm.\nSo.",
    ),
    ("openai-responses", {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, ""),
    ("anthropic", {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, "Hm."),
    ("anthropic", {"type": "redacted_thinking", "data": "x"}, ""),
    ("gemini", {"text": "Hm.", "thought": True, "thoughtSignature": "c2ln"}, "Hm."),
    ("bedrock", {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}}, "Hm."),
    ("bedrock", {"reasoningContent": {"redactedContent": "x"}}, ""),
]


@pytest.mark.parametrize(("family", "value", "words"), THOUGHTS)
def test_a_thought_is_shown_in_words(family: str, value: dict[str, Any], words: str) -> None:
    output = answered(parts=(Native(family, value), "A"))
    assert isinstance(output.message.content, list)
    thought, said = output.message.content
    assert isinstance(thought, ContentReasoning) and isinstance(said, ContentText)
    assert (thought.reasoning, thought.redacted, said.text, output.completion) == (words, not words, "A", "A")


@pytest.mark.parametrize(
    "parts",
    [
        *((Native(family, value), "A") for family, value, _ in THOUGHTS),
        (Native("anthropic", {"type": "server_tool_use", "id": "1", "name": "web_search"}), "A"),
        (ToolCall("call_1", "add", '{"x": 1}', Native("gemini", {"thoughtSignature": "c2ln"})),),
        ("A", ToolCall("call_1", "add", '{"x": 1}'), ToolCall("call_2", "add", "{}")),
    ],
)
def test_the_next_turn_says_again_all_that_was_said(parts: tuple[Part, ...]) -> None:
    text = "".join(part for part in parts if isinstance(part, str))
    message = answered(text, parts=parts, tools=(ADD,)).message
    kept = ChatMessageAssistant.model_validate_json(message.model_dump_json())
    natives = [part if isinstance(part, Native) else getattr(part, "native", None) for part in parts]
    family = next((native.protocol for native in natives if native is not None), "openai")
    [turn] = call_of("lab/model", family, [kept], (), "auto", GenerateConfig()).messages()
    assert turn.content == parts


def test_a_failure_is_an_error_and_never_a_text() -> None:
    failure = Failure("server_error", "503: overloaded", 503)
    with pytest.raises(InspectCallError, match="lab/model: server_error: 503: overloaded") as raised:
        output_of([Outcome(CALL, failure=failure)], ())
    assert raised.value.status_code == 503


@pytest.mark.parametrize(
    "detail",
    [
        "400: This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "400: prompt is too long: 210000 tokens > 200000 maximum",
        "400: The input token count (1200000) exceeds the maximum number of tokens allowed (1048575).",
        "400: Input is too long for requested model.",
        "400: input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
    ],
)
def test_a_prompt_beyond_the_models_window_is_what_inspect_calls_model_length(detail: str) -> None:
    output = output_of([Outcome(CALL, failure=Failure("rejected", detail, 400))], ())
    assert (output.stop_reason, output.completion) == ("model_length", detail)
    with pytest.raises(InspectCallError):
        output_of([Outcome(CALL, failure=Failure("server_error", detail, 500))], ())


def test_several_samples_are_several_choices_of_one_output() -> None:
    outcomes = [Outcome(CALL, Reply(text, Usage(10, 2), "stop"), cost=0.5) for text in "ABA"]
    output = output_of(outcomes, ())
    assert [choice.message.text for choice in output.choices] == ["A", "B", "A"]
    assert output.usage is not None
    assert (output.usage.input_tokens, output.usage.output_tokens, output.usage.total_cost) == (30, 6, 1.5)


def test_the_log_tells_how_a_call_was_made() -> None:
    fresh = Outcome(CALL, Reply("A", Usage(10, 2), "stop"), key="81f0", attempts=2, cost=0.5, latency_ms=250.0)
    stored = Outcome(CALL, Reply("A", Usage(10, 2), "stop"), key="81f0", cached=True, latency_ms=250.0)
    told = output_of([fresh], ()).metadata
    assert told is not None
    [call] = told["millstream"]
    assert (call["key"], call["trial"], call["cached"], call["attempts"], call["cost"]) == ("81f0", 0, False, 2, 0.5)
    assert record_of([fresh]).time == 0.25
    assert record_of([stored]).time is None


@pytest.mark.parametrize(("family", "again"), [("gemini", None), ("openai", "world")])
def test_words_that_a_provider_signed_are_read_as_words_and_go_back_signed(family: str, again: str | None) -> None:
    signed = Native("gemini", {"text": "world", "thoughtSignature": "c2ln"})
    message = answered("Hello world", parts=("Hello ", signed)).message
    assert "".join(message.text.split("\n")) == "Hello world"
    [turn] = call_of("lab/model", family, [message], (), "auto", GenerateConfig()).messages()
    assert turn == Message("assistant", ("Hello ", again or signed))
