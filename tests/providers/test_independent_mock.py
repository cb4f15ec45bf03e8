"""Mocks of OpenAI's protocols that nobody here wrote: the same answers and faults, and a judge of our manners."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from endpoints import CANARY, ask, endpoint, fault_in, transport
from loops import run_on
from mocks import LLMock, aimock, llmock, why_no_aimock

from millstream import Call, Engine, Lane, Outcome, Reply, Settings
from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.endpoint import Fault
from millstream.providers.llm.openai import chat as openai_chat
from millstream.providers.llm.openai import responses as openai_responses
from millstream.providers.llm.protocol import WireProtocol

PROTOCOLS = (openai_chat.PROTOCOL, openai_responses.PROTOCOL)
ANSWERS = {
    "a letter": "position <<A>> – ✓ 😀",
    "many lines": 'one\n\ntwo\r\n"three"\\\tdata: four\n\n',
    "nothing": "",
    "a long text": "word " * 2_000,
}
USAGE = {"prompt_tokens": 11, "completion_tokens": 5, "input_tokens": 11, "output_tokens": 5, "total_tokens": 16}


def given(prompt: str, **response: Any) -> dict[str, Any]:
    return {"match": {"userMessage": prompt}, "response": response}


def failing(prompt: str, status: int, kind: str, code: str | None = None, **more: Any) -> dict[str, Any]:
    return given(prompt, status=status, error={"message": "No.", "type": kind, "code": code}, **more)


FIXTURES = [
    *(given(prompt, content=text, usage=USAGE) for prompt, text in ANSWERS.items()),
    given("cut by length", content="hal", finishReason="length"),
    given("filtered", content="no", finishReason="content_filter"),
    failing("too fast", 429, "requests", "rate_limit_exceeded", retryAfter=3),
    failing("no money", 429, "insufficient_quota", "insufficient_quota"),
    failing("broken", 500, "server_error"),
    failing("overloaded", 529, "overloaded_error"),
    failing("no key", 401, "invalid_request_error", "invalid_api_key"),
    failing("no such model", 404, "invalid_request_error", "model_not_found"),
]
# kind, action, seconds to wait, whether the rate is cut
FAULTS = {
    "too fast": ("rate_limited", "throttle", 3.0, False),
    "no money": ("rate_limited", "stop", None, False),
    "broken": ("server_error", "retry", None, False),
    "overloaded": ("server_error", "retry", None, True),
    "no key": ("rejected", "confirm", None, False),
    "no such model": ("rejected", "never", None, False),
    "what no fixture matches": ("rejected", "never", None, False),
}


in_each_protocol = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda protocol: protocol.kind)
on_node = pytest.mark.skipif(bool(why_no_aimock()), reason=why_no_aimock() or "it can be used")


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with aimock(tmp_path_factory.mktemp("aimock"), FIXTURES) as base_url:
        yield base_url


def asked(base_url: str, protocol: WireProtocol, prompt: str, *, stream: bool) -> Reply | Fault:
    async def once() -> Reply | Fault:
        async with transport() as over:
            return await ask(endpoint(over, base_url, protocol=protocol), prompt, stream=stream)

    return run_on("asyncio", once())


@on_node
@in_each_protocol
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("prompt", ANSWERS)
def test_an_answer_comes_as_it_was_given(base_url: str, protocol: WireProtocol, prompt: str, stream: bool) -> None:
    reply = asked(base_url, protocol, prompt, stream=stream)
    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.finish_reason, reply.refused) == (ANSWERS[prompt], "stop", False)
    assert reply.usage is not None and (reply.usage.input, reply.usage.output) == (11, 5)


@on_node
@in_each_protocol
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_an_ending_comes_as_it_was_given(base_url: str, protocol: WireProtocol, stream: bool) -> None:
    cut = asked(base_url, protocol, "cut by length", stream=stream)
    assert isinstance(cut, Reply) and cut.truncated and cut.text == "hal"
    filtered = asked(base_url, protocol, "filtered", stream=stream)
    if protocol is openai_responses.PROTOCOL:
        # The mock has `failed` and no word of why, where OpenAI has `incomplete` and the filter as its reason.
        assert isinstance(filtered, Fault) and filtered.kind == "server_error"
    else:
        assert isinstance(filtered, Reply) and filtered.refused


@on_node
@in_each_protocol
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("prompt", FAULTS)
def test_an_error_is_the_fault_that_the_table_says(
    base_url: str, protocol: WireProtocol, prompt: str, stream: bool
) -> None:
    fault = fault_in(asked(base_url, protocol, prompt, stream=stream))
    assert (fault.kind, fault.action, fault.retry_after_s, fault.cuts_rate) == FAULTS[prompt]


RPM = 240
KEY = {"OPENAI_API_KEY": CANARY}


def twelve(base_url: str, folder: Path, lane: Lane) -> list[Outcome]:
    settings = Settings(
        lanes=(lane,),
        base_url=base_url,
        cache=folder,
        environment=KEY,
        policy=RetryPolicy(wait_min_s=0.01, wait_max_s=0.05),
    )

    async def run() -> list[Outcome]:
        async with Engine(settings=settings) as engine:
            calls = (Call(lane.model, f"Say A or B ({number}).", max_tokens=16) for number in range(12))
            return [outcome async for outcome in engine.run(calls)]

    return asyncio.run(asyncio.wait_for(run(), 60))


def assert_is_clean(mock: LLMock, calls: int) -> None:
    """The judge's words for a client that did everything right: neither an error nor a warning."""
    statuses = mock.statuses()
    refused = statuses.count(429)
    assert set(statuses) <= {200, 429} and len(statuses) == calls + refused
    head = f"LLMock resilience verdict: {calls} call(s), {calls + refused} attempt(s), {refused} fault(s) injected"
    assert mock.verdict().split("\n") == [head, "", "  PASS  the client handled every injected fault correctly.", ""]


