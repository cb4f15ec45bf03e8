"""A mock of OpenAI's chat completions that nobody here wrote, which judges its client's manners."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from endpoints import CANARY
from mocks import LLMock, llmock

from millstream import Call, Engine, Lane, Outcome, Settings
from millstream.engine.attempts.retry import RetryPolicy

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


@pytest.mark.alone
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
