"""What a lane that stops for want of an answer says: how long it waited, for what, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.attempts.retry import RetryPolicy
from millstream.engine.call import Call
from millstream.engine.endpoint import Fault
from millstream.engine.fault import Stopped
from millstream.engine.run import run_calls

M = "script/m"


def stop_of(folder: Path, provider: ScriptedProvider, policy: RetryPolicy, calls: int) -> str:
    async def main() -> str:
        async with engine_over({M: provider}, folder, policy=policy) as bench:
            with pytest.raises(Stopped) as raised:
                async for _ in run_calls(bench.scheduler, iter([Call(M, f"prompt {n}") for n in range(calls)])):
                    pass
            (stop,) = raised.value.stops
            return stop.detail

    return run_virtually(main())


def test_a_pause_that_is_too_long_is_named_with_the_wait_before_it_and_the_patience(tmp_path: Path) -> None:
    pauses = iter([300.0, 480.0])
    provider = ScriptedProvider(
        lambda prompt, now: Fault("rate_limited", "slow down", "throttle", 429, retry_after_s=next(pauses))
    )
    assert stop_of(tmp_path, provider, RetryPolicy(), 1) == (
        "script/m asks for a pause of 8 min after 5 min without a valid answer, more than --patience (10 min) in all: "
        "try again later. It said: slow down"
    )


@pytest.mark.parametrize(("patience_s", "told"), [(45.0, "45 s"), (60.0, "1 min"), (600.0, "10 min")])
def test_a_lane_without_a_valid_answer_says_for_how_long(tmp_path: Path, patience_s: float, told: str) -> None:
    provider = ScriptedProvider(lambda prompt, now: Fault("server_error", "500", "retry", 500))
    assert stop_of(tmp_path, provider, RetryPolicy(patience_s=patience_s), 100) == (
        f"script/m gave no valid answer for {told} (--patience): try again when it is back; the latest: "
        "server_error: 500"
    )
