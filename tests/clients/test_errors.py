"""What goes wrong behind the gateway or at its door, as the official clients for Python raise it: their own classes,
and at once, since a client that tries again by itself would send what the gateway has tried already."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import anthropic
import openai
import pytest
from asked_by_clients import by_anthropic, by_chat, by_genai, by_responses
from google.genai import errors
from mocks import why_no_aimock
from served import SAID, TOKEN, Served

OK = "lab/steady"
both_ways = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


class Client(NamedTuple):
    """`hot`, `foreign`: a parameter that none takes, and one that only its own protocol has words for."""

    ask: Callable[..., str]
    hot: dict[str, Any]
    foreign: dict[str, Any]
    over_budget: int = 429


CLIENTS = {
    "chat": Client(by_chat, {"temperature": "hot"}, {"frequency_penalty": 0.5}),
    "responses": Client(by_responses, {"temperature": "hot"}, {"truncation": "auto"}),
    "anthropic": Client(
        by_anthropic, {"extra_body": {"temperature": "hot"}}, {"extra_body": {"top_k": 7}}, over_budget=402
    ),
    "genai": Client(
        by_genai,
        {"extra_body": {"generationConfig": {"temperature": "hot"}}},
        {"extra_body": {"generationConfig": {"topK": 7}}},
    ),
}
# What a client says is wrong -> the status, and the class that each of the two makes of it.
CASES: dict[str, tuple[int, str]] = {
    "a wrong key": (401, "AuthenticationError"),
    "a model that it may not ask": (403, "PermissionDeniedError"),
    "a provider that there is not": (404, "NotFoundError"),
    "a model that the provider does not know": (404, "NotFoundError"),
    "a parameter that is none": (400, "BadRequestError"),
    "a parameter in words that the provider does not speak": (400, "BadRequestError"),
    "no money left": (429, "RateLimitError"),
    "a provider without a key": (503, "InternalServerError"),
}


def given_for(case: str, client: Client) -> tuple[str, dict[str, Any]]:
    """The token and the rest of a request."""
    return {
        "a wrong key": ("token-of-nobody", {"model": OK}),
        "a model that it may not ask": ("token-of-a-narrow", {"model": OK}),
        "a provider that there is not": (TOKEN, {"model": "nobody/m"}),
        "a model that the provider does not know": (TOKEN, {"model": "lab/nobody"}),
        "a parameter that is none": (TOKEN, {"model": OK, **client.hot}),
        "a parameter in words that the provider does not speak": (
            TOKEN,
            {"model": "bedrock/m", **client.foreign},
        ),
        "no money left": ("token-of-a-poor", {"model": OK}),
        "a provider without a key": (TOKEN, {"model": "gemini/gemini-3-flash"}),
    }[case]


# Each client meets each error, whole or streamed in turn; the other way in `make long`.
EVERY_WAY = [
    pytest.param(
        case,
        name,
        streamed,
        id=f"{case}-{name}-{'streamed' if streamed else 'whole'}",
        marks=pytest.mark.long if (at + place + streamed) % 2 else (),
    )
    for at, case in enumerate(CASES)
    for place, name in enumerate(CLIENTS)
    for streamed in (False, True)
]


@pytest.mark.parametrize(("case", "name", "streamed"), EVERY_WAY)
def test_an_error_is_raised_as_the_clients_own_class_and_sent_once(
    gateway: Served, case: str, name: str, streamed: bool
) -> None:
    client = CLIENTS[name]
    status, kind = CASES[case]
    if case == "no money left":
        status = client.over_budget
    if name == "anthropic":
        kind = {402: "PaymentRequiredError", 503: "ServiceUnavailableError"}.get(status, kind)
    token, given = given_for(case, client)
    requests, calls = gateway.requests(), gateway.provider.calls()
    with pytest.raises((openai.APIStatusError, anthropic.APIStatusError, errors.APIError)) as raised:
        client.ask(gateway.origin, token, streamed, **given)
    assert gateway.requests() == requests + 1
    assert gateway.provider.calls() == calls + (case == "a model that the provider does not know")
    error: Any = raised.value
    if isinstance(error, errors.APIError):
        assert (error.code, type(error).__name__) == (status, "ClientError" if status < 500 else "ServerError")
        assert error.message and "\n" not in error.message
        return
    assert (error.status_code, type(error).__name__) == (status, kind)
    assert error.response.headers["x-should-retry"] == "false"
    assert error.response.headers["x-millstream-cached"] == "false"
    assert error.request_id and error.request_id == error.response.headers[_NAMED[name]]


_NAMED = {"chat": "x-request-id", "responses": "x-request-id", "anthropic": "request-id"}


def test_openais_errors_say_what_of_the_request_is_wrong(gateway: Served) -> None:
    with pytest.raises(openai.NotFoundError) as unknown:
        by_chat(gateway.origin, TOKEN, False, model="nobody/m")
    assert (unknown.value.code, unknown.value.param, unknown.value.type) == (
        "model_not_found",
        "model",
        "invalid_request_error",
    )
    with pytest.raises(openai.BadRequestError) as hot:
        by_chat(gateway.origin, TOKEN, False, model=OK, temperature="hot")
    assert hot.value.param == "temperature"
    with pytest.raises(openai.RateLimitError) as poor:
        by_chat(gateway.origin, "token-of-a-poor", False, model=OK)
    assert poor.value.code == "insufficient_quota" and "max_cost" in poor.value.message


def test_anthropics_errors_have_its_own_kinds(gateway: Served) -> None:
    kinds = []
    for case in ("a wrong key", "a provider that there is not", "no money left"):
        token, given = given_for(case, CLIENTS["anthropic"])
        with pytest.raises(anthropic.APIStatusError) as raised:
            by_anthropic(gateway.origin, token, False, **given)
        body: Any = raised.value.body
        assert body["type"] == "error"
        kinds.append(body["error"]["type"])
    assert kinds == ["authentication_error", "not_found_error", "billing_error"]


# --- what the provider says no to ---


@both_ways
@pytest.mark.parametrize("name", ["chat", "anthropic"])
def test_an_answer_that_was_held_back_is_none_of_an_error(gateway: Served, name: str, streamed: bool) -> None:
    gateway.provider.set_faults("content_filter")
    try:
        if name == "chat":
            with openai.OpenAI(api_key=TOKEN, base_url=gateway.base_url) as client:
                talk: Any = [{"role": "user", "content": f"held back {streamed}"}]
                answer: Any = client.chat.completions.create(model=OK, messages=talk, stream=streamed)
                choices = [choice for chunk in answer for choice in chunk.choices] if streamed else answer.choices
                assert choices[-1].finish_reason == "content_filter"
        else:
            with anthropic.Anthropic(api_key=TOKEN, base_url=gateway.origin) as other:
                talk = [{"role": "user", "content": f"held back too {streamed}"}]
                with other.messages.stream(model=OK, max_tokens=200, messages=talk) as events:
                    assert events.get_final_message().stop_reason == "refusal"
    finally:
        gateway.provider.set_faults()


@pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "the mock can be used")
def test_after_all_these_errors_every_client_is_answered_by_every_family(gateway: Served) -> None:
    for client in CLIENTS.values():
        for model in ("claude/claude-sonnet-5-5", "mountain/gemini-3-flash"):
            assert client.ask(gateway.origin, TOKEN, False, model=model) == SAID
