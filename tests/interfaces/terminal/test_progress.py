"""Progress in a log: when lines come, and what was counted."""

from __future__ import annotations

import asyncio
import io
import re
import time
from pathlib import Path
from typing import cast

import pytest
import uvloop
from scripted import Bench, ScriptedProvider, engine_over, prompts
from virtual_time import run_virtually
from watched_run import MODEL, lines_of

from millstream.engine.attempts.money import CostBudget
from millstream.engine.endpoint import Fault
from millstream.engine.events import Event
from millstream.engine.lane import Lane
from millstream.engine.prices import Price
from millstream.engine.run import run_calls
from millstream.interfaces.terminal.progress import showing, watch_on_stderr
from millstream.interfaces.terminal.progress_lines import screen_lines
from millstream.interfaces.terminal.run_progress import LOOK_EVERY_S, RunProgress, RunView
from millstream.wiring.engine import Engine


def test_a_log_gets_a_line_after_two_seconds_then_every_ten_and_one_at_the_end(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 25, ScriptedProvider(latency_s=1.0))
    assert [at for at, _ in written] == pytest.approx([2.0, 12.0, 22.0, 26.0], abs=1.0)
    assert written[-1][1].startswith("25 of 25 (100%) | in 0:2")


def test_a_short_run_gets_its_last_line_alone(tmp_path: Path) -> None:
    ((_, line),) = lines_of(tmp_path, Lane(MODEL, concurrency=4), 8)
    assert re.fullmatch(r"8 of 8 \(100%\) \| in 0:00 \| (3\d|40)/s \| 0 from the cache", line)


def test_a_log_gets_no_control_character(tmp_path: Path) -> None:
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 50)
    assert len(written) == 2
    assert [line for _, line in written if not line.isprintable()] == []


def test_no_run_is_watched_without_a_stream_and_a_folder(tmp_path: Path) -> None:
    async def main() -> None:
        async with engine_over({MODEL: ScriptedProvider()}, tmp_path / "cache") as bench:
            with watch_on_stderr(is_shown=False)(cast(Engine, bench), 3, 0, ""):
                assert bench.events._listeners == []

    run_virtually(main())


def test_a_look_that_takes_longer_than_the_rhythm_is_not_the_last_one(tmp_path: Path) -> None:
    looks, fifth = [], asyncio.Event()

    def slow_cpu_s() -> float:
        time.sleep(1.1 * LOOK_EVERY_S)
        looks.append(time.monotonic())
        if len(looks) == 5:
            fifth.set()
        return 0.0

    async def main() -> None:
        async with engine_over({MODEL: ScriptedProvider()}, tmp_path / "cache") as bench, asyncio.timeout(30):
            with showing(cast(Engine, bench), 3, 0, stream=io.StringIO(), cpu_s=slow_cpu_s):
                await fifth.wait()

    uvloop.run(main())


def test_what_was_done_before_counts_as_done_but_not_for_the_rate(tmp_path: Path) -> None:
    slow = ScriptedProvider(latency_s=1.0)
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 10, slow, total=1_100, already=1_090)
    assert written[0][1].startswith("1,091 of 1,100 (99.1%) | 0.5/s | 1 in flight")
    assert "| 0:18 left |" in written[0][1]
    assert written[-1][1].startswith("1,100 of 1,100 (100%) | in 0:1")


def test_answers_from_the_cache_are_counted_apart(tmp_path: Path) -> None:
    lines_of(tmp_path, Lane(MODEL, concurrency=4), 20)
    ((at, line),) = lines_of(tmp_path, Lane(MODEL, concurrency=4), 24)
    assert "24 of 24 (100%)" in line and "20 from the cache" in line
    assert at == pytest.approx(0.1, abs=0.01)


