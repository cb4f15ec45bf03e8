"""Progress of items that take several calls: turns are counted, pages are one line, and waiting is told truly."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from scripted import ScriptedProvider, engine_over
from virtual_time import run_virtually

from millstream.engine.attempts.money import CostBudget
from millstream.engine.call import WEB, Call
from millstream.engine.events import Event
from millstream.engine.pairs import Pair
from millstream.interfaces.terminal.progress_lines import last_line, plain_line, screen_lines
from millstream.interfaces.terminal.run_progress import RunProgress, RunView

MODEL = "script/m"


def turns() -> RunProgress:
    return RunProgress(80, 0, {}, CostBudget(), 0.0, item="turn")


def test_turns_are_counted_and_calls_only_told() -> None:
    headway = turns()
    for _ in range(5):
        headway.hear(Event("cached", WEB))
    headway.hear(Event("sent", MODEL))
    headway.hear(Event("answered", MODEL, 1.0, "ok"))
    headway.item_ended()
    view = headway.look(2.0, 0.0, 0.0)
    assert (view.done, view.per_s, view.cached) == (1, 0.5, 5)
    assert plain_line(view).startswith("1 of 80 turns (1.2%) | 0.5/s | 0 in flight | 5 of 6 calls from the cache")
    assert last_line(view).startswith("1 of 80 turns (1.2%) | in 0:02 | 0.5/s | 5 of 6 calls from the cache")
    assert "1 of 80 turns" in "".join(piece.text for piece in screen_lines(view, 60)[0])


def test_pages_of_all_hosts_are_one_line_and_their_failures_stand_apart() -> None:
    headway = turns()
    for kind, detail in (("sent", ""), ("sent", ""), ("sent", ""), ("failed", "rejected"), ("retried", "timeout")):
        headway.hear(Event(kind, WEB, detail=detail))  # type: ignore[arg-type]
    # One that failed before and is met again is no fresh failure.
    headway.hear(Event("unsent", WEB, detail="rejected"))
    for kind, detail in (("sent", ""), ("failed", "rejected")):
        headway.hear(Event(kind, MODEL, detail=detail))  # type: ignore[arg-type]
    view = headway.look(1.0, 0.0, 0.0)
    assert (view.failures, view.retries, view.page_failures) == ({"rejected": 1}, {}, {"rejected": 1})
    assert [(lane.model, lane.in_flight) for lane in view.lanes] == [(WEB, 1), (MODEL, 0)]
    assert plain_line(view).endswith("failed calls: rejected 1 | failed pages: rejected 1")
    texts = ["".join(piece.text for piece in line) for line in screen_lines(view, 100)]
    [pages] = [text for text in texts if text.startswith("pages ")]
    assert "2 done" in pages and "1 in flight" in pages


def test_pages_that_are_held_back_to_spare_their_host_are_waited_for_out_of_politeness(tmp_path: Path) -> None:
    async def main() -> RunView:
        async with engine_over({WEB: ScriptedProvider(latency_s=0.05)}, tmp_path / "cache") as bench:
            headway = RunProgress(
                1, 0, bench.scheduler.routes.lasting, bench.budget, 0.0, hosts=bench.scheduler.routes.hosts, item="turn"
            )
            bench.events.subscribe(headway.hear)
            asking = [
                asyncio.create_task(bench.scheduler.ask(Call(WEB, f"http://a.example/{number}"))) for number in range(6)
            ]
            for look in range(1, 17):
                await asyncio.sleep(0.25)
                view = headway.look(0.25 * look, 0.1, 0.0)
            await asyncio.gather(*asking)
            return view

    waits = {share.reason: share.share for share in run_virtually(main()).waits}
    assert waits["politeness"] > 0.9
    assert "CPU" not in waits


@pytest.mark.parametrize("cpu_share", [0.2, 0.97])
def test_quick_answers_between_two_looks_are_not_our_own_time(tmp_path: Path, cpu_share: float) -> None:
    async def main() -> RunView:
        async with engine_over({MODEL: ScriptedProvider()}, tmp_path / "cache") as bench:
            bench.lane(MODEL)
            headway = RunProgress(100, 0, bench.scheduler.routes.lasting, bench.budget, 0.0, item="turn")
            for second in range(5):
                headway.hear(Event("sent", MODEL))
                headway.hear(Event("answered", MODEL, 1.0, "ok"))
                view = headway.look(second + 1.0, cpu_share, 0.0)
            return view

    waits = {share.reason: share.share for share in run_virtually(main()).waits}
    assert waits == ({"CPU": 1.0} if cpu_share > 0.9 else {})


def test_the_mean_score_so_far_stands_in_the_progress_of_each_model_if_there_are_several() -> None:
    headway = turns()
    assert "score so far" not in plain_line(headway.look(1.0, 0.0, 0.0))
    for score in (1.0, 0.0, 1.0, 1):
        headway.scored(Pair(MODEL, None), score)
    assert " | score so far: 0.750 | " in f"{plain_line(headway.look(2.0, 0.0, 0.0))} | "
    headway.scored(Pair(MODEL, 1.0), 0.5)
    view = headway.look(3.0, 0.0, 0.0)
    assert "score so far: script/m 0.750, script/m @ 1 0.500" in plain_line(view)
    assert any("script/m @ 1 0.500" in "".join(piece.text for piece in line) for line in screen_lines(view, 80))
    assert "score so far" not in last_line(view)


def test_a_run_that_goes_on_says_of_which_answers_its_score_is() -> None:
    headway = RunProgress(384, 258, {}, CostBudget(), 0.0, item="turn")
    headway.scored(Pair(MODEL, None), 1.0)
    assert " | score after the first 258: 1.000" in plain_line(headway.look(1.0, 0.0, 0.0))
