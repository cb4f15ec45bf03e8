"""Errors as the providers of OpenAI's protocol tell them, and what each of them must become."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from millstream.engine.call import Reply
from millstream.engine.endpoint import Fault, Response
from millstream.providers.llm.errors import error_in
from millstream.providers.llm.openai.chat import decode


def error(message: str, code: Any = None, kind: Any = None, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


THROTTLED = ("rate_limited", "throttle")
EMPTY_ACCOUNT = ("rate_limited", "stop")
DEAD_KEY = ("rejected", "confirm")
REJECTED = ("rejected", "never")
BROKEN = ("server_error", "retry")
REFUSED = ("refused", "")

TPM = "Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000."
TOO_LARGE = (
    "Request too large for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Requested 46000. "
    "The input or output tokens must be reduced in order to run successfully."
)
SPENT = (
    "Your team 16f2 has either used all available credits or reached its monthly spending limit. To continue making "
    "API requests, please purchase more credits or raise your spending limit."
)
SUSPENDED = (
    "Account acme is suspended, possibly due to reaching the monthly spending limit or failure to pay past invoices."
)
UNSAFE = "Content violates usage guidelines. Team: t, API key ID: k, Model: grok-4, Failed check: SAFETY_CHECK_TYPE_BIO"
NO_PERMISSION = "The caller does not have permission to execute the specified operation"
FLAGGED = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI", "model_slug": "openai/gpt-4o"}
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry."
)

ROWS: dict[str, tuple[int, dict[str, Any], tuple[str, str]]] = {
    # OpenAI
    "openai, requests": (429, error(TPM, "rate_limit_exceeded", "tokens"), THROTTLED),
    "openai, one call above the quota": (429, error(TOO_LARGE, "rate_limit_exceeded", "tokens"), REJECTED),
    "openai, no money": (
        429,
        error("You exceeded your current quota, please check your plan.", "insufficient_quota", "insufficient_quota"),
        EMPTY_ACCOUNT,
    ),
    "openai, hard limit": (
        400,
        error("Billing hard limit has been reached", "billing_hard_limit_reached"),
        EMPTY_ACCOUNT,
    ),
    "openai, wrong key": (401, error("Incorrect API key provided: sk-1.", "invalid_api_key"), DEAD_KEY),
    "openai, closed account": (403, error("Deactivated.", "account_deactivated"), DEAD_KEY),
    "openai, no such model": (404, error("The model `m` does not exist.", "model_not_found"), REJECTED),
    "openai, prompt too long": (400, error("maximum context length is 8192", "context_length_exceeded"), REJECTED),
    "openai, flagged": (
        400,
        error("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"),
        REFUSED,
    ),
    "openai, another invalid prompt": (400, error("Invalid prompt: must be a list.", "invalid_prompt"), REJECTED),
    "openai, dangerous": (400, error("Blocked.", "bio_policy"), REFUSED),
    "openai, overloaded": (503, error("The engine is currently overloaded.", None, "server_error"), BROKEN),
    # Azure
    "azure, throttled": (
        429,
        error("Requests have exceeded call rate limit. Please retry after 7 seconds.", "429"),
        THROTTLED,
    ),
    "azure, filtered": (
        400,
        error(FILTERED, "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        REFUSED,
    ),
    "azure, filtered without a code": (400, error(FILTERED, None), REFUSED),
    "azure, filtered by the inner code": (
        400,
        error("No.", None, innererror={"code": "ResponsibleAIPolicyViolation"}),
        REFUSED,
    ),
    "azure, wrong key": (401, error("Access denied due to invalid subscription key.", "401"), DEAD_KEY),
    "azure, no such deployment": (404, error("The API deployment does not exist.", "DeploymentNotFound"), REJECTED),
    # xAI
    "xai, wrong key": (
        400,
        {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***."},
        DEAD_KEY,
    ),
    "xai, no money": (429, {"code": "Some resource has been exhausted", "error": SPENT}, EMPTY_ACCOUNT),
    "xai, no money (403)": (403, {"code": NO_PERMISSION, "error": SPENT}, EMPTY_ACCOUNT),
    "xai, new team": (
        403,
        {"code": NO_PERMISSION, "error": "Your newly created team doesn't have any credits yet."},
        EMPTY_ACCOUNT,
    ),
    "xai, throttled": (429, {"code": "Some resource has been exhausted", "error": "Too many requests"}, THROTTLED),
    "xai, unsafe": (403, {"code": NO_PERMISSION, "error": UNSAFE}, REFUSED),
    "xai, unsafe, in fewer words": (
        403,
        {"code": "permission-denied", "error": "Content violates usage guidelines. "},
        REFUSED,
    ),
    "xai, no permission": (403, {"code": NO_PERMISSION, "error": "Access to the chat endpoint is denied"}, DEAD_KEY),
    # Groq
    "groq, throttled": (
        429,
        error("Rate limit reached for model `m`. Please try again in 7.66s.", "rate_limit_exceeded"),
        THROTTLED,
    ),
    "groq, one call above the quota": (413, error("Request too large for model `m`", "rate_limit_exceeded"), REJECTED),
    "groq, restricted": (400, error("Organization has been restricted.", "organization_restricted"), DEAD_KEY),
    "groq, tier is full": (498, error("Flex tier capacity exceeded", "capacity_exceeded"), BROKEN),
    # Together
    "together, no money": (402, error("Credit limit exceeded", None, "credit_limit"), EMPTY_ACCOUNT),
    "together, overloaded": (503, error("The server is overloaded", None, "service_unavailable"), BROKEN),
    # OpenRouter
    "openrouter, no money": (402, {"error": {"message": "Insufficient credits.", "code": 402}}, EMPTY_ACCOUNT),
    "openrouter, a key's limit": (
        403,
        {"error": {"message": "Key limit exceeded (total limit)", "code": 403}},
        EMPTY_ACCOUNT,
    ),
    "openrouter, budget on its way": (
        402,
        {"error": {"message": "Wait.", "code": 402, "metadata": {"limit_source": "openrouter_in_flight_budget"}}},
        THROTTLED,
    ),
    "openrouter, flagged": (403, {"error": {"message": "Flagged", "code": 403, "metadata": FLAGGED}}, REFUSED),
    "openrouter, forbidden": (403, {"error": {"message": "Forbidden", "code": 403}}, DEAD_KEY),
    "openrouter, no provider": (503, {"error": {"message": "No provider available", "code": 503}}, BROKEN),
    "openrouter, 200 with an error": (200, {"error": {"message": "Provider returned error", "code": 502}}, BROKEN),
    # DeepSeek
    "deepseek, no money": (402, error("Insufficient Balance", "invalid_request_error", "unknown_error"), EMPTY_ACCOUNT),
    "deepseek, unsafe": (400, error("Content Exists Risk", "invalid_request_error"), REFUSED),
    # Mistral
    "mistral, throttled": (429, {"message": "Requests rate limit exceeded"}, THROTTLED),
    "mistral, tier is full": (
        429,
        {
            "object": "error",
            "message": "Service tier capacity exceeded for this model.",
            "type": "service_tier_capacity_exceeded",
            "code": "3505",
        },
        THROTTLED,
    ),
    "mistral, wrong key": (401, {"message": "Unauthorized", "request_id": "x"}, DEAD_KEY),
    # Fireworks
    "fireworks, no money": (412, {"error": {"object": "error", "message": SUSPENDED}}, EMPTY_ACCOUNT),
    "fireworks, another precondition": (412, {"error": {"message": "Model is not ready"}}, REJECTED),
    # llama.cpp, vLLM, Ollama
    "llama.cpp, loading": (
        503,
        {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
        BROKEN,
    ),
    "vllm, prompt too long": (
        400,
        {"object": "error", "message": "maximum context length", "type": "BadRequestError", "code": 400},
        REJECTED,
    ),
    "ollama, no such model": (404, error('model "m" not found, try pulling it first', None, "api_error"), REJECTED),
    # behind Cloudflare
    "a gateway's own time": (524, {}, BROKEN),
}


@pytest.mark.parametrize("name", ROWS)
def test_the_errors_of_openais_imitators_are_read_as_each_means_them(name: str) -> None:
    status, body, expected = ROWS[name]
    result = decode(Response(status, orjson.dumps(body)))
    if isinstance(result, Reply):
        assert expected == REFUSED
        assert result.refused and result.finish_reason == "content_filter"
    else:
        assert (result.kind, result.action) == expected
        assert ("can't pay" in result.detail) == (expected == EMPTY_ACCOUNT)


def test_words_about_money_in_an_echoed_prompt_are_no_empty_account() -> None:
    """A server that checks requests against a schema gives them back in its complaints."""
    body = {"detail": [{"type": "string_type", "loc": ["body", "messages"], "msg": "input: monthly spending limit"}]}
    fault = decode(Response(422, orjson.dumps(body)))
    assert isinstance(fault, Fault) and fault.action == "never"
    for status in (401, 404, 500, 503):
        fault = decode(Response(status, orjson.dumps(error(SPENT))))
        assert isinstance(fault, Fault) and fault.action != "stop"


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Rate limit reached. Please try again in 20s. Visit our site.", 20.0),
        ("Please try again in 86ms.", 0.086),
        ("Please try again in 7m12s.", 432.0),
        ("Please try again in 1m7.5s.", 67.5),
        ("Please try again in 1h2m3s", 3723.0),
        ("Please try again in 6m", 360.0),
        ("please try again in 1d2h", 93_600.0),
        ("Requests have exceeded call rate limit. Please retry after 7 seconds.", 7.0),
        ("Please retry after 1 second", 1.0),
        ("Please try again in a while.", None),
        ("Please try again in 1.2.3s.", None),
        ("Please try again in 99999999999d.", None),
        ("Please try again later", None),
    ],
)
def test_the_wait_is_read_from_the_message_where_no_header_tells_it(message: str, seconds: float | None) -> None:
    body = orjson.dumps(error(message, "rate_limit_exceeded"))
    fault = decode(Response(429, body))
    assert isinstance(fault, Fault)
    assert (fault.retry_after_s, fault.cuts_rate) == (pytest.approx(seconds) if seconds else None, seconds is None)
    told = decode(Response(429, body, headers={"retry-after": "3"}))
    assert isinstance(told, Fault) and told.retry_after_s == 3.0


UNSUPPORTED = (
    "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
)
EXTRA = {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 7}
OPENAI_SAYS = (
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
)
REFUSALS: dict[str, tuple[int, dict[str, Any], str]] = {
    "openai, a value": (
        400,
        error(UNSUPPORTED, "unsupported_value", param="temperature"),
        "temperature: leave it out, in a run with --temperature none",
    ),
    "openai, a parameter": (
        400,
        error("Unsupported parameter: 'top_p'.", "unsupported_parameter", param="top_p"),
        "top_p: leave it out",
    ),
    "openai, a name": (
        400,
        error(OPENAI_SAYS, "unsupported_parameter", param="max_tokens"),
        'max_tokens: set max_tokens_name = "max_completion_tokens" under [providers.NAME] in a --config file',
    ),
    "an older server, a name": (
        400,
        error("Unrecognized request argument supplied: max_completion_tokens"),
        'max_completion_tokens: set max_tokens_name = "max_tokens" under [providers.NAME] in a --config file',
    ),
    "a value of max_tokens": (
        400,
        error("Unsupported value: 'max_tokens' must be at least 1024.", "unsupported_value", param="max_tokens"),
        "this max_tokens: leave --max-tokens out if it was given, else give another",
    ),
    "openai responses": (
        400,
        error("Unsupported parameter.", "unsupported_parameter", param="reasoning.effort"),
        "reasoning_effort: leave it out",
    ),
    "xai": (400, {"code": "invalid", "error": "Argument not supported on this model: stop"}, "stop: leave it out"),
    "mistral": (
        422,
        {"object": "error", "message": {"detail": [EXTRA]}, "type": "invalid_request_error"},
        "seed: leave it out",
    ),
    "vllm": (422, {"detail": [EXTRA]}, "seed: leave it out"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_refused_parameter_is_named_with_what_to_do(name: str) -> None:
    status, body, advice = REFUSALS[name]
    fault = decode(Response(status, orjson.dumps(body)))
    assert isinstance(fault, Fault)
    assert (fault.kind, fault.action) == ("rejected", "never")
    assert fault.detail.endswith(f"(the model refuses {advice})")


TOOLS_AND_EFFORT = (
    "Function tools with reasoning_effort are not supported for gpt-6-astra in /v1/chat/completions. To use function "
    "tools, use /v1/responses."
)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error(TOOLS_AND_EFFORT, param="reasoning_effort")),
        (404, error("This model is only supported in v1/responses and not in v1/chat/completions.", param="model")),
    ],
)
def test_what_chat_refuses_and_responses_takes_is_advised_to_be_asked_there(status: int, body: dict[str, Any]) -> None:
    fault = decode(Response(status, orjson.dumps(body)))
    assert isinstance(fault, Fault) and (fault.kind, fault.action) == ("rejected", "never")
    assert fault.detail.endswith("(ask it through Responses, as openai-responses/MODEL)")


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, error("maximum context length is 8192 tokens, however you requested 9000 (max_tokens)")),
        (400, error("messages: must not be empty")),
        (400, error("This model is not supported")),
        (404, error("temperature is not supported")),
        (429, error("temperature is not supported")),
        (500, error("temperature is not supported", "unsupported_parameter")),
    ],
)
def test_no_parameter_is_blamed_for_anything_else(status: int, body: dict[str, Any]) -> None:
    fault = decode(Response(status, orjson.dumps(body)))
    assert isinstance(fault, Fault)
    assert "refuses" not in fault.detail


def test_complaints_of_a_schema_are_told_with_their_places() -> None:
    body = {"detail": [EXTRA, {"loc": ["body", "messages", 0, "role"], "msg": "Field required", "type": "missing"}, 7]}
    message = "body.seed: Extra inputs are not permitted; body.messages.0.role: Field required"
    assert error_in(orjson.dumps(body)).message == message
    assert error_in(orjson.dumps({"message": body})).message == message
