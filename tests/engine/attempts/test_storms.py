"""Outages and faults in virtual time: every run ends, and no call is sent too often."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path

from scripted import ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call, Outcome
from millstream.engine.endpoint import Cleared, Fault, Request, Response
from millstream.engine.fault import Stopped
from millstream.engine.lane import Lane
from millstream.engine.run import run_calls

M = "script/m"
SERVER_ERROR = Fault("server_error", "500", "retry", 500)
REJECTED = Fault("rejected", "400 bad request", "never", 400)
EMPTY_ACCOUNT = Fault("rate_limited", "insufficient_quota", "stop", 429)


def test_a_call_that_always_fails_is_tried_as_often_as_configured(tmp_path: Path) -> None:
    provider = ScriptedProvider(lambda prompt, at: SERVER_ERROR if prompt == "bad" else None)

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path, policy=RetryPolicy(attempts_max=4)) as bench:
            return await bench.scheduler.ask(Call(M, "bad"))

    outcome = run_virtually(main())
    assert (outcome.status, outcome.attempts, len(provider.arrivals)) == ("server_error", 4, 4)
    gaps = [b[0] - a[0] for a, b in zip(provider.arrivals, provider.arrivals[1:], strict=False)]
    assert all(1.0 <= gap <= 60.2 for gap in gaps)


def test_a_call_that_may_have_been_billed_is_repeated_at_most_twice(tmp_path: Path) -> None:
    cut = Fault("incomplete", "cut", "retry", is_billed_maybe=True)
    provider = ScriptedProvider(lambda prompt, at: cut)

    async def main() -> Outcome:
        async with engine_over({M: provider}, tmp_path) as bench:
            return await bench.scheduler.ask(Call(M, "a"))

    outcome = run_virtually(main())
    assert (outcome.status, outcome.attempts, outcome.maybe_billed) == ("incomplete", 3, 3)


def test_a_call_that_alone_is_forbidden_ends_while_the_others_go_on(tmp_path: Path) -> None:
    """The confirming probe of another call succeeds, so the key is alive; this call must not be sent for ever."""
    forbidden = Fault("rejected", "403 by a filter", "confirm", 403)
    provider = ScriptedProvider(lambda prompt, at: forbidden if prompt == "prompt 5" else None, latency_s=0.1)
    found: list[Outcome] = []

    async def main() -> None:
        async with engine_over({M: provider}, tmp_path, Lane(M, concurrency=8)) as bench:
            with contextlib.suppress(Stopped):
                found.extend([outcome async for outcome in run_calls(bench.scheduler, prompts(3000))])

    run_virtually(main())
    assert provider.counts()["prompt 5"] <= 1 + RetryPolicy().attempts_max


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


def test_in_an_outage_of_ten_minutes_retries_stay_a_tenth_of_the_traffic_and_nothing_is_lost(tmp_path: Path) -> None:
    provider, kinds, ended = outage(1.0, 120, 715, tmp_path)
    assert sum(kinds.values()) == 6000
    assert kinds["ok"] >= 5980
    total, again = repeats(provider, 0, ended)
    assert again <= 0.1 * total
    # Ninety percent of the quota within five minutes of its end.
    assert repeats(provider, 715 + 300, 715 + 360)[0] >= 0.9 * 600 or ended < 715 + 360


def test_with_most_calls_failing_retries_are_held_to_the_budget_and_the_run_goes_on_afterwards(tmp_path: Path) -> None:
    provider, kinds, ended = outage(0.6, 120, 720, tmp_path)
    assert sum(kinds.values()) == 6000
    sends, again = repeats(provider, 120, 720)
    policy = RetryPolicy()
    # A tenth of the attempts, what was saved up before, and one every ten seconds so that every run ends.
    assert again <= policy.budget_share * sends + 10 * policy.budget_floor + 600 / policy.probe_every_s
    assert repeats(provider, 720 + 300, 720 + 360)[0] >= 0.9 * 600 or ended < 720 + 360