def test_the_expected_cost_is_that_of_the_whole(tmp_path: Path) -> None:
    price = Price(0.0, 100_000.0)  # ten cents an answer, since the script's answers have one token
    written = lines_of(tmp_path, Lane(MODEL, concurrency=1), 100, price=price)
    told = re.match(r"(\d+) of 100 .* \| \$(\d\.\d0) of ~\$10\.00 \|", written[0][1])
    assert told is not None and float(told[2]) == int(told[1]) / 10
    assert written[-1][1].endswith("| $10.00")


def test_money_is_not_mentioned_where_no_price_is_known(tmp_path: Path) -> None:
    assert all("$" not in line for _, line in lines_of(tmp_path, Lane(MODEL, concurrency=1), 50))


def test_failures_are_told_by_kind_the_most_frequent_first(tmp_path: Path) -> None:
    def script(prompt: str, _: float) -> Fault | None:
        number = int(prompt.split()[1])
        if number % 10 == 0:
            return Fault("rejected", "no", "never")
        return Fault("too_large", "no", "never") if number % 25 == 7 else None

    written = lines_of(tmp_path, Lane(MODEL, concurrency=4), 100, ScriptedProvider(script))
    assert written[-1][1].endswith("| failed calls: rejected 10, too_large 4")
    assert written[-1][1].startswith("100 of 100 (100%)")


def test_retries_are_told_and_a_call_that_succeeds_in_the_end_is_no_failure(tmp_path: Path) -> None:
    seen: set[str] = set()

    def once(prompt: str, _: float) -> Fault | None:
        if prompt in seen or not prompt.endswith("7"):
            return None
        seen.add(prompt)
        return Fault("server_error", "busy", "retry")

    written = lines_of(tmp_path, Lane(MODEL, concurrency=4), 40, ScriptedProvider(once))
    assert written[-1][1].startswith("40 of 40 (100%)")
    assert written[-1][1].endswith("| failed attempts: server_error 4")


def test_several_lanes_are_told_one_by_one(tmp_path: Path) -> None:
    models = [f"script/m{number}" for number in range(11)]

    async def main() -> RunView:
        providers = {model: ScriptedProvider() for model in models}
        async with engine_over(providers, tmp_path / "cache") as bench:
            return await _view_of_all(bench, models)

    view = run_virtually(main())
    assert [lane.model for lane in view.lanes] == models
    texts = ["".join(piece.text for piece in line) for line in screen_lines(view, 100)]
    assert [text.split()[0] for text in texts if text.startswith("script/")] == models[:8]
    assert texts[-1] == "and 3 more lanes"


async def _view_of_all(bench: Bench, models: list[str]) -> RunView:
    headway = RunProgress(100, 0, bench.scheduler.routes.lasting, bench.budget, 0.0)
    bench.events.subscribe(headway.hear)
    for model in models:
        async for _ in run_calls(bench.scheduler, prompts(3, model)):
            pass
    return headway.look(10.0, 0.0, 0.0)


def test_a_call_that_failed_unsent_is_done_and_never_was_in_flight() -> None:
    headway = RunProgress(3, 0, {}, CostBudget(), 0.0)
    for event in (Event("unsent", MODEL, detail="not_cached"), Event("sent", MODEL), Event("sent", MODEL)):
        headway.hear(event)
    view = headway.look(1.0, 0.0, 0.0)
    assert (view.done, view.in_flight, view.failures) == (1, 2, {"not_cached": 1})


def test_cancelled_calls_are_not_in_flight_for_ever(tmp_path: Path) -> None:
    async def main() -> RunView:
        async with engine_over({MODEL: ScriptedProvider(latency_s=50.0)}, tmp_path / "cache") as bench:
            headway = RunProgress(10, 0, bench.scheduler.routes.lasting, bench.budget, 0.0)
            bench.events.subscribe(headway.hear)
            asking = [asyncio.create_task(bench.scheduler.ask(call)) for call in prompts(5)]
            await asyncio.sleep(1)
            assert headway.look(1.0, 0.0, 0.0).in_flight == 5
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            return headway.look(2.0, 0.0, 0.0)

    assert run_virtually(main()).in_flight == 0
