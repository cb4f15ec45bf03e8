"""How a probe sends what its steps ask for: caps, pauses, rounds that end with a refusal, and the rest at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from virtual_time import run_virtually

from millstream.bench.probe.answers import Answer
from millstream.bench.probe.calls import Bounds, Watcher
from millstream.bench.probe.lanes_file import FoundQuota, Report
from millstream.bench.probe.run import Probe
from millstream.engine.lanes.ledger import Ledger
from millstream.engine.limits import Quota, Tokens

MODEL = "mylab/m"
ADMITTED = Answer("admitted", 20, 0.0)
WIDE = Bounds(5_000, 10.0)
Script = Callable[[int, int], Answer]
"""The answer to a call, by its number and its size."""


class Scripted:
    """Answers at once, and notes when it was asked for what."""

    def __init__(self, script: Script, latency_s: float = 0.0) -> None:
        self.script = script
        self.latency_s = latency_s
        self.at: list[float] = []
        self.sizes: list[int] = []

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def worst_cost(self, model: str, tokens: int) -> float:
        return 1e-6 * tokens

    def quiet_in_s(self, model: str) -> float:
        return 0.0

    async def ask(self, model: str, tokens: int) -> Answer:
        self.at.append(self.now())
        self.sizes.append(tokens)
        answer = self.script(len(self.at), tokens)
        await asyncio.sleep(self.latency_s)
        return answer


class Watching(Watcher):
    """Remembers the bursts: admitted, refused, not sent."""

    def __init__(self) -> None:
        self.rounds: list[tuple[int, int, int]] = []

    def got(self, model: str, seen: Sequence[Answer], unsent: int) -> None:
        self.rounds.append((sum(one.is_admitted for one in seen), sum(one.is_refused for one in seen), unsent))


def probed(outside: Scripted, bounds: Bounds = WIDE, watching: Watching | None = None) -> tuple[Probe, float]:
    async def main() -> tuple[Probe, float]:
        probe = Probe(outside, bounds, watching)
        await probe.run([MODEL])
        return probe, outside.now()

    return run_virtually(main())


def refusing_after(count: int, told_s: float | None = None) -> Script:
    return lambda number, _: ADMITTED if number <= count else Answer("refused", retry_after_s=told_s)


def test_a_burst_ends_with_its_first_refusal_and_what_was_not_sent_is_told() -> None:
    watching = Watching()
    probed(Scripted(refusing_after(47)), watching=watching)
    # The one after it may have begun while the refusal was on its way.
    assert all(refused <= 2 for _, refused, _ in watching.rounds)
    assert max(unsent for _, _, unsent in watching.rounds) > 0
    assert sum(admitted for admitted, _, _ in watching.rounds) == 47


@pytest.mark.parametrize("told_s", [0.5, 7.0, 61.0, 150.0])
def test_no_call_goes_out_before_a_retry_after_is_over(told_s: float) -> None:
    outside = Scripted(refusing_after(40, told_s))
    probed(outside)
    refused = outside.at[40:]
    assert len(refused) >= 2
    # Beside those that were on their way with it.
    gaps = [after - before for before, after in pairwise(refused) if after - before > 0.005]
    assert all(gap >= told_s for gap in gaps), gaps


def test_who_is_refused_for_ever_and_told_no_time_is_left_alone_for_longer_and_longer() -> None:
    outside = Scripted(refusing_after(40))
    probe, ended_s = probed(outside)
    gaps = [after - before for before, after in pairwise(outside.at[40:]) if after - before > 0.01]
    assert len(outside.at) - 40 <= 30
    assert gaps[:4] == sorted(gaps[:4]) and max(gaps) > 5
    assert probe.lanes[MODEL].rpm is None
    assert ended_s < 900


def test_who_asks_for_a_day_is_not_waited_for() -> None:
    result, ended_s = probed(Scripted(refusing_after(40, 86_400.0)))
    assert result.lanes[MODEL].ended.endswith("asks for a pause of 1,440 min: probe again then")
    assert ended_s < 70


def test_failures_are_followed_by_pauses_that_double_and_the_fifth_ends_it() -> None:
    outside = Scripted(lambda number, _: Answer("failed", detail="server_error: 500") if number > 10 else ADMITTED)
    result, _ = probed(outside)
    assert result.lanes[MODEL].ended == f"{MODEL}: server_error: 500"
    assert len(outside.at) - 10 <= 6


def test_where_no_answer_tells_its_tokens_none_are_looked_for() -> None:
    outside = Scripted(lambda *_: Answer("admitted"))
    result, _ = probed(outside, Bounds(5_000, 10.0, requests=100))
    assert max(outside.sizes) == 1
    assert result.lanes[MODEL].tpm is None
    assert result.lanes[MODEL].ended == ""


def test_no_more_tokens_are_tried_than_is_allowed_and_that_is_no_fault() -> None:
    outside = Scripted(lambda _, size: Answer("admitted", size + 14))
    result, _ = probed(outside, Bounds(5_000, 10.0, requests=100, tokens=5_000))
    assert max(outside.sizes) <= 5_000
    assert result.lanes[MODEL].ended == ""


def test_what_is_known_and_was_used_can_be_asked_for_at_any_instant() -> None:
    async def main() -> Probe:
        probe = Probe(Scripted(lambda *_: ADMITTED, latency_s=1.0), WIDE)
        task = asyncio.create_task(probe.run([MODEL, "mylab/other"]))
        await asyncio.sleep(66.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return probe

    probe = run_virtually(main())
    assert list(probe.lanes) == [MODEL]
    assert probe.calls > 1
    # What was in flight counts at its worst.
    assert probe.cost > 0


class SlidingMinute(Scripted):
    """A provider that admits `rpm` requests in any 60 s, a share of which was used before the probe: `ledger` knows."""

    def __init__(self, rpm: int, used: Sequence[float], ledger: Ledger) -> None:
        super().__init__(lambda *_: self.decided(), latency_s=0.05)
        self.rpm = rpm
        self.ledger = ledger
        self.admitted = list(used)
        for then in used:
            assert ledger.take(then, Tokens(1, 1))[0] == 0

    def quiet_in_s(self, model: str) -> float:
        return self.ledger.empty_in_s(self.now())

    def decided(self) -> Answer:
        now = self.now()
        self.admitted = [then for then in self.admitted if then > now - 60]
        if len(self.admitted) >= self.rpm:
            return Answer("refused", retry_after_s=self.admitted[0] + 60 - now)
        self.admitted.append(now)
        return ADMITTED


@pytest.mark.parametrize("rested_s", [5, 20, 30, 45])
def test_a_probe_soon_after_a_load_test_waits_and_finds_no_more_than_is_enforced(
    rested_s: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> tuple[FoundQuota, float]:
        began = asyncio.get_running_loop().time()
        # 32 s of 9 calls a second, as a load test sends them.
        used = [began + number / 9 for number in range(32 * 9)]
        await asyncio.sleep(32 + rested_s)
        outside = SlidingMinute(600, used, Ledger(Quota()))
        probe = Probe(outside, WIDE)
        await probe.run([MODEL])
        return probe.lanes[MODEL], outside.at[0] - used[-1]

    found, waited_s = run_virtually(main())
    rpm = found.rpm
    assert rpm is not None and 0.95 * 600 <= rpm <= 600
    assert waited_s >= 60
    assert f"{MODEL} was called in the last minute: waits " in caplog.text


def test_a_model_that_others_go_on_calling_is_not_probed() -> None:
    outside = Scripted(refusing_after(47))
    outside.quiet_in_s = lambda model: 60.0  # type: ignore[method-assign]
    result, _ = probed(outside)
    assert outside.at == [] and "another program goes on calling it" in result.lanes[MODEL].ended


def test_a_probe_that_finds_nothing_ends_with_3() -> None:
    never, some = FoundQuota(tested_rpm=800), FoundQuota(rpm=99.0)
    for lanes, code in (({"a": some}, 0), ({"a": never}, 3), ({"a": some, "b": never}, 3)):
        assert Report(lanes=lanes, calls=800, cost=0.0, ways={}).exit_code == code
    assert next(never.lines()) == "requests a minute: not found; at least 800, which were admitted within a minute"
