"""Parameters that a model refuses, as every provider words it: named in our words, with what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from dialects import Told, anthropic_error, aws_error, google_error, openai_error
from protocols import ROWS

from millstream.engine.endpoint import Response

TOLD: dict[str, Callable[[int, str], Told]] = {
    "chat": openai_error,
    "llama on vertex": google_error,
    "completions": openai_error,
    "responses": openai_error,
    "anthropic": anthropic_error,
    "claude on vertex": anthropic_error,
    "claude on vertex, by Google": google_error,
    "gemini": google_error,
    "bedrock": aws_error,
}
EXCLUSIVE = "`temperature` and `top_p` cannot both be specified for this model. Please use only one."
ONE_OF_TWO = "the model takes only one of temperature and top_p: leave the other out"
REFUSED: dict[str, list[tuple[str, str]]] = {
    "chat": [
        ("`top_p` is deprecated for this model.", "top_p"),
        ("`logprobs` is not supported with this model", "logprobs"),
        ("This response_format type is unavailable now", "json_schema"),
    ],
    "anthropic": [
        ("temperature: Extra inputs are not permitted", "temperature"),
        ("top_p: Extra inputs are not permitted", "top_p"),
        ("This model does not support the effort parameter.", "reasoning_effort"),
        ("output_config.effort: Extra inputs are not permitted", "reasoning_effort"),
        ('"thinking.type.enabled" is not supported for this model.', "reasoning_effort"),
        ('"thinking.type.disabled" is not supported for this model.', "reasoning_effort"),
        ("thinking: Extra inputs are not permitted", "reasoning_effort"),
        ("output_config.format: Extra inputs are not permitted", "json_schema"),
        ("stop_sequences: Extra inputs are not permitted", "stop"),
    ],
    "gemini": [
        ("Logprobs is not enabled for models/gemini-2.5-flash-lite", "logprobs"),
        ("Thinking level is not supported for this model.", "reasoning_effort"),
        ("Thinking budget is not supported for this model.", "reasoning_effort"),
        ("The model does not support setting thinking_budget to 0.", "reasoning_effort"),
        ("Unable to submit request because thinking is not configurable in this model", "reasoning_effort"),
        ("Unable to submit request because Thinking can't be disabled for this model.", "reasoning_effort"),
        ("Invalid JSON payload received. Unknown name \"seed\" at 'generation_config': Cannot find field.", "seed"),
        ('Invalid JSON payload received. Unknown name "responseJsonSchema" at x: Cannot find field.', "json_schema"),
        ("JSON mode is not enabled for models/gemma-3-27b-it", "json_schema"),
        ("topP is not supported by this model", "top_p"),
        ("stopSequences are unsupported", "stop"),
    ],
    "bedrock": [
        ("The model returned the following errors: `temperature` is deprecated for this model.", "temperature"),
        ("This model doesn't support the stopSequences field. Remove stopSequences and try again.", "stop"),
        ("Malformed input request: #: extraneous key [topP] is not permitted", "top_p"),
        ("inferenceConfig.maxTokens is not supported by this model.", "this max_tokens"),
        ("outputConfig.effort is not supported for this model.", "reasoning_effort"),
        ("This model doesn't support the outputConfig.textFormat field.", "json_schema"),
    ],
}
# What every provider may say.
SHARED = [
    ("temperature is not supported by this model", "temperature"),
    ("`temperature` is deprecated for this model.", "temperature"),
    ("top_p is not supported by this model", "top_p"),
]
COMPLAINTS = [(name, *one) for name in TOLD for one in (*SHARED, *REFUSED.get(name, ()))]
OTHERS = (
    "prompt is too long: 210000 tokens > 200000 maximum",
    "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens",
    "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).",
    "Input is too long for requested model.",
    "The value at messages failed.",
    "Request contains an invalid argument.",
    "User location is not supported for the API use.",
)


def detail_of(name: str, message: str) -> str:
    """Returns the detail of the fault of a 400 with a message, without what stands before it."""
    status, body, headers = TOLD[name](400, message)
    told = {key.lower(): value.strip() for key, _, value in (header.partition(":") for header in headers)}
    fault = ROWS[name.partition(",")[0]].fault(Response(status, body, headers=told))
    assert (fault.kind, fault.action, fault.status) == ("rejected", "never", 400)
    before, said, behind = fault.detail.partition(message)
    assert before in ("400: ", "400: ValidationException: ")
    assert said
    return behind


@pytest.mark.parametrize(("name", "message", "parameter"), COMPLAINTS)
def test_a_refused_parameter_is_named_with_what_to_do(name: str, message: str, parameter: str) -> None:
    what = "leave it out, in a run with --temperature none" if parameter == "temperature" else "leave it out"
    advice = f"the model refuses {parameter}: {what}"
    if parameter == "this max_tokens":
        advice = f"the model refuses {parameter}: leave --max-tokens out if it was given, else give another"
    assert detail_of(name, message) == f" ({advice})"


@pytest.mark.parametrize("name", TOLD)
def test_of_two_parameters_that_exclude_each_other_one_is_to_be_left_out(name: str) -> None:
    assert detail_of(name, EXCLUSIVE) == f" ({ONE_OF_TWO})"


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("message", OTHERS)
def test_no_parameter_is_blamed_for_anything_else(name: str, message: str) -> None:
    assert detail_of(name, message) == ""