def test_a_declared_quota_is_kept_to_the_satisfaction_of_its_judge(tmp_path: Path) -> None:
    """No refusal at all: whoever knows the quota, and that a minute of it is spent, has no reason to meet it."""
    with llmock("--rpm", str(RPM)) as mock:
        mock.spend(RPM - 3, CANARY)  # what is left would not do for twelve calls at once
        outcomes = twelve(mock.base_url, tmp_path, Lane("openai/m", rpm=RPM))
        assert [(outcome.status, outcome.attempts) for outcome in outcomes] == [("ok", 1)] * 12
        assert mock.statuses() == [200] * (RPM - 3 + 12)
        assert_is_clean(mock, RPM - 3 + 12)


def test_a_quota_that_nobody_declared_is_learned_from_its_refusals_and_their_wait_is_kept(tmp_path: Path) -> None:
    """What nobody has told can only be learned by being refused. A clean client is refused for what was on its way
    before the first refusal came, here all twelve calls but the three that had room, and goes at the learned pace from
    then on: it waits as long as it is told before each repeat, gives up on nothing, and is hardly refused again. Two
    more are granted to the clocks of two processes."""
    with llmock("--rpm", str(RPM)) as mock:
        mock.spend(RPM - 3, CANARY)
        outcomes = twelve(mock.base_url, tmp_path, Lane("openai/m"))
        assert [outcome.status for outcome in outcomes] == ["ok"] * 12
        at_once, later = mock.statuses()[RPM - 3 :][:12], mock.statuses()[RPM - 3 :][12:]
        assert 0 < at_once.count(429) <= 9
        assert later.count(429) <= 2
        assert max(outcome.attempts for outcome in outcomes) <= 3
        assert not any(outcome.maybe_billed for outcome in outcomes)
        assert_is_clean(mock, RPM - 3 + 12)
