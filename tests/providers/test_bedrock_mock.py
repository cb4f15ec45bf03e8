"""A mock of Bedrock that nobody here wrote: the same answers, thoughts and faults, whole and as binary events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from endpoints import ask, endpoint, fault_in, transport
from loops import run_on
from mocks import aimock, why_no_aimock

from millstream import Reply
from millstream.engine.call import Usage
from millstream.engine.endpoint import Fault
from millstream.providers.credentials.aws import AwsAuthorizer
from millstream.providers.credentials.aws_signature import Keys
from millstream.providers.llm.bedrock import converse as bedrock

pytestmark = [
    pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used"),
    pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"]),
]
ANSWERS = {
    "a letter": "position <<A>> – ✓ 😀",
    "many lines": 'one\n\ntwo\r\n"three"\\\tdata: four\n\n',
    "nothing": "",
    "a long text": "word " * 2_000,
}
USAGE = {"input_tokens": 11, "output_tokens": 5}
ENDINGS = {
    "max_tokens": ("length", False),
    "stop_sequence": ("stop", False),
    "guardrail_intervened": ("content_filter", True),
    "content_filtered": ("content_filter", True),
}
# Status and type; kind, action, seconds to wait, whether the rate is cut.
FAULTS: dict[str, tuple[int, str, tuple[str, str, float | None, bool]]] = {
    "too fast": (429, "rate_limit_error", ("rate_limited", "throttle", 3.0, False)),
    "not ready": (503, "unavailable", ("server_error", "retry", None, False)),
    "broken": (500, "server_error", ("server_error", "retry", None, False)),
    "late": (408, "timeout_error", ("server_error", "retry", None, False)),
    "no key": (403, "permission_error", ("rejected", "confirm", None, False)),
    "wrong": (400, "invalid_request_error", ("rejected", "never", None, False)),
    "no such model": (404, "not_found_error", ("rejected", "never", None, False)),
}


def given(prompt: str, **response: Any) -> dict[str, Any]:
    return {"match": {"userMessage": prompt}, "response": response}


def failing(prompt: str, status: int, kind: str) -> dict[str, Any]:
    wait = {"retryAfter": 3} if status == 429 else {}
    return given(prompt, status=status, error={"message": "No.", "type": kind}, **wait)


FIXTURES = [
    *(given(prompt, content=text, usage=USAGE) for prompt, text in ANSWERS.items()),
    given("thinking", content="A", reasoning="Perhaps B, perhaps A.", usage=USAGE),
    *(given(f"ends by {reason}", content="hal", finishReason=reason, usage=USAGE) for reason in ENDINGS),
    given("malformed", content="hal", finishReason="malformed_model_output"),
    *(failing(prompt, status, kind) for prompt, (status, kind, _) in FAULTS.items()),
    {**given("cut off", content="word " * 200), "truncateAfterChunks": 4, "latency": 20},
]


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url.removesuffix("/v1")


def asked(origin: str, prompt: str, *, stream: bool) -> Reply | Fault:
    async def once() -> Reply | Fault:
        keys = AwsAuthorizer(Keys("AKIATESTKEY123456789", "a-secret-of-nobodys"), "eu-west-1")
        async with transport() as over:
            at = endpoint(over, origin, protocol=bedrock.PROTOCOL, authorizer=keys, model="eu.anthropic.claude-v1:0")
            return await ask(at, prompt, stream=stream)

    return run_on("asyncio", once())


@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_comes_as_it_was_given(origin: str, prompt: str, stream: bool) -> None:
    reply = asked(origin, prompt, stream=stream)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason, reply.refused) == (ANSWERS[prompt], "stop", False)
    assert reply.usage == Usage(11, 5)


def test_thoughts_are_no_part_of_it(origin: str, stream: bool) -> None:
    reply = asked(origin, "thinking", stream=stream)
    assert isinstance(reply, Reply) and reply.text == "A"


@pytest.mark.parametrize("reason", ENDINGS)
def test_an_ending_comes_as_it_was_given(origin: str, reason: str, stream: bool) -> None:
    reply = asked(origin, f"ends by {reason}", stream=stream)
    assert isinstance(reply, Reply), reply
    assert (reply.text, (reply.finish_reason, reply.refused)) == ("hal", ENDINGS[reason])


def test_a_malformed_answer_is_none(origin: str, stream: bool) -> None:
    fault = fault_in(asked(origin, "malformed", stream=stream))
    assert (fault.kind, fault.action, fault.is_billed_maybe) == ("server_error", "retry", True)


def test_a_stream_that_the_server_cuts_is_none(origin: str, stream: bool) -> None:
    result = asked(origin, "cut off", stream=stream)
    if stream:
        fault = fault_in(result)
        assert (fault.kind, fault.action, fault.is_billed_maybe) == ("incomplete", "retry", True)
    else:
        assert isinstance(result, Reply) and result.text == "word " * 200


@pytest.mark.parametrize("prompt", [*FAULTS, "what no fixture matches"])
def test_an_error_is_the_fault_that_the_table_says(origin: str, prompt: str, stream: bool) -> None:
    fault = fault_in(asked(origin, prompt, stream=stream))
    _, _, expected = FAULTS.get(prompt, FAULTS["no such model"])
    assert (fault.kind, fault.action, fault.retry_after_s, fault.cuts_rate) == expected
