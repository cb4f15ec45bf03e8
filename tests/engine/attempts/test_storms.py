"""Outages and faults in virtual time: every run ends, and no call is sent too often."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
SERVER_ERROR = Fault("server_error", "500", "retry", 500)


def test_an_attempt_that_breaks_in_an_unforeseen_way_harms_no_other_call(tmp_path: Path) -> None:
    class Broken(ScriptedProvider):
        async def send(self, request: Request, cleared: Cleared) -> Response:
            response = await super().send(request, cleared)
            if request.body == b"prompt 3":
                raise ZeroDivisionError("in a provider's code")
            return response

    provider = Broken()

    async def main() -> list[Outcome]:
        async with engine_over({M: provider}, tmp_path) as bench:
            return [outcome async for outcome in run_calls(bench.scheduler, prompts(20))]

    found = {outcome.call.input: outcome for outcome in run_virtually(main())}
    assert Counter(outcome.status for outcome in found.values()) == {"ok": 19, "incomplete": 1}
    failure = found["prompt 3"].failure
    assert failure is not None and failure.detail == "ZeroDivisionError: in a provider's code"


def outage(share: float, begin: float, end: float, tmp_path: Path) -> tuple[ScriptedProvider, Counter[str], float]:
    chance = random.Random(9)
    failing = lambda prompt, at: SERVER_ERROR if begin <= at < end and chance.random() < share else None  # noqa: E731
    provider = ScriptedProvider(failing, latency_s=lambda: chance.uniform(0.5, 1.5))
    kinds: Counter[str] = Counter()

    async def main() -> float:
        async with engine_over({M: provider}, tmp_path, Lane(M, rpm=600, concurrency=32)) as bench:
            async for outcome in run_calls(bench.scheduler, prompts(6000)):
                kinds[outcome.status] += 1
            return asyncio.get_running_loop().time()

    return provider, kinds, run_virtually(main())


def repeats(provider: ScriptedProvider, begin: float, end: float) -> tuple[int, int]:
    """Sends between two times, and how many of them were not the first of their prompt."""
    seen: set[str] = set()
    sends = again = 0
    for at, prompt in provider.arrivals:
        if begin <= at < end:
            sends += 1
            again += prompt in seen
        seen.add(prompt)
    return sends, again


def test_with_most_calls_failing_retries_are_held_to_the_budget_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    provider, kinds, ended = outage(0.6, 120, 720, tmp_path)
    assert sum(kinds.values()) == 6000
    sends, again = repeats(provider, 120, 720)
    policy = RetryPolicy()
    # A tenth of the attempts, what was saved up before, and one every ten seconds so that every run ends.
    assert again <= policy.budget_share * sends + 10 * policy.budget_floor + 600 / policy.probe_every_s
    assert repeats(provider, 720 + 300, 720 + 360)[0] >= 0.9 * 600 or ended < 720 + 360
