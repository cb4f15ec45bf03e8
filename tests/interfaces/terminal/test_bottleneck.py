"""What a run waits for, as its progress tells it and as shares of time."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually
from watched_run import MODEL, lines_of

from millstream.engine.endpoint import Fault
from millstream.engine.events import Event
from millstream.engine.lane import Lane
from millstream.interfaces.terminal.bottleneck import ANSWERS, LEASE, SHARED, LaneSpan, WaitShare, shares
from millstream.interfaces.terminal.run_progress import RunProgress, RunView


def waited_for(line: str) -> tuple[str, int]:
    found = re.search(r"waiting for (.+?) (\d+)%", line)
    assert found is not None, line
    return found[1], int(found[2])


def test_calls_that_wait_for_a_shared_cache_are_what_a_lane_waits_for() -> None:
    assert LaneSpan(10.0, "", 0.0, 0, 4, is_cpu_full=False, shared_s=40.0).waits() == {SHARED: 10.0}
    assert LaneSpan(10.0, "", 0.0, 1, 4, is_cpu_full=False, lease_s=8.0, shared_s=12.0).waits() == {
        LEASE: 2.0,
        SHARED: 3.0,
        ANSWERS: 5.0,
    }


def test_a_lane_at_its_request_quota_waits_for_requests_and_the_quota_tells_the_time_left(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, rpm=600, concurrency=16), 300)
    reason, share = waited_for(written[1][1])
    assert reason == "the quota of requests" and share >= 85
    left = re.search(r"(\d+):(\d+) left", written[1][1])
    assert left is not None
    assert int(left[1]) * 60 + int(left[2]) == pytest.approx(written[-1][0] - written[1][0], abs=1.5)


def test_a_lane_at_its_token_quota_waits_for_tokens(tmp_path: Path) -> None:
    # Some 5 tokens a call once the estimate has learned: 200 calls a minute.
    written = lines_of(tmp_path, Lane(MODEL, tpm=1_000, concurrency=4), 300)
    reasons = [waited_for(line) for _, line in written[1:-1]]
    assert len(reasons) > 5 and all(reason == "the quota of tokens" and share > 80 for reason, share in reasons)


def test_a_slow_provider_behind_full_slots_is_waiting_for_concurrency(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=2), 40, ScriptedProvider(latency_s=1.0))
    reason, share = waited_for(written[1][1])
    assert reason == "a free slot (concurrency)" and share > 95


def test_a_pause_is_told_while_it_lasts(tmp_path: Path) -> None:
    def script(_: str, at: float) -> Fault | None:
        return Fault("rate_limited", "wait", "throttle", retry_after_s=60.0) if 5 < at < 6 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 100, ScriptedProvider(script))
    paused = [line for at, line in written if 20 < at < 60]
    assert len(paused) == 4
    assert all(waited_for(line) == ("pause", 100) and "throttled 1" in line for line in paused)


def test_a_lone_back_off_is_told_while_it_lasts(tmp_path: Path) -> None:
    def script(_: str, at: float) -> Fault | None:
        return Fault("server_error", "busy", "retry") if at < 60 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 3, ScriptedProvider(script))
    reasons = [waited_for(line)[0] for _, line in written[2:4]]
    assert reasons == ["the next attempt"] * 2


def test_back_offs_of_many_callers_are_retry_by_the_share_of_callers() -> None:
    span = LaneSpan(0.25, "", 1.25, 10, 10, is_cpu_full=False)
    assert shares([span.waits()] * 40) == (WaitShare("concurrency", 0.5), WaitShare("retry", 0.5))


def test_waits_for_another_processs_answers_are_told_before_our_own_cpu() -> None:
    # 8 of 10 callers wait for leases; what is left is this process's own.
    span = LaneSpan(0.25, "", 0.0, 0, 10, is_cpu_full=True, lease_s=2.0)
    assert shares([span.waits()] * 40) == (WaitShare("lease", 0.8), WaitShare("CPU", 0.2))


def test_a_process_that_has_used_up_its_core_waits_for_the_cpu(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=2), 200, cpu=lambda loop: 0.97 * loop.time())
    assert waited_for(written[0][1]) == ("this machine's CPU", 100)


def test_a_run_that_lives_on_its_cache_waits_for_the_cpu(tmp_path: Path) -> None:
    async def main() -> RunView:
        async with engine_over({MODEL: ScriptedProvider()}, tmp_path / "cache") as bench:
            bench.lane(MODEL)
            headway = RunProgress(100, 0, bench.scheduler.routes.lasting, bench.budget, 0.0)
            for second in range(5):
                headway.hear(Event("cached", MODEL))
                view = headway.look(second + 1.0, 0.5, 0.0)
            return view

    assert run_virtually(main()).waits == (WaitShare("CPU", 1.0),)


def test_a_few_last_calls_are_waited_for_as_answers(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=8), 1, ScriptedProvider(latency_s=15.0))
    assert waited_for(written[1][1]) == ("answers", 100)


@given(
    st.lists(
        st.builds(
            LaneSpan,
            length_s=st.floats(0, 5),
            holding=st.sampled_from(["", "requests", "tokens", "pause", "breaker"]),
            retry_s=st.floats(0, 1000),
            in_flight=st.integers(0, 8),
            concurrency=st.integers(1, 8),
            is_cpu_full=st.booleans(),
            is_only_retrying=st.booleans(),
        ),
        max_size=60,
    )
)
def test_no_more_time_is_given_away_than_passed(spans: list[LaneSpan]) -> None:
    for span in spans:
        waits = span.waits()
        assert all(one >= 0 for one in waits.values()) and sum(waits.values()) <= span.length_s + 1e-6
